//! The calls that run on this server, so that a freeze cuts them, the end of the key that began them, and the server's own end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_core::rules::gate::hold::held_by;
use svc_core::rules::gateway::payer::{CallKey, hangs_on, was_taken};
use svc_core::state::gate::Agent;
use svc_core::state::people::Workspace;
use svc_core::store::Key;
use svc_core::turn::{Halt, Scope};
use svc_core::value::digest::CredentialId;
use svc_store::{Change, Changes, Gate};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use crate::supervised::supervise;
use crate::upstream::{Stop, Switch};

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOf {
    /// A model.
    Model,
    /// A tool of an MCP server.
    Tool,
}

/// The calls that run here.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    next: AtomicU64,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    running: HashMap<u64, Running>,
    /// Whether the server has no more time for any.
    ended: bool,
    /// Whether it is being looked up what some hang on.
    is_learning: bool,
}

/// A call that runs.
#[derive(Clone, Debug)]
struct Running {
    /// What it calls.
    of: CallOf,
    /// The key that it came with.
    owner: CallKey,
    switch: Arc<Switch>,
    /// The rows of keys and people that its key hangs on, once they have been looked up.
    hangs_on: Option<Arc<[Key]>>,
}

impl Running {
    /// Whether one of these rows may say that it is to end. Of a call of which nobody has looked up yet what its key hangs on, any of
    /// a key or a person may.
    fn is_touched(&self, change: &Change) -> bool {
        let is_of = |key: &Key| match key {
            Key::Agent(id) => self.owner.agent() == Some(*id),
            Key::Workspace(id) => self.owner.binding.workspace == *id,
            // A key ends with those above it and with people whom it does not name.
            Key::Credential(_) | Key::Principal(_) => self.hangs_on.as_ref().is_none_or(|it| it.contains(key)),
            _ => false,
        };
        // A command beside this one server may have stopped anybody, and that is told once.
        change.any || change.keys.iter().any(is_of)
    }
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
    pub(in crate::ops) fn enter(self: &Arc<Self>, of: CallOf, key: &CallKey) -> Seat {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let switch = Arc::new(Switch::default());
        let mut calls = self.held();
        if calls.ended {
            switch.cut(Stop::Server);
        }
        let running = Running { of, owner: key.clone(), switch: Arc::clone(&switch), hangs_on: None };
        calls.running.insert(number, running);
        drop(calls);
        Seat(Arc::new(Place { calls: Arc::clone(self), number, switch }))
    }

    /// How many there are of this.
    pub(crate) fn count(&self, of: CallOf) -> usize {
        self.held().running.values().filter(|it| it.of == of).count()
    }

    /// Cuts every call, and those that begin from now on: the server stops, and its time is up.
    pub(crate) fn end(&self) {
        let mut calls = self.held();
        calls.ended = true;
        calls.running.values().for_each(|it| it.switch.cut(Stop::Server));
    }

