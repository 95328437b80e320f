//! Approvals over a real socket: persons of every role see what they may and decide what they may; machines read and decide
//! nothing.

use serde_json::{Value, json};
use svc_core::state::gate::{Agent as AgentRow, Approval, ApprovalState};
use svc_core::state::people::{KeyScope, Principal, Role, Settings, TokenScope};
use svc_core::store::{MemoryStore, Row, Store as _};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::id::ApprovalId;
use svc_core::value::text::Label;
use svc_tests::client::{Client, Got, bearer};
use svc_tests::people::{Person, code_now};
use svc_tests::requests::{CRM, OFFICE, charge, payment, payment_to, text, update, with};
use svc_tests::site::{Agent, Fault, Site};

/// A site with an agent that has asked for what a person decides.
struct Asked {
    site: Site,
    client: Client,
    agent: Agent,
    decision: Value,
}

impl Asked {
    async fn with(settings: Option<Settings>) -> Self {
        let site = Site::start().await;
        if let Some(settings) = settings {
            site.change_settings(settings);
        }
        let agent = site.agent(&[OFFICE, CRM]);
        let mut client = site.client().await;
        let decision = client.authorize(&agent.key, &payment(30_000)).await.ok();
        assert_eq!(text(&decision["status"]), "pending");
        Self { site, client, agent, decision }
    }

    fn path(&self, end: &str) -> String {
        format!("/api/w/{}/approvals/{}{end}", self.site.workspace(), text(&self.decision["approval"]["id"]))
    }

    async fn say(&mut self, person: &Person, word: &str, body: &Value) -> Got {
        let path = self.path(word);
        person.ask(&mut self.client, "POST", &path, Some(body)).await
    }

    async fn list(&mut self, person: &Person, query: &str) -> Got {
        let path = format!("/api/w/{}/approvals{query}", self.site.workspace());
        person.ask(&mut self.client, "GET", &path, None).await
    }

    /// Makes `person` the agent's sponsor.
    fn sponsor(&self, person: &Person) {
        let mut store: MemoryStore = self.site.memory();
        let row = store.load(&[AgentRow::key(self.agent.id)]).unwrap().remove(0).record.unwrap();
        let row = AgentRow::peel(&row).unwrap();
        self.site.plant(AgentRow { sponsor: Some(person.principal), ..AgentRow::clone(row) });
    }

    /// One row of the site's store.
    fn row<R: Row + Clone>(&self, id: R::Id) -> R {
        let found = self.site.memory().load(&[R::key(id)]).unwrap().remove(0).record;
        R::clone(found.as_ref().and_then(R::peel).unwrap())
    }

    async fn end(self) {
        self.site.audit();
        self.site.stop().await;
    }
}

/// That a decision shows an approval as it reads itself.
fn same(decision: &Value, approval: &Value) {
    let members = "id url state expiresAt needed approvals clientMayAsk decidedBy decidedAt note";
    for member in members.split(' ') {
        assert_eq!(decision["approval"].get(member), approval.get(member), "{member}: {decision}");
    }
}

fn ids(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|it| text(&it["id"])).collect()
}

