//! Calendar periods in a time zone: what a limit "a day" or "a month" counts over.
//!
//! **Invariant:** the periods of one kind in one zone follow each other without gap or overlap, and each instant is in
//! exactly the one that [`Period::bounds`] gives for it, whatever the zone's clocks did.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};

use super::text::plumbing;
use super::time::{DAY_MS, civil, days_of};
use super::{Invalid, Timestamp};

const HOUR_MS: i64 = 3_600_000;
/// Instants outside the years 1 to 9998 count as the nearest inside: calendars say little of the rest.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_370_764_799_999;
/// Bytes of the longest name worth looking up.
const NAME_MAX: usize = 64;
/// A period that a clock put back has cut off is at most a few away.
const STEPS_MAX: usize = 4;

/// A time zone by its IANA name, from the rules compiled in; no file is read.
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    /// Absent for UTC, whose days need no rules, and for a zone that the database has no more, whose days are those of UTC.
    rules: Option<TimeZone>,
}

/// A calendar period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// The hour of UTC, in whatever zone.
    Hour,
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first.
    Month,
    /// From January, April, July or October: of budgets alone.
    Quarter,
    /// From January.
    Year,
}

impl Zone {
    /// Reads an IANA name such as `Europe/Vienna`, in any case.
    ///
    /// # Errors
    /// [`Invalid`] where the time zone database has no such name.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        let refused = || Invalid::new("must be an IANA time zone such as `Europe/Vienna` or `UTC`");
        if name.len() > NAME_MAX {
            return Err(refused());
        }
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self::utc());
        }
        let rules = TimeZoneDatabase::bundled().get(name).map_err(|_| refused())?;
        let name = rules.iana_name().filter(|_| !rules.is_unknown()).ok_or_else(refused)?;
        Ok(Self { name: name.into(), rules: Some(rules) })
    }

    /// Reads a name as it is stored. One that the database has no more keeps its name, and has the days of UTC until another is set.
    fn parse_stored(name: &str) -> Result<Self, Invalid> {
        let has_shape = (1..=NAME_MAX).contains(&name.len()) && name.bytes().all(|it| it.is_ascii_graphic());
        Self::parse(name)
            .or_else(|cause| if has_shape { Ok(Self { name: name.into(), rules: None }) } else { Err(cause) })
    }

    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".into(), rules: None }
    }

    /// Whether it is UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        &*self.name == "UTC"
    }

    /// The name, in the database's own case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The day that an instant lies in, counted from 1970-01-01: the one whose first instant [`Period::bounds`] gives.
    #[must_use]
    pub fn day(&self, at: Timestamp) -> i64 {
        self.day_at(Period::Day.bounds(at, self).0.as_millis())
    }

    /// The first instant of a day counted from 1970-01-01.
    #[must_use]
    pub fn start(&self, day: i64) -> Timestamp {
        Timestamp::from_millis(self.day_start(day))
    }

    /// The day, counted from 1970-01-01, that the zone's calendars show at an instant.
    fn day_at(&self, ms: i64) -> i64 {
        let shown = self
            .rules
            .as_ref()
            .and_then(|rules| Some(rules.to_datetime(jiff::Timestamp::from_millisecond(ms).ok()?).date()));
        shown.map_or_else(
            || ms.div_euclid(DAY_MS),
            |date| days_of(date.year().into(), date.month().into(), date.day().into()),
        )
    }

    /// The first instant of a day; of a day that the zone left out, the first after it.
    fn day_start(&self, day: i64) -> i64 {
        self.rules.as_ref().and_then(|rules| first_instant(rules, day)).unwrap_or(day * DAY_MS)
    }
}

