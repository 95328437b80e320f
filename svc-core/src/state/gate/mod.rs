//! What the gate keeps and gives out.

pub mod kind;
pub mod provenance;
pub mod receipt;
pub mod verify_key;