/// The owner sees what waits, approves what they saw, and the agent's next read has a receipt that is good once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_approves_and_the_agent_gets_its_receipt() {
    let mut asked = Asked::with(None).await;
    let owner = asked.site.member(Role::Owner);
    let seen = asked.list(&owner, "?state=waiting&kind=action").await.ok();
    let item = &seen["data"][0];
    assert_eq!((text(&item["state"]), &item["mayDecide"], item.get("mayNot")), ("waiting", &json!(true), None));
    assert_eq!(item["subject"], json!({ "actionId": asked.decision["id"] }));
    assert_eq!(item["agentId"], asked.decision["agentId"]);
    assert_eq!(item["actionDigest"], asked.decision["actionDigest"]);
    assert_eq!(item["url"], asked.decision["approval"]["url"]);
    assert_eq!(text(&item["reasons"][0]["code"]), "above_ask_threshold");
    let other = json!({ "actionDigest": format!("sha256:{}", "0".repeat(64)) });
    let got = asked.say(&owner, "/approve", &other).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "selection_changed"));
    let error = &got.json()["error"];
    assert_eq!((error.get("oldCount"), &error["newCount"]), (Some(&Value::Null), &json!(1)), "{error}");
    let body = json!({ "note": "as agreed", "actionDigest": item["actionDigest"] });
    let approved = asked.say(&owner, "/approve", &body).await.ok();
    assert_eq!((text(&approved["state"]), text(&approved["mayNot"])), ("approved", "decided"));
    assert_eq!(approved["decidedBy"], json!(owner.principal));
    assert_eq!(approved["approvals"][0]["by"], json!(owner.principal));
    assert_eq!((text(&approved["note"]), text(&approved["approvals"][0]["via"])), ("as agreed", "console"));
    let read = asked.client.read_action(&asked.agent.key, text(&asked.decision["id"])).await.ok();
    assert_eq!((text(&read["decision"]), text(&read["status"])), ("allow", "allowed"));
    assert_eq!(read["decidedBy"], json!(owner.principal));
    same(&read, &approved);
    let verdict = asked.client.verify(&charge(&read["receipt"], 30_000)).await.ok();
    assert_eq!(verdict["valid"], json!(true));
    for word in ["/approve", "/deny"] {
        let got = asked.say(&owner, word, &json!({})).await;
        assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
        assert_eq!(got.json()["error"]["reason"], json!("approved"));
    }
    assert_eq!(asked.list(&owner, "?state=waiting").await.ok()["data"], json!([]));
    assert_eq!(asked.list(&owner, "?state=approved").await.ok()["data"].as_array().unwrap().len(), 1);
    asked.end().await;
}

/// A word that names who gives it counts for nobody else: whoever else the session belongs to by then has decided nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_counts_for_whom_it_names() {
    let mut asked = Asked::with(None).await;
    let (owner, admin) = (asked.site.member(Role::Owner), asked.site.member(Role::Admin));
    let own = json!({ "principalId": admin.principal });
    for word in ["/approve", "/deny"] {
        let got = asked.say(&owner, word, &own).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["principalId".into()]), "{word}");
        let both = json!({ "principalId": admin.principal, "actionDigest": "x" });
        let fields = vec!["actionDigest".into(), "principalId".into()];
        assert_eq!(asked.say(&owner, word, &both).await.refusal(), (400, "invalid_request".into(), fields), "{word}");
        let got = asked.say(&owner, word, &json!({ "principalId": "somebody" })).await;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["principalId".into()]), "{word}");
    }
    let approved = asked.say(&admin, "/approve", &own).await.ok();
    assert_eq!((text(&approved["state"]), &approved["decidedBy"]), ("approved", &json!(admin.principal)));
    asked.end().await;
}

/// A no with or without a body is a no; the agent reads it with its reason, and the note is the approval's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_no_is_read_as_denied() {
    let mut asked = Asked::with(None).await;
    let admin = asked.site.member(Role::Admin);
    let got = asked.say(&admin, "/deny", &json!({ "note": "  ", "actionDigest": "x" })).await;
    assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["actionDigest".into(), "note".into()]));
    let path = asked.path("/deny");
    let denied = admin.ask(&mut asked.client, "POST", &path, None).await.ok();
    assert_eq!((text(&denied["state"]), denied.get("note")), ("denied", None));
    let read = asked.client.read_action(&asked.agent.key, text(&asked.decision["id"])).await.ok();
    assert_eq!((text(&read["decision"]), text(&read["status"])), ("deny", "denied"));
    assert!(read["signals"].as_array().unwrap().contains(&json!("person_denied")));
    same(&read, &denied);
    asked.end().await;
}

