//! What the gate keeps and gives out.

pub mod receipt;
pub mod verify_key;
