//! Sixty-four clients at once on one thing that may happen once: over real sockets, over SQLite, and the books afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::rules::people::tokens::CreateToken;
use svc_core::state::edge::{ConfigChange, IntegrationKind, signature};
use svc_core::state::people::{self, Purpose, Role, TokenScope, Workspace};
use svc_core::testing::audit::{Report, audit, audit_approvals};
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_core::value::text::Label;
use svc_tests::client::{Client, Got, bearer};
use svc_tests::desk::{CHAT, Desk, chat};
use svc_tests::people::{ask, code_now, unbase32};
use svc_tests::race::{CLIENTS, at_once};
use svc_tests::receiver::{SECRET, connect_kind};
use svc_tests::requests::{CRM, OFFICE, SHOP, WIDE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Plan, Site, rows_of};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::sync::watch::{Receiver, channel};

async fn durable(change: impl FnOnce(&mut Plan)) -> (Site, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let site = Site::with(|plan| {
        plan.directory = Some(directory.path().to_owned());
        change(plan);
    })
    .await;
    (site, directory)
}

/// Stops the server and reads what it left behind.
async fn books(site: Site, directory: &TempDir) -> Report {
    site.gate.tick().unwrap();
    site.stop().await;
    let rows = rows_of(directory.path());
    let mut report = audit(&rows);
    report.faults.extend(audit_approvals(&rows));
    report.assert_clean("the audit of a file");
    report
}

fn count(heard: &[Got], is: impl Fn(&Value) -> bool) -> usize {
    heard.iter().filter(|it| it.status == 200 && is(&it.json())).count()
}

/// One key of idempotency makes one action, whoever comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_of_idempotency_makes_one_action() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let heard = at_once(&[site.address], |mut client, _| {
        let key = agent.key.clone();
        async move { client.authorize_once(&key, "order-1", &payment(4_900)).await }
    })
    .await;
    let ids: BTreeSet<String> = heard.iter().map(|it| text(&it.ok()["id"]).to_owned()).collect();
    assert_eq!(ids.len(), 1);
    let replays = heard.iter().filter(|it| it.header("idempotent-replayed") == Some("true")).count();
    assert_eq!(replays, CLIENTS - 1);
    let first = heard[0].json();
    assert!(heard.iter().all(|it| it.json() == first));
    assert_eq!(books(site, &directory).await.actions, 1);
}

/// One key of idempotency with as many bodies: one is decided, all others conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_with_many_bodies_decides_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let heard = at_once(&[site.address], |mut client, place| {
        let (key, body) = (agent.key.clone(), payment(100 + i64::try_from(place).unwrap()));
        async move { client.authorize_once(&key, "order-1", &body).await }
    })
    .await;
    assert_eq!(count(&heard, |_| true), 1);
    let conflicts = heard.iter().filter(|it| it.status == 409 && it.kind() == "idempotency_conflict").count();
    assert_eq!(conflicts, CLIENTS - 1);
    assert_eq!(books(site, &directory).await.actions, 1);
}

/// One receipt is good for exactly one of all who show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_receipt_is_good_for_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let decision = site.client().await.authorize(&agent.key, &payment(4_900)).await.ok();
    let body = charge(&decision["receipt"], 4_900);
    let heard = at_once(&[site.address], |mut client, _| {
        let body = body.clone();
        async move { client.verify(&body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["valid"] == json!(true) && it["consumed"] == json!(true)), 1);
    assert_eq!(count(&heard, |it| it["reason"] == json!("already_consumed")), CLIENTS - 1);
    assert_eq!(books(site, &directory).await.consumed, 1);
}

/// One action is settled by exactly one of all who try, and reads as that one said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_action_is_settled_by_one() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[OFFICE]);
    let mut reader = site.client().await;
    let decision = reader.authorize(&agent.key, &payment(4_900)).await.ok();
    let id = text(&decision["id"]).to_owned();
    let heard = at_once(&[site.address], |mut client, place| {
        let (key, id) = (agent.key.clone(), id.clone());
        let outcome = json!({ "status": "completed", "amount": 4_000 + place });
        async move { client.settle(&key, &id, &outcome).await }
    })
    .await;
    assert_eq!(count(&heard, |_| true), 1);
    let late = heard.iter().filter(|it| it.status == 409 && it.kind() == "already_settled").count();
    assert_eq!(late, CLIENTS - 1);
    let settled = heard.iter().find(|it| it.status == 200).unwrap().json();
    assert_eq!(reader.read_action(&agent.key, &id).await.ok(), settled);
    drop(reader);
    assert_eq!(books(site, &directory).await.settled, 1);
}

