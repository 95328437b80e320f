//! People are told, over real sockets: who gets mail and what it says, what goes to a room, invitations, and what is sent again.

use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::state::edge::{ConfigChange, IntegrationKind, Job};
use svc_core::state::people::Role;
use svc_core::store::{Range, Row as _};
use svc_core::testing::world::BASE_URL;
use svc_core::value::link::Index;
use svc_core::value::secret::Secret;
use svc_core::value::{Id as _, Span};
use svc_http::config::{Login, MailConfig, MailServer, Security};
use svc_tests::client::{Client, PATIENCE};
use svc_tests::mailbox::{LOGIN, Mail, Mailbox};
use svc_tests::office::Office;
use svc_tests::people::ask;
use svc_tests::program::Program;
use svc_tests::receiver::{self, Receiver, tls};
use svc_tests::requests::{payment, text, update, with};
use svc_tests::site::{Site, rows_of};
use tokio::time::timeout;

/// An owner's, at a server that mails to `mailbox`, in a workspace that has approvals mailed.
async fn mailing(mailbox: &Mailbox) -> Office {
    let mut office = Office::with(|plan| plan.config.mail = mailbox.config()).await;
    let made = office.post("integrations", json!({ "kind": "mail" })).await.made();
    assert_eq!(made["config"], json!({ "to": [] }));
    office
}

/// An action of an agent without mandates: it waits. The action and its approval.
async fn asked(office: &mut Office, key: &str, body: &Value) -> (Value, String) {
    let got = office.client.authorize(key, body).await.ok();
    assert_eq!(got["decision"], "approval_required");
    let approval = text(&got["approval"]["id"]).to_owned();
    (got, approval)
}

fn recipients(mails: &[Mail]) -> Vec<&str> {
    mails.iter().flat_map(|it| it.to.iter().map(String::as_str)).collect()
}

/// Waits until there are so many deliveries in the workspace and each is as `done` says, and gives them as they are listed.
async fn until(office: &mut Office, count: usize, done: impl Fn(&Job) -> bool) -> Vec<Value> {
    let mut changes = office.site.gate.changes();
    let workspace = office.site.workspace();
    let all = Range::all(Index::DeliveriesOf, workspace.bits(), 100);
    let wait = async {
        loop {
            let found = office.site.gate.scan(&all).unwrap();
            let jobs: Vec<_> = found.iter().filter_map(|it| it.row.record.as_ref().and_then(Job::peel)).collect();
            if jobs.len() == count && jobs.iter().all(|it| done(it)) {
                return;
            }
            let _ = changes.recv().await;
        }
    };
    timeout(PATIENCE, wait).await.expect("deliveries in time");
    office.read("deliveries").await["data"].as_array().unwrap().clone()
}

fn is(state: &'static str) -> impl Fn(&Job) -> bool {
    move |job| job.state.as_str() == state
}

