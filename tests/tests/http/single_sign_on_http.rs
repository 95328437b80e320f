//! Single sign-on over real sockets, with a provider that behaves and one that does not: whom it signs in, what of it is not believed,
//! and whose account it never gets.

use serde_json::{Value, json};
use svc_core::rules::edge::integrations::ChangeIntegration;
use svc_core::rules::people::by::By;
use svc_core::rules::people::links::MakeLink;
use svc_core::state::edge::ConfigChange;
use svc_core::state::people::{Account, KeyScope, Principal, Role};
use svc_core::store::{Row as _, Store as _};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::Email;
use svc_tests::identity::{CLIENT_SECRET, Conduct};
use svc_tests::people::{code_now, unbase32};
use svc_tests::receiver::Reply;
use svc_tests::single_sign_on::{ANN, DOMAIN, Stage, is_refused, to};
use svc_tests::site::Site;
use url::Url;

/// What a provider does otherwise.
type Attack = Box<dyn FnOnce(&mut Conduct)>;

/// Somebody who was invited is led to the provider and back, and to where they wanted to go; the session is the workspace's alone, and the
/// provider's name of them is what counts from then on, by either algorithm.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_invited_comes_by_the_provider() {
    let mut stage = Stage::set().await;
    stage.prove();
    stage.invite(ANN, Role::Admin);
    let mut browser = stage.browser().await;
    let next = format!("/w/{}/approvals/apv_1", stage.site.workspace());
    let got = browser.get(&format!("{}?next={next}", stage.start())).await;
    let cookie = got.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-sso=") && cookie.contains("; Max-Age=600; "), "{cookie}");
    let led = Url::parse(to(&got)).unwrap();
    for (_, value) in led.query_pairs().filter(|(name, _)| matches!(&**name, "state" | "nonce")) {
        assert!(value.len() == 43 && !cookie.contains(&*value), "what is drawn is in the cookie as no text");
    }
    let redirect = led.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    assert_eq!(redirect, format!("{BASE_URL}{}/callback", stage.start()));
    let back = stage.provider.signs_in(led.as_str(), stage.claims("ann", ANN));
    let got = browser.back(&back).await;
    assert_eq!(to(&got), next);
    assert!(!browser.cookies.contains_key("__Host-sso"), "it is taken away");
    let me = browser.me().await;
    let proof = format!("sso:{}", stage.site.workspace());
    assert_eq!((&me["session"]["proof"], &me["email"]), (&json!(proof), &json!(ANN)));
    assert_eq!(browser.get(&format!("/api/w/{}/integrations", stage.site.workspace())).await.status, 200);
    let refused = browser.post("/api/me/password", json!({ "password": "correct horse battery" })).await;
    assert_eq!(refused.status, 403, "the account is good elsewhere too");
    let asked = stage.domain.next().await;
    assert_eq!(
        (asked.line.as_str(), asked.header("host").split(':').next()),
        ("GET /.well-known/svc-sso-verification HTTP/1.1", Some(DOMAIN))
    );

    stage.provider.behave(|it| it.alg = "RS256");
    let (mut again, got) = stage.come(stage.claims("ann", "renamed@elsewhere.example")).await;
    assert_eq!(to(&got), "/sign-in");
    assert_eq!(again.me().await["session"]["proof"], json!(proof));
    assert!(stage.domain.is_quiet(), "who is linked needs no domain");
    assert_eq!((stage.provider.calls("/.well-known/openid-configuration"), stage.provider.calls("/keys")), (1, 1));
    let ledger = stage.site.ledger();
    let count = |kind: &str| ledger.iter().filter(|it| &*it.kind == kind).count();
    assert_eq!((count("member.linked"), count("member.joined"), count("session.started")), (1, 1, 2));
    let told: String = ledger.iter().map(|it| it.data.to_string()).collect();
    assert!(!told.contains("\"ann\"") && told.contains("\"proof\":\"sso\""), "no name of the provider's: {told}");
    stage.site.audit();
    stage.site.stop().await;
}

