//! Budgets for model calls (CONTRACT part 2, "Budget"): what may be spent on what, in which period, and by which steps a
//! budget makes itself felt. What has been spent and reserved lies in [`BudgetUse`].

mod ladder;
mod spending;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use ladder::{Ladder, Rung, Step};
pub(in crate::state) use spending::is_first;
pub use spending::{Admission, BudgetUse, ToldSteps, strictest};

use super::call::Payer;
use crate::state::people::{Maker, Settings};
use crate::value::id::{AgentId, BudgetId, KeyId, PrincipalId, TeamId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::period::Period;
use crate::value::text::ClassId;
use crate::value::words::words;
use crate::value::{Invalid, MicroUsd, Timestamp};

/// How many budgets a workspace has at most.
pub const BUDGETS_MAX: usize = 500;

/// What a budget is over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetScope {
    /// One key's calls.
    Key(KeyId),
    /// One agent's calls, whatever key they come with.
    Agent(AgentId),
    /// Calls for tasks of one class.
    TaskClass(ClassId),
    /// Calls that count for one person or service.
    Principal(PrincipalId),
    /// Calls that count for one team.
    Team(TeamId),
    /// Every call.
    Workspace,
}

words! {
    /// Its word in the interface.
    BudgetScope::kind;
    Workspace "workspace";
    Team "team";
    Principal "principal";
    Agent "agent";
    Key "key";
    TaskClass "taskClass";
}

impl BudgetScope {
    /// Whether a call of this payer counts.
    #[must_use]
    pub fn covers(&self, payer: &Payer) -> bool {
        match self {
            Self::Key(id) => *id == payer.key,
            Self::Agent(id) => Some(*id) == payer.agent,
            Self::TaskClass(id) => Some(id) == payer.class.as_ref(),
            Self::Principal(id) => *id == payer.principal,
            Self::Team(id) => Some(*id) == payer.team,
            Self::Workspace => true,
        }
    }

    /// How wide it is, from 0: key, agent, task class, principal, team, workspace.
    #[must_use]
    pub const fn width(&self) -> u8 {
        match self {
            Self::Key(_) => 0,
            Self::Agent(_) => 1,
            Self::TaskClass(_) => 2,
            Self::Principal(_) => 3,
            Self::Team(_) => 4,
            Self::Workspace => 5,
        }
    }

    /// The id of what it is over; absent for the workspace.
    #[must_use]
    pub fn target(&self) -> Option<String> {
        match self {
            Self::Key(id) => Some(id.to_string()),
            Self::Agent(id) => Some(id.to_string()),
            Self::TaskClass(id) => Some(id.as_str().to_owned()),
            Self::Principal(id) => Some(id.to_string()),
            Self::Team(id) => Some(id.to_string()),
            Self::Workspace => None,
        }
    }

    /// As the header `x-svc-budget-scope` has it: `kind:id`, the workspace by its own id.
    #[must_use]
    pub fn header(&self, workspace: WorkspaceId) -> String {
        let target = self.target().unwrap_or_else(|| workspace.to_string());
        format!("{}:{target}", self.kind())
    }
}

/// A budget's calendar period, in the workspace's zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    /// From midnight.
    Day,
    /// From Monday.
    Week,
    /// From the first.
    Month,
    /// From January, April, July or October.
    Quarter,
    /// For as long as the budget is there: never ends.
    Total,
}

impl BudgetPeriod {
    /// Every period, the shortest first.
    pub const ALL: [Self; 5] = [Self::Day, Self::Week, Self::Month, Self::Quarter, Self::Total];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Quarter => "quarter",
            Self::Total => "total",
        }
    }

    /// Reads `day`, `week`, `month`, `quarter` or `total`.
    ///
    /// # Errors
    /// [`Invalid`] for any other word.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::ALL
            .into_iter()
            .find(|it| it.as_str() == text)
            .ok_or_else(|| Invalid::new("must be `day`, `week`, `month`, `quarter` or `total`"))
    }

    /// The period that `at` lies in, and when it ends; a budget over all time begins with `made`.
    #[must_use]
    pub fn bounds(self, at: Timestamp, made: Timestamp, settings: &Settings) -> (Timestamp, Option<Timestamp>) {
        let calendar = match self {
            Self::Day => Period::Day,
            Self::Week => Period::Week,
            Self::Month => Period::Month,
            Self::Quarter => Period::Quarter,
            Self::Total => return (made, None),
        };
        let term = settings.term(calendar, at);
        (term.from, Some(term.until))
    }
}

