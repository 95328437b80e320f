//! Receipts: compact JWS over Ed25519 (RFC 7515, RFC 8037) that a stranger can check with any JOSE library.
//!
//! A receipt's text is a pure function of the action's row and the signing key, so it is written when it is read and
//! stored nowhere. [`write()`] makes it, [`parse`] takes it apart, [`PublicKeys`] say whether it is genuine. None of the
//! three knows whether a receipt was consumed or revoked: `POST /v1/verify` does.
//!
//! **Invariant:** for one set of claims and one key there is exactly one text that [`parse`] and [`PublicKeys::verify`]
//! accept. Nobody can turn a consumed receipt into a second text that still verifies.

mod jws;
mod keys;

use std::borrow::Cow;
use std::sync::Arc;

use super::{Action, Allowed};
use crate::state::people::{Purpose, SigningKey};
use crate::value::Timestamp;
use crate::value::id::{ActionId, AgentId, ReceiptId, WorkspaceId};

pub use jws::{NotAReceipt, Parsed, parse, sign_compact, write};
pub use keys::{DalekSigner, KeyFault, NotAKeySet, PublicKey, PublicKeys, WeakKey, is_same, jwks_json, thumbprint};

/// The longest text that can be a receipt, in bytes. Anything longer is malformed before a byte of it is read.
pub const RECEIPT_BYTES_MAX: usize = 4_096;

/// The longest base address a signer should be given, in bytes: with it the largest claims still make a text well under
/// [`RECEIPT_BYTES_MAX`].
pub const ISSUER_BYTES_MAX: usize = 512;

/// How long before `iat` a receipt is already valid, in seconds: the clocks of the nodes that look at it differ.
pub const EARLY_S: i64 = 60;

/// Signs receipts. Ed25519 is deterministic (RFC 8032): any two implementations over one seed give the same bytes.
pub trait Signer: Send + Sync {
    /// The base address of this service: a receipt's `iss`, and what approval links begin with.
    fn issuer(&self) -> &str;
    /// The RFC 7638 thumbprint of the public key.
    fn kid(&self) -> &str;
    /// The Ed25519 signature of `message`.
    fn sign(&self, message: &[u8]) -> [u8; 64];

    /// Whether the key named `kid` is certainly the one that made `signature` of `message`, where the private half tells sooner
    /// than the public one. `false` says nothing: ask [`PublicKey::signed`]. Whether the key is trusted is not asked here.
    fn made(&self, _kid: &str, _message: &[u8], _signature: &[u8; 64]) -> bool {
        false
    }

    /// The signer whose turn it is, or was, at `at`, of a ring that keys follow each other in. A single key has none beside it.
    fn of(&self, _purpose: Purpose, _at: Timestamp) -> Option<Arc<dyn Signer>> {
        None
    }

    /// Every key of a ring as it now stands, private halves sealed. A single key is on no ring.
    fn ring(&self) -> Option<Arc<[SigningKey]>> {
        None
    }

    /// Takes the keys of a ring as the store has them now: one was added, retired or found to be in other hands.
    fn renew(&self, _rows: Vec<SigningKey>) {}
}

/// What a receipt says. It has no summary and no address of a person: receipts travel to strangers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims<'a> {
    /// `iss`: the base address of the service that signed.
    pub issuer: Cow<'a, str>,
    /// `sub`: the agent that may act.
    pub agent: AgentId,
    /// `jti`: the receipt.
    pub receipt: ReceiptId,
    /// `act`: the action that was allowed.
    pub action: ActionId,
    /// `wid`: the workspace of both.
    pub workspace: WorkspaceId,
    /// `type`: the action's type, such as `payment`.
    pub kind: Cow<'a, str>,
    /// `dig`: the action's digest, `sha256:` and 64 lower-case hexadecimal digits.
    pub digest: Cow<'a, str>,
    /// `iat`: when the action was allowed, in whole seconds since 1970, rounded down. `nbf` is [`EARLY_S`] before it.
    pub issued_at_s: i64,
    /// `exp`: the second from which the receipt is worth nothing, rounded down, so that no reader of the text holds it
    /// for valid when the action's row does not.
    pub expires_at_s: i64,
    /// `amount`, `currency` and `merchant`, where the action pays.
    pub payment: Option<PaymentClaims<'a>>,
}

