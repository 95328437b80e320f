//! The body and the answer of `POST /v1/actions/{id}/callback`.

use serde::Serialize;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::callback::Registered;
use svc_core::state::edge::JobState;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use svc_core::value::id::ActionId;
use svc_core::value::text::UrlText;

use super::{Fields, parse, text};

/// Reads the address, through the outbound guard.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming `url`.
pub fn read(body: &[u8], guard: &Outbound) -> Result<UrlText, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let url = fields.required("url", |it| OutboundUrl::of_text(text(it)?, guard));
    fields.finish(url)
}

/// What is told of a callback (CONTRACT part 2, "Callback registration answer").
///
/// # Errors
/// `internal` where it cannot be written, which its members rule out.
pub fn write(action: ActionId, registered: &Registered) -> Result<Vec<u8>, Refusal> {
    let Registered { callback, job } = registered;
    let answer = CallbackAnswer {
        id: callback.id.to_string(),
        action_id: action.to_string(),
        url: callback.url.as_str(),
        state: job.as_ref().map_or(CallbackState::Waiting, |it| CallbackState::of(&it.state)).as_str(),
        created_at: callback.created_at.to_string(),
        attempts: job.as_ref().map_or(0, |it| it.attempts.len()),
    };
    serde_json::to_vec(&answer).map_err(|_| Refusal::internal())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallbackAnswer<'a> {
    id: String,
    action_id: String,
    url: &'a str,
    state: &'static str,
    created_at: String,
    attempts: usize,
}

/// How a callback stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackState {
    /// It waits for its decision or its next try.
    Waiting,
    /// It is delivered.
    Delivered,
    /// It is given up.
    Failed,
}

impl CallbackState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::Failed];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    const fn of(call: &JobState) -> Self {
        match call {
            JobState::Waiting { .. } | JobState::Sending { .. } | JobState::Replaced { .. } => Self::Waiting,
            JobState::Delivered { .. } => Self::Delivered,
            JobState::Failed { .. } => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::state::edge::outbound::Private;

    use super::*;

    /// White space around an address is no part of it; within it is a fault.
    #[test]
    fn an_address_is_trimmed() {
        let guard = Outbound { private: Private::Nowhere, own_host: "svc.example".into() };
        let url = read(br#"{"url":" \t https://agent.example.com/cb \n"}"#, &guard).unwrap();
        assert_eq!(url.as_str(), "https://agent.example.com/cb");
        for bad in [r#"{"url":"https://agent.example.com/c b"}"#, r#"{"url":"  "}"#] {
            let fault = read(bad.as_bytes(), &guard).unwrap_err();
            assert_eq!(fault.errors()[0].field.as_deref(), Some("url"), "{bad}");
        }
    }
}