/// A provider that takes the secret in the form, and names itself where it leads back, is heard; another's name there is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_says_how_it_is_spoken_to() {
    let stage = Stage::set().await;
    stage.invite(ANN, Role::Member);
    stage.prove();
    stage.provider.behave(|it| {
        it.described.insert("token_endpoint_auth_methods_supported", json!(["client_secret_post"]));
        it.described.insert("authorization_response_iss_parameter_supported", json!(true));
    });
    for iss in [None, Some("https://evil.example".to_owned()), Some(format!("{}/", stage.provider.issuer()))] {
        let (mut browser, mut back) = stage.led(stage.claims("ann", ANN)).await;
        back.query_pairs_mut().extend_pairs(iss.iter().map(|it| ("iss", it)));
        let got = browser.back(&back).await;
        is_refused(&mut browser, &got, 401, "iss").await;
    }
    assert_eq!(stage.provider.calls("/token"), 0, "no code is shown to anybody");
    let (mut browser, mut back) = stage.led(stage.claims("ann", ANN)).await;
    back.query_pairs_mut().append_pair("iss", &stage.provider.issuer());
    assert_eq!(to(&browser.back(&back).await), "/sign-in");
    stage.site.stop().await;
}

/// A token that is not as it should be signs nobody in, and neither does an answer that is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_believed_signs_nobody_in() {
    let stage = Stage::set().await;
    stage.invite(ANN, Role::Member);
    let now = stage.site.now().as_seconds();
    let claim = |name: &'static str, value: Value| {
        Box::new(move |it: &mut Conduct| drop(it.claims.insert(name, value))) as Attack
    };
    let answer =
        |text: String| Box::new(move |it: &mut Conduct| drop(it.answers.insert("/token", text.into_bytes()))) as Attack;
    let attacks: Vec<(&str, u16, Attack)> = vec![
        ("alg none", 401, Box::new(|it| it.alg = "none")),
        ("a public key as a shared one", 401, Box::new(|it| it.alg = "HS256")),
        ("another client", 401, claim("aud", json!("other"))),
        ("another party", 401, claim("azp", json!("other"))),
        ("another issuer", 401, claim("iss", json!("https://idp.example"))),
        ("another sign-in", 401, claim("nonce", json!("replayed"))),
        ("no nonce", 401, claim("nonce", Value::Null)),
        ("over", 401, claim("exp", json!(now - 301))),
        ("long ago", 401, claim("iat", json!(now - 601))),
        ("not yet", 401, claim("iat", json!(now + 301))),
        ("nobody", 401, claim("sub", Value::Null)),
        ("a redirect", 401, answer("HTTP/1.1 302 There\r\nlocation: /token\r\ncontent-length: 0\r\n\r\n".to_owned())),
        ("very much", 401, answer(format!("HTTP/1.1 200 It\r\ncontent-length: 70000\r\n\r\n{}", " ".repeat(70_000)))),
        ("no token", 401, answer("HTTP/1.1 200 It\r\ncontent-length: 2\r\n\r\n{}".to_owned())),
        ("broken", 503, answer("HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n".to_owned())),
        ("another secret", 503, Box::new(|it| it.secret = "other")),
    ];
    for (why, status, attack) in attacks {
        stage.provider.behave(attack);
        stage.refuses(stage.claims("ann", ANN), status, why).await;
        stage.provider.behave(|it| {
            (it.alg, it.secret) = ("ES256", CLIENT_SECRET);
            it.claims.clear();
            it.answers.clear();
        });
    }
    stage.site.stop().await;
}

