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
        "migrate",
        "mock-upstream",
        "models",
        "receipt",
        "serve",
    ] {
        assert!(help.out.contains(&format!("\n  {command}")), "{command} in {}", help.out);
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

/// Every command takes `--config` and `--data`, and every one that prints a result takes `--json`.
#[test]
fn every_command_takes_the_common_options() {
    let folder = tempfile::tempdir().unwrap();
    for (command, prints) in [
        ("dev", true),
        ("doctor", true),
        ("erase", true),
        ("evidence verify", true),
        ("hook", false),
        ("hook install", true),
        ("hook status", true),
        ("hook uninstall", true),
        ("init", true),
        ("key create", true),
        ("key rotate", true),
        ("migrate", true),
        ("mock-upstream", true),
        ("models update", true),
        ("receipt verify", true),
        ("serve", false),
    ] {
        let help = run(folder.path(), &format!("{command} --help")).out;
        assert!(help.contains("--config <FILE>") && help.contains("--data <DIR>"), "{command}: {help}");
        assert_eq!(help.contains("--json"), prints, "{command}: {help}");
    }
}
