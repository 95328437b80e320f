//! What is told of the moment in which somebody asks: queues, calls under way, and where budgets stand.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use svc_core::rules::gateway::budgets::{BudgetView, list_budgets};
use svc_core::rules::people::by::By;
use svc_core::state::gateway::BUDGETS_MAX;
use svc_core::store::{Key, Range};
use svc_core::value::link::{Index, SHARDS};
use svc_store::Gate;

use crate::ops::RunningCalls;

/// Workspaces whose budgets are told.
const WORKSPACES_MAX: usize = 1_000;
/// The most that is counted of what waits in one shard of the outbox.
const WAITING_MAX: usize = 1_000;

/// The moment.
#[derive(Debug)]
pub(super) struct Standing {
    lanes: Vec<usize>,
    running: usize,
    deliveries: usize,
    budgets: Vec<Share>,
}

/// How much of a budget is used.
#[derive(Debug)]
struct Share {
    id: String,
    scope: &'static str,
    ratio: f64,
}

impl Standing {
    /// Looks at it. What the store does not tell is left out: a reader of metrics is not refused for it.
    pub(super) fn of(gate: &Gate, running: &Arc<RunningCalls>) -> Self {
        Self {
            lanes: gate.queue_depths(),
            running: running.count(),
            deliveries: deliveries(gate),
            budgets: budgets(gate),
        }
    }
}

/// Calls to the outside that wait to be made; where there are very many, at least so many.
fn deliveries(gate: &Gate) -> usize {
    let shard = |shard| gate.scan(&Range::all(Index::Outbox, shard, WAITING_MAX)).map_or(0, |found| found.len());
    (0..SHARDS).map(shard).sum()
}

fn budgets(gate: &Gate) -> Vec<Share> {
    let found = gate.scan(&Range::all(Index::Workspaces, 0, WORKSPACES_MAX)).unwrap_or_default();
    let mut shares = Vec::new();
    for found in found {
        let Key::Workspace(id) = found.row.key else { continue };
        let views = gate.read(|scope| list_budgets(scope, &By::Program, id, None, BUDGETS_MAX));
        shares.extend(views.map(|(views, _)| views).unwrap_or_default().iter().map(Share::of));
    }
    shares
}

impl Share {
    #[expect(
        clippy::cast_precision_loss,
        clippy::float_arithmetic,
        reason = "a gauge for people; no decision reads it"
    )]
    fn of(view: &BudgetView) -> Self {
        let used = view.used.used().get();
        let ratio = used as f64 / view.used.allocation(&view.budget).get().max(1) as f64;
        Self { id: view.budget.id.to_string(), scope: view.budget.scope.kind(), ratio }
    }
}

impl Collector for Standing {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut lanes =
            encoder.encode_descriptor("queue_depth", "Commands that wait for a lane", None, MetricType::Gauge)?;
        for (number, depth) in self.lanes.iter().enumerate() {
            let number = number.to_string();
            let labels = [("lane", number.as_str())];
            gauge(*depth).encode(lanes.encode_family(&labels)?)?;
        }
        let what = "Calls to the outside that wait to be made";
        let waiting = encoder.encode_descriptor("deliveries_waiting", what, None, MetricType::Gauge)?;
        gauge(self.deliveries).encode(waiting)?;
        let what = "Model calls under way";
        let running = encoder.encode_descriptor("model_calls_running", what, None, MetricType::Gauge)?;
        gauge(self.running).encode(running)?;
        let what = "What a budget's running period has spent and reserved, by what it may spend";
        let mut ratio = encoder.encode_descriptor("budget_used_ratio", what, None, MetricType::Gauge)?;
        for share in &self.budgets {
            let labels = [("budget", share.id.as_str()), ("scope", share.scope)];
            ConstGauge::new(share.ratio).encode(ratio.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}
