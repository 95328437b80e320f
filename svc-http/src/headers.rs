//! Reading the headers that mean something on every route.
//!
//! **Invariant:** a credential that the route does not take is not read, so it can neither help nor harm.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use svc_core::refusal::{FieldError, Refusal};

use crate::entropy;
use crate::other_kind;
use crate::routes::{Auth, CSV};
use crate::secrets::{ACCESS_PREFIX, KEY_PREFIX, TOKEN_PREFIX, is_drawn, is_key};
use crate::trace::push_hex;

/// Identifies a request in answers and logs.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A key, where clients of model APIs send it.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Makes a repeated request answer as the first did.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Bytes of a method: the longest that is registered has 17.
const METHOD_BYTES_MAX: usize = 32;
/// Bytes of a path with its query.
pub const URI_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the names and values of a request's headers.
pub const HEADERS_BYTES_MAX: usize = 64 * 1024;
/// What stands before a key in `authorization`, in any case.
const BEARER: &[u8] = b"bearer ";
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

/// Whether whoever asks names pages among what they take, as browsers do wherever a person goes.
#[must_use]
pub fn accepts_pages(headers: &HeaderMap) -> bool {
    let sent = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    sent.filter_map(|it| it.split(';').next()).any(|it| it.trim().eq_ignore_ascii_case("text/html"))
}

/// That the head of a request is no larger than any client of this service makes it.
///
/// # Errors
/// `uri_too_long`, `headers_too_large`; `invalid_request` for a method that is longer than any that HTTP knows.
pub fn head_is_within(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    if method.as_str().len() > METHOD_BYTES_MAX {
        let message = format!("the method is longer than {METHOD_BYTES_MAX} bytes");
        return Err(Refusal::invalid_request(vec![FieldError::whole(message)]));
    }
    if uri.path_and_query().is_some_and(|it| it.as_str().len() > URI_BYTES_MAX) {
        return Err(Refusal::uri_too_long(URI_BYTES_MAX));
    }
    let bytes = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len().saturating_add(value.len());
    if headers.iter().map(bytes).sum::<usize>() > HEADERS_BYTES_MAX {
        return Err(Refusal::headers_too_large(Some(HEADERS_BYTES_MAX)));
    }
    Ok(())
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
/// 400 where a header came twice or two headers differ; 401 where nothing of the right kind was sent, or what cannot be a credential
/// by its form: that is told like one that nobody has, and never looked for.
pub fn credential<'a>(auth: Auth, headers: &'a HeaderMap, site: &Site) -> Result<Option<&'a str>, Refusal> {
    let (key_header, prefixes): (bool, &[&str]) = match auth {
        Auth::Open | Auth::Signature => return Ok(None),
        Auth::Session | Auth::Member(_) => {
            let sent = site.session(headers).filter(|it| is_drawn("", it));
            return sent.ok_or_else(|| other_kind::refusal(auth, headers, site)).map(Some);
        }
        Auth::Agent | Auth::McpAgent => (false, &[KEY_PREFIX, ACCESS_PREFIX]),
        Auth::Workspace | Auth::Payer | Auth::WorkspaceAdmin => (true, &[KEY_PREFIX, ACCESS_PREFIX]),
        Auth::Token(_) => (false, &[TOKEN_PREFIX]),
    };
    let bearer = single(headers, &AUTHORIZATION)?.and_then(bearer);
    let key =
        if matches!(auth, Auth::Token(_)) { None } else { single(headers, &X_API_KEY)?.map(HeaderValue::as_bytes) };
    // Two keys that differ are a mix-up of the client's, even where one of the headers would not be read, or is no text.
    if let (Some(bearer), Some(key)) = (bearer, key)
        && bearer != key
    {
        return Err(Refusal::invalid_field(X_API_KEY.as_str(), "differs from the key in `authorization`"));
    }
    let sent = bearer.or_else(|| key.filter(|_| key_header)).and_then(|it| std::str::from_utf8(it).ok());
    match sent.filter(|it| it.is_ascii() && prefixes.iter().any(|prefix| it.starts_with(prefix))) {
        Some(it) if is_key(it) || is_drawn(ACCESS_PREFIX, it) || is_drawn(TOKEN_PREFIX, it) => Ok(Some(it)),
        Some(_) if matches!(auth, Auth::Token(_)) => Err(Refusal::invalid_token()),
        Some(_) => Err(Refusal::invalid_api_key()),
        None => Err(other_kind::refusal(auth, headers, site)),
    }
}

