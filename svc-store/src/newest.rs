//! The newest instant that a node has seen in its store's ledgers: what its own clock is held against.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use svc_core::engine::Failure;
use svc_core::store::{Clock, Found, Key, Range, Record};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Span, Timestamp};

use crate::error::StoreError;
use crate::gate::Core;

/// How far a node's clock may be behind the newest record of the store.
pub const CLOCK_SLACK: Span = Span::seconds(5);
/// How far a node's clock may be from the database's own: two nodes are then no further from each other than [`CLOCK_SLACK`].
pub const APART_MAX: Span = Span::millis(2_500);
/// The instants that a clock may tell, by milliseconds: of the years 1970 to 9998. Of later ones neither HTTP nor RFC 3339 has a date for
/// what lasts a while, and an earlier one is told as the first of them. hyper keeps a date for its answers, also where it is told to
/// date none, and panics where there is none: whoever asks is told nothing, so nothing may be decided meanwhile.
const TELLABLE: RangeInclusive<i64> = 1..=253_370_764_799_999;

/// Whether a clock may tell this: at any other time nothing is decided.
#[must_use]
pub const fn is_tellable(now: Timestamp) -> bool {
    *TELLABLE.start() <= now.as_millis() && now.as_millis() <= *TELLABLE.end()
}

/// Workspaces whose newest records are looked for at once.
const WORKSPACES_PAGE: usize = 64;

/// A workspace's place among all of them.
type Place = (u128, Key);

/// The instant of the newest record that a store's ledgers hold; `None` while they hold none. It is what [`CLOCK_SLACK`] is
/// measured from, so that a command can say why a server would decide nothing. It reads one record of every workspace.
///
/// # Errors
/// Rows could not be read.
pub fn newest_record<E>(mut scan: impl FnMut(&Range) -> Result<Vec<Found>, E>) -> Result<Option<Timestamp>, E> {
    let (mut newest, mut after) = (None, None);
    loop {
        let (of_page, last) = newest_of_page(&mut scan, after)?;
        newest = newest.max(of_page);
        if last.is_none() {
            return Ok(newest);
        }
        after = last;
    }
}

/// The newest instant of a page of workspaces, and the last of them where there may be more.
fn newest_of_page<E>(
    scan: &mut impl FnMut(&Range) -> Result<Vec<Found>, E>,
    after: Option<Place>,
) -> Result<(Option<Timestamp>, Option<Place>), E> {
    let page = scan(&Range { after, ..Range::all(Index::Workspaces, 0, WORKSPACES_PAGE) })?;
    let mut newest = None;
    for workspace in &page {
        let Key::Workspace(id) = workspace.row.key else { continue };
        let last = scan(&Range { newest_first: true, ..Range::all(Index::LedgerOf, id.bits(), 1) })?;
        newest = newest.max(last.iter().filter_map(instant).max());
    }
    let last = page.last().filter(|_| page.len() == WORKSPACES_PAGE);
    Ok((newest, last.map(|it| (it.order, it.row.key))))
}

fn instant(found: &Found) -> Option<Timestamp> {
    if let Some(Record::Entry(entry)) = &found.row.record { Some(entry.at) } else { None }
}

/// How long a comparison with the database's clock holds: it is made anew every second.
const COMPARED_FOR: Duration = Duration::from_secs(10);

/// What is known of how far this machine's clock is apart from the database's.
#[derive(Clone, Copy, Debug, Default)]
enum Compared {
    /// The store has no clock but this machine's.
    #[default]
    Needless,
    /// Nothing: it has one, as far as anybody knows, and was not heard.
    Never,
    /// It was heard then.
    At(Instant),
}

impl Compared {
    /// Whether that is enough to decide by at `now`.
    fn holds(self, now: impl FnOnce() -> Instant) -> bool {
        match self {
            Self::Needless => true,
            Self::Never => false,
            Self::At(then) => now().saturating_duration_since(then) < COMPARED_FOR,
        }
    }
}

/// The newest instant seen; the start of 1970 while none was.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    at_ms: AtomicI64,
    /// By how many milliseconds this machine's clock was certainly apart from the database's own when they were last compared.
    apart_ms: AtomicI64,
    compared: RwLock<Compared>,
    /// The workspace behind which the next look goes on.
    behind: Mutex<Option<Place>>,
    /// Whether the log was told that the clock is behind.
    told: AtomicBool,
}

