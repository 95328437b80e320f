//! Two workspaces on one server, each with one of everything: what is the one's is not there for the other, walked from the table
//! of routes, and from what bodies and filters name.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::state::edge::{ConfigChange, IntegrationKind, Job};
use svc_core::state::gateway::{Call, Task};
use svc_core::state::people::{Hold, KeyScope, Role, TokenScope};
use svc_core::store::Record;
use svc_core::testing::sample;
use svc_http::routes::{self, Auth, Content, Route};
use svc_tests::client::{Client, Got, bearer};
use svc_tests::oauth::{connect, public};
use svc_tests::people::Person;
use svc_tests::receiver::connect_kind;
use svc_tests::requests::{OFFICE, payment, text, with};
use svc_tests::site::{Agent, Site};

/// A workspace that has one of everything.
struct House {
    site: Site,
    client: Client,
    owner: Person,
    agent: Agent,
    token: String,
    admin: String,
    /// What a parameter of a path, or a member of a body, is here.
    ids: BTreeMap<&'static str, String>,
}

fn id(of: &Value) -> String {
    of["id"].as_str().unwrap_or_else(|| panic!("no id: {of}")).to_owned()
}

impl House {
    async fn furnish(site: Site, word: &'static str) -> Self {
        let (client, owner, agent) = (site.client().await, site.member(Role::Owner), site.agent(&[OFFICE]));
        let (token, admin) = (site.token(&TokenScope::ALL), site.key(KeyScope::Admin));
        let ids = BTreeMap::from([
            ("wid", site.workspace().to_string()),
            ("aid", agent.id.to_string()),
            ("prp", site.member(Role::Member).principal.to_string()),
        ]);
        let mut house = Self { site, client, owner, agent, token, admin, ids };
        house.routing(word).await;
        house.people(word).await;
        house.gate().await;
        house.edge(word).await;
        house
    }

    /// Makes one thing and remembers its id.
    async fn make(&mut self, name: &'static str, list: &str, body: Value) {
        let made = self.post(list, &body).await.made();
        self.ids.insert(name, id(&made));
    }

    async fn post(&mut self, list: &str, body: &Value) -> Got {
        let path = format!("/api/w/{}/{list}", self.site.workspace());
        self.owner.ask(&mut self.client, "POST", &path, Some(body)).await
    }

    /// Remembers the first of a list.
    async fn first(&mut self, name: &'static str, list: &str) {
        let path = format!("/api/w/{}/{list}", self.site.workspace());
        let found = self.owner.ask(&mut self.client, "GET", &path, None).await.ok();
        assert!(found["data"][0]["id"].is_string(), "{list}: {found}");
        self.ids.insert(name, id(&found["data"][0]));
    }

    async fn routing(&mut self, word: &'static str) {
        let base = format!("https://{word}.example.com/v1");
        let upstream = json!({ "name": word, "kind": "chat", "baseUrl": base, "apiKey": "sk-planted" });
        self.make("ups", "upstreams", upstream).await;
        let model = json!({ "id": format!("{word}-large"), "upstreamId": self.ids["ups"] });
        self.post("models", &model).await.made();
        self.ids.extend([("provider", word.to_owned()), ("model", format!("{word}-large"))]);
        self.make("class", "task-classes", json!({ "id": format!("{word}.reply") })).await;
        self.make("profile", "policy-profiles", json!({ "name": word })).await;
        let budget = json!({ "scope": { "kind": "workspace" }, "amount": 1_000_000, "period": "month" });
        self.make("bdg", "budgets", budget).await;
    }

    async fn people(&mut self, word: &'static str) {
        self.make("team", "teams", json!({ "name": word })).await;
        self.post("keys", &json!({ "scope": "inference" })).await.made();
        self.first("key", "keys").await;
        self.post("service-tokens", &json!({ "name": word, "scopes": ["agents:read"] })).await.made();
        self.first("stk", "service-tokens").await;
        self.post("templates", &json!({ "name": word, "mandate": { "actions": ["crm.read"] } })).await.made();
        self.ids.insert("template", word.to_owned());
        let member = self.site.member(Role::Member);
        let path = format!("/api/w/{}/applications", self.site.workspace());
        let wish = json!({ "kind": "role", "target": null, "change": { "role": "admin" }, "reason": "x" });
        let asked = member.ask(&mut self.client, "POST", &path, Some(&wish)).await.made();
        self.ids.insert("app", id(&asked));
        let sessions = self.owner.ask(&mut self.client, "GET", "/api/me/sessions", None).await.ok();
        self.ids.insert("ses", id(&sessions["data"][0]));
    }

