//! What need not be asked: whose list that is, and which tools it means.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::Ran;
use crate::hook::{User, answering, call, decision, refused};

const QUIET: Ran = Ran { code: 0, out: String::new(), err: String::new() };

/// What the hook says that is run with the user's own file.
fn said_with(user: &User, client: &str, said: &Value) -> Ran {
    let config = user.home().join(".config/svc/hook.toml");
    user.run(&["--client", client, "--config", config.to_str().unwrap()], &said.to_string())
}

fn unasked(list: &str) -> User {
    let user = User::at("http://127.0.0.1:1");
    user.write("home/.config/svc/hook.toml", "");
    user.write("home/.config/svc/hook-unasked.txt", list);
    user
}

/// Tools that the user's own file names need not be asked; the client goes by its own rules then. A broken file refuses.
#[test]
fn what_need_not_be_asked_is_not() {
    let user = unasked("# reading\nRead\n\nmcp__docs__*\nshop/list*\n");
    let said = |tool: &str| {
        let mut said = call("t");
        said["tool_name"] = json!(tool);
        said_with(&user, "claude-code", &said)
    };
    for tool in ["Read", "mcp__docs__find", "mcp__docs__", "mcp__shop__list_all"] {
        assert_eq!(said(tool), QUIET, "{tool}");
    }
    for tool in ["read", "ReadMany", "mcp__doc", "Bash", "mcp__docs__evil__pay"] {
        refused(&said(tool), "cannot be reached");
    }
    for (bad, why) in [("*\n", "no constraint"), ("Read\n a//b\n", "line 2")] {
        user.write("home/.config/svc/hook-unasked.txt", bad);
        refused(&said("Read"), why);
    }
    let path = user.write("home/.config/svc/hook-unasked.txt", "Read\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    refused(&said("Read"), "open to others");
    fs::remove_file(&path).unwrap();
    user.write("project/hook-unasked.txt", "Bash\n");
    refused(&said("Bash"), "cannot be reached");
}

/// Tools of servers are asked about where the list says nothing of their server, however the client shows them.
#[test]
fn a_list_of_own_tools_lets_no_servers_tool_pass() {
    let user = unasked("*_search\nMCP:*\nRead\n");
    let cursor = |event: &str, tool: &str| {
        json!({
            "conversation_id": "s-1", "cursor_version": "3.1.0", "cwd": "/", "hook_event_name": event, "tool_name": tool,
            "tool_input": {},
        })
    };
    let mut claude = call("t");
    claude["tool_name"] = json!("mcp__evil__x_search");
    let mut named = claude.clone();
    named["mcp_server"] = json!({ "name": "evil" });
    let gemini = json!({
        "session_id": "s-1", "cwd": "/", "hook_event_name": "BeforeTool", "tool_name": "mcp_evil_x_search",
        "tool_input": {}, "mcp_context": { "server_name": "evil" },
    });
    for (client, said) in [
        ("cursor", cursor("preToolUse", "MCP:evil_search")),
        ("cursor", cursor("beforeMCPExecution", "evil_search")),
        ("cursor", cursor("beforeMCPExecution", "Read")),
        ("claude-code", claude),
        ("claude-code", named),
        ("gemini", gemini),
    ] {
        refused(&said_with(&user, client, &said), "cannot be reached");
    }
    let own = said_with(&user, "cursor", &cursor("preToolUse", "grep_search"));
    assert_eq!((own.code, own.out.as_str()), (0, "{\"permission\":\"allow\"}\n"), "{own:?}");
}

/// A list is the user's where the command line says so: one that a variable leads to may be the project's, which sets variables, and
/// what the client calls the project is that wherever the agent has gone.
#[test]
fn a_variable_leads_to_no_list() {
    let user = unasked("Bash\n");
    refused(&user.said(&call("t")), "cannot be reached");
    assert_eq!(said_with(&user, "claude-code", &call("t")), QUIET);
    let elsewhere = tempfile::tempdir().unwrap();
    for (name, at) in [("XDG_CONFIG_HOME", "svc"), ("HOME", ".config/svc")] {
        let list = elsewhere.path().join(at).join("hook-unasked.txt");
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, "Bash\n").unwrap();
        fs::set_permissions(&list, fs::Permissions::from_mode(0o600)).unwrap();
        let user = User::at("http://127.0.0.1:1").set(name, elsewhere.path().to_str().unwrap());
        refused(&user.said(&call("t")), "cannot be reached");
    }
    for name in ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"] {
        let user = User::at("http://127.0.0.1:1").set(name, elsewhere.path().to_str().unwrap());
        let config = elsewhere.path().join("svc/hook.toml");
        fs::write(&config, "").unwrap();
        fs::set_permissions(&config, fs::Permissions::from_mode(0o600)).unwrap();
        let ran = user.run(&["--config", config.to_str().unwrap()], &call("t").to_string());
        refused(&ran, "which is the project's");
    }
}

/// Where a project says that it is the user's home, what lies in it is the project's all the same.
#[test]
fn a_project_does_not_become_a_home() {
    let allowing = answering(decision(&[]));
    let at_home = |user: User| {
        let project = user.project().to_str().unwrap().to_owned();
        user.set("HOME", &project)
    };
    let user = at_home(User::new());
    user.write("project/.config/svc/hook.toml", &format!("url = \"{allowing}\"\nagentKey = \"ask_of_a_test\"\n"));
    let mut said = call("t");
    said["cwd"] = json!(user.project());
    refused(&user.said(&said), "which is the project's");
    let user = at_home(User::at("https://127.0.0.1:1").set("SSL_CERT_FILE", "ca.pem"));
    user.write("project/ca.pem", "");
    refused(&user.said(&call("t")), "which is the project's");
}
