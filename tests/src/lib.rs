//! What the tests of the whole workspace share.

pub mod play;
pub mod source;
