//! Wrong sign-ins: ten a quarter of an hour for an account and address, a hundred for an account, and then no more for that
//! pair. Counted by what was typed, whether or not such an account exists.
//!
//! A try that is not over takes a place of those that may be wrong, so that guessing side by side gains nothing; whoever finds
//! none left waits a second, not a quarter of an hour, since what runs may well be right.
//!
//! What is no account's, such as what an identity provider answers, is tried [in line](WrongSignIns::begin_in_line): a stranger's wrong
//! tries slow down those behind one address, and end none of theirs.
//!
//! **Invariant:** nobody is locked out by others: a pair that was never wrong may always try.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::address::RateAddress;

/// How long a wrong sign-in counts.
const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Wrong sign-ins of one pair.
const PAIR_MAX: usize = 10;
/// Wrong sign-ins of one account, from anywhere.
const ACCOUNT_MAX: usize = 100;
/// Accounts and pairs that are remembered: beyond it those make place that have been wrong least, and of these the oldest.
const KEPT_MAX: usize = 50_000;
/// Seconds until a try that runs is over, more or less.
const MOMENT_S: u32 = 1;

/// The wrong sign-ins of the last quarter of an hour, and the tries that run.
#[derive(Debug, Default)]
pub struct WrongSignIns {
    hasher: RandomState,
    seen: Mutex<HashMap<u64, Tries>>,
}

/// What is known of a pair or an account.
#[derive(Debug, Default)]
struct Tries {
    /// When those began that were wrong.
    wrong: Vec<Instant>,
    /// How many are not over.
    running: usize,
}

impl Tries {
    fn taken(&self) -> usize {
        self.wrong.len().saturating_add(self.running)
    }
}

/// A try that runs. It is over when it is dropped, and was wrong unless it is [forgiven](Self::forgive).
#[derive(Debug)]
#[must_use]
pub struct Try<'a> {
    of: &'a WrongSignIns,
    pair: u64,
    account: u64,
    at: Instant,
    right: bool,
}

impl WrongSignIns {
    /// Begins a try.
    ///
    /// # Errors
    /// The seconds after which the pair may try again.
    pub fn begin(&self, account: &str, address: RateAddress, now: Instant) -> Result<Try<'_>, u32> {
        self.begin_as(account, address, now, room)
    }

    /// Begins a try of what is guessed at for nobody in particular, so that wrong ones may be of anybody behind the address: where a
    /// pair has had its own, one of its tries runs at a time, and none is locked out.
    ///
    /// # Errors
    /// The seconds after which the pair may try again: a moment.
    pub fn begin_in_line(&self, account: &str, address: RateAddress, now: Instant) -> Result<Try<'_>, u32> {
        self.begin_as(account, address, now, place_in_line)
    }

    fn begin_as(&self, account: &str, address: RateAddress, now: Instant, room: Room) -> Result<Try<'_>, u32> {
        let pair = self.hasher.hash_one((account, address.0));
        let account = self.hasher.hash_one(account);
        let mut seen = self.seen();
        for key in [pair, account] {
            let tries = seen.entry(key).or_default();
            tries.wrong.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        }
        room(seen.get(&pair), seen.get(&account), now)?;
        for key in [pair, account] {
            let tries = seen.entry(key).or_default();
            tries.running = tries.running.saturating_add(1);
        }
        if seen.len() > KEPT_MAX {
            let is_recent = |at: &Instant| now.saturating_duration_since(*at) < WINDOW;
            seen.retain(|_, it| it.running > 0 || it.wrong.last().is_some_and(is_recent));
            // Many at once, so that whoever fills the memory does not make every try look through it.
            let over = (seen.len() + KEPT_MAX / 4).saturating_sub(KEPT_MAX);
            let idle = seen.iter().filter(|(_, it)| it.running == 0);
            let mut idle: Vec<_> = idle.map(|(key, it)| (it.wrong.len(), it.wrong.last().copied(), *key)).collect();
            // Whoever makes up many names frees no pair that has had its own.
            idle.sort_unstable();
            for (.., victim) in idle.into_iter().take(over) {
                seen.remove(&victim);
            }
        }
        Ok(Try { of: self, pair, account, at: now, right: false })
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<u64, Tries>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a pair may try now, by what is known of it and of the account.
type Room = fn(Option<&Tries>, Option<&Tries>, Instant) -> Result<(), u32>;

/// That a pair may try now, or is the only one of its tries that runs.
fn place_in_line(pair: Option<&Tries>, account: Option<&Tries>, now: Instant) -> Result<(), u32> {
    match room(pair, account, now) {
        Err(_) if pair.is_none_or(|it| it.running == 0) => Ok(()),
        Err(_) => Err(MOMENT_S),
        Ok(()) => Ok(()),
    }
}

