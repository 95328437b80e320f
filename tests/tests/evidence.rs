//! Evidence bundles: what they show, and that no byte of one can change unnoticed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

#[path = "evidence/erased.rs"]
mod erased;

use serde_json::{Value, json};
use svc_core::refusal::Kind;
use svc_core::rules::evidence::erase::Target;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::drill::{EndDrill, FreezeCanary, StartDrill};
use svc_core::rules::gate::fleet::{Fleet, FreezeFleet, Halted};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::lift::LiftHold;
use svc_core::rules::people::applications::{CreateApplication, DenyApplication};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::ChangeMandate;
use svc_core::rules::people::members::RemoveMember;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::evidence::Entry;
use svc_core::state::evidence::bundle::{Verdict, seal_text};
use svc_core::state::evidence::note::Checkpoint;
use svc_core::state::gate::receipt::{DalekSigner, PublicKey};
use svc_core::state::gate::{
    Action, Agent, DrillPoint, DrillState, DrillStep, MerchantsChange, Set, TermsChange, Tier, ToolsChange,
};
use svc_core::state::people::{Application, Change, Principal, Purpose, Role, Roster, SigningKey, SigningUse};
use svc_core::store::{Record, Row as _};
use svc_core::testing::world::{payment, request, terms};
use svc_core::value::digest::Digest;
use svc_core::value::id::DrillId;
use svc_core::value::secret::Secret;
use svc_core::value::text::Note;
use svc_core::value::{Span, Timestamp};
use svc_store::evidence::Wanted;
use svc_store::seal::MasterKey;
use svc_store::with_causes;
use svc_tests::evidence::{Ledger, check};

fn lived() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    ledger
}

fn parsed(bundle: &[u8]) -> Value {
    serde_json::from_slice(bundle).unwrap()
}

/// A bundle of everything is whole: its members in their order, each record, text and receipt checked.
#[test]
fn a_bundle_of_everything_is_whole() {
    let ledger = lived();
    let bundle = ledger.bundle(&ledger.all());
    let report = check(&bundle);
    assert_eq!((report.verdict, &report.fault), (Verdict::Whole, &None));
    let json = parsed(&bundle);
    let names: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 12, "{names:?}");
    let count = |name: &str| json[name].as_array().unwrap().len() as u64;
    assert_eq!((count("records"), count("inclusionProofs")), (report.records, 2));
    assert_eq!((count("disclosures"), count("receipts")), (report.disclosed, report.receipts));
    assert!(report.disclosed >= 6 && report.receipts == 2, "{report:?}");
    assert_eq!(report.not_proven.len(), 2, "{:?}", report.not_proven);
}

/// Every byte flipped in turn, in one bit and in all: none passes for the whole, and almost all that are still JSON of the
/// right form are told as tampered.
#[test]
fn every_flipped_byte_is_found() {
    let mut ledger = Ledger::new();
    ledger.world.authorize(&ledger.agent, payment(100, "EUR", "a.example"));
    ledger.world.advance(Span::seconds(1));
    let bundle = ledger.bundle(&ledger.all());
    assert_eq!(check(&bundle).verdict, Verdict::Whole);
    for at in 0..bundle.len() {
        let flips: &[u8] = if at % 16 == 0 { &[0x01, 0x20, 0xff] } else { &[0x01] };
        for flip in flips {
            let mut tampered = bundle.clone();
            tampered[at] ^= flip;
            let report = check(&tampered);
            assert!(
                matches!(report.verdict, Verdict::Tampered | Verdict::Malformed),
                "byte {at} ^ {flip:#x}: {report:?}"
            );
        }
    }
    for cut in [1, bundle.len() / 2, bundle.len() - 1] {
        assert_eq!(check(&bundle[..cut]).verdict, Verdict::Malformed, "{cut}");
    }
    assert_eq!(check(&[&bundle[..], b"x"].concat()).verdict, Verdict::Malformed);
}

/// The same JSON with escapes wherever a text may have one.
fn with_escapes(json: &str) -> String {
    let (mut out, mut quoted, mut escape) = (String::new(), false, false);
    for one in json.chars() {
        match one {
            '/' if quoted && !escape => out.push_str("\\/"),
            '"' | '\\' => out.push(one),
            _ if quoted && !escape => {
                one.encode_utf16(&mut [0; 2]).iter().for_each(|it| out.push_str(&format!("\\u{it:04x}")));
            }
            _ => out.push(one),
        }
        (quoted, escape) = (quoted ^ (one == '"' && !escape), quoted && !escape && one == '\\');
    }
    out
}

