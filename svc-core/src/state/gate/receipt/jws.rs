//! A receipt's text, both ways.
//!
//! **Invariant:** reading is at least as strict as RFC 7515 and RFC 7519 allow: nothing in a header can choose an
//! algorithm, bring a key or point at one, and what is not understood is refused.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{Claims, EARLY_S, PaymentClaims, RECEIPT_BYTES_MAX, Signer};
use crate::state::people::Purpose;
use crate::value::Timestamp;
use crate::value::canonical::write_text;
use crate::value::id::{ActionId, AgentId, ReceiptId, WorkspaceId};

/// The only algorithm there is (RFC 8037).
const ALGORITHM: &str = "EdDSA";
/// The media type that keeps receipts apart from every other JWS the service signs.
const TYPE: &str = "svc-receipt+jwt";
/// Whole numbers that every JSON reader holds exactly: RFC 7493, 2.2.
const EXACT_MAX: i64 = (1 << 53) - 1;
/// Room for the payload of a usual receipt, so that it is written without growing.
const PAYLOAD_BYTES: usize = 640;
/// Characters of a header, a signature and two dots.
const FRAME_BYTES: usize = 240;

/// Writes the receipt for `claims`: the same claims and key give the same bytes, always. Of a ring of keys that one signs whose
/// turn it was when the receipt was issued.
#[must_use]
pub fn write(claims: &Claims<'_>, signer: &dyn Signer) -> String {
    let then = Timestamp::from_millis(claims.issued_at_s.saturating_mul(1_000));
    let of_ring = signer.of(Purpose::Receipt, then);
    sign_compact(TYPE, payload(claims), of_ring.as_deref().unwrap_or(signer))
}

/// A compact JWS of this media type over `payload`, JSON.
#[must_use]
pub fn sign_compact(media_type: &str, payload: impl AsRef<[u8]>, signer: &dyn Signer) -> String {
    let payload = payload.as_ref();
    let mut header = String::with_capacity(FRAME_BYTES);
    header.push_str(r#"{"alg":"EdDSA","typ":"#);
    write_text(&mut header, media_type);
    header.push_str(r#","kid":"#);
    write_text(&mut header, signer.kid());
    header.push('}');
    let mut text = Vec::with_capacity(FRAME_BYTES.saturating_add(base64_len(payload)));
    push_base64(&mut text, header.as_bytes());
    text.push(b'.');
    push_base64(&mut text, payload);
    let signature = signer.sign(&text);
    text.push(b'.');
    push_base64(&mut text, &signature);
    // Base64url and dots are ASCII.
    String::from_utf8(text).unwrap_or_default()
}

/// Characters of `bytes` as base64url without padding.
fn base64_len(bytes: &[u8]) -> usize {
    base64::encoded_len(bytes.len(), false).unwrap_or_default()
}

/// Encodes in one go: several times as fast as writing to a `String`, which goes through a buffer of its own.
fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    let from = out.len();
    out.resize(from.saturating_add(base64_len(bytes)), b'A');
    // The room is what the encoder itself asks for, so it is enough.
    let _ = URL_SAFE_NO_PAD.encode_slice(bytes, out.get_mut(from..).unwrap_or_default());
}

/// A text that has a receipt's form. Nothing is known yet of who made it: ask [`super::PublicKeys::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    signing_input: &'a str,
    signature: [u8; 64],
    kid: String,
    claims: Claims<'static>,
}

impl Parsed<'_> {
    /// What was signed: the first two parts with the dot between them (RFC 7515, 5.1).
    #[must_use]
    pub const fn signing_input(&self) -> &str {
        self.signing_input
    }

    /// The signature.
    #[must_use]
    pub const fn signature(&self) -> &[u8; 64] {
        &self.signature
    }

    /// Which key is said to have signed.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// What the text says; worth nothing before the signature is checked.
    #[must_use]
    pub const fn claims(&self) -> &Claims<'static> {
        &self.claims
    }

    /// The claims, owned.
    #[must_use]
    pub fn into_claims(self) -> Claims<'static> {
        self.claims
    }
}

/// The text has not the form of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text is not a receipt")]
pub struct NotAReceipt;

