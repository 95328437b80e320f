//! Who may call what, walked from the table of routes: every role, every kind of credential, every scope.

use serde_json::json;
use svc_core::refusal::Kind;
use svc_core::state::people::{KeyScope, Reach, Right, Role, TokenScope};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_http::routes::{self, Auth, Content, Route};
use svc_tests::client::{Client, Got, bearer};
use svc_tests::people::{Person, ask};
use svc_tests::requests::OFFICE;
use svc_tests::site::Site;

/// A path of the route in this workspace, with ids of nothing in it.
fn path(route: &Route, workspace: &str) -> String {
    let mut path = route.path.replace("{wid}", workspace);
    for name in route.params().filter(|it| *it != "wid") {
        path = path.replace(&format!("{{{name}}}"), &format!("{}_{}", prefix(name), "0".repeat(26)));
    }
    path
}

/// The prefix of the ids that a parameter of this name stands for.
fn prefix(name: &str) -> &str {
    match name {
        "id" | "act" => "act",
        "aid" => "agt",
        "con" | "prp" | "mnd" | "apv" | "hld" | "app" | "int" | "dlv" | "drl" | "evd" | "stk" | "key" | "ses"
        | "team" => name,
        other => other,
    }
}

/// A body that is no request of any route, so that nothing happens where a caller is let in.
const NOTHING: &str = "[]";

fn members_only() -> impl Iterator<Item = (&'static Route, Right)> {
    routes::all().filter_map(|route| match route.auth {
        Auth::Member(right) => Some((route, right)),
        _ => None,
    })
}

async fn send(client: &mut Client, person: &Person, route: &Route, workspace: &str) -> Got {
    let body = json!([]);
    let body = route.is_write().then_some(&body);
    person.ask(client, route.method.as_str(), &path(route, workspace), body).await
}

/// What stands is asked without a body that could be taken, and a stream of events is not waited for.
fn is_quick(route: &Route) -> bool {
    !matches!(route.content, Content::Events)
}

/// A role is refused exactly where the table of roles gives it nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_admits_the_roles_of_its_right() {
    let site = Site::start().await;
    let workspace = site.workspace().to_string();
    for role in Role::ALL {
        let person = site.member(role);
        for (route, right) in members_only().filter(|(route, _)| is_quick(route)) {
            let mut client = site.client().await;
            let got = send(&mut client, &person, route, &workspace).await;
            let place = format!("{} {} as {}", route.method, route.path, role.as_str());
            if role.reach(right) == Reach::No {
                assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"), "{place}");
            } else if route.refusals.contains(&Kind::Forbidden) && got.status == 403 {
                // The rule looks whose the thing is, whatever the role.
                assert_eq!((right, role.reach(Right::ReadAgents)), (Right::Everyone, Reach::No), "{place}");
            } else {
                assert!(![401, 403, 405, 500].contains(&got.status), "{place}: {}", got.text());
            }
        }
    }
    site.audit();
    site.stop().await;
}

/// JSON that is no object is one fault of the whole body, of one type wherever it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_no_object_has_one_type() {
    let site = Site::start().await;
    let workspace = site.workspace().to_string();
    let (owner, mut client) = (site.member(Role::Owner), site.client().await);
    let mut told = 0;
    for (route, _) in members_only().filter(|(route, _)| route.request.is_some()) {
        let got = send(&mut client, &owner, route, &workspace).await;
        // Some look for what the path names first.
        if got.status != 404 {
            assert_eq!(
                got.refusal(),
                (400, "invalid_request".into(), vec!["null".into()]),
                "{} {}",
                route.method,
                route.path
            );
            told += 1;
        }
    }
    assert!(told > 30, "{told}");
    site.stop().await;
}

