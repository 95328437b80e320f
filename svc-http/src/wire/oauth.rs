//! What OAuth clients send and are told: forms, registrations, metadata.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::connect::authenticate::ClientShown;
use svc_core::state::connect::{ClientAuth, OAuthClient, REDIRECTS_MAX, Redirect};
use svc_core::value::Invalid;
use svc_core::value::digest::Digest;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use svc_core::value::text::{Label, UrlText};

use crate::headers::single;

/// The one scope there is.
pub const SCOPE: &str = "svc:agent";
/// What clients of other services have to ask for beside a scope; here it means nothing.
const PASSED_OVER: [&str; 2] = ["offline_access", "openid"];
/// The one member that may be sent more than once.
const RESOURCE: &str = "resource";
/// Bytes of a registration.
const REGISTRATION_MAX: usize = 16 * 1024;
/// Members of a form or query; no client sends half as many.
const MEMBERS_MAX: usize = 64;
/// Members of a registration that are told back as they were sent.
const ECHOED: [&str; 7] =
    ["application_type", "client_uri", "logo_uri", "tos_uri", "policy_uri", "software_id", "software_version"];
/// Ways to reach a client's people that a registration may name, and the characters of each.
const CONTACTS_MAX: usize = 10;
const CONTACT_MAX: usize = 254;

/// Members of a form or query, each at most once and not empty.
pub struct Form(Vec<(String, String)>);

/// Shows names alone: values may be secrets.
impl std::fmt::Debug for Form {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Form {
    /// Reads a body. What stands in the address is for no form.
    ///
    /// # Errors
    /// `invalid_request` for another type of content, a query, a member that was sent twice, too many of them.
    pub fn of(headers: &HeaderMap, uri: &http::Uri, body: &[u8]) -> Result<Self, Refusal> {
        let essence = single(headers, &CONTENT_TYPE)?.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let essence = essence.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let clause = "must be `application/x-www-form-urlencoded`";
            return Err(Refusal::invalid_field(CONTENT_TYPE.as_str(), clause));
        }
        if uri.query().is_some() {
            return Err(malformed("nothing may stand in the address: send it in the form"));
        }
        Self::parse(body)
    }

    /// Reads a query.
    ///
    /// # Errors
    /// `invalid_request` for a member that was sent twice (RFC 6749 part 3.1; `resource` may be, RFC 8707 part 2), or too many of
    /// them.
    pub fn of_query(uri: &http::Uri) -> Result<Self, Refusal> {
        Self::parse(uri.query().unwrap_or_default().as_bytes())
    }

    fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for (name, value) in url::form_urlencoded::parse(bytes) {
            // Each is compared with all before it.
            if pairs.len() == MEMBERS_MAX {
                return Err(malformed("too many members were sent"));
            }
            if name != RESOURCE && pairs.iter().any(|(known, _)| *known == *name) {
                return Err(malformed("a member was sent more than once"));
            }
            pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(pairs))
    }

    /// A member; an empty one counts as not sent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A member that has to be there.
    ///
    /// # Errors
    /// `invalid_request`.
    pub fn need(&self, name: &'static str) -> Result<&str, Refusal> {
        self.need_all([name]).map(|[it]| it)
    }

    /// Members that all have to be there.
    ///
    /// # Errors
    /// `invalid_request` with each that is not.
    pub fn need_all<const N: usize>(&self, names: [&'static str; N]) -> Result<[&str; N], Refusal> {
        let lacking = names.into_iter().filter(|it| self.get(it).is_none());
        let lacking: Vec<String> = lacking.map(|it| format!("{it} is required")).collect();
        if lacking.is_empty() {
            return Ok(names.map(|it| self.get(it).unwrap_or_default()));
        }
        Err(Refusal::oauth(Kind::InvalidRequest, lacking.join("; ")))
    }

    /// Who the client is, by `authorization: Basic` or by the form.
    ///
    /// # Errors
    /// `invalid_client` where nobody is named, `invalid_request` where it is said twice.
    pub fn client(&self, headers: &HeaderMap) -> Result<ClientShown, Refusal> {
        let (id, secret) = (self.get("client_id"), self.get("client_secret"));
        let Some(sent) = single(headers, &AUTHORIZATION)? else {
            let id = id.ok_or_else(|| Refusal::oauth(Kind::InvalidClient, "client_id is required"))?;
            return Ok(ClientShown { id: id.into(), secret: secret.map(Digest::of) });
        };
        let basic = sent.to_str().ok().and_then(read_basic);
        let (named, shown) =
            basic.ok_or_else(|| Refusal::oauth(Kind::InvalidClient, "authorization must be Basic, or absent"))?;
        if secret.is_some() || id.is_some_and(|it| *it != *named) {
            return Err(malformed("the client says twice who it is"));
        }
        let shown = shown.expose();
        Ok(ClientShown { id: named, secret: (!shown.is_empty()).then(|| Digest::of(shown)) })
    }

    /// That the scope asked for is the one there is. What clients ask for beside it out of habit is passed over: the answer says what
    /// was given (RFC 6749 part 3.3).
    ///
    /// # Errors
    /// `invalid_scope`.
    pub fn check_scope(&self) -> Result<(), Refusal> {
        let Some(asked) = self.get("scope") else { return Ok(()) };
        let mut asked = asked.split_ascii_whitespace().filter(|it| !PASSED_OVER.contains(it)).peekable();
        if asked.peek().is_some() && asked.all(|it| it == SCOPE) {
            return Ok(());
        }
        Err(Refusal::oauth(Kind::InvalidScope, "the scope must be svc:agent"))
    }

    /// That each resource asked for, where any is, is this server.
    ///
    /// # Errors
    /// `invalid_target`.
    pub fn check_resource(&self, base_url: &str) -> Result<(), Refusal> {
        let mut asked = self.0.iter().filter(|(name, value)| name == RESOURCE && !value.is_empty());
        if asked.all(|(_, value)| is_resource(value, base_url)) {
            return Ok(());
        }
        Err(Refusal::oauth(Kind::InvalidTarget, "the resource is not this server"))
    }
}

fn malformed(why: &'static str) -> Refusal {
    Refusal::oauth(Kind::InvalidRequest, why)
}

/// Id and secret of `authorization: Basic`, each form-encoded (RFC 6749 part 2.3.1).
fn read_basic(text: &str) -> Option<(Box<str>, Secret<String>)> {
    let (scheme, rest) = text.split_once(' ')?;
    let decoded = STANDARD.decode(rest.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let pair = Secret::new(String::from_utf8(decoded).ok()?);
    let (id, secret) = pair.expose().split_once(':')?;
    let plain = |it: &str| {
        let it = it.replace('+', " ");
        percent_encoding::percent_decode_str(&it).decode_utf8().ok().map(|it| it.into_owned())
    };
    Some((plain(id)?.into(), Secret::new(plain(secret)?)))
}

/// Whether a resource is this server: the base, `/mcp`, or a proxied server's address.
fn is_resource(resource: &str, base_url: &str) -> bool {
    match resource.strip_prefix(base_url) {
        Some("" | "/" | "/mcp") => true,
        Some(rest) => rest.strip_prefix("/mcp/proxy/").is_some_and(is_server_name),
        None => false,
    }
}

/// Whether a proxied server could be called this.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    (1..=40).contains(&name.len()) && name.bytes().all(plain)
}

/// The S256 challenge that follows from a verifier (RFC 7636 part 4.2); none where it is not 43 to 128 unreserved characters.
pub fn challenge_of(verifier: &str) -> Option<String> {
    let plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_' | b'~');
    if !(43..=128).contains(&verifier.len()) || !verifier.bytes().all(plain) {
        return None;
    }
    Some(URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())))
}

/// That a challenge is one of S256, and none that its verifier could be read from.
///
/// # Errors
/// `invalid_request`.
pub fn check_challenge(form: &Form) -> Result<&str, Refusal> {
    let challenge = form.need("code_challenge")?;
    if form.get("code_challenge_method") != Some("S256") {
        return Err(malformed("code_challenge_method must be S256"));
    }
    match URL_SAFE_NO_PAD.decode(challenge) {
        Ok(bytes) if bytes.len() == 32 => Ok(challenge),
        _ => Err(malformed("code_challenge must be 43 characters of base64url")),
    }
}