/// What a decision shows of its approval is what the approval itself says, also where no person decided.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_shows_its_approval_as_it_is() {
    let mut asked = Asked::with(Some(Settings { approval_hours: 1, ..Settings::default() })).await;
    let owner = asked.site.member(Role::Owner);
    for by in ["expiry", "freeze"] {
        if by == "expiry" {
            asked.site.advance(Span::hours(1));
        } else {
            asked.decision = asked.client.authorize(&asked.agent.key, &payment(30_001)).await.ok();
            let path = format!("/api/w/{}/agents/{}/freeze", asked.site.workspace(), asked.agent.id);
            owner.ask(&mut asked.client, "POST", &path, Some(&json!({ "reason": "odd" }))).await.ok();
        }
        let path = asked.path("");
        let approval = owner.ask(&mut asked.client, "GET", &path, None).await.ok();
        let read = asked.client.read_action(&asked.agent.key, text(&asked.decision["id"])).await.ok();
        assert_eq!(text(&approval["decidedBy"]), by);
        same(&read, &approval);
    }
    asked.end().await;
}

/// Whoever is told that time has ended a wait is told what is written: the row says so by then, whichever way it was read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_time_has_ended_is_written_once_it_is_told() {
    let mut asked = Asked::with(Some(Settings { approval_hours: 1, ..Settings::default() })).await;
    let owner = asked.site.member(Role::Owner);
    let console = format!("/api/w/{}/", asked.site.workspace());
    let by_agent = ["/v1/actions/{act}"].map(str::to_owned);
    let by_person = ["actions/{act}", "actions", "actions?status=expired", "approvals/{apv}", "approvals"];
    let by_person = by_person.map(|it| format!("{console}{it}"));
    for (n, way) in by_agent.iter().chain(&by_person).enumerate() {
        let amount = 30_001 + i64::try_from(n).unwrap();
        asked.decision = asked.client.authorize(&asked.agent.key, &payment(amount)).await.ok();
        let (act, apv) = (text(&asked.decision["id"]), text(&asked.decision["approval"]["id"]));
        asked.site.shift(Span::hours(1));
        let path = way.replace("{act}", act).replace("{apv}", apv);
        let told = if way.starts_with("/v1") {
            asked.client.get(&path, &asked.agent.key).await.ok()
        } else {
            owner.ask(&mut asked.client, "GET", &path, None).await.ok()
        };
        let item = if told["data"].is_array() { &told["data"][0] } else { &told };
        let stands = item.get("status").unwrap_or_else(|| &item["state"]);
        assert_eq!((text(stands), [act, apv].contains(&text(&item["id"]))), ("expired", true), "{way}: {told}");
        let row = Approval::key(ApprovalId::parse(apv).unwrap());
        let row = asked.site.memory().load(&[row]).unwrap().remove(0).record.unwrap();
        let state = &Approval::peel(&row).unwrap().state;
        assert!(matches!(state, ApprovalState::Expired { .. }), "{way}: {state:?}");
    }
    // A store that takes nothing closes no list.
    asked.client.authorize(&asked.agent.key, &payment(30_100)).await.ok();
    asked.site.shift(Span::hours(1));
    asked.site.fault.set(Fault::Unavailable);
    for list in ["actions", "approvals"] {
        let told = owner.ask(&mut asked.client, "GET", &format!("{console}{list}"), None).await.ok();
        let stands = told["data"][0].get("status").unwrap_or_else(|| &told["data"][0]["state"]);
        assert_eq!(stands, "expired", "{list}");
    }
    asked.site.fault.set(Fault::None);
    asked.site.advance(Span::seconds(1));
    asked.end().await;
}