/// Who comes back was sent from here in this browser, for this workspace, within ten minutes, and comes back once; a code that was shown
/// is good for nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_browser_that_was_sent_comes_back() {
    let stage = Stage::set().await;
    stage.prove();
    stage.invite(ANN, Role::Member);
    let (mut victim, back) = stage.led(stage.claims("ann", ANN)).await;
    let (mut attacker, other) = stage.led(stage.claims("mallory", "mallory@hooks.example.com")).await;
    let mut empty = stage.browser().await;
    let got = empty.back(&back).await;
    is_refused(&mut empty, &got, 401, "no cookie").await;
    let got = victim.back(&other).await;
    is_refused(&mut victim, &got, 401, "another's state, to sign the victim in as the attacker").await;
    let got = attacker.back(&back).await;
    is_refused(&mut attacker, &got, 401, "another's code and state").await;
    let code = |url: &Url| url.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    let mixed = Url::parse(&back.as_str().replace(&code(&back), &code(&other))).unwrap();
    let got = victim.back(&mixed).await;
    is_refused(&mut victim, &got, 401, "another's code under the own state").await;
    let got = victim.back(&back).await;
    is_refused(&mut victim, &got, 401, "the state is used up").await;

    let (mut browser, back) = stage.led(stage.claims("ann", ANN)).await;
    let kept = browser.cookies.clone();
    assert_eq!(to(&browser.back(&back).await), "/sign-in");
    let mut again = stage.browser().await;
    again.cookies = kept;
    let got = again.back(&back).await;
    is_refused(&mut again, &got, 401, "it came back before").await;
    let (mut later, mut back) = stage.led(stage.claims("ann", ANN)).await;
    back = Url::parse(&back.as_str().replace(&code(&back), "code-3")).unwrap();
    let got = later.back(&back).await;
    is_refused(&mut later, &got, 401, "a code that was redeemed before").await;

    let (mut slow, back) = stage.led(stage.claims("ann", ANN)).await;
    stage.site.shift(Span::minutes(10));
    let got = slow.back(&back).await;
    is_refused(&mut slow, &got, 401, "ten minutes are over").await;

    let (mut elsewhere, back) = stage.led(stage.claims("ann", ANN)).await;
    let there = back.as_str().replace(&stage.site.workspace().to_string(), &format!("wsp_{}", "0".repeat(26)));
    let got = elsewhere.back(&Url::parse(&there).unwrap()).await;
    is_refused(&mut elsewhere, &got, 401, "another workspace's").await;
    let (mut denied, back) = stage.led(stage.claims("ann", ANN)).await;
    let query =
        back.query().unwrap().replace("code=", "error=access_denied&error_description=%3Cb%3Eprovider's%20words&x=");
    let got = denied.get(&format!("{}?{query}", back.path())).await;
    is_refused(&mut denied, &got, 403, "the provider signs nobody in").await;
    stage.site.stop().await;
}

/// Nobody is signed in whom the workspace has not invited, or by an address that the provider has not verified or whose domain does
/// not say that it is the workspace's; nor by a provider that is off or another one since. It is one text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_nobody_here_stays_so() {
    let mut stage = Stage::set().await;
    stage.invite(ANN, Role::Member);
    stage.invite("ann@other.example", Role::Member);
    stage.invite("ann@named.nowhere.example", Role::Member);
    let unproven = stage.claims("ann", ANN);
    stage.domain.answer([Reply::Redirect("/elsewhere".to_owned())]);
    stage.refuses(unproven.clone(), 401, "the domain leads elsewhere").await;
    assert_eq!(stage.domain.next().await.line, "GET /.well-known/svc-sso-verification HTTP/1.1");
    stage.prove();
    stage.refuses(unproven, 401, "it is looked at once a minute").await;
    assert!(stage.domain.is_quiet());
    let mut texts = std::collections::BTreeSet::new();
    for (claims, why) in [
        (stage.claims("x", "nobody@hooks.example.com"), "not invited"),
        (stage.claims("x", "ann@other.example"), "a domain that says nothing"),
        (stage.claims("x", "ann@named.nowhere.example"), "a domain that the settings do not name"),
        (stage.claims("x", "no address"), "no address"),
    ] {
        let (mut browser, got) = stage.come(claims).await;
        is_refused(&mut browser, &got, 401, why).await;
        texts.insert(got.text());
    }
    let mut claims = stage.claims("ann", ANN);
    claims["email_verified"] = json!("true");
    let (mut browser, got) = stage.come(claims).await;
    is_refused(&mut browser, &got, 401, "an address that is not verified").await;
    texts.insert(got.text());
    assert_eq!(texts.len(), 1, "one text");

    let (workspace, id) = (stage.site.workspace(), stage.integration.id);
    let change = |enabled, client_id: &str| {
        let config = ConfigChange { client_id: Some(Some(client_id.into())), ..ConfigChange::default() };
        let changed = ChangeIntegration { by: By::Program, workspace, id, enabled: Some(enabled), config };
        stage.site.gate.execute(changed).unwrap();
    };
    for (enabled, client_id, status) in [(true, "other", 401), (false, "other", 404)] {
        let (mut browser, back) = stage.led(stage.claims("ann", ANN)).await;
        change(enabled, client_id);
        let got = browser.back(&back).await;
        is_refused(&mut browser, &got, status, "the provider is another one since, or off").await;
    }
    let mut browser = stage.browser().await;
    for path in [stage.start(), format!("/api/sign-in/sso/wsp_{}", "0".repeat(26)), "/api/sign-in/sso/acme".to_owned()]
    {
        let got = browser.get(&path).await;
        is_refused(&mut browser, &got, 404, &path).await;
    }
    stage.site.stop().await;
}