/// The deployment as its own pages see it: what cookies, origins and hosts are compared with.
#[derive(Clone, Debug)]
pub struct Site {
    origin: String,
    path: String,
    host: String,
    port: String,
    is_loopback: bool,
    is_https: bool,
}

/// The cookie of a session on https.
const HOST_COOKIE: &str = "__Host-sid";
/// The cookie of a session on a local http server.
const LOCAL_COOKIE: &str = "sid";
/// The cookie of a browser with a form on https.
const HOST_FORM_COOKIE: &str = "__Host-form";
/// The cookie of a browser with a form on a local http server.
const LOCAL_FORM_COOKIE: &str = "form";
/// The cookie of a browser whose person is at their identity provider, on https.
const HOST_SSO_COOKIE: &str = "__Host-sso";
/// The same on a local http server.
const LOCAL_SSO_COOKIE: &str = "sso";
/// The header that a console write carries.
const X_SVC_CSRF: HeaderName = HeaderName::from_static("x-svc-csrf");
/// Names by which a loopback server is reached besides its own.
const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

impl Site {
    /// The deployment that is reached at `base_url`, which is http or https.
    #[must_use]
    pub fn of(base_url: &str) -> Self {
        let (scheme, rest) = base_url.split_once("://").unwrap_or(("http", base_url));
        let authority = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let is_https = scheme.eq_ignore_ascii_case("https");
        let (host, port) = split_port(&authority);
        let port = port.unwrap_or(if is_https { "443" } else { "80" }).to_owned();
        let is_loopback = LOOPBACK_HOSTS.contains(&host) || host.starts_with("127.");
        Self {
            origin: format!("{}://{authority}", scheme.to_ascii_lowercase()),
            path: rest.split_once('/').map_or_else(String::new, |(_, path)| format!("/{}", path.trim_end_matches('/'))),
            host: host.to_owned(),
            port,
            is_loopback,
            is_https,
        }
    }

