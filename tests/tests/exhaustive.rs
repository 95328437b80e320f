//! Two nodes with caches of their own, and every order of their steps.
//!
//! - Over plain memory: three commands, and one failure at every place where there can be one.
//! - Over memory with the locks of PostgreSQL, statement by statement: three commands without a failure, and pairs, one at each
//!   node, with one failure at every statement, but for timers. Three with a failure are tens of thousands of orders each.
//! - Over PostgreSQL itself, a load or commit at a step: three commands without a failure, and three pairs with one.
//!
//! After each run the books are right and nothing that was answered is lost. Where nothing failed, the answers are those of
//! one of the orders in which the commands could have come one after another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "exhaustive/postgres.rs"]
mod postgres;
#[path = "exhaustive/triples.rs"]
mod triples;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use svc_core::command::{Command, Reply, Wake};
use svc_core::refusal::Refusal;
use svc_core::rules::evidence::sequence::Sequence;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::asked::Stands;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::mandates::RevokeMandate;
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::rules::people::settings::ChangeSettings;
use svc_core::state::gate::{Action, OutcomeStatus, Request, State};
use svc_core::state::people::{Role, Settings, Velocity};
use svc_core::store::{Commit, Committed, Key, Loaded, MemoryStore, Record, Stamp, Store, Write};
use svc_core::testing::World;
use svc_core::testing::audit::{self, Report};
use svc_core::testing::locks::{LockStore, Progress, Transaction};
use svc_core::testing::world::{key, payment, request, terms};
use svc_core::turn::{Rows, Step, Turn};
use svc_core::value::seed::Seed;
use svc_core::value::{Span, Timestamp};
use svc_tests::explore::Explorer;
use svc_tests::play;

use postgres::Server;
use triples::{LATER, NOW, PAIRS};

type Dump = Vec<(Key, Stamp, Record)>;
type Answer = Result<Reply, Refusal>;

/// The store that both nodes share.
#[derive(Clone)]
enum Shared {
    Memory(MemoryStore),
    Locks(LockStore),
    Postgres(Server),
}

/// A commit under way.
enum Pending {
    Whole(Commit),
    Locks(Transaction),
}

/// What goes wrong at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// A load or a commit is lost: refused, or nobody knows and nothing was written.
    Lost,
    /// A commit is applied and the answer lost.
    UnknownApplied,
    /// A commit conflicts without a reason.
    Conflict,
}

impl Shared {
    /// A store with these rows.
    fn over(locks: bool, rows: &Dump) -> Self {
        let write = |(key, _, record): &(Key, Stamp, Record)| {
            let link = record.links();
            Write { key: *key, record: Some(record.clone()), unlink: Vec::new(), link }
        };
        let checks = rows.iter().map(|(key, ..)| (*key, Stamp::ABSENT)).collect();
        let commit = Commit { checks, writes: rows.iter().map(write).collect() };
        let mut shared = if locks { Self::Locks(LockStore::new()) } else { Self::Memory(MemoryStore::new()) };
        let applied = match &mut shared {
            Self::Memory(store) => matches!(store.commit(&commit), Ok(Committed::Applied(_))),
            Self::Locks(store) => matches!(store.commit(&commit), Ok(Committed::Applied(_))),
            Self::Postgres(_) => unreachable!(),
        };
        assert!(applied);
        shared
    }

    fn fork(&self) -> Self {
        match self {
            Self::Memory(store) => Self::Memory(store.fork()),
            Self::Locks(store) => Self::Locks(store.fork()),
            Self::Postgres(server) => {
                server.begin_again();
                self.clone()
            }
        }
    }

    fn load(&mut self, keys: &[Key]) -> Vec<Loaded> {
        match self {
            Self::Memory(store) => store.load(keys).unwrap(),
            Self::Locks(store) => store.load(keys).unwrap(),
            Self::Postgres(server) => server.load(keys),
        }
    }

    fn dump(&self) -> Dump {
        match self {
            Self::Memory(store) => store.dump(),
            Self::Locks(store) => store.dump(),
            Self::Postgres(server) => server.dump(),
        }
    }

