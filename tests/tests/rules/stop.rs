//! A stopped agent reads no allow that it could still act on.

use svc_core::refusal::Kind;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::state::gate::{ApprovalState, Code, DecidedBy, OutcomeStatus, Status, Verb};
use svc_core::state::people::KeyScope;
use svc_core::testing::world::{World, charge, key, payment, request};
use svc_core::value::Span;
use svc_core::value::text::Note;

use super::{PAY, ask, calm, codes};

/// From the freeze's commit on: what waits reads denied, what was allowed and unused reads revoked, and asking is denied.
#[test]
fn a_freeze_voids_what_stands() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let asked = world.authorize(&agent, request("crm.read")).id();
    world.freeze(agent.agent);
    let read = world.read(&agent, allowed.id());
    assert_eq!((read.status(), read.verb(), read.receipt()), (Status::Revoked, Verb::Deny, None));
    assert_eq!(codes(&read), [Code::AgentFrozen]);
    let waiting = world.read(&agent, asked);
    assert_eq!((waiting.status(), waiting.view().decided().unwrap().1), (Status::Denied, DecidedBy::Freeze));
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "b.example")), (Verb::Deny, vec![Code::AgentFrozen]));
    assert!(!world.verify(allowed.receipt().unwrap(), Some(charge(100, "EUR", "a.example"))).is_valid());
}

/// What a second later follows: the approval ended, its reservation released, a record on each revoked action, once.
#[test]
fn a_freeze_is_followed_within_a_second() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let asked = world.authorize(&agent, request("crm.read"));
    world.freeze(agent.agent);
    world.advance(Span::seconds(1));
    let read = world.read(&agent, asked.id());
    let approval = read.view().approval.clone().unwrap();
    assert!(matches!(approval.state, ApprovalState::Denied { by: None, .. }), "{:?}", approval.state);
    let first = world.read(&agent, allowed.id()).action().evidence;
    assert_ne!(first, allowed.action().evidence);
    let entry: std::sync::Arc<svc_core::state::evidence::Entry> = world.row(first);
    assert_eq!(&*entry.kind, "action.revoked");
    world.advance(Span::hours(1));
    assert_eq!(world.read(&agent, allowed.id()).action().evidence, first, "recorded once");
}

/// Consumed, settled and lapsed actions keep what they read.
#[test]
fn what_is_over_keeps_its_status() {
    let (mut world, agent) = calm(&[PAY, r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let lapsed = world.authorize(&agent, request("crm.read")).id();
    world.advance(Span::hours(25));
    let consumed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    assert!(world.verify(consumed.receipt().unwrap(), Some(charge(100, "EUR", "a.example"))).is_valid());
    let settled = world.authorize(&agent, payment(100, "EUR", "b.example")).id();
    world.settle(&agent, settled, OutcomeStatus::Failed, None);
    world.freeze(agent.agent);
    world.advance(Span::seconds(1));
    for (action, status) in [(consumed.id(), Status::Allowed), (settled, Status::Failed), (lapsed, Status::Lapsed)] {
        assert_eq!(world.read(&agent, action).status(), status);
    }
    assert_eq!(world.read(&agent, consumed.id()).receipt(), None, "a stopped agent is given no receipt");
}

/// The stop is looked at before the idempotency key: a replay is a fresh deny that is not kept under the key.
#[test]
fn a_stopped_agents_replay_is_a_fresh_deny() {
    let (mut world, agent) = calm(&[PAY]);
    let keyed = || payment(100, "EUR", "a.example").keyed(key("order-1"));
    let first = world.authorize(&agent, keyed());
    world.freeze(agent.agent);
    let second = world.authorize(&agent, keyed());
    assert_ne!(second.id(), first.id());
    assert_eq!((second.verb(), codes(&second), second.is_replay()), (Verb::Deny, vec![Code::AgentFrozen], false));
    assert_ne!(world.authorize(&agent, keyed()).id(), second.id());
}

/// A revoked action stays revoked when its time to lapse comes; what it held is posted.
#[test]
fn a_revoked_action_stays_revoked() {
    let month = r#"{"name":"M","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":10000,"period":"month"}}}"#;
    let (mut world, agent) = calm(&[month]);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.freeze(agent.agent);
    world.advance(Span::hours(25));
    assert_eq!(world.read(&agent, action).status(), Status::Revoked);
    let row: std::sync::Arc<svc_core::state::gate::Activity> = world.row(agent.agent);
    assert_eq!((row.tallies[0].reserved, row.tallies[0].spent), (0, 100));
}

/// A revoked key is no key, and a removed agent is told so by every key it had.
#[test]
fn keys_and_agents_end() {
    let (mut world, agent) = calm(&[PAY]);
    let row: std::sync::Arc<svc_core::state::gate::Agent> = world.row(agent.agent);
    let credential = row.keys[0].credential;
    let stored: std::sync::Arc<svc_core::state::people::Credential> = world.row(credential);
    assert_eq!(stored.binding.scope, KeyScope::Agent(agent.agent));
    let revoke = svc_core::rules::people::keys::RevokeKey { workspace: agent.workspace, by: By::Program, credential };
    world.run(revoke).unwrap();
    let refused = world.try_authorize(&agent, payment(1, "EUR", "a.example")).unwrap_err();
    assert_eq!(refused.kind(), Kind::InvalidApiKey);
    let other = world.agent().with_mandate(svc_core::testing::world::terms(PAY)).register();
    let remove = svc_core::rules::people::register_agent::RemoveAgent {
        workspace: other.workspace,
        by: By::Program,
        agent: other.agent,
    };
    world.run(remove).unwrap();
    let refused = world.try_authorize(&other, payment(1, "EUR", "a.example")).unwrap_err();
    assert_eq!((refused.kind(), refused.agent_id()), (Kind::AgentNotFound, Some(&*other.agent.to_string())));
}

/// A key that ends by itself is no key from that instant on.
#[test]
fn a_key_ends_by_itself() {
    use svc_core::rules::gate::Caller;
    use svc_core::rules::people::keys::{CreateKey, NewKey};

    let (mut world, agent) = calm(&[PAY]);
    let key = NewKey::of("ask_for_an_hour");
    let made = CreateKey {
        expires_at: Some(world.now().plus(Span::hours(1))),
        ..CreateKey::new(agent.workspace, By::Program, KeyScope::Agent(agent.agent), key)
    };
    let brief = Caller::of(&world.run(made).unwrap().binding).unwrap();
    world.advance(Span::millis(3_600_000 - 1));
    assert_eq!(ask(&mut world, &brief, payment(1, "EUR", "a.example")).0, Verb::Allow);
    world.advance(Span::millis(1));
    let refused = world.try_authorize(&brief, payment(1, "EUR", "b.example")).unwrap_err();
    assert_eq!(refused.kind(), Kind::InvalidApiKey);
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "b.example")).0, Verb::Allow);
}

