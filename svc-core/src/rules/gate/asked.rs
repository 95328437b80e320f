//! An approval as it reads: what is asked, where it stands, and whether whoever looks may decide it.
//!
//! A freeze writes the agent alone, and time writes nothing at all: so an approval reads as its agent's epoch and the clock
//! have it, whatever its own row still says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decide_other::owners_consents;
use crate::refusal::{Kind, Refusal};
use crate::rules::gateway::budgets::{may_raise, raises};
use crate::rules::people::by::{By, entitled, member, owns, reaches};
use crate::rules::read::{Untold, View, view};
use crate::state::gate::{
    Action, Agent, Approval, ApprovalState, ApprovalSubject, AskedAction, Consent, DecidedBy, OwnerChange, Requester,
    Status,
};
use crate::state::gateway::Budget;
use crate::state::people::{MemberPart, MemberState, Principal, Reach, Right, Role, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::{AccountId, AgentId, ApprovalId, PrincipalId, WorkspaceId};
use crate::value::words::words;
use crate::value::{MicroUsd, Span, Timestamp};

/// Agents of a freeze that an approval names; how many there are, the approval itself says.
const MEMBERS_SHOWN: usize = 100;

/// An approval with what says how it reads.
#[derive(Clone, Debug)]
pub struct Question {
    /// The approval.
    pub approval: Arc<Approval>,
    /// The action it is about, if it is about one.
    pub action: Option<Box<View>>,
    /// Of a freeze the agents that it is asked for, by their ids: 100 of them at most.
    pub members: Vec<AgentId>,
    /// Of a change among owners the person whose standing changes.
    pub whom: Option<Arc<Principal>>,
    /// How many persons have to agree, by the settings as they are now while it waits.
    pub needed: u8,
    /// Whether who approves it shows their second factor again, by the settings as they are now.
    pub second_factor: bool,
    /// Where it stands.
    pub stands: Stands,
    /// Who decided, and when, once it is decided.
    pub decided: Option<(Timestamp, DecidedBy)>,
    /// Why whoever looks may not approve it; `None` where they may.
    pub may_not: Option<MayNot>,
}

/// Where a question stands, as it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stands {
    /// It waits for a person.
    Waiting,
    /// Enough persons agreed.
    Approved,
    /// A person, a freeze or a changed rule said no.
    Denied,
    /// Nobody decided in time.
    Expired,
}

words! { Stands;
    Waiting "waiting";
    Approved "approved";
    Denied "denied";
    Expired "expired";
}

/// Why somebody may not approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MayNot {
    /// Their role does not reach to it.
    Role,
    /// It is their own request.
    Own,
    /// They have agreed already, or count as the first person's.
    SecondPerson,
    /// It is decided.
    Decided,
    /// Its time is up.
    Expired,
}

words! { MayNot;
    Role "role";
    Own "own";
    SecondPerson "second_person";
    Decided "decided";
    Expired "expired";
}

/// What people are called, by their ids.
pub type Names = BTreeMap<PrincipalId, String>;

impl Question {
    /// The people who asked it, and who gave their word on it.
    #[must_use]
    pub fn people(&self) -> BTreeSet<PrincipalId> {
        let asked = match &self.approval.subject {
            ApprovalSubject::Action(_) => None,
            ApprovalSubject::Freeze(it) => match it.by {
                Requester::Person(id) => Some(id),
                Requester::Program | Requester::Token { .. } => None,
            },
            ApprovalSubject::HoldLift(it) => Some(it.by),
            ApprovalSubject::Owner(it) => Some(it.by),
            ApprovalSubject::Budget(it) => Some(it.principal),
        };
        let decided = match self.decided {
            Some((_, DecidedBy::Person(id))) => Some(id),
            Some((_, DecidedBy::Expiry | DecidedBy::Freeze | DecidedBy::Policy)) | None => None,
        };
        asked.into_iter().chain(decided).chain(self.approval.approvals.iter().map(|it| it.by)).collect()
    }

    /// What is to be written before anybody is told of it.
    #[must_use]
    pub fn untold(&self) -> Option<Untold> {
        let expired = self.approval.is_waiting() && self.stands == Stands::Expired;
        let of_action = self.action.as_ref().and_then(|it| it.untold());
        of_action.or_else(|| expired.then_some(Untold::Expired(self.approval.id)))
    }

