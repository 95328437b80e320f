//! Requests that a program makes: what is none is refused as its body would be, and an idempotency key names one.

use svc_core::refusal::{Kind, Refusal};
use svc_core::state::gate::{Action, ActionKind, DataShare, Declared, Details, Request, Tool, ToolInput, Verb};
use svc_core::store::Row as _;
use svc_core::testing::world::{World, key, paying, payment, request};
use svc_core::value::json::Json;
use svc_core::value::text::{Detail, Label, SessionId, Source, Summary};
use svc_core::value::{Amount, SAFE_MAX};

use super::{PAY, calm};

fn bare(kind: &str) -> Request {
    Request::new(kind.parse().unwrap(), Summary::parse("Do what was asked").unwrap())
}

fn share(recipient: &str, fields: &[&str]) -> DataShare {
    let fields = fields.iter().map(|it| Label::parse(it).unwrap()).collect();
    DataShare { recipient: recipient.into(), fields, purpose: None }
}

fn json(text: &str) -> Json {
    Json::parse(text.as_bytes()).unwrap()
}

fn web(detail: &str) -> Declared {
    Declared { source: Source::parse("web").unwrap(), detail: Some(Detail::parse(detail).unwrap()) }
}

fn paths(refusal: &Refusal) -> Vec<&str> {
    refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect()
}

/// A request without what its type cannot be without is refused by the paths of its body: nothing is decided, and no key is
/// used up by it.
#[test]
fn what_is_no_request_is_refused() {
    let (mut world, agent) = calm(&[PAY]);
    let far = |bytes| bare("tool.ls").calling(Tool { input_bytes: Some(bytes), ..Tool::default() });
    let many = vec![web("a page"); 51];
    for (asked, fields) in [
        (bare("payment"), vec!["payment"]),
        (bare("refund"), vec!["payment"]),
        (bare("transfer"), vec!["payment"]),
        (bare("data.share"), vec!["data"]),
        (bare("data.share").sharing(share("nobody", &[])), vec!["data.recipient", "data.fields"]),
        (bare("tool.call"), vec!["tool.name"]),
        (bare("mcp.call").calling(Tool::default()), vec!["tool.name"]),
        (far(-1), vec!["tool.inputBytes"]),
        (far(SAFE_MAX + 1), vec!["tool.inputBytes"]),
        (payment(100, "EUR", "a.example").from_sources(many), vec!["provenance"]),
    ] {
        let refused = world.try_authorize(&agent, asked.keyed(key("one"))).unwrap_err();
        assert_eq!((refused.kind(), paths(&refused)), (Kind::InvalidRequest, fields));
    }
    assert!(!world.rows().iter().any(|(.., record)| Action::peel(record).is_some()), "something was decided");
    assert_eq!(world.authorize(&agent, payment(100, "EUR", "a.example").keyed(key("one"))).verb(), Verb::Allow);
}

/// Every kind of request can be made by a program, with all that a body could say of it.
#[test]
fn every_kind_can_be_asked_for() {
    let (mut world, agent) = calm(&[]);
    let merchant = || ("Shop".parse().unwrap(), "shop.example".parse().unwrap());
    let (amount, currency) = (Amount::new(100).unwrap(), "EUR".parse().unwrap());
    for (asked, kind) in [
        (Request::refund("Pay back", amount, currency, merchant()).unwrap(), ActionKind::REFUND),
        (Request::transfer("Send", amount, currency, merchant()).unwrap(), ActionKind::TRANSFER),
        (bare("data.share").sharing(share("ann@example.com", &["name"])), ActionKind::DATA_SHARE),
        (request("mcp.call").with_input(ToolInput::of(&json(r#"{"a":1}"#)).unwrap()), ActionKind::MCP_CALL),
        (bare("deploy").with_details(Details::of(&json(r#"{"a":1}"#)).unwrap()), ActionKind::DEPLOY),
    ] {
        assert_eq!(world.authorize(&agent, asked).action().kind, kind);
    }
    for none in [json("[]"), json(r#"{"a":[9007199254740993]}"#), json(&format!(r#"{{"a":"{}"}}"#, "x".repeat(65_536)))]
    {
        assert!(Details::of(&none).is_err() && ToolInput::of(&none).is_err());
    }
}

/// What a program makes by hand is taken where the reader of JSON would take it, as what is stored is read again: a decision that is made
/// anew after a person's yes sees the same details.
#[test]
fn what_is_made_by_hand_is_what_could_be_read() {
    let nested = |levels| (0..levels).fold(Json::Bool(true), |it, _| Json::Object(vec![("a".into(), it)]));
    let twice = |count: usize| {
        let names = (0..count).map(|it| format!("n{}", it % (count - 1)));
        Json::Object(vec![("in".into(), Json::List(vec![Json::Object(names.map(|it| (it, Json::Null)).collect())]))])
    };
    assert!(Details::of(&nested(64)).is_ok() && ToolInput::of(&nested(64)).is_ok());
    for none in [nested(65), nested(10_000), twice(2), twice(40)] {
        assert!(Details::of(&none).is_err() && ToolInput::of(&none).is_err());
        // A value this deep is not dropped by its own means.
        std::mem::forget(none);
    }
    let (mut world, agent) = calm(&[PAY]);
    let asked = bare("data.share").sharing(share("  ann@example.com ", &["name"]));
    assert_eq!(world.authorize(&agent, asked).action().data.as_ref().unwrap().recipient.as_ref(), "ann@example.com");
}

/// A key names one request: the same again is the first action, and one that says anything else is a conflict.
#[test]
fn a_key_names_one_request() {
    let refund = |minor| paying("refund", minor, "EUR", "shop.example");
    let shared = |to: &str, field: &str| bare("data.share").sharing(share(to, &[field]));
    let detailed = |text: &str| bare("deploy").with_details(Details::of(&json(text)).unwrap());
    let input = |text: &str| request("tool.call").with_input(ToolInput::of(&json(text)).unwrap());
    let session = |id: &str| bare("deploy").in_session(SessionId::parse(id).unwrap());
    for (first, other) in [
        (refund(100), refund(101)),
        (refund(100), paying("transfer", 100, "EUR", "shop.example")),
        (refund(100), paying("refund", 100, "EUR", "other.example")),
        (shared("crm.example.com", "name"), shared("other.example.com", "name")),
        (shared("crm.example.com", "name"), shared("crm.example.com", "ssn")),
        (detailed(r#"{"to":"test"}"#), detailed(r#"{"to":"live"}"#)),
        (detailed(r#"{"to":"test"}"#), bare("deploy")),
        (input(r#"{"path":"a"}"#), input(r#"{"path":"b"}"#)),
        (session("one"), session("two")),
        (bare("deploy").from_sources(vec![web("a")]), bare("deploy").from_sources(vec![web("b")])),
        (bare("deploy").as_sent(&json("{}")), bare("deploy").as_sent(&json("{}")).in_session("one".parse().unwrap())),
    ] {
        let mut world = World::new();
        let agent = world.agent().register();
        let made = world.authorize(&agent, first.clone().keyed(key("one")));
        let again = world.authorize(&agent, first.keyed(key("one")));
        assert_eq!((again.id(), again.is_replay()), (made.id(), true));
        let refused = world.try_authorize(&agent, other.clone().keyed(key("one"))).unwrap_err();
        assert_eq!(refused.kind(), Kind::IdempotencyConflict, "{other:?}");
    }
}
