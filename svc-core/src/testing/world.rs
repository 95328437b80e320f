//! A gate in one hand: a workspace over a store in memory, a clock that stands still, agents with mandates, and every
//! answer as the agent would get it.
//!
//! ```
//! use svc_core::state::gate::{OutcomeStatus, Status, Verb};
//! use svc_core::testing::world::{World, payment, terms};
//! use svc_core::value::Span;
//!
//! let mut world = World::new();
//! let office = terms(r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000}}"#);
//! let agent = world.agent().with_mandate(office).register();
//!
//! let asked = world.authorize(&agent, payment(4_900, "EUR", "shop.example.com"));
//! assert_eq!(asked.verb(), Verb::Allow);
//! world.advance(Span::hours(25));
//! assert_eq!(world.read(&agent, asked.id()).status(), Status::Lapsed);
//! let settled = world.settle(&agent, asked.id(), OutcomeStatus::Completed, Some(4_900));
//! assert_eq!(settled.status(), Status::Completed);
//! ```

mod deciding;

use std::sync::Arc;

use super::audit::{self, Report};
use super::{Dice, FakeClock};
use crate::answer::Decided;
use crate::command::Operation;
use crate::engine::{Engine, Failure};
use crate::refusal::Refusal;
use crate::rules::gate::Caller;
use crate::rules::gate::authorize::Authorize;
use crate::rules::gate::freeze::{FreezeAgent, Stopped};
use crate::rules::gate::settle::Settle;
use crate::rules::gate::verify::{Charge, Fault, Verdict, Verify};
use crate::rules::people::by::By;
use crate::rules::people::create_workspace::CreateWorkspace;
use crate::rules::people::keys::NewKey;
use crate::rules::people::mandates::Content;
use crate::rules::people::register_agent::RegisterAgent;
use crate::rules::people::settings::ChangeSettings;
use crate::rules::read::get_action;
use crate::state::evidence::Entry;
use crate::state::gate::receipt::{self, DalekSigner, KeyFault, PublicKeys};
use crate::state::gate::{Agent, DataShare, OutcomeStatus, Request, Terms, Tier, Tool};
use crate::state::people::{Settings, Workspace};
use crate::store::{Clock, Commit, Committed, Key, MemoryStore, Record, Row, Stamp, Store, Write};
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, AgentId, WorkspaceId};
use crate::value::secret::Secret;
use crate::value::seed::Seed;
use crate::value::text::{Email, IdempotencyKey, Label, Note, Summary};
use crate::value::{Amount, Span, Timestamp};

/// The base address of the worlds' receipts and links.
pub const BASE_URL: &str = "https://gate.example.com";

/// A workspace and everything it stands on. What may be refused has a method that begins with `try_`; the others end the
/// test where they are refused.
#[derive(Debug)]
pub struct World<S = MemoryStore> {
    engine: Engine<S, FakeClock>,
    clock: FakeClock,
    keys: PublicKeys,
    dice: Dice,
    workspace: WorkspaceId,
    people: u64,
}

impl World {
    /// A workspace with the settings that one begins with, at 2026-10-01T09:30:00Z.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    /// A workspace with these settings.
    #[must_use]
    pub fn with(settings: Settings) -> Self {
        Self::over(MemoryStore::new(), settings)
    }

    /// Every row, sorted by key.
    #[must_use]
    pub fn rows(&mut self) -> Vec<(Key, Stamp, Record)> {
        self.engine.store().dump()
    }

    /// Every row as a line of its table and its JSON, for snapshots. The same commands give the same text.
    #[must_use]
    pub fn dump(&mut self) -> String {
        let line = |(key, _, record): (Key, Stamp, Record)| {
            let body = record.encode().expect("a row is JSON").body;
            format!("{} {}\n", key.table().name(), String::from_utf8(body).expect("JSON is text"))
        };
        self.rows().into_iter().map(line).collect()
    }

    /// Every ledger record as a line of its kind and data.
    #[must_use]
    pub fn ledger(&mut self) -> String {
        let rows = self.rows();
        let entries = rows.iter().filter_map(|(_, _, record)| Entry::peel(record));
        entries.map(|it| format!("{} {} {}\n", it.kind, &*it.actor, &*it.data)).collect()
    }

