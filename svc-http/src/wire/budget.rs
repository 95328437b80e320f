//! Budgets (CONTRACT part 2, "Budget").

use serde_json::{Value, json};
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gateway::budgets::BudgetView;
use svc_core::state::gateway::{BudgetPeriod, BudgetScope, Call, CallBudget, CallState, Ladder, Rung, Step};
use svc_core::value::id::{AgentId, BudgetId, KeyId, PrincipalId, TeamId};
use svc_core::value::json::Json;
use svc_core::value::text::{ClassId, Note};
use svc_core::value::{Invalid, MicroUsd, SAFE_MAX};

use super::named::Names;
use super::{Fields, bounded, integer, parse, parse_or_empty, put, text};

/// Open reservations that a budget shows at most.
pub const RESERVATIONS_MAX: usize = 100;

/// A wish for a budget.
#[derive(Debug)]
pub struct NewBudget {
    /// What it is over.
    pub scope: BudgetScope,
    /// What may be spent in a period.
    pub amount: MicroUsd,
    /// Its period.
    pub period: BudgetPeriod,
    /// Its steps.
    pub ladder: Ladder,
    /// Who can approve more.
    pub owner: Option<PrincipalId>,
}

/// What a wish for a budget names.
pub const IDS: &[(&str, Names)] = &[("scope", Names::Scope), ("owner", Names::Member)];
/// What a change of a budget names.
pub const CHANGED_IDS: &[(&str, Names)] = &[("owner", Names::Member)];

/// Reads a wish for a budget.
///
/// # Errors
/// `invalid_json`, or `invalid_budget` naming every fault.
pub fn read(body: &[u8]) -> Result<NewBudget, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    fields.only(&["scope", "amount", "period", "ladder", "owner"]);
    if fields.raw("scope").is_none() {
        fields.note(FieldError::missing("scope"));
    }
    let scope = fields.nested("scope", scope);
    let amount = fields.required("amount", micros);
    let period = fields.required("period", |it| BudgetPeriod::parse(text(it)?));
    let ladder = ladder(&mut fields).unwrap_or_default();
    let owner = fields.optional("owner", |it| PrincipalId::parse(text(it)?));
    let faults = fields.into_all_faults();
    match (scope, amount, period) {
        (Some(scope), Some(amount), Some(period)) if faults.is_empty() => {
            Ok(NewBudget { scope, amount, period, ladder, owner })
        }
        _ => Err(Refusal::invalid_budget(faults)),
    }
}

/// A wish for another amount, ladder or owner.
#[derive(Debug)]
pub struct BudgetChange {
    /// What may be spent in a period.
    pub amount: Option<MicroUsd>,
    /// Its steps.
    pub ladder: Option<Ladder>,
    /// Who can approve more.
    pub owner: Option<PrincipalId>,
}

/// Reads a change of a budget.
///
/// # Errors
/// `invalid_json`, or `invalid_budget` naming every fault.
pub fn read_change(body: &[u8]) -> Result<BudgetChange, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    for name in ["scope", "period"] {
        if fields.raw(name).is_some() {
            fields.fault(name, Invalid::new("cannot change: make another budget"));
        }
    }
    fields.only(&["amount", "ladder", "owner", "scope", "period"]);
    for name in ["amount", "ladder", "owner"] {
        if fields.is_null(name) {
            fields.fault(name, Invalid::new("cannot be taken away"));
        }
    }
    let amount = fields.optional("amount", micros);
    let ladder = ladder(&mut fields);
    let owner = fields.optional("owner", |it| PrincipalId::parse(text(it)?));
    let faults = fields.into_all_faults();
    if faults.is_empty() { Ok(BudgetChange { amount, ladder, owner }) } else { Err(Refusal::invalid_budget(faults)) }
}

/// Reads a raise: the period's new allocation, and why.
///
/// # Errors
/// `invalid_json`, or `invalid_budget` naming every fault.
pub fn read_raise(body: &[u8]) -> Result<(MicroUsd, Option<Note>), Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let raise = raise(&mut fields);
    let faults = fields.into_all_faults();
    raise.filter(|_| faults.is_empty()).ok_or_else(|| Refusal::invalid_budget(faults))
}

