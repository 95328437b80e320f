//! What makes a person be asked although a mandate covers the action, and what becomes of the asking.

use svc_core::rules::gate::Caller;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::{ActsFor, RegisterAgent};
use svc_core::rules::people::show;
use svc_core::rules::read::views;
use svc_core::state::gate::{Agent, ApprovalState, Code, DecidedBy, Effect, OutcomeStatus, Status, Tier, Verb};
use svc_core::state::people::{MemberState, Principal, Role};
use svc_core::testing::world::{World, paying, payment, request, terms, tool_call};
use svc_core::value::Span;
use svc_core::value::text::{Email, Label, Note};

use super::{PAY, ask, calm, codes, fast, only};

const ASKS: &str =
    r#"{"name":"Asks","actions":["payment"],"limits":{"currency":"EUR","perAction":10000,"askAbove":5000}}"#;

fn restart(world: &mut World, agent: &Caller) {
    world.engine().tick().unwrap();
    let (workspace, by, reason) = (agent.workspace, By::Program, Note::parse("mended").unwrap());
    world.run(RestartAgent { workspace, agent: agent.agent, by, reason, admin: None }).unwrap();
}

/// A payment above the threshold of the mandate charged asks; one at it does not.
#[test]
fn above_the_threshold_asks() {
    let (mut world, agent) = calm(&[ASKS]);
    assert_eq!(ask(&mut world, &agent, payment(5_000, "EUR", "a.example")).0, Verb::Allow);
    let asked = world.authorize(&agent, payment(5_001, "EUR", "b.example"));
    assert_eq!(
        (asked.verb(), only(&asked).code, only(&asked).limit),
        (Verb::Ask, Code::AboveAskThreshold, Some(5_000))
    );
}

/// Payments to one registrable domain that together pass the threshold within 24 hours ask, whatever their hosts.
#[test]
fn split_payments_ask() {
    let (mut world, agent) = calm(&[ASKS]);
    assert_eq!(ask(&mut world, &agent, payment(3_000, "EUR", "a.shop.example")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, payment(2_000, "EUR", "b.shop.example")).0, Verb::Allow);
    let split = world.authorize(&agent, payment(1, "EUR", "shop.example"));
    assert_eq!((split.verb(), only(&split).code, only(&split).used), (Verb::Ask, Code::SplitPayments, Some(5_001)));
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "other.example")).0, Verb::Allow);
    world.advance(Span::hours(24));
    assert_eq!(ask(&mut world, &agent, payment(5_000, "EUR", "shop.example")).0, Verb::Allow, "a day is over");
}

/// What was not paid after all does not count towards a split; a consumed receipt does.
#[test]
fn what_failed_is_no_split() {
    let (mut world, agent) = calm(&[ASKS]);
    let failed = world.authorize(&agent, payment(4_000, "EUR", "shop.example")).id();
    world.settle(&agent, failed, OutcomeStatus::Failed, None);
    assert_eq!(ask(&mut world, &agent, payment(4_500, "EUR", "shop.example")).0, Verb::Allow);
}

/// A payment that was done for less counts towards a split with what was paid, and is still the same payment again.
#[test]
fn a_split_adds_up_what_was_paid() {
    let (mut world, agent) = calm(&[ASKS]);
    let less = world.authorize(&agent, payment(4_500, "EUR", "shop.example")).id();
    world.settle(&agent, less, OutcomeStatus::Completed, Some(1_000));
    assert_eq!(ask(&mut world, &agent, payment(4_000, "EUR", "shop.example")).0, Verb::Allow);
    let split = world.authorize(&agent, payment(1, "EUR", "shop.example"));
    assert_eq!((only(&split).code, only(&split).used), (Code::SplitPayments, Some(5_001)));
    let again = codes(&world.authorize(&agent, payment(4_500, "EUR", "shop.example")));
    assert!(again.contains(&Code::PossibleDuplicate), "{again:?}");
}

