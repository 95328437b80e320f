//! OAuth 2.1: metadata, registration, tokens. The person's part is in `authorize` and `sign_in`.
//!
//! **Invariant:** no secret of a client, code or token is logged or kept; commands get digests alone.

mod authorize;
mod documents;
mod page;
mod sign_in;

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use svc_core::refusal::Kind;
use svc_core::refusal::Refusal;
use svc_core::rules::connect::exchange::ExchangeCode;
use svc_core::rules::connect::refresh::RefreshTokens;
use svc_core::rules::connect::register::RegisterClient;
use svc_core::rules::connect::revoke::RevokeOAuth;
use svc_core::rules::connect::{Grant, NewTokens};
use svc_core::rules::people::keys::NewKey;
use svc_core::state::connect::{ACCESS_LIFE, ClientAuth, OAuthClient};
use svc_core::store::{Key, Range};
use svc_core::value::digest::Digest;
use svc_core::value::link::Index;

pub(crate) use self::documents::Documents;
pub(super) use self::sign_in::is_question;
pub(crate) use self::sign_in::{KeptQuestions, SentForms};
use super::GateService;
use super::sign_in::draw;
use crate::address::RateAddress;
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::pages::{self, refused};
use crate::rate_limit::Subject;
use crate::routes::{Limit, OAuthOp};
use crate::secrets::{ACCESS_PREFIX, NewSecret, REFRESH_PREFIX};
use crate::wire::oauth::{self, Form};

/// How long metadata may be kept by caches.
const METADATA_CACHE: &str = "max-age=300";
/// How often a place is looked for that somebody else takes meanwhile.
const PLACES_TRIED: usize = 4;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: OAuthOp, call: &Call) -> Result<Answer, Refusal> {
    let base = &service.base_url;
    match op {
        OAuthOp::Metadata | OAuthOp::McpMetadata => metadata(&oauth::server(base, service.client_documents)),
        OAuthOp::OpenId => metadata(&oauth::openid(base, service.client_documents)),
        OAuthOp::Resource | OAuthOp::McpResource => metadata(&oauth::resource(base, "/mcp")),
        OAuthOp::ProxyResource => {
            let name = call.param("server");
            if !oauth::is_server_name(name) {
                return Err(Refusal::not_found());
            }
            metadata(&oauth::resource(base, &format!("/mcp/proxy/{name}")))
        }
        OAuthOp::Register => register(service, call).await,
        OAuthOp::Authorize => Ok(authorize::ask(service, call).await.unwrap_or_else(|it| refused::page(&it))),
        OAuthOp::Decide => Ok(authorize::decide(service, call).await.unwrap_or_else(|it| refused::page(&it))),
        OAuthOp::SignInPage => Ok(pages::sign_in()),
        OAuthOp::SignIn => Ok(sign_in::answer(service, call).await.unwrap_or_else(|it| refused::page(&it))),
        OAuthOp::Token => token(service, call).await,
        OAuthOp::Revoke => revoke(service, call).await,
    }
}

fn metadata(body: &Value) -> Result<Answer, Refusal> {
    json(body).map(|it| it.cached(METADATA_CACHE))
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}

async fn register(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let asked = oauth::registration(&call.body, &service.allow_redirects)?;
    let secret = if asked.auth == ClientAuth::None { None } else { Some(draw("")?) };
    let client = registered(
        service,
        RegisterClient {
            name: asked.name.clone(),
            redirects: asked.redirects.clone(),
            auth: asked.auth,
            secret: secret.as_ref().map(|it| it.digest),
            instead_of: None,
        },
    )
    .await?;
    let secret = secret.as_ref().map(|it| it.text.expose().as_str());
    Ok(json(&oauth::registered(&client, asked, secret))?.created())
}

/// The client, in the place of the oldest that nobody has used where there are as many of those as there may be: whoever
/// registers without end keeps nobody else out.
async fn registered(service: &GateService, mut asked: RegisterClient) -> Result<Arc<OAuthClient>, Refusal> {
    let mut client = service.run(asked.clone()).await;
    for _ in 0..PLACES_TRIED {
        if !client.as_ref().is_err_and(|it| it.kind() == Kind::NotReady) {
            break;
        }
        let oldest = service.scan(&Range::all(Index::ClientsUnused, 0, 1))?;
        let Some(Key::OAuthClient(id)) = oldest.first().map(|it| it.row.key) else { break };
        asked.instead_of = Some(id);
        client = service.run(asked.clone()).await;
    }
    client
}

