//! Drills: one an hour a token, a canary that never acts, and what is left of one that came to no end.

use svc_core::refusal::Kind;
use svc_core::rules::gate::drill::{EndDrill, FreezeCanary, StartDrill, Started};
use svc_core::rules::gate::lift::LiftHold;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{Content, GrantMandate};
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::state::gate::{
    Agent, Code, DRILL_EVERY, DRILL_LIFE, Drill, DrillPoint, DrillState, DrillStep, FREEZE_WITHIN, FrozenBy, Standing,
    Status, Verb,
};
use svc_core::state::people::{Roster, Selector};
use svc_core::testing::World;
use svc_core::testing::world::{payment, tool_call};
use svc_core::value::Span;
use svc_core::value::id::AgentId;
use svc_core::value::text::Note;

use super::fleet::{fleet, halted, token};
use super::{ask, codes};

fn start(world: &World, by: &By, targets: &[AgentId], text: &str) -> StartDrill {
    let (workspace, by, targets) = (world.workspace(), by.clone(), targets.to_vec());
    StartDrill { workspace, by, targets, reason: None, key: NewKey::of(text) }
}

fn end(started: &Started, ok: bool) -> EndDrill {
    let step = DrillStep { point: DrillPoint::Authorize, expected: "a".into(), got: "b".into(), ms: 1, ok };
    EndDrill { drill: started.drill.id, steps: vec![step], contained_ms: 7 }
}

/// A token starts one an hour, to the millisecond; another agent's drill is told how long to wait.
#[test]
fn a_token_starts_one_drill_an_hour() {
    let (mut world, agents) = fleet(1);
    let by = token(&mut world, 7);
    let first = world.run(start(&world, &by, &[agents[0].agent], "ask_1")).unwrap();
    world.run(end(&first, true)).unwrap();
    world.advance(Span::millis(1));
    let refused = world.run(start(&world, &by, &[], "ask_2")).unwrap_err();
    assert_eq!((refused.kind(), refused.retry_after_s()), (Kind::DrillCooldown, Some(3_600)));
    world.advance(Span::millis(DRILL_EVERY.as_millis() - 2));
    assert_eq!(world.run(start(&world, &by, &[], "ask_2")).unwrap_err().retry_after_s(), Some(1));
    world.advance(Span::millis(1));
    world.run(start(&world, &by, &[], "ask_2")).unwrap();
    let other = token(&mut world, 8);
    world.run(start(&world, &other, &[], "ask_3")).unwrap();
    world.audit();
}

/// Under a hold over every agent nothing is tried: nothing is made or allowed, no hour begins, and the refusal names the hold.
#[test]
fn a_drill_waits_for_the_end_of_a_hold_over_all() {
    let (mut world, agents) = fleet(1);
    let by = token(&mut world, 7);
    let hold = halted(&mut world, &By::Program, &Selector::everyone()).hold.unwrap();
    let before = world.ledger();
    let refused = world.run(start(&world, &by, &[agents[0].agent], "ask_1")).unwrap_err();
    assert_eq!((refused.kind(), refused.hold()), (Kind::NotAllowed, Some(hold.to_string().as_str())));
    assert_eq!(world.ledger(), before);
    let (workspace, reason) = (world.workspace(), Note::parse("it is over").unwrap());
    world.run(LiftHold { workspace, hold, by: By::Program, reason, restart: false }).unwrap();
    world.run(start(&world, &by, &[agents[0].agent], "ask_1")).unwrap();
    world.audit();
}

