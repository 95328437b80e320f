//! The name that embedders meet: a gate over a store, cheap to clone, callable from any thread and any executor.

#[cfg(feature = "sqlite")]
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use svc_core::command::Operation;
use svc_core::engine::Failure;
use svc_core::rules::gate::Caller;
use svc_core::rules::people::signing_key::Leaked;
use svc_core::rules::read::find_binding;
use svc_core::state::evidence::bundle::RECORDS_MAX;
use svc_core::state::gate::receipt::{PublicKey, PublicKeys, Signer};
use svc_core::state::people::{Binding, Purpose, SigningKey, SigningUse};
use svc_core::store::{Clock, CommitError, Found, Key, Range, Record};
use svc_core::turn::{Halt, Rows, Scope, read};
use svc_core::value::Timestamp;
#[cfg(feature = "sqlite")]
use svc_core::value::base_url::BaseUrl;
use svc_core::value::digest::Digest;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::{Index, SHARDS};
use svc_core::value::secret::Secret;
use tokio::sync::oneshot;
use tokio::task::coop::unconstrained;

use crate::agent::{AgentHandle, AgentKey};
use crate::backend::Backend;
use crate::bindings::Bindings;
use crate::error::StoreError;
use crate::feed::{Changes, Feed, Lapses};
use crate::following::Following;
use crate::health::Health;
use crate::lane::{Outcome, Sees};
use crate::lanes::Lanes;
use crate::newest::Newest;
use crate::others::Listening;
use crate::put_off::PutOff;
use crate::reader::{Bounded, Readers};
use crate::seal::{MasterKey, fresh_salt};
use crate::timers::{self, Timers};

/// How a gate is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Commands that wait for one lane at most; more are told to come again. At least one: 0 is 1.
    pub queue_max: usize,
    /// Commands of one commit at most. At least one: 0 is 1.
    pub batch_max: usize,
    /// Rows that a lane keeps in memory; with 0 all of them are read anew for every batch.
    pub rows_kept: usize,
    /// Whether a thread of the gate sees to what is due. Without it [`Gate::tick`] does, when it is called.
    pub timers: bool,
    /// The key that secrets of integrations and of accounts are sealed under. Without one there are none.
    pub vault: Option<MasterKey>,
    /// Records of one evidence bundle at most, 1 to [`RECORDS_MAX`], and the nearer of these where it is neither; the next one goes on
    /// behind it.
    pub bundle_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { queue_max: 4_096, batch_max: 256, rows_kept: 32_768, timers: true, vault: None, bundle_max: RECORDS_MAX }
    }
}

/// A gate: lanes that decide, readers, timers, keys. Clones are the same gate; it ends with the last of them, after what was
/// queued is done.
#[derive(Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    core: Arc<Core>,
    timers: Mutex<Option<Timers>>,
    others: Mutex<Option<Listening>>,
}

/// What the gate and its timers have in common.
pub(crate) struct Core {
    pub(crate) lanes: Lanes,
    pub(crate) readers: Box<dyn Readers>,
    pub(crate) clock: Arc<dyn Clock + Send + Sync>,
    pub(crate) newest: Arc<Newest>,
    pub(crate) health: Arc<Health>,
    pub(crate) signer: Arc<dyn Signer>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) put_off: PutOff,
    bindings: Bindings,
    is_shared: bool,
    /// When the signing keys were last looked at for one that is not known.
    keys_looked_at: Mutex<Option<Instant>>,
    vault: Option<MasterKey>,
    bundle_max: u64,
}

