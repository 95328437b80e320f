//! What somebody is asked in Slack: a message of blocks, its buttons, and how it reads where blocks are not shown.
//!
//! **Invariant:** what others wrote stands as plain text in places of its own, and where Slack reads markup the signs
//! that markup begins with are escaped: it mentions nobody, links nowhere and presses nothing.

use serde_json::{Value, json};
use svc_core::rules::edge::button::has_no_yes;
use svc_core::rules::edge::message::{About, Asked, Message};
use svc_core::rules::gate::asked::Stands;

use super::facts::Facts;
use crate::inbound::button::digest;
use crate::inbound::interaction::{APPROVE, DENY, value};
use crate::pages::quoted::{in_line, plain};

/// Characters of a section's text that Slack takes, with room for the mark of what is left out.
const TEXT_MAX: usize = 2_900;
/// Characters of a field.
const FIELD_MAX: usize = 1_900;
/// Fields of one section.
const FIELDS_MAX: usize = 10;
/// Characters of the text that stands for the blocks.
const SHORT_MAX: usize = 300;

/// The body of `chat.postMessage` in this conversation, or of `chat.update` where a message stands there that says what has ended. `None`
/// of what is nobody's to decide.
pub(super) fn body(message: &Message, channel: &str, base: &str) -> Option<Vec<u8>> {
    let mut told = match &message.about {
        About::Test => json!({ "text": "svc: messages come through" }),
        About::Asked(asked) => asks(asked, base),
        About::Ended(asked, at) => {
            let mut told = asks(asked, base);
            crate::wire::put(&mut told, "ts", json!(at.ts));
            told
        }
        About::Ran(ran) => ran_told(&Facts::of_run(ran, base)),
        About::Conflict(_) | About::Loosened(_) | About::Invited(_) => return None,
    };
    for (name, value) in [
        ("channel", json!(channel)),
        ("unfurl_links", json!(false)),
        ("unfurl_media", json!(false)),
        ("parse", json!("none")),
        ("link_names", json!(false)),
    ] {
        crate::wire::put(&mut told, name, value);
    }
    // Texts and nothing else: it is always written.
    serde_json::to_vec(&told).ok()
}

fn asks(asked: &Asked, base: &str) -> Value {
    let facts = Facts::of(asked, base);
    json!({ "text": short(&facts), "blocks": blocks(asked, &facts) })
}

/// What ran without having been allowed: there is nothing to press. The one link is the server's own.
fn ran_told(facts: &Facts) -> Value {
    let mut blocks = told(facts);
    let link = format!("Look at it: <{}>", facts.url);
    blocks.push(json!({ "type": "section", "text": { "type": "mrkdwn", "text": link } }));
    json!({ "text": short(facts), "blocks": blocks })
}

fn short(facts: &Facts) -> String {
    format!("{} {}", facts.headline, escaped(&clipped(&in_line(&facts.summary), SHORT_MAX)))
}

/// What is asked and what is known of it.
fn told(facts: &Facts) -> Vec<Value> {
    let mut blocks = vec![section(facts.headline), section(&clipped(&plain(&facts.summary), TEXT_MAX))];
    let quoted = facts.quoted.iter().map(|(name, said)| field(name, &in_line(said)));
    let own = facts.own.iter().map(|(name, said)| field(name, said));
    for fields in [quoted.collect::<Vec<_>>(), own.collect()] {
        blocks.extend(fields.chunks(FIELDS_MAX).map(|it| json!({ "type": "section", "fields": it })));
    }
    blocks
}

fn blocks(asked: &Asked, facts: &Facts) -> Vec<Value> {
    let mut blocks = told(facts);
    if let Some(text) = facts.others() {
        blocks.push(json!({ "type": "context", "elements": [plain_text(&text)] }));
    }
    if !is_whole(facts) && asked.question.stands == Stands::Waiting {
        let text = "Not all of it is shown here: open it to look and to approve.";
        blocks.push(json!({ "type": "context", "elements": [plain_text(text)] }));
    }
    blocks.push(json!({ "type": "actions", "elements": buttons(asked, facts) }));
    blocks
}

/// Whether all that is decided on stands in the message: a text of signs that nobody sees is longer here than it was written.
fn is_whole(facts: &Facts) -> bool {
    let fits = |text: &str, most: usize| text.chars().count() <= most;
    let quoted = facts.quoted.iter().all(|(_, said)| fits(&in_line(said), FIELD_MAX));
    facts.is_whole && quoted && fits(&plain(&facts.summary), TEXT_MAX)
}

fn buttons(asked: &Asked, facts: &Facts) -> Vec<Value> {
    let approval = &asked.question.approval;
    let value = value(approval.id, digest(approval).as_ref());
    let word = |action: &str, text: &str, style: &str| json!({ "type": "button", "action_id": action, "text": plain_text(text), "style": style, "value": value });
    let mut buttons = Vec::with_capacity(3);
    if asked.question.stands == Stands::Waiting {
        // Nobody agrees in a message to what they see half of.
        if is_whole(facts) && !has_no_yes(&asked.question) {
            buttons.push(word(APPROVE, "Approve", "primary"));
        }
        buttons.push(word(DENY, "Deny", "danger"));
    }
    buttons.push(json!({ "type": "button", "action_id": "open", "text": plain_text("Open it"), "url": facts.url }));
    buttons
}

fn section(text: &str) -> Value {
    json!({ "type": "section", "text": plain_text(text) })
}

fn field(name: &str, said: &str) -> Value {
    plain_text(&format!("{name}: {}", clipped(said, FIELD_MAX)))
}

/// A text that Slack shows as it is, without names of emoji either.
fn plain_text(text: &str) -> Value {
    json!({ "type": "plain_text", "text": text, "emoji": false })
}

/// As many characters of a text as fit, with a mark where some are left out.
fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A text without the three signs that Slack's markup begins and ends with.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What others wrote mentions nobody, links nowhere, and is no longer than Slack takes.
    #[test]
    fn what_others_wrote_is_kept_in_its_place() {
        assert_eq!(escaped("<!channel> & <https://x|y>"), "&lt;!channel&gt; &amp; &lt;https://x|y&gt;");
        assert_eq!(in_line("a\nWaits until: never"), "a Waits until: never");
        assert_eq!((clipped("äöü", 3), clipped("äöü", 2)), ("äöü".to_owned(), "äö…".to_owned()));
    }
}
