//! Calls to the outside: addresses that are resolved once and judged, TLS, whom it trusts, one call or the reading of one document.
//!
//! **Invariant:** nothing is connected to but an address that the outbound guard has judged.

mod ask;
mod call;
pub(crate) mod dial;
mod fetch;
mod resolve;
mod trust;

pub use self::call::Caller;
pub(crate) use self::call::{ANSWER_MAX, Post};
pub(crate) use self::resolve::StrangersResolver;
pub use self::resolve::{Asker, Resolve, Resolving, SystemResolver};
pub use self::trust::{Trust, TrustError};
