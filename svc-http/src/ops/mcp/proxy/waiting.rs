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
/// For how long: longer than any approval waits.
const LIFE: Span = Span::hours(24 * 8);

/// The calls that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<Digest, (ActionId, Timestamp)>>);

impl Waiting {
    /// The action that the call waits for; whoever takes it has it alone.
    pub(super) fn take(&self, call: &Digest, now: Timestamp) -> Option<ActionId> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
        found.filter(|(_, since)| now.since(*since) < LIFE).map(|(action, _)| action)
    }

    /// Remembers what the call waits for.
    pub(super) fn put(&self, call: Digest, action: ActionId, now: Timestamp) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= WAITING_MAX {
            let mut times: Vec<Timestamp> = waiting.values().map(|(_, since)| *since).collect();
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or(now);
            waiting.retain(|_, (_, since)| *since > middle);
        }
        waiting.insert(call, (action, now));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;

    use super::*;

    /// What waits is found once, for as long as it can wait, and not more of it is kept than there is room for.
    #[test]
    fn a_call_finds_what_it_waits_for_once() {
        let (waiting, now) = (Waiting::default(), Timestamp::from_millis(1_000));
        let call = |number: u128| Digest::of(number.to_be_bytes());
        waiting.put(call(1), ActionId::from_bits(1), now);
        assert_eq!(waiting.take(&call(2), now), None);
        assert_eq!(waiting.take(&call(1), now), Some(ActionId::from_bits(1)));
        assert_eq!(waiting.take(&call(1), now), None);
        waiting.put(call(1), ActionId::from_bits(1), now);
        assert_eq!(waiting.take(&call(1), now.plus(LIFE)), None);
        for number in 0..=WAITING_MAX {
            let at = now.plus(Span::millis(i64::try_from(number).unwrap()));
            waiting.put(call(number as u128), ActionId::from_bits(number as u128), at);
        }
        assert!(waiting.0.lock().unwrap().len() <= WAITING_MAX);
        assert!(waiting.take(&call(WAITING_MAX as u128), now).is_some());
    }
}
