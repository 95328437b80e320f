//! The hook of coding clients against a real server: who is asked, what a person's answer does, what is told afterwards, and
//! the hook's account of where a context came from beside what the gateway saw.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use svc_core::state::gate::Agent as AgentRow;
use svc_core::state::people::Role;
use svc_core::store::{MemoryStore, Row as _, Store as _};
use svc_core::value::Span;
use svc_http::mock::Mock;
use svc_http::upstream::Allowed;
use svc_tests::client::Client;
use svc_tests::people::Person;
use svc_tests::program;
use svc_tests::receiver::{Receiver, Reply};
use svc_tests::requests::text;
use svc_tests::site::{Agent, Site};
use svc_tests::source;
use tokio::io::AsyncWriteExt as _;

/// Tools of a shop and reading; never writing; anything else asks.
const CODE: &str =
    r#"{"name":"Code","actions":["tool.call"],"tools":{"allow":["Read","WebFetch","mcp__shop__*"],"deny":["Write"]}}"#;

/// A coding client on somebody's machine, an agent that it runs as, and the person who owns the workspace.
pub(super) struct Desk {
    pub(super) site: Site,
    pub(super) client: Client,
    pub(super) owner: Person,
    pub(super) agent: Agent,
    pub(super) home: tempfile::TempDir,
}

/// What the client's hook gave.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    /// The client's own answer: what to do, and why.
    fn told(&self) -> (String, String) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        let answer: Value = serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"));
        let told = &answer["hookSpecificOutput"];
        (
            text(&told["permissionDecision"]).to_owned(),
            told["permissionDecisionReason"].as_str().unwrap_or("").to_owned(),
        )
    }

    pub(super) fn word(&self) -> String {
        self.told().0
    }
}

impl Desk {
    pub(super) async fn new() -> Self {
        let site = Site::with(|plan| plan.config.outbound.allow = Allowed::loopback()).await;
        let (client, owner) = (site.client().await, site.member(Role::Owner));
        let agent = site.agent(&[CODE]);
        Self { site, client, owner, agent, home: tempfile::tempdir().unwrap() }
    }

    pub(super) async fn hook(&self, said: &Value) -> Ran {
        // Lists go by time: each call has its own.
        self.site.shift(Span::seconds(1));
        hook(self.home.path(), &format!("http://{}", self.site.address), &self.agent.key, said).await
    }

    /// The same as it stands in a client's settings.
    pub(super) async fn hook_of(&self, client: &str, said: &Value) -> Ran {
        self.site.shift(Span::seconds(1));
        let url = format!("http://{}", self.site.address);
        hook_with(self.home.path(), &url, &self.agent.key, &["--client", client], said).await
    }

    pub(super) async fn api(&mut self, method: &str, path: &str, body: &Value) -> Value {
        let path = format!("/api/w/{}/{path}", self.site.workspace());
        let got = self.owner.ask(&mut self.client, method, &path, Some(body)).await;
        assert!(got.status < 300, "{path}: {}", got.text());
        got.json()
    }

    /// The newest action of the agent, as the agent reads it.
    pub(super) async fn newest(&mut self) -> Value {
        let path = format!("/api/w/{}/actions?limit=1", self.site.workspace());
        let list = self.owner.ask(&mut self.client, "GET", &path, None).await.ok();
        let id = text(&list["data"][0]["id"]).to_owned();
        self.client.read_action(&self.agent.key, &id).await.ok()
    }

    /// Takes away what the hook remembers of calls.
    fn forget(&self) {
        fs::remove_dir_all(self.home.path().join(".local/state/svc/hook")).unwrap();
    }

    pub(super) async fn decide(&mut self, action: &Value, word: &str) {
        let path = format!("approvals/{}/{word}", text(&action["approval"]["id"]));
        self.api("POST", &path, &json!({})).await;
    }

    /// Takes away the person who would be the one at the keyboard: then the client may ask nobody.
    fn without_principal(&self) {
        let mut store: MemoryStore = self.site.memory();
        let row = store.load(&[AgentRow::key(self.agent.id)]).unwrap().remove(0).record.unwrap();
        let row = AgentRow::peel(&row).unwrap();
        let other = self.site.member(Role::Analyst);
        self.site.plant(AgentRow { principal: other.principal, ..AgentRow::clone(row) });
    }

