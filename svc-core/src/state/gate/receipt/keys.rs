//! Receipt keys: the signer that needs nothing but this crate, the public halves, and how they are published.
//!
//! **Invariant:** the private half is in [`DalekSigner`] alone; nothing here prints or gives it out.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Parsed, Signer};
use crate::state::people::{CLOCKS_DIFFER, Purpose, SigningKey as KeyRow, SigningUse};
use crate::value::secret::Secret;
use crate::value::{Span, Timestamp};

/// Signs with `ed25519-dalek`: the signer of tests and of embedders that bring none of their own.
pub struct DalekSigner {
    key: SigningKey,
    kid: String,
    issuer: String,
}

impl DalekSigner {
    /// The signer over an Ed25519 seed (RFC 8032, 5.1.5), for receipts of the service at `issuer`, its base address of at
    /// most [`super::ISSUER_BYTES_MAX`] bytes.
    #[must_use]
    pub fn new(seed: &Secret<[u8; 32]>, issuer: impl Into<String>) -> Self {
        let key = SigningKey::from_bytes(seed.expose());
        let kid = thumbprint(key.verifying_key().as_bytes());
        Self { key, kid, issuer: issuer.into() }
    }

    /// The public half, to be published from `not_before` on.
    #[must_use]
    pub fn public_key(&self, not_before: Timestamp) -> PublicKey {
        PublicKey {
            key: self.key.verifying_key(),
            kid: self.kid.clone(),
            not_before: Some(not_before),
            retired_at: None,
            row: None,
            purpose: None,
            compromised_at: None,
        }
    }
}

impl Signer for DalekSigner {
    fn issuer(&self) -> &str {
        &self.issuer
    }

    fn kid(&self) -> &str {
        &self.kid
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }

    fn made(&self, kid: &str, message: &[u8], signature: &[u8; 64]) -> bool {
        kid == self.kid && is_same(&self.sign(message), signature)
    }
}

/// Whether the signature just made of a message is the one shown with it. Signing costs a third of verifying, and of one
/// message a key makes one signature (RFC 8032, 5.1.6). The comparison takes as long whichever bytes differ: else a stranger
/// could find out, byte by byte, the signature of a text that was never to be signed.
#[must_use]
pub fn is_same(made: &[u8; 64], shown: &[u8; 64]) -> bool {
    made.ct_eq(shown).into()
}

impl fmt::Debug for DalekSigner {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DalekSigner").field("kid", &self.kid).field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// The RFC 7638 thumbprint of an Ed25519 public key (RFC 8037, 2): SHA-256 in base64url, 43 characters.
#[must_use]
pub fn thumbprint(public: &[u8; 32]) -> String {
    let jwk = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, URL_SAFE_NO_PAD.encode(public));
    URL_SAFE_NO_PAD.encode(Sha256::digest(jwk))
}

/// The bytes are no point of the curve, or one whose signatures prove nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable Ed25519 public key")]
pub struct WeakKey;

/// One public key and its standing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    key: VerifyingKey,
    kid: String,
    /// The stored key that this is the public half of; `None` of one that is known from elsewhere.
    row: Option<SigningUse>,
    /// What it signs, where that is said.
    purpose: Option<Purpose>,
    /// When its first receipt may be signed; it is published 24 hours before. `None` where a key set did not say.
    pub not_before: Option<Timestamp>,
    /// When it signed its last receipt. It stays in the set until that one has expired, and still verifies.
    pub retired_at: Option<Timestamp>,
    /// When it was found to be in other hands. From then on it verifies nothing and is not published.
    pub compromised_at: Option<Timestamp>,
}

