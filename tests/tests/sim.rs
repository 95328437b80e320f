//! One seed, one history: nodes with stale caches and skewed clocks over one store that fails, clients that ask again,
//! timers and sequencing by whoever comes first. At the end an auditor reads everything.
//!
//! A failure prints its seed; `TEST_SEED=…` plays that history again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "sim/calls.rs"]
mod calls;
#[path = "sim/stops.rs"]
mod stops;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use svc_core::command::{Command, Reply};
use svc_core::engine::{Engine, Failure};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::charge::{ChargeAsked, Cover};
use svc_core::rules::edge::receive::Deed;
use svc_core::rules::gate::asked::Stands;
use svc_core::rules::gateway::admit::Admission;
use svc_core::rules::read::View;
use svc_core::state::gate::receipt::DalekSigner;
use svc_core::state::gate::{Action, Code, Consumed, Outcome as Told, REPLAY_KEPT, State, Verb};
use svc_core::store::{Clock, MemoryStore, Row, Store as _};
use svc_core::testing::fault::{Fault, FaultError, Faulty, MadeToPanic, Odds, Operation};
use svc_core::testing::world::{payment, terms};
use svc_core::testing::{Dice, FakeClock, World, audit};
use svc_core::value::Span;
use svc_core::value::id::{ActionId, AgentId};
use svc_core::value::secret::Secret;
use svc_core::value::seed::Seed;
use svc_tests::play::{self, Cast, Move};

use calls::Calls;
use stops::Stops;

type Store = Faulty<MemoryStore>;
type Trouble = FaultError<svc_core::store::memory::Never>;
type Outcome = Result<Reply, Failure<Trouble>>;

/// Histories of one run of the test, and moves of one history.
const HISTORIES: u64 = 60;
const MOVES: usize = 250;
const NODES: usize = 3;
/// How far a node's clock may be off before it is not ready.
const SKEW_MS: i64 = 4_000;

/// How often the store fails, in a thousand operations.
const STORM: Odds = Odds {
    lost: 20,
    unavailable: 20,
    rejected: 10,
    unknown_applied: 30,
    unknown_lost: 20,
    conflict: 60,
    panic: 5,
    panic_applied: 10,
};

struct Node {
    engine: Engine<Store, FakeClock>,
    clock: FakeClock,
    skew: Span,
}

struct Sim {
    seed: u64,
    dice: Dice,
    runner: TestRunner,
    store: MemoryStore,
    signer: Arc<DalekSigner>,
    /// Whether all nodes place their records at once, or all leave them to a sequencer.
    at_once: bool,
    nodes: Vec<Node>,
    time: FakeClock,
    cast: Cast,
    heard: Heard,
    trace: Vec<String>,
}

/// What clients were told.
#[derive(Default)]
struct Heard {
    actions: BTreeMap<ActionId, Arc<Action>>,
    stops: Stops,
    calls: Calls,
    /// Receipts that somebody was told are good, by a first answer.
    used: BTreeSet<ActionId>,
    /// What each idempotency key made.
    keys: BTreeMap<(AgentId, String), ActionId>,
    /// Actions of which somebody asked for what they keep to be given back, also where no answer came.
    given_back: BTreeSet<ActionId>,
    answers: usize,
    failures: usize,
    /// How often a node's store panicked.
    panics: usize,
}

