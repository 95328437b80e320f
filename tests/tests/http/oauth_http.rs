//! OAuth 2.1 over a real socket: what clients find, registration, consent, tokens, and every misuse of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::people::Role;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::text::Note;
use svc_tests::oauth::{
    HOST, REDIRECT, Scene, VERIFIER, challenge, code, connect, decide, exchange, flat, form, hidden, led, open, post,
    public, refresh, refused, register, tokens, wish, works,
};
use svc_tests::requests::{OFFICE, payment};
use svc_tests::site::Site;

async fn connections(scene: &mut Scene) -> Vec<Value> {
    let path = format!("/api/w/{}/connections", scene.site.workspace());
    scene.owner.ask(&mut scene.client, "GET", &path, None).await.ok()["data"].as_array().unwrap().clone()
}

/// Every place where clients look for metadata has it, with the issuer unchanged.
#[tokio::test]
async fn clients_find_the_metadata_wherever_they_look() {
    let site = Site::start().await;
    let mut client = site.client().await;
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
    ] {
        let found = client.ask("GET", path, &[], b"").await.ok();
        assert_eq!(found["issuer"], BASE_URL, "{path}");
        assert_eq!(found["authorization_endpoint"], format!("{BASE_URL}/oauth/authorize"));
        assert_eq!(found["token_endpoint"], format!("{BASE_URL}/oauth/token"));
        assert_eq!(found["registration_endpoint"], format!("{BASE_URL}/oauth/register"));
        assert_eq!(found["revocation_endpoint"], format!("{BASE_URL}/oauth/revoke"));
        assert_eq!(found["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(found["grant_types_supported"], json!(["authorization_code", "refresh_token"]));
        assert_eq!(found["authorization_response_iss_parameter_supported"], true);
        assert_eq!(found["client_id_metadata_document_supported"], true);
        assert_eq!(
            found["token_endpoint_auth_methods_supported"],
            json!(["none", "client_secret_post", "client_secret_basic"])
        );
    }
    for (path, resource) in [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/proxy/crm", "/mcp/proxy/crm")] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let found = client.ask("GET", &path, &[], b"").await.ok();
        assert_eq!(found["resource"], format!("{BASE_URL}{resource}"));
        assert_eq!(found["authorization_servers"], json!([BASE_URL]));
        assert_eq!(found["scopes_supported"], json!(["svc:agent"]));
        assert_eq!(found["bearer_methods_supported"], json!(["header"]));
    }
    for path in ["/.well-known/oauth-protected-resource/mcp/proxy/CRM!", "/.well-known/oauth-authorization-server/x"] {
        assert_eq!(client.ask("GET", path, &[], b"").await.status, 404, "{path}");
    }
}

/// A whole way: registration, consent, code, tokens, use, renewal, the end; each answer as clients need it.
#[tokio::test]
async fn the_whole_way_works() {
    let mut scene = Scene::new().await;
    let challenge = challenge(VERIFIER);
    let page = open(&mut scene.client, Some(&scene.owner), &wish(&scene.id, &challenge)).await;
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self' http://localhost:51645;"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && policy.contains("default-src 'none'"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let text = page.text();
    assert!(
        text.contains("Desk") && text.contains("localhost") && text.contains(&scene.agent.id.to_string()),
        "{text}"
    );
    assert!(!text.contains("<script"), "{text}");
    let (request, agent) = (hidden(&text, "request"), scene.agent.id.to_string());
    let said = [("request", request.as_str()), ("agentId", agent.as_str()), ("choice", "allow")];
    let got = decide(&mut scene.client, &scene.owner, &said, Some(BASE_URL)).await;
    assert_eq!(led(&got, "state").as_deref(), Some("a b&c"));
    assert_eq!(led(&got, "iss").as_deref(), Some(BASE_URL));
    assert!(got.header("location").unwrap().starts_with(REDIRECT));
    let code = led(&got, "code").unwrap();
    let got = exchange(&mut scene.client, &scene.id, &code, &[]).await;
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let body = got.clone().ok();
    assert_eq!(
        (&body["token_type"], &body["expires_in"], &body["scope"]),
        (&json!("Bearer"), &json!(3600), &json!("svc:agent"))
    );
    let first = tokens(&got);
    assert!(first.access.starts_with("aat_") && first.access.len() == 47, "{}", first.access);
    assert!(first.refresh.starts_with("art_") && first.refresh.len() == 47, "{}", first.refresh);
    assert_eq!(works(&mut scene, &first.access).await, 200);
    let second = tokens(&refresh(&mut scene.client, &scene.id, &first.refresh).await);
    assert_eq!((works(&mut scene, &first.access).await, works(&mut scene, &second.access).await), (401, 200));
    let found = connections(&mut scene).await;
    assert_eq!(found.len(), 1);
    assert_eq!(
        (&found[0]["clientName"], &found[0]["redirectHost"], &found[0]["state"]),
        (&json!("Desk"), &json!("localhost"), &json!("active"))
    );
    let path = format!("/api/w/{}/connections/{}", scene.site.workspace(), found[0]["id"].as_str().unwrap());
    let ended = scene.owner.ask(&mut scene.client, "DELETE", &path, None).await;
    assert_eq!(ended.status, 204);
    assert_eq!(works(&mut scene, &second.access).await, 401);
    let read = scene.owner.ask(&mut scene.client, "GET", &path, None).await.ok();
    assert_eq!((&read["state"], &read["endedBy"]), (&json!("ended"), &json!("revoked")));
}

/// An access token is good for an hour.
#[tokio::test]
async fn an_access_token_lives_an_hour() {
    let mut scene = Scene::new().await;
    let pair = scene.connect().await;
    scene.site.advance(Span::seconds(3_599));
    assert_eq!(works(&mut scene, &pair.access).await, 200);
    scene.site.advance(Span::seconds(1));
    let got = scene.client.authorize(&pair.access, &payment(100)).await;
    assert_eq!((got.status, got.kind().as_str()), (401, "invalid_api_key"));
}

/// Registration takes https and loopback, tells back what it kept, and makes a secret where one is asked for.
#[tokio::test]
async fn registration_takes_what_may_be_sent_to() {
    let site =
        Site::with(|plan| plan.config.allow_redirects = vec!["cursor://anysphere.cursor-mcp/oauth/callback".into()])
            .await;
    let mut client = site.client().await;
    let body = json!({
        "client_name": "Desk",
        "redirect_uris": ["https://app.example/cb", "http://127.0.0.1:33418/", "cursor://anysphere.cursor-mcp/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "client_secret_basic",
        "application_type": "native",
        "scope": "svc:agent",
    });
    let got = register(&mut client, &body).await;
    assert_eq!(got.header("cache-control"), Some("no-store"));
    let made = got.made();
    assert!(made["client_id"].as_str().unwrap().starts_with("mcp_"));
    assert!(made["client_secret"].as_str().is_some_and(|it| it.len() == 43));
    assert_eq!((&made["client_secret_expires_at"], &made["application_type"]), (&json!(0), &json!("native")));
    assert_eq!(made["redirect_uris"], body["redirect_uris"]);
    let made = register(&mut client, &json!({ "redirect_uris": ["https://app.example/cb"] })).await.made();
    assert_eq!((&made["token_endpoint_auth_method"], made.get("client_secret")), (&json!("none"), None));
    for bad in [
        "javascript:alert(1)",
        "http://app.example/cb",
        "https://user@app.example/cb",
        "https://*.example/cb",
        "https://app.example/cb#f",
        "https://äpp.example/cb",
        "cursor://other/cb",
        "",
    ] {
        let got = register(&mut client, &json!({ "redirect_uris": ["https://app.example/cb", bad] })).await;
        assert_eq!(flat(&got), refused(400, "invalid_redirect_uri"), "{bad}");
    }
    let many: Vec<String> = (0..21).map(|it| format!("https://app.example/{it}")).collect();
    for bad in [json!([]), json!("https://app.example/cb"), json!([1]), json!(many), Value::Null] {
        let got = register(&mut client, &json!({ "redirect_uris": bad })).await;
        assert_eq!(flat(&got), refused(400, "invalid_redirect_uri"), "{bad}");
    }
    for (name, bad) in [
        ("token_endpoint_auth_method", json!("private_key_jwt")),
        ("grant_types", json!(["implicit"])),
        ("grant_types", json!(["authorization_code", 5])),
        ("response_types", json!(["token"])),
        ("client_name", json!("x".repeat(101))),
        ("client_name", json!("a\u{7}b")),
        ("client_uri", json!("x".repeat(17_000))),
    ] {
        let mut body = json!({ "redirect_uris": ["https://app.example/cb"] });
        body[name] = bad;
        assert_eq!(flat(&register(&mut client, &body).await), refused(400, "invalid_client_metadata"), "{name}");
    }
    for (bad, why) in
        [("{", "EOF while parsing"), (r#"{"a":1,"a":2}"#, "the member name `a` twice"), ("[]", "must be a JSON object")]
    {
        let got = client.ask("POST", "/oauth/register", &[("host", HOST)], bad.as_bytes()).await;
        assert_eq!(flat(&got), refused(400, "invalid_client_metadata"));
        let told = got.json()["error_description"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains(why), "{told}");
    }
}

/// A bad client or redirect is a page and leads nowhere; anything else that is wrong is told to the client.
#[tokio::test]
async fn a_bad_client_or_redirect_leads_nowhere() {
    let mut scene = Scene::new().await;
    let challenge = challenge(VERIFIER);
    let right: Vec<(String, String)> =
        wish(&scene.id, &challenge).iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let changed = |name: &str, value: Option<&str>| {
        let mut all = right.clone();
        all.retain(|(known, _)| known != name);
        all.extend(value.map(|it| (name.to_owned(), it.to_owned())));
        all
    };
    for (name, value) in [
        ("client_id", None),
        ("client_id", Some("mcp_00000000000000000000000000")),
        ("client_id", Some("https://unknown.example/client.json")),
        ("redirect_uri", None),
        ("redirect_uri", Some("https://evil.example/")),
        ("redirect_uri", Some("http://localhost:51645/callback/x")),
        ("redirect_uri", Some("http://localhost:51645/callback?x")),
        ("redirect_uri", Some("http://localhost:51645/callback#x")),
        ("redirect_uri", Some("http://localhost.evil.example/callback")),
        ("redirect_uri", Some("http://127.0.0.1:51645/callback")),
        ("redirect_uri", Some("javascript:alert(1)")),
    ] {
        let all = changed(name, value);
        let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let got = open(&mut scene.client, Some(&scene.owner), &all).await;
        assert_eq!((got.status, got.header("location")), (400, None), "{name} {value:?}");
        assert!(got.text().contains("This did not work"), "{}", got.text());
    }
    for (name, value, word) in [
        ("response_type", Some("token"), "unsupported_response_type"),
        ("response_type", None, "invalid_request"),
        ("response_mode", Some("form_post"), "invalid_request"),
        ("response_mode", Some("fragment"), "invalid_request"),
        ("code_challenge", None, "invalid_request"),
        ("code_challenge", Some("short"), "invalid_request"),
        ("code_challenge_method", Some("plain"), "invalid_request"),
        ("code_challenge_method", None, "invalid_request"),
        ("scope", Some("openid"), "invalid_scope"),
        ("scope", Some("offline_access"), "invalid_scope"),
        ("scope", Some("svc:agent svc:admin"), "invalid_scope"),
        ("resource", Some("https://other.example/mcp"), "invalid_target"),
        ("resource", Some("https://gate.example.com/mcp/"), "invalid_target"),
        ("resource", Some("https://gate.example.com.evil.example/mcp"), "invalid_target"),
        ("state", Some(&"x".repeat(5_000)), "invalid_request"),
    ] {
        let all = changed(name, value);
        let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let got = open(&mut scene.client, None, &all).await;
        assert_eq!(led(&got, "error").as_deref(), Some(word), "{name}");
        assert_eq!(led(&got, "iss").as_deref(), Some(BASE_URL));
    }
    let twice = [wish(&scene.id, &challenge), vec![("state", "again")]].concat();
    assert_eq!(open(&mut scene.client, Some(&scene.owner), &twice).await.status, 400);
    for resource in ["https://gate.example.com", "https://gate.example.com/", "https://gate.example.com/mcp/proxy/crm"]
    {
        let all = changed("resource", Some(resource));
        let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(open(&mut scene.client, Some(&scene.owner), &all).await.status, 200, "{resource}");
    }
}

/// What clients add to a scope out of habit, spaces among it, is passed over, and several resources are this server each.
#[tokio::test]
async fn what_clients_ask_for_beside_is_passed_over() {
    let mut scene = Scene::new().await;
    let challenge = challenge(VERIFIER);
    let more = |added: &[(&'static str, &'static str)]| {
        let mut all: Vec<_> = wish(&scene.id, &challenge);
        all.retain(|(known, _)| !added.iter().any(|(name, _)| name == known));
        [all, added.to_vec()].concat()
    };
    let here = [("resource", "https://gate.example.com"), ("resource", "https://gate.example.com/mcp")];
    let elsewhere = [("resource", "https://gate.example.com"), ("resource", "https://other.example")];
    let (scopes, two, other) = (more(&[("scope", " svc:agent  offline_access openid")]), more(&here), more(&elsewhere));
    for right in [&scopes, &two] {
        assert_eq!(open(&mut scene.client, Some(&scene.owner), right).await.status, 200, "{right:?}");
    }
    let got = open(&mut scene.client, None, &other).await;
    assert_eq!(led(&got, "error").as_deref(), Some("invalid_target"));
}

/// The page's answer counts once, from the session that saw it, from this server's own origin, for an agent of theirs.
#[tokio::test]
async fn an_answer_cannot_be_forged() {
    let mut scene = Scene::new().await;
    let challenge = challenge(VERIFIER);
    let wish = wish(&scene.id, &challenge);
    let request = hidden(&open(&mut scene.client, Some(&scene.owner), &wish).await.text(), "request");
    let agent = scene.agent.id.to_string();
    let said = [("request", request.as_str()), ("agentId", agent.as_str()), ("choice", "allow")];
    for origin in [None, Some("null"), Some("https://evil.example"), Some("https://gate.example.com.evil.example")] {
        let got = decide(&mut scene.client, &scene.owner, &said, origin).await;
        assert_eq!(got.status, 403, "{origin:?}");
    }
    let other = scene.site.member(Role::Owner);
    assert_eq!(decide(&mut scene.client, &other, &said, Some(BASE_URL)).await.status, 409);
    let member = scene.site.member(Role::Member);
    let own = hidden(&open(&mut scene.client, Some(&member), &wish).await.text(), "request");
    let theirs = [("request", own.as_str()), ("agentId", agent.as_str()), ("choice", "allow")];
    assert_eq!(decide(&mut scene.client, &member, &theirs, Some(BASE_URL)).await.status, 404);
    for (name, value) in [("choice", "maybe"), ("agentId", "agt_00000000000000000000000000"), ("request", "other")] {
        let mut bad = said.to_vec();
        bad.retain(|(known, _)| *known != name);
        bad.push((name, value));
        let got = decide(&mut scene.client, &scene.owner, &bad, Some(BASE_URL)).await;
        assert!((400..=409).contains(&got.status), "{name}: {}", got.status);
    }
    let got = decide(&mut scene.client, &scene.owner, &said, Some(BASE_URL)).await;
    assert!(led(&got, "code").is_some());
    assert_eq!(decide(&mut scene.client, &scene.owner, &said, Some(BASE_URL)).await.status, 409);
    let request = hidden(&open(&mut scene.client, Some(&scene.owner), &wish).await.text(), "request");
    let denied = [("request", request.as_str()), ("choice", "deny")];
    let got = decide(&mut scene.client, &scene.owner, &denied, Some(BASE_URL)).await;
    assert_eq!((led(&got, "error").as_deref(), led(&got, "code")), (Some("access_denied"), None));
    assert_eq!(led(&got, "state").as_deref(), Some("a b&c"));
    let headers = [("host", "evil.example")];
    let path = format!("/oauth/authorize?{}", form(&wish));
    assert_eq!(scene.client.ask("GET", &path, &headers, b"").await.status, 403);
}

/// Whoever has agents that are all stopped is told so, and not that there are none; one that may act says how much it was given.
#[tokio::test]
async fn stopped_agents_are_told_from_none() {
    let mut scene = Scene::new().await;
    let (challenge, member) = (challenge(VERIFIER), scene.site.member(Role::Member));
    let wish = wish(&scene.id, &challenge);
    let shown = open(&mut scene.client, Some(&member), &wish).await.text();
    assert!(shown.contains("There is no agent that you may connect"), "{shown}");
    let shown = open(&mut scene.client, Some(&scene.owner), &wish).await.text();
    assert!(shown.contains("1 mandate in force"), "{shown}");
    let freeze = format!("/api/w/{}/agents/{}/freeze", scene.site.workspace(), scene.agent.id);
    scene.owner.ask(&mut scene.client, "POST", &freeze, Some(&json!({ "reason": "a look" }))).await.ok();
    let shown = open(&mut scene.client, Some(&scene.owner), &wish).await.text();
    assert!(shown.contains("Each of your agents is stopped") && !shown.contains("value=\"allow\""), "{shown}");
}

/// Whoever is not signed in signs in on the way, from a page of this server alone.
#[tokio::test]
async fn a_person_signs_in_on_the_way() {
    let mut scene = Scene::new().await;
    let (challenge, password) = (challenge(VERIFIER), json!({ "password": "correct horse battery" }));
    let set = scene.owner.ask(&mut scene.client, "POST", "/api/me/password", Some(&password)).await;
    set.ok();
    let gone = scene.client.ask("GET", "/oauth/authorize?question=none", &[("host", HOST)], b"").await;
    assert!(gone.status == 400 && gone.text().contains("keeps that question no more, or never did"), "{}", gone.text());
    let page = open(&mut scene.client, None, &wish(&scene.id, &challenge)).await;
    assert_eq!(page.status, 200);
    let cookie = page.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("__Host-form="), "{cookie}");
    let (request, next) = (hidden(&page.text(), "request"), hidden(&page.text(), "next"));
    assert!(next.starts_with("/oauth/authorize?"), "{next}");
    let said = |password: &'static str, next: &str| {
        vec![
            ("request", request.clone()),
            ("next", next.to_owned()),
            ("email", scene.owner.email.clone()),
            ("password", password.to_owned()),
        ]
    };
    let own = [("cookie", cookie.as_str()), ("origin", BASE_URL)];
    let mut client = scene.site.client().await;
    let mut send = async |members: Vec<(&str, String)>, headers: &[(&str, &str)]| {
        let members: Vec<(&str, &str)> = members.iter().map(|(name, value)| (*name, value.as_str())).collect();
        post(&mut client, "/sign-in", &members, headers).await
    };
    let right = "correct horse battery";
    for headers in [
        &[("cookie", cookie.as_str())][..],
        &[("origin", BASE_URL)],
        &[("cookie", cookie.as_str()), ("origin", "null")],
        &[("cookie", "__Host-form=other"), ("origin", BASE_URL)],
    ] {
        assert_eq!(send(said(right, &next), headers).await.status, 403, "{headers:?}");
    }
    for bad in ["https://evil.example/", "//evil.example", "/oauth/authorize", "/api/me"] {
        assert_eq!(send(said(right, bad), &own).await.status, 400, "{bad}");
    }
    // No address is so long, so no page of this server led there: nothing of it is kept.
    let long = format!("{next}&x={}", "x".repeat(svc_http::headers::URI_BYTES_MAX));
    assert_eq!(send(said(right, &long), &own).await.status, 400, "longer than any address");
    let wrong = send(said("wrong", &next), &own).await;
    assert!(wrong.status == 401 && wrong.text().contains("did not match"), "{}", wrong.text());
    assert_eq!(send(said(right, &next), &own).await.status, 403, "a form counts once");
    let again = wrong.header("set-cookie").unwrap().split(';').next().unwrap();
    let own = [("cookie", again), ("origin", BASE_URL)];
    let said = |next: &str| {
        let mut said = said(right, next);
        said[0].1 = hidden(&wrong.text(), "request");
        said
    };
    assert_eq!(send(said(&format!("{next}&state=2")), &own).await.status, 403, "it leads where its page was asked for");
    scene.site.shift(Span::minutes(9));
    let got = send(said(&next), &own).await;
    assert_eq!((got.status, got.header("location")), (303, Some(next.as_str())));
    let cookies: Vec<&str> =
        got.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.as_str()).collect();
    assert!(cookies.iter().any(|it| it.starts_with("__Host-sid=") && it.contains("HttpOnly")), "{cookies:?}");
    assert!(cookies.iter().any(|it| it.starts_with("__Host-form=;")), "{cookies:?}");
}

/// Every misuse of a code is refused, and uses it up where somebody else could have sent it.
#[tokio::test]
async fn every_misuse_of_a_code_is_refused() {
    let mut scene = Scene::new().await;
    let other = public(&mut scene.client).await;
    let wrong = "aBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    for (name, value) in [
        ("code_verifier", wrong),
        ("code_verifier", "short"),
        ("redirect_uri", "http://localhost:51645/"),
        ("redirect_uri", "http://localhost:51646/callback"),
        ("redirect_uri", "https://evil.example/"),
        ("client_id", other.as_str()),
    ] {
        let code = scene.code().await;
        let got = exchange(&mut scene.client, &scene.id, &code, &[(name, value)]).await;
        assert_eq!(flat(&got), refused(400, "invalid_grant"), "{name}");
        let got = exchange(&mut scene.client, &scene.id, &code, &[]).await;
        assert_eq!(flat(&got), refused(400, "invalid_grant"), "used up by {name}");
    }
    let secret =
        json!({ "redirect_uris": ["http://localhost/callback"], "token_endpoint_auth_method": "client_secret_post" });
    let secret = register(&mut scene.client, &secret).await.made();
    let stranger = ["mcp_00000000000000000000000000", secret["client_id"].as_str().unwrap()];
    for id in stranger {
        let code = scene.code().await;
        let got = exchange(&mut scene.client, &scene.id, &code, &[("client_id", id)]).await;
        assert_eq!(flat(&got), refused(401, "invalid_client"), "{id}");
        let got = exchange(&mut scene.client, &scene.id, &code, &[]).await;
        assert_eq!(flat(&got), refused(400, "invalid_grant"), "used up by {id}");
    }
    let none = exchange(&mut scene.client, &scene.id, "", &[("code_verifier", ""), ("redirect_uri", "")]).await;
    let told = "code_verifier is required; code is required; redirect_uri is required";
    assert_eq!(none.json()["error_description"], told);
    let code = scene.code().await;
    for (name, value, status, word) in [
        ("code_verifier", "", 400, "invalid_request"),
        ("code", "", 400, "invalid_request"),
        ("redirect_uri", "", 400, "invalid_request"),
        ("client_id", "", 401, "invalid_client"),
        ("client_secret", "x", 401, "invalid_client"),
        ("grant_type", "", 400, "invalid_request"),
        ("grant_type", "password", 400, "unsupported_grant_type"),
        ("grant_type", "client_credentials", 400, "unsupported_grant_type"),
        ("resource", "https://other.example/mcp", 400, "invalid_target"),
        ("scope", "openid", 400, "invalid_scope"),
    ] {
        let got = exchange(&mut scene.client, &scene.id, &code, &[(name, value)]).await;
        assert_eq!(flat(&got), refused(status, word), "{name}={value}");
    }
    let pair = tokens(&exchange(&mut scene.client, &scene.id, &code, &[]).await);
    let got = exchange(&mut scene.client, &scene.id, &code, &[("code_verifier", wrong)]).await;
    assert_eq!((flat(&got), works(&mut scene, &pair.access).await), (refused(400, "invalid_grant"), 200));
    let got = exchange(&mut scene.client, &scene.id, &code, &[]).await;
    assert_eq!((flat(&got), works(&mut scene, &pair.access).await), (refused(400, "invalid_grant"), 401));
    assert_eq!(connections(&mut scene).await[0]["endedBy"], "code_reuse");
    let code = scene.code().await;
    scene.site.advance(Span::minutes(5));
    let got = exchange(&mut scene.client, &scene.id, &code, &[]).await;
    assert_eq!(flat(&got), refused(400, "invalid_grant"));
}

