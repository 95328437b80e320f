//! An identity provider's security events (CONTRACT part 6; RFC 8417, RFC 8935): a person's sessions end in this workspace, and
//! where they are shut out their agents stop.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::receive::{Deed, Event, EventName, Receive, Vouched};
use svc_core::rules::edge::signal::{self, Named, Told};
use svc_core::rules::gate::fleet::Heard;
use svc_core::state::edge::{IntegrationConfig, IntegrationKind, Received, SignalConfig, SignalKeys};
use svc_core::state::people::{Selector, SsoLink};
use svc_core::value::Span;
use svc_core::value::id::WorkspaceId;
use svc_core::value::json::Json;
use svc_core::value::text::{Email, Note};

use super::{Claimed, GateService, Verified};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::single;
use crate::inbound::jwks::Jwks;
use crate::inbound::set::{AGE_MAX, Expected, MEDIA_TYPE, Set, Subject, Unverified};
use crate::ops::refusal;

/// How long a token is remembered: it may be issued a little ahead of here, and is too old after [`AGE_MAX`].
const KEPT: Span = Span::millis(AGE_MAX.as_millis() + Span::hours(1).as_millis());
/// How often a person's agents are looked for while they change.
const LOOKS_MAX: u32 = 16;

const CAEP: &str = "https://schemas.openid.net/secevent/caep/event-type/";
const RISC: &str = "https://schemas.openid.net/secevent/risc/event-type/";
const SSF: &str = "https://schemas.openid.net/secevent/ssf/event-type/";

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    is_event(&call.headers)?;
    let token = Unverified::read(&call.body)?;
    let claimed = Claimed::of(service, call, IntegrationKind::Ssf)?;
    let nobody = || Refusal::disbelieved(Kind::AuthenticationFailed);
    let integration = claimed.integration.filter(|it| it.enabled).ok_or_else(nobody)?;
    let IntegrationConfig::Signals(SignalConfig { issuer, audience, keys }) = &integration.config else {
        return Err(nobody());
    };
    let (issuer, audience) = issuer.as_deref().zip(audience.as_deref()).ok_or_else(nobody)?;
    let keys = keys.as_ref().ok_or_else(nobody)?;
    let keys = keys_of(service, integration.slot.workspace, keys, &call.body).await?;
    let set = token.verify(&keys, Expected { issuer, audience }, service.gate.now())?;
    let request = Received::request(integration.slot, &[issuer.as_bytes(), set.jti.as_bytes()]);
    let vouched = Vouched::Config(integration.config.clone());
    let from = Verified { integration: Arc::clone(&integration), vouched, request, kept: KEPT };
    from.count(service)?;
    take(service, &from, &set).await?;
    Ok(Answer::empty().with_status(StatusCode::ACCEPTED))
}

/// That a request says that its body is a security event.
pub(super) fn is_event(headers: &HeaderMap) -> Result<(), Refusal> {
    let sent = single(headers, &CONTENT_TYPE)?.and_then(|it| it.to_str().ok()).unwrap_or_default();
    if sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(MEDIA_TYPE) {
        Ok(())
    } else {
        Err(Refusal::no_security_event("`content-type` must be `application/secevent+jwt`"))
    }
}

/// The issuer's keys: those that are configured, or those at its address, read anew where none of them made the token's signature: it
/// may name no key, or one whose name was given to another. A 400 is a sender's last word on a token: where the keys cannot be had at
/// present, or may have the token's by now and were read for another, it is to send the token again.
async fn keys_of(
    service: &GateService,
    workspace: WorkspaceId,
    keys: &SignalKeys,
    token: &Bytes,
) -> Result<Arc<Jwks>, Refusal> {
    match keys {
        SignalKeys::Set(set) => {
            let read = Json::parse(set.as_bytes()).ok().and_then(|it| Jwks::of(&it).ok());
            read.map(Arc::new).ok_or_else(Refusal::not_ready)
        }
        SignalKeys::Url(url) => {
            let token = token.clone();
            let is_signed = move |keys: &Jwks| Unverified::read(&token).is_ok_and(|it| it.is_signed_by(keys));
            let found = service.key_sets.at(workspace, url.as_str(), is_signed).await;
            found.map_err(|left| {
                Refusal::not_ready_for(u32::try_from(left.as_secs().saturating_add(1)).unwrap_or(u32::MAX))
            })
        }
    }
}