/// White space that another program put around tokens, or behind the end, and other escapes take nothing from a bundle; what is altered in it
/// is told as such: a member added to a record, and a key in another's place.
#[test]
fn a_bundle_written_anew_is_whole_and_an_altered_one_is_not() {
    let ledger = lived();
    let text = String::from_utf8(ledger.bundle(&ledger.all())).unwrap();
    let (mut anew, mut quoted, mut escaped) = (String::new(), false, false);
    for one in text.chars() {
        if !quoted && "}]".contains(one) {
            anew.push_str("\r\n");
        }
        anew.push(one);
        (quoted, escaped) = (quoted ^ (one == '\u{22}' && !escaped), quoted && !escaped && one == '\u{5c}');
        if !quoted && "{[,:".contains(one) {
            anew.push_str("\n\t ");
        }
    }
    assert_eq!(check((anew.clone() + "\n").as_bytes()).verdict, Verdict::Whole, "{:?}", check(anew.as_bytes()).fault);
    let escaped = with_escapes(&text);
    assert!(escaped.contains("\\u2014") && escaped.contains("\\/"));
    assert_eq!(check(escaped.as_bytes()).verdict, Verdict::Whole, "{:?}", check(escaped.as_bytes()).fault);
    let json = parsed(text.as_bytes());
    let raw = serde_json::to_string(&json["records"][4]).unwrap();
    let report = check(text.replace(&raw, &raw.replacen("{", "{\"aside\":1,", 1)).as_bytes());
    assert_eq!((report.verdict, report.fault.unwrap().seq), (Verdict::Tampered, Some(4)));
    let keys = json["keys"].as_array().unwrap();
    let x = |at: usize| keys[at]["x"].as_str().unwrap();
    let report = check(text.replacen(x(0), x(1), 1).as_bytes());
    assert_eq!(report.verdict, Verdict::Tampered, "{:?}", report.fault);
}

/// The first record that does not fit is named.
#[test]
fn the_first_record_that_does_not_fit_is_named() {
    let ledger = lived();
    let text = String::from_utf8(ledger.bundle(&ledger.all())).unwrap();
    let json = parsed(text.as_bytes());
    let record = &json["records"][4];
    let raw = serde_json::to_string(record).unwrap();
    assert!(text.contains(&raw));
    let report = check(
        text.replace(&raw, &raw.replacen("\"amount\":100", "\"amount\":101", 1).replacen("20", "21", 1)).as_bytes(),
    );
    let fault = report.fault.unwrap();
    assert_eq!(fault.verdict, Verdict::Tampered);
    assert_eq!((fault.seq, fault.record.as_deref()), (Some(4), record["id"].as_str()));
    // Taken out whole, the next one is named.
    let report = check(text.replace(&format!("{raw},"), "").as_bytes());
    assert_eq!((report.verdict, report.fault.unwrap().seq), (Verdict::Tampered, Some(5)));
}

/// By agent, each record is proved by itself, and the report says that others are left out.
#[test]
fn a_bundle_by_agent_is_incomplete_and_proved_record_by_record() {
    let mut ledger = lived();
    ledger.world.agent().register();
    ledger.world.advance(Span::seconds(1));
    let bundle = ledger.bundle(&Wanted { agent: Some(ledger.agent.agent), ..ledger.all() });
    let (report, json) = (check(&bundle), parsed(&bundle));
    assert_eq!(report.verdict, Verdict::Incomplete, "{:?}", report.fault);
    assert_eq!(json["range"]["complete"], false);
    assert_eq!(json["records"].as_array().unwrap().len(), json["inclusionProofs"].as_array().unwrap().len());
    assert!(report.not_proven.iter().any(|it| it.contains("by agent")), "{:?}", report.not_proven);
}

