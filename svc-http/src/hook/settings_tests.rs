//! The hook in coding clients' settings: put in, found, taken out, and nothing else touched.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
use super::*;
use crate::hook::REFUSES;

const COMMAND: &str = "/opt/svc hook --client claude-code";

fn settings(client: Client, text: &str) -> Settings {
    Settings { client, path: PathBuf::from("/h/settings.json"), text: text.to_owned() }
}

fn with(client: Client, text: &str) -> String {
    settings(client, text).with(COMMAND).unwrap()
}

const FULL: &str = r#"{
    "model": "opus",   "zeta": [1, 2],
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        "PreToolUse": [
            { "matcher": "Bash", "hooks": [ { "type": "command", "command": "./check.sh" } ] }
        ]
    },
    "alpha": "ä\u00e9"
}
"#;

/// Putting the hook in and taking it out again leaves every byte, whatever the settings look like.
#[test]
fn in_and_out_again_leaves_every_byte() {
    let compact = r#"{"a":1,"hooks":{"PreToolUse":[{"matcher":"X","hooks":[{"command":"y"}]}]}}"#;
    let tabs = "{\n\t\"a\": {}\n}";
    let empty = r#"{"model": "x",  "hooks": {}}"#;
    let blank = "{\n  \"hooks\": {\n  }\n}\n";
    let open = ["{ }", "{\n}\n", "{\n\n\t}", "{\r\n}\r\n"];
    let no_entry = r#"{"hooks": {"PreToolUse": [], "preToolUse": [ ], "BeforeTool": [\n]}}"#.replace(r"\n", "\n");
    for client in Client::ALL {
        let texts = ["{}\n", "{\n  \"a\": 1\n}\n", FULL, compact, tabs, empty, blank, &no_entry];
        for text in texts.into_iter().chain(open) {
            let new = with(client, text);
            assert_eq!(settings(client, &new).installed(COMMAND), Ok(Installed::Whole), "{client:?} {new}");
            assert_eq!(settings(client, &new).without().unwrap(), text, "{client:?}\n{new}");
            assert_eq!(with(client, &new), new, "twice is once");
            let order = |it: &str| it.lines().filter(|at| text.lines().any(|old| old == *at)).count();
            assert!(order(&new) + 2 >= text.lines().count(), "{client:?} {new}");
        }
    }
}

/// What is written is what the clients document, on a fresh machine: before a tool with what refuses where the hook does not answer, but
/// in Cursor, which is told to refuse then.
#[test]
fn a_fresh_machine_gets_what_the_client_reads() {
    let read = |client| serde_json::from_str::<Value>(&with(client, "")).unwrap();
    let claude = read(Client::ClaudeCode);
    let before =
        format!("{COMMAND} || /bin/sh -c 'echo svc has not allowed this call, so it does not run >&2; exit 2'");
    let hook = json!({ "type": "command", "command": before, "timeout": 60, "onFailure": "block" });
    assert_eq!(claude.pointer("/hooks/PreToolUse"), Some(&json!([{ "matcher": "*", "hooks": [hook] }])));
    assert!(
        claude.pointer("/hooks/PostToolUse/0").is_some() && claude.pointer("/hooks/PostToolUseFailure/0").is_some()
    );
    let cursor = read(Client::Cursor);
    let hook = json!({ "command": COMMAND, "timeout": 60, "failClosed": true });
    assert_eq!((cursor.pointer("/version"), cursor.pointer("/hooks/preToolUse/0")), (Some(&json!(1)), Some(&hook)));
    let gemini = read(Client::Gemini);
    assert_eq!(gemini.pointer("/hooks/BeforeTool/0/hooks/0/timeout"), Some(&json!(60_000)));
    let codex = read(Client::Codex);
    assert_eq!(codex.pointer("/hooks/PreToolUse/0/hooks/0/timeout"), Some(&json!(60)));
    for (settings, event, command) in [
        (&codex, "PreToolUse", before.as_str()),
        (&codex, "PostToolUse", COMMAND),
        (&gemini, "BeforeTool", &before),
        (&gemini, "AfterTool", COMMAND),
        (&claude, "PostToolUse", COMMAND),
    ] {
        assert_eq!(settings.pointer(&format!("/hooks/{event}/0/hooks/0/command")), Some(&json!(command)), "{event}");
    }
}

