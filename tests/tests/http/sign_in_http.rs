//! Signing in over a real socket: proofs used once, cookies, sessions, and nothing that tells who exists.

use serde_json::{Value, json};
use svc_core::rules::people::links::MakeLink;
use svc_core::state::people::{LINK_LIFE, Proof, Role, Session, Settings};
use svc_core::store::{Row as _, Store as _};
use svc_core::testing::people;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::Email;
use svc_tests::client::{Client, Got};
use svc_tests::people::{ask, code_now, second_factor, unbase32};
use svc_tests::site::{Fault, Site};

const OWNER: &str = "owner@example.com";
const PASSWORD: &str = "correct horse battery";

fn link(site: &Site, token: &str) {
    let email = Email::parse(OWNER).unwrap();
    site.gate.execute(MakeLink { email, token: Digest::of(token), life: Some(LINK_LIFE) }).unwrap();
}

/// The cookie that an answer sets, without its name.
fn sid(got: &Got) -> String {
    let cookie = got.header("set-cookie").expect("a cookie is set");
    cookie.strip_prefix("__Host-sid=").unwrap().split(';').next().unwrap().to_owned()
}

async fn post(client: &mut Client, path: &str, body: Value) -> Got {
    ask(client, None, "POST", path, Some(&body)).await
}

/// Signs the owner in by a link, sets the password, and gives the cookie.
async fn signed_in(site: &Site, client: &mut Client) -> String {
    link(site, "sil_first");
    let got = post(client, "/api/sign-in/link", json!({ "token": "sil_first" })).await;
    assert_eq!(got.ok()["next"], "set_password");
    let sid = sid(&got);
    let body = json!({ "password": PASSWORD });
    ask(client, Some(&sid), "POST", "/api/me/password", Some(&body)).await.ok();
    sid
}

/// A link signs in once; its cookie is that of an https deployment; the session ends with sign-out.
#[tokio::test]
async fn a_link_signs_in_once_and_the_session_ends_with_sign_out() {
    let site = Site::start().await;
    let mut client = site.client().await;
    link(&site, "sil_one");
    ask(&mut client, None, "GET", "/sign-in", None).await;
    let got = post(&mut client, "/api/sign-in/link", json!({ "token": "sil_one" })).await;
    let cookie = got.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-sid=") && cookie.contains("; Path=/; "), "{cookie}");
    for member in ["HttpOnly", "Secure", "SameSite=Lax"] {
        assert!(cookie.contains(member), "{cookie}");
    }
    let answer = got.ok();
    assert_eq!((&answer["next"], &answer["workspaces"][0]["role"]), (&json!("set_password"), &json!("owner")));
    assert_eq!(answer["principalId"], answer["workspaces"][0]["principalId"]);
    let sid = sid(&got);
    let me = ask(&mut client, Some(&sid), "GET", "/api/me", None).await.ok();
    assert_eq!((&me["email"], &me["session"]["proof"]), (&json!(OWNER), &json!("link")));
    assert_eq!(me["workspaces"][0]["signIn"]["requireTwoFactor"], false);

    let again = post(&mut client, "/api/sign-in/link", json!({ "token": "sil_one" })).await;
    assert_eq!((again.status, again.kind()), (401, "unauthenticated".to_owned()));
    assert_eq!(again.header("www-authenticate"), Some("Session"));
    assert!(again.header("set-cookie").is_none());

    let out = ask(&mut client, Some(&sid), "POST", "/api/sign-out", None).await;
    assert!(out.header("set-cookie").unwrap().starts_with("__Host-sid=; Path=/; Max-Age=0;"));
    assert_eq!(out.status, 200);
    for (method, path) in [("GET", "/api/me"), ("POST", "/api/sign-out")] {
        assert_eq!(ask(&mut client, Some(&sid), method, path, None).await.status, 401, "{path}");
    }
    site.stop().await;
}

