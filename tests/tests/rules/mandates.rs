//! Which mandate covers an action.

use std::sync::Arc;

use svc_core::refusal::Kind;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{ChangeMandate, Content, GrantMandate, RevokeMandate};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::state::evidence::Entry;
use svc_core::state::gate::{
    AGENT_MANDATES_MAX, Agent, Code, Details, Effect, Mandate, MerchantsChange, Set, TermsChange, Verb,
};
use svc_core::state::people::Outside;
use svc_core::testing::world::{paying, payment, request, terms, tool_call};
use svc_core::value::Span;
use svc_core::value::id::MandateVersionId;
use svc_core::value::json::Json;
use svc_core::value::text::Label;

use super::{PAY, ask, calm, codes, fast, only, with};

const WIDE: &str = r#"{"name":"Wide","actions":["payment"],"limits":{"currency":"EUR","perAction":10000}}"#;
const BELOW: &str = r#"{"name":"Below","actions":["payment"],"limits":{"currency":"EUR","perAction":10000},"merchants":{"allow":["*.example.com"]}}"#;
const EXACT: &str = r#"{"name":"Exact","actions":["payment"],"limits":{"currency":"EUR","perAction":10000},"merchants":{"allow":["shop.example.com"]}}"#;

/// A type that no mandate covers asks, or is denied where the workspace says so; no mandate is charged.
#[test]
fn outside_every_mandate_asks_or_denies() {
    let (mut world, agent) = calm(&[PAY]);
    let asked = world.authorize(&agent, request("crm.update"));
    assert_eq!((asked.verb(), codes(&asked)), (Verb::Ask, vec![Code::OutsideMandate]));
    assert!(asked.action().mandate.is_none() && asked.action().reservation.is_none());
    let mut settings = fast();
    settings.outside_mandate = Outside::Deny;
    world.change_settings(settings);
    assert_eq!(ask(&mut world, &agent, request("crm.update")), (Verb::Deny, vec![Code::OutsideMandate]));
}

/// An agent has so many mandates in force, paused ones among them, and no more: one that was revoked makes room, and so does one whose
/// time is up. It comes with no more either.
#[test]
fn an_agent_has_so_many_mandates() {
    let (mut world, agent) = calm(&[]);
    let (workspace, agent) = (agent.workspace, agent.agent);
    let grant = |text: &str| GrantMandate {
        confirm_broaden: true,
        ..GrantMandate::new(workspace, agent, Content::Whole(Box::new(terms(text))))
    };
    let end = world.now().plus(Span::hours(1));
    let ending = format!(r#"{{"name":"Ending","actions":["crm.read"],"expiresAt":"{end}"}}"#);
    world.run(grant(&ending)).unwrap();
    let made: Vec<_> = (1..AGENT_MANDATES_MAX).map(|_| world.run(grant(WIDE)).unwrap()).collect();
    let refused = world.run(grant(WIDE)).unwrap_err();
    assert_eq!((refused.kind(), refused.errors().len()), (Kind::InvalidMandate, 1));
    assert!(refused.fix().is_some_and(|it| !it.contains("the fields")), "no field is at fault: {refused:?}");
    let mandate = made[0].id.mandate;
    world.run(RevokeMandate { workspace, by: By::Program, agent, mandate }).unwrap();
    world.run(grant(WIDE)).unwrap();
    assert_eq!(world.run(grant(WIDE)).unwrap_err().kind(), Kind::InvalidMandate);
    world.advance(Span::hours(1));
    world.run(grant(WIDE)).unwrap();
    assert_eq!(world.run(grant(WIDE)).unwrap_err().kind(), Kind::InvalidMandate);
    let mut register = RegisterAgent::new(workspace, Label::parse("Other").unwrap(), NewKey::of("ask_other"));
    register.mandates = vec![Content::Whole(Box::new(terms(WIDE))); AGENT_MANDATES_MAX + 1];
    assert_eq!(world.run(register.clone()).unwrap_err().kind(), Kind::InvalidMandate);
    register.mandates.pop();
    world.run(register).unwrap();
    world.audit();
}

/// A prefix covers every type below it, at any depth, and not the prefix alone.
#[test]
fn a_prefix_covers_what_is_below_it() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.*"]}"#]);
    assert_eq!(ask(&mut world, &agent, request("crm.update")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, request("crm.contact.read")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, request("crmx.read")).0, Verb::Ask);
}

