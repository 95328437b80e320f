//! Lists: an index may lie in several tables, each asked for its first entries and then merged.

use rusqlite::Connection;
use svc_core::store::{Key, Listed, Loaded, Range, Table};

use super::errors::database;
use super::redo::Redo;
use super::schema::is_listed_apart;
use super::session::{load_row, read_row};
use super::statements::{Ordered, Tied, Wide, listing};
use crate::error::StoreError;

type Entry = Listed<StoreError>;

pub(super) fn list(conn: &Connection, redo: &mut Redo, range: &Range) -> Result<Vec<Entry>, StoreError> {
    let mut found = Vec::new();
    for table in Table::ALL.iter().filter(|table| table.indexes().contains(&range.index)) {
        if is_listed_apart(range.index) {
            apart(conn, redo, *table, range, &mut found)?;
        } else {
            of_table(conn, *table, range, &mut found)?;
        }
    }
    found.sort_by(|a, b| {
        let order = (a.order, a.key).cmp(&(b.order, b.key));
        if range.newest_first { order.reverse() } else { order }
    });
    found.truncate(range.limit);
    Ok(found)
}

/// A list that is a table of its own, and what of it waits.
fn apart(
    conn: &Connection,
    redo: &mut Redo,
    table: Table,
    range: &Range,
    found: &mut Vec<Entry>,
) -> Result<(), StoreError> {
    let waiting = redo.listed(conn, range)?;
    // Entries that have left are still in the table: the list is read further by as many.
    let limit = range.limit.saturating_add(waiting.left.len());
    of_table(conn, table, &Range { limit, ..range.clone() }, found)?;
    found.retain(|it| !waiting.left.contains(&it.order) && !waiting.came.contains(&it.order));
    for order in waiting.came {
        let key = Key::decode(table, &order.to_be_bytes()).ok_or(MALFORMED)?;
        let row = told(load_row(conn, redo, key))?;
        if row.as_ref().map_or(true, |it| it.record.is_some()) {
            found.push(Entry { order, key, row });
        }
    }
    Ok(())
}

fn of_table(conn: &Connection, table: Table, range: &Range, found: &mut Vec<Entry>) -> Result<(), StoreError> {
    let tied = match &range.after {
        None => Tied::NothingSeen,
        Some((_, key)) if key.table() == table => Tied::ByKey,
        Some((_, key)) if (key.table() < table) != range.newest_first => Tied::AllIn,
        Some(_) => Tied::NoneIn,
    };
    let mut statement =
        conn.prepare_cached(&listing(table, range.index, range.newest_first, tied)).map_err(database)?;
    statement.raw_bind_parameter(1, Wide::of(range.prefix)).map_err(database)?;
    statement.raw_bind_parameter(2, Ordered::of(range.index, range.from)).map_err(database)?;
    statement.raw_bind_parameter(3, Ordered::of(range.index, range.until)).map_err(database)?;
    statement.raw_bind_parameter(4, i64::try_from(range.limit).unwrap_or(i64::MAX)).map_err(database)?;
    if let Some((order, key)) = &range.after {
        statement.raw_bind_parameter(5, Ordered::of(range.index, *order)).map_err(database)?;
        if tied == Tied::ByKey && !is_listed_apart(range.index) {
            statement.raw_bind_parameter(6, key.encode().as_ref()).map_err(database)?;
        }
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(database)? {
        let order = Wide::read(row.get_ref(0).map_err(database)?).ok_or(MALFORMED)?;
        let key = row.get_ref(1).map_err(database)?.as_blob().ok().and_then(|bytes| Key::decode(table, bytes));
        let key = key.ok_or(MALFORMED)?;
        let row = read_row(table, row, 2).map(|(stamp, record)| Loaded { key, stamp, record: Some(record) });
        found.push(Entry { order, key, row: told(row)? });
    }
    Ok(())
}

/// A row as its entry tells it: one that cannot be understood is that entry's own trouble.
fn told(row: Result<Loaded, StoreError>) -> Result<Result<Loaded, StoreError>, StoreError> {
    match row {
        Err(error) if !error.is_of_a_row() => Err(error),
        row => Ok(row),
    }
}

const MALFORMED: StoreError = StoreError::row("as its entry in an index is not what its table holds");
