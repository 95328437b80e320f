//! A report that a tool ran although its action was not allowed.

use svc_core::refusal::Refusal;

use super::{Fields, parse_or_empty, truth};

/// Reads one: whether the tool had run before the gate was asked about it.
///
/// # Errors
/// `invalid_json`, or `invalid_request` where the body is no object or its member is none of these.
pub fn read(body: &[u8]) -> Result<bool, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let unasked = fields.optional("unasked", truth);
    fields.finish(Some(unasked.unwrap_or(false)))
}
