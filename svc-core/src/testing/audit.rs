//! An auditor: reads every row of a store and says what cannot be, whatever commands led there.
//!
//! It knows the promises and none of the rules: sums are added up again from the actions, velocity is counted again from
//! the ledger's order, hashes are made again from the records.

mod budgets;
mod mandates;
mod stops;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::state::edge::{Job, JobState, Work};
use crate::state::evidence::merkle::{Edge, leaf_hash};
use crate::state::evidence::{Chain, Entry};
use crate::state::gate::{
    Action, Activity, Agent, Approval, ApprovalState, DecidedBy, Incident, JOB_KEPT, Mandate, OutcomeStatus, Replay,
    SWEEP_EVERY, State, Sweep, Tally,
};
use crate::state::people::{Velocity, Workspace};
use crate::store::{Key, Range, Record, Row, Stamp, Store};
use crate::value::Timestamp;
use crate::value::digest::Digest;
use crate::value::id::{ActionId, AgentId, DeliveryId, WorkspaceId};
use crate::value::link::{Index, Order, instant_order};

/// What an audit counted, and every fault it found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Actions there are.
    pub actions: usize,
    /// Actions that are or were allowed.
    pub allowed: usize,
    /// Receipts used up.
    pub consumed: usize,
    /// Actions settled.
    pub settled: usize,
    /// Agents stopped.
    pub stopped: usize,
    /// Ledger records, placed or waiting.
    pub records: usize,
    /// What cannot be, one sentence each.
    pub faults: Vec<String>,
}

impl Report {
    /// Ends the test where anything is wrong.
    ///
    /// # Panics
    /// With every fault, and `context`: what the reader needs to see it again.
    pub fn assert_clean(&self, context: &str) {
        assert!(self.faults.is_empty(), "{context}\n{}", self.faults.join("\n"));
    }
}

/// Audits all rows of a store, as `dump` gives them.
#[must_use]
pub fn audit(rows: &[(Key, Stamp, Record)]) -> Report {
    let books = Books::of(rows);
    let mut report = Report {
        actions: books.actions.len(),
        allowed: books.actions.values().filter(|it| it.allowed().is_some()).count(),
        consumed: books.actions.values().filter(|it| is_consumed(it)).count(),
        settled: books.actions.values().filter(|it| it.allowed().is_some_and(|it| it.outcome.is_some())).count(),
        stopped: books.agents.values().filter(|it| !it.is_active()).count(),
        records: books.ledger.values().map(Vec::len).sum(),
        faults: Vec::new(),
    };
    for (workspace, ledger) in &books.ledger {
        let chain = books.chains.get(workspace).copied();
        check_chain(*workspace, ledger, chain, &mut report.faults);
    }
    for action in books.actions.values() {
        check_action(&books, action, &mut report.faults);
        check_call(&books, action, &mut report.faults);
    }
    for agent in books.agents.values() {
        stops::check_stops(&books, agent, &mut report.faults);
        stops::check_restarts(&books, agent, &mut report.faults);
        mandates::check_limits(&books, agent, &mut report.faults);
        check_sums(&books, agent, &mut report.faults);
        check_velocity(&books, agent, &mut report.faults);
    }
    for workspace in books.workspaces.values() {
        stops::check_holds(&books, workspace, &mut report.faults);
    }
    budgets::check_budgets(rows, &books, &mut report.faults);
    for replay in &books.replays {
        if !books.actions.contains_key(&replay.action) {
            report.faults.push(format!("an idempotency key names {}, which is not there", replay.action));
        }
    }
    report
}

