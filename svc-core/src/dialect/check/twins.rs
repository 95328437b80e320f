//! Names of members that are known ones but for capital letters: providers that take either for the other would go by what nobody
//! here has read.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::doc::{Form, Value};
use super::Faults;

/// Names of either shape by which something is decided, looked at or left out, in order.
const KNOWN: &[&str] = &[
    "annotations",
    "arguments",
    "audio",
    "budget_tokens",
    "cache_control",
    "cached_content",
    "citations",
    "container",
    "content",
    "context",
    "context_management",
    "custom",
    "data",
    "data_collection",
    "definition",
    "description",
    "edits",
    "effort",
    "enabled",
    "encrypted_content",
    "fallbacks",
    "file",
    "file_data",
    "file_id",
    "file_uri",
    "file_url",
    "filename",
    "format",
    "function",
    "function_call",
    "functions",
    "id",
    "image_url",
    "include_usage",
    "inference_geo",
    "input",
    "input_audio",
    "input_schema",
    "is_error",
    "json_schema",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "max_uses",
    "mcp_servers",
    "media_type",
    "messages",
    "metadata",
    "modalities",
    "model",
    "models",
    "n",
    "n_predict",
    "name",
    "only",
    "order",
    "output_config",
    "output_format",
    "parameters",
    "plugins",
    "prediction",
    "preset",
    "prompt_cache_key",
    "prompt_cache_retention",
    "provider",
    "reasoning",
    "reasoning_content",
    "reasoning_details",
    "reasoning_effort",
    "refusal",
    "response_format",
    "role",
    "safety_identifier",
    "schema",
    "server_name",
    "service_tier",
    "signature",
    "source",
    "speed",
    "stop",
    "stop_sequences",
    "store",
    "stream",
    "stream_options",
    "strict",
    "system",
    "text",
    "thinking",
    "thinking_blocks",
    "thread",
    "title",
    "tool",
    "tool_call_id",
    "tool_calls",
    "tool_choice",
    "tool_use_id",
    "tools",
    "ttl",
    "type",
    "uri",
    "url",
    "user",
    "user_id",
    "web_search_options",
];
/// Members of a request within which names are read too; what is in others is the client's and the provider's own.
const SHAPED: &[&str] = &[
    "cache_control",
    "functions",
    "messages",
    "output_config",
    "output_format",
    "plugins",
    "prediction",
    "provider",
    "response_format",
    "stream_options",
    "system",
    "thinking",
    "tool_choice",
    "tools",
    "web_search_options",
];
/// The same of a message.
const SHAPED_OF_MESSAGES: &[&str] = &["content", "function_call", "output_config", "thinking_blocks", "tool_calls"];
/// Members of anything within these whose values are free.
const FREE: &[&str] = &["arguments", "input", "input_schema", "parameters", "schema"];

/// What an object is.
#[derive(Clone, Copy)]
enum Kind {
    Request,
    Message,
    /// Whatever stands within one of these.
    Inner,
}

/// One step on the way to a value.
#[derive(Clone, Copy)]
enum Step<'a> {
    Member(Value<'a>),
    Item(usize),
}

/// Notes every member whose name is one that is known, or that of another member beside it, in other letters.
pub(super) fn note(faults: &mut Faults, root: Value<'_>) {
    Walk { faults, path: Vec::new() }.object(root, Kind::Request);
}

struct Walk<'f, 'a> {
    faults: &'f mut Faults,
    path: Vec<Step<'a>>,
}

impl<'a> Walk<'_, 'a> {
    fn value(&mut self, value: Value<'a>, kind: Kind) {
        match value.form() {
            Form::Object => self.object(value, kind),
            Form::List => {
                for (at, item) in
                    value.items().enumerate().filter(|(_, it)| matches!(it.form(), Form::Object | Form::List))
                {
                    self.path.push(Step::Item(at));
                    self.value(item, kind);
                    self.path.pop();
                }
            }
            Form::Null | Form::Bool(_) | Form::Number | Form::Plain | Form::Escaped => {}
        }
    }

    fn object(&mut self, object: Value<'a>, kind: Kind) {
        if object.members().any(|(name, _)| may_be_folded(name)) {
            self.folded(object);
        }
        for (name, value) in object.members() {
            if !matches!(value.form(), Form::Object | Form::List) {
                continue;
            }
            let among = |names: &[&str]| names.iter().any(|it| name.is(it));
            let (is_shaped, inner) = match kind {
                Kind::Request if name.is("messages") => (true, Kind::Message),
                Kind::Request => (among(SHAPED), Kind::Inner),
                Kind::Message => (among(SHAPED_OF_MESSAGES), Kind::Inner),
                Kind::Inner => (!among(FREE), Kind::Inner),
            };
            if is_shaped {
                self.path.push(Step::Member(name));
                self.value(value, inner);
                self.path.pop();
            }
        }
    }

    /// Judges the names of an object of which one at least has other letters than small ones.
    fn folded(&mut self, object: Value<'a>) {
        let names: BTreeSet<Cow<'a, str>> = object.members().filter_map(|(name, _)| name.text()).collect();
        let mut seen = BTreeSet::new();
        for name in object.members().filter_map(|(name, _)| name.text()) {
            let small: String = name.chars().map(folded).collect();
            let is_other = small != name;
            if is_other && (KNOWN.binary_search(&&*small).is_ok() || names.contains(&*small) || seen.contains(&small)) {
                let path = self.path_to(&name);
                self.faults.add(
                    path,
                    format!("is `{}` in other letters, which some providers take for it", super::quoted(&small)),
                );
            }
            if is_other {
                seen.insert(small);
            }
        }
    }

    fn path_to(&self, name: &str) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                Step::Member(name) => path.push_str(&name.text().unwrap_or_default()),
                Step::Item(at) => path.push_str(&at.to_string()),
            }
            path.push('.');
        }
        path + &super::quoted(name)
    }
}

