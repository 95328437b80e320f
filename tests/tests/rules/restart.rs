//! A person starts an agent again; nothing that its stop voided comes back.

use svc_core::command::{Command, Reply};
use svc_core::refusal::Kind;
use svc_core::rules::edge::integrations::{CreateIntegration, NewSecret};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive, Vouched};
use svc_core::rules::edge::signal::{Named, Told};
use svc_core::rules::gate::fleet::Heard;
use svc_core::rules::gate::freeze::{FollowStop, FreezeAgent};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::edge::{ConfigChange, IntegrationKind, IntegrationSlot, Received};
use svc_core::state::gate::{Agent, ApprovalState, Code, OutcomeStatus, Status, Verb};
use svc_core::state::people::{MemberState, Principal, Role, Selector, Session};
use svc_core::store::Row;
use svc_core::testing::people;
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::Span;
use svc_core::value::id::AgentId;

use super::fleet::{halted, look, note, token};
use super::{PAY, ask, calm};

/// Restarts it once its stop has been followed, as a gate does.
fn restart(world: &mut World, agent: AgentId, by: By) -> Result<std::sync::Arc<Agent>, svc_core::refusal::Refusal> {
    world.engine().tick().unwrap();
    let workspace = world.workspace();
    world.run(RestartAgent { workspace, agent, by, reason: note("mended"), admin: None })
}

/// What was allowed before the stop stays revoked, what waited stays denied, and what is asked now is decided anew.
#[test]
fn nothing_old_comes_back() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let waiting = world.authorize(&agent, request("crm.read"));
    world.freeze(agent.agent);
    let back = restart(&mut world, agent.agent, By::Program).unwrap();
    assert_eq!((back.is_active(), back.epoch), (true, 1));
    let receipt = allowed.receipt().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(world.read(&agent, allowed.id()).status(), Status::Revoked);
        assert_eq!(world.read(&agent, waiting.id()).status(), Status::Denied);
        assert!(!world.verify(&receipt, Some(charge(100, "EUR", "a.example"))).is_valid());
        world.advance(Span::seconds(1));
    }
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "b.example")).0, Verb::Allow);
    let again = restart(&mut world, agent.agent, By::Program).unwrap();
    assert_eq!(again.epoch, 1, "starting an active agent changes nothing");
    world.freeze(agent.agent);
    world.run(RemoveAgent { workspace: world.workspace(), by: By::Program, agent: agent.agent }).unwrap();
    assert!(restart(&mut world, agent.agent, By::Program).is_err(), "a frozen one is removed as any, and stays so");
    world.audit();
}

/// What a stop denied or revoked fills no limit, repeats nothing and adds up to nothing once the agent runs again: the restart
/// waits until that is so.
#[test]
fn a_restart_waits_for_what_its_stop_ends() {
    let asks = r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":1000,"period":"month"},"count":{"max":2,"period":"day"},"askAbove":500}}"#;
    let (mut world, agent) = calm(&[asks]);
    assert_eq!(world.authorize(&agent, payment(550, "EUR", "a.example")).verb(), Verb::Ask);
    assert_eq!(world.authorize(&agent, payment(450, "EUR", "b.example")).verb(), Verb::Allow);
    world.freeze(agent.agent);
    let at_once = RestartAgent {
        workspace: world.workspace(),
        agent: agent.agent,
        by: By::Program,
        reason: note("mended"),
        admin: None,
    };
    assert_eq!(world.run(at_once).unwrap_err().kind(), Kind::NotReady);
    assert!(restart(&mut world, agent.agent, By::Program).unwrap().is_active());
    assert_eq!(ask(&mut world, &agent, payment(450, "EUR", "b.example")), (Verb::Allow, Vec::new()));
    world.audit();
}

