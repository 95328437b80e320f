//! A whole answer of a provider: what it used, why it ended, and how it reads in the client's shape.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::doc::{Form, Tape, Value, length};
use super::error::ProviderError;
use super::finish::Finish;
use super::marks::{As, call_mark, is_unsigned, mark, marked, marked_block, signed_apart};
use super::names::ClientNames;
use super::own::{self, is_free};
use super::request::spliced;
use super::usage::{self, Told};
use super::write::Out;
use crate::state::gateway::{Dialect, Service, Usage, estimate_of_whole, tokens_of};
use crate::value::id::CallId;

/// What stands in the place of a picture, so that nobody waits for what was made and cannot be shown.
pub(super) const PICTURE: &str = "[an image was left out here, as this client's API has no images in answers]";
/// More uses of one tool than an answer has: a count above is no count.
const USES_MAX: i64 = 1 << 20;
/// Bytes of a word by which a provider says how it has served: a price has no longer name.
const SERVICE_MAX: usize = 64;

/// A provider's answer, kept as it was written.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    dialect: Dialect,
    text: String,
    tape: Tape,
    usage: Option<Usage>,
    reported: Option<Usage>,
    finish: Option<Finish>,
    text_bytes: u64,
    charged_input: u64,
    model: Option<Box<str>>,
    server_tools: BTreeMap<Box<str>, u64>,
    brought: BTreeSet<Box<str>>,
    service: Service,
    names: ClientNames,
    provider: Box<str>,
    /// What is put before signatures of thinking.
    mark: Option<String>,
}

/// Why what a provider sent with status 200 is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is not JSON.
    #[error("it sent what is not JSON")]
    NotJson,
    /// It is an answer without an answer in it: what it says of its use holds.
    #[error("it sent an answer without any choice")]
    NoChoice(Option<Usage>),
    /// It is JSON, and no answer of the provider's shape: what it says of its use holds.
    #[error("it sent JSON that is no answer")]
    NotAnswer(Option<Usage>),
    /// It is an error in spite of its status: what it says of its use holds.
    #[error("it answered with an error: {}", .0.message)]
    Failed(Box<ProviderError>, Option<Usage>),
}

impl Unreadable {
    /// What it says of its use all the same.
    #[must_use]
    pub const fn reported(&self) -> Option<Usage> {
        match self {
            Self::NoChoice(usage) | Self::NotAnswer(usage) | Self::Failed(_, usage) => *usage,
            Self::NotJson => None,
        }
    }
}

impl Answer {
    /// Reads the body of a provider's answer.
    ///
    /// # Errors
    /// [`Unreadable`] for what is no answer of the provider's shape.
    pub fn read(upstream: Dialect, bytes: &[u8]) -> Result<Self, Unreadable> {
        let text = std::str::from_utf8(bytes).map_err(|_| Unreadable::NotJson)?;
        let mut tape = Tape::default();
        tape.read(text).map_err(|_| Unreadable::NotJson)?;
        let root = tape.root(text);
        if let Some(error) = ProviderError::told(upstream, root, &[]) {
            return Err(Unreadable::Failed(Box::new(error), usage_of(upstream, root)));
        }
        // Some providers say so that they have not answered; a client would take it for an answer, or fail over it.
        let choices = root.get("choices").filter(|it| upstream == Dialect::Chat && it.form() == Form::List);
        if choices.is_some_and(|it| it.items().next().is_none()) {
            return Err(Unreadable::NoChoice(usage_of(upstream, root)));
        }
        let facts = match upstream {
            Dialect::Chat => chat_facts(root),
            Dialect::Messages => messages_facts(root),
        };
        let Facts { reported, finish, text_bytes, calls, server_tools, brought } =
            facts.ok_or_else(|| Unreadable::NotAnswer(usage_of(upstream, root)))?;
        let model = root.text_of("model").filter(|it| !it.is_empty()).map(Into::into);
        let usage = usage::believed(reported, text_bytes > 0 || calls);
        let mut service = Service::default();
        hear_service(root, &mut service);
        let messages = choices.iter().flat_map(|it| it.items()).filter_map(|it| it.get("message"));
        service.drew = messages.map(pictures).any(|it| it > 0);
        let (dialect, text) = (upstream, text.to_owned());
        Ok(Self {
            dialect,
            text,
            tape,
            usage,
            reported,
            finish,
            text_bytes,
            charged_input: 0,
            model,
            server_tools,
            brought,
            service,
            names: ClientNames::default(),
            provider: Box::default(),
            mark: None,
        })
    }

