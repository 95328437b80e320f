//! What the server counts, for Prometheus: served at `GET /metrics` of a listener of its own (`metrics.listen`).
//!
//! **Invariant:** a label is a route, a type of error, a name of a provider or model, or an id; never a person, a key or a
//! text. What a label can be is bounded by the table of routes, the catalogue and the number of budgets.

mod listener;
mod standing;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use svc_core::refusal::Kind;
use svc_core::state::connect::EndedBy;
use svc_core::state::gate::Verb;
use svc_core::state::gateway::{Attempt, Call, CallState, Usage};
use svc_core::value::MicroUsd;
use svc_store::Gate;

pub(crate) use self::listener::serve;
use self::standing::Standing;
use crate::ops::RunningCalls;

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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    r#type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reused {
    by: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfModel {
    provider: Arc<str>,
    model: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallEnded {
    provider: Arc<str>,
    model: Arc<str>,
    end: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tokens {
    provider: Arc<str>,
    model: Arc<str>,
    kind: &'static str,
}

impl OfModel {
    fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.into(), model: model.into() }
    }

    /// The model that a failed try went to.
    fn tried(attempt: &Attempt) -> Self {
        Self::new(attempt.provider.as_str(), attempt.model.as_str())
    }
}

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
}

impl Default for Metrics {
    /// Nothing has happened. What has few labels that are known says so by zeros: of a counter that is not there before its first event
    /// nobody sees that event as an increase.
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
        };
        for verb in [Verb::Allow, Verb::Deny, Verb::Ask] {
            drop(metrics.decisions.get_or_create(&Decided::of(verb)));
        }
        for by in [EndedBy::Reuse, EndedBy::CodeReuse] {
            drop(metrics.reused.get_or_create(&Reused { by: by.as_str() }));
        }
        metrics
    }
}

impl Decided {
    const fn of(verb: Verb) -> Self {
        let decision = match verb {
            Verb::Allow => "allow",
            Verb::Deny => "deny",
            Verb::Ask => "approval_required",
        };
        Self { decision }
    }
}

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

    /// Counts a model call that ended, with what the gate itself took of it: the request's time without its provider's.
    pub fn called(&self, call: &Call, overhead: Duration) {
        self.overhead.observe(overhead.as_secs_f64());
        let CallState::Ended { end, first_token_ms, .. } = call.state else { return };
        let of = call
            .target
            .as_ref()
            .map_or_else(|| OfModel::new("none", "none"), |it| OfModel::new(it.provider.as_str(), it.model.as_str()));
        let OfModel { provider, model } = of.clone();
        self.calls.get_or_create(&CallEnded { provider, model, end: end.as_str() }).inc();
        // A whole answer does not say when its first token was there: what is told of it is when it came.
        if let Some(ms) = first_token_ms.filter(|_| call.stream) {
            self.first_token.get_or_create(&of).observe(Duration::from_millis(ms).as_secs_f64());
        }
        for attempt in call.attempts.iter().filter(|it| it.is_charged()) {
            self.charged(&OfModel::tried(attempt), &attempt.usage, attempt.cost);
        }
        self.charged(&of, &call.own_usage(), call.own_cost());
        if call.unpriced {
            let tried = call.unpriced_try().and_then(|at| call.attempts.get(at));
            self.unpriced.get_or_create(&tried.map_or(of, OfModel::tried)).inc();
        }
    }

    /// Counts what a model is charged for: each provider bills its own tries, be it that another answered.
    fn charged(&self, of: &OfModel, usage: &Usage, cost: MicroUsd) {
        for (kind, count) in kinds(usage).into_iter().filter(|(_, count)| *count > 0) {
            let OfModel { provider, model } = of.clone();
            self.tokens.get_or_create(&Tokens { provider, model, kind }).inc_by(count);
        }
        self.cost.get_or_create(of).inc_by(cost.get());
    }

    /// All of it as text, beside what `gate` and `running` say of this moment. Reads the store: it blocks.
    ///
    /// # Errors
    /// What cannot be written, which is a bug.
    pub(crate) fn text(&self, gate: &Gate, running: &Arc<RunningCalls>) -> Result<String, std::fmt::Error> {
        let mut registry = Registry::with_prefix("svc");
        self.register(&mut registry);
        registry.register_collector(Box::new(Standing::of(gate, running)));
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
        registry.register("model_calls", "Model calls by how they ended", self.calls.clone());
        let overhead = self.overhead.clone();
        registry.register_with_unit(
            "model_overhead",
            "What the gate itself took of a model call: the request's time without its provider's",
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
