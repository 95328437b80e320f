//! The body of `POST /v1/actions/authorize` (SPEC part 2, CONTRACT part 2 "Action request, further members").

use http::HeaderMap;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gate::{Account, ActionKind, DataShare, Declared, Details, Payment, Request, Tool, ToolRequest};
use svc_core::value::canonical::{canonical, canonical_without};
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::json::Json;
use svc_core::value::text::{Detail, Email, IdempotencyKey, Label, SessionId, Source, Summary};
use svc_core::value::{Amount, Currency, Invalid};

use super::{Fields, integer, parse, text};
use crate::headers::IDEMPOTENCY_KEY;

/// Entries of `provenance`.
const PROVENANCE_MAX: usize = 50;
/// Entries of `data.fields`.
const DATA_FIELDS_MAX: usize = 100;
/// Bytes of `details`, as RFC 8785 writes them.
const DETAILS_BYTES_MAX: usize = 16 * 1024;
/// Bytes of `tool.input`, as RFC 8785 writes them.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Reads an action request. The key may come in the body or in the header; where both are there, they agree.
///
/// # Errors
/// `invalid_json`, or `invalid_request` with every fault.
pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Request, Refusal> {
    of_json(&parse(body)?, Some(headers))
}

/// The same of a body that was read, with the headers beside it where those count.
///
/// # Errors
/// As [`read`].
pub fn of_json(json: &Json, headers: Option<&HeaderMap>) -> Result<Request, Refusal> {
    let mut fields = Fields::of(json)?;
    let mut meant = None;
    let kind = fields.required("type", |it| {
        ActionKind::parse(text(it)?).map_err(|unknown| {
            meant = Some(unknown.did_you_mean);
            unknown.message
        })
    });
    let summary = fields.required("summary", |it| Summary::parse(text(it)?));
    let payment = fields.nested("payment", payment);
    let data = fields.nested("data", data).zip(fields.raw("data").map(|it| canonical(it).into_boxed_str()));
    let tool = fields.nested("tool", tool);
    let details = fields.optional("details", details);
    let provenance = fields.each("provenance", PROVENANCE_MAX, declared).unwrap_or_default();
    let session = fields.nested("session", |it| it.required("id", |id| SessionId::parse(text(id)?)));
    let key = key(&mut fields, headers);
    if let Some(kind) = &kind {
        requirements(&mut fields, kind, tool.as_ref());
    }
    let made = kind.zip(summary).map(|(kind, summary)| {
        let body = Digest::of(canonical_without(json, "idempotencyKey"));
        let account = Account::Agent;
        Request { kind, summary, payment, data, tool, details, provenance, account, session, key, body }
    });
    fields.finish(made).map_err(|refusal| match meant {
        Some(meant) => refusal.did_you_mean(meant),
        None => refusal,
    })
}

/// What a type cannot be without.
fn requirements(fields: &mut Fields<'_>, kind: &ActionKind, tool: Option<&ToolRequest>) {
    if kind.needs_payment() && fields.raw("payment").is_none() {
        fields.note(FieldError::missing("payment"));
    }
    if kind.needs_data() && fields.raw("data").is_none() {
        fields.note(FieldError::missing("data"));
    }
    let unnamed = tool.is_some_and(|it| it.tool.name.is_none()) || fields.raw("tool").is_none();
    if kind.needs_tool_name() && unnamed {
        fields.note(FieldError::missing("tool.name"));
    }
}

fn payment(fields: &mut Fields<'_>) -> Option<Payment> {
    let amount = fields.required("amount", |it| Amount::new(integer(it)?));
    let currency = fields.required("currency", |it| Currency::parse(text(it)?));
    if fields.raw("merchant").is_none() {
        fields.required("merchant", |_| Ok(()));
    }
    let merchant = fields.nested("merchant", |it| {
        let name = it.required("name", |name| Label::parse(text(name)?));
        let domain = it.required("domain", |domain| Domain::parse(text(domain)?));
        name.zip(domain)
    });
    let ((amount, currency), (name, domain)) = amount.zip(currency).zip(merchant)?;
    Some(Payment { amount: amount.minor(), currency, name, domain })
}

