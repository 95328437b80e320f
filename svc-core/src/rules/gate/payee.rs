//! What was paid to the same payee: the sum of 24 hours and the same payment within 10 minutes.

use crate::rules::gate::evaluate::PayeeFacts;
use crate::state::gate::{Block, DUPLICATE_WINDOW, PAYEE_SEALED, Payee, PayeeSlot, Payment, SPLIT_WINDOW, place_of};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::PayeeId;
use crate::value::id::AgentId;

/// How many sealed payments one decision lets go of, one by one.
const LET_GO_MAX: usize = 8 * PAYEE_SEALED;

/// How many sealed blocks one decision adds up anew where more payments than that have aged. Where there are more of the last 24 hours
/// too, which are thousands on either side, the sum counts some for longer: a person is asked who need not be, and the next decisions
/// catch up.
const ADDED_MAX: u32 = 128;

/// How many sealed blocks are looked through for the same payment: so many in each read, the newest first. That is two thousand payments
/// to one payee within ten minutes.
const LOOKED_THROUGH: [u32; 3] = [2, 14, 112];

/// How many dead blocks one payment deletes: more than it can fill, so that none stay.
const SWEPT_MAX: usize = 2;

/// The payee of a payment.
pub(super) fn id(agent: AgentId, payment: &Payment) -> PayeeId {
    Payee::id_of(agent, payment.domain.registrable(), payment.currency)
}

/// The payee's row brought up to now, and what stands in it before the present payment. Nothing is written.
pub(super) fn read(scope: &mut Scope<'_>, id: PayeeId, amount: i64) -> Result<(Payee, PayeeFacts), Halt> {
    let Some(stored) = scope.get::<Payee>(id)? else { return Ok((Payee::none(id), PayeeFacts::default())) };
    let mut payee = Payee::clone(&stored);
    let now = scope.now();
    let since = now.minus(SPLIT_WINDOW);
    if payee.at.last().is_some_and(|newest| *newest <= since) {
        payee.tail = payee.end();
        payee.sum = 0;
    }
    if !let_go(scope, &mut payee, since)? {
        add_up(scope, &mut payee, since)?;
    }
    payee.forget_inline(since);
    let repeated = repeats(scope, &payee, amount)?;
    let facts = PayeeFacts { sum: payee.sum, repeated };
    Ok((payee, facts))
}

/// Lets go of sealed payments of `since` or before, the oldest first; whether those were all.
fn let_go(scope: &mut Scope<'_>, payee: &mut Payee, since: Timestamp) -> Result<bool, Halt> {
    for _ in 0..LET_GO_MAX {
        if payee.tail >= payee.inline_from() {
            return Ok(true);
        }
        let (number, place) = place_of(payee.tail);
        let block = scope.get::<Block>(payee.block(number))?;
        let entry = block.as_ref().and_then(|it| Some((*it.at.get(place)?, it.paid(place)?)));
        match entry {
            Some((at, _)) if at > since => return Ok(true),
            Some((_, paid)) => payee.forget(paid),
            None => payee.forget(0),
        }
    }
    Ok(payee.tail >= payee.inline_from())
}

/// Adds up what was paid after `since` from the first block on that has any of it, where those are few enough.
fn add_up(scope: &mut Scope<'_>, payee: &mut Payee, since: Timestamp) -> Result<(), Halt> {
    let (mut first, mut end) = (place_of(payee.tail).0, payee.sealed);
    while first < end {
        let middle = first.midpoint(end);
        let newest = scope.get::<Block>(payee.block(middle))?.and_then(|it| it.at.last().copied());
        // One that is not there was dead before it was full.
        if newest.is_some_and(|at| at > since) { end = middle } else { first = middle.saturating_add(1) }
    }
    if payee.sealed.saturating_sub(first) > ADDED_MAX {
        return Ok(());
    }
    let living: Vec<_> = (first..payee.sealed).map(|number| payee.block(number)).collect();
    scope.want(&living.iter().map(|id| Block::key(*id)).collect::<Vec<_>>())?;
    let (mut sum, mut dead) = (0_i64, 0_u64);
    for id in living {
        let Some(block) = scope.get::<Block>(id)? else { return Ok(()) };
        for (place, at) in block.at.iter().enumerate() {
            match block.paid(place) {
                Some(paid) if *at > since => sum = sum.saturating_add(paid),
                _ => dead = dead.saturating_add(1),
            }
        }
    }
    payee.add_up(u64::from(first).saturating_mul(PAYEE_SEALED as u64).saturating_add(dead), sum);
    Ok(())
}

