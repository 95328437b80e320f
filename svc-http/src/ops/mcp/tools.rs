//! The server's own tools, each of which sees the calling agent alone.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value, json};
use svc_core::answer::Decided;
use svc_core::refusal::{FieldError, Kind, Refusal};
use svc_core::rules::gate::would::would;
use svc_core::rules::people::show::{self, KeyState};
use svc_core::state::gate::{Agent, Approval, Code, Effect, OutcomeStatus, Reason, Verb};
use svc_core::state::gateway::{Payer, Sums};
use svc_core::state::people::{Credential, KeyScope, Workspace};
use svc_core::store::{Range, Row as _};
use svc_core::value::id::{ActionId, PrincipalId};
use svc_core::value::json::Json;
use svc_core::value::link::Index;
use svc_core::value::period::Period;
use svc_core::value::{Id as _, Span, Timestamp};
use svc_store::Gate;

use super::next_step::next_step;
use crate::ops::GateService;
use crate::ops::aside::Asker;
use crate::ops::gate::Known;
use crate::ops::refusal;
use crate::ops::reports::each_cell;
use crate::ops::spent::spent_since;
use crate::wire::mcp::{Tool, WINDOWS};
use crate::wire::report::{self, Asked, ReportBy};
use crate::wire::{action_request, bounded, decision, settlement};

/// How long a key may be idle.
const IDLE: Span = Span::hours(24 * 30);
/// The same in days.
const IDLE_DAYS: i64 = 30;
/// Keys of one page.
const LOOK: usize = 1_000;
/// Pages of a workspace's keys that are looked at.
const PAGES_MAX: usize = 100;
/// Changes of one action that are tried before none is told.
const TRIES_MAX: usize = 16;
/// Keys that are told.
const TOLD_MAX: usize = 100;

/// Calls a tool.
///
/// # Errors
/// What the tool is refused with.
pub(super) async fn call(service: &GateService, known: &Known, tool: Tool, arguments: &Json) -> Result<Value, Refusal> {
    match tool {
        Tool::AuthorizeAction => {
            let request = action_request::of_json(arguments, None)?;
            let decided = service.decide(known, request).await?;
            whole(&decided)
        }
        Tool::SettleAction => {
            let (action, status, amount) = settled(arguments)?;
            let decided = service.settled(known, action, status, amount).await?;
            whole(&decided)
        }
        Tool::CheckActionStatus => whole(&service.action(known, action(arguments)?).await?),
        Tool::ExplainDecision => {
            let decided = service.action(known, action(arguments)?).await?;
            explain(service, &decided)
        }
        Tool::SpendSummary => spend(service, known, window(arguments, tool)?).await,
        Tool::FindWaste => waste(service, known, window(arguments, tool)?).await,
        Tool::UnwatchedKeys => unwatched(service, known).await,
    }
}

fn action(arguments: &Json) -> Result<ActionId, Refusal> {
    let Some(given) = arguments.get("actionId").filter(|it| !it.is_null()) else {
        return Err(Refusal::invalid_field("actionId", "is required"));
    };
    let id = given.as_str().ok_or_else(|| Refusal::invalid_field("actionId", "must be a string"))?;
    ActionId::parse(id).map_err(|_| Refusal::not_found())
}

/// What `settle_action` is called with: every fault of it at once, under the word of the first, as the interface's own route has it.
fn settled(arguments: &Json) -> Result<(ActionId, OutcomeStatus, Option<i64>), Refusal> {
    match (settlement::of_json(arguments), action(arguments)) {
        (Ok((status, amount)), Ok(action)) => Ok((action, status, amount)),
        (Ok(_), Err(fault)) => Err(fault),
        (Err(first), Ok(_)) => Err(first),
        (Err(first), Err(more)) if more.errors().is_empty() => Err(first),
        (Err(first), Err(more)) => {
            let named = [(Kind::InvalidStatus, "status"), (Kind::InvalidAmount, "amount")];
            let field = named.into_iter().find(|(kind, _)| *kind == first.kind()).map(|(_, field)| field);
            let own = field.map(|it| FieldError { field: Some(it.into()), message: first.message().to_owned().into() });
            let faults = own.into_iter().chain(more.errors().iter().cloned()).collect();
            Err(first.and(faults))
        }
    }
}

