//! What providers say when they refuse, cut to what may be shown; and svc's own word where a stream breaks.

use std::borrow::Cow;

use super::doc::{Form, Tape, Value};
use super::finish::tells_failure;
use super::write::Out;
use crate::state::gateway::Dialect;
use crate::value::secret::Secret;

/// So many characters of a provider's message are shown.
const SHOWN_MAX: usize = 300;
/// A word of so many characters of letters and digits mixed may be a key.
const KEY_MIN: usize = 20;
/// So much of a provider's error is looked at, in bytes.
const LOOKED_AT_MAX: usize = 64 * 1024;
/// What stands in the place of what may be a key.
const LEFT_OUT: &str = "[left out]";

/// Statuses that say that a request is at fault.
const FAULTS: [u16; 3] = [400, 413, 422];
/// Codes of errors that are told as the request's, and are the account's or the model's.
const NOT_AT_FAULT: [&str; 8] = [
    "account_deactivated",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_quota",
    "invalid_api_key",
    "model_not_found",
    "rate_limit_exceeded",
    "unsupported_country_region_territory",
];

/// The code of an error that says of a prompt that it is too long.
const TOO_LONG: &str = "context_length_exceeded";
/// What errors say that have no such code, each provider in its own words, in small letters.
const TOO_LONG_WORDS: [&str; 10] = [
    TOO_LONG,
    "prompt is too long",
    "input is too long",
    "maximum context length",
    "maximum prompt length",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the model's context",
    "exceed the configured limit",
    "input token count",
];

/// Whether an error says that what goes in is more than the model takes, by its code or its message.
#[must_use]
pub fn is_too_long(code: Option<&str>, message: &str) -> bool {
    let message = message.to_lowercase();
    code == Some(TOO_LONG) || TOO_LONG_WORDS.iter().any(|it| message.contains(it))
}

/// A provider's refusal: what may be shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderError {
    /// What it says, without anything that looks like a key, at most 300 characters.
    pub message: Box<str>,
    /// Its own word for the kind of error: its type, else its code.
    pub kind: Option<Box<str>>,
    /// Its code, where that is a word: clients branch on it.
    pub code: Option<Box<str>>,
    /// The field that it blames, where it names one.
    pub field: Option<Box<str>>,
    /// The status with which it refuses the request, where it says that this is at fault: what it answered with may say otherwise.
    pub fault: Option<u16>,
}

impl ProviderError {
    /// Reads the body of an answer that is an error, in whatever shape it came.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let none = |what: &str| Self { message: what.into(), kind: None, code: None, field: None, fault: None };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return none("it said nothing");
        }
        let start = bytes.get(..LOOKED_AT_MAX).unwrap_or(bytes);
        let text = String::from_utf8_lossy(start);
        if text.trim_start().starts_with('<') {
            return none("it answered with a page for people");
        }
        match Tape::of(&text) {
            Ok(tape) => Self::of(tape.root(&text), &[]).unwrap_or_else(|| none("it did not say why")),
            Err(_) => none(&shown(&text)),
        }
    }

    /// The error that an answer of this shape with status 200, or an event of a stream, tells in the place of an answer or within
    /// one: at its root, in whatever form, or on a choice of it.
    pub(super) fn told(shape: Dialect, root: Value<'_>, hidden: &[Secret<String>]) -> Option<Self> {
        if tells_error(root) || is_error(shape, root) {
            return Some(Self::named(root, hidden));
        }
        let has_failed = |it: &Value<'_>| it.text_of("finish_reason").is_some_and(|it| tells_failure(&it));
        let choice = root.get("choices")?.items().find(|it| tells_error(*it) || has_failed(it))?;
        let silent = || Self { kind: choice.text_of("finish_reason").map(|it| shown(&it).into()), ..Self::silent() };
        Some(choice.given("error").and_then(|_| Self::of(choice, hidden)).unwrap_or_else(silent))
    }

    /// The error that something is which says so by its name, such as that of its event.
    pub(super) fn named(root: Value<'_>, hidden: &[Secret<String>]) -> Self {
        Self::of(root, hidden).unwrap_or_else(Self::silent)
    }

    /// An error that says nothing.
    fn silent() -> Self {
        Self::read(b"{}")
    }

    /// An error in either shape: `{error: {…}}`, `{type: "error", error: {…}}`, `{error: "…"}`, `{message: "…"}`,
    /// `{detail: …}`, or a list that holds one.
    ///
    /// What it quotes of `hidden` is left out too, the longest first.
    pub(super) fn of(root: Value<'_>, hidden: &[Secret<String>]) -> Option<Self> {
        if let Some(first) = root.items().next() {
            return Self::of(first, hidden);
        }
        let error = root.given("error").unwrap_or(root);
        let message = message_of(root)?;
        // That it is an error is no kind of one.
        let told = |name: &str| error.text_of(name).filter(|it| !error.is_text() && it != "error");
        let word = |name: &str| told(name).map(|it| shown(&without(&it, hidden)).into());
        Some(Self {
            message: shown(&without(&message, hidden)).into(),
            kind: word("type").or_else(|| word("code")),
            code: word("code"),
            field: word("param"),
            fault: fault(error),
        })
    }
}