/// An account that exists already is not given away by its address: its holder signs in as before, in the browser that came back,
/// and links it. Whoever has not, has another account's session, or another browser, does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_that_exists_is_linked_by_its_holder() {
    let stage = Stage::set().await;
    stage.prove();
    let (_, account) = stage.invite(ANN, Role::Member);
    let mut holder = stage.browser().await;
    let link = json!({ "token": format!("link of {ANN}") });
    assert_eq!(holder.post("/api/sign-in/link", link).await.ok()["next"], "set_password");
    let before = stage.site.ledger().len();
    let (mut attacker, got) = stage.come(stage.claims("mallory", ANN)).await;
    assert_eq!(to(&got), format!("/sign-in?link={}", stage.site.workspace()));
    assert_eq!(attacker.get("/api/me").await.status, 401);
    let confirm = stage.start();
    assert_eq!(attacker.post(&confirm, json!({})).await.refusal(), (401, "unauthenticated".to_owned(), vec![]));
    assert_eq!(attacker.post(&confirm, json!({ "pending": "none" })).await.status, 401);
    let other = stage.site.member(Role::Owner);
    attacker.cookies.insert("__Host-sid".to_owned(), other.sid);
    assert_eq!(attacker.post(&confirm, json!({})).await.status, 401, "another account's session");
    assert_eq!(holder.post(&confirm, json!({})).await.status, 409, "nothing waits in this browser");
    let marks = [("host", "gate.example.com"), ("content-type", "application/json")];
    let got = attacker.client.ask("POST", &confirm, &marks, b"{}").await;
    assert_eq!((got.status, got.kind()), (403, "csrf".to_owned()));
    assert_eq!(stage.site.ledger().len(), before, "nothing was linked");

    let next = format!("/w/{}/approvals/apv_1", stage.site.workspace());
    let got = holder.get(&format!("{confirm}?next={next}")).await;
    let back = stage.provider.signs_in(to(&got), stage.claims("ann", ANN));
    let got = holder.back(&back).await;
    assert_eq!(to(&got), format!("/sign-in?link={}&next={}", stage.site.workspace(), next.replace('/', "%2F")));
    assert_eq!(holder.me().await["session"]["proof"], "link", "a link alone changes nothing");
    let waiting = holder.cookies["__Host-sso"].clone();
    let mut elsewhere = stage.browser().await;
    elsewhere.cookies = holder.cookies.clone();
    elsewhere.cookies.insert("__Host-sso".to_owned(), waiting.replace('A', "B"));
    assert_eq!(elsewhere.post(&confirm, json!({})).await.status, 409, "it was changed on the way");
    let linked = holder.post(&confirm, json!({})).await;
    assert_eq!((&linked.ok()["next"], &linked.ok()["workspaces"][0]["role"]), (&json!("done"), &json!("member")));
    assert_eq!(holder.me().await["session"]["proof"], json!(format!("sso:{}", stage.site.workspace())));
    assert!(!holder.cookies.contains_key("__Host-sso"));
    let (mut straight, got) = stage.come(stage.claims("ann", ANN)).await;
    assert_eq!((to(&got), straight.me().await["email"].as_str()), ("/sign-in", Some(ANN)));
    let (_, got) = stage.come(stage.claims("mallory", ANN)).await;
    assert!(to(&got).starts_with("/sign-in?link="), "another name of the provider's is not linked by it");

    // The provider's session tells and ends nothing of the account's others.
    let sessions = straight.get("/api/me/sessions").await.ok()["data"].clone();
    let proofs: Vec<&str> = sessions.as_array().unwrap().iter().map(|it| it["proof"].as_str().unwrap()).collect();
    let own = format!("sso:{}", stage.site.workspace());
    assert!(!proofs.is_empty() && proofs.iter().all(|it| *it == own), "{proofs:?}");

    // The provider's session is none of the account's own.
    let (mut late, got) = stage.come(stage.claims("two", ANN)).await;
    assert!(to(&got).contains("link="));
    late.cookies.insert("__Host-sid".to_owned(), straight.cookies["__Host-sid"].clone());
    assert_eq!(late.post(&confirm, json!({})).await.status, 401);
    late.cookies.insert("__Host-sid".to_owned(), stage.site.sign_in(account));
    stage.site.shift(Span::minutes(10));
    assert_eq!(late.post(&confirm, json!({})).await.status, 409, "ten minutes are over");
    stage.site.audit();
    stage.site.stop().await;
}

