//! The calls that run on this server, so that a freeze cuts them, the end of the key that began them, and the server's own end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_core::rules::gate::hold::held_by;
use svc_core::rules::gateway::payer::{CallKey, was_taken};
use svc_core::state::gate::Agent;
use svc_core::state::people::Workspace;
use svc_core::store::Key;
use svc_core::turn::{Halt, Scope};
use svc_core::value::digest::CredentialId;
use svc_store::{Changes, Gate};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use crate::upstream::{Stop, Switch};

/// The calls that run here.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    next: AtomicU64,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// Each with the key that it came with.
    running: HashMap<u64, (CallKey, Arc<Switch>)>,
    /// Whether the server has no more time for any.
    ended: bool,
}

/// One call's place among them, until all who have it have dropped it.
#[derive(Clone, Debug)]
pub(in crate::ops) struct Seat(Arc<Place>);

#[derive(Debug)]
struct Place {
    calls: Arc<RunningCalls>,
    number: u64,
    switch: Arc<Switch>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.calls.held().running.remove(&self.number);
    }
}

impl Seat {
    /// What cuts the call.
    pub(in crate::ops) fn switch(&self) -> Arc<Switch> {
        Arc::clone(&self.0.switch)
    }
}

impl RunningCalls {
    /// A place for a call that is about to be admitted: from here on a freeze finds it, the end of its key, and the server's.
    pub(in crate::ops) fn enter(self: &Arc<Self>, key: &CallKey) -> Seat {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let switch = Arc::new(Switch::default());
        let mut calls = self.held();
        if calls.ended {
            switch.cut(Stop::Server);
        }
        calls.running.insert(number, (key.clone(), Arc::clone(&switch)));
        drop(calls);
        Seat(Arc::new(Place { calls: Arc::clone(self), number, switch }))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.held().running.len()
    }

    /// Cuts every call, and those that begin from now on: the server stops, and its time is up.
    pub(crate) fn end(&self) {
        let mut calls = self.held();
        calls.ended = true;
        calls.running.values().for_each(|(_, switch)| switch.cut(Stop::Server));
    }

