//! Members and teams over a real socket: who comes in, as what, and how they leave.

use serde_json::{Value, json};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::state::people::{Role, Settings, TokenScope};
use svc_core::value::text::{Email, Label};
use svc_tests::client::{Client, Got};
use svc_tests::people::{Person, ask};
use svc_tests::site::Site;

fn path(site: &Site, rest: &str) -> String {
    format!("/api/w/{}/{rest}", site.workspace())
}

fn status(got: &Got) -> (u16, String) {
    (got.status, got.kind())
}

async fn invite(site: &Site, client: &mut Client, by: &Person, email: &str, role: &str) -> Got {
    by.ask(client, "POST", &path(site, "members"), Some(&json!({ "email": email, "role": role }))).await
}

/// Signs in by the link that an invitation showed, and gives the cookie.
async fn come(client: &mut Client, invited: &Value) -> String {
    let link = invited["signInLink"].as_str().expect("a link");
    let token = link.split("token=").nth(1).unwrap();
    let got = ask(client, None, "POST", "/api/sign-in/link", Some(&json!({ "token": token }))).await;
    let cookie = got.header("set-cookie").expect("a cookie").to_owned();
    cookie.strip_prefix("__Host-sid=").unwrap().split(';').next().unwrap().to_owned()
}

/// An invited person signs in by the link, works with the role they have now, and is nobody once they are removed.
#[tokio::test]
async fn an_invited_member_comes_in_changes_and_is_removed() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let invited = invite(&site, &mut client, &admin, "new@example.com", "member").await;
    assert_eq!(invited.status, 201);
    let invited = invited.json();
    assert_eq!((&invited["state"], &invited["role"]), (&json!("invited"), &json!("member")));
    assert_eq!(invited["invitedBy"], json!(admin.principal));
    let sid = come(&mut client, &invited).await;
    let own = path(&site, &format!("members/{}", invited["principalId"].as_str().unwrap()));
    let list = path(&site, "members");
    assert_eq!(status(&ask(&mut client, Some(&sid), "GET", &list, None).await), (403, "forbidden".to_owned()));
    let again = invite(&site, &mut client, &admin, "new@example.com", "member").await;
    assert_eq!(status(&again), (409, "not_allowed".to_owned()));

    let changed = admin.ask(&mut client, "PATCH", &own, Some(&json!({ "role": "auditor" }))).await.ok();
    assert_eq!((&changed["role"], &changed["state"]), (&json!("auditor"), &json!("active")));
    ask(&mut client, Some(&sid), "GET", &list, None).await.ok();

    assert_eq!(admin.ask(&mut client, "DELETE", &own, None).await.status, 204);
    assert_eq!(
        ask(&mut client, Some(&sid), "GET", &list, None).await.status,
        401,
        "nobody anywhere: the session ended"
    );
    assert_eq!(admin.ask(&mut client, "GET", &own, None).await.ok()["state"], "disabled");

    let anew = invite(&site, &mut client, &admin, "new@example.com", "analyst").await;
    assert_eq!((anew.status, &anew.json()["state"]), (201, &json!("invited")));
    assert!(anew.json().get("signInLink").is_none(), "whoever has signed in once does so as before");
}

/// Who was invited by a name has it where they look at themselves, and a team is not removed from under a key.
#[tokio::test]
async fn a_person_has_the_name_they_were_invited_by() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let wish = json!({ "email": "new@example.com", "role": "member", "name": "Ada" });
    let invited = admin.ask(&mut client, "POST", &path(&site, "members"), Some(&wish)).await.json();
    let sid = come(&mut client, &invited).await;
    assert_eq!(ask(&mut client, Some(&sid), "GET", "/api/me", None).await.ok()["name"], "Ada");
    let teams = path(&site, "teams");
    let team = admin.ask(&mut client, "POST", &teams, Some(&json!({ "name": "Accounts" }))).await.json();
    let wish = json!({ "label": "theirs", "teamId": team["id"] });
    let made = admin.ask(&mut client, "POST", &path(&site, "keys"), Some(&wish)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let key = made.json()["binding"]["id"].as_str().unwrap().to_owned();
    let team = format!("{teams}/{}", team["id"].as_str().unwrap());
    assert_eq!(status(&admin.ask(&mut client, "DELETE", &team, None).await), (409, "not_allowed".to_owned()));
    assert_eq!(admin.ask(&mut client, "DELETE", &path(&site, &format!("keys/{key}")), None).await.status, 204);
    assert_eq!(admin.ask(&mut client, "DELETE", &team, None).await.status, 204);
}

