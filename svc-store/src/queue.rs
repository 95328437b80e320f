//! The queue before a lane: what waits to be decided, and who decides it.
//!
//! A lane whose store waits for something has a thread, which takes what is queued. Any other has none: whoever would wake it does its
//! work, and that of all who queue more meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use svc_core::command::Command;
use svc_core::engine::Failure;
use svc_core::refusal::Refusal;
use tokio::sync::oneshot;

use crate::error::{StoreError, caught};
use crate::lane::Outcome;
use crate::parking::ENOUGH;

/// How many batches in a row a thread decides for others before another one is made for that.
const SHARE_MAX: usize = 64;

/// A command in the queue, and who waits for it.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) waits: oneshot::Sender<Outcome>,
}

/// What a lane does when a job is queued for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sleeps {
    /// It is at work, or woken already, and comes for the job by itself.
    No,
    /// It has to be woken, and more may be queued before.
    WithLittleToDo,
    /// It has to be woken now.
    WithEnoughToDo,
}

/// The queue before a lane.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Condvar,
    limit: usize,
    /// The lane, where it has no thread: whoever would wake it does its work.
    here: Option<Box<dyn Here>>,
}

/// A lane without a thread.
pub(crate) trait Here: Send + Sync {
    /// Decides a batch, on this thread. One at a time does.
    fn serve(&self, batch: Vec<Job>);
    /// How many commands a batch has at most.
    fn batch_max(&self) -> usize;
    /// The lane has broken down: nobody decides for it any more.
    fn broke_down(&self);
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    idle: bool,
    closed: bool,
    worker: Worker,
}

