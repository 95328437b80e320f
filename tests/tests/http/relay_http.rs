//! Buttons that a relay of a team chat passes on, over real sockets: each is good once, for what it was made beside, and brings
//! the word of the member whom the relay names.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::rules::edge::integrations::{ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration};
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, Integration, IntegrationKind, signature};
use svc_core::state::gate::Approval;
use svc_core::state::people::Role;
use svc_core::value::Span;
use svc_core::value::id::ApprovalId;
use svc_http::inbound::button::Button;
use svc_tests::client::Got;
use svc_tests::receiver::{SECRET, connect_kind};
use svc_tests::requests::text;
use svc_tests::slack::{Chat, OWNER, links};
use tokio::task::JoinSet;

async fn relay() -> Chat {
    Chat::of(IntegrationKind::Relay, |_| {}).await
}

fn approval(chat: &Chat, decision: &Value) -> Arc<Approval> {
    let id = ApprovalId::parse(text(&decision["approval"]["id"])).unwrap();
    chat.site.gate.read(|scope| scope.get::<Approval>(id)).unwrap().unwrap()
}

/// A button beside an action that waits.
fn button(chat: &Chat, decision: &Value, choice: Choice) -> String {
    let button = Button::new(&approval(chat, decision), choice, chat.site.now());
    button.seal(&chat.site.gate, &chat.integration).unwrap()
}

async fn send(chat: &mut Chat, press: &Value) -> Got {
    let (path, body) = (chat.path(), press.to_string());
    let signed = signature(chat.site.now(), body.as_bytes(), [SECRET.as_bytes()]);
    chat.client.ask("POST", &path, &[("svc-signature", &signed)], body.as_bytes()).await
}

async fn press(chat: &mut Chat, id: &str, token: &str, member: &str) -> Value {
    send(chat, &json!({ "id": id, "token": token, "member": member })).await.ok()
}

fn refused(reason: &str) -> Value {
    json!({ "decided": false, "reason": reason })
}

/// A member's press decides once; sent again it is answered as before, and under another id the button was used. No text of a button
/// is in the ledger.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_button_is_pressed_once() {
    let mut chat = relay().await;
    let asked = chat.asked().await;
    let yes = button(&chat, &asked, Choice::Approve);
    let again = button(&chat, &asked, Choice::Approve);
    assert_ne!(yes, again, "two texts of one button");
    assert_eq!(press(&mut chat, "1", &yes, "nobody").await, refused("not_linked"));
    let done = json!({ "decided": true, "approval": "approved" });
    assert_eq!(press(&mut chat, "2", &yes, OWNER).await, done);
    chat.site.shift(Span::seconds(1));
    assert_eq!(press(&mut chat, "2", &yes, OWNER).await, done, "signed anew, it is the same event");
    for token in [&yes, &again] {
        assert_eq!(press(&mut chat, &token[..30], token, OWNER).await, refused("used"));
    }
    assert_eq!(chat.status(&asked).await, "allowed");
    let no = button(&chat, &asked, Choice::Deny);
    let over = json!({ "decided": false, "approval": "approved", "reason": "decided" });
    assert_eq!(press(&mut chat, "3", &no, OWNER).await, over);
    let texts: String = chat.site.ledger().iter().map(|it| format!("{}{}", it.data, it.actor)).collect();
    assert!(!texts.contains(&yes[3..]) && !texts.contains(OWNER) && texts.contains(r#""via":"relay""#));
    chat.site.audit();
    chat.site.stop().await;
}

/// A button brings the one word that it was made for: not of another approval, of what has changed, of another integration or
/// workspace, nor past its time; and what is no button is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_button_is_good_for_what_it_was_made_beside() {
    let mut chat = relay().await;
    let (asked, other) = (chat.asked().await, chat.asked().await);
    let no = button(&chat, &other, Choice::Deny);
    assert_eq!(press(&mut chat, "1", &no, OWNER).await["approval"], "denied");
    assert_eq!((chat.status(&asked).await, chat.status(&other).await), ("pending".to_owned(), "denied".to_owned()));
    let mut row = Approval::clone(&approval(&chat, &asked));
    if let svc_core::state::gate::ApprovalSubject::Action(of) = &mut row.subject {
        of.digest = svc_core::value::digest::Digest::of("other");
    }
    let changed = Button::new(&row, Choice::Approve, chat.site.now()).seal(&chat.site.gate, &chat.integration).unwrap();
    assert_eq!(press(&mut chat, "2", &changed, OWNER).await["reason"], "changed");
    let elsewhere = Chat::of(IntegrationKind::Relay, |_| {}).await;
    let row = approval(&chat, &asked);
    let strange = Button::new(&row, Choice::Approve, chat.site.now());
    let strange = strange.seal(&elsewhere.site.gate, &elsewhere.integration).unwrap();
    let yes = button(&chat, &asked, Choice::Approve);
    let mut bent = yes.clone();
    bent.replace_range(40..41, if &yes[40..41] == "A" { "B" } else { "A" });
    for (id, token) in [("3", &*strange), ("4", &bent), ("5", "x"), ("6", &"x".repeat(400))] {
        assert_eq!(press(&mut chat, id, token, OWNER).await, refused("unknown_button"), "{token}");
    }
    chat.site.shift(Span::hours(24));
    assert_eq!(press(&mut chat, "7", &yes, OWNER).await, refused("expired"));
    let asked = chat.asked().await;
    let yes = button(&chat, &asked, Choice::Approve);
    let (workspace, id) = (chat.site.workspace(), chat.integration.id);
    chat.site.gate.execute(RemoveIntegration { by: By::Program, workspace, id }).unwrap();
    let slot = chat.integration.slot;
    let sealed = chat.site.gate.seal(&Integration::purpose(slot), SECRET.as_bytes()).unwrap().into();
    let (secret, kind) = (NewSecret { sealed, hint: "hint".into() }, slot.kind);
    let config = ConfigChange { members: links(&[(OWNER, chat.owner.principal)]), ..ConfigChange::default() };
    chat.site.gate.execute(CreateIntegration { by: By::Program, workspace, kind, secret, config }).unwrap();
    assert_eq!(press(&mut chat, "8", &yes, OWNER).await, refused("unknown_button"), "another has taken its place");
    assert_eq!(chat.status(&asked).await, "pending");
    chat.site.audit();
    chat.site.stop().await;
}

