//! What an identity provider pushes of people, over real sockets: their sessions end in the workspace that is told, and nowhere else;
//! of those who are shut out the agents stop.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::members::MemberDone;
use svc_core::rules::people::register_agent::{ActsFor, RegisterAgent};
use svc_core::state::edge::{ConfigChange, IntegrationKind, SignalKeys};
use svc_core::state::gate::Agent;
use svc_core::state::people::{
    Account, Member, MemberState, Membership, Plan, Principal, Role, Roster, Settings, SsoLink, Workspace,
};
use svc_core::testing::people::invitation;
use svc_core::value::Id as _;
use svc_core::value::Span;
use svc_core::value::id::{PrincipalId, WorkspaceId};
use svc_core::value::text::{Email, Label, UrlText};
use svc_http::upstream::Allowed;
use svc_tests::client::{Client, Got};
use svc_tests::oauth::{VERIFIER, challenge, open, public, wish};
use svc_tests::people::Person;
use svc_tests::receiver::{Receiver, Reply, connect_kind};
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::{Plan as SitePlan, Site};
use tokio::task::JoinSet;

const ISSUER: &str = "https://idp.example.com";
const AUDIENCE: &str = "svc-of-acme";
const REVOKED: &str = "https://schemas.openid.net/secevent/caep/event-type/session-revoked";
const DISABLED: &str = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";

/// An identity provider and the site that hears it.
struct Provider {
    site: Site,
    client: Client,
    pair: EcdsaKeyPair,
    path: String,
    jti: u32,
}

impl Provider {
    async fn new(keys: impl FnOnce(&str) -> SignalKeys) -> Self {
        Self::with(|_| {}, keys).await
    }

    async fn with(change: impl FnOnce(&mut SitePlan), keys: impl FnOnce(&str) -> SignalKeys) -> Self {
        let site = Site::with(|plan| {
            change(plan);
            plan.config.allow_private_callbacks = true;
            plan.config.outbound.allow = Allowed::loopback();
        })
        .await;
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let set = key_set(&pair, "one");
        let change = ConfigChange {
            issuer: Some(Some(ISSUER.into())),
            audience: Some(Some(AUDIENCE.into())),
            keys: Some(keys(&set)),
            ..ConfigChange::default()
        };
        connect_kind(&site, IntegrationKind::Ssf, change);
        let client = site.client().await;
        let path = format!("/hooks/ssf/{}", site.workspace());
        Self { site, client, pair, path, jti: 0 }
    }

    fn claims(&mut self, event: &str, email: &str) -> Value {
        self.jti += 1;
        json!({
            "iss": ISSUER, "aud": [AUDIENCE], "jti": format!("set-{}", self.jti), "iat": self.site.now().as_seconds(),
            "sub_id": { "format": "email", "email": email }, "events": { event: { "event_timestamp": 1 } },
        })
    }

