//! `svc token create` and `svc key rotate`: what a machine calls with is shown once, what signs never.

use std::fs;

use serde_json::{Value, json};
use svc_core::rules::people::accounts::find_account;
use svc_core::rules::people::by::By;
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::second_factor::{ChangeSecondFactor, FactorChange};
use svc_core::rules::people::settings::{ChangeSettings, SettingsChange};
use svc_core::rules::people::sign_in::{Shown, StartSession};
use svc_core::state::people::{Session, Workspace};
use svc_core::value::digest::Digest;
use svc_core::value::id::WorkspaceId;
use svc_core::value::text::Email;
use svc_store::Gate;

use super::{Ran, run};

/// A token is printed once, alone on standard output; `--json` has its record beside it; what is stored is a digest.
#[test]
fn token_create_prints_a_token_once() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init --json").code, 0);
    let Ran { code, out, err } = run(folder.path(), "token create --name soar --scopes agents:freeze,agents:read");
    assert_eq!(code, 0, "{err}");
    let plain = out.trim_end();
    assert!(plain.starts_with("ims_") && plain.len() >= 4 + 43 && out.lines().count() == 1, "{} long", plain.len());
    assert!(err.starts_with("stk_") && err.contains("is shown this once") && !err.contains(plain), "{err}");

    let pinned = "token create --json --name ci --scopes evidence:read --days 7 --ip 192.0.2.0/24 --ip 2001:db8::/32";
    let made: Value = serde_json::from_str(&run(folder.path(), pinned).out).unwrap();
    let text = made["token"].as_str().unwrap();
    assert!(text.starts_with("ims_") && made["id"].as_str().unwrap().starts_with("stk_"));
    assert_eq!(
        (&made["name"], &made["scopes"], &made["ipAllow"], &made["state"]),
        (&json!("ci"), &json!(["evidence:read"]), &json!(["192.0.2.0/24", "2001:db8::/32"]), &json!("active"))
    );
    let day = |member: &str| svc_core::value::Timestamp::parse(made[member].as_str().unwrap()).unwrap();
    assert_eq!(day("expiresAt"), day("createdAt").plus(svc_core::value::Span::hours(7 * 24)));
    for entry in fs::read_dir(folder.path().join("svc-data")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for secret in [plain.as_bytes(), text.as_bytes()] {
            assert!(!bytes.windows(secret.len()).any(|it| it == secret), "a token is stored in the clear");
        }
    }
}

/// What is no token is a fault of usage; a name in force and a directory without data are failures with advice.
#[test]
fn what_is_no_token_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = run(folder.path(), "token create --name soar --scopes agents:read --data nowhere");
    assert!(nowhere.code == 1 && nowhere.err.contains("svc init") && nowhere.out.is_empty(), "{nowhere:?}");
    assert_eq!(run(folder.path(), "init").code, 0);
    for usage in [
        "token",
        "token create --scopes agents:read",
        "token create --name soar",
        "token create --name soar --scopes agents:own",
        "token create --name soar --scopes agents:read --days 0",
        "token create --name soar --scopes agents:read --days 91",
        "token create --name soar --scopes agents:read --ip 10.0.0.1/8",
        "token create --name soar --scopes agents:read --ip here",
    ] {
        let ran = run(folder.path(), usage);
        assert!(ran.code == 2 && ran.out.is_empty(), "{usage}: {ran:?}");
    }
    assert_eq!(run(folder.path(), "token create --name soar --scopes agents:read --days 1").code, 0);
    let taken = run(folder.path(), "token create --name soar --scopes evidence:read");
    assert!(taken.code == 1 && taken.out.is_empty(), "{taken:?}");
    assert!(taken.err.contains("Choose another name, or revoke that token"), "{}", taken.err);
}

/// Another signing key follows the one before a day later, at once where that one is known to others; only its id is shown.
#[test]
fn key_rotate_prints_no_key() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init").code, 0);
    let Ran { code, out, err } = run(folder.path(), "key rotate --use receipt --json");
    assert_eq!(code, 0, "{err}");
    let made: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&str> = made.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["compromised", "generation", "kid", "notBefore", "use"]);
    assert_eq!((&made["use"], &made["compromised"]), (&json!("receipt"), &json!(false)));
    let again = run(folder.path(), "key rotate --use receipt");
    assert!(again.code == 1 && again.out.is_empty(), "one waits for its turn already: {again:?}");
    let now: Value =
        serde_json::from_str(&run(folder.path(), "key rotate --use receipt --compromised --json").out).unwrap();
    assert!(now["notBefore"].as_str().unwrap() < made["notBefore"].as_str().unwrap(), "{now} {made}");
    assert_eq!(run(folder.path(), "key rotate --use nothing").code, 2);
}