/// Every stop is seen by whoever has selected agents meanwhile: the roster's epoch grows, at an incident's stop too, and
/// stopping a stopped agent changes nothing.
#[test]
fn every_stop_is_seen_by_the_roster() {
    let (mut world, agent) = calm(&[PAY]);
    let other = world.agent().with_mandate(svc_core::testing::world::terms(PAY)).register();
    let epoch = |world: &mut World| world.row::<svc_core::state::people::Roster>(agent.workspace).epoch;
    let before = epoch(&mut world);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    world.settle(&agent, allowed, OutcomeStatus::Completed, Some(101));
    assert_eq!(epoch(&mut world), before + 1);
    world.freeze(other.agent);
    assert_eq!(epoch(&mut world), before + 2);
    world.freeze(other.agent);
    assert_eq!(epoch(&mut world), before + 2);
}

/// It stays revoked however often its agent is stopped after that: also where the stop that voided it is remembered no more,
/// nothing woke for its lapse, and it is settled only then.
#[test]
fn a_revoked_action_stays_revoked_behind_many_stops() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.*"]}"#]);
    let action = world.authorize(&agent, request("crm.update")).id();
    let (workspace, reason) = (world.workspace(), Note::parse("mended").unwrap());
    for stop in 0..70 {
        world.freeze(agent.agent);
        world.advance(Span::seconds(1));
        let (agent, reason) = (agent.agent, reason.clone());
        world.run(RestartAgent { workspace, agent, by: By::Program, reason, admin: None }).unwrap();
        if stop == 0 {
            world.advance(Span::hours(40));
        }
        world.advance(Span::seconds(1));
    }
    let read = world.read(&agent, action);
    assert_eq!((read.status(), read.verb()), (Status::Revoked, Verb::Deny));
    let settled = world.settle(&agent, action, OutcomeStatus::Completed, None);
    assert_eq!((settled.status(), settled.verb()), (Status::Completed, Verb::Deny));
    world.audit();
}

/// What a stop or time has done and no record tells yet is recorded for whoever is to be told of it, once; of these a wait that has
/// ended by time alone may yet come to something else.
#[test]
fn what_no_record_tells_is_recorded_for_whoever_asks() {
    for (is_allowed, is_frozen, kind) in
        [(true, true, "action.revoked"), (false, true, "action.denied"), (false, false, "action.expired")]
    {
        let (mut world, agent) = calm(&[PAY]);
        let asked = if is_allowed { payment(100, "EUR", "a.example") } else { request("crm.read") };
        let id = world.authorize(&agent, asked).id();
        let untold = |world: &mut World| world.read(&agent, id).view().untold();
        let recorded = |world: &mut World| world.ledger().lines().filter(|it| it.starts_with(kind)).count();
        assert_eq!(untold(&mut world), None, "{kind}");
        if is_frozen {
            world.freeze(agent.agent);
        } else {
            world.clock().advance(Span::hours(24));
        }
        let it = untold(&mut world).unwrap();
        assert_eq!((it.is_open(), recorded(&mut world)), (!is_frozen, 0), "{kind}");
        for _ in 0..2 {
            world.run(it).unwrap();
            assert_eq!((untold(&mut world), recorded(&mut world)), (None, 1), "{kind}");
        }
    }
}