    /// The same, by a provider of this name: to it alone goes back what its model has thought.
    #[must_use]
    pub fn of_provider(self, name: &str) -> Self {
        Self { provider: name.into(), ..self }
    }

    /// The same; where a provider is named, its signatures of thinking are known to no other.
    #[must_use]
    pub fn signed_by(self, provider: Option<&str>) -> Self {
        Self { mark: provider.map(signed_apart), ..self }
    }

    /// The same, to a client that goes by these names.
    #[must_use]
    pub fn naming(self, names: ClientNames) -> Self {
        Self { names, ..self }
    }

    /// The same; where its provider does not tell what went in, so many tokens are charged.
    #[must_use]
    pub fn charging(self, charged_input: u64) -> Self {
        Self { charged_input, ..self }
    }

    /// What the provider told of the usage; `None` where it told nothing, or zero beside text, so that it is to be
    /// estimated.
    #[must_use]
    pub const fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// What it told, be it one side of it: an estimate goes by that.
    #[must_use]
    pub const fn reported(&self) -> Option<Usage> {
        self.reported
    }

    /// Why it ended, where that was told.
    #[must_use]
    pub const fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// UTF-8 bytes of text, thinking and tool arguments, over all its choices.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// The model as the provider names it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Uses of tools that the provider ran itself, by the name under which they are priced.
    #[must_use]
    pub const fn server_tools(&self) -> &BTreeMap<Box<str>, u64> {
        &self.server_tools
    }

    /// Further tools that the provider ran, without a price of their own: those of MCP servers, and those of which only the
    /// results are here.
    #[must_use]
    pub const fn brought(&self) -> &BTreeSet<Box<str>> {
        &self.brought
    }

    /// How the provider says that it has served, as far as prices go by it.
    #[must_use]
    pub const fn service(&self) -> &Service {
        &self.service
    }

    /// The body for the client: the provider's own bytes where both speak the same, else translated. `created_s` are the
    /// seconds since 1970 that an answer of the chat shape tells where the provider's shape has none; after `call`, which it
    /// answers, tool calls are named to which the provider gives no id.
    #[must_use]
    pub fn to_client(&self, client: Dialect, created_s: u64, call: CallId) -> Vec<u8> {
        let root = self.tape.root(&self.text);
        match (self.dialect, client) {
            (Dialect::Chat, Dialect::Chat) => self.text.clone().into_bytes(),
            (Dialect::Messages, Dialect::Messages) => self.as_it_is(root),
            (Dialect::Messages, Dialect::Chat) => self.as_chat(root, created_s),
            (Dialect::Chat, Dialect::Messages) => self.as_messages(root, call),
        }
    }

    /// The provider's own bytes, but for the mark before its signatures.
    fn as_it_is(&self, root: Value<'_>) -> Vec<u8> {
        let Some(mark) = &self.mark else { return self.text.clone().into_bytes() };
        let blocks = root.get("content").into_iter().flat_map(|it| it.items());
        let signatures = blocks.filter(|it| it.has("type", "thinking")).filter_map(|it| it.get("signature"));
        let splices: Vec<_> = signatures.filter_map(|it| marked(it, mark)).collect();
        spliced(&self.text, &splices).into_bytes()
    }

