//! Tallies of a ledger: what its records come to by day, in the workspace's own days.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::decide::Choice;
use svc_core::rules::gate::drill::{EndDrill, FreezeCanary, StartDrill};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::state::evidence::{Chain, Counted, TALLIED, Tally, TallyId};
use svc_core::state::gate::receipt::Signer;
use svc_core::state::gate::{Action, OPEN_MAX, OutcomeStatus, State};
use svc_core::state::people::{Purpose, Role, Settings as WorkspaceSettings};
use svc_core::store::MemoryStore;
use svc_core::testing::world::{World, charge, payment, terms, tool_call};
use svc_core::value::id::{ActionId, AgentId};
use svc_core::value::period::Zone;
use svc_core::value::{Span, Timestamp};
use svc_store::evidence::Card;
use svc_store::{Gate, Settings};

const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}"#;

/// A gate over the world's own rows, which tells and moves nothing.
fn gate(store: MemoryStore, world: &mut World) -> Gate {
    let signer = Arc::clone(world.engine().signer());
    over(store, world, signer)
}

fn over(store: MemoryStore, world: &World, signer: Arc<dyn Signer>) -> Gate {
    let clock = world.clock().clone();
    let mut settings = Settings::default();
    settings.timers = false;
    Gate::over(store, clock, signer, settings).unwrap()
}

/// What was posted for an agent and is reserved for it, by day, as a gate tells it.
fn told(gate: &Gate, world: &World, agent: AgentId, days: RangeInclusive<i64>) -> BTreeMap<i64, (i64, i64)> {
    let mut by_day = BTreeMap::<_, (i64, i64)>::new();
    let tallied = gate.tallied(world.workspace(), days).unwrap();
    for ((day, _), counts) in tallied.iter().filter(|((_, it), _)| *it == Some(agent)) {
        by_day.entry(*day).or_default().0 += counts.settled().map(|it| it.1).sum::<i64>();
        by_day.entry(*day).or_default().1 += counts.reserved().map(|it| it.1).sum::<i64>();
    }
    by_day.retain(|_, it| *it != (0, 0));
    by_day
}

/// Decisions by day, as a gate tells them.
fn decided(gate: &Gate, world: &mut World, days: RangeInclusive<i64>) -> BTreeMap<i64, u64> {
    let workspace = world.workspace();
    let mut by_day = BTreeMap::new();
    for ((day, agent), counts) in gate.tallied(workspace, days).unwrap() {
        let decisions: u64 = [Counted::Asked, Counted::Allowed, Counted::Denied].map(|it| counts.of(it)).iter().sum();
        if agent.is_some() && decisions > 0 {
            *by_day.entry(day).or_default() += decisions;
        }
    }
    by_day
}

/// Days are those of the workspace's zone; a stretch that was counted by the days of another is counted again, once.
#[test]
fn days_are_those_of_the_workspace() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let day = Zone::utc().day(world.now());
    let early = TALLIED / 2;
    for _ in 0..early {
        world.authorize(&agent, payment(1, "EUR", "shop.example.com"));
    }
    // 23:30 in UTC: half past one of the next day in Vienna.
    let late = Timestamp::from_millis(Zone::utc().start(day + 1).as_millis() - Span::minutes(30).as_millis());
    world.advance(Span::millis(late.as_millis() - world.now().as_millis()));
    for _ in 0..TALLIED {
        world.authorize(&agent, payment(1, "EUR", "shop.example.com"));
    }
    let gate = gate(store, &mut world);

    let days = day - 1..=day + 1;
    assert_eq!(decided(&gate, &mut world, days.clone()), BTreeMap::from([(day, early + TALLIED)]));
    let workspace = world.workspace();
    assert!(world.row::<Chain>(workspace).size > TALLIED, "a full stretch and more");
    let first = TallyId { workspace, number: 0 };
    assert_eq!(world.row::<Tally>(first).zone, Zone::utc());

    let zone = Zone::parse("Europe/Vienna").unwrap();
    world.change_settings(WorkspaceSettings { timezone: zone.clone(), ..WorkspaceSettings::default() });
    let in_vienna = BTreeMap::from([(day, early), (day + 1, TALLIED)]);
    assert_eq!(decided(&gate, &mut world, days.clone()), in_vienna);
    let kept = world.row::<Tally>(first);
    assert_eq!(kept.zone, zone, "counted by the new days and kept");

    // What is kept is what is told: it is not counted a second time.
    world.overwrite(Tally { counts: Vec::new(), ..(*kept).clone() });
    assert!(decided(&gate, &mut world, days)[&(day + 1)] < TALLIED);
}

