//! Whom a workspace's identity provider knows by which name.
//!
//! **Invariant:** the name itself is nowhere: rows are found by a digest over it.

use serde::{Deserialize, Serialize};

use crate::value::digest::SsoLinkId;
use crate::value::id::{AccountId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id as _, Timestamp};

/// That a workspace's identity provider vouches for an account. It is in force while the account's member in that workspace names
/// it: of one member there is one at a time. What is linked in one workspace says nothing in another, whoever the issuer is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SsoLink {
    /// Where it is found.
    pub id: SsoLinkId,
    /// The workspace whose provider it is.
    pub workspace: WorkspaceId,
    /// The account.
    pub account: AccountId,
    /// When it was made.
    pub created_at: Timestamp,
}

impl SsoLink {
    /// The row of whom `issuer` calls `subject` (`iss` and `sub` of OpenID Connect) in `workspace`.
    #[must_use]
    pub fn id_of(workspace: WorkspaceId, issuer: &str, subject: &str) -> SsoLinkId {
        SsoLinkId::of(&[&workspace.bits().to_be_bytes(), issuer.as_bytes(), subject.as_bytes()])
    }
}

impl Linked for SsoLink {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
