//! The calls that wait for a person, so that the same call finds the action that was approved for it.
//!
//! They are in memory alone: after a restart the same call is asked about anew, which asks a person once more and allows
//! nothing by itself.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use svc_core::value::{Span, Timestamp};

/// Calls that are remembered; the oldest half is let go when there are more.
const WAITING_MAX: usize = 10_000;
/// Actions that one call is remembered to wait for: calls that are the same and came at once are asked about each.
const SAME_MAX: usize = 8;
/// For how long: longer than any approval waits.
const LIFE: Span = Span::hours(24 * 8);

/// The calls that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<Digest, (Vec<ActionId>, Timestamp)>>);

impl Waiting {
    /// The actions that the call waits for, the oldest first. They stay: whoever finds one over forgets it.
    pub(super) fn of(&self, call: &Digest, now: Timestamp) -> Vec<ActionId> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.get(call).filter(|(_, since)| now.since(*since) < LIFE);
        found.map(|(actions, _)| actions.clone()).unwrap_or_default()
    }

    /// Remembers what the call waits for.
    pub(super) fn put(&self, call: Digest, action: ActionId, now: Timestamp) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX && !waiting.contains_key(&call) {
            let mut times: Vec<Timestamp> = waiting.values().map(|(_, since)| *since).collect();
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or(now);
            waiting.retain(|_, (_, since)| *since > middle);
        }
        let (actions, since) = waiting.entry(call).or_insert_with(|| (Vec::new(), now));
        if actions.len() >= SAME_MAX {
            actions.remove(0);
        }
        actions.push(action);
        *since = now;
    }

    /// Forgets that the call waits for this action, and nothing else that it waits for.
    pub(super) fn forget(&self, call: &Digest, action: ActionId) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((actions, _)) = waiting.get_mut(call) else { return };
        actions.retain(|it| *it != action);
        if actions.is_empty() {
            waiting.remove(call);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;

    use super::*;

    /// What waits is found until it is over, for as long as it can wait, and not more of it is kept than there is room
    /// for.
    #[test]
    fn a_call_finds_what_it_waits_for() {
        let (waiting, now) = (Waiting::default(), Timestamp::from_millis(1_000));
        let call = |number: u128| Digest::of(number.to_be_bytes());
        let (one, two) = (ActionId::from_bits(1), ActionId::from_bits(2));
        waiting.put(call(1), one, now);
        waiting.put(call(1), two, now);
        assert_eq!(waiting.of(&call(2), now), []);
        assert_eq!(waiting.of(&call(1), now), [one, two], "of calls that came at once none is lost");
        waiting.forget(&call(1), one);
        waiting.forget(&call(1), one);
        assert_eq!(waiting.of(&call(1), now), [two]);
        assert_eq!(waiting.of(&call(1), now.plus(LIFE)), []);
        waiting.forget(&call(1), two);
        assert!(waiting.0.lock().unwrap().is_empty());
        for number in 0..=SAME_MAX {
            waiting.put(call(1), ActionId::from_bits(number as u128), now);
        }
        assert_eq!(waiting.of(&call(1), now).len(), SAME_MAX);
        for number in 0..=WAITING_MAX {
            let at = now.plus(Span::millis(i64::try_from(number).unwrap()));
            waiting.put(call(number as u128), ActionId::from_bits(number as u128), at);
        }
        assert!(waiting.0.lock().unwrap().len() <= WAITING_MAX);
        assert!(!waiting.of(&call(WAITING_MAX as u128), now).is_empty());
    }
}
