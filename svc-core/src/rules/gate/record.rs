//! What the ledger is told of an action.

use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Action, Agent, Code, Status, Verb};
use crate::value::canonical::Object;
use crate::value::id::ReceiptId;

/// A list of words as canonical JSON, each of them once: what a reason is about is told by the action and by no record.
pub(super) fn words(codes: impl Iterator<Item = Code> + Clone) -> String {
    let mut out = String::from("[");
    for (place, code) in codes.clone().enumerate() {
        if codes.clone().take(place).any(|it| it == code) {
            continue;
        }
        if place > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(code.as_str());
        out.push('"');
    }
    out.push(']');
    out
}

/// What the record of a payment that was allowed takes.
const DATA_BYTES: usize = 768;

/// A record of an action as it now stands, with the members that the kind adds.
pub(super) struct ActionRecord<'a> {
    pub(super) kind: &'static str,
    pub(super) actor: Actor,
    pub(super) action: &'a Action,
    pub(super) agent: &'a Agent,
    pub(super) verb: Verb,
    pub(super) status: Status,
}

impl ActionRecord<'_> {
    /// The record; `more` are further members, canonical.
    pub(super) fn fact(self, more: &[(&'static str, String)]) -> Fact {
        let Self { kind, actor, action, agent, verb, status } = self;
        // In the order of their names, which spares sorting them.
        let mut data = Object::with_room(DATA_BYTES).plain("agentId", action.agent);
        if let Some(payment) = &action.payment {
            data = data.int("amount", payment.amount);
        }
        if let Some(approval) = action.approval {
            data = data.plain("approvalId", approval);
        }
        // What was allowed and is denied by now, a stop has voided: no rule's reason says so.
        let stopped = (action.allowed().is_some() && verb == Verb::Deny).then_some(Code::AgentFrozen);
        data = data.raw("codes", &words(action.reasons.iter().map(|it| it.code).chain(stopped)));
        if let Some(payment) = &action.payment {
            data = data.text("currency", payment.currency.as_str());
        }
        data = data.text("decision", verb.as_str()).plain("digest", format_args!("sha256:{}", action.digest));
        if let Some(payment) = &action.payment {
            data = data.text("domain", payment.domain.as_str());
        }
        data = data.int("epoch", agent.epoch.into());
        if let Some(mandate) = action.mandate {
            data = data.plain("mandateId", mandate.mandate).int("mandateVersion", mandate.version.into());
        }
        if action.allowed().is_some() {
            data = data.plain("receiptId", ReceiptId::from(action.id));
        }
        data = data.raw("signals", &words(action.signals.iter().copied())).text("status", status.as_str());
        for (name, canonical) in more {
            data = data.raw(name, canonical);
        }
        data = data.text("type", action.kind.as_str());
        Fact { kind, actor, subject: Subject::Action(action.id), data: data.finish() }
    }
}
