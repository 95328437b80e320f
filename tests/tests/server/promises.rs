//! Promises of the interface that are too small for a story of their own, over a real socket.

use serde_json::{Value, json};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::people::{KeyScope, Role};
use svc_core::testing::world::BASE_URL;
use svc_core::value::json::Json;
use svc_core::value::text::Note;
use svc_core::value::{SAFE_MAX, Span};
use svc_tests::client::bearer;
use svc_tests::requests::{CRM, OFFICE, WIDE, charge, payment, text, update, with};
use svc_tests::site::{Fault, Site};

const AUTHORIZE: &str = "/v1/actions/authorize";

/// The published values of RFC 8785 are taken where content is free: what is written with a fraction or an exponent is no integer, and
/// bound by no integer's range.
#[tokio::test]
async fn numbers_that_are_no_integers_are_free() {
    let site = Site::start().await;
    let (agent, mut client) = (site.agent(&[CRM]), site.client().await);
    let vectors: Value = serde_json::from_str(include_str!("../../../svc-core/testdata/rfc8785_jcs.json")).unwrap();
    let values = vectors["cases"].as_array().unwrap().iter().find(|it| it["name"] == "values").unwrap();
    let body = format!(r#"{{"type":"crm.update","summary":"Keep","details":{}}}"#, text(&values["inputText"]));
    let key = bearer(&agent.key);
    let headers = [("authorization", key.as_str())];
    let got = client.ask("POST", AUTHORIZE, &headers, body.as_bytes()).await.ok();
    assert_eq!(got["status"], "allowed");
    let digits = body.replace("1E30", "1000000000000000000000000000000");
    let got = client.ask("POST", AUTHORIZE, &headers, digits.as_bytes()).await;
    assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["details.numbers.0".into()]));
}

/// A number beyond all doubles is JSON: it is the fault of its field, whatever is asked for there, beside the other faults.
#[tokio::test]
async fn numbers_beyond_all_doubles_are_faults_of_their_fields() {
    let site = Site::start().await;
    let (agent, mut client) = (site.agent(&[WIDE]), site.client().await);
    let key = bearer(&agent.key);
    let headers = [("authorization", key.as_str())];
    let mut body = payment(7);
    (body["payment"]["amount"], body["more"], body["details"]) = (json!("N"), json!("N"), json!({ "a": [0, "N"] }));
    for number in ["1e400".to_owned(), "-1.5E+999".to_owned(), "9".repeat(400)] {
        let written = |it: &Value| it.to_string().replace("\"N\"", &number);
        let body = written(&body);
        let got = client.ask("POST", AUTHORIZE, &headers, body.as_bytes()).await;
        let faults = ["details.a.1", "more", "payment.amount"].map(str::to_owned).to_vec();
        assert_eq!(got.refusal(), (400, "invalid_request".into(), faults), "{body}");
        let verify = written(&json!({ "receipt": "N" }));
        let got = client.ask("POST", "/v1/verify", &[], verify.as_bytes()).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["receipt".into()]), "{number}");
    }
}

/// Two bodies are one request where RFC 8785 writes them alike: spaces, order and the spelling of characters do not count,
/// every value does, also one that is normalised and one that nobody reads; a member that is null is not one that is not there, nor is a
/// list in another order the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_are_compared_as_sent() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    let key = bearer(&agent.key);
    let headers = [("authorization", key.as_str()), ("idempotency-key", "order-1")];
    let body = r#"{"type":"payment","summary":"Pay","more":1,"list":[1,2],"payment":{"amount":100,"currency":"EUR","merchant":{"name":"Shop","domain":"shop.example.com"}}}"#;
    let first = client.ask("POST", AUTHORIZE, &headers, body.as_bytes()).await.ok();
    assert_eq!(text(&first["status"]), "allowed");
    let spelled = r#" {"payment": {"merchant":{"domain":"shop.example.com","name":"\u0053hop"},"currency":"EUR","amount":100},
        "more":1.0, "list":[1e0,2.0], "summary":"Pay", "idempotencyKey":"order-1", "type":"payment"}"#;
    let again = client.ask("POST", AUTHORIZE, &headers, spelled.as_bytes()).await;
    assert_eq!((again.header("idempotent-replayed"), again.ok()), (Some("true"), first));
    let others = [
        ("EUR", "eur"),
        ("\"more\":1", "\"more\":2"),
        ("\"more\":1", "\"more\":1,\"none\":null"),
        ("\"more\":1", "\"more\":null"),
        ("\"more\":1", "\"more\":1,\"session\":null"),
        ("[1,2]", "[2,1]"),
        ("shop.example.com", "SHOP.example.com"),
        ("100", "101"),
    ];
    for (from, to) in others {
        let got = client.ask("POST", AUTHORIZE, &headers, body.replace(from, to).as_bytes()).await;
        assert_eq!((got.status, got.kind().as_str()), (409, "idempotency_conflict"), "{to}");
    }
    assert_eq!(site.audit().actions, 1);
    site.stop().await;
}

