//! Clients over a real socket that nobody here registered, and what hostile ones try: documents as ids, floods, redirects that
//! lead astray, a second factor on the way, and used tokens after the server was killed.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::people::by::{By, Person as Signed, Seat};
use svc_core::rules::people::links::MakeLink;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::connect::{CONNECTIONS_MAX, ClientTally, Connection, UNUSED_CLIENTS_MAX};
use svc_core::state::people::{Role, Session, Settings};
use svc_core::store::Record;
use svc_core::testing::world::BASE_URL;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AccountId, PrincipalId};
use svc_core::value::text::Email;
use svc_core::value::{Id as _, Span, Timestamp};
use svc_http::config::BaseUrl;
use svc_http::upstream::Allowed;
use svc_tests::client::{Client, Got};
use svc_tests::oauth::{
    HOST, REDIRECT, VERIFIER, challenge, code, connect, cookies, exchange, flat, hidden, led, open, post, public,
    refresh, refused, register, send, tokens, wish,
};
use svc_tests::people::{Person, code_now};
use svc_tests::program::Program;
use svc_tests::receiver::{Names, Receiver, Reply, tls};
use svc_tests::requests::{OFFICE, payment};
use svc_tests::site::{Plan, Site};

pub(super) const PLACE: &str = "hooks.example.com";

async fn site() -> (Site, Arc<Names>) {
    site_with(|_| {}).await
}

/// A site that may call loopback by that name, trusts the tests' certificate, and knows nobody else, and differs like this.
pub(super) async fn site_with(change: impl FnOnce(&mut Plan)) -> (Site, Arc<Names>) {
    let names = Names::new();
    names.set(PLACE, &[&["127.0.0.1"]]);
    let site = Site::with(|plan| {
        plan.config.allow_private_callbacks = true;
        plan.config.outbound.allow = Allowed::parse([PLACE]).unwrap();
        plan.config.outbound.ca_file = Some(tls("ca.pem"));
        plan.names = Some(Arc::clone(&names));
        change(plan);
    })
    .await;
    (site, names)
}

