//! MCP servers behind the gate: who manages them, what is held until a person accepts it, and who reaches them.

use std::collections::BTreeMap;

use svc_core::engine::Failure;
use svc_core::engine::naming::told_apart;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::integrations::NewSecret;
use svc_core::rules::edge::mcp_servers::{
    Edit, EditMcpServers, McpServerView, NewCredential, Set, own_mcp_server, read_mcp_servers,
};
use svc_core::rules::edge::mcp_tools::{AcceptTools, NoteTools, Over};
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::applications::{CreateApplication, WithdrawApplication};
use svc_core::rules::people::by::By;
use svc_core::rules::people::templates::{KeepTemplate, RemoveTemplate};
use svc_core::state::edge::{
    MCP_SERVERS_MAX, McpCredential, McpSecret, McpServers, McpState, McpTools, TOOL_GLOBS_MAX, ToolFilter,
};
use svc_core::state::gate::{self, Agent, TermsChange, Tier, ToolsChange};
use svc_core::state::gateway::{Routing, ToolRule};
use svc_core::state::people::{AgentWish, Change, MandateChangeWish, MandateWish, Role, Wish};
use svc_core::store::{Record, Row};
use svc_core::testing::world::{World, terms};
use svc_core::turn::Scope;
use svc_core::value::Timestamp;
use svc_core::value::digest::Digest;
use svc_core::value::id::McpServerId;
use svc_core::value::text::{Email, Label, Note, ServerName, Source, UrlText};

use super::{PAY, calm};

const HTTPS: &str = "https://crm.example.com/mcp";

fn named(name: &str) -> Vec<Set> {
    vec![Set::Name(ServerName::parse(name).unwrap()), Set::Url(UrlText::parse(HTTPS).unwrap())]
}

fn edit(world: &mut World, by: By, edit: Edit) -> Result<McpServerView, Refusal> {
    let workspace = world.workspace();
    world.run(EditMcpServers { by, workspace, edit, looked: None })
}

/// Gives a server another name, by a look through the mandates.
fn rename(world: &mut World, id: McpServerId, (old, new): (&str, &str)) -> Result<McpServerView, Refusal> {
    let (workspace, now) = (world.workspace(), world.now());
    let looked = Some(told_apart(world.engine().store(), workspace, (old, new), now).unwrap());
    let edit = Edit::Change(id, vec![Set::Name(ServerName::parse(new).unwrap())]);
    world.run(EditMcpServers { by: By::Program, workspace, edit, looked })
}

/// A server has another name where no mandate and no rule of the tool table tells the two apart, by a look that holds still: a denial
/// of its tools would be one no more, and tools that nobody meant would be allowed.
#[test]
fn a_name_that_something_goes_by_stays() {
    let denies = r#"{"name":"Tools","actions":["tool.call"],"tools":{"deny":["crm/drop*"]}}"#;
    let allows = r#"{"name":"Tools","actions":["mcp.call"],"tools":{"allow":["erp/*"]}}"#;
    let (mut world, agent) = calm(&[denies, allows]);
    let (id, workspace) = (made(&mut world), world.workspace());
    let mandates: Vec<_> = world.row::<Agent>(agent.agent).mandates.iter().map(|it| it.id).collect();
    let told = |refused: Refusal| (refused.kind(), refused.reason().unwrap_or_default().to_owned());
    for (new, of) in [("other", mandates[0]), ("erp", mandates[0])] {
        let (kind, why) = told(rename(&mut world, id, ("crm", new)).unwrap_err());
        assert!(kind == Kind::NotAllowed && why.contains(&of.to_string()), "{new}: {why}");
    }
    world.edit::<Agent>(agent.agent, |it| it.mandates.retain(|it| it.id == mandates[1]));
    let (kind, why) = told(rename(&mut world, id, ("crm", "erp")).unwrap_err());
    assert!(kind == Kind::NotAllowed && why.contains(&mandates[1].to_string()), "{why}");
    note(&mut world, id, Some(&[("read", "{}")]), Some(By::Program)).unwrap();
    let rule = ToolRule { tool: "mcp__other__*".into(), source: Source::parse("web").unwrap(), sink: true };
    world.edit::<Routing>(workspace, |it| it.tools = Some(vec![rule]));
    let (kind, why) = told(rename(&mut world, id, ("crm", "other")).unwrap_err());
    assert!(kind == Kind::NotAllowed && why.contains("tool table"), "{why}");
    world.edit::<Routing>(workspace, |it| it.tools = None);
    let name = || Edit::Change(id, vec![Set::Name(ServerName::parse("other").unwrap())]);
    let unlooked = edit(&mut world, By::Program, name()).unwrap_err();
    let looked = Some(told_apart(world.engine().store(), workspace, ("crm", "other"), Timestamp::default()).unwrap());
    world.agent().register();
    let late = world.run(EditMcpServers { by: By::Program, workspace, edit: name(), looked }).unwrap_err();
    assert_eq!([unlooked.kind(), late.kind()], [Kind::NotReady; 2]);
    assert_eq!(rename(&mut world, id, ("crm", "other")).unwrap().server.name.as_str(), "other");
}