    async fn gate(&mut self) {
        let mandates = format!("agents/{}/mandates", self.agent.id);
        self.first("mnd", &mandates).await;
        let allowed = self.client.authorize(&self.agent.key, &payment(100)).await.ok();
        self.ids.extend([("act", id(&allowed)), ("id", id(&allowed))]);
        self.ids.insert("evd", text(&allowed["evidenceRecord"]).to_owned());
        let asked = self.client.authorize(&self.agent.key, &payment(30_000)).await.ok();
        assert_eq!(asked["decision"], "approval_required", "{asked}");
        self.first("apv", "approvals").await;
        let stopped = self.site.agent(&[]);
        self.post(&format!("agents/{}/freeze", stopped.id), &json!({ "reason": "x" })).await.ok();
        let canary = self.site.agent(&[]);
        let began = json!({ "agentIds": [canary.id.to_string()], "reason": "x" }).to_string();
        let bearer = bearer(&self.token);
        let began = self.client.ask("POST", "/v1/admin/drills", &[("authorization", &bearer)], began.as_bytes()).await;
        self.ids.insert("drl", id(&began.json()));
    }

    async fn edge(&mut self, word: &'static str) {
        let made = connect_kind(&self.site, IntegrationKind::Callbacks, ConfigChange::default());
        self.ids.insert("int", made.id.to_string());
        let server = json!({ "name": word, "url": format!("https://{word}.example.com/mcp"), "enabled": false });
        self.make("mcs", "mcp-servers", server).await;
        self.ids.insert("server", word.to_owned());
        let client = public(&mut self.client).await;
        connect(&mut self.client, &self.owner, &client, &self.ids["aid"].clone()).await;
        self.first("con", "connections").await;
        let workspace = self.site.workspace();
        for record in sample::rows() {
            match record {
                Record::Call(it) => self.site.plant(Call { workspace, ..Call::clone(&it) }),
                Record::Task(it) => self.site.plant(Task { workspace, ..Task::clone(&it) }),
                Record::Hold(it) => self.site.plant(Hold { workspace, ..Hold::clone(&it) }),
                Record::Job(it) => self.site.plant(Job { workspace, ..Job::clone(&it) }),
                _ => {}
            }
        }
        self.first("hld", "holds").await;
        self.first("dlv", "deliveries").await;
        self.first("cal", "calls").await;
    }

    /// Asks a route as whoever may most here; `ids` are what its path names.
    async fn ask(&mut self, route: &Route, ids: &BTreeMap<&str, String>) -> Got {
        let path = route.params().fold(route.path.to_owned(), |path, name| {
            path.replace(
                &format!("{{{name}}}"),
                ids.get(name).unwrap_or_else(|| panic!("no `{name}` in {}", route.path)),
            )
        });
        self.send(route, &path, body(route)).await
    }

    async fn send(&mut self, route: &Route, path: &str, body: Option<Value>) -> Got {
        let method = route.method.as_str();
        let credential = match route.auth {
            Auth::Session | Auth::Member(_) => {
                return self.owner.ask(&mut self.client, method, path, body.as_ref()).await;
            }
            Auth::Agent | Auth::McpAgent => &self.agent.key,
            Auth::Workspace | Auth::Payer | Auth::WorkspaceAdmin => &self.admin,
            Auth::Token(_) => &self.token,
            Auth::Open | Auth::Signature => panic!("{path} is asked by nobody of a workspace"),
        };
        let bearer = bearer(credential);
        let headers = [("host", "gate.example.com"), ("authorization", &*bearer)];
        self.client.ask(method, path, &headers, body.map(|it| it.to_string()).unwrap_or_default().as_bytes()).await
    }
}