    fn as_chat(&self, root: Value<'_>, created_s: u64) -> Vec<u8> {
        let calls = root.get("content").is_some_and(|it| it.items().any(|it| it.has("type", "tool_use")));
        let finish = self.finish.unwrap_or(Finish::Stop).beside(calls);
        let mut out = Out::default();
        out.object(|out| {
            out.name("id").raw(raw_text(root, "id", "\"chatcmpl-0\""));
            out.name("object").text("chat.completion");
            out.name("created").number(created_s);
            out.name("model").raw(raw_text(root, "model", "\"\""));
            out.name("choices").list(|out| {
                out.object(|out| {
                    out.name("index").number(0);
                    out.name("message").object(|out| chat_message(out, root, self.mark.as_deref()));
                    out.name("logprobs").null();
                    out.name("finish_reason").text(finish.chat());
                });
            });
            usage::write_chat(out.name("usage"), &self.told());
        });
        out.into_bytes()
    }

    fn as_messages(&self, root: Value<'_>, call: CallId) -> Vec<u8> {
        let choice = root.get("choices").and_then(|it| it.items().next());
        let message = choice.and_then(|it| it.get("message"));
        let listed = message.and_then(|it| it.get("tool_calls")).is_some_and(|it| it.items().next().is_some());
        let calls = listed || message.is_some_and(|it| it.given("function_call").is_some());
        let refused = message.and_then(|it| it.text_of("refusal")).is_some_and(|it| !it.is_empty());
        let finish = match self.finish.unwrap_or(Finish::Stop) {
            _ if refused => Finish::Refusal,
            other => other.beside(calls),
        };
        let stopped = choice.and_then(|it| self.names.stopped_at(it));
        let mut out = Out::default();
        out.object(|out| {
            out.name("id").raw(raw_text(root, "id", "\"msg_0\""));
            out.name("type").text("message");
            out.name("role").text("assistant");
            out.name("model").raw(raw_text(root, "model", "\"\""));
            out.name("content").list(|out| {
                if let Some(message) = message {
                    self.blocks(out, message, call);
                }
            });
            finish.write_messages(out, stopped);
            usage::write_messages(out.name("usage"), &self.told());
        });
        out.into_bytes()
    }

    /// Blocks of the messages shape out of a message of the chat shape.
    fn blocks(&self, out: &mut Out, message: Value<'_>, answered: CallId) {
        let said = |name, told| message.text_of(name).filter(|it| !it.is_empty()).map(|it| (it, told));
        let thinking = said("reasoning_content", As::ReasoningContent);
        if let Some((text, told)) = thinking.or_else(|| said("reasoning", As::Other)) {
            self.thinking(out, &text, told);
        }
        if let Some(content) = message.given("content") {
            text_block(out, &content.text().unwrap_or_default());
            for part in content.items() {
                for inner in part.get("thinking").iter().flat_map(|it| it.items()) {
                    self.thinking(out, &inner.text_of("text").unwrap_or_default(), As::Other);
                }
                text_block(out, &part.text_of("text").unwrap_or_default());
            }
        }
        text_block(out, &spoken(message).and_then(|it| it.text()).unwrap_or_default());
        for _ in 0..pictures(message) {
            text_block(out, PICTURE);
        }
        text_block(out, &message.text_of("refusal").unwrap_or_default());
        let calls = message.get("tool_calls");
        let mut calls = calls.iter().flat_map(|it| it.items()).enumerate().peekable();
        let mut names = self.names.clone();
        if let (None, Some(function)) = (calls.peek(), message.given("function_call")) {
            self.tool_use(out, &names.of_call("", || invented(answered, 0)), function);
        }
        for (at, call) in calls {
            let Some(function) = call.get("function") else { continue };
            let id = names.of_call(&call.text_of("id").unwrap_or_default(), || invented(answered, at));
            if let Some(beside) = told_beside(call) {
                out.object(|out| {
                    out.name("type").text("redacted_thinking");
                    out.name("data").text(&call_mark(&self.provider, &id, beside));
                });
            }
            self.tool_use(out, &id, function);
        }
    }

    /// A call of this function, by the id that the client is told.
    fn tool_use(&self, out: &mut Out, id: &str, function: Value<'_>) {
        out.object(|out| {
            out.name("type").text("tool_use");
            out.name("id").text(id);
            out.name("name").text(self.names.of_client(&function.text_of("name").unwrap_or_default()));
            write_input(out.name("input"), &arguments_of(function));
        });
    }