    /// What is asked, in one sentence.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.approval.subject {
            ApprovalSubject::Action(_) => {
                self.action.as_ref().map(|it| it.action.summary.to_string()).unwrap_or_default()
            }
            ApprovalSubject::Freeze(it) if it.all => "Freeze every agent and hold them".to_owned(),
            ApprovalSubject::Freeze(it) if it.members.count == 1 => "Freeze one agent".to_owned(),
            ApprovalSubject::Freeze(it) => format!("Freeze {} agents", it.members.count),
            ApprovalSubject::HoldLift(it) if it.restart => "Lift the hold over every agent and restart them".to_owned(),
            ApprovalSubject::HoldLift(_) => "Lift the hold over every agent".to_owned(),
            ApprovalSubject::Owner(it) => match it.change {
                OwnerChange::Invite => "Invite somebody as an owner".to_owned(),
                OwnerChange::Make => "Make a member an owner".to_owned(),
                OwnerChange::Remove => "Remove an owner".to_owned(),
                OwnerChange::Become(role) => format!("Make an owner a workspace's {}", role.as_str()),
            },
            ApprovalSubject::Budget(it) => {
                let until = if it.for_good { ", for good" } else { " in this period" };
                format!("Let a budget spend {} more{until}", dollars(it.more))
            }
        }
    }
}

/// Micros as dollars: two digits behind the point, or as many as it takes.
#[must_use]
pub fn dollars(micros: MicroUsd) -> String {
    let (whole, rest) = (micros.get() / 1_000_000, micros.get() % 1_000_000);
    let digits = format!("{rest:06}");
    let (cents, fine) = digits.split_at(2);
    format!("USD {whole}.{cents}{}", fine.trim_end_matches('0'))
}

/// One approval as it reads for `by`.
///
/// # Errors
/// `forbidden` and `missing_scope` where `by` may read none, `not_found` where the workspace has no such approval or it is
/// about another's agent.
pub fn get_approval(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: ApprovalId) -> Result<Question, Halt> {
    let reach = reach_to(scope, by, workspace, Right::ReadApprovals, id)?;
    let approval = own_approval(scope, workspace, id)?;
    readable(scope, by, reach, &approval)?;
    question(scope, by, approval)
}

/// What the people of these questions are called: whoever reads a question may know by their names who asked it and who decided it,
/// though they read no other members. Machines are told ids alone.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn names<'a>(scope: &mut Scope<'_>, by: &By, questions: impl Iterator<Item = &'a Question>) -> Result<Names, Halt> {
    let By::Person(_) = by else { return Ok(Names::new()) };
    let people: BTreeSet<PrincipalId> = questions.flat_map(Question::people).collect();
    scope.want(&people.iter().map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
    let mut names = Names::new();
    for id in people {
        let person = scope.get::<Principal>(id)?;
        names.extend(person.and_then(|it| Some((id, it.called()?.to_owned()))));
    }
    Ok(names)
}

/// How far a right to approvals goes where it is about this one: whoever may raise a budget reads and decides what is asked about
/// it, whatever their role.
///
/// # Errors
/// Those of [`entitled`].
pub fn reach_to(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    right: Right,
    id: ApprovalId,
) -> Result<Reach, Halt> {
    if let By::Person(person) = by
        && person.workspace == workspace
        && let Some(approval) = scope.get::<Approval>(id)?.filter(|it| it.workspace == workspace)
        && let ApprovalSubject::Budget(asked) = &approval.subject
        && raises(scope, person, asked.budget)?
    {
        return Ok(Reach::All);
    }
    entitled(scope, by, workspace, right)
}

/// Several approvals as they read for `by`, in their order; `None` for what `by` may not read.
///
/// # Errors
/// `forbidden` and `missing_scope` where `by` may read none.
pub fn questions(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    ids: &[ApprovalId],
) -> Result<Vec<Option<Question>>, Halt> {
    let reach = entitled(scope, by, workspace, Right::ReadApprovals)?;
    let mut found = Vec::with_capacity(ids.len());
    let mut missing = false;
    for id in ids {
        let one = own_approval(scope, workspace, *id).and_then(|approval| {
            readable(scope, by, reach, &approval)?;
            question(scope, by, approval)
        });
        match one {
            Ok(question) => found.push(Some(question)),
            Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::NotFound => found.push(None),
            // The others say what they need as well, so that all of it comes in one round.
            Err(Halt::Load) => missing = true,
            Err(refused) => return Err(refused),
        }
    }
    if missing { Err(Halt::Load) } else { Ok(found) }
}

