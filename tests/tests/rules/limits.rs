//! Limits per action, per period and per count; reservations and what they become.

use svc_core::rules::gate::verify::Fault;
use svc_core::state::gate::{Activity, Code, OutcomeStatus, Status, Verb};
use svc_core::state::people::Settings;
use svc_core::testing::world::{World, paying, payment, request};
use svc_core::value::period::{Period, Zone};
use svc_core::value::{Span, Timestamp};

use super::{ask, calm, fast, only};

const DAY: &str =
    r#"{"name":"Day","actions":["payment"],"limits":{"currency":"EUR","perPeriod":{"amount":10000,"period":"day"}}}"#;

fn tally(world: &mut World, agent: svc_core::value::id::AgentId) -> (i64, i64, u32) {
    let row: std::sync::Arc<Activity> = world.row(agent);
    let sum = |f: fn(&svc_core::state::gate::Tally) -> i64| row.tallies.iter().map(f).sum::<i64>();
    (sum(|it| it.reserved), sum(|it| it.spent), row.tallies.iter().map(|it| it.count).sum())
}

/// One action may move its limit and no more; the reason tells the numbers.
#[test]
fn an_amount_is_held_to_its_limit() {
    let (mut world, agent) = calm(&[super::PAY]);
    assert_eq!(ask(&mut world, &agent, payment(10_000, "EUR", "a.example")).0, Verb::Allow);
    let over = world.authorize(&agent, payment(10_001, "EUR", "b.example"));
    let reason = only(&over);
    assert_eq!(
        (over.verb(), reason.code, reason.limit, reason.requested),
        (Verb::Deny, Code::OverLimit, Some(10_000), Some(10_001))
    );
    assert_eq!(reason.message(), "EUR 100.01 is above EUR 100.00 for one action");
}

/// Reserved plus spent fills a period to its last unit and never past it; the next period is empty.
#[test]
fn a_period_is_filled_and_never_passed() {
    let (mut world, agent) = calm(&[DAY]);
    assert_eq!(ask(&mut world, &agent, payment(6_000, "EUR", "a.example")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, payment(4_000, "EUR", "b.example")).0, Verb::Allow);
    let over = world.authorize(&agent, payment(1, "EUR", "c.example"));
    let reason = only(&over);
    assert_eq!(
        (over.verb(), reason.code, reason.used, reason.limit),
        (Verb::Deny, Code::OverPeriodLimit, Some(10_000), Some(10_000))
    );
    let (_, until) = Period::Day.bounds(world.now(), &Zone::utc());
    assert_eq!((reason.window.as_deref(), reason.clears_at), (Some("day"), Some(until)));
    let rest = until.since(world.now());
    world.advance(rest);
    assert_eq!(ask(&mut world, &agent, payment(10_000, "EUR", "c.example")).0, Verb::Allow);
}

/// The count of a period is used up by allowed actions of any type that the mandate covers.
#[test]
fn a_count_is_used_up() {
    let (mut world, agent) =
        calm(&[r#"{"name":"C","actions":["crm.*"],"limits":{"count":{"max":2,"period":"hour"}}}"#]);
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, request("crm.write")).0, Verb::Allow);
    let over = world.authorize(&agent, request("crm.read"));
    assert_eq!((over.verb(), only(&over).code, only(&over).used), (Verb::Deny, Code::OverCountLimit, Some(2)));
}

/// Where the mandate asks at its limit a person is asked, nothing is reserved, and the approval names what is exceeded.
#[test]
fn asking_over_a_limit_reserves_nothing() {
    let asks = DAY.replace("\"perPeriod\"", "\"onLimit\":\"ask\",\"perPeriod\"");
    let (mut world, agent) = calm(&[&asks]);
    let asked = world.authorize(&agent, payment(10_001, "EUR", "a.example"));
    assert_eq!((asked.verb(), only(&asked).code), (Verb::Ask, Code::OverPeriodLimit));
    assert!(asked.action().mandate.is_some(), "a person's yes is charged to it");
    let approval = asked.view().approval.clone().unwrap();
    assert_eq!(approval.asked_action().unwrap().exceptions[0].code, Code::OverPeriodLimit);
    assert_eq!(tally(&mut world, agent.agent), (0, 0, 0));
}