impl Sim {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let store = MemoryStore::new();
        let time = FakeClock::default();
        let signer = Arc::new(DalekSigner::new(&Secret::new([7; 32]), "https://gate.example.com"));
        let at_once = dice.between(0, 1) == 1;
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &dice.bytes());
        let runner = TestRunner::new_with_rng(Config::default(), rng);
        let (cast, heard, trace) = (Cast::default(), Heard::default(), Vec::new());
        let nodes = Vec::new();
        let mut sim = Self { seed, dice, runner, store, signer, at_once, nodes, time, cast, heard, trace };
        for place in 0..=NODES {
            // The first node is sound until the workspace stands; odds come with the second.
            let node = sim.node(if place == 0 { Odds::default() } else { STORM });
            sim.nodes.push(node);
        }
        sim
    }

    /// A node that knows nothing yet.
    fn node(&mut self, odds: Odds) -> Node {
        let faulty = Faulty::seeded(self.store.clone(), self.dice.bits(), odds);
        let (clock, skew) = (FakeClock::default(), Span::millis(self.dice.between(-SKEW_MS, SKEW_MS)));
        let (seed, signer) = (Seed::new(self.dice.bytes()), Arc::<DalekSigner>::clone(&self.signer));
        let mut engine = Engine::new(faulty, clock.clone(), seed, signer);
        engine.place_at_once(self.at_once);
        Node { engine, clock, skew }
    }

    /// Runs a command at a node, on that node's clock.
    fn run(&mut self, node: usize, command: Command) -> Outcome {
        let mut answers = self.at(node, |engine| engine.execute_batch(vec![command]))?;
        answers.pop().unwrap().map_err(Failure::Refused)
    }

    /// Has a node do something. Where its store panics, the node goes on as it is or dies, and another comes in its place.
    fn at<T>(
        &mut self,
        place: usize,
        work: impl FnOnce(&mut Engine<Store, FakeClock>) -> Result<T, Failure<Trouble>>,
    ) -> Result<T, Failure<Trouble>> {
        let now = self.time.now();
        let node = &mut self.nodes[place];
        node.clock.set(now.plus(node.skew));
        match catch_unwind(AssertUnwindSafe(|| work(&mut node.engine))) {
            Ok(done) => done,
            Err(panicked) if panicked.is::<MadeToPanic>() => {
                self.heard.panics += 1;
                if self.dice.chance(500) {
                    self.nodes[place] = self.node(STORM);
                }
                Err(Failure::Load(FaultError::Made(Fault::Panic)))
            }
            Err(panicked) => resume_unwind(panicked),
        }
    }

    fn open(&mut self) {
        let made = self.run(0, Cast::opening()).unwrap();
        self.cast.hear(&made);
        self.cast.sign_in(&mut self.store);
        let cast = self.cast.clone();
        cast.equip(|command| self.run(0, command).unwrap());
        for mandate in 0..3 {
            let register = play::register(self.cast.workspace.unwrap(), mandate, 1_000_000 + mandate as u64);
            let made = self.run(0, register.into()).unwrap();
            self.cast.hear(&made);
        }
    }

    fn live(mut self) -> Heard {
        self.open();
        let moves = play::moves();
        for n in 0..MOVES {
            if self.dice.chance(200) {
                self.pass();
            }
            let step = moves.new_tree(&mut self.runner).unwrap().current();
            // Removals would soon leave nobody to ask.
            if matches!(step, Move::Remove { .. }) && !self.dice.chance(250) {
                continue;
            }
            self.cast.look(&self.store.dump());
            if let Some(command) = self.cast.command(&step) {
                self.client(n, &step, &command);
            }
            if n % 50 == 49 {
                self.audit();
            }
        }
        self.settle_down();
        self.audit();
        self.check_heard();
        self.heard
    }

    /// Time goes by, and some node looks what is due.
    fn pass(&mut self) {
        let span = *self.dice.pick(&[10_i64, 900, 30_000, 61_000, 610_000, 3_600_000, 40_000_000]);
        let odd = self.dice.between(0, 999);
        self.time.advance(Span::millis(span + odd));
        let node = 1 + self.dice.below(NODES);
        self.tick(node);
    }

    fn tick(&mut self, node: usize) {
        if let Err(Failure::Refused(refusal)) = self.at(node, Engine::tick) {
            panic!("{}: a timer was refused: {refusal:?}", self.seed);
        }
    }

    /// A client asks, and where it gets no answer asks again, at whatever node.
    fn client(&mut self, n: usize, step: &Move, command: &Command) {
        match command {
            Command::ReleaseAction(it) => drop(self.heard.given_back.insert(it.action)),
            Command::Receive(it) => {
                if let Deed::Reverse { action } = it.event.deed {
                    self.heard.given_back.insert(action);
                }
            }
            _ => {}
        }
        for attempt in 0..4 {
            let node = 1 + self.dice.below(NODES);
            let outcome = self.run(node, command.clone());
            self.trace.push(format!("{n}.{attempt} node {node} {step:?}: {}", gist(&outcome)));
            match outcome {
                Ok(reply) => {
                    self.cast.hear(&reply);
                    return self.hear(command, &reply);
                }
                Err(Failure::Refused(refusal)) => return self.check_refusal(&refusal),
                Err(_) => {
                    self.heard.failures += 1;
                    self.heard.stops.miss(command);
                }
            }
            // A key is drawn anew for every try to make an agent, so nobody sends the same one twice.
            if self.dice.chance(300) || matches!(step, Move::Register { .. }) {
                return;
            }
        }
    }

    /// A refusal is the caller's doing, never ours.
    fn check_refusal(&self, refusal: &Refusal) {
        assert!(refusal.kind() != Kind::Internal, "{}", self.story(&format!("{refusal:?}")));
    }

    /// What is promised the moment an answer leaves.
    fn hear(&mut self, command: &Command, reply: &Reply) {
        self.heard.answers += 1;
        let told = self.heard.stops.hear(command, reply, &self.cast.standing);
        let told = told.and_then(|()| self.heard.calls.hear(command, reply, &self.heard.stops));
        self.must(told.is_ok(), told.err().unwrap_or_default());
        match (command, reply) {
            (Command::Authorize(asked), Reply::Action(view)) => {
                let (agent, allow) = (asked.caller().agent, view.verb() == Verb::Allow);
                let stopped = self.heard.stops.is_stopped(agent);
                self.must(!(stopped && allow), "a stopped agent was allowed to act");
                let frozen = view.reasons().iter().any(|it| it.code == Code::AgentFrozen);
                if let Some(key) = asked.request().key().filter(|_| !frozen) {
                    let key = (agent, key.to_string());
                    let first = *self.heard.keys.entry(key.clone()).or_insert(view.action.id);
                    let holds = first == view.action.id || self.is_forgotten(first, view);
                    self.must(holds, "one idempotency key made two actions");
                    self.heard.keys.insert(key, view.action.id);
                }
                self.heard.actions.insert(view.action.id, Arc::clone(&view.action));
            }
            (_, Reply::Action(view)) => {
                self.heard.actions.insert(view.action.id, Arc::clone(&view.action));
            }
            (Command::Verify(_), Reply::Verdict(verdict)) if verdict.is_valid() => {
                let action = verdict.action.as_ref().unwrap();
                if !verdict.replayed {
                    let stopped = self.heard.stops.is_stopped(action.agent);
                    self.must(!stopped, "the receipt of a stopped agent was good");
                    let first = self.heard.used.insert(action.id);
                    self.must(first, "a receipt was good twice");
                }
                self.heard.actions.insert(action.id, Arc::clone(action));
            }
            (Command::Receive(it), Reply::Heard(heard)) if heard.approved == Some(true) => {
                let Deed::Charge(ChargeAsked { by: Cover::Action(id), .. }) = &it.event.deed else { return };
                // As it was when the issuer asked: what was used before a stop stays good.
                let action = self.cast.actions.iter().find(|it| it.id == *id).unwrap();
                let used = action.allowed().is_some_and(|it| it.consumed.is_some());
                let stopped = self.heard.stops.is_stopped(action.agent) || self.heard.stops.is_void(action);
                self.must(used || !stopped, "a charge of a stopped agent was approved");
            }
            (_, Reply::Question(question)) if question.stands == Stands::Approved => {
                let view = question.action.as_ref().unwrap();
                let stopped = self.heard.stops.is_stopped(view.agent.id) || self.heard.stops.is_void(&view.action);
                self.must(!stopped, "a person let a stopped agent act");
                self.heard.actions.insert(view.action.id, Arc::clone(&view.action));
            }
            _ => {}
        }
    }

    /// Whether the key of an action was free when another one was made with it: it is kept for a week beyond the action's end.
    fn is_forgotten(&mut self, first: ActionId, later: &View) -> bool {
        let stored = self.store.load(&[Action::key(first)]).unwrap().remove(0).record;
        let made = later.action.created_at();
        let ended = stored.as_ref().and_then(Action::peel).and_then(|it| it.ended_at(&later.agent, None, made));
        ended.is_some_and(|it| made.since(it) > REPLAY_KEPT)
    }

    /// The faults end, and every node does what is due: nothing waits for ever.
    fn settle_down(&mut self) {
        for _ in 0..3 {
            self.time.advance(Span::hours(1));
            self.tick(0);
        }
        let rows = self.store.dump();
        self.cast.look(&rows);
        self.must(self.cast.waiting.is_empty(), "ledger records wait for places");
        let overdue = audit::overdue(&rows, self.time.now().minus(Span::minutes(1)));
        self.must(overdue.is_empty(), &format!("timers are overdue: {overdue:?}"));
    }

    fn audit(&mut self) {
        let rows = self.store.dump();
        let mut faults = audit::audit(&rows).faults;
        faults.extend(audit::audit_approvals(&rows));
        faults.extend(audit::audit_lists(&mut self.store.clone(), &rows));
        self.must(faults.is_empty(), &faults.join("\n"));
    }

    /// Everything that was answered is there, or has gone on from there.
    fn check_heard(&self) {
        let rows = self.store.dump();
        let kept: BTreeMap<ActionId, &Arc<Action>> =
            rows.iter().filter_map(|(_, _, record)| Action::peel(record)).map(|it| (it.id, it)).collect();
        for (id, told) in &self.heard.actions {
            let Some(kept) = kept.get(id) else {
                panic!("{}", self.story(&format!("{id} was told of and is not there")))
            };
            let (before, now) = (told.allowed(), kept.allowed());
            let charges = Charges {
                above: kept.incident.is_some(),
                anew: self.heard.given_back.contains(id),
                allowed: kept.payment.as_ref().map_or(0, |it| it.amount),
            };
            let same = match (before, now) {
                (Some(before), Some(now)) => {
                    is_still_used(before.consumed.as_ref(), now.consumed.as_ref())
                        && before.outcome.as_ref().is_none_or(|it| is_kept(it, now.outcome.as_ref(), charges))
                        && before.at == now.at
                }
                (None, None) => true,
                // A person may have said yes since.
                (None, Some(_)) => matches!(told.state, State::Pending { .. }),
                (Some(_), None) => false,
            };
            self.must(same, &format!("{id} was told as {:?} and is {:?}", told.state, kept.state));
        }
        let mut faults = self.heard.stops.check(&rows, self.time.now());
        faults.extend(self.heard.calls.check(&rows));
        self.must(faults.is_empty(), &faults.join("\n"));
        for id in &self.heard.used {
            let used = kept.get(id).and_then(|it| it.allowed()).is_some_and(|it| it.consumed.is_some());
            self.must(used, "a receipt that was good is not used up");
        }
    }

    fn must(&self, holds: bool, what: &str) {
        assert!(holds, "{}", self.story(what));
    }

    fn story(&self, what: &str) -> String {
        let last = self.trace.len().saturating_sub(12);
        format!(
            "{what}\nTEST_SEED={} plays it again; the last steps were\n{}",
            self.seed,
            self.trace[last..].join("\n")
        )
    }
}