/// Which of several approvals `by` may read, in their order.
///
/// # Errors
/// As [`questions`].
pub fn which_readable(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    ids: &[ApprovalId],
) -> Result<Vec<bool>, Halt> {
    let reach = entitled(scope, by, workspace, Right::ReadApprovals)?;
    scope.want(&ids.iter().map(|it| Approval::key(*it)).collect::<Vec<_>>())?;
    let mut about = Vec::with_capacity(ids.len());
    for id in ids {
        about.extend(scope.get::<Approval>(*id)?.and_then(|it| it.asked_action().map(|it| Agent::key(it.agent))));
    }
    scope.want(&about)?;
    let mut seen = Vec::with_capacity(ids.len());
    for id in ids {
        let read = own_approval(scope, workspace, *id).and_then(|it| readable(scope, by, reach, &it));
        match read {
            Ok(()) => seen.push(true),
            Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::NotFound => seen.push(false),
            Err(other) => return Err(other),
        }
    }
    Ok(seen)
}

/// An approval of this workspace.
///
/// # Errors
/// `not_found`.
pub(super) fn own_approval(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    id: ApprovalId,
) -> Result<Arc<Approval>, Halt> {
    let found = scope.get::<Approval>(id)?.filter(|it| it.workspace == workspace);
    found.ok_or_else(|| Refusal::not_found().into())
}

/// That a right with this reach reaches to what the approval is about.
///
/// # Errors
/// `not_found` where it does not.
pub(super) fn readable(scope: &mut Scope<'_>, by: &By, reach: Reach, approval: &Approval) -> Result<(), Halt> {
    match (reach, &approval.subject, by) {
        (Reach::All, _, _) => Ok(()),
        (_, ApprovalSubject::Action(asked), _) => {
            let agent = scope.get::<Agent>(asked.agent)?.ok_or_else(Refusal::internal)?;
            reaches(by, reach, &agent).map_err(Halt::from)
        }
        (Reach::Own, ApprovalSubject::Budget(asked), By::Person(person))
            if asked.principal == person.principal || raises(scope, person, asked.budget)? =>
        {
            Ok(())
        }
        _ => Err(Refusal::not_found().into()),
    }
}

/// An approval as it reads for `by`, who may read it.
///
/// # Errors
/// `internal` where a row that it names is not there.
pub fn question(scope: &mut Scope<'_>, by: &By, approval: Arc<Approval>) -> Result<Question, Halt> {
    question_for(scope, Who::By(by), approval)
}

/// For whom an approval is read.
#[derive(Clone, Copy, Debug)]
pub enum Who<'a> {
    /// Somebody who looks at it.
    By(&'a By),
    /// A member who is to be told of it, in a session or none.
    Member(&'a Principal),
    /// Nobody in particular, who may not decide it.
    Nobody,
}

/// A member and what they may do.
struct Decider {
    principal: Arc<Principal>,
    account: AccountId,
    role: Role,
}

impl Who<'_> {
    /// The member that it is, where it is one who has signed in.
    fn decider(self, scope: &mut Scope<'_>) -> Result<Option<Decider>, Halt> {
        match self {
            Self::By(By::Person(person)) => {
                let (principal, role) = member(scope, person)?;
                Ok(Some(Decider { principal, account: person.account, role }))
            }
            Self::Member(principal) => {
                let active = principal.membership().filter(|it| it.state == MemberState::Active);
                Ok(active.map(|it| Decider {
                    account: it.account,
                    role: it.role,
                    principal: Arc::new(principal.clone()),
                }))
            }
            Self::By(By::Program | By::Token(_) | By::Key(_)) | Self::Nobody => Ok(None),
        }
    }
}

/// An approval as it reads for `who`, who may read it.
///
/// # Errors
/// `internal` where a row that it names is not there.
pub fn question_for(scope: &mut Scope<'_>, who: Who<'_>, approval: Arc<Approval>) -> Result<Question, Halt> {
    let approval = as_it_counts(scope, approval)?;
    let action = match approval.asked_action() {
        Some(asked) => {
            scope.want(&[Action::key(asked.action), Agent::key(asked.agent)])?;
            let action = scope.get::<Action>(asked.action)?.ok_or_else(Refusal::internal)?;
            Some(Box::new(view(scope, action)?))
        }
        None => None,
    };
    let needed = action.as_ref().map_or(approval.needed, |it| it.needed);
    let payment = action.as_ref().and_then(|it| it.action.payment.as_ref()).map(|it| (it.currency, it.amount));
    let workspace = scope.get::<Workspace>(approval.workspace)?.ok_or_else(Refusal::internal)?;
    let second_factor = payment.is_some() && workspace.settings.needs_second_factor(payment);
    let (stands, decided) = stands(&approval, action.as_deref(), scope.now());
    let may_not = may_not(scope, who, &approval, stands, needed)?;
    let members = members(scope, &approval)?;
    let whom = match &approval.subject {
        ApprovalSubject::Owner(it) => scope.get::<Principal>(it.principal)?,
        ApprovalSubject::Action(_)
        | ApprovalSubject::Freeze(_)
        | ApprovalSubject::HoldLift(_)
        | ApprovalSubject::Budget(_) => None,
    };
    Ok(Question { approval, action, members, whom, needed, second_factor, stands, decided, may_not })
}

