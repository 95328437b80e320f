//! Two days of a gate's life in an instant: a velocity line fills and clears, an approval waits and expires, an action that
//! nobody settles lapses. Nothing sleeps; the clock is moved by hand and every timer runs at its own instant.
//!
//! Run it with `cargo run -p svc-examples --bin fake_clock`.

use svc_core::state::gate::OutcomeStatus;
use svc_core::testing::World;
use svc_core::testing::world::{payment, terms};
use svc_core::value::Span;
use svc_core::{Decided, Decision};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],
    "limits":{"currency":"EUR","perAction":50000,"askAbove":20000}}"#;

fn main() {
    let mut world = World::new();
    let agent = world.agent().with_mandate(terms(OFFICE)).register();

    // Ten payments and other actions in ten minutes, then a person is asked.
    for minute in 0..11 {
        let answer = world.authorize(&agent, payment(100, "EUR", &format!("shop{minute}.example")));
        if minute == 0 || minute >= 9 {
            println!("{} payment {:<2} {}", world.now(), minute + 1, told(&answer));
        }
        if answer.receipt().is_some() {
            world.settle(&agent, answer.id(), OutcomeStatus::Completed, Some(100));
        }
        world.advance(Span::seconds(30));
    }
    world.advance(Span::minutes(10));
    let answer = world.authorize(&agent, payment(100, "EUR", "later.example"));
    println!("{} ten minutes on {}", world.now(), told(&answer));

    // Nobody answers, and by its timer the ask becomes a deny.
    let asked = world.authorize(&agent, payment(30_000, "EUR", "fair.example"));
    println!("{} a large one {}", world.now(), told(&asked));
    world.advance(Span::hours(24));
    println!("{} a day on {}", world.now(), told(&world.read(&agent, asked.id())));

    // Nobody settles, and what was reserved is counted as spent: time gives nothing back.
    println!("{} never settled {}", world.now(), told(&world.read(&agent, answer.id())));
    world.advance(Span::hours(1));
    println!("{} an hour on {}", world.now(), told(&world.read(&agent, answer.id())));

    let report = world.audit();
    println!("the books are right: {} actions, {} ledger records", report.actions, report.records);
}

/// How an answer reads.
fn told(answer: &Decided) -> String {
    match answer.clone().decision() {
        Decision::Allow(allowed) => format!("allow, with a receipt of {} characters", allowed.receipt().len()),
        Decision::Ask(asked) => {
            let reasons = asked.reasons().iter().map(|it| it.message()).collect::<Vec<_>>().join("; ");
            format!("ask: {reasons}")
        }
        Decision::Deny(denied) => format!("deny: {}", denied.why()),
        Decision::Used(used) => format!("used {}", used.at()),
        Decision::Past(past) => format!("past: {}", past.status().as_str()),
    }
}
