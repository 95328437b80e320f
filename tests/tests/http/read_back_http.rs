//! What was read can be sent back, and changes nothing: as a program does that keeps a workspace as a file says.

use serde_json::{Value, json};
use svc_core::state::people::{Role, TokenScope};
use svc_core::value::Span;
use svc_tests::client::Got;
use svc_tests::office::Office;
use svc_tests::requests::text;

/// The members of `record` that a body may name.
fn settable(record: &Value, names: &[&str]) -> Value {
    let members = names.iter().filter_map(|it| Some(((*it).to_owned(), record.get(*it)?.clone())));
    Value::Object(members.collect())
}

fn records(office: &Office) -> usize {
    office.site.ledger().len()
}

/// Classes and profiles without any constraint say so by members that may be sent, and one that is sent so changes nothing.
#[tokio::test]
async fn classes_and_profiles_are_sent_as_they_are_read() {
    let mut office = Office::open().await;
    office.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let profile = office.post("policy-profiles", json!({ "name": "Watch" })).await.made();
    let profile = format!("policy-profiles/{}", text(&profile["id"]));
    let limits = [
        "name",
        "models",
        "providers",
        "jurisdictions",
        "retention",
        "capabilities",
        "minQuality",
        "maxCostMicros",
        "maxLatencyMs",
        "humanOversight",
        "objective",
    ];
    for path in ["task-classes/support.reply", &profile] {
        let read = office.read(path).await;
        assert_eq!([&read["models"], &read["providers"], &read["jurisdictions"]], [&Value::Null; 3], "{read}");
        let before = records(&office);
        assert_eq!(office.patch(path, settable(&read, &limits)).await.ok(), read);
        assert_eq!(records(&office), before, "nothing has changed");
        let limited = office.patch(path, json!({ "jurisdictions": ["eu"] })).await.ok();
        assert_eq!((&limited["providers"], &limited["jurisdictions"]), (&Value::Null, &json!(["eu"])));
        assert_eq!(office.patch(path, settable(&limited, &limits)).await.ok(), limited);
    }
}

/// A template that says what it said already is recorded as no change.
#[tokio::test]
async fn a_template_that_stays_is_not_recorded() {
    let mut office = Office::open().await;
    let mandate = json!({ "actions": ["payment"], "limits": { "perAction": 100 } });
    let made = office.post("templates", json!({ "name": "small", "mandate": mandate })).await.made();
    let before = records(&office);
    for same in [&mandate, &made["mandate"]] {
        let kept = office.patch("templates/small", json!({ "mandate": same })).await.ok();
        assert_eq!(kept, made);
    }
    assert_eq!(records(&office), before);
    let other = json!({ "actions": ["payment"], "limits": { "perAction": 101 } });
    office.patch("templates/small", json!({ "mandate": other })).await.ok();
    assert_eq!(records(&office), before + 1);
}

/// Whoever is invited again stays in their teams unless the wish names others.
#[tokio::test]
async fn an_invitation_that_names_no_teams_leaves_them() {
    let mut office = Office::open().await;
    let team = office.post("teams", json!({ "name": "Desk" })).await.made()["id"].clone();
    let invite = |more: Value| {
        let mut wish = json!({ "email": "again@example.com", "role": "member" });
        wish.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        wish
    };
    let first = office.post("members", invite(json!({ "teamIds": [team] }))).await.made();
    assert_eq!(first["teamIds"], json!([team]));
    let again = office.post("members", invite(json!({ "role": "admin" }))).await.made();
    assert_eq!((&again["role"], &again["teamIds"]), (&json!("admin"), &json!([team])));
    let path = format!("teams/{}", text(&team));
    assert_eq!(office.read(&path).await["memberIds"], json!([first["principalId"]]));
    let none = office.post("members", invite(json!({ "teamIds": [] }))).await.made();
    assert_eq!(none["teamIds"], json!([]));
    assert_eq!(office.read(&path).await["memberIds"], json!([]));
}

