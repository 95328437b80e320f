//! The body of `POST /v1/actions/{id}/settle`.

use svc_core::refusal::Refusal;
use svc_core::state::gate::OutcomeStatus;
use svc_core::value::json::Json;

use super::{Fields, parse};

/// The largest amount: 2^53 − 1.
const AMOUNT_MAX: i64 = (1 << 53) - 1;

/// Reads an outcome: its status, and the final amount where one was sent.
///
/// # Errors
/// `invalid_json`; `invalid_request` where the body is no object; `invalid_status`, told first, and `invalid_amount`.
pub fn read(body: &[u8]) -> Result<(OutcomeStatus, Option<i64>), Refusal> {
    of_json(&parse(body)?)
}

/// The same of a body that was read.
///
/// # Errors
/// As [`read`].
pub fn of_json(json: &Json) -> Result<(OutcomeStatus, Option<i64>), Refusal> {
    let fields = Fields::of(json)?;
    let status = fields.raw("status").and_then(Json::as_str).and_then(OutcomeStatus::parse);
    let status = status.ok_or_else(Refusal::invalid_status)?;
    let amount = match fields.raw("amount") {
        None => None,
        Some(sent) => {
            let amount = sent.as_int().filter(|it| (0..=AMOUNT_MAX).contains(it));
            Some(amount.ok_or_else(Refusal::invalid_amount)?)
        }
    };
    Ok((status, amount))
}
