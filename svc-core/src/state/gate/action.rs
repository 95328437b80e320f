//! An action: what an agent asked, what was decided, and what became of it.
//!
//! How an action reads depends on its own row, on the agent's epoch and on the time: a freeze writes one row and every
//! unconsumed allow made before it reads `revoked` from that commit on.

use serde::{Deserialize, Serialize};

use super::activity::Term;
use super::agent::{Agent, Standing};
use super::kind::ActionKind;
use super::outcome::{Outcome, OutcomeStatus, Released};
use super::payee::PayeeSlot;
use super::provenance::Origin;
use super::reason::{Code, Reason};
use crate::value::currency::Currency;
use crate::value::digest::{Digest, ReplayId};
use crate::value::domain::Domain;
use crate::value::id::{
    ActionId, AgentId, ApprovalId, CallbackId, EvidenceId, HoldId, MandateId, MandateVersionId, PrincipalId, ReceiptId,
    WorkspaceId,
};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Label, SessionId, Summary, UrlText};
use crate::value::words::words;
use crate::value::{Id, Span, Timestamp};

/// How long after its receipt expired an unsettled action is posted by itself.
pub const LAPSE_AFTER: Span = Span::hours(24);
/// How long an action can be open after it was asked: the longest wait, the longest receipt, and the day to its lapse.
pub const OPEN_MAX: Span = Span::hours(168 + 24 + 24);

/// An action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Its id.
    pub id: ActionId,
    /// Who asked.
    pub agent: AgentId,
    /// In which workspace.
    #[serde(rename = "wid")]
    pub workspace: WorkspaceId,
    /// For whom.
    pub principal: PrincipalId,
    /// What type of action.
    #[serde(rename = "type")]
    pub kind: ActionKind,
    /// What it does, in the agent's words.
    pub summary: Summary,
    /// The money it moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<Payment>,
    /// The data it shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataShare>,
    /// The tool it calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
    /// Whether a [`Payload`](super::Payload) row holds tool input or details.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub payload: bool,
    /// The client's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// Where it came from.
    #[serde(default, skip_serializing_if = "Origin::is_unsaid")]
    pub provenance: Origin,
    /// What the digest is salted with, and what the commitments of its ledger records are derived from.
    #[serde(with = "super::salt::salt_serde")]
    pub salt: [u8; 16],
    /// SHA-256 over what was asked, as normalised.
    pub digest: Digest,
    /// The agent's epoch it was decided under.
    #[serde(default, skip_serializing_if = "is_first")]
    pub epoch: u32,
    /// The mandate that is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mandate: Option<MandateVersionId>,
    /// What it holds of that mandate's limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// Its place among the payee's payments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payee: Option<PayeeSlot>,
    /// Why it was decided so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// What is noted besides the reasons' codes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<Code>,
    /// The hold that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldId>,
    /// Where it stands.
    pub state: State,
    /// What a person was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The row of the idempotency key that made it, while that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayId>,
    /// Who is called once it is decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callback: Option<Box<Callback>>,
    /// The newest ledger record on it.
    pub evidence: EvidenceId,
    /// The incident that its settlement was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<Incident>,
    /// Whether what is personal in it was erased, and the salt that its records' commitments rest on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
}

/// The money an action moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payment {
    /// In minor units, above zero.
    pub amount: i64,
    /// Of this currency.
    pub currency: Currency,
    /// What the payee is called.
    pub name: Label,
    /// The payee's domain.
    pub domain: Domain,
}

/// The data an action shares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataShare {
    /// With whom: a domain or an e-mail address.
    pub recipient: Box<str>,
    /// Which fields.
    pub fields: Vec<Label>,
    /// What for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Summary>,
}

/// The tool an action calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// The server that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Label>,
    /// The digest of its input, where the agent sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<Digest>,
    /// How many bytes the input has, where the agent said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_bytes: Option<i64>,
}