/// Whether a use that was answered stands, but for what the issuer has taken back since.
fn is_still_used(told: Option<&Consumed>, kept: Option<&Consumed>) -> bool {
    let plain = |it: &Consumed| Consumed { reversed: false, ..it.clone() };
    told.is_none() || told.map(plain) == kept.map(plain)
}

/// What an issuer may have said of an outcome after it was answered.
#[derive(Clone, Copy)]
struct Charges {
    /// It charged more than stood there, which is an incident.
    above: bool,
    /// It may have charged anew, and less, after what was kept was given back.
    anew: bool,
    /// What was allowed, in minor units.
    allowed: i64,
}

/// Whether an outcome that was answered stands, but for what was released of it since, and what the issuer has charged since.
fn is_kept(told: &Told, kept: Option<&Told>, charges: Charges) -> bool {
    let charged = |it: &Told| it.posted.map(|at| at + it.released.as_ref().map_or(0, |it| it.amount));
    let same = |it: &Told| Told { posted: None, released: None, ..it.clone() };
    kept.is_some_and(|it| {
        let stands = charged(it) == charged(told)
            || charges.above
                && (charged(it) > charged(told) || charges.anew && charged(it) > Some(it.told(charges.allowed)));
        stands && same(it) == same(told)
    })
}

fn gist(outcome: &Outcome) -> String {
    match outcome {
        Ok(Reply::Action(view)) => format!("{} {:?}", view.action.id, view.status()),
        Ok(Reply::Verdict(verdict)) => format!("{:?}", verdict.fault),
        Ok(Reply::Heard(heard)) => heard.outcome.to_string(),
        Ok(Reply::Admission(admission)) => match &**admission {
            Admission::Refused(refusal) => format!("{:?}", refusal.kind()),
            Admission::Admitted(made) => made.call.id.to_string(),
            Admission::Rescan(_) => "to be scanned again".to_owned(),
        },
        Ok(Reply::Finished(finished)) => format!("{} {:?}", finished.call.id, finished.call.cost),
        Ok(Reply::Agent(agent)) => format!("{} active {}", agent.id, agent.is_active()),
        Ok(Reply::Fleet(fleet)) => format!("{fleet:?}"),
        Ok(_) => "done".to_owned(),
        Err(failure) => format!("{failure:?}"),
    }
}

