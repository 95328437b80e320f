//! Names that look alike, and addresses of which the host is written in two ways: whom and what they mean.

use std::sync::Arc;

use svc_core::refusal::Kind;
use svc_core::rules::evidence::erase::{Erase, Target};
use svc_core::rules::people::accounts::{find_account, principal_with};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{Content, GrantMandate};
use svc_core::rules::people::members::{MemberDone, RemoveMember};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::templates::{KeepTemplate, RemoveTemplate, own_template};
use svc_core::rules::people::tokens::CreateToken;
use svc_core::state::gate::{Code, Verb, WorkspaceTemplate};
use svc_core::state::people::{EmailUse, Principal, Role, Selector, ServiceToken, TokenName, TokenScope};
use svc_core::store::{Record, Row as _};
use svc_core::testing::World;
use svc_core::testing::people::{self, invitation};
use svc_core::testing::world::{terms, tool_call};
use svc_core::value::Id as _;
use svc_core::value::digest::{Digest, EmailUseId, TemplateId, TokenNameId};
use svc_core::value::id::{AccountId, WorkspaceId};
use svc_core::value::text::{Email, Label};

use super::fleet::look;
use super::{ask, calm};

/// One name whose accent is a part of its letter, and a sign of its own.
const ONE: &str = "K\u{f6}ln";
const TWO: &str = "Ko\u{308}ln";
const CRM: &str = r#"{"name":"Crm","actions":["crm.*"]}"#;

fn label(text: &str) -> Label {
    Label::parse(text).unwrap()
}

/// Agents whose name begins so are stopped, in whichever way the accents of name and beginning are written; a letter without is another.
#[test]
fn a_beginning_means_a_name_in_either_writing() {
    let (mut world, _) = calm(&[]);
    let workspace = world.workspace();
    for (number, name) in [ONE, TWO, "Koblenz"].into_iter().enumerate() {
        world.run(RegisterAgent::new(workspace, label(name), NewKey::of(&format!("ask_{number}")))).unwrap();
    }
    let mut count = |prefix: &str| {
        let selector = Selector { name_prefix: Some(prefix.into()), ..Selector::default() };
        look(&mut world, &selector).count()
    };
    for (prefix, agents) in [(ONE, 2), (TWO, 2), ("K\u{f6}", 2), ("Ko\u{308}l", 2), ("Ko", 1), ("K", 3), ("Kob", 1)] {
        assert_eq!(count(prefix), agents, "{prefix:?}");
    }
}