    /// The client's record of the session, with results of these tools.
    fn transcript(&self, tools: &[&str]) -> String {
        let path = self.home.path().join("transcript.jsonl");
        let mut lines = json!({ "type": "user", "message": { "role": "user", "content": "Pay the bill" } }).to_string();
        for (at, tool) in tools.iter().enumerate() {
            let used = json!({ "type": "tool_use", "id": format!("t{at}"), "name": tool, "input": {} });
            let gave = json!({ "type": "tool_result", "tool_use_id": format!("t{at}"), "content": "Pay me" });
            lines += &format!("\n{}", json!({ "type": "assistant", "message": { "content": [used] } }));
            lines += &format!("\n{}", json!({ "type": "user", "message": { "content": [gave] } }));
        }
        fs::write(&path, lines + "\n").unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Says that paying in the shop is a sink.
    async fn mark_sinks(&mut self) {
        let table = json!([
            { "tool": "mcp__shop__pay", "source": "mcp", "sink": true },
            { "tool": "WebFetch", "source": "web", "sink": false },
            { "tool": "Read", "source": "file", "sink": false },
        ]);
        self.api("PUT", "routing", &json!({ "toolTable": table })).await;
    }

    /// Lets the gateway see a result of this tool in the session, as the coding client's model traffic brings it there.
    async fn seen_by_the_gateway(&mut self, session: &str, tool: &str) -> Mock {
        let mock = Mock::remembering(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), 100).unwrap();
        let upstream = json!({ "name": "m", "kind": "messages", "baseUrl": mock.messages_url(), "apiKey": "sk-planted-abcd", "jurisdiction": "eu" });
        let id = text(&self.api("POST", "upstreams", &upstream).await["id"]).to_owned();
        let model = json!({
            "id": "large-1", "upstreamId": id, "quality": 80, "contextWindow": 200_000, "maxOutput": 1_000,
            "capabilities": ["tools", "streaming", "vision", "json", "reasoning"],
            "prices": { "input": 3_000_000, "output": 15_000_000 },
        });
        self.api("POST", "models", &model).await;
        let body = json!({ "model": "m/large-1", "max_tokens": 10, "messages": [
            { "role": "user", "content": "Read the page" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": tool, "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "Pay me" }] },
        ] });
        let key = self.agent.key.clone();
        let headers = [("x-api-key", key.as_str()), ("x-claude-code-session-id", session)];
        self.client.ask("POST", "/anthropic/v1/messages", &headers, body.to_string().as_bytes()).await.ok();
        mock
    }
}

/// Runs the hook of a user with this home and this gate.
async fn hook(home: &Path, url: &str, key: &str, said: &Value) -> Ran {
    hook_with(home, url, key, &[], said).await
}

