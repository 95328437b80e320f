//! The decision as one pure function: from what was asked and what stands to an effect with every reason (CONTRACT part
//! 3, "How a decision is reached"). Deny overrides ask overrides allow; no reason is left out for another.
//!
//! **Invariant:** nothing here reads a row, a clock or a store, and nothing an agent sent widens what is allowed.

mod asking;
mod mandates;

use std::sync::Arc;

use crate::state::gate::provenance::Verdict;
use crate::state::gate::{Activity, Code, Effect, Mandate, Origin, Reason, Request, Tier};
use crate::state::people::{OnMismatch, OnUndeclared, Outside, Settings};
use crate::value::Timestamp;

pub use mandates::{Charge, denied, is_outside, tool_name};

/// Everything a decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The instant of the decision.
    pub now: Timestamp,
    /// What is asked.
    pub request: &'a Request,
    /// The workspace's settings.
    pub settings: &'a Settings,
    /// How much the agent is trusted.
    pub tier: Tier,
    /// Its mandates in force, in the order of their ids.
    pub mandates: &'a [Arc<Mandate>],
    /// Whether one of them is not to be had, so that not every rule can be evaluated.
    pub unreadable: bool,
    /// What it did lately.
    pub activity: &'a Activity,
    /// How many of its approvals wait.
    pub waiting: u32,
    /// The velocity line of this action's type, where it is full.
    pub velocity: Option<FullLine>,
    /// What was paid to the same payee.
    pub payee: PayeeFacts,
    /// Whether the session belongs to another agent.
    pub session_conflict: bool,
    /// Where the action came from.
    pub origin: &'a Origin,
    /// Whether the tool table calls its tool a sink.
    pub tool_is_sink: bool,
}

/// A velocity line without room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullLine {
    /// How many instants lie in its window.
    pub used: i64,
    /// How many it takes.
    pub limit: i64,
    /// Its window in minutes.
    pub minutes: i64,
    /// When it has room again if nothing else happens and this action takes no place on it.
    pub clears_at: Timestamp,
    /// The same where this action takes one.
    pub clears_behind: Timestamp,
}

/// What was paid to a payee before this action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayeeFacts {
    /// The sum over 24 hours, in minor units.
    pub sum: i64,
    /// Whether the same amount was asked for in the last 10 minutes.
    pub repeated: bool,
}

/// A decision and its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// What it comes to; `Info` is an allow.
    pub effect: Effect,
    /// Every rule that spoke.
    pub reasons: Vec<Reason>,
    /// What is noted beside the reasons' codes.
    pub signals: Vec<Code>,
    /// The mandate that is charged, if one is.
    pub charge: Option<Charge>,
}

/// Decides.
#[must_use]
pub fn evaluate(facts: &Facts<'_>) -> Evaluation {
    let mut verdict = Evaluation { effect: Effect::Info, reasons: Vec::new(), signals: Vec::new(), charge: None };
    if facts.unreadable {
        verdict.reasons.push(Reason::new(Code::EvaluationError, Effect::Deny));
    }
    mandates::deny_lists(facts, &mut verdict.reasons);
    if facts.session_conflict {
        verdict.reasons.push(Reason::new(Code::SessionConflict, facts.unless_trusted(Effect::Deny)));
    }
    verdict.charge = mandates::choose(facts, &mut verdict.reasons);
    asking::rules(facts, verdict.charge.as_ref(), &mut verdict.reasons);
    provenance(facts, &mut verdict);
    verdict.effect = verdict.reasons.iter().map(|it| it.effect).max().unwrap_or(Effect::Info);
    let waiting_max = i64::from(facts.settings.max_waiting);
    if verdict.effect == Effect::Ask && i64::from(facts.waiting) >= waiting_max {
        let mut backlog = Reason::new(Code::ApprovalBacklog, Effect::Deny);
        backlog.limit = Some(waiting_max);
        backlog.used = Some(facts.waiting.into());
        verdict.reasons.push(backlog);
        verdict.effect = Effect::Deny;
    }
    if verdict.effect == Effect::Deny {
        asking::is_denied(facts, &mut verdict.reasons);
    }
    verdict
}

/// Declared against observed, and nothing declared at all.
fn provenance(facts: &Facts<'_>, verdict: &mut Evaluation) {
    let sink = facts.is_sink();
    if facts.origin.verdict == Verdict::Understated {
        let effect = match facts.settings.provenance.mismatch {
            OnMismatch::Deny if sink => Effect::Deny,
            OnMismatch::Deny | OnMismatch::Ask => Effect::Ask,
            OnMismatch::Record => Effect::Info,
        };
        verdict.reasons.push(Reason::new(Code::ProvenanceMismatch, effect));
    }
    // What the gate itself declares for a proxied call is declared as well.
    if facts.origin.declared.is_empty() {
        match facts.settings.provenance.undeclared {
            OnUndeclared::Ask if sink => verdict.reasons.push(Reason::new(Code::ProvenanceUndeclared, Effect::Ask)),
            OnUndeclared::Deny if sink => verdict.reasons.push(Reason::new(Code::ProvenanceUndeclared, Effect::Deny)),
            OnUndeclared::Ask | OnUndeclared::Deny | OnUndeclared::Record => {
                verdict.signals.push(Code::ProvenanceUndeclared)
            }
        }
    }
}

impl Facts<'_> {
    /// Whether something leaves: money, data, messages, code that runs, access.
    #[must_use]
    pub fn is_sink(&self) -> bool {
        self.request.payment.is_some() || self.request.kind.is_sink() || self.tool_is_sink
    }

    /// What being outside a mandate comes to.
    fn outside(&self) -> Effect {
        match self.settings.outside_mandate {
            Outside::Ask => Effect::Ask,
            Outside::Deny => Effect::Deny,
        }
    }

    /// The effect, or a note for an agent of tier `trusted`.
    fn unless_trusted(&self, effect: Effect) -> Effect {
        match self.tier {
            Tier::Restricted | Tier::Standard => effect,
            Tier::Trusted => Effect::Info,
        }
    }
}
