//! What an MCP server tells of its tools, as far as a person looked at it: what nobody looks at is not handed on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
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
/// Members whose own members may be left out.
const NESTED: [&str; 2] = ["annotations", "execution"];
/// Texts, hints and words that an annotation or an execution may hold.
const TEXTS: [&str; 2] = ["title", "description"];
const HINTS: [&str; 4] = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
const TASK_SUPPORT: [&str; 3] = ["required", "optional", "forbidden"];
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
    /// Whether it is one of the stateless era alone, whose schemas may say more.
    pub(crate) is_modern: bool,
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
        let (mut left_out, mut why) = (0_usize, "");
        for tool in page.tools {
            let read = serde_json::from_str(tool.get()).map_err(|_| "it cannot be read");
            let definition = match read.and_then(Definition::of) {
                Ok(definition) => definition,
                Err(fault) => {
                    (left_out, why) = (left_out + 1, fault);
                    continue;
                }
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
            tracing::warn!(
                left_out,
                why,
                "an MCP server tells of tools that are none to every client; they are left out"
            );
        }
        // Servers that have no further page say so by an empty place as well.
        Ok(page.next_cursor.filter(|it| !it.is_empty()))
    }
}

impl Definition {
    /// Reads a tool (MCP, "Tools"); else why it is none. Clients look at a list as a whole, so that one tool that is none would
    /// cost an agent all tools of the server.
    fn of(mut value: Value) -> Result<Self, &'static str> {
        let members = value.as_object_mut().ok_or("it is no object")?;
        LEFT_OUT.iter().for_each(|it| drop(members.remove(*it)));
        leave_unsaid(members);
        let name: Box<str> = members.get("name").and_then(Value::as_str).ok_or("its name is no text")?.into();
        // As the protocol has names (MCP, "Tools"). A slash above all would make a name more parts than a mandate's
        // `server/*` has, so that no list of what is denied meant it.
        let is_of_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b'-');
        if !(1..=MCP_NAME_MAX).contains(&name.len()) || !name.bytes().all(is_of_name) {
            return Err("its name is none that a tool may have");
        }
        let schema =
            members.get("inputSchema").filter(|it| is_of_object(it)).ok_or("its `inputSchema` is none of an object")?;
        let output = members.get("outputSchema");
        if output.is_some_and(|it| !is_schema(it)) {
            return Err("its `outputSchema` is none");
        }
        said_as_asked(members)?;
        let is_modern =
            !has_plain_properties(schema) || output.is_some_and(|it| !is_of_object(it) || !has_plain_properties(it));
        let mut mirrored = Vec::new();
        find_mirrored(schema, &mut Vec::new(), &mut mirrored);
        let written = serde_json::to_vec(&value).map_err(|_| "it cannot be written")?;
        let json = Json::parse(&written).map_err(|_| "it is no JSON that is read here")?;
        let text = canonical(&json).into();
        Ok(Self { name, value, text, is_modern, mirrored })
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

/// Leaves out what is said to be nothing: servers write `null` for what they do not say, and clients read it as another kind.
fn leave_unsaid(members: &mut Map<String, Value>) {
    members.retain(|_, it| !it.is_null());
    for nested in NESTED {
        if let Some(Value::Object(within)) = members.get_mut(nested) {
            within.retain(|_, it| !it.is_null());
        }
    }
}

/// That what a tool says of itself beside its schemas is of the kinds that clients read it as.
fn said_as_asked(members: &Map<String, Value>) -> Result<(), &'static str> {
    if TEXTS.iter().any(|it| members.get(*it).is_some_and(|it| !it.is_string())) {
        return Err("its title or description is no text");
    }
    if let Some(notes) = members.get("annotations") {
        let hints = HINTS.iter().all(|it| notes.get(*it).is_none_or(Value::is_boolean));
        if !notes.is_object() || !hints || notes.get("title").is_some_and(|it| !it.is_string()) {
            return Err("its annotations are of another kind");
        }
    }
    if let Some(execution) = members.get("execution") {
        let is_known = |it: &Value| it.as_str().is_some_and(|it| TASK_SUPPORT.contains(&it));
        if !execution.is_object() || execution.get("taskSupport").is_some_and(|it| !is_known(it)) {
            return Err("its `execution` is of another kind");
        }
    }
    Ok(())
}

fn is_schema(schema: &Value) -> bool {
    schema.is_object() && schema.get("$schema").is_none_or(Value::is_string)
}

/// Whether a schema is one of an object to whoever reads no more of it than that.
fn is_of_object(schema: &Value) -> bool {
    let is_list = |it: &Value| it.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    is_schema(schema)
        && schema.get("type").and_then(Value::as_str) == Some("object")
        && schema.get("properties").is_none_or(Value::is_object)
        && schema.get("required").is_none_or(is_list)
}

