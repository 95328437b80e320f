//! Room for newcomers where every connection is taken: whoever has waited longest for its client gives its place.
//!
//! A connection on which nobody asks and nothing is left to be taken costs its client nothing, so anybody could hold all places by
//! doing nothing. One that is at work is never ended for another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::pulse::Pulse;

/// How often those that wait are looked for, at most: there are many. For so long they are kept in mind.
const LOOK_PERIOD: Duration = Duration::from_millis(100);
/// So many of those that have waited longest are kept in mind.
const NAMED_MAX: usize = 256;

/// The connections that there are.
#[derive(Debug)]
pub(crate) struct Seats {
    began: Instant,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    next: u64,
    seats: HashMap<u64, Arc<Waiter>>,
    /// Those that have waited longest, the longest last, and when they were looked for.
    named: Vec<Arc<Waiter>>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    pulse: Arc<Pulse>,
    /// Since when it waits for its client, in milliseconds from the beginning and one more; 0 where it does not, as far as was looked.
    since: AtomicU64,
    leave: Notify,
}

/// A connection's place among them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    waiter: Arc<Waiter>,
}

impl Seats {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), known: Mutex::default() })
    }

    /// A place for a connection with this pulse.
    pub(crate) fn enter(self: &Arc<Self>, pulse: Arc<Pulse>) -> Seat {
        let waiter = Arc::new(Waiter { pulse, since: AtomicU64::new(0), leave: Notify::new() });
        let mut known = self.known();
        let number = known.next;
        known.next = number.wrapping_add(1);
        known.seats.insert(number, Arc::clone(&waiter));
        drop(known);
        Seat { seats: Arc::clone(self), number, waiter }
    }

    /// Has the one leave that has waited longest; whether there is one.
    pub(crate) fn make_room(&self, now: Instant) -> bool {
        let mut known = self.known();
        // Those that are left of an earlier look may have asked and waited again since: others have waited longer.
        if known.looked.is_none_or(|it| now.saturating_duration_since(it) >= LOOK_PERIOD) {
            known.look(now);
        }
        while let Some(waiter) = known.named.pop() {
            if waiter.since.swap(0, Ordering::Relaxed) > 0 && waiter.pulse.waits() {
                waiter.leave.notify_one();
                return true;
            }
        }
        false
    }

    /// What was held when somebody panicked is whole: a connection is in it or not.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn look(&mut self, now: Instant) {
        self.looked = Some(now);
        let since = |it: &Arc<Waiter>| (it.since.load(Ordering::Relaxed), Arc::clone(it));
        let mut waiting: Vec<_> =
            self.seats.values().map(since).filter(|(since, it)| *since > 0 && it.pulse.waits()).collect();
        waiting.sort_unstable_by_key(|(since, _)| *since);
        waiting.truncate(NAMED_MAX);
        self.named = waiting.into_iter().rev().map(|(_, it)| it).collect();
    }
}

impl Seat {
    /// Notes since when it waits, where it does.
    pub(crate) fn note(&self, since: Option<Instant>) {
        let passed = since.map(|it| it.saturating_duration_since(self.seats.began).as_millis());
        let since = passed.map_or(0, |it| u64::try_from(it).unwrap_or(u64::MAX).saturating_add(1));
        self.waiter.since.store(since, Ordering::Relaxed);
    }

    /// Waits until another needs its place.
    pub(crate) async fn asked_to_leave(&self) {
        self.waiter.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut known = self.seats.known();
        known.seats.remove(&self.number);
        // It may be among those that are kept in mind, and its place is free already: another has to leave.
        self.waiter.since.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    /// Whether this one is asked to leave, by now.
    fn leaves(seat: &Seat) -> bool {
        pin!(seat.asked_to_leave()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Those that went, or asked anew, after they were looked for make no room: whoever waits longest now does.
    #[test]
    fn who_is_gone_makes_no_room() {
        let seats = Seats::new();
        let at = |ms: u64| seats.began + Duration::from_millis(ms);
        let enter = |since: u64| {
            let seat = seats.enter(Arc::default());
            seat.note(Some(at(since)));
            seat
        };
        let (first, gone, second, asks) = (enter(1), enter(2), enter(3), enter(4));
        assert!(seats.make_room(at(10)) && leaves(&first));
        drop(gone);
        assert!(seats.make_room(at(20)) && leaves(&second), "a place that is free already is none that becomes free");
        let late = enter(25);
        asks.note(Some(at(190)));
        assert!(
            seats.make_room(at(200)) && leaves(&late) && !leaves(&asks),
            "who has asked since has waited less long"
        );
        assert!(seats.make_room(at(200)) && leaves(&asks));
    }

    /// The one that has waited longest leaves first, one at work never does, and those that are gone are not asked.
    #[tokio::test]
    async fn the_longest_waiting_leaves() {
        let seats = Seats::new();
        let began = seats.began;
        let at = |ms: u64| began + Duration::from_millis(ms);
        let enter = |since: Option<u64>| {
            let seat = seats.enter(Arc::default());
            seat.note(since.map(at));
            seat
        };
        let (busy, young, old, gone) = (enter(Some(0)), enter(Some(20)), enter(Some(10)), enter(Some(5)));
        busy.waiter.pulse.begun.store(1, Ordering::Relaxed);
        let _new = enter(None);
        drop(gone);
        assert!(seats.make_room(at(30)));
        old.asked_to_leave().await;
        assert!(seats.make_room(at(30)));
        young.asked_to_leave().await;
        assert!(!seats.make_room(at(30)) && !seats.make_room(at(60_000)));
        old.note(Some(at(40)));
        assert!(!seats.make_room(at(60_000)), "it is not looked for at once again");
        assert!(seats.make_room(at(61_000)));
    }
}