/// Forms come as forms, once, and never in the address.
#[tokio::test]
async fn tokens_are_never_in_an_address() {
    let mut scene = Scene::new().await;
    let pair = scene.connect().await;
    let members = [("grant_type", "refresh_token"), ("refresh_token", pair.refresh.as_str()), ("client_id", &scene.id)];
    let got = post(&mut scene.client, &format!("/oauth/token?{}", form(&members)), &members, &[]).await;
    assert_eq!(flat(&got), refused(400, "invalid_request"));
    let json = json!({ "grant_type": "refresh_token" }).to_string();
    let headers = [("host", HOST), ("content-type", "application/json")];
    let got = scene.client.ask("POST", "/oauth/token", &headers, json.as_bytes()).await;
    assert_eq!(flat(&got), refused(400, "invalid_request"));
    let twice = [&members[..], &[("grant_type", "refresh_token")]].concat();
    assert_eq!(flat(&post(&mut scene.client, "/oauth/token", &twice, &[]).await), refused(400, "invalid_request"));
    let path = format!("/v1/actions/authorize?access_token={}", pair.access);
    let got = scene.client.ask("POST", &path, &[], payment(100).to_string().as_bytes()).await;
    assert_eq!(got.status, 401);
    assert!(refresh(&mut scene.client, &scene.id, &pair.refresh).await.status == 200, "none of it used the token up");
}

