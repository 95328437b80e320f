//! Who made something, as its row keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::id::{KeyId, PrincipalId, TokenId};
use crate::value::text::Label;

/// Who made something. A row without a maker was made by the program that runs the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Maker {
    /// A signed-in person.
    Person(PrincipalId),
    /// A workspace key with admin scope.
    Key(KeyId),
    /// A service token.
    Token {
        /// Its id.
        id: TokenId,
        /// Its name.
        name: Label,
    },
}

/// `prp_…`, `key_…` or `token:<name>`.
impl fmt::Display for Maker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Person(id) => id.fmt(out),
            Self::Key(id) => id.fmt(out),
            Self::Token { name, .. } => write!(out, "token:{name}"),
        }
    }
}
