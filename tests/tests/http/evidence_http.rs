//! The ledger over a real socket: its list, bundles, proofs and scorecards, for people, machines and admin keys.

use std::io::ErrorKind;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::evidence::bundle::Verdict;
use svc_core::state::evidence::merkle::verify_inclusion;
use svc_core::state::evidence::note::Checkpoint;
use svc_core::state::evidence::{Chain, Entry};
use svc_core::state::gate::receipt::PublicKeys;
use svc_core::state::people::{KeyScope, Purpose, Role, TokenScope};
use svc_core::store::Row as _;
use svc_core::value::Span;
use svc_tests::client::{Client, Got};
use svc_tests::evidence::check;
use svc_tests::requests::{WIDE, payment};
use svc_tests::site::Site;

async fn ask(client: &mut Client, path: &str, credential: &str) -> Got {
    client.get(path, credential).await
}

/// A site where something happened, its evidence record's id, and an admin key.
async fn lived() -> (Site, Client, String, String) {
    let site = Site::start().await;
    let mut client = site.client().await;
    let agent = site.agent(&[WIDE]);
    let decided = client.authorize(&agent.key, &payment(100)).await.ok();
    client.authorize(&agent.key, &payment(200)).await.ok();
    let evidence = decided["evidenceRecord"].as_str().unwrap().to_owned();
    let key = site.key(KeyScope::Admin);
    (site, client, evidence, key)
}

/// Each kind of caller gets the same bundle, which is whole; a key that may not gets none.
#[tokio::test]
async fn a_bundle_is_served_to_each_who_may_read_it() {
    let (site, mut client, _, key) = lived().await;
    let got = ask(&mut client, "/v1/evidence", &key).await;
    let report = check(got.text().as_bytes());
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    assert!(report.records >= 4 && report.receipts == 0 && report.disclosed >= 2, "what could be used yet: {report:?}");
    site.advance(Span::minutes(15));
    let report = check(ask(&mut client, "/v1/evidence", &key).await.text().as_bytes());
    assert_eq!((report.verdict, report.receipts), (Verdict::Whole, 2));

    let token = site.token(&[TokenScope::EvidenceRead]);
    let again = ask(&mut client, "/v1/admin/evidence", &token).await;
    assert_eq!(check(again.text().as_bytes()).verdict, Verdict::Whole);
    let other = site.token(&[TokenScope::AgentsRead]);
    assert_eq!(ask(&mut client, "/v1/admin/evidence", &other).await.kind(), "missing_scope");
    let inference = site.key(KeyScope::Inference);
    assert_eq!(ask(&mut client, "/v1/evidence", &inference).await.kind(), "missing_scope");

    let auditor = site.member(Role::Auditor);
    let path = format!("/api/w/{}/evidence", site.workspace());
    let got = auditor.ask(&mut client, "GET", &path, None).await;
    assert_eq!(check(got.text().as_bytes()).verdict, Verdict::Whole);
    let member = site.member(Role::Member);
    assert_eq!(member.ask(&mut client, "GET", &path, None).await.kind(), "forbidden");
}

/// A proof asked for in the second in which its record was written waits for its place, and leads to the signed root.
#[tokio::test]
async fn a_young_record_is_proved_at_once() {
    let (_site, mut client, evidence, key) = lived().await;
    let proof = ask(&mut client, &format!("/v1/evidence/{evidence}/proof"), &key).await.ok();
    let jwks = client.ask("GET", "/.well-known/jwks.json", &[], b"").await.text();
    let keys = PublicKeys::from_jwks(&jwks).unwrap();
    let checkpoint = Checkpoint::open(proof["checkpoint"].as_str().unwrap(), keys.iter()).unwrap();
    let hex = |it: &Value| hex::decode(it.as_str().unwrap()).unwrap();
    let path: Vec<Vec<u8>> = proof["path"].as_array().unwrap().iter().map(hex).collect();
    let (index, size) = (proof["leafIndex"].as_u64().unwrap(), proof["treeSize"].as_u64().unwrap());
    assert_eq!(checkpoint.size, size);
    let leaf = hex(&proof["leafHash"]);
    assert_eq!(verify_inclusion(&leaf, index, size, &path, checkpoint.root.as_bytes()), Ok(()));
    assert_eq!(proof["record"]["id"], evidence.as_str());
    let unknown = "/v1/evidence/evd_01K6FN0001000000000000000E/proof";
    assert_eq!(ask(&mut client, unknown, &key).await.refusal().1, "not_found");
    assert_eq!(ask(&mut client, "/v1/evidence/nonsense/proof", &key).await.status, 404);
}

