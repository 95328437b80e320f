//! What is to be paid: whole minor units.
//!
//! **Invariant:** an amount is at least one minor unit, and a number that every reader of JSON gets right.

use serde::{Deserialize, Serialize};

use super::Invalid;
use super::json::SAFE_INTEGER_MAX;

/// What is to be paid: whole minor units, from 1 to 2^53 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Amount(i64);

impl Amount {
    /// An amount of so many minor units.
    ///
    /// # Errors
    /// [`Invalid`] where it is below 1 or above 2^53 − 1.
    pub fn new(minor: i64) -> Result<Self, Invalid> {
        if (1..=SAFE_INTEGER_MAX).contains(&minor) {
            Ok(Self(minor))
        } else {
            Err(Invalid::new("must be a whole number of minor units, from 1 to 9007199254740991: EUR 39.50 is 3950"))
        }
    }

    /// Its minor units.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for Amount {
    type Error = Invalid;
    fn try_from(minor: i64) -> Result<Self, Invalid> {
        Self::new(minor)
    }
}

impl From<Amount> for i64 {
    fn from(amount: Amount) -> Self {
        amount.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// An amount is at least one minor unit and at most what every JSON reader gets right.
    #[test]
    fn amounts_are_bounded() {
        for good in [1, 4_900, SAFE_INTEGER_MAX] {
            assert_eq!(Amount::new(good).unwrap().minor(), good);
        }
        for bad in [0, -1, i64::MIN, SAFE_INTEGER_MAX + 1, i64::MAX] {
            assert!(Amount::new(bad).is_err(), "{bad}");
            assert!(serde_json::from_str::<Amount>(&bad.to_string()).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Amount>("1.5").is_err());
    }

    /// A stored amount is its number.
    #[test]
    fn an_amount_survives_storage() {
        assert_eq!(serde_json::to_string(&Amount::new(12).unwrap()).unwrap(), "12");
        assert_eq!(serde_json::from_str::<Amount>("12").unwrap(), Amount::new(12).unwrap());
    }
}
