//! Where a session's context came from, by the client's own record of it.
//!
//! The account is a claim: the gate compares it with what it saw itself. So it leaves nothing out, and what cannot be read
//! counts as the least trusted source there is. What tools bring in goes by the table that the gate begins with.
//!
//! **Invariant:** what a tool gave is never read for what it says; only the client's own lines around it are.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;
use svc_core::state::gateway::Routing;
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;

use super::Deadline;
use super::client::Client;
use super::event::Event;

/// Bytes of a transcript that are read, the newest.
const BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Lines between two looks at the clock.
const LINES_A_LOOK: usize = 256;
/// Tools that are named of one source.
const NAMED_MAX: usize = 8;
/// What is said of what cannot be known.
const UNKNOWN: &str = "unknown";

/// One source of the context, and which tools brought it in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The source, in the gate's words.
    pub(crate) source: String,
    /// More about it, for people.
    pub(crate) detail: String,
}

/// What the client's record tells; nothing where the client says of none.
pub(crate) fn told(event: &Event, deadline: Deadline) -> Vec<Told> {
    let Some(path) = &event.transcript else { return Vec::new() };
    let mut account = Account::new(event.client);
    account.read(path, deadline);
    if let Some(agent) = &event.subagent {
        match of_subagent(path, &event.session, agent) {
            Some(own) => account.read(&own, deadline),
            None => account.doubt("the transcript of the subagent is not there"),
        }
    }
    account.told()
}

/// The record of a part of a session that keeps its own.
fn of_subagent(transcript: &Path, session: &str, agent: &str) -> Option<PathBuf> {
    let is_name = |it: &str| !it.is_empty() && it.chars().all(|it| it.is_ascii_alphanumeric() || "-_".contains(it));
    let folder = transcript.parent().filter(|_| is_name(agent) && is_name(session))?;
    let file = format!("agent-{agent}.jsonl");
    [folder.join(session).join("subagents").join(&file), folder.join(file)].into_iter().find(|it| it.is_file())
}

/// What is known so far.
struct Account {
    client: Client,
    routing: Routing,
    /// Which tool a call was of.
    names: HashMap<String, String>,
    sources: BTreeMap<String, Vec<String>>,
    doubts: Vec<&'static str>,
    lines: usize,
    /// Whether a line was one as the client writes them.
    is_known: bool,
}

impl Account {
    fn new(client: Client) -> Self {
        // The table that a workspace begins with is the same in all of them.
        let routing = Routing::new(WorkspaceId::from_bits(0));
        Self {
            client,
            routing,
            names: HashMap::new(),
            sources: BTreeMap::new(),
            doubts: Vec::new(),
            lines: 0,
            is_known: false,
        }
    }

    fn doubt(&mut self, why: &'static str) {
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }

    fn read(&mut self, path: &Path, deadline: Deadline) {
        let Ok((bytes, is_whole)) = newest(path) else { return self.doubt("the transcript cannot be read") };
        if !is_whole {
            self.doubt("the transcript is too long to be read whole");
        }
        if self.client == Client::Gemini
            && let Ok(whole) = serde_json::from_slice::<Session<'_>>(&bytes)
            && let Some(messages) = whole.messages
        {
            self.is_known = true;
            return messages.iter().for_each(|it| self.line(it.get().as_bytes()));
        }
        for (number, line) in bytes.split(|it| *it == b'\n').enumerate() {
            if number % LINES_A_LOOK == 0 && deadline.is_half_over() {
                return self.doubt("the transcript takes too long to read");
            }
            let line = line.trim_ascii();
            if !line.is_empty() {
                self.line(line);
            }
        }
    }

