//! Values in rows: plain strings, read without a copy.
//!
//! **Invariant:** a row that was written is read by every later release. So what is stored is checked by rules that nobody else moves: a
//! type whose texts depend on a list (currencies, public suffixes, zones) has a reader for stored ones, `parse_stored`, that asks for
//! their shape alone. What comes from outside is read by a type's own `parse`, never by this.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, Visitor};

/// Reads a string by a type's own parser. Serde's own readers of strings would make a copy first; a row has a dozen ids
/// and texts, and every decision reads rows.
pub(crate) fn read<'de, D, T, E, P>(from: D, parse: P) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: fmt::Display,
    P: FnOnce(&str) -> Result<T, E>,
{
    from.deserialize_str(Text { parse, value: PhantomData })
}

struct Text<P, T> {
    parse: P,
    value: PhantomData<T>,
}

impl<T, E: fmt::Display, P: FnOnce(&str) -> Result<T, E>> Visitor<'_> for Text<P, T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_str<F: de::Error>(self, text: &str) -> Result<T, F> {
        (self.parse)(text).map_err(F::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Currency;

    /// Strings with and without escapes are read, other types are not, and the parser's reason is told.
    #[test]
    fn a_stored_value_is_read_by_its_parser() {
        for text in [r#""EUR""#, r#""\u0045UR""#] {
            assert!(matches!(serde_json::from_str::<Currency>(text), Ok(Currency::EUR)), "{text}");
        }
        assert!(serde_json::from_value::<Currency>("EUR".into()).is_ok());
        for text in ["1", "null", "[\"EUR\"]", "{}"] {
            assert!(serde_json::from_str::<Currency>(text).is_err(), "{text}");
        }
        let told = serde_json::from_str::<Currency>("\"EURO\"").map_err(|fault| fault.to_string());
        assert!(matches!(told, Err(reason) if reason.contains("ISO 4217")));
    }
}
