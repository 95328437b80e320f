//! The border to the outside: what may be called.

pub mod outbound;
