//! JSON-RPC 2.0 as MCP has it, in both eras: the one that begins with `initialize`, and the stateless one in which every
//! request says its version.
//!
//! **Invariant:** an id is told back as it was sent; what has none is answered with nothing.

mod tools;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::value::json::{Json, Number};

pub use self::tools::{Tool, WINDOWS, definition};
use crate::headers::single;

/// The stateless revision.
pub const MODERN: &str = "2026-07-28";
/// Revisions that begin with `initialize`, the latest first.
pub const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];
/// The first revision. It has no transport over one address, and there are servers that speak it there all the same: it is taken
/// of them, and not offered to clients.
const FIRST: &str = "2024-11-05";
/// Tools of one page.
const PAGE: usize = 50;
/// For how long a list may be kept, in milliseconds.
const TTL_MS: u64 = 300_000;
/// Bytes of a token by which progress is to be told.
const TOKEN_BYTES_MAX: usize = 256;
/// What a cursor begins with before it is encoded.
const CURSOR: &str = "tools:";

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a request without handshake says its version.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where it says what its client offers.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// A fault of a message: an HTTP status, a JSON-RPC code, what is said of it and what is told beside.
#[derive(Debug)]
pub struct Fault {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: i32,
    /// What is wrong.
    pub message: String,
    /// What to send instead.
    pub fix: &'static str,
    /// Further members of `error.data`.
    pub more: Value,
}

impl Fault {
    fn new(status: u16, code: i32, message: impl Into<String>, fix: &'static str) -> Self {
        Self { status, code, message: message.into(), fix, more: json!({}) }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(
            400,
            -32_600,
            message,
            "Send one JSON-RPC 2.0 message: `jsonrpc`, `method`, and an `id` for an answer.",
        )
    }

    /// Parameters that a method does not take.
    #[must_use]
    pub fn params(message: impl Into<String>) -> Self {
        Self::new(200, -32_602, message, "Send the parameters that `tools/list` describes.")
    }
}

/// What was sent.
#[derive(Debug)]
pub enum Message {
    /// Something that is not answered.
    Silent,
    /// The same: the call of the message of this id is called off.
    Cancelled(Value),
    /// A request.
    Request(Request),
}

/// A request.
#[derive(Debug)]
pub struct Request {
    /// Its id, as it was sent.
    pub id: Value,
    /// Its era.
    pub era: Era,
    /// What is asked.
    pub asked: Asked,
}

/// How client and server speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`.
    Legacy,
    /// Every request for itself.
    Modern,
}

/// What is asked.
#[derive(Debug)]
pub enum Asked {
    /// To begin, in this version.
    Initialize(String),
    /// What this server can do.
    Discover,
    /// Whether it is there.
    Ping,
    /// Its tools, from this place on.
    List(usize),
    /// To call a tool.
    Call(ToolCall),
}

/// A call of a tool.
#[derive(Debug)]
pub struct ToolCall {
    /// Its name, as it was sent.
    pub name: String,
    /// Its arguments: an object.
    pub arguments: Json,
    /// By what its progress is to be told, where that is wanted: a string or a whole number.
    pub progress: Option<Json>,
}

