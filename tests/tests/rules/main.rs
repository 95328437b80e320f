//! The gate's rules, one branch to one named test, driven through `World` over the memory store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod applications;
mod ask;
mod budgets;
mod buttons;
mod callbacks;
mod conflicts;
mod connect;
mod decide;
mod drill;
mod export;
mod fleet;
mod holds;
mod idle;
mod integrations;
mod keys;
mod kinds;
mod leave;
mod ledger;
mod limits;
mod mandates;
mod mcp_servers;
mod members;
mod names;
mod people;
mod provenance;
mod published;
mod ran;
mod receive;
mod refused;
mod release;
mod requests;
mod restart;
mod routing;
mod sealed;
mod settle;
mod sign_in;
mod single_sign_on;
mod stop;
mod suggest;
mod sums;
mod sweep;
mod taken;
mod taken_back;
mod tell;
mod tree;
mod usage;
mod velocity;
mod verify;

use svc_core::answer::Decided;
use svc_core::rules::gate::Caller;
use svc_core::state::gate::{Code, Effect, Request, Status, Verb};
use svc_core::state::people::Settings;
use svc_core::testing::world::{World, request, terms};

/// The codes of an answer's reasons, in their order.
fn codes(answer: &Decided) -> Vec<Code> {
    answer.reasons().iter().map(|it| it.code).collect()
}

/// Asks, and gives what the answer comes to and why.
fn ask(world: &mut World, agent: &Caller, request: Request) -> (Verb, Vec<Code>) {
    let answer = world.authorize(agent, request);
    (answer.verb(), codes(&answer))
}

/// A world whose velocity is out of the way, with an agent of these mandates.
fn calm(mandates: &[&str]) -> (World, Caller) {
    with(fast(), mandates)
}

/// A world with these settings and an agent of these mandates.
fn with(settings: Settings, mandates: &[&str]) -> (World, Caller) {
    let mut world = World::with(settings);
    let mut agent = world.agent();
    for mandate in mandates {
        agent = agent.with_mandate(terms(mandate));
    }
    let caller = agent.register();
    (world, caller)
}

/// Settings with velocity lines that no test of something else fills.
fn fast() -> Settings {
    let mut settings = Settings::default();
    settings.agent_velocity.other_count = 100_000;
    settings.agent_velocity.tool_count = 100_000;
    settings
}

/// The one reason of an answer.
fn only(answer: &Decided) -> svc_core::state::gate::Reason {
    let mut reasons = answer.reasons();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

/// A mandate for payments of up to 100.00 EUR without more.
const PAY: &str = r#"{"name":"Pay","actions":["payment"],"limits":{"currency":"EUR","perAction":10000}}"#;

/// Deny overrides ask, and both are told: no reason is left out for another.
#[test]
fn deny_overrides_ask_and_every_reason_is_kept() {
    let deny = r#"{"name":"No","actions":["crm.read"],"merchants":{"deny":["bad.example"]}}"#;
    let asks = r#"{"name":"Pay","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,"askAbove":100}}"#;
    let (mut world, agent) = calm(&[deny, asks]);
    let answer = world.authorize(&agent, svc_core::testing::world::payment(5_000, "EUR", "shop.bad.example"));
    assert_eq!(answer.verb(), Verb::Ask, "a pattern without `*.` covers itself alone");
    let answer = world.authorize(&agent, svc_core::testing::world::payment(5_000, "EUR", "bad.example"));
    assert_eq!((answer.verb(), answer.status()), (Verb::Deny, Status::Denied));
    let said: Vec<_> = answer.reasons().iter().map(|it| (it.code, it.effect)).collect();
    assert!(said.contains(&(Code::MerchantDenied, Effect::Deny)), "{said:?}");
    assert!(said.contains(&(Code::AboveAskThreshold, Effect::Ask)), "{said:?}");
}

/// A plain allow has no reason, a receipt, and the mandate that was charged.
#[test]
fn a_plain_allow_has_no_reason() {
    let (mut world, agent) = calm(&[PAY]);
    let answer = world.authorize(&agent, svc_core::testing::world::payment(10_000, "EUR", "shop.example.com"));
    assert_eq!((answer.verb(), answer.status()), (Verb::Allow, Status::Allowed));
    assert!(answer.reasons().is_empty() && answer.receipt().is_some());
    assert_eq!(answer.action().mandate.unwrap().version, 1);
}

/// The newest callback is the action's one: another registration takes the place of the one before.
#[test]
fn an_action_has_one_callback() {
    use svc_core::rules::gate::callback::RegisterCallback;
    use svc_core::value::text::UrlText;

    let (mut world, agent) = calm(&[PAY]);
    let action = world.authorize(&agent, request("crm.read")).id();
    let mut register = |url| {
        let url = UrlText::parse(url).unwrap();
        world.run(RegisterCallback { caller: agent, action, url }).unwrap().callback
    };
    let first = register("https://hooks.example.com/a");
    let second = register("https://hooks.example.com/b");
    assert_ne!(first.id, second.id);
    let row: std::sync::Arc<svc_core::state::gate::Action> = world.row(action);
    assert_eq!(row.callback.as_deref(), Some(&second));
}