impl PublicKey {
    /// The key over its 32 bytes (RFC 8032, 5.1.5), in good standing.
    ///
    /// # Errors
    /// [`WeakKey`] where the bytes are no point of the curve or one of small order.
    pub fn new(bytes: &[u8; 32]) -> Result<Self, WeakKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| WeakKey)?;
        if key.is_weak() {
            return Err(WeakKey);
        }
        let (kid, row, purpose) = (thumbprint(bytes), None, None);
        Ok(Self { key, kid, row, purpose, not_before: None, retired_at: None, compromised_at: None })
    }

    /// The public half of a stored signing key, with its standing.
    ///
    /// # Errors
    /// [`WeakKey`] where the row's `public` is not the base64url of a usable key.
    pub fn of(row: &KeyRow) -> Result<Self, WeakKey> {
        let bytes =
            URL_SAFE_NO_PAD.decode(row.public.as_bytes()).ok().and_then(|it| it.try_into().ok()).ok_or(WeakKey)?;
        let mut key = Self::new(&bytes)?;
        (key.row, key.purpose) = (Some(row.id), Some(row.id.purpose));
        key.not_before = Some(row.not_before);
        key.retired_at = row.retired_at;
        key.compromised_at = row.compromised_at;
        Ok(key)
    }

    /// Whether there is a time at which it signs: one that was replaced before its turn came has none.
    #[must_use]
    pub fn has_a_turn(&self) -> bool {
        self.not_before.zip(self.retired_at).is_none_or(|(from, to)| from < to)
    }

    /// Whether its turn was over at `at`, by any clock of processes that share a store.
    #[must_use]
    pub fn is_over_at(&self, at: Timestamp) -> bool {
        self.retired_at.is_some_and(|it| it.plus(CLOCKS_DIFFER) < at)
    }

    /// Whether it had its turn at `at`, an instant in whole seconds, by any clock of processes that share a store.
    #[must_use]
    pub fn had_its_turn_at(&self, at: Timestamp) -> bool {
        let latest = at.plus(CLOCKS_DIFFER).plus(Span::seconds(1));
        self.not_before.is_none_or(|it| it <= latest) && !self.is_over_at(at)
    }

    /// Whether it had its turn at `at`, an instant in whole seconds, by every clock of processes that share a store.
    #[must_use]
    pub fn surely_had_its_turn_at(&self, at: Timestamp) -> bool {
        let (earliest, latest) = (at.minus(CLOCKS_DIFFER), at.plus(CLOCKS_DIFFER).plus(Span::seconds(1)));
        self.not_before.is_some_and(|it| it <= earliest) && self.retired_at.is_none_or(|it| latest < it)
    }

    /// What it signs: each use has keys of its own. `None` of a key of which nobody says that, as key sets of before did not.
    #[must_use]
    pub const fn purpose(&self) -> Option<Purpose> {
        self.purpose
    }

    /// Whether what it signed may be of this use, as far as that is said.
    fn is_for(&self, purpose: Purpose) -> bool {
        self.purpose.is_none_or(|it| it == purpose)
    }

    /// The thumbprint by which receipts name it.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// Whether `signature` is this key's over `message`, by RFC 8032 at its strictest: a malleable signature or a point of
    /// small order proves nothing.
    #[must_use]
    pub fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.key.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// Why a receipt of the right form is not genuine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFault {
    /// No key of that name is trusted: never known, no longer published, or compromised.
    #[error("no trusted key for receipts has this name")]
    Unknown,
    /// The named key did not sign this.
    #[error("the signature does not fit")]
    BadSignature,
}

/// The keys a verifier trusts, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys(BTreeMap<String, PublicKey>);

impl PublicKeys {
    /// Takes a key in, or replaces what was known of it.
    pub fn insert(&mut self, key: PublicKey) {
        self.0.insert(key.kid.clone(), key);
    }