/// What is allowed in a period never passes its limit, and reaches it: no order of arrivals lets one through too many or
/// one too few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_period_limit_is_reached_and_never_passed() {
    let (site, directory) = durable(|_| {}).await;
    let limited = r#"{"name":"Day","actions":["payment"],"duplicates":"record",
        "limits":{"currency":"EUR","perAction":1000,"perPeriod":{"amount":10300,"period":"day"}}}"#;
    let agent = site.agent(&[limited]);
    let heard = at_once(&[site.address], |mut client, place| {
        let (key, body) = (agent.key.clone(), payment_to(1_000, &format!("m{place}.example.org")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["decision"] == json!("allow")), 10);
    let refused = |it: &Value| {
        it["decision"] == json!("deny") && it["signals"].as_array().unwrap().contains(&json!("over_period_limit"))
    };
    assert_eq!(count(&heard, refused), CLIENTS - 10);
    let report = books(site, &directory).await;
    assert_eq!((report.actions, report.allowed), (CLIENTS, 10));
}

/// A velocity line lets exactly as many through as it says, and asks about all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_velocity_line_lets_exactly_so_many_through() {
    let (site, directory) = durable(|plan| plan.settings.agent_velocity.other_count = 10).await;
    let agent = site.agent(&[WIDE]);
    let heard = at_once(&[site.address], |mut client, place| {
        let key = agent.key.clone();
        let body = with(payment(100 + i64::try_from(place).unwrap()), "summary", json!(format!("Order {place}")));
        async move { client.authorize(&key, &body).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["decision"] == json!("allow")), 10);
    let asked =
        |it: &Value| it["decision"] == json!("approval_required") && it["signals"] == json!(["velocity_exceeded"]);
    assert_eq!(count(&heard, asked), CLIENTS - 10);
    assert_eq!(books(site, &directory).await.allowed, 10);
}

/// A freeze that comes while all ask: after it nobody is allowed, and nothing that was allowed before still is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_allowed_after_an_incident() {
    let (site, directory) = durable(|_| {}).await;
    let agent = site.agent(&[WIDE]);
    let mut reader = site.client().await;
    let first = reader.authorize(&agent.key, &payment(4_900)).await.ok();
    let id = text(&first["id"]).to_owned();
    let heard = at_once(&[site.address], |mut client, place| {
        let (key, id) = (agent.key.clone(), id.clone());
        async move {
            match place {
                0 => client.settle(&key, &id, &json!({ "status": "completed", "amount": 4_901 })).await,
                _ => client.authorize(&key, &payment(100 + i64::try_from(place).unwrap())).await,
            }
        }
    })
    .await;
    assert!(heard[0].ok()["incident"].is_object());
    for one in &heard[1..] {
        let now = reader.read_action(&agent.key, text(&one.ok()["id"])).await.ok();
        assert_eq!((&now["decision"], &now["signals"]), (&json!("deny"), &json!(["agent_frozen"])), "{now}");
    }
    drop(reader);
    books(site, &directory).await;
}

/// The agents of a fleet, for each of which somebody asks, how often they ask while it is frozen, and how often that is tried.
const FLEET: usize = 3;
const ASKS: usize = 4;
const TRIALS: usize = 200;

/// Asks as one agent, some of it while that is frozen; what is asked once the freeze was answered is refused. Gives what it was allowed
/// last.
async fn ask_until_frozen(client: &mut Client, key: &str, begun: &Semaphore, mut answered: Receiver<bool>) -> String {
    let mut allowed = None;
    for _ in 0..ASKS {
        let after = *answered.borrow();
        let got = client.authorize(key, &update()).await.ok();
        match text(&got["decision"]) {
            "allow" if !after => {
                if allowed.is_none() {
                    begun.add_permits(1);
                }
                allowed = Some(text(&got["id"]).to_owned());
            }
            "deny" if allowed.is_some() => {}
            _ => panic!("after the freeze's answer: {after}; {got}"),
        }
    }
    answered.wait_for(|it| *it).await.unwrap();
    let got = client.authorize(key, &update()).await.ok();
    assert_eq!((&got["decision"], &got["signals"]), (&json!("deny"), &json!(["agent_frozen"])), "{got}");
    allowed.unwrap()
}

