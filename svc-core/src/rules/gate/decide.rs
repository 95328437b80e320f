//! A person decides what waits. One step looks at everything again: whether it still waits, who decides and what their role
//! is now, whether the agent may act, and what has been forbidden since. A person may let an action pass beyond limits,
//! never past a deny list.

use std::sync::Arc;

use super::asked::{Question, close, own_approval, question, reach_to, readable, standing_consents};
use super::decide_other::decide_other;
use super::evaluate::{denied, is_outside, tool_name};
use super::fleet::Everyone;
use super::freeze::{End, end_waiting};
use super::hold::held_by;
use super::record::ActionRecord;
use super::would::request_again;
use super::{authorize, posting};
use crate::refusal::Refusal;
use crate::rules::edge::{notify, tell};
use crate::rules::people::by::{By, Person, member};
use crate::rules::people::members::MailedLink;
use crate::rules::people::second_factor::{FactorShown, show_again};
use crate::state::evidence::Actor;
use crate::state::gate::{
    Action, Activity, Agent, Allowed, Approval, ApprovalState, ApprovalSubject, AskedAction, Code, Consent, DecidedBy,
    Effect, Mandate, Reason, Reservation, State, Status, Verb, Via,
};
use crate::state::people::{Outside, Principal, Right, Session, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::digest::Digest;
use crate::value::id::{ApprovalId, PrincipalId, WorkspaceId};
use crate::value::text::Note;
use crate::value::words::words;

/// A person's word on an approval. Over `svc_store::Gate` use `gate.decide`, which looks for `everyone` and ends what a lift has to.
#[derive(Clone, Debug)]
pub struct DecideApproval {
    /// Whose.
    pub by: Person,
    /// On which approval.
    pub approval: ApprovalId,
    /// Yes or no.
    pub choice: Choice,
    /// Why, where they say so.
    pub note: Option<Note>,
    /// The digest of what they saw, where they say so.
    pub digest: Option<Digest>,
    /// The second factor, where they show it again.
    pub factor: Option<FactorShown>,
    /// From where.
    pub via: Via,
    /// Every agent of the workspace as it was looked through a moment ago: what a yes to a freeze of all of them needs, and
    /// nothing else reads.
    pub everyone: Option<Everyone>,
    /// A link for whoever a yes invites, where this server mails: what a yes to a change among owners needs, and nothing else reads.
    pub mailed: Option<MailedLink>,
}

impl DecideApproval {
    /// A word from the console with nothing beside it.
    #[must_use]
    pub const fn new(by: Person, approval: ApprovalId, choice: Choice) -> Self {
        let (note, digest, factor, via) = (None, None, None, Via::Console);
        Self { by, approval, choice, note, digest, factor, via, everyone: None, mailed: None }
    }
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It may be done.
    Approve,
    /// It may not.
    Deny,
}

words! { Choice;
    Approve "approve";
    Deny "deny";
}

/// Decides an approval, or adds the first of two persons' yes.
///
/// # Errors
/// `forbidden` where the role decides none, `not_found`, `not_allowed` with the outcome where it no longer waits,
/// `selection_changed` where another digest was seen, `second_person_required`, `forbidden` where the second factor has to be
/// shown again, `invalid_request` on `code` where the one that was shown is wrong.
pub fn decide_approval(scope: &mut Scope<'_>, asked: &DecideApproval) -> Result<Question, Halt> {
    let workspace = asked.by.workspace;
    let by = By::Person(asked.by);
    scope.want(&[Approval::key(asked.approval), Workspace::key(workspace), asked.by.voucher()])?;
    let reach = reach_to(scope, &by, workspace, Right::DecideApprovals, asked.approval)?;
    let approval = own_approval(scope, workspace, asked.approval)?;
    readable(scope, &by, reach, &approval)?;
    match &approval.subject {
        ApprovalSubject::Action(of) => decide_action(scope, asked, &approval, of)?,
        ApprovalSubject::Freeze(_)
        | ApprovalSubject::HoldLift(_)
        | ApprovalSubject::Owner(_)
        | ApprovalSubject::Budget(_) => {
            decide_other(scope, asked, &approval)?;
        }
    }
    let decided = own_approval(scope, workspace, asked.approval)?;
    question(scope, &by, decided)
}

/// What a decision on an action rests on.
struct Case<'a> {
    asked: &'a DecideApproval,
    approval: &'a Approval,
    of: &'a AskedAction,
    agent: Arc<Agent>,
    action: Arc<Action>,
    workspace: Arc<Workspace>,
}