/// Many histories, none of which breaks a promise.
#[test]
fn no_history_breaks_a_promise() {
    let replay = std::env::var("TEST_SEED").ok().map(|it| it.parse::<u64>().expect("TEST_SEED is a number"));
    let first = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let seeds: Vec<u64> = replay.map_or_else(|| (0..HISTORIES).map(|n| first.wrapping_add(n)).collect(), |it| vec![it]);
    eprintln!("TEST_SEED={first} and the {HISTORIES} that follow it");
    let (mut answers, mut failures, mut panics, mut used, mut restarts, mut calls) = (0, 0, 0, 0, 0, 0);
    for seed in seeds {
        let heard = Sim::new(seed).live();
        answers += heard.answers;
        failures += heard.failures;
        panics += heard.panics;
        used += heard.used.len();
        restarts += heard.stops.restarts;
        calls += heard.calls.ended.len().min(heard.calls.refused);
    }
    // A simulation in which nothing happens shows nothing; one history alone may be short of one of these.
    let shows = answers > 100 && failures > 5 && panics > 0 && used > 0 && restarts > 0 && calls > 0;
    let what = format!(
        "{answers} answers, {failures} failures, {panics} panics, {used} receipts used, {restarts} restarts, {calls} calls"
    );
    assert!(shows || replay.is_some(), "{what}");
}

