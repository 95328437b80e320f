//! What a person is asked: durable, with an id and a link of its own, waiting until somebody decides, the time is up, or
//! what it is about has come to nothing.

use serde::{Deserialize, Serialize};

use super::erasure::erased;
use super::reason::Reason;
use crate::state::people::{Members, Role};
use crate::value::digest::{Digest, TopicId};
use crate::value::id::{
    AccountId, ActionId, AgentId, ApplicationId, ApprovalId, BudgetId, DeliveryId, HoldId, PrincipalId, SessionId,
    TeamId, TokenId, WorkspaceId,
};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Label, Note};
use crate::value::words::words;
use crate::value::{Id, MicroUsd, Timestamp};

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its id.
    pub id: ApprovalId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What it is about.
    pub subject: ApprovalSubject,
    /// When it was asked.
    pub created_at: Timestamp,
    /// Until when it waits.
    pub expires_at: Timestamp,
    /// How many persons have to agree: 1 or 2.
    pub needed: u8,
    /// Who has agreed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Consent>,
    /// Where it stands.
    pub state: ApprovalState,
    /// The deliveries of messages that ask in another system and are to say so once it has ended: as many as are linked there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub posted: Vec<DeliveryId>,
}

/// What a person is asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalSubject {
    /// An agent's action.
    Action(AskedAction),
    /// A freeze of more agents than the asking token's ceiling admits.
    Freeze(AskedFreeze),
    /// The lift of a hold over every agent, by a second owner.
    HoldLift(AskedLift),
    /// Somebody's becoming or ceasing to be an owner, by a second owner.
    Owner(AskedOwner),
    /// More than a budget allots in its period.
    Budget(AskedBudget),
}

/// An action that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedAction {
    /// Whose action.
    pub agent: AgentId,
    /// Which action.
    pub action: ActionId,
    /// What exactly is approved.
    pub digest: Digest,
    /// Limits that a person would exceed by approving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceptions: Vec<Reason>,
    /// The agent's epoch it was asked under.
    pub epoch: u32,
    /// What it waits with, where people are told of what waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<TopicId>,
}

/// A freeze that waits for a person. Nothing is frozen and no hold is set meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedFreeze {
    /// The members as they were counted.
    pub members: Members,
    /// What names that selection in the interface.
    pub digest: Digest,
    /// Whether every agent is meant, so that a hold goes with it.
    #[serde(default)]
    pub all: bool,
    /// Why.
    pub reason: Note,
    /// Who asks for it.
    pub by: Requester,
}

/// A hold's lift that waits for a second owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedLift {
    /// Which hold.
    pub hold: HoldId,
    /// Whether the agents that it froze are to be restarted.
    #[serde(default)]
    pub restart: bool,
    /// Why.
    pub reason: Note,
    /// The first owner, or the admin who asks two of them.
    pub by: PrincipalId,
}

/// A change among owners that waits for a second owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedOwner {
    /// Whose standing changes.
    pub principal: PrincipalId,
    /// How.
    pub change: OwnerChange,
    /// The teams that they are to be in; absent where they stay in theirs, and somebody who is invited is in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<TeamId>>,
    /// The first owner.
    pub by: PrincipalId,
    /// Applications whose change it is, at most [`ASKED_APPLICATIONS_MAX`]: they end with the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applications: Vec<ApplicationId>,
}

/// So many applications wait for one second owner's answer.
pub const ASKED_APPLICATIONS_MAX: usize = 50;

/// More of a budget that somebody is to approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedBudget {
    /// Which budget.
    pub budget: BudgetId,
    /// The period it is asked for, by its beginning.
    pub period: Timestamp,
    /// Of which generation that period is; 0 in rows of an older release.
    #[serde(default, skip_serializing_if = "crate::state::gateway::is_first")]
    pub generation: u32,
    /// How much more the period may spend once it is approved.
    pub more: MicroUsd,
    /// Whether that is for good, as of a budget whose period never ends.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_good: bool,
    /// The agent whose call was refused first, where an agent's was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Who that call counted for.
    pub principal: PrincipalId,
}

/// What becomes of somebody who is made an owner or ceases to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerChange {
    /// Is invited as one, and becomes one with the first sign-in.
    Invite,
    /// Becomes an owner.
    Make,
    /// Leaves the workspace.
    Remove,
    /// Stays, with another role.
    Become(Role),
}

impl OwnerChange {
    /// Its word in the ledger.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invite => "invite",
            Self::Make => "make",
            Self::Remove => "remove",
            Self::Become(_) => "demote",
        }
    }
}

/// Who brings a question up, where it is not an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requester {
    /// A person.
    Person(PrincipalId),
    /// The program that embeds the gate.
    Program,
    /// A service token.
    Token {
        /// Its id.
        id: TokenId,
        /// Its name.
        name: Label,
    },
}

/// The kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalKind {
    /// About an action.
    Action,
    /// About a freeze past a ceiling.
    Freeze,
    /// About the lift of a hold.
    HoldLift,
    /// About an owner.
    Owner,
    /// About a budget.
    Budget,
}

words! { ApprovalKind;
    Action "action";
    Freeze "freeze";
    HoldLift "hold_lift";
    Owner "owner";
    Budget "budget";
}

