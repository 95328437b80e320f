//! Sealed stretches of a sliding line: what is too old for the line's own row and too young to be forgotten.

use serde::{Deserialize, Serialize};

use super::activity::deltas;
use crate::value::Timestamp;
pub use crate::value::digest::BlockOwner;
use crate::value::link::{Link, Linked, RowId};

/// Entries of one block of a line of instants.
pub const SEALED: usize = 64;

/// The n-th block of a line, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockId {
    /// Which line.
    pub owner: BlockOwner,
    /// Which block of it.
    pub number: u32,
}

impl RowId for BlockId {
    fn parts(self) -> (u128, Option<u32>) {
        (self.owner.bits(), Some(self.number))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        Some(Self { owner: BlockOwner::from_parts(bits, None)?, number: number? })
    }
}

/// Older entries of a line, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Which block.
    pub id: BlockId,
    /// When each was.
    #[serde(with = "deltas")]
    pub at: Vec<Timestamp>,
    /// What each moved, in minor units; empty for lines of instants alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub amounts: Vec<i64>,
    /// What each came to less than that, in minor units; shorter where the later ones came to all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpaid: Vec<i64>,
}

impl Block {
    /// What the entry at `place` came to.
    #[must_use]
    pub fn paid(&self, place: usize) -> Option<i64> {
        paid(&self.amounts, &self.unpaid, place)
    }

    /// Says what the entry at `place` moves and came to, and gives what it came to before; `None` where there is none.
    pub fn restate(&mut self, place: usize, amount: i64, paid: i64) -> Option<i64> {
        restate(&mut self.amounts, &mut self.unpaid, place, amount, paid)
    }
}

pub(super) fn paid(amounts: &[i64], unpaid: &[i64], place: usize) -> Option<i64> {
    let amount = amounts.get(place)?;
    Some(amount.saturating_sub(unpaid.get(place).copied().unwrap_or(0)))
}

pub(super) fn restate(
    amounts: &mut [i64],
    unpaid: &mut Vec<i64>,
    place: usize,
    amount: i64,
    now_paid: i64,
) -> Option<i64> {
    let before = paid(amounts, unpaid, place)?;
    *amounts.get_mut(place)? = amount;
    if unpaid.len() <= place && now_paid != amount {
        unpaid.resize(place.saturating_add(1), 0);
    }
    if let Some(less) = unpaid.get_mut(place) {
        *less = amount.saturating_sub(now_paid);
    }
    Some(before)
}

impl Linked for Block {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