    /// A block of thinking, signed by svc's own mark.
    fn thinking(&self, out: &mut Out, text: &str, told: As) {
        if !text.is_empty() {
            out.object(|out| {
                out.name("type").text("thinking");
                out.name("thinking").text(text);
                out.name("signature").text(&mark(told, &self.provider));
            });
        }
    }

    /// The usage as a client of the other shape is told it: as the call is charged, be it by an estimate.
    fn told(&self) -> Usage {
        let estimate = || estimate_of_whole(self.charged_input, self.reported, tokens_of(self.text_bytes));
        self.usage.unwrap_or_else(estimate)
    }
}

/// No text of the answer.
impl fmt::Debug for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Answer");
        out.field("dialect", &self.dialect).field("usage", &self.usage).field("finish", &self.finish);
        out.finish_non_exhaustive()
    }
}

/// The text of this member as JSON, else another.
fn raw_text<'a>(object: Value<'a>, name: &str, other: &'a str) -> &'a str {
    object.get(name).filter(|it| it.is_text() && !it.is_empty_text()).map_or(other, |it| it.raw())
}

#[derive(Default)]
struct Facts {
    reported: Option<Usage>,
    finish: Option<Finish>,
    text_bytes: u64,
    calls: bool,
    server_tools: BTreeMap<Box<str>, u64>,
    brought: BTreeSet<Box<str>>,
}

fn chat_facts(root: Value<'_>) -> Option<Facts> {
    let choices = root.get("choices").filter(|it| it.form() == Form::List)?;
    let mut facts = Facts::default();
    for choice in choices.items() {
        let reason = choice.text_of("finish_reason").map(|it| Finish::from_chat(&it));
        facts.finish = facts.finish.or(reason);
        let Some(message) = choice.get("message") else { continue };
        for name in ["content", "reasoning_content", "reasoning", "refusal"] {
            let Some(value) = message.given(name).filter(|_| !is_said_twice(message, name)) else { continue };
            let parts: u64 = value.items().map(|it| length(it.raw())).sum();
            facts.text_bytes = facts.text_bytes.saturating_add(value.text_len()).saturating_add(parts);
        }
        for call in message.get("tool_calls").iter().flat_map(|it| it.items()) {
            facts.calls = true;
            let arguments = call.get("function").and_then(|it| it.get("arguments"));
            facts.text_bytes = facts.text_bytes.saturating_add(arguments.map_or(0, arguments_len));
        }
        facts.calls |= message.given("function_call").is_some() || message.given("audio").is_some();
        if own::cites_the_web(message) {
            facts.server_tools.insert(own::SEARCH.into(), 1);
        }
    }
    own::note_found(root, &mut facts.brought);
    facts.reported = usage_of(Dialect::Chat, root);
    if let Some(told) = root.given("usage") {
        server_tools_of_chat(told, &mut facts.server_tools);
    }
    Some(facts)
}

/// What a whole answer says of its use.
fn usage_of(upstream: Dialect, root: Value<'_>) -> Option<Usage> {
    let usage = root.given("usage")?;
    match upstream {
        Dialect::Chat => usage::chat(usage),
        Dialect::Messages => {
            let mut told = Told::default();
            told.add(usage);
            told.whole()
        }
    }
}

fn messages_facts(root: Value<'_>) -> Option<Facts> {
    let content = root.get("content").filter(|it| it.form() == Form::List)?;
    let reason = root.text_of("stop_reason").map(|it| Finish::from_messages(&it));
    let mut facts = Facts { finish: reason, ..Facts::default() };
    for block in content.items() {
        let kind = block.text_of("type").unwrap_or_default();
        own::note_block(block, &kind, &mut facts.brought);
        if let Some(name) = own::priced(block, &kind) {
            *facts.server_tools.entry(name.into()).or_default() += 1;
        }
        let bytes = match &*kind {
            "text" => block.get("text").map_or(0, |it| it.text_len()),
            "thinking" => block.get("thinking").map_or(0, |it| it.text_len()),
            "tool_use" => {
                facts.calls = true;
                block.get("input").map_or(0, |it| length(it.raw()))
            }
            _ => 0,
        };
        facts.text_bytes = facts.text_bytes.saturating_add(bytes);
    }
    facts.reported = usage_of(Dialect::Messages, root);
    if let Some(usage) = root.given("usage") {
        server_tool_uses(usage, &mut facts.server_tools);
    }
    Some(facts)
}