/// Each of those who may decide gets one mail and nobody else does. It says who asks for what, for how much and until when, links
/// to the page and holds no word of a secret; what an agent wrote is marked and moves no header.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_may_decide_get_one_mail_each() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let admin = office.site.member(Role::Admin);
    for role in [Role::Member, Role::Auditor, Role::Analyst] {
        office.site.member(role);
    }
    let agent = office.site.agent(&[]);
    let sly = "Pay\u{202e} Bcc: spy@evil.example <b>Waits until: never</b> https://evil.example";
    let (_, approval) = asked(&mut office, &agent.key, &with(payment(4_900), "summary", json!(sly))).await;
    let mails = mailbox.take(3).await;
    let mut wanted = vec!["owner@example.com", &office.who.email, &admin.email];
    wanted.sort_unstable();
    assert_eq!(recipients(&mails), wanted);
    let link = format!("{BASE_URL}/w/{}/approvals/{approval}", office.site.workspace());
    let deliveries = until(&mut office, 3, is("delivered")).await;
    for mail in &mails {
        assert_eq!((mail.from.as_str(), mail.header("From")), ("svc@gate.example.com", "svc <svc@gate.example.com>"));
        assert_eq!(mail.header("Auto-Submitted"), "auto-generated");
        // Without it, what a header says of the text's encoding counts for nothing (RFC 2045, part 4).
        assert_eq!(mail.header("MIME-Version"), "1.0");
        assert_eq!(mail.header("Subject"), format!("Waits for your decision: action (EUR 49.00, {approval})"));
        assert!(mail.header("Content-Type").starts_with("text/plain"));
        assert!(deliveries.iter().any(|it| mail.header("Message-ID").starts_with(&format!("<{}@", text(&it["id"])))));
        assert_eq!(mail.link("/approvals/"), link);
        let lines: Vec<&str> = mail.text.lines().collect();
        assert!(lines.contains(&"> Pay‹U+202E› Bcc: spy@evil.example <b>Waits until: never</b> https://evil.example"));
        for line in ["> Agent", "Type: payment", "Amount: EUR 49.00", "> Example Shop", "> shop.example.com"] {
            assert!(lines.contains(&line), "{line}: {}", mail.text);
        }
        assert_eq!(lines.iter().filter(|it| it.starts_with("Waits until: ")).count(), 1);
        assert!(!mail.headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("bcc") || value.contains("evil")));
        assert!(!mail.text.contains("ask_") && !mail.text.contains("token"));
    }
    assert_eq!(deliveries.len(), 3);
    for delivery in &deliveries {
        assert_eq!(
            (&delivery["kind"], &delivery["subject"], &delivery["host"], &delivery["attempts"][0]["status"]),
            (&json!("mail"), &json!(approval), &json!("127.0.0.1"), &json!(250))
        );
    }
    let listed = office.read("deliveries?kind=mail&state=delivered").await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 3);
    asked(&mut office, &agent.key, &with(payment(5_000), "summary", json!("Again"))).await;
    asked(&mut office, &agent.key, &update()).await;
    let more = mailbox.take(3).await;
    assert!(more.iter().all(|it| it.text.contains("crm.update")), "the same again is no message of its own");
    assert!(mailbox.is_empty());
    office.site.audit();
    office.site.stop().await;
}

/// A message that the server puts off comes again as it was, under the same id; one that it refuses for good is given up at once,
/// and that is recorded and shows on the integration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_that_is_put_off_comes_again() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let to = json!({ "config": { "to": [office.who.principal] } });
    let id = text(&office.read("integrations").await["data"][0]["id"]).to_owned();
    office.patch(&format!("integrations/{id}"), to).await.ok();
    let agent = office.site.agent(&[]);
    mailbox.answer(["451 later"]);
    let (_, approval) = asked(&mut office, &agent.key, &update()).await;
    let waiting = until(&mut office, 1, |job| job.state.as_str() == "waiting" && job.attempts.len() == 1).await;
    assert_eq!(waiting[0]["attempts"][0]["status"], 451);
    assert!(mailbox.is_empty());
    office.site.shift(Span::seconds(7));
    let mail = mailbox.next().await;
    assert!(mail.header("Message-ID").starts_with(&format!("<{}@", text(&waiting[0]["id"]))));
    assert_eq!(
        (recipients(std::slice::from_ref(&mail)), mail.link("/approvals/").ends_with(&approval)),
        (vec![&*office.who.email], true)
    );
    until(&mut office, 1, is("delivered")).await;
    mailbox.answer(["550 nobody here"]);
    asked(&mut office, &agent.key, &payment(100)).await;
    until(&mut office, 2, |job| matches!(job.state.as_str(), "delivered" | "failed")).await;
    let failed = office.read("deliveries?state=failed").await["data"][0].clone();
    assert_eq!((failed["attempts"].as_array().unwrap().len(), &failed["attempts"][0]["status"]), (1, &json!(550)));
    let shown = office.read(&format!("integrations/{id}")).await;
    assert_eq!(shown["state"], "failing");
    let ledger = office.site.ledger();
    let record = ledger.iter().find(|it| &*it.kind == "delivery.failed").expect("a record");
    assert!(record.data.contains(&office.who.principal.to_string()) && !record.data.contains('@'));
    office.post(&format!("deliveries/{}/retry", text(&failed["id"])), json!({})).await.ok();
    assert!(mailbox.next().await.text.contains("EUR 1.00"));
    office.site.stop().await;
}

