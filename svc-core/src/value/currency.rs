//! Currencies: the codes of ISO 4217 that are in use.
//!
//! **Invariant:** a code that has been withdrawn is no currency: nothing is authorised in money that nobody can pay. What is stored
//! goes on being read when its code is withdrawn, with the digits that it had.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// A currency in use, or, in what is stored, one that was when it was written: its code in upper case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

/// The codes in use in October 2026, funds codes included, by the digits that their minor unit has. Codes that begin
/// with `X` stand for metals, baskets, tests and nothing; the five that are money are the ones here.
const NO_DIGITS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
const TWO_DIGITS: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY \
    COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS \
    INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR \
    MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP \
    STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";
const THREE_DIGITS: &str = "BHD IQD JOD KWD LYD OMR TND";
const FOUR_DIGITS: &str = "CLF UYW";

/// Codes that are in use no more, for amounts that are stored in them. One that leaves the lists above goes to the list here of as many
/// digits. Of a code that stands in none, a store can hold an amount only if a later release wrote it: two digits are what most have.
const WITHDRAWN_NO_DIGITS: &str = "BYR";
const WITHDRAWN_TWO_DIGITS: &str = "ANG BGN CUC HRK LTL MRO SLL STD VEF ZMK ZWL";
const WITHDRAWN_DIGITS: u8 = 2;
/// What is added to the digits of a code that was withdrawn.
const WITHDRAWN: u8 = 0x80;

/// By the three letters read as a number in base 26: the minor digits plus one, or 0 where there is no such currency.
static DIGITS: [u8; 26 * 26 * 26] = table();

impl Currency {
    /// The euro.
    pub const EUR: Self = Self(*b"EUR");
    /// The US dollar.
    pub const USD: Self = Self(*b"USD");

    /// Reads a code in any case.
    ///
    /// # Errors
    /// [`Invalid`] where ISO 4217 has no such currency in use.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        <[u8; 3]>::try_from(text.as_bytes())
            .map(|code| Self(code.map(|byte| byte.to_ascii_uppercase())))
            .ok()
            .filter(|it| !it.is_withdrawn())
            .ok_or_else(|| Invalid::new(CURRENT))
    }

    /// Reads a code as it is stored: what was a currency when it was written is read for ever.
    fn parse_stored(text: &str) -> Result<Self, Invalid> {
        <[u8; 3]>::try_from(text.as_bytes())
            .ok()
            .filter(|code| place(*code).is_some())
            .map(Self)
            .ok_or_else(|| Invalid::new("must be the three capital letters of an ISO 4217 currency"))
    }

    /// Whether it is in use no more: it is in what was stored before, and whoever asks for it now is refused.
    #[must_use]
    pub fn is_withdrawn(self) -> bool {
        !(1..WITHDRAWN).contains(&self.slot())
    }

    /// The code, in upper case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// How many decimal digits the minor unit has: 2 for cents, 0 where there is none.
    #[must_use]
    pub fn minor_digits(self) -> u8 {
        match self.slot() {
            0 => WITHDRAWN_DIGITS,
            slot => (slot & !WITHDRAWN).saturating_sub(1),
        }
    }

    /// How many minor units make one of its own: 100 for cents, 1 where there is none.
    pub(crate) fn unit(self) -> i64 {
        10_i64.pow(u32::from(self.minor_digits()))
    }

    /// So many of its minor units as people read them: `EUR 49.00`, `JPY 500`.
    pub fn amount(self, minor: i64) -> impl fmt::Display {
        Written { minor, currency: self }
    }

    fn slot(self) -> u8 {
        place(self.0).and_then(|place| DIGITS.get(place)).copied().unwrap_or(0)
    }
}

/// An amount, to be written for people.
struct Written {
    minor: i64,
    currency: Currency,
}

impl fmt::Display for Written {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (digits, unit) = (usize::from(self.currency.minor_digits()), self.currency.unit().unsigned_abs());
        let (sign, minor) = (if self.minor < 0 { "-" } else { "" }, self.minor.unsigned_abs());
        write!(out, "{} {sign}{}", self.currency, minor / unit)?;
        if digits > 0 { write!(out, ".{:0digits$}", minor % unit) } else { Ok(()) }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Currency {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::value::stored::read(from, Self::parse_stored)
    }
}

/// What whoever names another currency is told.
const CURRENT: &str = "must be the three letters of a current ISO 4217 currency";

/// Three upper-case letters as a number in base 26.
const fn place(code: [u8; 3]) -> Option<usize> {
    let [a, b, c] = code;
    if !(a.is_ascii_uppercase() && b.is_ascii_uppercase() && c.is_ascii_uppercase()) {
        return None;
    }
    Some((a - b'A') as usize * 676 + (b - b'A') as usize * 26 + (c - b'A') as usize)
}

