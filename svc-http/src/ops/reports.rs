//! Reports over days of model traffic, and bills beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::gateway::billing::ImportBill;
use svc_core::rules::people::by::{By, entitled};
use svc_core::state::gate::Agent;
use svc_core::state::gateway::{BillingImport, Cell, DayOfModel, Routing, Sums};
use svc_core::state::people::{Credential, Principal, Reach, Right, Team, Workspace};
use svc_core::store::{Range, Row as _};
use svc_core::turn::{Halt, Scope};
use svc_core::value::Id as _;
use svc_core::value::id::{AgentId, KeyId, PrincipalId, TeamId, UpstreamId, WorkspaceId};
use svc_core::value::link::Index;
use svc_core::value::period::Zone;
use svc_core::value::text::ModelName;

use svc_store::Gate;

use super::aside::{Asker, Awaited};
use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::is_csv;
use crate::routes::ReportsOp;
use crate::wire::named::named_in_query;
use crate::wire::page::Query;
use crate::wire::report::{self, Asked, Names, Paid, ReportBy, SpendRow};

/// Rows of one scan.
const LOOK: usize = 1_000;
/// Keys of one report whose labels are looked up: each takes a look of its own.
const LABELS_MAX: usize = 500;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: ReportsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        ReportsOp::Bills => return bills(service, &by, workspace, call),
        ReportsOp::ImportBill => return import(service, by, workspace, call).await,
        ReportsOp::Spend
        | ReportsOp::Yield
        | ReportsOp::Waste
        | ReportsOp::AdminSpend
        | ReportsOp::AdminYield
        | ReportsOp::AdminWaste => {}
    }
    let right = if op == ReportsOp::Spend { Right::ReadSpend } else { Right::ReadReports };
    let (reach, zone) = zone(service, &by, workspace, right)?;
    let asked = report::read(Query::among(&call.uri, call.route.query), &zone, service.gate.now())?;
    let (gate, own) = (service.gate.clone(), by.principal().filter(|_| reach != Reach::All));
    let shown = service.aside.run_awaited(Asker::of(&by, workspace), move |awaited| {
        let own = own.map(|it| Own::of(&gate, it)).transpose()?;
        let place = Place { gate, workspace, asked, own, awaited: awaited.clone() };
        match op {
            ReportsOp::Spend | ReportsOp::AdminSpend => place.spend(&zone),
            ReportsOp::Yield | ReportsOp::AdminYield => {
                let rows = place.groups()?;
                let names = place.names(rows.keys().flatten())?;
                Ok(report::write_yield(&asked, &zone, &rows, &names))
            }
            _ => {
                let mut sums = Sums::default();
                place.each(|cell| sums.add(&cell.sums))?;
                Ok(report::write_waste(&asked, &zone, &sums))
            }
        }
    });
    written(&shown.await?)
}

/// How far the right to read reports goes, and the workspace's zone.
fn zone(service: &GateService, by: &By, workspace: WorkspaceId, right: Right) -> Result<(Reach, Zone), Refusal> {
    service.read(|scope| {
        let reach = entitled(scope, by, workspace, right)?;
        let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::not_found)?;
        Ok((reach, row.settings.timezone.clone()))
    })
}

/// The zone in which a workspace's days begin.
pub(super) fn zone_of(service: &GateService, workspace: WorkspaceId) -> Result<Zone, Refusal> {
    let row = service.read(|scope| scope.get::<Workspace>(workspace))?;
    Ok(row.ok_or_else(Refusal::not_found)?.settings.timezone.clone())
}

/// What of a report is its reader's own: what counts for them, and what their agents spend.
struct Own {
    principal: PrincipalId,
    agents: BTreeSet<AgentId>,
}

impl Own {
    fn of(gate: &Gate, principal: PrincipalId) -> Result<Self, Refusal> {
        let mut agents = BTreeSet::new();
        for index in [Index::AgentsFor, Index::AgentsUnder] {
            let mut range = Range::all(index, principal.bits(), LOOK);
            loop {
                let found = gate.scan(&range).map_err(refusal)?;
                agents.extend(found.iter().filter_map(|it| Some(Agent::peel(it.row.record.as_ref()?)?.id)));
                if !range.turn_page(&found) {
                    break;
                }
            }
        }
        Ok(Self { principal, agents })
    }

    fn has(&self, principal: Option<PrincipalId>, agent: Option<AgentId>) -> bool {
        principal == Some(self.principal) || agent.is_some_and(|it| self.agents.contains(&it))
    }
}

