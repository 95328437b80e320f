//! What commands say: results on standard output, refusals with advice on standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use svc_http::config::ConfigError;
use svc_http::log::scrub;

/// Why a command was not done: for each fault what is wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Problem(Vec<(String, Option<String>)>);

impl Problem {
    /// One fault, and one sentence on what to do.
    pub(crate) fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self(vec![(what.into(), Some(advice.into()))])
    }

    /// One fault that says itself what to do.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self(vec![(what.into(), None)])
    }

    /// Tells it on standard error: `svc: ` and the fault, and below it what to do.
    pub(crate) fn tell(&self) -> ExitCode {
        let mut text = String::new();
        for (what, advice) in &self.0 {
            text.push_str(&format!("svc: {what}\n"));
            if let Some(advice) = advice {
                text.push_str(&format!("     {advice}\n"));
            }
        }
        // Where standard error is closed nobody listens; the exit code still tells.
        let _ = io::stderr().write_all(scrub(&text).as_bytes());
        ExitCode::FAILURE
    }

    /// Each fault and its advice.
    pub(crate) fn faults(&self) -> &[(String, Option<String>)] {
        &self.0
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self(error.0.into_iter().map(|it| (it.what, it.advice)).collect())
    }
}

/// Writes a result to standard output, whole or not at all as far as the caller can tell.
///
/// # Errors
/// [`Problem`] where it cannot be written: a key that nobody saw must not count as given.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        Problem::new(
            format!("standard output cannot be written: {error}"),
            "Run the command again with its output open.",
        )
    })
}

/// Writes one JSON value on one line of standard output.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Problem> {
    print(&format!("{value}\n"))
}

/// Tells something beside the result on standard error; nothing is lost where nobody listens.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().write_all(scrub(text).as_bytes());
}
