//! What changed, told in process: streams are cut, caches refreshed, consoles told. Where several processes share a store, what the
//! others commit is told here too.
//!
//! **Invariant:** nothing is told that is not durable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use svc_core::state::gateway::Call;
use svc_core::store::{Key, Table};
use tokio::sync::broadcast;

/// Changes that a slow listener may be behind before it misses some and has to look for itself.
const BEHIND_MAX: usize = 1_024;

/// What changed, as far as people and streams care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The keys of rows that a commit changed.
    pub keys: Arc<[Key]>,
    /// Whether any other row may have changed too: other servers commit to the same store, and what they do may not have been told.
    /// Where there are such, this is told once a second, so that whoever looks then sees everything within that time.
    pub any: bool,
}

/// Hears of changes; a listener that lags is told how many it missed.
///
/// ```no_run
/// use svc_core::store::Key;
/// use tokio::sync::broadcast::error::RecvError;
///
/// # async fn follow(gate: svc_store::Gate) {
/// let mut changes = gate.changes();
/// loop {
///     match changes.recv().await {
///         Ok(change) => {
///             for key in change.keys.iter() {
///                 if let Key::Agent(id) = key {
///                     println!("{id} has changed");
///                 }
///             }
///             if change.any {
///                 println!("anything may have changed: look again at what is shown");
///             }
///         }
///         Err(RecvError::Lagged(missed)) => println!("{missed} were missed: look again at what is shown"),
///         Err(RecvError::Closed) => break, // the gate is gone
///     }
/// }
/// # }
/// ```
pub type Changes = broadcast::Receiver<Change>;

/// Hears of model calls that this process has had lapse, as they stand then; each of one process alone.
pub type Lapses = broadcast::Receiver<Arc<Call>>;

#[derive(Debug)]
pub(crate) struct Feed {
    rows: broadcast::Sender<Change>,
    /// Apart from the others: nearly every commit makes a ledger grow, and few listen for that.
    ledgers: broadcast::Sender<Change>,
    /// Calls that were charged by their timer.
    lapses: broadcast::Sender<Arc<Call>>,
    /// For whoever listens to them first: most lapse by a crash, and the first pass over what is due comes before anybody can listen.
    first: Mutex<Option<Lapses>>,
    /// Whether nothing is told any more.
    ended: AtomicBool,
}

impl Feed {
    pub(crate) fn new() -> Self {
        let told = || broadcast::channel(BEHIND_MAX).0;
        let (lapses, first) = broadcast::channel(BEHIND_MAX);
        let first = Mutex::new(Some(first));
        Self { rows: told(), ledgers: told(), lapses, first, ended: AtomicBool::new(false) }
    }

    /// Rows that change, but for the heads of ledgers.
    pub(crate) fn listen(&self) -> Changes {
        self.rows.subscribe()
    }

    /// Heads of ledgers alone.
    pub(crate) fn listen_to_ledgers(&self) -> Changes {
        self.ledgers.subscribe()
    }

    /// Calls that lapse; for whoever listens first, from the beginning on.
    pub(crate) fn listen_to_lapses(&self) -> Lapses {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(|| self.lapses.subscribe())
    }

    /// Tells of a call that has lapsed.
    pub(crate) fn tell_lapse(&self, call: Arc<Call>) {
        // Nobody has to listen.
        let _ = self.lapses.send(call);
    }

    /// Tells that any row may have changed.
    pub(crate) fn tell_any(&self) {
        for listeners in [&self.rows, &self.ledgers] {
            if listeners.receiver_count() > 0 {
                let _ = listeners.send(Change { keys: Arc::new([]), any: true });
            }
        }
    }

    /// Wakes whoever listens, for the last time.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.tell_any();
    }

    /// Whether nothing is told any more: whoever has listened before asking this is woken by the end, if it comes later.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Tells of rows that a commit wrote.
    pub(crate) fn tell(&self, written: &[Key]) {
        pass_on(&self.rows, written, is_told);
        pass_on(&self.ledgers, written, |table| table == Table::Chain);
    }
}

fn pass_on(to: &broadcast::Sender<Change>, written: &[Key], fits: impl Fn(Table) -> bool) {
    if to.receiver_count() == 0 {
        return;
    }
    let keys: Arc<[Key]> = written.iter().filter(|key| fits(key.table())).copied().collect();
    if !keys.is_empty() {
        // Whoever has stopped listening meanwhile misses nothing.
        let _ = to.send(Change { keys, any: false });
    }
}

/// The rows whose changes concern more than the one who asked.
const fn is_told(table: Table) -> bool {
    matches!(
        table,
        Table::Account
            | Table::Agent
            | Table::Approval
            | Table::Credential
            | Table::Job
            | Table::Principal
            | Table::Roster
            | Table::Routing
            | Table::UpstreamKey
            | Table::Session
            | Table::Workspace
    )
}

/// Whether a store that several processes share tells all of them of a commit that writes a row of this table. Calls to the outside
/// are not among them: whoever makes them looks for what is due twice a second. Nor are the heads of ledgers, which nearly every
/// decision moves: in PostgreSQL commits that tell of anything end one after the other in the whole cluster. Whoever follows a ledger
/// looks once a second.
#[must_use]
pub const fn is_told_to_others(table: Table) -> bool {
    match table {
        Table::Job | Table::Chain => false,
        Table::SigningKey => true,
        table => is_told(table),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::store::Record;
    use svc_core::testing::sample;

    use super::*;

    /// Whoever listens first hears of the calls that had lapsed before anybody could listen, as after a crash.
    #[test]
    fn what_lapsed_before_anybody_listened_is_heard() {
        let call =
            sample::rows().into_iter().find_map(|it| if let Record::Call(call) = it { Some(call) } else { None });
        let (feed, call) = (Feed::new(), call.unwrap());
        feed.tell_lapse(Arc::clone(&call));
        let (mut first, mut second) = (feed.listen_to_lapses(), feed.listen_to_lapses());
        assert_eq!(first.try_recv().unwrap().id, call.id);
        assert!(second.try_recv().is_err());
        feed.tell_lapse(call);
        assert!(first.try_recv().is_ok() && second.try_recv().is_ok());
    }
}