/// What waits is told as reserved as long as it does: what a stop or time has ended is not, though its own row does not say so yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_no_more_is_not_told_as_reserved() {
    let mut asked = Asked::with(Some(Settings { approval_hours: 1, ..Settings::default() })).await;
    let owner = asked.site.member(Role::Owner);
    let item = format!("/api/w/{}/agents/{}", asked.site.workspace(), asked.agent.id);
    let why = json!({ "reason": "odd" });
    for by in ["freeze", "expiry"] {
        asked.decision = asked.client.authorize(&asked.agent.key, &payment(30_000)).await.ok();
        let told = owner.ask(&mut asked.client, "GET", &item, None).await.ok();
        assert_eq!(told["spend"][0]["reserved"], if by == "freeze" { 60_000 } else { 30_000 }, "{by}: {told}");
        if by == "freeze" {
            owner.ask(&mut asked.client, "POST", &format!("{item}/freeze"), Some(&why)).await.ok();
        } else {
            asked.site.shift(Span::hours(1));
        }
        let told = owner.ask(&mut asked.client, "GET", &item, None).await.ok();
        assert_eq!(told["spend"][0]["reserved"], 0, "{by}: {told}");
        owner.ask(&mut asked.client, "POST", &format!("{item}/restart"), Some(&why)).await.ok();
    }
    asked.site.advance(Span::seconds(1));
    asked.end().await;
}

/// Each role sees and decides what the table of roles gives it: a member what their own agents ask, an auditor reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_decides_what_it_may() {
    let mut asked = Asked::with(None).await;
    let (member, auditor) = (asked.site.member(Role::Member), asked.site.member(Role::Auditor));
    let analyst = asked.site.member(Role::Analyst);
    assert_eq!(asked.list(&member, "").await.ok()["data"], json!([]));
    assert_eq!(asked.say(&member, "/approve", &json!({})).await.kind(), "not_found");
    let got = asked.list(&auditor, "").await.ok();
    assert_eq!((&got["data"][0]["mayDecide"], text(&got["data"][0]["mayNot"])), (&json!(false), "role"));
    for (person, word) in [(&auditor, "/approve"), (&auditor, "/deny"), (&analyst, "/approve")] {
        let got = asked.say(person, word, &json!({})).await;
        assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"));
    }
    assert_eq!(asked.list(&analyst, "").await.kind(), "forbidden");
    asked.sponsor(&member);
    assert_eq!(asked.list(&member, "").await.ok()["data"].as_array().unwrap().len(), 1);
    let approved = asked.say(&member, "/approve", &json!({})).await.ok();
    assert_eq!(text(&approved["state"]), "approved");
    asked.end().await;
}

/// Whoever reads an approval reads what its people are called, though they read no members; machines are told their ids alone, and of
/// who was forgotten nothing is left to tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_of_an_approval_are_told_by_name() {
    let mut asked = Asked::with(None).await;
    let (member, admin, owner) =
        (asked.site.member(Role::Member), asked.site.member(Role::Admin), asked.site.member(Role::Owner));
    asked.sponsor(&member);
    let own = asked.list(&member, "").await.ok();
    assert_eq!(own["data"][0].get("people"), None, "nobody has said anything");
    let members = format!("/api/w/{}/members/{}", asked.site.workspace(), admin.principal);
    assert_eq!(member.ask(&mut asked.client, "GET", &members, None).await.status, 403);
    let called = owner.ask(&mut asked.client, "GET", &members, None).await.ok()["email"].clone();
    let people = json!([{ "id": admin.principal, "name": called }]);
    assert_eq!(asked.say(&admin, "/deny", &json!({})).await.ok()["people"], people);
    let path = asked.path("");
    assert_eq!(member.ask(&mut asked.client, "GET", &path, None).await.ok()["people"], people);
    assert_eq!(asked.list(&member, "").await.ok()["data"][0]["people"], people);
    let row: Principal = asked.row(admin.principal);
    asked.site.plant(Principal { name: Some(Label::parse("Ann").unwrap()), ..row.clone() });
    assert_eq!(asked.list(&member, "").await.ok()["data"][0]["people"][0]["name"], "Ann");
    asked.site.plant(row.forget());
    assert_eq!(asked.list(&member, "").await.ok()["data"][0].get("people"), None);
    asked.end().await;
}

