//! A request as the client sent it, and what of it goes to a provider.

#[cfg(test)]
mod tests;
mod to_chat;
mod to_messages;

use std::fmt;

use super::answer::is_unsigned;
use super::check::{self, FAULTS_MAX};
use super::doc::{Form, Tape, Value};
use super::names::LongNames;
use super::write::{Out, quoted};
use super::{survey, texts};
use crate::refusal::{FieldError, Refusal};
use crate::state::gateway::{Demand, Dialect};

/// A request for a model's work: read once, kept as it was written.
///
/// Member by member it is what the client sent; what svc does not know goes on to the provider untouched.
#[derive(Clone, PartialEq, Eq)]
pub struct Body {
    dialect: Dialect,
    text: String,
    tape: Tape,
    model: Box<str>,
    stream: bool,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The shape that the provider speaks.
    pub dialect: Dialect,
    /// The model's id as the provider has it.
    pub model: &'a str,
    /// How many tokens the model answers at most: what a request of the messages shape says where the client said
    /// nothing.
    pub max_output: u64,
    /// Whether the model thinks before it answers. Where it does not, a wish for more or less of it is left out in
    /// translation.
    pub reasoning: bool,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An answer.
    Answer,
    /// How many tokens it would take in.
    Count,
}

impl Body {
    /// Reads a request for an answer.
    ///
    /// # Errors
    /// `invalid_json` for what is not strict JSON (CONTRACT part 1, "JSON"), `invalid_request` with every fault found.
    pub fn read(dialect: Dialect, bytes: &[u8]) -> Result<Self, Refusal> {
        Self::read_for(dialect, Purpose::Answer, bytes)
    }

    /// Reads a request of the messages shape that is only to be counted: it sets no bound on an output.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_count(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::read_for(Dialect::Messages, Purpose::Count, bytes)
    }

    fn read_for(dialect: Dialect, purpose: Purpose, bytes: &[u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|fault| {
            Refusal::invalid_json(format!("the body is not UTF-8 from byte {} on", fault.valid_up_to()))
        })?;
        let tape = Tape::of(text).map_err(|fault| Refusal::invalid_json(format!("the body {fault}")))?;
        let root = tape.root(text);
        if root.form() != Form::Object {
            return Err(Refusal::invalid_request(vec![FieldError::whole("the body must be an object")]));
        }
        let faults = check::faults(dialect, purpose, root);
        if check::is_threaded(dialect, root) {
            return Err(Refusal::thread_unsupported(faults));
        }
        if !faults.is_empty() {
            return Err(Refusal::invalid_request(faults));
        }
        let model = root.text_of("model").unwrap_or_default().into();
        let stream = root.get("stream").and_then(|it| it.bool()).unwrap_or(false);
        Ok(Self { dialect, text: text.to_owned(), tape, model, stream })
    }

    /// The shape in which it came.
    #[must_use]
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The model as the client named it.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether the answer is to come as a stream.
    #[must_use]
    pub const fn stream(&self) -> bool {
        self.stream
    }

    /// Whether the client asked to be told the usage of a stream. In the messages shape it is always told.
    #[must_use]
    pub fn wants_usage(&self) -> bool {
        match self.dialect {
            Dialect::Messages => true,
            Dialect::Chat => {
                let options = self.root().get("stream_options");
                options.and_then(|it| it.get("include_usage")).and_then(|it| it.bool()).unwrap_or(false)
            }
        }
    }

    /// The coding client's or the person's name for themselves that went with it: `user` or `metadata.user_id`.
    #[must_use]
    pub fn user(&self) -> Option<Box<str>> {
        let root = self.root();
        match self.dialect {
            Dialect::Chat => root.text_of("user").map(Into::into),
            Dialect::Messages => root.get("metadata")?.text_of("user_id").map(Into::into),
        }
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// What deciding on it takes.
    #[must_use]
    pub fn demand(&self) -> Demand {
        survey::demand(self.dialect, &self.model, self.stream, self.root())
    }

    /// The names of its tools that a provider of the other shape is told shortened: what reads the answer is to know them.
    #[must_use]
    pub fn long_names(&self) -> LongNames {
        match self.dialect {
            Dialect::Chat => LongNames::default(),
            Dialect::Messages => LongNames::of(self.root().get("tools")),
        }
    }

    /// Hands every text that goes out to `look`, and puts what it answers in the text's place: messages, system texts,
    /// parts of any kind, names and descriptions of tools, tool arguments and the texts within them, tool results,
    /// thinking. Bytes of media, ids and the words that the shape itself is made of are left out.
    pub fn texts_mut(&mut self, look: &mut dyn FnMut(&str) -> Option<String>) {
        let splices = texts::replacements(self.root(), look);
        if splices.is_empty() {
            return;
        }
        let text = spliced(&self.text, &splices);
        if let Ok(tape) = Tape::of(&text) {
            self.text = text;
            self.tape = tape;
        }
    }

    /// What goes to the provider. In the client's own shape nothing changes but the model's name, that a stream tells its
    /// usage, and that thinking is left out which svc brought into this shape; else the whole is translated.
    ///
    /// # Errors
    /// `invalid_request` naming what the other shape has no place for.
    pub fn to_upstream(&self, target: Target<'_>) -> Result<Vec<u8>, Refusal> {
        let mut faults = Faults::default();
        let bytes = match (self.dialect, target.dialect) {
            (Dialect::Chat, Dialect::Chat) | (Dialect::Messages, Dialect::Messages) => self.renamed(target.model),
            (Dialect::Chat, Dialect::Messages) => to_messages::write(self.root(), self.stream, target, &mut faults),
            (Dialect::Messages, Dialect::Chat) => to_chat::write(self.root(), self.stream, target, &mut faults),
        };
        if faults.0.is_empty() { Ok(bytes) } else { Err(Refusal::invalid_request(faults.0)) }
    }

    /// The body in its own shape, for this model.
    fn renamed(&self, model: &str) -> Vec<u8> {
        let root = self.root();
        let mut splices: Vec<Splice> = Vec::new();
        if let Some(named) = root.get("model").filter(|it| !it.is(model)) {
            splices.push(Splice::over(named, quoted(model)));
        }
        if self.dialect == Dialect::Chat && self.stream {
            splices.extend(usage_asked(root));
        }
        if self.dialect == Dialect::Messages {
            splices.extend(unsigned_left_out(root));
        }
        splices.sort_unstable_by_key(|it| it.start);
        spliced(&self.text, &splices).into_bytes()
    }

    pub(super) fn root(&self) -> Value<'_> {
        self.tape.root(&self.text)
    }
}