impl Gate {
    /// A gate over SQLite in the directory `path`, with the system's clock, for the service at `base_url`. The directory, its
    /// database, its `master.key` and its receipt key are made where there are none, and an older database is brought up to date.
    ///
    /// `base_url` stands in every receipt, and receipts of another address are refused as `wrong_issuer`: where a server works on
    /// the directory too, give what its `baseUrl` is. The server notes that in the file [`base-url`](crate::reached::BASE_URL) of
    /// the directory; where it says otherwise, a warning in the log names both.
    ///
    /// Other processes may have the same directory open, a server among them: what they commit holds here at once, and whoever
    /// listens to [`changes`](Self::changes) is told to look for it within a second. A gate is of the process that opened it: in
    /// one that is forked off it answers [`StoreError::Closed`], and that one is to open its own, and to leave this one undropped.
    ///
    /// # Errors
    /// [`StoreError::BaseAddress`] where that is none; [`StoreError::Served`] where a server works on a database of an older
    /// schema; the directory or its database cannot be used, or is not this service's.
    #[cfg(feature = "sqlite")]
    pub fn open(path: impl AsRef<Path>, base_url: &str) -> Result<Self, StoreError> {
        Self::open_with(path, base_url, None, &crate::keys::dalek, Settings::default())
    }

    /// As [`open`](Self::open), and makes no database: a path that is mistaken is no new gate without anybody's rules.
    ///
    /// # Errors
    /// [`StoreError::NoData`] where there is no database, and as [`open`](Self::open).
    #[cfg(feature = "sqlite")]
    pub fn existing(path: impl AsRef<Path>, base_url: &str) -> Result<Self, StoreError> {
        crate::sqlite::schema_of(&path)?;
        Self::open(path, base_url)
    }

