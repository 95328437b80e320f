//! JSON text that is kept as it was written: hashed once, it must read the same for ever.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as text. In a row's body it stands as the value that it is, not as a string with everything escaped.
#[derive(Clone)]
pub struct Verbatim(Box<RawValue>);

impl Verbatim {
    /// The value that `text` writes; a text that is no JSON is kept as a JSON string.
    #[must_use]
    pub fn of(text: String) -> Self {
        Self(match serde_json::from_str::<&RawValue>(&text) {
            Ok(json) => json.to_owned(),
            Err(_) => serde_json::value::to_raw_value(&text).unwrap_or_default(),
        })
    }
}

impl Deref for Verbatim {
    type Target = str;
    fn deref(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Verbatim {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Verbatim {}

impl From<&str> for Verbatim {
    fn from(text: &str) -> Self {
        Self::of(text.to_owned())
    }
}

impl From<String> for Verbatim {
    fn from(text: String) -> Self {
        Self::of(text)
    }
}

impl fmt::Debug for Verbatim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.get())
    }
}

impl fmt::Display for Verbatim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.get())
    }
}

impl Serialize for Verbatim {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Verbatim {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The text comes back as it was, member order and all, and lies in a body without escapes.
    #[test]
    fn json_is_kept_as_written() {
        let kept = Verbatim::of(r#"{"b":1,"a":"x"}"#.to_owned());
        let body = serde_json::to_string(&[&kept]).unwrap();
        assert_eq!(body, r#"[{"b":1,"a":"x"}]"#);
        assert_eq!(serde_json::from_str::<Vec<Verbatim>>(&body).unwrap()[0], kept);
        assert_eq!(&*Verbatim::of("no json".to_owned()), "\"no json\"");
    }
}
