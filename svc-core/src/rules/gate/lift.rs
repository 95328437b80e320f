//! The end of a hold: by persons where it stops every agent, by itself where it stood for rows that were still to be written.
//! And the writing of those rows, a commit at a time.

use std::sync::Arc;

use super::asked::own_approval;
use super::decide::{Choice, DecideApproval};
use super::decide_other::{decide_other, is_owners, owners_consents, owners_needed};
use super::fleet::{FREEZE_MAX, Own, listed, void};
use super::freeze::{actor_of, touch};
use super::restart::restart;
use crate::refusal::Refusal;
use crate::rules::edge::tell;
use crate::rules::people::by::{By, entitled};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, Approval, ApprovalState, ApprovalSubject, AskedLift, Frozen};
use crate::state::people::{
    Hold, HoldScope, HoldTask, HoldWork, Lifted, MEMBERS_OF_PART, Members, Principal, Reach, Right, Roster, STEP_PARTS,
    Workspace,
};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{AgentId, HoldId, PrincipalId, WorkspaceId};
use crate::value::text::Note;
use crate::value::{Span, Timestamp};

/// How long a second owner has to agree.
const SECOND_OWNER: Span = Span::hours(24);
/// How long a lift rests before it looks again at agents whose stop was still being followed.
const REST: Span = Span::seconds(1);
const _: () = assert!(FREEZE_MAX == 5 * MEMBERS_OF_PART && STEP_PARTS == 5, "a step is what one commit freezes");

/// Lifts a hold over every agent. Over `svc_store::Gate` use `gate.lift`, which ends what the stops end of agents that it restarts.
#[derive(Clone, Debug)]
pub struct LiftHold {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Which hold.
    pub hold: HoldId,
    /// Who lifts it.
    pub by: By,
    /// Why.
    pub reason: Note,
    /// Whether the agents that its freeze froze, and nothing else since, are restarted.
    pub restart: bool,
}

/// What comes of lifting a hold.
#[derive(Clone, Debug)]
pub enum Lift {
    /// It is lifted.
    Lifted(Arc<Hold>),
    /// A second owner is asked, or two are.
    Asked(Arc<Approval>),
}

/// Lifts a hold, or asks a second owner where there is one. Where there are two and the one who asks is none of them, two owners
/// have to agree.
///
/// # Errors
/// `not_found`, `not_allowed` where it is lifted, ends by itself or is still being written, or another lift of it waits,
/// `second_owner_required` where the caller has asked already; those of [`entitled`].
pub fn lift_hold(scope: &mut Scope<'_>, asked: &LiftHold) -> Result<Lift, Halt> {
    let (hold, first) = to_lift(scope, asked)?;
    match first {
        Some(person) => ask_second(scope, asked, &hold, person).map(Lift::Asked),
        None => lift_now(scope, &hold, &asked.by.actor(), &asked.reason, asked.restart).map(Lift::Lifted),
    }
}