    /// What was held when somebody panicked is whole: a call is in it or not.
    fn held(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches for as long as the gate is there, whatever becomes of one who does: a freeze that nobody hears of cuts nothing.
    pub(crate) fn watched(self: Arc<Self>, gate: Gate) -> JoinHandle<()> {
        let mut heard = Some(gate.changes());
        supervise("the end of calls", move |_| {
            // One that is begun again may have missed anything.
            let missed = heard.is_none();
            let changes = heard.take().unwrap_or_else(|| gate.changes());
            Arc::clone(&self).watch(gate.clone(), changes, missed)
        })
    }

    /// Cuts the calls of whoever is stopped, as rows change; ends when the gate does. `missed` says that some changes were told to nobody.
    async fn watch(self: Arc<Self>, gate: Gate, mut changes: Changes, missed: bool) {
        // When a look began that told of all calls, where others may stop them: then it is looked once a second.
        let mut sure = None::<Instant>;
        if missed {
            self.cut_stopped(&gate, |_| true, true, Instant::now() + BLIND).await;
        }
        let mut looks = interval(LEARN);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                _ = looks.tick() => {
                    self.learn(&gate);
                    continue;
                }
            };
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
                Ok(change) => drop(self.cut_stopped(&gate, |it| it.is_touched(&change), true, until).await),
                // What was missed could have been anything.
                Err(RecvError::Lagged(_)) => drop(self.cut_stopped(&gate, |_| true, true, until).await),
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Cuts the calls of those who are stopped among whom `touched` means, and where `unsure`, of those too whose rows cannot be read;
    /// of all whom it means where nothing is heard until `until`. Whether all could be read, or no call is left of which nobody knows.
    async fn cut_stopped(
        self: &Arc<Self>,
        gate: &Gate,
        touched: impl Fn(&Running) -> bool,
        unsure: bool,
        until: Instant,
    ) -> bool {
        let calls: Vec<(u64, Running)> = {
            let calls = self.held();
            let all = calls.running.iter().filter(|(_, it)| touched(it));
            all.map(|(number, it)| (*number, it.clone())).collect()
        };
        if calls.is_empty() {
            return true;
        }
        let (own, gate, silenced) = (Arc::clone(self), gate.clone(), calls.clone());
        // Reading blocks; the answers that are cut wait for nothing else.
        let cut = tokio::task::spawn_blocking(move || {
            let mut known: HashMap<CredentialId, Option<Looked>> = HashMap::new();
            for (number, it) in calls {
                let look = || gate.read(|scope| Looked::up(scope, &it.owner)).ok();
                match known.entry(it.owner.row).or_insert_with(look) {
                    Some(Looked { stop: Some(stop), .. }) => it.switch.cut(*stop),
                    Some(Looked { stop: None, hangs_on }) => own.note(number, hangs_on),
                    None if unsure => it.switch.cut(Stop::Agent),
                    None => {}
                }
            }
            known.values().all(Option::is_some)
        });
        match timeout_at(until, cut).await {
            Ok(Ok(is_sure)) => is_sure || unsure,
            Ok(Err(error)) => {
                tracing::error!(%error, "whether running calls may go on could not be looked up");
                if unsure {
                    silenced.iter().for_each(|(_, it)| it.switch.cut(Stop::Agent));
                }
                unsure
            }
            Err(_) => {
                tracing::warn!("whether running calls may go on is not to be learned: they are cut");
                silenced.iter().for_each(|(_, it)| it.switch.cut(Stop::Agent));
                true
            }
        }
    }

    /// Looks up what the keys of calls hang on that have run for a while: so a change of somebody else's key is none of theirs, also
    /// where the store does not answer by then. Whoever is stopped meanwhile is told of as a change.
    fn learn(self: &Arc<Self>, gate: &Gate) {
        let mut calls = self.held();
        let unknown = calls.running.iter().filter(|(_, it)| it.hangs_on.is_none());
        let unknown: Vec<_> = unknown.map(|(number, it)| (*number, it.owner.clone())).collect();
        if unknown.is_empty() || calls.is_learning {
            return;
        }
        calls.is_learning = true;
        drop(calls);
        let (own, gate) = (Arc::clone(self), gate.clone());
        tokio::task::spawn_blocking(move || {
            let _learning = Learning(Arc::clone(&own));
            for (number, owner) in unknown {
                // A store that does not answer is asked again before long.
                let Ok(keys) = gate.read(|scope| hangs_on(scope, &owner)) else { return };
                // What was looked up since, for a change, is newer.
                if let Some(it) = own.held().running.get_mut(&number) {
                    it.hangs_on.get_or_insert_with(|| keys.into());
                }
            }
        });
    }

    /// Notes what a call's key hangs on.
    fn note(&self, number: u64, keys: &Arc<[Key]>) {
        if let Some(it) = self.held().running.get_mut(&number) {
            it.hangs_on = Some(Arc::clone(keys));
        }
    }
}

/// While it is looked up what calls hang on: one look at a time.
struct Learning(Arc<RunningCalls>);

impl Drop for Learning {
    fn drop(&mut self) {
        self.0.held().is_learning = false;
    }
}

/// How often it is looked up what calls hang on of which nobody knows: most have ended by then.
const LEARN: Duration = Duration::from_secs(1);
/// So long after the last look that told calls may go on of which nobody can tell whether another server has stopped them.
const BLIND: Duration = Duration::from_secs(5);
/// Looks come a second apart, and not to the millisecond: one that is so little early is the last.
const LOOK_EARLY: Duration = Duration::from_millis(500);
/// How long a look waits for the database at least.
const LOOK_MIN: Duration = Duration::from_secs(1);

/// What a look at somebody's rows has told.
struct Looked {
    /// Why calls of theirs are not to go on, where they are not.
    stop: Option<Stop>,
    /// What their key hangs on.
    hangs_on: Arc<[Key]>,
}

impl Looked {
    fn up(scope: &mut Scope<'_>, owner: &CallKey) -> Result<Self, Halt> {
        Ok(Self { stop: who_stopped(scope, owner)?, hangs_on: hangs_on(scope, owner)?.into() })
    }
}

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
    use svc_core::rules::people::by::By;
    use svc_core::rules::people::keys::{CreateKey, NewKey};
    use svc_core::state::people::{Binding, KeyScope, Settings as WorkspaceSettings};
    use svc_core::store::MemoryStore;
    use svc_core::testing::world::World;
    use svc_core::value::Id as _;
    use svc_core::value::digest::Digest;
    use svc_core::value::id::{KeyId, PrincipalId, WorkspaceId};
    use svc_store::Settings;

