//! What SQLite's result codes mean to this service.

use std::sync::Arc;

use rusqlite::ErrorCode;
use svc_core::store::CommitError;

use crate::error::StoreError;

/// An error of SQLite as an operator has to read it.
pub(super) fn database(cause: rusqlite::Error) -> StoreError {
    let code = cause.sqlite_error_code();
    let cause = Arc::new(cause);
    match code {
        Some(ErrorCode::DiskFull) => StoreError::Full(cause),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StoreError::ReadOnly(cause),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(cause),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Locked(cause),
        _ => StoreError::Database(cause),
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
