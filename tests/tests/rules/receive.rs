//! Signed requests from outside: taken once, remembered for as long as they could come again, and what an issuer's word does to an
//! action.

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::charge::{ChargeAsked, Cover};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration,
};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive, Vouched};
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::release::ReleaseAction;
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, EVENT_KEPT, Heard, IntegrationKind, IntegrationSlot, Received};
use svc_core::state::evidence::{Counter, Entry};
use svc_core::state::gate::{Action, Activity, Agent, OutcomeStatus, Payee, Status};
use svc_core::testing::World;
use svc_core::testing::world::payment;
use svc_core::value::digest::ReceivedId;
use svc_core::value::id::{ActionId, AgentId, IntegrationId, WorkspaceId};
use svc_core::value::json::Json;
use svc_core::value::period::Zone;
use svc_core::value::{Amount, Currency, Id as _, Span};

use super::{PAY, calm};

/// A mandate that sums up a day.
const DAY: &str = r#"{"name":"Day","actions":["payment"],"duplicates":"record","limits":{"currency":"EUR",
    "perPeriod":{"amount":1000,"period":"day"}}}"#;
const KEPT: Span = Span::minutes(15);

/// A world and what its issuer sends.
struct Issuer {
    world: World,
    slot: IntegrationSlot,
    id: IntegrationId,
    sent: u64,
}

impl Issuer {
    fn new(mandates: &[&str]) -> (Self, Caller) {
        let (mut world, agent) = calm(mandates);
        let slot = IntegrationSlot { workspace: world.workspace(), kind: IntegrationKind::Issuer };
        let secret = NewSecret { sealed: "sealed".into(), hint: "hint".into() };
        let (workspace, kind, config) = (slot.workspace, slot.kind, ConfigChange::default());
        let made = world.run(CreateIntegration { by: By::Program, workspace, kind, secret, config }).unwrap();
        (Self { world, slot, id: made.id, sent: 0 }, agent)
    }

    fn asked(&mut self, event: &str, deed: Deed) -> Receive {
        self.sent += 1;
        let request = Received::request(self.slot, &[&self.sent.to_be_bytes()]);
        let id = Some(Received::event(self.slot, self.id, event, ""));
        let event = Event { name: EventName::Known("authorization.request"), id, deed };
        let vouched = Vouched::Secret("sealed".into());
        Receive { slot: self.slot, integration: self.id, vouched, request, kept: KEPT, event }
    }

    fn tell(&mut self, event: &str, deed: Deed) -> String {
        let asked = self.asked(event, deed);
        self.world.run(asked).unwrap().outcome.into_string()
    }

    fn charge(&mut self, event: &str, action: ActionId, amount: i64) -> String {
        self.tell(event, charge(action, amount))
    }

    fn there(&mut self, id: ReceivedId) -> bool {
        let key = svc_core::store::Key::Received(id);
        self.world.rows().iter().any(|it| it.0 == key)
    }

    fn sums(&mut self, agent: &Caller) -> (i64, i64) {
        let activity = self.world.row::<Activity>(agent.agent);
        activity.tallies.first().map(|it| (it.reserved, it.spent)).unwrap()
    }
}

impl Issuer {
    /// What the records of this kind say, the oldest first.
    fn said(&mut self, kind: &str) -> Vec<Json> {
        let rows = self.world.rows();
        let entries = rows.iter().filter_map(|(_, _, it)| <Entry as svc_core::store::Row>::peel(it));
        let mut of: Vec<_> = entries.filter(|it| &*it.kind == kind).collect();
        of.sort_by_key(|it| it.id);
        of.iter().map(|it| Json::parse(it.data.as_bytes()).unwrap()).collect()
    }

    /// What the ledger says was allowed and posted in all, in EUR.
    fn money(&mut self) -> (i64, i64) {
        let mut counter = Counter::by_days_of(Zone::utc());
        let rows = self.world.rows();
        for entry in rows.iter().filter_map(|(_, _, it)| <Entry as svc_core::store::Row>::peel(it)) {
            counter.take(entry);
        }
        let money = counter.finish();
        let money = money.iter().flat_map(|(_, _, it)| it.money().collect::<Vec<_>>());
        money.fold((0, 0), |sum, (_, allowed, posted)| (sum.0 + allowed, sum.1 + posted))
    }
}

