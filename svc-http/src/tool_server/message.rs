//! Messages to and from an MCP server, in both eras.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use svc_core::value::canonical::canonical;
use svc_core::value::json::{Json, Number, has_exact_numbers};

use super::Calling;
use super::session::Session;
use super::trouble::{RpcError, Trouble};
use crate::wire::mcp::{LEGACY, META_CAPABILITIES, META_VERSION, MODERN, spoken_by_server};

/// What an object begins with.
pub(crate) const OBJECT: char = '{';
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// How progress is told, and by what.
const PROGRESS: &str = "notifications/progress";
const TOKEN: &str = "progressToken";

/// How a server is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// After a handshake.
    Legacy {
        /// The version that was agreed on; none during the handshake.
        version: Option<&'static str>,
        /// The session that the server named.
        session: Option<Session>,
    },
    /// Every request for itself.
    Modern,
}

impl Era {
    pub(super) const fn has_session(&self) -> bool {
        matches!(self, Self::Legacy { session: Some(_), .. })
    }

    /// Notes that the server knows nothing of its session any more.
    pub(super) fn forget(&self) {
        if let Self::Legacy { session: Some(session), .. } = self {
            session.forget();
        }
    }
}

/// What is sent.
pub(super) struct Sent<'a> {
    /// The method.
    pub(super) method: &'static str,
    /// Its parameters: a JSON object without `_meta`.
    pub(super) params: &'a str,
    /// By what its client is to be told of its progress.
    pub(super) progress: Option<&'a Json>,
    /// What `mcp-name` says.
    pub(super) name: Option<&'a str>,
    /// Further headers.
    pub(super) more: &'a [(&'a str, &'a str)],
}

impl<'a> Sent<'a> {
    /// A message with these parameters and nothing beside.
    pub(super) const fn new(method: &'static str, params: &'a str) -> Self {
        Self { method, params, progress: None, name: None, more: &[] }
    }
}

/// A message of a server that matters.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The result that was asked for.
    Result(Box<RawValue>),
    /// The error in its place.
    Error(RpcError),
    /// A notification, as it came.
    Note(Box<RawValue>),
}

fn client() -> Value {
    json!({ "name": "svc", "title": "svc", "version": env!("CARGO_PKG_VERSION") })
}

/// The body of a message; one without id is a notification.
pub(super) fn body(era: &Era, sent: &Sent<'_>, id: Option<u64>) -> String {
    let mut meta = Vec::new();
    if let Era::Modern = era {
        let own = [(META_VERSION, json!(MODERN)), (META_CAPABILITIES, json!({})), (META_CLIENT, client())];
        meta.extend(own.iter().map(|(name, value)| format!("\"{name}\":{value}")));
    }
    // Its progress is told by its own number: a client's token is a text that nobody looks at, and stays here.
    meta.extend(id.filter(|_| sent.progress.is_some()).map(|it| format!("\"progressToken\":{it}")));
    let id = id.map(|it| format!("\"id\":{it},")).unwrap_or_default();
    let params = with_meta(sent.params, &meta.join(","));
    format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{}\",\"params\":{params}}}", sent.method)
}

/// The same parameters with these members of `_meta` before them. They are not read: numbers in them go on as they were
/// sent.
fn with_meta(params: &str, members: &str) -> String {
    let Some(rest) = params.strip_prefix(OBJECT).filter(|_| !members.is_empty()) else { return params.to_owned() };
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    format!("{{\"_meta\":{{{members}}}{comma}{rest}")
}

/// The headers of a message, beside those of every call.
pub(super) fn headers<'a>(era: &'a Era, sent: &Sent<'a>, name: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = Vec::new();
    match era {
        Era::Legacy { version, session } => {
            headers.extend(version.map(|it| ("mcp-protocol-version", it)));
            headers.extend(session.as_ref().map(|it| ("mcp-session-id", it.id())));
        }
        Era::Modern => {
            headers.push(("mcp-protocol-version", MODERN));
            headers.push(("mcp-method", sent.method));
            headers.extend(name.map(|it| ("mcp-name", it)));
            headers.extend(sent.more.iter().copied());
        }
    }
    headers
}

