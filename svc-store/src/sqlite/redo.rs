//! Rows that wait beside their tables.
//!
//! Nearly every decision writes an agent's activity, a payee, and an entry of the agent's list of actions. These lie all over
//! their tables: written in place, each dirties a page of its own, and a page costs more to log than all else of a row. So
//! their images are appended to one table, `redo`, by the commit that makes them, and [`super::fold`] moves them to their
//! tables later, many at a time in the order of their keys and each key's newest alone.
//!
//! Where a key's newest image is, a session asks [`Positions`]. All sessions of a process share them, and they follow from the
//! table alone: a session that finds itself behind reads what was appended since.
//!
//! **Invariant:** ids rise from commit to commit and are never given again.
//! **Invariant:** redo rows are deleted oldest first, each once its image or a newer one is in the key's own table, or a newer
//! one in `redo`. So a redo row that a snapshot misses has left nothing to say that the snapshot does not have elsewhere.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use svc_core::store::{Key, Range, Stamp, Table};
use svc_core::value::link::Index;

use super::schema::{is_deferred, is_listed_apart};
use crate::error::StoreError;

/// How many images one commit may append: the low bits of an id. The stamp of the commit is above them.
pub(super) const ORDINAL_BITS: u32 = 20;
/// How many positions a process that folds nothing itself keeps before it lets go of those that others have folded.
const KEPT_MAX: usize = 262_144;

/// Parameters: id, table or index, key, format, body; a body of NULL says that the row is deleted.
pub(super) const APPEND: &str = "INSERT INTO redo (id, \"of\", key, format, body) VALUES (?1, ?2, ?3, ?4, ?5)";
/// Makes the image at the second id that at the first.
pub(super) const OVERWRITE: &str =
    "UPDATE redo SET (format, body) = (SELECT format, body FROM redo WHERE id = ?2) WHERE id = ?1";
/// The image at an id.
pub(super) const LOAD: &str = "SELECT id, format, body FROM redo WHERE id = ?1";
const BOUNDS: &str = "SELECT (SELECT min(id) FROM redo), (SELECT max(id) FROM redo)";
/// An entry of a list has no key of its own.
const READ: &str =
    "SELECT id, \"of\", key, iif(length(key) = 0, body, NULL) FROM redo WHERE id > ?1 AND id <= ?2 ORDER BY id";

/// The id of a commit's image.
pub(super) fn id_of(stamp: Stamp, ordinal: usize) -> Result<i64, StoreError> {
    let fits = ordinal < 1 << ORDINAL_BITS && stamp.0 < 1 << (i64::BITS - 1 - ORDINAL_BITS);
    match (i64::try_from(stamp.0), i64::try_from(ordinal)) {
        (Ok(stamp), Ok(ordinal)) if fits => Ok(stamp << ORDINAL_BITS | ordinal),
        _ => Err(StoreError::Malformed("a commit writes more rows than it may")),
    }
}

/// The commit that appended the image at `id`.
pub(super) fn stamp_at(id: i64) -> Stamp {
    Stamp(u64::try_from(id >> ORDINAL_BITS).unwrap_or(0))
}

/// An entry that came to a list or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) index: Index,
    pub(super) prefix: u128,
    pub(super) order: u128,
    pub(super) came: bool,
}

/// What a redo row is about.
#[derive(Clone, Debug)]
pub(super) enum Said {
    Row(Key),
    /// All entries of one index that a commit moved.
    Entries(Vec<Moved>),
}

/// An entry's place in its index, and the redo row that tells of it.
pub(super) type Place = (Index, u128, u128, i64);

/// Positions that were noted one after the other.
#[derive(Debug, Default)]
pub(super) struct Generation {
    pub(super) rows: BTreeSet<(Key, i64)>,
    pub(super) came: BTreeSet<Place>,
    pub(super) left: BTreeSet<Place>,
    /// The last id in it.
    pub(super) last: i64,
}

impl Generation {
    fn len(&self) -> usize {
        self.rows.len().saturating_add(self.came.len()).saturating_add(self.left.len())
    }
}

/// Where the images are that wait: of every redo row that there is or was from one id on up to another.
#[derive(Debug)]
pub(super) struct Positions {
    from: i64,
    upto: i64,
    /// Oldest first; the last one grows. Never empty.
    generations: VecDeque<Generation>,
}

impl Default for Positions {
    fn default() -> Self {
        Self { from: 0, upto: 0, generations: VecDeque::from([Generation::default()]) }
    }
}

/// What a snapshot's redo rows have to do with the positions at hand.
enum Reach {
    /// All of them are known.
    Covered,
    /// Those after this id are not.
    Behind(i64),
    /// Some were appended and folded that were never seen.
    Lost,
    /// The first of them are not known any more.
    Older,
}

