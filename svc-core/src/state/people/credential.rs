//! Keys: what a secret's digest stands for. The binding never changes, so it may be cached for ever. Whether the key is in
//! force is a member of the agent for an agent's key, and of this row for any other.

use serde::{Deserialize, Serialize};

use super::maker::Maker;
use crate::value::digest::{CredentialId, Digest};
use crate::value::id::{AgentId, ConnectionId, KeyId, PrincipalId, ProfileId, TeamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{ClassId, Label};
use crate::value::words::words;
use crate::value::{Id, Timestamp};

/// A key, by the digest of its whole text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credential {
    /// The first half of the digest.
    pub id: CredentialId,
    /// The whole digest: two keys whose halves agree are still two keys.
    pub digest: Digest,
    /// What the key stands for.
    pub binding: Binding,
    /// Its first 12 characters, which people may see.
    pub prefix: Box<str>,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// The keys that this one ends with: the admin key that made it, and those that that one ends with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_under: Vec<CredentialId>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl Credential {
    /// The row of the key with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> CredentialId {
        CredentialId::of(&[digest.as_bytes()])
    }

    /// Whether it ends with `person`'s membership: the key of an agent does where they made it, an admin key there too and where
    /// its traffic counts for them, one for traffic alone only there.
    #[must_use]
    pub fn ends_with(&self, person: PrincipalId) -> bool {
        match self.binding.scope {
            KeyScope::Agent(_) => self.created_by == Some(Maker::Person(person)),
            KeyScope::Admin | KeyScope::Inference => {
                self.binding.principal == person || self.administers_for() == Some(person)
            }
        }
    }

    /// The person who made it, where it is an admin key: it may do no more than they may.
    #[must_use]
    pub const fn administers_for(&self) -> Option<PrincipalId> {
        match (self.binding.scope, &self.created_by) {
            (KeyScope::Admin, Some(Maker::Person(person))) => Some(*person),
            _ => None,
        }
    }

    /// Whether the key is in force at `now`, as far as this row tells.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

impl Linked for Credential {
    fn links(&self) -> Vec<Link> {
        // An access token is found by its connection.
        let listed = self.binding.connection.is_none();
        listed
            .then(|| Link::by_id(Index::KeysOf, self.binding.workspace.bits(), self.binding.key))
            .into_iter()
            .collect()
    }
}

/// What a key stands for; never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The binding's own id.
    pub key: KeyId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What it may do.
    pub scope: KeyScope,
    /// Who its traffic counts for.
    pub principal: PrincipalId,
    /// The team its traffic counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// The class of its tasks where a call names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_class: Option<ClassId>,
    /// What its calls must satisfy beside their class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileId>,
    /// Whether a call may name another class.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub task_class_open: bool,
    /// The connection whose access token it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
}

impl Binding {
    /// Under which key its traffic is counted: that of a connection is one, however often its tokens are renewed.
    #[must_use]
    pub fn counts_as(&self) -> KeyId {
        self.connection.map_or(self.key, |it| KeyId::from_bits(it.bits()))
    }
}

/// What a key may do (SPEC part 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyScope {
    /// Ask the gate as this agent, and carry its model traffic.
    Agent(AgentId),
    /// Model traffic, reports and administration.
    Admin,
    /// Model traffic.
    Inference,
}

words! {
    /// The word for it.
    KeyScope::as_str;
    Agent "agent";
    Admin "admin";
    Inference "inference";
}
