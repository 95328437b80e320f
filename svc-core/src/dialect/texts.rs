//! Every text that goes out with a request, and other texts in their place.

use super::doc::{Form, Tape, Value};
use super::request::{Splice, spliced};
use super::write::quoted;

/// Numbers of so many characters are looked at as texts: a card's number need not stand in quotes.
const NUMBER_MIN: usize = 8;

/// Words that the shapes are made of, ids, and what providers sealed: no text of anybody, and nothing that could change.
const STRUCTURE: &[&str] = &[
    "type",
    "role",
    "model",
    "id",
    "tool_use_id",
    "tool_call_id",
    "call_id",
    "file_id",
    "media_type",
    "format",
    "detail",
    "signature",
    "encrypted_content",
    "encrypted_index",
    "encrypted_stdout",
    "file_data",
    "service_tier",
    "reasoning_effort",
    "cache_control",
];

/// Members whose values are free: whatever is in them is the caller's own.
const FREE: &[&str] = &["input", "arguments", "parameters", "input_schema", "schema"];

/// What `look` puts in the place of texts, in the order of the text.
pub(super) fn replacements(root: Value<'_>, look: &mut dyn FnMut(&str) -> Option<String>) -> Vec<Splice> {
    let mut walk = Walk { look, splices: Vec::new(), names: 0 };
    walk.shaped(root);
    walk.splices
}

struct Walk<'f> {
    look: &'f mut dyn FnMut(&str) -> Option<String>,
    splices: Vec<Splice>,
    /// Names of members that were replaced, so that no two are the same.
    names: usize,
}

impl Walk<'_> {
    fn text(&mut self, value: Value<'_>) {
        if let Some(other) = value.text().and_then(|it| (self.look)(&it)) {
            self.splices.push(Splice::over(value, quoted(&other)));
        }
    }

    /// A value of one of the shapes.
    fn shaped(&mut self, value: Value<'_>) {
        match value.form() {
            Form::Plain | Form::Escaped => self.text(value),
            Form::List => value.items().for_each(|it| self.shaped(it)),
            Form::Object => {
                for (name, inner) in value.members() {
                    let name = name.text().unwrap_or_default();
                    self.member(value, &name, inner);
                }
            }
            Form::Null | Form::Bool(_) | Form::Number => {}
        }
    }

    fn member(&mut self, object: Value<'_>, name: &str, value: Value<'_>) {
        if STRUCTURE.contains(&name) && (value.is_text() || name == "cache_control") {
            return;
        }
        if name == "data" && value.is_text() && is_media(object) {
            return;
        }
        if name == "url" && value.text().is_some_and(|it| it.starts_with("data:")) {
            return;
        }
        if name == "arguments" && value.is_text() {
            return self.json_text(value);
        }
        if FREE.contains(&name) { self.free(value) } else { self.shaped(value) }
    }

    /// A text that holds JSON, as arguments in the chat shape do; any other text as itself.
    fn json_text(&mut self, value: Value<'_>) {
        let Some(text) = value.text() else { return };
        let Ok(tape) = Tape::of(&text) else { return self.text(value) };
        let outer = std::mem::take(&mut self.splices);
        self.free(tape.root(&text));
        let inner = std::mem::replace(&mut self.splices, outer);
        if !inner.is_empty() {
            self.splices.push(Splice::over(value, quoted(&spliced(&text, &inner))));
        }
    }

    /// A value whose every part is the caller's: names of members and long numbers are texts too.
    fn free(&mut self, value: Value<'_>) {
        match value.form() {
            Form::Plain | Form::Escaped => self.text(value),
            Form::Number if value.raw().len() >= NUMBER_MIN => {
                if let Some(other) = (self.look)(value.raw()) {
                    self.splices.push(Splice::over(value, quoted(&other)));
                }
            }
            Form::List => value.items().for_each(|it| self.free(it)),
            Form::Object => {
                for (name, inner) in value.members() {
                    if let Some(other) = name.text().and_then(|it| (self.look)(&it)) {
                        self.names += 1;
                        self.splices.push(Splice::over(name, quoted(&format!("{other} {}", self.names))));
                    }
                    self.free(inner);
                }
            }
            Form::Null | Form::Bool(_) | Form::Number => {}
        }
    }
}