/// Who does the work of a lane that has no thread, at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Worker {
    #[default]
    Nobody,
    /// Somebody who queued some of it.
    Asker(ThreadId),
    /// A thread that was made for it, once it has begun.
    Relief(Option<ThreadId>),
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: Mutex::default(), filled: Condvar::new(), limit, here: None }
    }

    /// The same before a lane that has no thread.
    pub(crate) fn before(lane: Box<dyn Here>, limit: usize) -> Self {
        let queue = Self::new(limit);
        queue.lock().idle = true;
        Self { here: Some(lane), ..queue }
    }

    /// Puts a job behind the others. Gives whether the lane sleeps and has to be woken, once or later.
    ///
    /// # Errors
    /// The queue is full, or closed.
    pub(crate) fn push(&self, job: Job) -> Result<Sleeps, Failure<StoreError>> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Failure::Load(StoreError::Closed));
        }
        if waiting.jobs.len() >= self.limit {
            return Err(Failure::Refused(Refusal::not_ready()));
        }
        waiting.jobs.push_back(job);
        Ok(match (waiting.idle, waiting.jobs.len() >= ENOUGH) {
            (false, _) => Sleeps::No,
            (true, false) => Sleeps::WithLittleToDo,
            (true, true) => Sleeps::WithEnoughToDo,
        })
    }

    /// Wakes the lane, if it sleeps while there is work. Where it has no thread, this one does its work until nothing waits, or until
    /// it has done its share.
    pub(crate) fn wake(self: &Arc<Self>) {
        let mut waiting = self.lock();
        if waiting.jobs.is_empty() || !std::mem::take(&mut waiting.idle) {
            return;
        }
        let Some(lane) = self.here.as_deref() else {
            drop(waiting);
            return self.filled.notify_one();
        };
        waiting.worker = Worker::Asker(thread::current().id());
        drop(waiting);
        if self.work(lane, SHARE_MAX) {
            return;
        }
        // Others queue work as fast as it is done, and this thread has its own to go on with: one is made that has none.
        let queue = Arc::clone(self);
        self.lock().worker = Worker::Relief(None);
        let relief = thread::Builder::new().name("svc-lane".to_owned()).spawn(move || {
            queue.lock().worker = Worker::Relief(Some(thread::current().id()));
            if let Some(lane) = queue.here.as_deref() {
                queue.work(lane, usize::MAX);
            }
        });
        if relief.is_err() {
            self.lock().worker = Worker::Asker(thread::current().id());
            self.work(lane, usize::MAX);
        }
    }

    /// Does the lane's work, so many batches at most. Whoever queues more meanwhile leaves it to this thread. Whether nothing is left.
    fn work(&self, lane: &dyn Here, batches: usize) -> bool {
        for _ in 0..batches {
            let mut waiting = self.lock();
            let count = waiting.jobs.len().min(lane.batch_max());
            if count == 0 {
                (waiting.idle, waiting.worker) = (true, Worker::Nobody);
                drop(waiting);
                self.filled.notify_all();
                return true;
            }
            let batch: Vec<Job> = waiting.jobs.drain(..count).collect();
            drop(waiting);
            if caught(|| lane.serve(batch)).is_err() {
                // Closed and not idle: nobody queues more for it, and nobody wakes it.
                lane.broke_down();
                let mut waiting = self.lock();
                (waiting.closed, waiting.worker) = (true, Worker::Nobody);
                drop(waiting);
                self.filled.notify_all();
                self.refuse();
                return true;
            }
        }
        false
    }

    /// How many jobs wait.
    pub(crate) fn depth(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Takes no more jobs; those that wait are still done, by a lane without a thread before this comes back.
    pub(crate) fn close(self: &Arc<Self>) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.wake();
        let own = thread::current().id();
        let others = |waiting: &mut Waiting| match waiting.worker {
            Worker::Nobody => false,
            Worker::Asker(id) | Worker::Relief(Some(id)) => id != own,
            Worker::Relief(None) => true,
        };
        drop(self.filled.wait_while(self.lock(), others));
    }

    /// Takes no more jobs; those that wait hear that nobody does them.
    pub(crate) fn end(self: &Arc<Self>) {
        self.close();
        self.refuse();
    }

    /// Tells those who wait that nobody does their jobs.
    fn refuse(&self) {
        let left = std::mem::take(&mut self.lock().jobs);
        for job in left {
            let _ = job.waits.send(Err(Failure::Load(StoreError::Closed)));
        }
    }

    /// The next batch, in order; empty when the queue is closed and done.
    pub(crate) fn take(&self, most: usize) -> Vec<Job> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return Vec::new();
            }
            waiting.idle = true;
            waiting = self.filled.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.idle = false;
        let count = waiting.jobs.len().min(most);
        waiting.jobs.drain(..count).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Queue").field("waiting", &self.lock().jobs.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{OnceLock, Weak};

    use svc_core::store::Key;
    use svc_core::value::Id as _;
    use svc_core::value::id::WorkspaceId;

    use super::*;

    /// A lane that sleeps is worth waking at once when so much waits for it; one that is at work comes by itself.
    #[test]
    fn a_lane_is_woken_at_once_for_enough() {
        let queue = Arc::new(Queue::new(1_000));
        let push = || {
            let (waits, _) = oneshot::channel();
            let command = Command::Wake(svc_core::command::Wake(Key::Workspace(WorkspaceId::from_bits(1))));
            queue.push(Job { command, waits }).ok()
        };
        assert_eq!(push(), Some(Sleeps::No), "nobody has slept yet");
        assert_eq!(queue.take(256).len(), 1);
        let taking = Arc::clone(&queue);
        let lane = thread::spawn(move || taking.take(256).len());
        while !queue.lock().idle {
            thread::yield_now();
        }
        for _ in 1..ENOUGH {
            assert_eq!(push(), Some(Sleeps::WithLittleToDo));
        }
        assert_eq!(push(), Some(Sleeps::WithEnoughToDo));
        queue.wake();
        assert_eq!(lane.join().ok(), Some(ENOUGH));
    }

    fn job() -> (Job, oneshot::Receiver<Outcome>) {
        let (waits, outcome) = oneshot::channel();
        let command = Command::Wake(svc_core::command::Wake(Key::Workspace(WorkspaceId::from_bits(1))));
        (Job { command, waits }, outcome)
    }

    /// So many jobs that wait in the queue.
    fn queued(queue: &Queue, count: usize) -> Vec<oneshot::Receiver<Outcome>> {
        let queued = (0..count).map(|_| {
            let (job, outcome) = job();
            assert!(queue.push(job).is_ok());
            outcome
        });
        queued.collect()
    }

    /// Counts what it serves, never two batches at once, and breaks down at the first if it is told to.
    #[derive(Default)]
    struct Counts {
        served: AtomicUsize,
        at_work: AtomicBool,
        asked: AtomicUsize,
        breaks: bool,
        broke_down: AtomicBool,
    }

    impl Here for Arc<Counts> {
        fn serve(&self, batch: Vec<Job>) {
            self.asked.fetch_add(1, Ordering::SeqCst);
            assert!(!self.breaks, "it breaks down");
            assert!(!self.at_work.swap(true, Ordering::SeqCst), "two at once");
            assert!(!batch.is_empty() && batch.len() <= self.batch_max());
            for job in batch {
                self.served.fetch_add(1, Ordering::SeqCst);
                let _ = job.waits.send(Err(Failure::Refused(Refusal::not_found())));
            }
            self.at_work.store(false, Ordering::SeqCst);
        }

        fn batch_max(&self) -> usize {
            8
        }

        fn broke_down(&self) {
            self.broke_down.store(true, Ordering::SeqCst);
        }
    }

    /// Of many threads that queue work for a lane without a thread one at a time does it, and none of it is left.
    #[test]
    fn whoever_asks_does_the_work_of_all() {
        let lane = Arc::new(Counts::default());
        let queue = Arc::new(Queue::before(Box::new(Arc::clone(&lane)), 10_000));
        let ask = || {
            for _ in 0..100 {
                let (job, outcome) = job();
                assert!(matches!(queue.push(job), Ok(Sleeps::No | Sleeps::WithLittleToDo | Sleeps::WithEnoughToDo)));
                queue.wake();
                assert!(matches!(outcome.blocking_recv(), Ok(Err(Failure::Refused(_)))));
            }
        };
        thread::scope(|scope| (0..16).for_each(|_| drop(scope.spawn(ask))));
        assert_eq!(lane.served.load(Ordering::SeqCst), 1_600);
    }

    /// What was queued and left for later is done where the queue is closed, and nothing is taken after it.
    #[test]
    fn what_waits_is_done_at_the_end() {
        let lane = Arc::new(Counts::default());
        let queue = Arc::new(Queue::before(Box::new(Arc::clone(&lane)), 100));
        let outcomes = queued(&queue, 20);
        queue.close();
        assert_eq!(lane.served.load(Ordering::SeqCst), 20);
        assert!(outcomes.into_iter().all(|it| matches!(it.blocking_recv(), Ok(Err(Failure::Refused(_))))));
        assert!(matches!(queue.push(job().0), Err(Failure::Load(StoreError::Closed))));
    }

    /// A lane without a thread that breaks down says so, leaves nobody waiting, and harms nobody who asked it.
    #[test]
    fn a_lane_that_breaks_down_leaves_nobody_waiting() {
        let lane = Arc::new(Counts { breaks: true, ..Counts::default() });
        let queue = Arc::new(Queue::before(Box::new(Arc::clone(&lane)), 100));
        let outcomes = queued(&queue, 20);
        queue.wake();
        assert!(lane.broke_down.load(Ordering::SeqCst));
        assert_eq!(lane.asked.load(Ordering::SeqCst), 1, "it is not asked again");
        // Those of the batch that broke it are told by their channels, the others that nobody decides any more.
        let told: Vec<_> = outcomes.into_iter().map(oneshot::Receiver::blocking_recv).collect();
        let (broken, others) = told.split_at(lane.batch_max());
        assert!(broken.iter().all(Result::is_err));
        assert!(others.iter().all(|it| matches!(it, Ok(Err(Failure::Load(StoreError::Closed))))));
        assert!(matches!(queue.push(job().0), Err(Failure::Load(StoreError::Closed))));
        queue.wake();
        queue.end();
        assert_eq!(lane.asked.load(Ordering::SeqCst), 1);
    }

    /// Queues a job more with each batch, so many times.
    #[derive(Default)]
    struct Feeds {
        queue: OnceLock<Weak<Queue>>,
        left: AtomicUsize,
        threads: Mutex<Vec<ThreadId>>,
    }

    impl Here for Arc<Feeds> {
        fn serve(&self, batch: Vec<Job>) {
            assert_eq!(batch.len(), 1);
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread::current().id());
            let more = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1));
            if let (Ok(_), Some(queue)) = (more, self.queue.get().and_then(Weak::upgrade)) {
                assert!(queue.push(job().0).is_ok());
            }
        }

        fn batch_max(&self) -> usize {
            8
        }

        fn broke_down(&self) {}
    }

    /// Whoever decides for others goes on with its own after a while, however much they queue, and a lane that closes waits for
    /// whoever decides for it then.
    #[test]
    fn nobody_decides_for_others_for_ever() {
        let lane = Arc::new(Feeds::default());
        let queue = Arc::new(Queue::before(Box::new(Arc::clone(&lane)), 100));
        assert!(lane.queue.set(Arc::downgrade(&queue)).is_ok());
        lane.left.store(10 * SHARE_MAX, Ordering::SeqCst);
        assert!(queue.push(job().0).is_ok());
        queue.wake();
        while queue.lock().worker != Worker::Nobody {
            thread::yield_now();
        }
        queue.close();
        let threads = lane.threads.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let own = threads.iter().filter(|it| **it == thread::current().id()).count();
        assert_eq!((own, threads.len()), (SHARE_MAX, 10 * SHARE_MAX + 1));
    }
}