/// The narrowest mandate that permits is charged: exact merchant, then wildcard, then anywhere.
#[test]
fn the_narrowest_merchant_is_charged() {
    let (mut world, agent) = calm(&[WIDE, BELOW, EXACT]);
    for (domain, name) in [("shop.example.com", "Exact"), ("pay.example.com", "Below"), ("example.com", "Wide")] {
        let answer = world.authorize(&agent, payment(100, "EUR", domain));
        let charged: Arc<Mandate> = world.row(answer.action().mandate.unwrap());
        assert_eq!(charged.name.as_str(), name);
    }
}

/// Between equally narrow mandates the one with less left is charged, then the older one.
#[test]
fn the_smaller_remainder_then_the_older_is_charged() {
    let little = r#"{"name":"Little","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":5000,"period":"day"}}}"#;
    let much = r#"{"name":"Much","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":6000,"period":"day"}}}"#;
    let (mut world, agent) = calm(&[much, little]);
    let mut names = Vec::new();
    for domain in ["a.example", "b.example", "c.example"] {
        let answer = world.authorize(&agent, payment(2_000, "EUR", domain));
        let row: Arc<Mandate> = world.row(answer.action().mandate.unwrap());
        names.push(row.name.as_str().to_owned());
    }
    assert_eq!(names, ["Little", "Little", "Much"], "after two, 1,000 are left of the little one: not enough");
    let (mut world, agent) = calm(&[WIDE, WIDE]);
    let first = world.authorize(&agent, payment(1, "EUR", "a.example")).action().mandate.unwrap();
    let oldest = world.row::<Agent>(agent.agent).mandates.iter().map(|it| it.id).min().unwrap();
    assert_eq!(first.mandate, oldest);
}

/// Of mandates that are made in one commit the first one is the older one, every time.
#[test]
fn the_first_of_one_commit_is_the_older() {
    let (mut world, _) = calm(&[]);
    for _ in 0..32 {
        let named = |name: &str| WIDE.replacen("Wide", name, 1);
        let agent = ["First", "Second", "Third"]
            .iter()
            .fold(world.agent(), |it, name| it.with_mandate(terms(&named(name))))
            .register();
        let answer = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
        let charged: Arc<Mandate> = world.row(answer.action().mandate.unwrap());
        assert_eq!(charged.name.as_str(), "First");
    }
}

/// One mandate has to cover the whole action: two that each cover half of it cover nothing, and both say why.
#[test]
fn one_mandate_covers_the_whole_action() {
    let merchant = EXACT.replace("10000", "100");
    let amount = BELOW.replace("*.example.com", "*.example.org");
    let (mut world, agent) = calm(&[&merchant, &amount]);
    let (verb, said) = ask(&mut world, &agent, payment(5_000, "EUR", "shop.example.com"));
    assert_eq!(verb, Verb::Deny, "the strictest refusal counts: `onLimit` denies");
    assert!(said.contains(&Code::OverLimit) && said.contains(&Code::MerchantNotAllowed), "{said:?}");
}