    fn begin(&self, commit: &Commit) -> Pending {
        match self {
            Self::Memory(_) | Self::Postgres(_) => Pending::Whole(commit.clone()),
            Self::Locks(store) => Pending::Locks(store.begin(commit)),
        }
    }

    fn step(&mut self, pending: &mut Pending) -> Progress {
        match (self, pending) {
            (Self::Memory(store), Pending::Whole(commit)) => Progress::Done(store.commit(commit).unwrap()),
            (Self::Postgres(server), Pending::Whole(commit)) => Progress::Done(server.commit(commit)),
            (_, Pending::Locks(transaction)) => transaction.step(),
            (Self::Locks(_), Pending::Whole(_)) => unreachable!(),
        }
    }
}

/// One node: commands that wait, the turn under way, and the rows it believes in.
struct Node {
    queue: VecDeque<(usize, Command)>,
    rows: Rows,
    /// What it believes in after a failure.
    first: Rows,
    turn: Option<(usize, Command, Turn<Command>)>,
    next: Next,
    waits: bool,
}

/// What a node does next.
enum Next {
    Nothing,
    Load(Vec<Key>),
    Commit(Pending, usize),
}

impl Node {
    fn new(commands: impl IntoIterator<Item = (usize, Command)>, rows: &Rows, locks: bool) -> Self {
        let first = if locks { rows.clone() } else { Rows::new(1_024) };
        Self {
            queue: commands.into_iter().collect(),
            rows: rows.clone(),
            first,
            turn: None,
            next: Next::Nothing,
            waits: false,
        }
    }

    fn is_done(&self) -> bool {
        self.queue.is_empty() && self.turn.is_none()
    }

    /// The command that the next step is for comes back to the queue, as a client's retry. Over memory what was known is
    /// forgotten; over locks the node believes in the beginning again, since orders of loads would hide those of locks.
    fn fail(&mut self) {
        self.next = Next::Nothing;
        let (number, command, _) = self.turn.take().unwrap();
        self.rows = self.first.clone();
        self.queue.push_front((number, command));
    }

    /// What can go wrong at the next step.
    fn faults(&self) -> &'static [Fault] {
        match &self.next {
            Next::Nothing => &[],
            Next::Load(_) => &[Fault::Lost],
            Next::Commit(Pending::Whole(_), _) => &[Fault::UnknownApplied, Fault::Lost, Fault::Conflict],
            Next::Commit(Pending::Locks(_), 0) => &[Fault::Lost, Fault::Conflict],
            Next::Commit(Pending::Locks(_), 1) => &[Fault::Lost],
            Next::Commit(Pending::Locks(_), _) => &[Fault::UnknownApplied, Fault::Lost],
        }
    }
}

/// Both nodes over one store.
struct Run {
    shared: Shared,
    nodes: [Node; 2],
    now: Timestamp,
    turns: u8,
    answers: Vec<Option<Answer>>,
    faults_left: usize,
    unknown: bool,
}

impl Run {
    /// The first node has all commands but the last, which the second has; both believe in the rows of the beginning.
    fn new(scene: &Scene, shared: Shared, commands: &[&Command], faults: usize) -> Self {
        let mut numbered: Vec<(usize, Command)> = commands.iter().map(|it| (*it).clone()).enumerate().collect();
        let last = numbered.pop();
        let locks = matches!(shared, Shared::Locks(_));
        let nodes = [Node::new(numbered, &scene.cache, locks), Node::new(last, &scene.cache, locks)];
        let answers = vec![None; commands.len()];
        let mut run = Self { shared, nodes, now: scene.now, turns: 0, answers, faults_left: faults, unknown: false };
        run.prepare(0);
        run.prepare(1);
        run
    }

