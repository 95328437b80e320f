//! Which calls are made next: workspaces take turns, and within one the hosts that it calls; none has more than a few at once.
//!
//! **Invariant:** a host that does not answer keeps no other waiting, nor do many of them that one workspace names keep
//! another's, nor does a server that all workspaces send over.
//! **Invariant:** what agents name, however many hosts that is, keeps nothing waiting that their workspace itself sends: people are
//! told of what waits for them, and an export goes on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use svc_core::value::id::{DeliveryId, WorkspaceId};

/// Calls that are made at once.
const RUNNING_MAX: usize = 64;
/// Of these, of one workspace.
const RUNNING_OF_WORKSPACE_MAX: usize = 16;
/// Of these, to what its agents name.
const RUNNING_OF_AGENTS_MAX: usize = 8;
/// Of these, in one line.
const RUNNING_OF_LINE_MAX: usize = 4;
/// Of these, over one line that all workspaces share.
const RUNNING_OF_SHARED_MAX: usize = 16;
/// Calls held in memory; the rest stays where it is found again.
const HELD_MAX: usize = 4_096;
/// Of these, of one workspace.
const HELD_OF_WORKSPACE_MAX: usize = 1_024;
/// Of these, to what its agents name.
const HELD_OF_AGENTS_MAX: usize = 512;
/// Of these, in one line.
const HELD_OF_LINE_MAX: usize = 64;

/// What calls wait in line with. What an agent calls a host for and what its workspace does are two lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    /// The host that is called, or the kind of what is sent over a server of all workspaces.
    pub(super) name: String,
    /// Whether it leads to one place for all workspaces.
    pub(super) shared: bool,
    /// Whether an agent named the host.
    pub(super) of_agents: bool,
}

/// Whose call it is, and to which host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    /// The workspace.
    pub(super) workspace: WorkspaceId,
    /// The host that is called, or what stands for it.
    pub(super) host: Line,
}

/// Calls that are due, by workspace and host.
#[derive(Debug, Default)]
pub(super) struct Queue {
    workspaces: BTreeMap<WorkspaceId, Own>,
    /// Workspaces that have calls to make and room to make them, in turn.
    turns: VecDeque<WorkspaceId>,
    held: BTreeSet<DeliveryId>,
    running: usize,
    /// Lines that all workspaces share, by their names.
    shared: BTreeMap<String, Shared>,
}

/// A line that all workspaces share.
#[derive(Debug, Default)]
struct Shared {
    running: usize,
    /// Workspaces that had their turn in it and found no place: each once, in the order of their turns.
    waiting: VecDeque<WorkspaceId>,
}

/// What one workspace calls.
#[derive(Debug, Default)]
struct Own {
    hosts: BTreeMap<Line, Host>,
    /// Hosts that have calls to get and room for them, in turn.
    turns: VecDeque<Line>,
    /// The same of those that its agents named: their turn comes behind the others'.
    turns_of_agents: VecDeque<Line>,
    held: usize,
    held_of_agents: usize,
    running: usize,
    running_of_agents: usize,
    has_turn: bool,
}

impl Own {
    /// Whether there is a call to make and a place for it.
    fn could_run(&self) -> bool {
        let of_agents = !self.turns_of_agents.is_empty() && self.running_of_agents < RUNNING_OF_AGENTS_MAX;
        self.running < RUNNING_OF_WORKSPACE_MAX && (!self.turns.is_empty() || of_agents)
    }

    /// The line whose turn it is: what the workspace itself sends before what its agents named.
    fn next(&mut self) -> Option<Line> {
        match self.turns.pop_front() {
            None if self.running_of_agents < RUNNING_OF_AGENTS_MAX => self.turns_of_agents.pop_front(),
            next => next,
        }
    }

    /// Whether one more is held in this line.
    fn has_room(&self, line: &Line) -> bool {
        let waits = self.hosts.get(line).map_or(0, |it| it.waiting.len());
        let of_agents = !line.of_agents || self.held_of_agents < HELD_OF_AGENTS_MAX;
        self.held < HELD_OF_WORKSPACE_MAX && of_agents && waits < HELD_OF_LINE_MAX
    }
}

