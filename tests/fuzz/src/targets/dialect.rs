//! The two shapes of model traffic. The first line of an input is the shape that it is read as, the rest what is read.

use svc_core::dialect::{Answer, Body, ProviderError, Stream, StreamOptions, Target};
use svc_core::state::gateway::{Dialect, Host};
use svc_core::value::Id as _;
use svc_core::value::id::CallId;
use svc_core::value::json::Json;

use super::{inputs, is_the_callers, line_and_rest};

const BOTH: [Dialect; 2] = [Dialect::Chat, Dialect::Messages];

fn shape(data: &[u8]) -> (Dialect, &[u8]) {
    let (line, rest) = line_and_rest(data);
    (if line == b"messages" { Dialect::Messages } else { Dialect::Chat }, rest)
}

/// A request is refused for the caller to mend; else what goes to a provider of either shape is a request of it, its own
/// shape keeps every member, and texts that are looked at and left stay as they are.
///
/// # Panics
/// Where it does not.
pub fn request(data: &[u8]) {
    let (dialect, body) = shape(data);
    let mut read = match Body::read(dialect, body) {
        Ok(read) => read,
        Err(refusal) => return is_the_callers(&refusal),
    };
    let demand = read.demand();
    assert!(demand.answers >= 1);
    for to in BOTH {
        let target = Target {
            dialect: to,
            model: "m",
            max_output: 1_000,
            reasoning: true,
            provider: "one",
            is_strict: false,
            host: Host::Other,
            is_elsewhere: false,
            is_its_own: true,
            bound: None,
        };
        match read.to_upstream(target) {
            Err(refusal) => is_the_callers(&refusal),
            // Thinking with this mark is left out, and a message of nothing else with it.
            Ok(_) if to == dialect && String::from_utf8_lossy(body).contains("svc_unsigned") => {}
            Ok(sent) if to == dialect => {
                let again = Body::read(dialect, &sent).expect("what goes on is a request");
                assert_eq!(again.demand().text_bytes, demand.text_bytes, "no text is added or lost");
            }
            Ok(sent) => assert!(std::str::from_utf8(&sent).is_ok(), "what is translated is text"),
        }
    }
    let before = read.as_bytes().to_vec();
    read.texts_mut(&mut |_| None).expect("nothing is put in");
    assert_eq!(read.as_bytes(), before, "what is only looked at stays");
}

/// Requests that are read to their end.
#[must_use]
pub fn request_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "chat\n{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"x\":1},\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"h\\u00e9\"},{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,QUJD\"}}]},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"r\"}],\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],\"tool_choice\":\"required\",\"reasoning_effort\":\"low\",\"stop\":[\"a\"],\"max_tokens\":5}",
        "messages\n{\"model\":\"m\",\"max_tokens\":5,\"system\":[{\"type\":\"text\",\"text\":\"s\",\"cache_control\":{\"type\":\"ephemeral\"}}],\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{\"a\":[1]}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{\"type\":\"text\",\"text\":\"r\"}],\"is_error\":true},{\"type\":\"document\",\"source\":{\"type\":\"base64\",\"media_type\":\"application/pdf\",\"data\":\"QUJD\"}}]}],\"tools\":[{\"name\":\"f\",\"input_schema\":{}}],\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":2000}}",
    ])
}

/// An answer is refused, or is JSON in either client's shape, and the provider's own bytes in its own.
///
/// # Panics
/// Where it is not.
pub fn answer(data: &[u8]) {
    let (dialect, body) = shape(data);
    assert!(ProviderError::read(body).message.chars().count() <= 301, "what is shown is short");
    let Ok(answer) = Answer::read(dialect, body) else { return };
    for client in BOTH {
        let out = answer.to_client(client, 1, CallId::from_bits(1));
        if client == dialect {
            assert_eq!(out, body);
        } else if Json::parse(body).is_ok() {
            Answer::read(client, &out).expect("what is translated is an answer");
        }
    }
}

/// Answers that are read to their end.
#[must_use]
pub fn answer_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "chat\n{\"id\":\"i\",\"model\":\"m\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"x\",\"reasoning_content\":\"t\",\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7,\"total_tokens\":12,\"prompt_tokens_details\":{\"cached_tokens\":2}}}",
        "messages\n{\"id\":\"i\",\"model\":\"m\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"x\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"cache_creation\":{\"ephemeral_1h_input_tokens\":2},\"output_tokens\":7,\"server_tool_use\":{\"web_search_requests\":1}}}",
        "chat\n{\"error\":{\"message\":\"no\",\"type\":\"t\"}}",
    ])
}

/// What is written of a stream does not depend on where its bytes are cut, and ends once.
///
/// # Panics
/// Where it does.
pub fn stream(data: &[u8]) {
    let (upstream, bytes) = shape(data);
    for client in BOTH {
        let answers = u32::try_from(bytes.len() % 3).unwrap_or(1);
        let options = StreamOptions {
            strip_usage: bytes.len().is_multiple_of(2),
            created_s: 1,
            answers,
            ..StreamOptions::default()
        };
        let run = |piece: usize| {
            let mut stream = Stream::new(upstream, client, options);
            let mut out = Vec::new();
            for chunk in bytes.chunks(piece.max(1)) {
                if stream.push(chunk, &mut out).is_err() {
                    stream.cut(&mut out, "upstream_failure", "broken");
                }
            }
            let ending = stream.end(&mut out);
            assert!(stream.ended());
            let length = out.len();
            stream.cut(&mut out, "upstream_failure", "again");
            assert_eq!(out.len(), length, "it ends once");
            (out, ending, stream.received())
        };
        let whole = run(bytes.len());
        for piece in [1, 7] {
            assert_eq!(run(piece), whole, "cut into pieces of {piece}");
        }
    }
}

/// Streams that are read to their end.
#[must_use]
pub fn stream_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "chat\ndata: {\"id\":\"i\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":null}\r\n\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n",
        "messages\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"i\",\"model\":\"m\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        "chat\n: comment\r\rdata: {\"error\":{\"message\":\"no\"}}\r\r",
    ])
}
