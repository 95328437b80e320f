//! An answer that comes in pieces: metered as it goes by, and written in the client's shape.

mod chat;
mod messages;
mod meter;
mod signing;
#[cfg(test)]
mod tests;
mod tool;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::doc::{Form, Tape, Value};
use super::error::{ProviderError, Told, without_keys, write_event};
use super::marks::signed_apart;
use super::names::ClientNames;
use super::request::{Splice, spliced};
use super::sse::{Broken, EVENT_MAX, Event, Events};
use crate::state::gateway::Dialect;
use crate::value::Id as _;
use crate::value::id::CallId;
use crate::value::secret::Secret;

use self::chat::ToChat;
use self::messages::ToMessages;
use self::meter::Meter;
pub use self::meter::Received;
use self::signing::Signing;

/// The type of the error event that svc writes where a provider's stream breaks.
const BROKEN: &str = "upstream_failure";
/// What it says where the answer's end never came.
const BROKEN_OFF: &str = "the provider's answer broke off";
/// What a client is sent to keep a connection open: a comment, which no reader of event streams takes for an event.
const ALIVE: &[u8] = b": keep-alive\n\n";

/// Bytes of a translated stream that wait for their turn at most: as many as one event may have, many times what a model answers.
pub const HELD_MAX: usize = EVENT_MAX;
/// Tool calls of one translated stream: each takes a model some thirty tokens, and none makes so many times that in one answer.
pub const CALLS_MAX: usize = 4_096;
/// Kinds of tools that a provider ran itself in one stream.
pub const SERVER_TOOLS_MAX: usize = 64;
/// Bytes of the longest name that is kept of a stream: of a tool of the provider's, and of the answer and its model, which are
/// left out where they are longer, as each chunk that is written repeats them.
pub const NAME_MAX: usize = 1_024;

/// How a stream is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Whether the usage is to be left out of a chat stream, because the client did not ask for it.
    pub strip_usage: bool,
    /// When the answer began, in seconds since 1970: what a chat stream says of itself where the provider's shape has
    /// no such thing.
    pub created_s: u64,
    /// How many answers were asked for: a chat stream in which one of them lacks its end has broken off.
    pub answers: u32,
    /// The call that it answers: a tool call to which a provider gives no id is named after it.
    pub call: CallId,
    /// About how many tokens went in, which a stream of the messages shape says at its beginning; at its end it says what the provider
    /// has counted.
    pub input: u64,
    /// How many tokens are charged as what went in where the provider does not tell: what a stream of the other shape says at its end
    /// then.
    pub charged_input: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { strip_usage: false, created_s: 0, answers: 0, call: CallId::from_bits(0), input: 0, charged_input: 0 }
    }
}

/// One streamed answer on its way from a provider to a client.
///
/// Feed it with [`push`](Self::push) what comes in, and send on what it writes. When nothing more comes, call
/// [`end`](Self::end) once; to break it off, [`cut`](Self::cut). [`received`](Self::received) tells at any time what came.
/// After the terminal event nothing more is written.
pub struct Stream {
    upstream: Dialect,
    client: Dialect,
    options: StreamOptions,
    events: Events,
    tape: Tape,
    meter: Meter,
    writer: Writer,
    state: State,
    /// How many bytes its last event has, once that was written.
    last_bytes: usize,
    hidden: Arc<[Secret<String>]>,
}

/// How a stream ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With its terminal event.
    Clean,
    /// Without one, or with one before the answer's end: an error event was written in its place.
    Cut,
    /// With an error that the provider told; it was passed on in the client's shape.
    Failed(ProviderError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Ended(Ending),
}

/// Who writes.
#[derive(Debug)]
enum Writer {
    /// Bytes go on as they came, but for marks before signatures.
    Same(Signing),
    Chat(ToChat),
    Messages(ToMessages),
}

impl Writer {
    /// Whether what has come of what an agent acts on ends within a sign.
    fn is_cut_short(&self) -> bool {
        match self {
            Self::Same(_) | Self::Chat(_) => false,
            Self::Messages(writer) => writer.is_cut_short(),
        }
    }
}