/// What an event asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// The person's sessions end.
    SignOut,
    /// They do, and their agents stop.
    ShutOut,
    /// Nothing.
    Nothing,
}

/// An event's name, short where it is one that is known here, and what it asks for.
fn known(event: &str) -> (EventName, Asks) {
    let known = [
        (CAEP, "session-revoked", Asks::SignOut),
        (CAEP, "credential-change", Asks::SignOut),
        (RISC, "account-disabled", Asks::ShutOut),
        (RISC, "account-purged", Asks::ShutOut),
        (SSF, "verification", Asks::Nothing),
    ];
    let found = known.into_iter().find(|(family, name, _)| event.strip_prefix(family) == Some(name));
    found.map_or_else(|| (EventName::Other(event.into()), Asks::Nothing), |it| (EventName::Known(it.1), it.2))
}

/// Has the gate do what the event asks for. What is to stop is looked for first, and again where it changes meanwhile.
async fn take(service: &GateService, from: &Verified, set: &Set) -> Result<(), Refusal> {
    let (name, asks) = known(&set.event);
    let slot = from.integration.slot;
    for _ in 0..LOOKS_MAX {
        let deed = match (&set.subject, asks) {
            (_, Asks::Nothing) => Deed::Nothing,
            (subject, _) => match subject.as_ref().and_then(|it| named(slot.workspace, it)) {
                Some(named) => told(service, slot.workspace, named, asks).await?,
                // Whom the provider names otherwise is nobody who is known here.
                None => Deed::Unknown,
            },
        };
        let event = Event { name: name.clone(), id: None, deed };
        let (integration, request, kept) = (from.integration.id, from.request, from.kept);
        let vouched = from.vouched.clone();
        match service.run(Receive { slot, integration, vouched, request, kept, event }).await {
            Err(it) if it.kind() == Kind::NotReady => {}
            Err(it) if it.kind() == Kind::WrongSignature => {
                return Err(Refusal::disbelieved(Kind::AuthenticationFailed));
            }
            taken => return taken.map(drop),
        }
    }
    Err(Refusal::not_ready())
}

/// How somebody is named, in a way that says something here.
fn named(workspace: WorkspaceId, subject: &Subject) -> Option<Named> {
    match subject {
        Subject::Email(email) => Email::parse(email).ok().map(Named::Address),
        // As single sign-on knows them, whichever provider that is. Some write their name here with a slash at its end, and in ID tokens
        // without one. Who sends the event is not judged by it: that was its signature.
        Subject::IssSub { issuer, subject } => {
            let bare = issuer.strip_suffix('/').unwrap_or(issuer);
            let other = if bare == issuer { format!("{bare}/") } else { bare.to_owned() };
            Some(Named::Subject([issuer, &other].map(|it| SsoLink::id_of(workspace, it, subject))))
        }
        Subject::Opaque(_) | Subject::Other => None,
    }
}

/// Who it is about, and their agents where they are to stop.
async fn told(service: &GateService, workspace: WorkspaceId, named: Named, asks: Asks) -> Result<Deed, Refusal> {
    let principal = service.read(|scope| signal::whose(scope, workspace, &named))?;
    let stop = match principal.filter(|_| asks == Asks::ShutOut) {
        None => None,
        Some(id) => {
            let (gate, selector) = (service.gate.clone(), Selector { principal: Some(id), ..Selector::default() });
            // Looking through all agents takes its time, so it does not happen on a thread that serves others.
            let found = crate::at_hand::spawn_blocking(move || gate.select(workspace, &selector)).await;
            let found = found.map_err(|_| Refusal::internal())?.map_err(refusal)?;
            let heard =
                Heard { epoch: found.epoch, agents: found.agents.into(), frozen: found.frozen, digest: found.digest };
            let reason = Note::parse("the identity provider shut the person out").map_err(|_| Refusal::internal())?;
            Some((heard, reason))
        }
    };
    Ok(Deed::Signal(Box::new(Told { named, principal, stop })))
}
