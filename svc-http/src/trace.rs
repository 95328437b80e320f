//! W3C trace context: a valid `traceparent` is continued under a new parent id, anything else starts a new trace.
//!
//! <https://www.w3.org/TR/trace-context/>

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::entropy;

/// The header's name.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The name of the header beside it, in which each system that a trace went through keeps what it needs.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The trace that a request belongs to, with this server's own place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace's id, never all zero.
    pub trace_id: [u8; 16],
    /// This server's id in the trace, new for each request.
    pub parent_id: [u8; 8],
    /// The caller's place in it; `None` where the trace begins here.
    pub caller: Option<[u8; 8]>,
    /// Whether the trace is recorded: by the caller, or here.
    pub sampled: bool,
    /// What the systems before this one keep in the trace, as the caller has sent it; empty where there is nothing, or nothing valid.
    pub state: Vec<(Arc<str>, Arc<str>)>,
}

/// `00-<32 hex>-<16 hex>-<2 hex>`.
const LEN: usize = 55;
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Trace {
    /// Continues the trace of these headers, or starts one.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(TRACEPARENT).iter();
        let continued = match (sent.next(), sent.next()) {
            (Some(value), None) => parse(value.as_bytes()),
            (None, _) | (Some(_), Some(_)) => None,
        };
        let parent_id = entropy::bytes();
        match continued {
            Some((trace_id, caller, sampled)) => {
                Self { trace_id, parent_id, caller: Some(caller), sampled, state: state(headers) }
            }
            None => Self { trace_id: entropy::bytes(), parent_id, caller: None, sampled: false, state: Vec::new() },
        }
    }

    /// The header's text; version 00, and of the flags only the one that version 00 knows.
    #[must_use]
    pub fn header(&self) -> HeaderValue {
        let mut text = Vec::with_capacity(LEN);
        text.extend_from_slice(b"00-");
        push_hex(&mut text, &self.trace_id);
        text.push(b'-');
        push_hex(&mut text, &self.parent_id);
        text.extend_from_slice(if self.sampled { b"-01" } else { b"-00" });
        HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).unwrap_or(HeaderValue::from_static("00"))
    }
}

/// Writes bytes as lower-case hex.
pub(crate) fn push_hex(text: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            text.push(HEX.get(usize::from(digit)).copied().unwrap_or(b'0'));
        }
    }
}

/// The trace id, the caller's id in it and the sampled flag of a header's value; `None` restarts the trace.
fn parse(value: &[u8]) -> Option<([u8; 16], [u8; 8], bool)> {
    let value = value.trim_ascii();
    let (fixed, rest) = value.split_at_checked(LEN)?;
    let [v1, v2, b'-', fields @ ..] = fixed else { return None };
    let [version] = hex([*v1, *v2].as_slice())?;
    // 255 is no version; a later one may say more behind another dash.
    if version == 0xff || (version == 0 && !rest.is_empty()) || !matches!(rest.first(), None | Some(b'-')) {
        return None;
    }
    let (trace_id, fields) = fields.split_at_checked(32)?;
    let (parent_id, flags) = fields.strip_prefix(b"-")?.split_at_checked(16)?;
    let trace_id: [u8; 16] = hex(trace_id)?;
    let parent_id: [u8; 8] = hex(parent_id)?;
    let [flags]: [u8; 1] = hex(flags.strip_prefix(b"-")?)?;
    (trace_id != [0; 16] && parent_id != [0; 8]).then_some((trace_id, parent_id, flags & 1 == 1))
}

/// Members that a state has at most.
const MEMBERS_MAX: usize = 32;

/// The members of the state that these headers send together; none where one of them is none, or is there twice, or where there are too
/// many: what comes behind is not looked at, as each is compared with all before it, and nobody has said yet who sends them.
fn state(headers: &HeaderMap) -> Vec<(Arc<str>, Arc<str>)> {
    let mut members: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for value in headers.get_all(TRACESTATE) {
        let Ok(value) = value.to_str() else { return Vec::new() };
        for member in value.split(',').map(|it| it.trim_matches([' ', '\t'])).filter(|it| !it.is_empty()) {
            let found = member.split_once('=').filter(|(key, value)| is_key(key) && is_value(value));
            let has_place = members.len() < MEMBERS_MAX;
            let Some((key, value)) = found.filter(|(key, _)| has_place && members.iter().all(|it| *it.0 != **key))
            else {
                return Vec::new();
            };
            members.push((key.into(), value.into()));
        }
    }
    members
}

/// Whether this is a member's key: a name, or a tenant's at a system.
fn is_key(text: &str) -> bool {
    let is_lettered = |it: &str| it.starts_with(|first: char| first.is_ascii_lowercase());
    match text.split_once('@') {
        Some((tenant, system)) => is_name(tenant, 241) && is_name(system, 14) && is_lettered(system),
        None => is_name(text, 256) && is_lettered(text),
    }
}

