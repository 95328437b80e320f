//! MCP servers that agents reach through this one, and what is known of their tools.
//!
//! **Invariant:** a credential is here only sealed.
//! **Invariant:** a tool is open with the very definition that a person accepted, and with no other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::people::Maker;
use crate::value::canonical::canonical;
use crate::value::digest::Digest;
use crate::value::glob::covers_text;
use crate::value::id::{McpServerId, WorkspaceId};
use crate::value::json::Json;
use crate::value::link::{Link, Linked};
use crate::value::text::{ServerName, UrlText};
use crate::value::words::words;
use crate::value::{Invalid, Timestamp};

/// MCP servers of one workspace.
pub const MCP_SERVERS_MAX: usize = 50;
/// Tools of one server that are looked at.
pub const MCP_TOOLS_MAX: usize = 256;
/// Characters of the longest name that MCP has for a tool.
pub const MCP_NAME_MAX: usize = 128;
/// Characters of the longest name of a tool that an action has: a tool with a longer one is told of, and never called.
pub const MCP_CALLED_NAME_MAX: usize = 100;
/// Bytes of the definitions of one server's tools.
pub const MCP_DEFINITIONS_BYTES_MAX: usize = 512 * 1024;
/// Globs of a list of tools.
pub const TOOL_GLOBS_MAX: usize = 200;

/// The MCP servers of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServers {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its servers, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<McpServer>,
}

/// An MCP server. What it is shown as a credential is not here: that lies sealed in a row of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its id.
    pub id: McpServerId,
    /// Its name, as agents call it.
    pub name: ServerName,
    /// Where it is.
    pub url: UrlText,
    /// How it is shown who calls.
    pub credential: McpCredential,
    /// Which of its tools agents see.
    #[serde(default)]
    pub tools: ToolFilter,
    /// Whether it is used.
    pub enabled: bool,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its name or address last became another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_at: Option<Timestamp>,
}

impl McpServer {
    /// Since when its name stands for the server at its address: what a person said of it before, they said of another.
    #[must_use]
    pub fn since(&self) -> Timestamp {
        self.moved_at.unwrap_or(self.created_at)
    }
}

/// How an MCP server is shown who calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum McpCredential {
    /// Not at all.
    None,
    /// As `authorization: Bearer`.
    Bearer {
        /// The last four characters.
        hint: Box<str>,
        /// Since when.
        since: Timestamp,
    },
    /// In a header of its own.
    Header {
        /// The header's name, in lower case.
        name: Box<str>,
        /// The last four characters.
        hint: Box<str>,
        /// Since when.
        since: Timestamp,
    },
}

words! {
    /// Its word in the interface.
    McpCredential::kind;
    Bearer "bearer";
    Header "header";
    None "none";
}

/// Which tools of a server agents see: those that a glob of `allow` covers, or all where it has none, but for those that one
/// of `deny` covers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolFilter {
    /// Globs over names; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Box<str>>,
    /// Globs over names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Box<str>>,
}

/// What an MCP server is shown, sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpSecret {
    /// The server.
    pub server: McpServerId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// The sealed text.
    pub sealed: Box<str>,
}

/// What is known of a server's tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTools {
    /// The server.
    pub server: McpServerId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Whether it answered when it was last asked.
    pub reached: bool,
    /// Its tools, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<Box<str>, McpTool>,
}

/// A tool: its definition as a canonical JSON object, as it was accepted and as it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// What a person accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Box<str>>,
    /// What the server told last; none where it has the tool no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Box<str>>,
}

/// How a server stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpState {
    /// Its tools are open.
    Ok,
    /// It did not answer when it was last asked, or never was.
    Unreachable,
    /// A tool waits for a person.
    Held,
}

words! { McpState;
    Ok "ok";
    Unreachable "unreachable";
    Held "held";
}

impl Linked for McpServers {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Linked for McpSecret {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Linked for McpTools {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl McpServers {
    /// None.
    #[must_use]
    pub const fn new(workspace: WorkspaceId) -> Self {
        Self { workspace, servers: Vec::new() }
    }

    /// The server with this id.
    #[must_use]
    pub fn by_id(&self, id: McpServerId) -> Option<&McpServer> {
        self.servers.iter().find(|it| it.id == id)
    }

    /// The server of this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&McpServer> {
        self.servers.iter().find(|it| it.name.as_str() == name)
    }
}

impl McpSecret {
    /// What the credentials of a workspace's servers are sealed for.
    #[must_use]
    pub fn purpose(workspace: WorkspaceId) -> String {
        format!("mcp/{workspace}")
    }
}

impl ToolFilter {
    /// Reads a glob: 1 to 128 visible characters, of which `*` is any run.
    ///
    /// # Errors
    /// [`Invalid`] where it is none.
    pub fn glob(text: &str) -> Result<Box<str>, Invalid> {
        let sound = (1..=128).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic());
        let why = "must be a tool's name of 1 to 128 visible ASCII characters, in which `*` is any run";
        if sound { Ok(text.into()) } else { Err(Invalid::new(why)) }
    }

