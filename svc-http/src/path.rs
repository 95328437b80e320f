//! Paths that are the same although they are written in different ways.
//!
//! **Invariant:** a path has its one form before anything looks at it: route, rate, envelope, credential and handler see the same.

use http::Uri;
use http::uri::PathAndQuery;

/// The address with each unreserved character of its path as itself: to send one encoded is to send the same (RFC 3986, 6.2.2.2). All
/// else stays as it was sent, so that `%2F` is no slash and nothing is decoded twice; the query is whoever's who reads it.
pub(crate) fn in_one_form(uri: Uri) -> Uri {
    let Some(decoded) = decoded(uri.path()) else { return uri };
    let query = uri.query().map(|it| format!("?{it}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(decoded + &query).ok();
    Uri::from_parts(parts).unwrap_or(uri)
}

/// A path with its unreserved characters as themselves; `None` where they are so already.
fn decoded(path: &str) -> Option<String> {
    let mut parts = path.split('%');
    let mut whole = parts.next().filter(|it| it.len() < path.len())?.to_owned();
    for part in parts {
        let sent = part.get(..2).filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
        let byte = sent.and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte.filter(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_' | b'~')) {
            Some(byte) => {
                whole.push(char::from(byte));
                whole.push_str(part.get(2..).unwrap_or_default());
            }
            None => {
                whole.push('%');
                whole.push_str(part);
            }
        }
    }
    (whole.len() != path.len()).then_some(whole)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Letters, digits and the four signs are themselves, once, and nothing else is.
    #[test]
    fn unreserved_characters_alone_are_decoded() {
        for (sent, is) in [
            ("/v1/act%69ons/%61uthorize", "/v1/actions/authorize"),
            ("/%7Ea%2d%2E%5f%30?q=%61", "/~a-._0?q=%61"),
            ("http://gate.example/%61?b", "http://gate.example/a?b"),
            ("/v1%2Factions/%00%25%3F%23%2f", "/v1%2Factions/%00%25%3F%23%2f"),
            ("/%2561", "/%2561"),
            ("/%%361", "/%61"),
            ("/%6", "/%6"),
            ("/%", "/%"),
            ("/%zz%c3%a9", "/%zz%c3%a9"),
            ("/%+6", "/%+6"),
            ("*", "*"),
        ] {
            assert_eq!(
                in_one_form(sent.parse().unwrap()).to_string(),
                is.parse::<Uri>().unwrap().to_string(),
                "{sent}"
            );
        }
    }
}
