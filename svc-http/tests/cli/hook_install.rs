//! `svc hook install`, `uninstall` and `status` over homes of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::hook::{User, answering, decision};
use crate::server::{Server, text};
use crate::{PROGRAM, Ran};

const SETTINGS: &str = r#"{
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}
    ]
  },
  "alpha": true
}
"#;

/// A change is shown and made; what was there stays to the byte; the hook is tested once; a second time nothing changes; and
/// taking it out gives back what there was.
#[test]
fn install_changes_what_it_shows_and_uninstall_takes_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut dev = Server::start(folder.path(), "--json");
    let home: Value = serde_json::from_str(&dev.line()).unwrap();
    let user = User::new().set("SVC_URL", text(&home, "baseUrl")).set("SVC_AGENT_KEY", text(&home, "agentKey"));
    let path = user.write("home/.claude/settings.json", SETTINGS);
    let asked = user.run(&["install"], "");
    assert!(asked.code == 1 && asked.err.contains("--yes") && asked.err.contains("+ "), "{asked:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS, "nobody agreed");
    let done = user.run(&["install", "--yes"], "");
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    assert!(done.err.contains("tested once; the gate at http://127.0.0.1:"), "{done:?}");
    let new = fs::read_to_string(&path).unwrap();
    for line in new.lines().filter(|it| !SETTINGS.contains(it)) {
        assert!(done.err.contains(&format!("+ {line}")), "{line} was not shown: {}", done.err);
    }
    let read: Value = serde_json::from_str(&new).unwrap();
    let ours = &read["hooks"]["PreToolUse"][1]["hooks"][0];
    assert_eq!((&ours["onFailure"], &ours["timeout"]), (&json!("block"), &json!(60)));
    let command = ours["command"].as_str().unwrap();
    assert!(command.contains("hook --client claude-code --config /") && command.contains(" || "), "{command}");
    let again = user.run(&["install", "--yes", "--json"], "");
    assert_eq!(again.code, 0, "{again:?}");
    let told: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(told["installed"][0]["changed"], json!(false));
    assert_eq!(fs::read_to_string(&path).unwrap(), new);
    let status: Value = serde_json::from_str(&user.run(&["status", "--json"], "").out).unwrap();
    let states: Vec<_> = status["clients"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["installed", "absent", "absent", "absent"]);
    let gone = user.run(&["uninstall", "--yes"], "");
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS);
    assert_eq!(dev.stop().0, Some(0));
}

/// Every client's settings are made where there are none; without a gate the test says what will be refused, and the
/// settings stand.
#[test]
fn every_client_is_installed_and_a_failing_test_is_told() {
    let user = User::at("http://127.0.0.1:1");
    for (client, file) in [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("cursor", ".cursor/hooks.json"),
        ("gemini", ".gemini/settings.json"),
    ] {
        let done = user.run(&["install", "--yes", "--client", client], "");
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{done:?}");
        assert!(done.err.contains("cannot be reached") && done.err.contains("runs no tool"), "{done:?}");
        let text = fs::read_to_string(user.home().join(file)).unwrap();
        assert!(text.contains(&format!("hook --client {client}")), "{text}");
        assert!(user.run(&["status", "--client", client], "").out.contains("installed"), "{client}");
    }
    let none = User::new().run(&["install", "--yes"], "");
    assert!(none.code == 1 && none.err.contains("--client"), "{none:?}");
}

