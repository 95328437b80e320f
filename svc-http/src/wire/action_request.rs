//! The body of `POST /v1/actions/authorize` (SPEC part 2, CONTRACT part 2 "Action request, further members").

use http::HeaderMap;
use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gate::{
    ActionKind, DATA_FIELDS_MAX, DataShare, Declared, Details, PROVENANCE_MAX, Request, Tool, ToolInput,
};
use svc_core::value::digest::Digest;
use svc_core::value::domain::Domain;
use svc_core::value::json::Json;
use svc_core::value::text::{Detail, IdempotencyKey, Label, SessionId, Source, Summary};
use svc_core::value::{Amount, Currency, Invalid};

use super::{Fields, amount, integer, parse, text};
use crate::headers::IDEMPOTENCY_KEY;

/// What pays, to whom.
type Paid = (Amount, Currency, (Label, Domain));

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
    let data = fields.nested("data", data);
    let tool = fields.nested("tool", tool);
    let details = fields.optional("details", |it| told_elsewhere(it, Details::of)).flatten();
    let provenance = fields.each("provenance", PROVENANCE_MAX, declared).unwrap_or_default();
    let session = fields.nested("session", |it| it.required("id", |id| SessionId::parse(text(id)?)));
    let key = key(&mut fields, headers);
    if let Some(kind) = &kind {
        requirements(&mut fields, kind, tool.as_ref().map(|(tool, _)| tool));
    }
    let made = kind.zip(summary).map(|(kind, summary)| {
        let mut request = Request::new(kind, summary).from_sources(provenance);
        if let Some((amount, currency, merchant)) = payment {
            request = request.paying(amount, currency, merchant);
        }
        if let Some((tool, input)) = tool {
            request = request.calling(tool);
            request = add(request, input, Request::with_input);
        }
        request = add(request, data, Request::sharing);
        request = add(request, details, Request::with_details);
        request = add(request, session, Request::in_session);
        add(request, key, Request::keyed).as_sent(json)
    });
    fields.finish(made).map_err(|refusal| match meant {
        Some(meant) => refusal.did_you_mean(meant),
        None => refusal,
    })
}

/// The request with a member, where there is one.
fn add<T>(request: Request, member: Option<T>, with: impl FnOnce(Request, T) -> Request) -> Request {
    match member {
        Some(member) => with(request, member),
        None => request,
    }
}

/// Reads an object, unless an integer in it is refused by its own path once all members were read.
fn told_elsewhere<T>(value: &Json, read: impl FnOnce(&Json) -> Result<T, Invalid>) -> Result<Option<T>, Invalid> {
    let is_told = value.as_object().is_some() && value.has_out_of_range();
    if is_told { Ok(None) } else { read(value).map(Some) }
}

/// What a type cannot be without.
fn requirements(fields: &mut Fields<'_>, kind: &ActionKind, tool: Option<&Tool>) {
    if kind.needs_payment() && fields.raw("payment").is_none() {
        fields.note(FieldError::missing("payment"));
    }
    if kind.needs_data() && fields.raw("data").is_none() {
        fields.note(FieldError::missing("data"));
    }
    let unnamed = tool.is_some_and(|it| it.name.is_none()) || fields.raw("tool").is_none();
    if kind.needs_tool_name() && unnamed {
        fields.note(FieldError::missing("tool.name"));
    }
}

fn payment(fields: &mut Fields<'_>) -> Option<Paid> {
    let amount = fields.required("amount", amount);
    let currency = fields.required("currency", |it| Currency::parse(text(it)?));
    if fields.raw("merchant").is_none() {
        fields.required("merchant", |_| Ok(()));
    }
    let merchant = fields.nested("merchant", |it| {
        let name = it.required("name", |name| Label::parse(text(name)?));
        let domain = it.required("domain", |domain| Domain::parse(text(domain)?));
        name.zip(domain)
    });
    Some((amount?, currency?, merchant?))
}

