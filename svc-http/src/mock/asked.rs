//! What a request asks for, read from either API; what the API itself would refuse is refused.

use std::collections::BTreeSet;

use serde_json::Value;

/// The two APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Messages,
}

/// A request, as far as the answer depends on it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) choices: u64,
    pub(super) output_max: Option<u64>,
    pub(super) thinks: bool,
    /// The text of the user's last message.
    pub(super) last: String,
    pub(super) tools: Vec<Tool>,
    pub(super) call: Call,
    /// The schema of a JSON answer.
    pub(super) schema: Option<Value>,
    /// Tokens of the request's text: four bytes are one.
    pub(super) input: u64,
    pub(super) cache: Option<Cache>,
}

/// A tool that may be called.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) schema: Value,
}

/// Which tools the answer calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    None,
    One(usize),
    Two,
}

/// How long what is marked is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    Short,
    Long,
}

/// The beta of messages with the role `system`.
const SYSTEM_WITHIN: &str = "mid-conversation-system-";
/// What the API says without it.
const UNEXPECTED_SYSTEM: &str = "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.";

/// Reads a request; `betas` are what of the API it asks for that is new.
///
/// # Errors
/// A sentence on what the API would refuse.
pub(super) fn read(api: Api, body: &Value, betas: &str) -> Result<Asked, String> {
    let members = body.as_object().ok_or("the body has to be a JSON object")?;
    if text(body, "model").is_none_or(str::is_empty) {
        return Err("you must provide a model parameter".to_owned());
    }
    let messages = list(body, "messages");
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    match api {
        Api::Chat => check_chat(messages)?,
        Api::Messages => check_messages(messages, betas.contains(SYSTEM_WITHIN))?,
    }
    let tools = tools(api, body)?;
    let last = last_words(messages);
    let format = body.get("response_format").or_else(|| body.pointer("/output_config/format"));
    let mut asked = Asked {
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or_default(),
        include_usage: body.pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or_default(),
        choices: 1,
        output_max: ["max_completion_tokens", "max_tokens"].iter().find_map(|it| body.get(it)?.as_u64()),
        thinks: thinks(body),
        call: Call::None,
        schema: format.and_then(wanted_schema),
        input: (words_of(body) / 4).max(1),
        cache: cache(body),
        last,
        tools,
    };
    if api == Api::Chat {
        asked.choices = body
            .get("n")
            .map_or(Some(1), Value::as_u64)
            .filter(|it| (1..=128).contains(it))
            .ok_or("n is not from 1 to 128")?;
    } else if !members.contains_key("max_tokens") {
        return Err("max_tokens: field required".to_owned());
    }
    asked.call = call(api, body, &asked)?;
    Ok(asked)
}

/// Tokens of input alone, for `count_tokens`.
pub(super) fn count(body: &Value) -> Result<u64, String> {
    if list(body, "messages").is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    Ok((words_of(body) / 4).max(1))
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn check_chat(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let role = text(message, "role").unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return Err(
                "an assistant message with `tool_calls` must be followed by tool messages for each `tool_call_id`"
                    .to_owned(),
            );
        }
        match role {
            "assistant" => {
                open = list(message, "tool_calls").iter().filter_map(|it| text(it, "id")).collect();
            }
            "tool" => {
                let id = text(message, "tool_call_id").unwrap_or_default();
                if !open.remove(id) {
                    return Err(
                        "messages with role `tool` must be a response to a preceding message with `tool_calls`"
                            .to_owned(),
                    );
                }
            }
            "developer" | "system" | "user" | "function" => {}
            _ => {
                return Err(format!(
                    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
                ));
            }
        }
        let said = message.get("content").is_some_and(|it| !it.is_null());
        if !said && role != "assistant" {
            return Err("Missing required parameter: 'messages.content'".to_owned());
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err("an assistant message with `tool_calls` must be followed by tool messages".to_owned())
    }
}

fn check_messages(messages: &[Value], takes_system: bool) -> Result<(), String> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let role = text(message, "role").unwrap_or_default();
        if role == "system" && !takes_system {
            return Err(UNEXPECTED_SYSTEM.to_owned());
        }
        if !["user", "assistant", "system"].contains(&role) {
            return Err(format!("messages: Unexpected role \"{role}\""));
        }
        let blocks = list(message, "content");
        if blocks.is_empty() && text(message, "content").is_none_or(str::is_empty) {
            return Err("messages: content must not be empty".to_owned());
        }
        if let Some(odd) = blocks.iter().find(|it| text(it, "type").is_none()) {
            return Err(format!("messages.content: a block without a type: {odd}"));
        }
        let of = |kind: &'static str, id: &'static str| {
            blocks
                .iter()
                .filter(move |it| text(it, "type") == Some(kind))
                .map(move |it| text(it, id).unwrap_or_default())
        };
        for id in of("tool_result", "tool_use_id") {
            if !open.remove(id) {
                return Err(format!("messages: unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
            }
        }
        if !open.is_empty() {
            return Err("messages: `tool_use` ids were found without `tool_result` blocks immediately after".to_owned());
        }
        open = of("tool_use", "id").collect();
    }
    if open.is_empty() { Ok(()) } else { Err("messages: `tool_use` without `tool_result`".to_owned()) }
}

