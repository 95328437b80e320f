//! Signing keys at rest: the public half in the open, the private half sealed by the shell under its master key.

use serde::{Deserialize, Serialize};

use crate::value::link::{Link, Linked, RowId};
use crate::value::words::words;
use crate::value::{Span, Timestamp};

/// How long before its first use a key is published.
pub const PUBLISHED_BEFORE: Span = Span::hours(24);
/// No receipt is good for longer.
const RECEIPT_MAX: Span = Span::hours(24);

/// What a signing key is for; each use has keys of its own, numbered by generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SigningUse {
    /// What it signs.
    pub purpose: Purpose,
    /// Which of them, from 0.
    pub generation: u32,
}

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Receipts.
    Receipt,
    /// Ledger checkpoints.
    Checkpoint,
    /// Scorecards.
    Scorecard,
}

impl SigningUse {
    /// The first key that signs receipts.
    pub const RECEIPT: Self = Self::first(Purpose::Receipt);

    /// The first key of a use.
    #[must_use]
    pub const fn first(purpose: Purpose) -> Self {
        Self { purpose, generation: 0 }
    }
}

words! { Purpose;
    Receipt "receipt";
    Checkpoint "checkpoint";
    Scorecard "scorecard";
}

impl RowId for SigningUse {
    fn parts(self) -> (u128, Option<u32>) {
        let purpose = match self.purpose {
            Purpose::Receipt => 0,
            Purpose::Checkpoint => 1,
            Purpose::Scorecard => 2,
        };
        (purpose, Some(self.generation))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        let purpose = match bits {
            0 => Purpose::Receipt,
            1 => Purpose::Checkpoint,
            2 => Purpose::Scorecard,
            _ => return None,
        };
        Some(Self { purpose, generation: number? })
    }
}

/// One signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SigningKey {
    /// Its use and generation.
    pub id: SigningUse,
    /// The public key, base64url of 32 bytes.
    pub public: Box<str>,
    /// The private seed, sealed by the shell: this crate never opens it.
    pub sealed: Box<str>,
    /// Published from then on.
    pub created_at: Timestamp,
    /// Signs from then on.
    pub not_before: Timestamp,
    /// Signs no more from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retired_at: Option<Timestamp>,
    /// All that it signed is refused from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compromised_at: Option<Timestamp>,
}

/// How far the clocks of processes that share a store may differ (CONTRACT part 4, `/readyz`).
pub const CLOCKS_DIFFER: Span = Span::seconds(5);

impl SigningKey {
    /// What a key's seed is sealed for: its row and no other.
    #[must_use]
    pub fn purpose(id: SigningUse) -> String {
        format!("signing_key/{}/{}", id.purpose.as_str(), id.generation)
    }

    /// Whether it signs at `at`.
    #[must_use]
    pub fn signs_at(&self, at: Timestamp) -> bool {
        self.compromised_at.is_none() && self.not_before <= at && self.retired_at.is_none_or(|it| at < it)
    }

    /// Whether it signs at `at` by some clock: those of processes that share a store may differ by `CLOCKS_DIFFER`, and so may one
    /// that was set.
    #[must_use]
    pub fn may_sign_at(&self, at: Timestamp) -> bool {
        let (earliest, latest) = (at.minus(CLOCKS_DIFFER), at.plus(CLOCKS_DIFFER));
        self.compromised_at.is_none() && self.not_before <= latest && self.retired_at.is_none_or(|it| earliest < it)
    }

    /// Whether it is published at `now`: a compromised key is not, and a retired receipt key no longer than its last receipt
    /// can be good. What the other keys signed is kept for good, and so are they.
    #[must_use]
    pub fn is_published(&self, now: Timestamp) -> bool {
        let over = |at: Timestamp| self.id.purpose == Purpose::Receipt && now.since(at) > RECEIPT_MAX;
        self.compromised_at.is_none() && !self.retired_at.is_some_and(over)
    }
}

impl Linked for SigningKey {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}
