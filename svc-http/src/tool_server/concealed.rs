//! What an MCP server is shown, taken out of what it says: a credential of the vault is given back to nobody, also not by a
//! server that quotes it in a result.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use svc_core::value::secret::Secret;

/// What stands in the place of a credential.
const CONCEALED: &str = "…";
/// Bytes of the shortest credential that is looked for. A shorter one is a word like others, and taking it out would spoil what
/// has nothing to do with it.
const SECRET_BYTES_MIN: usize = 8;

/// Bytes that a text in an address keeps as they are; some writers keep the second ones too.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const PLAINER: &AsciiSet = &PLAIN.remove(b'!').remove(b'\'').remove(b'(').remove(b')').remove(b'*');

/// What is looked for: what a server is shown, and that as a text may hold it that is written in another way.
pub(super) struct Forms(Secret<Vec<String>>);

impl Forms {
    /// Of what a server is shown: the whole of it, and its parts.
    pub(super) fn of<'a>(shown: impl Iterator<Item = &'a str>) -> Self {
        let mut all = Vec::new();
        for it in shown {
            add(&mut all, it);
            // A user and a password are shown in base64, and meant as they are.
            let decoded = STANDARD_NO_PAD.decode(it.trim_end_matches('=')).ok();
            if let Some(pair) = decoded.and_then(|it| String::from_utf8(it).ok()).filter(|it| it.contains(':')) {
                add(&mut all, &pair);
                pair.split_once(':').iter().for_each(|(_, password)| add(&mut all, password));
            }
        }
        Self(Secret::new(all))
    }

    fn are_in(&self, text: &str) -> bool {
        self.0.expose().iter().any(|it| text.contains(it))
    }

    fn taken_out_of(&self, text: &str) -> String {
        self.0.expose().iter().fold(text.to_owned(), |text, it| text.replace(it, CONCEALED))
    }
}

impl fmt::Debug for Forms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Forms").finish_non_exhaustive()
    }
}

/// Adds a text in all forms in which it is looked for.
fn add(all: &mut Vec<String>, plain: &str) {
    if plain.len() < SECRET_BYTES_MIN {
        return;
    }
    let mut put = |form: String| {
        if form.len() >= SECRET_BYTES_MIN && !all.contains(&form) {
            all.push(form);
        }
    };
    put(plain.to_owned());
    // In a JSON text within a text.
    let quoted = serde_json::Value::from(plain).to_string();
    let quoted = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
    put(quoted.to_owned());
    put(quoted.replace('/', "\\/"));
    for set in [PLAIN, PLAINER] {
        let encoded = utf8_percent_encode(plain, set).to_string();
        put(in_lower_case(&encoded));
        put(encoded);
    }
    // In base64, wherever in what is encoded it stands: but for what the bytes beside it change.
    for before in 0..3_usize {
        let padded = [[0; 2].get(..before).unwrap_or_default(), plain.as_bytes()].concat();
        let (from, to) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            put(engine.encode(&padded).get(from..to).unwrap_or_default().to_owned());
        }
    }
}

/// The same with the digits of `%2F` in lower case, as some write them.
fn in_lower_case(encoded: &str) -> String {
    let mut out = String::with_capacity(encoded.len());
    for (at, part) in encoded.split('%').enumerate() {
        match part.split_at_checked(2).filter(|_| at > 0) {
            Some((digits, rest)) => out.extend(["%", &digits.to_ascii_lowercase(), rest]),
            None => out.push_str(part),
        }
    }
    out
}

/// A JSON text without `secrets` in its strings, however they are escaped. All else stays byte for byte, numbers too. A text that
/// is no JSON stays what it is or loses them.
pub(super) fn conceal<'a>(json: &'a str, secrets: &Forms) -> Cow<'a, str> {
    let may_hold = json.contains('\\') || secrets.are_in(json);
    if secrets.0.expose().is_empty() || !may_hold {
        return Cow::Borrowed(json);
    }
    let (mut out, mut rest) = (String::new(), json);
    while let Some((before, from)) = rest.find('"').and_then(|at| rest.split_at_checked(at)) {
        let (string, after) = from.split_at_checked(length(from)).unwrap_or((from, ""));
        out.push_str(before);
        out.push_str(&without(string, secrets));
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

/// A string as JSON has it, without the secrets.
fn without<'a>(string: &'a str, secrets: &Forms) -> Cow<'a, str> {
    if string.contains('\\')
        && let Ok(Said(said)) = serde_json::from_str(string)
    {
        if !secrets.are_in(&said) {
            return Cow::Borrowed(string);
        }
        return Cow::Owned(serde_json::Value::String(secrets.taken_out_of(&said)).to_string());
    }
    if secrets.are_in(string) { Cow::Owned(secrets.taken_out_of(string)) } else { Cow::Borrowed(string) }
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

    fn forms(secret: &str) -> Forms {
        Forms::of(std::iter::once(secret))
    }

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
            assert_eq!(conceal(said, &forms(SECRET)), told);
        }
        let number = r#"{"a":12345678,"b":"12345678"}"#;
        assert_eq!(conceal(number, &forms("12345678")), r#"{"a":12345678,"b":"…"}"#);
        assert_eq!(conceal(r#"["abc","\\"]"#, &forms("abc")), r#"["abc","\\"]"#, "a word like others");
        assert_eq!(conceal(r#"["\\"]"#, &forms("")), r#"["\\"]"#, "there is none");
    }

    /// So it is where a text holds it in another writing: in JSON or an address within the text, in base64, and the password of a user
    /// who is shown in base64.
    #[test]
    fn a_credential_is_taken_out_of_other_writings() {
        let secret = "planted/secret+\"wxyz!";
        for (said, told) in [
            (serde_json::to_string(secret).unwrap().replace('/', "\\/"), "\"…\""),
            (serde_json::to_string(secret).unwrap(), "\"…\""),
            ("https://x.example/?t=planted%2Fsecret%2B%22wxyz%21&b=1".to_owned(), "https://x.example/?t=…&b=1"),
            ("t=planted%2fsecret%2b%22wxyz!".to_owned(), "t=…"),
        ] {
            let said = Value::from(said).to_string();
            assert_eq!(conceal(&said, &forms(secret)), Value::from(told).to_string(), "{said}");
        }
        for beside in ["", "a", "ab", "abc"] {
            for engine in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let encoded = engine.encode(format!("{beside}{secret}{beside}"));
                let told = conceal(&Value::from(encoded.clone()).to_string(), &forms(secret)).into_owned();
                assert!(told.contains('…') && told.chars().count() < 12, "{encoded} {told}");
            }
        }
        let pair = STANDARD_NO_PAD.encode("svc-user:the-password");
        for (said, told) in [
            ("svc-user:the-password", "…"),
            ("you are svc-user with the-password", "you are svc-user with …"),
            ("svc-user", "svc-user"),
        ] {
            assert_eq!(
                conceal(&Value::from(said).to_string(), &forms(&format!("{pair}=="))),
                Value::from(told).to_string()
            );
        }
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
            let told: Vec<String> = serde_json::from_str(&conceal(&said, &forms(SECRET))).unwrap();
            let expected: Vec<String> = texts.iter().map(|it| it.replace(SECRET, CONCEALED)).collect();
            prop_assert_eq!(told, expected);
        }

        /// Nothing that comes makes it fail.
        #[test]
        fn any_text_is_taken(text in "\\PC{0,40}") {
            let _ = conceal(&text, &forms(SECRET));
            let _ = conceal(&format!("\"\\{text}{SECRET}"), &forms(&text));
        }
    }
}