/// One person's yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// Whose.
    pub by: PrincipalId,
    /// Who signed in.
    pub account: AccountId,
    /// In which session; absent where a button of another system was pressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// From where.
    #[serde(default)]
    pub via: Via,
    /// When.
    pub at: Timestamp,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// From where a person decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// The console.
    #[default]
    Console,
    /// A button in a chat.
    Slack,
    /// A button that a relay passed on.
    Relay,
}

words! { Via;
    Console "console";
    Slack "slack";
    Relay "relay";
}

/// Where a question stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Waiting,
    /// Enough persons agreed.
    Approved {
        /// When the last of them did.
        at: Timestamp,
    },
    /// It was refused.
    Denied {
        /// When.
        at: Timestamp,
        /// By whom; absent where no person did: a freeze, or a rule that has changed since.
        by: Option<PrincipalId>,
        /// What they said.
        note: Option<Note>,
    },
    /// Nobody decided in time.
    Expired {
        /// When the time was up.
        at: Timestamp,
    },
}

impl Consent {
    /// Whether both may be one person's: of one principal, of one account, or given in one session.
    #[must_use]
    pub fn is_of_one_with(&self, other: &Self) -> bool {
        let in_one_session = self.session.is_some() && self.session == other.session;
        self.by == other.by || self.account == other.account || in_one_session
    }
}

impl Approval {
    /// What kind of question it is.
    #[must_use]
    pub const fn kind(&self) -> ApprovalKind {
        match &self.subject {
            ApprovalSubject::Action(_) => ApprovalKind::Action,
            ApprovalSubject::Freeze(_) => ApprovalKind::Freeze,
            ApprovalSubject::HoldLift(_) => ApprovalKind::HoldLift,
            ApprovalSubject::Owner(_) => ApprovalKind::Owner,
            ApprovalSubject::Budget(_) => ApprovalKind::Budget,
        }
    }

    /// The action it is about, if it is about one.
    #[must_use]
    pub const fn asked_action(&self) -> Option<&AskedAction> {
        match &self.subject {
            ApprovalSubject::Action(asked) => Some(asked),
            ApprovalSubject::Freeze(_)
            | ApprovalSubject::HoldLift(_)
            | ApprovalSubject::Owner(_)
            | ApprovalSubject::Budget(_) => None,
        }
    }

    /// What whoever decided it said.
    #[must_use]
    pub fn note(&self) -> Option<&Note> {
        match &self.state {
            ApprovalState::Denied { note, .. } => note.as_ref(),
            ApprovalState::Approved { .. } => self.approvals.last().and_then(|it| it.note.as_ref()),
            ApprovalState::Waiting | ApprovalState::Expired { .. } => None,
        }
    }

    /// Whether somebody may still decide it, as far as this row tells.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.state == ApprovalState::Waiting
    }

    /// When it ended.
    #[must_use]
    pub const fn ended_at(&self) -> Option<Timestamp> {
        match self.state {
            ApprovalState::Waiting => None,
            ApprovalState::Approved { at } | ApprovalState::Denied { at, .. } | ApprovalState::Expired { at } => {
                Some(at)
            }
        }
    }

    /// The same without what `person` wrote: notes of theirs and reasons that they gave; with nobody named, without anybody's.
    #[must_use]
    pub fn forget(mut self, person: Option<PrincipalId>) -> Self {
        let is_theirs = |by: PrincipalId| person.is_none_or(|it| it == by);
        for consent in self.approvals.iter_mut().filter(|it| is_theirs(it.by)) {
            consent.note = None;
        }
        if let ApprovalState::Denied { by: Some(by), note, .. } = &mut self.state
            && is_theirs(*by)
        {
            *note = None;
        }
        match &mut self.subject {
            ApprovalSubject::Freeze(AskedFreeze { by: Requester::Person(by), reason, .. })
            | ApprovalSubject::HoldLift(AskedLift { by, reason, .. })
                if is_theirs(*by) =>
            {
                *reason = erased(reason);
            }
            ApprovalSubject::Action(_)
            | ApprovalSubject::Freeze(_)
            | ApprovalSubject::HoldLift(_)
            | ApprovalSubject::Owner(_)
            | ApprovalSubject::Budget(_) => {}
        }
        self
    }

    /// The same, ended without a person's decision.
    #[must_use]
    pub fn ended(mut self, state: ApprovalState) -> Self {
        self.state = state;
        self
    }
}

impl Linked for Approval {
    fn links(&self) -> Vec<Link> {
        let agent = self.asked_action().map(|it| it.agent.bits());
        let mut links = vec![Link::by_id(Index::ApprovalsOf, self.workspace.bits(), self.id)];
        links.extend(agent.map(|it| Link::by_id(Index::AskedOf, it, self.id)));
        if self.is_waiting() {
            links.push(Link::wake(self.workspace, self.expires_at));
            links.push(Link::by_id(Index::WaitingIn, self.workspace.bits(), self.id));
            links.extend(agent.map(|it| Link::by_id(Index::WaitingOf, it, self.id)));
        }
        // However it has ended, what asks for it elsewhere is told at once.
        links.extend(self.ended_at().filter(|_| !self.posted.is_empty()).map(|at| Link::wake(self.workspace, at)));
        links
    }
}
