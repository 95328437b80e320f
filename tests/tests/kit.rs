//! The test kit finds what it is for: each promise that a store breaks, and each row that cannot be.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "kit/isolation.rs"]
mod isolation;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::state::edge::{Job, JobState};
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{Action, Activity, Agent, OutcomeStatus, State};
use svc_core::store::memory::Never;
use svc_core::store::{
    Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Record, Row, Stamp, Store, Write,
};
use svc_core::testing::fault::{Fault, FaultError};
use svc_core::testing::world::{charge, payment, terms};
use svc_core::testing::{World, audit, contract};
use svc_core::value::Span;
use svc_core::value::link::Order;

/// How a store fails to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// An absent row is not answered.
    SilentAbsence,
    /// Every row is under stamp 1.
    OneStamp,
    /// Rows that are only read are not checked.
    ReadsUnchecked,
    /// An absent row is not checked.
    AbsenceUnchecked,
    /// A conflict names the rows without what they are now.
    StaleConflict,
    /// A commit that conflicts writes what it can.
    HalfCommits,
    /// What a row is no more found by stays.
    KeepsLinks,
    /// A new link is not made.
    MakesNoLinks,
    /// Orders are cut to 64 bits.
    ShortOrders,
    /// Pages begin anew.
    IgnoresAfter,
    /// Reading is always from the beginning.
    IgnoresDirection,
    /// A page is as long as it likes.
    IgnoresLimit,
    /// The end of a stretch is in it.
    ClosedStretch,
    /// Rows are not in order.
    Unsorted,
    /// Every prefix is one list.
    OnePrefix,
    /// Bodies lose what is not ASCII.
    LosesText,
    /// Stamps are counted in ten bits.
    ShortStamps,
    /// A conflict names one row, whichever else has moved.
    NamesOne,
    /// A page has a hundred rows at most.
    ShortPages,
}

const FLAWS: [Flaw; 19] = [
    Flaw::SilentAbsence,
    Flaw::OneStamp,
    Flaw::ReadsUnchecked,
    Flaw::AbsenceUnchecked,
    Flaw::StaleConflict,
    Flaw::HalfCommits,
    Flaw::KeepsLinks,
    Flaw::MakesNoLinks,
    Flaw::ShortOrders,
    Flaw::IgnoresAfter,
    Flaw::IgnoresDirection,
    Flaw::IgnoresLimit,
    Flaw::ClosedStretch,
    Flaw::Unsorted,
    Flaw::OnePrefix,
    Flaw::LosesText,
    Flaw::ShortStamps,
    Flaw::NamesOne,
    Flaw::ShortPages,
];

struct Flawed(MemoryStore, Flaw);

impl Flawed {
    fn is(&self, flaw: Flaw) -> bool {
        self.1 == flaw
    }

    /// A stamp as it is told.
    fn stamp(&self, stamp: Stamp) -> Stamp {
        if self.is(Flaw::ShortStamps) && stamp != Stamp::ABSENT { Stamp(stamp.0 % 1_024 + 1) } else { stamp }
    }

    fn answer(&self, mut row: Loaded) -> Loaded {
        if self.is(Flaw::OneStamp) && row.record.is_some() {
            row.stamp = Stamp(1);
        }
        row.stamp = self.stamp(row.stamp);
        row
    }

    fn change(&self, write: &Write) -> Write {
        let mut write = write.clone();
        if self.is(Flaw::KeepsLinks) {
            write.unlink.clear();
        }
        if self.is(Flaw::MakesNoLinks) {
            write.link.clear();
        }
        for link in write.link.iter_mut().chain(&mut write.unlink) {
            if self.is(Flaw::OnePrefix) {
                link.prefix = 0;
            }
            if let (true, Order::At(order)) = (self.is(Flaw::ShortOrders), link.order) {
                link.order = Order::At(order & u128::from(u64::MAX));
            }
        }
        if let (true, Some(Record::Payload(payload))) = (self.is(Flaw::LosesText), &write.record) {
            let ascii = payload.tool_input.as_ref().map(|it| it.replace('ä', "a").into());
            write.record = Some(Record::Payload(Arc::new(svc_core::state::gate::Payload {
                tool_input: ascii,
                ..svc_core::state::gate::Payload::clone(payload)
            })));
        }
        write
    }
}

