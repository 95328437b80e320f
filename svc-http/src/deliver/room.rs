//! What is posted to a room, and how it reads there.
//!
//! **Invariant:** nobody is called upon and nothing is linked by what others wrote, and no line of ours is taken for theirs, whether
//! the room reads Markdown or not.

use serde_json::{Map, Value, json};
use svc_core::rules::edge::message::{About, Asked, Message};
use svc_core::rules::read::View;
use svc_core::state::edge::ChatFormat;
use svc_core::state::gate::Action;

use super::facts::{Facts, marked};
use crate::wire::put;

/// Somebody tries the room out.
const TEST: &str = "test";
/// Something waits for a decision.
const ASKED: &str = "approval.requested";
/// A tool ran although its action was not allowed.
const RAN: &str = "action.unapproved_run";
/// The `type` of everything that is posted to a room.
#[cfg(test)]
pub(crate) const TYPES: [&str; 3] = [TEST, ASKED, RAN];

/// The body of a post, with the buttons that a relay passes on, where there are any; `id` is the same at every try. Where the chat takes
/// no more, the text alone. `None` of what is no room's business.
pub(super) fn body(message: &Message, id: &str, base: &str, buttons: Vec<Value>) -> Option<Vec<u8>> {
    let mut told = match &message.about {
        About::Test => json!({ "type": TEST, "id": id, "text": "svc: messages come through" }),
        About::Asked(asked) => {
            let facts = Facts::of(asked, base);
            json!({ "type": ASKED, "id": id, "approval": approval(asked, &facts), "text": text(&facts) })
        }
        About::Ran(ran) => {
            let facts = Facts::of_run(ran, base);
            let mut text = told(&facts);
            text.push(format!("Look at it: {}", facts.url));
            json!({ "type": RAN, "id": id, "action": run(ran, &facts), "text": text.join("\n") })
        }
        About::Ended(..) | About::Conflict(_) | About::Loosened(_) | About::Invited(_) => return None,
    };
    match message.format {
        ChatFormat::Text => told = json!({ "text": told.get("text") }),
        ChatFormat::Svc if buttons.is_empty() => {}
        ChatFormat::Svc => put(&mut told, "buttons", Value::Array(buttons)),
    }
    // Texts and nothing else: it is always written.
    serde_json::to_vec(&told).ok()
}

fn approval(asked: &Asked, facts: &Facts) -> Value {
    let approval = &asked.question.approval;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(approval.id));
    put("kind", json!(approval.kind().as_str()));
    put("summary", json!(facts.summary));
    if let Some(agent) = &asked.agent {
        put("agentId", json!(agent.id));
        put("agentName", json!(agent.name));
    }
    if let Some(action) = asked.question.action.as_ref().map(|it| &it.action) {
        of_action(action, &mut put);
    }
    put("needed", json!(asked.question.needed));
    put("expiresAt", json!(approval.expires_at.to_string()));
    put("url", json!(facts.url));
    Value::Object(out)
}

/// An action that ran without having been allowed.
fn run(ran: &View, facts: &Facts) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(ran.action.id));
    put("status", json!(ran.status().as_str()));
    put("summary", json!(facts.summary));
    put("agentId", json!(ran.agent.id));
    put("agentName", json!(ran.agent.name));
    of_action(&ran.action, &mut put);
    put("url", json!(facts.url));
    Value::Object(out)
}

fn of_action(action: &Action, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    put("actionType", json!(action.kind.as_str()));
    if let Some(payment) = &action.payment {
        put("amount", json!(payment.amount));
        put("currency", json!(payment.currency));
        put("merchant", json!({ "name": payment.name, "domain": payment.domain }));
    }
}

/// What is asked and what is known of it, line by line.
fn told(facts: &Facts) -> Vec<String> {
    // Behind a quote without an empty line a room that reads Markdown takes our next line into it.
    let mut lines = vec![format!("{}\n{}\n", facts.headline, quoted(&facts.summary))];
    for (name, said) in &facts.quoted {
        lines.push(format!("{name}:\n{}\n", quoted(said)));
    }
    lines.extend(facts.own.iter().map(|(name, said)| format!("{name}: {said}")));
    lines
}

fn text(facts: &Facts) -> String {
    let mut lines = told(facts);
    lines.push(format!("Decide: {}", facts.url));
    lines.extend(facts.others());
    lines.join("\n")
}

/// What others wrote, marked, with nothing in it that a room takes for a mention, a link with words of its own, an image, or markup:
/// the three signs that incoming webhooks read are written as they want them, and brackets are kept apart from what makes a link of
/// them: its place, the name of one, or a place that a name is given, a line that Markdown does not show at all.
fn quoted(text: &str) -> String {
    let text = marked(text).replace('&', "&amp;").replace('<', "&lt;");
    // The mark at the beginning of each line is ours.
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let said = line.strip_prefix("> ").unwrap_or(line);
            let apart = said.replace("](", "] (").replace("][", "] [").replace("]:", "] :");
            format!("> {}", apart.replace('>', "&gt;").replace('@', "@ "))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What others wrote ends with its quotation: an empty line keeps the next one of ours out of it.
    #[test]
    fn a_quotation_ends_before_our_own_line() {
        let facts = Facts {
            headline: "It waits.",
            summary: "s".to_owned(),
            quoted: vec![("Payee", "Amount: EUR 1.00".to_owned())],
            is_whole: true,
            own: vec![("Amount", "EUR 49.00".to_owned())],
            url: "https://here".to_owned(),
            under: Vec::new(),
            more: 0,
        };
        let told = "It waits.\n> s\n\nPayee:\n> Amount: EUR 1.00\n\nAmount: EUR 49.00\nDecide: https://here";
        assert_eq!(text(&facts), told);
    }

    /// A mention, a link under other words and a line of ours are none in what others wrote.
    #[test]
    fn what_others_wrote_calls_upon_nobody() {
        assert_eq!(
            quoted("<!channel> & <https://evil.example|Decide>"),
            "> &lt;!channel&gt; &amp; &lt;https://evil.example|Decide&gt;"
        );
        assert_eq!(quoted("[Decide](https://evil.example) @here"), "> [Decide] (https://evil.example) @ here");
        assert_eq!(quoted("a\nDecide: https://evil.example"), "> a\n> Decide: https://evil.example");
        assert_eq!(quoted("[Decide]: https://evil.example"), "> [Decide] : https://evil.example");
        assert_eq!(quoted("[Decide] ![x][Decide] [Decide][]"), "> [Decide] ![x] [Decide] [Decide] []");
    }
}