    /// What stands before the path of every route where others reach this deployment: empty, or such as `/svc` where a
    /// proxy puts it there and takes it away again.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The name of the session's cookie as this deployment sets it.
    const fn cookie_name(&self) -> &'static str {
        if self.is_https { HOST_COOKIE } else { LOCAL_COOKIE }
    }

    /// The `set-cookie` value that gives a browser `sid`, or takes it away where it is empty.
    #[must_use]
    pub fn set_cookie(&self, sid: &str, seconds: i64) -> String {
        let secure = if self.is_https { "; Secure" } else { "" };
        format!("{}={sid}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}", self.cookie_name())
    }

    /// The `set-cookie` value of a browser that forms of this server are shown in, or its end where `value` is empty.
    #[must_use]
    pub fn set_form_cookie(&self, value: &str, seconds: i64) -> String {
        let (name, secure) = if self.is_https { (HOST_FORM_COOKIE, "; Secure") } else { (LOCAL_FORM_COOKIE, "") };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }

    /// The cookie of a browser that forms of this server are shown in.
    #[must_use]
    pub fn form_cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.cookie(headers, HOST_FORM_COOKIE, LOCAL_FORM_COOKIE)
    }

    /// The `set-cookie` value of a browser whose person is sent to their identity provider, or its end where `value` is empty. A
    /// browser sends it along when the provider leads back here, as that is a navigation (`Lax`).
    #[must_use]
    pub fn set_sso_cookie(&self, value: &str, seconds: i64) -> String {
        let (name, secure) = if self.is_https { (HOST_SSO_COOKIE, "; Secure") } else { (LOCAL_SSO_COOKIE, "") };
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
    }

    /// The cookie of a browser whose person was sent to their identity provider.
    #[must_use]
    pub fn sso_cookie<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.cookie(headers, HOST_SSO_COOKIE, LOCAL_SSO_COOKIE)
    }

    /// Whether a form came from this deployment's own pages: a browser names the origin of every form that it posts. It is the
    /// base address's (CONTRACT part 4), on loopback too: what listens at another of the machine's names may be another program.
    #[must_use]
    pub fn is_own_form(&self, headers: &HeaderMap) -> bool {
        origin(headers).is_some_and(|it| self.is_base_origin(it))
    }

    /// Whether a page of another origin has sent a request: browsers name theirs, other clients none.
    #[must_use]
    pub fn is_foreign(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(ORIGIN) && !origin(headers).is_some_and(|it| self.is_own_origin(it))
    }

    /// The session's cookie, where exactly one was sent: `__Host-sid`, or on a local http server either name.
    #[must_use]
    pub fn session<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        self.cookie(headers, HOST_COOKIE, LOCAL_COOKIE)
    }

    fn cookie<'a>(&self, headers: &'a HeaderMap, host: &str, local: &str) -> Option<&'a str> {
        let mut found = None;
        for line in headers.get_all(COOKIE) {
            // Another program's cookie on the same host may hold what is no text; it is none of this one's.
            for pair in line.as_bytes().split(|it| *it == b';') {
                let Ok(pair) = std::str::from_utf8(pair) else { continue };
                let Some((name, value)) = pair.trim().split_once('=') else { continue };
                let counts = name == host || (name == local && !self.is_https);
                match found {
                    _ if !counts || value.is_empty() => {}
                    Some(other) if other != value => return None,
                    _ => found = Some(value),
                }
            }
        }
        found
    }

    /// Whether the request was sent to this deployment's own host (CONTRACT part 10).
    #[must_use]
    pub fn is_own_host(&self, headers: &HeaderMap, authority: Option<&str>) -> bool {
        let host = match authority {
            Some(authority) => Some(authority),
            None => single(headers, &HOST).ok().flatten().and_then(|it| it.to_str().ok()),
        };
        host.is_some_and(|it| self.is_own(it, if self.is_https { "443" } else { "80" }))
    }

    /// Whether a write came from this deployment's own pages: the header is there, and any origin sent is its own.
    #[must_use]
    pub fn is_own_write(&self, headers: &HeaderMap) -> bool {
        let marked = matches!(single(headers, &X_SVC_CSRF), Ok(Some(value)) if value.as_bytes() == b"1");
        let origin = match single(headers, &ORIGIN) {
            Ok(None) => true,
            Ok(Some(origin)) => origin.to_str().is_ok_and(|it| self.is_own_origin(it)),
            Err(_) => false,
        };
        marked && origin
    }

    fn is_base_origin(&self, origin: &str) -> bool {
        // Browsers leave out the port that is its scheme's own.
        let is_short = !self.is_https && self.port == "80";
        origin.eq_ignore_ascii_case(&self.origin)
            || (is_short && origin.strip_prefix("http://").is_some_and(|it| it.eq_ignore_ascii_case(&self.host)))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        if self.is_base_origin(origin) {
            return true;
        }
        match origin.split_once("://") {
            Some(("http", host)) if !self.is_https => self.is_own(host, "80"),
            _ => false,
        }
    }

    fn is_own(&self, authority: &str, default_port: &str) -> bool {
        let authority = authority.to_ascii_lowercase();
        let (host, port) = split_port(&authority);
        let named = host == self.host || (self.is_loopback && LOOPBACK_HOSTS.contains(&host));
        named && port.unwrap_or(default_port) == self.port
    }
}

/// The origin that was sent once, where it is text.
fn origin(headers: &HeaderMap) -> Option<&str> {
    single(headers, &ORIGIN).ok().flatten().and_then(|it| it.to_str().ok())
}

/// Host and port of an authority; an IPv6 address keeps its brackets.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => (host, Some(port)),
        _ => (authority, None),
    }
}

/// Whether a body says that it is CSV.
#[must_use]
pub fn is_csv(headers: &HeaderMap) -> bool {
    single(headers, &CONTENT_TYPE).is_ok_and(|it| it.is_some_and(|it| has_essence(it, CSV)))
}

