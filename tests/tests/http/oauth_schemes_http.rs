//! What clients register beside a name and https: schemes of their own, and what they say of themselves.

use serde_json::json;
use svc_tests::oauth::{flat, refused, register};
use svc_tests::site::Site;

/// Where Cursor is sent back to, as the guide has whoever runs the server name it.
const CURSOR: &str = "cursor://anysphere.cursor-mcp/oauth/callback";

/// Cursor registers its scheme with two redirects that are good anyway, all or none: who is refused is told by which setting they are
/// admitted, and with what the guide sets, they are.
#[tokio::test]
async fn a_scheme_is_admitted_by_the_setting_that_the_refusal_names() {
    let wish = json!({
        "client_name": "Cursor",
        "redirect_uris": [CURSOR, "https://www.cursor.com/agents/mcp/oauth/callback", "http://localhost:8787/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    });
    let site = Site::start().await;
    let got = register(&mut site.client().await, &wish).await;
    assert_eq!(flat(&got), refused(400, "invalid_redirect_uri"));
    let told = got.json();
    for member in ["error_description", "fix"] {
        assert!(told[member].as_str().unwrap().contains("oauth.allowRedirects"), "{member}: {told}");
    }
    site.stop().await;
    let guide = include_str!("../../../docs/mcp.md");
    assert!(guide.contains(&format!("SVC_OAUTH_ALLOW_REDIRECTS={CURSOR}\n")));
    let site = Site::with(|plan| plan.config.allow_redirects = vec![CURSOR.into()]).await;
    let made = register(&mut site.client().await, &wish).await.made();
    assert_eq!(made["redirect_uris"], wish["redirect_uris"]);
    site.stop().await;
}

/// What is wrong with a registration is told at once, as far as one type of error goes.
#[tokio::test]
async fn a_registration_is_told_all_that_is_wrong() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let redirects = json!({ "redirect_uris": ["http://app.example/", 5, "https://app.example/#f"] });
    let rest = json!({
        "redirect_uris": ["https://app.example/"],
        "client_name": 5,
        "grant_types": ["x"],
        "token_endpoint_auth_method": 5,
    });
    for (body, word, named) in [
        (redirects, "invalid_redirect_uri", ["redirect_uris.0 ", "redirect_uris.1 ", "redirect_uris.2 "]),
        (rest, "invalid_client_metadata", ["client_name ", "grant_types ", "token_endpoint_auth_method "]),
    ] {
        let got = register(&mut client, &body).await;
        assert_eq!(flat(&got), refused(400, word));
        let told = got.json()["error_description"].as_str().unwrap().to_owned();
        assert!(named.iter().all(|it| told.contains(it)), "{told}");
    }
    site.stop().await;
}

/// What a client says of itself is told back where it is of its form (RFC 7591 part 3.2.1); what is not is left out, and turns no
/// client away.
#[tokio::test]
async fn registration_tells_back_what_it_registered() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let keys = "https://app.example/keys.json";
    let people = json!(["desk@app.example", "https://app.example/contact"]);
    for (name, sent, kept) in [
        ("contacts", people, true),
        ("contacts", json!([]), true),
        ("contacts", json!("desk@app.example"), false),
        ("contacts", json!(["desk@app.example", 7]), false),
        ("contacts", json!(["a\u{7}b"]), false),
        ("contacts", json!([""]), false),
        ("contacts", json!(["x".repeat(255)]), false),
        ("contacts", json!(vec!["desk@app.example"; 11]), false),
        ("jwks_uri", json!(keys), true),
        ("jwks_uri", json!("http://app.example/keys.json"), false),
        ("jwks_uri", json!("https://user@app.example/keys.json"), false),
        ("jwks_uri", json!("https://app.example/keys.json#x"), false),
        ("jwks_uri", json!(format!("{keys}?{}", "x".repeat(2_048))), false),
        ("jwks_uri", json!([keys]), false),
        ("policy_uri", json!("https://app.example/policy"), true),
    ] {
        let mut body = json!({ "redirect_uris": ["https://app.example/cb"] });
        body[name] = sent.clone();
        let made = register(&mut client, &body).await.made();
        assert_eq!(made.get(name), kept.then_some(&sent), "{name} {sent}");
    }
    let both = json!({ "redirect_uris": ["https://app.example/cb"], "jwks_uri": keys, "jwks": { "keys": [] } });
    let made = register(&mut client, &both).await.made();
    assert_eq!((made.get("jwks_uri"), made.get("jwks")), (None, None));
}
