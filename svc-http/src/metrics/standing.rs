//! What is told of the moment in which somebody asks: queues, calls under way, and where budgets stand.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use svc_core::engine::Failure;
use svc_core::rules::gateway::budgets::{BudgetView, list_budgets};
use svc_core::rules::people::by::By;
use svc_core::state::gateway::BUDGETS_MAX;
use svc_core::store::{Key, Range};
use svc_core::value::link::{Index, SHARDS};
use svc_store::Gate;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::ops::{CallOf, RunningCalls};

/// Workspaces whose budgets are told.
const WORKSPACES_MAX: usize = 1_000;
/// The most that is counted of what waits in one shard of the outbox: to know that very much waits is enough.
const WAITING_MAX: usize = 1_000;
/// How long the store is waited for: whoever reads metrics gives up after some ten seconds, and counters are to be told all the same.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// The moment.
#[derive(Debug)]
pub(super) struct Standing {
    lanes: Vec<usize>,
    models: usize,
    tools: usize,
    stored: Stored,
}

/// What the store says of it. What it does not tell is not there: a reader of metrics is not refused for it, nor told a zero.
#[derive(Debug, Default)]
pub(super) struct Stored {
    deliveries: Option<usize>,
    budgets: Vec<Share>,
    /// Whether that is all.
    is_whole: bool,
}

/// How much of a budget is used.
#[derive(Debug)]
struct Share {
    id: String,
    scope: &'static str,
    ratio: f64,
}

impl Standing {
    /// What this process knows of it, beside what is `stored`.
    pub(super) fn of(gate: &Gate, running: &RunningCalls, stored: Stored) -> Self {
        let (models, tools) = (running.count(CallOf::Model), running.count(CallOf::Tool));
        Self { lanes: gate.queue_depths(), models, tools, stored }
    }
}

impl Stored {
    /// Looks at it, at a place of `looks`.
    pub(super) async fn of(gate: &Gate, looks: &Arc<Semaphore>) -> Self {
        let look = async {
            let place = Arc::clone(looks).acquire_owned().await.ok()?;
            let gate = gate.clone();
            let look = tokio::task::spawn_blocking(move || {
                // However long it takes: as long as it has not ended, nobody else looks.
                let _place = place;
                let (deliveries, (budgets, is_whole)) = (deliveries(&gate), budgets(&gate));
                Self { is_whole: is_whole && deliveries.is_some(), deliveries, budgets }
            });
            look.await.ok()
        };
        timeout(LOOK_TIME, look).await.ok().flatten().unwrap_or_default()
    }

    /// Whether the store has told all of it.
    pub(super) const fn is_whole(&self) -> bool {
        self.is_whole
    }
}

/// Calls to the outside that wait to be made; of a shard with very many, so many.
fn deliveries(gate: &Gate) -> Option<usize> {
    let shard = |shard| gate.scan_each(&Range::all(Index::Outbox, shard, WAITING_MAX)).ok().map(|listed| listed.len());
    (0..SHARDS).map(shard).sum()
}

/// Where budgets stand, and whether these are all.
fn budgets(gate: &Gate) -> (Vec<Share>, bool) {
    let (mut shares, mut is_whole) = (Vec::new(), true);
    let Ok(found) = gate.scan(&Range::all(Index::Workspaces, 0, WORKSPACES_MAX)) else { return (shares, false) };
    for found in found {
        let Key::Workspace(id) = found.row.key else { continue };
        match gate.read(|scope| list_budgets(scope, &By::Program, id, None, BUDGETS_MAX)) {
            Ok((views, _)) => shares.extend(views.iter().map(Share::of)),
            // The rows of one workspace are its own trouble.
            Err(Failure::Refused(_)) => is_whole = false,
            Err(Failure::Load(error)) if error.is_of_a_row() => is_whole = false,
            Err(_) => return (shares, false),
        }
    }
    (shares, is_whole)
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
        for (name, what, count) in [
            ("deliveries_waiting", WAITING, self.stored.deliveries),
            ("model_calls_running", "Model calls under way", Some(self.models)),
            ("mcp_calls_running", "Calls of tools of MCP servers under way", Some(self.tools)),
        ] {
            if let Some(count) = count {
                gauge(count).encode(encoder.encode_descriptor(name, what, None, MetricType::Gauge)?)?;
            }
        }
        let what = "What a budget's running period has spent and reserved, by what it may spend";
        let mut ratio = encoder.encode_descriptor("budget_used_ratio", what, None, MetricType::Gauge)?;
        for share in &self.stored.budgets {
            let labels = [("budget", share.id.as_str()), ("scope", share.scope)];
            ConstGauge::new(share.ratio).encode(ratio.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// What [`WAITING_MAX`] means for a reader.
const WAITING: &str = "Calls to the outside that wait to be made, at most 1000 counted in each of the outbox's shards";

fn gauge(count: usize) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX))
}