/// A good document of the client at this address.
pub(super) fn document(id: &str) -> Value {
    json!({
        "client_id": id,
        "client_name": "Travelling desk",
        "redirect_uris": ["http://localhost/callback", "cursor://anysphere.cursor-mcp/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    })
}

/// The page for a client, asked for by nobody or by a person.
pub(super) async fn page(client: &mut Client, person: Option<&Person>, id: &str, redirect: &str) -> Got {
    let challenge = challenge(VERIFIER);
    let mut members = wish(id, &challenge);
    members.retain(|(name, _)| *name != "redirect_uri");
    members.push(("redirect_uri", redirect));
    open(client, person, &members).await
}

pub(super) fn leads_nowhere(got: &Got, what: &str) {
    assert_eq!((got.status, got.header("location")), (400, None), "{what}: {}", got.text());
    assert!(got.text().contains("This did not work"), "{what}: {}", got.text());
}

/// What strangers name leads to no private address, also where callbacks may, and no provider of identity is looked for there.
#[tokio::test]
async fn strangers_reach_no_private_address() {
    let site = Site::with(|plan| plan.config.allow_private_callbacks = true).await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    for (kind, member) in [("oidc", "issuer"), ("ssf", "jwksUrl")] {
        let body = json!({ "kind": kind, "config": { member: "https://127.0.0.1:1/c" } });
        let got =
            owner.ask(&mut client, "POST", &format!("/api/w/{}/integrations", site.workspace()), Some(&body)).await;
        let fields = got.fields();
        assert!(got.status == 400 && fields.contains(&format!("config.{member}")), "{kind}: {}", got.text());
    }
    for id in ["https://127.0.0.1:1/c", "https://10.0.0.1/c", "https://localhost:1/c"] {
        let got = page(&mut client, None, id, "http://localhost/callback").await;
        leads_nowhere(&got, id);
        assert!(got.text().contains("its address may not be called"), "{id}: {}", got.text());
    }
}

/// Where a proxy puts a path before every route, the pages lead to where a browser finds them: the forms, and on from
/// signing in.
#[tokio::test]
async fn pages_lead_to_where_a_browser_finds_them() {
    let base = format!("{BASE_URL}/svc");
    let site = Site::with(|plan| plan.config.base_url = Some(BaseUrl::parse(&base).unwrap())).await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    let password = json!({ "password": "correct horse battery" });
    owner.ask(&mut client, "POST", "/api/me/password", Some(&password)).await.ok();
    let id = public(&mut client).await;
    let mut wish = wish(&id, "");
    wish.retain(|(name, _)| !matches!(*name, "resource" | "code_challenge"));
    let (challenge, resource) = (challenge(VERIFIER), format!("{base}/mcp"));
    wish.extend([("code_challenge", &*challenge), ("resource", &*resource)]);
    let page = open(&mut client, None, &wish).await;
    let (cookie, page) = (page.header("set-cookie").unwrap().split(';').next().unwrap().to_owned(), page.text());
    assert!(page.contains("action=\"/svc/sign-in\""), "{page}");
    let (request, next) = (hidden(&page, "request"), hidden(&page, "next"));
    let said = [("request", &*request), ("next", &*next), ("email", &*owner.email), ("password", "wrong")];
    let own = [("cookie", &*cookie), ("origin", BASE_URL)];
    let again = post(&mut client, "/sign-in", &said, &own).await;
    assert!(again.text().contains("action=\"/svc/sign-in\""), "{}", again.text());
    let said = [("email", &*owner.email), ("password", "correct horse battery")];
    let got = send(&mut client, &again, &said).await;
    assert_eq!((got.status, got.header("location")), (303, Some(&*format!("/svc{next}"))), "{}", got.text());
    let page = open(&mut client, Some(&owner), &wish).await.text();
    assert!(page.contains("action=\"/svc/oauth/authorize\""), "{page}");
}

/// Connections that nobody uses keep no new one out: at the bound the one unused for longest ends, and none that is in
/// use.
#[tokio::test]
async fn an_unused_connection_makes_room() {
    let site = Site::start().await;
    let (mut client, owner, agent) = (site.client().await, site.member(Role::Owner), site.agent(&[OFFICE]));
    let (id, agent) = (public(&mut client).await, agent.id.to_string());
    let mut pairs = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        pairs.push(connect(&mut client, &owner, &id, &agent).await);
    }
    let no_room = code(&mut client, &owner, &id, &agent).await;
    assert_eq!(flat(&exchange(&mut client, &id, &no_room, &[]).await), refused(400, "invalid_grant"), "all are in use");
    let rows = site.memory().dump();
    for (place, hours) in [(3, 25), (7, 30), (9, 24)] {
        let digest = Digest::of(&pairs[place].refresh);
        let found = rows.iter().find_map(|(_, _, it)| match it {
            Record::Connection(it) if it.refresh == digest => Some(Connection::clone(it)),
            _ => None,
        });
        let refreshed_at = Timestamp::from_millis(site.now().as_millis() - Span::hours(hours).as_millis());
        site.plant(Connection { refreshed_at, ..found.unwrap() });
    }
    for oldest in [7, 3] {
        connect(&mut client, &owner, &id, &agent).await;
        let got = client.authorize(&pairs[oldest].access, &payment(100)).await;
        assert_eq!(got.refusal().1, "invalid_api_key", "{oldest}");
    }
    let no_room = code(&mut client, &owner, &id, &agent).await;
    assert_eq!(
        flat(&exchange(&mut client, &id, &no_room, &[]).await),
        refused(400, "invalid_grant"),
        "not for so long"
    );
    assert_eq!(client.authorize(&pairs[9].access, &payment(100)).await.status, 200);
    let path = format!("/api/w/{}/connections", site.workspace());
    let all = owner.ask(&mut client, "GET", &path, None).await.ok()["data"].as_array().unwrap().clone();
    let ended: Vec<_> = all.iter().filter(|it| it["state"] == "ended").map(|it| it["endedBy"].clone()).collect();
    assert_eq!(ended, ["unused", "unused"]);
    site.audit();
}

/// Agents that were removed take no place on the page: one that runs is found behind however many of them, and where
/// not all are shown the page says so.
#[tokio::test]
async fn removed_agents_hide_none_that_runs() {
    let site = Site::start().await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    let id = public(&mut client).await;
    let mut agents: Vec<_> = (0..252).map(|_| site.agent(&[]).id).collect();
    // Of one instant the larger id is the newer.
    agents.sort_unstable();
    let shown = page(&mut client, Some(&owner), &id, REDIRECT).await.text();
    assert_eq!(shown.matches("name=\"agentId\"").count(), 100);
    assert!(shown.contains(&agents[251].to_string()) && shown.contains("Not all of your agents"), "{shown}");
    assert!(!shown.contains("required checked"), "of several a person chooses: {shown}");
    for agent in &agents[1..] {
        site.gate.execute(RemoveAgent { workspace: site.workspace(), agent: *agent, by: By::Program }).unwrap();
    }
    let shown = page(&mut client, Some(&owner), &id, REDIRECT).await.text();
    assert_eq!(shown.matches("name=\"agentId\"").count(), 1);
    assert!(shown.contains(&agents[0].to_string()) && !shown.contains("Not all of your agents"), "{shown}");
    assert!(shown.contains("required checked") && shown.contains("no mandate in force"), "{shown}");
}

/// A client whose id is the address of its description goes the whole way without registering. The description is read
/// without credentials, kept as it says, and people are told where it comes from and where they go back to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_is_known_by_its_document() {
    let (site, _) = site().await;
    let (mut client, mut desk) = (site.client().await, Receiver::start_tls().await);
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let id = format!("https://{PLACE}:{}/client.json", desk.address.port());
    desk.answer([Reply::Document("max-age=600", document(&id).to_string())]);
    let shown = page(&mut client, Some(&owner), &id, REDIRECT).await;
    let call = desk.next().await;
    assert_eq!(call.line, "GET /client.json HTTP/1.1");
    assert!(!call.headers.iter().any(|(name, _)| name == "authorization" || name == "cookie"), "{call:?}");
    assert_eq!(shown.status, 200);
    let text = shown.text();
    for part in ["Travelling desk", "<strong>localhost</strong>", &format!("{PLACE}:{}", desk.address.port())] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let pair = connect(&mut client, &owner, &id, &agent.id.to_string()).await;
    assert_eq!(client.authorize(&pair.access, &payment(100)).await.status, 200);
    let pair = tokens(&refresh(&mut client, &id, &pair.refresh).await);
    assert_eq!(client.authorize(&pair.access, &payment(100)).await.status, 200);
    leads_nowhere(&page(&mut client, Some(&owner), &id, "http://localhost:1/other").await, "another path");
    leads_nowhere(
        &page(&mut client, Some(&owner), &id, "cursor://anysphere.cursor-mcp/oauth/callback").await,
        "a scheme that the operator has not named",
    );
    assert!(desk.is_quiet(), "it was kept");
    let other = format!("https://{PLACE}:{}/other.json", desk.address.port());
    let code = code(&mut client, &owner, &id, &agent.id.to_string()).await;
    let got = exchange(&mut client, &id, &code, &[("client_secret", "x")]).await;
    assert_eq!(flat(&got), refused(401, "invalid_client"));
    assert_eq!(flat(&exchange(&mut client, &other, &code, &[]).await), refused(400, "invalid_grant"));
    desk.answer(["public\r\nexpires: 0", "no-store"].map(|it| Reply::Document(it, document(&other).to_string())));
    for _ in 0..2 {
        assert_eq!(page(&mut client, None, &other, REDIRECT).await.status, 200);
        desk.next().await;
    }
    site.stop().await;
}

/// A description that is not its own client's, says too little, is too much, or that the server would have to be led to is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_is_none_is_no_client() {
    let (site, names) = site().await;
    let (mut client, mut desk) = (site.client().await, Receiver::start_tls().await);
    let port = desk.address.port();
    let id = format!("https://{PLACE}:{port}/client.json");
    let changed = |name: &str, value: Value| {
        let mut all = document(&id);
        all[name] = value;
        Reply::Document("max-age=600", all.to_string())
    };
    let hostile = json!(["javascript:alert(1)", "http://app.example/cb", "https://*.example/cb", 7]);
    for (what, reply) in [
        ("another id", changed("client_id", json!(format!("https://{PLACE}:{port}/other.json")))),
        ("an id that is nearly its own", changed("client_id", json!(id.replace("hooks", "HOOKS")))),
        ("no id", changed("client_id", Value::Null)),
        ("no name", changed("client_name", Value::Null)),
        ("a name that is none", changed("client_name", json!({ "en": "x" }))),
        ("no redirects", changed("redirect_uris", Value::Null)),
        ("redirects to nowhere good", changed("redirect_uris", hostile)),
        ("a client with a secret", changed("token_endpoint_auth_method", json!("client_secret_basic"))),
        ("no JSON", Reply::Document("max-age=600", "<html>".to_owned())),
        ("a list", Reply::Document("max-age=600", format!("[{}]", document(&id)))),
        ("too long", changed("padding", json!("x".repeat(17_000)))),
        ("not there", Reply::Status(404)),
        ("led elsewhere", Reply::Redirect(format!("https://{PLACE}:{port}/there.json"))),
        ("led inside", Reply::Redirect("http://169.254.169.254/latest/meta-data".to_owned())),
        ("no HTTP", Reply::Noise),
    ] {
        desk.answer([reply]);
        leads_nowhere(&page(&mut client, None, &id, REDIRECT).await, what);
        assert_eq!(desk.next().await.line, "GET /client.json HTTP/1.1", "{what}");
        assert!(desk.is_quiet(), "{what}: nothing is followed");
    }
    desk.answer([Reply::Document("max-age=600", document(&id).to_string())]);
    assert_eq!(page(&mut client, None, &id, REDIRECT).await.status, 200, "a fault is not kept");
    desk.next().await;
    names.set("inside.example.com", &[&["10.0.0.7", "169.254.169.254"]]);
    for bad in [
        "https://gate.example.com/client.json".to_owned(),
        "https://169.254.169.254/client.json".to_owned(),
        "https://inside.example.com/client.json".to_owned(),
        "https://unknown.example.com/client.json".to_owned(),
        format!("https://{PLACE}:{port}"),
        format!("https://{PLACE}:{port}/"),
        format!("https://{PLACE}:{port}/client.json#x"),
        format!("https://user@{PLACE}:{port}/client.json"),
        format!("https://{PLACE}:{port}/a/../client.json"),
        format!("http://{PLACE}:{port}/client.json"),
        format!("HTTPS://{PLACE}:{port}/client.json"),
        format!("https://{PLACE}:{port}/{}", "x".repeat(2_048)),
    ] {
        leads_nowhere(&page(&mut client, None, &bad, REDIRECT).await, &bad);
    }
    // One host on loopback was named by the operator; its neighbours are strangers still.
    for host in ["127.0.0.1", "localhost"] {
        let got = page(&mut client, None, &format!("https://{host}:{port}/client.json"), REDIRECT).await;
        leads_nowhere(&got, host);
        assert!(got.text().contains("its address may not be called"), "{host}: {}", got.text());
    }
    assert!(desk.is_quiet());
    site.stop().await;
    let strict = Site::start().await;
    let mut client = strict.client().await;
    for bad in [format!("https://127.0.0.1:{port}/client.json"), format!("https://[::1]:{port}/client.json")] {
        leads_nowhere(&page(&mut client, None, &bad, REDIRECT).await, &bad);
    }
    assert!(desk.is_quiet());
    strict.stop().await;
}

