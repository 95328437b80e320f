//! The gate's table of routes, walked: every credential that is wrong for a route, every path that is none, what no answer lacks,
//! and every refusal that a route declares, brought about.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::people::KeyScope;
use svc_core::testing::world::BASE_URL;
use svc_http::routes::{self, Auth, GATE, Limit, Op, Route};
use svc_tests::client::{Client, Got, bearer};
use svc_tests::requests::{OFFICE, charge, payment, text};
use svc_tests::site::{Agent, Fault, Site};

/// What no test brings about, with why. It may only get shorter.
const OUT_OF_REACH: &[(Op, Kind, &str)] = &[
    (Op::ReadAction, Kind::Internal, "reading needs no commit, and a row that cannot be read is `not_ready`"),
    (Op::Keys, Kind::Internal, "the answer is made at the start"),
    (Op::Keys, Kind::NotReady, "the answer is made at the start"),
    (Op::Health, Kind::Internal, "the answer is a constant"),
    (Op::Health, Kind::NotReady, "the answer is a constant"),
    (Op::Ready, Kind::Internal, "whatever fails is `not_ready`"),
    (Op::OpenApi, Kind::Internal, "the answer is made at the start"),
    (Op::OpenApi, Kind::NotReady, "the answer is made at the start"),
    (Op::Docs, Kind::Internal, "the answer is made at the start"),
    (Op::Docs, Kind::NotReady, "the answer is made at the start"),
    (Op::DocsErrors, Kind::Internal, "the answer is made at the start"),
    (Op::DocsErrors, Kind::NotReady, "the answer is made at the start"),
    (Op::Verify, Kind::Internal, "a commit of unknown outcome is told as `VerifyUnknown`, of the same type and status"),
];

/// A route's path with the id of an action in it.
fn path(route: &Route, id: &str) -> String {
    route.path.replace("{id}", id)
}

/// Every wrong credential on every route that takes one is refused as its kind says, whatever the body, with its headers;
/// a route that takes none reads none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_refuses_every_wrong_credential() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = client.authorize(&agent.key, &payment(100)).await.ok();
    let (inference, admin) = (bearer(&site.key(KeyScope::Inference)), bearer(&site.key(KeyScope::Admin)));
    let made = |prefix: &str| bearer(&format!("{prefix}_{}", "A".repeat(43)));
    let (unknown, ims, art, aat) = (made("ask"), made("ims"), made("art"), made("aat"));
    let basic = format!("Basic {}", agent.key);
    let wrong: [(&[(&str, &str)], Kind); 11] = [
        (&[], Kind::Unauthenticated),
        (&[("authorization", "Bearer")], Kind::Unauthenticated),
        (&[("authorization", &basic)], Kind::Unauthenticated),
        (&[("authorization", &ims)], Kind::Unauthenticated),
        (&[("authorization", &art)], Kind::Unauthenticated),
        (&[("x-api-key", &agent.key)], Kind::Unauthenticated),
        (&[("cookie", "sid=1; __Host-sid=1")], Kind::Unauthenticated),
        (&[("authorization", &unknown)], Kind::InvalidApiKey),
        (&[("authorization", &aat)], Kind::InvalidApiKey),
        (&[("authorization", &inference)], Kind::AgentKeyRequired),
        (&[("authorization", &admin)], Kind::AgentKeyRequired),
    ];
    for route in GATE {
        for (headers, kind) in wrong {
            let path = path(route, text(&action["id"]));
            let got = client.ask(route.method.as_str(), &path, headers, b"{").await;
            match route.auth {
                Auth::Agent => {
                    let row = kind.row();
                    assert_eq!((got.status, got.kind().as_str()), (row.status, row.type_), "{path} {headers:?}");
                }
                Auth::Open => assert!(![401, 403].contains(&got.status), "{path} {headers:?}"),
                _ => panic!("{path} is no route of the gate"),
            }
        }
    }
    site.audit();
    site.stop().await;
}