/// No token restarts an agent, and no member one that is not theirs.
#[test]
fn machines_start_nothing() {
    let (mut world, agent) = calm(&[PAY]);
    world.freeze(agent.agent);
    let (machine, member) = (token(&mut world, 7), world.person(Role::Member));
    assert_eq!(restart(&mut world, agent.agent, machine).unwrap_err().kind(), Kind::MissingScope);
    assert_eq!(restart(&mut world, agent.agent, By::Person(member)).unwrap_err().kind(), Kind::NotFound);
    let auditor = world.person(Role::Auditor);
    assert_eq!(restart(&mut world, agent.agent, By::Person(auditor)).unwrap_err().kind(), Kind::Forbidden);
}

/// A stop that is followed late clears nothing of the stop after it: what was asked between the two is ended as well.
#[test]
fn a_late_follow_up_does_not_end_the_next_one() {
    let (mut world, agent) = calm(&[PAY]);
    world.freeze(agent.agent);
    restart(&mut world, agent.agent, By::Program).unwrap();
    let between = world.authorize(&agent, request("crm.read"));
    assert_eq!(between.verb(), Verb::Ask);
    world.freeze(agent.agent);
    world.run(FollowStop { agent: agent.agent, epoch: 1 }).unwrap();
    assert!(world.row::<Agent>(agent.agent).following.is_some(), "the second stop is still to be followed");
    world.advance(Span::seconds(1));
    let approval = world.read(&agent, between.id()).view().approval.clone().unwrap();
    assert!(matches!(approval.state, ApprovalState::Denied { by: None, .. }), "{:?}", approval.state);
    world.audit();
}

/// The record of a stop that came with a fleet's stands before that of the restart, also where it was still to be written.
#[test]
fn a_restart_leaves_the_stop_on_record() {
    let (mut world, agent) = calm(&[PAY]);
    let only = Selector { agents: Some([agent.agent].into_iter().collect()), ..Default::default() };
    halted(&mut world, &By::Program, &only);
    restart(&mut world, agent.agent, By::Program).unwrap();
    world.advance(Span::seconds(1));
    world.audit();
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "b.example")), (Verb::Allow, Vec::<Code>::new()));
}

/// An over-settlement's agent by its own principal: another owner or admin has to do it where there is one.
#[test]
fn an_incidents_principal_does_not_restart_alone() {
    let incident = |world: &mut World, by: &Person, agent: &svc_core::rules::gate::Caller| {
        let mut row = Agent::clone(&world.row::<Agent>(agent.agent));
        row.principal = by.principal;
        people::write(world.engine().store(), vec![Agent::wrap(row.into())]);
        world.advance(Span::minutes(11));
        let paid = world.authorize(agent, payment(100, "EUR", "a.example"));
        world.settle(agent, paid.id(), OutcomeStatus::Completed, Some(101));
        world.engine().tick().unwrap();
    };
    let (mut world, agent) = calm(&[PAY]);
    let (owner, member) = (world.owner(), world.person(Role::Member));
    incident(&mut world, &member, &agent);
    let refused = restart(&mut world, agent.agent, By::Person(member)).unwrap_err();
    assert_eq!((refused.kind(), refused.status()), (Kind::DutiesNow, 409));
    assert!(restart(&mut world, agent.agent, By::Person(owner)).unwrap().is_active());
    incident(&mut world, &owner, &agent);
    let admin = world.person(Role::Admin);
    let workspace = world.workspace();
    let told = |admin| RestartAgent { workspace, agent: agent.agent, by: By::Person(owner), reason: note("r"), admin };
    assert_eq!(world.run(told(Some(admin.principal))).unwrap_err().kind(), Kind::DutiesNow);
    let invited = world.person(Role::Admin);
    world.edit::<Principal>(invited.principal, |it| it.member.as_mut().unwrap().state = MemberState::Invited);
    assert!(world.run(told(Some(invited.principal))).unwrap().is_active(), "who has never come cannot do it");
    incident(&mut world, &owner, &agent);
    assert!(world.run(told(Some(member.principal))).unwrap().is_active(), "a member is no admin");
}