/// What a receipt says about money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentClaims<'a> {
    /// `amount`: the allowed amount in minor units, above zero.
    pub amount: i64,
    /// `currency`: ISO 4217, upper case.
    pub currency: Cow<'a, str>,
    /// `merchant.name`, as it was asked.
    pub merchant_name: Cow<'a, str>,
    /// `merchant.domain`, normalised.
    pub domain: Cow<'a, str>,
}

impl<'a> Claims<'a> {
    /// What the receipt of an allowed action says, signed by the service at `issuer`. Whether the action still deserves
    /// one is not asked here.
    #[must_use]
    pub fn of(action: &'a Action, allowed: &Allowed, issuer: &'a str) -> Self {
        Self {
            issuer: issuer.into(),
            agent: action.agent,
            receipt: action.receipt(),
            action: action.id,
            workspace: action.workspace,
            kind: action.kind.as_str().into(),
            digest: action.digest.named().into(),
            issued_at_s: allowed.at.as_seconds(),
            expires_at_s: allowed.receipt_expires_at.as_seconds(),
            payment: action.payment.as_ref().map(|payment| PaymentClaims {
                amount: payment.amount,
                currency: payment.currency.as_str().into(),
                merchant_name: payment.name.as_str().into(),
                domain: payment.domain.as_str().into(),
            }),
        }
    }

    /// `nbf`: the first second in which the receipt is valid.
    #[must_use]
    pub const fn not_before_s(&self) -> i64 {
        self.issued_at_s.saturating_sub(EARLY_S)
    }

    /// Whether `now` is before the receipt's first valid second.
    #[must_use]
    pub const fn is_early(&self, now: Timestamp) -> bool {
        now.as_seconds() < self.not_before_s()
    }

    /// Whether the receipt has expired at `now`; there is no grace (RFC 7519, 4.1.4: "on or after").
    #[must_use]
    pub const fn is_over(&self, now: Timestamp) -> bool {
        now.as_seconds() >= self.expires_at_s
    }
}

/// Why a text is no genuine, unexpired receipt, as far as that can be seen without asking the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Offline {
    /// The text is no receipt at all.
    #[error("the text is not a receipt")]
    Malformed,
    /// The key that the receipt names is not in the set, or was compromised.
    #[error("the receipt names a key that is not in the key set")]
    UnknownKey,
    /// The key did not sign this text.
    #[error("the signature does not fit the receipt")]
    BadSignature,
    /// The receipt's time has not come.
    #[error("the receipt is not yet valid")]
    NotYetValid,
    /// The receipt's time is over.
    #[error("the receipt has expired")]
    Expired,
}

impl Offline {
    /// The word that `POST /v1/verify` uses for the same fault.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::BadSignature => "bad_signature",
            Self::NotYetValid => "not_yet_valid",
            Self::Expired => "expired",
        }
    }
}

/// Looks at a receipt with nothing but the issuer's public keys. What this cannot show is whether it was consumed or
/// revoked.
///
/// # Errors
/// The first fault in the order in which `POST /v1/verify` looks for them.
pub fn check_offline(text: &str, keys: &PublicKeys, now: Timestamp) -> Result<Claims<'static>, Offline> {
    let parsed = parse(text).map_err(|NotAReceipt| Offline::Malformed)?;
    keys.verify(&parsed).map_err(|fault| match fault {
        KeyFault::Unknown => Offline::UnknownKey,
        KeyFault::BadSignature => Offline::BadSignature,
    })?;
    let claims = parsed.into_claims();
    if claims.is_early(now) {
        return Err(Offline::NotYetValid);
    }
    if claims.is_over(now) {
        return Err(Offline::Expired);
    }
    Ok(claims)
}
