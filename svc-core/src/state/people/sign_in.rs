//! What stands between a stranger and a session: one-time links, and sign-ins that wait for the second factor.
//!
//! **Invariant:** rows are found by the digest of the secret; the secret itself is nowhere.

use serde::{Deserialize, Serialize};

use super::account::Proof;
use crate::value::digest::{Digest, PendingSignInId, SignInLinkId};
use crate::value::id::AccountId;
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How long a one-time link lives, unless it lives until it is used.
pub const LINK_LIFE: Span = Span::hours(1);
/// How long a sign-in waits for its second factor.
pub const PENDING_LIFE: Span = Span::minutes(5);
/// How many tries a sign-in has at its second factor.
pub const PENDING_TRIES: u8 = 5;

/// A one-time link. It is in force while its account names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignInLink {
    /// The first half of the digest.
    pub id: SignInLinkId,
    /// The whole digest.
    pub digest: Digest,
    /// Whom it signs in.
    pub account: AccountId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself; absent where it lives until it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl SignInLink {
    /// The row of the link with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> SignInLinkId {
        SignInLinkId::of(&[digest.as_bytes()])
    }
}

impl Linked for SignInLink {
    fn links(&self) -> Vec<Link> {
        self.expires_at.map(|at| Link::wake_of(self.account.bits(), at)).into_iter().collect()
    }
}

/// A sign-in whose first proof was good and that waits for the second factor, or whose every proof was good where only single
/// sign-on gives a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingSignIn {
    /// The first half of the digest.
    pub id: PendingSignInId,
    /// The whole digest.
    pub digest: Digest,
    /// Whose.
    pub account: AccountId,
    /// The account's epoch it was begun under.
    pub epoch: u32,
    /// The first proof.
    pub proof: Proof,
    /// How many codes were wrong.
    #[serde(default)]
    pub tries: u8,
    /// Whether nothing more is to be shown: it proves whose the account is, to whom single sign-on is to be linked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proven: bool,
    /// Until when it waits.
    pub expires_at: Timestamp,
}

impl PendingSignIn {
    /// The row of the sign-in with this digest.
    #[must_use]
    pub fn id_of(digest: &Digest) -> PendingSignInId {
        PendingSignInId::of(&[digest.as_bytes()])
    }

    /// Whether it still takes a code.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.tries < PENDING_TRIES && now < self.expires_at
    }
}

impl Linked for PendingSignIn {
    fn links(&self) -> Vec<Link> {
        vec![Link::wake_of(self.account.bits(), self.expires_at)]
    }
}