/// The hold that the caller may lift, and who they are where a second owner has to agree.
fn to_lift(scope: &mut Scope<'_>, asked: &LiftHold) -> Result<(Arc<Hold>, Option<PrincipalId>), Halt> {
    scope.want(&[Hold::key(asked.hold), Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    entitled(scope, &asked.by, asked.workspace, Right::LiftHolds)?;
    let hold = own_hold(scope, asked.workspace, asked.hold)?;
    liftable(&hold)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    Ok((hold, asked.by.principal().filter(|_| workspace.owners.len() > 1)))
}

/// Agents whose stop is still being followed and that this lift would restart in its own commit if it were not: what their stops
/// end is to be ended first. None where nobody is restarted yet.
///
/// # Errors
/// Those of [`lift_hold`].
pub fn ending_under(scope: &mut Scope<'_>, asked: &LiftHold) -> Result<Vec<Arc<Agent>>, Halt> {
    let (hold, first) = to_lift(scope, asked)?;
    if asked.restart && first.is_none() { ending(scope, &hold) } else { Ok(Vec::new()) }
}

/// The same of a person's word on a lift.
///
/// # Errors
/// Those of [`entitled`], and `not_allowed` where the hold cannot be lifted.
pub fn ending_by(scope: &mut Scope<'_>, word: &DecideApproval) -> Result<Vec<Arc<Agent>>, Halt> {
    let workspace = word.by.workspace;
    let waits = |it: &Arc<Approval>| it.workspace == workspace && it.is_waiting();
    match scope.get::<Approval>(word.approval)?.filter(waits).as_ref().map(|it| &it.subject) {
        Some(ApprovalSubject::HoldLift(of)) if of.restart && word.choice == Choice::Approve => {
            entitled(scope, &By::Person(word.by), workspace, Right::LiftHolds)?;
            let hold = own_hold(scope, workspace, of.hold)?;
            liftable(&hold)?;
            ending(scope, &hold)
        }
        _ => Ok(Vec::new()),
    }
}

fn ending(scope: &mut Scope<'_>, hold: &Hold) -> Result<Vec<Arc<Agent>>, Halt> {
    let agents = listed(scope, &hold.members, 0, STEP_PARTS)?;
    let mut own = frozen_by_hold(scope, hold, &agents)?;
    own.retain(|it| it.is_ending(scope.now()));
    Ok(own)
}

/// A hold of this workspace.
///
/// # Errors
/// `not_found`.
pub fn own_hold(scope: &mut Scope<'_>, workspace: WorkspaceId, id: HoldId) -> Result<Arc<Hold>, Halt> {
    let found = scope.get::<Hold>(id)?.filter(|it| it.workspace == workspace);
    found.ok_or_else(|| Refusal::not_found().into())
}

fn liftable(hold: &Hold) -> Result<(), Refusal> {
    match (&hold.lifted, hold.scope, &hold.work) {
        (Some(_), ..) => Err(Refusal::not_allowed("the hold is lifted")),
        (None, HoldScope::Selection, _) => Err(Refusal::not_allowed("the hold ends by itself")),
        (None, HoldScope::All, Some(_)) => Err(Refusal::not_allowed("its agents are still being frozen")),
        (None, HoldScope::All, None) => Ok(()),
    }
}

/// Asks a second owner, once: the one who asked hears that another is needed, anybody else which question waits. Where who asked
/// is no owner, the first owner to ask for the same is the first of the two.
fn ask_second(
    scope: &mut Scope<'_>,
    asked: &LiftHold,
    hold: &Hold,
    person: PrincipalId,
) -> Result<Arc<Approval>, Halt> {
    let now = scope.now();
    if let Some(id) = hold.asked
        && let Some(waiting) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at)
        && let ApprovalSubject::HoldLift(first) = &waiting.subject
        // Nobody can agree to the question of somebody who may lift holds no more: it counts as none.
        && may_lift(scope, &waiting, first.by)?
    {
        if first.by == person || owners_consents(scope, &waiting)?.iter().any(|it| it.by == person) {
            return Err(Refusal::second_owner_required(asked.workspace, id).into());
        }
        if first.restart != asked.restart {
            let with = if first.restart { "with" } else { "without" };
            let why = format!("{id} asks already whether it is lifted {with} a restart: decide that first");
            return Err(Refusal::not_allowed_under(asked.hold, why).into());
        }
        if counts_first(scope, asked, (first.by, waiting.created_at))? && owners_consents(scope, &waiting)?.is_empty() {
            return agree_first(scope, asked, &waiting);
        }
        return Ok(waiting);
    }
    let approval = Approval {
        id: scope.fresh(),
        workspace: asked.workspace,
        subject: ApprovalSubject::HoldLift(AskedLift {
            hold: hold.id,
            restart: asked.restart,
            reason: asked.reason.clone(),
            by: person,
        }),
        created_at: now,
        expires_at: now.plus(SECOND_OWNER),
        needed: owners_needed(scope, asked.workspace, (person, now))?,
        approvals: Vec::new(),
        state: ApprovalState::Waiting,
        posted: Vec::new(),
    };
    let data = Object::new().text("hold", &hold.id.to_string()).text("kind", approval.kind().as_str());
    let data = data.bool("restart", asked.restart).finish();
    let subject = Subject::Approval(approval.id);
    let fact = Fact { kind: "approval.asked", actor: asked.by.actor(), subject, data };
    scope.append_with(asked.workspace, fact, &[("reason", asked.reason.as_str())]);
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    tell::asked(scope, &workspace, &approval);
    scope.put(Hold { asked: Some(approval.id), ..hold.clone() });
    scope.put(approval.clone());
    Ok(Arc::new(approval))
}

/// Whether the caller is an owner and whoever asked for the same before is none: of the owners who have to agree, the first.
fn counts_first(scope: &mut Scope<'_>, asked: &LiftHold, before: (PrincipalId, Timestamp)) -> Result<bool, Halt> {
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let is_owner = asked.by.principal().is_some_and(|it| workspace.owners.contains(&it));
    Ok(is_owner && !is_owners(scope, asked.workspace, before)?)
}

/// Takes the caller's asking as their yes to the question that waits.
fn agree_first(scope: &mut Scope<'_>, asked: &LiftHold, waiting: &Approval) -> Result<Arc<Approval>, Halt> {
    let By::Person(by) = asked.by else { return Err(Refusal::internal().into()) };
    let yes = DecideApproval::new(by, waiting.id, Choice::Approve);
    let word = DecideApproval { note: Some(asked.reason.clone()), ..yes };
    decide_other(scope, &word, waiting)?;
    own_approval(scope, asked.workspace, waiting.id)
}

/// Lifts a hold that as many owners have agreed to lift as it takes, where it still stands and the first still may.
///
/// # Errors
/// `not_allowed` where the hold is lifted already, who asked may lift none any more, or left or was shut out since.
pub fn lift_asked(
    scope: &mut Scope<'_>,
    approval: &Approval,
    asked: &AskedLift,
    second: PrincipalId,
) -> Result<Arc<Hold>, Halt> {
    let hold = own_hold(scope, approval.workspace, asked.hold)?;
    liftable(&hold)?;
    if !may_lift(scope, approval, asked.by)? {
        let why = "who asked for it may lift holds no more, or was shut out since: ask for it anew";
        return Err(Refusal::not_allowed(why).into());
    }
    scope.in_words_of(asked.by, |scope| lift_now(scope, &hold, &Actor::Person(second), &asked.reason, asked.restart))
}

/// Whether somebody who asked for a lift may lift holds still, and neither left nor was shut out since.
fn may_lift(scope: &mut Scope<'_>, asked: &Approval, first: PrincipalId) -> Result<bool, Halt> {
    let first = scope.get::<Principal>(first)?.filter(|it| it.workspace == asked.workspace);
    let first = first.filter(|it| !it.has_ended_since(asked.created_at));
    let role = first.as_ref().and_then(|it| it.membership()).map(|it| it.role);
    Ok(role.is_some_and(|it| it.reach(Right::LiftHolds) == Reach::All))
}

/// Lifts a hold, and restarts its agents where that is asked: as many as one commit takes now, the others and those whose stop
/// is still being followed a moment later.
fn lift_now(
    scope: &mut Scope<'_>,
    hold: &Hold,
    actor: &Actor,
    reason: &Note,
    restart: bool,
) -> Result<Arc<Hold>, Halt> {
    let now = scope.now();
    let by = if let Actor::Person(id) = actor { Some(*id) } else { None };
    let mut lifted = hold.clone();
    lifted.lifted = Some(Lifted { at: now, by, reason: Some(reason.clone()), author: scope.author() });
    lifted.work = restart.then(|| HoldWork::new(HoldTask::Restart, now, None));
    end(scope, hold, actor.clone(), &[("reason", reason.as_str())], restart)?;
    work(scope, &mut lifted)?;
    scope.put(lifted.clone());
    Ok(Arc::new(lifted))
}

/// Takes a hold out of the workspace's own row, and records it.
fn end(scope: &mut Scope<'_>, hold: &Hold, actor: Actor, texts: &[(&str, &str)], restart: bool) -> Result<(), Halt> {
    let workspace = scope.get::<Workspace>(hold.workspace)?.ok_or_else(Refusal::internal)?;
    let mut workspace = Workspace::clone(&workspace);
    workspace.holds.retain(|it| it.id != hold.id);
    scope.put(workspace);
    let data = Object::new().int("agents", hold.members.count.into()).bool("restart", restart);
    let data = data.text("scope", hold.scope.as_str()).finish();
    let fact = Fact { kind: "hold.lifted", actor, subject: Subject::Hold(hold.id), data };
    scope.append_with(hold.workspace, fact, texts);
    Ok(())
}

/// Works on: the next rows of a hold's members. A selection's hold ends with the last of them.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there.
pub fn work_on(scope: &mut Scope<'_>, id: HoldId) -> Result<(), Halt> {
    let now = scope.now();
    let due = |it: &Arc<Hold>| it.work.as_ref().is_some_and(|work| work.since <= now);
    let Some(hold) = scope.get::<Hold>(id)?.filter(due) else { return Ok(()) };
    let mut hold = Hold::clone(&hold);
    work(scope, &mut hold)?;
    if hold.work.is_none() && hold.lifted.is_none() && hold.scope == HoldScope::Selection {
        hold.lifted = Some(Lifted { at: scope.now(), by: None, reason: None, author: None });
        end(scope, &hold, Actor::Timer, &[], false)?;
    }
    scope.put(hold);
    Ok(())
}

/// The next step of what a hold does to its members' rows, if it does anything.
fn work(scope: &mut Scope<'_>, hold: &mut Hold) -> Result<(), Halt> {
    let Some(work) = hold.work.clone() else { return Ok(()) };
    let agents = listed(scope, hold.members_of(&work), work.parts, STEP_PARTS)?;
    let (at, by, reason) = work.of.as_ref().map_or((hold.at, &hold.by, &hold.reason), |it| (it.at, &it.by, &it.reason));
    match work.task {
        HoldTask::Freeze => {
            touch(scope, hold.workspace)?;
            Own { at, by, reason, hold: Some(hold.id) }.freeze(scope, &agents)?;
        }
        HoldTask::Void => {
            touch(scope, hold.workspace)?;
            void(scope, &agents, at, &actor_of(by))?;
        }
        HoldTask::Restart => return restart_next(scope, hold, work, &agents),
    }
    hold.step(work);
    Ok(())
}

/// Restarts the next of a hold's agents and goes on with the others. Those that are left are a work of their own, which the hold
/// comes back to.
fn restart_next(scope: &mut Scope<'_>, hold: &mut Hold, work: HoldWork, agents: &[AgentId]) -> Result<(), Halt> {
    let left = restart_own(scope, hold, agents)?;
    if left.is_empty() {
        hold.step(work);
        return Ok(());
    }
    // The list that it has come back to serves as long as one of it is left: who runs by then is passed over.
    let members = work.left.clone().unwrap_or_else(|| {
        let (members, parts) = Members::of(scope.fresh(), &left);
        parts.into_iter().for_each(|part| scope.put(part));
        members
    });
    hold.step_but(work, members, scope.now().plus(REST));
    Ok(())
}

/// Restarts those of `agents` that this hold's freeze froze and nothing else since, and gives those that are left: one whose stop
/// is still being followed, as what that ends would fill the limits of an agent that runs.
fn restart_own(scope: &mut Scope<'_>, hold: &Hold, agents: &[AgentId]) -> Result<Vec<AgentId>, Halt> {
    let by = hold.lifted.as_ref().and_then(|it| it.by);
    let actor = by.map_or(Actor::Policy, Actor::Person);
    let (mut left, mut restarted) = (Vec::new(), false);
    for agent in frozen_by_hold(scope, hold, agents)? {
        if agent.is_ending(scope.now()) {
            left.push(agent.id);
        } else {
            restart(scope, &agent, actor.clone(), Some(hold.id), &[]);
            restarted = true;
        }
    }
    if restarted {
        touch(scope, hold.workspace)?;
    }
    Ok(left)
}

/// Those of `agents` that this hold's freeze froze and nothing else since.
fn frozen_by_hold(scope: &mut Scope<'_>, hold: &Hold, agents: &[AgentId]) -> Result<Vec<Arc<Agent>>, Halt> {
    scope.want(&agents.iter().map(|id| Agent::key(*id)).collect::<Vec<_>>())?;
    let own = |it: &&Frozen| it.hold == Some(hold.id) && !it.again && it.incident.is_none();
    let mut found = Vec::with_capacity(agents.len());
    for id in agents {
        found.extend(scope.get::<Agent>(*id)?.filter(|it| it.frozen().filter(own).is_some()));
    }
    Ok(found)
}
