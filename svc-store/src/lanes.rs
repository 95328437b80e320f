//! The lanes of a gate: started together, stopped together, each with its own thread and queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use svc_core::command::Command;
use svc_core::engine::Failure;
use svc_core::store::{Clock, Store};
use svc_core::turn::Rows;
use svc_core::value::id::WorkspaceId;
use svc_core::value::{Id as _, Timestamp};
use tokio::sync::oneshot;

use crate::backend::Backend;
use crate::error::StoreError;
use crate::gate::Settings;
use crate::health::Health;
use crate::lane::{Lane, Outcome, Sees};
use crate::lasting::Lasting;
use crate::parking;
use crate::queue::{Here, Job, Queue, Sleeps};

/// The lanes' queues, for whoever hands in work.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// The process whose threads these are: one that was forked off it has none of them, and nobody would ever answer there.
    process: u32,
    queues: Vec<Arc<Queue>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Lanes {
    /// Starts a thread for each writer that the backend has.
    pub(crate) fn start<B: Backend>(
        backend: &B,
        clock: &Arc<dyn Clock + Send + Sync>,
        sees: &Sees,
        settings: &Settings,
    ) -> Result<Self, StoreError> {
        let mut lanes = Self { process: std::process::id(), queues: Vec::new(), threads: Mutex::default() };
        let count = backend.lanes().max(1);
        for number in 0..count {
            let lane = Lane {
                store: backend.writer().map_err(StoreError::of)?,
                clock: Arc::clone(clock),
                sees: sees.clone(),
                batch_max: settings.batch_max.max(1),
                rows: Rows::new(settings.rows_kept),
                last: Timestamp::default(),
                anew: 0,
                places: count == 1 && !backend.is_shared(),
                troubles: Lasting::default(),
            };
            if !backend.waits() {
                let health = Arc::clone(&sees.health);
                let at_hand = AtHand { batch_max: lane.batch_max, lane: Mutex::new(lane), health };
                lanes.queues.push(Arc::new(Queue::before(Box::new(at_hand), settings.queue_max.max(1))));
                continue;
            }
            let queue = Arc::new(Queue::new(settings.queue_max.max(1)));
            let mut lane = lane;
            let closing = Closing { queue: Arc::clone(&queue), health: Arc::clone(&sees.health) };
            let thread = std::thread::Builder::new()
                .name(format!("svc-lane-{number}"))
                .spawn(move || lane.run(&closing.queue))
                .map_err(|cause| StoreError::Thread(Arc::new(cause)))?;
            lanes.queues.push(queue);
            lanes.threads.get_mut().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(lanes)
    }

    /// Queues a command; its outcome comes once it is durable.
    pub(crate) fn submit(&self, command: Command) -> Result<oneshot::Receiver<Outcome>, Failure<StoreError>> {
        self.queue(command, |_| false)
    }

    /// The same, but where this thread tells when it sleeps, the lane is woken then at the latest.
    pub(crate) fn submit_before_park(
        &self,
        command: Command,
    ) -> Result<oneshot::Receiver<Outcome>, Failure<StoreError>> {
        self.queue(command, parking::owe)
    }

    fn queue(
        &self,
        command: Command,
        later: impl FnOnce(&Arc<Queue>) -> bool,
    ) -> Result<oneshot::Receiver<Outcome>, Failure<StoreError>> {
        if std::process::id() != self.process {
            return Err(Failure::Load(StoreError::Closed));
        }
        let (waits, outcome) = oneshot::channel();
        let queue = self.queue_for(&command)?;
        match queue.push(Job { command, waits })? {
            Sleeps::No => {}
            Sleeps::WithLittleToDo if later(queue) => {}
            Sleeps::WithLittleToDo | Sleeps::WithEnoughToDo => queue.wake(),
        }
        Ok(outcome)
    }

    /// How many commands wait for each lane.
    pub(crate) fn depths(&self) -> Vec<usize> {
        self.queues.iter().map(|queue| queue.depth()).collect()
    }

    /// Takes no more commands, does those that wait, and ends the threads.
    pub(crate) fn close(&self) {
        self.queues.iter().for_each(|queue| queue.close());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // One that panicked has told so itself, and whoever waited for it has been told.
            let _ = thread.join();
        }
    }

    /// One workspace's commands meet in one lane, where they see each other's rows. Another choice would conflict more often
    /// and decide the same.
    fn queue_for(&self, command: &Command) -> Result<&Arc<Queue>, Failure<StoreError>> {
        let lanes = u128::try_from(self.queues.len()).unwrap_or(1).max(1);
        let at = workspace_of(command).map_or(0, |id| id.bits() % lanes);
        let queue = usize::try_from(at).ok().and_then(|at| self.queues.get(at));
        queue.ok_or(Failure::Load(StoreError::Closed))
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.close();
    }
}