/// Whether there is such an account, whether it has a password, and whether that is wrong: one answer, of one text.
#[tokio::test]
async fn sign_in_says_nothing_about_who_exists() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let without = post(&mut client, "/api/sign-in", json!({ "email": OWNER, "password": PASSWORD })).await;
    signed_in(&site, &mut client).await;
    let wrong = post(&mut client, "/api/sign-in", json!({ "email": OWNER, "password": "wrong" })).await;
    let nobody = post(&mut client, "/api/sign-in", json!({ "email": "no@example.com", "password": PASSWORD })).await;
    let told = |got: &Got| {
        let mut error = got.json()["error"].clone();
        error["requestId"] = Value::Null;
        (got.status, error, got.header("set-cookie").is_some())
    };
    assert_eq!(told(&without), told(&wrong));
    assert_eq!(told(&nobody), told(&wrong));
    assert_eq!((wrong.status, wrong.kind()), (401, "unauthenticated".to_owned()));
    let link = post(&mut client, "/api/sign-in/link", json!({ "token": "sil_none" })).await;
    let code = post(&mut client, "/api/sign-in/totp", json!({ "pending": "none", "code": "000000" })).await;
    assert_eq!((told(&link), told(&code)), (told(&wrong), told(&wrong)));
    assert!(wrong.json()["error"]["fix"].as_str().unwrap().contains("a link that was not used yet"));
    let right = post(&mut client, "/api/sign-in", json!({ "email": "OWNER@example.com", "password": PASSWORD })).await;
    assert_eq!(right.ok()["next"], "done");
    for (body, field) in [
        (json!({ "password": PASSWORD }), "email"),
        (json!({ "email": "x", "password": PASSWORD }), "email"),
        (json!({ "email": OWNER }), "password"),
        (json!({ "email": OWNER, "password": 1 }), "password"),
    ] {
        let got = post(&mut client, "/api/sign-in", body).await;
        assert_eq!((got.status, got.fields()), (400, vec![field.to_owned()]));
    }
    site.stop().await;
}

/// Ten wrong passwords from one address end that pair's tries, existing or not; others go on.
#[tokio::test]
async fn wrong_sign_ins_are_limited() {
    let site = Site::start().await;
    let mut client = site.client().await;
    signed_in(&site, &mut client).await;
    for email in [OWNER, "nobody@example.com"] {
        for _ in 0..10 {
            let got = post(&mut client, "/api/sign-in", json!({ "email": email, "password": "wrong" })).await;
            assert_eq!(got.status, 401);
        }
        let got = post(&mut client, "/api/sign-in", json!({ "email": email, "password": PASSWORD })).await;
        assert_eq!((got.status, got.kind()), (429, "rate_limited".to_owned()), "{email}");
        assert!(got.header("retry-after").unwrap().parse::<u32>().unwrap() > 600);
    }
    let other = post(&mut client, "/api/sign-in", json!({ "email": "other@example.com", "password": "x" })).await;
    assert_eq!(other.status, 401);
    site.stop().await;
}