    fn token(&self, claims: &Value, kid: &str) -> String {
        self.signed(&json!({ "alg": "ES256", "typ": "secevent+jwt", "kid": kid }), claims)
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let signed = [header, claims].map(|it| URL_SAFE_NO_PAD.encode(it.to_string())).join(".");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    async fn push(&mut self, token: &str) -> Got {
        push(&mut self.client, &self.path, token).await
    }

    async fn tell(&mut self, event: &str, email: &str) -> Got {
        let claims = self.claims(event, email);
        let token = self.token(&claims, "one");
        self.push(&token).await
    }

    /// What the ledger says of signals, one after the other.
    fn heard(&self) -> Vec<Value> {
        let ledger = self.site.ledger();
        let told = ledger.iter().filter(|it| &*it.kind == "signal.received");
        told.map(|it| serde_json::from_str(&it.data).unwrap()).collect()
    }

    async fn status(&mut self, person: &Person, workspace: WorkspaceId) -> u16 {
        person.ask(&mut self.client, "GET", &format!("/api/w/{workspace}/agents"), None).await.status
    }
}

fn key_set(pair: &EcdsaKeyPair, kid: &str) -> String {
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let [x, y] = [x, y].map(|it| URL_SAFE_NO_PAD.encode(it));
    json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": kid, "x": x, "y": y }] }).to_string()
}

async fn push(client: &mut Client, path: &str, token: &str) -> Got {
    client.ask("POST", path, &[("content-type", "application/secevent+jwt")], token.as_bytes()).await
}

async fn provider() -> Provider {
    Provider::new(|set| SignalKeys::Set(set.into())).await
}

/// Another workspace, which a person of the site is a member of too.
fn elsewhere(site: &Site, person: &Person) -> WorkspaceId {
    let (workspace, principal) = (WorkspaceId::from_bits(site.fresh_bits()), PrincipalId::from_bits(site.fresh_bits()));
    let (now, email) = (site.now(), Email::parse(&person.email).unwrap());
    site.plant(Workspace {
        id: workspace,
        name: Label::parse("Elsewhere").unwrap(),
        settings: Settings::default(),
        plan: Plan::default(),
        subscriptions: Vec::new(),
        told_over: Vec::new(),
        holds: Vec::new(),
        budgets: Vec::new(),
        owner: principal,
        owners: vec![principal],
        created_at: now,
    });
    site.plant(Roster { workspace, epoch: 0, agents: 0, mandates: 0 });
    let member = Member::new(Role::Owner, MemberState::Active, person.account);
    site.plant(Principal { member: Some(member), ..Principal::new(principal, workspace, email.clone(), now) });
    let here = Membership { workspace: site.workspace(), principal: person.principal };
    let memberships = vec![here, Membership { workspace, principal }];
    site.plant(Account { memberships, signed_in_at: Some(now), ..Account::new(person.account, email, now) });
    workspace
}

/// A person whose session is revoked signs in anew in that workspace; other people, other workspaces and other events are left
/// alone, and the ledger has each signal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_session_is_over_here_alone() {
    let mut from = provider().await;
    let (ann, ben) = (from.site.member(Role::Admin), from.site.member(Role::Admin));
    let (here, there) = (from.site.workspace(), elsewhere(&from.site, &ann));
    let unknown = "https://schemas.openid.net/secevent/caep/event-type/device-compliance-change";
    for (event, email) in [(unknown, &*ann.email), (REVOKED, "nobody@example.com"), (REVOKED, "no address")] {
        assert_eq!(from.tell(event, email).await.status, 202, "{event}");
    }
    assert_eq!((from.status(&ann, here).await, from.status(&ann, there).await), (200, 200));
    let got = from.tell(REVOKED, &ann.email.to_uppercase()).await;
    assert_eq!((got.status, got.text()), (202, String::new()));
    assert_eq!((from.status(&ann, here).await, from.status(&ann, there).await), (401, 200));
    assert_eq!(from.status(&ben, here).await, 200);
    from.site.shift(Span::millis(1));
    let again = Person { sid: from.site.sign_in(ann.account), ..ann.clone() };
    assert_eq!(from.status(&again, here).await, 200);
    let outcomes: Vec<Value> = from.heard().iter().map(|it| json!([it["event"], it["outcome"]])).collect();
    let unknown = json!(["session-revoked", "unknown_subject"]);
    assert_eq!(
        outcomes,
        [json!(["other", "ignored"]), unknown.clone(), unknown, json!(["session-revoked", "sessions_ended"])]
    );
    assert_eq!(from.heard()[3]["principalId"], json!(ann.principal.to_string()));
    // Whom no workspace takes any more is asked to sign in where they connect an agent, as one without a session.
    assert_eq!(from.tell(REVOKED, &ben.email).await.status, 202);
    let mut client = from.site.client().await;
    let (id, challenge) = (public(&mut client).await, challenge(VERIFIER));
    let shown = open(&mut client, Some(&ben), &wish(&id, &challenge)).await;
    let without = open(&mut client, None, &wish(&id, &challenge)).await;
    assert_eq!((shown.status, shown.text().contains("type=\"password\"")), (without.status, true), "{}", shown.text());
}