/// An ask within the limits reserves; its expiry releases the amount and the one of the count.
#[test]
fn an_ask_reserves_and_its_expiry_releases() {
    let both = r#"{"name":"B","actions":["payment"],"limits":{"currency":"EUR","askAbove":100,"perPeriod":{"amount":10000,"period":"month"},"count":{"max":9,"period":"month"}}}"#;
    let (mut world, agent) = calm(&[both]);
    assert_eq!(ask(&mut world, &agent, payment(5_000, "EUR", "a.example")).0, Verb::Ask);
    assert_eq!(tally(&mut world, agent.agent), (5_000, 0, 1));
    world.advance(Span::hours(24));
    assert_eq!(tally(&mut world, agent.agent), (0, 0, 0));
}

/// Completed posts what was settled and frees the rest; without an amount the allowed one; failed posts nothing.
#[test]
fn settlements_post_and_release() {
    let (mut world, agent) = calm(&[DAY]);
    let first = world.authorize(&agent, payment(3_000, "EUR", "a.example")).id();
    let second = world.authorize(&agent, payment(3_000, "EUR", "b.example")).id();
    let third = world.authorize(&agent, payment(3_000, "EUR", "c.example")).id();
    assert_eq!(tally(&mut world, agent.agent), (9_000, 0, 0));
    world.settle(&agent, first, OutcomeStatus::Completed, Some(2_500));
    assert_eq!(tally(&mut world, agent.agent), (6_000, 2_500, 0));
    world.settle(&agent, second, OutcomeStatus::Completed, None);
    assert_eq!(tally(&mut world, agent.agent), (3_000, 5_500, 0));
    world.settle(&agent, third, OutcomeStatus::Failed, None);
    assert_eq!(tally(&mut world, agent.agent), (0, 5_500, 0));
}

