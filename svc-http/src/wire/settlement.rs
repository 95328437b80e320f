//! The body of `POST /v1/actions/{id}/settle`.

use svc_core::refusal::Refusal;
use svc_core::state::gate::OutcomeStatus;
use svc_core::value::SAFE_MAX;
use svc_core::value::json::Json;

use super::{Fields, parse};

/// Reads an outcome: its status, and the final amount where one was sent.
///
/// # Errors
/// `invalid_json`; `invalid_request` where the body is no object; `invalid_status`, told first, and `invalid_amount`; then
/// `invalid_request` naming numbers beyond ±(2^53 − 1) in other members.
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
        // `null` is no amount that was left out: for that the whole of what was allowed is posted.
        None if fields.is_null("amount") => return Err(Refusal::invalid_amount()),
        None => None,
        Some(sent) => {
            let amount = sent.as_int().filter(|it| (0..=SAFE_MAX).contains(it));
            Some(amount.ok_or_else(Refusal::invalid_amount)?)
        }
    };
    fields.finish(Some((status, amount)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::refusal::Kind;

    use super::*;

    /// Only an amount that is not there is the allowed one: `null` says that somebody's sum was lost.
    #[test]
    fn an_amount_of_null_is_none() {
        assert_eq!(read(br#"{"status":"completed"}"#).unwrap(), (OutcomeStatus::Completed, None));
        for status in ["completed", "failed", "cancelled"] {
            let body = format!(r#"{{"status":"{status}","amount":null}}"#);
            assert_eq!(read(body.as_bytes()).unwrap_err().kind(), Kind::InvalidAmount, "{status}");
        }
    }

    /// A number that readers could get wrong is a fault in any member, told after those of status and amount.
    #[test]
    fn numbers_beyond_the_bound_are_refused_in_any_member() {
        let told = |body: &str| {
            let refusal = read(body.as_bytes()).unwrap_err();
            (refusal.kind(), refusal.errors().first().and_then(|it| it.field.as_deref().map(str::to_owned)))
        };
        let at = |field: &str| (Kind::InvalidRequest, Some(field.to_owned()));
        assert_eq!(told(r#"{"status":"completed","note":9007199254740993}"#), at("note"));
        assert_eq!(told(r#"{"status":"failed","more":{"a":[1,-9007199254740992]}}"#), at("more.a.1"));
        assert_eq!(told(r#"{"status":"no","note":9007199254740993}"#), (Kind::InvalidStatus, None));
        let amount = r#"{"status":"completed","amount":9007199254740992,"note":9007199254740993}"#;
        assert_eq!(told(amount), (Kind::InvalidAmount, None));
        let largest = read(br#"{"status":"completed","amount":9007199254740991,"note":-9007199254740991}"#);
        assert_eq!(largest.unwrap(), (OutcomeStatus::Completed, Some(SAFE_MAX)));
    }
}
