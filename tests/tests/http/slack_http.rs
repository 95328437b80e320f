//! Presses of Slack's buttons over real sockets: a member's word is taken once, what is refused is told beside the message, and
//! nobody else decides anything.

use serde_json::{Value, json};
use svc_core::rules::people::by::By;
use svc_core::state::people::{Role, TokenScope};
use svc_core::testing::world::BASE_URL;
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_tests::client::PATIENCE;
use svc_tests::people::Person;
use svc_tests::receiver::{Call, Reply};
use svc_tests::requests::{WIDE, payment, text};
use svc_tests::slack::{BOT_TOKEN, Chat, OWNER, form, slack_signature};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What Slack answers to a message that it takes.
fn taken() -> Reply {
    Reply::Document("no-store", json!({ "ok": true, "channel": "D1", "ts": "1.2" }).to_string())
}

/// The next message that is posted.
async fn posted(chat: &mut Chat) -> Call {
    loop {
        let call = chat.slack.next().await;
        if call.line == "POST /api/chat.postMessage HTTP/1.1" {
            return call;
        }
    }
}

/// Waits until a delivery of Slack's about this approval has come to this state, with as many tries behind it.
async fn delivered(chat: &mut Chat, who: &Person, of: &Value, (state, tries): (&str, usize)) -> Value {
    let path = format!("/api/w/{}/deliveries?kind=slack", chat.site.workspace());
    let mut changes = chat.site.gate.changes();
    loop {
        let listed = who.ask(&mut chat.client, "GET", &path, None).await.ok();
        let is_it = |it: &&Value| {
            it["subject"] == of["approval"]["id"]
                && it["state"] == state
                && it["attempts"].as_array().unwrap().len() == tries
        };
        if let Some(item) = listed["data"].as_array().unwrap().iter().find(is_it) {
            return item.clone();
        }
        let _ = timeout(PATIENCE, changes.recv()).await.expect("a change in time");
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

/// That a press was not taken, and says why with a link, to whoever pressed alone.
fn is_beside(told: &Value, why: &str) {
    assert_eq!((&told["response_type"], &told["replace_original"]), (&json!("ephemeral"), &json!(false)), "{told}");
    assert!(text(&told["text"]).contains(why) && text(&told["text"]).contains("/approvals/apv_"), "{told}");
}

/// What is told in place of the message.
fn is_instead(told: &Value, what: &str) {
    assert_eq!(told["replace_original"], true, "{told}");
    let kinds: Vec<&str> = told["blocks"].as_array().unwrap().iter().map(|it| text(&it["type"])).collect();
    assert_eq!(
        (kinds, &told["blocks"][0]["block_id"]),
        (vec!["section", "section"], &json!("said")),
        "no button is left"
    );
    assert!(text(&told["text"]).contains(what), "{told}");
}

/// The records of what was received, each with its event and what came of it.
fn received(chat: &Chat) -> Vec<(String, String)> {
    let ledger = chat.site.ledger();
    let told = ledger.iter().filter(|it| &*it.kind == "integration.received");
    let json = |data: &str| serde_json::from_str::<Value>(data).unwrap();
    told.map(|it| json(&it.data)).map(|it| (text(&it["event"]).to_owned(), text(&it["outcome"]).to_owned())).collect()
}

/// A linked member approves and denies by buttons: the agent reads it, the approval says from where, the message is replaced, and
/// no log of decisions holds who they are in Slack.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_decides_by_a_button() {
    let mut chat = Chat::with(|_| {}).await;
    let yes = chat.asked().await;
    is_instead(&chat.pressed(OWNER, "approve", &yes).await, "You approved this.");
    assert_eq!(chat.status(&yes).await, "allowed");
    let path = format!("/api/w/{}/approvals/{}", chat.site.workspace(), text(&yes["approval"]["id"]));
    let read = chat.owner.clone().ask(&mut chat.client, "GET", &path, None).await.ok();
    assert_eq!((&read["approvals"][0]["via"], &read["decidedBy"]), (&json!("slack"), &json!(chat.owner.principal)));
    let no = chat.asked().await;
    is_instead(&chat.pressed(OWNER, "deny", &no).await, "This is denied.");
    assert_eq!(chat.status(&no).await, "denied");
    is_instead(&chat.pressed(OWNER, "approve", &no).await, "This was denied already.");
    let texts: String = chat.site.ledger().iter().map(|it| format!("{}{}", it.data, it.actor)).collect();
    assert!(!texts.contains(OWNER) && texts.contains(r#""via":"slack""#));
    let events = [("approve", "approved"), ("deny", "denied"), ("approve", "decided")];
    assert_eq!(received(&chat), events.map(|(event, outcome)| (event.to_owned(), outcome.to_owned())));
    chat.site.audit();
    chat.site.stop().await;
}

/// Whoever is linked to nobody, may not decide it, or presses beside what has changed, is told so beside the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_rule_refuses_is_told_beside_the_message() {
    let mut chat = Chat::with(|_| {}).await;
    let member = chat.site.member(Role::Member);
    chat.link(&[("UMEMBER", member.principal)]);
    let asked = chat.asked().await;
    let mut nowhere = asked.clone();
    nowhere["approval"]["id"] = json!("apv_00000000000000000000000007");
    for decision in [&asked, &nowhere] {
        is_beside(&chat.pressed("USTRANGER", "approve", decision).await, "You are not linked to a member");
        is_beside(&chat.pressed("UMEMBER", "deny", decision).await, "There is nothing here that you may decide.");
    }
    let mut other = asked.clone();
    other["actionDigest"] = json!(format!("sha256:{}", "0".repeat(64)));
    is_beside(&chat.pressed(OWNER, "approve", &other).await, "What waits is not what this message shows.");
    assert_eq!(chat.status(&asked).await, "pending");
    chat.site.audit();
    chat.site.stop().await;
}

/// What an agent asks, whose message has a button for a no and none for a yes.
async fn asked_without_a_yes(chat: &mut Chat) -> Value {
    chat.slack.answer([taken()]);
    let asked = chat.asked().await;
    let message = posted(chat).await.json();
    let buttons = message["blocks"].as_array().unwrap().last().unwrap()["elements"].as_array().unwrap().clone();
    let actions: Vec<&str> = buttons.iter().map(|it| text(&it["action_id"])).collect();
    assert_eq!(actions, ["deny", "open"]);
    asked
}

/// A yes that takes a second factor is offered by no button, which could not ask for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_with_a_second_factor_is_said_on_the_page() {
    let mut chat = Chat::with(|settings| {
        settings.step_up_above.insert("EUR".parse().unwrap(), 20_000);
    })
    .await;
    let asked = asked_without_a_yes(&mut chat).await;
    is_beside(&chat.pressed(OWNER, "approve", &asked).await, "This takes your second factor.");
    is_instead(&chat.pressed(OWNER, "deny", &asked).await, "This is denied.");
    chat.site.audit();
    chat.site.stop().await;
}

/// Where two persons have to agree, nobody is offered a button for a yes, and a press of one takes the place of neither; a no is
/// heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_yes_of_two_persons_is_said_on_the_page() {
    let mut chat = Chat::with(|settings| {
        settings.second_person_above.insert("EUR".parse().unwrap(), 20_000);
    })
    .await;
    let asked = asked_without_a_yes(&mut chat).await;
    let admin = chat.site.member(Role::Admin);
    chat.link(&[("UADMIN", admin.principal)]);
    let path = format!("/api/w/{}/approvals/{}/approve", chat.site.workspace(), text(&asked["approval"]["id"]));
    let first =
        admin.ask(&mut chat.client, "POST", &path, Some(&json!({ "actionDigest": asked["actionDigest"] }))).await.ok();
    assert_eq!(first["state"], "waiting");
    for user in ["UADMIN", OWNER] {
        is_beside(&chat.pressed(user, "approve", &asked).await, "A yes to this is given on its page.");
    }
    assert_eq!(chat.status(&asked).await, "pending");
    is_instead(&chat.pressed(OWNER, "deny", &asked).await, "This is denied.");
    chat.site.audit();
    chat.site.stop().await;
}

