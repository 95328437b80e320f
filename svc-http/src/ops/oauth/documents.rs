//! Clients whose id is the address of their metadata: read through the outbound guard, kept as long as they say.
//!
//! **Invariant:** a document names its own address as its id, or it is none.

use std::net::IpAddr;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use svc_core::refusal::Refusal;
use svc_core::state::edge::outbound::OutboundUrl;

use crate::address::RateAddress;
use crate::bounded::Bounded;
use crate::outbound::{Asker, Caller};
use crate::shares::Shares;
use crate::wire::oauth::{Known, metadata, no_client};

/// Bytes of a document.
const DOCUMENT_MAX: usize = 16 * 1024;
/// Documents that are kept, counted for the addresses that they were read for.
const KEPT_MAX: usize = 1_024;
/// How long one is kept whose sender says nothing, and the most that a sender can say.
const KEPT: Duration = Duration::from_secs(300);
const KEPT_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// Documents that are read at once, and those of them that one address asks for: whoever names servers that never answer
/// keeps nobody else waiting.
const READS_MAX: usize = 64;
const READS_OF_ONE: usize = 4;

/// What is known of clients by their documents.
#[derive(Debug)]
pub(crate) struct Documents {
    caller: OnceLock<Caller>,
    kept: Mutex<Bounded<RateAddress, String, (Instant, Known)>>,
    reads: Shares<RateAddress>,
}

impl Default for Documents {
    fn default() -> Self {
        let kept = Mutex::new(Bounded::new(KEPT_MAX, KEPT_MAX));
        Self { caller: OnceLock::new(), kept, reads: Shares::new(READS_MAX, READS_OF_ONE) }
    }
}

impl Documents {
    /// Reads with this caller from now on; before, no document is read.
    pub(crate) fn read_with(&self, caller: Caller) {
        drop(self.caller.set(caller));
    }

    /// The client with this URL as its id, for somebody at `address`, whose reads of documents `count` counts: what is kept is no read.
    ///
    /// # Errors
    /// `invalid_client` where the address may not be called or answers no such document; those of `count`.
    pub(super) async fn client(
        &self,
        id: &str,
        named: &[Box<str>],
        address: IpAddr,
        count: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<Known, Refusal> {
        if let Some(known) = self.known(id) {
            return Ok(known);
        }
        let caller = self.caller.get().ok_or_else(Refusal::not_ready)?;
        let url = OutboundUrl::parse(id, caller.guard()).map_err(|_| no_client("its address may not be called"))?;
        if url.as_str() != id || id.splitn(4, '/').nth(3).is_none_or(str::is_empty) {
            return Err(no_client("its id is no plain https address with a path"));
        }
        count()?;
        let _read = self.reads.take(address.into()).ok_or_else(Refusal::not_ready)?;
        let fetched = caller
            .fetch(Asker::Stranger(address), &url, DOCUMENT_MAX)
            .await
            .map_err(|_| no_client("its metadata could not be read"))?;
        if fetched.status != 200 {
            return Err(no_client("its metadata could not be read"));
        }
        let known = metadata(id, &fetched.body, named)?;
        let kept = life(&fetched.cache, fetched.expires_s, fetched.age_s);
        if !kept.is_zero() {
            let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            all.keep(address.into(), id.to_owned(), (Instant::now() + kept, known.clone()));
        }
        Ok(known)
    }

    fn known(&self, id: &str) -> Option<Known> {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).filter(|(until, _)| Instant::now() < *until).map(|(_, known)| known.clone())
    }
}

/// How long a document is kept that its sender gave out `age_s` ago. Of two words on how long that may be, the shorter one holds;
/// `expires_s` speaks where none of them does (RFC 9111 part 5.3).
fn life(cache: &str, expires_s: Option<u64>, age_s: u64) -> Duration {
    let mut life = None;
    for part in cache.split(',').map(|it| it.trim().to_ascii_lowercase()) {
        if part == "no-store" || part == "no-cache" {
            return Duration::ZERO;
        }
        if let Some(seconds) = part.strip_prefix("max-age=").and_then(|it| it.trim_matches('"').parse().ok()) {
            let said = Duration::from_secs(seconds);
            life = Some(life.map_or(said, |it: Duration| it.min(said)));
        }
    }
    let life = life.or_else(|| expires_s.map(Duration::from_secs)).unwrap_or(KEPT);
    life.saturating_sub(Duration::from_secs(age_s)).min(KEPT_LONGEST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A document is kept as long as its sender says in all its lines, less what caches on the way kept it for, within bounds.
    #[test]
    fn documents_are_kept_as_they_say() {
        for (cache, age_s, seconds) in [
            ("", 0, 300),
            ("max-age=60", 0, 60),
            ("max-age=\"60\"", 0, 60),
            ("public, Max-Age=999999999", 0, 86_400),
            ("no-store", 0, 0),
            ("private, no-cache", 0, 0),
            ("max-age=x", 0, 300),
            ("max-age=600,no-store", 0, 0),
            ("max-age=600,max-age=60", 0, 60),
            ("max-age=60,max-age=600", 0, 60),
            ("max-age=600", 540, 60),
            ("max-age=600", 600, 0),
            ("max-age=600", u64::MAX, 0),
            ("", 100, 200),
        ] {
            assert_eq!(life(cache, None, age_s).as_secs(), seconds, "{cache:?} {age_s}");
        }
    }

    /// The time that a document expires at counts where `cache-control` names none, within the same bounds.
    #[test]
    fn documents_expire_where_nothing_else_is_said() {
        for (cache, expires_s, age_s, seconds) in [
            ("", 60, 0, 60),
            ("public", 0, 0, 0),
            ("", 600, 540, 60),
            ("", u64::MAX, 0, 86_400),
            ("max-age=x", 60, 0, 60),
            ("max-age=600", 60, 0, 600),
            ("max-age=0", 60, 0, 0),
            ("no-cache", 60, 0, 0),
        ] {
            assert_eq!(life(cache, Some(expires_s), age_s).as_secs(), seconds, "{cache:?} {expires_s} {age_s}");
        }
    }
}