/// Payments of one agent, one of which a test moves about.
struct Shop {
    world: World,
    agent: Caller,
}

impl Shop {
    /// Allows up to 3,000 at once, asks about more; of a mandate that sums up nothing by period where `free`.
    fn open(store: &MemoryStore, free: bool) -> Self {
        let mut world = World::over(store.clone(), WorkspaceSettings::default());
        let period = if free { "" } else { r#""perPeriod":{"amount":900000,"period":"year"},"# };
        let shop = format!(
            r#"{{"name":"Shop","actions":["payment"],"duplicates":"record",
                "limits":{{"currency":"EUR",{period}"perAction":5000,"askAbove":3000,"onLimit":"ask"}}}}"#
        );
        let agent = world.agent().with_mandate(terms(&shop)).register();
        Self { world, agent }
    }

    fn pay(&mut self, amount: i64) -> ActionId {
        self.world.authorize(&self.agent, payment(amount, "EUR", "shop.example.com")).id()
    }

    fn charge(&mut self, action: ActionId, amount: i64) {
        let allowed = self.world.read(&self.agent, action);
        let charge = charge(amount, "EUR", "shop.example.com");
        assert!(self.world.verify(allowed.receipt().unwrap(), Some(charge)).is_valid());
    }

    fn settle(&mut self, action: ActionId, status: OutcomeStatus, amount: Option<i64>) {
        self.world.settle(&self.agent, action, status, amount);
    }

    /// Past the lapse of what is allowed now.
    fn lapse(&mut self) {
        self.world.advance(Span::hours(26));
    }
}

/// What is told as settled and as reserved, all days together, of what was played; of a mandate that sums up nothing where `free`.
fn comes_to(free: bool, play: impl FnOnce(&mut Shop)) -> (i64, i64) {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, free);
    let first = Zone::utc().day(shop.world.now());
    play(&mut shop);
    shop.world.advance(Span::seconds(1));
    let gate = gate(store, &mut shop.world);
    let days = first..=Zone::utc().day(shop.world.now());
    let by_day = told(&gate, &shop.world, shop.agent.agent, days);
    assert!(by_day.values().all(|it| it.1 >= 0), "{by_day:?}");
    by_day.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
}

/// Whatever an agent says of a payment, what was posted for it is told as settled.
#[test]
fn what_was_posted_is_settled() {
    use OutcomeStatus::{Cancelled, Completed, Failed};
    let settled = |charge: Option<i64>, status: OutcomeStatus, amount: Option<i64>| {
        comes_to(false, |it| {
            let action = it.pay(1_000);
            charge.into_iter().for_each(|amount| it.charge(action, amount));
            it.settle(action, status, amount);
        })
    };
    assert_eq!(settled(Some(600), Failed, None), (600, 0));
    assert_eq!(settled(None, Failed, None), (0, 0));
    assert_eq!(settled(None, Cancelled, Some(300)), (300, 0));
    assert_eq!(settled(None, Completed, Some(1_200)), (1_200, 0), "above what was allowed");
    let released = comes_to(false, |it| {
        let action = it.pay(1_000);
        it.charge(action, 600);
        it.settle(action, Failed, None);
        it.world.release(By::Program, action).unwrap();
    });
    assert_eq!(released, (0, 0));
}