/// A provider tells of a person by their address as it writes it: whoever was invited by another writing of its host is shut out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_found_by_either_writing_of_their_address() {
    for (kept, told) in
        [("kim@xn--caf-dma.example", "kim@caf\u{e9}.example"), ("kim@caf\u{e9}.example", "kim@xn--caf-dma.example")]
    {
        let mut from = provider().await;
        let here = from.site.workspace();
        let invited = from.site.gate.execute(invitation(here, kept, Role::Member)).unwrap();
        let MemberDone::Done { principal: kim, .. } = invited else { panic!("nobody is asked") };
        let made = from.site.gate.execute(RegisterAgent {
            principal: ActsFor::Principal(kim.id),
            ..RegisterAgent::new(here, Label::parse("Kim's").unwrap(), NewKey::of("ask_of_kim"))
        });
        let agent = made.unwrap().agent.id;
        assert_eq!(from.tell(DISABLED, told).await.status, 202);
        assert_eq!(from.heard()[0]["principalId"], json!(kim.id.to_string()), "{told}");
        let agent = from.site.gate.read(|scope| scope.get::<Agent>(agent)).unwrap().unwrap();
        assert!(agent.frozen().is_some(), "{told}");
    }
}

/// Whom single sign-on knows by the provider's own name is found by that name, and nobody else is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_found_by_the_providers_own_name() {
    let mut from = provider().await;
    let ann = from.site.member(Role::Admin);
    let (here, now) = (from.site.workspace(), from.site.now());
    let id = SsoLink::id_of(here, ISSUER, "ann");
    from.site.plant(SsoLink { id, workspace: here, account: ann.account, created_at: now });
    let member = Member { sso: Some(id), ..Member::new(Role::Admin, MemberState::Active, ann.account) };
    let email = Email::parse(&ann.email).unwrap();
    from.site.plant(Principal { member: Some(member), ..Principal::new(ann.principal, here, email, now) });
    for (issuer, subject, status) in [(ISSUER, "ben", 200), ("https://other.example", "ann", 200), (ISSUER, "ann", 401)]
    {
        let mut claims = from.claims(REVOKED, "");
        claims["sub_id"] = json!({ "format": "iss_sub", "iss": issuer, "sub": subject });
        let token = from.token(&claims, "one");
        assert_eq!(from.push(&token).await.status, 202);
        assert_eq!(from.status(&ann, here).await, status, "{issuer} {subject}");
    }
    assert_eq!(from.heard()[2]["principalId"], json!(ann.principal.to_string()));
    // Whom a provider names with a slash behind its own name, or within the event by a member without a format, is the same person.
    let named = |iss: &str| json!({ "format": "iss_sub", "iss": iss, "sub": "ann" });
    for subject in [json!({ "user": named(ISSUER) }), named(&format!("{ISSUER}/"))] {
        from.site.shift(Span::millis(1));
        let again = Person { sid: from.site.sign_in(ann.account), ..ann.clone() };
        assert_eq!(from.status(&again, here).await, 200);
        let mut claims = from.claims(REVOKED, "");
        claims.as_object_mut().unwrap().remove("sub_id");
        claims["events"][REVOKED]["subject"] = subject.clone();
        let token = from.token(&claims, "one");
        assert_eq!(from.push(&token).await.status, 202);
        assert_eq!(from.status(&again, here).await, 401, "{subject}");
    }
}

/// What is told of somebody whom nobody knows here, though it asks for something, shows as the integration's last error until
/// something is heard that is understood; what asks for nothing is no miss.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_about_nobody_is_seen() {
    let mut from = provider().await;
    let (ann, owner) = (from.site.member(Role::Admin), from.site.member(Role::Owner));
    let path = format!("/api/w/{}/integrations", from.site.workspace());
    let quiet = "https://schemas.openid.net/secevent/ssf/event-type/verification";
    let (nobody, miss) = ("nobody@example.com", json!("an event was about somebody who is nobody here"));
    for (event, email, told) in [
        (quiet, nobody, Value::Null),
        (REVOKED, nobody, miss.clone()),
        (quiet, nobody, miss.clone()),
        (DISABLED, "no address", miss),
        (REVOKED, &*ann.email, Value::Null),
    ] {
        assert_eq!(from.tell(event, email).await.status, 202);
        let listed = owner.ask(&mut from.client, "GET", &path, None).await.ok();
        let shown = &listed["data"][0];
        assert_eq!((&shown["lastError"], &shown["state"]), (&told, &json!("ok")), "{event} {email}");
    }
}

