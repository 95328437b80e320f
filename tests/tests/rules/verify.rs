//! Receipts: used up by being verified, refused with the first reason that holds.

use svc_core::rules::gate::verify::Fault;
use svc_core::state::gate::OutcomeStatus;
use svc_core::state::people::{Purpose, SigningKey, SigningUse};
use svc_core::testing::world::{World, charge, payment, request};
use svc_core::value::Span;
use svc_core::value::digest::Digest;

use super::{PAY, calm};

fn paid() -> (World, svc_core::rules::gate::Caller, svc_core::answer::Decided) {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example"));
    (world, agent, allowed)
}

/// A charge has to be there, in the currency, at most the amount, by the merchant or a host of his; a miss uses up nothing.
#[test]
fn a_charge_has_to_be_covered() {
    let (mut world, _, allowed) = paid();
    let receipt = allowed.receipt().unwrap();
    assert_eq!(world.verify(receipt, None).fault, Some(Fault::ChargeRequired));
    let nameless = svc_core::rules::gate::verify::Charge { domain: None, ..charge(100, "EUR", "shop.example") };
    assert_eq!(world.verify(receipt, Some(nameless)).fault, Some(Fault::ChargeRequired));
    for (asked, fault) in [
        (charge(101, "USD", "evil.example"), Fault::CurrencyMismatch),
        (charge(101, "EUR", "evil.example"), Fault::AmountExceeds),
        (charge(100, "EUR", "evil.example"), Fault::MerchantMismatch),
        (charge(100, "EUR", "notshop.example"), Fault::MerchantMismatch),
    ] {
        assert_eq!(world.verify(receipt, Some(asked)).fault, Some(fault));
    }
    assert!(world.verify(receipt, Some(charge(100, "EUR", "pay.shop.example"))).is_valid());
}

/// A host of the merchant's that a mandate of the agent's denies is not charged with the receipt of another one, whoever asks; the
/// others are.
#[test]
fn a_charge_of_a_denied_host_is_not_covered() {
    let platform = r#"{"name":"P","actions":["payment"],"limits":{"currency":"EUR","perAction":1000},
        "merchants":{"allow":["plat.example"],"deny":["evil.plat.example","*.bad.plat.example"]}}"#;
    let (mut world, agent) = calm(&[platform]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "plat.example"));
    let receipt = allowed.receipt().unwrap();
    let before = world.dump();
    for denied in ["evil.plat.example", "x.bad.plat.example"] {
        let verdict = world.verify(receipt, Some(charge(100, "EUR", denied)));
        assert_eq!(verdict.fault, Some(Fault::MerchantMismatch), "{denied}");
    }
    assert_eq!(world.dump(), before, "nothing is used up");
    assert!(world.verify(receipt, Some(charge(100, "EUR", "shop.plat.example"))).is_valid());
}

/// A receipt without a payment takes no charge, and the type has to be the one that is expected.
#[test]
fn a_type_has_to_fit() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let allowed = world.authorize(&agent, request("crm.read"));
    let receipt = allowed.receipt().unwrap();
    assert_eq!(world.verify(receipt, Some(charge(1, "EUR", "a.example"))).fault, Some(Fault::TypeMismatch));
    let mut question = world.question(receipt, None).unwrap();
    question.kind = Some("payment".into());
    assert_eq!(world.run(question.clone()).unwrap().fault, Some(Fault::TypeMismatch));
    question.kind = Some("crm.read".into());
    assert!(world.run(question).unwrap().is_valid());
}

/// A receipt is shown as long as it is good and no longer, in whatever part of a second it was allowed.
#[test]
fn a_receipt_is_shown_until_it_expires() {
    let (mut world, agent) = calm(&[PAY]);
    world.advance(Span::millis(999));
    let allowed = world.authorize(&agent, payment(100, "EUR", "a.example"));
    let (receipt, end) = (allowed.receipt().unwrap().to_owned(), allowed.receipt_expires_at().unwrap());
    assert_eq!(end.as_millis() % 1_000, 0);
    world.advance(Span::millis(end.since(world.now()).as_millis() - 1));
    assert_eq!(world.read(&agent, allowed.id()).receipt(), Some(receipt.as_str()));
    world.advance(Span::millis(1));
    assert_eq!(world.read(&agent, allowed.id()).receipt(), None);
    assert_eq!(world.verify(&receipt, Some(charge(100, "EUR", "a.example"))).fault, Some(Fault::Expired));
}