/// The members of a raise; `None` where it has no amount, which is noted.
pub(super) fn raise(fields: &mut Fields<'_>) -> Option<(MicroUsd, Option<Note>)> {
    fields.only(&["amountMicros", "note"]);
    let amount = fields.required("amountMicros", micros);
    let note = fields.optional("note", |it| Note::parse(text(it)?));
    amount.map(|it| (it, note))
}

/// Micros, above zero.
fn micros(value: &Json) -> Result<MicroUsd, Invalid> {
    let amount = integer(value).ok().filter(|it| (1..=SAFE_MAX).contains(it)).and_then(|it| u64::try_from(it).ok());
    amount.map(MicroUsd::new).ok_or_else(|| Invalid::new("must be a whole number of micros above zero"))
}

/// What a body's budget is over, where that can be read: whatever else is wrong with it.
#[must_use]
pub fn scope_of(body: &Json) -> Option<BudgetScope> {
    let scope = body.get("scope")?;
    over(scope.get("kind")?.as_str()?, scope.get("id")?.as_str()?).ok()
}

fn scope(fields: &mut Fields<'_>) -> Option<BudgetScope> {
    fields.only(&["kind", "id"]);
    let kind = fields.required("kind", |it| {
        let kind = text(it)?;
        if BudgetScope::WORDS.contains(&kind) { Ok(kind.to_owned()) } else { Err(no_scope()) }
    })?;
    if kind == "workspace" {
        if fields.raw("id").is_some() {
            fields.fault("id", Invalid::new("has no place beside `workspace`"));
            return None;
        }
        return Some(BudgetScope::Workspace);
    }
    fields.required("id", |it| over(&kind, text(it)?))
}

/// What a budget is over that is one of many.
fn over(kind: &str, id: &str) -> Result<BudgetScope, Invalid> {
    match kind {
        "team" => TeamId::parse(id).map(BudgetScope::Team),
        "principal" => PrincipalId::parse(id).map(BudgetScope::Principal),
        "agent" => AgentId::parse(id).map(BudgetScope::Agent),
        "key" => KeyId::parse(id).map(BudgetScope::Key),
        "taskClass" => ClassId::parse(id).map(BudgetScope::TaskClass),
        _ => Err(no_scope()),
    }
}

fn no_scope() -> Invalid {
    Invalid::new("must be `workspace`, `team`, `principal`, `agent`, `key` or `taskClass`")
}

/// A ladder, where one is there and none of it is wrong.
fn ladder(fields: &mut Fields<'_>) -> Option<Ladder> {
    let mut read = Vec::new();
    let sound = fields.each("ladder", Step::ALL.len(), |rung| {
        let place = rung.place();
        rung.only(&["at", "step"]);
        let clause = "must be a whole number between 0 and 1000";
        let at = rung.required("at", |it| integer(it).map_err(|_| Invalid::new(clause)));
        if at.is_some_and(|it| !(0..=i64::from(Ladder::AT_MAX)).contains(&it)) {
            rung.fault("at", Invalid::new(clause));
        }
        let step = rung.required("step", |it| {
            let clause = "must be `observe`, `nudge`, `downgrade`, `approval` or `stop`";
            Step::parse(text(it)?).ok_or_else(|| Invalid::new(clause))
        });
        // How the steps follow each other is looked at beside what is wrong with one of them.
        let at = u16::try_from(at?.clamp(0, i64::from(u16::MAX))).ok()?;
        let read_rung = Rung { at, step: step? };
        read.push((place?, read_rung));
        Some(read_rung)
    });
    fields.note_beside(Ladder::faults(&read));
    sound.and_then(|it| Ladder::of(it).ok())
}

