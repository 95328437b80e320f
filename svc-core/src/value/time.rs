//! Instants and spans, in milliseconds, UTC.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::Invalid;

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 86_400_000;
/// The instants that RFC 3339 has a writing for: years of four digits, by UTC.
const WRITTEN: RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;
/// More than the clocks of two nodes may ever be apart: one that is further off than a few seconds is not ready.
pub(crate) const CLOCKS_APART_MAX: Span = Span::minutes(1);
/// No RFC 3339 text of any use is longer.
const TEXT_MAX: usize = 64;

/// An instant: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// A length of time in milliseconds; may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(i64);

impl Timestamp {
    /// The instant at this many milliseconds.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }

    /// Reads RFC 3339 with any offset; digits beyond milliseconds are dropped. A leap second is no instant here.
    ///
    /// # Errors
    /// [`Invalid`] where the text is laid out otherwise or names a date or time that there is not.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        parse_rfc_3339(text)
            .map(Self)
            .ok_or_else(|| Invalid::new("must be an RFC 3339 time such as `2026-10-01T09:30:00.000Z`"))
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// This instant without its part of a second.
    #[must_use]
    pub const fn whole_second(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(1_000)))
    }

    /// This instant plus `span`, at most the last one there is.
    #[must_use]
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This instant less `span`.
    #[must_use]
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Whether this is later than `now` by more than the clocks of two nodes may ever be apart: whoever wrote it down as what was
    /// then, or as what a row was to wait for at most, had a clock that was ahead.
    #[must_use]
    pub const fn is_ahead_of(self, now: Self) -> bool {
        self.since(now).0 > CLOCKS_APART_MAX.0
    }
}

impl Span {
    /// So many milliseconds.
    #[must_use]
    pub const fn millis(ms: i64) -> Self {
        Self(ms)
    }

    /// So many seconds.
    #[must_use]
    pub const fn seconds(s: i64) -> Self {
        Self(s.saturating_mul(1_000))
    }

    /// So many minutes.
    #[must_use]
    pub const fn minutes(min: i64) -> Self {
        Self::seconds(min.saturating_mul(60))
    }

    /// So many hours.
    #[must_use]
    pub const fn hours(h: i64) -> Self {
        Self::minutes(h.saturating_mul(60))
    }

