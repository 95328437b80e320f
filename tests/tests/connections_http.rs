//! Connections over a real socket: who sees them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use serde_json::json;
use svc_core::state::people::Role;
use svc_tests::oauth::{connect, public};
use svc_tests::requests::OFFICE;
use svc_tests::site::Site;

/// Members see connections of their own agents; who has no right sees none.
#[tokio::test]
async fn connections_are_seen_by_those_they_concern() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let id = public(&mut client).await;
    connect(&mut client, &owner, &id, &agent.id.to_string()).await;
    let path = format!("/api/w/{}/connections", site.workspace());
    let member = site.member(Role::Member);
    assert_eq!(member.ask(&mut client, "GET", &path, None).await.ok()["data"], json!([]));
    let found = owner.ask(&mut client, "GET", &path, None).await.ok()["data"].clone();
    assert_eq!(found.as_array().unwrap().len(), 1);
    let one = format!("{path}/{}", found[0]["id"].as_str().unwrap());
    for method in ["GET", "DELETE"] {
        assert_eq!(member.ask(&mut client, method, &one, None).await.status, 404);
    }
    let analyst = site.member(Role::Analyst);
    assert_eq!(analyst.ask(&mut client, "GET", &path, None).await.status, 403);
}
