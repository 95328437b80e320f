//! Accounts and sessions: who signs in, with what proof, and for how long.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::digest::{Digest, SessionDigest, SignInLinkId};
use crate::value::id::{AccountId, PrincipalId, SessionId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Email, Label};
use crate::value::{Id, Span, Timestamp};

/// Who signs in. An account is linked to at most one principal in each workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its id.
    pub id: AccountId,
    /// What it signs in with.
    pub email: Email,
    /// What people call its holder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// The password, once one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// The second factor, once it was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_factor: Option<SecondFactor>,
    /// The secret of a second factor that waits to be confirmed, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrolling: Option<Box<str>>,
    /// The one-time link in force: a new one voids the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<SignInLinkId>,
    /// Its sessions that were not ended, oldest first, at most [`SESSIONS_MAX`] of its own sign-in and as many of each workspace's
    /// provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionDigest>,
    /// The principals it is, oldest first.
    pub memberships: Vec<Membership>,
    /// Grows by one when every session is to end: what was signed in under an older one is void.
    pub epoch: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_in_at: Option<Timestamp>,
}

/// One workspace of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Who the account is there.
    pub principal: PrincipalId,
}

/// A password, as what is kept of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    /// Its Argon2id hash in PHC form.
    pub hash: Box<str>,
    /// When it was set.
    pub set_at: Timestamp,
}

/// Without the hash: short passwords can be found by it, and what is printed for a look ends in logs.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Password").field("set_at", &self.set_at).finish_non_exhaustive()
    }
}

/// A time-based one-time password (RFC 6238) and what stands in for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    /// The shared secret, sealed.
    pub sealed: Box<str>,
    /// The last time step that was accepted: no code counts twice.
    pub last_step: u64,
    /// Digests of recovery codes that were not used yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovery: Vec<Digest>,
}

impl Account {
    /// An account that has never signed in and is a member of nothing.
    #[must_use]
    pub const fn new(id: AccountId, email: Email, created_at: Timestamp) -> Self {
        Self {
            id,
            email,
            name: None,
            password: None,
            second_factor: None,
            enrolling: None,
            link: None,
            sessions: Vec::new(),
            memberships: Vec::new(),
            epoch: 0,
            created_at,
            signed_in_at: None,
        }
    }

    /// What an account's second factor is sealed for, and nothing else opens.
    #[must_use]
    pub fn factor_purpose(id: AccountId) -> String {
        format!("account/{id}/totp")
    }

    /// Who the account is in `workspace`.
    #[must_use]
    pub fn principal_in(&self, workspace: WorkspaceId) -> Option<PrincipalId> {
        self.memberships.iter().find(|it| it.workspace == workspace).map(|it| it.principal)
    }
}

impl Linked for Account {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// How many sessions an account has at most of its own sign-in, and of each workspace's provider: one more ends the oldest of
/// these.
pub const SESSIONS_MAX: usize = 64;
/// How long a session lasts at most.
pub const SESSION_LIFE: Span = Span::hours(7 * 24);
/// How long a session lasts without a request.
pub const SESSION_IDLE: Span = Span::hours(12);

/// A signed-in session, by the digest of its cookie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The first half of the digest.
    pub id: SessionDigest,
    /// The whole digest.
    pub digest: Digest,
    /// What people see of it.
    pub session: SessionId,
    /// Whose.
    pub account: AccountId,
    /// The account's epoch it was made under.
    pub epoch: u32,
    /// How it was made.
    pub proof: Proof,
    /// Whether the second factor has to be set up before anything else.
    #[serde(default)]
    pub must_enroll: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last used, as far as that was written.
    pub seen_at: Timestamp,
    /// When it was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
}

/// How a session was made. It is good only where this proof counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// E-mail and password: good in every workspace that does not require single sign-on.
    Password,
    /// A one-time link: good in the same.
    Link,
    /// A workspace's identity provider: good in that workspace alone.
    Sso(WorkspaceId),
}

impl Proof {
    /// The workspace whose provider vouches for it; `None` where it is the account's own.
    #[must_use]
    pub const fn provider(self) -> Option<WorkspaceId> {
        match self {
            Self::Password | Self::Link => None,
            Self::Sso(of) => Some(of),
        }
    }
}

impl Session {
    /// The row of the session with this cookie's digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> SessionDigest {
        SessionDigest::of(&[digest.as_bytes()])
    }

    /// When it ends by itself if nobody uses it.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.plus(SESSION_LIFE).min(self.seen_at.plus(SESSION_IDLE))
    }

    /// When its row has nothing left to do: where it still stands its end is recorded, and then it goes.
    #[must_use]
    pub fn wake_at(&self) -> Timestamp {
        if self.ended_at.is_some() { self.created_at.plus(SESSION_LIFE) } else { self.expires_at() }
    }

    /// Whether it is in force, as far as this row tells.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.ended_at.is_none() && now < self.expires_at()
    }
}

impl Linked for Session {
    fn links(&self) -> Vec<Link> {
        let listed = Link::by_id(Index::SessionsOf, self.account.bits(), self.session);
        vec![listed, Link::wake_of(self.account.bits(), self.wake_at())]
    }
}

#[cfg(test)]
mod tests {
    use super::Password;
    use crate::value::Timestamp;

    #[test]
    fn what_is_printed_of_a_password_holds_no_hash() {
        let password = Password {
            hash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".into(),
            set_at: Timestamp::from_millis(1_790_000_000_000),
        };
        let printed = format!("{password:?} {password:#?}");
        assert!(
            printed.contains("set_at") && !printed.contains("argon2id") && !printed.contains("aGFzaA"),
            "{printed}"
        );
    }
}
