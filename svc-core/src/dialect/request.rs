//! A request as the client sent it, and what of it goes to a provider.

mod bound;
mod interjection;
mod makers;
mod particulars;
mod schema;
#[cfg(test)]
mod tests;
mod thinking;
mod to_chat;
mod to_messages;
mod transcript;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

pub use self::particulars::takes;
use super::check::{self, FAULTS_MAX};
use super::doc::{Form, Tape, Value};
use super::names::{ClientNames, taken};
use super::write::{Out, quoted};
use super::{survey, texts};
use crate::refusal::{FieldError, Refusal};
use crate::state::gateway::route::{AUTO, is_named};
use crate::state::gateway::{Call, Capability, Demand, Dialect, Host, Mode, Model, Particular, Upstream, output_room};

/// What the names of models have that refuse to think in the midst of a turn which began without; a deployment may have any name.
const STRICT: &str = "claude";

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
    /// The provider's name.
    pub provider: &'a str,
    /// Whether the model refuses a budget of thinking in the midst of a turn that began without.
    pub is_strict: bool,
    /// Whose models the provider serves.
    pub host: Host,
    /// Whether another provider was asked first: as far as anybody knows what the conversation holds is that one's.
    pub is_elsewhere: bool,
    /// Whether the client has named this very model, in its shape: what it says is then meant for it.
    pub is_its_own: bool,
    /// The bound on the output that a request of the chat shape goes out with where the client set none.
    pub bound: Option<u64>,
}

impl<'a> Target<'a> {
    /// A model at its provider, to which the request goes first.
    #[must_use]
    pub fn of(upstream: &'a Upstream, model: &'a Model) -> Self {
        Self {
            dialect: upstream.dialect,
            model: model.name.as_str(),
            max_output: model.max_output,
            reasoning: model.capabilities.contains(&Capability::Reasoning),
            provider: upstream.name.as_str(),
            is_strict: model.name.as_str().contains(STRICT)
                || upstream.dialect == Dialect::Messages && upstream.host() == Host::Maker,
            host: makers::host(upstream, model.name.as_str()),
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        }
    }

    /// A model of this shape of which nothing is known: it takes whatever the shape has a place for.
    const fn unknown(dialect: Dialect) -> Self {
        Self {
            dialect,
            model: "",
            max_output: 1,
            reasoning: false,
            provider: "",
            is_strict: false,
            host: Host::Other,
            is_elsewhere: false,
            is_its_own: false,
            bound: None,
        }
    }

    /// Whether its provider signs thinking in a way of its own, which no other knows.
    #[must_use]
    pub const fn signs_apart(&self) -> bool {
        matches!(self.dialect, Dialect::Messages) && !self.is_strict
    }

    /// The same for a call: where a budget holds it (`is_held`), what is reserved has to be all that it can cost, and where policy
    /// chose the model its client speaks to whichever is chosen.
    #[must_use]
    pub fn of_call(upstream: &'a Upstream, model: &'a Model, call: &Call, demand: &Demand, is_held: bool) -> Self {
        Self { bound: is_held.then(|| output_room(model, demand)), ..Self::asked(upstream, model, demand, call.mode) }
    }

