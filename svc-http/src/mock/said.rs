//! What is said: words, calls and counts that follow from the question.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::asked::{Asked, Cache, Call};
use super::knobs::Wish;
use super::schema::example;

/// Words of an answer; some take several bytes a letter, so that a stream is cut within one.
const WORDS: &[&str] = &[
    "a",
    "small",
    "answer",
    "that",
    "follows",
    "from",
    "the",
    "question",
    "and",
    "says",
    "nothing",
    "of",
    "its",
    "own",
    "größer",
    "als",
    "日本",
    "one",
    "two",
    "three",
    "with",
    "\"quotes\"",
    "lines",
    "naïve",
    "café",
    "🙂",
    "end",
    "again",
    "here",
    "there",
    "every",
    "word",
];
/// Tokens of a call beside its arguments.
const CALL_TOKENS: u64 = 12;

/// An answer in neither API's shape.
#[derive(Debug)]
pub(super) struct Said {
    /// The model's name without the words that turn knobs.
    pub(super) model: String,
    /// What ids end in.
    pub(super) id: String,
    pub(super) thinking: Text,
    pub(super) choices: Vec<Text>,
    pub(super) calls: Vec<Called>,
    pub(super) finish: Finish,
    pub(super) tokens: Tokens,
}

/// A text in pieces, each a frame of a stream.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// So many words; the first one of so many letters where that is not nothing.
    Words { seed: u64, count: u64, wide: usize },
    /// These.
    Pieces(Arc<[String]>),
}

/// A tool that is called.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// Why the answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    Stop,
    Length,
    Tools,
    Filter,
    Pause,
}

/// What is counted, no kind within another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) cache_write: u64,
    pub(super) cache_write_long: u64,
    pub(super) output: u64,
    pub(super) reasoning: u64,
}

/// The answer to a question.
pub(super) fn say(asked: &Asked, model: &str, wish: &Wish) -> Said {
    let digest = Sha256::new().chain_update(model).chain_update([0]).chain_update(&asked.last).finalize();
    let seed = digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte));
    let id = hex::encode(digest.iter().take(12).copied().collect::<Vec<u8>>());
    let calls = calls(asked, wish, &id);
    let reasoning = wish.thinking.unwrap_or(if asked.thinks { 8 + seed % 8 } else { 0 });
    let mut finish = if calls.is_empty() { Finish::Stop } else { Finish::Tools };
    let room = asked.output_max.unwrap_or(u64::MAX).saturating_sub(reasoning);
    let mut text = |choice: u64| {
        let text = text_of(asked, wish, seed.wrapping_add(choice));
        if text.len() > room && calls.is_empty() {
            finish = Finish::Length;
            return text.cut(room);
        }
        text
    };
    let choices: Vec<Text> = if calls.is_empty() {
        (0..asked.choices).map(&mut text).collect()
    } else {
        vec![Text::Words { seed, count: if wish.words.is_some() { wish.words.unwrap_or(0) } else { 0 }, wide: 0 }]
    };
    finish = match wish.finish {
        Some("length") => Finish::Length,
        Some("filter") => Finish::Filter,
        Some("pause") => Finish::Pause,
        _ => finish,
    };
    let output = choices.iter().map(Text::len).fold(0, u64::saturating_add);
    let called = calls.iter().fold(0, |sum, it| sum + CALL_TOKENS + len_of(&it.arguments.to_string()) / 4);
    let tokens = tokens(asked, wish, output.saturating_add(called), reasoning);
    let thinking = Text::Words { seed: seed ^ u64::MAX, count: reasoning, wide: 0 };
    Said { model: model.to_owned(), id, thinking, choices, calls, finish, tokens }
}

fn tokens(asked: &Asked, wish: &Wish, output: u64, reasoning: u64) -> Tokens {
    let (mut input, mut short, mut long) = (asked.input, 0, 0);
    match asked.cache {
        Some(Cache::Short) => short = input / 2,
        Some(Cache::Long) => long = input / 2,
        None => {}
    }
    input -= short + long;
    Tokens {
        input: wish.input.unwrap_or(input),
        cached: wish.cached.unwrap_or(0),
        cache_write: wish.cache_write.unwrap_or(short),
        cache_write_long: wish.cache_write_long.unwrap_or(long),
        output: wish.output.unwrap_or(output),
        reasoning: wish.reasoning.unwrap_or(reasoning),
    }
}

fn text_of(asked: &Asked, wish: &Wish, seed: u64) -> Text {
    if wish.echo {
        return Text::of(asked.last.split_inclusive(' '));
    }
    if let Some(schema) = &asked.schema {
        let json = example(schema, seed, word).to_string();
        let letters: Vec<char> = json.chars().collect();
        return Text::of(letters.chunks(8).map(|it| it.iter().collect::<String>()));
    }
    Text::Words { seed, count: wish.words.unwrap_or(8 + seed % 8), wide: wish.wide }
}

fn calls(asked: &Asked, wish: &Wish, id: &str) -> Vec<Called> {
    let all = asked.tools.len();
    let places: Vec<usize> = match (wish.tools, asked.call) {
        (Some(count), _) => (0..count).collect(),
        (None, Call::None) => Vec::new(),
        (None, Call::One(place)) => vec![place],
        (None, Call::Two) => vec![0, 1],
    };
    let called = |(number, place): (usize, usize)| {
        let tool = asked.tools.get(place.checked_rem(all)?)?;
        let arguments = match example(&tool.schema, number as u64, word) {
            Value::Object(arguments) => Value::Object(arguments),
            _ => Value::Object(Map::new()),
        };
        Some(Called { id: format!("{id}{number:02}"), name: tool.name.clone(), arguments })
    };
    places.into_iter().enumerate().filter_map(called).collect()
}

impl Text {
    fn of(pieces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Pieces(pieces.into_iter().map(Into::into).collect())
    }

    /// Pieces; each counts as a token.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Words { count, .. } => *count,
            Self::Pieces(all) => all.len() as u64,
        }
    }

    /// One piece; nothing past the end.
    pub(super) fn piece(&self, place: u64) -> Cow<'_, str> {
        match self {
            Self::Words { wide, .. } if place == 0 && *wide > 0 => Cow::Owned("a".repeat(*wide)),
            Self::Words { seed, .. } if place == 0 => Cow::Borrowed(word(*seed)),
            Self::Words { seed, .. } => Cow::Owned(format!(" {}", word(seed.wrapping_add(place)))),
            Self::Pieces(all) => {
                let piece = usize::try_from(place).ok().and_then(|it| all.get(it));
                Cow::Borrowed(piece.map_or("", String::as_str))
            }
        }
    }

    /// All of it.
    pub(super) fn whole(&self) -> String {
        (0..self.len()).map(|it| self.piece(it)).collect()
    }

    fn cut(self, room: u64) -> Self {
        match self {
            Self::Words { seed, count, wide } => Self::Words { seed, count: count.min(room), wide },
            Self::Pieces(all) => Self::of(all.iter().take(usize::try_from(room).unwrap_or(usize::MAX)).cloned()),
        }
    }
}

/// Neighbours differ, and so do the beginnings of two answers (Steele, Lea, Flood: SplitMix64).
fn word(seed: u64) -> &'static str {
    let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = mixed ^ (mixed >> 27);
    let place = usize::try_from(mixed % WORDS.len() as u64).unwrap_or(0);
    WORDS.get(place).copied().unwrap_or("word")
}

fn len_of(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}
