//! Rules that follow from what persons decided, and what none follows from.

use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::gate::suggest::{self, Fields, SUGGEST_FROM, SUGGEST_WINDOW, Suggestion, SuggestionKind};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::mandates::{ChangeMandate, Content, GrantMandate, RevokeMandate};
use svc_core::state::gate::{
    Action, Agent, Approval, Declared, Details, Duplicates, MerchantsChange, Request, Set, Terms, TermsChange, Tier,
    Verb,
};
use svc_core::testing::World;
use svc_core::testing::world::{payment, request, terms, tool_call};
use svc_core::value::Span;
use svc_core::value::id::{ApprovalId, MandateId};
use svc_core::value::json::Json;
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

    /// Payments of these amounts to one merchant, each decided so.
    fn pay(&mut self, amounts: &[i64], domain: &str, choice: Choice) {
        for amount in amounts {
            self.ask(payment(*amount, "EUR", domain), choice);
        }
    }

    /// What the gate says now.
    fn verb(&mut self, request: Request) -> Verb {
        self.world.advance(Span::minutes(11));
        self.world.authorize(&self.agent, request).verb()
    }

    fn grant(&mut self, terms: Terms) -> MandateId {
        let content = Content::Whole(Box::new(terms));
        let grant = GrantMandate::new(self.agent.workspace, self.agent.agent, content);
        self.world.run(GrantMandate { confirm_broaden: true, ..grant }).unwrap().id.mandate
    }

    /// Puts what the rule says in the place of what it replaces.
    fn tighten(&mut self, rule: &Suggestion) {
        let deny = rule.terms.merchants.clone().unwrap().deny.unwrap();
        let merchants = MerchantsChange { allow: Set::Keep, deny: Set::To(deny) };
        let change = TermsChange { merchants: Set::To(merchants), ..TermsChange::default() };
        let (workspace, agent, by) = (self.agent.workspace, self.agent.agent, By::Program);
        let (mandate, paused, counted) = (rule.replaces.unwrap(), None, None);
        let confirm_broaden = false;
        self.world
            .run(ChangeMandate { workspace, by, agent, mandate, change, paused, confirm_broaden, counted })
            .unwrap();
    }

    fn suggested(&mut self) -> Vec<Suggestion> {
        let (by, workspace, agent) = (By::Program, self.agent.workspace, self.agent.agent);
        let engine = self.world.engine();
        let mut past = engine.read(|scope| suggest::Past::of(scope, &by, workspace, agent)).unwrap();
        for page in self.asked.chunks(2) {
            let read = engine.read(|scope| past.read(scope, page)).unwrap();
            past.take(read);
        }
        let weighing = past.weighing();
        let mut follows = |subject| {
            let mut fields = Fields::default();
            for page in weighing.detailed(subject).chunks(2) {
                fields.take(engine.read(|scope| weighing.fields(scope, page)).unwrap());
            }
            weighing.follows(subject, &fields)
        };
        weighing.subjects().iter().filter_map(&mut follows).collect()
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

    let mut past =
        Past::new(&[&PAY.replace("10000", "50").replace("\"perAction\"", "\"onLimit\":\"ask\",\"perAction\"")]);
    for (amount, strange, count) in
        [(100, true, 0), (200, true, 0), (300, true, 0), (400, false, 0), (500, false, 0), (600, false, 1)]
    {
        let asked = payment(amount, "EUR", "no.example");
        past.ask(if strange { strangers(asked) } else { asked }, Choice::Deny);
        assert_eq!(past.suggested().len(), count, "refusals count alike: {amount}");
    }
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

/// What pays a merchant up to an amount, and asks above another one.
fn asking(above: i64, most: i64, domain: &str) -> String {
    format!(
        r#"{{"name":"Asks","actions":["payment"],"duplicates":"record","merchants":{{"allow":["{domain}"]}},
            "limits":{{"currency":"EUR","perAction":{most},"askAbove":{above}}}}}"#
    )
}

