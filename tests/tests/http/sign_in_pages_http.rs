//! The pages that a person meets on the way to connecting an agent, over a real socket: what they take, what they say where
//! something went wrong, and the way on from there.

use serde_json::json;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::people::by::By;
use svc_core::state::people::Settings;
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::text::Note;
use svc_tests::client::Got;
use svc_tests::oauth::{
    HOST, Scene, VERIFIER, challenge, cookie, decide, form, hidden, led, open, register, send, send_with, wish,
};
use svc_tests::people::code_now;
use svc_tests::site::{Plan, Site};

const PASSWORD: &str = "correct horse battery";

/// An owner with a password, an agent, a client.
async fn open_scene() -> Scene {
    let mut scene = Scene::new().await;
    let password = json!({ "password": PASSWORD });
    scene.owner.ask(&mut scene.client, "POST", "/api/me/password", Some(&password)).await.ok();
    scene
}

/// Sets up the owner's second factor: its secret and recovery codes.
async fn second_factor(scene: &mut Scene) -> (Vec<u8>, Vec<String>) {
    scene.owner.second_factor(&mut scene.client, scene.site.now()).await
}

/// The page of the second factor, with what waits for it.
async fn waiting(scene: &mut Scene) -> (Got, String) {
    let page = scene.page("").await;
    let waits = send(&mut scene.client, &page, &[("email", &scene.owner.email), ("password", PASSWORD)]).await;
    let pending = hidden(&waits.text(), "pending");
    (waits, pending)
}

/// The one field for the second factor takes a recovery code too, once, and both kinds however they are parted.
#[tokio::test]
async fn a_recovery_code_goes_where_a_code_goes() {
    let mut scene = open_scene().await;
    let (secret, codes) = second_factor(&mut scene).await;
    let (waits, pending) = waiting(&mut scene).await;
    assert!(waits.text().contains("recovery code"), "{}", waits.text());
    let typed = codes[0].replace('-', " ").to_uppercase();
    let done = send(&mut scene.client, &waits, &[("pending", &pending), ("code", &typed)]).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let (waits, pending) = waiting(&mut scene).await;
    let again = send(&mut scene.client, &waits, &[("pending", &pending), ("code", &codes[0])]).await;
    assert!(again.status == 401 && again.text().contains("did not match"), "{}", again.text());
    scene.site.shift(Span::seconds(30));
    let code = code_now(&secret, scene.site.now());
    let parted = format!(" {} {}", &code[..3], &code[3..]);
    let done = send(&mut scene.client, &again, &[("pending", &pending), ("code", &parted)]).await;
    assert_eq!(done.status, 303, "{}", done.text());
    scene.site.stop().await;
}

/// Whoever signs in by single sign-on alone is shown the way to their workspace's provider, and from there back to the question.
#[tokio::test]
async fn the_way_to_single_sign_on_is_shown() {
    let mut scene = open_scene().await;
    let mut settings = Settings::default();
    settings.sign_in.require_sso = true;
    scene.site.change_settings(settings);
    let page = scene.page("").await;
    let right = [("email", scene.owner.email.as_str()), ("password", PASSWORD)];
    let shown = send(&mut scene.client, &page, &right).await;
    assert_eq!((shown.status, cookie(&shown, "__Host-sid")), (200, None), "{}", shown.text());
    let (_, rest) = shown.text().split_once("<a href=\"").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let way = rest.split('"').next().unwrap().to_owned();
    let begin = format!("/api/sign-in/sso/{}?next=%2Foauth%2Fauthorize%3F", scene.site.workspace());
    assert!(way.starts_with(&begin), "{way}");
    let got = scene.client.ask("GET", &way, &[("host", HOST), ("accept", "text/html")], b"").await;
    assert_eq!(got.status, 404, "the workspace has no provider, and the question may be gone back to: {}", got.text());

    // A session of before, which the workspace takes no more, is shown the same way.
    let sid = format!("__Host-sid={}", scene.owner.sid);
    let refused = scene.page(&sid).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains(&format!("<a href=\"{begin}")), "{}", refused.text());

    // A question that is too long to travel waits here, and a short address travels.
    let challenge = challenge(VERIFIER);
    let long = "s".repeat(1_600);
    let asked = wish(&scene.id, &challenge).into_iter().map(|it| if it.0 == "state" { ("state", &*long) } else { it });
    let path = format!("/oauth/authorize?{}", form(&asked.collect::<Vec<_>>()));
    let refused = scene.client.ask("GET", &path, &[("host", HOST), ("cookie", &sid)], b"").await;
    let kept = format!("<a href=\"{begin}question%3D");
    assert!(refused.status == 403 && refused.text().contains(&kept), "{}", refused.text());
    scene.site.stop().await;
}

