//! A button as whoever passes it on has it: sealed under the master key, so that nobody reads, changes or makes one, and nothing
//! has to be kept of those that are out.
//!
//! **Invariant:** a button is opened for the integration alone that it was sealed for.

use serde_json::{Value, json};
use svc_core::rules::edge::button::{Once, has_no_yes};
use svc_core::rules::gate::asked::Question;
use svc_core::rules::gate::decide::Choice;
use svc_core::state::edge::{EVENT_KEPT, Integration, Received};
use svc_core::state::gate::{Approval, ApprovalSubject};
use svc_core::value::digest::Digest;
use svc_core::value::id::ApprovalId;
use svc_core::value::{Id as _, Timestamp};
use svc_store::Gate;

/// What the bytes of a button begin with.
const VERSION: u8 = 2;
/// Characters of a button: what is sealed is of one length or another, both far below this.
pub const SEALED_MAX: usize = 400;

/// A button that decides an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Button {
    /// Yes or no.
    pub choice: Choice,
    /// To what.
    pub approval: ApprovalId,
    /// The digest of what it stands beside, where that has one.
    pub digest: Option<Digest>,
    /// Until when it is good.
    until: Timestamp,
}

impl Button {
    /// A button beside an approval as it stands at `now`. It is good for as long as that waits, and for a week at most: as long as
    /// it is remembered that it was pressed.
    #[must_use]
    pub fn new(approval: &Approval, choice: Choice, now: Timestamp) -> Self {
        let until = approval.expires_at.min(now.plus(EVENT_KEPT));
        Self { choice, approval: approval.id, digest: digest(approval), until }
    }

    /// Its text; `None` where the gate has no master key.
    #[must_use]
    pub fn seal(&self, gate: &Gate, integration: &Integration) -> Option<String> {
        gate.seal(&integration.button_purpose(), &self.bytes()).ok()
    }

    /// Reads the text of one; `None` where it is none of this integration's.
    #[must_use]
    pub fn open(gate: &Gate, integration: &Integration, text: &str) -> Option<Self> {
        if text.len() > SEALED_MAX {
            return None;
        }
        Self::read(gate.open_sealed(&integration.button_purpose(), text).ok()?.expose())
    }

    /// That it is pressed once, whichever of its texts is sent.
    #[must_use]
    pub fn once(&self, integration: &Integration) -> Once {
        Once { row: Received::button(integration.slot, integration.id, &self.said()), until: self.until }
    }

    /// All that tells it from others.
    fn said(&self) -> Vec<u8> {
        let choice = match self.choice {
            Choice::Approve => 1,
            Choice::Deny => 0,
        };
        let mut bytes = vec![VERSION, choice];
        bytes.extend(self.approval.bits().to_be_bytes());
        bytes.extend(self.digest.iter().flat_map(|it| *it.as_bytes()));
        bytes
    }

    /// What is sealed of it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.said();
        bytes.extend(self.until.as_millis().to_be_bytes());
        bytes
    }

    /// Reads what was sealed: nobody else's bytes are a button, which is for [`open`](Self::open) to see.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (said, until) = bytes.split_last_chunk()?;
        let ([version, choice], said) = said.split_first_chunk()?;
        let (approval, digest) = said.split_first_chunk()?;
        let choice = match (*version, *choice) {
            (VERSION, 1) => Choice::Approve,
            (VERSION, 0) => Choice::Deny,
            _ => return None,
        };
        let digest = match digest {
            [] => None,
            bytes => Some(Digest::from_bytes(bytes.try_into().ok()?)),
        };
        let approval = ApprovalId::from_bits(u128::from_be_bytes(*approval));
        let until = Timestamp::from_millis(i64::from_be_bytes(*until));
        Some(Self { choice, approval, digest, until })
    }
}

/// The buttons beside a question as it stands at `now`, each with its word; none where the gate has no master key, and no yes where
/// that is said on the page, or where not `all` of what is decided on stands beside them.
#[must_use]
pub fn buttons(gate: &Gate, integration: &Integration, question: &Question, all: bool, now: Timestamp) -> Vec<Value> {
    let has_yes = all && !has_no_yes(question);
    let offered = Choice::ALL.into_iter().filter(|it| *it == Choice::Deny || has_yes);
    let sealed = |choice: Choice| {
        let token = Button::new(&question.approval, choice, now).seal(gate, integration)?;
        Some(json!({ "decision": choice.as_str(), "token": token }))
    };
    offered.filter_map(sealed).collect()
}

/// The digest of what an approval is about, where it has one.
#[must_use]
pub const fn digest(approval: &Approval) -> Option<Digest> {
    match &approval.subject {
        ApprovalSubject::Action(it) => Some(it.digest),
        ApprovalSubject::Freeze(it) => Some(it.digest),
        ApprovalSubject::HoldLift(_) | ApprovalSubject::Owner(_) | ApprovalSubject::Budget(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// What is written is read; anything shorter, longer or of another version is none.
    #[test]
    fn a_button_is_read_as_it_was_written() {
        for digest in [None, Some(Digest::of("it"))] {
            for choice in [Choice::Approve, Choice::Deny] {
                let approval = ApprovalId::from_bits(1 << 90);
                let button = Button { choice, approval, digest, until: Timestamp::from_millis(1_790_847_000_000) };
                let mut bytes = button.bytes();
                assert_eq!(Button::read(&bytes), Some(button));
                assert_eq!((Button::read(&bytes[..bytes.len() - 1]), Button::read(&[])), (None, None));
                bytes[0] += 1;
                assert_eq!(Button::read(&bytes), None);
            }
        }
    }
}