/// A template, and an application that waits, keep a server's name as a mandate does: what they say becomes one.
#[test]
fn what_may_become_a_mandate_keeps_a_name() {
    let denies = || terms(r#"{"name":"Tools","actions":["tool.call"],"tools":{"deny":["crm/delete_*"]}}"#);
    let (mut world, agent) = calm(&[PAY]);
    let (id, workspace) = (made(&mut world), world.workspace());
    let told = |refused: Refusal| (refused.kind(), refused.reason().unwrap_or_default().to_owned());
    let name = Label::parse("Careful").unwrap();
    let by = By::Program;
    let keep = KeepTemplate { workspace, by: by.clone(), name: name.clone(), terms: denies(), is_there: false };
    world.run(keep).unwrap();
    let (kind, why) = told(rename(&mut world, id, ("crm", "crm2")).unwrap_err());
    assert!(kind == Kind::NotAllowed && why.contains("template `Careful`"), "{why}");
    world.run(RemoveTemplate { workspace, by, name }).unwrap();
    let member = world.person(Role::Member);
    let entrusted = ChangeAgent {
        workspace,
        by: By::Program,
        agent: agent.agent,
        name: None,
        tier: None,
        sponsor: Some(Some(member.principal)),
        kill_owner: None,
    };
    world.run(entrusted).unwrap();
    let whole = || Wish::Whole(Box::new(denies()));
    let wished = AgentWish {
        name: Label::parse("New").unwrap(),
        email: Email::parse("new@example.com").unwrap(),
        tier: Tier::Standard,
        sponsor: None,
        kill_owner: None,
        mandates: vec![whole()],
    };
    let mandate = world.row::<Agent>(agent.agent).mandates[0].id;
    let deny = gate::Set::To(denies().tools.unwrap().deny.unwrap());
    let tools = gate::Set::To(ToolsChange { deny, ..ToolsChange::default() });
    let change = TermsChange { tools, ..TermsChange::default() };
    for change in [
        Change::Agent(Box::new(wished)),
        Change::Mandate(MandateWish { agent: agent.agent, wish: whole(), confirm_broaden: false }),
        Change::ChangedMandate(Box::new(MandateChangeWish {
            agent: agent.agent,
            mandate,
            change,
            paused: None,
            confirm_broaden: false,
        })),
    ] {
        let reason = Note::parse("we need it").unwrap();
        let asked = world.run(CreateApplication { by: member, change, reason }).unwrap().id;
        let (kind, why) = told(rename(&mut world, id, ("crm", "crm2")).unwrap_err());
        assert!(kind == Kind::NotAllowed && why.contains(&asked.to_string()), "{why}");
        world.run(WithdrawApplication { by: member, application: asked }).unwrap();
    }
    assert_eq!(rename(&mut world, id, ("crm", "crm2")).unwrap().server.name.as_str(), "crm2");
}

fn made(world: &mut World) -> McpServerId {
    edit(world, By::Program, Edit::Create(named("crm"))).unwrap().server.id
}

fn note(
    world: &mut World,
    server: McpServerId,
    found: Option<&[(&str, &str)]>,
    accepted_by: Option<By>,
) -> Result<McpServerView, Refusal> {
    let workspace = world.workspace();
    let found: Option<BTreeMap<Box<str>, Box<str>>> =
        found.map(|all| all.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect());
    world.run(NoteTools { workspace, server, found, over: Over::Whatever, accepted_by })
}

fn accept(
    world: &mut World,
    by: By,
    server: McpServerId,
    tools: &[&str],
    hash: Digest,
) -> Result<McpServerView, Refusal> {
    let workspace = world.workspace();
    let tools = tools.iter().map(|it| (*it).into()).collect();
    world.run(AcceptTools { by, workspace, server, tools, hash })
}

fn state(view: &McpServerView) -> McpState {
    view.tools.as_ref().unwrap().state(&view.server.tools)
}

fn hash(view: &McpServerView) -> Digest {
    view.tools.as_ref().unwrap().hash()
}

fn recorded(world: &mut World, kind: &str) -> usize {
    world.ledger().lines().filter(|it| it.starts_with(&format!("{kind} "))).count()
}

fn told<E: std::fmt::Debug>(failure: Failure<E>) -> Refusal {
    match failure {
        Failure::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

fn rows<R: Row>(world: &mut World) -> usize {
    world.rows().iter().filter(|(_, _, record): &&(_, _, Record)| R::peel(record).is_some()).count()
}

/// Owners and admins manage servers and see them; whoever else is in the workspace does neither, and nothing is left of it.
#[test]
fn who_may_not_manage_servers_does_not() {
    let mut world = World::new();
    let id = made(&mut world);
    let view = note(&mut world, id, Some(&[("a", "1")]), None).unwrap();
    let workspace = world.workspace();
    for role in Role::ALL {
        let by = By::Person(world.person(role));
        let may = matches!(role, Role::Owner | Role::Admin);
        let before = world.dump();
        let tried = [
            edit(&mut world, by.clone(), Edit::Change(id, vec![Set::Enabled(true)])).err(),
            world.engine().read(|scope: &mut Scope<'_>| read_mcp_servers(scope, &by, workspace)).err().map(told),
            world.engine().read(|scope: &mut Scope<'_>| own_mcp_server(scope, &by, workspace, id)).err().map(told),
        ];
        for refusal in tried {
            assert_eq!(refusal.map(|it| it.kind()), (!may).then_some(Kind::Forbidden), "{role:?}");
        }
        if !may {
            let refused = [
                edit(&mut world, by.clone(), Edit::Create(named("other"))).err(),
                edit(&mut world, by.clone(), Edit::Remove(id)).err(),
                accept(&mut world, by.clone(), id, &["a"], hash(&view)).err(),
                note(&mut world, id, Some(&[("a", "1")]), Some(by)).err(),
            ];
            assert!(refused.iter().all(|it| it.as_ref().unwrap().kind() == Kind::Forbidden), "{role:?} {refused:?}");
            assert_eq!(world.dump(), before);
        }
    }
}

/// A list that was asked for before something else was noted changes nothing: it may be the older one.
#[test]
fn a_list_that_may_be_older_is_not_noted() {
    let mut world = World::new();
    let id = made(&mut world);
    let first = note(&mut world, id, Some(&[("a", "1")]), Some(By::Program)).unwrap();
    let second = note(&mut world, id, Some(&[("a", "2")]), None).unwrap();
    assert_eq!(state(&second), McpState::Held);
    let before = world.dump();
    let workspace = world.workspace();
    let mut over = |found: &[(&str, &str)], known: Option<Digest>| {
        let found = found.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        let note = NoteTools { workspace, server: id, found: Some(found), over: Over::Known(known), accepted_by: None };
        world.run(note).map(|view| hash(&view))
    };
    for stale in [Some(hash(&first)), None] {
        assert_eq!(over(&[("a", "1")], stale), Ok(hash(&second)));
    }
    assert_ne!(over(&[("a", "3")], Some(hash(&second))), Ok(hash(&second)));
    assert_ne!(world.dump(), before);
}

/// Every fault of a server is named; a workspace has so many, each of a name of its own.
#[test]
fn a_server_has_a_name_of_its_own_and_there_are_so_many() {
    let mut world = World::new();
    let id = made(&mut world);
    let refused = edit(&mut world, By::Program, Edit::Create(Vec::new())).unwrap_err();
    let fields: Vec<_> = refused.errors().iter().filter_map(|it| it.field.as_deref()).collect();
    assert_eq!(fields, ["name", "url"]);
    let globs = vec!["a*".into(); TOOL_GLOBS_MAX + 1];
    let wide = Set::Tools(ToolFilter { allow: globs.clone(), deny: globs });
    let refused = edit(&mut world, By::Program, Edit::Create([named("crm"), vec![wide]].concat())).unwrap_err();
    let fields: Vec<_> = refused.errors().iter().filter_map(|it| it.field.as_deref()).collect();
    assert_eq!(fields, ["name", "tools.allow", "tools.deny"]);
    edit(&mut world, By::Program, Edit::Change(id, named("crm"))).expect("its own name is no other's");
    for number in 1..MCP_SERVERS_MAX {
        edit(&mut world, By::Program, Edit::Create(named(&format!("n{number}")))).unwrap();
    }
    let refused = edit(&mut world, By::Program, Edit::Create(named("more"))).unwrap_err();
    assert_eq!(refused.errors().len(), 1, "{refused:?}");
}

/// Whoever makes a server accepts what it begins with, once: what is told later is held, whoever asks for it.
#[test]
fn what_a_server_begins_with_is_accepted_once() {
    let mut world = World::new();
    let id = made(&mut world);
    let begun = note(&mut world, id, Some(&[("a", "1"), ("b", "2")]), Some(By::Program)).unwrap();
    assert_eq!((state(&begun), recorded(&mut world, "mcp_server.accepted")), (McpState::Ok, 1));
    let more = note(&mut world, id, Some(&[("a", "1"), ("b", "3")]), Some(By::Program)).unwrap();
    assert_eq!((state(&more), recorded(&mut world, "mcp_server.accepted")), (McpState::Held, 1));
    assert_eq!(recorded(&mut world, "mcp_server.held"), 1);
    note(&mut world, id, Some(&[("a", "1"), ("b", "3")]), None).unwrap();
    assert_eq!(recorded(&mut world, "mcp_server.held"), 1, "the same is told once");
    let gone = note(&mut world, id, None, None).unwrap();
    assert_eq!((state(&gone), gone.tools.unwrap().tools.len()), (McpState::Unreachable, 2));
}

/// Of 64 who accept with one hash, one does; whoever has looked at something else, or names what is not held, does not.
#[test]
fn one_hash_accepts_once() {
    let mut world = World::new();
    let id = made(&mut world);
    let old = note(&mut world, id, Some(&[("a", "1"), ("b", "2")]), None).unwrap();
    let done = (0..64).filter(|_| accept(&mut world, By::Program, id, &["a"], hash(&old)).is_ok()).count();
    assert_eq!((done, recorded(&mut world, "mcp_server.accepted")), (1, 1));
    note(&mut world, id, Some(&[("a", "1"), ("b", "3")]), None).unwrap();
    let late = accept(&mut world, By::Program, id, &["b"], hash(&old)).unwrap_err();
    assert_eq!(late.kind(), Kind::NotAllowed);
    let now = note(&mut world, id, Some(&[("a", "1"), ("b", "3")]), None).unwrap();
    let wrong = accept(&mut world, By::Program, id, &["b", "a", "c"], hash(&now)).unwrap_err();
    let fields: Vec<_> = wrong.errors().iter().filter_map(|it| it.field.as_deref()).collect();
    assert_eq!(fields, ["tools.1", "tools.2"]);
    let tools = world.row::<McpTools>(id);
    assert!(tools.tools["b"].is_held() && tools.tools["a"].is_open());
}

/// What goes with a server is everything: its row, what it is shown, what is known of its tools; nothing is noted or accepted
/// for it any more, and a new one of its name is met anew.
#[test]
fn nothing_is_left_of_a_removed_server() {
    let mut world = World::new();
    let secret = || NewSecret { sealed: "sealed".into(), hint: "wxyz".into() };
    let id = made(&mut world);
    let shown = vec![Set::Credential(NewCredential::Header("x-key".into(), secret()))];
    let shown = edit(&mut world, By::Program, Edit::Change(id, shown)).unwrap();
    assert!(matches!(shown.server.credential, McpCredential::Header { .. }));
    let view = note(&mut world, id, Some(&[("a", "1")]), Some(By::Program)).unwrap();
    assert_eq!((rows::<McpSecret>(&mut world), rows::<McpTools>(&mut world)), (1, 1));
    let none = edit(&mut world, By::Program, Edit::Change(id, vec![Set::Credential(NewCredential::None)])).unwrap();
    assert_eq!((none.server.credential, rows::<McpSecret>(&mut world)), (McpCredential::None, 0));
    edit(&mut world, By::Program, Edit::Change(id, vec![Set::Credential(NewCredential::Bearer(secret()))])).unwrap();
    edit(&mut world, By::Program, Edit::Remove(id)).unwrap();
    assert_eq!((rows::<McpSecret>(&mut world), rows::<McpTools>(&mut world)), (0, 0));
    let workspace = world.workspace();
    assert!(world.row::<McpServers>(workspace).servers.is_empty());
    let late = [
        note(&mut world, id, Some(&[("a", "1")]), None).err(),
        accept(&mut world, By::Program, id, &["a"], hash(&view)).err(),
        edit(&mut world, By::Program, Edit::Change(id, named("crm"))).err(),
        edit(&mut world, By::Program, Edit::Remove(id)).err(),
    ];
    assert!(late.iter().all(|it| it.as_ref().unwrap().kind() == Kind::NotFound), "{late:?}");
    assert_eq!((rows::<McpSecret>(&mut world), rows::<McpTools>(&mut world)), (0, 0));
    let anew = made(&mut world);
    assert_ne!(anew, id);
    assert_eq!(state(&note(&mut world, anew, Some(&[("a", "1")]), None).unwrap()), McpState::Held);
}
