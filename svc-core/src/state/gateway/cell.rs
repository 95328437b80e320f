//! A day of model traffic, added up: what reports read, so that no report looks at single calls.
//!
//! One row holds what one key spent for one principal with one model on one class of tasks in one day of the workspace's zone:
//! an agent that passes on to somebody else keeps its keys. Calls are added in the commit that ends them, tasks and their
//! outcomes in the commit that reports them.

use serde::{Deserialize, Serialize};

use super::call::Payer;
use super::task::TaskStatus;
use super::usage::Usage;
use crate::value::digest::{CellId, Digest};
use crate::value::id::{AgentId, CallId, KeyId, PrincipalId, TeamId, UpstreamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked, Order};
use crate::value::period::Zone;
use crate::value::text::ClassId;
use crate::value::words::words;
use crate::value::{Id, MicroUsd, Timestamp};

/// How many calls a cell knows again.
pub const RECENT_MAX: usize = 32;

/// One day of one key, principal, model and class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Its id: workspace, day, key, model, class and principal as one digest.
    pub id: CellId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The day in the workspace's zone, counted from 1970-01-01.
    pub day: i64,
    /// The key.
    pub key: KeyId,
    /// Who the key counts for.
    pub principal: PrincipalId,
    /// The team the key counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// The agent whose key it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The model as `provider/model`; absent where no model was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// The provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamId>,
    /// The class of the tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassId>,
    /// The sums.
    #[serde(default)]
    pub sums: Sums,
    /// The latest call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<CallId>,
    /// The first eight bytes of the digests of the latest calls that were answered whole, the newest last: at most [`RECENT_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<u64>,
}

/// What one or many cells come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// Calls that ended.
    pub calls: u64,
    /// What they used.
    pub usage: Usage,
    /// What they cost.
    pub cost: MicroUsd,
    /// Of that, what is an estimate.
    pub estimated: MicroUsd,
    /// Calls that used something without a price.
    pub unpriced: u64,
    /// Tasks that were opened.
    pub tasks: u64,
    /// Outcomes that were reported, by [`TaskStatus::ALL`].
    pub outcomes: [u64; 4],
    /// What was wasted, by [`WasteKind::ALL`].
    pub waste: [Wasted; 5],
}

/// How money is wasted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WasteKind {
    /// The same call was made again though it had its whole answer.
    Repeat,
    /// The task was abandoned.
    Abandoned,
    /// A smaller model would have done for the class.
    Oversized,
    /// An attempt failed and was charged all the same.
    Retry,
    /// Input was paid in full that a provider's cache could have served.
    CacheMiss,
}

words! {
    /// In the order of a report.
    WasteKind;
    Repeat "repeat";
    Abandoned "abandoned";
    Oversized "oversized";
    Retry "retry";
    CacheMiss "cache_miss";
}

impl WasteKind {
    const fn place(self) -> usize {
        self as usize
    }
}

/// One kind of waste, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wasted {
    /// How often.
    pub count: u64,
    /// What the calls or tasks cost.
    pub cost: MicroUsd,
    /// What of that could have been saved.
    pub savable: MicroUsd,
    /// The latest call of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<CallId>,
}

impl Wasted {
    /// Takes back one that was added.
    fn take(&mut self, cost: MicroUsd, savable: MicroUsd) {
        self.count = self.count.saturating_sub(1);
        self.cost = self.cost.less(cost);
        self.savable = self.savable.less(savable);
        // Of none there is no example.
        self.example = self.example.filter(|_| self.count > 0);
    }
}

/// What a call that ended adds to its cell.
#[derive(Clone, Debug)]
pub struct CallFacts {
    /// The call.
    pub call: CallId,
    /// What it used; not what failed attempts did, which are added to their own models' cells.
    pub usage: Usage,
    /// What that cost.
    pub cost: MicroUsd,
    /// Of that, what is an estimate.
    pub estimated: MicroUsd,
    /// What it cost, failed attempts included: what waste is told by.
    pub whole: MicroUsd,
    /// Whether it used something without a price, and no failed attempt did: it counts once, with the first of them.
    pub unpriced: bool,
    /// Whether it opened its task.
    pub opens_task: bool,
    /// How it wasted money, and what of its cost could have been saved; each kind at most once.
    pub waste: Vec<(WasteKind, MicroUsd)>,
}