/// The ledger is listed newest first, in pages; a cursor of another list is refused.
#[tokio::test]
async fn the_ledger_is_listed_newest_first() {
    let (site, mut client, _, _) = lived().await;
    site.advance(Span::seconds(1));
    let auditor = site.member(Role::Auditor);
    let base = format!("/api/w/{}/ledger", site.workspace());
    let (mut seqs, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = auditor.ask(&mut client, "GET", &format!("{base}?limit=2{cursor}"), None).await.ok();
        seqs.extend(page["data"].as_array().unwrap().iter().map(|it| it["seq"].as_u64().unwrap()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let expected: Vec<u64> = (0..seqs.len() as u64).rev().collect();
    assert!(seqs.len() > 4 && seqs == expected, "{seqs:?}");
    let refused = auditor.ask(&mut client, "GET", &format!("{base}?cursor=AAAA"), None).await;
    assert_eq!(refused.fields(), ["cursor"]);
}

/// The ledger is listed as far as it is asked for: by kind, by an id that records name, by time; a part that holds nothing leads on.
#[tokio::test]
async fn the_ledger_is_listed_as_it_is_asked_for() {
    let (site, mut client, evidence, _) = lived().await;
    site.advance(Span::seconds(1));
    let auditor = site.member(Role::Auditor);
    let base = format!("/api/w/{}/ledger", site.workspace());
    let all = auditor.ask(&mut client, "GET", &base, None).await.ok();
    let all = all["data"].as_array().unwrap().clone();
    let seqs =
        |of: &dyn Fn(&Value) -> bool| all.iter().filter(|it| of(it)).map(|it| it["seq"].clone()).collect::<Vec<_>>();
    let decided = all.iter().find(|it| it["id"] == evidence.as_str()).unwrap();
    let text = |name: &str| decided[name].as_str().unwrap().to_owned();
    let (subject, agent, at) = (text("subject"), decided["data"]["agentId"].as_str().unwrap(), text("at"));
    let names_agent = |it: &Value| it.to_string().contains(agent);
    let begins = |it: &Value, what: &str| it["kind"].as_str().unwrap().starts_with(what);
    for (query, expected) in [
        ("kind=action".to_owned(), seqs(&|it| begins(it, "action."))),
        ("kind=action.allowed".to_owned(), seqs(&|it| it["kind"] == "action.allowed")),
        ("kind=action.denied".to_owned(), Vec::new()),
        (format!("about={subject}"), vec![decided["seq"].clone()]),
        (format!("about={agent}"), seqs(&names_agent)),
        (format!("about={agent}&kind=agent"), seqs(&|it| names_agent(it) && begins(it, "agent."))),
        (format!("from={at}"), seqs(&|it| it["at"].as_str() >= Some(&at))),
        (format!("to={at}"), seqs(&|it| it["at"].as_str() < Some(&at))),
    ] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = auditor.ask(&mut client, "GET", &format!("{base}?{query}&limit=1{cursor}"), None).await.ok();
            found.extend(page["data"].as_array().unwrap().iter().map(|it| it["seq"].clone()));
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(found, expected, "{query}");
    }
    for (query, fields) in [
        ("kind=act&about=%22", ["about", "kind"].as_slice()),
        ("from=2026-10-02T00:00:00.000Z&to=2026-10-02T00:00:00.000Z", &["to"]),
        ("from=yesterday", &["from"]),
        ("from=2026-10-02&to=2026-10-02", &["to"]),
    ] {
        let refused = auditor.ask(&mut client, "GET", &format!("{base}?{query}"), None).await;
        assert_eq!(refused.fields(), fields, "{query}");
    }
    let page = auditor.ask(&mut client, "GET", &format!("{base}?limit=1"), None).await.ok();
    let cursor = page["nextCursor"].as_str().unwrap();
    let refused = auditor.ask(&mut client, "GET", &format!("{base}?kind=action&cursor={cursor}"), None).await;
    assert_eq!(refused.fields(), ["cursor"], "a cursor is good for its own question");
}

/// Every fault of a query is named.
#[tokio::test]
async fn what_is_asked_wrongly_is_named() {
    let (_site, mut client, _, key) = lived().await;
    for (query, fields) in [
        ("from=yesterday&redact=maybe&since=0", vec!["from", "redact", "since"]),
        ("from=2026-10-02T00:00:00.000Z&to=2026-10-01T00:00:00.000Z", vec!["to"]),
        ("agentId=nobody", vec!["agentId"]),
        ("since=1000000", vec!["since"]),
        ("cursor=1.-.-.2", vec!["cursor"]),
        ("cursor=1.-.-.0.02", vec!["cursor"]),
        ("cursor=x", vec!["cursor"]),
        ("cursor=x&from=y&more=1", vec!["cursor", "from", "more"]),
    ] {
        let mut named = ask(&mut client, &format!("/v1/evidence?{query}"), &key).await.fields();
        named.sort();
        assert_eq!(named, fields, "{query}");
    }
}

/// What nobody reads is refused, where it would seem to count: a misspelt wish for a bundle without texts, and what contradicts a cursor,
/// which carries the whole question.
#[tokio::test]
async fn what_nobody_reads_is_refused() {
    let (site, mut client, evidence, key) = lived().await;
    for (query, fields) in [
        ("redacted=true", vec!["redacted"]),
        ("Redact=true&agentid=agt_1", vec!["Redact", "agentid"]),
        ("cursor=1.-.-.0&redact=true", vec!["redact"]),
        ("cursor=1.-.-.1&redact=false", vec!["redact"]),
        ("cursor=1.-.-.0.2&since=3", vec!["since"]),
        ("cursor=1.-.-.0&to=2026-10-01T00:00:00.000Z&agentId=agt_01K6FN0001000000000000000E", vec!["agentId", "to"]),
    ] {
        let got = ask(&mut client, &format!("/v1/evidence?{query}"), &key).await;
        assert_eq!((got.status, got.fields()), (400, fields.into_iter().map(str::to_owned).collect()), "{query}");
    }
    let proof = format!("/v1/evidence/{evidence}/proof?redact=true");
    assert_eq!(ask(&mut client, &proof, &key).await.fields(), ["redact"]);
    let token = site.token(&[TokenScope::EvidenceRead]);
    assert_eq!(ask(&mut client, "/v1/admin/scorecard?agentID=x", &token).await.fields(), ["agentID"]);
    // What says the same as the cursor contradicts nothing, and cursors of before are known.
    for query in ["cursor=1.-.-.1&redact=true", "cursor=1.-.-.0.2&since=1&redact=false&from=2026-10-01T00:00:00.000Z"] {
        let report = check(ask(&mut client, &format!("/v1/evidence?{query}"), &key).await.text().as_bytes());
        assert_eq!(report.verdict, Verdict::Whole, "{query}: {:?}", report.fault);
    }
}

/// Up to an instant that is still to come there is what there is by now.
#[tokio::test]
async fn a_bundle_up_to_tomorrow_has_today() {
    let (site, mut client, _, key) = lived().await;
    site.advance(Span::seconds(1));
    let all = check(ask(&mut client, "/v1/evidence", &key).await.text().as_bytes());
    let far = site.now().plus(Span::hours(48));
    let report = check(ask(&mut client, &format!("/v1/evidence?to={far}"), &key).await.text().as_bytes());
    assert!(report.records > 0 && report.records == all.records, "{report:?}");
}

/// A bundle that cannot be written to its end is broken off before its client: what came of it is no complete answer.
#[tokio::test]
async fn a_bundle_that_is_broken_off_is_no_complete_answer() {
    let (site, mut client, _, key) = lived().await;
    site.advance(Span::seconds(1));
    let headers = [("authorization", &*format!("Bearer {key}"))];
    assert!(client.try_ask("GET", "/v1/evidence", &headers, b"").await.is_ok());
    // Without its newest leaves nothing is proved, which is found behind the records alone.
    let rows = site.memory().dump();
    let chain = rows.iter().find_map(|(.., it)| Chain::peel(it)).unwrap();
    site.plant(Chain { tail: Vec::new(), ..Chain::clone(chain) });
    let got = client.try_ask("GET", "/v1/evidence", &headers, b"").await;
    assert_eq!(got.map(|it| it.status).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

/// A scorecard is a JWS of its own type and key, and its counts are those of the ledger's records.
#[tokio::test]
async fn a_scorecard_counts_what_the_ledger_tells() {
    let (site, mut client, _, key) = lived().await;
    let token = site.token(&[TokenScope::EvidenceRead]);
    let card = ask(&mut client, "/v1/admin/scorecard", &token).await.ok();
    let jws = card["scorecard"].as_str().unwrap();
    let parts: Vec<&str> = jws.split('.').collect();
    let json = |part: &str| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    let (head, claims) = (json(parts[0]), json(parts[1]));
    assert_eq!(head["typ"], "svc-scorecard+jwt");
    let rows = site.gate.signing_keys().unwrap();
    let row = rows.iter().find(|row| row.id.purpose == Purpose::Scorecard).unwrap();
    let public = svc_core::state::gate::receipt::PublicKey::of(row).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap().try_into().unwrap();
    assert!(public.signed(format!("{}.{}", parts[0], parts[1]).as_bytes(), &signature));

    let bundle: Value = serde_json::from_str(&ask(&mut client, "/v1/evidence", &key).await.text()).unwrap();
    let kinds =
        |kind: &str| bundle["records"].as_array().unwrap().iter().filter(|it| it["kind"] == kind).count() as u64;
    assert_eq!(claims["counts"]["allowed"], kinds("action.allowed"));
    assert_eq!((claims["counts"]["allowed"].as_u64(), claims["counts"]["verified"].as_u64()), (Some(2), Some(0)));
    assert_eq!(claims["amounts"][0]["allowed"], 300);
    assert_eq!(claims["checkpoint"]["size"].as_u64().unwrap(), kinds_all(&bundle));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 86_400);
    let text = claims.to_string();
    assert!(!text.contains("shop.example.com") && !text.contains('@'), "{text}");
    let auditor = site.member(Role::Auditor);
    let own = format!("/api/w/{}/scorecard?from=2026-10-01T00:00:00.000Z", site.workspace());
    auditor.ask(&mut client, "GET", &own, None).await.ok();
}

/// Nothing is signed of an agent that is not the workspace's own: neither a clean scorecard nor an empty bundle.
#[tokio::test]
async fn of_another_workspaces_agent_there_is_nothing_to_sign() {
    let (site, mut client, _, key) = lived().await;
    let token = site.token(&[TokenScope::EvidenceRead]);
    let (auditor, own) = (site.member(Role::Auditor), site.agent(&[WIDE]));
    let stranger = format!("agt_{}", "0".repeat(26));
    for (agent, status) in [(own.id.to_string(), 200), (stranger, 404)] {
        for (path, credential) in
            [("/v1/admin/scorecard", &token), ("/v1/admin/evidence", &token), ("/v1/evidence", &key)]
        {
            let got = ask(&mut client, &format!("{path}?agentId={agent}"), credential).await;
            assert_eq!(got.status, status, "{path}: {}", got.text());
        }
        for end in ["scorecard", "evidence"] {
            let path = format!("/api/w/{}/{end}?agentId={agent}", site.workspace());
            assert_eq!(auditor.ask(&mut client, "GET", &path, None).await.status, status, "{path}");
        }
    }
}

fn kinds_all(bundle: &Value) -> u64 {
    bundle["records"].as_array().unwrap().len() as u64
}

/// A rotation made beside the server counts without a restart: the next key is published at once and signs a day later, and a
/// compromised one's receipts are refused.
#[tokio::test]
async fn a_rotation_counts_without_a_restart() {
    let (site, mut client, _, _) = lived().await;
    let agent = site.agent(&[WIDE]);
    let published = |text: &str| PublicKeys::from_jwks(text).unwrap().iter().count();
    let jwks = client.ask("GET", "/.well-known/jwks.json", &[], b"").await.text();
    assert_eq!(published(&jwks), 3);
    let old = client.authorize(&agent.key, &payment(100)).await.ok();
    site.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    let jwks = client.ask("GET", "/.well-known/jwks.json", &[], b"").await.text();
    assert_eq!(published(&jwks), 3, "the compromised key is published no more");
    let charge = serde_json::json!({ "amount": 100, "currency": "EUR", "merchant": { "domain": "shop.example.com" } });
    let body = |receipt: &Value| serde_json::json!({ "receipt": receipt, "charge": charge });
    let refused = client.verify(&body(&old["receipt"])).await.ok();
    assert_eq!((&refused["valid"], refused["reason"].as_str()), (&Value::Bool(false), Some("unknown_key")));
    let again = client.read_action(&agent.key, old["id"].as_str().unwrap()).await.ok();
    let accepted = client.verify(&body(&again["receipt"])).await.ok();
    assert_eq!(accepted["valid"], true, "{accepted}");
}

/// A ledger of more records than a bundle holds is taken away in several, each whole in itself, one after the other without a
/// gap; the bound is the server's.
#[tokio::test]
async fn a_long_ledger_is_taken_away_in_parts() {
    let site = Site::with(|plan| plan.bundle_max = Some(4)).await;
    let (mut client, agent, key) = (site.client().await, site.agent(&[WIDE]), site.key(KeyScope::Admin));
    for amount in 1..=7 {
        client.authorize(&agent.key, &payment(amount)).await.ok();
    }
    site.gate.tick().unwrap();
    let size = site.ledger().len();
    let (mut path, mut seqs, mut parts) = ("/v1/evidence".to_owned(), Vec::new(), 0);
    let mut first = None;
    loop {
        let got = ask(&mut client, &path, &key).await;
        let report = check(got.text().as_bytes());
        assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
        let bundle = got.json();
        let records = bundle["records"].as_array().unwrap();
        assert!(records.len() <= 4 && !records.is_empty(), "{bundle}");
        seqs.extend(records.iter().map(|it| it["seq"].as_u64().unwrap()));
        parts += 1;
        let next = bundle["nextCursor"].as_str().map(str::to_owned);
        assert_eq!(bundle["truncated"], next.is_some());
        let Some(next) = next else { break };
        path = format!("/v1/evidence?cursor={next}");
        first.get_or_insert_with(|| (path.clone(), report.checkpoint.unwrap()));
    }
    assert_eq!((seqs, parts), ((0..size as u64).collect(), size.div_ceil(4)));

    // A part shows that the ledger continues what the one before it has shown, also once there is more.
    let (second, held) = first.unwrap();
    client.authorize(&agent.key, &payment(8)).await.ok();
    let report = check(ask(&mut client, &second, &key).await.text().as_bytes());
    assert!(
        report.previous.as_ref() == Some(&held) && report.checkpoint.as_ref().unwrap().size > held.size,
        "{report:?}"
    );
    assert_eq!(report.against(&held).unwrap().verdict, Verdict::Whole);
}

/// The list leaves no record out in silence: where one is missing, it goes no further.
#[tokio::test]
async fn the_ledger_is_listed_without_a_hole() {
    let (site, mut client, _, _) = lived().await;
    site.advance(Span::seconds(1));
    let auditor = site.member(Role::Auditor);
    let path = format!("/api/w/{}/ledger", site.workspace());
    let record = Entry::clone(&site.ledger()[2]);
    site.plant(Entry { place: None, ..record });
    for query in ["", "?kind=agent", "?limit=1"] {
        let mut next = format!("{path}{query}");
        let refused = loop {
            let got = auditor.ask(&mut client, "GET", &next, None).await;
            if got.status != 200 {
                break got;
            }
            let cursor = got.ok()["nextCursor"].as_str().unwrap_or_else(|| panic!("{query}: a hole")).to_owned();
            next =
                format!("{path}{}cursor={cursor}", if query.is_empty() { "?".to_owned() } else { format!("{query}&") });
        };
        assert_eq!(refused.kind(), "not_ready", "{query}");
    }
}