/// Comments stay where the format has them, and are a fault where it has none.
#[test]
fn comments_stay() {
    let text =
        "// mine\n{\n  // theme\n  \"theme\": \"dark\", // trailing\n  \"hooks\": {\n    /* none yet */\n  },\n}\n";
    let new = with(Client::Gemini, text);
    for comment in ["// mine", "// theme", "// trailing", "/* none yet */"] {
        assert!(new.contains(comment), "{comment} in {new}");
    }
    assert_eq!(settings(Client::Gemini, &new).installed(COMMAND), Ok(Installed::Whole), "{new}");
    let out = settings(Client::Gemini, &new).without().unwrap();
    assert_eq!(settings(Client::Gemini, &out).installed(COMMAND), Ok(Installed::Not), "{out}");
    assert!(out.contains("// theme") && out.contains("// trailing"), "{out}");
    assert!(settings(Client::ClaudeCode, text).with(COMMAND).is_err());
}

/// Comments stay in the line that they are about, commas behind the last of a list stay, and taking the hook out again leaves every
/// byte; also where somebody has put something behind it.
#[test]
fn comments_stay_in_their_line() {
    for text in [
        "{\n  \"a\": 1, // keep me\n}\n",
        "{\n  \"a\": 1 // keep me\n}\n",
        "{\r\n  \"a\": 1, // keep me\r\n}\r\n",
        "{\n  \"a\": 1 /* x */, /* y */ // z\n  // last\n}\n",
        "{\n  \"a\": 1,\n}\n",
        "{ \"a\": 1, /* x */ }",
        "{ /* none yet */ }",
        "{\n  // none yet\n}\n",
        "{\n  \"hooks\": {\n    /* none yet */\n  },\n}\n",
        "{\n  \"hooks\": {\n    \"BeforeTool\": [ // mine\n    ], // them\n  } // all\n}\n",
        "{\n  \"hooks\": {\n    \"BeforeTool\": [\n      {\"hooks\": []}, // mine\n    ]\n  }\n}\n",
    ] {
        let new = with(Client::Gemini, text);
        assert_eq!(settings(Client::Gemini, &new).installed(COMMAND), Ok(Installed::Whole), "{new}");
        assert_eq!(settings(Client::Gemini, &new).without().as_deref(), Ok(text), "{new}");
        let commented = |it: &str| it.contains("//") || it.contains("/*");
        for line in text.lines().filter(|it| commented(it) && !it.contains('}')) {
            let (value, comment) = line.split_at(line.find("//").or_else(|| line.find("/*")).unwrap());
            let stays = |it: &str| it.ends_with(comment.trim_end()) && it.starts_with(value.trim_end());
            assert!(new.lines().any(stays), "{line:?} in {new}");
        }
        let Some((before, after)) = new.rsplit_once('}') else { panic!() };
        let comma = if before.trim_end().ends_with(',') { "" } else { "," };
        if !before.trim_end().ends_with("all") && comma.is_empty() {
            let more = format!("{}\n  \"more\": 2\n}}{after}", before.trim_end());
            let out = settings(Client::Gemini, &more).without().unwrap();
            let expected = text.rsplit_once('}').unwrap().0;
            assert_eq!(out, format!("{}\n  \"more\": 2\n}}{after}", expected.trim_end()), "{more}");
        }
    }
}

/// An older entry of ours is replaced, also where it stands among others; those stay.
#[test]
fn an_older_entry_is_replaced() {
    let old = r#"{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"command":"a.sh"},{"command":"'/old dir/svc' hook --client claude-code","timeout":5}]}]}}"#;
    let before = settings(Client::ClaudeCode, old);
    assert_eq!(before.installed(COMMAND), Ok(Installed::Partly));
    let new = before.with(COMMAND).unwrap();
    assert!(new.contains("a.sh") && !new.contains("old dir") && new.contains(COMMAND), "{new}");
    let none = before.without().unwrap();
    assert_eq!(none, r#"{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"command":"a.sh"}]}]}}"#);
}

/// What an earlier release has written is known for what it is, replaced, and taken out.
#[test]
fn what_an_earlier_release_wrote_is_outdated() {
    for client in Client::ALL {
        let new = serde_json::from_str::<Value>(&with(client, "")).unwrap();
        let earlier = new.to_string().replace(&json!(format!(" {OR_REFUSE}")).to_string()[1..], "\"");
        for earlier in [earlier.as_str(), &earlier.replace(COMMAND, "'/old dir/svc' hook --client gemini")] {
            let before = settings(client, earlier);
            let is_same = client == Client::Cursor && earlier.contains(COMMAND);
            let state = if is_same { Installed::Whole } else { Installed::Partly };
            assert_eq!(before.installed(COMMAND), Ok(state), "{earlier}");
            let now = before.with(COMMAND).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&now).unwrap(), new, "{earlier}");
            assert!(!before.without().unwrap().contains("hook --client"), "{earlier}");
        }
    }
}

