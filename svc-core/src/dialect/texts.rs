//! Every text that goes out with a request, and other texts in their place.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::doc::{Form, Tape, Value};
use super::files;
use super::marks::{As, mark};
use super::request::{Splice, spliced};
use super::write::quoted;

/// Numbers of so many characters are looked at as texts: a card's number need not stand in quotes.
const NUMBER_MIN: usize = 8;

/// What a request of either shape has at its top that is not text, or has a shape of its own. Any other member, and what the
/// client labels a request with, is the caller's own.
const TOP: &[&str] = &[
    "audio",
    "betas",
    "cache_control",
    "container",
    "context_management",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "mcp_servers",
    "messages",
    "modalities",
    "n",
    "output_config",
    "output_format",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "stop_sequences",
    "store",
    "stream",
    "stream_options",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Members whose values are free: whatever is in them is the caller's own.
const FREE: &[&str] = &["input", "arguments", "parameters", "input_schema", "schema"];

/// What `look` puts in the place of texts, in the order of the text.
pub(super) fn replacements(root: Value<'_>, look: &mut dyn FnMut(&str) -> Option<String>) -> Vec<Splice> {
    let mut walk = Walk { look, splices: Vec::new(), names: 0 };
    let mut names = Names::of(root);
    for (name, value) in root.members() {
        match &*name.text().unwrap_or_default() {
            // Which model answers is the gate's own business, and it is looked up.
            "model" => {}
            own if TOP.contains(&own) => walk.shaped(value),
            _ => walk.free_member(&mut names, name, value),
        }
    }
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
                let before = self.splices.len();
                for (name, inner) in value.members() {
                    let name = name.text().unwrap_or_default();
                    self.member(value, &name, inner);
                }
                if self.splices.len() > before {
                    self.unsigned(value, before);
                }
            }
            Form::Null | Form::Bool(_) | Form::Number => {}
        }
    }

    /// A text of this object was replaced, and what was signed of it with it: that is marked as what nobody has signed, and left out
    /// where it goes to a provider that would refuse it.
    fn unsigned(&mut self, object: Value<'_>, before: usize) {
        let Some(signature) = object.get("signature").filter(|it| it.is_text() && !it.is_empty_text()) else { return };
        let other = match &*object.text_of("type").unwrap_or_default() {
            "thinking" => quoted(&mark(As::Other, "")),
            kind if kind.starts_with("reasoning.") => "null".to_owned(),
            _ => return,
        };
        let splice = Splice::over(signature, other);
        let own = self.splices.get(before..).unwrap_or_default();
        let at = before + own.partition_point(|it| it.start < splice.start);
        self.splices.insert(at, splice);
    }

    fn member(&mut self, object: Value<'_>, name: &str, value: Value<'_>) {
        if value.is_text() && is_own(object, name, value) {
            return;
        }
        if ["file", "image_url", "input_audio"].contains(&name) && object.has("type", name) {
            return self.media(name, value);
        }
        if name == "arguments" && value.is_text() {
            return self.json_text(value);
        }
        if FREE.contains(&name) { self.free(value) } else { self.shaped(value) }
    }

    /// The object in which a part of the chat shape holds its bytes, or the id of what was sent before.
    fn media(&mut self, kind: &str, holder: Value<'_>) {
        for (name, value) in holder.members() {
            let own = match (kind, &*name.text().unwrap_or_default()) {
                ("file", "file_id") | ("input_audio", "data") => value.is_text(),
                ("file", "file_data") => self.file(holder, value),
                ("image_url", "url") => is_bytes(value),
                _ => false,
            };
            if !own {
                self.member(holder, &name.text().unwrap_or_default(), value);
            }
        }
        if holder.form() != Form::Object {
            self.shaped(holder);
        }
    }

    /// A file's bytes, which are looked at where they are a text. Whether they are bytes.
    fn file(&mut self, holder: Value<'_>, data: Value<'_>) -> bool {
        let name = holder.text_of("filename").unwrap_or_default();
        let Some(text) = data.text().and_then(|it| files::text(&it, &name)) else {
            return is_bytes(data) || !has_scheme(data);
        };
        if let Some(other) = (self.look)(&text) {
            self.splices.push(Splice::over(data, quoted(&files::bytes(&other))));
        }
        true
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
                let mut names = Names::of(value);
                value.members().for_each(|(name, inner)| self.free_member(&mut names, name, inner));
            }
            Form::Null | Form::Bool(_) | Form::Number => {}
        }
    }

    fn free_member<'a>(&mut self, names: &mut Names<'a>, name: Value<'a>, value: Value<'a>) {
        if let Some(other) = name.text().and_then(|it| (self.look)(&it)) {
            let other = loop {
                self.names += 1;
                let other = format!("{other} {}", self.names);
                if !names.has(&other) {
                    break other;
                }
            };
            self.splices.push(Splice::over(name, quoted(&other)));
        }
        self.free(value);
    }
}