fn decide_action(
    scope: &mut Scope<'_>,
    asked: &DecideApproval,
    approval: &Approval,
    of: &AskedAction,
) -> Result<(), Halt> {
    let (agent, action, workspace) = still_waits(scope, approval, of)?;
    if asked.digest.is_some_and(|it| it != of.digest) {
        return Err(Refusal::digest_changed(1).into());
    }
    let case = Case { asked, approval, of, agent, action, workspace };
    match asked.choice {
        Choice::Approve => case.approve(scope),
        Choice::Deny => case.deny(scope),
    }
}

/// Whose action waits, and in which workspace.
type Waits = (Arc<Agent>, Arc<Action>, Arc<Workspace>);

/// What an approval is about, while it waits for a person.
fn still_waits(scope: &mut Scope<'_>, approval: &Approval, of: &AskedAction) -> Result<Waits, Halt> {
    scope.want(&[Agent::key(of.agent), Action::key(of.action), Activity::key(of.agent)])?;
    let agent = scope.get::<Agent>(of.agent)?.ok_or_else(Refusal::internal)?;
    let action = scope.get::<Action>(of.action)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(approval.workspace)?.ok_or_else(Refusal::internal)?;
    let held = held_by(scope, &workspace, agent.id)?;
    let status = action.status(&agent, held.map(|it| it.at), scope.now());
    match outcome(approval, status) {
        Some(outcome) => Err(Refusal::not_allowed(outcome).into()),
        None => Ok((agent, action, workspace)),
    }
}

/// Whether a person's word on an action would be heard: what every decision on one checks first.
///
/// # Errors
/// `not_found` where the workspace has no such approval of an action, `not_allowed` where it no longer waits.
pub fn check_waits(scope: &mut Scope<'_>, workspace: WorkspaceId, approval: ApprovalId) -> Result<(), Halt> {
    let approval = own_approval(scope, workspace, approval)?;
    let of = approval.asked_action().ok_or_else(Refusal::not_found)?;
    still_waits(scope, &approval, of).map(drop)
}

/// How an approval ended, if it has.
const fn outcome(approval: &Approval, status: Status) -> Option<&'static str> {
    match (&approval.state, status) {
        (ApprovalState::Waiting, Status::Pending) => None,
        (ApprovalState::Approved { .. }, _) => Some("approved"),
        (ApprovalState::Expired { .. }, _) | (ApprovalState::Waiting, Status::Expired) => Some("expired"),
        (ApprovalState::Denied { .. } | ApprovalState::Waiting, _) => Some("denied"),
    }
}