/// The status with which an error refuses its request, where it says that this is at fault: by a number, else by its type. Some types
/// are those of other errors too, which their code tells apart.
fn fault(error: Value<'_>) -> Option<u16> {
    let number = ["code", "status", "status_code"].iter().find_map(|it| {
        let told = error.given(it)?;
        told.integer().or_else(|| told.text()?.parse().ok())
    });
    if let Some(number) = number {
        return u16::try_from(number).ok().filter(|it| FAULTS.contains(it));
    }
    let code = error.text_of("code").unwrap_or_default();
    match &*error.text_of("type").unwrap_or_default() {
        _ if NOT_AT_FAULT.contains(&&*code) => None,
        "invalid_request_error" => Some(400),
        "request_too_large" => Some(413),
        _ => (code == TOO_LONG).then_some(400),
    }
}

/// Whether an answer, an event or a choice tells an error. Beside what was answered one that says nothing is none: some providers
/// have the member always.
fn tells_error(place: Value<'_>) -> bool {
    const ANSWERED: [&str; 5] = ["choices", "content", "content_block", "delta", "message"];
    let Some(error) = place.given("error") else { return false };
    let is_whole = |it: &str| place.get(it).is_some_and(|it| matches!(it.form(), Form::Object | Form::List));
    let says_nothing = match error.form() {
        Form::Null | Form::Bool(false) => true,
        Form::Plain | Form::Escaped => error.is_empty_text(),
        Form::Object => error.members().next().is_none(),
        Form::List => error.items().next().is_none(),
        Form::Bool(true) | Form::Number => false,
    };
    !(says_nothing && ANSWERED.into_iter().any(is_whole))
}

/// Whether an answer or an event of this shape is an error by what else it has: where it has nothing of an answer, whatever speaks
/// to people does.
fn is_error(shape: Dialect, root: Value<'_>) -> bool {
    let speaks = || ["message", "detail"].into_iter().any(|it| root.given(it).is_some());
    match shape {
        Dialect::Chat => {
            let answers = root.get("choices").is_some_and(|it| it.items().next().is_some());
            !answers && root.given("usage").is_none() && (root.has("object", "error") || speaks())
        }
        Dialect::Messages => {
            let answers = root.given("type").is_some() || root.given("content").is_some();
            root.has("type", "error") || (!answers && speaks())
        }
    }
}

/// What an error says, as it says it. Whoever shows it takes out what may be a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What it says to people, with the place that it blames where it lists its faults with their places.
    pub message: Option<String>,
    /// Its code, where that is a word.
    pub code: Option<String>,
    /// The field that it blames, where it names one.
    pub field: Option<String>,
    /// The status with which it refuses the request, where it says that this is at fault.
    pub fault: Option<u16>,
}

/// What the body of an error says in whichever shape; nothing where it is no JSON or says nothing.
#[must_use]
pub fn said(body: &[u8]) -> Said {
    let Ok(text) = std::str::from_utf8(body) else { return Said::default() };
    let Ok(tape) = Tape::of(text) else { return Said::default() };
    let root = tape.root(text);
    let root = root.items().next().unwrap_or(root);
    let place = |it: Value<'_>| {
        let steps = it.get("loc")?.items().map(|it| it.text().unwrap_or_else(|| it.raw().into())).collect::<Vec<_>>();
        (!steps.is_empty()).then(|| format!(" (`{}`)", steps.join(".")))
    };
    let place = fault_of(root).and_then(place).unwrap_or_default();
    let error = root.given("error").unwrap_or(root);
    let word = |name: &str| error.text_of(name).filter(|it| !it.is_empty()).map(Cow::into_owned);
    Said {
        message: message_of(root).filter(|it| !it.is_empty()).map(|it| format!("{it}{place}")),
        code: word("code"),
        field: word("param"),
        fault: fault(error),
    }
}

