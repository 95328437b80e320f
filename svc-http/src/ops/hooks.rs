//! Requests of other systems, signed: whose they are is found, their signatures are verified, and only then are they read.
//!
//! **Invariant:** whatever keeps a request from being somebody's (no workspace, no integration, one that is off, a header, a time,
//! a replay) is one refusal, told alike.

mod billing;
mod github;
mod issuer;
mod relay;
mod slack;
mod ssf;
mod stripe;

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderName};
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::receive::{self, Event, Receive, Vouched};
use svc_core::state::edge::{Heard, Integration, IntegrationKind, IntegrationSlot, Received};
use svc_core::value::digest::ReceivedId;
use svc_core::value::id::WorkspaceId;
use svc_core::value::{Id as _, Span};

use super::{GateService, log};
use crate::answer::Answer;
use crate::dispatch::{Call, Unsigned};
use crate::inbound::signature::{STAMPED_KEPT, Secrets, stamped};
use crate::rate_limit::Subject;
use crate::routes::{HooksOp, Limit};

pub use self::billing::Billing;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: HooksOp, call: &Call) -> Result<Answer, Refusal> {
    match op {
        HooksOp::Billing => billing::answer(service, call).await,
        HooksOp::Github => github::answer(service, call).await,
        HooksOp::Issuer => issuer::answer(service, call).await,
        HooksOp::Relay => relay::answer(service, call).await,
        HooksOp::Slack => slack::answer(service, call).await,
        HooksOp::Ssf => ssf::answer(service, call).await,
        HooksOp::Stripe => stripe::answer(service, call).await,
    }
}

/// What the head of a request tells already: that it shows no signature, or that nobody is there who could have made it.
pub(super) fn unsigned(
    service: &GateService,
    op: HooksOp,
    headers: &HeaderMap,
    workspace: Option<&str>,
) -> Option<Unsigned> {
    let (shown, kind) = match op {
        HooksOp::Billing => (&stripe::STRIPE_SIGNATURE, None),
        HooksOp::Github => (&github::X_HUB_SIGNATURE_256, Some(IntegrationKind::Github)),
        HooksOp::Issuer => (&issuer::SVC_SIGNATURE, Some(IntegrationKind::Issuer)),
        HooksOp::Relay => (&issuer::SVC_SIGNATURE, Some(IntegrationKind::Relay)),
        HooksOp::Slack => (&slack::X_SLACK_SIGNATURE, Some(IntegrationKind::Slack)),
        HooksOp::Stripe => (&stripe::STRIPE_SIGNATURE, Some(IntegrationKind::Stripe)),
        // The body is what is signed and its signature.
        HooksOp::Ssf => {
            return match ssf::is_event(headers) {
                Err(refusal) => Some(Unsigned::Bare(refusal)),
                Ok(()) if is_awaited(service, workspace, IntegrationKind::Ssf) => None,
                Ok(()) => Some(Unsigned::Nobodys(Refusal::disbelieved(Kind::AuthenticationFailed))),
            };
        }
    };
    if !headers.contains_key(shown) {
        return Some(Unsigned::Bare(Refusal::wrong_signature()));
    }
    let is_awaited = match kind {
        Some(kind) => is_awaited(service, workspace, kind),
        None => service.billing.is_awaited(),
    };
    (!is_awaited).then(|| Unsigned::Nobodys(Refusal::wrong_signature()))
}

/// Whether a workspace has an integration of this kind that is used. Where that cannot be read the request's own handler tells so.
fn is_awaited(service: &GateService, workspace: Option<&str>, kind: IntegrationKind) -> bool {
    let Some(Ok(workspace)) = workspace.map(WorkspaceId::parse) else { return false };
    let found = service.read(|scope| receive::addressed(scope, IntegrationSlot { workspace, kind }));
    found.map_or(true, |found| found.is_some_and(|it| it.enabled))
}

