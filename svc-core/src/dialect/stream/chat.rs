//! A stream of the messages shape, written in the chat shape.
//!
//! **Invariant:** no more is kept than [`HELD_MAX`] bytes and [`CALLS_MAX`] calls, whatever a provider sends. Thinking breaks no
//! stream: a block that has no room is told as text alone, and is not among the blocks at the end.

use std::collections::BTreeMap;

use super::super::doc::Value;
use super::super::finish::Finish;
use super::super::marks::is_mark;
use super::super::sse::Broken;
use super::super::usage;
use super::super::write::{Out, quoted};
use super::meter::Meter;
use super::{ALIVE, CALLS_MAX, HELD_MAX, NAME_MAX, StreamOptions};

/// Writes chunks of a chat completion.
#[derive(Debug)]
pub(super) struct ToChat {
    options: StreamOptions,
    /// The start of every chunk, once it is known.
    head: Option<String>,
    /// The tool calls, by the number of the block that holds each.
    tools: BTreeMap<i64, Tool>,
    /// How many calls have come: some gateways give all blocks one number, or none.
    calls: usize,
    /// The model's thinking, by the number of the block that holds each, and by how many came before.
    thoughts: BTreeMap<(i64, usize), Thought>,
    /// How many blocks of thinking have come.
    thought: usize,
    /// Bytes that are or were kept of thinking.
    thought_bytes: usize,
    /// Bytes of arguments that wait.
    input_bytes: usize,
    /// What is put before signatures of thinking.
    mark: String,
}

/// What a block of thinking is taken for beside its bytes.
const THOUGHT_BYTES: usize = 512;

/// A block of thinking, kept whole: a client that sends it back lets the model go on from there.
#[derive(Debug)]
enum Thought {
    /// A text and the provider's signature of it, both as they were written: a piece may end between the halves of a surrogate
    /// pair.
    Shown { text: String, signature: String },
    /// A block that only the provider reads, as it came.
    Redacted(String),
}

/// A tool call of which arguments may still come.
#[derive(Debug)]
struct Tool {
    /// Its place among the calls.
    index: u64,
    /// Its arguments as the block's start had them.
    input: String,
    /// Whether a piece of its arguments has come.
    begun: bool,
}

impl ToChat {
    pub(super) const fn new(options: StreamOptions) -> Self {
        Self {
            options,
            head: None,
            tools: BTreeMap::new(),
            calls: 0,
            thoughts: BTreeMap::new(),
            thought: 0,
            thought_bytes: 0,
            input_bytes: 0,
            mark: String::new(),
        }
    }

    /// Puts this mark before signatures of thinking.
    pub(super) fn marking(&mut self, mark: String) {
        self.mark = mark;
    }