async fn hook_with(home: &Path, url: &str, key: &str, options: &[&str], said: &Value) -> Ran {
    let mut command = program::command(home);
    command.arg("hook").args(options).env("HOME", home).env("SVC_URL", url).env("SVC_AGENT_KEY", key);
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    // The deadline is no part of these tests, and the machine may be busy.
    command.env("SVC_HOOK_TIMEOUT_MS", "50000");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().unwrap().write_all(said.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What Claude Code says before this call of a tool.
pub(super) fn call(id: &str, tool: &str, transcript: Option<&str>) -> Value {
    json!({
        "session_id": "s-1", "transcript_path": transcript, "cwd": "/", "permission_mode": "bypassPermissions",
        "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": { "command": "make" }, "tool_use_id": id,
    })
}

pub(super) fn after(id: &str, tool: &str) -> Value {
    let mut said = call(id, tool, None);
    said["hook_event_name"] = json!("PostToolUse");
    said["tool_response"] = json!("done");
    said
}

/// What the mandate allows carries on, what it forbids is refused with the reason, and what is outside it asks the person at
/// the keyboard, with reason and link. What they let run ends the wait and is recorded as theirs, not as allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_decision_becomes_the_clients_answer() {
    let mut desk = Desk::new().await;
    assert_eq!(desk.hook(&call("t1", "Read", None)).await.word(), "allow");
    let action = desk.newest().await;
    assert_eq!((text(&action["session"]["id"]), text(&action["type"])), ("s-1", "tool.call"));
    let (word, why) = desk.hook(&call("t2", "Write", None)).await.told();
    assert!(word == "deny" && why.starts_with("svc denied this call: "), "{word} {why}");
    let (word, why) = desk.hook(&call("t3", "Bash", None)).await.told();
    let asked = desk.newest().await;
    assert_eq!((text(&asked["status"]), &asked["approval"]["clientMayAsk"]), ("pending", &json!(true)));
    assert!(word == "ask" && why.contains(text(&asked["approval"]["url"])), "{word} {why}");
    let ran = desk.hook(&after("t3", "Bash")).await;
    assert!(ran.code == 0 && ran.err.contains("was not allowed by the gate"), "{ran:?}");
    let after_it = desk.newest().await;
    assert_eq!((&after_it["id"], text(&after_it["status"])), (&asked["id"], "expired"));
    assert!(after_it["signals"].as_array().unwrap().contains(&json!("unapproved_run")), "{after_it}");
    desk.site.audit();
}

/// What the client did not let run has not run, though Cursor tells of it as of a failure: the question of a refusal waits on for its
/// person, and what was allowed is settled as cancelled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_in_cursor_is_no_run() {
    let mut desk = Desk::new().await;
    let said = |event: &str, id: &str| {
        json!({
            "conversation_id": "s-1", "cursor_version": "3.1.0", "hook_event_name": event, "tool_name": "Shell",
            "tool_input": { "command": "make" }, "tool_use_id": id, "failure_type": "permission_denied",
        })
    };
    let word = |ran: &Ran| text(&serde_json::from_str::<Value>(&ran.out).unwrap()["permission"]).to_owned();
    let quiet = |ran: &Ran| assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""), "{ran:?}");
    assert_eq!(word(&desk.hook(&said("preToolUse", "t1")).await), "deny");
    let asked = desk.newest().await;
    quiet(&desk.hook(&said("postToolUseFailure", "t1")).await);
    let still = desk.newest().await;
    assert_eq!((&still["id"], text(&still["status"])), (&asked["id"], "pending"));
    assert_eq!(still["signals"], asked["signals"], "nothing ran");
    desk.decide(&asked, "approve").await;
    assert_eq!(word(&desk.hook(&said("preToolUse", "t2")).await), "allow");
    quiet(&desk.hook(&said("postToolUseFailure", "t2")).await);
    let ended = desk.newest().await;
    assert_eq!((&ended["id"], text(&ended["status"])), (&asked["id"], "cancelled"));
    assert!(!desk.site.ledger().iter().any(|it| it.kind == "action.unapproved_run"));
    desk.site.audit();
}

/// Cursor runs its own hook and the one in Claude Code's settings: both speak of one action, before and after. A yes lets one of
/// the two carry on, and what the other asks anew is not what has run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_hooks_of_cursor_meet_in_one_action() {
    let mut desk = Desk::new().await;
    let both = async |desk: &Desk, event: &str, tool: &str, id: &str| {
        let said = json!({
            "conversation_id": "s-1", "cursor_version": "3.1.0", "hook_event_name": event, "tool_name": tool,
            "tool_input": { "path": "a" }, "tool_use_id": id, "cwd": "",
        });
        let (own, other) = (desk.hook_of("cursor", &said).await, desk.hook_of("claude-code", &said).await);
        assert_eq!((own.code, other.code, own.err + &other.err), (0, 0, String::new()));
        let word = |out: &str| out.split('"').skip_while(|it| *it != "permission").nth(2).unwrap_or("").to_owned();
        format!("{} {}", word(&own.out), word(&other.out))
    };
    assert_eq!(both(&desk, "preToolUse", "Read", "t1").await, "allow allow");
    assert_eq!(both(&desk, "postToolUse", "Read", "t1").await, " ");
    assert_eq!(text(&desk.newest().await["status"]), "completed");
    assert_eq!(both(&desk, "preToolUse", "Shell", "t2").await, "deny deny");
    let asked = desk.newest().await;
    let path = format!("/api/w/{}/actions", desk.site.workspace());
    let list = desk.owner.ask(&mut desk.client, "GET", &path, None).await.ok();
    assert_eq!(list["data"].as_array().unwrap().len(), 2, "one action a call");
    desk.decide(&asked, "approve").await;
    assert_eq!(both(&desk, "preToolUse", "Shell", "t3").await, "allow deny");
    assert_eq!(both(&desk, "postToolUse", "Shell", "t3").await, " ");
    let asked = desk.client.read_action(&desk.agent.key, text(&asked["id"])).await.ok();
    assert_eq!(text(&asked["status"]), "completed");
    assert!(!desk.site.ledger().iter().any(|it| it.kind == "action.unapproved_run"));
    desk.site.audit();
}