/// Takes in what an answer, a message or a chunk tells of how it is served; what was told before stays.
pub(super) fn hear_service(object: Value<'_>, service: &mut Service) {
    let usage = object.get("usage");
    let told = |of: Option<Value<'_>>, name: &str| {
        let told = of.and_then(|it| it.text_of(name)).filter(|it| (1..=SERVICE_MAX).contains(&it.len()));
        told.map(|it| Box::from(&*it))
    };
    let tier = || told(Some(object), "service_tier").or_else(|| told(usage, "service_tier"));
    service.tier = service.tier.take().or_else(tier);
    service.speed = service.speed.take().or_else(|| told(usage, "speed"));
    let geo = || told(usage, "inference_geo").map(|it| it.to_ascii_lowercase().into());
    service.geo = service.geo.take().or_else(geo);
}

/// What a usage of the messages shape tells of tools that the provider ran; it holds against what was counted.
pub(super) fn server_tool_uses(usage: Value<'_>, uses: &mut BTreeMap<Box<str>, u64>) {
    for (name, count) in usage.get("server_tool_use").iter().flat_map(|it| it.members()) {
        let name = name.text().unwrap_or_default();
        let name = name.strip_suffix("_requests").unwrap_or(&name);
        if is_free(name) {
            continue;
        }
        let count = count.integer().filter(|it| (1..=USES_MAX).contains(it)).and_then(|it| u64::try_from(it).ok());
        if let Some(count) = count {
            let known = uses.entry(name.into()).or_default();
            *known = count.max(*known);
        }
    }
}

/// What a usage of the chat shape tells of searches, and of other tools that the provider ran: some providers tell it as the messages
/// shape does, beside counts of what is no tool.
pub(super) fn server_tools_of_chat(usage: Value<'_>, uses: &mut BTreeMap<Box<str>, u64>) {
    let told = ["server_tool_use", "server_tool_use_details"].into_iter().filter_map(|it| usage.get(it));
    let told = told.flat_map(|it| it.members()).filter_map(|(name, count)| {
        let name = name.text()?;
        Some((Box::from(name.strip_suffix("_requests")?), count))
    });
    let searches = usage.get("num_search_queries").map(|it| (Box::from(own::SEARCH), it));
    for (name, count) in told.chain(searches) {
        let count = count.integer().filter(|it| (1..=USES_MAX).contains(it)).and_then(|it| u64::try_from(it).ok());
        if let Some(count) = count {
            let known = uses.entry(name).or_default();
            *known = count.max(*known);
        }
    }
}

/// A message of the chat shape out of an answer of the messages shape.
fn chat_message(out: &mut Out, root: Value<'_>, mark: Option<&str>) {
    let blocks = || root.get("content").into_iter().flat_map(|it| it.items());
    let of = |kind: &'static str| blocks().filter(move |it| it.has("type", kind));
    let joined = |kind: &'static str, member: &str| {
        let texts: Vec<_> = of(kind).filter_map(|it| it.text_of(member)).collect();
        (!texts.is_empty()).then(|| texts.concat())
    };
    out.name("role").text("assistant");
    let calls = of("tool_use").next().is_some();
    match joined("text", "text") {
        Some(text) => out.name("content").text(&text),
        None if calls => out.name("content").null(),
        // A message that calls nothing has a content: clients send it back, and providers refuse it without one.
        None => out.name("content").text(""),
    }
    out.name("refusal").null();
    if let Some(thinking) = joined("thinking", "thinking") {
        out.name("reasoning_content").text(&thinking);
    }
    // A client that sends these back lets the model go on from its own thinking.
    let is_thought = |it: &Value<'_>| it.has("type", "thinking") || it.has("type", "redacted_thinking");
    let mut thoughts = blocks().filter(|it| is_thought(it) && !is_unsigned(it)).peekable();
    if thoughts.peek().is_some() {
        out.name("thinking_blocks").list(|out| {
            thoughts.for_each(|it| match mark {
                Some(mark) => out.raw(&marked_block(it, mark)),
                None => out.raw(it.raw()),
            });
        });
    }
    if calls {
        out.name("tool_calls").list(|out| {
            for block in of("tool_use") {
                out.object(|out| {
                    out.name("id").raw(raw_text(block, "id", "\"\""));
                    out.name("type").text("function");
                    out.name("function").object(|out| {
                        out.name("name").raw(raw_text(block, "name", "\"\""));
                        out.name("arguments").text(block.get("input").map_or("{}", |it| it.raw()));
                    });
                });
            }
        });
    }
}

