//! What Slack sends to an app's request URL: forms with a payload where somebody has pressed something, and the questions by which
//! Slack sees whether it reaches the app.

use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gate::decide::Choice;
use svc_core::state::edge::LINKED_NAME_MAX;
use svc_core::value::digest::Digest;
use svc_core::value::id::ApprovalId;
use svc_core::value::json::Json;
use url::form_urlencoded;

use crate::wire::parse;

/// Characters of a type that is not known here, and of a challenge.
const WORD_MAX: usize = 200;
/// Characters of the address that answers to a press are sent to.
const URL_MAX: usize = 2_048;
/// Blocks of a message that are kept: Slack admits fifty, and one is added.
const BLOCKS_MAX: usize = 49;
/// The action of the button that says yes.
pub const APPROVE: &str = "approve";
/// The action of the button that says no.
pub const DENY: &str = "deny";

/// What Slack sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Interaction {
    /// Somebody has pressed a button that decides an approval.
    Pressed(Pressed),
    /// Somebody has pressed something else of a message.
    Elsewhere,
    /// Slack looks whether the certificate is good.
    SslCheck,
    /// Slack looks whether the address is the app's: it is told this.
    Challenge(String),
    /// Something else, by this type.
    Other(Box<str>),
}

/// A press of a button that decides an approval.
#[derive(Debug, PartialEq, Eq)]
pub struct Pressed {
    /// Who, as Slack calls them.
    pub user: String,
    /// Yes or no.
    pub choice: Choice,
    /// To what.
    pub approval: ApprovalId,
    /// The digest of what the button stood beside.
    pub digest: Option<Digest>,
    /// Where the message can be answered to, where Slack says so.
    pub response_url: Option<String>,
    /// What the message says, without its buttons.
    pub blocks: Vec<Json>,
}

impl Interaction {
    /// Reads a body, whose signature was found good.
    ///
    /// # Errors
    /// `invalid_json`, or `invalid_request` naming what is missing.
    pub fn read(body: &[u8], is_json: bool) -> Result<Self, Refusal> {
        if is_json {
            return Self::of_event(&parse(body)?);
        }
        let (mut payload, mut checks) = (None, false);
        for (name, value) in form_urlencoded::parse(body) {
            match &*name {
                "payload" if payload.is_none() => payload = Some(value),
                "ssl_check" => checks |= value == "1",
                _ => {}
            }
        }
        match payload {
            None if checks => Ok(Self::SslCheck),
            None => Err(Refusal::invalid_request(vec![FieldError::missing("payload")])),
            Some(text) => {
                let payload = Json::parse(text.as_bytes());
                Self::of_payload(&payload.map_err(|_| Refusal::invalid_field("payload", "must be JSON"))?)
            }
        }
    }

    fn of_event(event: &Json) -> Result<Self, Refusal> {
        let name = word(event, "type")?;
        match (&*name, event.get("challenge").and_then(Json::as_str)) {
            ("url_verification", Some(challenge)) if challenge.chars().count() <= WORD_MAX => {
                Ok(Self::Challenge(challenge.to_owned()))
            }
            ("url_verification", _) => {
                Err(Refusal::invalid_field("challenge", format!("must be text of at most {WORD_MAX} characters")))
            }
            _ => Ok(Self::Other(name)),
        }
    }

    fn of_payload(payload: &Json) -> Result<Self, Refusal> {
        let name = word(payload, "payload.type")?;
        match &*name {
            "block_actions" => Ok(Pressed::of(payload).map_or(Self::Elsewhere, Self::Pressed)),
            _ => Ok(Self::Other(name)),
        }
    }
}

impl Pressed {
    /// The one press that a payload tells of; `None` where that is of another button than those that decide.
    fn of(payload: &Json) -> Option<Self> {
        let [action] = payload.get("actions")?.as_list()? else { return None };
        let choice = match action.get("action_id")?.as_str()? {
            APPROVE => Choice::Approve,
            DENY => Choice::Deny,
            _ => return None,
        };
        let (approval, digest) = read_value(action.get("value")?.as_str()?)?;
        let user = payload.get("user")?.get("id")?.as_str().filter(|it| it.len() <= LINKED_NAME_MAX)?;
        let response_url = payload.get("response_url").and_then(Json::as_str).filter(|it| it.len() <= URL_MAX);
        let (user, response_url) = (user.to_owned(), response_url.map(str::to_owned));
        Some(Self { user, choice, approval, digest, response_url, blocks: said(payload) })
    }
}

/// What the message says that a button belongs to, without its buttons.
fn said(payload: &Json) -> Vec<Json> {
    let blocks = payload.get("message").and_then(|it| it.get("blocks")).and_then(Json::as_list).unwrap_or_default();
    let is_said = |it: &&Json| it.get("type").and_then(Json::as_str) != Some("actions");
    blocks.iter().take(BLOCKS_MAX).filter(is_said).cloned().collect()
}

