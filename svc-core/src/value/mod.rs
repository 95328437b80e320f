//! Values: small types that can only hold what is allowed. Text becomes one of them once, at the edge.
//!
//! **Invariant:** nothing in this layer names a rule, a row or a store.

pub mod base_url;
mod bits;
pub mod canonical;
pub mod currency;
pub mod digest;
pub mod domain;
pub mod glob;
pub mod hidden;
pub mod host_filter;
pub mod id;
mod invalid;
pub mod json;
pub mod likeness;
pub mod link;
mod malformed;
pub mod money;
pub mod nearest;
mod number;
pub mod period;
pub mod secret;
pub mod seed;
pub mod spelled;
pub(crate) mod stored;
pub mod text;
pub mod time;
pub mod tool_name;
pub mod usd;
pub mod verbatim;
pub(crate) mod words;

/// The largest whole number that every JSON reader keeps exactly: 2^53 − 1.
pub const SAFE_MAX: i64 = (1 << 53) - 1;

pub use currency::Currency;
pub use id::Id;
pub use invalid::Invalid;
pub use money::Amount;
pub use time::{Span, Timestamp};
pub use usd::MicroUsd;
