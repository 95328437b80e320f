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
            Err(Invalid::new("must be a whole number of minor units, from 1 to 9007199254740991: EUR 39.50 is 3950"))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn eur(minor: i64) -> Money {
        Money::new(minor, Currency::EUR).unwrap()
    }

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
        assert_eq!(Amount::new(7).unwrap().of(Currency::EUR), eur(7));
    }

    /// Money is never below zero, also not as the difference of two.
    #[test]
    fn money_is_never_negative() {
        assert!(Money::new(-1, Currency::EUR).is_err());
        assert!(serde_json::from_str::<Money>(r#"{"minor":-1,"currency":"EUR"}"#).is_err());
        assert_eq!(eur(5).checked_sub(eur(5)), Some(Money::zero(Currency::EUR)));
        assert_eq!(eur(5).checked_sub(eur(6)), None);
    }

    /// Only money of one currency adds up, and only as far as it can be counted.
    #[test]
    fn sums_are_of_one_currency_and_checked() {
        assert_eq!(eur(2).checked_add(eur(3)), Some(eur(5)));
        assert_eq!(eur(i64::MAX).checked_add(eur(1)), None);
        let usd = Money::new(3, Currency::USD).unwrap();
        assert_eq!(eur(2).checked_add(usd), None);
        assert_eq!(eur(5).checked_sub(usd), None);
    }

    /// People read major units with the digits of the currency.
    #[test]
    fn people_read_major_units() {
        for (minor, code, text) in [
            (4_900, "EUR", "49.00 EUR"),
            (5, "EUR", "0.05 EUR"),
            (500, "JPY", "500 JPY"),
            (1_234, "KWD", "1.234 KWD"),
            (12_345, "CLF", "1.2345 CLF"),
            (0, "USD", "0.00 USD"),
        ] {
            assert_eq!(Money::new(minor, Currency::parse(code).unwrap()).unwrap().to_string(), text);
        }
    }

    /// Stored money is read back as it was.
    #[test]
    fn money_survives_storage() {
        let text = serde_json::to_string(&eur(4_900)).unwrap();
        assert_eq!(text, r#"{"minor":4900,"currency":"EUR"}"#);
        assert_eq!(serde_json::from_str::<Money>(&text).unwrap(), eur(4_900));
        assert_eq!(serde_json::to_string(&Amount::new(12).unwrap()).unwrap(), "12");
    }
}
