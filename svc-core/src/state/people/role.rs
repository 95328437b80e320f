//! What each role may do (CONTRACT part 5, "Roles"). This table is the only one: routes name a right, and rules ask for it
//! again in their own commit.

use serde::{Deserialize, Serialize};

use super::token::TokenScope;
use crate::value::words::words;

/// A member's role in a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// May do all.
    Owner,
    /// May do all but service tokens, owners, deleting the workspace and billing.
    Admin,
    /// Manages the agents that act for them.
    Member,
    /// Reads reports.
    Analyst,
    /// Reads evidence.
    Auditor,
}

words! {
    /// The most powerful first.
    Role;
    Owner "owner";
    Admin "admin";
    Member "member";
    Analyst "analyst";
    Auditor "auditor";
}

impl Role {
    /// Whether it makes and ends keys of the workspace.
    #[must_use]
    pub fn gives_keys(self) -> bool {
        self.reach(Right::ManageKeys) != Reach::No
    }

    /// Whether it reads in an action's own words what was asked, and to whom money goes.
    #[must_use]
    pub const fn reads_summaries(self) -> bool {
        !matches!(self, Self::Analyst)
    }

    /// How far this role's right goes.
    #[must_use]
    pub const fn reach(self, right: Right) -> Reach {
        match (self, right) {
            (_, Right::Everyone)
            | (Self::Owner, _)
            | (Self::Auditor, Right::ReadEvidence | Right::ReadAgents | Right::ReadApprovals | Right::ReadActions)
            | (Self::Auditor, Right::ReadHolds | Right::ReadMembers)
            | (Self::Analyst, Right::ReadReports | Right::ReadSpend | Right::ReadModels | Right::ReadActions)
            | (Self::Member, Right::ReadTemplates | Right::ReadModels) => Reach::All,
            (Self::Admin, Right::ManageTokens | Right::ManageOwners) => Reach::No,
            (Self::Admin, _) => Reach::All,
            (Self::Member, Right::ReadAgents | Right::RunAgents | Right::AgentKeys) => Reach::Own,
            (Self::Member, Right::ReadApprovals | Right::DecideApprovals | Right::ReadActions) => Reach::Own,
            (Self::Member, Right::ReadSpend) => Reach::Own,
            (Self::Member | Self::Analyst | Self::Auditor, Right::RaiseBudgets) => Reach::Own,
            (Self::Member | Self::Analyst | Self::Auditor, _) => Reach::No,
        }
    }
}

/// Something that one may be allowed to do. What no role's row names is nobody's but the owners' and admins'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// What every member may: their own person, settings, live events, applications of their own.
    Everyone,
    /// Making and revoking service tokens.
    ManageTokens,
    /// Making and removing owners.
    ManageOwners,
    /// Inviting, changing and removing members; teams.
    ManageMembers,
    /// Reading members and teams.
    ReadMembers,
    /// Changing settings.
    ManageSettings,
    /// Reading templates.
    ReadTemplates,
    /// Making and changing templates.
    ManageTemplates,
    /// Reading agents and their mandates.
    ReadAgents,
    /// Renaming, freezing and restarting agents.
    RunAgents,
    /// Making and removing agents, their tier, sponsor and kill owner.
    ManageAgents,
    /// Reading, making and revoking keys of agents.
    AgentKeys,
    /// Making, changing and revoking mandates.
    ManageMandates,
    /// Reading, making and revoking keys that are no agent's.
    ManageKeys,
    /// Reading approvals.
    ReadApprovals,
    /// Deciding approvals.
    DecideApprovals,
    /// Reading actions; an analyst's are without merchant and summary.
    ReadActions,
    /// Releasing what consumption kept posted.
    ReleaseActions,
    /// Freezing many agents at once, drills.
    FreezeFleet,
    /// Reading holds.
    ReadHolds,
    /// Lifting holds.
    LiftHolds,
    /// Reading the ledger, evidence and scorecards.
    ReadEvidence,
    /// Erasing personal data.
    Erase,
    /// Reading reports, budgets and routing.
    ReadReports,
    /// Reading what was spent; a member reads what is their own of it.
    ReadSpend,
    /// Reading models, which a member sees without the routing among them.
    ReadModels,
    /// Changing providers, models, classes, profiles and routing.
    ManageRouting,
    /// Making, changing and removing budgets.
    ManageBudgets,
    /// Raising what a budget allots in its period; whoever is a budget's owner may raise that one.
    RaiseBudgets,
    /// Integrations and their deliveries.
    ManageIntegrations,
    /// Reading and deciding everybody's applications.
    ManageApplications,
}