/// Adds the present payment, and deletes a few blocks of which nothing counts any more.
pub(super) fn note(scope: &mut Scope<'_>, mut payee: Payee, amount: i64) -> Result<PayeeSlot, Halt> {
    for _ in 0..SWEPT_MAX {
        let (alive, _) = place_of(payee.tail);
        if payee.first >= alive.min(payee.sealed) {
            break;
        }
        let block = payee.block(payee.first);
        // A block that was dead when it was full was never written.
        if scope.get_if_any::<Block>(block)?.is_some() {
            scope.delete::<Block>(block);
        }
        payee.first = payee.first.saturating_add(1);
    }
    let (slot, sealed) = payee.push(scope.now(), amount);
    if let Some(block) = sealed {
        scope.put(block);
    }
    scope.put(payee);
    Ok(slot)
}

/// Takes a payment that does not count any more out of its payee's sum.
pub(super) fn void(scope: &mut Scope<'_>, slot: PayeeSlot) -> Result<(), Halt> {
    restate(scope, slot, 0, 0)
}

/// Says what a payment came to, which its payee's sum then holds; `asked` is what the same payment again is known by.
pub(super) fn restate(scope: &mut Scope<'_>, slot: PayeeSlot, asked: i64, paid: i64) -> Result<(), Halt> {
    let Some(stored) = scope.get::<Payee>(slot.payee)? else { return Ok(()) };
    let mut payee = Payee::clone(&stored);
    if !payee.restate_inline(slot.index, asked, paid) {
        if slot.index < payee.tail {
            return Ok(());
        }
        let (number, place) = place_of(slot.index);
        let Some(block) = scope.get::<Block>(payee.block(number))? else { return Ok(()) };
        let mut block = Block::clone(&block);
        if let Some(before) = block.restate(place, asked, paid) {
            payee.sum = payee.sum.saturating_sub(before).saturating_add(paid);
        }
        scope.put(block);
    }
    scope.put(payee);
    Ok(())
}

/// Whether the same amount was paid within the duplicate window, as far as it is looked through: a payee of whom there is more counts as
/// paid the same.
fn repeats(scope: &mut Scope<'_>, payee: &Payee, amount: i64) -> Result<bool, Halt> {
    let since = scope.now().minus(DUPLICATE_WINDOW);
    let (found, whole) = payee.repeats_inline(amount, since);
    if found || whole {
        return Ok(found);
    }
    // Blocks before the tail are older than this window and may be gone, and a payment rests on no row that is not there.
    let oldest = payee.first.max(place_of(payee.tail).0);
    let mut end = payee.sealed;
    for size in LOOKED_THROUGH {
        let first = end.saturating_sub(size).max(oldest);
        let newest_first: Vec<_> = (first..end).rev().map(|number| payee.block(number)).collect();
        scope.want(&newest_first.iter().map(|id| Block::key(*id)).collect::<Vec<_>>())?;
        for id in newest_first {
            let Some(block) = scope.get::<Block>(id)? else { return Ok(false) };
            let newer = block.at.iter().zip(&block.amounts).rev().take_while(|(at, _)| **at > since);
            if newer.clone().any(|(_, it)| *it == amount) {
                return Ok(true);
            }
            if newer.count() < PAYEE_SEALED {
                return Ok(false);
            }
        }
        end = first.min(end);
    }
    // What is not looked through may hold the same.
    Ok(end > oldest)
}