/// Has the workspace's identity provider say that somebody's account is shut.
fn shut_out(world: &mut World, whom: &Person) {
    let slot = IntegrationSlot { workspace: world.workspace(), kind: IntegrationKind::Ssf };
    let (secret, config) = (NewSecret { sealed: "sealed".into(), hint: "hint".into() }, ConfigChange::default());
    let (by, workspace, kind) = (By::Program, slot.workspace, slot.kind);
    let made = world.run(CreateIntegration { by, workspace, kind, secret, config }).unwrap();
    let found = look(world, &Selector { principal: Some(whom.principal), ..Selector::default() });
    let heard = Heard { epoch: found.epoch, agents: found.agents.into(), frozen: found.frozen, digest: found.digest };
    let named = Named::Address(world.row::<Principal>(whom.principal).email.clone());
    let told = Told { named, principal: Some(whom.principal), stop: Some((heard, note("shut out"))) };
    let deed = Deed::Signal(Box::new(told));
    let event = Event { name: EventName::Known("account-disabled"), id: None, deed };
    let (integration, vouched) = (made.id, Vouched::Config(made.config.clone()));
    let (request, kept) = (Received::request(slot, &[b"one"]), Span::minutes(15));
    world.run(Receive { slot, integration, vouched, request, kept, event }).unwrap();
}

/// Whoever was shut out where they sign in and has come back otherwise does not start what that stopped: another owner or admin does,
/// where there is one. What is stopped later is theirs to start.
#[test]
fn whoever_was_shut_out_does_not_restart_what_that_stopped() {
    for (role, alone) in [(Role::Member, false), (Role::Owner, false), (Role::Owner, true)] {
        let (mut world, agent) = calm(&[PAY]);
        let (owner, other) = (world.owner(), world.person(if alone { Role::Member } else { Role::Admin }));
        let whom = if role == Role::Owner { owner } else { world.person(role) };
        world.edit::<Agent>(agent.agent, |it| it.principal = whom.principal);
        world.advance(Span::seconds(1));
        shut_out(&mut world, &whom);
        world.advance(Span::seconds(1));
        assert_eq!(restart(&mut world, agent.agent, By::Person(whom)).unwrap_err().kind(), Kind::Unauthenticated);
        let now = world.now();
        world.edit::<Session>(whom.session().unwrap(), |it| it.created_at = now);
        let workspace = world.workspace();
        let own = RestartAgent {
            workspace,
            agent: agent.agent,
            by: By::Person(whom),
            reason: note("back"),
            admin: Some(other.principal),
        };
        if alone {
            assert!(world.run(own).unwrap().is_active(), "nobody else could");
            continue;
        }
        let refused = world.run(own.clone()).unwrap_err();
        assert_eq!((refused.kind(), refused.status()), (Kind::DutiesNow, 409));
        assert!(restart(&mut world, agent.agent, By::Person(other)).unwrap().is_active());
        world.freeze(agent.agent);
        world.engine().tick().unwrap();
        assert!(world.run(own).unwrap().is_active());
        world.audit();
    }
}

/// A thousand times: of what is asked in the freeze's own batch, what stands before it may be allowed and is void at once, and
/// nothing behind it is allowed.
#[test]
fn nothing_is_allowed_behind_a_freeze() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let mut allowed = 0;
    for trial in 0..1_000 {
        let workspace = world.workspace();
        let stop = FreezeAgent { workspace, agent: agent.agent, by: By::Program, reason: note("odd") };
        let place = trial % 3;
        let mut batch: Vec<Command> = (0..3).map(|_| world.command(&agent, request("crm.read")).into()).collect();
        batch.insert(place, stop.into());
        let replies = world.engine().execute_batch(batch).unwrap();
        for (at, reply) in replies.into_iter().enumerate() {
            let Ok(Reply::Action(view)) = reply else { continue };
            assert!(at < place || view.verb() == Verb::Deny, "trial {trial}: allowed behind the freeze");
            if view.verb() == Verb::Allow {
                allowed += 1;
                assert_eq!(world.read(&agent, view.action.id).status(), Status::Revoked);
            }
        }
        restart(&mut world, agent.agent, By::Program).unwrap();
        world.clock().set(world.now().plus(Span::minutes(11)));
    }
    assert_eq!(allowed, 999, "0, 1 or 2 stand before it");
}
