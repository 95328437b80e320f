//! A person decides what is about no action: a freeze past a ceiling, the lift of a hold, an owner's coming and going, more of a
//! budget. What was agreed to happens in the commit that agrees.

use super::decide::{Choice, DecideApproval, consent};
use super::fleet::freeze_asked;
use super::lift::lift_asked;
use crate::refusal::Refusal;
use crate::rules::gateway::budgets::raises;
use crate::rules::gateway::raising::raise_asked;
use crate::rules::people::applications::settle_asked;
use crate::rules::people::by::member;
use crate::rules::people::owners::change_asked;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, Consent};
use crate::state::people::{Principal, Role, Workspace};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::Object;
use crate::value::id::{PrincipalId, WorkspaceId};

/// Decides an approval of another kind than an action's.
///
/// # Errors
/// `forbidden`, `not_allowed` with the outcome where it no longer waits, `selection_changed` where another digest was seen,
/// `second_owner_required` where the first owner agrees with themselves, or twice.
pub(super) fn decide_other(scope: &mut Scope<'_>, asked: &DecideApproval, approval: &Approval) -> Result<(), Halt> {
    let now = scope.now();
    if let Some(outcome) = outcome(approval, now >= approval.expires_at) {
        return Err(Refusal::not_allowed(outcome).into());
    }
    let first = match &approval.subject {
        ApprovalSubject::Action(_) => return Err(Refusal::internal().into()),
        ApprovalSubject::Freeze(of) if asked.digest.is_some_and(|it| it != of.digest) => {
            return Err(Refusal::digest_changed(of.members.count).into());
        }
        ApprovalSubject::Freeze(_) => None,
        // Whoever has seen a digest has seen another question: these have none.
        ApprovalSubject::HoldLift(_) | ApprovalSubject::Owner(_) | ApprovalSubject::Budget(_)
            if asked.digest.is_some() =>
        {
            return Err(Refusal::digest_changed(1).into());
        }
        ApprovalSubject::HoldLift(of) => Some(of.by),
        ApprovalSubject::Owner(of) => Some(of.by),
        ApprovalSubject::Budget(of) if !raises(scope, &asked.by, of.budget)? => {
            return Err(Refusal::forbidden("the budget's owner, an owner or an admin decides that").into());
        }
        ApprovalSubject::Budget(_) => None,
    };
    if let Some(first) = first {
        second_owner(scope, asked, approval, first)?;
    }
    match asked.choice {
        Choice::Deny => {
            let state = ApprovalState::Denied { at: now, by: Some(asked.by.principal), note: asked.note.clone() };
            record(scope, asked, approval, "approval.denied");
            scope.put(approval.clone().ended(state));
            settle_asked(scope, approval, asked.by.principal, Err(asked.note.as_ref()))
        }
        Choice::Approve => {
            let agreed = agreed(scope, asked, approval)?;
            if agreed.approvals.len() < usize::from(agreed.needed) {
                record(scope, asked, approval, "approval.consented");
                scope.put(agreed);
                return Ok(());
            }
            record(scope, asked, approval, "approval.approved");
            scope.put(agreed.ended(ApprovalState::Approved { at: now }));
            act(scope, asked, approval)
        }
    }
}

/// The approval with this person's yes beside those that count still.
///
/// # Errors
/// `second_owner_required` where their yes is among them already.
fn agreed(scope: &mut Scope<'_>, asked: &DecideApproval, approval: &Approval) -> Result<Approval, Halt> {
    let consent = consent(scope, &asked.by, asked.via, asked.note.as_ref())?;
    let mut agreed = approval.clone();
    if let ApprovalSubject::HoldLift(of) = &approval.subject {
        agreed.needed = owners_needed(scope, approval.workspace, (of.by, approval.created_at))?;
        agreed.approvals = owners_consents(scope, approval)?;
    }
    if agreed.approvals.iter().any(|it| it.is_of_one_with(&consent)) {
        return Err(Refusal::second_owner_required(approval.workspace, approval.id).into());
    }
    agreed.approvals.push(consent);
    Ok(agreed)
}

