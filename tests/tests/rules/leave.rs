//! What follows somebody's leaving for the agents that they ran: keys they made end, and agents that passed on do the work of
//! whoever they passed to.

use std::collections::BTreeMap;
use std::sync::Arc;

use svc_core::dialect::Body;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gateway::admit::{Admission, AdmitCall};
use svc_core::rules::gateway::models::NewModel;
use svc_core::rules::gateway::outcome::ReportOutcome;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::gateway::routing::{Edit, EditRouting};
use svc_core::rules::gateway::upstreams::{self, NewKey as UpstreamSecret};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::members::RemoveMember;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::show;
use svc_core::state::gate::Agent;
use svc_core::state::gateway::{Call, Dialect, Task, TaskStatus};
use svc_core::state::people::{Credential, DataLoss, KeyScope, Plans, Role};
use svc_core::testing::world::World;
use svc_core::value::Span;
use svc_core::value::digest::CredentialId;
use svc_core::value::id::PrincipalId;
use svc_core::value::text::{ClassId, Label, ModelName, TaskId, UpstreamName, UrlText};

use super::PAY;
use svc_core::testing::world::{payment, terms};

/// An agent that acts for a member and is sponsored by another, with both of them and the owner.
fn entrusted(world: &mut World) -> (Caller, Person, Person, Person) {
    let (owner, leaver, sponsor) = (world.owner(), world.person(Role::Member), world.person(Role::Member));
    let caller = world.agent().with_mandate(terms(PAY)).register();
    entrust(world, &caller, leaver.principal, sponsor.principal);
    (caller, owner, leaver, sponsor)
}

fn entrust(world: &mut World, caller: &Caller, principal: PrincipalId, sponsor: PrincipalId) {
    world.edit::<Agent>(caller.agent, |it| (it.principal, it.sponsor) = (principal, Some(sponsor)));
    let first = world.row::<Agent>(caller.agent).keys.first().unwrap().credential;
    world.edit::<Credential>(first, |it| it.binding.principal = principal);
}

fn remove(world: &mut World, by: &Person, principal: PrincipalId) {
    world.run(RemoveMember { workspace: by.workspace, by: By::Person(*by), principal }).unwrap();
}

/// A key that somebody made for an agent is void in the commit in which they leave, and its row says so a moment later; the
/// agent stays, with the keys that others made.
#[test]
fn a_key_of_an_agent_ends_with_who_made_it() {
    let mut world = World::new();
    let (first, owner, leaver, _) = entrusted(&mut world);
    let make = |by: &Person, text: &str| {
        CreateKey::new(by.workspace, By::Person(*by), KeyScope::Agent(first.agent), NewKey::of(text))
    };
    let noted = world.run(make(&leaver, "ask_noted")).unwrap();
    let kept = world.run(make(&owner, "ask_kept")).unwrap();
    let with = |row: &Credential| Caller { key: row.binding.key, ..first };
    assert!(world.try_authorize(&with(&noted), payment(100, "EUR", "shop.example")).is_ok());
    remove(&mut world, &owner, leaver.principal);
    let told = world.try_authorize(&with(&noted), payment(100, "EUR", "shop.example")).map(drop);
    assert_eq!(told.unwrap_err().kind(), Kind::InvalidApiKey, "at once");
    world.advance(Span::seconds(1));
    assert!(world.row::<Credential>(noted.id).revoked_at.is_some());
    assert!(world.row::<Credential>(kept.id).revoked_at.is_none());
    assert!(world.row::<Agent>(first.agent).keys.iter().all(|it| it.id != noted.binding.key));
    for key in [&first, &with(&kept)] {
        assert!(world.try_authorize(key, payment(100, "EUR", "shop.example")).is_ok());
    }
    world.audit().assert_clean("after a key of an agent ended");
}

/// The key that an agent came with stays with it, whoever registered the agent leaves.
#[test]
fn an_agent_stays_with_the_key_it_came_with() {
    let mut world = World::new();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let made = world.run(RegisterAgent {
        by: By::Person(admin),
        mandates: vec![Content::Whole(Box::new(terms(PAY)))],
        ..RegisterAgent::new(admin.workspace, Label::parse("Buyer").unwrap(), NewKey::of("ask_first"))
    });
    let made = made.unwrap();
    let caller = Caller { workspace: admin.workspace, agent: made.agent.id, key: made.agent.keys[0].id };
    assert!(world.try_authorize(&caller, payment(100, "EUR", "shop.example")).is_ok());
    remove(&mut world, &owner, admin.principal);
    world.advance(Span::seconds(1));
    assert!(world.try_authorize(&caller, payment(100, "EUR", "shop.example")).is_ok());
    let row = world.row::<Agent>(caller.agent).keys[0].credential;
    assert!(world.row::<Credential>(row).revoked_at.is_none());
}