/// A key of idempotency is free after an answer that decided nothing, whether it was the client's fault or the server's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_uses_no_key_up() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let mut client = site.client().await;
    let bad = client.authorize_once(&agent.key, "order-1", &payment(0)).await;
    assert_eq!(bad.status, 400);
    for (fault, status) in [(Fault::Unavailable, 503), (Fault::UnknownLost, 500)] {
        site.fault.set(fault);
        assert_eq!(client.authorize_once(&agent.key, "order-1", &payment(1)).await.status, status);
    }
    site.fault.set(Fault::None);
    let good = client.authorize_once(&agent.key, "order-1", &payment(2)).await;
    assert_eq!((good.header("idempotent-replayed"), text(&good.ok()["status"])), (None, "allowed"));
    assert_eq!(site.audit().actions, 1);
    site.stop().await;
}

/// A stopped agent can still read, settle and name a callback for what it asked before; asking alone is denied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_agent_may_read_settle_and_be_called_back() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let mut client = site.client().await;
    let before = client.authorize(&agent.key, &payment(100)).await.ok();
    let id = text(&before["id"]);
    let reason = Note::parse("a test stops it").unwrap();
    site.gate.execute(FreezeAgent { workspace: site.workspace(), agent: agent.id, by: By::Program, reason }).unwrap();
    assert_eq!(text(&client.authorize(&agent.key, &payment(1)).await.ok()["decision"]), "deny");
    assert_eq!(text(&client.read_action(&agent.key, id).await.ok()["status"]), "revoked");
    let url = json!({ "url": "https://hooks.example.com/cb" });
    let callback = client.post(&format!("/v1/actions/{id}/callback"), &agent.key, &url).await.ok();
    assert_eq!(callback["actionId"], before["id"]);
    let settled = client.settle(&agent.key, id, &json!({ "status": "failed" })).await.ok();
    assert_eq!((text(&settled["status"]), text(&settled["decision"])), ("failed", "deny"));
    site.stop().await;
}

/// The last value that each bound lets through is let through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bounds_take_their_last_value() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE, CRM]);
    let mut client = site.client().await;
    let share = with(update(), "type", json!("data.share"));
    let data = |names: usize| json!({ "recipient": "ana@example.com", "fields": vec!["f"; names] });
    let tool = with(update(), "type", json!("tool.call"));
    // `{"a":""}` is eight bytes.
    let sized = |bytes: usize| json!({ "a": "x".repeat(bytes - 8) });
    let detail = json!({ "source": "s".repeat(64), "detail": "d".repeat(500) });
    let largest = json!({ "a": [9_007_199_254_740_991_i64, -9_007_199_254_740_991_i64, 0.5] });
    let good = [
        with(update(), "provenance", json!(vec![detail; 50])),
        with(update(), "session", json!({ "id": "~".repeat(128) })),
        with(update(), "session", json!({ "id": "!" })),
        with(update(), "idempotencyKey", json!("k")),
        with(update(), "details", sized(16 * 1024)),
        with(update(), "details", largest),
        with(share.clone(), "data", data(1)),
        with(share, "data", data(100)),
        with(tool.clone(), "tool", json!({ "name": "ls", "input": sized(64 * 1024) })),
        with(tool, "tool", json!({ "name": "ls", "server": "fs", "inputBytes": 0 })),
    ];
    for body in good {
        let decision = client.authorize(&agent.key, &body).await.ok();
        assert_eq!(decision["type"], body["type"]);
    }
    let long = with(update(), "details", sized(16 * 1024 + 1));
    assert_eq!(client.authorize(&agent.key, &long).await.fields(), ["details"]);
    site.stop().await;
}