/// Where single sign-on is the only way in, it is an owner who came by it who made it so; whoever has an account of before links it by
/// what they signed in with, which gives no session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_sign_on_alone_locks_nobody_out() {
    let stage = Stage::set().await;
    stage.prove();
    let place = format!("/api/w/{}", stage.site.workspace());
    stage.invite("owner2@hooks.example.com", Role::Owner);
    stage.invite(ANN, Role::Member);
    let owner = stage.site.member(Role::Owner);
    let mut by_password = stage.browser().await;
    by_password.cookies.insert("__Host-sid".to_owned(), owner.sid);
    let (settings, required) = (format!("{place}/settings"), json!({ "signIn": { "requireSso": true } }));
    let got = by_password.send("PUT", &settings, Some(&required)).await;
    assert_eq!(got.refusal(), (400, "invalid_request".to_owned(), vec!["signIn.requireSso".to_owned()]));
    let (mut by_sso, got) = stage.come(stage.claims("owner2", "owner2@hooks.example.com")).await;
    assert_eq!(to(&got), "/sign-in");
    assert_eq!(by_sso.send("PUT", &settings, Some(&required)).await.ok()["signIn"]["requireSso"], true);
    assert_eq!(by_password.get(&settings).await.status, 403, "a password is no way in any more");
    let integration = format!("{place}/integrations/{}", stage.integration.id);
    for (method, body) in
        [("PATCH", json!({ "enabled": false })), ("PATCH", json!({ "config": null })), ("DELETE", json!({}))]
    {
        let got = by_sso.send(method, &integration, Some(&body)).await;
        assert_eq!((got.status, got.kind()), (409, "not_allowed".to_owned()), "{method} {body}");
    }
    let at_once = json!({ "secret": "the-next-one", "overlapHours": 0 });
    let got = by_sso.post(&format!("{integration}/rotate"), at_once).await;
    assert_eq!((got.status, got.kind()), (409, "not_allowed".to_owned()), "the secret before may be the only good one");

    // Ann has used her link before: she is no new account.
    let email = Email::parse(ANN).unwrap();
    let link = |token: &str| {
        stage.site.gate.execute(MakeLink { email: email.clone(), token: Digest::of(token), life: None }).unwrap();
        json!({ "token": token })
    };
    let mut memory = stage.site.memory();
    let account =
        stage.site.gate.execute(MakeLink { email: email.clone(), token: Digest::of("sil_0"), life: None }).unwrap();
    let key = Account::key(account);
    let found = memory.load(&[key]).unwrap().remove(0).record.unwrap();
    let account = Account::peel(&found).unwrap();
    stage.site.plant(Account { signed_in_at: Some(stage.site.now()), ..(**account).clone() });
    let (mut browser, got) = stage.come(stage.claims("ann", ANN)).await;
    assert!(to(&got).contains("link="));
    let step = browser.post("/api/sign-in/link", link("sil_1")).await;
    assert!(!browser.cookies.contains_key("__Host-sid"), "it gives no session");
    let step = step.ok();
    assert_eq!((&step["next"], &step["workspaces"][0]["signIn"]["requireSso"]), (&json!("sso"), &json!(true)));
    let as_factor = json!({ "pending": step["pending"], "code": "000000" });
    assert_eq!(browser.post("/api/sign-in/totp", as_factor).await.status, 401, "it waits for no second factor");
    let done = browser.post(&stage.start(), json!({ "pending": step["pending"] })).await;
    assert_eq!(done.ok()["next"], "done");
    assert_eq!(browser.me().await["email"], ANN);
    // What the provider's session alone may not, the account's own proof beside it may: a second factor is set up and taken away.
    assert_eq!(browser.post("/api/me/totp", json!({})).await.status, 403, "the provider's word alone");
    let own = browser.post("/api/sign-in/link", link("sil_2")).await.ok()["pending"].clone();
    let made = browser.post("/api/me/totp", json!({ "pending": own })).await.ok();
    let code = code_now(&unbase32(made["secret"].as_str().unwrap()), stage.site.now());
    let confirm = |own: Value| json!({ "code": code, "pending": own });
    assert_eq!(browser.post("/api/me/totp/confirm", confirm(json!("guessed"))).await.status, 403);
    let done = browser.post("/api/me/totp/confirm", confirm(own.clone())).await.ok();
    assert_eq!(done["recoveryCodes"].as_array().unwrap().len(), 10);
    assert_eq!(browser.me().await["twoFactor"], true, "the session it was set up in stays");
    let recovery = json!({ "recoveryCode": done["recoveryCodes"][0], "pending": own });
    assert_eq!(browser.send("DELETE", "/api/me/totp", Some(&recovery)).await.status, 403, "the proof is used up");

    let off = json!({ "signIn": { "requireSso": false } });
    assert_eq!(by_sso.send("PUT", &settings, Some(&off)).await.status, 200);
    assert_eq!(by_sso.send("DELETE", &integration, None).await.status, 204);
    stage.site.audit();
    stage.site.stop().await;
}

