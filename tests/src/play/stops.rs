//! Moves that stop agents, start them again, and change what they may do.

use std::sync::Arc;

use svc_core::rules::gate::fleet::FreezeFleet;
use svc_core::rules::gate::lift::LiftHold;
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::By;
use svc_core::rules::people::mandates::ChangeMandate;
use svc_core::state::gate::{Agent, Count, LimitsChange, Mandate, PerPeriod, Set, TermsChange};
use svc_core::state::people::{Hold, Roster, selection_digest};
use svc_core::store::Row;
use svc_core::value::id::{AgentId, HoldId, MandateId, WorkspaceId};
use svc_core::value::period::Period;
use svc_core::value::text::Note;

use super::Rows;

/// What there is to stop and to start: agents, holds, and mandates as they stand.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// How often what selects agents has changed.
    epoch: u64,
    /// Agents that were not removed, sorted, and whether each is frozen.
    agents: Vec<(AgentId, bool)>,
    /// Holds, lifted ones among them.
    holds: Vec<HoldId>,
    /// The newest version of each mandate.
    mandates: Vec<Arc<Mandate>>,
}

impl Standing {
    /// What there is by these rows.
    #[must_use]
    pub fn of(rows: &Rows) -> Self {
        let mut standing = Self::default();
        for (_, _, record) in rows {
            if let Some(roster) = Roster::peel(record) {
                standing.epoch = roster.epoch;
            } else if let Some(agent) = Agent::peel(record).filter(|it| !it.is_removed()) {
                standing.agents.push((agent.id, !agent.is_active()));
            } else if let Some(hold) = Hold::peel(record) {
                standing.holds.push(hold.id);
            } else if let Some(mandate) = Mandate::peel(record) {
                standing.keep(mandate);
            }
        }
        standing.agents.sort_unstable();
        standing
    }

    fn keep(&mut self, mandate: &Arc<Mandate>) {
        match self.mandates.iter_mut().find(|it| it.id.mandate == mandate.id.mandate) {
            Some(known) if known.id.version < mandate.id.version => *known = Arc::clone(mandate),
            Some(_) => {}
            None => self.mandates.push(Arc::clone(mandate)),
        }
    }

    /// The newest version of a mandate.
    #[must_use]
    pub fn mandate(&self, id: MandateId) -> Option<&Arc<Mandate>> {
        self.mandates.iter().find(|it| it.id.mandate == id)
    }

    /// One of the frozen agents; any agent where none is frozen.
    pub(super) fn to_restart(&self, agent: usize) -> Option<AgentId> {
        let frozen: Vec<AgentId> = self.agents.iter().filter(|it| it.1).map(|it| it.0).collect();
        let any = || self.agents.get(agent % self.agents.len().max(1)).map(|it| it.0);
        frozen.get(agent % frozen.len().max(1)).copied().or_else(any)
    }

    /// The command that stops every agent, or those of every other place.
    pub(super) fn freeze(&self, workspace: WorkspaceId, all: bool, first: usize) -> FreezeFleet {
        let meant = |(place, _): &(usize, &(AgentId, bool))| all || place % 2 == first % 2;
        let meant: Vec<&(AgentId, bool)> = self.agents.iter().enumerate().filter(meant).map(|it| it.1).collect();
        let agents: Vec<AgentId> = meant.iter().map(|it| it.0).collect();
        FreezeFleet {
            workspace,
            by: By::Program,
            epoch: self.epoch,
            frozen: u32::try_from(meant.iter().filter(|it| it.1).count()).unwrap_or(u32::MAX),
            digest: selection_digest(&agents),
            confirm: i64::try_from(agents.len()).ok(),
            agents: agents.into(),
            all,
            reason: why(),
            seen: None,
        }
    }

    /// The command that lifts a hold, if there is one: mostly the newest, which the others are behind.
    pub(super) fn lift(&self, workspace: WorkspaceId, hold: usize, restart: bool) -> Option<LiftHold> {
        let newest = self.holds.len().checked_sub(1 + hold % 2)?;
        let hold = *self.holds.get(newest)?;
        Some(LiftHold { workspace, hold, by: By::Program, reason: why(), restart })
    }
}

/// The command that starts an agent again.
pub(super) fn restart(workspace: WorkspaceId, agent: AgentId, by: By) -> RestartAgent {
    RestartAgent { workspace, agent, by, reason: why(), admin: None }
}

/// The command that changes a mandate, where that has what the change is of.
pub(super) fn change(workspace: WorkspaceId, old: &Mandate, choice: usize) -> Option<ChangeMandate> {
    let limits = old.limits();
    let period = |amount: &dyn Fn(i64) -> i64| {
        let it = limits.per_period.as_ref()?;
        Some(Set::To(PerPeriod { amount: amount(it.amount).max(1), period: it.period }))
    };
    let none = LimitsChange::default();
    let mut paused = None;
    let to = match choice % 9 {
        0 => LimitsChange { per_period: period(&|it| it / 2)?, ..none },
        1 => LimitsChange { per_period: period(&|it| it.saturating_mul(2).min(1_000_000))?, ..none },
        2 => {
            let most = limits.per_action?.checked_div(2).filter(|it| *it > 0)?;
            let ask_above = limits.ask_above.map_or(Set::Keep, |it| Set::To(it.min(most)));
            LimitsChange { per_action: Set::To(most), ask_above, ..none }
        }
        3 => LimitsChange { per_action: Set::To(limits.per_action?.saturating_mul(2).min(1_000_000)), ..none },
        4 => {
            let it = limits.count.as_ref()?;
            LimitsChange { count: Set::To(Count { max: (it.max / 2).max(1), period: it.period }), ..none }
        }
        5 => {
            let it = limits.count.as_ref()?;
            LimitsChange { count: Set::To(Count { max: it.max.saturating_mul(2).min(100), period: it.period }), ..none }
        }
        // What does not speak of a period any more needs no counting; what begins to speak of one does, and is refused without.
        6 if limits.per_action.is_some() => LimitsChange { per_period: Set::Clear, ..none },
        6 => LimitsChange { per_period: Set::To(PerPeriod { amount: 5_000, period: Period::Day }), ..none },
        7 => {
            paused = Some(true);
            none
        }
        _ => {
            paused = Some(false);
            none
        }
    };
    let limits = if to == LimitsChange::default() { Set::Keep } else { Set::To(to) };
    Some(ChangeMandate {
        workspace,
        by: By::Program,
        agent: old.agent,
        mandate: old.id.mandate,
        change: TermsChange { limits, ..TermsChange::default() },
        paused,
        confirm_broaden: true,
        counted: None,
    })
}

fn why() -> Note {
    Note::parse("a test has it so").expect("a note")
}
