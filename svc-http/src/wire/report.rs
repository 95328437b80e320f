//! Reports and bills (CONTRACT part 2, "Reports", "Billing import").

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gateway::{BILLED_LINES_MAX, BillingImport, Cell, DayOfModel, Sums, TaskStatus, Usage, WasteKind};
use svc_core::value::currency::Currency;
use svc_core::value::id::UpstreamId;
use svc_core::value::json::Json;
use svc_core::value::period::{Period, Zone, date_of, day_of};
use svc_core::value::text::ModelName;
use svc_core::value::{Invalid, MicroUsd, SAFE_MAX, Timestamp};

use super::page::Query;
use super::{Fields, bounded, integer, named, parse, text};

/// Days of one report at most.
pub const DAYS_MAX: i64 = 400;
/// Parts of a micro in which a bill's lines are added up.
const FINER: u64 = 1_000_000_000_000;

/// By what a report is grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportBy {
    /// Days.
    Day,
    /// Teams.
    Team,
    /// People and services.
    Principal,
    /// Agents.
    Agent,
    /// Models, as `provider/model`.
    Model,
    /// Classes of tasks.
    TaskClass,
    /// Keys.
    Key,
}

impl ReportBy {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Day, "day"),
        (Self::Team, "team"),
        (Self::Principal, "principal"),
        (Self::Agent, "agent"),
        (Self::Model, "model"),
        (Self::TaskClass, "taskClass"),
        (Self::Key, "key"),
    ];

    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::ALL.into_iter().find(|(it, _)| *it == self).map_or("", |(_, word)| word)
    }

    /// The words, in their order.
    pub(crate) fn words() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(|(_, word)| word)
    }

    /// The group that a cell is in; `None` for what has no such member.
    #[must_use]
    pub fn group(self, cell: &Cell) -> Option<String> {
        match self {
            Self::Day => Some(date_of(cell.day)),
            Self::Team => cell.team.map(|it| it.to_string()),
            Self::Principal => Some(cell.principal.to_string()),
            Self::Agent => cell.agent.map(|it| it.to_string()),
            Self::Model => cell.model.as_deref().map(str::to_owned),
            Self::TaskClass => cell.class.as_ref().map(|it| it.as_str().to_owned()),
            Self::Key => Some(cell.key.to_string()),
        }
    }
}

/// What a report is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Its first day, counted from 1970-01-01 in the workspace's zone.
    pub from: i64,
    /// The first day after it.
    pub to: i64,
    /// By what it is grouped.
    pub by: ReportBy,
    /// The one currency whose payments are shown.
    pub currency: Option<Currency>,
}

/// Reads what a report is asked for. `from` and `to` are dates, or instants: those mean the day that they lie in, and for
/// `to` the beginning of a day is the end of the one before. Without either it is the running month.
///
/// # Errors
/// `invalid_request` with every fault.
pub fn read(mut query: Query, zone: &Zone, now: Timestamp) -> Result<Asked, Refusal> {
    let from = query.take("from", |text| day(text, zone, false));
    let to = query.take("to", |text| day(text, zone, true));
    let by = query.take("by", |word| {
        let found = ReportBy::ALL.into_iter().find(|(_, it)| *it == word).map(|(it, _)| it);
        found.ok_or_else(|| "must be day, team, principal, agent, model, taskClass or key".to_owned())
    });
    let currency =
        query.take("currency", |code| Currency::parse(code).map_err(|_| "must be a current ISO 4217 code".to_owned()));
    let (month, next) = Period::Month.bounds(now, zone);
    let (month, next, today) = (zone.day(month), zone.day(next), zone.day(now));
    let (from, to) = match (from, to) {
        (Some(from), Some(to)) => (from, to),
        (Some(from), None) => (from, today.saturating_add(1).max(from.saturating_add(1))),
        (None, Some(to)) => {
            let last = zone.start(to.saturating_sub(1));
            (zone.day(Period::Month.bounds(last, zone).0), to)
        }
        (None, None) => (month, next),
    };
    if to <= from {
        query.fault("to", "must be after `from`");
    } else if to.saturating_sub(from) > DAYS_MAX {
        query.fault("from", &format!("must be at most {DAYS_MAX} days before `to`"));
    }
    query.finish()?;
    Ok(Asked { from, to, by: by.unwrap_or(ReportBy::Day), currency })
}