/// A chat's link that a signal has ended is shown as ended, and nothing can come of a chat that has no other; whoever is left out and
/// named again is linked anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_a_signal_ended_is_shown() {
    let mut from = provider().await;
    let (ann, ben) = (from.site.member(Role::Admin), from.site.member(Role::Admin));
    let path = format!("/api/w/{}/integrations", from.site.workspace());
    let both = json!({ "ann": ann.principal, "ben": ben.principal });
    let new = json!({ "kind": "relay", "config": { "members": both } });
    let made = ben.ask(&mut from.client, "POST", &path, Some(&new)).await.made();
    assert_eq!((&made["state"], &made["ended"], &made["config"]["members"]), (&json!("ok"), &json!([]), &both));
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(from.tell(REVOKED, &ann.email).await.status, 202);
    let read = ben.ask(&mut from.client, "GET", &one, None).await.ok();
    assert_eq!((&read["state"], &read["ended"], &read["config"]["members"]), (&json!("ok"), &json!(["ann"]), &both));
    for (members, state, ended) in [
        (json!({ "ann": ann.principal }), "off", json!(["ann"])),
        (json!({}), "off", json!([])),
        (json!({ "ann": ann.principal }), "ok", json!([])),
    ] {
        from.site.shift(Span::millis(1));
        let change = json!({ "config": { "members": members } });
        let changed = ben.ask(&mut from.client, "PATCH", &one, Some(&change)).await.ok();
        assert_eq!((&changed["state"], &changed["ended"]), (&json!(state), &ended), "{members}");
        let rows = ben.ask(&mut from.client, "GET", &path, None).await.ok()["data"].clone();
        let listed = rows.as_array().unwrap().iter().find(|it| it["kind"] == "relay").unwrap();
        assert_eq!(listed["ended"], ended, "{members}");
    }
    from.site.stop().await;
}

/// Of a person who is shut out the agents stop in the commit that hears it, as the integration's doing; nobody else's do. Of one token
/// pushed sixty-four times at once one is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_shut_out_has_their_agents_stopped() {
    let mut from = provider().await;
    let agent = from.site.agent(&[WIDE]);
    let owner = from.site.member(Role::Owner);
    let list = format!("/api/w/{}/agents", from.site.workspace());
    let made = owner.ask(&mut from.client, "GET", &list, None).await.ok()["data"][0].clone();
    assert_eq!(from.client.authorize(&agent.key, &payment(100)).await.ok()["decision"], "allow");
    assert_eq!(from.tell(DISABLED, &owner.email).await.status, 202);
    let owner = from.site.member(Role::Owner);
    assert_eq!(from.client.authorize(&agent.key, &payment(200)).await.ok()["decision"], "allow", "it acts for another");
    let claims = from.claims(DISABLED, made["principalEmail"].as_str().unwrap());
    let token = from.token(&claims, "one");
    let mut pushing = JoinSet::new();
    for _ in 0..64 {
        let (mut client, path, token) = (from.site.client().await, from.path.clone(), token.clone());
        pushing.spawn(async move { push(&mut client, &path, &token).await.status });
    }
    let mut statuses = pushing.join_all().await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (202, &[400; 63][..]));
    let denied = from.client.authorize(&agent.key, &payment(300)).await.ok();
    assert_eq!((&denied["decision"], &denied["reasons"][0]["code"]), (&json!("deny"), &json!("agent_frozen")));
    let stands = owner.ask(&mut from.client, "GET", &format!("{list}/{}", agent.id), None).await.ok();
    let frozen = &stands["frozen"];
    assert_eq!((&stands["standing"], &frozen["by"]), (&json!("frozen"), &json!("integration")), "{stands}");
    assert!(frozen["byId"].as_str().unwrap().starts_with("int_"), "{stands}");
    let heard = from.heard();
    let outcomes = [&heard[0]["outcome"], &heard[1]["outcome"]];
    assert_eq!((heard.len(), outcomes), (2, [&json!("sessions_ended"), &json!("agents_frozen")]), "{heard:?}");
}

