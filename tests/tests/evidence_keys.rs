//! Whose signature counts in an evidence bundle: keys in their turn and in nobody else's hands, and a ledger that continues what its
//! reader holds.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use serde_json::Value;
use svc_core::engine::Failure;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::evidence::bundle::{NotComparable, Report, Signers, Verdict, seal_text};
use svc_core::state::evidence::note::Checkpoint;
use svc_core::state::gate::Action;
use svc_core::state::gate::receipt::{Claims, DalekSigner, PublicKey, PublicKeys, Signer as _, jwks_json, write};
use svc_core::state::people::{Purpose, SigningKey, SigningUse};
use svc_core::testing::world::{payment, terms};
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_core::value::{Span, Timestamp};
use svc_store::evidence::Wanted;
use svc_store::seal::MasterKey;
use svc_tests::evidence::{Ledger, check};

const PAY: &str = r#"{"name":"Pay","actions":["payment"],"limits":{"currency":"EUR","perAction":10000}}"#;

fn lived() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    ledger
}

/// The same an hour later, by when its keys have had their turn by any clock.
fn lived_on() -> Ledger {
    let mut ledger = lived();
    ledger.world.advance(Span::hours(1));
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    ledger
}

/// The key of this use, as whoever has the master key and the database has it.
fn opened(ledger: &Ledger, purpose: Purpose, generation: u32) -> DalekSigner {
    let id = SigningUse { purpose, generation };
    let row = ledger.gate.read(|scope| scope.get::<SigningKey>(id)).unwrap().unwrap();
    let seed = MasterKey::new(Secret::new([8; 32])).open(&SigningKey::purpose(id), &row.sealed).unwrap();
    DalekSigner::new(&Secret::new(seed.expose().as_slice().try_into().unwrap()), ledger.gate.signer().issuer())
}

