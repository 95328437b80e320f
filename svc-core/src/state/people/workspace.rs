//! A workspace: its settings in force and the holds that stop agents of it. The row is always there, so what can
//! forbid is looked up in it and never in a row that may be absent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hold::StandingHold;
use super::plan::Plan;
use super::subscription::Subscription;
use crate::state::edge::IntegrationKind;
use crate::state::gate::Term;
use crate::state::gateway::{BudgetAt, BudgetScope};
use crate::value::currency::Currency;
use crate::value::domain::Domain;
use crate::value::id::{PrincipalId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::period::{Period, Zone};
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Invalid, SAFE_MAX, Span, Timestamp};

/// A workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: Label,
    /// The settings in force.
    pub settings: Settings,
    /// What it may have: set by whoever runs the gate, never by the workspace.
    #[serde(default)]
    pub plan: Plan,
    /// What the plan follows from where it is paid for, the longest known first: at most
    /// [`SUBSCRIPTIONS_MAX`](super::SUBSCRIPTIONS_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<Subscription>,
    /// The holds that stand, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<StandingHold>,
    /// Its budgets for model calls, the oldest first: at most [`BUDGETS_MAX`](crate::state::gateway::BUDGETS_MAX).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetAt>,
    /// Over which kinds of integrations people are told of what waits for them, each once: what decides reads it here, and an
    /// integration that is made, changed or removed is written here in the same commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_over: Vec<IntegrationKind>,
    /// The first owner.
    pub owner: PrincipalId,
    /// Every owner, the longest one first. Never empty: the last owner cannot leave.
    pub owners: Vec<PrincipalId>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Linked for Workspace {
    fn links(&self) -> Vec<Link> {
        vec![Link::by_id(Index::Workspaces, 0, self.id)]
    }
}

impl Workspace {
    /// The hold over every agent, while one stands.
    #[must_use]
    pub fn all_held(&self) -> Option<&StandingHold> {
        self.holds.iter().find(|it| it.over.is_none())
    }

    /// Whether one of its budgets is over this.
    #[must_use]
    pub fn has_budget_over(&self, scope: &BudgetScope) -> bool {
        self.budgets.iter().any(|it| it.scope == *scope)
    }
}

/// The guard row of everything that a selector of agents can see: each such change adds one to `epoch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// How many changes there have been.
    pub epoch: u64,
    /// How many agents there are that were not removed.
    pub agents: u32,
    /// How many mandates they have that were not revoked.
    #[serde(default)]
    pub mandates: u32,
}

impl Linked for Roster {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// What a workspace has set (CONTRACT part 8, "Settings"); the defaults are those of that table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Where its calendar periods begin.
    pub timezone: Zone,
    /// What ran by another zone when this one was put in force, at most one of a kind: it goes on as it began, and this zone counts
    /// from its end on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<Term>,
    /// In which currency templates are read.
    pub currency: Currency,
    /// The velocity lines.
    pub agent_velocity: Velocity,
    /// What becomes of an action that no mandate covers.
    pub outside_mandate: Outside,
    /// What declared and observed provenance bring about.
    pub provenance: Provenance,
    /// How long an approval waits, in hours: 1 to 168.
    pub approval_hours: u16,
    /// Above which amounts two persons decide, in minor units.
    pub second_person_above: BTreeMap<Currency, i64>,
    /// For how many days two persons count as one after one of them invited the other, gave them a sign-in link or changed
    /// their role: 0 to 90.
    pub second_person_age_days: u16,
    /// How long a receipt lives, in minutes: 1 to 1,440.
    pub receipt_minutes: u16,
    /// How many approvals of one agent may wait: 1 to 1,000.
    pub max_waiting: u16,
    /// How many agents a service token may freeze within an hour before a person is asked: 1 to 1,000,000.
    pub freeze_ceiling_per_hour: u32,
    /// What becomes of sensitive data on its way to a model.
    pub data_loss: DataLoss,
    /// How people sign in.
    pub sign_in: SignIn,
    /// Above which amounts the console asks for the second factor again, in minor units.
    pub step_up_above: BTreeMap<Currency, i64>,
    /// For how many days what is personal in actions is kept: 30 to 3,650; without it for ever.
    pub retention_days: Option<u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timezone: Zone::utc(),
            running: Vec::new(),
            currency: Currency::EUR,
            agent_velocity: Velocity::default(),
            outside_mandate: Outside::Ask,
            provenance: Provenance::default(),
            approval_hours: 24,
            second_person_above: BTreeMap::new(),
            second_person_age_days: 0,
            receipt_minutes: 15,
            max_waiting: 100,
            freeze_ceiling_per_hour: 50,
            data_loss: DataLoss::Off,
            sign_in: SignIn::default(),
            step_up_above: BTreeMap::new(),
            retention_days: None,
        }
    }
}

