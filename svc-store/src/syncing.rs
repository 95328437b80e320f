//! What a lane has committed becomes durable beside its next batch, many commits at once, and is told only then.
//!
//! The lane commits, hands over what there is to tell, and decides on the rows it has just written; a thread of its own waits
//! for the disk. A lane that has nothing else to do waits for the disk itself: one caller pays for no hand-over.
//!
//! **Invariant:** of a commit nothing is told, neither an answer nor a change nor its instant, and no reader gives out what it
//! read in it, before a sync that began after the commit has succeeded.
//! **Invariant:** after a sync that failed nothing more is decided until one has succeeded.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use svc_core::command::Reply;
use svc_core::engine::Failure;
use svc_core::refusal::Refusal;
use svc_core::store::{CommitError, Key, Stamp};
use svc_core::value::Timestamp;
use tokio::sync::oneshot;

use crate::backend::Durability;
use crate::error::StoreError;
use crate::feed::Feed;
use crate::lane::{Outcome, Queue};
use crate::newest::Newest;

/// How soon a sync that failed is tried again while nobody asks for anything: readers are refused until it succeeds.
const RETRY: Duration = Duration::from_secs(1);

/// What there is to tell of a turn once its commit is durable.
#[derive(Debug)]
pub(crate) struct News {
    /// Who waits, and for what.
    pub(crate) answers: Vec<(oneshot::Sender<Outcome>, Result<Reply, Refusal>)>,
    /// The keys that the commit wrote.
    pub(crate) written: Vec<Key>,
    /// The turn's instant.
    pub(crate) at: Timestamp,
}

/// Where news go.
#[derive(Clone, Debug)]
pub(crate) struct Outlet {
    pub(crate) feed: Arc<Feed>,
    pub(crate) newest: Arc<Newest>,
}

impl Outlet {
    /// Tells of a commit that is durable.
    pub(crate) fn tell(&self, news: News) {
        if !news.written.is_empty() {
            self.newest.see(news.at);
        }
        self.feed.tell(&news.written);
        for (waits, answer) in news.answers {
            // One that has stopped waiting still has its command done.
            let _ = waits.send(answer.map_err(Failure::Refused));
        }
    }
}

/// Between a lane, the thread that waits for the disk, and readers.
#[derive(Debug)]
pub(crate) struct Syncing {
    /// Held over a sync: they come one after the other.
    durability: Mutex<Box<dyn Durability>>,
    state: Mutex<State>,
    /// Something was handed over, or failed, or it is over.
    handed: Condvar,
    /// A sync ended.
    ended: Condvar,
    queue: Arc<Queue>,
    outlet: Outlet,
}

/// Commits are numbered here from 1 in the order of their beginning; stamps are the store's.
#[derive(Debug, Default)]
struct State {
    /// To be told after the next sync, in order.
    news: Vec<News>,
    /// Whether a sync is under way.
    syncing: bool,
    /// The commit that began last.
    begun: u64,
    /// Whether that one is under way: readers may see it already.
    committing: bool,
    /// The newest stamp that a commit was given.
    newest: Stamp,
    /// Commits that readers see and that are not known to be durable, oldest first. One whose outcome is not known has no stamp.
    pending: VecDeque<(u64, Stamp)>,
    /// What the last sync failed with.
    failed: Option<StoreError>,
    closed: bool,
}

impl State {
    /// The commit that has to be durable before a reader that sees everything up to `seen` may tell what it read.
    fn awaited(&self, seen: Stamp) -> Option<u64> {
        if self.committing && seen > self.newest {
            return Some(self.begun);
        }
        self.pending.iter().rev().find(|(_, stamp)| *stamp <= seen).map(|(number, _)| *number)
    }

    fn is_durable(&self, number: u64) -> bool {
        let first = self.pending.front().map(|(first, _)| *first);
        first.or_else(|| self.committing.then_some(self.begun)).is_none_or(|first| first > number)
    }

    /// Nothing that can be read is not durable.
    fn is_settled(&self) -> bool {
        !self.committing && self.pending.is_empty()
    }
}

impl Syncing {
    pub(crate) fn new(durability: Box<dyn Durability>, queue: Arc<Queue>, outlet: Outlet) -> Self {
        Self {
            durability: Mutex::new(durability),
            state: Mutex::default(),
            handed: Condvar::new(),
            ended: Condvar::new(),
            queue,
            outlet,
        }
    }

