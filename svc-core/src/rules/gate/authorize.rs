//! An agent asks before it acts.
//!
//! The decision, what it reserves, the person it asks, the record of it and the idempotency key are one commit. A stopped
//! agent is told so before anything else is looked at, its idempotency key included.

use std::sync::Arc;

use super::caller::{Caller, caller_agent};
use super::evaluate::{Charge, Evaluation, Facts, PayeeFacts, evaluate};
use super::hold::{Held, held_by};
use super::record::ActionRecord;
use super::{facts, payee, posting, velocity};
use crate::refusal::{FieldError, Refusal};
use crate::rules::edge::tell;
use crate::rules::read::{View, view, view_of};
use crate::state::evidence::Actor;
use crate::state::gate::{
    Action, Activity, Agent, Allowed, Approval, ApprovalState, ApprovalSubject, AskedAction, ClientSession, Code,
    DecidedBy, Effect, Mandate, Origin, Payee, Payload, REPLAY_KEPT, Reason, Replay, Request, State, Verb,
};
use crate::state::gateway::Routing;
use crate::state::people::{Principal, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::{Digest, PayeeId, ReplayId};
use crate::value::id::ActionId;
use crate::value::text::Label;

/// A request to act, with everything hashed that has to be.
#[derive(Clone, Debug)]
pub struct Authorize {
    caller: Caller,
    request: Arc<Request>,
    salt: [u8; 16],
    digest: Digest,
    fingerprint: Digest,
    faults: Arc<[FieldError]>,
    committed: Arc<[(&'static str, String)]>,
    payee: Option<PayeeId>,
    replay: Option<ReplayId>,
}

impl Authorize {
    /// `request` by `caller`; `salt` is sixteen fresh random bytes. Hashes what has to be hashed, so build it off the lane.
    #[must_use]
    pub fn new(caller: Caller, request: Request, salt: [u8; 16]) -> Self {
        let digest = request.digest(caller.agent, &crate::state::gate::salt_text(&salt));
        let committed = request.commitments(&salt).into();
        let (fingerprint, faults) = (request.fingerprint(), request.faults().into());
        let payee = request.payment.as_ref().map(|it| payee::id(caller.agent, it));
        let replay = request.key.as_ref().map(|it| Replay::id_of(caller.agent, it));
        Self { caller, request: Arc::new(request), salt, digest, fingerprint, faults, committed, payee, replay }
    }

    /// What is asked.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Who asks.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }
}

/// Decides an action.
///
/// # Errors
/// `invalid_api_key`, `agent_not_found`, `invalid_request` for what is none, and `idempotency_conflict` where the key was used for another request.
pub fn authorize(scope: &mut Scope<'_>, asked: &Authorize) -> Result<View, Halt> {
    match decide(scope, asked) {
        // What is missing is asked for together. Where nothing is, nothing is looked up twice.
        Err(Halt::Load) => {
            let _ = prefetch(scope, asked);
            Err(Halt::Load)
        }
        decided => decided,
    }
}

fn decide(scope: &mut Scope<'_>, asked: &Authorize) -> Result<View, Halt> {
    let Authorize { caller, request, .. } = asked;
    // Few agents are asked about often, and most payees and keys seldom: whoever lacks one of these learns it before all else is
    // looked at in vain.
    for key in [asked.payee.map(Payee::key), asked.replay.map(Replay::key)].into_iter().flatten() {
        scope.want(&[key])?;
    }
    let agent = caller_agent(scope, caller)?;
    // Who reads bodies told all of this already; a program that asks has nobody else to be told by.
    if !asked.faults.is_empty() {
        return Err(Refusal::invalid_request(asked.faults.to_vec()).into());
    }
    let workspace = scope.get::<Workspace>(caller.workspace)?.ok_or_else(Refusal::internal)?;
    let held = held_by(scope, &workspace, agent.id)?;
    if held.is_some() || !agent.is_active() {
        return refuse_stopped(scope, asked, &agent, &workspace, held);
    }
    if let Some(first) = replay(scope, asked, &agent)? {
        return Ok(View { replayed: true, ..view(scope, first)? });
    }
    let Weighed { origin, verdict, stored, payee } = weigh(scope, &agent, &workspace, request, asked.payee)?;
    let decided = Decided { asked, agent: &agent, workspace: &workspace, origin, verdict };
    decided.write(scope, Activity::clone(&stored), payee)
}

/// What a request of an agent that nothing stops comes to, and the rows that it is written to.
pub(super) struct Weighed {
    origin: Origin,
    pub(super) verdict: Evaluation,
    stored: Arc<Activity>,
    payee: Option<Payee>,
}

/// Weighs a request by all that stands now. `payee` is the id of the row of whom it pays, where that is at hand.
pub(super) fn weigh(
    scope: &mut Scope<'_>,
    agent: &Agent,
    workspace: &Workspace,
    request: &Request,
    payee: Option<PayeeId>,
) -> Result<Weighed, Halt> {
    let (mandates, unreadable) = mandates(scope, agent)?;
    let stored = scope.get::<Activity>(agent.id)?.ok_or_else(Refusal::internal)?;
    let (origin, session_conflict) = facts::origin(scope, workspace, agent, &stored, request)?;
    let full = velocity::full_line(scope, &stored, request.kind.is_tool(), &workspace.settings)?;
    let (paid, payee) = match &request.payment {
        Some(payment) => {
            let id = payee.unwrap_or_else(|| payee::id(agent.id, payment));
            let (row, facts) = payee::read(scope, id, payment.amount)?;
            (facts, Some(row))
        }
        None => (PayeeFacts::default(), None),
    };
    let verdict = evaluate(&Facts {
        now: scope.now(),
        request,
        settings: &workspace.settings,
        tier: agent.tier,
        mandates: &mandates,
        unreadable,
        activity: &stored,
        waiting: stored.waiting(agent.epoch),
        velocity: full,
        payee: paid,
        session_conflict,
        origin: &origin,
        tool_is_sink: tool_is_sink(scope, workspace, request)?,
    });
    Ok(Weighed { origin, verdict, stored, payee })
}

/// Asks for everything that is known to be needed in one round.
fn prefetch(scope: &mut Scope<'_>, asked: &Authorize) -> Result<(), Halt> {
    let Authorize { caller, request, .. } = asked;
    let mut keys = vec![Workspace::key(caller.workspace), Agent::key(caller.agent), Activity::key(caller.agent)];
    keys.extend(asked.replay.map(Replay::key));
    keys.extend(request.session.as_ref().map(|it| ClientSession::key(ClientSession::id_of(caller.workspace, it))));
    keys.extend(request.tool.as_ref().map(|_| Routing::key(caller.workspace)));
    keys.extend(asked.payee.map(Payee::key));
    scope.want(&keys)
}

/// Whether the workspace's tool table marks the action's tool, by its own name or, where it is a server's, by the name that
/// its results are noted under.
pub(super) fn tool_is_sink(scope: &mut Scope<'_>, workspace: &Workspace, request: &Request) -> Result<bool, Halt> {
    let Some(tool) = &request.tool else { return Ok(false) };
    let routing = scope.get::<Routing>(workspace.id)?.ok_or_else(Refusal::internal)?;
    let server = tool.tool.server.as_ref().map(Label::as_str);
    Ok(tool.tool.name.as_ref().is_some_and(|it| routing.is_sink(server, it.as_str())))
}

/// The versions in force, in the order of their ids, and whether one of them is not to be had: it could be a deny list.
pub(super) fn mandates(scope: &mut Scope<'_>, agent: &Agent) -> Result<(Vec<Arc<Mandate>>, bool), Halt> {
    let ids: Vec<_> = agent.mandates_in_force(scope.now()).collect();
    let mut found = Vec::with_capacity(ids.len());
    for id in &ids {
        match scope.get::<Mandate>(*id) {
            Ok(mandate) => found.extend(mandate),
            Err(halt) => {
                scope.want(&ids.iter().map(|id| Mandate::key(*id)).collect::<Vec<_>>())?;
                return Err(halt);
            }
        }
    }
    let missing = found.len() < ids.len();
    Ok((found, missing))
}

/// The action that this idempotency key made, while the key is kept.
fn replay(scope: &mut Scope<'_>, asked: &Authorize, agent: &Agent) -> Result<Option<Arc<Action>>, Halt> {
    let Some(replay) = asked.replay else { return Ok(None) };
    let Some(known) = scope.get::<Replay>(replay)? else { return Ok(None) };
    let first = scope.get::<Action>(known.action)?.ok_or_else(Refusal::internal)?;
    let now = scope.now();
    if first.ended_at(agent, None, now).is_some_and(|at| now.since(at) > REPLAY_KEPT) {
        return Ok(None);
    }
    if known.body != Some(asked.fingerprint) {
        return Err(Refusal::idempotency_conflict().into());
    }
    Ok(Some(first))
}

/// The deny of a stopped agent: recorded, and not kept under the idempotency key.
fn refuse_stopped(
    scope: &mut Scope<'_>,
    asked: &Authorize,
    agent: &Arc<Agent>,
    workspace: &Workspace,
    held: Option<Held>,
) -> Result<View, Halt> {
    let declared = asked.request.provenance.clone();
    let effective = crate::state::gate::provenance::effective(&declared, &[]);
    let verdict = crate::state::gate::provenance::verdict(&declared, &[]);
    let origin = Origin { declared, observed: Vec::new(), effective, verdict, account: asked.request.account };
    let reasons = vec![Reason::new(Code::AgentFrozen, Effect::Deny)];
    let verdict = Evaluation { effect: Effect::Deny, reasons, signals: Vec::new(), charge: None };
    let mut action = Decided { asked, agent, workspace, origin, verdict }.action(scope);
    action.hold = held.map(|it| it.id);
    action.state = State::Denied { at: scope.now(), by: DecidedBy::Freeze };
    let record = record(asked, agent, &mut action, "action.denied", Verb::Deny);
    action.evidence = scope.append(agent.workspace, record);
    payload(scope, asked, action.id);
    let action = Arc::new(action);
    scope.put_shared(&action);
    view(scope, action)
}

fn record(
    asked: &Authorize,
    agent: &Agent,
    action: &mut Action,
    kind: &'static str,
    verb: Verb,
) -> crate::state::evidence::Fact {
    let status = match verb {
        Verb::Allow => crate::state::gate::Status::Allowed,
        Verb::Ask => crate::state::gate::Status::Pending,
        Verb::Deny => crate::state::gate::Status::Denied,
    };
    ActionRecord { kind, actor: Actor::Agent(agent.id), action, agent, verb, status }.fact(&asked.committed)
}

/// Stores what the action carried that nothing rewrites, where it carried something.
fn payload(scope: &mut Scope<'_>, asked: &Authorize, action: ActionId) {
    let tool_input = asked.request.tool.as_ref().and_then(|it| it.input.clone()).map(|it| it.0);
    let details = asked.request.details.as_ref().map(|it| it.canonical.clone());
    if tool_input.is_some() || details.is_some() {
        scope.put(Payload { action, tool_input, details });
    }
}

/// A decision on its way into rows.
struct Decided<'a> {
    asked: &'a Authorize,
    agent: &'a Arc<Agent>,
    workspace: &'a Workspace,
    origin: Origin,
    verdict: Evaluation,
}

impl Decided<'_> {
    fn write(self, scope: &mut Scope<'_>, mut activity: Activity, payee: Option<Payee>) -> Result<View, Halt> {
        let (asked, agent, now) = (self.asked, self.agent, scope.now());
        let request = &*asked.request;
        let mut action = self.action(scope);
        let (kind, verb) = match self.verdict.effect {
            Effect::Info => ("action.allowed", Verb::Allow),
            Effect::Ask => ("action.asked", Verb::Ask),
            Effect::Deny => ("action.denied", Verb::Deny),
        };
        if verb == Verb::Deny {
            activity.deny(now);
        } else {
            velocity::note(scope, &mut activity, request.kind.is_tool())?;
            if let (Some(payee), Some(payment)) = (payee, &request.payment) {
                action.payee = Some(payee::note(scope, payee, payment.amount)?);
            }
            if let Some(charge) = self.verdict.charge.as_ref() {
                action.mandate = Some(charge.mandate.id);
                if !charge.beyond {
                    let settings = &self.workspace.settings;
                    action.reservation = posting::reserve(&mut activity, &charge.mandate, request, settings, now);
                }
            }
        }
        action.state = self.state(verb, now);
        let asked_of = (verb == Verb::Ask).then(|| self.approval(scope, &action));
        if let Some(approval) = asked_of {
            scope.want(&[Principal::key(agent.principal)])?;
            activity.begin_wait(agent.epoch);
            action.approval = Some(approval.id);
            let approval = tell::asked_action(scope, self.workspace, (&action, request), approval, &mut activity)?;
            scope.put(approval);
        }
        let fact = record(asked, agent, &mut action, kind, verb);
        action.evidence = scope.append(agent.workspace, fact);
        if let Some(id) = asked.replay {
            scope.put(Replay { id, body: Some(asked.fingerprint), action: action.id });
            action.replay = Some(id);
        }
        payload(scope, asked, action.id);
        if action.reasons.iter().any(|it| it.code == Code::SessionConflict) {
            tell::conflict(scope, self.workspace, &action, &mut activity)?;
        }
        scope.put(activity);
        let action = Arc::new(action);
        scope.put_shared(&action);
        view_of(scope, action, Arc::clone(agent), self.workspace)
    }

    /// The action before it has a state and a record.
    fn action(&self, scope: &mut Scope<'_>) -> Action {
        let (asked, now) = (self.asked, scope.now());
        Action {
            provenance: self.origin.clone(),
            reasons: self.verdict.reasons.clone(),
            signals: self.verdict.signals.clone(),
            ..asked.request.action(scope.fresh(), self.agent, asked.salt, asked.digest, now)
        }
    }

    fn state(&self, verb: Verb, now: Timestamp) -> State {
        let settings = &self.workspace.settings;
        match verb {
            Verb::Allow => State::Allowed(Allowed::new(now, DecidedBy::Policy, settings.receipt_end(now))),
            Verb::Ask => State::Pending { expires_at: now.plus(settings.approval_life()) },
            Verb::Deny => State::Denied { at: now, by: DecidedBy::Policy },
        }
    }

    fn approval(&self, scope: &mut Scope<'_>, action: &Action) -> Approval {
        let (settings, now) = (&self.workspace.settings, scope.now());
        let beyond = self.verdict.charge.as_ref().is_some_and(|Charge { beyond, .. }| *beyond);
        let is_limit = |it: &&Reason| matches!(it.code, Code::OverLimit | Code::OverPeriodLimit | Code::OverCountLimit);
        let charged = self.verdict.charge.as_ref().map(|it| it.mandate.id.mandate);
        let exceeded = action.reasons.iter().filter(is_limit).filter(|it| beyond && it.mandate == charged);
        Approval {
            id: scope.fresh(),
            workspace: action.workspace,
            subject: ApprovalSubject::Action(AskedAction {
                agent: action.agent,
                action: action.id,
                digest: action.digest,
                exceptions: exceeded.cloned().collect(),
                epoch: action.epoch,
                topic: None,
            }),
            created_at: now,
            expires_at: now.plus(settings.approval_life()),
            needed: settings.persons_needed(action.payment.as_ref().map(|it| (it.currency, it.amount))),
            approvals: Vec::new(),
            state: ApprovalState::Waiting,
            posted: Vec::new(),
        }
    }
}
