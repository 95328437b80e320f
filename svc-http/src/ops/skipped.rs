//! Lists for whoever may read some of their rows alone: the others are skipped before there is a page, so that neither it nor its
//! cursor tells which there are and how many.

use svc_core::refusal::Refusal;
use svc_core::rules::people::by::owns;
use svc_core::state::gate::Agent;
use svc_core::store::{Found, Range, Record, Row as _};
use svc_core::value::id::{AgentId, PrincipalId};
use svc_store::Gate;

use super::aside::Asker;
use super::{GateService, refusal};

/// Rows of one look.
const LOOK: usize = 1_000;

impl GateService {
    /// As many rows of `range` as it asks for, of those that `sees` lets through; fewer where the range is over.
    ///
    /// # Errors
    /// Those of `sees`; `not_ready` where the asker has asked for too much already.
    pub(super) async fn scan_seen(
        &self,
        asker: Asker,
        mut range: Range,
        sees: impl Fn(&Gate, &[Found]) -> Result<Vec<bool>, Refusal> + Send + 'static,
    ) -> Result<Vec<Found>, Refusal> {
        let gate = self.gate.clone();
        let wanted = std::mem::replace(&mut range.limit, LOOK);
        let look = move |awaited: &super::aside::Awaited| {
            let mut seen = Vec::new();
            loop {
                awaited.go_on()?;
                let found = gate.scan(&range).map_err(refusal)?;
                let more = range.turn_page(&found);
                let shown = sees(&gate, &found)?;
                seen.extend(found.into_iter().zip(shown).filter_map(|(row, shown)| shown.then_some(row)));
                if !more || seen.len() >= wanted {
                    seen.truncate(wanted);
                    return Ok(seen);
                }
            }
        };
        self.aside.run_awaited(asker, look).await
    }
}

/// Which of these actions are of agents that are somebody's own.
///
/// # Errors
/// Those of reading.
pub(super) fn of_own_agents(gate: &Gate, own: PrincipalId, found: &[Found]) -> Result<Vec<bool>, Refusal> {
    let agents: Vec<Option<AgentId>> = found.iter().map(agent_of).collect();
    let read = gate.read(|scope| {
        scope.want(&agents.iter().flatten().map(|it| Agent::key(*it)).collect::<Vec<_>>())?;
        let mut seen = Vec::with_capacity(agents.len());
        for agent in &agents {
            seen.push(match agent {
                Some(id) => scope.get::<Agent>(*id)?.is_some_and(|it| owns(own, &it)),
                None => false,
            });
        }
        Ok(seen)
    });
    read.map_err(refusal)
}

fn agent_of(found: &Found) -> Option<AgentId> {
    if let Some(Record::Action(it)) = &found.row.record { Some(it.agent) } else { None }
}