/// That a pair may try now.
fn room(pair: Option<&Tries>, account: Option<&Tries>, now: Instant) -> Result<(), u32> {
    let (Some(pair), Some(account)) = (pair, account) else { return Ok(()) };
    let is_full = |of_pair: usize, of_account: usize| of_pair >= PAIR_MAX || (of_pair > 0 && of_account >= ACCOUNT_MAX);
    if is_full(pair.wrong.len(), account.wrong.len()) {
        let first = pair.wrong.iter().min().copied().unwrap_or(now);
        let left = WINDOW.saturating_sub(now.saturating_duration_since(first));
        return Err(u32::try_from(left.as_secs().saturating_add(1)).unwrap_or(u32::MAX));
    }
    if is_full(pair.taken(), account.taken()) { Err(MOMENT_S) } else { Ok(()) }
}

impl Try<'_> {
    /// Ends a try that was not wrong.
    pub fn forgive(mut self) {
        self.right = true;
    }
}

impl Drop for Try<'_> {
    fn drop(&mut self) {
        let mut seen = self.of.seen();
        for key in [self.pair, self.account] {
            let tries = seen.entry(key).or_default();
            tries.running = tries.running.saturating_sub(1);
            if !self.right && tries.wrong.len() < ACCOUNT_MAX {
                tries.wrong.push(self.at);
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
            drop(wrong.begin("ann", here, start).unwrap());
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
            drop(wrong.begin("ann", RateAddress(address), now).unwrap());
        }
        assert!(wrong.begin("ann", RateAddress(0), now).is_err());
        wrong.begin("ann", RateAddress(1_000), now).unwrap().forgive();
        assert!(wrong.begin("ann", RateAddress(1_000), now).is_ok());
    }

    /// Tries side by side take the places of wrong ones while they run: whoever finds none waits a moment, and what turns out to be
    /// right leaves nothing behind. Guesses side by side are no more than one after the other.
    #[test]
    fn what_runs_takes_a_place_for_a_moment() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        let here = RateAddress(1);
        let running: Vec<Try<'_>> = (0..PAIR_MAX).map(|_| wrong.begin("ann", here, now).unwrap()).collect();
        assert_eq!(wrong.begin("ann", here, now).unwrap_err(), MOMENT_S);
        running.into_iter().for_each(Try::forgive);
        let guesses: Vec<Try<'_>> = (0..PAIR_MAX).map(|_| wrong.begin("ann", here, now).unwrap()).collect();
        drop(guesses);
        assert_eq!(wrong.begin("ann", here, now).unwrap_err(), 901);
    }

    /// Where nobody in particular is guessed at, wrong tries lock nobody out: they run one by one from then on, until those before
    /// are forgotten.
    #[test]
    fn whoever_stands_in_line_is_not_locked_out() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        let here = RateAddress(1);
        for _ in 0..3 * PAIR_MAX {
            drop(wrong.begin_in_line("sso", here, now).unwrap());
        }
        let first = wrong.begin_in_line("sso", here, now).unwrap();
        assert_eq!(wrong.begin_in_line("sso", here, now).unwrap_err(), MOMENT_S, "one by one");
        assert!(wrong.begin_in_line("sso", RateAddress(2), now).is_ok());
        drop(first);
        wrong.begin_in_line("sso", here, now).unwrap().forgive();
        let later = now + WINDOW;
        let running: Vec<Try<'_>> = (0..PAIR_MAX).map(|_| wrong.begin_in_line("sso", here, later).unwrap()).collect();
        assert_eq!(wrong.begin_in_line("sso", here, later).unwrap_err(), MOMENT_S);
        drop(running);
    }

    /// From an address that was never wrong there is one guess at a time at an account that has had its hundred.
    #[test]
    fn a_full_account_is_guessed_at_one_by_one() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        for address in 0..ACCOUNT_MAX as u128 {
            drop(wrong.begin("ann", RateAddress(address), now).unwrap());
        }
        let first = wrong.begin("ann", RateAddress(1_000), now).unwrap();
        assert_eq!(wrong.begin("ann", RateAddress(1_000), now).unwrap_err(), MOMENT_S);
        drop(first);
        assert_eq!(wrong.begin("ann", RateAddress(1_000), now).unwrap_err(), 901);
    }

    /// What was right does not count, and memory is bounded whatever is typed.
    #[test]
    fn right_ones_do_not_count() {
        let (wrong, now) = (WrongSignIns::default(), Instant::now());
        for _ in 0..50 {
            wrong.begin("ann", RateAddress(1), now).unwrap().forgive();
        }
        for _ in 0..PAIR_MAX {
            drop(wrong.begin("guessed at", RateAddress(1), now));
        }
        for typed in 0..60_000 {
            drop(wrong.begin(&format!("{typed}"), RateAddress(1), now));
        }
        assert!(wrong.seen.lock().unwrap().len() <= KEPT_MAX + 2);
        assert!(wrong.begin("guessed at", RateAddress(1), now).is_err(), "made-up names bring no new guesses");
    }
}
