//! What a program that embeds the gate has beside asking and settling: keys of its own drawing, verdicts on receipts, and a gate that is
//! there already.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use svc_core::answer::{Decided, Decision};
use svc_core::engine::Failure;
use svc_core::refusal::Kind;
use svc_core::rules::gate::decide::{Choice, DecideApproval};
use svc_core::rules::gate::freeze::FreezeAgent;
use svc_core::rules::gate::verify::{Charge, Fault};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::mandates::{ChangeMandate, Content};
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::sealed::resealed;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::state::edge::{
    Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, JobState, McpSecret, McpServers, News,
    SealedSecret, Work,
};
use svc_core::state::gate::{
    Action, Agent, Code, LimitsChange, OutcomeStatus, PerPeriod, Set, State, Status, TermsChange, Verb,
};
use svc_core::state::gateway::{Routing, UpstreamKey};
use svc_core::state::people::{Account, Purpose, SecondFactor, Selector, Settings as WorkspaceSettings};
use svc_core::store::{Clock as _, MemoryStore, Record, Table};
use svc_core::testing::FakeClock;
use svc_core::testing::people::{sign_in_owner, write};
use svc_core::testing::sample;
use svc_core::testing::world::{World, payment, terms};
use svc_core::value::period::Period;
use svc_core::value::secret::Secret;
use svc_core::value::text::Note;
use svc_core::value::{Amount, Span, Timestamp};
use svc_store::keys::{dalek, fresh_key, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{AgentHandle, AgentKey, Backend as _, FleetRequest, Gate, Settings, SqliteStore, StoreError};

const AT: &str = "https://gate.example.com";
const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":1000000,"period":"month"}}}"#;

/// An agent of a new workspace that may pay, by a key that was drawn for it.
fn shopper(gate: &Gate) -> AgentHandle {
    let (name, owner) = ("Home".parse().unwrap(), "owner@example.com".parse().unwrap());
    let workspace = gate.execute(CreateWorkspace { name, owner, settings: WorkspaceSettings::default() }).unwrap();
    let key = fresh_key().unwrap();
    let new = RegisterAgent::new(workspace.id, "Shopper".parse().unwrap(), NewKey::of(key.expose()));
    gate.execute(RegisterAgent { mandates: vec![Content::Whole(Box::new(terms(OFFICE)))], ..new }).unwrap();
    gate.agent(AgentKey::parse(key.expose()).unwrap()).unwrap()
}

/// A key that is drawn has the form of one and is no other's.
#[test]
fn keys_are_drawn() {
    let (one, other) = (fresh_key().unwrap(), fresh_key().unwrap());
    assert!(AgentKey::parse(one.expose()).is_ok() && one.expose().len() == 47);
    assert_ne!(one.expose(), other.expose());
}

/// Whoever makes the signers by hand is refused an issuer that is none as [`Gate::open`] refuses it, before a key is made; what can
/// be written in two ways stands in receipts in one.
#[test]
fn signers_have_an_issuer_that_is_an_address() {
    let home = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(home.path()).unwrap();
    let signer =
        |issuer| receipt_signer(&mut store.writer().unwrap(), home.path(), None, Timestamp::default(), issuer, &dalek);
    for none in ["", "not a url", "http://gate.example.com"] {
        let refused = signer(none).map(|_| ());
        assert!(matches!(refused, Err(StoreError::BaseAddress { .. })), "{none}: {refused:?}");
    }
    assert!(!home.path().join("master.key").exists());
    assert_eq!(signer("https://Gate.example.com/").unwrap().issuer(), "https://gate.example.com");
}

/// A receipt is judged by its text: one that is none, of another key or altered is no good before anything is looked up; a good one is
/// good once.
#[test]
fn a_receipt_is_verified_by_its_text() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (gate, other) = (Gate::open(here.path(), AT).unwrap(), Gate::open(there.path(), AT).unwrap());
    let receipt = |gate: &Gate| {
        let allowed = shopper(gate).authorize(payment(4_900, "EUR", "shop.example.com")).unwrap();
        allowed.receipt().unwrap().to_owned()
    };
    let (good, strange) = (receipt(&gate), receipt(&other));
    let fault = |text: &str, minor: i64| {
        let charge = Charge {
            amount: Amount::new(minor).unwrap(),
            currency: "EUR".parse().unwrap(),
            domain: Some("shop.example.com".parse().unwrap()),
        };
        gate.verify(text, Some(charge), None).unwrap().fault
    };
    let (head, _) = good.rsplit_once('.').unwrap();
    let (_, foreign) = strange.rsplit_once('.').unwrap();
    assert_eq!(fault("no receipt", 4_900), Some(Fault::Malformed));
    assert_eq!(fault(&strange, 4_900), Some(Fault::UnknownKey));
    assert_eq!(fault(&format!("{head}.{foreign}"), 4_900), Some(Fault::BadSignature));
    assert_eq!(gate.verify(&good, None, None).unwrap().fault, Some(Fault::ChargeRequired));
    assert_eq!(fault(&good, 4_900), None);
    assert_eq!(fault(&good, 4_900), Some(Fault::AlreadyConsumed));
}

