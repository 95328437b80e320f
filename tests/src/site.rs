//! A server on a free port over a gate of its own, whose clock stands still and whose store fails when it is told to.

use std::net::SocketAddr;
use std::path::PathBuf;

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::rules::gate::Caller;
use svc_core::rules::people::by::By;
use svc_core::rules::people::create_workspace::CreateWorkspace;
use svc_core::rules::people::keys::{CreateKey, NewKey, RevokeKey};
use svc_core::rules::people::mandates::Content;
use svc_core::rules::people::register_agent::RegisterAgent;
use svc_core::rules::people::settings::ChangeSettings;
use svc_core::state::evidence::Entry;
use svc_core::state::gate::receipt::{DalekSigner, PublicKeys, Signer};
use svc_core::state::people::{Credential, KeyScope, Settings, SigningKey, SigningUse, Workspace};
use svc_core::store::{Clock as _, Commit, Key, MemoryStore, Record, Row as _, Stamp, Store as _, Write};
use svc_core::testing::audit::{Report, audit, audit_approvals, audit_lists};
use svc_core::testing::world::{BASE_URL, terms};
use svc_core::testing::{Dice, FakeClock};
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::text::{Email, Label};
use svc_core::value::{Span, Timestamp};
use svc_http::Server;
use svc_http::config::{BaseUrl, Config};
use svc_store::seal::MasterKey;
use svc_store::{Backend as _, Gate, SqliteStore};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, PATIENCE};
use crate::receiver::Names;
use crate::shaky::Shaky;
pub use crate::shaky::{Fault, FaultSwitch};
use crate::wire::Wire;
use crate::witness::Witness;

/// What a site is made of.
#[derive(Debug)]
pub struct Plan {
    /// The workspace's settings; no velocity line is in the way unless a test puts it there.
    pub settings: Settings,
    /// The server's; nobody is held to a rate unless a test says so.
    pub config: Config,
    /// Where SQLite keeps the rows; they are in memory where no directory is named.
    pub directory: Option<PathBuf>,
    /// What its clock shows at first.
    pub clock: FakeClock,
    /// Who knows the addresses of hosts; the system where nobody is named.
    pub names: Option<Arc<Names>>,
    /// The port at which domains are looked at for what they say of single sign-on; that of https where none is named.
    pub proof_port: Option<u16>,
    /// Records of one evidence bundle at most; the product's own bound where none is named.
    pub bundle_max: Option<u64>,
    /// Who sees each commit to a store in memory, before anybody else sees what it changed.
    pub witness: Witness,
    /// Where it is one of several servers on a store in memory: how they hear of each other.
    pub wire: Option<Wire>,
    /// Whether what is due is seen to without a tick; by the clock of the site all the same.
    pub timers: bool,
    memory: MemoryStore,
    workspace: Option<WorkspaceId>,
}

impl Default for Plan {
    fn default() -> Self {
        let mut settings = Settings::default();
        (settings.agent_velocity.other_count, settings.agent_velocity.tool_count) = (1_000_000, 1_000_000);
        let mut config = Config::default();
        (config.limits.gate_per_minute, config.limits.verify_per_minute) = (1_000_000, 1_000_000);
        (config.limits.gateway_per_minute, config.limits.token_per_minute) = (1_000_000, 1_000_000);
        (config.limits.sign_in_per_minute, config.limits.oauth_per_minute) = (1_000_000, 1_000_000);
        let (clock, memory) = (FakeClock::default(), MemoryStore::new());
        let witness = Witness::default();
        Self {
            settings,
            config,
            directory: None,
            clock,
            names: None,
            proof_port: None,
            bundle_max: None,
            witness,
            wire: None,
            timers: false,
            memory,
            workspace: None,
        }
    }
}

/// An agent of a site.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Its key.
    pub key: String,
    /// Who it is to the gate.
    pub caller: Caller,
}

/// A running server.
#[derive(Debug)]
pub struct Site {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its metrics are read, where the plan says that they are.
    pub metrics: Option<SocketAddr>,
    /// Its gate.
    pub gate: Gate,
    /// How its store fails.
    pub fault: FaultSwitch,
    clock: FakeClock,
    memory: Option<MemoryStore>,
    workspace: WorkspaceId,
    dice: Mutex<Dice>,
    stop: Option<oneshot::Sender<()>>,
    done: JoinHandle<()>,
    witness: Witness,
    wire: Option<Wire>,
}

