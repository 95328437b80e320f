//! What Slack sends (CONTRACT part 6): presses of the buttons that decide approvals.

use http::HeaderName;
use http::header::CONTENT_TYPE;
use serde_json::json;
use svc_core::answer::approval_page;
use svc_core::refusal::Refusal;
use svc_core::rules::edge::button::Press;
use svc_core::rules::edge::receive::{Deed, Event, EventName};
use svc_core::state::edge::IntegrationKind;

use super::{Claimed, GateService, Verified, answered};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::single;
use crate::inbound::interaction::{Interaction, Pressed};
use crate::inbound::signature::{STAMPED_KEPT, slack};
use crate::wire::slack as wire;

pub(super) static X_SLACK_SIGNATURE: HeaderName = HeaderName::from_static("x-slack-signature");
static X_SLACK_REQUEST_TIMESTAMP: HeaderName = HeaderName::from_static("x-slack-request-timestamp");

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let claimed = Claimed::of(service, call, IntegrationKind::Slack)?;
    let names = (&X_SLACK_SIGNATURE, &X_SLACK_REQUEST_TIMESTAMP);
    let stamped = slack(&call.headers, names, &call.body, &claimed.secrets, service.gate.now());
    let stamped = stamped.ok_or_else(Refusal::wrong_signature)?;
    let from = claimed.verified(Some(stamped.secret), &[stamped.stamp.as_bytes(), &call.body], STAMPED_KEPT)?;
    from.count(service)?;
    let content = single(&call.headers, &CONTENT_TYPE)?.and_then(|it| it.to_str().ok());
    let is_json = content.is_some_and(|it| it.to_ascii_lowercase().starts_with("application/json"));
    let event = |name, deed| Event { name, id: None, deed };
    match Interaction::read(&call.body, is_json)? {
        Interaction::Pressed(pressed) => press(service, from, pressed).await,
        Interaction::Elsewhere => {
            from.take(service, event(EventName::Known("block_actions"), Deed::Nothing)).await?;
            answered(&json!({}))
        }
        Interaction::SslCheck => {
            from.take(service, event(EventName::Known("ssl_check"), Deed::Nothing)).await?;
            answered(&json!({}))
        }
        Interaction::Challenge(challenge) => {
            from.take(service, event(EventName::Known("url_verification"), Deed::Nothing)).await?;
            answered(&json!({ "challenge": challenge }))
        }
        Interaction::Other(name) => {
            from.take(service, event(EventName::Other(name), Deed::Nothing)).await?;
            answered(&json!({}))
        }
    }
}

/// Takes somebody's word and tells them what came of it: in the answer, and at the address that the press names, since Slack shows
/// no answer to a press of a block.
async fn press(service: &GateService, from: Verified, pressed: Pressed) -> Result<Answer, Refusal> {
    let Pressed { user, choice, approval, digest, response_url, blocks } = pressed;
    let name = EventName::Known(choice.as_str());
    let url = approval_page(&service.base_url, from.integration.slot.workspace, approval);
    let press = Press { name: user.into(), approval, choice, digest, once: None };
    let heard = from.take(service, Event { name, id: None, deed: Deed::Press(Box::new(press)) }).await?;
    let message = wire::answer(&heard, &url, &blocks);
    if let Some(to) = response_url {
        service.slack.answer(&to, &message);
    }
    answered(&message)
}
