//! What happened: settlements and what they are refused with.

use svc_core::answer::Decided;
use svc_core::refusal::Kind;
use svc_core::rules::edge::proxied::SettleCall;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::use_up::UseUp;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::state::gate::{Code, OutcomeStatus, Standing, Status, Verb};
use svc_core::state::people::KeyScope;
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::SAFE_MAX;
use svc_core::value::digest::Digest;
use svc_core::value::id::EvidenceId;

use super::{PAY, calm, codes};

/// Each outcome settles an allowed action once; the answer is the action as it then stands.
#[test]
fn an_allowed_action_settles_once() {
    for (said, status) in [
        (OutcomeStatus::Completed, Status::Completed),
        (OutcomeStatus::Failed, Status::Failed),
        (OutcomeStatus::Cancelled, Status::Cancelled),
    ] {
        let (mut world, agent) = calm(&[PAY]);
        let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
        let settled = world.settle(&agent, action, said, None);
        assert_eq!((settled.status(), settled.verb(), settled.receipt()), (status, Verb::Allow, None));
        let again = world.try_settle(&agent, action, said, None).unwrap_err();
        assert_eq!(again.kind(), Kind::AlreadySettled);
    }
}

/// Only what was allowed can be settled; another agent's action is not found.
#[test]
fn only_what_was_allowed_settles() {
    let (mut world, agent) = calm(&[PAY]);
    let denied = world.authorize(&agent, payment(10_001, "EUR", "a.example")).id();
    let asked = world.authorize(&agent, request("crm.read")).id();
    for action in [denied, asked] {
        assert_eq!(
            world.try_settle(&agent, action, OutcomeStatus::Completed, None).unwrap_err().kind(),
            Kind::NotAllowed
        );
    }
    world.advance(svc_core::value::Span::hours(24));
    assert_eq!(world.try_settle(&agent, asked, OutcomeStatus::Completed, None).unwrap_err().kind(), Kind::NotAllowed);
    let other = world.agent().register();
    let own = world.authorize(&agent, payment(5, "EUR", "b.example")).id();
    assert_eq!(world.try_settle(&other, own, OutcomeStatus::Completed, None).unwrap_err().kind(), Kind::NotFound);
}

/// What became of a tool's call that this server made is settled in the name of its agent, whose key may have ended while it ran; once,
/// and of no other agent's.
#[test]
fn a_calls_end_needs_no_key_in_force() {
    let (mut world, agent) = calm(&[r#"{"name":"Tools","actions":["crm.read"]}"#]);
    let (workspace, scope) = (agent.workspace, KeyScope::Agent(agent.agent));
    let made = world.run(CreateKey::new(workspace, By::Program, scope, NewKey::of(&format!("ask_{:043}", 1)))).unwrap();
    let caller = Caller::of(&made.binding).unwrap();
    let action = world.authorize(&caller, request("crm.read")).id();
    world.run(RevokeKey { workspace, by: By::Program, credential: made.id }).unwrap();
    let status = OutcomeStatus::Completed;
    assert_eq!(world.try_settle(&caller, action, status, None).unwrap_err().kind(), Kind::InvalidApiKey);
    let other = world.agent().register();
    let said = SettleCall { caller, action, status };
    assert_eq!(world.run(SettleCall { caller: other, ..said }).unwrap_err().kind(), Kind::NotFound);
    world.run(said).unwrap();
    let by = format!("action.settled {{\"id\":\"{}\",\"kind\":\"agent\"}}", agent.agent);
    assert!(world.ledger().contains(&by), "{}", world.ledger());
    assert_eq!(world.run(said).unwrap_err().kind(), Kind::AlreadySettled);
    assert_eq!(world.try_settle(&agent, action, status, None).unwrap_err().kind(), Kind::AlreadySettled);
    world.audit();
}

/// What the gate itself did in an agent's place it alone settles, and an action that the agent has settled before is not done.
#[test]
fn what_the_gate_did_is_settled_by_the_gate() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let asked = |world: &mut World| world.authorize(&agent, request("crm.read"));
    let body = Digest::of("what it is for");
    let used = asked(&mut world);
    let use_up = |of: &Decided| UseUp { action: of.id(), digest: of.action().digest, body };
    assert!(world.run(use_up(&used)).unwrap().is_valid());
    assert!(!world.run(use_up(&used)).unwrap().is_valid(), "once");
    for status in [OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled] {
        let refused = world.try_settle(&agent, used.id(), status, None).unwrap_err();
        assert_eq!(refused.kind(), Kind::NotAllowed);
    }
    world.run(SettleCall { caller: agent, action: used.id(), status: OutcomeStatus::Completed }).unwrap();
    let told = world.try_settle(&agent, used.id(), OutcomeStatus::Cancelled, None).unwrap_err();
    assert_eq!(told.kind(), Kind::AlreadySettled);
    for status in [OutcomeStatus::Completed, OutcomeStatus::Cancelled] {
        let settled = asked(&mut world);
        world.settle(&agent, settled.id(), status, None);
        assert!(!world.run(use_up(&settled)).unwrap().is_valid(), "{status:?}");
    }
    world.audit();
}

/// An amount where nothing is paid is refused, before the state is looked at.
#[test]
fn an_amount_without_a_payment_is_refused() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let action = world.authorize(&agent, request("crm.read")).id();
    assert_eq!(
        world.try_settle(&agent, action, OutcomeStatus::Completed, Some(0)).unwrap_err().kind(),
        Kind::InvalidAmount
    );
    world.settle(&agent, action, OutcomeStatus::Completed, None);
}

