//! Every text that goes out with a request, and other texts in their place.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::doc::{Form, Tape, Value};
use super::files::{self, Source};
use super::marks::{As, is_mark, mark};
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

/// Parts of a content whose texts are read as one.
const OF_ONE_TEXT: &[&str] = &["text", "input_text", "output_text"];
/// Parts within parts whose texts are read as one with those around them: a document in a content has parts itself.
const PARTS_LEVELS_MAX: usize = 4;

/// Looks at texts that stand one behind the other, and says for each what is to be in its place.
pub(super) type Look<'a> = dyn FnMut(&[&str]) -> Vec<Option<String>> + 'a;

/// What `look` puts in the place of texts, in the order of the text.
pub(super) fn replacements(root: Value<'_>, look: &mut Look<'_>) -> Vec<Splice> {
    let mut walk = Walk { look, splices: Vec::new(), names: 0, together: BTreeMap::new() };
    let mut names = Names::of(root);
    walk.look_over_messages(root);
    for (name, value) in root.members() {
        match &*name.text().unwrap_or_default() {
            // Which model answers is the gate's own business, and it is looked up.
            "model" => {}
            own if TOP.contains(&own) && value.form() == Form::Number => {}
            own if TOP.contains(&own) => walk.shaped(value),
            _ => walk.free_member(&mut names, name, value),
        }
    }
    walk.splices
}

struct Walk<'f, 'l> {
    look: &'f mut Look<'l>,
    splices: Vec<Splice>,
    /// Names of members that were replaced, so that no two are the same.
    names: usize,
    /// What is to be in the place of texts that were looked at together with others, by where they begin.
    together: BTreeMap<usize, Option<String>>,
}

impl Walk<'_, '_> {
    fn look(&mut self, text: &str) -> Option<String> {
        (self.look)(&[text]).pop().flatten()
    }

    /// A text, and the one that it holds where it is an address that holds one.
    fn text(&mut self, value: Value<'_>) {
        let Some(text) = value.text() else { return };
        let looked = self.together.remove(&value.span().0).unwrap_or_else(|| self.look(&text));
        if let Some(other) = looked.or_else(|| self.held(&text)) {
            self.splices.push(Splice::over(value, quoted(&other)));
        }
    }

    /// A value of one of the shapes. What the shapes call their members is nothing that looking finds, nor are their numbers.
    fn shaped(&mut self, value: Value<'_>) {
        match value.form() {
            Form::Plain | Form::Escaped => self.text(value),
            Form::Number => self.number(value),
            Form::List => {
                self.look_together(value);
                value.items().for_each(|it| self.shaped(it));
            }
            Form::Object => {
                let before = self.splices.len();
                let mut names = Names::of(value);
                for (name, inner) in value.members() {
                    self.name(&mut names, name);
                    self.member(value, &name.text().unwrap_or_default(), inner);
                }
                if self.splices.len() > before {
                    self.unsigned(value, before);
                }
            }
            Form::Null | Form::Bool(_) => {}
        }
    }

    /// The texts of a content's parts, where there are several: they are told apart by nobody who reads them.
    fn look_together(&mut self, list: Value<'_>) {
        let mut texts = Vec::new();
        of_parts(list, PARTS_LEVELS_MAX, &mut texts);
        self.looked_together(&texts);
    }