    /// Whether agents see the tool.
    #[must_use]
    pub fn shows(&self, tool: &str) -> bool {
        let covered = |globs: &[Box<str>]| globs.iter().any(|it| covers_text(it, tool));
        (self.allow.is_empty() || covered(&self.allow)) && !covered(&self.deny)
    }
}

impl McpTool {
    /// Whether a tool of this name can be called at all, so that a person can accept it.
    #[must_use]
    pub const fn is_callable(name: &str) -> bool {
        name.len() <= MCP_CALLED_NAME_MAX
    }

    /// Whether it may be called: it is there, as it was accepted.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.seen.is_some() && self.seen == self.accepted
    }

    /// Whether it waits for a person.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.seen.is_some() && self.seen != self.accepted
    }
}

impl McpTools {
    /// Nothing is known.
    #[must_use]
    pub const fn new(server: McpServerId, workspace: WorkspaceId) -> Self {
        Self { server, workspace, reached: false, tools: BTreeMap::new() }
    }

    /// The tools that wait for a person, of those that agents see.
    pub fn held<'a>(&'a self, filter: &'a ToolFilter) -> impl Iterator<Item = (&'a str, &'a McpTool)> {
        let held = |it: &(&str, &McpTool)| it.1.is_held() && filter.shows(it.0);
        self.tools.iter().map(|(name, tool)| (&**name, tool)).filter(held)
    }

    /// How the server stands, of whose tools agents see these.
    #[must_use]
    pub fn state(&self, filter: &ToolFilter) -> McpState {
        if !self.reached {
            McpState::Unreachable
        } else if self.held(filter).next().is_some() {
            McpState::Held
        } else {
            McpState::Ok
        }
    }

    /// SHA-256 of the JSON array of all definitions as they were last seen, by name: what a person who accepts has looked at.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let seen: Vec<&str> = self.tools.values().filter_map(|it| it.seen.as_deref()).collect();
        Digest::of(format!("[{}]", seen.join(",")))
    }

    /// The same after the server told these definitions. What it has no more is remembered as it was accepted, so that it
    /// comes back as such or is held; nothing is remembered beyond as many, and as much, as may be told.
    #[must_use]
    pub fn told(&self, found: &BTreeMap<Box<str>, Box<str>>) -> Self {
        let mut tools: BTreeMap<Box<str>, McpTool> = BTreeMap::new();
        for (name, text) in found {
            let before = self.tools.get(name).and_then(|it| it.accepted.clone());
            let accepted = before.map(|it| if said(&it).as_ref() == Some(text) { text.clone() } else { it });
            tools.insert(name.clone(), McpTool { accepted, seen: Some(text.clone()) });
        }
        let gone = self.tools.iter().filter(|(name, it)| it.accepted.is_some() && !found.contains_key(*name));
        let mut room = MCP_DEFINITIONS_BYTES_MAX;
        for (name, tool) in gone.take(MCP_TOOLS_MAX) {
            let Some(left) = room.checked_sub(tool.accepted.as_ref().map_or(0, |it| it.len())) else { continue };
            room = left;
            tools.insert(name.clone(), McpTool { seen: None, ..tool.clone() });
        }
        Self { reached: true, tools, ..*self }
    }

    /// The same with the definition of `name` accepted as it was last seen; what cannot be called stays held.
    pub fn accept(&mut self, name: &str) {
        if let Some(tool) = self.tools.get_mut(name).filter(|_| McpTool::is_callable(name)) {
            tool.accepted.clone_from(&tool.seen);
        }
    }
}