/// The workspace a command names, where it names one.
#[rustfmt::skip] // one line a command would be more than can be read at once
fn workspace_of(command: &Command) -> Option<WorkspaceId> {
    match command {
        Command::Authorize(it) => Some(it.caller().workspace),
        Command::ReportRun(it) => Some(it.caller.workspace),
        Command::Settle(it) => Some(it.caller.workspace),
        Command::SettleCall(it) => Some(it.caller.workspace),
        Command::ReleaseAction(it) => Some(it.workspace),
        Command::ChangeBudget(it) => Some(it.workspace),
        Command::CreateBudget(it) => Some(it.workspace),
        Command::RaiseBudget(it) => Some(it.workspace),
        Command::RemoveBudget(it) => Some(it.workspace),
        Command::ImportBill(it) => Some(it.workspace),
        Command::AdmitCall(it) => Some(it.caller.binding.workspace),
        Command::RetryCall(it) => Some(it.caller.binding.workspace),
        Command::ReportOutcome(it) => Some(it.caller.binding.workspace),
        Command::Sequence(it) => Some(it.workspace),
        Command::EditRouting(it) => Some(it.workspace),
        Command::StartDrill(it) => Some(it.workspace),
        Command::DecideApproval(it) => Some(it.by.workspace),
        Command::ApproveApplication(it) => Some(it.by.workspace),
        Command::CreateApplication(it) => Some(it.by.workspace),
        Command::DenyApplication(it) => Some(it.by.workspace),
        Command::WithdrawApplication(it) => Some(it.by.workspace),
        Command::SweepClosed(it) => Some(it.workspace),
        Command::SweepJobs(it) => Some(it.workspace),
        Command::SweepOld(it) => Some(it.workspace),
        // Any other names none, or is rare enough for the first lane.
        _ => None,
    }
}

/// A lane without a thread, whose work whoever asks it does.
struct AtHand<S> {
    lane: Mutex<Lane<S>>,
    batch_max: usize,
    health: Arc<Health>,
}

impl<S: Store + Send> Here for AtHand<S> {
    fn serve(&self, batch: Vec<Job>) {
        // One that broke down is not asked again.
        self.lane.lock().unwrap_or_else(PoisonError::into_inner).serve_all(batch);
    }

    fn batch_max(&self) -> usize {
        self.batch_max
    }

    fn broke_down(&self) {
        self.health.ended();
    }
}

/// A lane that ends, however it ends, takes no more work and leaves nobody waiting.
struct Closing {
    queue: Arc<Queue>,
    health: Arc<Health>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.health.ended();
        }
        self.queue.end();
    }
}

#[cfg(test)]
mod tests {
    use svc_core::command::Wake;
    use svc_core::store::Key;

    use super::*;

    /// A lane that ends by a panic answers what is queued for it, and its gate fails from then on.
    #[test]
    fn a_lane_that_panics_leaves_nobody_waiting() {
        let (queue, health) = (Arc::new(Queue::new(8)), Arc::new(Health::default()));
        let push = || {
            let (waits, outcome) = oneshot::channel();
            let command = Command::Wake(Wake(Key::Workspace(WorkspaceId::from_bits(1))));
            queue.push(Job { command, waits }).map(|_| outcome)
        };
        let queued: Vec<_> = (0..3).filter_map(|_| push().ok()).collect();
        let closing = Closing { queue: Arc::clone(&queue), health: Arc::clone(&health) };
        let lane = std::thread::spawn(move || {
            let _closing = closing;
            std::panic::panic_any("a lane panics");
        });
        assert!(lane.join().is_err());
        assert_eq!(queued.len(), 3);
        for outcome in queued {
            assert!(matches!(outcome.blocking_recv(), Ok(Err(Failure::Load(StoreError::Closed)))));
        }
        assert!(matches!(push(), Err(Failure::Load(StoreError::Closed))));
        assert!(health.is_failing(Timestamp::from_millis(i64::MAX)));
    }

    /// In a process that was forked off there is no thread of a lane: whoever asks is told so and waits for nobody.
    #[test]
    fn a_fork_has_no_lanes() {
        let queue = Arc::new(Queue::new(8));
        let process = std::process::id().wrapping_add(1);
        let lanes = Lanes { process, queues: vec![Arc::clone(&queue)], threads: Mutex::default() };
        let command = || Command::Wake(Wake(Key::Workspace(WorkspaceId::from_bits(1))));
        assert!(matches!(lanes.submit(command()), Err(Failure::Load(StoreError::Closed))));
        assert!(matches!(lanes.submit_before_park(command()), Err(Failure::Load(StoreError::Closed))));
        assert_eq!(queue.depth(), 0);
    }
}