fn window(arguments: &Json, tool: Tool) -> Result<Period, Refusal> {
    match arguments.get("window").filter(|it| !it.is_null()).map(Json::as_str) {
        None => tool.window().ok_or_else(Refusal::internal),
        Some(word) => WINDOWS
            .into_iter()
            .find(|it| word == Some(it.as_str()))
            .ok_or_else(|| Refusal::invalid_field("window", "must be `day`, `week` or `month`")),
    }
}

fn whole(decided: &Decided) -> Result<Value, Refusal> {
    serde_json::from_slice(&decision::write(decided)?).map_err(|_| Refusal::internal())
}

/// Explains a decision.
fn explain(service: &GateService, decided: &Decided) -> Result<Value, Refusal> {
    let whole = whole(decided)?;
    let reasons = decided.reasons();
    let spoke: Vec<&Reason> = reasons.iter().filter(|it| it.effect != Effect::Info).collect();
    let rule = spoke.iter().find_map(|it| it.mandate).or_else(|| decided.action().mandate.map(|it| it.mandate));
    // What waits is waited for: asked for beside it, another amount would be paid as well.
    let allowed = if decided.verb() == Verb::Deny { would_be_allowed(service, decided)? } else { None };
    let note = decided.view().approval.as_deref().and_then(Approval::note);
    let mut told = json!({
        "decision": decided.verb().as_str(),
        "why": whole.get("reasons").cloned().unwrap_or_default(),
        "nextStep": next_step(decided, allowed.is_some()),
    });
    if let Some(members) = told.as_object_mut() {
        members.extend(rule.map(|it| ("rule".to_owned(), json!(it.to_string()))));
        members.extend(allowed.map(|it| ("wouldBeAllowed".to_owned(), it.write())));
        members.extend(note.map(|it| ("note".to_owned(), json!(it.as_str()))));
    }
    Ok(told)
}

/// A change that rules would have let through. The one that lets the most through comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Another amount.
    Amount(Reverse<i64>),
    /// Another time.
    Time(Timestamp),
}

impl Way {
    /// Whether this goes further than what was tried before.
    fn is_beyond(self, tried: Self) -> bool {
        match (self, tried) {
            (Self::Amount(_), Self::Amount(_)) | (Self::Time(_), Self::Time(_)) => self > tried,
            (Self::Amount(_), Self::Time(_)) | (Self::Time(_), Self::Amount(_)) => false,
        }
    }

    fn write(self) -> Value {
        match self {
            Self::Amount(Reverse(amount)) => json!({ "changed": "payment.amount", "value": amount }),
            Self::Time(at) => json!({ "changed": "time", "value": at.to_string() }),
        }
    }
}

/// A change with which the gate would allow the action, by its own word: of those that it finds the one that lets the most through.
/// What rules say of one change may lead to another: of a smaller amount another mandate may speak.
fn would_be_allowed(service: &GateService, decided: &Decided) -> Result<Option<Way>, Refusal> {
    let action = decided.action();
    let mut ways = ways_through(&decided.reasons());
    for tries in 1..=TRIES_MAX {
        // However many mandates there are: what goes furthest is tried as well.
        let next = if tries < TRIES_MAX { ways.pop_first() } else { ways.pop_last() };
        let Some(tried) = next else { break };
        let now = service.gate.now();
        let (at, amount) = match tried {
            Way::Amount(Reverse(amount)) => (now, Some(amount)),
            Way::Time(at) => (at.max(now), None),
        };
        let said = service.gate.read_at(at, |scope| would(scope, action, amount)).map_err(refusal)?;
        let Some(said) = said else { break };
        if said.effect == Effect::Info {
            return Ok(Some(tried));
        }
        ways.extend(ways_through(&said.reasons).into_iter().filter(|it| it.is_beyond(tried)));
    }
    Ok(None)
}

/// For each mandate that spoke the one change that it would have let through with all that is said beside mandates: one of them has to
/// permit an action, so what another one permits does not bind it.
fn ways_through(reasons: &[Reason]) -> BTreeSet<Way> {
    let spoke = || reasons.iter().filter(|it| it.effect != Effect::Info);
    let mut mandates: BTreeSet<_> = spoke().map(|it| it.mandate).collect();
    if mandates.len() > 1 {
        mandates.remove(&None);
    }
    let of = |mandate| way_through(spoke().filter(|it| it.mandate.is_none() || it.mandate == mandate));
    mandates.into_iter().filter_map(of).collect()
}