/// Checks that every row is listed where its links say, and nothing else is.
///
/// # Panics
/// Where the store cannot be scanned.
pub fn audit_lists<S: Store>(store: &mut S, rows: &[(Key, Stamp, Record)]) -> Vec<String> {
    let mut expected: BTreeMap<(Index, u128), Vec<(u128, Key)>> = BTreeMap::new();
    for (key, stamp, record) in rows {
        for link in record.links() {
            let order = match link.order {
                Order::At(order) => order,
                Order::Stamp => u128::from(stamp.0),
            };
            expected.entry((link.index, link.prefix)).or_default().push((order, *key));
        }
    }
    let mut faults = Vec::new();
    for ((index, prefix), mut list) in expected {
        list.sort_unstable();
        let found = store.scan(&Range::all(index, prefix, usize::MAX)).expect("a scan succeeds");
        let found: Vec<(u128, Key)> = found.into_iter().map(|it| (it.order, it.row.key)).collect();
        if found != list {
            faults.push(format!("{index:?} of {prefix} lists {found:?}, and its rows say {list:?}"));
        }
    }
    faults
}

/// The rows, by what the audit asks them for.
struct Books<'a> {
    actions: BTreeMap<ActionId, &'a Action>,
    agents: BTreeMap<AgentId, &'a Agent>,
    activities: BTreeMap<AgentId, &'a Activity>,
    approvals: Vec<&'a Approval>,
    chains: BTreeMap<WorkspaceId, &'a Chain>,
    jobs: BTreeMap<DeliveryId, &'a Job>,
    /// Each workspace's records in their order: the placed ones by place, then the waiting ones by commit.
    ledger: BTreeMap<WorkspaceId, Vec<&'a Entry>>,
    /// Where in its ledger the records on a subject stand.
    on: BTreeMap<&'a str, Vec<(usize, &'a Entry)>>,
    mandates: Vec<&'a Mandate>,
    replays: Vec<&'a Replay>,
    sweeps: BTreeMap<WorkspaceId, &'a Sweep>,
    workspaces: BTreeMap<WorkspaceId, &'a Workspace>,
}

/// A ledger record after those that have their place, and among those that wait by stamp.
type Ordered<'a> = ((bool, u64, u64), &'a Entry);

impl<'a> Books<'a> {
    fn of(rows: &'a [(Key, Stamp, Record)]) -> Self {
        fn each<'a, R: Row + 'a>(rows: &'a [(Key, Stamp, Record)]) -> impl Iterator<Item = &'a R> {
            rows.iter().filter_map(|(_, _, record)| R::peel(record)).map(AsRef::as_ref)
        }
        let mut waiting: BTreeMap<WorkspaceId, Vec<Ordered<'a>>> = BTreeMap::new();
        for (_, stamp, record) in rows {
            if let Some(entry) = Entry::peel(record) {
                let order = entry.place.as_ref().map_or((true, stamp.0, 0), |place| (false, place.seq, 0));
                waiting.entry(entry.workspace).or_default().push((order, entry));
            }
        }
        let sorted = |mut list: Vec<Ordered<'a>>| {
            list.sort_by_key(|(order, entry)| (*order, entry.id));
            list.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>()
        };
        let ledger: BTreeMap<WorkspaceId, Vec<&Entry>> =
            waiting.into_iter().map(|(workspace, list)| (workspace, sorted(list))).collect();
        let mut on: BTreeMap<&str, Vec<(usize, &Entry)>> = BTreeMap::new();
        for (place, entry) in ledger.values().flat_map(|list| list.iter().enumerate()) {
            on.entry(&*entry.subject).or_default().push((place, entry));
        }
        Self {
            actions: each::<Action>(rows).map(|it| (it.id, it)).collect(),
            agents: each::<Agent>(rows).map(|it| (it.id, it)).collect(),
            activities: each::<Activity>(rows).map(|it| (it.agent, it)).collect(),
            approvals: each::<Approval>(rows).collect(),
            chains: each::<Chain>(rows).map(|it| (it.workspace, it)).collect(),
            jobs: each::<Job>(rows).map(|it| (it.id, it)).collect(),
            ledger,
            on,
            mandates: each::<Mandate>(rows).collect(),
            replays: each::<Replay>(rows).collect(),
            sweeps: each::<Sweep>(rows).map(|it| (it.workspace, it)).collect(),
            workspaces: each::<Workspace>(rows).map(|it| (it.id, it)).collect(),
        }
    }