fn int(data: &Json, name: &str) -> Option<i64> {
    data.get(name).and_then(Json::as_int)
}

fn charge(action: ActionId, amount: i64) -> Deed {
    let (amount, currency) = (Amount::new(amount).unwrap(), Currency::parse("EUR").unwrap());
    Deed::Charge(ChargeAsked { by: Cover::Action(action), amount, currency, merchant: None })
}

/// A request is remembered for as long as its signature could be good, an event for a week; then both rows are let go of.
#[test]
fn what_was_received_is_remembered_and_let_go_of() {
    let (mut issuer, _) = Issuer::new(&[PAY]);
    let asked = issuer.asked("evt_1", Deed::Nothing);
    issuer.world.run(asked.clone()).unwrap();
    let again = issuer.world.run(asked.clone()).unwrap_err();
    assert_eq!(again.kind(), Kind::WrongSignature);
    let (request, event) = (asked.request, asked.event.id.unwrap());
    issuer.world.advance(Span::millis(KEPT.as_millis() - 1));
    assert_eq!((issuer.there(request), issuer.there(event)), (true, true));
    issuer.world.advance(Span::millis(1));
    assert_eq!((issuer.there(request), issuer.there(event)), (false, true));
    issuer.world.advance(EVENT_KEPT);
    assert!(!issuer.there(event));
    issuer.world.audit();
}

/// What was signed for an integration that is off, gone or another's by now does nothing and leaves nothing.
#[test]
fn an_integration_that_is_off_or_gone_hears_nothing() {
    let (mut issuer, agent) = Issuer::new(&[PAY]);
    let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
    let (workspace, id) = (issuer.slot.workspace, issuer.id);
    let tell = |issuer: &mut Issuer| -> Result<Heard, Refusal> {
        let asked = issuer.asked("evt_1", charge(action, 100));
        issuer.world.run(asked)
    };
    let change = |enabled| ChangeIntegration {
        by: By::Program,
        workspace,
        id,
        enabled: Some(enabled),
        config: ConfigChange::default(),
    };
    issuer.world.run(change(false)).unwrap();
    assert_eq!(tell(&mut issuer).unwrap_err().kind(), Kind::WrongSignature);
    issuer.world.run(change(true)).unwrap();
    issuer.id = svc_core::value::Id::from_bits(7);
    assert_eq!(tell(&mut issuer).unwrap_err().kind(), Kind::WrongSignature);
    issuer.id = id;
    issuer.world.run(RemoveIntegration { by: By::Program, workspace, id }).unwrap();
    assert_eq!(tell(&mut issuer).unwrap_err().kind(), Kind::WrongSignature);
    let rows = issuer.world.rows();
    assert!(!rows.iter().any(|it| matches!(it.0, svc_core::store::Key::Received(_))));
    issuer.world.audit();
}

/// A secret that was found to fit and has ended before the request is taken vouches for nothing; one that is followed by another
/// does for as long as both are good.
#[test]
fn a_secret_that_has_ended_meanwhile_vouches_for_nothing() {
    for (overlap_hours, told) in [(0, Err(Kind::WrongSignature)), (1, Ok("ignored".into()))] {
        let (mut issuer, _) = Issuer::new(&[PAY]);
        let asked = issuer.asked("evt_1", Deed::Nothing);
        let secret = NewSecret { sealed: "next".into(), hint: "hint".into() };
        let (by, workspace, id) = (By::Program, issuer.slot.workspace, issuer.id);
        issuer.world.run(RotateIntegration { by, workspace, id, secret, overlap_hours }).unwrap();
        let heard = issuer.world.run(asked).map(|it| it.outcome).map_err(|it| it.kind());
        assert_eq!(heard, told, "{overlap_hours}");
    }
}