impl Case<'_> {
    fn actor(&self) -> Actor {
        Actor::Person(self.asked.by.principal)
    }

    /// One no is enough.
    fn deny(&self, scope: &mut Scope<'_>) -> Result<(), Halt> {
        let (at, by) = (scope.now(), self.asked.by.principal);
        let state = ApprovalState::Denied { at, by: Some(by), note: self.asked.note.clone() };
        let end = End {
            action: self.of.action,
            state: State::Denied { at, by: DecidedBy::Person(by) },
            reasons: vec![Reason::new(Code::PersonDenied, Effect::Deny)],
            kind: "action.person_denied",
            actor: self.actor(),
            note: self.asked.note.as_ref(),
            more: vec![self.via()],
        };
        end_waiting(scope, &self.agent, self.approval.clone().ended(state), end)
    }

    fn approve(&self, scope: &mut Scope<'_>) -> Result<(), Halt> {
        let forbidden = forbidden(scope, &self.workspace, &self.agent, &self.action)?;
        if !forbidden.is_empty() {
            return self.end_by_policy(scope, forbidden);
        }
        let payment = self.action.payment.as_ref().map(|it| (it.currency, it.amount));
        let needed = self.workspace.settings.persons_needed(payment);
        let (principal, _) = member(scope, &self.asked.by)?;
        let mut approvals = standing_consents(scope, self.approval, self.of)?;
        let first = approvals.first().cloned();
        let consent = consent(scope, &self.asked.by, self.asked.via, self.asked.note.as_ref())?;
        if let Some(first) = first.as_ref().filter(|_| needed > 1)
            && (first.is_of_one_with(&consent) || close(scope, self.approval.workspace, first, &principal)?)
        {
            return Err(Refusal::second_person_required(self.approval.workspace, self.approval.id).into());
        }
        if self.workspace.settings.needs_second_factor(payment) {
            show_again(scope, self.asked.by.account, self.asked.factor.as_ref())?;
        }
        approvals.push(consent);
        let approval = Approval { needed, approvals, ..self.approval.clone() };
        if approval.approvals.len() < usize::from(needed) {
            self.first_of_two(scope, approval);
            return Ok(());
        }
        self.allow(scope, approval, first.map(|_| &*principal))
    }

    fn end_by_policy(&self, scope: &mut Scope<'_>, reasons: Vec<Reason>) -> Result<(), Halt> {
        let at = scope.now();
        let state = ApprovalState::Denied { at, by: None, note: None };
        let end = End {
            action: self.of.action,
            state: State::Denied { at, by: DecidedBy::Policy },
            reasons,
            kind: "action.denied",
            actor: Actor::Policy,
            note: None,
            more: vec![("approver", quoted(self.asked.by.principal))],
        };
        end_waiting(scope, &self.agent, self.approval.clone().ended(state), end)
    }

    /// The first of two has agreed: it waits on.
    fn first_of_two(&self, scope: &mut Scope<'_>, approval: Approval) {
        let mut action = Action::clone(&self.action);
        let more = [self.via(), ("needed", approval.needed.to_string())];
        let record = ActionRecord {
            kind: "action.consented",
            actor: self.actor(),
            action: &action,
            agent: &self.agent,
            verb: Verb::Ask,
            status: Status::Pending,
        };
        action.evidence = self.append(scope, record, &more);
        scope.put(approval);
        scope.put(action);
    }

    /// The action is allowed from now on; `second` is who agreed after another.
    fn allow(&self, scope: &mut Scope<'_>, approval: Approval, second: Option<&Principal>) -> Result<(), Halt> {
        let now = scope.now();
        let stored = scope.get::<Activity>(self.agent.id)?.ok_or_else(Refusal::internal)?;
        let mut activity = Activity::clone(&stored);
        activity.end_wait(self.action.epoch);
        let mut action = Action::clone(&self.action);
        if action.reservation.is_none() {
            action.reservation = self.exceed(scope, &mut activity)?;
        }
        let by = DecidedBy::Person(self.asked.by.principal);
        action.state = State::Allowed(Allowed::new(now, by, self.workspace.settings.receipt_end(now)));
        let mut more = vec![self.via()];
        if let Some(second) = second {
            let first = approval.approvals.first().map(|it| it.by).ok_or_else(Refusal::internal)?;
            let other = scope.get::<Principal>(first)?.ok_or_else(Refusal::internal)?;
            more.push(("firstBy", quoted(first)));
            more.push(("firstInvitedBy", raiser(&other, second.id)));
            more.push(("secondInvitedBy", raiser(second, first)));
        }
        let record = ActionRecord {
            kind: "action.approved",
            actor: self.actor(),
            action: &action,
            agent: &self.agent,
            verb: Verb::Allow,
            status: Status::Allowed,
        };
        let evidence = self.append(scope, record, &more);
        action.evidence = evidence;
        notify::decided(scope, &action)?;
        tell::ended(scope, &self.agent, &approval)?;
        scope.put(activity);
        scope.put(approval.ended(ApprovalState::Approved { at: now }));
        scope.put(action);
        Ok(())
    }

    /// What passes beyond the limits of the mandate that was charged, kept apart from them.
    fn exceed(&self, scope: &mut Scope<'_>, activity: &mut Activity) -> Result<Option<Reservation>, Halt> {
        let Some(charged) = self.action.mandate.filter(|_| !self.of.exceptions.is_empty()) else { return Ok(None) };
        let mandate = scope.get::<Mandate>(charged)?.ok_or_else(Refusal::internal)?;
        Ok(posting::exceed(activity, &mandate, &self.action, &self.workspace.settings, scope.now()))
    }

    fn append(
        &self,
        scope: &mut Scope<'_>,
        record: ActionRecord<'_>,
        more: &[(&'static str, String)],
    ) -> crate::value::id::EvidenceId {
        let note = self.asked.note.as_ref().map(|it| ("note", it.as_str()));
        scope.append_with(self.agent.workspace, record.fact(more), note.as_slice())
    }

    fn via(&self) -> (&'static str, String) {
        ("via", quoted(self.asked.via.as_str()))
    }
}

/// What is in force now and forbids an action of `agent`'s: entries of deny lists, a revoked mandate, `outsideMandate` that is `deny`
/// where the mandates, as they were or as they are, do not cover it. Empty where nothing does.
///
/// # Errors
/// `internal` where a row that is always there is not.
pub(super) fn forbidden(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    agent: &Agent,
    action: &Action,
) -> Result<Vec<Reason>, Halt> {
    let (mandates, unreadable) = authorize::mandates(scope, agent)?;
    let mut reasons = denied(&mandates, action.payment.as_ref(), action.tool.as_ref().and_then(tool_name));
    if unreadable {
        reasons.push(Reason::new(Code::EvaluationError, Effect::Deny));
    }
    let gone = |charged| !agent.mandates.iter().any(|it| it.id == charged);
    let revoked = action.mandate.map(|it| it.mandate).filter(|it| gone(*it));
    let outside = workspace.settings.outside_mandate == Outside::Deny && lies_outside(scope, &mandates, action)?;
    if revoked.is_some() || outside || !reasons.is_empty() {
        let changed = Reason { mandate: revoked, ..Reason::new(Code::PolicyChanged, Effect::Deny) };
        reasons.insert(0, if outside { changed.about("outsideMandate") } else { changed });
    }
    Ok(reasons)
}

/// Whether an action was outside of its agent's mandates when it was asked, or is outside of those in force now: one may have been
/// paused or narrowed while it waited.
fn lies_outside(scope: &mut Scope<'_>, mandates: &[Arc<Mandate>], action: &Action) -> Result<bool, Halt> {
    if action.reasons.iter().any(|it| it.effect == Effect::Ask && it.code.is_outside()) {
        return Ok(true);
    }
    let request = request_again(scope, action)?;
    Ok(is_outside(mandates, &request))
}

/// Who agrees, when and from where.
///
/// # Errors
/// `unauthenticated` where the session is gone.
pub(in crate::rules) fn consent(
    scope: &mut Scope<'_>,
    by: &Person,
    via: Via,
    note: Option<&Note>,
) -> Result<Consent, Halt> {
    let session = match by.session() {
        Some(session) => Some(scope.get::<Session>(session)?.ok_or_else(Refusal::unauthenticated)?.session),
        None => None,
    };
    Ok(Consent { by: by.principal, account: by.account, session, via, at: scope.now(), note: note.cloned() })
}

/// Who made a person what they are: the other of the two who agreed, where they did so, and else who did last. Whoever raised
/// them since hides nobody.
fn raiser(person: &Principal, other: PrincipalId) -> String {
    let raised = person.membership().map(|it| it.raised.as_slice()).unwrap_or_default();
    let found = raised.iter().find(|(by, _)| *by == other).or_else(|| raised.last());
    found.map_or_else(|| "null".to_owned(), |(by, _)| quoted(by))
}

fn quoted(text: impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}
