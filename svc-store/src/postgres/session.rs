//! One connection as a [`Store`], made anew when it was lost.
//!
//! **Invariant:** `Applied` is answered after the server has confirmed the `COMMIT`; where that is not heard nobody knows.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use svc_core::store::{Commit, CommitError, Committed, Found, Key, Listed, Loaded, Range, Store};
use tokio_postgres::{Error, Row};

use super::Shared;
use super::commit::{self, Done, Fault};
use super::connect::Live;
use super::errors::{before_commit, database, is_lost, silent};
use super::io::{CONFIRMED, CONNECT_ALL, LOST};
use super::plan::{Keys, Listing, Plan, listed, loaded};
use super::statements::{BEGIN, BEGIN_AGAIN, BEGIN_READ, CONFIRM};
use crate::error::StoreError;
use crate::feed::is_told_to_others;

/// How often a commit is begun where the database ends it for another one's sake and no row has moved.
const TRIES_MAX: u32 = 8;

/// A connection: one that writes, or one that reads a snapshot.
pub struct PostgresSession {
    shared: Arc<Shared>,
    /// None before the first use, and after it was lost.
    live: Option<Live>,
    role: Role,
    /// When the server began that it was connected to last.
    server: Option<i64>,
}

enum Role {
    /// Commits. After a conflict it keeps its locks.
    Writer { kept: Option<Kept> },
    /// Reads one snapshot, inside one transaction that ends with the session.
    Reader(Snapshot),
}

/// Where a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Snapshot {
    /// It has read nothing.
    Ahead,
    Open,
    /// It was lost, and another one would be of another moment.
    Lost,
}

/// Rows whose locks are held, and whether to write them.
struct Kept(BTreeMap<Key, bool>);

impl Kept {
    fn cover(&self, plan: &Plan) -> bool {
        plan.locked().all(|(key, written)| self.0.get(&key).is_some_and(|held| *held || !written))
    }
}

/// What a session reads.
enum Question {
    Rows(Keys),
    List(Listing),
}

impl Question {
    async fn ask(&self, live: &Live) -> Result<Vec<Row>, Error> {
        match self {
            Self::Rows(rows) => commit::load(live, rows).await,
            Self::List(it) => {
                let statement = if it.newest_first { &live.statements.newest } else { &live.statements.oldest };
                let Listing { index, prefix, from, until, limit, tables, seen_table, seen_order, seen_key, .. } = it;
                live.client
                    .query(statement, &[index, prefix, from, until, limit, tables, seen_table, seen_order, seen_key])
                    .await
            }
        }
    }

    /// The same as the first read of a snapshot.
    async fn ask_first(&self, live: &Live) -> Result<Vec<Row>, Error> {
        let (begun, rows) = tokio::join!(biased; live.client.batch_execute(BEGIN_READ), self.ask(live));
        begun?;
        rows
    }
}

impl PostgresSession {
    pub(super) const fn writer(shared: Arc<Shared>) -> Self {
        Self { shared, live: None, role: Role::Writer { kept: None }, server: None }
    }

    pub(super) fn reader(shared: Arc<Shared>) -> Self {
        let live = shared.idle().pop();
        Self { shared, live, role: Role::Reader(Snapshot::Ahead), server: None }
    }

    /// The connection, and whether it had been used before.
    fn connection(&mut self) -> Result<(Live, bool), StoreError> {
        if let Some(live) = self.live.take() {
            return Ok((live, true));
        }
        let (door, reads) = (Arc::clone(&self.shared.door), matches!(self.role, Role::Reader(_)));
        let opened = self.shared.io.wait(CONNECT_ALL, async move { door.open(reads).await })?;
        let live = opened.unwrap_or_else(|| Err(silent()))?;
        // A standby that has taken over may lack the last commits, and gives their numbers out again: a row that was read before would
        // then pass for the one that stands there. Whoever reads keeps nothing.
        let was = self.server.replace(live.server);
        if was.is_some_and(|it| it != live.server) {
            self.live = Some(live);
            return Err(StoreError::OtherServer);
        }
        Ok((live, false))
    }

