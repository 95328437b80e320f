//! Which calls are made next: workspaces take turns, and within one the hosts that it calls; none has more than a few at once.
//!
//! **Invariant:** a host that does not answer keeps no other waiting, nor do many of them that one workspace names keep
//! another's, nor does a server that all workspaces send over.
//! **Invariant:** what agents name, however many hosts that is, keeps nothing waiting that their workspace itself sends: people are
//! told of what waits for them, and an export goes on. Nor does what one agent names keep another's waiting: agents take turns, and
//! each holds a share of what there is for all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use svc_core::value::id::{AgentId, DeliveryId, WorkspaceId};

/// Calls that are made at once.
const RUNNING_MAX: usize = 64;
/// Of these, of one workspace.
const RUNNING_OF_WORKSPACE_MAX: usize = 16;
/// Of these, to what its agents name.
const RUNNING_OF_AGENTS_MAX: usize = 8;
/// Of these, to what one agent names.
const RUNNING_OF_AGENT_MAX: usize = 4;
/// Of these, to one host: a host that does not answer leaves its agent the others.
const RUNNING_OF_NAMED_MAX: usize = 2;
/// In one line; to a host that several agents name, in all of theirs together.
const RUNNING_OF_LINE_MAX: usize = 4;
/// Of these, over one line that all workspaces share.
const RUNNING_OF_SHARED_MAX: usize = 16;
/// Calls held in memory; the rest stays where it is found again.
const HELD_MAX: usize = 4_096;
/// Of these, of one workspace.
const HELD_OF_WORKSPACE_MAX: usize = 1_024;
/// Of these, to what its agents name.
const HELD_OF_AGENTS_MAX: usize = 512;
/// Of these, to what one agent names.
const HELD_OF_AGENT_MAX: usize = 128;
/// In one line.
const HELD_OF_LINE_MAX: usize = 64;

/// What calls wait in line with. What an agent calls a host for, what another does and what their workspace does are lines apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    /// The host that is called, or the kind of what is sent over a server of all workspaces.
    pub(super) name: String,
    /// Whether it leads to one place for all workspaces.
    pub(super) shared: bool,
    /// The agent that named the host, where one did.
    pub(super) agent: Option<AgentId>,
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
    /// Hosts that have calls to get and room for them, in turn; those that its agents named apart, as their turn comes behind.
    turns: VecDeque<Line>,
    named: Named,
    held: usize,
    running: usize,
    has_turn: bool,
}

/// What the agents of one workspace named.
#[derive(Debug, Default)]
struct Named {
    agents: BTreeMap<AgentId, OfAgent>,
    /// Agents that have such hosts, in turn.
    turns: VecDeque<AgentId>,
    /// Calls that are being made, by host, whichever agents named it.
    at: BTreeMap<String, usize>,
    held: usize,
    running: usize,
}

/// What one agent named.
#[derive(Debug, Default)]
struct OfAgent {
    turns: VecDeque<Line>,
    held: usize,
    running: usize,
}

impl Named {
    /// Which agent's turn it is, and which host's among what it named: of those of whose calls the fewest are being made, the first.
    fn turn(&self) -> Option<(usize, usize)> {
        if self.running >= RUNNING_OF_AGENTS_MAX {
            return None;
        }
        let is_free = |line: &Line| self.at.get(&line.name).is_none_or(|it| *it < RUNNING_OF_LINE_MAX);
        let could = self.turns.iter().enumerate().filter_map(|(at, agent)| {
            let of_agent = self.agents.get(agent).filter(|it| it.running < RUNNING_OF_AGENT_MAX)?;
            Some((of_agent.running, at, of_agent.turns.iter().position(is_free)?))
        });
        could.min().map(|(_, at, of_host)| (at, of_host))
    }

    fn next(&mut self) -> Option<Line> {
        let (at, of_host) = self.turn()?;
        let agent = self.turns.remove(at)?;
        let of_agent = self.agents.get_mut(&agent)?;
        let line = of_agent.turns.remove(of_host);
        if !of_agent.turns.is_empty() {
            self.turns.push_back(agent);
        }
        line
    }