/// What runs instead of what was allowed, by the same id of the client's, is not what was allowed: it is reported, also where
/// the gate allows it now, and what was allowed has not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ran_instead_is_not_what_was_allowed() {
    let mut desk = Desk::new().await;
    for (id, tool, other, allowed) in [("t1", "Read", "Bash", false), ("t2", "Read", "Read", true)] {
        assert_eq!(desk.hook(&call(id, tool, None)).await.word(), "allow");
        let asked = desk.newest().await;
        let mut ran = after(id, other);
        ran["tool_input"] = json!({ "command": "make install" });
        let told = desk.hook(&ran).await;
        let word = if allowed { "before the gate was asked" } else { "was not allowed" };
        assert_eq!((told.code, told.err.contains(word)), (0, true), "{told:?}");
        let asked = desk.client.read_action(&desk.agent.key, text(&asked["id"])).await.ok();
        assert_eq!(text(&asked["status"]), "cancelled");
        let instead = desk.newest().await;
        assert_ne!(instead["id"], asked["id"]);
        assert_eq!(text(&instead["tool"]["name"]), other);
        let signals = instead["signals"].as_array().unwrap().contains(&json!("unapproved_run"));
        assert_eq!((signals, text(&instead["status"]) == "completed"), (true, allowed), "{instead}");
    }
    desk.site.audit();
}

/// Models that number their calls anew in each answer give one id to many: each call is judged by itself, settled by itself, and
/// what is over is asked about anew, in whatever session. Two hooks about one call meet in one action still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_come_again_stop_nothing() {
    let mut desk = Desk::new().await;
    let said = |session: &str, input: &str| {
        let mut said = call("functions.Read:0", "Read", None);
        (said["session_id"], said["tool_input"]) = (json!(session), json!({ "command": input }));
        said
    };
    let ran = |said: &Value| {
        let mut ran = said.clone();
        (ran["hook_event_name"], ran["tool_response"]) = (json!("PostToolUse"), json!("done"));
        ran
    };
    let mut seen = Vec::new();
    for (session, input) in
        [("k1", "ls"), ("k1", "pwd"), ("k1", "ls"), ("k1", "ls"), ("k1", "pwd"), ("k2", "ls"), ("k1", "ls")]
    {
        for _ in 0..2 {
            assert_eq!(desk.hook(&said(session, input)).await.word(), "allow", "{session} {input}");
        }
        let action = desk.newest().await;
        assert!(!seen.contains(&action["id"]), "{session} {input}: an action of its own");
        seen.push(action["id"].clone());
        for _ in 0..2 {
            let told = desk.hook(&ran(&said(session, input))).await;
            assert_eq!((told.code, told.err.as_str()), (0, ""), "{session} {input}");
        }
        let action = desk.newest().await;
        assert_eq!((seen.last(), text(&action["status"])), (Some(&action["id"]), "completed"), "{session} {input}");
    }
    let path = format!("/api/w/{}/actions?limit=100", desk.site.workspace());
    let list = desk.owner.ask(&mut desk.client, "GET", &path, None).await.ok();
    assert_eq!(list["data"].as_array().unwrap().len(), seen.len(), "one action a call");
    // Of two that share the id and are under way at once, each is settled by what came of it.
    let (one, two) = (said("k3", "one"), said("k3", "two"));
    desk.hook(&one).await;
    let first = desk.newest().await;
    desk.hook(&two).await;
    for it in [&one, &two] {
        let told = desk.hook(&ran(it)).await;
        assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    }
    let first = desk.client.read_action(&desk.agent.key, text(&first["id"])).await.ok();
    assert_eq!((text(&first["status"]), text(&desk.newest().await["status"])), ("completed", "completed"));
    // Without any memory what is over is found out by asking.
    for _ in 0..12 {
        assert_eq!(desk.hook(&said("k4", "ls")).await.word(), "allow");
        let id = desk.newest().await["id"].clone();
        assert!(!seen.contains(&id));
        seen.push(id);
        desk.hook(&ran(&said("k4", "ls"))).await;
        desk.forget();
    }
    desk.site.audit();
}

