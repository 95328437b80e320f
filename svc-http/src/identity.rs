//! Identity providers as this server is their client (OpenID Connect Core 1.0, Discovery 1.0): what they say of themselves, codes
//! turned into ID tokens, and domains that say whose they are.
//!
//! **Invariant:** every address comes from an owner or a provider and goes through the outbound guard; of what a provider answers
//! nothing is logged but its status and a word that is known here.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_core::state::edge::Trouble;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use svc_core::value::domain::Domain;
use svc_core::value::id::WorkspaceId;
use svc_core::value::json::Json;
use svc_core::value::secret::Secret;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::inbound::kept::{Kept, Times};
use crate::outbound::{Asker, Caller};

/// Bytes of what a provider says of itself, and of its answer to a code.
const ANSWER_MAX: usize = 64 * 1024;
/// What a provider says of itself is good for a day where it cannot be read again; one that cannot be read at all is asked every ten
/// seconds.
const DESCRIBED: Times =
    Times { fresh: Duration::from_secs(3_600), stale: Duration::from_secs(24 * 3_600), pause: Duration::from_secs(10) };
/// A domain that says whose it is is looked at every hour, one that does not every minute.
const PROVEN: Times =
    Times { fresh: Duration::from_secs(3_600), stale: Duration::from_secs(3_600), pause: Duration::from_secs(60) };
/// Where a provider describes itself, below its issuer (Discovery, 4).
const DESCRIPTION: &str = "/.well-known/openid-configuration";
/// Where a domain says whose it is.
const PROOF: &str = "/.well-known/svc-sso-verification";
/// Bytes of that, of which each line may name a workspace.
const PROOF_MAX: usize = 16 * 1024;

/// The identity providers that are known.
#[derive(Debug)]
pub(crate) struct Providers {
    caller: Arc<OnceLock<Caller>>,
    described: Kept<Description>,
    proven: Kept<Result<(), Unproven>>,
    /// Where domains are looked at, where that is not the port of https.
    proof_port: OnceLock<u16>,
}

/// What a provider says of itself, as far as it is of use here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Where people are sent to.
    authorization: OutboundUrl,
    /// Where codes are turned into tokens.
    token: OutboundUrl,
    /// Where its keys lie.
    pub keys: OutboundUrl,
    /// Whether this server shows who it is in the form, not in `authorization`.
    shows_in_form: bool,
    /// Whether it names itself wherever it sends people back (RFC 9207).
    pub(crate) names_itself: bool,
}

/// What a person is sent to a provider with.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) redirect: &'a str,
    pub(crate) state: &'a str,
    pub(crate) nonce: &'a str,
    pub(crate) challenge: &'a str,
}

/// What a code is turned into tokens with.
pub(crate) struct Redeeming<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) client_id: &'a str,
    pub(crate) secret: &'a Secret<String>,
    pub(crate) redirect: &'a str,
    pub(crate) code: &'a str,
    pub(crate) verifier: &'a str,
}

/// Why a code gave no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unredeemed {
    /// The provider does not know this server by that secret.
    Client,
    /// It does not take the code, or answers what is no token.
    Refused,
    /// It does not answer.
    Unreachable,
}

/// Why a domain does not say that it is a workspace's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unproven {
    /// Its file could not be read.
    Unread(Trouble),
    /// It was answered with this status.
    Answered(u16),
    /// It is no text.
    NoText,
    /// No line of it is the workspace's id.
    Unnamed,
}

impl fmt::Display for Unproven {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread(why) => write!(out, "`{PROOF}` could not be read: {}", why.as_str()),
            Self::Answered(status) => write!(out, "`{PROOF}` is answered with {status}, not 200"),
            Self::NoText => write!(out, "`{PROOF}` is no text"),
            Self::Unnamed => write!(out, "no line of `{PROOF}` is the workspace's id"),
        }
    }
}

impl Default for Providers {
    fn default() -> Self {
        Self {
            caller: Arc::default(),
            described: Kept::new(DESCRIBED),
            proven: Kept::new(PROVEN),
            proof_port: OnceLock::new(),
        }
    }
}

impl Providers {
    /// Calls with this caller from now on; before, nobody is called.
    pub(crate) fn call_with(&self, caller: Caller) {
        drop(self.caller.set(caller));
    }

    /// Looks at domains at this port.
    pub(crate) fn prove_at(&self, port: u16) {
        let _ = self.proof_port.set(port);
    }

    /// What a workspace's provider with this issuer says of itself; `None` where it says nothing that can be used.
    pub(crate) async fn described(&self, workspace: WorkspaceId, issuer: &str) -> Option<Arc<Description>> {
        let (caller, of) = (Arc::clone(&self.caller), issuer.to_owned());
        let read = move || async move { describe(&caller, Asker::Workspace(workspace), &of).await };
        self.described.at(workspace, issuer, |_| true, read).await.ok()
    }