/// What is no route of OAuth, or has no such method, is told as OAuth's libraries read errors.
#[tokio::test]
async fn paths_of_oauth_answer_flat_errors() {
    let site = Site::start().await;
    let mut client = site.client().await;
    for (method, path, status) in
        [("GET", "/oauth/token", 405), ("DELETE", "/oauth/authorize", 405), ("POST", "/oauth/tokens", 404)]
    {
        let got = client.ask(method, path, &[("host", "gate.example.com")], b"").await;
        let json = got.json();
        assert_eq!((got.status, &json["error"]), (status, &Value::from("invalid_request")), "{method} {path}");
        assert!(json["error_description"].is_string() && json["requestId"].is_string(), "{json}");
        assert_eq!(got.header("allow").is_some(), status == 405, "{method} {path}");
    }
    site.stop().await;
}

/// A path that is none is told the nearest, and one that has other methods is told those; every answer carries what every
/// answer carries, which the client looks at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_path_answers_other_methods_and_near_misses() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = client.authorize(&agent.key, &payment(100)).await.ok();
    let id = text(&action["id"]);
    let key = bearer(&agent.key);
    let paths: BTreeSet<String> = GATE.iter().map(|it| path(it, id)).collect();
    for place in &paths {
        let served: Vec<&str> = GATE.iter().filter(|it| path(it, id) == *place).map(|it| it.method.as_str()).collect();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
            if served.contains(&method) {
                continue;
            }
            let got = client.ask(method, place, &[("authorization", &key)], b"").await;
            assert_eq!((got.status, got.kind().as_str()), (405, "method_not_allowed"), "{method} {place}");
            let mut allow: Vec<&str> = got.header("allow").unwrap().split(", ").collect();
            allow.retain(|it| *it != "HEAD");
            assert_eq!(allow, served, "{method} {place}");
            assert_eq!(got.header("access-control-allow-origin"), None);
        }
        let head = client.ask("HEAD", place, &[("authorization", &key)], b"").await;
        assert_eq!(head.status, if served.contains(&"GET") { 200 } else { 405 }, "HEAD {place}");
        assert!(head.body.is_empty());
        let miss = format!("{place}x");
        let got = client.ask(served[0], &miss, &[("authorization", &key)], b"").await;
        if svc_tests::interface::template(&miss).is_none() {
            assert_eq!((got.status, got.kind().as_str()), (404, "route_not_found"), "{miss}");
            let meant = got.json()["error"]["didYouMean"].as_str().unwrap().to_owned();
            assert!(meant.starts_with(served[0]) && GATE.iter().any(|it| meant.ends_with(it.path)), "{miss}: {meant}");
        }
    }
    site.stop().await;
}

/// The pages and documents that need nobody are there, and `error.docs` points into one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_routes_answer() {
    let site = Site::start().await;
    let mut client = site.client().await;
    for route in GATE.iter().filter(|it| it.auth == Auth::Open && it.method == "GET") {
        let got = client.ask("GET", route.path, &[], b"").await;
        assert_eq!(got.status, 200, "{}", route.path);
        assert!(!got.body.is_empty());
    }
    let served: Value = client.ask("GET", "/openapi.json", &[], b"").await.ok();
    let mut document = svc_tests::interface::document().clone();
    document["servers"] = json!([{ "url": BASE_URL }]);
    assert_eq!(served, document);
    let page = client.ask("GET", "/docs/errors", &[], b"").await.text();
    for kind in Kind::ALL {
        assert!(page.contains(&format!("id=\"{}\"", kind.row().type_)), "{kind:?} has no place on the page");
    }
    site.stop().await;
}

/// A site on which every refusal can be brought about.
struct Stage {
    site: Site,
    client: Client,
    agent: Agent,
    gone: Agent,
    inference: String,
    id: String,
    settled: String,
    denied: String,
    receipt: Value,
}

