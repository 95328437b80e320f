//! What a client says of one call of a tool, in the one form that the rest of the hook knows.

use std::path::PathBuf;

use svc_core::value::json::Json;
use svc_core::value::spelled::spelled;
use svc_core::value::text::{Label, SessionId};
use svc_core::value::tool_name::known_by;

use super::client::{Client, event_name};
use super::{Refused, plain};

/// One call of a tool.
#[derive(Debug)]
pub(crate) struct Event {
    /// Who says so.
    pub(crate) client: Client,
    /// Whether it is yet to come.
    pub(crate) moment: Moment,
    /// Whether the client asks the person where it is told to.
    pub(crate) can_ask: bool,
    /// Its session.
    pub(crate) session: String,
    /// The tool, as the client names it and the gate knows it.
    pub(crate) tool: String,
    /// The same however long it is.
    pub(crate) shown: String,
    /// Whose tool it is.
    pub(crate) origin: Origin,
    /// The client's own id of this call, where it has one.
    pub(crate) call: Option<String>,
    /// What the tool is given: always an object.
    pub(crate) input: Json,
    /// Where the tool runs, as far as the client says.
    pub(crate) cwd: Option<String>,
    /// Where the client says that the session is written down.
    pub(crate) transcript: Option<PathBuf>,
    /// The part of the session that has a transcript of its own.
    pub(crate) subagent: Option<String>,
    /// Directories that are the project's.
    pub(crate) projects: Vec<PathBuf>,
}

/// Whose tool it is that is called, as far as the client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The client's own, or one of a server that its name alone says.
    Name,
    /// That of an MCP server with this name.
    Server(String),
    /// That of some MCP server.
    SomeServer,
}

/// When a client speaks of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It may still be refused.
    Before,
    /// It was done.
    After {
        /// And it did not work.
        failed: bool,
    },
    /// It was not done: the client did not let it run, whoever told it so.
    Withheld,
}

impl Event {
    /// Reads what a client says; `client` is who it is where it does not say so beyond doubt, as the command line has it.
    ///
    /// # Errors
    /// [`Refused`] where it is no event of that client's, or a member is missing without which nothing can be asked.
    pub(crate) fn read(input: &Json, client: Option<Client>) -> Result<Self, Refused> {
        if input.as_object().is_none() {
            return Err(Refused::new("what the client says on standard input is no object"));
        }
        let client = Client::beyond_doubt(input)
            .or(client)
            .or_else(|| Client::of(input))
            .ok_or_else(|| Refused::new("no client that svc knows speaks like this; name it with `--client`"))?;
        let name = event_name(input).ok_or_else(|| missing("hook_event_name"))?;
        let kind = Kind::of(client, name, text(input, "failure_type"))
            .ok_or_else(|| Refused(format!("`{}` is no event of {} that svc knows", plain(name, 64), client.name())))?;
        let session = ["session_id", "conversation_id", "sessionId"].into_iter().find_map(|it| text(input, it));
        let session = session.and_then(|it| SessionId::parse(it).ok()).ok_or_else(|| missing("session_id"))?;
        let shown = match kind.tool {
            Some(own) => own,
            None => text(input, "tool_name").ok_or_else(|| missing("tool_name"))?.trim(),
        };
        let no_name = || Refused::new("`tool_name` is empty or holds control characters");
        let origin = kind.origin(input, shown);
        let shown = shown_of(&origin, shown).ok_or_else(no_name)?;
        let tool = Label::parse(&known_by(&shown)).map_err(|_| no_name())?;
        let moment = match kind.moment {
            Moment::After { failed } => {
                let told = client == Client::Gemini && tool.as_str() == GEMINI_SHELL && tells_an_exit(input);
                Moment::After { failed: failed || told || has_failed(input) }
            }
            Moment::Before | Moment::Withheld => kind.moment,
        };
        Ok(Self {
            client,
            moment,
            can_ask: kind.can_ask,
            session: session.as_str().to_owned(),
            origin,
            tool: tool.as_str().to_owned(),
            shown,
            call: text(input, "tool_use_id").filter(|it| !it.is_empty()).map(str::to_owned),
            input: kind.input(input)?,
            cwd: text(input, "cwd").filter(|it| !it.is_empty()).map(str::to_owned),
            transcript: text(input, "transcript_path").filter(|it| !it.is_empty()).map(PathBuf::from),
            subagent: text(input, "agent_id").filter(|it| !it.is_empty()).map(str::to_owned),
            projects: projects(input),
        })
    }

