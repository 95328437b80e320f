//! Whom a selector means: a scan over the agents of a workspace, made sound by its guard row, whose epoch is read before the
//! scan and checked again by the command that acts on what was found.
//!
//! **Invariant:** nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::rules::gate::fleet::Everyone;
use crate::state::gate::{Agent, Mandate};
use crate::state::people::{Candidate, Hold, MemberPart, Principal, Roster, Selector, Workspace, selection_digest};
use crate::store::{Found, Key, Loaded, PAGE_MAX, Range, Record, Row, Store};
use crate::value::digest::Digest;
use crate::value::id::{AgentId, HoldId, PrincipalId, TeamId, WorkspaceId};
use crate::value::link::Index;
use crate::value::text::Label;
use crate::value::{Id, Timestamp};

/// Agents that are shown of a selection.
pub const SHOWN_MAX: usize = 100;
/// Agents that one scan takes.
pub(super) const PAGE: usize = PAGE_MAX;

/// Rows to look at: a session of a store, or a reader's snapshot.
pub trait Look {
    /// What can go wrong.
    type Error;

    /// As [`Store::load`].
    ///
    /// # Errors
    /// Nothing could be read.
    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, Self::Error>;

    /// As [`Store::scan`].
    ///
    /// # Errors
    /// Nothing could be read.
    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, Self::Error>;
}

impl<S: Store> Look for S {
    type Error = S::Error;

    fn load(&mut self, keys: &[Key]) -> Result<Vec<Loaded>, S::Error> {
        Self::load(self, keys)
    }

    fn scan(&mut self, range: &Range) -> Result<Vec<Found>, S::Error> {
        Self::scan(self, range)
    }
}

/// The agents that a selector means.
#[derive(Clone, Debug)]
pub struct Selected {
    /// The guard row's epoch before the scan.
    pub epoch: u64,
    /// Their ids, sorted.
    pub agents: Vec<AgentId>,
    /// How many of them are frozen, by their own rows or by a freeze that these have not followed yet.
    pub frozen: u32,
    /// The first of them, by id: at most [`SHOWN_MAX`].
    pub shown: Vec<Shown>,
    /// What names the selection in the interface.
    pub digest: Digest,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: Label,
    /// The word for how it stands.
    pub standing: &'static str,
}

impl Selected {
    /// How many they are.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.agents.len()).unwrap_or(u32::MAX)
    }
}

impl From<Selected> for Everyone {
    fn from(looked: Selected) -> Self {
        Self { epoch: looked.epoch, agents: looked.agents.into() }
    }
}

/// Looks for the agents of `workspace` that `selector` means at `now`.
///
/// # Errors
/// Rows could not be read.
pub fn select<L: Look>(
    rows: &mut L,
    workspace: WorkspaceId,
    selector: &Selector,
    now: Timestamp,
) -> Result<Selected, L::Error> {
    let roster = load::<Roster, L>(rows, &[workspace])?.into_iter().next();
    let epoch = roster.map_or(0, |it| it.epoch);
    let mut selected =
        Selected { epoch, agents: Vec::new(), frozen: 0, shown: Vec::new(), digest: selection_digest(&[]) };
    // Before the agents: one whose row follows meanwhile is frozen either way.
    let followed = being_frozen(rows, workspace)?;
    let mut range = Range::all(Index::AgentsOf, workspace.bits(), PAGE);
    loop {
        let page = rows.scan(&range)?;
        let agents: Vec<Arc<Agent>> = page.iter().filter_map(|it| peel::<Agent>(&it.row)).collect();
        for agent in meant(rows, agents, selector, now)? {
            let is_frozen = agent.frozen().is_some() || (agent.is_active() && followed.contains(&agent.id));
            selected.frozen = selected.frozen.saturating_add(u32::from(is_frozen));
            selected.agents.push(agent.id);
            if selected.shown.len() < SHOWN_MAX {
                let standing = if is_frozen { "frozen" } else { agent.standing.as_str() };
                selected.shown.push(Shown { id: agent.id, name: agent.name.clone(), standing });
            }
        }
        if !range.turn_page(&page) {
            break;
        }
    }
    selected.agents.sort_unstable();
    selected.digest = selection_digest(&selected.agents);
    Ok(selected)
}

/// The agents whose freeze stands while their own rows follow it.
fn being_frozen<L: Look>(rows: &mut L, workspace: WorkspaceId) -> Result<BTreeSet<AgentId>, L::Error> {
    let Some(workspace) = load::<Workspace, L>(rows, &[workspace])?.into_iter().next() else {
        return Ok(BTreeSet::new());
    };
    let ids: Vec<HoldId> = workspace.holds.iter().map(|it| it.id).collect();
    let holds = load::<Hold, L>(rows, &ids)?;
    let lists = holds.iter().flat_map(|it| it.freezing()).map(|it| it.members);
    let parts: Vec<_> = lists.flat_map(|it| (0..).map_while(|number| it.part(number))).collect();
    Ok(load::<MemberPart, L>(rows, &parts)?.iter().flat_map(|it| it.agents.iter().copied()).collect())
}

/// Those of a page that are meant, with what the selector asks beside their own rows.
fn meant<L: Look>(
    rows: &mut L,
    agents: Vec<Arc<Agent>>,
    selector: &Selector,
    now: Timestamp,
) -> Result<Vec<Arc<Agent>>, L::Error> {
    let agents: Vec<Arc<Agent>> = agents.into_iter().filter(|it| selector.admits(it)).collect();
    let mut mandates: BTreeMap<AgentId, Vec<Arc<Mandate>>> = BTreeMap::new();
    if selector.asks_mandates() {
        let versions: Vec<_> = agents.iter().flat_map(|it| it.mandates_in_force(now)).collect();
        for mandate in load::<Mandate, L>(rows, &versions)? {
            mandates.entry(mandate.agent).or_default().push(mandate);
        }
    }
    let mut teams: BTreeMap<PrincipalId, Vec<TeamId>> = BTreeMap::new();
    if selector.asks_teams() {
        let principals: BTreeSet<PrincipalId> = agents.iter().map(|it| it.principal).collect();
        for principal in load::<Principal, L>(rows, &principals.into_iter().collect::<Vec<_>>())? {
            teams.extend(principal.membership().map(|it| (principal.id, it.teams.clone())));
        }
    }
    let is_meant = |agent: &Arc<Agent>| {
        let mandates = mandates.get(&agent.id).map(Vec::as_slice).unwrap_or_default();
        let teams = teams.get(&agent.principal).map(Vec::as_slice).unwrap_or_default();
        selector.matches(&Candidate { agent, mandates, teams })
    };
    Ok(agents.into_iter().filter(is_meant).collect())
}

pub(super) fn load<R: Row, L: Look>(rows: &mut L, ids: &[R::Id]) -> Result<Vec<Arc<R>>, L::Error> {
    let keys: Vec<Key> = ids.iter().map(|id| R::key(*id)).collect();
    let loaded = rows.load(&keys)?;
    Ok(loaded.iter().filter_map(peel::<R>).collect())
}

pub(super) fn peel<R: Row>(row: &Loaded) -> Option<Arc<R>> {
    row.record.as_ref().and_then(|it: &Record| R::peel(it)).cloned()
}