/// What a program of another name has put there, in this release or an earlier one, is known for what it is also where it lies elsewhere
/// or is gone: it is replaced, and taken out. Such a command of somebody else's program stays.
#[test]
fn what_a_program_of_another_name_wrote_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &[u8]| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).display().to_string()
    };
    let own = [&b"\x7fELF".repeat(400_000), REFUSES.as_bytes(), b"\0"].concat();
    let (moved, gone) = (program("gate-1.2", &own), folder.path().join("gate-1.1").display().to_string());
    let guard = program("guard", b"#!/bin/sh\nexec guard");
    let did_not_answer = "|| /bin/sh -c 'echo svc did not answer, so this call does not run >&2; exit 2'";
    for client in Client::ALL {
        let new = with(client, "");
        let options = format!("hook --client {}", client.name());
        for line in [options.clone(), format!("{options} --config /h/own.toml")] {
            for (program, tail) in
                [(&moved, ""), (&gone, ""), (&moved, did_not_answer), (&gone, did_not_answer), (&gone, OR_REFUSE)]
            {
                let line = format!("{program} {line}");
                let texts = wanted_by(client, &line, format!("{line} {tail}").trim_end());
                let all = texts.iter().map(|it| (it.event.to_owned(), json!([it.entry]))).collect();
                let mut earlier = json!({ "hooks": Value::Object(all) });
                if client == Client::Cursor {
                    earlier.as_object_mut().unwrap().insert("version".to_owned(), json!(1));
                }
                let before = settings(client, &earlier.to_string());
                assert_eq!(before.installed(COMMAND), Ok(Installed::Partly), "{earlier}");
                let now: Value = serde_json::from_str(&before.with(COMMAND).unwrap()).unwrap();
                assert_eq!(now, serde_json::from_str::<Value>(&new).unwrap(), "{earlier}");
                assert!(!before.without().unwrap().contains("hook --client"), "{earlier}");
                let others = settings(client, &earlier.to_string().replace(program.as_str(), &guard));
                let state =
                    if tail.is_empty() || client == Client::Cursor { Installed::Not } else { Installed::Partly };
                assert_eq!(others.installed(COMMAND), Ok(state), "svc's own words stand behind it, or nothing does");
            }
        }
    }
    // Nobody can tell whose it is: it does not stand everywhere that `install` puts it, or not as that writes it.
    let hook = |line: &str| json!({ "hooks": [{ "type": "command", "command": line, "timeout": 60 }] });
    for (line, after) in [
        (format!("{gone} hook --client codex"), None),
        (
            format!("{gone} hook --client codex"),
            Some(json!({ "hooks": [{ "command": format!("{gone} hook --client codex") }] })),
        ),
        (format!("{gone} hook --client codex --log /x"), Some(hook(&format!("{gone} hook --client codex --log /x")))),
        (format!("{gone} hook --client gemini"), Some(hook(&format!("{gone} hook --client gemini")))),
        (format!("{guard} hook --client codex"), Some(hook(&format!("{guard} hook --client codex")))),
        ("gate hook --client codex".to_owned(), Some(hook("gate hook --client codex"))),
    ] {
        let after: Vec<Value> = after.into_iter().collect();
        let text = json!({ "hooks": { "PreToolUse": [hook(&line)], "PostToolUse": after } }).to_string();
        assert_eq!(settings(Client::Codex, &text).installed(COMMAND), Ok(Installed::Not), "{text}");
        assert_eq!(settings(Client::Codex, &text).without().as_deref(), Ok(text.as_str()));
    }
}

