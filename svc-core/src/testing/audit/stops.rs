//! Stops, restarts and holds, by the order of the ledger.

use super::Books;
use crate::state::gate::{Agent, STOPS_KEPT};
use crate::state::people::Workspace;
use crate::value::id::ActionId;

/// Each stop has its record, and behind it no allow and no consumption of what was made before.
pub(super) fn check_stops(books: &Books<'_>, agent: &Agent, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(format!("{}: {what}", agent.id));
    let stops: Vec<usize> = books
        .on(agent.id)
        .iter()
        .filter(|(_, entry)| match &*entry.kind {
            "agent.frozen" | "agent.removed" => true,
            // What the agent held was made void, and it was left active.
            "agent.changed" => entry.data.contains(r#""new":{"epoch":"#),
            _ => false,
        })
        .map(|(place, _)| *place)
        .collect();
    let unrecorded = usize::from(agent.frozen().is_some_and(|it| it.unrecorded));
    // Each stop begins an epoch; the instants of the newest alone are kept.
    if u32::try_from(stops.len() + unrecorded).ok() != Some(agent.epoch) {
        fault(format!("stopped {} times, with {} records of it", agent.epoch, stops.len()));
    }
    if agent.stops.len() != STOPS_KEPT.min(usize::try_from(agent.epoch).unwrap_or(usize::MAX)) {
        fault(format!("of {} stops {} instants are kept", agent.epoch, agent.stops.len()));
    }
    let first_record =
        |id: ActionId, kind: &str| books.on(id).iter().find(|(_, entry)| &*entry.kind == kind).map(|(place, _)| *place);
    for action in books.actions_of(agent.id) {
        let epoch = usize::try_from(action.epoch).unwrap_or(usize::MAX);
        let Some(stop) = stops.get(epoch) else { continue };
        for kind in ["action.allowed", "action.asked", "action.approved", "receipt.consumed"] {
            if first_record(action.id, kind).is_some_and(|place| place > *stop) {
                fault(format!("{kind} of {} stands behind the stop that ended its epoch", action.id));
            }
        }
    }
}

/// Nothing is let pass between a stop and the restart behind it.
pub(super) fn check_restarts(books: &Books<'_>, agent: &Agent, faults: &mut Vec<String>) {
    let places = |kind: &'static str| {
        let of_kind = books.on(agent.id).iter().filter(move |(_, entry)| &*entry.kind == kind);
        of_kind.map(|(place, _)| *place)
    };
    let stops: Vec<usize> = places("agent.frozen").collect();
    for (at, stop) in stops.iter().enumerate() {
        let next = stops.get(at + 1).copied();
        let started: Vec<usize> =
            places("agent.restarted").filter(|it| it > stop && next.is_none_or(|next| *it < next)).collect();
        if started.len() > 1 || (next.is_some() && started.is_empty()) {
            faults.push(format!("{}: started again {} times behind one stop", agent.id, started.len()));
        }
        let until = started.first().copied().or(next).unwrap_or(usize::MAX);
        for action in books.actions_of(agent.id) {
            if books.let_pass(action).is_some_and(|place| place > *stop && place < until) {
                faults.push(format!("{}: {} was let pass while it was stopped", agent.id, action.id));
            }
        }
    }
    // The record of a fleet's stop comes a moment behind it.
    for action in books.actions_of(agent.id).filter(|it| !agent.is_active() && it.epoch == agent.epoch) {
        if books.let_pass(action).is_some() {
            faults.push(format!("{}: {} was let pass under the epoch of its stop", agent.id, action.id));
        }
    }
}

/// While a hold over every agent stands, nobody acts and nobody is started again.
pub(super) fn check_holds(books: &Books<'_>, workspace: &Workspace, faults: &mut Vec<String>) {
    let Some(ledger) = books.ledger.get(&workspace.id) else { return };
    let mut standing: Option<&str> = None;
    for entry in ledger {
        match &*entry.kind {
            "hold.set" if entry.data.contains(r#""scope":"all""#) => standing = Some(&entry.subject),
            "hold.lifted" if standing == Some(&*entry.subject) => standing = None,
            kind @ ("action.allowed" | "action.approved" | "receipt.consumed" | "agent.restarted") => {
                if let Some(hold) = standing {
                    faults.push(format!("{}: {kind} of {} stands under {hold}", workspace.id, entry.subject));
                }
            }
            _ => {}
        }
    }
    let stands = workspace.holds.iter().any(|it| it.over.is_none());
    if stands != standing.is_some() {
        faults.push(format!("{}: a hold stands: {stands}, the ledger says {standing:?}", workspace.id));
    }
}
