//! Who is told of what waits, and who is not: those who may decide it now, once, for as long as it waits.

use std::sync::Arc;

use svc_core::rules::edge::deliver::{ClaimDelivery, Claimed, FinishDelivery, RetryDelivery};
use svc_core::rules::edge::integrations::{
    ChangeIntegration, CreateIntegration, NewSecret, RemoveIntegration, TestIntegration,
};
use svc_core::rules::edge::message::{About, Asked};
use svc_core::rules::edge::spread::SpreadNews;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::freeze::{FreezeAgent, Stopped};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::members::{ChangeMember, MemberDone};
use svc_core::state::edge::{
    ConfigChange, Integration, IntegrationKind, Job, JobState, LEASE, LinkedMember, News, SealedSecret, Tried, Trouble,
    Work,
};
use svc_core::state::gate::{Action, Agent, Approval, ApprovalKind};
use svc_core::state::people::{Member, MemberState, Principal, Role, Workspace};
use svc_core::store::{Range, Record, Row as _};
use svc_core::testing::world::{World, payment, request, tool_call};
use svc_core::value::id::{ActionId, ApprovalId, DeliveryId, PrincipalId};
use svc_core::value::link::{Index, shard};
use svc_core::value::text::UrlText;
use svc_core::value::{Id as _, Span};

use super::calm;
use super::fleet::{note, token};

pub(super) fn make(world: &mut World, kind: IntegrationKind, config: ConfigChange) -> Arc<Integration> {
    let (workspace, secret) = (world.workspace(), NewSecret { sealed: "sealed".into(), hint: "seal".into() });
    world.run(CreateIntegration { by: By::Program, workspace, kind, secret, config }).unwrap()
}

/// A workspace that mails, and an agent without mandates: all it does is asked.
pub(super) fn mailed() -> (World, Caller) {
    let (mut world, agent) = calm(&[]);
    make(&mut world, IntegrationKind::Mail, ConfigChange::default());
    (world, agent)
}

pub(super) fn room(url: &str) -> ConfigChange {
    ConfigChange { url: Some(Some(UrlText::parse(url).unwrap())), ..ConfigChange::default() }
}

fn over(world: &mut World) -> Vec<IntegrationKind> {
    world.row::<Workspace>(world.workspace()).told_over.clone()
}

pub(super) fn jobs(world: &mut World) -> Vec<Arc<Job>> {
    let rows = world.rows().into_iter();
    rows.filter_map(|(.., record)| if let Record::Job(it) = record { Some(it) } else { None }).collect()
}

fn news(world: &mut World) -> Vec<Arc<Job>> {
    jobs(world).into_iter().filter(|it| it.is_to_spread()).collect()
}

fn claim(world: &mut World, job: DeliveryId) -> Option<Claimed> {
    world.run(ClaimDelivery { job }).unwrap().taken()
}

/// The command for the page of `size` behind where the job has come to.
fn page(world: &mut World, job: &Job, size: usize) -> SpreadNews {
    let Work::Tell { reached: behind, .. } = job.work else { panic!("{job:?}") };
    let all = Range::all(Index::PrincipalsOf, job.workspace.bits(), size);
    let after = behind.map(|it| (it.bits(), Principal::key(it)));
    let rows = world.engine().scan(&Range { after, ..all }).unwrap();
    let found: Vec<PrincipalId> =
        rows.iter().filter_map(|it| it.row.record.as_ref().and_then(Principal::peel)).map(|it| it.id).collect();
    let reached = if rows.len() < size { None } else { found.last().copied() };
    SpreadNews { job: job.id, claim: job.claims, behind, found, reached, mails: true }
}

/// Does what the worker does with news, in pages of `size`.
fn spread_by(world: &mut World, size: usize) {
    for job in news(world) {
        let mut next = claim(world, job.id);
        while let Some(claimed) = next.take() {
            let asked = page(world, &claimed.job, size);
            next = world.run(asked).unwrap();
        }
    }
}

pub(super) fn spread(world: &mut World) {
    spread_by(world, 2);
}

/// Who has a message of this approval, over what, however it stands.
fn told(world: &mut World, approval: ApprovalId) -> Vec<Option<PrincipalId>> {
    let found = jobs(world).into_iter().filter_map(|it| match &it.work {
        Work::Message { news: News::Asked { approval: of }, to, .. } if *of == approval => Some(*to),
        _ => None,
    });
    let mut found: Vec<_> = found.collect();
    found.sort();
    found
}

