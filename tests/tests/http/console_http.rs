//! The console as it is served: one page at its addresses, its files at theirs, its own host alone, and nothing of anybody's in it.

use std::collections::BTreeSet;

use svc_core::state::people::Role;
use svc_core::testing::world::BASE_URL;
use svc_tests::client::{Client, Got};
use svc_tests::people::Person;
use svc_tests::site::Site;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

fn host() -> (&'static str, &'static str) {
    ("host", BASE_URL.trim_start_matches("https://"))
}

async fn get(client: &mut Client, path: &str, headers: &[(&str, &str)]) -> Got {
    client.ask("GET", path, &[&[host()], headers].concat(), b"").await
}

/// What a page at this path names, as paths from the root.
fn named(page: &Got, path: &str) -> BTreeSet<String> {
    let text = page.text();
    let links = text.split(['"']).filter(|it| it.contains("assets/"));
    let at = url::Url::parse(BASE_URL).unwrap().join(path).unwrap();
    links.map(|it| at.join(it).unwrap().path().to_owned()).collect()
}

/// Every address of the console answers the one page, to whoever asks, under a policy that lets its own files alone run; and what
/// it names is there.
#[tokio::test]
async fn one_page_is_at_every_address() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let person: Person = site.member(Role::Owner);
    let (workspace, mut assets) = (site.workspace(), BTreeSet::new());
    let paths = ["", "/agents", "/agents/agt_x", "/activity?status=denied", "/stop", "/approvals"];
    let paths = paths.iter().map(|it| format!("/w/{workspace}{it}")).chain(["/".to_owned()]);
    for path in paths {
        let page = get(&mut client, &path, &[("accept", "text/html")]).await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{path}");
        assert_eq!(page.header("content-security-policy"), Some(POLICY), "{path}");
        assert_eq!((page.header("cache-control"), page.header("x-frame-options")), (Some("no-store"), Some("DENY")));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        let text = page.text();
        assert!(!text.contains(&workspace.to_string()) && !text.contains("<style") && !text.contains(" on"), "{text}");
        let own = person.ask(&mut client, "GET", &path, None).await;
        assert_eq!(own.text(), text, "it is the same for everybody");
        assets.extend(named(&page, &path));
    }
    assert!(assets.len() > 10, "{assets:?}");
    for path in &assets {
        assert_eq!(get(&mut client, path, &[]).await.status, 200, "{path}");
    }
    site.stop().await;
}

/// An address with a slash after it, as people write them, leads to the page; what is no page is told as before.
#[tokio::test]
async fn a_slash_after_a_page_leads_to_it() {
    let site = Site::start().await;
    let mut client = site.client().await;
    for (path, to) in [("/w/wsp_x/", "../wsp_x"), ("/w/wsp_x/activity/?status=denied", "../activity?status=denied")] {
        let got = get(&mut client, path, &[("accept", "text/html")]).await;
        assert_eq!((got.status, got.header("location"), got.text().as_str()), (308, Some(to), ""), "{path}");
        let at = url::Url::parse(BASE_URL).unwrap().join(path).unwrap().join(to).unwrap();
        assert_eq!(get(&mut client, &at[url::Position::BeforePath..], &[]).await.status, 200, "{at}");
        assert_eq!(client.ask("POST", path, &[host()], b"").await.status, 404, "{path}");
    }
    assert_eq!(get(&mut client, "/api/me/", &[("accept", "text/html")]).await.kind(), "route_not_found");
    site.stop().await;
}