impl Settings {
    /// The period of this kind that `at` lies in.
    #[must_use]
    pub fn term(&self, period: Period, at: Timestamp) -> Term {
        let own = || self.running.iter().filter(|it| it.period == period);
        if let Some(running) = own().find(|it| it.from <= at && at < it.until) {
            return *running;
        }
        let term = self.term_by_zone(period, at);
        // It begins where what ran at the change has ended, at the earliest.
        let ended = own().map(|it| it.until).filter(|it| *it <= at).max();
        Term { from: ended.map_or(term.from, |it| it.max(term.from)), ..term }
    }

    fn term_by_zone(&self, period: Period, at: Timestamp) -> Term {
        let (from, until) = period.bounds(at, &self.timezone);
        Term { period, from, until }
    }

    /// Puts another zone in force: each period that runs at `now` goes on as it began.
    pub fn change_zone(&mut self, zone: Zone, now: Timestamp) {
        let mut running = Period::ALL.map(|it| self.term(it, now)).to_vec();
        self.timezone = zone;
        running.retain(|it| *it != self.term_by_zone(it.period, now));
        self.running = running;
    }

    /// When a receipt made now expires: a whole second, as the receipt tells no part of one.
    #[must_use]
    pub fn receipt_end(&self, now: Timestamp) -> Timestamp {
        now.whole_second().plus(Span::minutes(i64::from(self.receipt_minutes)))
    }

    /// How long an approval made now waits.
    #[must_use]
    pub fn approval_life(&self) -> Span {
        Span::hours(i64::from(self.approval_hours))
    }

    /// How long two persons count as one after one of them raised the other.
    #[must_use]
    pub fn second_person_age(&self) -> Span {
        Span::hours(24 * i64::from(self.second_person_age_days))
    }

    /// How many persons decide over a payment: two above the line of its currency, and in a currency without a line
    /// as soon as there is any line.
    #[must_use]
    pub fn persons_needed(&self, payment: Option<(Currency, i64)>) -> u8 {
        if is_above(&self.second_person_above, payment) { 2 } else { 1 }
    }

    /// Whether whoever allows a payment shows their second factor again. `payment` as in [`Self::persons_needed`].
    #[must_use]
    pub fn needs_second_factor(&self, payment: Option<(Currency, i64)>) -> bool {
        is_above(&self.step_up_above, payment)
    }

    /// Every number outside its bounds, as (dotted member, clause).
    #[must_use]
    pub fn faults(&self) -> Vec<(String, Invalid)> {
        let velocity = &self.agent_velocity;
        let numbers: [(&str, i64, i64, i64); 10] = [
            ("agentVelocity.toolVelocityCount", velocity.tool_count.into(), 1, 1_000_000),
            ("agentVelocity.velocityCount", velocity.other_count.into(), 1, 1_000_000),
            ("agentVelocity.velocityMinutes", velocity.minutes.into(), 1, 1_440),
            ("provenance.windowMinutes", self.provenance.window_minutes.into(), 5, 1_440),
            ("approvalHours", self.approval_hours.into(), 1, 168),
            ("secondPersonAgeDays", self.second_person_age_days.into(), 0, 90),
            ("receiptMinutes", self.receipt_minutes.into(), 1, 1_440),
            ("maxWaiting", self.max_waiting.into(), 1, 1_000),
            ("freezeCeilingPerHour", self.freeze_ceiling_per_hour.into(), 1, 1_000_000),
            ("retentionDays", self.retention_days.unwrap_or(30).into(), 30, 3_650),
        ];
        let mut faults: Vec<_> = numbers
            .into_iter()
            .filter(|(_, value, min, max)| value < min || value > max)
            .map(|(name, _, min, max)| (name.to_owned(), Invalid::new(format!("must be between {min} and {max}"))))
            .collect();
        for (name, lines) in [("secondPersonAbove", &self.second_person_above), ("stepUpAbove", &self.step_up_above)] {
            let outside = lines.iter().filter(|(_, minor)| !(0..=SAFE_MAX).contains(*minor));
            faults.extend(outside.map(|(currency, _)| {
                (format!("{name}.{currency}"), Invalid::new("must be a whole number of minor units, 0 or more"))
            }));
        }
        if self.sign_in.sso_domains.len() > SSO_DOMAINS_MAX {
            let clause = format!("must hold at most {SSO_DOMAINS_MAX} domains");
            faults.push(("signIn.ssoDomains".to_owned(), Invalid::new(clause)));
        }
        faults
    }
}