/// The message of an error, in any of the shapes that [`ProviderError::of`] reads.
fn message_of(root: Value<'_>) -> Option<Cow<'_, str>> {
    let error = root.given("error").unwrap_or(root);
    if error.is_text() {
        return error.text();
    }
    let told = ["message", "detail", "error_description"].iter().find_map(|it| error.text_of(it));
    told.or_else(|| fault_of(root)?.text_of("msg"))
}

/// The first of the faults that an error lists.
fn fault_of(root: Value<'_>) -> Option<Value<'_>> {
    root.get("detail").and_then(|it| it.items().next())
}

/// A text without these secrets, however short they are.
fn without(text: &str, hidden: &[Secret<String>]) -> String {
    let hidden = hidden.iter().map(Secret::expose).filter(|it| !it.is_empty());
    hidden.fold(text.to_owned(), |text, secret| text.replace(secret, LEFT_OUT))
}

/// A part of a stream that goes on as it came, without those of these secrets that look like keys: what else is kept secret, such as
/// the address of a site, an answer may well say.
pub(super) fn without_keys<'a>(raw: &'a [u8], hidden: &[Secret<String>]) -> Cow<'a, [u8]> {
    if hidden.is_empty() {
        return Cow::Borrowed(raw);
    }
    let text = String::from_utf8_lossy(raw);
    let mut quoted = hidden.iter().map(Secret::expose).filter(|it| text.contains(&***it) && may_be_key(it)).peekable();
    if quoted.peek().is_none() {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(quoted.fold(text.to_string(), |text, secret| text.replace(secret, LEFT_OUT)).into_bytes())
}

/// A provider's text on one line, without what may be a key, cut to [`SHOWN_MAX`].
fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut left = SHOWN_MAX;
    for word in text.split(|it: char| it.is_whitespace() || it.is_control()).filter(|it| !it.is_empty()) {
        let word = if may_be_key(word) { LEFT_OUT } else { word };
        if !out.is_empty() {
            out.push(' ');
        }
        match word.char_indices().nth(left) {
            Some((cut, _)) => {
                out.push_str(word.get(..cut).unwrap_or_default());
                out.push('…');
                return out;
            }
            None => out.push_str(word),
        }
        left = left.saturating_sub(word.chars().count() + 1);
        if left == 0 {
            out.push('…');
            return out;
        }
    }
    out
}

/// Whether a word may hold a key: begins like one, is partly starred out, or is long and mixes letters and digits.
fn may_be_key(word: &str) -> bool {
    const PREFIXES: &[&str] = &["sk-", "sk_", "pk-", "gsk_", "xai-", "AIza", "AKIA", "ghp_", "Bearer"];
    word.split(|it: char| !(it.is_ascii_alphanumeric() || "-_*.".contains(it))).any(|piece| {
        let mixed = piece.bytes().any(|it| it.is_ascii_digit()) && piece.bytes().any(|it| it.is_ascii_alphabetic());
        let begins = PREFIXES.iter().any(|it| piece.starts_with(it)) && piece.len() > 8;
        let url = piece.contains('.') && piece.split('.').all(|it| it.len() < KEY_MIN);
        let model =
            piece.split(['-', '.', '_']).all(|it| it.len() < 16 || it.bytes().all(|it| it.is_ascii_alphabetic()));
        begins || piece.contains("***") || (piece.len() >= KEY_MIN && mixed && !url && !model)
    })
}

/// What an event says of an error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    kind: &'a str,
    message: &'a str,
    code: Option<&'a str>,
    field: Option<&'a str>,
}

impl<'a> Told<'a> {
    /// An error of svc's own.
    pub(super) const fn own(kind: &'a str, message: &'a str) -> Self {
        Self { kind, message, code: None, field: None }
    }

    /// A provider's error for a client of this shape, of this kind where it names none. Its own word is the code then.
    pub(super) fn by(error: &'a ProviderError, kind: &'a str, client: Dialect) -> Self {
        let code = error.code.as_deref();
        Self {
            kind: error.kind.as_deref().map_or(kind, |it| kind_in(client, it, code)),
            message: &error.message,
            code: code.or(error.kind.as_deref()),
            field: error.field.as_deref(),
        }
    }
}

