//! What an MCP server is shown, taken out of what it says: a credential of the vault is given back to nobody, also not by a
//! server that quotes it in a result.

use std::borrow::Cow;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// What stands in the place of a credential.
const CONCEALED: &str = "…";
/// Bytes of the shortest credential that is looked for. A shorter one is a word like others, and taking it out would spoil what
/// has nothing to do with it.
const SECRET_BYTES_MIN: usize = 8;

/// A JSON text without `secret` in its strings, however they are escaped. All else stays byte for byte, numbers too. A text that
/// is no JSON stays what it is or loses the secret.
pub(super) fn conceal<'a>(json: &'a str, secret: &str) -> Cow<'a, str> {
    let may_hold = json.contains(secret) || json.contains('\\');
    if secret.len() < SECRET_BYTES_MIN || !may_hold {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest) = (String::new(), json);
    while let Some((before, from)) = rest.find('"').and_then(|at| rest.split_at_checked(at)) {
        let (string, after) = from.split_at_checked(length(from)).unwrap_or((from, ""));
        out.push_str(before);
        out.push_str(&without(string, secret));
        rest = after;
    }
    out.push_str(rest);
    if out == json { Cow::Borrowed(json) } else { Cow::Owned(out) }
}

/// The bytes of the string that `text` begins with, its quotation marks included; all of it where it does not end.
fn length(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A string as JSON has it, without the secret.
fn without<'a>(string: &'a str, secret: &str) -> Cow<'a, str> {
    if string.contains('\\')
        && let Ok(Said(said)) = serde_json::from_str(string)
    {
        if !said.contains(secret) {
            return Cow::Borrowed(string);
        }
        return Cow::Owned(serde_json::Value::String(said.replace(secret, CONCEALED)).to_string());
    }
    if string.contains(secret) { Cow::Owned(string.replace(secret, CONCEALED)) } else { Cow::Borrowed(string) }
}

/// What a string says. Half a surrogate pair in it, which readers take each in their own way, hides nothing of what stands beside.
struct Said(String);

impl<'de> Deserialize<'de> for Said {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // As bytes: as a text it would be none at all.
        from.deserialize_bytes(Saying)
    }
}

struct Saying;

impl Visitor<'_> for Saying {
    type Value = Said;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_bytes<E>(self, said: &[u8]) -> Result<Said, E> {
        Ok(Said(String::from_utf8_lossy(said).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    const SECRET: &str = "planted/secret-wxyz";

    /// It is taken out of values and names, alone or within a text, written plainly or with escapes; nothing else changes.
    #[test]
    fn a_credential_is_taken_out_of_strings() {
        for (said, told) in [
            (r#"{ "a": "planted/secret-wxyz", "n": 1.50 }"#, r#"{ "a": "…", "n": 1.50 }"#),
            (r#"{"planted/secret-wxyz":["Bearer planted/secret-wxyz!"]}"#, r#"{"…":["Bearer …!"]}"#),
            (r#"{"a":"x\\\"planted\/secret-wxyz\n"}"#, r#"{"a":"x\\\"…\n"}"#),
            (r#"{"a":"\u0070lanted/secret-wxyz","b":"\u00e9"}"#, r#"{"a":"…","b":"\u00e9"}"#),
            (r#"{"a":"planted","b":"/secret-wxyz","c":"\\"}"#, r#"{"a":"planted","b":"/secret-wxyz","c":"\\"}"#),
            (r#"["planted/secret-wxyz"#, r#"["…"#),
            // Half a surrogate pair is no text, and what stands beside it is looked at all the same.
            (r#"["\ud800 planted\/secret-wxyz"]"#, r#"["��� …"]"#),
            (r#"["\uDC00\ud83d\ude00planted\/secret-wxyz\uD800"]"#, r#"["���😀…���"]"#),
            (r#"["\ud800\u0070lanted\/secret-wxyz"]"#, r#"["���…"]"#),
            (r#"["\ud800 planted","\ud800"]"#, r#"["\ud800 planted","\ud800"]"#),
            ("", ""),
        ] {
            assert_eq!(conceal(said, SECRET), told);
        }
        let number = r#"{"a":12345678,"b":"12345678"}"#;
        assert_eq!(conceal(number, "12345678"), r#"{"a":12345678,"b":"…"}"#);
        assert_eq!(conceal(r#"["abc","\\"]"#, "abc"), r#"["abc","\\"]"#, "a word like others");
        assert_eq!(conceal(r#"["\\"]"#, ""), r#"["\\"]"#, "there is none");
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![Just(SECRET.to_owned()), "[\\x00-\\x7fé…\"\\\\]{0,6}", Just("planted".to_owned())];
        proptest::collection::vec(piece, 0..6).prop_map(|it| it.concat())
    }

    proptest! {
        /// Whatever is said stays JSON, says the same otherwise, and holds the credential nowhere.
        #[test]
        fn what_is_left_is_the_same_without_it(texts in proptest::collection::vec(pieces(), 0..4), escaped: bool) {
            let mut said = Value::from(texts.clone()).to_string();
            if escaped {
                said = said.replace('/', "\\/").replace('w', "\\u0077");
            }
            let told: Vec<String> = serde_json::from_str(&conceal(&said, SECRET)).unwrap();
            let expected: Vec<String> = texts.iter().map(|it| it.replace(SECRET, CONCEALED)).collect();
            prop_assert_eq!(told, expected);
        }

        /// Nothing that comes makes it fail.
        #[test]
        fn any_text_is_taken(text in "\\PC{0,40}") {
            let _ = conceal(&text, SECRET);
            let _ = conceal(&format!("\"\\{text}{SECRET}"), SECRET);
        }
    }
}