/// A provider that describes itself as another, by addresses that may not be called, at length or elsewhere, is not gone to; it is asked
/// once in ten seconds, whoever wants to sign in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_cannot_be_trusted_is_not_gone_to() {
    let large = format!("HTTP/1.1 200 It\r\ncontent-length: 70000\r\n\r\n{}", " ".repeat(70_000));
    let moved = "HTTP/1.1 302 There\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".to_owned();
    let described = |name: &'static str, value: Value| {
        Box::new(move |it: &mut Conduct| drop(it.described.insert(name, value))) as Attack
    };
    let path = "/.well-known/openid-configuration";
    let answered =
        |text: String| Box::new(move |it: &mut Conduct| drop(it.answers.insert(path, text.into_bytes()))) as Attack;
    for (why, conduct) in [
        ("another issuer", described("issuer", json!("https://idp.example.com"))),
        ("a login without TLS", described("authorization_endpoint", json!("http://idp.example.com/login"))),
        ("a token endpoint without TLS", described("token_endpoint", json!("http://idp.example.com/token"))),
        ("keys in the cloud's own place", described("jwks_uri", json!("https://169.254.169.254/keys"))),
        ("no way to show who this is", described("token_endpoint_auth_methods_supported", json!(["private_key_jwt"]))),
        ("very much", answered(large)),
        ("elsewhere", answered(moved)),
    ] {
        let stage = Stage::set().await;
        stage.provider.behave(conduct);
        let mut browser = stage.browser().await;
        for _ in 0..3 {
            let got = browser.get(&stage.start()).await;
            is_refused(&mut browser, &got, 503, why).await;
            assert!(browser.cookies.is_empty());
        }
        assert_eq!(stage.provider.calls(path), 1, "{why}");
        stage.site.stop().await;
    }
}