/// What a client registers.
#[derive(Debug)]
pub struct Registration {
    /// What it calls itself.
    pub name: Label,
    /// Where it may be sent back to.
    pub redirects: Vec<Redirect>,
    /// How it says who it is.
    pub auth: ClientAuth,
    echoed: Map<String, Value>,
}

/// Reads a registration. `named` are redirect URIs that the operator admits beside https and loopback.
///
/// # Errors
/// `invalid_client_metadata`, `invalid_redirect_uri`.
pub fn registration(body: &[u8], named: &[Box<str>]) -> Result<Registration, Refusal> {
    let bad = |why: &str| Refusal::oauth(Kind::InvalidClientMetadata, why.to_owned());
    if body.len() > REGISTRATION_MAX {
        return Err(bad("the registration must be at most 16 KiB"));
    }
    let json = Json::parse(body).map_err(|it| bad(&format!("the body must be JSON: {it}")))?;
    if json.as_object().is_none() {
        return Err(bad("the body must be a JSON object"));
    }
    let member = |name: &str| json.get(name).filter(|it| !it.is_null());
    let redirects = redirects(member("redirect_uris"), named)?;
    let mut faults = Vec::new();
    let auth = match member("token_endpoint_auth_method").map(Json::as_str) {
        None => Some(ClientAuth::None),
        Some(word) => ClientAuth::ALL.into_iter().find(|it| word == Some(it.as_str())),
    };
    if auth.is_none() {
        faults.push("token_endpoint_auth_method must be none, client_secret_post or client_secret_basic");
    }
    let holds = |name: &str, word: &str| match member(name) {
        None => true,
        Some(list) => list.as_list().is_some_and(|it| {
            it.iter().all(|it| it.as_str().is_some()) && it.iter().any(|it| it.as_str() == Some(word))
        }),
    };
    if !holds("grant_types", "authorization_code") || !holds("response_types", "code") {
        faults.push("grant_types must be strings with authorization_code, and response_types with code");
    }
    let host = redirects.first().map(|it| it.host().to_owned()).unwrap_or_default();
    let name = match member("client_name") {
        None => Label::parse(&host),
        Some(name) => Label::parse(name.as_str().unwrap_or_default()),
    };
    if name.is_err() {
        faults.push("client_name must be 1 to 100 characters without control characters");
    }
    let (Some(auth), Ok(name), true) = (auth, name, faults.is_empty()) else { return Err(bad(&faults.join("; "))) };
    let text = |name: &str| member(name).and_then(Json::as_str).map(|it| (name.to_owned(), json!(it)));
    let mut echoed: Map<String, Value> = ECHOED.into_iter().filter_map(text).collect();
    // One that is not of its form is not registered, as if it had not been understood: no client is turned away for it.
    if let Some(told) = member("contacts").and_then(contacts) {
        echoed.insert("contacts".to_owned(), told);
    }
    // The two are not sent together (RFC 7591 part 2).
    if let Some(told) = member("jwks_uri").filter(|_| member("jwks").is_none()).and_then(keys_address) {
        echoed.insert("jwks_uri".to_owned(), told);
    }
    Ok(Registration { name, redirects, auth, echoed })
}

/// Ways to reach whoever answers for a client, mostly addresses of mail (RFC 7591 part 2).
fn contacts(sent: &Json) -> Option<Value> {
    let list = sent.as_list().filter(|it| it.len() <= CONTACTS_MAX)?;
    let is_plain = |it: &&str| (1..=CONTACT_MAX).contains(&it.chars().count()) && !it.contains(char::is_control);
    let all: Option<Vec<&str>> = list.iter().map(|it| it.as_str().filter(is_plain)).collect();
    all.map(|it| json!(it))
}