    /// The same for a request, before there is a call.
    fn asked(upstream: &'a Upstream, model: &'a Model, demand: &Demand, mode: Mode) -> Self {
        // Where policy acts this word names no model, be it one's alias.
        let is_named = (mode == Mode::Shadow || &*demand.model != AUTO) && is_named(&demand.model, model, upstream);
        Self { is_its_own: is_named && demand.dialect == upstream.dialect, ..Self::of(upstream, model) }
    }
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
        let (no_form_in, particulars) = self.form();
        Demand { no_form_in, particulars, ..survey::demand(self.dialect, &self.model, self.stream, self.root()) }
    }

    /// The shape that it has no form in, whatever the model, and what single models of either refuse of it: it is made ready for some of
    /// which nothing is known, and nothing of that is kept.
    fn form(&self) -> (Option<Dialect>, BTreeSet<Particular>) {
        let other = match self.dialect {
            Dialect::Chat => Dialect::Messages,
            Dialect::Messages => Dialect::Chat,
        };
        let mut faults = Faults::trial();
        self.translate(&mut Out::trial(), Target::unknown(other), &mut faults);
        let no_form_in = (!faults.all.is_empty()).then_some(other);
        self.refused(Target::unknown(self.dialect), &mut faults);
        (no_form_in, faults.particulars.unwrap_or_default())
    }

    /// Says what of it single models of its own shape refuse.
    fn refused(&self, target: Target<'_>, faults: &mut Faults) {
        match self.dialect {
            Dialect::Chat => makers::refused(self.root(), target, faults),
            Dialect::Messages => {
                thinking::refuse_beginning(Dialect::Messages, self.root(), target, faults);
                interjection::refused(self.root(), target, faults);
            }
        }
    }

    /// The request in the other shape.
    fn translate(&self, out: &mut Out, target: Target<'_>, faults: &mut Faults) {
        match target.dialect {
            Dialect::Chat => to_chat::write(out, self.root(), self.stream, target, faults),
            Dialect::Messages => to_messages::write(out, self.root(), self.stream, target, faults),
        }
    }

    /// What its client calls tools and calls that a provider of this shape is told otherwise, or tells otherwise: what reads the
    /// answer is to know it.
    #[must_use]
    pub fn names(&self, upstream: Dialect) -> ClientNames {
        match (self.dialect, upstream) {
            (Dialect::Messages, Dialect::Chat) => ClientNames::of(self.root()),
            (Dialect::Chat, _) | (_, Dialect::Messages) => ClientNames::default(),
        }
    }

    /// Hands every text that goes out to `look`, each by itself, as [`parts_mut`](Self::parts_mut) does.
    ///
    /// # Errors
    /// The same.
    pub fn texts_mut(&mut self, look: &mut dyn FnMut(&str) -> Option<String>) -> Result<(), Refusal> {
        self.parts_mut(&mut |texts| texts.iter().map(|it| look(it)).collect())
    }

    /// Hands every text that goes out to `look`, and puts what it answers in the text's place: messages, system texts,
    /// parts of any kind, files of text, names and descriptions of tools, tool arguments and the texts within them, tool
    /// results, thinking, and whatever stands where a shape has nothing. Bytes of media and ids are left out. The texts of one
    /// content, and of messages that are read as one, come together, in their order, and the answer has one for each.
    ///
    /// # Errors
    /// `internal` where the texts in their places make no request: nothing of it may go out, as it is what it was.
    pub fn parts_mut(&mut self, look: &mut dyn FnMut(&[&str]) -> Vec<Option<String>>) -> Result<(), Refusal> {
        let splices = texts::replacements(self.root(), look);
        if splices.is_empty() {
            return Ok(());
        }
        let text = spliced(&self.text, &splices);
        let tape = Tape::of(&text).map_err(|_| Refusal::internal())?;
        (self.text, self.tape) = (text, tape);
        Ok(())
    }

    /// What goes to the provider. In the client's own shape nothing changes but the model's name, the name of the bound on the
    /// output, or one where budgets need it, ids of calls and members that the provider would refuse, that a stream tells its usage,
    /// that thinking is left out which svc brought into this shape or which another provider told in a member of its own, and that
    /// none is asked for where a turn cannot go on with it or tools are not taken beside it; else the whole is translated.
    ///
    /// # Errors
    /// `invalid_request` naming what the other shape has no place for, or `messages` where nothing of them would go out.
    pub fn to_upstream(&self, target: Target<'_>) -> Result<Vec<u8>, Refusal> {
        let mut faults = Faults::default();
        let bytes = if self.dialect == target.dialect {
            self.refused(target, &mut faults);
            self.renamed(target, &mut faults)
        } else {
            let mut out = Out::default();
            self.translate(&mut out, target, &mut faults);
            out.into_bytes()
        };
        if faults.all.is_empty() { Ok(bytes) } else { Err(Refusal::invalid_request(faults.all)) }
    }

    /// What of the request is told otherwise to this model than its client said, in lines for people.
    #[must_use]
    pub fn changed(&self, target: Target<'_>) -> Vec<String> {
        let (root, model) = (self.root(), target.model);
        let mut lines = Vec::new();
        let is_told = || root.get("reasoning_effort").is_some_and(|it| it.is("none"));
        if makers::is_unthinking(root, target) {
            if !is_told() {
                lines.push(format!("{model} takes tools without thinking alone: it was told not to think"));
            }
        } else if let (Dialect::Chat, Some(known)) = (self.dialect, makers::effort_known(root, target)) {
            lines.push(format!("{model} knows no such reasoning_effort: it was told {known}"));
        }
        let mut missed = makers::missed(root, self.dialect, target);
        missed.extend(transcript::missed(root, self.dialect, target));
        if !missed.is_empty() {
            lines.push(format!("left out, as {model} refuses it: {}", missed.join(", ")));
        }
        if let (Dialect::Chat, Dialect::Chat, Some(held)) = (self.dialect, target.dialect, bound::set(root, target)) {
            lines.push(format!(
                "without a bound of its own, it was sent with one of {held} tokens, which a budget holds"
            ));
        }
        lines.extend(schema::changed(self.dialect, root, target));
        lines.extend(thinking::changed(self.dialect, root, target));
        lines.extend(interjection::changed(self.dialect, root, target));
        if (self.dialect, target.dialect) == (Dialect::Chat, Dialect::Messages) {
            lines.extend(to_messages::unthought(root, target));
        }
        lines
    }

    /// The body in its own shape, for this model.
    fn renamed(&self, target: Target<'_>, faults: &mut Faults) -> Vec<u8> {
        let root = self.root();
        let mut names = makers::left_out(root, target);
        let thinking = thinking::told(root, target, &mut names);
        let mut first = left_out(root, &names);
        first.extend(thinking);
        if self.dialect == Dialect::Chat {
            first.extend(ids_taken(root, target.host));
            first.extend(makers::renamed(root, target));
            first.extend(makers::forced(root, target));
        } else {
            first.extend(interjection::told(root, target));
        }
        if first.is_empty() {
            return self.spoken(target, faults);
        }
        first.sort_unstable_by_key(|it| (it.start, it.end));
        let text = spliced(&self.text, &first);
        match Tape::of(&text) {
            Ok(tape) => Self { text, tape, model: self.model.clone(), ..*self }.spoken(target, faults),
            Err(_) => self.spoken(target, faults),
        }
    }

    /// The same with what its provider takes of ids and members.
    fn spoken(&self, target: Target<'_>, faults: &mut Faults) -> Vec<u8> {
        let root = self.root();
        let mut splices: Vec<Splice> = Vec::new();
        if let Some(named) = root.get("model").filter(|it| !it.is(target.model)) {
            splices.push(Splice::over(named, quoted(target.model)));
        }
        // Mistral knows no such member, and always tells it.
        if self.dialect == Dialect::Chat && self.stream && target.host != Host::Mistral {
            splices.extend(usage_asked(root));
        }
        if self.dialect == Dialect::Chat {
            splices.extend(bound::spoken_as(root, target));
            splices.extend(makers::told_otherwise(root, target));
            splices.extend(transcript::told(root, target));
        }
        if self.dialect == Dialect::Messages {
            splices.extend(thinking::taken_back(root, target, faults));
        }
        splices.sort_unstable_by_key(|it| (it.start, it.end));
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

/// What of a request has no place where it goes.
#[derive(Debug, Default)]
struct Faults {
    all: Vec<FieldError>,
    /// Where it goes to no model yet: what single models refuse of it.
    particulars: Option<BTreeSet<Particular>>,
}

impl Faults {
    /// Where a request goes to no model yet.
    fn trial() -> Self {
        Self { particulars: Some(BTreeSet::new()), ..Self::default() }
    }

    fn add(&mut self, field: impl Into<Box<str>>, clause: &str) {
        if self.all.len() < FAULTS_MAX {
            self.all.push(FieldError::new(field, clause));
        }
    }

    /// Whether it is worth a look whether a request has this.
    fn looks_for(&self, what: Particular, target: Target<'_>) -> bool {
        self.particulars.is_some() || target.refuses(what)
    }

    /// Says that a request has this, which single models refuse: whether this one does.
    fn has(&mut self, what: Particular, target: Target<'_>, field: impl Into<Box<str>>, clause: &str) -> bool {
        if let Some(known) = &mut self.particulars {
            known.insert(what);
            return false;
        }
        let is_refused = target.refuses(what);
        if is_refused {
            self.add(field, clause);
        }
        is_refused
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

    /// Before the first member of an object.
    fn first(object: Value<'_>, member: &str) -> Self {
        let (start, _) = object.span();
        let comma = if object.members().next().is_some() { "," } else { "" };
        Self { start: start + 1, end: start + 1, text: format!("{member}{comma}") }
    }

    /// In place of a member and the comma beside it: nothing.
    fn without(object: Value<'_>, name: &str) -> Option<Self> {
        let mut before = None;
        let mut members = object.members();
        while let Some((key, value)) = members.next() {
            let ((start, _), (_, end)) = (key.span(), value.span());
            if key.is(name) {
                let (start, end) = match members.next() {
                    Some((next, _)) => (start, next.span().0),
                    None => (before.unwrap_or(start), end),
                };
                return Some(Self { start, end, text: String::new() });
            }
            before = Some(end);
        }
        None
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

/// What leaves out members of these names, each with the comma beside it; such as stand together go together.
fn left_out(object: Value<'_>, names: &[&str]) -> Vec<Splice> {
    left_out_where(object, |key, _| names.iter().any(|it| key.is(it)))
}

/// The same of those that are such, by their names and values.
fn left_out_where<'a>(object: Value<'a>, is_such: impl Fn(Value<'a>, Value<'a>) -> bool) -> Vec<Splice> {
    let mut splices: Vec<Splice> = Vec::new();
    let (mut kept, mut open): (Option<usize>, Option<(usize, usize)>) = (None, None);
    for (key, value) in object.members() {
        let ((start, _), (_, end)) = (key.span(), value.span());
        if is_such(key, value) {
            open = Some((open.map_or(start, |it| it.0), end));
            continue;
        }
        if let Some((from, _)) = open.take() {
            splices.push(Splice { start: from, end: start, text: String::new() });
        }
        kept = Some(end);
    }
    splices.extend(open.map(|(from, to)| Splice { start: kept.unwrap_or(from), end: to, text: String::new() }));
    splices
}

/// Whether a number is so without being said.
fn is_one(number: Value<'_>) -> bool {
    number.raw().parse::<f64>().is_ok_and(|it| it.to_bits() == 1_f64.to_bits())
}

/// The same of one that is none when nothing is said.
fn is_zero(number: Value<'_>) -> bool {
    number.raw().parse::<f64>().is_ok_and(|it| it.abs().to_bits() == 0)
}

/// What makes a chat stream tell its usage.
fn usage_asked(root: Value<'_>) -> Option<Splice> {
    const ASKED: &str = "\"include_usage\":true";
    match root.get("stream_options") {
        None => Some(Splice::first(root, &format!("\"stream_options\":{{{ASKED}}}"))),
        Some(options) if options.form() == Form::Object => match options.get("include_usage") {
            None => Some(Splice::first(options, ASKED)),
            Some(asked) if asked.bool() == Some(true) => None,
            Some(asked) => Some(Splice::over(asked, "true".to_owned())),
        },
        Some(options) => Some(Splice::over(options, format!("{{{ASKED}}}"))),
    }
}

/// What tells the ids of calls as they are taken at this host.
fn ids_taken(root: Value<'_>, host: Host) -> impl Iterator<Item = Splice> {
    let messages = root.get("messages").into_iter().flat_map(|it| it.items());
    let ids = messages.flat_map(|message| {
        let calls = message.get("tool_calls").into_iter().flat_map(|it| it.items()).filter_map(|it| it.get("id"));
        // In the order in which they stand: a message has one or the other.
        calls.chain(message.get("tool_call_id"))
    });
    ids.filter_map(move |it| match taken(&it.text()?, host) {
        Cow::Owned(other) => Some(Splice::over(it, quoted(&other))),
        Cow::Borrowed(_) => None,
    })
}
