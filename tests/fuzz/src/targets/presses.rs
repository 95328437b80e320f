//! What chats, relays and code hosts send: presses of buttons, and pull requests that were closed.

use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::value::canonical::canonical;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_http::inbound::button::Button;
use svc_http::inbound::interaction::{Interaction, value};
use svc_http::inbound::pull_request::{Closed, MEANT_MAX, NAMED_MAX};
use svc_http::inbound::signature::{Secrets, plain, slack, stamped};
use svc_http::wire::press;
use url::form_urlencoded::Serializer;

use super::bodies::leads;
use super::mandates::NOW;
use super::{inputs, is_the_callers, line_and_rest};

const SIGNATURE: HeaderName = HeaderName::from_static("x-signature");
const TIME: HeaderName = HeaderName::from_static("x-time");

/// Whatever a header says, none of these schemes takes it for a signature by a secret that nobody has.
fn is_unsigned(line: &[u8], body: &[u8]) {
    let Ok(sent) = HeaderValue::from_bytes(line) else { return };
    let secrets = Secrets::new(vec![Secret::new(b"a secret that nobody has".to_vec())]);
    let time = HeaderValue::from(NOW.as_seconds());
    let headers = HeaderMap::from_iter([(SIGNATURE, sent.clone()), (TIME, time)]);
    let turned = HeaderMap::from_iter([(SIGNATURE, HeaderValue::from_static("v0=00")), (TIME, sent)]);
    for headers in [&headers, &turned] {
        for secrets in [&secrets, &Secrets::default()] {
            assert_eq!(stamped(headers, &SIGNATURE, body, secrets, NOW), None);
            assert_eq!(slack(headers, (&SIGNATURE, &TIME), body, secrets, NOW), None);
            assert_eq!(plain(headers, &SIGNATURE, body, secrets), None);
        }
    }
}

/// A first line that is a signature, and a body: a form with a payload, an event, a relay's press, or a button's own bytes. What is
/// pressed is what a button was written with; all else is passed over or refused for the sender to mend.
///
/// # Panics
/// Where that is not so.
pub fn press(data: &[u8]) {
    let (line, body) = line_and_rest(data);
    is_unsigned(line, body);
    for is_json in [true, false] {
        match Interaction::read(body, is_json) {
            Err(refusal) => is_the_callers(&refusal),
            Ok(Interaction::Challenge(text)) => assert!(is_json && text.chars().count() <= 200),
            Ok(Interaction::Pressed(pressed)) => {
                assert!(!is_json && pressed.blocks.len() < 50);
                let is_button = |it: &Json| it.get("type").and_then(Json::as_str) == Some("actions");
                assert!(!pressed.blocks.iter().any(is_button), "its buttons are gone");
                let value = value(pressed.approval, pressed.digest.as_ref());
                assert_eq!(Interaction::read(&again(body, &value), false), Ok(Interaction::Pressed(pressed)));
            }
            Ok(_) => {}
        }
    }
    match press::read(body) {
        Err(refusal) => {
            is_the_callers(&refusal);
            if let Ok(json) = Json::parse(body) {
                let paths = refusal.errors().iter().filter_map(|it| it.field.as_deref());
                paths.for_each(|it| assert!(leads(&json, it), "{it:?} leads nowhere"));
            }
        }
        Ok(relayed) => {
            let text = canonical(&Json::parse(body).expect("what was read is JSON"));
            let again = press::read(text.as_bytes()).expect("it is read again");
            assert_eq!((again.id, again.token, again.member), (relayed.id, relayed.token, relayed.member));
        }
    }
    if let Some(button) = Button::read(body) {
        assert_eq!(button.bytes(), body, "no two texts are one button");
    }
}

/// The same payload in a form of its own, its button with this value.
fn again(form: &[u8], value: &str) -> Vec<u8> {
    let payload = url::form_urlencoded::parse(form).find(|(name, _)| name == "payload").expect("it has one").1;
    let mut payload = Json::parse(payload.as_bytes()).expect("it is JSON");
    let Json::Object(members) = &mut payload else { panic!("it is an object") };
    let actions = members.iter_mut().find(|(name, _)| name == "actions").map(|(_, it)| it);
    let Some(Json::List(actions)) = actions else { panic!("it has actions") };
    let Some(Json::Object(action)) = actions.first_mut() else { panic!("one of them") };
    action.iter_mut().filter(|(name, _)| name == "value").for_each(|(_, it)| *it = Json::Text(value.to_owned()));
    Serializer::new(String::new()).append_pair("payload", &canonical(&payload)).finish().into_bytes()
}

