//! What a machine can never do, whatever it shows and wherever: every route with every kind of credential and every scope,
//! each with bodies that ask for what only a person gives.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::rules::gate::fleet::Fleet;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::gate::{Action, Drill, Standing};
use svc_core::state::gate::{Agent as AgentRow, Approval, ApprovalState, DecidedBy, Mandate, State, Tier};
use svc_core::state::people::{Application, ApplicationState, Hold, KeyScope, Role, Selector, TokenScope};
use svc_core::store::Row;
use svc_core::testing::world::BASE_URL;
use svc_core::value::id::AgentId;
use svc_core::value::text::Note;
use svc_http::routes::{self, Content, Route};
use svc_store::FleetRequest;
use svc_tests::oauth::{connect, public};
use svc_tests::requests::{OFFICE, payment, text};
use svc_tests::site::Site;

/// What stands before the machines come, and what they may want of it.
struct Stage {
    site: Site,
    ids: BTreeMap<&'static str, String>,
    before: BTreeMap<AgentId, AgentRow>,
    bodies: Vec<Value>,
    credentials: Vec<String>,
}

fn each<R: Row + Clone>(site: &Site) -> Vec<R> {
    site.memory().dump().iter().filter_map(|(_, _, record)| R::peel(record)).map(|it| R::clone(it)).collect()
}

/// An application that waits.
async fn application(site: &Site) -> String {
    let (mut client, member) = (site.client().await, site.member(Role::Member));
    let body = json!({ "kind": "role", "change": { "role": "admin" }, "reason": "more" });
    let path = format!("/api/w/{}/applications", site.workspace());
    text(&member.ask(&mut client, "POST", &path, Some(&body)).await.made()["id"]).to_owned()
}

/// A hold over every agent.
fn hold(site: &Site, agents: i64) -> String {
    let (workspace, selector) = (site.workspace(), Selector::everyone());
    let reason = Note::parse("a leak").unwrap();
    let asked = FleetRequest { workspace, by: By::Program, selector, reason, confirm: Some(agents), seen: None };
    match site.gate.freeze_fleet(&asked).unwrap() {
        Fleet::Frozen(halted) => halted.hold.unwrap().to_string(),
        other => panic!("{other:?}"),
    }
}

/// What stands, with a hold over every agent or without.
async fn stage(is_held: bool) -> Stage {
    let site = Site::with(|plan| {
        let limits = &mut plan.config.limits;
        for limit in [
            &mut limits.gate_per_minute,
            &mut limits.verify_per_minute,
            &mut limits.gateway_per_minute,
            &mut limits.token_per_minute,
            &mut limits.sign_in_per_minute,
            &mut limits.oauth_per_minute,
        ] {
            *limit = 1_000_000;
        }
    })
    .await;
    let (agent, stopped) = (site.agent(&[OFFICE]), site.agent(&[OFFICE]));
    let owner = site.member(Role::Owner);
    let asked = site.client().await.authorize(&agent.key, &payment(30_000)).await.ok();
    let reason = Note::parse("a test stops it").unwrap();
    let workspace = site.workspace();
    site.gate.execute(FreezeAgent { workspace, agent: stopped.id, by: By::Program, reason }).unwrap();
    let mandate = each::<Mandate>(&site).iter().find(|it| it.agent == agent.id).unwrap().id.mandate;
    let mut ids = BTreeMap::from([
        ("wid", workspace.to_string()),
        ("id", text(&asked["id"]).to_owned()),
        ("act", text(&asked["id"]).to_owned()),
        ("apv", text(&asked["approval"]["id"]).to_owned()),
        ("aid", stopped.id.to_string()),
        ("mnd", mandate.to_string()),
        ("app", application(&site).await),
    ]);
    let mut client = site.client().await;
    let desk = public(&mut client).await;
    let token = connect(&mut client, &owner, &desk, &agent.id.to_string()).await.access;
    if is_held {
        ids.insert("hld", hold(&site, 2));
    }
    let mut credentials = vec![agent.key, stopped.key, site.key(KeyScope::Inference), site.key(KeyScope::Admin)];
    credentials.extend(TokenScope::ALL.iter().map(|it| site.token(&[*it])));
    credentials.push(site.token(&TokenScope::ALL));
    credentials.push(token);
    if is_held {
        // What each of the others may do besides is tried without the hold.
        let most = [0, 3, credentials.len() - 2, credentials.len() - 1];
        credentials = most.map(|it| credentials[it].clone()).to_vec();
    }
    let wide =
        json!({ "name": "Wide", "actions": ["payment"], "limits": { "currency": "EUR", "perAction": 9_000_000 } });
    let mut wishes = json!({
        "note": "a machine says so", "reason": "a machine says so", "restart": true, "status": "completed",
        "actionDigest": asked["actionDigest"], "tier": "trusted", "sponsor": owner.principal, "killOwner": owner.principal,
        "state": "active", "confirmBroaden": true, "limits": wide["limits"], "role": "owner", "approved": true,
    });
    let mut blueprint = json!({ "name": "Made", "principalEmail": "made@example.com", "mandates": [wide] });
    let bodies = vec![
        json!({}),
        wishes.clone(),
        blueprint.clone(),
        json!({ "name": "Made", "principalEmail": "made@example.com", "mandates": [{ "template": "saas-subscriptions" }] }),
        json!({ "name": "Made", "principalEmail": "made@example.com", "mandates": [], "tier": "trusted",
            "sponsor": owner.principal, "killOwner": owner.principal }),
        {
            let (wishes, blueprint) = (wishes.as_object_mut().unwrap(), blueprint.as_object_mut().unwrap());
            wishes.append(blueprint);
            Value::Object(wishes.clone())
        },
    ];
    let before = each::<AgentRow>(&site).into_iter().map(|it| (it.id, it)).collect();
    Stage { site, ids, before, bodies, credentials }
}