fn serve_a_model(world: &mut World) {
    let workspace = world.workspace();
    let mut edit = |edit| world.run(EditRouting { by: By::Program, workspace, edit }).unwrap();
    let set = vec![
        upstreams::Set::Name(UpstreamName::parse("acme").unwrap()),
        upstreams::Set::Kind(Dialect::Chat),
        upstreams::Set::BaseUrl(UrlText::parse("https://models.example.com/v1").unwrap()),
        upstreams::Set::Key(UpstreamSecret { sealed: "sealed-one".into(), hint: "wxyz".into() }),
    ];
    let upstream = edit(Edit::CreateUpstream(set)).upstream.unwrap();
    let name = ModelName::parse("m").unwrap();
    edit(Edit::CreateModel(NewModel { upstream, name, known: Vec::new(), set: Vec::new() }));
}

fn call_key(world: &mut World, row: CredentialId) -> CallKey {
    CallKey { row, binding: Arc::new(world.row::<Credential>(row).binding.clone()) }
}

fn call(world: &mut World, caller: &CallKey, task: &TaskId) -> Result<Arc<Call>, Refusal> {
    let body = br#"{"model":"acme/m","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}"#;
    let admitted = world.run(AdmitCall {
        caller: caller.clone(),
        demand: Arc::new(Body::read(Dialect::Chat, body).unwrap().demand()),
        class: None,
        task: Some(task.clone()),
        objective: None,
        oversight: false,
        session: None,
        health: Arc::default(),
        findings: BTreeMap::new(),
        scanned_under: DataLoss::Off,
        plans: Plans::default(),
        total_ms: 1_000,
        dry: false,
        count: false,
    })?;
    match admitted {
        Admission::Admitted(it) => Ok(it.call),
        other => panic!("{other:?}"),
    }
}

/// An agent that passed on pays as whoever it acts for by then, with the keys it had before, and carries its tasks on; who
/// looks at its keys is told so.
#[test]
fn an_agent_that_passed_on_pays_as_who_it_passed_to() {
    let mut world = World::new();
    serve_a_model(&mut world);
    let (first, owner, leaver, sponsor) = entrusted(&mut world);
    let row = world.row::<Agent>(first.agent).keys.first().unwrap().credential;
    let key = call_key(&mut world, row);
    let (begun, later) = (TaskId::parse("tsk_begun").unwrap(), TaskId::parse("tsk_later").unwrap());
    assert_eq!(call(&mut world, &key, &begun).unwrap().payer.principal, leaver.principal);
    remove(&mut world, &owner, leaver.principal);
    world.advance(Span::seconds(1));
    assert_eq!(world.row::<Agent>(first.agent).principal, sponsor.principal);
    for task in [&begun, &later] {
        assert_eq!(call(&mut world, &key, task).unwrap().payer.principal, sponsor.principal);
    }
    let workspace = world.workspace();
    assert_eq!(world.row::<Task>(Task::key_of(workspace, &later)).principal, sponsor.principal);
    let report = ReportOutcome { caller: key.clone(), task: begun.clone(), status: TaskStatus::Accepted };
    world.run(report).unwrap();
    let credential = world.row::<Credential>(row);
    let view = world.engine().read(|scope| show::key(scope, Arc::clone(&credential))).unwrap();
    assert_eq!((view.principal, view.state), (sponsor.principal, "active"));
    let other = world.agent().register();
    let row = world.row::<Agent>(other.agent).keys.first().unwrap().credential;
    let foreign = call_key(&mut world, row);
    assert_eq!(call(&mut world, &foreign, &later).unwrap_err().kind(), Kind::Forbidden, "another principal's task");
}

/// A class is free to be removed once the key that was bound to it has ended with whoever left, and where such a key ended
/// without letting go of it, revoking the key once more frees it.
#[test]
fn a_key_that_ended_keeps_no_class() {
    let mut world = World::new();
    let (owner, leaver) = (world.owner(), world.person(Role::Member));
    let (workspace, by) = (world.workspace(), || By::Person(owner));
    let classes = ["a", "b"].map(|it| ClassId::parse(it).unwrap());
    for class in &classes {
        world.run(EditRouting { by: by(), workspace, edit: Edit::CreateClass(class.clone(), Vec::new()) }).unwrap();
    }
    let bound = |principal: PrincipalId, class: &ClassId| {
        let make = CreateKey::new(workspace, by(), KeyScope::Inference, NewKey::of(&format!("ask_{class}")));
        CreateKey { principal: Some(principal), task_class: Some(class.clone()), ..make }
    };
    world.run(bound(leaver.principal, &classes[0])).unwrap();
    let stuck = world.run(bound(owner.principal, &classes[1])).unwrap();
    remove(&mut world, &owner, leaver.principal);
    world.advance(Span::seconds(1));
    let now = world.now();
    world.edit::<Credential>(stuck.id, |it| it.revoked_at = Some(now));
    let gone = |class: &ClassId| EditRouting { by: by(), workspace, edit: Edit::RemoveClass(class.clone()) };
    world.run(gone(&classes[0])).unwrap();
    assert_eq!(world.run(gone(&classes[1])).map(drop).unwrap_err().kind(), Kind::NotAllowed);
    world.run(RevokeKey { workspace, by: by(), credential: stuck.id }).unwrap();
    world.run(gone(&classes[1])).unwrap();
}
