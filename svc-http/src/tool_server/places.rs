//! The calls of one server that are under way at once: so many, that one that does not answer takes no others' connections, and of
//! each agent so many, that one whose calls hang leaves room for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_core::value::id::AgentId;

use super::trouble::Trouble;

/// Calls of one server that are under way at once.
const CALLS_MAX: usize = 256;
/// As many of them are one agent's at most.
const OF_AGENT_MAX: usize = CALLS_MAX / 4;

/// The places of one server, by who holds them. An agent that holds none is not in it.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<HashMap<AgentId, usize>>);

/// One place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    agent: AgentId,
}

impl Places {
    /// A place for one call more of this agent's.
    ///
    /// # Errors
    /// [`Trouble::Busy`] where there is none, [`Trouble::AgentBusy`] where the agent holds as many as one may.
    pub(super) fn take(self: &Arc<Self>, agent: AgentId) -> Result<Place, Trouble> {
        let mut held = self.held();
        if held.get(&agent).is_some_and(|it| *it >= OF_AGENT_MAX) {
            return Err(Trouble::AgentBusy);
        }
        if held.values().sum::<usize>() >= CALLS_MAX {
            return Err(Trouble::Busy);
        }
        *held.entry(agent).or_default() += 1;
        Ok(Place { places: Arc::clone(self), agent })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<AgentId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held();
        if let Some(count) = held.get_mut(&self.agent) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.agent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::value::Id as _;

    use super::*;

    /// One agent holds a part of the places, all together hold all of them, and what is given back is there again.
    #[test]
    fn no_agent_holds_all_places() {
        let places = Arc::new(Places::default());
        let all = |agent: u128| {
            std::iter::from_fn(|| places.take(AgentId::from_bits(agent)).ok()).take(CALLS_MAX).collect::<Vec<_>>()
        };
        let one = all(1);
        assert_eq!(one.len(), OF_AGENT_MAX);
        assert_eq!(places.take(AgentId::from_bits(1)).err(), Some(Trouble::AgentBusy));
        let others: Vec<_> = (2..=8).flat_map(all).collect();
        assert_eq!(one.len() + others.len(), CALLS_MAX);
        assert_eq!(places.take(AgentId::from_bits(9)).err(), Some(Trouble::Busy));
        drop(one);
        assert_eq!(all(9).len(), OF_AGENT_MAX);
        drop(others);
        assert!(places.held().is_empty());
    }
}