/// What a request that changes something sends, as an owner would who means it. A route without a line here sends none.
fn body(route: &Route) -> Option<Value> {
    let tail = route.path.rsplit_once('/').map_or("", |(_, tail)| tail);
    let mandate = json!({ "actions": ["crm.read"] });
    Some(match (route.method.as_str(), tail) {
        ("POST", "freeze" | "restart" | "lift" | "release") => json!({ "reason": "x" }),
        ("POST", "keys") => json!({ "label": "x" }),
        ("POST", "mandates") => with(mandate, "name", json!("x")),
        ("POST", "raise") => json!({ "amountMicros": 5_000_000 }),
        ("POST", "accept") => json!({ "tools": ["look"], "toolsHash": format!("sha256:{}", "0".repeat(64)) }),
        ("POST", "approve" | "deny" | "rotate" | "ran") => json!({}),
        ("POST", "callback") => json!({ "url": "https://agent.example.com/back" }),
        ("POST", "settle") => json!({ "status": "cancelled" }),
        ("POST", "{server}") => json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        ("PATCH", "{mnd}") => json!({ "state": "paused" }),
        ("PATCH", "{template}") => json!({ "mandate": mandate }),
        ("PATCH", "{prp}") => json!({ "role": "admin" }),
        ("PATCH", "{bdg}") => json!({ "amount": 2_000_000 }),
        ("PATCH", "{class}") => json!({ "minQuality": 10 }),
        ("PATCH", "{aid}" | "{profile}" | "{team}") => json!({ "name": "another" }),
        ("PATCH", "{int}" | "{mcs}" | "{model}" | "{ups}") => json!({ "enabled": false }),
        _ => return None,
    })
}

/// Whoever belongs to a workspace asks these routes.
fn asked() -> impl Iterator<Item = &'static Route> {
    routes::all().filter(|it| !matches!(it.auth, Auth::Open | Auth::Signature) && it.content != Content::Events)
}

/// Those that name more than the workspace.
fn of_one_thing() -> impl Iterator<Item = &'static Route> {
    asked().filter(|it| it.params().any(|name| name != "wid"))
}

/// What nobody has, under the same names and of the same length.
fn nothing(ids: &BTreeMap<&'static str, String>) -> BTreeMap<&'static str, String> {
    let of = |id: &String| match id.split_once('_') {
        Some((prefix, rest)) if rest.len() == 26 => format!("{prefix}_{}", "0".repeat(26)),
        _ => id.replace("far", "fax"),
    };
    ids.iter().map(|(name, id)| (*name, of(id))).collect()
}

/// An answer without what is another's at each request, and with one word for whichever thing was asked for.
fn told(got: &Got, ids: &BTreeMap<&str, String>) -> (u16, String) {
    let mut parts = got.text().split(r#""req_"#).map(str::to_owned).collect::<Vec<_>>();
    parts.iter_mut().skip(1).for_each(|it| drop(it.drain(..32)));
    let told = parts.concat();
    (got.status, ids.values().fold(told, |told, id| told.replace(id.as_str(), "<id>")))
}

/// Both workspaces, on one store and one clock; `far` is asked about from `near`.
async fn two() -> (House, House) {
    let near = Site::start().await;
    let far = near.anew(|_| {}).await;
    (House::furnish(near, "near").await, House::furnish(far, "far").await)
}

/// All of a workspace that reads as one thing.
async fn seen(house: &mut House) -> Vec<(&'static str, String)> {
    let (mut seen, ids) = (Vec::new(), house.ids.clone());
    for route in of_one_thing().filter(|it| !it.is_write()) {
        let got = house.ask(route, &ids).await;
        assert_eq!(got.status, 200, "{} of one's own: {}", route.path, got.text());
        seen.push((route.path, told(&got, &BTreeMap::new()).1));
    }
    seen
}

/// Whatever a path names of another workspace is answered, to the letter, as what nobody has, whoever asks for it and however well;
/// nothing of it changes. The same request of its own people is understood.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_anothers_is_not_there() {
    let (mut near, mut far) = two().await;
    let (anothers, nobodys, before) = (far.ids.clone(), nothing(&far.ids), seen(&mut far).await);
    for route in of_one_thing() {
        let own = BTreeMap::from([("wid", near.ids["wid"].clone())]);
        let with = |ids: &BTreeMap<&'static str, String>| ids.clone().into_iter().chain(own.clone()).collect();
        let (anothers, nobodys): (BTreeMap<_, _>, BTreeMap<_, _>) = (with(&anothers), with(&nobodys));
        let (there, not) = (near.ask(route, &anothers).await, near.ask(route, &nobodys).await);
        let place = format!("{} {}", route.method, route.path);
        assert_eq!(told(&there, &anothers), told(&not, &nobodys), "{place}");
        assert!([403, 404].contains(&there.status), "{place}: {} {}", there.status, there.text());
    }
    // Nor is the workspace itself there, with everything of it rightly named.
    for route in asked().filter(|it| it.params().next() == Some("wid")) {
        let mut nowhere = anothers.clone();
        nowhere.insert("wid", nobodys["wid"].clone());
        let (there, not) = (near.ask(route, &anothers).await, near.ask(route, &nowhere).await);
        assert_eq!((there.status, there.kind().as_str()), (404, "not_found"), "{} {}", route.method, route.path);
        assert_eq!(told(&there, &anothers), told(&not, &nowhere), "{} {}", route.method, route.path);
    }
    assert_eq!(seen(&mut far).await, before);
    // What takes a thing away is asked last. Nobody outside is called: the server behind the gate is off, which is no server.
    let (mut gone, changed): (Vec<_>, Vec<_>) =
        of_one_thing().filter(|it| it.is_write()).partition(|it| it.method == "DELETE");
    // An agent takes what it has along, a provider its models, and a session whoever asks.
    gone.sort_by_key(|it| ["{aid}", "{ups}", "{ses}"].iter().position(|last| it.path.ends_with(last)));
    for route in changed.into_iter().chain(gone).filter(|it| !it.path.ends_with("/test") && it.auth != Auth::McpAgent) {
        let got = far.ask(route, &anothers).await;
        assert!(![400, 401, 404, 405].contains(&got.status), "{} {}: {}", route.method, route.path, got.text());
    }
    near.site.stop().await;
    far.site.stop().await;
}

/// No list, report or stream of a workspace has anything of another in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_list_has_what_is_anothers() {
    let (mut near, far) = two().await;
    let ids = near.ids.clone();
    let lists = asked().filter(|it| !it.is_write() && it.params().all(|name| name == "wid"));
    let mut own = 0;
    for route in lists {
        let got = near.ask(route, &ids).await;
        assert!(got.status != 404, "{}", route.path);
        let text = got.text();
        for (name, id) in far.ids.iter().filter(|(_, id)| id.len() > 6) {
            assert!(!text.contains(id.as_str()), "{} tells the `{name}` of another: {text}", route.path);
        }
        own += usize::from(ids.iter().any(|(name, id)| *name != "wid" && text.contains(id.as_str())));
    }
    assert!(own > 25, "a list that is empty shows nothing: {own}");
    near.site.stop().await;
    far.site.stop().await;
}