/// Every cell of these days, a page at a time.
pub(super) fn each_cell(
    gate: &Gate,
    workspace: WorkspaceId,
    days: std::ops::Range<i64>,
    mut take: impl FnMut(&Cell),
) -> Result<(), Refusal> {
    let order = |day: i64| u128::try_from(day).unwrap_or(0);
    let all = Range::all(Index::CellsOf, workspace.bits(), LOOK);
    let mut range = Range { from: order(days.start), until: order(days.end), ..all };
    loop {
        let found = gate.scan(&range).map_err(refusal)?;
        for cell in found.iter().filter_map(|it| Cell::peel(it.row.record.as_ref()?)) {
            take(cell);
        }
        if !range.turn_page(&found) {
            return Ok(());
        }
    }
}

/// Which days of which workspace a report is over.
struct Place {
    gate: Gate,
    workspace: WorkspaceId,
    asked: Asked,
    /// What alone is read; absent where all is.
    own: Option<Own>,
    awaited: Awaited,
}

impl Place {
    fn each(&self, mut take: impl FnMut(&Cell)) -> Result<(), Refusal> {
        each_cell(&self.gate, self.workspace, self.asked.from..self.asked.to, |cell| {
            if self.shows(Some(cell.principal), cell.agent) {
                take(cell);
            }
        })
    }

    fn shows(&self, principal: Option<PrincipalId>, agent: Option<AgentId>) -> bool {
        self.own.as_ref().is_none_or(|it| it.has(principal, agent))
    }

    fn read<T>(&self, rule: impl Fn(&mut Scope<'_>) -> Result<T, Halt>) -> Result<T, Refusal> {
        self.gate.read(rule).map_err(refusal)
    }

    fn groups(&self) -> Result<BTreeMap<Option<String>, Sums>, Refusal> {
        let mut rows = BTreeMap::<_, Sums>::new();
        self.each(|cell| rows.entry(self.asked.by.group(cell)).or_default().add(&cell.sums))?;
        Ok(rows)
    }

    fn spend(&self, zone: &Zone) -> Result<Value, Refusal> {
        let of = |sums| SpendRow { sums, ..SpendRow::default() };
        let mut rows: BTreeMap<_, _> = self.groups()?.into_iter().map(|(key, sums)| (key, of(sums))).collect();
        self.payments(&mut rows)?;
        let names = self.names(rows.keys().flatten())?;
        Ok(report::write_spend(&self.asked, zone, &rows, &names))
    }

    /// Adds what agents paid, from the ledger's tallies: payments belong to days, agents and whom they act for. They belong to
    /// no team, model, class or key and stand in the group of what has none, so that the groups add up to the totals. What is
    /// reserved and what is settled belong to the day on which it was asked for, as in an agent's own record.
    fn payments(&self, rows: &mut BTreeMap<Option<String>, SpendRow>) -> Result<(), Refusal> {
        let days = self.asked.from..=self.asked.to.saturating_sub(1);
        let tallied = self.gate.tallied_while(self.workspace, days, &|| self.awaited.go_on()).map_err(refusal)?;
        let ids: Vec<AgentId> = tallied.keys().filter_map(|it| it.1).collect();
        let owners = self.read(|scope| rows_of::<Agent>(scope, &ids))?;
        for ((day, agent), counts) in tallied.into_iter().filter(|((_, it), _)| self.shows(None, *it)) {
            let group = match self.asked.by {
                ReportBy::Day => Some(svc_core::value::period::date_of(day)),
                ReportBy::Agent => agent.map(|it| it.to_string()),
                ReportBy::Team | ReportBy::Model | ReportBy::TaskClass | ReportBy::Key => None,
                ReportBy::Principal => {
                    agent.and_then(|it| owners.iter().find(|row| row.id == it)).map(|it| it.principal.to_string())
                }
            };
            let wanted = |code: &str| self.asked.currency.is_none_or(|it| it.as_str() == code);
            let settled = counts.settled().map(|(currency, settled)| (currency, Paid { settled, reserved: 0 }));
            let reserved = counts.reserved().map(|(currency, reserved)| (currency, Paid { settled: 0, reserved }));
            for (currency, paid) in settled.chain(reserved).filter(|it| wanted(it.0)) {
                rows.entry(group.clone()).or_default().payments.entry(currency.into()).or_default().add(paid);
            }
        }
        Ok(())
    }

    /// What people call the groups.
    fn names<'k>(&self, keys: impl Iterator<Item = &'k String>) -> Result<Names, Refusal> {
        let keys: Vec<&String> = keys.collect();
        match self.asked.by {
            ReportBy::Day | ReportBy::Model => Ok(Names::new()),
            ReportBy::Team => self.read(|scope| {
                let rows = rows_of::<Team>(scope, &ids_of(&keys, |it| TeamId::parse(it).ok()))?;
                Ok(rows.iter().map(|it| (it.id.to_string(), it.name.to_string())).collect())
            }),
            ReportBy::Agent => self.read(|scope| {
                let rows = rows_of::<Agent>(scope, &ids_of(&keys, |it| AgentId::parse(it).ok()))?;
                Ok(rows.iter().map(|it| (it.id.to_string(), it.name.to_string())).collect())
            }),
            ReportBy::Principal => self.read(|scope| {
                let rows = rows_of::<Principal>(scope, &ids_of(&keys, |it| PrincipalId::parse(it).ok()))?;
                let name = |it: &Principal| it.name.as_ref().map_or_else(|| it.email.to_string(), ToString::to_string);
                Ok(rows.iter().map(|it| (it.id.to_string(), name(it))).collect())
            }),
            ReportBy::TaskClass => self.read(|scope| {
                let routing = scope.get::<Routing>(self.workspace)?.ok_or_else(Refusal::internal)?;
                let named =
                    routing.classes.iter().filter_map(|it| Some((it.id.to_string(), it.name.as_ref()?.to_string())));
                Ok(named.collect())
            }),
            ReportBy::Key => self.labels(&keys),
        }
    }

