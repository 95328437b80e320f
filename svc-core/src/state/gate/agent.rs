//! An agent: who it acts for, whether it may act, and which keys and mandate versions are in force. A change of any of
//! them is a write of this row, so one check covers them all.

use serde::{Deserialize, Serialize};

use super::action::OPEN_MAX;
use super::erasure::erased;
use crate::state::people::Maker;
use crate::value::digest::CredentialId;
use crate::value::id::{
    AgentId, ConnectionId, DrillId, EvidenceId, HoldId, IntegrationId, KeyId, MandateId, MandateVersionId, PrincipalId,
    TokenId, WorkspaceId,
};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Label, Note};
use crate::value::words::words;
use crate::value::{Id, Timestamp};

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id, which never changes.
    pub id: AgentId,
    /// Its workspace, which never changes.
    pub workspace: WorkspaceId,
    /// Who it acts for, which changes only where they left the workspace.
    pub principal: PrincipalId,
    /// What people call it.
    pub name: Label,
    /// How much it is trusted.
    pub tier: Tier,
    /// Answers for it where its principal has no sign-in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<PrincipalId>,
    /// May freeze it and is told of freezes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_owner: Option<PrincipalId>,
    /// Whether it may act.
    pub standing: Standing,
    /// Grows by one with every freeze and removal. What was made under an older epoch is void.
    pub epoch: u32,
    /// When it was stopped, oldest first, at most 64: the last one ended the epoch before the present one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Timestamp>,
    /// Mandates that are not revoked, in the versions in force.
    pub mandates: Vec<Grant>,
    /// Keys that are not revoked, at most [`AGENT_KEYS_MAX`] beside those of its connections.
    pub keys: Vec<HeldKey>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when approvals of an older epoch wait to be denied one by one; readers go by the epoch meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub following: Option<Timestamp>,
    /// The drill whose canary it is: it takes no place of a plan, and is neither given mandates nor started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<DrillId>,
}

impl Linked for Agent {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![
            Link::by_id(Index::AgentsOf, self.workspace.bits(), self.id),
            Link::by_id(Index::AgentsFor, self.principal.bits(), self.id),
        ];
        links.extend(self.sponsor.map(|it| Link::by_id(Index::AgentsUnder, it.bits(), self.id)));
        links.extend(self.following.map(|since| Link::wake(self.workspace, since)));
        links
    }
}

impl Agent {
    /// Whether what its last stop ends may still fill its limits. After [`OPEN_MAX`] nothing from before the stop is open, so that
    /// a row which nobody can end keeps no agent stopped for good.
    #[must_use]
    pub fn is_ending(&self, now: Timestamp) -> bool {
        self.following.is_some_and(|since| now < since.plus(OPEN_MAX))
    }

    /// Stops the agent and voids what was made under its epoch. Stopping a stopped one changes nothing.
    #[must_use]
    pub fn freeze(mut self, frozen: Frozen) -> Self {
        if self.standing == Standing::Active {
            self.stop(frozen.at);
            // Connections end with the stop; their own rows are told so in the same commit.
            self.keys.retain(|it| it.via.is_none());
            self.standing = Standing::Frozen(frozen);
        }
        self
    }

    /// Makes void what an active agent was allowed and waits for, as a stop does, and leaves it active.
    #[must_use]
    pub fn void(mut self, at: Timestamp) -> Self {
        if self.standing == Standing::Active {
            self.stop(at);
        }
        self
    }

    /// Starts the agent again. What was made before its stop stays void: the epoch is the one after it.
    #[must_use]
    pub fn restart(mut self) -> Self {
        if matches!(self.standing, Standing::Frozen(_)) {
            self.standing = Standing::Active;
        }
        self
    }

    /// When, by whom and why it is stopped, if it is.
    #[must_use]
    pub const fn frozen(&self) -> Option<&Frozen> {
        if let Standing::Frozen(frozen) = &self.standing { Some(frozen) } else { None }
    }

    /// Stops the agent for good. Its keys and the access tokens of its connections stay known until they end by themselves or
    /// are revoked: until then each is told that its agent is gone.
    #[must_use]
    pub fn remove(mut self, at: Timestamp) -> Self {
        if !self.is_removed() {
            self.stop(at);
            self.standing = Standing::Removed { at };
        }
        self
    }

    fn stop(&mut self, at: Timestamp) {
        self.following = Some(at);
        self.epoch = self.epoch.saturating_add(1);
        self.stops.push(at);
        let over = self.stops.len().saturating_sub(STOPS_KEPT);
        self.stops.drain(..over);
    }