impl Stage {
    async fn set() -> Self {
        let site = Site::start().await;
        let (agent, gone) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
        let mut client = site.client().await;
        let first = client.authorize_once(&agent.key, "stage", &payment(4_900)).await.ok();
        let second = client.authorize(&agent.key, &payment(4_800)).await.ok();
        let denied = client.authorize(&agent.key, &payment(50_001)).await.ok();
        let settled = text(&second["id"]).to_owned();
        client.settle(&agent.key, &settled, &json!({ "status": "completed" })).await.ok();
        site.gate.execute(RemoveAgent { workspace: site.workspace(), by: By::Program, agent: gone.id }).unwrap();
        let inference = site.key(KeyScope::Inference);
        let (id, receipt) = (text(&first["id"]).to_owned(), first["receipt"].clone());
        let denied = text(&denied["id"]).to_owned();
        Self { site, client, agent, gone, inference, id, settled, denied, receipt }
    }

    /// A body that the route does its work for.
    fn good(&self, op: Op) -> String {
        match op {
            Op::Authorize => payment(100).to_string(),
            Op::RegisterCallback => json!({ "url": "https://hooks.example.com/cb" }).to_string(),
            Op::Settle => json!({ "status": "completed" }).to_string(),
            Op::Verify => charge(&self.receipt, 4_900).to_string(),
            _ => String::new(),
        }
    }

    async fn send(&mut self, route: &Route, id: &str, key: &str, more: &[(&str, &str)], body: &[u8]) -> Got {
        let authorization = bearer(key);
        let mut headers = vec![];
        if route.auth == Auth::Agent {
            headers.push(("authorization", authorization.as_str()));
        }
        headers.extend(more.iter().copied());
        self.client.ask(route.method.as_str(), &path(route, id), &headers, body).await
    }

    /// Has the store fail while a good request is answered.
    async fn failing(&mut self, route: &Route, fault: Fault) -> Got {
        let (id, key, body) = (self.id.clone(), self.agent.key.clone(), self.good(route.op));
        self.site.fault.set(fault);
        let got = self.send(route, &id, &key, &[], body.as_bytes()).await;
        self.site.fault.set(Fault::None);
        got
    }

    /// Brings a refusal about, where this test knows how.
    async fn provoke(&mut self, route: &Route, kind: Kind) -> Option<Got> {
        let (id, key, good) = (self.id.clone(), self.agent.key.clone(), self.good(route.op));
        let never = format!("act_{}", "0".repeat(26));
        let unknown = format!("ask_{}", "A".repeat(43));
        let (gone, inference) = (self.gone.key.clone(), self.inference.clone());
        let (settled, denied) = (self.settled.clone(), self.denied.clone());
        let body = good.as_bytes();
        let large = vec![b' '; 1024 * 1024 + 1];
        Some(match kind {
            Kind::InvalidJson => self.send(route, &id, &key, &[], b"{").await,
            Kind::InvalidRequest => self.send(route, &id, &key, &[("content-encoding", "gzip")], body).await,
            Kind::BodyTooLarge => self.send(route, &id, &key, &[], &large).await,
            Kind::Unauthenticated => self.send(route, &id, "", &[], body).await,
            Kind::InvalidApiKey => self.send(route, &id, &unknown, &[], body).await,
            Kind::AgentKeyRequired => self.send(route, &id, &inference, &[], body).await,
            Kind::AgentNotFound => self.send(route, &id, &gone, &[], body).await,
            Kind::NotFound => self.send(route, &never, &key, &[], body).await,
            Kind::IdempotencyConflict => self.send(route, &id, &key, &[("idempotency-key", "stage")], body).await,
            Kind::InvalidStatus => self.send(route, &id, &key, &[], b"{}").await,
            Kind::InvalidAmount => self.send(route, &id, &key, &[], br#"{"status":"completed","amount":-1}"#).await,
            Kind::NotAllowed => self.send(route, &denied, &key, &[], body).await,
            Kind::AlreadySettled => self.send(route, &settled, &key, &[], body).await,
            Kind::RateLimited => return Some(out_of_rate(route).await),
            Kind::NotReady if matches!(route.op, Op::ReadAction | Op::Ready) => self.failing(route, Fault::Load).await,
            Kind::NotReady => self.failing(route, Fault::Unavailable).await,
            Kind::Internal | Kind::VerifyUnknown => self.failing(route, Fault::UnknownLost).await,
            _ => return None,
        })
    }
}

/// The answer to the request that is one too many.
async fn out_of_rate(route: &Route) -> Got {
    let site =
        Site::with(|plan| (plan.config.limits.gate_per_minute, plan.config.limits.verify_per_minute) = (1, 1)).await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let never = format!("act_{}", "0".repeat(26));
    let headers = [("authorization", &*bearer(&agent.key))];
    let first = client.ask(route.method.as_str(), &path(route, &never), &headers, b"{}").await;
    assert_ne!(first.status, 429);
    let got = client.ask(route.method.as_str(), &path(route, &never), &headers, b"{}").await;
    assert_eq!((got.header("ratelimit-limit"), got.header("ratelimit-remaining")), (Some("1"), Some("0")));
    assert!((1..=60).contains(&got.header("retry-after").unwrap().parse::<u32>().unwrap()));
    site.stop().await;
    got
}

/// Every refusal that a route declares can be brought about; what cannot is listed with why, and the list only shrinks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_declared_refusal_is_reachable() {
    let mut unseen = Vec::new();
    let mut reached_all_the_same = Vec::new();
    for route in GATE {
        let mut stage = Stage::set().await;
        for kind in route.kinds() {
            if OUT_OF_REACH.iter().any(|(op, out, _)| (*op, *out) == (route.op, kind)) {
                reached_all_the_same.extend(is_reached(&mut stage, route, kind).await.then_some((route.op, kind)));
            } else if !is_reached(&mut stage, route, kind).await {
                unseen.push((route.op, kind));
            }
        }
        stage.site.stop().await;
    }
    assert!(unseen.is_empty(), "declared and never brought about: {unseen:?}");
    // `VerifyUnknown` and `Internal` look alike from outside.
    reached_all_the_same.retain(|it| *it != (Op::Verify, Kind::Internal));
    assert!(reached_all_the_same.is_empty(), "take these off the list: {reached_all_the_same:?}");
}

