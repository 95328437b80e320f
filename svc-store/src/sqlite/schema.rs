//! Tables as they follow from the list of durable rows, and the steps from one schema to the next.
//!
//! What nearly every decision writes somewhere in the middle of its table waits in `redo` first; see [`super::redo`].
//!
//! A wide row lies in a rowid table, so that it is appended and only its narrow indexes are searched; a narrow one is its own
//! index. A link is two columns of its row, `<index>_p` and `<index>_o`, and a partial index over them; where rows are ordered
//! by their own ids, the key is the second.

use std::fmt::Write as _;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};
use svc_core::store::Table;
use svc_core::value::link::Index;

use super::errors::database;
use super::moved::{MOVED, refusal};
use super::session::number;
use super::statements::{USER_VERSION, link_columns, order_column, own_indexes};
use crate::brought::tell_of;
use crate::error::StoreError;

/// Marks the file as this service's: `svc1` in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x7376_6331;
/// The schema that this release writes. A change of [`Table::ALL`] or of a table's indexes is a new one, with its step. So is a
/// member more of a row, though its step does nothing: a program that does not know the member drops it when it writes the row
/// again, and with it what it forbade. What rows hold is written down in `rows.expected.txt`.
pub const SCHEMA: i64 = 4;

/// Step `n` leads from schema `n` to `n + 1`.
const STEPS: &[fn() -> String] = &[first, second, third, fourth];

const READ_MARKS: &str = "SELECT (SELECT application_id FROM pragma_application_id), \
     (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)";

/// What a database file says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marks {
    /// Nothing has been written yet.
    Empty,
    /// This service's, of this schema.
    Ours(i64),
    /// The same, and its gate went on in another database.
    Moved(i64),
    /// Somebody else's.
    Foreign,
}

pub(super) fn marks(conn: &Connection) -> Result<Marks, rusqlite::Error> {
    let (id, version, objects): (i64, i64, i64) =
        conn.query_row(READ_MARKS, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(match (id, version, objects) {
        (APPLICATION_ID, version, _) if version >= MOVED => Marks::Moved(version - MOVED),
        (APPLICATION_ID, version, _) => Marks::Ours(version),
        (0, 0, 0) => Marks::Empty,
        _ => Marks::Foreign,
    })
}

/// Brings the database to [`SCHEMA`] in one transaction. Another process that starts at once waits and finds it done.
pub(super) fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    bring(conn, false)
}

/// The same, also of a file that is marked as moved where it `may_be` so; the mark stays.
pub(super) fn bring(conn: &mut Connection, may_be: bool) -> Result<(), StoreError> {
    let step = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(database)?;
    let (from, mark) = match marks(&step).map_err(database)? {
        Marks::Ours(version) => (version, 0),
        Marks::Moved(version) if may_be => (version, MOVED),
        Marks::Moved(_) => return Err(refusal(&step, Path::new(step.path().unwrap_or_default()))),
        Marks::Empty => (0, 0),
        Marks::Foreign => return Err(StoreError::Malformed("the database changed hands while it was opened")),
    };
    if from > SCHEMA {
        return Err(StoreError::NewerSchema { found: from, known: SCHEMA });
    }
    let done = usize::try_from(from).unwrap_or(0);
    for sql in STEPS.iter().skip(done) {
        step.execute_batch(&sql()).map_err(database)?;
    }
    renew_indexes(&step).map_err(database)?;
    step.execute_batch(&format!("PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={};", SCHEMA + mark))
        .map_err(database)?;
    step.commit().map_err(database)?;
    tell_of(from, SCHEMA);
    Ok(())
}

/// That the file's schema is not one that another program has brought it to since it was opened, and that this one would write
/// rows without what they are to forbid.
///
/// # Errors
/// [`StoreError::NewerSchema`], or that it was moved.
pub(super) fn is_known(conn: &Connection) -> Result<(), StoreError> {
    let found = number(conn, USER_VERSION)?;
    if found >= MOVED {
        return Err(refusal(conn, Path::new(conn.path().unwrap_or_default())));
    }
    if found > SCHEMA { Err(StoreError::NewerSchema { found, known: SCHEMA }) } else { Ok(()) }
}

