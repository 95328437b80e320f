//! The export of a workspace's ledger to a security-information system: what it sends, and how far it has come.
//!
//! **Invariant:** while a delivery is named here, no other is made: what is sent keeps the ledger's order.
//! **Invariant:** `next` moves when what is before it was taken, or is of kinds that are not asked for: nothing else passes over
//! a record.

use serde::{Deserialize, Serialize};

use crate::value::Id as _;
use crate::value::id::{DeliveryId, EvidenceId, IntegrationId, WorkspaceId};
use crate::value::link::{Index, Link, Linked, Order, instant_order, shard};
use crate::value::text::UrlText;

/// A class of events, as the Open Cybersecurity Schema Framework (OCSF) 1.3 numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "u16", try_from = "u16")]
pub enum EventClass {
    /// An account, key or token was made, changed or ended.
    AccountChange,
    /// Something was asked for or answered over an interface.
    ApiActivity,
    /// Somebody signed in or out.
    Authentication,
    /// Something was found: a decision, a refusal, an incident.
    DetectionFinding,
    /// A managed thing was made, changed, stopped, started or removed.
    EntityManagement,
}

impl EventClass {
    /// Every class, by its number.
    pub const ALL: &'static [Self] =
        &[Self::DetectionFinding, Self::AccountChange, Self::Authentication, Self::EntityManagement, Self::ApiActivity];

    /// Its number.
    #[must_use]
    pub const fn uid(self) -> u16 {
        match self {
            Self::DetectionFinding => 2004,
            Self::AccountChange => 3001,
            Self::Authentication => 3002,
            Self::EntityManagement => 3004,
            Self::ApiActivity => 6003,
        }
    }

    /// The class of this number, if there is one.
    #[must_use]
    pub fn of(uid: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| i64::from(it.uid()) == uid)
    }
}

impl From<EventClass> for u16 {
    fn from(class: EventClass) -> Self {
        class.uid()
    }
}

/// A number that is no class's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoClass(u16);

impl core::fmt::Display for NoClass {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "`{}` is no class of events", self.0)
    }
}

impl TryFrom<u16> for EventClass {
    type Error = NoClass;

    fn try_from(uid: u16) -> Result<Self, NoClass> {
        Self::of(uid.into()).ok_or(NoClass(uid))
    }
}

/// To whom the ledger goes, and what of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportConfig {
    /// Who is called, which the outbound guard has let pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<UrlText>,
    /// The classes of events that are sent; all where none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<EventClass>,
}

/// How far an export has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// The integration that it is of.
    pub integration: IntegrationId,
    /// The record that it begins with: the one that the integration was made by.
    pub begins: EvidenceId,
    /// The place of the first record that is still to be sent; `None` until something behind `begins` was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The delivery of the records from there on, which is under way or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<DeliveryId>,
    /// Whether it goes on: not while its integration is off.
    pub runs: bool,
}

impl Linked for Export {
    fn links(&self) -> Vec<Link> {
        let goes_on = self.runs && self.job.is_none();
        let order = Order::At(instant_order(self.integration.time()));
        let link = Link { index: Index::Exports, prefix: shard(self.workspace), order };
        goes_on.then_some(link).into_iter().collect()
    }
}

impl Export {
    /// One that begins with this record.
    #[must_use]
    pub const fn new(workspace: WorkspaceId, integration: IntegrationId, begins: EvidenceId) -> Self {
        Self { workspace, integration, begins, next: None, job: None, runs: true }
    }

    /// The same without its delivery, which was taken, so that the record at `next` follows.
    #[must_use]
    pub fn delivered(self, next: u64) -> Self {
        Self { next: Some(next), job: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A class is stored and sent as its number; a number that is none is refused.
    #[test]
    fn a_class_is_its_number() {
        let uids: Vec<u16> = EventClass::ALL.iter().map(|it| it.uid()).collect();
        assert_eq!(uids, [2004, 3001, 3002, 3004, 6003]);
        let text = serde_json::to_string(EventClass::ALL).unwrap();
        assert_eq!(text, "[2004,3001,3002,3004,6003]");
        assert_eq!(serde_json::from_str::<Vec<EventClass>>(&text).unwrap(), EventClass::ALL);
        assert!(serde_json::from_str::<Vec<EventClass>>("[3003]").is_err());
        assert_eq!((EventClass::of(3003), EventClass::of(-1)), (None, None));
    }

    /// An export is listed while there is nothing under way and it goes on, and at no other time.
    #[test]
    fn an_export_is_listed_while_it_may_go_on() {
        let made = Export::new(WorkspaceId::from_bits(1), IntegrationId::from_bits(2), EvidenceId::from_bits(3));
        assert_eq!(made.links().len(), 1);
        let sending = Export { job: Some(DeliveryId::from_bits(4)), ..made.clone() };
        assert!(sending.links().is_empty());
        assert!(Export { runs: false, ..made }.links().is_empty());
        let delivered = sending.delivered(9);
        assert_eq!((delivered.next, delivered.links().len()), (Some(9), 1));
    }
}