    /// Goes on until every command is answered, as the explorer chooses.
    fn finish(&mut self, explorer: &mut Explorer) {
        let mut steps = 0;
        while self.nodes.iter().any(|node| !node.is_done()) {
            steps += 1;
            assert!(steps < 500, "the run does not end");
            let mut options: Vec<(usize, Option<Fault>)> = Vec::new();
            for (place, node) in self.nodes.iter().enumerate().filter(|(_, it)| !it.is_done() && !it.waits) {
                options.push((place, None));
                if self.faults_left > 0 {
                    options.extend(node.faults().iter().map(|fault| (place, Some(*fault))));
                }
            }
            assert!(!options.is_empty(), "both nodes wait for each other");
            let (place, fault) = options[explorer.choose(options.len())];
            self.step(place, fault);
        }
    }

    fn step(&mut self, place: usize, fault: Option<Fault>) {
        self.faults_left -= usize::from(fault.is_some());
        let node = &mut self.nodes[place];
        match (std::mem::replace(&mut node.next, Next::Nothing), fault) {
            (Next::Nothing, _) => {}
            (Next::Load(_), Some(_)) => node.fail(),
            (Next::Load(keys), None) => {
                let rows = self.shared.load(&keys);
                node.turn.as_mut().unwrap().2.handle_loaded(rows);
            }
            (Next::Commit(pending, part), None) => self.bring_on(place, pending, part),
            (Next::Commit(pending, _), Some(fault)) => self.break_off(place, pending, fault),
        }
        self.prepare(place);
    }

    /// Finds out what a node does next. Deciding reads what the node knows and nothing else, so it is no step.
    fn prepare(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        if !matches!(node.next, Next::Nothing) || node.is_done() {
            return;
        }
        if node.turn.is_none() {
            let (number, command) = node.queue.pop_front().unwrap();
            self.turns += 1;
            let turn =
                Turn::new(self.now, Seed::new([self.turns; 32]), vec![command.clone()], std::mem::take(&mut node.rows));
            node.turn = Some((number, command, turn));
        }
        node.next = match node.turn.as_mut().unwrap().2.step() {
            Step::Load(keys) => Next::Load(keys),
            Step::Commit(commit) => Next::Commit(self.shared.begin(commit), 0),
        };
    }

    /// Takes a commit a step on.
    fn bring_on(&mut self, place: usize, mut pending: Pending, part: usize) {
        let node = &mut self.nodes[place];
        match self.shared.step(&mut pending) {
            Progress::Moved => node.next = Next::Commit(pending, part + 1),
            Progress::Waits => {
                node.next = Next::Commit(pending, part);
                node.waits = true;
            }
            Progress::Done(Committed::Conflict(moved)) => {
                node.turn.as_mut().unwrap().2.handle_conflict(moved);
                drop(pending);
                self.wake_all();
            }
            Progress::Done(Committed::Applied(stamp)) => {
                let (number, _, turn) = node.turn.take().unwrap();
                let mut finished = turn.finish(stamp);
                node.rows = std::mem::take(&mut finished.rows);
                self.answers[number] = finished.answers.pop();
                drop(pending);
                self.wake_all();
            }
        }
    }

    /// Breaks a commit off.
    fn break_off(&mut self, place: usize, mut pending: Pending, fault: Fault) {
        let node = &mut self.nodes[place];
        match fault {
            Fault::Lost => node.fail(),
            Fault::UnknownApplied => {
                while let Progress::Moved = self.shared.step(&mut pending) {}
                self.unknown = true;
                node.fail();
            }
            Fault::Conflict => {
                let keys: Vec<Key> = self.shared.dump().iter().map(|it| it.0).collect();
                let rows = self.shared.load(&keys);
                node.turn.as_mut().unwrap().2.handle_conflict(rows);
            }
        }
        drop(pending);
        self.wake_all();
    }

    fn wake_all(&mut self) {
        for node in &mut self.nodes {
            node.waits = false;
        }
    }
}

/// A beginning, and commands that get in one another's way.
struct Scene {
    memory: Shared,
    locks: Shared,
    cache: Rows,
    now: Timestamp,
    commands: Vec<(&'static str, Command)>,
}

fn command<'a>(scene: &'a Scene, name: &str) -> &'a Command {
    &scene.commands.iter().find(|it| it.0 == name).unwrap_or_else(|| panic!("no command `{name}`")).1
}