/// A used refresh token ends the connection, whichever client shows it, also after a restart of the client's memory; the words are
/// RFC 6749's.
#[tokio::test]
async fn a_used_refresh_token_ends_the_connection() {
    for is_own in [true, false] {
        let mut scene = Scene::new().await;
        let first = scene.connect().await;
        let other = public(&mut scene.client).await;
        let got = refresh(&mut scene.client, &other, &first.refresh).await;
        assert_eq!((flat(&got), works(&mut scene, &first.access).await), (refused(400, "invalid_grant"), 200));
        let second = tokens(&refresh(&mut scene.client, &scene.id, &first.refresh).await);
        let whose = if is_own { &scene.id } else { &other };
        let got = refresh(&mut scene.client, whose, &first.refresh).await;
        assert_eq!((flat(&got), works(&mut scene, &second.access).await), (refused(400, "invalid_grant"), 401));
        assert_eq!(flat(&refresh(&mut scene.client, &scene.id, &second.refresh).await), refused(400, "invalid_grant"));
        let found = connections(&mut scene).await;
        assert_eq!(found[0]["endedBy"], "reuse");
        assert!(found[0]["note"].as_str().unwrap().contains("connect again"));
    }
}

/// Sixty-four renewals at once with one token: at most one succeeds, and the connection ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_renewals_end_the_connection() {
    let mut scene = Scene::new().await;
    let pair = scene.connect().await;
    let mut racing = Vec::new();
    for _ in 0..64 {
        let (mut client, id, token) = (scene.site.client().await, scene.id.clone(), pair.refresh.clone());
        racing.push(tokio::spawn(async move { refresh(&mut client, &id, &token).await }));
    }
    let mut given = Vec::new();
    for racer in racing {
        let got = racer.await.unwrap();
        match got.status {
            200 => given.push(tokens(&got)),
            _ => assert_eq!(flat(&got), refused(400, "invalid_grant")),
        }
    }
    assert!(given.len() <= 1, "{}", given.len());
    for pair in given {
        assert_eq!(works(&mut scene, &pair.access).await, 401);
        assert_eq!(flat(&refresh(&mut scene.client, &scene.id, &pair.refresh).await), refused(400, "invalid_grant"));
    }
    assert_eq!(connections(&mut scene).await[0]["endedBy"], "reuse");
}

