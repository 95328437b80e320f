//! Scorecards: signed counts of what the ledger tells, each of which anybody who holds its records can make again. Of a drill's
//! canary, which `drill.started` names, nothing is counted: it is no agent of anybody's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use svc_core::engine::Failure;
use svc_core::refusal::Refusal;
use svc_core::rules::evidence::proof;
use svc_core::rules::evidence::tally::KeepTally;
use svc_core::state::evidence::{COUNTED_BY, Chain, Counted, Counter, Counts, TALLIED, Tally, TallyId};
use svc_core::state::gate::receipt::sign_compact;
use svc_core::state::gate::{Action, Agent, LAPSE_AFTER, OPEN_MAX};
use svc_core::state::people::{Purpose, Workspace};
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::canonical::Object;
use svc_core::value::id::{AgentId, WorkspaceId, ulid_bits};
use svc_core::value::link::Index;
use svc_core::value::period::Zone;
use svc_core::value::{Span, Timestamp};

use crate::error::StoreError;
use crate::evidence::{Failed, PAGE, refused};
use crate::gate::Gate;

/// The media type that keeps scorecards apart from every other JWS.
const TYPE: &str = "svc-scorecard+jwt";
/// How long a scorecard is good.
const LIFETIME: Span = Span::hours(24);
/// How long an action that waited for nobody can be open: the longest receipt, and the day to its lapse.
const OPEN_UNASKED_MAX: Span = Span::hours(24 + 24);
/// Days that a scorecard covers where nothing is said.
const DEFAULT_DAYS: i64 = 30;

/// What records come to, by day and agent; those that name no agent count under none.
pub type Tallied = BTreeMap<(i64, Option<AgentId>), Counts>;

/// Says whether to go on with what takes long: whoever asked may be gone.
pub type GoOn<'a> = dyn Fn() -> Result<(), Refusal> + 'a;

/// What a scorecard is to cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// Of one agent; else of all together.
    pub agent: Option<AgentId>,
    /// From the day of this instant on, in the workspace's zone; 30 days back where it is not said.
    pub from: Option<Timestamp>,
    /// Up to the end of the day before this instant falls in, or of that day where it is later than its beginning.
    pub to: Option<Timestamp>,
}

impl Gate {
    /// The scorecard, a JWS by the key whose turn it is. It covers whole days of the workspace's zone and every record up to the checkpoint that it
    /// names. Each full stretch of the ledger is counted once and its tally kept.
    ///
    /// # Errors
    /// `not_found` where there is no such workspace, or no such agent in it; the store does not answer, or this gate has no
    /// scorecard key.
    pub fn scorecard(&self, asked: &Card) -> Result<String, Failed> {
        self.scorecard_while(asked, &|| Ok(()))
    }

    /// The same for as long as `go_on` says so: thousands of records and of actions may have to be read for it.
    ///
    /// # Errors
    /// As [`scorecard`](Self::scorecard), and what `go_on` refuses with.
    pub fn scorecard_while(&self, asked: &Card, go_on: &GoOn<'_>) -> Result<String, Failed> {
        let missing = Failure::Load(StoreError::Malformed("this gate has no scorecard key"));
        self.place(asked.workspace)?;
        self.names_own(asked.workspace, asked.agent)?;
        let chain = self.read(|scope| proof::chain(scope, asked.workspace))?;
        let (now, zone) = (self.now(), self.zone(asked.workspace)?);
        let before = |to: Timestamp| Timestamp::from_millis(to.as_millis().saturating_sub(1));
        let last = zone.day(asked.to.map_or(now, before));
        let first = asked.from.map_or_else(|| last.saturating_sub(DEFAULT_DAYS - 1), |from| zone.day(from));
        let mut counts = Counts::default();
        let of_agent = |it: &Option<AgentId>| asked.agent.is_none() || asked.agent == *it;
        let by_days = self.by_days(&chain, &zone, &(first..=last), (is_open, go_on))?;
        by_days.iter().filter(|((_, it), _)| of_agent(it)).for_each(|(_, it)| counts.add(it));
        let checkpoint = Object::new().raw("size", &chain.size.to_string()).text("root", &chain.root().to_string());
        let window = Object::new()
            .text("from", &zone.start(first).to_string())
            .text("to", &zone.start(last.saturating_add(1)).to_string());
        let mut claims = Object::new()
            .text("iss", self.signer().issuer())
            .int("iat", now.as_seconds())
            .int("exp", now.plus(LIFETIME).as_seconds())
            .text("wid", &asked.workspace.to_string())
            .raw("checkpoint", &checkpoint.finish())
            .raw("window", &window.finish())
            .raw("counts", &counts_text(&counts))
            .raw("ratios", &ratios_text(&counts))
            .raw("amounts", &amounts_text(&counts));
        let agent = asked.agent.map(|it| it.to_string());
        if let Some(agent) = &agent {
            claims = claims.text("sub", agent);
        }
        let signer = self.signer().of(Purpose::Scorecard, now).ok_or(missing)?;
        Ok(sign_compact(TYPE, claims.finish(), &*signer))
    }

