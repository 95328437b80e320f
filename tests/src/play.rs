//! Random work for the gate: moves that name agents and actions by number, and the cast that they are played with.

mod calls;
mod moves;
mod stops;

use std::sync::Arc;

use svc_core::command::{Command, Reply, Wake};
use svc_core::rules::edge::charge::{ChargeAsked, Cover};
use svc_core::rules::edge::deliver::{ClaimDelivery, FinishDelivery};
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive, Vouched};
use svc_core::rules::evidence::sequence::Sequence;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::freeze::EndApproval;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::release::ReleaseAction;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::gate::verify::{Charge, Verify};
use svc_core::rules::gateway::admit::{Admission, Admitted};
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{Content, GrantMandate, RevokeMandate};
use svc_core::rules::people::register_agent::{RegisterAgent, RemoveAgent};
use svc_core::rules::people::settings::ChangeSettings;
use svc_core::state::edge::{ConfigChange, IntegrationKind, IntegrationSlot, Received, Tried, Trouble};
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{Action, Declared, Request, State, Terms, Tier};
use svc_core::state::people::{Credential, Role, Settings, Velocity};
use svc_core::store::{Key, Record, Row, Stamp, Store};
use svc_core::testing::people;
use svc_core::testing::world;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ActionId, EvidenceId, IntegrationId, MandateId, WorkspaceId};
use svc_core::value::text::{Email, Label, Note, SessionId, Source, UrlText};
use svc_core::value::{Amount, Span, Timestamp};

pub use calls::TOKENS;
pub use moves::{Move, Word, moves};
pub use stops::Standing;

/// Every row of a store, as its dump gives them.
pub type Rows = [(Key, Stamp, Record)];

/// What is paid, in minor units: below and above what mandates ask about and allow.
pub const AMOUNTS: [i64; 6] = [100, 900, 1_000, 2_600, 5_000, 5_100];
/// Who is paid: two of one registrable domain, one elsewhere, one on a deny list.
pub const MERCHANTS: [&str; 4] = ["shop.example.com", "pay.example.com", "shop.example.org", "bad.example.net"];
/// What else is asked.
pub const KINDS: [&str; 4] = ["tool.call", "deploy", "crm.update", "mcp.call"];

/// What agents may do.
///
/// # Panics
/// Where this list holds no mandates.
#[must_use]
pub fn mandates() -> Vec<Terms> {
    [
        r#"{"name":"Small","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"askAbove":2500,
            "perPeriod":{"amount":9000,"period":"day"}},"merchants":{"allow":["*.example.com"],"deny":["bad.example.net"]}}"#,
        r#"{"name":"Ask","actions":["payment","deploy"],"limits":{"currency":"EUR","perPeriod":{"amount":4000,"period":"hour"},
            "count":{"max":5,"period":"hour"},"onLimit":"ask"},"duplicates":"record"}"#,
        r#"{"name":"Tools","actions":["tool.*","mcp.*"],"limits":{"count":{"max":12,"period":"day"}}}"#,
        r#"{"name":"Wide","actions":["payment","crm.*","tool.call"],"limits":{"currency":"EUR","perAction":100000}}"#,
    ]
    .into_iter()
    .map(world::terms)
    .collect()
}

/// Settings that come into force: the usual ones, and narrow ones.
#[must_use]
pub fn settings(choice: usize) -> Settings {
    let narrow = Velocity { tool_count: 3, other_count: 4, minutes: 5 };
    match choice % 3 {
        0 => Settings { agent_velocity: Velocity { tool_count: 8, ..Velocity::default() }, ..Settings::default() },
        1 => Settings { agent_velocity: narrow, max_waiting: 2, ..Settings::default() },
        _ => Settings { receipt_minutes: 1, approval_hours: 1, ..Settings::default() },
    }
}

/// Who and what there is to make moves with.
#[derive(Clone, Debug, Default)]
pub struct Cast {
    /// The workspace, once there is one.
    pub workspace: Option<WorkspaceId>,
    /// Agents, in the order of their making.
    pub agents: Vec<Caller>,
    /// Actions, in the order of their making.
    pub actions: Vec<Arc<Action>>,
    /// Mandates by agent.
    pub grants: Vec<(usize, MandateId)>,
    /// Persons who may decide.
    pub people: Vec<Person>,
    /// Ledger records that wait for their places, in order.
    pub waiting: Vec<EvidenceId>,
    /// The card's issuer, once it is connected.
    pub issuer: Option<IntegrationId>,
    /// Agents, holds and mandates as they stand.
    pub standing: Standing,
    /// Calls of models that were admitted.
    pub calls: Vec<Admitted>,
    /// Keys that models are called with: agents', and the workspace's own.
    keys: Vec<CallKey>,
    made: u64,
}

