//! Digests: SHA-256 of what may not be kept, and row ids made of the first half of one.

use std::fmt;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::Invalid;
use super::bits::Bits;
use super::link::RowId;

/// A SHA-256 digest. Secrets are compared by theirs, so the time a comparison takes tells nothing of the secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Characters that storage keeps it in.
    pub const STORED: usize = 43;

    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(bytes.as_ref()).into())
    }

    /// The digest with these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first half, as the bits of a row's key.
    #[must_use]
    pub fn bits(&self) -> u128 {
        self.0.iter().take(16).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
    }

    /// Writes it as storage has it: 43 base64 characters.
    pub(crate) fn push_stored(&self, out: &mut String) {
        STANDARD_NO_PAD.encode_string(self.0, out);
    }

    /// As the interface writes it: `sha256:` and 64 lower-case hex digits.
    #[must_use]
    pub fn named(&self) -> String {
        let mut text = String::with_capacity(71);
        // Writing into a string cannot fail.
        let _ = write!(text, "sha256:{self}");
        text
    }

    /// Reads 64 hex digits.
    ///
    /// # Errors
    /// [`Invalid`] for anything else.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| Invalid::new("must be 64 hex digits"))?;
        Ok(Self(bytes))
    }
}

/// A digest of what comes in parts.
#[derive(Clone, Debug, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest(self.0.clone().finalize().into())
    }
}

/// 64 lower-case hex digits.
impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        hex::encode_to_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
        out.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// In storage: 43 base64 characters, a third less than hex digits.
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = [0; Self::STORED];
        let length = STANDARD_NO_PAD.encode_slice(self.0, &mut text).map_err(serde::ser::Error::custom)?;
        let text = text.get(..length).and_then(|it| std::str::from_utf8(it).ok());
        to.serialize_str(text.ok_or_else(|| serde::ser::Error::custom("no base64"))?)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        crate::value::stored::read(from, |text| {
            let bytes = STANDARD_NO_PAD.decode(text).ok().and_then(|it| it.try_into().ok());
            bytes.map(Self).ok_or_else(|| Invalid::new("must be 43 base64 characters"))
        })
    }
}

macro_rules! digest_ids {
    ($($(#[$doc:meta])* $name:ident $domain:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Bits);

        impl $name {
            /// The row that these parts name: the first half of a SHA-256 over them, each behind its length.
            #[must_use]
            pub fn of(parts: &[&[u8]]) -> Self {
                let mut hash = Sha256::new().chain_update($domain);
                for part in parts {
                    hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
                    hash.update(part);
                }
                Self(Bits::of(Digest(hash.finalize().into()).bits()))
            }

            /// The bits.
            #[must_use]
            pub const fn bits(self) -> u128 { self.0.get() }
        }
        impl RowId for $name {
            fn parts(self) -> (u128, Option<u32>) { (self.bits(), None) }
            fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
                number.is_none().then_some(Self(Bits::of(bits)))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result { write!(out, "{:032x}", self.bits()) }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> { to.collect_str(&format_args!("{:032x}", self.bits())) }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                crate::value::stored::read(from, |text| u128::from_str_radix(text, 16).map(|bits| Self(Bits::of(bits))))
            }
        }
    )*};
}

digest_ids! {
    /// A sliding line that seals its older entries into blocks.
    BlockOwner "line";
    /// A workspace's template: named by the workspace and its name.
    TemplateId "template";
    /// The service token that has a name in a workspace.
    TokenNameId "token name";
    /// A credential's row: named by the digest of the whole key.
    CredentialId "credential";
    /// Who uses an e-mail address: an account, or a principal of one workspace.
    EmailUseId "email";
    /// Payments of one agent to one registrable domain in one currency.
    PayeeId "payee";
    /// What was received over an integration.
    ReceivedId "received";
    /// An agent's idempotency key.
    ReplayId "replay";
    /// A one-time link's row: named by the digest of its token.
    SignInLinkId "sign-in link";
    /// A sign-in that waits for its second factor: named by the digest of its token.
    PendingSignInId "pending sign-in";
    /// A client's session id in a workspace.
    SessionKey "session";
    /// What an agent asks of the same kind about the same place.
    TopicId "topic";
    /// A task, by its workspace and its id.
    TaskKey "task";
    /// What entered a session's context, by its workspace and the client's id of it.
    ContextKey "context";
    /// The refusals of one type that a credential has met.
    RefusalKey "refusal";
    /// A day's model traffic of one key, principal, model and class.
    CellId "cell";
    /// The one row that counts unused OAuth clients.
    ClientTallyId "oauth clients";
    /// A consent page: named by the digest of its token.
    ConsentId "consent";
    /// An authorization code: named by its digest.
    CodeId "authorization code";
    /// A refresh token: named by its digest.
    RefreshId "refresh token";
    /// Whom an identity provider of a workspace knows by a name: named by the workspace, the issuer and the name.
    SsoLinkId "single sign-on link";
    /// A signed-in session's row: named by the digest of its cookie.
    SessionDigest "sign-in";
}
