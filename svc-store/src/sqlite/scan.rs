//! Lists: an index may lie in several tables, each asked for its first entries and then merged.

use rusqlite::Connection;
use svc_core::store::{Found, Key, Loaded, Range, Table};

use super::errors::database;
use super::session::read_row;
use super::statements::{Ordered, Tied, Wide, listing};
use crate::error::StoreError;

pub(super) fn list(conn: &Connection, range: &Range) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    for table in Table::ALL.iter().filter(|table| table.indexes().contains(&range.index)) {
        of_table(conn, *table, range, &mut found)?;
    }
    found.sort_by(|a, b| {
        let order = (a.order, a.row.key).cmp(&(b.order, b.row.key));
        if range.newest_first { order.reverse() } else { order }
    });
    found.truncate(range.limit);
    Ok(found)
}

fn of_table(conn: &Connection, table: Table, range: &Range, found: &mut Vec<Found>) -> Result<(), StoreError> {
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
        if tied == Tied::ByKey {
            statement.raw_bind_parameter(6, key.encode().as_ref()).map_err(database)?;
        }
    }
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(database)? {
        let order = Wide::read(row.get_ref(0).map_err(database)?).ok_or(MALFORMED)?;
        let key = row.get_ref(1).map_err(database)?.as_blob().ok().and_then(|bytes| Key::decode(table, bytes));
        let key = key.ok_or(MALFORMED)?;
        let (stamp, record) = read_row(table, row, 2)?;
        found.push(Found { order, row: Loaded { key, stamp, record: Some(record) } });
    }
    Ok(())
}

const MALFORMED: StoreError = StoreError::Malformed("an index entry is not what its table holds");
