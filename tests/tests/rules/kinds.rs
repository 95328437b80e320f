//! Every change of agents, fleets and people leaves a record of its kind, in the name of whoever made it.

use std::collections::BTreeMap;

use svc_core::rules::gate::lift::{Lift, LiftHold};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::agents::ChangeAgent;
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::rules::people::members::{ChangeMember, InviteMember, MemberDone, RemoveMember};
use svc_core::rules::people::register_agent::RemoveAgent;
use svc_core::rules::people::teams::KeepTeam;
use svc_core::rules::people::tokens::{CreateToken, RevokeToken};
use svc_core::state::evidence::Entry;
use svc_core::state::gate::Tier;
use svc_core::state::people::{KeyScope, Role, Selector, Settings, TokenScope};
use svc_core::store::Row as _;
use svc_core::testing::world::World;
use svc_core::value::Span;
use svc_core::value::digest::Digest;
use svc_core::value::text::{Email, Label, Note};

use super::fleet::halted;

fn note(text: &str) -> Note {
    Note::parse(text).unwrap()
}

/// The kinds of the ledger's records since `from`, each with the actor of its last one.
fn kinds(world: &mut World, from: usize) -> BTreeMap<String, String> {
    let ledger = world.ledger();
    let new = ledger.lines().skip(from);
    let pair = |line: &str| line.split_once(' ').map(|(kind, rest)| (kind.to_owned(), rest.to_owned()));
    new.filter_map(pair).collect()
}

/// How many records there are; those that follow are of a later instant, and so stand behind them.
fn now_on(world: &mut World) -> usize {
    world.advance(Span::seconds(1));
    world.ledger().lines().count()
}

fn assert_kinds(world: &mut World, from: usize, expected: &[&str], by: &Person) {
    let found = kinds(world, from);
    assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{found:?}");
    for (kind, rest) in &found {
        assert!(rest.contains(&by.principal.to_string()), "{kind}: {rest}");
    }
}

/// An agent is made, renamed, trusted more, stopped, started and removed.
#[test]
fn what_happens_to_an_agent_is_recorded() {
    let mut world = World::new();
    let (owner, workspace) = (world.owner(), world.workspace());
    let by = By::Person(owner);
    let agent = world.agent().register().agent;
    assert!(kinds(&mut world, 0).contains_key("agent.created"));
    let from = now_on(&mut world);
    let change = |name: Option<&str>, tier| ChangeAgent {
        workspace,
        by: by.clone(),
        agent,
        name: name.map(|it| Label::parse(it).unwrap()),
        tier,
        sponsor: None,
        kill_owner: None,
    };
    world.run(change(Some("Second"), None)).unwrap();
    world.run(change(None, Some(Tier::Trusted))).unwrap();
    let freeze = svc_core::rules::gate::freeze::FreezeAgent { workspace, agent, by: by.clone(), reason: note("odd") };
    world.run(freeze).unwrap();
    world.advance(Span::seconds(1));
    world.run(RestartAgent { workspace, agent, by: by.clone(), reason: note("mended"), admin: None }).unwrap();
    world.run(RemoveAgent { workspace, by: by.clone(), agent }).unwrap();
    let all = ["agent.changed", "agent.frozen", "agent.removed", "agent.renamed", "agent.restarted"];
    assert_kinds(&mut world, from, &all, &owner);
    let text = world.ledger();
    assert!(!text.contains("Second") && !text.contains("mended"), "names and reasons are commitments: {text}");
}

/// A fleet is frozen under a hold, and the hold lifted.
#[test]
fn what_happens_to_a_fleet_is_recorded() {
    let (mut world, _) = super::fleet::fleet(2);
    let (owner, workspace) = (world.owner(), world.workspace());
    let from = now_on(&mut world);
    let hold = halted(&mut world, &By::Person(owner), &Selector::everyone()).hold.unwrap();
    let lift = LiftHold { workspace, hold, by: By::Person(owner), reason: note("over"), restart: false };
    assert!(matches!(world.run(lift).unwrap(), Lift::Lifted(_)));
    let found = kinds(&mut world, from);
    for kind in ["fleet.frozen", "hold.set", "hold.lifted"] {
        assert!(found.get(kind).is_some_and(|it| it.contains(&owner.principal.to_string())), "{kind}: {found:?}");
    }
}

