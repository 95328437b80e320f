//! Spans of model calls for OpenTelemetry, named as its conventions for generative AI have it.
//!
//! Built with the feature `otel`, a server sends them by OTLP where the environment names a collector, by the variables that
//! every exporter reads (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`
//! and their like). Without the feature, or without a collector, nothing is recorded.
//!
//! **Invariant:** a span has names, numbers and ids; never a prompt, an answer, a key or a person.

#[cfg(feature = "otel")]
mod otlp;

use std::io;

use svc_core::state::gateway::Call;

use crate::trace::Trace;

/// Variables of the environment that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The variable of the environment that names a collector, where this build sends nothing to one.
#[must_use]
pub fn unheeded() -> Option<&'static str> {
    if cfg!(feature = "otel") { None } else { collector() }
}

/// The variable that names a collector, where one does.
fn collector() -> Option<&'static str> {
    ENDPOINTS.into_iter().find(|it| std::env::var_os(it).is_some_and(|it| !it.is_empty()))
}

/// Who is sent spans.
#[derive(Debug, Default)]
pub struct Telemetry {
    #[cfg(feature = "otel")]
    spans: Option<otlp::Spans>,
}

impl Telemetry {
    /// What the environment asks for.
    ///
    /// # Errors
    /// It names a collector in a way that cannot be understood.
    pub fn from_environment() -> io::Result<Self> {
        #[cfg(feature = "otel")]
        return Ok(Self { spans: otlp::Spans::from_environment()? });
        #[cfg(not(feature = "otel"))]
        Ok(Self::default())
    }

    /// Tells of a model call that ended, in the trace of the request that brought it.
    pub fn called(&self, call: &Call, trace: &Trace) {
        #[cfg(feature = "otel")]
        if let Some(spans) = &self.spans {
            spans.called(call, trace);
        }
        #[cfg(not(feature = "otel"))]
        let _ = (call, trace);
    }

    /// Sends what waits, and nothing after it. Blocks for some seconds at most.
    pub fn end(&self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = &self.spans {
            spans.end();
        }
    }
}