    /// What was held when somebody panicked is whole: a call is in it or not.
    fn held(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cuts the calls of whoever is stopped, as rows change; ends when the gate does.
    pub(crate) async fn watch(self: Arc<Self>, gate: Gate, mut changes: Changes) {
        // When a look began that told of all calls, where others may stop them: then it is looked once a second.
        let mut sure = None::<Instant>;
        loop {
            let change = changes.recv().await;
            let begun = Instant::now();
            // However late the database answered before: it is asked once more, briefly.
            let until = sure.map_or(begun + BLIND, |it| (it + BLIND).max(begun + LOOK_MIN));
            match change {
                // Any may be stopped by another server: a store that is away for a moment is no stop yet.
                Ok(change) if change.any && gate.is_shared() => {
                    let last = *sure.get_or_insert(begun);
                    let is_over = begun + LOOK_EARLY >= last + BLIND;
                    if self.cut_stopped(&gate, |_| true, is_over, until).await {
                        sure = Some(begun);
                    }
                }
                Ok(change) => {
                    // A command beside this one server may have stopped anybody, and that is told once.
                    let touched = |owner: &CallKey| {
                        let is_of = |key: &Key| match key {
                            Key::Agent(id) => owner.agent() == Some(*id),
                            Key::Workspace(id) => owner.binding.workspace == *id,
                            // A key ends with those above it and with people whom it does not name: any may be theirs.
                            Key::Credential(_) | Key::Principal(_) => true,
                            _ => false,
                        };
                        change.any || change.keys.iter().any(is_of)
                    };
                    self.cut_stopped(&gate, touched, true, until).await;
                }
                // What was missed could have been anything.
                Err(RecvError::Lagged(_)) => drop(self.cut_stopped(&gate, |_| true, true, until).await),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Cuts the calls of those who are stopped among whom `touched` means, and where `unsure`, of those too whose rows cannot be read;
    /// of all whom it means where nothing is heard until `until`. Whether all could be read, or no call is left of which nobody knows.
    async fn cut_stopped(&self, gate: &Gate, touched: impl Fn(&CallKey) -> bool, unsure: bool, until: Instant) -> bool {
        let calls: Vec<(CallKey, Arc<Switch>)> = {
            let calls = self.held();
            calls.running.values().filter(|(owner, _)| touched(owner)).cloned().collect()
        };
        if calls.is_empty() {
            return true;
        }
        let (gate, silenced) = (gate.clone(), calls.clone());
        // Reading blocks; the answers that are cut wait for nothing else.
        let cut = tokio::task::spawn_blocking(move || {
            let mut known: HashMap<CredentialId, Option<Option<Stop>>> = HashMap::new();
            for (owner, switch) in calls {
                let look = || gate.read(|scope| who_stopped(scope, &owner)).ok();
                let stopped = *known.entry(owner.row).or_insert_with(look);
                if let Some(stop) = stopped.unwrap_or_else(|| unsure.then_some(Stop::Agent)) {
                    switch.cut(stop);
                }
            }
            known.values().all(Option::is_some)
        });
        match timeout_at(until, cut).await {
            Ok(Ok(is_sure)) => is_sure || unsure,
            Ok(Err(error)) => {
                tracing::error!(%error, "calls of stopped agents could not be cut");
                false
            }
            Err(_) => {
                tracing::warn!("whether running calls may go on is not to be learned: they are cut");
                silenced.iter().for_each(|(_, switch)| switch.cut(Stop::Agent));
                true
            }
        }
    }
}

/// So long after the last look that told calls may go on of which nobody can tell whether another server has stopped them.
const BLIND: Duration = Duration::from_secs(5);
/// Looks come a second apart, and not to the millisecond: one that is so little early is the last.
const LOOK_EARLY: Duration = Duration::from_millis(500);
/// How long a look waits for the database at least.
const LOOK_MIN: Duration = Duration::from_secs(1);

/// Why calls of `owner` are not to go on, where they are not.
fn who_stopped(scope: &mut Scope<'_>, owner: &CallKey) -> Result<Option<Stop>, Halt> {
    let Some(workspace) = scope.get::<Workspace>(owner.binding.workspace)? else { return Ok(Some(Stop::Agent)) };
    let is_stopped = match owner.agent() {
        Some(id) => {
            let agent = scope.get::<Agent>(id)?;
            agent.is_none_or(|it| !it.is_active()) || held_by(scope, &workspace, id)?.is_some()
        }
        None => workspace.all_held().is_some(),
    };
    if is_stopped {
        return Ok(Some(Stop::Agent));
    }
    Ok(was_taken(scope, owner)?.then_some(Stop::Key))
}

#[cfg(test)]
mod tests {
    use svc_core::state::people::{Binding, KeyScope};
    use svc_core::value::Id as _;
    use svc_core::value::digest::Digest;
    use svc_core::value::id::{KeyId, PrincipalId, WorkspaceId};

    use super::*;

    /// A call is among those that run until all who have its place have let go of it: one may hold its end while another tells it.
    #[test]
    fn a_place_is_kept_while_anybody_has_it() {
        let calls = Arc::new(RunningCalls::default());
        let binding = Binding {
            key: KeyId::from_bits(1),
            workspace: WorkspaceId::from_bits(1),
            scope: KeyScope::Inference,
            principal: PrincipalId::from_bits(1),
            team: None,
            task_class: None,
            profile: None,
            task_class_open: false,
            connection: None,
        };
        let row = CredentialId::of(&[Digest::of("a key").as_bytes()]);
        let seat = calls.enter(&CallKey { row, binding: Arc::new(binding) });
        let held = seat.clone();
        drop(seat);
        assert_eq!(calls.count(), 1);
        calls.end();
        assert_eq!(held.switch().stopped(), Some(Stop::Server));
        drop(held);
        assert_eq!(calls.count(), 0);
    }
}
