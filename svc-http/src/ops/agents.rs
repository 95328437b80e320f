//! Agents and their mandates, for persons and for machines.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::freeze::own_agent;
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::{By, entitled, reaches};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{ChangeMandate, GrantMandate, Held, RevokeMandate};
use svc_core::rules::people::named::Named;
use svc_core::rules::people::recount::{self, Recount};
use svc_core::rules::people::register_agent::{ActsFor, RegisterAgent, Registered, RemoveAgent};
use svc_core::rules::people::show::{self, AgentView};
use svc_core::rules::people::usage::{Usage, usage};
use svc_core::state::gate::{Agent, Mandate};
use svc_core::state::people::{Credential, Reach, Right};
use svc_core::store::{Key, Range, Row as _};
use svc_core::turn::{Halt, Scope};
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, MandateId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Timestamp};

use svc_store::COUNTS_MAX;
use tokio::time::timeout;

use super::aside::{Asker, Awaited};
use super::spent::spent_since;
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::AgentsOp;
use crate::secrets::{KEY_PREFIX, draw};
use crate::wire::agent::{self as wire, Blueprint};
use crate::wire::mandate;
use crate::wire::page::Query;

/// How long a sum is waited for whether or not its client is still there.
const MOMENT: Duration = Duration::from_secs(1);
/// Rows of one scan.
const LOOK: usize = 1_000;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: AgentsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    let place = Place { service, by, workspace, now: service.gate.now() };
    match op {
        AgentsOp::List => place.list(call, "agents", true).await,
        AgentsOp::AdminList => place.list(call, "agents of a token", false).await,
        AgentsOp::Create => {
            let read = wire::read(&call.body, place.now);
            let asked = read.map_err(|it| service.and_named(workspace, &call.body, wire::IDS, it))?;
            place.create(asked).await
        }
        AgentsOp::AdminCreate => {
            let read = wire::read_of_token(&call.body);
            let asked = read.map_err(|it| service.and_named(workspace, &call.body, wire::IDS_OF_TOKEN, it))?;
            place.create(asked).await
        }
        AgentsOp::Get => place.get(call).await,
        AgentsOp::Change => place.change(call).await,
        AgentsOp::Remove => {
            let (by, workspace, agent) = (place.by.clone(), workspace, call.param_id("aid")?);
            service.run(RemoveAgent { workspace, by, agent }).await?;
            Ok(Answer::empty())
        }
        AgentsOp::Mandates => place.mandates(call),
        AgentsOp::Grant => place.grant(call).await,
        AgentsOp::Mandate => place.mandate(call),
        AgentsOp::ChangeMandate => place.change_mandate(call).await,
        AgentsOp::Revoke => {
            let held = place.held(call.param_id("mnd")?)?;
            let (by, agent, mandate) = (place.by.clone(), held.mandate.agent, held.mandate.id.mandate);
            service.run(RevokeMandate { workspace, by, agent, mandate }).await?;
            Ok(Answer::empty())
        }
        AgentsOp::Versions => place.versions(call),
    }
}

/// Whose workspace it is about, who asks, and when.
struct Place<'a> {
    service: &'a GateService,
    by: By,
    workspace: WorkspaceId,
    now: Timestamp,
}

