//! Which calls are made next: workspaces take turns, and within one the hosts that it calls; none has more than a few at once.
//!
//! **Invariant:** a host that does not answer keeps no other waiting, nor do many of them that one workspace names keep
//! another's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use svc_core::value::id::{DeliveryId, WorkspaceId};

/// Calls that are made at once.
const RUNNING_MAX: usize = 64;
/// Of these, of one workspace.
const RUNNING_OF_WORKSPACE_MAX: usize = 16;
/// Of these, to one host.
const RUNNING_OF_HOST_MAX: usize = 4;
/// Calls held in memory; the rest stays where it is found again.
const HELD_MAX: usize = 4_096;
/// Of these, of one workspace.
const HELD_OF_WORKSPACE_MAX: usize = 1_024;
/// Of these, to one host.
const HELD_OF_HOST_MAX: usize = 64;

/// Whose call it is, and to which host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    /// The workspace.
    pub(super) workspace: WorkspaceId,
    /// The host that is called.
    pub(super) host: String,
}

/// Calls that are due, by workspace and host.
#[derive(Debug, Default)]
pub(super) struct Queue {
    workspaces: BTreeMap<WorkspaceId, Own>,
    /// Workspaces that have calls to make and room to make them, in turn.
    turns: VecDeque<WorkspaceId>,
    held: BTreeSet<DeliveryId>,
    running: usize,
}

/// What one workspace calls.
#[derive(Debug, Default)]
struct Own {
    hosts: BTreeMap<String, Host>,
    /// Hosts that have calls to get and room for them, in turn.
    turns: VecDeque<String>,
    held: usize,
    running: usize,
    has_turn: bool,
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

    /// Holds a call, unless it is held already or there is no room for it.
    pub(super) fn put(&mut self, whose: Whose, job: DeliveryId) {
        if self.is_full() || self.knows(job) {
            return;
        }
        let own = self.workspaces.entry(whose.workspace).or_default();
        let waits = own.hosts.get(&whose.host).map_or(0, |it| it.waiting.len());
        if own.held >= HELD_OF_WORKSPACE_MAX || waits >= HELD_OF_HOST_MAX {
            return;
        }
        own.held += 1;
        own.hosts.entry(whose.host.clone()).or_default().waiting.push_back(job);
        self.held.insert(job);
        self.give_turn(&whose);
    }

    /// The call to make next, if there is one and a place for it.
    pub(super) fn next(&mut self) -> Option<(Whose, DeliveryId)> {
        if self.running >= RUNNING_MAX {
            return None;
        }
        let workspace = self.turns.pop_front()?;
        let own = self.workspaces.get_mut(&workspace)?;
        own.has_turn = false;
        let name = own.turns.pop_front()?;
        let host = own.hosts.get_mut(&name)?;
        host.has_turn = false;
        let job = host.waiting.pop_front()?;
        host.running += 1;
        own.running += 1;
        self.running += 1;
        let whose = Whose { workspace, host: name };
        self.give_turn(&whose);
        Some((whose, job))
    }

    /// A call came to its end.
    pub(super) fn done(&mut self, whose: &Whose, job: DeliveryId) {
        let was_held = self.held.remove(&job);
        self.running = self.running.saturating_sub(1);
        if let Some(own) = self.workspaces.get_mut(&whose.workspace) {
            own.held = own.held.saturating_sub(usize::from(was_held));
            own.running = own.running.saturating_sub(1);
            if let Some(host) = own.hosts.get_mut(&whose.host) {
                host.running = host.running.saturating_sub(1);
                if host.running == 0 && host.waiting.is_empty() {
                    own.hosts.remove(&whose.host);
                }
            }
            if own.hosts.is_empty() {
                self.workspaces.remove(&whose.workspace);
            }
        }
        self.give_turn(whose);
    }

    /// Nobody knows any more which calls are being made: all that is held is forgotten, and found again.
    pub(super) fn forget_running(&mut self) {
        *self = Self::default();
    }

    /// Gives the host its turn among its workspace's, and the workspace its own among all, where they have none and could use it.
    fn give_turn(&mut self, whose: &Whose) {
        let Some(own) = self.workspaces.get_mut(&whose.workspace) else { return };
        if let Some(host) = own.hosts.get_mut(&whose.host)
            && !host.has_turn
            && !host.waiting.is_empty()
            && host.running < RUNNING_OF_HOST_MAX
        {
            host.has_turn = true;
            own.turns.push_back(whose.host.clone());
        }
        if !own.has_turn && !own.turns.is_empty() && own.running < RUNNING_OF_WORKSPACE_MAX {
            own.has_turn = true;
            self.turns.push_back(whose.workspace);
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

    fn of(workspace: u128, host: &str) -> Whose {
        Whose { workspace: WorkspaceId::from_bits(workspace), host: host.to_owned() }
    }

    fn all(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.next()).map(|(whose, _)| whose.host).collect()
    }

    /// Hosts take turns, a slow one has its few places and no more, and its others wait until one of these is done.
    #[test]
    fn hosts_take_turns() {
        let mut queue = Queue::default();
        for number in 0..10 {
            queue.put(of(1, "slow"), job(number));
        }
        queue.put(of(1, "quick"), job(100));
        assert_eq!(all(&mut queue), ["slow", "quick", "slow", "slow", "slow"]);
        queue.put(of(1, "quick"), job(101));
        assert_eq!(all(&mut queue), ["quick"], "a host that does not answer keeps no other waiting");
        queue.done(&of(1, "slow"), job(0));
        assert_eq!(all(&mut queue), ["slow"]);
    }

    /// A workspace that names any number of slow hosts has its places and no more, waiting and running: another's call is made at
    /// once.
    #[test]
    fn workspaces_take_turns() {
        let mut queue = Queue::default();
        for number in 0..10_000 {
            queue.put(of(1, &format!("slow{number}")), job(number));
        }
        assert_eq!((queue.held.len(), all(&mut queue).len()), (HELD_OF_WORKSPACE_MAX, RUNNING_OF_WORKSPACE_MAX));
        queue.put(of(2, "quick"), job(20_000));
        assert_eq!(all(&mut queue), ["quick"]);
        queue.done(&of(1, "slow0"), job(0));
        assert_eq!(all(&mut queue).len(), 1);
        for number in 0..HELD_OF_WORKSPACE_MAX as u128 {
            queue.done(&of(1, &format!("slow{number}")), job(number));
            all(&mut queue);
        }
        assert_eq!(queue.workspaces.len(), 1, "what is done leaves nothing behind");
    }

    /// A call is held once, until it is done; what there is no room for is left where it is.
    #[test]
    fn what_is_held_is_bounded() {
        let mut queue = Queue::default();
        queue.put(of(1, "one"), job(1));
        queue.put(of(1, "one"), job(1));
        assert_eq!(all(&mut queue).len(), 1);
        queue.put(of(1, "one"), job(1));
        assert!(all(&mut queue).is_empty(), "it is being made");
        queue.done(&of(1, "one"), job(1));
        assert!(queue.workspaces.is_empty() && !queue.knows(job(1)));
        for number in 0..1_000 {
            queue.put(of(1, "one"), job(number));
        }
        assert_eq!(queue.held.len(), HELD_OF_HOST_MAX);
        for number in 0..10_000 {
            queue.put(of(number % 7, &format!("host{}", number % 500)), job(5_000 + number));
        }
        assert!(queue.is_full() && queue.held.len() == HELD_MAX);
        assert_eq!(all(&mut queue).len(), RUNNING_MAX);
    }
}
