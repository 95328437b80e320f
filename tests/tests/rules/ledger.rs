//! The ledger: a record of everything in its own commit, and its place within a second.

use svc_core::state::evidence::Entry;
use svc_core::state::gate::OutcomeStatus;
use svc_core::store::Record;
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::json::Json;

use super::{PAY, calm};

fn entries(world: &mut World) -> Vec<Entry> {
    let rows = world.rows();
    let entries = rows.into_iter().filter_map(|(_, _, record)| match record {
        Record::Entry(entry) => Some(Entry::clone(&entry)),
        _ => None,
    });
    let mut entries: Vec<Entry> = entries.collect();
    entries.sort_by_key(|it| it.place.as_ref().map(|place| place.seq));
    entries
}

/// Every decision, settlement, consumption, freeze and incident is recorded, in the order in which they happened.
#[test]
fn everything_is_recorded_in_order() {
    let (mut world, agent) = calm(&[PAY]);
    world.authorize(&agent, payment(10_001, "EUR", "a.example"));
    world.authorize(&agent, request("crm.read"));
    let allowed = world.authorize(&agent, payment(100, "EUR", "b.example"));
    world.verify(allowed.receipt().unwrap(), Some(charge(100, "EUR", "b.example")));
    world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(200));
    world.advance(Span::seconds(1));
    let kinds: Vec<_> = entries(&mut world).iter().map(|it| it.kind.to_string()).collect();
    let told: Vec<&str> =
        kinds.iter().map(String::as_str).filter(|it| !it.starts_with("m") && !it.starts_with("key")).collect();
    assert_eq!(
        told,
        [
            "agent.created",
            "action.denied",
            "action.asked",
            "action.allowed",
            "receipt.consumed",
            "action.settled",
            "incident.over_settlement",
            "agent.frozen",
            "action.denied",
        ]
    );
}

/// `seq` has no gaps, `prevHash` is the hash before, and the hash is over the canonical record.
#[test]
fn the_chain_holds() {
    let (mut world, agent) = calm(&[PAY]);
    for minor in 1..40 {
        world.authorize(&agent, payment(minor, "EUR", "a.example"));
    }
    world.advance(Span::seconds(1));
    let entries = entries(&mut world);
    assert!(entries.len() >= 42);
    let mut prev = Digest::from_bytes([0; 32]);
    for (seq, entry) in entries.iter().enumerate() {
        let place = entry.place.clone().expect("placed");
        assert_eq!((place.seq, place.prev), (u64::try_from(seq).unwrap(), prev));
        let text = entry.hashed_text(place.seq, &place.prev);
        let canonical = svc_core::value::canonical::canonical(&Json::parse(text.as_bytes()).unwrap());
        assert_eq!(text, canonical, "the stored text is canonical as it is");
        assert_eq!(Digest::of(&text), place.hash);
        prev = place.hash;
    }
}

/// A lapse is recorded with the whole allowed amount as posted, also where a mandate limits the count alone; of an action
/// that pays nothing no amount is told.
#[test]
fn a_lapse_tells_what_it_posts() {
    let count = r#"{"name":"C","actions":["payment","crm.read"],
        "limits":{"currency":"EUR","perAction":10000,"count":{"max":9,"period":"year"}}}"#;
    let (mut world, agent) = calm(&[count]);
    let paid = world.authorize(&agent, payment(300, "EUR", "a.example")).id();
    let read = world.authorize(&agent, request("crm.read")).id();
    world.advance(Span::hours(25));
    let mut told = |action: svc_core::value::id::ActionId| {
        let all = entries(&mut world);
        let lapse = all.iter().find(|it| &*it.kind == "action.lapsed" && *it.subject == *action.to_string());
        let data = Json::parse(lapse.expect("a lapse").data.as_bytes()).unwrap();
        ["posted", "released"].map(|name| data.get(name).and_then(Json::as_int))
    };
    assert_eq!(told(paid), [Some(300), Some(0)]);
    assert_eq!(told(read), [None, None]);
}

/// What a person may want erased enters a record as a salted commitment: neither summary nor reason stands in one.
#[test]
fn personal_data_is_committed() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    world.freeze(agent.agent);
    let all: String = entries(&mut world).iter().map(|it| it.data.to_string()).collect();
    assert!(!all.contains("Pay for what was ordered") && !all.contains("a test stops it"));
    let entry: std::sync::Arc<Entry> = world.row(allowed.action().evidence);
    let data = Json::parse(entry.data.as_bytes()).unwrap();
    let told = data.get("summary").unwrap().get("commit").unwrap().as_str().unwrap().to_owned();
    let made = svc_core::state::gate::commitment(&allowed.action().salt, "summary", "Pay for what was ordered");
    assert!(made.contains(&told));
}
