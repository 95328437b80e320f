//! A stream of the chat shape, written in the messages shape.
//!
//! The messages shape knows one block at a time, with its kind told when it begins; the chat shape sends pieces of text,
//! thinking and any number of tool calls in any order. So a call's block stays open until its arguments are whole, and
//! what comes for others in between waits for its turn.
//!
//! **Invariant:** no more waits than [`HELD_MAX`] bytes and [`CALLS_MAX`] calls, whatever a provider sends.

use std::borrow::Cow;

use super::super::answer::{
    PICTURE, arguments_of, invented, is_said_twice, pictures, spoken, told_beside, write_input,
};
use super::super::doc::{Form, Value};
use super::super::finish::Finish;
use super::super::marks::{As, call_mark, mark};
use super::super::names::ClientNames;
use super::super::sse::Broken;
use super::super::usage;
use super::super::write::Out;
use super::meter::Meter;
use super::tool::Tool;
use super::{ALIVE, CALLS_MAX, HELD_MAX, NAME_MAX, StreamOptions, whole_message};
use crate::state::gateway::Usage;

/// Writes events of a message.
#[derive(Debug)]
pub(super) struct ToMessages {
    options: StreamOptions,
    /// What the client goes by.
    names: ClientNames,
    /// Whose answer it is.
    provider: Box<str>,
    id: Option<String>,
    model: Option<String>,
    started: bool,
    /// Blocks begun so far.
    blocks: u64,
    open: Open,
    tools: Vec<Tool>,
    /// Text and thinking that came while a call was open, as it was written.
    late: Vec<(Open, String)>,
    /// Bytes that wait: of those, of arguments, and of what calls are named.
    held: usize,
    /// Whether more came than may wait, or half a sign of what an agent acts on; it was left out.
    full: bool,
    /// Whether arguments came of a call whose own were told as whole.
    strays: bool,
    /// Whether calls came in the newer form.
    is_listed: bool,
    refused: bool,
    /// The text at which it says that it stopped.
    stopped: Option<Box<str>>,
}

/// What a piece of text that waits is taken for beside its bytes.
const PIECE_BYTES: usize = 64;

/// What the open block is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Text,
    /// Thinking, by the form it came in.
    Thinking(As),
    /// A call, by its place in the list.
    Tool(usize),
    /// What the client keeps and does not read.
    Unseen,
}

/// A piece of a call, as it came.
#[derive(Clone, Copy, Default)]
struct Piece<'a> {
    number: i64,
    id: &'a str,
    function: Option<Value<'a>>,
    /// What is to be told again with the call.
    beside: &'a str,
}

impl ToMessages {
    pub(super) fn new(options: StreamOptions) -> Self {
        Self {
            options,
            names: ClientNames::default(),
            provider: Box::default(),
            id: None,
            model: None,
            started: false,
            blocks: 0,
            open: Open::Nothing,
            tools: Vec::new(),
            late: Vec::new(),
            held: 0,
            full: false,
            strays: false,
            is_listed: false,
            refused: false,
            stopped: None,
        }
    }

    /// What the client goes by.
    pub(super) fn naming(&mut self, names: ClientNames) {
        self.names = names;
    }

    /// The provider's name.
    pub(super) fn of_provider(&mut self, name: &str) {
        self.provider = name.into();
    }

    /// Takes one chunk.
    ///
    /// # Errors
    /// [`Broken::TooMuch`] where more waits for its turn than is kept.
    pub(super) fn event(&mut self, root: Value<'_>, out: &mut Vec<u8>) -> Result<(), Broken> {
        for (slot, name) in [(&mut self.id, "id"), (&mut self.model, "model")] {
            if slot.is_none() {
                let text = root.get(name).filter(|it| it.is_text() && !it.is_empty_text());
                let text = text.filter(|it| it.raw().len() <= NAME_MAX);
                *slot = text.map(|it| it.raw().to_owned());
            }
        }
        let first = |it: &Value<'_>| it.get("index").and_then(|it| it.integer()).unwrap_or(0) == 0;
        for choice in root.get("choices").iter().flat_map(|it| it.items()).filter(first) {
            self.start(out);
            self.stopped = self.names.stopped_at(choice).map(Into::into).or_else(|| self.stopped.take());
            if let Some(delta) = choice.given("delta").or_else(|| whole_message(choice).filter(|_| !self.has_any())) {
                self.delta(delta, out);
            }
        }
        match (self.full, self.strays) {
            (true, _) => Err(Broken::TooMuch),
            (false, true) => Err(Broken::NotEvents),
            (false, false) => Ok(()),
        }
    }