/// A server that reaches nothing outside does not say that it takes clients by their documents, and takes none.
#[tokio::test]
async fn a_server_may_take_no_documents() {
    let site = Site::with(|plan| plan.config.client_documents = false).await;
    let mut client = site.client().await;
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let found = client.ask("GET", path, &[("host", HOST)], b"").await.ok();
        assert_eq!(found["client_id_metadata_document_supported"], false);
    }
    let id = "https://app.example/client.json";
    leads_nowhere(&page(&mut client, None, id, REDIRECT).await, id);
}

/// Anybody can register an address, so that a link to this server could lead anywhere: an unasked browser is led on only to its
/// own machine, and everybody else is told where they would go.
#[tokio::test]
async fn no_link_leads_a_stranger_away() {
    let site = Site::with(|plan| plan.config.allow_redirects = vec!["desk://callback".into()]).await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    let away = "https://evil.example/cb?x=\"><script>";
    let got = register(&mut client, &json!({ "redirect_uris": [away] })).await;
    assert_eq!(flat(&got), refused(400, "invalid_redirect_uri"));
    let away = "https://evil.example/cb?x=1&y='";
    let body = json!({ "redirect_uris": [away, "desk://callback", "http://127.0.0.1/cb"], "client_name": "<b>\u{202e}Desk</b>" });
    let id = register(&mut client, &body).await.made()["client_id"].as_str().unwrap().to_owned();
    let mut wrong = vec![("response_type", "token"), ("client_id", id.as_str()), ("state", "<s>&\"")];
    let ask = |redirect: &'static str| [wrong.clone(), vec![("redirect_uri", redirect)]].concat();
    let got = open(&mut client, None, &ask(away)).await;
    leads_nowhere(&got, "nobody is signed in");
    let href =
        "https://evil.example/cb?x=1&amp;y='&amp;error=unsupported_response_type&amp;state=%3Cs%3E%26%22&amp;iss=";
    assert!(got.text().contains(href) && got.text().contains("Go back to evil.example"), "{}", got.text());
    assert!(got.header("content-security-policy").unwrap().contains("form-action 'none'"));
    for redirect in ["desk://callback", "http://127.0.0.1/cb", "http://127.0.0.1:999/cb"] {
        let got = open(&mut client, None, &ask(redirect)).await;
        assert_eq!(led(&got, "error").as_deref(), Some("unsupported_response_type"), "{redirect}");
    }
    // Nor is one that somebody has signed in with.
    let got = open(&mut client, Some(&owner), &ask(away)).await;
    leads_nowhere(&got, "somebody is signed in");
    assert!(got.text().contains(href), "{}", got.text());
    wrong.retain(|(name, _)| *name != "response_type");
    site.agent(&[OFFICE]);
    let shown = page(&mut client, Some(&owner), &id, away).await.text();
    assert!(shown.contains("&lt;b&gt;<bdi dir=\"ltr\">‹U+202E›</bdi>Desk&lt;/b&gt;") && !shown.contains("<b>"));
    site.stop().await;
}

