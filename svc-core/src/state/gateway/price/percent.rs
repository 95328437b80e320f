//! What part of other prices a price is.

use serde::{Deserialize, Serialize};

use crate::value::{Invalid, MicroUsd};

/// So much of another price, in hundredths: 110 is a tenth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Percent(u16);

impl Percent {
    /// All of it.
    pub const WHOLE: Self = Self(100);
    /// The most that there may be: ten times as much.
    pub const MAX: u64 = 1_000;

    /// So many hundredths, from 1 to 1000.
    ///
    /// # Errors
    /// [`Invalid`] for any other number: nothing is free by it.
    pub fn new(hundredths: u64) -> Result<Self, Invalid> {
        let value = u16::try_from(hundredths).ok().filter(|it| (1..=Self::MAX).contains(&u64::from(*it)));
        value.map(Self).ok_or_else(|| Invalid::new("must be a whole number from 1 to 1000"))
    }

    /// This part of an amount, rounded up; of the largest, which stands for every one beyond it, there is no telling part.
    pub(super) fn of(self, whole: MicroUsd) -> MicroUsd {
        if whole == MicroUsd::MAX {
            return whole;
        }
        let part = (u128::from(whole.get()) * u128::from(self.0)).div_ceil(u128::from(Self::WHOLE.0));
        u64::try_from(part).map_or(MicroUsd::MAX, MicroUsd::new)
    }

    /// The hundredths.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u64> for Percent {
    type Error = Invalid;

    fn try_from(hundredths: u64) -> Result<Self, Invalid> {
        Self::new(hundredths)
    }
}

impl From<Percent> for u64 {
    fn from(percent: Percent) -> Self {
        Self::from(percent.0)
    }
}