/// After five wrong codes, or five minutes, a sign-in has ended; the page says so and begins a new one.
#[tokio::test]
async fn a_sign_in_that_has_ended_begins_again() {
    let mut scene = open_scene().await;
    second_factor(&mut scene).await;
    let (mut page, pending) = waiting(&mut scene).await;
    for _ in 0..4 {
        page = send(&mut scene.client, &page, &[("pending", &pending), ("code", "0000")]).await;
        assert!(page.text().contains("did not match") && page.text().contains("one-time-code"), "{}", page.text());
    }
    let (late, other) = waiting(&mut scene).await;
    let ended = send(&mut scene.client, &page, &[("pending", &pending), ("code", "0000")]).await;
    scene.site.shift(Span::minutes(5));
    let too_late = send(&mut scene.client, &late, &[("pending", &other), ("code", "0000")]).await;
    for got in [ended, too_late] {
        assert!(got.status == 401 && got.text().contains("Begin again"), "{}", got.text());
        let waits = send(&mut scene.client, &got, &[("email", &scene.owner.email), ("password", PASSWORD)]).await;
        assert!(waits.text().contains("one-time-code"), "{}", waits.text());
    }
    scene.site.stop().await;
}

/// Two tabs of one browser each have a form that counts; whoever has signed in by the one goes on from the other.
#[tokio::test]
async fn forms_of_two_tabs_both_count() {
    let mut scene = open_scene().await;
    let first = scene.page("").await;
    let form = cookie(&first, "__Host-form").unwrap();
    let second = scene.page(&form).await;
    let (elsewhere, other) = (scene.page("").await, scene.page("").await);
    let right = [("email", scene.owner.email.as_str()), ("password", PASSWORD)];
    let done = send_with(&mut scene.client, &first, &right, &form).await;
    assert_eq!(done.status, 303, "{}", done.text());
    let sid = cookie(&done, "__Host-sid").unwrap();
    for page in [&second, &first] {
        let on = send_with(&mut scene.client, page, &right, &sid).await;
        assert_eq!((on.status, on.header("location")), (303, done.header("location")), "{}", on.text());
        assert_eq!(cookie(&on, "__Host-sid"), None, "the session that there is");
    }
    let other = cookie(&other, "__Host-form").unwrap();
    let got = send_with(&mut scene.client, &elsewhere, &right, &other).await;
    assert_eq!((got.status, cookie(&got, "__Host-sid")), (403, None), "another browser's form");
    scene.site.stop().await;
}

/// A form that was sent before or is too old leads to one that counts.
#[tokio::test]
async fn a_form_that_counts_no_more_leads_to_one_that_does() {
    let mut scene = open_scene().await;
    let (sent, old) = (scene.page("").await, scene.page("").await);
    let right = [("email", scene.owner.email.as_str()), ("password", PASSWORD)];
    send(&mut scene.client, &sent, &[("email", right[0].1), ("password", "wrong")]).await;
    let twice = send(&mut scene.client, &sent, &right).await;
    scene.site.shift(Span::minutes(10));
    let too_old = send(&mut scene.client, &old, &right).await;
    for page in [twice, too_old] {
        assert!(page.status == 403 && page.text().contains("too old"), "{}", page.text());
        assert_eq!(cookie(&page, "__Host-sid"), None);
    }
    let page = send(&mut scene.client, &old, &right).await;
    assert_eq!(send(&mut scene.client, &page, &right).await.status, 303);
    scene.site.stop().await;
}