/// How many domains single sign-on may bring people in from.
const SSO_DOMAINS_MAX: usize = 100;

/// The velocity lines: so many actions in so many minutes, tool calls and all else apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Velocity {
    /// How many tool calls: 1 to 1,000,000.
    pub tool_count: u32,
    /// How many other actions: 1 to 1,000,000.
    pub other_count: u32,
    /// In how many minutes: 1 to 1,440.
    pub minutes: u16,
}

impl Default for Velocity {
    fn default() -> Self {
        Self { tool_count: 200, other_count: 10, minutes: 10 }
    }
}

impl Velocity {
    /// The window of both lines.
    #[must_use]
    pub fn window(&self) -> Span {
        Span::minutes(i64::from(self.minutes))
    }
}

/// How people sign in to a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// Whether a member without a second factor may do nothing here.
    pub require_two_factor: bool,
    /// Whether only the workspace's own identity provider signs in.
    pub require_sso: bool,
    /// Domains of e-mail addresses whose holders the identity provider may bring in.
    pub sso_domains: Vec<Domain>,
}

/// What becomes of sensitive data on its way to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataLoss {
    /// Nobody looks.
    Off,
    /// It is noted.
    Flag,
    /// It is replaced.
    Redact,
    /// The call is refused.
    Block,
}

words! {
    /// The mildest first.
    DataLoss;
    Off "off";
    Flag "flag";
    Redact "redact";
    Block "block";
}

/// What becomes of an action outside every mandate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outside {
    /// A person is asked.
    Ask,
    /// It is denied.
    Deny,
}

words! { Outside;
    Ask "ask";
    Deny "deny";
}

/// What provenance brings about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Provenance {
    /// Where what was declared is better than what was observed.
    pub mismatch: OnMismatch,
    /// Where nothing was declared, for sinks.
    pub undeclared: OnUndeclared,
    /// How far back an agent's observations count, in minutes: 5 to 1,440.
    pub window_minutes: u16,
}

impl Default for Provenance {
    fn default() -> Self {
        Self { mismatch: OnMismatch::Deny, undeclared: OnUndeclared::Record, window_minutes: 60 }
    }
}

/// What an understated account of provenance brings about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMismatch {
    /// Sinks are denied, all else asks.
    Deny,
    /// A person is asked.
    Ask,
    /// It is noted.
    Record,
}

words! { OnMismatch;
    Deny "deny";
    Ask "ask";
    Record "record";
}

/// What an undeclared provenance brings about on a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUndeclared {
    /// It is noted.
    Record,
    /// A person is asked.
    Ask,
    /// It is denied.
    Deny,
}

words! { OnUndeclared;
    Record "record";
    Ask "ask";
    Deny "deny";
}