/// What lapses is posted in full, and corrected by what is said of it later, also where it had reserved nothing and no record tells
/// of the lapse.
#[test]
fn what_lapsed_is_settled_until_it_is_corrected() {
    let lapsed = |free: bool, charge: Option<i64>, then: Option<(OutcomeStatus, Option<i64>)>| {
        comes_to(free, |it| {
            let action = it.pay(1_000);
            charge.into_iter().for_each(|amount| it.charge(action, amount));
            it.lapse();
            then.into_iter().for_each(|(status, amount)| it.settle(action, status, amount));
        })
    };
    for free in [false, true] {
        assert_eq!(lapsed(free, None, None), (1_000, 0));
        assert_eq!(lapsed(free, Some(700), Some((OutcomeStatus::Cancelled, None))), (700, 0));
        assert_eq!(lapsed(free, None, Some((OutcomeStatus::Completed, Some(400)))), (400, 0));
    }
    // What a person released after the lapse stands at nothing, until the agent says what it was.
    let both = [None, Some(400)].into_iter().flat_map(|then| [(false, then), (true, then)]);
    for (free, then) in both {
        let released = comes_to(free, |it| {
            let action = it.pay(1_000);
            it.charge(action, 600);
            it.lapse();
            it.world.release(By::Program, action).unwrap();
            then.into_iter().for_each(|amount| it.settle(action, OutcomeStatus::Completed, Some(amount)));
        });
        assert_eq!(released, (then.unwrap_or(0), 0), "{free} {then:?}");
    }
    for free in [false, true] {
        let revoked = comes_to(free, |it| {
            it.pay(1_000);
            it.world.freeze(it.agent.agent);
            it.lapse();
        });
        assert_eq!(revoked, (1_000, 0), "{free}");
    }
}

/// What is allowed or waits is reserved; beyond the limits nothing is before a person says yes, and a no or time gives it back.
#[test]
fn what_is_open_is_reserved() {
    let asked = |amount: i64, choice: Option<Choice>| {
        comes_to(false, |it| {
            let (owner, action) = (it.world.person(Role::Owner), it.pay(amount));
            choice.into_iter().for_each(|choice| drop(it.world.decide(&owner, action, choice).unwrap()));
        })
    };
    assert_eq!([asked(1_000, None), asked(4_000, None), asked(6_000, None)], [(0, 1_000), (0, 4_000), (0, 0)]);
    let yes = Some(Choice::Approve);
    assert_eq!([asked(4_000, yes), asked(6_000, yes)], [(0, 4_000), (0, 6_000)]);
    let no = Some(Choice::Deny);
    assert_eq!([asked(4_000, no), asked(6_000, no)], [(0, 0), (0, 0)]);
    let ended = comes_to(false, |it| {
        it.pay(4_000);
        it.lapse();
        it.pay(4_500);
        it.world.freeze(it.agent.agent);
        it.world.advance(Span::seconds(1));
    });
    assert_eq!(ended, (0, 0), "expired, and denied by a stop");
}

/// A payment is reserved, and settled, on the day on which it was asked for, also where it has ended on a later one, whichever days are
/// looked at. What lapses without a record is posted on that day from its very moment on, and a word long after changes that day no more.
#[test]
fn a_day_keeps_what_is_still_reserved_of_it() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, true);
    let day = Zone::utc().day(shop.world.now());
    let (agent, paid) = (shop.agent.agent, shop.pay(2_500));
    shop.world.advance(Span::hours(24));
    shop.settle(paid, OutcomeStatus::Completed, None);
    let (last, soon) = (shop.pay(2_000), shop.pay(500));
    shop.world.advance(Span::seconds(1));
    let gate = gate(store, &mut shop.world);
    let told = |shop: &Shop, days| told(&gate, &shop.world, agent, days);
    let (first, second) = ((day, (2_500, 0)), BTreeMap::from([(day + 1, (0, 2_500))]));
    assert_eq!(told(&shop, day..=day), BTreeMap::from([first]));
    assert_eq!(told(&shop, day..=day + 1), BTreeMap::from([first, (day + 1, (0, 2_500))]));
    assert_eq!(told(&shop, day + 1..=day + 1), second);
    shop.world.advance(Span::millis(Span::hours(24).as_millis() + Span::minutes(15).as_millis() - 1_001));
    assert_eq!(told(&shop, day + 1..=day + 1), second, "the last moment");
    shop.world.advance(Span::millis(1));
    assert_eq!(told(&shop, day + 1..=day + 1), BTreeMap::from([(day + 1, (2_500, 0))]));
    shop.settle(soon, OutcomeStatus::Completed, Some(400));
    let lapsed = BTreeMap::from([(day + 1, (2_400, 0))]);
    assert_eq!(told(&shop, day + 1..=day + 1), lapsed, "a word that comes soon corrects the same day");
    shop.world.advance(OPEN_MAX);
    shop.world.advance(Span::hours(24));
    assert_eq!(told(&shop, day + 1..=day + 1), lapsed);
    shop.settle(last, OutcomeStatus::Completed, Some(1_900));
    shop.world.advance(Span::seconds(1));
    let today = Zone::utc().day(shop.world.now());
    assert_eq!(told(&shop, day + 1..=today), BTreeMap::from([(day + 1, (2_400, 0)), (today, (-100, 0))]));
    assert_eq!(told(&shop, day + 1..=day + 1), lapsed);
}