impl Place<'_> {
    async fn list(&self, call: &Call, name: &str, newest_first: bool) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page(name, self.workspace);
        query.finish()?;
        let all = Range::all(Index::AgentsOf, self.workspace.bits(), LOOK);
        let range = page.of(Range { newest_first, ..all.clone() });
        let reach = self.service.read(|scope| show::reading(scope, &self.by, self.workspace))?;
        let found = match reach {
            Reach::All => self.service.scan(&range)?,
            Reach::Own | Reach::No => self.own(range, reach).await?,
        };
        if reach == Reach::No && found.is_empty() {
            self.stops_some(all).await?;
        }
        let id = |it: &svc_core::store::Found| if let Key::Agent(id) = it.row.key { Some(id) } else { None };
        let ids: Vec<AgentId> = found.iter().filter_map(id).collect();
        let views = self.service.read(|scope| show::agents(scope, &self.by, self.workspace, &ids))?;
        let shown: BTreeMap<AgentId, AgentView> = views.into_iter().flatten().map(|it| (it.agent.id, it)).collect();
        let answer = page.answer(&found, |row| {
            let view = id(row).and_then(|id| shown.get(&id));
            Ok(view.map(|it| Value::Object(wire::write(it, self.now))))
        })?;
        Ok(Answer::json(answer))
    }

    /// Those of a range that are the asker's own, or that they stop as their kill owner.
    async fn own(&self, range: Range, reach: Reach) -> Result<Vec<svc_core::store::Found>, Refusal> {
        let by = self.by.clone();
        let sees = move |_: &svc_store::Gate, found: &[svc_core::store::Found]| {
            let agents = found.iter().map(|it| it.row.record.as_ref().and_then(Agent::peel));
            let own = |it: &Agent| reaches(&by, reach, it).is_ok() || show::stops_as_kill_owner(&by, it);
            Ok(agents.map(|it| it.is_some_and(|it| own(it))).collect())
        };
        self.service.scan_seen(Asker::of(&self.by, self.workspace), range, sees).await
    }

    /// That somebody whose role reads no agents is the kill owner of at least one among these.
    async fn stops_some(&self, mut range: Range) -> Result<(), Refusal> {
        let (gate, by) = (self.service.gate.clone(), self.by.clone());
        let look = move || loop {
            let found = gate.scan(&range).map_err(refusal)?;
            let mut agents = found.iter().filter_map(|it| Agent::peel(it.row.record.as_ref()?));
            if agents.any(|it| show::stops_as_kill_owner(&by, it)) {
                return Ok(true);
            }
            if !range.turn_page(&found) {
                return Ok(false);
            }
        };
        if self.service.aside.run(Asker::of(&self.by, self.workspace), look).await? {
            return Ok(());
        }
        self.service.read(|scope| entitled(scope, &self.by, self.workspace, Right::ReadAgents)).map(|_| ())
    }

    async fn create(&self, asked: Blueprint) -> Result<Answer, Refusal> {
        let key = draw(KEY_PREFIX).map_err(refusal)?;
        let register = RegisterAgent {
            workspace: self.workspace,
            by: self.by.clone(),
            name: asked.name,
            principal: ActsFor::Email(asked.email),
            tier: asked.tier,
            sponsor: asked.sponsor,
            kill_owner: asked.kill_owner,
            mandates: asked.mandates,
            key: NewKey::of(key.text.expose()),
            plans: self.service.plans,
        };
        let registered = self.service.run(register).await?;
        written(made(self.service, &registered, key.text.expose())?).map(Answer::created)
    }

    async fn get(&self, call: &Call) -> Result<Answer, Refusal> {
        let id = call.param_id("aid")?;
        let view = self.service.read(|scope| show::seen(scope, &self.by, self.workspace, id))?;
        if view.whole {
            whole(self.service, &self.by, &view.agent, call).await
        } else {
            written(wire::write(&view, self.now))
        }
    }

    async fn change(&self, call: &Call) -> Result<Answer, Refusal> {
        let asked = wire::read_change(&call.body).map_err(|it| self.and_named(call, it))?;
        let (by, workspace, agent) = (self.by.clone(), self.workspace, call.param_id("aid")?);
        let wire::AgentChange { name, tier, sponsor, kill_owner } = asked;
        let changed = self.service.run(ChangeAgent { workspace, by, agent, name, tier, sponsor, kill_owner }).await?;
        standing(self.service, &changed)
    }

    /// The refusal of a malformed change, with what is wrong with whom it names; whoever may not name anybody learns nothing of them.
    fn and_named(&self, call: &Call, refusal: Refusal) -> Refusal {
        let Ok(id) = call.param_id("aid") else { return refusal };
        let stands = self.service.read(|scope| {
            entitled(scope, &self.by, self.workspace, Right::ManageAgents)?;
            own_agent(scope, self.workspace, id)
        });
        let Ok(agent) = stands else { return refusal };
        let stands = [
            agent.sponsor.map(|it| ("sponsor".to_owned(), Named::Sponsor(it))),
            agent.kill_owner.map(|it| ("killOwner".to_owned(), Named::Principal(it))),
        ];
        let stands: Vec<_> = stands.into_iter().flatten().collect();
        self.service.and_named_anew(self.workspace, &call.body, wire::CHANGED_IDS, &stands, refusal)
    }

    fn mandates(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("mandates of an agent", call.param("aid"));
        query.finish()?;
        let id = call.param_id("aid")?;
        let view = self.service.read(|scope| show::agent(scope, &self.by, self.workspace, id))?;
        let after = page.after.map(|(order, _)| order);
        let order = |it: &Held| it.mandate.id.mandate.bits();
        let rest: Vec<&Held> =
            view.mandates.iter().rev().filter(|it| after.is_none_or(|after| order(it) < after)).collect();
        let shown = rest.get(..page.limit).unwrap_or(&rest);
        let last = shown.last().filter(|_| rest.len() > page.limit);
        let next = last.map(|it| page.cursor(order(it), Mandate::key(it.mandate.id)));
        let usage = self.usage(id, shown)?;
        let data = shown.iter().zip(&usage);
        let data = data.map(|(it, usage)| mandate::write_used(it, usage.as_ref(), self.now)).collect();
        page.list(data, next).map(Answer::json)
    }

    async fn grant(&self, call: &Call) -> Result<Answer, Refusal> {
        let asked = mandate::read_new(&call.body, self.now)?;
        let (by, workspace, agent) = (self.by.clone(), self.workspace, call.param_id("aid")?);
        let (content, confirm_broaden, plans) = (asked.content, asked.confirm_broaden, self.service.plans);
        let made = self.service.run(GrantMandate { workspace, by, agent, content, confirm_broaden, plans }).await?;
        let held = self.held(made.id.mandate)?;
        Ok(shown(&held, self.now)?.created())
    }

    fn held(&self, id: MandateId) -> Result<Held, Refusal> {
        let held = self.service.read(|scope| show::mandate(scope, &self.by, self.workspace, id))?;
        if held.grant.is_some() {
            return Ok(held);
        }
        let all = Range::all(Index::VersionsOf, id.bits(), 1);
        let last = self.service.scan(&Range { newest_first: true, ..all })?;
        let last = last.first().and_then(|it| Mandate::peel(it.row.record.as_ref()?)).cloned();
        Ok(Held { mandate: last.unwrap_or(held.mandate), grant: None })
    }

    fn mandate(&self, call: &Call) -> Result<Answer, Refusal> {
        let held = self.held(call.param_id("mnd")?)?;
        let usage = self.usage(held.mandate.agent, &[&held])?;
        written(mandate::write_used(&held, usage.first().and_then(Option::as_ref), self.now))
    }

    /// What the running periods of an agent's mandates hold, which have been given to whoever asks.
    fn usage(&self, agent: AgentId, held: &[&Held]) -> Result<Vec<Option<Usage>>, Refusal> {
        self.service.read(|scope| usage(scope, self.workspace, agent, held))
    }

    async fn change_mandate(&self, call: &Call) -> Result<Answer, Refusal> {
        // What is wrong with the body comes before whether there is such a mandate.
        let held = call.param_id("mnd").and_then(|it| self.held(it));
        let asked = mandate::read_change(&call.body, held.as_ref().ok().map(|it| it.mandate.terms()), self.now)?;
        let held = held?;
        let mut change = ChangeMandate {
            workspace: self.workspace,
            by: self.by.clone(),
            agent: held.mandate.agent,
            mandate: held.mandate.id.mandate,
            change: asked.change,
            paused: asked.paused,
            confirm_broaden: asked.confirm_broaden,
            counted: None,
        };
        for _ in 0..COUNTS_MAX {
            let refused = match self.service.run(change.clone()).await {
                Err(it) if it.kind() == Kind::NotReady => it,
                held => return shown(&held?, self.now),
            };
            let (asker, asked) = (Asker::of(&self.by, self.workspace), change.clone());
            let plan = move |scope: &mut Scope<'_>| recount::plan(scope, &asked);
            change.counted = Some(count(self.service, asker, refused, plan).await?);
        }
        // The agent acts faster than its actions are counted: pause the mandate first.
        Err(Refusal::not_ready())
    }

    fn versions(&self, call: &Call) -> Result<Answer, Refusal> {
        let mut query = Query::among(&call.uri, call.route.query);
        let page = query.page("versions of a mandate", call.param("mnd"));
        query.finish()?;
        let id: MandateId = call.param_id("mnd")?;
        let held = self.held(id)?;
        let all = Range::all(Index::VersionsOf, id.bits(), LOOK);
        let found = self.service.scan(&page.of(Range { newest_first: true, ..all }))?;
        let answer = page.answer(&found, |row| {
            let mandate = row.row.record.as_ref().and_then(Mandate::peel).cloned();
            Ok(mandate.map(|mandate| mandate::write(&Held { mandate, grant: held.grant.clone() }, self.now)))
        })?;
        Ok(Answer::json(answer))
    }
}

