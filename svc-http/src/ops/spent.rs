//! What the payments of an agent add up to: every action that it asked for in the time is read, of which there may be very many.
//!
//! A sum that took long to add up is told again for a while, which is the longer the longer it took: however often somebody asks, adding
//! up takes a small part of the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use svc_core::refusal::Refusal;
use svc_core::rules::people::show;
use svc_core::state::gate::{Action, State, Status};
use svc_core::store::{Range, Row as _};
use svc_core::value::currency::Currency;
use svc_core::value::id::{AgentId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::{Id as _, Timestamp};
use svc_store::Gate;

use super::aside::{Aside, Asker, Awaited};
use super::{GateService, refusal};
use crate::wire::agent::Spent;

/// Rows of one scan.
const LOOK: usize = 1_000;
/// A sum that took at least so long is told again.
const LONG: Duration = Duration::from_millis(250);
/// For so many times as long as it took, and no longer than this.
const TOLD_AGAIN: u32 = 20;
const TOLD_AGAIN_MAX: Duration = Duration::from_secs(5 * 60);
/// So many sums are remembered.
const REMEMBERED_MAX: usize = 1_000;

type Sums = BTreeMap<Currency, Spent>;

/// Places for adding up, and sums that took long.
#[derive(Debug, Default)]
pub(super) struct SpentSums {
    pub(super) places: Aside,
    remembered: Mutex<HashMap<(AgentId, Timestamp), (Sums, Instant)>>,
}

impl SpentSums {
    /// A sum that is told again at this time.
    fn again(&self, agent: AgentId, since: Timestamp, now: Instant) -> Option<Sums> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(&(agent, since)).filter(|(_, until)| now < *until).map(|(sums, _)| sums.clone())
    }

    /// Remembers what was added up by now and took so long.
    fn note(&self, agent: AgentId, since: Timestamp, sums: &Sums, (now, took): (Instant, Duration)) {
        if took < LONG {
            return;
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, (_, until)| now < *until);
        }
        if remembered.len() < REMEMBERED_MAX {
            let until = now + took.saturating_mul(TOLD_AGAIN).min(TOLD_AGAIN_MAX);
            remembered.insert((agent, since), (sums.clone(), until));
        }
    }
}

/// What the payments that an agent asked for since then add up to, by currency, not on a thread that serves others; by these places and
/// in this asker's turn.
///
/// # Errors
/// Those of scanning.
pub(super) async fn spent_since(
    service: &GateService,
    (places, asker): (&Aside, Asker),
    agent: AgentId,
    since: Timestamp,
) -> Result<Sums, Refusal> {
    if let Some(sums) = service.spent.again(agent, since, Instant::now()) {
        return Ok(sums);
    }
    let (gate, spent) = (service.gate.clone(), Arc::clone(&service.spent));
    let add = move |awaited: &Awaited| {
        // Somebody else may have asked for it, and had it, meanwhile.
        let begun = Instant::now();
        if let Some(sums) = spent.again(agent, since, begun) {
            return Ok(sums);
        }
        let sums = add_up(&gate, agent, since, awaited)?;
        spent.note(agent, since, &sums, (Instant::now(), begun.elapsed()));
        Ok(sums)
    };
    places.run_awaited(asker, add).await
}

/// The same, here and now, as long as somebody waits for it. Every one of them is read, a page at a time.
fn add_up(gate: &Gate, agent: AgentId, since: Timestamp, awaited: &Awaited) -> Result<Sums, Refusal> {
    let mut range = Range { from: ulid_bits(since, 0), ..Range::all(Index::ActionsOf, agent.bits(), LOOK) };
    let now = gate.now();
    let mut sums = Sums::new();
    loop {
        awaited.go_on()?;
        let found = gate.scan(&range).map_err(refusal)?;
        // Read after them: what a stop has ended, their own rows may say later than it does.
        let (owner, held) = gate.read(|scope| show::stops(scope, agent)).map_err(refusal)?;
        for action in found.iter().filter_map(|it| Action::peel(it.row.record.as_ref()?)) {
            let Some(payment) = &action.payment else { continue };
            let sum = sums.entry(payment.currency).or_default();
            match &action.state {
                State::Denied { .. } | State::Expired { .. } => {}
                // What only a person could let pass holds nothing until they do.
                State::Pending { .. } if action.mandate.is_none() || action.is_beyond() => {}
                // A stop or time has ended it.
                State::Pending { .. } if action.status(&owner, held, now) != Status::Pending => {}
                State::Pending { .. } => sum.reserved = sum.reserved.saturating_add(payment.amount),
                State::Allowed(allowed) => {
                    // Of what held nothing no timer says that it lapsed.
                    let ended = allowed.outcome.is_some() || allowed.lapsed.is_some() || now >= allowed.lapse_at();
                    let part = if ended { &mut sum.settled } else { &mut sum.reserved };
                    *part = part.saturating_add(allowed.posted().unwrap_or(payment.amount));
                }
            }
        }
        if !range.turn_page(&found) {
            return Ok(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum that took long is told again for twenty times as long, but no longer than some minutes; one that did not is added up anew.
    #[test]
    fn what_took_long_is_told_again() {
        let (spent, agent, since) = (SpentSums::default(), AgentId::from_bits(1), Timestamp::from_millis(1));
        let (now, sums) = (Instant::now(), Sums::new());
        let is_told = |after: Duration| spent.again(agent, since, now + after).is_some();
        spent.note(agent, since, &sums, (now, LONG / 2));
        assert!(!is_told(Duration::ZERO));
        spent.note(agent, since, &sums, (now, LONG));
        assert!(is_told(LONG * 19) && !is_told(LONG * 20));
        assert!(spent.again(agent, Timestamp::from_millis(2), now).is_none());
        spent.note(agent, since, &sums, (now, Duration::from_secs(60)));
        assert!(is_told(TOLD_AGAIN_MAX / 2) && !is_told(TOLD_AGAIN_MAX));
        for other in 2..2 * REMEMBERED_MAX {
            spent.note(AgentId::from_bits(other as u128), since, &sums, (now, LONG));
        }
        assert_eq!(spent.remembered.lock().unwrap_or_else(PoisonError::into_inner).len(), REMEMBERED_MAX);
    }
}