impl Stage {
    fn path(&self, route: &Route) -> String {
        let mut path = route.path.to_owned();
        for name in route.params() {
            let nothing = || format!("{name}_{}", "0".repeat(26));
            path = path.replace(&format!("{{{name}}}"), &self.ids.get(name).cloned().unwrap_or_else(nothing));
        }
        path
    }

    /// Shows `credential` in every place that one can be shown in.
    async fn show(&self, route: &Route, credential: &str) {
        let mut client = self.site.client().await;
        let (path, bearer) = (self.path(route), format!("Bearer {credential}"));
        let cookie = format!("__Host-sid={credential}; sid={credential}");
        let host = ("host", BASE_URL.trim_start_matches("https://"));
        let own = [host, ("x-svc-csrf", "1"), ("origin", BASE_URL), ("content-type", "application/json")];
        let shown = [("authorization", bearer.as_str()), ("x-api-key", credential), ("cookie", cookie.as_str())];
        let none = vec![Value::Null];
        for body in if route.is_write() { &self.bodies } else { &none } {
            let body = if route.is_write() { body.to_string() } else { String::new() };
            for one in shown {
                let headers: Vec<(&str, &str)> = own.iter().copied().chain([one]).collect();
                let got = client.ask(route.method.as_str(), &path, &headers, body.as_bytes()).await;
                // A drill that one body has begun is answered to the next with its own wait.
                let is_rate = got.status == 429 && got.kind() != "drill_cooldown";
                assert!(!is_rate && got.status != 500, "{} {path}: {}", route.method, got.text());
            }
        }
    }

    /// That the connection's token has been good all the while; under the hold it ended, as everything of a stopped agent does.
    async fn check_token(&self, is_held: bool) {
        let token = self.credentials.last().unwrap();
        assert!(token.starts_with("aat_"));
        let got = self.site.client().await.authorize(token, &payment(100)).await;
        assert_eq!(got.status, if is_held { 401 } else { 200 }, "{}", got.text());
    }

    /// That nothing is as only a person can make it.
    fn check(&self) {
        let applications = each::<Application>(&self.site);
        let waits = |it: &Application| matches!(it.state, ApplicationState::Waiting);
        assert!(applications.len() == 1 && applications.iter().all(waits), "{applications:?}");
        let holds = each::<Hold>(&self.site);
        assert_eq!(holds.len(), usize::from(self.ids.contains_key("hld")));
        assert!(holds.iter().all(|it| it.lifted.is_none() && it.asked.is_none()), "{holds:?}");
        for approval in each::<Approval>(&self.site) {
            let person = match &approval.state {
                ApprovalState::Approved { .. } => true,
                ApprovalState::Denied { by, .. } => by.is_some(),
                ApprovalState::Waiting | ApprovalState::Expired { .. } => false,
            };
            assert!(!person && approval.approvals.is_empty(), "a machine decided {approval:?}");
        }
        for action in each::<Action>(&self.site) {
            let by = match &action.state {
                State::Allowed(allowed) => Some(allowed.by),
                State::Denied { by, .. } => Some(*by),
                State::Pending { .. } | State::Expired { .. } => None,
            };
            assert!(!matches!(by, Some(DecidedBy::Person(_))), "a machine decided {action:?}");
        }
        let mandates = each::<Mandate>(&self.site);
        let canaries: Vec<AgentId> = each::<Drill>(&self.site).iter().map(|it| it.canary).collect();
        for agent in each::<AgentRow>(&self.site) {
            if canaries.contains(&agent.id) {
                // What a drill stops in the place of others asks for everything that it does.
                assert_eq!((agent.tier, agent.sponsor, agent.kill_owner), (Tier::Restricted, None, None));
                continue;
            }
            let Some(before) = self.before.get(&agent.id) else {
                assert_eq!((agent.tier, agent.sponsor, agent.kill_owner), (Tier::Standard, None, None));
                let mut own = mandates.iter().filter(|it| it.agent == agent.id);
                assert!(own.all(|it| it.template.is_some()), "a machine attached a mandate of its own");
                continue;
            };
            let bounds = |it: &AgentRow| (it.tier, it.sponsor, it.kill_owner, it.mandates.clone());
            assert_eq!(bounds(&agent), bounds(before), "a machine moved an agent's bounds");
            let is_stopped = |it: &AgentRow| !matches!(it.standing, Standing::Active);
            assert!(is_stopped(&agent) || !is_stopped(before), "a machine started an agent again");
            assert!(agent.epoch >= before.epoch);
        }
    }
}

/// No credential of a machine decides an approval, lifts a freeze, widens a mandate, attaches one outside templates, or sets
/// a tier, sponsor or kill owner: on no route, shown in no place, with no body.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_can_never() {
    for is_held in [false, true] {
        let stage = stage(is_held).await;
        let mut tried = 0;
        for credential in &stage.credentials {
            for route in routes::all().filter(|it| it.content != Content::Events && (!is_held || it.is_write())) {
                stage.show(route, credential).await;
                tried += 1;
            }
            stage.check();
        }
        assert!(tried >= 10 * stage.credentials.len(), "{tried}");
        stage.check_token(is_held).await;
        stage.site.stop().await;
    }
}