/// No text of the request.
impl fmt::Debug for Body {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.text.len();
        out.debug_struct("Body").field("dialect", &self.dialect).field("bytes", &size).finish_non_exhaustive()
    }
}

/// What of a request has no place in the other shape.
#[derive(Debug, Default)]
struct Faults(Vec<FieldError>);

impl Faults {
    fn add(&mut self, field: impl Into<Box<str>>, clause: &str) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(FieldError::new(field, clause));
        }
    }

    fn lost(&mut self, path: &str) {
        self.add(path, "has no place in the shape that this model's provider speaks");
    }
}

/// The texts of a content: the text that it is, or its parts of text with something between them.
fn joined(content: Value<'_>, between: &str) -> String {
    if let Some(text) = content.text() {
        return text.into();
    }
    let texts = content.items().filter(|it| it.has("type", "text")).filter_map(|it| it.text_of("text"));
    texts.collect::<Vec<_>>().join(between)
}

/// The text of this member as JSON, else another.
fn raw_or<'a>(object: Value<'a>, name: &str, other: &'a str) -> &'a str {
    object.get(name).filter(|it| it.is_text()).map_or(other, |it| it.raw())
}

/// A piece of a text and what is to stand in its place.
#[derive(Debug)]
pub(super) struct Splice {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

impl Splice {
    /// In place of a whole value.
    pub(super) fn over(value: Value<'_>, text: String) -> Self {
        let (start, end) = value.span();
        Self { start, end, text }
    }
}

/// The text with its splices, which come in order and do not overlap.
pub(super) fn spliced(text: &str, splices: &[Splice]) -> String {
    let added: usize = splices.iter().map(|it| it.text.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for splice in splices {
        out.push_str(text.get(from..splice.start).unwrap_or_default());
        out.push_str(&splice.text);
        from = splice.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

/// What makes a chat stream tell its usage.
fn usage_asked(root: Value<'_>) -> Option<Splice> {
    const ASKED: &str = "\"include_usage\":true";
    let inside = |object: Value<'_>, text: &str| {
        let (start, _) = object.span();
        let comma = if object.members().next().is_some() { "," } else { "" };
        Splice { start: start + 1, end: start + 1, text: format!("{text}{comma}") }
    };
    match root.get("stream_options") {
        None => Some(inside(root, &format!("\"stream_options\":{{{ASKED}}}"))),
        Some(options) if options.form() == Form::Object => match options.get("include_usage") {
            None => Some(inside(options, ASKED)),
            Some(asked) if asked.bool() == Some(true) => None,
            Some(asked) => Some(Splice::over(asked, "true".to_owned())),
        },
        Some(options) => Some(Splice::over(options, format!("{{{ASKED}}}"))),
    }
}

/// What leaves out thinking of models of the chat shape, which no provider of the messages shape has signed and all refuse; a
/// message of nothing else is left out with it.
fn unsigned_left_out(root: Value<'_>) -> Vec<Splice> {
    let Some(messages) = root.get("messages") else { return Vec::new() };
    let has_unsigned = |it: &Value<'_>| it.get("content").is_some_and(|it| it.items().any(|it| is_unsigned(&it)));
    if !messages.items().any(|it| has_unsigned(&it)) {
        return Vec::new();
    }
    let mut out = Out::default();
    out.list(|out| {
        for message in messages.items() {
            if has_unsigned(&message) { signed(out, message) } else { out.raw(message.raw()) }
        }
    });
    let text = String::from_utf8(out.into_bytes()).unwrap_or_default();
    let mut splices = vec![Splice::over(messages, text)];
    // A turn of calls that began without the model's own thinking goes on without: a model with a budget of it refuses any other.
    let last = messages.items().filter(|it| it.has("role", "assistant")).last();
    let goes_on = last.filter(has_unsigned).is_some_and(|it| calls(it));
    let budget = root.get("thinking").filter(|it| goes_on && it.has("type", "enabled"));
    splices.extend(budget.map(|it| Splice::over(it, "{\"type\":\"disabled\"}".to_owned())));
    splices
}

fn calls(message: Value<'_>) -> bool {
    message.get("content").is_some_and(|it| it.items().any(|it| it.has("type", "tool_use")))
}

/// A message without the thinking that is not signed; nothing where it has nothing else.
fn signed(out: &mut Out, message: Value<'_>) {
    let blocks = || message.get("content").into_iter().flat_map(|it| it.items()).filter(|it| !is_unsigned(it));
    if blocks().next().is_none() {
        return;
    }
    out.object(|out| {
        for (name, value) in message.members() {
            let member = out.name(&name.text().unwrap_or_default());
            if name.is("content") {
                member.list(|out| blocks().for_each(|it| out.raw(it.raw())));
            } else {
                member.raw(value.raw());
            }
        }
    });
}