/// In each of two hundred trials a machine freezes a fleet while others ask as its agents, all over sockets and over a file. Whatever is asked once the freeze was answered is refused, and nothing that was allowed before stands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_allowed_once_a_fleets_freeze_is_answered() {
    let (site, directory) = durable(|plan| {
        plan.settings.agent_velocity.other_count = 1_000_000;
        plan.settings.freeze_ceiling_per_hour = 1_000_000;
        plan.config.limits.gate_per_minute = 1_000_000;
    })
    .await;
    let text_of_token = format!("ims_{}", "0".repeat(43));
    let token = CreateToken {
        workspace: site.workspace(),
        by: By::Program,
        name: Label::parse("stops").unwrap(),
        scopes: vec![TokenScope::AgentsFreeze],
        days: 1,
        ip_allow: Vec::new(),
        digest: Digest::of(&text_of_token),
    };
    site.gate.execute(token).unwrap();
    let token = bearer(&text_of_token);
    let (mut machine, mut clients) = (site.client().await, Vec::new());
    for _ in 0..FLEET {
        clients.push(site.client().await);
    }
    for _ in 0..TRIALS {
        let agents: Vec<_> = (0..FLEET).map(|_| site.agent(&[CRM])).collect();
        let ids: Vec<String> = agents.iter().map(|it| it.id.to_string()).collect();
        let body = json!({ "selector": { "agentIds": ids }, "confirmCount": FLEET, "reason": "a leak" }).to_string();
        let (begun, (tell, answered)) = (Arc::new(Semaphore::new(0)), channel(false));
        let asking: Vec<_> = clients
            .drain(..)
            .zip(agents)
            .map(|(mut client, agent)| {
                let (begun, answered) = (Arc::clone(&begun), answered.clone());
                tokio::spawn(async move {
                    let last = ask_until_frozen(&mut client, &agent.key, &begun, answered).await;
                    let now = client.read_action(&agent.key, &last).await.ok();
                    assert_eq!((&now["decision"], &now["status"]), (&json!("deny"), &json!("revoked")), "{now}");
                    client
                })
            })
            .collect();
        drop(begun.acquire_many(u32::try_from(FLEET).unwrap()).await.unwrap());
        let got = machine.ask("POST", "/v1/admin/freeze", &[("authorization", &token)], body.as_bytes()).await.ok();
        tell.send_replace(true);
        assert_eq!((&got["count"], &got["frozen"]), (&json!(FLEET), &json!(FLEET)), "{got}");
        for one in asking {
            clients.push(one.await.unwrap());
        }
    }
    drop((machine, clients));
    site.stop().await;
    drop(directory);
}

/// A charge that an issuer asks about, whoever shows the receipt, whoever settles, and what stops the agent: one of them has the
/// action, and the books are right whichever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_a_receipt_and_a_stop_race_for_one_action() {
    let (site, directory) = durable(|_| {}).await;
    connect_kind(&site, IntegrationKind::Issuer, ConfigChange::default());
    let agent = site.agent(&[OFFICE]);
    let decision = site.client().await.authorize(&agent.key, &payment(4_900)).await.ok();
    let (id, shown) = (text(&decision["id"]).to_owned(), charge(&decision["receipt"], 4_900));
    let hook = format!("/hooks/issuer/{}", site.workspace());
    let now = site.now();
    let heard = at_once(&[site.address], |mut client, place| {
        let (key, id, shown, hook) = (agent.key.clone(), id.clone(), shown.clone(), hook.clone());
        async move {
            let mut event = json!({ "id": format!("evt_{place}"), "actionId": id });
            match place % 4 {
                0 => return client.verify(&shown).await,
                1 => {
                    let outcome = json!({ "status": "completed", "amount": 4_000 + place });
                    return client.settle(&key, &id, &outcome).await;
                }
                2 => {
                    event["type"] = json!("authorization.request");
                    event["currency"] = json!("EUR");
                    event["merchant"] = json!({ "domain": SHOP });
                    event["amount"] = json!(4_000);
                }
                _ => {
                    event["type"] = json!("authorization.settled");
                    event["amount"] = json!(4_850 + place);
                }
            }
            let body = event.to_string();
            let signed = signature(now, body.as_bytes(), [SECRET.as_bytes()]);
            client.ask("POST", &hook, &[("svc-signature", &signed)], body.as_bytes()).await
        }
    })
    .await;
    let used = count(&heard, |it| it["valid"] == json!(true)) + count(&heard, |it| it["approved"] == json!(true));
    assert!(used <= 1, "{used} uses of one receipt");
    let by_agent = count(&heard, |it| it["status"] == json!("completed"));
    let by_issuer = count(&heard, |it| it["outcome"] == json!("settled"));
    let over = count(&heard, |it| it["outcome"] == json!("over_settlement"));
    assert!(by_agent + by_issuer <= 1 && over >= 1, "{by_agent} {by_issuer} {over}");
    let read = site.client().await.read_action(&agent.key, &id).await.ok();
    assert_eq!(read["incident"]["settledAmount"], json!(4_850 + CLIENTS - 1), "the largest is what was charged");
    let report = books(site, &directory).await;
    assert_eq!((report.consumed, report.settled, report.stopped), (used, 1, 1));
}

