//! Rows that cannot be read: each stops itself alone, whatever is due beside it, and what needs it says so.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::sync::Arc;

use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::callback::RegisterCallback;
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::read::get_action;
use svc_core::state::edge::{Job, JobState};
use svc_core::state::gate::{Agent, Status, Sweep};
use svc_core::state::people::{Principal, Role, Settings as WorkspaceSettings};
use svc_core::store::{Key, Range};
use svc_core::testing::world::{World, payment, request, terms};
use svc_core::testing::{FakeClock, people};
use svc_core::value::link::{Index, SHARDS, shard};
use svc_core::value::text::{Email, Label, Note, UrlText};
use svc_core::value::{Id as _, Span};
use svc_store::keys::dalek;
use svc_store::{Backend, Gate, Settings, SqliteStore, StoreError, with_causes};

const OFFICE: &str = r#"{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000}}"#;

fn manual() -> Settings {
    let mut settings = Settings::default();
    settings.timers = false;
    settings
}

fn is_not_ready<T: std::fmt::Debug>(answer: &Result<T, Failure<StoreError>>) -> bool {
    matches!(answer, Err(Failure::Refused(refusal)) if refusal.kind() == Kind::NotReady)
}

/// No timer waits for a row that cannot be read, be it of its own shard and due before it.
#[test]
fn a_row_that_cannot_be_read_stops_itself_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let month = OFFICE.replace("5000}", r#"5000,"perPeriod":{"amount":9000,"period":"month"}}"#);
    let agent = world.agent().with_mandate(terms(&month)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock.clone(), signer, manual()).unwrap();
    let allowed = gate.execute(Authorize::new(agent, payment(100, "EUR", "shop.example"), [7; 16])).unwrap();
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    for shard in 0..SHARDS {
        for (nth, spoilt) in ["1, 999, '{}'", "1, 1, 7", "-1, 1, '{}'", "1, 70000, '{}'"].into_iter().enumerate() {
            let key = [u8::try_from(shard).unwrap(), u8::try_from(nth).unwrap()].repeat(8);
            let row =
                format!("INSERT INTO action (key, stamp, format, body, wake_p, wake_o) VALUES (?1, {spoilt}, ?2, 1)");
            sql.execute(&row, (key, i64::try_from(shard).unwrap())).unwrap();
        }
    }
    clock.advance(Span::hours(30));
    let pass = gate.tick();
    assert!(matches!(pass, Err(Failure::Load(StoreError::Undecodable(_)))), "it is told: {pass:?}");
    let seen = gate.read(|scope| get_action(scope, &agent, allowed.id())).unwrap();
    assert_eq!(seen.status(), Status::Lapsed);
}

