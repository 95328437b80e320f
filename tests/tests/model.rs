//! Random asks, receipts, settlements and releases of one agent, and restarts between them: the gate answers what a naive model
//! answers, which knows of no restart, and its sums are the model's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use svc_core::refusal::Kind;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::people::by::{By, Person};
use svc_core::state::gate::{Action, Activity, OutcomeStatus, Request, Status};
use svc_core::state::people::{Settings, Velocity};
use svc_core::testing::World;
use svc_core::testing::model::{Ask, Limits, Model, Stands};
use svc_core::testing::world::{charge, key, payment, terms, tool_call};
use svc_core::value::Span;
use svc_core::value::id::ActionId;

const LIMITS: Limits = Limits {
    per_action: 5_000,
    per_hour: 12_000,
    count: 9,
    ask_above: 4_000,
    below: ".example.com",
    tools: 5,
    others: 7,
    window_ms: 10 * 60_000,
};
const RECEIPT_MS: i64 = 15 * 60_000;
const HOSTS: [(&str, &str); 4] = [
    ("shop.example.com", "example.com"),
    ("pay.example.com", "example.com"),
    ("www.example.com", "example.com"),
    ("shop.example.org", "example.org"),
];
const AMOUNTS: [i64; 7] = [1, 500, 501, 1_500, 4_000, 4_001, 5_001];

#[derive(Clone, Debug)]
enum Step {
    Ask {
        amount: Option<usize>,
        host: usize,
        key: Option<u8>,
    },
    Show {
        action: usize,
        percent: i64,
    },
    Settle {
        action: usize,
        done: bool,
        percent: Option<i64>,
    },
    Decide {
        action: usize,
        yes: bool,
    },
    Release {
        action: usize,
    },
    Pass {
        seconds: i64,
    },
    /// The process ends, and another goes on over the same store.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let action = 0_usize..40;
    let percent = prop::sample::select(vec![0_i64, 50, 99, 100, 100, 100]);
    let settled = prop_oneof![9 => percent.clone(), 1 => Just(101_i64)];
    let step = prop_oneof![
        8 => (prop::option::weighted(0.7, 0..AMOUNTS.len()), 0..HOSTS.len(), prop::option::weighted(0.25, 0_u8..4))
            .prop_map(|(amount, host, key)| Step::Ask { amount, host, key }),
        3 => (action.clone(), percent).prop_map(|(action, percent)| Step::Show { action, percent }),
        1 => action.clone().prop_map(|action| Step::Release { action }),
        3 => (action, any::<bool>(), prop::option::of(settled))
            .prop_map(|(action, done, percent)| Step::Settle { action, done, percent }),
        2 => (0_usize..40, prop::bool::weighted(0.7)).prop_map(|(action, yes)| Step::Decide { action, yes }),
        3 => prop::sample::select(vec![1_i64, 59, 240, 600, 1_200, 3_600, 80_000]).prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// The gate and the model of it, side by side.
struct Pair {
    world: World,
    caller: Caller,
    owner: Person,
    model: Model,
    made: Vec<ActionId>,
}

impl Pair {
    fn new() -> Self {
        let agent_velocity = Velocity { tool_count: 5, other_count: 7, minutes: 10 };
        let mut world = World::with(Settings { agent_velocity, ..Settings::default() });
        let payments = terms(
            r#"{"name":"Payments","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,
                "perPeriod":{"amount":12000,"period":"hour"},"count":{"max":9,"period":"hour"},"askAbove":4000},
                "merchants":{"allow":["*.example.com"]}}"#,
        );
        let tools = terms(r#"{"name":"Tools","actions":["tool.call"]}"#);
        let caller = world.agent().with_mandate(payments).with_mandate(tools).register();
        let owner = world.owner();
        Self { world, caller, owner, model: Model::new(LIMITS), made: Vec::new() }
    }

    fn now(&self) -> i64 {
        self.world.now().as_millis()
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Ask { amount, host, key } => self.ask(amount, host, key),
            Step::Show { action, percent } => self.show(action, percent),
            Step::Settle { action, done, percent } => self.settle(action, done, percent),
            Step::Decide { action, yes } => self.decide(action, yes),
            Step::Release { action } => self.release(action),
            Step::Pass { seconds } => {
                self.world.advance(Span::seconds(seconds));
                self.model.follow();
            }
            Step::Restart => self.world.restart(),
        }
        self.compare_sums();
    }

    fn ask(&mut self, amount: Option<usize>, host: usize, with: Option<u8>) {
        let (host, payee) = HOSTS[host];
        let pays = amount.map(|it| AMOUNTS[it]);
        let asked = Ask { pays, host: if pays.is_some() { host } else { "" }, payee, key: with };
        let request = pays.map_or_else(|| tool_call("search"), |minor| payment(minor, "EUR", host));
        let request: Request = match with {
            Some(with) => request.keyed(key(&format!("key-{with}"))),
            None => request,
        };
        let expected = self.model.ask(self.now(), &asked);
        let answer = self.world.try_authorize(&self.caller, request);
        let (decided, expected) = match (answer, expected) {
            (Ok(decided), Some(expected)) => (decided, expected),
            (Err(refusal), None) => return assert_eq!(refusal.kind(), Kind::IdempotencyConflict),
            (answer, expected) => panic!("{asked:?} is answered {answer:?}, the model says {expected:?}"),
        };
        if !expected.replayed {
            self.made.push(decided.id());
        }
        assert_eq!(self.made[expected.action], decided.id(), "{asked:?}");
        assert_eq!(decided.is_replay(), expected.replayed);
        if !expected.replayed {
            assert_eq!(stands(decided.status()), expected.stands, "{asked:?}: {:?}", decided.reasons());
            let codes: BTreeSet<&str> = decided.reasons().iter().map(|it| it.code.as_str()).collect();
            assert_eq!(codes, expected.codes, "{asked:?}");
        }
    }