/// The same where it lies in a sealed block when it is settled, and when its day is over.
#[test]
fn what_was_paid_is_told_to_a_block() {
    let (mut world, agent) = calm(&[&ASKS.replace("5000", "10000")]);
    let mut made = Vec::new();
    for _ in 0..40 {
        world.advance(Span::minutes(11));
        made.push(world.authorize(&agent, payment(200, "EUR", "shop.example")).id());
    }
    world.settle(&agent, made[0], OutcomeStatus::Completed, Some(100));
    let split = world.authorize(&agent, payment(2_101, "EUR", "shop.example"));
    assert_eq!(only(&split).used, Some(10_001));
    world.advance(Span::minutes(24 * 60 - 39 * 11));
    let later = world.authorize(&agent, payment(100, "EUR", "shop.example"));
    assert_eq!(only(&later).used, Some(39 * 200 + 2_101 + 100));
}

/// What a stop revoked neither repeats nor adds up, unless it is settled as done after all.
#[test]
fn what_a_stop_revoked_is_not_looked_at() {
    let (mut world, agent) = calm(&[ASKS]);
    let revoked = world.authorize(&agent, payment(4_000, "EUR", "shop.example")).id();
    world.freeze(agent.agent);
    world.advance(Span::seconds(1));
    restart(&mut world, &agent);
    assert_eq!(ask(&mut world, &agent, payment(4_000, "EUR", "shop.example")), (Verb::Allow, vec![]));
    world.settle(&agent, revoked, OutcomeStatus::Completed, None);
    let split = world.authorize(&agent, payment(1, "EUR", "shop.example"));
    assert_eq!((only(&split).code, only(&split).used), (Code::SplitPayments, Some(8_001)));
}

/// Fifty payments to one payee go through the sealed blocks of its row: the sum is exact, and exact again a day later.
#[test]
fn a_split_is_exact_over_many_payments() {
    let (mut world, agent) =
        calm(&[&ASKS.replace("5000", "10000").replace("\"askAbove\"", "\"onLimit\":\"deny\",\"askAbove\"")]);
    for n in 0..50 {
        world.advance(Span::minutes(11));
        assert_eq!(ask(&mut world, &agent, payment(200, "EUR", "shop.example")).0, Verb::Allow, "payment {n}");
    }
    let split = world.authorize(&agent, payment(1, "EUR", "shop.example"));
    assert_eq!(only(&split).used, Some(10_001));
    world.advance(Span::hours(15));
    let later = world.authorize(&agent, payment(10_000, "EUR", "shop.example"));
    let used = later.reasons().iter().find(|it| it.code == Code::SplitPayments).unwrap().used.unwrap();
    // 24 hours back lie the payments of the last nine hours of the nine and a bit that the fifty took.
    let inside = (0..50).filter(|n| 50 * 11 - (n + 1) * 11 + 15 * 60 < 24 * 60).count();
    assert_eq!(used, 10_000 + 1 + 200 * i64::try_from(inside).unwrap());
}

/// However many payments have aged at once, the sum is that of 24 hours: of hundreds made together a day ago none counts any more, and
/// what was made since does, whether it lies in the row or in blocks.
#[test]
fn a_split_is_exact_when_many_have_aged() {
    for (before, since) in [(400, 1), (400, 40), (1_000, 300), (130, 17)] {
        let (mut world, agent) = calm(&[&ASKS.replace("10000", "90000000").replace("5000", "10000000")]);
        for n in 0..before {
            world.authorize(&agent, payment(10 + n, "EUR", "shop.example"));
        }
        world.advance(Span::hours(23));
        let mut paid = 0;
        for n in 0..since {
            world.authorize(&agent, payment(20 + n, "EUR", "shop.example"));
            paid += 20 + n;
        }
        world.advance(Span::hours(1));
        let split = world.authorize(&agent, payment(10_000_000, "EUR", "shop.example"));
        let used = split.reasons().iter().find(|it| it.code == Code::SplitPayments).unwrap().used.unwrap();
        assert_eq!(used, 10_000_000 + paid, "{before} a day ago, {since} since");
        world.audit();
    }
}