    use super::*;

    /// A call is among those that run until all who have its place have let go of it: one may hold its end while another tells it.
    #[test]
    fn a_place_is_kept_while_anybody_has_it() {
        let calls = Arc::new(RunningCalls::default());
        let seat = calls.enter(CallOf::Tool, &key_in(1, "a key"));
        let held = seat.clone();
        drop(seat);
        assert_eq!((calls.count(CallOf::Tool), calls.count(CallOf::Model)), (1, 0), "each is told of by itself");
        calls.end();
        assert_eq!(held.switch().stopped(), Some(Stop::Server));
        drop(held);
        assert_eq!(calls.count(CallOf::Tool), 0);
    }

    /// A key for traffic of this workspace.
    fn key_in(workspace: u128, text: &str) -> CallKey {
        let binding = Binding {
            key: KeyId::from_bits(1),
            workspace: WorkspaceId::from_bits(workspace),
            scope: KeyScope::Inference,
            principal: PrincipalId::from_bits(1),
            team: None,
            task_class: None,
            profile: None,
            task_class_open: false,
            connection: None,
        };
        CallKey { row: CredentialId::of(&[Digest::of(text).as_bytes()]), binding: Arc::new(binding) }
    }

    /// What is changed of a key or a person touches the calls whose keys hang on it, and those of which nobody has looked that up yet;
    /// a key that is made in one workspace is nothing of another's calls.
    #[test]
    fn a_change_touches_what_hangs_on_it() {
        let calls = Arc::new(RunningCalls::default());
        let (own, other) = (key_in(1, "own"), key_in(2, "other"));
        let _seat = calls.enter(CallOf::Model, &own);
        let is_touched = |key: Key, any| {
            let change = Change { keys: Arc::new([key]), any };
            calls.held().running.values().all(|it| it.is_touched(&change))
        };
        let made = Key::Credential(other.row);
        assert!(is_touched(made, false), "nobody knows yet what it hangs on");
        let person = Key::Principal(PrincipalId::from_bits(7));
        calls.note(0, &Arc::from([Key::Credential(own.row), person]));
        assert!(!is_touched(made, false) && !is_touched(Key::Principal(PrincipalId::from_bits(8)), false));
        assert!(is_touched(Key::Credential(own.row), false) && is_touched(person, false) && is_touched(made, true));
        assert!(is_touched(Key::Workspace(WorkspaceId::from_bits(1)), false));
        assert!(!is_touched(Key::Workspace(WorkspaceId::from_bits(2)), false));
    }

    /// A watch that is begun again looks at all calls: what was stopped while nobody watched is cut, and nothing else.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_watch_that_is_begun_again_has_missed_nothing() {
        let store = MemoryStore::new();
        let mut world = World::over(store.clone(), WorkspaceSettings::default());
        let workspace = world.workspace();
        let [stopped, other] = [1, 2].map(|n| {
            let agent = world.agent().register().agent;
            let key = NewKey::of(&format!("ask_{n:043}"));
            let made = world.run(CreateKey::new(workspace, By::Program, KeyScope::Agent(agent), key)).unwrap();
            (agent, CallKey { row: made.id, binding: Arc::new(made.binding.clone()) })
        });
        world.freeze(stopped.0);
        let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
        let mut settings = Settings::default();
        settings.timers = false;
        let gate = Gate::over(store, clock, signer, settings).unwrap();
        let calls = Arc::new(RunningCalls::default());
        let [seat, goes_on] = [&stopped.1, &other.1].map(|key| calls.enter(CallOf::Model, key));
        let watching = tokio::spawn(Arc::clone(&calls).watch(gate.clone(), gate.changes(), true));
        let cut = tokio::time::timeout(Duration::from_secs(20), async { seat.switch().cut_off().await }).await;
        assert_eq!((cut, goes_on.switch().stopped()), (Ok(Stop::Agent), None));
        watching.abort();
    }
}