/// The one change that every one of these rules would have let through.
fn way_through<'a>(spoke: impl Iterator<Item = &'a Reason>) -> Option<Way> {
    let mut ways = spoke.map(way_of);
    let first = ways.next()??;
    ways.try_fold(first, |furthest, way| match (furthest, way?) {
        (one @ Way::Amount(_), other @ Way::Amount(_)) | (one @ Way::Time(_), other @ Way::Time(_)) => {
            Some(one.max(other))
        }
        (Way::Amount(_), Way::Time(_)) | (Way::Time(_), Way::Amount(_)) => None,
    })
}

/// The change that a rule would have let through.
fn way_of(reason: &Reason) -> Option<Way> {
    let room = reason.limit.map(|limit| limit.saturating_sub(reason.used.unwrap_or(0)));
    let later = reason.clears_at.map(Way::Time);
    let amount = |it| Way::Amount(Reverse(it));
    match reason.code {
        Code::OverLimit | Code::AboveAskThreshold => reason.limit.filter(|it| *it > 0).map(amount),
        // What is used there includes this payment.
        Code::SplitPayments => {
            let room = room.map(|it| it.saturating_add(reason.requested.unwrap_or(0)));
            room.filter(|it| *it > 0).map(amount)
        }
        // What is more than a whole period has room for has none in the next one either.
        Code::OverPeriodLimit => match room.filter(|it| *it > 0) {
            Some(room) => Some(amount(room)),
            None => later.filter(|_| reason.requested <= reason.limit),
        },
        Code::OverCountLimit | Code::VelocityExceeded | Code::PossibleDuplicate => later,
        _ => None,
    }
}

/// Agent and workspace of the caller.
fn own(service: &GateService, known: &Known) -> Result<(Arc<Agent>, Arc<Workspace>), Refusal> {
    service.read(|scope| {
        let agent = svc_core::rules::gate::caller_agent(scope, &known.caller)?;
        let workspace = scope.get::<Workspace>(agent.workspace)?.ok_or_else(Refusal::internal)?;
        Ok((agent, workspace))
    })
}

/// The days of a window, and what this agent's model calls come to in them.
async fn sums(
    service: &GateService,
    agent: &Agent,
    workspace: &Workspace,
    window: Period,
) -> Result<(Asked, Sums), Refusal> {
    let zone = &workspace.settings.timezone;
    let (from, to) = window.bounds(service.gate.now(), zone);
    let asked = Asked { from: zone.day(from), to: zone.day(to), by: ReportBy::Agent, currency: None };
    let (gate, agent, workspace) = (service.gate.clone(), agent.id, workspace.id);
    let asker = Asker::own(agent, Some(workspace));
    let add = move || {
        let mut sums = Sums::default();
        each_cell(&gate, workspace, asked.from..asked.to, |cell| {
            if cell.agent == Some(agent) {
                sums.add(&cell.sums);
            }
        })?;
        Ok(sums)
    };
    Ok((asked, service.aside.run(asker, add).await?))
}

/// What the agent spent in a window, on models and by payments that it asked for in it. What remains is no matter of the
/// window: it is what mandates in force leave now, each by its own running period, and nothing is told of it where one of
/// them has no limit by period.
async fn spend(service: &GateService, known: &Known, window: Period) -> Result<Value, Refusal> {
    let (agent, workspace) = own(service, known)?;
    let (_, sums) = sums(service, &agent, &workspace, window).await?;
    let (since, _) = window.bounds(service.gate.now(), &workspace.settings.timezone);
    let asker = Asker::own(agent.id, Some(workspace.id));
    let mut paid = spent_since(service, (&service.aside, asker), agent.id, since).await?;
    let left = service.read(|scope| show::left(scope, &agent))?;
    for currency in left.keys() {
        paid.entry(*currency).or_default();
    }
    let payments: Vec<Value> = paid
        .iter()
        .map(|(currency, spent)| {
            let remaining = left.get(currency).copied().unwrap_or(Some(0));
            json!({
                "currency": currency.as_str(),
                "settled": bounded(spent.settled),
                "reserved": bounded(spent.reserved),
                "remaining": remaining.map(bounded),
            })
        })
        .collect();
    Ok(json!({ "model": { "costMicros": sums.cost, "calls": sums.calls }, "payments": payments }))
}

