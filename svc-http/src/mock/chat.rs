//! The chat-completions API's shapes.

use bytes::Bytes;
use serde_json::{Value, json};

use super::asked::Asked;
use super::knobs::{Usage, Wish};
use super::said::{Called, Finish, Said, Text, Tokens};
use super::script::Frames;

/// When everything was made.
const CREATED: u64 = 1_767_225_600;
/// Letters of a call's arguments in one frame.
const ARGUMENT_LETTERS: usize = 8;

/// A whole answer.
pub(super) fn whole(said: &Said, wish: &Wish) -> Value {
    let choices: Vec<Value> = said
        .choices
        .iter()
        .zip(0_u64..)
        .map(|(text, index)| {
            let content = if said.calls.is_empty() || text.len() > 0 { json!(text.whole()) } else { Value::Null };
            let mut message = json!({ "role": "assistant", "content": content, "refusal": null, "annotations": [] });
            if let Some(message) = message.as_object_mut() {
                if wish.thinking.is_some() {
                    message.insert("reasoning_content".to_owned(), json!(said.thinking.whole()));
                }
                if !said.calls.is_empty() {
                    let calls: Vec<Value> = said.calls.iter().map(called).collect();
                    message.insert("tool_calls".to_owned(), Value::Array(calls));
                }
            }
            json!({ "index": index, "message": message, "logprobs": null, "finish_reason": reason(said.finish) })
        })
        .collect();
    let mut answer = json!({
        "id": format!("chatcmpl-{}", said.id),
        "object": "chat.completion",
        "created": CREATED,
        "model": said.model,
        "choices": choices,
        "service_tier": "default",
        "system_fingerprint": "fp_mock",
    });
    if let (Some(members), Some(usage)) = (answer.as_object_mut(), usage(&said.tokens, wish)) {
        members.insert("usage".to_owned(), usage);
    }
    answer
}

fn called(call: &Called) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": format!("call_{}", call.id), "type": "function", "function": function })
}

fn usage(tokens: &Tokens, wish: &Wish) -> Option<Value> {
    let tokens = match wish.usage {
        Some(Usage::Missing) => return None,
        Some(Usage::Zero) => Tokens::default(),
        None => *tokens,
    };
    // This API counts what it wrote to a cache as input, and reasoning within the output.
    let prompt = tokens.input + tokens.cached + tokens.cache_write + tokens.cache_write_long;
    let completion = tokens.output + tokens.reasoning;
    Some(json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": { "cached_tokens": tokens.cached, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": tokens.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }))
}

const fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::Pause => "stop",
        Finish::Length => "length",
        Finish::Tools => "tool_calls",
        Finish::Filter => "content_filter",
    }
}

/// What every chunk has in common.
#[derive(Clone)]
struct Chunk {
    id: String,
    model: String,
    /// Every chunk of a stream that counts at its end says that it does not count yet.
    counts: bool,
}

impl Chunk {
    fn of(&self, choices: Value, usage: Value) -> Bytes {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": self.model,
            "service_tier": "default",
            "system_fingerprint": "fp_mock",
            "choices": choices,
        });
        if let Some(members) = chunk.as_object_mut().filter(|_| self.counts) {
            members.insert("usage".to_owned(), usage);
        }
        Bytes::from(format!("data: {chunk}\n\n"))
    }

    fn delta(&self, index: u64, delta: Value) -> Bytes {
        self.choice(index, delta, Value::Null)
    }

    fn choice(&self, index: u64, delta: Value, finish: Value) -> Bytes {
        let choice = json!({ "index": index, "delta": delta, "logprobs": null, "finish_reason": finish });
        self.of(Value::Array(vec![choice]), Value::Null)
    }
}

/// A streamed answer.
pub(super) fn stream(said: Said, asked: &Asked, wish: &Wish) -> Frames {
    let counts = asked.include_usage && wish.usage != Some(Usage::Missing);
    let chunk = Chunk { id: format!("chatcmpl-{}", said.id), model: said.model, counts };
    let all = said.choices.len() as u64;
    let roles = chunk.clone();
    let calls_only = !said.calls.is_empty();
    let role = move |index| {
        let content = if calls_only { Value::Null } else { json!("") };
        roles.delta(index, json!({ "role": "assistant", "content": content, "refusal": null }))
    };
    let mut frames: Frames = Box::new((0..all).map(role));
    if wish.thinking.is_some() {
        let thinking = texts(&chunk, vec![said.thinking], "reasoning_content");
        frames = Box::new(frames.chain(thinking));
    }
    let ends = chunk.clone();
    let finish = json!(reason(said.finish));
    frames = Box::new(
        frames
            .chain(texts(&chunk, said.choices, "content"))
            .chain(calls(&chunk, said.calls))
            .chain((0..all).map(move |index| ends.choice(index, json!({}), finish.clone()))),
    );
    if let Some(usage) = usage(&said.tokens, wish).filter(|_| asked.include_usage) {
        frames = Box::new(frames.chain(std::iter::once(chunk.of(json!([]), usage))));
    }
    Box::new(frames.chain(std::iter::once(Bytes::from_static(b"data: [DONE]\n\n"))))
}

/// The pieces of several texts, one of each in turn.
fn texts(chunk: &Chunk, texts: Vec<Text>, member: &'static str) -> Frames {
    let longest = texts.iter().map(Text::len).max().unwrap_or(0);
    let chunk = chunk.clone();
    let choices = texts.len() as u64;
    let each = (0..longest).flat_map(move |place| (0..choices).map(move |index| (place, index)));
    Box::new(each.filter_map(move |(place, index)| {
        let text = texts.get(usize::try_from(index).ok()?).filter(|it| place < it.len())?;
        Some(chunk.delta(index, json!({ member: text.piece(place) })))
    }))
}

/// A call's name first, then its arguments piece by piece; one call after the other.
fn calls(chunk: &Chunk, calls: Vec<Called>) -> Frames {
    let mut frames = Vec::new();
    for (call, index) in calls.into_iter().zip(0_u64..) {
        let mut delta = called(&call);
        if let Some(members) = delta.as_object_mut() {
            members.insert("index".to_owned(), json!(index));
            members.insert("function".to_owned(), json!({ "name": call.name, "arguments": "" }));
        }
        frames.push(chunk.delta(0, json!({ "tool_calls": [delta] })));
        let letters: Vec<char> = call.arguments.to_string().chars().collect();
        for piece in letters.chunks(ARGUMENT_LETTERS) {
            let piece: String = piece.iter().collect();
            let delta = json!({ "index": index, "function": { "arguments": piece } });
            frames.push(chunk.delta(0, json!({ "tool_calls": [delta] })));
        }
    }
    Box::new(frames.into_iter())
}

/// An error as this API writes it.
pub(super) fn error(kind: &str, message: &str, code: Option<&str>) -> Value {
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

/// The same in the middle of a stream.
pub(super) fn error_frame() -> Bytes {
    Bytes::from(format!("data: {}\n\n", error("server_error", "The server is overloaded", Some("server_overloaded"))))
}

/// The models there are.
pub(super) fn models(ids: &[&str]) -> Value {
    let data: Vec<Value> = ids.iter().map(|it| model(it)).collect();
    json!({ "object": "list", "data": data })
}

/// One of them.
pub(super) fn model(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": CREATED, "owned_by": "mock" })
}
