//! Commands in any order over a gate in memory: sums, receipts and stops hold whatever is asked.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Arbitrary, Unstructured};
use svc_core::answer::Decided;
use svc_core::command::Wake;
use svc_core::rules::gate::Caller;
use svc_core::state::gate::{Activity, Agent, OutcomeStatus, Request, Status, Verb};
use svc_core::store::Key;
use svc_core::testing::world::{charge, key, payment, terms, tool_call};
use svc_core::testing::{Dice, World};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;

/// So many steps of one input are taken.
const STEPS_MAX: usize = 48;
/// Minor units an hour, of all payments of an agent.
const PER_HOUR: i64 = 12_000;
const HOSTS: [&str; 4] = ["shop.example.com", "pay.example.com", "shop.example.org", "bad.example.com"];
const OUTCOMES: [OutcomeStatus; 3] = [OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled];

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Step {
    Call { agent: bool, key: Option<u8> },
    Pass { seconds: u16 },
    Pay { agent: bool, amount: u16, host: u8, key: Option<u8> },
    Settle { agent: bool, action: u8, status: u8, amount: Option<u16> },
    Show { action: u8, amount: u16, host: u8, key: Option<u8> },
    Stop { agent: bool, sure: u8 },
    Wake { action: u8 },
}

struct Made {
    agent: usize,
    id: ActionId,
    receipt: Option<String>,
}

struct Gate {
    world: World,
    callers: [Caller; 2],
    made: Vec<Made>,
    /// Receipts that were said to be good, and to whom.
    consumed: BTreeMap<ActionId, Option<Digest>>,
    settled: BTreeSet<ActionId>,
}

/// No total above its limit, no receipt good twice, no allow for a stopped agent, and an audit that finds nothing.
///
/// # Panics
/// Where one of these is broken.
pub fn commands(data: &[u8]) {
    let mut bytes = Unstructured::new(data);
    let mut gate = Gate::new();
    for _ in 0..STEPS_MAX {
        let Some(step) = Some(&mut bytes).filter(|it| !it.is_empty()).and_then(|it| Step::arbitrary(it).ok()) else {
            break;
        };
        gate.step(step);
    }
    gate.end();
}

/// Bytes of no meaning, which are commands all the same.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut dice = Dice::new(1);
    (0..16).map(|_| (0..8).flat_map(|_| dice.bytes()).collect()).collect()
}