impl Right {
    /// Every right.
    pub const ALL: &'static [Self] = &[
        Self::Everyone,
        Self::ManageTokens,
        Self::ManageOwners,
        Self::ManageMembers,
        Self::ReadMembers,
        Self::ManageSettings,
        Self::ReadTemplates,
        Self::ManageTemplates,
        Self::ReadAgents,
        Self::RunAgents,
        Self::ManageAgents,
        Self::AgentKeys,
        Self::ManageMandates,
        Self::ManageKeys,
        Self::ReadApprovals,
        Self::DecideApprovals,
        Self::ReadActions,
        Self::ReleaseActions,
        Self::FreezeFleet,
        Self::ReadHolds,
        Self::LiftHolds,
        Self::ReadEvidence,
        Self::Erase,
        Self::ReadReports,
        Self::ReadSpend,
        Self::ReadModels,
        Self::ManageRouting,
        Self::ManageBudgets,
        Self::RaiseBudgets,
        Self::ManageIntegrations,
        Self::ManageApplications,
    ];

    /// The scope of a service token that gives it; no token has any other right.
    #[must_use]
    pub const fn token_scope(self) -> Option<TokenScope> {
        match self {
            Self::ReadAgents => Some(TokenScope::AgentsRead),
            Self::ManageAgents => Some(TokenScope::AgentsWrite),
            Self::FreezeFleet => Some(TokenScope::AgentsFreeze),
            Self::ReadApprovals => Some(TokenScope::ApprovalsRead),
            Self::ReadEvidence => Some(TokenScope::EvidenceRead),
            _ => None,
        }
    }

    /// Whether a workspace key with admin scope has it.
    #[must_use]
    pub const fn of_admin_key(self) -> bool {
        matches!(self, Self::ManageKeys | Self::ReadEvidence | Self::ReadReports | Self::ManageBudgets)
    }
}

/// How far a right goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// Nowhere.
    No,
    /// To agents whose principal or sponsor one is, and to what is theirs.
    Own,
    /// Everywhere in the workspace.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole table, as it was agreed: a right that changes hands shows here.
    #[test]
    fn the_table_is_the_agreed_one() {
        let reaching = |role: Role, reach| {
            let held = Right::ALL.iter().filter(|right| role.reach(**right) == reach);
            held.map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(reaching(Role::Owner, Reach::No), "");
        assert_eq!(reaching(Role::Owner, Reach::Own), "");
        assert_eq!(reaching(Role::Admin, Reach::No), "ManageTokens ManageOwners");
        assert_eq!(reaching(Role::Admin, Reach::Own), "");
        assert_eq!(reaching(Role::Member, Reach::All), "Everyone ReadTemplates ReadModels");
        assert_eq!(
            reaching(Role::Member, Reach::Own),
            "ReadAgents RunAgents AgentKeys ReadApprovals DecideApprovals ReadActions ReadSpend RaiseBudgets"
        );
        assert_eq!(reaching(Role::Analyst, Reach::All), "Everyone ReadActions ReadReports ReadSpend ReadModels");
        assert_eq!(reaching(Role::Analyst, Reach::Own), "RaiseBudgets");
        assert_eq!(
            reaching(Role::Auditor, Reach::All),
            "Everyone ReadMembers ReadAgents ReadApprovals ReadActions ReadHolds ReadEvidence"
        );
        assert_eq!(reaching(Role::Auditor, Reach::Own), "RaiseBudgets");
    }

    /// No machine decides an approval, lifts a hold, changes a mandate or makes a token.
    #[test]
    fn machines_have_few_rights() {
        let machines: Vec<Right> =
            Right::ALL.iter().copied().filter(|it| it.token_scope().is_some() || it.of_admin_key()).collect();
        for never in [
            Right::DecideApprovals,
            Right::LiftHolds,
            Right::RunAgents,
            Right::ManageMandates,
            Right::ManageTokens,
            Right::ManageMembers,
            Right::ManageSettings,
        ] {
            assert!(!machines.contains(&never), "{never:?}");
        }
    }
}