/// A bundle that ends before its ledger does fits, and names what the checkpoint has beyond it; so does one without a record. Neither shows
/// the whole.
#[test]
fn a_bundle_that_ends_before_its_ledger_is_not_the_whole() {
    let mut ledger = lived();
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    let all = ledger.bundle(&ledger.all());
    let (whole, json) = (check(&all), parsed(&all));
    let (size, last) = (whole.records, whole.records - 1);
    assert_eq!((whole.shows_all(), whole.stretch()), (true, Some(format!("0 to {last} of {size}"))));
    assert!(!whole.not_proven.iter().any(|it| it.contains("not here")), "{:?}", whole.not_proven);
    let at = |seq: usize| Timestamp::parse(json["records"][seq]["at"].as_str().unwrap()).unwrap();
    let far = ledger.gate.now().plus(Span::hours(1));
    let from_there = format!("records 0 to {last}, which the checkpoint has: they are not here");
    let first = (1..).find(|seq| at(*seq) > at(0)).unwrap() as u64;
    let behind = format!("records {first} to {last}, which the checkpoint has: they are not here");
    for (wanted, stretch, missing) in [
        (
            Wanted { to: Some(at(first as usize)), ..ledger.all() },
            format!("0 to {} of {size}", first - 1),
            Some(behind),
        ),
        (Wanted { to: Some(at(0)), ..ledger.all() }, format!("none of {size}"), Some(from_there)),
        (Wanted { from: far, ..ledger.all() }, format!("none of {size}"), None),
    ] {
        let report = check(&ledger.bundle(&wanted));
        assert_eq!((report.verdict, report.shows_all(), report.stretch()), (Verdict::Whole, false, Some(stretch)));
        let told = report.not_proven.iter().find(|it| it.contains("not here"));
        assert_eq!(told, missing.as_ref(), "{:?}", report.not_proven);
    }
}

/// A reader who holds a checkpoint is shown that the ledger continues it, and gets what came since.
#[test]
fn a_bundle_continues_the_checkpoint_that_its_reader_holds() {
    let mut ledger = lived();
    let held = ledger.gate.checkpoint(ledger.agent.workspace).unwrap();
    let size: u64 = held.split('\n').nth(1).unwrap().parse().unwrap();
    ledger.live();
    let bundle = ledger.bundle(&Wanted { since: Some(size), ..ledger.all() });
    let (report, json) = (check(&bundle), parsed(&bundle));
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    assert_eq!((json["range"]["fromSeq"].as_u64(), json["previous"].as_str()), (Some(size), Some(held.as_str())));
    for bad in [0, size + 10_000] {
        let refused = ledger.gate.bundle(&Wanted { since: Some(bad), ..ledger.all() }).err().unwrap();
        assert!(refused.to_string().contains("since") || format!("{refused:?}").contains("since"), "{refused:?}");
    }
}

/// Redacted, no personal text and no receipt is shown, and the report says how much is hidden.
#[test]
fn a_redacted_bundle_shows_no_personal_text() {
    let ledger = lived();
    let bundle = String::from_utf8(ledger.bundle(&Wanted { redact: true, ..ledger.all() })).unwrap();
    let report = check(bundle.as_bytes());
    assert_eq!((report.verdict, report.disclosed), (Verdict::Whole, 0));
    for personal in ["Pay for what was ordered", "disclosures", "receipts", "salt"] {
        assert!(!bundle.contains(personal), "{personal}");
    }
    assert!(report.not_proven.iter().any(|it| it.contains("personal texts")));
}

/// After a rotation both keys are listed; what the first signed still verifies, and the next signs from its turn on.
#[test]
fn a_key_follows_another_and_both_verify() {
    let mut ledger = lived();
    let workspace = ledger.agent.workspace;
    let before = ledger.gate.checkpoint(workspace).unwrap();
    for purpose in Purpose::ALL {
        let next = ledger.gate.rotate_key(purpose, Leaked::None).unwrap();
        assert_eq!(next.not_before, ledger.gate.now().plus(Span::hours(24)));
        assert!(ledger.gate.rotate_key(purpose, Leaked::None).is_err(), "one waits already");
    }
    ledger.world.advance(Span::seconds(1));
    let key = |note: &str| {
        let rows = ledger.gate.signing_keys().unwrap();
        let own = |row: &&SigningKey| {
            let key = PublicKey::of(row).unwrap();
            row.id.purpose == Purpose::Checkpoint && Checkpoint::open(note, [&key]).is_ok()
        };
        rows.iter().find(own).map(|row| row.id.generation)
    };
    assert_eq!(key(&ledger.gate.checkpoint(workspace).unwrap()), Some(0));
    ledger.world.advance(Span::hours(25));
    assert_eq!((key(&before), key(&ledger.gate.checkpoint(workspace).unwrap())), (Some(0), Some(1)));
    let bundle = ledger.bundle(&ledger.all());
    let (report, json) = (check(&bundle), parsed(&bundle));
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    let listed = json["keys"].as_array().unwrap();
    assert_eq!(listed.len(), 6);
    assert_eq!(listed.iter().filter(|it| it["retiredAt"].is_string()).count(), 3);
    let told = json["records"].as_array().unwrap().iter().filter(|it| it["kind"] == "rotation").count();
    assert_eq!(told, 3);
}