    /// The texts of messages that become one on their way to a provider, or are read as one: all system texts, and those of one side
    /// with nothing of the other between them. Results of tools are no part of what stands around them, and a message that says nothing
    /// keeps nothing apart: it is left out on its way.
    fn look_over_messages(&mut self, root: Value<'_>) {
        let messages = || root.get("messages").into_iter().flat_map(|it| it.items());
        let is_system = |role: &str| matches!(role, "system" | "developer");
        let mut system = Vec::new();
        of_member(root, "system", PARTS_LEVELS_MAX, &mut system);
        for message in messages().filter(|it| is_system(&it.text_of("role").unwrap_or_default())) {
            of_content(message, PARTS_LEVELS_MAX, &mut system);
        }
        self.looked_together(&system);
        let (mut said, mut thought, mut side) = (Vec::new(), Vec::new(), None);
        for message in messages() {
            let role = message.text_of("role").unwrap_or_default();
            if is_system(&role) {
                continue;
            }
            let is_answer = role == "assistant";
            if side != Some(is_answer) && says(message) {
                side = Some(is_answer);
                self.looked_together(&std::mem::take(&mut said));
                self.looked_together(&std::mem::take(&mut thought));
            }
            if !matches!(&*role, "tool" | "function") {
                of_content(message, PARTS_LEVELS_MAX, &mut said);
            }
            if is_answer {
                said.extend(Placed::of(message.get("refusal")));
                let blocks = message.get("content").into_iter().flat_map(|it| it.items());
                let blocks = blocks.filter(|it| it.has("type", "thinking"));
                thought.extend(blocks.filter_map(|it| Placed::of(it.get("thinking"))));
            }
        }
        [said, thought].iter().for_each(|it| self.looked_together(it));
    }

    /// Looks at several texts as one, unless they were looked at so with others.
    fn looked_together(&mut self, found: &[Placed<'_>]) {
        if found.len() > 1 && !found.iter().any(|it| self.together.contains_key(&it.start)) {
            let texts: Vec<&str> = found.iter().map(|it| &*it.text).collect();
            self.together.extend(found.iter().map(|it| it.start).zip((self.look)(&texts)));
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
        // The signature may be what was replaced.
        match self.splices.get_mut(at).filter(|it| it.start == splice.start) {
            Some(replaced) => *replaced = splice,
            None => self.splices.insert(at, splice),
        }
    }

    fn member(&mut self, object: Value<'_>, name: &str, value: Value<'_>) {
        if value.is_text() {
            match own(object, name) {
                Some(Own::Id) if is_one_word(value) => return,
                Some(Own::Sealed) => return self.bytes(None, value),
                Some(Own::Bytes) => {
                    let kind = object.text_of("media_type").unwrap_or_default();
                    return self.bytes(Some(&kind), value);
                }
                Some(Own::Address) => return self.address(value),
                Some(Own::File) => return self.file(object, value),
                Some(Own::Id) | None => {}
            }
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
        let mut names = Names::of(holder);
        for (name, value) in holder.members() {
            self.name(&mut names, name);
            match (kind, &*name.text().unwrap_or_default()) {
                ("file", "file_id") if value.is_text() && is_one_word(value) => {}
                ("file", "file_data") => self.file(holder, value),
                ("input_audio", "data") => self.bytes(None, value),
                ("image_url", "url") => self.address(value),
                (_, name) => self.member(holder, name, value),
            }
        }
        if holder.form() != Form::Object {
            self.shaped(holder);
        }
    }

    /// What stands where a shape has bytes in base64. They are looked at where they are a text, which of what has no kind nobody
    /// can tell; what is no base64 is looked at as it is.
    fn bytes(&mut self, kind: Option<&str>, value: Value<'_>) {
        let Some(data) = value.text() else { return self.shaped(value) };
        let is_believed = files::is_base64(&data) || is_mark(&data) && is_one_word(value);
        let other = if is_believed { None } else { self.look(&data) };
        let inner = |walk: &mut Self| walk.look(&files::decoded(kind?, &data)?).map(|it| files::encoded(&it));
        if let Some(other) = other.or_else(|| inner(self)) {
            self.splices.push(Splice::over(value, quoted(&other)));
        }
    }

    /// What stands where a shape has the address of media, which may hold their bytes.
    fn address(&mut self, value: Value<'_>) {
        let text = value.text().unwrap_or_default();
        match files::address(&text) {
            Some(Source::Bytes(_, data)) if files::is_base64(data) => {
                if let Some(other) = self.held(&text) {
                    self.splices.push(Splice::over(value, quoted(&other)));
                }
            }
            Some(_) | None => self.shaped(value),
        }
    }

    /// A file's bytes: at an address, or base64 as it is, of the kind that the file's name tells.
    fn file(&mut self, holder: Value<'_>, data: Value<'_>) {
        if data.text().is_none_or(|it| it.contains(':')) {
            return self.address(data);
        }
        let name = holder.text_of("filename").unwrap_or_default();
        self.bytes(Some(files::kind_of(&name).unwrap_or_default()), data);
    }

    /// An address of bytes that are a text, with another text in their place.
    fn held(&mut self, text: &str) -> Option<String> {
        let Some(Source::Bytes(kind, data)) = files::address(text) else { return None };
        let head = text.strip_suffix(data)?;
        let inner = files::decoded(kind, data).and_then(|it| self.look(&it)).map(|it| files::encoded(&it));
        match (self.look(head), inner) {
            (None, None) => None,
            (Some(head), None) => Some(head + data),
            (head, Some(inner)) => Some(head.unwrap_or_else(|| format!("data:{kind};base64,")) + &inner),
        }
    }

    /// A number, which may be one of a card.
    fn number(&mut self, value: Value<'_>) {
        if value.raw().len() >= NUMBER_MIN
            && let Some(other) = self.look(value.raw())
        {
            self.splices.push(Splice::over(value, quoted(&other)));
        }
    }

    /// A text that holds JSON, as arguments in the chat shape do; any other text as itself.
    fn json_text(&mut self, value: Value<'_>) {
        let Some(text) = value.text() else { return };
        let Ok(tape) = Tape::of(&text) else { return self.text(value) };
        // Places in the text that it holds are others than those in the request.
        let outer = (std::mem::take(&mut self.splices), std::mem::take(&mut self.together));
        self.free(tape.root(&text));
        let inner = std::mem::take(&mut self.splices);
        (self.splices, self.together) = outer;
        if !inner.is_empty() {
            self.splices.push(Splice::over(value, quoted(&spliced(&text, &inner))));
        }
    }

    /// A value whose every part is the caller's: names of members and long numbers are texts too.
    fn free(&mut self, value: Value<'_>) {
        match value.form() {
            Form::Plain | Form::Escaped => self.text(value),
            Form::Number => self.number(value),
            Form::List => value.items().for_each(|it| self.free(it)),
            Form::Object => {
                let mut names = Names::of(value);
                value.members().for_each(|(name, inner)| self.free_member(&mut names, name, inner));
            }
            Form::Null | Form::Bool(_) => {}
        }
    }

    fn free_member<'a>(&mut self, names: &mut Names<'a>, name: Value<'a>, value: Value<'a>) {
        self.name(names, name);
        self.free(value);
    }

    /// The name of a member.
    fn name<'a>(&mut self, names: &mut Names<'a>, name: Value<'a>) {
        if let Some(other) = name.text().and_then(|it| self.look(&it)) {
            let other = loop {
                self.names += 1;
                let other = format!("{other} {}", self.names);
                if !names.has(&other) {
                    break other;
                }
            };
            self.splices.push(Splice::over(name, quoted(&other)));
        }
    }
}

/// A text, and where it begins.
struct Placed<'a> {
    start: usize,
    text: Cow<'a, str>,
}