/// The agents that a freeze is asked for, the first [`MEMBERS_SHOWN`] of them.
fn members(scope: &mut Scope<'_>, approval: &Approval) -> Result<Vec<AgentId>, Halt> {
    let ApprovalSubject::Freeze(asked) = &approval.subject else { return Ok(Vec::new()) };
    let Some(first) = asked.members.part(0) else { return Ok(Vec::new()) };
    let part = scope.get::<MemberPart>(first)?.ok_or_else(Refusal::internal)?;
    Ok(part.agents.iter().take(MEMBERS_SHOWN).copied().collect())
}

/// Who decided, and when.
type Decision = (Timestamp, DecidedBy);

/// Where an approval stands at `now`, with the action that it is about, if it is about one; and who decided it, once somebody
/// or something has.
#[must_use]
pub fn stands(approval: &Approval, action: Option<&View>, now: Timestamp) -> (Stands, Option<Decision>) {
    match &approval.state {
        ApprovalState::Approved { at } => {
            let by = approval.approvals.last().map_or(DecidedBy::Policy, |it| DecidedBy::Person(it.by));
            (Stands::Approved, Some((*at, by)))
        }
        ApprovalState::Denied { at, by, .. } => {
            let by = by.map(DecidedBy::Person).or_else(|| action.and_then(View::decided).map(|it| it.1));
            (Stands::Denied, Some((*at, by.unwrap_or(DecidedBy::Policy))))
        }
        ApprovalState::Expired { at } => (Stands::Expired, Some((*at, DecidedBy::Expiry))),
        ApprovalState::Waiting => match action.map(|it| (it.status(), it.decided())) {
            Some((Status::Expired, decided)) => (Stands::Expired, decided),
            Some((Status::Denied, decided)) => (Stands::Denied, decided),
            Some(_) => (Stands::Waiting, None),
            None if now >= approval.expires_at => (Stands::Expired, Some((approval.expires_at, DecidedBy::Expiry))),
            None => (Stands::Waiting, None),
        },
    }
}

fn may_not(
    scope: &mut Scope<'_>,
    who: Who<'_>,
    approval: &Approval,
    stands: Stands,
    needed: u8,
) -> Result<Option<MayNot>, Halt> {
    match stands {
        Stands::Approved | Stands::Denied => return Ok(Some(MayNot::Decided)),
        Stands::Expired => return Ok(Some(MayNot::Expired)),
        Stands::Waiting => {}
    }
    let Some(Decider { principal, account, role }) = who.decider(scope)? else { return Ok(Some(MayNot::Role)) };
    let id = principal.id;
    match &approval.subject {
        ApprovalSubject::Action(asked) => {
            let agent = scope.get::<Agent>(asked.agent)?.ok_or_else(Refusal::internal)?;
            if !decides(role, id, &agent) {
                return Ok(Some(MayNot::Role));
            }
            let first = standing_consents(scope, approval, asked)?.into_iter().next();
            let Some(first) = first.filter(|_| needed > 1) else { return Ok(None) };
            let again = first.by == id || first.account == account;
            let near = again || close(scope, approval.workspace, &first, &principal)?;
            Ok(near.then_some(MayNot::SecondPerson))
        }
        ApprovalSubject::Freeze(_) => Ok((role.reach(Right::FreezeFleet) != Reach::All).then_some(MayNot::Role)),
        ApprovalSubject::HoldLift(asked) => {
            let again = owners_consents(scope, approval)?.iter().any(|it| it.by == id || it.account == account);
            let second = second_owner(role, id, asked.by);
            Ok(second.or_else(|| again.then_some(MayNot::SecondPerson)))
        }
        ApprovalSubject::Owner(asked) => Ok(second_owner(role, id, asked.by)),
        ApprovalSubject::Budget(asked) => {
            let budget = scope.get::<Budget>(asked.budget)?.filter(|it| it.workspace == approval.workspace);
            Ok((!budget.is_some_and(|it| may_raise(role, id, &it))).then_some(MayNot::Role))
        }
    }
}