/// A rule that was granted is suggested no more, until it is gone: then the same one is again. What it does not cover makes another,
/// which tells of that alone.
#[test]
fn a_rule_in_force_is_not_suggested() {
    let mut past = Past::new(&[]);
    past.pay(&[100, 300, 200], "shop.example", Choice::Approve);
    let [rule] = past.suggested().try_into().unwrap();
    let mandate = past.grant(rule.terms.clone());
    assert_eq!(past.suggested(), []);
    past.pay(&[301, 400, 302], "shop.example", Choice::Approve);
    let [wider] = past.suggested().try_into().unwrap();
    assert_eq!(wider.would_have_saved, past.asked[3..]);
    assert_eq!((wider.would_have_allowed, wider.terms.limits.unwrap().per_action), (3, Some(400)));
    past.asked.truncate(3);
    let (workspace, agent) = (past.agent.workspace, past.agent.agent);
    past.world.run(RevokeMandate { workspace, by: By::Program, agent, mandate }).unwrap();
    let [again] = past.suggested().try_into().unwrap();
    assert_eq!((again.id, again.would_have_saved), (rule.id, past.asked.clone()));
}

/// A rule that the gate would not choose saves nobody a question: the older of two mandates that leave as much is charged, and asks.
#[test]
fn a_rule_that_is_never_chosen_is_not_suggested() {
    for (most, is_chosen) in [(300, false), (301, true)] {
        let mut past = Past::new(&[&asking(10, most, "shop.example")]);
        past.pay(&[300, 200, 250], "shop.example", Choice::Approve);
        let Some(rule) = past.suggested().pop() else {
            assert!(!is_chosen, "{most}");
            past.grant(terms(&asking(300, 300, "shop.example")));
            assert_eq!(past.verb(payment(200, "EUR", "shop.example")), Verb::Ask);
            continue;
        };
        assert!(is_chosen, "{most}: {rule:?}");
        assert_eq!((rule.would_have_saved.len(), rule.would_have_allowed), (3, 3));
        past.grant(rule.terms);
        past.world.advance(Span::hours(24));
        assert_eq!(past.verb(payment(200, "EUR", "shop.example")), Verb::Allow);
    }
}

/// What is counted is what would be asked or denied as things stand: a mandate of since that covers some of it leaves the rest.
#[test]
fn what_is_covered_already_counts_for_nothing() {
    let mut past = Past::new(&[]);
    past.pay(&[100, 200, 300, 400], "shop.example", Choice::Approve);
    past.grant(terms(&asking(100, 100, "shop.example")));
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!((rule.would_have_saved, rule.would_have_allowed), (past.asked[1..].to_vec(), 3));
    past.grant(terms(&asking(200, 200, "shop.example")));
    assert_eq!(past.suggested(), [], "two are no three");
}

/// A limit that was full when a person was asked made it ask, though its period has ended since.
#[test]
fn a_limit_that_was_full_made_it_ask() {
    let full = asking(1_000, 1_000, "shop.example")
        .replace("\"askAbove\"", "\"onLimit\":\"ask\",\"perPeriod\":{\"amount\":100,\"period\":\"day\"},\"askAbove\"");
    let mut past = Past::new(&[&full]);
    assert_eq!(past.verb(payment(90, "EUR", "shop.example")), Verb::Allow);
    past.pay(&[60, 70, 80], "shop.example", Choice::Approve);
    past.world.advance(Span::hours(48));
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!(rule.would_have_saved, past.asked);
    past.grant(rule.terms);
    assert_eq!(past.suggested(), []);
}

