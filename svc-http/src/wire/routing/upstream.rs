//! Providers. Their keys, and headers that carry a credential, come in and never go out.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use svc_core::refusal::{FieldError, Kind, Refusal};
use svc_core::rules::gateway::upstreams::Set;
use svc_core::state::gateway::route::Circuit;
use svc_core::state::gateway::{Dialect, ModelTimeouts, Upstream};
use svc_core::value::Invalid;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::{UpstreamName, UrlText};

use super::super::named::Names;
use super::super::{Fields, parse, parse_or_empty, text, truth};
use super::{law, put, within};
use crate::secrets::hint;
use crate::upstream::is_credential;

/// Headers beside those that every call has.
const HEADERS_MAX: usize = 20;
/// Characters of a provider's key.
const KEY_MAX: usize = 4_096;
/// The longest time that may be set, in milliseconds: an hour.
const TIME_MAX_MS: i64 = 3_600_000;
/// Headers that are the connection's or the key's own.
const OWN: [&str; 18] = [
    "accept-encoding",
    "anthropic-version",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-api-key",
];

/// What stands before the last characters of a credential of which no more is shown. No header can hold it.
const SHOWN: char = '…';

/// What is set of a provider, and its credentials where some were sent.
#[derive(Debug)]
pub struct Sent {
    /// All but credentials.
    pub set: Vec<Set>,
    /// The key.
    pub key: Option<Secret<String>>,
    /// Those of the headers that carry a credential, where headers were sent.
    pub credentials: Option<BTreeMap<Box<str>, Credential>>,
}

/// A header that carries a credential, as it is sent.
#[derive(Debug)]
pub enum Credential {
    /// The value.
    New(Secret<String>),
    /// What is shown of the stored one: its last characters.
    Shown(Box<str>),
}

/// What a provider names.
pub const IDS: &[(&str, Names)] = &[("name", Names::NewUpstream)];

/// Reads a provider that is to be made (`is_new`) or changed. `judge` is the outbound guard.
///
/// # Errors
/// `invalid_json`; `invalid_request` for what is no object; `invalid_upstream` naming every fault.
pub fn read(body: &[u8], is_new: bool, judge: impl FnOnce(&str) -> Result<(), Invalid>) -> Result<Sent, Refusal> {
    let json = if is_new { parse(body)? } else { parse_or_empty(body)? };
    let mut fields = Fields::of(&json)?;
    fields.only(&["name", "kind", "baseUrl", "apiKey", "headers", "jurisdiction", "region", "timeouts", "enabled"]);
    if is_new {
        for name in ["name", "kind", "baseUrl", "apiKey"] {
            if fields.raw(name).is_none() {
                fields.note(FieldError::missing(name));
            }
        }
    }
    let mut set = Vec::new();
    set.extend(fields.optional("name", |it| UpstreamName::parse(text(it)?)).map(Set::Name));
    set.extend(fields.optional("kind", dialect).map(Set::Kind));
    let url = fields.optional("baseUrl", |it| {
        let url = UrlText::parse(text(it)?)?;
        judge(url.as_str()).map(|()| url)
    });
    set.extend(url.map(Set::BaseUrl));
    let key = fields.optional("apiKey", |it| {
        let key = text(it)?;
        let sound = (1..=KEY_MAX).contains(&key.len()) && key.bytes().all(|it| it.is_ascii_graphic());
        let why = || Invalid::new(format!("must be 1 to {KEY_MAX} visible ASCII characters without space"));
        sound.then(|| Secret::new(key.to_owned())).ok_or_else(why)
    });
    let mut own = None;
    if fields.is_null("headers") {
        own = Some(Headers::default());
    } else if fields.raw("headers").and_then(Json::as_object).is_some_and(|it| it.len() > HEADERS_MAX) {
        fields.fault("headers", Invalid::new(format!("must have at most {HEADERS_MAX} members")));
    } else {
        own = fields.nested("headers", headers);
    }
    let credentials = own.map(|it| {
        set.push(Set::Headers(it.clear));
        it.credentials
    });
    put(&mut fields, "jurisdiction", &mut set, |it| law(text(it)?), Set::Jurisdiction);
    put(&mut fields, "region", &mut set, region, Set::Region);
    if fields.is_null("timeouts") {
        set.push(Set::Timeouts(ModelTimeouts::default()));
    } else {
        set.extend(fields.nested("timeouts", timeouts).map(Set::Timeouts));
    }
    put(&mut fields, "enabled", &mut set, truth, |it| Set::Enabled(it.unwrap_or(true)));
    fields.finish(Some(Sent { set, key, credentials })).map_err(typed)
}