    /// Every key, compromised ones too, by name.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.values()
    }

    /// The key of this name.
    #[must_use]
    pub fn get(&self, kid: &str) -> Option<&PublicKey> {
        self.0.get(kid)
    }

    /// Whether one of these keys signed the receipt: the one it names, and no other is tried.
    ///
    /// # Errors
    /// [`KeyFault::Unknown`] where no trusted key has the name, or one that is for another use, else [`KeyFault::BadSignature`].
    pub fn verify(&self, receipt: &Parsed<'_>) -> Result<(), KeyFault> {
        self.verify_with(receipt, |_, _, _| false).map(drop)
    }

    /// As [`verify`](Self::verify), by the service that signs: what `signer` [made](Signer::made) itself it knows again sooner.
    /// Gives which stored key has signed, if it is one.
    ///
    /// # Errors
    /// As [`verify`](Self::verify): both give the same answer to every text.
    pub fn verify_own(&self, receipt: &Parsed<'_>, signer: &dyn Signer) -> Result<Option<SigningUse>, KeyFault> {
        self.verify_with(receipt, |kid, message, signature| signer.made(kid, message, signature))
    }

    fn verify_with(
        &self,
        receipt: &Parsed<'_>,
        made: impl FnOnce(&str, &[u8], &[u8; 64]) -> bool,
    ) -> Result<Option<SigningUse>, KeyFault> {
        let trusted = |key: &&PublicKey| key.compromised_at.is_none() && key.is_for(Purpose::Receipt);
        let key = self.0.get(receipt.kid()).filter(trusted).ok_or(KeyFault::Unknown)?;
        let (message, signature) = (receipt.signing_input().as_bytes(), receipt.signature());
        if made(&key.kid, message, signature) || key.signed(message, signature) {
            return Ok(key.row);
        }
        Err(KeyFault::BadSignature)
    }

    /// Reads a published key set (RFC 7517, 5). Keys of other kinds and uses are passed over, as that section asks.
    ///
    /// # Errors
    /// [`NotAKeySet`] where the text is no key set, an Ed25519 key in it is unusable, or a `kid` is not its key's
    /// thumbprint: such a set is not one that this service publishes.
    pub fn from_jwks(json: &str) -> Result<Self, NotAKeySet> {
        let set: JwkSet = serde_json::from_str(json).map_err(|source| NotAKeySet(source.to_string()))?;
        let mut keys = Self::default();
        for jwk in set.keys {
            if let Some(key) = jwk.signing_key()? {
                keys.insert(key);
            }
        }
        Ok(keys)
    }
}

impl FromIterator<PublicKey> for PublicKeys {
    fn from_iter<I: IntoIterator<Item = PublicKey>>(keys: I) -> Self {
        let mut set = Self::default();
        keys.into_iter().for_each(|key| set.insert(key));
        set
    }
}

/// The key set to publish at `/.well-known/jwks.json`: every key but the compromised ones, by name. `use` has no word for what a key signs
/// (RFC 7517, 4.2), so a member of svc's own says it; who does not know that passes it over (RFC 7517, 4).
#[must_use]
pub fn jwks_json(keys: &PublicKeys) -> String {
    let mut out = String::from(r#"{"keys":["#);
    for (place, key) in keys.iter().filter(|key| key.compromised_at.is_none()).enumerate() {
        // Base64url has no character that JSON would escape, and writing to a `String` cannot fail.
        let _ = write!(
            out,
            r#"{}{{"kty":"OKP","crv":"Ed25519","x":"{}","kid":"{}","use":"sig","alg":"EdDSA""#,
            if place == 0 { "" } else { "," },
            URL_SAFE_NO_PAD.encode(key.as_bytes()),
            key.kid
        );
        if let Some(purpose) = key.purpose {
            let _ = write!(out, r#","svc_use":"{}""#, purpose.as_str());
        }
        out.push('}');
    }
    out.push_str("]}");
    out
}

/// Why a text is no key set; the message names the fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a key set: {0}")]
pub struct NotAKeySet(String);

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    crv: Option<String>,
    x: Option<String>,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    svc_use: Option<String>,
}

impl Jwk {
    /// The key, where it is one that signs.
    fn signing_key(self) -> Result<Option<PublicKey>, NotAKeySet> {
        let is = |member: &Option<String>, wanted: &str| member.as_deref().is_none_or(|it| it == wanted);
        let verifies = self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|it| it == "verify"));
        let curve_fits = self.kty == "OKP" && self.crv.as_deref() == Some("Ed25519");
        if !curve_fits || !is(&self.usage, "sig") || !is(&self.alg, "EdDSA") || !verifies {
            return Ok(None);
        }
        let purpose = self.svc_use.map(|said| Purpose::ALL.into_iter().find(|it| it.as_str() == said));
        // What is for a use that is not known here is for none of those that are.
        if purpose == Some(None) {
            return Ok(None);
        }
        let text = self.x.unwrap_or_default();
        let bytes: Option<[u8; 32]> = URL_SAFE_NO_PAD.decode(&text).ok().and_then(|it| it.try_into().ok());
        let key = bytes.and_then(|bytes| PublicKey::new(&bytes).ok());
        let key = key.ok_or_else(|| NotAKeySet(format!("`{text}` is not an Ed25519 public key")))?;
        match self.kid {
            Some(kid) if kid != key.kid => Err(NotAKeySet(format!("`{kid}` is not the thumbprint of its key"))),
            _ => Ok(Some(PublicKey { purpose: purpose.flatten(), ..key })),
        }
    }
}