/// Whether `data` in this object is bytes of an image, a document or a sound, or what a provider sealed.
fn is_media(object: Value<'_>) -> bool {
    object.has("type", "base64")
        || object.has("type", "redacted_thinking")
        || (object.get("type").is_none() && object.get("format").is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::Body;
    use crate::state::gateway::Dialect;

    fn seen(dialect: Dialect, body: &str) -> Vec<String> {
        let mut body = Body::read(dialect, body.as_bytes()).unwrap();
        let mut seen = Vec::new();
        body.texts_mut(&mut |text| {
            seen.push(text.to_owned());
            None
        });
        seen
    }

    /// Whatever kind of part a text stands in, it is looked at; media, ids and the shape's own words are not.
    #[test]
    fn every_text_that_goes_out_is_looked_at() {
        let chat = seen(
            Dialect::Chat,
            r#"{"model":"m","user":"t-user","messages":[{"role":"system","content":"t-system"},
            {"role":"user","content":[{"type":"text","text":"t-part"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},
            {"type":"image_url","image_url":{"url":"t-https"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},
            {"type":"file","file":{"filename":"t-file","file_data":"data:application/pdf;base64,AAAA"}},{"type":"new","prompt":"t-new"}]},
            {"role":"assistant","content":null,"reasoning_content":"t-reason","tool_calls":[{"id":"c1","type":"function","function":{"name":"t-name",
            "arguments":"{\"t-key\":[\"t-arg\",{\"x\":411111111111111}],\"s\":1}"}},{"id":"c2","type":"function","function":{"name":"t-name2","arguments":"t-broken {"}}]},
            {"role":"tool","tool_call_id":"c1","content":"t-result"},{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"t-listed"}]}],
            "tools":[{"type":"function","function":{"name":"t-tool","description":"t-desc","parameters":{"type":"object","properties":{"id":{"description":"t-prop"}}}}}]}"#,
        );
        for text in [
            "t-user",
            "t-system",
            "t-part",
            "t-https",
            "t-file",
            "t-new",
            "t-reason",
            "t-name",
            "t-key",
            "t-arg",
            "411111111111111",
            "t-broken {",
            "t-result",
            "t-listed",
            "t-tool",
            "t-desc",
            "t-prop",
        ] {
            assert!(chat.iter().any(|it| it == text), "{text} is not looked at");
        }
        assert!(!chat.iter().any(|it| it.contains("AAAA") || it == "c1" || it == "user"), "{chat:?}");

        let messages = seen(
            Dialect::Messages,
            r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"t-system","cache_control":{"type":"ephemeral"}}],"metadata":{"user_id":"t-user"},
            "messages":[{"role":"user","content":[{"type":"document","title":"t-title","source":{"type":"text","media_type":"text/plain","data":"t-doc"}},
            {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"t-think","signature":"AAAA"},{"type":"redacted_thinking","data":"AAAA"},
            {"type":"tool_use","id":"c1","name":"t-tool","input":{"id":"t-input","type":"t-type"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"t-result"}]}]}]}"#,
        );
        for text in ["t-system", "t-user", "t-title", "t-doc", "t-think", "t-tool", "t-input", "t-type", "t-result"] {
            assert!(messages.iter().any(|it| it == text), "{text} is not looked at");
        }
        assert!(!messages.iter().any(|it| it.contains("AAAA") || it == "c1"), "{messages:?}");
    }

    /// What is answered stands in the text's place, also within arguments, and all else stays as it was.
    #[test]
    fn a_text_is_replaced_where_it_stands() {
        let text = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"my secret"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"secret\":\"secret\",\"secret2\":12345678, \"k\":1}"}}]}]}"#;
        let mut body = Body::read(Dialect::Chat, text.as_bytes()).unwrap();
        body.texts_mut(&mut |it| (it.contains("secret") || it == "12345678").then(|| "\"gone\"".to_owned()));
        let expected = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"\"gone\""},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"\\\"gone\\\" 1\":\"\\\"gone\\\"\",\"\\\"gone\\\" 2\":\"\\\"gone\\\"\", \"k\":1}"}}]}]}"#;
        assert_eq!(std::str::from_utf8(body.as_bytes()).unwrap(), expected);
    }
}
