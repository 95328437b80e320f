//! The question that a call of a tool becomes (CONTRACT part 4, "The hook").

use serde::Serialize;
use svc_core::value::canonical::canonical;
use svc_core::value::digest::Digest;
use svc_core::value::hidden::is_hidden;
use svc_core::value::json::{Json, Number};

use super::event::Event;
use super::transcript::Told;
use super::{Refused, plain};

/// Bytes of a text within the input that is sent as it is.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Characters that are sent of a longer one.
const HEAD_CHARS: usize = 512;
/// Bytes of the whole input that are sent; of a larger one its digest is.
const INPUT_BYTES_MAX: usize = 64 * 1024;
/// Characters of what a person reads of the input.
const GIST_CHARS: usize = 300;
/// Characters of an idempotency key.
const KEY_CHARS_MAX: usize = 128;
/// An input that says nothing.
const EMPTY: &str = "{}";
/// The members of an input that say most about it, the most telling first. What the agent itself says that the call is for is none.
const TELLING: [&str; 12] = [
    "command",
    "cmd",
    "file_path",
    "notebook_path",
    "path",
    "absolute_path",
    "file",
    "url",
    "uri",
    "query",
    "pattern",
    "prompt",
];

/// A question to the gate.
#[derive(Debug)]
pub(crate) struct Action<'a> {
    /// The digest of the whole input, as the answer has to name it.
    pub(crate) input_digest: String,
    event: &'a Event,
    told: &'a [Told],
    /// What is sent of the input, where it is sent.
    input: Option<Json>,
    details: Option<Json>,
    input_bytes: usize,
    summary: String,
}

/// By what the gate knows a question again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// By the client's id of the call, and where that came again by how many questions it has stood for before this one.
    Turn(u32),
    /// By that id and what ran instead of what was asked about by it.
    Instead,
    /// By nothing: it is a new one.
    Fresh,
}

impl<'a> Action<'a> {
    /// The question about a call in a context of which this was told.
    pub(crate) fn of(event: &'a Event, told: &'a [Told]) -> Self {
        let whole = canonical(&event.input);
        let input_digest = format!("sha256:{}", Digest::of(&whole));
        let mut short = event.input.clone();
        shorten(&mut short);
        let fits = !short.has_unsafe_number() && canonical(&short).len() <= INPUT_BYTES_MAX;
        let summary = summary(event, &whole, fits);
        let (input, details) = (fits.then_some(short), details(event));
        Self { input_digest, event, told, input, details, input_bytes: whole.len(), summary }
    }

    /// Its body under a key.
    ///
    /// # Errors
    /// [`Refused`] where it cannot be written, which is a fault of svc.
    pub(crate) fn body(&self, by: Key) -> Result<String, Refused> {
        let body = Body {
            kind: "tool.call",
            summary: &self.summary,
            tool: Tool {
                name: &self.event.tool,
                server: self.event.server(),
                input: self.input.as_ref(),
                input_digest: &self.input_digest,
                input_bytes: self.input_bytes,
            },
            details: self.details.as_ref(),
            session: Session { id: &self.event.session },
            provenance: self
                .told
                .iter()
                .map(|it| Source { source: &it.source, detail: plain(&it.detail, 400) })
                .collect(),
            idempotency_key: self.key(by),
        };
        serde_json::to_string(&body).map_err(|_| Refused::new("the question cannot be written"))
    }

    fn key(&self, by: Key) -> Option<String> {
        let call = self.event.call.as_deref();
        let Event { session, tool, .. } = self.event;
        let cwd = self.event.cwd.as_deref().unwrap_or_default();
        match by {
            Key::Turn(0) => call.map(key),
            Key::Turn(turn) => call.map(|it| {
                let parts = [it, session, tool, &self.input_digest, cwd];
                key(&format!("{turn}\n{}", parts.map(|it| format!("{}:{it}", it.len())).concat()))
            }),
            Key::Instead => Some(key(&format!("{}\n{tool}\n{}\n{cwd}", call.unwrap_or_default(), self.input_digest))),
            Key::Fresh => None,
        }
    }
}

