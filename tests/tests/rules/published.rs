//! Rules that other systems publish of their own decisions, replayed through the gate: where it answers otherwise on purpose the data
//! says so.

use std::sync::Arc;

use serde_json::Value;
use svc_core::answer::Decided;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::use_up::UseUp;
use svc_core::rules::gate::verify::Fault;
use svc_core::state::gate::{Activity, Agent, Code, Declared, OutcomeStatus, Request, Standing, Status, Verb};
use svc_core::state::people::{Outside, Settings};
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::currency::Currency;
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::period::{Period, Zone};
use svc_core::value::text::{Label, Source};
use svc_core::value::{Amount, Span, Timestamp};

use super::{PAY, ask, calm, codes, fast, only, with};

/// When an action lapses whose receipt lives 15 minutes and that nobody settles.
const LAPSE: Span = Span::minutes(24 * 60 + 15);

fn cases(of: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../data/behavioural_cases.json")).unwrap();
    file[of]["cases"].as_array().unwrap().clone()
}

/// What is reserved and what is posted of an agent's mandates.
fn sums(world: &mut World, agent: &Caller) -> (i64, i64) {
    let row: Arc<Activity> = world.row(agent.agent);
    (row.tallies.iter().map(|it| it.reserved).sum(), row.tallies.iter().map(|it| it.spent).sum())
}

/// One transfer in two phases, as an action that is asked for and settled.
struct Transfer {
    world: World,
    agent: Caller,
    asked: Option<Decided>,
    refused: Option<Refusal>,
}

impl Transfer {
    fn of(case: &Value) -> Self {
        let limit = case["limit"].as_i64().unwrap_or(1_000);
        let mandate = format!(
            r#"{{"name":"M","actions":["payment"],"limits":{{"currency":"EUR","perPeriod":{{"amount":{limit},"period":"year"}}}}}}"#
        );
        let (world, agent) = calm(&[&mandate]);
        let mut transfer = Self { world, agent, asked: None, refused: None };
        if let (true, Some(posted)) = (case.get("limit").is_some(), case["posted"].as_i64()) {
            transfer.step(&format!("pending {posted}"));
            transfer.step(&format!("post {posted}"));
        }
        transfer
    }

    fn step(&mut self, step: &str) {
        let words: Vec<&str> = step.split(' ').collect();
        match words[..] {
            // However long the published one waits, ours waits for its own time.
            ["pending", amount] | ["pending", amount, "timeout", _] => {
                let request = payment(amount.parse().unwrap(), "EUR", "shop.example");
                self.asked = Some(self.world.authorize(&self.agent, request));
            }
            ["post", amount] => self.settle(OutcomeStatus::Completed, Some(amount.parse().unwrap())),
            ["void"] => self.settle(OutcomeStatus::Cancelled, None),
            ["+60s"] => self.world.advance(LAPSE),
            _ => panic!("{step}"),
        }
    }

    fn settle(&mut self, status: OutcomeStatus, amount: Option<i64>) {
        let action = self.asked.as_ref().unwrap().id();
        self.refused = self.world.try_settle(&self.agent, action, status, amount).err();
    }
}

/// Transfers in two phases: what is posted and released of what was reserved, once, and a limit that fails as it is reserved.
#[test]
fn transfers_in_two_phases() {
    for case in cases("tigerbeetle_two_phase") {
        let mut transfer = Transfer::of(&case);
        for step in case["do"].as_array().unwrap() {
            transfer.step(step.as_str().unwrap());
        }
        let expected = case.get("ours").unwrap_or(&case);
        let Transfer { mut world, agent, asked, refused } = transfer;
        let (pending, posted) = sums(&mut world, &agent);
        assert_eq!((&pending.into(), &posted.into()), (&expected["pending"], &expected["posted"]), "{case}");
        let refused = refused.map(|it| it.type_().to_owned());
        assert_eq!(refused.as_deref(), expected["refused"].as_str(), "{case}");
        let is_frozen = matches!(world.row::<Agent>(agent.agent).standing, Standing::Frozen(_));
        assert_eq!(is_frozen, expected["frozen"] == true, "{case}");
        let asked = asked.unwrap();
        let denied = (asked.verb() == Verb::Deny).then(|| only(&asked).code.as_str());
        assert_eq!(denied, expected["denied"].as_str(), "{case}");
        world.audit();
    }
}

/// What waits for a person holds its amount as well, and gives all of it back when nobody decides; then nothing is posted on it.
#[test]
fn a_wait_that_ends_releases_all_of_it() {
    let asks = r#"{"name":"M","actions":["payment"],"limits":{"currency":"EUR","askAbove":100,"perPeriod":{"amount":200,"period":"year"}}}"#;
    let (mut world, agent) = calm(&[asks]);
    let asked = world.authorize(&agent, payment(123, "EUR", "shop.example"));
    assert_eq!((asked.status(), sums(&mut world, &agent)), (Status::Pending, (123, 0)));
    world.advance(Span::hours(24));
    assert_eq!(sums(&mut world, &agent), (0, 0));
    let late = world.try_settle(&agent, asked.id(), OutcomeStatus::Completed, Some(123)).unwrap_err();
    assert_eq!((late.kind(), sums(&mut world, &agent)), (Kind::NotAllowed, (0, 0)));
}