/// Whether a table's rows are so narrow that they are kept inside their own index.
pub(super) const fn is_narrow(table: Table) -> bool {
    matches!(table, Table::Payee | Table::Replay)
}

/// Whether a table's rows wait in `redo` before they are moved to it: those that decisions write all over the table. Their
/// tables have no indexes.
pub(super) const fn is_deferred(table: Table) -> bool {
    matches!(table, Table::Activity | Table::Payee | Table::Replay)
}

/// Whether an index is a table of its own, whose entries wait in `redo` before they are moved to it: a list of many lists'
/// ends. Such an index is of one table, by key.
pub(super) const fn is_listed_apart(index: Index) -> bool {
    matches!(index, Index::ActionsOf)
}

/// The first schema: one table a record, the counter of commits, and what waits for its table.
fn first() -> String {
    let mut sql = String::from(
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;\n\
         INSERT INTO meta (name, value) VALUES ('stamp', 0);\n\
         CREATE TABLE redo (id INTEGER PRIMARY KEY, \"of\" TEXT NOT NULL, key BLOB NOT NULL, format INTEGER NOT NULL, body);\n",
    );
    for table in Table::ALL.iter().filter(|it| since(**it) == 1) {
        create(&mut sql, *table);
    }
    sql
}

/// The second: what was received over integrations; and rows have members that programs of the first would drop.
fn second() -> String {
    let mut sql = String::new();
    for table in Table::ALL.iter().filter(|it| since(**it) == 2) {
        create(&mut sql, *table);
    }
    sql
}

/// The third: what waits and is alike, whom identity providers vouch for, and how far exports have come; and rows have members that
/// programs of the second would drop.
fn third() -> String {
    let mut sql = String::new();
    for table in Table::ALL.iter().filter(|it| since(**it) == 3) {
        create(&mut sql, *table);
    }
    sql
}

/// The fourth: rows have members that programs of the third would drop, such as when an identity provider shut a person out.
const fn fourth() -> String {
    String::new()
}

/// The schema that a table came with.
const fn since(table: Table) -> i64 {
    match table {
        Table::Received => 2,
        Table::Export | Table::SsoLink | Table::Topic => 3,
        _ => 1,
    }
}

/// Writing to a `String` cannot fail.
fn create(sql: &mut String, table: Table) {
    let name = table.name();
    let key = if is_narrow(table) { "PRIMARY KEY" } else { "UNIQUE" };
    let _ = write!(
        sql,
        "CREATE TABLE \"{name}\" (key BLOB NOT NULL {key}, stamp INTEGER NOT NULL, format INTEGER NOT NULL, body TEXT NOT NULL"
    );
    for column in own_indexes(table).flat_map(link_columns) {
        let _ = write!(sql, ", {column}");
    }
    let _ = writeln!(sql, "){};", if is_narrow(table) { " WITHOUT ROWID" } else { "" });
    for index in table.indexes().iter().copied().filter(|index| is_listed_apart(*index)) {
        let index = index.name();
        let _ = writeln!(sql, "CREATE TABLE \"{index}\" (prefix, key BLOB, PRIMARY KEY (prefix, key)) WITHOUT ROWID;");
    }
    for index in own_indexes(table) {
        let _ = writeln!(sql, "{};", index_of(table, index));
    }
}

/// How an index of a table is made.
fn index_of(table: Table, index: Index) -> String {
    let (name, order, tied) = (table.name(), order_column(index), if is_tied(index) { ", key" } else { "" });
    let index = index.name();
    format!("CREATE INDEX \"{name}_{index}\" ON \"{name}\" ({index}_p, {order}{tied}) WHERE {index}_p IS NOT NULL")
}

/// Whether very many rows may stand at one instant of an index. Their keys stand in it, so that the first of them are found without
/// reading all.
const fn is_tied(index: Index) -> bool {
    matches!(index, Index::DeliveriesOf | Index::Outbox | Index::TasksOf | Index::Wake)
}

/// Makes those indexes anew that a program of before made without their keys. That program reads and writes them as well, so this is
/// no schema of its own.
fn renew_indexes(conn: &Connection) -> Result<(), rusqlite::Error> {
    let mut made = conn.prepare("SELECT sql FROM sqlite_schema WHERE type='index' AND name=?1")?;
    for table in Table::ALL {
        for index in own_indexes(*table).filter(|it| is_tied(*it)) {
            let (name, wanted) = (format!("{}_{}", table.name(), index.name()), index_of(*table, index));
            let found: Option<String> = made.query_row([&name], |row| row.get(0)).optional()?;
            if found.as_ref() != Some(&wanted) {
                conn.execute_batch(&format!("DROP INDEX IF EXISTS \"{name}\"; {wanted};"))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A table or index that comes or goes is a new schema: this text may change only together with `SCHEMA` and a step.
    #[test]
    fn the_schema_is_the_one_that_was_agreed() {
        let expected = include_str!("schema.expected.sql");
        let found: String = STEPS.iter().map(|step| step()).collect();
        assert!(
            found == expected,
            "the tables changed: add a step and raise SCHEMA, or, before a first release, update schema.expected.sql:\n{found}"
        );
    }

    /// A database of an older schema is brought to the present one, where it has what a new one has.
    #[test]
    fn an_older_schema_is_brought_to_the_present_one() {
        let objects = |conn: &Connection| {
            let mut found = conn.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY sql").unwrap();
            let found = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
            found.collect::<Result<Vec<_>, _>>().unwrap()
        };
        let mut fresh = Connection::open_in_memory().unwrap();
        migrate(&mut fresh).unwrap();
        for from in 1..SCHEMA {
            let mut conn = Connection::open_in_memory().unwrap();
            let steps = usize::try_from(from).unwrap();
            STEPS.iter().take(steps).for_each(|step| conn.execute_batch(&step()).unwrap());
            let marks = format!("PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={from};");
            conn.execute_batch(&marks).unwrap();
            // A step that does nothing is for what rows hold.
            let makes_some = STEPS.iter().skip(steps).any(|step| !step().is_empty());
            assert_eq!(objects(&conn) != objects(&fresh), makes_some, "{from}");
            migrate(&mut conn).unwrap();
            assert_eq!(objects(&conn), objects(&fresh), "{from}");
            assert_eq!(super::marks(&conn).unwrap(), Marks::Ours(SCHEMA));
        }
    }

    /// An index that a program of before made without the keys is made anew, and rows of one instant are then found in their order
    /// without being sorted.
    #[test]
    fn indexes_of_before_are_made_anew() {
        let plan = |conn: &Connection| -> String {
            let sql = super::super::statements::listing(
                Table::Action,
                Index::Wake,
                false,
                super::super::statements::Tied::NothingSeen,
            );
            let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let lines = plan.query_map((1, 0, 9, 1), |row| row.get::<_, String>(3)).unwrap();
            lines.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
        };
        let mut conn = Connection::open_in_memory().unwrap();
        migrate(&mut conn).unwrap();
        conn.execute_batch(
            "DROP INDEX action_wake; CREATE INDEX \"action_wake\" ON \"action\" (wake_p, wake_o) WHERE wake_p IS NOT NULL;",
        )
        .unwrap();
        assert!(plan(&conn).contains("TEMP B-TREE"), "{}", plan(&conn));
        migrate(&mut conn).unwrap();
        assert!(plan(&conn).contains("action_wake") && !plan(&conn).contains("TEMP B-TREE"), "{}", plan(&conn));
    }

    /// A row that waits is found by its key alone, and a list of its own lists one table by its keys.
    #[test]
    fn what_waits_has_no_other_index() {
        for table in Table::ALL.iter().filter(|table| is_deferred(**table)) {
            assert!(table.indexes().is_empty() && !table.is_immutable(), "{table:?}");
        }
        for index in Index::ALL.iter().filter(|index| is_listed_apart(**index)) {
            let tables = Table::ALL.iter().filter(|table| table.indexes().contains(index)).count();
            assert!(index.is_by_key() && tables == 1, "{index:?}");
        }
    }

    /// Every schema up to the present one has its step.
    #[test]
    fn there_is_a_step_to_every_schema() {
        assert_eq!(i64::try_from(STEPS.len()), Ok(SCHEMA));
    }
}