fn day(text: &str, zone: &Zone, is_end: bool) -> Result<i64, String> {
    if let Ok(day) = day_of(text) {
        return Ok(day);
    }
    let why = || "must be a date such as 2026-10-01 or a time such as 2026-10-01T00:00:00Z".to_owned();
    let at = Timestamp::parse(text).map_err(|_| why())?;
    let last = Timestamp::from_millis(at.as_millis().saturating_sub(i64::from(is_end)));
    Ok(zone.day(last).saturating_add(i64::from(is_end)))
}

/// What agents paid in one currency, in minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// That is settled.
    pub settled: i64,
    /// That is reserved.
    pub reserved: i64,
}

impl Paid {
    /// Adds what others paid.
    pub fn add(&mut self, other: Self) {
        self.settled = self.settled.saturating_add(other.settled);
        self.reserved = self.reserved.saturating_add(other.reserved);
    }
}

/// One group of a report of spend.
#[derive(Debug, Default)]
pub struct SpendRow {
    /// Model traffic.
    pub sums: Sums,
    /// Payments of agents, by currency.
    pub payments: BTreeMap<Box<str>, Paid>,
}

impl SpendRow {
    /// Adds another group.
    pub fn add(&mut self, other: &Self) {
        self.sums.add(&other.sums);
        for (currency, paid) in &other.payments {
            self.payments.entry(currency.clone()).or_default().add(*paid);
        }
    }

    fn write(&self) -> Value {
        let sums = &self.sums;
        let payments = self.payments.iter().map(|(currency, paid)| {
            json!({ "currency": currency, "settled": bounded(paid.settled), "reserved": bounded(paid.reserved) })
        });
        json!({
            "calls": sums.calls,
            "usage": usage(&sums.usage),
            "costMicros": sums.cost,
            "estimatedMicros": sums.estimated,
            "unpricedCalls": sums.unpriced,
            "payments": payments.collect::<Vec<_>>(),
        })
    }
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input": usage.input,
        "cachedInput": usage.cached_input,
        "cacheWrite": usage.cache_write,
        "cacheWriteLong": usage.cache_write_long,
        "output": usage.output,
        "reasoning": usage.reasoning,
    })
}

/// What a group is called, where it has a name.
pub type Names = BTreeMap<String, String>;

fn name<'a>(key: Option<&'a String>, names: &'a Names) -> Option<&'a String> {
    key.map(|it| names.get(it).unwrap_or(it))
}