/// A block that was dead when it was full was never stored: payments within ten minutes of each other are decided without it, a
/// day after sixteen or thirty-two others to the same payee.
#[test]
fn no_decision_rests_on_a_block_that_was_let_go() {
    for before in [15, 16, 17, 32, 48] {
        let (mut world, agent) = calm(&[PAY]);
        for (day, payments) in [before, before, 60].into_iter().enumerate() {
            for n in 0..payments {
                let amount = 100 + 60 * i64::try_from(day).unwrap() + n;
                let answer = ask(&mut world, &agent, payment(amount, "EUR", "shop.example"));
                assert_eq!(answer, (Verb::Allow, vec![]), "payment {n} of day {day}, {before} a day before");
            }
            world.advance(if day < 2 { Span::hours(25) } else { Span::minutes(1) });
        }
        let again = payment(100 + 120, "EUR", "shop.example");
        assert_eq!(ask(&mut world, &agent, again).1, [Code::PossibleDuplicate], "{before} a day before");
    }
}

/// The same amount to the same payee within ten minutes asks; ten minutes later, another amount or currency does not.
#[test]
fn the_same_payment_again_asks() {
    let (mut world, agent) = calm(&[PAY]);
    assert_eq!(ask(&mut world, &agent, payment(700, "EUR", "shop.example")).0, Verb::Allow);
    let again = world.authorize(&agent, payment(700, "EUR", "www.shop.example"));
    assert_eq!((again.verb(), only(&again).code), (Verb::Ask, Code::PossibleDuplicate));
    assert_eq!(ask(&mut world, &agent, payment(701, "EUR", "shop.example")).0, Verb::Allow);
    let elsewhere = ask(&mut world, &agent, payment(701, "USD", "shop.example")).1;
    assert_eq!(elsewhere, [Code::CurrencyNotCovered], "in another currency it is another payment");
    world.advance(Span::minutes(10));
    assert_eq!(ask(&mut world, &agent, payment(701, "EUR", "shop.example")).0, Verb::Allow);
}

/// A duplicate is found among forty newer payments, which have sealed it into a block.
#[test]
fn a_duplicate_is_found_in_a_block() {
    let (mut world, agent) = calm(&[PAY]);
    for amount in 1..=40 {
        assert_eq!(ask(&mut world, &agent, payment(amount, "EUR", "shop.example")).0, Verb::Allow);
    }
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "shop.example")), (Verb::Ask, vec![Code::PossibleDuplicate]));
    assert_eq!(ask(&mut world, &agent, payment(41, "EUR", "shop.example")).0, Verb::Allow);
}

/// Where a payee was paid more often within ten minutes than is looked through, the next payment passes for one of those, whatever it
/// comes to: a person is asked. Ten minutes later nothing is left of it.
#[test]
fn beyond_two_thousand_payments_each_may_be_a_duplicate() {
    let (mut world, agent) = calm(&[PAY]);
    let mut amounts = 1..;
    let mut next = |world: &mut World| ask(world, &agent, payment(amounts.next().unwrap(), "EUR", "shop.example"));
    let allowed = (0..2_200).position(|_| next(&mut world).0 != Verb::Allow);
    assert!(allowed.is_some_and(|it| (2_048..2_100).contains(&it)), "{allowed:?}");
    assert_eq!(next(&mut world), (Verb::Ask, vec![Code::PossibleDuplicate]));
    world.advance(Span::minutes(10));
    assert_eq!(next(&mut world).0, Verb::Allow);
}

/// A mandate may say that duplicates are noted only; so does the tier `trusted`.
#[test]
fn a_duplicate_may_be_noted_only() {
    let record = PAY.replace("\"limits\"", "\"duplicates\":\"record\",\"limits\"");
    let (mut world, agent) = calm(&[&record]);
    world.authorize(&agent, payment(700, "EUR", "shop.example"));
    let again = world.authorize(&agent, payment(700, "EUR", "shop.example"));
    assert_eq!((again.verb(), only(&again).effect), (Verb::Allow, Effect::Info));
    let trusted = world.agent().with_mandate(terms(PAY)).tier(Tier::Trusted).register();
    world.authorize(&trusted, payment(700, "EUR", "shop.example"));
    let again = world.authorize(&trusted, payment(700, "EUR", "shop.example"));
    assert_eq!((again.verb(), only(&again).effect), (Verb::Allow, Effect::Info));
}