impl Cast {
    /// The commands of a beginning: a workspace and two agents.
    ///
    /// # Panics
    /// Where a name is none.
    #[must_use]
    pub fn opening() -> Command {
        let name = Label::parse("Play").expect("a label");
        let owner = Email::parse("owner@example.com").expect("an address");
        CreateWorkspace { name, owner, settings: settings(0) }.into()
    }

    /// Signs an owner and an admin in, into this store and for longer than any history.
    ///
    /// # Panics
    /// Where the store fails or the workspace was not made.
    pub fn sign_in<S: Store>(&mut self, store: &mut S) {
        let workspace = self.workspace.expect("a workspace");
        let at = Timestamp::parse("2027-10-01T00:00:00Z").expect("an instant");
        let owner = people::sign_in_owner(store, workspace, 1, at);
        let admin = people::sign_in(store, workspace, Role::Admin, 2, at);
        self.people = vec![owner, admin];
    }

    /// Makes a provider with a model, budgets and a key: `run` runs a command.
    ///
    /// # Panics
    /// Where one of the commands does not make what it is to make.
    pub fn equip(&self, mut run: impl FnMut(Command) -> Reply) {
        let workspace = self.workspace.expect("a workspace");
        let Reply::Edited(made) = run(calls::provider(workspace)) else { panic!("no provider was made") };
        for command in calls::rest(workspace, made.upstream.expect("a provider")) {
            let _ = run(command);
        }
    }

    /// What there is, brought up to the rows as they are.
    pub fn look(&mut self, rows: &Rows) {
        let mut waiting: Vec<(Stamp, EvidenceId)> = Vec::new();
        self.standing = Standing::of(rows);
        let credentials = rows.iter().filter_map(|(_, _, record)| Credential::peel(record));
        self.keys = credentials.map(|it| CallKey { row: it.id, binding: Arc::new(it.binding.clone()) }).collect();
        for (_, stamp, record) in rows {
            if let Some(action) = Action::peel(record) {
                match self.actions.iter_mut().find(|it| it.id == action.id) {
                    Some(known) => *known = Arc::clone(action),
                    None => self.actions.push(Arc::clone(action)),
                }
            }
            if let Some(entry) = Entry::peel(record).filter(|it| it.place.is_none()) {
                waiting.push((*stamp, entry.id));
            }
        }
        waiting.sort_unstable();
        self.waiting = waiting.into_iter().map(|(_, id)| id).collect();
    }

    /// Notes who was made.
    ///
    /// # Panics
    /// Where an agent's key is not an agent's.
    pub fn hear(&mut self, reply: &Reply) {
        match reply {
            Reply::Workspace(made) => self.workspace = Some(made.id),
            Reply::Registered(made) => {
                let place = self.agents.len();
                self.agents.push(Caller::of(&made.binding).expect("an agent's key"));
                self.grants.extend(made.agent.mandates.iter().map(|it| (place, it.id)));
            }
            Reply::Mandate(made) => {
                let place = self.agents.iter().position(|it| it.agent == made.agent);
                self.grants.extend(place.map(|place| (place, made.id.mandate)));
            }
            Reply::Integration(made) => self.issuer = Some(made.id),
            Reply::Admission(made) => {
                if let Admission::Admitted(made) = &**made {
                    self.calls.push(Admitted::clone(made));
                }
            }
            Reply::Action(_)
            | Reply::Agent(_)
            | Reply::Changed(_)
            | Reply::Credential(_)
            | Reply::Template(_)
            | Reply::Token(_)
            | Reply::TokenEnd(_)
            | Reply::Callback(_)
            | Reply::Claimed(_)
            | Reply::Delivery(_)
            | Reply::Drill(_)
            | Reply::DrillStarted(_)
            | Reply::McpServer(_)
            | Reply::Question(_)
            | Reply::Fleet(_)
            | Reply::Heard(_)
            | Reply::Lift(_)
            | Reply::Stopped(_)
            | Reply::Tested(_)
            | Reply::Done(())
            | Reply::Woken(_) => {}
            Reply::Connection(_)
            | Reply::Consent(_)
            | Reply::Granted(_)
            | Reply::OAuthClient(_)
            | Reply::Retried(_)
            | Reply::Finished(_)
            | Reply::Task(_)
            | Reply::Bill(_)
            | Reply::Budget(_)
            | Reply::Edited(_)
            | Reply::Listed(_)
            | Reply::Account(_)
            | Reply::SignedIn(_)
            | Reply::SignedInBySso(_)
            | Reply::Key(_)
            | Reply::MandateEnd(_)
            | Reply::Placed(_)
            | Reply::SigningKey(_)
            | Reply::Application(_)
            | Reply::Approved(_)
            | Reply::Member(_)
            | Reply::Team(_)
            | Reply::Verdict(_) => {}
        }
    }

