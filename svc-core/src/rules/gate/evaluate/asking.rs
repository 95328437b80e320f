//! What makes a person be asked although a mandate covers the action.

use super::mandates::Charge;
use super::{Effect, Facts};
use crate::state::gate::{Code, DENIALS_KEPT, Duplicates, Reason, Tier};
use crate::value::Span;

/// How far back denials count.
const PROBING_WINDOW: Span = Span::minutes(10);

pub(super) fn rules(facts: &Facts<'_>, charge: Option<&Charge>, reasons: &mut Vec<Reason>) {
    thresholds(facts, charge, reasons);
    duplicate(facts, charge, reasons);
    if let Some(full) = facts.velocity {
        let line = if facts.request.kind.is_tool() { "tool calls" } else { "actions" };
        reasons.push(Reason {
            limit: Some(full.limit),
            used: Some(full.used),
            requested: Some(1),
            window: Some(format!("{}m", full.minutes).into()),
            clears_at: Some(full.clears_behind),
            ..Reason::new(Code::VelocityExceeded, Effect::Ask).about(line)
        });
    }
    probing(facts, reasons);
    if facts.origin.effective.is_untrusted() && facts.is_sink() {
        reasons.push(Reason::new(Code::UntrustedProvenance, facts.unless_trusted(Effect::Ask)));
    }
    if facts.tier == Tier::Restricted {
        reasons.push(Reason::new(Code::TierRestricted, Effect::Ask));
    }
}

/// What is denied takes no place on its line, which has room the sooner, and one among the denials, which are few enough the later.
pub(super) fn is_denied(facts: &Facts<'_>, reasons: &mut [Reason]) {
    for reason in reasons {
        match reason.code {
            Code::VelocityExceeded => reason.clears_at = facts.velocity.map(|it| it.clears_at),
            Code::Probing => {
                let oldest = facts.activity.denials.get(1).copied().unwrap_or(facts.now);
                reason.clears_at = Some(oldest.plus(PROBING_WINDOW));
            }
            _ => {}
        }
    }
}

/// This payment alone, and this payment with those of the last 24 hours to the same payee, against `askAbove`.
fn thresholds(facts: &Facts<'_>, charge: Option<&Charge>, reasons: &mut Vec<Reason>) {
    let (Some(payment), Some(charge)) = (&facts.request.payment, charge) else { return };
    let Some(line) = charge.mandate.limits().ask_above else { return };
    let reason = |code| Reason {
        limit: Some(line),
        requested: Some(payment.amount),
        currency: Some(payment.currency),
        ..Reason::new(code, Effect::Ask).by(charge.mandate.id.mandate)
    };
    if payment.amount > line {
        reasons.push(reason(Code::AboveAskThreshold));
    }
    let together = facts.payee.sum.saturating_add(payment.amount);
    if facts.payee.sum > 0 && together > line {
        let split = Reason { used: Some(together), window: Some("24h".into()), ..reason(Code::SplitPayments) };
        reasons.push(split.about(payment.domain.registrable()));
    }
}

fn duplicate(facts: &Facts<'_>, charge: Option<&Charge>, reasons: &mut Vec<Reason>) {
    let Some(payment) = facts.request.payment.as_ref().filter(|_| facts.payee.repeated) else { return };
    let effect = match charge.map_or(Duplicates::Ask, |it| it.mandate.duplicates) {
        Duplicates::Ask => facts.unless_trusted(Effect::Ask),
        Duplicates::Record => Effect::Info,
    };
    reasons.push(Reason {
        requested: Some(payment.amount),
        currency: Some(payment.currency),
        window: Some("10m".into()),
        ..Reason::new(Code::PossibleDuplicate, effect).about(payment.domain.registrable())
    });
}

fn probing(facts: &Facts<'_>, reasons: &mut Vec<Reason>) {
    let denials = &facts.activity.denials;
    let since = facts.now.minus(PROBING_WINDOW);
    if denials.len() < DENIALS_KEPT {
        return;
    }
    if let Some(oldest) = denials.first().filter(|at| **at > since) {
        reasons.push(Reason {
            limit: i64::try_from(DENIALS_KEPT).ok(),
            window: Some("10m".into()),
            clears_at: Some(oldest.plus(PROBING_WINDOW)),
            ..Reason::new(Code::Probing, Effect::Ask)
        });
    }
}