    /// The MCP server whose tool it is, where the tool's name does not say it: mandates go by the name that the client shows.
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.origin {
            Origin::Server(name) if !is_name_of_mcp(&self.shown) => Some(name),
            Origin::Server(_) | Origin::Name | Origin::SomeServer => None,
        }
    }

    /// Whether it is a tool of an MCP server, by what the client says or by the name.
    pub(crate) fn is_of_mcp(&self) -> bool {
        self.origin != Origin::Name || is_name_of_mcp(&self.shown)
    }
}

/// One of a client's events.
struct Kind {
    moment: Moment,
    can_ask: bool,
    /// Whether it is about tools of MCP servers alone.
    of_mcp: bool,
    /// What the tool is called where the event has no name for it.
    tool: Option<&'static str>,
}

impl Kind {
    /// `failure` is why the tool failed, where the client says so.
    fn of(client: Client, event: &str, failure: Option<&str>) -> Option<Self> {
        let before = |can_ask| Some(Self { moment: Moment::Before, can_ask, of_mcp: false, tool: None });
        let later = |moment| Some(Self { moment, can_ask: false, of_mcp: false, tool: None });
        let after = |failed| later(Moment::After { failed });
        let mcp = |kind: Option<Self>| kind.map(|it| Self { of_mcp: true, ..it });
        let shell = |kind: Option<Self>| kind.map(|it| Self { tool: Some("Shell"), ..it });
        match (client, event) {
            (Client::ClaudeCode, "PreToolUse") => before(true),
            (Client::Codex, "PreToolUse") | (Client::Gemini, "BeforeTool") => before(false),
            (Client::ClaudeCode | Client::Codex, "PostToolUse") | (Client::Gemini, "AfterTool") => after(false),
            (Client::ClaudeCode, "PostToolUseFailure") => after(true),
            // It does not keep to an ask that is given before any tool, only before a command or a tool of MCP.
            (Client::Cursor, "preToolUse") => before(false),
            (Client::Cursor, "beforeMCPExecution") => mcp(before(true)),
            (Client::Cursor, "beforeShellExecution") => shell(before(true)),
            (Client::Cursor, "postToolUse") => after(false),
            (Client::Cursor, "afterMCPExecution") => mcp(after(false)),
            // It calls a refusal a failure as well, its hook's own among them.
            (Client::Cursor, "postToolUseFailure") if failure == Some("permission_denied") => later(Moment::Withheld),
            (Client::Cursor, "postToolUseFailure") => after(true),
            (Client::Cursor, "afterShellExecution") => shell(after(false)),
            _ => None,
        }
    }

    fn origin(&self, said: &Json, shown: &str) -> Origin {
        let of = |member: &str, name: &str| {
            let server = said.get(member).filter(|it| !it.is_null())?;
            let name = text(server, name).and_then(|it| Label::parse(it).ok());
            Some(name.map_or(Origin::SomeServer, |it| Origin::Server(it.as_str().to_owned())))
        };
        let unsaid = if self.of_mcp || shown.starts_with(NAMELESS) { Origin::SomeServer } else { Origin::Name };
        of("mcp_server", "name").or_else(|| of("mcp_context", "server_name")).unwrap_or(unsaid)
    }

    /// What the tool is given, as an object: one that stands in a text is read, anything else becomes a member.
    fn input(&self, said: &Json) -> Result<Json, Refused> {
        if self.tool.is_some() {
            let command = said.get("command").ok_or_else(|| missing("command"))?.clone();
            return Ok(Json::Object(vec![("command".to_owned(), command)]));
        }
        Ok(match said.get("tool_input") {
            None | Some(Json::Null) => Json::Object(Vec::new()),
            Some(Json::Object(members)) => Json::Object(members.clone()),
            Some(Json::Text(text)) => match spelled(text.as_bytes()) {
                Ok(Json::Object(members)) => Json::Object(members),
                _ => Json::Object(vec![("input".to_owned(), Json::Text(text.clone()))]),
            },
            Some(other) => Json::Object(vec![("input".to_owned(), other.clone())]),
        })
    }
}

