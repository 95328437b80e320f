//! What stops many agents at once: every one of a workspace until a person lifts it, or those of a selection until each of
//! their rows is written.

use serde::{Deserialize, Serialize};

use super::selection::Members;
use crate::state::gate::{FrozenBy, erased};
use crate::value::id::{ApprovalId, EvidenceId, HoldId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Note;
use crate::value::{Id, Span, Timestamp};

/// A hold as its workspace names it while it stands: all that a decision needs of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingHold {
    /// Its id.
    pub id: HoldId,
    /// Since when.
    pub at: Timestamp,
    /// Whom it stops; absent where that is every agent, those made later among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Members>,
}

/// Whom a hold stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldScope {
    /// Every agent, until a person lifts it.
    All,
    /// Those that were selected, until the row of each says so itself.
    Selection,
}

impl HoldScope {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Selection => "selection",
        }
    }
}

/// A hold: who set it and why, how far it is written into the agents' own rows, how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Whom it stops.
    pub scope: HoldScope,
    /// The agents that there were.
    pub members: Members,
    /// Who set it.
    pub by: FrozenBy,
    /// Why.
    pub reason: Note,
    /// When it was set.
    pub at: Timestamp,
    /// The record of the freeze.
    pub evidence: EvidenceId,
    /// What is being done to the members' own rows, while that is not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<HoldWork>,
    /// The question whether to lift it, once an owner has asked a second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<ApprovalId>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifted: Option<Lifted>,
}

impl Hold {
    /// The same without what `person` wrote.
    #[must_use]
    pub fn forget(mut self, person: PrincipalId) -> Self {
        if self.by == FrozenBy::Person(person) {
            self.reason = erased(&self.reason);
        }
        if let Some(lifted) = self.lifted.as_mut().filter(|it| it.by == Some(person)) {
            lifted.reason = lifted.reason.as_ref().map(erased);
        }
        self
    }

    /// In how many commits its work is done at most; 0 where there is none.
    #[must_use]
    pub fn steps_left(&self) -> u32 {
        let parts = u32::try_from(self.members.firsts.len()).unwrap_or(u32::MAX);
        self.work.as_ref().map_or(0, |it| parts.saturating_sub(it.parts).div_ceil(STEP_PARTS).max(1))
    }
}

/// Rows of a list that one commit works through.
pub const STEP_PARTS: u32 = 5;

/// What is being done to the rows of a hold's members, and how far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldWork {
    /// What.
    pub task: HoldTask,
    /// How many rows of the list are done.
    pub parts: u32,
    /// Since when.
    pub since: Timestamp,
}

/// What is done to each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldTask {
    /// It is frozen.
    Freeze,
    /// It is restarted, if this hold's freeze and nothing else has frozen it.
    Restart,
}

/// A hold's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifted {
    /// When.
    pub at: Timestamp,
    /// By whom; absent where it ended by itself, or the embedding program ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PrincipalId>,
    /// Why; absent where it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Note>,
}

impl Linked for Hold {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![Link::by_id(Index::HoldsOf, self.workspace.bits(), self.id)];
        // Each step moves the timer on by a millisecond: what is due is never what was just done.
        let due = self.work.as_ref().map(|it| it.since.plus(Span::millis(it.parts.into())));
        links.extend(due.map(|at| Link::wake(self.workspace, at)));
        links
    }
}