/// Where a client's keys are. No way there is to say who a client is needs them, so they are never read.
fn keys_address(sent: &Json) -> Option<Value> {
    let text = sent.as_str().filter(|it| UrlText::parse(it).is_ok_and(|read| read.as_str() == *it))?;
    let url = url::Url::parse(text).ok().filter(|it| it.scheme() == "https" && it.fragment().is_none())?;
    (url.username().is_empty() && url.password().is_none()).then(|| json!(text))
}

fn redirects(sent: Option<&Json>, named: &[Box<str>]) -> Result<Vec<Redirect>, Refusal> {
    let bad = |why: String| Refusal::oauth(Kind::InvalidRedirectUri, why);
    let list = sent.and_then(Json::as_list).filter(|it| (1..=REDIRECTS_MAX).contains(&it.len()));
    let list = list.ok_or_else(|| bad(format!("redirect_uris must hold 1 to {REDIRECTS_MAX} URIs")))?;
    let (mut read, mut faults) = (Vec::with_capacity(list.len()), Vec::new());
    for (place, item) in list.iter().enumerate() {
        let text = item.as_str().ok_or_else(|| Invalid::new("must be a string"));
        match text.and_then(|it| Redirect::parse(it, named)) {
            Err(why) => faults.push(format!("redirect_uris.{place} {why}")),
            Ok(redirect) if read.contains(&redirect) => {}
            Ok(redirect) => read.push(redirect),
        }
    }
    if faults.is_empty() { Ok(read) } else { Err(bad(faults.join("; "))) }
}

/// A client, however it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What it calls itself.
    pub name: Label,
    /// Where it may be sent back to.
    pub redirects: Vec<Redirect>,
}

/// What whoever names a client is told that is none.
pub(crate) fn no_client(why: &str) -> Refusal {
    Refusal::oauth(Kind::InvalidClient, format!("there is no such client: {why}"))
}

/// Reads the document that the address `id` of a client leads to. `named` are redirect URIs that the operator admits beside https and
/// loopback.
///
/// # Errors
/// `invalid_client` where it is no document of this client, which is a public one.
pub fn metadata(id: &str, body: &[u8], named: &[Box<str>]) -> Result<Known, Refusal> {
    let json = Json::parse(body).map_err(|_| no_client("its metadata is no JSON"))?;
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    if text("client_id") != Some(id) {
        return Err(no_client("its metadata names another id"));
    }
    if text("token_endpoint_auth_method").is_some_and(|it| it != "none") {
        return Err(no_client("a client with a metadata address has to be public"));
    }
    let name =
        Label::parse(text("client_name").unwrap_or_default()).map_err(|_| no_client("its metadata has no name"))?;
    let list = json.get("redirect_uris").and_then(Json::as_list).unwrap_or_default();
    // One that may not be sent to does no harm among others that may.
    let redirects: Vec<Redirect> = list
        .iter()
        .take(REDIRECTS_MAX)
        .filter_map(|it| it.as_str().and_then(|it| Redirect::parse(it, named).ok()))
        .collect();
    if redirects.is_empty() {
        return Err(no_client("its metadata names no redirect that may be sent to"));
    }
    Ok(Known { name, redirects })
}

/// What a client is told that has registered; `secret` is shown this once.
#[must_use]
pub fn registered(client: &OAuthClient, asked: Registration, secret: Option<&str>) -> Value {
    let redirects: Vec<&str> = client.redirects.iter().map(Redirect::as_str).collect();
    let mut body = json!({
        "client_id": client.id.to_string(),
        "client_id_issued_at": client.created_at.as_millis() / 1_000,
        "client_name": client.name.as_str(),
        "redirect_uris": redirects,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": client.auth.as_str(),
        "scope": SCOPE,
    });
    if let Some(members) = body.as_object_mut() {
        members.extend(asked.echoed);
        if let Some(secret) = secret {
            members.insert("client_secret".to_owned(), json!(secret));
            members.insert("client_secret_expires_at".to_owned(), json!(0));
        }
    }
    body
}

/// Tokens as they are given, once.
#[must_use]
pub fn tokens(access: &str, refresh: &str, seconds: i64) -> Value {
    json!({
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": seconds,
        "refresh_token": refresh,
        "scope": SCOPE,
    })
}

