//! Wrong sign-ins: ten a quarter of an hour for an account and address, a hundred for an account, and then no more for that
//! pair. Counted by what was typed, whether or not such an account exists.
//!
//! **Invariant:** nobody is locked out by others: a pair that was never wrong may always try.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::address::RateAddress;

/// How long a wrong sign-in counts.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Wrong sign-ins of one pair.
const PAIR_MAX: usize = 10;
/// Wrong sign-ins of one account, from anywhere.
const ACCOUNT_MAX: usize = 100;
/// Accounts and pairs that are remembered: beyond it the oldest make place.
const KEPT_MAX: usize = 50_000;

/// The wrong sign-ins of the last quarter of an hour.
#[derive(Debug, Default)]
pub struct WrongSignIns {
    hasher: RandomState,
    seen: Mutex<HashMap<u64, Vec<Instant>>>,
}

/// A try that counts as wrong until it is forgiven.
#[derive(Debug)]
pub struct Try {
    pair: u64,
    account: u64,
    at: Instant,
}

impl WrongSignIns {
    /// Counts a try, as a wrong one until it is [forgiven](Self::forgive).
    ///
    /// # Errors
    /// The seconds after which the pair may try again.
    pub fn begin(&self, account: &str, address: RateAddress, now: Instant) -> Result<Try, u32> {
        let pair = self.hasher.hash_one((account, address.0));
        let account = self.hasher.hash_one(account);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for key in [pair, account] {
            let times = seen.entry(key).or_default();
            times.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        }
        let count = |key: &u64| seen.get(key).map_or(0, Vec::len);
        let (of_pair, of_account) = (count(&pair), count(&account));
        if of_pair >= PAIR_MAX || (of_pair > 0 && of_account >= ACCOUNT_MAX) {
            let first = seen.get(&pair).and_then(|it| it.first()).copied().unwrap_or(now);
            let left = WINDOW.saturating_sub(now.saturating_duration_since(first));
            return Err(u32::try_from(left.as_secs().saturating_add(1)).unwrap_or(u32::MAX));
        }
        for key in [pair, account] {
            let times = seen.entry(key).or_default();
            if times.len() < ACCOUNT_MAX {
                times.push(now);
            }
        }
        if seen.len() > KEPT_MAX {
            seen.retain(|_, times| times.last().is_some_and(|at| now.saturating_duration_since(*at) < WINDOW));
            // Many at once, so that whoever fills the memory does not make every try look through it.
            let own = |it: &u64| *it == pair || *it == account;
            let over = (seen.len() + KEPT_MAX / 4).saturating_sub(KEPT_MAX);
            let victims: Vec<u64> = seen.keys().copied().filter(|it| !own(it)).take(over).collect();
            for victim in victims {
                seen.remove(&victim);
            }
        }
        Ok(Try { pair, account, at: now })
    }

    /// Takes a try back that was not wrong.
    pub fn forgive(&self, right: &Try) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for key in [right.pair, right.account] {
            if let Some(times) = seen.get_mut(&key)
                && let Some(place) = times.iter().position(|at| *at == right.at)
            {
                times.remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Ten wrong ones end a pair's tries for a quarter of an hour, and nobody else's.
    #[test]
    fn a_pair_has_ten() {
        let (wrong, start) = (WrongSignIns::default(), Instant::now());
        let here = RateAddress(1);
        for _ in 0..PAIR_MAX {
            wrong.begin("ann", here, start).unwrap();
        }
        assert_eq!(wrong.begin("ann", here, start).unwrap_err(), 901);
        assert!(wrong.begin("ann", RateAddress(2), start).is_ok());
        assert!(wrong.begin("ben", here, start).is_ok());
        assert!(wrong.begin("ann", here, start + WINDOW).is_ok());
    }

    /// A hundred wrong ones of an account end the tries of pairs that were wrong; who was not may still try.
    #[test]
    fn an_account_has_a_hundred() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        for address in 0..ACCOUNT_MAX as u128 {
            wrong.begin("ann", RateAddress(address), now).unwrap();
        }
        assert!(wrong.begin("ann", RateAddress(0), now).is_err());
        let right = wrong.begin("ann", RateAddress(1_000), now).unwrap();
        wrong.forgive(&right);
        assert!(wrong.begin("ann", RateAddress(1_000), now).is_ok());
    }

    /// What was right does not count, and memory is bounded whatever is typed.
    #[test]
    fn right_ones_do_not_count() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        for _ in 0..50 {
            let right = wrong.begin("ann", RateAddress(1), now).unwrap();
            wrong.forgive(&right);
        }
        for typed in 0..60_000 {
            let _ = wrong.begin(&format!("{typed}"), RateAddress(1), now);
        }
        assert!(wrong.seen.lock().unwrap().len() <= KEPT_MAX + 2);
    }
}
