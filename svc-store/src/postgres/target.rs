//! A database in which nothing was begun, and a gate that comes to it whole: in one transaction, which takes all of it or nothing.
//!
//! **Invariant:** from the look whether anything is there to the last word nobody else commits anything.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use svc_core::store::{Key, Loaded};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::commit::has_gone_on;
use super::errors::{database, no_right, silent};
use super::io::CONNECT_ALL;
use super::plan::{Entries, Images, Keys, column, loaded};
use super::{PostgresStore, Terms, schema, statements};
use crate::error::StoreError;
use crate::moving::MoveFault;

/// How long one statement of a move may take: the last word waits for a standby, where there is one.
const PATIENCE: Duration = Duration::from_secs(600);

/// Whether there are rows, and the move that they came by.
const HOLDS: &str = "SELECT EXISTS (SELECT FROM svc.records) OR EXISTS (SELECT FROM svc.links), \
     (SELECT value FROM svc.meta WHERE name = 'moved')";
/// Sessions of servers: each has one that listens.
const SERVED: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity \
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND query = $1)";
/// What a move does beside what a server does.
const MAY_MOVE: &str = "SELECT has_table_privilege('svc.meta', 'INSERT') AND has_table_privilege('svc.meta', 'UPDATE') \
     AND has_sequence_privilege('svc.stamp', 'UPDATE') AND has_sequence_privilege('svc.stamp', 'SELECT')";
/// Keeps every commit of a server out, and whoever makes what a first start makes.
const ALONE: &str =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; LOCK TABLE svc.records, svc.links IN EXCLUSIVE MODE";
/// `svc2` in ASCII, as in [`statements::TURN`].
const NO_FIRST_START: &str = "SELECT pg_try_advisory_xact_lock(1937138482)";
const COUNTS: &str = "SELECT tab, count(*) FROM svc.records GROUP BY tab";
const ENTRIES: &str = "SELECT count(*) FROM svc.links";
/// The next commit has a greater number than all that came, whatever was begun here before. A sequence goes back for nobody.
const NUMBER_ON: &str = "SELECT setval('svc.stamp', greatest($1::int8, (SELECT last_value FROM svc.stamp), 1))";
const NOTE: &str = "INSERT INTO svc.meta (name, value) VALUES ('moved', $1::int8) ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Nothing but empty tables, and nobody else may fill them now.
    Nothing,
    /// Rows, and the number of the move that they came by, where they came by one.
    Rows { moved: Option<i64> },
}

/// Why a move was not confirmed.
pub(crate) enum Ended {
    /// The server says that nothing of it is kept.
    NotMade(StoreError),
    /// It may be there.
    Unknown(StoreError),
}

/// Where a gate goes.
pub(crate) struct Target {
    /// In this order: the connection ends, and then the threads that move its bytes.
    client: Arc<Client>,
    warned: Arc<AtomicBool>,
    /// Prepared once, when the tables are there.
    writing: OnceLock<Writing>,
    store: PostgresStore,
}

/// The statements that write what comes.
#[derive(Clone)]
struct Writing {
    rows: Statement,
    entries: Statement,
}