/// The authorization server's metadata (RFC 8414); `documents` says whether clients may name themselves by the address of
/// theirs.
#[must_use]
pub fn server(base: &str, documents: bool) -> Value {
    let methods: Vec<&str> = ClientAuth::ALL.iter().map(|it| it.as_str()).collect();
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/oauth/authorize"),
        "token_endpoint": format!("{base}/oauth/token"),
        "registration_endpoint": format!("{base}/oauth/register"),
        "revocation_endpoint": format!("{base}/oauth/revoke"),
        "service_documentation": format!("{base}/docs"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "scopes_supported": [SCOPE],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": documents,
    })
}

/// The same with the members that clients of OpenID will not do without; no identity token is ever given.
#[must_use]
pub fn openid(base: &str, documents: bool) -> Value {
    let mut body = server(base, documents);
    for (name, value) in [
        ("jwks_uri", json!(format!("{base}/.well-known/jwks.json"))),
        ("subject_types_supported", json!(["public"])),
        ("id_token_signing_alg_values_supported", json!(["EdDSA"])),
    ] {
        super::put(&mut body, name, value);
    }
    body
}

/// A protected resource's metadata (RFC 9728); `path` is the resource's, from the base.
#[must_use]
pub fn resource(base: &str, path: &str) -> Value {
    json!({
        "resource": format!("{base}{path}"),
        "authorization_servers": [base],
        "scopes_supported": [SCOPE],
        "bearer_methods_supported": ["header"],
        "resource_documentation": format!("{base}/docs"),
    })
}

/// `redirect` with what the client is told.
#[must_use]
pub fn redirect_with(redirect: &Redirect, told: &[(&str, &str)]) -> String {
    let text = redirect.as_str();
    let mark = match text.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    let told = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(told).finish();
    format!("{text}{mark}{told}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A document counts only with its own address as its id, a name and a redirect, and for a public client.
    #[test]
    fn a_document_is_its_own_clients() {
        let id = "https://app.example/client.json";
        let good = r#"{"client_id":"https://app.example/client.json","client_name":"App","redirect_uris":["http://localhost/cb","cursor://x"]}"#;
        let known = metadata(id, good.as_bytes(), &[]).unwrap();
        assert_eq!((known.name.as_str(), known.redirects.len()), ("App", 1));
        for (from, to) in [
            ("app.example/client.json\"", "app.example/other.json\""),
            ("\"App\"", "\"\""),
            ("\"http://localhost/cb\",", ""),
            ("\"client_name\"", "\"token_endpoint_auth_method\":\"private_key_jwt\",\"client_name\""),
            ("{", "["),
        ] {
            assert!(metadata(id, good.replace(from, to).as_bytes(), &[]).is_err(), "{to}");
        }
    }

    /// The pair of RFC 7636, appendix B: the challenge follows from the verifier, by no other method and from no other verifier.
    #[test]
    fn the_published_challenge_follows_from_its_verifier() {
        let file: Value = serde_json::from_str(include_str!("../../tests/data/rfc7636_pkce.json")).unwrap();
        let text = |name: &str| file[name].as_str().unwrap();
        let (verifier, challenge) = (text("code_verifier"), text("code_challenge"));
        assert_eq!(challenge_of(verifier).as_deref(), Some(challenge));
        assert_ne!(challenge_of(&verifier.to_lowercase()).as_deref(), Some(challenge));
        for bad in [&verifier[1..], &format!("{verifier}="), &format!("{verifier}\n"), &verifier.repeat(3)] {
            assert_eq!(challenge_of(bad), None, "{bad}");
        }
        let sent = |method: &str, challenge: &str| {
            let form = format!("code_challenge={challenge}&code_challenge_method={method}");
            check_challenge(&Form::parse(form.as_bytes()).unwrap()).map(str::to_owned)
        };
        assert_eq!(sent(text("code_challenge_method"), challenge).unwrap(), challenge);
        assert!(sent("plain", challenge).is_err() && sent("plain", verifier).is_err() && sent("", challenge).is_err());
    }
}