    /// Its milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

/// RFC 3339 in UTC with milliseconds, such as `2026-10-01T09:30:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (year, month, day) = civil(days);
        let (h, m, s, milli) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        if !(0..=9_999).contains(&year) {
            return write!(out, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{milli:03}Z");
        }
        // Every ledger record has one: written digit by digit, it costs a tenth of what formatting costs.
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [(4, year), (2, month), (2, day), (2, h), (2, m), (2, s), (3, milli)];
        let mut places = text.iter_mut();
        for (width, number) in parts {
            for place in (0..width).rev() {
                if let (Some(slot), Ok(digit)) = (places.next(), u8::try_from(number / 10_i64.pow(place) % 10)) {
                    *slot = b'0' | digit;
                }
            }
            places.next();
        }
        out.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// The date in the proleptic Gregorian calendar of a day counted from 1970-01-01: year, month, day.
///
/// After Howard Hinnant's `civil_from_days`: exact for every day that an instant can lie in.
pub(crate) const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + (month <= 2) as i64;
    (year, month, day)
}

/// The day, counted from 1970-01-01, of a date; the other way round of [`civil`].
pub(crate) const fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Reads the fixed layout of RFC 3339 (5.6): date, `T`, time, any fraction, `Z` or an offset.
fn parse_rfc_3339(text: &str) -> Option<i64> {
    if !text.is_ascii() || text.len() > TEXT_MAX {
        return None;
    }
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let (year, month, day) = (digits(date.get(..4)?)?, two(date.get(4..7)?, '-')?, two(date.get(7..)?, '-')?);
    let (hour, minute, second) = (digits(time.get(..2)?)?, two(time.get(2..5)?, ':')?, two(time.get(5..)?, ':')?);
    let (millis, zone) = match rest.strip_prefix('.') {
        Some(fraction) => fraction_millis(fraction)?,
        None => (0, rest),
    };
    let days = days_of(year, month, day);
    let real =
        (1..=12).contains(&month) && civil(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    let local = ((days * 24 + hour) * 60 + minute) * 60 + second;
    let instant = (local - offset_seconds(zone)?) * 1_000 + millis;
    (real && WRITTEN.contains(&instant)).then_some(instant)
}

/// The digits of a fraction as milliseconds, rounded down, and what stands behind them.
fn fraction_millis(text: &str) -> Option<(i64, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (fraction, rest) = text.split_at_checked(end)?;
    let millis = fraction.bytes().chain([b'0'; 3]).take(3).fold(0, |sum, byte| sum * 10 + i64::from(byte - b'0'));
    (end > 0).then_some((millis, rest))
}

/// `Z`, or `+hh:mm` or `-hh:mm`, as seconds to the east of UTC.
fn offset_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, zone.strip_prefix('-')?),
    };
    let (hours, minutes) = (digits(rest.get(..2)?)?, two(rest.get(2..)?, ':')?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

/// Two digits behind a mark.
fn two(text: &str, mark: char) -> Option<i64> {
    text.strip_prefix(mark).filter(|it| it.len() == 2).and_then(digits)
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Known instants are written as RFC 3339 with milliseconds, leap days and years before 1970 among them.
    #[test]
    fn instants_are_written_as_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_790_847_000_000, "2026-10-01T09:30:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from_millis(ms).to_string(), text);
        }
    }

    /// What is written is read back, and offsets, fractions of any length and lower-case marks mean what RFC 3339 says.
    #[test]
    fn rfc_3339_is_read() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-10-01T09:30:00.000Z", 1_790_847_000_000),
            ("2026-10-01t11:30:00.000999+02:00", 1_790_847_000_000),
            ("2026-09-30T23:30:00.1-10:00", 1_790_847_000_100),
            ("2000-02-29T00:00:00z", 951_782_400_000),
            ("1969-12-31T23:59:59.999Z", -1),
            ("0000-01-01T00:00:00-00:00", -62_167_219_200_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
            ("9999-12-31T23:59:59.999+23:59", 253_402_300_799_999 - 86_340_000),
            ("0000-01-01T00:00:00-23:59", -62_167_219_200_000 + 86_340_000),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().as_millis(), ms, "{text}");
        }
    }

    /// Dates that there are not, other layouts, missing and doubled parts are no instants.
    #[test]
    fn what_is_no_instant_is_refused() {
        for bad in [
            "",
            "2026",
            "2026-10-01",
            "2026-10-01T09:30:00",
            "2026-10-01 09:30:00Z",
            "2026-10-01T09:30Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-10-00T00:00:00Z",
            "2026-10-01T24:00:00Z",
            "9999-12-31T23:59:59.999-00:01",
            "0000-01-01T00:00:00+00:01",
            "2026-10-01T09:60:00Z",
            "2026-10-01T09:30:60Z",
            "2026-10-01T09:30:00.Z",
            "2026-10-01T09:30:00ZZ",
            "2026-10-01T09:30:00+2",
            "2026-10-01T09:30:00+24:00",
            "2026-10-01T09:30:00+0200",
            "+2026-10-01T09:30:00Z",
            "-026-10-01T09:30:00Z",
            "2026-10-01T+9:30:00Z",
            "2026-1-01T09:30:00Z",
            " 2026-10-01T09:30:00Z",
            "２０26-10-01T09:30:00Z",
            "1790847000000",
        ] {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        /// Every instant of the years 0 to 9999 survives its text, and dates and days are two countings of one thing.
        #[test]
        fn an_instant_survives_its_text(ms in -62_167_219_200_000_i64..253_402_300_800_000) {
            let at = Timestamp::from_millis(ms);
            proptest::prop_assert_eq!(Timestamp::parse(&at.to_string()).unwrap(), at);
            let (year, month, day) = civil(ms.div_euclid(DAY_MS));
            proptest::prop_assert_eq!(days_of(year, month, day), ms.div_euclid(DAY_MS));
        }

        /// No text makes the reader panic.
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|[0-9TtZz:.+-]{0,40}") {
            let _ = Timestamp::parse(&text);
        }
    }
}
