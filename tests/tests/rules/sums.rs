//! Random histories of one mandate: at each step its running sums are what its actions add up to, whatever became of them, and
//! whatever zone and limits came into force on the way.
//!
//! A failure prints its seed; `TEST_SEED=…` plays that history again.

use std::hash::{BuildHasher, Hasher};

use svc_core::refusal::Refusal;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::mandates::ChangeMandate;
use svc_core::rules::people::recount;
use svc_core::state::gate::{
    Action, Activity, Agent, Count, LimitsChange, Mandate, OutcomeStatus, PerPeriod, Set, State, Tally, TermsChange,
};
use svc_core::state::people::{Settings, Workspace};
use svc_core::store::{Row, Store};
use svc_core::testing::Dice;
use svc_core::testing::world::{World, charge, payment, request, terms};
use svc_core::value::id::{ActionId, MandateId, MandateVersionId};
use svc_core::value::period::{Period, Zone};
use svc_core::value::text::Note;
use svc_core::value::{Span, Timestamp};

use super::fast;

/// Histories of one run of the test, and steps of one history.
const HISTORIES: u64 = 12;
const STEPS: usize = 160;

/// Zones on both sides of the day's border, with and without summer time, and of half an hour.
const ZONES: [&str; 7] = [
    "UTC",
    "Atlantic/Cape_Verde",
    "Pacific/Kiritimati",
    "Pacific/Pago_Pago",
    "Europe/Vienna",
    "Asia/Kathmandu",
    "America/New_York",
];
const PERIODS: [Period; 5] = [Period::Hour, Period::Day, Period::Week, Period::Month, Period::Year];
const BOTH: &str = r#"{"name":"M","actions":["payment","crm.*"],"limits":{"currency":"EUR","askAbove":600,"onLimit":"ask",
    "perPeriod":{"amount":5000,"period":"day"},"count":{"max":12,"period":"day"}}}"#;

struct History {
    seed: u64,
    dice: Dice,
    world: World,
    agent: Caller,
    mandate: MandateId,
    owner: Person,
    asked: Vec<ActionId>,
    told: Vec<String>,
}

impl History {
    fn new(seed: u64) -> Self {
        let settings = Settings { approval_hours: 20, receipt_minutes: 600, ..fast() };
        let mut world = World::with(settings);
        // Summer time begins within the month.
        world.clock().set(Timestamp::parse("2027-03-10T12:00:00Z").unwrap());
        let agent = world.agent().with_mandate(terms(BOTH)).register();
        let mandate = world.row::<Agent>(agent.agent).mandates[0].id;
        let owner = world.owner();
        Self { seed, dice: Dice::new(seed), world, agent, mandate, owner, asked: Vec::new(), told: Vec::new() }
    }

    fn live(mut self) {
        for _ in 0..STEPS {
            self.world.keep_signed_in(&self.owner);
            let told = self.step();
            self.told.push(format!("{} {told}", self.world.now()));
            self.check();
        }
        self.world.audit();
    }

    /// One of the last few actions.
    fn recent(&mut self) -> Option<ActionId> {
        let few = self.asked.len().min(12);
        let back = self.dice.below(few);
        self.asked.iter().rev().nth(back).copied()
    }

    fn step(&mut self) -> String {
        match self.dice.below(16) {
            0..=3 => self.ask(),
            4 | 5 => self.settle(),
            6 => self.verify(),
            7 | 8 => self.decide(),
            9 => match self.recent() {
                Some(id) => format!("release {id} {:?}", self.world.release(By::Program, id).map(drop)),
                None => String::new(),
            },
            10..=12 => {
                let minutes = *self.dice.pick(&[3, 50, 5 * 60, 13 * 60, 40 * 60]);
                self.world.advance(Span::minutes(minutes));
                format!("advance {minutes} minutes")
            }
            13 => self.stop(),
            14 => self.change(),
            _ => {
                let zone = *self.dice.pick(&ZONES);
                let settings = self.world.row::<Workspace>(self.agent.workspace).settings.clone();
                self.world.change_settings(Settings { timezone: Zone::parse(zone).unwrap(), ..settings });
                format!("zone {zone}")
            }
        }
    }

    fn ask(&mut self) -> String {
        let amount = self.dice.between(1, 900);
        let wanted = if self.dice.chance(200) {
            request("crm.update")
        } else if self.dice.chance(100) {
            payment(amount * 10, "EUR", &format!("h{}.example", self.asked.len()))
        } else {
            payment(amount, "EUR", &format!("h{}.example", self.asked.len()))
        };
        let got = self.world.authorize(&self.agent, wanted);
        self.asked.push(got.id());
        format!("authorize {} of {amount}: {:?}", got.id(), got.status())
    }

    fn settle(&mut self) -> String {
        let Some(id) = self.recent() else { return String::new() };
        let status = *self.dice.pick(&[OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled]);
        let most = self.world.row::<Action>(id).payment.as_ref().map(|it| it.amount);
        let amount = most.filter(|_| self.dice.chance(600)).map(|most| self.dice.between(0, most));
        let done = self.world.try_settle(&self.agent, id, status, amount).map(|it| it.status());
        format!("settle {id} {status:?} {amount:?} {:?}", done.map_err(|it| it.kind()))
    }

    fn verify(&mut self) -> String {
        let Some(id) = self.recent() else { return String::new() };
        let asked = self.world.row::<Action>(id).payment.clone();
        let charged = asked.map(|it| charge(self.dice.between(1, it.amount), "EUR", it.domain.as_str()));
        let agent = self.agent;
        let receipt = self.world.read(&agent, id).receipt().map(str::to_owned);
        let Some(receipt) = receipt else { return String::new() };
        format!("verify {id} {:?}", self.world.verify(&receipt, charged).fault)
    }