/// Nobody is led from here anywhere else; and however often somebody comes back with what is not believed, others behind their address
/// are signed in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_led_elsewhere_or_locked_out() {
    let stage = Stage::set().await;
    let mut browser = stage.browser().await;
    for next in [
        "https://evil.example",
        "//evil.example",
        "/%5Cevil.example",
        "/w/..//evil",
        "/sign-in",
        "%0d%0ax",
        "/w/a%0d%0ax:%20y",
    ] {
        let got = browser.get(&format!("{}?next={next}", stage.start())).await;
        is_refused(&mut browser, &got, 400, next).await;
        assert!(got.header("location").is_none() && browser.cookies.is_empty(), "{next}");
    }
    // A page of another site leads nobody through: its own provider would say who they are.
    let marks = |site| [("host", "gate.example.com"), ("accept", "text/html"), ("sec-fetch-site", site)];
    let start = format!("{}?next=/w/a", stage.start());
    for (site, status) in [("cross-site", 200), ("same-site", 200), ("same-origin", 303), ("none", 303)] {
        let got = browser.client.ask("GET", &start, &marks(site), b"").await;
        assert_eq!((got.status, got.header("set-cookie").is_some()), (status, status == 303), "{site}: {got:?}");
        assert!(status == 303 || got.text().contains(&format!("href=\"{start}\"")), "{site}: {got:?}");
    }
    stage.provider.behave(|it| it.alg = "none");
    let mut statuses = Vec::new();
    for _ in 0..11 {
        let led = to(&browser.get(&stage.start()).await).to_owned();
        let back = stage.provider.signs_in(&led, stage.claims("ann", ANN));
        statuses.push(browser.back(&back).await.status);
    }
    assert_eq!(statuses, [401; 11], "each is heard: a code is good for the sign-in that it was begun for alone");
    stage.provider.behave(|it| it.alg = "ES256");
    stage.prove();
    stage.invite(ANN, Role::Member);
    let led = to(&browser.get(&stage.start()).await).to_owned();
    let back = stage.provider.signs_in(&led, stage.claims("ann", ANN));
    assert_eq!(to(&browser.back(&back).await), "/sign-in", "nobody behind the address is locked out");
    stage.site.stop().await;
}

/// A provider is made by an owner with the secret that it has drawn, which no answer gives back; where it leads people back to is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_makes_the_provider() {
    let site = Site::start().await;
    let (owner, admin) = (site.member(Role::Owner), site.member(Role::Admin));
    let mut client = site.client().await;
    let path = format!("/api/w/{}/integrations", site.workspace());
    let body = |secret: Value, config: Value| json!({ "kind": "oidc", "secret": secret, "config": config });
    let config = json!({ "issuer": "https://idp.example.com/realms/acme", "clientId": "svc" });
    for (sent, fields) in [
        (json!({ "kind": "oidc" }), vec!["secret"]),
        (body(json!("short"), config.clone()), vec!["secret"]),
        (body(json!(site.key(KeyScope::Admin)), config.clone()), vec!["secret"]),
        (
            body(json!("long enough"), json!({ "issuer": "http://idp.example.com", "clientId": "a b" })),
            vec!["config.clientId", "config.issuer"],
        ),
        (body(json!("longenough"), json!({ "issuer": "https://idp.example.com?tenant=a" })), vec!["config.issuer"]),
        (
            body(json!("longenough"), json!({ "issuer": "https://10.0.0.1", "jwksUrl": "https://a.example/keys" })),
            vec!["config.issuer", "config.jwksUrl"],
        ),
    ] {
        let got = owner.ask(&mut client, "POST", &path, Some(&sent)).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{sent}");
        assert!(fields.iter().all(|it| got.fields().contains(&(*it).to_owned())), "{sent}: {:?}", got.fields());
    }
    let good = body(json!("idp-secret-0123"), config.clone());
    assert_eq!(admin.ask(&mut client, "POST", &path, Some(&good)).await.status, 403);
    let made = owner.ask(&mut client, "POST", &path, Some(&good)).await.made();
    let back = format!("{BASE_URL}/api/sign-in/sso/{}/callback", site.workspace());
    assert_eq!((&made["receiveUrl"], &made["config"], &made["secretHint"]), (&json!(back), &config, &json!("0123")));
    assert!(made.get("secret").is_none(), "{made}");
    let own = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(admin.ask(&mut client, "GET", &own, None).await.ok()["config"], config, "an admin sees it");
    for (method, place, body) in [
        ("PATCH", own.clone(), json!({ "enabled": false })),
        ("POST", format!("{own}/rotate"), json!({ "secret": "another-0123" })),
        ("DELETE", own.clone(), json!({})),
    ] {
        assert_eq!(admin.ask(&mut client, method, &place, Some(&body)).await.status, 403, "{method} {place}");
    }
    let bare = owner.ask(&mut client, "POST", &format!("{own}/rotate"), Some(&json!({}))).await;
    assert_eq!((bare.status, bare.fields()), (400, vec!["secret".to_owned()]));
    let rotated =
        owner.ask(&mut client, "POST", &format!("{own}/rotate"), Some(&json!({ "secret": "another-4567" }))).await.ok();
    assert!(rotated.get("secret").is_none() && rotated["secretHint"] == "4567", "{rotated}");
    let tried =
        owner.ask(&mut client, "POST", &format!("{own}/test"), Some(&json!({ "url": "https://a.example/" }))).await;
    assert_eq!(tried.kind(), "not_allowed");
    assert_eq!(owner.ask(&mut client, "DELETE", &own, None).await.status, 204);
    site.stop().await;
}