fn tools(api: Api, body: &Value) -> Result<Vec<Tool>, String> {
    let mut found = Vec::new();
    for tool in list(body, "tools") {
        let (name, schema) = match api {
            Api::Chat if text(tool, "type") == Some("function") => {
                (tool.pointer("/function/name"), tool.pointer("/function/parameters"))
            }
            Api::Messages if tool.get("input_schema").is_some() => (tool.get("name"), tool.get("input_schema")),
            // Tools of the server's own are called by no client.
            Api::Messages if tool.get("type").is_some_and(|it| it != "custom") => continue,
            Api::Chat | Api::Messages => return Err(format!("tools: a tool that is none: {tool}")),
        };
        let name = name.and_then(Value::as_str).ok_or("tools: a tool without a name")?.to_owned();
        let most = if api == Api::Chat { 64 } else { 128 };
        if name.chars().count() > most {
            return Err(format!("tools: a name has at most {most} characters"));
        }
        found.push(Tool { name, schema: schema.cloned().unwrap_or_default() });
    }
    Ok(found)
}

/// Whom the request has called: by its choice, or because the last words of the user are about tools.
fn call(api: Api, body: &Value, asked: &Asked) -> Result<Call, String> {
    if asked.tools.is_empty() {
        return Ok(Call::None);
    }
    let choice = body.get("tool_choice");
    let kind = choice.and_then(|it| it.as_str().or_else(|| text(it, "type"))).unwrap_or("auto");
    let has = |word: &str| asked.last.split(|it: char| !it.is_alphanumeric()).any(|it| it.eq_ignore_ascii_case(word));
    let asks = has("tool") || has("tools");
    let parallel = match api {
        Api::Chat => body.get("parallel_tool_calls").and_then(Value::as_bool).unwrap_or(true),
        Api::Messages => !choice.and_then(|it| it.get("disable_parallel_tool_use")?.as_bool()).unwrap_or_default(),
    };
    let answered = body.pointer("/messages").and_then(Value::as_array).and_then(|it| it.last()).is_some_and(is_result);
    match kind {
        "none" => Ok(Call::None),
        "function" | "tool" => {
            let name =
                choice.and_then(|it| it.pointer("/function/name").or_else(|| it.get("name"))).and_then(Value::as_str);
            let place = asked.tools.iter().position(|it| Some(it.name.as_str()) == name);
            place.map(Call::One).ok_or_else(|| "tool_choice: the tool is not one of `tools`".to_owned())
        }
        "auto" if answered || !asks => Ok(Call::None),
        "auto" | "required" | "any" if parallel && has("parallel") => Ok(Call::Two),
        "auto" | "required" | "any" => Ok(Call::One(0)),
        _ => Err(format!("tool_choice: `{kind}` is none")),
    }
}

fn is_result(message: &Value) -> bool {
    text(message, "role") == Some("tool")
        || list(message, "content").iter().any(|it| text(it, "type") == Some("tool_result"))
}

fn thinks(body: &Value) -> bool {
    let thinking = body.pointer("/thinking/type").and_then(Value::as_str);
    let effort = text(body, "reasoning_effort");
    matches!(thinking, Some("enabled" | "adaptive")) || effort.is_some_and(|it| it != "none")
}

/// The text of the last message that has one of the user's.
fn last_words(messages: &[Value]) -> String {
    let words = |message: &Value| -> Option<String> {
        if text(message, "role") != Some("user") {
            return None;
        }
        if let Some(words) = text(message, "content") {
            return Some(words.to_owned());
        }
        let words: Vec<&str> = list(message, "content").iter().filter_map(|it| text(it, "text")).collect();
        (!words.is_empty()).then(|| words.join("\n"))
    };
    messages.iter().rev().find_map(words).unwrap_or_default()
}

/// Bytes of all texts of messages, system and tools.
fn words_of(body: &Value) -> u64 {
    ["messages", "system", "tools"].iter().filter_map(|it| body.get(it)).map(bytes_of).sum()
}

fn bytes_of(value: &Value) -> u64 {
    match value {
        Value::String(text) => u64::try_from(text.len()).unwrap_or(u64::MAX),
        Value::Array(all) => all.iter().map(bytes_of).sum(),
        Value::Object(all) => all.values().map(bytes_of).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// The longest time that a mark asks for.
fn cache(value: &Value) -> Option<Cache> {
    let one = |it: &Value| match it {
        Value::Object(members) => {
            let mark = members.get("cache_control").filter(|it| it.is_object());
            let own = mark.map(|it| if text(it, "ttl") == Some("1h") { Cache::Long } else { Cache::Short });
            longer(own, members.values().map(cache).fold(None, longer))
        }
        Value::Array(all) => all.iter().map(cache).fold(None, longer),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    one(value)
}

fn longer(one: Option<Cache>, other: Option<Cache>) -> Option<Cache> {
    match (one, other) {
        (Some(Cache::Long), _) | (_, Some(Cache::Long)) => Some(Cache::Long),
        (one, other) => one.or(other),
    }
}

/// The schema that a JSON answer has to keep to; any object where none is named.
fn wanted_schema(format: &Value) -> Option<Value> {
    match text(format, "type") {
        Some("json_object") => Some(Value::Object(serde_json::Map::new())),
        Some("json_schema") => {
            Some(format.pointer("/json_schema/schema").or_else(|| format.get("schema")).cloned().unwrap_or_default())
        }
        _ => None,
    }
}
