//! What an agent did lately: the sliding lines that velocity and probing read, and the sums of its mandates' running
//! periods. One row, so that an authorization writes one page for all of it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::block::{Block, BlockId, BlockOwner, SEALED};
use crate::state::people::Settings;
use crate::value::digest::TopicId;
use crate::value::id::{AgentId, MandateId};
use crate::value::link::{Link, Linked};
use crate::value::period::Period;
use crate::value::text::Source;
use crate::value::time::CLOCKS_APART_MAX;
use crate::value::{Span, Timestamp};

/// An agent's recent past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The agent.
    pub agent: AgentId,
    /// Tool calls, allowed or asked.
    #[serde(default, skip_serializing_if = "Line::is_unused")]
    pub tools: Line,
    /// All other actions, allowed or asked.
    #[serde(default, skip_serializing_if = "Line::is_unused")]
    pub others: Line,
    /// The newest denials, at most [`DENIALS_KEPT`].
    #[serde(default, with = "deltas", skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Timestamp>,
    /// How many approvals wait that were asked for in the epoch [`waiting_of`](Self::waiting_of).
    #[serde(default, skip_serializing_if = "is_none")]
    waiting: u32,
    /// The agent's epoch that `waiting` speaks of: a stop ends every older wait at once, although each is written one by one.
    /// Where nothing is named, that of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waiting_of: Option<u32>,
    /// Sums of periods that have not ended.
    #[serde(default)]
    pub tallies: Vec<Tally>,
    /// Sources that its model traffic brought in, under any of its keys, each with when that was last seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<SeenSource>,
    /// Counts settlements for another amount than was asked that moved no sum here: whoever adds up actions beside this row
    /// sees that one came between.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unsummed: u32,
    /// Agents whose sessions it has named, of which people were told within [`CONFLICT_QUIET`]: `CONFLICTS_KEPT` at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ToldConflict>,
    /// What of it ran although it was not allowed, and people were told of within [`RUNS_QUIET`]: [`RUNS_KEPT`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<ToldTopic>,
    /// What it asked that is told from others of its type by what it shares or has as details alone, and people were told of within
    /// [`UNLIKE_FOR`]: [`UNLIKE_KEPT`] at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<ToldTopic>,
}

/// That people were told of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldTopic {
    /// What was asked: the same of all that is alike.
    pub of: TopicId,
    /// When.
    pub at: Timestamp,
}

/// How long people who were told of a run of what was not allowed are told of no other one that is alike.
pub const RUNS_QUIET: Span = Span::hours(1);
/// How many runs of one agent are told within [`RUNS_QUIET`]: an agent whose tools ask nobody fills no mailbox.
pub const RUNS_KEPT: usize = 8;
/// How long what was told by itself, for what it shares or its details, counts among [`UNLIKE_KEPT`].
pub const UNLIKE_FOR: Span = Span::hours(1);
/// How many of one agent's asks are told by themselves for that within [`UNLIKE_FOR`]: an agent that makes up details fills no mailbox.
pub const UNLIKE_KEPT: usize = 8;

/// That people were told of a conflict about a session with another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldConflict {
    /// The other agent.
    pub with: AgentId,
    /// When.
    pub at: Timestamp,
}

/// How long people who were told of a conflict of two agents are told of no other one of the same two.
pub const CONFLICT_QUIET: Span = Span::hours(1);
/// With how many agents an agent's conflicts are told within [`CONFLICT_QUIET`]: whoever makes up names fills no mailbox.
const CONFLICTS_KEPT: usize = 16;

/// A source that entered an agent's context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenSource {
    /// The source.
    pub source: Source,
    /// When it was last seen.
    pub at: Timestamp,
}

/// How long a source is kept after it was last seen: the longest window there is, and what clocks may be apart.
const SEEN_KEPT: Span = Span::minutes(1_440 + 1);

/// How many denials are kept: as many as the probing rule looks back on.
pub const DENIALS_KEPT: usize = 60;

