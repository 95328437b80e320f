//! What a connection does, and whether that is enough for it to be kept.
//!
//! Its socket and its requests tell its [`Pulse`]; its [`Watch`] looks at that now and then, which costs a request nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::dispatch::EndsWithClient;

/// What a connection has been doing, told by its socket and its requests and read by its [`Watch`].
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Requests whose head was whole.
    pub(crate) begun: AtomicU64,
    /// Requests that were answered or given up.
    pub(crate) ended: AtomicU64,
    /// Whether a head is under way on HTTP/1: bytes came since the last request ended.
    pub(crate) heard: AtomicBool,
    /// Whether it speaks HTTP/2, where bytes come without requests too.
    pub(crate) h2: AtomicBool,
    /// Streams whose next piece is for the client to take.
    pub(crate) full: AtomicU64,
    /// Pieces that streams have given.
    pub(crate) given: AtomicU64,
    /// Bodies of answers of which something is left to be given.
    pub(crate) bodies: AtomicU64,
    /// Whether something is left to be written that its client does not take.
    pub(crate) stuck: AtomicBool,
    /// Bytes of answers that were written.
    pub(crate) written: AtomicU64,
    /// Whether what is worked on ends with the client; of HTTP/1, which has one request at a time.
    pub(crate) ends: EndsWithClient,
}

impl Pulse {
    /// Bytes came. Those that come while a request is worked on are its body's; what a client has sent of its next head by then
    /// counts once more of it comes. An empty line before a head is none of it (RFC 9112, 2.2).
    pub(crate) fn hear(&self, bytes: &[u8]) {
        let is_at_work = self.begun.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed);
        if !is_at_work && bytes.iter().any(|it| !matches!(it, b'\r' | b'\n')) {
            self.heard.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it waits for its client: nothing is worked on, and nothing is left of any answer.
    pub(crate) fn waits(&self) -> bool {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        count(&self.begun) == count(&self.ended) && count(&self.bodies) == 0 && !self.stuck.load(Ordering::Relaxed)
    }
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    /// It has been idle: end it politely, or at once where that was tried.
    Wind,
    /// It makes no progress: end it.
    Close,
}

/// What a look finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    begun: u64,
    ended: u64,
    in_head: bool,
    full: u64,
    given: u64,
    /// What the client has taken of its answers, in steps.
    taken: u64,
}

impl Seen {
    fn of(pulse: &Pulse) -> Self {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let (begun, ended) = (count(&pulse.begun), count(&pulse.ended));
        let in_head = begun == 0 || (pulse.heard.load(Ordering::Relaxed) && !pulse.h2.load(Ordering::Relaxed));
        let (full, given, taken) = (count(&pulse.full), count(&pulse.given), count(&pulse.written) / TAKEN_BYTES);
        Self { begun, ended, in_head, full, given, taken }
    }
}

/// Notices that a connection makes no progress, by looking now and then.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) header_time: Duration,
    pub(crate) idle_time: Duration,
    /// What was seen last, and when it was seen first.
    seen: Option<(Seen, Instant)>,
}

impl Watch {
    pub(crate) const fn new(header_time: Duration, idle_time: Duration) -> Self {
        Self { header_time, idle_time, seen: None }
    }

    /// Since when it has waited for its client, where it did at the last look and nothing has happened since.
    pub(crate) fn waits_since(&self, pulse: &Pulse) -> Option<Instant> {
        let (seen, since) = self.seen?;
        (pulse.waits() && seen == Seen::of(pulse)).then_some(since)
    }

    pub(crate) fn look(&mut self, pulse: &Pulse, now: Instant) -> Verdict {
        let found = Seen::of(pulse);
        let Seen { begun, ended, in_head, .. } = found;
        let since = match self.seen {
            Some((was, since)) if was == found => since,
            _ => {
                self.seen = Some((found, now));
                return Verdict::Keep;
            }
        };
        let waited = now.saturating_duration_since(since);
        if begun > ended {
            // Only the client keeps streams waiting that have given what they had.
            let stuck = found.full > 0 && begun.saturating_sub(ended) == found.full;
            return if stuck && waited >= self.idle_time { Verdict::Close } else { Verdict::Keep };
        }
        match in_head {
            true if waited >= self.header_time => Verdict::Close,
            false if waited >= self.idle_time => Verdict::Wind,
            true | false => Verdict::Keep,
        }
    }
}

/// How much of its answers a client takes at least for that to be progress.
const TAKEN_BYTES: u64 = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(75);

    /// After so many seconds in which this happens each second, what becomes of a connection that has had one request.
    fn ends(seconds: u64, mut each: impl FnMut(&Pulse, u64)) -> Option<(u64, Verdict)> {
        let (pulse, mut watch, from) = (Pulse::default(), Watch::new(HEADER, IDLE), Instant::now());
        pulse.hear(b"GET / HTTP/1.1\r\n\r\n");
        pulse.begun.store(1, Ordering::Relaxed);
        pulse.heard.store(false, Ordering::Relaxed);
        (0..=seconds).find_map(|second| {
            each(&pulse, second);
            let verdict = watch.look(&pulse, from + Duration::from_secs(second));
            (verdict != Verdict::Keep).then_some((second, verdict))
        })
    }

    fn answered(pulse: &Pulse) {
        pulse.ended.store(1, Ordering::Relaxed);
    }

    /// Bytes of a body are of no head, those after the answer are, and an empty line is of nothing.
    #[test]
    fn only_a_head_has_the_time_of_a_head() {
        let body = |pulse: &Pulse, second| if second < 5 { pulse.hear(b"{") } else { answered(pulse) };
        assert_eq!(ends(200, body), Some((80, Verdict::Wind)));
        let line = |pulse: &Pulse, _| {
            answered(pulse);
            pulse.hear(b"\r\n");
        };
        assert_eq!(ends(200, line), Some((75, Verdict::Wind)));
        let head = |pulse: &Pulse, second| {
            answered(pulse);
            pulse.hear(if second < 20 { b"" } else { b"G" });
        };
        assert_eq!(ends(200, head), Some((30, Verdict::Close)));
    }

    /// A client that takes its answer is let, however slowly, but not for a few bytes; one that stops is not.
    #[test]
    fn taking_is_progress() {
        let takes = |bytes: u64, until: u64| {
            move |pulse: &Pulse, second| {
                answered(pulse);
                if second < until {
                    pulse.written.fetch_add(bytes, Ordering::Relaxed);
                }
            }
        };
        assert_eq!(ends(10_000, takes(60, u64::MAX)), None);
        assert_eq!(ends(10_000, takes(1, u64::MAX)), Some((75, Verdict::Wind)));
        assert_eq!(ends(10_000, takes(4_096, 1_000)), Some((1_074, Verdict::Wind)));
        let stream = |pulse: &Pulse, second| {
            pulse.full.store(1, Ordering::Relaxed);
            takes(60, 5_000)(pulse, second);
            pulse.ended.store(0, Ordering::Relaxed);
        };
        let (at, verdict) = ends(10_000, stream).unwrap_or((0, Verdict::Keep));
        assert!(verdict == Verdict::Close && (5_000..5_076).contains(&at), "{at} {verdict:?}");
    }
}