/// What is nearly one of the registered redirects, and is none.
const NEAR: [&str; 16] = [
    "https://app.example/cb/",
    "https://app.example/cb/x",
    "https://app.example/cbx",
    "https://app.example/cb?x",
    "https://app.example/",
    "https://app.example/CB",
    "https://app.example/%63b",
    "https://app.example/./cb",
    "https://app.example/x/../cb",
    "https://app.example:443/cb",
    "https://app.example:8443/cb",
    "https://app.example./cb",
    "https://www.app.example/cb",
    "https://localhost/callback",
    "http://127.0.0.1/callback",
    "http://[::1]/callback",
];

/// Where clients would like to be sent and never are, whether they register or only ask.
#[tokio::test]
async fn no_redirect_leads_astray() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let good = "https://app.example/cb";
    let made = register(&mut client, &json!({ "redirect_uris": [good, "http://localhost/callback"] })).await.made();
    let id = made["client_id"].as_str().unwrap().to_owned();
    for bad in [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "javascript://app.example/cb%0aalert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "ftp://app.example/cb",
        "desk://callback",
        "com.example.app:/cb",
        "https:app.example/cb",
        "https:/app.example/cb",
        "https://",
        "https://user@app.example/cb",
        "https://user:pass@app.example/cb",
        "https://app.example@evil.example/cb",
        "https://app.example\\@evil.example/cb",
        "https://*.example/cb",
        "https://app.example/cb#f",
        "https://app.example/cb#",
        "https://äpp.example/cb",
        "https://app.example。evil.example/cb",
        "https://APP.example/cb",
        "https://app.example:0x50/cb",
        "https://app.example:99999/cb",
        "https://app.example/cb\t",
        "https://app.example/cb\nlocation: x",
        " https://app.example/cb",
        "https://app.exa%6dple/cb",
        "http://app.example/cb",
        "http://localhost.evil.example/callback",
        "http://localhost@evil.example/callback",
        "http://127.0.0.2/callback",
        "http://2130706433/callback",
        "http://127.1/callback",
        "http://[::ffff:127.0.0.1]/callback",
        "//app.example/cb",
        "/cb",
        "",
    ] {
        let got = register(&mut client, &json!({ "redirect_uris": [good, bad] })).await;
        assert_eq!(flat(&got), refused(400, "invalid_redirect_uri"), "{bad}");
        leads_nowhere(&page(&mut client, None, &id, bad).await, bad);
    }
    for near in NEAR {
        leads_nowhere(&page(&mut client, None, &id, near).await, near);
    }
    site.stop().await;
}

