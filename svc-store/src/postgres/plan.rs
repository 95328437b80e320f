//! A commit as columns for statements, and rows of the database as rows of the service.

use std::collections::BTreeMap;

use svc_core::store::{Commit, Key, Listed, Loaded, Range, Record, Stamp, Table, Write, whose};
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::{Link, Order};
use tokio_postgres::Row;

use super::errors::database;
use crate::error::StoreError;

/// Bytes of one message to the other servers: the database takes less than 8,000.
const TOLD_BYTES_MAX: usize = 7_900;
/// Messages of one commit; more than that, and everybody looks for themselves.
const TOLD_MAX: usize = 8;
/// Says that everybody has to look.
const LOOK: &str = "*";

/// Rows by name: their tables, and their keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) tables: Vec<&'static str>,
    pub(super) keys: Vec<Vec<u8>>,
}

impl Keys {
    pub(super) fn of<'a>(keys: impl IntoIterator<Item = &'a Key>) -> Self {
        let mut all = Self::default();
        keys.into_iter().for_each(|key| all.push(*key));
        all
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    fn push(&mut self, key: Key) {
        self.tables.push(key.table().name());
        self.keys.push(key.encode().as_ref().to_vec());
    }
}

/// New images of rows.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) rows: Keys,
    pub(super) formats: Vec<i16>,
    pub(super) bodies: Vec<String>,
}

impl Images {
    pub(super) fn push(&mut self, key: Key, record: &Record) -> Result<(), StoreError> {
        let encoded = record.encode()?;
        self.formats.push(i16::try_from(encoded.format).map_err(|_| FORMAT)?);
        let mut body = String::from_utf8(encoded.body).map_err(|_| StoreError::Malformed("a body is not UTF-8"))?;
        // The room that a row leaves for later is of no use here: a row that changes is written anew.
        body.truncate(body.trim_end().len());
        self.bodies.push(body);
        self.rows.push(key);
        Ok(())
    }
}

/// Entries of indexes.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) indexes: Vec<&'static str>,
    pub(super) prefixes: Vec<Vec<u8>>,
    /// None: the number of the commit that writes them.
    pub(super) orders: Vec<Option<Vec<u8>>>,
    pub(super) rows: Keys,
}

impl Entries {
    pub(super) fn push(&mut self, key: Key, link: Link, written: Option<Stamp>) {
        self.indexes.push(link.index.name());
        self.prefixes.push(wide(link.prefix));
        self.orders.push(match (link.order, written) {
            (Order::At(order), _) => Some(wide(order)),
            (Order::Stamp, Some(stamp)) => Some(wide(u128::from(stamp.0))),
            (Order::Stamp, None) => None,
        });
        self.rows.push(key);
    }
}

/// Rows that are locked in one way, one after the other.
#[derive(Debug)]
pub(super) struct Locks {
    pub(super) written: bool,
    /// Where in the checks the first of them stands.
    pub(super) first: usize,
    pub(super) rows: Keys,
}

/// Where a commit queues for the rows that everybody reads, in order and each once: a queue for each workspace, in which whoever reads
/// its row stands beside others, and whoever writes that row or an agent's stands alone. Every decision for an agent reads its
/// workspace too. One queue for all agents of a workspace keeps the locks of a commit few, however many agents it stops, as the
/// database has room for so many in all; and nobody waits for another workspace.
#[derive(Debug, Default)]
pub(super) struct Queues {
    pub(super) numbers: Vec<i32>,
    pub(super) written: Vec<bool>,
}

impl Queues {
    /// In the order of their numbers, and whether it stands alone there.
    fn of(queues: BTreeMap<i32, bool>) -> Self {
        let (numbers, written) = queues.into_iter().unzip();
        Self { numbers, written }
    }
}

/// Where a commit queues for a row that it has seen so, and whether it stands alone there. A new agent is nobody's yet.
fn queue_for(key: Key, seen: Stamp, write: Option<&Write>) -> Option<(i32, bool)> {
    match (key, write.and_then(|it| it.record.as_ref())) {
        (Key::Workspace(id), _) => Some((queue(id), write.is_some())),
        (_, Some(Record::Agent(agent))) if seen != Stamp::ABSENT => Some((queue(agent.workspace), true)),
        _ => None,
    }
}

