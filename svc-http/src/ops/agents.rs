//! Agents and their mandates, for persons and for machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::{By, entitled};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{ChangeMandate, GrantMandate, Held, RevokeMandate};
use svc_core::rules::people::recount::{self, Recount};
use svc_core::rules::people::register_agent::{ActsFor, RegisterAgent, Registered, RemoveAgent};
use svc_core::rules::people::show::{self, AgentView};
use svc_core::state::gate::{Action, Agent, Mandate, State, Status};
use svc_core::state::people::{Credential, Reach, Right};
use svc_core::store::{Key, Range, Row as _};
use svc_core::value::currency::Currency;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, MandateId, WorkspaceId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Timestamp};

use svc_store::{COUNTS_MAX, Gate};

use super::aside::{Aside, asker};
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::AgentsOp;
use crate::secrets::{KEY_PREFIX, draw};
use crate::wire::agent::{self as wire, Blueprint, Spent};
use crate::wire::mandate;
use crate::wire::page::Query;

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
        AgentsOp::Create => place.create(wire::read(&call.body, place.now)?).await,
        AgentsOp::AdminCreate => place.create(wire::read_of_token(&call.body)?).await,
        AgentsOp::Get => place.get(call.param_id("aid")?).await,
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
        if self.service.read(|scope| show::reading(scope, &self.by, self.workspace))? == Reach::No {
            self.stops_some(all.clone()).await?;
        }
        let found = self.service.scan(&page.of(Range { newest_first, ..all }))?;
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

    /// That somebody whose role reads no agents is the kill owner of at least one among these.
    async fn stops_some(&self, mut range: Range) -> Result<(), Refusal> {
        let (gate, by) = (self.service.gate.clone(), self.by.clone());
        let look = move || loop {
            let found = gate.scan(&range).map_err(refusal)?;
            let mut agents = found.iter().filter_map(|it| Agent::peel(it.row.record.as_ref()?));
            if agents.any(|it| show::stops_as_kill_owner(&by, it)) {
                return Ok(true);
            }
            match found.last() {
                Some(last) if found.len() == LOOK => range.after = Some((last.order, last.row.key)),
                _ => return Ok(false),
            }
        };
        if self.service.aside.run(asker(&self.by), look).await? {
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

    async fn get(&self, id: AgentId) -> Result<Answer, Refusal> {
        let view = self.service.read(|scope| show::seen(scope, &self.by, self.workspace, id))?;
        if view.whole { whole(self.service, &view.agent).await } else { written(wire::write(&view, self.now)) }
    }

    async fn change(&self, call: &Call) -> Result<Answer, Refusal> {
        let asked = wire::read_change(&call.body)?;
        let (by, workspace, agent) = (self.by.clone(), self.workspace, call.param_id("aid")?);
        let wire::AgentChange { name, tier, sponsor, kill_owner } = asked;
        let changed = self.service.run(ChangeAgent { workspace, by, agent, name, tier, sponsor, kill_owner }).await?;
        standing(self.service, &changed)
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
        let data = shown.iter().map(|it| mandate::write(it, self.now)).collect();
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
        shown(&self.held(call.param_id("mnd")?)?, self.now)
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
            change.counted = self.service.read(|scope| recount::plan(scope, &change))?;
            count(self.service, refused, change.counted.as_mut())?;
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
async fn whole(service: &GateService, agent: &Arc<Agent>) -> Result<Answer, Refusal> {
    let (mut shown, month) = recent(service, agent)?;
    let spend = spent_since(service, (&service.agents_aside, agent.id.bits()), agent.id, month).await?;
    wire::write_spend(&mut shown, &spend);
    written(shown)
}

/// An agent's record with what single rows say of what it did lately, and when the running month began.
fn recent(service: &GateService, agent: &Arc<Agent>) -> Result<(Map<String, Value>, Timestamp), Refusal> {
    let (view, lately) =
        service.read(|scope| Ok((show::view(scope, Arc::clone(agent))?, show::lately(scope, agent)?)))?;
    let mut shown = wire::write(&view, service.gate.now());
    wire::write_lately(&mut shown, &lately);
    Ok((shown, lately.month))
}

/// What the payments that an agent asked for since then add up to, by currency, not on a thread that serves others; by these places and
/// in this asker's turn.
///
/// # Errors
/// Those of scanning.
pub(super) async fn spent_since(
    service: &GateService,
    (places, asker): (&Aside, u128),
    agent: AgentId,
    since: Timestamp,
) -> Result<BTreeMap<Currency, Spent>, Refusal> {
    let gate = service.gate.clone();
    places.run(asker, move || spend(&gate, agent, since)).await
}

/// The same, here and now. Every one of them is read, a page at a time.
fn spend(gate: &Gate, agent: AgentId, since: Timestamp) -> Result<BTreeMap<Currency, Spent>, Refusal> {
    let mut range = Range { from: ulid_bits(since, 0), ..Range::all(Index::ActionsOf, agent.bits(), LOOK) };
    let now = gate.now();
    let mut sums = BTreeMap::<_, Spent>::new();
    loop {
        let found = gate.scan(&range).map_err(refusal)?;
        // Read after them: what a stop has ended, their own rows may say later than it does.
        let (owner, held) = gate.read(|scope| show::stops(scope, agent)).map_err(refusal)?;
        for action in found.iter().filter_map(|it| Action::peel(it.row.record.as_ref()?)) {
            let Some(payment) = &action.payment else { continue };
            let sum = sums.entry(payment.currency).or_default();
            match &action.state {
                State::Denied { .. } | State::Expired { .. } => {}
                // What only a person could let pass holds nothing until they do.
                State::Pending { .. } if action.mandate.is_none() || action.is_beyond() => {}
                // A stop or time has ended it.
                State::Pending { .. } if action.status(&owner, held, now) != Status::Pending => {}
                State::Pending { .. } => sum.reserved = sum.reserved.saturating_add(payment.amount),
                State::Allowed(allowed) => {
                    // Of what held nothing no timer says that it lapsed.
                    let ended = allowed.outcome.is_some() || allowed.lapsed.is_some() || now >= allowed.lapse_at();
                    let part = if ended { &mut sum.settled } else { &mut sum.reserved };
                    *part = part.saturating_add(allowed.posted().unwrap_or(payment.amount));
                }
            }
        }
        match found.last() {
            Some(last) if found.len() == LOOK => range.after = Some((last.order, last.row.key)),
            _ => return Ok(sums),
        }
    }
}

/// Adds up a mandate's own actions in the periods that change.
///
/// # Errors
/// `refused` where none changes, and it was refused for something else; those of scanning.
pub(super) fn count(service: &GateService, refused: Refusal, counted: Option<&mut Recount>) -> Result<(), Refusal> {
    service.gate.count(counted.ok_or(refused)?).map_err(refusal)
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

fn shown(held: &Held, now: Timestamp) -> Result<Answer, Refusal> {
    serde_json::to_vec(&mandate::write(held, now)).map(Answer::json).map_err(|_| Refusal::internal())
}

fn written(shown: Map<String, Value>) -> Result<Answer, Refusal> {
    serde_json::to_vec(&Value::Object(shown)).map(Answer::json).map_err(|_| Refusal::internal())
}