/// Policies of an authorizer: no rule denies, one that forbids overrides every one that permits, and one that cannot be read denies,
/// whatever it would have said.
#[test]
fn a_rule_that_cannot_be_read_denies() {
    for case in cases("cedar_authorizer") {
        let rules: Vec<&str> = case["rules"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
        let mandate = |rule: &&str| match rule.split('(').next() {
            Some("permit") => PAY.to_owned(),
            Some("forbid") => {
                r#"{"name":"No","actions":["crm.read"],"merchants":{"deny":["shop.example"]}}"#.to_owned()
            }
            _ => panic!("{rule}"),
        };
        let mandates: Vec<String> = rules.iter().map(mandate).collect();
        let mandates: Vec<&str> = mandates.iter().map(String::as_str).collect();
        let settings = Settings { outside_mandate: Outside::Deny, ..fast() };
        let (mut world, agent) = with(settings, &mandates);
        let mut row = Agent::clone(&world.row(agent.agent));
        for (grant, rule) in row.mandates.iter_mut().zip(&rules) {
            // A version that is named and not there.
            grant.version += u32::from(rule.ends_with("(erroring)"));
        }
        let is_broken = rules.iter().any(|it| it.ends_with("(erroring)"));
        world.overwrite(row);
        let answer = world.authorize(&agent, payment(100, "EUR", "shop.example"));
        let said = match answer.verb() {
            Verb::Allow => "allow",
            Verb::Ask => "ask",
            Verb::Deny => "deny",
        };
        assert_eq!(said, case["ours"], "{case}: {:?}", answer.reasons());
        assert_eq!(codes(&answer).contains(&Code::EvaluationError), is_broken, "{case}");
        assert_eq!(answer.receipt().is_some(), said == "allow", "{case}");
        // Nothing is allowed that the other would deny.
        assert!(said == "deny" || case["cedar"] == "Allow", "{case}");
    }
}

/// What a person approves is one digest: it is used up for no other, once, and by nothing that is asked beside it.
#[test]
fn an_approval_is_of_one_digest() {
    let asks = r#"{"name":"Crm","actions":["crm.write"],"limits":{"count":{"max":9,"period":"day"}}}"#;
    let (mut world, agent) = calm(&[asks]);
    let owner = world.owner();
    let [approved, other] = ["crm.read", "crm.delete"].map(|kind| world.authorize(&agent, request(kind)));
    assert_eq!((approved.verb(), other.verb()), (Verb::Ask, Verb::Ask));
    world.approve(&owner, approved.id());
    let digest = approved.action().digest;
    let mut use_up = |of: &Decided, digest| {
        let body = Digest::of("what it is for");
        world.run(UseUp { action: of.id(), digest, body }).unwrap().fault
    };
    assert_eq!(use_up(&approved, other.action().digest), Some(Fault::UnknownReceipt), "another digest");
    assert_eq!(use_up(&other, digest), Some(Fault::UnknownReceipt), "one that waits still");
    assert_eq!(use_up(&approved, digest), None);
    assert_eq!(use_up(&approved, digest), Some(Fault::AlreadyConsumed));
    world.audit();
}

/// A word for a source that nobody knows, or knows in other letters, is trusted in nothing: a person is asked before money leaves.
#[test]
fn an_unknown_source_is_trusted_in_nothing() {
    for (word, expected) in [
        ("user", Verb::Allow),
        ("User", Verb::Ask),
        ("users", Verb::Ask),
        ("trusted", Verb::Ask),
        ("none", Verb::Ask),
        ("null", Verb::Ask),
        ("unknown", Verb::Ask),
    ] {
        let (mut world, agent) = calm(&[PAY]);
        let declared = vec![Declared { source: Source::parse(word).unwrap(), detail: None }];
        let paid = world.authorize(&agent, payment(100, "EUR", "a.example").from_sources(declared));
        assert_eq!(paid.verb(), expected, "{word}");
    }
}

/// Amounts are minor units of their currency, whatever decimals it has: a limit is met to the last one, and no currency is taken for
/// another.
#[test]
fn limits_are_exact_in_every_currency() {
    for (currency, above, limit) in [
        ("JPY", "101", "100"),
        ("EUR", "1.01", "1.00"),
        ("KWD", "0.101", "0.100"),
        ("BHD", "0.101", "0.100"),
        ("CLF", "0.0101", "0.0100"),
    ] {
        let said = format!("{currency} {above} is above {currency} {limit} for one action");
        let mandate = format!(
            r#"{{"name":"M","actions":["payment"],"limits":{{"currency":"{currency}","perAction":100,"perPeriod":{{"amount":150,"period":"day"}}}}}}"#
        );
        let (mut world, agent) = calm(&[&mandate]);
        let above = world.authorize(&agent, payment(101, currency, "a.example"));
        assert_eq!((above.verb(), only(&above).message()), (Verb::Deny, said));
        let paid = world.authorize(&agent, payment(100, currency, "a.example"));
        assert_eq!(paid.verb(), Verb::Allow, "{currency}");
        let other = if currency == "EUR" { "USD" } else { "EUR" };
        assert_eq!(ask(&mut world, &agent, payment(1, other, "b.example")).0, Verb::Ask, "{other}");
        assert_eq!(
            ask(&mut world, &agent, payment(51, currency, "b.example")).1,
            [Code::OverPeriodLimit],
            "{currency}"
        );
        assert_eq!(ask(&mut world, &agent, payment(50, currency, "b.example")).0, Verb::Allow, "{currency}");
        assert_eq!(sums(&mut world, &agent), (150, 0), "{currency}");
        let receipt = paid.receipt().unwrap();
        let charged =
            |world: &mut World, amount| world.verify(receipt, Some(charge(amount, currency, "a.example"))).fault;
        assert_eq!(charged(&mut world, 101), Some(Fault::AmountExceeds), "{currency}");
        assert_eq!(charged(&mut world, 100), None, "{currency}");
    }
}

/// Every period that a mandate may have ends, and begins as the workspace's zone has it: there it is full to its last moment, and empty
/// from the next.
#[test]
fn every_period_is_the_workspaces() {
    let zone = Zone::parse("Asia/Kathmandu").unwrap();
    for (period, until) in [
        // In UTC the world begins on Thursday, 2026-10-01, at 09:30: 15:15 there.
        (Period::Hour, "2026-10-01T10:00:00.000Z"),
        (Period::Day, "2026-10-01T18:15:00.000Z"),
        (Period::Week, "2026-10-04T18:15:00.000Z"),
        (Period::Month, "2026-10-31T18:15:00.000Z"),
        (Period::Year, "2026-12-31T18:15:00.000Z"),
    ] {
        let mandate = format!(
            r#"{{"name":"M","actions":["payment"],"limits":{{"currency":"EUR","perPeriod":{{"amount":100,"period":"{period}"}}}}}}"#
        );
        let (mut world, agent) = with(Settings { timezone: zone.clone(), ..fast() }, &[&mandate]);
        assert_eq!(ask(&mut world, &agent, payment(100, "EUR", "a.example")).0, Verb::Allow, "{period}");
        let full = world.authorize(&agent, payment(1, "EUR", "b.example"));
        let until = Timestamp::parse(until).unwrap();
        let said = only(&full);
        assert_eq!((said.code, said.clears_at), (Code::OverPeriodLimit, Some(until)), "{period}");
        let rest = until.since(world.now());
        world.advance(Span::millis(rest.as_millis() - 1));
        assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "b.example")).0, Verb::Deny, "{period}");
        world.advance(Span::millis(1));
        assert_eq!(ask(&mut world, &agent, payment(100, "EUR", "b.example")).0, Verb::Allow, "{period}");
    }
}