/// An answer that cannot be taken, as the page was answered, the session ended or the agent stopped meanwhile, leads back to
/// the question; a form from elsewhere does not.
#[tokio::test]
async fn an_answer_that_is_not_taken_leads_back_to_the_question() {
    let mut scene = open_scene().await;
    let (challenge, agent) = (challenge(VERIFIER), scene.agent.id.to_string());
    let wish = wish(&scene.id, &challenge);
    let question = format!("/oauth/authorize?{}", form(&wish)).replace('&', "&amp;");
    let mut answers = Vec::new();
    for _ in 0..3 {
        let page = open(&mut scene.client, Some(&scene.owner), &wish).await.text();
        answers.push((hidden(&page, "request"), hidden(&page, "next")));
    }
    let said = |place: usize| {
        let (request, next) = &answers[place];
        [("request", request.as_str()), ("next", next.as_str()), ("agentId", agent.as_str()), ("choice", "allow")]
    };
    let leads_back = |got: &Got, status: u16, words: &str| {
        let text = got.text();
        assert_eq!(got.status, status, "{text}");
        assert!(text.contains(words) && text.contains(&format!("href=\"{question}\"")), "{text}");
    };
    let got = decide(&mut scene.client, &scene.owner, &said(0), Some(BASE_URL)).await;
    assert!(led(&got, "code").is_some());
    let twice = decide(&mut scene.client, &scene.owner, &said(0), Some(BASE_URL)).await;
    leads_back(&twice, 409, "answered already");
    let foreign = decide(&mut scene.client, &scene.owner, &said(1), Some("https://evil.example")).await;
    assert!(foreign.status == 403 && !foreign.text().contains("href"), "{}", foreign.text());
    let mut elsewhere = said(0);
    elsewhere[1].1 = "https://evil.example/";
    let elsewhere = decide(&mut scene.client, &scene.owner, &elsewhere, Some(BASE_URL)).await;
    assert!(elsewhere.status == 409 && !elsewhere.text().contains("href"), "{}", elsewhere.text());
    let (workspace, frozen, reason) = (scene.site.workspace(), scene.agent.id, Note::parse("a test").unwrap());
    scene.site.gate.execute(FreezeAgent { workspace, agent: frozen, by: By::Program, reason }).unwrap();
    let stopped = decide(&mut scene.client, &scene.owner, &said(1), Some(BASE_URL)).await;
    leads_back(&stopped, 403, "The agent is stopped.");
    scene.owner.ask(&mut scene.client, "POST", "/api/sign-out", None).await.ok();
    let ended = decide(&mut scene.client, &scene.owner, &said(2), Some(BASE_URL)).await;
    leads_back(&ended, 401, "no longer signed in");
    assert_eq!(ended.header("www-authenticate"), Some("Session"));
    scene.site.stop().await;
}

/// What a stranger wrote is text, its backticks too: in a page, and in what a form carries on.
#[tokio::test]
async fn what_strangers_wrote_is_no_markup() {
    let mut scene = open_scene().await;
    let named = json!({ "client_name": "a `b` <i>", "redirect_uris": ["http://localhost/callback"] });
    scene.id = register(&mut scene.client, &named).await.made()["client_id"].as_str().unwrap().to_owned();
    let challenge = challenge(VERIFIER);
    let path = format!("/oauth/authorize?{}&x=a`b", form(&wish(&scene.id, &challenge)));
    let page = scene.client.ask("GET", &path, &[("host", HOST)], b"").await;
    assert_eq!(hidden(&page.text(), "next"), path);
    let right = [("email", scene.owner.email.as_str()), ("password", PASSWORD)];
    let done = send(&mut scene.client, &page, &right).await;
    assert_eq!((done.status, done.header("location")), (303, Some(&*path)), "{}", done.text());
    let sid = cookie(&done, "__Host-sid").unwrap();
    let shown = scene.client.ask("GET", &path, &[("host", HOST), ("cookie", &sid)], b"").await.text();
    assert!(shown.contains("<bdi>a `b` &lt;i&gt;</bdi>"), "{shown}");
    scene.site.stop().await;
}