    /// What the ledger's records of these days of the workspace's zone come to, by day and agent, from the same tallies as a
    /// scorecard. What later records gave back of a day's reservations is taken off them, and what has lapsed is posted; how much
    /// lapsed that paid nothing is counted in a scorecard alone.
    ///
    /// # Errors
    /// `not_found` where there is no such workspace; the store does not answer.
    pub fn tallied(&self, workspace: WorkspaceId, days: RangeInclusive<i64>) -> Result<Tallied, Failed> {
        self.tallied_while(workspace, days, &|| Ok(()))
    }

    /// The same for as long as `go_on` says so.
    ///
    /// # Errors
    /// As [`tallied`](Self::tallied), and what `go_on` refuses with.
    pub fn tallied_while(
        &self,
        workspace: WorkspaceId,
        days: RangeInclusive<i64>,
        go_on: &GoOn<'_>,
    ) -> Result<Tallied, Failed> {
        self.place(workspace)?;
        let chain = self.read(|scope| proof::chain(scope, workspace))?;
        self.by_days(&chain, &self.zone(workspace)?, &days, (reserves, go_on))
    }

    fn zone(&self, workspace: WorkspaceId) -> Result<Zone, Failed> {
        let row = self.read(|scope| scope.get::<Workspace>(workspace))?;
        Ok(row.map(|it| it.settings.timezone.clone()).unwrap_or_default())
    }

