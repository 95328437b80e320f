//! What a stream brings, counted as it goes by.

use std::collections::{BTreeMap, BTreeSet};

use super::super::answer::{
    arguments_len, hear_service, is_said_twice, pictures, server_tool_uses, server_tools_of_chat,
};
use super::super::check::ANSWERS_MAX;
use super::super::doc::{Form, Value, length};
use super::super::finish::Finish;
use super::super::own;
use super::super::sse::Broken;
use super::super::usage::{self, Told};
use super::{NAME_MAX, SERVER_TOOLS_MAX, whole_message};
use crate::state::gateway::{Dialect, Service, Usage, estimate_of_whole, tokens_of};

/// What came of a stream so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// The whole usage, where the provider told one that can be believed; else it is to be estimated.
    pub usage: Option<Usage>,
    /// What the provider told, be it one side of it or of the answer so far: an estimate goes by that.
    pub reported: Option<Usage>,
    /// UTF-8 bytes of text, thinking and tool arguments.
    pub text_bytes: u64,
    /// How many tokens those were, guessed: one for each piece, or one for four bytes, whichever is more.
    pub tokens: u64,
    /// Why it stopped, once it has.
    pub finish: Option<Finish>,
    /// Uses of tools that the provider ran itself, by the name under which they are priced.
    pub server_tools: BTreeMap<Box<str>, u64>,
    /// Further tools that the provider ran, without a price of their own: those of MCP servers, and those of which only the
    /// results are here.
    pub brought: BTreeSet<Box<str>>,
    /// The model as the provider names it.
    pub model: Option<Box<str>>,
    /// How the provider says that it serves, as far as prices go by it.
    pub service: Service,
    /// Whether a first token has come.
    pub begun: bool,
}

/// Counts.
#[derive(Debug)]
pub(super) struct Meter {
    upstream: Dialect,
    told: Told,
    /// In the messages shape, whether more was told than by its start, which tells of one token of output at the most.
    beyond_start: bool,
    usage: Option<Usage>,
    /// How many pieces of text had come when what was told was the whole. Where more have come since, it was not.
    whole_at: Option<u64>,
    /// In the chat shape, the answers that have begun, and whether each has told why it stopped.
    answers: BTreeMap<i64, bool>,
    /// In the chat shape, what was told before the answer stopped.
    so_far: Option<Usage>,
    received: Received,
    /// Pieces of text.
    pieces: u64,
    /// Pieces of any kind.
    events: u64,
    /// In the messages shape, whether what is being made may come without pieces: thinking that is not shown, the work of a tool
    /// that the provider runs, arguments that are sent once they are whole. It tells then that it is still there.
    quiet: bool,
    /// Whether such a thing has begun.
    worked: bool,
}

impl Meter {
    pub(super) fn new(upstream: Dialect) -> Self {
        let received = Received::default();
        let (told, answers) = (Told::default(), BTreeMap::new());
        Self {
            upstream,
            told,
            beyond_start: false,
            usage: None,
            whole_at: None,
            answers,
            so_far: None,
            received,
            pieces: 0,
            events: 0,
            quiet: false,
            worked: false,
        }
    }

    /// Takes one event of the provider's. Whether it is its last.
    ///
    /// # Errors
    /// [`Broken::TooMuch`] where it names more tools of its own, or a longer one, than are counted, or has more answers than
    /// can be asked for.
    pub(super) fn event(&mut self, root: Value<'_>) -> Result<bool, Broken> {
        let last = match self.upstream {
            Dialect::Chat => {
                self.chat(root);
                false
            }
            Dialect::Messages => self.messages(root),
        };
        let (priced, brought) = (&self.received.server_tools, &self.received.brought);
        let fits = priced.len().max(brought.len()) <= SERVER_TOOLS_MAX
            && priced.keys().chain(brought).all(|it| it.len() <= NAME_MAX)
            && i64::try_from(self.answers.len()).is_ok_and(|it| it <= ANSWERS_MAX);
        if fits { Ok(last) } else { Err(Broken::TooMuch) }
    }

    /// How many pieces of any kind have come.
    pub(super) const fn events(&self) -> u64 {
        self.events
    }

    /// Whether a first token has come.
    pub(super) const fn has_token(&self) -> bool {
        self.received.begun
    }

    /// Whether the answer has begun, be it with what comes without tokens.
    pub(super) const fn has_begun(&self) -> bool {
        self.received.begun || self.worked
    }