/// What makes a decision's digest hard to guess is 16 random bytes, which differ from one like action to the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_salt_is_sixteen_random_bytes() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let site = Site::start().await;
    let agent = site.agent(&[CRM]);
    let mut client = site.client().await;
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..8 {
        let decision: Value = client.authorize(&agent.key, &update()).await.ok();
        let (salt, receipt) = (text(&decision["digestSalt"]), text(&decision["receipt"]));
        assert_eq!(URL_SAFE_NO_PAD.decode(salt).unwrap().len(), 16);
        let claims = URL_SAFE_NO_PAD.decode(receipt.split('.').nth(1).unwrap()).unwrap();
        assert!(!String::from_utf8(claims).unwrap().contains(salt));
        assert!(seen.insert(salt.to_owned()));
    }
    site.stop().await;
}

/// A body that is too large, and one that is not sent as it is, each with a header that goes with it.
fn refused_bodies() -> [(Vec<u8>, (&'static str, &'static str)); 2] {
    [(vec![b'x'; 1024 * 1024 + 1], ("x-body", "large")), (b"{}".to_vec(), ("content-encoding", "gzip"))]
}

/// A key that this node remembers and that was revoked since is told so before anything of its body, and uses up its
/// address's rate and not its agent's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remembered_key_that_was_revoked_is_told_so_before_its_body() {
    for (body, header) in refused_bodies() {
        let site = Site::with(|plan| plan.config.limits.gate_per_minute = 6).await;
        let agent = site.agent(&[OFFICE]);
        let second = site.key(KeyScope::Agent(agent.id));
        let mut client = site.client().await;
        client.authorize(&agent.key, &payment(1)).await.ok();
        let key = bearer(&second);
        let headers = [("authorization", key.as_str()), header];
        let fault = client.ask("POST", AUTHORIZE, &headers, &body).await;
        assert!(matches!(fault.status, 400 | 413), "while it is in force, the body is at fault: {}", fault.text());
        site.revoke(&second);
        let got = client.ask("POST", AUTHORIZE, &headers, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (401, "invalid_api_key"), "{header:?}");
        for _ in 0..9 {
            client.ask("POST", AUTHORIZE, &headers, &body).await;
        }
        assert_eq!(client.ask("POST", AUTHORIZE, &headers, &body).await.kind(), "rate_limited", "{header:?}");
        client.authorize(&agent.key, &payment(2)).await.ok();
        site.stop().await;
    }
}

/// So is one whose agent was removed, in the words of each route, and one that models are called with.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_ended_otherwise_are_told_so_before_their_bodies() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let host = BASE_URL.split_once("://").unwrap().1;
    for (body, header) in refused_bodies() {
        let gone = site.agent(&[OFFICE]);
        let key = bearer(&gone.key);
        let headers = [("authorization", key.as_str()), ("host", host), header];
        client.authorize(&gone.key, &payment(1)).await.ok();
        site.gate.execute(RemoveAgent { workspace: site.workspace(), by: By::Program, agent: gone.id }).unwrap();
        let got = client.ask("POST", AUTHORIZE, &headers, &body).await;
        assert_eq!((got.status, got.kind().as_str()), (403, "agent_not_found"));
        let got = client.ask("POST", "/mcp", &headers, &body).await;
        assert!(got.status == 403 && got.text().contains("agent_stopped"), "{}", got.text());
    }
    let payer = site.key(KeyScope::Inference);
    let key = bearer(&payer);
    let (chat, headers) = ("/v1/chat/completions", [("authorization", key.as_str()), ("content-encoding", "gzip")]);
    assert_eq!(client.ask("POST", chat, &headers, b"{}").await.fields(), ["content-encoding"]);
    site.revoke(&payer);
    for _ in 0..2 {
        assert_eq!(client.ask("POST", chat, &headers, b"{}").await.kind(), "invalid_api_key");
    }
    site.stop().await;
}