/// Mail leaves in the name of a sender whose domain is of another script; where the server takes no letters beyond ASCII, it is said to be
/// the sender's address that it does not take, and the message is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_may_be_of_a_domain_of_any_script() {
    let mut mailbox = Mailbox::start().await;
    let from = async |from: &str| {
        let mail = MailConfig::of(&mailbox.url(""), from).unwrap();
        let mut office = Office::with(|plan| plan.config.mail = mail).await;
        office.post("integrations", json!({ "kind": "mail" })).await.made();
        let agent = office.site.agent(&[]);
        asked(&mut office, &agent.key, &update()).await;
        office
    };
    let office = from("svc <svc@g\u{e4}te.example.com>").await;
    office.site.stop().await;
    let mut office = from("p\u{f6}st@gate.example.com").await;
    let waiting = until(&mut office, 2, |job| !job.attempts.is_empty()).await;
    for delivery in &waiting {
        let why = "the mail server takes no address of the form of `mail.from`";
        assert_eq!((&delivery["state"], &delivery["attempts"][0]["error"]), (&json!("waiting"), &json!(why)));
    }
    office.site.stop().await;
    let mail = mailbox.next().await;
    assert_eq!(
        (mail.from.as_str(), mail.header("From")),
        ("svc@xn--gte-qla.example.com", "svc <svc@xn--gte-qla.example.com>")
    );
}

/// What the server has taken is delivered, also where it never answers how the connection ends: it is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_that_was_taken_is_delivered_however_the_connection_ends() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let agent = office.site.agent(&[]);
    mailbox.answer(["250 without an end", "250 without an end"]);
    asked(&mut office, &agent.key, &update()).await;
    mailbox.take(2).await;
    let ended = until(&mut office, 2, |job| !job.attempts.is_empty()).await;
    for delivery in &ended {
        assert_eq!((&delivery["state"], &delivery["attempts"][0]["status"]), (&json!("delivered"), &json!(250)));
    }
    assert!(mailbox.is_empty());
    office.site.stop().await;
}

/// What the server has taken is delivered, whatever bytes stand behind its three digits: it is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_is_taken_by_the_digits_of_the_answer() {
    let mut mailbox = Mailbox::start().await;
    mailbox.answer_taken(b"250-Nachricht \xe4ndern\r\n250 angenommen f\xfcr Zustellung");
    let mut office = mailing(&mailbox).await;
    let agent = office.site.agent(&[]);
    asked(&mut office, &agent.key, &update()).await;
    mailbox.take(2).await;
    let ended = until(&mut office, 2, |job| !job.attempts.is_empty()).await;
    for delivery in &ended {
        assert_eq!((&delivery["state"], &delivery["attempts"][0]["status"]), (&json!("delivered"), &json!(250)));
    }
    mailbox.answer_taken(b"451 sp\xe4ter");
    asked(&mut office, &agent.key, &payment(100)).await;
    let listed = until(&mut office, 4, |job| !job.attempts.is_empty()).await;
    let put_off = listed.iter().filter(|it| it["attempts"][0]["status"] == 451 && it["state"] == "waiting");
    assert_eq!(put_off.count(), 2, "{listed:?}");
    office.site.stop().await;
}

/// Nothing is sent of what was decided meanwhile, however often it is due: the delivery ends as replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_decided_meanwhile_is_not_sent() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let agent = office.site.agent(&[]);
    mailbox.answer(["451 later", "451 later"]);
    let (_, approval) = asked(&mut office, &agent.key, &update()).await;
    until(&mut office, 2, |job| job.state.as_str() == "waiting" && job.attempts.len() == 1).await;
    office.post(&format!("approvals/{approval}/deny"), json!({})).await.ok();
    office.site.shift(Span::seconds(7));
    let ended = until(&mut office, 2, is("replaced")).await;
    assert!(ended.iter().all(|it| it["attempts"].as_array().unwrap().len() == 1), "{ended:?}");
    assert!(mailbox.is_empty());
    let got = office.post(&format!("deliveries/{}/retry", text(&ended[0]["id"])), json!({})).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    office.site.stop().await;
}

