//! When keys and tokens were last shown to this server: in memory alone, since a write for every request would
//! be a price that nobody wants to pay for a hint.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Parts, so that workers seldom wait for each other.
const SHARDS: usize = 16;
/// Credentials remembered in one part: together 65,536.
const SHARD_MAX: usize = 4_096;

/// When each credential was last shown, by the bits of its id.
#[derive(Debug)]
pub(crate) struct Seen<T>(Vec<Mutex<HashMap<u128, T>>>);

impl<T: Copy> Seen<T> {
    /// Nothing shown yet.
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Mutex::default()).collect())
    }

    /// Notes that a credential was shown.
    pub(crate) fn note(&self, credential: u128, now: T) {
        let Some(shard) = self.shard(credential) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= SHARD_MAX && !shard.contains_key(&credential) {
            shard.clear();
        }
        shard.insert(credential, now);
    }

    /// When a credential was last shown, as far as this server remembers.
    pub(crate) fn of(&self, credential: u128) -> Option<T> {
        self.shard(credential)?.lock().unwrap_or_else(PoisonError::into_inner).get(&credential).copied()
    }

    fn shard(&self, credential: u128) -> Option<&Mutex<HashMap<u128, T>>> {
        self.0.get(usize::try_from(credential % (SHARDS as u128)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was noted is known; a part that is full begins anew.
    #[test]
    fn a_part_that_is_full_begins_anew() {
        let seen = Seen::new();
        seen.note(5, 'a');
        seen.note(21, 'b');
        assert_eq!((seen.of(5), seen.of(21), seen.of(6)), (Some('a'), Some('b'), None));
        for number in 0..SHARD_MAX as u128 {
            seen.note(5 + SHARDS as u128 * (number + 2), 'c');
        }
        assert_eq!(seen.of(21), None);
    }
}