impl fmt::Display for BudgetPeriod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A budget in a workspace's list of them: what a call finds its own by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetAt {
    /// Which one.
    pub id: BudgetId,
    /// What it is over.
    pub scope: BudgetScope,
}

/// A budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Its id.
    pub id: BudgetId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// What it is over; never changes.
    pub scope: BudgetScope,
    /// What may be spent in a period: above zero.
    pub amount: MicroUsd,
    /// Its period; never changes.
    pub period: BudgetPeriod,
    /// By which steps it makes itself felt.
    pub ladder: Ladder,
    /// Who can approve more, and is named to those who need it.
    pub owner: PrincipalId,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Budget {
    /// Its entry in the workspace's list.
    #[must_use]
    pub fn listed(&self) -> BudgetAt {
        BudgetAt { id: self.id, scope: self.scope.clone() }
    }
}

/// It is found by the list in its workspace's row.
impl Linked for Budget {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Id;

    fn payer() -> Payer {
        Payer {
            team: Some(TeamId::from_bits(1)),
            principal: PrincipalId::from_bits(2),
            agent: Some(AgentId::from_bits(3)),
            key: KeyId::from_bits(4),
            class: ClassId::parse("support.reply").ok(),
        }
    }

    /// A scope covers the calls that it names and no other; a call without a team or a class is in no such scope.
    #[test]
    fn a_scope_covers_its_own_calls() {
        let class = |text: &str| ClassId::parse(text).map(BudgetScope::TaskClass);
        let own = [
            Ok(BudgetScope::Key(KeyId::from_bits(4))),
            Ok(BudgetScope::Agent(AgentId::from_bits(3))),
            class("support.reply"),
            Ok(BudgetScope::Principal(PrincipalId::from_bits(2))),
            Ok(BudgetScope::Team(TeamId::from_bits(1))),
            Ok(BudgetScope::Workspace),
        ];
        let others = [
            Ok(BudgetScope::Key(KeyId::from_bits(5))),
            Ok(BudgetScope::Agent(AgentId::from_bits(5))),
            class("support"),
            Ok(BudgetScope::Principal(PrincipalId::from_bits(5))),
            Ok(BudgetScope::Team(TeamId::from_bits(5))),
        ];
        let covers = |scope: &Result<BudgetScope, _>, payer: &Payer| scope.as_ref().is_ok_and(|it| it.covers(payer));
        assert!(own.iter().all(|it| covers(it, &payer())));
        assert!(!others.iter().any(|it| covers(it, &payer())));
        let bare = Payer { team: None, agent: None, class: None, ..payer() };
        assert_eq!(own.iter().filter(|it| covers(it, &bare)).count(), 3);
        let widths: Vec<u8> = own.iter().flatten().map(BudgetScope::width).collect();
        assert_eq!(widths, [0, 1, 2, 3, 4, 5], "narrowest first");
    }

    /// A scope is told as its kind and id.
    #[test]
    fn a_scope_is_told_by_kind_and_id() {
        let workspace = WorkspaceId::from_bits(9);
        assert_eq!(BudgetScope::Workspace.header(workspace), format!("workspace:{workspace}"));
        let team = BudgetScope::Team(TeamId::from_bits(1));
        assert_eq!(team.header(workspace), format!("team:{}", TeamId::from_bits(1)));
    }

    /// A budget over all time begins when it is made and never ends; the others are calendar periods of the zone.
    #[test]
    fn a_total_never_ends() {
        let (at, made) = (Timestamp::from_millis(1_790_847_000_000), Timestamp::from_millis(5));
        assert_eq!(BudgetPeriod::Total.bounds(at, made, &Settings::default()), (made, None));
        let (start, end) = BudgetPeriod::Quarter.bounds(at, made, &Settings::default());
        assert_eq!(start.to_string(), "2026-10-01T00:00:00.000Z");
        assert_eq!(end.map(|it| it.to_string()).as_deref(), Some("2027-01-01T00:00:00.000Z"));
        assert!(BudgetPeriod::ALL.into_iter().all(|it| BudgetPeriod::parse(it.as_str()) == Ok(it)));
        assert!(BudgetPeriod::parse("year").is_err() && BudgetPeriod::parse("hour").is_err());
    }
}