/// Setting up a second factor, signing in with it, and each code and recovery code once.
#[tokio::test]
async fn a_second_factor_is_set_up_and_each_code_counts_once() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let sid = signed_in(&site, &mut client).await;
    let begun = ask(&mut client, Some(&sid), "POST", "/api/me/totp", Some(&json!({}))).await.ok();
    assert!(begun["qrSvg"].as_str().unwrap().starts_with("<svg "), "{begun}");
    assert!(begun["otpauthUrl"].as_str().unwrap().contains(begun["secret"].as_str().unwrap()));
    let secret = unbase32(begun["secret"].as_str().unwrap());
    let first = code_now(&secret, site.now());
    let bad = ask(&mut client, Some(&sid), "POST", "/api/me/totp/confirm", Some(&json!({ "code": "000000x" }))).await;
    assert_eq!((bad.status, bad.fields()), (400, vec!["code".to_owned()]));
    let body = json!({ "code": first });
    let codes = ask(&mut client, Some(&sid), "POST", "/api/me/totp/confirm", Some(&body)).await.ok();
    let codes: Vec<String> = serde_json::from_value(codes["recoveryCodes"].clone()).unwrap();
    assert_eq!(codes.len(), 10);
    assert_eq!(ask(&mut client, Some(&sid), "POST", "/api/me/totp", None).await.status, 409);

    let password = json!({ "email": OWNER, "password": PASSWORD });
    let wait = post(&mut client, "/api/sign-in", password.clone()).await;
    assert!(wait.header("set-cookie").is_none());
    let wait = wait.ok();
    assert_eq!(wait["next"], "totp");
    let show = |code: String| json!({ "pending": wait["pending"], "code": code });
    let used = post(&mut client, "/api/sign-in/totp", show(first)).await;
    assert_eq!(used.status, 401, "the code that confirmed it was used");
    site.shift(Span::seconds(30));
    let next = code_now(&secret, site.now());
    let got = post(&mut client, "/api/sign-in/totp", show(next.clone())).await;
    assert_eq!(got.ok()["next"], "done");
    let wait = post(&mut client, "/api/sign-in", password.clone()).await.ok();
    let twice = post(&mut client, "/api/sign-in/totp", json!({ "pending": wait["pending"], "code": next })).await;
    assert_eq!(twice.status, 401);
    let body = json!({ "pending": wait["pending"], "recoveryCode": codes[0].to_uppercase() });
    assert_eq!(post(&mut client, "/api/sign-in/totp", body).await.ok()["next"], "done");
    let wait = post(&mut client, "/api/sign-in", password).await.ok();
    let body = json!({ "pending": wait["pending"], "recoveryCode": codes[0] });
    assert_eq!(post(&mut client, "/api/sign-in/totp", body).await.status, 401);
    let me = ask(&mut client, Some(&sid), "GET", "/api/me", None).await.ok();
    assert_eq!((&me["twoFactor"], &me["recoveryCodesLeft"]), (&json!(true), &json!(9)), "one was used");
    let both = json!({ "pending": "x", "code": "1", "recoveryCode": "2" });
    assert_eq!(post(&mut client, "/api/sign-in/totp", both).await.status, 400);

    let body = json!({ "recoveryCode": codes[1] });
    assert_eq!(ask(&mut client, Some(&sid), "DELETE", "/api/me/totp", Some(&body)).await.status, 204);
    let me = ask(&mut client, Some(&sid), "GET", "/api/me", None).await.ok();
    assert_eq!((&me["twoFactor"], me.get("recoveryCodesLeft")), (&json!(false), None));
    site.stop().await;
}

/// A workspace that asks for a second factor lets a session without one do nothing else.
#[tokio::test]
async fn a_session_without_the_required_factor_sets_it_up_first() {
    let site = Site::start().await;
    let mut settings = Settings::default();
    settings.sign_in.require_two_factor = true;
    site.change_settings(settings);
    let mut client = site.client().await;
    link(&site, "sil_one");
    let got = post(&mut client, "/api/sign-in/link", json!({ "token": "sil_one" })).await;
    assert_eq!(got.json()["next"], "enroll_totp");
    let sid = sid(&got);
    for path in ["/api/me".to_owned(), "/api/me/sessions".to_owned(), format!("/api/w/{}/approvals", site.workspace())]
    {
        assert_eq!(ask(&mut client, Some(&sid), "GET", &path, None).await.status, 403, "{path}");
    }
    second_factor(&mut client, &sid, site.now()).await;
    assert_eq!(ask(&mut client, Some(&sid), "GET", "/api/me", None).await.status, 200);
    site.stop().await;
}

