//! What MCP servers behind this one send.

use http::{HeaderName, HeaderValue};
use svc_core::state::edge::{MCP_DEFINITIONS_BYTES_MAX, MCP_NAME_MAX, MCP_TOOLS_MAX};
use svc_core::value::canonical::canonical;
use svc_core::value::json::Json;
use svc_http::tool_server::reading::{self, Message};

use super::{inputs, line_and_rest};

const ID: i64 = 7;

/// Of a message only an answer to what was asked is a result, and an object; a notification is one that no reader takes for an
/// answer; both are handed on as they came.
///
/// # Panics
/// Where they are not.
pub fn message(data: &[u8]) {
    let Some(read) = reading::message(data, ID.unsigned_abs()) else { return };
    let whole = std::str::from_utf8(data).expect("what is heard is text");
    match read {
        Message::Error(_) => {}
        Message::Result(text) => {
            assert!(whole.contains(&text) && text.starts_with('{') && text.ends_with('}'));
            if let Ok(message) = Json::parse(data) {
                assert_eq!(message.get("id").and_then(Json::as_int), Some(ID));
                assert!(message.get("method").is_none_or(Json::is_null));
            }
        }
        Message::Note(text) => {
            assert_eq!(whole.trim(), text);
            if let Ok(message) = Json::parse(data) {
                assert!(message.get("method").and_then(Json::as_str).is_some());
                assert!(message.get("id").is_none_or(Json::is_null));
            }
        }
    }
}

/// Messages of every kind.
#[must_use]
pub fn message_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\u00e9"}],"isError":false}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":{"supported":["2025-11-25"]}}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
        r#" {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}} "#,
        r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#,
        r#"{"id":7,"id":8,"method":null,"result":{"a":[[[[]]]]}}"#,
    ])
}

/// What is kept of a list is small, canonical, and read the same again, so that whoever accepts it has seen what a model is
/// told; what goes into headers can stand there. The first line is the arguments of a call.
///
/// # Panics
/// Where it is not.
pub fn list(data: &[u8]) {
    let (line, rest) = line_and_rest(data);
    let arguments = Json::parse(line).unwrap_or(Json::Null);
    let Some(page) = std::str::from_utf8(rest).ok().and_then(|it| reading::page(it, &arguments)) else { return };
    assert!(page.tools.len() <= MCP_TOOLS_MAX);
    assert!(page.tools.values().map(|it| it.len()).sum::<usize>() <= MCP_DEFINITIONS_BYTES_MAX);
    assert!(page.next.is_none_or(|it| it.len() <= 4_096));
    for (name, text) in &page.tools {
        let definition = Json::parse(text.as_bytes()).expect("a definition is JSON");
        assert_eq!(canonical(&definition), **text);
        assert_eq!(definition.get("name").and_then(Json::as_str), Some(&**name));
        assert!(definition.get("inputSchema").and_then(Json::as_object).is_some());
        assert!(definition.get("_meta").is_none() && definition.get("icons").is_none());
        // Beyond what an action's name holds a tool is listed as held, as only its length is in the way.
        let is_of_name = |it: u8| it.is_ascii_alphanumeric() || b"_.-".contains(&it);
        assert!((1..=MCP_NAME_MAX).contains(&name.len()) && name.bytes().all(is_of_name), "{name}");
    }
    for (name, value) in &page.headers {
        assert!(name.starts_with("mcp-param-") && HeaderName::from_bytes(name.as_bytes()).is_ok(), "{name}");
        assert!(HeaderValue::from_str(value).is_ok() && value.is_ascii(), "{value:?}");
    }
    let texts: Vec<&str> = page.tools.values().map(|it| &**it).collect();
    let again = reading::page(&format!("{{\"tools\":[{}]}}", texts.join(",")), &arguments).expect("it is read again");
    assert_eq!(again.tools, page.tools);
    assert_eq!(again.headers, page.headers);
}

/// Lists that are read to their end.
#[must_use]
pub fn list_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "{\"id\":\"\u{e9}\",\"n\":{\"x\":3}}\n{\"tools\":[{\"name\":\"read_one\",\"description\":\"Reads.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\",\"x-mcp-header\":\"Id\"},\"n\":{\"properties\":{\"x\":{\"x-mcp-header\":\"N\"}}}}},\"annotations\":{\"readOnlyHint\":true},\"_meta\":{\"a\":1},\"icons\":[]}],\"nextCursor\":\"n\"}",
        "{}\n{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\",\"minimum\":1.50,\"maximum\":1e15}},{\"name\":\"a\",\"inputSchema\":{}},{\"name\":\"__proto__\",\"inputSchema\":{\"type\":\"object\",\"__proto__\":{}}},{\"name\":7},null],\"nextCursor\":null}",
        // One byte longer than a name that can be called, as long as a name may be, and longer.
        &format!(
            "{{}}\n{{\"tools\":[{}]}}",
            [101, MCP_NAME_MAX, MCP_NAME_MAX + 1]
                .map(|it| format!(r#"{{"name":"{}","inputSchema":{{"type":"object"}}}}"#, "n".repeat(it)))
                .join(",")
        ),
    ])
}