    /// What the records of these days come to. Up to [`OPEN_MAX`] after them more may be reserved for what was asked for on them;
    /// it may be given back by any record after it, as timers run late where no server ran. So what comes later is read for as long
    /// as a day `holds` anything: by its money, or also by how many actions are open.
    fn by_days(
        &self,
        chain: &Chain,
        zone: &Zone,
        days: &RangeInclusive<i64>,
        (holds, go_on): (fn(&Counts) -> bool, &GoOn<'_>),
    ) -> Result<Tallied, Failed> {
        let mut found = Tallied::new();
        let begin = self.first_at(chain, zone.start(*days.start()))?;
        let over = zone.start(days.end().saturating_add(1)).plus(OPEN_MAX);
        let end = if self.now() < over { chain.size } else { self.first_at(chain, over)? };
        let mut number = begin / TALLIED;
        let from = |number: u64| number.saturating_mul(TALLIED);
        while from(number) < end || (from(number) < chain.size && found.values().any(holds)) {
            go_on().map_err(refused)?;
            for (day, agent, counts) in self.tally(chain, zone, number, go_on)? {
                if days.contains(&day) {
                    found.entry((day, agent)).or_default().add(&counts);
                }
            }
            number = number.saturating_add(1);
        }
        for ((day, agent), counts) in &mut found {
            self.lapse(zone, (*day, *agent), counts, (holds, go_on))?;
        }
        Ok(found)
    }

    /// Of what reserves nothing of its mandate no record tells that it lapsed: its row does as long as it may be open, and
    /// whatever is left of a day after that has lapsed, which for calls of tools that nobody settles is most of nine days.
    fn lapse(
        &self,
        zone: &Zone,
        (day, agent): (i64, Option<AgentId>),
        counts: &mut Counts,
        (holds, go_on): (fn(&Counts) -> bool, &GoOn<'_>),
    ) -> Result<(), Failed> {
        let (now, begin, end) = (self.now(), zone.start(day), zone.start(day.saturating_add(1)));
        let Some(agent) = agent.filter(|_| holds(counts)) else { return Ok(()) };
        // Where nobody was asked on that day, nothing of it was allowed late.
        let open_max = if counts.of(Counted::Asked) == 0 { OPEN_UNASKED_MAX } else { OPEN_MAX };
        if now >= end.plus(open_max) {
            counts.lapse_all();
            return Ok(());
        }
        let all = Range::all(Index::ActionsOf, agent.bits(), PAGE);
        let mut range =
            Range { from: ulid_bits(begin, 0), until: ulid_bits(end.min(now.minus(LAPSE_AFTER)), 0), ..all };
        while range.from < range.until && holds(counts) {
            go_on().map_err(refused)?;
            let found = self.scan(&range)?;
            let actions = found.iter().filter_map(|it| Action::peel(it.row.record.as_ref()?));
            for action in actions.filter(|it| it.has_lapsed_unrecorded(now)) {
                counts.lapse(action.payment.as_ref().map(|it| (it.currency.as_str(), it.amount)));
            }
            if !range.turn_page(&found) {
                break;
            }
        }
        Ok(())
    }

    fn tally(
        &self,
        chain: &Chain,
        zone: &Zone,
        number: u64,
        go_on: &GoOn<'_>,
    ) -> Result<Vec<(i64, Option<AgentId>, Counts)>, Failed> {
        let (from, to) = (number.saturating_mul(TALLIED), number.saturating_add(1).saturating_mul(TALLIED));
        let id = TallyId { workspace: chain.workspace, number: u32::try_from(number).unwrap_or(u32::MAX) };
        if let Some(kept) =
            self.read(|scope| scope.get::<Tally>(id))?.filter(|it| it.zone == *zone && it.by == COUNTED_BY)
        {
            return Ok(kept.counts.clone());
        }
        let (mut counter, mut next, end) = (Counter::by_days_of(zone.clone()), from, to.min(chain.size));
        while next < end {
            go_on().map_err(refused)?;
            let page = self.page(chain.workspace, next, end, PAGE)?;
            page.iter().for_each(|entry| counter.take(entry));
            let last = page.last().and_then(|it| it.place.as_ref()).map_or(end, |it| it.seq);
            next = last.saturating_add(1);
        }
        let mut counts = counter.finish();
        let canaries = self.canaries(counts.iter().filter_map(|(_, agent, _)| *agent).collect())?;
        counts.retain(|(_, agent, _)| agent.is_none_or(|it| !canaries.contains(&it)));
        if to <= chain.size {
            self.execute(KeepTally(Tally { id, zone: zone.clone(), by: COUNTED_BY, counts: counts.clone() }))?;
        }
        Ok(counts)
    }

    /// Those of these agents that are canaries of drills.
    fn canaries(&self, agents: BTreeSet<AgentId>) -> Result<BTreeSet<AgentId>, Failed> {
        let keys: Vec<_> = agents.iter().map(|it| Agent::key(*it)).collect();
        self.read(|scope| {
            scope.want(&keys)?;
            let mut found = BTreeSet::new();
            for id in &agents {
                found.extend(scope.get::<Agent>(*id)?.filter(|it| it.canary.is_some()).map(|it| it.id));
            }
            Ok(found)
        })
    }
}

/// Whether anything is reserved.
fn reserves(counts: &Counts) -> bool {
    counts.reserved().any(|(_, amount)| amount != 0)
}

/// The same, or whether an action is open.
fn is_open(counts: &Counts) -> bool {
    counts.open() > 0 || reserves(counts)
}

fn counts_text(counts: &Counts) -> String {
    let object = Counted::ALL.into_iter().fold(Object::new(), |object, what| {
        object.int(what.word(), i64::try_from(counts.of(what)).unwrap_or(i64::MAX))
    });
    object.finish()
}

fn ratios_text(counts: &Counts) -> String {
    use Counted::{Allowed, Approved, Asked, Failed, OverSettled, ProvenanceMismatch, Settled};
    let sum = |of: &[Counted]| of.iter().fold(0_u64, |sum, it| sum.saturating_add(counts.of(*it)));
    let decided = counts.decided();
    let ratios = [
        ("allowedByRule", counts.of(Allowed), decided),
        ("approvedOfAsked", counts.of(Approved), counts.of(Asked)),
        ("settledOfAllowed", counts.of(Settled), sum(&[Allowed, Approved])),
        // Also what was told as failed may have taken more than was allowed.
        ("overSettledOfSettled", counts.of(OverSettled), sum(&[Settled, Failed])),
        ("provenanceMismatch", counts.of(ProvenanceMismatch), decided),
    ];
    let items = ratios.map(|(name, numerator, denominator)| {
        let ratio = Object::new().text("name", name).raw("numerator", &numerator.to_string());
        ratio.raw("denominator", &denominator.to_string()).finish()
    });
    format!("[{}]", items.join(","))
}

/// What was allowed and what was posted. Records of the window that take back more than was posted in it, of what earlier windows
/// had, leave nothing: nobody has spent less.
fn amounts_text(counts: &Counts) -> String {
    let items: Vec<String> = counts
        .money()
        .map(|(currency, allowed, settled)| {
            Object::new().text("currency", currency).int("allowed", allowed).int("settled", settled.max(0)).finish()
        })
        .collect();
    format!("[{}]", items.join(","))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    /// A correction of an earlier window takes back what was posted in this one, and no more.
    #[test]
    fn no_amount_is_below_zero() {
        let mut counts = Counts::default();
        counts.lapse(Some(("EUR", 500)));
        counts.lapse(Some(("USD", 300)));
        counts.lapse(Some(("EUR", -700)));
        counts.lapse(Some(("USD", -100)));
        let told = r#"[{"allowed":0,"currency":"EUR","settled":0},{"allowed":0,"currency":"USD","settled":200}]"#;
        assert_eq!(amounts_text(&counts), told);
    }
    /// What was told as failed may have taken more than was allowed: no ratio is above one for it.
    #[test]
    fn over_settlements_are_among_all_settlements() {
        let mut n = [0; Counted::ALL.len()];
        n[Counted::Failed as usize] = 1;
        n[Counted::OverSettled as usize] = 1;
        let counts = serde_json::from_value(serde_json::json!({ "n": n })).unwrap();
        let told = r#"{"denominator":1,"name":"overSettledOfSettled","numerator":1}"#;
        assert!(ratios_text(&counts).contains(told), "{}", ratios_text(&counts));
    }
}
