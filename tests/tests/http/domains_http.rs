//! Domains of single sign-on that do not say whose they are, as whoever runs the workspace sees them.

use serde_json::{Value, json};
use svc_core::state::people::Role;
use svc_tests::single_sign_on::{ANN, Stage, is_refused, to};

/// What is wrong with a domain stands with the integration, until somebody is linked by an address; whoever comes reads nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_domain_is_told_to_its_owners() {
    let stage = Stage::set().await;
    stage.prove();
    stage.invite(ANN, Role::Member);
    stage.invite("ann@other.example", Role::Member);
    let mut owner = stage.browser().await;
    owner.cookies.insert("__Host-sid".to_owned(), stage.site.member(Role::Owner).sid);
    let path = format!("/api/w/{}/integrations/{}", stage.site.workspace(), stage.integration.id);
    let shown = |it: &Value| it["lastError"].clone();
    assert_eq!(shown(&owner.get(&path).await.ok()), Value::Null);
    for _ in 0..2 {
        let (mut browser, got) = stage.come(stage.claims("x", "ann@other.example")).await;
        is_refused(&mut browser, &got, 401, "a domain that says nothing").await;
        assert!(!got.text().contains("other.example") && !got.text().contains("svc-sso"), "{got:?}");
        let wrong = "`other.example` does not say that it is this workspace's: `/.well-known/svc-sso-verification` could not be read: the host has no address";
        assert_eq!(shown(&owner.get(&path).await.ok()), json!(wrong));
    }
    let (_, got) = stage.come(stage.claims("ann", ANN)).await;
    assert_eq!(to(&got), "/sign-in");
    assert_eq!(shown(&owner.get(&path).await.ok()), Value::Null, "somebody was linked");
    stage.site.audit();
    stage.site.stop().await;
}

/// The provider writes the host of an address as it likes: whoever was invited is found by the name that this is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_found_however_its_host_is_written() {
    let stage = Stage::set().await;
    stage.prove();
    stage.invite(ANN, Role::Member);
    let (mut browser, got) = stage.come(stage.claims("ann", "ann@HOOKS.example.com.")).await;
    assert_eq!(to(&got), "/sign-in");
    assert_eq!(browser.me().await["email"], json!(ANN));
    stage.site.stop().await;
}