async fn waste(service: &GateService, known: &Known, window: Period) -> Result<Value, Refusal> {
    let (agent, workspace) = own(service, known)?;
    let (asked, sums) = sums(service, &agent, &workspace, window).await?;
    Ok(report::write_waste(&asked, &workspace.settings.timezone, &sums))
}

/// A key that is in force, and when it was used last as far as rows tell.
struct Looked {
    row: Arc<Credential>,
    principal: PrincipalId,
    used_at: Timestamp,
}

/// Keys of a principal that are in force. A key that models were called with was used on that day, and the key of an agent was
/// when the agent last asked; what was used with it otherwise only memory tells.
fn keys_of(gate: &Gate, principal: PrincipalId, workspace: &Workspace) -> Result<Vec<Looked>, Refusal> {
    let today = workspace.settings.timezone.day(gate.now());
    let mut called = HashSet::new();
    let days = today.saturating_sub(IDLE_DAYS)..today.saturating_add(1);
    each_cell(gate, workspace.id, days, |cell| {
        if cell.principal == principal {
            called.insert(cell.key);
        }
    })?;
    let mut range = Range::all(Index::KeysOf, workspace.id.bits(), LOOK);
    let mut looked = Vec::new();
    for _ in 0..PAGES_MAX {
        let found = gate.scan(&range).map_err(refusal)?;
        let rows = found.iter().filter_map(|it| Credential::peel(it.row.record.as_ref()?));
        // Of whom an agent's key is, its agent tells.
        for row in rows.filter(|it| matches!(it.binding.scope, KeyScope::Agent(_)) || it.binding.principal == principal)
        {
            let agent = if let KeyScope::Agent(id) = row.binding.scope { Some(id) } else { None };
            let read = gate.read(|scope| {
                let view = show::key(scope, row.clone())?;
                let own = agent.filter(|_| view.principal == principal);
                let asked = own.map(|it| show::asked_at(scope, it)).transpose()?.flatten();
                Ok((view, asked))
            });
            let (view, asked) = read.map_err(refusal)?;
            if view.principal != principal {
                continue;
            }
            let used = if called.contains(&row.binding.key) { Some(gate.now()) } else { asked };
            if view.state == KeyState::Active {
                looked.push(Looked {
                    row: view.row,
                    principal,
                    used_at: used.unwrap_or(row.created_at).max(row.created_at),
                });
            }
        }
        if !range.turn_page(&found) {
            break;
        }
    }
    Ok(looked)
}

/// Keys of the agent's principal that no budget covers, that nobody uses, or that never end: the gravest reason of each.
async fn unwatched(service: &GateService, known: &Known) -> Result<Value, Refusal> {
    let (agent, workspace) = own(service, known)?;
    let (gate, of) = (service.gate.clone(), Arc::clone(&workspace));
    let looked = service
        .aside
        .run(Asker::own(agent.id, Some(workspace.id)), move || keys_of(&gate, agent.principal, &of))
        .await?;
    let now = service.gate.now();
    let told: Vec<Value> = looked
        .iter()
        .filter_map(|Looked { row, principal, used_at }| {
            let binding = &row.binding;
            let of_agent = if let KeyScope::Agent(id) = binding.scope { Some(id) } else { None };
            let payer = Payer {
                key: binding.key,
                agent: of_agent,
                principal: *principal,
                team: binding.team,
                class: binding.task_class.clone(),
            };
            let seen = service.seen.of(binding.key.bits()).map_or(*used_at, |it| it.max(*used_at));
            let reason = if !workspace.budgets.iter().any(|it| it.scope.covers(&payer)) {
                "no_budget"
            } else if now.since(seen) >= IDLE {
                "unused"
            } else if row.expires_at.is_none() {
                "no_expiry"
            } else {
                return None;
            };
            Some(json!({
                "id": binding.key.to_string(),
                "prefix": row.prefix,
                "label": row.label.as_ref().map(|it| it.as_str()),
                "reason": reason,
            }))
        })
        .take(TOLD_MAX)
        .collect();
    Ok(json!({ "keys": told }))
}