/// The client's id of the call, or its digest where it is no key.
fn key(call: &str) -> String {
    let fits = call.chars().count() <= KEY_CHARS_MAX && !call.contains(char::is_control);
    if fits { call.to_owned() } else { format!("sha256:{}", Digest::of(call)) }
}

/// What approvers are told beside the call, and what a yes is good for: the same words do something else elsewhere.
pub(crate) fn details(event: &Event) -> Option<Json> {
    let mut cwd = Json::Text(event.cwd.clone()?);
    shorten(&mut cwd);
    Some(Json::Object(vec![("cwd".to_owned(), cwd)]))
}

/// What a person is told that the call is: the most telling member of its input, else all of it as it is written. Who gives a tool of a
/// server a member of these names may mean anything by it, so of those it is all; and where nobody is shown the input it is both.
fn summary(event: &Event, input: &str, is_sent: bool) -> String {
    let has_telling = !event.is_of_mcp();
    let said = TELLING.iter().filter(|_| has_telling).filter_map(|name| event.input.get(name).and_then(Json::as_str));
    let telling = said.map(gist).find(|it| !it.is_empty());
    let gist = match (telling, is_sent) {
        (Some(telling), true) => telling,
        (Some(telling), false) => gist(&format!("{} {input}", plain(&telling, GIST_CHARS / 2))),
        (None, _) if input == EMPTY => return event.tool.clone(),
        (None, _) => gist(input),
    };
    format!("{}: {gist}", event.tool)
}

/// The beginning of a text in one line; of blanks and signs that nobody sees in a row one blank is left, so that they keep nothing out of
/// sight. What joins signs, or chooses how one is shown, is no blank.
fn gist(text: &str) -> String {
    let joins = |it: char| matches!(it, '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}');
    let words = text.split(|it: char| it.is_whitespace() || is_hidden(it) && !joins(it)).filter(|it| !it.is_empty());
    plain(&words.collect::<Vec<_>>().join(" "), GIST_CHARS)
}