/// A client that was told to run no hook is not guarded by one: `install` says so instead of that it works, and `status` by which
/// setting, until that is gone.
#[test]
fn a_client_that_runs_no_hook_is_not_called_guarded() {
    let user = User::at(&answering(decision(&[])));
    for (client, file, text, name) in [
        ("claude-code", ".claude/settings.json", "{\"disableAllHooks\": true}\n", "disableAllHooks"),
        ("gemini", ".gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"svc\"]}}\n", "hooksConfig.disabled"),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks"),
    ] {
        let path = user.write(&format!("home/{file}"), text);
        let status = || user.run(&["status", "--client", client], "").out;
        assert!(status().contains("absent"), "{client}");
        let done = user.run(&["install", "--yes", "--json", "--client", client], "");
        assert!(done.code == 1 && done.err.contains("does not run it") && done.err.contains(name), "{done:?}");
        assert!(!done.err.contains("tested once"), "{done:?}");
        let told: Value = serde_json::from_str(&done.out).unwrap();
        assert!(told["installed"][0]["disabled"].as_str().unwrap().contains(name), "{told}");
        assert!(status().contains("disabled") && status().contains(name), "{}", status());
        let row: Value = serde_json::from_str(&user.run(&["status", "--json", "--client", client], "").out).unwrap();
        assert_eq!(row["clients"][0]["state"], "disabled");
        let text = fs::read_to_string(&path).unwrap().replace("true", "false").replace("= false", "= true");
        fs::write(&path, text.replace("\"svc\"]", "\"other\"]")).unwrap();
        assert!(status().contains("installed"), "{}", status());
    }
}

/// A project's own settings may switch hooks off: in there no client is called guarded, and the file is named; elsewhere it is.
#[test]
fn a_project_that_switches_hooks_off_is_named() {
    let user = User::at("http://127.0.0.1:1");
    user.write("project/.git/HEAD", "");
    for (client, file, text) in [
        ("claude-code", ".claude/settings.json", "{\"disableAllHooks\":true}"),
        ("claude-code", ".claude/settings.local.json", "{\"disableAllHooks\":true}"),
        ("gemini", ".gemini/settings.json", "{\"hooksConfig\":{\"enabled\":false}}"),
        ("codex", ".codex/config.toml", "[features]\nhooks=false\n"),
    ] {
        assert!(user.run(&["install", "--yes", "--client", client], "").err.contains("was tested: "), "{client}");
        let path = user.write(&format!("project/{file}"), text);
        let done = user.run(&["install", "--yes", "--json", "--client", client], "");
        let is_named = |it: &str| it.contains(&*path.to_string_lossy());
        assert!(done.code == 1 && is_named(&done.err) && !done.err.contains("was tested: "), "{done:?}");
        let told: Value = serde_json::from_str(&done.out).unwrap();
        assert!(is_named(told["installed"][0]["disabled"].as_str().unwrap()), "{told}");
        let status = user.run(&["status", "--client", client], "").out;
        assert!(status.contains("disabled") && is_named(&status), "{status}");
        fs::remove_file(path).unwrap();
        assert!(user.run(&["status", "--client", client], "").out.contains("installed"), "{client}");
    }
}

/// Settings lie where the client reads them: in the directory that a variable names, and nowhere where it names one that is another
/// wherever the client is started.
#[test]
fn settings_lie_where_the_client_reads_them() {
    let elsewhere = tempfile::tempdir().unwrap();
    for (client, name, file) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ] {
        let gate = || User::at("http://127.0.0.1:1");
        let user = gate().set(name, elsewhere.path().to_str().unwrap());
        user.run(&["install", "--yes", "--client", client], "");
        let text = fs::read_to_string(elsewhere.path().join(file)).unwrap();
        assert!(text.contains(&format!("hook --client {client}")), "{text}");
        let user = gate().set(name, "cfg");
        for command in [&["install", "--yes"][..], &["install", "--yes", "--client", client]] {
            let refused = user.run(command, "");
            let why = format!("`{name}` must be an absolute path, and is `cfg`");
            assert!(refused.code == 1 && refused.err.contains(&why), "{refused:?}");
        }
        let status = user.run(&["status"], "").out;
        assert!(status.contains("unreadable") && status.contains(name), "{status}");
        assert!(fs::read_dir(user.home()).unwrap().next().is_none(), "nothing was written");
    }
}