    /// The command that a move is, if there is somebody to make it.
    #[must_use]
    pub fn command(&mut self, step: &Move) -> Option<Command> {
        self.made += 1;
        let workspace = self.workspace?;
        let caller = |agent: usize| self.agents.get(agent % self.agents.len().max(1)).copied();
        Some(match step {
            Move::Pay { agent, amount, merchant, key } => {
                let request = pay(*amount, *merchant);
                authorize(caller(*agent)?, request, *key, self.made)
            }
            Move::Ask { agent, kind, session, untrusted, key } => {
                let request = ask(*kind, *session, *untrusted);
                authorize(caller(*agent)?, request, *key, self.made)
            }
            Move::Settle { action, status, percent } => {
                let action = self.action_that(*action, |it| it.allowed().is_some())?;
                let caller = self.agents.iter().find(|it| it.agent == action.agent).copied()?;
                let amount = percent.zip(action.payment.as_ref());
                let amount = amount.map(|(percent, payment)| payment.amount * i64::from(percent) / 100);
                Settle { caller, action: action.id, status: *status, amount }.into()
            }
            Move::Release { action } => {
                let reason = Note::parse("the charge was reversed").expect("a note");
                ReleaseAction { by: By::Program, workspace, action: self.action(*action)?.id, reason }.into()
            }
            Move::Verify { action, percent, key } => {
                let action = self.action_that(*action, |it| it.allowed().is_some_and(|it| it.outcome.is_none()))?;
                show(&action, *percent, *key).into()
            }
            Move::Issuer { word, action, percent } => self.issued(workspace, *word, *action, *percent)?,
            Move::Decide { action, person, yes } => {
                let approval = self.action_that(*action, |it| matches!(it.state, State::Pending { .. }))?.approval?;
                let by = *self.people.get(person % self.people.len().max(1))?;
                let choice = if *yes { Choice::Approve } else { Choice::Deny };
                DecideApproval::new(by, approval, choice).into()
            }
            Move::Callback { action } => {
                let action = self.action(*action)?;
                let caller = self.agents.iter().find(|it| it.agent == action.agent).copied()?;
                let url = UrlText::parse("https://agent.example.com/hook").ok()?;
                RegisterCallback { caller, action: action.id, url }.into()
            }
            Move::Deliver { action, taken } => {
                let job = self.action(*action)?.callback.as_ref()?.id.into();
                let Some(taken) = taken else { return Some(ClaimDelivery { job }.into()) };
                let error = (!taken).then_some(Trouble::Answer);
                let tried = Tried { status: Some(200), error, ms: 1 };
                FinishDelivery { job, claim: 1, tried, wait_s: None, posted: None }.into()
            }
            Move::Settings { choice } => {
                ChangeSettings { workspace, by: By::Program, change: settings(*choice).into() }.into()
            }
            Move::Wake { action } => {
                let action = self.action(*action)?;
                Wake(action.approval.map_or(Key::Action(action.id), Key::Approval)).into()
            }
            Move::End { action } => EndApproval(self.action(*action)?.approval?).into(),
            Move::Sequence => Sequence { workspace, entries: self.waiting.clone() }.into(),
            _ => return self.other(workspace, step),
        })
    }