/// Nobody who was removed answers for an agent anew, and no budget is over a key that ended; what stands so already may be sent as it
/// is.
#[tokio::test]
async fn what_has_ended_is_not_named_anew() {
    let mut office = Office::open().await;
    let gone = office.site.member(Role::Admin);
    let agent = office.agent(&json!({ "killOwner": gone.principal })).await;
    let agent = format!("agents/{}", text(&agent["id"]));
    let other = office.agent(&json!({})).await;
    let other = format!("agents/{}", text(&other["id"]));
    assert_eq!(office.ask("DELETE", &format!("members/{}", gone.principal), Value::Null).await.status, 204);
    for (path, member) in [(&other, "sponsor"), (&other, "killOwner"), (&agent, "sponsor")] {
        let refused = office.patch(path, json!({ member: gone.principal })).await;
        assert_eq!((refused.status, refused.fields()), (400, vec![member.to_owned()]), "{}", refused.text());
    }
    let blueprint = json!({ "name": "Third", "principalEmail": "ann@example.com", "sponsor": gone.principal });
    assert_eq!(office.post("agents", blueprint).await.fields(), ["sponsor"]);
    if office.read(&agent).await["killOwner"] == json!(gone.principal) {
        office.patch(&agent, json!({ "killOwner": gone.principal, "name": "Renamed" })).await.ok();
    }

    let key = office.post("keys", json!({})).await.made()["binding"]["id"].clone();
    let over = json!({ "scope": { "kind": "key", "id": key }, "amount": 100, "period": "month" });
    office.post("budgets", over.clone()).await.made();
    assert_eq!(office.ask("DELETE", &format!("keys/{}", text(&key)), Value::Null).await.status, 204);
    assert_eq!(office.post("budgets", over).await.fields(), ["scope.id"]);
}

/// A sponsor answers for an agent, so nobody is named as one who decides nothing: an analyst, an auditor, who has no sign-in. Whom an
/// agent acts for and who may stop it may be anybody.
#[tokio::test]
async fn a_sponsor_is_somebody_who_decides() {
    let mut office = Office::open().await;
    let own = office.agent(&json!({ "principalEmail": "nobody@example.com" })).await;
    let agent = format!("agents/{}", text(&own["id"]));
    let member = office.site.member(Role::Member);
    let [analyst, auditor] = [Role::Analyst, Role::Auditor].map(|it| office.site.member(it).principal.to_string());
    for nobody in [analyst.as_str(), &auditor, text(&own["principalId"])] {
        let blueprint = json!({ "name": "Third", "principalEmail": "ann@example.com", "sponsor": nobody });
        let change = json!({ "kind": "agent", "change": blueprint, "reason": "needed" });
        let asked = [
            (office.post("agents", blueprint).await, "invalid_request", "sponsor"),
            (office.patch(&agent, json!({ "sponsor": nobody })).await, "invalid_request", "sponsor"),
            (office.ask_as(&member, "POST", "applications", change).await, "invalid_application", "change.sponsor"),
        ];
        for (got, kind, field) in asked {
            assert_eq!((got.status, got.kind().as_str(), got.fields()), (400, kind, vec![field.to_owned()]));
        }
        office.patch(&agent, json!({ "killOwner": nobody })).await.ok();
    }
    office.patch(&agent, json!({ "sponsor": member.principal })).await.ok();
    let email = office.read(&format!("members/{analyst}")).await["email"].clone();
    let theirs = office.agent(&json!({ "principalEmail": email, "sponsor": member.principal })).await;
    assert_eq!(theirs["principalId"], json!(analyst));
}

