//! What came of a call that has no answer.

use std::fmt;

use svc_core::dialect::ProviderError;
use svc_core::state::gateway::Usage;
use svc_core::value::Span;

use crate::log::scrub;

/// Characters of what a provider said that are kept.
const SAID_CHARS_MAX: usize = 500;

/// Seconds of the longest rest that is told of.
const REST_S_MAX: i64 = 86_400;

/// A call without an answer. Nothing in it holds a key, a prompt, or more of an address than its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What went wrong.
    pub reason: Reason,
    /// The status that the upstream answered with, where it did.
    pub status: Option<u16>,
    /// Its `retry-after` in seconds, where it has one that can be read.
    pub retry_after_s: Option<u64>,
    /// What it said of it.
    pub said: Said,
    /// Whether any of the request may have reached it: where not, nothing can have been charged.
    pub was_sent: bool,
    /// Whether it says beside its error that it made tokens.
    pub made_tokens: bool,
    /// What is told of its use by what came in the place of an answer.
    pub reported: Option<Box<Usage>>,
    /// About how many bytes an answer had that cannot be passed on, as far as it came or its head tells: it was made all the same.
    pub received: u64,
    /// From the call to this, in milliseconds.
    pub ms: u64,
}

/// What an upstream said of its error, without anything that looks like a credential, at most 500 characters each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its message.
    pub message: Option<Box<str>>,
    /// Its code, where that is a word.
    pub code: Option<Box<str>>,
    /// The field of the request that it blames.
    pub field: Option<Box<str>>,
    /// The status with which it refuses the request, where it says that this is at fault, whatever it answered with.
    pub fault: Option<u16>,
}

impl Said {
    const NOTHING: Self = Self { message: None, code: None, field: None, fault: None };

    /// What an error within a stream says, which was read without the upstream's secrets.
    pub(super) fn of(error: &ProviderError) -> Self {
        let ProviderError { message, code, field, fault, .. } = error.clone();
        Self { message: Some(message), code, field, fault }
    }
}

/// What can go wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The base address is one that may not be called.
    Address,
    /// What is kept of it could not be read: this server's store does not answer.
    Unread,
    /// This server cannot open what is kept of its key.
    Sealed,
    /// The host has no address.
    Resolve,
    /// One of the host's addresses may not be called.
    Refused,
    /// Nobody answers there.
    Connect,
    /// Whoever answers is not the host, or speaks no TLS.
    Tls,
    /// As many calls as may be under way are.
    Busy,
    /// The time for the first token went by.
    FirstToken,
    /// The time between tokens went by.
    Idle,
    /// The time for the whole call went by.
    Total,
    /// The connection was closed before the answer was whole.
    Closed,
    /// The answer is no HTTP.
    Protocol,
    /// The answer is a redirect, which is never followed.
    Redirect,
    /// The answer is an error.
    Status,
    /// The answer is neither JSON nor, where one was asked for, a stream of events.
    ContentType,
    /// The answer is packed, though it was asked for as it is.
    Packed,
    /// The answer is longer than what is read.
    TooLarge,
    /// The answer is empty.
    Empty,
    /// The answer cannot be read.
    Unreadable,
    /// The upstream told of an error in the place of its answer, with status 200, or within its stream.
    Told,
    /// It has failed of late, and another call tries whether it still does.
    Circuit,
    /// It was changed or removed since the call was admitted.
    Changed,
}

impl Reason {
    /// One clause in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Address => "the base address may not be called",
            Self::Unread => "this server cannot look the provider up at present",
            Self::Sealed => "this server cannot open the provider's key",
            Self::Resolve => "the host has no address",
            Self::Refused => "the host's address may not be called",
            Self::Connect => "no connection",
            Self::Tls => "no secure connection to the host",
            Self::Busy => "too many calls are under way",
            Self::FirstToken => "no first token in time",
            Self::Idle => "nothing more in time",
            Self::Total => "no whole answer in time",
            Self::Closed => "the connection was closed before the answer was whole",
            Self::Protocol => "the answer is no HTTP",
            Self::Redirect => "the answer is a redirect",
            Self::Status => "the answer is an error",
            Self::ContentType => "the answer has another content type",
            Self::Packed => "the answer is packed",
            Self::TooLarge => "the answer is too long",
            Self::Empty => "the answer is empty",
            Self::Unreadable => "the answer cannot be read",
            Self::Told => "the upstream told of an error in its answer",
            Self::Circuit => "it has failed of late, another call tries it",
            Self::Changed => "the provider has changed since the call was admitted",
        }
    }

    /// Whether time went by.
    #[must_use]
    pub const fn is_timeout(self) -> bool {
        matches!(self, Self::FirstToken | Self::Idle | Self::Total)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What went wrong with a try, in one of few words: for who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// There was no connection to it, or it may not be called.
    Unreachable,
    /// Time went by.
    Timeout,
    /// The connection was closed before the answer was whole.
    Closed,
    /// It does not take the key.
    Credential,
    /// It was asked too often.
    RateLimited,
    /// It says that the request is at fault.
    Rejected,
    /// It has answered with another status that is an error.
    Status,
    /// It told of an error in the place of its answer, or within it.
    Told,
    /// What it has answered cannot be passed on.
    Unreadable,
}

