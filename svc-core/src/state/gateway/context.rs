//! What entered a session's context, as the gateway saw it: where from and its digest, never what it was.

use serde::{Deserialize, Serialize};

use crate::value::digest::{ContextKey, Digest};
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked};
use crate::value::text::{SessionId, Source};
use crate::value::{Id, Timestamp};

/// So many results are kept of a session, the newest; that a source was seen at all is kept with the session for good.
pub const CONTEXT_KEPT: usize = 256;

/// What tools brought into a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Workspace and session id, as one digest.
    pub id: ContextKey,
    /// The newest results, the oldest first, each digest once.
    pub seen: Vec<Seen>,
}

/// One result that a tool brought in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// What it counts as, by the tool table.
    pub source: Source,
    /// The digest of its content.
    pub digest: Digest,
    /// When it was first seen.
    pub at: Timestamp,
}

impl Context {
    /// The row for these two.
    #[must_use]
    pub fn id_of(workspace: WorkspaceId, session: &SessionId) -> ContextKey {
        ContextKey::of(&[&workspace.bits().to_be_bytes(), session.as_str().as_bytes()])
    }

    /// Notes a result; `false` where it is noted already.
    pub fn note(&mut self, source: &Source, digest: Digest, at: Timestamp) -> bool {
        if self.seen.iter().any(|it| it.digest == digest) {
            return false;
        }
        self.seen.push(Seen { source: source.clone(), digest, at });
        let over = self.seen.len().saturating_sub(CONTEXT_KEPT);
        self.seen.drain(..over);
        true
    }
}

impl Linked for Context {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