impl Site {
    /// A site over a store in memory.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A site that differs from the usual one.
    pub async fn with(change: impl FnOnce(&mut Plan)) -> Self {
        let mut plan = Plan::default();
        change(&mut plan);
        let (clock, fault, seed) = (plan.clock, FaultSwitch::default(), [7; 32]);
        let mut settings = svc_store::Settings::default();
        settings.timers = plan.timers;
        settings.bundle_max = plan.bundle_max.unwrap_or(settings.bundle_max);
        settings.vault = Some(MasterKey::new(Secret::new([8; 32])));
        let base_url = plan.config.base_url.clone();
        let base_url = base_url.unwrap_or_else(|| BaseUrl::parse(BASE_URL).expect("a base address"));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (gate, server, memory);
        if let Some(directory) = &plan.directory {
            let store = SqliteStore::open(directory).expect("a database");
            let mut writer = store.writer().expect("a writer");
            let make = &svc_store::keys::dalek;
            let signer = svc_store::keys::receipt_signer(&mut writer, directory, None, clock.now(), BASE_URL, make)
                .expect("a key");
            drop(writer);
            settings.vault = MasterKey::read(directory).expect("a key's file");
            gate = Gate::over(store, clock.clone(), signer, settings).expect("a gate");
            memory = None;
            server = Server::new(listener, &plan.config, &base_url, gate.clone()).expect("a server");
        } else {
            let store = plan.memory;
            let shaky = Shaky {
                inner: store.clone(),
                fault: fault.clone(),
                witness: plan.witness.clone(),
                wire: plan.wire.clone(),
            };
            let signer = DalekSigner::new(&Secret::new(seed), BASE_URL);
            let mut keys = PublicKeys::default();
            keys.insert(signer.public_key(Timestamp::default()));
            let signer = ring(&mut store.clone(), &seed, clock.now());
            gate = Gate::over(shaky, clock.clone(), signer, settings).expect("a gate");
            memory = Some(store);
            server = Server::with_keys(listener, &plan.config, &base_url, gate.clone(), keys).expect("a server");
        }
        let server = match plan.names {
            Some(names) => server.resolving_with(names),
            None => server,
        };
        let server = match plan.proof_port {
            Some(port) => server.proving_domains_at(port),
            None => server,
        };
        let name = Label::parse("Site").expect("a name");
        let owner = Email::parse("owner@example.com").expect("an address");
        let new = CreateWorkspace { name, owner, settings: plan.settings };
        let workspace = plan.workspace.unwrap_or_else(|| gate.execute(new).expect("a workspace").id);
        let address = server.address().expect("an address");
        let metrics = server.metrics_address().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let done = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        // Servers over one memory do not draw the same keys.
        let seed = Digest::of(format!("{workspace} {}", plan.workspace.map_or(0, |_| address.port())))
            .as_bytes()
            .first_chunk()
            .copied()
            .unwrap_or_default();
        let dice = Mutex::new(Dice::new(u64::from_be_bytes(seed)));
        let (witness, wire) = (plan.witness, plan.wire);
        Self { address, metrics, gate, fault, clock, memory, workspace, dice, stop: Some(stop), done, witness, wire }
    }

