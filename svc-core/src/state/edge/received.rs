//! What has been received over an integration: that a signed request or a sign-in is not taken twice, and what an event was answered
//! with.
//!
//! Both are rows of one table, found by digests that cannot meet: a replay is the very request again and refused; an event that
//! its sender signs anew, since no answer reached it, is answered as before and done once.

use serde::{Deserialize, Serialize};

use super::integration::IntegrationSlot;
use crate::value::digest::{Digest, ReceivedId};
use crate::value::id::{IntegrationId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::{Id as _, Span, Timestamp};

/// How long an event's answer is given again to whoever sends the event again.
pub const EVENT_KEPT: Span = Span::hours(7 * 24);

/// A request or an event that was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// What it is found by.
    pub id: ReceivedId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Until when it is kept.
    pub until: Timestamp,
    /// What the event was answered with; of a request there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Heard>,
}

/// What came of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Whether a charge is approved, where the event asked for one; that an approval is, where a button made it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// What came of it, in a word of the interface.
    pub outcome: Box<str>,
    /// Where the approval stands that a button was about, told to those who may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stands: Option<Box<str>>,
}

impl Heard {
    /// What came of an event that asked for no charge.
    #[must_use]
    pub fn of(outcome: &str) -> Self {
        Self { approved: None, outcome: outcome.into(), stands: None }
    }
}

impl Received {
    /// The row of a request over the integration in `slot`, by what of it was signed.
    #[must_use]
    pub fn request(slot: IntegrationSlot, signed: &[&[u8]]) -> ReceivedId {
        Self::find(slot, b"request", signed)
    }

    /// The row of an event over an integration, by the sender's id of it and what it says: another question under an id that was
    /// answered is another event, and so is one of whoever has taken the integration's place.
    #[must_use]
    pub fn event(slot: IntegrationSlot, integration: IntegrationId, id: &str, says: &str) -> ReceivedId {
        Self::find(slot, b"event", &[&integration.bits().to_be_bytes(), id.as_bytes(), says.as_bytes()])
    }

    /// The row of a button over an integration: whatever texts stand for it, it is pressed once.
    #[must_use]
    pub fn button(slot: IntegrationSlot, integration: IntegrationId, button: &[u8]) -> ReceivedId {
        Self::find(slot, b"button", &[&integration.bits().to_be_bytes(), button])
    }

    /// The row of a sign-in by an identity provider, by what was drawn for it.
    #[must_use]
    pub fn sign_in(slot: IntegrationSlot, nonce: &Digest) -> ReceivedId {
        Self::find(slot, b"sign_in", &[nonce.as_bytes()])
    }

    /// The row of a request that was signed with the operator's secret, by what of it was signed.
    #[must_use]
    pub fn billing_request(signed: &[&[u8]]) -> ReceivedId {
        let mut parts = vec![&b"billing"[..], b"request"];
        parts.extend(signed);
        ReceivedId::of(&parts)
    }

    /// The row of an event that was signed so, by the sender's id of it.
    #[must_use]
    pub fn billing_event(id: &str) -> ReceivedId {
        ReceivedId::of(&[b"billing", b"event", id.as_bytes()])
    }

    fn find(slot: IntegrationSlot, what: &[u8], of: &[&[u8]]) -> ReceivedId {
        let workspace = slot.workspace.bits().to_be_bytes();
        let mut parts = vec![&workspace[..], slot.kind.as_str().as_bytes(), what];
        parts.extend(of);
        ReceivedId::of(&parts)
    }
}

impl Linked for Received {
    fn links(&self) -> Vec<Link> {
        vec![Link::wake(self.workspace, self.until)]
    }
}
