//! Velocity lines: exact sliding windows that never consume each other.

use svc_core::rules::gate::{Caller, velocity};
use svc_core::state::gate::{Activity, Code, Verb};
use svc_core::state::people::{Settings, Workspace};
use svc_core::testing::world::{World, key, paying, payment, request, tool_call};
use svc_core::value::Span;

use super::{PAY, ask, only, with};

const ALL: &str = r#"{"name":"All","actions":["tool.call","tool.*","mcp.*","crm.*"]}"#;

/// Ten other actions in ten minutes, then the next asks, with what is used and when there is room again.
#[test]
fn the_eleventh_action_asks() {
    let (mut world, agent) = with(Settings::default(), &[ALL]);
    for _ in 0..10 {
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
        world.advance(Span::seconds(1));
    }
    let second = world.now().minus(Span::seconds(9));
    let full = world.authorize(&agent, request("crm.read"));
    let reason = only(&full);
    assert_eq!(
        (full.verb(), reason.code, reason.used, reason.limit),
        (Verb::Ask, Code::VelocityExceeded, Some(10), Some(10))
    );
    assert_eq!((reason.window.as_deref(), reason.clears_at), (Some("10m"), Some(second.plus(Span::minutes(10)))));
}

/// Who asks again at the instant that was told is let through, and not a moment before: what was asked took a place itself,
/// what was denied took none.
#[test]
fn a_line_clears_when_it_was_told_to() {
    for (limit, denied) in [(10, false), (10, true), (1, false), (1, true)] {
        let mut settings = Settings::default();
        settings.agent_velocity.other_count = limit;
        let (mut world, agent) = with(settings, &[ALL, PAY]);
        for _ in 0..limit {
            assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
            world.advance(Span::seconds(30));
        }
        let asked = if denied { payment(10_001, "EUR", "a.example") } else { request("crm.read") };
        let full = world.authorize(&agent, asked);
        assert_eq!(full.verb(), if denied { Verb::Deny } else { Verb::Ask });
        let told = full.reasons().iter().find(|it| it.code == Code::VelocityExceeded).unwrap().clears_at.unwrap();
        world.advance(told.minus(Span::millis(1)).since(world.now()));
        assert_eq!(used(&mut world, &agent), limit as usize, "{limit}, {denied}: not yet");
        world.advance(Span::millis(1));
        assert_eq!(used(&mut world, &agent), limit as usize - 1, "{limit}, {denied}");
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow, "{limit}, {denied}");
    }
}

/// The window slides to the millisecond: an instant leaves exactly ten minutes after it came.
#[test]
fn the_window_slides_exactly() {
    let (mut world, agent) = with(Settings::default(), &[ALL]);
    for _ in 0..10 {
        world.authorize(&agent, request("crm.read"));
    }
    world.advance(Span::millis(10 * 60_000 - 1));
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask);
    world.advance(Span::millis(1));
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow, "ten left, the asked one counts alone");
}

/// Two hundred tool calls fill their line and leave the other one empty, and the other way round.
#[test]
fn the_lines_never_consume_each_other() {
    let (mut world, agent) = with(Settings::default(), &[ALL]);
    for call in 0..200 {
        let kind = ["tool.call", "tool.search", "mcp.call"][call % 3];
        assert_eq!(ask(&mut world, &agent, request(kind)).0, Verb::Allow, "call {call}");
    }
    assert_eq!(ask(&mut world, &agent, tool_call("x")), (Verb::Ask, vec![Code::VelocityExceeded]));
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
}

/// A payment by a tool type goes by its type's line, and is a payment to every other rule.
#[test]
fn the_line_goes_by_the_type() {
    let (mut world, agent) = with(Settings::default(), &[ALL]);
    assert_eq!(
        ask(&mut world, &agent, paying("tool.buy", 100, "EUR", "a.example")),
        (Verb::Ask, vec![Code::CurrencyNotCovered])
    );
    let row: std::sync::Arc<Activity> = world.row(agent.agent);
    assert_eq!((row.tools.len(), row.others.len()), (1, 0));
}

/// Denials and replays leave a line as it is.
#[test]
fn denials_and_replays_do_not_count() {
    let (mut world, agent) = with(Settings::default(), &[PAY]);
    for _ in 0..20 {
        assert_eq!(ask(&mut world, &agent, payment(10_001, "EUR", "a.example")).0, Verb::Deny);
        world.authorize(&agent, payment(100, "EUR", "b.example").keyed(key("one")));
    }
    let row: std::sync::Arc<Activity> = world.row(agent.agent);
    assert_eq!(row.others.len(), 1);
}

/// A line of a thousand lies in sealed blocks; a full one counts exactly, and the past of more than a day is let go.
#[test]
fn a_long_line_is_exact_and_forgets() {
    let mut settings = Settings::default();
    settings.agent_velocity.other_count = 1_000;
    settings.agent_velocity.minutes = 60;
    let (mut world, agent) = with(settings, &[ALL]);
    for _ in 0..1_000 {
        world.advance(Span::seconds(1));
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
    }
    let full = world.authorize(&agent, request("crm.read"));
    assert_eq!((full.verb(), only(&full).used), (Verb::Ask, Some(1_000)));
    let further = world.authorize(&agent, request("crm.read"));
    assert_eq!(only(&further).used, Some(1_001), "what was asked counts");
    for _ in 0..30 {
        world.advance(Span::hours(48));
        for _ in 0..64 {
            world.authorize(&agent, request("crm.read"));
        }
    }
    let row: std::sync::Arc<Activity> = world.row(agent.agent);
    assert!(row.others.sealed - row.others.first <= 3, "{} blocks are kept", row.others.sealed - row.others.first);
    assert_eq!(blocks(&mut world), usize::try_from(row.others.sealed - row.others.first).unwrap());
}

/// How much of the line of actions that are no tool calls is used.
fn used(world: &mut World, agent: &Caller) -> usize {
    let (activity, workspace) = (world.row::<Activity>(agent.agent), world.row::<Workspace>(agent.workspace));
    world.engine().read(|scope| velocity::used(scope, &activity, false, &workspace.settings)).unwrap().used
}

fn blocks(world: &mut World) -> usize {
    world.rows().iter().filter(|(key, ..)| key.table() == svc_core::store::Table::Block).count()
}
