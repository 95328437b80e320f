//! Service tokens: what a machine shows to administer agents (SPEC part 5).

use core::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::value::digest::{CredentialId, Digest, TokenNameId};
use crate::value::id::{ApprovalId, PrincipalId, TokenId, WorkspaceId};
use crate::value::likeness::told_by;
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

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

    /// Whether it is in force at `now`, wherever it is shown.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
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

/// Which service token has a name in its workspace: names are unique among those in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenName {
    /// Its row.
    pub id: TokenNameId,
    /// The token that was last made with it.
    pub token: CredentialId,
}

impl TokenName {
    /// The row of this name in this workspace. Names that look alike are one.
    #[must_use]
    pub fn id_of(workspace: WorkspaceId, name: &Label) -> TokenNameId {
        Self::id_as_written(workspace, &told_by(name.as_str()))
    }

    /// The rows in which this name may stand: rows of before have it as it was written. Nearly always that is one.
    #[must_use]
    pub fn ids_of(workspace: WorkspaceId, name: &Label) -> Vec<TokenNameId> {
        let mut ids = vec![Self::id_of(workspace, name), Self::id_as_written(workspace, name.as_str())];
        ids.dedup();
        ids
    }

    fn id_as_written(workspace: WorkspaceId, name: &str) -> TokenNameId {
        TokenNameId::of(&[&workspace.bits().to_be_bytes(), name.as_bytes()])
    }
}

impl Linked for TokenName {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// How long a service token lasts at most, in days.
pub const TOKEN_DAYS_MAX: u16 = 90;

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

words! { TokenScope;
    AgentsRead "agents:read";
    AgentsWrite "agents:write";
    AgentsFreeze "agents:freeze";
    ApprovalsRead "approvals:read";
    EvidenceRead "evidence:read";
}

/// How far back a token's freezes count against its ceiling.
pub const CEILING_WINDOW: Span = Span::minutes(60);

/// How many of a token's freezes past its ceiling may wait for a person at once.
pub const FREEZES_ASKED_MAX: usize = 20;

/// What a service token has done of late. It is made with the token, and read only where the token acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUse {
    /// The token.
    pub token: TokenId,
    /// The workspace it administers.
    pub workspace: WorkspaceId,
    /// When it froze how many agents that were active until then, within the last hour, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freezes: Vec<(Timestamp, u32)>,
    /// What persons were asked because of its ceiling and waited when it last asked, the oldest first, at most
    /// [`FREEZES_ASKED_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<ApprovalId>,
    /// When it started its last drill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drilled_at: Option<Timestamp>,
}

impl TokenUse {
    /// A token that has done nothing yet.
    #[must_use]
    pub const fn none(token: TokenId, workspace: WorkspaceId) -> Self {
        Self { token, workspace, freezes: Vec::new(), waiting: Vec::new(), drilled_at: None }
    }

    /// How many agents it has frozen in the sixty minutes that end at `now`.
    #[must_use]
    pub fn frozen_lately(&self, now: Timestamp) -> u32 {
        let since = now.minus(CEILING_WINDOW);
        self.freezes.iter().filter(|(at, _)| *at > since).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The same, after it froze `count` more at `now`. What is older than an hour is forgotten.
    #[must_use]
    pub fn froze(mut self, now: Timestamp, count: u32) -> Self {
        // A node whose clock is behind does not make the window shorter.
        let at = self.freezes.last().map_or(now, |(last, _)| now.max(*last));
        self.freezes.retain(|(then, _)| *then > at.minus(CEILING_WINDOW));
        match self.freezes.last_mut() {
            Some((then, sum)) if *then == at => *sum = sum.saturating_add(count),
            _ => self.freezes.push((at, count)),
        }
        self
    }
}

impl Linked for TokenUse {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hour slides: a freeze counts for sixty minutes to the millisecond, and no longer.
    #[test]
    fn a_freeze_counts_for_an_hour_to_the_millisecond() {
        let at = |ms: i64| Timestamp::from_millis(1_790_847_000_000 + ms);
        let used = TokenUse::none(TokenId::from_bits(1), WorkspaceId::from_bits(2));
        let used = used.froze(at(0), 3).froze(at(0), 1).froze(at(1), 5);
        assert_eq!(used.freezes, [(at(0), 4), (at(1), 5)]);
        for (ms, count) in [(1, 9), (3_599_999, 9), (3_600_000, 5), (3_600_001, 0)] {
            assert_eq!(used.frozen_lately(at(ms)), count, "after {ms} ms");
        }
        assert_eq!(used.froze(at(3_600_001), 1).freezes, [(at(3_600_001), 1)]);
    }

    /// A node whose clock is behind adds to the newest instant: nothing is forgotten early.
    #[test]
    fn a_clock_that_is_behind_forgets_nothing() {
        let at = |ms: i64| Timestamp::from_millis(1_790_847_000_000 + ms);
        let used = TokenUse::none(TokenId::from_bits(1), WorkspaceId::from_bits(2));
        let used = used.froze(at(5_000), 2).froze(at(0), 1);
        assert_eq!(used.freezes, [(at(5_000), 3)]);
        assert_eq!(used.frozen_lately(at(0)), 3);
    }
}