    fn show(&mut self, action: usize, percent: i64) {
        let Some((id, paid)) = self.payment(action) else { return };
        let Some(receipt) = self.receipt(id) else { return };
        let amount = (paid * percent / 100).max(1);
        let expected = self.model.show(self.now(), self.place(id), amount, RECEIPT_MS);
        let host = self.world.read(&self.caller, id).action().payment.as_ref().unwrap().domain.to_string();
        let verdict = self.world.verify(&receipt, Some(charge(amount, "EUR", &host)));
        assert_eq!(verdict.is_valid(), expected, "{id} for {amount}: {:?}", verdict.fault);
    }

    fn settle(&mut self, action: usize, done: bool, percent: Option<i64>) {
        if self.made.is_empty() {
            return;
        }
        let place = action % self.made.len();
        let id = self.made[place];
        let paid = self.world.read(&self.caller, id).action().payment.as_ref().map(|it| it.amount);
        let amount = percent.zip(paid).map(|(percent, paid)| paid * percent / 100 + i64::from(percent > 100));
        let expected = self.model.settle(place, done, amount);
        let status = if done { OutcomeStatus::Completed } else { OutcomeStatus::Failed };
        let answer = self.world.try_settle(&self.caller, id, status, amount);
        match (answer, expected) {
            (Ok(settled), Some(incident)) => assert_eq!(settled.action().incident.is_some(), incident, "{id}"),
            (Err(refusal), None) => assert!(matches!(refusal.kind(), Kind::NotAllowed | Kind::AlreadySettled)),
            (answer, expected) => panic!("{id} at {amount:?} is answered {answer:?}, the model says {expected:?}"),
        }
    }

    /// The owner decides; what was never asked is passed over.
    fn decide(&mut self, action: usize, yes: bool) {
        let Some(id) = self.made.get(action % self.made.len().max(1)).copied() else { return };
        if self.world.row::<Action>(id).approval.is_none() {
            return;
        }
        self.world.keep_signed_in(&self.owner);
        let expected = self.model.decide(self.now(), self.place(id), yes);
        let choice = if yes { Choice::Approve } else { Choice::Deny };
        match self.world.decide(&self.owner, id, choice) {
            Ok(_) => assert!(expected, "{id} was decided"),
            Err(refusal) => assert!(!expected && refusal.kind() == Kind::NotAllowed, "{id}: {refusal:?}"),
        }
    }

    fn release(&mut self, action: usize) {
        if self.made.is_empty() {
            return;
        }
        let place = action % self.made.len();
        let expected = self.model.release(self.now(), place, RECEIPT_MS);
        let answer = self.world.release(By::Program, self.made[place]);
        match (answer, expected) {
            (Ok(released), Some(kept)) => {
                let allowed = released.action().allowed().unwrap();
                let of_outcome = allowed.outcome.as_ref().and_then(|it| it.released.as_ref());
                assert_eq!(of_outcome.or(allowed.released.as_ref()).map(|it| it.amount), Some(kept));
            }
            (Err(refusal), None) => assert_eq!(refusal.kind(), Kind::NotAllowed),
            (answer, expected) => panic!("{place} is answered {answer:?}, the model says {expected:?}"),
        }
    }

    /// A payment among what was made.
    fn payment(&mut self, action: usize) -> Option<(ActionId, i64)> {
        let id = *self.made.get(action % self.made.len().max(1))?;
        let paid = self.world.read(&self.caller, id).action().payment.as_ref().map(|it| it.amount)?;
        Some((id, paid))
    }

    /// The receipt of an action that is or was allowed, whether or not the agent is still given it.
    fn receipt(&mut self, id: ActionId) -> Option<String> {
        use svc_core::state::gate::receipt::{Claims, write};
        let decided = self.world.read(&self.caller, id);
        let signer = self.world.engine().signer().clone();
        let allowed = decided.action().allowed()?;
        Some(write(&Claims::of(decided.action(), allowed, signer.issuer()), &*signer))
    }

    fn place(&self, id: ActionId) -> usize {
        self.made.iter().position(|it| *it == id).unwrap()
    }

    /// The running hour's sums are the model's.
    fn compare_sums(&mut self) {
        let now = self.now();
        let (reserved, spent, count) = self.model.hour(now);
        let activity = self.world.row::<Activity>(self.caller.agent);
        let running = activity.tallies.iter().find(|it| now < it.until.as_millis() && now >= it.from.as_millis());
        let stored = running.map_or((0, 0, 0), |it| (it.reserved, it.spent, it.count as usize));
        assert_eq!(stored, (reserved, spent, count));
    }
}

fn stands(status: Status) -> Stands {
    match status {
        Status::Allowed => Stands::Allowed,
        Status::Pending => Stands::Asked,
        Status::Denied | Status::Expired | Status::Revoked => Stands::Denied,
        Status::Completed | Status::Failed | Status::Cancelled | Status::Lapsed => Stands::Settled,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is asked, shown and settled, however much time goes by in a day, and wherever the process ends and starts again, the gate
    /// is its model.
    #[test]
    fn the_gate_answers_as_its_model(steps in steps()) {
        let mut pair = Pair::new();
        let mut passed = 0;
        for step in &steps {
            if let Step::Pass { seconds } = step {
                passed += seconds;
                // A day later approvals expire and actions lapse, which the model does not know.
                if passed > 86_000 {
                    continue;
                }
            }
            pair.step(step);
        }
        pair.world.audit();
    }
}