    /// Takes one event.
    ///
    /// # Errors
    /// [`Broken::TooMuch`] where it begins more calls, or holds more of their arguments back, than are kept.
    pub(super) fn event(&mut self, root: Value<'_>, meter: &Meter, out: &mut Vec<u8>) -> Result<(), Broken> {
        let kind = root.text_of("type").unwrap_or_default();
        let index = root.get("index").and_then(|it| it.integer()).unwrap_or(0);
        match &*kind {
            "message_start" => self.start(root.get("message"), out),
            "content_block_start" => {
                if let Some(block) = root.get("content_block") {
                    self.block(index, block, out);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = root.get("delta") {
                    self.delta(index, delta, out);
                }
            }
            "content_block_stop" => self.close(index, out),
            "message_stop" => self.finish(meter, out),
            "ping" if meter.has_begun() => out.extend_from_slice(ALIVE),
            _ => {}
        }
        if self.calls <= CALLS_MAX && self.input_bytes <= HELD_MAX { Ok(()) } else { Err(Broken::TooMuch) }
    }

    fn start(&mut self, message: Option<Value<'_>>, out: &mut Vec<u8>) {
        if self.head.is_some() {
            return;
        }
        let named = |name| message.and_then(|it| it.get(name)).filter(|it| it.is_text() && it.raw().len() <= NAME_MAX);
        let id = named("id").map_or("\"chatcmpl-0\"", |it| it.raw());
        let model = named("model").map_or("\"\"", |it| it.raw());
        let created = self.options.created_s;
        self.head =
            Some(format!("\"id\":{id},\"object\":\"chat.completion.chunk\",\"created\":{created},\"model\":{model}"));
        // A content that is there, be it empty, is a text to clients: what calls alone have none. It comes with the first piece.
        self.chunk(out, |it| it.name("role").text("assistant"));
    }

    /// One chunk of the answer.
    fn chunk(&mut self, out: &mut Vec<u8>, delta: impl FnOnce(&mut Out)) {
        self.write(out, |out| {
            out.name("choices").list(|out| {
                out.object(|out| {
                    out.name("index").number(0);
                    out.name("delta").object(delta);
                    out.name("finish_reason").null();
                });
            });
        });
    }

    fn write(&mut self, out: &mut Vec<u8>, members: impl FnOnce(&mut Out)) {
        if self.head.is_none() {
            self.start(None, out);
        }
        let mut json = Out::onto(std::mem::take(out));
        json.bytes("data: ");
        let head = self.head.as_deref().unwrap_or_default();
        json.object(|out| {
            out.raw(head);
            members(out);
        });
        json.bytes("\n\n");
        *out = json.into_bytes();
    }

    fn block(&mut self, index: i64, block: Value<'_>, out: &mut Vec<u8>) {
        let kind = block.text_of("type").unwrap_or_default();
        match &*kind {
            "text" => self.piece("content", block.get("text"), out),
            "thinking" => {
                if self.has_room(THOUGHT_BYTES) {
                    self.keep(index, Thought::Shown { text: String::new(), signature: String::new() });
                    self.think(index, block.get("thinking"), block.get("signature"));
                }
                self.piece("reasoning_content", block.get("thinking"), out);
            }
            "redacted_thinking" if self.has_room(THOUGHT_BYTES.saturating_add(block.raw().len())) => {
                self.keep(index, Thought::Redacted(block.raw().to_owned()));
            }
            "tool_use" => {
                // One of the same number that has not ended is ended by this one.
                self.close(index, out);
                let number = u64::try_from(self.calls).unwrap_or(u64::MAX);
                self.calls = self.calls.saturating_add(1);
                let input = block.get("input").filter(|it| it.members().next().is_some());
                let input = input.map_or("{}", |it| it.raw()).to_owned();
                self.input_bytes = self.input_bytes.saturating_add(input.len());
                let raw = |name: &str| block.get(name).filter(|it| it.is_text()).map_or("\"\"", |it| it.raw());
                let (id, name) = (raw("id"), raw("name"));
                self.tools.insert(index, Tool { index: number, input, begun: false });
                self.chunk(out, |out| {
                    out.name("tool_calls").list(|out| {
                        out.object(|out| {
                            out.name("index").number(number);
                            out.name("id").raw(id);
                            out.name("type").text("function");
                            out.name("function").object(|out| {
                                out.name("name").raw(name);
                                out.name("arguments").text("");
                            });
                        });
                    });
                });
            }
            _ => {}
        }
    }

    fn delta(&mut self, index: i64, delta: Value<'_>, out: &mut Vec<u8>) {
        let kind = delta.text_of("type").unwrap_or_default();
        match &*kind {
            "text_delta" => self.piece("content", delta.get("text"), out),
            "thinking_delta" => {
                self.think(index, delta.get("thinking"), None);
                self.piece("reasoning_content", delta.get("thinking"), out);
            }
            "signature_delta" => self.think(index, None, delta.get("signature")),
            "input_json_delta" => {
                if let Some(json) = delta.get("partial_json").filter(|it| it.is_text() && !it.is_empty_text()) {
                    self.arguments(index, json.raw(), out);
                }
            }
            _ => {}
        }
    }

    /// Takes room for so many bytes of thinking, where there is as much.
    fn has_room(&mut self, bytes: usize) -> bool {
        let wanted = self.thought_bytes.saturating_add(bytes);
        let fits = wanted <= HELD_MAX;
        if fits {
            self.thought_bytes = wanted;
        }
        fits
    }

    fn keep(&mut self, index: i64, thought: Thought) {
        self.thoughts.insert((index, self.thought), thought);
        self.thought = self.thought.saturating_add(1);
    }

    /// The last block of thinking that has this number.
    fn last(&self, index: i64) -> Option<(i64, usize)> {
        self.thoughts.range((index, 0)..=(index, usize::MAX)).next_back().map(|(key, _)| *key)
    }

    /// A piece of a block of thinking, or of its signature. A block is kept whole or not at all: no provider knows half of one.
    fn think(&mut self, index: i64, more: Option<Value<'_>>, signed: Option<Value<'_>>) {
        let [more, signed] = [more, signed].map(|it| it.and_then(|it| it.written()).unwrap_or_default());
        if !self.has_room(more.len().saturating_add(signed.len())) {
            if let Some(key) = self.last(index) {
                self.thoughts.remove(&key);
            }
        } else if let Some(Thought::Shown { text, signature }) =
            self.last(index).and_then(|key| self.thoughts.get_mut(&key))
        {
            text.push_str(more);
            signature.push_str(signed);
        }
    }

    /// All thinking that the provider knows again, in one piece: clients join lists of pieces each in their own way.
    fn thinking_blocks(&mut self, out: &mut Vec<u8>) {
        let is_known = |it: &Thought| match it {
            Thought::Shown { signature, .. } => !signature.is_empty() && !is_mark(signature),
            Thought::Redacted(_) => true,
        };
        let mut thoughts = std::mem::take(&mut self.thoughts);
        thoughts.retain(|_, it| is_known(it));
        if thoughts.is_empty() {
            return;
        }
        let mark = std::mem::take(&mut self.mark);
        self.chunk(out, |out| {
            out.name("thinking_blocks").list(|out| {
                for thought in thoughts.values() {
                    match thought {
                        Thought::Shown { text, signature } => out.object(|out| {
                            out.name("type").text("thinking");
                            out.name("thinking").raw(&format!("\"{text}\""));
                            out.name("signature").raw(&format!("\"{mark}{signature}\""));
                        }),
                        Thought::Redacted(block) => out.raw(block),
                    }
                }
            });
        });
    }

    /// A piece of text under this member's name; nothing where there is none.
    fn piece(&mut self, name: &str, text: Option<Value<'_>>, out: &mut Vec<u8>) {
        if let Some(text) = text.filter(|it| it.is_text() && !it.is_empty_text()) {
            self.chunk(out, |out| out.name(name).raw(text.raw()));
        }
    }

    /// A piece of a tool call's arguments, as a JSON text. Pieces of what is no call of the client's are left out.
    fn arguments(&mut self, index: i64, json: &str, out: &mut Vec<u8>) {
        let Some(tool) = self.tools.get_mut(&index) else { return };
        tool.begun = true;
        self.input_bytes = self.input_bytes.saturating_sub(std::mem::take(&mut tool.input).len());
        let number = tool.index;
        self.chunk(out, |out| {
            out.name("tool_calls").list(|out| {
                out.object(|out| {
                    out.name("index").number(number);
                    out.name("function").object(|out| out.name("arguments").raw(json));
                });
            });
        });
    }

    /// A block's end: a call whose arguments never came in pieces gets those it began with.
    fn close(&mut self, index: i64, out: &mut Vec<u8>) {
        let input = self.tools.get(&index).filter(|it| !it.begun).map(|it| quoted(&it.input));
        if let Some(input) = input {
            self.arguments(index, &input, out);
        }
    }

    fn finish(&mut self, meter: &Meter, out: &mut Vec<u8>) {
        let open: Vec<i64> = self.tools.iter().filter(|(_, it)| !it.begun).map(|(at, _)| *at).collect();
        for index in open {
            self.close(index, out);
        }
        self.thinking_blocks(out);
        let reason = meter.finish().unwrap_or(Finish::Stop).beside(!self.tools.is_empty()).chat();
        self.write(out, |out| {
            out.name("choices").list(|out| {
                out.object(|out| {
                    out.name("index").number(0);
                    out.name("delta").object(|_| {});
                    out.name("finish_reason").text(reason);
                });
            });
        });
        if !self.options.strip_usage {
            let usage = meter.charged(self.options.charged_input);
            self.write(out, |out| {
                out.name("choices").list(|_| {});
                usage::write_chat(out.name("usage"), &usage);
            });
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}