/// An action that waited for a person before a stop denied it was decided on once, whatever else was decided.
#[test]
fn what_a_stop_ends_was_decided_on_once() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, false);
    let (agent, today) = (shop.agent.agent, Zone::utc().day(shop.world.now()));
    shop.pay(1_000);
    shop.pay(4_000);
    shop.world.freeze(agent);
    shop.pay(2_000);
    shop.world.advance(Span::seconds(1));
    let gate = gate(store, &mut shop.world);
    let tallied = gate.tallied(shop.world.workspace(), today..=today).unwrap();
    let counts = &tallied[&(today, Some(agent))];
    assert_eq!([Counted::Allowed, Counted::Asked, Counted::Denied].map(|it| counts.of(it)), [1, 1, 2]);
    assert_eq!(counts.decided(), 3);
}

/// What was kept by earlier rules of counting is counted again, once.
#[test]
fn a_tally_by_earlier_rules_is_counted_again() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, true);
    for _ in 0..TALLIED {
        shop.pay(1);
    }
    let gate = gate(store, &mut shop.world);
    let (workspace, today) = (shop.world.workspace(), Zone::utc().day(shop.world.now()));
    let all = decided(&gate, &mut shop.world, today..=today);
    let first = TallyId { workspace, number: 0 };
    let kept = shop.world.row::<Tally>(first);
    shop.world.overwrite(Tally { by: 0, counts: Vec::new(), ..Tally::clone(&kept) });
    assert_eq!(decided(&gate, &mut shop.world, today..=today), all);
    assert_eq!(shop.world.row::<Tally>(first), kept);
}

/// What a drill does counts for nothing: its canary is no agent of anybody's.
#[test]
fn drills_count_for_nothing() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, false);
    shop.pay(1_000);
    shop.world.advance(Span::seconds(1));
    let gate = gate(store, &mut shop.world);
    let (workspace, today) = (shop.world.workspace(), Zone::utc().day(shop.world.now()));
    let counted = || gate.tallied(workspace, today..=today).unwrap();
    let before = counted();
    let targets = vec![shop.agent.agent];
    let key = NewKey::of("ask_of_a_canary");
    let started = shop.world.run(StartDrill { workspace, by: By::Program, targets, reason: None, key }).unwrap();
    let ask = |shop: &mut Shop| drop(shop.world.authorize(&started.canary, payment(1, "EUR", "drill.invalid")));
    ask(&mut shop);
    shop.world.run(FreezeCanary(started.drill.id)).unwrap();
    ask(&mut shop);
    shop.world.run(EndDrill { drill: started.drill.id, steps: Vec::new(), contained_ms: 1 }).unwrap();
    shop.world.advance(Span::seconds(1));
    assert!(shop.world.ledger().contains("agent.frozen"));
    assert_eq!(counted(), before);
}

/// Of a day that is long past no more is read than what may still change it: nothing behind the last record that could, once all
/// is given back, and everything while something is reserved, as a timer that ran late may give it back at any time.
#[test]
fn a_past_day_reads_what_may_change_it() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, false);
    let day = Zone::utc().day(shop.world.now());
    let (settled, waits) = (shop.pay(1_000), shop.pay(4_000));
    shop.world.advance(Span::hours(15));
    shop.settle(settled, OutcomeStatus::Completed, None);
    // No server runs for a while: what waited has expired, and a record says so late.
    shop.world.clock().advance(OPEN_MAX);
    shop.world.clock().advance(Span::hours(48));
    for _ in 0..TALLIED {
        shop.pay(1);
    }
    let (workspace, agent) = (shop.world.workspace(), shop.agent.agent);
    let gate = gate(store, &mut shop.world);
    shop.world.advance(Span::seconds(1));
    assert!(shop.world.ledger().contains("action.expired"), "{waits}");
    for _ in 0..2 * TALLIED {
        shop.pay(1);
    }
    let unbounded = told(&gate, &shop.world, agent, day..=day + 100);
    assert_eq!((unbounded[&day], unbounded.get(&(day + 1))), ((1_000, 0), None));
    for number in 0..3 {
        let kept = shop.world.row::<Tally>(TallyId { workspace, number });
        shop.world.overwrite(Tally { by: 0, counts: Vec::new(), ..Tally::clone(&kept) });
    }
    assert_eq!(told(&gate, &shop.world, agent, day..=day), BTreeMap::from([(day, (1_000, 0))]));
    let read = |shop: &mut Shop| [0, 1, 2].map(|number| shop.world.row::<Tally>(TallyId { workspace, number }).by != 0);
    assert_eq!(read(&mut shop), [true, true, false]);
}