/// An agent with 10,000 an hour and room for two more unasked actions, an unused receipt, and one who waits.
fn scene(later: Span) -> Scene {
    let agent_velocity = Velocity { other_count: 4, ..Velocity::default() };
    let mut world = World::with(Settings {
        agent_velocity,
        outside_mandate: svc_core::state::people::Outside::Ask,
        ..Settings::default()
    });
    let limited = terms(
        r#"{"name":"Limited","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":10000,"period":"year"}}}"#,
    );
    let caller = world.agent().with_mandate(limited).register();
    let paid = world.authorize(&caller, payment(1_000, "EUR", "shop.example.com")).id();
    let asked = world.authorize(&caller, request("deploy")).id();
    world.advance(Span::seconds(1));
    world.clock().advance(later);
    let people = [world.owner(), world.person(Role::Admin)];
    world.audit();
    let action = |world: &mut World, id| Action::clone(&world.row::<Action>(id));
    let (paid, asked) = (action(&mut world, paid), action(&mut world, asked));
    let commands = commands(&mut world, caller, &people, &paid, &asked);
    let rows = world.rows();
    let (mut memory, locks) = (Shared::over(false, &rows), Shared::over(true, &rows));
    let keys: Vec<Key> = rows.iter().map(|it| it.0).collect();
    let mut cache = Rows::new(1_024);
    for row in memory.load(&keys) {
        cache.insert(row.key, row.stamp, row.record);
    }
    Scene { memory, locks, cache, now: world.now(), commands }
}

fn commands(
    world: &mut World,
    caller: Caller,
    people: &[Person; 2],
    paid: &Action,
    asked: &Action,
) -> Vec<(&'static str, Command)> {
    let workspace = world.workspace();
    let mut ask = |request: Request| Command::from(world.command(&caller, request));
    let large = |domain| payment(6_000, "EUR", domain);
    let settle = |status, amount| Settle { caller, action: paid.id, status, amount }.into();
    let mut list: Vec<(&'static str, Command)> = vec![
        ("pay", ask(large("one.example.com"))),
        ("pay-again", ask(large("two.example.com"))),
        ("pay-small", ask(payment(10, "EUR", "three.example.com"))),
        ("keyed", ask(payment(20, "EUR", "four.example.com").keyed(key("k")))),
        ("keyed-other", ask(payment(30, "EUR", "four.example.com").keyed(key("k")))),
    ];
    let issuer = world.run(play::connect(workspace)).unwrap().id;
    let says = |n, word, percent| play::hear(workspace, issuer, n, play::word_of(word, paid, percent).unwrap()).into();
    let mandate = world.row::<svc_core::state::gate::Agent>(caller.agent).mandates[0].id;
    let settings =
        Settings { agent_velocity: Velocity { other_count: 2, ..Velocity::default() }, ..Settings::default() };
    let entries = Vec::new();
    let mut decide = |by: usize, choice| world.decision(&people[by], asked.id, choice).into();
    list.extend([
        ("approve", decide(0, Choice::Approve)),
        ("approve-other", decide(1, Choice::Approve)),
        ("deny", decide(1, Choice::Deny)),
    ]);
    list.extend([
        ("show", play::show(paid, 100, None).into()),
        ("show-keyed", play::show(paid, 100, Some(1)).into()),
        ("complete", settle(OutcomeStatus::Completed, Some(900))),
        ("fail", settle(OutcomeStatus::Failed, None)),
        ("over", settle(OutcomeStatus::Completed, Some(1_001))),
        ("charge", says(1, play::Word::Charge, 90)),
        ("charged", says(2, play::Word::Charged, 95)),
        ("charged-over", says(3, play::Word::Charged, 120)),
        ("reverse", says(4, play::Word::Reversed, 0)),
        ("freeze", play::freeze(workspace, caller).into()),
        ("remove", RemoveAgent { workspace, by: By::Program, agent: caller.agent }.into()),
        ("revoke", RevokeMandate { workspace, by: By::Program, agent: caller.agent, mandate }.into()),
        ("narrow", ChangeSettings { workspace, by: By::Program, change: settings.into() }.into()),
        ("lapse", Wake(Key::Action(paid.id)).into()),
        ("expire", Wake(Key::Approval(asked.approval.unwrap())).into()),
        ("end", svc_core::rules::gate::freeze::EndApproval(asked.approval.unwrap()).into()),
        ("sequence", Sequence { workspace, entries }.into()),
    ]);
    list
}