/// What takes the second factor waits on; what has expired, or whose agent was stopped, is told to be over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_button_cannot_do_is_done_on_the_page() {
    let mut chat = Chat::with(|settings| {
        settings.step_up_above.insert("EUR".parse().unwrap(), 20_000);
    })
    .await;
    let asked = chat.asked().await;
    is_beside(&chat.pressed(OWNER, "approve", &asked).await, "This takes your second factor.");
    assert_eq!(chat.status(&asked).await, "pending");
    let (workspace, agent) = (chat.site.workspace(), chat.agent.id);
    let reason = svc_core::value::text::Note::parse("a test").unwrap();
    let freeze = svc_core::rules::gate::freeze::FreezeAgent { workspace, agent, by: By::Program, reason };
    chat.site.gate.execute(freeze).unwrap();
    is_instead(&chat.pressed(OWNER, "approve", &asked).await, "This was denied already.");
    let mut chat = Chat::with(|_| {}).await;
    let asked = chat.asked().await;
    chat.site.shift(Span::hours(24));
    is_instead(&chat.pressed(OWNER, "approve", &asked).await, "The time for this is up.");
}

/// What is not signed, was signed too long ago, or was received before is nobody's, in one text; of one press that is sent
/// sixty-four times at once one is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_press_is_taken_once() {
    let mut chat = Chat::with(|_| {}).await;
    let asked = chat.asked().await;
    let (path, body) = (chat.path(), form(&chat.press(OWNER, "approve", &asked)));
    let now = chat.site.now().as_seconds();
    let good = slack_signature(now, body.as_bytes());
    let elsewhere = path.replace(&chat.site.workspace().to_string(), "wsp_00000000000000000000000001");
    let mut texts = Vec::new();
    let old = now - 301;
    for (path, signature, at, body) in [
        (&path, slack_signature(now, b"payload=x"), now, body.clone()),
        (&path, slack_signature(old, body.as_bytes()), old, body.clone()),
        (&path, good.clone(), now - 1, body.clone()),
        (&path, good[3..].to_owned(), now, body.clone()),
        (&path, good.clone(), now, format!("{body}&x=1")),
        (&elsewhere, good.clone(), now, body.clone()),
    ] {
        let at = at.to_string();
        let headers = [("x-slack-signature", &*signature), ("x-slack-request-timestamp", &*at)];
        let got = chat.client.ask("POST", path, &headers, body.as_bytes()).await;
        assert_eq!((got.status, got.kind()), (401, "unauthenticated".to_owned()), "{headers:?}");
        texts.push(got.json()["error"]["message"].clone());
    }
    texts.dedup();
    assert_eq!((texts.len(), chat.status(&asked).await), (1, "pending".to_owned()));
    let mut asking = JoinSet::new();
    for _ in 0..64 {
        let (mut client, path, good, body) = (chat.site.client().await, path.clone(), good.clone(), body.clone());
        asking.spawn(async move {
            let at = now.to_string();
            let headers = [("x-slack-signature", &*good), ("x-slack-request-timestamp", &*at)];
            client.ask("POST", &path, &headers, body.as_bytes()).await.status
        });
    }
    let mut statuses = asking.join_all().await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, &[401; 63][..]));
    assert_eq!(received(&chat).len(), 1);
    assert_eq!(chat.status(&asked).await, "allowed");
    chat.site.audit();
    chat.site.stop().await;
}

