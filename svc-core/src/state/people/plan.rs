//! Plans: how much a workspace may have (CONTRACT part 8, "Plans"). Which plan a workspace is on is a member of its row; what
//! a plan allows is the configuration of whoever runs the gate.

use serde::{Deserialize, Serialize};

use crate::value::words::words;

/// A plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plan {
    /// On one's own machines: no limits unless the operator sets some.
    #[default]
    SelfHosted,
    /// To try it out.
    Free,
    /// For a team.
    Team,
    /// For many teams.
    Enterprise,
}

words! { Plan;
    SelfHosted "self-hosted";
    Free "free";
    Team "team";
    Enterprise "enterprise";
}

/// How much a plan allows; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// People in a calendar month.
    pub people: u32,
    /// Agents that were not removed.
    pub agents: u32,
    /// Mandates that were not revoked.
    pub mandates: u32,
    /// Model requests in a calendar month.
    pub requests: u32,
}

impl Allowance {
    /// Whether `count` of something stays within `limit`.
    #[must_use]
    pub const fn admits(limit: u32, count: u32) -> bool {
        limit == 0 || count <= limit
    }
}

/// What every plan allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plans {
    /// Of `self-hosted`.
    pub self_hosted: Allowance,
    /// Of `free`.
    pub free: Allowance,
    /// Of `team`.
    pub team: Allowance,
    /// Of `enterprise`.
    pub enterprise: Allowance,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            self_hosted: Allowance::default(),
            free: Allowance { people: 3, agents: 3, mandates: 10, requests: 10_000 },
            team: Allowance { people: 20, agents: 50, mandates: 500, requests: 1_000_000 },
            enterprise: Allowance::default(),
        }
    }
}

impl Plans {
    /// What this plan allows.
    #[must_use]
    pub const fn of(&self, plan: Plan) -> &Allowance {
        match plan {
            Plan::SelfHosted => &self.self_hosted,
            Plan::Free => &self.free,
            Plan::Team => &self.team,
            Plan::Enterprise => &self.enterprise,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plans are those of the contract, and 0 is no limit.
    #[test]
    fn plans_allow_what_the_contract_says() {
        let plans = Plans::default();
        let row = |it: &Allowance| (it.people, it.agents, it.mandates, it.requests);
        assert_eq!(
            Plan::ALL.map(|it| row(plans.of(it))),
            [(0, 0, 0, 0), (3, 3, 10, 10_000), (20, 50, 500, 1_000_000), (0, 0, 0, 0)]
        );
        assert!(Allowance::admits(0, u32::MAX) && Allowance::admits(3, 3) && !Allowance::admits(3, 4));
        assert!(Plan::ALL.into_iter().all(|it| Plan::parse(it.as_str()) == Some(it)));
    }
}