plumbing!(Zone, Zone::parse_stored);

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Period {
    /// Every period, shortest first.
    pub const ALL: [Self; 6] = [Self::Hour, Self::Day, Self::Week, Self::Month, Self::Quarter, Self::Year];

    /// Those that a mandate counts over.
    pub const COUNTED: [Self; 5] = [Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Reads a period that a mandate counts over: `hour`, `day`, `week`, `month` or `year`.
    ///
    /// # Errors
    /// [`Invalid`] for any other word.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::COUNTED
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| Invalid::new("must be `hour`, `day`, `week`, `month` or `year`"))
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Year => "year",
        }
    }

    /// The period that `at` lies in: its first instant, and the first that is no longer in it.
    ///
    /// Instants outside the years 1 to 9998 count as the nearest inside.
    #[must_use]
    pub fn bounds(self, at: Timestamp, zone: &Zone) -> (Timestamp, Timestamp) {
        let ms = at.as_millis().clamp(FIRST_MS, LAST_MS);
        let (start, end) = if self == Self::Hour {
            let start = ms - ms.rem_euclid(HOUR_MS);
            (start, start + HOUR_MS)
        } else {
            self.days_around(ms, zone)
        };
        (Timestamp::from_millis(start), Timestamp::from_millis(end))
    }

    /// A clock that is put back over midnight shows yesterday again, though today had begun. Today goes on: a period
    /// ends once. So the date shown is only where to begin to look.
    fn days_around(self, ms: i64, zone: &Zone) -> (i64, i64) {
        let mut day = zone.day_at(ms);
        for _ in 0..STEPS_MAX {
            let (first, next) = self.around(day);
            let (start, end) = (zone.day_start(first), zone.day_start(next));
            if ms < start {
                day = first - 1;
            } else if ms >= end {
                day = next;
            } else {
                return (start, end);
            }
        }
        let (first, next) = self.around(ms.div_euclid(DAY_MS));
        (first * DAY_MS, next * DAY_MS)
    }

    /// The first day of the period that a day is in, and of the one after.
    const fn around(self, day: i64) -> (i64, i64) {
        let (year, month, _) = civil(day);
        match self {
            Self::Hour | Self::Day => (day, day + 1),
            Self::Week => {
                // 1970-01-01 was a Thursday.
                let monday = day - (day + 3).rem_euclid(7);
                (monday, monday + 7)
            }
            Self::Month => {
                let next = if month == 12 { days_of(year + 1, 1, 1) } else { days_of(year, month + 1, 1) };
                (days_of(year, month, 1), next)
            }
            Self::Quarter => {
                let first = month - (month - 1) % 3;
                let next = if first == 10 { days_of(year + 1, 1, 1) } else { days_of(year, first + 3, 1) };
                (days_of(year, first, 1), next)
            }
            Self::Year => (days_of(year, 1, 1), days_of(year + 1, 1, 1)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl FromStr for Period {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse(text)
    }
}

/// A day counted from 1970-01-01 as its date: `2026-10-01`.
#[must_use]
pub fn date_of(day: i64) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The day, counted from 1970-01-01, of a date such as `2026-10-01`.
///
/// # Errors
/// [`Invalid`] where it is no date of the years 1 to 9998.
pub fn day_of(date: &str) -> Result<i64, Invalid> {
    let at = Timestamp::parse(&format!("{date}T00:00:00Z")).ok().map(Timestamp::as_millis);
    let within = at.filter(|ms| date.len() == 10 && (FIRST_MS..=LAST_MS).contains(ms));
    within.map(|ms| ms.div_euclid(DAY_MS)).ok_or_else(|| Invalid::new("must be a date such as `2026-10-01`"))
}

/// When a day begins by a zone's rules: at the first of its midnights, or where the clocks left midnight out, at the
/// moment when they were put forward.
fn first_instant(rules: &TimeZone, day: i64) -> Option<i64> {
    let (year, month, day) = civil(day);
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let midnight = rules.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
    let start = match midnight.offset() {
        AmbiguousOffset::Gap { .. } => rules.following(midnight.earlier().ok()?).next()?.timestamp(),
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => midnight.earlier().ok()?,
    };
    Some(start.as_millisecond())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;

    use super::*;

    fn bounds(period: Period, at: &str, zone: &str) -> (String, String) {
        let (start, end) = period.bounds(Timestamp::parse(at).unwrap(), &Zone::parse(zone).unwrap());
        (start.to_string(), end.to_string())
    }

    fn check(period: Period, zone: &str, at: &str, start: &str, end: &str) {
        assert_eq!(
            bounds(period, at, zone),
            (format!("{start}.000Z"), format!("{end}.000Z")),
            "{period} of {at} in {zone}"
        );
    }

    /// In UTC, periods begin at the hour, at midnight, on Monday, on the first and in January, and end where the next
    /// begins.
    #[test]
    fn periods_of_utc_are_those_of_the_calendar() {
        let at = "2026-10-01T09:30:00.123Z";
        check(Period::Hour, "UTC", at, "2026-10-01T09:00:00", "2026-10-01T10:00:00");
        check(Period::Day, "UTC", at, "2026-10-01T00:00:00", "2026-10-02T00:00:00");
        check(Period::Week, "UTC", at, "2026-09-28T00:00:00", "2026-10-05T00:00:00");
        check(Period::Month, "UTC", at, "2026-10-01T00:00:00", "2026-11-01T00:00:00");
        check(Period::Year, "UTC", at, "2026-01-01T00:00:00", "2027-01-01T00:00:00");
        check(Period::Month, "UTC", "2024-02-29T23:59:59.999Z", "2024-02-01T00:00:00", "2024-03-01T00:00:00");
        check(Period::Month, "UTC", "2026-12-31T23:59:59.999Z", "2026-12-01T00:00:00", "2027-01-01T00:00:00");
        check(Period::Week, "UTC", "2026-10-05T00:00:00Z", "2026-10-05T00:00:00", "2026-10-12T00:00:00");
        check(Period::Week, "UTC", "1969-12-31T23:59:59Z", "1969-12-29T00:00:00", "1970-01-05T00:00:00");
    }

    /// In a zone, days that clocks are moved on have 23 or 25 hours, and the hour stays that of UTC.
    #[test]
    fn days_are_as_long_as_the_zone_makes_them() {
        check(Period::Day, "Europe/Vienna", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00", "2026-03-29T22:00:00");
        check(Period::Day, "Europe/Vienna", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00", "2026-10-25T23:00:00");
        check(Period::Month, "Europe/Vienna", "2026-09-30T22:00:00Z", "2026-09-30T22:00:00", "2026-10-31T23:00:00");
        check(Period::Month, "Europe/Vienna", "2026-09-30T21:59:59.999Z", "2026-08-31T22:00:00", "2026-09-30T22:00:00");
        check(Period::Year, "America/New_York", "2027-01-01T04:59:59Z", "2026-01-01T05:00:00", "2027-01-01T05:00:00");
        check(Period::Week, "Asia/Kathmandu", "2026-10-04T18:15:00Z", "2026-10-04T18:15:00", "2026-10-11T18:15:00");
        check(Period::Hour, "Asia/Kathmandu", "2026-10-04T18:15:00Z", "2026-10-04T18:00:00", "2026-10-04T19:00:00");
    }

    /// A day whose midnight the clocks left out begins when its first minute does; a day left out whole is nobody's.
    #[test]
    fn midnights_that_were_left_out_are_made_up_for() {
        check(Period::Day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00", "2018-11-05T02:00:00");
        check(Period::Day, "America/Toronto", "1919-03-31T12:00:00Z", "1919-03-31T04:30:00", "1919-04-01T04:00:00");
        check(Period::Day, "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29T10:00:00", "2011-12-30T10:00:00");
        check(Period::Day, "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-30T10:00:00", "2011-12-31T10:00:00");
    }

    /// Where clocks went back over midnight, the new day had begun and goes on: no instant is counted in both days.
    #[test]
    fn a_day_that_has_begun_goes_on() {
        let (start, end) = ("2006-10-29T02:30:00", "2006-10-30T03:30:00");
        for at in ["2006-10-29T02:30:00Z", "2006-10-29T02:45:00Z", "2006-10-29T03:29:00Z", "2006-10-29T03:30:00Z"] {
            check(Period::Day, "America/St_Johns", at, start, end);
        }
        check(Period::Day, "America/St_Johns", "2006-10-29T02:29:59Z", "2006-10-28T02:30:00", start);
    }

    /// Names are read in any case and kept in the database's own; what the database lacks is no zone.
    #[test]
    fn zones_are_those_of_the_database() {
        for (name, kept) in [
            ("utc", "UTC"),
            ("europe/vienna", "Europe/Vienna"),
            ("Etc/GMT+5", "Etc/GMT+5"),
            ("US/Eastern", "US/Eastern"),
            ("Asia/Kolkata", "Asia/Kolkata"),
        ] {
            assert_eq!(Zone::parse(name).unwrap().as_str(), kept);
        }
        for bad in [
            "",
            " ",
            "Local",
            "Mars/Base",
            "Europe/",
            "/etc/localtime",
            "../UTC",
            "EST5EDT4,M3.2.0,M11.1.0",
            "+02:00",
            "Etc/Unknown",
            "UTC ",
            "Europe/Vienna\0",
            "posix/UTC",
            "right/UTC",
            "GMT+25",
            &"x".repeat(1 << 20),
        ] {
            assert!(Zone::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(serde_json::to_string(&Zone::parse("europe/vienna").unwrap()).unwrap(), "\"Europe/Vienna\"");
        assert_eq!(serde_json::from_str::<Zone>("\"Europe/Vienna\"").unwrap(), Zone::parse("Europe/Vienna").unwrap());
        assert_eq!(Zone::default().as_str(), "UTC");
    }

    /// A stored zone is read when the database has it no more, under its name and with the days of UTC.
    #[test]
    fn a_stored_zone_is_read_when_the_database_lacks_it() {
        let zone = serde_json::from_str::<Zone>("\"Mars/Base\"").unwrap();
        assert_eq!((zone.as_str(), zone.is_utc(), zone == Zone::utc()), ("Mars/Base", false, false));
        let at = Timestamp::parse("2026-11-30T23:30:00.000Z").unwrap();
        assert_eq!(Period::Day.bounds(at, &zone), Period::Day.bounds(at, &Zone::utc()));
        assert_eq!(serde_json::to_string(&zone).unwrap(), "\"Mars/Base\"");
        for no_name in ["", " ", "Europe/ Vienna", "Zürich"] {
            assert!(serde_json::from_str::<Zone>(&format!("\"{no_name}\"")).is_err(), "{no_name}");
        }
    }

    /// A quarter has three months.
    #[test]
    fn quarters_begin_with_the_first_fourth_seventh_and_tenth_month() {
        check(Period::Quarter, "UTC", "2026-03-31T23:59:59.999Z", "2026-01-01T00:00:00", "2026-04-01T00:00:00");
        check(Period::Quarter, "UTC", "2026-04-01T00:00:00Z", "2026-04-01T00:00:00", "2026-07-01T00:00:00");
        check(Period::Quarter, "UTC", "2026-12-31T12:00:00Z", "2026-10-01T00:00:00", "2027-01-01T00:00:00");
        check(Period::Quarter, "Europe/Vienna", "2026-09-30T22:00:00Z", "2026-09-30T22:00:00", "2026-12-31T23:00:00");
    }

    /// A day has a number, a date and a first instant, and each gives the others.
    #[test]
    fn a_day_has_a_number_and_a_date() {
        let vienna = Zone::parse("Europe/Vienna").unwrap();
        let late = Timestamp::parse("2026-09-30T22:30:00Z").unwrap();
        assert_eq!(
            (date_of(vienna.day(late)), date_of(Zone::utc().day(late))),
            ("2026-10-01".into(), "2026-09-30".into())
        );
        assert_eq!(vienna.start(vienna.day(late)).to_string(), "2026-09-30T22:00:00.000Z");
        assert_eq!(day_of("2026-10-01").map(date_of), Ok("2026-10-01".to_owned()));
        for bad in ["", "2026-10-1", "2026-13-01", "2026-02-30", "2026-10-01T00", "0000-01-01", "9999-01-01"] {
            assert!(day_of(bad).is_err(), "{bad}");
        }
    }

    /// Periods are read by their words, and stored as them.
    #[test]
    fn periods_are_their_words() {
        for period in Period::ALL.into_iter().filter(|it| *it != Period::Quarter) {
            assert_eq!(Period::parse(period.as_str()).unwrap(), period);
            assert_eq!(serde_json::to_string(&period).unwrap(), format!("\"{period}\""));
        }
        for bad in ["", "Day", "minute", "quarter", "days"] {
            assert!(Period::parse(bad).is_err(), "{bad}");
        }
    }

    /// The ends of time give bounds too.
    #[test]
    fn the_ends_of_time_have_bounds() {
        for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"] {
            for period in Period::ALL {
                for ms in [i64::MIN, i64::MAX] {
                    let (start, end) = period.bounds(Timestamp::from_millis(ms), &Zone::parse(zone).unwrap());
                    assert!(start < end, "{period} {zone}");
                }
            }
        }
    }

    proptest! {
        /// Whatever the zone did: an instant is in its period, every instant of a period has the same one, and the next
        /// begins where it ends.
        #[test]
        fn periods_follow_without_gap_or_overlap(
            ms in -3_000_000_000_000_i64..5_000_000_000_000,
            zone in prop::sample::select(vec![
                "UTC", "Europe/Vienna", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana",
                "America/Toronto", "Africa/Cairo", "Asia/Tehran", "Asia/Kathmandu", "Asia/Gaza", "Australia/Lord_Howe",
                "Pacific/Apia", "Pacific/Kwajalein", "Antarctica/Troll", "Africa/Casablanca",
            ]),
            period in prop::sample::select(Period::ALL.to_vec()),
            within in 0_i64..1_000,
        ) {
            let zone = Zone::parse(zone).unwrap();
            let at = Timestamp::from_millis(ms);
            let (start, end) = period.bounds(at, &zone);
            prop_assert!(start <= at && at < end);
            let span = end.since(start).as_millis();
            let inside = Timestamp::from_millis(start.as_millis() + span / 1_000 * within);
            for other in [start, inside, Timestamp::from_millis(end.as_millis() - 1)] {
                prop_assert_eq!(period.bounds(other, &zone), (start, end));
            }
            prop_assert_eq!(period.bounds(end, &zone).0, end);
            prop_assert_eq!(period.bounds(Timestamp::from_millis(start.as_millis() - 1), &zone).1, start);
        }

        /// The zone of Greenwich's own rules gives what the way without rules gives.
        #[test]
        fn utc_by_rules_is_utc_without(
            ms in -60_000_000_000_000_i64..250_000_000_000_000,
            period in prop::sample::select(Period::ALL.to_vec()),
        ) {
            let at = Timestamp::from_millis(ms);
            prop_assert_eq!(period.bounds(at, &Zone::utc()), period.bounds(at, &Zone::parse("Etc/UTC").unwrap()));
        }

        /// No text makes the readers panic.
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,30}|[A-Za-z]{1,10}/[A-Za-z_]{1,10}") {
            let _ = Period::parse(&text);
            if let Ok(zone) = Zone::parse(&text) {
                prop_assert_eq!(Zone::parse(zone.as_str()).unwrap(), zone);
            }
        }
    }
}
