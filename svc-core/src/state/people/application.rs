//! What a member asks for that their role cannot do: kept as the change that it would be, until somebody who can decides.

use core::fmt;

use serde::{Deserialize, Serialize};

use super::principal::Principal;
use super::role::Role;
use crate::state::gate::{Terms, TermsChange, Tier, erased};
use crate::value::id::{AgentId, ApplicationId, ApprovalId, BudgetId, MandateId, PrincipalId, TeamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{Email, Label, Note};
use crate::value::words::words;
use crate::value::{Id, MicroUsd, Span, Timestamp};

/// How long an application waits.
pub const APPLICATION_LIFE: Span = Span::hours(14 * 24);

/// An application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// Its id.
    pub id: ApplicationId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Whose it is.
    pub by: PrincipalId,
    /// What is to change.
    pub change: Change,
    /// Why.
    pub reason: Note,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it waits.
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: ApplicationState,
    /// The second owner's answer that its change waits for, or waited for in vain; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondOwner>,
}

/// What a second owner is asked before the change of an application is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondOwner {
    /// The question.
    pub approval: ApprovalId,
    /// Until when it can be answered; from then on the application waits for anybody's decision again.
    pub until: Timestamp,
    /// What the first owner said.
    pub decision: Decision,
}

/// A change that somebody with the right would make themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A new agent.
    Agent(Box<AgentWish>),
    /// A mandate for an agent.
    Mandate(MandateWish),
    /// Another content for a mandate that an agent has.
    ChangedMandate(Box<MandateChangeWish>),
    /// Another tier for an agent.
    Tier {
        /// Which agent.
        agent: AgentId,
        /// How much it is to be trusted.
        tier: Tier,
    },
    /// Another role or other teams for a member.
    Role(RoleWish),
    /// More of a budget in its running period.
    BudgetRaise(RaiseWish),
}

/// An agent that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWish {
    /// What people are to call it.
    pub name: Label,
    /// Who it is to act for.
    pub email: Email,
    /// How much it is to be trusted.
    pub tier: Tier,
    /// Who is to answer for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sponsor: Option<PrincipalId>,
    /// Who is to be able to freeze it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_owner: Option<PrincipalId>,
    /// Its mandates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mandates: Vec<Wish>,
}

/// A mandate that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MandateWish {
    /// For which agent.
    pub agent: AgentId,
    /// What it is to say.
    pub wish: Wish,
    /// Whether it is meant that it lets the agent go anywhere beside a narrower one.
    #[serde(default)]
    pub confirm_broaden: bool,
}

/// A change of a mandate that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MandateChangeWish {
    /// Which agent's.
    pub agent: AgentId,
    /// Which mandate.
    pub mandate: MandateId,
    /// What it is to say from then on.
    pub change: TermsChange,
    /// Whether it is to be paused from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Whether it is meant that it lets the agent go anywhere.
    #[serde(default)]
    pub confirm_broaden: bool,
}

/// A change of a member that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleWish {
    /// Which member.
    pub member: PrincipalId,
    /// What they are to be allowed to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The teams they are to be in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teams: Option<Vec<TeamId>>,
}

/// More of a budget that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaiseWish {
    /// Which budget.
    pub budget: BudgetId,
    /// The running period's new allocation.
    pub allocation: MicroUsd,
    /// What the raise is to be recorded with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// What a change is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An agent.
    Agent(AgentId),
    /// A mandate.
    Mandate(MandateId),
    /// A member.
    Member(PrincipalId),
    /// A budget.
    Budget(BudgetId),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(id) => id.fmt(f),
            Self::Mandate(id) => id.fmt(f),
            Self::Member(id) => id.fmt(f),
            Self::Budget(id) => id.fmt(f),
        }
    }
}

/// What a mandate is to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// What the template with this name says when it is granted.
    Template(Box<str>),
    /// This.
    Whole(Box<Terms>),
}

/// Where an application stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationState {
    /// It waits for somebody who can decide it.
    Waiting,
    /// The change was made.
    Approved(Decision),
    /// The change was not made.
    Denied(Decision),
    /// Whoever made it took it back, or is a member no more.
    Withdrawn {
        /// When.
        at: Timestamp,
    },
    /// Nobody decided in time.
    Expired {
        /// When the time was up.
        at: Timestamp,
    },
}

/// Who decided an application, when, and what they said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: PrincipalId,
    /// What they said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