/// Sessions are listed for their own account alone, ended one by one, and ended by a change of the password.
#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let first = signed_in(&site, &mut client).await;
    let sign_in = json!({ "email": OWNER, "password": PASSWORD });
    let second = sid(&post(&mut client, "/api/sign-in", sign_in.clone()).await);
    let third = sid(&post(&mut client, "/api/sign-in", sign_in).await);
    let other = site.member(Role::Member);
    let list = ask(&mut client, Some(&first), "GET", "/api/me/sessions", None).await.ok();
    let list = list["data"].as_array().unwrap().clone();
    assert_eq!(list.len(), 3);
    assert_eq!(list.iter().filter(|it| it["current"] == true).count(), 1);
    let me = ask(&mut client, Some(&second), "GET", "/api/me", None).await.ok();
    let path = format!("/api/me/sessions/{}", me["session"]["id"].as_str().unwrap());
    assert_eq!(ask(&mut client, Some(&other.sid), "DELETE", &path, None).await.status, 404, "another's is not found");
    assert_eq!(ask(&mut client, Some(&first), "DELETE", &path, None).await.status, 204);
    assert_eq!(ask(&mut client, Some(&second), "GET", "/api/me", None).await.status, 401);
    assert_eq!(ask(&mut client, Some(&first), "DELETE", &path, None).await.status, 404);

    let change = |current: Option<&str>| json!({ "current": current, "password": "another horse battery" });
    for current in [None, Some("wrong")] {
        let got = ask(&mut client, Some(&first), "POST", "/api/me/password", Some(&change(current))).await;
        assert_eq!((got.status, got.fields()), (400, vec!["current".to_owned()]));
    }
    let short = json!({ "current": PASSWORD, "password": "elevenchars" });
    let got = ask(&mut client, Some(&first), "POST", "/api/me/password", Some(&short)).await;
    assert_eq!((got.status, got.fields()), (400, vec!["password".to_owned()]));
    ask(&mut client, Some(&first), "POST", "/api/me/password", Some(&change(Some(PASSWORD)))).await.ok();
    assert_eq!(ask(&mut client, Some(&third), "GET", "/api/me", None).await.status, 401);
    assert_eq!(ask(&mut client, Some(&first), "GET", "/api/me", None).await.status, 200);

    // A session that one workspace's single sign-on vouches for learns nothing of the account's password.
    let id = Session::id_of(&Digest::of(&first));
    let mut store = site.memory();
    let found = store.load(&[Session::key(id)]).unwrap().remove(0).record.unwrap();
    let by_sso = Session { proof: Proof::Sso(site.workspace()), ..Session::clone(Session::peel(&found).unwrap()) };
    people::write(&mut store, vec![Session::wrap(by_sso.into())]);
    for current in ["another horse battery", "wrong"] {
        let got = ask(&mut client, Some(&first), "POST", "/api/me/password", Some(&change(Some(current)))).await;
        assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"), "{current}");
    }
    site.stop().await;
}

/// What is wrong before the page for signing in is made is told as the interface tells it, not in the words of OAuth.
#[tokio::test]
async fn the_page_is_of_its_own_host_alone() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let got = client.ask("GET", "/sign-in", &[("host", "evil.example")], b"").await;
    assert_eq!((got.status, got.kind()), (403, "forbidden".to_owned()));
    let host = BASE_URL.trim_start_matches("https://");
    let headers = [("host", host), ("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")];
    let got = client.ask("POST", "/sign-in", &headers, b"x").await;
    assert_eq!(
        (got.status, got.kind(), got.fields()),
        (400, "invalid_request".to_owned(), vec!["content-encoding".to_owned()])
    );
    site.stop().await;
}