/// Whoever is shut out keeps no other way in: a further key that they made for somebody else's agent ends, the key that it came with
/// does not, nor does anything where only sessions are ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_shut_out_keeps_no_key() {
    let mut from = provider().await;
    let (agent, ann) = (from.site.agent(&[WIDE]), from.site.member(Role::Admin));
    let path = format!("/api/w/{}/agents/{}/keys", from.site.workspace(), agent.id);
    let made = ann.ask(&mut from.client, "POST", &path, Some(&json!({ "label": "mine" }))).await.made();
    let own = made["key"].as_str().unwrap().to_owned();
    assert_eq!(from.tell(REVOKED, &ann.email).await.status, 202);
    assert_eq!(from.client.authorize(&own, &payment(100)).await.status, 200, "her sessions alone have ended");
    from.site.shift(Span::millis(1));
    assert_eq!(from.tell(DISABLED, &ann.email).await.status, 202);
    let refused = from.client.authorize(&own, &payment(200)).await;
    assert_eq!((refused.status, refused.kind()), (401, "invalid_api_key".to_owned()));
    assert_eq!(from.client.authorize(&agent.key, &payment(300)).await.status, 200);
    from.site.gate.tick().unwrap();
    let owner = from.site.member(Role::Owner);
    let keys = owner.ask(&mut from.client, "GET", &path, None).await.ok()["data"].clone();
    let told = keys.as_array().unwrap().iter().find(|it| it["id"] == made["id"]).cloned();
    assert!(told.is_none_or(|it| it["revokedAt"].is_string()), "its row says so as well: {keys}");
}

/// What is not the issuer's, not for this audience, too old or no token is refused in the words of RFC 8935, and does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_believed_is_refused() {
    let mut from = provider().await;
    let ann = from.site.member(Role::Admin);
    let stranger = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let claims = from.claims(REVOKED, &ann.email);
    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        claims
    };
    let seconds = from.site.now().as_seconds();
    let mut tokens = vec![
        (from.token(&with("iss", json!("https://evil.example")), "one"), "invalid_issuer"),
        (from.token(&with("aud", json!("another")), "one"), "invalid_audience"),
        (from.token(&with("iat", json!(seconds - 7 * 86_400)), "one"), "invalid_request"),
        (from.token(&with("sub", json!("x")), "one"), "invalid_request"),
        (from.token(&claims, "two"), "invalid_key"),
        ("x".to_owned(), "invalid_request"),
    ];
    let own = std::mem::replace(&mut from.pair, stranger);
    tokens.push((from.token(&claims, "one"), "authentication_failed"));
    from.pair = own;
    for (token, err) in &tokens {
        let got = from.push(token).await;
        assert_eq!((got.status, got.json()["err"].as_str()), (400, Some(*err)), "{}", got.text());
        assert_eq!(got.header("content-language"), Some("en"));
        assert!(got.json()["description"].is_string(), "{}", got.text());
    }
    let good = from.token(&claims, "one");
    let elsewhere = "/hooks/ssf/wsp_00000000000000000000000001";
    let got = push(&mut from.client, elsewhere, &good).await;
    assert_eq!((got.status, got.json()["err"].as_str()), (400, Some("authentication_failed")));
    let plain = from.client.ask("POST", &from.path.clone(), &[], good.as_bytes()).await;
    assert_eq!((plain.status, plain.json()["err"].as_str()), (400, Some("invalid_request")));
    assert_eq!((from.status(&ann, from.site.workspace()).await, from.heard().len()), (200, 0));
    assert_eq!(from.push(&good).await.status, 202);
    let again = from.push(&good).await;
    assert_eq!(
        (again.status, again.json()["err"].as_str()),
        (400, Some("authentication_failed")),
        "a token is good once"
    );
    from.site.advance(Span::hours(6 * 24));
    assert_eq!(from.push(&good).await.json()["err"], "authentication_failed", "for as long as its age lets it in");
    assert_eq!(from.heard().len(), 1);
}