/// A compromised key signs nothing from then on, and what it signed is refused.
#[test]
fn a_compromised_key_is_refused_at_once() {
    let ledger = lived();
    let before = ledger.bundle(&ledger.all());
    ledger.gate.rotate_key(Purpose::Receipt, Leaked::Current).unwrap();
    let after = ledger.bundle(&ledger.all());
    let report = check(&after);
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    let receipts = |bundle: &[u8]| parsed(bundle)["receipts"].clone();
    assert_ne!(receipts(&before), receipts(&after), "the key that stands in signs what the other had");
    let keys = parsed(&after)["keys"].clone();
    assert!(keys[0]["compromisedAt"].is_string(), "{keys}");
}

/// Who has a checkpoint key that was found to be in other hands seals no bundle with it, however well it fits otherwise.
#[test]
fn a_compromised_key_seals_no_bundle() {
    let ledger = lived();
    ledger.gate.rotate_key(Purpose::Checkpoint, Leaked::Current).unwrap();
    let id = SigningUse { purpose: Purpose::Checkpoint, generation: 0 };
    let row = ledger.gate.read(|scope| scope.get::<SigningKey>(id)).unwrap().unwrap();
    let master = MasterKey::new(Secret::new([8; 32]));
    let seed = master.open("signing_key/checkpoint/0", &row.sealed).unwrap();
    let signer = DalekSigner::new(&Secret::new(seed.expose().as_slice().try_into().unwrap()), "");
    let bundle = String::from_utf8(ledger.bundle(&ledger.all())).unwrap();
    assert_eq!(check(bundle.as_bytes()).verdict, Verdict::Whole);
    let before = &bundle[..bundle.rfind(r#","seal":"#).unwrap()];
    let forged = format!("{before}{}", seal_text(&Digest::of(before), &signer));
    assert_eq!(forged.len(), bundle.len());
    let report = check(forged.as_bytes());
    assert_eq!(report.verdict, Verdict::Tampered, "{report:?}");
    assert!(format!("{:?}", report.fault).contains("the seal does not fit"), "{report:?}");
}

/// An erasure takes the texts and the salts, and leaves the tree whole: what was proved before is proved after, and what was
/// erased is shown by no bundle.
#[test]
fn an_erasure_leaves_the_tree_whole() {
    let mut ledger = Ledger::new();
    let paid = ledger.world.authorize(&ledger.agent, payment(100, "EUR", "a.example"));
    ledger.world.freeze(ledger.agent.agent);
    ledger.world.advance(Span::seconds(1));
    let (workspace, evidence) = (ledger.agent.workspace, paid.action().evidence);
    let before = ledger.gate.proof(workspace, evidence).unwrap();
    let shown = check(&ledger.bundle(&ledger.all())).disclosed;

    let target = Target::Action(paid.id());
    assert_eq!(ledger.gate.erase(workspace, &By::Program, target).unwrap(), 1);
    let bundle = ledger.bundle(&ledger.all());
    let report = check(&bundle);
    assert_eq!(report.verdict, Verdict::Whole, "{:?}", report.fault);
    assert!(report.disclosed < shown && report.receipts == 0, "{report:?}");
    let text = String::from_utf8(bundle).unwrap();
    assert!(!text.contains("Pay for what was ordered"), "{text}");
    let after = ledger.gate.proof(workspace, evidence).unwrap();
    assert_eq!((before.entry.place.clone(), before.leaf), (after.entry.place.clone(), after.leaf));
    assert!(text.contains("\"kind\":\"erasure\""));
    let stranger = Target::Action(svc_core::value::Id::from_bits(77));
    assert!(ledger.gate.erase(workspace, &By::Program, stranger).is_err());
}

/// What waits for a person keeps its texts, for nobody says yes to what nobody can read; decided, or past its time, it is erased as
/// any other.
#[test]
fn what_waits_for_a_person_is_not_erased() {
    let mut ledger = Ledger::new();
    let (workspace, person) = (ledger.agent.workspace, ledger.world.person(Role::Admin));
    let asked: Vec<_> = (0..2).map(|_| ledger.world.authorize(&ledger.agent, request("crm.read")).id()).collect();
    let erase = |ledger: &Ledger, id| ledger.gate.erase(workspace, &By::Program, Target::Action(id));
    for id in &asked {
        let why = format!("{:?}", erase(&ledger, *id).unwrap_err());
        assert!(why.contains("decide it, or let it expire"), "{why}");
        let row = ledger.world.row::<Action>(*id);
        assert!(!row.erased && row.summary.as_str() != "[erased]", "{row:?}");
    }
    let decide = ledger.world.decision(&person, asked[0], Choice::Deny);
    ledger.world.run(decide).unwrap();
    assert_eq!(erase(&ledger, asked[0]).unwrap(), 1);
    ledger.world.advance(Span::hours(25));
    assert_eq!(erase(&ledger, asked[1]).unwrap(), 1);
    assert!(ledger.world.row::<Action>(asked[1]).erased);
}

/// What a person wrote and what they are called is gone from every row once they have left and are erased, also from approvals,
/// applications and their own row; the ledger stays whole, and what others wrote stays.
#[test]
fn a_person_is_erased_everywhere() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    let (person, other) = (ledger.world.person(Role::Admin), ledger.world.person(Role::Admin));
    let address = ledger.world.row::<Principal>(person.principal).email.clone();
    let note = |text: &str| Some(Note::parse(text).unwrap());
    let asked: Vec<_> = (0..3).map(|_| ledger.world.authorize(&ledger.agent, request("crm.read")).id()).collect();
    for (action, by, choice, said) in [
        (asked[0], person, Choice::Approve, "private word one"),
        (asked[1], person, Choice::Deny, "private word two"),
        (asked[2], other, Choice::Deny, "a word of another"),
    ] {
        let decide = ledger.world.decision(&by, action, choice);
        ledger.world.run(DecideApproval { note: note(said), ..decide }).unwrap();
    }
    let change = Change::Tier { agent: ledger.agent.agent, tier: Tier::Trusted };
    let reason = note("private word three").unwrap();
    let own = ledger.world.run(CreateApplication { by: person, change: change.clone(), reason }).unwrap().id;
    let reason = note("a reason of another").unwrap();
    let application = ledger.world.run(CreateApplication { by: other, change, reason }).unwrap().id;
    ledger.world.run(DenyApplication { by: person, application, note: note("private word four") }).unwrap();

    let by = By::Person(person);
    let reason = note("private word five").unwrap();
    ledger.world.run(FreezeAgent { workspace, agent: ledger.agent.agent, by: by.clone(), reason }).unwrap();
    let second = ledger.world.agent().register();
    let mut agents = vec![ledger.agent.agent, second.agent];
    agents.sort_unstable();
    let epoch = ledger.world.row::<Roster>(workspace).epoch;
    let freeze = FreezeFleet {
        workspace,
        by,
        epoch,
        agents: agents.into(),
        frozen: 1,
        digest: Digest::of("both"),
        all: true,
        reason: note("private word six").unwrap(),
        confirm: Some(2),
        seen: None,
    };
    drop(ledger.world.run(freeze).unwrap());
    ledger.world.advance(Span::seconds(1));
    for word in ["private word five", "private word six"] {
        assert!(ledger.world.dump().contains(word), "{word} is kept until then");
    }

    let erase =
        |ledger: &Ledger| ledger.gate.erase(workspace, &By::Program, Target::Principal(person.principal)).unwrap();
    assert!(erase(&ledger) > 0);
    assert_eq!(ledger.world.row::<Principal>(person.principal).email, address, "a member is reached there");
    let by = By::Person(other);
    ledger.world.run(RemoveMember { workspace, by, principal: person.principal }).unwrap();
    ledger.world.advance(Span::seconds(1));
    erase(&ledger);
    let rows = ledger.world.dump();
    assert!(!rows.contains("private word") && !rows.contains(address.as_str()), "something of theirs is left");
    assert!(rows.contains("a word of another") && rows.contains("a reason of another"));
    assert_eq!(ledger.world.row::<Application>(own).reason.as_str(), "[erased]");
    assert!(ledger.world.row::<Principal>(person.principal).email.as_str().ends_with("@erased.invalid"));
    assert!(ledger.gate.is_whole(workspace).unwrap());
    assert_eq!(check(&ledger.bundle(&ledger.all())).verdict, Verdict::Whole);
    assert_eq!(erase(&ledger), 0, "once");
    let stranger = Target::Principal(svc_core::value::Id::from_bits(77));
    assert!(ledger.gate.erase(workspace, &By::Program, stranger).is_err());
}

/// Drills leave a ledger that is whole: one that ends under a hold over everybody, one that is to begin under it, and one after it.
#[test]
fn a_ledger_of_drills_and_holds_is_whole() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    let start = |ledger: &mut Ledger, key: &str| {
        let (by, targets, key) = (By::Program, vec![ledger.agent.agent], NewKey::of(key));
        ledger.world.run(StartDrill { workspace, by, targets, reason: None, key })
    };
    let end = |ledger: &mut Ledger, drill: DrillId| {
        ledger.world.run(FreezeCanary(drill)).unwrap();
        let step =
            DrillStep { point: DrillPoint::Authorize, expected: "deny".into(), got: "deny".into(), ms: 1, ok: true };
        let ended = ledger.world.run(EndDrill { drill, steps: vec![step], contained_ms: 1 }).unwrap();
        assert_eq!(ended.state, DrillState::Passed);
    };
    let first = start(&mut ledger, "ask_1").unwrap().drill;
    let epoch = ledger.world.row::<Roster>(workspace).epoch;
    let mut agents = vec![ledger.agent.agent, first.canary];
    agents.sort_unstable();
    let freeze = FreezeFleet {
        workspace,
        by: By::Program,
        epoch,
        agents: agents.into(),
        frozen: 0,
        digest: Digest::of("all"),
        all: true,
        reason: Note::parse("a leak").unwrap(),
        confirm: Some(2),
        seen: None,
    };
    let Fleet::Frozen(Halted { hold: Some(hold), .. }) = ledger.world.run(freeze).unwrap() else { panic!("no hold") };
    end(&mut ledger, first.id);
    assert_eq!(start(&mut ledger, "ask_2").unwrap_err().kind(), Kind::NotAllowed);
    ledger.world.advance(Span::seconds(1));
    assert!(ledger.gate.is_whole(workspace).unwrap());
    let reason = Note::parse("it is over").unwrap();
    ledger.world.run(LiftHold { workspace, hold, by: By::Program, reason, restart: true }).unwrap();
    let last = start(&mut ledger, "ask_3").unwrap().drill.id;
    end(&mut ledger, last);
    ledger.world.advance(Span::seconds(1));
    let report = check(&ledger.bundle(&ledger.all()));
    assert_eq!((report.verdict, &report.fault), (Verdict::Whole, &None));
    assert!(ledger.gate.is_whole(workspace).unwrap());
    ledger.world.audit();
}

