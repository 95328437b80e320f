//! What is told where a credential was sent of a kind that the route does not read.
//!
//! **Invariant:** a kind is told from the first letters of what was sent and where it was sent; none of it is looked for or told.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use svc_core::refusal::Refusal;

use crate::headers::{Site, X_API_KEY, bearer, is_without_key};
use crate::routes::Auth;
use crate::secrets::{ACCESS_PREFIX, KEY_PREFIX, REFRESH_PREFIX, TOKEN_PREFIX};

/// The refusal of a request without a credential that `auth` reads: where another was sent, it says of which kind.
pub(crate) fn refusal(auth: Auth, headers: &HeaderMap, site: &Site) -> Refusal {
    match (sent(auth, headers, site), read(auth)) {
        (Some(sent), Some(read)) => Refusal::unread_credential(&sent, read),
        (None, Some(read)) => Refusal::no_credential(read),
        (_, None) => Refusal::unauthenticated(),
    }
}

/// What a route reads, in words.
const fn read(auth: Auth) -> Option<&'static str> {
    match auth {
        Auth::Open | Auth::Signature => None,
        Auth::Agent | Auth::McpAgent => Some("an agent's key, as `authorization: Bearer`"),
        Auth::Workspace | Auth::Payer => {
            Some("a workspace's or an agent's key, as `authorization: Bearer` or `x-api-key`")
        }
        Auth::WorkspaceAdmin => Some("a workspace's key with admin scope, as `authorization: Bearer` or `x-api-key`"),
        Auth::Token(_) => Some("a service token, as `authorization: Bearer`"),
        Auth::Session | Auth::Member(_) => Some("the session's cookie of somebody who is signed in"),
    }
}

/// What was sent in its place, in words. What is of the right kind and in the right place, but is no text, is none.
fn sent(auth: Auth, headers: &HeaderMap, site: &Site) -> Option<String> {
    let is_session = matches!(auth, Auth::Session | Auth::Member(_));
    let is_token = matches!(auth, Auth::Token(_));
    let reads = |kind: Kind| match kind {
        Kind::Key | Kind::Access => !is_session && !is_token,
        Kind::Token => is_token,
        Kind::Refresh => false,
    };
    let authorization = headers.get(AUTHORIZATION);
    if let Some(token) = authorization.and_then(bearer) {
        return match Kind::of(token) {
            Some(kind) if reads(kind) => None,
            Some(kind) => Some(kind.words().to_owned()),
            None => Some("a bearer token of no kind that this server makes".to_owned()),
        };
    }
    let bare = authorization.and_then(|it| Kind::of(it.as_bytes()));
    if let Some(kind) = bare {
        return Some(format!("{} without the scheme `Bearer` before it", kind.words()));
    }
    if let Some(key) = headers.get(X_API_KEY) {
        if is_without_key(key) {
            return Some("an `x-api-key` without a key".to_owned());
        }
        let words = Kind::of(key.as_bytes()).map_or("what is no key of this server", Kind::words);
        return Some(format!("{words} in `x-api-key`"));
    }
    if !is_session && site.session(headers).is_some() {
        return Some("the cookie of a session".to_owned());
    }
    let what = if is_without_key(authorization?) { "without a key" } else { "of another scheme than `Bearer`" };
    Some(format!("an `authorization` {what}"))
}

/// What a credential that is sent in a header may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Key,
    Access,
    Refresh,
    Token,
}