/// Whether this is a name of at most so many characters.
fn is_name(text: &str, longest: usize) -> bool {
    let is_first = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_next = |it: char| is_first(it) || matches!(it, '_' | '-' | '*' | '/');
    text.len() <= longest && text.starts_with(is_first) && text.chars().all(is_next)
}

/// Whether this is a member's value.
fn is_value(text: &str) -> bool {
    let is_plain = |it: u8| matches!(it, b' '..=b'~') && !matches!(it, b',' | b'=');
    (1..=256).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Bytes of exactly `2 * N` lower-case hex digits.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != N.checked_mul(2)? {
        return None;
    }
    let mut out = [0; N];
    for (to, pair) in out.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *to = (digit(*high)? << 4) | digit(*low)?;
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;

    fn of(values: &[&str]) -> Trace {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(TRACEPARENT, HeaderValue::from_str(value).unwrap());
        }
        Trace::of(&headers)
    }

    fn vectors(name: &str) -> Vec<Vec<String>> {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../tests/data/w3c_trace_context.json")).unwrap();
        serde_json::from_value(all.get(name).unwrap().clone()).unwrap()
    }

    const KNOWN: [u8; 16] =
        [0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56, 0x78, 0x90, 0x12];

    /// The published vectors: what is continued keeps its trace id under a new parent, what is restarted keeps nothing.
    #[test]
    fn published_vectors() {
        let (keep, restart) = (vectors("traceparentContinue"), vectors("traceparentRestart"));
        assert!(keep.len() >= 8 && restart.len() >= 20);
        for values in keep {
            let trace = of(&values.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(trace.trace_id, KNOWN, "{values:?}");
            assert!(trace.sampled);
            assert_ne!(trace.parent_id, [0x12, 0x34, 0x56, 0x78, 0x90, 0x12, 0x34, 0x56], "{values:?}");
        }
        for values in restart {
            let trace = of(&values.iter().map(String::as_str).collect::<Vec<_>>());
            assert_ne!(trace.trace_id, KNOWN, "{values:?}");
        }
    }

    /// The published vectors of the header beside it: what is valid is kept, however many lines it came in; anything else is dropped
    /// whole, and so is all of it where the trace begins here.
    #[test]
    fn published_vectors_of_states() {
        let all: serde_json::Value =
            serde_json::from_str(include_str!("../tests/data/w3c_trace_context.json")).unwrap();
        let read = |parent: &str, values: &[String]| {
            let mut headers = HeaderMap::new();
            headers.append(TRACEPARENT, HeaderValue::from_str(parent).unwrap());
            for value in values {
                headers.append(TRACESTATE, HeaderValue::from_str(value).unwrap());
            }
            Trace::of(&headers).state
        };
        let (good, bad) = ("00-12345678901234567890123456789012-1234567890123456-01", "00-1-2-01");
        let vectors =
            |name: &str| -> Vec<Vec<String>> { serde_json::from_value(all["tracestate"][name].clone()).unwrap() };
        let (keep, discard) = (vectors("keep"), vectors("discardStrict"));
        assert!(keep.len() >= 6 && discard.len() >= 15);
        for values in keep {
            let found = read(good, &values);
            assert!(found.iter().any(|(key, value)| (&**key, &**value) == ("foo", "1")), "{values:?}");
            assert_eq!(
                found.len(),
                values.join(",").split(',').filter(|it| !it.trim().is_empty()).count(),
                "{values:?}"
            );
            assert!(read(bad, &values).is_empty());
        }
        for values in discard {
            assert!(read(good, &values).is_empty(), "{values:?}");
        }
        let members = |count: usize| (0..count).map(|it| format!("a{it}=1")).collect::<Vec<_>>();
        assert_eq!((read(good, &members(32)).len(), read(good, &members(33)).len()), (32, 0));
        // This ends, as it would not if all of them were compared.
        assert!(read(good, &[members(2_000_000).join(",")]).is_empty());
    }

    /// What is answered is itself a valid traceparent, with unknown flags dropped.
    #[test]
    fn what_is_answered_is_valid() {
        let trace = of(&["00-12345678901234567890123456789012-1234567890123456-ff"]);
        let text = trace.header();
        assert_eq!(parse(text.as_bytes()), Some((KNOWN, trace.parent_id, true)));
        assert!(text.to_str().unwrap().ends_with("-01"));
        assert!(
            of(&["00-12345678901234567890123456789012-1234567890123456-02"])
                .header()
                .to_str()
                .unwrap()
                .ends_with("-00")
        );
        assert_ne!(of(&[]).header(), of(&[]).header());
    }
}