    fn labels(&self, keys: &[&String]) -> Result<Names, Refusal> {
        let mut names = Names::new();
        for id in keys.iter().filter_map(|it| KeyId::parse(it).ok()).take(LABELS_MAX) {
            let all = Range::all(Index::KeysOf, self.workspace.bits(), 1);
            let range = Range { from: id.bits(), until: id.bits().saturating_add(1), ..all };
            let found = self.gate.scan(&range).map_err(refusal)?;
            if let Some(row) = found.first().and_then(|it| Credential::peel(it.row.record.as_ref()?)) {
                let label = row.label.as_ref().map_or_else(|| row.prefix.to_string(), ToString::to_string);
                names.insert(id.to_string(), label);
            }
        }
        Ok(names)
    }
}

fn ids_of<I>(keys: &[&String], read: impl Fn(&str) -> Option<I>) -> Vec<I> {
    keys.iter().filter_map(|it| read(it)).collect()
}

/// The rows with these ids, those that there are.
fn rows_of<R: svc_core::store::Row>(scope: &mut Scope<'_>, ids: &[R::Id]) -> Result<Vec<Arc<R>>, Halt> {
    scope.want(&ids.iter().map(|it| R::key(*it)).collect::<Vec<_>>())?;
    let mut rows = Vec::with_capacity(ids.len());
    for id in ids {
        rows.extend(scope.get::<R>(*id)?);
    }
    Ok(rows)
}

fn bills(service: &GateService, by: &By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("billing imports", workspace);
    query.finish()?;
    zone(service, by, workspace, Right::ReadReports)?;
    let range = Range { newest_first: true, ..Range::all(Index::BillingOf, workspace.bits(), page.limit) };
    let found = service.scan(&page.of(range))?;
    let answer = page.answer(&found, |row| {
        Ok(row.row.record.as_ref().and_then(BillingImport::peel).map(|it| report::write_bill(it)))
    })?;
    Ok(Answer::json(answer))
}

async fn import(service: &GateService, by: By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let query = || Query::among(&call.uri, call.route.query);
    let bill = if is_csv(&call.headers) {
        let named = || named_in_query(&query(), report::BILL_IDS);
        let read = report::read_bill_csv(query(), &call.body);
        read.map_err(|it| service.and_these(workspace, named(), it))?
    } else {
        let read = report::read_bill(&call.body);
        read.map_err(|it| service.and_named(workspace, &call.body, report::BILL_IDS, it))?
    };
    let asked = Asked { from: bill.from, to: bill.to, by: ReportBy::Day, currency: None };
    let report::Bill { upstream, from, to, lines: billed } = bill;
    let gate = service.gate.clone();
    let metered = move |awaited: &Awaited| {
        Place { gate, workspace, asked, own: None, awaited: awaited.clone() }.metered(upstream)
    };
    let metered = service.aside.run_awaited(Asker::of(&by, workspace), metered).await?;
    let kept = service.run(ImportBill { workspace, by, upstream, from, to, billed, metered }).await?;
    written(&report::write_bill(&kept)).map(Answer::created)
}

impl Place {
    /// What was metered of a provider, by day and model, under the names that the provider has for its models.
    fn metered(&self, upstream: UpstreamId) -> Result<Vec<DayOfModel>, Refusal> {
        let mut lines = Vec::new();
        self.each(|cell| {
            let model = cell.model.as_deref().and_then(|it| it.split_once('/')).map(|(_, it)| it);
            let model = model.filter(|_| cell.upstream == Some(upstream)).and_then(|it| ModelName::parse(it).ok());
            lines.extend(model.map(|model| DayOfModel { day: cell.day, model, micros: cell.sums.cost }));
        })?;
        Ok(lines)
    }
}

fn written(shown: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(shown).map(Answer::json).map_err(|_| Refusal::internal())
}