/// A ledger's record that cannot be read waits for its place alone: those behind it, of its own and of others, get theirs.
#[test]
fn a_record_that_cannot_be_read_keeps_no_ledger_from_growing() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    world.authorize(&agent, payment(100, "EUR", "shop.example"));
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    for shard in 0..SHARDS {
        let (key, prefix) = ([u8::try_from(shard).unwrap(); 16], i64::try_from(shard).unwrap());
        let row =
            "INSERT INTO entry (key, stamp, format, body, unplaced_p, unplaced_o) VALUES (?1, 1, 999, '{}', ?2, 0)";
        sql.execute(row, (key, prefix)).unwrap();
    }
    let waiting = || -> i64 {
        let of = "SELECT count(*) FROM entry WHERE unplaced_p IS NOT NULL AND format <> 999";
        sql.query_row(of, (), |row| row.get(0)).unwrap()
    };
    assert!(waiting() > 0);
    let gate = Gate::over(store, clock, signer, manual()).unwrap();
    let pass = gate.tick();
    assert!(matches!(pass, Err(Failure::Load(StoreError::Record { .. }))), "it is told: {pass:?}");
    assert_eq!(waiting(), 0);
    assert!(gate.place(agent.workspace).is_ok(), "of what tells not whose it is nobody's ledger waits");
    // Whoever needs all of a ledger in its place is told that it is not, where the record tells whose it is.
    let new = CreateWorkspace {
        name: Label::parse("Other").unwrap(),
        owner: Email::parse("other@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    let mut other = gate.execute(new.clone()).unwrap().id;
    while shard(other) != shard(agent.workspace) {
        other = gate.execute(new.clone()).unwrap().id;
    }
    let tells = format!(r#"{{"w":"{}"}}"#, agent.workspace);
    for (stamp, format, body) in [(1, 999, &*tells), (1, 1, &tells), (-1, 1, &tells), (1, 70_000, &tells)] {
        let row = "UPDATE entry SET stamp = ?2, format = ?3, body = ?4 WHERE unplaced_p = ?1 AND unplaced_o = 0";
        let shard = i64::try_from(shard(agent.workspace)).unwrap();
        assert_eq!(sql.execute(row, (shard, stamp, format, body)).unwrap(), 1);
        assert!(gate.place(agent.workspace).is_err(), "{stamp} {format}");
        assert!(gate.place(other).is_ok(), "{stamp} {format}");
    }
}

/// A signing key that cannot be read keeps the gate from taking in the keys as they stand, and nothing that is due from being done.
#[test]
fn a_key_that_cannot_be_read_stops_no_timer() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::open_with(directory.path(), "https://gate.example.com", None, &dalek, manual()).unwrap();
    let workspace = gate
        .execute(CreateWorkspace {
            name: Label::parse("Home").unwrap(),
            owner: Email::parse("owner@example.com").unwrap(),
            settings: WorkspaceSettings::default(),
        })
        .unwrap();
    let agent =
        gate.execute(RegisterAgent::new(workspace.id, Label::parse("A").unwrap(), NewKey::of("ask_one"))).unwrap();
    let reason = Note::parse("odd").unwrap();
    gate.execute(FreezeAgent { workspace: workspace.id, agent: agent.agent.id, by: By::Program, reason }).unwrap();
    let follows = || gate.read(|scope| scope.get::<Agent>(agent.agent.id)).unwrap().unwrap().following.is_some();
    assert!(follows());
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    assert!(sql.execute("UPDATE signing_key SET format = 999", ()).unwrap() > 0);
    let pass = gate.tick();
    assert!(matches!(pass, Err(Failure::Load(StoreError::Undecodable(_)))), "it is told: {pass:?}");
    assert!(!follows());
}

/// What a clock that was ahead has put off is brought forward at the start for all whose rows can be read, whoever comes before them in
/// a list.
#[test]
fn a_row_that_cannot_be_read_stops_no_other_that_was_put_off() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(r#"{"name":"Read","actions":["crm.read"]}"#)).register();
    let other = CreateWorkspace {
        name: Label::parse("Other").unwrap(),
        owner: Email::parse("other@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    let other = world.run(other).unwrap().id;
    let mut told = |url: &str| {
        let action = world.authorize(&agent, request("crm.read")).id();
        let url = UrlText::parse(url).unwrap();
        world.run(RegisterCallback { caller: agent, action, url }).unwrap().job.unwrap().id
    };
    let [waits, lost] = ["https://a.example", "https://b.example"].map(&mut told);
    let (right, ahead) = (world.now(), world.now().plus(Span::hours(24 * 3_653)));
    for workspace in [agent.workspace, other] {
        world.edit::<Sweep>(workspace, |it| it.due = ahead);
    }
    world.edit::<Job>(waits, |it| it.state = JobState::Waiting { due: ahead });
    world.edit::<Job>(lost, |it| it.state = JobState::Waiting { due: ahead.plus(Span::hours(1)) });
    let (clock, signer) = (FakeClock::new(right), Arc::clone(world.engine().signer()));
    drop(world);
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    let spoil = |table: &str, key: Key| {
        let sql_text = format!("UPDATE {table} SET format = 999 WHERE key = ?1");
        assert_eq!(sql.execute(&sql_text, [key.encode().as_ref()]).unwrap(), 1, "{key:?}");
    };
    let [first, second] = if agent.workspace < other { [agent.workspace, other] } else { [other, agent.workspace] };
    spoil("sweep", Key::Sweep(first));
    spoil("job", Key::Job(lost));
    let gate = Gate::over(store, clock, signer, manual()).unwrap();
    gate.tick().unwrap();
    let due = gate.read(|scope| scope.get::<Sweep>(second)).unwrap().unwrap().due;
    assert_eq!(due, right.plus(Span::hours(24)), "it was swept, and is on its next day");
    assert_eq!(gate.read(|scope| scope.get::<Job>(waits)).unwrap().unwrap().due(), Some(right));
}

/// Where a row that cannot be read is behind a due one, that one stays due, and whatever else is due in its shard is done.
#[test]
fn a_row_that_cannot_be_read_stops_what_follows_it_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let month = OFFICE.replace("5000}", r#"5000,"perPeriod":{"amount":9000,"period":"month"}}"#);
    let agent = world.agent().with_mandate(terms(&month)).register();
    let now = world.now();
    let leaver = people::sign_in(world.engine().store(), agent.workspace, Role::Member, 2, now);
    world.edit::<Principal>(leaver.principal, |it| it.following = Some(now));
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock.clone(), signer, manual()).unwrap();
    let allowed = gate.execute(Authorize::new(agent, payment(100, "EUR", "shop.example"), [7; 16])).unwrap();
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    // Among the workspace's keys is looked for those of who left.
    assert_eq!(sql.execute("UPDATE credential SET format = 999", ()).unwrap(), 1);
    clock.advance(Span::hours(30));
    gate.tick().unwrap();
    let seen = gate.read(|scope| get_action(scope, &agent, allowed.id())).unwrap();
    assert_eq!(seen.status(), Status::Lapsed);
    let following = || gate.read(|scope| scope.get::<Principal>(leaver.principal)).unwrap().unwrap().following;
    assert_eq!(following(), Some(now), "it is tried again");
    sql.execute("UPDATE credential SET format = 1", ()).unwrap();
    clock.advance(Span::minutes(1));
    gate.tick().unwrap();
    assert_eq!(following(), None);
}

/// What a stop ends cannot all be read: its agent is not ready to be started, and nothing has failed. Once it can be, the agent
/// starts.
#[test]
fn an_agent_of_whom_a_row_cannot_be_read_is_not_ready() {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(directory.path()).unwrap();
    let mut world = World::over(store.writer().unwrap(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(OFFICE)).register();
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock, signer, manual()).unwrap();
    gate.execute(Authorize::new(agent, payment(100, "EUR", "shop.example"), [7; 16])).unwrap();
    let (workspace, id, by, reason) = (agent.workspace, agent.agent, By::Program, Note::parse("odd").unwrap());
    gate.execute(FreezeAgent { workspace, agent: id, by: by.clone(), reason: reason.clone() }).unwrap();
    let restart = RestartAgent { workspace, agent: id, by, reason, admin: None };
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    assert_eq!(sql.execute("UPDATE action SET format = 999", ()).unwrap(), 1);
    let refused = gate.restart(&restart);
    assert!(is_not_ready(&refused), "{refused:?}");
    sql.execute("UPDATE action SET format = 1", ()).unwrap();
    assert!(gate.restart(&restart).unwrap().is_active());
}

/// A record of the ledger that cannot be read cuts a bundle, and is named.
#[test]
fn a_record_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let gate = Gate::open_with(directory.path(), "https://gate.example.com", None, &dalek, manual()).unwrap();
    let new = CreateWorkspace {
        name: Label::parse("Home").unwrap(),
        owner: Email::parse("owner@example.com").unwrap(),
        settings: WorkspaceSettings::default(),
    };
    let workspace = gate.execute(new).unwrap().id;
    gate.tick().unwrap();
    let records = gate.records(&Range::all(Index::LedgerOf, workspace.bits(), 10)).unwrap();
    let sql = rusqlite::Connection::open(directory.path().join("svc.db")).unwrap();
    for (spoilt, why) in [
        ("stamp = 1, format = 999", "a row of `entry` has format 999"),
        ("stamp = -1, format = 1", "as its stamp or its format is no number that it can be"),
        ("stamp = 1, format = 70000", "as its stamp or its format is no number that it can be"),
    ] {
        let text = format!("UPDATE entry SET {spoilt} WHERE key = ?1");
        assert_eq!(sql.execute(&text, [Key::Entry(records[0].id).encode().as_ref()]).unwrap(), 1);
        let told = gate.records(&Range::all(Index::LedgerOf, workspace.bits(), 10)).unwrap_err();
        let Failure::Load(error @ StoreError::Record { record, .. }) = &told else { panic!("{told:?}") };
        let text = with_causes(error);
        assert!(*record == records[0].id && text.contains(why) && !text.contains("commit"), "{text}");
    }
}