/// An agent's record as it now stands, for whoever has just changed it. What is committed is answered at once: nothing of it waits
/// for a look through what the agent did, or fails with it, so `spend` is the item's alone.
///
/// # Errors
/// Those of reading.
pub(super) fn standing(service: &GateService, agent: &Arc<Agent>) -> Result<Answer, Refusal> {
    recent(service, agent).and_then(|(shown, _)| written(shown))
}

/// The same for whoever has just stopped it: its kill owner may read less of it.
///
/// # Errors
/// Those of reading.
pub(super) fn stopped(service: &GateService, by: &By, agent: &Arc<Agent>) -> Result<Answer, Refusal> {
    let By::Person(_) = by else { return standing(service, agent) };
    let view = service.read(|scope| show::seen(scope, by, agent.workspace, agent.id))?;
    if view.whole { standing(service, agent) } else { written(wire::write(&view, service.gate.now())) }
}

/// The same with what the agent's payments of the running month add up to.
async fn whole(service: &GateService, by: &By, agent: &Arc<Agent>, call: &Call) -> Result<Answer, Refusal> {
    let (mut shown, month) = recent(service, agent)?;
    let asker = Asker::of(by, agent.workspace);
    let mut spend = pin!(spent_since(service, (&service.spent.places, asker), agent.id, month));
    let spend = match timeout(MOMENT, spend.as_mut()).await {
        Ok(spend) => spend?,
        Err(_) => {
            // It goes on for long, but not where nobody waits for it.
            call.ends.set(true);
            spend.await?
        }
    };
    wire::write_spend(&mut shown, &spend);
    written(shown)
}