impl Tool {
    /// Whether an input, in canonical JSON, is all that the tool is given, as far as digest and length tell: they may stand for an input
    /// that was not sent, or beside one that was shortened.
    #[must_use]
    pub fn is_given_all_of(&self, input: Option<&str>) -> bool {
        let digest = self.input_digest.is_none_or(|it| input.is_some_and(|input| Digest::of(input) == it));
        let length = i64::try_from(input.map_or(0, str::len)).ok();
        digest && self.input_bytes.is_none_or(|it| Some(it) == length)
    }
}

/// What an action holds of its mandate's limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    /// How much of its amount, in which sum; absent where the mandate has no amount a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<(i64, Term)>,
    /// One of its count, in which sum; absent where the mandate has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Term>,
    /// Whether a person let it pass beyond the limit: the amount is kept apart, and neither fills nor frees the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub excess: bool,
}

/// Where an action stands in its own row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A person has been asked.
    Pending {
        /// Until when.
        expires_at: Timestamp,
    },
    /// Said no.
    Denied {
        /// When.
        at: Timestamp,
        /// By whom.
        #[serde(default, skip_serializing_if = "DecidedBy::is_policy")]
        by: DecidedBy,
    },
    /// Nobody decided in time.
    Expired {
        /// When the time was up.
        at: Timestamp,
    },
    /// Said yes.
    Allowed(Allowed),
}

/// Who decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// Time.
    Expiry,
    /// A freeze.
    Freeze,
    /// A person.
    Person(PrincipalId),
    /// The rules.
    #[default]
    Policy,
}

impl DecidedBy {
    const fn is_policy(&self) -> bool {
        matches!(self, Self::Policy)
    }
}

/// An agent that was never stopped is in its first epoch.
const fn is_first(epoch: &u32) -> bool {
    *epoch == 0
}

/// A yes, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allowed {
    /// When.
    pub at: Timestamp,
    /// By whom.
    #[serde(default, skip_serializing_if = "DecidedBy::is_policy")]
    pub by: DecidedBy,
    /// Until when the receipt is good.
    pub receipt_expires_at: Timestamp,
    /// Who used the receipt up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumed: Option<Consumed>,
    /// What the lapse found, once it was posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lapsed: Option<Lapse>,
    /// When the stop that voided it was recorded on it; readers know by the agent's epoch before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// What the agent said became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What a person gave back after it had lapsed: the use of the receipt keeps nothing any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Box<Released>>,
}

/// What an unsettled action read when it lapsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lapse {
    /// Allowed.
    Lapsed,
    /// Revoked, which it stays.
    Revoked,
}

/// A receipt's only use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    /// When.
    pub at: Timestamp,
    /// The charge's amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// The digest of the verifier's idempotency key, where one was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// The digest of what was verified, beside the key; without one, of what the gate itself used it for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Digest>,
    /// Whether the issuer took its charge back before anybody said what became of the action: it keeps nothing any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reversed: bool,
}

impl Consumed {
    /// Whether the gate itself used it, for what it does in the agent's place: it alone knows what became of that.
    #[must_use]
    pub const fn is_by_gate(&self) -> bool {
        self.key.is_none() && self.body.is_some()
    }
}

/// Who is called once an action is decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// Its id.
    pub id: CallbackId,
    /// Where.
    pub url: UrlText,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// More was settled than allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// What was allowed, in minor units.
    pub allowed: i64,
    /// What was settled.
    pub settled: i64,
    /// The record of it.
    pub evidence: EvidenceId,
}

/// How an action reads (CONTRACT part 2, "Decision").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// A person has been asked.
    Pending,
    /// Allowed and unsettled.
    Allowed,
    /// Denied by a rule, a person or a freeze.
    Denied,
    /// Nobody decided in time.
    Expired,
    /// Allowed, then the agent was stopped with the receipt unused.
    Revoked,
    /// Never settled; posted in full.
    Lapsed,
    /// Settled as done.
    Completed,
    /// Settled as tried in vain.
    Failed,
    /// Settled as called off.
    Cancelled,
}

words! {
    Status;
    Pending "pending";
    Allowed "allowed";
    Denied "denied";
    Expired "expired";
    Revoked "revoked";
    Lapsed "lapsed";
    Completed "completed";
    Failed "failed";
    Cancelled "cancelled";
}

/// What an agent is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Go on.
    Allow,
    /// Wait for a person.
    Ask,
    /// Stop.
    Deny,
}

