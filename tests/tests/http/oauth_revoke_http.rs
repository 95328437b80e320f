//! Clients that give their tokens back and have to show who they are.

use serde_json::json;
use svc_tests::oauth::{flat, post, refused, register};
use svc_tests::site::Site;

/// A client that has a secret is told where it did not show it, and its token goes on: else it would take it for revoked.
#[tokio::test]
async fn a_client_with_a_secret_shows_it_to_revoke() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let wish =
        json!({ "redirect_uris": ["http://localhost/callback"], "token_endpoint_auth_method": "client_secret_post" });
    let made = register(&mut client, &wish).await.made();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    let (id, secret) = (text("client_id"), text("client_secret"));
    for shown in [None, Some("wrong")] {
        let mut members = vec![("token", "art_unknown"), ("client_id", id.as_str())];
        members.extend(shown.map(|it| ("client_secret", it)));
        let got = post(&mut client, "/oauth/revoke", &members, &[]).await;
        assert_eq!(flat(&got), refused(401, "invalid_client"), "{shown:?}");
    }
    let members = [("token", "art_unknown"), ("client_id", id.as_str()), ("client_secret", secret.as_str())];
    assert_eq!(post(&mut client, "/oauth/revoke", &members, &[]).await.ok(), json!({}));
}