/// What an agent asks, shown in a room with one button, for a no: its token.
async fn asked_without_a_yes(chat: &mut Chat) -> (Value, String) {
    let url = svc_core::value::text::UrlText::parse(&chat.slack.url("/room")).unwrap();
    connect_kind(&chat.site, IntegrationKind::Chat, ConfigChange { url: Some(Some(url)), ..ConfigChange::default() });
    let asked = chat.asked().await;
    let shown = chat.slack.next().await.json();
    let buttons = shown["buttons"].as_array().unwrap();
    assert_eq!((buttons.len(), &buttons[0]["decision"]), (1, &json!("deny")), "{shown}");
    (asked, text(&buttons[0]["token"]).to_owned())
}

/// A room gets no button for a yes that takes a second factor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_offered_no_yes_with_a_second_factor() {
    let mut chat = Chat::of(IntegrationKind::Relay, |settings| {
        settings.step_up_above.insert("EUR".parse().unwrap(), 20_000);
    })
    .await;
    asked_without_a_yes(&mut chat).await;
    chat.site.audit();
    chat.site.stop().await;
}

/// A room gets no button for a yes to a call of which its message has not all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_offered_no_yes_to_what_is_not_all_shown() {
    let mut chat = relay().await;
    let url = svc_core::value::text::UrlText::parse(&chat.slack.url("/room")).unwrap();
    connect_kind(&chat.site, IntegrationKind::Chat, ConfigChange { url: Some(Some(url)), ..ConfigChange::default() });
    for (shell, filler, expected) in [("sh", 10, &["approve", "deny"][..]), ("bash", 2_000, &["deny"])] {
        let body = json!({ "type": "mcp.call", "summary": "Look around",
            "tool": { "name": shell, "server": "box", "input": { "command": "x".repeat(filler) } } });
        chat.client.authorize(&chat.agent.key, &body).await.ok();
        let shown = chat.slack.next().await.json();
        let buttons: Vec<&str> = shown["buttons"].as_array().unwrap().iter().map(|it| text(&it["decision"])).collect();
        assert_eq!(buttons, expected, "{shown}");
    }
    for (number, filler, expected) in [(1, 10, &["approve", "deny"][..]), (2, 2_000, &["deny"])] {
        let body = json!({ "type": format!("crm.update{number}"), "summary": "Tidy up", "details": { "delete": "x".repeat(filler) } });
        chat.client.authorize(&chat.agent.key, &body).await.ok();
        let shown = chat.slack.next().await.json();
        let buttons: Vec<&str> = shown["buttons"].as_array().unwrap().iter().map(|it| text(&it["decision"])).collect();
        assert_eq!(buttons, expected, "{shown}");
        assert!(text(&shown["text"]).contains("Details:\n> {\"delete\":\"xxxxxxxxxx"), "{shown}");
    }
    chat.site.audit();
    chat.site.stop().await;
}