impl Linked for Activity {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Activity {
    /// Nothing done yet.
    #[must_use]
    pub fn none(agent: AgentId) -> Self {
        Self {
            agent,
            tools: Line::default(),
            others: Line::default(),
            denials: Vec::new(),
            waiting: 0,
            waiting_of: None,
            tallies: Vec::new(),
            seen: Vec::new(),
            unsummed: 0,
            conflicts: Vec::new(),
            runs: Vec::new(),
            unlike: Vec::new(),
        }
    }

    /// How many approvals of the agent's present `epoch` wait.
    #[must_use]
    pub const fn waiting(&self, epoch: u32) -> u32 {
        if self.is_of(epoch) { self.waiting } else { 0 }
    }

    const fn is_of(&self, epoch: u32) -> bool {
        match self.waiting_of {
            Some(own) => own == epoch,
            None => true,
        }
    }

    /// Notes that one more approval waits, asked for in the agent's present `epoch`.
    pub const fn begin_wait(&mut self, epoch: u32) {
        self.waiting = self.waiting(epoch).saturating_add(1);
        self.waiting_of = Some(epoch);
    }

    /// Notes that an approval asked for in `epoch` waits no more. One of an older epoch is not counted any more.
    pub const fn end_wait(&mut self, epoch: u32) {
        if self.is_of(epoch) {
            self.waiting = self.waiting.saturating_sub(1);
        }
    }

    /// Whether people were told of a conflict with this agent within [`CONFLICT_QUIET`].
    #[must_use]
    pub fn told_of(&self, with: AgentId, now: Timestamp) -> bool {
        self.conflicts.iter().any(|it| it.with == with && now.since(it.at) < CONFLICT_QUIET)
    }

    /// Notes that people are told of a conflict with this agent; whether they are to be.
    pub fn tell_of(&mut self, with: AgentId, now: Timestamp) -> bool {
        self.conflicts.retain(|it| now.since(it.at) < CONFLICT_QUIET);
        let is_due = self.conflicts.len() < CONFLICTS_KEPT && !self.told_of(with, now);
        if is_due {
            self.conflicts.push(ToldConflict { with, at: now });
        }
        is_due
    }

    /// Notes that people are told of a run of this, which was not allowed; whether they are to be.
    pub fn tell_run(&mut self, of: TopicId, now: Timestamp) -> bool {
        self.runs.retain(|it| now.since(it.at) < RUNS_QUIET);
        let is_due = self.runs.len() < RUNS_KEPT && !self.runs.iter().any(|it| it.of == of);
        if is_due {
            self.runs.push(ToldTopic { of, at: now });
        }
        is_due
    }

    /// Notes that this, which is like others but for what it shares or its details, is told by itself; whether it may be.
    pub fn tell_unlike(&mut self, of: TopicId, now: Timestamp) -> bool {
        self.unlike.retain(|it| now.since(it.at) < UNLIKE_FOR);
        let is_known = self.unlike.iter().any(|it| it.of == of);
        let is_room = self.unlike.len() < UNLIKE_KEPT;
        if !is_known && is_room {
            self.unlike.push(ToldTopic { of, at: now });
        }
        is_known || is_room
    }

    /// Notes sources that entered the agent's context; whether there was anything to note. Each sighting is noted, as a window
    /// is exact: whatever brings something in is a call, which writes rows of its own. What a clock that was ahead has noted was seen
    /// now at the latest.
    pub fn see<'a>(&mut self, sources: impl Iterator<Item = &'a Source>, now: Timestamp) -> bool {
        let mut changed = false;
        for known in self.seen.iter_mut().filter(|it| it.at.is_ahead_of(now)) {
            (known.at, changed) = (now, true);
        }
        for source in sources {
            match self.seen.iter_mut().find(|it| it.source == *source) {
                Some(known) if known.at >= now => {}
                Some(known) => (known.at, changed) = (now, true),
                None => {
                    self.seen.push(SeenSource { source: source.clone(), at: now });
                    changed = true;
                }
            }
        }
        if changed {
            self.seen.retain(|it| now.since(it.at) < SEEN_KEPT);
        }
        changed
    }

