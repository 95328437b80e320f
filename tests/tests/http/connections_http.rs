//! Connections over a real socket: who sees them, and how often their tokens are asked for.

use serde_json::json;
use svc_core::state::people::{Role, Settings};
use svc_core::value::link::Index;
use svc_tests::oauth::{VERIFIER, challenge, connect, flat, open, public, refresh, refused, register, wish};
use svc_tests::requests::{OFFICE, payment};
use svc_tests::site::Site;
use svc_tests::witness::Witness;

/// The page that asks which agent a client may act as reads very many of them on a thread of its own: while it does, the one
/// thread that serves decides all the same.
#[tokio::test]
async fn no_decision_waits_behind_the_page_that_asks() {
    let (witness, mut held) = Witness::holding(Index::AgentsOf);
    let site = Site::with(|plan| plan.witness = witness).await;
    let (mut client, mut browser) = (site.client().await, site.client().await);
    let (owner, agent) = (site.member(Role::Owner), site.agent(&[OFFICE]));
    let (id, name) = (public(&mut client).await, agent.id.to_string());
    let asking = tokio::spawn(async move {
        let challenge = challenge(VERIFIER);
        open(&mut browser, Some(&owner), &wish(&id, &challenge)).await
    });
    held.begun().await;
    assert_eq!(client.authorize(&agent.key, &payment(100)).await.ok()["decision"], json!("allow"));
    assert!(!asking.is_finished(), "the agents are still read");
    held.release();
    let page = asking.await.unwrap();
    assert!(page.status == 200 && page.text().contains(&name), "{}", page.text());
}

/// Whoever signed in before their workspace asked for a second factor is told so, as on every other route, and not that there is
/// nothing to connect.
#[tokio::test]
async fn a_session_from_before_is_told_what_is_asked_for_now() {
    let site = Site::start().await;
    let (mut client, owner) = (site.client().await, site.member(Role::Owner));
    site.agent(&[OFFICE]);
    let id = public(&mut client).await;
    let challenge = challenge(VERIFIER);
    assert_eq!(open(&mut client, Some(&owner), &wish(&id, &challenge)).await.status, 200);
    let mut settings = Settings::default();
    settings.sign_in.require_two_factor = true;
    site.change_settings(settings);
    let shown = open(&mut client, Some(&owner), &wish(&id, &challenge)).await;
    assert!(shown.status == 403 && shown.text().contains("second factor"), "{}", shown.text());
    assert!(!shown.text().contains("no agent"), "{}", shown.text());
}

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

/// One client cannot ask without end, and another is not held back by it; the word is OAuth's own.
#[tokio::test]
async fn the_token_endpoint_has_rates() {
    let site = Site::with(|plan| plan.config.limits.oauth_per_minute = 50).await;
    let mut client = site.client().await;
    let (first, second) = (public(&mut client).await, public(&mut client).await);
    for _ in 0..10 {
        assert_eq!(flat(&refresh(&mut client, &first, "art_x").await), refused(400, "invalid_grant"));
    }
    let got = refresh(&mut client, &first, "art_x").await;
    assert_eq!(flat(&got), refused(429, "temporarily_unavailable"));
    // What is told is the rate that refused, not that of the address, which has room.
    let told = ["ratelimit-limit", "ratelimit-remaining"].map(|it| got.header(it));
    assert_eq!(told, [Some("10"), Some("0")], "{got:?}");
    assert_eq!(flat(&refresh(&mut client, &second, "art_x").await), refused(400, "invalid_grant"));
    let site = Site::with(|plan| plan.config.limits.sign_in_per_minute = 1).await;
    let mut client = site.client().await;
    public(&mut client).await;
    let got = register(&mut client, &json!({ "redirect_uris": ["https://app.example/cb"] })).await;
    assert_eq!(flat(&got), refused(429, "temporarily_unavailable"));
}