/// A canary has its target's mandates with nothing left in them, so nothing that it asks for is allowed, frozen or not, and what
/// the drill put down as allowed is void once it is frozen; when the drill is over it is gone, and counts no more.
#[test]
fn a_canary_is_allowed_nothing_and_removed() {
    let (mut world, agents) = fleet(1);
    let target = agents[0].agent;
    let before = world.row::<Roster>(world.workspace());
    let (of_target, by) = (world.row::<Agent>(target), token(&mut world, 7));
    let started = world.run(start(&world, &by, &[target], "ask_1")).unwrap();
    let canary = world.row::<Agent>(started.drill.canary);
    assert_eq!((canary.principal, canary.mandates.len()), (of_target.principal, of_target.mandates.len()));
    assert_eq!(ask(&mut world, &started.canary, payment(1, "EUR", "shop.example")).0, Verb::Ask);
    assert_ne!(ask(&mut world, &started.canary, tool_call("crm.read")).0, Verb::Allow);
    let stands = |world: &mut World| world.read(&started.canary, started.allowed.id).status();
    assert_eq!(stands(&mut world), Status::Allowed, "so that there is a receipt to be voided");
    world.run(FreezeCanary(started.drill.id)).unwrap();
    assert_eq!(stands(&mut world), Status::Revoked);
    let frozen = world.row::<Agent>(canary.id);
    assert_eq!(frozen.frozen().unwrap().by, FrozenBy::Drill(started.drill.id));
    let denied = world.authorize(&started.canary, payment(1, "EUR", "shop.example"));
    assert_eq!((denied.verb(), codes(&denied)), (Verb::Deny, vec![Code::AgentFrozen]));
    let ended = world.run(end(&started, true)).unwrap();
    assert_eq!((ended.state, ended.contained_ms), (DrillState::Passed, Some(7)));
    assert!(matches!(world.row::<Agent>(canary.id).standing, Standing::Removed { .. }));
    let after = world.row::<Roster>(world.workspace());
    assert_eq!((after.agents, after.mandates), (before.agents, before.mandates));
    assert!(world.row::<Agent>(target).is_active(), "the target is left alone");
    world.advance(DRILL_LIFE);
    assert_eq!(world.run(end(&started, false)).unwrap().state, DrillState::Passed, "what is over stays so");
    for kind in ["drill.started", "drill.passed"] {
        assert!(world.ledger().contains(kind), "{kind}");
    }
    world.audit();
}

/// One wrong answer fails a drill, and so does a freeze that never was.
#[test]
fn a_drill_passes_only_where_all_refused() {
    let (mut world, _) = fleet(1);
    for (number, (freezes, ok)) in [(true, false), (false, true)].into_iter().enumerate() {
        let started = world.run(start(&world, &By::Program, &[], &format!("ask_{number}"))).unwrap();
        if freezes {
            world.run(FreezeCanary(started.drill.id)).unwrap();
        }
        assert_eq!(world.run(end(&started, ok)).unwrap().state, DrillState::Failed);
    }
    assert!(world.ledger().contains("drill.failed"));
    world.audit();
}

/// One whose canary is frozen has the rest of its time to come to its end.
#[test]
fn a_drill_whose_canary_is_frozen_runs_on() {
    let (mut world, _) = fleet(1);
    let started = world.run(start(&world, &By::Program, &[], "ask_1")).unwrap();
    world.run(FreezeCanary(started.drill.id)).unwrap();
    world.advance(Span::millis(DRILL_LIFE.as_millis() - 1));
    assert_eq!(world.row::<Drill>(started.drill.id).state, DrillState::Running);
    world.advance(Span::millis(1));
    assert_eq!(world.row::<Drill>(started.drill.id).state, DrillState::Failed);
}

/// A drill that a crash left running before it came to its freeze has failed within seconds, and its canary is left frozen.
#[test]
fn a_drill_that_came_to_no_end_leaves_its_canary_frozen() {
    let (mut world, agents) = fleet(1);
    let roster = world.row::<Roster>(world.workspace());
    let before = (roster.agents, roster.mandates);
    let started = world.run(start(&world, &By::Program, &[agents[0].agent], "ask_1")).unwrap();
    world.advance(Span::millis(FREEZE_WITHIN.as_millis() - 1));
    assert_eq!(world.row::<Drill>(started.drill.id).state, DrillState::Running);
    world.advance(Span::millis(1));
    assert_eq!(world.row::<Drill>(started.drill.id).state, DrillState::Failed);
    let canary = started.drill.canary;
    assert!(world.row::<Agent>(canary).frozen().is_some());
    assert!(world.ledger().contains("drill.failed"));
    let places = |world: &mut World| {
        let roster = world.row::<Roster>(world.workspace());
        (roster.agents, roster.mandates)
    };
    assert_eq!(places(&mut world), before, "it takes no place of the plan");
    let (workspace, by) = (world.workspace(), By::Person(world.owner()));
    let reason = Note::parse("it looks idle").unwrap();
    let restart = RestartAgent { workspace, agent: canary, by: by.clone(), reason, admin: None };
    assert_eq!(world.run(restart).unwrap_err().kind(), Kind::NotAllowed);
    let content = Content::Template("office-supplies".into());
    let grant = GrantMandate { by: by.clone(), ..GrantMandate::new(workspace, canary, content) };
    assert_eq!(world.run(grant).unwrap_err().kind(), Kind::NotAllowed);
    world.run(RemoveAgent { workspace, by, agent: canary }).unwrap();
    assert_eq!(places(&mut world), before, "nor does its removal give one back");
    world.audit();
}