    /// One more server over the same memory, whose clock is ahead or behind.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub async fn node(&self, ahead: Span) -> Self {
        let memory = self.memory.clone().expect("rows in memory");
        let clock = FakeClock::new(self.clock.now().plus(ahead));
        Self::with(|plan| (plan.memory, plan.clock) = (memory, clock)).await
    }

    /// The same rows and clock behind one more server, which remembers nothing and differs from the usual one.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub async fn anew(&self, change: impl FnOnce(&mut Plan)) -> Self {
        let (memory, clock) = (self.memory.clone().expect("rows in memory"), self.clock.clone());
        Self::with(|plan| {
            (plan.memory, plan.clock) = (memory, clock);
            change(plan);
        })
        .await
    }

    /// One more server on the same store, beside this one in the same workspace and at the same time. They hear of each other where
    /// the plan of the first has a wire.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub async fn beside(&self, change: impl FnOnce(&mut Plan)) -> Self {
        let (workspace, wire) = (self.workspace, self.wire.clone());
        self.anew(|plan| {
            (plan.workspace, plan.wire) = (Some(workspace), wire);
            change(plan);
        })
        .await
    }

    /// A new connection.
    pub async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// The workspace that everything is in.
    #[must_use]
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// What its clock shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The memory that its rows are in.
    ///
    /// # Panics
    /// Where they are elsewhere.
    #[must_use]
    pub fn memory(&self) -> MemoryStore {
        self.memory.clone().expect("rows in memory")
    }

    /// Bits for an id or a secret that nothing else has.
    ///
    /// # Panics
    /// Never, in a test of one thread.
    #[must_use]
    pub fn fresh_bits(&self) -> u128 {
        let bytes: [u8; 32] = self.dice.lock().expect("one thread").bytes();
        bytes.iter().take(15).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
    }

    /// The seed's signer of a site in memory, for receipts that the server did not sign.
    #[must_use]
    pub fn forger(issuer: &str) -> DalekSigner {
        DalekSigner::new(&Secret::new([7; 32]), issuer)
    }

    /// A new agent with these mandates.
    ///
    /// # Panics
    /// Where a mandate is none.
    pub fn agent(&self, mandates: &[&str]) -> Agent {
        let (key, new) = self.new_key();
        let made = self.gate.execute(RegisterAgent {
            mandates: mandates.iter().map(|it| Content::Whole(Box::new(terms(it)))).collect(),
            ..RegisterAgent::new(self.workspace, Label::parse("Agent").expect("a name"), new)
        });
        let made = made.expect("an agent");
        Agent { id: made.agent.id, key, caller: Caller::of(&made.binding).expect("an agent's key") }
    }

    /// One more key of this scope.
    ///
    /// # Panics
    /// Where the gate makes none.
    pub fn key(&self, scope: KeyScope) -> String {
        let (text, key) = self.new_key();
        let made = CreateKey::new(self.workspace, By::Program, scope, key);
        self.gate.execute(made).expect("a key");
        text
    }

    /// Ends a key.
    ///
    /// # Panics
    /// Where there is no such key.
    pub fn revoke(&self, key: &str) {
        let credential = Credential::id_of(&Digest::of(key));
        self.gate
            .execute(RevokeKey { workspace: self.workspace, by: By::Program, credential })
            .expect("the key is there");
    }

    /// Puts other settings in force.
    ///
    /// # Panics
    /// Where they are out of their bounds.
    pub fn change_settings(&self, settings: Settings) -> Arc<Workspace> {
        self.gate
            .execute(ChangeSettings { workspace: self.workspace, by: By::Program, change: settings.into() })
            .expect("settings")
    }

    fn new_key(&self) -> (String, NewKey) {
        let text = format!("ask_{}", URL_SAFE_NO_PAD.encode(self.dice.lock().expect("one thread").bytes()));
        let key = NewKey { digest: Digest::of(&text), prefix: text[..12].into() };
        (text, key)
    }

    /// Lets time go by; whatever falls due on the way is seen to at its instant.
    ///
    /// # Panics
    /// Where a timer that ran stays due.
    pub fn advance(&self, span: Span) {
        let until = self.clock.now().plus(span);
        let mut rounds = 0;
        while let Some(due) = self.gate.tick().expect("timers run").filter(|due| *due <= until) {
            rounds += 1;
            assert!(rounds < 10_000, "a timer that ran is still due at {due}");
            self.clock.set(due.max(self.clock.now()));
        }
        self.clock.set(until.max(self.clock.now()));
        self.gate.tick().expect("timers run");
    }

    /// Lets time go by without a timer.
    pub fn shift(&self, span: Span) {
        self.clock.advance(span);
    }

    /// The ledger of the workspace as it stands, in its order.
    ///
    /// # Panics
    /// Where the rows are not in memory.
    pub fn ledger(&self) -> Vec<Arc<Entry>> {
        self.gate.tick().expect("the ledger takes its places");
        let rows = self.memory.as_ref().expect("rows in memory").dump();
        let entries = rows.iter().filter_map(|(.., record)| Entry::peel(record));
        let mut entries: Vec<Arc<Entry>> = entries.filter(|it| it.workspace == self.workspace).cloned().collect();
        entries.sort_by_key(|it| it.place.as_ref().map(|place| place.seq));
        entries
    }

    /// Reads every row of a store in memory, as they stood at one moment, and ends the test where something cannot be.
    ///
    /// # Panics
    /// With what is wrong.
    pub fn audit(&self) -> Report {
        self.gate.tick().expect("the ledger takes its places");
        // Of its own: the server goes on writing, and lists are read after the rows.
        let mut memory = self.memory.as_ref().expect("rows in memory").fork();
        let rows = memory.dump();
        let mut report = audit(&rows);
        report.faults.extend(audit_approvals(&rows));
        report.faults.extend(audit_lists(&mut memory, &rows));
        report.assert_clean("the audit of a site");
        report
    }

    /// Waits until the rows in memory are as they should be; asked anew after each commit.
    ///
    /// # Panics
    /// Where they are not in time.
    pub async fn until(&self, mut is_so: impl FnMut() -> bool) {
        let mut commits = self.witness.commits();
        let waited = timeout(PATIENCE, commits.wait_for(|_| is_so())).await;
        waited.expect("the rows become so in time").expect("the sender is the site's own");
    }

    /// Ends the server in the midst of whatever it does, as a process that is killed: nothing is told or given back.
    pub async fn kill(self) {
        self.done.abort();
        let _ = self.done.await;
    }

    /// Stops the server and waits until it and its gate have ended.
    pub async fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        self.done.await.expect("the server ends well");
    }
}