/// Where a call or a task is counted.
#[derive(Clone, Copy, Debug)]
pub struct CellAt<'a> {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The day in its zone, counted from 1970-01-01.
    pub day: i64,
    /// Who pays.
    pub payer: &'a Payer,
    /// The model as `provider/model`.
    pub model: Option<&'a str>,
    /// The provider.
    pub upstream: Option<UpstreamId>,
}

impl<'a> CellAt<'a> {
    /// The place of what happened at an instant.
    #[must_use]
    pub fn new(workspace: WorkspaceId, at: Timestamp, zone: &Zone, payer: &'a Payer, model: Option<&'a str>) -> Self {
        Self { workspace, day: zone.day(at), payer, model, upstream: None }
    }

    /// The row's id.
    #[must_use]
    pub fn id(&self) -> CellId {
        self.id_with(&[])
    }

    /// The id of the row where that one is of another provider, which bore the same name on the same day.
    #[must_use]
    pub fn id_beside(&self) -> CellId {
        let upstream = self.upstream.map_or(0, |it| it.bits());
        self.id_with(&[&upstream.to_be_bytes()])
    }

    fn id_with(&self, more: &[&[u8]]) -> CellId {
        let class = self.payer.class.as_ref().map_or("", |it| it.as_str());
        let own: [&[u8]; 6] = [
            &self.workspace.bits().to_be_bytes(),
            &self.day.to_be_bytes(),
            &self.payer.key.bits().to_be_bytes(),
            self.model.unwrap_or_default().as_bytes(),
            class.as_bytes(),
            &self.payer.principal.bits().to_be_bytes(),
        ];
        CellId::of(&[&own, more].concat())
    }

    /// The row with nothing in it.
    #[must_use]
    pub fn empty(&self) -> Cell {
        Cell {
            id: self.id(),
            workspace: self.workspace,
            day: self.day,
            key: self.payer.key,
            principal: self.payer.principal,
            team: self.payer.team,
            agent: self.payer.agent,
            model: self.model.map(Into::into),
            upstream: self.upstream,
            class: self.payer.class.clone(),
            sums: Sums::default(),
            last: None,
            recent: Vec::new(),
        }
    }
}

impl Cell {
    /// Whether a call with this digest is among the latest of its day, key, principal, model and class that were answered whole;
    /// where this one is, it is among them from here on.
    pub fn repeats(&mut self, digest: &Digest, answered: bool) -> bool {
        let mark = digest.as_bytes().first_chunk().map_or(0, |it| u64::from_be_bytes(*it));
        let known = self.recent.iter().position(|it| *it == mark);
        if !answered {
            return known.is_some();
        }
        if let Some(place) = known {
            self.recent.remove(place);
        } else if self.recent.len() >= RECENT_MAX {
            self.recent.remove(0);
        }
        self.recent.push(mark);
        known.is_some()
    }

    /// Adds a call that ended.
    pub fn add_call(&mut self, facts: &CallFacts) {
        let sums = &mut self.sums;
        sums.calls = sums.calls.saturating_add(1);
        sums.usage = sums.usage.plus(facts.usage);
        sums.cost = sums.cost.plus(facts.cost);
        sums.estimated = sums.estimated.plus(facts.estimated);
        sums.unpriced = sums.unpriced.saturating_add(facts.unpriced.into());
        sums.tasks = sums.tasks.saturating_add(facts.opens_task.into());
        for (kind, savable) in &facts.waste {
            if let Some(wasted) = sums.waste.get_mut(kind.place()) {
                wasted.count = wasted.count.saturating_add(1);
                wasted.cost = wasted.cost.plus(facts.whole);
                wasted.savable = wasted.savable.plus(*savable);
                wasted.example = Some(facts.call);
            }
        }
        self.last = Some(facts.call);
    }