    fn give_turn(&mut self, agent: AgentId, line: Line) {
        let of_agent = self.agents.entry(agent).or_default();
        if of_agent.turns.is_empty() {
            self.turns.push_back(agent);
        }
        of_agent.turns.push_back(line);
    }

    fn has_room(&self, agent: AgentId) -> bool {
        let held = self.agents.get(&agent).map_or(0, |it| it.held);
        self.held < HELD_OF_AGENTS_MAX && held < HELD_OF_AGENT_MAX
    }

    fn hold(&mut self, agent: AgentId) {
        self.held += 1;
        self.agents.entry(agent).or_default().held += 1;
    }

    fn begin(&mut self, agent: AgentId, host: &str) {
        self.running += 1;
        self.agents.entry(agent).or_default().running += 1;
        *self.at.entry(host.to_owned()).or_default() += 1;
    }

    fn done(&mut self, agent: AgentId, host: &str, was_held: bool) {
        self.held = self.held.saturating_sub(usize::from(was_held));
        self.running = self.running.saturating_sub(1);
        if let Some(of_agent) = self.agents.get_mut(&agent) {
            of_agent.held = of_agent.held.saturating_sub(usize::from(was_held));
            of_agent.running = of_agent.running.saturating_sub(1);
            if of_agent.held == 0 {
                self.agents.remove(&agent);
            }
        }
        match self.at.get_mut(host) {
            Some(running) if *running > 1 => *running -= 1,
            _ => drop(self.at.remove(host)),
        }
    }
}

impl Own {
    /// Whether there is a call to make and a place for it.
    fn could_run(&self) -> bool {
        self.running < RUNNING_OF_WORKSPACE_MAX && (!self.turns.is_empty() || self.named.turn().is_some())
    }

    /// The line whose turn it is: what the workspace itself sends before what its agents named.
    fn next(&mut self) -> Option<Line> {
        self.turns.pop_front().or_else(|| self.named.next())
    }

    /// Whether one more is held in this line.
    fn has_room(&self, line: &Line) -> bool {
        let waits = self.hosts.get(line).map_or(0, |it| it.waiting.len());
        let of_agents = line.agent.is_none_or(|it| self.named.has_room(it));
        self.held < HELD_OF_WORKSPACE_MAX && of_agents && waits < HELD_OF_LINE_MAX
    }
}

impl Line {
    /// How many calls are made in it at once.
    const fn running_max(&self) -> usize {
        if self.agent.is_some() { RUNNING_OF_NAMED_MAX } else { RUNNING_OF_LINE_MAX }
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
        if let Some(agent) = whose.host.agent {
            own.named.hold(agent);
        }
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
        if let Some(agent) = whose.host.agent {
            own.named.begin(agent, &whose.host.name);
        }
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
            own.held = own.held.saturating_sub(usize::from(was_held));
            own.running = own.running.saturating_sub(1);
            if let Some(agent) = whose.host.agent {
                own.named.done(agent, &whose.host.name, was_held);
            }
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
            && host.running < whose.host.running_max()
        {
            host.has_turn = true;
            match whose.host.agent {
                Some(agent) => own.named.give_turn(agent, whose.host.clone()),
                None => own.turns.push_back(whose.host.clone()),
            }
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
            host: Line { name: host.to_owned(), shared: false, agent: None },
        }
    }

    fn named(agent: u128, host: &str) -> Whose {
        let whose = of(1, host);
        Whose { host: Line { agent: Some(AgentId::from_bits(agent)), ..whose.host }, ..whose }
    }