/// A tool that ran although nobody had allowed it is told to whoever may decide, by mail and in the room, once: what it was, how it
/// stands and where to look, with what others wrote marked and nothing to decide.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unapproved_run_is_told() {
    let (mut mailbox, mut room) = (Mailbox::start().await, Receiver::start().await);
    let mut office = Office::with(|plan| {
        (plan.config.mail, plan.config.allow_private_callbacks) = (mailbox.config(), true);
    })
    .await;
    let agent = office.site.agent(&[]);
    let sly = "Look at it: https://evil.example @here";
    let (action, _) = asked(&mut office, &agent.key, &with(payment(4_900), "summary", json!(sly))).await;
    let config = json!({ "to": [office.who.principal] });
    office.post("integrations", json!({ "kind": "mail", "config": config })).await.made();
    let config = json!({ "url": room.url("/room") });
    office.post("integrations", json!({ "kind": "chat", "config": config })).await.made();
    let path = format!("/v1/actions/{}/ran", text(&action["id"]));
    for _ in 0..2 {
        office.client.post(&path, &agent.key, &json!({})).await.ok();
    }
    let mail = mailbox.next().await;
    let url = format!("{BASE_URL}/w/{}/activity/{}", office.site.workspace(), text(&action["id"]));
    assert_eq!(
        (recipients(std::slice::from_ref(&mail)), mail.header("Subject"), mail.link("/activity/")),
        (vec![&*office.who.email], "An agent's tool ran without having been allowed", &*url)
    );
    assert!(mail.text.contains("> Look at it: https://evil.example @here\n"), "{}", mail.text);
    assert!(mail.text.contains("Amount: EUR 49.00\n") && mail.text.contains("Stands as: expired\n"), "{}", mail.text);
    let said = room.next().await.json();
    let of = &said["action"];
    assert_eq!((&said["type"], &said["buttons"]), (&json!("action.unapproved_run"), &Value::Null));
    assert_eq!(
        (&of["id"], &of["status"], &of["agentId"], &of["amount"], &of["url"], &of["summary"]),
        (&action["id"], &json!("expired"), &json!(agent.id), &json!(4_900), &json!(url), &json!(sly))
    );
    let words = text(&said["text"]);
    assert!(words.ends_with(&format!("\nLook at it: {url}")) && words.contains("@ here"), "{words}");
    let listed = until(&mut office, 2, is("delivered")).await;
    assert!(listed.iter().all(|it| it["subject"] == action["id"]), "{listed:?}");
    assert!(mailbox.is_empty());
    office.site.stop().await;
}