impl Verb {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "approval_required",
            Self::Deny => "deny",
        }
    }
}

impl Linked for Action {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![
            Link::by_id(Index::ActionsOf, self.agent.bits(), self.id),
            Link::by_id(Index::ActionsIn, self.workspace.bits(), self.id),
        ];
        links.extend(self.lapses_at().map(|at| Link::wake(self.workspace, at)));
        links
    }
}

impl Action {
    /// The receipt's id: the action's own bits.
    #[must_use]
    pub fn receipt(&self) -> ReceiptId {
        self.id.into()
    }

    /// When it was asked: its id says so.
    #[must_use]
    pub fn created_at(&self) -> Timestamp {
        self.id.time()
    }

    /// Whether only a person could let it pass, since it was beyond its mandate's limits: it neither fills nor frees them.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        let limit = |code| matches!(code, Code::OverLimit | Code::OverPeriodLimit | Code::OverCountLimit);
        let Some(mandate) = self.mandate.map(|it| it.mandate) else { return false };
        self.reasons.iter().any(|it| limit(it.code) && it.mandate == Some(mandate))
    }

    /// What it holds, and of which mandate.
    #[must_use]
    pub fn held(&self) -> Option<(MandateId, &Reservation)> {
        self.mandate.map(|it| it.mandate).zip(self.reservation.as_ref())
    }

    /// When a timer has to post what this action holds; `None` where it holds nothing or was posted.
    fn lapses_at(&self) -> Option<Timestamp> {
        self.reservation.as_ref()?;
        let State::Allowed(allowed) = &self.state else { return None };
        (allowed.outcome.is_none() && allowed.lapsed.is_none()).then(|| allowed.lapse_at())
    }

    /// Whether it is posted in full since nobody settled it in time, without a record that says so: nothing wakes for what reserved
    /// nothing.
    #[must_use]
    pub fn has_lapsed_unrecorded(&self, now: Timestamp) -> bool {
        self.allowed().is_some_and(|it| {
            it.lapsed.is_none() && now >= it.lapse_at() && it.outcome.as_ref().is_none_or(|outcome| outcome.late)
        })
    }

    /// Whether what stood under this action's epoch is void: the agent was stopped since, or a hold covers it.
    #[must_use]
    pub fn is_void(&self, agent: &Agent, hold: bool) -> bool {
        hold || agent.epoch != self.epoch || !agent.is_active()
    }

    /// How the action reads at `now`. `hold` is since when a hold covers the agent, where one does: its members' rows may say so
    /// later than it does.
    #[must_use]
    pub fn status(&self, agent: &Agent, hold: Option<Timestamp>, now: Timestamp) -> Status {
        match &self.state {
            State::Denied { .. } => Status::Denied,
            State::Expired { .. } => Status::Expired,
            State::Pending { expires_at } => {
                let stopped_first = self.stopped_at(agent, hold).is_none_or(|at| at < *expires_at);
                match (self.is_void(agent, hold.is_some()), now >= *expires_at) {
                    (true, expired) if stopped_first || !expired => Status::Denied,
                    (_, true) => Status::Expired,
                    (_, false) => Status::Pending,
                }
            }
            State::Allowed(allowed) => self.allowed_status(allowed, agent, hold, now),
        }
    }

    fn allowed_status(&self, allowed: &Allowed, agent: &Agent, hold: Option<Timestamp>, now: Timestamp) -> Status {
        if let Some(outcome) = &allowed.outcome {
            return match outcome.status {
                OutcomeStatus::Cancelled => Status::Cancelled,
                OutcomeStatus::Completed => Status::Completed,
                OutcomeStatus::Failed => Status::Failed,
            };
        }
        let lapse_at = allowed.lapse_at();
        let void = allowed.consumed.is_none() && self.is_void(agent, hold.is_some());
        match allowed.lapsed {
            Some(Lapse::Lapsed) => Status::Lapsed,
            Some(Lapse::Revoked) => Status::Revoked,
            // It stays revoked, also where so many stops came since that the one that voided it is forgotten.
            None if void && allowed.revoked.is_some_and(|at| at < lapse_at) => Status::Revoked,
            None if void && self.stopped_at(agent, hold).is_some_and(|at| at >= lapse_at) => Status::Lapsed,
            None if void => Status::Revoked,
            None if now >= lapse_at && self.reservation.is_none() => Status::Lapsed,
            None => Status::Allowed,
        }
    }

    /// When the agent was stopped since this was asked, by its own row or by a hold that this does not tell yet.
    fn stopped_at(&self, agent: &Agent, hold: Option<Timestamp>) -> Option<Timestamp> {
        agent.stopped_since(self.epoch).or(hold)
    }

    /// What the agent is to do, by how the action reads.
    #[must_use]
    pub fn verb(&self, status: Status) -> Verb {
        match status {
            Status::Pending => Verb::Ask,
            Status::Allowed | Status::Lapsed => Verb::Allow,
            Status::Denied | Status::Expired | Status::Revoked => Verb::Deny,
            Status::Completed | Status::Failed | Status::Cancelled => {
                let revoked = matches!(&self.state, State::Allowed(Allowed { outcome: Some(it), .. }) if it.revoked);
                if revoked { Verb::Deny } else { Verb::Allow }
            }
        }
    }

    /// When the action came to its end, if it has: from then on its idempotency key is kept for a week.
    #[must_use]
    pub fn ended_at(&self, agent: &Agent, hold: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
        match (&self.state, self.status(agent, hold, now)) {
            (_, Status::Pending | Status::Allowed) => None,
            (State::Denied { at, .. } | State::Expired { at }, _) => Some(*at),
            (State::Pending { expires_at }, _) => {
                Some(self.stopped_at(agent, hold).map_or(*expires_at, |at| at.min(*expires_at)))
            }
            (State::Allowed(Allowed { outcome: Some(it), .. }), _) => Some(it.at),
            (State::Allowed(it), Status::Revoked) => {
                Some(it.revoked.or_else(|| self.stopped_at(agent, hold)).unwrap_or(now))
            }
            (State::Allowed(allowed), _) => Some(allowed.lapse_at()),
        }
    }

    /// The yes, where there was one.
    #[must_use]
    pub fn allowed(&self) -> Option<&Allowed> {
        if let State::Allowed(allowed) = &self.state { Some(allowed) } else { None }
    }
}