    /// Whether anything of the answer has come.
    fn has_any(&self) -> bool {
        self.blocks > 0 || !self.tools.is_empty()
    }

    /// Whether so many bytes more may wait; from the first that may not on none do.
    fn hold(&mut self, bytes: usize) -> bool {
        self.full |= self.held.saturating_add(bytes) > HELD_MAX;
        if !self.full {
            self.held = self.held.saturating_add(bytes);
        }
        !self.full
    }

    /// The provider is at work, though nothing comes of it yet. Before the message's start no reader wants an event.
    pub(super) fn is_alive(&self, out: &mut Vec<u8>) {
        if self.started {
            event(out, "ping", |_| {});
        } else {
            out.extend_from_slice(ALIVE);
        }
    }

    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        // A provider of the chat shape tells at the end alone how much went in.
        let usage = Usage { input: self.options.input, ..Usage::default() };
        let (id, model) = (self.id.as_deref().unwrap_or("\"msg_0\""), self.model.as_deref().unwrap_or("\"\""));
        event(out, "message_start", |out| {
            out.name("message").object(|out| {
                out.name("id").raw(id);
                out.name("type").text("message");
                out.name("role").text("assistant");
                out.name("model").raw(model);
                out.name("content").list(|_| {});
                out.name("stop_reason").null();
                out.name("stop_sequence").null();
                usage::write_messages(out.name("usage"), &usage);
            });
        });
    }

    fn delta(&mut self, delta: Value<'_>, out: &mut Vec<u8>) {
        self.piece(Open::Thinking(As::ReasoningContent), delta.given("reasoning_content"), out);
        if !is_said_twice(delta, "reasoning") {
            self.piece(Open::Thinking(As::Other), delta.given("reasoning"), out);
        }
        if let Some(content) = delta.given("content") {
            self.piece(Open::Text, Some(content), out);
            for part in content.items() {
                self.part(part, out);
            }
        }
        self.piece(Open::Text, spoken(delta), out);
        for _ in 0..pictures(delta) {
            self.written(Open::Text, PICTURE, out);
        }
        let refusal = delta.get("refusal").filter(|it| it.is_text() && !it.is_empty_text());
        self.refused |= refusal.is_some();
        self.piece(Open::Text, refusal, out);
        for call in delta.get("tool_calls").iter().flat_map(|it| it.items()) {
            if self.full {
                return;
            }
            self.call(call, out);
        }
        self.is_listed |= delta.get("tool_calls").is_some_and(|it| it.items().next().is_some());
        // Some providers tell a call in the older form as well.
        if let Some(function) = delta.given("function_call").filter(|_| !self.is_listed) {
            self.called(Piece { function: Some(function), ..Piece::default() }, out);
        }
    }

    /// A part of a content that some providers send as a list.
    fn part(&mut self, part: Value<'_>, out: &mut Vec<u8>) {
        if part.has("type", "thinking") {
            for inner in part.get("thinking").iter().flat_map(|it| it.items()) {
                self.piece(Open::Thinking(As::Other), inner.get("text"), out);
            }
        } else {
            self.piece(Open::Text, part.get("text"), out);
        }
    }

    /// A piece of text or thinking; nothing where there is none. It goes on as it was written: a surrogate pair that was cut
    /// between its halves is whole again where a client puts the pieces together.
    fn piece(&mut self, kind: Open, text: Option<Value<'_>>, out: &mut Vec<u8>) {
        if let Some(text) = text.and_then(|it| it.written()).filter(|it| !it.is_empty()) {
            self.written(kind, text, out);
        }
    }

    /// The same, as it was written.
    fn written(&mut self, kind: Open, text: &str, out: &mut Vec<u8>) {
        if self.tool_is_open() {
            if !self.hold(text.len().saturating_add(PIECE_BYTES)) {
                return;
            }
            match self.late.last_mut() {
                Some((last, waiting)) if *last == kind => waiting.push_str(text),
                Some(_) | None => self.late.push((kind, text.to_owned())),
            }
            return;
        }
        self.write_piece(kind, text, out);
    }

    /// A piece as it was written, without its quotes.
    fn write_piece(&mut self, kind: Open, text: &str, out: &mut Vec<u8>) {
        if self.open != kind {
            self.close(out);
            let (word, member) = words(kind);
            self.begin(kind, out, |out| {
                out.name("type").text(word);
                out.name(member).text("");
                if matches!(kind, Open::Thinking(_)) {
                    out.name("signature").text("");
                }
            });
        }
        let (_, member) = words(kind);
        let index = self.blocks.saturating_sub(1);
        event(out, "content_block_delta", |out| {
            out.name("index").number(index);
            out.name("delta").object(|out| {
                out.name("type").text(if matches!(kind, Open::Thinking(_)) { "thinking_delta" } else { "text_delta" });
                out.name(member).raw(&format!("\"{text}\""));
            });
        });
    }

    /// Whether a call is open whose arguments are not whole.
    fn tool_is_open(&self) -> bool {
        match self.open {
            Open::Tool(at) => self.tools.get(at).is_some_and(|it| !it.shape.whole),
            Open::Nothing | Open::Text | Open::Thinking(_) | Open::Unseen => false,
        }
    }

    fn call(&mut self, call: Value<'_>, out: &mut Vec<u8>) {
        let id = call.text_of("id").unwrap_or_default();
        let number = call.get("index").and_then(|it| it.integer()).unwrap_or_else(|| {
            // Without a number a new id is a new call, and no id is the last one.
            let last = self.tools.last();
            let known = self.tools.iter().find(|it| it.id == id && !id.is_empty());
            match (known, last) {
                (Some(it), _) => it.number,
                (None, Some(it)) if id.is_empty() => it.number,
                (None, Some(it)) => it.number.saturating_add(1),
                (None, None) => 0,
            }
        });
        // Some providers tell of the id first, and of the function with the pieces that follow.
        let function = call.given("function");
        if function.is_some() || !id.is_empty() {
            self.called(Piece { number, id: &id, function, beside: told_beside(call).unwrap_or_default() }, out);
        }
    }

    /// The call that a piece belongs to. Some providers give all calls the same number: there another id beside a name begins
    /// another call, and what has neither goes on with the last. Where they give no ids either, or one id to all, a name beside
    /// `arguments` begins another one behind a call that is whole.
    fn place_of(&self, number: i64, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let last = self.tools.iter().rposition(|it| it.number == number)?;
        let same = self.tools.iter().rposition(|it| it.number == number && it.id == id && !id.is_empty());
        let other = !id.is_empty() && !name.is_empty() && self.tools.get(last).is_some_and(|it| !it.id.is_empty());
        let at = if other { same } else { same.or(Some(last)) }?;
        let goes_on = id.is_empty() || same.is_some();
        self.tools.get(at).filter(|it| !(goes_on && it.is_followed_by(name, arguments))).map(|_| at)
    }

    /// A piece of the call of this number.
    fn called(&mut self, piece: Piece<'_>, out: &mut Vec<u8>) {
        let Piece { number, id, function, beside } = piece;
        let name = function.and_then(|it| it.text_of("name")).unwrap_or_default();
        let known = self.place_of(number, id, &name, &function.map(arguments_of).unwrap_or_default());
        self.full |= known.is_none() && self.tools.len() >= CALLS_MAX;
        let arguments = function.and_then(|it| it.get("arguments"));
        let written = arguments.and_then(|it| it.written()).unwrap_or_default();
        let object = arguments.filter(|it| it.form() == Form::Object).map(|it| Cow::Borrowed(it.raw()));
        let mut seam =
            known.and_then(|at| self.tools.get_mut(at)).map(|it| std::mem::take(&mut it.seam)).unwrap_or_default();
        let piece = object.or_else(|| seam.join(written));
        self.full |= piece.is_none();
        let piece = piece.unwrap_or_default();
        let tool = known.and_then(|at| self.tools.get(at));
        let id = Some(id).filter(|_| tool.is_none_or(|it| it.id.is_empty())).unwrap_or_default();
        let so_far = tool.map(|it| it.name.as_str()).unwrap_or_default();
        let name = match tool {
            Some(it) if it.begun => so_far.to_owned(),
            Some(_) | None if so_far.is_empty() => name.into_owned(),
            Some(_) | None => self.names.with_piece(so_far, &name),
        };
        let more = name.len().saturating_sub(so_far.len());
        let beside = tool.filter(|it| !it.beside.is_empty()).map_or(beside, |_| "");
        if !self.hold(more + [id, beside, &piece].iter().map(|it| it.len()).sum::<usize>()) {
            return;
        }
        let at = known.unwrap_or_else(|| {
            self.tools.push(Tool::new(number));
            self.tools.len() - 1
        });
        let Some(tool) = self.tools.get_mut(at) else { return };
        tool.seam = seam;
        tool.id.push_str(id);
        tool.name = name;
        tool.beside.push_str(beside);
        // What would follow a whole object makes it none; what comes too late would be lost.
        if (tool.is_whole() && !tool.shape.is_other) || (tool.begun && self.open != Open::Tool(at)) {
            self.strays |= tool.take_behind(&piece);
        } else {
            tool.take(&piece);
        }
        self.turn(out);
    }

    /// Writes what may be written now: the open call's arguments and, once it is whole, what waits behind it.
    fn turn(&mut self, out: &mut Vec<u8>) {
        loop {
            if let Open::Tool(at) = self.open {
                self.flush(at, false, out);
                if self.tool_is_open() {
                    return;
                }
            }
            let Some(next) = self.tools.iter().position(|it| !it.begun && self.is_named(it)) else { break };
            self.begin_tool(next, out);
        }
        if !self.late.is_empty() {
            self.write_late(out);
        }
    }

    /// Whether the name of a call is told. While no argument has come, what is but the beginning of a tool's may go on.
    fn is_named(&self, tool: &Tool) -> bool {
        let may_go_on = tool.waiting.is_empty() && self.names.begins_tool(&tool.name);
        !(tool.name.is_empty() || may_go_on)
    }

    /// Writes the text and thinking that wait.
    fn write_late(&mut self, out: &mut Vec<u8>) {
        for (kind, text) in std::mem::take(&mut self.late) {
            self.write_piece(kind, &text, out);
        }
        // What waits now is what calls are named, and arguments of those that have not begun.
        let of = |it: &Tool| [&it.id, &it.name, &it.beside, &it.waiting].iter().map(|it| it.len()).sum::<usize>();
        self.held = self.tools.iter().map(of).sum();
    }

    fn begin_tool(&mut self, at: usize, out: &mut Vec<u8>) {
        self.close(out);
        let Some(tool) = self.tools.get_mut(at) else { return };
        tool.begun = true;
        let id = self.names.of_call(&tool.id, || invented(self.options.call, at));
        tool.told.clone_from(&id);
        let name = self.names.of_client(&tool.name).to_owned();
        self.keep_beside(at, out);
        self.begin(Open::Tool(at), out, |out| {
            out.name("type").text("tool_use");
            out.name("id").text(&id);
            out.name("name").text(&name);
            out.name("input").object(|_| {});
        });
        self.flush(at, false, out);
    }

    /// Writes the arguments that wait. Those that begin as no object does are made one first, once they have `ended`: a client takes the
    /// pieces of an object as they come. What says nothing waits until it has `ended`: the arguments may follow.
    fn flush(&mut self, at: usize, ended: bool, out: &mut Vec<u8>) {
        let Some(tool) = self.tools.get_mut(at) else { return };
        if tool.waiting.is_empty() || ((!tool.says || tool.shape.is_other) && !ended) {
            return;
        }
        let mut waiting = std::mem::take(&mut tool.waiting);
        self.held = self.held.saturating_sub(waiting.len());
        if tool.shape.is_other {
            let mut input = Out::default();
            write_input(&mut input, &waiting);
            waiting = String::from_utf8(input.into_bytes()).unwrap_or_default();
        }
        let index = self.blocks.saturating_sub(1);
        event(out, "content_block_delta", |out| {
            out.name("index").number(index);
            out.name("delta").object(|out| {
                out.name("type").text("input_json_delta");
                out.name("partial_json").text(&waiting);
            });
        });
    }

    /// What was told beside a call, as a block of its own, where there is any that was not told yet: no block may be open.
    fn keep_beside(&mut self, at: usize, out: &mut Vec<u8>) {
        let Some(tool) = self.tools.get_mut(at).filter(|it| !it.beside.is_empty() && !it.is_kept) else { return };
        tool.is_kept = true;
        let data = call_mark(&self.provider, &tool.told, &tool.beside);
        self.begin(Open::Unseen, out, |out| {
            out.name("type").text("redacted_thinking");
            out.name("data").text(&data);
        });
        self.close(out);
    }

    fn begin(&mut self, kind: Open, out: &mut Vec<u8>, block: impl FnOnce(&mut Out)) {
        let index = self.blocks;
        self.blocks += 1;
        self.open = kind;
        event(out, "content_block_start", |out| {
            out.name("index").number(index);
            out.name("content_block").object(block);
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Open::Tool(at) = self.open {
            self.flush(at, true, out);
        }
        let open = std::mem::take(&mut self.open);
        let index = self.blocks.saturating_sub(1);
        // Clients keep no thinking that is not signed, and the model that has thought it is to be given it again.
        if let Open::Thinking(told) = open {
            event(out, "content_block_delta", |out| {
                out.name("index").number(index);
                out.name("delta").object(|out| {
                    out.name("type").text("signature_delta");
                    out.name("signature").text(&mark(told, &self.provider));
                });
            });
        }
        if open != Open::Nothing {
            event(out, "content_block_stop", |out| out.name("index").number(index));
        }
        if let Open::Tool(at) = open {
            self.keep_beside(at, out);
        }
    }

    /// Whether what has come of a call ends within a sign, whose other half is still to come.
    pub(super) fn is_cut_short(&self) -> bool {
        self.tools.iter().any(|it| it.seam.is_open())
    }

    /// The end: every block is closed, and the message says why it stopped and what it used.
    pub(super) fn finish(&mut self, meter: &Meter, out: &mut Vec<u8>) {
        self.start(out);
        for at in 0..self.tools.len() {
            if self.tools.get(at).is_some_and(|it| !it.begun && it.is_told()) {
                self.begin_tool(at, out);
            }
        }
        self.write_late(out);
        self.close(out);
        let finish = match meter.finish().unwrap_or(Finish::Stop) {
            _ if self.refused => Finish::Refusal,
            other => other.beside(self.tools.iter().any(|it| it.begun)),
        };
        let usage = meter.charged(self.options.charged_input);
        event(out, "message_delta", |out| {
            out.name("delta").object(|out| {
                finish.write_messages(out, self.stopped.as_deref());
            });
            usage::write_messages(out.name("usage"), &usage);
        });
        event(out, "message_stop", |_| {});
    }
}

/// The type of a block and its member.
const fn words(kind: Open) -> (&'static str, &'static str) {
    match kind {
        Open::Thinking(_) => ("thinking", "thinking"),
        Open::Nothing | Open::Text | Open::Tool(_) | Open::Unseen => ("text", "text"),
    }
}

fn event(out: &mut Vec<u8>, kind: &str, members: impl FnOnce(&mut Out)) {
    let mut json = Out::onto(std::mem::take(out));
    json.bytes("event: ");
    json.bytes(kind);
    json.bytes("\ndata: ");
    json.object(|out| {
        out.name("type").text(kind);
        members(out);
    });
    json.bytes("\n\n");
    *out = json.into_bytes();
}