/// A write needs the console's mark and comes from its own origin; a bearer token is no session.
#[tokio::test]
async fn a_post_from_elsewhere_is_refused() {
    let site = Site::start().await;
    let mut client = site.client().await;
    link(&site, "sil_one");
    let body = json!({ "token": "sil_one" }).to_string();
    let host = BASE_URL.trim_start_matches("https://");
    let json_type = ("content-type", "application/json");
    for headers in [
        vec![("host", host), json_type],
        vec![("host", host), json_type, ("x-svc-csrf", "1"), ("origin", "https://elsewhere.example")],
        vec![("host", host), json_type, ("x-svc-csrf", "1"), ("origin", "null")],
        vec![("host", host), ("content-type", "application/x-www-form-urlencoded")],
    ] {
        let got = client.ask("POST", "/api/sign-in/link", &headers, body.as_bytes()).await;
        assert_eq!((got.status, got.kind()), (403, "csrf".to_owned()), "{headers:?}");
    }
    let form = [("host", host), ("x-svc-csrf", "1"), ("content-type", "text/plain")];
    assert_eq!(client.ask("POST", "/api/sign-in/link", &form, body.as_bytes()).await.status, 400);
    let got = client.ask("GET", "/api/me", &[("host", host), ("authorization", "Bearer ims_x")], b"").await;
    assert_eq!((got.status, got.kind()), (401, "unauthenticated".to_owned()));
    assert_eq!(post(&mut client, "/api/sign-in/link", json!({ "token": "sil_one" })).await.status, 200, "it is unused");
    site.stop().await;
}

/// A link leads to a page whose policy lets its own script and style run and nothing else, here or in a frame.
#[tokio::test]
async fn a_link_leads_to_a_page() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let got = ask(&mut client, None, "GET", "/sign-in", None).await;
    got.is_closed_page();
    site.stop().await;
}

/// Cookies that name no session count against their address and stop nobody there: who is signed in goes on, whatever they may not do,
/// and so does signing in.
#[tokio::test]
async fn wrong_cookies_count_against_their_address() {
    let site = Site::with(|plan| plan.config.limits.gateway_per_minute = 5).await;
    let (owner, auditor) = (site.member(Role::Owner), site.member(Role::Auditor));
    let mut client = site.client().await;
    let members = format!("/api/w/{}/members", site.workspace());
    for (n, (path, status)) in [("/api/me", 401), (&members, 401), ("/api/me", 401), (&members, 401), ("/api/me", 401)]
        .into_iter()
        .chain([("/api/me", 429), (&members, 429)])
        .enumerate()
    {
        let guess = format!("gue{n:032x}{:08x}", 0);
        let got = ask(&mut client, Some(&guess), "GET", path, None).await;
        assert_eq!((got.status, got.header("retry-after").is_some()), (status, status == 429), "{n}");
    }
    let tokens = format!("/api/w/{}/service-tokens", site.workspace());
    for _ in 0..12 {
        assert_eq!(owner.ask(&mut client, "GET", &members, None).await.status, 200);
        assert_eq!(auditor.ask(&mut client, "GET", &tokens, None).await.status, 403);
    }
    let wrong = json!({ "email": OWNER, "password": "not the password" });
    assert_eq!(post(&mut client, "/api/sign-in", wrong).await.status, 401);
    site.stop().await;
}

/// What this server cannot look at is nobody's wrong try: however often its store takes nothing, the second factor is taken once it does
/// again, at signing in and where it is taken away.
#[tokio::test]
async fn a_store_that_fails_uses_up_no_tries() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let sid = signed_in(&site, &mut client).await;
    let (_, codes) = second_factor(&mut client, &sid, site.now()).await;
    let wait = post(&mut client, "/api/sign-in", json!({ "email": OWNER, "password": PASSWORD })).await.ok();
    let show = json!({ "pending": wait["pending"], "recoveryCode": codes[0] });
    let remove = json!({ "recoveryCode": codes[1] });
    site.fault.set(Fault::Unavailable);
    for _ in 0..11 {
        assert_eq!(post(&mut client, "/api/sign-in/totp", show.clone()).await.status, 503);
        assert_eq!(ask(&mut client, Some(&sid), "DELETE", "/api/me/totp", Some(&remove)).await.status, 503);
    }
    site.fault.set(Fault::None);
    assert_eq!(post(&mut client, "/api/sign-in/totp", show).await.ok()["next"], "done");
    assert_eq!(ask(&mut client, Some(&sid), "DELETE", "/api/me/totp", Some(&remove)).await.status, 204);
    site.stop().await;
}
