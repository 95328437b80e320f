//! What the records of a ledger come to, counted by stretches of it: a stretch of placed records never changes, so neither does
//! its tally, and a scorecard reads a few of them instead of every record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use crate::state::gate::OPEN_MAX;
use crate::value::Id as _;
use crate::value::id::{ActionId, AgentId, WorkspaceId};
use crate::value::json::Json;
use crate::value::link::{Link, Linked, RowId};
use crate::value::period::Zone;

/// Records of one tally.
pub const TALLIED: u64 = 4_096;
/// By which rules records are counted now. What was kept under earlier ones is counted again.
pub const COUNTED_BY: u8 = 6;

/// The n-th stretch of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TallyId {
    /// Of whose ledger.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// From 0: records `TALLIED · number` on.
    pub number: u32,
}

impl RowId for TallyId {
    fn parts(self) -> (u128, Option<u32>) {
        (self.workspace.bits(), Some(self.number))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        Some(Self { workspace: WorkspaceId::from_bits(bits), number: number? })
    }
}

/// What the records of a stretch come to, by day and agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Which stretch.
    pub id: TallyId,
    /// Whose days: the workspace's zone when it was counted. Under another zone the stretch is counted again.
    #[serde(default, skip_serializing_if = "Zone::is_utc")]
    pub zone: Zone,
    /// By which rules it was counted: [`COUNTED_BY`] then.
    #[serde(default, skip_serializing_if = "is_first")]
    pub by: u8,
    /// Days since 1970, agents, and what there was of each; records that name no agent count under none, those of a drill's canary
    /// not at all.
    pub counts: Vec<(i64, Option<AgentId>, Counts)>,
}

const fn is_first(by: &u8) -> bool {
    *by == 0
}

const fn is_none(n: &u64) -> bool {
    *n == 0
}

const fn is_even(n: &i64) -> bool {
    *n == 0
}

impl Linked for Tally {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// How often each thing happened, and what was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// By [`Counted::ALL`].
    n: [u64; Counted::ALL.len()],
    /// How many of those denied had waited for a person before: they were decided on twice.
    #[serde(default, skip_serializing_if = "is_none")]
    ended: u64,
    /// By currency: allowed and posted, in minor units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    money: BTreeMap<Box<str>, (i64, i64)>,
    /// By currency: what actions that were asked for on that day took, less what they gave back on any, in minor units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    reserved: BTreeMap<Box<str>, i64>,
    /// By currency: what was posted for actions that were asked for on that day, in minor units.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settled: BTreeMap<Box<str>, i64>,
    /// How many actions that were asked for on that day were allowed, less those of which a record tells, on whichever day, that they
    /// were settled in time or have lapsed.
    #[serde(default, skip_serializing_if = "is_even")]
    open: i64,
}

macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident $word:literal;)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Counted { $($(#[$doc])* $name,)* }

        impl Counted {
            /// All of it, in the order of a scorecard.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            /// The member of a scorecard.
            #[must_use]
            pub const fn word(self) -> &'static str { match self { $(Self::$name => $word,)* } }
        }
    };
}

counted! {
    /// Actions that a person was asked about: `action.asked`.
    Asked "asked";
    /// Actions that the rules allowed: `action.allowed`.
    Allowed "allowed";
    /// Actions that the rules or a stop denied: `action.denied`.
    Denied "denied";
    /// Actions that a person allowed: `action.approved` whose decision is `allow`.
    Approved "approved";
    /// Actions that a person denied: `action.person_denied`.
    PersonDenied "personDenied";
    /// Actions that nobody decided in time: `action.expired`.
    Expired "expired";
    /// Settlements of what was done: `action.settled` whose outcome is `completed`.
    Settled "settled";
    /// Settlements of what was not: `action.settled` with any other outcome.
    Failed "failed";
    /// Settlements above what was allowed: `incident.over_settlement`.
    OverSettled "overSettled";
    /// Allowed actions that nobody settled in time: `action.lapsed`, and those of which no record tells, as they reserved nothing, on
    /// the day on which they were asked for.
    Lapsed "lapsed";
    /// Stops of an agent: `agent.frozen`.
    Frozen "frozen";
    /// First decisions that name `provenance_mismatch` among their codes or signals.
    ProvenanceMismatch "provenanceMismatch";
    /// Receipts that were used up: `receipt.consumed`.
    Verified "verified";
}

impl Counts {
    /// How often.
    #[must_use]
    pub fn of(&self, what: Counted) -> u64 {
        self.n.get(what as usize).copied().unwrap_or(0)
    }

    /// How many actions were decided on: those denied after they had waited for a person count once, as asked.
    #[must_use]
    pub fn decided(&self) -> u64 {
        let of = [Counted::Allowed, Counted::Asked, Counted::Denied].map(|it| self.of(it));
        of.into_iter().fold(0, u64::saturating_add).saturating_sub(self.ended)
    }

    /// By currency: what was allowed, and what was posted, each by the day of its record. A later word corrects an earlier one on its own day, so the second may
    /// be below zero.
    pub fn money(&self) -> impl Iterator<Item = (&str, i64, i64)> {
        self.money.iter().map(|(currency, (allowed, settled))| (&**currency, *allowed, *settled))
    }

    /// By currency: what is reserved for actions that were asked for on that day. What lapsed without a record is among it until
    /// [`Self::lapse`] is told of it.
    pub fn reserved(&self) -> impl Iterator<Item = (&str, i64)> {
        self.reserved.iter().map(|(currency, reserved)| (&**currency, *reserved))
    }

    /// By currency: what was posted for actions that were asked for on that day, on whichever it was. A word that corrects it
    /// later than an action can be open counts on its own day, where the sum may be below zero: a day that is long past stays as
    /// it is.
    pub fn settled(&self) -> impl Iterator<Item = (&str, i64)> {
        self.settled.iter().map(|(currency, settled)| (&**currency, *settled))
    }

    /// How many actions that were asked for on that day are open. Those that lapsed without a record are among them until
    /// [`Self::lapse`] is told of them.
    #[must_use]
    pub const fn open(&self) -> i64 {
        self.open
    }

    /// Counts an action that lapsed without a record, and tells what it paid as posted, on the day on which it was asked for: it is
    /// open and reserved no more.
    pub fn lapse(&mut self, payment: Option<(&str, i64)>) {
        self.open = self.open.saturating_sub(1);
        self.one(Counted::Lapsed);
        if let Some((currency, amount)) = payment {
            self.reserve(currency, amount.saturating_neg());
            self.move_money(currency, 0, amount);
            self.settle(currency, amount);
        }
    }

    /// The same for all that is still open and reserved: time releases nothing.
    pub fn lapse_all(&mut self) {
        let lapsed = u64::try_from(std::mem::take(&mut self.open)).unwrap_or(0);
        if let Some(count) = self.n.get_mut(Counted::Lapsed as usize) {
            *count = count.saturating_add(lapsed);
        }
        for (currency, amount) in std::mem::take(&mut self.reserved) {
            self.move_money(&currency, 0, amount);
            self.settle(&currency, amount);
        }
    }

    /// Adds what others counted.
    pub fn add(&mut self, other: &Self) {
        for (to, from) in self.n.iter_mut().zip(&other.n) {
            *to = to.saturating_add(*from);
        }
        self.ended = self.ended.saturating_add(other.ended);
        self.open = self.open.saturating_add(other.open);
        for (currency, allowed, posted) in other.money() {
            self.move_money(currency, allowed, posted);
        }
        for (currency, reserved) in other.reserved() {
            self.reserve(currency, reserved);
        }
        for (currency, settled) in other.settled() {
            self.settle(currency, settled);
        }
    }

    fn one(&mut self, what: Counted) {
        if let Some(count) = self.n.get_mut(what as usize) {
            *count = count.saturating_add(1);
        }
    }

    fn move_money(&mut self, currency: &str, allowed: i64, posted: i64) {
        let sums = self.money.entry(currency.into()).or_default();
        *sums = (sums.0.saturating_add(allowed), sums.1.saturating_add(posted));
    }

    fn reserve(&mut self, currency: &str, amount: i64) {
        let sum = self.reserved.entry(currency.into()).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn settle(&mut self, currency: &str, amount: i64) {
        let sum = self.settled.entry(currency.into()).or_default();
        *sum = sum.saturating_add(amount);
    }

    fn take(&mut self, kind: &str, data: &Json) {
        let text = |name| data.get(name).and_then(Json::as_str);
        let decided = match kind {
            "action.asked" => Counted::Asked,
            "action.allowed" => Counted::Allowed,
            "action.denied" => Counted::Denied,
            "action.approved" if text("decision") == Some("allow") => Counted::Approved,
            "action.person_denied" => Counted::PersonDenied,
            "action.expired" => Counted::Expired,
            "action.settled" if text("outcome") == Some("completed") => Counted::Settled,
            "action.settled" => Counted::Failed,
            "incident.over_settlement" => Counted::OverSettled,
            "action.lapsed" => Counted::Lapsed,
            "agent.frozen" => Counted::Frozen,
            "receipt.consumed" => Counted::Verified,
            _ => return,
        };
        self.one(decided);
        let named = |list| data.get(list).and_then(Json::as_list).unwrap_or_default();
        let mut words = named("codes").iter().chain(named("signals")).filter_map(Json::as_str);
        // A stop, or a change of the rules, ends what has waited.
        let has_ended = decided == Counted::Denied && data.get("approvalId").is_some();
        self.ended = self.ended.saturating_add(has_ended.into());
        let is_first = matches!(decided, Counted::Asked | Counted::Allowed | Counted::Denied) && !has_ended;
        if is_first && words.any(|it| it == "provenance_mismatch") {
            self.one(Counted::ProvenanceMismatch);
        }
    }
}

/// How many actions a record opens, or ends. One that was settled late had lapsed before.
fn opened(kind: &str, data: &Json) -> i64 {
    let is_allow = || data.get("decision").and_then(Json::as_str) == Some("allow");
    match kind {
        "action.allowed" => 1,
        "action.approved" if is_allow() => 1,
        "action.settled" if data.get("late").is_none() => -1,
        "action.lapsed" => -1,
        _ => 0,
    }
}

/// What a record moves of the money of its action, in minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moved {
    allowed: i64,
    posted: i64,
    reserved: i64,
}

impl Moved {
    /// By CONTRACT part 3, "Reservations and posting".
    fn of(kind: &str, data: &Json) -> Self {
        let int = |name| data.get(name).and_then(Json::as_int);
        let amount = int("amount").unwrap_or(0);
        // What is asked beyond the limits, or of no mandate, takes nothing before a person allows it.
        let limit = |it: &Json| matches!(it.as_str(), Some("over_limit" | "over_period_limit" | "over_count_limit"));
        let beyond = data.get("codes").and_then(Json::as_list).is_some_and(|codes| codes.iter().any(limit));
        let held = if beyond || data.get("mandateId").is_none() { 0 } else { amount };
        let none = Self::default();
        match kind {
            "action.asked" => Self { reserved: held, ..none },
            "action.allowed" => Self { allowed: amount, reserved: amount, ..none },
            "action.approved" => Self { allowed: amount, reserved: amount.saturating_sub(held), ..none },
            // What was refused at once had taken nothing.
            "action.denied" if data.get("approvalId").is_none() => none,
            "action.denied" | "action.expired" | "action.person_denied" => {
                Self { reserved: held.saturating_neg(), ..none }
            }
            "action.settled" | "action.lapsed" => {
                // What is said late corrects what the lapse had posted in full, whether or not a record told of that.
                let lapsed = if data.get("late").is_some() { amount } else { 0 };
                let stood = int("stood").unwrap_or(lapsed);
                let posted = int("posted").unwrap_or(0).saturating_sub(stood);
                Self { posted, reserved: lapsed.saturating_sub(amount), ..none }
            }
            // What the issuer says of a settled action takes the place of what was posted.
            "incident.over_settlement" => {
                Self { posted: int("posted").unwrap_or(0).saturating_sub(int("stood").unwrap_or(0)), ..none }
            }
            "action.released" => Self { posted: int("released").unwrap_or(0).saturating_neg(), ..none },
            _ => none,
        }
    }
}

/// Counts records by the days of a zone.
#[derive(Clone, Debug)]
pub struct Counter {
    zone: Zone,
    counts: BTreeMap<(i64, Option<AgentId>), Counts>,
}

impl Counter {
    /// Nothing counted yet.
    #[must_use]
    pub const fn by_days_of(zone: Zone) -> Self {
        Self { zone, counts: BTreeMap::new() }
    }

    /// Takes a record.
    pub fn take(&mut self, entry: &Entry) {
        // What stands in a record was written as JSON; what could not be read would count for nothing.
        let data = Json::parse(entry.data.as_bytes()).unwrap_or(Json::Null);
        let agent = data.get("agentId").and_then(Json::as_str).and_then(|it| AgentId::parse(it).ok());
        let day = self.zone.day(entry.at);
        self.counts.entry((day, agent)).or_default().take(&entry.kind, &data);
        // What is open, and a reservation, belong to the day on which the action was asked for, however late they end: so no day keeps
        // what another gave back.
        let asked_on = ActionId::parse(&entry.subject).map_or(day, |it| self.zone.day(it.time()));
        let opened = opened(&entry.kind, &data);
        if opened != 0 {
            let counts = self.counts.entry((asked_on, agent)).or_default();
            counts.open = counts.open.saturating_add(opened);
        }
        let Some(currency) = data.get("currency").and_then(Json::as_str) else { return };
        let moved = Moved::of(&entry.kind, &data);
        if (moved.allowed, moved.posted) != (0, 0) {
            self.counts.entry((day, agent)).or_default().move_money(currency, moved.allowed, moved.posted);
        }
        if moved.reserved != 0 {
            self.counts.entry((asked_on, agent)).or_default().reserve(currency, moved.reserved);
        }
        // So does what takes its place. A correction does for as long as that day is read on for.
        let is_first = moved.reserved != 0;
        let is_read = || entry.at < self.zone.start(asked_on.saturating_add(1)).plus(OPEN_MAX);
        if moved.posted != 0 {
            let told_on = if is_first || is_read() { asked_on } else { day };
            self.counts.entry((told_on, agent)).or_default().settle(currency, moved.posted);
        }
    }

    /// What was counted.
    #[must_use]
    pub fn finish(self) -> Vec<(i64, Option<AgentId>, Counts)> {
        self.counts.into_iter().map(|((day, agent), counts)| (day, agent, counts)).collect()
    }
}