/// What an answer says, without ids that depend on which node gave it.
fn gist(answer: &Option<Answer>) -> String {
    match answer.as_ref().expect("every command is answered") {
        Err(refusal) => format!("refused {:?}", refusal.kind()),
        Ok(Reply::Action(view)) => {
            let codes: Vec<_> = view.reasons().iter().map(|it| it.code).collect();
            format!("{:?} {codes:?} {}", view.status(), view.replayed)
        }
        Ok(Reply::Verdict(verdict)) => format!("verdict {:?} {}", verdict.fault, verdict.replayed),
        Ok(Reply::Question(question)) => format!("question {:?}", question.stands),
        Ok(Reply::Heard(heard)) => format!("heard {}", heard.outcome),
        Ok(Reply::Agent(agent)) => format!("agent active {}", agent.is_active()),
        Ok(_) => "done".to_owned(),
    }
}

/// The answers of every order in which the commands could come one after another.
fn serial(scene: &Scene, commands: &[&Command]) -> BTreeSet<Vec<String>> {
    let mut outcomes = BTreeSet::new();
    for last_after in 0..commands.len() {
        let mut run = Run::new(scene, scene.memory.fork(), commands, 0);
        let mut order = vec![0; commands.len() - 1];
        order.insert(last_after, 1);
        for place in order {
            let before = run.answers.iter().flatten().count();
            while run.answers.iter().flatten().count() == before {
                run.step(place, None);
            }
        }
        outcomes.insert(run.answers.iter().map(gist).collect());
    }
    outcomes
}

/// What was answered is in the store.
fn check_kept(names: &[&str], run: &Run, rows: &Dump) -> Vec<String> {
    let mut faults = Vec::new();
    let action = |id| {
        rows.iter().find_map(|(_, _, record)| match record {
            Record::Action(action) if action.id == id => Some(action),
            _ => None,
        })
    };
    for (name, answer) in names.iter().zip(&run.answers) {
        match answer {
            Some(Ok(Reply::Action(view))) => match action(view.action.id) {
                None => faults.push(format!("the answer to `{name}` is not there")),
                Some(kept) => {
                    let settled = |it: &Action| it.allowed().is_some_and(|it| it.outcome.is_some());
                    if view.action.allowed().is_some() && kept.allowed().is_none()
                        || settled(&view.action) && !settled(kept)
                    {
                        faults.push(format!("`{name}` was answered {:?}, and is {:?}", view.action.state, kept.state));
                    }
                }
            },
            Some(Ok(Reply::Question(question))) => {
                let told = question.stands;
                let action = action(question.action.as_ref().unwrap().action.id).unwrap();
                let kept = match &action.state {
                    State::Allowed(_) => Stands::Approved,
                    State::Denied { .. } => Stands::Denied,
                    State::Expired { .. } => Stands::Expired,
                    State::Pending { .. } => Stands::Waiting,
                };
                if told != kept {
                    faults.push(format!("`{name}` was answered {told:?}, and is {kept:?}"));
                }
            }
            Some(Ok(Reply::Verdict(verdict))) if verdict.is_valid() => {
                let shown = verdict.action.as_ref().unwrap().id;
                if action(shown).is_none_or(|it| it.allowed().is_none_or(|it| it.consumed.is_none())) {
                    faults.push(format!("`{name}` used a receipt that is not used"));
                }
            }
            Some(_) | None => {}
        }
    }
    faults
}