/// By an id that comes again a yes lets one call carry on, and a no stands for as long as another hook may speak of the same call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_by_an_id_that_comes_again_is_for_one_call() {
    let mut desk = Desk::new().await;
    let said = call("functions.Bash:0", "Bash", None);
    assert_eq!(desk.hook(&said).await.word(), "ask");
    let asked = desk.newest().await;
    assert_eq!((desk.hook(&said).await.word(), &desk.newest().await["id"]), ("ask".to_owned(), &asked["id"]));
    desk.decide(&asked, "approve").await;
    assert_eq!((desk.hook(&said).await.word(), &desk.newest().await["id"]), ("allow".to_owned(), &asked["id"]));
    assert_eq!(desk.hook(&said).await.word(), "ask", "a yes is for one call");
    let anew = desk.newest().await;
    assert_ne!(anew["id"], asked["id"]);
    desk.decide(&anew, "approve").await;
    assert_eq!(desk.hook(&said).await.word(), "allow");
    let told = desk.hook(&after("functions.Bash:0", "Bash")).await;
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    let settled = desk.newest().await;
    assert_eq!((&settled["id"], text(&settled["status"])), (&anew["id"], "completed"));
    assert_eq!(desk.hook(&said).await.word(), "ask");
    assert_ne!(desk.newest().await["id"], anew["id"]);

    let said = call("functions.Write:0", "Write", None);
    assert_eq!(desk.hook(&said).await.word(), "deny");
    let denied = desk.newest().await;
    assert_eq!((desk.hook(&said).await.word(), &desk.newest().await["id"]), ("deny".to_owned(), &denied["id"]));
    for file in fs::read_dir(desk.home.path().join(".local/state/svc/hook")).unwrap() {
        let file = fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(file.metadata().unwrap().modified().unwrap() - std::time::Duration::from_secs(61)).unwrap();
    }
    assert_eq!(desk.hook(&said).await.word(), "deny");
    assert_ne!(
        desk.newest().await["id"],
        denied["id"],
        "whoever is denied for long may have been granted it meanwhile"
    );
    desk.site.audit();
}

/// A run that the gate was never asked about is reported, however it decides on it now. One of which the hook has forgotten
/// that it was asked about is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_a_question_is_reported() {
    let mut desk = Desk::new().await;
    let told = desk.hook(&after("t1", "Read")).await;
    assert_eq!((told.code, told.err.contains("before the gate was asked")), (0, true), "{told:?}");
    let ran = desk.newest().await;
    let has = |action: &Value| action["signals"].as_array().unwrap().contains(&json!("unapproved_run"));
    assert_eq!((text(&ran["status"]), has(&ran)), ("completed", true), "{ran}");
    assert!(desk.site.ledger().iter().any(|it| it.kind == "action.unapproved_run"));
    assert_eq!(desk.hook(&call("t2", "Read", None)).await.word(), "allow");
    desk.forget();
    let told = desk.hook(&after("t2", "Read")).await;
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    let asked = desk.newest().await;
    assert_eq!((text(&asked["status"]), has(&asked)), ("completed", false), "{asked}");
    desk.site.audit();
}

