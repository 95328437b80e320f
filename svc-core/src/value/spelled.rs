//! JSON in which a number that readers round stands as it was written.

use std::ops::Range;

use super::json::{Json, Malformed};
use super::number::literals;

/// Reads one JSON text as [`Json::parse`] does, with the text by which it was written in the place of each number that is not
/// [safe](super::json::Number::is_safe): no two of them are taken for one, and whoever reads it next has it to the digit.
///
/// # Errors
/// As [`Json::parse`].
pub fn spelled(bytes: &[u8]) -> Result<Json, Malformed> {
    let mut json = Json::parse(bytes)?;
    if let (true, Ok(text)) = (json.has_unsafe_number(), std::str::from_utf8(bytes)) {
        spell(&mut json, text, &mut literals(text));
    }
    Ok(json)
}

fn spell(json: &mut Json, text: &str, literals: &mut impl Iterator<Item = Range<usize>>) {
    match json {
        Json::Null | Json::Bool(_) | Json::Text(_) => {}
        Json::Number(number) => {
            let literal = literals.next().and_then(|it| text.get(it)).filter(|_| !number.is_safe());
            if let Some(literal) = literal {
                *json = Json::Text(literal.to_owned());
            }
        }
        Json::List(items) => items.iter_mut().for_each(|it| spell(it, text, literals)),
        Json::Object(members) => members.iter_mut().for_each(|(_, it)| spell(it, text, literals)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::super::canonical::canonical;
    use super::*;

    /// Whatever is not safe stands as it was written, beside all else as it is, and neighbours stay apart.
    #[test]
    fn what_readers_round_stands_as_it_was_written() {
        let form = |text: &str| canonical(&spelled(text.as_bytes()).unwrap());
        for text in ["9007199254740992", "-100000000000000000000", "1e21", "1E+400", "18446744073709551615"] {
            let beside = format!(r#"{{"a":[1.5,{text},"1e21",-0],"b":{{"c":{text},"d":9007199254740991}}}}"#);
            let kept = format!(r#"{{"a":[1.5,"{text}","1e21",0],"b":{{"c":"{text}","d":9007199254740991}}}}"#);
            assert_eq!(form(&beside), kept, "{text}");
        }
        assert_ne!(form("100000000000000000001"), form("100000000000000000002"));
        assert_eq!(form("[1,\"2\",null]"), "[1,\"2\",null]");
        assert!(spelled(b"{").is_err());
    }
}