/// Goes through everything that can happen: all commands but the last come to one node, the last to the other.
fn explore(scene: &Scene, names: &[&'static str], locks: bool, faults: usize) -> usize {
    explore_over(scene, if locks { &scene.locks } else { &scene.memory }, names, faults)
}

/// The same over this store, which has the rows of the beginning.
fn explore_over(scene: &Scene, shared: &Shared, names: &[&'static str], faults: usize) -> usize {
    let commands: Vec<&Command> = names.iter().map(|name| command(scene, name)).collect();
    let serial = serial(scene, &commands);
    // Most orders end with rows that another has ended with.
    let mut right: BTreeMap<Vec<(Key, Stamp)>, Vec<Dump>> = BTreeMap::new();
    Explorer::all(|explorer| {
        let mut run = Run::new(scene, shared.fork(), &commands, faults);
        run.finish(explorer);
        let rows = run.shared.dump();
        let known = right.entry(rows.iter().map(|(key, stamp, _)| (*key, *stamp)).collect()).or_default();
        let mut report = if known.contains(&rows) { Report::default() } else { audit::audit(&rows) };
        if !known.contains(&rows) {
            report.faults.extend(audit::audit_approvals(&rows));
            known.push(rows.clone());
        }
        report.faults.extend(check_kept(names, &run, &rows));
        let answers: Vec<String> = run.answers.iter().map(gist).collect();
        if !run.unknown && !serial.contains(&answers) {
            report.faults.push(format!("{answers:#?} are the answers of no order; those are {serial:#?}"));
        }
        if !report.faults.is_empty() {
            report.assert_clean(&format!("{names:?} choices={:?}", explorer.taken()));
        }
    })
}

const fn a_day() -> Span {
    Span::minutes(25 * 60)
}

/// Every order, and every single failure, over plain memory.
#[test]
fn every_order_and_failure_over_memory() {
    let runs = |scene: &Scene, list: &[[&'static str; 3]]| -> usize {
        list.iter().map(|names| explore(scene, names, false, 1)).sum()
    };
    let runs = runs(&scene(Span::seconds(0)), &NOW) + runs(&scene(a_day()), &LATER);
    assert!(runs > 1_000, "{runs}");
}

/// Every triple of commands in every order over plain memory.
#[test]
fn every_triple_over_memory() {
    let scene = scene(Span::seconds(0));
    let names = ["pay", "pay-again", "keyed", "show", "complete", "over", "freeze", "narrow"];
    let mut runs = 0;
    for one in names {
        for two in names {
            for three in names {
                runs += explore(&scene, &[one, two, three], false, 0);
            }
        }
    }
    assert!(runs > names.len().pow(3) * 3, "{runs}");
}

/// Every order of the statements over the locks of PostgreSQL.
#[test]
fn every_order_over_locks() {
    let runs = |scene: &Scene, list: &[[&'static str; 3]]| -> usize {
        list.iter().map(|names| explore(scene, names, true, 0)).sum()
    };
    let runs = runs(&scene(Span::seconds(0)), &NOW) + runs(&scene(a_day()), &LATER);
    assert!(runs > 1_000, "{runs}");
}

/// Every single failure at every statement over the locks of PostgreSQL, one command at each node.
#[test]
fn every_failure_over_locks() {
    let scene = scene(Span::seconds(0));
    let runs: usize = PAIRS.iter().map(|names| explore(&scene, names, true, 1)).sum();
    assert!(runs > 10_000, "{runs}");
}

/// Every order over PostgreSQL itself, and every single failure where two meet most often.
#[test]
fn every_order_over_postgres() {
    let now = scene(Span::seconds(0));
    let server = Shared::Postgres(Server::over(&now.memory.dump()));
    let mut runs: usize = NOW.iter().map(|names| explore_over(&now, &server, names, 0)).sum();
    let pairs = [["keyed", "keyed"], ["show", "show"], ["pay", "freeze"]];
    runs += pairs.iter().map(|names| explore_over(&now, &server, names, 1)).sum::<usize>();
    let later = scene(a_day());
    let server = Shared::Postgres(Server::over(&later.memory.dump()));
    runs += LATER.iter().map(|names| explore_over(&later, &server, names, 0)).sum::<usize>();
    assert!(runs > 300, "{runs}");
}