/// Whether a payment is above the line of its currency; where there are lines, one in a currency without any is.
fn is_above(lines: &BTreeMap<Currency, i64>, payment: Option<(Currency, i64)>) -> bool {
    let Some((currency, minor)) = payment else { return false };
    lines.get(&currency).map_or(!lines.is_empty(), |line| minor > *line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace begins with the settings of the contract's table.
    #[test]
    fn a_workspace_begins_with_the_defaults() {
        let settings = Settings::default();
        let velocity = &settings.agent_velocity;
        assert_eq!((velocity.tool_count, velocity.other_count, velocity.minutes), (200, 10, 10));
        assert_eq!((settings.timezone.as_str(), settings.currency.as_str()), ("UTC", "EUR"));
        assert_eq!(settings.outside_mandate, Outside::Ask);
        let provenance = &settings.provenance;
        assert_eq!((provenance.mismatch, provenance.undeclared), (OnMismatch::Deny, OnUndeclared::Record));
        assert_eq!(provenance.window_minutes, 60);
        assert_eq!((settings.approval_hours, settings.receipt_minutes, settings.max_waiting), (24, 15, 100));
        assert_eq!((settings.second_person_age_days, settings.freeze_ceiling_per_hour), (0, 50));
        assert_eq!((settings.data_loss, settings.retention_days), (DataLoss::Off, None));
        assert_eq!(settings.sign_in, SignIn { require_two_factor: false, require_sso: false, sso_domains: Vec::new() });
        assert!(settings.second_person_above.is_empty() && settings.step_up_above.is_empty());
        assert_eq!(settings.faults(), vec![]);
    }

    /// What follows a period that ran when the zone was changed begins where that one ended, wherever the new zone's own began; and the
    /// one after it as the new zone has it.
    #[test]
    fn a_period_after_a_change_of_zone_begins_where_the_one_before_ended() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let ends = at("2026-12-01T00:00:00.000Z");
        for (zone, until) in
            [("Pacific/Auckland", "2026-12-31T11:00:00.000Z"), ("Pacific/Honolulu", "2026-12-01T10:00:00.000Z")]
        {
            let mut settings = Settings::default();
            settings.change_zone(Zone::parse(zone).unwrap(), at("2026-11-20T00:00:00.000Z"));
            assert_eq!(settings.term(Period::Month, ends.minus(Span::millis(1))).until, ends, "{zone}");
            let next = settings.term(Period::Month, ends);
            assert_eq!((next.from, next.until), (ends, at(until)), "{zone}");
            assert_eq!(settings.term(Period::Month, next.until).from, next.until, "{zone}");
        }
    }

    /// The first and last value of each number's range are in it, and their neighbours are not.
    #[test]
    fn each_number_has_its_bounds() {
        type Set = fn(&mut Settings, u32);
        fn short(value: u32) -> u16 {
            u16::try_from(value).unwrap_or(u16::MAX)
        }
        let bounds: [(&str, u32, u32, Set); 10] = [
            ("agentVelocity.toolVelocityCount", 1, 1_000_000, |it, to| it.agent_velocity.tool_count = to),
            ("agentVelocity.velocityCount", 1, 1_000_000, |it, to| it.agent_velocity.other_count = to),
            ("agentVelocity.velocityMinutes", 1, 1_440, |it, to| it.agent_velocity.minutes = short(to)),
            ("provenance.windowMinutes", 5, 1_440, |it, to| it.provenance.window_minutes = short(to)),
            ("approvalHours", 1, 168, |it, to| it.approval_hours = short(to)),
            ("receiptMinutes", 1, 1_440, |it, to| it.receipt_minutes = short(to)),
            ("maxWaiting", 1, 1_000, |it, to| it.max_waiting = short(to)),
            ("freezeCeilingPerHour", 1, 1_000_000, |it, to| it.freeze_ceiling_per_hour = to),
            ("retentionDays", 30, 3_650, |it, to| it.retention_days = Some(short(to))),
            ("secondPersonAgeDays", 0, 90, |it, to| it.second_person_age_days = short(to)),
        ];
        for (name, min, max, set) in bounds {
            for (value, is_fault) in [(min.wrapping_sub(1), true), (min, false), (max, false), (max + 1, true)] {
                let mut settings = Settings::default();
                set(&mut settings, value);
                let faults: Vec<String> = settings.faults().into_iter().map(|(field, _)| field).collect();
                let expected: &[&str] = if is_fault { &[name] } else { &[] };
                assert_eq!(faults, expected, "{name} of {value}");
            }
        }
    }
}