/// A room's message tells of a recipient that looks like another by which name the network knows it, and where each field ends that is
/// shared, as the page does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recipient_is_told_by_its_name_in_the_network() {
    let share = json!({ "type": "data.share", "summary": "Share it",
        "data": { "recipient": "bob@p\u{430}ypal.com", "fields": ["name, email", "x"] } });
    let mut chat = relay().await;
    let url = svc_core::value::text::UrlText::parse(&chat.slack.url("/room")).unwrap();
    connect_kind(&chat.site, IntegrationKind::Chat, ConfigChange { url: Some(Some(url)), ..ConfigChange::default() });
    chat.client.authorize(&chat.agent.key, &share).await.ok();
    let told = chat.slack.next().await.json();
    assert_eq!(text(&told["buttons"][0]["decision"]), "approve");
    let shown = "Data goes to:\n> bob@ p\u{430}ypal.com\n\nIts domain:\n> xn--pypal-4ve.com\n\nFields:\n> \"name, email\"\n> \"x\"\n";
    assert!(text(&told["text"]).contains(shown), "{told}");
    // So is whoever is to be an owner.
    chat.site.member(Role::Owner);
    let (owner, path) = (chat.owner.clone(), format!("/api/w/{}/members", chat.site.workspace()));
    let invite = json!({ "email": "ann@p\u{430}ypal.com", "role": "owner" });
    assert_eq!(owner.ask(&mut chat.client, "POST", &path, Some(&invite)).await.status, 202);
    let told = chat.slack.next().await.json();
    let shown = "Whom:\n> ann@ p\u{430}ypal.com\n\nIts domain:\n> xn--pypal-4ve.com\n";
    assert!(text(&told["text"]).contains(shown), "{told}");
    chat.site.audit();
    chat.site.stop().await;
}

/// Where two persons have to agree, a room gets no button for a yes, and one that there was before brings none; a no is heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_brings_no_yes_of_two_persons() {
    let mut chat = Chat::of(IntegrationKind::Relay, |settings| {
        settings.second_person_above.insert("EUR".parse().unwrap(), 20_000);
    })
    .await;
    let (asked, no) = asked_without_a_yes(&mut chat).await;
    let yes = button(&chat, &asked, Choice::Approve);
    let on_page = json!({ "decided": false, "approval": "waiting", "reason": "on_page" });
    assert_eq!(press(&mut chat, "1", &yes, OWNER).await, on_page);
    assert_eq!(press(&mut chat, "2", &no, OWNER).await, json!({ "decided": true, "approval": "denied" }));
    chat.site.audit();
    chat.site.stop().await;
}

