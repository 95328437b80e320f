//! Any JSON text.

use svc_core::value::canonical::canonical;
use svc_core::value::json::Json;

use super::inputs;

/// What is read is written in one form, which reads as the same again.
///
/// # Panics
/// Where it does not.
pub fn json(data: &[u8]) {
    let Ok(json) = Json::parse(data) else { return };
    let text = canonical(&json);
    let again = Json::parse(text.as_bytes()).expect("the canonical form is JSON");
    assert_eq!(canonical(&again), text, "the canonical form is canonical");
    assert_eq!(again.has_unsafe_number(), json.has_unsafe_number(), "{text}");
}

/// Numbers of every kind, names that sort by UTF-16, escapes, nesting to the limit.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = inputs(&[
        r#"{"b":[1,-0,1.5,1e21,1e-7,9007199254740993,5e-324,1.7976931348623157e308],"a":null,"c":{"d":true,"e":false}}"#,
        r#"{"\u20ac":"Euro","\r":"CR","\ufb33":"Dalet","1":"One","\ud83d\ude00":"Smiley","\u0080":"Control","\u00f6":"O"}"#,
        r#""\"\\\/\b\f\n\r\t\u0000\u001f\u007f""#,
        "[[],{},\"\",0]",
        " 18446744073709551615 ",
    ]);
    seeds.push([vec![b'['; 64], vec![b']'; 64]].concat());
    seeds
}