    /// Reads every row and ends the test where something cannot be: sums, ledger, order, lists.
    ///
    /// # Panics
    /// With what is wrong.
    pub fn audit(&mut self) -> Report {
        let rows = self.rows();
        let mut report = audit::audit(&rows);
        report.faults.extend(audit::audit_approvals(&rows));
        report.faults.extend(audit::audit_lists(self.engine.store(), &rows));
        report.assert_clean("the audit of a world");
        report
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Store> World<S> {
    /// A workspace over an empty store of one's own.
    pub fn over(store: S, settings: Settings) -> Self {
        Self::seeded(store, settings, 0)
    }

    /// A workspace over an empty store, whose ids and keys follow from `seed`.
    ///
    /// # Panics
    /// Where the settings are out of their bounds or the store fails.
    pub fn seeded(store: S, settings: Settings, seed: u64) -> Self {
        let (clock, mut dice) = (FakeClock::default(), Dice::new(seed));
        let signer = DalekSigner::new(&Secret::new(dice.bytes()), BASE_URL);
        let mut keys = PublicKeys::default();
        keys.insert(signer.public_key(Timestamp::default()));
        let mut engine = Engine::new(store, clock.clone(), Seed::new(dice.bytes()), Arc::new(signer));
        let made = CreateWorkspace { name: label("World"), owner: email("owner@example.com"), settings };
        let workspace = must(engine.execute(made)).id;
        Self { engine, clock, keys, dice, workspace, people: 0 }
    }

    /// Has a new engine go on over the same store, as a process does that starts again: whatever the one before had in memory is gone.
    pub fn restart(&mut self)
    where
        S: Clone,
    {
        let (store, signer) = (self.engine.store().clone(), Arc::clone(self.engine.signer()));
        self.engine = Engine::new(store, self.clock.clone(), Seed::new(self.dice.bytes()), signer);
    }

    /// The engine.
    pub fn engine(&mut self) -> &mut Engine<S, FakeClock> {
        &mut self.engine
    }

    /// The clock. Moving it runs no timer: [`advance`](Self::advance) does.
    #[must_use]
    pub const fn clock(&self) -> &FakeClock {
        &self.clock
    }

    /// What the clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The keys that its receipts are checked with.
    #[must_use]
    pub const fn public_keys(&self) -> &PublicKeys {
        &self.keys
    }

    /// The workspace's id.
    #[must_use]
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// Lets time go by: each timer runs at the instant it is due, and the ledger takes its places.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn advance(&mut self, span: Span) {
        let until = self.now().plus(span);
        let mut stuck = 0;
        while let Some(due) = must(self.engine.tick()).filter(|due| *due <= until) {
            stuck = if due > self.now() { 0 } else { stuck + 1 };
            assert!(stuck < 100, "a timer that ran is still due at {due}");
            self.clock.set(due.max(self.now()));
        }
        self.clock.set(until.max(self.now()));
        must(self.engine.tick());
    }

    /// Runs any operation.
    ///
    /// # Errors
    /// The refusal.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn run<O: Operation>(&mut self, operation: O) -> Result<O::Answer, Refusal> {
        match self.engine.execute(operation) {
            Ok(answer) => Ok(answer),
            Err(Failure::Refused(refusal)) => Err(refusal),
            Err(failure) => panic!("{failure:?}"),
        }
    }