    /// Whether a transaction is open that another connection cannot go on with.
    const fn is_bound(&self) -> bool {
        matches!(self.role, Role::Writer { kept: Some(_) } | Role::Reader(Snapshot::Open))
    }

    /// A connection was lost, and what was open on it.
    fn lose(&mut self) {
        self.role = match self.role {
            Role::Writer { .. } => Role::Writer { kept: None },
            Role::Reader(_) => Role::Reader(Snapshot::Lost),
        };
    }

    fn read(&mut self, question: Question) -> Result<Vec<Row>, StoreError> {
        let question = Arc::new(question);
        loop {
            if let Role::Reader(Snapshot::Lost) = self.role {
                return Err(silent());
            }
            let bound = self.is_bound();
            let (live, used) = self.connection()?;
            let first = matches!(self.role, Role::Reader(Snapshot::Ahead));
            let asked = Arc::clone(&question);
            let done = self.shared.io.wait(LOST, async move {
                let rows = if first { asked.ask_first(&live).await } else { asked.ask(&live).await };
                (live, rows)
            })?;
            match done {
                Some((live, Ok(rows))) => {
                    self.live = Some(live);
                    if first {
                        self.role = Role::Reader(Snapshot::Open);
                    }
                    return Ok(rows);
                }
                // It had ended while nobody used it: another one sees no less.
                Some((_, Err(cause))) if used && !bound && is_lost(&cause) => {}
                Some((_, Err(cause))) => {
                    self.lose();
                    return Err(database(&cause));
                }
                None => {
                    self.lose();
                    return Err(silent());
                }
            }
        }
    }

    /// Begins the commit once; `None` where it has to be begun again.
    fn attempt(&mut self, plan: &Arc<Plan>) -> Result<Option<Committed>, CommitError<StoreError>> {
        let kept = match &mut self.role {
            Role::Writer { kept } => kept.take(),
            Role::Reader(_) => return Err(CommitError::Rejected(StoreError::Malformed("a reader commits nothing"))),
        };
        let begin = match &kept {
            None => BEGIN,
            Some(kept) if kept.cover(plan) => "",
            Some(_) => BEGIN_AGAIN,
        };
        let (live, used) = self.connection().map_err(CommitError::Unavailable)?;
        let begin = if used { begin } else { BEGIN };
        let (sent, work) = (Arc::new(AtomicBool::new(false)), Arc::clone(plan));
        let told = Arc::clone(&sent);
        let done = self.shared.io.wait(LOST, async move {
            let done = commit::apply(&live, &work, begin, &told).await;
            (live, done)
        });
        let may_be_durable = sent.load(Ordering::Acquire);
        let (live, done) = match done {
            Ok(Some(done)) => done,
            Ok(None) if may_be_durable => return Err(self.unknown(silent())),
            Err(error) if may_be_durable => return Err(self.unknown(error)),
            Ok(None) => return Err(CommitError::Unavailable(silent())),
            Err(error) => return Err(CommitError::Unavailable(error)),
        };
        match done {
            Ok(Done::Applied(stamp)) => {
                self.live = Some(live);
                Ok(Some(Committed::Applied(stamp)))
            }
            Ok(Done::Moved(keys, rows)) => {
                self.live = Some(live);
                self.role = Role::Writer { kept: Some(Kept(plan.locked().collect())) };
                let moved = loaded(&keys, &rows).map_err(CommitError::Unavailable)?;
                Ok(Some(Committed::Conflict(moved)))
            }
            Ok(Done::Contended) => {
                self.live = Some(live);
                self.moved(plan)
            }
            // From here on the connection is dropped, and with it whatever is open.
            Err(Fault::Before(cause)) if used && is_lost(&cause) && !may_be_durable => Ok(None),
            Err(Fault::Before(cause)) => Err(before_commit(&cause)),
            Err(Fault::Unfit(error)) if may_be_durable => Err(self.unknown(error)),
            Err(Fault::Unfit(error)) => Err(CommitError::Unavailable(error)),
            Err(Fault::Unknown(cause)) => Err(self.unknown(database(&cause))),
        }
    }

