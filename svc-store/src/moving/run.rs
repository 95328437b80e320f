//! The move itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use svc_core::store::{Key, Loaded, Table};

use super::MoveFault;
use crate::error::StoreError;
use crate::postgres::Terms;
use crate::postgres::target::{Ended, Holds, Target};
use crate::sqlite::DATABASE;
use crate::sqlite::source::{Mark, Source, look};

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moving {
    /// So many rows of all are written.
    Copied {
        /// Written.
        rows: u64,
        /// To be written in all.
        of: u64,
    },
    /// All are there, as the other database tells; nobody else sees them yet.
    Checked,
    /// The file says that it was moved; what is left is the last word of the other database.
    Marked,
}

/// What came of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Moved {
    /// It was made.
    Now(MovedNow),
    /// It was made before: the other database has this very gate, and whatever has come to it since.
    Before {
        /// Where it is.
        to: String,
    },
}

/// A move that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedNow {
    /// Where it went: host and database, and nothing that lets anybody in.
    pub to: String,
    /// Tables that had rows.
    pub tables: usize,
    /// Rows.
    pub rows: u64,
    /// Entries of indexes.
    pub entries: u64,
    /// The number of the newest commit.
    pub stamp: u64,
    /// The schema that the file had before.
    pub schema: i64,
}

/// Moves the gate of the database in `directory` to the one of PostgreSQL at `address`, in which nothing was begun. `told` hears how far
/// it is. Whoever calls this has the lock that a server takes on the directory.
///
/// # Errors
/// [`StoreError::Move`]; [`StoreError::NoData`], [`StoreError::NewerSchema`], [`StoreError::Corrupt`] and the like of the file;
/// [`StoreError::Unreachable`], [`StoreError::NoRight`] and the like of the server. Nothing was moved then, but where that is not known
/// ([`MoveFault::Unsettled`]), and where the server did not wait for its standby ([`StoreError::Unreplicated`] below that).
pub fn move_to_postgres(
    directory: &Path,
    address: &str,
    terms: Terms,
    told: &mut dyn FnMut(Moving),
) -> Result<Moved, StoreError> {
    let to = crate::postgres::place_of(address)?;
    let (schema, marked) = look(directory)?;
    // Where it was to go first it may be: nobody can tell from here.
    if let Some(mark) = marked.as_ref().filter(|it| it.to != to) {
        return Err(moved(directory, mark));
    }
    let target = Target::open(address, terms)?;
    match (target.begin()?, &marked) {
        (Holds::Nothing, _) => {}
        (Holds::Rows { moved }, Some(mark)) if moved == Some(mark.number) => return Ok(Moved::Before { to }),
        (Holds::Rows { .. }, _) => return Err(StoreError::Move(MoveFault::Taken { place: to.into() })),
    }
    let mut source = Source::begin(directory, marked.as_ref())?;
    let copied = Copy { source: &source, target: &target }.make(told)?;
    told(Moving::Checked);
    let stamp = source.stamp()?;
    let mark = match marked {
        Some(mark) => mark,
        None => Mark { to: to.clone(), number: number()? },
    };
    target.number(mark.number, stamp)?;
    source.leave(&mark)?;
    told(Moving::Marked);
    match target.commit() {
        Ok(()) => {}
        Err(Ended::NotMade(error)) => {
            source.stay()?;
            return Err(error);
        }
        Err(Ended::Unknown(error)) => return Err(StoreError::Move(MoveFault::Unsettled(Arc::new(error)))),
    }
    let Copied { tables, rows, entries } = copied;
    Ok(Moved::Now(MovedNow { to, tables, rows, entries, stamp, schema }))
}

fn moved(directory: &Path, mark: &Mark) -> StoreError {
    let path: PathBuf = directory.join(DATABASE);
    StoreError::Move(MoveFault::Moved { path, to: mark.to.as_str().into() })
}

/// What tells this move from every other one.
fn number() -> Result<i64, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|cause| StoreError::Entropy(Arc::new(cause)))?;
    Ok(i64::from_be_bytes(bytes))
}

/// What was copied.
#[derive(Clone, Copy, Debug, Default)]
struct Copied {
    tables: usize,
    rows: u64,
    entries: u64,
}

/// From where to where.
struct Copy<'a> {
    source: &'a Source,
    target: &'a Target,
}

impl Copy<'_> {
    /// Copies every row of every table, and looks whether all of it is there.
    fn make(&self, told: &mut dyn FnMut(Moving)) -> Result<Copied, StoreError> {
        let mut counts = Vec::with_capacity(Table::ALL.len());
        for table in Table::ALL {
            counts.push((*table, self.source.count(*table)?));
        }
        let of = counts.iter().map(|(_, count)| *count).fold(0, u64::saturating_add);
        let mut copied = Copied { tables: counts.iter().filter(|(_, count)| *count > 0).count(), ..Copied::default() };
        for table in Table::ALL {
            self.source.read(*table, &mut |rows| {
                copied.entries = copied.entries.saturating_add(self.target.put(&rows)?);
                copied.rows = copied.rows.saturating_add(u64::try_from(rows.len()).unwrap_or(u64::MAX));
                told(Moving::Copied { rows: copied.rows, of });
                Ok(())
            })?;
        }
        self.check(&counts, copied.entries)?;
        Ok(copied)
    }

    /// That each table has as many rows as before, that there are as many entries as were written, and that each ledger's head reads as
    /// before.
    fn check(&self, counts: &[(Table, u64)], entries: u64) -> Result<(), StoreError> {
        let there = self.target.counts()?;
        for (table, wanted) in counts {
            let found = there.get(table.name()).copied().unwrap_or(0);
            if found != *wanted {
                return Err(differs(format!("`{}` has {found} rows in place of {wanted}", table.name())));
            }
        }
        let found = self.target.entries()?;
        if found != entries {
            return Err(differs(format!("the indexes have {found} entries in place of {entries}")));
        }
        self.source.read(Table::Chain, &mut |rows| {
            let keys: Vec<Key> = rows.iter().map(|row| row.key).collect();
            let back = self.target.load(&keys)?;
            let same = |(a, b): (&Loaded, &Loaded)| (a.key, a.stamp, &a.record) == (b.key, b.stamp, &b.record);
            let is_whole = back.len() == rows.len() && rows.iter().zip(&back).all(same);
            if is_whole { Ok(()) } else { Err(differs("the head of a ledger reads otherwise".to_owned())) }
        })
    }
}

fn differs(what: String) -> StoreError {
    StoreError::Move(MoveFault::Miscopied { what: what.into() })
}