impl Kind {
    fn of(sent: &[u8]) -> Option<Self> {
        let kinds = [
            (KEY_PREFIX, Self::Key),
            (ACCESS_PREFIX, Self::Access),
            (REFRESH_PREFIX, Self::Refresh),
            (TOKEN_PREFIX, Self::Token),
        ];
        kinds.into_iter().find(|(prefix, _)| sent.starts_with(prefix.as_bytes())).map(|it| it.1)
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Key => "a key of an agent or a workspace",
            Self::Access => "an access token of an agent",
            Self::Refresh => "a refresh token",
            Self::Token => "a service token",
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use http::{HeaderName, HeaderValue};
    use svc_core::state::people::TokenScope;

    use super::*;
    use crate::headers::credential;

    fn told(auth: Auth, lines: &[(&'static str, &'static [u8])]) -> String {
        let lines =
            lines.iter().map(|(name, it)| (HeaderName::from_static(name), HeaderValue::from_bytes(it).unwrap()));
        let refused = credential(auth, &lines.collect(), &Site::of("http://127.0.0.1:8080")).unwrap_err();
        assert_eq!((refused.type_(), refused.status()), ("unauthenticated", 401));
        refused.message().to_owned()
    }

    /// A credential of another kind is told by its kind, and what the route reads; never a letter of it.
    #[test]
    fn a_credential_of_another_kind_is_told_by_its_kind() {
        let token = Auth::Token(TokenScope::AgentsRead);
        let cases: [(Auth, &'static str, &'static [u8], &str, &str); 15] = [
            (Auth::Agent, "authorization", b"Bearer ims_hidden", "a service token was sent", "an agent's key"),
            (Auth::Agent, "x-api-key", b"ask_hidden", "in `x-api-key` was sent", "an agent's key, as `authorization"),
            (Auth::Agent, "authorization", b"ask_hidden", "without the scheme `Bearer`", "an agent's key"),
            (Auth::Agent, "authorization", b"Bearer ", "an `authorization` without a key", "an agent's key"),
            (Auth::Agent, "authorization", b"bearer", "an `authorization` without a key", "an agent's key"),
            (Auth::Payer, "authorization", b"", "an `authorization` without a key", "a workspace's"),
            (token, "authorization", b"Bearer  ", "an `authorization` without a key", "a service token, as"),
            (Auth::Payer, "x-api-key", b"", "an `x-api-key` without a key", "a workspace's"),
            (Auth::Agent, "authorization", b"Basic hidden", "of another scheme than `Bearer`", "an agent's key"),
            (Auth::McpAgent, "authorization", b"Bearer art_hidden", "a refresh token was sent", "an agent's key"),
            (Auth::McpAgent, "cookie", b"sid=hidden", "the cookie of a session was sent", "an agent's key"),
            (Auth::Payer, "authorization", b"Bearer sk-hidden", "of no kind that this server makes", "a workspace's"),
            (Auth::WorkspaceAdmin, "x-api-key", b"ims_hidden", "a service token in `x-api-key`", "with admin scope"),
            (
                token,
                "authorization",
                b"Bearer ask_hidden",
                "a key of an agent or a workspace was",
                "a service token, as",
            ),
            (Auth::Session, "authorization", b"Bearer aat_hidden", "an access token of an agent", "session's cookie"),
        ];
        for (auth, name, sent, kind, read) in cases {
            let message = told(auth, &[(name, sent)]);
            let (before, after) = message.split_once(", which this route does not read; it reads ").unwrap_or_default();
            assert!(before.contains(kind) && after.contains(read), "{message}");
            assert!(!message.contains("hidden"), "{message}");
        }
    }

    /// Where nothing was sent, or what was is of the right kind and no text, nothing else is told.
    #[test]
    fn where_nothing_of_another_kind_was_sent_none_is_told() {
        let cases: [(Auth, &'static str, &'static [u8]); 3] = [
            (Auth::Agent, "accept", b"*/*"),
            (Auth::Payer, "authorization", b"Bearer ask_\xff"),
            (Auth::Session, "cookie", b"sid=short"),
        ];
        for (auth, name, sent) in cases {
            let message = told(auth, &[(name, sent)]);
            let read = message.strip_prefix("no credential that this route reads was sent: it reads ");
            assert_eq!(read, super::read(auth), "{auth:?} {name}");
        }
    }
}