/// The number of a workspace's queue. Ids are time and chance: the last bits are chance.
fn queue(workspace: WorkspaceId) -> i32 {
    i32::try_from(workspace.bits() & 0x7fff_ffff).unwrap_or_default()
}

/// All that a commit has the database do.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) checks: Vec<(Key, Stamp)>,
    pub(super) queues: Queues,
    pub(super) locks: Vec<Locks>,
    pub(super) inserts: Images,
    pub(super) updates: Images,
    pub(super) deletes: Keys,
    pub(super) unlinks: Entries,
    pub(super) links: Entries,
    pub(super) told: Vec<String>,
}

impl Plan {
    /// # Errors
    /// The commit is malformed, or a row cannot be written.
    pub(super) fn of(commit: &Commit, is_told: impl Fn(Table) -> bool) -> Result<Self, StoreError> {
        let mut plan = Self { checks: commit.checks.clone(), ..Self::default() };
        let mut writes = commit.writes.iter().peekable();
        let mut queues = BTreeMap::new();
        for (at, (key, seen)) in commit.checks.iter().enumerate() {
            let write = writes.next_if(|it| it.key == *key);
            plan.lock(at, *key, write.is_some());
            if let Some((queue, alone)) = queue_for(*key, *seen, write) {
                *queues.entry(queue).or_default() |= alone;
            }
            let Some(write) = write else { continue };
            match &write.record {
                Some(record) if *seen == Stamp::ABSENT => plan.inserts.push(*key, record)?,
                Some(record) => plan.updates.push(*key, record)?,
                None => plan.deletes.push(*key),
            }
            write.unlink.iter().for_each(|link| plan.unlinks.push(*key, *link, Some(*seen)));
            write.link.iter().for_each(|link| plan.links.push(*key, *link, None));
        }
        if writes.next().is_some() {
            return Err(StoreError::Malformed("a row is written that is not checked, or rows are not in order"));
        }
        plan.queues = Queues::of(queues);
        plan.told = told(commit.writes.iter().map(|it| it.key).filter(|key| is_told(key.table())));
        Ok(plan)
    }

    fn lock(&mut self, at: usize, key: Key, written: bool) {
        match self.locks.last_mut().filter(|it| it.written == written) {
            Some(run) => run.rows.push(key),
            None => self.locks.push(Locks { written, first: at, rows: Keys::of([&key]) }),
        }
    }

    /// Which rows it locks, and whether to write them.
    pub(super) fn locked(&self) -> impl Iterator<Item = (Key, bool)> + '_ {
        let modes = self.locks.iter().flat_map(|run| run.rows.tables.iter().map(|_| run.written));
        self.checks.iter().map(|(key, _)| *key).zip(modes)
    }
}

/// What the others are told: the keys, in as few messages as they fit in.
fn told(keys: impl Iterator<Item = Key>) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for key in keys {
        let name = format!("{}:{:?} ", key.table().name(), key.encode());
        match messages.last_mut().filter(|it| it.len().saturating_add(name.len()) <= TOLD_BYTES_MAX) {
            Some(message) => message.push_str(&name),
            None => messages.push(name),
        }
    }
    if messages.len() > TOLD_MAX { vec![LOOK.to_owned()] } else { messages }
}

/// The keys that a message names; `None` where everybody has to look, also because it is of a release that knows other tables.
pub(super) fn heard(message: &str) -> Option<Vec<Key>> {
    let key = |name: &str| {
        let (table, key) = name.split_once(':')?;
        let table = Table::ALL.iter().find(|it| it.name() == table)?;
        let bytes: Option<Vec<u8>> =
            (0..key.len()).step_by(2).map(|at| byte(key.get(at..at.checked_add(2)?)?)).collect();
        Key::decode(*table, &bytes?)
    };
    message.split_ascii_whitespace().map(key).collect()
}

