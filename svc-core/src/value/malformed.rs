//! What is said of bytes that are not JSON.

use std::fmt;

use serde_json::error::Category;

/// Why bytes are not JSON, as one clause for people of which they are the subject: "is nested deeper than 64 levels".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl Malformed {
    pub(super) fn new(clause: impl Into<String>) -> Self {
        Self(clause.into())
    }

    pub(super) fn from_reader(fault: serde_json::Error) -> Self {
        match fault.classify() {
            Category::Data => Self(fault.to_string()),
            Category::Io | Category::Syntax | Category::Eof => Self(format!("is not JSON: {fault}")),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}