/// A text as a header has it: as it is, or where it could not be, in base64 between marks.
pub(super) fn header_text(text: &str) -> Cow<'_, str> {
    let plain = text.bytes().all(|it| (0x20..0x7f).contains(&it)) && text.trim() == text;
    if plain && !text.starts_with("=?base64?") {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(text)))
    }
}

/// The parameters of a call.
pub(super) fn call_params(call: &Calling<'_>) -> String {
    let name = json!(&*call.tool.name);
    format!("{{\"arguments\":{},\"name\":{name}}}", call.sent.get())
}

#[derive(Deserialize)]
struct SentCall<'a> {
    #[serde(borrow)]
    params: SentParams<'a>,
}

#[derive(Deserialize)]
struct SentParams<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// The arguments of a call as they are looked at and go on: in the one writing, so that nothing goes on that nobody was shown; to the
/// byte as the client sent them where readers could read a number of theirs in different ways.
pub(crate) fn arguments_as_looked_at(body: &[u8], arguments: &Json) -> Box<RawValue> {
    let sent = arguments_as_sent(body);
    if !is_read_alike(arguments, &sent) {
        return sent;
    }
    RawValue::from_string(canonical(arguments)).unwrap_or(sent)
}

/// Whether every reader reads the numbers of arguments alike.
pub(crate) fn is_read_alike(arguments: &Json, sent: &RawValue) -> bool {
    !arguments.has_unsafe_number() && has_exact_numbers(sent.get())
}

/// The arguments of a call as its client sent them.
fn arguments_as_sent(body: &[u8]) -> Box<RawValue> {
    let call = serde_json::from_slice::<SentCall<'_>>(body).ok();
    let sent = call.and_then(|it| it.params.arguments).filter(|it| it.get() != "null").map(ToOwned::to_owned);
    sent.unwrap_or_else(json_object)
}

fn json_object() -> Box<RawValue> {
    serde_json::value::to_raw_value(&json!({})).unwrap_or_default()
}

/// The parameters that a handshake begins with.
pub(super) fn initialize_params() -> String {
    json!({ "protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": client() }).to_string()
}

/// The version that a handshake agrees on.
pub(super) fn initialized(result: &str) -> Result<&'static str, Trouble> {
    let result: Value = serde_json::from_str(result).map_err(|_| Trouble::NotMcp("its handshake cannot be read"))?;
    let version = result.get("protocolVersion").and_then(Value::as_str);
    version.and_then(spoken_by_server).ok_or(Trouble::NotMcp("it speaks no version of MCP that is known here"))
}