    /// The command that a move is which makes or changes agents and what they may do, or calls a model.
    fn other(&self, workspace: WorkspaceId, step: &Move) -> Option<Command> {
        let caller = |agent: usize| self.agents.get(agent % self.agents.len().max(1)).copied();
        Some(match step {
            Move::Freeze { agent } => freeze(workspace, caller(*agent)?).into(),
            Move::Remove { agent } => RemoveAgent { workspace, by: By::Program, agent: caller(*agent)?.agent }.into(),
            Move::Register { mandate } => register(workspace, *mandate, self.made).into(),
            Move::Grant { agent, mandate } => {
                GrantMandate::new(workspace, caller(*agent)?.agent, mandate_at(*mandate)).into()
            }
            Move::Revoke { agent, mandate } => {
                let agent = agent % self.agents.len().max(1);
                let own: Vec<MandateId> = self.grants.iter().filter(|it| it.0 == agent).map(|it| it.1).collect();
                let mandate = *own.get(mandate % own.len().max(1))?;
                RevokeMandate { workspace, by: By::Program, agent: caller(agent)?.agent, mandate }.into()
            }
            Move::Restart { agent, person } => {
                let person = person.and_then(|it| self.people.get(it % self.people.len().max(1)));
                let by = person.map_or(By::Program, |it| By::Person(*it));
                stops::restart(workspace, self.standing.to_restart(*agent)?, by).into()
            }
            Move::Fleet { all, first } => self.standing.freeze(workspace, *all, *first).into(),
            Move::Lift { hold, restart } => self.standing.lift(workspace, *hold, *restart)?.into(),
            Move::Change { mandate, choice } => {
                let (_, mandate) = self.grants.get(mandate % self.grants.len().max(1))?;
                stops::change(workspace, &**self.standing.mandate(*mandate)?, *choice)?.into()
            }
            Move::Admit { key, tokens, task } => {
                let is_own = |it: &&CallKey| (it.agent().is_none()) == key.is_multiple_of(2);
                let keys: Vec<&CallKey> = self.keys.iter().filter(is_own).collect();
                let key = CallKey::clone(keys.get((key / 2) % keys.len().max(1))?);
                calls::admit(key, *tokens, *task).into()
            }
            Move::Finish { call, percent } => {
                // The newest are the ones that run still.
                let call = self.calls.len().checked_sub(1 + call % self.calls.len().clamp(1, 8))?;
                calls::finish(self.calls.get(call)?, *percent).into()
            }
            Move::Pay { .. }
            | Move::Ask { .. }
            | Move::Settle { .. }
            | Move::Release { .. }
            | Move::Verify { .. }
            | Move::Issuer { .. }
            | Move::Decide { .. }
            | Move::Callback { .. }
            | Move::Deliver { .. }
            | Move::Settings { .. }
            | Move::Wake { .. }
            | Move::End { .. }
            | Move::Sequence => return None,
        })
    }

    fn issued(&self, workspace: WorkspaceId, word: Word, action: usize, percent: u8) -> Option<Command> {
        let Some(issuer) = self.issuer else { return Some(connect(workspace).into()) };
        let deed = word_of(word, &*self.action(action)?, percent)?;
        Some(hear(workspace, issuer, self.made, deed).into())
    }

    fn action(&self, action: usize) -> Option<Arc<Action>> {
        self.actions.get(action % self.actions.len().max(1)).cloned()
    }

    /// One of all actions, or, for every other number, of the newest that are so: most of the older are over.
    fn action_that(&self, action: usize, is_so: impl Fn(&Action) -> bool) -> Option<Arc<Action>> {
        let newest: Vec<&Arc<Action>> = self.actions.iter().rev().filter(|it| is_so(it)).take(6).collect();
        let one = newest.get(action / 2 % newest.len().max(1)).filter(|_| action.is_multiple_of(2));
        one.map(|it| Arc::clone(it)).or_else(|| self.action(action))
    }
}

/// A command that does nothing.
#[must_use]
pub fn nothing(workspace: WorkspaceId) -> Command {
    Wake(Key::Roster(workspace)).into()
}

/// A new agent with one of the mandates; `n` makes its key.
#[must_use]
pub fn register(workspace: WorkspaceId, mandate: usize, n: u64) -> RegisterAgent {
    let key = NewKey { digest: Digest::of(format!("key {n}")), prefix: "ask_00000000".into() };
    let name = Label::parse("Agent").expect("a label");
    let tier = if n.is_multiple_of(5) { Tier::Trusted } else { Tier::Standard };
    RegisterAgent { tier, mandates: vec![mandate_at(mandate)], ..RegisterAgent::new(workspace, name, key) }
}