/// What a kind of error of the one API is called in that of the client, which clients go by in what they ask again. A word that
/// neither has stays as it is.
fn kind_in<'a>(client: Dialect, kind: &'a str, code: Option<&str>) -> &'a str {
    match (client, kind) {
        (Dialect::Chat, "api_error" | "overloaded_error" | "timeout_error") => "server_error",
        (Dialect::Messages, "server_error") if code.is_some_and(|it| it.contains("overloaded")) => "overloaded_error",
        (Dialect::Messages, "server_error" | "internal_server_error" | "internal_error") => "api_error",
        (Dialect::Messages, "service_unavailable" | "service_unavailable_error") => "overloaded_error",
        (Dialect::Messages, "requests" | "tokens" | "rate_limit_exceeded" | "insufficient_quota") => "rate_limit_error",
        (Dialect::Chat | Dialect::Messages, _) => kind,
    }
}

/// Writes the event that tells a client its stream broke. Nothing follows it, and it is no clean end.
pub(super) fn write_event(out: &mut Vec<u8>, client: Dialect, told: Told<'_>) {
    let mut json = Out::onto(std::mem::take(out));
    match client {
        Dialect::Chat => {
            json.bytes("data: ");
            json.object(|it| {
                it.name("error").object(|it| {
                    it.name("message").text(told.message);
                    it.name("type").text(told.kind);
                    match told.field {
                        Some(field) => it.name("param").text(field),
                        None => it.name("param").null(),
                    }
                    it.name("code").text(told.code.unwrap_or(told.kind));
                });
            });
        }
        Dialect::Messages => {
            json.bytes("event: error\ndata: ");
            json.object(|it| {
                it.name("type").text("error");
                it.name("error").object(|it| {
                    it.name("type").text(told.kind);
                    it.name("message").text(told.message);
                });
            });
        }
    }
    json.bytes("\n\n");
    *out = json.into_bytes();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A kind that the client's API has is told to it, and the provider's own word beside it where there is room.
    #[test]
    fn a_kind_is_the_clients() {
        let told = |client, error: &str| {
            let mut out = Vec::new();
            write_event(&mut out, client, Told::by(&ProviderError::read(error.as_bytes()), "upstream_failure", client));
            String::from_utf8(out).unwrap()
        };
        let busy = r#"{"error":{"type":"server_error","code":"server_overloaded","message":"m"}}"#;
        for (client, error, wants) in [
            (
                Dialect::Chat,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
                r#""type":"server_error","param":null,"code":"overloaded_error""#,
            ),
            (Dialect::Chat, busy, r#""type":"server_error","param":null,"code":"server_overloaded""#),
            (Dialect::Messages, busy, r#""type":"overloaded_error""#),
            (Dialect::Messages, r#"{"error":{"type":"server_error","message":"m"}}"#, r#""type":"api_error""#),
            (
                Dialect::Messages,
                r#"{"error":{"type":"insufficient_quota","message":"m"}}"#,
                r#""type":"rate_limit_error""#,
            ),
            (Dialect::Messages, r#"{"error":{"type":"of_its_own","message":"m"}}"#, r#""type":"of_its_own""#),
        ] {
            assert!(told(client, error).contains(wants), "{client:?} {error}: {}", told(client, error));
        }
    }

    /// Both shapes and the strays of both are read; what may be a key is not shown.
    #[test]
    fn an_error_is_told_without_keys() {
        for (body, message, kind) in [
            (
                r#"{"error":{"message":"Bad thing","type":"invalid_request_error","param":"messages","code":null}}"#,
                "Bad thing",
                Some("invalid_request_error"),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "Overloaded",
                Some("overloaded_error"),
            ),
            (r#"{"error":"plain"}"#, "plain", None),
            (r#"{"message":"top"}"#, "top", None),
            (r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#, "field required", None),
            (r#"[{"error":{"code":400,"message":"listed","status":"INVALID_ARGUMENT"}}]"#, "listed", None),
            (
                r#"{"error":{"message":"Incorrect API key provided: sk-proj-********abcd. See https://x.example/y"}}"#,
                "Incorrect API key provided: [left out] See https://x.example/y",
                None,
            ),
            (r#"{"error":{"message":"token a1B2c3D4e5F6g7H8i9J0k1L2 is bad"}}"#, "token [left out] is bad", None),
            (
                r#"{"error":{"message":"claude-sonnet-4-5-20250929 is busy"}}"#,
                "claude-sonnet-4-5-20250929 is busy",
                None,
            ),
            ("<html>502</html>", "it answered with a page for people", None),
            ("upstream  connect\nerror", "upstream connect error", None),
            ("", "it said nothing", None),
            ("{}", "it did not say why", None),
        ] {
            let error = ProviderError::read(body.as_bytes());
            assert_eq!((&*error.message, error.kind.as_deref()), (message, kind), "{body}");
        }
        let long = ProviderError::read("é ".repeat(9_000).as_bytes());
        assert!(long.message.chars().count() <= SHOWN_MAX + 1, "{}", long.message.chars().count());
        assert!(ProviderError::read(&[0xFF, 0xFE, b'x']).message.ends_with('x'));
    }

    /// An error event is one event of the client's grammar.
    #[test]
    fn the_event_of_a_break_is_in_the_clients_shape() {
        let mut out = b"data: {}\n\n".to_vec();
        write_event(&mut out, Dialect::Chat, Told::own("upstream_failure", "cut \"off\""));
        write_event(&mut out, Dialect::Messages, Told::own("upstream_failure", "cut"));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "data: {}\n\ndata: {\"error\":{\"message\":\"cut \\\"off\\\"\",\"type\":\"upstream_failure\",\"param\":null,\"code\":\"upstream_failure\"}}\n\n\
             event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"upstream_failure\",\"message\":\"cut\"}}\n\n"
        );
    }

    /// A client branches on the code of its provider, and on the field that it blames.
    #[test]
    fn the_event_of_an_error_has_its_code_and_its_field() {
        let body = r#"{"error":{"message":"slow","type":"tokens","param":"messages","code":"rate_limit_exceeded"}}"#;
        let error = ProviderError::read(body.as_bytes());
        let mut out = Vec::new();
        write_event(&mut out, Dialect::Chat, Told::by(&error, "upstream_failure", Dialect::Chat));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "data: {\"error\":{\"message\":\"slow\",\"type\":\"tokens\",\"param\":\"messages\",\"code\":\"rate_limit_exceeded\"}}\n\n"
        );
    }

    /// A prompt that is too long is known in each provider's words, and nothing else is taken for one.
    #[test]
    fn a_prompt_that_is_too_long_is_known() {
        for said in [
            "prompt is too long: 210000 tokens > 200000 maximum",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
            "Your input exceeds the context window of this model.",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            "the request exceeds the available context size (4096 tokens)",
            "Input is too long for requested model.",
            "This request exceeds the model's context window of 8192 tokens.",
            "Input length and max_tokens exceed the configured limit",
        ] {
            assert!(is_too_long(None, said), "{said}");
        }
        assert!(is_too_long(Some("context_length_exceeded"), ""));
        for said in ["", "max_tokens is too large: 99999", "the string is too long", "maximum context"] {
            assert!(!is_too_long(Some("invalid_request_error"), said), "{said}");
        }
    }

    /// Whose doing an error is that came with status 200: by its number, else by its type, unless its code says that it is the
    /// account's.
    #[test]
    fn an_error_says_whether_the_request_is_at_fault() {
        for (error, fault) in [
            (r#"{"type":"invalid_request_error","code":"context_length_exceeded"}"#, Some(400)),
            (r#"{"type":"invalid_request_error","code":null}"#, Some(400)),
            (r#"{"type":"request_too_large"}"#, Some(413)),
            (r#"{"type":null,"code":"context_length_exceeded"}"#, Some(400)),
            (r#"{"type":"BadRequestError","code":400}"#, Some(400)),
            (r#"{"code":"422"}"#, Some(422)),
            (r#"{"code":400,"status":"INVALID_ARGUMENT"}"#, Some(400)),
            (r#"{"type":"invalid_request_error","code":429}"#, None),
            (r#"{"type":"invalid_request_error","code":"invalid_api_key"}"#, None),
            (r#"{"type":"authentication_error","code":"invalid_request_error"}"#, None),
            (r#"{"type":"overloaded_error"}"#, None),
            (r#"{"type":"server_error","code":"-400"}"#, None),
        ] {
            let body = format!(r#"{{"error":{}}}"#, error.replacen('{', r#"{"message":"m","#, 1));
            assert_eq!(ProviderError::read(body.as_bytes()).fault, fault, "{body}");
            assert_eq!(said(body.as_bytes()).fault, fault, "{body}");
        }
    }
}