/// Puts digest, size and head in the place of every long text.
fn shorten(value: &mut Json) {
    match value {
        Json::Text(text) if text.len() > TEXT_BYTES_MAX => {
            let bytes = i64::try_from(text.len()).unwrap_or(i64::MAX);
            *value = Json::Object(vec![
                ("sha256".to_owned(), Json::Text(Digest::of(text.as_bytes()).to_string())),
                ("bytes".to_owned(), Json::Number(Number::Int(bytes))),
                ("head".to_owned(), Json::Text(text.chars().take(HEAD_CHARS).collect())),
            ]);
        }
        Json::List(items) => items.iter_mut().for_each(shorten),
        Json::Object(members) => members.iter_mut().for_each(|(_, value)| shorten(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => {}
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    summary: &'a str,
    tool: Tool<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a Json>,
    session: Session<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    provenance: Vec<Source<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a Json>,
    input_digest: &'a str,
    input_bytes: usize,
}

#[derive(Serialize)]
struct Session<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct Source<'a> {
    source: &'a str,
    detail: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use serde_json::{Value, json};
    use svc_core::value::spelled::spelled;

    use super::*;

    fn asked(input: &Value) -> Value {
        asked_of("Write", &input.to_string())
    }

    fn asked_of(tool: &str, input: &str) -> Value {
        let said = format!(
            r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"{tool}","tool_use_id":"t","tool_input":{input}}}"#
        );
        let event = Event::read(&spelled(said.as_bytes()).unwrap(), None).unwrap();
        let told = [Told { source: "user".to_owned(), detail: String::new() }];
        serde_json::from_str(&Action::of(&event, &told).body(Key::Turn(0)).unwrap()).unwrap()
    }

    /// A question has the client's session, its id of the call as the key, and where the context came from.
    #[test]
    fn a_call_becomes_a_question() {
        let asked = asked(&json!({ "file_path": "/p/a.txt", "content": "x" }));
        assert_eq!(asked["type"], "tool.call");
        assert_eq!(asked["summary"], "Write: /p/a.txt");
        assert_eq!((&asked["session"]["id"], &asked["idempotencyKey"]), (&json!("s"), &json!("t")));
        assert_eq!(asked["provenance"], json!([{ "source": "user", "detail": "" }]));
        assert_eq!(asked["tool"]["input"], json!({ "file_path": "/p/a.txt", "content": "x" }));
        let whole = r#"{"content":"x","file_path":"/p/a.txt"}"#;
        assert_eq!(asked["tool"]["inputDigest"], format!("sha256:{}", Digest::of(whole)));
        assert_eq!(asked["tool"]["inputBytes"], whole.len());
    }

    /// A text of 4 KiB is sent, a longer one becomes digest, size and head at any depth, and cuts no character.
    #[test]
    fn long_texts_become_digests() {
        let (fits, long) = ("x".repeat(4_096), "é".repeat(2_049));
        let asked = asked(&json!({ "content": long, "edits": [{ "old": fits, "new": long }] }));
        let short = json!({ "sha256": Digest::of(&long).to_string(), "bytes": 4_098, "head": "é".repeat(512) });
        assert_eq!(asked["tool"]["input"]["content"], short);
        assert_eq!(asked["tool"]["input"]["edits"], json!([{ "old": fits, "new": short }]));
    }

    /// An input that is too large is sent as its digest alone, and told as it begins, whatever it says of itself.
    #[test]
    fn an_input_that_the_gate_does_not_take_is_its_digest() {
        let many: Vec<String> = (0..40).map(|_| "x".repeat(4_000)).collect();
        let asked = asked(&json!({ "edits": many, "command": "ls" }));
        assert!(asked["tool"].get("input").is_none());
        assert!(asked["tool"]["inputDigest"].as_str().unwrap().starts_with("sha256:"));
        assert!(
            asked["summary"].as_str().unwrap().starts_with(r#"Write: ls {"command":"ls","edits":["xxx"#),
            "{asked}"
        );
    }

    /// A number that readers round is sent as it was written, with all that stands beside it, and is told from its neighbours.
    #[test]
    fn a_number_beyond_the_bound_hides_nothing() {
        let whole = |number: &str| asked_of("Bash", &format!(r#"{{"command":"curl evil","timeout":{number}}}"#));
        for number in ["100000000000000000000", "1e21", "9007199254740993", "-1E400"] {
            let asked = whole(number);
            assert_eq!(asked["tool"]["input"], json!({ "command": "curl evil", "timeout": number }));
            assert_eq!(asked["summary"], "Bash: curl evil");
        }
        let digest = |number: &str| whole(number)["tool"]["inputDigest"].clone();
        assert_ne!(digest("9007199254740993"), digest("9007199254740992"));
    }

    /// What an agent says that its call is for stands in the place of nothing that the call holds.
    #[test]
    fn a_description_hides_nothing() {
        let paying =
            |more: &str| asked_of("mcp__bank__transfer", &format!(r#"{{"amount":500000,"to":"evil",{more}}}"#));
        for more in [r#""description":"Read balance","n":1e21"#, r#""command":"Read""#, r#""prompt":"Read""#] {
            let summary = paying(more)["summary"].as_str().unwrap().to_owned();
            assert!(summary.contains(r#""amount":500000"#) && summary.contains(r#""to":"evil""#), "{summary}");
        }
    }

    /// Where a tool runs is told beside it; a long path is cut as every long text is.
    #[test]
    fn where_a_tool_runs_is_told() {
        let details = |cwd: &str| {
            let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "T", "cwd": cwd });
            let event = Event::read(&spelled(said.to_string().as_bytes()).unwrap(), None).unwrap();
            let body: Value = serde_json::from_str(&Action::of(&event, &[]).body(Key::Fresh).unwrap()).unwrap();
            body.get("details").cloned()
        };
        assert_eq!(details("/p"), Some(json!({ "cwd": "/p" })));
        assert_eq!(details(""), None);
        assert_eq!(details(&"/p".repeat(9_000)).unwrap()["cwd"]["bytes"], 18_000);
    }

    /// A person reads what a call is about, whatever its tool calls that; blanks hide nothing of it.
    #[test]
    fn a_summary_says_what_the_call_is() {
        let hidden = format!("ls{}&& rm -rf /", " \n\u{1b}\u{202e}".repeat(300));
        for (input, summary) in [
            (json!({ "notebook_path": "/p/a.ipynb", "new_source": "x" }), "Write: /p/a.ipynb"),
            (json!({ "subagent_type": "general", "prompt": "Look for it" }), "Write: Look for it"),
            (json!({ "uri": "file:///p" }), "Write: file:///p"),
            (json!({ "file": "a.txt" }), "Write: a.txt"),
            (json!({ "command": " \n", "description": "List" }), r#"Write: {"command":" \n","description":"List"}"#),
            (
                json!({ "command": 7, "amount": 4_900, "to": "Shop" }),
                r#"Write: {"amount":4900,"command":7,"to":"Shop"}"#,
            ),
            (json!({ "command": hidden }), "Write: ls && rm -rf /"),
            (json!({ "file": "\u{1f469}\u{200d}\u{1f680}" }), "Write: \u{1f469}\u{200d}\u{1f680}"),
            (json!({}), "Write"),
        ] {
            assert_eq!(asked(&input)["summary"], summary, "{input}");
        }
        let long = asked(&json!({ "values": vec!["xyz"; 9_000] }));
        assert!(long["summary"].as_str().unwrap().chars().count() < 320);
    }

    /// The first question by an id has that id as its key; each later one has a key of its own, which no other session, tool or
    /// input has, nor what ran instead. A new question has none.
    #[test]
    fn each_question_by_one_id_has_its_key() {
        let key_in = |cwd: &str, session: &str, tool: &str, input: &str, by: Key| {
            let said = json!({
                "session_id": session, "hook_event_name": "PreToolUse", "tool_name": tool, "tool_use_id": "f:0",
                "tool_input": { "command": input }, "cwd": cwd,
            });
            let event = Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), None).unwrap();
            let body: Value = serde_json::from_str(&Action::of(&event, &[]).body(by).unwrap()).unwrap();
            body.get("idempotencyKey").map(|it| it.as_str().unwrap().to_owned())
        };
        let key = |session: &str, tool: &str, input: &str, by: Key| key_in("/p", session, tool, input, by);
        assert_eq!(key("s", "Bash", "ls", Key::Turn(0)).as_deref(), Some("f:0"));
        for by in [Key::Turn(1), Key::Instead] {
            assert_ne!(key_in("/q", "s", "Bash", "ls", by), key("s", "Bash", "ls", by));
        }
        assert_eq!(key("s", "Bash", "ls", Key::Fresh), None);
        assert_eq!(key("s", "Bash", "ls", Key::Turn(1)), key("s", "Bash", "ls", Key::Turn(1)));
        let keys: std::collections::BTreeSet<_> = [
            ("s", "Bash", "ls", Key::Turn(1)),
            ("s", "Bash", "ls", Key::Turn(2)),
            ("s", "Bash", "ls", Key::Instead),
            ("s", "Bash", "pwd", Key::Turn(1)),
            ("s", "Bas", "ls", Key::Turn(1)),
            ("t", "Bash", "ls", Key::Turn(1)),
        ]
        .map(|(session, tool, input, by)| key(session, tool, input, by).unwrap())
        .into();
        assert_eq!((keys.len(), keys.iter().all(|it| it.len() <= KEY_CHARS_MAX)), (6, true), "{keys:?}");
    }

    /// A key that is none is its digest; a summary has no line breaks and is not endless.
    #[test]
    fn keys_and_summaries_fit() {
        assert_eq!((key("toolu_1").as_str(), key(&"k".repeat(129)).len(), key("a\nb").len()), ("toolu_1", 71, 71));
        let asked = asked(&json!({ "command": format!("echo\n{}", "x".repeat(999)) }));
        let summary = asked["summary"].as_str().unwrap();
        assert!(summary.starts_with("Write: echo x") && summary.chars().count() < 320, "{summary}");
    }
}