#[derive(Debug, Default)]
struct Host {
    waiting: VecDeque<DeliveryId>,
    running: usize,
    /// Whether it stands in its workspace's turns, or waits for a place in a line that is shared.
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
        if !own.has_room(&whose.host) {
            return;
        }
        own.held += 1;
        own.held_of_agents += usize::from(whose.host.of_agents);
        own.hosts.entry(whose.host.clone()).or_default().waiting.push_back(job);
        self.held.insert(job);
        self.give_turn(&whose);
    }

    /// The call to make next, if there is one and a place for it.
    pub(super) fn next(&mut self) -> Option<(Whose, DeliveryId)> {
        if self.running >= RUNNING_MAX {
            return None;
        }
        loop {
            let workspace = self.turns.pop_front()?;
            let own = self.workspaces.get_mut(&workspace)?;
            own.has_turn = false;
            let Some(host) = own.next() else { continue };
            let whose = Whose { workspace, host };
            let job = if self.has_place(&whose.host) { self.begin(&whose) } else { self.park(&whose) };
            self.give_turn(&whose);
            if let Some(job) = job {
                return Some((whose, job));
            }
        }
    }

    /// Whether a line that all workspaces share has a place left; one of a single workspace's is asked nothing here.
    fn has_place(&self, line: &Line) -> bool {
        !line.shared || self.shared.get(&line.name).is_none_or(|it| it.running < RUNNING_OF_SHARED_MAX)
    }

    fn begin(&mut self, whose: &Whose) -> Option<DeliveryId> {
        let own = self.workspaces.get_mut(&whose.workspace)?;
        let host = own.hosts.get_mut(&whose.host)?;
        host.has_turn = false;
        let job = host.waiting.pop_front()?;
        host.running += 1;
        own.running += 1;
        own.running_of_agents += usize::from(whose.host.of_agents);
        self.running += 1;
        if whose.host.shared {
            self.shared.entry(whose.host.name.clone()).or_default().running += 1;
        }
        Some(job)
    }

    /// Lets a workspace wait for a place in a line that all share: it keeps its turn there, and hinders none of its others.
    fn park(&mut self, whose: &Whose) -> Option<DeliveryId> {
        self.shared.entry(whose.host.name.clone()).or_default().waiting.push_back(whose.workspace);
        None
    }

    /// A place in a line that all share is free: whoever waits for one has a turn again, in the same order. All of them, since
    /// the first may be kept from using it by what else its workspace calls.
    fn free(&mut self, line: &Line) {
        let Some(shared) = self.shared.get_mut(&line.name) else { return };
        shared.running = shared.running.saturating_sub(1);
        let waiting = std::mem::take(&mut shared.waiting);
        if shared.running == 0 {
            self.shared.remove(&line.name);
        }
        for workspace in waiting {
            if let Some(own) = self.workspaces.get_mut(&workspace) {
                own.turns.push_back(line.clone());
            }
            self.give_turn(&Whose { workspace, host: line.clone() });
        }
    }

    /// A call came to its end.
    pub(super) fn done(&mut self, whose: &Whose, job: DeliveryId) {
        let was_held = self.held.remove(&job);
        self.running = self.running.saturating_sub(1);
        if let Some(own) = self.workspaces.get_mut(&whose.workspace) {
            let of_agents = usize::from(whose.host.of_agents);
            own.held = own.held.saturating_sub(usize::from(was_held));
            own.held_of_agents = own.held_of_agents.saturating_sub(usize::from(was_held) * of_agents);
            own.running = own.running.saturating_sub(1);
            own.running_of_agents = own.running_of_agents.saturating_sub(of_agents);
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
        if whose.host.shared {
            self.free(&whose.host);
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
            && host.running < RUNNING_OF_LINE_MAX
        {
            host.has_turn = true;
            let turns = if whose.host.of_agents { &mut own.turns_of_agents } else { &mut own.turns };
            turns.push_back(whose.host.clone());
        }
        if !own.has_turn && own.could_run() {
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
        Whose {
            workspace: WorkspaceId::from_bits(workspace),
            host: Line { name: host.to_owned(), shared: false, of_agents: false },
        }
    }

    fn named(workspace: u128, host: &str) -> Whose {
        let whose = of(workspace, host);
        Whose { host: Line { of_agents: true, ..whose.host }, ..whose }
    }

    fn mail(workspace: u128) -> Whose {
        Whose {
            workspace: WorkspaceId::from_bits(workspace),
            host: Line { name: "mail".to_owned(), shared: true, of_agents: false },
        }
    }

    fn all(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.next()).map(|(whose, _)| whose.host.name).collect()
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

    /// An agent that has any number of slow hosts called holds up nothing that its workspace sends itself: that is held, and made at
    /// once; and where every place is taken its turn comes first.
    #[test]
    fn what_agents_name_keeps_nothing_of_their_workspace_waiting() {
        let mut queue = Queue::default();
        for number in 0..10_000 {
            queue.put(named(1, &format!("slow{number}")), job(number));
        }
        assert_eq!((queue.held.len(), all(&mut queue).len()), (HELD_OF_AGENTS_MAX, RUNNING_OF_AGENTS_MAX));
        queue.put(mail(1), job(20_000));
        queue.put(of(1, "export"), job(20_001));
        queue.put(of(1, "slow0"), job(20_002));
        assert_eq!(all(&mut queue), ["mail", "export", "slow0"]);
        for number in 0..HELD_OF_WORKSPACE_MAX as u128 {
            queue.put(of(1, &format!("own{number}")), job(30_000 + number));
        }
        assert_eq!(queue.held.len(), HELD_OF_WORKSPACE_MAX, "the workspace's own have the places that are left");
        let own = RUNNING_OF_WORKSPACE_MAX - RUNNING_OF_AGENTS_MAX - 3;
        assert_eq!(all(&mut queue).len(), own);
        queue.done(&named(1, "slow0"), job(0));
        assert_eq!(all(&mut queue), [format!("own{own}")], "before what agents named");
    }

    /// What agents name is called too, in turn, and leaves nothing behind.
    #[test]
    fn what_agents_name_is_called_in_turn() {
        let mut queue = Queue::default();
        for number in 0..40 {
            queue.put(named(1, &format!("host{}", number % 20)), job(number));
        }
        let (mut begun, mut made) = (VecDeque::new(), 0);
        loop {
            begun.extend(std::iter::from_fn(|| queue.next()));
            let Some((whose, id)) = begun.pop_front() else { break };
            assert!(begun.len() < RUNNING_OF_AGENTS_MAX);
            queue.done(&whose, id);
            made += 1;
        }
        assert_eq!((made, queue.workspaces.len(), queue.turns.len()), (40, 0, 0));
    }

    /// A server that all workspaces send over and that hangs has its places and no more: others' calls are made at once, also those
    /// of a host of the same name, and of what waits for it each workspace has its turn when a place is free.
    #[test]
    fn a_shared_line_has_its_places_and_no_more() {
        let mut queue = Queue::default();
        for number in 0..160 {
            queue.put(mail(number % 40), job(number));
        }
        let begun: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(begun.len(), RUNNING_OF_SHARED_MAX);
        for workspace in [0, 39] {
            queue.put(of(workspace, "mail"), job(1_000 + workspace));
            queue.put(of(workspace, "quick"), job(2_000 + workspace));
        }
        assert_eq!(all(&mut queue), ["mail", "mail", "quick", "quick"]);
        let (mut begun, mut order) = (VecDeque::from(begun), Vec::new());
        while let Some((whose, id)) = begun.pop_front() {
            order.push(whose.workspace);
            queue.done(&whose, id);
            begun.extend(std::iter::from_fn(|| queue.next()));
            assert!(begun.len() <= RUNNING_OF_SHARED_MAX);
        }
        let firsts: BTreeSet<_> = order.iter().take(40).collect();
        assert_eq!((order.len(), firsts.len()), (160, 40), "each had its turn before any had two");
        assert!(queue.shared.is_empty());
        for workspace in [0, 39] {
            queue.done(&of(workspace, "mail"), job(1_000 + workspace));
            queue.done(&of(workspace, "quick"), job(2_000 + workspace));
        }
        assert!(queue.workspaces.is_empty() && queue.turns.is_empty(), "what is done leaves nothing behind");
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
        assert_eq!(queue.held.len(), HELD_OF_LINE_MAX);
        for number in 0..10_000 {
            queue.put(of(number % 7, &format!("host{}", number % 500)), job(5_000 + number));
        }
        assert!(queue.is_full() && queue.held.len() == HELD_MAX);
        assert_eq!(all(&mut queue).len(), RUNNING_MAX);
    }
}