fn data(fields: &mut Fields<'_>) -> Option<DataShare> {
    let recipient = fields.required("recipient", |it| DataShare::recipient_of(text(it)?));
    fields.demand("fields");
    let names = fields.texts("fields", (1, DATA_FIELDS_MAX), Label::parse);
    let purpose = fields.optional("purpose", |it| Summary::parse(text(it)?));
    Some(DataShare { recipient: recipient?, fields: names?, purpose })
}

fn tool(fields: &mut Fields<'_>) -> Option<(Tool, Option<ToolInput>)> {
    let name = fields.optional("name", |it| Label::parse(text(it)?));
    let server = fields.optional("server", |it| Label::parse(text(it)?));
    let input = fields.optional("input", |it| told_elsewhere(it, ToolInput::of)).flatten();
    let input_digest = fields.optional("inputDigest", |it| {
        let digest = text(it)?.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        digest.ok_or_else(|| Invalid::new("must be `sha256:` and 64 hex digits"))
    });
    let input_bytes = fields.optional("inputBytes", |it| match integer(it)? {
        bytes if bytes >= 0 => Ok(bytes),
        _ => Err(Invalid::new("must not be negative")),
    });
    Some((Tool { name, server, input_digest, input_bytes }, input))
}

fn declared(fields: &mut Fields<'_>) -> Option<Declared> {
    let source = fields.required("source", |it| Source::parse(text(it)?));
    let detail = fields.optional("detail", |it| Detail::parse(text(it)?));
    Some(Declared { source: source?, detail })
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
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;
    use svc_core::value::id::AgentId;

    use super::*;
    use crate::wire::testing::sent_twice_is_one_fault;

    /// What a program asks for has the digest of the body that says the same.
    #[test]
    fn a_body_and_a_program_ask_for_the_same() {
        let json = |text: &str| parse(text.as_bytes()).unwrap();
        let new = |kind: &str| Request::new(kind.parse().unwrap(), Summary::parse("Do it").unwrap());
        let body = |more: &str| of_json(&json(&format!(r#"{{"summary":"Do it",{more}}}"#)), None).unwrap();
        let merchant = ("Shop".parse().unwrap(), "shop.example".parse().unwrap());
        let amount = Amount::new(100).unwrap();
        let fields = vec!["name".parse().unwrap()];
        let share =
            DataShare { recipient: "a@b.example".into(), fields, purpose: Some(Summary::parse("To \"try\"").unwrap()) };
        let tool = Tool { name: Some("ls".parse().unwrap()), server: Some("fs".parse().unwrap()), ..Tool::default() };
        let input = json(r#"{"b":1,"a":[1.50]}"#);
        for (sent, made) in [
            (
                r#""type":"refund","payment":{"amount":100,"currency":"eur","merchant":{"name":"Shop","domain":"shop.example"}}"#,
                new("refund").paying(amount, Currency::EUR, merchant),
            ),
            (
                r#""type":"data.share","data":{"recipient":"a@b.example","fields":["name"],"purpose":"To \"try\""}"#,
                new("data.share").sharing(share),
            ),
            (
                r#""type":"tool.call","tool":{"server":"fs","name":"ls","input":{"b":1,"a":[1.50]}}"#,
                new("tool.call").calling(tool).with_input(ToolInput::of(&input).unwrap()),
            ),
            (
                r#""type":"deploy","details":{"b":1,"a":[1.50]}"#,
                new("deploy").with_details(Details::of(&input).unwrap()),
            ),
        ] {
            let agent = AgentId::from_bits(1);
            assert_eq!(body(sent).digest(agent, "salt"), made.digest(agent, "salt"), "{sent}");
        }
    }

    /// A header that was sent twice hides no other fault, and does not come before what is no JSON.
    #[test]
    fn a_header_sent_twice_is_one_fault_of_many() {
        sent_twice_is_one_fault(read, &["idempotency-key", "summary", "type"]);
    }
}
