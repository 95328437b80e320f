//! The knobs: what they are called, what they take, what they do.

use std::fmt::Write as _;
use std::time::Duration;

use http::HeaderMap;

/// What a knob's header begins with.
const HEADER: &str = "x-mock-";
/// What stands between a model's name and the words that turn knobs, and between those.
const BETWEEN: &str = "--";

/// One knob.
pub struct Knob {
    /// Its name: the header is `x-mock-` and this, the word in a model's name is this, `-` and the value.
    pub name: &'static str,
    /// What it takes, empty where it takes nothing.
    pub value: &'static str,
    /// What it does, without a full stop.
    pub help: &'static str,
    turn: fn(&mut Wish, &str) -> Option<()>,
}

impl std::fmt::Debug for Knob {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Knob").field(&self.name).finish()
    }
}

/// A knob or a value that there is none of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no knob `{0}`, or none with this value: docs/mock-upstream.md lists them")]
pub struct UnknownKnob(pub String);

/// How an answer is to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Wish {
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<String>,
    pub(super) head: Option<Duration>,
    pub(super) first: Option<Duration>,
    pub(super) pace: Option<Duration>,
    pub(super) hang: bool,
    pub(super) drop: bool,
    pub(super) breaks: Option<Break>,
    pub(super) body: Option<Body>,
    pub(super) content_type: Option<&'static str>,
    pub(super) gzip: bool,
    pub(super) lines: u64,
    pub(super) wide: usize,
    pub(super) echo: bool,
    pub(super) words: Option<u64>,
    pub(super) thinking: Option<u64>,
    pub(super) tools: Option<usize>,
    pub(super) finish: Option<&'static str>,
    pub(super) usage: Option<Usage>,
    pub(super) input: Option<u64>,
    pub(super) cached: Option<u64>,
    pub(super) cache_write: Option<u64>,
    pub(super) cache_write_long: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
}

/// Where and how a stream breaks: after so many frames. A whole answer breaks in its middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// The connection is closed.
    Cut(u64),
    /// Half of the next frame is sent, then the connection is closed.
    Half(u64),
    /// Nothing more comes, and the connection stays open.
    Stall(u64),
    /// Nothing but comments comes from here on, as providers send them to keep a connection open.
    Pings(u64),
    /// The body ends as if it were whole.
    Short(u64),
    /// An event says that something went wrong, and the body ends.
    Error(u64),
}

/// A body in place of the answer's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Html,
    Empty,
    Garbage,
    Other,
}

/// Usage that is not the answer's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Zero,
    Missing,
}

macro_rules! number {
    ($field:ident) => {
        |wish, value| {
            wish.$field = Some(value.parse().ok()?);
            Some(())
        }
    };
}

macro_rules! pause {
    ($field:ident) => {
        |wish, value| {
            wish.$field = Some(Duration::from_millis(value.parse().ok()?));
            Some(())
        }
    };
}

macro_rules! breaks {
    ($variant:ident) => {
        |wish, value| {
            wish.breaks = Some(Break::$variant(value.parse().ok()?));
            Some(())
        }
    };
}