    /// Whether it may act, as far as it alone is concerned.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.standing == Standing::Active
    }

    /// Whether it is gone for good.
    #[must_use]
    pub const fn is_removed(&self) -> bool {
        matches!(self.standing, Standing::Removed { .. })
    }

    /// `key`, where it is in force at `now` as far as this row tells: one that a person made or came by through a connection
    /// ends with that person's membership, too.
    #[must_use]
    pub fn held_key(&self, key: KeyId, now: Timestamp) -> Option<&HeldKey> {
        self.keys.iter().find(|it| it.id == key && it.expires_at.is_none_or(|end| now < end))
    }

    /// The same without keys whose time is up at `now`, which no rule asks for again. A connection renews its own.
    #[must_use]
    pub fn without_ended_keys(mut self, now: Timestamp) -> Self {
        self.keys.retain(|it| it.via.is_some() || it.expires_at.is_none_or(|end| now < end));
        self
    }

    /// The connections that act as it.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.keys.iter().filter_map(|it| it.via.as_ref().map(|via| via.connection))
    }

    /// How many mandates it holds that have not expired.
    #[must_use]
    pub fn mandates_held(&self, now: Timestamp) -> usize {
        self.mandates.iter().filter(|it| it.expires_at.is_none_or(|end| now < end)).count()
    }

    /// The versions in force that could speak at `now`: active and not expired.
    pub fn mandates_in_force(&self, now: Timestamp) -> impl Iterator<Item = MandateVersionId> {
        self.mandates
            .iter()
            .filter(move |it| !it.paused && it.expires_at.is_none_or(|end| now < end))
            .map(|it| MandateVersionId { mandate: it.id, version: it.version })
    }
}

/// How many keys of an agent may be in force at once, those of its connections aside.
pub const AGENT_KEYS_MAX: usize = 100;
/// How many mandates of an agent may be in force at once, paused ones among them: each is asked about each action.
pub const AGENT_MANDATES_MAX: usize = 100;
/// How many stops of an agent are remembered by their instant.
pub const STOPS_KEPT: usize = 64;

/// How much an agent is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Every action asks.
    Restricted,
    /// The rules as they stand.
    Standard,
    /// Untrusted provenance, possible duplicates and session conflicts are noted only.
    Trusted,
}

words! { Tier;
    Restricted "restricted";
    Standard "standard";
    Trusted "trusted";
}

/// Whether an agent may act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It may ask.
    Active,
    /// It is stopped until a person starts it again.
    Frozen(Frozen),
    /// It is gone for good.
    Removed {
        /// Since when.
        at: Timestamp,
    },
}

words! {
    /// The word for it.
    Standing::as_str;
    Active "active";
    Frozen "frozen";
    Removed "removed";
}

/// When, by whom and why an agent was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Since when.
    pub at: Timestamp,
    /// By whom.
    pub by: FrozenBy,
    /// Why.
    pub reason: Note,
    /// The record of the incident that brought it about, or happened since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<EvidenceId>,
    /// The hold whose freeze did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldId>,
    /// Whether something else would have frozen it since: then the end of that hold does not restart it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Whether the agent's own record of it is still to be written: that of the whole fleet is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
}

impl Agent {
    /// The same without what `person` wrote: the reason of the freeze that it stands under.
    #[must_use]
    pub fn forget(mut self, person: PrincipalId) -> Self {
        if let Standing::Frozen(frozen) = &mut self.standing
            && frozen.by == FrozenBy::Person(person)
        {
            frozen.reason = erased(&frozen.reason);
        }
        self
    }
}

impl Frozen {
    /// A freeze of one agent.
    #[must_use]
    pub const fn new(at: Timestamp, by: FrozenBy, reason: Note) -> Self {
        Self { at, by, reason, incident: None, hold: None, again: false, unrecorded: false }
    }

    /// The same, because of the incident with this record.
    #[must_use]
    pub const fn after(mut self, incident: EvidenceId) -> Self {
        self.incident = Some(incident);
        self
    }

    /// What it becomes when the agent is to be frozen once more: who froze it first and why stays, and the end of a hold
    /// does not restart it any more.
    #[must_use]
    pub fn repeated(&self, later: &Self) -> Self {
        let again = self.again || (self.hold.is_some() && self.hold != later.hold);
        Self { again, incident: self.incident.or(later.incident), ..self.clone() }
    }
}

/// Who stopped an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenBy {
    /// A person.
    Person(PrincipalId),
    /// A rule of the gate, or the program that embeds it.
    Policy,
    /// A drill.
    Drill(DrillId),
    /// A service token.
    Token {
        /// Its id.
        id: TokenId,
        /// Its name.
        name: Label,
    },
    /// What an integration heard.
    Integration(IntegrationId),
}

/// A mandate that is not revoked, as its agent names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The mandate.
    pub id: MandateId,
    /// The version in force.
    pub version: u32,
    /// Whether a person has paused it.
    #[serde(default)]
    pub paused: bool,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A key that is not revoked, as its agent names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldKey {
    /// The binding's id.
    pub id: KeyId,
    /// The connection whose access token it is, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Through>,
    /// Its credential's row.
    pub credential: CredentialId,
    /// Who made it and when, where a person did after the agent was registered: their leaving ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<(PrincipalId, Timestamp)>,
    /// When it ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl HeldKey {
    /// The connection whose access token it is, where it is one.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        self.via.as_ref().map(|it| it.connection)
    }
}

/// Through what an access token came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Through {
    /// The connection.
    pub connection: ConnectionId,
    /// Who connected it: their leaving ends it.
    pub person: PrincipalId,
    /// Since when.
    pub since: Timestamp,
}