/// An admin makes no owner and touches none; what a body misspells is named; another workspace's principal is not there.
#[tokio::test]
async fn an_admin_makes_no_owner() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (admin, member, owner) = (site.member(Role::Admin), site.member(Role::Member), site.member(Role::Owner));
    let forbidden = (403, "forbidden".to_owned());
    assert_eq!(status(&invite(&site, &mut client, &admin, "o@example.com", "owner").await), forbidden);
    let of = |it: &Person| path(&site, &format!("members/{}", it.principal));
    let role = json!({ "role": "owner" });
    assert_eq!(status(&admin.ask(&mut client, "PATCH", &of(&member), Some(&role)).await), forbidden);
    let role = json!({ "role": "member" });
    assert_eq!(status(&admin.ask(&mut client, "PATCH", &of(&owner), Some(&role)).await), forbidden);
    assert_eq!(status(&admin.ask(&mut client, "DELETE", &of(&owner), None).await), forbidden);
    let bad = json!({ "email": "x@example.com", "role": "king", "teams": [], "teamIds": ["team_x"] });
    let got = admin.ask(&mut client, "POST", &path(&site, "members"), Some(&bad)).await;
    assert_eq!(got.status, 400);
    let fields: Vec<Value> =
        got.json()["error"]["errors"].as_array().unwrap().iter().map(|it| it["field"].clone()).collect();
    assert_eq!(fields, [json!("role"), json!("teamIds.0")]);
    let strange = path(&site, "members/prp_01K6FN0001000000000000000P");
    assert_eq!(admin.ask(&mut client, "GET", &strange, None).await.status, 404);
    assert_eq!(admin.ask(&mut client, "DELETE", &strange, None).await.status, 404);
}

/// Where there are two owners, one asks, hears that another is needed, and another agrees.
#[tokio::test]
async fn a_second_owner_agrees_to_an_owner() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (first, second, member) = (site.member(Role::Owner), site.member(Role::Owner), site.member(Role::Member));
    let own = path(&site, &format!("members/{}", member.principal));
    let role = json!({ "role": "owner" });
    let asked = first.ask(&mut client, "PATCH", &own, Some(&role)).await;
    assert_eq!((asked.status, &asked.json()["pending"]), (202, &json!(true)));
    let approval = asked.json()["approval"]["id"].as_str().unwrap().to_owned();
    let again = first.ask(&mut client, "PATCH", &own, Some(&role)).await;
    assert_eq!(status(&again), (409, "second_owner_required".to_owned()));
    assert_eq!(again.json()["error"]["approval"]["id"], json!(approval));
    assert_eq!(second.ask(&mut client, "GET", &own, None).await.ok()["role"], "member");
    let approve = path(&site, &format!("approvals/{approval}/approve"));
    assert_eq!(status(&first.ask(&mut client, "POST", &approve, Some(&json!({}))).await).0, 409);
    let read = second.ask(&mut client, "GET", &path(&site, &format!("approvals/{approval}")), None).await.ok();
    assert_eq!(read["subject"], json!({ "principalId": member.principal, "email": member.email }), "whom it is about");
    second.ask(&mut client, "POST", &approve, Some(&json!({}))).await.ok();
    assert_eq!(second.ask(&mut client, "GET", &own, None).await.ok()["role"], "owner");
    let asked = first.ask(&mut client, "DELETE", &own, None).await;
    assert_eq!(asked.status, 202);
}