/// A gate of the smallest settings decides, one at a time.
#[test]
fn the_smallest_settings_decide() {
    let home = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    (settings.queue_max, settings.batch_max, settings.rows_kept, settings.bundle_max) = (0, 0, 0, 0);
    let gate = Gate::open_with(home.path(), AT, None, &dalek, settings).unwrap();
    let agent = shopper(&gate);
    for amount in 1..4 {
        assert!(agent.authorize(payment(amount, "EUR", "shop.example.com")).unwrap().receipt().is_some());
    }
}

/// A task awaits the verdict: of many that race with one receipt one has a yes.
#[test]
fn a_receipt_is_verified_by_a_task() {
    let home = tempfile::tempdir().unwrap();
    let gate = Gate::open(home.path(), AT).unwrap();
    let allowed = shopper(&gate).authorize(payment(4_900, "EUR", "shop.example.com")).unwrap();
    let receipt: Arc<str> = allowed.receipt().unwrap().into();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let verdicts: Vec<_> = runtime.block_on(async {
        let asked: Vec<_> = (0..8)
            .map(|_| {
                let (gate, receipt) = (gate.clone(), Arc::clone(&receipt));
                let domain = Some("shop.example.com".parse().unwrap());
                let charge = Charge { amount: Amount::new(4_900).unwrap(), currency: "EUR".parse().unwrap(), domain };
                tokio::spawn(async move { gate.verify_async(&receipt, Some(charge), Some("payment")).await })
            })
            .collect();
        let mut verdicts = Vec::new();
        for task in asked {
            verdicts.push(task.await.unwrap().unwrap().fault);
        }
        verdicts
    });
    assert_eq!(verdicts.iter().filter(|it| it.is_none()).count(), 1, "{verdicts:?}");
    assert_eq!(verdicts.iter().filter(|it| **it == Some(Fault::AlreadyConsumed)).count(), 7, "{verdicts:?}");
    assert!(runtime.block_on(gate.verify_async("no receipt", None, None)).unwrap().fault == Some(Fault::Malformed));
}

/// A gate that has to be there already is not made where it is not.
#[test]
fn a_gate_that_is_there_is_opened_and_none_is_made() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let none = Gate::existing(&data, AT);
    assert!(matches!(none, Err(StoreError::NoData { .. })), "{none:?}");
    assert!(!data.exists());
    drop(Gate::open(&data, AT).unwrap());
    assert!(Gate::existing(&data, AT).is_ok());
}

/// A gate that has no key to seal secrets under says so where another signing key is to follow.
#[test]
fn no_key_follows_without_a_vault() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let gate = Gate::over(store, clock, signer, Settings::default()).unwrap();
    let refused = gate.rotate_key(Purpose::Receipt, Leaked::None);
    assert!(matches!(refused, Err(Failure::Load(StoreError::NoVault))), "{refused:?}");
}

/// A gate over a store in memory, whose time is told, and an agent of it that may pay and is asked about from 20.00 on.
fn told_time() -> (Gate, FakeClock, AgentHandle, Person) {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(store.clone(), clock.clone(), signer, settings).unwrap();
    let new = RegisterAgent::new(world.workspace(), "Shopper".parse().unwrap(), NewKey::of("ask_secret"));
    let mandates =
        vec![Content::Whole(Box::new(terms(&OFFICE.replace("\"perAction\"", "\"askAbove\":2000,\"perAction\""))))];
    gate.execute(RegisterAgent { mandates, ..new }).unwrap();
    let owner = sign_in_owner(&mut store.clone(), world.workspace(), 1, clock.now());
    let agent = gate.agent(AgentKey::parse("ask_secret").unwrap()).unwrap();
    (gate, clock, agent, owner)
}

