//! Whom a call goes to, and what it says.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use svc_core::state::gateway::{Dialect, Upstream};
use svc_core::value::Invalid;
use svc_core::value::id::{UpstreamId, WorkspaceId};
use svc_core::value::secret::Secret;

use super::address::{Base, Origin};
use super::failed::{self, Said};
use super::{Times, Upstreams, framing};

/// Who calls.
pub(super) const AGENT: &str = concat!("svc/", env!("CARGO_PKG_VERSION"));
/// The version of the messages API that is spoken where the client names none.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");
/// Headers that say how a message is carried, or that are svc's own to set.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of the messages and chat APIs that say which version of them is spoken.
const PUBLIC_HEADERS: &[&str] = &["anthropic-version", "anthropic-beta", "openai-beta"];
/// Schemes of authentication, which stand before a credential and are none.
const SCHEMES: &[&str] = &["apikey", "basic", "bearer", "digest", "key", "token"];
/// What is in the name of a header that carries a credential.
const CREDENTIAL_NAMES: &[&str] =
    &["auth", "cookie", "credential", "jwt", "key", "passphrase", "passwd", "password", "secret", "signature", "token"];
/// Bytes of the shortest word of such a header that is taken for a secret.
const CREDENTIAL_MIN: usize = 4;
/// The same of any other header.
const SECRET_MIN: usize = 8;

/// Whether svc sets this header itself: no upstream's configuration may.
#[must_use]
pub fn is_own_header(name: &HeaderName) -> bool {
    OWN_HEADERS.contains(&name.as_str())
}

/// Whether a header of an upstream's own carries a credential, by its name or by a scheme of authentication before its value:
/// it is kept and shown as a key is.
#[must_use]
pub fn is_credential(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !PUBLIC_HEADERS.contains(&name.as_str()) && !value.is_empty() && (names_credential(&name) || has_scheme(value))
}

/// What is shown to an upstream and kept sealed.
#[derive(Debug)]
pub struct Credentials {
    /// Its key; empty where it has none.
    pub key: Secret<String>,
    /// The values of headers that carry a credential.
    pub headers: Vec<(Box<str>, Secret<String>)>,
}

/// An upstream that may be called, with its key. Made once for many calls.
#[derive(Debug)]
pub struct Target {
    pub(super) origin: Arc<Origin>,
    pub(super) times: Times,
    path: Box<str>,
    dialect: Dialect,
    /// What it is shown and nobody else may hear: its key, and what its own headers carry. The longest first.
    secrets: Arc<[Secret<String>]>,
    /// The lines of the head that are the same in every call.
    fixed: Secret<Vec<u8>>,
    names_version: bool,
    /// Whose calls go there, where they are to leave room to others.
    pub(super) whose: Option<(WorkspaceId, UpstreamId)>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// What is asked.
    pub what: What,
    /// The body; empty where nothing is sent.
    pub body: Bytes,
    /// Whether the answer is to be a stream.
    pub stream: bool,
    /// The query that the client sent to the same API, such as `beta=true`.
    pub query: Option<&'a str>,
    /// Headers that the client sent to the same API and that are passed on: `anthropic-version`, `anthropic-beta`.
    pub headers: &'a [(HeaderName, HeaderValue)],
}

/// What a call asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// For an answer of a model.
    Answer,
    /// How many tokens a request has; in the messages API alone.
    Count,
    /// Which models there are.
    Models,
}

impl Target {
    /// What is called for `upstream`, with its own times, headers and `credentials`.
    ///
    /// # Errors
    /// Its base address is one that may not be called, or a header or the key holds what no header can.
    pub fn of(upstreams: &Upstreams, upstream: &Upstream, credentials: Credentials) -> Result<Self, Invalid> {
        let times = upstreams.times().with(&upstream.timeouts);
        let Credentials { key, headers } = credentials;
        let sealed = headers.iter().map(|(name, value)| (&**name, value.expose().as_str()));
        let clear = upstream.headers.iter().map(|(name, value)| (&**name, &**value));
        let headers: Vec<(&str, &str)> = clear.chain(sealed).collect();
        Self::new(upstreams, upstream.base_url.as_str(), upstream.dialect, key, &headers, times)
    }

