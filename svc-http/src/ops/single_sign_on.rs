//! Signing in by a workspace's own identity provider: a person is sent there, comes back with a code, and gets a session that is good
//! in that workspace (OpenID Connect Core 1.0, 3.1, with PKCE, RFC 7636).
//!
//! **Invariant:** who comes back was sent from here, in this browser, within ten minutes, and comes back once: what was drawn for it
//! is sealed in a cookie of that browser alone. What a provider says of why it signed nobody in is shown to nobody.

use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::sign_in::SignInStep;
use svc_core::rules::people::single_sign_on::{
    OwnProof, Provider, SignInBySso, SsoStep, Vouched, domain_to_prove, provider,
};
use svc_core::state::edge::{Integration, Received};
use svc_core::state::people::{SESSION_LIFE, Session, SsoLink};
use svc_core::value::digest::{Digest, ReceivedId, SsoLinkId};
use svc_core::value::domain::Domain;
use svc_core::value::id::{IntegrationId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::text::Email;
use svc_core::value::{Span, Timestamp};

use super::oauth::is_question;
use super::sign_in::{draw, told};
use super::{GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::docs::escape;
use crate::identity::{Asking, Description, Redeeming, Unredeemed};
use crate::inbound::id_token::{Expected, IdToken, Unverified};
use crate::pages::{Page, refused};
use crate::wire::oauth::{Form, challenge_of};
use crate::wire::sign_in as wire;

/// How long a person may be away, in seconds.
const AWAY_SECONDS: i64 = 600;
/// Bytes of where a person goes on to: it travels in a cookie. A question that is longer is kept here, and a short one stands for it.
pub(super) const NEXT_MAX: usize = 1_500;

/// What is known of a person who was sent to their provider.
#[derive(Serialize, Deserialize)]
struct Sent {
    /// Of what they come back with.
    state: Digest,
    /// Of what their token names.
    nonce: Digest,
    /// What their code is redeemed with.
    verifier: Box<str>,
    integration: IntegrationId,
    issuer: Box<str>,
    client_id: Box<str>,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Box<str>>,
}

/// Whom a provider vouches for while the account's own proof is waited for.
#[derive(Serialize, Deserialize)]
struct Waiting {
    integration: IntegrationId,
    issuer: Box<str>,
    client_id: Box<str>,
    subject: SsoLinkId,
    email: Option<Email>,
    domain: Option<Domain>,
    issued_at: Timestamp,
    sent: ReceivedId,
    at: Timestamp,
}

/// Why somebody is not signed in, as a person reads it.
#[derive(Debug)]
struct Failed {
    refusal: Refusal,
    said: &'static str,
}

const NO_PROVIDER: &str = "This workspace has no single sign-on.";
const NOT_SENT: &str =
    "This sign-in was not begun in this browser, was used before, or took longer than ten minutes. Begin again.";
const UNREACHABLE: &str = "The workspace's identity provider does not answer as it should. Try again in a moment; if you see this again, tell whoever runs the workspace.";
const CLIENT: &str = "The workspace's identity provider does not know this server: tell whoever runs the workspace to look at client id and secret.";
const NOT_SIGNED_IN: &str = "The workspace's identity provider did not sign you in.";
const DISBELIEVED: &str = "What the workspace's identity provider sent is not believed. Begin again; if you see this again, tell whoever runs the workspace.";
const SIGNED_OUT: &str =
    "You were signed out there a moment ago, after your identity provider had said who you are. Begin again.";
const NOBODY: &str = "Nobody signs in to this workspace so. Whoever runs the workspace invites people, by the address that the identity provider has verified as theirs and of a domain that is the workspace's.";

impl Failed {
    fn wrong(said: &'static str) -> Self {
        Self { refusal: Refusal::wrong_sign_in(), said }
    }

    fn unreachable() -> Self {
        Self { refusal: Refusal::not_ready(), said: UNREACHABLE }
    }

    /// The page, with the way to where it begins again.
    fn page(&self, service: &GateService, workspace: Option<WorkspaceId>) -> Answer {
        let base = escape(service.site.path());
        let again = workspace.map(|it| format!("<p><a href=\"{base}/api/sign-in/sso/{it}\">Begin again</a></p>\n"));
        let again = again.filter(|_| self.refusal.kind() != Kind::NotFound).unwrap_or_default();
        let way = format!("{again}<p><a href=\"{base}/sign-in\">Sign in otherwise</a></p>\n");
        refused::told(&self.refusal, refused::saying(self.refusal.kind(), StatusCode::OK, self.said, &way))
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        let said = match refusal.kind() {
            Kind::WrongSignIn | Kind::Unauthenticated => NOBODY,
            Kind::NotFound => NO_PROVIDER,
            Kind::RateLimited => {
                "Too many sign-ins from where you are are under way. Wait a moment, then load this page again."
            }
            Kind::InvalidRequest => "This address is none that leads anywhere.",
            _ => "Something went wrong here. Try again in a moment.",
        };
        Self { refusal, said }
    }
}

/// Sends a person to the provider of the workspace that the path names.
pub(super) async fn begin(service: &GateService, call: &Call) -> Answer {
    let workspace = WorkspaceId::parse(call.param("wid")).ok();
    if is_sent_by_others(call) {
        return asking_first(service, call);
    }
    let sent = match workspace {
        Some(workspace) => send(service, call, workspace).await,
        None => Err(Refusal::not_found().into()),
    };
    sent.unwrap_or_else(|failed| failed.page(service, workspace))
}

/// Whether a page of another site has led the browser here: it could sign somebody in as whom its own provider says, in place of
/// themselves, if nobody had to press anything.
fn is_sent_by_others(call: &Call) -> bool {
    let site = call.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    site.is_some_and(|it| it != b"same-origin" && it != b"none")
}

/// The page that asks whether somebody means to sign in here.
fn asking_first(service: &GateService, call: &Call) -> Answer {
    let base = escape(service.site.path());
    let query = call.uri.query().map(|it| format!("?{it}")).unwrap_or_default();
    let on = format!("{base}/api/sign-in/sso/{}{}", escape(call.param("wid")), escape(&query));
    let main = format!(
        "<h1>Sign in with single sign-on</h1>\n<p>Another site has led you here. Go on only if you mean to sign in to this workspace: <code>{}</code></p>\n<p><a href=\"{on}\">Go on to its identity provider</a></p>\n",
        escape(call.param("wid"))
    );
    Page { status: StatusCode::OK, title: "Sign in", main: &main, style: "", form_action: "'none'", script: None }
        .answer()
}

async fn send(service: &GateService, call: &Call, workspace: WorkspaceId) -> Result<Answer, Failed> {
    let form = Form::of_query(&call.uri)?;
    let next = form.get("next");
    if next.is_some_and(|it| !leads_on(it)) {
        return Err(Refusal::invalid_field("next", "leads elsewhere").into());
    }
    let Provider { integration, issuer, client_id } =
        service.read(|scope| provider(scope, workspace))?.ok_or_else(Refusal::not_found)?;
    let description = service.providers.described(workspace, &issuer).await.ok_or_else(Failed::unreachable)?;
    let (state, nonce, verifier) = (draw("")?, draw("")?, draw("")?);
    let verifier = verifier.text.expose().as_str();
    let challenge = challenge_of(verifier).ok_or_else(Refusal::internal)?;
    let redirect = redirect(service, &integration)?;
    let asking = Asking {
        client_id: &client_id,
        redirect: &redirect,
        state: state.text.expose(),
        nonce: nonce.text.expose(),
        challenge: &challenge,
    };
    let to = description.asking(asking).ok_or_else(Refusal::internal)?;
    let sent = Sent {
        state: state.digest,
        nonce: nonce.digest,
        verifier: verifier.into(),
        integration: integration.id,
        issuer: issuer.clone(),
        client_id: client_id.clone(),
        at: service.gate.now(),
        next: next.map(Into::into),
    };
    let cookie = sealed(service, &sent_purpose(workspace), &sent)?;
    Ok(with_sso_cookie(service, leading(&to)?, &cookie)?)
}

/// Takes in a person who comes back from their provider.
pub(super) async fn returned(service: &GateService, call: &Call) -> Answer {
    let workspace = WorkspaceId::parse(call.param("wid")).ok();
    let taken = match workspace {
        Some(workspace) => take(service, call, workspace).await,
        None => Err(Refusal::not_found().into()),
    };
    taken.unwrap_or_else(|failed| failed.page(service, workspace))
}

async fn take(service: &GateService, call: &Call, workspace: WorkspaceId) -> Result<Answer, Failed> {
    service.may_decide()?;
    let form = Form::of_query(&call.uri)?;
    let (sent, cookie) = sent_from_here(service, call, workspace, &form)?;
    // A code belongs to the one sign-in that was begun for it, so nobody's is guessed at who could be locked out in turn. Whoever
    // has to wait comes back with the same answer, which is not used up before.
    let tried = service.begin_in_line(&format!("sso {workspace}"), call)?;
    if !service.forms.spend(cookie, sent.at, service.gate.now()) {
        tried.forgive();
        return Err(Failed::wrong(NOT_SENT));
    }
    let vouched = vouched(service, workspace, &form, &sent).await;
    // Only what is not believed is a wrong try: whom the provider does not sign in, or nobody has invited, guesses nothing.
    if vouched.as_ref().err().is_none_or(|it| it.said != DISBELIEVED) {
        tried.forgive();
    }
    let vouched = vouched?;
    let cookie = draw("")?;
    let asked = SignInBySso { vouched: vouched.clone(), own: None, cookie: cookie.digest };
    let step = service.run(asked).await?;
    let next = sent.next.as_deref();
    match step {
        SsoStep::Started(_) => {
            let answer = leading(&format!("{}{}", service.site.path(), next.unwrap_or("/sign-in")))?;
            let answer = service.with_cookie(answer, cookie.text.expose(), SESSION_LIFE.as_millis() / 1_000)?;
            Ok(with_sso_cookie(service, answer, "")?)
        }
        SsoStep::SignedOut => Err(Failed::wrong(SIGNED_OUT)),
        // In the text that whoever is nobody here reads as well.
        SsoStep::Unproven => Err(Failed::wrong(NOBODY)),
        SsoStep::Unlinked => {
            // The page of signing in goes on with it, once the account's own proof is there.
            let onward = next.map(|it| format!("&next={}", encoded(it))).unwrap_or_default();
            let answer = leading(&format!("{}/sign-in?link={workspace}{onward}", service.site.path()))?;
            let waiting = sealed(service, &waiting_purpose(workspace), &Waiting::of(vouched, service.gate.now()))?;
            Ok(with_sso_cookie(service, answer, &waiting)?)
        }
    }
}

/// What this browser was sent with, where what came back is an answer to it, and the cookie that is used up by the answer.
fn sent_from_here<'call>(
    service: &GateService,
    call: &'call Call,
    workspace: WorkspaceId,
    form: &Form,
) -> Result<(Sent, &'call str), Failed> {
    let not_sent = || Failed::wrong(NOT_SENT);
    let cookie = service.site.sso_cookie(&call.headers).ok_or_else(not_sent)?;
    let sent: Sent = opened(service, &sent_purpose(workspace), cookie).ok_or_else(not_sent)?;
    let state = form.get("state").map(Digest::of);
    if state == Some(sent.state) { Ok((sent, cookie)) } else { Err(not_sent()) }
}

/// Whom the provider vouches for, by the code that came back.
async fn vouched(service: &GateService, workspace: WorkspaceId, form: &Form, sent: &Sent) -> Result<Vouched, Failed> {
    let Provider { integration, issuer, client_id } =
        service.read(|scope| provider(scope, workspace))?.ok_or_else(Refusal::not_found)?;
    if integration.id != sent.integration || issuer != sent.issuer || client_id != sent.client_id {
        return Err(Failed::wrong(NOT_SENT));
    }
    let description = service.providers.described(workspace, &issuer).await.ok_or_else(Failed::unreachable)?;
    // A provider that was asked by mistake for another sends back under its own name (RFC 9207, 2.4).
    let named = form.get("iss");
    if named.is_some_and(|it| *it != *issuer) || (named.is_none() && description.names_itself) {
        return Err(Failed::wrong(DISBELIEVED));
    }
    let (None, Some(code)) = (form.get("error"), form.get("code")) else {
        return Err(Failed { refusal: Refusal::forbidden("the provider signed nobody in"), said: NOT_SIGNED_IN });
    };
    let token = redeemed(service, &integration, &description, code, sent).await?;
    let token = believed(service, workspace, &description, token.expose(), sent).await?;
    let mut vouched = Vouched {
        workspace,
        integration: integration.id,
        subject: SsoLink::id_of(workspace, &issuer, &token.subject),
        issuer,
        client_id,
        email: token.email,
        domain: None,
        unproven: None,
        issued_at: token.issued_at,
        sent: Received::sign_in(integration.slot, &sent.nonce),
    };
    if let Some(domain) = service.read(|scope| domain_to_prove(scope, &vouched))? {
        match service.providers.proof(workspace, &domain).await {
            Ok(()) => vouched.domain = Some(domain),
            Err(why) => vouched.unproven = why.map(|it| it.to_string().into()),
        }
    }
    Ok(vouched)
}

/// The ID token that the code stands for: with the secret in force, or the one before it as long as both are good.
async fn redeemed(
    service: &GateService,
    integration: &Integration,
    description: &Description,
    code: &str,
    sent: &Sent,
) -> Result<Secret<String>, Failed> {
    let (redirect, purpose) = (redirect(service, integration)?, Integration::purpose(integration.slot));
    for kept in integration.in_force(service.gate.now()) {
        let opened = service.gate.open_sealed(&purpose, &kept.sealed).map_err(refusal)?;
        let secret = String::from_utf8(opened.expose().clone()).map_err(|_| Refusal::internal())?;
        let asked = Redeeming {
            workspace: integration.slot.workspace,
            client_id: &sent.client_id,
            secret: &Secret::new(secret),
            redirect: &redirect,
            code,
            verifier: &sent.verifier,
        };
        match service.providers.redeem(description, &asked).await {
            Ok(token) => return Ok(token),
            Err(Unredeemed::Client) => {}
            Err(Unredeemed::Refused) => return Err(Failed::wrong(DISBELIEVED)),
            Err(Unredeemed::Unreachable) => return Err(Failed::unreachable()),
        }
    }
    tracing::warn!(workspace = %integration.slot.workspace, "an identity provider does not know this server by its secret");
    Err(Failed { refusal: Refusal::not_ready(), said: CLIENT })
}

/// What the token says, verified by the provider's own keys.
async fn believed(
    service: &GateService,
    workspace: WorkspaceId,
    description: &Description,
    token: &str,
    sent: &Sent,
) -> Result<IdToken, Failed> {
    let disbelieved = |why| {
        tracing::warn!(%workspace, ?why, "what an identity provider sent is not believed");
        Failed::wrong(DISBELIEVED)
    };
    let token = Unverified::read(token).map_err(disbelieved)?;
    let kid = token.kid();
    let keys = service.key_sets.at(workspace, description.keys.as_str(), move |keys| keys.has(kid.as_deref())).await;
    let keys = keys.map_err(|_| Failed::unreachable())?;
    let expected = Expected { issuer: &sent.issuer, client_id: &sent.client_id, nonce: sent.nonce };
    token.verify(&keys, expected, service.gate.now()).map_err(disbelieved)
}

/// Links whom the provider vouches for to the account that exists already, by the account's own proof.
pub(super) async fn confirm(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let token = wire::own_proof(&call.body)?;
    let gone =
        || Refusal::not_allowed("this was not begun in this browser, or took longer than ten minutes: begin again");
    let workspace = WorkspaceId::parse(call.param("wid")).map_err(|_| gone())?;
    let cookie = service.site.sso_cookie(&call.headers).ok_or_else(gone)?;
    let waiting: Waiting = opened(service, &waiting_purpose(workspace), cookie).ok_or_else(gone)?;
    if service.gate.now() >= waiting.at.plus(Span::seconds(AWAY_SECONDS)) {
        return Err(gone());
    }
    let session = service.site.session(&call.headers).map(|it| OwnProof::Session(Session::id_of(&Digest::of(it))));
    let own = token.map(|it| OwnProof::SignIn(Digest::of(it.expose()))).or(session);
    let sid = draw("")?;
    let step = service.run(SignInBySso { vouched: waiting.vouched(workspace), own, cookie: sid.digest }).await?;
    let SsoStep::Started(started) = step else { return Err(Refusal::wrong_sign_in()) };
    let answer = told(service, SignInStep::Started(started), &sid, None)?;
    with_sso_cookie(service, answer, "")
}

impl Waiting {
    fn of(vouched: Vouched, at: Timestamp) -> Self {
        let Vouched {
            workspace: _,
            integration,
            issuer,
            client_id,
            subject,
            email,
            domain,
            unproven: _,
            issued_at,
            sent,
        } = vouched;
        Self { integration, issuer, client_id, subject, email, domain, issued_at, sent, at }
    }

    fn vouched(self, workspace: WorkspaceId) -> Vouched {
        let Self { integration, issuer, client_id, subject, email, domain, issued_at, sent, at: _ } = self;
        Vouched { workspace, integration, issuer, client_id, subject, email, domain, unproven: None, issued_at, sent }
    }
}

/// Whether this is a page of this server that somebody may go on to: one of a workspace, or the question whether a client may act.
pub(super) fn leads_on(next: &str) -> bool {
    let (path, query) = next.split_once('?').unwrap_or((next, ""));
    let is_plain = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'/' | b'-');
    let is_said = |it: u8| it.is_ascii_alphanumeric() || b"_.=&%:+*-".contains(&it);
    let is_page = path.starts_with("/w/") && path.bytes().all(is_plain) && query.bytes().all(is_said);
    next.len() <= NEXT_MAX && (is_page || is_question(next))
}

