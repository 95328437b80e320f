//! The salt of an action's digest and commitments, as text.

/// A salt as base64url, which is how a decision shows it.
#[must_use]
pub fn salt_text(salt: &[u8; 16]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(salt)
}

/// A salt in storage.
pub(crate) mod salt_serde {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(salt: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&super::salt_text(salt))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[u8; 16], D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let bytes = URL_SAFE_NO_PAD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        bytes.try_into().map_err(|_| serde::de::Error::custom("not 16 bytes"))
    }
}
