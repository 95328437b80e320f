//! Mandates as they stood when something was let pass under them, by the order of the ledger.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Books;
use crate::state::gate::{Action, Agent, State, Term};
use crate::value::Timestamp;
use crate::value::id::{MandateId, MandateVersionId};

/// What is let pass goes by the version in force, and no sum passes that version's limit at that moment.
pub(super) fn check_limits(books: &Books<'_>, agent: &Agent, faults: &mut Vec<String>) {
    let mut passed: Vec<(usize, &Action, MandateVersionId)> = Vec::new();
    for action in books.actions_of(agent.id) {
        let charged = books.let_pass(action).zip(action.mandate);
        passed.extend(charged.map(|(place, mandate)| (place, action, mandate)));
    }
    passed.sort_by_key(|(place, ..)| *place);
    let mut sums: BTreeMap<(MandateId, Timestamp, Timestamp), i128> = BTreeMap::new();
    for (place, action, charged) in passed {
        if let Some(why) = not_in_force(books, place, charged) {
            faults.push(format!("{}: {} was let pass under {charged:?}, which {why}", agent.id, action.id));
        }
        let Some((term, kept)) = kept(action) else { continue };
        let sum = sums.entry((charged.mandate, term.from, term.until)).or_default();
        *sum += kept;
        let terms = books.mandates.iter().find(|it| it.id == charged);
        let most = terms.and_then(|it| it.limits().per_period.as_ref()).map(|it| i128::from(it.amount));
        if most.is_some_and(|most| *sum > most) {
            faults.push(format!("{}: with {} there are {sum} under {charged:?} of {most:?}", agent.id, action.id));
        }
    }
}

/// Why a version was not in force at a place of the ledger, if it was not.
fn not_in_force(books: &Books<'_>, place: usize, charged: MandateVersionId) -> Option<&'static str> {
    let mut paused = false;
    for (_, entry) in books.on(charged.mandate).iter().filter(|(at, _)| *at < place) {
        match &*entry.kind {
            "mandate.revoked" => return Some("was revoked"),
            "mandate.changed" => {
                let data = serde_json::from_str::<Value>(&entry.data).ok()?;
                if data.get("mandateVersion")?.as_u64()? > u64::from(charged.version) {
                    return Some("was replaced");
                }
                if let Some(state) = data.pointer("/new/state").and_then(Value::as_str) {
                    paused = state == "paused";
                }
            }
            _ => {}
        }
    }
    paused.then_some("was paused")
}

/// What an action fills of a period now, but for what its issuer charged beyond what stood there: never more than it did when it
/// was let pass. None where it was let pass beyond the limit.
fn kept(action: &Action) -> Option<(Term, i128)> {
    let (_, held) = action.held()?;
    let (amount, term) = held.amount.filter(|_| !held.excess)?;
    let allowed = match &action.state {
        State::Denied { .. } | State::Expired { .. } => return None,
        State::Pending { .. } => return Some((term, amount.into())),
        State::Allowed(allowed) => allowed,
    };
    let most = action.incident.as_ref().map_or(amount, |it| it.allowed);
    let kept = match &allowed.outcome {
        Some(outcome) => outcome.posted.unwrap_or(0).min(most),
        None if allowed.lapsed.is_some() => allowed.posted().unwrap_or(amount).min(most),
        None => amount.min(most),
    };
    Some((term, kept.into()))
}
