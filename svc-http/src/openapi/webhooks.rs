//! What this server calls: the other direction of the interface, as OpenAPI's `webhooks` have it.

use serde_json::{Map, Value, json};

use crate::routes::{Op, Route};
use crate::schemas::reference;

/// A call to an address that a client has named.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// The body's `type`.
    pub(crate) name: &'static str,
    /// The schema of its body.
    pub(crate) body: &'static str,
    /// What it tells.
    pub(crate) summary: &'static str,
    /// When it comes, and what to make of it.
    pub(crate) told: &'static str,
    operation: &'static str,
}

/// Every one of them.
pub(crate) const ALL: [Webhook; 2] = [
    Webhook {
        name: "action.decided",
        body: "ActionDecided",
        summary: "An action is decided: by a person, by time or by a stop",
        told: "The one address that an agent has registered for an action is called once the action is decided, and at once if it is decided already. The call is written in the commit that decides, so no crash loses it. Any 2xx within 10 seconds takes it; a redirect is not followed. Otherwise it is tried eight times in all: at once, then after 5 seconds, 30 seconds, 5 minutes, 30 minutes, 2, 6 and 12 hours, each give or take a fifth, and then given up, which the ledger records. It comes at least once: `svc-event-id` tells repeats. It carries no receipt; read the action.",
        operation: "actionDecided",
    },
    Webhook {
        name: "test",
        body: "CallbackTest",
        summary: "Somebody tests the secret of callbacks",
        told: "A person has the integration `callbacks` tested with an address (`POST /api/w/{wid}/integrations/{int}/test`). It is signed as every call and made once.",
        operation: "callbackTest",
    },
];

/// The headers of every such call, with what each is.
pub(crate) const HEADERS: [(&str, &str); 2] = [
    (
        "svc-signature",
        "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `t`, a full stop and the body as it was sent, under the whole text of the workspace's callback secret (`whsec_…`). `t` is the time of this try: refuse one that is minutes off. While the secret rotates there are two `v1`, one under each; one that fits is enough.",
    ),
    ("svc-event-id", "What is told: the same at every try, another for everything else."),
];

/// The `webhooks` of the document.
pub(super) fn all() -> Map<String, Value> {
    ALL.iter().map(|it| (it.name.to_owned(), json!({ "post": it.operation() }))).collect()
}

/// What an operation says beside its summary, of those that are followed by a call.
pub(crate) fn of(route: &Route) -> Option<&'static str> {
    (route.op == Op::RegisterCallback).then_some(
        "The address is called as the webhook `action.decided` has it, signed with the workspace's callback secret: once a person, time or a stop decides the action, and at once if it is decided already. A second registration takes the place of the first, whose calls are made no more. Only https at public addresses is called.",
    )
}

impl Webhook {
    fn operation(&self) -> Value {
        let header = |(name, told): (&str, &str)| json!({ "name": name, "in": "header", "required": true, "description": told, "schema": { "type": "string" } });
        json!({
            "operationId": self.operation,
            "summary": self.summary,
            "description": self.told,
            "security": [],
            "parameters": HEADERS.map(header),
            "requestBody": { "required": true, "content": { "application/json": { "schema": reference(self.body) } } },
            "responses": {
                "2XX": { "description": "It is taken, and not told again." },
                "default": { "description": "It is not taken." },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use svc_core::state::edge::RETRY_AFTER;
    use svc_core::value::Span;

    use super::*;

    /// What is said of tries is what is done: eight of them, at these times.
    #[test]
    fn tries_are_told_as_they_are_made() {
        let waits = [Span::seconds(0), Span::seconds(5), Span::seconds(30), Span::minutes(5), Span::minutes(30)];
        let hours = [2, 6, 12].map(Span::hours);
        assert_eq!(RETRY_AFTER.to_vec(), [&waits[..], &hours].concat());
        let told = ALL[0].told;
        assert!(told.contains("tried eight times in all: at once, then after 5 seconds, 30 seconds, 5 minutes, 30 minutes, 2, 6 and 12 hours"));
    }
}
