//! What the database server's errors mean to this service.
//!
//! **Invariant:** of what the server says only its message and code are kept: a detail or a context may quote a row.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;

use svc_core::store::CommitError;
use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// What was said, without details.
#[derive(Debug)]
struct Said(String);

impl fmt::Display for Said {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Said {}

/// A right that the role lacks.
pub(super) fn no_right(lacks: &str) -> StoreError {
    StoreError::NoRight(Arc::new(Said(lacks.to_owned())))
}

fn said(cause: &tokio_postgres::Error) -> Arc<Said> {
    Arc::new(Said(match cause.as_db_error() {
        Some(told) => format!("{}: {} (SQLSTATE {})", told.severity(), told.message(), told.code().code()),
        None => match cause.source() {
            Some(source) => format!("{cause}: {source}"),
            None => cause.to_string(),
        },
    }))
}

/// An error of the server, or of the way to it, as an operator has to read it.
pub(super) fn database(cause: &tokio_postgres::Error) -> StoreError {
    let Some(code) = cause.code() else { return StoreError::Unreachable(said(cause)) };
    if is_gone(code) {
        return StoreError::Unreachable(said(cause));
    }
    match *code {
        SqlState::DISK_FULL => StoreError::Full(said(cause)),
        SqlState::READ_ONLY_SQL_TRANSACTION | SqlState::INSUFFICIENT_PRIVILEGE => StoreError::NoRight(said(cause)),
        SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => StoreError::Corrupt(said(cause)),
        SqlState::LOCK_NOT_AVAILABLE => StoreError::Locked(said(cause)),
        SqlState::QUERY_CANCELED => StoreError::BrokenOff(said(cause)),
        // A statement that this session has prepared is not there, or is there already: it is not the session that it was.
        SqlState::INVALID_SQL_STATEMENT_NAME | SqlState::DUPLICATE_PSTATEMENT => POOLED,
        _ => StoreError::Database(said(cause)),
    }
}

/// That sessions change hands behind the address.
pub(super) const POOLED: StoreError =
    StoreError::UnfitServer { why: "it is a pooler that gives every transaction another session" };

/// That nothing was heard for too long.
pub(super) fn silent() -> StoreError {
    StoreError::Unreachable(Arc::new(Said("nothing was heard from it for too long".to_owned())))
}

/// That it has closed the connection.
pub(super) fn hung_up() -> StoreError {
    StoreError::Unreachable(Arc::new(Said("it closed the connection".to_owned())))
}

/// Whether the connection is of no use any more.
fn is_gone(code: &SqlState) -> bool {
    let class = code.code().get(..2).unwrap_or_default();
    matches!(class, "08" | "28")
        || matches!(
            *code,
            SqlState::ADMIN_SHUTDOWN
                | SqlState::CRASH_SHUTDOWN
                | SqlState::CANNOT_CONNECT_NOW
                | SqlState::TOO_MANY_CONNECTIONS
                | SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
                | SqlState::INVALID_CATALOG_NAME
        )
}

/// Whether another try on another connection may go well at once: this one had ended while nobody used it.
pub(super) fn is_lost(cause: &tokio_postgres::Error) -> bool {
    cause.code().is_none_or(is_gone)
}

/// Whether others are at fault: the same work goes well on fresh rows.
pub(super) fn is_contended(cause: &tokio_postgres::Error) -> bool {
    let contended = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::UNIQUE_VIOLATION];
    cause.code().is_some_and(|code| contended.contains(code))
}

/// An error before anything could be durable: whether the commit itself is at fault decides if it is worth halving.
pub(super) fn before_commit(cause: &tokio_postgres::Error) -> CommitError<StoreError> {
    let class = cause.code().and_then(|code| code.code().get(..2));
    match class {
        // Data, constraints, and limits of the program, such as a row that is too large.
        Some("22" | "23" | "54") => CommitError::Rejected(database(cause)),
        _ => CommitError::Unavailable(database(cause)),
    }
}
