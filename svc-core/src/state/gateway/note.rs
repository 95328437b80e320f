//! The record that a refusal of a model call leaves: at most one a minute for a credential and a type, repeats counted.

use serde::{Deserialize, Serialize};

use crate::value::digest::RefusalKey;
use crate::value::id::{EvidenceId, KeyId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// For so long one record stands for all refusals of its kind.
pub const REFUSAL_KEPT: Span = Span::minutes(1);

/// The newest record of a credential's refusals of one type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalNote {
    /// Credential and type, as one digest.
    pub id: RefusalKey,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The credential.
    pub key: KeyId,
    /// The refusals' type.
    pub kind: Box<str>,
    /// The record.
    pub evidence: EvidenceId,
    /// When it was written.
    pub at: Timestamp,
    /// How many refusals after the first it stands for.
    pub repeats: u32,
}

impl RefusalNote {
    /// The row for these two.
    #[must_use]
    pub fn id_of(key: KeyId, kind: &str) -> RefusalKey {
        RefusalKey::of(&[&key.bits().to_be_bytes(), kind.as_bytes()])
    }

    /// Whether its record stands for a refusal made now.
    #[must_use]
    pub fn stands(&self, now: Timestamp) -> bool {
        now.since(self.at) < REFUSAL_KEPT
    }
}

impl Linked for RefusalNote {
    fn links(&self) -> Vec<Link> {
        // Where it stands for more than one, their number is told in a record once it stands for no more.
        (self.repeats > 0).then(|| Link::wake(self.workspace, self.at.plus(REFUSAL_KEPT))).into_iter().collect()
    }
}