impl<'a> Placed<'a> {
    /// A text that says something: one that is blank is left out on its way, and keeps nothing apart.
    fn of(value: Option<Value<'a>>) -> Option<Self> {
        let text = value?.text().filter(|it| !it.trim().is_empty())?;
        Some(Self { start: value?.span().0, text })
    }
}

/// The texts of the content that a message or a document has: the one that it is, or those of its parts.
fn of_content<'a>(holder: Value<'a>, levels: usize, texts: &mut Vec<Placed<'a>>) {
    of_member(holder, "content", levels, texts);
}

fn of_member<'a>(holder: Value<'a>, name: &str, levels: usize, texts: &mut Vec<Placed<'a>>) {
    let Some(content) = holder.get(name) else { return };
    texts.extend(Placed::of(Some(content)));
    of_parts(content, levels, texts);
}

/// Whether a message says anything to a provider of either shape. Thoughts are left out where a provider has no place for them.
fn says(message: Value<'_>) -> bool {
    let is_said = |it: Value<'_>| it.text().is_some_and(|it| !it.trim().is_empty());
    let is_part_said = |part: Value<'_>| match &*part.text_of("type").unwrap_or_default() {
        kind if OF_ONE_TEXT.contains(&kind) => part.get("text").is_some_and(is_said),
        "refusal" => part.get("refusal").is_some_and(is_said),
        "thinking" | "redacted_thinking" => false,
        _ => true,
    };
    let content = message.get("content");
    content.is_some_and(|it| is_said(it) || it.items().any(is_part_said))
        || message.get("refusal").is_some_and(is_said)
        || message.get("tool_calls").is_some_and(|it| it.items().next().is_some())
        || message.get("function_call").is_some_and(|it| it.form() == Form::Object)
}

