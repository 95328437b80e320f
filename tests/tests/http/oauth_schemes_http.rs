//! Clients that are sent back to by a scheme of their own.

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