impl Fault {
    /// Each of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Unreachable,
        Self::Timeout,
        Self::Closed,
        Self::Credential,
        Self::RateLimited,
        Self::Rejected,
        Self::Status,
        Self::Told,
        Self::Unreadable,
    ];

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Credential => "credential",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::Status => "status",
            Self::Told => "told",
            Self::Unreadable => "unreadable",
        }
    }

    /// What an answer that broke off was short of; nothing where no answer was tried.
    pub(crate) const fn of(reason: Reason) -> Option<Self> {
        match reason {
            Reason::Address | Reason::Resolve | Reason::Refused | Reason::Connect | Reason::Tls => {
                Some(Self::Unreachable)
            }
            Reason::FirstToken | Reason::Idle | Reason::Total => Some(Self::Timeout),
            Reason::Closed => Some(Self::Closed),
            Reason::Status => Some(Self::Status),
            Reason::Told => Some(Self::Told),
            Reason::Protocol
            | Reason::Redirect
            | Reason::ContentType
            | Reason::Packed
            | Reason::TooLarge
            | Reason::Empty
            | Reason::Unreadable => Some(Self::Unreadable),
            // Nothing was sent, and nobody but this server said so.
            Reason::Busy | Reason::Circuit | Reason::Changed | Reason::Unread | Reason::Sealed => None,
        }
    }
}

impl Failed {
    /// Nothing was sent and nothing answered.
    #[must_use]
    pub const fn new(reason: Reason) -> Self {
        let said = Said::NOTHING;
        Self {
            reason,
            status: None,
            retry_after_s: None,
            said,
            was_sent: false,
            made_tokens: false,
            reported: None,
            received: 0,
            ms: 0,
        }
    }

    /// The request was sent, or part of it.
    #[must_use]
    pub fn sent(reason: Reason) -> Self {
        Self { was_sent: true, ..Self::new(reason) }
    }

    /// The status with which the request is refused where it is at fault, by the answer's status, or by an error that was told in
    /// the place of an answer: no other upstream would take it.
    #[must_use]
    pub const fn fault(&self) -> Option<u16> {
        match self.status {
            Some(status @ (400 | 413 | 422)) => Some(status),
            Some(_) | None if matches!(self.reason, Reason::Told) => self.said.fault,
            Some(_) | None => None,
        }
    }

    /// Whether the request is at fault.
    #[must_use]
    pub const fn is_the_clients(&self) -> bool {
        self.fault().is_some()
    }

    /// What went wrong, in one of few words; nothing where no try was made.
    pub(crate) const fn trouble(&self) -> Option<Fault> {
        if self.is_the_clients() {
            return Some(Fault::Rejected);
        }
        match self.status {
            Some(401 | 403) => Some(Fault::Credential),
            Some(429) => Some(Fault::RateLimited),
            Some(_) | None => Fault::of(self.reason),
        }
    }

    /// Whether it says nothing of the model that was to be asked: the request is at fault, or this server.
    #[must_use]
    pub const fn is_nothing_of_the_models(&self) -> bool {
        self.is_the_clients() || self.is_for_now() || matches!(self.reason, Reason::Sealed)
    }

    /// For how long its provider has no room for calls, as it says where it refuses one for that.
    #[must_use]
    pub fn rest(&self) -> Option<Span> {
        let told = self.retry_after_s.filter(|it| *it > 0 && matches!(self.status, Some(429 | 503)))?;
        Some(Span::seconds(i64::try_from(told).unwrap_or(REST_S_MAX).min(REST_S_MAX)))
    }

    /// Whether this server had no place for the call, or could not look up where it goes: it may have a moment later.
    #[must_use]
    pub const fn is_for_now(&self) -> bool {
        matches!(self.reason, Reason::Busy | Reason::Unread)
    }

    /// Whether the call may have cost something all the same: it was sent, and its provider has not said no, neither by its
    /// status nor by an error in the place of the answer, or of the stream's first token. Who failed within an answer, and counts
    /// what was made of it, bills that.
    #[must_use]
    pub fn may_have_used(&self) -> bool {
        self.was_sent && (self.made_tokens || self.reason != Reason::Told) && self.status.is_none_or(|it| it < 300)
    }