    /// An agent to be: give it mandates and a tier, then [`register`](NewAgent::register) it.
    pub fn agent(&mut self) -> NewAgent<'_, S> {
        NewAgent { world: self, tier: Tier::Standard, mandates: Vec::new() }
    }

    /// Puts other settings in force.
    ///
    /// # Panics
    /// Where they are out of their bounds.
    pub fn change_settings(&mut self, settings: Settings) -> Arc<Workspace> {
        let workspace = self.workspace;
        self.run(ChangeSettings { workspace, by: By::Program, change: settings.into() })
            .expect("settings within their bounds")
    }

    /// Asks the gate.
    ///
    /// # Panics
    /// Where the request is refused; a deny is no refusal.
    pub fn authorize(&mut self, caller: &Caller, request: Request) -> Decided {
        self.try_authorize(caller, request).expect("the gate decides")
    }

    /// Asks the gate.
    ///
    /// # Errors
    /// The refusal.
    pub fn try_authorize(&mut self, caller: &Caller, request: Request) -> Result<Decided, Refusal> {
        let authorize = self.command(caller, request);
        self.run(authorize)
    }

    /// The command that asks the gate, to be run later or in a batch.
    pub fn command(&mut self, caller: &Caller, request: Request) -> Authorize {
        let salt = self.dice.bytes().first_chunk().copied().unwrap_or_default();
        Authorize::new(*caller, request, salt)
    }

    /// An action as it stands now.
    ///
    /// # Panics
    /// Where it is not the caller's.
    pub fn read(&mut self, caller: &Caller, action: ActionId) -> Decided {
        let view = must(self.engine.read(|scope| get_action(scope, caller, action)));
        Decided::of(view, &**self.engine.signer())
    }

    /// Says what became of an action.
    ///
    /// # Panics
    /// Where that is refused.
    pub fn settle(&mut self, caller: &Caller, action: ActionId, status: OutcomeStatus, amount: Option<i64>) -> Decided {
        self.try_settle(caller, action, status, amount).expect("an allowed action is settled")
    }

    /// Says what became of an action.
    ///
    /// # Errors
    /// The refusal.
    pub fn try_settle(
        &mut self,
        caller: &Caller,
        action: ActionId,
        status: OutcomeStatus,
        amount: Option<i64>,
    ) -> Result<Decided, Refusal> {
        self.run(Settle { caller: *caller, action, status, amount })
    }

    /// Shows a receipt, as a stranger does who is to be paid or to act.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn verify(&mut self, receipt: &str, charge: Option<Charge>) -> Verdict {
        match self.question(receipt, charge) {
            Ok(question) => self.run(question).expect("a verification is never refused"),
            Err(fault) => Verdict::no(fault),
        }
    }

    /// The command that shows a receipt, where the text alone does not already say no.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn question(&self, receipt: &str, charge: Option<Charge>) -> Result<Verify, Fault> {
        let parsed = receipt::parse(receipt).map_err(|_| Fault::Malformed)?;
        self.keys.verify(&parsed).map_err(|fault| match fault {
            KeyFault::Unknown => Fault::UnknownKey,
            KeyFault::BadSignature => Fault::BadSignature,
        })?;
        let claims = parsed.into_claims();
        if claims.issuer != BASE_URL {
            return Err(Fault::WrongIssuer);
        }
        let digest = Digest::parse(claims.digest.trim_start_matches("sha256:")).map_err(|_| Fault::Malformed)?;
        let body = Digest::of(format!("{receipt}{charge:?}"));
        Ok(Verify { receipt: claims.receipt, digest, charge, kind: None, key: None, body, signed_by: None })
    }

    /// Stops an agent.
    ///
    /// # Panics
    /// Where there is no such agent.
    pub fn freeze(&mut self, agent: AgentId) -> Arc<Agent> {
        let reason = Note::parse("a test stops it").expect("a note");
        let workspace = self.workspace;
        match self.run(FreezeAgent { workspace, agent, by: By::Program, reason }).expect("an agent of this workspace") {
            Stopped::Agent(agent) => agent,
            Stopped::Asked(approval) => panic!("only a token has a ceiling, and {} was asked", approval.id),
        }
    }

    /// Puts a row into the store behind the gate's back, as a fault of a disk or of a hand would.
    ///
    /// # Panics
    /// Where the store fails.
    pub fn overwrite<R: Row>(&mut self, row: R) {
        let key = R::key(row.id());
        let stamp = self.engine.store().load(&[key]).expect("a load succeeds").remove(0).stamp;
        let write = Write { key, record: Some(R::wrap(Arc::new(row))), unlink: Vec::new(), link: Vec::new() };
        let commit = Commit { checks: vec![(key, stamp)], writes: vec![write] };
        let done = self.engine.store().commit(&commit).expect("a commit succeeds");
        assert!(matches!(done, Committed::Applied(_)), "nobody else writes");
    }

    /// One row as it stands.
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn row<R: Row>(&mut self, id: R::Id) -> Arc<R> {
        let found = self.engine.store().load(&[R::key(id)]).expect("a load succeeds").remove(0);
        found.record.as_ref().and_then(R::peel).cloned().expect("the row is there")
    }
}