/// What a button carries: the approval, and the digest of what it stands beside where that has one.
#[must_use]
pub fn value(approval: ApprovalId, digest: Option<&Digest>) -> String {
    match digest {
        Some(digest) => format!("{approval}.{digest}"),
        None => approval.to_string(),
    }
}

fn read_value(text: &str) -> Option<(ApprovalId, Option<Digest>)> {
    let (approval, digest) = match text.split_once('.') {
        Some((approval, digest)) => (approval, Some(Digest::parse(digest).ok()?)),
        None => (text, None),
    };
    Some((ApprovalId::parse(approval).ok()?, digest))
}

/// The type of something, at this path.
fn word(of: &Json, path: &str) -> Result<Box<str>, Refusal> {
    let word = of.get("type").and_then(Json::as_str).filter(|it| (1..=WORD_MAX).contains(&it.chars().count()));
    word.map(Into::into)
        .ok_or_else(|| Refusal::invalid_field(path, format!("is required, a text of 1 to {WORD_MAX} characters")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::refusal::Kind;
    use svc_core::value::Id as _;

    use super::*;

    fn form(payload: &str) -> String {
        form_urlencoded::Serializer::new(String::new()).append_pair("payload", payload).finish()
    }

    fn read(payload: &str) -> Interaction {
        Interaction::read(form(payload).as_bytes(), false).unwrap()
    }

    fn press(action: &str, value: &str) -> String {
        format!(
            r#"{{"type":"block_actions","user":{{"id":"U1"}},"message":{{"blocks":[{{"type":"section"}},{{"type":"actions"}}]}},"response_url":"https://hooks.slack.com/actions/1",
                "actions":[{{"action_id":"{action}","value":"{value}"}}]}}"#
        )
    }

    /// A press names the approval, the choice, who and of what; what a button carries is read as it was written.
    #[test]
    fn a_press_is_read_as_its_button_was_written() {
        let (approval, digest) = (ApprovalId::from_bits(7), Digest::of("it"));
        for (action, choice) in [(APPROVE, Choice::Approve), (DENY, Choice::Deny)] {
            for digest in [None, Some(digest)] {
                let read = read(&press(action, &value(approval, digest.as_ref())));
                let response_url = Some("https://hooks.slack.com/actions/1".to_owned());
                let blocks = vec![Json::parse(br#"{"type":"section"}"#).unwrap()];
                let pressed = Pressed { user: "U1".to_owned(), choice, approval, digest, response_url, blocks };
                assert_eq!(read, Interaction::Pressed(pressed));
            }
        }
    }

    /// What is pressed elsewhere, or is no press of one button of ours, decides nothing.
    #[test]
    fn other_presses_decide_nothing() {
        let good = value(ApprovalId::from_bits(7), None);
        for payload in [
            press("open", &good),
            press(APPROVE, "apv_1"),
            press(APPROVE, &format!("{good}.00")),
            press(APPROVE, &good).replace("}]}", "},{}]}"),
            press(APPROVE, &good).replace(r#""id":"U1""#, r#""id":7"#),
            r#"{"type":"block_actions"}"#.to_owned(),
        ] {
            assert_eq!(read(&payload), Interaction::Elsewhere, "{payload}");
        }
        assert_eq!(read(r#"{"type":"view_submission"}"#), Interaction::Other("view_submission".into()));
    }

    /// Slack's questions are known, and what is none of all that is refused by the place of its fault.
    #[test]
    fn questions_are_known_and_faults_are_named() {
        let asked = |body: &str, is_json| Interaction::read(body.as_bytes(), is_json);
        let challenge = r#"{"type":"url_verification","challenge":"abc","token":"x"}"#;
        assert_eq!(asked(challenge, true).unwrap(), Interaction::Challenge("abc".to_owned()));
        assert_eq!(asked("ssl_check=1&token=x", false).unwrap(), Interaction::SslCheck);
        assert_eq!(asked(r#"{"type":"event_callback"}"#, true).unwrap(), Interaction::Other("event_callback".into()));
        for (body, is_json, field) in [
            ("token=x", false, "payload"),
            ("payload=x", false, "payload"),
            ("payload=%7B%7D", false, "payload.type"),
            ("{}", true, "type"),
            (r#"{"type":"url_verification"}"#, true, "challenge"),
        ] {
            let refusal = asked(body, is_json).unwrap_err();
            let named = refusal.errors().first().and_then(|it| it.field.as_deref());
            assert_eq!((refusal.kind(), named), (Kind::InvalidRequest, Some(field)), "{body}");
        }
        assert_eq!(asked("{", true).unwrap_err().kind(), Kind::InvalidJson);
    }
}