/// Where the hook cannot answer, as it was ended or is not there any more, the shell that runs it refuses in its place, with words to it:
/// clients let a tool run for every other code, and two of them for one without words.
#[test]
fn a_hook_that_is_gone_refuses() {
    for (client, file, event) in [
        ("claude-code", ".claude/settings.json", "PreToolUse"),
        ("codex", ".codex/hooks.json", "PreToolUse"),
        ("gemini", ".gemini/settings.json", "BeforeTool"),
    ] {
        let user = User::at("http://127.0.0.1:1");
        user.run(&["install", "--yes", "--client", client], "");
        let read: Value = serde_json::from_str(&fs::read_to_string(user.home().join(file)).unwrap()).unwrap();
        let line = read["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        let ended = user.project().join("ended");
        for signal in ["INT", "TERM", "HUP", "QUIT", "KILL", "PIPE", ""] {
            fs::write(&ended, format!("#!/bin/sh\nkill -{signal} $$\n")).unwrap();
            fs::set_permissions(&ended, fs::Permissions::from_mode(0o755)).unwrap();
            let program = if signal.is_empty() { user.project().join("none") } else { ended.clone() };
            let line = line.replace(PROGRAM, program.to_str().unwrap());
            let ran: Ran = Command::new("/bin/sh").args(["-c", &line]).output().unwrap().into();
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{line}: {ran:?}");
            assert!(ran.err.ends_with("svc has not allowed this call, so it does not run\n"), "{ran:?}");
        }
    }
}

/// Whoever installs the hook for Codex is told what it does not ask about, each time.
#[test]
fn what_codex_does_not_ask_about_is_told() {
    let user = User::at("http://127.0.0.1:1");
    for client in ["codex", "codex", "gemini"] {
        let done = user.run(&["install", "--yes", "--client", client], "");
        assert_eq!(done.err.contains("`write_stdin`"), client == "codex", "{done:?}");
    }
}

/// The command that is installed names the user's own file, so that no variable of a project can name another gate or another list: one
/// that is there, and else one that is made, shown first, with the gate of the environment and without the key.
#[test]
fn the_command_names_the_users_own_file() {
    let user = User::new();
    let own = user.write("home/.config/svc/hook.toml", "url = \"http://127.0.0.1:1\"\nagentKey = \"ask_of_a_test\"\n");
    assert_eq!(user.run(&["install", "--yes", "--client", "codex"], "").code, 1, "its gate is not there");
    let names_it = |user: &User, own: &Path| {
        let text = fs::read_to_string(user.home().join(".codex/hooks.json")).unwrap();
        assert_eq!(text.matches(&format!("hook --client codex --config {}", own.display())).count(), 2, "{text}");
    };
    names_it(&user, &own);
    assert!(fs::read_to_string(&own).unwrap().ends_with("_test\"\n"), "it stays");

    let url = "http://127.0.0.1:1";
    let user = User::at(url);
    let own = user.home().join(".config/svc/hook.toml");
    let install = ["install", "--client", "codex"];
    let asked = user.run(&install, "");
    assert!(asked.code == 1 && asked.err.contains("+ url = ") && !own.exists(), "{asked:?}");
    let install = ["install", "--yes", "--client", "codex"];
    user.run(&install, "");
    names_it(&user, &own);
    let text = fs::read_to_string(&own).unwrap();
    assert!(text.ends_with(&format!("\nurl = \"{url}\"\n")) && !text.contains("ask_"), "{text}");
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
    let again = user.run(&install, "");
    assert!(!again.err.contains("+ "), "{again:?}");
    // What a project puts into the environment means no other gate now.
    let elsewhere = user.set("SVC_URL", "http://127.0.0.1:2");
    let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "T", "turn_id": "t" });
    let refused = elsewhere.run(&["--client", "codex", "--config", own.to_str().unwrap()], &said.to_string());
    assert!(refused.code == 2 && refused.err.contains("is not what"), "{refused:?}");
    // Where it has gone it is made again, though the settings stay.
    fs::remove_file(&own).unwrap();
    let again = elsewhere.run(&install, "");
    assert!(again.err.contains("stays as it is") && own.exists(), "{again:?}");
    let nowhere = User::new();
    nowhere.run(&install, "");
    assert!(!fs::read_to_string(nowhere.home().join(".config/svc/hook.toml")).unwrap().contains("url ="));
}

