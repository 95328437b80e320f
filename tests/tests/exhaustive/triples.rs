//! Which commands meet.

/// What gets in each other's way most: limits, single use, idempotency, stops, timers.
pub(crate) const NOW: [[&str; 3]; 24] = [
    ["charge", "freeze", "show"],
    ["charge", "fail", "charged-over"],
    ["charged", "complete", "charged-over"],
    ["charged-over", "pay", "fail"],
    ["charge", "reverse", "complete"],
    ["charged", "freeze", "pay"],
    ["pay", "freeze", "pay-again"],
    ["pay", "pay-small", "pay-again"],
    ["show", "freeze", "show"],
    ["show", "complete", "show-keyed"],
    ["show", "fail", "over"],
    ["show", "pay", "over"],
    ["complete", "show", "fail"],
    ["keyed", "freeze", "keyed"],
    ["keyed", "keyed", "keyed-other"],
    ["pay-small", "keyed", "pay-again"],
    ["remove", "show", "pay"],
    ["revoke", "pay", "pay-small"],
    ["narrow", "pay", "pay-small"],
    ["freeze", "end", "complete"],
    ["approve", "deny", "approve-other"],
    ["deny", "approve", "deny"],
    ["approve", "freeze", "end"],
    ["approve", "pay-small", "remove"],
];
/// The same for timers, once the time of an approval and of a reservation is up.
pub(crate) const LATER: [[&str; 3]; 8] = [
    ["lapse", "charged-over", "fail"],
    ["lapse", "charged", "reverse"],
    ["lapse", "complete", "lapse"],
    ["lapse", "over", "complete"],
    ["lapse", "freeze", "fail"],
    ["expire", "end", "freeze"],
    ["expire", "pay", "expire"],
    ["approve", "expire", "deny"],
];