fn data(fields: &mut Fields<'_>) -> Option<DataShare> {
    let recipient = fields.required("recipient", |it| {
        let sent = text(it)?;
        if sent.contains('@') {
            Email::parse(sent).map(drop)?
        } else {
            Domain::parse(sent).map(drop)?
        }
        Ok(Box::<str>::from(sent.trim()))
    });
    fields.demand("fields");
    let names = fields.texts("fields", (1, DATA_FIELDS_MAX), Label::parse);
    let purpose = fields.optional("purpose", |it| Summary::parse(text(it)?));
    Some(DataShare { recipient: recipient?, fields: names?, purpose })
}

fn tool(fields: &mut Fields<'_>) -> Option<ToolRequest> {
    let name = fields.optional("name", |it| Label::parse(text(it)?));
    let server = fields.optional("server", |it| Label::parse(text(it)?));
    let input = fields.optional("input", |it| object_of(it, INPUT_BYTES_MAX));
    let input_digest = fields.optional("inputDigest", |it| {
        let digest = text(it)?.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        digest.ok_or_else(|| Invalid::new("must be `sha256:` and 64 hex digits"))
    });
    let input_bytes = fields.optional("inputBytes", |it| match integer(it)? {
        bytes if bytes >= 0 => Ok(bytes),
        _ => Err(Invalid::new("must not be negative")),
    });
    let digest = Digest::of(canonical(fields.object));
    Some(ToolRequest { tool: Tool { name, server, input_digest, input_bytes }, input, digest })
}

fn details(value: &Json) -> Result<Details, Invalid> {
    let canonical = object_of(value, DETAILS_BYTES_MAX)?;
    let members = value.as_object().unwrap_or_default();
    Ok(Details { canonical, names: members.iter().map(|(name, _)| name.as_str().into()).collect() })
}

fn declared(fields: &mut Fields<'_>) -> Option<Declared> {
    let source = fields.required("source", |it| Source::parse(text(it)?));
    let detail = fields.optional("detail", |it| Detail::parse(text(it)?));
    Some(Declared { source: source?, detail })
}

/// An object of at most `max` bytes, canonical.
fn object_of(value: &Json, max: usize) -> Result<Box<str>, Invalid> {
    if value.as_object().is_none() {
        return Err(Invalid::new("must be an object"));
    }
    let text = canonical(value);
    if text.len() > max { Err(Invalid::new(format!("must be at most {max} bytes"))) } else { Ok(text.into()) }
}

/// The idempotency key of body and header.
fn key(fields: &mut Fields<'_>, headers: Option<&HeaderMap>) -> Option<IdempotencyKey> {
    let in_body = fields.optional("idempotencyKey", |it| IdempotencyKey::parse(text(it)?));
    let in_header = headers.and_then(|it| fields.header(it, &IDEMPOTENCY_KEY)).and_then(|value| {
        // RFC 9110 lets a field hold any octets; a key is text.
        let read = std::str::from_utf8(value.as_bytes()).map_err(|_| Invalid::new("must be UTF-8"));
        match read.and_then(IdempotencyKey::parse) {
            Ok(key) => Some(key),
            Err(why) => {
                fields.note(FieldError::invalid("idempotency-key", why));
                None
            }
        }
    });
    if let (Some(body), Some(header)) = (&in_body, &in_header)
        && body != header
    {
        fields.fault("idempotencyKey", Invalid::new("must be what the header `idempotency-key` says"));
    }
    in_body.or(in_header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::testing::sent_twice_is_one_fault;

    /// A header that was sent twice hides no other fault, and does not come before what is no JSON.
    #[test]
    fn a_header_sent_twice_is_one_fault_of_many() {
        sent_twice_is_one_fault(read, &["idempotency-key", "summary", "type"]);
    }
}