/// Sums may pass what every reader of JSON gets right; they are told as that bound, to the agent and to members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sums_beyond_the_bound_are_told_as_the_bound() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let mut client = site.client().await;
    for amount in [100, SAFE_MAX] {
        let action = client.authorize(&agent.key, &payment(100)).await.ok();
        let done = json!({ "status": "completed", "amount": amount });
        client.settle(&agent.key, text(&action["id"]), &done).await.ok();
    }
    let (workspace, reason) = (site.workspace(), Note::parse("looked into").unwrap());
    site.gate.restart(&RestartAgent { workspace, agent: agent.id, by: By::Program, reason, admin: None }).unwrap();
    let told = client.authorize(&agent.key, &payment(1)).await;
    assert!(!Json::parse(&told.body).unwrap().has_unsafe_number(), "{}", told.text());
    let told = told.ok();
    assert!(told["reasons"].as_array().unwrap().iter().any(|it| it["used"] == json!(SAFE_MAX)), "{told}");
    let member = site.member(Role::Admin);
    let item = member.ask(&mut client, "GET", &format!("/api/w/{workspace}/agents/{}", agent.id), None).await.ok();
    assert_eq!(item["spend"][0]["settled"], json!(SAFE_MAX), "{item}");
    site.stop().await;
}

/// The documents say that a receipt is for one charge, and what to do for a further one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documents_say_one_charge_a_receipt() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let told = "a further charge, as of a subscription or after a deposit, takes an action of its own";
    let document: Value = client.ask("GET", "/openapi.json", &[], b"").await.ok();
    let receipt = &document["components"]["schemas"]["Decision"]["properties"]["receipt"];
    assert!(text(&receipt["description"]).contains(told), "{receipt}");
    assert!(client.ask("GET", "/docs", &[], b"").await.text().contains(told));
    site.stop().await;
}

/// There is no way to look at a receipt without using it up: what asks for one is not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_is_never_a_rehearsal() {
    let site = Site::start().await;
    let agent = site.agent(&[WIDE]);
    let mut client = site.client().await;
    let decision = client.authorize(&agent.key, &payment(100)).await.ok();
    let mut bill = charge(&decision["receipt"], 100);
    bill["dryRun"] = json!(true);
    let headers = [("x-svc-dry-run", "true")];
    let got = client.ask("POST", "/v1/verify?dryRun=true", &headers, bill.to_string().as_bytes()).await.ok();
    assert_eq!((&got["valid"], &got["consumed"]), (&json!(true), &json!(true)));
    assert_eq!(client.verify(&bill).await.ok()["reason"], json!("already_consumed"));
    site.stop().await;
}

/// A node is ready while its store answers and its clock is not behind the newest record by more than five seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_ready_by_store_and_clock() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    // Each makes a workspace of its own first, which is the newest record.
    let (near, far) = (site.node(Span::default()).await, site.node(Span::default()).await);
    near.shift(Span::seconds(-5));
    far.shift(Span::seconds(-6));
    for (node, status) in [(&near, 200), (&site, 200), (&far, 503)] {
        let got = node.client().await.ask("GET", "/readyz", &[], b"").await;
        assert_eq!(got.status, status);
        let alive = node.client().await.ask("GET", "/healthz", &[], b"").await;
        assert_eq!(alive.status, 200, "a node that is not ready is alive");
        let asked = node.client().await.authorize(&agent.key, &payment(100)).await;
        assert_eq!(
            (asked.status == 503, asked.status),
            (status == 503, status),
            "a node that is behind decides nothing"
        );
        let verified = node.client().await.ask("POST", "/v1/verify", &[], br#"{"receipt":"x"}"#).await;
        assert_eq!(verified.status, status);
    }
    near.stop().await;
    far.stop().await;
    site.stop().await;
}