/// A room gets one signed message, in words and in members; what an agent wrote calls upon nobody in it. It can be tried out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_told_once_and_signed() {
    let mut room = Receiver::start().await;
    let mut office = Office::with(|plan| plan.config.allow_private_callbacks = true).await;
    let body = json!({ "kind": "chat", "config": { "url": room.url("/room?key=hidden") } });
    let made = office.post("integrations", body).await.made();
    let (id, secret) = (text(&made["id"]).to_owned(), text(&made["secret"]).to_owned());
    let tried = office.post(&format!("integrations/{id}/test"), json!({})).await.ok();
    let call = room.next().await;
    assert_eq!((&call.json()["type"], call.header("svc-event-id")), (&json!("test"), text(&tried["deliveryId"])));
    let agent = office.site.agent(&[]);
    let sly = "<!channel> [Decide](https://evil.example) @here";
    let (_, approval) = asked(&mut office, &agent.key, &with(payment(4_900), "summary", json!(sly))).await;
    let call = room.next().await;
    assert!(call.is_signed_with(&[&secret]));
    let said = call.json();
    let url = format!("{BASE_URL}/w/{}/approvals/{approval}", office.site.workspace());
    assert_eq!((&said["type"], &said["id"]), (&json!("approval.requested"), &json!(call.header("svc-event-id"))));
    let of = &said["approval"];
    assert_eq!(
        (&of["id"], &of["kind"], &of["summary"], &of["agentId"], &of["agentName"]),
        (&json!(approval), &json!("action"), &json!(sly), &json!(agent.id), &json!("Agent"))
    );
    assert_eq!((&of["amount"], &of["currency"], &of["url"]), (&json!(4_900), &json!("EUR"), &json!(url)));
    let words = text(&said["text"]);
    assert!(words.contains(&url) && words.contains("> &lt;!channel&gt; [Decide] (https://evil.example) @ here"));
    asked(&mut office, &agent.key, &with(payment(5_000), "summary", json!("Again"))).await;
    until(&mut office, 2, is("delivered")).await;
    assert!(room.is_quiet(), "the same again is no message of its own");
    let deliveries = office.read("deliveries?kind=chat").await;
    let hosts: Vec<&Value> = deliveries["data"].as_array().unwrap().iter().map(|it| &it["host"]).collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.1"]);
    let ledger: String = office.site.ledger().iter().map(|it| it.data.to_string()).collect();
    assert!(!ledger.contains("hidden"));
    office.site.stop().await;
}

/// Who is invited gets a link by mail that signs them in, once, and nobody else gets to see it: not who invites, not whoever reads
/// the rows or the ledger afterwards. Who has signed in before is told without a link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invitation_works_from_its_mail() {
    let mut mailbox = Mailbox::start().await;
    let mut office = Office::with(|plan| plan.config.mail = mailbox.config()).await;
    let invite = json!({ "email": "new@example.com", "role": "member" });
    let invited = office.post("members", invite.clone()).await.made();
    assert_eq!((&invited["state"], invited.get("signInLink")), (&json!("invited"), None));
    let mail = mailbox.next().await;
    assert_eq!(
        (recipients(std::slice::from_ref(&mail)), mail.header("Subject")),
        (vec!["new@example.com"], "You are invited to a workspace")
    );
    let link = mail.link("/sign-in#token=");
    let token = link.strip_prefix(&format!("{BASE_URL}/sign-in#token=")).unwrap().to_owned();
    let delivered = until(&mut office, 1, is("delivered")).await;
    assert_eq!((&delivered[0]["kind"], &delivered[0]["subject"]), (&json!("mail"), &invited["principalId"]));
    let rows = format!("{:?}", office.site.memory().dump());
    assert!(!rows.contains(&token) && !rows.contains("token: Some"), "it was let go of");
    let body = json!({ "token": token });
    let got = ask(&mut office.client, None, "POST", "/api/sign-in/link", Some(&body)).await;
    assert_eq!((got.status, got.json()["next"].clone()), (200, json!("set_password")));
    let again = ask(&mut office.client, None, "POST", "/api/sign-in/link", Some(&body)).await;
    assert_eq!(again.status, 401);
    let path = format!("members/{}", text(&invited["principalId"]));
    assert_eq!(office.ask("DELETE", &path, Value::Null).await.status, 204);
    office.post("members", invite).await.made();
    let known = mailbox.next().await;
    assert!(known.text.contains(&format!("{BASE_URL}/sign-in\n")) && !known.text.contains("token="));
    office.site.stop().await;
}

/// An invitation that the mail server refuses shows as failed, without its link, which is let go of: it is not tried again, and
/// inviting again mails another. So does one whose link has expired before it could be sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invitation_that_fails_is_seen() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let invite = json!({ "email": "new@example.com", "role": "member" });
    mailbox.answer(["550 nobody here"]);
    office.post("members", invite.clone()).await.made();
    let failed = until(&mut office, 1, is("failed")).await;
    assert!(!format!("{:?}", office.site.memory().dump()).contains("token: Some"));
    let got = office.post(&format!("deliveries/{}/retry", text(&failed[0]["id"])), json!({})).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    mailbox.answer(["451 later"]);
    office.post("members", invite.clone()).await.made();
    until(&mut office, 2, |job| job.state.as_str() == "failed" || job.attempts.len() == 1).await;
    office.site.shift(Span::hours(1));
    let lapsed = until(&mut office, 2, is("failed")).await;
    assert_eq!(lapsed.len(), 2);
    assert_eq!(office.read("integrations").await["data"][0]["state"], "ok", "it goes without the integration");
    assert!(mailbox.is_empty(), "a link that signs nobody in is not sent");
    office.post("members", invite).await.made();
    assert!(mailbox.next().await.text.contains("token="));
    office.site.stop().await;
}

