//! What a mail says.
//!
//! **Invariant:** a subject has this server's own words alone; in the body each line that others wrote begins with `> `.

use std::fmt::Write as _;

use serde_json::Value;
use svc_core::rules::edge::message::{About, Asked, Conflict, Invited, Loosened, Message};
use svc_core::state::gate::Agent;
use svc_core::value::secret::Secret;

use super::facts::{Facts, marked, person};
use crate::difference::difference;

/// Subject and body.
pub(super) struct Letter {
    pub(super) subject: String,
    pub(super) text: String,
}

/// Mail about a message's matter, from a server that is reached at `base`; `link` signs in whoever is invited, where there is one.
pub(super) fn of(message: &Message, base: &str, link: Option<&Secret<String>>) -> Letter {
    let (subject, body) = match &message.about {
        About::Test => {
            ("Mail from svc comes through", "You tried out whether mail comes through: it does.\n".to_owned())
        }
        About::Asked(asked) | About::Ended(asked, _) => {
            return Letter { subject: subject_of(asked), text: signed(waits(asked, base), message, base) };
        }
        About::Ran(ran) => ("An agent's tool ran without having been allowed", runs(&Facts::of_run(ran, base))),
        About::Conflict(conflict) => ("An agent has named a session of another", conflicts(conflict)),
        About::Loosened(loosened) => ("Settings of your workspace were loosened", loosens(loosened)),
        About::Invited(invited) => ("You are invited to a workspace", invites(invited, base, link)),
    };
    Letter { subject: subject.to_owned(), text: signed(body, message, base) }
}

fn signed(mut body: String, message: &Message, base: &str) -> String {
    add(
        &mut body,
        format_args!("\n-- \nSent by svc at {base} for this workspace:\n{}\n", marked(message.workspace.name.as_str())),
    );
    body
}

/// Writing into a text cannot fail.
fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = text.write_fmt(more);
}

fn subject_of(asked: &Asked) -> String {
    let approval = &asked.question.approval;
    let payment = asked.question.action.as_ref().and_then(|it| it.action.payment.as_ref());
    let of = payment.map(|it| format!("{}, ", it.currency.amount(it.amount))).unwrap_or_default();
    format!("Waits for your decision: {} ({of}{})", approval.kind().as_str().replace('_', " "), approval.id)
}

/// What is asked, and what is known of it.
fn told(facts: &Facts) -> String {
    let mut text = format!("{}\n\nWhat is asked:\n{}\n", facts.headline, marked(&facts.summary));
    for (name, said) in &facts.quoted {
        add(&mut text, format_args!("\n{name}:\n{}\n", marked(said)));
    }
    text.push('\n');
    for (name, said) in &facts.own {
        add(&mut text, format_args!("{name}: {said}\n"));
    }
    text
}

fn runs(facts: &Facts) -> String {
    let mut text = told(facts);
    add(&mut text, format_args!("\nLook at it:\n{}\n", facts.url));
    text.push_str("\nOf more like it of this agent you hear in an hour at the earliest; the ledger has all of them.\n");
    text
}

fn waits(asked: &Asked, base: &str) -> String {
    let facts = Facts::of(asked, base);
    let mut text = told(&facts);
    add(&mut text, format_args!("\nLook at it and decide:\n{}\nOpening the page decides nothing.\n", facts.url));
    if let Some(others) = facts.others() {
        add(&mut text, format_args!("\n{others}\n"));
        for page in &facts.under {
            add(&mut text, format_args!("{page}\n"));
        }
        if facts.more > 0 {
            add(&mut text, format_args!("and {} more\n", facts.more));
        }
    }
    text
}

fn conflicts(conflict: &Conflict) -> String {
    let Conflict { session, later, owner, action, summary } = conflict;
    let session = session.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut text = "An agent has asked for an action in a session that belongs to another agent.\n".to_owned();
    add(&mut text, format_args!("\nThe session:\n{}\n", marked(&session)));
    add(&mut text, format_args!("\nThe agent whose it is:\n{}\n", side(owner.as_deref())));
    add(&mut text, format_args!("\nThe agent that named it:\n{}\n", side(later.as_deref())));
    if let Some(action) = action {
        text.push_str("\nWhat it asked:\n");
        if let Some(summary) = summary {
            add(&mut text, format_args!("{}\n", marked(summary.as_str())));
        }
        add(&mut text, format_args!("{action}\n"));
    }
    text.push_str("\nOf these two agents you hear again in an hour at the earliest. The ledger has all of it.\n");
    text
}

/// An agent of a conflict, to whoever may read it or not.
fn side(agent: Option<&Agent>) -> String {
    match agent {
        Some(it) => format!("{}\n{}", marked(it.name.as_str()), it.id),
        None => "another agent of this workspace".to_owned(),
    }
}

fn loosens(loosened: &Loosened) -> String {
    let mut text = "Settings that guard your workspace were loosened.\n".to_owned();
    match &loosened.person {
        Some(who) => add(&mut text, format_args!("\nBy:\n{}\n", marked(&person(who)))),
        None => text.push_str("\nBy whoever runs this server.\n"),
    }
    let data: Value = serde_json::from_str(&loosened.record.data).unwrap_or_default();
    let side = |name: &str| data.get(name).and_then(|it| serde_json::to_string_pretty(it).ok()).unwrap_or_default();
    let changes = difference(&side("old"), &side("new"));
    add(
        &mut text,
        format_args!(
            "\nWhat changed, the old values behind `-`, the new ones behind `+`:\n{}\n",
            marked(changes.trim_end())
        ),
    );
    add(&mut text, format_args!("\nAt {}, recorded as {}.\n", loosened.record.at, loosened.record.id));
    text
}

fn invites(invited: &Invited, base: &str, link: Option<&Secret<String>>) -> String {
    let mut text = format!("You are invited to the workspace below, as its {}.\n", invited.role.as_str());
    if let Some(by) = &invited.person {
        add(&mut text, format_args!("\nBy:\n{}\n", marked(&person(by))));
    }
    match link {
        Some(link) => {
            add(&mut text, format_args!("\nSign in by this link, which works once:\n{}\n", link.expose()));
            if let Some((_, Some(end))) = &invited.token {
                add(&mut text, format_args!("It is good until {end}; after that, have yourself invited again.\n"));
            }
        }
        None => add(&mut text, format_args!("\nSign in as you do:\n{base}/sign-in\n")),
    }
    text
}