    fn on(&self, subject: impl ToString) -> &[(usize, &'a Entry)] {
        self.on.get(subject.to_string().as_str()).map_or(&[], Vec::as_slice)
    }

    /// The velocity lines that were in force at a place of the ledger: what the next change of them calls the old ones.
    fn velocity_at(&self, workspace: &Workspace, place: usize) -> Velocity {
        let changes =
            self.on(workspace.id).iter().filter(|(at, entry)| *at > place && &*entry.kind == "settings.changed");
        let old = changes.filter_map(|(_, entry)| {
            let data = serde_json::from_str::<Value>(&entry.data).ok()?;
            let old = data.pointer("/old/agentVelocity")?;
            let number = |name: &str| old.get(name)?.as_u64();
            Some(Velocity {
                tool_count: number("toolVelocityCount")?.try_into().ok()?,
                other_count: number("velocityCount")?.try_into().ok()?,
                minutes: number("velocityMinutes")?.try_into().ok()?,
            })
        });
        old.into_iter().next().unwrap_or_else(|| workspace.settings.agent_velocity.clone())
    }

    /// Where the record stands of an action that was allowed or asked about, in its ledger.
    fn let_pass(&self, action: &Action) -> Option<usize> {
        let passes = |it: &&(usize, &Entry)| matches!(&*it.1.kind, "action.allowed" | "action.asked");
        self.on(action.id).iter().find(passes).map(|(place, _)| *place)
    }

    fn actions_of(&self, agent: AgentId) -> impl Iterator<Item = &'a Action> {
        self.actions.values().copied().filter(move |it| it.agent == agent)
    }
}

fn is_consumed(action: &Action) -> bool {
    action.allowed().is_some_and(|it| it.consumed.is_some())
}

/// The placed records are numbered from 0 without gaps, each hash is right and names the one before, and the chain's
/// head is the last of them, its root that of the tree over them all.
fn check_chain(workspace: WorkspaceId, ledger: &[&Entry], chain: Option<&Chain>, faults: &mut Vec<String>) {
    let mut prev = Digest::from_bytes([0; 32]);
    let (mut size, mut edge) = (0, Edge::default());
    for entry in ledger {
        let Some(place) = &entry.place else { continue };
        if place.seq != size || place.prev != prev {
            faults
                .push(format!("{}: {} stands at {}, expected at {size} behind {prev}", workspace, entry.id, place.seq));
        }
        if Digest::of(canonical(entry, place.seq, &place.prev)) != place.hash {
            faults.push(format!("{}: the hash of {} is not that of its text", workspace, entry.id));
        }
        prev = place.hash;
        edge.push(size, leaf_hash(prev.as_bytes()));
        size += 1;
    }
    if chain.is_some_and(|it| it.root() != edge.root()) {
        faults.push(format!("{workspace}: the chain's root is not that of its records"));
    }
    let head = chain.map_or((0, Digest::from_bytes([0; 32])), |it| (it.size, it.head));
    if head != (size, prev) {
        faults.push(format!("{workspace}: the chain says {head:?}, its records say {:?}", (size, prev)));
    }
}

/// RFC 8785 by way of another JSON library: sorted members, no spaces. The records hold no fractions.
fn canonical(entry: &Entry, seq: u64, prev: &Digest) -> String {
    let member = |text: &str| serde_json::from_str::<Value>(text).unwrap_or(Value::Null);
    json!({
        "actor": member(&entry.actor), "at": entry.at.to_string(), "data": member(&entry.data),
        "id": entry.id.to_string(), "kind": &*entry.kind, "prevHash": prev.to_string(), "seq": seq,
        "subject": &*entry.subject,
    })
    .to_string()
}