/// An agent of tier `restricted` is asked about everything.
#[test]
fn a_restricted_agent_always_asks() {
    let mut world = World::with(fast());
    let agent = world.agent().with_template("coding-agent").tier(Tier::Restricted).register();
    assert_eq!(ask(&mut world, &agent, tool_call("ls")), (Verb::Ask, vec![Code::TierRestricted]));
}

/// While sixty denials lie in the last ten minutes every action asks; then it is over.
#[test]
fn sixty_denials_make_everything_ask() {
    let (mut world, agent) = calm(&[PAY, r#"{"name":"Crm","actions":["crm.read"]}"#]);
    for _ in 0..60 {
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
        assert_eq!(ask(&mut world, &agent, payment(10_001, "EUR", "a.example")).0, Verb::Deny);
    }
    assert_eq!(ask(&mut world, &agent, request("crm.read")), (Verb::Ask, vec![Code::Probing]));
    world.advance(Span::minutes(10));
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
}

/// Denials because the agent is stopped are none of a rule, and teach it nothing of what rules let through: whoever starts it again need
/// not answer for every one of its tries meanwhile.
#[test]
fn a_stop_is_no_probing() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    world.freeze(agent.agent);
    for _ in 0..61 {
        assert_eq!(ask(&mut world, &agent, request("crm.read")), (Verb::Deny, vec![Code::AgentFrozen]));
    }
    restart(&mut world, &agent);
    assert_eq!(ask(&mut world, &agent, request("crm.read")), (Verb::Allow, vec![]));
}

/// When probing is over is told as it is: what is denied is one more denial, what is asked about is none.
#[test]
fn probing_is_over_when_it_says() {
    for (asked, verb) in [(request("crm.read"), Verb::Ask), (payment(10_001, "EUR", "a.example"), Verb::Deny)] {
        let (mut world, agent) = calm(&[PAY, r#"{"name":"Crm","actions":["crm.read"]}"#]);
        for _ in 0..60 {
            world.advance(Span::seconds(1));
            assert_eq!(ask(&mut world, &agent, payment(10_001, "EUR", "a.example")).0, Verb::Deny);
        }
        let decided = world.authorize(&agent, asked);
        let probing = decided.reasons().into_iter().find(|it| it.code == Code::Probing).unwrap();
        assert_eq!((decided.verb(), probing.message().starts_with("at least 60 of")), (verb, true));
        let left = probing.clears_at.unwrap().since(world.now()).as_millis();
        world.advance(Span::millis(left - 1));
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask, "{verb:?}");
        world.advance(Span::millis(1));
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow, "{verb:?}");
    }
}

/// With as many approvals waiting as may wait, a further ask is a deny that reserves nothing; a plain allow still passes.
#[test]
fn a_full_backlog_denies() {
    let mut settings = fast();
    settings.max_waiting = 2;
    let (mut world, agent) = super::with(settings, &[PAY]);
    for _ in 0..2 {
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask);
    }
    let full = world.authorize(&agent, request("crm.read"));
    assert_eq!((full.verb(), codes(&full)), (Verb::Deny, vec![Code::OutsideMandate, Code::ApprovalBacklog]));
    assert!(full.view().approval.is_none());
    assert_eq!(ask(&mut world, &agent, payment(1, "EUR", "a.example")).0, Verb::Allow);
    world.advance(Span::hours(24));
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask, "what expired waits no more");
}

/// What a freeze ended waits no more from its commit on, also where the agent starts again before each wait is written: nothing
/// of it fills the backlog or is counted, nor is anything taken from it twice.
#[test]
fn a_freeze_empties_the_backlog() {
    let mut settings = fast();
    settings.max_waiting = 2;
    let (mut world, agent) = super::with(settings, &[PAY]);
    let waiting = |world: &mut World| {
        let row = world.row::<Agent>(agent.agent);
        world.engine().read(|scope| show::lately(scope, &row)).unwrap().waiting
    };
    for _ in 0..2 {
        assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask);
    }
    world.freeze(agent.agent);
    assert_eq!(waiting(&mut world), 0);
    restart(&mut world, &agent);
    assert_eq!(ask(&mut world, &agent, request("crm.read")), (Verb::Ask, vec![Code::OutsideMandate]));
    world.advance(Span::seconds(1));
    assert_eq!(waiting(&mut world), 1, "the old waits are written as ended");
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Ask);
    assert!(codes(&world.authorize(&agent, request("crm.read"))).contains(&Code::ApprovalBacklog));
    world.audit();
}