/// Slack's own questions are answered as it needs, other payloads recorded, and a signed body that is none is refused by its fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slacks_own_questions_are_answered() {
    let mut chat = Chat::with(|_| {}).await;
    let challenge = json!({ "type": "url_verification", "challenge": "3eZbrw1aB", "token": "x" }).to_string();
    assert_eq!(chat.tell(&challenge, "application/json").await.ok(), json!({ "challenge": "3eZbrw1aB" }));
    assert_eq!(chat.tell("ssl_check=1&token=x", FORM).await.ok(), json!({}));
    assert_eq!(chat.tell(&form(&json!({ "type": "view_submission" })), FORM).await.ok(), json!({}));
    let asked = chat.asked().await;
    let open = chat.press(OWNER, "open", &asked);
    assert_eq!(chat.tell(&form(&open), FORM).await.ok(), json!({}));
    let got = chat.tell("payload=x", FORM).await;
    assert_eq!((got.status, text(&got.json()["error"]["errors"][0]["field"])), (400, "payload"));
    let events =
        [("url_verification", "ignored"), ("ssl_check", "ignored"), ("other", "ignored"), ("block_actions", "ignored")];
    assert_eq!(received(&chat), events.map(|(event, outcome)| (event.to_owned(), outcome.to_owned())));
    assert_eq!(chat.status(&asked).await, "pending");
    let stranger = {
        let mut press = chat.press("USTRANGER", "deny", &asked);
        press["response_url"] = json!("http://127.0.0.2:9/actions");
        form(&press)
    };
    chat.slack.answer([Reply::Status(500)]);
    assert!(chat.tell(&stranger, FORM).await.ok()["text"].is_string());
    is_instead(&chat.pressed(OWNER, "deny", &asked).await, "This is denied.");
    chat.site.audit();
    chat.site.stop().await;
}

