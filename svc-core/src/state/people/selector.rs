//! Which agents are meant: the conditions of a selector, all of which an agent has to meet.
//!
//! **Invariant:** an empty selector means nobody: whoever takes one refuses it for its [faults](Selector::faults).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::refusal::FieldError;
use crate::state::gate::{ActionKind, Agent, Mandate};
use crate::value::id::{AgentId, PrincipalId, TeamId};
use crate::value::likeness::{composed, told_by};
use crate::value::text::Label;

/// Conditions on agents; those that are absent are met by every agent that was not removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Whether every agent is meant, those among them that are made while a hold stands. Stands alone.
    pub all: bool,
    /// It is one of these.
    pub agents: Option<BTreeSet<AgentId>>,
    /// It acts for this principal.
    pub principal: Option<PrincipalId>,
    /// It acts for a member of this team.
    pub team: Option<TeamId>,
    /// It has an active mandate that this template made; names are one whichever way their accents are written.
    pub template: Option<Box<str>>,
    /// It has an active mandate that covers this type.
    pub action: Option<ActionKind>,
    /// Its name begins so, letter by letter, whichever way accents are written.
    pub name_prefix: Option<Box<str>>,
}

/// An agent and what a selector may ask about it.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// The agent.
    pub agent: &'a Agent,
    /// Its mandates in the versions that are active; needed where [`Selector::asks_mandates`].
    pub mandates: &'a [Arc<Mandate>],
    /// The teams that its principal is in; needed where [`Selector::asks_teams`].
    pub teams: &'a [TeamId],
}

impl Selector {
    /// Every agent.
    #[must_use]
    pub fn everyone() -> Self {
        Self { all: true, ..Self::default() }
    }

    /// Whether it says anything at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with it, as a body with it would be refused (CONTRACT part 2, "Fleet freeze and holds"): every agent meets a
    /// selector without a condition, and nothing stands beside `all`. How many agents a body may name is the body's bound alone.
    #[must_use]
    pub fn faults(&self) -> Vec<FieldError> {
        let mut faults = Vec::new();
        if self.is_empty() {
            faults.push(FieldError::new("selector", "must have at least one condition"));
        }
        if self.all && *self != Self::everyone() {
            faults.push(FieldError::new("selector.all", "must stand alone"));
        }
        if self.agents.as_ref().is_some_and(BTreeSet::is_empty) {
            faults.push(FieldError::new("selector.agentIds", "must have at least one entry"));
        }
        for (path, text) in [("selector.template", &self.template), ("selector.namePrefix", &self.name_prefix)] {
            if let Some(Err(why)) = text.as_ref().map(|it| Label::parse(it)) {
                faults.push(FieldError::invalid(path, why));
            }
        }
        faults
    }

    /// Whether it has to know an agent's mandates.
    #[must_use]
    pub const fn asks_mandates(&self) -> bool {
        self.template.is_some() || self.action.is_some()
    }

    /// Whether it has to know the teams of an agent's principal.
    #[must_use]
    pub const fn asks_teams(&self) -> bool {
        self.team.is_some()
    }

    /// Whether an agent meets what its own row can tell. What it fails, it fails whatever else is known of it.
    #[must_use]
    pub fn admits(&self, agent: &Agent) -> bool {
        !agent.is_removed()
            && self.agents.as_ref().is_none_or(|ids| ids.contains(&agent.id))
            && self.principal.is_none_or(|id| id == agent.principal)
            && self.name_prefix.as_ref().is_none_or(|it| composed(agent.name.as_str()).starts_with(&*composed(it)))
    }

    /// Whether an agent is meant.
    #[must_use]
    pub fn matches(&self, candidate: &Candidate<'_>) -> bool {
        let covers = |mandate: &Mandate, kind: &ActionKind| mandate.actions.iter().any(|it| it.covers(kind));
        let by_template = |mandate: &Mandate, name: &str| {
            mandate.template.as_ref().is_some_and(|it| told_by(it.as_str()) == told_by(name))
        };
        self.admits(candidate.agent)
            && self.team.is_none_or(|team| candidate.teams.contains(&team))
            && self.template.as_ref().is_none_or(|name| candidate.mandates.iter().any(|it| by_template(it, name)))
            && self.action.as_ref().is_none_or(|kind| candidate.mandates.iter().any(|it| covers(it, kind)))
    }
}