/// Above the line two persons decide: the first waits on, the same one is told who else is needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_persons_decide_above_the_line() {
    let mut settings = Settings::default();
    settings.second_person_above.insert("EUR".parse().unwrap(), 10_000);
    let mut asked = Asked::with(Some(settings)).await;
    let (owner, admin) = (asked.site.member(Role::Owner), asked.site.member(Role::Admin));
    let first = asked.say(&owner, "/approve", &json!({})).await.ok();
    assert_eq!((text(&first["state"]), &first["needed"]), ("waiting", &json!(2)));
    assert_eq!((&first["mayDecide"], text(&first["mayNot"])), (&json!(false), "second_person"));
    let again = asked.say(&owner, "/approve", &json!({})).await;
    assert_eq!((again.status, again.kind().as_str()), (409, "second_person_required"));
    let link = json!({ "id": asked.decision["approval"]["id"], "url": asked.decision["approval"]["url"] });
    assert_eq!(again.json()["error"]["approval"], link);
    let second = asked.say(&admin, "/approve", &json!({})).await.ok();
    assert_eq!((text(&second["state"]), second["approvals"].as_array().unwrap().len()), ("approved", 2));
    asked.end().await;
}

/// Above a line of the settings a yes takes the second factor once more, whoever says it; a no takes none. A code is good
/// once, and what is wrong leaves the approval waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn above_a_line_a_yes_takes_the_second_factor_again() {
    let lines = |line: i64, currency: &str| {
        let mut settings = Settings::default();
        settings.step_up_above.insert(currency.parse().unwrap(), line);
        settings
    };
    let mut asked = Asked::with(Some(lines(29_999, "EUR"))).await;
    let (owner, bare) = (asked.site.member(Role::Owner), asked.site.member(Role::Admin));
    let none = asked.say(&bare, "/approve", &json!({})).await;
    assert_eq!((none.status, none.kind().as_str()), (403, "forbidden"));
    assert_eq!(text(&none.json()["error"]["errors"][0]["field"]), "code");
    assert!(text(&none.json()["error"]["message"]).contains("has no second factor"), "{}", none.text());
    let (secret, recovery) = owner.second_factor(&mut asked.client, asked.site.now()).await;
    let unasked = asked.say(&owner, "/approve", &json!({ "note": "yes" })).await;
    assert_eq!((unasked.status, text(&unasked.json()["error"]["errors"][0]["field"])), (403, "code"));
    let now = code_now(&secret, asked.site.now());
    for (body, field) in [
        (json!({ "code": "000000" }), "code"),
        (json!({ "code": now }), "code"), // It was used to set the factor up.
        (json!({ "recoveryCode": "wrong" }), "code"),
        (json!({ "code": now, "recoveryCode": recovery[0] }), "recoveryCode"),
        (json!({ "code": 123_456 }), "code"),
    ] {
        let got = asked.say(&owner, "/approve", &body).await;
        assert_eq!((got.status, got.kind().as_str()), (400, "invalid_request"), "{body}");
        assert_eq!(text(&got.json()["error"]["errors"][0]["field"]), field, "{body}");
    }
    asked.site.shift(Span::seconds(30));
    let next = json!({ "code": code_now(&secret, asked.site.now()) });
    let path = asked.path("/approve");
    let approved = asked.say(&owner, "/approve", &next).await.ok();
    assert_eq!(text(&approved["state"]), "approved");

    // The same code is no proof for another one; a recovery code is one, once.
    let second = asked.client.authorize(&asked.agent.key, &payment(30_001)).await.ok();
    let first = std::mem::replace(&mut asked.decision, second);
    assert_ne!(path, asked.path("/approve"), "{first}");
    assert_eq!(asked.say(&owner, "/approve", &next).await.status, 400);
    let spare = json!({ "recoveryCode": recovery[0] });
    assert_eq!(text(&asked.say(&owner, "/approve", &spare).await.ok()["state"]), "approved");
    asked.decision = asked.client.authorize(&asked.agent.key, &payment(30_002)).await.ok();
    assert_eq!(asked.say(&owner, "/approve", &spare).await.status, 400);
    assert_eq!(text(&asked.say(&owner, "/deny", &json!({})).await.ok()["state"]), "denied");

    // Up to the line nobody is asked; where there are lines, a currency without one is above.
    for (line, currency, status) in [(30_000, "EUR", 200), (1_000_000, "USD", 403)] {
        asked.site.change_settings(lines(line, currency));
        asked.decision = asked.client.authorize(&asked.agent.key, &payment(30_000)).await.ok();
        assert_eq!(asked.say(&bare, "/approve", &json!({})).await.status, status, "{currency}");
    }
    asked.end().await;
}