fn byte(digits: &str) -> Option<u8> {
    u8::from_str_radix(digits, 16).ok()
}

/// A number of 128 bits as a column.
pub(super) fn wide(number: u128) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn narrow(bytes: &[u8]) -> Result<u128, StoreError> {
    bytes.try_into().map(u128::from_be_bytes).map_err(|_| ENTRY)
}

/// A stretch of an index as the parameters of its statement.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) newest_first: bool,
    pub(super) index: &'static str,
    pub(super) prefix: Vec<u8>,
    pub(super) from: Vec<u8>,
    pub(super) until: Vec<u8>,
    pub(super) limit: i64,
    pub(super) tables: Vec<&'static str>,
    /// The place in `tables`, from 1, of the last entry that was seen; -1 where none was.
    pub(super) seen_table: i32,
    pub(super) seen_order: Vec<u8>,
    pub(super) seen_key: Vec<u8>,
}

impl Listing {
    pub(super) fn of(range: &Range) -> Self {
        let tables: Vec<Table> = Table::ALL.iter().copied().filter(|it| it.indexes().contains(&range.index)).collect();
        let (mut from, mut until) = (range.from, range.until);
        let (mut seen_table, mut seen_order, mut seen_key) = (-1, 0, Vec::new());
        if let Some((order, key)) = &range.after {
            // Tables sort as they are declared; one without such an index stands between two that have it.
            let before = tables.iter().filter(|it| **it <= key.table()).count();
            let own = tables.contains(&key.table());
            seen_table = i32::try_from(before).unwrap_or(i32::MAX);
            seen_order = *order;
            // Behind a table that is not of the list come all keys of the next, and before it all of the one before.
            seen_key = if own { key.encode().as_ref().to_vec() } else { vec![0xff; 32] };
            if range.newest_first {
                until = until.min(order.saturating_add(1));
            } else {
                from = from.max(*order);
            }
        }
        Self {
            newest_first: range.newest_first,
            index: range.index.name(),
            prefix: wide(range.prefix),
            from: wide(from),
            until: wide(until),
            limit: i64::try_from(range.limit).unwrap_or(i64::MAX),
            tables: tables.iter().map(|it| it.name()).collect(),
            seen_table,
            seen_order: wide(seen_order),
            seen_key,
        }
    }
}

/// The rows of [`LOAD`](super::statements::LOAD) as answers to `keys`, each once.
pub(super) fn loaded(keys: &[Key], rows: &[Row]) -> Result<Vec<Loaded>, StoreError> {
    let mut answers: Vec<Loaded> =
        keys.iter().map(|key| Loaded { key: *key, stamp: Stamp::ABSENT, record: None }).collect();
    for row in rows {
        let at: i64 = column(row, 0)?;
        let at = usize::try_from(at).ok().and_then(|it| it.checked_sub(1));
        let answer = at.and_then(|at| answers.get_mut(at)).ok_or(StoreError::LeftOut)?;
        if column::<Option<i64>>(row, 1)?.is_some() {
            let (stamp, record) = stamped(answer.key.table(), row, 1)?;
            (answer.stamp, answer.record) = (stamp, Some(record));
        }
    }
    Ok(answers)
}

/// The rows of a listing, in order.
pub(super) fn listed(rows: &[Row]) -> Result<Vec<Listed<StoreError>>, StoreError> {
    let found = rows.iter().map(|row| {
        let order = narrow(column::<&[u8]>(row, 0)?)?;
        let name: &str = column(row, 1)?;
        let table = Table::ALL.iter().find(|it| it.name() == name).copied().ok_or(ENTRY)?;
        let key = Key::decode(table, column::<&[u8]>(row, 2)?).ok_or(ENTRY)?;
        // One that cannot be understood is its entry's own trouble.
        let row = match stamped(table, row, 3) {
            Ok((stamp, record)) => Ok(Loaded { key, stamp, record: Some(record) }),
            Err(error) if error.is_of_a_row() => Err(error),
            Err(error) => return Err(error),
        };
        Ok(Listed { order, key, row })
    });
    found.collect()
}