impl Target {
    /// A connection to the database at `address`.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub(crate) fn open(address: &str, terms: Terms) -> Result<Self, StoreError> {
        let store = PostgresStore::at(address, terms)?;
        let door = Arc::clone(&store.shared.door);
        let opened = store.shared.io.wait(CONNECT_ALL, async move { door.long().await })?;
        let (client, warned) = opened.unwrap_or_else(|| Err(silent()))?;
        Ok(Self { client: Arc::new(client), warned, writing: OnceLock::new(), store })
    }

    /// Makes the tables where there are none, and begins the one transaction if nothing is in them.
    ///
    /// # Errors
    /// [`MoveFault::Served`], [`StoreError::NoRight`], [`StoreError::Locked`] where another server commits, or as [`PostgresStore::open`].
    pub(crate) fn begin(&self) -> Result<Holds, StoreError> {
        let place = self.store.place();
        // On a connection of its own, whose settings and lock end with it.
        match self.store.plain(async |client| make(&client, place).await)? {
            Holds::Nothing => {}
            rows @ Holds::Rows { .. } => return Ok(rows),
        }
        let place = self.store.place();
        self.within(PATIENCE, async move |client| {
            client.batch_execute(ALONE).await.map_err(|cause| database(&cause))?;
            if !is(&client, NO_FIRST_START, &[]).await? {
                return Err(served(place));
            }
            schema::check(&client).await?;
            holds(&client).await
        })
    }

    /// Writes rows, and the entries by which they are found; gives how many entries those are.
    ///
    /// # Errors
    /// The server does not take them.
    pub(crate) fn put(&self, rows: &[Loaded]) -> Result<u64, StoreError> {
        let (mut images, mut entries, mut stamps) = (Images::default(), Entries::default(), Vec::new());
        for row in rows {
            let Some(record) = &row.record else { continue };
            images.push(row.key, record)?;
            stamps.push(i64::try_from(row.stamp.0).map_err(|_| StoreError::Malformed("a stamp is too large"))?);
            record.links().into_iter().for_each(|link| entries.push(row.key, link, Some(row.stamp)));
        }
        let Writing { rows, entries: links } = self.writing()?;
        self.within(PATIENCE, async move |client| {
            let Images { rows: keys, formats, bodies } = &images;
            let parameters: [&(dyn ToSql + Sync); 5] = [&keys.tables, &keys.keys, &stamps, formats, bodies];
            client.execute(&rows, &parameters).await.map_err(|cause| database(&cause))?;
            if entries.rows.is_empty() {
                return Ok(0);
            }
            let Entries { indexes, prefixes, orders, rows } = &entries;
            let parameters: [&(dyn ToSql + Sync); 5] = [indexes, prefixes, orders, &rows.tables, &rows.keys];
            client.execute(&links, &parameters).await.map_err(|cause| database(&cause))
        })
    }

    fn writing(&self) -> Result<Writing, StoreError> {
        if let Some(writing) = self.writing.get() {
            return Ok(writing.clone());
        }
        let writing = self.within(PATIENCE, async |client| {
            let rows = client.prepare(statements::INSERT_STAMPED).await.map_err(|cause| database(&cause))?;
            let entries = client.prepare(statements::LINK_ORDERED).await.map_err(|cause| database(&cause))?;
            Ok(Writing { rows, entries })
        })?;
        Ok(self.writing.get_or_init(|| writing).clone())
    }

    /// How many rows each table has, by its name; those without any are left out.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) fn counts(&self) -> Result<HashMap<String, u64>, StoreError> {
        self.within(PATIENCE, async |client| {
            let rows = client.query(COUNTS, &[]).await.map_err(|cause| database(&cause))?;
            let count = |row| Ok((column::<String>(row, 0)?, column::<i64>(row, 1)?.unsigned_abs()));
            rows.iter().map(count).collect()
        })
    }

    /// How many entries all indexes have.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) fn entries(&self) -> Result<u64, StoreError> {
        self.within(PATIENCE, async |client| {
            let row = client.query_one(ENTRIES, &[]).await.map_err(|cause| database(&cause))?;
            column::<i64>(&row, 0).map(i64::unsigned_abs)
        })
    }

    /// Rows by key, as they would be read.
    ///
    /// # Errors
    /// The server does not answer, or a row cannot be read.
    pub(crate) fn load(&self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        let asked = Keys::of(keys);
        let rows = self.within(PATIENCE, async move |client| {
            let answered = client.query(statements::LOAD, &[&asked.tables, &asked.keys]).await;
            answered.map_err(|cause| database(&cause))
        })?;
        loaded(keys, &rows)
    }

    /// Notes the number of the move, and that commits are numbered on from `stamp`.
    ///
    /// # Errors
    /// The server does not take it.
    pub(crate) fn number(&self, moved: i64, stamp: u64) -> Result<(), StoreError> {
        let stamp = i64::try_from(stamp).map_err(|_| StoreError::Malformed("a stamp is too large"))?;
        self.within(PATIENCE, async move |client| {
            client.query_one(NUMBER_ON, &[&stamp]).await.map_err(|cause| database(&cause))?;
            client.execute(NOTE, &[&moved]).await.map(drop).map_err(|cause| database(&cause))
        })
    }

    /// The last word.
    ///
    /// # Errors
    /// [`Ended`].
    pub(crate) fn commit(&self) -> Result<(), Ended> {
        self.warned.store(false, Ordering::Release);
        let said = self.within(PATIENCE, async |client| Ok(client.batch_execute(statements::COMMIT).await));
        match said {
            Ok(Ok(())) if self.warned.load(Ordering::Acquire) => Err(Ended::Unknown(StoreError::Unreplicated)),
            Ok(Ok(())) => Ok(()),
            Ok(Err(cause)) if has_gone_on(&cause) => Err(Ended::NotMade(database(&cause))),
            Ok(Err(cause)) => Err(Ended::Unknown(database(&cause))),
            Err(error) => Err(Ended::Unknown(error)),
        }
    }

    /// Does something on the connection.
    fn within<T, F, W>(&self, patience: Duration, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
        W: FnOnce(Arc<Client>) -> F,
    {
        self.store.shared.io.wait(patience, work(Arc::clone(&self.client)))?.unwrap_or_else(|| Err(silent()))
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Target").field(&self.store).finish()
    }
}

/// Makes the tables, unless there are rows already.
async fn make(client: &Client, place: String) -> Result<Holds, StoreError> {
    match schema::found(client).await? {
        Some(found) if found > schema::SCHEMA => {
            return Err(StoreError::NewerSchema { found, known: schema::SCHEMA });
        }
        Some(_) => match holds(client).await? {
            Holds::Nothing => {}
            rows @ Holds::Rows { .. } => return Ok(rows),
        },
        None => schema::is_permitted(client, None).await?,
    }
    if is(client, SERVED, &[&statements::LISTEN]).await? {
        return Err(served(place));
    }
    schema::migrate(client).await?;
    schema::is_permitted(client, Some(schema::SCHEMA)).await?;
    if is(client, MAY_MOVE, &[]).await? {
        Ok(Holds::Nothing)
    } else {
        Err(no_right("it may not write `svc.meta` and set `svc.stamp`, as the role that made them may"))
    }
}

fn served(place: String) -> StoreError {
    StoreError::Move(MoveFault::Served { place: place.into() })
}

async fn holds(client: &Client) -> Result<Holds, StoreError> {
    let row = client.query_one(HOLDS, &[]).await.map_err(|cause| database(&cause))?;
    Ok(if column(&row, 0)? { Holds::Rows { moved: column(&row, 1)? } } else { Holds::Nothing })
}

/// What a statement says that answers yes or no.
async fn is(client: &Client, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<bool, StoreError> {
    let row = client.query_one(sql, parameters).await.map_err(|cause| database(&cause))?;
    column(&row, 0)
}