/// Whoever may decide what begins to wait and is linked is asked by a message of their own, under the bot's token; the agent's words
/// are plain text in it, and its button decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_may_decide_are_asked_in_slack() {
    let mut chat = Chat::with(|_| {}).await;
    let (admin, member) = (chat.site.member(Role::Admin), chat.site.member(Role::Member));
    let unlinked = chat.site.member(Role::Owner);
    chat.link(&[("UADMIN", admin.principal), ("UMEMBER", member.principal)]);
    chat.slack.answer([taken(), taken()]);
    let mut body = payment(30_000);
    body["summary"] = json!("Pay <!channel> & <https://evil.example|Approve> Waits until: never");
    let asked = chat.client.authorize(&chat.agent.key, &body).await.ok();
    let (one, other) = (posted(&mut chat).await, posted(&mut chat).await);
    let mut told = [one.json(), other.json()];
    told.sort_by_key(|it| it["channel"].to_string());
    assert_eq!((&told[0]["channel"], &told[1]["channel"]), (&json!("UADMIN"), &json!("UOWNER")));
    assert_eq!(one.header("authorization"), format!("Bearer {BOT_TOKEN}"));
    let blocks = told[1]["blocks"].as_array().unwrap();
    let said = blocks.iter().filter(|it| it["type"] == "section").flat_map(|it| match it["fields"].as_array() {
        Some(fields) => fields.iter().collect(),
        None => vec![&it["text"]],
    });
    let said: Vec<&Value> = said.collect();
    assert!(said.iter().all(|it| it["type"] == "plain_text" && it["emoji"] == false), "{told:?}");
    let texts: Vec<&str> = said.iter().map(|it| text(&it["text"])).collect();
    assert_eq!(texts[1], body["summary"]);
    assert!(
        texts.contains(&"Amount: EUR 300.00") && texts.iter().any(|it| it.starts_with("Waits until: 2")),
        "{texts:?}"
    );
    assert!(!texts.contains(&"Waits until: never"));
    let short = text(&told[1]["text"]);
    assert!(short.contains("&lt;!channel&gt; &amp; &lt;https://evil.example|Approve&gt; Waits"), "{short}");
    let buttons = &blocks.last().unwrap()["elements"];
    let press = chat.press(OWNER, "approve", &asked);
    assert_eq!((&buttons[0]["action_id"], &buttons[0]["value"]), (&json!("approve"), &press["actions"][0]["value"]));
    assert_eq!((&buttons[1]["action_id"], &buttons[2]["url"]), (&json!("deny"), &asked["approval"]["url"]));
    is_instead(&chat.pressed(OWNER, "approve", &asked).await, "You approved this.");
    let item = delivered(&mut chat, &unlinked, &asked, ("delivered", 1)).await;
    assert_eq!((&item["subject"], &item["host"]), (&asked["approval"]["id"], &json!("127.0.0.1")));
    chat.site.audit();
    chat.site.stop().await;
}

