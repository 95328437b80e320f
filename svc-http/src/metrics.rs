//! What the server counts, for Prometheus: served at `GET /metrics` of a listener of its own (`metrics.listen`).
//!
//! **Invariant:** a label is a route, a type of error, a word of a table, a name of a provider, a model or an MCP server, or an id; never
//! a person, a key or a text. What a label can be is bounded by those tables and by the number of budgets, and of names that tenants
//! choose so many are told apart as [`NAMES_MAX`](labels::NAMES_MAX) says: what comes beyond is one, `other`.
//! **Invariant:** what has few labels that are known says so by zeros, from the start or from the first that is heard of its model or
//! server: of a counter that is not there before its first event nobody sees that event as an increase.

mod labels;
mod listener;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use svc_core::refusal::Kind;
use svc_core::rules::gateway::finish::Finished;
use svc_core::state::connect::EndedBy;
use svc_core::state::edge::IntegrationKind;
use svc_core::state::gate::Verb;
use svc_core::state::gateway::{Call, CallEnd, CallState, Usage};
use svc_core::value::MicroUsd;
use svc_store::{Gate, Lapses};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;

use self::labels::{
    Answered, CallEnded, Decided, Delivered, Names, OfModel, OfRoute, OfServer, Refused, Reused, Tokens, ToolCalled,
    TryFailed,
};
pub(crate) use self::labels::{DeliveryEnd, ToolEnd};
pub(crate) use self::listener::serve;
use self::standing::{Standing, Stored};
use crate::ops::RunningCalls;
use crate::upstream::Fault;

/// Upper bounds of what the gate itself takes, in seconds: from 50 µs to a second.
const OVERHEAD_BOUNDS: [f64; 14] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
/// Upper bounds of what a request takes, in seconds: from half a millisecond to ten minutes.
const REQUEST_BOUNDS: [f64; 14] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];
/// Upper bounds of the time to a first token, in seconds.
const FIRST_TOKEN_BOUNDS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 60.0, 120.0];

