//! What SQLite's result codes mean to this service.

use std::sync::Arc;

use rusqlite::{ErrorCode, ffi};
use svc_core::store::CommitError;

use crate::error::StoreError;

/// An error of SQLite as an operator has to read it.
pub(super) fn database(cause: rusqlite::Error) -> StoreError {
    let code = cause.sqlite_error_code();
    let has_no_room = has_no_room(&cause);
    let cause = Arc::new(cause);
    match code {
        Some(ErrorCode::SystemIoFailure) if has_no_room => StoreError::Full(cause),
        Some(ErrorCode::DiskFull) => StoreError::Full(cause),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::ReadOnly(cause),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(cause),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(cause),
        _ => StoreError::Database(cause),
    }
}

/// Whether the log's index could not be made as large as it has to be, as on a disk that is full: SQLite tells that as a failure of the disk,
/// though of other files it says that there is no room.
const fn has_no_room(cause: &rusqlite::Error) -> bool {
    matches!(cause, rusqlite::Error::SqliteFailure(it, _) if it.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}

impl From<rusqlite::Error> for StoreError {
    fn from(cause: rusqlite::Error) -> Self {
        database(cause)
    }
}

/// An error before `COMMIT`: nothing was written. Whether the commit itself is at fault decides if it is worth halving.
pub(super) fn before_commit(cause: rusqlite::Error) -> CommitError<StoreError> {
    let own_fault = match cause.sqlite_error_code() {
        Some(
            ErrorCode::ConstraintViolation
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::ApiMisuse
            | ErrorCode::Unknown,
        ) => true,
        Some(_) => false,
        // Conversions on our side of SQLite: a column or value that is not what it has to be.
        None => true,
    };
    let error = database(cause);
    if own_fault { CommitError::Rejected(error) } else { CommitError::Unavailable(error) }
}

/// An error of `COMMIT` itself. A full disk means that the commit's last frame is not in the log, so it never happened. After
/// any other the frame may be there and be found again after a crash.
pub(super) fn at_commit(cause: rusqlite::Error) -> CommitError<StoreError> {
    match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => CommitError::Unavailable(database(cause)),
        _ => CommitError::Unknown(database(cause)),
    }
}

/// Whether a row of this key is there already.
pub(super) fn is_taken(cause: &rusqlite::Error) -> bool {
    cause.sqlite_error_code() == Some(ErrorCode::ConstraintViolation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    /// Before `COMMIT` every error means that nothing happened, and only the commit's own fault is worth halving.
    #[test]
    fn before_commit_nothing_happened() {
        for code in
            [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_FULL, ffi::SQLITE_BUSY, ffi::SQLITE_READONLY, ffi::SQLITE_NOMEM]
        {
            assert!(matches!(before_commit(failure(code)), CommitError::Unavailable(_)), "{code}");
        }
        for code in [ffi::SQLITE_TOOBIG, ffi::SQLITE_CONSTRAINT_NOTNULL, ffi::SQLITE_MISMATCH] {
            assert!(matches!(before_commit(failure(code)), CommitError::Rejected(_)), "{code}");
        }
    }

    /// After a failed sync the commit may be on the disk or not: nobody knows, and nobody is told that it is.
    #[test]
    fn a_failed_sync_is_unknown() {
        for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_NOMEM, ffi::SQLITE_CORRUPT] {
            assert!(matches!(at_commit(failure(code)), CommitError::Unknown(_)), "{code}");
        }
        assert!(matches!(at_commit(failure(ffi::SQLITE_FULL)), CommitError::Unavailable(StoreError::Full(_))));
    }

    /// What an operator reads says what to do.
    #[test]
    fn messages_say_what_to_do() {
        let said: Vec<String> =
            [ffi::SQLITE_FULL, ffi::SQLITE_READONLY, ffi::SQLITE_CORRUPT, ffi::SQLITE_BUSY, ffi::SQLITE_NOTADB]
                .map(|code| database(failure(code)).to_string())
                .to_vec();
        for (said, advice) in said.iter().zip(["make room", "belong to this user", "restore", "end it", "restore"]) {
            assert!(said.contains(advice), "{said}");
        }
        // A start on a full disk fails at the log's index first: there is nothing to restore.
        assert!(matches!(database(failure(ffi::SQLITE_IOERR_SHMSIZE)), StoreError::Full(_)));
        for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC] {
            let failed = database(failure(code));
            let fix = failed.fix().unwrap();
            assert!(
                matches!(failed, StoreError::Database(_)) && fix.starts_with("see whether its disk is full"),
                "{fix}"
            );
        }
    }
}