/// Keys are read from the issuer's address where they are named so: once, however many tokens name keys that are not there. A token
/// whose key was looked for is refused; one whose key may have been published since is to be sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_read_from_the_issuer() {
    let mut receiver = Receiver::start().await;
    let url = UrlText::parse(&receiver.url("/keys")).unwrap();
    let mut from = Provider::new(|_| SignalKeys::Url(url)).await;
    receiver.answer([Reply::Document("no-store", key_set(&from.pair, "one"))]);
    let ann = from.site.member(Role::Admin);
    let claims = from.claims(REVOKED, &ann.email);
    let token = from.token(&claims, "two");
    let looked = from.push(&token).await;
    assert_eq!((looked.status, looked.json()["err"].as_str()), (400, Some("invalid_key")));
    for _ in 0..2 {
        assert_eq!(from.tell(REVOKED, &ann.email).await.status, 202);
    }
    for _ in 0..3 {
        let got = from.push(&token).await;
        assert_eq!((got.status, got.json()["err"].as_str()), (503, Some("not_ready")));
        let wait: u64 = got.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    assert!(receiver.next().await.line.starts_with("GET /keys "));
    assert!(receiver.is_quiet(), "it is read once");
}

/// A key that was changed under its name, or has none, is looked for as one that is not there: its token is not refused for good before
/// the keys were read for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_was_changed_is_looked_for() {
    let receiver = Receiver::start().await;
    let url = UrlText::parse(&receiver.url("/keys")).unwrap();
    let mut from = Provider::new(|_| SignalKeys::Url(url)).await;
    receiver.answer([Reply::Document("no-store", key_set(&from.pair, "one"))]);
    let ann = from.site.member(Role::Admin);
    assert_eq!(from.tell(REVOKED, &ann.email).await.status, 202);
    from.pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    for header in [json!({ "kid": "one" }), json!({})] {
        let mut header = header;
        (header["alg"], header["typ"]) = (json!("ES256"), json!("secevent+jwt"));
        let claims = from.claims(REVOKED, &ann.email);
        let got = from.push(&from.signed(&header, &claims)).await;
        assert_eq!((got.status, got.json()["err"].as_str()), (503, Some("not_ready")), "{header}");
    }
    // Where they are read for it, that is the last word.
    let receiver = Receiver::start().await;
    let url = UrlText::parse(&receiver.url("/keys")).unwrap();
    let mut from = Provider::new(|_| SignalKeys::Url(url)).await;
    receiver.answer([Reply::Document("no-store", key_set(&from.pair, "one"))]);
    from.pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let got = from.tell(REVOKED, "ann@example.com").await;
    assert_eq!((got.status, got.json()["err"].as_str()), (400, Some("authentication_failed")));
}

/// Where the issuer's keys cannot be had a token is not refused for good: its sender is told to come again. Who sends it is not known
/// meanwhile, and counts by address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_to_be_sent_again_where_there_are_no_keys() {
    let receiver = Receiver::start().await;
    let url = UrlText::parse(&receiver.url("/keys")).unwrap();
    let few = |plan: &mut SitePlan| plan.config.limits.gateway_per_minute = 2;
    let mut from = Provider::with(few, |_| SignalKeys::Url(url)).await;
    receiver.answer([Reply::Status(500)]);
    for (status, err) in [(503, "not_ready"), (503, "not_ready"), (429, "rate_limited")] {
        let got = from.tell(REVOKED, "ann@example.com").await;
        assert_eq!((got.status, got.json()["err"].as_str()), (status, Some(err)));
    }
    assert!(from.heard().is_empty());
}
