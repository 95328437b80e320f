//! Spans on their way to the collector: how many wait, and how many never came there.
//!
//! **Invariant:** a span that is lost is counted, and the log told of it, at most once a minute.

use std::error::Error;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter as Export, SpanProcessor,
};
use svc_store::Lasting;

/// Spans that wait, where the environment does not say how many may.
const WAITING_MAX: usize = 2_048;
/// How long the log is told nothing more of spans that are lost.
const REST: Duration = Duration::from_secs(60);

/// What became of spans.
#[derive(Clone, Debug, Default)]
pub(super) struct Sending(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    waiting: AtomicUsize,
    /// Since the log was told of them.
    lost: AtomicU64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    lasting: Lasting,
    at: Option<Instant>,
}

impl Sending {
    /// A batch has come there, or not.
    fn sent(&self, count: usize, failure: Option<&(dyn Error + 'static)>) {
        self.0.waiting.fetch_sub(count, Ordering::Relaxed);
        {
            let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.lasting.see("spans cannot be sent to the collector", failure);
        }
        if failure.is_some() {
            self.lose(count);
        } else {
            self.tell(REST);
        }
    }

    fn lose(&self, count: usize) {
        self.0.lost.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.tell(REST);
    }

    /// Tells how many were lost, where that was told so long ago.
    fn tell(&self, rest: Duration) {
        let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        if self.0.lost.load(Ordering::Relaxed) == 0 || told.at.is_some_and(|at| at.elapsed() < rest) {
            return;
        }
        let spans = self.0.lost.swap(0, Ordering::Relaxed);
        told.at = Some(Instant::now());
        tracing::warn!(spans, "spans were lost: the collector did not take them, or too many waited for it");
    }

    /// Whatever waits still is lost: nothing is sent any more.
    pub(super) fn end(&self) {
        let left = self.0.waiting.swap(0, Ordering::Relaxed);
        self.0.lost.fetch_add(u64::try_from(left).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.tell(Duration::ZERO);
    }
}

/// Spans that wait to be sent: so many, and no more.
#[derive(Debug)]
pub(super) struct Waiting {
    batches: BatchSpanProcessor,
    most: usize,
    sending: Sending,
}

impl Waiting {
    /// Spans wait here before `exporter` sends them.
    pub(super) fn before(exporter: SpanExporter, sending: &Sending) -> Self {
        let most = std::env::var("OTEL_BSP_MAX_QUEUE_SIZE").ok().and_then(|it| it.parse().ok());
        let most = most.filter(|it| *it > 0).unwrap_or(WAITING_MAX);
        // What is under way has left the queue, so the queue always has room for what is let through here.
        let config = BatchConfigBuilder::default().with_max_queue_size(most).build();
        let exporter = Counted { exporter, sending: sending.clone() };
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        Self { batches, most, sending: sending.clone() }
    }
}

impl SpanProcessor for Waiting {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        let is_room = |waiting: usize| (waiting < self.most).then(|| waiting.saturating_add(1));
        if self.sending.0.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_room).is_err() {
            return self.sending.lose(1);
        }
        self.batches.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Sends spans, and counts what comes of it.
#[derive(Debug)]
struct Counted {
    exporter: SpanExporter,
    sending: Sending,
}

impl Export for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let sent = Export::export(&self.exporter, batch).await;
        self.sending.sent(count, sent.as_ref().err().map(|it| it as &(dyn Error + 'static)));
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