/// A fault of a provider is told under its own type.
fn typed(refusal: Refusal) -> Refusal {
    if refusal.kind() == Kind::InvalidRequest { Refusal::invalid_upstream(refusal.errors().to_vec()) } else { refusal }
}

fn dialect(value: &Json) -> Result<Dialect, Invalid> {
    Dialect::parse(text(value)?).ok_or_else(|| Invalid::new("must be `chat` or `messages`"))
}

fn region(value: &Json) -> Result<Box<str>, Invalid> {
    let region = text(value)?;
    let sound = (1..=64).contains(&region.len()) && region.bytes().all(|it| it.is_ascii_graphic());
    let why = || Invalid::new("must be 1 to 64 visible ASCII characters without space");
    sound.then(|| region.into()).ok_or_else(why)
}

/// Headers that were sent.
#[derive(Debug, Default)]
struct Headers {
    clear: BTreeMap<Box<str>, Box<str>>,
    credentials: BTreeMap<Box<str>, Credential>,
}

fn headers(fields: &mut Fields<'_>) -> Option<Headers> {
    let mut headers = Headers::default();
    for sent in fields.names() {
        let name = http::HeaderName::from_bytes(sent.as_bytes());
        let value = match name.as_ref().map(http::HeaderName::as_str) {
            Err(_) => Err(Invalid::new("is no name of a header")),
            Ok(own) if OWN.contains(&own) => Err(Invalid::new("must not be set: the call itself sets it")),
            // The case of a name says nothing, so that which of both counts would be chance.
            Ok(own) if headers.has(own) => Err(Invalid::new(format!("is the header `{own}` again"))),
            Ok(_) if fields.is_null(sent) => header_value(&Json::Null),
            Ok(_) => fields.raw(sent).map_or(Ok(""), header_value),
        };
        match (name, value) {
            (Ok(name), Ok(value)) => headers.take(name.as_str(), value),
            (_, value) => value.err().into_iter().for_each(|why| fields.fault(sent, why)),
        }
    }
    Some(headers)
}

impl Headers {
    fn has(&self, name: &str) -> bool {
        self.clear.contains_key(name) || self.credentials.contains_key(name)
    }

    fn take(&mut self, name: &str, value: &str) {
        if let Some(hint) = value.strip_prefix(SHOWN) {
            self.credentials.insert(name.into(), Credential::Shown(hint.into()));
        } else if is_credential(name, value) {
            self.credentials.insert(name.into(), Credential::New(Secret::new(value.to_owned())));
        } else {
            self.clear.insert(name.into(), value.into());
        }
    }
}

fn header_value(value: &Json) -> Result<&str, Invalid> {
    let is_plain = |it: &str| it.bytes().all(|it| it == b' ' || it.is_ascii_graphic());
    let sound = |it: &&str| it.len() <= 1_024 && is_plain(it.strip_prefix(SHOWN).unwrap_or(it));
    text(value)
        .ok()
        .filter(sound)
        .ok_or_else(|| Invalid::new("must be a text of at most 1024 visible ASCII characters"))
}

