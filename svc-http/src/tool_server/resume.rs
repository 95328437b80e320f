//! Going on with a stream that ended before the answer was in it: servers close streams at will once they have named a place in
//! them, and are asked again for what comes behind it (MCP 2025-11-25, Streamable HTTP, "Resumability and Redelivery").
//!
//! **Invariant:** a stream is asked for by what it named; what was asked in it is not asked again.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use svc_core::dialect::sse;
use tokio::time::{Instant, sleep_until};

use super::known::Known;
use super::message::{Era, Sent, headers};
use crate::upstream::{Posted, Reason, Times, Type, Upstreams};

/// How long to wait before a stream is asked for again, where it does not say.
const WAIT: Duration = Duration::from_secs(1);
/// The shortest wait, whatever it says.
const WAIT_MIN: Duration = Duration::from_millis(100);
/// What the wait grows to while nothing comes, where it is shorter.
const WAIT_GROWN: Duration = Duration::from_secs(30);
/// How often in a row a stream is asked for without an event of it.
const TRIES_MAX: u32 = 8;
/// Bytes of the longest name of a place that is kept.
const PLACE_BYTES_MAX: usize = 1_024;

/// A stream that is asked for again.
pub(super) type Resuming = Pin<Box<dyn Future<Output = Option<Posted>> + Send>>;

/// By what a stream can be asked for again.
pub(super) struct Resume {
    upstreams: Upstreams,
    era: Era,
    times: Times,
    until: Instant,
    /// The place up to which it was heard.
    place: Option<Box<str>>,
    wait: Duration,
    /// How often it was asked for since its last event.
    tries: u32,
}

impl Resume {
    /// Of a call in this era that began now and may take so long.
    pub(super) fn new(upstreams: Upstreams, era: Era, times: Times) -> Self {
        let until = Instant::now() + times.total;
        Self { upstreams, era, times, until, place: None, wait: WAIT, tries: 0 }
    }

    /// Notes what an event says of its stream.
    pub(super) fn note(&mut self, event: &sse::Event<'_>) {
        self.tries = 0;
        let text = |name| event.field(name).and_then(|it| std::str::from_utf8(it).ok());
        if let Some(place) = text("id") {
            let sendable = place.len() <= PLACE_BYTES_MAX && place.bytes().all(|it| (0x20..0x7f).contains(&it));
            self.place = (sendable && !place.is_empty()).then(|| place.into());
        }
        // As event streams have it: digits alone are a time.
        let digits = |it: &&str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        if let Some(retry) = text("retry").filter(digits) {
            self.wait = Duration::from_millis(retry.parse().unwrap_or(u64::MAX)).max(WAIT_MIN);
        }
    }

    /// Asks for the stream again, after the wait that it asked for; nothing where it named no place to go on from, or the era has
    /// no such thing. What comes of that is nothing where it is not there any more, or time is up.
    pub(super) fn ask(&mut self, known: &Arc<Known>) -> Option<Resuming> {
        let place = self.place.clone()?;
        if self.era == Era::Modern {
            return None;
        }
        let (known, upstreams, era) = (Arc::clone(known), self.upstreams.clone(), self.era.clone());
        let (times, until, wait, before) = (self.times, self.until, self.wait, self.tries);
        self.tries = self.tries.saturating_add(1);
        Some(Box::pin(async move {
            let sent = Sent::new("", "");
            let mut headers = headers(&era, &sent, None);
            headers.push(("last-event-id", &place));
            for tries in before..TRIES_MAX {
                let wait = wait.max(wait.saturating_mul(1 << tries).min(WAIT_GROWN));
                let due = Instant::now().checked_add(wait).filter(|it| *it < until)?;
                sleep_until(due).await;
                let total = until.saturating_duration_since(Instant::now());
                let times = Times { total, ..times };
                match upstreams.get_events(known.endpoint(), &headers, times).await {
                    Ok(posted) if posted.status == 200 && posted.kind == Type::Events => return Some(posted),
                    Ok(posted) if matches!(posted.status, 429 | 500..) => {}
                    Ok(_) => break,
                    // Who starts anew is not there for a moment.
                    Err(failed) if matches!(failed.reason, Reason::Closed | Reason::Connect | Reason::Busy) => {}
                    Err(_) => break,
                }
            }
            None
        }))
    }
}
