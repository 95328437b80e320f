//! Moving what waits in `redo` to its tables.
//!
//! Positions are noted in a generation until it is full; then the next one begins, and the full one is folded in the order of
//! its keys, a slice of it in a commit now and then: neighbours share pages, and of a row that was written a hundred times
//! only the newest image is moved. What is newer than the generation waits for the next. At the end the redo rows of the
//! generation are deleted, again slice by slice.
//!
//! Folding is part of ordinary commits. Should one not come about, nothing of it has happened, and the next one takes the same
//! steps again.

use std::ops::Bound;

use rusqlite::{Connection, Params};
use svc_core::store::Key;

use super::redo::{Place, Positions, Redo};
use super::statements::{Lists, Statements, Wide};

/// How many images and entries a generation holds: many of them for each page when they are moved. A server that starts reads what
/// waits, two generations at most; with a third as many, a durable authorize took 6 % more processor time.
const GENERATION: usize = 49_152;
/// How many bytes of images it holds at most, should they be large.
const GENERATION_BYTES: usize = 32 << 20;
/// How many steps are taken at once at least: neighbours in their table share a page, which one commit then writes once.
const SLICE: usize = 256;
/// Steps for every two that what is appended will take, so that a generation is folded before the next is full; where others append
/// as well, the pace rises with what has gathered.
const PACE: usize = 3;

const DELETE: &str = "DELETE FROM redo WHERE id IN (SELECT id FROM redo WHERE id <= ?1 ORDER BY id LIMIT ?2)";

/// How far the writer is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folding {
    stage: Stage,
    /// Steps that are due.
    owed: usize,
    /// Bytes that were appended to the generation that grows.
    bytes: usize,
    /// How many images a generation holds.
    generation: usize,
    /// How many steps are taken at once at least.
    slice: usize,
    /// The last id of the generation before: deleted, and remembered for the readers of older snapshots.
    before: i64,
}

/// What is being done; `mark` is the last id of the generation it is done with, and the place the last one that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The generation is not full.
    Filling,
    /// Images go to their rows.
    Rows { mark: i64, after: Option<(Key, i64)> },
    /// Entries go to their lists.
    Coming { mark: i64, after: Option<Place> },
    /// Entries are taken from their lists.
    Leaving { mark: i64, after: Option<Place> },
    /// All is in its place.
    Deleting { mark: i64 },
    /// Nothing of it is left in `redo`.
    Deleted { mark: i64 },
}

/// One step, as it was found in the positions.
#[derive(Clone, Copy, Debug)]
enum Move {
    /// The image at this id to its row.
    Row(Key, i64),
    /// An entry to its list.
    Come(Place),
    /// An entry from its list.
    Leave(Place),
}

impl Default for Folding {
    fn default() -> Self {
        Self::of(GENERATION, SLICE)
    }
}

impl Folding {
    /// Folds generations of so many images, at least so many steps at once.
    pub(super) const fn of(generation: usize, slice: usize) -> Self {
        Self { stage: Stage::Filling, owed: 0, bytes: 0, generation, slice, before: 0 }
    }

    /// Inside a transaction that appends what takes so many steps to fold, images of so many `bytes` among it, after it has caught up:
    /// folds what is due. Gives how far folding is if the transaction is committed.
    pub(super) fn advance(
        self,
        conn: &Connection,
        redo: &Redo,
        steps: usize,
        bytes: usize,
    ) -> Result<Self, rusqlite::Error> {
        let mut next = self;
        next.bytes = next.bytes.saturating_add(bytes);
        let full = redo.shared().lock().growing() / self.generation.max(1);
        next.owed = next.owed.saturating_add(steps.saturating_mul(PACE.saturating_mul(full.saturating_add(1))) / 2);
        if next.owed < next.slice {
            return Ok(next);
        }
        let steps = std::mem::take(&mut next.owed);
        if let Stage::Deleting { mark } = next.stage {
            let most = i64::try_from(steps).unwrap_or(i64::MAX);
            if conn.prepare_cached(DELETE)?.execute((mark, most))? < steps {
                next.stage = Stage::Deleted { mark };
            }
            return Ok(next);
        }
        let (stage, moves) = next.stage.moves(&redo.shared().lock(), steps);
        next.stage = stage;
        moves.into_iter().try_for_each(|it| it.make(conn))?;
        Ok(next)
    }