/// Whoever is to be told of a decision has a call for it, of that very action; what was given up is on record.
fn check_call(books: &Books<'_>, action: &Action, faults: &mut Vec<String>) {
    let Some(callback) = &action.callback else { return };
    let job = books.jobs.get(&callback.id.into());
    let decided = !matches!(action.state, State::Pending { .. });
    let swept = books.sweeps.get(&action.workspace).map(|it| it.due.minus(SWEEP_EVERY).minus(JOB_KEPT));
    if decided && job.is_none() && swept.is_none_or(|before| callback.created_at >= before) {
        faults.push(format!("{}: it is decided and nobody is told", action.id));
    }
    let Some(job) = job else { return };
    if !matches!(job.work, Work::Decided { action: of, .. } if of == action.id)
        || job.url.as_ref() != Some(&callback.url)
    {
        faults.push(format!("{}: {} tells of something else", action.id, job.id));
    }
    let given_up = books.on(job.id).iter().any(|(_, entry)| &*entry.kind == "delivery.failed");
    if matches!(job.state, JobState::Failed { .. }) && !given_up {
        faults.push(format!("{}: given up without a record of it", job.id));
    }
}

/// One decision, at most one consumption, at most one settlement, each with its record, in an order that can be.
fn check_action(books: &Books<'_>, action: &Action, faults: &mut Vec<String>) {
    let mut fault = |what: &str| faults.push(format!("{}: {what}", action.id));
    let records = books.on(action.id);
    let count = |kind: &str| records.iter().filter(|(_, entry)| &*entry.kind == kind).count();
    let place = |kind: &str| records.iter().find(|(_, entry)| &*entry.kind == kind).map(|(place, _)| *place);
    let decisions = count("action.allowed") + count("action.denied") + count("action.asked");
    let allowed = action.allowed();
    let asked = action.approval.is_some();
    if decisions == 0 {
        fault("no record of its decision");
    }
    let by_rules = allowed.is_some_and(|it| it.by == DecidedBy::Policy);
    if count("action.allowed") != usize::from(by_rules) {
        fault("allowed by the rules without exactly one record of it, or the other way round");
    }
    let by_person = allowed.is_some_and(|it| matches!(it.by, DecidedBy::Person(_)));
    if count("action.approved") != usize::from(by_person) {
        fault("approved by a person without exactly one record of it, or the other way round");
    }
    let refused = matches!(action.state, State::Denied { by: DecidedBy::Person(_), .. });
    if count("action.person_denied") != usize::from(refused) {
        fault("denied by a person without exactly one record of it, or the other way round");
    }
    if count("action.asked") != usize::from(asked) {
        fault("asked without exactly one record of it, or the other way round");
    }
    let outcome = allowed.and_then(|it| it.outcome.as_ref());
    let released_lapse = allowed.is_some_and(|it| it.released.is_some());
    for (kind, there) in [
        ("receipt.consumed", is_consumed(action)),
        ("action.settled", outcome.is_some()),
        ("action.released", outcome.is_some_and(|it| it.released.is_some()) || released_lapse),
        ("action.lapsed", allowed.is_some_and(|it| it.lapsed.is_some())),
    ] {
        // What was given back and is charged after all can be given back once more.
        let again = kind == "action.released" && action.incident.is_some() && count(kind) > usize::from(there);
        if count(kind) != usize::from(there) && !again {
            fault(&format!("{} records of {kind}, while its row says {there}", count(kind)));
        }
    }
    // The issuer may say once more, and more.
    if (count("incident.over_settlement") > 0) != action.incident.is_some() {
        fault("an incident without a record of it, or the other way round");
    }
    if let (Some(asked), Some(answered)) = (place("action.asked"), place("action.approved"))
        && answered < asked
    {
        fault("approved before it was asked");
    }
    let decided = place("action.allowed").or_else(|| place("action.approved"));
    let decided = decided.or_else(|| place("action.asked").filter(|_| allowed.is_none()));
    if place("action.released") < place("action.settled").filter(|_| count("action.released") > 0 && !released_lapse) {
        fault("action.released stands before the settlement");
    }
    for later in ["receipt.consumed", "action.settled", "action.lapsed", "incident.over_settlement", "action.expired"] {
        if place(later).is_some_and(|later| decided.is_none_or(|decided| later < decided)) {
            fault(&format!("{later} stands before the decision"));
        }
    }
    let newest = records.iter().max_by_key(|(place, _)| *place).map(|(_, entry)| entry.id);
    if newest.is_some_and(|newest| newest != action.evidence) {
        fault(&format!("its evidence is {}, the newest record on it is {newest:?}", action.evidence));
    }
    check_outcome(action, faults);
}