    /// Adds what a failed attempt of a call is charged, which is counted as a call elsewhere; as `unpriced` it counts here.
    pub fn add_attempt(&mut self, usage: Usage, cost: MicroUsd, unpriced: bool) {
        let sums = &mut self.sums;
        sums.usage = sums.usage.plus(usage);
        sums.cost = sums.cost.plus(cost);
        if usage.estimated {
            sums.estimated = sums.estimated.plus(cost);
        }
        sums.unpriced = sums.unpriced.saturating_add(unpriced.into());
    }

    /// Corrects a call that was added before: what it added then is taken back, and it still is one call. Whether it opened its
    /// task stays as it was added.
    pub fn correct_call(&mut self, before: &CallFacts, facts: &CallFacts) {
        let sums = &mut self.sums;
        sums.calls = sums.calls.saturating_sub(1);
        sums.usage = sums.usage.less(before.usage);
        sums.cost = sums.cost.less(before.cost);
        sums.estimated = sums.estimated.less(before.estimated);
        sums.unpriced = sums.unpriced.saturating_sub(before.unpriced.into());
        for (kind, savable) in &before.waste {
            if let Some(wasted) = sums.waste.get_mut(kind.place()) {
                wasted.take(before.whole, *savable);
            }
        }
        let last = self.last;
        self.add_call(&CallFacts { opens_task: false, ..facts.clone() });
        self.last = last;
    }

    /// Adds a task's outcome. `spent` is what the task's calls have come to.
    pub fn add_outcome(&mut self, status: TaskStatus, spent: MicroUsd) {
        self.count_outcome(status, |it| it.saturating_add(1));
        if let Some((wasted, last)) = self.abandoned(status) {
            wasted.count = wasted.count.saturating_add(1);
            wasted.cost = wasted.cost.plus(spent);
            wasted.savable = wasted.cost;
            wasted.example = wasted.example.or(last);
        }
    }

    /// Takes an outcome back that was added here with as much spent: another one is reported in its place.
    pub fn take_outcome(&mut self, status: TaskStatus, spent: MicroUsd) {
        self.count_outcome(status, |it| it.saturating_sub(1));
        if let Some((wasted, _)) = self.abandoned(status) {
            wasted.take(spent, spent);
        }
    }

    fn count_outcome(&mut self, status: TaskStatus, step: impl Fn(u64) -> u64) {
        let place = TaskStatus::ALL.iter().position(|it| *it == status);
        if let Some(slot) = place.and_then(|it| self.sums.outcomes.get_mut(it)) {
            *slot = step(*slot);
        }
    }

    /// Where the waste of abandoned tasks is added up, where this outcome is of it; and the latest call, for an example.
    fn abandoned(&mut self, status: TaskStatus) -> Option<(&mut Wasted, Option<CallId>)> {
        let last = self.last;
        let wasted = self.sums.waste.get_mut(WasteKind::Abandoned.place());
        wasted.filter(|_| status == TaskStatus::Abandoned).map(|it| (it, last))
    }
}

