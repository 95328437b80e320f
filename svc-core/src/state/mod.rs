//! The nouns: what a row holds, which states it has, how it moves between them, by what it is found.
//!
//! **Invariant:** a noun never names `Scope`, a store or a rule; its transitions are methods from one state to the next.

pub mod connect;
pub mod edge;
pub mod evidence;
pub mod gate;
pub mod gateway;
pub mod people;
