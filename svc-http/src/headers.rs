//! Reading the headers that mean something on every route.
//!
//! **Invariant:** a credential that the route does not take is not read, so it can neither help nor harm.

use http::header::{AUTHORIZATION, CONTENT_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::refusal::{FieldError, Refusal};

use crate::entropy;
use crate::routes::Auth;
use crate::trace::push_hex;

/// Identifies a request in answers and logs.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A key, where clients of model APIs send it.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Makes a repeated request answer as the first did.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Longest request id that is taken from a client.
const REQUEST_ID_MAX: usize = 128;

/// The client's request id where it is 1 to 128 of `[A-Za-z0-9._-]` and sent once, else a new one.
#[must_use]
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    if let Ok(Some(sent)) = single(headers, &X_REQUEST_ID) {
        let bytes = sent.as_bytes();
        let plain = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-');
        if (1..=REQUEST_ID_MAX).contains(&bytes.len()) && bytes.iter().all(plain) {
            return sent.clone();
        }
    }
    let mut text = Vec::with_capacity(36);
    text.extend_from_slice(b"req_");
    push_hex(&mut text, &entropy::bytes::<16>());
    HeaderValue::from_maybe_shared(bytes::Bytes::from(text)).unwrap_or(HeaderValue::from_static("req_"))
}

/// The one value of a header; `None` where it is not sent.
///
/// # Errors
/// 400 with the header as field where it is sent more than once: which of them counts would be a guess.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(Refusal::invalid_field(name.as_str(), "was sent more than once")),
    }
}

/// The credential for `auth`, without its scheme; `None` where the route takes none.
///
/// # Errors
/// 400 where a header came twice or two headers differ; 401 where nothing of the right kind was sent.
pub fn credential(auth: Auth, headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let (key_header, prefixes): (bool, &[&str]) = match auth {
        Auth::Open => return Ok(None),
        Auth::Agent => (false, &["ask_", "aat_"]),
        Auth::Workspace | Auth::WorkspaceAdmin => (true, &["ask_", "aat_"]),
        Auth::Token => (false, &["ims_"]),
    };
    let bearer = single(headers, &AUTHORIZATION)?.and_then(bearer);
    let key = if auth == Auth::Token { None } else { single(headers, &X_API_KEY)?.and_then(|it| it.to_str().ok()) };
    // Two keys that differ are a mix-up of the client's, even where one of the headers would not be read.
    if let (Some(bearer), Some(key)) = (bearer, key)
        && bearer != key
    {
        return Err(Refusal::invalid_field(X_API_KEY.as_str(), "differs from the key in `authorization`"));
    }
    let sent = bearer.or_else(|| key.filter(|_| key_header));
    match sent.filter(|it| prefixes.iter().any(|prefix| it.starts_with(prefix))) {
        Some(credential) => Ok(Some(credential)),
        None => Err(Refusal::unauthenticated()),
    }
}

/// Checks that the body is sent as it is: this server decodes no compression.
///
/// # Errors
/// The fault, with the header as field.
pub fn body_is_plain(headers: &HeaderMap) -> Result<(), FieldError> {
    for value in headers.get_all(CONTENT_ENCODING) {
        if !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") {
            return Err(FieldError::new(CONTENT_ENCODING.as_str(), "must be `identity` or absent"));
        }
    }
    Ok(())
}