/// What a subscription ends with is its end, in whichever order its events come and however much at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_has_ended_stays_so() {
    const OPERATORS: &str = "whsec_the_secret_of_whoever_runs_it";
    let (site, directory) = durable(|plan| {
        plan.config.billing.secret = Some(Secret::new(OPERATORS.to_owned()));
        plan.config.billing.plans = [("price_1".into(), people::Plan::Team)].into();
    })
    .await;
    let (now, workspace) = (site.now(), site.workspace());
    let heard = at_once(&[site.address], |mut client, place| {
        let kind = if place == CLIENTS / 2 { "deleted" } else { "updated" };
        // The end is the last that came about.
        let created = now.as_seconds() - if place == CLIENTS / 2 { 0 } else { 1 + i64::try_from(place).unwrap() };
        let object = json!({
            "id": "sub_1", "metadata": { "wid": workspace.to_string() }, "status": "active",
            "items": { "data": [{ "price": { "id": "price_1" } }] },
        });
        let event = json!({
            "id": format!("evt_{place}"), "type": format!("customer.subscription.{kind}"), "created": created,
            "data": { "object": object },
        });
        let body = event.to_string();
        let signed = signature(now, body.as_bytes(), [OPERATORS.as_bytes()]);
        async move { client.ask("POST", "/hooks/billing", &[("stripe-signature", &signed)], body.as_bytes()).await }
    })
    .await;
    assert_eq!(count(&heard, |it| it["received"] == json!(true)), CLIENTS);
    let row = site.gate.read(|scope| scope.get::<Workspace>(workspace)).unwrap().unwrap();
    assert_eq!((row.plan, row.subscriptions.len()), (people::Plan::Free, 1));
    books(site, &directory).await;
}

/// Nothing is decided by a key after the record that it was revoked, and whoever has heard so once hears nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_asks_no_more() {
    let site = Site::start().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let keys = owner.ask(&mut site.client().await, "GET", &format!("/api/w/{}/keys", site.workspace()), None).await;
    let keys = keys.ok();
    let own = |it: &&Value| it["agentId"] == json!(agent.id);
    let key_id = text(&keys["data"].as_array().unwrap().iter().find(own).unwrap()["id"]).to_owned();
    let path = format!("/api/w/{}/keys/{key_id}", site.workspace());
    let heard = at_once(&[site.address], |mut client, place| {
        let (owner, path, key) = (owner.clone(), path.clone(), agent.key.clone());
        async move {
            if place == CLIENTS / 2 {
                return owner.ask(&mut client, "DELETE", &path, None).await;
            }
            let mut ended = false;
            loop {
                let got = client.authorize(&key, &payment(100)).await;
                assert!(got.status == 401 || (got.status == 200 && !ended), "{}", got.text());
                if ended {
                    return got;
                }
                ended = got.status == 401;
            }
        }
    })
    .await;
    assert_eq!(heard.iter().filter(|it| it.status == 204).count(), 1);
    let ledger = site.ledger();
    let revoked = ledger.iter().position(|it| &*it.kind == "key.revoked").unwrap();
    let decided = ledger.iter().rposition(|it| it.kind.starts_with("action."));
    assert!(decided.is_none_or(|it| it < revoked), "decided at {decided:?}, revoked at {revoked}");
    site.audit();
    site.stop().await;
}