/// A pair of tokens in the clear, and what is kept of it.
struct Pair {
    access: NewSecret,
    refresh: NewSecret,
}

impl Pair {
    fn draw() -> Result<Self, Refusal> {
        Ok(Self { access: draw(ACCESS_PREFIX)?, refresh: draw(REFRESH_PREFIX)? })
    }

    fn kept(&self) -> NewTokens {
        NewTokens { access: NewKey::of(self.access.text.expose()), refresh: self.refresh.digest }
    }

    fn told(&self, service: &GateService, grant: Grant) -> Result<Answer, Refusal> {
        match grant {
            Grant::Refused(refusal) => Err(refusal),
            Grant::Ended { connection, by, refusal } => {
                service.metrics.reused(by);
                tracing::warn!(%connection, by = by.as_str(), "a used token was shown again: the connection has ended");
                Err(refusal)
            }
            Grant::Given(_) => {
                let seconds = ACCESS_LIFE.as_millis() / 1_000;
                json(&oauth::tokens(self.access.text.expose(), self.refresh.text.expose(), seconds))
            }
        }
    }
}

async fn token(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let form = Form::of(&call.headers, &call.uri, &call.body)?;
    let client = form.client(&call.headers)?;
    if let Some(limited) = service.count_client(&client.id, call) {
        return Ok(limited);
    }
    form.check_scope()?;
    form.check_resource(&service.base_url)?;
    let pair = Pair::draw()?;
    let grant = match form.need("grant_type")? {
        "authorization_code" => {
            // What cannot be a verifier is a wrong one: no challenge follows from it, and the attempt uses the code up.
            let [verifier, code, redirect] = form.need_all(["code_verifier", "code", "redirect_uri"])?;
            let challenge = oauth::challenge_of(verifier).unwrap_or_default().into();
            let (code, redirect) = (Digest::of(code), redirect.into());
            service.run(ExchangeCode { client, code, redirect, challenge, new: pair.kept() }).await?
        }
        "refresh_token" => {
            let token = Digest::of(form.need("refresh_token")?);
            service.run(RefreshTokens { client, token, new: pair.kept() }).await?
        }
        _ => return Err(Refusal::oauth(Kind::UnsupportedGrantType, "the grant is none of this server's")),
    };
    pair.told(service, grant)
}

async fn revoke(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let form = Form::of(&call.headers, &call.uri, &call.body)?;
    let token = Digest::of(form.need("token")?);
    // Nobody learns from the answer whether there was such a client or such a token; who names no client, or does not show the secret of
    // one that has one, is told so, or would take a token for revoked that is not (RFC 7009 part 2.1).
    let client = form.client(&call.headers)?;
    service.run(RevokeOAuth { client, token }).await?;
    Ok(Answer::json(&b"{}"[..]))
}

impl GateService {
    /// Counts one call of a client to the token endpoint, by the machine that it comes from: the name of a client is no secret, so
    /// that whoever names it would keep it out everywhere, and one client can be many people's. What refuses one too many.
    fn count_client(&self, client: &str, call: &Call) -> Option<Answer> {
        let machine = RateAddress::from(call.address).0;
        let subject = Subject::Caller(Digest::of(format!("{client} {machine:?}")).bits());
        let standing = self.oauth_clients.take(Limit::OAuthClient, subject, Instant::now())?;
        let limited = Refusal::rate_limited(standing.retry_after_s?);
        Some(Answer::refused(limited).with_standing(standing))
    }

    /// Counts one client's document that is read for somebody: whoever is a stranger has this server call whom they name, no more often
    /// than they may register clients.
    fn count_document(&self, call: &Call) -> Result<(), Refusal> {
        let subject = Subject::Address(RateAddress::from(call.address).0);
        let standing = self.oauth_clients.take(Limit::SignIn, subject, Instant::now());
        match standing.and_then(|it| it.retry_after_s) {
            Some(seconds) => Err(Refusal::rate_limited(seconds)),
            None => Ok(()),
        }
    }
}