/// What a tool would be given is in the message; where that is not all of it, nobody approves there, and is told why. A sign that nobody
/// sees takes the room of its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_approves_in_slack_what_is_not_all_shown() {
    let mut chat = Chat::with(|_| {}).await;
    let hidden = |signs: usize| "\u{200b}".repeat(signs);
    for (shell, summary, command, is_whole) in [
        ("sh", "Look around".to_owned(), "rm -rf /srv".to_owned(), true),
        ("bash", "Look around".to_owned(), format!("true #{}", "x".repeat(2_000)), false),
        ("zsh", "Look around".to_owned(), format!("true{}; rm -rf /srv", hidden(220)), false),
        ("ksh", format!("Look{} and delete", hidden(400)), "ls".to_owned(), false),
    ] {
        chat.slack.answer([taken()]);
        let body = json!({ "type": "mcp.call", "summary": summary,
            "tool": { "name": shell, "server": "box", "input": { "command": command } } });
        chat.client.authorize(&chat.agent.key, &body).await.ok();
        let told = posted(&mut chat).await.json();
        let blocks = told["blocks"].as_array().unwrap();
        let fields: Vec<&Value> = blocks.iter().filter_map(|it| it["fields"].as_array()).flatten().collect();
        let given = fields.iter().map(|it| text(&it["text"])).find(|it| it.starts_with("The tool is given: "));
        let head: String = command.chars().take_while(char::is_ascii).take(1_000).collect();
        assert!(given.is_some_and(|it| it.contains(&format!(r#"{{"command":"{head}"#))), "{told}");
        let buttons: Vec<&str> =
            blocks.last().unwrap()["elements"].as_array().unwrap().iter().map(|it| text(&it["action_id"])).collect();
        let expected: &[&str] = if is_whole { &["approve", "deny", "open"] } else { &["deny", "open"] };
        assert_eq!(buttons, expected);
        assert_eq!(told.to_string().contains("Not all of it is shown here"), !is_whole, "{told}");
    }
    // A digest or a length may stand for what was not sent, or beside what was shortened.
    let (input, other) = (json!({ "command": "ls" }), format!("sha256:{}", Digest::of("other")));
    let own = format!("sha256:{}", Digest::of(input.to_string()));
    for (name, tool, is_whole) in [
        ("a", json!({ "input": input, "inputDigest": own, "inputBytes": 16 }), true),
        ("b", json!({ "input": input, "inputDigest": other }), false),
        ("c", json!({ "input": input, "inputBytes": 4_216 }), false),
        ("d", json!({ "inputDigest": own, "inputBytes": 16 }), false),
    ] {
        chat.slack.answer([taken()]);
        let mut tool = tool;
        (tool["name"], tool["server"]) = (json!(name), json!("box"));
        let body = json!({ "type": "mcp.call", "summary": "Look around", "tool": tool });
        chat.client.authorize(&chat.agent.key, &body).await.ok();
        let told = posted(&mut chat).await.json();
        let offered = told["blocks"].as_array().unwrap().last().unwrap()["elements"][0]["action_id"] == "approve";
        assert_eq!((offered, told.to_string().contains("The tool is given in all")), (is_whole, !is_whole), "{told}");
    }
    chat.site.stop().await;
}

/// Of a tool that ran without having been allowed those are told in Slack who are linked and may decide: there is nothing to press,
/// and what the agent wrote is plain text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unapproved_run_is_told_in_slack() {
    let mut chat = Chat::with(|_| {}).await;
    let member = chat.site.member(Role::Member);
    chat.link(&[("UMEMBER", member.principal)]);
    chat.slack.answer([taken(), taken(), taken()]);
    let mut body = payment(30_000);
    body["summary"] = json!("Pay <!channel> & <https://evil.example|Approve>");
    let asked = chat.client.authorize(&chat.agent.key, &body).await.ok();
    posted(&mut chat).await;
    let ran = format!("/v1/actions/{}/ran", text(&asked["id"]));
    chat.client.post(&ran, &chat.agent.key, &json!({})).await.ok();
    let told = posted(&mut chat).await.json();
    assert_eq!(told["channel"], OWNER);
    let short = text(&told["text"]);
    assert!(
        short.starts_with("An agent's tool ran although its action was not allowed. Pay &lt;!channel&gt;"),
        "{short}"
    );
    let blocks = told["blocks"].as_array().unwrap();
    assert!(blocks.iter().all(|it| it["type"] == "section"), "{told}");
    assert_eq!(blocks[1]["text"], json!({ "type": "plain_text", "text": body["summary"], "emoji": false }));
    let url = format!("{BASE_URL}/w/{}/activity/{}", chat.site.workspace(), text(&asked["id"]));
    assert_eq!(blocks.last().unwrap()["text"], json!({ "type": "mrkdwn", "text": format!("Look at it: <{url}>") }));
    chat.site.audit();
    chat.site.stop().await;
}

/// A message that Slack does not take is tried again, not sooner than Slack wants it; one about what has been decided meanwhile
/// is not sent any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_slack_does_not_take_is_tried_again() {
    let mut chat = Chat::with(|_| {}).await;
    let owner = chat.owner.clone();
    let refused = json!({ "ok": false, "error": "channel_not_found" }).to_string();
    chat.slack.answer([Reply::Document("no-store", refused), Reply::Status(503), taken()]);
    let asked = chat.asked().await;
    let first = posted(&mut chat).await;
    let item = delivered(&mut chat, &owner, &asked, ("waiting", 1)).await;
    assert_eq!(
        (&item["attempts"][0]["status"], text(&item["attempts"][0]["error"])),
        (&json!(200), "the service answered that it did not take the message")
    );
    chat.site.shift(Span::minutes(2));
    posted(&mut chat).await;
    delivered(&mut chat, &owner, &asked, ("waiting", 2)).await;
    chat.site.shift(Span::hours(1));
    let last = posted(&mut chat).await;
    assert_eq!(first.json(), last.json());
    delivered(&mut chat, &owner, &asked, ("delivered", 3)).await;
    is_instead(&chat.pressed(OWNER, "deny", &asked).await, "This is denied.");
    chat.slack.answer([Reply::Status(503)]);
    let asked = chat.asked().await;
    posted(&mut chat).await;
    delivered(&mut chat, &owner, &asked, ("waiting", 1)).await;
    is_instead(&chat.pressed(OWNER, "deny", &asked).await, "This is denied.");
    chat.site.shift(Span::hours(1));
    delivered(&mut chat, &owner, &asked, ("replaced", 1)).await;
    let ledger: String = chat.site.ledger().iter().map(|it| it.data.to_string()).collect();
    assert!(!ledger.contains(BOT_TOKEN) && !ledger.contains(OWNER));
    chat.site.audit();
    chat.site.stop().await;
}

/// An owner tries it out by a message to themselves; whoever is not linked has nothing to try, and no address is taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_linked_owner_tries_it_out() {
    let mut chat = Chat::with(|_| {}).await;
    let (owner, other) = (chat.owner.clone(), chat.site.member(Role::Owner));
    let path = format!("/api/w/{}/integrations/{}/test", chat.site.workspace(), chat.integration.id);
    chat.slack.answer([taken()]);
    let tested = owner.ask(&mut chat.client, "POST", &path, Some(&json!({}))).await.ok();
    assert!(text(&tested["deliveryId"]).starts_with("dlv_"));
    let told = posted(&mut chat).await.json();
    assert_eq!((&told["channel"], text(&told["text"])), (&json!(OWNER), "svc: messages come through"));
    let got = other.ask(&mut chat.client, "POST", &path, Some(&json!({}))).await;
    assert_eq!((got.status, got.kind().as_str()), (409, "not_allowed"));
    let got = owner.ask(&mut chat.client, "POST", &path, Some(&json!({ "url": "https://a.example" }))).await;
    assert_eq!(got.status, 400);
    chat.site.audit();
    chat.site.stop().await;
}