/// What is posted is what was told, or what was charged where that is more and nobody released it.
fn check_outcome(action: &Action, faults: &mut Vec<String>) {
    let mut fault = |what: &str| faults.push(format!("{}: {what}", action.id));
    let allowed = action.allowed();
    let outcome = allowed.and_then(|it| it.outcome.as_ref());
    if let (Some(outcome), Some(payment)) = (outcome, &action.payment) {
        let sent = outcome.amount.unwrap_or(0);
        let posted = outcome.posted.unwrap_or(0);
        let incident = action.incident.as_ref();
        let fits = |it: &Incident| it.settled >= sent && it.allowed < it.settled && it.allowed <= payment.amount;
        if (sent > payment.amount && incident.is_none()) || !incident.is_none_or(fits) {
            fault("settled above the allowed amount without an incident, or the other way round");
        }
        // What the issuer says that was charged is posted, whatever was told and given back before.
        let used_for = allowed.map_or(0, |it| it.consumed_amount());
        let consumed = incident.map_or(used_for, |it| it.settled);
        let told = match (outcome.status, outcome.amount) {
            (_, Some(sent)) => sent,
            (OutcomeStatus::Completed, None) => payment.amount,
            (OutcomeStatus::Cancelled | OutcomeStatus::Failed, None) => 0,
        };
        let released = outcome.released.as_ref().map(|it| it.amount);
        let kept = consumed.saturating_sub(told).max(0);
        if posted != told.saturating_add(if released.is_some() { 0 } else { kept })
            || released.is_some_and(|it| it != kept || it <= 0)
        {
            fault(&format!("posted {posted}, told {told}, consumed {consumed}, released {released:?}"));
        }
    }
}

/// The sums of running periods are those of the actions; reservations never pass a limit but by what was over-settled.
fn check_sums(books: &Books<'_>, agent: &Agent, faults: &mut Vec<String>) {
    let Some(activity) = books.activities.get(&agent.id) else {
        if books.actions_of(agent.id).next().is_some() {
            faults.push(format!("{}: actions without an activity", agent.id));
        }
        return;
    };
    let waiting = books.approvals.iter().filter(|it| it.is_waiting()).filter_map(|it| it.asked_action());
    let current = waiting.filter(|it| it.agent == agent.id && it.epoch == agent.epoch).count();
    let counted = activity.waiting(agent.epoch);
    if usize::try_from(counted).ok() != Some(current) {
        faults.push(format!("{}: {current} approvals wait, its row says {counted}", agent.id));
    }
    for tally in &activity.tallies {
        let sums = Sums::of(books.actions_of(agent.id), tally);
        let carried = Carried::of(books, agent, tally);
        let stored = (tally.reserved.into(), tally.spent.into(), i64::from(tally.count), tally.excess.into());
        let due = (sums.reserved, sums.spent + carried.spent, sums.count + carried.count, sums.excess);
        if stored != due {
            faults.push(format!(
                "{}: the tally of {} from {} holds {stored:?}, its actions add up to {sums:?} and {carried:?}",
                agent.id, tally.mandate, tally.from
            ));
        }
        let limits = || books.mandates.iter().filter(|it| it.id.mandate == tally.mandate).map(|it| it.limits());
        let most = limits().filter_map(|it| it.per_period.as_ref()).map(|it| it.amount).max();
        if most.is_some_and(|most| sums.reserved + sums.spent - sums.over > i128::from(most)) {
            faults.push(format!("{}: {sums:?} of {} pass the limit {most:?}", agent.id, tally.mandate));
        }
        let count = limits().filter_map(|it| it.count.as_ref()).map(|it| i64::from(it.max)).max();
        if count.is_some_and(|count| sums.count > count) {
            faults.push(format!("{}: {sums:?} of {} pass the count {count:?}", agent.id, tally.mandate));
        }
    }
}