/// A second factor is set up once of all who try with the same code, the recovery codes are told once, and no session that was
/// begun beside it without one is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_factor_ends_what_was_signed_in_without_it() {
    let site = Site::with(|plan| plan.config.limits.sign_in_per_minute = 100_000).await;
    let owner = site.member(Role::Owner);
    let mut client = site.client().await;
    let password = json!({ "password": "correct horse battery" });
    assert!(owner.ask(&mut client, "POST", "/api/me/password", Some(&password)).await.status < 300);
    let begun = owner.ask(&mut client, "POST", "/api/me/totp", Some(&json!({}))).await.ok();
    let code = json!({ "code": code_now(&unbase32(text(&begun["secret"])), site.now()) });
    let shown = with(password.clone(), "email", json!(owner.email));
    let heard = at_once(&[site.address], |mut client, place| {
        let (owner, code, shown) = (owner.clone(), code.clone(), shown.clone());
        async move {
            if place % 4 == 0 {
                owner.ask(&mut client, "POST", "/api/me/totp/confirm", Some(&code)).await
            } else {
                ask(&mut client, None, "POST", "/api/sign-in", Some(&shown)).await
            }
        }
    })
    .await;
    assert_eq!(count(&heard, |it| it["recoveryCodes"].as_array().is_some_and(|it| it.len() == 10)), 1);
    let sessions = heard.iter().filter_map(|it| svc_tests::oauth::cookie(it, "__Host-sid"));
    for session in sessions {
        let sid = session.trim_start_matches("__Host-sid=");
        assert_eq!(ask(&mut client, Some(sid), "GET", "/api/me", None).await.status, 401, "it has shown no factor");
    }
    let steps: BTreeSet<String> =
        heard.iter().filter(|it| it.status == 200).map(|it| it.json()["next"].to_string()).collect();
    assert!(steps.iter().all(|it| ["\"done\"", "\"totp\"", "null"].contains(&&**it)), "{steps:?}");
    let next = ask(&mut client, None, "POST", "/api/sign-in", Some(&shown)).await.ok();
    assert_eq!(next["next"], "totp");
    site.audit();
    site.stop().await;
}

/// Calls beside a raise of their budget: what is spent passes neither the ceiling of before nor, once it is raised, the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_is_not_passed_while_it_is_raised() {
    let mut desk = Desk::new().await;
    desk.enforce().await;
    let budget = desk.budget(1_000, json!([{ "at": 100, "step": "stop" }])).await;
    let raise = format!("/api/w/{}/budgets/{budget}/raise", desk.site.workspace());
    let heard = at_once(&[desk.site.address], |mut client, place| {
        let (owner, raise, key) = (desk.owner.clone(), raise.clone(), desk.key.clone());
        async move {
            if place == CLIENTS / 2 {
                return owner.ask(&mut client, "POST", &raise, Some(&json!({ "amountMicros": 3_000 }))).await;
            }
            let headers = [("authorization", &*bearer(&key)), ("x-svc-objective", "cost")];
            client.ask("POST", CHAT, &headers, chat("auto").to_string().as_bytes()).await
        }
    })
    .await;
    let stopped = heard.iter().filter(|it| it.status == 429).count();
    assert_eq!(heard.iter().filter(|it| it.status == 200).count() + stopped, CLIENTS);
    let at = desk.budget_at(&budget).await;
    assert_eq!(at["reservedMicros"], 0, "{at}");
    assert!(at["spentMicros"].as_u64().unwrap() <= 3_000, "{at}");
}

/// Whoever has a key follow another beside others who do: each has its turn, and the last is the only one that is good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotations_at_once_follow_one_another() {
    let site = Site::start().await;
    let running: Vec<_> = (0..8)
        .map(|_| {
            let gate = site.gate.clone();
            std::thread::spawn(move || gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap().id.generation)
        })
        .collect();
    let made: BTreeSet<u32> = running.into_iter().map(|it| it.join().unwrap()).collect();
    assert_eq!(made, (1..=8).collect());
    let keys = site.gate.signing_keys().unwrap();
    let sound = keys.iter().filter(|it| it.id.purpose == Purpose::Receipt && it.compromised_at.is_none());
    assert_eq!(sound.map(|it| it.id.generation).collect::<Vec<_>>(), [8]);
    site.stop().await;
}