/// Nobody but the members of a workspace sees that it is there, and nothing but a session is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_is_its_members_own() {
    let site = Site::start().await;
    let owner = site.member(Role::Owner);
    let stranger = format!("wsp_{}", "0".repeat(26));
    let agent = site.agent(&[OFFICE]);
    let tokens = site.token(&TokenScope::ALL);
    let bearers = [agent.key.clone(), site.key(KeyScope::Admin), site.key(KeyScope::Inference), tokens];
    let mut client = site.client().await;
    for (route, _) in members_only() {
        let got = send(&mut client, &owner, route, &stranger).await;
        assert_eq!((got.status, got.kind().as_str()), (404, "not_found"), "{}", route.path);
        let own = path(route, &site.workspace().to_string());
        let body = json!([]);
        let body = route.is_write().then_some(&body);
        let got = ask(&mut client, None, route.method.as_str(), &own, body).await;
        assert_eq!((got.status, got.kind().as_str()), (401, "unauthenticated"), "{}", route.path);
        for credential in &bearers {
            let bearer = bearer(credential);
            let headers = [("host", "gate.example.com"), ("authorization", bearer.as_str()), ("x-svc-csrf", "1")];
            let got = client.ask(route.method.as_str(), &own, &headers, b"").await;
            assert_eq!((got.status, got.kind().as_str()), (401, "unauthenticated"), "{}", route.path);
        }
    }
    site.stop().await;
}

/// A session that has ended opens nothing: not after twelve idle hours, not after seven days of use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_by_itself() {
    let site = Site::start().await;
    let owner = site.member(Role::Owner);
    let mut client = site.client().await;
    assert_eq!(owner.ask(&mut client, "GET", "/api/me", None).await.status, 200);
    site.shift(Span::hours(12));
    assert_eq!(owner.ask(&mut client, "GET", "/api/me", None).await.status, 401);
    site.stop().await;
}

/// A write without its mark, or from another origin, does nothing; a read needs neither. The console answers to its own
/// host alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_come_from_the_consoles_own_pages() {
    let site = Site::start().await;
    let owner = site.member(Role::Owner);
    let cookie = format!("__Host-sid={}", owner.sid);
    let workspace = site.workspace().to_string();
    let mut client = site.client().await;
    for route in routes::all().filter(|it| it.is_console() && is_quick(it)) {
        let own = path(route, &workspace);
        let mut send = async |more: &[(&str, &str)], body: &[u8]| {
            let headers: Vec<(&str, &str)> = [("cookie", cookie.as_str())].iter().chain(more).copied().collect();
            client.ask(route.method.as_str(), &own, &headers, body).await
        };
        let host = ("host", "gate.example.com");
        let got = send(&[("host", "elsewhere.example"), ("x-svc-csrf", "1")], b"").await;
        assert_eq!((got.status, got.kind().as_str()), (403, "forbidden"), "{}", route.path);
        if !route.is_write() {
            continue;
        }
        for more in [
            &[host][..],
            &[host, ("x-svc-csrf", "0")],
            &[host, ("x-svc-csrf", "1"), ("origin", "https://evil.example")],
            &[host, ("x-svc-csrf", "1"), ("origin", "null")],
            &[host, ("x-svc-csrf", "1"), ("origin", "http://gate.example.com")],
        ] {
            let got = send(more, NOTHING.as_bytes()).await;
            assert_eq!((got.status, got.kind().as_str()), (403, "csrf"), "{} {more:?}", route.path);
        }
        let form = [host, ("x-svc-csrf", "1"), ("origin", BASE_URL), ("content-type", "text/plain")];
        if route.request.is_some() {
            let got = send(&form, NOTHING.as_bytes()).await;
            assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["content-type".into()]), "{}", route.path);
        }
    }
    site.stop().await;
}

/// A parameter that a list, a report or evidence does not have is named, with those that it has: a misspelt filter would be none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_there_are_not_are_refused() {
    let site = Site::start().await;
    let owner = site.member(Role::Owner);
    let (admin, workspace) = (bearer(&site.key(KeyScope::Admin)), site.workspace().to_string());
    let mut client = site.client().await;
    let mut asked = 0;
    for route in routes::all().filter(|it| !it.is_write() && !it.query.is_empty()) {
        let own = format!("{}?agentID=x", path(route, &workspace));
        let got = match route.auth {
            Auth::Session | Auth::Member(_) => owner.ask(&mut client, "GET", &own, None).await,
            Auth::Token(scope) => client.get(&own, &site.token(&[scope])).await,
            Auth::WorkspaceAdmin => client.ask("GET", &own, &[("authorization", &admin)], b"").await,
            Auth::Open | Auth::Agent | Auth::McpAgent | Auth::Workspace | Auth::Payer | Auth::Signature => continue,
        };
        asked += 1;
        assert_eq!(got.refusal(), (400, "invalid_request".into(), vec!["agentID".into()]), "{}", route.path);
        let message = got.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(route.query.iter().all(|it| message.contains(&format!("`{it}`"))), "{message}");
    }
    assert!(asked > 40, "{asked}");
    site.stop().await;
}

