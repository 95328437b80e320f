//! Money: whole minor units of one currency.
//!
//! **Invariant:** sums are checked, and money of two currencies never meets.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::json::SAFE_INTEGER_MAX;
use super::{Currency, Invalid};

/// What is to be paid: whole minor units, from 1 to 2^53 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Amount(i64);

/// A sum of money: whole minor units, zero or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Money {
    minor: i64,
    currency: Currency,
}

impl Amount {
    /// An amount of so many minor units.
    ///
    /// # Errors
    /// [`Invalid`] where it is below 1 or above 2^53 − 1.
    pub fn new(minor: i64) -> Result<Self, Invalid> {
        if (1..=SAFE_INTEGER_MAX).contains(&minor) {
            Ok(Self(minor))
        } else {
            Err(Invalid::new("must be a whole number of minor units from 1 to 9007199254740991"))
        }
    }

    /// Its minor units.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.0
    }

    /// This amount as money of a currency.
    #[must_use]
    pub const fn of(self, currency: Currency) -> Money {
        Money { minor: self.0, currency }
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

impl Money {
    /// So many minor units of a currency.
    ///
    /// # Errors
    /// [`Invalid`] where there are fewer than none.
    pub fn new(minor: i64, currency: Currency) -> Result<Self, Invalid> {
        if minor < 0 {
            return Err(Invalid::new("must not be below zero"));
        }
        Ok(Self { minor, currency })
    }

    /// Nothing, in a currency.
    #[must_use]
    pub const fn zero(currency: Currency) -> Self {
        Self { minor: 0, currency }
    }

    /// Its minor units, zero or more.
    #[must_use]
    pub const fn minor(self) -> i64 {
        self.minor
    }

    /// Its currency.
    #[must_use]
    pub const fn currency(self) -> Currency {
        self.currency
    }

    /// The sum, where both are of one currency and the sum can be counted.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let minor = self.minor.checked_add(other.minor)?;
        (self.currency == other.currency).then_some(Self { minor, ..self })
    }

    /// The difference, where both are of one currency and `other` is not the larger.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let minor = self.minor.checked_sub(other.minor).filter(|minor| *minor >= 0)?;
        (self.currency == other.currency).then_some(Self { minor, ..self })
    }
}

/// For people: `49.00 EUR`, `500 JPY`.
impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.currency.minor_digits();
        if digits == 0 {
            return write!(out, "{} {}", self.minor, self.currency);
        }
        let unit = 10_i64.pow(u32::from(digits));
        write!(
            out,
            "{}.{:0width$} {}",
            self.minor / unit,
            self.minor % unit,
            self.currency,
            width = usize::from(digits)
        )
    }
}

/// Money as a row keeps it, before it is known to be any.
#[derive(Deserialize)]
struct Stored {
    minor: i64,
    currency: Currency,
}

impl TryFrom<Stored> for Money {
    type Error = Invalid;
    fn try_from(stored: Stored) -> Result<Self, Invalid> {
        Self::new(stored.minor, stored.currency)
    }
}