/// The command that shows the receipt of `action`.
#[must_use]
pub fn show(action: &Action, percent: u8, key: Option<u8>) -> Verify {
    let charge = action.payment.as_ref().map(|payment| Charge {
        amount: Amount::new((payment.amount * i64::from(percent) / 100).max(1)).expect("an amount"),
        currency: payment.currency,
        domain: Some(payment.domain.clone()),
    });
    let body = Digest::of(format!("{} {charge:?}", action.id));
    let key = key.map(|key| Digest::of(format!("verifier {key}")));
    Verify { receipt: action.receipt(), digest: action.digest, charge, kind: None, key, body, signed_by: None }
}

/// The command that connects a card's issuer.
#[must_use]
pub fn connect(workspace: WorkspaceId) -> CreateIntegration {
    let secret = NewSecret { sealed: "sealed".into(), hint: "hint".into() };
    let (kind, config) = (IntegrationKind::Issuer, ConfigChange::default());
    CreateIntegration { by: By::Program, workspace, kind, secret, config }
}

/// What an issuer's word of an action asks for; nothing of a charge for what is no payment.
#[must_use]
pub fn word_of(word: Word, action: &Action, percent: u8) -> Option<Deed> {
    let paid = action.payment.as_ref();
    let amount = paid.map_or(0, |it| it.amount * i64::from(percent) / 100);
    Some(match word {
        Word::Charge => Deed::Charge(ChargeAsked {
            by: Cover::Action(action.id),
            amount: Amount::new(amount).ok()?,
            currency: paid?.currency,
            merchant: None,
        }),
        Word::Charged => Deed::Settle { action: action.id, amount },
        Word::Reversed => Deed::Reverse { action: action.id },
    })
}

/// The command that hears an issuer; `n` makes its request and its event.
#[must_use]
pub fn hear(workspace: WorkspaceId, issuer: IntegrationId, n: u64, deed: Deed) -> Receive {
    let slot = IntegrationSlot { workspace, kind: IntegrationKind::Issuer };
    let request = Received::request(slot, &[&n.to_be_bytes()]);
    let id = Some(Received::event(slot, issuer, &n.to_string(), ""));
    let event = Event { name: EventName::Known("authorization"), id, deed };
    let vouched = Vouched::Secret("sealed".into());
    Receive { slot, integration: issuer, vouched, request, kept: Span::minutes(15), event }
}

/// The command that stops an agent.
#[must_use]
pub fn freeze(workspace: WorkspaceId, caller: Caller) -> FreezeAgent {
    let reason = Note::parse("a test stops it").expect("a note");
    FreezeAgent { workspace, agent: caller.agent, by: By::Program, reason }
}

/// A request to pay one of the amounts to one of the merchants.
#[must_use]
pub fn pay(amount: usize, merchant: usize) -> Request {
    world::payment(AMOUNTS[amount % AMOUNTS.len()], "EUR", MERCHANTS[merchant % MERCHANTS.len()])
}

/// The command that asks the gate; `n` makes its salt.
#[must_use]
pub fn authorize(caller: Caller, request: Request, key: Option<u8>, n: u64) -> Command {
    let request = match key {
        Some(key) => request.keyed(world::key(&format!("key-{key}"))),
        None => request,
    };
    Authorize::new(caller, request, u128::from(n).to_be_bytes()).into()
}

fn ask(kind: usize, session: Option<u8>, untrusted: bool) -> Request {
    let kind = KINDS[kind % KINDS.len()];
    let mut request = world::request(kind);
    if let Some(session) = session {
        request = request.in_session(SessionId::parse(&format!("session-{session}")).expect("a session"));
    }
    if untrusted {
        let source = Source::parse("web").expect("a source");
        request = request.from_sources(vec![Declared { source, detail: None }]);
    }
    request
}

fn mandate_at(choice: usize) -> Content {
    let all = mandates();
    Content::Whole(Box::new(all[choice % all.len()].clone()))
}

/// The ids of the actions that a reply tells of.
#[must_use]
pub fn action_of(reply: &Reply) -> Option<ActionId> {
    if let Reply::Action(view) = reply { Some(view.action.id) } else { None }
}
