//! `svc receipt verify`: whether a receipt is genuine, by nothing but the issuer's published keys.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use svc_core::state::gate::receipt::{Claims, Offline, PublicKeys, check_offline};
use svc_core::value::Timestamp;
use svc_http::clock;
use svc_http::pages::quoted::in_line;

use super::output::{Problem, print, print_json};

/// The exit code of a file that holds no receipt.
const MALFORMED: u8 = 3;
/// That of no verdict at all, which says nothing against the receipt.
const UNREAD: u8 = 4;
/// What no offline check can see; said with every verdict.
const NOT_SHOWN: &str =
    "Whether it was consumed or revoked is not shown: only `POST /v1/verify` of its issuer tells that.";
/// The largest file of a receipt, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The largest key set that is read, in bytes.
const JWKS_BYTES_MAX: u64 = 1 << 20;

/// Checks the receipt in one file against the keys in another. Where there is no verdict, the exit code is none of a verdict.
pub(crate) fn verify(receipt: &Path, jwks: &Path, json: bool) -> ExitCode {
    checked(receipt, jwks, json).unwrap_or_else(|problem| {
        problem.tell();
        ExitCode::from(UNREAD)
    })
}

/// The verdict's exit code; [`Problem`] where a file cannot be read, the second is no key set, or nobody hears it.
fn checked(receipt: &Path, jwks: &Path, json: bool) -> Result<ExitCode, Problem> {
    // White space around a receipt is the file's. What is read ends where none of any length could: a file that is longer is
    // read as one that holds no receipt.
    let text = read(receipt, FILE_BYTES_MAX)?;
    let keys = key_set(jwks)?;
    let verdict = match text.trim() {
        whole if text.len() as u64 <= FILE_BYTES_MAX => check_offline(whole, &keys, clock::now()),
        _ => Err(Offline::Malformed),
    };
    if json {
        print_json(&as_json(&verdict))?;
    } else {
        print(&as_text(&verdict))?;
    }
    Ok(match verdict {
        Ok(_) => ExitCode::SUCCESS,
        Err(Offline::Malformed) => ExitCode::from(MALFORMED),
        Err(Offline::UnknownKey | Offline::BadSignature | Offline::NotYetValid | Offline::Expired) => ExitCode::FAILURE,
    })
}

/// The key set in a file.
///
/// # Errors
/// [`Problem`] where it cannot be read, or is none.
pub(super) fn key_set(path: &Path) -> Result<PublicKeys, Problem> {
    PublicKeys::from_jwks(&read(path, JWKS_BYTES_MAX)?).map_err(|error| {
        Problem::new(
            format!("{} is {error}", path.display()),
            "Fetch it anew from the issuer's `/.well-known/jwks.json`.",
        )
    })
}

/// The first `most` bytes of a file or of standard input, and one more where there are more; what is no text reads as a text that is no receipt.
fn read(path: &Path, most: u64) -> Result<String, Problem> {
    let (mut bytes, most) = (Vec::new(), most.saturating_add(1));
    let done = if path == Path::new("-") {
        std::io::stdin().take(most).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    done.map_err(|error| {
        Problem::new(format!("{} cannot be read: {error}", path.display()), "Check the path and its permissions.")
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn at(seconds: i64) -> String {
    Timestamp::from_millis(seconds.saturating_mul(1_000)).to_string()
}

fn as_text(verdict: &Result<Claims<'static>, Offline>) -> String {
    let claims = match verdict {
        Ok(claims) => claims,
        Err(Offline::Malformed) => return format!("malformed: {}\n", Offline::Malformed),
        Err(fault) => return format!("not valid: {fault}\n{NOT_SHOWN}\n"),
    };
    let mut lines = vec![
        "genuine and unexpired".to_owned(),
        format!("  issuer   {}", in_line(&claims.issuer)),
        format!("  receipt  {}", claims.receipt),
        format!("  action   {} ({})", claims.action, in_line(&claims.kind)),
        format!("  agent    {}", claims.agent),
    ];
    if let Some(payment) = &claims.payment {
        lines.push(format!("  payment  {} {} (minor units)", payment.amount, in_line(&payment.currency)));
        lines.push(format!("  merchant {} ({})", in_line(&payment.merchant_name), in_line(&payment.domain)));
    }
    lines.push(format!("  issued   {}", at(claims.issued_at_s)));
    lines.push(format!("  expires  {}", at(claims.expires_at_s)));
    lines.push(format!("{NOT_SHOWN}\n"));
    lines.join("\n")
}

/// The verdict in the words of `POST /v1/verify`; there is no `consumed`, since it is not known.
fn as_json(verdict: &Result<Claims<'static>, Offline>) -> Value {
    let claims = match verdict {
        Ok(claims) => claims,
        Err(fault) => return json!({ "valid": false, "reason": fault.reason(), "consumption": "not shown" }),
    };
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("valid", json!(true));
    put("consumption", json!("not shown"));
    put("issuer", json!(claims.issuer));
    put("receiptId", json!(claims.receipt));
    put("actionId", json!(claims.action));
    put("agentId", json!(claims.agent));
    put("type", json!(claims.kind));
    if let Some(payment) = &claims.payment {
        put("amount", json!(payment.amount));
        put("currency", json!(payment.currency));
        put("merchant", json!({ "name": payment.merchant_name, "domain": payment.domain }));
    }
    put("issuedAt", json!(at(claims.issued_at_s)));
    put("expiresAt", json!(at(claims.expires_at_s)));
    Value::Object(out)
}