/// A change that loosens is mailed to the other owners and admins with both values, whether or not approvals are mailed; one that
/// tightens is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loosening_is_mailed_to_the_others() {
    let mut mailbox = Mailbox::start().await;
    let mut office = Office::with(|plan| plan.config.mail = mailbox.config()).await;
    let admin = office.site.member(Role::Admin);
    office.site.member(Role::Member);
    office.ask("PUT", "settings", json!({ "outsideMandate": "deny" })).await.ok();
    office.ask("PUT", "settings", json!({ "outsideMandate": "ask", "approvalHours": 12 })).await.ok();
    let mails = mailbox.take(2).await;
    assert_eq!(recipients(&mails), [admin.email.as_str(), "owner@example.com"]);
    let words = &mails[0].text;
    for part in
        [r#"> -   "outsideMandate": "deny""#, r#"> +   "outsideMandate": "ask""#, &format!("> {}", office.who.email)]
    {
        assert!(words.contains(part), "{part}: {words}");
    }
    let record = office.site.ledger().iter().rev().find(|it| &*it.kind == "settings.changed").cloned().unwrap();
    assert!(record.data.contains(r#""old":{"approvalHours":24,"outsideMandate":"deny"}"#), "{}", record.data);
    until(&mut office, 2, is("delivered")).await;
    assert!(mailbox.is_empty(), "what tightens is nobody's alarm, and who loosened knows");
    office.site.stop().await;
}

/// Both principals are told where one's agent names a session of the other's, once, and each of their own agent alone: what the
/// other's is called and asked is told to whoever may read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_principals_hear_of_a_session_conflict() {
    let mut mailbox = Mailbox::start().await;
    let mut office = mailing(&mailbox).await;
    let people = [office.site.member(Role::Member), office.site.member(Role::Member)];
    let (mut keys, mut ids) = (Vec::new(), Vec::new());
    for (person, name) in people.iter().zip(["First", "Second"]) {
        let made = office.agent(&json!({ "name": name, "principalEmail": person.email, "mandates": [] })).await;
        keys.push(text(&made["key"]).to_owned());
        ids.push(text(&made["id"]).to_owned());
    }
    let named = with(with(update(), "session", json!({ "id": "shared" })), "summary", json!("Read the salaries"));
    office.client.authorize(&keys[0], &named).await.ok();
    let first = mailbox.take(3).await;
    assert!(first.iter().all(|it| it.header("Subject").starts_with("Waits for")));
    let got = office.client.authorize(&keys[1], &named).await.ok();
    assert_eq!((&got["decision"], &got["reasons"][0]["code"]), (&json!("deny"), &json!("session_conflict")));
    let told = mailbox.take(2).await;
    let mut wanted = people.each_ref().map(|it| it.email.as_str());
    wanted.sort_unstable();
    assert_eq!(recipients(&told), wanted);
    let of = |person: usize| {
        let mail = told.iter().find(|it| it.to == [people[person].email.as_str()]).unwrap();
        let parts = ["> First\n", &ids[0], "> Second\n", &ids[1], "> Read the salaries\n", text(&got["id"])];
        assert!(mail.text.contains("> shared\n") && mail.text.contains("another agent of this workspace\n"));
        parts.map(|it| mail.text.contains(it))
    };
    assert_eq!(of(0), [true, true, false, false, false, false]);
    assert_eq!(of(1), [false, false, true, true, true, true]);
    office.client.authorize(&keys[1], &named).await.ok();
    until(&mut office, 5, is("delivered")).await;
    assert!(mailbox.is_empty(), "once");
    office.site.stop().await;
}

/// Mail goes over TLS to a server that the settings' roots vouch for, with the login of the address; without that root nothing is
/// said to it, and a wrong password is the server's word, not the message's: it is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_over_tls_with_its_login() {
    for (login, ca, word) in [
        ("svc:p%3Aw%2F%C3%BC@", true, None),
        ("svc:wrong@", true, Some("the answer is not 2xx")),
        ("svc:p%3Aw%2F%C3%BC@", false, Some("the certificate is not trusted or names another host")),
    ] {
        let mut mailbox = Mailbox::start_tls().await;
        let url = mailbox.url(login);
        let mut office = Office::with(|plan| {
            plan.config.mail = MailConfig::of(&url, "svc@gate.example.com").unwrap();
            plan.config.outbound.ca_file = ca.then(|| tls("ca.pem"));
        })
        .await;
        let id = text(&office.post("integrations", json!({ "kind": "mail" })).await.made()["id"]).to_owned();
        let tried = office.post(&format!("integrations/{id}/test"), json!({})).await.ok();
        if word.is_none() {
            let mail = mailbox.next().await;
            assert!(mail.logged_in && LOGIN.0 == "svc");
            assert_eq!(recipients(&[mail]), [office.who.email.as_str()]);
        }
        let done = until(&mut office, 1, |job| !job.attempts.is_empty()).await;
        assert_eq!((&done[0]["id"], done[0]["attempts"][0]["error"].as_str()), (&tried["deliveryId"], word));
        assert!(mailbox.is_empty());
        office.site.stop().await;
    }
}