/// What Cursor shows in front of the name of a tool of an MCP server, which it does not name.
const NAMELESS: &str = "MCP:";

/// The name by which a tool is known; `None` where it has none. One of a server that the client does not name is never known as the
/// client's own is, whichever event speaks of it.
fn shown_of(origin: &Origin, name: &str) -> Option<String> {
    let is_bare = *origin == Origin::SomeServer && !name.starts_with(NAMELESS);
    let front = if is_bare { NAMELESS } else { "" };
    (!name.is_empty()).then(|| format!("{front}{name}"))
}

/// Whether a tool's name says that it is one of an MCP server.
pub(crate) fn is_name_of_mcp(shown: &str) -> bool {
    shown.starts_with("mcp_")
}

fn text<'a>(input: &'a Json, name: &str) -> Option<&'a str> {
    input.get(name).and_then(Json::as_str)
}

fn missing(name: &str) -> Refused {
    Refused(format!("what the client says has no `{name}` that can be used"))
}

/// Whether what is said is about a tool that has run, by how every client names such events: also where nothing else of it is known.
pub(crate) fn is_of_after(said: &Json) -> bool {
    let name = event_name(said).unwrap_or_default().to_ascii_lowercase();
    name.starts_with("post") || name.starts_with("after")
}

/// Whether what a tool gave says that it did not work.
fn has_failed(input: &Json) -> bool {
    // One client writes what its tool gave as a text that holds JSON.
    let written = text(input, "tool_output").and_then(|it| Json::parse(it.as_bytes()).ok());
    let said = input.get("tool_response").or(written.as_ref()).or_else(|| input.get("tool_output"));
    let Some(said) = said else { return false };
    let is = |name: &str, value: bool| said.get(name).and_then(Json::as_bool) == Some(value);
    let is_code = |name: &str| said.get(name).and_then(Json::as_int).is_some_and(|it| it != 0);
    said.get("error").is_some_and(|it| !is_nothing(it))
        || is("isError", true)
        || is("is_error", true)
        || is("interrupted", true)
        || is("success", false)
        || is_code("exit_code")
        || is_code("exitCode")
}

/// Whether a value says that there is nothing.
fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(is) => !is,
        Json::Number(_) => value.as_int() == Some(0),
        Json::Text(text) => text.is_empty(),
        Json::List(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
    }
}

/// What Gemini CLI calls its tool that runs commands.
const GEMINI_SHELL: &str = "run_shell_command";

/// Whether the text that Gemini CLI tells its model of a command says that it ended by a signal or with an exit code: hooks are told of
/// it in no other way. What it says itself stands in lines at the end, behind whatever the command has printed.
fn tells_an_exit(input: &Json) -> bool {
    let Some(content) = input.get("tool_response").and_then(|it| it.get("llmContent")) else { return false };
    let parts = content.as_list().unwrap_or_default().iter().filter_map(|it| text(it, "text"));
    let said = content.as_str().into_iter().chain(parts).collect::<Vec<_>>().join("\n");
    let lines = said.lines().rev().map(str::trim).skip_while(|it| it.is_empty() || *it == "</untrusted_context>");
    let told = lines.map_while(|line| {
        let (name, value) = line.split_once(": ")?;
        matches!(name, "Exit Code" | "Signal" | "Background PIDs" | "Process Group PGID").then_some((name, value))
    });
    let mut ends = told.filter(|(name, _)| matches!(*name, "Exit Code" | "Signal"));
    ends.any(|(_, value)| value.parse::<i64>().is_ok_and(|it| it != 0))
}

/// The variables in which clients tell a hook which project they were started in: it stays that one wherever an agent goes.
const PROJECT_NAMES: [&str; 2] = ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"];

