//! Spans of model calls for OpenTelemetry, named as its conventions for generative AI have it.
//!
//! Built with the feature `otel`, a server sends them by OTLP where the environment names a collector, by the variables that
//! every exporter reads: [docs/metrics.md](../../../docs/metrics.md) lists those that are heeded. Without the feature, without a
//! collector, or where the environment says that nothing is to be sent, nothing is recorded.
//!
//! **Invariant:** a span has names, numbers and ids; never a prompt, an answer, a key or a person.

#[cfg(feature = "otel")]
mod otlp;
#[cfg(feature = "otel")]
mod sending;

use std::ffi::OsString;
use std::io;

use svc_core::state::gateway::Call;

use crate::outbound::Trust;
use crate::trace::Trace;

/// Variables of the environment that name a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The variable of the environment that names a collector, where this build sends nothing to one.
#[must_use]
pub fn unheeded() -> Option<&'static str> {
    if cfg!(feature = "otel") { None } else { collector() }
}

/// The variable that names a collector, where one does and nothing is said against it.
fn collector() -> Option<&'static str> {
    collector_in(|name| std::env::var_os(name))
}

/// The same in this environment.
fn collector_in(variable: impl Fn(&str) -> Option<OsString>) -> Option<&'static str> {
    let says = |name, what: &str| variable(name).is_some_and(|it| it.eq_ignore_ascii_case(what));
    if says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none") {
        return None;
    }
    ENDPOINTS.into_iter().find(|it| variable(it).is_some_and(|it| !it.is_empty()))
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
    /// A collector is believed by `trust`, and by the certificates that the environment names beside.
    ///
    /// # Errors
    /// It names a collector, or a file of certificates, in a way that cannot be understood.
    pub fn from_environment(trust: &Trust) -> io::Result<Self> {
        #[cfg(feature = "otel")]
        return Ok(Self { spans: otlp::Spans::from_environment(trust)? });
        #[cfg(not(feature = "otel"))]
        let _ = trust;
        #[cfg(not(feature = "otel"))]
        Ok(Self::default())
    }

    /// Whether a model call of this trace is recorded here.
    #[must_use]
    pub fn records(&self, trace: &Trace) -> bool {
        #[cfg(feature = "otel")]
        return self.spans.as_ref().is_some_and(|it| it.records(trace));
        #[cfg(not(feature = "otel"))]
        let _ = trace;
        #[cfg(not(feature = "otel"))]
        false
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A collector is named by one of two variables, and by none where the environment says that nothing is to be sent.
    #[test]
    fn what_says_that_nothing_is_sent_is_heeded() {
        let found = |variables: &[(&str, &str)]| {
            collector_in(|name| variables.iter().find(|it| it.0 == name).map(|it| OsString::from(it.1)))
        };
        let named = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        assert_eq!(found(&[named]), Some(named.0));
        assert_eq!(found(&[named, ("OTEL_SDK_DISABLED", "false"), ("OTEL_TRACES_EXPORTER", "otlp")]), Some(named.0));
        for against in [("OTEL_SDK_DISABLED", "true"), ("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")]
        {
            assert_eq!(found(&[named, against]), None, "{against:?}");
        }
        assert_eq!(found(&[(named.0, "")]), None);
    }
}