fn to<T>(list: Option<T>) -> Set<T> {
    list.map_or(Set::Keep, Set::To)
}

/// The longest record there is, of a mandate whose lists are all full and are all replaced, stands in a bundle that is whole.
#[test]
fn the_longest_record_is_read() {
    let mut ledger = Ledger::new();
    let entries = |of: &dyn Fn(usize) -> String| (0..1_000).map(of).collect::<Vec<_>>();
    let full = |side: char| {
        // A name of 253 bytes, and signs of four bytes each.
        let host = |it: usize| format!("{side}{it:03}.{0}.{0}.{0}.{1}.example", "a".repeat(60), "b".repeat(57));
        let sign = |it: usize, count: usize| format!("{side}{it:03}{}", "\u{1f600}".repeat(count - 4));
        let globs = entries(&|it| sign(it, 256));
        let actions = entries(&|it| format!("custom.{side}{it:03}{}", "x".repeat(110)));
        json!({
            "name": "Full", "actions": actions, "fields": { "allow": entries(&|it| sign(it, 100)) },
            "merchants": { "allow": entries(&host), "deny": entries(&host) }, "tools": { "allow": globs, "deny": globs },
        })
    };
    let (before, after) = (terms(&full('a').to_string()), terms(&full('b').to_string()));
    let agent = ledger.world.agent().with_mandate(before).register();
    let mandate = ledger.world.row::<Agent>(agent.agent).mandates[0].id;
    let (merchants, tools) = (after.merchants.unwrap(), after.tools.unwrap());
    let change = TermsChange {
        actions: Some(after.actions),
        fields: Set::To(after.fields.unwrap()),
        merchants: Set::To(MerchantsChange { allow: to(merchants.allow), deny: to(merchants.deny) }),
        tools: Set::To(ToolsChange { allow: to(tools.allow), deny: to(tools.deny) }),
        ..TermsChange::default()
    };
    let (workspace, agent, by) = (agent.workspace, agent.agent, By::Program);
    let change =
        ChangeMandate { workspace, by, agent, mandate, change, paused: None, confirm_broaden: true, counted: None };
    ledger.world.run(change).unwrap();
    ledger.world.advance(Span::seconds(1));
    let bundle = ledger.bundle(&ledger.all());
    assert!(bundle.len() > 6 << 20, "{}", bundle.len());
    let report = check(&bundle);
    assert_eq!((report.verdict, &report.fault), (Verdict::Whole, &None));
}