    /// What entered the agent's context within `window` before `now`.
    pub fn seen_within(&self, window: Span, now: Timestamp) -> impl Iterator<Item = &Source> {
        self.seen.iter().filter(move |it| now.since(it.at) <= window).map(|it| &it.source)
    }

    /// Notes a denial. An instant before the newest one counts as that one: a wrong clock moves nothing back.
    pub fn deny(&mut self, now: Timestamp) {
        let at = self.denials.last().map_or(now, |last| now.max(*last));
        self.denials.push(at);
        let over = self.denials.len().saturating_sub(DENIALS_KEPT);
        self.denials.drain(..over);
    }

    /// The sum of `mandate` for the `period` that `now` lies in; a fresh one where none runs. A running period keeps the
    /// bounds it began with, so a changed zone takes effect when it ends. One that is yet to begin was begun by a clock that was
    /// ahead, and does not run.
    #[must_use]
    pub fn tally(&self, mandate: MandateId, period: Period, now: Timestamp, settings: &Settings) -> Tally {
        let runs = |it: &&Tally| now < it.until && !it.from.is_ahead_of(now);
        let running = self.tallies.iter().filter(|it| it.mandate == mandate && it.period == period).find(runs);
        running.cloned().unwrap_or_else(|| Tally::none(mandate, settings.term(period, now)))
    }

    /// Stores `tally` in place of the one it follows, and lets go of periods that have ended on every node's clock: by the
    /// clock of another node a period may still run, and what it holds must not be forgotten.
    pub fn keep(&mut self, tally: Tally, now: Timestamp) {
        let ended = |it: &Tally| now >= it.until.plus(CLOCKS_APART_MAX);
        self.tallies.retain(|it| !ended(it) && (it.mandate, it.period) != (tally.mandate, tally.period));
        self.tallies.push(tally);
    }

    /// The sum that a reservation was made in, if it is still kept.
    pub fn reserved_in(&mut self, mandate: MandateId, term: Term) -> Option<&mut Tally> {
        self.tallies.iter_mut().find(|it| it.mandate == mandate && it.term() == term)
    }
}

/// One calendar period. Both of its ends tell it from others: after a change of zone the period that begins may have the beginning
/// of the one that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Period, Timestamp, Span)", into = "(Period, Timestamp, Span)")]
pub struct Term {
    /// Which kind of period.
    pub period: Period,
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub until: Timestamp,
}

impl From<(Period, Timestamp, Span)> for Term {
    fn from((period, from, length): (Period, Timestamp, Span)) -> Self {
        Self { period, from, until: from.plus(length) }
    }
}

impl From<Term> for (Period, Timestamp, Span) {
    fn from(term: Term) -> Self {
        (term.period, term.from, term.until.since(term.from))
    }
}

/// One mandate's sums in one calendar period. Amounts are minor units of the mandate's currency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The mandate, whatever its version.
    pub mandate: MandateId,
    /// Which kind of period.
    pub period: Period,
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub until: Timestamp,
    /// Promised to actions that are allowed or waiting.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reserved: i64,
    /// Posted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub spent: i64,
    /// What persons allowed beyond the limit: it neither fills nor frees it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub excess: i64,
    /// Actions, reserved and posted.
    #[serde(default, skip_serializing_if = "is_none")]
    pub count: u32,
    /// The version that began to speak of this period while it ran, for whom amounts of earlier versions' actions were added
    /// up: theirs are in `spent` without a reservation. 0 where there was none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub summed_for: u32,
    /// The same of `count`.
    #[serde(default, skip_serializing_if = "is_none")]
    pub counted_for: u32,
}

impl Tally {
    /// A sum of nothing.
    #[must_use]
    pub fn none(mandate: MandateId, Term { period, from, until }: Term) -> Self {
        let (reserved, spent, excess) = (0, 0, 0);
        Self { mandate, period, from, until, reserved, spent, excess, count: 0, summed_for: 0, counted_for: 0 }
    }

    /// The period whose sum this is.
    #[must_use]
    pub const fn term(&self) -> Term {
        Term { period: self.period, from: self.from, until: self.until }
    }

