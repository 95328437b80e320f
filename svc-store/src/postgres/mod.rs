//! PostgreSQL: one database under any number of servers.
//!
//! No server owns anything: whatever two of them decide is compared by stamps in the database, whose locks put commits that share a
//! row one after the other. Bodies are JSON that `psql` can ask.
//!
//! **Invariant:** what the server has not confirmed is not told to anybody, and a server that may lose what it confirmed is refused.

mod address;
mod commit;
mod connect;
mod errors;
mod io;
mod listen;
mod plan;
mod schema;
mod served;
mod session;
mod statements;
#[cfg(feature = "sqlite")]
pub(crate) mod target;
mod tls;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_core::value::Timestamp;

use self::address::Address;
use self::connect::{Door, Live};
use self::errors::{database, silent};
use self::io::{CONNECT_ALL, Io};
use crate::backend::{Backend, Others};
use crate::error::StoreError;

pub use self::schema::SCHEMA;
pub use self::served::served_elsewhere;
pub use self::session::PostgresSession;

/// Commits of one server that are under way at once. While one waits for the disk, others are decided; more would meet on the same
/// rows more often.
const LANES: usize = 4;
/// Connections of readers that wait for the next one; more are closed.
const IDLE_MAX: usize = 16;

/// A database of PostgreSQL. Clones share it; its connections close with the last of them. A gate over one is made of its parts:
///
/// ```no_run
/// use std::path::Path;
///
/// use svc_core::store::Clock;
/// use svc_store::keys::{dalek, receipt_signer};
/// use svc_store::postgres::Terms;
/// use svc_store::seal::MasterKey;
/// use svc_store::{Backend, Gate, PostgresStore, Settings, SystemClock};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (directory, base_url) = (Path::new("svc-data"), "https://gate.example.com");
/// let store = PostgresStore::open("postgres://svc:password@db.example.com/svc", Terms::default())?;
/// let clock = SystemClock::new();
/// let signer = receipt_signer(&mut store.writer()?, directory, None, clock.now(), base_url, &dalek)?;
/// let mut settings = Settings::default();
/// settings.vault = MasterKey::read(directory)?; // the same `master.key` wherever this database is used
/// let gate = Gate::over(store, clock, signer, settings)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    door: Arc<Door>,
    idle: Mutex<Vec<Live>>,
    /// The connection that reads the clock: once a second, however many readers there are.
    clock: Mutex<Option<Live>>,
    doubt: Doubt,
    /// The last: what is above lives on its threads.
    io: Io,
}

/// Commits of which nobody knows whether they were made. A row of such a one can be seen before a standby has it that is waited for, as
/// where the wait was broken off: nothing that a lane reads is built upon before a later commit was confirmed.
#[derive(Debug, Default)]
struct Doubt {
    lost: AtomicU64,
    /// How many of them a confirmed commit came after.
    confirmed: AtomicU64,
}

impl Doubt {
    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::SeqCst);
    }

    /// How many there are, where one of them is in doubt still.
    fn is_open(&self) -> Option<u64> {
        let lost = self.lost.load(Ordering::SeqCst);
        (lost > self.confirmed.load(Ordering::SeqCst)).then_some(lost)
    }

    /// A commit was confirmed that began when there were so many.
    fn confirm(&self, lost: u64) {
        self.confirmed.fetch_max(lost, Ordering::SeqCst);
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Live>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self) -> MutexGuard<'_, Option<Live>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, live: Live) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX && !live.client.is_closed() {
            idle.push(live);
        }
    }
}

/// How a database is taken.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Terms {
    /// Whether it is taken although it may lose what it has confirmed when it loses power: with `fsync`, `full_page_writes` or
    /// `synchronous_commit` off. For tests alone.
    pub may_lose: bool,
}

impl PostgresStore {
    /// Opens the database at `address`, `postgres://user:password@host:port/database`, and makes its tables where there are none.
    ///
    /// # Errors
    /// [`StoreError::DatabaseAddress`], [`StoreError::Unreachable`], [`StoreError::UnfitServer`], [`StoreError::Lossy`],
    /// [`StoreError::ForeignSchema`], [`StoreError::NewerSchema`], or the tables cannot be made.
    pub fn open(address: &str, terms: Terms) -> Result<Self, StoreError> {
        let store = Self::at(address, terms)?;
        store.plain(async |client| {
            schema::migrate(&client).await?;
            schema::is_permitted(&client, Some(SCHEMA)).await
        })?;
        Ok(store)
    }

    /// Opens the database, and makes nothing in it.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`StoreError::NoTables`] where it has none of this release.
    pub fn existing(address: &str, terms: Terms) -> Result<Self, StoreError> {
        let store = Self::at(address, terms)?;
        store.plain(async |client| {
            schema::check(&client).await?;
            schema::is_permitted(&client, Some(SCHEMA)).await
        })?;
        Ok(store)
    }

