//! A code host's events (CONTRACT part 6): what became of the pull requests that tasks ended in.

use http::HeaderName;
use http::header::CONTENT_TYPE;
use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::rules::edge::merge::Merge;
use svc_core::rules::edge::receive::{Deed, Event, EventName};
use svc_core::state::edge::IntegrationKind;
use svc_core::value::Span;

use super::{Claimed, GateService, answered};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::single;
use crate::inbound::pull_request::Closed;
use crate::inbound::signature::plain;

pub(super) static X_HUB_SIGNATURE_256: HeaderName = HeaderName::from_static("x-hub-signature-256");
static X_GITHUB_EVENT: HeaderName = HeaderName::from_static("x-github-event");
/// How long a request is remembered: its signature has no time in it, and is good as long as the secret is.
const KEPT: Span = Span::hours(7 * 24);
/// Characters of an event's name.
const NAME_MAX: usize = 200;

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let claimed = Claimed::of(service, call, IntegrationKind::Github)?;
    let secret = plain(&call.headers, &X_HUB_SIGNATURE_256, &call.body, &claimed.secrets);
    // Of a request nothing but the body is signed: whatever else it says does not make it another one.
    let from = claimed.verified(secret, &[&call.body], KEPT)?;
    from.count(service)?;
    let heard = from.take(service, read(call)?).await?;
    answered(&json!({ "received": true, "outcome": heard.outcome }))
}

fn read(call: &Call) -> Result<Event, Refusal> {
    let text = |name| single(&call.headers, name).map(|it| it.and_then(|it| it.to_str().ok()));
    let is_name = |it: &&str| it.chars().count() <= NAME_MAX && !it.is_empty();
    let name = text(&X_GITHUB_EVENT)?.filter(is_name);
    let name = name.ok_or_else(|| Refusal::invalid_field("x-github-event", "must name the event"))?;
    let is_form =
        text(&CONTENT_TYPE)?.is_some_and(|it| it.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded"));
    let deed = Closed::read(name, &call.body, is_form)?.map_or(Deed::Nothing, |it| {
        let (repository, branch) = (it.repository.into(), it.branch.into());
        let Closed { merged, outsider, ended, tasks, .. } = it;
        Deed::Report(Merge { repository, branch, merged, outsider, ended, tasks })
    });
    let name = match name {
        "pull_request" => EventName::Known("pull_request"),
        "ping" => EventName::Known("ping"),
        other => EventName::Other(other.into()),
    };
    Ok(Event { name, id: None, deed })
}
