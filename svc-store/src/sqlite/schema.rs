//! Tables as they follow from the list of durable rows, and the steps from one schema to the next.
//!
//! A wide row lies in a rowid table, so that it is appended and only its narrow indexes are searched; a narrow one is its own
//! index. A link is two columns of its row, `<index>_p` and `<index>_o`, and a partial index over them; where rows are ordered
//! by their own ids, the key is the second.

use std::fmt::Write as _;

use rusqlite::Connection;
use svc_core::store::Table;

use super::errors::database;
use super::statements::{link_columns, order_column};
use crate::error::StoreError;

/// Marks the file as this service's: `svc1` in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7376_6331;
/// The schema that this release writes. A change of [`Table::ALL`] or of a table's indexes is a new one, with its step.
pub const SCHEMA: i64 = 1;

/// Step `n` leads from schema `n` to `n + 1`.
const STEPS: &[fn() -> String] = &[first];

const READ_MARKS: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
     (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";

/// What a database file says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Nothing has been written yet.
    Empty,
    /// This service's, of this schema.
    Ours(i64),
    /// Somebody else's.
    Foreign,
}

pub(super) fn marks(conn: &Connection) -> Result<Marks, rusqlite::Error> {
    let (id, version, objects): (i64, i64, i64) =
        conn.query_row(READ_MARKS, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(match (id, version, objects) {
        (APPLICATION_ID, version, _) => Marks::Ours(version),
        (0, 0, 0) => Marks::Empty,
        _ => Marks::Foreign,
    })
}

/// Brings the database to [`SCHEMA`] in one transaction. Another process that starts at once waits and finds it done.
pub(super) fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    let step = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(database)?;
    let from = match marks(&step).map_err(database)? {
        Marks::Ours(version) => version,
        Marks::Empty => 0,
        Marks::Foreign => return Err(StoreError::Malformed("the database changed hands while it was opened")),
    };
    if from > SCHEMA {
        return Err(StoreError::NewerSchema { found: from, known: SCHEMA });
    }
    let done = usize::try_from(from).unwrap_or(0);
    for sql in STEPS.iter().skip(done) {
        step.execute_batch(&sql()).map_err(database)?;
    }
    step.execute_batch(&format!("PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA};"))
        .map_err(database)?;
    step.commit().map_err(database)
}

/// Whether a table's rows are so narrow that they are kept inside their own index.
pub(super) const fn is_narrow(table: Table) -> bool {
    matches!(table, Table::Replay)
}

/// The first schema: one table a record, and the counter of commits.
fn first() -> String {
    let mut sql = String::from(
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;\n\
         INSERT INTO meta (name, value) VALUES ('stamp', 0);\n",
    );
    for table in Table::ALL {
        create(&mut sql, *table);
    }
    sql
}

/// Writing to a `String` cannot fail.
fn create(sql: &mut String, table: Table) {
    let name = table.name();
    let key = if is_narrow(table) { "PRIMARY KEY" } else { "UNIQUE" };
    let _ = write!(
        sql,
        "CREATE TABLE \"{name}\" (key BLOB NOT NULL {key}, stamp INTEGER NOT NULL, format INTEGER NOT NULL, body TEXT NOT NULL"
    );
    for column in table.indexes().iter().flat_map(|index| link_columns(*index)) {
        let _ = write!(sql, ", {column}");
    }
    let _ = writeln!(sql, "){};", if is_narrow(table) { " WITHOUT ROWID" } else { "" });
    for index in table.indexes() {
        let (order, index) = (order_column(*index), index.name());
        let _ = writeln!(
            sql,
            "CREATE INDEX \"{name}_{index}\" ON \"{name}\" ({index}_p, {order}) WHERE {index}_p IS NOT NULL;"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table or index that comes or goes is a new schema: this text may change only together with `SCHEMA` and a step.
    #[test]
    fn the_schema_is_the_one_that_was_agreed() {
        let expected = include_str!("schema.expected.sql");
        let found = first();
        assert!(
            found == expected,
            "the tables changed: add a step and raise SCHEMA, or, before a first release, update schema.expected.sql:\n{found}"
        );
    }

    /// Every schema up to the present one has its step.
    #[test]
    fn there_is_a_step_to_every_schema() {
        assert_eq!(i64::try_from(STEPS.len()), Ok(SCHEMA));
    }
}