impl Positions {
    fn reach(&self, first: i64, last: i64) -> Reach {
        match () {
            () if self.upto < first => Reach::Lost,
            () if self.from > first => Reach::Older,
            () if self.upto < last => Reach::Behind(self.upto),
            () => Reach::Covered,
        }
    }

    /// Knows nothing but what comes from `from` on.
    fn restart(&mut self, from: i64) {
        *self = Self { from, upto: from.saturating_sub(1), ..Self::default() };
    }

    /// Takes what is not known yet of `said`, which is everything after what was known.
    fn extend(&mut self, said: Vec<(i64, Said)>) {
        let known = self.upto;
        let Some(growing) = self.generations.back_mut() else { return };
        for (id, said) in said.into_iter().filter(|(id, _)| *id > known) {
            match said {
                Said::Row(key) => drop(growing.rows.insert((key, id))),
                Said::Entries(moved) => {
                    for it in moved {
                        let place = (it.index, it.prefix, it.order, id);
                        let _ = if it.came { growing.came.insert(place) } else { growing.left.insert(place) };
                    }
                }
            }
            self.upto = id;
            growing.last = id;
        }
    }

    /// The newest image of `key` up to the id `last`.
    pub(super) fn find(&self, key: &Key, last: i64) -> Option<i64> {
        let of_key = |it: &Generation| it.rows.range((*key, i64::MIN)..=(*key, last)).next_back().map(|(_, id)| *id);
        self.generations.iter().rev().find_map(of_key)
    }

    /// Every image of `key` up to the id `last`.
    fn all(&self, key: &Key, last: i64) -> Vec<i64> {
        let of_key = |it: &Generation| it.rows.range((*key, i64::MIN)..=(*key, last)).map(|(_, id)| *id).collect();
        self.generations.iter().flat_map(|it| -> Vec<i64> { of_key(it) }).collect()
    }

    /// Whether an entry that came by the redo row `place.3` has left the list up to the id `last`.
    pub(super) fn has_left(&self, place: &Place, last: i64) -> bool {
        let after = *place..=(place.0, place.1, place.2, last);
        place.3 <= last && self.generations.iter().any(|it| it.left.range(after.clone()).next().is_some())
    }

    /// Whether an entry that left by the redo row `place.3` has come again since.
    pub(super) fn has_come_back(&self, place: &Place) -> bool {
        let after = *place..=(place.0, place.1, place.2, i64::MAX);
        self.generations.iter().any(|it| it.came.range(after.clone()).next().is_some())
    }

    /// The entries of a stretch of a list that wait: the first of those that came, and all that left.
    fn listed(&self, range: &Range, last: i64) -> Listed {
        let mut listed = Listed::default();
        let (from, until) = match (range.after, range.newest_first) {
            (Some((order, _)), true) => (range.from, range.until.min(order)),
            (Some((order, _)), false) => (range.from.max(order.saturating_add(1)), range.until),
            (None, _) => (range.from, range.until),
        };
        if from >= until {
            return listed;
        }
        let within = (range.index, range.prefix, from, i64::MIN)..(range.index, range.prefix, until, i64::MIN);
        for generation in &self.generations {
            let stays = |place: &&Place| place.3 <= last && !self.has_left(place, last);
            let came = generation.came.range(within.clone());
            let orders = |place: &Place| place.2;
            if range.newest_first {
                listed.came.extend(came.rev().filter(stays).map(orders).take(range.limit));
            } else {
                listed.came.extend(came.filter(stays).map(orders).take(range.limit));
            }
            let left = generation.left.range(within.clone()).filter(|place| place.3 <= last);
            listed.left.extend(left.map(orders));
        }
        listed
    }

    /// How many positions the growing generation has.
    pub(super) fn growing(&self) -> usize {
        self.generations.back().map_or(0, Generation::len)
    }

    /// Begins a new generation. Gives the last id of the one before it.
    pub(super) fn close(&mut self) -> i64 {
        self.generations.push_back(Generation::default());
        self.upto
    }

    /// The closed generation that ends with the id `mark`.
    pub(super) fn closed_at(&self, mark: i64) -> Option<&Generation> {
        let closed = self.generations.len().saturating_sub(1);
        self.generations.iter().take(closed).find(|it| it.last == mark)
    }

    /// Lets go of the generations up to the id `mark`.
    pub(super) fn let_go(&mut self, mark: i64) {
        while self.generations.len() > 1 && self.generations.front().is_some_and(|it| it.last <= mark) {
            self.generations.pop_front();
            self.from = self.from.max(mark.saturating_add(1));
        }
    }

