//! How often documents of clients are read, and how long they are kept.

use svc_tests::oauth::REDIRECT;
use svc_tests::receiver::{Receiver, Reply};

use super::oauth_clients_http::{PLACE, document, leads_nowhere, page, site_with};

/// A stranger has this server read documents no more often than they may register clients; one that is kept is not read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_read_at_a_rate() {
    let (site, _) = site_with(|plan| plan.config.limits.sign_in_per_minute = 2).await;
    let (mut client, mut desk) = (site.client().await, Receiver::start_tls().await);
    let id = |name: &str| format!("https://{PLACE}:{}/{name}.json", desk.address.port());
    let (kept, broken, other) = (id("kept"), id("broken"), id("other"));
    desk.answer([Reply::Document("max-age=600", document(&kept).to_string()), Reply::Status(404)]);
    assert_eq!(page(&mut client, None, &kept, REDIRECT).await.status, 200);
    leads_nowhere(&page(&mut client, None, &broken, REDIRECT).await, "it is none");
    for _ in 0..2 {
        desk.next().await;
    }
    for id in [&broken, &other] {
        let got = page(&mut client, None, id, REDIRECT).await;
        assert_eq!(got.status, 429, "{}", got.text());
        assert!(got.header("retry-after").is_some());
    }
    assert_eq!(page(&mut client, None, &kept, REDIRECT).await.status, 200);
    assert!(desk.is_quiet());
}

/// All that a document's sender says of keeping it counts, in however many lines, and so does the time that it was kept on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_is_kept_as_all_its_lines_say() {
    let (site, _) = site_with(|_| {}).await;
    let (mut client, mut desk) = (site.client().await, Receiver::start_tls().await);
    for (number, (cache, reads)) in
        [("max-age=600\r\ncache-control: no-store", 2), ("max-age=600\r\nage: 600", 2), ("max-age=600\r\nage: 10", 1)]
            .into_iter()
            .enumerate()
    {
        let id = format!("https://{PLACE}:{}/{number}.json", desk.address.port());
        desk.answer(vec![Reply::Document(cache, document(&id).to_string()); reads]);
        for _ in 0..2 {
            assert_eq!(page(&mut client, None, &id, REDIRECT).await.status, 200, "{cache}");
        }
        for _ in 0..reads {
            desk.next().await;
        }
        assert!(desk.is_quiet(), "{cache}");
    }
    site.stop().await;
}
