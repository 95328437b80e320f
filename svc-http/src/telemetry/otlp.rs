//! Spans over OTLP.

use std::cell::Cell;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, Key, KeyValue, Value};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SdkTracer, SdkTracerProvider, Span};
use svc_core::state::gateway::{Call, CallEnd, CallState};

use super::sending::{Sending, Waiting};
use crate::outbound::Trust;
use crate::trace::Trace;

/// Variables of the environment that name certificates for a collector, and how long it may take.
const CERTIFICATES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
const TIMEOUTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
/// How long it may take where nothing is said of that.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where spans go. They wait in a bounded queue and are sent in batches by a thread of their own; what does not fit is lost.
#[derive(Debug)]
pub(super) struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// Has the same sampler, and sends nothing: it tells what the other one records.
    foreteller: SdkTracer,
    sending: Sending,
}

impl Spans {
    /// A sender to the collector that the environment names; `None` where it names none.
    pub(super) fn from_environment(trust: &Trust) -> io::Result<Option<Self>> {
        if super::collector().is_none() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(client(trust)?).build();
        let exporter = exporter.map_err(|error| io::Error::other(format!("spans cannot be sent: {error}")))?;
        let resource = resource().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let sending = Sending::default();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_id_generator(Ids::default());
        let provider = provider.with_span_processor(Waiting::before(exporter, &sending)).build();
        let foreteller = SdkTracerProvider::builder().with_id_generator(Ids::default()).build().tracer("svc");
        let tracer = provider.tracer("svc");
        Ok(Some(Self { provider, tracer, foreteller, sending }))
    }

    /// Whether a span of this trace is recorded.
    pub(super) fn records(&self, trace: &Trace) -> bool {
        begin(&self.foreteller, self.foreteller.span_builder("chat"), trace).span_context().is_sampled()
    }

    pub(super) fn called(&self, call: &Call, trace: &Trace) {
        let CallState::Ended { end, first_token_ms, duration_ms, overhead_ms, last: _ } = call.state else { return };
        let started = UNIX_EPOCH + millis(call.started_at.as_millis().try_into().unwrap_or(0));
        let ended: SystemTime = started + millis(duration_ms);
        let model = call.target.as_ref().map_or(&*call.requested, |it| it.model.as_str());
        let span = self.tracer.span_builder(format!("chat {model}")).with_kind(SpanKind::Client);
        let span = span.with_start_time(started).with_attributes(attributes(call, first_token_ms, overhead_ms));
        let mut span = begin(&self.tracer, span, trace);
        if end != CallEnd::Done {
            span.set_attribute(KeyValue::new("error.type", end.as_str()));
            span.set_status(Status::error(end.as_str()));
        }
        span.end_with_timestamp(ended);
    }

    pub(super) fn end(&self) {
        if let Err(error) = self.provider.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
        self.sending.end();
    }
}

/// A span at this server's own place in a trace, which is the one that its answer names: below the caller's, or at the trace's root.
fn begin(tracer: &SdkTracer, span: SpanBuilder, trace: &Trace) -> Span {
    let trace_id = TraceId::from_bytes(trace.trace_id);
    let above = trace.caller.map(|caller| {
        let flags = if trace.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let members = trace.state.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        let state = TraceState::from_key_value(members).unwrap_or_default();
        SpanContext::new(trace_id, SpanId::from_bytes(caller), flags, true, state)
    });
    let context = above.map_or_else(Context::new, |it| Context::new().with_remote_span_context(it));
    NEXT.set(Some((trace_id, SpanId::from_bytes(trace.parent_id))));
    let span = span.start_with_context(tracer, &context);
    NEXT.set(None);
    span
}

thread_local! {
    /// The ids of the span that this thread is about to begin.
    static NEXT: Cell<Option<(TraceId, SpanId)>> = const { Cell::new(None) };
}

/// Gives a span the ids that its request's answer tells.
#[derive(Debug, Default)]
struct Ids(RandomIdGenerator);

impl IdGenerator for Ids {
    fn new_trace_id(&self) -> TraceId {
        NEXT.get().map_or_else(|| self.0.new_trace_id(), |it| it.0)
    }

    fn new_span_id(&self) -> SpanId {
        NEXT.get().map_or_else(|| self.0.new_span_id(), |it| it.1)
    }
}

/// Who calls the collector: whoever this server trusts is believed, and what the environment names.
fn client(trust: &Trust) -> io::Result<reqwest::blocking::Client> {
    let variable = |names: [&str; 2]| names.into_iter().find_map(|it| std::env::var_os(it).filter(|it| !it.is_empty()));
    let trust = trust.clone().and(variable(CERTIFICATES).map(PathBuf::from).as_deref()).map_err(io::Error::other)?;
    let time =
        variable(TIMEOUTS).and_then(|it| it.to_str()?.trim().parse().ok()).map_or(TIMEOUT, Duration::from_millis);
    // A client that blocks is not made on a thread that serves.
    let made = std::thread::spawn(move || {
        let client = reqwest::blocking::Client::builder().timeout(time);
        client.tls_backend_preconfigured((*trust.client()).clone()).build()
    });
    let made = made.join().map_err(|_| io::Error::other("what calls the collector cannot be made"))?;
    made.map_err(io::Error::other)
}

/// What the environment says of this server; one that it does not name is `svc`.
fn resource() -> opentelemetry_sdk::resource::ResourceBuilder {
    let named = Resource::builder().build().get(&Key::from_static_str("service.name"));
    let is_named = named.is_some_and(|it| !it.as_str().starts_with("unknown_service"));
    let resource = Resource::builder();
    if is_named { resource } else { resource.with_service_name("svc") }
}

/// <https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>, and what svc knows beyond them under `svc.`.
fn attributes(call: &Call, first_token_ms: Option<u64>, overhead_ms: u64) -> Vec<KeyValue> {
    let number = |value: u64| Value::from(i64::try_from(value).unwrap_or(i64::MAX));
    let usage = &call.usage;
    let mut all = vec![
        KeyValue::new("gen_ai.operation.name", "chat"),
        KeyValue::new("gen_ai.request.model", call.requested.to_string()),
        KeyValue::new("gen_ai.usage.input_tokens", number(usage.all_input())),
        KeyValue::new("gen_ai.usage.output_tokens", number(usage.all_output())),
        KeyValue::new("gen_ai.usage.cache_read.input_tokens", number(usage.cached_input)),
        KeyValue::new(
            "gen_ai.usage.cache_creation.input_tokens",
            number(usage.cache_write.saturating_add(usage.cache_write_long)),
        ),
        KeyValue::new("svc.call.id", call.id.to_string()),
        KeyValue::new("svc.task.id", call.task.as_str().to_owned()),
        KeyValue::new("svc.cost.micro_usd", number(call.cost.get())),
        KeyValue::new("svc.overhead_ms", number(overhead_ms)),
        KeyValue::new("svc.attempts_failed", number(call.attempts.len() as u64)),
    ];
    if let Some(target) = &call.target {
        all.push(KeyValue::new("gen_ai.provider.name", target.provider.as_str().to_owned()));
        all.push(KeyValue::new("gen_ai.response.model", target.model.as_str().to_owned()));
    }
    if let Some(class) = &call.payer.class {
        all.push(KeyValue::new("svc.task_class", class.as_str().to_owned()));
    }
    all.extend(first_token_ms.map(|it| KeyValue::new("svc.first_token_ms", number(it))));
    all
}

const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}