    /// That a domain says that it is this workspace's.
    ///
    /// # Errors
    /// What is wrong with what it says; `None` where it was looked at a moment ago and is not to be called again yet.
    pub(crate) async fn proof(&self, workspace: WorkspaceId, domain: &Domain) -> Result<(), Option<Unproven>> {
        let place = format!("{workspace} {domain}");
        let port = self.proof_port.get().map(|it| format!(":{it}")).unwrap_or_default();
        let url = format!("https://{domain}{port}{PROOF}");
        let (caller, of) = (Arc::clone(&self.caller), domain.clone());
        let look = move || async move {
            let said = names(&caller, &url, workspace).await;
            if let Err(why) = said {
                tracing::warn!(%workspace, domain = %of, %why, "single sign-on links nobody of a domain that does not say whose it is");
            }
            Some(said)
        };
        let said = self.proven.at(workspace, &place, Result::is_ok, look).await.map_err(|_| None)?;
        (*said).map_err(Some)
    }

    /// Turns a code into an ID token.
    pub(crate) async fn redeem(&self, of: &Description, asked: &Redeeming<'_>) -> Result<Secret<String>, Unredeemed> {
        let caller = self.caller.get().ok_or(Unredeemed::Unreachable)?;
        let form = asked.form(of.shows_in_form);
        let authorization = (!of.shows_in_form).then(|| basic(asked.client_id, asked.secret));
        let answer =
            caller.post_form(Asker::Workspace(asked.workspace), &of.token, authorization, form, ANSWER_MAX).await;
        let answer = answer.map_err(|trouble| match trouble {
            // An answer that is too long, or no HTTP, is an answer.
            Trouble::Protocol => Unredeemed::Refused,
            _ => Unredeemed::Unreachable,
        })?;
        let json = Json::parse(&answer.body).ok();
        let text = |name: &str| json.as_ref().and_then(|it| it.get(name)).and_then(Json::as_str);
        if answer.status == 200
            && let Some(token) = text("id_token")
        {
            return Ok(Secret::new(token.to_owned()));
        }
        let error = text("error").and_then(|it| ERRORS.into_iter().find(|known| *known == it));
        tracing::warn!(
            host = of.token.host(),
            status = answer.status,
            error,
            "an identity provider gave no token for a code"
        );
        Err(refused(answer.status, error))
    }
}

/// What an answer says that has no token, by its status and its word, where that is one of [`ERRORS`]. That it does not know this server
/// by its secret is `invalid_client` in RFC 6749, 5.2, and other words with some providers; without being asked who one is, nobody else
/// hears 401.
fn refused(status: u16, error: Option<&str>) -> Unredeemed {
    match (status, error) {
        (401, _) | (400 | 403, Some("access_denied" | "invalid_client" | "unauthorized_client")) => Unredeemed::Client,
        (500.., _) => Unredeemed::Unreachable,
        _ => Unredeemed::Refused,
    }
}

/// The words for what is wrong that providers answer a code with (RFC 6749, 4.1.2.1 and 5.2): of what they answer these are logged and
/// nothing else.
const ERRORS: [&str; 8] = [
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "server_error",
    "unauthorized_client",
    "unsupported_grant_type",
];

impl Redeeming<'_> {
    /// The form of RFC 6749, 4.1.3, with the verifier of RFC 7636 and, where that is how this server shows who it is, its secret.
    fn form(&self, shows: bool) -> Secret<String> {
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", self.code)
            .append_pair("redirect_uri", self.redirect)
            .append_pair("code_verifier", self.verifier);
        if shows {
            form.append_pair("client_id", self.client_id).append_pair("client_secret", self.secret.expose());
        }
        Secret::new(form.finish())
    }
}

impl Description {
    /// Reads what the provider with this issuer says of itself. Its addresses are judged as if an owner had named them.
    #[must_use]
    pub fn read(json: &Json, issuer: &str, guard: &Outbound) -> Option<Self> {
        let text = |name: &str| json.get(name).and_then(Json::as_str);
        let url = |name: &str| OutboundUrl::parse(text(name)?, guard).ok();
        if text("issuer") != Some(issuer) {
            return None;
        }
        // Without a word the provider takes `client_secret_basic` (Discovery, 3).
        let methods = json.get("token_endpoint_auth_methods_supported").and_then(Json::as_list);
        let takes = |method: &str| methods.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(method)));
        let in_header = methods.is_none() || takes("client_secret_basic");
        if !in_header && !takes("client_secret_post") {
            return None;
        }
        let named = json.get("authorization_response_iss_parameter_supported").and_then(Json::as_bool);
        Some(Self {
            authorization: url("authorization_endpoint")?,
            token: url("token_endpoint")?,
            keys: url("jwks_uri")?,
            shows_in_form: !in_header,
            names_itself: named == Some(true),
        })
    }

    /// Where a person is sent to, and what for.
    pub(crate) fn asking(&self, asked: Asking<'_>) -> Option<String> {
        let mut url = Url::parse(self.authorization.as_str()).ok()?;
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("scope", "openid email")
            .append_pair("client_id", asked.client_id)
            .append_pair("redirect_uri", asked.redirect)
            .append_pair("state", asked.state)
            .append_pair("nonce", asked.nonce)
            .append_pair("code_challenge", asked.challenge)
            .append_pair("code_challenge_method", "S256");
        Some(url.into())
    }
}

