//! Rules that follow from what persons decided, and what none follows from.

use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::gate::suggest::{SUGGEST_FROM, SUGGEST_WINDOW, Suggestion, SuggestionKind, suggestions};
use svc_core::rules::people::by::{By, Person};
use svc_core::state::gate::{Action, Approval, Declared, Request};
use svc_core::testing::World;
use svc_core::testing::world::{payment, request, tool_call};
use svc_core::value::Span;
use svc_core::value::id::ApprovalId;
use svc_core::value::text::Source;

use super::{PAY, calm};

/// A world in which persons decide, and the approvals that came of it.
struct Past {
    world: World,
    agent: Caller,
    owner: Person,
    asked: Vec<ApprovalId>,
}

impl Past {
    fn new(mandates: &[&str]) -> Self {
        let (mut world, agent) = calm(mandates);
        let owner = world.owner();
        Self { world, agent, owner, asked: Vec::new() }
    }

    fn ask(&mut self, request: Request, choice: Choice) {
        self.world.advance(Span::minutes(11));
        self.world.keep_signed_in(&self.owner);
        let id = self.world.authorize(&self.agent, request).id();
        self.world.decide(&self.owner, id, choice).unwrap();
        self.asked.push(self.world.row::<Action>(id).approval.unwrap());
    }

    fn suggested(&mut self) -> Vec<Suggestion> {
        let (by, workspace, agent) = (By::Program, self.agent.workspace, self.agent.agent);
        let asked = self.asked.clone();
        self.world.engine().read(|scope| suggestions(scope, &by, workspace, agent, &asked)).unwrap()
    }
}

fn strangers(request: Request) -> Request {
    request.from_sources(vec![Declared { source: Source::parse("web").unwrap(), detail: None }])
}

/// Three approvals of a payee make a rule for that payee, at most the largest amount; two make none.
#[test]
fn three_approvals_make_a_rule() {
    let mut past = Past::new(&[]);
    for amount in [100, 300] {
        past.ask(payment(amount, "EUR", "shop.example"), Choice::Approve);
        assert_eq!(past.suggested(), []);
    }
    past.ask(payment(200, "EUR", "shop.example"), Choice::Approve);
    past.ask(payment(200, "EUR", "other.example"), Choice::Approve);
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!((rule.kind, rule.terms.limits.as_ref().unwrap().per_action), (SuggestionKind::Allow, Some(300)));
    assert_eq!(rule.would_have_saved, past.asked[..3]);
    assert_eq!(rule.terms.faults(past.world.now()), []);
    let merchants = rule.terms.merchants.unwrap().allow.unwrap();
    assert_eq!(merchants.iter().map(ToString::to_string).collect::<Vec<_>>(), ["shop.example"]);
}

/// What rests on strangers' content counts for nothing, nor does what is older than the window.
#[test]
fn strangers_content_and_the_far_past_count_for_nothing() {
    let mut past = Past::new(&[]);
    for amount in [100, 200, 300] {
        past.ask(strangers(payment(amount, "EUR", "shop.example")), Choice::Approve);
    }
    assert_eq!(past.suggested(), []);
    for amount in [100, 200, 300] {
        past.ask(payment(amount, "EUR", "shop.example"), Choice::Approve);
    }
    assert_eq!(past.suggested().len(), 1);
    past.world.advance(SUGGEST_WINDOW);
    assert_eq!(past.suggested(), []);
}

/// A payee that a person refused as well makes no allow, and three refusals alone a tightening.
#[test]
fn refusals_make_no_allow() {
    let mut past =
        Past::new(&[&PAY.replace("10000", "50").replace("\"perAction\"", "\"onLimit\":\"ask\",\"perAction\"")]);
    for amount in [100, 200, 300] {
        past.ask(payment(amount, "EUR", "shop.example"), Choice::Approve);
        past.ask(payment(amount, "EUR", "no.example"), Choice::Deny);
    }
    past.ask(payment(400, "EUR", "shop.example"), Choice::Deny);
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!((rule.kind, rule.would_have_allowed), (SuggestionKind::Tighten, 0));
    assert!(rule.replaces.is_some() && rule.terms.merchants.unwrap().deny.unwrap()[0].to_string() == "no.example");
}

/// Of an agent that asks more than is looked at, the window is what was looked at, and no allow follows: a person may have said no
/// before it.
#[test]
fn what_was_not_looked_at_is_not_told_of() {
    let mut past =
        Past::new(&[&PAY.replace("10000", "50").replace("\"perAction\"", "\"onLimit\":\"ask\",\"perAction\"")]);
    for amount in [100, 200, 300] {
        past.ask(payment(amount, "EUR", "shop.example"), Choice::Approve);
        past.ask(payment(amount, "EUR", "no.example"), Choice::Deny);
    }
    assert!(past.suggested().iter().all(|it| it.because.ends_with(" 3 times in 30 days")));
    assert_eq!(past.suggested().len(), 2);
    let oldest = past.world.row::<Approval>(past.asked[0]).created_at;
    past.asked = past.asked.iter().copied().cycle().take(SUGGEST_FROM).collect();
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!((rule.kind, rule.window), (SuggestionKind::Tighten, (oldest, past.world.now())));
    assert!(rule.because.ends_with(&format!(" times since {oldest}")), "{}", rule.because);
}

/// A tool is suggested by its exact name; what names neither merchant nor tool is suggested never.
#[test]
fn a_rule_names_its_merchant_or_its_tool() {
    let mut past = Past::new(&[]);
    for _ in 0..3 {
        past.ask(tool_call("search"), Choice::Approve);
        past.ask(tool_call("se*"), Choice::Approve);
        past.ask(request("deploy"), Choice::Approve);
    }
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!(rule.terms.tools.unwrap().allow.unwrap()[0].as_str(), "search");
}
