//! Twenty-four hours of payments of one agent to one registrable domain in one currency: what split payments and
//! possible duplicates are seen by.

use serde::{Deserialize, Serialize};

use super::block::{Block, BlockId, BlockOwner, SEALED};
use crate::value::currency::Currency;
use crate::value::digest::PayeeId;
use crate::value::id::{ActionId, AgentId};
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How far back payments to one payee are added up.
pub const SPLIT_WINDOW: Span = Span::hours(24);
/// How far back the same payment counts as a possible duplicate.
pub const DUPLICATE_WINDOW: Span = Span::minutes(10);

/// Payments to one payee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payee {
    /// Agent, domain and currency, as one digest.
    pub id: PayeeId,
    /// The newest payments, oldest first; older ones lie in sealed blocks.
    pub recent: Vec<Paid>,
    /// How many blocks were sealed.
    #[serde(default)]
    pub sealed: u32,
    /// The first payment, counted from the very first one, that is still in the sum.
    #[serde(default)]
    pub tail: u64,
    /// What the payments from `tail` on add up to, in minor units.
    pub sum: i64,
}

/// One payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paid {
    /// When it was authorized.
    pub at: Timestamp,
    /// The authorized amount in minor units; 0 once it no longer counts.
    pub amount: i64,
    /// The action.
    pub action: ActionId,
}

/// Where an action's payment stands with its payee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayeeSlot {
    /// The payee's row.
    pub payee: PayeeId,
    /// The payment, counted from the very first one.
    pub index: u64,
}

impl Linked for Payee {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Payee {
    /// The row for these three.
    #[must_use]
    pub fn id_of(agent: AgentId, registrable: &str, currency: Currency) -> PayeeId {
        PayeeId::of(&[&agent.bits().to_be_bytes(), registrable.as_bytes(), currency.as_str().as_bytes()])
    }

    /// Nothing paid yet.
    #[must_use]
    pub const fn none(id: PayeeId) -> Self {
        Self { id, recent: Vec::new(), sealed: 0, tail: 0, sum: 0 }
    }

    /// Whose its blocks are.
    #[must_use]
    pub fn owner(&self) -> BlockOwner {
        BlockOwner::of(&[b"payee", &self.id.bits().to_be_bytes()])
    }

    /// The index of the first payment that is inline.
    #[must_use]
    pub fn inline_from(&self) -> u64 {
        u64::from(self.sealed).saturating_mul(SEALED as u64)
    }

    /// Adds a payment and gives its slot, and the block to store where one is full.
    pub fn push(&mut self, paid: Paid) -> (PayeeSlot, Option<Block>) {
        let at = self.recent.last().map_or(paid.at, |last| paid.at.max(last.at));
        let index = self.inline_from().saturating_add(self.recent.len() as u64);
        self.recent.push(Paid { at, ..paid });
        self.sum = self.sum.saturating_add(paid.amount);
        let slot = PayeeSlot { payee: self.id, index };
        if self.recent.len() < 2 * SEALED {
            return (slot, None);
        }
        let old: Vec<Paid> = self.recent.drain(..SEALED).collect();
        let id = BlockId { owner: self.owner(), number: self.sealed };
        self.sealed = self.sealed.saturating_add(1);
        let block = Block {
            id,
            at: old.iter().map(|it| it.at).collect(),
            paid: old.iter().map(|it| (it.amount, it.action)).collect(),
        };
        (slot, Some(block))
    }

    /// Lets go of inline payments that `since` leaves behind. Sealed ones have to be let go before.
    pub fn forget_inline(&mut self, since: Timestamp) {
        let from = self.inline_from();
        if self.tail < from {
            return;
        }
        for (place, paid) in self.recent.iter().enumerate() {
            let index = from.saturating_add(place as u64);
            if index < self.tail {
                continue;
            }
            if paid.at > since {
                break;
            }
            self.tail = index.saturating_add(1);
            self.sum = self.sum.saturating_sub(paid.amount);
        }
    }

    /// Takes an inline payment out of the sum; it stays as a place without an amount.
    pub fn void_inline(&mut self, index: u64) {
        let place = index.checked_sub(self.inline_from()).and_then(|it| usize::try_from(it).ok());
        if let Some(paid) = place.and_then(|it| self.recent.get_mut(it)) {
            if index >= self.tail {
                self.sum = self.sum.saturating_sub(paid.amount);
            }
            paid.amount = 0;
        }
    }
}