impl Sums {
    /// Adds those of another cell.
    pub fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.usage = self.usage.plus(other.usage);
        self.cost = self.cost.plus(other.cost);
        self.estimated = self.estimated.plus(other.estimated);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.tasks = self.tasks.saturating_add(other.tasks);
        for (own, more) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own = own.saturating_add(more);
        }
        for (own, more) in self.waste.iter_mut().zip(&other.waste) {
            own.count = own.count.saturating_add(more.count);
            own.cost = own.cost.plus(more.cost);
            own.savable = own.savable.plus(more.savable);
            own.example = own.example.max(more.example);
        }
    }

    /// How many outcomes of this status were reported.
    #[must_use]
    pub fn outcome(&self, status: TaskStatus) -> u64 {
        let place = TaskStatus::ALL.iter().position(|it| *it == status);
        place.and_then(|it| self.outcomes.get(it)).copied().unwrap_or(0)
    }

    /// How many outcomes were reported.
    #[must_use]
    pub fn reported(&self) -> u64 {
        self.outcomes.iter().fold(0, |sum, it| sum.saturating_add(*it))
    }

    /// What an accepted task cost, all of the spend shared among them and rounded up; `None` where there is none.
    #[must_use]
    pub fn cost_per_accepted(&self) -> Option<MicroUsd> {
        let accepted = self.outcome(TaskStatus::Accepted);
        (accepted > 0).then(|| MicroUsd::new(self.cost.get().div_ceil(accepted)))
    }
}

impl Linked for Cell {
    fn links(&self) -> Vec<Link> {
        let order = Order::At(u128::try_from(self.day).unwrap_or(0));
        vec![Link { index: Index::CellsOf, prefix: self.workspace.bits(), order }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payer() -> Payer {
        Payer {
            key: KeyId::from_bits(1),
            agent: None,
            principal: PrincipalId::from_bits(2),
            team: None,
            class: ClassId::parse("support.reply").ok(),
        }
    }

    fn facts(call: u128, cost: u64) -> CallFacts {
        CallFacts {
            call: CallId::from_bits(call),
            usage: Usage { input: 10, output: 5, ..Usage::default() },
            cost: MicroUsd::new(cost),
            estimated: MicroUsd::ZERO,
            whole: MicroUsd::new(cost),
            unpriced: false,
            opens_task: false,
            waste: Vec::new(),
        }
    }

    fn cell() -> Cell {
        let payer = payer();
        let at = Timestamp::from_millis(1_790_847_000_000);
        CellAt::new(WorkspaceId::from_bits(1), at, &Zone::utc(), &payer, Some("one/large-1")).empty()
    }

    /// Every day, key, principal, model and class has a cell of its own.
    #[test]
    fn each_place_has_its_own_cell() {
        let (workspace, zone, payer) = (WorkspaceId::from_bits(1), Zone::utc(), payer());
        let at = Timestamp::from_millis(1_790_847_000_000);
        let own = CellAt::new(workspace, at, &zone, &payer, Some("one/large-1"));
        let other_key = Payer { key: KeyId::from_bits(9), ..payer.clone() };
        let other_principal = Payer { principal: PrincipalId::from_bits(9), ..payer.clone() };
        let other_class = Payer { class: None, ..payer.clone() };
        let ids = [
            own.id(),
            CellAt { day: own.day + 1, ..own }.id(),
            CellAt { model: Some("one/large"), ..own }.id(),
            CellAt { model: None, ..own }.id(),
            CellAt { payer: &other_key, ..own }.id(),
            CellAt { payer: &other_principal, ..own }.id(),
            CellAt { payer: &other_class, ..own }.id(),
            CellAt { workspace: WorkspaceId::from_bits(2), ..own }.id(),
        ];
        assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), ids.len());
        assert_eq!((own.empty().id, own.empty().day), (ids[0], 20_727));
    }

    /// Calls are added kind by kind; estimates, unpriced calls and waste are told apart.
    #[test]
    fn calls_are_added_up() {
        let mut cell = cell();
        cell.add_call(&CallFacts { opens_task: true, ..facts(1, 100) });
        let estimated = Usage { estimated: true, input: 3, ..Usage::default() };
        cell.add_call(&CallFacts { usage: estimated, estimated: MicroUsd::new(7), unpriced: true, ..facts(2, 7) });
        let waste = vec![(WasteKind::Repeat, MicroUsd::new(50)), (WasteKind::CacheMiss, MicroUsd::new(4))];
        cell.add_call(&CallFacts { waste, ..facts(3, 50) });
        let sums = &cell.sums;
        assert_eq!((sums.calls, sums.tasks, sums.unpriced), (3, 1, 1));
        assert_eq!((sums.cost.get(), sums.estimated.get(), sums.usage.input), (157, 7, 23));
        let repeat = sums.waste[0];
        assert_eq!((repeat.count, repeat.cost.get(), repeat.savable.get()), (1, 50, 50));
        assert_eq!(repeat.example, Some(CallId::from_bits(3)));
        assert_eq!((sums.waste[4].count, sums.waste[4].savable.get()), (1, 4));
        let mut both = Sums::default();
        both.add(sums);
        both.add(sums);
        assert_eq!((both.calls, both.cost.get(), both.waste[0].count), (6, 314, 2));
    }

