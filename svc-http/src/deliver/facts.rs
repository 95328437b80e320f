//! What a message says of what waits, has ended in the meantime, or ran without having been allowed, before it has the form of a mail or of a room's message: the server's own words apart from
//! what others wrote.
//!
//! **Invariant:** it holds no more than those read on the approval's or the action's page who may decide, and no token.

use crate::pages::network::network;
use crate::pages::quoted::plain;
use svc_core::answer::approval_page;
use svc_core::rules::edge::message::Asked;
use svc_core::rules::gate::asked::{Stands, dollars};
use svc_core::rules::gateway::budgets::AskedOf;
use svc_core::rules::read::View;
use svc_core::state::gate::{ApprovalKind, ApprovalSubject, Requester};
use svc_core::state::gateway::BudgetScope;
use svc_core::state::people::Principal;
use svc_core::value::id::{ActionId, WorkspaceId};

/// Characters that a message has of what a tool is given, and of an action's details, every sign that nobody sees named: they fit into a
/// field of Slack's with their name.
const INPUT_CHARS_MAX: usize = 1_700;

/// What waits, or ran, for a message.
pub(super) struct Facts {
    /// What it is, in one sentence.
    pub(super) headline: &'static str,
    /// What is asked: whoever asks wrote it, where an agent does.
    pub(super) summary: String,
    /// More that others wrote, each with its name.
    pub(super) quoted: Vec<(&'static str, String)>,
    /// Whether all that is decided on stands here, or nowhere: where not, the page has more of it.
    pub(super) is_whole: bool,
    /// What the server says of it, each with its name.
    pub(super) own: Vec<(&'static str, String)>,
    /// The page on which it is decided, or read.
    pub(super) url: String,
    /// The pages of what stands under it.
    pub(super) under: Vec<String>,
    /// How many more stand under it than are listed.
    pub(super) more: usize,
}

impl Facts {
    /// That more like it waits, where it does. It is of the same kind and, where it is paid, for the same payee: its amounts and its words are
    /// its own.
    pub(super) fn others(&self) -> Option<String> {
        match self.under.len().saturating_add(self.more) {
            0 => None,
            1 => Some("One more like it waits too, which may be of another amount.".to_owned()),
            more => Some(format!("{more} more like it wait too, each of which may be of another amount.")),
        }
    }
}

/// The page of an action.
fn page_of_action(base: &str, workspace: WorkspaceId, action: ActionId) -> String {
    format!("{}/w/{workspace}/activity/{action}", base.trim_end_matches('/'))
}

/// Somebody, as those read who know them.
pub(super) fn person(principal: &Principal) -> String {
    match &principal.name {
        Some(name) => format!("{name} ({})", principal.email),
        None => principal.email.to_string(),
    }
}

impl Facts {
    /// The facts of what waits, with links to a server that is reached at `base`.
    pub(super) fn of(asked: &Asked, base: &str) -> Self {
        let approval = &asked.question.approval;
        let (mut quoted, mut own) = (Vec::new(), Vec::new());
        if let Some(agent) = &asked.agent {
            quoted.push(("Agent", agent.name.to_string()));
            own.push(("Agent id", agent.id.to_string()));
        }
        quoted.extend(asked.person.as_deref().map(|it| ("Asked by", person(it))));
        let mut is_whole = true;
        if let Some(view) = &asked.question.action {
            is_whole = of_action(view, &mut quoted, &mut own);
        }
        match &approval.subject {
            ApprovalSubject::Freeze(it) => {
                let named: Vec<&str> = asked.stops.iter().map(|it| it.name.as_str()).collect();
                is_whole &= usize::try_from(it.members.count).is_ok_and(|count| count == named.len());
                quoted.extend((!named.is_empty()).then(|| ("Agents", apart(&named))));
                quoted.push(("Reason", it.reason.to_string()));
                if let Requester::Token { name, .. } = &it.by {
                    quoted.push(("Asked by the service token", name.to_string()));
                }
            }
            ApprovalSubject::HoldLift(it) => quoted.push(("Reason", it.reason.to_string())),
            ApprovalSubject::Owner(_) => {
                if let Some(whom) = asked.question.whom.as_deref() {
                    quoted.push(("Whom", person(whom)));
                    quoted.extend(network(whom.email.as_str()).map(|it| ("Its domain", it)));
                }
            }
            ApprovalSubject::Action(it) => {
                for why in it.exceptions.iter().map(|it| ("Why", it.message())) {
                    if !quoted.contains(&why) {
                        quoted.push(why);
                    }
                }
                if asked.question.stands == Stands::Waiting && !it.exceptions.is_empty() {
                    own.push(("Approving", "makes an exception to the mandate's limits, this once".to_owned()));
                }
            }
            ApprovalSubject::Budget(it) => {
                is_whole &= asked.budget.is_some();
                if let Some(of) = &asked.budget {
                    of_budget(of, &mut quoted, &mut own);
                }
                own.push(("Budget", it.budget.to_string()));
            }
        }
        if asked.question.stands == Stands::Waiting {
            own.push(("Persons who have to agree", asked.question.needed.to_string()));
            own.push(("Waits until", approval.expires_at.to_string()));
        }
        Self {
            headline: headline(approval.kind(), asked.question.stands),
            summary: asked.question.summary(),
            quoted,
            is_whole,
            own,
            url: approval_page(base, approval.workspace, approval.id),
            under: asked.under.iter().map(|it| approval_page(base, approval.workspace, *it)).collect(),
            more: asked.under_count.saturating_sub(asked.under.len()),
        }
    }

    /// The facts of an action that ran without having been allowed.
    pub(super) fn of_run(ran: &View, base: &str) -> Self {
        let (action, agent) = (&ran.action, &ran.agent);
        let mut quoted = vec![("Agent", agent.name.to_string())];
        let mut own = vec![("Agent id", agent.id.to_string())];
        let is_whole = of_action(ran, &mut quoted, &mut own);
        own.push(("Stands as", ran.status().as_str().replace('_', " ")));
        Self {
            headline: "An agent's tool ran although its action was not allowed.",
            summary: action.summary.to_string(),
            quoted,
            is_whole,
            own,
            url: page_of_action(base, action.workspace, action.id),
            under: Vec::new(),
            more: 0,
        }
    }
}

/// What is known of a budget of which more is asked. What it is over is called as somebody has named it.
fn of_budget(of: &AskedOf, quoted: &mut Vec<(&'static str, String)>, own: &mut Vec<(&'static str, String)>) {
    let over = match &of.budget.scope {
        BudgetScope::Workspace => "the whole workspace",
        BudgetScope::Team(_) => "a team",
        BudgetScope::Principal(_) => "a person",
        BudgetScope::Agent(_) => "an agent",
        BudgetScope::Key(_) => "a key",
        BudgetScope::TaskClass(_) => "a class of tasks",
    };
    own.push(("Budget of", over.to_owned()));
    let called = of.name.clone().or_else(|| of.budget.scope.target());
    quoted.extend(called.map(|it| ("What the budget is over", it)));
    own.push(("Period", of.budget.period.to_string()));
    own.push(("Allotted", dollars(of.used.allocation(&of.budget))));
    own.push(("Spent", dollars(of.used.spent)));
}

/// What is known of an action; whether all that is decided on is among it, or is known to nobody.
fn of_action(view: &View, quoted: &mut Vec<(&'static str, String)>, own: &mut Vec<(&'static str, String)>) -> bool {
    let action = &*view.action;
    own.push(("Type", action.kind.as_str().to_owned()));
    if let Some(payment) = &action.payment {
        own.push(("Amount", payment.currency.amount(payment.amount).to_string()));
        quoted.push(("Payee", payment.name.to_string()));
        quoted.push(("Payee's domain", payment.domain.to_string()));
    }
    if let Some(data) = &action.data {
        quoted.push(("Data goes to", data.recipient.to_string()));
        quoted.extend(network(&data.recipient).map(|it| ("Its domain", it)));
        let fields: Vec<&str> = data.fields.iter().map(|it| it.as_str()).collect();
        quoted.push(("Fields", apart(&fields)));
        quoted.extend(data.purpose.as_ref().map(|it| ("Purpose", it.to_string())));
    }
    if let Some(tool) = &action.tool {
        quoted.extend(tool.name.as_ref().map(|it| ("Tool", it.to_string())));
        quoted.extend(tool.server.as_ref().map(|it| ("Tool's server", it.to_string())));
    }
    let mut is_whole = true;
    if let Some(payload) = view.payload.as_deref() {
        for (name, given) in [("The tool is given", &payload.tool_input), ("Details", &payload.details)] {
            if let Some(given) = given.as_deref() {
                let (shown, fits) = head(given);
                quoted.push((name, shown));
                is_whole &= fits;
            }
        }
    }
    let input = view.payload.as_deref().and_then(|it| it.tool_input.as_deref());
    if let Some(tool) = action.tool.as_ref().filter(|it| !it.is_given_all_of(input)) {
        is_whole = false;
        let bytes = tool.input_bytes.map_or_else(|| "what was not sent here".to_owned(), |it| format!("{it} bytes"));
        own.push(("The tool is given in all", bytes));
    }
    // What a reason is about, an agent may have written.
    quoted.extend(view.reasons().iter().map(|it| ("Why", it.message())));
    own.push(("Content from", action.provenance.effective.meaning().to_owned()));
    is_whole
}

/// Others' texts, each in quotes in a line of its own: where one ends is seen also where it holds a comma or a quote.
fn apart(texts: &[&str]) -> String {
    let quoted: Vec<String> = texts.iter().map(|it| serde_json::Value::from(*it).to_string()).collect();
    quoted.join("\n")
}

/// As much of a text as a message has, and whether that is all of it.
fn head(given: &str) -> (String, bool) {
    let named = plain(given);
    let Some((end, _)) = named.char_indices().nth(INPUT_CHARS_MAX) else { return (named, true) };
    let shown = named.get(..end).unwrap_or_default();
    (format!("{shown}… ({} bytes in all: the rest is on the page)", given.len()), false)
}

const fn headline(kind: ApprovalKind, stands: Stands) -> &'static str {
    match (stands, kind) {
        (Stands::Approved, _) => "This was approved.",
        (Stands::Denied, _) => "This was denied.",
        (Stands::Expired, _) => "The time for this is up.",
        (Stands::Waiting, ApprovalKind::Action) => "An agent's action waits for a decision.",
        (Stands::Waiting, ApprovalKind::Freeze) => "A freeze of agents waits for a decision.",
        (Stands::Waiting, ApprovalKind::HoldLift) => "The lift of a hold over every agent waits for another owner.",
        (Stands::Waiting, ApprovalKind::Owner) => "A change among the owners waits for another owner.",
        (Stands::Waiting, ApprovalKind::Budget) => "More of a budget waits for a decision.",
    }
}

/// What others wrote, line by line, with every sign that nobody sees named: no line of it can be taken for one of ours, as each is
/// marked.
pub(super) fn marked(text: &str) -> String {
    let named = plain(text);
    let lines: Vec<String> = named.split('\n').map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Each line of what others wrote is marked, and none of them begins by a sign that ends a line somewhere and is not seen here.
    #[test]
    fn what_others_wrote_is_marked_line_by_line() {
        assert_eq!(marked("a\nb"), "> a\n> b");
        let marked = marked("a\r\u{2028}Waits until: never\u{85}b\u{b}c");
        assert_eq!(marked, "> a‹U+000D›‹U+2028›Waits until: never‹U+0085›b‹U+000B›c");
    }

    /// Where one of several texts ends is seen, whatever it holds.
    #[test]
    fn texts_in_a_row_stand_apart() {
        assert_eq!(apart(&["name, email", "x"]), "\"name, email\"\n\"x\"");
        assert_eq!(
            apart(&["a\", \"b", "c\\"]),
            r#""a\", \"b"
"c\\""#
        );
    }

    /// What else waits is like it, and not said to be the same.
    #[test]
    fn what_else_waits_is_counted() {
        let facts = |under: usize, more| Facts {
            headline: "It waits.",
            summary: String::new(),
            quoted: Vec::new(),
            is_whole: true,
            own: Vec::new(),
            url: String::new(),
            under: vec![String::new(); under],
            more,
        };
        assert_eq!(facts(0, 0).others(), None);
        assert!(facts(1, 0).others().unwrap().starts_with("One more like it waits too"));
        assert!(facts(2, 3).others().unwrap().starts_with("5 more like it wait too"));
    }
}