/// A form of very many members is refused before they are compared with each other.
#[tokio::test]
async fn a_form_of_very_many_members_costs_nothing() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let mut body = String::with_capacity(1 << 20);
    for number in 0.. {
        let member = format!("{number:x}&");
        if body.len() + member.len() > 1 << 20 {
            break;
        }
        body.push_str(&member);
    }
    let headers = [("host", HOST), ("content-type", "application/x-www-form-urlencoded"), ("origin", BASE_URL)];
    for path in ["/oauth/token", "/oauth/revoke", "/oauth/authorize", "/sign-in"] {
        assert_eq!(client.ask("POST", path, &headers, body.as_bytes()).await.status, 400, "{path}");
    }
    let many: Vec<String> = (0..65).map(|it| format!("m{it}=x")).collect();
    let got = client.ask("GET", &format!("/oauth/authorize?{}", many.join("&")), &[("host", HOST)], b"").await;
    leads_nowhere(&got, "a query of many members");
    site.stop().await;
}

/// Whoever registers without end keeps nobody out: where nobody has used as many clients as there may be, the oldest of them
/// goes, and those that somebody has used stay.
#[tokio::test]
async fn a_flood_of_registrations_keeps_nobody_out() {
    let site = Site::start().await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    let agent = site.agent(&[OFFICE]).id.to_string();
    let (used, oldest) = (public(&mut client).await, public(&mut client).await);
    connect(&mut client, &owner, &used, &agent).await;
    site.plant(ClientTally { id: ClientTally::key_id(), unused: UNUSED_CLIENTS_MAX });
    let new = public(&mut client).await;
    for (id, status) in [(&used, 200), (&oldest, 400), (&new, 200)] {
        assert_eq!(page(&mut client, Some(&owner), id, REDIRECT).await.status, status);
    }
    site.stop().await;
}