/// A sign-in link is printed for whom it names and nobody else, a new one voids the one before, and no link is stored.
#[test]
fn sign_in_link_signs_in_whom_it_names() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init --owner ana@example.com").code, 0);
    let Ran { code, out, err } = run(folder.path(), "sign-in-link ANA@example.com");
    assert_eq!(code, 0, "{err}");
    let token = out.trim_end().rsplit_once("/sign-in#token=").expect("a link").1;
    assert!(token.starts_with("sil_") && token.len() == 4 + 43 && !err.contains(token), "{err}");
    let second: Value = serde_json::from_str(&run(folder.path(), "sign-in-link ana@example.com --json").out).unwrap();
    assert_ne!(second["signInLink"].as_str().unwrap(), out.trim_end());
    let stranger = run(folder.path(), "sign-in-link bob@example.com");
    assert!(stranger.code == 1 && stranger.out.is_empty() && stranger.err.contains("bob@example.com"), "{stranger:?}");
    for entry in fs::read_dir(folder.path().join("svc-data")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(token.len()).any(|it| it == token.as_bytes()), "a link is stored in the clear");
    }
}

/// A second factor that was lost is taken away by whoever runs the server, beside a link, and told of.
#[test]
fn sign_in_link_drops_a_lost_second_factor() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), "init --owner ana@example.com").code, 0);
    let open = || Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
    let gate = open();
    let (email, token, cookie) = (Email::parse("ana@example.com").unwrap(), Digest::of("link"), Digest::of("cookie"));
    gate.execute(MakeLink { email: email.clone(), token, life: None }).unwrap();
    gate.execute(StartSession { shown: Shown::Link(token), cookie, pending: Digest::of("waits") }).unwrap();
    let by = Session::id_of(&cookie);
    for change in [
        FactorChange::Begin { sealed: "sealed".into() },
        FactorChange::Confirm { sealed: "sealed".into(), step: Some(1), recovery: Vec::new() },
    ] {
        gate.execute(ChangeSecondFactor { by, own: None, change }).unwrap();
    }
    gate.close();
    let has_one = || {
        let gate = open();
        let account = gate.read(|scope| find_account(scope, &email)).unwrap();
        gate.close();
        account.unwrap().second_factor.is_some()
    };
    assert_eq!(run(folder.path(), "sign-in-link ana@example.com").code, 0);
    assert!(has_one(), "a link alone changes nothing");
    let Ran { code, out, err } = run(folder.path(), "sign-in-link ana@example.com --drop-second-factor");
    assert!(code == 0 && out.contains("/sign-in#token=") && err.contains("are void"), "{out}{err}");
    assert!(!has_one());
    let again = run(folder.path(), "sign-in-link ana@example.com --drop-second-factor");
    assert!(again.code == 0 && again.err.contains("There was no second factor."), "{again:?}");
}

/// Where single sign-on is the only way in and its provider is lost, whoever runs the server opens the way that was before.
#[test]
fn sign_in_link_lifts_single_sign_on_alone() {
    let folder = tempfile::tempdir().unwrap();
    let made: Value = serde_json::from_str(&run(folder.path(), "init --owner ana@example.com --json").out).unwrap();
    let workspace: WorkspaceId = made["workspaceId"].as_str().unwrap().parse().unwrap();
    let open = || Gate::open(folder.path().join("svc-data"), "http://127.0.0.1:8080").unwrap();
    let gate = open();
    let change = SettingsChange { require_sso: Some(true), ..SettingsChange::default() };
    gate.execute(ChangeSettings { workspace, by: By::Program, change }).unwrap();
    gate.close();
    let is_required = || {
        let gate = open();
        let row = gate.read(|scope| scope.get::<Workspace>(workspace)).unwrap();
        gate.close();
        row.unwrap().settings.sign_in.require_sso
    };
    assert_eq!(run(folder.path(), "sign-in-link ana@example.com").code, 0);
    assert!(is_required(), "a link alone changes nothing");
    let Ran { code, out, err } = run(folder.path(), "sign-in-link ana@example.com --lift-sso");
    assert!(code == 0 && out.contains("/sign-in#token=") && err.contains(&workspace.to_string()), "{out}{err}");
    assert!(!is_required());
}
