//! Calendar periods in a time zone: what a limit "a day" or "a month" counts over.
//!
//! **Invariant:** the periods of one kind in one zone follow each other without gap or overlap, and each instant is in
//! exactly the one that [`Period::bounds`] gives for it, whatever the zone's clocks did.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
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
    /// Absent for UTC, whose days need no rules.
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

    /// UTC.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "UTC".into(), rules: None }
    }

    /// The name, in the database's own case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
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

plumbing!(Zone);

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
    pub const ALL: [Self; 5] = [Self::Hour, Self::Day, Self::Week, Self::Month, Self::Year];

    /// Reads `hour`, `day`, `week`, `month` or `year`.
    ///
    /// # Errors
    /// [`Invalid`] for any other word.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
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

    /// A clock that is put back over midnight shows yesterday again, though today had begun. Today goes on: a period ends
    /// once. So the date shown is only where to begin to look.
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

/// When a day begins by a zone's rules. Noon is asked for because hardly any clock is moved at noon.
fn first_instant(rules: &TimeZone, day: i64) -> Option<i64> {
    let (year, month, day) = civil(day);
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let start = rules.to_zoned(date.at(12, 0, 0, 0)).ok()?.start_of_day().ok()?;
    Some(start.timestamp().as_millisecond())
}