    /// Where it is, without whatever lets anybody in.
    #[must_use]
    pub fn place(&self) -> String {
        self.shared.door.address.to_string()
    }

    fn at(address: &str, terms: Terms) -> Result<Self, StoreError> {
        let door = Arc::new(Door::new(Address::parse(address)?, terms.may_lose));
        Ok(Self {
            shared: Arc::new(Shared {
                door,
                idle: Mutex::default(),
                clock: Mutex::default(),
                doubt: Doubt::default(),
                io: Io::start()?,
            }),
        })
    }

    /// Does something on a connection of its own.
    fn plain<T, F, W>(&self, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send,
        W: FnOnce(tokio_postgres::Client) -> F + Send + 'static,
    {
        let door = Arc::clone(&self.shared.door);
        let within = CONNECT_ALL.saturating_add(MIGRATION);
        let done = self.shared.io.wait(within, async move { work(door.plain().await?).await })?;
        done.unwrap_or_else(|| Err(silent()))
    }
}

/// That one process at a time makes what a first start makes, of all that share the database: it ends with this value, and with the
/// process that holds it.
pub struct Turn {
    /// In this order: the connection ends, and then the threads that move its bytes.
    _client: tokio_postgres::Client,
    _store: PostgresStore,
}

impl Turn {
    /// Waits until no other process has it.
    ///
    /// # Errors
    /// As [`PostgresStore::existing`], or another process has it for too long.
    pub fn wait(address: &str, terms: Terms) -> Result<Self, StoreError> {
        let store = PostgresStore::at(address, terms)?;
        let client = store.plain(async |client| {
            client.batch_execute(statements::TURN).await.map_err(|cause| database(&cause))?;
            Ok(client)
        })?;
        Ok(Self { _client: client, _store: store })
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// How long the database may take to say what time it is, a connection included: it is asked once a second, and a gate that closes
/// waits for the answer.
const CLOCK: std::time::Duration = std::time::Duration::from_secs(10);
/// How long the tables may take to be made, or another server to make them.
const MIGRATION: std::time::Duration = std::time::Duration::from_secs(120);

/// The schema of the database at `address`, [`SCHEMA`] or an older one; 0 where nothing was made yet. Nothing is changed.
///
/// # Errors
/// As [`PostgresStore::open`], [`StoreError::NewerSchema`] among them, and [`StoreError::NoRight`] where the role may not do what is next.
pub fn schema_of(address: &str, terms: Terms) -> Result<i64, StoreError> {
    let store = PostgresStore::at(address, terms)?;
    store.plain(async |client| {
        let found = schema::found(&client).await?;
        if let Some(found) = found.filter(|it| *it > SCHEMA) {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
        schema::is_permitted(&client, found).await?;
        Ok(found.unwrap_or(0))
    })
}

/// Where `address` is, without whatever lets anybody in: for logs and people.
///
/// # Errors
/// [`StoreError::DatabaseAddress`] where it is none; the message repeats nothing of it.
pub fn place_of(address: &str) -> Result<String, StoreError> {
    Address::parse(address).map(|it| it.to_string())
}

impl Backend for PostgresStore {
    type Session = PostgresSession;

    fn lanes(&self) -> usize {
        LANES
    }

    fn writer(&self) -> Result<PostgresSession, StoreError> {
        Ok(PostgresSession::writer(Arc::clone(&self.shared)))
    }

    fn reader(&self) -> Result<PostgresSession, StoreError> {
        Ok(PostgresSession::reader(Arc::clone(&self.shared)))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn others(&self) -> Result<Option<Box<dyn Others>>, StoreError> {
        listen::Ear::open(Arc::clone(&self.shared)).map(|ear| Some(Box::new(ear) as Box<dyn Others>))
    }

    fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        let kept = self.shared.clock().take();
        let door = Arc::clone(&self.shared.door);
        let asked = self.shared.io.wait(CLOCK, async move {
            let live = match kept {
                Some(live) if !live.client.is_closed() => live,
                _ => door.open(true).await?,
            };
            let row = live.client.query_one(statements::TIME, &[]).await.map_err(|cause| database(&cause))?;
            let ms: i64 = plan::column(&row, 0)?;
            schema::is_ours(plan::column(&row, 1)?)?;
            Ok((live, Timestamp::from_millis(ms)))
        })?;
        let (live, time) = asked.unwrap_or_else(|| Err(silent()))?;
        *self.shared.clock() = Some(live);
        Ok(Some(time))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PostgresStore").field(&self.shared.door.address).finish()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Shared").field("door", &self.door).finish_non_exhaustive()
    }
}