/// An ask makes a durable approval bound to the digest, with its link; the person at the keyboard may be asked.
#[test]
fn an_ask_makes_an_approval() {
    let (mut world, agent) = calm(&[PAY]);
    let asked = world.authorize(&agent, request("crm.read"));
    assert_eq!((asked.status(), asked.receipt()), (Status::Pending, None));
    let approval = asked.view().approval.clone().unwrap();
    assert_eq!(approval.state, ApprovalState::Waiting);
    let about = approval.asked_action().unwrap();
    assert_eq!((approval.needed, about.digest), (1, asked.action().digest));
    assert_eq!(approval.expires_at, world.now().plus(Span::hours(24)));
    assert!(asked.view().client_may_ask);
    let url = asked.url().unwrap();
    assert!(url.starts_with("https://gate.example.com/w/wsp_") && url.ends_with(&approval.id.to_string()), "{url}");
}

/// Above the second person's line two have to agree, and in a currency without a line as soon as there is any.
#[test]
fn two_persons_above_the_line() {
    let mut settings = fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 5_000);
    let (mut world, agent) = super::with(settings, &[]);
    for (minor, currency, needed) in [(5_000, "EUR", 1), (5_001, "EUR", 2), (1, "USD", 2)] {
        let asked = world.authorize(&agent, payment(minor, currency, "a.example"));
        let view = asked.view();
        assert_eq!(view.approval.as_ref().unwrap().needed, needed, "{minor} {currency}");
        assert_eq!(view.client_may_ask, needed == 1);
    }
}

/// Where a yes takes the second factor again, nobody at the keyboard is asked, whatever the action pays for: a client cannot look at one.
#[test]
fn who_must_show_a_factor_is_not_asked_at_the_keyboard() {
    let mut settings = fast();
    settings.step_up_above.insert("EUR".parse().unwrap(), 5_000);
    let (mut world, agent) = super::with(settings, &[]);
    for (minor, currency, may_ask) in [(5_000, "EUR", true), (5_001, "EUR", false), (1, "USD", false)] {
        for kind in ["payment", "crm.read"] {
            let asked = world.authorize(&agent, paying(kind, minor, currency, "a.example"));
            assert_eq!((asked.status(), asked.view().client_may_ask), (Status::Pending, may_ask), "{minor} {currency}");
        }
    }
}

/// Nobody decides in time: deny, `expired`, decided by expiry, never an allow and never a person's no.
#[test]
fn an_approval_expires_into_a_deny() {
    let (mut world, agent) = calm(&[]);
    let asked = world.authorize(&agent, request("crm.read")).id();
    world.advance(Span::hours(24));
    let read = world.read(&agent, asked);
    assert_eq!((read.status(), read.verb()), (Status::Expired, Verb::Deny));
    assert!(codes(&read).contains(&Code::ApprovalExpired) && !codes(&read).contains(&Code::PersonDenied));
    let (at, by) = read.view().decided().unwrap();
    assert_eq!((at, by), (world.now(), DecidedBy::Expiry));
    assert!(matches!(read.view().approval.as_ref().unwrap().state, ApprovalState::Expired { .. }));
}