/// Reads a message. Where it is wrong, its id comes with the fault.
///
/// # Errors
/// [`Fault`], with the id where it could be read.
pub fn read(headers: &HeaderMap, json: Json) -> Result<Message, (Value, Fault)> {
    let none = |fault| (Value::Null, fault);
    if json.as_list().is_some() {
        return Err(none(Fault::invalid("batches are not taken")));
    }
    if json.as_object().is_none() || json.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return Err(none(Fault::invalid("the message must be an object with `jsonrpc` `2.0`")));
    }
    let id = id_of(&json).map_err(none)?;
    let is_answer = json.get("method").is_none() && (json.get("result").is_some() || json.get("error").is_some());
    if is_answer && id.is_some() {
        return Ok(Message::Silent);
    }
    let told = id.clone().unwrap_or(Value::Null);
    let method = match json.get("method").map(Json::as_str) {
        Some(Some(method)) if !method.is_empty() => method.to_owned(),
        _ => return Err((told, Fault::invalid("`method` must be a string"))),
    };
    let params = json.get("params");
    if params.is_some_and(|it| it.as_object().is_none()) {
        return Err((told, Fault { status: 400, ..Fault::params("`params` must be an object") }));
    }
    let empty = Json::Object(Vec::new());
    let params = params.unwrap_or(&empty);
    let era = version(headers, &method, params).and_then(|era| {
        if era == Era::Modern {
            mirrored(headers, &method, params)?;
        }
        Ok(era)
    });
    let Some(id) = id else {
        let era = era.map_err(none)?;
        // Whoever speaks without handshake calls off by the end of the connection.
        let is_cancelled = method == "notifications/cancelled" && era == Era::Legacy;
        let cancelled = params.get("requestId").filter(|_| is_cancelled).and_then(|it| id_from(it).ok());
        return Ok(cancelled.map_or(Message::Silent, Message::Cancelled));
    };
    let asked = era.and_then(|era| asked(&method, params, era).map(|asked| (era, asked)));
    let (era, asked) = asked.map_err(|fault| (told, fault))?;
    Ok(Message::Request(Request { id, era, asked }))
}

/// The era of a request, by what it says of itself in its parameters and in its header.
fn version(headers: &HeaderMap, method: &str, params: &Json) -> Result<Era, Fault> {
    let header = one(headers, &PROTOCOL_VERSION)?;
    let meta = params.get("_meta");
    let own = meta.and_then(|it| it.get(META_VERSION));
    // One that speaks of itself as stateless has no handshake to begin.
    if method == "initialize" && own.is_none() {
        return Ok(Era::Legacy);
    }
    let modern = own.is_some() || header == Some(MODERN) || method == "server/discover";
    if !modern {
        return match header {
            Some(version) if !LEGACY.contains(&version) => Err(unsupported(version)),
            _ => Ok(Era::Legacy),
        };
    }
    let capabilities = meta.and_then(|it| it.get(META_CAPABILITIES)).filter(|it| it.as_object().is_some());
    let (Some(own), Some(_)) = (own.and_then(Json::as_str), capabilities) else {
        let why = format!("`params._meta` must hold `{META_VERSION}` and `{META_CAPABILITIES}`");
        return Err(Fault { status: 400, ..Fault::params(why) });
    };
    if header != Some(own) {
        return Err(mismatch(PROTOCOL_VERSION.as_str()));
    }
    if own != MODERN {
        return Err(unsupported(own));
    }
    Ok(Era::Modern)
}

fn unsupported(version: &str) -> Fault {
    let supported: Vec<&str> = std::iter::once(MODERN).chain(LEGACY).collect();
    let fault =
        Fault::new(400, -32_022, "this version is not spoken here", "Speak one of the versions in `supported`.");
    Fault { more: json!({ "supported": supported, "requested": version }), ..fault }
}

fn mismatch(header: &str) -> Fault {
    Fault::new(
        400,
        -32_020,
        format!("the header `{header}` is missing or differs from the body"),
        "Send `mcp-protocol-version`, `mcp-method` and, where a tool is called, `mcp-name` as the body has them.",
    )
}

fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Fault> {
    let sent = single(headers, name).map_err(|_| mismatch(name.as_str()))?;
    sent.map(|it| it.to_str().map(str::trim).map_err(|_| mismatch(name.as_str()))).transpose()
}

/// That the headers say what the body says: whoever routes by them and whoever reads the body see one request.
fn mirrored(headers: &HeaderMap, method: &str, params: &Json) -> Result<(), Fault> {
    if one(headers, &METHOD)? != Some(method) {
        return Err(mismatch(METHOD.as_str()));
    }
    if method == "tools/call" {
        let name = params.get("name").and_then(Json::as_str);
        let sent = one(headers, &NAME)?.map(plain);
        if name.is_some() && sent.as_deref() != name {
            return Err(mismatch(NAME.as_str()));
        }
    }
    Ok(())
}

/// A header's text; one that could not be written as it is comes as `=?base64?…?=`.
fn plain(text: &str) -> String {
    let encoded = text.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?="));
    let decoded = encoded.and_then(|it| STANDARD.decode(it).ok()).and_then(|it| String::from_utf8(it).ok());
    decoded.unwrap_or_else(|| text.to_owned())
}