/// What stands behind the scheme `Bearer`, in any case.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, rest) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| rest.trim_matches(' '))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::refusal::Kind;

    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect::<Vec<_>>()
            .into_iter()
            .fold(HeaderMap::new(), |mut map, (name, value)| {
                map.append(name, value);
                map
            })
    }

    /// A client's request id is kept where it is plain, else replaced.
    #[test]
    fn request_ids_are_kept_where_plain() {
        let of = |id: &str| request_id(&headers(&[("x-request-id", id)])).to_str().unwrap().to_owned();
        for good in ["a", "A.b_c-9", &"x".repeat(128)] {
            assert_eq!(of(good), good);
        }
        for bad in ["", "a b", "a/b", "a\"b", &"x".repeat(129)] {
            let new = of(bad);
            assert!(new.starts_with("req_") && new.len() == 36, "{bad}: {new}");
        }
        assert!(
            request_id(&headers(&[("x-request-id", "a"), ("x-request-id", "b")])).to_str().unwrap().starts_with("req_")
        );
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    /// Each route reads one kind of credential, from the headers that carry it.
    #[test]
    fn one_kind_of_credential_is_read() {
        let of = |auth, lines: &[(&'static str, &str)]| {
            let headers = headers(lines);
            credential(auth, &headers).map(|it| it.map(str::to_owned)).map_err(|it| it.kind())
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of(Auth::Open, &[("authorization", "Bearer ask_1"), ("authorization", "x")]), Ok(None));
        assert_eq!(of(Auth::Agent, &[("authorization", "Bearer ask_1")]), some("ask_1"));
        assert_eq!(of(Auth::Agent, &[("authorization", "bEARER  aat_1")]), some("aat_1"));
        assert_eq!(of(Auth::Agent, &[("authorization", "Bearer ask_1"), ("x-api-key", "ask_1")]), some("ask_1"));
        assert_eq!(of(Auth::Workspace, &[("x-api-key", "ask_2")]), some("ask_2"));
        assert_eq!(of(Auth::WorkspaceAdmin, &[("authorization", "Bearer ask_2")]), some("ask_2"));
        assert_eq!(of(Auth::Token, &[("authorization", "Bearer ims_3"), ("x-api-key", "ask_2")]), some("ims_3"));
        for (auth, lines) in [
            (Auth::Agent, &[][..]),
            (Auth::Agent, &[("x-api-key", "ask_1")]),
            (Auth::Agent, &[("authorization", "Bearer ims_1")]),
            (Auth::Agent, &[("authorization", "Basic ask_1")]),
            (Auth::Agent, &[("authorization", "ask_1")]),
            (Auth::Agent, &[("authorization", "Bearer")]),
            (Auth::Token, &[("authorization", "Bearer ask_1")]),
            (Auth::Workspace, &[("x-api-key", "ims_1")]),
        ] {
            assert_eq!(of(auth, lines), Err(Kind::Unauthenticated), "{auth:?} {lines:?}");
        }
    }

    /// A header that came twice, or two that differ, is a fault of that header.
    #[test]
    fn doubled_and_differing_headers_are_faults() {
        let field = |lines: &[(&'static str, &str)]| {
            let headers = headers(lines);
            let refusal = credential(Auth::Agent, &headers).unwrap_err();
            assert_eq!(refusal.kind(), Kind::InvalidRequest);
            refusal.errors().iter().find_map(|it| it.field.as_deref().map(str::to_owned)).unwrap()
        };
        assert_eq!(field(&[("authorization", "Bearer ask_1"), ("authorization", "Bearer ask_1")]), "authorization");
        assert_eq!(field(&[("x-api-key", "ask_1"), ("x-api-key", "ask_1")]), "x-api-key");
        assert_eq!(field(&[("authorization", "Bearer ask_1"), ("x-api-key", "ask_2")]), "x-api-key");
    }

    /// Only a body that is sent as it is is read.
    #[test]
    fn compressed_bodies_are_faults() {
        assert!(body_is_plain(&HeaderMap::new()).is_ok());
        assert!(body_is_plain(&headers(&[("content-encoding", "Identity")])).is_ok());
        for bad in ["gzip", "", "identity, gzip", "br"] {
            assert_eq!(
                body_is_plain(&headers(&[("content-encoding", bad)])).unwrap_err().field.as_deref(),
                Some("content-encoding")
            );
        }
        assert!(body_is_plain(&headers(&[("content-encoding", "identity"), ("content-encoding", "gzip")])).is_err());
    }
}