    /// The same of its parts.
    ///
    /// # Errors
    /// See [`Target::of`].
    pub fn new(
        upstreams: &Upstreams,
        base_url: &str,
        dialect: Dialect,
        key: Secret<String>,
        headers: &[(&str, &str)],
        times: Times,
    ) -> Result<Self, Invalid> {
        let Base { origin, path } = upstreams.base(base_url)?;
        let (name, before) = match dialect {
            Dialect::Chat => ("authorization", "Bearer "),
            Dialect::Messages => ("x-api-key", ""),
        };
        // Room for all of it: a text that grows leaves copies behind.
        let room = headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum::<usize>();
        let mut fixed = Vec::with_capacity(room + key.expose().len() + origin.authority.len() + 256);
        let mut line = |name: &str, value: &[&str]| {
            fixed.extend_from_slice(name.as_bytes());
            fixed.extend_from_slice(b": ");
            value.iter().for_each(|it| fixed.extend_from_slice(it.as_bytes()));
            fixed.extend_from_slice(b"\r\n");
        };
        line("host", &[&origin.authority]);
        line("user-agent", &[AGENT]);
        line("accept-encoding", &["identity"]);
        let mut names_version = false;
        for (name, value) in headers {
            let known = name.parse::<HeaderName>().ok().filter(|it| !is_own_header(it));
            let (Some(known), true) = (known, is_plain(value)) else {
                return Err(Invalid::new(format!("must not have the header `{name}`")));
            };
            names_version |= known.as_str() == VERSION.0;
            line(name, &[value]);
        }
        // An upstream's own headers may carry its key in another way.
        let has_key = headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if !has_key && !key.expose().is_empty() {
            if !is_plain(key.expose()) {
                return Err(Invalid::new("must have a key without spaces and control characters"));
            }
            line(name, &[before, key.expose()]);
        }
        let mut secrets: Vec<Secret<String>> =
            headers.iter().flat_map(|(name, value)| secrets_of(name, value)).collect();
        secrets.push(key);
        secrets.sort_by_key(|it| std::cmp::Reverse(it.expose().len()));
        let fixed = Secret::new(fixed);
        let secrets = secrets.into();
        Ok(Self { origin: Arc::new(origin), times, path, dialect, secrets, fixed, names_version, whose: None })
    }

    /// The same for calls of this workspace to this upstream of its: no more of them are under way at once than leave room to others.
    #[must_use]
    pub fn leaving_room(mut self, workspace: WorkspaceId, upstream: UpstreamId) -> Self {
        self.whose = Some((workspace, upstream));
        self
    }

    /// The API that it speaks.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Its host.
    #[must_use]
    pub fn host(&self) -> String {
        self.origin.host.to_string()
    }

    /// The head of a request; nothing where it cannot be one.
    pub(super) fn request(&self, call: &Call<'_>) -> Option<Secret<Vec<u8>>> {
        let (before, path) = match (self.dialect, call.what) {
            (Dialect::Chat, What::Answer) => ("POST ", "/chat/completions"),
            (Dialect::Chat, What::Models) => ("GET ", "/models"),
            (Dialect::Chat, What::Count) => return None,
            (Dialect::Messages, What::Answer) => ("POST ", "/v1/messages"),
            (Dialect::Messages, What::Count) => ("POST ", "/v1/messages/count_tokens"),
            (Dialect::Messages, What::Models) => ("GET ", "/v1/models"),
        };
        let query = call.query.filter(|it| !it.is_empty());
        if query.is_some_and(|it| !it.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')) {
            return None;
        }
        let mark = if query.is_some() { "?" } else { "" };
        let line = format!("{before}{}{path}{mark}{} HTTP/1.1\r\n", self.path, query.unwrap_or_default());
        let accept: &[u8] = if call.stream { b"text/event-stream" } else { b"application/json" };
        let mut more: Vec<(&str, &[u8])> = vec![("accept", accept)];
        if call.what != What::Models {
            more.push(("content-type", b"application/json"));
        }
        let passed = call.headers.iter().filter(|(name, _)| !is_own_header(name));
        more.extend(passed.map(|(name, value)| (name.as_str(), value.as_bytes())));
        let has_version = self.names_version || call.headers.iter().any(|(name, _)| name.as_str() == VERSION.0);
        if self.dialect == Dialect::Messages && !has_version {
            more.push((VERSION.0, VERSION.1.as_bytes()));
        }
        Some(framing::request(&line, &self.fixed, &more, call.body.len()))
    }

    /// What is not to be shown of it, the longest first.
    pub(crate) fn secrets(&self) -> Arc<[Secret<String>]> {
        Arc::clone(&self.secrets)
    }

    /// What the body of an error says, without the key, wherever that is configured.
    pub(crate) fn said(&self, body: &[u8]) -> Said {
        failed::said(body, self.secrets.iter().map(|it| it.expose().as_str()))
    }
}

/// What a header of an upstream's own may hold that is secret, as a provider might quote it: the whole value, and each of its
/// words but a scheme of authentication before them. Any header may carry a key; where its name does not say so, short words are left out, as
/// no key is that short and cutting them out of what a provider says would garble it.
fn secrets_of(name: &str, value: &str) -> impl Iterator<Item = Secret<String>> {
    let name = name.to_ascii_lowercase();
    let is_public = PUBLIC_HEADERS.contains(&name.as_str());
    let least = if names_credential(&name) { CREDENTIAL_MIN } else { SECRET_MIN };
    let words = value.split([' ', ',', ';', '=']).skip(usize::from(has_scheme(value)));
    let found = std::iter::once(value).chain(words).filter(|it| !is_public && it.len() >= least);
    found.map(|it| Secret::new(it.to_owned())).collect::<Vec<_>>().into_iter()
}

/// Whether a header of this name, in lower case, carries a credential.
fn names_credential(name: &str) -> bool {
    CREDENTIAL_NAMES.iter().any(|it| name.contains(it))
}

fn has_scheme(value: &str) -> bool {
    let is_scheme = |word: &str| SCHEMES.iter().any(|it| word.eq_ignore_ascii_case(it));
    value.split_once(' ').is_some_and(|(first, _)| is_scheme(first))
}

/// Whether a text can be the value of a header.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|it| (0x20..0x7f).contains(&it))
}