    /// Lets go of what was deleted before the redo row `first`, where there is very much of it: others fold, and this process
    /// has no commit of its own to do it with.
    fn tidy(&mut self, first: i64) {
        if self.from >= first || self.generations.iter().map(Generation::len).sum::<usize>() < KEPT_MAX {
            return;
        }
        for it in &mut self.generations {
            it.rows.retain(|(_, id)| *id >= first);
            it.came.retain(|place| place.3 >= first);
            it.left.retain(|place| place.3 >= first);
        }
        self.from = self.from.max(first);
    }
}

/// What of a list waits.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// Orders of entries that came; not all of them need have a row in every snapshot.
    pub(super) came: BTreeSet<u128>,
    /// Orders of entries that left.
    pub(super) left: BTreeSet<u128>,
}

/// The positions that a process's sessions share. Held for lookups and never while anything is read.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<Positions>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Positions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's sight of `redo`, for as long as its snapshot lasts.
#[derive(Debug)]
pub(super) struct Redo {
    shared: Arc<Shared>,
    sight: Option<Sight>,
}

/// The redo rows of a snapshot, from the first to the last; both 0 where there are none.
#[derive(Debug)]
struct Sight {
    first: i64,
    last: i64,
    /// Positions of its own: of a snapshot that is older than the shared ones reach.
    own: Option<Box<Positions>>,
}

impl Redo {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), sight: None }
    }

    /// Another snapshot than before: what was seen is seen again.
    pub(super) fn look_again(&mut self) {
        self.sight = None;
    }

    /// The id of the newest image of `key` that waits.
    pub(super) fn find(&mut self, conn: &Connection, key: &Key) -> Result<Option<i64>, StoreError> {
        self.ask(conn, |positions, last| positions.find(key, last)).map(Option::flatten)
    }

    /// The ids of all images of `key` that wait.
    pub(super) fn all(&mut self, conn: &Connection, key: &Key) -> Result<Vec<i64>, StoreError> {
        self.ask(conn, |positions, last| positions.all(key, last)).map(Option::unwrap_or_default)
    }

    /// What waits of a stretch of a list.
    pub(super) fn listed(&mut self, conn: &Connection, range: &Range) -> Result<Listed, StoreError> {
        self.ask(conn, |positions, last| positions.listed(range, last)).map(Option::unwrap_or_default)
    }

    /// Sees to it that all redo rows are known, before more are appended in the same transaction.
    pub(super) fn catch_up(&mut self, conn: &Connection) -> Result<(), StoreError> {
        self.ask(conn, |_, _| ()).map(drop)
    }

    /// The writer's rows are there: its commit was applied. It had [caught up](Self::catch_up) in the same transaction.
    pub(super) fn appended(&mut self, said: Vec<(i64, Said)>) {
        let (Some(first), Some(last)) = (said.first().map(|(id, _)| *id), said.last().map(|(id, _)| *id)) else {
            return;
        };
        // Without sight of what there was, nothing is known of it: the next look reads it.
        let Some(sight) = &mut self.sight else { return };
        let mut positions = self.shared.lock();
        if sight.last == 0 {
            sight.first = first;
            if positions.upto < first {
                positions.restart(first);
            }
        }
        positions.extend(said);
        drop(positions);
        (sight.last, sight.own) = (last, None);
    }

    /// The positions that the process shares.
    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn ask<T>(&mut self, conn: &Connection, ask: impl FnOnce(&Positions, i64) -> T) -> Result<Option<T>, StoreError> {
        let sight = match self.sight.take() {
            Some(sight) => sight,
            None => look(conn, &self.shared)?,
        };
        let sight = self.sight.insert(sight);
        if sight.last == 0 {
            return Ok(None);
        }
        if sight.own.is_none() {
            let positions = self.shared.lock();
            if matches!(positions.reach(sight.first, sight.last), Reach::Covered) {
                return Ok(Some(ask(&positions, sight.last)));
            }
            drop(positions);
            // Let go of meanwhile: this snapshot has become an old one.
            sight.own = Some(read_all(conn, sight.first, sight.last)?);
        }
        Ok(sight.own.as_deref().map(|positions| ask(positions, sight.last)))
    }
}