/// Whose word it is, and since when.
type Word = (PrincipalId, Timestamp);

/// How many owners have to agree that a hold over every agent is lifted which `first` asked to lift. An owner's asking is the
/// first of two; anybody else's is none, so that an owner with an admin of their making lifts no hold alone.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn owners_needed(scope: &mut Scope<'_>, workspace: WorkspaceId, first: Word) -> Result<u8, Halt> {
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    Ok(if row.owners.len() > 1 && !is_owners(scope, workspace, first)? { 2 } else { 1 })
}

/// Whether a word is an owner's: of one who is an owner now and has been ever since, and was not shut out meanwhile.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn is_owners(scope: &mut Scope<'_>, workspace: WorkspaceId, (by, at): Word) -> Result<bool, Halt> {
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    Ok(workspace.owners.contains(&by) && scope.get::<Principal>(by)?.is_some_and(|it| it.is_owner_since(at)))
}

/// The consents of those who are owners still, and have been since.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn owners_consents(scope: &mut Scope<'_>, approval: &Approval) -> Result<Vec<Consent>, Halt> {
    scope.want(&approval.approvals.iter().map(|it| Principal::key(it.by)).collect::<Vec<_>>())?;
    let mut standing = Vec::with_capacity(approval.approvals.len());
    for consent in &approval.approvals {
        if is_owners(scope, approval.workspace, (consent.by, consent.at))? {
            standing.push(consent.clone());
        }
    }
    Ok(standing)
}

/// Does what was agreed to.
fn act(scope: &mut Scope<'_>, asked: &DecideApproval, approval: &Approval) -> Result<(), Halt> {
    let by = asked.by.principal;
    match &approval.subject {
        ApprovalSubject::Freeze(of) => {
            let workspace = scope.get::<Workspace>(approval.workspace)?.ok_or_else(Refusal::internal)?;
            freeze_asked(scope, &workspace, of, asked.everyone.as_ref(), by).map(drop)
        }
        ApprovalSubject::HoldLift(of) => lift_asked(scope, approval, of, by).map(drop),
        ApprovalSubject::Owner(of) => {
            change_asked(scope, approval, of, (by, asked.mailed.as_ref()))?;
            settle_asked(scope, approval, by, Ok(()))
        }
        ApprovalSubject::Budget(of) => raise_asked(scope, approval.workspace, of, approval.id, by),
        ApprovalSubject::Action(_) => Err(Refusal::internal().into()),
    }
}

/// That who decides is an owner, and another than the one who asked.
fn second_owner(
    scope: &mut Scope<'_>,
    asked: &DecideApproval,
    approval: &Approval,
    first: PrincipalId,
) -> Result<(), Halt> {
    let (_, role) = member(scope, &asked.by)?;
    if role != Role::Owner {
        return Err(Refusal::forbidden("an owner decides that").into());
    }
    if asked.by.principal == first && asked.choice == Choice::Approve {
        return Err(Refusal::second_owner_required(approval.workspace, approval.id).into());
    }
    Ok(())
}

const fn outcome(approval: &Approval, is_over: bool) -> Option<&'static str> {
    match approval.state {
        ApprovalState::Waiting if is_over => Some("expired"),
        ApprovalState::Waiting => None,
        ApprovalState::Approved { .. } => Some("approved"),
        ApprovalState::Denied { .. } => Some("denied"),
        ApprovalState::Expired { .. } => Some("expired"),
    }
}

fn record(scope: &mut Scope<'_>, asked: &DecideApproval, approval: &Approval, kind: &'static str) {
    let data = Object::new().text("kind", approval.kind().as_str()).text("via", asked.via.as_str()).finish();
    let actor = Actor::Person(asked.by.principal);
    let note = asked.note.as_ref().map(|it| ("note", it.as_str()));
    let fact = Fact { kind, actor, subject: Subject::Approval(approval.id), data };
    scope.append_with(approval.workspace, fact, note.as_slice());
}