/// A client with a secret shows it in the one or the other place, and not in both.
#[tokio::test]
async fn clients_with_a_secret_show_it() {
    let mut scene = Scene::new().await;
    for method in ["client_secret_post", "client_secret_basic"] {
        let body = json!({ "redirect_uris": ["http://localhost/callback"], "token_endpoint_auth_method": method });
        let made = register(&mut scene.client, &body).await.made();
        let (id, secret) = (made["client_id"].as_str().unwrap(), made["client_secret"].as_str().unwrap());
        let code = code(&mut scene.client, &scene.owner, id, &scene.agent.id.to_string()).await;
        let members = [
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        let basic = |secret: &str| format!("Basic {}", STANDARD.encode(format!("{id}:{secret}")));
        let named = [&members[..], &[("client_id", id)]].concat();
        let wrong = [&named[..], &[("client_secret", "wrong")]].concat();
        assert_eq!(flat(&post(&mut scene.client, "/oauth/token", &named, &[]).await), refused(401, "invalid_client"));
        assert_eq!(flat(&post(&mut scene.client, "/oauth/token", &wrong, &[]).await), refused(401, "invalid_client"));
        let header = basic("wrong");
        let got = post(&mut scene.client, "/oauth/token", &members, &[("authorization", &header)]).await;
        assert_eq!(flat(&got), refused(401, "invalid_client"));
        let header = basic(secret);
        let both = [&named[..], &[("client_secret", secret)]].concat();
        let got = post(&mut scene.client, "/oauth/token", &both, &[("authorization", &header)]).await;
        assert_eq!(flat(&got), refused(400, "invalid_request"));
        let got = if method == "client_secret_post" {
            post(&mut scene.client, "/oauth/token", &both, &[]).await
        } else {
            post(&mut scene.client, "/oauth/token", &members, &[("authorization", &header)]).await
        };
        assert!(got.status == 200, "{method}: {}", got.text());
    }
}

/// A freeze ends the agent's connections before anybody can be told otherwise; a leaving person ends theirs.
#[tokio::test]
async fn connections_end_with_agent_and_person() {
    let mut scene = Scene::new().await;
    let pair = scene.connect().await;
    let admin = scene.site.member(Role::Admin);
    let (id, agent) = (scene.id.clone(), scene.site.agent(&[OFFICE]));
    let theirs = connect(&mut scene.client, &admin, &id, &agent.id.to_string()).await;
    let reason = Note::parse("a test stops it").unwrap();
    let (workspace, frozen) = (scene.site.workspace(), scene.agent.id);
    scene.site.gate.execute(FreezeAgent { workspace, agent: frozen, by: By::Program, reason }).unwrap();
    let got = scene.client.authorize(&pair.access, &payment(100)).await;
    assert_eq!((got.status, got.kind().as_str()), (401, "invalid_api_key"));
    assert_eq!(flat(&refresh(&mut scene.client, &scene.id, &pair.refresh).await), refused(400, "invalid_grant"));
    assert_eq!(works(&mut scene, &theirs.access).await, 200);
    let path = format!("/api/w/{workspace}/members/{}", admin.principal);
    assert_eq!(scene.owner.ask(&mut scene.client, "DELETE", &path, None).await.status, 204);
    assert_eq!(works(&mut scene, &theirs.access).await, 401);
    scene.site.advance(Span::seconds(1));
    let mut ended: Vec<String> =
        connections(&mut scene).await.iter().map(|it| it["endedBy"].as_str().unwrap_or_default().to_owned()).collect();
    ended.sort();
    assert_eq!(ended, ["frozen", "left"]);
}
