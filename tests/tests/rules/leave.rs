//! What follows somebody's leaving for the agents that they ran: keys they made end, and agents that passed on do the work of
//! whoever they passed to.

use std::sync::Arc;

use svc_core::dialect::Body;
use svc_core::dlp::Findings;
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gate::Caller;
use svc_core::rules::gateway::admit::{Admission, AdmitCall};
use svc_core::rules::gateway::budgets::list_budgets;
use svc_core::rules::gateway::models::NewModel;
use svc_core::rules::gateway::outcome::ReportOutcome;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::gateway::routing::{Edit, EditRouting};
use svc_core::rules::gateway::upstreams::{self, NewKey as UpstreamSecret};
use svc_core::rules::people::by::{By, KeyCaller, Person};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey, is_in_force};
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::members::{ChangeMember, InviteMember, MemberDone, RemoveMember};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::show;
use svc_core::state::gate::Agent;
use svc_core::state::gateway::{Call, Dialect, Task, TaskStatus};
use svc_core::state::people::{Binding, Credential, DataLoss, KeyScope, Plans, Principal, Role};
use svc_core::testing::world::World;
use svc_core::turn::Scope;
use svc_core::value::Span;
use svc_core::value::digest::{CredentialId, Digest};
use svc_core::value::id::PrincipalId;
use svc_core::value::text::{ClassId, Label, ModelName, TaskId, UpstreamName, UrlText};

use super::PAY;
use super::members::invitation;
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