impl Gate {
    fn new() -> Self {
        let mut world = World::new();
        let payments = terms(
            r#"{"name":"Payments","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,
                "perPeriod":{"amount":12000,"period":"hour"},"askAbove":4000},
                "merchants":{"allow":["*.example.com","shop.example.org"],"deny":["bad.example.com"]}}"#,
        );
        let tools = terms(r#"{"name":"Tools","actions":["tool.call"]}"#);
        let callers =
            [(); 2].map(|()| world.agent().with_mandate(payments.clone()).with_mandate(tools.clone()).register());
        Self { world, callers, made: Vec::new(), consumed: BTreeMap::new(), settled: BTreeSet::new() }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Call { agent, key } => self.ask(usize::from(agent), tool_call("search"), key),
            Step::Pass { seconds } => self.world.advance(Span::seconds(i64::from(seconds))),
            Step::Pay { agent, amount, host, key } => {
                let host = HOSTS[usize::from(host) % HOSTS.len()];
                self.ask(usize::from(agent), payment(minor(amount), "EUR", host), key);
            }
            Step::Settle { agent, action, status, amount } => {
                let status = OUTCOMES[usize::from(status) % OUTCOMES.len()];
                self.settle(usize::from(agent), action, status, amount.map(minor));
            }
            Step::Show { action, amount, host, key } => self.show(action, minor(amount), host, key),
            // An agent that is stopped at once does nothing worth seeing.
            Step::Stop { agent, sure } if sure < 32 => drop(self.world.freeze(self.callers[usize::from(agent)].agent)),
            Step::Stop { agent, .. } => {
                let agent = Key::Agent(self.callers[usize::from(agent)].agent);
                self.world.run(Wake(agent)).expect("a timer is never refused");
            }
            Step::Wake { action } => {
                if let Some(at) = self.place(action) {
                    self.world.run(Wake(Key::Action(self.made[at].id))).expect("a timer is never refused");
                }
            }
        }
    }

    fn ask(&mut self, agent: usize, request: Request, with: Option<u8>) {
        let caller = self.callers[agent];
        let pays = request.pays().is_some();
        let request = match with {
            Some(with) => request.keyed(key(&format!("key-{}", with % 4))),
            None => request,
        };
        let stopped = self.is_stopped(agent);
        let decided = match self.world.try_authorize(&caller, request) {
            Ok(decided) => decided,
            Err(refusal) => return assert_eq!(refusal.status(), 409, "{refusal:?}"),
        };
        assert!(!(stopped && decided.verb() == Verb::Allow), "a stopped agent is allowed {}", decided.id());
        if pays && decided.verb() == Verb::Allow && !decided.is_replay() {
            let activity = self.world.row::<Activity>(caller.agent);
            let over = activity.tallies.iter().find(|it| it.used().saturating_sub(it.excess) > PER_HOUR);
            assert!(over.is_none(), "{} is allowed with {over:?}", decided.id());
        }
        self.keep(agent, &decided);
    }

    fn keep(&mut self, agent: usize, decided: &Decided) {
        assert!(decided.receipt().is_none() || decided.verb() == Verb::Allow, "{}", decided.id());
        if !decided.is_replay() {
            self.made.push(Made { agent, id: decided.id(), receipt: decided.receipt().map(str::to_owned) });
        }
    }

    fn show(&mut self, action: u8, amount: i64, host: u8, with: Option<u8>) {
        let Some(at) = self.place(action) else { return };
        let Made { agent, id, receipt: Some(receipt) } = &self.made[at] else { return };
        let (agent, id) = (*agent, *id);
        let charge = Some(charge(amount, "EUR", HOSTS[usize::from(host) % HOSTS.len()]));
        let mut question = self.world.question(receipt, charge).expect("the receipt was issued");
        question.key = with.map(|it| Digest::of([it % 4]));
        let (asker, stopped) = (question.key, self.is_stopped(agent));
        let verdict = self.world.run(question).expect("a verification is never refused");
        if verdict.is_valid() && verdict.replayed {
            assert!(asker.is_some() && self.consumed.get(&id) == Some(&asker), "{id} is good again for somebody else");
        } else if verdict.is_valid() {
            assert!(self.consumed.insert(id, asker).is_none(), "{id} is good twice");
            assert!(!stopped, "{id} of a stopped agent is good");
        }
    }

    fn settle(&mut self, agent: usize, action: u8, status: OutcomeStatus, amount: Option<i64>) {
        let Some(at) = self.place(action) else { return };
        let (owner, id) = (self.made[at].agent, self.made[at].id);
        match self.world.try_settle(&self.callers[agent], id, status, amount) {
            Ok(_) => {
                assert_eq!(owner, agent, "{id} is settled by somebody else");
                assert!(self.settled.insert(id), "{id} is settled twice");
            }
            Err(refusal) => assert!((400..500).contains(&refusal.status()), "{refusal:?}"),
        }
    }

    fn end(mut self) {
        for at in 0..self.made.len() {
            let (agent, id) = (self.made[at].agent, self.made[at].id);
            let stopped = self.is_stopped(agent);
            let decided = self.world.read(&self.callers[agent], id);
            assert!(!stopped || decided.receipt().is_none(), "a stopped agent is given the receipt of {id}");
            let over = self.consumed.contains_key(&id) || self.settled.contains(&id);
            assert!(
                !stopped || decided.verb() != Verb::Allow || over || decided.status() == Status::Lapsed,
                "{id} reads allow"
            );
        }
        self.world.audit();
    }

    fn is_stopped(&mut self, agent: usize) -> bool {
        !self.world.row::<Agent>(self.callers[agent].agent).is_active()
    }

    fn place(&self, action: u8) -> Option<usize> {
        (!self.made.is_empty()).then(|| usize::from(action) % self.made.len())
    }
}

fn minor(amount: u16) -> i64 {
    i64::from(amount % 6_000) + 1
}