/// Settings that send mail to a mailbox which is to be secured halfway.
fn by_starttls(mailbox: &Mailbox, host: &str, login: Login) -> MailConfig {
    let (host, port) = (host.into(), mailbox.address.port());
    let server = MailServer { host, port, security: Security::StartTls, login: Some(login) };
    MailConfig { server: Some(Arc::new(server)), from: mailbox.config().from }
}

/// A connection that is secured halfway has the login and the message in TLS alone. A server whose certificate nobody vouches for
/// hears neither, and what it says in clear behind its yes to TLS is none of its answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mail_goes_over_a_line_that_is_secured_halfway() {
    let untrusted = "the certificate is not trusted or names another host";
    for (ca, behind, why) in [(true, "", None), (false, "", Some(untrusted)), (true, "\r\n250 more in clear", None)] {
        let mut mailbox = Mailbox::start_upgraded(behind).await;
        mailbox.answer_taken(b"250 angenommen f\xfcr Zustellung");
        let login = Login { user: LOGIN.0.to_owned(), password: Secret::new(LOGIN.1.to_owned()) };
        let config = by_starttls(&mailbox, "localhost", login);
        let mut office = Office::with(|plan| {
            plan.config.mail = config;
            plan.config.outbound.ca_file = ca.then(|| tls("ca.pem"));
        })
        .await;
        office.post("members", json!({ "email": "ann@example.com", "role": "member" })).await.made();
        let listed = until(&mut office, 1, |it| !it.attempts.is_empty()).await;
        let attempt = &listed[0]["attempts"][0];
        let heard = mailbox.heard();
        assert_eq!(attempt["error"].as_str(), why, "{heard:?}");
        match why {
            None => {
                assert!(mailbox.next().await.logged_in);
                assert_eq!((&listed[0]["state"], &attempt["status"]), (&json!("delivered"), &json!(250)));
            }
            Some(_) => assert_eq!(heard, ["EHLO", "STARTTLS"]),
        }
        office.site.stop().await;
    }
}

