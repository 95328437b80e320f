//! Which answer a request gets: the route, the credential, the body, the knobs.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use serde_json::Value;

use super::asked::{self, Api, Asked};
use super::knobs::{self, Wish};
use super::said::{Said, say};
use super::script::{Frames, Running, Script};
use super::{Heard, chat, messages};

/// The models that are listed; any other name is answered as well.
const MODELS: &[&str] = &["mock-large", "mock-small"];
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
/// What says which API a request means where both have the route.
const VERSION: &str = "anthropic-version";

/// An answer before it is sent.
pub(super) struct Answer {
    status: u16,
    headers: Vec<(HeaderName, HeaderValue)>,
    content_type: &'static str,
    content: Content,
}

enum Content {
    Whole(Bytes),
    Stream { frames: Frames, error: Bytes },
}

/// The answer to a request, and how it is to be sent.
pub(super) fn answer(heard: &Heard, mut wish: Wish) -> (Wish, Answer) {
    let path = heard.path.split('?').next().unwrap_or_default();
    let has_version = heard.headers.contains_key(VERSION);
    let api = match path {
        "/v1/messages" | "/v1/messages/count_tokens" => Api::Messages,
        _ if path.starts_with("/v1/models") && has_version => Api::Messages,
        _ => Api::Chat,
    };
    let body: Value = serde_json::from_slice(&heard.body).unwrap_or_default();
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    let turned = wish.take_model(model).and_then(|name| {
        let name = name.to_owned();
        wish.take_headers(&heard.headers)?;
        Ok(name)
    });
    let answer = match turned {
        Err(unknown) => error(api, 400, &unknown.to_string()),
        Ok(_) if wish.status.is_some_and(|it| it >= 300) => {
            error(api, wish.status.unwrap_or(500), "this status was asked for")
        }
        Ok(name) => route(api, path, heard, &body, &name, &wish).unwrap_or_else(|refused| refused),
    };
    (wish, answer)
}

fn route(api: Api, path: &str, heard: &Heard, body: &Value, name: &str, wish: &Wish) -> Result<Answer, Answer> {
    credential(api, heard)?;
    let refused = |why: String| error(api, 400, &why);
    match (&heard.method, path) {
        (&Method::POST, "/v1/chat/completions" | "/v1/messages") => {
            if !body.is_object() {
                return Err(error(api, 400, "We could not parse the JSON body of your request."));
            }
            let asked = asked::read(api, body, heard.header("anthropic-beta").unwrap_or_default()).map_err(refused)?;
            let said = say(&asked, name, wish);
            Ok(speak(api, said, &asked, wish))
        }
        (&Method::POST, "/v1/messages/count_tokens") => {
            let tokens = asked::count(body).map_err(refused)?;
            Ok(json(200, &serde_json::json!({ "input_tokens": wish.input.unwrap_or(tokens) })))
        }
        (&Method::GET, "/v1/models") => Ok(json(
            200,
            &match api {
                Api::Chat => chat::models(MODELS),
                Api::Messages => messages::models(MODELS),
            },
        )),
        (&Method::GET, path) => {
            let id = path.strip_prefix("/v1/models/").filter(|it| MODELS.contains(it));
            let id = id.ok_or_else(|| error(api, 404, "The model does not exist"))?;
            Ok(json(
                200,
                &match api {
                    Api::Chat => chat::model(id),
                    Api::Messages => messages::model(id),
                },
            ))
        }
        _ => Err(error(api, 404, "Not found")),
    }
}

fn speak(api: Api, said: Said, asked: &Asked, wish: &Wish) -> Answer {
    if !asked.stream {
        return json(
            wish.status.unwrap_or(200),
            &match api {
                Api::Chat => chat::whole(&said, wish),
                Api::Messages => messages::whole(&said, wish),
            },
        );
    }
    let (frames, error) = match api {
        Api::Chat => (chat::stream(said, asked, wish), chat::error_frame()),
        Api::Messages => (messages::stream(said, wish), messages::error_frame()),
    };
    let silence = Bytes::from_static(b": nothing yet\n");
    let silence = std::iter::repeat_n(silence, usize::try_from(wish.lines).unwrap_or(usize::MAX));
    let frames: Frames = Box::new(silence.chain(frames));
    let content = Content::Stream { frames, error };
    Answer { status: wish.status.unwrap_or(200), headers: Vec::new(), content_type: EVENTS, content }
}