impl Newest {
    /// Takes in the instant of a commit.
    pub(crate) fn see(&self, at: Timestamp) {
        self.at_ms.fetch_max(at.as_millis(), Ordering::AcqRel);
    }

    /// Takes in the instants of ledger records.
    pub(crate) fn see_records(&self, rows: &[Found]) {
        if let Some(newest) = rows.iter().filter_map(instant).max() {
            self.see(newest);
        }
    }

    /// From here on nothing is decided before this clock was held against the database's.
    pub(crate) fn await_comparison(&self) {
        self.set_compared(Compared::Never);
    }

    /// Takes in how far this clock is apart from the database's; `None` where that has none of its own.
    pub(crate) fn see_apart(&self, apart: Option<Span>) {
        self.apart_ms.store(apart.unwrap_or_default().as_millis(), Ordering::Release);
        self.set_compared(apart.map_or(Compared::Needless, |_| Compared::At(Instant::now())));
    }

    fn set_compared(&self, compared: Compared) {
        *self.compared.write().unwrap_or_else(PoisonError::into_inner) = compared;
    }

    /// Whether the time of `clock` is further behind than nodes may differ, also where the clock itself does not go back: behind
    /// the newest record, or behind what it has told before. What was decided at a time that was told in error would stand in
    /// the ledger, and then nothing could be decided until that time had come. So it is at a time that is not [tellable](is_tellable).
    pub(crate) fn is_ahead_of(&self, clock: &dyn Clock) -> bool {
        let (now, lag) = (clock.now(), clock.lag());
        let recorded = Timestamp::from_millis(self.at_ms.load(Ordering::Acquire)).since(now.minus(lag));
        let apart = Span::millis(self.apart_ms.load(Ordering::Acquire));
        let behind = recorded.max(lag).max(apart);
        let compared = *self.compared.read().unwrap_or_else(PoisonError::into_inner);
        let is_known = compared.holds(Instant::now);
        let is_behind = recorded.max(lag) > CLOCK_SLACK || apart > APART_MAX || !is_known || !is_tellable(now);
        if self.told.swap(is_behind, Ordering::AcqRel) != is_behind {
            let by_ms = behind.as_millis();
            if !is_tellable(now) {
                tracing::error!(
                    "this clock tells {now}, which it cannot be: nothing is decided. Set it, then start the server again"
                );
            } else if is_behind && !is_known {
                tracing::error!(
                    "this clock could not be held against the database's own: nothing is decided until it was"
                );
            } else if is_behind {
                tracing::error!(
                    by_ms,
                    "this clock is behind the newest record of the store, or behind what it told before, or apart from the \
                     database's own: nothing is decided until it is not. Where it was wrong then and nothing was decided meanwhile, a restart is enough"
                );
            } else {
                tracing::info!("this clock is not behind the store any more");
            }
        }
        is_behind
    }
}

impl Core {
    /// Takes in the newest record of each workspace.
    pub(crate) fn look_back(&self) -> Result<(), Failure<StoreError>> {
        let mut reader = self.readers.open().map_err(Failure::Load)?;
        let newest = newest_record(|range| reader.scan(range)).map_err(Failure::Load)?;
        newest.into_iter().for_each(|at| self.newest.see(at));
        Ok(())
    }

    /// As [`look_back`](Self::look_back), of the next few workspaces alone: it is asked for often.
    pub(crate) fn look_on(&self) -> Result<(), Failure<StoreError>> {
        let behind = || self.newest.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reader = self.readers.open().map_err(Failure::Load)?;
        let after = *behind();
        let (newest, last) = newest_of_page(&mut |range| reader.scan(range), after).map_err(Failure::Load)?;
        *behind() = last;
        newest.into_iter().for_each(|at| self.newest.see(at));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that has to be held against another one is good for nothing before it was, and for a while after each time; where there
    /// is no other one, it is good.
    #[test]
    fn a_clock_that_was_not_compared_decides_nothing() {
        let now = Instant::now();
        let at = |later| move || now + later;
        assert!(Compared::default().holds(at(COMPARED_FOR)));
        assert!(!Compared::Never.holds(at(Duration::ZERO)));
        let compared = Compared::At(now);
        assert!(compared.holds(at(Duration::ZERO)) && compared.holds(at(COMPARED_FOR - Duration::from_millis(1))));
        assert!(!compared.holds(at(COMPARED_FOR)));
    }
}