/// A merchant is its domain: by a right name another site is not the same, nor is the same site another by a wrong one.
#[test]
fn a_merchant_is_its_domain() {
    let only_shop = r#"{"name":"M","actions":["payment"],"limits":{"currency":"EUR","perAction":100},"merchants":{"allow":["shop.example"]}}"#;
    let (mut world, agent) = calm(&[only_shop]);
    let pay = |amount: i64, name: &str, domain: &str| {
        let merchant = (Label::parse(name).unwrap(), Domain::parse(domain).unwrap());
        Request::payment("Pay", Amount::new(amount).unwrap(), Currency::EUR, merchant).unwrap()
    };
    let outside = (Verb::Ask, vec![Code::MerchantNotAllowed]);
    let others = ["evil.example", "shop.example.evil.example", "notshop.example", "pay.shop.example"];
    for (amount, domain) in (1..).zip(others) {
        assert_eq!(ask(&mut world, &agent, pay(amount, "shop.example", domain)), outside, "{domain}");
    }
    let paid = world.authorize(&agent, pay(10, "evil.example", "shop.example"));
    assert_eq!(paid.verb(), Verb::Allow);
    let receipt = paid.receipt().unwrap();
    assert_eq!(world.verify(receipt, Some(charge(10, "EUR", "evil.example"))).fault, Some(Fault::MerchantMismatch));
    assert!(world.verify(receipt, Some(charge(10, "EUR", "shop.example"))).is_valid());
}