/// A command is the hook's own where it runs this program, or one called as it is: whoever else has a hook with such options keeps it.
#[test]
fn hooks_of_others_stay() {
    let found = |command: &str| {
        let text = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "command": command }] }] } }).to_string();
        let before = settings(Client::ClaudeCode, &text);
        let state = before.installed(COMMAND).unwrap();
        let stays =
            before.without().unwrap() == text && before.with(COMMAND).unwrap().contains(&json!(command).to_string());
        assert_eq!(stays, state == Installed::Not, "{command}");
        state
    };
    for command in [
        "./svc-hook.sh",
        "other hook --client x",
        "svc hook",
        "svc hook --config /h/hook.toml",
        "other hook run --client cursor",
        "hook --client cursor",
        "other --client cursor",
        "/opt/audit hook --client claude-code --log /x",
        "/usr/local/bin/guard hook --client gemini",
        "/usr/local/bin/guard hook --client gemini --config /etc/guard.toml",
        "echo see svc hook --client cursor docs",
        "echo 'svc hook --client cursor'",
        "'svc hook --client cursor",
        "/opt/svc/guard hook --client codex",
        "true || svc hook --client codex",
    ] {
        assert_eq!(found(command), Installed::Not, "{command}");
    }
    let this = std::env::current_exe().unwrap().display().to_string();
    for command in [
        "svc hook --client claude-code",
        "'/a hook /b/svc' hook --client 'cursor'",
        "\"/a b/svc\" hook --client \"cursor\"",
        "/a\\ b/svc hook --client cursor",
        "svc hook --config '/my files/hook.toml' --client codex",
        "svc.exe hook --client=codex",
        "SVC_HOOK_TIMEOUT_MS=9000 svc hook --client claude-code",
        "svc hook --client codex || exit 2",
        "/opt/gate-1.2 hook --client gemini --config /h/.config/svc/hook.toml || exit 2",
        &format!("'{this}' hook --client codex"),
        &format!("'/elsewhere/{}' hook --client codex", this.rsplit('/').next().unwrap()),
    ] {
        assert_eq!(found(command), Installed::Partly, "{command}");
    }
    let text = r#"{"hooks":{"BeforeTool":[{"matcher":"x","hooks":[{"command":"/usr/local/bin/guard hook --client gemini"}]}]}}"#;
    assert_eq!(settings(Client::Gemini, text).without().as_deref(), Ok(text));
    assert_eq!(settings(Client::Gemini, &with(Client::Gemini, text)).without().as_deref(), Ok(text));
}