impl Stream {
    /// A stream of which nothing has come yet.
    #[must_use]
    pub fn new(upstream: Dialect, client: Dialect, options: StreamOptions) -> Self {
        let writer = match (upstream, client) {
            (Dialect::Chat, Dialect::Chat) | (Dialect::Messages, Dialect::Messages) => Writer::Same(Signing::default()),
            (Dialect::Messages, Dialect::Chat) => Writer::Chat(ToChat::new(options)),
            (Dialect::Chat, Dialect::Messages) => Writer::Messages(ToMessages::new(options)),
        };
        Self {
            upstream,
            client,
            options,
            events: Events::default(),
            tape: Tape::default(),
            meter: Meter::new(upstream),
            writer,
            state: State::Running,
            last_bytes: 0,
            hidden: Arc::default(),
        }
    }

    /// The same; what the provider quotes of these secrets in an error goes no further. The longest comes first.
    #[must_use]
    pub fn hiding(self, hidden: Arc<[Secret<String>]>) -> Self {
        Self { hidden, ..self }
    }

    /// The same, to a client that goes by these names.
    #[must_use]
    pub fn naming(mut self, names: ClientNames) -> Self {
        if let Writer::Messages(writer) = &mut self.writer {
            writer.naming(names);
        }
        self
    }

    /// The same, by a provider of this name: to it alone goes back what its model has thought.
    #[must_use]
    pub fn of_provider(mut self, name: &str) -> Self {
        if let Writer::Messages(writer) = &mut self.writer {
            writer.of_provider(name);
        }
        self
    }

    /// The same; where a provider is named, its signatures of thinking are known to no other.
    #[must_use]
    pub fn signed_by(mut self, provider: Option<&str>) -> Self {
        if let Some(mark) = provider.filter(|_| self.upstream == Dialect::Messages).map(signed_apart) {
            match &mut self.writer {
                Writer::Same(signing) => signing.by(mark),
                Writer::Chat(writer) => writer.marking(mark),
                Writer::Messages(_) => {}
            }
        }
        self
    }

