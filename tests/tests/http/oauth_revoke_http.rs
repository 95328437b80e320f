//! Clients that give their tokens back: what ends, who is told what, and who has to show who they are.

use serde_json::json;
use svc_tests::oauth::{Scene, flat, post, public, refresh, refused, register, works};
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

/// Revoking answers the same whatever the token was, and ends what it was of.
#[tokio::test]
async fn revoking_tells_nothing() {
    let mut scene = Scene::new().await;
    let (other, id) = (public(&mut scene.client).await, scene.id.clone());
    for by_access in [true, false] {
        let pair = scene.connect().await;
        let token = if by_access { &pair.access } else { &pair.refresh };
        for (client_id, token) in [(other.as_str(), token.as_str()), (id.as_str(), "art_unknown"), ("mcp_x", token)] {
            let got =
                post(&mut scene.client, "/oauth/revoke", &[("token", token), ("client_id", client_id)], &[]).await;
            assert_eq!(got.ok(), json!({}));
            assert_eq!(works(&mut scene, &pair.access).await, 200);
        }
        // Who names no client would take the token for revoked.
        let got = post(&mut scene.client, "/oauth/revoke", &[("token", token)], &[]).await;
        assert_eq!(flat(&got), refused(401, "invalid_client"));
        assert_eq!(works(&mut scene, &pair.access).await, 200);
        let members = [("token", token.as_str()), ("token_type_hint", "nonsense"), ("client_id", &scene.id)];
        for _ in 0..2 {
            assert_eq!(post(&mut scene.client, "/oauth/revoke", &members, &[]).await.ok(), json!({}));
        }
        assert_eq!(works(&mut scene, &pair.access).await, 401);
        assert_eq!(flat(&refresh(&mut scene.client, &scene.id, &pair.refresh).await), refused(400, "invalid_grant"));
    }
}