const fn table() -> [u8; 26 * 26 * 26] {
    let mut table = [0; 26 * 26 * 26];
    let mut rows: &[(&str, u8)] = &[
        (NO_DIGITS, 1),
        (TWO_DIGITS, 3),
        (THREE_DIGITS, 4),
        (FOUR_DIGITS, 5),
        (WITHDRAWN_NO_DIGITS, WITHDRAWN + 1),
        (WITHDRAWN_TWO_DIGITS, WITHDRAWN + 3),
    ];
    while let [(codes, digits), rest @ ..] = rows {
        let mut bytes = codes.as_bytes();
        while let [a, b, c, tail @ ..] = bytes {
            if let Some(place) = place([*a, *b, *c]) {
                let (_, from) = table.split_at_mut(place);
                if let [slot, ..] = from {
                    *slot = *digits;
                }
            }
            bytes = match tail {
                [_, next @ ..] => next,
                [] => tail,
            };
        }
        rows = rest;
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn codes() -> impl Iterator<Item = &'static str> {
        [NO_DIGITS, TWO_DIGITS, THREE_DIGITS, FOUR_DIGITS].into_iter().flat_map(str::split_whitespace)
    }

    /// Every code of the list is read, in any case, and comes back in upper case.
    #[test]
    fn every_code_in_use_is_read_in_any_case() {
        for code in codes() {
            let currency = Currency::parse(code).unwrap();
            assert_eq!(currency.as_str(), code);
            assert_eq!(Currency::parse(&code.to_lowercase()).unwrap(), currency);
        }
        assert_eq!(Currency::parse("eUr").unwrap(), Currency::EUR);
        assert_eq!(codes().count(), 164);
        let withdrawn = [WITHDRAWN_NO_DIGITS, WITHDRAWN_TWO_DIGITS].into_iter().flat_map(str::split_whitespace).count();
        assert_eq!(DIGITS.iter().filter(|it| **it > 0).count(), 164 + withdrawn, "a code stands twice");
    }

    /// The five codes with `X` that are money are currencies; the others are metals, baskets, tests and nothing.
    #[test]
    fn codes_with_x_are_five() {
        let with_x: Vec<&str> = codes().filter(|it| it.starts_with('X')).collect();
        assert_eq!(with_x, ["XAF", "XOF", "XPF", "XCD", "XCG"]);
        for bad in ["XXX", "XTS", "XAU", "XDR", "XSU", "XUA", "XBA", "XAD"] {
            assert!(Currency::parse(bad).is_err(), "{bad}");
        }
    }

    /// Withdrawn codes, words of other lengths and letters that only look right are refused.
    #[test]
    fn what_is_no_currency_is_refused() {
        for bad in [
            "", "E", "EU", "EURO", "EU1", "ABC", "ZZZ", "HRK", "BGN", "ANG", "CUC", "SLL", "ZWL", "DEM", "BYR", "MRO",
            "STD", "VEF", "LTL", " EUR", "EUR ", "€", "ЕUR", "EU\0", "E R", "[[[",
        ] {
            assert!(Currency::parse(bad).is_err(), "{bad}");
        }
    }

    /// Minor units have the digits that ISO 4217 gives them.
    #[test]
    fn minor_digits_are_those_of_the_standard() {
        for (code, digits) in [
            ("EUR", 2),
            ("USD", 2),
            ("JPY", 0),
            ("KRW", 0),
            ("KWD", 3),
            ("TND", 3),
            ("CLF", 4),
            ("MGA", 2),
            ("XAF", 0),
            ("XCG", 2),
            ("ZWG", 2),
        ] {
            assert_eq!(Currency::parse(code).unwrap().minor_digits(), digits, "{code}");
        }
    }

    /// A stored currency is its code, and is read with its digits when ISO 4217 has withdrawn it, be it in a list here or not; a stored
    /// word that never was a code is an error.
    #[test]
    fn a_stored_currency_is_read_when_it_was_withdrawn() {
        assert_eq!(serde_json::to_string(&Currency::EUR).unwrap(), "\"EUR\"");
        assert_eq!(serde_json::from_str::<Currency>("\"EUR\"").unwrap(), Currency::EUR);
        for (code, digits) in [("HRK", 2), ("BYR", 0), ("QQQ", 2)] {
            let stored = serde_json::from_str::<Currency>(&format!("\"{code}\"")).unwrap();
            assert_eq!((stored.as_str(), stored.minor_digits(), stored.is_withdrawn()), (code, digits, true));
            assert!(Currency::parse(code).is_err() && code.parse::<Currency>().is_err(), "{code}");
        }
        assert!(!Currency::EUR.is_withdrawn());
        for no_code in ["", "hrk", "HR", "HRKA", "H K", "12A"] {
            assert!(serde_json::from_str::<Currency>(&format!("\"{no_code}\"")).is_err(), "{no_code}");
        }
    }

    /// People read major units, with all the digits of the currency.
    #[test]
    fn amounts_have_their_currencys_digits() {
        for (minor, currency, text) in [
            (4_900, "EUR", "EUR 49.00"),
            (5, "EUR", "EUR 0.05"),
            (0, "USD", "USD 0.00"),
            (49, "JPY", "JPY 49"),
            (1_234, "BHD", "BHD 1.234"),
            (12_345, "CLF", "CLF 1.2345"),
            (-150, "EUR", "EUR -1.50"),
            (9_007_199_254_740_991, "EUR", "EUR 90071992547409.91"),
            (i64::MIN, "EUR", "EUR -92233720368547758.08"),
        ] {
            assert_eq!(Currency::parse(currency).unwrap().amount(minor).to_string(), text);
        }
    }

    proptest::proptest! {
        /// No text makes the reader panic, and what is read is three capital letters.
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,4}|[A-Za-z]{3}") {
            if let Ok(currency) = Currency::parse(&text) {
                proptest::prop_assert_eq!(currency.as_str(), text.to_ascii_uppercase());
            }
        }
    }
}