fn text_block(out: &mut Out, text: &str) {
    if !text.is_empty() {
        out.object(|out| {
            out.name("type").text("text");
            out.name("text").text(text);
        });
    }
}

/// What is spoken in an answer, or in a piece of it, as text: the messages shape has no sound.
pub(super) fn spoken(message: Value<'_>) -> Option<Value<'_>> {
    message.given("audio")?.get("transcript").filter(|it| it.is_text() && !it.is_empty_text())
}

/// How many pictures an answer, or a piece of it, holds: the messages shape has none in answers.
pub(super) fn pictures(message: Value<'_>) -> usize {
    let listed = message.get("images").map_or(0, |it| it.items().count());
    listed + message.get("content").map_or(0, |it| it.items().filter(|it| it.has("type", "image_url")).count())
}

/// Whether a member tells what a model has thought that another one tells as well, as some providers have it for clients of two
/// ages.
pub(super) fn is_said_twice(message: Value<'_>, name: &str) -> bool {
    name == "reasoning" && message.get("reasoning_content").is_some_and(|it| it.is_text() && !it.is_empty_text())
}

/// The id of the tool call at this place of an answer, where its provider gives it none: no two calls of a conversation have
/// the same.
pub(super) fn invented(call: CallId, at: usize) -> String {
    format!("{call}_{at}")
}

/// What a provider tells beside a call and is to be told again with it, such as what it has signed it with.
pub(super) fn told_beside(call: Value<'_>) -> Option<&str> {
    call.get("extra_content").filter(|it| it.form() == Form::Object).map(|it| it.raw())
}

/// The arguments of a function's call as JSON: a text that holds them or, as some providers have it, the object itself.
pub(super) fn arguments_of(function: Value<'_>) -> Cow<'_, str> {
    let Some(arguments) = function.get("arguments") else { return Cow::default() };
    if arguments.form() == Form::Object { Cow::Borrowed(arguments.raw()) } else { arguments.text().unwrap_or_default() }
}

/// UTF-8 bytes of arguments in either form.
pub(super) fn arguments_len(arguments: Value<'_>) -> u64 {
    if arguments.form() == Form::Object { length(arguments.raw()) } else { arguments.text_len() }
}

/// Arguments as an object. Nothing, be it written as `null`, as an empty list or an empty text, is an empty one, and what was encoded twice is
/// what it holds. What else is no object stands in one, under a name of its own, so that nothing is lost.
pub(super) fn write_input(out: &mut Out, arguments: &str) {
    if arguments.trim().is_empty() {
        return out.object(|_| {});
    }
    let Ok(tape) = Tape::of(arguments) else { return out.object(|out| out.name("arguments").text(arguments)) };
    let root = tape.root(arguments);
    let inner = root.text().filter(|it| Tape::of(it).is_ok_and(|tape| tape.root(it).form() == Form::Object));
    match (root.form(), inner) {
        (Form::Object, _) => out.raw(arguments.trim()),
        (Form::Null, _) => out.object(|_| {}),
        (Form::List, _) if root.items().next().is_none() => out.object(|_| {}),
        (Form::Plain, _) if root.is_empty_text() => out.object(|_| {}),
        (_, Some(inner)) => out.raw(inner.trim()),
        (_, None) => out.object(|out| out.name("arguments").text(arguments)),
    }
}
