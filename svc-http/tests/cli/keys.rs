//! `svc key list` and `svc key revoke`: what an operator without a browser sees of keys, and how one ends.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::rules::people::tokens::RevokeToken;
use svc_core::state::people::{KeyScope, ServiceToken};
use svc_core::store::{Range, Row as _};
use svc_core::testing::people;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_core::value::text::Label;
use svc_core::value::{Id as _, Span};
use svc_store::{Backend as _, Gate, SqliteStore};

use super::{Ran, run};

/// What `svc key list --json` prints, a value a line.
fn listed(folder: &std::path::Path) -> Vec<Value> {
    let Ran { code, out, err } = run(folder, "key list --json");
    assert_eq!((code, &*err), (0, ""));
    out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Every key is listed, the newest first, with what it is and where it stands, and nothing that anybody could call with.
#[test]
fn key_list_shows_what_keys_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let home: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let agent = home["agentId"].as_str().unwrap();
    let made = run(folder.path(), &format!("key create --agent {agent} --label laptop --json")).out;
    let made: Value = serde_json::from_str(&made).unwrap();
    let (key, id) = (made["key"].as_str().unwrap(), made["binding"]["id"].as_str().unwrap());

    let keys = listed(folder.path());
    let scopes: BTreeSet<&str> = keys.iter().map(|it| it["scope"].as_str().unwrap()).collect();
    assert_eq!((keys.len(), scopes), (4, BTreeSet::from(["admin", "agent", "inference"])));
    let newest = &keys[0];
    assert_eq!(
        [&newest["id"], &newest["prefix"], &newest["label"], &newest["agentId"], &newest["state"]],
        [&json!(id), &json!(&key[..12]), &json!("laptop"), &json!(agent), &json!("active")]
    );
    assert!(newest.get("lastUsedAt").is_none(), "no database has it");

    let Ran { code, out, .. } = run(folder.path(), "key list");
    let lines: Vec<&str> = out.lines().collect();
    assert!(code == 0 && lines.len() == 5 && lines[0].starts_with("ID "), "{out}");
    assert!([id, &key[..12], "agent", "active", agent, "laptop"].iter().all(|it| lines[1].contains(it)), "{out}");
    let workspace = home["workspaceId"].as_str().unwrap();
    assert_eq!(run(folder.path(), &format!("key list --workspace {workspace}")).out, out);
    assert!(!out.contains(key), "{out}");

    let nowhere = run(folder.path(), "key list --workspace wsp_00000000000000000000000000");
    assert!(nowhere.code == 1 && nowhere.err.contains("there is no workspace wsp_0000"), "{nowhere:?}");
    assert_eq!(run(folder.path(), "key list --workspace here").code, 2);
    let missing = run(folder.path(), "key list --data nowhere");
    assert!(missing.code == 1 && missing.err.contains("there is no svc data") && missing.out.is_empty(), "{missing:?}");
}

/// A key that is revoked stays in the list as that; it ends once, and what is no key of the workspace is told.
#[test]
fn key_revoke_ends_a_key() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let made: Value = serde_json::from_str(&run(folder.path(), "key create --scope admin --json").out).unwrap();
    let id = made["binding"]["id"].as_str().unwrap();
    let Ran { code, out, err } = run(folder.path(), &format!("key revoke {id}"));
    assert_eq!((code, &*out), (0, ""));
    assert_eq!(err, format!("{id} is revoked: a running server takes it no more.\n"));
    let again = run(folder.path(), &format!("key revoke {id}"));
    assert_eq!(again, Ran { code: 0, out: String::new(), err: format!("{id} was revoked before.\n") });
    let states: Vec<_> = listed(folder.path()).iter().map(|it| (it["id"] == id, it["state"] == "revoked")).collect();
    assert!(states[0] == (true, true) && states[1..].iter().all(|it| *it == (false, false)), "{states:?}");
    let told: Value = serde_json::from_str(&run(folder.path(), &format!("key revoke {id} --json")).out).unwrap();
    assert_eq!((&told["id"], &told["state"]), (&json!(id), &json!("revoked")));

    let unknown = run(folder.path(), "key revoke key_00000000000000000000000000");
    assert!(unknown.code == 1 && unknown.err.contains("has no key key_0000"), "{unknown:?}");
    assert!(unknown.err.contains("`svc key list`"), "{unknown:?}");
    for usage in ["key revoke", "key revoke laptop"] {
        assert_eq!(run(folder.path(), usage).code, 2, "{usage}");
    }
}