/// Every address that the server takes can be typed into the form, and pages speak to people of what they can do.
#[tokio::test]
async fn pages_speak_to_people() {
    let mut scene = open_scene().await;
    let mut page = scene.page("").await;
    assert!(!page.text().contains("type=\"email\"") && page.text().contains("inputmode=\"email\""), "{}", page.text());
    for _ in 0..10 {
        page = send(&mut scene.client, &page, &[("email", "jörg@example.de"), ("password", "wrong")]).await;
        assert!(page.status == 401 && page.text().contains("did not match"), "{}", page.text());
        assert_eq!(page.header("www-authenticate"), Some("Session"));
    }
    let got = send(&mut scene.client, &page, &[("email", "jörg@example.de"), ("password", "wrong")]).await;
    let seconds = got.header("retry-after").unwrap();
    assert!(got.status == 429 && !got.text().contains("retry-after"), "{}", got.text());
    assert!(got.text().contains(&format!("Wait {seconds} seconds")), "{seconds}: {}", got.text());
    let right = [("email", scene.owner.email.as_str()), ("password", PASSWORD)];
    assert_eq!(send(&mut scene.client, &got, &right).await.status, 303, "the form that says so counts");
    let bare = scene.client.ask("GET", "/oauth/authorize", &[("host", HOST)], b"").await;
    assert!(bare.status == 400 && bare.text().contains("connect again") && !bare.text().contains("errors"));
    let foreign = send_with(&mut scene.client, &page, &[], "").await;
    assert!(!foreign.text().contains("x-svc-csrf"), "{}", foreign.text());
    scene.site.stop().await;
}

/// Whoever asks for pages too often reads when to come again, on every page that is counted; a program is answered as programs are.
#[tokio::test]
async fn too_many_requests_are_told_in_a_page() {
    let limits = |plan: &mut Plan| {
        (plan.config.limits.oauth_per_minute, plan.config.limits.sign_in_per_minute) = (1, 1);
    };
    let site = Site::with(limits).await;
    let mut client = site.client().await;
    let browser = [("host", HOST), ("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];
    let program = [("host", HOST), ("accept", "*/*")];
    assert_eq!(client.ask("GET", "/sign-in", &browser, b"").await.status, 200);
    client.ask("POST", "/sign-in", &browser, b"").await;
    for (method, path) in
        [("GET", "/sign-in"), ("POST", "/sign-in"), ("GET", "/oauth/authorize"), ("POST", "/oauth/authorize")]
    {
        let got = client.ask(method, path, &browser, b"").await;
        let text = got.text();
        let seconds = got.header("retry-after").unwrap();
        assert!(got.header("content-type").unwrap().starts_with("text/html"), "{method} {path}: {text}");
        assert!(got.status == 429 && text.contains(&format!("Wait {seconds} seconds")), "{method} {path}: {text}");
        assert!(got.header("content-security-policy").is_some(), "{method} {path}");
        let got = client.ask(method, path, &program, b"").await;
        let error = got.json()["error"].clone();
        let kind = if path.starts_with("/oauth/") { &error } else { &error["type"] };
        let wanted = if path.starts_with("/oauth/") { "temporarily_unavailable" } else { "rate_limited" };
        assert_eq!((got.status, kind.as_str()), (429, Some(wanted)), "{method} {path}");
    }
    site.stop().await;
}
