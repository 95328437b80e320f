//! What a relay of a team chat sends (CONTRACT part 6): that somebody has pressed one of the buttons that it was given.

use svc_core::refusal::Refusal;
use svc_core::rules::edge::button::Press;
use svc_core::rules::edge::receive::{Deed, Event, EventName};
use svc_core::state::edge::IntegrationKind;

use super::issuer::SVC_SIGNATURE;
use super::{Claimed, GateService, answered};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::inbound::button::Button;
use crate::wire::press as wire;

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let from = Claimed::of(service, call, IntegrationKind::Relay)?.stamped(service, call, &SVC_SIGNATURE)?;
    from.count(service)?;
    let sent = wire::read(&call.body)?;
    let id = Some(from.event(&sent.id, &format!("{}\n{}", sent.token, sent.member)));
    let deed = match Button::open(&service.gate, &from.integration, &sent.token) {
        Some(button) => Deed::Press(Box::new(Press {
            name: sent.member.into(),
            approval: button.approval,
            choice: button.choice,
            digest: button.digest,
            once: Some(button.once(&from.integration)),
        })),
        None => Deed::Nothing,
    };
    let heard = from.take(service, Event { name: EventName::Known("button"), id, deed }).await?;
    answered(&wire::relayed(&heard))
}