/// What is used of a workspace's mandate is told by what its own agents did alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_used_is_a_workspaces_own() {
    async fn used(house: &mut House) -> Value {
        let path = format!("/api/w/{}/mandates/{}", house.site.workspace(), house.ids["mnd"]);
        house.owner.ask(&mut house.client, "GET", &path, None).await.ok()["usage"]["spend"]["used"].clone()
    }
    let (mut near, mut far) = two().await;
    assert_eq!((used(&mut near).await, used(&mut far).await), (json!(30_100), json!(30_100)));
    far.client.authorize(&far.agent.key, &payment(700)).await.ok();
    assert_eq!((used(&mut near).await, used(&mut far).await), (json!(30_100), json!(30_800)));
    near.site.stop().await;
    far.site.stop().await;
}

/// Requests that name what is in `of`, at a workspace whose own is `own`: the method, the path and the body.
fn naming(
    of: &BTreeMap<&'static str, String>,
    own: &BTreeMap<&'static str, String>,
) -> Vec<(&'static str, String, Value)> {
    let id = |name: &str| json!(of[name]);
    let agent = json!({ "name": "x", "principalEmail": "ann@example.com" });
    let budget = |scope: Value| json!({ "scope": scope, "amount": 1, "period": "day" });
    let of_kind = |kind: &str, name: &str| budget(json!({ "kind": kind, "id": id(name) }));
    let wish = |kind: &str, target: Value, change: Value| json!({ "kind": kind, "target": target, "change": change, "reason": "x" });
    let selected = |name: &str, value: Value| json!({ "selector": { name: value }, "dryRun": true });
    let bill = json!({ "upstreamId": id("ups"), "from": "2026-10-01", "to": "2026-10-02", "lines": [] });
    vec![
        ("POST", "agents".to_owned(), with(agent.clone(), "sponsor", id("prp"))),
        ("POST", "agents".to_owned(), with(agent.clone(), "killOwner", id("prp"))),
        ("POST", "agents".to_owned(), with(agent, "mandates", json!([{ "template": id("template") }]))),
        ("PATCH", format!("agents/{}", own["aid"]), json!({ "sponsor": id("prp") })),
        ("POST", format!("agents/{}/mandates", own["aid"]), json!({ "template": id("template") })),
        ("POST", "members".to_owned(), json!({ "email": "x@example.com", "role": "member", "teamIds": [id("team")] })),
        ("PATCH", format!("members/{}", own["prp"]), json!({ "teamIds": [id("team")] })),
        ("POST", "teams".to_owned(), json!({ "name": "x", "memberIds": [id("prp")] })),
        ("POST", "teams".to_owned(), json!({ "name": "x", "owner": id("prp") })),
        ("PATCH", format!("teams/{}", own["team"]), json!({ "memberIds": [id("prp")] })),
        ("POST", "keys".to_owned(), json!({ "principalId": id("prp") })),
        ("POST", "keys".to_owned(), json!({ "teamId": id("team") })),
        ("POST", "keys".to_owned(), json!({ "policyProfileId": id("profile") })),
        ("POST", "keys".to_owned(), json!({ "taskClassId": id("class") })),
        ("POST", "budgets".to_owned(), of_kind("agent", "aid")),
        ("POST", "budgets".to_owned(), of_kind("team", "team")),
        ("POST", "budgets".to_owned(), of_kind("principal", "prp")),
        ("POST", "budgets".to_owned(), of_kind("key", "key")),
        ("POST", "budgets".to_owned(), of_kind("taskClass", "class")),
        ("POST", "budgets".to_owned(), with(budget(json!({ "kind": "workspace" })), "owner", id("prp"))),
        ("PATCH", format!("budgets/{}", own["bdg"]), json!({ "owner": id("prp") })),
        ("POST", "models".to_owned(), json!({ "id": "x", "upstreamId": id("ups") })),
        ("PUT", "routing".to_owned(), json!({ "defaultTaskClass": id("class") })),
        ("POST", "billing-imports".to_owned(), bill),
        ("POST", "applications".to_owned(), wish("tier", id("aid"), json!({ "tier": "trusted" }))),
        ("POST", "applications".to_owned(), wish("mandate", id("aid"), json!({ "actions": ["crm.read"] }))),
        ("POST", "applications".to_owned(), wish("mandate", id("mnd"), json!({ "state": "paused" }))),
        ("POST", "applications".to_owned(), wish("budget_raise", id("bdg"), json!({ "amountMicros": 5_000_000 }))),
        ("POST", "applications".to_owned(), wish("role", id("prp"), json!({ "role": "admin" }))),
        ("POST", "freeze".to_owned(), selected("agentIds", json!([id("aid")]))),
        ("POST", "freeze".to_owned(), selected("principalId", id("prp"))),
        ("POST", "freeze".to_owned(), selected("teamId", id("team"))),
        ("POST", "freeze".to_owned(), selected("template", id("template"))),
        ("GET", format!("actions?agentId={}", of["aid"]), Value::Null),
        ("GET", format!("approvals?agentId={}", of["aid"]), Value::Null),
        ("GET", format!("ledger?about={}", of["act"]), Value::Null),
        ("GET", format!("evidence?agentId={}", of["aid"]), Value::Null),
        ("GET", format!("scorecard?agentId={}", of["aid"]), Value::Null),
    ]
}

/// What a body or a filter names of another workspace is no more than what nobody has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_anothers_cannot_be_named() {
    let (mut near, far) = two().await;
    let own = near.ids.clone();
    let (anothers, nobodys) = (far.ids.clone(), nothing(&far.ids));
    for ((method, path, there), (_, other, not)) in naming(&anothers, &own).into_iter().zip(naming(&nobodys, &own)) {
        let place = format!("{method} {path} {there}");
        let mut answers = Vec::new();
        for (path, body, ids) in [(path, there, &anothers), (other, not, &nobodys)] {
            let path = format!("/api/w/{}/{path}", own["wid"]);
            let body = Some(&body).filter(|it| !it.is_null());
            let got = near.owner.ask(&mut near.client, method, &path, body).await;
            answers.push(told(&got, ids));
        }
        assert_eq!(answers[0], answers[1], "{place}");
        let is_none = answers[0].0 >= 400 || answers[0].1.contains(r#""count":0"#);
        assert!(method == "GET" || is_none, "{place}: {}", answers[0].1);
    }
    near.site.stop().await;
    far.site.stop().await;
}
