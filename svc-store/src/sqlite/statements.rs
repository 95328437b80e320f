//! The statements on each table, made once from the list of durable rows.

use std::sync::LazyLock;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use svc_core::store::Table;
use svc_core::value::link::Index;

use super::redo::ORDINAL_BITS;
use super::schema::is_listed_apart;

pub(super) const BEGIN_READ: &str = "BEGIN";
pub(super) const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";
/// From here on what is let go is overwritten, whole pages too.
pub(super) const OVERWRITE_PAGES: &str = "PRAGMA secure_delete=ON";
/// From here on it is overwritten where that takes no page to be written that would not be. So every connection begins.
pub(super) const OVERWRITE_CELLS: &str = "PRAGMA secure_delete=FAST";
/// Changes when, and only when, another connection has committed.
pub(super) const DATA_VERSION: &str = "PRAGMA data_version";
/// Inside a transaction that writes, so that nobody else takes the number that was read before it.
pub(super) const SET_STAMP: &str = "UPDATE meta SET value = ?1 WHERE name = 'stamp'";
pub(super) const LAST_STAMP: &str = "SELECT value FROM meta WHERE name = 'stamp'";
/// The schema that the file has: another program may have brought it to a newer one meanwhile.
pub(super) const USER_VERSION: &str = "PRAGMA user_version";

/// The statements on one table.
#[derive(Debug)]
pub(super) struct Statements {
    /// stamp, format, body of a key.
    pub(super) load: String,
    /// The stamp of a key.
    pub(super) stamp: String,
    /// key, stamp, format, body, and each index's prefix and order.
    pub(super) insert: String,
    /// A row's new image, for each set of indexes that change with it; the set is the bits of the place in this list.
    /// Parameters: key, stamp seen, new stamp, format, body, and prefix and order of each index of the set.
    updates: Vec<String>,
    /// Parameters: key, stamp seen.
    pub(super) delete: String,
    /// Makes the image at an id of `redo` the row, if it is one. Parameter: the id.
    pub(super) fold: String,
    /// Deletes the row, if the image at an id of `redo` says that there is none. Parameter: the id.
    pub(super) fold_away: String,
}

static ALL: LazyLock<Vec<(Table, Statements)>> =
    LazyLock::new(|| Table::ALL.iter().map(|table| (*table, Statements::of(*table))).collect());

impl Statements {
    /// The statements on `table`; there are some for every table.
    pub(super) fn on(table: Table) -> Option<&'static Self> {
        let at = ALL.binary_search_by_key(&table, |(of, _)| *of).ok()?;
        ALL.get(at).map(|(_, statements)| statements)
    }

    /// The update for the set of indexes that `changed` has bits for.
    pub(super) fn update(&self, changed: usize) -> Option<&str> {
        self.updates.get(changed).map(String::as_str)
    }

    fn of(table: Table) -> Self {
        let name = table.name();
        let links = |set: usize, each: &dyn Fn(&str, usize) -> String| -> String {
            let chosen = own_indexes(table).enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            let columns = chosen.flat_map(|(_, index)| link_columns(index));
            columns.enumerate().map(|(place, column)| each(&column, place)).collect()
        };
        let every = (1 << own_indexes(table).count()) - 1;
        let columns = links(every, &|column, _| format!(", {column}"));
        let values = links(every, &|_, place| format!(", ?{}", 5 + place));
        let update = |set: usize| {
            let links = links(set, &|column, place| format!(", {column}=?{}", 6 + place));
            format!("UPDATE \"{name}\" SET stamp=?3, format=?4, body=?5{links} WHERE key=?1 AND stamp=?2")
        };
        Self {
            load: format!("SELECT stamp, format, body FROM \"{name}\" WHERE key=?1"),
            stamp: format!("SELECT stamp FROM \"{name}\" WHERE key=?1"),
            insert: format!(
                "INSERT INTO \"{name}\" (key, stamp, format, body{columns}) VALUES (?1, ?2, ?3, ?4{values})"
            ),
            updates: (0..=every).map(update).collect(),
            delete: format!("DELETE FROM \"{name}\" WHERE key=?1 AND stamp=?2"),
            fold: format!(
                "INSERT INTO \"{name}\" (key, stamp, format, body) \
                 SELECT key, id >> {ORDINAL_BITS}, format, body FROM redo WHERE id=?1 AND body IS NOT NULL \
                 ON CONFLICT (key) DO UPDATE SET stamp=excluded.stamp, format=excluded.format, body=excluded.body"
            ),
            fold_away: format!(
                "DELETE FROM \"{name}\" WHERE key IN (SELECT key FROM redo WHERE id=?1 AND body IS NULL)"
            ),
        }
    }
}

/// The indexes that are columns of their table.
pub(super) fn own_indexes(table: Table) -> impl Iterator<Item = Index> + Clone {
    table.indexes().iter().copied().filter(|index| !is_listed_apart(*index))
}

/// The statements on a list that is a table of its own. Parameters: prefix, key.
#[derive(Debug)]
pub(super) struct Lists {
    /// Adds an entry, where it is not there yet.
    pub(super) come: String,
    /// Takes an entry away, where it is there.
    pub(super) leave: String,
}