/// The text format that is served.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A histogram with bounds of its own.
#[derive(Clone, Copy, Debug)]
struct Bounds(&'static [f64]);

impl MetricConstructor<Histogram> for Bounds {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// Counters of one server.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<Answered, Counter>,
    request_time: Family<OfRoute, Histogram, Bounds>,
    refusals: Family<Refused, Counter>,
    decisions: Family<Decided, Counter>,
    reused: Family<Reused, Counter>,
    calls: Family<CallEnded, Counter>,
    overhead: Histogram,
    first_token: Family<OfModel, Histogram, Bounds>,
    tokens: Family<Tokens, Counter>,
    cost: Family<OfModel, Counter>,
    unpriced: Family<OfModel, Counter>,
    tries_failed: Family<TryFailed, Counter>,
    tools: Family<ToolCalled, Counter>,
    deliveries: Family<Delivered, Counter>,
    unread: Counter,
    models: Names<OfModel>,
    servers: Names<OfServer>,
    /// A place for whoever reads the store for these: of one that does not answer one thread waits, however often is asked.
    looks: Arc<Semaphore>,
}

impl Default for Metrics {
    /// Nothing has happened.
    fn default() -> Self {
        let metrics = Self {
            requests: Family::default(),
            request_time: Family::new_with_constructor(Bounds(&REQUEST_BOUNDS)),
            refusals: Family::default(),
            decisions: Family::default(),
            reused: Family::default(),
            calls: Family::default(),
            overhead: Histogram::new(OVERHEAD_BOUNDS),
            first_token: Family::new_with_constructor(Bounds(&FIRST_TOKEN_BOUNDS)),
            tokens: Family::default(),
            cost: Family::default(),
            unpriced: Family::default(),
            tries_failed: Family::default(),
            tools: Family::default(),
            deliveries: Family::default(),
            unread: Counter::default(),
            models: Names::default(),
            servers: Names::default(),
            looks: Arc::new(Semaphore::new(1)),
        };
        for kind in Kind::ALL {
            drop(metrics.refusals.get_or_create(&Refused { r#type: kind.row().type_ }));
        }
        for verb in [Verb::Allow, Verb::Deny, Verb::Ask] {
            drop(metrics.decisions.get_or_create(&Decided::of(verb)));
        }
        for by in [EndedBy::Reuse, EndedBy::CodeReuse] {
            drop(metrics.reused.get_or_create(&Reused { by: by.as_str() }));
        }
        for kind in CARRIERS {
            for end in DeliveryEnd::ALL {
                drop(metrics.deliveries.get_or_create(&Delivered::of(kind, end)));
            }
        }
        metrics
    }
}

/// What calls to the outside go over.
const CARRIERS: [IntegrationKind; 5] = [
    IntegrationKind::Callbacks,
    IntegrationKind::Chat,
    IntegrationKind::Export,
    IntegrationKind::Mail,
    IntegrationKind::Slack,
];

impl Metrics {
    /// Counts an answer: its route as the table writes it, and what was told where it is a refusal.
    pub fn answered(&self, route: Option<&'static str>, status: u16, refused: Option<Kind>, took: Duration) {
        let route = route.unwrap_or("none");
        self.requests.get_or_create(&Answered { route, status }).inc();
        self.request_time.get_or_create(&OfRoute { route }).observe(took.as_secs_f64());
        if let Some(kind) = refused {
            self.refusals.get_or_create(&Refused { r#type: kind.row().type_ }).inc();
        }
    }

    /// Counts a decision.
    pub fn decided(&self, verb: Verb) {
        self.decisions.get_or_create(&Decided::of(verb)).inc();
    }

    /// Counts a connection that ended because a token or code of it was shown a second time.
    pub fn reused(&self, by: EndedBy) {
        self.reused.get_or_create(&Reused { by: by.as_str() }).inc();
    }

    /// Takes note of a model that a call may go to: what may come of it is told from here on.
    pub(crate) fn may_call(&self, provider: &str, model: &str) {
        self.model(OfModel::new(provider, model));
    }

    /// The labels of a model, where there is room for more of them.
    fn model(&self, of: OfModel) -> OfModel {
        self.models.told(of, |of| {
            for end in CallEnd::ALL {
                drop(self.calls.get_or_create(&of.ended(end)));
            }
            for fault in Fault::ALL {
                drop(self.tries_failed.get_or_create(&of.failed(fault.as_str())));
            }
            drop(self.unpriced.get_or_create(of));
        })
    }

    /// Counts a model call that ended, with what the gate itself took of it: the request's time without its provider's.
    pub fn called(&self, kept: &Finished, overhead: Duration) {
        self.overhead.observe(overhead.as_secs_f64());
        self.ended(&kept.call, kept.lapsed.as_deref());
    }

    /// Counts a model call that ended, with what it came to. One that has `lapsed` before was counted as that, with what it was charged
    /// then: it stays one call, and what it came to beyond that is added. What it was charged too much cannot be taken back, as counters
    /// do not fall.
    fn ended(&self, call: &Call, lapsed: Option<&Call>) {
        let CallState::Ended { end, first_token_ms, .. } = call.state else { return };
        let of = self.model(OfModel::of(call));
        if lapsed.is_none() {
            self.calls.get_or_create(&of.ended(end)).inc();
        }
        // A whole answer does not say when its first token was there: what is told of it is when it came.
        if let Some(ms) = first_token_ms.filter(|_| call.stream) {
            self.first_token.get_or_create(&of).observe(Duration::from_millis(ms).as_secs_f64());
        }
        // What it was charged as it lapsed was an estimate of what came behind the tries that it had then.
        let told = lapsed.map_or(0, |it| it.attempts.len());
        let (mut used, mut charged) = lapsed.map(|it| (it.own_usage(), it.own_cost())).unwrap_or_default();
        let mut beyond = |of: &OfModel, usage: Usage, cost: MicroUsd| {
            self.charged(of, &usage.less(used), cost.less(charged));
            (used, charged) = (used.less(usage), charged.less(cost));
        };
        for attempt in call.attempts.iter().skip(told).filter(|it| it.is_charged()) {
            beyond(&self.model(OfModel::tried(attempt)), attempt.usage, attempt.cost);
        }
        beyond(&of, call.own_usage(), call.own_cost());
        if call.unpriced && lapsed.is_none_or(|it| !it.unpriced) {
            let tried = call.unpriced_try().and_then(|at| call.attempts.get(at));
            let tried = tried.map(|it| self.model(OfModel::tried(it)));
            self.unpriced.get_or_create(&tried.unwrap_or(of)).inc();
        }
    }

    /// Counts calls that lapse, until the gate ends: nobody has told what became of them, and they are charged all the same.
    pub(crate) async fn count_lapses(self: Arc<Self>, mut lapses: Lapses) {
        loop {
            match lapses.recv().await {
                Ok(call) => self.ended(&call, None),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "model calls have lapsed that no metric counts");
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// Counts a try at a model that has failed, or broken off within its answer.
    pub(crate) fn try_failed(&self, provider: &str, model: &str, fault: Fault) {
        let of = self.model(OfModel::new(provider, model));
        self.tries_failed.get_or_create(&of.failed(fault.as_str())).inc();
    }

    /// Takes note of an MCP server that a call is to go to: what may come of it is told from here on.
    pub(crate) fn may_call_tools(&self, server: &str) {
        self.server(server);
    }

    /// The label of an MCP server, where there is room for more of them.
    fn server(&self, name: &str) -> OfServer {
        self.servers.told(OfServer::new(name), |of| {
            for end in ToolEnd::ALL {
                drop(self.tools.get_or_create(&of.ended(end)));
            }
        })
    }

    /// Counts what came of the call of a tool of an MCP server.
    pub(crate) fn tool_called(&self, server: &str, end: ToolEnd) {
        let of = self.server(server);
        self.tools.get_or_create(&of.ended(end)).inc();
    }

    /// Counts what came of a try to make a call to the outside.
    pub(crate) fn delivered(&self, over: IntegrationKind, end: DeliveryEnd) {
        self.deliveries.get_or_create(&Delivered::of(over, end)).inc();
    }

    /// Counts what a model is charged for: each provider bills its own tries, be it that another answered.
    fn charged(&self, of: &OfModel, usage: &Usage, cost: MicroUsd) {
        for (kind, count) in kinds(usage).into_iter().filter(|(_, count)| *count > 0) {
            self.tokens.get_or_create(&of.used(kind)).inc_by(count);
        }
        self.cost.get_or_create(of).inc_by(cost.get());
    }

    /// What the store of `gate` says of this moment. What it does not tell in time is left out, and counted as that.
    async fn stored(&self, gate: &Gate) -> Stored {
        let stored = Stored::of(gate, &self.looks).await;
        if !stored.is_whole() {
            self.unread.inc();
        }
        stored
    }

    /// All of it as text, beside what `gate` and `running` say of this moment, and what is `stored`.
    ///
    /// # Errors
    /// What cannot be written, which is a bug.
    fn text(&self, gate: &Gate, running: &RunningCalls, stored: Stored) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("svc");
        self.register(&mut registry);
        registry.register_collector(Box::new(Standing::of(gate, running, stored)));
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }

    /// The families are shared, not copied: a registry of its own for every reader costs a few clones of pointers.
    fn register(&self, registry: &mut Registry) {
        registry.register("requests", "Answers by route and status", self.requests.clone());
        let time = self.request_time.clone();
        registry.register_with_unit("request_time", "From a request's head to its answer's", Unit::Seconds, time);
        registry.register("refusals", "Answers that are errors, by type", self.refusals.clone());
        registry.register("decisions", "Decisions of the gate", self.decisions.clone());
        let reused = self.reused.clone();
        registry.register("connections_reused", "Connections that ended by something shown twice", reused);
        self.register_models(registry);
        registry.register("mcp_calls", "Calls of tools of MCP servers by what came of them", self.tools.clone());
        let deliveries = self.deliveries.clone();
        registry.register("deliveries", "Tries to make calls to the outside by what came of them", deliveries);
        let unread = self.unread.clone();
        registry.register("scrapes_incomplete", "Readings of these metrics for which the store did not answer", unread);
    }

    fn register_models(&self, registry: &mut Registry) {
        registry.register("model_calls", "Model calls by how they ended", self.calls.clone());
        let failed = self.tries_failed.clone();
        registry.register("model_tries_failed", "Tries at models that failed, by what went wrong", failed);
        let overhead = self.overhead.clone();
        registry.register_with_unit(
            "model_overhead",
            "What the gate itself took of a model call, from its body's last byte on and without its provider's time",
            Unit::Seconds,
            overhead,
        );
        let first = self.first_token.clone();
        registry.register_with_unit(
            "model_first_token",
            "From a request to the first token of its stream",
            Unit::Seconds,
            first,
        );
        registry.register("model_tokens", "Tokens by kind, each under one kind alone", self.tokens.clone());
        registry.register(
            "model_cost_micro_usd",
            "What model calls cost, in millionths of a dollar",
            self.cost.clone(),
        );
        registry.register(
            "model_calls_unpriced",
            "Model calls that used something without a price",
            self.unpriced.clone(),
        );
    }
}

/// Tokens by kind.
const fn kinds(usage: &Usage) -> [(&'static str, u64); 6] {
    [
        ("input", usage.input),
        ("cached_input", usage.cached_input),
        ("cache_write_5m", usage.cache_write),
        ("cache_write_1h", usage.cache_write_long),
        ("output", usage.output),
        ("reasoning", usage.reasoning),
    ]
}