impl Store for Flawed {
    type Error = Never;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Never> {
        let rows = self.0.load(keys)?.into_iter().filter(|row| !self.is(Flaw::SilentAbsence) || row.record.is_some());
        Ok(rows.map(|row| self.answer(row)).collect())
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Never>> {
        let written = |key: &Key| commit.writes.iter().any(|write| write.key == *key);
        let mut checks = commit.checks.clone();
        if self.is(Flaw::ReadsUnchecked) {
            checks.retain(|(key, _)| written(key));
        }
        if self.is(Flaw::AbsenceUnchecked) {
            checks.retain(|(_, stamp)| *stamp != Stamp::ABSENT);
        }
        if self.is(Flaw::OneStamp) {
            checks.clear();
        }
        if self.is(Flaw::ShortStamps) {
            let keys: Vec<Key> = checks.iter().map(|(key, _)| *key).collect();
            for ((_, seen), row) in checks.iter_mut().zip(self.0.load(&keys).unwrap()) {
                *seen = if *seen == self.stamp(row.stamp) { row.stamp } else { *seen };
            }
        }
        let writes: Vec<Write> = commit.writes.iter().map(|write| self.change(write)).collect();
        match self.0.commit(&Commit { checks, writes: writes.clone() })? {
            Committed::Applied(stamp) => {
                Ok(Committed::Applied(if self.is(Flaw::OneStamp) { Stamp(1) } else { self.stamp(stamp) }))
            }
            Committed::Conflict(mut moved) => {
                if self.is(Flaw::HalfCommits) {
                    let _ = self.0.commit(&Commit { checks: Vec::new(), writes })?;
                }
                if self.is(Flaw::StaleConflict) {
                    moved.iter_mut().for_each(|row| row.record = None);
                }
                if self.is(Flaw::NamesOne) {
                    moved.truncate(1);
                }
                moved.iter_mut().for_each(|row| row.stamp = self.stamp(row.stamp));
                Ok(Committed::Conflict(moved))
            }
        }
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Never> {
        let mut range = range.clone();
        if self.is(Flaw::IgnoresAfter) {
            range.after = None;
        }
        if self.is(Flaw::IgnoresDirection) {
            range.newest_first = false;
        }
        if self.is(Flaw::IgnoresLimit) {
            range.limit = usize::MAX;
        }
        if self.is(Flaw::ShortPages) {
            range.limit = range.limit.min(100);
        }
        if self.is(Flaw::ClosedStretch) {
            range.until = range.until.saturating_add(1);
        }
        if self.is(Flaw::OnePrefix) {
            range.prefix = 0;
        }
        let mut found = self.0.scan(&range)?;
        if self.is(Flaw::Unsorted) {
            found.sort_by_key(|it| it.row.key);
        }
        for it in &mut found {
            it.row = self.answer(it.row.clone());
        }
        Ok(found)
    }
}

/// The suite tells each flaw by the promise that it breaks.
#[test]
fn the_suite_finds_each_flaw() {
    for flaw in FLAWS {
        let run = catch_unwind(AssertUnwindSafe(|| contract::suite(|| Flawed(MemoryStore::new(), flaw))));
        let told = run.expect_err(&format!("{flaw:?} passes the suite"));
        let told = told.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(told.starts_with("broken promise: "), "{flaw:?}: {told}");
    }
}

/// A store that has a bound of its own.
struct Bounded(MemoryStore);

impl Store for Bounded {
    type Error = FaultError<Never>;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Self::Error> {
        self.0.load(keys).map_err(FaultError::Store)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<Self::Error>> {
        if commit.checks.len() > 1_001 {
            return Err(CommitError::Rejected(FaultError::Made(Fault::Rejected)));
        }
        self.0.commit(commit).map_err(|error| match error {
            CommitError::Unavailable(never) | CommitError::Rejected(never) | CommitError::Unknown(never) => {
                match never {}
            }
        })
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Self::Error> {
        self.0.scan(range).map_err(FaultError::Store)
    }
}

/// A store that refuses a commit for its size is found: the stop of a fleet would not be written.
#[test]
fn the_suite_finds_a_store_with_a_bound() {
    let run = catch_unwind(|| contract::suite(|| Bounded(MemoryStore::new()))).expect_err("it passes the suite");
    let told = run.downcast_ref::<String>().cloned().unwrap_or_default();
    assert!(told.starts_with("broken promise: ") && told.contains("the stop of a fleet"), "{told}");
}

/// A session that trusts what it saw before others wrote is found by the suite for many sessions.
#[test]
fn the_suite_finds_sessions_that_do_not_see_one_another() {
    let apart = catch_unwind(AssertUnwindSafe(|| contract::sessions(MemoryStore::new)));
    assert!(apart.is_err(), "stores of their own pass for sessions of one");
    let store = MemoryStore::new();
    let stale = || Flawed(store.clone(), Flaw::ReadsUnchecked);
    assert!(catch_unwind(AssertUnwindSafe(|| contract::sessions(stale))).is_err());
}

type Rows = Vec<(Key, Stamp, Record)>;
type Tampering = Box<dyn Fn(&mut Rows)>;

/// A small history whose books are right.
fn history() -> (World, Rows) {
    let mut world = World::new();
    let office = terms(
        r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":9000,"period":"year"},
            "count":{"max":4,"period":"year"}}}"#,
    );
    let agent = world.agent().with_mandate(office).register();
    let first = world.authorize(&agent, payment(1_000, "EUR", "a.example.com"));
    let receipt = first.receipt().unwrap().to_owned();
    assert!(world.verify(&receipt, Some(charge(1_000, "EUR", "a.example.com"))).is_valid());
    world.settle(&agent, first.id(), OutcomeStatus::Completed, Some(900));
    let second = world.authorize(&agent, payment(2_000, "EUR", "b.example.com")).id();
    let url = "https://agent.example.com/hook".parse().unwrap();
    world.run(RegisterCallback { caller: agent, action: second, url }).unwrap();
    world.freeze(agent.agent);
    world.advance(Span::minutes(1));
    world.audit();
    let rows = world.rows();
    (world, rows)
}

fn change<R: Row + Clone>(rows: &mut [(Key, Stamp, Record)], pick: impl Fn(&R) -> bool, change: impl Fn(&mut R)) {
    let found = rows.iter_mut().find(|(_, _, record)| R::peel(record).is_some_and(|row| pick(row)));
    let (_, _, record) = found.expect("there is such a row");
    let mut row = R::peel(record).map(|it| R::clone(it)).unwrap();
    change(&mut row);
    *record = R::wrap(Arc::new(row));
}

/// Has the used action's outcome say other amounts.
fn misposted(rows: &mut [(Key, Stamp, Record)], amount: Option<i64>, posted: i64) {
    let used = |it: &Action| it.allowed().is_some_and(|it| it.consumed.is_some());
    change(rows, used, |it| {
        if let State::Allowed(allowed) = &mut it.state {
            let outcome = allowed.outcome.as_mut().unwrap();
            (outcome.amount, outcome.posted) = (amount.or(outcome.amount), Some(posted));
        }
    });
}

/// Calls that are lost, or given up in silence.
fn untold() -> Vec<(&'static str, Tampering)> {
    vec![
        ("nobody is told", Box::new(|rows| rows.retain(|it| !matches!(it.0, Key::Job(_))))),
        (
            "given up without a record",
            Box::new(|rows| {
                change::<Job>(rows, |_| true, |it| it.state = JobState::Failed { at: it.created_at });
            }),
        ),
    ]
}

/// The auditor finds every row that was tampered with, and each for its own reason.
#[test]
fn the_auditor_finds_what_cannot_be() {
    let is = |kind: &'static str| move |it: &Entry| &*it.kind == kind;
    let used = |it: &Action| it.allowed().is_some_and(|it| it.consumed.is_some());
    let tamperings: Vec<(&str, Tampering)> = vec![
        ("the hash of", Box::new(move |rows| change(rows, is("action.settled"), |it| it.data = "{}".into()))),
        (
            "expected at",
            Box::new(move |rows| change(rows, is("action.settled"), |it| it.place.as_mut().unwrap().seq += 40)),
        ),
        ("the chain says", Box::new(|rows| rows.retain(|it| !matches!(it.0, Key::Chain(_))))),
        (
            "records of receipt.consumed",
            Box::new(move |rows| {
                change(rows, used, |it| {
                    if let State::Allowed(allowed) = &mut it.state {
                        allowed.consumed = None;
                    }
                })
            }),
        ),
        ("posted", Box::new(|rows| misposted(rows, None, 0))),
        ("posted", Box::new(|rows| misposted(rows, Some(i64::MIN), i64::MAX))),
        ("the tally of", Box::new(|rows| change::<Activity>(rows, |_| true, |it| it.tallies[0].spent += 1))),
        (
            "pass the limit",
            Box::new(|rows| {
                change::<Action>(
                    rows,
                    |_| true,
                    |it| {
                        it.reservation.as_mut().unwrap().amount.as_mut().unwrap().0 = 100_000;
                        if let State::Allowed(allowed) = &mut it.state {
                            allowed.outcome = None;
                        }
                    },
                )
            }),
        ),
        ("stopped 0 times", Box::new(|rows| change::<Agent>(rows, |_| true, |it| it.epoch = 0))),
        ("0 instants are kept", Box::new(|rows| change::<Agent>(rows, |_| true, |it| it.stops.clear()))),
        (
            "behind the stop",
            Box::new(move |rows| {
                // The allow moves behind everything else.
                change(rows, is("action.allowed"), |it| it.place.as_mut().unwrap().seq = 999);
            }),
        ),
        (
            "no record of its decision",
            Box::new(|rows| {
                rows.retain(|it| !matches!(&it.2, Record::Entry(entry) if &*entry.kind == "action.allowed"))
            }),
        ),
    ];
    for (expected, tamper) in tamperings.into_iter().chain(untold()) {
        let (_, mut rows) = history();
        tamper(&mut rows);
        let faults = audit::audit(&rows).faults;
        assert!(faults.iter().any(|it| it.contains(expected)), "`{expected}` is not among {faults:#?}");
    }
}

/// A row that its lists do not show is found, and so is a timer that is overdue.
#[test]
fn the_auditor_finds_lost_entries_of_lists() {
    let (mut world, mut rows) = history();
    assert!(audit::audit_lists(world.engine().store(), &rows).is_empty());
    let now = world.now();
    assert!(audit::overdue(&rows, now).is_empty());
    change::<Agent>(&mut rows, |_| true, |it| it.following = Some(now));
    assert!(!audit::audit_lists(world.engine().store(), &rows).is_empty());
    assert_eq!(audit::overdue(&rows, now.plus(Span::seconds(1))).len(), 1);
}