    /// What fills the limit: promised and posted together.
    #[must_use]
    pub const fn used(&self) -> i64 {
        self.reserved.saturating_add(self.spent)
    }
}

/// A sliding line: instants, oldest first, the newest of them inline and the older ones in sealed blocks, so that
/// neither the row nor a decision grows with the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The newest instants: all of them while there are few, never fewer than one block once some are sealed.
    #[serde(default, with = "deltas")]
    pub recent: Vec<Timestamp>,
    /// How many blocks were sealed, deleted ones among them.
    #[serde(default, skip_serializing_if = "is_none")]
    pub sealed: u32,
    /// The first block that is still there.
    #[serde(default, skip_serializing_if = "is_none")]
    pub first: u32,
}

/// Where the n-th newest instant of a line is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nth {
    /// There are not so many, or it is so old that it was let go.
    None,
    /// Here it is.
    At(Timestamp),
    /// In this block at this place.
    InBlock(u32, usize),
}

impl Line {
    /// Notes `now`, and gives the block to store where one is full. An instant before the newest counts as that one.
    pub fn push(&mut self, now: Timestamp, owner: impl FnOnce() -> BlockOwner) -> Option<Block> {
        let at = self.recent.last().map_or(now, |last| now.max(*last));
        self.recent.push(at);
        if self.recent.len() < 2 * SEALED {
            return None;
        }
        let at = self.recent.drain(..SEALED).collect();
        let id = BlockId { owner: owner(), number: self.sealed };
        self.sealed = self.sealed.saturating_add(1);
        Some(Block { id, at, amounts: Vec::new(), unpaid: Vec::new() })
    }

    /// Finds the n-th newest instant, counted from 1.
    #[must_use]
    pub fn nth_newest(&self, n: usize) -> Nth {
        if n == 0 {
            return Nth::None;
        }
        if let Some(index) = self.recent.len().checked_sub(n) {
            return self.recent.get(index).map_or(Nth::None, |at| Nth::At(*at));
        }
        let older = n - self.recent.len();
        let sealed = usize::try_from(self.sealed).unwrap_or(usize::MAX).saturating_mul(SEALED);
        let Some(index) = sealed.checked_sub(older) else { return Nth::None };
        let block = u32::try_from(index / SEALED).unwrap_or(u32::MAX);
        if block < self.first { Nth::None } else { Nth::InBlock(block, index % SEALED) }
    }

    /// How many instants can still be found.
    #[must_use]
    pub fn len(&self) -> usize {
        let blocks = usize::try_from(self.sealed.saturating_sub(self.first)).unwrap_or(usize::MAX);
        blocks.saturating_mul(SEALED).saturating_add(self.recent.len())
    }

    /// Whether nothing was ever noted.
    fn is_unused(&self) -> bool {
        *self == Self::default()
    }

    /// Whether nothing was noted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Whether a number says nothing: storage does without.
pub(super) fn is_none<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

/// Instants as their first one and the distances between them: a third of the bytes, and still JSON.
pub(super) mod deltas {
    use super::{Deserialize, Deserializer, Serializer, Timestamp};

    pub(in crate::state::gate) fn serialize<S: Serializer>(list: &[Timestamp], to: S) -> Result<S::Ok, S::Error> {
        let mut last = 0_i64;
        let steps = list.iter().map(|at| {
            let step = at.as_millis().wrapping_sub(last);
            last = at.as_millis();
            step
        });
        to.collect_seq(steps)
    }