fn timeouts(fields: &mut Fields<'_>) -> Option<ModelTimeouts> {
    fields.only(&["firstTokenMs", "idleMs", "totalMs"]);
    let mut time = |name| fields.optional(name, |it| within(it, 1, TIME_MAX_MS));
    Some(ModelTimeouts { first_token_ms: time("firstTokenMs"), idle_ms: time("idleMs"), total_ms: time("totalMs") })
}

/// Its headers, of those that carry a credential the last characters.
fn shown(upstream: &Upstream) -> BTreeMap<&str, Cow<'_, str>> {
    let elided = |hint: &str| Cow::Owned(format!("{SHOWN}{hint}"));
    let clear = upstream.headers.iter().map(|(name, value)| {
        let value = if is_credential(name, value) { elided(&hint(value)) } else { Cow::Borrowed(&**value) };
        (&**name, value)
    });
    clear.chain(upstream.header_hints.iter().map(|(name, hint)| (&**name, elided(hint)))).collect()
}

/// A provider as it stands. `health` and `last_error` are what this node has seen of it.
#[must_use]
pub fn write(upstream: &Upstream, health: Circuit, last_error: Option<&str>) -> Value {
    let times = &upstream.timeouts;
    let times = [("firstTokenMs", times.first_token_ms), ("idleMs", times.idle_ms), ("totalMs", times.total_ms)];
    let times: Map<String, Value> =
        times.into_iter().filter_map(|(name, ms)| ms.map(|ms| (name.to_owned(), json!(ms)))).collect();
    json!({
        "id": upstream.id,
        "name": upstream.name,
        "kind": upstream.dialect.as_str(),
        "baseUrl": upstream.base_url,
        "keyHint": upstream.key_hint,
        "headers": shown(upstream),
        "jurisdiction": upstream.jurisdiction,
        "region": upstream.region,
        "timeouts": times,
        "enabled": upstream.enabled,
        "health": health.as_str(),
        "lastError": last_error,
        "createdAt": upstream.created_at.to_string(),
        "createdBy": upstream.created_by.as_ref().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every header that cannot be sent is told by its own name.
    #[test]
    fn every_fault_of_the_headers_is_told() {
        let read = |headers: &str| read(format!(r#"{{"headers":{headers}}}"#).as_bytes(), false, |_| Ok(())).map(drop);
        assert!(read(r#"{"x-team":"blue"}"#).is_ok() && read("null").is_ok());
        let refusal = read(r#"{"a":5,"x team":"b","host":"c","d":"e\u00e9","f":"g","h":null}"#).unwrap_err();
        let fields: Vec<_> = refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect();
        assert_eq!(
            (refusal.type_(), fields),
            ("invalid_upstream", vec!["headers.a", "headers.x team", "headers.host", "headers.d", "headers.h"])
        );
        let many = (0..=HEADERS_MAX).map(|it| format!(r#""h{it}":"x""#)).collect::<Vec<_>>().join(",");
        let refusal = read(&format!("{{{many}}}")).unwrap_err();
        assert_eq!(refusal.errors().first().and_then(|it| it.field.as_deref()), Some("headers"));
    }

    /// Names of headers have no case: one that is there twice is told, whichever comes first, and whether one of them is a credential.
    #[test]
    fn a_header_is_named_once() {
        for (headers, field) in [
            (r#"{"x-team":"blue","X-Team":"red"}"#, "headers.X-Team"),
            (r#"{"X-Team":"red","x-team":"blue"}"#, "headers.x-team"),
            (r#"{"x-team":"Bearer abcdefgh","X-TEAM":"…efgh"}"#, "headers.X-TEAM"),
        ] {
            let refusal =
                read(format!(r#"{{"headers":{headers}}}"#).as_bytes(), false, |_| Ok(())).map(drop).unwrap_err();
            assert_eq!(refusal.errors().first().and_then(|it| it.field.as_deref()), Some(field), "{headers}");
        }
    }
}