/// Polls `future` once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What an agent asks, tells and reads can be awaited on any executor, and is the same as what is waited for.
#[test]
fn an_agent_awaits_what_it_asks() {
    let (_gate, _clock, agent, _) = told_time();
    let (settled, read) = pollster::block_on(async {
        let allowed = agent.authorize_async(payment(1_900, "EUR", "shop.example.com")).await.unwrap();
        assert_eq!((allowed.verb(), allowed.receipt().is_some()), (Verb::Allow, true));
        let settled = agent.settle_async(allowed.id(), OutcomeStatus::Completed, Some(1_900)).await.unwrap();
        (settled, agent.get_async(allowed.id()).await.unwrap())
    });
    assert_eq!((settled.status(), read.status()), (Status::Completed, Status::Completed));
    let denied = agent.authorize(payment(5_001, "EUR", "shop.example.com")).unwrap();
    assert_eq!(denied.verb(), Verb::Deny);
    let ran = pollster::block_on(agent.report_run_async(denied.id(), false)).unwrap();
    assert!(ran.action().signals.contains(&Code::UnapprovedRun));
    assert_eq!(agent.report_run(denied.id(), false).unwrap().action().evidence, ran.action().evidence);
}

/// Whoever waits for a decision goes on when a person has decided, when time has, when a stop has, and when the gate is closed; changes
/// of anything else do not end the wait.
#[test]
fn a_decision_is_awaited() {
    let (gate, clock, agent, owner) = told_time();
    let ask = || agent.authorize(payment(2_100, "EUR", "shop.example.com")).unwrap();
    let (one, other) = (ask(), ask());
    let mut waits = pin!(agent.until_decided(one.id()));
    assert!(poll(waits.as_mut()).is_pending());
    let approve = |asked: &Decided| {
        let id = asked.action().approval.unwrap();
        gate.execute(DecideApproval::new(owner, id, Choice::Approve)).unwrap();
    };
    approve(&other);
    assert!(poll(waits.as_mut()).is_pending());
    approve(&one);
    let Poll::Ready(Ok(decided)) = poll(waits.as_mut()) else { panic!("it is decided") };
    assert_eq!((decided.status(), decided.receipt().is_some()), (Status::Allowed, true));
    let again = pollster::block_on(agent.until_decided(one.id())).unwrap();
    assert_eq!(again.status(), Status::Allowed);

    let late = ask();
    let mut waits = pin!(agent.until_decided(late.id()));
    assert!(poll(waits.as_mut()).is_pending());
    clock.advance(Span::hours(24));
    gate.tick().unwrap();
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(Ok(decided)) if decided.status() == Status::Expired));

    let stopped = ask();
    let mut waits = pin!(agent.until_decided(stopped.id()));
    assert!(poll(waits.as_mut()).is_pending());
    let (caller, by, reason) = (agent.caller(), By::Program, Note::parse("Stop").unwrap());
    gate.execute(FreezeAgent { workspace: caller.workspace, agent: caller.agent, by, reason }).unwrap();
    assert!(matches!(poll(waits.as_mut()), Poll::Ready(Ok(decided)) if decided.status() == Status::Denied));
}

/// Nobody decides at a gate that is closed: whoever waits for it is told.
#[test]
fn nothing_is_awaited_of_a_gate_that_is_closed() {
    let (gate, _clock, agent, _) = told_time();
    let asked = agent.authorize(payment(2_100, "EUR", "shop.example.com")).unwrap();
    let mut waits = pin!(agent.until_decided(asked.id()));
    assert!(poll(waits.as_mut()).is_pending());
    gate.close();
    let ended = poll(waits.as_mut());
    assert!(matches!(ended, Poll::Ready(Err(Failure::Load(StoreError::Closed)))), "{ended:?}");
    let ended = pollster::block_on(agent.until_decided(asked.id()));
    assert!(matches!(ended, Err(Failure::Load(StoreError::Closed))), "{ended:?}");
}