pub(super) fn somebody(people: &[&Person]) -> Vec<Option<PrincipalId>> {
    let mut people: Vec<_> = people.iter().map(|it| Some(it.principal)).collect();
    people.sort();
    people
}

fn approval(world: &mut World, action: ActionId) -> ApprovalId {
    world.row::<Action>(action).approval.unwrap()
}

fn ask(world: &mut World, agent: &Caller, request: svc_core::state::gate::Request) -> ApprovalId {
    let action = world.authorize(agent, request).id();
    approval(world, action)
}

fn message_to(world: &mut World, approval: ApprovalId, to: PrincipalId) -> DeliveryId {
    let of = |it: &Arc<Job>| match &it.work {
        Work::Message { news: News::Asked { approval: of }, to: whom, .. } => *of == approval && *whom == Some(to),
        _ => false,
    };
    jobs(world).into_iter().find(of).unwrap().id
}

fn asked(claimed: &Claimed) -> &Asked {
    match &claimed.message.as_ref().unwrap().about {
        About::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

/// Where a workspace tells nobody, what begins to wait writes nothing for it.
#[test]
fn where_nobody_is_told_nothing_is_written() {
    let (mut world, agent) = calm(&[]);
    ask(&mut world, &agent, payment(5_000, "EUR", "a.example"));
    make(&mut world, IntegrationKind::Callbacks, ConfigChange::default());
    ask(&mut world, &agent, payment(5_000, "EUR", "a.example"));
    let rows = world.rows();
    assert!(!rows.iter().any(|(.., it)| matches!(it, Record::Job(_) | Record::Topic(_))));
    world.audit();
}

/// The workspace's own list of what people are told over is right after each commit that makes, changes or removes an
/// integration; a room without an address tells nobody.
#[test]
fn the_workspace_knows_what_people_are_told_over() {
    let (mut world, _) = calm(&[]);
    let workspace = world.workspace();
    let mail = make(&mut world, IntegrationKind::Mail, ConfigChange::default());
    assert_eq!(over(&mut world), [IntegrationKind::Mail]);
    let chat = make(&mut world, IntegrationKind::Chat, ConfigChange::default());
    assert_eq!(over(&mut world), [IntegrationKind::Mail], "it has no address");
    let change = |id, enabled, config| ChangeIntegration { by: By::Program, workspace, id, enabled, config };
    world.run(change(chat.id, None, room("https://chat.example.com/room"))).unwrap();
    assert_eq!(over(&mut world), [IntegrationKind::Chat, IntegrationKind::Mail]);
    world.run(change(mail.id, Some(false), ConfigChange::default())).unwrap();
    assert_eq!(over(&mut world), [IntegrationKind::Chat]);
    world.run(change(mail.id, Some(true), ConfigChange::default())).unwrap();
    world.run(change(chat.id, None, ConfigChange { url: Some(None), ..ConfigChange::default() })).unwrap();
    assert_eq!(over(&mut world), [IntegrationKind::Mail]);
    world.run(RemoveIntegration { by: By::Program, workspace, id: mail.id }).unwrap();
    assert_eq!(over(&mut world), []);
    make(&mut world, IntegrationKind::Mail, ConfigChange::default());
    assert_eq!(over(&mut world), [IntegrationKind::Mail]);
    world.audit();
}

/// Owners, admins, and of the members whoever the agent acts for or who answers for it, each once; nobody else, and no job stays
/// behind. A member who has not come yet decides nothing.
#[test]
fn those_are_told_who_may_decide() {
    let (mut world, agent) = mailed();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let (own, sponsor, other) = (world.person(Role::Member), world.person(Role::Member), world.person(Role::Member));
    world.person(Role::Auditor);
    world.person(Role::Analyst);
    let invited = world.person(Role::Admin);
    world.edit::<Principal>(invited.principal, |it| {
        let member = it.member.take().unwrap();
        it.member = Some(Member { state: MemberState::Invited, ..member });
    });
    world.edit::<Agent>(agent.agent, |it| (it.principal, it.sponsor) = (own.principal, Some(sponsor.principal)));
    let asked = ask(&mut world, &agent, request("crm.read"));
    assert_eq!(news(&mut world).len(), 1, "one job, in the commit that asks");
    spread(&mut world);
    assert_eq!(told(&mut world, asked), somebody(&[&owner, &admin, &own, &sponsor]));
    assert_eq!(news(&mut world), []);
    assert!(!told(&mut world, asked).contains(&Some(other.principal)));
    world.audit();
}

/// Of those who may decide, an integration that names people mails these; one who may not decide is not mailed by being named.
#[test]
fn an_integration_names_whom_it_mails() {
    let (mut world, agent) = calm(&[]);
    let (owner, admin, auditor) = (world.owner(), world.person(Role::Admin), world.person(Role::Auditor));
    let to = ConfigChange { to: Some(vec![admin.principal, auditor.principal]), ..ConfigChange::default() };
    let mail = make(&mut world, IntegrationKind::Mail, to);
    let first = ask(&mut world, &agent, request("crm.read"));
    spread(&mut world);
    assert_eq!(told(&mut world, first), somebody(&[&admin]));
    let workspace = world.workspace();
    let change = |to| {
        let config = ConfigChange { to: Some(to), ..ConfigChange::default() };
        ChangeIntegration { by: By::Program, workspace, id: mail.id, enabled: None, config }
    };
    let strange = world.run(change(vec![owner.principal, PrincipalId::from_bits(7)])).unwrap_err();
    assert_eq!(strange.errors()[0].field.as_deref(), Some("config.to.1"));
    let message = message_to(&mut world, first, admin.principal);
    world.run(change(vec![owner.principal])).unwrap();
    assert!(claim(&mut world, message).is_none(), "who is named no more is not mailed what is still to be sent");
}

/// What has neither a merchant nor a tool is told by what it shares, with whom, and by its details: one that waits hides no other. Of
/// those that differ in that alone so many are told within the hour, however many an agent makes up; the rest is one message.
#[test]
fn what_is_shared_tells_asks_apart() {
    use svc_core::state::gate::{DataShare, Details, Request, UNLIKE_FOR, UNLIKE_KEPT};
    use svc_core::value::json::Json;
    use svc_core::value::text::Label;

    let (mut world, agent) = mailed();
    let share = |recipient: &str, fields: &[&str]| {
        let fields = fields.iter().map(|it| Label::parse(it).unwrap()).collect();
        request("data.share").sharing(DataShare { recipient: recipient.into(), fields, purpose: None })
    };
    let grant = |role: &str| {
        let details = Json::parse(format!(r#"{{"role":"{role}"}}"#).as_bytes()).unwrap();
        request("access.grant").with_details(Details::of(&details).unwrap())
    };
    let asks = |world: &mut World, asked: Vec<Request>| {
        let asked: Vec<_> = asked.into_iter().map(|it| ask(world, &agent, it)).collect();
        spread(world);
        asked.into_iter().map(|it| told(world, it).len()).collect::<Vec<_>>()
    };
    let first = vec![
        share("caterer.example", &["menu", "guests"]),
        share("caterer.example", &["guests", "menu"]),
        share("evil.example", &["menu", "guests"]),
        share("caterer.example", &["passwords"]),
        grant("prod-root"),
        grant("prod-root"),
        grant("billing"),
    ];
    assert_eq!(asks(&mut world, first), [1, 0, 1, 1, 1, 0, 1]);
    let many = (0..2 * UNLIKE_KEPT).map(|it| grant(&format!("role-{it}"))).collect();
    let sent = asks(&mut world, many);
    assert_eq!(sent.iter().sum::<usize>(), UNLIKE_KEPT - 5 + 1, "one more for all the others together");
    world.advance(UNLIKE_FOR);
    assert_eq!(asks(&mut world, vec![grant("late"), grant("role-0")]), [1, 0]);
    world.audit();
}

/// What asks the same while one waits stands under it, and is no message of its own; once the first is decided the next is told.
/// Another merchant, tool, type or agent is told by itself.
#[test]
fn the_same_ask_again_is_one_message() {
    let (mut world, agent) = mailed();
    let owner = world.owner();
    let first = world.authorize(&agent, payment(5_000, "EUR", "a.example")).id();
    let second = world.authorize(&agent, payment(7_000, "EUR", "a.example")).id();
    let third = world.authorize(&agent, payment(7_100, "EUR", "a.example")).id();
    let other = ask(&mut world, &agent, payment(5_000, "EUR", "b.example"));
    let tool = ask(&mut world, &agent, tool_call("write"));
    let same_tool = ask(&mut world, &agent, tool_call("write"));
    let another_tool = ask(&mut world, &agent, tool_call("read"));
    let another_type = ask(&mut world, &agent, request("crm.read"));
    let of = [first, second, third].map(|it| approval(&mut world, it));
    spread(&mut world);
    let sent: Vec<usize> = [of[0], of[1], of[2], other, tool, same_tool, another_tool, another_type]
        .into_iter()
        .map(|it| told(&mut world, it).len())
        .collect();
    assert_eq!(sent, [1, 0, 0, 1, 1, 0, 1, 1]);
    let message = message_to(&mut world, of[0], owner.principal);
    let claimed = claim(&mut world, message).unwrap();
    assert_eq!((&asked(&claimed).under, asked(&claimed).under_count), (&vec![of[1], of[2]], 2), "they stand under it");
    world.deny(&owner, second);
    assert_eq!(news(&mut world), [], "one that stands under another is nobody's first");
    world.approve(&owner, first);
    spread(&mut world);
    assert_eq!(told(&mut world, of[2]), somebody(&[&owner]), "the next is told");
    world.approve(&owner, third);
    let topics = world.rows().into_iter().filter(|(.., it)| matches!(it, Record::Topic(it) if it.approvals == of));
    assert_eq!(topics.count(), 0);
    let again = ask(&mut world, &agent, payment(5_000, "EUR", "a.example"));
    spread(&mut world);
    assert_eq!(told(&mut world, again), somebody(&[&owner]), "nothing waits any more that it could stand under");
    world.audit();
}

/// A stop ends what waits, and nobody is told of what stood under it; what the agent asks after its restart is told anew. Where
/// time ends the first, the next is told.
#[test]
fn a_stop_tells_nobody_of_the_next() {
    let (mut world, agent) = mailed();
    world.owner();
    ask(&mut world, &agent, payment(5_000, "EUR", "a.example"));
    ask(&mut world, &agent, payment(6_000, "EUR", "a.example"));
    world.freeze(agent.agent);
    world.advance(Span::seconds(5));
    assert_eq!(news(&mut world).len(), 1, "the first one's");
    spread(&mut world);
    assert!(!jobs(&mut world).iter().any(|it| matches!(it.work, Work::Message { .. })), "it waits no more");
    assert!(!world.rows().iter().any(|(.., it)| matches!(it, Record::Topic(_))));

    let (mut world, agent) = mailed();
    world.owner();
    ask(&mut world, &agent, payment(5_000, "EUR", "a.example"));
    world.advance(Span::hours(1));
    let second = ask(&mut world, &agent, payment(6_000, "EUR", "a.example"));
    world.advance(Span::hours(23));
    spread(&mut world);
    assert_eq!(told(&mut world, second).len(), 1, "the first one's time is up");
    world.advance(Span::hours(1));
    assert!(!world.rows().iter().any(|(.., it)| matches!(it, Record::Topic(_))), "nothing is left of it");
    world.audit();
}

/// A message is what stands when it is sent: what was decided meanwhile is not sent, nor to somebody who may no longer decide; it
/// ends as replaced without a try, and is not tried again.
#[test]
fn what_is_decided_is_not_sent() {
    let (mut world, agent) = mailed();
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let action = world.authorize(&agent, request("crm.read")).id();
    let of = approval(&mut world, action);
    spread(&mut world);
    let (first, second) = (message_to(&mut world, of, owner.principal), message_to(&mut world, of, admin.principal));
    world.edit::<Principal>(admin.principal, |it| it.member.as_mut().unwrap().role = Role::Auditor);
    assert!(claim(&mut world, second).is_none());
    let claimed = claim(&mut world, first).unwrap();
    let waits = asked(&claimed);
    assert_eq!(
        (waits.question.summary().as_str(), waits.agent.as_ref().unwrap().id),
        ("Do what was asked", agent.agent)
    );
    let tried = Tried { status: Some(451), error: Some(Trouble::Answer), ms: 3 };
    world.run(FinishDelivery { job: first, claim: claimed.job.claims, tried, wait_s: None, posted: None }).unwrap();
    world.deny(&owner, action);
    world.advance(Span::seconds(7));
    assert!(claim(&mut world, first).is_none(), "it was denied meanwhile");
    for id in [first, second] {
        let job: Arc<Job> = world.row(id);
        assert!(matches!(job.state, JobState::Replaced { .. }), "{job:?}");
        let (by, workspace) = (By::Program, world.workspace());
        assert!(world.run(RetryDelivery { by, workspace, id }).is_err());
    }
    assert_eq!(world.row::<Job>(second).attempts, [], "nobody was called");
    world.audit();
}

/// What has come to its end before anybody was told becomes no message at all.
#[test]
fn news_that_is_none_any_more_is_not_spread() {
    let (mut world, agent) = mailed();
    let owner = world.owner();
    let action = world.authorize(&agent, request("crm.read")).id();
    world.deny(&owner, action);
    spread(&mut world);
    assert_eq!(jobs(&mut world), []);
}

/// A page is kept or it is not: a worker that stops in between tells nobody twice and leaves nobody out, and one whose lease has
/// ended tells nobody.
#[test]
fn a_worker_that_stops_tells_nobody_twice() {
    let (mut world, agent) = mailed();
    let people: Vec<Person> = (0..6).map(|_| world.person(Role::Admin)).collect();
    let owner = world.owner();
    let of = ask(&mut world, &agent, request("crm.read"));
    let job = news(&mut world)[0].id;
    let claimed = claim(&mut world, job).unwrap();
    let first = page(&mut world, &claimed.job, 3);
    world.run(first.clone()).unwrap().expect("there are more");
    let some = told(&mut world, of).len();
    assert!((1..7).contains(&some));
    assert!(world.run(first).unwrap().is_none(), "a page is told once");
    assert_eq!(told(&mut world, of).len(), some);
    assert!(claim(&mut world, job).is_none(), "somebody has it");
    world.advance(LEASE);
    let late = page(&mut world, &claimed.job, 3);
    spread_by(&mut world, 3);
    assert!(world.run(late).unwrap().is_none());
    let mut all: Vec<&Person> = people.iter().collect();
    all.push(&owner);
    assert_eq!(told(&mut world, of), somebody(&all));
    assert!(world.engine().scan(&Range::all(Index::Outbox, shard(agent.workspace), 99)).unwrap().len() >= 7);
    world.audit();
}

/// A room gets one message, to the address that it has when it is sent; one that the workspace has left, or that is off, gets
/// none.
#[test]
fn a_room_gets_one_message() {
    let (mut world, agent) = calm(&[]);
    world.person(Role::Admin);
    let chat = make(&mut world, IntegrationKind::Chat, room("https://chat.example.com/old"));
    let of = ask(&mut world, &agent, request("crm.read"));
    spread(&mut world);
    assert_eq!(told(&mut world, of), [None]);
    let message = jobs(&mut world)[0].id;
    let workspace = world.workspace();
    let change = |enabled, config| ChangeIntegration { by: By::Program, workspace, id: chat.id, enabled, config };
    world.run(change(None, room("https://chat.example.com/new"))).unwrap();
    let claimed = claim(&mut world, message).unwrap();
    assert_eq!(claimed.job.url.as_ref().map(UrlText::as_str), Some("https://chat.example.com/new"));
    assert_eq!((claimed.secrets.len(), &claimed.message.as_ref().unwrap().to), (1, &None));
    world.advance(LEASE);
    world.run(change(Some(false), ConfigChange::default())).unwrap();
    assert!(claim(&mut world, message).is_none());
    assert!(matches!(world.row::<Job>(message).state, JobState::Replaced { .. }));
}

/// Every kind of question is told to those who may decide that kind: a freeze to owners and admins, a change among owners to the
/// other owners.
#[test]
fn each_kind_is_told_to_its_own_people() {
    let (mut world, agent) = mailed();
    let (owner, second, admin) = (world.owner(), world.person(Role::Owner), world.person(Role::Admin));
    world.person(Role::Auditor);
    let workspace = world.workspace();
    let (by, principal, role) = (By::Person(owner), admin.principal, Some(Role::Owner));
    let change = ChangeMember { workspace, by, principal, role, teams: None };
    let MemberDone::Asked(made) = world.run(change).unwrap() else { panic!("a second owner is asked") };
    spread(&mut world);
    assert_eq!(told(&mut world, made.id), somebody(&[&second]));
    let mut settings = world.row::<Workspace>(workspace).settings.clone();
    settings.freeze_ceiling_per_hour = 1;
    world.change_settings(settings);
    let by = token(&mut world, 7);
    let others = [world.agent().register(), world.agent().register()];
    let freeze = |world: &mut World, agent: &Caller| {
        world.run(FreezeAgent { workspace, agent: agent.agent, by: by.clone(), reason: note("odd") }).unwrap()
    };
    assert!(matches!(freeze(&mut world, &agent), Stopped::Agent(_)));
    let Stopped::Asked(asked) = freeze(&mut world, &others[0]) else { panic!("past the ceiling") };
    spread(&mut world);
    assert_eq!(told(&mut world, asked.id), somebody(&[&owner, &second, &admin]));
    assert_eq!(world.row::<Approval>(asked.id).kind(), ApprovalKind::Freeze);
    freeze(&mut world, &others[0]);
    assert_eq!(news(&mut world), [], "asked once, told once");
}

/// Of two persons the first is not told again that another is needed, and whoever counts as the first is not told at all.
#[test]
fn who_has_agreed_is_not_told() {
    let mut settings = super::fast();
    settings.second_person_above.insert("EUR".parse().unwrap(), 100);
    let (mut world, agent) = super::with(settings, &[]);
    make(&mut world, IntegrationKind::Mail, ConfigChange::default());
    let (owner, admin) = (world.owner(), world.person(Role::Admin));
    let action = world.authorize(&agent, payment(5_000, "EUR", "a.example")).id();
    let of = approval(&mut world, action);
    world.approve(&owner, action);
    spread(&mut world);
    assert_eq!(told(&mut world, of), somebody(&[&admin]));
}

/// Mail is tried out by the person who asks, and a room at its own address; neither takes another.
#[test]
fn a_test_goes_where_messages_go() {
    let (mut world, _) = mailed();
    let owner = world.owner();
    let (workspace, mail) = (world.workspace(), IntegrationKind::Mail);
    let id = |world: &mut World, kind| {
        let slot = svc_core::state::edge::IntegrationSlot { workspace: world.workspace(), kind };
        world.row::<Integration>(slot).id
    };
    let of_mail = id(&mut world, mail);
    let url = Some(UrlText::parse("https://elsewhere.example.com/").unwrap());
    let test = |by, id, url| TestIntegration { by, workspace, id, url };
    let made = world.run(test(By::Person(owner), of_mail, None)).unwrap().job;
    let claimed = claim(&mut world, made.id).unwrap();
    let message = claimed.message.unwrap();
    assert!(matches!(message.about, About::Test));
    assert_eq!(message.to.unwrap().id, owner.principal);
    assert!(world.run(test(By::Program, of_mail, None)).is_err(), "nobody to mail");
    assert!(world.run(test(By::Person(owner), of_mail, url.clone())).is_err());
    make(&mut world, IntegrationKind::Chat, room("https://chat.example.com/room"));
    let of_chat = id(&mut world, IntegrationKind::Chat);
    assert!(world.run(test(By::Program, of_chat, url)).is_err());
    let made = world.run(test(By::Program, of_chat, None)).unwrap().job;
    assert_eq!((made.host().as_str(), made.over()), ("chat.example.com", Some(IntegrationKind::Chat)));
    assert!(claim(&mut world, made.id).unwrap().message.is_some());
}

fn loosened(world: &mut World) -> usize {
    let of = |it: &&Arc<Job>| matches!(&it.work, Work::Tell { news: News::Loosened { .. }, .. });
    news(world).iter().filter(of).count()
}

/// Each change of a setting that lets something be done which might not be done before is told, and its reverse is not.
#[test]
fn what_loosens_is_told_and_what_tightens_is_not() {
    use svc_core::state::people::{DataLoss, OnMismatch, OnUndeclared, Outside, Settings};

    let mut strict = Settings { outside_mandate: Outside::Deny, data_loss: DataLoss::Block, ..Settings::default() };
    (strict.provenance.mismatch, strict.provenance.undeclared) = (OnMismatch::Deny, OnUndeclared::Deny);
    strict.second_person_above.insert("EUR".parse().unwrap(), 100);
    strict.step_up_above.insert("EUR".parse().unwrap(), 100);
    strict.second_person_age_days = 30;
    (strict.sign_in.require_two_factor, strict.sign_in.require_sso) = (true, true);
    type Change = (&'static str, fn(&mut Settings));
    let changes: [Change; 18] = [
        ("outsideMandate", |it| it.outside_mandate = Outside::Ask),
        ("provenance.mismatch", |it| it.provenance.mismatch = OnMismatch::Ask),
        ("provenance.undeclared", |it| it.provenance.undeclared = OnUndeclared::Record),
        ("provenance.windowMinutes", |it| it.provenance.window_minutes = 5),
        ("freezeCeilingPerHour", |it| it.freeze_ceiling_per_hour += 1),
        ("maxWaiting", |it| it.max_waiting += 1),
        ("velocityCount", |it| it.agent_velocity.other_count += 1),
        ("toolVelocityCount", |it| it.agent_velocity.tool_count += 1),
        ("velocityMinutes", |it| it.agent_velocity.minutes -= 1),
        ("secondPersonAbove", |it| it.second_person_above.clear()),
        ("secondPersonAbove.EUR", |it| *it.second_person_above.get_mut(&"EUR".parse().unwrap()).unwrap() += 1),
        ("secondPersonAbove.JPY", |it| _ = it.second_person_above.insert("JPY".parse().unwrap(), 1)),
        ("secondPersonAgeDays", |it| it.second_person_age_days = 29),
        ("stepUpAbove", |it| it.step_up_above.clear()),
        ("dataLoss", |it| it.data_loss = DataLoss::Redact),
        ("signIn.requireTwoFactor", |it| it.sign_in.require_two_factor = false),
        ("signIn.requireSso", |it| it.sign_in.require_sso = false),
        ("signIn.ssoDomains", |it| it.sign_in.sso_domains.push("example.com".parse().unwrap())),
    ];
    let mut world = World::with(strict.clone());
    for (done, (name, change)) in changes.into_iter().enumerate() {
        let mut loose = strict.clone();
        change(&mut loose);
        world.change_settings(loose);
        assert_eq!(loosened(&mut world), done + 1, "{name}");
        world.change_settings(strict.clone());
        assert_eq!(loosened(&mut world), done + 1, "{name} back");
    }
    let harmless = Settings { approval_hours: 1, receipt_minutes: 1_440, ..strict };
    world.change_settings(harmless);
    assert_eq!(loosened(&mut world), changes.len());
    world.audit();
}

/// In Slack those are asked who are linked and may decide: not whoever is linked and may not, nor whose link is over.
#[test]
fn in_slack_those_are_asked_who_are_linked() {
    let (mut world, agent) = calm(&[]);
    let (owner, admin, gone) = (world.owner(), world.person(Role::Admin), world.person(Role::Admin));
    let member = world.person(Role::Member);
    let link = |name: &str, principal| LinkedMember { name: name.into(), principal, since: world.now() };
    let members = vec![link("UA", admin.principal), link("UG", gone.principal), link("UM", member.principal)];
    let token = SealedSecret { sealed: "x".into(), hint: "y".into(), created_at: world.now(), ends_at: None };
    let config = ConfigChange { members: Some(members), ..ConfigChange::default() };
    let made = make(&mut world, IntegrationKind::Slack, config);
    assert_eq!(over(&mut world), [], "without a token nobody can be asked");
    let config = ConfigChange { bot_token: Some(Some(token)), ..ConfigChange::default() };
    let (workspace, id) = (world.workspace(), made.id);
    world.run(ChangeIntegration { by: By::Program, workspace, id, enabled: None, config }).unwrap();
    assert_eq!(over(&mut world), [IntegrationKind::Slack]);
    let now = world.now();
    world.edit::<Principal>(gone.principal, |it| it.member.as_mut().unwrap().signed_out_at = Some(now));
    world.authorize(&agent, request("deploy"));
    spread_by(&mut world, 2);
    let asked: Vec<Work> = jobs(&mut world).iter().map(|it| it.work.clone()).collect();
    let [Work::Message { over: IntegrationKind::Slack, to: Some(to), .. }] = &*asked else { panic!("{asked:?}") };
    assert_eq!(*to, admin.principal, "not {} who is not linked", owner.principal);
    let job = jobs(&mut world)[0].id;
    let claimed = claim(&mut world, job).unwrap();
    let reach = claimed.message.unwrap().reach.unwrap();
    assert_eq!((&*reach.name, &*reach.token.sealed), ("UA", "x"));
    let tried = Tried { status: Some(429), error: Some(Trouble::Answer), ms: 1 };
    let told = FinishDelivery { job, claim: claimed.job.claims, tried, wait_s: Some(100_000), posted: None };
    world.run(told).unwrap();
    let due = jobs(&mut world)[0].due();
    assert_eq!(due, Some(world.now().plus(Span::hours(1))), "Slack's wait is kept to, within bounds");
    world.audit();
}