    pub(in crate::state::gate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Timestamp>, D::Error> {
        let mut last = 0_i64;
        let steps = Vec::<i64>::deserialize(from)?;
        Ok(steps
            .into_iter()
            .map(|step| {
                last = last.wrapping_add(step);
                Timestamp::from_millis(last)
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;
    use crate::value::Id;

    /// Every instant that was pushed is found again by its rank, in the row or in a block.
    #[test]
    fn a_line_finds_every_instant_by_its_rank() {
        let owner = BlockOwner::of(&[b"line"]);
        let (mut line, mut blocks) = (Line::default(), Vec::new());
        for ms in 0..1_000 {
            blocks.extend(line.push(Timestamp::from_millis(ms), || owner));
        }
        assert_eq!(line.len(), 1_000);
        assert!(line.recent.len() < 2 * SEALED && line.recent.len() >= SEALED);
        for n in 1..=1_000_usize {
            let found = match line.nth_newest(n) {
                Nth::At(at) => at,
                Nth::InBlock(block, place) => blocks[block as usize].at[place],
                Nth::None => panic!("the {n}-th newest is missing"),
            };
            assert_eq!(found.as_millis(), 1_000 - i64::try_from(n).unwrap());
        }
        assert_eq!(line.nth_newest(1_001), Nth::None);
        assert_eq!(line.nth_newest(0), Nth::None);
    }

    /// What was seen counts through its window and no moment longer, from when it was seen last.
    #[test]
    fn a_source_counts_from_when_it_was_seen_last() {
        let (mut activity, web) = (Activity::none(AgentId::from_bits(1)), Source::parse("web").unwrap());
        let (window, moment, first) = (Span::minutes(5), Span::millis(1), Timestamp::from_millis(1_000_000));
        for seen in [first, first.plus(moment)] {
            assert!(activity.see([&web].into_iter(), seen), "noted");
            assert!(!activity.see([&web].into_iter(), seen), "and noted once");
            let within = |now| activity.seen_within(window, now).count();
            let last = seen.plus(window);
            assert_eq!((within(last), within(last.plus(moment))), (1, 0));
        }
    }

    /// What a clock that was ahead has written is put right with the next word: a sum of a period that is yet to come does not fill
    /// the one that runs, and what was seen counts through its window from now on and no longer. What clocks may differ by is no such
    /// thing.
    #[test]
    fn what_a_clock_that_was_ahead_wrote_does_not_stay() {
        let settings = Settings::default();
        let now = Timestamp::from_millis(1_790_856_000_000);
        let later = now.plus(Span::hours(24 * 3_653));
        let (mandate, mut activity) = (MandateId::from_bits(2), Activity::none(AgentId::from_bits(1)));
        let of = |activity: &Activity, now| activity.tally(mandate, Period::Day, now, &settings);
        activity.keep(Tally { spent: 700, ..of(&activity, later) }, later);
        assert_eq!((of(&activity, later).spent, of(&activity, now).spent), (700, 0));
        assert_eq!(of(&activity, now).term(), settings.term(Period::Day, now));
        activity.keep(Tally { spent: 5, ..of(&activity, now) }, now);
        assert_eq!((activity.tallies.len(), of(&activity, now).spent), (1, 5));
        let midnight = of(&activity, now).until;
        activity.keep(Tally { spent: 9, ..of(&activity, midnight) }, midnight);
        assert_eq!(of(&activity, midnight.minus(CLOCKS_APART_MAX)).spent, 9, "by another node's clock it runs");

        let (web, mail) = (Source::parse("web").unwrap(), Source::parse("mail").unwrap());
        assert!(activity.see([&web].into_iter(), later));
        assert!(activity.see([&mail].into_iter(), now));
        let window = Span::minutes(5);
        assert_eq!(activity.seen_within(window, now.plus(window)).count(), 2, "nobody knows when within it that was");
        assert_eq!(activity.seen_within(window, now.plus(Span::minutes(6))).count(), 0);
    }

    /// Stored and read again, an activity is the same; a clock that went back moves no instant back.
    #[test]
    fn an_activity_survives_storage_and_clocks_that_go_back() {
        let mut activity = Activity::none(AgentId::from_bits(1));
        for ms in [5, 9, 3] {
            activity.deny(Timestamp::from_millis(ms));
            let _ = activity.tools.push(Timestamp::from_millis(ms), || BlockOwner::of(&[]));
        }
        assert_eq!(activity.denials.iter().map(|it| it.as_millis()).collect::<Vec<_>>(), [5, 9, 9]);
        let stored = serde_json::to_string(&activity).unwrap();
        assert!(stored.contains("[5,4,0]"), "{stored}");
        assert_eq!(serde_json::from_str::<Activity>(&stored).unwrap(), activity);
    }
}