/// A signer that signs scorecards too.
struct OfAll(Arc<dyn Signer>);

impl Signer for OfAll {
    fn issuer(&self) -> &str {
        self.0.issuer()
    }

    fn kid(&self) -> &str {
        self.0.kid()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message)
    }

    fn of(&self, _purpose: Purpose, _at: Timestamp) -> Option<Arc<dyn Signer>> {
        Some(Arc::clone(&self.0))
    }
}

/// A gate that signs scorecards.
fn signing(store: MemoryStore, world: &mut World) -> Gate {
    let signer = Arc::new(OfAll(Arc::clone(world.engine().signer())));
    over(store, world, signer)
}

/// How many actions a scorecard of these days says have lapsed, and how much it says was settled.
fn card(gate: &Gate, world: &World, agent: AgentId, days: RangeInclusive<i64>) -> (u64, i64) {
    let [from, to] = [*days.start(), *days.end() + 1].map(|day| Some(Zone::utc().start(day)));
    let card = gate.scorecard(&Card { workspace: world.workspace(), agent: Some(agent), from, to }).unwrap();
    let claims = URL_SAFE_NO_PAD.decode(card.split('.').nth(1).unwrap()).unwrap();
    let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
    let settled = claims.pointer("/amounts/0/settled").and_then(serde_json::Value::as_i64);
    (claims.pointer("/counts/lapsed").unwrap().as_u64().unwrap(), settled.unwrap_or(0))
}

/// What nobody settled is counted as lapsed where its amount is: on the day that it was asked for where no record tells of the lapse, and
/// on that of the record where one does; once, whichever days are looked at, however long it is past and whatever is said of it late.
#[test]
fn what_lapsed_is_counted_once() {
    for free in [true, false] {
        let store = MemoryStore::new();
        let mut shop = Shop::open(&store, free);
        let (agent, day) = (shop.agent.agent, Zone::utc().day(shop.world.now()));
        let owner = shop.world.person(Role::Owner);
        let gate = signing(store, &mut shop.world);
        let (kept, late, revoked) = (shop.pay(1_000), shop.pay(500), shop.pay(200));
        let (done, approved, denied) = (shop.pay(30), shop.pay(4_000), shop.pay(4_500));
        shop.settle(done, OutcomeStatus::Completed, None);
        shop.world.approve(&owner, approved);
        shop.world.deny(&owner, denied);
        shop.charge(kept, 900);
        shop.world.advance(Span::seconds(1));
        assert_eq!(card(&gate, &shop.world, agent, day..=day), (0, 30), "{free}: {revoked} is open still");
        shop.world.freeze(agent);
        shop.lapse();
        shop.world.advance(Span::seconds(1));
        let all = |shop: &Shop| card(&gate, &shop.world, agent, day..=Zone::utc().day(shop.world.now()));
        let first = |shop: &Shop| card(&gate, &shop.world, agent, day..=day);
        assert_eq!(all(&shop), (4, 5_730), "{free}");
        let on_the_day = if free { (4, 5_730) } else { (0, 30) };
        assert_eq!(first(&shop), on_the_day, "{free}");
        shop.settle(late, OutcomeStatus::Completed, Some(400));
        shop.world.advance(Span::seconds(1));
        for _ in 0..2 {
            assert_eq!(all(&shop), (4, 5_630), "{free}");
            assert_eq!(first(&shop), on_the_day, "{free}");
            shop.world.advance(OPEN_MAX);
            shop.world.advance(Span::hours(24));
        }
    }
}

