//! What an MCP server tells of its tools, as far as a person looked at it: what nobody looks at is not handed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use svc_core::state::edge::{MCP_DEFINITIONS_BYTES_MAX, MCP_NAME_MAX, MCP_TOOLS_MAX};
use svc_core::value::canonical::canonical;
use svc_core::value::json::{Json, Number};

use super::message::header_text;
use super::trouble::Trouble;

/// Members of a definition that are not for the model: they are not compared, and so not handed on.
const LEFT_OUT: [&str; 2] = ["_meta", "icons"];
/// Bytes of a list with all its pages that are read; icons and the like are in it.
const LIST_BYTES_MAX: usize = 8 * MCP_DEFINITIONS_BYTES_MAX;
/// Bytes of the place where the next page begins.
const CURSOR_BYTES_MAX: usize = 4_096;
/// How deep a parameter that is mirrored in a header may lie.
const HEADER_DEPTH_MAX: usize = 8;

/// A tool.
#[derive(Debug)]
pub(crate) struct Definition {
    /// Its name.
    pub(crate) name: Box<str>,
    /// Its definition.
    pub(crate) value: Value,
    /// The same as canonical JSON.
    pub(crate) text: Box<str>,
    /// The parameters that are mirrored in headers: the header and where they are.
    mirrored: Vec<(Box<str>, Vec<Box<str>>)>,
}

/// The tools of a server, by name.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    tools: BTreeMap<Box<str>, Arc<Definition>>,
    bytes: usize,
    /// Bytes of the pages.
    read: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(default)]
    next_cursor: Option<String>,
}

impl Definitions {
    /// The tool of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.tools.get(name)
    }

    /// All of them, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.tools.values()
    }

    /// Their canonical texts by name.
    pub(crate) fn texts(&self) -> BTreeMap<Box<str>, Box<str>> {
        self.tools.iter().map(|(name, it)| (name.clone(), it.text.clone())).collect()
    }

    /// Takes a page of a list and gives where the next one begins. What is no tool is left out, and so is whatever comes behind
    /// as many as are looked at.
    pub(super) fn take(&mut self, page: &str) -> Result<Option<String>, Trouble> {
        self.read = self.read.saturating_add(page.len());
        if self.read > LIST_BYTES_MAX {
            return Err(Trouble::NotMcp("its list of tools is too long"));
        }
        let page: Page<'_> =
            serde_json::from_str(page).map_err(|_| Trouble::NotMcp("its list of tools cannot be read"))?;
        if page.next_cursor.as_ref().is_some_and(|it| it.len() > CURSOR_BYTES_MAX) {
            return Err(Trouble::NotMcp("its list of tools cannot be read on"));
        }
        let mut left_out = 0_usize;
        for tool in page.tools {
            let read = serde_json::from_str(tool.get()).ok();
            let Some(definition) = read.and_then(Definition::of) else {
                left_out += 1;
                continue;
            };
            let bytes = self.bytes.saturating_add(definition.text.len());
            if self.tools.len() >= MCP_TOOLS_MAX || bytes > MCP_DEFINITIONS_BYTES_MAX {
                tracing::warn!("an MCP server tells of more tools than are looked at; the rest is left out");
                return Ok(None);
            }
            self.bytes = bytes;
            // Of two with one name neither could be told from the other: the first stands.
            self.tools.entry(definition.name.clone()).or_insert_with(|| Arc::new(definition));
        }
        if left_out > 0 {
            tracing::warn!(left_out, "an MCP server tells of tools without a sound name or schema; they are left out");
        }
        Ok(page.next_cursor)
    }
}

impl Definition {
    /// Reads a tool; nothing where it is none: MCP, "Tools".
    fn of(mut value: Value) -> Option<Self> {
        let members = value.as_object_mut()?;
        LEFT_OUT.iter().for_each(|it| drop(members.remove(*it)));
        let name: Box<str> = members.get("name")?.as_str()?.into();
        // As the protocol has names (MCP, "Tools"). A slash above all would make a name more parts than a mandate's
        // `server/*` has, so that no list of what is denied meant it.
        let is_of_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b'-');
        let sound = (1..=MCP_NAME_MAX).contains(&name.len()) && name.bytes().all(is_of_name);
        let schema = members.get("inputSchema").filter(|it| it.is_object())?;
        if !sound {
            return None;
        }
        let mut mirrored = Vec::new();
        find_mirrored(schema, &mut Vec::new(), &mut mirrored);
        let json = Json::parse(&serde_json::to_vec(&value).ok()?).ok()?;
        let text = canonical(&json).into();
        Some(Self { name, value, text, mirrored })
    }

    /// The headers that mirror arguments (SEP-2243): a server of the stateless era compares them.
    pub(super) fn headers(&self, arguments: &Json) -> Vec<(Box<str>, String)> {
        let mut headers = Vec::new();
        for (name, path) in &self.mirrored {
            let found = path.iter().try_fold(arguments, |at, part| at.get(part));
            let text = match found {
                Some(Json::Text(it)) => it.clone(),
                Some(Json::Bool(it)) => it.to_string(),
                Some(Json::Number(Number::Int(it))) => it.to_string(),
                _ => continue,
            };
            headers.push((name.clone(), header_text(&text).into_owned()));
        }
        headers
    }
}