fn second_owner(role: Role, person: PrincipalId, first: PrincipalId) -> Option<MayNot> {
    match role {
        Role::Owner if person == first => Some(MayNot::Own),
        Role::Owner => None,
        Role::Admin | Role::Member | Role::Analyst | Role::Auditor => Some(MayNot::Role),
    }
}

/// Whether somebody with this role may decide what `agent` asks: its principal or sponsor, an owner, an admin.
pub(super) fn decides(role: Role, principal: PrincipalId, agent: &Agent) -> bool {
    match role.reach(Right::DecideApprovals) {
        Reach::All => true,
        Reach::Own => owns(principal, agent),
        Reach::No => false,
    }
}

/// Whether a member may decide what `agent` asks, in a session or none.
pub fn may_decide(principal: &Principal, agent: &Agent) -> bool {
    let active = principal.membership().filter(|it| it.state == MemberState::Active);
    active.is_some_and(|it| decides(it.role, principal.id, agent))
}

/// An approval with those words alone that count, while it waits: a yes whose giver may not decide any more is none, whoever reads it.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there.
pub(in crate::rules) fn as_it_counts(scope: &mut Scope<'_>, approval: Arc<Approval>) -> Result<Arc<Approval>, Halt> {
    if !approval.is_waiting() || approval.approvals.is_empty() {
        return Ok(approval);
    }
    let approvals = match &approval.subject {
        ApprovalSubject::Action(asked) => standing_consents(scope, &approval, asked)?,
        ApprovalSubject::HoldLift(_) | ApprovalSubject::Owner(_) => owners_consents(scope, &approval)?,
        // The first yes decides these.
        ApprovalSubject::Freeze(_) | ApprovalSubject::Budget(_) => return Ok(approval),
    };
    Ok(Arc::new(Approval { approvals, ..Approval::clone(&approval) }))
}

/// The consents of those who may decide now: who has left the workspace, was shut out where they sign in, or lost the role, agrees to
/// nothing any more. One who has come back since is asked again.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there.
pub(super) fn standing_consents(
    scope: &mut Scope<'_>,
    approval: &Approval,
    asked: &AskedAction,
) -> Result<Vec<Consent>, Halt> {
    scope.want(&approval.approvals.iter().map(|it| Principal::key(it.by)).collect::<Vec<_>>())?;
    let agent = scope.get::<Agent>(asked.agent)?.ok_or_else(Refusal::internal)?;
    let mut standing = Vec::with_capacity(approval.approvals.len());
    for consent in &approval.approvals {
        let principal = scope.get::<Principal>(consent.by)?;
        let stands = principal.as_ref().filter(|it| !it.has_lost_word_since(consent.at));
        let role = stands.and_then(|it| it.membership()).map(|it| it.role);
        if role.is_some_and(|role| decides(role, consent.by, &agent)) {
            standing.push(consent.clone());
        }
    }
    Ok(standing)
}

/// Persons who are looked at for whether one raised another: with more of them between two, nobody can tell that they are two.
const RAISERS_MAX: usize = 64;

/// Whether one of the two has made the other what they are so lately that they count as one person, be it by the hands of others whom
/// they raised. Which of them agreed first says nothing: otherwise whoever raised somebody would have only to wait for their yes.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there.
pub(super) fn close(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    first: &Consent,
    second: &Principal,
) -> Result<bool, Halt> {
    let workspace = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    let other = scope.get::<Principal>(first.by)?.ok_or_else(Refusal::internal)?;
    let age = workspace.settings.second_person_age();
    Ok(was_raised_by(scope, second, first.by, age)? || was_raised_by(scope, &other, second.id, age)?)
}

/// Whether `by` has made somebody what they are less than `age` ago, or raised whoever did.
fn was_raised_by(scope: &mut Scope<'_>, whom: &Principal, by: PrincipalId, age: Span) -> Result<bool, Halt> {
    let now = scope.now();
    let (mut seen, mut last) = (vec![whom.id], whom.raisers(age, now));
    while !last.is_empty() {
        if last.contains(&by) || seen.len() > RAISERS_MAX {
            return Ok(true);
        }
        scope.want(&last.iter().map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
        seen.extend_from_slice(&last);
        let mut above = Vec::new();
        for id in last {
            let raisers = scope.get::<Principal>(id)?.map(|it| it.raisers(age, now)).unwrap_or_default();
            above.extend(raisers.into_iter().filter(|it| !seen.contains(it)));
        }
        // Several may have been raised by the same one.
        above.sort_unstable();
        above.dedup();
        last = above;
    }
    Ok(false)
}