/// A list is parted by cursors, newest first, with filters that keep nothing back; a machine reads what waits and decides
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_have_parts_and_filters() {
    let mut asked = Asked::with(None).await;
    let owner = asked.site.member(Role::Owner);
    let mut waiting = vec![text(&asked.decision["approval"]["id"]).to_owned()];
    for amount in [31_000, 32_000, 33_000, 34_000] {
        asked.site.shift(Span::seconds(1));
        let decision = asked.client.authorize(&asked.agent.key, &payment(amount)).await.ok();
        waiting.insert(0, text(&decision["approval"]["id"]).to_owned());
    }
    asked.say(&owner, "/deny", &json!({})).await.ok();
    waiting.pop();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = asked.list(&owner, &format!("?state=waiting&limit=3{cursor}")).await.ok();
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, waiting);
    let agent = asked.agent.id.to_string();
    let denied = asked.list(&owner, &format!("?state=denied&agentId={agent}&limit=1")).await.ok();
    assert_eq!(ids(&denied).len(), 1);
    assert_eq!(asked.list(&owner, "?kind=freeze").await.ok()["data"], json!([]));
    for (query, field) in [
        ("?state=x", "state"),
        ("?kind=budgets", "kind"),
        ("?agentId=act_1", "agentId"),
        ("?cursor=AAAA", "cursor"),
        ("?limit=0", "limit"),
    ] {
        assert_eq!(asked.list(&owner, query).await.refusal(), (400, "invalid_request".into(), vec![field.into()]));
    }
    let token = asked.site.token(&[TokenScope::ApprovalsRead]);
    let headers = [("authorization", &*bearer(&token))];
    let got = asked.client.ask("GET", "/v1/admin/approvals?limit=2", &headers, b"").await.ok();
    assert_eq!(ids(&got), waiting[..2]);
    let all = asked.client.ask("GET", "/v1/admin/approvals", &headers, b"").await.ok();
    assert_eq!(ids(&all), waiting, "what is decided waits no more");
    assert_eq!((&got["data"][0]["mayDecide"], text(&got["data"][0]["mayNot"])), (&json!(false), "role"));
    asked.end().await;
}

/// Another workspace's approvals are not there, nor is what was never asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_there_is_not_found() {
    let mut asked = Asked::with(None).await;
    let owner = asked.site.member(Role::Owner);
    let workspace = asked.site.workspace();
    for id in ["apv_00000000000000000000000000", "apv_1", "act_00000000000000000000000000"] {
        let path = format!("/api/w/{workspace}/approvals/{id}");
        assert_eq!(owner.ask(&mut asked.client, "GET", &path, None).await.status, 404);
        let path = format!("{path}/approve");
        assert_eq!(owner.ask(&mut asked.client, "POST", &path, Some(&json!({}))).await.status, 404);
    }
    let path = asked.path("");
    assert_eq!(text(&owner.ask(&mut asked.client, "GET", &path, None).await.ok()["kind"]), "action");
    asked.end().await;
}

