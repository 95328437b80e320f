//! Reservations and what becomes of them (CONTRACT part 3, "Reservations and posting"). Sums belong to the period that an
//! action was authorized in; of one that has ended only the ledger tells.

use crate::state::gate::{Action, Activity, Mandate, Request, Reservation, Tally};
use crate::state::people::Settings;
use crate::value::Timestamp;
use crate::value::id::MandateId;

/// Takes what the action needs of its mandate's limits: the amount and one of the count.
pub(super) fn reserve(
    activity: &mut Activity,
    mandate: &Mandate,
    request: &Request,
    settings: &Settings,
    now: Timestamp,
) -> Option<Reservation> {
    let (limits, id, zone) = (mandate.limits(), mandate.id.mandate, &settings.timezone);
    let mut held = Reservation { amount: None, count: None, excess: false };
    if let (Some(per), Some(payment)) = (&limits.per_period, &request.payment) {
        let mut tally = activity.tally(id, per.period, now, zone);
        tally.reserved = tally.reserved.saturating_add(payment.amount);
        held.amount = Some((payment.amount, per.period, tally.from));
        activity.keep(tally, now);
    }
    if let Some(count) = &limits.count {
        let mut tally = activity.tally(id, count.period, now, zone);
        tally.count = tally.count.saturating_add(1);
        held.count = Some((count.period, tally.from));
        activity.keep(tally, now);
    }
    (held.amount.is_some() || held.count.is_some()).then_some(held)
}

/// Keeps what a person let pass beyond the mandate's limits in a sum of its own, of the period that it was asked in. Of one
/// that has ended there is no sum any more, and only the ledger tells.
pub(super) fn exceed(
    activity: &mut Activity,
    mandate: &Mandate,
    action: &Action,
    settings: &Settings,
    now: Timestamp,
) -> Option<Reservation> {
    let (per, payment) = (mandate.limits().per_period.clone()?, action.payment.as_ref()?);
    let (id, asked_at) = (mandate.id.mandate, action.created_at());
    let of = |it: &&mut Tally| it.mandate == id && it.period == per.period;
    let asked_in = activity.tallies.iter_mut().find(|it| of(it) && it.from <= asked_at && asked_at < it.until);
    let from = if let Some(tally) = asked_in {
        tally.excess = tally.excess.saturating_add(payment.amount);
        tally.from
    } else {
        let (from, until) = per.period.bounds(asked_at, &settings.timezone);
        let newer = activity.tallies.iter().any(|it| it.mandate == id && it.period == per.period && it.from > asked_at);
        if !newer && now < until {
            let (reserved, spent, excess, count) = (0, 0, payment.amount, 0);
            activity.keep(Tally { mandate: id, period: per.period, from, until, reserved, spent, excess, count }, now);
        }
        from
    };
    Some(Reservation { amount: Some((payment.amount, per.period, from)), count: None, excess: true })
}

/// Gives back the amount and the one of the count.
pub(super) fn release(activity: &mut Activity, held: (MandateId, &Reservation)) {
    post(activity, held, 0);
    let (mandate, held) = held;
    if let Some((period, from)) = held.count
        && let Some(tally) = activity.reserved_in(mandate, period, from)
    {
        tally.count = tally.count.saturating_sub(1);
    }
}

/// Turns the reserved amount into `spent`; the one of the count stays.
pub(super) fn post(activity: &mut Activity, (mandate, held): (MandateId, &Reservation), spent: i64) {
    if let Some((amount, period, from)) = held.amount
        && let Some(tally) = activity.reserved_in(mandate, period, from)
    {
        if held.excess {
            tally.excess = tally.excess.saturating_sub(amount).saturating_add(spent);
        } else {
            tally.reserved = tally.reserved.saturating_sub(amount);
            tally.spent = tally.spent.saturating_add(spent);
        }
    }
}

/// Corrects what was posted by the lapse to `spent`.
pub(super) fn correct(activity: &mut Activity, (mandate, held): (MandateId, &Reservation), posted: i64, spent: i64) {
    if let Some((_, period, from)) = held.amount
        && let Some(tally) = activity.reserved_in(mandate, period, from)
    {
        let sum = if held.excess { &mut tally.excess } else { &mut tally.spent };
        *sum = sum.saturating_sub(posted).saturating_add(spent);
    }
}