    fn unknown(&self, cause: StoreError) -> CommitError<StoreError> {
        self.shared.doubt.lose();
        CommitError::Unknown(cause)
    }

    /// Where a commit of this server is in doubt, waits for one that comes behind it: whether a standby has what is seen here. Locks are
    /// given back for it.
    fn confirm(&mut self) -> Result<(), StoreError> {
        let (Role::Writer { .. }, Some(lost)) = (&self.role, self.shared.doubt.is_open()) else { return Ok(()) };
        self.release();
        loop {
            let (live, used) = self.connection()?;
            let done = self.shared.io.wait(CONFIRMED, async move {
                live.was_warned();
                let done = live.client.batch_execute(CONFIRM).await;
                (live, done)
            })?;
            match done {
                Some((live, Ok(()))) if live.was_warned() => return Err(StoreError::Unreplicated),
                Some((live, Ok(()))) => {
                    self.live = Some(live);
                    self.shared.doubt.confirm(lost);
                    return Ok(());
                }
                Some((_, Err(cause))) if used && is_lost(&cause) => {}
                Some((_, Err(cause))) => return Err(database(&cause)),
                None => return Err(silent()),
            }
        }
    }

    /// What others have done to the rows of a commit that was ended for their sake; `None` where it is nothing that this one saw.
    fn moved(&mut self, plan: &Plan) -> Result<Option<Committed>, CommitError<StoreError>> {
        let keys: Vec<Key> = plan.checks.iter().map(|(key, _)| *key).collect();
        let rows = self.load(&keys).map_err(CommitError::Unavailable)?;
        let moved = rows.into_iter().zip(&plan.checks).filter(|(row, (_, seen))| row.stamp != *seen);
        let moved: Vec<Loaded> = moved.map(|(row, _)| row).collect();
        Ok(if moved.is_empty() { None } else { Some(Committed::Conflict(moved)) })
    }
}

impl Store for PostgresSession {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.confirm()?;
        let rows = self.read(Question::Rows(Keys::of(keys)))?;
        loaded(keys, &rows)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        let plan = Arc::new(Plan::of(commit, is_told_to_others).map_err(CommitError::Rejected)?);
        self.confirm().map_err(CommitError::Unavailable)?;
        for _ in 0..TRIES_MAX {
            if let Some(done) = self.attempt(&plan)? {
                return Ok(done);
            }
        }
        Err(CommitError::Unavailable(StoreError::Overrun))
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        self.scan_each(range)?.into_iter().map(Listed::found).collect()
    }

    fn scan_each(&mut self, range: &Range) -> Result<Vec<Listed<StoreError>>, StoreError> {
        let rows = self.read(Question::List(Listing::of(range)))?;
        listed(&rows)
    }

    /// Gives the locks of a conflict back. Where that is not heard the connection is closed, which gives them back too.
    fn release(&mut self) {
        let Role::Writer { kept } = &mut self.role else { return };
        if kept.take().is_none() {
            return;
        }
        let Some(live) = self.live.take() else { return };
        let done = self.shared.io.wait(LOST, async move {
            let done = live.client.batch_execute("ROLLBACK").await;
            done.is_ok().then_some(live)
        });
        self.live = done.ok().flatten().flatten();
    }
}

impl Drop for PostgresSession {
    /// A reader's connection is the next reader's at once: the end of the snapshot is on its way before anything that is asked next, and
    /// nobody waits for its answer. Were it to fail, so would the beginning of the next one.
    fn drop(&mut self) {
        let (Role::Reader(snapshot), Some(live)) = (&self.role, self.live.take()) else { return };
        if *snapshot == Snapshot::Open {
            let mut ended = pin!(live.client.batch_execute("ROLLBACK"));
            // It is sent when it is polled first.
            let _ = ended.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        self.shared.give_back(live);
    }
}

impl fmt::Debug for PostgresSession {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Writer { .. } => "writer",
            Role::Reader(_) => "reader",
        };
        out.debug_tuple("PostgresSession").field(&role).finish()
    }
}
