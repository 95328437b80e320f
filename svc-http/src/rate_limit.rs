//! Who has asked how often: a bucket for each caller, in this process's memory.
//!
//! **Invariant:** callers share no bucket, so no 429 tells of somebody else's load; and memory is bounded whatever
//! addresses send.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use svc_core::rate::{Bucket, Standing};

use crate::config::Limits;
use crate::routes::Limit;

/// Requests a minute of each rate class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// `limits.gatePerMinute`.
    pub gate: u32,
    /// `limits.verifyPerMinute`.
    pub verify: u32,
    /// `limits.gatewayPerMinute`.
    pub key: u32,
    /// `limits.tokenPerMinute`.
    pub token: u32,
    /// `limits.signInPerMinute`.
    pub sign_in: u32,
    /// `limits.oauthPerMinute`.
    pub oauth: u32,
}

impl Rates {
    /// What the configuration says.
    #[must_use]
    pub const fn of(limits: &Limits) -> Self {
        Self {
            gate: limits.gate_per_minute,
            verify: limits.verify_per_minute,
            key: limits.gateway_per_minute,
            token: limits.token_per_minute,
            sign_in: limits.sign_in_per_minute,
            oauth: limits.oauth_per_minute,
        }
    }
}

/// What one client may of what an address may: several clients share one.
const fn per_client(per_address: u32) -> u32 {
    let part = per_address / 5;
    if part == 0 { 1 } else { part }
}

impl Default for Rates {
    fn default() -> Self {
        Self::of(&Limits::default())
    }
}

/// What a bucket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A caller that a credential named, by the bits of its id.
    Caller(u128),
    /// An address, as `address::RateAddress` counts it.
    Address(u128),
}

/// Every bucket, in shards so that workers seldom wait for each other.
#[derive(Debug)]
pub struct RateLimiter {
    rates: Rates,
    started: Instant,
    hasher: RandomState,
    shards: Vec<Mutex<HashMap<(Limit, Subject), Bucket>>>,
}

const SHARDS: usize = 16;
/// Buckets kept in one shard: together 65,536, about 6 MiB.
const SHARD_MAX: usize = 4_096;
/// Buckets looked at when one must go.
const EVICT_SAMPLE: usize = 8;

impl RateLimiter {
    /// No bucket yet.
    #[must_use]
    pub fn new(rates: Rates) -> Self {
        Self {
            rates,
            started: Instant::now(),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Counts one request that came `now`, or refuses it. `None` where the class has no limit.
    #[must_use]
    pub fn take(&self, limit: Limit, subject: Subject, now: Instant) -> Option<Standing> {
        self.take_at(limit, subject, self.ms(now))
    }

    /// Where a bucket stands `now`, with nothing counted. `None` where the class has no limit.
    #[must_use]
    pub fn look(&self, limit: Limit, subject: Subject, now: Instant) -> Option<Standing> {
        let (per_minute, now_ms) = (self.per_minute(limit)?, self.ms(now));
        let shard = self.shard(&(limit, subject))?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(shard.get(&(limit, subject)).copied().unwrap_or_else(|| Bucket::full(now_ms)).look(per_minute, now_ms))
    }

    fn take_at(&self, limit: Limit, subject: Subject, now_ms: i64) -> Option<Standing> {
        let per_minute = self.per_minute(limit)?;
        let key = (limit, subject);
        let mut shard = self.shard(&key)?.lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= SHARD_MAX && !shard.contains_key(&key) {
            let fullest = shard
                .iter()
                .take(EVICT_SAMPLE)
                .min_by_key(|((limit, _), it)| self.per_minute(*limit).map_or(0, |rate| it.look(rate, now_ms).reset_s));
            if let Some(victim) = fullest.map(|(key, _)| *key) {
                shard.remove(&victim);
            }
        }
        Some(shard.entry(key).or_insert_with(|| Bucket::full(now_ms)).take(per_minute, now_ms))
    }

    const fn per_minute(&self, limit: Limit) -> Option<u32> {
        match limit {
            Limit::Unlimited => None,
            Limit::Gate => Some(self.rates.gate),
            Limit::Verify => Some(self.rates.verify),
            Limit::Key | Limit::Session => Some(self.rates.key),
            Limit::Token => Some(self.rates.token),
            Limit::SignIn => Some(self.rates.sign_in),
            Limit::OAuth => Some(self.rates.oauth),
            Limit::OAuthClient => Some(per_client(self.rates.oauth)),
        }
    }

    fn shard(&self, key: &(Limit, Subject)) -> Option<&Mutex<HashMap<(Limit, Subject), Bucket>>> {
        let place = usize::try_from(self.hasher.hash_one(key) % (SHARDS as u64)).unwrap_or(0);
        self.shards.get(place)
    }

    /// Milliseconds since the start, by a clock that never steps back.
    fn ms(&self, now: Instant) -> i64 {
        i64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { gate: 2, verify: 1, key: 1, token: 1, sign_in: 1, oauth: 1 };

    /// Callers and classes have buckets of their own.
    #[test]
    fn buckets_are_not_shared() {
        let limiter = RateLimiter::new(RATES);
        let take = |limit, subject| limiter.take_at(limit, subject, 0).map(|it| (it.remaining, it.retry_after_s));
        assert_eq!(take(Limit::Gate, Subject::Caller(1)), Some((1, None)));
        assert_eq!(take(Limit::Gate, Subject::Caller(1)), Some((0, None)));
        assert_eq!(take(Limit::Gate, Subject::Caller(1)), Some((0, Some(30))));
        assert_eq!(take(Limit::Gate, Subject::Caller(2)), Some((1, None)));
        assert_eq!(take(Limit::Gate, Subject::Address(1)), Some((1, None)));
        assert_eq!(take(Limit::Verify, Subject::Address(1)), Some((0, None)));
        assert_eq!(take(Limit::Unlimited, Subject::Address(1)), None);
    }

    /// Looking counts nothing.
    #[test]
    fn looking_counts_nothing() {
        let limiter = RateLimiter::new(RATES);
        for _ in 0..5 {
            assert_eq!(limiter.look(Limit::Gate, Subject::Caller(1), Instant::now()).map(|it| it.remaining), Some(2));
        }
        assert_eq!(limiter.look(Limit::Unlimited, Subject::Caller(1), Instant::now()), None);
    }

    /// However many addresses come, memory stays bounded.
    #[test]
    fn memory_is_bounded() {
        let limiter = RateLimiter::new(RATES);
        for address in 0..200_000 {
            let _ = limiter.take_at(Limit::Verify, Subject::Address(address), 0);
        }
        let kept: usize = limiter.shards.iter().map(|it| it.lock().map_or(0, |it| it.len())).sum();
        assert!(kept <= SHARDS * SHARD_MAX, "{kept}");
    }
}