fn has_essence(value: &HeaderValue, essence: &str) -> bool {
    let text = value.to_str().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(essence)
}

/// Checks that a body of the console's interface says that it is JSON, or CSV where that is taken: a form of another site
/// cannot.
///
/// # Errors
/// The fault, with the header as field.
pub fn body_is_json(headers: &HeaderMap, csv: bool) -> Result<(), FieldError> {
    match single(headers, &CONTENT_TYPE) {
        Ok(Some(value)) if has_essence(value, "application/json") => Ok(()),
        Ok(Some(value)) if csv && has_essence(value, CSV) => Ok(()),
        _ if csv => Err(FieldError::new(CONTENT_TYPE.as_str(), "must be `application/json` or `text/csv`")),
        _ => Err(FieldError::new(CONTENT_TYPE.as_str(), "must be `application/json`")),
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

/// What stands behind the scheme `Bearer`, whatever bytes it is; `None` where nothing does.
pub(crate) fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, rest) = value.as_bytes().split_at_checked(BEARER.len())?;
    Some(rest.trim_ascii()).filter(|it| scheme.eq_ignore_ascii_case(BEARER) && !it.is_empty())
}

/// Whether it holds no credential of any scheme: what is left where a variable that was to hold a key is not set.
pub(crate) fn is_without_key(value: &HeaderValue) -> bool {
    let sent = value.as_bytes().trim_ascii();
    sent.is_empty() || sent.eq_ignore_ascii_case(BEARER.trim_ascii())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::refusal::Kind;
    use svc_core::state::people::TokenScope;

    use super::*;

    const TOKEN: Auth = Auth::Token(TokenScope::AgentsRead);

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
            credential(auth, &headers, &Site::of("http://127.0.0.1:8080"))
                .map(|it| it.map(str::to_owned))
                .map_err(|it| it.kind())
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(of(Auth::Open, &[("authorization", "Bearer ask_1"), ("authorization", "x")]), Ok(None));
        assert_eq!(of(Auth::Agent, &[("authorization", "Bearer ask_1")]), some("ask_1"));
        let (access, token) = (format!("aat_{:043}", 1), format!("ims_{:043}", 3));
        assert_eq!(of(Auth::Agent, &[("authorization", &format!("bEARER  {access}"))]), some(&access));
        assert_eq!(of(Auth::Agent, &[("authorization", "Bearer ask_1"), ("x-api-key", "ask_1")]), some("ask_1"));
        assert_eq!(of(Auth::Workspace, &[("x-api-key", "ask_2")]), some("ask_2"));
        // What is of no kind that a route takes, such as a word for a proxy on the way, is as if it were not sent.
        for other in ["Basic eDp5", "Bearer", "Bearer  ", ""] {
            assert_eq!(of(Auth::Workspace, &[("authorization", other), ("x-api-key", "ask_2")]), some("ask_2"));
        }
        assert_eq!(of(Auth::WorkspaceAdmin, &[("authorization", "Bearer ask_2")]), some("ask_2"));
        let bearer = format!("Bearer {token}");
        assert_eq!(of(TOKEN, &[("authorization", &bearer), ("x-api-key", "ask_2")]), some(&token));
        for (auth, lines) in [
            (Auth::Agent, &[][..]),
            (Auth::Agent, &[("x-api-key", "ask_1")]),
            (Auth::Agent, &[("authorization", "Bearer ims_1")]),
            (Auth::Agent, &[("authorization", "Basic ask_1")]),
            (Auth::Agent, &[("authorization", "ask_1")]),
            (Auth::Agent, &[("authorization", "Bearer")]),
            (TOKEN, &[("authorization", "Bearer ask_1")]),
            (Auth::Workspace, &[("x-api-key", "ims_1")]),
        ] {
            assert_eq!(of(auth, lines), Err(Kind::Unauthenticated), "{auth:?} {lines:?}");
        }
    }

    /// What cannot be a credential by its form is told like one that is not known: nobody looks for it.
    #[test]
    fn what_cannot_be_a_credential_is_not_looked_for() {
        let long = format!("Bearer ask_{:0>300}", 1);
        let token = format!("Bearer ims_{:0>44}", 1);
        let (cookie, mixed) = (format!("__Host-sid={:0>42}", 1), format!("__Host-sid={:0>42}.", 1));
        for (auth, name, sent, told) in [
            (Auth::Agent, "authorization", "Bearer ask_", Kind::InvalidApiKey),
            (Auth::Agent, "authorization", "Bearer ask_a b", Kind::InvalidApiKey),
            (Auth::Payer, "authorization", &long, Kind::InvalidApiKey),
            (Auth::McpAgent, "authorization", "Bearer aat_1", Kind::InvalidApiKey),
            (Auth::WorkspaceAdmin, "x-api-key", "aat_1", Kind::InvalidApiKey),
            (TOKEN, "authorization", "Bearer ims_1", Kind::InvalidToken),
            (TOKEN, "authorization", &token, Kind::InvalidToken),
            (Auth::Session, "cookie", &cookie, Kind::Unauthenticated),
            (Auth::Session, "cookie", &mixed, Kind::Unauthenticated),
        ] {
            let refused = credential(auth, &headers(&[(name, sent)]), &Site::of("https://gate.example")).unwrap_err();
            assert_eq!(refused.kind(), told, "{auth:?} {sent}");
        }
        let whole = format!("__Host-sid={:0>43}", 1);
        assert!(credential(Auth::Session, &headers(&[("cookie", &whole)]), &Site::of("https://gate.example")).is_ok());
    }

    /// A header that came twice, or two that differ, is a fault of that header.
    #[test]
    fn doubled_and_differing_headers_are_faults() {
        let field = |lines: &[(&'static str, &str)]| {
            let headers = headers(lines);
            let refusal = credential(Auth::Agent, &headers, &Site::of("http://127.0.0.1")).unwrap_err();
            assert_eq!(refusal.kind(), Kind::InvalidRequest);
            refusal.errors().iter().find_map(|it| it.field.as_deref().map(str::to_owned)).unwrap()
        };
        assert_eq!(field(&[("authorization", "Bearer ask_1"), ("authorization", "Bearer ask_1")]), "authorization");
        assert_eq!(field(&[("x-api-key", "ask_1"), ("x-api-key", "ask_1")]), "x-api-key");
        assert_eq!(field(&[("authorization", "Bearer ask_1"), ("x-api-key", "ask_2")]), "x-api-key");
    }

    /// A key of bytes that are no text differs from one that is text, in either header; where it stands alone it is none.
    #[test]
    fn keys_that_are_no_text_differ_too() {
        let site = Site::of("http://127.0.0.1");
        let told = |authorization: Option<&[u8]>, key: &[u8]| {
            let mut headers = HeaderMap::new();
            if let Some(sent) = authorization {
                headers.insert(AUTHORIZATION, HeaderValue::from_bytes(sent).unwrap());
            }
            headers.insert(X_API_KEY, HeaderValue::from_bytes(key).unwrap());
            let refusal = credential(Auth::Workspace, &headers, &site).unwrap_err();
            let field = refusal.errors().first().and_then(|it| it.field.as_deref().map(str::to_owned));
            (refusal.kind(), field)
        };
        let differs = (Kind::InvalidRequest, Some("x-api-key".to_owned()));
        for key in [&b"ask_1\xff"[..], "ask_1é".as_bytes(), b"\x80"] {
            assert_eq!(told(Some(b"Bearer ask_1"), key), differs, "{key:?}");
            assert_eq!(told(None, key), (Kind::Unauthenticated, None), "{key:?}");
        }
        assert_eq!(told(Some(b"Bearer ask_1\xff"), b"ask_1"), differs);
        assert_eq!(told(Some(b"Bearer ask_\xff"), b"ask_\xff"), (Kind::Unauthenticated, None));
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

    /// A session's cookie is read under the name that counts here, and only where one was sent.
    #[test]
    fn one_session_cookie_is_read() {
        let of = |base: &str, cookies: &[&str]| {
            let lines: Vec<(&'static str, &str)> = cookies.iter().map(|it| ("cookie", *it)).collect();
            Site::of(base).session(&headers(&lines)).map(str::to_owned)
        };
        let (local, https) = ("http://127.0.0.1:8080", "https://gate.example.com");
        assert_eq!(of(local, &["a=1; sid=x"]).as_deref(), Some("x"));
        assert_eq!(of(local, &["__Host-sid=x"]).as_deref(), Some("x"));
        assert_eq!(of(https, &["__Host-sid=x; sid=y"]).as_deref(), Some("x"));
        assert_eq!(of(https, &["sid=y"]), None);
        assert_eq!(of(local, &["sid=x; sid=y"]), None);
        assert_eq!(of(local, &["sid="]), None);
        assert_eq!(of(local, &[]), None);
        // Cookies know no ports: another program's on this host may be no text.
        let mut beside = HeaderMap::new();
        beside.insert("cookie", HeaderValue::from_bytes(b"a=\xe9; sid=x; b=\xc3\xa9").unwrap());
        assert_eq!(Site::of(local).session(&beside), Some("x"));
    }

    /// Hosts and origins count by name and port; a loopback server has several names.
    #[test]
    fn hosts_and_origins_are_the_deployments_own() {
        let local = Site::of("http://127.0.0.1:8080");
        let https = Site::of("https://Gate.example.com");
        let host = |site: &Site, host: &str| site.is_own_host(&headers(&[("host", host)]), None);
        for own in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080", "LOCALHOST:8080"] {
            assert!(host(&local, own), "{own}");
        }
        for other in ["127.0.0.1", "127.0.0.1:8081", "evil.example:8080", "", "localhost:8080.evil.example"] {
            assert!(!host(&local, other), "{other}");
        }
        assert!(host(&https, "gate.example.com") && host(&https, "gate.example.com:443"));
        assert!(!host(&https, "localhost") && !host(&https, "gate.example.com.evil.example"));
        assert!(
            !https.is_own_host(&HeaderMap::new(), None)
                && https.is_own_host(&HeaderMap::new(), Some("gate.example.com"))
        );
        let write = |site: &Site, origin: Option<&str>, mark: Option<&str>| {
            let mut lines = Vec::new();
            lines.extend(origin.map(|it| ("origin", it)));
            lines.extend(mark.map(|it| ("x-svc-csrf", it)));
            site.is_own_write(&headers(&lines))
        };
        assert!(write(&https, None, Some("1")) && write(&https, Some("https://gate.example.com"), Some("1")));
        assert!(write(&local, Some("http://localhost:8080"), Some("1")));
        for (origin, mark) in [
            (None, None),
            (None, Some("0")),
            (Some("null"), Some("1")),
            (Some("http://gate.example.com"), Some("1")),
            (Some("https://gate.example.com.evil.example"), Some("1")),
            (Some("https://gate.example.com:444"), Some("1")),
        ] {
            assert!(!write(&https, origin, mark), "{origin:?} {mark:?}");
        }
    }

    /// A form comes from the base address alone, also where a loopback server answers to other names.
    #[test]
    fn forms_come_from_the_base_address() {
        let form = |base: &str, origin: &str| Site::of(base).is_own_form(&headers(&[("origin", origin)]));
        assert!(
            form("http://127.0.0.1:8080", "http://127.0.0.1:8080") && form("http://127.0.0.1:80", "http://127.0.0.1")
        );
        assert!(form("https://Gate.example.com", "https://gate.example.com"));
        for other in
            ["http://localhost:8080", "http://[::1]:8080", "http://127.0.0.1", "https://127.0.0.1:8080", "null", ""]
        {
            assert!(!form("http://127.0.0.1:8080", other), "{other}");
        }
        let local = Site::of("http://127.0.0.1:8080");
        assert!(
            !local.is_foreign(&headers(&[("origin", "http://localhost:8080")])) && !local.is_foreign(&headers(&[]))
        );
        assert!(local.is_foreign(&headers(&[("origin", "http://localhost:8081")])));
    }
}