/// A page of members is full while there are more, however many principals stand between that agents act for alone.
#[tokio::test]
async fn pages_of_members_are_full() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let admin = site.member(Role::Admin);
    let mut members = Vec::new();
    for number in 0..4 {
        members.push(site.member(Role::Member).principal.to_string());
        for more in 0..3 {
            let agent = json!({ "name": "Buyer", "principalEmail": format!("nobody{number}{more}@example.com") });
            let made = admin.ask(&mut client, "POST", &path(&site, "agents"), Some(&agent)).await;
            assert_eq!(made.status, 201);
        }
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let got = admin.ask(&mut client, "GET", &path(&site, &format!("members?limit=2{cursor}")), None).await.ok();
        let page = got["data"].as_array().unwrap();
        found.extend(page.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        let Some(next) = got["nextCursor"].as_str() else { break };
        assert_eq!(page.len(), 2, "{got}");
        cursor = format!("&cursor={next}");
    }
    let own = found.iter().filter(|it| members.contains(*it)).count();
    assert_eq!((own, found.len()), (members.len(), members.len() + 2), "the owner and the admin beside them");
}

/// A team is named, filled, changed and removed; its members know of it and stay.
#[tokio::test]
async fn a_team_comes_and_goes_and_its_members_stay() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (admin, member) = (site.member(Role::Admin), site.member(Role::Member));
    let teams = path(&site, "teams");
    let new = json!({ "name": "Buyers", "memberIds": [member.principal], "owner": admin.principal });
    let made = admin.ask(&mut client, "POST", &teams, Some(&new)).await;
    assert_eq!(made.status, 201);
    let made = made.json();
    assert_eq!((&made["memberIds"], &made["owner"]), (&json!([member.principal]), &json!(admin.principal)));
    let team = path(&site, &format!("teams/{}", made["id"].as_str().unwrap()));
    let own = path(&site, &format!("members/{}", member.principal));
    assert_eq!(admin.ask(&mut client, "GET", &own, None).await.ok()["teamIds"], json!([made["id"]]));
    let none = admin.ask(&mut client, "PATCH", &own, Some(&json!({ "teamIds": [] }))).await.ok();
    assert_eq!(none["teamIds"], json!([]));
    assert_eq!(admin.ask(&mut client, "GET", &team, None).await.ok()["memberIds"], json!([]));
    let back = json!({ "memberIds": [member.principal], "owner": null, "name": "Payers" });
    let changed = admin.ask(&mut client, "PATCH", &team, Some(&back)).await.ok();
    assert_eq!((&changed["name"], changed.get("owner")), (&json!("Payers"), None));
    let strange = json!({ "memberIds": ["prp_01K6FN0001000000000000000P"] });
    assert_eq!(admin.ask(&mut client, "PATCH", &team, Some(&strange)).await.status, 400);
    assert_eq!(admin.ask(&mut client, "GET", &teams, None).await.ok()["data"].as_array().unwrap().len(), 1);
    assert_eq!(admin.ask(&mut client, "DELETE", &team, None).await.status, 204);
    assert_eq!(admin.ask(&mut client, "GET", &team, None).await.status, 404);
    let left = admin.ask(&mut client, "GET", &own, None).await.ok();
    assert_eq!((&left["teamIds"], &left["state"]), (&json!([]), &json!("active")));
}

/// One account in two workspaces is somebody else in each: another principal with another role, under each one's own rules.
/// Leaving one ends nothing in the other.
#[tokio::test]
async fn one_account_is_somebody_else_in_each_workspace() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (boss, person) = (site.member(Role::Owner), site.member(Role::Admin));
    let agent = site.agent(&[]);
    let (name, owner) = (Label::parse("Their own").unwrap(), Email::parse(&person.email).unwrap());
    let other = CreateWorkspace { name, owner, settings: Settings::default() };
    let other = site.gate.execute(other).unwrap().id;
    let me = person.ask(&mut client, "GET", "/api/me", None).await.ok();
    let workspaces = me["workspaces"].as_array().unwrap();
    let roles: Vec<_> = workspaces.iter().map(|it| (it["id"].clone(), it["role"].clone())).collect();
    assert_eq!(roles, [(json!(site.workspace()), json!("admin")), (json!(other), json!("owner"))]);
    assert_ne!(workspaces[0]["principalId"], workspaces[1]["principalId"]);

    let there = |rest: &str| format!("/api/w/{other}/{rest}");
    let agents = there(&format!("agents/{}", agent.id));
    assert_eq!(person.ask(&mut client, "GET", &agents, None).await.status, 404, "an agent is of one workspace");
    let theirs = there(&format!("members/{}", person.principal));
    assert_eq!(person.ask(&mut client, "GET", &theirs, None).await.status, 404, "a principal is of one workspace");
    let tokens = path(&site, "service-tokens");
    assert_eq!(status(&person.ask(&mut client, "GET", &tokens, None).await), (403, "forbidden".to_owned()));
    person.ask(&mut client, "GET", &there("service-tokens"), None).await.ok();
    assert_eq!(boss.ask(&mut client, "GET", &there("members"), None).await.status, 404);

    let strict = json!({ "signIn": { "requireTwoFactor": true } });
    person.ask(&mut client, "PUT", &there("settings"), Some(&strict)).await.ok();
    assert_eq!(person.ask(&mut client, "GET", &there("members"), None).await.status, 403);
    person.ask(&mut client, "GET", &path(&site, "members"), None).await.ok();

    let own = path(&site, &format!("members/{}", person.principal));
    assert_eq!(boss.ask(&mut client, "DELETE", &own, None).await.status, 204);
    assert_eq!(person.ask(&mut client, "GET", &path(&site, "members"), None).await.status, 404);
    let me = person.ask(&mut client, "GET", "/api/me", None).await.ok();
    assert_eq!(me["workspaces"].as_array().unwrap().len(), 1, "the session goes on elsewhere");
}