    /// A call that is corrected is one call all the same: what it was taken for is gone from every sum.
    #[test]
    fn a_corrected_call_is_one_call() {
        let mut cell = cell();
        let estimated = Usage { estimated: true, input: 3, ..Usage::default() };
        let waste = vec![(WasteKind::Retry, MicroUsd::new(5)), (WasteKind::Oversized, MicroUsd::new(2))];
        let cost = MicroUsd::new(7);
        let before =
            CallFacts { usage: estimated, estimated: cost, unpriced: true, opens_task: true, waste, ..facts(1, 7) };
        cell.add_call(&before);
        cell.add_call(&facts(2, 100));
        let after = CallFacts { waste: vec![(WasteKind::Retry, MicroUsd::new(5))], ..facts(1, 9) };
        cell.correct_call(&before, &after);
        let sums = &cell.sums;
        assert_eq!((sums.calls, sums.tasks, sums.unpriced, cell.last), (2, 1, 0, Some(CallId::from_bits(2))));
        assert_eq!((sums.cost.get(), sums.estimated.get()), (109, 0));
        assert_eq!((sums.usage.input, sums.usage.output), (20, 10));
        let (oversized, retry) = (sums.waste[2], sums.waste[3]);
        assert_eq!(oversized, Wasted::default(), "with its example");
        assert_eq!((retry.count, retry.cost.get(), retry.savable.get()), (1, 9, 5));
    }

    /// The same call made again is known among the latest, and no more once many others came between.
    #[test]
    fn a_call_made_again_is_known() {
        let mut cell = cell();
        let digest = |number: usize| Digest::of(number.to_string());
        assert!(
            !cell.repeats(&digest(0), false) && !cell.repeats(&digest(0), true),
            "one that broke off has no answer"
        );
        assert!(cell.repeats(&digest(0), false) && cell.repeats(&digest(0), true));
        for number in 1..=RECENT_MAX {
            assert!(!cell.repeats(&digest(number), true), "{number}");
        }
        assert_eq!(cell.recent.len(), RECENT_MAX);
        assert!(cell.repeats(&digest(1), true) && !cell.repeats(&digest(0), true));
    }

    /// A later report takes the place of the one before, and what an abandoned task cost is waste while it counts as that.
    #[test]
    fn a_later_outcome_takes_the_place_of_the_one_before() {
        let mut cell = cell();
        cell.add_call(&facts(1, 101));
        let spent = MicroUsd::new(60);
        cell.add_outcome(TaskStatus::Abandoned, spent);
        let abandoned = cell.sums.waste[1];
        assert_eq!((abandoned.count, abandoned.cost, abandoned.savable), (1, spent, spent));
        assert_eq!((cell.sums.reported(), cell.sums.cost_per_accepted()), (1, None));
        cell.take_outcome(TaskStatus::Abandoned, spent);
        cell.add_outcome(TaskStatus::Accepted, spent);
        assert_eq!((cell.sums.reported(), cell.sums.outcome(TaskStatus::Accepted)), (1, 1));
        assert_eq!(cell.sums.waste[1], Wasted::default(), "with its example");
        cell.add_outcome(TaskStatus::Accepted, spent);
        assert_eq!(cell.sums.cost_per_accepted(), Some(MicroUsd::new(51)));
    }
}