/// Where a mandate denies the merchant since, nothing is suggested: no mandate allows what another one denies.
#[test]
fn a_merchant_that_is_denied_since_is_not_suggested() {
    let mut past = Past::new(&[]);
    past.pay(&[100, 200, 300], "shop.example", Choice::Approve);
    assert_eq!(past.suggested().len(), 1);
    past.grant(terms(r#"{"name":"No","actions":["crm.x"],"merchants":{"deny":["*.example.net","shop.example"]}}"#));
    assert_eq!(past.suggested(), []);
}

/// Nor is a rule of an agent that is asked about whatever its mandates say.
#[test]
fn a_restricted_agent_is_suggested_nothing() {
    let mut past = Past::new(&[]);
    past.pay(&[100, 200, 300], "shop.example", Choice::Approve);
    past.world.edit::<Agent>(past.agent.agent, |it| it.tier = Tier::Restricted);
    assert_eq!(past.suggested(), []);
}

/// What a mandate denies already, the tightened one or any other, is suggested no more, and no list grows by a name that it has.
#[test]
fn what_is_denied_already_is_not_tightened() {
    let wide = r#"{"name":"Wide","actions":["payment"],"duplicates":"record",
        "limits":{"currency":"EUR","perAction":1000,"askAbove":10}}"#;
    let mut past = Past::new(&[wide]);
    past.pay(&[100, 200, 150], "bad.example", Choice::Deny);
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!((rule.kind, &rule.would_have_saved), (SuggestionKind::Tighten, &past.asked));
    past.tighten(&rule);
    assert_eq!(past.suggested(), []);
    past.pay(&[100, 200, 150], "worse.example", Choice::Deny);
    let [rule] = past.suggested().try_into().unwrap();
    let deny = rule.terms.merchants.as_ref().unwrap().deny.clone().unwrap();
    assert_eq!(deny.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bad.example", "worse.example"]);
    past.grant(terms(r#"{"name":"No","actions":["crm.x"],"merchants":{"deny":["worse.example"]}}"#));
    assert_eq!(past.suggested(), []);
}

/// What a person refused and a mandate allows since is not asked about: nothing has to be tightened for that.
#[test]
fn what_is_allowed_since_is_not_tightened() {
    let mut past = Past::new(&[&asking(10, 1_000, "other.example")]);
    past.pay(&[100, 200, 150], "shop.example", Choice::Deny);
    assert_eq!(past.suggested().len(), 1);
    let allowed = Terms { duplicates: Duplicates::Record, ..terms(&asking(1_000, 1_000, "shop.example")) };
    past.grant(allowed);
    assert_eq!(past.suggested(), []);
}

/// A mandate that names the fields of what was asked covers it: its details are looked at where that matters.
#[test]
fn a_mandate_over_fields_covers_what_it_names() {
    let details = || Details::of(&Json::Object(vec![("city".to_owned(), Json::Null)])).unwrap();
    let fields = |name| format!(r#"{{"name":"F","actions":["tool.call"],"fields":{{"allow":["{name}"]}}}}"#);
    for (name, is_covered) in [("city", true), ("name", false)] {
        let mut past = Past::new(&[]);
        for _ in 0..3 {
            past.ask(tool_call("weather").with_details(details()), Choice::Approve);
        }
        assert_eq!(past.suggested().len(), 1);
        past.grant(terms(&fields(name)));
        assert_eq!(past.suggested().is_empty(), is_covered, "{name}");
    }
}

/// Of an agent with many long lists and many questions each list is gone through once, and what follows is what does of short ones: with
/// what a mandate denies, and what another covers, told from what none speaks of.
#[test]
fn long_lists_say_what_short_ones_do() {
    let names = |of: &str| (0..200).map(|it| format!(r#""*.{of}{it}.example""#)).collect::<Vec<_>>().join(",");
    let long = |it: &str| {
        let (allow, deny) = (names(&format!("a{it}")), names(&format!("d{it}")));
        format!(
            r#"{{"name":"L{it}","actions":["payment"],"duplicates":"record","limits":{{"currency":"EUR","perAction":1000}},
                "merchants":{{"allow":[{allow},"covered.example"],"deny":[{deny},"*.denied.example"]}}}}"#
        )
    };
    let mut past = Past::new(&[]);
    for domain in ["covered.example", "shop.denied.example", "none.example"] {
        past.pay(&[100, 200, 300], domain, Choice::Approve);
    }
    assert_eq!(past.suggested().len(), 3);
    for it in ["x", "y"] {
        past.grant(terms(&long(it)));
    }
    let [rule] = past.suggested().try_into().unwrap();
    assert_eq!(rule.would_have_saved, past.asked[6..]);
}