/// What the client was told against hooks is found where each of them has it, and nothing else is taken for it.
#[test]
fn what_is_said_against_hooks_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let said = |client, text: &str| {
        let settings = Settings { client, path: folder.path().join("settings.json"), text: text.to_owned() };
        settings.disabled(folder.path())
    };
    let gemini = |member: &str| format!(r#"{{ {member} }}"#);
    for (client, text, name) in [
        (Client::ClaudeCode, r#"{"disableAllHooks":true}"#.to_owned(), "`disableAllHooks`"),
        (Client::Gemini, gemini(r#""hooksConfig": {"enabled": false}"#), "`hooksConfig.enabled`"),
        (Client::Gemini, gemini(r#""hooksConfig": {"disabled": ["other", "svc"]}"#), "`hooksConfig.disabled`"),
        (Client::Gemini, gemini(r#""hooks": {"enabled": false}"#), "`hooks.enabled`"),
        (Client::Gemini, gemini(&format!(r#""hooks": {{"disabled": ["{COMMAND}"]}}"#)), "`hooks.disabled`"),
    ] {
        let why = said(client, &text).unwrap().unwrap();
        assert!(why.contains(name) && why.contains("settings.json"), "{text}: {why}");
        let with = Settings { client, path: folder.path().join("settings.json"), text: text.clone() }.with(COMMAND);
        assert!(said(client, &with.unwrap()).unwrap().is_some(), "{text}");
    }
    for (client, text) in [
        (Client::ClaudeCode, r#"{"disableAllHooks":false}"#),
        (Client::ClaudeCode, r#"{"disableAllHooks":"true"}"#),
        (Client::Cursor, r#"{"disableAllHooks":true,"hooksConfig":{"enabled":false}}"#),
        (Client::Gemini, r#"{"hooksConfig":{"enabled":true,"disabled":["other"]},"disableAllHooks":true}"#),
        (Client::Codex, r#"{"disableAllHooks":true}"#),
    ] {
        assert_eq!(said(client, text), Ok(None), "{text}");
    }
    for (toml, name) in [
        ("[features]\nhooks = false\n", Some("`features.hooks`")),
        ("features.codex_hooks = false\n", Some("`features.codex_hooks`")),
        ("[features]\nhooks = true\ncodex_hooks = false\n", None),
        ("model = \"m\"\n[features]\nother = false\n", None),
        ("hooks = false\n", None),
    ] {
        fs::write(folder.path().join("config.toml"), toml).unwrap();
        let why = said(Client::Codex, "").unwrap();
        assert_eq!(why.is_some(), name.is_some(), "{toml}: {why:?}");
        assert!(why.is_none_or(|it| it.contains(name.unwrap_or_default()) && it.contains("config.toml")), "{toml}");
    }
    fs::write(folder.path().join("config.toml"), "[features\n").unwrap();
    assert!(said(Client::Codex, "").unwrap_err().0.contains("is not TOML"));
}

/// What a project says against hooks is found, in the directory that the client is started in and above it in the repository; also
/// where nobody can say what the client makes of it.
#[test]
fn what_a_project_says_against_hooks_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (home, project) = (folder.path().join("home"), folder.path().join("project"));
    let within = project.join("a/b");
    for made in [&home, &within, &project.join(".git")] {
        fs::create_dir_all(made).unwrap();
    }
    for (client, file, text, name) in [
        (Client::ClaudeCode, ".claude/settings.json", r#"{"disableAllHooks":true}"#, "`disableAllHooks`"),
        (Client::ClaudeCode, ".claude/settings.local.json", "\u{feff}{\"disableAllHooks\":true}", "`disableAllHooks`"),
        (Client::ClaudeCode, ".claude/settings.json", r#"{"a":1,"a":2,"disableAllHooks":true}"#, "may say so"),
        (Client::Gemini, ".gemini/settings.json", r#"{"hooksConfig":{"enabled":false}}"#, "`hooksConfig.enabled`"),
        (Client::Gemini, ".gemini/settings.json", r#"{"hooksConfig":{"disabled":["svc"]}}"#, "`hooksConfig.disabled`"),
        (Client::Codex, ".codex/config.toml", "[features]\nhooks = false\n", "`features.hooks`"),
        (Client::Codex, ".codex/config.toml", "[features\n", "may say so"),
    ] {
        for (at, started) in [(&within, &within), (&project, &within), (&project, &project)] {
            let path = at.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let own = Settings { client, path: home.join("settings.json"), text: with(client, "") };
            let why = own.disabled(started).unwrap().unwrap();
            assert!(why.contains(name) && why.contains(&*path.display().to_string()), "{text}: {why}");
            assert_eq!(own.disabled(&home), Ok(None), "another directory");
            assert_eq!(own.disabled(&project).unwrap().is_some(), at == &project, "below the one it is started in");
            fs::remove_file(&path).unwrap();
            assert_eq!(own.disabled(started), Ok(None), "{text}");
        }
    }
    // Outside of a repository the directory itself counts, and settings of the user's own are none of a project's.
    let file = home.join(".claude/settings.json");
    fs::create_dir_all(home.join(".claude/below")).unwrap();
    fs::write(&file, r#"{"disableAllHooks":true}"#).unwrap();
    let own = Settings { client: Client::ClaudeCode, path: file, text: r#"{"disableAllHooks":true}"#.to_owned() };
    assert!(own.disabled(&home).unwrap().is_some_and(|it| !it.contains("project's") && !it.contains(';')));
    let other = Settings { path: home.join("settings.json"), text: String::new(), ..own };
    assert!(other.disabled(&home).unwrap().is_some_and(|it| it.contains("which is the project's, is `true`")));
    assert_eq!(other.disabled(&home.join(".claude/below")), Ok(None));
}

/// A name that stands twice in an object is a fault, wherever that is: of two, clients read one, and which one is not ours to guess.
#[test]
fn a_name_stands_once() {
    for text in [
        r#"{"hooks":{},"hooks":{}}"#,
        r#"{"hooks":{"PreToolUse":[],"PreToolUse":[]}}"#,
        r#"{"hooks":{"PreToolUse":[{"hooks":[],"hooks":[]}]}}"#,
        r#"{"a":[{"b":1,"\u0062":2}]}"#,
    ] {
        for client in Client::ALL {
            let refused = settings(client, text).with(COMMAND).unwrap_err();
            assert!(refused.0.contains("twice") && refused.0.contains("/h/settings.json"), "{}", refused.0);
            assert!(settings(client, text).without().is_err() && settings(client, text).installed(COMMAND).is_err());
        }
    }
    assert!(settings(Client::Gemini, r#"{"a":{"b":1},"b":{"b":1}}"#).with(COMMAND).is_ok());
}

/// What is not JSON, or not of the client's shape, is refused and said so.
#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "[]",
        "{",
        "{\"a\":1,}",
        "{'a':1}",
        "nonsense",
        "{}{}",
        "{\"hooks\":[]}",
        "{\"hooks\":{\"PreToolUse\":{}}}",
        "{\"a\":\"\u{1}\"}",
        "// c\n{}",
        "{\"a\":01}",
    ] {
        let refused = settings(Client::ClaudeCode, text).with(COMMAND).unwrap_err();
        assert!(refused.0.contains("nothing was changed"), "{text}: {}", refused.0);
        assert!(settings(Client::ClaudeCode, text).without().is_err(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(9_999), "]".repeat(9_999));
    assert!(settings(Client::ClaudeCode, &deep).with(COMMAND).is_err());
}
