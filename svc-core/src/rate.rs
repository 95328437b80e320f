//! Token buckets: how many requests a caller may still make this minute.
//!
//! Pure arithmetic over an instant that the caller passes in. The map of buckets, its bound and its lock are the shell's.
//!
//! **Invariant:** whole numbers only, and no instant makes a bucket fuller than its limit: a clock that steps back
//! refills nothing, one that leaps forward refills it once.

/// Milliseconds over which an empty bucket fills.
const WINDOW_MS: i64 = 60_000;

/// One caller's bucket of `limit` requests a minute, refilled evenly.
///
/// The level is counted in *parts*, of which a request takes 60,000 and every millisecond gives back `limit`: no
/// remainder is ever lost to rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Parts that are missing from a full bucket.
    missing: i64,
    /// The instant of the last look, milliseconds.
    at_ms: i64,
}

/// Where a bucket stands after a request was counted or refused: the three `ratelimit-*` headers and the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Requests a minute.
    pub limit: u32,
    /// Whole requests that may follow at once.
    pub remaining: u32,
    /// Seconds, rounded up, until the bucket is full again.
    pub reset_s: u32,
    /// `None` where the request may go on; else seconds, rounded up and at least 1, until the next one may.
    pub retry_after_s: Option<u32>,
}

impl Bucket {
    /// A full bucket, first looked at `now_ms`.
    #[must_use]
    pub const fn full(now_ms: i64) -> Self {
        Self { missing: 0, at_ms: now_ms }
    }

    /// Counts one request at `now_ms` against `limit` a minute, or refuses it; a refused one costs nothing.
    /// A `limit` of 0 refuses everything.
    pub fn take(&mut self, limit: u32, now_ms: i64) -> Standing {
        self.refill(limit, now_ms);
        let size = i64::from(limit).saturating_mul(WINDOW_MS);
        if self.missing.saturating_add(WINDOW_MS) > size {
            let lacking = self.missing.saturating_add(WINDOW_MS).saturating_sub(size);
            let wait = seconds(lacking, limit).max(1);
            return self.standing(limit, Some(wait));
        }
        self.missing = self.missing.saturating_add(WINDOW_MS);
        self.standing(limit, None)
    }

    /// Where the bucket stands at `now_ms`, with nothing counted.
    #[must_use]
    pub fn look(&self, limit: u32, now_ms: i64) -> Standing {
        let mut copy = *self;
        copy.refill(limit, now_ms);
        copy.standing(limit, None)
    }

    /// Whether the bucket is full at `now_ms`: it may be forgotten then.
    #[must_use]
    pub fn is_full(&self, limit: u32, now_ms: i64) -> bool {
        let mut copy = *self;
        copy.refill(limit, now_ms);
        copy.missing == 0
    }

    fn refill(&mut self, limit: u32, now_ms: i64) {
        let elapsed = now_ms.saturating_sub(self.at_ms).max(0);
        self.missing = self.missing.saturating_sub(elapsed.saturating_mul(i64::from(limit))).max(0);
        self.at_ms = self.at_ms.max(now_ms);
    }

    fn standing(&self, limit: u32, retry_after_s: Option<u32>) -> Standing {
        let size = i64::from(limit).saturating_mul(WINDOW_MS);
        let left = size.saturating_sub(self.missing).max(0) / WINDOW_MS;
        Standing {
            limit,
            remaining: u32::try_from(left).unwrap_or(u32::MAX),
            reset_s: seconds(self.missing, limit),
            retry_after_s,
        }
    }
}

/// Seconds, rounded up, in which `parts` come back at `limit` parts a millisecond; a minute where nothing ever does.
fn seconds(parts: i64, limit: u32) -> u32 {
    let per_second = i64::from(limit).saturating_mul(1_000);
    if per_second == 0 {
        return 60;
    }
    let whole = parts / per_second;
    let up = if parts % per_second > 0 { 1 } else { 0 };
    u32::try_from(whole.saturating_add(up)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full bucket admits its limit at once, then refuses with the time until the next.
    #[test]
    fn a_bucket_admits_its_limit_and_then_says_when() {
        let mut bucket = Bucket::full(0);
        for n in 1..=600 {
            let standing = bucket.take(600, 0);
            assert_eq!((standing.remaining, standing.retry_after_s), (600 - n, None));
        }
        let refused = bucket.take(600, 0);
        assert_eq!(refused, Standing { limit: 600, remaining: 0, reset_s: 60, retry_after_s: Some(1) });
        // One of 600 a minute comes back every 100 ms, and not before.
        assert!(bucket.take(600, 99).retry_after_s.is_some());
        assert_eq!(bucket.take(600, 100).retry_after_s, None);
        assert!(bucket.take(600, 199).retry_after_s.is_some());
    }

    /// `reset` is the time until full, rounded up, and falls as time passes.
    #[test]
    fn reset_is_the_time_until_full() {
        let mut bucket = Bucket::full(0);
        assert_eq!(bucket.take(60, 0).reset_s, 1);
        assert_eq!(bucket.take(60, 0).reset_s, 2);
        assert_eq!(bucket.look(60, 500).reset_s, 2);
        assert_eq!(bucket.look(60, 1_000).reset_s, 1);
        assert_eq!(bucket.look(60, 2_000), Standing { limit: 60, remaining: 60, reset_s: 0, retry_after_s: None });
        assert!(!bucket.is_full(60, 1_999) && bucket.is_full(60, 2_000));
    }

    /// A slow limit waits as long as one request takes to come back.
    #[test]
    fn one_a_minute_waits_a_minute() {
        let mut bucket = Bucket::full(1_000);
        assert_eq!(bucket.take(1, 1_000).retry_after_s, None);
        assert_eq!(bucket.take(1, 1_000).retry_after_s, Some(60));
        assert_eq!(bucket.take(1, 31_500).retry_after_s, Some(30));
        assert_eq!(bucket.take(1, 61_000).retry_after_s, None);
    }

    /// A clock that steps back gives nothing, and what it costs is not kept.
    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let mut bucket = Bucket::full(100_000);
        assert_eq!(bucket.take(2, 100_000).remaining, 1);
        assert_eq!(bucket.take(2, 0).remaining, 0);
        assert!(bucket.take(2, 50_000).retry_after_s.is_some());
        assert_eq!(bucket.take(2, 130_000).retry_after_s, None);
    }

    /// Extremes neither overflow nor admit more than the limit.
    #[test]
    fn extremes_are_bounded() {
        let mut bucket = Bucket::full(i64::MIN);
        assert_eq!(bucket.take(u32::MAX, i64::MAX).remaining, u32::MAX - 1);
        let mut closed = Bucket::full(0);
        assert_eq!(closed.take(0, i64::MAX).retry_after_s, Some(60));
        let mut one = Bucket::full(i64::MAX);
        assert_eq!(one.take(1, i64::MAX).retry_after_s, None);
        assert!(one.take(1, i64::MAX).retry_after_s.is_some());
    }
}