/// A tool that is never allowed is not called by another writing of its name.
#[test]
fn a_deny_list_denies_either_writing() {
    let calls = r#"{"name":"Calls","actions":["tool.call"]}"#;
    for glob in ["caf\u{e9}*", "cafe\u{301}*"] {
        let denies = format!(r#"{{"name":"No","actions":["crm.read"],"tools":{{"deny":["{glob}"]}}}}"#);
        let (mut world, agent) = calm(&[&denies, calls]);
        for tool in ["caf\u{e9}_open", "cafe\u{301}_open"] {
            assert_eq!(ask(&mut world, &agent, tool_call(tool)), (Verb::Deny, vec![Code::ToolDenied]), "{glob} {tool}");
        }
        assert_eq!(ask(&mut world, &agent, tool_call("cafe_open")).0, Verb::Allow, "{glob}");
    }
}

fn keep(world: &World, name: &str, is_there: bool) -> KeepTemplate {
    let terms = terms(CRM);
    KeepTemplate { workspace: world.workspace(), by: By::Program, name: label(name), terms, is_there }
}

/// No two templates look alike, nor does one look like the catalogue's; each is found by either writing, also one whose row is of
/// before, and keeps the name that it was given.
#[test]
fn templates_that_look_alike_are_one() {
    let (mut world, agent) = calm(&[]);
    let workspace = world.workspace();
    world.run(keep(&world, TWO, false)).unwrap();
    for other in [ONE, TWO, "K\u{200b}\u{f6}ln", "Ko\u{200b}\u{308}ln", "ad\u{2060}-spend"] {
        let refused = world.run(keep(&world, other, false)).unwrap_err();
        assert_eq!((refused.kind(), refused.errors().len()), (Kind::InvalidRequest, 1), "{other:?}");
    }
    let mut grant = GrantMandate::new(workspace, agent.agent, Content::Template(ONE.into()));
    grant.confirm_broaden = true;
    world.run(grant).unwrap();
    let changed = KeepTemplate { terms: terms(r#"{"name":"Crm","actions":["crm.read"]}"#), ..keep(&world, ONE, true) };
    assert_eq!(world.run(changed).unwrap().name, label(TWO));
    // Whichever writing was asked by, what is told of it has its name.
    let told = |world: &mut World| {
        let rows = world.rows().into_iter().map(|it| it.2);
        let entries = rows.filter_map(|it| if let Record::Entry(it) = it { Some(it) } else { None });
        let data: Vec<String> =
            entries.filter(|it| &*it.kind == "settings.changed").map(|it| it.data.to_string()).collect();
        assert!(!data.is_empty() && data.iter().all(|it| it.contains(TWO) && !it.contains(ONE)), "{data:?}");
    };
    told(&mut world);
    for writing in [ONE, TWO, "K\u{200b}\u{f6}ln"] {
        let by_template = Selector { template: Some(writing.into()), ..Selector::default() };
        assert_eq!(look(&mut world, &by_template).count(), 1, "{writing:?}");
    }

    // A row of before stands by its name as it was written.
    let old = TemplateId::of(&[&workspace.bits().to_be_bytes(), TWO.as_bytes()]);
    let row = world.run(keep(&world, TWO, true)).unwrap();
    world.run(RemoveTemplate { workspace, by: By::Program, name: label(ONE) }).unwrap();
    told(&mut world);
    let row = WorkspaceTemplate { id: old, ..WorkspaceTemplate::clone(&row) };
    people::write(world.engine().store(), vec![WorkspaceTemplate::wrap(row.into())]);
    assert_eq!(world.run(keep(&world, TWO, false)).unwrap_err().kind(), Kind::InvalidRequest);
    world.run(RemoveTemplate { workspace, by: By::Program, name: label(TWO) }).unwrap();
    let name = label(TWO);
    assert!(world.engine().read(|scope| own_template(scope, workspace, &name)).unwrap().is_none());
}

fn create(workspace: WorkspaceId, name: &str, number: u32) -> CreateToken {
    CreateToken {
        workspace,
        by: By::Program,
        name: label(name),
        scopes: vec![TokenScope::AgentsRead],
        days: 1,
        ip_allow: Vec::new(),
        digest: Digest::of(format!("ims_{number}")),
    }
}

/// No two service tokens in force look alike, also where the row of one name is of before.
#[test]
fn tokens_that_look_alike_are_one() {
    for is_old in [false, true] {
        let mut world = World::new();
        let workspace = world.workspace();
        let token = world.run(create(workspace, TWO, 1)).unwrap();
        if is_old {
            let old = TokenNameId::of(&[&workspace.bits().to_be_bytes(), TWO.as_bytes()]);
            let nobody = ServiceToken::id_of(&Digest::of("none"));
            world.overwrite(TokenName { id: TokenName::id_of(workspace, &label(TWO)), token: nobody });
            world.overwrite(TokenName { id: old, token: token.id });
        }
        let others: &[&str] = if is_old { &[TWO] } else { &[ONE, TWO, "K\u{200b}\u{f6}ln", "\u{feff}Ko\u{308}ln"] };
        for other in others {
            let refused = world.run(create(workspace, other, 2)).unwrap_err();
            assert_eq!((refused.kind(), refused.errors().len()), (Kind::InvalidRequest, 1), "{other:?}");
        }
        world.run(create(workspace, "Koln", 3)).unwrap();
    }
}

const LETTERS: &str = "zoe@caf\u{e9}.example";
const LABELS: &str = "zoe@xn--caf-dma.example";

fn invited(world: &mut World) -> (Arc<Principal>, AccountId) {
    let MemberDone::Done { principal, .. } = world.run(invitation(world.workspace(), LETTERS, Role::Member)).unwrap()
    else {
        panic!("nobody is asked")
    };
    let account = principal.membership().unwrap().account;
    (principal, account)
}

/// Somebody whose rows are of before: they have an address in lower case as it was sent.
fn invited_before(world: &mut World) -> (Arc<Principal>, AccountId) {
    let (principal, account) = invited(world);
    let (workspace, email) = (world.workspace(), Email::parse(LETTERS).unwrap());
    world.overwrite(EmailUse { id: EmailUse::of_account(&email), account: None, principal: None });
    world.overwrite(EmailUse { id: EmailUse::of_principal(workspace, &email), account: None, principal: None });
    let old = EmailUseId::of(&[b"account", LETTERS.as_bytes()]);
    world.overwrite(EmailUse { id: old, account: Some(account), principal: None });
    let old = EmailUseId::of(&[&workspace.bits().to_be_bytes(), LETTERS.as_bytes()]);
    world.overwrite(EmailUse { id: old, account: None, principal: Some(principal.id) });
    (principal, account)
}

/// Whoever has a row of before is found by either writing of the host.
#[test]
fn an_address_of_before_is_found_in_either_writing() {
    let mut world = World::new();
    let workspace = world.workspace();
    let (principal, account) = invited_before(&mut world);
    for writing in [LETTERS, LABELS, "ZOE@CAF\u{c9}.example."] {
        let email = Email::parse(writing).unwrap();
        let found = world.engine().read(|scope| principal_with(scope, workspace, &email)).unwrap();
        assert_eq!(found, Some(principal.id), "{writing}");
        let found = world.engine().read(|scope| find_account(scope, &email)).unwrap();
        assert_eq!(found.map(|it| it.id), Some(account), "{writing}");
    }
}

/// Whoever is erased leaves their address in no row, whether it is of before or not.
#[test]
fn an_erased_address_is_in_no_row() {
    for invite in [invited, invited_before] {
        let mut world = World::new();
        let workspace = world.workspace();
        let (principal, account) = invite(&mut world);
        world.run(RemoveMember { workspace, by: By::Program, principal: principal.id }).unwrap();
        let uses = |world: &mut World| {
            let rows = world.rows().into_iter().map(|it| it.2);
            let is_theirs = |it: &Record| {
                EmailUse::peel(it).is_some_and(|it| it.principal == Some(principal.id) || it.account == Some(account))
            };
            rows.filter(is_theirs).count()
        };
        assert_eq!(uses(&mut world), 2);
        let erase = Erase::new(workspace, By::Program, Target::Principal(principal.id));
        world.run(erase).unwrap();
        assert_eq!(uses(&mut world), 0);
    }
}
