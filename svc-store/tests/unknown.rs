//! Commits whose outcome got lost beside other servers on the same store.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use svc_core::rules::evidence::sequence::Sequence;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::state::evidence::{Chain, Entry};
use svc_core::state::people::Settings as WorkspaceSettings;
use svc_core::store::{Commit, CommitError, Committed, Found, Key, Loaded, MemoryStore, Range, Row as _, Store};
use svc_core::testing::world::{World, request, terms};
use svc_core::value::Id as _;
use svc_core::value::id::{EvidenceId, WorkspaceId};
use svc_core::value::link::{Index, shard};
use svc_store::{Backend, Gate, Settings, StoreError};

/// What happens between a commit and the loss of its outcome, once.
type Meanwhile = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A store that others write to as well, and that loses the outcome of a commit of ledger records where something is to happen
/// meanwhile.
#[derive(Clone)]
struct Cut {
    store: MemoryStore,
    meanwhile: Meanwhile,
}

impl Backend for Cut {
    type Session = Self;

    fn lanes(&self) -> usize {
        1
    }

    fn writer(&self) -> Result<Self, StoreError> {
        Ok(self.clone())
    }

    fn reader(&self) -> Result<Self, StoreError> {
        Ok(self.clone())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Store for Cut {
    type Error = StoreError;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, StoreError> {
        self.store.load(keys).map_err(StoreError::of)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Committed, CommitError<StoreError>> {
        let done = self.store.commit(commit).map_err(|error| CommitError::Unavailable(StoreError::of(error)))?;
        let records = commit.writes.iter().any(|write| matches!(write.key, Key::Entry(_)));
        match self.meanwhile.lock().unwrap().take_if(|_| records && matches!(done, Committed::Applied(_))) {
            Some(happens) => {
                happens();
                Err(CommitError::Unknown(StoreError::Closed))
            }
            None => Ok(done),
        }
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, StoreError> {
        self.store.scan(range).map_err(StoreError::of)
    }
}

fn waiting(store: &mut MemoryStore, workspace: WorkspaceId) -> Vec<EvidenceId> {
    let found = store.scan(&Range::all(Index::Unplaced, shard(workspace), 100)).unwrap();
    found.iter().filter_map(|it| if let Key::Entry(id) = it.row.key { Some(id) } else { None }).collect()
}

/// A record whose commit's outcome got lost is placed by another server before it is looked for: whoever asked is answered, and the
/// record is not placed a second time by the server that wrote it, which has read it as one that waits.
#[test]
fn a_record_is_placed_once_though_its_commit_was_looked_for() {
    let mut store = MemoryStore::new();
    let mut world = World::over(store.clone(), WorkspaceSettings::default());
    let agent = world.agent().with_mandate(terms(r#"{"name":"Notes","actions":["note.write"]}"#)).register();
    let (clock, signer, workspace) = (world.clock().clone(), Arc::clone(world.engine().signer()), world.workspace());
    let mut settings = Settings::default();
    settings.timers = false;
    let backend = Cut { store: store.clone(), meanwhile: Meanwhile::default() };
    let meanwhile = Arc::clone(&backend.meanwhile);
    let gate = Gate::over(backend, clock, signer, settings).unwrap();
    let ask = || gate.execute(Authorize::new(agent, request("note.write"), [7; 16])).map(|it| it.id());
    ask().unwrap();

    let world = Arc::new(Mutex::new(world));
    let (other, mut seen) = (Arc::clone(&world), store.clone());
    let named = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&named);
    *meanwhile.lock().unwrap() = Some(Box::new(move || {
        let entries = waiting(&mut seen, workspace);
        own.lock().unwrap().clone_from(&entries);
        other.lock().unwrap().run(Sequence { workspace, entries }).unwrap();
    }));
    ask().unwrap();
    let entries = named.lock().unwrap().clone();
    assert!(entries.len() > 1, "what was asked before and what got lost: {entries:?}");
    // As a timer names them that has looked before they were placed.
    gate.execute(Sequence { workspace, entries: entries.clone() }).unwrap();
    ask().unwrap();
    let entries = waiting(&mut store, workspace);
    gate.execute(Sequence { workspace, entries }).unwrap();

    let placed = store.scan(&Range::all(Index::LedgerOf, workspace.bits(), 1_000)).unwrap();
    let records: BTreeSet<Key> = placed.iter().map(|it| it.row.key).collect();
    assert_eq!(placed.len(), records.len(), "each stands at one place");
    let chain = world.lock().unwrap().row::<Chain>(workspace);
    assert_eq!(chain.size, u64::try_from(placed.len()).unwrap());
    for (place, found) in (0..).zip(&placed) {
        let rows = store.load(&[found.row.key]).unwrap();
        let entry = Entry::peel(rows[0].record.as_ref().unwrap()).unwrap();
        assert_eq!(entry.place.as_ref().map(|it| it.seq), Some(place));
    }
}