/// Where no candidate permits, each says everything that stands in its way, one after the other: also one whose merchants are
/// others, and not one that does not speak of the type. Of those, one that permits is charged, and nothing is said.
#[test]
fn every_candidate_says_all_that_stands_in_its_way() {
    let other = |number: usize| EXACT.replace("shop.", &format!("shop-{number}."));
    let mandates = [
        other(1).replace("10000", "100"),
        EXACT.replace("10000", "100"),
        other(2).replace("payment", "refund"),
        other(3),
        other(4).replace("EUR", "USD"),
    ];
    let mut number = 0;
    let mandates = mandates.map(|it| {
        number += 1;
        it.replace("Exact", &format!("M{number}"))
    });
    let (mut world, agent) = calm(&mandates.each_ref().map(String::as_str));
    let answer = world.authorize(&agent, payment(5_000, "EUR", "shop.example.com"));
    let reasons = &answer.action().reasons;
    assert!(reasons.is_sorted_by_key(|it| it.mandate), "in the order of the mandates' ids: {reasons:?}");
    let mut name = |mandate| {
        let row: Arc<Mandate> = world.row(MandateVersionId { mandate, version: 1 });
        row.name.as_str().to_owned()
    };
    let mut said: Vec<_> = reasons.iter().map(|it| (name(it.mandate.unwrap()), it.code)).collect();
    said.sort_by(|(a, _), (b, _)| a.cmp(b));
    let expected = [
        ("M1".to_owned(), Code::MerchantNotAllowed),
        ("M1".to_owned(), Code::OverLimit),
        ("M2".to_owned(), Code::OverLimit),
        ("M4".to_owned(), Code::MerchantNotAllowed),
        ("M5".to_owned(), Code::CurrencyNotCovered),
        ("M5".to_owned(), Code::MerchantNotAllowed),
    ];
    assert_eq!(said, expected);
    let allowed = world.authorize(&agent, payment(50, "EUR", "shop.example.com"));
    assert_eq!((allowed.verb(), codes(&allowed)), (Verb::Allow, vec![]));
    let charged: Arc<Mandate> = world.row(allowed.action().mandate.unwrap());
    assert_eq!(charged.name.as_str(), "M2");
}

