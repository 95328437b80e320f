//! The targets, by what they read.

pub mod answers;
pub mod bodies;
pub mod commands;
pub mod connect;
pub mod console;
pub mod dialect;
pub mod evidence;
pub mod headers;
pub mod hooks;
pub mod json;
pub mod mandates;
pub mod models;
pub mod people;
pub mod presses;
pub mod queries;
pub mod receipts;
pub mod rows;
pub mod settings;
pub mod tokens;
pub mod tools;
pub mod values;
pub mod wire;

use svc_core::refusal::Refusal;

/// Texts as inputs.
fn inputs(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The bytes before the first line end, and those after it.
fn line_and_rest(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|it| *it == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (&[], data),
    }
}

/// A refusal of an input is the caller's to mend, says how, and names what it is about.
fn is_the_callers(refusal: &Refusal) {
    assert_eq!(refusal.status(), 400, "{refusal:?}");
    assert!(refusal.fix().is_some() && !refusal.message().is_empty(), "{refusal:?}");
    for fault in refusal.errors() {
        assert!(!fault.message.is_empty() && fault.field.as_deref() != Some(""), "{refusal:?}");
    }
}