/// What is wrong with the form of a body and what it names that is not there are told together (CONTRACT part 1), each place once; a
/// person who may not name anybody learns of nobody.
#[tokio::test]
async fn faults_of_form_and_of_ids_are_told_at_once() {
    let mut office = Office::open().await;
    let agent = format!("agents/{}", text(&office.agent(&json!({})).await["id"]));
    let none = |prefix: &str| format!("{prefix}_{:026}", 1);
    let (prp, team, pol) = (none("prp"), none("team"), none("pol"));
    let mandate = json!([{ "name": "M", "actions": [] }]);
    let email = "ann@example.com";
    let key = json!({ "scope": "odd", "principalId": prp, "teamId": team, "taskClassId": "no.class", "policyProfileId": pol });
    let bodies = [
        ("keys", key, "invalid_request", vec!["policyProfileId", "principalId", "scope", "taskClassId", "teamId"]),
        ("keys", json!({ "principalId": "odd", "teamId": team }), "invalid_request", vec!["principalId", "teamId"]),
        (
            "budgets",
            json!({ "scope": { "kind": "team", "id": team }, "amount": 0, "owner": prp }),
            "invalid_budget",
            vec!["amount", "owner", "period", "scope.id"],
        ),
        (
            "agents",
            json!({ "name": "A", "principalEmail": email, "sponsor": prp, "killOwner": prp, "mandates": mandate }),
            "invalid_request",
            vec!["killOwner", "mandates.0.actions", "sponsor"],
        ),
        (
            "members",
            json!({ "email": email, "role": "odd", "teamIds": [team] }),
            "invalid_request",
            vec!["role", "teamIds.0"],
        ),
        ("teams", json!({ "owner": prp, "memberIds": [prp] }), "invalid_request", vec!["memberIds.0", "name", "owner"]),
    ];
    for (path, body, kind, fields) in bodies {
        let got = office.post(path, body).await;
        let mut told = got.fields();
        told.sort();
        assert_eq!(
            (got.status, got.kind().as_str(), told),
            (400, kind, fields.iter().map(|it| (*it).to_owned()).collect())
        );
    }
    // As long a list as a sound one may be is looked at to its end.
    let many: Vec<String> = (0..1_001).map(|n| format!("prp_{n:026}")).collect();
    let told = office.post("teams", json!({ "memberIds": many })).await.fields();
    assert!(told.contains(&"memberIds.999".to_owned()) && !told.contains(&"memberIds.1000".to_owned()));
    let odd = json!({ "tier": "odd", "sponsor": prp });
    let mut told = office.patch(&agent, odd.clone()).await.fields();
    told.sort();
    assert_eq!(told, ["sponsor", "tier"]);
    let member = office.site.member(Role::Member);
    assert_eq!(office.ask_as(&member, "PATCH", &agent, odd).await.fields(), ["tier"]);
}

/// The fields of a refusal of this kind, in order.
fn told(got: &Got, kind: &str) -> Vec<String> {
    assert_eq!((got.status, got.kind().as_str()), (400, kind), "{}", got.text());
    let mut fields = got.fields();
    fields.sort();
    fields
}

/// So are models, providers and classes that a malformed body names: by their names, in lists, and as members of an object. What stood
/// before may be sent again.
#[tokio::test]
async fn faults_of_form_and_of_what_is_routed_by_are_told_at_once() {
    let mut office = Office::open().await;
    let none = format!("ups_{:026}", 1);
    let provider =
        json!({ "name": "one", "kind": "chat", "baseUrl": "https://models.example.com/v1", "apiKey": "a-key" });
    let provider = office.post("upstreams", provider).await.made()["id"].clone();
    office.post("task-classes", json!({ "id": "old.class" })).await.made();
    let model = json!({ "id": "large", "upstreamId": provider, "quality": { "old.class": 50 } });
    office.post("models", model).await.made();
    assert_eq!(office.ask("DELETE", "task-classes/old.class", Value::Null).await.status, 204);
    office.post("task-classes", json!({ "id": "support.reply" })).await.made();
    let profile = office.post("policy-profiles", json!({ "name": "Watch" })).await.made();
    let profile = format!("policy-profiles/{}", text(&profile["id"]));
    let listed = json!({ "models": ["one/large", "none"], "providers": ["one", "nobody", "No"], "minQuality": 101 });
    let lists = ["minQuality", "models.1", "providers.1", "providers.2"];
    let with = |name: &str| {
        let mut body = listed.clone();
        body.as_object_mut().unwrap().insert(name.to_owned(), json!(""));
        body
    };
    let model =
        json!({ "id": "", "upstreamId": none, "quality": { "no.class": 5, "odd.class": 101, "support.reply": 1 } });
    let change = json!({ "maxOutput": 0, "quality": { "old.class": 60, "no.class": 5 } });
    let bodies = [
        ("POST", "models", model, vec!["id", "quality.no.class", "quality.odd.class", "upstreamId"]),
        ("PATCH", "models/one/large", change, vec!["maxOutput", "quality.no.class"]),
        ("POST", "task-classes", with("id"), [&["id"], &lists[..]].concat()),
        ("PATCH", "task-classes/support.reply", listed.clone(), lists.to_vec()),
        ("POST", "policy-profiles", with("name"), [&lists[..3], &["name"], &lists[3..]].concat()),
        ("PATCH", &profile, listed.clone(), lists.to_vec()),
        ("PUT", "routing", json!({ "mode": "odd", "defaultTaskClass": "no.class" }), vec!["defaultTaskClass", "mode"]),
    ];
    for (method, path, body, mut fields) in bodies {
        fields.sort_unstable();
        assert_eq!(told(&office.ask(method, path, body).await, "invalid_request"), fields, "{method} {path}");
    }
}

