//! Command lines: help, versions, and what is not understood.

use serde_json::Value;

use crate::{Ran, run, svc};

/// A command line that is not understood is exit 2, with usage on standard error and nothing on standard output.
#[test]
fn what_is_not_understood_is_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["", "nonsense", "doctor --nonsense", "receipt", "receipt verify r.jws", "doctor --data"] {
        let Ran { code, out, err } = run(folder.path(), line);
        assert_eq!((code, out.as_str()), (2, ""), "{line}");
        assert!(err.contains("--help"), "{line}: {err}");
    }
}

/// Help and version are answers: exit 0, standard output.
#[test]
fn help_and_version_are_exit_0() {
    let folder = tempfile::tempdir().unwrap();
    let version = run(folder.path(), "--version");
    assert_eq!(version, Ran { code: 0, out: format!("svc {}\n", env!("CARGO_PKG_VERSION")), err: String::new() });
    let help = run(folder.path(), "--help");
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for command in [
        "backup",
        "dev",
        "doctor",
        "erase",
        "evidence",
        "hook",
        "init",
        "key",
        "licences",
        "migrate",
        "mock-upstream",
        "models",
        "receipt",
        "serve",
        "version",
    ] {
        assert!(help.out.contains(&format!("\n  {command}")), "{command} in {}", help.out);
    }
    for command in ["key", "key create", "hook install", "serve"] {
        let asked = run(folder.path(), &format!("help {command}"));
        assert_eq!(asked, run(folder.path(), &format!("{command} --help")), "the same, asked for as a command");
        assert_eq!(asked.code, 0, "{command}: {}", asked.err);
    }
    let settings = run(folder.path(), "serve --help").out;
    for key in svc_http::config::KEYS {
        assert!(settings.contains(&key.env()) && settings.contains(key.name), "{}", key.name);
    }
    let knobs = run(folder.path(), "mock-upstream --help").out;
    for knob in svc_http::mock::KNOBS {
        assert!(knobs.contains(&format!("\n  {}", knob.name)) && knobs.contains(knob.help), "{}", knob.name);
    }
}

/// `--version` is one line, and stays it; the rest of what somebody is asked who reports a fault is told by a command of its own.
#[test]
fn version_says_what_this_program_is() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "-V"), run(folder.path(), "--version"));
    let told: Value = serde_json::from_str(&run(folder.path(), "version --json").out).unwrap();
    let schema = svc_store::sqlite::SCHEMA;
    assert_eq!(
        [&told["version"], &told["interface"], &told["schema"]],
        [&env!("CARGO_PKG_VERSION").into(), &"2026-10-01".into(), &Value::from(schema)]
    );
    let features = told["features"].as_array().unwrap();
    let Ran { code, out, err } = run(folder.path(), "version");
    assert_eq!((code, &*err), (0, ""));
    assert!(out.starts_with(&run(folder.path(), "--version").out), "{out}");
    assert!(out.contains(&format!("\nschema    {schema}\n")) && out.contains("\ninterface 2026-10-01\n"), "{out}");
    assert!(features.iter().all(|it| out.contains(it.as_str().unwrap())), "{out}");
}

/// What is passed on goes with the licences of all that it is built of, its own among them.
#[test]
fn licences_are_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let told = run(folder.path(), "licences");
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    for part in ["hyper ", "rusqlite ", "Mozilla Public License", "The svc contributors", "Jason Miller"] {
        assert!(told.out.contains(part), "{part}");
    }
    assert_eq!(run(folder.path(), "licenses"), told);
    let read: Value = serde_json::from_str(&run(folder.path(), "licences --json").out).unwrap();
    let hyper = read["packages"].as_array().unwrap().iter().find(|it| it["name"] == "hyper").unwrap();
    assert_eq!(hyper["license"], "MIT");
    let of = |it: &Value| it["of"].as_str().unwrap().split(", ").any(|it| it.starts_with("hyper "));
    assert!(read["notices"].as_array().unwrap().iter().any(of), "the text that goes along with it");
}

/// Faults of the settings are exit 1, all of them at once, each with what to do; the value of a secret is not shown.
#[test]
fn faults_of_the_settings_are_exit_1() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("my.toml"), "[limits]\ngatePerMinutes = 1\n").unwrap();
    let mut command = svc(folder.path());
    command.args(["serve", "--config", "my.toml"]);
    command.env("SVC_LISTN", "127.0.0.1:0").env("SVC_MASTER_KEY", "hunter2").env("SVC_STORE_URL", "postgres://db/svc");
    let Ran { code, out, err } = command.output().unwrap().into();
    assert_eq!((code, out.as_str()), (1, ""));
    let mut lines: Vec<&str> = err.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "     Did you mean `SVC_LISTEN`? Correct the name or unset it.",
            "     Did you mean `limits.gatePerMinute`? Correct the name or remove the line.",
            "svc: `SVC_LISTN` in the environment is no setting",
            "svc: `SVC_MASTER_KEY` in the environment must be 32 bytes in base64url (43 characters) or hexadecimal (64)",
            "svc: `SVC_STORE_URL` in the environment names a database, and the address names no user",
            "svc: `limits.gatePerMinutes` in my.toml is no setting",
        ]
    );
}

/// A database server that does not answer is named, host and port, and its password is not.
#[test]
fn a_database_server_that_is_away_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["serve --listen 127.0.0.1:0", "init", "migrate", "sign-in-link ada@example.com"] {
        let mut asked = svc(folder.path());
        asked.args(command.split(' ')).env("SVC_STORE_URL", "postgres://svc:hunter2@127.0.0.1:1/gate");
        let Ran { code, err, .. } = asked.output().unwrap().into();
        assert_eq!(code, 1, "{command}: {err}");
        let told = "svc: postgres://127.0.0.1:1/gate: the database server cannot be reached: ";
        assert!(err.contains(told) && !err.contains("hunter2"), "{command}: {err}");
    }
}

/// Every command takes `--config` and `--data`, and its help names those that it reads; every one that prints a result takes
/// `--json`.
#[test]
fn every_command_takes_the_common_options() {
    let folder = tempfile::tempdir().unwrap();
    let (both, config, none) = ((true, true), (true, false), (false, false));
    for (command, reads, prints) in [
        ("dev", both, true),
        ("doctor", both, true),
        ("erase", both, true),
        ("evidence", none, false),
        ("evidence verify", none, true),
        ("hook", config, false),
        ("hook install", config, true),
        ("hook status", config, true),
        ("hook uninstall", none, true),
        ("init", both, true),
        ("key create", both, true),
        ("key reseal", both, true),
        ("key rotate", both, true),
        ("licences", none, true),
        ("migrate", both, true),
        ("mock-upstream", none, true),
        ("models update", both, true),
        ("receipt verify", none, true),
        ("serve", both, false),
    ] {
        let Ran { code, out: help, err } = run(folder.path(), &format!("{command} --config a.toml --data a --help"));
        assert_eq!((code, err.as_str()), (0, ""), "{command}");
        let named = (help.contains("--config <FILE>"), help.contains("--data <DIR>"));
        assert_eq!((named, help.contains("--json")), (reads, prints), "{command}: {help}");
    }
}
