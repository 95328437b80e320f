//! Reservations and what becomes of them (CONTRACT part 3, "Reservations and posting"). Sums belong to the period that an
//! action was authorized in; of one that has ended only the ledger tells.
//!
//! No amount is above 2^53 − 1, nor is any limit, and a sum holds a thousand times as much. One that has come to what it can hold is far
//! beyond every limit, and stays so by whatever is given back of it: it stops there rather than fail, as what has been spent is to be
//! posted whatever it comes to.

use crate::refusal::Refusal;
use crate::state::gate::{Action, Activity, Mandate, Request, Reservation, Tally};
use crate::state::people::Settings;
use crate::turn::{Halt, Scope};
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
    let (limits, id) = (mandate.limits(), mandate.id.mandate);
    let mut held = Reservation { amount: None, count: None, excess: false };
    if let (Some(per), Some(payment)) = (&limits.per_period, &request.payment) {
        let mut tally = activity.tally(id, per.period, now, settings);
        tally.reserved = tally.reserved.saturating_add(payment.amount);
        held.amount = Some((payment.amount, tally.term()));
        activity.keep(tally, now);
    }
    if let Some(count) = &limits.count {
        let mut tally = activity.tally(id, count.period, now, settings);
        tally.count = tally.count.saturating_add(1);
        held.count = Some(tally.term());
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
    let term = if let Some(tally) = asked_in {
        tally.excess = tally.excess.saturating_add(payment.amount);
        tally.term()
    } else {
        let term = settings.term(per.period, asked_at);
        let newer = activity.tallies.iter().any(|it| it.mandate == id && it.period == per.period && it.from > asked_at);
        // In a zone of later, the period that it was asked in may reach into the running one, of which there may be no sum yet.
        if !newer && term == settings.term(per.period, now) {
            activity.keep(Tally { excess: payment.amount, ..Tally::none(id, term) }, now);
        }
        term
    };
    Some(Reservation { amount: Some((payment.amount, term)), count: None, excess: true })
}

/// Gives back the amount and the one of the count.
pub(super) fn release(activity: &mut Activity, held: (MandateId, &Reservation)) {
    post(activity, held, 0);
    let (mandate, held) = held;
    if let Some(term) = held.count
        && let Some(tally) = activity.reserved_in(mandate, term)
    {
        tally.count = tally.count.saturating_sub(1);
    }
}

/// Turns the reserved amount into `spent`; the one of the count stays.
pub(super) fn post(activity: &mut Activity, (mandate, held): (MandateId, &Reservation), spent: i64) {
    if let Some((amount, term)) = held.amount
        && let Some(tally) = activity.reserved_in(mandate, term)
    {
        if held.excess {
            tally.excess = tally.excess.saturating_sub(amount).saturating_add(spent);
        } else {
            // Nobody gets room of what was never reserved.
            tally.reserved = tally.reserved.saturating_sub(amount).max(0);
            tally.spent = tally.spent.saturating_add(spent);
        }
    }
}

/// Puts `posted` in the place of what `stood` in the sums for an action that was posted before. Where no sum that is kept had it,
/// whoever adds them up from the actions at this moment is told that one has changed.
pub(super) fn repost(scope: &mut Scope<'_>, action: &Action, stood: i64, posted: i64) -> Result<(), Halt> {
    if action.mandate.is_none() || posted == stood {
        return Ok(());
    }
    let stored = scope.get::<Activity>(action.agent)?.ok_or_else(Refusal::internal)?;
    let mut activity = Activity::clone(&stored);
    if let Some(held) = action.held() {
        correct(&mut activity, held, stood, posted);
    }
    recount(&mut activity, action, Comes { from: stood, to: Some(posted) });
    if activity == *stored {
        activity.unsummed = activity.unsummed.wrapping_add(1);
    }
    scope.put(activity);
    Ok(())
}

/// Corrects what was posted to `spent`.
fn correct(activity: &mut Activity, (mandate, held): (MandateId, &Reservation), posted: i64, spent: i64) {
    if let Some((_, term)) = held.amount
        && let Some(tally) = activity.reserved_in(mandate, term)
    {
        let sum = if held.excess { &mut tally.excess } else { &mut tally.spent };
        *sum = sum.saturating_sub(posted).max(0).saturating_add(spent);
    }
}

/// What an action was in sums that were added up from actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comes {
    /// The amount that it counted with.
    pub(super) from: i64,
    /// The amount that it counts with from now on; none where it was no action after all.
    pub(super) to: Option<i64>,
}

/// Sets right the sums that were added up when a later version of the mandate began to speak of their period: there the
/// action counts without a reservation.
pub(super) fn recount(activity: &mut Activity, action: &Action, comes: Comes) {
    let Some(charged) = action.mandate.filter(|_| !action.is_beyond()) else { return };
    let (asked_at, held) = (action.created_at(), action.reservation.as_ref());
    let (amount, count) = (held.and_then(|it| it.amount).map(|it| it.1), held.and_then(|it| it.count));
    for tally in activity.tallies.iter_mut().filter(|it| it.mandate == charged.mandate && it.from <= asked_at) {
        let term = Some(tally.term());
        if charged.version < tally.summed_for && amount != term {
            let left = tally.spent.saturating_sub(comes.from).max(0);
            tally.spent = left.saturating_add(comes.to.unwrap_or(0));
        }
        if charged.version < tally.counted_for && count != term && comes.to.is_none() {
            tally.count = tally.count.saturating_sub(1);
        }
    }
}