/// The same seed is the same history.
#[test]
fn a_seed_is_a_history() {
    let rows = |seed| {
        let mut sim = Sim::new(seed);
        sim.open();
        for n in 0..40 {
            let step = play::moves().new_tree(&mut sim.runner).unwrap().current();
            sim.cast.look(&sim.store.dump());
            if let Some(command) = sim.cast.command(&step) {
                sim.client(n, &step, &command);
            }
        }
        (sim.trace, format!("{:?}", sim.store.dump()))
    };
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1).0, rows(2).0);
}

/// A node whose clock is already in the next hour frees nothing of this one for a node that is still in it.
#[test]
fn a_clock_ahead_frees_no_limit() {
    let mut world = World::new();
    let hourly = |name: &str, host: &str| {
        terms(&format!(
            r#"{{"name":"{name}","actions":["payment"],"limits":{{"currency":"EUR","perPeriod":{{"amount":1000,"period":"hour"}}}},
                "merchants":{{"allow":["{host}"]}}}}"#
        ))
    };
    let caller =
        world.agent().with_mandate(hourly("A", "a.example.com")).with_mandate(hourly("B", "b.example.org")).register();
    // Two seconds before ten o'clock here, two seconds past it there.
    let here = world.clock().clone();
    here.set(svc_core::value::Timestamp::parse("2026-10-01T09:59:58Z").unwrap());
    let there = FakeClock::new(here.now().plus(Span::millis(SKEW_MS)));
    let signer = Arc::clone(world.engine().signer());
    let mut ahead = Engine::new(world.engine().store().clone(), there, Seed::new([9; 32]), signer);

    assert_eq!(world.authorize(&caller, payment(1_000, "EUR", "b.example.org")).verb(), Verb::Allow);
    let other = world.command(&caller, payment(10, "EUR", "a.example.com"));
    assert_eq!(ahead.execute(other).unwrap().verb(), Verb::Allow);
    let again = world.authorize(&caller, payment(999, "EUR", "b.example.org"));
    assert_eq!(again.verb(), Verb::Deny, "the hour of B is full");
    assert!(again.reasons().iter().any(|it| it.code == Code::OverPeriodLimit));
    world.audit();
}

/// A store that panics takes nothing from an engine but what it knew: it goes on, and keeps rows from there on as before.
#[test]
fn an_engine_outlives_a_panic() {
    let mut world = World::new();
    let caller = world.agent().with_mandate(play::mandates()[3].clone()).register();
    let (asked, loads) =
        (world.command(&caller, payment(10, "EUR", "shop.example.com")), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&loads);
    let store = Faulty::new(world.engine().store().clone(), move |operation| {
        let loads = if operation == Operation::Load { counted.fetch_add(1, Ordering::Relaxed) } else { 1 };
        (loads == 0).then_some(Fault::Panic)
    });
    let signer = Arc::clone(world.engine().signer());
    let mut engine = Engine::new(store, world.clock().clone(), Seed::new([9; 32]), signer);
    let panicked = catch_unwind(AssertUnwindSafe(|| engine.execute(asked.clone()))).unwrap_err();
    assert!(panicked.is::<MadeToPanic>());
    assert_eq!(engine.execute(asked).unwrap().verb(), Verb::Allow);
    let before = loads.load(Ordering::Relaxed);
    assert!(engine.execute(play::freeze(world.workspace(), caller)).is_ok());
    assert!(engine.execute(play::freeze(world.workspace(), caller)).is_ok());
    assert!(loads.load(Ordering::Relaxed) <= before + 1, "what a turn has read is known to the next");
    world.audit();
}