impl Allowed {
    /// A yes of which nothing has become yet.
    #[must_use]
    pub const fn new(at: Timestamp, by: DecidedBy, receipt_expires_at: Timestamp) -> Self {
        Self { at, by, receipt_expires_at, consumed: None, lapsed: None, revoked: None, outcome: None, released: None }
    }

    /// When it lapses if nobody settles it.
    #[must_use]
    pub const fn lapse_at(&self) -> Timestamp {
        self.receipt_expires_at.plus(LAPSE_AFTER)
    }

    /// Whether the receipt was used and neither a person nor the issuer has given back what that keeps.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.consumed.as_ref().is_some_and(|it| !it.reversed) && self.released.is_none()
    }

    /// What consumption keeps posted, in minor units.
    #[must_use]
    pub fn consumed_amount(&self) -> i64 {
        self.consumed.as_ref().filter(|_| self.is_kept()).and_then(|it| it.amount).unwrap_or(0)
    }

    /// What is posted, in minor units, where that follows from a settlement or a person's release; what has lapsed without
    /// either is posted in full.
    #[must_use]
    pub fn posted(&self) -> Option<i64> {
        match &self.outcome {
            Some(outcome) => outcome.posted,
            None => self.released.as_ref().map(|_| 0),
        }
    }
}

impl Agent {
    /// When the agent was stopped for the first time after `epoch`, as far as is still known.
    #[must_use]
    pub fn stopped_since(&self, epoch: u32) -> Option<Timestamp> {
        if self.epoch == epoch {
            return None;
        }
        let newer = usize::try_from(self.epoch.saturating_sub(epoch)).unwrap_or(usize::MAX);
        self.stops.get(self.stops.len().saturating_sub(newer)).copied().or(match &self.standing {
            Standing::Active => None,
            Standing::Frozen(frozen) => Some(frozen.at),
            Standing::Removed { at } => Some(*at),
        })
    }
}
