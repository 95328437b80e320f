//! Signed requests from outside: taken once, remembered for as long as they could come again, and what an issuer's word does to an
//! action.

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::charge::{ChargeAsked, Cover};
use svc_core::rules::edge::integrations::{ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive};
use svc_core::rules::gate::Caller;
use svc_core::rules::people::by::By;
use svc_core::state::edge::{ConfigChange, EVENT_KEPT, Heard, IntegrationKind, IntegrationSlot, Received};
use svc_core::state::gate::{Activity, OutcomeStatus, Status};
use svc_core::testing::World;
use svc_core::testing::world::payment;
use svc_core::value::digest::ReceivedId;
use svc_core::value::id::{ActionId, IntegrationId};
use svc_core::value::{Amount, Currency, Span};

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
        Receive { slot: self.slot, integration: self.id, request, kept: KEPT, event }
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