/// An agent's record with what single rows say of what it did lately, and when the running month began.
fn recent(service: &GateService, agent: &Arc<Agent>) -> Result<(Map<String, Value>, Timestamp), Refusal> {
    let (view, mut lately) =
        service.read(|scope| Ok((show::view(scope, Arc::clone(agent))?, show::lately(scope, agent)?)))?;
    // Its lines know what it asked for; that it calls models, follows an answer or tries while it is stopped, this server remembers.
    let keys = agent.keys.iter().map(|it| it.via.as_ref().map_or_else(|| it.id.bits(), |via| via.connection.bits()));
    lately.seen_at = keys.filter_map(|it| service.seen.of(it)).chain(lately.seen_at).max();
    let mut shown = wire::write(&view, service.gate.now());
    wire::write_lately(&mut shown, &lately);
    Ok((shown, lately.month))
}

/// Adds up a mandate's own actions in the periods that change, not on a thread that serves others: there may be very many. What is to be
/// added up is planned when it is its turn, as whatever the agent does from then on makes the sums void.
///
/// # Errors
/// `refused` where no period changes, and it was refused for something else; those of scanning; `not_ready` where the asker has asked for
/// too much already.
pub(super) async fn count(
    service: &GateService,
    asker: Asker,
    refused: Refusal,
    plan: impl Fn(&mut Scope<'_>) -> Result<Option<Recount>, Halt> + Send + 'static,
) -> Result<Recount, Refusal> {
    let gate = service.gate.clone();
    let add = move |awaited: &Awaited| {
        let mut sums = gate.read(plan).map_err(refusal)?.ok_or(refused)?;
        gate.count_while(&mut sums, &|| awaited.go_on()).map_err(refusal)?;
        Ok(sums)
    };
    service.aside.run_awaited(asker, add).await
}

/// The record of an agent that was just made, with its first key, which is shown this once.
///
/// # Errors
/// None but those of reading it back.
pub(super) fn made(service: &GateService, made: &Registered, key: &str) -> Result<Map<String, Value>, Refusal> {
    let row = Credential::id_of(&Digest::of(key));
    let (view, binding) = service.read(|scope| {
        let view = show::view(scope, Arc::clone(&made.agent))?;
        let row = scope.get::<Credential>(row)?.ok_or_else(Refusal::internal)?;
        Ok((view, show::key(scope, row)?))
    })?;
    let mut shown = wire::write(&view, service.gate.now());
    shown.insert("key".to_owned(), json!(key));
    shown.insert("binding".to_owned(), crate::wire::key::write(&binding, None));
    Ok(shown)
}

/// A mandate as it now stands, for whoever has just granted or changed it; what is used of it is told where it is read.
fn shown(held: &Held, now: Timestamp) -> Result<Answer, Refusal> {
    written(mandate::write(held, now))
}

fn written(shown: impl Into<Value>) -> Result<Answer, Refusal> {
    serde_json::to_vec(&shown.into()).map(Answer::json).map_err(|_| Refusal::internal())
}