/// Whether a server that can be discovered speaks the era without handshake.
pub(super) fn discovered(result: &str) -> Result<bool, Trouble> {
    let result: Value = serde_json::from_str(result).map_err(|_| Trouble::NotMcp("its answer cannot be read"))?;
    let versions: Vec<&str> = result
        .get("supportedVersions")
        .and_then(Value::as_array)
        .map(|it| it.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    if versions.contains(&MODERN) {
        Ok(true)
    } else if versions.iter().any(|it| spoken_by_server(it).is_some()) {
        Ok(false)
    } else {
        Err(Trouble::NotMcp("it speaks no version of MCP that is known here"))
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Reads a message of a server that was asked with this id; nothing where it is none that matters: an answer to something
/// else, or a question. Several in a list, which the revision 2025-03-26 alone has, are none.
pub(super) fn hear(text: &[u8], id: u64) -> Option<Heard> {
    let text = std::str::from_utf8(text).ok().filter(|it| it.trim_start().starts_with(OBJECT))?;
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    if envelope.method.is_some() {
        let is_note = envelope.id.is_none();
        return is_note.then(|| RawValue::from_string(text.trim().to_owned()).ok().map(Heard::Note)).flatten();
    }
    let is_ours = envelope.id.is_some_and(|it| it.get() == id.to_string());
    if let Some(error) = envelope.error {
        // What cannot be read has no id.
        let has_none = envelope.id.is_none_or(|it| matches!(it.get(), "null" | "\"\""));
        return (is_ours || has_none).then(|| Heard::Error(RpcError::of(error.get(), is_ours)));
    }
    let result = envelope.result.filter(|it| is_ours && it.get().starts_with(OBJECT))?;
    Some(Heard::Result(result.to_owned()))
}

/// What tells of the progress of a call, where a notification does: told by `theirs`, the token of its client, in the place of `own`, by
/// which the server tells it. All else of the parameters stays as it came.
pub(super) fn progress(note: &RawValue, own: u64, theirs: Option<&Json>) -> Option<Box<RawValue>> {
    let theirs = theirs?;
    let read = Json::parse(note.get().as_bytes()).ok()?;
    let is_progress = read.get("method").and_then(Json::as_str) == Some(PROGRESS) && read.get("id").is_none();
    let told = read.get("params").and_then(|it| it.get(TOKEN)).and_then(Json::as_int);
    if !is_progress || told.is_none_or(|it| u64::try_from(it) != Ok(own)) {
        return None;
    }
    let token = match theirs {
        Json::Number(Number::Int(number)) => number.to_string(),
        other => canonical(other),
    };
    let token = RawValue::from_string(token).ok()?;
    let mut params = serde_json::from_str::<Progress<'_>>(note.get()).ok()?.params;
    params.insert(TOKEN.to_owned(), &token);
    let params = serde_json::to_string(&params).ok()?;
    RawValue::from_string(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{PROGRESS}\",\"params\":{params}}}")).ok()
}

#[derive(Deserialize)]
struct Progress<'a> {
    #[serde(borrow)]
    params: BTreeMap<String, &'a RawValue>,
}

/// Whether a notification says that the server has other tools now.
pub(super) fn tells_of_other_tools(note: &RawValue) -> bool {
    let envelope = serde_json::from_str::<Envelope<'_>>(note.get());
    envelope.is_ok_and(|it| it.method.as_deref() == Some("notifications/tools/list_changed"))
}

/// Whether the answer to a request that was not taken says that this is because of its session.
pub(super) fn speaks_of_session(text: &[u8]) -> bool {
    String::from_utf8_lossy(text).to_ascii_lowercase().contains("session")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Answers to what was asked, errors and notifications are heard; questions, others' answers and noise are not.
    #[test]
    fn what_matters_is_heard() {
        let heard = |text: &str| match hear(text.as_bytes(), 7) {
            Some(Heard::Result(it)) => format!("result {it}"),
            Some(Heard::Error(it)) => format!("error {} {}", it.code, it.message),
            Some(Heard::Note(it)) => format!("note {it}"),
            None => "nothing".to_owned(),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{ "a": 1.50 }}"#, r#"result { "a": 1.50 }"#),
            (r#"{"jsonrpc":"2.0","id":8,"result":{}}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","id":7,"result":[]}"#, "nothing"),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"a\nb"}}"#, "error -1 a\nb"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-2}}"#, "error -2 no message"),
            (r#"{"jsonrpc":"2.0","id":"","error":{"code":-3}}"#, "error -3 no message"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#, "nothing"),
            (r#"{"method":"notifications/progress"}"#, r#"note {"method":"notifications/progress"}"#),
            ("[]", "nothing"),
            (r#"[7,null,{"a":1},null]"#, "nothing"),
            (r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#, "nothing"),
            ("", "nothing"),
        ] {
            assert_eq!(heard(text), expected, "{text}");
        }
    }

    /// Progress is that of the call itself, told by the number that it went out with, and a notification; a client hears it by its own
    /// token.
    #[test]
    fn progress_is_told_by_the_calls_own_token() {
        let tells = |theirs: &str, note: &str| {
            let theirs = Json::parse(theirs.as_bytes()).unwrap();
            let told = progress(&RawValue::from_string(note.to_owned()).unwrap(), 7, Some(&theirs));
            told.map(|it| it.get().to_owned())
        };
        let note = |token: &str, more: &str| {
            format!(
                r#"{{"x":1,"jsonrpc":"2.0",{more}"method":"notifications/progress","params":{{"progressToken":{token},"progress":0.50}}}}"#
            )
        };
        for theirs in ["\"p\\n\"", "9007199254740993", "-7", "7"] {
            let told = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progress":0.50,"progressToken":{theirs}}}}}"#
            );
            assert_eq!(tells(theirs, &note("7", "")), Some(told));
        }
        assert_eq!(tells("\"p\"", &note("\"p\"", "")), None, "it knows nothing of that");
        assert_eq!(tells("8", &note("8", "")), None);
        assert_eq!(tells("7", &note("\"7\"", "")), None);
        assert_eq!(tells("7", &note("7.0", "")), None);
        assert_eq!(tells("7", &note("7", "\"id\":null,")), None);
        assert_eq!(tells("7", r#"{"method":"notifications/message","params":{"progressToken":7}}"#), None);
        let unasked = RawValue::from_string(note("7", "")).unwrap();
        assert!(progress(&unasked, 7, None).is_none(), "nobody wants it");
    }

    /// Whoever speaks the first revision is spoken to in it; one that nobody knows is not.
    #[test]
    fn a_handshake_agrees_on_what_the_server_speaks() {
        let agreed = |version: &str| initialized(&json!({ "protocolVersion": version }).to_string());
        for version in [LEGACY[0], LEGACY[2], "2024-11-05"] {
            assert_eq!(agreed(version).unwrap(), version);
            assert_eq!(discovered(&json!({ "supportedVersions": [version] }).to_string()), Ok(false));
        }
        for version in ["2024-11-04", "", MODERN] {
            assert!(agreed(version).is_err(), "{version}");
        }
    }

    /// A request of the stateless era says what it is in its headers and its parameters; one before does neither.
    #[test]
    fn each_era_is_spoken_as_it_is() {
        let sent = Sent::new("tools/list", r#"{"cursor":"a"}"#);
        let modern: Value = serde_json::from_str(&body(&Era::Modern, &sent, Some(1))).unwrap();
        assert_eq!(modern["params"]["cursor"], "a");
        assert_eq!(modern["params"]["_meta"][META_VERSION], MODERN);
        assert_eq!(modern["params"]["_meta"][META_CAPABILITIES], json!({}));
        assert_eq!(
            headers(&Era::Modern, &sent, None),
            [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")]
        );
        let era = Era::Legacy { version: Some(LEGACY[0]), session: Some(Session::with_nobody("s")) };
        assert_eq!(
            body(&era, &sent, None),
            r#"{"jsonrpc":"2.0","method":"tools/list","params":{"cursor":"a"}}"#,
            "a notification has no id"
        );
        assert_eq!(headers(&era, &sent, None), [("mcp-protocol-version", LEGACY[0]), ("mcp-session-id", "s")]);
    }

    /// What a tool is given goes on to the byte in both eras, with what is said of the request itself before it.
    #[test]
    fn arguments_go_on_to_the_byte() {
        let params = r#"{"arguments":{"n":12345678901234567890123, "f":1.10},"name":"a"}"#;
        let token = Json::parse(b"\"p\"").unwrap();
        let sent = Sent { method: "tools/call", params, progress: Some(&token), name: Some("a"), more: &[] };
        for era in [Era::Modern, Era::Legacy { version: Some(LEGACY[0]), session: None }] {
            let text = body(&era, &sent, Some(1));
            assert!(text.ends_with(&format!(",{}}}", params.strip_prefix('{').unwrap())), "{text}");
            let read: Value = serde_json::from_str(&text).unwrap();
            let meta = &read["params"]["_meta"];
            assert_eq!((&meta["progressToken"], meta[META_VERSION].is_string()), (&json!(1), era == Era::Modern));
        }
        let plain = Sent { progress: None, params: "{}", ..sent };
        let read: Value = serde_json::from_str(&body(&Era::Modern, &plain, Some(1))).unwrap();
        assert_eq!(read["params"].as_object().unwrap().keys().collect::<Vec<_>>(), ["_meta"]);
    }

    /// What no header can hold goes in base64, and what looks like that too.
    #[test]
    fn a_header_holds_any_text() {
        assert_eq!(header_text("read.one-2"), "read.one-2");
        assert_eq!(header_text("é"), "=?base64?w6k=?=");
        assert_eq!(header_text(" a"), "=?base64?IGE=?=");
        assert!(header_text("=?base64?YQ==?=").starts_with("=?base64?PT9"));
    }
}