/// The names that an object has, gathered once one of its names is replaced: what stands in its place may not be one of them, or the
/// object would be none.
struct Names<'a> {
    object: Value<'a>,
    known: Option<BTreeSet<Cow<'a, str>>>,
}

impl<'a> Names<'a> {
    const fn of(object: Value<'a>) -> Self {
        Self { object, known: None }
    }

    fn has(&mut self, name: &str) -> bool {
        let all = || self.object.members().filter_map(|(name, _)| name.text()).collect();
        self.known.get_or_insert_with(all).contains(name)
    }
}

/// Whether a member is an id, bytes, or what a provider sealed, where a shape puts it: no text of anybody, and nothing that could
/// be another. Under such a name anywhere else stands what the caller likes.
fn is_own(object: Value<'_>, name: &str, value: Value<'_>) -> bool {
    // Looked for only where the name is one of these: an object may have very many members.
    let kind = || object.text_of("type").unwrap_or_default();
    let is_function =
        || ["function", "custom"].iter().any(|it| object.get(it).is_some_and(|it| it.form() == Form::Object));
    match name {
        "id" => kind().ends_with("tool_use") || kind().starts_with("reasoning.") || is_function(),
        "tool_use_id" => kind().ends_with("tool_result"),
        "tool_call_id" => object.has("role", "tool"),
        "file_id" => {
            let kind = kind();
            matches!(&*kind, "file" | "input_file" | "input_image" | "container_upload") || kind.ends_with("_output")
        }
        "file_data" => kind() == "input_file" && (is_bytes(value) || !has_scheme(value)),
        "signature" => kind() == "thinking" || kind().starts_with("reasoning."),
        "encrypted_content" | "encrypted_index" | "encrypted_stdout" => !kind().is_empty(),
        "data" => matches!(&*kind(), "base64" | "redacted_thinking" | "reasoning.encrypted"),
        _ => false,
    }
}

/// Whether a text is an address that holds bytes.
fn is_bytes(value: Value<'_>) -> bool {
    let text = value.text().unwrap_or_default();
    let head = text.strip_prefix("data:").and_then(|it| it.split_once(',')).map(|(head, _)| head);
    head.is_some_and(|it| it.ends_with(";base64"))
}

