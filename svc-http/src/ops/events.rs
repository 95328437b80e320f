//! Live events of a workspace.

use http::{HeaderName, HeaderValue};
use svc_core::refusal::Refusal;

use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::headers::single;
use crate::live;
use crate::routes::EventsOp;
use crate::wire::actions::no_event_id;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How soon one who watches too often may try again, in seconds.
const AGAIN_S: u32 = 15;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: EventsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    match op {
        EventsOp::Watch => {
            let member = caller.member()?;
            let heard = single(&call.headers, &LAST_EVENT_ID)?.map(place).transpose()?.flatten();
            let seat = service.live.seat(member.person, member.role).map_err(refusal)?;
            let seat = seat.ok_or_else(|| Refusal::rate_limited(AGAIN_S))?;
            let stream = Answer::stream("text/event-stream", live::stream(seat, heard));
            Ok(stream.told_at_once())
        }
    }
}

/// The place in the ledger that a client has heard of. An empty one is none.
fn place(sent: &HeaderValue) -> Result<Option<u64>, Refusal> {
    let text = sent.to_str().unwrap_or("?");
    let is_number = text.bytes().all(|it| it.is_ascii_digit());
    match text.parse::<u64>() {
        _ if text.is_empty() => Ok(None),
        Ok(place) if is_number => Ok(Some(place)),
        _ => Err(no_event_id()),
    }
}