    fn line(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).ok().filter(|it| it.starts_with("{") && it.ends_with("}"));
        let Some(text) = text else { return self.doubt("the transcript is not lines of JSON") };
        self.lines += 1;
        self.is_known = self.is_known || is_of(self.client, text);
        let speaks_of = |word: &str| text.contains(word);
        let read = match self.client {
            Client::ClaudeCode | Client::Cursor if !speaks_of("tool_") && !speaks_of(BEGUN) => Some(()),
            Client::ClaudeCode | Client::Cursor => self.message(text),
            Client::Codex if !speaks_of("_call") => Some(()),
            Client::Codex => self.item(text),
            Client::Gemini if !speaks_of("toolCalls") => Some(()),
            Client::Gemini => self.calls(text),
        };
        if read.is_none() {
            self.doubt("the transcript is not lines of JSON");
        }
    }

    /// A line with a message in the shape of the messages API; `None` where it cannot be read.
    fn message(&mut self, line: &str) -> Option<()> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        if let Some(data) = line.data.filter(|_| line.kind.as_deref() == Some(BEGUN)) {
            // What came of it may stand nowhere, or come later than the hook does.
            let begun: Begun<'_> = serde_json::from_str(data.get()).ok()?;
            self.brought(&begun.tool_name);
            return Some(());
        }
        let Some(message) = line.message else { return Some(()) };
        let message: Message<'_> = serde_json::from_str(message.get()).ok()?;
        let Some(content) = message.content.filter(|it| it.get().starts_with("[")) else { return Some(()) };
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
        for block in blocks.into_iter().filter(|it| it.get().starts_with("{")) {
            let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
            let kind = block.kind.as_deref().unwrap_or_default();
            if matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use") {
                let name = block.name?;
                if self.client == Client::Cursor {
                    // Its record has no results: what was called brought something in.
                    self.brought(&name);
                }
                self.names.entry(block.id?.into_owned()).or_insert_with(|| name.into_owned());
            } else if kind.ends_with("tool_result") {
                self.result(block.tool_use_id.as_deref());
            }
        }
        Some(())
    }

    /// A line with an item in the shape of the responses API.
    fn item(&mut self, line: &str) -> Option<()> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        if line.kind.as_deref() != Some("response_item") {
            return Some(());
        }
        let item: Item<'_> = serde_json::from_str(line.payload?.get()).ok()?;
        let kind = item.kind.as_deref().unwrap_or_default();
        match kind {
            "function_call" | "custom_tool_call" => {
                let (name, id) = (item.name?, item.call_id?);
                let name = item.namespace.map_or_else(|| name.to_string(), |space| format!("{space}{name}"));
                self.names.entry(id.into_owned()).or_insert(name);
            }
            "local_shell_call" => {
                self.names.entry(item.call_id?.into_owned()).or_insert_with(|| "local_shell".to_owned());
            }
            // What these bring in stands in no line of its own.
            other if other.ends_with("_call") => self.brought(other.trim_end_matches("_call")),
            other if other.ends_with("_call_output") => self.result(item.call_id.as_deref()),
            _ => {}
        }
        Some(())
    }

    /// A line with calls and their results in one.
    fn calls(&mut self, line: &str) -> Option<()> {
        let line: Line<'_> = serde_json::from_str(line).ok()?;
        let Some(calls) = line.tool_calls else { return Some(()) };
        let calls: Vec<Block<'_>> = serde_json::from_str(calls.get()).ok()?;
        for call in calls {
            self.brought(&call.name?);
        }
        Some(())
    }

    fn result(&mut self, call: Option<&str>) {
        match call.and_then(|it| self.names.get(it).cloned()) {
            Some(name) => self.brought(&name),
            None => self.doubt("the transcript does not say which tool gave a result"),
        }
    }

    fn brought(&mut self, tool: &str) {
        let source = self.routing.meaning_of(tool).source;
        let named = self.sources.entry(source.to_owned()).or_default();
        if named.len() < NAMED_MAX && !named.iter().any(|it| it == tool) {
            named.push(tool.to_owned());
        }
    }

    fn told(self) -> Vec<Told> {
        let mut out = Vec::new();
        let mut doubts = self.doubts;
        if self.is_known {
            out.push(Told { source: "user".to_owned(), detail: String::new() });
        }
        let named = self.sources.into_iter().map(|(source, tools)| Told { source, detail: tools.join(", ") });
        out.extend(named);
        if !self.is_known && doubts.is_empty() {
            doubts.push(if self.lines == 0 { "the transcript is empty" } else { "the transcript is not the client's" });
        }
        if !doubts.is_empty() {
            out.push(Told { source: UNKNOWN.to_owned(), detail: doubts.join("; ") });
        }
        out
    }
}

/// What VS Code calls the line of a tool that begins. Its record is in a form of its own, though it runs the hook that stands in Claude
/// Code's settings.
const BEGUN: &str = "tool.execution_start";

/// Whether a line is in a form that the client is known for: by the members around what was said, whatever that is.
fn is_of(client: Client, line: &str) -> bool {
    let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return false };
    let is_object = |it: Option<&RawValue>| it.is_some_and(|it| it.get().starts_with("{"));
    let kind = line.kind.as_deref().unwrap_or_default();
    match client {
        Client::ClaudeCode => {
            let is_in_vs_code = kind.contains('.') && is_object(line.data);
            is_object(line.message) || (!kind.is_empty() && line.session.is_some()) || is_in_vs_code
        }
        Client::Codex => !kind.is_empty() && is_object(line.payload),
        Client::Cursor => is_object(line.message),
        Client::Gemini => matches!(kind, "user" | "gemini") || line.session.is_some(),
    }
}

/// The newest of a file, and whether that is all of it. A pipe or a device is not waited for.
fn newest(path: &Path) -> std::io::Result<(Vec<u8>, bool)> {
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(path)?;
    let over = file.metadata()?.len().saturating_sub(BYTES_MAX);
    file.seek(SeekFrom::Start(over))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    if over > 0 {
        // The first line that is read is the end of one.
        let cut = bytes.iter().position(|it| *it == b'\n').unwrap_or(bytes.len());
        bytes.drain(..cut);
    }
    Ok((bytes, over == 0))
}

#[derive(Deserialize)]
struct Session<'a> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "toolCalls")]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "sessionId")]
    session: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Begun<'a> {
    #[serde(borrow, rename = "toolName")]
    tool_name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Option<Cow<'a, str>>,
    #[serde(default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    tool_use_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    name: Option<Cow<'a, str>>,
    #[serde(default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(default)]
    call_id: Option<Cow<'a, str>>,
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