/// Takes a receipt's text apart.
///
/// The claims must be exactly those that [`write()`] knows: one that this version does not understand might narrow what
/// the receipt is good for.
///
/// # Errors
/// [`NotAReceipt`] for a text that is empty or longer than [`RECEIPT_BYTES_MAX`] (looked at first), has not three parts
/// of base64url without padding and without stray bits, has a header with another, a missing or a further member or
/// another algorithm or type, or has claims that are missing, unknown, named twice or of another form.
pub fn parse(text: &str) -> Result<Parsed<'_>, NotAReceipt> {
    if text.len() > RECEIPT_BYTES_MAX {
        return Err(NotAReceipt);
    }
    let (signing_input, signature) = text.rsplit_once('.').ok_or(NotAReceipt)?;
    let (header, payload) = signing_input.split_once('.').ok_or(NotAReceipt)?;
    if payload.contains('.') {
        return Err(NotAReceipt);
    }
    let header: Header = read(header)?;
    if header.alg != ALGORITHM || header.typ != TYPE {
        return Err(NotAReceipt);
    }
    let claims = read::<Wire>(payload)?.claims().ok_or(NotAReceipt)?;
    let signature = decode(signature)?.try_into().map_err(|_| NotAReceipt)?;
    Ok(Parsed { signing_input, signature, kid: header.kid, claims })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: String,
    kid: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    iss: String,
    sub: AgentId,
    jti: ReceiptId,
    act: ActionId,
    wid: WorkspaceId,
    #[serde(rename = "type")]
    kind: String,
    dig: String,
    iat: i64,
    nbf: i64,
    exp: i64,
    #[serde(default, deserialize_with = "present")]
    amount: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    currency: Option<String>,
    #[serde(default, deserialize_with = "present")]
    merchant: Option<Object<Merchant>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Merchant {
    name: String,
    domain: String,
}

impl Wire {
    /// The claims, where each has the form that [`write`] gives it.
    fn claims(self) -> Option<Claims<'static>> {
        let times_fit = self.iat.checked_sub(EARLY_S) == Some(self.nbf)
            && [self.iat, self.exp].iter().all(|it| (-EXACT_MAX..=EXACT_MAX).contains(it));
        if !times_fit || !is_digest(&self.dig) || self.kind.is_empty() {
            return None;
        }
        let payment = match (self.amount, self.currency, self.merchant) {
            (None, None, None) => None,
            (Some(amount), Some(currency), Some(Object(merchant))) => {
                let is_code = currency.len() == 3 && currency.bytes().all(|it| it.is_ascii_uppercase());
                if !(1..=EXACT_MAX).contains(&amount) || !is_code || merchant.domain.is_empty() {
                    return None;
                }
                Some(PaymentClaims {
                    amount,
                    currency: Cow::Owned(currency),
                    merchant_name: Cow::Owned(merchant.name),
                    domain: Cow::Owned(merchant.domain),
                })
            }
            _ => return None,
        };
        Some(Claims {
            issuer: Cow::Owned(self.iss),
            agent: self.sub,
            receipt: self.jti,
            action: self.act,
            workspace: self.wid,
            kind: Cow::Owned(self.kind),
            digest: Cow::Owned(self.dig),
            issued_at_s: self.iat,
            expires_at_s: self.exp,
            payment,
        })
    }
}

fn payload(claims: &Claims<'_>) -> String {
    let mut out = String::with_capacity(PAYLOAD_BYTES);
    out.push_str(r#"{"iss":"#);
    write_text(&mut out, &claims.issuer);
    // Ids have no character that JSON would escape, and writing to a `String` cannot fail.
    let _ = write!(
        out,
        r#","sub":"{}","jti":"{}","act":"{}","wid":"{}","type":"#,
        claims.agent, claims.receipt, claims.action, claims.workspace
    );
    write_text(&mut out, &claims.kind);
    out.push_str(r#","dig":"#);
    write_text(&mut out, &claims.digest);
    let _ =
        write!(out, r#","iat":{},"nbf":{},"exp":{}"#, claims.issued_at_s, claims.not_before_s(), claims.expires_at_s);
    if let Some(payment) = &claims.payment {
        let _ = write!(out, r#","amount":{},"currency":"#, payment.amount);
        write_text(&mut out, &payment.currency);
        out.push_str(r#","merchant":{"name":"#);
        write_text(&mut out, &payment.merchant_name);
        out.push_str(r#","domain":"#);
        write_text(&mut out, &payment.domain);
        out.push('}');
    }
    out.push('}');
    out
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f')))
}

/// Decodes canonical base64url: no padding, no other alphabet, no bits after the last byte.
fn decode(part: &str) -> Result<Vec<u8>, NotAReceipt> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| NotAReceipt)
}

fn read<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, NotAReceipt> {
    let Object(value) = serde_json::from_slice(&decode(part)?).map_err(|_| NotAReceipt)?;
    Ok(value)
}

/// A claim that is there: `null` is no way to leave one out.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A JSON object. A derived struct alone would also read an array of its members' values.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
