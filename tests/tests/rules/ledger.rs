//! The ledger: a record of everything in its own commit, and its place within a second.

use svc_core::rules::people::by::By;
use svc_core::state::evidence::Entry;
use svc_core::state::gate::OutcomeStatus;
use svc_core::store::Record;
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::json::Json;

use super::{PAY, calm};

pub(super) fn entries(world: &mut World) -> Vec<Entry> {
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
    assert!(world.verify(allowed.receipt().unwrap(), Some(charge(100, "EUR", "b.example"))).fault.is_none());
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

/// What a record is about, in one line: its kind, who did it, to what kind of thing, and the members of its data.
fn line(entry: &Entry) -> String {
    let [actor, data]: [serde_json::Value; 2] =
        [&entry.actor, &entry.data].map(|it| serde_json::from_str(&it.to_string()).unwrap());
    let members: Vec<&str> = data.as_object().unwrap().keys().map(String::as_str).collect();
    let subject = entry.subject.split('_').next().unwrap();
    format!("{} by {} on {subject}: {}", entry.kind, actor["kind"].as_str().unwrap(), members.join(" "))
}

/// Each kind of record names who did it and to what, and holds the members that the contract gives it.
#[test]
fn records_hold_the_members_of_their_kind() {
    let month = r#"{"name":"M","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":10000,"period":"month"}}}"#;
    let (mut world, agent) = calm(&[month]);
    let used = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let asked = world.authorize(&agent, request("crm.read"));
    world.authorize(&agent, payment(10_001, "EUR", "a.example"));
    assert!(world.verify(used.receipt().unwrap(), Some(charge(60, "EUR", "a.example"))).fault.is_none());
    world.settle(&agent, used.id(), OutcomeStatus::Completed, Some(60));
    let lapsing = world.authorize(&agent, payment(200, "EUR", "b.example")).id();
    world.advance(Span::hours(25));
    world.settle(&agent, lapsing, OutcomeStatus::Failed, None);
    let over = world.authorize(&agent, payment(300, "EUR", "c.example")).id();
    world.authorize(&agent, payment(400, "EUR", "d.example"));
    world.settle(&agent, over, OutcomeStatus::Completed, Some(301));
    let row: std::sync::Arc<svc_core::state::gate::Agent> = world.row(agent.agent);
    let (workspace, credential) = (agent.workspace, row.keys[0].credential);
    world.run(svc_core::rules::people::keys::RevokeKey { workspace, by: By::Program, credential }).unwrap();
    world.advance(Span::seconds(1));
    let entries = entries(&mut world);
    let told: Vec<String> = entries.iter().map(line).filter(|it| !it.starts_with('m')).collect();
    let of_payment = "agentId amount codes currency decision digest domain epoch mandateId mandateVersion";
    let paid = format!("{of_payment} receiptId signals status summary type");
    let later = format!("{of_payment} outcome posted receiptId released signals status type");
    let late = later.replacen("mandateId", "late mandateId", 1).replacen("currency", "corrected currency", 1);
    let settled = format!("action.settled by agent on act: {later}");
    assert_eq!(
        told,
        [
            "agent.created by policy on agt: agentId epoch name principalId tier".to_owned(),
            "key.created by policy on key: agentId prefix principalId scope".to_owned(),
            format!("action.allowed by agent on act: {paid}"),
            "action.asked by agent on act: agentId approvalId codes decision digest epoch signals status summary type"
                .to_owned(),
            "action.denied by agent on act: agentId amount codes currency decision digest domain epoch signals status \
             summary type"
                .to_owned(),
            "receipt.consumed by integration on act: agentId amount currency domain receiptId".to_owned(),
            settled.clone(),
            format!("action.allowed by agent on act: {paid}"),
            "action.expired by timer on act: agentId approvalId codes decision digest epoch signals status type"
                .to_owned(),
            format!("action.lapsed by timer on act: {later}"),
            format!("action.settled by agent on act: {late}"),
            format!("action.allowed by agent on act: {paid}"),
            format!("action.allowed by agent on act: {paid}"),
            settled,
            "incident.over_settlement by policy on act: agentId allowedAmount currency settledAmount".to_owned(),
            "agent.frozen by policy on agt: agentId epoch reason".to_owned(),
            "key.revoked by policy on key: agentId prefix principalId scope".to_owned(),
            format!("action.revoked by policy on act: {of_payment} receiptId signals status type"),
        ]
    );
    let find = |kind: &str| entries.iter().find(|it| &*it.kind == kind).unwrap();
    let data = |kind: &str| serde_json::from_str::<serde_json::Value>(&find(kind).data.to_string()).unwrap();
    let digest = format!("sha256:{}", used.action().digest);
    for kind in ["action.allowed", "action.settled"] {
        assert_eq!((&*find(kind).subject, &data(kind)["digest"]), (&*used.id().to_string(), &digest.clone().into()));
    }
    assert_eq!(find("action.expired").subject, asked.id().to_string().into());
    let incident = ["allowedAmount", "settledAmount"].map(|it| data("incident.over_settlement")[it].as_i64());
    assert_eq!(incident, [Some(300), Some(301)]);
    assert_eq!(data("receipt.consumed")["amount"].as_i64(), Some(60));
    assert_eq!(data("action.revoked")["codes"], serde_json::json!(["agent_frozen"]));
    let actor = find("action.allowed").actor.to_string();
    assert_eq!(actor, format!(r#"{{"id":"{}","kind":"agent"}}"#, agent.agent));
    let (entry, place) = (find("action.asked"), find("action.asked").place.as_ref().unwrap());
    let whole: serde_json::Value = serde_json::from_str(&entry.hashed_text(place.seq, &place.prev)).unwrap();
    let members: Vec<&str> = whole.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["actor", "at", "data", "id", "kind", "prevHash", "seq", "subject"]);
}