async fn is_reached(stage: &mut Stage, route: &Route, kind: Kind) -> bool {
    let row = kind.row();
    let got = stage.provoke(route, kind).await;
    got.is_some_and(|it| it.status == row.status && it.status >= 400 && is_type(&it, row.type_, row.fix))
}

fn is_type(got: &Got, type_: &str, fix: Option<&str>) -> bool {
    got.kind() == type_ && got.json()["error"]["fix"].as_str() == fix
}

/// A store that does not answer gives no decision and no verdict: `not_ready` where nothing happened, `internal` where that
/// is not known. Nothing is lost by it, and nothing is gained.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_allows_nothing() {
    let mut stage = Stage::set().await;
    let authorize = GATE.iter().find(|it| it.op == Op::Authorize).unwrap();
    let verify = GATE.iter().find(|it| it.op == Op::Verify).unwrap();
    for (fault, status) in [(Fault::Unavailable, 503), (Fault::UnknownLost, 500)] {
        for route in [authorize, verify] {
            let got = stage.failing(route, fault).await;
            assert_eq!(got.status, status, "{}", got.text());
        }
    }
    // Where the store tells afterwards that the commit happened, the answer is what it would have been.
    let got = stage.failing(authorize, Fault::UnknownApplied).await;
    let read = stage.client.read_action(&stage.agent.key, text(&got.ok()["id"])).await;
    assert_eq!(read.ok(), got.ok());
    // Where it tells nothing, nobody knows; the same key tells once it answers again.
    stage.site.fault.set(Fault::UnknownDeaf);
    let body = charge(&stage.receipt, 4_900);
    let got = stage.client.verify_once("sixteen-characters", &body).await;
    assert_eq!(got.status, 500);
    assert!(text(&got.json()["error"]["fix"]).contains("idempotency-key"));
    stage.site.fault.set(Fault::None);
    let again = stage.client.verify_once("sixteen-characters", &body).await;
    assert_eq!((again.header("idempotent-replayed"), &again.ok()["valid"]), (Some("true"), &json!(true)));
    assert_eq!(stage.client.verify(&body).await.ok()["reason"], json!("already_consumed"));
    let report = stage.site.audit();
    assert_eq!((report.actions, report.consumed), (4, 1));
    stage.site.stop().await;
}

