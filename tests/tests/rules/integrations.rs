//! Integrations: one of a kind, their secrets take turns, and what is sent over them is signed with those in force.

use std::sync::Arc;

use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::deliver::{ClaimDelivery, Claimed, FinishDelivery, RetryDelivery};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, RotateIntegration, TestIntegration,
};
use svc_core::rules::people::by::By;
use svc_core::rules::people::members::RemoveMember;
use svc_core::state::edge::{
    ConfigChange, Integration, IntegrationKind, IntegrationSlot, Job, JobState, Tried, Trouble,
};
use svc_core::state::people::Role;
use svc_core::store::Record;
use svc_core::testing::world::{World, payment};
use svc_core::value::id::{DeliveryId, IntegrationId, PrincipalId};
use svc_core::value::text::UrlText;
use svc_core::value::{Id as _, Span};

use super::{PAY, calm};

fn secret(hint: &str) -> NewSecret {
    NewSecret { sealed: format!("sealed {hint}").into(), hint: hint.into() }
}

fn create(world: &mut World) -> Result<Arc<Integration>, Refusal> {
    let (workspace, kind) = (world.workspace(), IntegrationKind::Callbacks);
    world.run(CreateIntegration {
        by: By::Program,
        workspace,
        kind,
        secret: secret("one1"),
        config: ConfigChange::default(),
    })
}

fn rotate(world: &mut World, id: IntegrationId, hint: &str, overlap_hours: u16) -> Result<Arc<Integration>, Refusal> {
    let workspace = world.workspace();
    world.run(RotateIntegration { by: By::Program, workspace, id, secret: secret(hint), overlap_hours })
}

/// A call that tries the integration out.
fn test(world: &mut World, id: IntegrationId) -> DeliveryId {
    let url = UrlText::parse("https://hooks.example.com/test").unwrap();
    let workspace = world.workspace();
    world.run(TestIntegration { by: By::Program, workspace, id, url: Some(url) }).unwrap().job.id
}

fn claim(world: &mut World, job: DeliveryId) -> Claimed {
    world.run(ClaimDelivery { job }).unwrap().taken().expect("it is due")
}

fn finish(world: &mut World, claimed: &Claimed, error: Option<Trouble>) -> Arc<Job> {
    let tried = Tried { status: Some(200), error, ms: 1 };
    world
        .run(FinishDelivery { job: claimed.job.id, claim: claimed.job.claims, tried, wait_s: None, posted: None })
        .unwrap()
}

/// Mail names members. Once none of them is one any more, it tells nobody and says so: at the last one's removal, at the next news
/// where an earlier release noted nothing, and until others are named.
#[test]
fn mail_that_names_nobody_who_is_here_says_so() {
    let (mut world, agent) = calm(&[]);
    let workspace = world.workspace();
    let people = [world.person(Role::Admin), world.person(Role::Admin)].map(|it| it.principal);
    let to = |ids: &[PrincipalId]| ConfigChange { to: Some(ids.into()), ..ConfigChange::default() };
    let mail = super::tell::make(&mut world, IntegrationKind::Mail, to(&people));
    let stands = |world: &mut World| {
        let row = world.row::<Integration>(mail.slot);
        (row.state().as_str(), row.last_error.is_some())
    };
    for (gone, state) in people.into_iter().zip([("ok", false), ("failing", true)]) {
        world.run(RemoveMember { workspace, by: By::Program, principal: gone }).unwrap();
        assert_eq!(stands(&mut world), state);
    }
    let change =
        |config: ConfigChange| ChangeIntegration { by: By::Program, workspace, id: mail.id, enabled: None, config };
    let other = world.person(Role::Admin).principal;
    let refused = world.run(change(to(&[other, people[0]]))).unwrap_err();
    assert_eq!((refused.kind(), refused.errors()[0].field.as_deref()), (Kind::InvalidRequest, Some("config.to.1")));
    world.edit::<Integration>(mail.slot, |it| (it.failing, it.last_error) = (false, None));
    world.authorize(&agent, payment(100, "EUR", "a.example"));
    super::tell::spread(&mut world);
    assert_eq!(stands(&mut world), ("failing", true), "the news told nobody");
    world.run(change(to(&[other]))).unwrap();
    assert_eq!(stands(&mut world), ("ok", false));
    world.audit();
}

fn hints(claimed: &Claimed) -> Vec<&str> {
    claimed.secrets.iter().map(|it| &*it.hint).collect()
}

fn kinds(world: &mut World) -> Vec<String> {
    let rows = world.rows();
    let entries = rows.iter().filter_map(|(.., it)| if let Record::Entry(it) = it { Some(it) } else { None });
    let mut found: Vec<_> =
        entries.filter(|it| it.kind.starts_with("integration.")).map(|it| it.kind.to_string()).collect();
    found.sort();
    found
}

