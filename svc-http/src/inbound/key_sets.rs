//! Key sets that lie at an address: read through the outbound guard, kept, and read again where they lack a key.
//!
//! **Invariant:** whoever sends tokens has a set read at most once a minute, whatever keys the tokens name.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use svc_core::state::edge::outbound::OutboundUrl;
use svc_core::value::id::WorkspaceId;
use svc_core::value::json::Json;

use super::jwks::Jwks;
use super::kept::{Kept, Times};
use crate::outbound::{ANSWER_MAX, Asker, Caller};

/// A set that cannot be read again is good for a day.
const TIMES: Times =
    Times { fresh: Duration::from_secs(300), stale: Duration::from_secs(24 * 3_600), pause: Duration::from_secs(60) };

/// The sets that are known.
#[derive(Debug)]
pub(crate) struct KeySets {
    caller: Arc<OnceLock<Caller>>,
    known: Kept<Jwks>,
}

impl Default for KeySets {
    fn default() -> Self {
        Self { caller: Arc::default(), known: Kept::new(TIMES) }
    }
}

impl KeySets {
    /// Reads with this caller from now on; before, no set is read.
    pub(crate) fn read_with(&self, caller: Caller) {
        drop(self.caller.set(caller));
    }

    /// The set at this address, for this workspace, read again where it is old or has not what `suffices` wants, if it may be.
    ///
    /// # Errors
    /// How long it is until asking again is of use: it cannot be read, and was not within a day, or it was read less than a minute ago
    /// and may have the key by now.
    pub(crate) async fn at(
        &self,
        workspace: WorkspaceId,
        url: &str,
        suffices: impl Fn(&Jwks) -> bool + Send + 'static,
    ) -> Result<Arc<Jwks>, Duration> {
        let (caller, place) = (Arc::clone(&self.caller), url.to_owned());
        self.known
            .at(
                workspace,
                url,
                suffices,
                move || async move { read(&caller, Asker::Workspace(workspace), &place).await },
            )
            .await
    }
}

async fn read(caller: &OnceLock<Caller>, asker: Asker, url: &str) -> Option<Jwks> {
    let caller = caller.get()?;
    let address = OutboundUrl::parse(url, caller.guard()).ok()?;
    let fetched = caller.fetch(asker, &address, ANSWER_MAX).await;
    let read = fetched.ok().filter(|it| it.status == 200).and_then(|it| Json::parse(&it.body).ok());
    let keys = read.and_then(|it| Jwks::of(&it).ok());
    if keys.is_none() {
        tracing::warn!(host = address.host(), "the keys of an issuer could not be read");
    }
    keys
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use std::cell::Cell;

    use svc_core::state::edge::outbound::{Outbound, Private};
    use svc_core::value::Id as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::time::advance;

    use super::*;
    use crate::inbound::kept::Held;
    use crate::outbound::{SystemResolver, Trust};

    const FRESH: Duration = TIMES.fresh;
    const STALE: Duration = TIMES.stale;
    const PAUSE: Duration = TIMES.pause;

    const SET: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","kid":"one","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

    fn keys() -> Jwks {
        Jwks::of(&Json::parse(SET.as_bytes()).unwrap()).unwrap()
    }

    /// A set is read once in five minutes, sooner where a key is missing, but never twice within a minute: whoever wants a key meanwhile
    /// is told when it may be there. One that cannot be read is good for a day.
    #[tokio::test(start_paused = true)]
    async fn a_set_is_read_no_more_than_it_has_to_be() {
        let (mut held, reads, answers) = (Held::<Jwks>::default(), Cell::new(0), Cell::new(false));
        let read = || async {
            reads.set(reads.get() + 1);
            answers.get().then(keys)
        };
        assert_eq!(held.refreshed(TIMES, |_| true, read).await.unwrap_err(), PAUSE);
        answers.set(true);
        assert!(held.refreshed(TIMES, |_| true, read).await.is_err() && reads.get() == 1, "not twice within a minute");
        advance(PAUSE).await;
        assert!(held.refreshed(TIMES, |it| it.has(Some("one")), read).await.is_ok() && reads.get() == 2);
        advance(FRESH - Duration::from_millis(1)).await;
        assert!(held.refreshed(TIMES, |it| it.has(Some("one")), read).await.is_ok() && reads.get() == 2, "it is fresh");
        let lacking = held.refreshed(TIMES, |it| it.has(Some("two")), read).await;
        assert!(lacking.is_ok_and(|it| !it.has(Some("two"))) && reads.get() == 3, "it was read for this key");
        for _ in 0..9 {
            advance(Duration::from_secs(1)).await;
            assert!(held.refreshed(TIMES, |it| it.has(Some("one")), read).await.is_ok() && reads.get() == 3);
        }
        let later = held.refreshed(TIMES, |it| it.has(Some("two")), read).await.unwrap_err();
        assert_eq!((later, reads.get()), (PAUSE - Duration::from_secs(9), 3), "it may be there by then");
        answers.set(false);
        advance(STALE - Duration::from_secs(9) - Duration::from_millis(1)).await;
        assert!(held.refreshed(TIMES, |_| true, read).await.is_ok() && reads.get() == 4, "it is good for a day");
        advance(Duration::from_millis(1)).await;
        assert!(held.refreshed(TIMES, |_| true, read).await.is_err() && reads.get() == 4);
    }

    /// A read that was begun comes to its end for others although whoever asked went away: nobody can keep a set from being read by
    /// hanging up.
    #[tokio::test]
    async fn whoever_goes_away_keeps_nobody_from_the_keys() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let guard = Outbound { private: Private::Anywhere, own_host: "gate.example.com".into() };
        let sets = KeySets::default();
        sets.read_with(Caller::new(guard, None, Arc::new(SystemResolver), Trust::default()));
        let mut asking = Box::pin(sets.at(WorkspaceId::from_bits(1), &url, |_| true));
        let (mut stream, _) = tokio::select! {
            _ = &mut asking => panic!("nobody has answered"),
            accepted = listener.accept() => accepted.unwrap(),
        };
        drop(asking);
        let _ = stream.read(&mut [0; 1_024]).await.unwrap();
        let body = SET;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        assert!(
            sets.at(WorkspaceId::from_bits(2), &url, |_| true).await.is_ok(),
            "within the minute, and without another read"
        );
    }
}