/// The parameters of a schema that it wants mirrored.
fn find_mirrored(schema: &Value, path: &mut Vec<Box<str>>, found: &mut Vec<(Box<str>, Vec<Box<str>>)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if path.len() >= HEADER_DEPTH_MAX {
        return;
    }
    for (name, property) in properties {
        path.push(name.as_str().into());
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let header = format!("mcp-param-{}", header.to_ascii_lowercase());
            if http::HeaderName::from_bytes(header.as_bytes()).is_ok() {
                found.push((header.into(), path.clone()));
            }
        }
        find_mirrored(property, path, found);
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn taken(page: &str) -> (Definitions, Option<String>) {
        let mut all = Definitions::default();
        let next = all.take(page).unwrap();
        (all, next)
    }

    /// What is no tool is left out, a name stands once, and what no model reads is not handed on.
    #[test]
    fn a_list_is_read_as_far_as_it_is_one() {
        let (all, next) = taken(
            r#"{"tools":[{"name":"b","inputSchema":{},"_meta":{"ui":"x"},"icons":[],"description":"one"},
            {"name":"b","inputSchema":{},"description":"two"},{"name":"a b","inputSchema":{}},
            {"name":"c","inputSchema":null},{"name":7},"x",{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"n"}"#,
        );
        let texts: Vec<_> = all.iter().map(|it| &*it.text).collect();
        assert_eq!(
            texts,
            [r#"{"inputSchema":{"type":"object"},"name":"a"}"#, r#"{"description":"one","inputSchema":{},"name":"b"}"#]
        );
        assert_eq!(next.as_deref(), Some("n"));
        assert_eq!(Definitions::default().take("{}"), Err(Trouble::NotMcp("its list of tools cannot be read")));
    }

    /// A tool whose name no glob of a mandate could mean as its writer thinks is left out.
    #[test]
    fn a_name_is_one_part() {
        let names = ["read_one-2.b", "admin/drop", "a:b", "a*", "é", ""];
        let tools: Vec<Value> = names.iter().map(|it| serde_json::json!({ "name": it, "inputSchema": {} })).collect();
        let (all, _) = taken(&serde_json::json!({ "tools": tools }).to_string());
        assert_eq!(all.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["read_one-2.b"]);
        // A name as long as the protocol has it is looked at, though it is not called.
        let names = ["x".repeat(128), "y".repeat(129)];
        let tools: Vec<Value> = names.iter().map(|it| serde_json::json!({ "name": it, "inputSchema": {} })).collect();
        let (all, _) = taken(&serde_json::json!({ "tools": tools }).to_string());
        assert_eq!(all.iter().map(|it| &*it.name).collect::<Vec<_>>(), [&names[0]]);
    }

    /// A tool that cannot be read is left out alone; a list beyond all measure is none, in one page or in many.
    #[test]
    fn a_list_is_bounded() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let (all, _) = taken(&format!(
            r#"{{"tools":[{{"name":"a","inputSchema":{{}},"x":{deep}}},{{"name":"b","inputSchema":{{}}}}]}}"#
        ));
        assert_eq!(all.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["b"]);
        let long = format!(r#"{{"tools":[],"x":"{}","nextCursor":"n"}}"#, "x".repeat(LIST_BYTES_MAX / 2));
        let mut all = Definitions::default();
        assert_eq!(all.take(&long), Ok(Some("n".to_owned())));
        assert_eq!(all.take(&long), Err(Trouble::NotMcp("its list of tools is too long")));
        let cursor = format!(r#"{{"tools":[],"nextCursor":"{}"}}"#, "x".repeat(CURSOR_BYTES_MAX + 1));
        assert!(Definitions::default().take(&cursor).is_err());
    }

    /// A server that never ends its list is heard up to the bound.
    #[test]
    fn a_list_has_an_end() {
        let tools: Vec<Value> =
            (0..300).map(|it| serde_json::json!({ "name": format!("t{it:03}"), "inputSchema": {} })).collect();
        let (all, next) = taken(&serde_json::json!({ "tools": tools, "nextCursor": "more" }).to_string());
        assert_eq!((all.iter().count(), next), (MCP_TOOLS_MAX, None));
    }

    /// Arguments that a schema wants mirrored are, as headers can hold them.
    #[test]
    fn arguments_are_mirrored_in_headers() {
        let (all, _) = taken(
            r#"{"tools":[{"name":"a","inputSchema":{"properties":{"region":{"x-mcp-header":"Region"},
            "deep":{"properties":{"n":{"x-mcp-header":"N"},"bad":{"x-mcp-header":"a b"}}},"list":{"x-mcp-header":"L"}}}}]}"#,
        );
        let json = Json::parse("{\"region\":\"é\",\"deep\":{\"n\":3,\"bad\":1},\"list\":[]}".as_bytes()).unwrap();
        let mut headers = all.get("a").unwrap().headers(&json);
        headers.sort();
        assert_eq!(
            headers,
            [("mcp-param-n".into(), "3".into()), ("mcp-param-region".into(), "=?base64?w6k=?=".into())]
        );
    }
}
