//! What is wrong with the settings.

use std::fmt;

/// One fault of the settings, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong: a clause that names the key and where it was found.
    pub what: String,
    /// What to do: one sentence, or nothing where the clause says it.
    pub advice: Option<String>,
}

/// Every fault of the settings that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<Fault>);

impl Fault {
    /// A fault with advice.
    pub(super) fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), advice: Some(advice.into()) }
    }

    /// A fault that says itself what to do.
    pub(super) fn plain(what: impl Into<String>) -> Self {
        Self { what: what.into(), advice: None }
    }
}

/// One line a fault.
impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.0.iter().enumerate() {
            let line = if n == 0 { "" } else { "\n" };
            write!(out, "{line}{}", fault.what)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
