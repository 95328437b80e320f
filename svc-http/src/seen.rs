//! When keys and tokens were last shown to this server: in memory alone, since a write for every request would
//! be a price that nobody wants to pay for a hint.

use std::sync::{Mutex, PoisonError};

use crate::bounded::Bounded;

/// Parts, so that workers seldom wait for each other.
const SHARDS: usize = 16;
/// Credentials remembered in one part: together 65,536.
const SHARD_MAX: usize = 4_096;

/// When each credential was last shown, by the bits of its id.
#[derive(Debug)]
pub(crate) struct Seen<T>(Vec<Mutex<Bounded<(), u128, T>>>);

impl<T: Copy> Seen<T> {
    /// Nothing shown yet.
    pub(crate) fn new() -> Self {
        Self((0..SHARDS).map(|_| Mutex::new(Bounded::new(SHARD_MAX, SHARD_MAX))).collect())
    }

    /// Notes that a credential was shown.
    pub(crate) fn note(&self, credential: u128, now: T) {
        let Some(shard) = self.shard(credential) else { return };
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        shard.keep((), credential, now);
    }

    /// When a credential was last shown, as far as this server remembers.
    pub(crate) fn of(&self, credential: u128) -> Option<T> {
        self.shard(credential)?.lock().unwrap_or_else(PoisonError::into_inner).peek(&credential).copied()
    }

    fn shard(&self, credential: u128) -> Option<&Mutex<Bounded<(), u128, T>>> {
        self.0.get(usize::try_from(credential % (SHARDS as u128)).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was noted is known; a part that is full lets go of what was not noted for longest, and of nothing else.
    #[test]
    fn a_part_that_is_full_lets_go_of_one() {
        let seen = Seen::new();
        seen.note(5, 'a');
        seen.note(21, 'b');
        assert_eq!((seen.of(5), seen.of(21), seen.of(6)), (Some('a'), Some('b'), None));
        for number in 2..SHARD_MAX as u128 {
            seen.note(5 + SHARDS as u128 * number, 'c');
        }
        seen.note(5, 'd');
        assert_eq!(seen.of(21), Some('b'));
        seen.note(5 + SHARDS as u128 * SHARD_MAX as u128, 'c');
        assert_eq!((seen.of(5), seen.of(21), seen.of(37)), (Some('d'), None, Some('c')));
    }
}