/// stamp, format and body, in the columns from `first` on.
fn stamped(table: Table, row: &Row, first: usize) -> Result<(Stamp, Record), StoreError> {
    let stamp: i64 = column(row, first)?;
    let format: i16 = column(row, first.saturating_add(1))?;
    let body = column::<&str>(row, first.saturating_add(2))?.as_bytes();
    let none = |_| StoreError::Row { why: NO_NUMBER, whose: whose(table, body) };
    let stamp = u64::try_from(stamp).map(Stamp).map_err(none)?;
    let format = u16::try_from(format).map_err(none)?;
    Ok((stamp, Record::decode(table, format, body)?))
}

pub(super) fn column<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|cause| database(&cause))
}

pub(super) fn stamp_of(number: i64) -> Result<Stamp, StoreError> {
    u64::try_from(number).map(Stamp).map_err(|_| StoreError::row(NO_NUMBER))
}

const FORMAT: StoreError = StoreError::Malformed("a row's format is no small number");
const ENTRY: StoreError = StoreError::row("as its entry in an index is not what its table holds");
const NO_NUMBER: &str = "as its stamp or its format is no number that it can be";

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "a test may panic")]
    use std::sync::Arc;

    use svc_core::state::gate::Agent;
    use svc_core::testing::sample;
    use svc_core::value::id::AgentId;

    use super::*;

    /// Every key is told so that the others know it; a message that names what they do not know has them look.
    #[test]
    fn what_is_told_is_understood() {
        let keys: Vec<Key> = sample::rows().iter().map(Record::key).collect();
        let messages = told(keys.iter().copied());
        let understood: Vec<Key> = messages.iter().filter_map(|it| heard(it)).flatten().collect();
        assert_eq!(understood, keys);
        assert!(messages.iter().all(|it| it.len() <= TOLD_BYTES_MAX));
        for message in [LOOK, "agent", "agent:0g", "agent:00", "of_tomorrow:00000000000000000000000000000001"] {
            assert_eq!(heard(message), None, "{message}");
        }
    }

    /// A commit of very many rows has everybody look.
    #[test]
    fn too_many_keys_are_not_told() {
        let keys = (0..5_000_u128).map(|bits| sample::payload(sample::id(bits), "x").key());
        assert_eq!(told(keys), [LOOK]);
    }

    /// A stop of very many agents stands alone in the queue of their workspace and in no other; whoever reads stands beside others.
    #[test]
    fn a_workspace_waits_for_its_own_alone() {
        let agent = sample::rows().into_iter().find(|it| matches!(it, Record::Agent(_)));
        let Some(Record::Agent(agent)) = agent else { panic!("there is one") };
        let of = |workspace: u128, bits: u128| {
            let id = AgentId::from_bits(bits);
            Record::Agent(Arc::new(Agent { id, workspace: WorkspaceId::from_bits(workspace), ..Agent::clone(&agent) }))
        };
        let write =
            |record: Record| Write { key: record.key(), record: Some(record), unlink: Vec::new(), link: Vec::new() };
        let queued = |seen: Stamp, writes: Vec<Write>| {
            let reads = [7_u128, 8].map(|it| (Key::Workspace(WorkspaceId::from_bits(it)), Stamp(1)));
            let mut checks: Vec<(Key, Stamp)> = writes.iter().map(|it| (it.key, seen)).chain(reads).collect();
            checks.sort_unstable_by_key(|it| it.0);
            let plan = Plan::of(&Commit { checks, writes }, |_| false).map(|it| it.queues);
            plan.map(|it| (it.numbers, it.written)).ok()
        };
        assert_eq!(queued(Stamp(1), Vec::new()), Some((vec![7, 8], vec![false, false])));
        let stop = (1..=2_000).map(|bits| write(of(8, bits))).collect();
        assert_eq!(queued(Stamp(1), stop), Some((vec![7, 8], vec![false, true])));
        assert_eq!(queued(Stamp::ABSENT, vec![write(of(8, 1))]), Some((vec![7, 8], vec![false, false])), "a new one");
    }
}