/// The same question again, of a wait that time has ended and no timer has seen to, is answered once that end is on record.
#[test]
fn a_question_asked_again_tells_what_is_recorded() {
    let (gate, clock, agent, _) = told_time();
    let question = || payment(2_100, "EUR", "shop.example.com").keyed("one".parse().unwrap());
    let asked = agent.authorize(question()).unwrap();
    clock.advance(Span::hours(24));
    let again = agent.authorize(question()).unwrap();
    assert_eq!((again.id(), again.status(), again.is_replay()), (asked.id(), Status::Expired, true));
    let stored = gate.read(|scope| scope.get::<Action>(asked.id())).unwrap().unwrap();
    assert!(matches!(stored.state, State::Expired { .. }), "{:?}", stored.state);
    assert_eq!(again.action().evidence, stored.evidence);
}

/// The sealed texts of a gate's rows of every kind: provider's and MCP server's credentials, an integration's secret, second factors and
/// what invites somebody, with what each is sealed for.
fn sealed_rows(world: &mut World, seal: &dyn Fn(&str, &[u8]) -> Box<str>) -> Vec<Record> {
    let workspace = world.workspace();
    let of = |table: Table| sample::rows().into_iter().find(|it| it.key().table() == table).unwrap();
    let Record::Routing(routing) = of(Table::Routing) else { panic!("a routing") };
    let upstream = routing.upstreams[0].id;
    let provider = UpstreamKey {
        sealed: seal(&UpstreamKey::purpose(workspace), b"a provider's key"),
        ..UpstreamKey::new(upstream, workspace)
    };
    let Record::McpServers(servers) = of(Table::McpServers) else { panic!("servers") };
    let server = servers.servers[0].id;
    let shown = McpSecret { server, workspace, sealed: seal(&McpSecret::purpose(workspace), b"a server's key") };
    let Record::Integration(integration) = of(Table::Integration) else { panic!("an integration") };
    let slot = IntegrationSlot { workspace, ..integration.slot };
    let secret = |text: &[u8]| SealedSecret {
        sealed: seal(&Integration::purpose(slot), text),
        hint: "9f3a".into(),
        created_at: world.now(),
        ends_at: None,
    };
    let integration = Integration {
        slot,
        secrets: vec![secret(b"the next one"), secret(b"the one before")],
        config: IntegrationConfig::default(),
        ..Integration::clone(&integration)
    };
    let Record::Job(job) = of(Table::Job) else { panic!("a call") };
    let principal = world.rows().into_iter().find_map(|(_, _, row)| match row {
        Record::Principal(row) => row.member.is_some().then_some(row),
        _ => None,
    });
    let principal = principal.unwrap();
    let account = principal.member.as_ref().unwrap().account;
    let token = Some(seal(&News::purpose(workspace), b"a link"));
    let news = News::Invited { principal: principal.id, link: None, token };
    let work = Work::Message { news, over: IntegrationKind::Mail, to: Some(principal.id) };
    let state = JobState::Waiting { due: world.now().plus(Span::hours(1)) };
    let job = Job { workspace, work, state, ..Job::clone(&job) };
    let account = world.row::<Account>(account);
    let factor = |text: &[u8]| seal(&Account::factor_purpose(account.id), text);
    let account = Account {
        second_factor: Some(SecondFactor { sealed: factor(b"a factor"), last_step: 0, recovery: Vec::new() }),
        enrolling: Some(factor(b"another factor")),
        ..Account::clone(&account)
    };
    vec![
        Record::Routing(Arc::new(Routing { workspace, ..Routing::clone(&routing) })),
        Record::UpstreamKey(Arc::new(provider)),
        Record::McpServers(Arc::new(McpServers { workspace, ..McpServers::clone(&servers) })),
        Record::McpSecret(Arc::new(shown)),
        Record::Integration(Arc::new(integration)),
        Record::Job(Arc::new(job)),
        Record::Account(Arc::new(account)),
    ]
}

