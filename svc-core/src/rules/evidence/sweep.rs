//! The daily sweep of a workspace: commands over keys that a scan found, a bounded number a commit. Each row is looked at
//! again; what is open, waits or holds money is left, and nothing behind it counts as swept. One that begins long after it was due
//! waits first, as the clock may be ahead.
//!
//! **Invariant:** no record of the ledger is touched: personal texts go, their commitments stay.

use super::erase::{beside, let_go, strip};
use crate::rules::edge::export;
use crate::state::edge::Job;
use crate::state::evidence::{Actor, Disclosure, Fact, Subject};
use crate::state::gate::{Action, Code, JOB_KEPT, OPEN_MAX, Payload, REPLAY_KEPT, Replay, State, Sweep};
use crate::state::people::Workspace;
use crate::store::{Key, Row as _};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ActionId, DeliveryId, EvidenceId, WorkspaceId};
use crate::value::{Span, Timestamp};

/// Lets go of idempotency keys that are no longer kept, and of what refused requests of stopped agents carried.
#[derive(Clone, Debug)]
pub struct SweepClosed {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// Where the scan began.
    pub behind: u128,
    /// What it found, in its order.
    pub actions: Vec<ActionId>,
}

/// Sweeps closed actions.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn sweep_closed(scope: &mut Scope<'_>, asked: &SweepClosed) -> Result<(), Halt> {
    let Some(sweep) = scope.get::<Sweep>(asked.workspace)? else { return Ok(()) };
    scope.want(&asked.actions.iter().map(|it| Action::key(*it)).collect::<Vec<_>>())?;
    let kept = OPEN_MAX.as_millis().saturating_add(REPLAY_KEPT.as_millis());
    let before = scope.now().minus(Span::millis(kept));
    let (mut closed_to, mut all) = (sweep.closed_to, Sweep::behind(sweep.closed_to) == asked.behind);
    for id in &asked.actions {
        let Some(action) = scope.get::<Action>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        if action.created_at() >= before || is_open(&action, scope.now()) {
            all = false;
            continue;
        }
        let mut swept = Action::clone(&action);
        if let Some(key) = swept.replay.take()
            && scope.get::<Replay>(key)?.is_some_and(|it| it.action == *id)
        {
            scope.delete::<Replay>(key);
        }
        if refused_by_a_stop(&action) && scope.get::<Payload>(*id)?.is_some() {
            scope.delete::<Payload>(*id);
            swept.payload = false;
        }
        if swept != *action {
            scope.put(swept);
        }
        closed_to = if all { Some(*id) } else { closed_to };
    }
    if closed_to != sweep.closed_to {
        scope.put(Sweep { closed_to, ..Sweep::clone(&sweep) });
    }
    Ok(())
}

fn refused_by_a_stop(action: &Action) -> bool {
    let stopped = |code: Code| code == Code::AgentFrozen;
    matches!(action.state, State::Denied { .. }) && action.reasons.iter().any(|it| stopped(it.code))
}

/// Whether something may still become of an action by itself: a person is asked, or what it holds was not settled.
fn is_open(action: &Action, now: Timestamp) -> bool {
    match &action.state {
        State::Pending { .. } => true,
        State::Denied { .. } | State::Expired { .. } => false,
        State::Allowed(allowed) => {
            let ended = allowed.outcome.is_some() || allowed.lapsed.is_some() || allowed.revoked.is_some();
            // Without anything to post, an action lapses by the clock alone.
            let by_clock = action.reservation.is_none();
            !(ended || by_clock && now.since(action.created_at()) > OPEN_MAX)
        }
    }
}

/// Lets go of what is personal in actions that are older than the workspace keeps it.
#[derive(Clone, Debug)]
pub struct SweepOld {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// Where the scan began.
    pub behind: u128,
    /// What it found, in its order.
    pub actions: Vec<ActionId>,
    /// The disclosures that a scan found of them.
    pub disclosures: Vec<EvidenceId>,
}

/// Sweeps old actions, and records how many rows lost their texts.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn sweep_old(scope: &mut Scope<'_>, asked: &SweepOld) -> Result<(), Halt> {
    scope.want(&[Sweep::key(asked.workspace), Workspace::key(asked.workspace)])?;
    let Some(sweep) = scope.get::<Sweep>(asked.workspace)? else { return Ok(()) };
    let workspace = scope.get::<Workspace>(asked.workspace)?;
    let Some(days) = workspace.and_then(|it| it.settings.retention_days) else { return Ok(()) };
    scope.want(&asked.actions.iter().map(|it| Action::key(*it)).collect::<Vec<Key>>())?;
    let before = scope.now().minus(Span::hours(24 * i64::from(days)));
    let mut rows = Vec::new();
    for id in &asked.actions {
        rows.extend(scope.get::<Action>(*id)?.iter().flat_map(|it| beside(it)));
    }
    scope.want(&rows)?;
    let (mut erased_to, mut all) = (sweep.erased_to, Sweep::behind(sweep.erased_to) == asked.behind);
    let (mut old, mut erased) = (Vec::new(), 0_u64);
    for id in &asked.actions {
        let Some(action) = scope.get::<Action>(*id)?.filter(|it| it.workspace == asked.workspace) else { continue };
        if action.created_at() >= before || is_open(&action, scope.now()) {
            all = false;
            continue;
        }
        old.push(id.to_string());
        erased = erased.saturating_add(strip(scope, &action)?);
        erased_to = if all { Some(*id) } else { erased_to };
    }
    let about = |row: &Disclosure| row.workspace == asked.workspace && old.iter().any(|it| **it == *row.subject);
    erased = erased.saturating_add(let_go(scope, &asked.disclosures, about)?);
    if erased > 0 {
        let data = Object::new().raw("erased", &erased.to_string()).text("reason", "retention");
        let data = data.text("until", &before.to_string()).finish();
        let subject = Subject::Workspace(asked.workspace);
        scope.append(asked.workspace, Fact { kind: "erasure", actor: Actor::Timer, subject, data });
    }
    if erased_to != sweep.erased_to {
        scope.put(Sweep { erased_to, ..Sweep::clone(&sweep) });
    }
    Ok(())
}

/// Lets go of calls to the outside that came to their end long ago.
#[derive(Clone, Debug)]
pub struct SweepJobs {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// What a scan found.
    pub jobs: Vec<DeliveryId>,
}

/// Sweeps calls.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn sweep_jobs(scope: &mut Scope<'_>, asked: &SweepJobs) -> Result<(), Halt> {
    scope.want(&asked.jobs.iter().map(|it| Job::key(*it)).collect::<Vec<_>>())?;
    let before = scope.now().minus(JOB_KEPT);
    for id in &asked.jobs {
        let ended = |it: &std::sync::Arc<Job>| it.due().is_none() && it.created_at < before;
        let Some(job) = scope.get::<Job>(*id)?.filter(|it| it.workspace == asked.workspace).filter(ended) else {
            continue;
        };
        // What an export was given up at is tried again when somebody asks for it, however late.
        if !export::stands_at(scope, &job)? {
            scope.delete::<Job>(*id);
        }
    }
    Ok(())
}

/// Notes that a workspace was swept, and when it is swept next; of a sweep that is late or was put off, when it comes at last.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn end_sweep(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<(), Halt> {
    let now = scope.now();
    let Some(sweep) = scope.get::<Sweep>(workspace)? else { return Ok(()) };
    if let Some(next) = sweep.next(now) {
        scope.put(next);
    }
    Ok(())
}