/// A report of spend.
#[must_use]
pub fn write_spend(asked: &Asked, zone: &Zone, rows: &BTreeMap<Option<String>, SpendRow>, names: &Names) -> Value {
    let mut totals = SpendRow::default();
    rows.values().for_each(|it| totals.add(it));
    let shown = ordered(rows, asked.by, |it| it.sums.cost).into_iter().map(|(key, row)| {
        let mut shown = row.write();
        if let Some(members) = shown.as_object_mut() {
            members.insert("key".to_owned(), json!(key));
            members.insert("name".to_owned(), json!(name(key.as_ref(), names)));
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    framed(asked, zone, shown, Some(totals.write()))
}

/// A report of yield.
#[must_use]
pub fn write_yield(asked: &Asked, zone: &Zone, rows: &BTreeMap<Option<String>, Sums>, names: &Names) -> Value {
    let shown = ordered(rows, asked.by, |it| it.cost).into_iter().map(|(key, sums)| {
        json!({
            "key": key,
            "name": name(key.as_ref(), names),
            "tasks": sums.tasks,
            "reported": sums.reported(),
            "accepted": sums.outcome(TaskStatus::Accepted),
            "partial": sums.outcome(TaskStatus::Partial),
            "rejected": sums.outcome(TaskStatus::Rejected),
            "abandoned": sums.outcome(TaskStatus::Abandoned),
            "costMicros": sums.cost,
            "costPerAcceptedMicros": sums.cost_per_accepted(),
        })
    });
    let shown: Vec<Value> = shown.collect();
    framed(asked, zone, shown, None)
}

/// A report of waste.
#[must_use]
pub fn write_waste(asked: &Asked, zone: &Zone, sums: &Sums) -> Value {
    let rows = WasteKind::ALL.into_iter().zip(&sums.waste).map(|(kind, it)| {
        json!({
            "kind": kind.as_str(),
            "count": it.count,
            "costMicros": it.cost,
            "savableMicros": it.savable,
            "example": it.example,
        })
    });
    let rows: Vec<Value> = rows.collect();
    json!({ "from": first(asked.from, zone), "to": first(asked.to, zone), "rows": rows })
}

/// Days as they follow each other, all else by what it cost, the dearest first.
fn ordered<T>(
    rows: &BTreeMap<Option<String>, T>,
    by: ReportBy,
    cost: impl Fn(&T) -> MicroUsd,
) -> Vec<(&Option<String>, &T)> {
    let mut rows: Vec<_> = rows.iter().collect();
    if by != ReportBy::Day {
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(cost(row)));
    }
    rows
}

fn framed(asked: &Asked, zone: &Zone, rows: Vec<Value>, totals: Option<Value>) -> Value {
    let mut report = json!({
        "from": first(asked.from, zone),
        "to": first(asked.to, zone),
        "by": asked.by.as_str(),
        "rows": rows,
    });
    if let (Some(members), Some(totals)) = (report.as_object_mut(), totals) {
        members.insert("totals".to_owned(), totals);
    }
    report
}

fn first(day: i64, zone: &Zone) -> String {
    zone.start(day).to_string()
}

/// A bill as it was sent.
#[derive(Debug)]
pub struct Bill {
    /// Whose.
    pub upstream: UpstreamId,
    /// Its first day, counted from 1970-01-01.
    pub from: i64,
    /// The first day after it.
    pub to: i64,
    /// Its lines.
    pub lines: Vec<DayOfModel>,
}

/// What a bill names.
pub const BILL_IDS: &[(&str, named::Names)] = &[("upstreamId", named::Names::Upstream)];

/// Reads a bill in JSON.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_bill(body: &[u8]) -> Result<Bill, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let upstream = fields.required("upstreamId", |it| UpstreamId::parse(text(it)?));
    let from = fields.required("from", date);
    let to = fields.required("to", date);
    if fields.raw("lines").is_none() {
        fields.note(FieldError::missing("lines"));
    }
    let lines = fields.each("lines", BILLED_LINES_MAX, |line| {
        let model = line.required("model", |it| ModelName::parse(text(it)?));
        let day = line.required("day", date);
        let micros = line.required("micros", |it| {
            let micros = integer(it).ok().and_then(|it| u64::try_from(it).ok()).map(MicroUsd::new);
            micros.ok_or_else(|| Invalid::new("must be a whole number of micros, 0 or more"))
        });
        // What was used is not compared: only a malformed account of it is told.
        line.optional("usage", |it| it.as_object().map(drop).ok_or_else(|| Invalid::new("must be an object")));
        Some(DayOfModel { day: day?, model: model?, micros: micros? })
    });
    if let (Some(from), Some(to)) = (from, to) {
        range_faults(from, to, lines.as_deref().unwrap_or_default()).into_iter().for_each(|it| fields.note(it));
    }
    let made = match (upstream, from, to, lines) {
        (Some(upstream), Some(from), Some(to), Some(lines)) => Some(Bill { upstream, from, to, lines }),
        _ => None,
    };
    fields.finish(made)
}

fn date(value: &Json) -> Result<i64, Invalid> {
    day_of(text(value)?)
}

fn range_faults(from: i64, to: i64, lines: &[DayOfModel]) -> Vec<FieldError> {
    if to <= from {
        return vec![FieldError::new("to", "must be after `from`")];
    }
    if to.saturating_sub(from) > DAYS_MAX {
        return vec![FieldError::new("from", format!("must be at most {DAYS_MAX} days before `to`"))];
    }
    let outside = lines.iter().enumerate().filter(|(_, it)| !(from..to).contains(&it.day));
    outside.take(20).map(|(at, _)| FieldError::new(format!("lines.{at}.day"), "lies outside `from` and `to`")).collect()
}

/// Reads a provider's bill as CSV; whose it is and its days stand in the query. Its first line names the columns: `model`;
/// `day` or `date`; and `micros`, or `cost`, `cost_usd` or `amount` in dollars.
///
/// # Errors
/// `invalid_request` naming every fault, of lines by their number.
pub fn read_bill_csv(mut query: Query, body: &[u8]) -> Result<Bill, Refusal> {
    let upstream =
        needed(&mut query, "upstreamId", |it| UpstreamId::parse(it).map_err(|why| why.into_message().into_owned()));
    let from = needed(&mut query, "from", |it| day_of(it).map_err(|why| why.into_message().into_owned()));
    let to = needed(&mut query, "to", |it| day_of(it).map_err(|why| why.into_message().into_owned()));
    let mut faults = query.into_faults();
    let lines = match std::str::from_utf8(body) {
        Ok(body) => csv(body).map_err(|it| faults.extend(it)).ok(),
        Err(_) => {
            faults.push(FieldError::whole("the body must be UTF-8"));
            None
        }
    };
    if let (Some(from), Some(to)) = (from, to) {
        faults.extend(range_faults(from, to, lines.as_deref().unwrap_or_default()));
    }
    match (upstream, from, to, lines) {
        (Some(upstream), Some(from), Some(to), Some(lines)) if faults.is_empty() => {
            Ok(Bill { upstream, from, to, lines })
        }
        _ => Err(Refusal::invalid_request(faults)),
    }
}

fn needed<T>(query: &mut Query, name: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
    if query.raw(name).is_none() {
        query.fault(name, "is required");
    }
    query.take(name, read)
}

fn csv(body: &str) -> Result<Vec<DayOfModel>, Vec<FieldError>> {
    let mut records = body.trim_start_matches('\u{feff}').lines().filter(|it| !it.trim().is_empty()).map(cells);
    let head = records.next().unwrap_or_default();
    let column = |names: &[&str]| head.iter().position(|it| names.contains(&it.trim().to_ascii_lowercase().as_str()));
    let (model, day) = (column(&["model"]), column(&["day", "date"]));
    let (micros, dollars) = (column(&["micros"]), column(&["cost", "cost_usd", "amount"]));
    let (Some(model), Some(day), Some(money)) = (model, day, micros.or(dollars)) else {
        let message = "the first line must name the columns `model`, `day` or `date`, and `micros` or `cost`";
        return Err(vec![FieldError::whole(message)]);
    };
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    for (at, record) in records.enumerate() {
        if at == BILLED_LINES_MAX {
            faults.push(FieldError::whole(format!("the body must hold at most {BILLED_LINES_MAX} lines")));
        }
        if at >= BILLED_LINES_MAX || faults.len() > 20 {
            break;
        }
        let text = |column: usize| record.get(column).map_or("", |it| it.trim());
        let model = ModelName::parse(text(model)).map_err(|why| (why, "model"));
        let date = text(day).get(..10).unwrap_or_default();
        let day = day_of(date).map_err(|why| (why, "day"));
        let money = if micros.is_some() { whole(text(money)).map(|it| (it, 0)) } else { dollars_of(text(money)) };
        let money = money.ok_or_else(|| (Invalid::new("must be an amount of money, 0 or more"), "micros"));
        match (model, day, money) {
            (Ok(model), Ok(day), Ok((micros, finer))) => lines.push((DayOfModel { day, model, micros }, finer)),
            (model, day, money) => {
                let wrong = [model.err(), day.err(), money.err()].into_iter().flatten();
                faults.extend(wrong.map(|(why, name)| FieldError::invalid(format!("lines.{at}.{name}"), why)));
            }
        }
    }
    if faults.is_empty() { Ok(rounded_once(lines)) } else { Err(faults) }
}

/// Lines with what each has beside whole micros: of one model and day that is added up and rounded up once, into the last of them.
fn rounded_once(lines: Vec<(DayOfModel, u64)>) -> Vec<DayOfModel> {
    let mut sums: BTreeMap<(i64, ModelName), (u128, usize)> = BTreeMap::new();
    for (at, (line, finer)) in lines.iter().enumerate() {
        let sum = sums.entry((line.day, line.model.clone())).or_default();
        *sum = (sum.0.saturating_add(u128::from(*finer)), at);
    }
    let mut lines: Vec<DayOfModel> = lines.into_iter().map(|(line, _)| line).collect();
    for (sum, last) in sums.into_values() {
        let more = MicroUsd::new(u64::try_from(sum.div_ceil(FINER.into())).unwrap_or(u64::MAX));
        if let Some(line) = lines.get_mut(last) {
            line.micros = line.micros.plus(more);
        }
    }
    lines
}

/// The cells of one line; a quoted one may hold commas and doubled quotes.
fn cells(line: &str) -> Vec<String> {
    let (mut out, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.trim_end_matches('\r').chars().peekable();
    while let Some(it) = chars.next() {
        match it {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(std::mem::take(&mut cell)),
            other => cell.push(other),
        }
    }
    out.push(cell);
    out
}

fn whole(text: &str) -> Option<MicroUsd> {
    let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let micros = text.parse::<u64>().ok().filter(|it| i64::try_from(*it).is_ok_and(|it| it <= SAFE_MAX));
    micros.filter(|_| digits).map(MicroUsd::new)
}

/// Dollars as a decimal, in micros and parts of [`FINER`] of one; what is finer still is rounded up.
fn dollars_of(text: &str) -> Option<(MicroUsd, u64)> {
    let text = text.strip_prefix('$').unwrap_or(text);
    let (dollars, rest) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    if dollars.is_empty() || !is_digits(dollars) || !is_digits(rest) {
        return None;
    }
    let (shown, finer) = rest.split_at(rest.len().min(6));
    let micros: u64 = format!("{shown:0<6}").parse().ok()?;
    let (finer, beyond) = finer.split_at(finer.len().min(12));
    let finer = format!("{finer:0<12}").parse::<u64>().ok()?;
    let finer = finer.checked_add(u64::from(beyond.bytes().any(|it| it != b'0')))?;
    let sum = dollars.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros)?;
    i64::try_from(sum).is_ok_and(|it| it <= SAFE_MAX).then(|| (MicroUsd::new(sum), finer))
}

/// A comparison of a bill with what was metered.
#[must_use]
pub fn write_bill(import: &BillingImport) -> Value {
    let differences = import.differences.iter().map(|it| {
        json!({
            "model": it.model.as_str(),
            "day": date_of(it.day),
            "billedMicros": it.billed,
            "meteredMicros": it.metered,
        })
    });
    json!({
        "id": import.id,
        "upstreamId": import.upstream,
        "from": date_of(import.from),
        "to": date_of(import.to),
        "billedMicros": import.billed,
        "meteredMicros": import.metered,
        "differences": differences.collect::<Vec<_>>(),
        "createdAt": import.created_at.to_string(),
        "createdBy": import.created_by.as_ref().map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use svc_core::value::Id as _;

    fn asked(query: &str) -> Result<(String, String), Refusal> {
        let zone = Zone::parse("Europe/Vienna").unwrap();
        let now = Timestamp::parse("2026-10-15T22:30:00Z").unwrap();
        let uri = format!("/x?{query}").parse().unwrap();
        read(Query::of(&uri), &zone, now).map(|it| (date_of(it.from), date_of(it.to)))
    }

    fn days(query: &str) -> (String, String) {
        asked(query).unwrap()
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    /// Days are those of the workspace's zone, half-open; the default is the running month, and 400 days are the most.
    #[test]
    fn a_report_covers_days_of_the_zone() {
        assert_eq!(days(""), pair("2026-10-01", "2026-11-01"));
        assert_eq!(days("from=2026-10-03"), pair("2026-10-03", "2026-10-17"), "today is the 16th in Vienna");
        assert_eq!(days("to=2026-09-10"), pair("2026-09-01", "2026-09-10"));
        assert_eq!(days("from=2026-09-30T22:00:00Z&to=2026-10-01T22:00:00Z"), pair("2026-10-01", "2026-10-02"));
        assert_eq!(days("from=2026-01-01&to=2027-02-05").1, "2027-02-05");
        for bad in [
            "from=2026-01-01&to=2027-02-06",
            "from=2026-01-02&to=2026-01-02",
            "from=yesterday",
            "by=moon",
            "currency=x",
        ] {
            assert_eq!(asked(bad).unwrap_err().type_(), "invalid_request", "{bad}");
        }
    }

    /// Every fault of a bill's lines is told, that of a member nobody compares too.
    #[test]
    fn every_fault_of_a_bill_is_told() {
        let bill = |line: &str| {
            let days = r#""from":"2026-10-01","to":"2026-10-02""#;
            read_bill(format!(r#"{{"upstreamId":"{}",{days},"lines":[{line}]}}"#, UpstreamId::from_bits(1)).as_bytes())
        };
        let sound = r#"{"model":"large","day":"2026-10-01","micros":1,"usage":{"input":2}}"#;
        assert!(bill(sound).is_ok());
        let refusal = bill(r#"{"model":"","day":"2026-10-01","micros":-1,"usage":5}"#).unwrap_err();
        let fields: Vec<_> = refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect();
        assert_eq!(fields, ["lines.0.model", "lines.0.micros", "lines.0.usage"]);
    }

    /// Dollars are read as decimals, never through floats.
    #[test]
    fn dollars_are_decimals() {
        let micros = |text: &str| dollars_of(text).map(|(whole, finer)| (whole.get(), finer));
        assert_eq!(
            [micros("0.1"), micros("12"), micros("$1.234567")],
            [Some((100_000, 0)), Some((12_000_000, 0)), Some((1_234_567, 0))]
        );
        assert_eq!(
            [micros("0.0000001"), micros("0.9999999")],
            [Some((0, FINER / 10)), Some((999_999, FINER / 10 * 9))]
        );
        assert_eq!(micros("0.0000000000000000001"), Some((0, 1)), "rounded up");
        for bad in ["", ".5", "-1", "1e3", "1,5", "99999999999999", "nan"] {
            assert_eq!(micros(bad), None, "{bad}");
        }
    }

    /// A provider's CSV is read by the names of its columns, quoted or not, and every fault has its line.
    #[test]
    fn a_bill_is_read_by_its_columns() {
        let read = |text: &str| csv(text).map(|it| it.iter().map(|it| it.micros.get()).collect::<Vec<_>>());
        let good = "\u{feff}Date,\"Model\",Cost_USD,note\r\n2026-10-01T00:00:00Z,large,1.5,\"a, \"\"b\"\"\"\r\n\r\n2026-10-02,small,0,\r\n";
        assert_eq!(read(good), Ok(vec![1_500_000, 0]));
        assert_eq!(read("model,day,micros\nlarge,2026-10-01,7\n"), Ok(vec![7]));
        let sum = |text: String| read(&text).map(|it| it.iter().sum::<u64>());
        let small = "large,2026-10-01,0.0000004\n";
        assert_eq!(sum(format!("model,day,cost\n{}", small.repeat(1_000))), Ok(400), "not a micro for each line");
        let other = "large,2026-10-02,0.0000004\nsmall,2026-10-01,0.0000004\n";
        assert_eq!(sum(format!("model,day,cost\n{small}{other}{small}")), Ok(3), "one for each model and day");
        assert!(read("model,micros\nlarge,7\n").is_err() && read("").is_err());
        let faults = csv("model,day,micros\n,x,-1\nlarge,2026-10-01,7\n").unwrap_err();
        let fields: Vec<_> = faults.iter().filter_map(|it| it.field.as_deref()).collect();
        assert_eq!(fields, ["lines.0.model", "lines.0.day", "lines.0.micros"]);
    }
}
