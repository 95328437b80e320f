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
}

impl Linked for Block {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