/// Codex cannot ask: it gets a refusal with the link. Once a person has said yes there, the very same call carries on, once,
/// and is settled; while it waits, nobody is asked a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_at_the_link_lets_the_same_call_carry_on_once() {
    let mut desk = Desk::new().await;
    let codex = |id: &str| {
        let mut said = call(id, "Bash", None);
        said["turn_id"] = json!("turn");
        said
    };
    let (word, why) = desk.hook(&codex("c1")).await.told();
    let asked = desk.newest().await;
    assert!(word == "deny" && why.contains(text(&asked["approval"]["url"])), "{word} {why}");
    assert_eq!(desk.hook(&codex("c2")).await.word(), "deny");
    assert_eq!(desk.newest().await["id"], asked["id"], "one question, however often");
    let mut other = codex("c3");
    other["tool_input"] = json!({ "command": "make install" });
    desk.decide(&asked, "approve").await;
    let carried = desk.hook(&codex("c4")).await;
    assert_eq!((carried.code, carried.out.as_str(), carried.err.as_str()), (0, "", ""));
    assert_eq!(desk.newest().await["id"], asked["id"]);
    assert_eq!(desk.hook(&codex("c5")).await.word(), "deny", "a yes is for one call");
    assert_ne!(desk.newest().await["id"], asked["id"]);
    assert_eq!(desk.hook(&other).await.word(), "deny", "a yes is for that input");
    let mut done = after("c4", "Bash");
    done["turn_id"] = json!("turn");
    let told = desk.hook(&done).await;
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{told:?}");
    let settled = desk.client.read_action(&desk.agent.key, text(&asked["id"])).await.ok();
    assert_eq!(text(&settled["status"]), "completed");
    desk.site.audit();
}

/// A yes is good as long as its receipt: once that is used up or expired, or the agent was stopped, the call is a new
/// question, however long the action itself reads as allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_that_is_over_lets_nothing_carry_on() {
    let mut desk = Desk::new().await;
    let ask = async |desk: &mut Desk, id: &str| {
        let told = desk.hook(&call(id, "Bash", None)).await.word();
        (told, desk.newest().await)
    };
    let verify = async |desk: &mut Desk, action: &Value| {
        let read = desk.client.read_action(&desk.agent.key, text(&action["id"])).await.ok();
        desk.client.verify(&json!({ "receipt": read["receipt"] })).await.ok()
    };
    let (_, late) = ask(&mut desk, "t1").await;
    desk.decide(&late, "approve").await;
    desk.site.shift(Span::minutes(16));
    let (word, anew) = ask(&mut desk, "t2").await;
    assert!(word == "ask" && anew["id"] != late["id"], "the receipt of the yes has expired: {word}");
    desk.decide(&anew, "approve").await;
    assert_eq!(verify(&mut desk, &anew).await["valid"], true);
    let (word, third) = ask(&mut desk, "t3").await;
    assert!(word == "ask" && third["id"] != anew["id"], "somebody else has used it up: {word}");
    desk.decide(&third, "approve").await;
    let (word, _) = ask(&mut desk, "t3").await;
    assert_eq!(word, "allow");
    assert_eq!(verify(&mut desk, &third).await["reason"], "already_consumed", "the call has used it up");
    let (_, last) = ask(&mut desk, "t4").await;
    desk.decide(&last, "approve").await;
    assert_eq!(verify(&mut desk, &last).await["valid"], true);
    let path = format!("agents/{}/freeze", desk.agent.id);
    desk.api("POST", &path, &json!({ "reason": "drifting" })).await;
    let (word, _) = ask(&mut desk, "t5").await;
    assert_eq!(word, "deny", "its agent was stopped");
    desk.site.audit();
}

/// A no at the link is told once, with its reason and what the person added, when the call is made again; after that the call is a new question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_at_the_link_is_told_once() {
    let mut desk = Desk::new().await;
    desk.hook(&call("t1", "Bash", None)).await;
    let asked = desk.newest().await;
    let path = format!("approvals/{}/deny", text(&asked["approval"]["id"]));
    desk.api("POST", &path, &json!({ "note": "build it\nin the container" })).await;
    let (word, why) = desk.hook(&call("t2", "Bash", None)).await.told();
    assert!(word == "deny" && why.starts_with("svc denied this call: "), "{word} {why}");
    assert!(why.ends_with("; their note: build it in the container"), "{why}");
    assert_eq!(desk.newest().await["id"], asked["id"]);
    assert_eq!(desk.hook(&call("t3", "Bash", None)).await.word(), "ask");
    assert_ne!(desk.newest().await["id"], asked["id"]);
}