/// Where two servers' clocks are seconds apart, an instant parts the ledger at one place, however long it is by then: a record
/// between two ranges is in one of them.
#[test]
fn an_instant_parts_the_ledger_at_one_place() {
    let mut ledger = Ledger::new();
    let workspace = ledger.agent.workspace;
    for second in 0..60 {
        ledger.world.authorize(&ledger.agent, payment(1, "EUR", &format!("shop{second}.example")));
        ledger.world.advance(Span::seconds(1));
    }
    let rows = ledger.world.rows();
    let mut entries: Vec<_> = rows.iter().filter_map(|(.., it)| Entry::peel(it)).cloned().collect();
    entries.sort_by_key(|it| it.place.as_ref().unwrap().seq);
    let mut ats = Vec::new();
    for (seq, entry) in entries.iter().enumerate() {
        // One server is five seconds ahead, the other as much behind.
        let skew = if seq * 7 % 3 == 0 { 5 } else { -5 };
        ats.push(entry.at.plus(Span::seconds(skew)));
        ledger.world.edit::<Entry>(entry.id, |it| it.at = entry.at.plus(Span::seconds(skew)));
    }
    for at in &ats {
        let first = ats.iter().position(|it| it >= at).unwrap() as u64;
        assert_eq!(ledger.gate.numbers(workspace, Some(*at), Some(*at)).unwrap(), (first, first), "{at}");
    }
    let later = ats.iter().max().unwrap().plus(Span::millis(1));
    assert_eq!(ledger.gate.numbers(workspace, Some(later), None).unwrap().0, ats.len() as u64);
}

