//! Which calls are made next: hosts take turns, and none has more than a few at once.
//!
//! **Invariant:** a host that does not answer keeps no other waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use svc_core::value::id::DeliveryId;

/// Calls that are made at once.
const RUNNING_MAX: usize = 64;
/// Of these, to one host.
const RUNNING_OF_HOST_MAX: usize = 4;
/// Calls held in memory; the rest stays where it is found again.
const HELD_MAX: usize = 4_096;
/// Of these, to one host.
const HELD_OF_HOST_MAX: usize = 64;

/// Calls that are due, by host.
#[derive(Debug, Default)]
pub(super) struct Queue {
    hosts: BTreeMap<String, Host>,
    /// Hosts that have calls to make and room to make them, in turn.
    turns: VecDeque<String>,
    held: BTreeSet<DeliveryId>,
    running: usize,
}

#[derive(Debug, Default)]
struct Host {
    waiting: VecDeque<DeliveryId>,
    running: usize,
    has_turn: bool,
}

impl Queue {
    /// Whether a call is held or being made.
    pub(super) fn knows(&self, job: DeliveryId) -> bool {
        self.held.contains(&job)
    }

    /// Whether nothing more is held.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }

    /// Holds a call to `host`, unless it is held already or there is no room for it.
    pub(super) fn put(&mut self, host: String, job: DeliveryId) {
        if self.is_full() || self.knows(job) {
            return;
        }
        let own = self.hosts.entry(host.clone()).or_default();
        if own.waiting.len() >= HELD_OF_HOST_MAX {
            return;
        }
        own.waiting.push_back(job);
        self.held.insert(job);
        self.give_turn(&host);
    }

    /// The call to make next, if there is one and a place for it.
    pub(super) fn next(&mut self) -> Option<(String, DeliveryId)> {
        if self.running >= RUNNING_MAX {
            return None;
        }
        let host = self.turns.pop_front()?;
        let own = self.hosts.get_mut(&host)?;
        own.has_turn = false;
        let job = own.waiting.pop_front()?;
        own.running += 1;
        self.running += 1;
        self.give_turn(&host);
        Some((host, job))
    }

    /// A call came to its end.
    pub(super) fn done(&mut self, host: &str, job: DeliveryId) {
        self.held.remove(&job);
        self.running = self.running.saturating_sub(1);
        if let Some(own) = self.hosts.get_mut(host) {
            own.running = own.running.saturating_sub(1);
            if own.running == 0 && own.waiting.is_empty() {
                self.hosts.remove(host);
            }
        }
        self.give_turn(host);
    }

    /// Nobody knows any more which calls are being made: all that is held is forgotten, and found again.
    pub(super) fn forget_running(&mut self) {
        *self = Self::default();
    }

    fn give_turn(&mut self, host: &str) {
        let Some(own) = self.hosts.get_mut(host) else { return };
        if !own.has_turn && !own.waiting.is_empty() && own.running < RUNNING_OF_HOST_MAX {
            own.has_turn = true;
            self.turns.push_back(host.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use svc_core::value::Id as _;

    use super::*;

    fn job(number: u128) -> DeliveryId {
        DeliveryId::from_bits(number)
    }

    fn all(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.next()).map(|(host, _)| host).collect()
    }

    /// Hosts take turns, a slow one has its few places and no more, and its others wait until one of these is done.
    #[test]
    fn hosts_take_turns() {
        let mut queue = Queue::default();
        for number in 0..10 {
            queue.put("slow".to_owned(), job(number));
        }
        queue.put("quick".to_owned(), job(100));
        assert_eq!(all(&mut queue), ["slow", "quick", "slow", "slow", "slow"]);
        queue.put("quick".to_owned(), job(101));
        assert_eq!(all(&mut queue), ["quick"], "a host that does not answer keeps no other waiting");
        queue.done("slow", job(0));
        assert_eq!(all(&mut queue), ["slow"]);
    }

    /// A call is held once, until it is done; what there is no room for is left where it is.
    #[test]
    fn what_is_held_is_bounded() {
        let mut queue = Queue::default();
        queue.put("one".to_owned(), job(1));
        queue.put("one".to_owned(), job(1));
        assert_eq!(all(&mut queue).len(), 1);
        queue.put("one".to_owned(), job(1));
        assert!(all(&mut queue).is_empty(), "it is being made");
        queue.done("one", job(1));
        assert!(queue.hosts.is_empty() && !queue.knows(job(1)));
        for number in 0..1_000 {
            queue.put("one".to_owned(), job(number));
        }
        assert_eq!(queue.held.len(), HELD_OF_HOST_MAX);
        for number in 0..10_000 {
            queue.put(format!("host{}", number % 500), job(5_000 + number));
        }
        assert!(queue.is_full() && queue.held.len() == HELD_MAX);
        assert_eq!(all(&mut queue).len(), RUNNING_MAX);
    }
}