    /// Whether so many answers have come, and each that has begun told why it stopped.
    pub(super) fn has_finished(&self, answers: u32) -> bool {
        match self.upstream {
            Dialect::Chat => {
                let asked = usize::try_from(answers).unwrap_or(usize::MAX);
                self.answers.len() >= asked.max(1) && self.answers.values().all(|it| *it)
            }
            Dialect::Messages => self.received.finish.is_some(),
        }
    }

    /// Why it stopped, where it told.
    pub(super) const fn finish(&self) -> Option<Finish> {
        self.received.finish
    }

    /// The usage, where it can be believed.
    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = match self.upstream {
            Dialect::Chat => self.usage,
            Dialect::Messages => self.told.whole(),
        };
        let is_whole = self.whole_at == Some(self.pieces);
        usage::believed(usage.filter(|_| is_whole), self.received.begun)
    }

    /// What the provider told, whether or not it is all of it.
    pub(super) fn reported(&self) -> Option<Usage> {
        match self.upstream {
            Dialect::Chat => {
                let output = |it: Option<Usage>| it.map_or(0, |it| it.all_output());
                // What was taken for the whole may have been told before the rest came.
                let is_stale = self.whole_at.is_none() && output(self.so_far) > output(self.usage);
                let (last, before) = if is_stale { (self.so_far, self.usage) } else { (self.usage, self.so_far) };
                usage::later(last, before)
            }
            Dialect::Messages if self.beyond_start => self.told.whole(),
            Dialect::Messages => self.told.input(),
        }
    }

    pub(super) fn received(&self) -> Received {
        let (usage, reported, tokens) = (self.usage(), self.reported(), self.tokens());
        Received { usage, reported, tokens, ..self.received.clone() }
    }

    /// What the call is charged where this is the whole answer: the usage, else an estimate that takes `input` for what went in
    /// unless the provider told that.
    pub(super) fn charged(&self, input: u64) -> Usage {
        self.usage().unwrap_or_else(|| estimate_of_whole(input, self.reported(), self.tokens()))
    }

    fn tokens(&self) -> u64 {
        self.pieces.max(tokens_of(self.received.text_bytes))
    }

    /// How many kinds of tools that the provider runs itself have been heard of.
    pub(super) fn own_tools(&self) -> usize {
        self.received.server_tools.len() + self.received.brought.len()
    }

    fn piece(&mut self, bytes: u64) {
        if bytes > 0 {
            self.pieces = self.pieces.saturating_add(1);
            self.received.text_bytes = self.received.text_bytes.saturating_add(bytes);
            self.received.begun = true;
        }
    }

    fn model(&mut self, model: Option<Value<'_>>) {
        if self.received.model.is_none() {
            let told = model.and_then(|it| it.text()).filter(|it| (1..=NAME_MAX).contains(&it.len()));
            self.received.model = told.map(Into::into);
        }
    }

    fn chat(&mut self, root: Value<'_>) {
        if self.received.model.is_none() {
            self.model(root.get("model"));
            hear_service(root, &mut self.received.service);
        }
        let (mut told, mut bare) = (None, true);
        for (name, value) in root.members() {
            if name.is("choices") {
                bare = value.items().next().is_none();
                let begun = self.received.begun;
                value.items().for_each(|it| self.choice(it, begun));
            } else if name.is("usage") && !value.is_null() {
                told = usage::chat(value);
                server_tools_of_chat(value, &mut self.received.server_tools);
                hear_service(root, &mut self.received.service);
            }
        }
        own::note_found(root, &mut self.received.brought);
        if told.is_none() {
            return;
        }
        // Some providers count as they go: only what comes with the end, or by itself, is the whole.
        if bare || self.has_finished(1) {
            self.usage = usage::later(told, self.usage);
            self.whole_at = Some(self.pieces);
        } else {
            self.so_far = usage::later(told, self.so_far);
            self.whole_at = None;
        }
    }

    /// Hears of an event that tells a failure what it says of the use.
    pub(super) fn failed(&mut self, root: Value<'_>) {
        let told = root.given("usage").and_then(usage::chat).filter(|_| self.upstream == Dialect::Chat);
        if told.is_some() {
            self.usage = usage::later(told, self.usage);
            self.whole_at = Some(self.pieces);
        }
    }

    fn choice(&mut self, choice: Value<'_>, begun: bool) {
        let (mut number, mut finished) = (0, false);
        if choice.given("delta").is_none()
            && let Some(message) = whole_message(choice).filter(|_| !begun)
        {
            self.message(message);
        }
        for (name, value) in choice.members() {
            if name.is("index") {
                number = value.integer().unwrap_or(0);
            } else if name.is("delta") {
                self.message(value);
            } else if name.is("finish_reason")
                && let Some(reason) = value.text().filter(|it| !it.is_empty())
            {
                self.received.finish = Some(Finish::from_chat(&reason));
                finished = true;
                self.event_came();
            }
        }
        *self.answers.entry(number).or_default() |= finished;
    }

    /// What a chunk adds to a message.
    fn message(&mut self, added: Value<'_>) {
        if own::cites_the_web(added) {
            self.received.server_tools.entry(own::SEARCH.into()).or_insert(1);
        }
        self.received.service.drew |= pictures(added) > 0;
        let counts = |name: &Value<'_>| !(name.is("reasoning") && is_said_twice(added, "reasoning"));
        for (name, value) in added.members().filter(|(name, _)| counts(name)) {
            self.delta(name, value);
        }
    }

    /// One member of what a chunk adds to a message.
    fn delta(&mut self, name: Value<'_>, value: Value<'_>) {
        let is_bare = value.is_empty_text() || (value.form() == Form::List && value.items().next().is_none());
        if value.is_null() || name.is("role") || is_bare {
            return;
        }
        self.event_came();
        if name.is("tool_calls") || name.is("function_call") {
            self.begin();
            for call in value.items() {
                let arguments = call.get("function").and_then(|it| it.get("arguments"));
                self.piece(arguments.map_or(0, arguments_len));
            }
            self.piece(value.get("arguments").map_or(0, arguments_len));
        } else if value.is_text() {
            self.piece(value.text_len());
        } else if ["reasoning_details", "audio", "images"].iter().any(|it| name.is(it)) {
            // Thinking that only its provider reads, and what is no text, may come for long without any.
            self.worked = true;
        } else if name.is("content") {
            // A list of parts, as some providers send it.
            self.piece(value.items().map(|it| length(it.raw())).sum());
        }
    }

    const fn event_came(&mut self) {
        self.events = self.events.saturating_add(1);
    }

    fn messages(&mut self, root: Value<'_>) -> bool {
        let kind = root.text_of("type").unwrap_or_default();
        let works = kind.starts_with("content_block_") || kind == "message_delta" || (kind == "ping" && self.quiet);
        if works {
            self.event_came();
        }
        match &*kind {
            "message_start" => {
                let message = root.get("message");
                self.model(message.and_then(|it| it.get("model")));
                message.iter().for_each(|it| hear_service(*it, &mut self.received.service));
                self.tell(message.and_then(|it| it.given("usage")));
            }
            "content_block_start" => {
                if let Some(block) = root.get("content_block") {
                    let kind = block.text_of("type").unwrap_or_default();
                    own::note_block(block, &kind, &mut self.received.brought);
                    self.quiet = matches!(
                        &*kind,
                        "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use" | "tool_use"
                    );
                    self.worked |= self.quiet;
                    if let Some(name) = own::priced(block, &kind) {
                        *self.received.server_tools.entry(name.into()).or_default() += 1;
                    }
                    let text = block.get("text").or_else(|| block.get("thinking"));
                    self.piece(text.map_or(0, |it| it.text_len()));
                    if block.has("type", "tool_use") {
                        self.begin();
                    }
                }
            }
            "content_block_delta" => {
                let delta = root.get("delta");
                let text = ["text", "thinking", "partial_json"].iter().find_map(|it| delta?.get(it));
                self.piece(text.map_or(0, |it| it.text_len()));
            }
            "message_delta" => {
                hear_service(root, &mut self.received.service);
                if let Some(reason) = root.get("delta").and_then(|it| it.text_of("stop_reason")) {
                    self.received.finish = Some(Finish::from_messages(&reason));
                }
                let told = root.given("usage");
                // A start tells of one token at the most: beside text an end without output leaves what it came to untold.
                if told.is_some_and(|it| !self.received.begun || usage::tells_output(it)) {
                    self.beyond_start = true;
                    // Before it says why it stops, it counts as it goes.
                    self.whole_at = self.received.finish.map(|_| self.pieces);
                }
                self.tell(told);
            }
            "message_stop" => return true,
            _ => {}
        }
        false
    }

    fn tell(&mut self, told: Option<Value<'_>>) {
        if let Some(told) = told {
            self.told.add(told);
            server_tool_uses(told, &mut self.received.server_tools);
        }
    }

    fn begin(&mut self) {
        self.received.begun = true;
    }
}