/// A definition that was accepted with members that are `null`, without them: they are as if they were not there, and are told no
/// more.
fn said(accepted: &str) -> Option<Box<str>> {
    if !accepted.contains(":null") {
        return None;
    }
    let Ok(Json::Object(mut members)) = Json::parse(accepted.as_bytes()) else { return None };
    members.retain(|(_, it)| !it.is_null());
    for (name, nested) in &mut members {
        if let ("annotations" | "execution", Json::Object(within)) = (&**name, nested) {
            within.retain(|(_, it)| !it.is_null());
        }
    }
    Some(canonical(&Json::Object(members)).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::value::Id as _;

    fn found(tools: &[(&str, &str)]) -> BTreeMap<Box<str>, Box<str>> {
        tools.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
    }

    fn none() -> McpTools {
        McpTools::new(McpServerId::from_bits(1), WorkspaceId::from_bits(2))
    }

    /// A tool that was accepted while members that are `null` were still part of its definition is open without them, and held where
    /// anything else is another.
    #[test]
    fn what_was_accepted_with_nothing_said_is_open_without_it() {
        let before = r#"{"annotations":{"readOnlyHint":true,"title":null},"inputSchema":{"default":null},"name":"a","title":null}"#;
        let same = r#"{"annotations":{"readOnlyHint":true},"inputSchema":{"default":null},"name":"a"}"#;
        let mut tools = none().told(&found(&[("a", before)]));
        tools.accept("a");
        let now = tools.told(&found(&[("a", same)]));
        assert!(now.tools["a"].is_open() && now.tools["a"].accepted.as_deref() == Some(same));
        let others = [
            r#"{"annotations":{"readOnlyHint":false},"inputSchema":{"default":null},"name":"a"}"#,
            r#"{"annotations":{"readOnlyHint":true},"inputSchema":{},"name":"a"}"#,
        ];
        for other in others {
            assert!(tools.told(&found(&[("a", other)])).tools["a"].is_held(), "{other}");
        }
    }

    /// A tool is open as it was accepted; changed or new it is held, gone it is neither, and back as it was it is open again.
    #[test]
    fn a_tool_is_open_as_it_was_accepted_and_no_other_way() {
        let all = ToolFilter::default();
        let mut tools = none().told(&found(&[("a", "1"), ("b", "2")]));
        assert_eq!((tools.held(&all).count(), tools.state(&all)), (2, McpState::Held));
        tools.accept("a");
        tools.accept("b");
        tools.accept("c");
        assert_eq!((tools.tools.len(), tools.state(&all)), (2, McpState::Ok));
        let changed = tools.told(&found(&[("a", "1"), ("b", "3"), ("c", "4")]));
        assert_eq!(changed.held(&all).map(|it| it.0).collect::<Vec<_>>(), ["b", "c"]);
        assert!(changed.tools["a"].is_open() && changed.hash() != tools.hash());
        let gone = changed.told(&found(&[("b", "2")]));
        assert!(gone.tools["b"].is_open() && !gone.tools["a"].is_open() && !gone.tools["a"].is_held());
        assert!(!gone.tools.contains_key("c"), "what was never accepted is not remembered");
        assert!(gone.told(&found(&[("a", "1")])).tools["a"].is_open());
        assert_eq!(none().state(&all), McpState::Unreachable);
    }

    /// A tool with a longer name than an action can have is held for good, and holds nothing up where agents do not see it.
    #[test]
    fn what_no_action_can_name_stays_held() {
        let names = ["x".repeat(MCP_CALLED_NAME_MAX), "y".repeat(MCP_CALLED_NAME_MAX + 1)];
        let mut tools = none().told(&found(&names.each_ref().map(|it| (it.as_str(), "1"))));
        names.iter().for_each(|it| tools.accept(it));
        let all = ToolFilter::default();
        assert_eq!(tools.held(&all).map(|it| it.0).collect::<Vec<_>>(), [names[1].as_str()]);
        let filter = ToolFilter { deny: vec!["y*".into()], ..ToolFilter::default() };
        assert_eq!((tools.state(&all), tools.state(&filter)), (McpState::Held, McpState::Ok));
    }

    /// What a server has no more is remembered up to a bound, whatever it was that people accepted over time.
    #[test]
    fn what_is_gone_is_remembered_up_to_a_bound() {
        let long = "x".repeat(MCP_DEFINITIONS_BYTES_MAX / 2 + 1);
        let mut tools = none();
        for name in ["a", "b", "c"] {
            tools = tools.told(&found(&[(name, &long)]));
            tools.accept(name);
        }
        tools = tools.told(&found(&[]));
        assert_eq!(tools.tools.keys().map(|it| &**it).collect::<Vec<_>>(), ["a"], "one of what was told last");
        let many: Vec<String> = (0..2 * MCP_TOOLS_MAX).map(|it| it.to_string()).collect();
        let told: Vec<(&str, &str)> = many.iter().map(|it| (it.as_str(), "1")).collect();
        let mut tools = none().told(&found(&told));
        many.iter().for_each(|it| tools.accept(it));
        assert_eq!(tools.told(&found(&[])).tools.len(), MCP_TOOLS_MAX);
    }

    /// What agents do not see holds nothing up.
    #[test]
    fn what_is_not_shown_is_not_held() {
        let filter = ToolFilter { allow: vec!["read_*".into()], deny: vec!["*_all".into()] };
        assert!(filter.shows("read_one") && !filter.shows("read_all") && !filter.shows("write_one"));
        let tools = none().told(&found(&[("write_one", "1"), ("read_all", "2")]));
        assert_eq!(tools.state(&filter), McpState::Ok);
        assert_eq!(tools.told(&found(&[("read_one", "1")])).state(&filter), McpState::Held);
        assert!(ToolFilter::glob("a b").is_err() && ToolFilter::glob("").is_err() && ToolFilter::glob("a*").is_ok());
    }

    /// The hash is that of the definitions in the order of their names, which anybody can compute.
    #[test]
    fn the_hash_can_be_computed_by_anybody() {
        let tools = none().told(&found(&[("b", r#"{"name":"b"}"#), ("a", r#"{"name":"a"}"#)]));
        assert_eq!(tools.hash(), Digest::of(r#"[{"name":"a"},{"name":"b"}]"#));
    }
}