/// Of one button that is sent sixty-four times at once, under as many ids, one brings a word; what is not signed, or misses
/// something, brings none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_one_is_taken() {
    let mut chat = relay().await;
    let asked = chat.asked().await;
    let (yes, path, now) = (button(&chat, &asked, Choice::Approve), chat.path(), chat.site.now());
    let got = send(&mut chat, &json!({ "id": "", "token": 7 })).await;
    let faults = got.json()["error"]["errors"].as_array().unwrap().len();
    assert_eq!((got.status, faults), (400, 3), "{}", got.text());
    let got = chat.client.ask("POST", &path, &[("svc-signature", "t=1,v1=00")], b"{}").await;
    assert_eq!(got.status, 401);
    let mut asking = JoinSet::new();
    for id in 0..64 {
        let (mut client, path) = (chat.site.client().await, path.clone());
        let body = json!({ "id": id.to_string(), "token": yes, "member": OWNER }).to_string();
        asking.spawn(async move {
            let signed = signature(now, body.as_bytes(), [SECRET.as_bytes()]);
            client.ask("POST", &path, &[("svc-signature", &signed)], body.as_bytes()).await.ok()
        });
    }
    let told = asking.join_all().await;
    assert_eq!(told.iter().filter(|it| it["decided"] == true).count(), 1);
    assert_eq!(told.iter().filter(|it| **it == refused("used")).count(), 63);
    assert_eq!(chat.status(&asked).await, "allowed");
    chat.site.audit();
    chat.site.stop().await;
}

/// A room's message has the buttons that the relay passes on, while there is one that is used; they decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rooms_message_has_the_relays_buttons() {
    let mut chat = relay().await;
    let url = svc_core::value::text::UrlText::parse(&chat.slack.url("/room")).unwrap();
    connect_kind(&chat.site, IntegrationKind::Chat, ConfigChange { url: Some(Some(url)), ..ConfigChange::default() });
    let asked = chat.asked().await;
    let told = chat.slack.next().await.json();
    assert_eq!((&told["type"], &told["approval"]["id"]), (&json!("approval.requested"), &asked["approval"]["id"]));
    let buttons = told["buttons"].as_array().unwrap();
    assert_eq!((&buttons[0]["decision"], &buttons[1]["decision"]), (&json!("approve"), &json!("deny")));
    let token = text(&buttons[1]["token"]).to_owned();
    assert!(!text(&told["text"]).contains(&token));
    assert_eq!(press(&mut chat, "1", &token, OWNER).await, json!({ "decided": true, "approval": "denied" }));
    let (workspace, id) = (chat.site.workspace(), chat.integration.id);
    let config = ConfigChange::default();
    let off = ChangeIntegration { by: By::Program, workspace, id, enabled: Some(false), config };
    chat.site.gate.execute(off).unwrap();
    chat.asked().await;
    let told = chat.slack.next().await.json();
    assert!(told.get("buttons").is_none() && told["text"].is_string(), "{told}");
    chat.site.audit();
    chat.site.stop().await;
}

/// A room whose chat takes nothing but a text is posted that alone; another word for the form is none, and `null` is the form of before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_that_takes_a_text_alone_is_sent_that() {
    let mut chat = relay().await;
    let url = svc_core::value::text::UrlText::parse(&chat.slack.url("/room")).unwrap();
    let room = connect_kind(
        &chat.site,
        IntegrationKind::Chat,
        ConfigChange { url: Some(Some(url)), ..ConfigChange::default() },
    );
    let path = format!("/api/w/{}/integrations/{}", chat.site.workspace(), room.id);
    let owner = chat.owner.clone();
    let set = async |chat: &mut Chat, format: &Value| {
        owner.ask(&mut chat.client, "PATCH", &path, Some(&json!({ "config": { "format": format } }))).await
    };
    assert_eq!(
        set(&mut chat, &json!("teams")).await.refusal(),
        (400, "invalid_request".into(), vec!["config.format".into()])
    );
    for (format, shown, members) in [
        (json!("text"), "text", &["text"][..]),
        (json!("svc"), "svc", &["approval", "buttons", "id", "text", "type"]),
        (json!("text"), "text", &["text"]),
        (Value::Null, "svc", &["approval", "buttons", "id", "text", "type"]),
    ] {
        assert_eq!(set(&mut chat, &format).await.ok()["config"]["format"], shown);
        let asked = chat.asked().await;
        let sent = chat.slack.next().await.json();
        let mut names: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, members, "{sent}");
        assert!(text(&sent["text"]).starts_with("An agent's action waits for a decision."), "{sent}");
        // What is asked next is told once this is decided.
        let no = button(&chat, &asked, Choice::Deny);
        assert_eq!(press(&mut chat, text(&asked["id"]), &no, OWNER).await["approval"], "denied");
    }
    chat.site.audit();
    chat.site.stop().await;
}