/// Whom a request says that it is from: the integration of the path's workspace, where there is one, and its secrets in force.
struct Claimed {
    integration: Option<Arc<Integration>>,
    secrets: Secrets,
    /// The sealed form of each.
    sealed: Vec<Box<str>>,
}

/// Whom a request is from, by its signature, and what of it was signed.
struct Verified {
    integration: Arc<Integration>,
    vouched: Vouched,
    request: ReceivedId,
    kept: Span,
}

impl Claimed {
    /// Looks the integration of this kind up. That there is none is told by nothing before the signature is looked at.
    ///
    /// # Errors
    /// `not_ready` where the store does not answer, or this server can open none of the secrets.
    fn of(service: &GateService, call: &Call, kind: IntegrationKind) -> Result<Self, Refusal> {
        let none = Self { integration: None, secrets: Secrets::default(), sealed: Vec::new() };
        let Ok(workspace) = WorkspaceId::parse(call.param("wid")) else { return Ok(none) };
        let slot = IntegrationSlot { workspace, kind };
        let found = service.read(|scope| receive::addressed(scope, slot))?;
        let Some(integration) = found else { return Ok(none) };
        let (purpose, mut secrets, mut all) = (Integration::purpose(slot), Vec::new(), Vec::new());
        let mut unopened = false;
        for sealed in integration.in_force(service.gate.now()) {
            match service.gate.open_sealed(&purpose, &sealed.sealed) {
                Ok(secret) => {
                    secrets.push(secret);
                    all.push(sealed.sealed);
                }
                Err(failure) => {
                    log(&failure);
                    unopened = true;
                }
            }
        }
        // Whether a signature fits nobody can tell then: it is no wrong one.
        if all.is_empty() && unopened {
            return Err(Refusal::not_ready());
        }
        Ok(Self { integration: Some(integration), secrets: Secrets::new(secrets), sealed: all })
    }

    /// The request's sender, where `header` has a signature of the `t=,v1=` form that fits.
    fn stamped(self, service: &GateService, call: &Call, header: &HeaderName) -> Result<Verified, Refusal> {
        let stamped = stamped(&call.headers, header, &call.body, &self.secrets, service.gate.now());
        let stamped = stamped.ok_or_else(Refusal::wrong_signature)?;
        self.verified(Some(stamped.secret), &[stamped.stamp.as_bytes(), &call.body], STAMPED_KEPT)
    }

    /// The request's sender, where the secret in this place fits; `signed` is what of it was signed.
    fn verified(self, secret: Option<usize>, signed: &[&[u8]], kept: Span) -> Result<Verified, Refusal> {
        let sealed = secret.and_then(|it| self.sealed.into_iter().nth(it));
        let (integration, sealed) = self.integration.zip(sealed).ok_or_else(Refusal::wrong_signature)?;
        let request = Received::request(integration.slot, signed);
        Ok(Verified { integration, vouched: Vouched::Secret(sealed), request, kept })
    }
}

impl Verified {
    /// Counts the request against its integration: a provider's addresses are shared, whoever has the secret is no stranger, and one
    /// provider's events keep no other's away.
    fn count(&self, service: &GateService) -> Result<(), Refusal> {
        let subject = Subject::Caller(self.integration.id.bits());
        match service.received.take(Limit::Key, subject, Instant::now()).and_then(|it| it.retry_after_s) {
            Some(seconds) => Err(Refusal::rate_limited(seconds)),
            None => Ok(()),
        }
    }

    /// Has the gate do what the event asks for, and gives what came of it.
    async fn take(self, service: &GateService, event: Event) -> Result<Heard, Refusal> {
        let Self { integration, vouched, request, kept } = self;
        service
            .run(Receive { slot: integration.slot, integration: integration.id, vouched, request, kept, event })
            .await
    }

    /// The row of an event, by the sender's id of it and what it says.
    fn event(&self, id: &str, says: &str) -> ReceivedId {
        Received::event(self.integration.slot, self.integration.id, id, says)
    }
}

/// What a sender is told.
fn answered(said: &serde_json::Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(said).map(Answer::json).map_err(|_| Refusal::internal())
}