/// One person's machine that asks for tokens without end does not keep out another's, where both use one client that is known by
/// its address.
#[tokio::test]
async fn clients_known_by_address_are_counted_by_machine() {
    let site = Site::with(|plan| {
        plan.config.limits.oauth_per_minute = 50;
        plan.config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let mut client = site.client().await;
    let id = "https://desk.example/client.json";
    let members = [("grant_type", "refresh_token"), ("refresh_token", "art_x"), ("client_id", id)];
    let mut ask =
        async |from: &str| flat(&post(&mut client, "/oauth/token", &members, &[("x-forwarded-for", from)]).await);
    for _ in 0..10 {
        assert_eq!(ask("192.0.2.1").await, refused(400, "invalid_grant"));
    }
    assert_eq!(ask("192.0.2.1").await, refused(429, "temporarily_unavailable"));
    assert_eq!(ask("192.0.2.2").await, refused(400, "invalid_grant"));
    site.stop().await;
}

/// The second factor on the way to the page that asks: five tries of one sign-in, and each code once.
#[tokio::test]
async fn a_second_factor_is_asked_for_on_the_way() {
    let site = Site::start().await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    site.agent(&[OFFICE]);
    let id = public(&mut client).await;
    let password = "correct horse battery";
    owner.ask(&mut client, "POST", "/api/me/password", Some(&json!({ "password": password }))).await.ok();
    let (secret, _) = owner.second_factor(&mut client, site.now()).await;

    let asked = page(&mut client, None, &id, REDIRECT).await;
    let waits = send(&mut client, &asked, &[("email", &owner.email), ("password", password)]).await;
    assert_eq!(waits.status, 200);
    let text = waits.text();
    assert!(
        text.contains("one-time-code") && !text.contains("type=\"password\"") && !text.contains("script"),
        "{text}"
    );
    assert!(!cookies(&waits).iter().any(|it| it.starts_with("__Host-sid=")), "nobody is signed in yet");
    let (pending, used) = (hidden(&text, "pending"), code_now(&secret, site.now()));
    let again = send(&mut client, &waits, &[("pending", &pending), ("code", &used)]).await;
    assert!(again.status == 401 && again.text().contains("did not match"), "the code that confirmed it was used");
    let none = send(&mut client, &again, &[("pending", "other"), ("code", "000000")]).await;
    assert!(none.status == 401 && none.text().contains("Begin again"), "{}", none.text());
    site.shift(Span::seconds(30));
    let right = code_now(&secret, site.now());
    let done = send(&mut client, &none, &[("pending", &pending), ("code", &right)]).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let sid = cookies(&done).into_iter().find_map(|it| it.strip_prefix("__Host-sid=").map(str::to_owned)).unwrap();
    let to = done.header("location").unwrap();
    assert!(to.starts_with("/oauth/authorize?"), "{to}");
    let cookie = format!("__Host-sid={}", sid.split(';').next().unwrap());
    let shown = client.ask("GET", to, &[("host", HOST), ("cookie", &cookie)], b"").await;
    assert!(shown.status == 200 && shown.text().contains("Act as"), "{}", shown.text());
    let twice = send(&mut client, &none, &[("pending", &pending), ("code", &right)]).await;
    assert_eq!(twice.status, 403, "a form counts once");
    let fresh = page(&mut client, None, &id, REDIRECT).await;
    let twice = send(&mut client, &fresh, &[("pending", &pending), ("code", &right)]).await;
    assert!(twice.status == 401 && twice.text().contains("Begin again"), "a sign-in ends once");
    site.stop().await;
}

/// Whoever has to set up a second factor first is told so, and connects nothing.
#[tokio::test]
async fn without_the_required_factor_nothing_is_connected() {
    let site = Site::start().await;
    let mut settings = Settings::default();
    settings.sign_in.require_two_factor = true;
    site.change_settings(settings);
    site.agent(&[OFFICE]);
    site.gate.execute(link()).unwrap();
    let mut client = site.client().await;
    let id = public(&mut client).await;
    let owner = signed_in(&mut client, site.workspace()).await;
    let shown = page(&mut client, Some(&owner), &id, REDIRECT).await;
    assert!(shown.status == 403 && shown.text().contains("second factor"), "{}", shown.text());
    assert!(!shown.text().contains("<form"), "{}", shown.text());
    site.stop().await;
}

/// The owner's link, good until it is used.
fn link() -> MakeLink {
    MakeLink { email: Email::parse("owner@example.com").unwrap(), token: Digest::of("sil_one"), life: None }
}

/// A token that was used before the server was killed ends the connection when it is shown after that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_token_is_known_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| plan.directory = Some(directory.path().to_owned())).await;
    let (agent, workspace) = (site.agent(&[OFFICE]).id.to_string(), site.workspace());
    site.gate.execute(link()).unwrap();
    site.stop().await;

    let program = Program::serve(directory.path(), BASE_URL).await;
    let mut client = Client::connect(program.address).await;
    let owner = signed_in(&mut client, workspace).await;
    let id = public(&mut client).await;
    let first = connect(&mut client, &owner, &id, &agent).await;
    let second = tokens(&refresh(&mut client, &id, &first.refresh).await);
    assert_eq!(client.authorize(&second.access, &payment(100)).await.status, 200);
    program.kill().await;

    let program = Program::serve(directory.path(), BASE_URL).await;
    let mut client = Client::connect(program.address).await;
    assert_eq!(client.authorize(&second.access, &payment(100)).await.status, 200);
    assert_eq!(flat(&refresh(&mut client, &id, &first.refresh).await), refused(400, "invalid_grant"));
    assert_eq!(client.authorize(&second.access, &payment(100)).await.status, 401);
    program.kill().await;

    let program = Program::serve(directory.path(), BASE_URL).await;
    let mut client = Client::connect(program.address).await;
    assert_eq!(flat(&refresh(&mut client, &id, &second.refresh).await), refused(400, "invalid_grant"));
    let listed = owner.ask(&mut client, "GET", &format!("/api/w/{workspace}/connections"), None).await.ok();
    assert_eq!(listed["data"][0]["endedBy"], "reuse");
    program.stop().await;
}

/// The owner of a program's workspace, by the link that waits for them.
async fn signed_in(client: &mut Client, workspace: svc_core::value::id::WorkspaceId) -> Person {
    let headers = [("host", HOST), ("content-type", "application/json"), ("x-svc-csrf", "1")];
    let got = client.ask("POST", "/api/sign-in/link", &headers, br#"{"token":"sil_one"}"#).await;
    let cookie = cookies(&got).into_iter().find_map(|it| it.strip_prefix("__Host-sid=").map(str::to_owned));
    let sid = cookie.unwrap().split(';').next().unwrap().to_owned();
    let (account, principal) = (AccountId::from_bits(0), PrincipalId::from_bits(0));
    let signed = Signed { workspace, principal, account, seat: Seat::Session(Session::id_of(&Digest::of(&sid))) };
    Person { principal, account, email: "owner@example.com".to_owned(), sid, signed }
}
