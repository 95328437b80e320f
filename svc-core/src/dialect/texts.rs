//! Every text that goes out with a request, and other texts in their place.

#[cfg(test)]
mod tests;

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