/// So are names that something else of the kind has, beside whatever else is wrong; what a thing is called already may be sent again.
#[tokio::test]
async fn faults_of_form_and_names_that_are_taken_are_told_at_once() {
    let mut office = Office::open().await;
    let provider = |name: &str| json!({ "name": name, "kind": "chat", "baseUrl": "https://models.example.com/v1", "apiKey": "a-key" });
    let one = text(&office.post("upstreams", provider("one")).await.made()["id"]).to_owned();
    let two = text(&office.post("upstreams", provider("two")).await.made()["id"]).to_owned();
    let model = |id: &str, alias: &str| json!({ "id": id, "upstreamId": one, "aliases": [alias] });
    office.post("models", model("large", "big")).await.made();
    office.post("models", model("small", "little")).await.made();
    office.post("task-classes", json!({ "id": "support.reply" })).await.made();
    office.post("policy-profiles", json!({ "name": "Watch" })).await.made();
    let other = text(&office.post("policy-profiles", json!({ "name": "Other" })).await.made()["id"]).to_owned();
    let server = |name: &str| json!({ "name": name, "url": "https://tools.example.com/mcp" });
    office.post("mcp-servers", server("docs")).await.made();
    let wiki = text(&office.post("mcp-servers", server("wiki")).await.made()["id"]).to_owned();
    let mandate = json!({ "actions": ["payment"], "limits": { "perAction": 100 } });
    office.post("templates", json!({ "name": "small", "mandate": mandate })).await.made();
    let token = json!({ "name": "ci", "scopes": ["agents:read"] });
    office.post("service-tokens", token).await.made();
    let odd = |mut body: Value| {
        body.as_object_mut().unwrap().insert("more".to_owned(), json!(1));
        body
    };
    let changes = |id: &str, kind: &str| ("PATCH", format!("{kind}/{id}"));
    let cases = [
        (("POST", "upstreams".to_owned()), provider("one"), vec!["name"]),
        (changes(&two, "upstreams"), json!({ "name": "one" }), vec!["name"]),
        (changes(&two, "upstreams"), json!({ "name": "two" }), vec![]),
        (("POST", "models".to_owned()), model("large", "little"), vec!["aliases", "id"]),
        (("PATCH", "models/one/large".to_owned()), json!({ "aliases": ["little"] }), vec!["aliases"]),
        (("PATCH", "models/one/large".to_owned()), json!({ "aliases": ["big"] }), vec![]),
        (("POST", "task-classes".to_owned()), json!({ "id": "support.reply" }), vec!["id"]),
        (("POST", "policy-profiles".to_owned()), json!({ "name": "Watch" }), vec!["name"]),
        (changes(&other, "policy-profiles"), json!({ "name": "Watch" }), vec!["name"]),
        (changes(&other, "policy-profiles"), json!({ "name": "Other" }), vec![]),
        (("POST", "mcp-servers".to_owned()), server("docs"), vec!["name"]),
        (changes(&wiki, "mcp-servers"), json!({ "name": "docs" }), vec!["name"]),
        (changes(&wiki, "mcp-servers"), json!({ "name": "wiki" }), vec![]),
        (("POST", "service-tokens".to_owned()), json!({ "name": "ci", "scopes": ["agents:read"] }), vec!["name"]),
        // Of those that come with every installation too.
        (("POST", "templates".to_owned()), json!({ "name": "small", "mandate": mandate }), vec!["name"]),
        (("POST", "templates".to_owned()), json!({ "name": "coding-agent", "mandate": mandate }), vec!["name"]),
    ];
    for ((method, path), body, taken) in cases {
        let kind = if path.starts_with("upstreams") { "invalid_upstream" } else { "invalid_request" };
        let kind = |taken: &[&str]| if path == "templates" && taken.is_empty() { "invalid_mandate" } else { kind };
        if !taken.is_empty() {
            assert_eq!(told(&office.ask(method, &path, body.clone()).await, kind(&taken)), taken, "{method} {path}");
        }
        let mut all = [&taken[..], &["more"]].concat();
        all.sort_unstable();
        let told = told(&office.ask(method, &path, odd(body)).await, kind(&taken));
        assert_eq!(told, all, "{method} {path} with more");
    }
    // A member that no scope of a budget has hides nothing that it names.
    let scope = json!({ "kind": "team", "id": format!("team_{:026}", 1), "more": 1 });
    let budget = json!({ "scope": scope, "amount": 1, "period": "month" });
    let refused = office.post("budgets", budget).await;
    assert_eq!(told(&refused, "invalid_budget"), ["scope.id", "scope.more"]);
}