/// A file that is none of the hook's, such as the server's settings, is refused before a client is told to run the hook with it:
/// it would run no tool any more. Help says which file is meant.
#[test]
fn a_file_that_is_not_the_hooks_changes_no_client() {
    let user = User::at("http://127.0.0.1:1");
    let settings = user.write("home/.claude/settings.json", SETTINGS);
    let server = user.write("svc.toml", "listen = \"127.0.0.1:8080\"\n[limits]\nbodyBytes = 1048576\n");
    let absent = user.home().join("none.toml");
    for (file, why) in [(&server, "is no setting of the hook"), (&absent, "is not there")] {
        let refused = user.run(&["install", "--yes", "--config", file.to_str().unwrap()], "");
        assert!(refused.code == 1 && refused.err.contains(why), "{refused:?}");
        assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);
    }
    for words in [&["--help"][..], &["install", "--help"], &["status", "--help"]] {
        let help = user.run(words, "").out;
        assert!(help.contains("hook.toml") && help.contains("own file") && !help.contains("svc.toml"), "{help}");
    }
}

/// Whatever the program's file is called, it finds what it has put there: once installed it is not put there again, another name's
/// takes its place, and it is taken out by either.
#[test]
fn the_program_may_have_any_name() {
    let user = User::at("http://127.0.0.1:1");
    let path = user.write("home/.claude/settings.json", SETTINGS);
    let named = ["gate-1.2", "my gate"].map(|name| {
        let place = user.home().join(name);
        fs::hard_link(PROGRAM, &place).or_else(|_| fs::copy(PROGRAM, &place).map(drop)).unwrap();
        place
    });
    let install = ["install", "--yes", "--client", "claude-code"];
    let count = || fs::read_to_string(&path).unwrap().matches("--client claude-code").count();
    for place in &named {
        for _ in 0..2 {
            let done = user.run_as(place, &install, "");
            assert!(done.err.contains("cannot be reached"), "{done:?}");
            assert_eq!(count(), 3, "one for each event: {done:?}");
        }
        let name = place.file_name().unwrap().to_str().unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains(name));
        let told = user.run_as(place, &["status", "--client", "claude-code"], "");
        assert!(told.out.contains("installed"), "{told:?}");
    }
    let told = user.run(&["status", "--client", "claude-code"], "");
    assert!(told.out.contains("outdated"), "another program's: {told:?}");
    assert_eq!(user.run_as(&named[0], &["uninstall", "--yes"], "").code, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS);
}

/// What another copy of the program has put there under a name of its own, with a file of its own and in the words of an earlier release,
/// is known wherever that copy lies, or lay: it is outdated, replaced, and taken out.
#[test]
fn what_another_copy_has_installed_is_known() {
    let user = User::at("http://127.0.0.1:1");
    let own = user.write("home/own.toml", "");
    let path = user.write("home/.claude/settings.json", SETTINGS);
    let copy = user.home().join("gate");
    let client = ["--yes", "--client", "claude-code"];
    let count = |text: &str| text.matches("--client claude-code").count();
    let tail = " || /bin/sh -c 'echo svc has not allowed this call, so it does not run >&2; exit 2'";
    for (without, is_gone) in [("", false), (tail, false), (tail, true)] {
        fs::copy(PROGRAM, &copy).unwrap();
        user.run_as(&copy, &[&["install", "--config", own.to_str().unwrap()][..], &client].concat(), "");
        let text = fs::read_to_string(&path).unwrap();
        let text = if without.is_empty() { text } else { text.replace(without, "") };
        assert!(count(&text) == 3 && text.contains("/gate hook"), "{text}");
        fs::write(&path, &text).unwrap();
        if is_gone {
            fs::remove_file(&copy).unwrap();
        }
        let told = user.run(&["status", "--client", "claude-code"], "");
        assert!(told.out.contains("outdated"), "{told:?}");
        user.run(&[&["install"][..], &client].concat(), "");
        let renewed = fs::read_to_string(&path).unwrap();
        assert!(count(&renewed) == 3 && !renewed.contains("/gate hook"), "{renewed}");
        fs::write(&path, &text).unwrap();
        assert_eq!(user.run(&[&["uninstall"][..], &client].concat(), "").code, 0);
        assert_eq!(fs::read_to_string(&path).unwrap(), SETTINGS);
    }
}