/// Outside the merchants, fields, tools or currency of every candidate goes by the workspace's setting.
#[test]
fn what_no_candidate_permits_goes_by_the_setting() {
    let (mut world, agent) = calm(&[EXACT]);
    let answer = world.authorize(&agent, payment(100, "EUR", "other.example"));
    assert_eq!((answer.verb(), only(&answer).field.as_deref()), (Verb::Ask, Some("other.example")));
    assert_eq!(ask(&mut world, &agent, payment(100, "USD", "shop.example.com")).1, [Code::CurrencyNotCovered]);
    let (mut world, agent) = calm(&[r#"{"name":"T","actions":["tool.call"],"tools":{"allow":["fs/*","search"]}}"#]);
    assert_eq!(ask(&mut world, &agent, tool_call("search")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, tool_call("rm")), (Verb::Ask, vec![Code::ToolNotAllowed]));
}

/// A constraint whose member the action lacks refuses: an allow list is no list of suggestions.
#[test]
fn an_absent_member_is_outside() {
    let merchants = r#"{"name":"M","actions":["crm.read"],"merchants":{"allow":["shop.example.com"]}}"#;
    let tools = r#"{"name":"T","actions":["crm.write"],"tools":{"allow":["search"]}}"#;
    let fields = r#"{"name":"F","actions":["crm.share"],"fields":{"allow":["name"]}}"#;
    let (mut world, agent) = calm(&[merchants, tools, fields]);
    assert_eq!(ask(&mut world, &agent, request("crm.read")).1, [Code::MerchantNotAllowed]);
    assert_eq!(ask(&mut world, &agent, request("crm.write")).1, [Code::ToolNotAllowed]);
    assert_eq!(ask(&mut world, &agent, request("crm.share")).1, [Code::FieldNotAllowed]);
}

/// Every shared field has to be allowed, those of `details` where there is no `data`; each that is not is told.
#[test]
fn every_field_has_to_be_allowed() {
    let (mut world, agent) = calm(&[r#"{"name":"F","actions":["crm.share"],"fields":{"allow":["name","city"]}}"#]);
    let details = |names: &[&str]| request("crm.share").with_details(details(names.iter().copied()));
    assert_eq!(ask(&mut world, &agent, details(&["name", "city"])).0, Verb::Allow);
    let answer = world.authorize(&agent, details(&["age", "name", "ssn"]));
    let fields: Vec<_> = answer.reasons().iter().map(|it| it.field.as_deref().unwrap().to_owned()).collect();
    assert_eq!((answer.verb(), fields), (Verb::Ask, vec!["age".to_owned(), "ssn".to_owned()]));
}

/// A list that holds `none` alone allows no field, one that is called so neither.
#[test]
fn a_field_called_none_is_no_field() {
    let (mut world, agent) = calm(&[r#"{"name":"F","actions":["crm.share"],"fields":{"allow":["none"]}}"#]);
    let asked = request("crm.share").with_details(details(["none"].into_iter()));
    assert_eq!(ask(&mut world, &agent, asked), (Verb::Ask, vec![Code::FieldNotAllowed]));
}

/// Details with these names.
fn details<'a>(names: impl Iterator<Item = &'a str>) -> Details {
    let members = names.map(|it| (it.to_owned(), Json::Null)).collect();
    Details::of(&Json::Object(members)).unwrap()
}

/// However many names one request holds, the reasons that are kept of it stay few: it is refused all the same.
#[test]
fn the_fields_that_are_told_are_bounded() {
    let (mut world, agent) = calm(&[r#"{"name":"F","actions":["crm.share"],"fields":{"allow":["name"]}}"#]);
    let names: Vec<String> = (0..1_000).map(|it| format!("f{it}")).collect();
    let asked = request("crm.share").with_details(details(names.iter().map(String::as_str)));
    let answer = world.authorize(&agent, asked);
    assert_eq!((answer.verb(), answer.reasons().len()), (Verb::Ask, 100));
    assert_eq!(answer.reasons()[99].field.as_deref(), Some("f99"));
}

/// The same however many mandates refuse them, and however long a name is: each mandate that refuses is told, and the ledger tells
/// each code once.
#[test]
fn what_many_mandates_say_of_fields_is_bounded() {
    let mandate = r#"{"name":"F","actions":["crm.share"],"fields":{"allow":["name"]}}"#;
    let (mut world, agent) = calm(&[mandate; 40]);
    let names: Vec<String> = (0..90).map(|it| format!("f{it}")).collect();
    let long = "x".repeat(16_000);
    let asked = |names: &[&str]| request("crm.share").with_details(details(names.iter().copied()));
    for names in [names.iter().map(String::as_str).collect(), vec![long.as_str()]] {
        let answer = world.authorize(&agent, asked(&names));
        let reasons = answer.reasons();
        let who: std::collections::BTreeSet<_> = reasons.iter().map(|it| it.mandate).collect();
        assert_eq!((answer.verb(), who.len()), (Verb::Ask, 40));
        let told: Vec<_> = reasons.iter().filter_map(|it| it.field.as_deref()).collect();
        let bytes: usize = told.iter().map(|it| it.len()).sum();
        assert!(told.len() <= 100 && bytes <= 64 * 1024 && reasons.len() <= 140, "{} of {bytes}", told.len());
        assert!(names.iter().all(|it| told.contains(it)), "each is told by one");
        let entry = world.row::<Entry>(answer.action().evidence);
        assert!(entry.data.contains(r#""codes":["field_not_allowed"],"#), "{}", &*entry.data);
    }
}

/// A mandate without a currency covers nothing that pays, whatever its type.
#[test]
fn a_mandate_without_currency_covers_no_payment() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.order"]}"#]);
    assert_eq!(ask(&mut world, &agent, request("crm.order")).0, Verb::Allow);
    let paying = paying("crm.order", 100, "EUR", "shop.example.com");
    assert_eq!(ask(&mut world, &agent, paying), (Verb::Ask, vec![Code::CurrencyNotCovered]));
}

/// A mandate with a currency and no amount in it limits no payment, so it covers none; where an amount is there, it covers what that
/// says.
#[test]
fn a_currency_without_an_amount_covers_no_payment() {
    let decided = |limits: &str, amount: Option<i64>| {
        let (mut world, agent) = calm(&[&format!(r#"{{"name":"Crm","actions":["crm.order"],"limits":{{{limits}}}}}"#)]);
        let request =
            amount.map_or_else(|| request("crm.order"), |it| paying("crm.order", it, "EUR", "shop.example.com"));
        ask(&mut world, &agent, request)
    };
    for (limits, expected) in [
        (r#""currency":"EUR""#, Err(())),
        (r#""currency":"EUR","count":{"max":9,"period":"day"}"#, Err(())),
        (r#""perAction":100,"currency":"EUR""#, Ok(100)),
        (r#""perPeriod":{"amount":100,"period":"day"},"currency":"EUR""#, Ok(100)),
        (r#""askAbove":100,"currency":"EUR""#, Ok(100)),
    ] {
        assert_eq!(decided(limits, None).0, Verb::Allow, "{limits}");
        match expected {
            Ok(most) => {
                assert_eq!(decided(limits, Some(most)), (Verb::Allow, vec![]), "{limits}");
                assert_ne!(decided(limits, Some(most + 1)).0, Verb::Allow, "{limits}");
            }
            Err(()) => assert_eq!(decided(limits, Some(100)), (Verb::Ask, vec![Code::CurrencyNotCovered]), "{limits}"),
        }
    }
}

/// A deny list of any active mandate denies, also one that does not speak of this type.
#[test]
fn a_deny_list_denies_whatever_covers() {
    let merchants = r#"{"name":"No","actions":["crm.read"],"merchants":{"deny":["*.bad.example","bad.example"]}}"#;
    let tools = r#"{"name":"No","actions":["crm.read"],"tools":{"deny":["rm","drop*"]}}"#;
    let calls = r#"{"name":"Calls","actions":["tool.call"]}"#;
    let (mut world, agent) = calm(&[WIDE, merchants, tools, calls]);
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "a.bad.example")), (Verb::Deny, vec![Code::MerchantDenied]));
    for tool in ["rm", "drop/all"] {
        assert_eq!(ask(&mut world, &agent, tool_call(tool)), (Verb::Deny, vec![Code::ToolDenied]), "{tool}");
    }
    assert_eq!(ask(&mut world, &agent, tool_call("ls")).0, Verb::Allow);
}

/// An expired mandate admits nothing, and what it admitted can still be settled.
#[test]
fn expiry_gates_admission_alone() {
    let (mut world, _) = calm(&[]);
    let mut ends = terms(PAY);
    ends.expires_at = Some(world.now().plus(Span::hours(1)));
    let agent = world.agent().with_mandate(ends).register();
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
    world.advance(Span::hours(1));
    assert_eq!(ask(&mut world, &agent, payment(100, "EUR", "shop.example.com")).1[0], Code::OutsideMandate);
    let settled = world.settle(&agent, allowed.id(), svc_core::state::gate::OutcomeStatus::Completed, None);
    assert_eq!(settled.status().as_str(), "completed");
}

/// A mandate version that is named and not to be had could be a deny list: the answer is no, with its own reason.
#[test]
fn what_cannot_be_evaluated_is_denied() {
    let (mut world, agent) = with(fast(), &[PAY]);
    let mut broken = Agent::clone(&world.row(agent.agent));
    broken.mandates[0].version = 7;
    world.overwrite(broken);
    let answer = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
    assert_eq!(answer.verb(), Verb::Deny);
    assert_eq!(answer.reasons()[0].code, Code::EvaluationError);
    assert_eq!(answer.reasons()[0].effect, Effect::Deny);
}

/// What `data` shares is held to the allowed fields, and `details` beside it is not looked at.
#[test]
fn every_shared_field_has_to_be_allowed() {
    use svc_core::state::gate::DataShare;
    use svc_core::value::text::Label;

    let (mut world, agent) = calm(&[r#"{"name":"F","actions":["data.share"],"fields":{"allow":["name","city"]}}"#]);
    let share = |names: &[&str]| {
        let fields = names.iter().map(|it| Label::parse(it).unwrap()).collect();
        let share = DataShare { recipient: "crm.example.com".into(), fields, purpose: None };
        request("data.share").sharing(share).with_details(details(["age"].into_iter()))
    };
    assert_eq!(ask(&mut world, &agent, share(&["name", "city"])).0, Verb::Allow);
    let answer = world.authorize(&agent, share(&["name", "ssn"]));
    assert_eq!((answer.verb(), only(&answer).code), (Verb::Ask, Code::FieldNotAllowed));
    assert_eq!(only(&answer).field.as_deref(), Some("ssn"));
}

/// An action of another type may have `data` beside its `details`: names of both are held to the allowed fields, so that nothing is
/// hidden by what an agent adds.
#[test]
fn data_beside_details_hides_none_of_them() {
    use svc_core::state::gate::{DataShare, Request};
    use svc_core::value::text::Label;

    let mandate = r#"{"name":"F","actions":["crm.update","tool.call"],"fields":{"allow":["name","city"]}}"#;
    let (mut world, agent) = calm(&[mandate]);
    let with = |request: Request, shared: &[&str], names: &[&str]| {
        let fields = shared.iter().map(|it| Label::parse(it).unwrap()).collect();
        let share = DataShare { recipient: "crm.example.com".into(), fields, purpose: None };
        request.sharing(share).with_details(details(names.iter().copied()))
    };
    for kind in [request("crm.update"), tool_call("write")] {
        assert_eq!(ask(&mut world, &agent, with(kind.clone(), &["name"], &["city", "name"])).0, Verb::Allow);
        let answer = world.authorize(&agent, with(kind, &["name", "ssn"], &["salary", "ssn"]));
        let fields: Vec<_> = answer.reasons().iter().map(|it| it.field.as_deref().unwrap().to_owned()).collect();
        assert_eq!((answer.verb(), fields), (Verb::Ask, vec!["ssn".to_owned(), "salary".to_owned()]));
    }
}

/// The asking threshold and what a duplicate brings about are those of the mandate charged, not of the others beside it.
#[test]
fn thresholds_are_those_of_the_mandate_charged() {
    let asks = |mandate: &str| mandate.replace("\"perAction\":10000", "\"perAction\":10000,\"askAbove\":100");
    let records = |mandate: &str| mandate.replace("\"limits\"", "\"duplicates\":\"record\",\"limits\"");
    let (narrow, wide) = ("shop.example.com", "other.example");
    let (mut world, agent) = calm(&[&asks(EXACT), &records(WIDE)]);
    let asked = (Verb::Ask, vec![Code::AboveAskThreshold]);
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", narrow)), asked);
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", wide)), (Verb::Allow, vec![]));
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", wide)).0, Verb::Allow, "noted only");
    let (mut world, agent) = calm(&[&records(EXACT), &asks(WIDE)]);
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", narrow)), (Verb::Allow, vec![]));
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", narrow)).0, Verb::Allow, "noted only");
    assert_eq!(ask(&mut world, &agent, payment(200, "EUR", wide)), asked);
}

/// Lists of merchants and tools name nothing twice, however they were written and whether they are new or changed.
#[test]
fn no_list_names_anything_twice() {
    let (mut world, agent) = calm(&[]);
    let (workspace, agent) = (agent.workspace, agent.agent);
    let said = r#"{"name":"M","actions":["tool.call"],"merchants":{"allow":["a.example","a.example"],"deny":["b.example","b.example"]},
        "tools":{"deny":["rm","ls","rm"]}}"#;
    let content = Content::Whole(Box::new(terms(said)));
    let granted = world.run(GrantMandate::new(workspace, agent, content)).unwrap();
    let counts = |it: &Mandate| {
        let merchants = it.merchants.as_ref().unwrap();
        let lists = [&merchants.allow, &merchants.deny].map(|it| it.as_ref().unwrap().len());
        (lists, it.tools.as_ref().unwrap().deny.as_ref().unwrap().len())
    };
    assert_eq!(counts(&granted), ([1, 1], 2));
    let twice = vec!["c.example".parse().unwrap(), "C.example".parse().unwrap()];
    let merchants = MerchantsChange { allow: Set::Keep, deny: Set::To(twice) };
    let change = TermsChange { merchants: Set::To(merchants), ..TermsChange::default() };
    let (mandate, by, paused, counted) = (granted.id.mandate, By::Program, None, None);
    let asked = ChangeMandate { workspace, by, agent, mandate, change, paused, confirm_broaden: false, counted };
    let changed = world.run(asked.clone()).unwrap();
    assert_eq!((counts(&changed.mandate), changed.mandate.id.version), (([1, 1], 2), 2));
    assert_eq!(world.run(asked).unwrap().mandate.id.version, 2, "what says the same is no change");
}