/// What actions hold of one period, added up.
#[derive(Debug, Default)]
struct Sums {
    reserved: i128,
    spent: i128,
    count: i64,
    /// What was posted beyond what was allowed.
    over: i128,
    /// What persons let pass beyond the limits.
    excess: i128,
}

impl Sums {
    fn of<'a>(actions: impl Iterator<Item = &'a Action>, tally: &Tally) -> Self {
        let mut sums = Self::default();
        for action in actions {
            let Some((_, held)) = action.held().filter(|(mandate, _)| *mandate == tally.mandate) else { continue };
            let lives = !matches!(action.state, State::Denied { .. } | State::Expired { .. });
            if lives && held.count == Some(tally.term()) {
                sums.count += 1;
            }
            let Some((amount, term)) = held.amount else { continue };
            if !lives || term != tally.term() {
                continue;
            }
            let allowed = action.allowed();
            let outcome = allowed.and_then(|it| it.outcome.as_ref());
            let posted = allowed.and_then(|it| it.posted());
            if held.excess {
                sums.excess += i128::from(posted.unwrap_or(amount));
                continue;
            }
            match outcome {
                Some(outcome) => {
                    let posted = outcome.posted.unwrap_or(0);
                    sums.spent += i128::from(posted);
                    let allowed = action.incident.as_ref().map_or(amount, |it| it.allowed);
                    sums.over += i128::from(posted.saturating_sub(allowed).max(0));
                }
                None if allowed.is_some_and(|it| it.lapsed.is_some()) => {
                    sums.spent += i128::from(posted.unwrap_or(amount));
                }
                None => sums.reserved += i128::from(amount),
            }
        }
        sums
    }
}

/// What actions of versions before its mandate spoke of a period add up to in it: they hold nothing of it.
#[derive(Debug, Default)]
struct Carried {
    spent: i128,
    count: i64,
}

impl Carried {
    fn of(books: &Books<'_>, agent: &Agent, tally: &Tally) -> Self {
        let mut carried = Self::default();
        let amount = |it: &Mandate| it.limits().per_period.as_ref().is_some_and(|it| it.period == tally.period);
        let count = |it: &Mandate| it.limits().count.as_ref().is_some_and(|it| it.period == tally.period);
        let (amounts, counts) = (begun(books, tally, amount), begun(books, tally, count));
        for action in books.actions_of(agent.id) {
            let Some(charged) = action.mandate.filter(|it| it.mandate == tally.mandate) else { continue };
            let lives = !matches!(action.state, State::Denied { .. } | State::Expired { .. });
            if !lives || action.is_beyond() || action.created_at() < tally.from {
                continue;
            }
            let held = action.reservation.as_ref();
            let here = Some(tally.term());
            if held.and_then(|it| it.amount).map(|(_, term)| term) != here && charged.version < amounts {
                let asked = action.payment.as_ref().map_or(0, |it| it.amount);
                carried.spent += i128::from(action.allowed().and_then(|it| it.posted()).unwrap_or(asked));
            }
            if held.and_then(|it| it.count) != here && charged.version < counts {
                carried.count += 1;
            }
        }
        carried
    }
}