/// The directories that are the project's: those that the client names, and the one in which this runs.
pub(crate) fn projects(input: &Json) -> Vec<PathBuf> {
    let roots = input.get("workspace_roots").and_then(Json::as_list).unwrap_or_default();
    let said = text(input, "cwd").into_iter().chain(roots.iter().filter_map(Json::as_str)).map(PathBuf::from);
    let set = PROJECT_NAMES.iter().filter_map(std::env::var_os).map(PathBuf::from);
    said.chain(set).filter(|it| it.as_os_str() != "").chain(std::env::current_dir()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn read(text: &str) -> Result<Event, Refused> {
        Event::read(&Json::parse(text.as_bytes()).unwrap(), None)
    }

    /// Each client is known by what it says, and its call is read whole.
    #[test]
    fn each_client_is_known_by_what_it_says() {
        let claude = r#"{"session_id":"s-1","transcript_path":"/t.jsonl","cwd":"/p","prompt_id":"x","permission_mode":"default","effort":{"level":"high"},"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls","description":"List"},"tool_use_id":"toolu_1"}"#;
        let event = read(claude).unwrap();
        assert_eq!((event.client, event.moment, event.can_ask), (Client::ClaudeCode, Moment::Before, true));
        assert_eq!(
            (event.session.as_str(), event.tool.as_str(), event.call.as_deref()),
            ("s-1", "Bash", Some("toolu_1"))
        );
        assert_eq!(event.projects.first().unwrap(), &PathBuf::from("/p"));
        let codex = r#"{"session_id":"s-2","turn_id":"t","transcript_path":null,"cwd":"/p","hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"mcp__shop__pay","tool_input":[1],"tool_use_id":"call_1"}"#;
        let event = read(codex).unwrap();
        assert_eq!((event.client, event.can_ask, event.server()), (Client::Codex, false, None));
        assert_eq!((event.transcript, event.input.get("input").is_some()), (None, true));
        let said = |tool: &str| {
            let text = format!(
                r#"{{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"{tool}","mcp_context":{{"server_name":"shop"}}}}"#
            );
            let event = read(&text).unwrap();
            (event.server().map(str::to_owned), event.origin)
        };
        let shop = || Origin::Server("shop".to_owned());
        assert_eq!((said("pay"), said("mcp_shop_pay")), ((Some("shop".to_owned()), shop()), (None, shop())));
        let gemini = r#"{"session_id":"s-3","transcript_path":"/t.json","cwd":"/p","hook_event_name":"BeforeTool","timestamp":"2026-11-21T00:00:00Z","tool_name":"run_shell_command","tool_input":{"command":"ls"}}"#;
        let event = read(gemini).unwrap();
        assert_eq!((event.client, event.can_ask, event.call), (Client::Gemini, false, None));
        let cursor = r#"{"conversation_id":"c-1","generation_id":"g","hook_event_name":"beforeShellExecution","workspace_roots":["/p"],"command":"ls","cwd":"/p"}"#;
        let event = read(cursor).unwrap();
        assert_eq!((event.client, event.can_ask, event.tool.as_str()), (Client::Cursor, true, "Shell"));
        assert_eq!((event.session.as_str(), event.input.get("command").and_then(Json::as_str)), ("c-1", Some("ls")));
        let mcp = r#"{"conversation_id":"c-1","hook_event_name":"beforeMCPExecution","tool_name":"query","tool_input":"{\"q\":1}"}"#;
        let event = read(mcp).unwrap();
        assert_eq!((event.input.get("q").and_then(Json::as_int), event.origin), (Some(1), Origin::SomeServer));
        let after = read(&mcp.replace("before", "after")).unwrap();
        assert_eq!((after.origin, after.moment), (Origin::SomeServer, Moment::After { failed: false }));
        let nameless =
            r#"{"session_id":"s","hook_event_name":"BeforeTool","tool_name":"Read","mcp_context":{"server_name":7}}"#;
        assert_eq!(read(nameless).unwrap().origin, Origin::SomeServer);
        let tool = r#"{"conversation_id":"c-1","hook_event_name":"preToolUse","tool_name":"Write","tool_input":{}}"#;
        let event = read(tool).unwrap();
        assert_eq!((event.can_ask, event.origin), (false, Origin::Name));
    }

    /// Other clients run the hooks in Claude Code's settings: Cursor is known by what it says all the same, and VS Code speaks as Claude
    /// Code does, but for how two members are written.
    #[test]
    fn other_clients_run_the_hook_of_claude_code() {
        let read = |text: &str| Event::read(&Json::parse(text.as_bytes()).unwrap(), Some(Client::ClaudeCode));
        let cursor = r#"{"conversation_id":"c-1","cursor_version":"3.1.0","hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":"ls"},"tool_use_id":"t","cwd":""}"#;
        let event = read(cursor).unwrap();
        assert_eq!((event.client, event.can_ask, event.session.as_str()), (Client::Cursor, false, "c-1"));
        assert!(!event.projects.contains(&PathBuf::new()));
        assert!(read(&cursor.replace("preToolUse", "sessionStart")).unwrap_err().0.contains("no event of cursor"));
        assert!(read(&cursor.replace("cursor_version", "version")).unwrap_err().0.contains("no event of claude-code"));
        assert_eq!(read(&cursor.replace("preToolUse", "PreToolUse")).unwrap().client, Client::ClaudeCode);
        let code = r#"{"timestamp":"2026-11-21T00:00:00Z","sessionId":"v-1","hookEventName":"PreToolUse","tool_name":"editFiles","tool_input":{"files":["a"]},"tool_use_id":"t","cwd":"/p"}"#;
        let event = read(code).unwrap();
        assert_eq!(
            (event.client, event.session.as_str(), event.tool.as_str()),
            (Client::ClaudeCode, "v-1", "editFiles")
        );
    }

    /// What came of a call is read from the event, or from what the tool gave.
    #[test]
    fn what_came_of_a_call_is_read() {
        let after = |event: &str, response: &str| {
            let text = format!(
                r#"{{"session_id":"s","hook_event_name":"{event}","tool_name":"T","tool_use_id":"t","tool_response":{response}}}"#
            );
            read(&text).unwrap().moment
        };
        for (event, response, failed) in [
            ("PostToolUse", r#""done""#, false),
            ("PostToolUse", r#"{"stdout":"","interrupted":false}"#, false),
            ("PostToolUse", r#"{"stdout":"","interrupted":true}"#, true),
            ("PostToolUse", r#"{"isError":true}"#, true),
            ("PostToolUse", r#"{"exit_code":3}"#, true),
            ("PostToolUseFailure", "null", true),
            ("AfterTool", r#"{"llmContent":"x","error":null}"#, false),
            ("AfterTool", r#"{"error":{"message":"x"}}"#, true),
            ("PostToolUse", r#"{"error":false}"#, false),
            ("PostToolUse", r#"{"error":0}"#, false),
            ("PostToolUse", r#"{"error":""}"#, false),
            ("PostToolUse", r#"{"error":[]}"#, false),
            ("PostToolUse", r#"{"error":{}}"#, false),
            ("PostToolUse", r#"{"error":true}"#, true),
            ("PostToolUse", r#"{"error":-1}"#, true),
            ("PostToolUse", r#"{"error":["x"]}"#, true),
            ("PostToolUse", r#"{"error":false,"exit_code":1}"#, true),
        ] {
            assert_eq!(after(event, response), Moment::After { failed }, "{event} {response}");
        }
        for (tool, content, failed) in [
            ("run_shell_command", r#""Output: x\nExit Code: 1\nProcess Group PGID: 7""#, true),
            ("run_shell_command", r#""<untrusted_context>\nOutput: x\nExit Code: 127\n</untrusted_context>""#, true),
            ("run_shell_command", r#""Output: x\nSignal: 9\nBackground PIDs: 8, 9\nProcess Group PGID: 7""#, true),
            ("run_shell_command", r#"[{"text":"Output: x\nExit Code: 1\nProcess Group PGID: 7"}]"#, true),
            ("run_shell_command", r#""Output: Exit Code: 1\nall is well\nProcess Group PGID: 7""#, false),
            ("run_shell_command", r#""Output: x\nExit Code: 0\nSignal: (none)\nProcess Group PGID: 7""#, false),
            ("run_shell_command", r#""Output: Exit Code: 1""#, false),
            ("read_file", r#""x\nExit Code: 1""#, false),
        ] {
            let text = format!(
                r#"{{"session_id":"s","hook_event_name":"AfterTool","tool_name":"{tool}","tool_response":{{"llmContent":{content}}}}}"#
            );
            assert_eq!(read(&text).unwrap().moment, Moment::After { failed }, "{content}");
        }
        for (output, failed) in [(r#"{\"exitCode\":0}"#, false), (r#"{\"exitCode\":1}"#, true), ("no JSON", false)] {
            let text = format!(
                r#"{{"conversation_id":"s","hook_event_name":"postToolUse","tool_name":"Shell","tool_output":"{output}"}}"#
            );
            assert_eq!(read(&text).unwrap().moment, Moment::After { failed }, "{output}");
        }
    }

    /// A tool with a longer name than the gate takes is known by its beginning, its end and its digest, and so never by the name of
    /// another; lists that mean its server or how it ends mean it still.
    #[test]
    fn a_long_name_is_known_by_its_ends() {
        let known = |name: &str| {
            let said = format!(r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"{name}"}}"#);
            read(&said).unwrap().tool
        };
        let long = |middle: &str| format!("mcp__{}__{}{middle}_delete", "s".repeat(40), "t".repeat(60));
        assert_eq!(known(&"x".repeat(100)), "x".repeat(100));
        let (one, other) = (known(&long("a")), known(&long("b")));
        assert_eq!((one.chars().count(), one != other, known(&long("a")) == one), (100, true, true));
        for glob in [format!("mcp__{}__*", "s".repeat(40)), "*_delete".to_owned()] {
            assert!(svc_core::value::glob::ToolGlob::parse(&glob).unwrap().denies(None, &one), "{glob} {one}");
        }
        assert_eq!(known(&"é".repeat(101)).chars().count(), 100);
        let control =
            format!(r#"{{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"{}\n"}}"#, "x".repeat(100));
        assert_eq!(read(&control).unwrap().tool.len(), 100, "what is around it is no part of it");
        assert!(read(&control.replace("xx\\n", "x\\nx")).is_err());
    }

    /// What comes before a tool is never taken for what comes after it, and each that comes after it is known for it.
    #[test]
    fn after_is_known_by_the_name() {
        let said = |name: &str| Json::Object(vec![("hook_event_name".to_owned(), Json::Text(name.to_owned()))]);
        let names = "PreToolUse BeforeTool preToolUse beforeMCPExecution beforeShellExecution PostToolUse AfterTool \
            PostToolUseFailure postToolUse afterMCPExecution postToolUseFailure afterShellExecution";
        for name in names.split_whitespace() {
            let kinds: Vec<_> = Client::ALL.into_iter().filter_map(|it| Kind::of(it, name, None)).collect();
            assert!(!kinds.is_empty(), "{name}");
            assert!(kinds.iter().all(|it| (it.moment != Moment::Before) == is_of_after(&said(name))), "{name}");
        }
        assert!(is_of_after(&said("PostToolBatch")) && !is_of_after(&said("Stop")) && !is_of_after(&Json::Null));
    }

    /// A failure that is a refusal is no run, whoever has refused; any other is one that did not work.
    #[test]
    fn a_refusal_is_no_run() {
        let moment = |failure: &str| {
            let text = format!(
                r#"{{"conversation_id":"s","hook_event_name":"postToolUseFailure","tool_name":"Shell","tool_use_id":"t"{failure}}}"#
            );
            read(&text).unwrap().moment
        };
        assert_eq!(moment(r#","failure_type":"permission_denied","error_message":"no""#), Moment::Withheld);
        for failure in ["", r#","failure_type":"error""#, r#","failure_type":"timeout""#, r#","failure_type":7"#] {
            assert_eq!(moment(failure), Moment::After { failed: true }, "{failure}");
        }
    }

    /// What is no event, of no known client, or of another than was named, is refused with what is wrong.
    #[test]
    fn what_cannot_be_asked_is_refused() {
        for (text, why) in [
            ("[]", "no object"),
            ("{}", "no client"),
            (r#"{"hook_event_name":"Stop"}"#, "no client"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"T"}"#, "`session_id`"),
            (r#"{"hook_event_name":"PreToolUse","session_id":"a b","tool_name":"T"}"#, "`session_id`"),
            (r#"{"hook_event_name":"PreToolUse","session_id":"s"}"#, "`tool_name`"),
            (r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":7}"#, "`tool_name`"),
            (r#"{"hook_event_name":"beforeShellExecution","conversation_id":"s"}"#, "`command`"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.0.contains(why), "{text}: {}", refused.0);
        }
        let gemini = Json::parse(br#"{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"T"}"#).unwrap();
        assert!(Event::read(&gemini, Some(Client::Codex)).unwrap_err().0.contains("no event of codex"));
    }
}