/// An agent that is not registered yet.
#[derive(Debug)]
pub struct NewAgent<'w, S = MemoryStore> {
    world: &'w mut World<S>,
    tier: Tier,
    mandates: Vec<Content>,
}

impl<S: Store> NewAgent<'_, S> {
    /// With this mandate too.
    #[must_use]
    pub fn with_mandate(mut self, terms: Terms) -> Self {
        self.mandates.push(Content::Whole(Box::new(terms)));
        self
    }

    /// With the mandate of this template too.
    #[must_use]
    pub fn with_template(mut self, name: &str) -> Self {
        self.mandates.push(Content::Template(name.into()));
        self
    }

    /// Of this tier; `standard` where nothing is said.
    #[must_use]
    pub const fn tier(mut self, tier: Tier) -> Self {
        self.tier = tier;
        self
    }

    /// Makes the agent and its first key, and gives who it is to the gate.
    ///
    /// # Panics
    /// Where a mandate is none.
    pub fn register(self) -> Caller {
        let Self { world, tier, mandates } = self;
        let key = NewKey { digest: Digest::of(world.dice.bytes()), prefix: "ask_00000000".into() };
        let (workspace, name) = (world.workspace, label("Agent"));
        let made = RegisterAgent { tier, mandates, ..RegisterAgent::new(workspace, name, key) };
        let registered = world.run(made).expect("an agent is registered");
        Caller::of(&registered.binding).expect("the key is the agent's")
    }
}

/// What a mandate says, as the interface writes it.
///
/// # Panics
/// Where it is no mandate.
#[must_use]
pub fn terms(json: &str) -> Terms {
    let read = |json: &str| serde_json::from_str(json).unwrap_or_else(|error| panic!("no mandate: {error}"));
    let mut sent: serde_json::Value = must(serde_json::from_str(json));
    match sent.get("expiresAt").and_then(serde_json::Value::as_str).map(Timestamp::parse) {
        // A row has the instant as a number.
        Some(at) => {
            sent["expiresAt"] = must(at).as_millis().into();
            read(&sent.to_string())
        }
        None => read(json),
    }
}

/// A payment in minor units.
///
/// # Panics
/// Where amount, currency or domain is none.
#[must_use]
pub fn payment(minor: i64, currency: &str, domain: &str) -> Request {
    let merchant = (label("Merchant"), Domain::parse(domain).expect("a domain"));
    let (amount, currency) = (Amount::new(minor).expect("an amount"), Currency::parse(currency).expect("a currency"));
    Request::payment("Pay for what was ordered", amount, currency, merchant).expect("a payment")
}

/// A tool call.
///
/// # Panics
/// Where that is no name.
#[must_use]
pub fn tool_call(name: &str) -> Request {
    plain("tool.call").calling(tool(name))
}

/// An action of this type that pays, in minor units.
///
/// # Panics
/// Where type, amount, currency or domain is none.
#[must_use]
pub fn paying(kind: &str, minor: i64, currency: &str, domain: &str) -> Request {
    let merchant = (label("Merchant"), Domain::parse(domain).expect("a domain"));
    let currency = Currency::parse(currency).expect("a currency");
    plain(kind).paying(Amount::new(minor).expect("an amount"), currency, merchant)
}

/// An action of this type with what the type cannot be without, and nothing else beside its summary.
///
/// # Panics
/// Where that is no type.
#[must_use]
pub fn request(kind: &str) -> Request {
    let plain = plain(kind);
    if plain.kind.needs_payment() {
        return paying(kind, 100, "EUR", "shop.example");
    }
    if plain.kind.needs_data() {
        let share = DataShare { recipient: "crm.example.com".into(), fields: vec![label("name")], purpose: None };
        return plain.sharing(share);
    }
    if plain.kind.needs_tool_name() { plain.calling(tool("search")) } else { plain }
}

fn plain(kind: &str) -> Request {
    Request::new(kind.parse().expect("a type of action"), Summary::parse("Do what was asked").expect("a summary"))
}

fn tool(name: &str) -> Tool {
    Tool { name: Some(label(name)), ..Tool::default() }
}

/// An idempotency key.
///
/// # Panics
/// Where that is none.
#[must_use]
pub fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect("an idempotency key")
}