/// The version in which the mandate of a tally last began to speak of its period; 0 where it did from the start or never does.
fn begun(books: &Books<'_>, tally: &Tally, speaks: impl Fn(&Mandate) -> bool) -> u32 {
    let mut versions: Vec<_> = books.mandates.iter().filter(|it| it.id.mandate == tally.mandate).collect();
    versions.sort_by_key(|it| it.id.version);
    let changed = versions.windows(2).filter(|pair| matches!(pair, [a, b] if !speaks(a) && speaks(b)));
    changed.filter_map(|pair| pair.last()).map(|it| it.id.version).last().unwrap_or(0)
}

/// What the rules allowed without a person never found its velocity line full, in the order of the ledger.
fn check_velocity(books: &Books<'_>, agent: &Agent, faults: &mut Vec<String>) {
    let Some(workspace) = books.workspaces.get(&agent.workspace) else {
        return faults.push(format!("{}: its workspace is not there", agent.id));
    };
    let mut decided: Vec<(usize, &Action)> = Vec::new();
    for action in books.actions_of(agent.id) {
        decided.extend(books.let_pass(action).map(|place| (place, action)));
    }
    decided.sort_by_key(|(place, _)| *place);
    for tools in [true, false] {
        let mut line: Vec<Timestamp> = Vec::new();
        for (place, action) in decided.iter().filter(|(_, action)| action.kind.is_tool() == tools) {
            let velocity = books.velocity_at(workspace, *place);
            let limit = if tools { velocity.tool_count } else { velocity.other_count };
            let asked_at = action.created_at();
            let at = line.last().map_or(asked_at, |last| asked_at.max(*last));
            // The window is counted from the node's own clock, which may be behind the newest instant.
            let since = asked_at.minus(velocity.window());
            let used = line.iter().filter(|it| **it > since).count();
            // A person who was asked decided over a full line.
            let unasked = action.approval.is_none();
            if unasked && used >= usize::try_from(limit).unwrap_or(usize::MAX) {
                faults.push(format!("{}: {} was allowed as number {} of {limit}", agent.id, action.id, used + 1));
            }
            line.push(at);
        }
    }
}

/// The rows whose timer was due before `now`.
#[must_use]
pub fn overdue(rows: &[(Key, Stamp, Record)], now: Timestamp) -> Vec<Key> {
    let due = |record: &Record| {
        let wake = record.links().into_iter().find(|link| link.index == Index::Wake);
        wake.is_some_and(|link| matches!(link.order, Order::At(at) if at < instant_order(now)))
    };
    rows.iter().filter(|(_, _, record)| due(record)).map(|(key, ..)| *key).collect()
}

/// The actions whose approval and state contradict each other.
#[must_use]
pub fn audit_approvals(rows: &[(Key, Stamp, Record)]) -> Vec<String> {
    let books = Books::of(rows);
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for approval in &books.approvals {
        let Some(asked) = approval.asked_action() else { continue };
        let Some(action) = books.actions.get(&asked.action) else {
            faults.push(format!("{}: its action is not there", approval.id));
            continue;
        };
        seen.insert(action.id);
        let agree = match (&approval.state, &action.state) {
            (ApprovalState::Waiting, State::Pending { .. })
            | (ApprovalState::Approved { .. }, State::Allowed(_))
            | (ApprovalState::Denied { .. }, State::Denied { .. })
            | (ApprovalState::Expired { .. }, State::Expired { .. }) => true,
            (
                ApprovalState::Waiting
                | ApprovalState::Approved { .. }
                | ApprovalState::Denied { .. }
                | ApprovalState::Expired { .. },
                _,
            ) => false,
        };
        if !agree || action.approval != Some(approval.id) {
            faults.push(format!("{}: {:?}, while {} is {:?}", approval.id, approval.state, action.id, action.state));
        }
    }
    for action in books.actions.values().filter(|it| it.approval.is_some() && !seen.contains(&it.id)) {
        faults.push(format!("{}: its approval is not there", action.id));
    }
    faults
}
