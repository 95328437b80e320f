//! What a mail says.
//!
//! **Invariant:** a subject has this server's own words alone; in the body each line that others wrote begins with `> `.

use svc_core::rules::edge::message::{About, Asked, Message};

use super::facts::{Facts, amount, marked};

/// Subject and body.
pub(super) struct Letter {
    pub(super) subject: String,
    pub(super) text: String,
}

/// Mail about a message's matter, from a server that is reached at `base`.
pub(super) fn of(message: &Message, base: &str) -> Letter {
    let (subject, body) = match &message.about {
        About::Test => (
            "Mail from svc comes through".to_owned(),
            "You tried out whether mail comes through: it does.\n".to_owned(),
        ),
        About::Asked(asked) => (subject_of(asked), waits(asked, base)),
    };
    let text = format!(
        "{body}\n-- \nSent by svc at {base} for this workspace:\n{}\n",
        marked(message.workspace.name.as_str())
    );
    Letter { subject, text }
}

fn subject_of(asked: &Asked) -> String {
    let approval = &asked.question.approval;
    let payment = asked.question.action.as_ref().and_then(|it| it.action.payment.as_ref());
    let of = payment.map(|it| format!("{}, ", amount(it.amount, it.currency))).unwrap_or_default();
    format!("Waits for your decision: {} ({of}{})", approval.kind().as_str().replace('_', " "), approval.id)
}

fn waits(asked: &Asked, base: &str) -> String {
    let facts = Facts::of(asked, base);
    let mut text = format!("{}\n\nWhat is asked:\n{}\n", facts.headline, marked(&facts.summary));
    for (name, said) in &facts.quoted {
        text.push_str(&format!("\n{name}:\n{}\n", marked(said)));
    }
    text.push('\n');
    for (name, said) in &facts.own {
        text.push_str(&format!("{name}: {said}\n"));
    }
    text.push_str(&format!("\nLook at it and decide:\n{}\nOpening the page decides nothing.\n", facts.url));
    if !facts.under.is_empty() {
        text.push_str("\nThe same was asked again, and waits too:\n");
        for page in &facts.under {
            text.push_str(&format!("{page}\n"));
        }
        if facts.more > 0 {
            text.push_str(&format!("and {} more\n", facts.more));
        }
    }
    text
}
