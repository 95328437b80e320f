//! Tallies of a ledger: what its records come to by day, in the workspace's own days.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use svc_core::state::evidence::{Chain, Counted, TALLIED, Tally, TallyId};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::MemoryStore;
use svc_core::testing::world::{World, payment, terms};
use svc_core::value::period::Zone;
use svc_core::value::{Span, Timestamp};
use svc_store::{Gate, Settings};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}"#;

/// Decisions by day, as a gate tells them.
fn decided(gate: &Gate, world: &mut World, days: std::ops::RangeInclusive<i64>) -> BTreeMap<i64, u64> {
    let workspace = world.workspace();
    let mut by_day = BTreeMap::new();
    for (day, agent, counts) in gate.tallied(workspace, days).unwrap() {
        let decisions: u64 = [Counted::Asked, Counted::Allowed, Counted::Denied].map(|it| counts.of(it)).iter().sum();
        if agent.is_some() && decisions > 0 {
            *by_day.entry(day).or_default() += decisions;
        }
    }
    by_day
}

/// Days are those of the workspace's zone; a stretch that was counted by the days of another is counted again, once.
#[test]
fn days_are_those_of_the_workspace() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let day = Zone::utc().day(world.now());
    let early = TALLIED / 2;
    for _ in 0..early {
        world.authorize(&agent, payment(1, "EUR", "shop.example.com"));
    }
    // 23:30 in UTC: half past one of the next day in Vienna.
    let late = Timestamp::from_millis(Zone::utc().start(day + 1).as_millis() - Span::minutes(30).as_millis());
    world.advance(Span::millis(late.as_millis() - world.now().as_millis()));
    for _ in 0..TALLIED {
        world.authorize(&agent, payment(1, "EUR", "shop.example.com"));
    }
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(store, clock, signer, settings).unwrap();

    let days = day - 1..=day + 1;
    assert_eq!(decided(&gate, &mut world, days.clone()), BTreeMap::from([(day, early + TALLIED)]));
    let workspace = world.workspace();
    assert!(world.row::<Chain>(workspace).size > TALLIED, "a full stretch and more");
    let first = TallyId { workspace, number: 0 };
    assert_eq!(world.row::<Tally>(first).zone, Zone::utc());

    let zone = Zone::parse("Europe/Vienna").unwrap();
    world.change_settings(WorkspaceSettings { timezone: zone.clone(), ..WorkspaceSettings::default() });
    let in_vienna = BTreeMap::from([(day, early), (day + 1, TALLIED)]);
    assert_eq!(decided(&gate, &mut world, days.clone()), in_vienna);
    let kept = world.row::<Tally>(first);
    assert_eq!(kept.zone, zone, "counted by the new days and kept");

    // What is kept is what is told: it is not counted a second time.
    world.overwrite(Tally { counts: Vec::new(), ..(*kept).clone() });
    assert!(decided(&gate, &mut world, days)[&(day + 1)] < TALLIED);
}