    /// The lane, before a commit that writes: from here on readers may see it.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.begun = state.begun.saturating_add(1);
        state.committing = true;
    }

    /// The lane, after it: its stamp, or none where it is certain that nothing was written.
    pub(crate) fn end(&self, applied: Option<Stamp>) {
        let mut state = self.lock();
        if !std::mem::take(&mut state.committing) {
            return;
        }
        if let Some(stamp) = applied {
            let number = state.begun;
            state.pending.push_back((number, stamp));
            state.newest = stamp;
        } else {
            drop(state);
            self.ended.notify_all();
        }
    }

    /// The lane, after a commit whose outcome nobody knows, if one is under way: whether or not it comes to be seen, a sync has
    /// to succeed first.
    pub(crate) fn lose(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.committing) {
            let number = state.begun;
            state.pending.push_back((number, Stamp::ABSENT));
            state.failed = Some(broken("the outcome of a commit is not known"));
            drop(state);
            self.ended.notify_all();
            self.handed.notify_one();
        }
    }

    /// The lane, before a batch: where the last sync failed, makes everything durable again. Whether it had.
    ///
    /// # Errors
    /// It failed again.
    pub(crate) fn recover(&self) -> Result<bool, StoreError> {
        if self.lock().failed.is_none() {
            return Ok(false);
        }
        self.sync().map(|()| true)
    }

    /// The lane, after a turn: tells the news once all that was committed is durable. Returns at once where another batch
    /// waits, or the disk is busy.
    pub(crate) fn pass(&self, news: News) {
        let alone = self.queue.depth() == 0;
        let count = news.answers.len();
        let mut state = self.lock();
        if state.news.is_empty() && !state.syncing && state.failed.is_none() {
            if state.pending.is_empty() {
                drop(state);
                return self.outlet.tell(news);
            }
            if alone {
                state.syncing = true;
                drop(state);
                let outcome = self.sync();
                return self.release(vec![news], outcome);
            }
        }
        self.queue.unsettle(count);
        state.news.push(news);
        drop(state);
        self.handed.notify_one();
    }

    /// The thread: syncs and tells until it is over and nothing is left.
    pub(crate) fn run(&self) {
        while let Some(news) = self.next() {
            let outcome = self.sync();
            self.queue.settle(news.iter().map(|it| it.answers.len()).sum());
            self.release(news, outcome);
        }
    }

    /// Ends the thread once it has done what was handed over.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.handed.notify_one();
    }

    /// A reader, after a read: waits until what it can have seen is durable. `seen` is asked for the newest commit among that,
    /// unless it makes no difference.
    ///
    /// # Errors
    /// It cannot be made durable, or `seen` failed.
    pub(crate) fn wait(&self, seen: impl FnOnce() -> Result<Stamp, StoreError>) -> Result<(), StoreError> {
        if self.lock().is_settled() {
            return Ok(());
        }
        let seen = seen()?;
        let mut state = self.lock();
        let Some(number) = state.awaited(seen) else { return Ok(()) };
        while !state.is_durable(number) {
            if let Some(failed) = &state.failed {
                return Err(failed.clone());
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    /// What was handed over since the last time; nothing to tell where a sync is to be tried again; none when it is over.
    fn next(&self) -> Option<Vec<News>> {
        let mut state = self.lock();
        loop {
            if !state.news.is_empty() {
                state.syncing = true;
                return Some(std::mem::take(&mut state.news));
            }
            if state.closed {
                // A lane that died between its commit and what there was to tell of it leaves the sync to this thread.
                let left = !state.pending.is_empty() && state.failed.is_none();
                return left.then(Vec::new);
            }
            if state.failed.is_some() {
                let waited = self.handed.wait_timeout(state, RETRY).unwrap_or_else(PoisonError::into_inner);
                state = waited.0;
                if waited.1.timed_out() && state.news.is_empty() && state.failed.is_some() {
                    return Some(Vec::new());
                }
            } else {
                state = self.handed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Tells the news, or that nobody knows.
    fn release(&self, news: Vec<News>, outcome: Result<(), StoreError>) {
        let Err(error) = outcome else { return news.into_iter().for_each(|it| self.outlet.tell(it)) };
        let failure = Failure::Commit(CommitError::Unknown(error));
        for (waits, _) in news.into_iter().flat_map(|it| it.answers) {
            let _ = waits.send(Err(failure.clone()));
        }
    }

    /// Makes durable what is committed when this begins.
    fn sync(&self) -> Result<(), StoreError> {
        let mut durability = self.durability.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        state.syncing = true;
        let through = state.begun.saturating_sub(u64::from(state.committing));
        drop(state);
        let outcome = catch_unwind(AssertUnwindSafe(|| durability.sync()))
            .unwrap_or_else(|_| Err(broken("making commits durable panicked")));
        if let Err(error) = &outcome {
            tracing::error!(error = error as &dyn std::error::Error, "what was committed could not be made durable");
        }
        let mut state = self.lock();
        state.syncing = false;
        if outcome.is_ok() {
            while state.pending.front().is_some_and(|(number, _)| *number <= through) {
                state.pending.pop_front();
            }
        }
        state.failed = outcome.as_ref().err().cloned();
        drop(state);
        self.ended.notify_all();
        if outcome.is_err() {
            // The thread tries again, though it was the lane that synced.
            self.handed.notify_one();
        }
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken(how: &'static str) -> StoreError {
    StoreError::Backend(Arc::new(std::io::Error::other(how)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that fails so many times.
    #[derive(Debug)]
    struct Fails(usize);

    impl Durability for Fails {
        fn sync(&mut self) -> Result<(), StoreError> {
            let fails = self.0 > 0;
            self.0 = self.0.saturating_sub(1);
            if fails { Err(StoreError::Closed) } else { Ok(()) }
        }
    }

    fn syncing(failures: usize) -> Syncing {
        let outlet = Outlet { feed: Arc::new(Feed::new()), newest: Arc::default() };
        Syncing::new(Box::new(Fails(failures)), Arc::new(Queue::new(1)), outlet)
    }

    fn committed(syncing: &Syncing, stamp: u64) {
        syncing.begin();
        syncing.end(Some(Stamp(stamp)));
    }

    /// What a reader that sees everything up to `seen` waits for.
    fn awaited(syncing: &Syncing, seen: u64) -> Option<u64> {
        syncing.lock().awaited(Stamp(seen))
    }

    /// A reader waits for the newest commit that it sees and for none after it; for the one under way where it may see that.
    #[test]
    fn a_reader_waits_for_what_it_sees() {
        let syncing = syncing(0);
        committed(&syncing, 5);
        committed(&syncing, 7);
        assert_eq!([4, 5, 6, 7, 9].map(|seen| awaited(&syncing, seen)), [None, Some(1), Some(1), Some(2), Some(2)]);
        assert!(syncing.wait(|| Ok(Stamp(4))).is_ok(), "it waits for nothing");
        syncing.begin();
        assert_eq!([7, 8].map(|seen| awaited(&syncing, seen)), [Some(2), Some(3)]);
        assert!(syncing.sync().is_ok());
        assert!(syncing.wait(|| Ok(Stamp(7))).is_ok());
        assert_eq!(
            [7, 8].map(|seen| awaited(&syncing, seen)),
            [None, Some(3)],
            "a sync does not count for what ended after"
        );
        assert!(!syncing.lock().is_durable(3));
        syncing.end(None);
        assert!(syncing.wait(|| panic!("nothing is under way")).is_ok());
    }

    /// While syncs fail a reader is refused at once, unless it sees nothing that is not durable; the next sync that succeeds
    /// serves it again.
    #[test]
    fn a_reader_is_refused_while_syncs_fail() {
        let syncing = syncing(2);
        committed(&syncing, 5);
        assert!(syncing.sync().is_err() && syncing.recover().is_err());
        assert!(syncing.wait(|| Ok(Stamp(5))).is_err());
        assert!(syncing.wait(|| Ok(Stamp(4))).is_ok());
        assert!(matches!(syncing.recover(), Ok(true)));
        assert!(syncing.wait(|| Ok(Stamp(5))).is_ok());
        assert!(matches!(syncing.recover(), Ok(false)));
    }

    /// Where nobody knows whether a commit happened, every reader is refused and nothing is decided before a sync.
    #[test]
    fn a_lost_outcome_needs_a_sync() {
        let syncing = syncing(0);
        committed(&syncing, 5);
        syncing.lose();
        assert!(matches!(syncing.recover(), Ok(false)), "none was under way");
        syncing.begin();
        syncing.lose();
        assert!(syncing.wait(|| Ok(Stamp(1))).is_err());
        assert!(matches!(syncing.recover(), Ok(true)));
        assert!(syncing.lock().is_settled());
    }

    /// A lane that dies between a commit and its news leaves a sync behind, so that no reader waits for ever.
    #[test]
    fn the_last_sync_comes_though_the_lane_died() {
        let syncing = syncing(0);
        committed(&syncing, 5);
        syncing.close();
        syncing.run();
        assert!(syncing.lock().is_settled());
    }
}
