//! Switches that cut running answers from outside.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

/// Who has stopped, so that an answer is cut from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// This server, which has no more time for it. What has come of the answer is the client's.
    Server = 1,
    /// The key that asked for it, which was taken from whoever has it: the client gets nothing more of it.
    Key = 2,
    /// The agent that it is for: the client gets nothing more of it.
    Agent = 3,
}

impl Stop {
    /// Whether the client gets nothing more, not even what has come.
    #[must_use]
    pub const fn takes_back(self) -> bool {
        matches!(self, Self::Agent | Self::Key)
    }
}

/// Cuts one answer; shared by whoever may cut it and the answer.
#[derive(Debug, Default)]
pub struct Switch {
    /// A [`Stop`] as a number, 0 while there is none.
    stop: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

impl Switch {
    /// Cuts the answer: its client is told with an event of its API, and hears nothing more. That the agent was stopped, or the key
    /// was taken, holds also where the server stops.
    pub fn cut(&self, stop: Stop) {
        self.stop.fetch_max(stop as u8, Ordering::AcqRel);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Who has stopped, where it was cut.
    #[must_use]
    pub fn stopped(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Stop::Server),
            2 => Some(Stop::Key),
            _ => Some(Stop::Agent),
        }
    }

    /// Waits until it is cut.
    pub async fn cut_off(&self) -> Stop {
        std::future::poll_fn(|context| {
            self.wakes(context.waker());
            self.stopped().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Wakes `waker` when it is cut. Whoever asks looks again afterwards: it may have been cut meanwhile.
    pub(super) fn wakes(&self, waker: &Waker) {
        let mut held = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !held.as_ref().is_some_and(|it| it.will_wake(waker)) {
            *held = Some(waker.clone());
        }
    }
}

/// The switches of running answers, by whom the answers are for.
#[derive(Debug)]
pub struct Switches<K>(Mutex<Held<K>>);

#[derive(Debug)]
struct Held<K> {
    all: HashMap<K, Vec<Weak<Switch>>>,
    /// How many keys may be held before those without a running answer are let go.
    full: usize,
}

impl<K: Copy + Eq + Hash> Switches<K> {
    /// A switch for an answer that begins; it is let go of with the answer.
    pub fn begin(&self, key: K) -> Arc<Switch> {
        let switch = Arc::new(Switch::default());
        let mut held = self.held();
        if held.all.len() >= held.full {
            held.all.retain(|_, all| all.iter().any(is_running));
            held.full = held.all.len() * 2 + KEYS_MIN;
        }
        let all = held.all.entry(key).or_default();
        // Room is made where there would have to be more of it.
        if all.len() == all.capacity() {
            all.retain(is_running);
        }
        all.push(Arc::downgrade(&switch));
        switch
    }

    /// Cuts every running answer of `key`, who was stopped; how many there were.
    pub fn cut(&self, key: &K) -> usize {
        let all = self.held().all.remove(key).unwrap_or_default();
        let running = all.iter().filter_map(Weak::upgrade);
        running.map(|it| it.cut(Stop::Agent)).count()
    }

    /// Who has a running answer.
    #[must_use]
    pub fn running(&self) -> Vec<K> {
        let held = self.held();
        held.all.iter().filter(|(_, all)| all.iter().any(is_running)).map(|(key, _)| *key).collect()
    }

    /// What was held when somebody panicked is whole: a switch is in it or not.
    fn held(&self) -> MutexGuard<'_, Held<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Default for Switches<K> {
    fn default() -> Self {
        Self(Mutex::new(Held { all: HashMap::new(), full: KEYS_MIN }))
    }
}

fn is_running(switch: &Weak<Switch>) -> bool {
    switch.strong_count() > 0
}

/// Keys that are held without looking whether they are still wanted.
const KEYS_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// All of one are cut and none of another, and what has ended is not held on to.
    #[test]
    fn one_key_is_cut_and_no_other() {
        let switches = Switches::default();
        let (one, two, other) = (switches.begin(1), switches.begin(1), switches.begin(2));
        drop(switches.begin(3));
        let mut running = switches.running();
        running.sort_unstable();
        assert_eq!(running, [1, 2]);
        assert_eq!((switches.cut(&1), switches.cut(&1), switches.cut(&3)), (2, 0, 0));
        assert_eq!((one.stopped(), two.stopped(), other.stopped()), (Some(Stop::Agent), Some(Stop::Agent), None));
        for key in 0..10_000 {
            drop(switches.begin(key));
            drop(switches.begin(0));
        }
        let held = switches.held();
        assert!(held.all.len() < 200 && held.all.values().all(|it| it.len() < 100), "{}", held.all.len());
    }

    /// A stopped agent gets nothing more, whether the server stops before or after.
    #[test]
    fn a_stopped_agent_outweighs_a_server_that_stops() {
        for order in [[Stop::Agent, Stop::Server], [Stop::Server, Stop::Agent]] {
            let switch = Switch::default();
            order.into_iter().for_each(|it| switch.cut(it));
            assert_eq!(switch.stopped(), Some(Stop::Agent));
        }
    }
}
