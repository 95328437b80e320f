//! The body and the answer of `POST /v1/verify`.

use http::HeaderMap;
use serde::Serialize;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::rules::gate::verify::{Charge, Fault, Verdict};
use svc_core::state::gate::ActionKind;
use svc_core::state::gate::receipt::RECEIPT_BYTES_MAX;
use svc_core::state::gate::verify_key::VerifyKey;
use svc_core::value::canonical::canonical;
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::id::{ActionId, AgentId, ReceiptId};
use svc_core::value::{Currency, Invalid, Timestamp};

use super::{Fields, Told, amount, parse, text};
use crate::headers::IDEMPOTENCY_KEY;

/// What is asked of a receipt.
#[derive(Debug)]
pub struct Asked {
    /// The receipt as sent, whatever it is.
    pub receipt: String,
    /// What is charged.
    pub charge: Option<Charge>,
    /// The type that the asker expects.
    pub kind: Option<Box<str>>,
    /// The digest of the asker's idempotency key.
    pub key: Option<Digest>,
    /// The digest of the body, RFC 8785, where a key was sent that it goes with.
    pub body: Digest,
}

/// Reads the question. A receipt that is none is not looked at here: that is a verdict.
///
/// # Errors
/// `invalid_json`, or `invalid_request` with every fault.
pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Asked, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let receipt = fields.required("receipt", |it| text(it).map(str::to_owned));
    let charge = fields.nested("charge", charge);
    let kind = fields.optional("type", |it| {
        let kind = ActionKind::parse(text(it)?).map_err(|unknown| unknown.message)?;
        Ok(kind.as_str().into())
    });
    let key = fields.header(headers, &IDEMPOTENCY_KEY).and_then(|value| {
        let sent = std::str::from_utf8(value.as_bytes()).map_err(|_| Invalid::new("must be UTF-8"));
        let made = sent.and_then(|it| VerifyKey::new(it, receipt.as_deref().unwrap_or_default()));
        made.map_err(|why| fields.note(FieldError::invalid("idempotency-key", why))).ok()
    });
    let key = key.map(|it| it.digest());
    // Only beside a key is the body looked at again, and a text too long for a receipt is not hashed at all.
    let hashed = key.is_some() && receipt.as_ref().is_some_and(|it| it.len() <= RECEIPT_BYTES_MAX);
    let body = Digest::of(if hashed { canonical(&json) } else { String::new() });
    fields.finish(receipt.map(|receipt| Asked { receipt, charge, kind, key, body }))
}

fn charge(fields: &mut Fields<'_>) -> Option<Charge> {
    let amount = fields.required("amount", amount);
    let currency = fields.required("currency", |it| Currency::parse(text(it)?));
    let domain = fields.nested("merchant", |it| it.required("domain", |domain| Domain::parse(text(domain)?)));
    let (amount, currency) = amount.zip(currency)?;
    Some(Charge { amount, currency, domain })
}

/// The verdict (CONTRACT part 2, "`POST /v1/verify`").
///
/// # Errors
/// `internal` where it cannot be written, which its members rule out.
pub fn write(verdict: &Verdict) -> Result<Vec<u8>, Refusal> {
    let action = verdict.action.as_deref();
    let allowed = action.and_then(|it| it.allowed());
    let payment = action.and_then(|it| it.payment.as_ref());
    let tells_consumption = verdict.is_valid() || verdict.fault == Some(Fault::AlreadyConsumed);
    let answer = VerdictAnswer {
        valid: verdict.is_valid(),
        consumed: verdict.is_valid(),
        reason: verdict.fault.map(Fault::as_str),
        receipt_id: action.map(|it| Told(it.receipt())),
        action_id: action.map(|it| Told(it.id)),
        agent_id: action.map(|it| Told(it.agent)),
        kind: action.map(|it| it.kind.as_str()),
        amount: payment.map(|it| it.amount),
        currency: payment.map(|it| it.currency.as_str()),
        merchant: payment.map(|it| Merchant { name: it.name.as_str(), domain: it.domain.as_str() }),
        expires_at: allowed.map(|it| Told(it.receipt_expires_at)),
        consumed_at: allowed.and_then(|it| it.consumed.as_ref()).filter(|_| tells_consumption).map(|it| Told(it.at)),
    };
    serde_json::to_vec(&answer).map_err(|_| Refusal::internal())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerdictAnswer<'a> {
    valid: bool,
    consumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_id: Option<Told<ReceiptId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<Told<ActionId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<Told<AgentId>>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<Merchant<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Told<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_at: Option<Told<Timestamp>>,
}

#[derive(Serialize)]
pub(super) struct Merchant<'a> {
    pub(super) name: &'a str,
    pub(super) domain: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::sent_twice_is_one_fault;

    /// A header that was sent twice hides no other fault, and does not come before what is no JSON.
    #[test]
    fn a_header_sent_twice_is_one_fault_of_many() {
        sent_twice_is_one_fault(read, &["idempotency-key", "receipt"]);
    }
}