/// Whether a text begins as an address does, which bytes in base64 cannot.
fn has_scheme(value: Value<'_>) -> bool {
    value.text().is_none_or(|it| it.contains(':'))
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
        })
        .unwrap();
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
            "tools":[{"type":"function","function":{"name":"t-tool","description":"t-desc","parameters":{"type":"object","properties":{"id":{"description":"t-prop"}}}}}],
            "metadata":{"t-label":"t-value","id":"t-id"},"extra":{"t-extra":{"model":"t-model","n":4111111111111111}},"seed":4222222222222222}"#,
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
            "t-label",
            "t-value",
            "t-id",
            "t-extra",
            "t-model",
            "4111111111111111",
        ] {
            assert!(chat.iter().any(|it| it == text), "{text} is not looked at");
        }
        assert!(
            !chat
                .iter()
                .any(|it| it.contains("AAAA") || it == "c1" || it == "m" || it.starts_with('4') && it.contains('2')),
            "{chat:?}"
        );

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

    /// A name that a shape gives an id, bytes or a word is a name like any other wherever the shape does not put it: what stands
    /// there is looked at in both shapes alike.
    #[test]
    fn what_stands_under_a_name_of_the_shape_is_looked_at_elsewhere() {
        for dialect in [Dialect::Chat, Dialect::Messages] {
            for (part, texts) in [
                (
                    r#"{"type":"new","id":"t-1","format":"t-2","detail":"t-3","role":"t-4","model":"t-5","signature":"t-6"}"#,
                    6,
                ),
                (
                    r#"{"type":"text","text":"t-1","tool_use_id":"t-2","tool_call_id":"t-3","file_id":"t-4","data":"t-5"}"#,
                    5,
                ),
                (r#"{"type":"image_url","image_url":{"url":"data:text/plain,t-1","detail":"t-2","id":"t-3"}}"#, 3),
                (r#"{"type":"image_url","image_url":"data:text/plain,t-1"}"#, 1),
                (r#"{"type":"file","file":{"file_data":"https://x.example/t-1","file_id":"AAAA"}}"#, 1),
                (r#"{"type":"text","text":"t-1","url":"data:text/plain;base64,t-2"}"#, 2),
                (r#"{"type":"text","text":"t-1","cache_control":{"type":"ephemeral","note":"t-2"}}"#, 2),
                (r#"{"type":"base64","format":"t-1","media_type":"t-2","data":"AAAA"}"#, 2),
            ] {
                let body =
                    format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":[{part}]}}]}}"#);
                let seen = seen(dialect, &body);
                for text in 1..=texts {
                    let text = format!("t-{text}");
                    assert!(seen.iter().any(|it| it.ends_with(&text)), "{dialect:?} {part}: {text} is not looked at");
                }
                assert!(!seen.iter().any(|it| it == "AAAA"), "{dialect:?} {part}");
            }
        }
    }

    /// What the shapes are made of is nothing that looking finds, so it is looked at and goes out as it was.
    #[test]
    fn words_of_the_shapes_are_no_findings() {
        let agent = r#"{"model":"claude-x","max_tokens":9,"service_tier":"standard_only","betas":["context-management-2025-06-27","interleaved-thinking-2025-05-14"],
            "context_management":{"edits":[{"type":"clear_tool_uses_20250919"},{"type":"clear_thinking_20251015"}]},"tools":[{"type":"web_search_20250305","name":"web_search"},
            {"type":"text_editor_20250728","name":"str_replace_based_edit_tool"},{"type":"code_execution_20250825","name":"code_execution"}],
            "messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"f","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A09q90qw90lq917835lq9","content":"ok"}]}]}"#;
        for text in seen(Dialect::Messages, agent) {
            assert!(crate::dlp::scan(&text).is_empty(), "{text}");
            assert!(!text.starts_with("toolu_"), "{text}");
        }
    }

    /// What a model has thought and its maker has signed is signed by nobody once a text in it was replaced: it is left out where it
    /// would go to a provider of the messages shape, and with it the wish to think on in that turn.
    #[test]
    fn what_was_signed_is_not_once_it_was_changed() {
        use super::super::Target;
        use crate::state::gateway::Host;
        let asked = |thinking: &str| {
            format!(
                r#"{{"model":"m","max_tokens":9,"thinking":{{"type":"enabled","budget_tokens":4}},"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{thinking},{{"type":"tool_use","id":"c1","name":"f","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c1","content":"x"}}]}}]}}"#
            )
        };
        let target = Target {
            dialect: Dialect::Messages,
            model: "m",
            max_output: 9,
            reasoning: true,
            provider: "p",
            is_strict: true,
            host: Host::Maker,
            is_elsewhere: false,
        };
        let changed = |dialect, text: &str| {
            let mut body = Body::read(dialect, text.as_bytes()).unwrap();
            body.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
            let sent = String::from_utf8(body.to_upstream(target).unwrap()).unwrap();
            (String::from_utf8(body.as_bytes().to_vec()).unwrap(), sent)
        };
        let goes = |thinking: &str| changed(Dialect::Messages, &asked(thinking));
        let plain = r#"{"type":"thinking","thinking":"hm","signature":"sig"}"#;
        assert_eq!(goes(plain), (asked(plain), asked(plain)));
        for signed in [
            r#"{"type":"thinking","thinking":"a secret","signature":"sig"}"#,
            r#"{"signature":"sig","thinking":"a secret","type":"thinking"}"#,
        ] {
            let (kept, sent) = goes(signed);
            let marked = signed.replace("secret", "gone").replace("\"sig\"", "\"svc_unsigned:other\"");
            assert_eq!(kept, asked(&marked));
            assert!(!sent.contains("gone") && !sent.contains("svc_unsigned"), "{sent}");
            assert!(sent.contains(r#""thinking":{"type":"disabled"}"#), "{sent}");
        }
        let (kept, _) = goes(r#"{"type":"thinking","thinking":"a secret","signature":""}"#);
        assert!(kept.contains("\"thinking\":\"a gone\",\"signature\":\"\""), "nobody had signed it: {kept}");
        let chat = r#"{"model":"m","messages":[{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","text":"a secret","signature":"sig"}],
            "thinking_blocks":[{"type":"thinking","thinking":"a secret","signature":"sig"},{"type":"thinking","thinking":"b","signature":"sig"}]},{"role":"user","content":"x"}]}"#;
        let (kept, sent) = changed(Dialect::Chat, chat);
        assert!(kept.contains(r#""text":"a gone","signature":null}"#), "{kept}");
        assert!(sent.contains(r#"{"type":"thinking","thinking":"b","signature":"sig"}"#), "{sent}");
        assert!(!sent.contains("gone"), "{sent}");
        // Nor does a gateway of the chat shape, which would hand it on, get it: of its blocks the others go as they came.
        for (blocks, expected) in [
            (chat.to_owned(), r#""thinking_blocks":[{"type":"thinking","thinking":"b","signature":"sig"}]}"#),
            (chat.replace(r#"thinking":"b""#, r#"thinking":"secret""#), r#""signature":null}]},"#),
        ] {
            let mut body = Body::read(Dialect::Chat, blocks.as_bytes()).unwrap();
            body.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
            for is_elsewhere in [false, true] {
                let target = Target { dialect: Dialect::Chat, is_elsewhere, ..target };
                let sent = String::from_utf8(body.to_upstream(target).unwrap()).unwrap();
                assert!(!sent.contains("svc_unsigned"), "{sent}");
                let blocks = expected.contains("thinking_blocks");
                assert!(if is_elsewhere {
                    sent.contains("thinking_blocks") == blocks
                } else {
                    sent.contains(expected)
                });
            }
        }
    }

    /// What is answered stands in the text's place, also within arguments, and all else stays as it was.
    #[test]
    fn a_text_is_replaced_where_it_stands() {
        let text = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"my secret"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"secret\":\"secret\",\"secret2\":12345678, \"k\":1}"}}]}]}"#;
        let mut body = Body::read(Dialect::Chat, text.as_bytes()).unwrap();
        body.texts_mut(&mut |it| (it.contains("secret") || it == "12345678").then(|| "\"gone\"".to_owned())).unwrap();
        let expected = r#"{ "model":"m", "x": 1.0e2, "messages":[{"role":"user","content":"\"gone\""},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"\\\"gone\\\" 1\":\"\\\"gone\\\"\",\"\\\"gone\\\" 2\":\"\\\"gone\\\"\", \"k\":1}"}}]}]}"#;
        assert_eq!(std::str::from_utf8(body.as_bytes()).unwrap(), expected);
    }

    /// What stands in a name's place is no name that the object has: nobody keeps a request from being redacted by having it.
    #[test]
    fn a_replaced_name_is_no_other_name() {
        let decoys: String = (0..9).map(|n| format!(r#","gone {n}":"d","g\u006fne 1{n}":"d""#)).collect();
        let object = format!(r#"{{"secret":"a secret"{decoys},"secret ":{{"secret":1}}}}"#);
        let arguments = super::quoted(&object);
        let body = format!(
            r#"{{"model":"m","max_tokens":9,"metadata":{object},"x":{object},"messages":[{{"role":"user","content":"secret"}},{{"role":"assistant","tool_calls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":{arguments}}}}}]}}]{decoys},"secret":1}}"#
        );
        let mut read = Body::read(Dialect::Chat, body.as_bytes()).unwrap();
        read.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "gone"))).unwrap();
        let out = std::str::from_utf8(read.as_bytes()).unwrap();
        assert!(!out.contains("secret"), "{out}");
        assert!(Body::read(Dialect::Chat, out.as_bytes()).is_ok(), "{out}");
    }

    /// A file that is a text is looked at as one, and what is answered is its bytes; any other file is bytes alone.
    #[test]
    fn a_file_of_text_is_looked_at() {
        let body = |file: &str| {
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"file","file":{{{file}}}}}]}}]}}"#)
        };
        for (file, gone) in [
            (r#""filename":"a.txt","file_data":"bXkgc2VjcmV0""#, true),
            (r#""file_data":"data:text/csv;base64,bXkgc2VjcmV0","filename":"a""#, true),
            (r#""filename":"a.pdf","file_data":"bXkgc2VjcmV0""#, false),
            (r#""file_data":"bXkgc2VjcmV0""#, false),
        ] {
            let mut read = Body::read(Dialect::Chat, body(file).as_bytes()).unwrap();
            read.texts_mut(&mut |it| it.contains("secret").then(|| it.replace("secret", "[gone]"))).unwrap();
            let out = std::str::from_utf8(read.as_bytes()).unwrap();
            assert_eq!(out.contains("\"data:text/plain;base64,bXkgW2dvbmVd\""), gone, "{out}");
            assert_eq!(out == body(file), !gone);
        }
    }
}