/// A further key ends where whoever made it may make that agent none any more: they are an admin no longer, or its sponsor.
#[test]
fn a_key_of_an_agent_ends_with_the_role_that_made_it() {
    let mut world = World::new();
    let (first, owner, principal, sponsor) = entrusted(&mut world);
    let admin = world.person(Role::Admin);
    let make = |by: &Person, text: &str| {
        CreateKey::new(by.workspace, By::Person(*by), KeyScope::Agent(first.agent), NewKey::of(text))
    };
    let made = [(owner, "ask_owner"), (admin, "ask_admin"), (sponsor, "ask_sponsor"), (principal, "ask_principal")];
    let made = made.map(|(by, text)| world.run(make(&by, text)).unwrap());
    let works = |world: &mut World| {
        made.each_ref().map(|row| {
            let caller = Caller { key: row.binding.key, ..first };
            let told = world.try_authorize(&caller, payment(100, "EUR", "shop.example")).map(drop);
            let state = world.engine().read(|scope| show::key(scope, Arc::clone(row))).unwrap().state.as_str();
            let is_refused = told.is_err_and(|it| it.kind() == Kind::InvalidApiKey);
            assert_eq!(state == "active", !is_refused, "{}", row.prefix);
            !is_refused
        })
    };
    assert_eq!(works(&mut world), [true; 4]);
    let becomes = |whom: &Person, role| ChangeMember {
        workspace: owner.workspace,
        by: By::Person(owner),
        principal: whom.principal,
        role: Some(role),
        teams: None,
    };
    world.run(becomes(&admin, Role::Auditor)).unwrap();
    assert_eq!(works(&mut world), [true, false, true, true], "at once");
    world.run(becomes(&admin, Role::Admin)).unwrap();
    assert_eq!(works(&mut world), [true, false, true, true], "for good");
    world.run(becomes(&principal, Role::Auditor)).unwrap();
    assert_eq!(works(&mut world), [true, false, true, false], "auditors make none for their own agents");
    world.advance(Span::seconds(1));
    for ended in [1, 3] {
        assert!(world.row::<Credential>(made[ended].id).revoked_at.is_some(), "its row says so");
    }
    world.edit::<Agent>(first.agent, |it| it.sponsor = None);
    assert_eq!(works(&mut world), [true, false, false, false]);
    assert!(world.try_authorize(&first, payment(100, "EUR", "shop.example")).is_ok());
    world.audit().assert_clean("after keys of an agent ended");
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

/// Who leaves is sponsor and kill owner of no agent any more, as the ledger says, and is none again where they are invited anew, however soon;
/// what others were entrusted with stays.
#[test]
fn a_sponsor_and_a_kill_owner_who_leave_are_so_no_more() {
    for soon in [false, true] {
        let mut world = World::new();
        let (owner, leaver, other) = (world.owner(), world.person(Role::Member), world.person(Role::Member));
        let agents = [0; 3].map(|_| world.agent().with_mandate(terms(PAY)).register().agent);
        let named = [
            (Some(leaver.principal), Some(leaver.principal)),
            (Some(other.principal), Some(leaver.principal)),
            (Some(other.principal), Some(other.principal)),
        ];
        for (agent, named) in agents.iter().zip(named) {
            world.edit::<Agent>(*agent, |it| (it.sponsor, it.kill_owner) = named);
        }
        let email = world.row::<Principal>(leaver.principal).email.clone();
        remove(&mut world, &owner, leaver.principal);
        if !soon {
            world.advance(Span::seconds(1));
        }
        world
            .run(InviteMember {
                workspace: owner.workspace,
                by: By::Person(owner),
                email,
                name: None,
                role: Role::Member,
                teams: None,
                token: Digest::of("link"),
                mailed: None,
            })
            .unwrap();
        world.advance(Span::seconds(1));
        let left = agents.map(|it| {
            let agent = world.row::<Agent>(it);
            (agent.sponsor, agent.kill_owner)
        });
        let other = Some(other.principal);
        assert_eq!(left, [(None, None), (other, None), (other, other)], "soon: {soon}");
        let ledger = world.ledger();
        assert_eq!(ledger.matches(r#""new":{"killOwner":null}"#).count(), 1, "{ledger}");
        assert_eq!(ledger.matches(r#""new":{"killOwner":null,"sponsor":null}"#).count(), 1, "{ledger}");
        world.audit().assert_clean("after who answered for agents left");
    }
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
        findings: Findings::default(),
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
    assert_eq!((view.principal, view.state.as_str()), (sponsor.principal, "active"));
    let other = world.agent().register();
    let row = world.row::<Agent>(other.agent).keys.first().unwrap().credential;
    let foreign = call_key(&mut world, row);
    assert_eq!(call(&mut world, &foreign, &later).unwrap_err().kind(), Kind::Forbidden, "another principal's task");
}

/// A class is free to be removed as soon as the key that was bound to it has ended with whoever left, or with the key that made
/// it, whatever its own row says.
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
    let theirs = world.run(bound(leaver.principal, &classes[0])).unwrap();
    let make = CreateKey::new(workspace, by(), KeyScope::Admin, NewKey::of("ask_admin"));
    let admin = world.run(make).unwrap();
    let under = CreateKey { by: By::Key(key_caller(&admin)), ..bound(owner.principal, &classes[1]) };
    let under = world.run(under).unwrap();
    let gone = |class: &ClassId| EditRouting { by: by(), workspace, edit: Edit::RemoveClass(class.clone()) };
    for class in &classes {
        assert_eq!(world.run(gone(class)).map(drop).unwrap_err().kind(), Kind::NotAllowed);
    }
    remove(&mut world, &owner, leaver.principal);
    world.run(RevokeKey { workspace, by: by(), credential: admin.id }).unwrap();
    assert!([&theirs, &under].iter().all(|it| world.row::<Credential>(it.id).revoked_at.is_none()));
    for class in &classes {
        world.run(gone(class)).unwrap();
    }
}

/// A key that an admin key made for somebody else ends in the commit in which whoever made the admin key leaves, as that does.
#[test]
fn a_key_that_an_admin_key_made_ends_with_whoever_made_that() {
    let mut world = World::new();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let workspace = world.workspace();
    let make = |by: By, text: &str| CreateKey::new(workspace, by, KeyScope::Admin, NewKey::of(text));
    let first = world.run(make(By::Person(admin), "ask_first")).unwrap();
    let (first, other) = (key_caller(&first), Some(owner.principal));
    let second = world.run(CreateKey { principal: other, ..make(By::Key(first), "ask_second") }).unwrap();
    let third = world.run(CreateKey { principal: other, ..make(By::Key(key_caller(&second)), "ask_third") }).unwrap();
    remove(&mut world, &owner, admin.principal);
    for (key, text) in [(first, "ask_a"), (key_caller(&second), "ask_b"), (key_caller(&third), "ask_c")] {
        let told = world.run(make(By::Key(key), text)).map(drop);
        assert_eq!(told.unwrap_err().kind(), Kind::InvalidApiKey, "at once");
    }
    assert!(world.row::<Credential>(third.id).revoked_at.is_none(), "nothing has followed yet");
}

/// A key that an admin key makes ends no later than that, and says so; one of before whose own row knows no end goes with it too.
#[test]
fn a_key_that_an_admin_key_made_ends_when_that_does() {
    let mut world = World::new();
    let (owner, workspace) = (world.owner(), world.workspace());
    let make = |by: By, scope, text: &str| CreateKey::new(workspace, by, scope, NewKey::of(text));
    let end = world.now().plus(Span::hours(24));
    let first = make(By::Person(owner), KeyScope::Admin, "ask_first");
    let first = world.run(CreateKey { expires_at: Some(end), ..first }).unwrap();
    let under = |row: &Credential, scope, text: &str| make(By::Key(key_caller(row)), scope, text);
    let admin = world.run(under(&first, KeyScope::Admin, "ask_admin")).unwrap();
    let below = world.run(under(&admin, KeyScope::Inference, "ask_below")).unwrap();
    let [sooner, later] = [Span::hours(1), Span::hours(48)].map(|it| Some(world.now().plus(it)));
    let asked = under(&first, KeyScope::Inference, "ask_sooner");
    let sooner = world.run(CreateKey { expires_at: sooner, ..asked }).unwrap();
    let asked = under(&first, KeyScope::Inference, "ask_later");
    let later = world.run(CreateKey { expires_at: later, ..asked }).unwrap();
    let ends = [&admin, &below, &sooner, &later].map(|it| it.expires_at.map(|it| end.since(it)));
    assert_eq!(ends, [Some(Span::default()), Some(Span::default()), Some(Span::hours(23)), Some(Span::default())]);
    let old = world.run(under(&first, KeyScope::Admin, "ask_old")).unwrap();
    world.edit::<Credential>(old.id, |it| it.expires_at = None);
    let live = |world: &mut World, id| {
        let row = world.row::<Credential>(id);
        world.engine().read(|scope| is_in_force(scope, &row)).unwrap()
    };
    let all = [first.id, admin.id, below.id, later.id, old.id];
    assert!(all.iter().all(|it| live(&mut world, *it)));
    world.advance(Span::hours(24));
    assert!(!all.iter().any(|it| live(&mut world, *it)));
    let told = world.run(under(&old, KeyScope::Admin, "ask_last")).map(drop);
    assert_eq!(told.unwrap_err().kind(), Kind::InvalidApiKey);
}

fn key_caller(row: &Credential) -> KeyCaller {
    let Binding { workspace, key, principal, .. } = row.binding;
    KeyCaller { workspace, key, row: row.id, principal }
}

/// Whoever may make no keys any more has no admin key of their own either, nor does what that made go on; one that was made for
/// them by another, and one for traffic, does. Who may again makes a new one: the old ones stay revoked.
#[test]
fn an_admin_key_ends_with_the_role_that_made_it() {
    let mut world = World::new();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let workspace = world.workspace();
    let make = |by: By, scope: KeyScope, text: &str| CreateKey::new(workspace, by, scope, NewKey::of(text));
    let own = world.run(make(By::Person(admin), KeyScope::Admin, "ask_own")).unwrap();
    let under = make(By::Key(key_caller(&own)), KeyScope::Admin, "ask_under");
    let under = world.run(CreateKey { principal: Some(owner.principal), ..under }).unwrap();
    let traffic = world.run(make(By::Person(admin), KeyScope::Inference, "ask_traffic")).unwrap();
    let given = make(By::Person(owner), KeyScope::Admin, "ask_given");
    let given = world.run(CreateKey { principal: Some(admin.principal), ..given }).unwrap();
    let states = |world: &mut World| {
        [&own, &under, &traffic, &given].map(|row| {
            let row = Arc::clone(row);
            world.engine().read(|scope| show::key(scope, Arc::clone(&row))).unwrap().state.as_str()
        })
    };
    assert_eq!(states(&mut world), ["active"; 4]);
    let becomes = |role| ChangeMember {
        role: Some(role),
        principal: admin.principal,
        workspace,
        by: By::Person(owner),
        teams: None,
    };
    world.run(becomes(Role::Member)).unwrap();
    assert_eq!(states(&mut world), ["revoked", "revoked", "active", "active"]);
    for (key, ends) in [(&own, true), (&under, true), (&given, false)] {
        let list = |scope: &mut Scope<'_>| list_budgets(scope, &By::Key(key_caller(key)), workspace, None, 1);
        let told = world.engine().read(list).map(drop).err().map(refused);
        assert_eq!(told, ends.then_some(Kind::InvalidApiKey), "{}", key.prefix);
    }
    world.advance(Span::millis(1));
    world.run(becomes(Role::Admin)).unwrap();
    assert_eq!(states(&mut world), ["revoked", "revoked", "active", "active"]);
    let anew = world.run(make(By::Person(admin), KeyScope::Admin, "ask_anew")).unwrap();
    assert_eq!(world.engine().read(|scope| show::key(scope, Arc::clone(&anew))).unwrap().state.as_str(), "active");
}

/// An admin key that somebody made to count for another ends with their role and with their membership, and so does what it made;
/// one for traffic stays with whom it counts for. Its row says so a moment after they left.
#[test]
fn an_admin_key_for_another_ends_with_who_made_it() {
    let mut world = World::new();
    let (owner, demoted, left) = (world.owner(), world.person(Role::Admin), world.person(Role::Admin));
    let workspace = world.workspace();
    let make = |by: By, scope: KeyScope, text: &str| CreateKey {
        principal: Some(owner.principal),
        ..CreateKey::new(workspace, by, scope, NewKey::of(text))
    };
    let [first, second] = [demoted, left].map(|it| {
        let name = it.principal;
        let admin = world.run(make(By::Person(it), KeyScope::Admin, &format!("ask_{name}"))).unwrap();
        let by = By::Key(key_caller(&admin));
        let under = world.run(make(by, KeyScope::Admin, &format!("ask_under_{name}"))).unwrap();
        let traffic = world.run(make(By::Person(it), KeyScope::Inference, &format!("ask_traffic_{name}"))).unwrap();
        [admin, under, traffic]
    });
    let states = |world: &mut World, of: &[Arc<Credential>; 3]| {
        of.each_ref().map(|row| world.engine().read(|scope| show::key(scope, Arc::clone(row))).unwrap().state.as_str())
    };
    assert_eq!((states(&mut world, &first), states(&mut world, &second)), (["active"; 3], ["active"; 3]));
    let (by, principal) = (By::Person(owner), demoted.principal);
    world.run(ChangeMember { workspace, by, principal, role: Some(Role::Analyst), teams: None }).unwrap();
    assert_eq!(states(&mut world, &first), ["revoked", "revoked", "active"]);
    remove(&mut world, &owner, left.principal);
    assert_eq!(states(&mut world, &second), ["revoked", "revoked", "active"]);
    for ended in first.iter().chain(&second).filter(|it| it.binding.scope == KeyScope::Admin) {
        let list = |scope: &mut Scope<'_>| list_budgets(scope, &By::Key(key_caller(ended)), workspace, None, 1);
        let told = world.engine().read(list).map(drop).err().map(refused);
        assert_eq!(told, Some(Kind::InvalidApiKey), "{}", ended.prefix);
    }
    world.advance(Span::seconds(1));
    assert!(world.row::<Credential>(second[0].id).revoked_at.is_some());
    assert!(world.row::<Credential>(second[2].id).revoked_at.is_none());
    world.audit().assert_clean("after an admin key for another ended");
}

fn refused<E: std::fmt::Debug>(failure: Failure<E>) -> Kind {
    let Failure::Refused(refusal) = failure else { panic!("{failure:?}") };
    refusal.kind()
}

/// Nobody makes a key for a member who was removed: they would have one again. What never was a member may have one.
#[test]
fn no_key_is_made_for_a_removed_member() {
    let mut world = World::new();
    let (owner, leaver) = (world.owner(), world.person(Role::Member));
    let (service, workspace) = (world.agent().register(), world.workspace());
    let service = world.row::<Agent>(service.agent).principal;
    remove(&mut world, &owner, leaver.principal);
    let make = |principal: PrincipalId, text: &str| {
        let make = CreateKey::new(workspace, By::Person(owner), KeyScope::Inference, NewKey::of(text));
        CreateKey { principal: Some(principal), ..make }
    };
    let refusal = world.run(make(leaver.principal, "ask_gone")).unwrap_err();
    assert_eq!((refusal.kind(), refusal.errors()[0].field.as_deref()), (Kind::InvalidRequest, Some("principalId")));
    assert!(world.run(make(service, "ask_there")).is_ok());
}

/// Who comes into a role in which they decide nothing is sponsor of no agent any more, and stays kill owner, which is nobody's for their
/// role; one whom they would have followed waits for an owner. Another role later brings none of it back.
#[test]
fn a_sponsor_who_decides_nothing_any_more_is_none() {
    for role in [Role::Analyst, Role::Auditor] {
        let mut world = World::new();
        let (first, owner, leaver, sponsor) = entrusted(&mut world);
        let other = world.agent().with_mandate(terms(PAY)).register();
        let both = Some(sponsor.principal);
        world.edit::<Agent>(other.agent, |it| (it.sponsor, it.kill_owner) = (both, both));
        let becomes = |role| ChangeMember {
            workspace: owner.workspace,
            by: By::Person(owner),
            principal: sponsor.principal,
            role: Some(role),
            teams: None,
        };
        world.run(becomes(role)).unwrap();
        // Before that is written anywhere, they follow nobody.
        remove(&mut world, &owner, leaver.principal);
        world.advance(Span::seconds(1));
        world.run(becomes(Role::Member)).unwrap();
        world.advance(Span::seconds(1));
        let [first, other] = [first, other].map(|it| world.row::<Agent>(it.agent));
        assert_eq!((first.principal, first.sponsor), (leaver.principal, None), "{role:?}");
        assert_eq!((other.sponsor, other.kill_owner), (None, both), "{role:?}");
        assert!(world.ledger().contains(r#""new":{"sponsor":null}"#));
        world.audit().assert_clean("after a sponsor ceased to decide");
    }
}

/// A role that is given to somebody who comes back, while what they left is still gone through, takes none of their leaving away.
#[test]
fn a_role_meanwhile_brings_back_nothing_that_was_left() {
    let mut world = World::new();
    let (first, owner, _, sponsor) = entrusted(&mut world);
    let email = world.row::<Principal>(sponsor.principal).email.clone();
    remove(&mut world, &owner, sponsor.principal);
    world.run(invitation(owner, email.as_str(), Role::Member, "back")).unwrap();
    world.clock().advance(Span::millis(2));
    let role = Some(Role::Admin);
    let (workspace, by) = (owner.workspace, By::Person(owner));
    world.run(ChangeMember { workspace, by, principal: sponsor.principal, role, teams: None }).unwrap();
    assert_eq!(world.row::<Agent>(first.agent).sponsor, Some(sponsor.principal), "nothing has followed yet");
    world.advance(Span::seconds(1));
    assert_eq!(world.row::<Agent>(first.agent).sponsor, None);
    assert_eq!(world.row::<Principal>(sponsor.principal).following, None);
    world.audit();
}

/// So it is with somebody who is invited again for less before they have come.
#[test]
fn a_sponsor_who_is_invited_for_less_is_none() {
    let mut world = World::new();
    let owner = world.owner();
    let agent = world.agent().with_mandate(terms(PAY)).register();
    let invite = |role, token| invitation(owner, "next@example.com", role, token);
    let MemberDone::Done { principal, .. } = world.run(invite(Role::Member, "first")).unwrap() else {
        panic!("it asks nobody")
    };
    world.edit::<Agent>(agent.agent, |it| it.sponsor = Some(principal.id));
    world.advance(Span::seconds(1));
    assert_eq!(world.row::<Agent>(agent.agent).sponsor, Some(principal.id), "who is invited will decide");
    world.run(invite(Role::Analyst, "second")).unwrap();
    world.advance(Span::seconds(1));
    assert_eq!(world.row::<Agent>(agent.agent).sponsor, None);
    world.audit();
}
