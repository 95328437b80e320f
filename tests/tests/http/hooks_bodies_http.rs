//! Bodies that are to be signed, over real sockets: what is nobody's is told before its body where its head shows no signature, and
//! nothing tells beforehand whether somebody could have made one.

use serde_json::json;
use svc_core::state::edge::{ConfigChange, IntegrationKind, signature};
use svc_tests::receiver::{SECRET, connect_kind};
use svc_tests::site::Site;

const HEADS: [(&str, &str); 6] = [
    ("issuer", "svc-signature"),
    ("stripe", "stripe-signature"),
    ("github", "x-hub-signature-256"),
    ("slack", "x-slack-signature"),
    ("relay", "svc-signature"),
    ("billing", "stripe-signature"),
];

/// A request that waits to be asked for its body gets its refusal instead where it shows no signature, whether or not there is an
/// integration; where it shows one it is asked for its body, whether or not somebody is there who could have made it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_without_a_signature_is_not_asked_for() {
    let site = Site::start().await;
    for kind in [IntegrationKind::Issuer, IntegrationKind::Github] {
        connect_kind(&site, kind, ConfigChange::default());
    }
    let head = |kind: &str, headers: &str| {
        let wid = if kind == "billing" { String::new() } else { format!("/{}", site.workspace()) };
        format!(
            "POST /hooks/{kind}{wid} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n{headers}\r\n"
        )
    };
    for (kind, header) in HEADS {
        let mut client = site.client().await;
        client.send(head(kind, "").as_bytes()).await;
        let bare = client.hear(false).await.unwrap();
        assert_eq!((bare.status, bare.kind()), (401, "unauthenticated".to_owned()), "{kind}");
        let mut client = site.client().await;
        client.send(head(kind, &format!("{header}: t=1,v1=00\r\n")).as_bytes()).await;
        assert_eq!(client.hear(false).await.unwrap().status, 100, "{kind}");
        client.send(b"{}").await;
        let unfit = client.hear(false).await.unwrap();
        assert_eq!(
            (unfit.status, unfit.json()["error"]["message"].clone()),
            (401, bare.json()["error"]["message"].clone())
        );
    }
    let mut client = site.client().await;
    client.send(head("ssf", "content-type: application/json\r\n").as_bytes()).await;
    assert_eq!(client.hear(false).await.unwrap().status, 400);
    site.stop().await;
}

/// An address that was refused too often is told of its rate before its body, where that shows no signature.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_told_before_a_body() {
    let site = Site::with(|plan| plan.config.limits.gateway_per_minute = 1).await;
    for status in [401, 429] {
        let mut client = site.client().await;
        let head =
            "POST /hooks/billing HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
        client.send(head.as_bytes()).await;
        let got = client.hear(false).await.unwrap();
        assert_eq!((got.status, got.header("retry-after").is_some()), (status, status == 429));
    }
    site.stop().await;
}

/// Events of one integration count for themselves: a code host that sends too many keeps no charge from being answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_integration_takes_no_rate_from_another() {
    let site = Site::with(|plan| plan.config.limits.gateway_per_minute = 2).await;
    for kind in [IntegrationKind::Issuer, IntegrationKind::Relay] {
        connect_kind(&site, kind, ConfigChange::default());
    }
    let (mut client, wid) = (site.client().await, site.workspace());
    let mut sent = 0;
    let mut send = async |kind: &str| {
        sent += 1;
        let body = json!({ "type": "ping", "id": format!("evt_{sent}") }).to_string();
        let signed = signature(site.now(), body.as_bytes(), [SECRET.as_bytes()]);
        let path = format!("/hooks/{kind}/{wid}");
        client.ask("POST", &path, &[("svc-signature", &signed)], body.as_bytes()).await.status
    };
    for _ in 0..2 {
        assert_ne!(send("relay").await, 429);
    }
    assert_eq!(send("relay").await, 429);
    assert_eq!((send("issuer").await, send("issuer").await, send("issuer").await), (200, 200, 429));
    site.stop().await;
}
