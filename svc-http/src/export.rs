//! Exports of ledgers: looks for what is behind the last record that was taken, and has it delivered.
//!
//! The ledger is followed from outside, by its index: no decision knows of it. What is delivered next, and when, the gate
//! decides (`rules/edge/export.rs`); the outbox makes the calls, one at a time for each export.
//!
//! **Invariant:** nothing is held of a ledger but the record at hand while it is looked through, and one delivery's events while
//! these are sent; of exports, a bounded number.

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use svc_core::engine::Failure;
use svc_core::rules::edge::deliver::find;
use svc_core::rules::edge::export::{AdvanceExport, EXPORT_SPAN_MAX, first, slot};
use svc_core::state::edge::{EventClass, Export, Integration, IntegrationConfig, Job, JobState, Work};
use svc_core::state::evidence::Entry;
use svc_core::store::{Key, Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::{EvidenceId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::evidence::altered;
use svc_store::{Gate, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use crate::ops;
use crate::shards::{Missed, Shards, readable};
use crate::supervised::supervise;
use crate::wire::{evidence, ocsf};

/// How often ledgers are looked at: what happens meanwhile goes together. After a full delivery the next one is not waited for.
const PERIOD: Duration = Duration::from_secs(1);
/// Events of one delivery.
pub(crate) const EVENTS_MAX: usize = 100;
/// Bytes of one delivery; a record that is longer goes alone.
const BYTES_MAX: usize = 1 << 20;
/// Records that are passed over before that is written down: until then they are looked through again.
const PASSED_MIN: u64 = 256;
/// Records that are read together.
const PAGE: usize = 128;
/// Exports that one look takes from one shard together.
const LISTED: usize = 256;
/// Exports that are looked at side by side.
const RUNNING_MAX: usize = 8;
/// Exports that wait for that; the others are found again.
const HELD_MAX: usize = 4_096;

/// The follower of a running server.
#[derive(Debug)]
pub(crate) struct Exports {
    task: JoinHandle<()>,
}

impl Exports {
    /// Follows the ledgers of `gate` that are exported. Needs a Tokio runtime.
    pub(crate) fn start(gate: Gate) -> Self {
        let task = supervise("exports", move |_| {
            let (waiting, held, running) = (VecDeque::new(), BTreeSet::new(), JoinSet::new());
            let follower = Follower { gate: gate.clone(), waiting, held, running, shards: Shards::default() };
            follower.run()
        });
        Self { task }
    }
}

/// A server that stops has nothing more delivered: what it had found is found again.
impl Drop for Exports {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Which deliveries are made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    /// Whatever there is.
    Any,
    /// Only one that is full: what comes meanwhile is gathered.
    Full,
}

struct Follower {
    gate: Gate,
    waiting: VecDeque<(WorkspaceId, Take)>,
    /// Those that wait or are looked at.
    held: BTreeSet<WorkspaceId>,
    running: JoinSet<(WorkspaceId, bool)>,
    shards: Shards,
}

impl Follower {
    async fn run(mut self) {
        let mut changes = self.gate.changes();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while self.running.len() < RUNNING_MAX
                && let Some((workspace, take)) = self.waiting.pop_front()
            {
                self.running.spawn(go_on(self.gate.clone(), workspace, take));
            }
            tokio::select! {
                Some(done) = self.running.join_next() => match done {
                    Ok((workspace, more)) => {
                        self.held.remove(&workspace);
                        if more {
                            self.hold(workspace, Take::Full);
                        }
                    }
                    // One that panicked has told so; which it was nobody knows, and each is found again.
                    Err(_) => self.held = self.waiting.iter().map(|it| it.0).collect(),
                },
                change = changes.recv() => match change {
                    Ok(change) => change.keys.iter().for_each(|key| self.hear(key)),
                    // Whatever was missed is looked for before long.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
                _ = ticks.tick() => self.look(),
            }
        }
    }

    fn hold(&mut self, workspace: WorkspaceId, take: Take) {
        if self.held.len() < HELD_MAX && self.held.insert(workspace) {
            self.waiting.push_back((workspace, take));
        }
    }

    /// A delivery was taken: where there is as much again, that follows at once.
    fn hear(&mut self, key: &Key) {
        let Key::Job(id) = key else { return };
        match self.gate.read(|scope| find(scope, *id)) {
            Ok(Some(job)) => {
                if let (Work::Export { .. }, JobState::Delivered { .. }) = (&job.work, job.state) {
                    self.hold(job.workspace, Take::Full);
                }
            }
            Ok(None) => {}
            Err(failure) => tracing::debug!(%failure, "a delivery could not be read"),
        }
    }

    /// Looks over all shards for exports that may go on.
    fn look(&mut self) {
        let mut shards = std::mem::take(&mut self.shards);
        shards.look("exports that may go on cannot be looked for", |shard| self.look_at(shard));
        self.shards = shards;
    }

    fn look_at(&mut self, shard: u128) -> Result<(), Missed> {
        let mut range = Range::all(Index::Exports, shard, LISTED);
        let mut missed = None;
        while self.held.len() < HELD_MAX {
            let page = self.gate.scan_each(&range)?;
            let next = page.last().filter(|_| page.len() == LISTED).map(|last| (last.order, last.key));
            for found in readable(page, &mut missed) {
                if let Some(export) = found.row.record.as_ref().and_then(Export::peel) {
                    self.hold(export.workspace, Take::Any);
                }
            }
            if next.is_none() {
                break;
            }
            range.after = next;
        }
        missed.map_or(Ok(()), Err)
    }
}

/// Has an export go on, and says whether there is more to look through at once.
async fn go_on(gate: Gate, workspace: WorkspaceId, take: Take) -> (WorkspaceId, bool) {
    let reader = gate.clone();
    let found = match spawn_blocking(move || next(&reader, workspace, take)).await {
        Ok(Ok(found)) => found,
        Ok(Err(failure)) => {
            ops::log(&failure);
            return (workspace, false);
        }
        // It has told so.
        Err(_panicked) => return (workspace, false),
    };
    let Some(found) = found else { return (workspace, false) };
    let more = !found.sends;
    if let Err(failure) = gate.submit(found).await {
        ops::log(&failure);
        return (workspace, false);
    }
    (workspace, more)
}

/// What an export does next, if there is anything.
fn next(gate: &Gate, workspace: WorkspaceId, take: Take) -> Result<Option<AdvanceExport>, Failure<StoreError>> {
    let slot = slot(workspace);
    let found = gate.read(|scope| {
        scope.want(&[Export::key(workspace), Integration::key(slot)])?;
        let Some(export) = scope.get::<Export>(workspace)?.filter(|it| it.runs && it.job.is_none()) else {
            return Ok(None);
        };
        let from = first(scope, &export)?;
        Ok(from.zip(scope.get::<Integration>(slot)?))
    })?;
    let Some((from, integration)) = found else { return Ok(None) };
    let IntegrationConfig::Export(config) = &integration.config else { return Ok(None) };
    if config.url.is_none() {
        return Ok(None);
    }
    let classes = config.classes.clone();
    let mut found = Found { bytes: 2, ..Found::default() };
    let to = from.saturating_add(EXPORT_SPAN_MAX);
    let is_whole = each(gate, workspace, (from, to), |entry| found.take(entry, &classes))?;
    let (Some((last, next)), sends) = (found.last, found.events > 0) else { return Ok(None) };
    let is_full = found.is_full || (is_whole && next == to);
    let passed = next.saturating_sub(from);
    let is_due = if sends { is_full || take == Take::Any } else { is_full || passed >= PASSED_MIN };
    Ok(is_due.then_some(AdvanceExport { workspace, from, last, classes, sends }))
}

/// A delivery as it is gathered.
#[derive(Debug, Default)]
struct Found {
    /// The last record that belongs to it, and the place behind that.
    last: Option<(EvidenceId, u64)>,
    events: usize,
    bytes: usize,
    is_full: bool,
}

impl Found {
    fn take(&mut self, entry: &Entry, classes: &[EventClass]) -> Result<ControlFlow<()>, StoreError> {
        let Some(place) = &entry.place else { return Ok(ControlFlow::Break(())) };
        if let Some(event) = event(entry, classes)? {
            let bytes = self.bytes.saturating_add(event.len()).saturating_add(1);
            self.is_full = self.events == EVENTS_MAX || (self.events > 0 && bytes > BYTES_MAX);
            if self.is_full {
                return Ok(ControlFlow::Break(()));
            }
            self.events = self.events.saturating_add(1);
            self.bytes = bytes;
        }
        self.last = Some((entry.id, place.seq.saturating_add(1)));
        Ok(ControlFlow::Continue(()))
    }
}

/// The event of a record, where it is asked for. One that cannot be written ends the delivery, which goes on with it once it can be: what
/// receives these has nothing else by which to know that one is missing.
fn event(entry: &Entry, classes: &[EventClass]) -> Result<Option<String>, StoreError> {
    let is_asked = classes.is_empty() || classes.contains(&ocsf::class_of(&entry.kind));
    if is_asked { ocsf::event(entry).map(Some).ok_or_else(|| evidence::unwritten(entry)) } else { Ok(None) }
}

/// Shows the records of these places, one after the other; whether all of them were seen. One that is not at its place is a failure.
fn each(
    gate: &Gate,
    workspace: WorkspaceId,
    (from, to): (u64, u64),
    mut see: impl FnMut(&Entry) -> Result<ControlFlow<()>, StoreError>,
) -> Result<bool, Failure<StoreError>> {
    let all = Range::all(Index::LedgerOf, workspace.bits(), PAGE);
    let mut next = from;
    loop {
        let page = gate.records(&Range { from: next.into(), until: to.into(), ..all.clone() })?;
        for entry in &page {
            if entry.place.as_ref().is_none_or(|it| it.seq != next) {
                return Err(Failure::Load(altered(workspace, next)));
            }
            next = next.saturating_add(1);
            if see(entry).map_err(Failure::Load)?.is_break() {
                return Ok(false);
            }
        }
        if page.len() < PAGE {
            return Ok(true);
        }
    }
}

/// The body of an export's delivery: the events of its records, the same at every try. `None` where they cannot be read.
pub(crate) async fn body(gate: &Gate, job: &Arc<Job>) -> Option<Vec<u8>> {
    let (gate, job) = (gate.clone(), Arc::clone(job));
    let written = spawn_blocking(move || {
        let Work::Export { from, to, classes, .. } = &job.work else { return Ok(None) };
        let mut body = vec![b'['];
        let mut next = *from;
        each(&gate, job.workspace, (*from, *to), |entry| {
            next = entry.place.as_ref().map_or(next, |it| it.seq.saturating_add(1));
            if let Some(event) = event(entry, classes)? {
                if body.len() > 1 {
                    body.push(b',');
                }
                body.extend_from_slice(event.as_bytes());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        body.push(b']');
        // What is sent is all of it, or nothing.
        Ok::<_, Failure<StoreError>>((next == *to).then_some(body))
    });
    match written.await {
        Ok(Ok(body)) => body,
        Ok(Err(failure)) => {
            ops::log(&failure);
            None
        }
        Err(_panicked) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use svc_core::state::people::Settings as WorkspaceSettings;
    use svc_core::store::MemoryStore;
    use svc_core::testing::world::World;
    use svc_store::{Settings, with_causes};

    use super::*;

    /// A record that cannot be written, or is not there, is passed over by no delivery: it ends the look, and is named.
    #[test]
    fn no_record_is_passed_over() {
        let store = MemoryStore::new();
        let mut world = World::over(store.clone(), WorkspaceSettings::default());
        world.agent().register();
        let (workspace, clock, signer) =
            (world.workspace(), world.clock().clone(), Arc::clone(world.engine().signer()));
        let mut settings = Settings::default();
        settings.timers = false;
        let gate = Gate::over(store, clock, signer, settings).unwrap();
        gate.tick().unwrap();
        let records = gate.records(&Range::all(Index::LedgerOf, workspace.bits(), 9)).unwrap();
        let look = || {
            let mut found = Found { bytes: 2, ..Found::default() };
            let looked = each(&gate, workspace, (0, 100), |entry| found.take(entry, &[]));
            looked.map(|_| found.events).map_err(|failure| with_causes(&failure))
        };
        assert_eq!(look(), Ok(records.len()));
        let first = records[0].id;
        world.edit::<Entry>(first, |it| it.data = r#"{"amount":1e999}"#.into());
        let told = look().unwrap_err();
        assert!(told.contains(&format!("record {first} of the ledger of {workspace}")), "{told}");
        world.edit::<Entry>(first, |it| it.place = None);
        let told = look().unwrap_err();
        assert!(told.contains(&format!("record 0 of the ledger of {workspace}")), "{told}");
    }
}