fn asked(method: &str, params: &Json, era: Era) -> Result<Asked, Fault> {
    match (method, era) {
        ("initialize", Era::Legacy) => {
            let version = params.get("protocolVersion").and_then(Json::as_str);
            version
                .map(|it| Asked::Initialize(it.to_owned()))
                .ok_or_else(|| Fault::params("`params.protocolVersion` must be a string"))
        }
        ("server/discover", Era::Modern) => Ok(Asked::Discover),
        ("ping", Era::Legacy) => Ok(Asked::Ping),
        ("tools/list", _) => cursor(params.get("cursor")).map(Asked::List),
        ("tools/call", _) => call(params),
        _ => {
            let status = if era == Era::Modern { 404 } else { 200 };
            let fix = "Use `tools/list` or `tools/call`; this server has tools and nothing else.";
            Err(Fault::new(status, -32_601, format!("there is no method `{}`", shortened(method)), fix))
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(80).collect()
}

fn cursor(sent: Option<&Json>) -> Result<usize, Fault> {
    let Some(sent) = sent.filter(|it| !it.is_null()) else { return Ok(0) };
    let decoded = sent.as_str().and_then(|it| STANDARD.decode(it).ok()).and_then(|it| String::from_utf8(it).ok());
    let place = decoded.as_deref().and_then(|it| it.strip_prefix(CURSOR)).and_then(|it| it.parse::<usize>().ok());
    place.ok_or_else(no_cursor)
}

fn no_cursor() -> Fault {
    Fault::params("`params.cursor` is no cursor of this list")
}

/// What a name of no tool is answered.
#[must_use]
pub fn unknown_tool(name: &str) -> Fault {
    Fault::params(format!("there is no tool `{}`", shortened(name)))
}

fn call(params: &Json) -> Result<Asked, Fault> {
    let name =
        params.get("name").and_then(Json::as_str).ok_or_else(|| Fault::params("`params.name` must be a string"))?;
    let arguments = match params.get("arguments") {
        None | Some(Json::Null) => Json::Object(Vec::new()),
        Some(arguments @ Json::Object(_)) => arguments.clone(),
        Some(_) => return Err(Fault::params("`params.arguments` must be an object")),
    };
    let progress = params.get("_meta").and_then(|it| it.get("progressToken"));
    if progress.and_then(Json::as_str).is_some_and(|it| it.len() > TOKEN_BYTES_MAX) {
        let most = format!("`params._meta.progressToken` must have at most {TOKEN_BYTES_MAX} bytes");
        return Err(Fault { fix: "Send a shorter token, or a number.", ..Fault::params(most) });
    }
    let progress = progress.filter(|it| matches!(it, Json::Text(_) | Json::Number(Number::Int(_)))).cloned();
    Ok(Asked::Call(ToolCall { name: name.to_owned(), arguments, progress }))
}

fn id_of(message: &Json) -> Result<Option<Value>, Fault> {
    message.get("id").map(id_from).transpose()
}

fn id_from(sent: &Json) -> Result<Value, Fault> {
    match sent {
        Json::Text(id) => Ok(json!(id)),
        Json::Number(Number::Int(id)) => Ok(json!(id)),
        _ => Err(Fault::invalid("`id` must be a string or a whole number")),
    }
}

/// The id of the message in a body; null where none can be read (JSON-RPC 2.0, part 5).
#[must_use]
pub fn id_in(body: &[u8]) -> Value {
    let id = Json::parse(body).ok().and_then(|it| id_of(&it).ok().flatten());
    id.unwrap_or(Value::Null)
}

/// The revision with a handshake that an MCP server names, where it is known here.
#[must_use]
pub fn spoken_by_server(version: &str) -> Option<&'static str> {
    LEGACY.into_iter().chain([FIRST]).find(|it| *it == version)
}

fn server() -> Value {
    json!({ "name": "svc", "title": "svc: the gate an agent asks before it acts", "version": env!("CARGO_PKG_VERSION") })
}

/// What a client is told of this server's own tools.
pub const INSTRUCTIONS: &str = "Before you do something that costs money, shares data or changes a system, call `authorize_action` and follow its decision: on `allow` go on and report with `settle_action`; on `approval_required` show the person the link and wait with `check_action_status`; on `deny` do not do it and read `explain_decision`.";

/// What `initialize` answers.
#[must_use]
pub fn initialized(version: &str, instructions: &str) -> Value {
    let spoken = LEGACY.into_iter().find(|it| *it == version).unwrap_or(LEGACY[0]);
    json!({
        "protocolVersion": spoken,
        "capabilities": { "tools": {} },
        "serverInfo": server(),
        "instructions": instructions,
    })
}

/// What `server/discover` answers.
#[must_use]
pub fn discovered(instructions: &str) -> Value {
    let versions: Vec<&str> = std::iter::once(MODERN).chain(LEGACY).collect();
    json!({
        "supportedVersions": versions,
        "capabilities": { "tools": {} },
        "instructions": instructions,
        "ttlMs": TTL_MS,
        "cacheScope": "private",
    })
}

/// The tools from a place on, of `count` that there are.
///
/// # Errors
/// The place is behind the last one.
pub fn listed(all: impl Iterator<Item = Value>, count: usize, from: usize, era: Era) -> Result<Value, Fault> {
    if from > 0 && from >= count {
        return Err(no_cursor());
    }
    let tools: Vec<Value> = all.skip(from).take(PAGE).collect();
    let next = from.saturating_add(tools.len());
    let mut result = json!({ "tools": tools });
    if next < count {
        super::put(&mut result, "nextCursor", json!(STANDARD.encode(format!("{CURSOR}{next}"))));
    }
    if era == Era::Modern {
        super::put(&mut result, "ttlMs", json!(TTL_MS));
        super::put(&mut result, "cacheScope", json!("private"));
    }
    Ok(result)
}

/// What a tool has given.
#[must_use]
pub fn given(structured: Value) -> Value {
    let text = structured.to_string();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": structured, "isError": false })
}

/// What a tool was refused with: the text holds everything that helps.
#[must_use]
pub fn refused(refusal: &Refusal, docs: &str) -> Value {
    let mut text = format!("{}: {}", refusal.type_(), refusal.message());
    let named: Vec<&str> = refusal.errors().iter().map(|it| it.field.as_deref().unwrap_or("arguments")).collect();
    if !named.is_empty() {
        text.push_str(&format!("\nerrors: {}", named.join(", ")));
    }
    let members = [("didYouMean", refusal.nearest()), ("reason", refusal.reason()), ("hold", refusal.hold())];
    for (name, value) in members.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        text.push_str(&format!("\n{name}: {value}"));
    }
    if let Some(fix) = refusal.fix() {
        text.push_str(&format!("\nfix: {fix}"));
    }
    text.push_str(&format!("\ndocs: {docs}#{}", refusal.type_()));
    json!({ "content": [{ "type": "text", "text": text }], "isError": true })
}

/// The answer to a request.
#[must_use]
pub fn answered(id: &Value, era: Era, mut result: Value) -> Value {
    if era == Era::Modern {
        super::put(&mut result, "resultType", json!("complete"));
        let mut meta = result.get("_meta").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
        super::put(&mut meta, META_SERVER, server());
        super::put(&mut result, "_meta", meta);
    }
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to a message that was wrong.
#[must_use]
pub fn faulty(id: &Value, fault: &Fault, request_id: &str, docs: &str) -> Value {
    let mut data = fault.more.clone();
    for (name, value) in [
        ("type", "invalid_request".to_owned()),
        ("fix", fault.fix.to_owned()),
        ("docs", format!("{docs}#invalid_request")),
        ("requestId", request_id.to_owned()),
    ] {
        super::put(&mut data, name, json!(value));
    }
    let mut error = json!({ "code": fault.code, "message": fault.message, "data": data });
    if fault.status >= 400 {
        // Where the status alone says that it is an error, it is this service's own as well.
        for (name, value) in data.as_object().into_iter().flatten() {
            super::put(&mut error, name, value.clone());
        }
    }
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
