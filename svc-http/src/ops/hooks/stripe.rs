//! A payment processor's requests (CONTRACT part 6): whether a card that it issues may be charged.

use http::{HeaderName, HeaderValue};
use svc_core::refusal::Refusal;
use svc_core::rules::edge::receive::{Deed, Event, EventName};
use svc_core::state::edge::IntegrationKind;

use super::issuer::covered;
use super::{Claimed, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::wire::issuer::{ChargeWish, Named};
use crate::wire::stripe::{self as wire, StripeEvent};

pub(super) const STRIPE_SIGNATURE: HeaderName = HeaderName::from_static("stripe-signature");
const STRIPE_VERSION: HeaderName = HeaderName::from_static("stripe-version");
const REQUEST: &str = "issuing_authorization.request";

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let from = Claimed::of(service, call, IntegrationKind::Stripe)?.stamped(service, call, &STRIPE_SIGNATURE)?;
    from.count(service)?;
    let sent = wire::read(&call.body)?;
    let wish = sent.charge();
    let says = wish.as_ref().map(ChargeWish::says).unwrap_or_default();
    let id = Some(from.event(&sent.id, &format!("{} {says}", sent.name)));
    if &*sent.name != REQUEST {
        from.take(service, Event { name: EventName::Other(sent.name), id, deed: Deed::Nothing }).await?;
        return Ok(Answer::json(wire::write_received()));
    }
    let deed = match wish {
        // Whoever has a card must not be able to take it to a shop that nobody was asked about: without a merchant only an action
        // that is named itself covers a charge.
        Some(wish) if wish.merchant.is_none() && matches!(wish.named, Named::Agent(_)) => Deed::Uncovered,
        None => Deed::Uncovered,
        Some(wish) => Deed::Charge(covered(service, from.integration.slot.workspace, wish).await?),
    };
    let heard = from.take(service, Event { name: EventName::Known(REQUEST), id, deed }).await?;
    let answer = Answer::json(wire::write_approval(heard.approved == Some(true)));
    Ok(versioned(answer, &sent))
}

/// The answer in the version that the event is in: the processor takes none without.
fn versioned(answer: Answer, sent: &StripeEvent) -> Answer {
    match sent.api_version.as_deref().and_then(|it| HeaderValue::from_str(it).ok()) {
        Some(version) => answer.with_header(STRIPE_VERSION, version),
        None => answer,
    }
}