/// What every row holds, opened with `key`.
fn opened(world: &mut World, key: &MasterKey) -> Result<BTreeSet<Vec<u8>>, StoreError> {
    let mut all = BTreeSet::new();
    for (_, _, row) in world.rows() {
        resealed::<StoreError>(&row, &mut |purpose, sealed| {
            all.insert(key.open(purpose, sealed)?.expose().clone());
            Ok(sealed.into())
        })?;
    }
    Ok(all)
}

/// All that is sealed, of whatever kind, is opened by the next key and by the one before no more; every ledger tells of it. What another
/// key has sealed keeps all of it as it was.
#[test]
fn all_is_sealed_under_another_key() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    sign_in_owner(&mut store.clone(), world.workspace(), 1, world.now());
    let [before, after] = [7, 8].map(|byte| MasterKey::new(Secret::new([byte; 32])));
    let signer =
        receipt_signer(&mut store.clone(), Path::new(""), Some(before.clone()), world.now(), AT, &dalek).unwrap();
    let rows = sealed_rows(&mut world, &|purpose, text| before.seal(purpose, text).unwrap().into());
    write(&mut store.clone(), rows);
    let held = opened(&mut world, &before).unwrap();
    let mut settings = Settings::default();
    (settings.timers, settings.vault) = (false, Some(before.clone()));
    let gate = Gate::over(store.clone(), world.clock().clone(), signer, settings).unwrap();
    // Three signing keys, a provider's, a server's, an integration, an account and a message.
    let resealed = gate.reseal(&after).unwrap();
    assert_eq!((resealed.rows, resealed.left, held.len()), (8, vec![], 3 + 1 + 1 + 2 + 2 + 1));
    assert_eq!(opened(&mut world, &after).unwrap(), held);
    assert!(matches!(opened(&mut world, &before), Err(StoreError::Sealed)));
    let told = world.ledger();
    assert!(told.contains(r#""purpose":"master""#), "{told}");
    let again = gate.reseal(&before);
    assert!(matches!(again, Err(Failure::Load(StoreError::Sealed))), "{again:?}");
    assert_eq!(opened(&mut world, &after).unwrap(), held);
    let signer = receipt_signer(&mut store.clone(), Path::new(""), Some(before), world.now(), AT, &dalek).map(drop);
    assert!(matches!(signer, Err(StoreError::Sealed)), "{signer:?}");
    assert!(receipt_signer(&mut store.clone(), Path::new(""), Some(after), world.now(), AT, &dalek).is_ok());
}

/// A gate that was open while all was sealed anew seals no signing key under the key of before, which would leave the database to be
/// opened by no key; and what did not open before keeps nobody from it.
#[test]
fn a_gate_that_was_open_leaves_the_database_to_be_opened() {
    let store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    sign_in_owner(&mut store.clone(), world.workspace(), 1, world.now());
    let [before, after, other] = [7, 8, 9].map(|byte| MasterKey::new(Secret::new([byte; 32])));
    let (now, clock) = (world.now(), world.clock().clone());
    let open = |master: &MasterKey| {
        let signer = receipt_signer(&mut store.clone(), Path::new(""), Some(master.clone()), now, AT, &dalek)?;
        let mut settings = Settings::default();
        (settings.timers, settings.vault) = (false, Some(master.clone()));
        Gate::over(store.clone(), clock.clone(), signer, settings)
    };
    let (program, command) = (open(&before).unwrap(), open(&before).unwrap());
    let strange = sealed_rows(&mut world, &|purpose, text| other.seal(purpose, text).unwrap().into());
    let unopened: Vec<_> = strange.iter().filter(|it| matches!(it, Record::McpSecret(_))).cloned().collect();
    write(
        &mut store.clone(),
        strange.into_iter().filter(|it| matches!(it, Record::McpServers(_))).chain(unopened).collect(),
    );
    let resealed = command.reseal(&after).unwrap();
    assert!(resealed.rows == 3 && matches!(resealed.left[..], [svc_core::store::Key::McpSecret(_)]), "{resealed:?}");
    let refused = program.rotate_key(Purpose::Receipt, Leaked::None);
    assert!(matches!(refused, Err(Failure::Load(StoreError::Sealed))), "{refused:?}");
    assert!(open(&after).is_ok() && open(&before).is_err());
}

/// A changed period begins with what was spent in it. What counts that is a method of its own: the command alone is refused, and changes
/// nothing.
#[test]
fn a_changed_period_counts_what_was_spent_in_it() {
    let (gate, _, agent, _) = told_time();
    // At a merchant of its own each: payments to one that are asked about together are another rule's.
    let pays = |minor, to: &str| agent.authorize(payment(minor, "EUR", to)).unwrap().verb();
    assert_eq!(pays(1_900, "a.example"), Verb::Allow);
    let id = agent.caller().agent;
    let row = gate.read(|scope| scope.get::<Agent>(id)).unwrap().unwrap();
    let limits =
        LimitsChange { per_period: Set::To(PerPeriod { amount: 2_000, period: Period::Day }), ..Default::default() };
    let change = ChangeMandate {
        workspace: row.workspace,
        by: By::Program,
        agent: id,
        mandate: row.mandates[0].id,
        change: TermsChange { limits: Set::To(limits), ..TermsChange::default() },
        paused: None,
        confirm_broaden: false,
        counted: None,
    };
    let refused = gate.execute(change.clone()).unwrap_err();
    assert!(matches!(refused, Failure::Refused(ref it) if it.kind() == Kind::NotReady), "{refused:?}");
    assert_eq!(pays(2, "b.example"), Verb::Allow);
    assert_eq!(gate.change_mandate(&change).unwrap().mandate.id.version, 2);
    assert_eq!(pays(98, "c.example"), Verb::Allow);
    assert_ne!(pays(1, "d.example"), Verb::Allow);
}

/// Every agent meets a selector that says nothing, and what stands beside `all` would be passed over: neither stops anybody, in process
/// as over HTTP.
#[test]
fn a_selector_without_a_meaning_stops_nobody() {
    let (gate, _, agent, person) = told_time();
    let all = Selector::everyone();
    for selector in [
        Selector::default(),
        Selector { name_prefix: Some("".into()), ..Selector::default() },
        Selector { agents: Some(BTreeSet::new()), ..Selector::default() },
        Selector { name_prefix: Some("Sh".into()), ..all.clone() },
        Selector { template: Some("none".into()), ..all },
    ] {
        let refused = gate.select(person.workspace, &selector).map(drop).unwrap_err();
        assert!(matches!(refused, Failure::Refused(ref it) if it.kind() == Kind::InvalidSelector), "{selector:?}");
        let (workspace, reason) = (person.workspace, Note::parse("stop").unwrap());
        let request = FleetRequest { workspace, by: By::Program, selector, reason, confirm: Some(1), seen: None };
        let refused = gate.freeze_fleet(&request).map(drop).unwrap_err();
        assert!(matches!(refused, Failure::Refused(ref it) if it.kind() == Kind::InvalidSelector), "{refused:?}");
    }
    assert_eq!(agent.authorize(payment(1, "EUR", "shop.example.com")).unwrap().verb(), Verb::Allow);
}

/// Whoever asks again after a crash is not told to go on where the receipt was used up meanwhile: the payment may have been made.
#[test]
fn a_receipt_that_was_used_allows_nothing_again() {
    let home = tempfile::tempdir().unwrap();
    let gate = Gate::open(home.path(), AT).unwrap();
    let agent = shopper(&gate);
    let asked = || agent.authorize(payment(1_900, "EUR", "shop.example.com").keyed("bill 7".parse().unwrap())).unwrap();
    let Decision::Allow(allowed) = asked().decision() else { panic!("an allow") };
    assert_eq!(allowed.receipt_used_at(), None);
    let (amount, domain) = (Amount::new(1_900).unwrap(), Some("shop.example.com".parse().unwrap()));
    let charge = Charge { amount, currency: "EUR".parse().unwrap(), domain };
    assert_eq!(gate.verify(allowed.receipt(), Some(charge), None).unwrap().fault, None);
    let Decision::Used(used) = asked().decision() else { panic!("it was used") };
    assert_eq!((used.id(), used.status()), (allowed.id(), Status::Allowed));
    assert!(Some(used.at()) == used.receipt_used_at() && used.at() <= gate.now());
    let settled = agent.settle(used.id(), OutcomeStatus::Completed, Some(1_900)).unwrap();
    assert_eq!(settled.status(), Status::Completed);
    assert!(matches!(asked().decision(), Decision::Past(_)));
}