/// A run of what was not allowed is noted once, and ends the wait where the person at the keyboard was the one to ask; a
/// run of what is allowed is nothing, unless it was before the gate was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unapproved_run_is_noted() {
    let mut asked = Asked::with(None).await;
    let key = asked.agent.key.clone();
    let ran = |id: &str| format!("/v1/actions/{id}/ran");
    let id = text(&asked.decision["id"]).to_owned();
    assert_eq!(asked.decision["approval"]["clientMayAsk"], json!(true));
    let noted = asked.client.post(&ran(&id), &key, &json!({})).await.ok();
    assert_eq!((text(&noted["status"]), text(&noted["decision"])), ("expired", "deny"));
    assert!(noted["signals"].as_array().unwrap().contains(&json!("unapproved_run")));
    let again = asked.client.post(&ran(&id), &key, &json!({})).await.ok();
    assert_eq!(again, noted);
    let kinds: Vec<String> = asked.site.ledger().iter().map(|it| it.kind.to_string()).collect();
    assert_eq!(kinds.iter().filter(|it| *it == "action.unapproved_run").count(), 1);
    let allowed = asked.client.authorize(&key, &update()).await.ok();
    let got = asked.client.post(&ran(text(&allowed["id"])), &key, &json!({})).await.ok();
    assert_eq!(got, allowed);
    let late = asked.client.post(&ran(text(&allowed["id"])), &key, &json!({ "unasked": true })).await.ok();
    assert_eq!((text(&late["status"]), text(&late["decision"])), ("allowed", "allow"));
    assert!(late["signals"].as_array().unwrap().contains(&json!("unapproved_run")), "{late}");
    let wrong = asked.client.post(&ran(text(&allowed["id"])), &key, &json!({ "unasked": 1 })).await;
    assert_eq!((wrong.status, wrong.fields()), (400, vec!["unasked".to_owned()]));
    let bad = with(payment(100), "payment.merchant.domain", json!("bad.example.net"));
    let denied = asked.client.authorize(&key, &bad).await.ok();
    let noted = asked.client.post(&ran(text(&denied["id"])), &key, &json!({})).await.ok();
    assert_eq!(text(&noted["status"]), "denied");
    assert!(noted["signals"].as_array().unwrap().contains(&json!("unapproved_run")));
    let other = asked.site.agent(&[OFFICE]);
    assert_eq!(asked.client.post(&ran(&id), &other.key, &json!({})).await.status, 404);
    let inference = asked.site.key(KeyScope::Inference);
    assert_eq!(asked.client.post(&ran(&id), &inference, &json!({})).await.kind(), "agent_key_required");
    asked.end().await;
}

/// What persons approved three times becomes a suggestion that names one merchant and no more than they approved; what they
/// kept refusing one that forbids it. Nothing is applied by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_are_suggested_and_never_applied() {
    let mut asked = Asked::with(None).await;
    let owner = asked.site.member(Role::Owner);
    let token = asked.site.token(&[TokenScope::ApprovalsRead]);
    let mut decide = async |amount: i64, domain: &str, word: &str| {
        asked.site.shift(Span::minutes(11));
        asked.decision = asked.client.authorize(&asked.agent.key, &payment_to(amount, domain)).await.ok();
        asked.say(&owner, word, &json!({})).await.ok();
    };
    for amount in [21_000, 22_000, 23_000] {
        decide(amount, "books.example.com", "/approve").await;
        decide(amount, "toys.example.org", "/deny").await;
    }
    let headers = [("authorization", &*bearer(&token))];
    let got = asked.client.ask("GET", "/v1/admin/suggested-rules", &headers, b"").await.ok();
    let rules = got["data"].as_array().unwrap();
    let of = |kind: &str| rules.iter().find(|it| it["kind"] == json!(kind)).unwrap();
    assert_eq!((rules.len(), &got["nextCursor"]), (2, &Value::Null));
    let allow = of("allow");
    assert_eq!(allow["mandate"]["merchants"], json!({ "allow": ["books.example.com"] }));
    assert_eq!(allow["mandate"]["limits"], json!({ "currency": "EUR", "perAction": 23_000, "onLimit": "ask" }));
    assert_eq!(allow["wouldHaveSaved"].as_array().unwrap().len(), 3);
    assert_eq!((&allow["wouldHaveAllowed"], &allow["confirmBroaden"]), (&json!(3), &json!(false)));
    let tighten = of("tighten");
    assert_eq!(tighten["mandate"]["merchants"]["deny"], json!(["bad.example.net", "toys.example.org"]));
    assert!(text(&tighten["replaces"]).starts_with("mnd_"));
    let again = asked.client.ask("GET", "/v1/admin/suggested-rules", &headers, b"").await.ok();
    assert_eq!(again["data"][0]["id"], got["data"][0]["id"], "the same rule has the same id");
    let first = asked.client.ask("GET", "/v1/admin/suggested-rules?limit=1", &headers, b"").await.ok();
    assert_eq!(first["data"], json!([got["data"][0]]), "no more than were asked for");
    let path = format!("/v1/admin/suggested-rules?limit=1&cursor={}", text(&first["nextCursor"]));
    let second = asked.client.ask("GET", &path, &headers, b"").await.ok();
    assert_eq!((&second["data"], &second["nextCursor"]), (&json!([got["data"][1]]), &Value::Null));
    asked.site.shift(Span::minutes(11));
    let next = asked.client.authorize(&asked.agent.key, &payment_to(21_500, "books.example.com")).await.ok();
    assert_eq!(text(&next["status"]), "pending", "nothing is applied by itself");
    for _ in 0..60 {
        asked.site.agent(&[]);
    }
    let behind = asked.client.ask("GET", "/v1/admin/suggested-rules", &headers, b"").await.ok();
    assert_eq!(
        (&behind["data"][1]["id"], &behind["nextCursor"]),
        (&got["data"][1]["id"], &Value::Null),
        "of an older agent"
    );
    asked.end().await;
}

