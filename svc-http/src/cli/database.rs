//! The database that the settings name, whichever it is.

use std::sync::atomic::{AtomicBool, Ordering};

use svc_core::store::Store;
use svc_core::value::Timestamp;
use svc_http::config::{BaseUrl, Config};
#[cfg(feature = "postgres")]
use svc_store::postgres::{self, PostgresStore, Terms};
use svc_store::sqlite::OF_A_BACKUP;
use svc_store::{Backend as _, SqliteStore, StoreError, sqlite};

use super::output::{Problem, note};

/// A session of it.
pub(crate) type Session = Box<dyn Store<Error = StoreError> + Send>;

/// A database that was opened.
pub(crate) enum Database {
    /// A file on this machine.
    Sqlite(SqliteStore),
    /// A server that others may serve too.
    #[cfg(feature = "postgres")]
    Postgres(PostgresStore),
}

impl Database {
    /// Opens it, and makes what there is not.
    ///
    /// # Errors
    /// It cannot be made or used, is not this service's, or has an older schema while a server works on it.
    pub(crate) fn make(config: &Config) -> Result<Self, StoreError> {
        Self::telling(config, || {
            #[cfg(feature = "postgres")]
            if let Some(address) = address(config) {
                return PostgresStore::open(address, terms(config)).map(Self::Postgres);
            }
            SqliteStore::open(config.database_directory()).map(Self::Sqlite)
        })
    }

    /// Opens it, and says so where that brought it to a newer schema, or where it is a backup: a server's log does, and a command has none.
    fn telling(config: &Config, open: impl FnOnce() -> Result<Self, StoreError>) -> Result<Self, StoreError> {
        let from = schema_of(config).unwrap_or_default();
        let is_restored = is_unserved_backup(config);
        let opened = open()?;
        if is_restored && !TOLD.swap(true, Ordering::Relaxed) {
            note(&format!("svc: {}: {OF_A_BACKUP}\n", place(config)));
        }
        if (1..SCHEMA).contains(&from) {
            let place = place(config);
            note(&format!(
                "svc: {place} was brought from schema {from} to schema {SCHEMA}: no release of before opens it any more, only a backup \
                 from before\n"
            ));
        }
        Ok(opened)
    }

    /// The same for the server itself, which has kept every other out.
    ///
    /// # Errors
    /// It cannot be made or used, or is not this service's.
    pub(crate) fn make_to_serve(config: &Config) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        if let Some(address) = address(config) {
            return PostgresStore::open(address, terms(config)).map(Self::Postgres);
        }
        SqliteStore::open_to_serve(config.database_directory()).map(Self::Sqlite)
    }

    /// The same, which says from now on to whoever shares it that a server with this base address works on it.
    #[cfg_attr(not(feature = "postgres"), expect(unused_variables, reason = "nobody shares a file"))]
    #[must_use]
    pub(crate) fn serving(self, base_url: &BaseUrl) -> Self {
        match self {
            Self::Sqlite(store) => Self::Sqlite(store),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Self::Postgres(store.serving(base_url.as_str())),
        }
    }

    /// Opens it, and makes nothing.
    ///
    /// # Errors
    /// There is none, it cannot be used, is not this service's, or has an older schema while a server works on it.
    pub(crate) fn existing(config: &Config) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        if let Some(address) = address(config) {
            return PostgresStore::existing(address, terms(config)).map(Self::Postgres);
        }
        Self::telling(config, || SqliteStore::existing(config.database_directory()).map(Self::Sqlite))
    }

    /// A session that commits.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) fn writer(&self) -> Result<Session, StoreError> {
        Ok(match self {
            Self::Sqlite(store) => Box::new(store.writer()?),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Box::new(store.writer()?),
        })
    }

    /// A session that reads one snapshot.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) fn reader(&self) -> Result<Session, StoreError> {
        Ok(match self {
            Self::Sqlite(store) => Box::new(store.reader()?),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => Box::new(store.reader()?),
        })
    }

    /// What its own clock shows, where it has one.
    ///
    /// # Errors
    /// The database does not answer.
    pub(crate) fn time(&self) -> Result<Option<Timestamp>, StoreError> {
        match self {
            Self::Sqlite(store) => store.time(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.time(),
        }
    }
}