/// A file is kept for good, sent packed to who takes it so, and not again to who has it.
#[tokio::test]
async fn files_are_kept_and_packed() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let page = get(&mut client, "/", &[]).await;
    for (path, kind) in named(&page, "/").iter().map(|it| (it, it.rsplit_once('.').unwrap().1)) {
        let plain = get(&mut client, path, &[]).await;
        let kinds =
            [("js", "text/javascript; charset=utf-8"), ("css", "text/css; charset=utf-8"), ("svg", "image/svg+xml")];
        let kind = kinds.iter().find(|it| it.0 == kind).unwrap().1;
        assert_eq!(plain.header("content-type"), Some(kind), "{path}");
        assert_eq!(plain.header("cache-control"), Some("public, max-age=31536000, immutable"));
        assert_eq!((plain.header("vary"), plain.header("content-encoding")), (Some("accept-encoding"), None));
        let packed = get(&mut client, path, &[("accept-encoding", "br, gzip")]).await;
        assert_eq!((packed.header("content-encoding"), packed.header("vary")), (Some("gzip"), Some("accept-encoding")));
        let length = u32::try_from(plain.body.len()).unwrap().to_le_bytes();
        assert!(packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.ends_with(&length), "RFC 1952 part 2.3");
        assert_ne!(packed.header("etag"), plain.header("etag"), "what differs has another name");
        let head = client.ask("HEAD", path, &[host()], b"").await;
        assert_eq!((head.status, head.header("etag")), (200, plain.header("etag")));
        for (headers, etag) in
            [(&[][..], plain.header("etag")), (&[("accept-encoding", "gzip")][..], packed.header("etag"))]
        {
            let known = [headers, &[("if-none-match", etag.unwrap())]].concat();
            let same = get(&mut client, path, &known).await;
            assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, etag), "{path}");
            let other = get(&mut client, path, &[headers, &[("if-none-match", "\"other\"")]].concat()).await;
            assert_eq!(other.status, 200);
        }
    }
    site.stop().await;
}

/// What is not there is told as that: another release's files, files and pages that nobody has, other hosts, writes.
#[tokio::test]
async fn nothing_else_is_there() {
    let site = Site::start().await;
    let mut client = site.client().await;
    let page = get(&mut client, "/", &[]).await;
    let main = named(&page, "/").into_iter().find(|it| it.ends_with("/main.js")).unwrap();
    let hash = main.split('/').nth(2).unwrap();
    let missing = ["/assets/00000000000000000000/main.js".to_owned(), format!("/assets/{hash}/none.js")];
    let pages = ["/w/wsp_x/nowhere", "/w/wsp_x/nowhere/agt_x"].map(str::to_owned);
    for path in missing.iter().chain(&pages) {
        let got = get(&mut client, path, &[]).await;
        assert_eq!(
            (got.status, got.kind(), got.header("cache-control")),
            (404, "not_found".to_owned(), Some("no-store"))
        );
    }
    for path in ["/assets/..%2f..%2fetc/passwd".to_owned(), format!("/assets/{hash}/..%2fconsole.rs")] {
        assert_eq!(get(&mut client, &path, &[]).await.status, 404, "{path}");
    }
    for path in ["/", "/w/wsp_x", "/w/wsp_x/agents", "/w/wsp_x/agents/agt_x", main.as_str()] {
        let got = client.ask("GET", path, &[("host", "evil.example")], b"").await;
        assert_eq!((got.status, got.kind()), (403, "forbidden".to_owned()), "{path}");
        assert_eq!(client.ask("POST", path, &[host()], b"").await.status, 405, "{path}");
    }
    site.stop().await;
}

/// A person whom an address leads nowhere reads so, with a way to the console and to the reference below whatever path the server is
/// reached at; a program is told in JSON, and so is whoever asks for what is no page.
#[tokio::test]
async fn a_page_that_is_none_leads_on() {
    let site = Site::start().await;
    let mut client = site.client().await;
    for path in
        ["/nowhere", "/w/wsp_x/nowhere", "/w/wsp_x/nowhere/agt_x", "/w/wsp_x/agents/agt_x/more", "/docs/nowhere"]
    {
        let got = get(&mut client, path, &[("accept", "text/html,*/*;q=0.8")]).await;
        assert_eq!((got.status, got.header("content-type")), (404, Some("text/html; charset=utf-8")), "{path}");
        let text = got.text();
        for part in ["<h1>There is no such page</h1>", "<a href=\"/\">", "<a href=\"/docs\">"] {
            assert!(text.contains(part), "{path}: {text}");
        }
        assert!(!text.contains("nowhere") && !text.contains("wsp_x"), "nothing of the request is in it: {text}");
        let told = get(&mut client, path, &[("accept", "application/json")]).await;
        assert_eq!((told.status, told.header("content-type")), (404, Some("application/json")), "{path}");
    }
    for path in ["/api/nowhere", "/v1/nowhere", "/oauth/nowhere", "/assets/nowhere"] {
        let got = get(&mut client, path, &[("accept", "text/html")]).await;
        assert_eq!((got.status, got.header("content-type")), (404, Some("application/json")), "{path}");
    }
    site.stop().await;
}
