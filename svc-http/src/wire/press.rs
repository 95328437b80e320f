//! What whoever presses a button of another system is told, and what a relay sends (CONTRACT part 6, "Inbound").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::edge::button::{
    CHANGED, DECIDED, EXPIRED, FORBIDDEN, NOT_FOUND, NOT_LINKED, NOT_POSSIBLE, ON_PAGE, SECOND_FACTOR, SECOND_PERSON,
    USED,
};
use svc_core::state::edge::{Heard, LINKED_NAME_MAX};
use svc_core::value::Invalid;

use super::{Fields, parse, text};
use crate::inbound::button::SEALED_MAX;

/// Characters of an event's id.
const ID_MAX: usize = 200;
/// What a relay is told of a token that is none.
pub const UNKNOWN_BUTTON: &str = "unknown_button";
/// Why somebody's word was not taken.
pub const REASONS: [&str; 12] = [
    CHANGED,
    DECIDED,
    EXPIRED,
    FORBIDDEN,
    NOT_FOUND,
    NOT_LINKED,
    NOT_POSSIBLE,
    ON_PAGE,
    SECOND_FACTOR,
    SECOND_PERSON,
    UNKNOWN_BUTTON,
    USED,
];

/// A press that a relay passes on.
#[derive(Debug)]
pub struct Relayed {
    /// The relay's id of it: the same where it is sent again.
    pub id: String,
    /// The button, as the relay was given it.
    pub token: String,
    /// Who pressed it, as the relay calls them.
    pub member: String,
}

/// Reads a press, whose signature was found good.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<Relayed, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let id = fields.required("id", |it| bounded(text(it)?, ID_MAX));
    let token = fields.required("token", |it| bounded(text(it)?, SEALED_MAX));
    let member = fields.required("member", |it| bounded(text(it)?, LINKED_NAME_MAX));
    fields.finish(id.zip(token).zip(member).map(|((id, token), member)| Relayed { id, token, member }))
}

fn bounded(text: &str, max: usize) -> Result<String, Invalid> {
    let is_one = (1..=max).contains(&text.len());
    if is_one { Ok(text.to_owned()) } else { Err(Invalid::new(format!("must have 1 to {max} bytes"))) }
}

/// Whether a word was taken.
#[must_use]
pub fn is_taken(heard: &Heard) -> bool {
    matches!(&*heard.outcome, "approved" | "denied")
}

/// What a relay is told.
#[must_use]
pub fn relayed(heard: &Heard) -> Value {
    let mut out = json!({ "decided": is_taken(heard) });
    if let Some(stands) = &heard.stands {
        super::put(&mut out, "approval", json!(stands));
    }
    if !is_taken(heard) {
        let reason = if REASONS.contains(&&*heard.outcome) { &*heard.outcome } else { UNKNOWN_BUTTON };
        super::put(&mut out, "reason", json!(reason));
    }
    out
}

/// The same in a sentence for whoever pressed the button.
#[must_use]
pub fn sentence(heard: &Heard) -> &'static str {
    match (&*heard.outcome, heard.stands.as_deref()) {
        ("approved", _) => "You approved this.",
        ("denied", _) => "This is denied.",
        (NOT_POSSIBLE, Some("denied")) => {
            "You said yes, but the rules have changed since this was asked: it is denied."
        }
        (CHANGED, _) => "What waits is not what this message shows. Look at it again.",
        (DECIDED, Some("approved")) => "This was approved already.",
        (DECIDED, _) => "This was denied already.",
        (EXPIRED, _) => "The time for this is up.",
        (USED, _) => "This button was pressed already.",
        (SECOND_PERSON, _) => "Another person than you has to agree to this.",
        (SECOND_FACTOR, _) => "This takes your second factor. Decide it on its page.",
        (ON_PAGE, _) => "A yes to this is given on its page.",
        (NOT_LINKED, _) => "You are not linked to a member who may decide here. Ask an owner or admin to link you.",
        (NOT_FOUND | FORBIDDEN, _) => "There is nothing here that you may decide.",
        _ => "This cannot be decided here. Look at its page.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relay is told the reason of what was not taken, and where the approval stands to those who may read it.
    #[test]
    fn a_relay_is_told_why() {
        let stands = |outcome: &str, stands: &str| Heard { stands: Some(stands.into()), ..Heard::of(outcome) };
        for (heard, told) in [
            (stands("approved", "approved"), json!({ "decided": true, "approval": "approved" })),
            (stands(ON_PAGE, "waiting"), json!({ "decided": false, "approval": "waiting", "reason": "on_page" })),
            (stands(DECIDED, "denied"), json!({ "decided": false, "approval": "denied", "reason": "decided" })),
            (Heard::of(NOT_LINKED), json!({ "decided": false, "reason": "not_linked" })),
            (Heard::of("ignored"), json!({ "decided": false, "reason": "unknown_button" })),
        ] {
            assert_eq!(relayed(&heard), told);
        }
    }

    /// Every reason has a sentence of its own but those that would tell whether there is an approval.
    #[test]
    fn every_reason_has_a_sentence() {
        let of = |outcome: &str| sentence(&Heard { stands: Some("denied".into()), ..Heard::of(outcome) });
        let mut sentences: Vec<&str> = REASONS.iter().map(|it| of(it)).collect();
        assert_eq!(of(NOT_FOUND), of(FORBIDDEN));
        sentences.sort_unstable();
        sentences.dedup();
        assert_eq!(sentences.len(), REASONS.len() - 1, "{sentences:?}");
    }
}
