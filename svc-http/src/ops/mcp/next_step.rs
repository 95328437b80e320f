//! What an agent is to do about an action of its own, as the action stands now.
//!
//! **Invariant:** nothing is told to be done but what is allowed under a receipt that is good and unused: whoever follows what is told
//! here does nothing twice, and nothing that is no longer allowed.

use svc_core::answer::Decided;
use svc_core::state::gate::{Account, Code, Consumed, DecidedBy, Status, Verb};

const DO: &str = "Do it, show the receipt where one is asked for, and report it with `settle_action`.";
const USED: &str = "Do not begin it again: its receipt was used up, so that it may have been done. Find out, and report what came of it with `settle_action`.";
const BY_GATE: &str = "Do not do it yourself: svc makes this call, and reports what came of it. Where nobody learns that, it counts as done.";
const CALL_AGAIN: &str =
    "Call the tool again with the same arguments: a person has approved that one call, and svc then makes it.";
const CALL_ANEW: &str = "Nothing is left to do about this action; if it is still to be done, call the tool anew.";
const CUT: &str = "Do not make this call: the agent was stopped, and what was under way may have run. Call the tool anew only once a person has started the agent again.";
const NOBODY_DECIDED: &str = "Nobody decided in time, and the call was not made. If it is still to be done, call the tool anew, and tell the person that somebody has to decide.";
const TOO_LATE: &str = "Do not do it any more: its receipt has expired. Report what came of it with `settle_action`, as `cancelled` where it was not done; if it is still to be done, ask anew with `authorize_action`, under another `idempotencyKey`.";
const LAPSED: &str = "Do not do it any more: its receipt has expired, and until you report what came of it with `settle_action`, late as that is, it counts as done in full.";
const NOT_DONE: &str = "Nothing is left to do about this action; if it is still to be done, ask anew with `authorize_action`, under another `idempotencyKey`.";
const OVER: &str = "Nothing is left to do.";
const REVOKED: &str = "Do not do it, and do not begin it again: the agent was stopped. Report what came of it with `settle_action`, as `cancelled` where it was not done; ask anew only once a person has started the agent again.";
const UNDECIDED: &str = "Do not do it: nobody decided in time. If it is still to be done, ask anew with `authorize_action`, under another `idempotencyKey`, and tell the person that somebody has to decide.";
const STOPPED: &str = "Do not do it. The agent is stopped: tell the person, as only a person can start it again.";
const OTHERWISE: &str = "Do not do it; ask again as `wouldBeAllowed` says, if that still helps.";
const A_PERSONS_NO: &str = "Do not do it, and do not ask for the same again: a person said no. What they added to that is in `note`, where they added something.";
const DENIED: &str = "Do not do it. Tell the person why, who can change the rules.";

/// The next step; `has_way` says whether a change was found with which the action would be allowed.
pub(super) fn next_step(decided: &Decided, has_way: bool) -> String {
    let step = match decided.status() {
        Status::Pending => {
            let link = decided.url().unwrap_or("the approval");
            return format!("Wait: show the person {link} and look again with `check_action_status`.");
        }
        Status::Allowed => of_allowed(decided),
        Status::Denied => of_denied(decided, has_way),
        Status::Expired if is_of_proxy(decided) => NOBODY_DECIDED,
        Status::Expired => UNDECIDED,
        Status::Revoked if is_of_proxy(decided) => CUT,
        Status::Revoked => REVOKED,
        Status::Lapsed if is_made_here(decided) => OVER,
        Status::Lapsed => LAPSED,
        Status::Completed => OVER,
        // Of an agent that was stopped meanwhile, a person starts it again first.
        Status::Failed | Status::Cancelled if decided.verb() == Verb::Deny => OVER,
        Status::Failed | Status::Cancelled if is_of_proxy(decided) => CALL_ANEW,
        Status::Failed | Status::Cancelled => NOT_DONE,
    };
    step.to_owned()
}

/// It reads `allowed` until somebody reports it, also once its receipt is good for nothing.
fn of_allowed(decided: &Decided) -> &'static str {
    if is_made_here(decided) {
        BY_GATE
    } else if decided.receipt_used_at().is_some() {
        USED
    } else {
        match (decided.receipt().is_some(), is_of_proxy(decided)) {
            (true, false) => DO,
            (false, false) => TOO_LATE,
            (true, true) => CALL_AGAIN,
            (false, true) => CALL_ANEW,
        }
    }
}

fn of_denied(decided: &Decided, has_way: bool) -> &'static str {
    let reasons = decided.reasons();
    let says = |code| reasons.iter().any(|it| it.code == code);
    if says(Code::AgentFrozen) {
        STOPPED
    } else if has_way {
        OTHERWISE
    } else if says(Code::PersonDenied) {
        A_PERSONS_NO
    } else {
        DENIED
    }
}

/// Whether it is a call of a tool that came through the proxy, which nobody makes but the gate.
fn is_of_proxy(decided: &Decided) -> bool {
    decided.action().provenance.account == Account::Gate
}

/// Whether the gate itself does it in the agent's place: what the rules allow at once, and what a person has approved once that is
/// called again.
fn is_made_here(decided: &Decided) -> bool {
    let Some(allowed) = decided.action().allowed() else { return false };
    let waits_for_call = matches!(allowed.by, DecidedBy::Person(_));
    allowed.consumed.as_ref().is_some_and(Consumed::is_by_gate) || (is_of_proxy(decided) && !waits_for_call)
}