/// A charge that was taken back before anybody settled keeps nothing: what the agent says later is what is posted, and its use is
/// still the only one.
#[test]
fn a_reversal_before_the_settlement_leaves_the_agents_word() {
    for (said, amount, posted) in [
        (OutcomeStatus::Cancelled, None, 0),
        (OutcomeStatus::Failed, Some(30), 30),
        (OutcomeStatus::Completed, Some(60), 60),
        (OutcomeStatus::Completed, None, 100),
    ] {
        let (mut issuer, agent) = Issuer::new(&[DAY]);
        let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
        assert_eq!(issuer.charge("evt_1", action, 90), "approved");
        assert_eq!(issuer.tell("evt_2", Deed::Reverse { action }), "reversed");
        assert_eq!(issuer.sums(&agent), (100, 0), "it is settled or lapses as ever");
        assert_eq!(issuer.charge("evt_3", action, 90), "already_consumed");
        assert_eq!(issuer.tell("evt_4", Deed::Reverse { action }), "not_allowed");
        issuer.world.settle(&agent, action, said, amount);
        assert_eq!(issuer.sums(&agent), (0, posted));
        assert_eq!(issuer.tell("evt_5", Deed::Reverse { action }), "not_allowed", "nothing is kept");
        issuer.world.audit();
    }
}

/// Time releases nothing: what lapses after a reversal is posted in full, and given back by another word of the issuer's.
#[test]
fn what_lapses_is_given_back_by_the_issuer() {
    let (mut issuer, agent) = Issuer::new(&[DAY]);
    let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
    assert_eq!(issuer.charge("evt_1", action, 90), "approved");
    assert_eq!(issuer.tell("evt_2", Deed::Reverse { action }), "reversed");
    issuer.world.advance(Span::hours(25));
    assert_eq!(issuer.world.read(&agent, action).view().status(), Status::Lapsed);
    assert_eq!(issuer.sums(&agent), (0, 100));
    assert_eq!(issuer.tell("evt_3", Deed::Reverse { action }), "released");
    assert_eq!(issuer.sums(&agent), (0, 0));
    assert_eq!(issuer.tell("evt_4", Deed::Reverse { action }), "not_allowed");
    let unused = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
    assert_eq!(issuer.tell("evt_5", Deed::Reverse { action: unused }), "not_allowed", "its receipt was not used");
    issuer.world.audit();
}

/// An issuer settles what waits or was denied no more than its agent does, and another workspace's action is none.
#[test]
fn an_issuer_settles_what_was_allowed() {
    let (mut issuer, agent) = Issuer::new(&[
        r#"{"name":"Ask","actions":["payment"],"limits":{"currency":"EUR","perAction":1000,"askAbove":1}}"#,
    ]);
    let waits = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
    assert_eq!(issuer.tell("evt_1", Deed::Settle { action: waits, amount: 100 }), "not_allowed");
    assert_eq!(issuer.charge("evt_2", waits, 100), "unknown_receipt");
    assert_eq!(issuer.tell("evt_3", Deed::Uncovered), "no_action");
    let strange: ActionId = svc_core::value::Id::from_bits(9);
    assert_eq!(issuer.tell("evt_4", Deed::Settle { action: strange, amount: 1 }), "not_found");
    assert_eq!(issuer.tell("evt_5", Deed::Reverse { action: strange }), "not_found");
    issuer.world.audit();
}

/// An action covers the charges that are told to its own workspace: by its id, and as one of an agent's.
#[test]
fn a_charge_is_covered_in_its_own_workspace() {
    let (mut issuer, agent) = Issuer::new(&[PAY]);
    let [theirs, another] = ["one", "two"].map(|shop| {
        let asked = payment(100, "EUR", &format!("{shop}.example"));
        issuer.world.authorize(&agent, asked).id()
    });
    let home = issuer.world.workspace();
    let of = |by| match charge(another, 100) {
        Deed::Charge(asked) => Deed::Charge(ChargeAsked { by, ..asked }),
        deed => deed,
    };
    for id in [theirs, another] {
        issuer.world.edit::<Action>(id, |it| it.workspace = WorkspaceId::from_bits(7));
    }
    assert_eq!(issuer.charge("evt_1", theirs, 100), "no_action");
    let by = Cover::Agent { agent: agent.agent, found: vec![another] };
    assert_eq!(issuer.tell("evt_2", of(by)), "no_action");
    for id in [theirs, another] {
        issuer.world.edit::<Action>(id, |it| it.workspace = home);
    }
    let by = Cover::Agent { agent: AgentId::from_bits(7), found: vec![another] };
    assert_eq!(issuer.tell("evt_3", of(by)), "no_action", "it is another agent's");
    for (event, id) in [("evt_4", theirs), ("evt_5", another)] {
        assert_eq!(issuer.charge(event, id, 100), "approved");
    }
    issuer.world.audit();
}