/// Presses, questions and events of both senders, and signatures of each scheme.
#[must_use]
pub fn press_seeds() -> Vec<Vec<u8>> {
    let form = |payload: &str| Serializer::new(String::new()).append_pair("payload", payload).finish();
    let pressed = r#"{"type":"block_actions","user":{"id":"U012"},"message":{"blocks":[{"type":"section"},{"type":"actions"}]},"response_url":"https://hooks.slack.com/actions/1","actions":[{"action_id":"approve","value":"apv_01K6FN0001000000000000000A.0000000000000000000000000000000000000000000000000000000000000000"}]}"#;
    let mut seeds = inputs(&[
        &format!("v0=0000000000000000000000000000000000000000000000000000000000000000\n{}", form(pressed)),
        &format!("sha256=00\n{}", form(r#"{"type":"view_submission","actions":[]}"#)),
        "t=1790847000,v1=00\n{\"type\":\"url_verification\",\"challenge\":\"abc\"}",
        "\nssl_check=1&token=x",
        "\n{\"id\":\"e1\",\"token\":\"v1.abcdef\",\"member\":\"ann@chat\"}",
        "\n{\"id\":\"\",\"token\":7}",
    ]);
    for digest in [0, 32] {
        let mut button = vec![b'\n', 2, 1];
        button.extend([7; 16]);
        button.extend(vec![1; digest]);
        button.extend(NOW.as_millis().to_be_bytes());
        seeds.push(button);
    }
    seeds
}

/// A first line that is the name of an event, and its body: a pull request that was closed names some tasks that stand in it, however it
/// is written; all else is passed over or refused for the host to see.
///
/// # Panics
/// Where that is not so.
pub fn pull_request(data: &[u8]) {
    let (event, body) = line_and_rest(data);
    let Ok(event) = std::str::from_utf8(event) else { return };
    match Closed::read(event, body, false) {
        Err(refusal) => {
            is_the_callers(&refusal);
            if let Ok(json) = Json::parse(body) {
                let paths = refusal.errors().iter().filter_map(|it| it.field.as_deref());
                paths.for_each(|it| assert!(leads(&json, it), "{it:?} leads nowhere"));
            }
        }
        Ok(None) => {}
        Ok(Some(closed)) => {
            assert!(closed.tasks.len() <= NAMED_MAX);
            let text = canonical(&Json::parse(body).expect("what was read is JSON"));
            for meant in &closed.tasks {
                assert!((1..=MEANT_MAX).contains(&meant.len()), "{meant:?}");
                assert!(meant.iter().all(|it| text.contains(it.as_str()) && it.as_str().starts_with("tsk_")));
                assert!(meant.is_sorted_by(|a, b| a.as_str().len() > b.as_str().len()), "{meant:?}");
            }
            let form = Serializer::new(String::new()).append_pair("payload", &text).finish();
            assert_eq!(Closed::read(event, text.as_bytes(), false).as_ref(), Ok(&Some(closed)));
            assert_eq!(Closed::read(event, form.as_bytes(), true), Closed::read(event, body, false));
        }
    }
    if let Err(refusal) = Closed::read(event, body, true) {
        is_the_callers(&refusal);
    }
}

/// Events of a host.
#[must_use]
pub fn pull_request_seeds() -> Vec<Vec<u8>> {
    inputs(&[
        "pull_request\n{\"action\":\"closed\",\"repository\":{\"full_name\":\"acme/site\"},\"pull_request\":{\"base\":{\"ref\":\"main\"},\"head\":{\"ref\":\"tsk_fix-1-done\",\"repo\":{\"full_name\":\"ann/site\"}},\"merged\":true,\"number\":7,\"closed_at\":\"2026-10-01T09:30:00Z\",\"author_association\":\"NONE\",\"title\":\"Fix tsk_a_b\",\"body\":\"see tsk_c, (tsk_d) xtsk_e\"}}",
        "pull_request\n{\"action\":\"closed\",\"pull_request\":{\"base\":{},\"head\":{\"repo\":null},\"merged\":1}}",
        "pull_request\n{\"action\":\"opened\"}",
        "ping\n{\"zen\":1e999}",
        "pull_request\npayload=%7B%22action%22%3A%22closed%22%7D",
    ])
}