/// What counts towards a split and a duplicate: what was allowed, waits or was done, and what was charged whatever is said
/// of it; not what was denied, has expired or was called off unused.
#[test]
fn what_came_to_nothing_is_not_looked_at() {
    let mut settings = fast();
    settings.approval_hours = 1;
    let (mut world, agent) = super::with(settings, &[ASKS]);
    let again = |world: &mut World, minor, domain| codes(&world.authorize(&agent, payment(minor, "EUR", domain)));
    let both = |said: &[Code]| (said.contains(&Code::PossibleDuplicate), said.contains(&Code::SplitPayments));
    assert_eq!(again(&mut world, 6_000, "waits.example"), [Code::AboveAskThreshold]);
    assert_eq!(both(&again(&mut world, 6_000, "waits.example")), (true, true));
    assert_eq!(again(&mut world, 1, "waits.example"), [Code::SplitPayments]);
    assert_eq!(again(&mut world, 10_001, "denied.example"), [Code::OverLimit]);
    assert_eq!(again(&mut world, 10_001, "denied.example"), [Code::OverLimit]);
    assert_eq!(again(&mut world, 1, "denied.example"), []);
    assert_eq!(again(&mut world, 6_000, "expires.example"), [Code::AboveAskThreshold]);
    let shops = [
        ("done.example", OutcomeStatus::Completed, false, (true, true)),
        ("charged.example", OutcomeStatus::Failed, true, (true, true)),
        ("failed.example", OutcomeStatus::Failed, false, (false, false)),
        ("cancelled.example", OutcomeStatus::Cancelled, false, (false, false)),
    ];
    for (shop, status, is_charged, looked_at) in shops {
        let allowed = world.authorize(&agent, payment(3_000, "EUR", shop));
        if is_charged {
            let bill = svc_core::testing::world::charge(3_000, "EUR", shop);
            assert!(world.verify(allowed.receipt().unwrap(), Some(bill)).is_valid());
        }
        world.settle(&agent, allowed.id(), status, None);
        assert_eq!(both(&again(&mut world, 3_000, shop)), looked_at, "{shop}");
    }
    world.advance(Span::hours(1));
    assert_eq!(again(&mut world, 4_000, "expires.example"), []);
}

/// How long an approval waits is the setting's.
#[test]
fn an_approval_waits_as_long_as_the_settings_say() {
    let mut settings = fast();
    settings.approval_hours = 2;
    let (mut world, agent) = super::with(settings, &[]);
    let asked = world.authorize(&agent, request("crm.read"));
    assert_eq!(asked.view().approval.as_ref().unwrap().expires_at, world.now().plus(Span::hours(2)));
    world.advance(Span::millis(2 * 3_600_000 - 1));
    assert_eq!(world.read(&agent, asked.id()).status(), Status::Pending);
    world.advance(Span::millis(1));
    assert_eq!(world.read(&agent, asked.id()).status(), Status::Expired);
}

/// Where the agent acts for somebody who cannot sign in, nobody at the keyboard may be asked.
#[test]
fn a_principal_without_a_sign_in_is_not_asked() {
    let mut world = World::with(fast());
    let made = RegisterAgent {
        principal: ActsFor::Email(Email::parse("nobody@example.com").unwrap()),
        ..RegisterAgent::new(world.workspace(), Label::parse("Robot").unwrap(), NewKey::of("ask_of_a_test"))
    };
    let made = world.run(made).unwrap();
    let agent = Caller::of(&made.binding).unwrap();
    let asked = world.authorize(&agent, request("crm.read"));
    let view = asked.view();
    assert_eq!((view.approval.as_ref().unwrap().needed, view.client_may_ask), (1, false));
}

/// Nor is the person at the keyboard asked for somebody who was invited and has never come, or who would have to set a second factor
/// up before they decide.
#[test]
fn nobody_answers_for_who_could_not_decide() {
    let mut world = World::with(fast());
    let person = world.person(Role::Member);
    let made = RegisterAgent {
        principal: ActsFor::Principal(person.principal),
        ..RegisterAgent::new(world.workspace(), Label::parse("Robot").unwrap(), NewKey::of("ask_of_a_test"))
    };
    let made = world.run(made).unwrap();
    let agent = Caller::of(&made.binding).unwrap();
    let may_ask = |world: &mut World| {
        let asked = world.authorize(&agent, request("crm.read"));
        let read = world.engine().read(|scope| views(scope, &[asked.view().action.clone()])).unwrap();
        assert_eq!(read[0].client_may_ask, asked.view().client_may_ask, "alone and among others");
        asked.view().client_may_ask
    };
    assert!(may_ask(&mut world));
    world.edit::<Principal>(person.principal, |it| it.member.as_mut().unwrap().state = MemberState::Invited);
    assert!(!may_ask(&mut world), "they have never come");
    world.edit::<Principal>(person.principal, |it| it.member.as_mut().unwrap().state = MemberState::Active);
    let mut settings = fast();
    settings.sign_in.require_two_factor = true;
    world.change_settings(settings);
    assert!(!may_ask(&mut world), "they have no second factor");
}