/// A settled or lapsed action keeps its one of the count; only a denied or expired one gives it back.
#[test]
fn the_count_stays_with_what_was_allowed() {
    let (mut world, agent) =
        calm(&[r#"{"name":"C","actions":["crm.*"],"limits":{"count":{"max":2,"period":"month"}}}"#]);
    let first = world.authorize(&agent, request("crm.read")).id();
    world.settle(&agent, first, OutcomeStatus::Failed, None);
    assert_eq!(tally(&mut world, agent.agent).2, 1);
    world.authorize(&agent, request("crm.read"));
    world.advance(Span::hours(25));
    assert_eq!(tally(&mut world, agent.agent).2, 2);
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Deny);
}

/// What nobody settles is posted in full a day after its receipt expired; time releases nothing.
#[test]
fn a_lapse_posts_in_full_and_late_failure_releases() {
    let month = DAY.replace("\"day\"", "\"month\"");
    let (mut world, agent) = calm(&[&month]);
    let lapsed = world.authorize(&agent, payment(3_000, "EUR", "a.example")).id();
    let kept = world.authorize(&agent, payment(1_000, "EUR", "b.example")).id();
    world.advance(Span::hours(24));
    assert_eq!(tally(&mut world, agent.agent), (4_000, 0, 0), "the receipt's 15 minutes come first");
    world.advance(Span::minutes(15));
    assert_eq!(tally(&mut world, agent.agent), (0, 4_000, 0));
    let late = world.settle(&agent, lapsed, OutcomeStatus::Cancelled, None);
    assert!(late.action().allowed().unwrap().outcome.as_ref().unwrap().late);
    assert_eq!(tally(&mut world, agent.agent), (0, 1_000, 0));
    world.settle(&agent, kept, OutcomeStatus::Completed, Some(400));
    assert_eq!(tally(&mut world, agent.agent), (0, 400, 0));
}

/// What is settled after its period has ended leaves the running period alone.
#[test]
fn a_past_period_is_left_alone() {
    let (mut world, agent) = calm(&[DAY]);
    let old = world.authorize(&agent, payment(3_000, "EUR", "a.example")).id();
    let (_, until) = Period::Day.bounds(world.now(), &Zone::utc());
    let rest = until.since(world.now());
    world.advance(rest);
    world.authorize(&agent, payment(1_000, "EUR", "b.example"));
    world.settle(&agent, old, OutcomeStatus::Completed, None);
    assert_eq!(tally(&mut world, agent.agent), (1_000, 0, 0));
}

/// A changed zone takes effect for a period when the running one ends in the old zone.
#[test]
fn a_changed_zone_waits_for_the_running_period() {
    let (mut world, agent) = calm(&[DAY]);
    world.authorize(&agent, payment(6_000, "EUR", "a.example"));
    let mut settings = fast();
    settings.timezone = Zone::parse("Pacific/Auckland").unwrap();
    world.change_settings(settings);
    let (_, until) = Period::Day.bounds(world.now(), &Zone::utc());
    let rest = until.since(world.now());
    world.advance(rest);
    let row: std::sync::Arc<Activity> = world.row(agent.agent);
    assert_eq!(row.tallies[0].until, until);
    assert_eq!(ask(&mut world, &agent, payment(6_000, "EUR", "b.example")).0, Verb::Allow);
    let row: std::sync::Arc<Activity> = world.row(agent.agent);
    let zone = Zone::parse("Pacific/Auckland").unwrap();
    assert_eq!(row.tallies[0].until, Period::Day.bounds(world.now(), &zone).1);
}

/// The same holds for a mandate of which nothing was used yet, and whatever zones came between: no period is cut short, so that
/// its limit is there twice, and none goes on.
#[test]
fn a_changed_zone_waits_where_nothing_was_used() {
    let to = |world: &mut World, at: &str| {
        let rest = Timestamp::parse(at).unwrap().since(world.now());
        world.advance(rest);
    };
    let ends = "2026-12-01T00:00:00Z";
    for zones in [["Asia/Tokyo", "Europe/Vienna"], ["Europe/Vienna", "America/New_York"], ["America/New_York", "UTC"]] {
        let (mut world, agent) = calm(&[&DAY.replace("day", "month")]);
        to(&mut world, "2026-11-30T20:00:00Z");
        for zone in zones {
            let mut settings = fast();
            settings.timezone = Zone::parse(zone).unwrap();
            world.change_settings(settings);
        }
        to(&mut world, "2026-11-30T22:59:00Z");
        assert_eq!(ask(&mut world, &agent, payment(10_000, "EUR", "a.example")).0, Verb::Allow, "{zones:?}");
        to(&mut world, "2026-11-30T23:59:59Z");
        let over = world.authorize(&agent, payment(1, "EUR", "b.example"));
        assert_eq!(only(&over).clears_at, Some(Timestamp::parse(ends).unwrap()), "{zones:?}");
        to(&mut world, ends);
        assert_eq!(ask(&mut world, &agent, payment(10_000, "EUR", "c.example")).0, Verb::Allow, "{zones:?}");
    }
}

/// A person's yes beyond a limit, said when another zone has come into force and the day that was asked in is over, takes the place
/// of no sum: the day that runs then has its limit once.
#[test]
fn a_late_yes_under_another_zone_leaves_the_running_period_alone() {
    let asks = DAY.replace("\"perPeriod\"", "\"onLimit\":\"ask\",\"perPeriod\"");
    let (mut world, agent) = calm(&[&asks]);
    let to = |world: &mut World, at: &str| {
        let rest = Timestamp::parse(at).unwrap().since(world.now());
        world.advance(rest);
    };
    to(&mut world, "2027-03-01T23:00:00Z");
    let asked = world.authorize(&agent, payment(50_000, "EUR", "a.example"));
    assert_eq!((asked.verb(), only(&asked).code), (Verb::Ask, Code::OverPeriodLimit));
    to(&mut world, "2027-03-02T00:05:00Z");
    // An hour behind: by its days it is still the first of March there.
    let settings = Settings { timezone: Zone::parse("Atlantic/Cape_Verde").unwrap(), ..fast() };
    world.change_settings(settings);
    to(&mut world, "2027-03-02T00:10:00Z");
    let by = world.owner();
    world.approve(&by, asked.id());
    to(&mut world, "2027-03-02T00:15:00Z");
    assert_eq!(ask(&mut world, &agent, payment(9_000, "EUR", "b.example")).0, Verb::Allow);
    to(&mut world, "2027-03-02T01:15:00Z");
    let over = world.authorize(&agent, payment(9_000, "EUR", "c.example"));
    assert_eq!((over.verb(), only(&over).used), (Verb::Ask, Some(9_000)));
    world.audit();
}

/// A zone that is put in force while a period of the one before still runs begins behind the period that runs then.
#[test]
fn a_second_change_waits_for_what_runs_then() {
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let zone = |name: &str| Zone::parse(name).unwrap();
    let mut settings = fast();
    settings.change_zone(zone("Asia/Tokyo"), at("2026-11-29T12:00:00Z"));
    // Tokyo's days have begun, its months have not.
    settings.change_zone(zone("America/New_York"), at("2026-11-30T06:00:00Z"));
    let until = |period: Period, text: &str| settings.term(period, at(text)).until;
    assert_eq!(until(Period::Day, "2026-11-30T06:00:00Z"), at("2026-11-30T15:00:00Z"));
    assert_eq!(until(Period::Month, "2026-11-30T06:00:00Z"), at("2026-12-01T00:00:00Z"));
    assert_eq!(until(Period::Day, "2026-11-30T15:00:00Z"), at("2026-12-01T05:00:00Z"));
    assert_eq!(until(Period::Month, "2026-12-01T00:00:00Z"), at("2026-12-01T05:00:00Z"));
    settings.change_zone(zone("UTC"), at("2027-02-10T12:00:00Z"));
    assert_eq!(settings.running.iter().filter(|it| it.period == Period::Hour).count(), 0, "hours are those of UTC");
    assert!(settings.running.len() < Period::ALL.len());
}

/// A period that begins in a new zone may have the beginning of the one that has ended: what was reserved in that is released
/// there, and nobody gets room in this.
#[test]
fn a_reservation_is_released_in_its_own_period() {
    let mut settings = fast();
    settings.timezone = Zone::parse("Europe/London").unwrap();
    let (mut world, agent) = super::with(settings.clone(), &[&DAY.replace("day", "month")]);
    let until = |world: &mut World, at: &str| {
        let rest = Timestamp::parse(at).unwrap().since(world.now());
        world.advance(rest);
    };
    // London's March ends an hour before that of UTC, and begins with it.
    until(&mut world, "2027-03-10T12:00:00Z");
    world.authorize(&agent, payment(1, "EUR", "a.example"));
    settings.timezone = Zone::utc();
    world.change_settings(settings);
    until(&mut world, "2027-03-31T22:55:00Z");
    let kept = world.authorize(&agent, payment(9_000, "EUR", "b.example"));
    until(&mut world, "2027-03-31T23:05:00Z");
    assert_eq!(ask(&mut world, &agent, payment(1_000, "EUR", "c.example")).0, Verb::Allow);
    world.settle(&agent, kept.id(), OutcomeStatus::Cancelled, None);
    assert_eq!(tally(&mut world, agent.agent), (1_000, 0, 0));
    assert_eq!(ask(&mut world, &agent, payment(9_001, "EUR", "d.example")).1, [Code::OverPeriodLimit]);
    world.audit();
}

/// A template's limits hold as the catalogue has them.
#[test]
fn a_template_holds() {
    let mut world = World::with(fast());
    let agent = world.agent().with_template("saas-subscriptions").register();
    assert_eq!(ask(&mut world, &agent, payment(20_000, "EUR", "a.example")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, payment(20_001, "EUR", "b.example")).1, [Code::AboveAskThreshold]);
    assert_eq!(ask(&mut world, &agent, payment(50_001, "EUR", "c.example")).1, [Code::OverLimit]);
}

/// Whatever its type, an action that pays is held to everything that payments are held to.
#[test]
fn whatever_pays_is_a_payment() {
    let shop = r#"{"name":"Shop","actions":["crm.*"],"limits":{"currency":"EUR","perAction":1000,"askAbove":500},"merchants":{"allow":["shop.example"]}}"#;
    let (mut world, agent) = calm(&[shop]);
    let order = |minor, domain| paying("crm.order", minor, "EUR", domain);
    assert_eq!(ask(&mut world, &agent, order(1_001, "shop.example")), (Verb::Deny, vec![Code::OverLimit]));
    assert_eq!(ask(&mut world, &agent, order(10, "other.example")), (Verb::Ask, vec![Code::MerchantNotAllowed]));
    let allowed = world.authorize(&agent, order(100, "shop.example"));
    assert_eq!(allowed.verb(), Verb::Allow);
    let receipt = allowed.receipt().unwrap();
    assert_eq!(world.verify(receipt, None).fault, Some(Fault::ChargeRequired));
    assert_eq!(ask(&mut world, &agent, order(100, "shop.example")), (Verb::Ask, vec![Code::PossibleDuplicate]));
    let large = ask(&mut world, &agent, order(501, "shop.example"));
    assert_eq!(large, (Verb::Ask, vec![Code::AboveAskThreshold, Code::SplitPayments]));
}

/// Amounts speak of actions that pay, a count of all that the mandate covers.
#[test]
fn amounts_speak_of_payments_and_a_count_of_all() {
    let both = r#"{"name":"B","actions":["payment","crm.read"],"limits":{"currency":"EUR","perAction":100,"askAbove":50,"perPeriod":{"amount":100,"period":"month"},"count":{"max":3,"period":"month"}}}"#;
    let (mut world, agent) = calm(&[both]);
    assert_eq!(ask(&mut world, &agent, payment(50, "EUR", "a.example")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, request("crm.read")).0, Verb::Allow);
    assert_eq!(tally(&mut world, agent.agent), (50, 0, 2));
    assert_eq!(ask(&mut world, &agent, payment(50, "EUR", "b.example")).0, Verb::Allow);
    assert_eq!(ask(&mut world, &agent, request("crm.read")), (Verb::Deny, vec![Code::OverCountLimit]));
    let (_, said) = ask(&mut world, &agent, payment(1, "EUR", "c.example"));
    assert_eq!(said, [Code::OverPeriodLimit, Code::OverCountLimit]);
}

/// Sums are a mandate's, whatever its version: the next one goes on where the last one stands, and decisions name theirs.
#[test]
fn a_new_version_goes_on_with_the_sums() {
    let (mut world, agent) = calm(&[DAY]);
    let first = world.authorize(&agent, payment(6_000, "EUR", "a.example")).action().mandate.unwrap();
    let mut mandate = svc_core::state::gate::Mandate::clone(&world.row(first));
    mandate.id.version = 2;
    world.overwrite(mandate);
    let mut row = svc_core::state::gate::Agent::clone(&world.row(agent.agent));
    row.mandates[0].version = 2;
    world.overwrite(row);
    let over = world.authorize(&agent, payment(4_001, "EUR", "b.example"));
    assert_eq!((only(&over).code, only(&over).used), (Code::OverPeriodLimit, Some(6_000)));
    let second = world.authorize(&agent, payment(4_000, "EUR", "b.example")).action().mandate.unwrap();
    assert_eq!((second.mandate, second.version), (first.mandate, 2));
}

/// What reserved nothing lapses by the clock alone: no timer runs for it and nothing is recorded.
#[test]
fn what_reserved_nothing_lapses_by_itself() {
    let (mut world, agent) = calm(&[r#"{"name":"Crm","actions":["crm.read"]}"#]);
    let allowed = world.authorize(&agent, request("crm.read"));
    let due = Span::minutes(24 * 60 + 15);
    world.clock().set(world.now().plus(due));
    let lapsed = world.read(&agent, allowed.id());
    assert_eq!((lapsed.status(), lapsed.verb()), (Status::Lapsed, Verb::Allow));
    world.advance(Span::hours(24));
    assert_eq!(world.read(&agent, allowed.id()).action(), allowed.action(), "nothing was written");
    assert!(!world.dump().contains("action.lapsed"));
    let late = world.settle(&agent, allowed.id(), OutcomeStatus::Completed, None);
    assert!(late.action().allowed().unwrap().outcome.as_ref().unwrap().late);
}