/// Whether the properties of an object are described by objects: clients of the eras with handshake take no `true`.
fn has_plain_properties(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_none_or(|all| all.values().all(Value::is_object))
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

    fn named(name: &str) -> Value {
        serde_json::json!({ "name": name, "inputSchema": { "type": "object" } })
    }

    /// What is no tool is left out, a name stands once, and what no model reads is not handed on.
    #[test]
    fn a_list_is_read_as_far_as_it_is_one() {
        let (all, next) = taken(
            r#"{"tools":[{"name":"b","inputSchema":{"type":"object"},"_meta":{"ui":"x"},"icons":[],"description":"one"},
            {"name":"b","inputSchema":{"type":"object"},"description":"two"},{"name":"a b","inputSchema":{"type":"object"}},
            {"name":"c","inputSchema":null},{"name":7},"x",{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":"n"}"#,
        );
        let texts: Vec<_> = all.iter().map(|it| &*it.text).collect();
        assert_eq!(
            texts,
            [
                r#"{"inputSchema":{"type":"object"},"name":"a"}"#,
                r#"{"description":"one","inputSchema":{"type":"object"},"name":"b"}"#
            ]
        );
        assert_eq!(next.as_deref(), Some("n"));
        assert_eq!(taken(r#"{"tools":[],"nextCursor":""}"#).1, None, "a place named by nothing is the end");
        assert_eq!(Definitions::default().take("{}"), Err(Trouble::NotMcp("its list of tools cannot be read")));
    }

    /// A tool of which any client would say that it is none is left out alone, as clients refuse a list for one of them; what
    /// is said to be nothing is as if it were not said.
    #[test]
    fn what_is_no_tool_to_a_client_costs_no_other() {
        let with = |change: Value| {
            let mut tool = named("odd");
            tool.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let (all, _) = taken(&serde_json::json!({ "tools": [named("good"), tool] }).to_string());
            assert!(all.get("good").is_some());
            all.get("odd").map(|it| (it.text.clone(), it.is_modern))
        };
        for change in [
            r#"{"inputSchema":{}}"#,
            r#"{"inputSchema":null}"#,
            r#"{"inputSchema":true}"#,
            r#"{"inputSchema":{"type":"string"}}"#,
            r#"{"inputSchema":{"type":["object","null"]}}"#,
            r#"{"inputSchema":{"type":"object","properties":[]}}"#,
            r#"{"inputSchema":{"type":"object","required":"x"}}"#,
            r#"{"inputSchema":{"type":"object","required":[1]}}"#,
            r#"{"inputSchema":{"type":"object","$schema":1}}"#,
            r#"{"outputSchema":true}"#,
            r#"{"outputSchema":[]}"#,
            r#"{"title":5}"#,
            r#"{"description":5}"#,
            r#"{"annotations":"x"}"#,
            r#"{"annotations":{"readOnlyHint":"yes"}}"#,
            r#"{"annotations":{"title":1}}"#,
            r#"{"execution":[]}"#,
            r#"{"execution":{"taskSupport":"bogus"}}"#,
        ] {
            assert_eq!(with(serde_json::from_str(change).unwrap()), None, "{change}");
        }
        let unsaid = r#"{"title":null,"description":null,"outputSchema":null,"annotations":null,"execution":null}"#;
        let plain = r#"{"inputSchema":{"type":"object"},"name":"odd"}"#;
        assert_eq!(with(serde_json::from_str(unsaid).unwrap()), Some((plain.into(), false)));
        for (change, is_modern) in [
            (r#"{"annotations":{"readOnlyHint":true,"title":null},"execution":{"taskSupport":"optional"}}"#, false),
            (r#"{"outputSchema":{"type":"object","properties":{"a":{}},"required":["a"]}}"#, false),
            (r#"{"outputSchema":{"type":"string"}}"#, true),
            (r#"{"outputSchema":{"type":"object","properties":{"a":true}}}"#, true),
            (r#"{"inputSchema":{"type":"object","properties":{"a":true}}}"#, true),
        ] {
            let (text, modern) = with(serde_json::from_str(change).unwrap()).unwrap();
            assert!(modern == is_modern && !text.contains("null"), "{change}: {text}");
        }
    }

    /// A tool whose name no glob of a mandate could mean as its writer thinks is left out.
    #[test]
    fn a_name_is_one_part() {
        let names = ["read_one-2.b", "admin/drop", "a:b", "a*", "é", ""];
        let tools: Vec<Value> = names.iter().map(|it| named(it)).collect();
        let (all, _) = taken(&serde_json::json!({ "tools": tools }).to_string());
        assert_eq!(all.iter().map(|it| &*it.name).collect::<Vec<_>>(), ["read_one-2.b"]);
        // A name as long as the protocol has it is looked at, though it is not called.
        let names = ["x".repeat(128), "y".repeat(129)];
        let tools: Vec<Value> = names.iter().map(|it| named(it)).collect();
        let (all, _) = taken(&serde_json::json!({ "tools": tools }).to_string());
        assert_eq!(all.iter().map(|it| &*it.name).collect::<Vec<_>>(), [&names[0]]);
    }

    /// A tool that cannot be read is left out alone; a list beyond all measure is none, in one page or in many.
    #[test]
    fn a_list_is_bounded() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let (all, _) = taken(&format!(
            r#"{{"tools":[{{"name":"a","inputSchema":{{"type":"object"}},"x":{deep}}},{}]}}"#,
            named("b")
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
        let tools: Vec<Value> = (0..300).map(|it| named(&format!("t{it:03}"))).collect();
        let (all, next) = taken(&serde_json::json!({ "tools": tools, "nextCursor": "more" }).to_string());
        assert_eq!((all.iter().count(), next), (MCP_TOOLS_MAX, None));
    }

    /// Arguments that a schema wants mirrored are, as headers can hold them.
    #[test]
    fn arguments_are_mirrored_in_headers() {
        let (all, _) = taken(
            r#"{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"region":{"x-mcp-header":"Region"},
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
