//! Where results go: what is shown once is not made where nobody can see it.

use std::io::pipe;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use svc_core::store::{Range, Store as _};
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_store::{Backend as _, SqliteStore};

use crate::{Ran, run, svc};

/// Runs `svc` as a shell does that sends its standard output where `redirect` says.
pub(crate) fn redirected(folder: &Path, arguments: &str, redirect: &str) -> Ran {
    let line = format!("exec {} {arguments} {redirect}", env!("CARGO_BIN_EXE_svc"));
    let mut shell = Command::new("sh");
    shell.env_clear().current_dir(folder).stdin(Stdio::null()).args(["-c", &line]).output().unwrap().into()
}

/// How many keys the workspace has, revoked ones too.
fn keys(folder: &Path, home: &Value) -> usize {
    let workspace = WorkspaceId::parse(home["workspaceId"].as_str().unwrap()).unwrap();
    let store = SqliteStore::existing(folder.join("svc-data")).unwrap();
    store.reader().unwrap().scan(&Range::all(Index::KeysOf, workspace.bits(), 100)).unwrap().len()
}

/// A key, a token and a link are not made where standard output is closed, full, or open for reading alone; thrown away by
/// a shell's own word they are.
#[test]
fn no_secret_is_made_that_nobody_can_see() {
    let folder = tempfile::tempdir().unwrap();
    let home: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let before = keys(folder.path(), &home);
    let token = "token create --name soar --scopes agents:read";
    for (redirect, why) in [
        (">&-", "is closed or thrown away, and what is made is shown there this once"),
        (">/dev/full", "cannot be written: No space left on device (os error 28)"),
        ("1</dev/null", "cannot be written: Bad file descriptor (os error 9)"),
    ] {
        for arguments in ["key create --scope admin", token, "sign-in-link owner@localhost"] {
            let told = format!(
                "svc: standard output {why}\n     Nothing was made: run the command again with its output open.\n"
            );
            let ran = redirected(folder.path(), arguments, redirect);
            assert_eq!(ran, Ran { code: 1, out: String::new(), err: told }, "{arguments} {redirect}");
        }
    }
    assert_eq!(keys(folder.path(), &home), before);
    assert_eq!(redirected(folder.path(), token, ">/dev/null").code, 0, "and no token took the name before");
}

/// A first start makes nothing where its output takes nothing; where it is closed it says what becomes of the keys.
#[test]
fn a_first_start_needs_an_output_that_takes_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["init", "dev --listen 127.0.0.1:0"] {
        let full = redirected(folder.path(), command, ">/dev/full");
        assert!(full.code == 1 && full.err.contains("Nothing was made: run the command again"), "{}", full.err);
        assert!(!folder.path().join("svc-data").exists(), "{command}");
    }
    let closed = redirected(folder.path(), "init", ">&-");
    assert_eq!(closed.code, 0);
    assert!(
        closed.err.contains("nobody sees the keys") && closed.err.contains("`svc dev --new-keys`"),
        "{}",
        closed.err
    );
    assert_eq!(redirected(folder.path(), "init", ">&-").err, "", "the second makes none");
}

const UNSEEN: &str = "Start it again with its output open: it makes other keys and another sign-in link, prints them, and revokes these.";

/// Where the reader has gone before the result came, what is told is the way to another secret, not the same command again.
#[test]
fn what_was_made_and_not_seen_has_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, way) in [
        ("init", UNSEEN),
        ("init --json", UNSEEN),
        ("key create --scope admin", "`), and make another."),
        (
            "token create --name soar --scopes agents:read",
            ": revoke it (`DELETE /api/w/{wid}/service-tokens/{stk}`), and make another.",
        ),
        (
            "key rotate --use receipt",
            "The next key is in place all the same: the key set at `/.well-known/jwks.json` has it.",
        ),
        ("sign-in-link owner@localhost", "Run the command again with its output open."),
    ] {
        let (reader, writer) = pipe().unwrap();
        drop(reader);
        let mut command = svc(folder.path());
        let child = command.args(arguments.split(' ')).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let Ran { code, err, .. } = child.wait_with_output().unwrap().into();
        assert_eq!(code, 1, "{arguments}: {err}");
        assert!(err.starts_with("svc: standard output cannot be written: Broken pipe (os error 32)\n     "), "{err}");
        assert!(err.trim_end().ends_with(way), "{arguments}: {err}");
        let is_told = !arguments.starts_with("key create") || err.contains(": revoke it (`svc key revoke key_");
        assert!(is_told, "{err}");
    }
}