/// Every row of the database in `directory`, as a store in memory would list them, read without changing anything.
///
/// # Panics
/// Where a row is none.
#[must_use]
pub fn rows_of(directory: &std::path::Path) -> Vec<(Key, Stamp, Record)> {
    use rusqlite::{Connection, OpenFlags};
    use svc_core::store::Table;
    let path = directory.join("svc.db");
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the file opens");
    let mut rows = Vec::new();
    for table in Table::ALL {
        let sql = format!("SELECT key, stamp, format, body FROM \"{}\"", table.name());
        let mut statement = file.prepare(&sql).expect("the table is there");
        let mut found = statement.query([]).expect("rows are read");
        while let Some(row) = found.next().expect("a row is read") {
            let (key, stamp): (Vec<u8>, i64) = (row.get(0).expect("a key"), row.get(1).expect("a stamp"));
            let (format, body): (u16, String) = (row.get(2).expect("a format"), row.get(3).expect("a body"));
            let key = Key::decode(*table, &key).expect("a key of its table");
            let record = Record::decode(*table, format, body.as_bytes()).expect("a row of its table");
            rows.push((key, Stamp(u64::try_from(stamp).expect("a stamp")), record));
        }
    }
    // What waits to be moved to its table is newer than what is there.
    let mut waiting = file
        .prepare("SELECT id, key, format, body FROM redo WHERE \"of\" = ?1 AND length(key) > 0 ORDER BY id")
        .expect("a table of rows that wait");
    for table in Table::ALL {
        let mut found = waiting.query([table.name()]).expect("rows are read");
        while let Some(row) = found.next().expect("a row is read") {
            let (id, key): (i64, Vec<u8>) = (row.get(0).expect("an id"), row.get(1).expect("a key"));
            let (format, body): (u16, Option<String>) = (row.get(2).expect("a format"), row.get(3).expect("a body"));
            let key = Key::decode(*table, &key).expect("a key of its table");
            rows.retain(|(other, ..)| *other != key);
            if let Some(body) = body {
                let record = Record::decode(*table, format, body.as_bytes()).expect("a row of its table");
                rows.push((key, Stamp(u64::try_from(id >> 20).expect("a stamp")), record));
            }
        }
    }
    rows.sort_by_key(|(key, ..)| *key);
    rows
}

/// The keys of a site in memory: the one for receipts is known to tests, the others are made.
fn ring(store: &mut MemoryStore, seed: &[u8; 32], now: Timestamp) -> Arc<dyn Signer> {
    let (id, master) = (SigningUse::RECEIPT, MasterKey::new(Secret::new([8; 32])));
    let public = DalekSigner::new(&Secret::new(*seed), BASE_URL).public_key(now);
    let row = SigningKey {
        id,
        public: URL_SAFE_NO_PAD.encode(public.as_bytes()).into(),
        sealed: master.seal("signing_key/receipt/0", seed).expect("a sealed seed").into(),
        created_at: Timestamp::default(),
        not_before: Timestamp::default(),
        retired_at: None,
        compromised_at: None,
    };
    if store.load(&[SigningKey::key(id)]).expect("a store").iter().all(|it| it.record.is_none()) {
        let write = Write {
            key: SigningKey::key(id),
            record: Some(SigningKey::wrap(Arc::new(row))),
            unlink: vec![],
            link: vec![],
        };
        let commit = Commit { checks: vec![(write.key, Stamp::ABSENT)], writes: vec![write] };
        store.commit(&commit).expect("a key is kept");
    }
    let path = std::path::Path::new("/nowhere");
    svc_store::keys::receipt_signer(store, path, Some(master), now, BASE_URL, &svc_store::keys::dalek).expect("keys")
}