words! {
    /// The word for what kind of change it is.
    Change::kind;
    Agent "agent";
    Mandate | ChangedMandate "mandate";
    Tier "tier";
    BudgetRaise "budget_raise";
    Role "role";
}

impl Change {
    /// Whether a mandate that it brings tells an MCP server called `old` from one called `new`; what a template says is the template's.
    #[must_use]
    pub fn tells_servers_apart(&self, old: &str, new: &str) -> bool {
        let is_apart = |wish: &Wish| match wish {
            Wish::Template(_) => false,
            Wish::Whole(terms) => terms.tells_servers_apart(old, new),
        };
        match self {
            Self::Agent(wish) => wish.mandates.iter().any(is_apart),
            Self::Mandate(wish) => is_apart(&wish.wish),
            Self::ChangedMandate(wish) => wish.change.tells_servers_apart(old, new),
            Self::Tier { .. } | Self::Role(_) | Self::BudgetRaise(_) => false,
        }
    }

    /// The agent that it changes, where it changes one.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        match self {
            Self::Mandate(wish) => Some(wish.agent),
            Self::ChangedMandate(wish) => Some(wish.agent),
            Self::Tier { agent, .. } => Some(*agent),
            Self::Agent(_) | Self::Role(_) | Self::BudgetRaise(_) => None,
        }
    }

    /// Whether it makes an agent for somebody whose address was erased meanwhile.
    #[must_use]
    pub fn is_for_nobody(&self) -> bool {
        if let Self::Agent(wish) = self { Principal::is_nowhere(&wish.email) } else { false }
    }

    /// What it is about, where it is about something that is there.
    #[must_use]
    pub const fn target(&self) -> Option<Target> {
        match self {
            Self::Agent(_) => None,
            Self::Mandate(wish) => Some(Target::Agent(wish.agent)),
            Self::ChangedMandate(wish) => Some(Target::Mandate(wish.mandate)),
            Self::Tier { agent, .. } => Some(Target::Agent(*agent)),
            Self::Role(wish) => Some(Target::Member(wish.member)),
            Self::BudgetRaise(wish) => Some(Target::Budget(wish.budget)),
        }
    }
}

words! {
    /// The word for it.
    ApplicationState::as_str;
    Waiting "waiting";
    Approved "approved";
    Denied "denied";
    Withdrawn "withdrawn";
    Expired "expired";
}

impl Application {
    /// The same without what `person` wrote, and without `address` where somebody wrote that one as theirs.
    #[must_use]
    pub fn forget(mut self, person: PrincipalId, address: Option<&Email>) -> Self {
        if let Change::Agent(wish) = &mut self.change
            && address == Some(&wish.email)
            && let Some(nowhere) = Principal::nowhere(person)
        {
            wish.email = nowhere;
        }
        if self.by == person {
            self.reason = erased(&self.reason);
            if let Change::BudgetRaise(wish) = &mut self.change {
                wish.note = None;
            }
        }
        if let ApplicationState::Approved(decision) | ApplicationState::Denied(decision) = &mut self.state
            && decision.by == person
        {
            decision.note = None;
        }
        if let Some(second) = self.second.as_mut().filter(|it| it.decision.by == person) {
            second.decision.note = None;
        }
        self
    }

    /// Where it stands at `now`: one whose time is up has expired, whether or not that is written yet.
    #[must_use]
    pub fn stands(&self, now: Timestamp) -> ApplicationState {
        let over = self.over();
        match &self.state {
            ApplicationState::Waiting if now >= over => ApplicationState::Expired { at: over },
            state => state.clone(),
        }
    }

    /// The second owner's answer that it waits for at `now`, if it does.
    #[must_use]
    pub fn pending(&self, now: Timestamp) -> Option<&SecondOwner> {
        self.second.as_ref().filter(|it| self.state == ApplicationState::Waiting && now < it.until)
    }

    /// The same, ended.
    #[must_use]
    pub fn ended(self, state: ApplicationState) -> Self {
        Self { state, second: None, ..self }
    }

    /// When its time is up: not before a second owner who is asked can answer no more.
    fn over(&self) -> Timestamp {
        self.second.as_ref().map_or(self.expires_at, |it| it.until.max(self.expires_at))
    }
}

impl Linked for Application {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![
            Link::by_id(Index::ApplicationsOf, self.workspace.bits(), self.id),
            Link::by_id(Index::ApplicationsBy, self.by.bits(), self.id),
        ];
        if self.state == ApplicationState::Waiting {
            links.push(Link::wake(self.workspace, self.over()));
        }
        links
    }
}