/// The bundle with `change` made to it, sealed anew by this key.
fn forged(bundle: &str, signer: &DalekSigner, change: impl FnOnce(String) -> String) -> Vec<u8> {
    let before = change(bundle[..bundle.rfind(r#","seal":"#).unwrap()].to_owned());
    let seal = seal_text(&Digest::of(&before), signer);
    (before + &seal).into_bytes()
}

fn text(ledger: &Ledger) -> String {
    String::from_utf8(ledger.bundle(&ledger.all())).unwrap()
}

/// The member of the key of this use whose text is `name`, as it stands in a bundle.
fn member(bundle: &str, purpose: &str, name: &str) -> String {
    let json: Value = serde_json::from_str(bundle).unwrap();
    let key = json["keys"].as_array().unwrap().iter().find(|it| it["use"] == purpose).unwrap();
    format!(r#""use":"{purpose}","{name}":{}"#, key[name])
}

/// A key that has retired signs no records that were written later, and one that was replaced before its turn came signs nothing:
/// whoever has it cannot tell another story of what came since.
#[test]
fn a_key_signs_in_its_turn_alone() {
    let ledger = lived_on();
    let (bundle, signer) = (text(&ledger), opened(&ledger, Purpose::Checkpoint, 0));
    assert_eq!(check(&forged(&bundle, &signer, |it| it)).verdict, Verdict::Whole);
    let not_before = member(&bundle, "checkpoint", "notBefore");
    let retiring = |at: Timestamp| {
        forged(&bundle, &signer, |it| it.replace(&not_before, &format!(r#"{not_before},"retiredAt":"{at}""#)))
    };
    let json: Value = serde_json::from_str(&bundle).unwrap();
    let last = json["records"].as_array().unwrap().iter().map(|it| it["at"].as_str().unwrap()).max().unwrap();
    let last = Timestamp::parse(last).unwrap();
    // Clocks of processes that share a store may be five seconds apart.
    for (at, verdict) in [
        (last.plus(Span::hours(1)), Verdict::Whole),
        (last.minus(Span::seconds(5)), Verdict::Whole),
        (last.minus(Span::millis(5_001)), Verdict::Tampered),
    ] {
        let report = check(&retiring(at));
        assert_eq!(report.verdict, verdict, "{at}: {:?}", report.fault);
    }
    let never =
        json["keys"].as_array().unwrap().iter().find(|it| it["use"] == "checkpoint").unwrap()["notBefore"].clone();
    let report = check(&retiring(Timestamp::parse(never.as_str().unwrap()).unwrap()));
    assert_eq!(report.verdict, Verdict::Tampered, "{report:?}");
}

/// A receipt is by the key whose turn it was when it was issued; where that one is in other hands, another stands in for it.
#[test]
fn a_receipt_is_by_the_key_of_its_time() {
    let ledger = lived_on();
    let (bundle, seals) = (text(&ledger), opened(&ledger, Purpose::Checkpoint, 0));
    let next = ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
    let with_next = text(&ledger);
    let json: Value = serde_json::from_str(&with_next).unwrap();
    let newest = json["receipts"].as_array().unwrap().last().unwrap();
    let id = newest["id"].as_str().unwrap().to_owned();
    let action = id.replace("rcp_", "act_").parse().unwrap();
    let action = ledger.gate.read(|scope| scope.get::<Action>(action)).unwrap().unwrap();
    let claims = Claims::of(&action, action.allowed().unwrap(), ledger.gate.signer().issuer());
    let early = write(&claims, &opened(&ledger, Purpose::Receipt, next.id.generation));
    let genuine = newest["jws"].as_str().unwrap();
    let report = check(&forged(&with_next, &seals, |it| it.replace(genuine, &early)));
    assert_eq!(report.verdict, Verdict::Tampered);
    assert!(format!("{:?}", report.fault).contains("had not its turn"), "{:?}", report.fault);
    assert_eq!(check(bundle.as_bytes()).verdict, Verdict::Whole);

    ledger.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    let report = check(text(&ledger).as_bytes());
    assert_eq!((report.verdict, report.receipts), (Verdict::Whole, 4), "{:?}", report.fault);
}

/// A receipt key that retires is published for a day after that: the reader is told, who is to compare it with what is published.
#[test]
fn a_retired_receipt_key_is_told() {
    let mut ledger = lived();
    let told = |ledger: &Ledger| {
        let report = check(text(ledger).as_bytes());
        assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
        report.not_proven.iter().any(|it| it.contains("that of the receipt key"))
    };
    assert!(!told(&ledger));
    let kid = opened(&ledger, Purpose::Receipt, 0);
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
    ledger.world.advance(Span::hours(50));
    assert!(told(&ledger));
    let report = check(text(&ledger).as_bytes());
    let kid = kid.kid().to_owned();
    assert!(report.not_proven.iter().any(|it| it.contains(&kid)), "{:?}", report.not_proven);
}

/// Where a key follows while a bundle is written, it ends there and is asked for again: with what one key has signed and another is to
/// sign, a genuine one would read as tampered with.
#[test]
fn a_bundle_has_one_set_of_keys() {
    for (purpose, leaked) in
        [(Purpose::Checkpoint, Leaked::Current), (Purpose::Receipt, Leaked::Current), (Purpose::Receipt, Leaked::None)]
    {
        let ledger = lived();
        let mut pieces = ledger.gate.bundle(&ledger.all()).unwrap();
        assert!(matches!(pieces.next(), Some(Ok(_))));
        ledger.gate.rotate_key(purpose, leaked).unwrap();
        let ended = pieces.find_map(Result::err);
        assert!(matches!(ended, Some(Failure::Contended)), "{ended:?}");
        let report = check(text(&ledger).as_bytes());
        assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    }
    // A key of scorecards signs nothing in a bundle.
    let ledger = lived();
    let mut pieces = ledger.gate.bundle(&ledger.all()).unwrap();
    let first = pieces.next().unwrap().unwrap();
    ledger.gate.rotate_key(Purpose::Scorecard, Leaked::Current).unwrap();
    let rest = pieces.flat_map(Result::unwrap);
    let report = check(&first.into_iter().chain(rest).collect::<Vec<_>>());
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
}

/// Whoever holds a choice by agent does not hold what lies before its end, and is told so; a bundle that has all of that needs nothing held.
#[test]
fn a_choice_that_is_held_is_not_taken_for_all() {
    let mut ledger = lived();
    let chosen = Wanted { agent: Some(ledger.agent.agent), ..ledger.all() };
    let (held, all) = (check(&ledger.bundle(&chosen)), check(text(&ledger).as_bytes()));
    let size = held.checkpoint.as_ref().unwrap().size;
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    let next = check(&ledger.bundle(&Wanted { since: Some(size), ..ledger.all() }));
    let report = next.clone().against_bundle(&held).unwrap();
    let what = format!("of the records before {size} you hold a choice by agent alone, and the others are not here");
    assert_eq!((report.verdict, report.fault.unwrap().what), (Verdict::Incomplete, what));
    assert_eq!(next.against_bundle(&all).unwrap().verdict, Verdict::Whole);
    let since = Wanted { since: Some(size), start: Some(0), ..ledger.all() };
    assert_eq!(check(&ledger.bundle(&since)).against_bundle(&held).unwrap().verdict, Verdict::Whole);
}

/// Whoever holds a checkpoint finds out that the ledger was rewritten, however well what they are given fits in itself; and is told that
/// they have not, where they compare nothing.
#[test]
fn a_rewritten_ledger_is_found_by_what_is_held() {
    let mut ledger = lived();
    let held = check(text(&ledger).as_bytes()).checkpoint.unwrap();
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    let bundle = ledger.bundle(&Wanted { since: Some(held.size), ..ledger.all() });
    let report = check(&bundle);
    assert_eq!((report.verdict, report.previous.as_ref()), (Verdict::Whole, Some(&held)));
    let unproven = |report: &Report| {
        report
            .not_proven
            .iter()
            .any(|it| it.contains("is the one that you hold") && it.contains(&held.root.to_string()))
    };
    assert!(unproven(&report), "{:?}", report.not_proven);
    let compared = report.clone().against(&held).unwrap();
    assert!(compared.verdict == Verdict::Whole && !unproven(&compared), "{compared:?}");
    let newest = compared.checkpoint.clone().unwrap();
    assert_eq!(report.clone().against(&newest).unwrap().verdict, Verdict::Whole);

    let other = Checkpoint { root: Digest::of("another story"), ..held.clone() };
    let found = report.clone().against(&other).unwrap();
    assert_eq!(found.verdict, Verdict::Tampered);
    assert!(found.fault.unwrap().what.contains("is not the one that you hold"));
    let size = held.size + 1;
    let refused = report.clone().against(&Checkpoint { size, ..held.clone() });
    assert_eq!(refused.unwrap_err(), NotComparable::OtherSize(size));
    let refused = report.against(&Checkpoint { origin: "gate.example.org/wsp_1".into(), ..held });
    assert!(matches!(refused, Err(NotComparable::OtherLedger(_))), "{refused:?}");
}

/// The key set that the service publishes, as its readers have it.
fn published(ledger: &Ledger) -> PublicKeys {
    let (now, rows) = (ledger.gate.now(), ledger.gate.signing_keys().unwrap());
    let keys = rows.iter().filter(|row| row.is_published(now)).map(|row| PublicKey::of(row).unwrap());
    PublicKeys::from_jwks(&jwks_json(&keys.collect())).unwrap()
}

fn is_unproven(report: &Report, what: &str) -> bool {
    report.not_proven.iter().any(|it| it.contains(what))
}

/// A bundle fits in itself whoever wrote it: that it is the service's, its published keys tell, and that a stranger's may not be an earlier
/// one tells, which listed none of theirs.
#[test]
fn a_bundle_of_a_stranger_is_found_by_the_keys() {
    // The stranger knows every record and has keys of their own.
    let (mut ledger, mut stranger) = (lived(), lived());
    let held = check(text(&ledger).as_bytes());
    let since = |ledger: &mut Ledger| {
        ledger.live();
        ledger.world.advance(Span::seconds(1));
        let size = held.checkpoint.as_ref().unwrap().size;
        check(&ledger.bundle(&Wanted { since: Some(size), ..ledger.all() }))
    };
    let (genuine, forged) = (since(&mut ledger), since(&mut stranger));
    for report in [&genuine, &forged] {
        let against = report.clone().against(held.checkpoint.as_ref().unwrap()).unwrap();
        assert_eq!((against.verdict, against.signers), (Verdict::Whole, Signers::Unknown), "{:?}", against.fault);
        assert!(is_unproven(&against, "the keys are the service's own"));
    }
    let keys = published(&ledger);
    let known = genuine.clone().signed_among(&keys, ledger.gate.now());
    assert_eq!((known.verdict, known.signers), (Verdict::Whole, Signers::KeySet), "{:?}", known.fault);
    assert!(!is_unproven(&known, "the keys are the service's own"), "{:?}", known.not_proven);
    let known = genuine.signed_as(&held);
    assert_eq!((known.verdict, known.signers), (Verdict::Whole, Signers::Held));
    assert!(is_unproven(&known, "the keys are the service's own"), "what is held is as good as it is");

    let kid = opened(&stranger, Purpose::Checkpoint, 0).kid().to_owned();
    for (found, verdict) in [
        (forged.clone().signed_among(&keys, ledger.gate.now()), Verdict::Tampered),
        (forged.signed_as(&held), Verdict::Incomplete),
    ] {
        assert_eq!((found.verdict, found.signers), (verdict, Signers::Unknown));
        let what = found.fault.unwrap().what;
        assert!(what.contains(&kid), "{what}");
    }
}

/// What a key signed that is published no more as it retired a while ago stays good beside the key set, on the word of who sealed; what one
/// signed that was found to be in other hands does not.
#[test]
fn a_key_set_need_not_have_a_retired_receipt_key() {
    let mut ledger = lived();
    let retiring = opened(&ledger, Purpose::Receipt, 0).kid().to_owned();
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
    ledger.world.advance(Span::hours(50));
    let keys = published(&ledger);
    assert!(keys.get(&retiring).is_none());
    let report = check(text(&ledger).as_bytes()).signed_among(&keys, ledger.gate.now());
    assert_eq!((report.verdict, report.receipts), (Verdict::Whole, 2), "{:?}", report.fault);
    assert!(is_unproven(&report, &retiring), "{:?}", report.not_proven);

    let before = check(text(&ledger).as_bytes());
    ledger.gate.rotate_key(Purpose::Checkpoint, Leaked::Current).unwrap();
    let report = before.signed_among(&published(&ledger), ledger.gate.now());
    assert_eq!(report.verdict, Verdict::Tampered, "{:?}", report.fault);
}

/// A ledger that has fewer records than its reader has seen is told as such, and how many it has.
#[test]
fn a_ledger_that_was_put_back_is_found_by_what_is_held() {
    let mut ledger = lived();
    let earlier = check(text(&ledger).as_bytes());
    let has = earlier.checkpoint.as_ref().unwrap().size;
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    let held = check(text(&ledger).as_bytes()).checkpoint.unwrap();
    let report = earlier.clone().against(&held).unwrap();
    assert_eq!(report.verdict, Verdict::Incomplete);
    let what = report.fault.unwrap().what;
    assert!(what.contains(&format!("has {has} records")) && what.contains("put back"), "{what}");
    let other = Checkpoint { origin: "gate.example.org/wsp_1".into(), ..held.clone() };
    assert!(matches!(earlier.against(&other), Err(NotComparable::OtherLedger(_))));

    let beyond = held.size + 4;
    let refused = ledger.gate.bundle(&Wanted { since: Some(beyond), ..ledger.all() }).err().unwrap();
    let told = format!("{refused:?}");
    assert!(told.contains(&format!("more than the {} records", held.size)), "{told}");
}

/// Nothing is signed by a key whose turn is still to come, as whoever has the key set does not know it yet: the one that took the place of
/// a compromised one stands in for it, also once another waits.
#[test]
fn a_key_that_waits_stands_in_for_none() {
    let mut ledger = lived();
    let at = ledger.gate.now();
    let kid = |ledger: &Ledger, at| {
        // What writes a bundle looks at the keys anew.
        drop(ledger.bundle(&ledger.all()));
        ledger.gate.signer().of(Purpose::Receipt, at).unwrap().kid().to_owned()
    };
    assert_eq!(kid(&ledger, at), opened(&ledger, Purpose::Receipt, 0).kid());
    ledger.world.advance(Span::seconds(2));
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    let took_over = opened(&ledger, Purpose::Receipt, 1).kid().to_owned();
    assert_eq!(kid(&ledger, at), took_over);
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
    for hours in [0, 2, 30] {
        ledger.world.advance(Span::hours(hours));
        assert_eq!(kid(&ledger, at), took_over, "after {hours} h");
    }
    assert_eq!(kid(&ledger, ledger.gate.now()), opened(&ledger, Purpose::Receipt, 2).kid());
}

/// A receipt of just before a compromise is signed anew by a key that stands in, whichever that is: it stays genuine when others follow.
#[test]
fn a_key_that_stands_in_is_believed() {
    let mut ledger = lived();
    ledger.world.advance(Span::hours(1));
    let agent = ledger.world.agent().with_mandate(terms(PAY)).register();
    ledger.world.authorize(&agent, payment(100, "EUR", "late.example.com"));
    ledger.world.advance(Span::seconds(2));
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    for _ in 0..3 {
        ledger.world.advance(Span::hours(30));
        ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
        let report = check(text(&ledger).as_bytes());
        assert_eq!((report.verdict, report.receipts), (Verdict::Whole, 3), "{:?}", report.fault);
    }
}

/// Records that lie between what is held and what a bundle has are told as missing: those behind a held bundle's own, and not behind its
/// checkpoint, which may be further.
#[test]
fn records_between_what_is_held_and_what_is_there_are_missed() {
    let ledger = lived();
    let whole = check(text(&ledger).as_bytes());
    let (held, size) = (whole.checkpoint.clone().unwrap(), whole.checkpoint.as_ref().unwrap().size);
    let part = |from: u64| check(&ledger.bundle(&Wanted { start: Some(from), since: Some(size), ..ledger.all() }));
    let mut earlier = whole.clone();
    earlier.range.as_mut().unwrap().to = 4;
    for (from, missing) in [(3, None), (4, None), (5, Some("record 4 is ")), (7, Some("records 4 to 6 are "))] {
        let report = part(from);
        assert_eq!((report.verdict, report.range.unwrap().from), (Verdict::Whole, from), "{:?}", report.fault);
        let compared = report.against_bundle(&earlier).unwrap();
        assert_eq!(compared.verdict == Verdict::Incomplete, missing.is_some(), "{from}: {:?}", compared.fault);
        let what = compared.fault.map(|it| it.what).unwrap_or_default();
        assert!(what.starts_with(missing.unwrap_or_default()), "{from}: {what}");
    }
    assert_eq!(part(7).against(&held).unwrap().verdict, Verdict::Whole, "the note is of all of them");
    earlier.checkpoint = None;
    assert_eq!(part(4).against_bundle(&earlier).unwrap_err(), NotComparable::NoneHeld);
}

/// A receipt key that is only to retire is published: one that the key set does not have is no key of the service's.
#[test]
fn a_receipt_key_that_has_yet_to_retire_is_looked_for() {
    let ledger = lived();
    let kid = opened(&ledger, Purpose::Receipt, 0).kid().to_owned();
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::None).unwrap();
    let others: PublicKeys = published(&ledger).iter().filter(|it| it.kid() != kid).cloned().collect();
    let report = check(text(&ledger).as_bytes());
    let early = report.clone().signed_among(&others, ledger.gate.now());
    assert_eq!(early.verdict, Verdict::Tampered, "{:?}", early.fault);
    assert!(early.fault.unwrap().what.contains(&kid));
    let late = report.signed_among(&others, ledger.gate.now().plus(Span::hours(50)));
    assert_eq!(late.verdict, Verdict::Whole, "{:?}", late.fault);
}