/// A client whose settings nobody can find or read keeps the hook in no other client's; it is named.
#[test]
fn one_client_keeps_the_hook_in_no_other() {
    for (name, value, file) in [
        ("CLAUDE_CONFIG_DIR", "cfg", None),
        ("CODEX_HOME", "cfg", None),
        ("GEMINI_CLI_HOME", "./cfg", None),
        ("A", "b", Some(".claude/settings.json")),
    ] {
        let user = User::at("http://127.0.0.1:1");
        user.run(&["install", "--yes", "--client", "cursor"], "");
        let settings = user.home().join(".cursor/hooks.json");
        let user = user.set(name, value);
        if let Some(file) = file {
            user.write(&format!("home/{file}"), "not JSON");
        }
        let why = file.unwrap_or(name);
        let gone = user.run(&["uninstall", "--yes", "--json"], "");
        assert!(gone.code == 1 && gone.err.contains(why), "{gone:?}");
        assert!(!fs::read_to_string(&settings).unwrap().contains("svc hook"), "{gone:?}");
        let told: Value = serde_json::from_str(&gone.out).unwrap();
        let rows = told["uninstalled"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[2]["changed"]), (4, &json!(true)), "{told}");
        let left: Vec<_> = rows.iter().filter_map(|it| it["why"].as_str()).collect();
        assert!(matches!(left[..], [one] if one.contains(why)), "{told}");
    }
}

/// Where the hook's own file, or what it names or lies beside it, cannot be read, every call is refused: that is no hook that stands
/// as it should.
#[test]
fn a_hook_that_refuses_every_call_is_called_broken() {
    let user = User::at("http://127.0.0.1:1");
    user.run(&["install", "--yes", "--client", "codex"], "");
    let own = user.home().join(".config/svc/hook.toml");
    let status = |more: &[&str]| user.run(&[&["status", "--client", "codex"][..], more].concat(), "");
    let said = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "T", "turn_id": "t" });
    assert_eq!(status(&[]).code, 0);
    let (is_there, open) = (own.display().to_string(), fs::Permissions::from_mode(0o666));
    for (file, text, mode, why) in [
        ("hook.toml", "", Some(&open), "is open to others"),
        ("hook.toml", "url = ", None, "is not TOML"),
        ("hook.toml", "url = \"gate\"", None, "must be"),
        ("hook.toml", "caFile = \"/nowhere.pem\"\nurl = \"https://127.0.0.1:1\"", None, "/nowhere.pem"),
        ("hook-unasked.txt", "Read", Some(&open), "is open to others"),
        ("hook-unasked.txt", "a//b", None, "line 1 of"),
        ("hook.toml", "gone", None, "is not there"),
    ] {
        for name in ["hook.toml", "hook-unasked.txt"] {
            user.write(&format!("home/.config/svc/{name}"), if name == file { text } else { "" });
        }
        let path = own.with_file_name(file);
        if let Some(mode) = mode {
            fs::set_permissions(&path, mode.clone()).unwrap();
        }
        if text == "gone" {
            fs::remove_file(&path).unwrap();
        }
        let told = status(&[]);
        assert!(told.code == 1 && told.out.contains("broken") && told.err.contains(why), "{why}: {told:?}");
        let told = status(&["--json"]);
        let row: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!((told.code, &row["clients"][0]["state"]), (1, &json!("broken")), "{why}");
        let refused = user.run(&["--client", "codex", "--config", &is_there], &said.to_string());
        assert_eq!(refused.code, 2, "{why}: {refused:?}");
        assert!(user.run(&["install", "--yes", "--client", "codex"], "").code == 1);
    }
    assert!(own.exists() && status(&[]).out.contains("installed"), "the file that was away is made again");
    // Where another program wrote the hook it is read as well.
    let other = user.home().join("other-svc");
    fs::copy(env!("CARGO_BIN_EXE_svc"), &other).unwrap();
    let status = || user.run_as(&other, &["status", "--client", "codex"], "");
    assert!(status().out.contains("outdated"), "{:?}", status());
    user.write("home/.config/svc/hook.toml", "url = ");
    let told = status();
    assert!(told.code == 1 && told.out.contains("broken") && told.err.contains("is not TOML"), "{told:?}");
}