/// The schema of this release.
pub(crate) const SCHEMA: i64 = sqlite::SCHEMA;

/// The schema that the database has, [`SCHEMA`] or another one; 0 where nothing was written yet. Nothing is changed.
///
/// # Errors
/// There is no database, it is not this service's, or it cannot be read.
pub(crate) fn schema_of(config: &Config) -> Result<i64, StoreError> {
    #[cfg(feature = "postgres")]
    if let Some(address) = address(config) {
        return postgres::schema_of(address, terms(config));
    }
    sqlite::schema_of(config.database_directory())
}

/// The base addresses other than this one of the servers that work on it, where it is a server's that several may share.
///
/// # Errors
/// The database does not answer.
#[cfg_attr(not(feature = "postgres"), expect(clippy::unnecessary_wraps, reason = "it fails with the feature"))]
pub(crate) fn served_elsewhere(config: &Config, base_url: &BaseUrl) -> Result<Vec<String>, StoreError> {
    #[cfg(feature = "postgres")]
    if let Some(address) = address(config) {
        return postgres::served_elsewhere(address, terms(config), base_url.as_str());
    }
    let _ = (config, base_url);
    Ok(Vec::new())
}

/// Whether it is a backup that nobody has served yet.
pub(crate) fn is_unserved_backup(config: &Config) -> bool {
    config.postgres.is_none() && sqlite::is_unserved_backup(config.database_directory()).unwrap_or(false)
}

/// Whether this process has said so: some commands open it several times.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Whether there is a database of this release.
pub(crate) fn is_current(config: &Config) -> bool {
    matches!(schema_of(config), Ok(SCHEMA))
}

/// Where it is, for people: no password is in it.
pub(crate) fn place(config: &Config) -> String {
    #[cfg(feature = "postgres")]
    if let Some(place) = address(config).and_then(|it| postgres::place_of(it).ok()) {
        return place;
    }
    config.database().display().to_string()
}

/// Why it cannot be opened. Of a file the store's own words name the place; of a database server they do not, and this does.
pub(crate) fn unopened(config: &Config, error: StoreError) -> Problem {
    let problem = Problem::from(error);
    if config.postgres.is_some() { problem.at(&place(config)) } else { problem }
}

/// That this process alone makes what a first start makes, of all that have the same database server; `None` where there is none,
/// and a file keeps the others out.
#[derive(Debug)]
#[must_use]
pub(crate) struct FirstStart {
    #[cfg(feature = "postgres")]
    _turn: Option<postgres::Turn>,
}

impl FirstStart {
    /// Waits until no other process has it. The database is there already.
    ///
    /// # Errors
    /// The database does not answer, or another process has it for too long.
    #[cfg_attr(not(feature = "postgres"), expect(clippy::unnecessary_wraps, reason = "it fails with the feature"))]
    pub(crate) fn wait(config: &Config) -> Result<Self, StoreError> {
        #[cfg(feature = "postgres")]
        return Ok(Self { _turn: address(config).map(|it| postgres::Turn::wait(it, terms(config))).transpose()? });
        #[cfg(not(feature = "postgres"))]
        {
            let _ = config;
            Ok(Self {})
        }
    }
}

#[cfg(feature = "postgres")]
fn address(config: &Config) -> Option<&str> {
    config.postgres.as_ref().map(|it| it.expose().as_str())
}

/// How it is taken.
#[cfg(feature = "postgres")]
pub(crate) fn terms(config: &Config) -> Terms {
    let mut terms = Terms::default();
    terms.may_lose = config.may_lose;
    terms
}