/// Inviting an owner where there are two asks the other one: 202, and nobody is invited before they agree.
#[tokio::test]
async fn inviting_an_owner_asks_the_second() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (first, second) = (site.member(Role::Owner), site.member(Role::Owner));
    let asked = invite(&site, &mut client, &first, "third@example.com", "owner").await;
    assert_eq!((asked.status, &asked.json()["pending"]), (202, &json!(true)));
    let approval = asked.json()["approval"]["id"].as_str().unwrap().to_owned();
    let again = invite(&site, &mut client, &first, "third@example.com", "owner").await;
    assert_eq!(status(&again), (409, "second_owner_required".to_owned()));
    let question = path(&site, &format!("approvals/{approval}"));
    assert_eq!(second.ask(&mut client, "GET", &question, None).await.ok()["kind"], "owner");
    second.ask(&mut client, "POST", &format!("{question}/approve"), Some(&json!({}))).await.ok();
    let members = first.ask(&mut client, "GET", &path(&site, "members"), None).await.ok();
    let third = members["data"].as_array().unwrap().iter().find(|it| it["email"] == "third@example.com").unwrap();
    assert_eq!((&third["role"], &third["state"]), (&json!("owner"), &json!("invited")));
    let linked = invite(&site, &mut client, &first, "third@example.com", "owner").await.made();
    assert!(linked["signInLink"].is_string(), "{linked}");
}

/// Nobody who was removed is acted for anew, by whichever way they are named, whoever asks; an address that nobody has makes somebody
/// without a sign-in as before.
#[tokio::test]
async fn whoever_was_removed_is_acted_for_by_no_new_agent() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let owner = site.member(Role::Owner);
    let gone = site.member(Role::Member);
    let (agents, token) = (path(&site, "agents"), site.token(&[TokenScope::AgentsWrite]));
    let member = path(&site, &format!("members/{}", gone.principal));
    assert_eq!(owner.ask(&mut client, "DELETE", &member, None).await.status, 204);
    for address in [gone.email.clone(), gone.email.to_uppercase()] {
        let wish = json!({ "name": "Bot", "principalEmail": address });
        let refused = owner.ask(&mut client, "POST", &agents, Some(&wish)).await;
        assert_eq!(refused.refusal(), (400, "invalid_request".into(), vec!["principalEmail".into()]), "{address}");
        let refused = client.post("/v1/admin/agents", &token, &wish).await;
        assert_eq!(refused.refusal(), (400, "invalid_request".into(), vec!["principalEmail".into()]), "{address}");
    }
    let wish = json!({ "name": "Bot", "principalEmail": "new-bot@example.com" });
    owner.ask(&mut client, "POST", &agents, Some(&wish)).await.made();
    invite(&site, &mut client, &owner, &gone.email, "member").await.made();
    let wish = json!({ "name": "Bot", "principalEmail": gone.email });
    owner.ask(&mut client, "POST", &agents, Some(&wish)).await.made();
    site.audit();
}
