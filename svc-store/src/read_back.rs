//! Reading ledgers back: whether the stored records are still those that chain and tree were made of. A record's hash follows from all that
//! its row says, so what was changed beside the gate is not what the record behind it names.
//!
//! **Invariant:** nothing is changed, and no more is held in memory than a page of records and the places of ledgers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::state::evidence::merkle::{Edge, leaf_hash};
use svc_core::state::evidence::{Chain, Entry};
use svc_core::store::{Found, Key, Range, Row as _, Store};
use svc_core::value::Id as _;
use svc_core::value::digest::Digest;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;

use crate::error::StoreError;

/// Records, and workspaces, that are read at once.
const PAGE: usize = 256;
/// The hash before the first record.
const NONE: [u8; 32] = [0; 32];

type Stored<'a> = dyn Store<Error = StoreError> + 'a;

/// What was read back, all of which fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// How many records.
    pub records: u64,
    /// Whether these are all that there are.
    pub is_all: bool,
}

/// Reads the newest records of each ledger back, for as long as `patience` allows.
///
/// # Errors
/// [`StoreError::Corrupt`] with the first record that is not the one which the next, or the chain's head, names; rows cannot be read.
pub fn newest(store: &mut Stored<'_>, patience: Duration) -> Result<ReadBack, StoreError> {
    let (began, mut read) = (Instant::now(), ReadBack { records: 0, is_all: true });
    for chain in chains(store)? {
        let (mut next, mut expected) = (chain.size, chain.head);
        while next > 0 {
            if began.elapsed() >= patience {
                read.is_all = false;
                return Ok(read);
            }
            let range = Range { newest_first: true, until: next.into(), ..ledger(&chain) };
            let page = store.scan(&range)?;
            if page.is_empty() {
                return Err(altered(chain.workspace, next.saturating_sub(1)));
            }
            for found in &page {
                let seq = next.saturating_sub(1);
                let (hash, prev) = at(found, seq).ok_or_else(|| altered(chain.workspace, seq))?;
                if hash != expected {
                    return Err(altered(chain.workspace, seq));
                }
                (next, expected) = (seq, prev);
                read.records = read.records.saturating_add(1);
            }
        }
        if expected != Digest::from_bytes(NONE) {
            return Err(altered(chain.workspace, 0));
        }
    }
    Ok(read)
}

/// Reads every ledger back, from its first record on, with the tree of its records. `told` hears how many records were read, and of how
/// many; nothing more is read once it says no.
///
/// # Errors
/// As [`newest`].
pub fn all(store: &mut Stored<'_>, told: &mut dyn FnMut(u64, u64) -> bool) -> Result<ReadBack, StoreError> {
    let chains = chains(store)?;
    let total = chains.iter().map(|it| it.size).fold(0, u64::saturating_add);
    let mut read = ReadBack { records: 0, is_all: true };
    for chain in chains {
        let (mut next, mut last, mut edge) = (0, Digest::from_bytes(NONE), Edge::default());
        while next < chain.size {
            if !told(read.records, total) {
                return Ok(ReadBack { is_all: false, ..read });
            }
            let page = store.scan(&Range { from: next.into(), until: chain.size.into(), ..ledger(&chain) })?;
            if page.is_empty() {
                return Err(altered(chain.workspace, next));
            }
            for found in &page {
                let (hash, prev) = at(found, next).ok_or_else(|| altered(chain.workspace, next))?;
                if prev != last {
                    return Err(altered(chain.workspace, next.saturating_sub(1)));
                }
                edge.push(next, leaf_hash(hash.as_bytes()));
                (next, last) = (next.saturating_add(1), hash);
                read.records = read.records.saturating_add(1);
            }
        }
        if last != chain.head || edge.root() != chain.root() {
            return Err(altered(chain.workspace, chain.size.saturating_sub(1)));
        }
    }
    told(total, total);
    Ok(read)
}

fn ledger(chain: &Chain) -> Range {
    Range::all(Index::LedgerOf, chain.workspace.bits(), PAGE)
}

/// The hash of the record that was found, and of the one before it, where it stands at `seq`.
fn at(found: &Found, seq: u64) -> Option<(Digest, Digest)> {
    let place = found.row.record.as_ref().and_then(Entry::peel)?.place.as_ref()?;
    (place.seq == seq).then_some((place.hash, place.prev))
}

/// The heads of all ledgers.
fn chains(store: &mut Stored<'_>) -> Result<Vec<Arc<Chain>>, StoreError> {
    let (mut out, mut after) = (Vec::new(), None);
    loop {
        let page = store.scan(&Range { after, ..Range::all(Index::Workspaces, 0, PAGE) })?;
        let id = |found: &Found| if let Key::Workspace(id) = found.row.key { Some(id) } else { None };
        let keys: Vec<Key> = page.iter().filter_map(id).map(Chain::key).collect();
        let rows = if keys.is_empty() { Vec::new() } else { store.load(&keys)? };
        out.extend(rows.iter().filter_map(|it| it.record.as_ref().and_then(Chain::peel)).cloned());
        match page.last().filter(|_| page.len() == PAGE) {
            Some(last) => after = Some((last.order, last.row.key)),
            None => return Ok(out),
        }
    }
}

/// That a record is not where it was written.
#[must_use]
pub fn altered(workspace: WorkspaceId, seq: u64) -> StoreError {
    let what = format!(
        "record {seq} of the ledger of {workspace} is not the one that was written there: it, or what names it, was changed or taken out \
         beside the gate"
    );
    StoreError::Corrupt(Arc::new(std::io::Error::other(what)))
}
