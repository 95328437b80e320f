//! Gives ledger records their places: `seq`, the hash of the record before, and their own.

use crate::refusal::Refusal;
use crate::state::evidence::{Chain, Entry};
use crate::store::{Key, Row};
use crate::turn::{Halt, Scope};
use crate::value::id::{EvidenceId, WorkspaceId};

/// Places records of one workspace, in the order in which they are named: that of the index of waiting records, which
/// is the order of their commits and within a commit that of their writing.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// The records that wait.
    pub entries: Vec<EvidenceId>,
}

/// Places what still waits, and gives how many records have places now. What another sequencer placed is passed over.
///
/// # Errors
/// `internal` where the chain is not there.
pub fn sequence(scope: &mut Scope<'_>, asked: &Sequence) -> Result<u64, Halt> {
    let mut keys: Vec<Key> = asked.entries.iter().map(|id| Entry::key(*id)).collect();
    keys.push(Chain::key(asked.workspace));
    scope.want(&keys)?;
    let head = scope.get::<Chain>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    let mut chain = Chain::clone(&head);
    for id in &asked.entries {
        let waits = |it: &std::sync::Arc<Entry>| it.place.is_none() && it.workspace == asked.workspace;
        if let Some(entry) = scope.get::<Entry>(*id)?.filter(waits) {
            let placed = chain.place(Entry::clone(&entry));
            scope.put(placed);
        }
    }
    let size = chain.size;
    if chain != *head {
        scope.put(chain);
    }
    Ok(size)
}