/// A record that was altered in the store is found by the check that an erasure makes.
#[test]
fn an_altered_ledger_is_not_whole() {
    let mut ledger = Ledger::new();
    ledger.live();
    ledger.world.advance(Span::seconds(1));
    let workspace = ledger.agent.workspace;
    assert!(ledger.gate.is_whole(workspace).unwrap());
    let rows = ledger.world.rows();
    let id = rows.iter().find_map(|(.., it)| if let Record::Entry(it) = it { Some(it.id) } else { None }).unwrap();
    ledger.world.edit::<Entry>(id, |it| it.kind = "agent.removed".into());
    assert!(!ledger.gate.is_whole(workspace).unwrap());
}

/// A bundle that would pass over a record is cut there and names it, also one of an agent alone.
#[test]
fn a_record_that_is_missing_cuts_a_bundle() {
    let mut ledger = lived();
    let rows = ledger.world.rows();
    let at = |seq: u64| {
        let mut entries = rows.iter().filter_map(|(.., it)| Entry::peel(it));
        entries.find(|it| it.place.as_ref().is_some_and(|it| it.seq == seq)).unwrap().id
    };
    let (inside, last) = (at(3), at(6));
    for (id, seq) in [(last, 6), (inside, 3)] {
        ledger.world.edit::<Entry>(id, |it| it.place = None);
        for agent in [None, Some(ledger.agent.agent)] {
            let wanted = Wanted { agent, start: Some(1), ..ledger.all() };
            let pieces: Vec<_> = ledger.gate.bundle(&wanted).unwrap().collect();
            let failure = pieces.last().unwrap().as_ref().unwrap_err();
            let told = with_causes(failure);
            assert!(told.contains(&format!("record {seq} of the ledger of {}", wanted.workspace)), "{told}");
        }
    }
}
