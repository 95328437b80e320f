//! Bodies that the tests of the interface send, and mandates for the agents that send them.

use serde_json::{Value, json};

/// Payments in euro up to 500.00 each and 5,000.00 a month, asking above 200.00; one merchant never.
pub const OFFICE: &str = r#"{"name":"Office","actions":["payment"],"limits":{"currency":"EUR","perAction":50000,
    "perPeriod":{"amount":500000,"period":"month"},"askAbove":20000},"merchants":{"deny":["bad.example.net"]},
    "duplicates":"record"}"#;
/// Payments in euro up to 10,000.00 each, without asking.
pub const WIDE: &str =
    r#"{"name":"Wide","actions":["payment"],"limits":{"currency":"EUR","perAction":1000000},"duplicates":"record"}"#;
/// Updates of a record.
pub const CRM: &str = r#"{"name":"CRM","actions":["crm.*","tool.call","data.share"]}"#;

/// The merchant of [`payment`].
pub const SHOP: &str = "shop.example.com";

/// A payment in euro to [`SHOP`].
#[must_use]
pub fn payment(amount: i64) -> Value {
    payment_to(amount, SHOP)
}

/// A payment in euro.
#[must_use]
pub fn payment_to(amount: i64, domain: &str) -> Value {
    json!({
        "type": "payment",
        "summary": "Pay for what was ordered",
        "payment": { "amount": amount, "currency": "EUR", "merchant": { "name": "Example Shop", "domain": domain } },
        "provenance": [{ "source": "user", "detail": "the order" }],
    })
}

/// An action that is no payment.
#[must_use]
pub fn update() -> Value {
    json!({ "type": "crm.update", "summary": "Correct a telephone number", "provenance": [{ "source": "user" }] })
}

/// The same body with `name` as `value`; `name` may be dotted.
#[must_use]
pub fn with(mut body: Value, name: &str, value: Value) -> Value {
    let mut place = &mut body;
    for part in name.split('.') {
        place = match part.parse::<usize>() {
            Ok(at) => &mut place[at],
            Err(_) => &mut place[part],
        };
    }
    *place = value;
    body
}

/// A charge that a receipt of [`payment`] covers.
#[must_use]
pub fn charge(receipt: &Value, amount: i64) -> Value {
    json!({ "receipt": receipt, "charge": { "amount": amount, "currency": "EUR", "merchant": { "domain": SHOP } } })
}

/// The text of an id or a receipt.
///
/// # Panics
/// Where it is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
