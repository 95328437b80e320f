//! Spans over OTLP.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use svc_core::state::gateway::{Call, CallEnd, CallState};

use crate::trace::Trace;

/// Where spans go. They wait in a bounded queue and are sent in batches by a thread of their own; what does not fit is lost.
#[derive(Debug)]
pub(super) struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

impl Spans {
    /// A sender to the collector that the environment names; `None` where it names none.
    pub(super) fn from_environment() -> io::Result<Option<Self>> {
        if super::collector().is_none() {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().build();
        let exporter = exporter.map_err(|error| io::Error::other(format!("spans cannot be sent: {error}")))?;
        // A name from the environment stands above this one.
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => Resource::builder(),
            None => Resource::builder().with_service_name("svc"),
        };
        let resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        let tracer = provider.tracer("svc");
        Ok(Some(Self { provider, tracer }))
    }

    pub(super) fn called(&self, call: &Call, trace: &Trace) {
        let CallState::Ended { end, first_token_ms, duration_ms, overhead_ms, last: _ } = call.state else { return };
        // Whoever brought no trace began one here, which is recorded; else the caller has said whether theirs is.
        let (above, recorded) = trace.caller.map_or((trace.parent_id, true), |it| (it, trace.sampled));
        let flags = if recorded { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let above = SpanContext::new(
            TraceId::from_bytes(trace.trace_id),
            SpanId::from_bytes(above),
            flags,
            true,
            TraceState::default(),
        );
        let started = UNIX_EPOCH + millis(call.started_at.as_millis().try_into().unwrap_or(0));
        let ended: SystemTime = started + millis(duration_ms);
        let model = call.target.as_ref().map_or(&*call.requested, |it| it.model.as_str());
        let span = self.tracer.span_builder(format!("chat {model}")).with_kind(SpanKind::Client);
        let span = span.with_start_time(started).with_attributes(attributes(call, first_token_ms, overhead_ms));
        let mut span = span.start_with_context(&self.tracer, &Context::new().with_remote_span_context(above));
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
    }
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
