//! The svc command.
fn main() {}