/// An amount that no reader of JSON keeps exactly, or below zero, is refused and nothing is posted; the largest one is a truth
/// that can be told, and the evidence of it is whole.
#[test]
fn an_amount_out_of_range_is_refused() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    for amount in [-1, i64::MIN, SAFE_MAX + 1, SAFE_MAX + 2, i64::MAX] {
        for said in [OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled] {
            let refused = world.try_settle(&agent, action, said, Some(amount)).unwrap_err();
            assert_eq!(refused.kind(), Kind::InvalidAmount, "{amount}");
        }
    }
    assert_eq!(world.read(&agent, action).status(), Status::Allowed);
    world.settle(&agent, action, OutcomeStatus::Completed, Some(SAFE_MAX));
    world.audit();
}

/// More than allowed, whatever the status says: the truth is posted, the incident recorded, the agent stopped.
#[test]
fn over_settlement_is_an_incident() {
    for said in [OutcomeStatus::Completed, OutcomeStatus::Failed, OutcomeStatus::Cancelled] {
        let (mut world, agent) = calm(&[PAY]);
        let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
        let settled = world.settle(&agent, action, said, Some(101));
        let incident = settled.action().incident.clone().unwrap();
        assert_eq!((incident.allowed, incident.settled), (100, 101));
        assert_eq!(settled.action().evidence, incident.evidence);
        assert_eq!(settled.action().allowed().unwrap().outcome.as_ref().unwrap().posted, Some(101));
        let row: std::sync::Arc<svc_core::state::gate::Agent> = world.row(agent.agent);
        let Standing::Frozen(frozen) = &row.standing else { panic!("{:?}", row.standing) };
        assert_eq!(
            (frozen.incident, frozen.by.clone()),
            (Some(incident.evidence), svc_core::state::gate::FrozenBy::Policy)
        );
    }
}

/// A consumed receipt is stronger than the agent's word: what was charged stays posted, and the word is signalled.
#[test]
fn consumption_outweighs_the_agents_word() {
    let (mut world, agent) = calm(&[PAY]);
    for (said, amount, is_signalled) in [
        (OutcomeStatus::Failed, None, true),
        (OutcomeStatus::Cancelled, None, true),
        (OutcomeStatus::Completed, Some(10), false),
    ] {
        let shop = format!("{}.example", said.as_str());
        let allowed = world.authorize(&agent, payment(100, "EUR", &shop));
        assert!(world.verify(allowed.receipt().unwrap(), Some(charge(90, "EUR", &shop))).is_valid());
        let settled = world.settle(&agent, allowed.id(), said, amount);
        assert_eq!(settled.action().signals.contains(&Code::SettledAfterConsumption), is_signalled, "{said:?}");
        assert_eq!(posted(&settled), Some(90), "{said:?}");
    }
}

fn posted(answer: &Decided) -> Option<i64> {
    answer.action().allowed().unwrap().outcome.as_ref().unwrap().posted
}

/// A revoked action can still be settled, since it may have happened, and keeps reading deny.
#[test]
fn a_revoked_action_can_be_settled() {
    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.freeze(agent.agent);
    let settled = world.settle(&agent, action, OutcomeStatus::Completed, Some(100));
    assert_eq!((settled.status(), settled.verb()), (Status::Completed, Verb::Deny));
    assert_eq!(codes(&settled), [Code::AgentFrozen]);
}

/// Each settlement leaves a newer record on the action.
#[test]
fn a_settlement_leaves_its_record() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let settled = world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(60));
    assert_ne!(allowed.action().evidence, settled.action().evidence);
    let entry = record(&mut world, settled.action().evidence);
    assert_eq!(&*entry.kind, "action.settled");
    let data = svc_core::value::json::Json::parse(entry.data.as_bytes()).unwrap();
    assert_eq!(data.get("posted").unwrap().as_int(), Some(60));
    assert_eq!(data.get("released").unwrap().as_int(), Some(40));
}

fn record(world: &mut World, id: EvidenceId) -> std::sync::Arc<svc_core::state::evidence::Entry> {
    world.row(id)
}