/// What was charged above an agent's settlement does not vanish: it is posted in place of what was said, wherever that is summed up,
/// recorded as an incident, and the agent stops. What is no more is recorded alone.
#[test]
fn a_charge_above_what_was_settled_is_an_incident() {
    for (said, told, stood) in [
        (OutcomeStatus::Completed, Some(60), 60),
        (OutcomeStatus::Completed, None, 100),
        (OutcomeStatus::Cancelled, None, 0),
        (OutcomeStatus::Failed, Some(7), 7),
    ] {
        let (mut issuer, agent) = Issuer::new(&[DAY]);
        let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
        issuer.world.settle(&agent, action, said, told);
        assert_eq!(issuer.tell("evt_1", Deed::Settle { action, amount: stood }), "already_settled");
        let recorded = issuer.said("integration.received").pop().unwrap();
        assert_eq!(int(&recorded, "amount"), Some(stood), "what the issuer says is on record");
        assert_eq!((issuer.sums(&agent), issuer.said("incident.over_settlement").len()), ((0, stood), 0));
        for (event, amount) in [("evt_2", stood + 1), ("evt_3", 150)] {
            issuer.world.advance(Span::millis(1));
            assert_eq!(issuer.tell(event, Deed::Settle { action, amount }), "over_settlement");
            assert_eq!(issuer.tell(&format!("{event}_again"), Deed::Settle { action, amount }), "already_settled");
            assert_eq!((issuer.sums(&agent), issuer.money()), ((0, amount), (100, amount)));
            let row = issuer.world.row::<Action>(action);
            let incident = row.incident.clone().unwrap();
            assert_eq!((incident.allowed, incident.settled, row.evidence), (stood, amount, incident.evidence));
            let payee: std::sync::Arc<Payee> = issuer.world.row(row.payee.unwrap().payee);
            assert_eq!(payee.sum, amount);
            assert!(!issuer.world.row::<Agent>(agent.agent).is_active());
        }
        let data = issuer.said("incident.over_settlement").remove(0);
        assert_eq!((int(&data, "posted"), int(&data, "stood")), (Some(stood + 1), Some(stood)));
        let again = issuer.world.try_settle(&agent, action, said, told).unwrap_err();
        assert_eq!(again.kind(), Kind::AlreadySettled, "it is settled once");
        assert_eq!(issuer.tell("evt_4", Deed::Reverse { action }), "not_allowed", "nothing is kept by its use");
        issuer.world.audit();
    }
}

/// The issuer is stronger than a person's release, and the room that a settlement freed and others took is passed by the truth alone.
#[test]
fn a_charge_is_posted_whatever_was_released_before() {
    let (mut issuer, agent) = Issuer::new(&[DAY]);
    let (workspace, reason) = (issuer.world.workspace(), svc_core::value::text::Note::parse("refunded").unwrap());
    let action = issuer.world.authorize(&agent, payment(1_000, "EUR", "shop.example.com")).id();
    assert_eq!(issuer.charge("evt_1", action, 900), "approved");
    issuer.world.settle(&agent, action, OutcomeStatus::Failed, None);
    issuer.world.run(ReleaseAction { by: By::Program, workspace, action, reason }).unwrap();
    issuer.world.authorize(&agent, payment(1_000, "EUR", "other.example.com"));
    assert_eq!(issuer.sums(&agent), (1_000, 0));
    assert_eq!(issuer.tell("evt_2", Deed::Settle { action, amount: 900 }), "over_settlement");
    assert_eq!((issuer.sums(&agent), issuer.money()), ((1_000, 900), (2_000, 900)));
    issuer.world.audit();
}

