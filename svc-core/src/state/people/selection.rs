//! A list of agents that were selected together: too long for one row, kept in rows that never change.

use serde::{Deserialize, Serialize};

use crate::value::Id;
use crate::value::digest::Digest;
use crate::value::id::{AgentId, SelectionId};
use crate::value::link::{Link, Linked, RowId};

/// Agents of one row of a list.
pub const MEMBERS_OF_PART: usize = 2_000;

/// A list of agents: how many, and by which row each is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// The list.
    pub selection: SelectionId,
    /// How many agents are in it.
    pub count: u32,
    /// The first agent of each of its rows, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firsts: Vec<AgentId>,
}

impl Members {
    /// The list of `agents`, which are sorted and each there once, and its rows.
    #[must_use]
    pub fn of(selection: SelectionId, agents: &[AgentId]) -> (Self, Vec<MemberPart>) {
        let parts: Vec<MemberPart> = agents
            .chunks(MEMBERS_OF_PART)
            .zip(0..)
            .map(|(agents, number)| MemberPart { id: MembersId { selection, number }, agents: agents.to_vec() })
            .collect();
        let firsts = parts.iter().filter_map(|it| it.agents.first().copied()).collect();
        (Self { selection, count: u32::try_from(agents.len()).unwrap_or(u32::MAX), firsts }, parts)
    }

    /// Its row `number`, from 0; `None` behind the last.
    #[must_use]
    pub fn part(&self, number: u32) -> Option<MembersId> {
        let at = usize::try_from(number).ok()?;
        self.firsts.get(at).map(|_| MembersId { selection: self.selection, number })
    }

    /// The one row that `agent` is in, if it is in the list.
    #[must_use]
    pub fn part_of(&self, agent: AgentId) -> Option<MembersId> {
        let behind = self.firsts.partition_point(|first| *first <= agent);
        let number = behind.checked_sub(1).and_then(|it| u32::try_from(it).ok())?;
        Some(MembersId { selection: self.selection, number })
    }
}

/// One row of a list, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MembersId {
    /// The list.
    pub selection: SelectionId,
    /// Which row of it.
    pub number: u32,
}

impl RowId for MembersId {
    fn parts(self) -> (u128, Option<u32>) {
        (self.selection.bits(), Some(self.number))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        Some(Self { selection: SelectionId::from_bits(bits), number: number? })
    }
}

/// A stretch of a list, in the order of ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberPart {
    /// Which row.
    pub id: MembersId,
    /// The agents.
    pub agents: Vec<AgentId>,
}

impl MemberPart {
    /// Whether `agent` is in it.
    #[must_use]
    pub fn holds(&self, agent: AgentId) -> bool {
        self.agents.binary_search(&agent).is_ok()
    }
}

impl Linked for MemberPart {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// What names a selection in the interface: SHA-256 over its agents' ids, sorted, joined by line feeds.
#[must_use]
pub fn selection_digest(agents: &[AgentId]) -> Digest {
    let mut text = String::with_capacity(agents.len().saturating_mul(31));
    for (place, agent) in agents.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        text.push_str(&agent.to_string());
    }
    Digest::of(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(count: u128) -> Vec<AgentId> {
        (1..=count).map(|it| AgentId::from_bits(it * 2)).collect()
    }

    /// Every member is found in the one row that the list names for it, and nobody else is.
    #[test]
    fn each_member_is_found_by_its_row() {
        for count in [1, 1_999, 2_000, 2_001, 4_000, 5_000] {
            let agents = agents(count);
            let (members, parts) = Members::of(SelectionId::from_bits(7), &agents);
            assert_eq!(parts.len(), usize::try_from(count).unwrap_or(0).div_ceil(MEMBERS_OF_PART));
            let found = |agent: AgentId| {
                let part = members.part_of(agent)?;
                parts.iter().find(|it| it.id == part).map(|it| it.holds(agent))
            };
            assert!(agents.iter().all(|it| found(*it) == Some(true)));
            assert!((0..count).all(|it| found(AgentId::from_bits(it * 2 + 1)) != Some(true)));
            assert_eq!(found(AgentId::from_bits(0)), None);
        }
    }

    /// The digest is of the ids' texts with line feeds between, as anybody can compute it.
    #[test]
    fn the_digest_is_of_the_texts() {
        let agents = agents(2);
        let text = format!("{}\n{}", agents[0], agents[1]);
        assert_eq!(selection_digest(&agents), Digest::of(text));
        assert_eq!(selection_digest(&[]), Digest::of(""));
    }
}