    fn mail(workspace: u128) -> Whose {
        Whose {
            workspace: WorkspaceId::from_bits(workspace),
            host: Line { name: "mail".to_owned(), shared: true, agent: None },
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

    /// Agents that have any number of slow hosts called hold up nothing that its workspace sends itself: that is held, and made at
    /// once; and where every place is taken its turn comes first.
    #[test]
    fn what_agents_name_keeps_nothing_of_their_workspace_waiting() {
        let mut queue = Queue::default();
        for number in 0..10_000 {
            queue.put(named(number % 40, &format!("slow{number}")), job(number));
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
        queue.done(&named(0, "slow0"), job(0));
        assert_eq!(all(&mut queue), [format!("own{own}")], "before what agents named");
    }

    /// An agent that has any number of slow hosts called holds its share and no more: another's call is held, and made at once, and
    /// where every place is taken before theirs who have some.
    #[test]
    fn what_an_agent_names_keeps_nothing_of_another_waiting() {
        let mut queue = Queue::default();
        for number in 0..10_000 {
            queue.put(named(1, &format!("slow{number}")), job(number));
        }
        assert_eq!((queue.held.len(), all(&mut queue).len()), (HELD_OF_AGENT_MAX, RUNNING_OF_AGENT_MAX));
        queue.put(named(2, "quick"), job(20_000));
        assert_eq!(all(&mut queue), ["quick"]);
        for number in 0..10_000 {
            queue.put(named(3, &format!("slow{number}")), job(30_000 + number));
        }
        assert_eq!(all(&mut queue).len(), RUNNING_OF_AGENTS_MAX - RUNNING_OF_AGENT_MAX - 1);
        queue.put(named(4, "quick"), job(50_000));
        queue.done(&named(1, "slow0"), job(0));
        assert_eq!(all(&mut queue), ["quick"]);
    }

    /// A host that does not answer keeps no other of its agent's waiting, nor one that many agents name another's.
    #[test]
    fn a_host_that_agents_name_keeps_no_other_waiting() {
        let mut queue = Queue::default();
        for number in 0..40 {
            queue.put(named(number % 10, "slow"), job(number));
        }
        assert_eq!(all(&mut queue), ["slow"; RUNNING_OF_LINE_MAX]);
        queue.put(named(1, "quick"), job(100));
        queue.put(named(20, "quick"), job(101));
        assert_eq!(all(&mut queue), ["quick", "quick"]);
        let mut queue = Queue::default();
        for number in 0..10 {
            queue.put(named(1, "slow"), job(number));
        }
        assert_eq!(all(&mut queue), ["slow"; RUNNING_OF_NAMED_MAX]);
        queue.put(named(1, "quick"), job(100));
        assert_eq!(all(&mut queue), ["quick"]);
    }

    /// However many agents have calls, each has its turn before one of them has another; whose calls are all made leaves nothing behind.
    #[test]
    fn agents_take_turns() {
        const AGENTS: usize = 3 * RUNNING_OF_AGENTS_MAX;
        let (mut queue, mut begun) = (Queue::default(), VecDeque::new());
        queue.put(of(1, "own"), job(10_000));
        assert_eq!(all(&mut queue), ["own"]);
        let whose = |number: usize| named((number % AGENTS) as u128, &format!("host{number}"));
        for number in 0..2 * AGENTS {
            queue.put(whose(number), job(number as u128));
        }
        for turn in 0..2 * AGENTS {
            if turn >= RUNNING_OF_AGENTS_MAX {
                let number = begun.pop_front().unwrap();
                queue.done(&whose(number), job(number as u128));
            }
            let (next, id) = queue.next().unwrap();
            let number = (0..2 * AGENTS).find(|it| job(*it as u128) == id).unwrap();
            assert_eq!((next, number % AGENTS), (whose(number), turn % AGENTS));
            begun.push_back(number);
        }
        for number in begun {
            queue.done(&whose(number), job(number as u128));
        }
        let named = &queue.workspaces.values().next().unwrap().named;
        assert!(named.agents.is_empty() && named.at.is_empty() && named.turns.is_empty(), "{named:?}");
    }

    /// What agents name is called too, in turn, and leaves nothing behind.
    #[test]
    fn what_agents_name_is_called_in_turn() {
        let mut queue = Queue::default();
        for number in 0..40 {
            queue.put(named(number % 3, &format!("host{}", number % 20)), job(number));
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