    /// Takes what came in and appends to `out` what goes on to the client.
    ///
    /// # Errors
    /// [`Broken`] where it cannot be read; the stream is to be [`cut`](Self::cut) then.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        if self.state == State::Running {
            self.events.push(bytes);
        }
        self.drain(out)
    }

    fn drain(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        while self.state == State::Running {
            let Some(event) = self.events.take_next()? else { return Ok(()) };
            let pass =
                Pass { options: self.options, upstream: self.upstream, client: self.client, hidden: &self.hidden };
            let before = out.len();
            let ending = pass.event(&event, &mut self.tape, &mut self.meter, &mut self.writer, out)?;
            if let Some(ending) = ending {
                self.close(ending, out.len().saturating_sub(before));
            }
        }
        Ok(())
    }

    /// Its last event was written and has so many bytes.
    fn close(&mut self, ending: Ending, last_bytes: usize) {
        (self.state, self.last_bytes) = (State::Ended(ending), last_bytes);
    }

    /// Nothing more comes: writes what is still due. A stream that lacks its terminal event ends with an error.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Ending {
        self.events.end();
        if self.drain(out).is_err() {
            self.cut(out, BROKEN, "the provider sent what is no event of a stream of answers");
        }
        // Some providers leave out the blank line behind the last event. What is none with it is half an event.
        let half = self.events.close().and_then(|()| self.drain(out)).is_err();
        if self.state == State::Running {
            // Some providers of the chat shape leave out the last event; what they said is whole nevertheless.
            let half = half || self.writer.is_cut_short();
            let whole = self.upstream == Dialect::Chat && self.meter.has_finished(self.options.answers) && !half;
            if whole {
                let before = out.len();
                match &mut self.writer {
                    Writer::Same(_) => out.extend_from_slice(b"data: [DONE]\n\n"),
                    Writer::Chat(_) => {}
                    Writer::Messages(writer) => writer.finish(&self.meter, out),
                }
                self.close(Ending::Clean, out.len().saturating_sub(before));
            } else {
                self.cut(out, BROKEN, BROKEN_OFF);
            }
        }
        match &self.state {
            State::Ended(ending) => ending.clone(),
            State::Running => Ending::Cut,
        }
    }

    /// Breaks it off: writes an error of this type and message in the client's shape, unless it has ended.
    pub fn cut(&mut self, out: &mut Vec<u8>, kind: &str, message: &str) {
        if self.state == State::Running {
            let before = out.len();
            self.write_error(out, kind, message);
            self.close(Ending::Cut, out.len().saturating_sub(before));
        }
    }

    /// Writes an error of this type and message in the client's shape, also where the stream has ended: the client may not have
    /// heard its end yet, and hears this in its place.
    pub fn write_error(&self, out: &mut Vec<u8>, kind: &str, message: &str) {
        write_event(out, self.client, Told::own(kind, message));
    }

    /// Whether its last event was written.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state != State::Running
    }

    /// The error that its provider has told, where it ended so.
    #[must_use]
    pub const fn error(&self) -> Option<&ProviderError> {
        match &self.state {
            State::Ended(Ending::Failed(error)) => Some(error),
            State::Ended(Ending::Clean | Ending::Cut) | State::Running => None,
        }
    }

    /// How many bytes its last event has, with what is written beside it; none before that was written.
    #[must_use]
    pub const fn last_bytes(&self) -> usize {
        self.last_bytes
    }

    /// Whether the answer has begun: with its first token, or with what may come without any for long, such as thinking that is
    /// not shown. What a provider says before that, of the message and to keep the connection open, is no answer.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.meter.has_begun()
    }

    /// Whether a first token has come.
    #[must_use]
    pub const fn has_token(&self) -> bool {
        self.meter.has_token()
    }

    /// How many pieces of the answer have come: texts, thinking, calls, and whatever else a provider makes; what it sends to
    /// keep the connection open is none.
    #[must_use]
    pub const fn pieces(&self) -> u64 {
        self.meter.events()
    }

    /// How many kinds of tools that the provider runs itself have been heard of.
    #[must_use]
    pub fn own_tools(&self) -> usize {
        self.meter.own_tools()
    }

    /// What came so far.
    #[must_use]
    pub fn received(&self) -> Received {
        self.meter.received()
    }
}

/// The message of a choice that tells all of an answer at once, where a stream tells what is added: some gateways make a stream of
/// one event out of an answer. Where it comes with every event it has grown since the last, and only the last is whole.
fn whole_message(choice: Value<'_>) -> Option<Value<'_>> {
    choice.given("message").filter(|_| choice.text_of("finish_reason").is_some_and(|it| !it.is_empty()))
}

/// An event in which a signature begins, with the mark before it.
fn signed<'a>(event: &Event<'a>, root: Value<'_>, signing: &mut Signing) -> Option<Cow<'a, str>> {
    let (at, raw) = (event.at?, std::str::from_utf8(event.raw).ok()?);
    let mut splice = signing.splice(root)?;
    (splice.start, splice.end) = (splice.start + at, splice.end + at);
    Some(Cow::Owned(spliced(raw, &[splice])))
}

/// No text of the answer.
impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Stream");
        out.field("upstream", &self.upstream).field("client", &self.client).field("pieces", &self.pieces());
        out.field("ended", &self.ended()).finish_non_exhaustive()
    }
}

/// What handling one event needs beside the stream's parts.
struct Pass<'a> {
    options: StreamOptions,
    upstream: Dialect,
    client: Dialect,
    hidden: &'a [Secret<String>],
}