/// A budget with what has been used of it; `open` are calls of its workspace that run, of which its own are shown.
#[must_use]
pub fn write(view: &BudgetView, open: &[std::sync::Arc<Call>]) -> Value {
    let (budget, used) = (&*view.budget, &view.used);
    let mut scope = json!({ "kind": budget.scope.kind() });
    if let (Some(members), Some(id)) = (scope.as_object_mut(), budget.scope.target()) {
        members.insert("id".to_owned(), json!(id));
    }
    let on = |call: &Call| call.budgets.iter().find(|it| (it.id, it.period) == (budget.id, used.start)).copied();
    let own = open.iter().filter_map(|it| Some((it, on(it)?)));
    let reservations: Vec<Value> = own.filter_map(|(it, on)| reservation(it, on)).take(RESERVATIONS_MAX).collect();
    let rungs = budget.ladder.rungs().iter().map(|it| json!({ "at": it.at, "step": it.step.as_str() }));
    json!({
        "id": budget.id,
        "scope": scope,
        "amount": budget.amount,
        "period": budget.period.as_str(),
        "ladder": rungs.collect::<Vec<_>>(),
        "owner": view.owner,
        "allocationMicros": bounded(used.allocation(budget).get()),
        "spentMicros": bounded(used.spent.get()),
        "reservedMicros": bounded(used.reserved.get()),
        "reservations": reservations,
        "periodStart": used.start.to_string(),
        "periodEnd": used.end.map(|it| it.to_string()),
        "refuses": budget.ladder.refuses(),
        "enforcing": view.enforcing,
        "createdAt": budget.created_at.to_string(),
        "createdBy": budget.created_by.as_ref().map(ToString::to_string),
    })
}

/// Adds what it is over, as people call it, to a budget that is read by itself: beside its scope, which can be sent as it is read.
pub fn write_name(budget: &mut Value, name: Option<String>) {
    if let Some(name) = name {
        put(budget, "scopeName", json!(name));
    }
}

/// What a running call holds of one of its budgets.
fn reservation(call: &Call, on: CallBudget) -> Option<Value> {
    let CallState::Running { lapses_at, .. } = &call.state else { return None };
    let mut held = json!({ "callId": call.id, "micros": call.reserved, "expiresAt": lapses_at.to_string() });
    if on.past_stop {
        put(&mut held, "pastStop", json!(true));
    }
    Some(held)
}

/// The id of the last budget on a page, from the row that its cursor names.
#[must_use]
pub fn after(after: Option<(u128, svc_core::store::Key)>) -> Option<BudgetId> {
    match after {
        Some((_, svc_core::store::Key::Budget(id))) => Some(id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn fields(refusal: &Refusal) -> Vec<&str> {
        refusal.errors().iter().filter_map(|it| it.field.as_deref()).collect()
    }

    /// Every step out of its range is told at once, beside what else is wrong with its rung.
    #[test]
    fn every_fault_of_a_ladder_is_told() {
        let read = |ladder: &str| {
            let body = format!(r#"{{"scope":{{"kind":"workspace"}},"amount":1,"period":"day","ladder":{ladder}}}"#);
            read(body.as_bytes()).map(drop)
        };
        assert!(read(r#"[{"at":0,"step":"observe"},{"at":1000,"step":"stop"}]"#).is_ok());
        let refusal = read(r#"[{"at":2000,"step":"q"},{"at":-5,"step":"stop"}]"#).unwrap_err();
        assert_eq!(fields(&refusal), ["ladder.0.at", "ladder.0.step", "ladder.1.at"]);
        let refusal =
            read(r#"[{"at":80,"step":"stop"},7,{"at":70,"step":"observe"},{"at":1001,"step":"q"}]"#).unwrap_err();
        let mut told = fields(&refusal);
        told.sort_unstable();
        assert_eq!(told, ["ladder.1", "ladder.2.at", "ladder.2.step", "ladder.3.at", "ladder.3.step"]);
    }

    /// Nothing of a budget can be taken away: `null` is told and changes nothing.
    #[test]
    fn null_takes_nothing_from_a_budget() {
        let refusal = read_change(br#"{"amount":null,"ladder":null,"owner":null}"#).unwrap_err();
        assert_eq!((refusal.type_(), fields(&refusal)), ("invalid_budget", vec!["amount", "ladder", "owner"]));
    }
}
