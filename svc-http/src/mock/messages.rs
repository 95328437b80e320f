//! The messages API's shapes.

use bytes::Bytes;
use serde_json::{Value, json};

use super::knobs::{Usage, Wish};
use super::said::{Called, Finish, Said, Tokens};
use super::script::Frames;

/// What thinking is signed with.
const SIGNATURE: &str = "bW9jayBzaWduYXR1cmU=";
/// Letters of a call's arguments in one frame.
const ARGUMENT_LETTERS: usize = 8;

/// A whole answer.
pub(super) fn whole(said: &Said, wish: &Wish) -> Value {
    let mut content = Vec::new();
    if said.thinking.len() > 0 {
        content.push(json!({ "type": "thinking", "thinking": said.thinking.whole(), "signature": SIGNATURE }));
    }
    for text in said.choices.iter().filter(|it| it.len() > 0) {
        content.push(json!({ "type": "text", "text": text.whole() }));
    }
    content.extend(said.calls.iter().map(|it| called(it, it.arguments.clone())));
    message(said, content, Some(reason(said.finish)), usage(&said.tokens, wish))
}

fn message(said: &Said, content: Vec<Value>, reason: Option<&str>, usage: Option<Value>) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", said.id),
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
    });
    if let (Some(members), Some(usage)) = (message.as_object_mut(), usage) {
        members.insert("usage".to_owned(), usage);
    }
    message
}

fn called(call: &Called, input: Value) -> Value {
    json!({ "type": "tool_use", "id": format!("toolu_{}", call.id), "name": call.name, "input": input })
}

fn usage(tokens: &Tokens, wish: &Wish) -> Option<Value> {
    let tokens = match wish.usage {
        Some(Usage::Missing) => return None,
        Some(Usage::Zero) => Tokens::default(),
        None => *tokens,
    };
    // Here the input is what no cache had to do with; thinking is within the output.
    Some(json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write + tokens.cache_write_long,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": tokens.cache_write_long,
        },
        "output_tokens": tokens.output + tokens.reasoning,
        "server_tool_use": null,
        "service_tier": "standard",
    }))
}

const fn reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::Tools => "tool_use",
        Finish::Filter => "refusal",
        Finish::Pause => "pause_turn",
    }
}

fn event(name: &str, mut data: Value) -> Bytes {
    if let Some(members) = data.as_object_mut() {
        members.insert("type".to_owned(), json!(name));
    }
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

fn start(index: u64, block: Value) -> Bytes {
    event("content_block_start", json!({ "index": index, "content_block": block }))
}

fn delta(index: u64, delta: Value) -> Bytes {
    event("content_block_delta", json!({ "index": index, "delta": delta }))
}

fn stop(index: u64) -> Bytes {
    event("content_block_stop", json!({ "index": index }))
}

/// A streamed answer.
pub(super) fn stream(said: Said, wish: &Wish) -> Frames {
    let counted = usage(&said.tokens, wish);
    // At its beginning one token of output is counted, as the API does.
    let began = usage(&Tokens { output: 1, reasoning: 0, ..said.tokens }, wish);
    let begin = event("message_start", json!({ "message": message(&said, Vec::new(), None, began) }));
    let mut frames: Frames = Box::new([begin, event("ping", json!({}))].into_iter());
    let mut index = 0;
    if said.thinking.len() > 0 {
        let (thinking, at) = (said.thinking, index);
        let pieces = (0..thinking.len())
            .map(move |it| delta(at, json!({ "type": "thinking_delta", "thinking": thinking.piece(it) })));
        let signed = delta(at, json!({ "type": "signature_delta", "signature": SIGNATURE }));
        let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
        frames = Box::new(frames.chain([start(at, block)]).chain(pieces).chain([signed, stop(at)]));
        index += 1;
    }
    for text in said.choices.into_iter().filter(|it| it.len() > 0) {
        let at = index;
        let pieces = (0..text.len()).map(move |it| delta(at, json!({ "type": "text_delta", "text": text.piece(it) })));
        let block = json!({ "type": "text", "text": "" });
        frames = Box::new(frames.chain([start(at, block)]).chain(pieces).chain([stop(at)]));
        index += 1;
    }
    for call in said.calls {
        frames = Box::new(frames.chain(call_frames(index, &call)));
        index += 1;
    }
    let mut end = json!({ "delta": { "stop_reason": reason(said.finish), "stop_sequence": null } });
    if let (Some(members), Some(usage)) = (end.as_object_mut(), counted) {
        members.insert("usage".to_owned(), usage);
    }
    Box::new(frames.chain([event("message_delta", end), event("message_stop", json!({}))]))
}

fn call_frames(index: u64, call: &Called) -> Vec<Bytes> {
    let mut frames = vec![start(index, called(call, json!({})))];
    let letters: Vec<char> = call.arguments.to_string().chars().collect();
    let pieces = letters.chunks(ARGUMENT_LETTERS).map(|it| it.iter().collect::<String>());
    for piece in std::iter::once(String::new()).chain(pieces) {
        frames.push(delta(index, json!({ "type": "input_json_delta", "partial_json": piece })));
    }
    frames.push(stop(index));
    frames
}

/// An error as this API writes it.
pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_mock" })
}

/// The same in the middle of a stream.
pub(super) fn error_frame() -> Bytes {
    event("error", json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } }))
}

/// The models there are.
pub(super) fn models(ids: &[&str]) -> Value {
    let data: Vec<Value> = ids.iter().map(|it| model(it)).collect();
    json!({ "data": data, "has_more": false, "first_id": ids.first(), "last_id": ids.last() })
}

/// One of them.
pub(super) fn model(id: &str) -> Value {
    json!({ "type": "model", "id": id, "display_name": id, "created_at": "2026-01-01T00:00:00Z" })
}