/// A server that is to speak TLS, offers it and then refuses it hears nothing in clear, neither a login nor a word of a message; the
/// delivery says why, and is tried again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_said_in_clear_where_tls_is_refused() {
    for (answer, why) in [("454 TLS not available", "the answer is not 2xx"), ("502 no", "the answer is not 2xx")] {
        let mut mailbox = Mailbox::start_clear(answer).await;
        let login = Login { user: LOGIN.0.to_owned(), password: Secret::new(LOGIN.1.to_owned()) };
        let config = by_starttls(&mailbox, "127.0.0.1", login);
        let mut office = Office::with(|plan| plan.config.mail = config).await;
        office.post("members", json!({ "email": "ann@example.com", "role": "member" })).await.made();
        let listed = until(&mut office, 1, |it| it.attempts.len() == 1).await;
        assert_eq!((&listed[0]["state"], &listed[0]["attempts"][0]["error"]), (&json!("waiting"), &json!(why)));
        let heard = mailbox.heard();
        assert!(heard.contains(&"STARTTLS".to_owned()), "{heard:?}");
        assert!(heard.iter().all(|it| ["EHLO", "STARTTLS", "QUIT"].contains(&it.as_str())), "{heard:?}");
        assert!(mailbox.is_empty());
        office.site.stop().await;
    }
}

/// A server without `mail.url` has no integration of mail, and invitations show their link as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_mail_nothing_is_mailed() {
    let mut office = Office::open().await;
    let nobody = json!({ "kind": "mail", "config": { "to": ["prp_00000000000000000000000000"] } });
    let got = office.post("integrations", nobody).await;
    assert_eq!((got.status, got.fields()), (400, vec!["config.to.0".to_owned()]), "before what the server lacks");
    let got = office.post("integrations", json!({ "kind": "mail" })).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    assert!(got.text().contains("mail.url"));
    let invited = office.post("members", json!({ "email": "new@example.com", "role": "member" })).await.made();
    assert!(invited["signInLink"].is_string());
    office.site.member(Role::Admin);
    office.ask("PUT", "settings", json!({ "freezeCeilingPerHour": 60 })).await.ok();
    let jobs = || office.site.gate.scan(&Range::all(Index::DeliveriesOf, office.site.workspace().bits(), 9)).unwrap();
    assert_eq!(jobs().len(), 0);
    for (kind, config, field) in [
        ("chat", json!({ "url": "http://chat.example.com/" }), "config.url"),
        ("chat", json!({ "to": [] }), "config.to"),
        ("callbacks", json!({ "url": "https://chat.example.com/" }), "config.url"),
    ] {
        let got = office.post("integrations", json!({ "kind": kind, "config": config })).await;
        assert_eq!((got.status, got.fields()), (400, vec![field.to_owned()]), "{kind} {config}");
    }
    office.site.stop().await;
}

/// What was to be told when a server was killed is told by the one that starts after it, to each once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_goes_on_telling() {
    let data = tempfile::tempdir().unwrap();
    let mut mailbox = Mailbox::start().await;
    let directory = data.path().to_owned();
    let site = Site::with(|plan| plan.directory = Some(directory)).await;
    receiver::connect_kind(&site, IntegrationKind::Mail, ConfigChange::default());
    let agent = site.agent(&[]);
    site.stop().await;
    let url = mailbox.url("");
    let serve = async || {
        Program::serve_with(data.path(), BASE_URL, |command| {
            command.env("SVC_MAIL_URL", &url).env("SVC_MAIL_FROM", "svc@gate.example.com");
        })
        .await
    };
    mailbox.answer(["silence"]);
    let first = serve().await;
    let mut client = Client::connect(first.address).await;
    let asked = client.authorize(&agent.key, &update()).await.ok();
    first.kill().await;
    assert!(mailbox.is_empty());
    let second = serve().await;
    let mail = mailbox.next().await;
    assert_eq!(mail.to, ["owner@example.com"]);
    assert!(mail.text.contains(text(&asked["approval"]["id"])));
    second.stop().await;
    assert!(mailbox.is_empty());
    let rows = rows_of(data.path());
    let jobs: Vec<_> = rows.iter().filter_map(|(.., record)| Job::peel(record)).collect();
    assert_eq!(jobs.iter().map(|it| it.state.as_str()).collect::<Vec<_>>(), ["delivered"]);
}