/// Whether a name, as it was written, can be another one's in other letters: no known name has anything but small letters.
fn may_be_folded(name: Value<'_>) -> bool {
    name.raw().bytes().any(|it| it.is_ascii_uppercase() || it >= 0x80 || it == b'\\')
}

/// A letter as readers take it that do not tell capital letters from small ones: beside those of ASCII, two signs are letters of it
/// to them.
const fn folded(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => letter.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::dialect::Body;
    use crate::state::gateway::Dialect;

    /// The fields that are wrong in a request with these members.
    fn wrong(dialect: Dialect, members: &str) -> Vec<String> {
        let refusal = Body::read(dialect, format!("{{\"model\":\"m\",\"max_tokens\":9,{members}}}").as_bytes()).err();
        assert!(refusal.iter().all(|it| it.type_() == "invalid_request"));
        let errors = refusal.iter().flat_map(|it| it.errors().to_vec());
        errors.map(|it| it.field.as_deref().unwrap_or("-").to_owned()).collect()
    }

    /// A provider that does not tell capital letters from small ones goes by no other member than the one that was admitted.
    #[test]
    fn a_known_name_in_other_letters_is_refused() {
        assert!(KNOWN.is_sorted());
        let messages = r#""messages":[{"role":"user","content":"x"}]"#;
        for twin in [
            "Model",
            "MAX_TOKENS",
            "Max_Completion_Tokens",
            "N",
            "Messages",
            "Tools",
            "N_Predict",
            "\u{17f}tream",
            "to\u{212a}ol",
            "\\u004dodel",
        ] {
            let name = twin.replace("\\u004d", "M");
            let expected = if name.contains('\u{212a}') { Vec::new() } else { vec![name] };
            for dialect in [Dialect::Chat, Dialect::Messages] {
                assert_eq!(wrong(dialect, &format!(r#""{twin}":null,{messages}"#)), expected, "{twin}");
            }
        }
        for (members, field) in [
            (r#""messages":[{"role":"user","Content":"y","content":"x"}]"#, "messages.0.Content"),
            (
                r#""messages":[{"role":"user","content":[{"type":"text","text":"x","Type":"image_url"}]}]"#,
                "messages.0.content.0.Type",
            ),
            (
                r#""messages":[{"role":"user","content":[{"type":"video_url","video_url":{"URL":"x"}}]}]"#,
                "messages.0.content.0.video_url.URL",
            ),
            (
                r#""messages":[{"role":"user","content":[{"type":"new","new":[{"to\u212aen":1,"token":2}]}]}]"#,
                "messages.0.content.0.new.0.to\u{212a}en",
            ),
            (
                r#""messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","Name":"g"}}]}]"#,
                "messages.0.tool_calls.0.function.Name",
            ),
            (
                r#""tools":[{"type":"function","name":"f","function":{"name":"f","NAME":"g"}}],"messages":[{"role":"user","content":"x"}]"#,
                "tools.0.function.NAME",
            ),
            (r#""top_k":1,"Top_K":2,"messages":[{"role":"user","content":"x"}]"#, "Top_K"),
            (r#""Seed":1,"SEED":2,"messages":[{"role":"user","content":"x"}]"#, "SEED"),
            (r#""provider":{"Order":["a"]},"messages":[{"role":"user","content":"x"}]"#, "provider.Order"),
        ] {
            assert_eq!(wrong(Dialect::Chat, members), [field], "{members}");
        }
    }

    /// What is the client's own may have any names, as may what nobody here knows.
    #[test]
    fn what_is_free_may_have_any_names() {
        for (dialect, members) in [
            (
                Dialect::Chat,
                r#""extra":{"Model":1,"model":2},"chatTemplate":{},"maxTokens":3,"messages":[{"role":"user","content":"x"}]"#,
            ),
            (Dialect::Chat, r#""metadata":{"Name":"a","name":"b"},"messages":[{"role":"user","content":"x"}]"#),
            (
                Dialect::Chat,
                r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"ID":{"Type":1},"id":{}}}}}],"messages":[{"role":"user","content":"x"}]"#,
            ),
            (
                Dialect::Messages,
                r#""tools":[{"name":"f","input_schema":{"properties":{"Name":{},"name":{}}}}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"Model":1,"model":2}}]}]"#,
            ),
            (
                Dialect::Chat,
                r#""response_format":{"type":"json_schema","json_schema":{"name":"a","schema":{"Type":"x"}}},"messages":[{"role":"user","content":"x"}]"#,
            ),
        ] {
            assert_eq!(wrong(dialect, members), [""; 0], "{members}");
        }
    }
}