    /// After the transaction was committed and its rows were noted.
    pub(super) fn committed(&mut self, redo: &mut Redo) {
        let mut positions = redo.shared().lock();
        let deleted = if let Stage::Deleted { mark } = self.stage { Some(mark) } else { None };
        if let Some(mark) = deleted {
            positions.let_go(self.before);
            self.before = mark;
            self.stage = Stage::Filling;
        }
        let is_full = positions.growing() >= self.generation || self.bytes >= GENERATION_BYTES;
        if self.stage == Stage::Filling && is_full {
            self.bytes = 0;
            self.stage = Stage::Rows { mark: positions.close(), after: None };
        }
        drop(positions);
        if deleted.is_some() {
            redo.look_again();
        }
    }
}

impl Stage {
    /// The next moves among `most` positions, and the stage after them.
    fn moves(self, positions: &Positions, most: usize) -> (Self, Vec<Move>) {
        let (Self::Rows { mark, .. } | Self::Coming { mark, .. } | Self::Leaving { mark, .. }) = self else {
            return (self, Vec::new());
        };
        // Where the positions began anew, what waits is in the generation that grows.
        let Some(generation) = positions.closed_at(mark) else { return (Self::Filling, Vec::new()) };
        let mut moves = Vec::with_capacity(most);
        let next = match self {
            Self::Rows { after, .. } => {
                let next = generation.rows.range(beyond(after)).take(most).inspect(|(key, id)| {
                    // What has a newer image is folded with that.
                    if positions.find(key, i64::MAX) == Some(*id) {
                        moves.push(Move::Row(*key, *id));
                    }
                });
                match last_of(next, most) {
                    Some(last) => Self::Rows { mark, after: Some(*last) },
                    None => Self::Coming { mark, after: None },
                }
            }
            Self::Coming { after, .. } => {
                let next = generation.came.range(beyond(after)).take(most).inspect(|place| {
                    if !positions.has_left(place, i64::MAX) {
                        moves.push(Move::Come(**place));
                    }
                });
                match last_of(next, most) {
                    Some(last) => Self::Coming { mark, after: Some(*last) },
                    None => Self::Leaving { mark, after: None },
                }
            }
            Self::Leaving { after, .. } => {
                let next = generation.left.range(beyond(after)).take(most).inspect(|place| {
                    if !positions.has_come_back(place) {
                        moves.push(Move::Leave(**place));
                    }
                });
                match last_of(next, most) {
                    Some(last) => Self::Leaving { mark, after: Some(*last) },
                    None => Self::Deleting { mark },
                }
            }
            Self::Filling | Self::Deleting { .. } | Self::Deleted { .. } => self,
        };
        (next, moves)
    }
}

fn beyond<T>(after: Option<T>) -> (Bound<T>, Bound<T>) {
    (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

/// The last of `most` items; none where there were fewer.
fn last_of<T>(items: impl Iterator<Item = T>, most: usize) -> Option<T> {
    items.zip(1..).last().filter(|(_, count)| *count == most).map(|(last, _)| last)
}

impl Move {
    fn make(self, conn: &Connection) -> Result<(), rusqlite::Error> {
        let missing = rusqlite::Error::InvalidQuery;
        match self {
            Self::Row(key, id) => {
                let on = Statements::on(key.table()).ok_or(missing)?;
                if run(conn, &on.fold, [id])? == 0 {
                    run(conn, &on.fold_away, [id])?;
                }
            }
            Self::Come(place) => run(conn, &Lists::on(place.0).ok_or(missing)?.come, entry(&place)).map(drop)?,
            Self::Leave(place) => run(conn, &Lists::on(place.0).ok_or(missing)?.leave, entry(&place)).map(drop)?,
        }
        Ok(())
    }
}

fn entry(place: &Place) -> (Wide, [u8; 16]) {
    (Wide::of(place.1), place.2.to_be_bytes())
}

fn run(conn: &Connection, sql: &str, parameters: impl Params) -> Result<usize, rusqlite::Error> {
    conn.prepare_cached(sql)?.execute(parameters)
}