/// Settings in which a name stands twice are refused and stay: clients read the last of two, and a hook in the first would never
/// run.
#[test]
fn a_name_that_stands_twice_is_refused() {
    let user = User::at("http://127.0.0.1:1");
    for (text, name, line) in [
        ("{\n  \"hooks\": {},\n  \"a\": 1,\n  \"hooks\": {}\n}\n", "hooks", 4),
        ("{\"hooks\": {\"PreToolUse\": [],\n\"PreToolUse\": []}}", "PreToolUse", 2),
        ("{\"hooks\": {},\n\"h\\u006foks\": {}}", "hooks", 2),
    ] {
        let path = user.write("home/.claude/settings.json", text);
        let wanted = format!("has `{name}` twice in one object, again in line {line}");
        for command in [&["install", "--yes"][..], &["uninstall", "--yes"], &["status"]] {
            let ran = user.run(&[command, &["--client", "claude-code"]].concat(), "");
            let is_told = ran.err.contains(&wanted) && ran.err.contains(&*path.to_string_lossy());
            assert!(ran.code == 1 && is_told && ran.err.contains("nothing was changed"), "{text}: {ran:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

/// Settings that are not JSON are refused and stay; a link stays one, also to what is not there yet.
#[test]
fn what_is_not_json_stays_as_it_is() {
    let user = User::at("http://127.0.0.1:1");
    for text in ["{\n  \"a\": 1,\n}\n", "not JSON", "[]", "{\"hooks\": []}"] {
        let path = user.write("home/.claude/settings.json", text);
        for command in ["install", "uninstall"] {
            let ran = user.run(&[command, "--yes", "--client", "claude-code"], "");
            assert!(ran.code == 1 && ran.err.contains("nothing was changed"), "{text}: {ran:?}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let status = user.run(&["status", "--client", "claude-code"], "");
        assert_eq!(status.code, 1, "{status:?}");
    }
    let real = user.home().join("dotfiles/claude.json");
    let link = user.home().join(".claude/settings.json");
    fs::remove_file(&link).unwrap();
    // Also one to what is not there yet, by way of another.
    std::os::unix::fs::symlink("../.claude/second", &link).unwrap();
    std::os::unix::fs::symlink(&real, user.home().join(".claude/second")).unwrap();
    for there in [false, true] {
        assert_eq!(real.exists(), there);
        user.run(&["install", "--yes", "--client", "claude-code"], "");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::symlink_metadata(user.home().join(".claude/second")).unwrap().is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("svc hook"), "through the links");
        fs::write(&real, "{}\n").unwrap();
    }
}

/// What is no file is refused: to read a pipe may never end. So it is in a project, where nobody can say what the client makes of it.
#[test]
fn what_is_no_file_is_refused() {
    let user = User::at(&answering(decision(&[])));
    let pipe = |path: &str| {
        let path = user.write(path, "");
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    let own = pipe("home/.claude/settings.json");
    for command in ["install", "uninstall"] {
        let refused = user.run(&[command, "--yes", "--client", "claude-code"], "");
        let why = format!("{} is no file", own.display());
        assert!(refused.code == 1 && refused.err.contains(&why), "{refused:?}");
    }
    fs::remove_file(&own).unwrap();
    let projects = pipe("project/.claude/settings.json");
    let told = user.run(&["install", "--yes", "--client", "claude-code"], "");
    assert!(told.code == 1 && told.err.contains(&format!("{} is no file", projects.display())), "{told:?}");
}