/// What the issuer posted for a use is given back by its reversal, down to what the agent said: also after a release before it.
#[test]
fn a_reversal_gives_back_what_the_issuer_posted() {
    for (said, told) in [(None, 0), (Some(30), 30)] {
        for released_before in [false, true] {
            let (mut issuer, agent) = Issuer::new(&[DAY]);
            let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
            assert_eq!(issuer.charge("evt_1", action, 100), "approved");
            issuer.world.settle(&agent, action, OutcomeStatus::Failed, said);
            if released_before {
                assert_eq!(issuer.tell("evt_2", Deed::Reverse { action }), "released");
            }
            assert_eq!(issuer.tell("evt_3", Deed::Settle { action, amount: 120 }), "over_settlement");
            assert_eq!((issuer.sums(&agent), issuer.money()), ((0, 120), (100, 120)));
            issuer.world.audit();
            assert_eq!(issuer.tell("evt_4", Deed::Reverse { action }), "released");
            assert_eq!((issuer.sums(&agent), issuer.money()), ((0, told), (100, told)));
            assert_eq!(issuer.tell("evt_5", Deed::Reverse { action }), "not_allowed", "nothing is left of it");
            issuer.world.audit();
        }
    }
}

/// The same where what lapsed was given back before anybody said what became of it: what the issuer has said since is given back by
/// its reversal, and nothing else.
#[test]
fn a_reversal_gives_back_what_was_charged_after_a_lapse() {
    let (mut issuer, agent) = Issuer::new(&[&DAY.replace("day", "month")]);
    let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
    assert_eq!(issuer.charge("evt_1", action, 100), "approved");
    issuer.world.advance(Span::hours(25));
    assert_eq!(issuer.sums(&agent), (0, 100));
    assert_eq!(issuer.tell("evt_2", Deed::Reverse { action }), "released");
    assert_eq!((issuer.sums(&agent), issuer.money()), ((0, 0), (100, 0)));
    assert_eq!(issuer.tell("evt_3", Deed::Settle { action, amount: 80 }), "settled");
    assert_eq!(issuer.tell("evt_4", Deed::Reverse { action }), "not_allowed", "it is what was settled");
    assert_eq!(issuer.tell("evt_5", Deed::Settle { action, amount: 90 }), "over_settlement");
    assert_eq!((issuer.sums(&agent), issuer.money()), ((0, 90), (100, 90)));
    issuer.world.audit();
    let kept = issuer.world.row::<Action>(action).kept(issuer.world.now());
    assert_eq!(kept, 10, "so a person is shown that there is something to release");
    assert_eq!(issuer.tell("evt_6", Deed::Reverse { action }), "released");
    assert_eq!((issuer.sums(&agent), issuer.money()), ((0, 80), (100, 80)));
    assert_eq!(issuer.tell("evt_7", Deed::Reverse { action }), "not_allowed", "nothing is left of it");
    issuer.world.audit();
}

/// Where nobody told who charges, the records say so and name no merchant: that of the action was seen by nobody.
#[test]
fn a_merchant_that_nobody_told_is_not_on_record() {
    let (mut issuer, agent) = Issuer::new(&[DAY]);
    for (event, merchant) in [("evt_1", None), ("evt_2", Some("www.shop.example.com"))] {
        issuer.world.advance(Span::millis(1));
        let action = issuer.world.authorize(&agent, payment(100, "EUR", "shop.example.com")).id();
        let Deed::Charge(asked) = charge(action, 90) else { unreachable!() };
        let domain = merchant.map(|it| svc_core::value::domain::Domain::parse(it).unwrap());
        assert_eq!(issuer.tell(event, Deed::Charge(ChargeAsked { merchant: domain, ..asked })), "approved");
        let consumed = issuer.said("receipt.consumed").pop().unwrap();
        assert_eq!(consumed.get("domain").and_then(Json::as_str), merchant);
        let received = issuer.said("integration.received").pop().unwrap();
        let told = received.get("merchantTold").and_then(Json::as_bool);
        assert_eq!((told, int(&received, "amount")), (Some(merchant.is_some()), Some(90)));
    }
    issuer.world.audit();
}