/// So are members whom a malformed integration names: those that mail goes to, and those that another system calls by a name. A kind
/// that is there already is told beside them. Who is linked already may be sent again.
#[tokio::test]
async fn faults_of_form_and_of_members_of_integrations_are_told_at_once() {
    let mut office = Office::open().await;
    let (own, analyst) = (office.who.principal, office.site.member(Role::Analyst).principal);
    let member = office.site.member(Role::Member).principal;
    let none = format!("prp_{:026}", 1);
    let relay = json!({ "kind": "relay", "config": { "members": { "ann": member } } });
    let relay = format!("integrations/{}", text(&office.post("integrations", relay).await.made()["id"]));
    assert_eq!(office.ask("DELETE", &format!("members/{member}"), Value::Null).await.status, 204);
    let linked = json!({ "U1AB": analyst, "U2AB": none, "U3AB": own, "lower": none });
    let bodies = [
        (
            "POST",
            "integrations",
            json!({ "kind": "mail", "config": { "to": [own, none], "more": 1 } }),
            vec!["config.more", "config.to.1"],
        ),
        (
            "POST",
            "integrations",
            json!({ "kind": "slack", "secret": "x", "config": { "members": linked } }),
            vec!["config.members.U1AB", "config.members.U2AB", "config.members.lower", "secret"],
        ),
        (
            "POST",
            "integrations",
            json!({ "kind": "odd", "config": { "to": [none], "members": { "x": none } } }),
            vec!["config.members.x", "config.to.0", "kind"],
        ),
        (
            "POST",
            "integrations",
            json!({ "kind": "chat", "config": { "members": { "x": none } } }),
            vec!["config.members"],
        ),
        (
            "POST",
            "integrations",
            json!({ "kind": "relay", "config": { "members": { "x": none } } }),
            vec!["config.members.x", "kind"],
        ),
        (
            "PATCH",
            &relay,
            json!({ "enabled": 1, "config": { "members": { "ann": member, "x": none } } }),
            vec!["config.members.x", "enabled"],
        ),
    ];
    for (method, path, body, fields) in bodies {
        assert_eq!(told(&office.ask(method, path, body.clone()).await, "invalid_request"), fields, "{body}");
    }
}

/// So is whoever an agent is to act for and was removed, beside a sponsor who is none: of a sound body as of a malformed one, and of a
/// token's before it is told that it may send no more than templates.
#[tokio::test]
async fn an_agent_of_somebody_who_was_removed_is_told_with_the_rest() {
    let mut office = Office::open().await;
    let member = office.site.member(Role::Member);
    assert_eq!(office.ask("DELETE", &format!("members/{}", member.principal), Value::Null).await.status, 204);
    let sponsor = format!("prp_{:026}", 1);
    for (name, fields) in [("A", vec!["principalEmail", "sponsor"]), ("", vec!["name", "principalEmail", "sponsor"])] {
        let body = json!({ "name": name, "principalEmail": member.email, "sponsor": sponsor });
        assert_eq!(told(&office.post("agents", body).await, "invalid_request"), fields);
    }
    let token = office.site.token(&[TokenScope::AgentsWrite]);
    for (name, mandates, fields) in
        [("A", json!([{ "name": "own" }]), vec!["principalEmail"]), ("", json!([]), vec!["name", "principalEmail"])]
    {
        let body = json!({ "name": name, "principalEmail": member.email, "mandates": mandates });
        assert_eq!(told(&office.machine(&token, "POST", "/v1/admin/agents", &body).await, "invalid_request"), fields);
    }
}