/// Every machine route lets in the tokens of its scope and no other credential.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_machine_route_takes_its_own_scope() {
    let site = Site::start().await;
    let agent = site.agent(&[OFFICE]);
    let (admin, inference) = (site.key(KeyScope::Admin), site.key(KeyScope::Inference));
    let tokens: Vec<(TokenScope, String)> = TokenScope::ALL.iter().map(|it| (*it, site.token(&[*it]))).collect();
    let mut client = site.client().await;
    for route in routes::all() {
        let own = path(route, "");
        let body = if route.is_write() { NOTHING } else { "" };
        match route.auth {
            Auth::Token(needed) => {
                for (scope, token) in &tokens {
                    let headers = [("authorization", &*bearer(token))];
                    let got = client.ask(route.method.as_str(), &own, &headers, body.as_bytes()).await;
                    if *scope == needed {
                        assert!(![401, 403, 500].contains(&got.status), "{}: {}", route.path, got.text());
                    } else {
                        assert_eq!((got.status, got.kind().as_str()), (403, "missing_scope"), "{}", route.path);
                    }
                }
                for other in [&agent.key, &admin, &inference] {
                    let headers = [("authorization", &*bearer(other))];
                    let got = client.ask(route.method.as_str(), &own, &headers, body.as_bytes()).await;
                    assert_eq!((got.status, got.kind().as_str()), (401, "unauthenticated"), "{}", route.path);
                }
                let unknown = bearer(&format!("ims_{}", "A".repeat(43)));
                let headers = [("authorization", &*unknown)];
                let got = client.ask(route.method.as_str(), &own, &headers, body.as_bytes()).await;
                assert_eq!((got.status, got.kind().as_str()), (401, "invalid_token"), "{}", route.path);
            }
            Auth::WorkspaceAdmin => {
                for (key, status, kind) in [(&inference, 403, "missing_scope"), (&agent.key, 403, "missing_scope")] {
                    let headers = [("authorization", &*bearer(key))];
                    let got = client.ask(route.method.as_str(), &own, &headers, body.as_bytes()).await;
                    assert_eq!((got.status, got.kind().as_str()), (status, kind), "{}", route.path);
                }
                let headers = [("authorization", &*bearer(&admin))];
                let got = client.ask(route.method.as_str(), &own, &headers, body.as_bytes()).await;
                assert!(![401, 403, 500].contains(&got.status), "{}: {}", route.path, got.text());
            }
            Auth::Open
            | Auth::Agent
            | Auth::McpAgent
            | Auth::Workspace
            | Auth::Payer
            | Auth::Session
            | Auth::Signature
            | Auth::Member(_) => {}
        }
    }
    site.stop().await;
}

/// A token ends when it says, and answers so many requests a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_end_and_have_a_rate() {
    let site = Site::with(|plan| plan.config.limits.token_per_minute = 2).await;
    let (token, other) = (site.token(&TokenScope::ALL), site.token(&TokenScope::ALL));
    let mut client = site.client().await;
    for _ in 0..2 {
        assert_eq!(client.get("/v1/admin/agents", &token).await.status, 200);
    }
    let got = client.get("/v1/admin/agents", &token).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"));
    assert!((1..=60).contains(&got.header("retry-after").unwrap().parse::<u32>().unwrap()));
    // Nobody else is told of it.
    assert_eq!(client.get("/v1/admin/agents", &other).await.status, 200);
    site.shift(Span::seconds(90 * 24 * 3_600 - 1));
    assert_eq!(client.get("/v1/admin/agents", &other).await.status, 200);
    site.shift(Span::seconds(1));
    let got = client.get("/v1/admin/agents", &other).await;
    assert_eq!((got.status, got.kind().as_str()), (401, "token_expired"));
    site.stop().await;
}

/// Signing in is tried so often a minute from one address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signing_in_has_a_rate() {
    let site = Site::with(|plan| plan.config.limits.sign_in_per_minute = 2).await;
    let mut client = site.client().await;
    let body = json!({ "token": format!("sil_{}", "A".repeat(43)) });
    for _ in 0..2 {
        assert_eq!(ask(&mut client, None, "POST", "/api/sign-in/link", Some(&body)).await.status, 401);
    }
    let got = ask(&mut client, None, "POST", "/api/sign-in/link", Some(&body)).await;
    assert_eq!((got.status, got.kind().as_str()), (429, "rate_limited"));
    site.stop().await;
}