/// Every knob there is.
pub const KNOBS: &[Knob] = &[
    knob(
        "status",
        "CODE",
        "answers with this status: an error as the API has it, a redirect from 300 to 399",
        |wish, value| {
            wish.status = Some(value.parse().ok().filter(|it| (200..=599).contains(it))?);
            Some(())
        },
    ),
    knob("retry-after", "TEXT", "a `retry-after` header with this value", |wish, value| {
        wish.retry_after = Some(value.to_owned());
        Some(())
    }),
    knob("head", "MS", "waits before the head of the answer", pause!(head)),
    knob("first", "MS", "a slow first token: waits between the head of a stream and its first frame", pause!(first)),
    knob("pace", "MS", "waits between the frames of a stream", pause!(pace)),
    knob("hang", "", "never answers, and leaves the connection open", |wish, _| {
        wish.hang = true;
        Some(())
    }),
    knob("drop", "", "closes the connection without an answer", |wish, _| {
        wish.drop = true;
        Some(())
    }),
    knob("cut", "N", "closes the connection after N frames, or in the middle of a whole answer", breaks!(Cut)),
    knob("half", "N", "closes the connection after N frames and half of the next", breaks!(Half)),
    knob("stall", "N", "sends nothing more after N frames, or from the middle of a whole answer on", breaks!(Stall)),
    knob("pings", "N", "sends nothing but comments after N frames of a stream, one every 20 ms", breaks!(Pings)),
    knob("short", "N", "ends the body after N frames as if it were whole", breaks!(Short)),
    knob("error", "N", "after N frames an event says that the API is overloaded, and the stream ends", breaks!(Error)),
    knob(
        "body",
        "html|empty|garbage|other",
        "a body that is a page, nothing, no JSON, or JSON of another kind",
        |wish, value| {
            wish.body = Some(match value {
                "html" => Body::Html,
                "empty" => Body::Empty,
                "garbage" => Body::Garbage,
                "other" => Body::Other,
                _ => return None,
            });
            Some(())
        },
    ),
    knob(
        "type",
        "html|text|json|stream|none",
        "names another content type than the body has, or none",
        |wish, value| {
            wish.content_type = Some(match value {
                "html" => "text/html; charset=utf-8",
                "text" => "text/plain",
                "json" => "application/json",
                "stream" => "text/event-stream",
                "none" => "",
                _ => return None,
            });
            Some(())
        },
    ),
    knob("gzip", "", "packs the body with gzip, whatever `accept-encoding` says", |wish, _| {
        wish.gzip = true;
        Some(())
    }),
    knob("lines", "N", "N lines without an event before the first frame of a stream", |wish, value| {
        wish.lines = value.parse().ok()?;
        Some(())
    }),
    knob("wide", "BYTES", "a first word of so many letters, in one frame", |wish, value| {
        wish.wide = value.parse().ok().filter(|it| *it <= 1 << 30)?;
        Some(())
    }),
    knob("echo", "", "says what the last message of the user says", |wish, _| {
        wish.echo = true;
        Some(())
    }),
    knob(
        "words",
        "N",
        "words of the answer, each a frame of a stream: a million make a million frames",
        number!(words),
    ),
    knob("thinking", "N", "words of thinking before the answer, also where nobody asked for any", number!(thinking)),
    knob("tools", "N", "calls so many of the request's tools, 0 calls none", |wish, value| {
        wish.tools = Some(value.parse().ok().filter(|it| *it <= 64)?);
        Some(())
    }),
    knob("finish", "length|filter|pause", "ends for this reason", |wish, value| {
        wish.finish = Some(match value {
            "length" => "length",
            "filter" => "filter",
            "pause" => "pause",
            _ => return None,
        });
        Some(())
    }),
    knob("usage", "zero|missing", "counts nothing beside the text, or leaves the counts out", |wish, value| {
        wish.usage = Some(match value {
            "zero" => Usage::Zero,
            "missing" => Usage::Missing,
            _ => return None,
        });
        Some(())
    }),
    knob("input", "N", "tokens of input that were neither read from a cache nor written to one", number!(input)),
    knob("cached", "N", "tokens read from a cache", number!(cached)),
    knob("cache-write", "N", "tokens written to a cache of 5 minutes (messages)", number!(cache_write)),
    knob("cache-write-long", "N", "tokens written to a cache of an hour (messages)", number!(cache_write_long)),
    knob("output", "N", "tokens of output besides reasoning", number!(output)),
    knob("reasoning", "N", "tokens of reasoning", number!(reasoning)),
];

const fn knob(
    name: &'static str,
    value: &'static str,
    help: &'static str,
    turn: fn(&mut Wish, &str) -> Option<()>,
) -> Knob {
    Knob { name, value, help, turn }
}

impl Wish {
    /// Turns what a request's headers turn.
    ///
    /// # Errors
    /// The first knob or value that there is none of.
    pub(super) fn take_headers(&mut self, headers: &HeaderMap) -> Result<(), UnknownKnob> {
        for (name, value) in headers {
            let Some(name) = name.as_str().strip_prefix(HEADER) else { continue };
            let turned = KNOBS.iter().find(|knob| knob.name == name).and_then(|knob| {
                let value = value.to_str().ok()?;
                (knob.turn)(self, value.trim())
            });
            turned
                .ok_or_else(|| UnknownKnob(format!("{HEADER}{name}: {}", String::from_utf8_lossy(value.as_bytes()))))?;
        }
        Ok(())
    }

    /// Turns what the words of a model's name turn, and gives the name without them.
    ///
    /// # Errors
    /// The first word that is no knob with its value.
    pub(super) fn take_model<'name>(&mut self, model: &'name str) -> Result<&'name str, UnknownKnob> {
        let Some((name, words)) = model.split_once(BETWEEN) else { return Ok(model) };
        self.take_words(words)?;
        Ok(name)
    }

    /// Turns what words turn, `--` between them.
    ///
    /// # Errors
    /// The first word that is no knob with its value.
    pub(super) fn take_words(&mut self, words: &str) -> Result<(), UnknownKnob> {
        for word in words.split(BETWEEN).filter(|it| !it.is_empty()) {
            // `cache-write-long-5` is not `cache-write` with a strange value.
            let named = KNOBS.iter().filter_map(|knob| {
                let rest = word.strip_prefix(knob.name)?;
                let value = if rest.is_empty() { rest } else { rest.strip_prefix('-')? };
                Some((knob, value))
            });
            let turned =
                named.max_by_key(|(knob, _)| knob.name.len()).and_then(|(knob, value)| (knob.turn)(self, value));
            turned.ok_or_else(|| UnknownKnob(word.to_owned()))?;
        }
        Ok(())
    }
}

/// Every knob for a terminal.
#[must_use]
pub fn terminal_table() -> String {
    let mut out = String::new();
    for knob in KNOBS {
        let space = if knob.value.is_empty() { "" } else { " " };
        let _ = writeln!(out, "  {}{space}{}\n      {}", knob.name, knob.value, knob.help);
    }
    out
}

/// Every knob as a Markdown table, as `docs/mock-upstream.md` has it.
#[must_use]
pub fn markdown_table() -> String {
    let mut out = String::from("| Knob | Value | What it does |\n|---|---|---|\n");
    for knob in KNOBS {
        let value =
            if knob.value.is_empty() { String::new() } else { format!("`{}`", knob.value.replace('|', "`, `")) };
        let _ = writeln!(out, "| `{}` | {value} | {} |", knob.name, knob.help);
    }
    out
}