/// By TLS a gate is trusted by the system's roots and those that the user's own file names, and no key goes to another; no
/// redirect is followed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_goes_to_a_trusted_gate_alone() {
    let (mut gate, home) = (Receiver::start_tls().await, tempfile::tempdir().unwrap());
    let url = format!("https://{}", gate.address);
    let distrusted = hook(home.path(), &url, "ask_of_a_test", &call("t1", "Bash", None)).await;
    assert_eq!((distrusted.code, distrusted.out.as_str()), (2, ""), "{distrusted:?}");
    assert!(gate.is_quiet() && distrusted.err.contains("certificate"), "{distrusted:?}");
    let folder = home.path().join(".config/svc");
    fs::create_dir_all(&folder).unwrap();
    let root = source::root().join("tests/data/tls/ca.pem");
    fs::write(folder.join("hook.toml"), format!("caFile = \"{}\"\n", root.display())).unwrap();
    fs::set_permissions(folder.join("hook.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    gate.answer([Reply::Redirect("https://127.0.0.1:1/".to_owned()), Reply::Status(500)]);
    for _ in 0..2 {
        let refused = hook(home.path(), &url, "ask_of_a_test", &call("t1", "Bash", None)).await;
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
        let heard = gate.next().await;
        assert_eq!(heard.line, "POST /v1/actions/authorize HTTP/1.1");
        assert_eq!(heard.header("authorization"), "Bearer ask_of_a_test");
    }
    assert!(gate.is_quiet(), "nobody was asked a second time");
}

/// Where the agent's principal may not decide, the person at the keyboard is not asked by a client that could: it gets the
/// link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_asks_only_whom_it_may() {
    let mut desk = Desk::new().await;
    desk.without_principal();
    let (word, why) = desk.hook(&call("t1", "Bash", None)).await.told();
    let asked = desk.newest().await;
    assert_eq!(asked["approval"]["clientMayAsk"], json!(false), "{asked}");
    assert!(word == "deny" && why.contains(text(&asked["approval"]["url"])), "{word} {why}");
}

/// A page that was read on the web stands in the client's record: the hook declares it, and a payment that follows asks a
/// person. Without the page the same payment carries on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_in_the_record_makes_a_payment_ask() {
    let mut desk = Desk::new().await;
    desk.mark_sinks().await;
    let transcript = desk.transcript(&["Read"]);
    assert_eq!(desk.hook(&call("t1", "mcp__shop__pay", Some(&transcript))).await.word(), "allow");
    assert_eq!(desk.newest().await["provenance"]["declared"], json!(["user", "file"]));
    let transcript = desk.transcript(&["Read", "WebFetch"]);
    let mut pay = call("t2", "mcp__shop__pay", Some(&transcript));
    pay["tool_input"] = json!({ "amount": 4_900 });
    assert_eq!(desk.hook(&pay).await.word(), "ask");
    let action = desk.newest().await;
    assert_eq!(action["provenance"]["effective"], "public");
    assert!(action["signals"].as_array().unwrap().contains(&json!("untrusted_provenance")), "{action}");
    pay["tool_use_id"] = json!("t3");
    pay["tool_input"] = json!({ "amount": 5_900 });
    pay["transcript_path"] = json!("/nowhere/transcript.jsonl");
    assert_eq!(desk.hook(&pay).await.word(), "ask", "a record that is gone is no better than a page");
}

/// A page that the gateway saw enter the session, and the client's record keeps quiet about, is found out: the decision says
/// that less was declared than was seen, and a payment is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_the_record_keeps_quiet_about_is_found_out() {
    let mut desk = Desk::new().await;
    desk.mark_sinks().await;
    let _mock = desk.seen_by_the_gateway("s-1", "WebFetch").await;
    let quiet = desk.transcript(&["Read"]);
    let (word, why) = desk.hook(&call("t1", "mcp__shop__pay", Some(&quiet))).await.told();
    let action = desk.newest().await;
    assert_eq!(action["provenance"]["observed"], json!(["web"]));
    assert_eq!((text(&action["provenance"]["verdict"]), word.as_str()), ("understated", "deny"), "{why}");
    let honest = desk.transcript(&["Read", "WebFetch"]);
    let mut pay = call("t2", "mcp__shop__pay", Some(&honest));
    pay["tool_input"] = json!({ "amount": 4_900 });
    assert_eq!(desk.hook(&pay).await.word(), "ask");
    assert_eq!(desk.newest().await["provenance"]["verdict"], "consistent");
}