/// What is decided on its page is told where it was asked in Slack: the message there is changed, says what came of it, and has no
/// button that decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_says_what_was_decided_elsewhere() {
    let mut chat = Chat::with(|_| {}).await;
    chat.slack.answer([taken(), taken()]);
    let asked = chat.asked().await;
    posted(&mut chat).await;
    let owner = chat.owner.clone();
    delivered(&mut chat, &owner, &asked, ("delivered", 1)).await;
    let path = format!("/api/w/{}/approvals/{}/deny", chat.site.workspace(), text(&asked["approval"]["id"]));
    owner.ask(&mut chat.client, "POST", &path, Some(&json!({ "actionDigest": asked["actionDigest"] }))).await.ok();
    chat.site.advance(Span::seconds(1));
    let changed = chat.slack.next().await;
    assert_eq!(changed.line, "POST /api/chat.update HTTP/1.1");
    assert_eq!(changed.header("authorization"), format!("Bearer {BOT_TOKEN}"));
    let body = changed.json();
    assert_eq!((&body["channel"], &body["ts"]), (&json!("D1"), &json!("1.2")));
    assert!(text(&body["text"]).starts_with("This was denied."), "{body}");
    let buttons = body["blocks"].as_array().unwrap().last().unwrap()["elements"].as_array().unwrap().clone();
    let actions: Vec<&str> = buttons.iter().map(|it| text(&it["action_id"])).collect();
    assert_eq!(actions, ["open"], "{body}");
    chat.site.audit();
    chat.site.stop().await;
}