/// More keys than are read together are listed all the same, each once.
#[test]
fn key_list_goes_on_to_the_last_key() {
    let folder = tempfile::tempdir().unwrap();
    let home: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let workspace: WorkspaceId = home["workspaceId"].as_str().unwrap().parse().unwrap();
    let gate = Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
    for number in 0..500 {
        let key = NewKey::of(&format!("ask_{number:043}"));
        gate.execute(CreateKey::new(workspace, By::Program, KeyScope::Inference, key)).unwrap();
    }
    gate.close();
    let ids: Vec<Value> = listed(folder.path()).into_iter().map(|it| it["id"].clone()).collect();
    let distinct: BTreeSet<&str> = ids.iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!((ids.len(), distinct.len()), (503, 503));
    assert!(ids.windows(2).all(|it| it[0].as_str() > it[1].as_str()), "the newest first");
}

/// What ends before long, or did a while ago, is named by the doctor, beside when, and by no text; what is gone for good is not, and
/// neither is what has a successor.
#[test]
fn the_doctor_names_what_ends() {
    let folder = tempfile::tempdir().unwrap();
    let home: Value = serde_json::from_str(&run(folder.path(), "init --json").out).unwrap();
    let workspace: WorkspaceId = home["workspaceId"].as_str().unwrap().parse().unwrap();
    let looked = || {
        let told: Value = serde_json::from_str(&run(folder.path(), "doctor --json").out).unwrap();
        let checks = told["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|it| it["check"] == "tokens and keys").unwrap()
    };
    assert_eq!(looked()["state"], "ok", "{}", looked());
    let token = |name: &str, days| {
        let made = format!("token create --json --scopes agents:read --name {name} --days {days}");
        serde_json::from_str::<Value>(&run(folder.path(), &made).out).unwrap()
    };
    let [soon, gone, later] = [token("soar", 3), token("gone", 4), token("later", 60)];
    let store = SqliteStore::existing(folder.path().join("svc-data")).unwrap();
    let gate = Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
    let (ended, end) = (gate.now().minus(Span::hours(1)), gate.now().plus(Span::hours(24)));
    let make = |n: u8, expires_at| {
        let key = NewKey::of(&format!("ask_{n:043}"));
        let label = Label::parse("night job").unwrap();
        let new = CreateKey::new(workspace, By::Program, KeyScope::Inference, key);
        gate.execute(CreateKey { label: Some(label), expires_at, ..new }).unwrap()
    };
    let (brief, lasting) = (make(1, Some(end)), make(2, None));
    let rows = gate.scan(&Range::all(Index::TokensOf, workspace.bits(), 10)).unwrap();
    let row = |made: &Value| {
        let tokens = rows.iter().filter_map(|it| it.row.record.as_ref().and_then(ServiceToken::peel));
        ServiceToken::clone(tokens.into_iter().find(|it| made["id"] == json!(it.token)).unwrap())
    };
    gate.execute(RevokeToken { workspace, by: By::Program, token: row(&gone).id }).unwrap();
    gate.close();
    let found = looked();
    let told = found["message"].as_str().unwrap();
    let text = |made: &Value, name: &str| made[name].as_str().unwrap().to_owned();
    let expected = [
        format!("key `night job` ({}) ends at {end}", brief.binding.key),
        format!("service token `soar` ({}) ends at {}", text(&soon, "id"), text(&soon, "expiresAt")),
    ];
    assert_eq!((found["state"].as_str(), told), (Some("look"), &*expected.join("; ")));
    for secret in [&soon, &gone, &later] {
        assert!(!told.contains(secret["token"].as_str().unwrap()));
    }
    assert!(!told.contains(&lasting.binding.key.to_string()));

    // As it would stand had time gone by.
    let mut writer = store.writer().unwrap();
    people::write(&mut writer, vec![ServiceToken::wrap(Arc::new(ServiceToken { expires_at: ended, ..row(&soon) }))]);
    let found = looked();
    let told = found["message"].as_str().unwrap();
    assert!(told.starts_with(&format!("service token `soar` ({}) ended at {ended}", text(&soon, "id"))), "{told}");
    token("soar", 60);
    let found = looked();
    assert!(!found["message"].as_str().unwrap().contains("soar"), "{found}");
}