impl Pass<'_> {
    /// One event: metered and written. The ending, where it is the last.
    fn event(
        &self,
        event: &Event<'_>,
        tape: &mut Tape,
        meter: &mut Meter,
        writer: &mut Writer,
        out: &mut Vec<u8>,
    ) -> Result<Option<Ending>, Broken> {
        let Some(data) = event.data.as_deref().filter(|it| !it.is_empty()) else {
            match writer {
                Writer::Same(_) => self.pass_on(event.raw, out),
                // A client that gives up on a silent stream hears that this one is alive, as the provider meant it. Before the answer has
                // begun the client hears nothing: another provider may yet be asked.
                Writer::Chat(_) if event.is_comment() && meter.has_begun() => out.extend_from_slice(ALIVE),
                Writer::Messages(writer) if event.is_comment() && meter.has_begun() => writer.is_alive(out),
                Writer::Chat(_) | Writer::Messages(_) => {}
            }
            return Ok(None);
        };
        if data.trim_ascii() == b"[DONE]" {
            if matches!(writer, Writer::Chat(_)) {
                return Ok(None);
            }
            // A provider that makes fewer answers than were asked for says so by its last word; one cut off it does not mend.
            if !meter.has_finished(1) || writer.is_cut_short() {
                return Ok(Some(self.broken_off(out)));
            }
            match writer {
                Writer::Same(_) | Writer::Chat(_) => self.pass_on(event.raw, out),
                Writer::Messages(writer) => writer.finish(meter, out),
            }
            return Ok(Some(Ending::Clean));
        }
        let text = std::str::from_utf8(data).map_err(|_| Broken::NotEvents)?;
        tape.read(text).map_err(|_| Broken::NotEvents)?;
        let root = tape.root(text);
        if root.form() != Form::Object {
            return Err(Broken::NotEvents);
        }
        let told = ProviderError::told(self.upstream, root, self.hidden);
        // However its data are made, an event of this name is no part of an answer.
        let is_named = || event.field("event") == Some(b"error");
        let told = told.or_else(|| is_named().then(|| ProviderError::named(root, self.hidden)));
        if let Some(error) = told {
            meter.failed(root);
            write_event(out, self.client, Told::by(&error, BROKEN, self.client));
            return Ok(Some(Ending::Failed(error)));
        }
        let last = meter.event(root)?;
        if last && !meter.has_finished(1) {
            return Ok(Some(self.broken_off(out)));
        }
        match writer {
            Writer::Same(signing) => match self.stripped(event, tape, text).or_else(|| signed(event, root, signing)) {
                None => self.pass_on(event.raw, out),
                Some(other) => self.pass_on(other.as_bytes(), out),
            },
            Writer::Chat(writer) => writer.event(root, meter, out)?,
            Writer::Messages(writer) => writer.event(root, out)?,
        }
        Ok(last.then_some(Ending::Clean))
    }

    /// Part of a stream whose shape is the client's goes on as it came; whatever its form, no key is in it.
    fn pass_on(&self, raw: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&without_keys(raw, self.hidden));
    }

    /// The last word came before the answer's end: an error stands in its place.
    fn broken_off(&self, out: &mut Vec<u8>) -> Ending {
        write_event(out, self.client, Told::own(BROKEN, BROKEN_OFF));
        Ending::Cut
    }

    /// A chat event that tells a usage nobody asked for: nothing where it tells nothing else, else without it.
    fn stripped<'a>(&self, event: &Event<'a>, tape: &Tape, text: &str) -> Option<Cow<'a, str>> {
        if !self.options.strip_usage || self.client != Dialect::Chat {
            return None;
        }
        let root = tape.root(text);
        let usage = root.given("usage").filter(|it| it.form() == Form::Object)?;
        if root.get("choices").is_none_or(|it| it.items().next().is_none()) {
            return Some(Cow::Borrowed(""));
        }
        let raw = std::str::from_utf8(event.raw).ok()?;
        let mut splice = Splice::over(usage, "null".to_owned());
        let at = event.at?;
        (splice.start, splice.end) = (splice.start + at, splice.end + at);
        Some(Cow::Owned(spliced(raw, &[splice])))
    }
}
