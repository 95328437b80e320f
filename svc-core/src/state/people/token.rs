//! Service tokens: what a machine shows to administer agents (SPEC part 5).

use core::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::digest::{CredentialId, Digest};
use crate::value::id::{PrincipalId, TokenId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Label;
use crate::value::{Id, Timestamp};

/// A service token, by the digest of its whole text. All but `revoked_at` never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceToken {
    /// The first half of the digest.
    pub id: CredentialId,
    /// The whole digest.
    pub digest: Digest,
    /// What people see of it.
    pub token: TokenId,
    /// The workspace it administers.
    pub workspace: WorkspaceId,
    /// What people call it: the ledger names it `token:<name>`.
    pub name: Label,
    /// What it may do.
    pub scopes: Vec<TokenScope>,
    /// The address ranges it is pinned to; none is anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_allow: Vec<IpNet>,
    /// Which owner made it; absent where the operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<PrincipalId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself: at most 90 days after it was made.
    pub expires_at: Timestamp,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl ServiceToken {
    /// The row of the token with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> CredentialId {
        CredentialId::of(&[b"token", digest.as_bytes()])
    }

    /// Whether it may be shown from `address`. An IPv4 address inside IPv6 counts as IPv4.
    #[must_use]
    pub fn admits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.ip_allow.is_empty() || self.ip_allow.iter().any(|it| it.contains(&address))
    }
}

impl Linked for ServiceToken {
    fn links(&self) -> Vec<Link> {
        vec![Link::by_id(Index::TokensOf, self.workspace.bits(), self.token)]
    }
}

/// What a service token may do. No scope decides an approval, and none lifts a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TokenScope {
    /// List agents and their standing.
    #[serde(rename = "agents:read")]
    AgentsRead,
    /// Register agents from a blueprint.
    #[serde(rename = "agents:write")]
    AgentsWrite,
    /// Freeze agents, run drills.
    #[serde(rename = "agents:freeze")]
    AgentsFreeze,
    /// Read waiting approvals and suggested rules.
    #[serde(rename = "approvals:read")]
    ApprovalsRead,
    /// Take evidence and the scorecard.
    #[serde(rename = "evidence:read")]
    EvidenceRead,
}

impl TokenScope {
    /// Every scope.
    pub const ALL: [Self; 5] =
        [Self::AgentsRead, Self::AgentsWrite, Self::AgentsFreeze, Self::ApprovalsRead, Self::EvidenceRead];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentsRead => "agents:read",
            Self::AgentsWrite => "agents:write",
            Self::AgentsFreeze => "agents:freeze",
            Self::ApprovalsRead => "approvals:read",
            Self::EvidenceRead => "evidence:read",
        }
    }

    /// The scope with this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}
