//! Bodies of rows: JSON that an operator can ask with SQL, and a format number beside it.
//!
//! **Invariant:** a body of a newer format than this release knows is an error, never a guess.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::record::{Row, Table};
use crate::value::id::WorkspaceId;

/// A row's body and the format it is written in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The format number, from 1.
    pub format: u16,
    /// UTF-8 JSON.
    pub body: Vec<u8>,
}

/// A stored row that this release cannot read.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// It was written by a newer release.
    #[error(transparent)]
    TooNew(#[from] TooNew),
    /// It is not what its table holds.
    #[error("a row of `{table}` is not readable")]
    Body {
        /// The table's name.
        table: &'static str,
        /// What the JSON reader said.
        #[source]
        source: serde_json::Error,
        /// In whose ledger it belongs, where it is a record that tells.
        whose: Option<WorkspaceId>,
    },
}

impl Undecodable {
    /// In whose ledger it belongs, where it is a record that tells.
    #[must_use]
    pub const fn whose(&self) -> Option<WorkspaceId> {
        match self {
            Self::TooNew(too_new) => too_new.whose,
            Self::Body { whose, .. } => *whose,
        }
    }
}

/// A row's format is newer than this release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row of `{table}` has format {found}; this release reads up to {known}")]
pub struct TooNew {
    /// The table's name.
    pub table: &'static str,
    /// The format found.
    pub found: u16,
    /// The newest format known.
    pub known: u16,
    /// In whose ledger it belongs, where it is a record that tells.
    pub whose: Option<WorkspaceId>,
}

pub(super) fn write_body<R: Row + Serialize>(table: Table, row: &R) -> Result<Encoded, Undecodable> {
    let mut body = match row.json() {
        Some(json) => json.into_bytes(),
        None => {
            let mut body = Vec::with_capacity(1_024);
            serde_json::to_writer(&mut body, row).map_err(|source| Undecodable::Body {
                table: table.name(),
                source,
                whose: None,
            })?;
            body
        }
    };
    // White space after a JSON value is part of no value.
    body.resize(body.len().saturating_add(row.room()), b' ');
    Ok(Encoded { format: table.format(), body })
}

pub(super) fn read_body<R: Row + DeserializeOwned>(table: Table, format: u16, body: &[u8]) -> Result<R, Undecodable> {
    if format > R::FORMAT {
        let whose = whose(table, body);
        return Err(TooNew { table: table.name(), found: format, known: R::FORMAT, whose }.into());
    }
    let told = |source| Undecodable::Body { table: table.name(), source, whose: whose(table, body) };
    serde_json::from_slice(body).map_err(told)
}

/// In whose ledger a record belongs that cannot be read, where its body tells, as one of a newer release may.
#[must_use]
pub fn whose(table: Table, body: &[u8]) -> Option<WorkspaceId> {
    #[derive(Deserialize)]
    struct Whose {
        #[serde(rename = "w")]
        workspace: WorkspaceId,
    }
    if table != Table::Entry {
        return None;
    }
    serde_json::from_slice::<Whose>(body).ok().map(|it| it.workspace)
}
