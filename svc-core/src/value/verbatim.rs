//! JSON text that is kept as it was written: hashed once, it must read the same for ever.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as text, cheap to clone. In a row's body it stands as the value that it is, not as a string with everything escaped.
#[derive(Clone, PartialEq, Eq)]
pub struct Verbatim(Arc<str>);

impl Verbatim {
    /// The value that `text` writes; a text that is no JSON is kept as a JSON string.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(match serde_json::from_str::<&RawValue>(text) {
            Ok(json) => json.get().into(),
            Err(_) => super::canonical::text(text).into(),
        })
    }

    /// The value that `text` writes, which is JSON for certain: svc has just written it. Nothing looks at it again, as deciding
    /// writes several.
    #[must_use]
    pub(crate) fn written(text: String) -> Self {
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok_and(|it| it.get() == text), "no JSON: {text}");
        Self(text.into())
    }
}

impl Deref for Verbatim {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Verbatim {
    fn from(text: &str) -> Self {
        Self::of(text)
    }
}

impl From<String> for Verbatim {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl fmt::Debug for Verbatim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Display for Verbatim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(|it| Self(it.get().into()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The text comes back as it was, member order and all, and lies in a body without escapes.
    #[test]
    fn json_is_kept_as_written() {
        let kept = Verbatim::of(r#"{"b":1,"a":"x"}"#);
        let body = serde_json::to_string(&[&kept]).unwrap();
        assert_eq!(body, r#"[{"b":1,"a":"x"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Verbatim>>(&body).unwrap()[0], kept);
        assert_eq!(&*Verbatim::of("no json"), "\"no json\"");
    }
}