/// Of an agent that asks often all of the thirty days is looked at: an old no of a person counts against what was approved since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_no_counts_against_a_suggestion() {
    let mut settings = Settings::default();
    settings.agent_velocity.tool_count = 10_000;
    let mut asked = Asked::with(Some(settings)).await;
    let owner = asked.site.member(Role::Owner);
    let token = asked.site.token(&[TokenScope::ApprovalsRead]);
    let call = |name: &str| {
        json!({ "type": "mcp.call", "summary": "Call", "tool": { "server": "srv", "name": name },
            "provenance": [{ "source": "user" }] })
    };
    for number in 0..206 {
        asked.site.shift(Span::seconds(1));
        let word = if number == 0 { "/deny" } else { "/approve" };
        let name = if number < 203 { "wipe" } else { "read" };
        asked.decision = asked.client.authorize(&asked.agent.key, &call(name)).await.ok();
        asked.say(&owner, word, &json!({})).await.ok();
    }
    let headers = [("authorization", &*bearer(&token))];
    let got = asked.client.ask("GET", "/v1/admin/suggested-rules", &headers, b"").await.ok();
    assert_eq!(got["data"].as_array().unwrap().len(), 1, "{got}");
    assert_eq!(got["data"][0]["because"], "persons approved `srv/read` 3 times in 30 days");
    asked.end().await;
}

/// The link of an approval leads to a page, at the deployment's own host alone, that runs its own script and is the same for
/// everybody and every approval: it tells a stranger nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approvals_link_leads_to_a_page() {
    let mut asked = Asked::with(None).await;
    let link = text(&asked.decision["approval"]["url"]).to_owned();
    let path = link.strip_prefix(BASE_URL).unwrap();
    let host = [("host", BASE_URL.trim_start_matches("https://"))];
    let page = asked.client.ask("GET", path, &host, b"").await;
    page.is_closed_page();
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("connect-src 'self';") && policy.contains("form-action 'none'"), "{policy}");
    assert_eq!((page.header("x-frame-options"), page.header("referrer-policy")), (Some("DENY"), Some("no-referrer")));
    let own = asked.site.member(Role::Owner).ask(&mut asked.client, "GET", path, None).await;
    let strange = asked.client.ask("GET", "/w/nobody/approvals/%3Cb%3E", &host, b"").await;
    assert!(own.text() == page.text() && strange.text() == page.text(), "it is one page");
    assert_eq!(asked.client.ask("POST", path, &host, b"").await.status, 405, "a link decides nothing");
    let elsewhere = asked.client.ask("GET", path, &[("host", "elsewhere.example")], b"").await;
    assert_eq!((elsewhere.status, elsewhere.kind()), (403, "forbidden".to_owned()));
    asked.end().await;
}