/// While a secret rotates a provider that knows the one before is spoken to by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_rotates_is_good_as_long_as_it_is() {
    let stage = Stage::set().await;
    stage.prove();
    let (principal, _) = stage.invite(ANN, Role::Member);
    let owner = stage.site.member(Role::Owner);
    let mut client = stage.site.client().await;
    let rotate = format!("/api/w/{}/integrations/{}/rotate", stage.site.workspace(), stage.integration.id);
    owner.ask(&mut client, "POST", &rotate, Some(&json!({ "secret": "the-next-one", "overlapHours": 1 }))).await.ok();
    // Providers have several ways to say that they do not know a client by its secret.
    for told in [
        (400, "invalid_client"),
        (401, "invalid_client"),
        (401, "unauthorized_client"),
        (401, "access_denied"),
        (401, "whatever_else"),
        (400, "unauthorized_client"),
        (403, "access_denied"),
    ] {
        stage.provider.behave(|it| it.unknown_client = told);
        let (_, got) = stage.come(stage.claims("ann", ANN)).await;
        assert_eq!(to(&got), "/sign-in", "{told:?}");
    }
    stage.site.shift(Span::hours(2));
    stage.refuses(stage.claims("ann", ANN), 503, "the one before has ended").await;
    stage.provider.behave(|it| it.secret = "the-next-one");
    let (mut browser, got) = stage.come(stage.claims("ann", ANN)).await;
    assert_eq!(to(&got), "/sign-in");
    // Somebody who is removed is out at once, whatever the provider says of them.
    let gone = format!("/api/w/{}/members/{principal}", stage.site.workspace());
    assert_eq!(owner.ask(&mut client, "DELETE", &gone, None).await.status, 204);
    assert_eq!(browser.get("/api/me").await.status, 401);
    stage.refuses(stage.claims("ann", ANN), 401, "they are nobody here any more").await;
    let memory = &mut stage.site.memory();
    let found = memory.load(&[Principal::key(principal)]).unwrap().remove(0).record.unwrap();
    assert!(Principal::peel(&found).unwrap().was_removed());
    stage.site.stop().await;
}

/// Whoever was signed out by a shared signal comes in again with what their provider says from that second on; what it said before brings
/// nobody back, and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_was_signed_out_comes_in_again() {
    let stage = Stage::set().await;
    stage.prove();
    let (id, _) = stage.invite(ANN, Role::Member);
    let (mut browser, got) = stage.come(stage.claims("ann", ANN)).await;
    assert_eq!(to(&got), "/sign-in");
    // A moment that is no whole second.
    stage.site.shift(Span::millis(1_500 - stage.site.now().as_millis().rem_euclid(1_000)));
    let principal = stage.site.gate.read(|scope| scope.get::<Principal>(id)).unwrap().unwrap();
    let mut signed_out = Principal::clone(&principal);
    signed_out.member.as_mut().unwrap().signed_out_at = Some(stage.site.now());
    stage.site.plant(signed_out);
    let agents = format!("/api/w/{}/agents", stage.site.workspace());
    assert_eq!(browser.get(&agents).await.status, 401);
    stage.site.shift(Span::millis(1));
    let mut before = stage.claims("ann", ANN);
    before["iat"] = json!(stage.site.now().as_seconds() - 1);
    let (mut browser, got) = stage.come(before).await;
    assert!(got.text().contains("You were signed out there a moment ago"), "{got:?}");
    is_refused(&mut browser, &got, 401, "said before").await;
    let (mut browser, got) = stage.come(stage.claims("ann", ANN)).await;
    assert_eq!(to(&got), "/sign-in");
    assert_eq!(browser.get(&agents).await.status, 200);
    stage.site.audit();
    stage.site.stop().await;
}