    /// As [`open`](Self::open), with the master key from elsewhere, a signer of one's own, and settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[cfg(feature = "sqlite")]
    pub fn open_with(
        path: impl AsRef<Path>,
        base_url: &str,
        master: Option<MasterKey>,
        signer: &'static crate::keys::SignerFactory,
        mut settings: Settings,
    ) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let invalid = |why| StoreError::BaseAddress { text: base_url.into(), why };
        let base_url = BaseUrl::parse(base_url).map_err(invalid)?;
        crate::reached::warn_where_another(path, &base_url);
        let store = crate::sqlite::SqliteStore::open(path)?;
        let clock = crate::clock::SystemClock::new();
        let mut session = store.writer()?;
        let given = master.clone();
        let signer = crate::keys::receipt_signer(&mut session, path, given, clock.now(), base_url.as_str(), signer)?;
        drop(session);
        settings.vault = match master {
            Some(master) => Some(master),
            None => MasterKey::read(path)?,
        };
        let gate = Self::over(store, clock, signer, settings)?;
        if tracing::enabled!(tracing::Level::WARN)
            && let Err(error) = crate::sqlite::told_of_backup(path)
        {
            tracing::warn!(%error, "that this is a backup is said once more the next time");
        }
        Ok(gate)
    }

    /// A gate over a store of one's own, by a clock of one's own: a store in memory and a clock that is moved make a gate for tests
    /// (README, "Test against it").
    ///
    /// `signer` signs receipts; those that [`verify`](Self::verify) knows are of the signing keys that the store has. One that is not on a
    /// ring over them ([`keys::receipt_signer`](crate::keys::receipt_signer)) signs what it calls `unknown_key`: who uses such a one checks
    /// receipts with its public half.
    ///
    /// # Errors
    /// The store gives no session, or no thread can be started.
    pub fn over<B: Backend, C: Clock + Send + Sync + 'static>(
        backend: B,
        clock: C,
        signer: Arc<dyn Signer>,
        settings: Settings,
    ) -> Result<Self, StoreError> {
        let clock: Arc<dyn Clock + Send + Sync> = Arc::new(clock);
        let feed = Arc::new(Feed::new());
        let readers = Bounded::new(backend);
        let newest = Arc::new(Newest::default());
        let health = Arc::new(Health::default());
        let sees = Sees { feed: Arc::clone(&feed), newest: Arc::clone(&newest), health: Arc::clone(&health) };
        let is_shared = readers.backend().is_shared();
        let lanes = Lanes::start(readers.backend(), &clock, &sees, &settings)?;
        let readers = Box::new(readers);
        let (vault, bundle_max) = (settings.vault, settings.bundle_max.clamp(1, RECORDS_MAX));
        let core = Arc::new(Core {
            lanes,
            readers,
            clock,
            newest,
            health,
            signer,
            feed,
            put_off: PutOff::default(),
            bindings: Bindings::default(),
            is_shared,
            keys_looked_at: Mutex::default(),
            vault,
            bundle_max,
        });
        // A store that does not answer yet decides nothing either.
        let _ = core.look_back();
        let listened = Arc::clone(&core);
        let others = if is_shared { Some(Listening::start(listened)?) } else { Listening::beside(listened)? };
        let timers = if settings.timers {
            // What another kind of writer left waiting in the ledger has its place before anything newer.
            let _ = (0..SHARDS).try_for_each(|shard| timers::place(&core, shard).map(drop));
            Some(Timers::start(Arc::clone(&core))?)
        } else {
            None
        };
        Ok(Self { shared: Arc::new(Shared { core, timers: Mutex::new(timers), others: Mutex::new(others) }) })
    }

    /// Has `operation` done and waits for it, on this thread: within a task of a runtime the other tasks of the thread wait too, and
    /// [`submit`](Self::submit) is for them.
    ///
    /// What takes more than one commit has a method of its own, and is refused or told less here: [`decide`](Self::decide) for
    /// `DecideApproval`, [`restart`](Self::restart) for `RestartAgent`, [`lift`](Self::lift) for `LiftHold`,
    /// [`freeze_fleet`](Self::freeze_fleet) for `FreezeFleet`, [`change_mandate`](Self::change_mandate) for `ChangeMandate`,
    /// [`approve_application`](Self::approve_application) for `ApproveApplication`.
    ///
    /// # Errors
    /// [`Failure`]. Nothing happened, unless the commit is [`CommitError::Unknown`]: then nobody knows, and the same request
    /// with the same idempotency key tells.
    pub fn execute<O: Operation>(&self, operation: O) -> Result<O::Answer, Failure<StoreError>> {
        here(self.submit(operation))
    }

    /// Queues `operation` at once; the future, on any executor, is its answer. Dropping the future does not undo it.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn submit<O: Operation>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Answer, Failure<StoreError>>> + Send + use<O> {
        let queued = self.core().lanes.submit(operation.into());
        self.answer::<O>(queued)
    }

    /// As [`submit`](Self::submit), for a task of an executor whose threads call [`about_to_park`](crate::about_to_park)
    /// before they sleep: the lane is woken once for everything that this thread queues until then. Elsewhere the two are
    /// the same. Whoever waits for the future by blocking the thread waits for ever, as nobody wakes the lane.
    ///
    /// # Errors
    /// As [`execute`](Self::execute).
    pub fn submit_before_park<O: Operation>(
        &self,
        operation: O,
    ) -> impl Future<Output = Result<O::Answer, Failure<StoreError>>> + Send + use<O> {
        let queued = self.core().lanes.submit_before_park(operation.into());
        self.answer::<O>(queued)
    }

    fn answer<O: Operation>(
        &self,
        queued: Result<oneshot::Receiver<Outcome>, Failure<StoreError>>,
    ) -> impl Future<Output = Result<O::Answer, Failure<StoreError>>> + Send + use<O> {
        let signer = Arc::clone(&self.core().signer);
        async move {
            // A lane that ends without an answer may have committed: nobody knows.
            let outcome = queued?.await.map_err(|_| Failure::Commit(CommitError::Unknown(StoreError::Closed)))?;
            O::answer(outcome?, &*signer).ok_or(Failure::Load(StoreError::Malformed("a reply of another operation")))
        }
    }

    /// Runs a rule that only reads, on a snapshot, without a lane. What it puts is dropped.
    ///
    /// # Errors
    /// What the rule refuses with, or that rows could not be read.
    pub fn read<T>(&self, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> Result<T, Failure<StoreError>> {
        self.read_at(self.now(), rule)
    }

    /// The same as if it were `at` and nothing had happened until then.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_at<T>(
        &self,
        at: Timestamp,
        rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>,
    ) -> Result<T, Failure<StoreError>> {
        let mut reader = self.core().readers.open().map_err(Failure::Load)?;
        let mut rows = Rows::new(0);
        let read = read(at, &mut rows, |keys| reader.load(keys), rule).map_err(Failure::Load)?;
        read.map_err(Failure::Refused)
    }

    /// What the key with this digest stands for, whether or not it is in force: that is checked where it is used. A binding
    /// never changes, so it is remembered; that there is none is not.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn binding(&self, digest: &Digest) -> Result<Option<Arc<Binding>>, Failure<StoreError>> {
        if let Some(known) = self.core().bindings.get(digest) {
            return Ok(Some(known));
        }
        let found = self.read(|scope| find_binding(scope, digest))?.map(Arc::new);
        if let Some(binding) = &found {
            self.core().bindings.keep(*digest, Arc::clone(binding));
        }
        Ok(found)
    }

    /// What the key with this digest stands for, if that is remembered: no row is read.
    #[must_use]
    pub fn known_binding(&self, digest: &Digest) -> Option<Arc<Binding>> {
        self.core().bindings.get(digest)
    }

    /// Forgets what the key with this digest stands for, once it turned out not to be in force: its bearer is a stranger then.
    pub fn forget_binding(&self, digest: &Digest) {
        self.core().bindings.forget(digest);
    }

    /// A handle for the agent that holds `key`. Whether the key is in force is checked in every decision.
    ///
    /// # Errors
    /// `invalid_api_key` where nobody holds it, `agent_key_required` where it is not an agent's.
    pub fn agent(&self, key: AgentKey) -> Result<AgentHandle, Failure<StoreError>> {
        let unknown = || Failure::Refused(svc_core::refusal::Refusal::invalid_api_key());
        let binding = self.binding(key.digest())?.ok_or_else(unknown)?;
        let caller = Caller::of(&binding).map_err(Failure::Refused)?;
        Ok(AgentHandle::new(self.clone(), caller))
    }

    /// The public receipt keys that the store has, in force or retired.
    ///
    /// # Errors
    /// Rows could not be read, or a stored key is none.
    pub fn public_keys(&self) -> Result<PublicKeys, Failure<StoreError>> {
        let stored = self.read(|scope| {
            let mut rows = Vec::new();
            for generation in 0..=u32::MAX {
                match scope.get::<SigningKey>(SigningUse { purpose: Purpose::Receipt, generation })? {
                    Some(row) => rows.push(row),
                    None => break,
                }
            }
            Ok(rows)
        })?;
        let weak = |_| Failure::Load(StoreError::Malformed("a stored receipt key is not usable"));
        stored.iter().map(|row| PublicKey::of(row).map_err(weak)).collect()
    }

    /// Takes in the signing keys as they stand, for one that is not known here: another server may have had it follow a moment ago. Of
    /// many who ask within a second only the first has them looked up, and is told that it is worth another try.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn look_for_keys(&self) -> Result<bool, Failure<StoreError>> {
        let core = self.core();
        let mut looked = core.keys_looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if core.signer.ring().is_none() || looked.is_some_and(|at| at.elapsed() < KEYS_PAUSE) {
            return Ok(false);
        }
        *looked = Some(Instant::now());
        drop(looked);
        timers::renew(core)?;
        Ok(true)
    }

    /// Every signing key that the store has, private halves sealed, as it stands now.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn signing_keys(&self) -> Result<Vec<SigningKey>, Failure<StoreError>> {
        let mut reader = self.core().readers.open().map_err(Failure::Load)?;
        crate::keys::stored(&mut |keys| reader.load(keys)).map_err(Failure::Load)
    }

    /// Has another key follow those of `purpose`, from 24 hours on, or at once where one is in other hands: then everything that those
    /// signed is refused from now on. Every ledger tells of it.
    ///
    /// # Errors
    /// `not_allowed` where a key waits for its turn already; the gate has no vault; the store does not answer.
    pub fn rotate_key(&self, purpose: Purpose, leaked: Leaked) -> Result<Arc<SigningKey>, Failure<StoreError>> {
        let core = self.core();
        let master = core.vault.as_ref().ok_or(Failure::Load(StoreError::NoVault))?;
        let workspaces = self.workspaces()?;
        let mut load = |keys: &[Key]| core.readers.open()?.load(keys);
        let mut tries = ROTATIONS_MAX;
        let kept = loop {
            tries -= 1;
            let (now, of) = (self.now(), workspaces.clone());
            let rotation = crate::keys::rotation(&mut load, master, purpose, now, leaked, of).map_err(Failure::Load)?;
            let generation = rotation.key.id;
            match self.execute(rotation) {
                // Somebody else's has followed meanwhile: this one follows it, or is told that it waits for its turn.
                Err(Failure::Refused(_))
                    if tries > 0 && self.read(|scope| scope.get::<SigningKey>(generation))?.is_some() => {}
                kept => break kept?,
            }
        };
        self.signer().renew(self.signing_keys()?);
        Ok(kept)
    }

    /// Every workspace of the store, by id.
    pub(crate) fn workspaces(&self) -> Result<Vec<WorkspaceId>, Failure<StoreError>> {
        let found = self.scan_all(Range::all(Index::Workspaces, 0, PAGE))?;
        let id = |it: &Found| match it.row.key {
            Key::Workspace(id) => Some(id),
            _ => None,
        };
        Ok(found.iter().filter_map(id).collect())
    }

    /// Rows as they stand.
    pub(crate) fn load(&self, keys: &[Key]) -> Result<Vec<Record>, Failure<StoreError>> {
        let mut reader = self.core().readers.open().map_err(Failure::Load)?;
        let loaded = reader.load(keys).map_err(Failure::Load)?;
        Ok(loaded.into_iter().filter_map(|it| it.record).collect())
    }

    /// Does what is due now and waits for it: timers, and ledger records that wait for their places. Says when the next
    /// timer is due.
    ///
    /// # Errors
    /// The store does not answer or the queue is full, and what is left is still due; or a row cannot be read, and all else was done.
    pub fn tick(&self) -> Result<Option<Timestamp>, Failure<StoreError>> {
        let pass = timers::pass(self.core(), &mut Following::without_end())?;
        pass.trouble.map_or(Ok(pass.next), Err)
    }

    /// Gives the workspace's waiting ledger records their places now, and waits for it. Of one that cannot be read and does not tell
    /// whose it is nobody's ledger waits: the log tells of it.
    ///
    /// # Errors
    /// The store does not answer or the queue is full; `not_ready` where a record of the workspace's has found no place, as it cannot
    /// be read.
    pub fn place(&self, workspace: WorkspaceId) -> Result<(), Failure<StoreError>> {
        let mut placed = timers::place(self.core(), svc_core::value::link::shard(workspace))?;
        placed.behind.remove(&workspace).map_or(Ok(()), Err)
    }

    /// How many commands wait for each of its lanes, for whoever watches it.
    #[must_use]
    pub fn queue_depths(&self) -> Vec<usize> {
        self.core().lanes.depths()
    }

    /// Hears of changes to agents, approvals, keys and workspaces, from here on; where other processes commit to the same store, also
    /// that [any](crate::Change::any) of them may have changed.
    #[must_use]
    pub fn changes(&self) -> Changes {
        self.core().feed.listen()
    }

    /// Whether other servers commit to the same store.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.core().is_shared
    }

    /// Hears of model calls that this process has lapse, from here on: nobody has told what became of them in time, and they are charged
    /// their estimate. One lapses once, whatever processes share the store.
    #[must_use]
    pub fn lapses(&self) -> Lapses {
        self.core().feed.listen_to_lapses()
    }

    /// Hears of ledgers that have grown, from here on: of nearly every commit.
    #[must_use]
    pub fn growth(&self) -> Changes {
        self.core().feed.listen_to_ledgers()
    }

    /// The present instant by the gate's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.core().clock.now()
    }

    /// Whether this node's clock is behind what it has seen of the store by more than nodes may differ (5 s): what it
    /// decided would count towards windows and periods that are over. No row is read.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.core().newest.is_ahead_of(&*self.core().clock)
    }

    /// Whether the store has just failed to take a commit, such as on a full disk. It is tried again with whatever comes.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.core().health.is_failing(self.now())
    }

    /// As [`is_behind`](Self::is_behind), after a look at the newest records of the next few workspaces: asked again and again,
    /// it comes round to all of them, which a gate looked at when it began.
    ///
    /// # Errors
    /// Rows could not be read.
    pub fn look_back(&self) -> Result<bool, Failure<StoreError>> {
        self.core().look_on()?;
        Ok(self.is_behind())
    }

    /// Who signs receipts.
    #[must_use]
    pub fn signer(&self) -> &Arc<dyn Signer> {
        &self.core().signer
    }

    /// Sixteen fresh random bytes, which hide an action's personal data in its commitments.
    ///
    /// # Errors
    /// The operating system gives none.
    pub fn fresh_salt(&self) -> Result<[u8; 16], Failure<StoreError>> {
        fresh_salt().map_err(Failure::Load)
    }

    /// Seals a secret under the master key for one `purpose`, such as a table and what the row is found by: what is sealed for
    /// one purpose opens for no other.
    ///
    /// # Errors
    /// The gate has no master key, or the operating system gives no random bytes.
    pub fn seal(&self, purpose: &str, secret: &[u8]) -> Result<String, Failure<StoreError>> {
        self.vault().and_then(|it| it.seal(purpose, secret)).map_err(Failure::Load)
    }

    /// Opens what [`seal`](Self::seal) has sealed for `purpose`.
    ///
    /// # Errors
    /// The gate has no master key, or key, purpose or text is another one.
    pub fn open_sealed(&self, purpose: &str, sealed: &str) -> Result<Secret<Vec<u8>>, Failure<StoreError>> {
        self.vault().and_then(|it| it.open(purpose, sealed)).map_err(Failure::Load)
    }

    /// Records of one evidence bundle at most.
    pub(crate) fn bundle_max(&self) -> u64 {
        self.core().bundle_max
    }

    pub(crate) fn vault(&self) -> Result<&MasterKey, StoreError> {
        self.core().vault.as_ref().ok_or(StoreError::NoVault)
    }

    /// Takes no more operations, does those that are queued, and ends the gate's threads. The last clone does so itself when
    /// it is dropped. What reads alone ([`read`](Self::read), [`AgentHandle::get`](crate::AgentHandle::get)) answers afterwards too.
    pub fn close(&self) {
        if let Some(mut timers) = self.shared.timers.lock().unwrap_or_else(PoisonError::into_inner).take() {
            timers.stop();
        }
        drop(self.shared.others.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.core().lanes.close();
        self.core().feed.end();
    }

    pub(crate) fn core(&self) -> &Core {
        &self.shared.core
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gate").field("lanes", &self.core().lanes).finish_non_exhaustive()
    }
}

/// Waits for `future` on this thread, also within a task of a runtime.
pub(crate) fn here<T>(future: impl Future<Output = T>) -> T {
    // A task of tokio has a budget of polls: once that is used up, what it blocks on would never be ready.
    pollster::block_on(unconstrained(future))
}

/// Between two looks for a signing key that is not known: whoever shows made-up ones costs no more.
const KEYS_PAUSE: Duration = Duration::from_secs(1);
/// How often a rotation is tried where others come before it.
const ROTATIONS_MAX: u32 = 100;
/// Rows that are looked up at once.
pub(crate) const PAGE: usize = 500;