/// `authorization: Basic`, each part form-encoded (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &Secret<String>) -> Secret<String> {
    let part = |it: &str| byte_serialize(it.as_bytes()).collect::<String>();
    Secret::new(format!("Basic {}", STANDARD.encode(format!("{}:{}", part(id), part(secret.expose())))))
}

async fn describe(caller: &OnceLock<Caller>, asker: Asker, issuer: &str) -> Option<Description> {
    let caller = caller.get()?;
    let place = format!("{}{DESCRIPTION}", issuer.strip_suffix('/').unwrap_or(issuer));
    let url = OutboundUrl::parse(&place, caller.guard()).ok()?;
    let fetched = caller.fetch(asker, &url, ANSWER_MAX).await.ok().filter(|it| it.status == 200);
    let read = fetched.and_then(|it| Json::parse(&it.body).ok());
    let description = read.and_then(|it| Description::read(&it, issuer, caller.guard()));
    if description.is_none() {
        tracing::warn!(host = url.host(), "what an identity provider says of itself could not be read");
    }
    description
}

/// That a line of what lies there names the workspace. A page that answers whatever is asked for does not.
async fn names(caller: &OnceLock<Caller>, url: &str, workspace: WorkspaceId) -> Result<(), Unproven> {
    let caller = caller.get().ok_or(Unproven::Unread(Trouble::Interrupted))?;
    let url = OutboundUrl::parse(url, caller.guard()).map_err(|_| Unproven::Unread(Trouble::Address))?;
    let fetched = caller.fetch(Asker::Workspace(workspace), &url, PROOF_MAX).await.map_err(Unproven::Unread)?;
    if fetched.status != 200 {
        return Err(Unproven::Answered(fetched.status));
    }
    let text = std::str::from_utf8(&fetched.body).map_err(|_| Unproven::NoText)?;
    let workspace = workspace.to_string();
    if text.lines().any(|line| line.trim() == workspace) { Ok(()) } else { Err(Unproven::Unnamed) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::{Value, json};
    use svc_core::state::edge::outbound::Private;

    use super::*;

    const ISSUER: &str = "https://idp.example/tenant";

    fn described(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Option<Description> {
        let mut said = json!({ "issuer": ISSUER, "authorization_endpoint": "https://idp.example/login?tenant=a",
            "token_endpoint": "https://idp.example/token", "jwks_uri": "https://keys.idp.example/set" });
        change(said.as_object_mut().unwrap());
        let guard = Outbound { private: Private::Nowhere, own_host: "gate.example.com".into() };
        Description::read(&Json::parse(said.to_string().as_bytes()).unwrap(), ISSUER, &guard)
    }

    /// A provider counts under its own issuer alone, with addresses that may be called, and where this server can show who it is.
    #[test]
    fn a_provider_is_what_its_issuer_says() {
        assert!(described(|_| ()).is_some_and(|it| !it.shows_in_form && !it.names_itself));
        for (name, value) in [
            ("issuer", json!("https://idp.example/tenant/")),
            ("issuer", json!("https://idp.example/other")),
            ("issuer", Value::Null),
            ("authorization_endpoint", json!("http://idp.example/login")),
            ("authorization_endpoint", json!("javascript:alert(1)")),
            ("token_endpoint", json!("https://169.254.169.254/token")),
            ("token_endpoint", json!("https://gate.example.com/oauth/token")),
            ("token_endpoint", json!("https://user:word@idp.example/token")),
            ("jwks_uri", json!("http://idp.example/set")),
            ("jwks_uri", Value::Null),
            ("token_endpoint_auth_methods_supported", json!(["private_key_jwt", "none"])),
            ("token_endpoint_auth_methods_supported", json!([])),
        ] {
            let changed = described(|said| drop(said.insert(name.to_owned(), value.clone())));
            assert_eq!(changed, None, "{name}: {value}");
        }
        let methods = |list: Value| {
            described(|said| drop(said.insert("token_endpoint_auth_methods_supported".to_owned(), list))).unwrap()
        };
        assert!(methods(json!(["client_secret_post"])).shows_in_form);
        assert!(!methods(json!(["client_secret_post", "client_secret_basic"])).shows_in_form);
    }

    /// A person is sent with what the sign-in is known by again, beside what the provider's address has already.
    #[test]
    fn a_person_is_sent_with_what_they_come_back_with() {
        let to = described(|_| ()).unwrap().asking(Asking {
            client_id: "svc & co",
            redirect: "https://gate.example.com/back",
            state: "s",
            nonce: "n",
            challenge: "c",
        });
        let url = Url::parse(&to.unwrap()).unwrap();
        let sent: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let expected = [
            ("tenant", "a"),
            ("response_type", "code"),
            ("scope", "openid email"),
            ("client_id", "svc & co"),
            ("redirect_uri", "https://gate.example.com/back"),
            ("state", "s"),
            ("nonce", "n"),
            ("code_challenge", "c"),
            ("code_challenge_method", "S256"),
        ];
        assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(basic("a:b", &Secret::new("c d".to_owned())).expose(), "Basic YSUzQWI6Yytk");
    }
}
