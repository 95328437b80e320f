//! What goes on to a provider of the client's own API beside the body: of the query and the headers what is known to be that API's.
//!
//! **Invariant:** nothing of it is a text: what is looked for in bodies does not go out beside them.

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use svc_core::dlp;

/// Headers of the messages API.
const HEADERS: [&str; 2] = ["anthropic-version", "anthropic-beta"];
/// Members of the query: of the messages API, and of hosts of the chat API that have versions.
const QUERY: [&str; 2] = ["beta", "api-version"];
/// Bytes of one word, and of a list of them.
const WORD_MAX: usize = 128;
const LIST_MAX: usize = 4_096;

/// What of the query goes on.
pub(super) fn query(uri: &Uri) -> Option<Box<str>> {
    let query = uri.query()?;
    let of = |name: &str| query.split('&').find(|it| it.split_once('=').is_some_and(|(own, _)| own == name));
    let fits =
        |pair: &&str| pair.split_once('=').is_some_and(|(_, value)| is_word(value) && dlp::scan(value).is_empty());
    let known: Vec<&str> = QUERY.iter().filter_map(|it| of(it)).filter(fits).collect();
    (!known.is_empty()).then(|| known.join("&").into())
}

/// What of the headers goes on.
pub(super) fn headers(all: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let named =
        |name: &'static str| all.get_all(name).iter().map(move |it| (HeaderName::from_static(name), it.clone()));
    HEADERS.into_iter().flat_map(named).filter(|(_, value)| is_list(value)).collect()
}

/// Whether a header is a list of words.
fn is_list(value: &HeaderValue) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let words = || text.split(',').map(str::trim).filter(|it| !it.is_empty());
    text.len() <= LIST_MAX && words().all(is_word) && dlp::scan(text).is_empty()
}

/// Whether a text is a name, a version or a switch.
fn is_word(text: &str) -> bool {
    let has = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_');
    (1..=WORD_MAX).contains(&text.len()) && text.bytes().all(has)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Of a query what is the API's own goes on, and nothing that a client has made up or that holds what must not go out.
    #[test]
    fn of_a_query_what_is_known_goes_on() {
        for (sent, goes) in [
            ("beta=true", Some("beta=true")),
            ("api-version=2025-04-01-preview", Some("api-version=2025-04-01-preview")),
            ("note=card+4111-1111-1111-1111&api-version=2024-10-21", Some("api-version=2024-10-21")),
            ("api-version=preview&beta=true", Some("beta=true&api-version=preview")),
            ("beta=true&beta=false", Some("beta=true")),
            ("beta=card+4111", None),
            ("beta=4111-1111-1111-1111", None),
            ("beta=a%20b", None),
            ("beta&api-version=", None),
            ("betas=true", None),
            ("", None),
        ] {
            let uri: Uri = format!("/v1/chat/completions?{sent}").parse().unwrap();
            assert_eq!(query(&uri).as_deref(), goes, "{sent}");
        }
        assert_eq!(query(&Uri::from_static("/v1/messages")), None);
    }

    /// Lists of words go on line by line, and no text does.
    #[test]
    fn of_headers_lists_of_words_go_on() {
        let long = "a".repeat(WORD_MAX + 1);
        let many = "a,".repeat(LIST_MAX);
        let mut all = HeaderMap::new();
        let betas = [
            "claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14, fine-grained-tool-streaming-2025-05-14",
            "context-1m-2025-08-07",
            "max-tokens-3-5-sonnet-2024-07-15,token-efficient-tools-2025-02-19,computer-use-2025-11-24,",
        ];
        let texts = ["my card", "4111-1111-1111-1111", "a,card-4111111111111111", "alice@example.com", &long, &many];
        for value in betas.into_iter().chain(texts) {
            all.append("anthropic-beta", value.parse().unwrap());
        }
        all.append("anthropic-beta", HeaderValue::from_bytes(b"\xe9").unwrap());
        all.append("anthropic-version", HeaderValue::from_static("2023-06-01"));
        all.append("x-other", HeaderValue::from_static("a"));
        let gone: Vec<_> = headers(&all).into_iter().map(|(_, value)| value.to_str().unwrap().to_owned()).collect();
        assert_eq!(gone, [&["2023-06-01"], &betas[..]].concat());
    }
}