    fn decide(&mut self) -> String {
        let actions = self.actions();
        let waiting: Vec<_> = actions.iter().filter(|it| matches!(it.state, State::Pending { .. })).collect();
        if waiting.is_empty() {
            return String::new();
        }
        let of = *self.dice.pick(&waiting);
        let choice = if self.dice.chance(600) { Choice::Approve } else { Choice::Deny };
        let done = self.world.run(DecideApproval::new(self.owner, of.approval.unwrap(), choice));
        format!("{choice:?} {} {:?}", of.id, done.map(drop).map_err(|it| it.kind()))
    }

    fn stop(&mut self) -> String {
        if !self.dice.chance(300) {
            return String::new();
        }
        self.world.freeze(self.agent.agent);
        self.world.advance(Span::seconds(2));
        let (workspace, agent) = (self.world.workspace(), self.agent.agent);
        let reason = Note::parse("mended").unwrap();
        self.world.run(RestartAgent { workspace, agent, by: By::Program, reason, admin: None }).unwrap();
        "stop and restart".to_owned()
    }

    /// Changes the limits, and adds up what the mandate's actions come to where a limit begins to speak of a period that runs.
    fn change(&mut self) -> String {
        let amount = PerPeriod { amount: self.dice.between(2_000, 8_000), period: *self.dice.pick(&PERIODS) };
        let max = u32::try_from(self.dice.between(5, 25)).unwrap();
        let count = Count { max, period: *self.dice.pick(&PERIODS) };
        let limits = LimitsChange {
            per_action: Set::To(9_000),
            per_period: if self.dice.chance(300) { Set::Clear } else { Set::To(amount) },
            count: if self.dice.chance(300) { Set::Clear } else { Set::To(count) },
            ..LimitsChange::default()
        };
        let told = format!("{limits:?}");
        let mut change = ChangeMandate {
            workspace: self.world.workspace(),
            by: By::Program,
            agent: self.agent.agent,
            mandate: self.mandate,
            change: TermsChange { limits: Set::To(limits), ..TermsChange::default() },
            paused: None,
            confirm_broaden: false,
            counted: None,
        };
        if let Err(refused) = self.world.run(change.clone()) {
            assert_eq!(refused, Refusal::not_ready());
            let mut sums = self.world.engine().read(|scope| recount::plan(scope, &change)).unwrap().unwrap();
            let mut after = None;
            loop {
                let found = self.world.engine().store().scan(&sums.range(after)).unwrap();
                let Some(last) = found.last() else { break };
                found.iter().filter_map(|it| Action::peel(it.row.record.as_ref()?)).for_each(|it| sums.add(it));
                after = Some((last.order, last.row.key));
            }
            change.counted = Some(sums);
            self.world.run(change).unwrap();
        }
        told
    }

    fn actions(&mut self) -> Vec<Action> {
        self.world.rows().iter().filter_map(|(_, _, it)| Action::peel(it)).map(|it| Action::clone(it)).collect()
    }

    /// The sums of the running periods are what the actions in them add up to.
    fn check(&mut self) {
        let (now, actions) = (self.world.now(), self.actions());
        let activity = self.world.row::<Activity>(self.agent.agent);
        let agent = self.world.row::<Agent>(self.agent.agent);
        let version = agent.mandates[0].version;
        let limits = self.world.row::<Mandate>(MandateVersionId { mandate: self.mandate, version }).limits().clone();
        let settings = self.world.row::<Workspace>(self.agent.workspace).settings.clone();
        let counts: Vec<&Action> = actions
            .iter()
            .filter(|it| it.mandate.is_some_and(|it| it.mandate == self.mandate) && !it.is_beyond())
            .filter(|it| !matches!(it.state, State::Denied { .. } | State::Expired { .. }))
            .collect();
        let within = |tally: &Tally, it: &Action| tally.from <= it.created_at() && it.created_at() < tally.until;
        if let Some(per) = &limits.per_period {
            let tally = activity.tally(self.mandate, per.period, now, &settings);
            self.must(tally.term(), settings.term(per.period, now), "the period that runs");
            let asked = |it: &Action| it.payment.as_ref().map_or(0, |it| it.amount);
            let due = |it: &&Action| it.allowed().and_then(|it| it.posted()).unwrap_or_else(|| asked(it));
            let sum: i64 = counts.iter().filter(|it| within(&tally, it)).map(due).sum();
            self.must(tally.used(), sum, "the amount");
        }
        if let Some(count) = &limits.count {
            let tally = activity.tally(self.mandate, count.period, now, &settings);
            let number = counts.iter().filter(|it| within(&tally, it)).count();
            self.must(usize::try_from(tally.count).unwrap(), number, "the count");
        }
    }

    fn must<T: PartialEq + std::fmt::Debug>(&self, stored: T, due: T, what: &str) {
        let last = self.told.len().saturating_sub(40);
        assert!(
            stored == due,
            "{what} is {stored:?} and not {due:?}\nTEST_SEED={} plays it again; the last steps were\n{}",
            self.seed,
            self.told[last..].join("\n")
        );
    }
}

/// No history leads a sum away from what its actions add up to.
#[test]
fn running_sums_are_what_the_actions_add_up_to() {
    let replay = std::env::var("TEST_SEED").ok().map(|it| it.parse::<u64>().expect("TEST_SEED is a number"));
    let first = std::collections::hash_map::RandomState::new().build_hasher().finish();
    let seeds: Vec<u64> = replay.map_or_else(|| (0..HISTORIES).map(|n| first.wrapping_add(n)).collect(), |it| vec![it]);
    eprintln!("TEST_SEED={first} and the {HISTORIES} that follow it");
    seeds.into_iter().for_each(|seed| History::new(seed).live());
}