/// A key's beginning and its end tell whose it is and what it is bound to: whoever hears of one need not look for the other. A
/// removed agent is told of as the one that was made.
#[test]
fn keys_and_agents_are_recorded_whole() {
    let mut world = World::new();
    let (owner, workspace) = (world.owner(), world.workspace());
    let by = || By::Person(owner);
    let (name, agent) = (Some(Label::parse("Accounts").unwrap()), world.agent().register().agent);
    let team = world.run(KeepTeam { workspace, by: by(), team: None, name, owner: None, members: None }).unwrap().id;
    let until = world.now().plus(Span::hours(24));
    let make = CreateKey::new(workspace, by(), KeyScope::Inference, NewKey::of("ask_planted_secret"));
    let label = Some(Label::parse("Laptop").unwrap());
    let key = world.run(CreateKey { team: Some(team), label, expires_at: Some(until), ..make }).unwrap();
    world.run(RevokeKey { workspace, by: by(), credential: key.id }).unwrap();
    world.run(RemoveAgent { workspace, by: by(), agent }).unwrap();
    let rows = world.rows();
    let mut entries = rows.iter().filter_map(|(_, _, it)| Entry::peel(it));
    let told = |kind: &str, subject: String| {
        let entry = entries.clone().find(|it| &*it.kind == kind && *it.subject == *subject).unwrap();
        serde_json::from_str::<serde_json::Value>(&entry.data).unwrap()
    };
    for kind in ["key.created", "key.revoked"] {
        let data = told(kind, key.binding.key.to_string());
        let texts = ["expiresAt", "prefix", "principalId", "scope", "teamId"].map(|it| data[it].as_str().unwrap());
        let (until, whose, team) = (until.to_string(), owner.principal.to_string(), team.to_string());
        assert_eq!(texts, [&until, "ask_planted_", &whose, "inference", &team]);
        assert!(data["label"]["commit"].is_string(), "{data}");
    }
    for kind in ["agent.created", "agent.removed"] {
        let data = told(kind, agent.to_string());
        assert_eq!((&data["tier"], data["principalId"].is_string()), (&"standard".into(), true), "{data}");
        assert!(data["name"]["commit"].is_string(), "{data}");
    }
    assert!(entries.all(|it| !it.data.contains("secret") && !it.data.contains("Laptop")));
}

/// Tokens come and go, members are invited, changed and removed, settings change.
#[test]
fn what_happens_to_people_is_recorded() {
    let mut world = World::new();
    let (owner, workspace) = (world.owner(), world.workspace());
    let rows = world.rows();
    let first = rows.iter().find_map(|(_, _, it)| Entry::peel(it).filter(|it| &*it.kind == "member.created")).unwrap();
    assert_eq!(*first.subject, *owner.principal.to_string());
    let by = By::Person(owner);
    let from = now_on(&mut world);
    let token = CreateToken {
        workspace,
        by: by.clone(),
        name: Label::parse("soar").unwrap(),
        scopes: vec![TokenScope::AgentsRead],
        days: 1,
        ip_allow: Vec::new(),
        digest: Digest::of("ims_1"),
    };
    let token = world.run(token).unwrap().id;
    world.run(RevokeToken { workspace, by: by.clone(), token }).unwrap();
    let invite = InviteMember {
        workspace,
        by: by.clone(),
        email: Email::parse("new@example.com").unwrap(),
        name: None,
        role: Role::Member,
        teams: None,
        token: Digest::of("link"),
        mailed: None,
    };
    let MemberDone::Done { principal, .. } = world.run(invite).unwrap() else { panic!("nobody is asked") };
    let (principal, role) = (principal.id, Some(Role::Auditor));
    world.run(ChangeMember { workspace, by: by.clone(), principal, role, teams: None }).unwrap();
    world.run(RemoveMember { workspace, by: by.clone(), principal }).unwrap();
    let change = svc_core::rules::people::settings::ChangeSettings {
        workspace,
        by,
        change: Settings { retention_days: Some(90), ..Settings::default() }.into(),
    };
    world.run(change).unwrap();
    let all =
        ["member.changed", "member.invited", "member.removed", "settings.changed", "token.created", "token.revoked"];
    assert_kinds(&mut world, from, &all, &owner);
    let text = world.ledger();
    assert!(!text.contains("new@example.com"), "an address is a commitment: {text}");
    assert!(text.contains(r#""new":{"retentionDays":90}"#), "{text}");
}