/// So is what paid nothing, which no amount tells of.
#[test]
fn what_lapsed_and_paid_nothing_is_counted() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(r#"{"name":"Any","actions":["tool.call"]}"#)).register();
    let day = Zone::utc().day(world.now());
    let [_, settled] = ["read", "write"].map(|name| world.authorize(&agent, tool_call(name)).id());
    world.settle(&agent, settled, OutcomeStatus::Completed, None);
    let gate = signing(store, &mut world);
    for (passed, lapsed) in [(Span::seconds(1), 0), (Span::hours(26), 1), (OPEN_MAX, 1), (Span::hours(24), 1)] {
        world.advance(passed);
        assert_eq!(card(&gate, &world, agent.agent, day..=day), (lapsed, 0));
    }
}

/// A record that tells late of a lapse counts on its own day, and its action on no other, also where that lies far behind what was
/// looked at.
#[test]
fn a_lapse_that_is_recorded_late_is_counted_once() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let counted = r#"{"name":"Any","actions":["tool.call"],"limits":{"count":{"max":1000000,"period":"year"}}}"#;
    let agent = world.agent().with_mandate(terms(counted)).register();
    let other = world.agent().with_mandate(terms(r#"{"name":"Any","actions":["tool.call"]}"#)).register();
    let day = Zone::utc().day(world.now());
    world.authorize(&agent, tool_call("read"));
    // No server runs for a while, and then so much happens that the record lies in a stretch of its own.
    world.clock().advance(OPEN_MAX);
    world.clock().advance(Span::hours(72));
    for _ in 0..TALLIED {
        world.authorize(&other, tool_call("write"));
    }
    let gate = signing(store, &mut world);
    world.advance(Span::seconds(1));
    let late = Zone::utc().day(world.now());
    assert_eq!(card(&gate, &world, agent.agent, day..=late), (1, 0));
    assert_eq!(card(&gate, &world, agent.agent, late..=late), (1, 0));
    assert_eq!(card(&gate, &world, agent.agent, day..=day), (0, 0));
}

/// Of a day on which nobody was asked no action is read any more once all of it has lapsed: however many calls of tools nobody settles,
/// they are read for two days and not for nine.
#[test]
fn what_must_have_lapsed_is_not_read() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, true);
    let (agent, day) = (shop.agent.agent, Zone::utc().day(shop.world.now()));
    let (lapsed, gate) = (shop.pay(1_000), signing(store, &mut shop.world));
    let of_the_day = |shop: &Shop| card(&gate, &shop.world, agent, day..=day);
    shop.lapse();
    assert_eq!(of_the_day(&shop), (1, 1_000));
    // As if it were open yet: whoever reads it counts it as such.
    shop.world.edit::<Action>(lapsed, |it| {
        if let State::Allowed(allowed) = &mut it.state {
            allowed.receipt_expires_at = allowed.receipt_expires_at.plus(OPEN_MAX);
        }
    });
    assert_eq!(of_the_day(&shop), (0, 0), "it is read");
    let over = Zone::utc().start(day + 1).plus(Span::hours(48));
    let rest = over.as_millis() - shop.world.now().as_millis();
    shop.world.clock().advance(Span::millis(rest - 1));
    assert_eq!(of_the_day(&shop), (0, 0), "the last moment");
    shop.world.clock().advance(Span::millis(1));
    assert_eq!(of_the_day(&shop), (1, 1_000));
}

/// Whoever has gone has nothing more read for them.
#[test]
fn nothing_is_counted_for_nobody() {
    let store = MemoryStore::new();
    let mut shop = Shop::open(&store, true);
    shop.pay(1_000);
    let (workspace, today) = (shop.world.workspace(), Zone::utc().day(shop.world.now()));
    let gate = signing(store, &mut shop.world);
    let gone = || Err(Refusal::not_ready());
    let card = Card { workspace, agent: None, from: None, to: None };
    assert!(gate.scorecard(&card).is_ok());
    assert!(matches!(gate.scorecard_while(&card, &gone), Err(Failure::Refused(it)) if it.kind() == Kind::NotReady));
    assert!(gate.tallied_while(workspace, today..=today, &gone).is_err());
}