/// All that is decided on stands in the message, or there is no yes beside it: what is shared and what for, the details that a tool of
/// the agent's own gets, why a person is asked, which limits a yes would pass, and whose words are behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_has_all_that_is_decided_on() {
    let mut chat = Chat::with(|_| {}).await;
    let ask = r#"{"name":"Ask","actions":["payment"],"limits":{"currency":"EUR","perAction":1000,"onLimit":"ask"}}"#;
    let spender = chat.site.agent(&[ask]);
    let share =
        json!({ "recipient": "bob@p\u{430}ypal.com", "fields": ["name, email", "iban"], "purpose": "An audit" });
    let update = |kind: &str, details: Value| json!({ "type": kind, "summary": "Tidy up", "details": details });
    let both = json!({ "type": "mcp.call", "summary": "Look around", "details": { "delete_all": true },
        "tool": { "name": "sh", "server": "box", "input": { "command": "ls" } } });
    let mut transfer = payment(5_000_000);
    transfer["provenance"] = json!([{ "source": "email" }]);
    let own = chat.agent.key.clone();
    for (key, body, told, has_yes) in [
        (
            &own,
            json!({ "type": "data.share", "summary": "Share it", "data": share }),
            &[
                "Data goes to: bob@p\u{430}ypal.com",
                "Its domain: xn--pypal-4ve.com",
                r#"Fields: "name, email" "iban""#,
                "Purpose: An audit",
                "Why: no mandate of this agent covers this type of action",
            ][..],
            true,
        ),
        (&own, update("crm.update", json!({ "delete_all": true })), &[r#"Details: {"delete_all":true}"#], true),
        (&own, update("crm.purge", json!({ "note": "x".repeat(2_000) })), &["Details: {\"note\":\"x"], false),
        (&own, both, &[r#"Details: {"delete_all":true}"#, r#"The tool is given: {"command":"ls"}"#], true),
        (
            &spender.key,
            transfer,
            &[
                "Why: EUR 50000.00 is above EUR 10.00 for one action",
                "Why: content that others wrote is behind this request",
                "Content from: somebody outside wrote it",
                "Approving: makes an exception to the mandate's limits, this once",
            ],
            true,
        ),
    ] {
        chat.slack.answer([taken()]);
        chat.client.authorize(key, &body).await.ok();
        let message = posted(&mut chat).await.json();
        let blocks = message["blocks"].as_array().unwrap();
        let fields: Vec<&str> =
            blocks.iter().filter_map(|it| it["fields"].as_array()).flatten().map(|it| text(&it["text"])).collect();
        for it in told {
            assert!(fields.iter().any(|field| field.starts_with(it)), "{it}: {fields:?}");
        }
        let words = blocks.last().unwrap()["elements"].as_array().unwrap().iter().map(|it| text(&it["action_id"]));
        let expected: &[&str] = if has_yes { &["approve", "deny", "open"] } else { &["deny", "open"] };
        assert_eq!(words.collect::<Vec<_>>(), expected, "{message}");
    }
    chat.site.audit();
    chat.site.stop().await;
}

/// A freeze that waits is agreed to beside the names of all the agents that it stops; of more than a message lists there is no yes in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_freeze_is_agreed_to_beside_its_agents() {
    for (count, expected) in [(2, &["approve", "deny", "open"][..]), (21, &["deny", "open"])] {
        let mut chat = Chat::with(|settings| settings.freeze_ceiling_per_hour = 1).await;
        // One pays already.
        for _ in 1..count {
            chat.site.agent(&[WIDE]);
        }
        let token = chat.site.token(&[TokenScope::AgentsFreeze]);
        chat.slack.answer([taken()]);
        let freeze = json!({ "selector": { "action": "payment" }, "reason": "a leak", "confirmCount": count });
        assert_eq!(chat.client.post("/v1/admin/freeze", &token, &freeze).await.status, 202);
        let message = posted(&mut chat).await.json();
        let blocks = message["blocks"].as_array().unwrap();
        let mut fields = blocks.iter().filter_map(|it| it["fields"].as_array()).flatten().map(|it| text(&it["text"]));
        let names = vec![r#""Agent""#; count.min(20)].join(" ");
        assert!(fields.any(|it| it == format!("Agents: {names}")), "{message}");
        let words = blocks.last().unwrap()["elements"].as_array().unwrap().iter().map(|it| text(&it["action_id"]));
        assert_eq!(words.collect::<Vec<_>>(), expected, "{message}");
        chat.site.audit();
        chat.site.stop().await;
    }
}