/// An agent's own key may have an end, as any other key does.
#[tokio::test]
async fn an_agents_key_ends_when_it_was_to() {
    let mut office = Office::open().await;
    let agent = text(&office.agent(&json!({})).await["id"]).to_owned();
    let path = format!("agents/{agent}/keys");
    assert_eq!(office.post(&path, json!({ "expiresInDays": 0 })).await.fields(), ["expiresInDays"]);
    let made = office.post(&path, json!({ "label": "CI", "expiresInDays": 1 })).await.made();
    let end = office.site.now().plus(Span::hours(24)).to_string();
    assert_eq!(made["binding"]["expiresAt"], json!(end));
    let key = text(&made["key"]).to_owned();
    let asked = json!({ "type": "crm.read", "summary": "look" });
    assert_eq!(office.client.authorize(&key, &asked).await.status, 200);
    office.site.advance(Span::hours(24));
    assert_eq!(office.client.authorize(&key, &asked).await.kind(), "invalid_api_key");
}

/// Of a mandate that has expired it is said that it has, and no fault is found with an end that nobody sent.
#[tokio::test]
async fn a_mandate_that_has_expired_is_told_as_such() {
    let mut office = Office::open().await;
    let end = office.site.now().plus(Span::hours(1)).to_string();
    let mandate = json!({ "name": "Brief", "actions": ["crm.read"], "expiresAt": end });
    let agent = text(&office.agent(&json!({ "mandates": [mandate] })).await["id"]).to_owned();
    let id = office.read(&format!("agents/{agent}/mandates")).await["data"][0]["id"].clone();
    let path = format!("mandates/{}", text(&id));
    office.patch(&path, json!({ "name": "Short" })).await.ok();
    office.site.advance(Span::hours(1));
    for wish in [json!({ "name": "Other" }), json!({})] {
        let refused = office.patch(&path, wish).await;
        assert_eq!((refused.status, refused.kind()), (409, "not_allowed".to_owned()), "{}", refused.text());
    }
    let past = office.patch(&path, json!({ "expiresAt": "2020-01-01T00:00:00.000Z" })).await;
    assert_eq!((past.kind(), past.fields()), ("invalid_mandate".to_owned(), vec!["expiresAt".to_owned()]));
}

/// A mandate that covers no payments may name a currency without an amount, and come to that by a change; one that covers them has an
/// amount. What such a mandate covers, `rules/mandates.rs::a_currency_without_an_amount_covers_no_payment` says.
#[tokio::test]
async fn a_currency_needs_an_amount_where_payments_are_covered() {
    let mut office = Office::open().await;
    let terms = |action: &str, limits: Value| json!({ "name": "Some", "actions": [action], "limits": limits });
    let agent = text(&office.agent(&json!({})).await["id"]).to_owned();
    let path = format!("agents/{agent}/mandates");
    let refused = office.post(&path, terms("payment", json!({ "currency": "EUR" }))).await;
    assert_eq!((refused.kind(), refused.fields()), ("invalid_mandate".to_owned(), vec!["limits".to_owned()]));
    let made = office.post(&path, terms("crm.update", json!({ "currency": "EUR" }))).await.made();
    assert_eq!(made["limits"], json!({ "currency": "EUR", "onLimit": "deny" }));
    let made = office.post(&path, terms("crm.update", json!({ "currency": "EUR", "perAction": 100 }))).await.made();
    let change = json!({ "limits": { "perAction": null } });
    let changed = office.patch(&format!("mandates/{}", text(&made["id"])), change).await.ok();
    assert_eq!(changed["limits"], json!({ "currency": "EUR", "onLimit": "deny" }));
}
