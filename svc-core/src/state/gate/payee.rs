//! Twenty-four hours of payments of one agent to one registrable domain in one currency: what split payments and
//! possible duplicates are seen by.
//!
//! Payments are numbered from 0. The newest lie in the row, older ones in sealed blocks, dead ones nowhere, so that
//! the row does not grow with the past. Nor does a decision but for the payments of [`DUPLICATE_WINDOW`], which are looked through
//! one by one: two thousand of them at most, and beyond that the payment passes for one that is there already.

use serde::{Deserialize, Serialize};

use super::activity::{deltas, is_none};
use super::block::{self, Block, BlockId, BlockOwner};
use crate::value::currency::Currency;
use crate::value::digest::PayeeId;
use crate::value::id::AgentId;
use crate::value::link::{Link, Linked};
use crate::value::{Id, Span, Timestamp};

/// How far back payments to one payee are added up.
pub const SPLIT_WINDOW: Span = Span::hours(24);
/// How far back the same payment counts as a possible duplicate.
pub const DUPLICATE_WINDOW: Span = Span::minutes(10);
/// Payments of one sealed block.
pub const PAYEE_SEALED: usize = 16;

/// Payments to one payee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payee {
    /// Agent, domain and currency, as one digest.
    pub id: PayeeId,
    /// When the newest payments were authorized, oldest first.
    #[serde(with = "deltas")]
    pub at: Vec<Timestamp>,
    /// What was asked for in minor units, which the same payment again is known by; 0 for one that no longer counts.
    pub amounts: Vec<i64>,
    /// What each came to less than that, which is not in the sum: below zero where it was more. Shorter where the later ones
    /// came to all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpaid: Vec<i64>,
    /// How many blocks of [`PAYEE_SEALED`] payments came before.
    #[serde(default, skip_serializing_if = "is_none")]
    pub sealed: u32,
    /// The first block that may still be stored.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first: u32,
    /// The first payment that is still in the sum.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tail: u64,
    /// What the payments from `tail` on add up to, in minor units.
    pub sum: i64,
}

/// Where an action's payment stands with its payee. In storage a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(PayeeId, u64)", into = "(PayeeId, u64)")]
pub struct PayeeSlot {
    /// The payee's row.
    pub payee: PayeeId,
    /// The payment's number.
    pub index: u64,
}

impl From<(PayeeId, u64)> for PayeeSlot {
    fn from((payee, index): (PayeeId, u64)) -> Self {
        Self { payee, index }
    }
}

impl From<PayeeSlot> for (PayeeId, u64) {
    fn from(slot: PayeeSlot) -> Self {
        (slot.payee, slot.index)
    }
}

impl Linked for Payee {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// A payment's number as block and place in it.
#[must_use]
pub fn place_of(index: u64) -> (u32, usize) {
    let size = PAYEE_SEALED as u64;
    (u32::try_from(index / size).unwrap_or(u32::MAX), usize::try_from(index % size).unwrap_or(0))
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
        Self { id, at: Vec::new(), amounts: Vec::new(), unpaid: Vec::new(), sealed: 0, first: 0, tail: 0, sum: 0 }
    }

    /// One of its blocks.
    #[must_use]
    pub fn block(&self, number: u32) -> BlockId {
        BlockId { owner: BlockOwner::of(&[b"payee", &self.id.bits().to_be_bytes()]), number }
    }

    /// The number of the first payment that is in the row.
    #[must_use]
    pub fn inline_from(&self) -> u64 {
        u64::from(self.sealed).saturating_mul(PAYEE_SEALED as u64)
    }

    /// The number that the next payment gets.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.inline_from().saturating_add(self.at.len() as u64)
    }

    /// Whether no payment is in the sum.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tail >= self.end()
    }

    /// Adds a payment; gives its slot, and the block to store where one is full of payments that still count.
    pub fn push(&mut self, at: Timestamp, amount: i64) -> (PayeeSlot, Option<Block>) {
        let at = self.at.last().map_or(at, |last| at.max(*last));
        let slot = PayeeSlot { payee: self.id, index: self.end() };
        self.at.push(at);
        self.amounts.push(amount);
        self.sum = self.sum.saturating_add(amount);
        if self.at.len() < 2 * PAYEE_SEALED {
            return (slot, None);
        }
        let id = self.block(self.sealed);
        let block = Block {
            id,
            at: self.at.drain(..PAYEE_SEALED).collect(),
            amounts: self.amounts.drain(..PAYEE_SEALED).collect(),
            unpaid: self.unpaid.drain(..PAYEE_SEALED.min(self.unpaid.len())).collect(),
        };
        self.sealed = self.sealed.saturating_add(1);
        let dead = self.tail >= self.inline_from();
        (slot, (!dead).then_some(block))
    }

    /// Lets go of one payment at the tail.
    pub fn forget(&mut self, amount: i64) {
        self.tail = self.tail.saturating_add(1);
        self.sum = self.sum.saturating_sub(amount);
    }

    /// Counts from the payment `tail` on, which is none of the row, where what lies in blocks adds up to `sealed`.
    pub fn add_up(&mut self, tail: u64, sealed: i64) {
        let inline = (self.inline_from()..self.end()).filter_map(|it| self.paid_inline(it));
        self.sum = inline.fold(sealed, i64::saturating_add);
        self.tail = tail.min(self.inline_from());
    }

    /// Lets go of payments in the row that were made at `since` or before; those in blocks have to be let go first.
    pub fn forget_inline(&mut self, since: Timestamp) {
        while let Some(place) = self.tail.checked_sub(self.inline_from()).and_then(|it| usize::try_from(it).ok()) {
            match (self.at.get(place), self.paid_inline(self.tail)) {
                (Some(at), Some(paid)) if *at <= since => self.forget(paid),
                _ => return,
            }
        }
    }

    /// What a payment that is in the row came to.
    #[must_use]
    pub fn paid_inline(&self, index: u64) -> Option<i64> {
        let place = index.checked_sub(self.inline_from()).and_then(|it| usize::try_from(it).ok())?;
        block::paid(&self.amounts, &self.unpaid, place)
    }

    /// Says what a payment that is in the row asks for and came to; its place stays. False where it lies in a block.
    pub fn restate_inline(&mut self, index: u64, amount: i64, paid: i64) -> bool {
        let place = index.checked_sub(self.inline_from()).and_then(|it| usize::try_from(it).ok());
        let restated = place.and_then(|it| block::restate(&mut self.amounts, &mut self.unpaid, it, amount, paid));
        let Some(before) = restated else { return false };
        if index >= self.tail {
            self.sum = self.sum.saturating_sub(before).saturating_add(paid);
        }
        true
    }

    /// Whether a payment in the row of this amount was made after `since`, and whether the row reaches back that far.
    #[must_use]
    pub fn repeats_inline(&self, amount: i64, since: Timestamp) -> (bool, bool) {
        let newest_first = self.at.iter().zip(&self.amounts).rev();
        let found = newest_first.take_while(|(at, _)| **at > since).any(|(_, it)| *it == amount);
        let reaches = self.at.first().is_none_or(|at| *at <= since) || self.sealed == 0;
        (found, reaches)
    }
}