/// Whoever holds a key that was revoked cannot use up its agent's rate: what it sends counts against its address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_uses_up_no_agents_rate() {
    let site = Site::with(|plan| plan.config.limits.gate_per_minute = 5).await;
    let agent = site.agent(&[OFFICE]);
    let leaked = site.key(KeyScope::Agent(agent.id));
    let mut client = site.client().await;
    client.authorize(&agent.key, &payment(100)).await.ok();
    client.authorize(&leaked, &payment(101)).await.ok();
    site.revoke(&leaked);
    for _ in 0..9 {
        client.authorize(&leaked, &payment(100)).await;
    }
    assert_eq!(client.authorize(&leaked, &payment(100)).await.kind(), "rate_limited");
    client.authorize(&agent.key, &payment(102)).await.ok();
    site.stop().await;
}

/// Of several things that are wrong with one request the first in the contract's order is told: route, credential, rate,
/// size, JSON, fields, object, state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_come_in_their_order() {
    let site = Site::with(|plan| plan.config.limits.gate_per_minute = 9).await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let action = client.authorize(&agent.key, &payment(100)).await.ok();
    let settled = format!("/v1/actions/{}/settle", text(&action["id"]));
    client.settle(&agent.key, text(&action["id"]), &json!({ "status": "completed" })).await.ok();
    let never = format!("/v1/actions/act_{}/settle", "0".repeat(26));
    let large = vec![b'{'; 1024 * 1024 + 1];
    let key = bearer(&agent.key);
    let good: &[(&str, &str)] = &[("authorization", &key)];
    let squeezed: &[(&str, &str)] = &[("authorization", &key), ("content-encoding", "gzip")];
    type Step<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a [u8], &'a str);
    let steps: [Step<'_>; 10] = [
        ("POST", "/v1/actions/a/b/settle", &[], &large, "route_not_found"),
        ("PUT", &never, &[], &large, "method_not_allowed"),
        ("POST", &never, &[], &large, "unauthenticated"),
        ("POST", &never, squeezed, &large, "body_too_large"),
        ("POST", &never, squeezed, b"{", "invalid_request"),
        ("POST", &never, good, b"{", "invalid_json"),
        ("POST", &never, good, br#"{"status":"x","amount":-1}"#, "invalid_status"),
        ("POST", &never, good, br#"{"status":"failed","amount":-1}"#, "invalid_amount"),
        ("POST", &never, good, br#"{"status":"failed"}"#, "not_found"),
        ("POST", &settled, good, br#"{"status":"failed"}"#, "already_settled"),
    ];
    for (method, path, headers, body, kind) in steps {
        assert_eq!(client.ask(method, path, headers, body).await.kind(), kind, "{method} {path}");
    }
    // The agent's rate is used up by now, and that is told before anything of the body.
    assert_eq!(client.ask("POST", &never, good, &large).await.kind(), "rate_limited");
    assert_eq!(client.ask("POST", &never, &[], &large).await.kind(), "unauthenticated");
    // No other agent is told of it.
    let other = site.agent(&[OFFICE]);
    client.authorize(&other.key, &payment(100)).await.ok();
    site.stop().await;
}

/// Routes that count against a rate are the gate's.
#[test]
fn the_gates_routes_have_rates() {
    for route in routes::all().filter(|it| it.limit == Limit::Gate || it.limit == Limit::Verify) {
        // An agent that asks by MCP has no second rate.
        let own = route.path.starts_with("/v1/actions")
            || matches!(route.path, "/v1/verify" | "/mcp" | "/mcp/proxy/{server}");
        assert!(own, "{}", route.path);
    }
    for route in GATE {
        let limited = route.path.starts_with("/v1/actions") || route.path == "/v1/verify";
        assert_eq!(route.limit != Limit::Unlimited, limited, "{}", route.path);
    }
}