/// A workspace has one integration of a kind; another's id, or one that was removed, is not found.
#[test]
fn a_workspace_has_one_integration_of_a_kind() {
    let (mut world, _) = calm(&[PAY]);
    let made = create(&mut world).unwrap();
    let again = create(&mut world).unwrap_err();
    assert_eq!((again.kind(), again.errors()[0].field.as_deref()), (Kind::InvalidRequest, Some("kind")));
    let stranger = IntegrationId::from_bits(7);
    assert_eq!(rotate(&mut world, stranger, "two2", 0).unwrap_err().kind(), Kind::NotFound);
    let workspace = world.workspace();
    world.run(RemoveIntegration { by: By::Program, workspace, id: made.id }).unwrap();
    assert_eq!(rotate(&mut world, made.id, "two2", 0).unwrap_err().kind(), Kind::NotFound);
    assert_ne!(create(&mut world).unwrap().id, made.id);
    assert_eq!(kinds(&mut world), ["integration.created", "integration.created", "integration.removed"]);
}

/// While a secret rotates a call is signed with both; once its time is up the old one is not kept, sealed or not.
#[test]
fn a_call_is_signed_with_what_is_in_force() {
    let (mut world, _) = calm(&[PAY]);
    let id = create(&mut world).unwrap().id;
    let job = test(&mut world, id);
    assert_eq!(hints(&claim(&mut world, job)), ["one1"]);
    rotate(&mut world, id, "two2", 24).unwrap();
    let job = test(&mut world, id);
    assert_eq!(hints(&claim(&mut world, job)), ["two2", "one1"]);
    assert!(world.dump().contains("sealed one1"));
    world.advance(Span::hours(24));
    let job = test(&mut world, id);
    assert_eq!(hints(&claim(&mut world, job)), ["two2"]);
    assert!(!world.dump().contains("sealed one1"));
    rotate(&mut world, id, "thr3", 0).unwrap();
    assert!(!world.dump().contains("sealed two2"));
    let refused = rotate(&mut world, id, "fou4", 169).unwrap_err();
    assert_eq!(refused.errors()[0].field.as_deref(), Some("overlapHours"));
    rotate(&mut world, id, "fou4", 168).unwrap();
}

/// What goes wrong over an integration shows on it, and goes away when something goes well; what is off signs nothing.
#[test]
fn an_integration_shows_how_it_stands() {
    let (mut world, _) = calm(&[PAY]);
    let id = create(&mut world).unwrap().id;
    let slot = IntegrationSlot { workspace: world.workspace(), kind: IntegrationKind::Callbacks };
    let row = |world: &mut World| -> Arc<Integration> { world.row(slot) };
    let job = test(&mut world, id);
    let claimed = claim(&mut world, job);
    assert!(
        matches!(finish(&mut world, &claimed, Some(Trouble::Tls)).state, JobState::Failed { .. }),
        "a test is tried once"
    );
    let failing = row(&mut world);
    assert_eq!((failing.state().as_str(), failing.last_error.as_deref()), ("failing", Some(Trouble::Tls.as_str())));
    let job = test(&mut world, id);
    let claimed = claim(&mut world, job);
    finish(&mut world, &claimed, None);
    let well = row(&mut world);
    assert_eq!((well.state().as_str(), &well.last_error, well.last_event_at), ("ok", &None, Some(world.now())));
    let workspace = world.workspace();
    let change =
        |enabled| ChangeIntegration { by: By::Program, workspace, id, enabled, config: ConfigChange::default() };
    assert_eq!(world.run(change(Some(false))).unwrap().state().as_str(), "off");
    let job = test(&mut world, id);
    assert!(hints(&claim(&mut world, job)).is_empty());
    let before = kinds(&mut world);
    world.run(change(None)).unwrap();
    world.run(change(Some(false))).unwrap();
    assert_eq!(kinds(&mut world), before, "what changes nothing is not recorded");
    world.audit();
}

/// A call that was given up can be tried again, on the whole schedule; what was delivered or replaced cannot.
#[test]
fn a_call_is_tried_again_when_somebody_asks() {
    use svc_core::rules::gate::callback::RegisterCallback;

    let (mut world, agent) = calm(&[PAY]);
    let id = create(&mut world).unwrap().id;
    let workspace = world.workspace();
    let retry = |job| RetryDelivery { by: By::Program, workspace, id: job };
    let job = test(&mut world, id);
    let claimed = claim(&mut world, job);
    assert_eq!(world.run(retry(job)).unwrap().state, claimed.job.state, "it is being tried");
    finish(&mut world, &claimed, Some(Trouble::Connect));
    assert!(matches!(world.run(retry(job)).unwrap().state, JobState::Waiting { due } if due == world.now()));
    let claimed = claim(&mut world, job);
    finish(&mut world, &claimed, None);
    assert_eq!(world.run(retry(job)).unwrap_err().kind(), Kind::NotAllowed);
    let action = world.authorize(&agent, payment(100, "EUR", "a.example")).id();
    let url = UrlText::parse("https://hooks.example.com/a").unwrap();
    let register = RegisterCallback { caller: agent, action, url };
    let first = world.run(register.clone()).unwrap().job.unwrap().id;
    world.run(register).unwrap();
    assert_eq!(world.run(retry(first)).unwrap_err().kind(), Kind::NotAllowed);
    assert_eq!(world.run(retry(DeliveryId::from_bits(9))).unwrap_err().kind(), Kind::NotFound);
}