/// A charge by a merchant.
///
/// # Panics
/// Where amount, currency or domain is none.
#[must_use]
pub fn charge(amount: i64, currency: &str, domain: &str) -> Charge {
    let domain = Some(Domain::parse(domain).expect("a domain"));
    let amount = Amount::new(amount).expect("an amount");
    Charge { amount, currency: Currency::parse(currency).expect("a currency"), domain }
}

fn label(text: &str) -> Label {
    Label::parse(text).expect("a label")
}

fn email(text: &str) -> Email {
    Email::parse(text).expect("an e-mail address")
}

fn must<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::gate::{Status, Verb};

    fn office() -> Terms {
        terms(
            r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":5000,
                "perPeriod":{"amount":12000,"period":"day"},"count":{"max":4,"period":"day"}},
                "merchants":{"allow":["*.example.com"]}}"#,
        )
    }

    /// A mandate is read as the interface writes it, its end too.
    #[test]
    fn terms_are_as_the_interface_writes_them() {
        let at = Timestamp::parse("2026-12-01T00:00:00.000Z").unwrap();
        let read = terms(r#"{"name":"Office","actions":["payment"],"expiresAt":"2026-12-01T00:00:00.000Z"}"#);
        assert_eq!(read.expires_at, Some(at));
    }

    /// Ask, allow, verify, verify again, settle above, frozen: the whole way, and the books are right at each step.
    #[test]
    fn the_whole_way_leaves_books_that_are_right() {
        let mut world = World::new();
        let agent = world.agent().with_mandate(office()).register();
        let asked = world.authorize(&agent, payment(4_900, "EUR", "shop.example.com"));
        assert_eq!((asked.verb(), asked.status()), (Verb::Allow, Status::Allowed));
        world.audit();
        let receipt = asked.receipt().unwrap().to_owned();
        let bill = || Some(charge(4_900, "EUR", "shop.example.com"));
        assert!(world.verify(&receipt, bill()).is_valid());
        assert_eq!(world.verify(&receipt, bill()).fault, Some(Fault::AlreadyConsumed));
        world.audit();
        let second = world.authorize(&agent, payment(1_000, "EUR", "other.example.com"));
        let settled = world.settle(&agent, asked.id(), OutcomeStatus::Completed, Some(5_100));
        assert!(settled.action().incident.is_some());
        assert_eq!(world.read(&agent, second.id()).status(), Status::Revoked);
        assert_eq!(world.authorize(&agent, payment(1, "EUR", "shop.example.com")).verb(), Verb::Deny);
        world.audit();
        world.advance(Span::hours(24 * 9));
        let report = world.audit();
        assert_eq!((report.actions, report.allowed, report.consumed, report.settled, report.stopped), (3, 2, 1, 1, 1));
    }

    /// Timers run at their own instants while time goes by, and the ledger is placed.
    #[test]
    fn time_that_goes_by_runs_what_is_due() {
        let mut world = World::new();
        let agent = world.agent().with_mandate(office()).register();
        let allowed = world.authorize(&agent, payment(4_000, "EUR", "shop.example.com"));
        let asked = world.authorize(&agent, payment(4_000, "EUR", "elsewhere.example.org"));
        assert_eq!(asked.status(), Status::Pending);
        world.advance(Span::hours(24));
        assert_eq!(world.read(&agent, asked.id()).status(), Status::Expired);
        assert_eq!(world.read(&agent, allowed.id()).status(), Status::Allowed);
        world.advance(Span::minutes(15));
        let lapsed = world.read(&agent, allowed.id());
        assert_eq!(lapsed.status(), Status::Lapsed);
        assert!(lapsed.action().allowed().unwrap().lapsed.is_some(), "by its timer");
        let report = world.audit();
        assert!(report.records > 5);
    }

    /// The same commands leave the same rows, byte for byte.
    #[test]
    fn a_world_can_be_had_again() {
        let live = || {
            let mut world = World::new();
            let agent = world.agent().with_mandate(office()).register();
            let asked = world.authorize(&agent, payment(100, "EUR", "shop.example.com"));
            world.settle(&agent, asked.id(), OutcomeStatus::Completed, None);
            world.advance(Span::minutes(1));
            world.dump()
        };
        assert_eq!(live(), live());
    }
}