/// Where a provider sends people back to.
fn redirect(service: &GateService, integration: &Integration) -> Result<String, Refusal> {
    let path = integration.slot.kind.receive_path(integration.slot.workspace).ok_or_else(Refusal::internal)?;
    Ok(format!("{}{path}", service.base_url))
}

fn leading(to: &str) -> Result<Answer, Refusal> {
    let to = HeaderValue::from_str(to).map_err(|_| Refusal::internal())?;
    Ok(Answer::html("")
        .with_status(StatusCode::SEE_OTHER)
        .with_header(LOCATION, to)
        .with_header(http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")))
}

/// A text as a member of a query.
pub(in crate::ops) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The same answer with the cookie of a sign-in under way, or its end where it is empty.
fn with_sso_cookie(service: &GateService, answer: Answer, cookie: &str) -> Result<Answer, Refusal> {
    let seconds = if cookie.is_empty() { 0 } else { AWAY_SECONDS };
    let cookie = HeaderValue::from_str(&service.site.set_sso_cookie(cookie, seconds));
    Ok(answer.with_header(SET_COOKIE, cookie.map_err(|_| Refusal::internal())?))
}

/// What each cookie is sealed for, so that none is good for the other, or in another workspace.
fn sent_purpose(workspace: WorkspaceId) -> String {
    format!("single sign-on sent {workspace}")
}

fn waiting_purpose(workspace: WorkspaceId) -> String {
    format!("single sign-on waiting {workspace}")
}

fn sealed(service: &GateService, purpose: &str, kept: &impl Serialize) -> Result<String, Refusal> {
    let text = serde_json::to_vec(kept).map_err(|_| Refusal::internal())?;
    service.gate.seal(purpose, &text).map_err(refusal)
}

/// What was sealed here for this; `None` of anything else.
fn opened<T: serde::de::DeserializeOwned>(service: &GateService, purpose: &str, sealed: &str) -> Option<T> {
    let opened = service.gate.open_sealed(purpose, sealed).ok()?;
    match serde_json::from_slice(opened.expose()) {
        Ok(it) => Some(it),
        Err(_) => {
            tracing::debug!("what a cookie holds is of another release");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody is led anywhere but to this server's own pages.
    #[test]
    fn only_pages_of_this_server_are_gone_on_to() {
        for own in [
            "/w/wsp_1/approvals/apv_1",
            "/w/wsp_1/activity?status=denied&from=2026-11-01T00%3A00",
            "/oauth/authorize?client_id=mcp_1&state=%2F",
        ] {
            assert!(leads_on(own), "{own}");
        }
        // Whatever is typed into a filter of the console stands so in its address.
        let typed: String = (' '..='~').chain(['ü', '€']).collect();
        let filtered = format!("/w/wsp_1/agents?name={}", encoded(&typed));
        assert!(leads_on(&filtered), "{filtered}");
        let long = format!("/w/{}", "a".repeat(NEXT_MAX));
        for other in [
            "",
            "/",
            "//evil.example",
            "/w/../..//evil.example",
            "/w/a:b",
            "https://evil.example",
            "/\\evil.example",
            "/w/a?b/c",
            "/w/a?b#c",
            "/w/a\r\nb",
            "/oauth/authorize?a b",
            "/sign-in",
            &long,
        ] {
            assert!(!leads_on(other), "{other}");
        }
    }
}