/// The texts of parts in their order, as they are told where a provider has no parts of their kind: those of a document and of what a
/// search found are its name and what it holds.
fn of_parts<'a>(list: Value<'a>, levels: usize, texts: &mut Vec<Placed<'a>>) {
    let Some(levels) = levels.checked_sub(1) else { return };
    for part in list.items() {
        let mut tell = |names: &[&str]| texts.extend(names.iter().filter_map(|name| Placed::of(part.get(name))));
        match &*part.text_of("type").unwrap_or_default() {
            kind if OF_ONE_TEXT.contains(&kind) => tell(&["text"]),
            "refusal" => tell(&["refusal"]),
            "search_result" => {
                tell(&["title", "source"]);
                of_content(part, levels, texts);
            }
            "document" => {
                tell(&["title", "context"]);
                let Some(source) = part.get("source") else { continue };
                match &*source.text_of("type").unwrap_or_default() {
                    "text" => texts.extend(Placed::of(source.get("data"))),
                    "content" => of_content(source, levels, texts),
                    _ => {}
                }
            }
            _ => {}
        }
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

/// What a shape puts in a member that is no text of anybody.
enum Own {
    /// An id.
    Id,
    /// Bytes, whose kind stands beside them.
    Bytes,
    /// What a provider sealed.
    Sealed,
    /// Where media lie, or what holds their bytes.
    Address,
    /// The bytes of a file that may have a name.
    File,
}

/// What a member is where a shape puts it. Under such a name anywhere else stands what the caller likes.
fn own(object: Value<'_>, name: &str) -> Option<Own> {
    // Looked for only where the name is one of these: an object may have very many members.
    let kind = || object.text_of("type").unwrap_or_default();
    let is_function =
        || ["function", "custom"].iter().any(|it| object.get(it).is_some_and(|it| it.form() == Form::Object));
    let if_so = |is: bool, own: Own| is.then_some(own);
    match name {
        "id" => if_so(kind().ends_with("tool_use") || kind().starts_with("reasoning.") || is_function(), Own::Id),
        "tool_use_id" => if_so(kind().ends_with("tool_result"), Own::Id),
        "tool_call_id" => if_so(object.has("role", "tool"), Own::Id),
        "file_id" => {
            let kind = kind();
            let named = ["file", "input_file", "input_image", "container_upload"].contains(&&*kind);
            if_so(named || kind.ends_with("_output"), Own::Id)
        }
        "file_data" => if_so(kind() == "input_file", Own::File),
        "image_url" => if_so(matches!(&*kind(), "image_url" | "input_image"), Own::Address),
        "signature" => if_so(kind() == "thinking" || kind().starts_with("reasoning."), Own::Sealed),
        "encrypted_content" => {
            let kind = kind();
            let sealed = ["web_search_result", "reasoning", "compaction"].contains(&&*kind);
            if_so(sealed || kind.starts_with("reasoning.") || kind.ends_with("_redacted_result"), Own::Sealed)
        }
        "encrypted_index" => if_so(kind().ends_with("_location"), Own::Sealed),
        "encrypted_stdout" => if_so(kind().ends_with("_result"), Own::Sealed),
        "data" => match &*kind() {
            "base64" => Some(Own::Bytes),
            "redacted_thinking" | "reasoning.encrypted" => Some(Own::Sealed),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a text has no space in it, as ids have none.
fn is_one_word(value: Value<'_>) -> bool {
    value.text().is_some_and(|it| !it.contains(char::is_whitespace))
}
