//! What stops many agents at once: every one of a workspace until a person lifts it, or those of a selection until each of
//! their rows is written.

use serde::{Deserialize, Serialize};

use super::selection::Members;
use crate::state::gate::{FrozenBy, erased};
use crate::value::id::{ApprovalId, EvidenceId, HoldId, PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::Note;
use crate::value::words::words;
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

words! { HoldScope;
    All "all";
    Selection "selection";
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
    /// What is to be done after that, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<HoldWork>,
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
        let stops = self.work.iter_mut().chain(&mut self.then).filter_map(|it| it.of.as_mut());
        for stop in stops.filter(|it| it.by == FrozenBy::Person(person)) {
            stop.reason = erased(&stop.reason);
        }
        if let Some(lifted) = self.lifted.as_mut().filter(|it| it.author.or(it.by) == Some(person)) {
            lifted.reason = lifted.reason.as_ref().map(erased);
        }
        self
    }

    /// In how many commits its work is done at most; 0 where there is none.
    #[must_use]
    pub fn steps_left(&self) -> u32 {
        let steps = |it: &HoldWork| {
            let parts = u32::try_from(self.members_of(it).firsts.len()).unwrap_or(u32::MAX);
            parts.saturating_sub(it.parts).div_ceil(STEP_PARTS).max(1)
        };
        self.work.iter().chain(&self.then).map(steps).fold(0, u32::saturating_add)
    }

    /// The list that a work goes through.
    #[must_use]
    pub fn members_of<'a>(&'a self, work: &'a HoldWork) -> &'a Members {
        let later = work.of.as_ref().map(|it| &it.members);
        work.left.as_ref().or(later).unwrap_or(&self.members)
    }

    /// Those whose freeze stands while their own rows follow it.
    pub fn freezing(&self) -> impl Iterator<Item = Freezing<'_>> {
        self.work.iter().chain(&self.then).filter(|it| it.task == HoldTask::Freeze).map(|it| {
            let own = (&self.by, &self.reason, self.at);
            let (by, reason, at) = it.of.as_ref().map_or(own, |of| (&of.by, &of.reason, of.at));
            Freezing { members: self.members_of(it), by, reason, at }
        })
    }

    /// Has `work` done, after what is being done already.
    pub fn begin(&mut self, work: HoldWork) {
        if self.work.is_none() {
            self.work = Some(work);
        } else {
            self.then.push(work);
        }
    }

    /// Notes that the next rows of `work` are done: it goes on behind them, or what comes after it begins.
    pub fn step(&mut self, work: HoldWork) {
        let parts = work.parts.saturating_add(STEP_PARTS);
        let more = self.members_of(&work).part(parts).is_some();
        self.work = if more {
            Some(HoldWork { parts, ..work })
        } else {
            // Later than what was just done, as each step is.
            let since = work.since.plus(Span::millis(parts.into()));
            (!self.then.is_empty()).then(|| {
                let next = self.then.remove(0);
                HoldWork { since: since.max(next.since), ..next }
            })
        };
    }

    /// Notes that the next rows of `work` are done but for `left`, to whom it comes back at `again` and behind all else. Where it
    /// had come back to them already, everything that is still to be done rests until then.
    pub fn step_but(&mut self, work: HoldWork, left: Members, again: Timestamp) {
        let since = if work.left.is_some() { again } else { work.since };
        self.then.push(HoldWork { task: work.task, parts: 0, since: again, of: None, left: Some(left) });
        self.step(HoldWork { since, ..work });
    }
}

/// A freeze that stands, and that its members' own rows do not all say yet.
#[derive(Clone, Copy, Debug)]
pub struct Freezing<'a> {
    /// Whom it concerns.
    pub members: &'a Members,
    /// Who stopped them.
    pub by: &'a FrozenBy,
    /// Why.
    pub reason: &'a Note,
    /// When.
    pub at: Timestamp,
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
    /// Since when: not before this.
    pub since: Timestamp,
    /// To whom and in whose name, where that is not as the hold's own members and words say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<LaterStop>,
    /// Those of one step for whom it could not be done yet, where it comes back to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Members>,
}

impl HoldWork {
    /// A work that begins at the first row of its list.
    #[must_use]
    pub const fn new(task: HoldTask, since: Timestamp, of: Option<LaterStop>) -> Self {
        Self { task, parts: 0, since, of, left: None }
    }
}

/// A stop of many that came while a hold over every agent stood already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterStop {
    /// Whom it concerns.
    pub members: Members,
    /// Who stopped them.
    pub by: FrozenBy,
    /// Why.
    pub reason: Note,
    /// When.
    pub at: Timestamp,
}

/// What is done to each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldTask {
    /// It is frozen.
    Freeze,
    /// It is restarted, if this hold's freeze and nothing else has frozen it.
    Restart,
    /// What it holds is made void, and it stays active.
    Void,
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
    /// Who said why, where it is not who lifted it: they asked, and another owner agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<PrincipalId>,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::testing::sample;
    use crate::value::id::AgentId;

    /// One work begins behind another and goes through its own list; each step is due later than the one before, and the count of
    /// steps is right at each.
    #[test]
    fn works_are_done_one_after_another() {
        let members =
            |parts: usize| Members { selection: sample::id(9), count: 1, firsts: vec![AgentId::from_bits(1); parts] };
        let mut hold = Hold {
            id: sample::id(1),
            workspace: sample::id(2),
            scope: HoldScope::All,
            members: members(6),
            by: FrozenBy::Policy,
            reason: Note::parse("r").unwrap(),
            at: Timestamp::from_millis(5),
            evidence: sample::id(3),
            work: None,
            then: Vec::new(),
            asked: None,
            lifted: None,
        };
        let since = Timestamp::from_millis(7);
        hold.begin(HoldWork::new(HoldTask::Freeze, since, None));
        let (by, reason) = (FrozenBy::Person(sample::id(4)), Note::parse("again").unwrap());
        let of = LaterStop { members: members(1), by, reason, at: since };
        hold.begin(HoldWork::new(HoldTask::Void, since, Some(of)));
        let mut done = Vec::new();
        while let Some(work) = hold.work.clone() {
            done.push((work.task, work.parts, hold.steps_left(), work.since.plus(Span::millis(work.parts.into()))));
            assert_eq!(hold.clone().forget(sample::id(4)).steps_left(), hold.steps_left());
            hold.step(work);
        }
        let at = |millis| Timestamp::from_millis(millis);
        let freeze = HoldTask::Freeze;
        assert_eq!(done, [(freeze, 0, 3, at(7)), (freeze, 5, 2, at(12)), (HoldTask::Void, 0, 1, at(17))]);
        assert_eq!(hold.steps_left(), 0);
    }
}