/// A receipt ends with its time, to the second, and not before.
#[test]
fn a_receipt_expires() {
    for (life, fault) in [(Span::seconds(15 * 60 - 1), None), (Span::minutes(15), Some(Fault::Expired))] {
        let (mut world, _, allowed) = paid();
        world.advance(life);
        let verdict = world.verify(allowed.receipt().unwrap(), Some(charge(100, "EUR", "shop.example")));
        assert_eq!(verdict.fault, fault);
    }
}

/// After completion the settled amount bounds the charge; settled as not done it is revoked.
#[test]
fn a_settlement_bounds_the_charge() {
    let (mut world, agent, allowed) = paid();
    let receipt = allowed.receipt().unwrap();
    world.settle(&agent, allowed.id(), OutcomeStatus::Completed, Some(60));
    assert_eq!(world.verify(receipt, Some(charge(61, "EUR", "shop.example"))).fault, Some(Fault::AmountExceeds));
    assert!(world.verify(receipt, Some(charge(60, "EUR", "shop.example"))).is_valid());
    let (mut world, agent, allowed) = paid();
    world.settle(&agent, allowed.id(), OutcomeStatus::Cancelled, None);
    let verdict = world.verify(allowed.receipt().unwrap(), Some(charge(1, "EUR", "shop.example")));
    assert_eq!(verdict.fault, Some(Fault::Revoked));
}

/// The consuming verdict is given again for ten minutes, to the same key with the same body, and to nobody else.
#[test]
fn a_verdict_is_repeated_to_its_asker() {
    let (mut world, _, allowed) = paid();
    let mut question = world.question(allowed.receipt().unwrap(), Some(charge(100, "EUR", "shop.example"))).unwrap();
    question.key = Some(Digest::of("a random key"));
    let first = world.run(question.clone()).unwrap();
    assert!(first.is_valid() && !first.replayed);
    let again = world.run(question.clone()).unwrap();
    assert!(again.is_valid() && again.replayed);
    let mut other = question.clone();
    other.key = Some(Digest::of("another key"));
    assert_eq!(world.run(other).unwrap().fault, Some(Fault::AlreadyConsumed));
    let mut other = question.clone();
    other.body = Digest::of("another body");
    assert_eq!(world.run(other).unwrap().fault, Some(Fault::AlreadyConsumed));
    world.advance(Span::minutes(10));
    assert_eq!(world.run(question).unwrap().fault, Some(Fault::AlreadyConsumed));
}

/// A failed verification writes nothing.
#[test]
fn a_failed_verification_writes_nothing() {
    let (mut world, _, allowed) = paid();
    let before = world.dump();
    assert!(world.verify(allowed.receipt().unwrap(), Some(charge(101, "EUR", "shop.example"))).fault.is_some());
    assert!(world.verify(allowed.receipt().unwrap(), None).fault.is_some());
    assert_eq!(world.dump(), before);
}

/// How long a receipt lives is the setting's.
#[test]
fn a_receipt_lives_as_long_as_the_settings_say() {
    let mut settings = super::fast();
    settings.receipt_minutes = 1;
    let (mut world, agent) = super::with(settings, &[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example"));
    let bill = || Some(charge(100, "EUR", "shop.example"));
    world.advance(Span::minutes(1));
    assert_eq!(world.verify(allowed.receipt().unwrap(), bill()).fault, Some(Fault::Expired));
    let second = world.authorize(&agent, payment(101, "EUR", "shop.example"));
    world.advance(Span::seconds(59));
    assert!(world.verify(second.receipt().unwrap(), Some(charge(101, "EUR", "shop.example"))).is_valid());
}

/// A key that was found compromised after a signature was looked at vouches for nothing: the answer depends on its row.
#[test]
fn a_key_found_compromised_meanwhile_vouches_for_nothing() {
    let (mut world, agent) = calm(&[PAY]);
    let allowed = world.authorize(&agent, payment(100, "EUR", "shop.example"));
    let id = SigningUse { purpose: Purpose::Receipt, generation: 7 };
    let (created_at, public, sealed) = (world.now(), "".into(), "".into());
    let mut key =
        SigningKey { id, public, sealed, created_at, not_before: created_at, retired_at: None, compromised_at: None };
    world.overwrite(key.clone());
    let shown = Some(charge(100, "EUR", "shop.example"));
    let mut question = world.question(allowed.receipt().unwrap(), shown).unwrap();
    question.signed_by = Some(id);
    key.compromised_at = Some(world.now());
    world.overwrite(key.clone());
    assert_eq!(world.run(question.clone()).unwrap().fault, Some(Fault::UnknownKey));
    key.compromised_at = None;
    world.overwrite(key);
    assert_eq!(world.run(question).unwrap().fault, None, "nothing was used up");
}