    /// One clause for `attemptedModels` and for logs.
    #[must_use]
    pub fn error(&self) -> String {
        match self.status {
            Some(status) if self.reason == Reason::Status => format!("the answer is {status}"),
            Some(_) | None => self.reason.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.error())
    }
}

/// What the body of an error says, with `secrets` and whatever looks like a credential cut out: providers quote keys.
pub(super) fn said<'a>(body: &[u8], secrets: impl IntoIterator<Item = &'a str> + Clone) -> Said {
    let told = svc_core::dialect::said(body);
    let plain = |text: Option<String>| {
        let text = without_keys(&text?, secrets.clone());
        (!text.is_empty()).then(|| text.into())
    };
    Said { message: plain(told.message), code: plain(told.code), field: plain(told.field), fault: told.fault }
}

/// A text without `secrets` and whatever looks like a credential, without control characters, at most 500 characters of it.
/// Where one secret holds another, the longer one comes first.
pub(super) fn without_keys<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    let secrets = secrets.into_iter().filter(|it| !it.is_empty());
    let text = secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "…"));
    let words = text.split(' ').map(|word| if is_key(word) { "…" } else { word });
    let text: String = words.collect::<Vec<_>>().join(" ").chars().filter(|it| !it.is_control()).collect();
    scrub(&text).chars().take(SAID_CHARS_MAX).collect()
}

/// Whether a word looks like a key, or like what is left of one: a provider's prefix, or a row of stars.
fn is_key(word: &str) -> bool {
    let word = word.trim_matches(|it: char| matches!(it, '.' | ',' | ';' | ':' | '\'' | '"' | '`' | '(' | ')'));
    ["sk-", "sk_", "pk-", "gsk_", "xai-", "AIza", "key-"].iter().any(|it| word.starts_with(it)) || word.contains("****")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<String> {
        let body = serde_json::json!({ "error": { "message": text } }).to_string();
        said(body.as_bytes(), ["hunter2hunter2"]).message.map(Into::into)
    }

    /// What a provider says of an error is passed on without the key that it quotes, whole or in part.
    #[test]
    fn what_is_said_has_no_key_in_it() {
        assert_eq!(told("wrong key hunter2hunter2!").as_deref(), Some("wrong key …!"));
        assert_eq!(told("wrong key: sk-abc***************wxyz. Look").as_deref(), Some("wrong key: … Look"));
        assert_eq!(told("wrong key 'abcd****'").as_deref(), Some("wrong key …"));
        assert_eq!(told("two\nlines").as_deref(), Some("twolines"));
        assert_eq!(told(&"a".repeat(600)).map(|it| it.len()), Some(500));
        assert_eq!(told(""), None);
        assert_eq!(said(b"<html>", [""]), Said::NOTHING);
        for (body, expected) in [
            (
                r#"{"detail":[{"type":"extra_forbidden","loc":["body","messages",0,"x"],"msg":"Extra inputs are not permitted, hunter2hunter2"}]}"#,
                Some("Extra inputs are not permitted, … (`body.messages.0.x`)"),
            ),
            (r#"{"detail":"no such model"}"#, Some("no such model")),
            (
                r#"[{"error":{"code":400,"message":"Invalid JSON payload","status":"INVALID_ARGUMENT"}}]"#,
                Some("Invalid JSON payload"),
            ),
            (r#"{"error":"plain"}"#, Some("plain")),
            (r#"{"message":"top"}"#, Some("top")),
            (r#"{"error":{"code":1}}"#, None),
            ("[]", None),
            ("7", None),
        ] {
            assert_eq!(said(body.as_bytes(), ["hunter2hunter2"]).message.as_deref(), expected, "{body}");
        }
        let body = r#"{"error":{"message":"m","code":"of hunter2hunter2","param":"messages"}}"#;
        let told = said(body.as_bytes(), ["hunter2hunter2"]);
        assert_eq!((told.code.as_deref(), told.field.as_deref()), (Some("of …"), Some("messages")));
    }

    /// What the request or this server is at fault for says nothing of a model; what its provider did, or did not, does.
    #[test]
    fn what_says_nothing_of_a_model() {
        let nothing = [Reason::Busy, Reason::Unread, Reason::Sealed];
        assert!(nothing.into_iter().all(|it| Failed::new(it).is_nothing_of_the_models()));
        assert!(nothing.into_iter().all(|it| Failed::new(it).trouble().is_none()));
        for status in [400, 413, 422] {
            assert!(Failed { status: Some(status), ..Failed::sent(Reason::Status) }.is_nothing_of_the_models());
        }
        for reason in [Reason::Connect, Reason::FirstToken, Reason::Closed, Reason::Status, Reason::Told] {
            assert!(!Failed::sent(reason).is_nothing_of_the_models(), "{reason}");
        }
    }
}