/// Any credential will do, in the place where the API has it; an answer of no quotes it, as providers do.
fn credential(api: Api, heard: &Heard) -> Result<(), Answer> {
    let bearer = heard.header("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let given = match api {
        Api::Chat => bearer,
        Api::Messages => heard.header("x-api-key").or(bearer),
    };
    match given {
        None => Err(error(api, 401, "You didn't provide an API key")),
        Some(key) if key.contains("invalid") => Err(error(api, 401, &format!("Incorrect API key provided: {key}"))),
        Some(_) if api == Api::Messages && !heard.headers.contains_key(VERSION) => {
            Err(error(api, 400, "anthropic-version: header is required"))
        }
        Some(_) => Ok(()),
    }
}

fn json(status: u16, body: &Value) -> Answer {
    let content = Content::Whole(Bytes::from(body.to_string()));
    Answer { status, headers: Vec::new(), content_type: JSON, content }
}

/// The kinds of errors, as either API names them.
const KINDS: &[(u16, &str, &str)] = &[
    (400, "invalid_request_error", "invalid_request_error"),
    (401, "invalid_request_error", "authentication_error"),
    (403, "permission_error", "permission_error"),
    (404, "invalid_request_error", "not_found_error"),
    (413, "invalid_request_error", "request_too_large"),
    (422, "invalid_request_error", "invalid_request_error"),
    (429, "rate_limit_exceeded", "rate_limit_error"),
    (529, "server_error", "overloaded_error"),
];

fn error(api: Api, status: u16, message: &str) -> Answer {
    let known = KINDS.iter().find(|it| it.0 == status);
    let (of_chat, of_messages) = known.map_or(("server_error", "api_error"), |it| (it.1, it.2));
    let code = match status {
        401 => Some("invalid_api_key"),
        404 => Some("model_not_found"),
        _ => None,
    };
    json(
        status,
        &match api {
            Api::Chat => chat::error(of_chat, message, code),
            Api::Messages => messages::error(of_messages, message),
        },
    )
}

impl Answer {
    /// The response, as the knobs have it.
    pub(super) fn into_response(self, wish: &Wish, running: Running) -> Response<Script> {
        let Self { status, mut headers, mut content_type, mut content } = self;
        if let Some(body) = wish.body {
            let (text, kind) = match body {
                knobs::Body::Html => ("<!doctype html><title>502 Bad Gateway</title>", "text/html"),
                knobs::Body::Empty => ("", content_type),
                knobs::Body::Garbage => ("{\"id\": \"chatcmpl-", JSON),
                knobs::Body::Other => ("[\"nothing of the kind\"]", JSON),
            };
            (content, content_type) = (Content::Whole(Bytes::from_static(text.as_bytes())), kind);
        }
        if let Some(name) = wish.content_type {
            content_type = name;
        }
        if (300..400).contains(&status) {
            headers.push((LOCATION, HeaderValue::from_static("/v1/models")));
        }
        if let Some(value) = wish.retry_after.as_deref().and_then(|it| HeaderValue::from_str(it).ok()) {
            headers.push((RETRY_AFTER, value));
        }
        if wish.gzip {
            headers.push((CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        }
        let body = match content {
            Content::Whole(body) => {
                let body = if wish.gzip { packed(&body) } else { body };
                Script::whole(body, wish, running)
            }
            Content::Stream { frames, .. } if wish.gzip => {
                Script::whole(packed(&frames.flatten().collect::<Vec<u8>>()), wish, running)
            }
            Content::Stream { frames, error } => Script::stream(frames, error, wish, running),
        };
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let to = response.headers_mut();
        to.insert("x-request-id", HeaderValue::from_static("req_mock"));
        to.insert("request-id", HeaderValue::from_static("req_mock"));
        if !content_type.is_empty() {
            to.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        to.extend(headers);
        response
    }
}

/// Bytes in the format of gzip (RFC 1952), stored as they are (RFC 1951, section 3.2.4).
fn packed(bytes: &[u8]) -> Bytes {
    const BLOCK_BYTES_MAX: usize = u16::MAX as usize;
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let blocks = bytes.len().div_ceil(BLOCK_BYTES_MAX).max(1);
    for place in 0..blocks {
        let block = bytes.chunks(BLOCK_BYTES_MAX).nth(place).unwrap_or_default();
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.push(u8::from(place + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(bytes).to_le_bytes());
    out.extend(u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or(u32::MAX).to_le_bytes());
    Bytes::from(out)
}

/// The check sum of gzip (RFC 1952, section 8).
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}
