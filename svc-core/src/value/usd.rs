//! What models cost: whole micros, millionths of a US dollar (CONTRACT part 1, "Values").

use std::fmt;

use serde::{Deserialize, Serialize};

use super::SAFE_MAX;

/// An amount of micros: 0 to 2^53 − 1, as every JSON reader keeps it, also where the ledger and answers have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct MicroUsd(u64);

impl MicroUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount: what a sum beyond it is taken for.
    pub const MAX: Self = Self(SAFE_MAX.unsigned_abs());

    /// So many micros; beyond [`MAX`](Self::MAX) it is that, which no price and no sum takes for what it says: what is used at such a
    /// price costs the largest amount, and that is past the end of every budget. As a limit it is the lower one.
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

/// A row may hold a sum from before [`MAX`](MicroUsd::MAX) was as low: it is read as that.
impl From<u64> for MicroUsd {
    fn from(micros: u64) -> Self {
        Self::new(micros)
    }
}

impl From<MicroUsd> for u64 {
    fn from(amount: MicroUsd) -> Self {
        amount.0
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// No amount is one that a JSON reader could get wrong: not as made, not as a sum, not as stored by others.
    #[test]
    fn no_amount_is_beyond_what_json_keeps() {
        assert_eq!(MicroUsd::MAX.get(), SAFE_MAX.unsigned_abs());
        assert_eq!(MicroUsd::new(u64::MAX), MicroUsd::MAX);
        assert_eq!(MicroUsd::MAX.plus(MicroUsd::new(1)), MicroUsd::MAX);
        for stored in ["9007199254740992", "9223372036854775807"] {
            assert_eq!(serde_json::from_str::<MicroUsd>(stored).unwrap(), MicroUsd::MAX);
        }
        assert_eq!(serde_json::to_string(&MicroUsd::new(7)).unwrap(), "7");
    }
}