static APART: LazyLock<Vec<(Index, Lists)>> = LazyLock::new(|| {
    let apart = Index::ALL.iter().copied().filter(|index| is_listed_apart(*index));
    apart.map(|index| (index, Lists::of(index))).collect()
});

impl Lists {
    /// The statements on the list of `index`; there are some for every list that is a table of its own.
    pub(super) fn on(index: Index) -> Option<&'static Self> {
        APART.iter().find(|(of, _)| *of == index).map(|(_, lists)| lists)
    }

    fn of(index: Index) -> Self {
        let name = index.name();
        Self {
            come: format!("INSERT OR IGNORE INTO \"{name}\" (prefix, key) VALUES (?1, ?2)"),
            leave: format!("DELETE FROM \"{name}\" WHERE prefix=?1 AND key=?2"),
        }
    }
}

/// The columns that a link takes: its prefix, and its order where that is not the row's key.
pub(super) fn link_columns(index: Index) -> impl Iterator<Item = String> {
    let order = (!index.is_by_key()).then(|| order_column(index));
    [format!("{}_p", index.name())].into_iter().chain(order)
}

/// The column that an index is ordered by.
pub(super) fn order_column(index: Index) -> String {
    if index.is_by_key() { "key".to_owned() } else { format!("{}_o", index.name()) }
}

/// The list of an index in one table, in the direction of reading; `tied` is what the keys at the order of the entry that
/// the reader has seen last have to be.
pub(super) fn listing(table: Table, index: Index, newest_first: bool, tied: Tied) -> String {
    if is_listed_apart(index) {
        return listing_apart(table, index, newest_first, tied);
    }
    let (name, order, prefix) = (table.name(), order_column(index), index.name());
    let (direction, beyond, seen) = if newest_first { ("DESC", "<", "?5") } else { ("ASC", ">", "?5") };
    let after = match tied {
        Tied::NothingSeen => String::new(),
        Tied::AllIn => format!(" AND {order} {beyond}= {seen}"),
        Tied::NoneIn => format!(" AND {order} {beyond} {seen}"),
        Tied::ByKey => format!(" AND ({order} {beyond} {seen} OR ({order} = {seen} AND key {beyond} ?6))"),
    };
    let within = if index.is_by_key() { String::new() } else { format!(", key {direction}") };
    format!(
        "SELECT {order}, key, stamp, format, body FROM \"{name}\" \
         WHERE {prefix}_p = ?1 AND {order} >= ?2 AND {order} < ?3{after} \
         ORDER BY {order} {direction}{within} LIMIT ?4"
    )
}

/// The same where the list is a table of its own, and the key its order.
fn listing_apart(table: Table, index: Index, newest_first: bool, tied: Tied) -> String {
    let (name, list) = (table.name(), index.name());
    let (direction, beyond) = if newest_first { ("DESC", "<") } else { ("ASC", ">") };
    let after = if tied == Tied::NothingSeen { String::new() } else { format!(" AND list.key {beyond} ?5") };
    format!(
        "SELECT list.key, list.key, it.stamp, it.format, it.body FROM \"{list}\" AS list JOIN \"{name}\" AS it ON it.key = list.key \
         WHERE list.prefix = ?1 AND list.key >= ?2 AND list.key < ?3{after} ORDER BY list.key {direction} LIMIT ?4"
    )
}

/// What becomes of a table's entries that stand at the very order of the last entry seen, which may be another table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tied {
    /// Nothing was seen yet.
    NothingSeen,
    /// They come after it.
    AllIn,
    /// They came before it.
    NoneIn,
    /// Their keys decide.
    ByKey,
}

/// A number of 128 bits as a column: below 2^63 an integer, from there on 16 bytes. SQLite sorts every integer before every
/// blob, so their order is the numbers'.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    small: Option<i64>,
    bytes: [u8; 16],
}

impl Wide {
    pub(super) fn of(number: u128) -> Self {
        Self { small: i64::try_from(number).ok(), bytes: number.to_be_bytes() }
    }

    pub(super) fn read(value: ValueRef<'_>) -> Option<u128> {
        match value {
            ValueRef::Integer(small) => u128::try_from(small).ok(),
            ValueRef::Blob(bytes) => bytes.try_into().ok().map(u128::from_be_bytes),
            _ => None,
        }
    }
}

impl ToSql for Wide {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.small {
            Some(small) => ToSqlOutput::Owned(Value::Integer(small)),
            None => ToSqlOutput::Borrowed(ValueRef::Blob(&self.bytes)),
        })
    }
}

/// A number of 128 bits as the order of an index: as a column of its own, or as the key that it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ordered {
    Own(Wide),
    Key([u8; 16]),
}

impl Ordered {
    pub(super) fn of(index: Index, order: u128) -> Self {
        if index.is_by_key() { Self::Key(order.to_be_bytes()) } else { Self::Own(Wide::of(order)) }
    }
}

impl ToSql for Ordered {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Own(number) => number.to_sql(),
            Self::Key(bytes) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(bytes))),
        }
    }
}

/// A body's bytes as text. They are UTF-8: the codec wrote them as JSON.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text<'a>(pub(super) &'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}
