//! What models cost: whole micros, millionths of a US dollar (CONTRACT part 1, "Values").

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount of micros: 0 to 2^63 − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(u64);

impl MicroUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount: what a sum beyond it is taken for.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// So many micros; beyond [`MAX`](Self::MAX) it is that.
    #[must_use]
    pub const fn new(micros: u64) -> Self {
        if micros > Self::MAX.0 { Self::MAX } else { Self(micros) }
    }

    /// The micros.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Both together, at most [`MAX`](Self::MAX): a budget that is full stays full.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::new(self.0.saturating_add(other.0))
    }

    /// What is left of this without `other`, at least nothing.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
