//! A workspace's month of model traffic: requests, and people by their first call (CONTRACT part 8, "Plans"). Read and written
//! only where the plan has such limits.

use serde::{Deserialize, Serialize};

use crate::state::people::Allowance;
use crate::value::id::{PrincipalId, WorkspaceId};
use crate::value::link::{Link, Linked, RowId};
use crate::value::period::{Period, Zone};
use crate::value::{Id, Span, Timestamp};

/// How long people past the limit may go on, once a month.
const GRACE: Span = Span::hours(7 * 24);
/// People past the limit that are kept; those who come after them are past it all the same.
const PAST_MAX: usize = 1_000;

/// A calendar month of a workspace, by its first day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MonthId {
    /// The workspace.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// The first day in the workspace's zone, counted from 1970-01-01.
    pub day: u32,
}

impl MonthId {
    /// The month that an instant lies in.
    #[must_use]
    pub fn at(workspace: WorkspaceId, at: Timestamp, zone: &Zone) -> Self {
        let (start, _) = Period::Month.bounds(at, zone);
        Self { workspace, day: u32::try_from(zone.day(start)).unwrap_or(0) }
    }
}

impl RowId for MonthId {
    fn parts(self) -> (u128, Option<u32>) {
        (self.workspace.bits(), Some(self.day))
    }
    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        Some(Self { workspace: WorkspaceId::from_bits(bits), day: number? })
    }
}

/// What a workspace had in a month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Month {
    /// Of which workspace and month.
    pub id: MonthId,
    /// Requests that were admitted.
    #[serde(default)]
    pub requests: u32,
    /// People in the order of their first call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub people: Vec<PrincipalId>,
    /// When a person past the limit first called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_from: Option<Timestamp>,
}

impl Linked for Month {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// Why the plan admits a call no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanLimit {
    /// The month's requests are used: 429.
    Requests,
    /// The month's people are used and the days of grace are over: 402.
    Seats,
}

impl Month {
    /// How a month begins.
    #[must_use]
    pub const fn new(id: MonthId) -> Self {
        Self { id, requests: 0, people: Vec::new(), grace_from: None }
    }

    /// Whether a plan has limits that this row is kept for.
    #[must_use]
    pub const fn is_kept(allowance: &Allowance) -> bool {
        allowance.people > 0 || allowance.requests > 0
    }

    /// Counts a call that counts for `principal`. While the days of grace run, every answer says so: the instant at which
    /// they end.
    ///
    /// # Errors
    /// The limit that the call is past. A refused call counts as no request.
    pub fn count(
        &mut self,
        principal: PrincipalId,
        now: Timestamp,
        allowance: &Allowance,
    ) -> Result<Option<Timestamp>, PlanLimit> {
        if allowance.requests > 0 && self.requests >= allowance.requests {
            return Err(PlanLimit::Requests);
        }
        if allowance.people > 0 {
            let limit = usize::try_from(allowance.people).unwrap_or(usize::MAX);
            let known = self.people.iter().position(|it| *it == principal);
            let place = known.unwrap_or(self.people.len());
            if known.is_none() && place < limit.saturating_add(PAST_MAX) {
                self.people.push(principal);
            }
            if place >= limit && now >= self.grace_from.get_or_insert(now).plus(GRACE) {
                return Err(PlanLimit::Seats);
            }
        }
        self.requests = self.requests.saturating_add(1);
        let ends = self.grace_from.map(|it| it.plus(GRACE));
        Ok(ends.filter(|end| allowance.people > 0 && now < *end))
    }
}

/// What answers say while people past the plan's limit may still call. Once the month is over people are counted anew, so nobody is
/// refused at an end that lies behind it.
#[must_use]
pub fn grace_advisory(ends: Timestamp, now: Timestamp, zone: &Zone) -> String {
    let (_, next) = Period::Month.bounds(now, zone);
    let then = if ends < next {
        format!("calls of further people are refused from {ends}")
    } else {
        format!("further people may call until a new month begins at {next}")
    };
    format!("the plan's people of this month are used; {then}")
}

/// Whole seconds until the month of `now` ends, at least 1.
#[must_use]
pub fn until_next_month(now: Timestamp, zone: &Zone) -> u32 {
    let left = Period::Month.bounds(now, zone).1.since(now).as_millis();
    u32::try_from(left.saturating_add(999).div_euclid(1_000).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Allowance = Allowance { people: 2, agents: 0, mandates: 0, requests: 5 };

    fn at(day: i64) -> Timestamp {
        Timestamp::from_millis(1_790_812_800_000).plus(Span::hours(24 * day))
    }

    fn month() -> Month {
        Month::new(MonthId::at(WorkspaceId::from_bits(1), at(0), &Zone::utc()))
    }

    fn person(number: u128) -> PrincipalId {
        PrincipalId::from_bits(number)
    }

    /// People within the limit call on; one past it has seven days from the first such call, and whoever comes later has what
    /// is left of them.
    #[test]
    fn people_past_the_limit_have_seven_days_once_a_month() {
        let plenty = Allowance { requests: 0, ..FREE };
        let mut month = month();
        assert_eq!(month.count(person(1), at(0), &plenty), Ok(None));
        assert_eq!(month.count(person(2), at(1), &plenty), Ok(None));
        let ends = at(9);
        assert_eq!(month.count(person(3), at(2), &plenty), Ok(Some(ends)));
        assert_eq!(month.count(person(1), at(3), &plenty), Ok(Some(ends)), "every answer says so");
        assert_eq!(month.count(person(4), at(8), &plenty), Ok(Some(ends)), "the days began with the first");
        assert_eq!(month.count(person(3), ends, &plenty), Err(PlanLimit::Seats));
        assert_eq!(month.count(person(5), ends, &plenty), Err(PlanLimit::Seats));
        assert_eq!(month.count(person(2), ends, &plenty), Ok(None), "who came in time goes on");
        assert_eq!(month.requests, 6);
    }

    /// An advisory names an end at which somebody is refused: not one behind the month, where people are counted anew.
    #[test]
    fn an_advisory_names_no_end_behind_its_month() {
        let told = |ends| grace_advisory(ends, at(24), &Zone::utc());
        assert!(told(at(30)).ends_with(&format!("refused from {}", at(30))), "{}", told(at(30)));
        for ends in [at(31), at(35)] {
            assert!(told(ends).ends_with(&format!("until a new month begins at {}", at(31))), "{}", told(ends));
        }
    }

    /// The month's requests are used when they are, and a refused call is none.
    #[test]
    fn requests_of_a_month_have_a_limit() {
        let mut month = month();
        for _ in 0..5 {
            assert!(month.count(person(1), at(0), &FREE).is_ok());
        }
        assert_eq!(month.count(person(1), at(0), &FREE), Err(PlanLimit::Requests));
        assert_eq!(month.requests, 5);
        assert!(!Month::is_kept(&Allowance::default()) && Month::is_kept(&FREE));
        assert_eq!(until_next_month(at(30), &Zone::utc()), 24 * 3_600);
        assert_ne!(MonthId::at(WorkspaceId::from_bits(1), at(31), &Zone::utc()), month.id);
    }

    /// However many people call, the row stays bounded.
    #[test]
    fn the_row_is_bounded() {
        let mut month = month();
        let plenty = Allowance { requests: 0, ..FREE };
        for number in 0..2_000 {
            let _ = month.count(person(number), at(0), &plenty);
        }
        assert_eq!(month.people.len(), 1_002);
        assert_eq!(month.count(person(1_999), at(7), &plenty), Err(PlanLimit::Seats));
    }
}