/// Looks at what there is, and has the shared positions reach it where they can.
fn look(conn: &Connection, shared: &Shared) -> Result<Sight, StoreError> {
    let mut bounds = conn.prepare_cached(BOUNDS)?;
    let (first, last): (Option<i64>, Option<i64>) = bounds.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(first), Some(last)) = (first, last) else { return Ok(Sight { first: 0, last: 0, own: None }) };
    loop {
        let reach = shared.lock().reach(first, last);
        match reach {
            Reach::Covered => return Ok(Sight { first, last, own: None }),
            Reach::Older => return Ok(Sight { first, last, own: Some(read_all(conn, first, last)?) }),
            Reach::Behind(after) => {
                let said = read(conn, after, last)?;
                let mut positions = shared.lock();
                // Another session may have gone on, or begun anew, while this one read.
                if !matches!(positions.reach(first, last), Reach::Lost) {
                    positions.extend(said);
                    positions.tidy(first);
                }
            }
            Reach::Lost => {
                let said = read(conn, first.saturating_sub(1), last)?;
                let mut positions = shared.lock();
                if matches!(positions.reach(first, last), Reach::Lost) {
                    positions.restart(first);
                    positions.extend(said);
                }
            }
        }
    }
}

fn read_all(conn: &Connection, first: i64, last: i64) -> Result<Box<Positions>, StoreError> {
    let mut positions = Box::<Positions>::default();
    positions.restart(first);
    positions.extend(read(conn, first.saturating_sub(1), last)?);
    Ok(positions)
}

fn read(conn: &Connection, after: i64, upto: i64) -> Result<Vec<(i64, Said)>, StoreError> {
    let mut statement = conn.prepare_cached(READ)?;
    let mut rows = statement.query([after, upto])?;
    let mut said = Vec::new();
    while let Some(row) = rows.next()? {
        let (of, key) = (row.get_ref(1)?.as_str(), row.get_ref(2)?.as_blob());
        let (Ok(of), Ok(key)) = (of, key) else { return Err(MALFORMED) };
        let table = Table::ALL.iter().find(|table| is_deferred(**table) && table.name() == of);
        let what = match table {
            Some(table) => Said::Row(Key::decode(*table, key).ok_or(MALFORMED)?),
            None => Said::Entries(entries(of, row.get_ref(3)?.as_blob().unwrap_or_default())?),
        };
        said.push((row.get(0)?, what));
    }
    Ok(said)
}

/// Bytes of one entry: whether it came, its prefix, its order.
const ENTRY: usize = 33;

/// Entries of one index as one body.
pub(super) fn body_of(moved: &[Moved]) -> Vec<u8> {
    let mut body = Vec::with_capacity(moved.len().saturating_mul(ENTRY));
    for it in moved {
        body.push(u8::from(it.came));
        body.extend(it.prefix.to_be_bytes());
        body.extend(it.order.to_be_bytes());
    }
    body
}

fn entries(of: &str, body: &[u8]) -> Result<Vec<Moved>, StoreError> {
    let index = Index::ALL.iter().copied().find(|index| is_listed_apart(*index) && index.name() == of);
    let index = index.ok_or(MALFORMED)?;
    let (whole, rest) = body.as_chunks::<ENTRY>();
    if !rest.is_empty() {
        return Err(MALFORMED);
    }
    let number = |bytes: &[u8]| bytes.try_into().map(u128::from_be_bytes).map_err(|_| MALFORMED);
    let entry = |bytes: &[u8; ENTRY]| match bytes.as_slice() {
        [came, numbers @ ..] => {
            let (prefix, order) = numbers.split_at_checked(16).ok_or(MALFORMED)?;
            Ok(Moved { index, prefix: number(prefix)?, order: number(order)?, came: *came != 0 })
        }
        [] => Err(MALFORMED),
    };
    whole.iter().map(entry).collect()
}

const MALFORMED: StoreError = StoreError::row("as the table of rows that wait holds something else");

#[cfg(test)]
mod tests {
    use super::*;

    /// What others have folded is let go of once there is very much, also while a generation is closed and not folded here.
    #[test]
    fn what_others_fold_is_let_go_of() {
        let key = |id: i64| Key::Replay(svc_core::value::digest::ReplayId::of(&[&id.to_be_bytes()]));
        let said = |ids: std::ops::Range<i64>| ids.map(|id| (id, Said::Row(key(id)))).collect::<Vec<_>>();
        let mut positions = Positions::default();
        positions.extend(said(1..11));
        let mark = positions.close();
        positions.extend(said(11..100));
        positions.tidy(50);
        assert_eq!(positions.find(&key(1), i64::MAX), Some(1), "there is not much yet");
        let end = i64::try_from(KEPT_MAX).unwrap_or(i64::MAX) + 1;
        positions.extend(said(100..end));
        positions.tidy(end - 5);
        assert_eq!(
            [1, 99, end - 6, end - 5].map(|id| positions.find(&key(id), i64::MAX).is_some()),
            [false, false, false, true]
        );
        assert_eq!((positions.from, positions.growing()), (end - 5, 5));
        assert!(positions.closed_at(mark).is_some(), "its folding goes on and finds nothing left");
    }
}
