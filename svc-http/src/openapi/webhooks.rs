//! What this server calls: the other direction of the interface, as OpenAPI's `webhooks` have it.

use serde_json::{Map, Value, json};

use crate::routes::{Op, Route};
use crate::schemas::reference;

/// A call to an address that a client has named.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// Its name: the body's `type`, but of what has none, or one that another call has too.
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
pub(crate) const ALL: [Webhook; 6] = [
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
    Webhook {
        name: "approval.requested",
        body: "RoomQuestion",
        summary: "A room is told of what waits for a decision",
        told: "Posted to `config.url` of the integration `chat` once something begins to wait. Tried as `action.decided` is. Whoever follows the link still has to sign in and may have to be somebody else. With `config.format` `text` only `text` is posted.",
        operation: "approvalRequested",
    },
    Webhook {
        name: "action.unapproved_run",
        body: "RoomRun",
        summary: "A room is told of a tool that ran although its action was not allowed",
        told: "Posted to `config.url` of the integration `chat` once the agent's client reports it. Tried as `action.decided` is. With `config.format` `text` only `text` is posted.",
        operation: "actionUnapprovedRun",
    },
    Webhook {
        name: "room.test",
        body: "RoomTest",
        summary: "Somebody tries a room out",
        told: "A person has the integration `chat` tested. Its `type` is `test`. It is signed as every call and made once. With `config.format` `text` only `text` is posted.",
        operation: "roomTest",
    },
    Webhook {
        name: "export",
        body: "ExportedEvents",
        summary: "The ledger's records, in its order, for a system that gathers security events",
        told: "Posted to `config.url` of the integration `export`: up to 100 events and 1 MiB, an event that is longer alone. The next delivery is made once this one is taken; tried as `action.decided` is, and then the export stands still. A test has one event, whose `unmapped.svc.type` is `test`.",
        operation: "export",
    },
];

/// The headers of every such call, with what each is.
pub(crate) const HEADERS: [(&str, &str); 2] = [
    (
        "svc-signature",
        "`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `t`, a full stop and the body as it was sent, under the whole text of the secret (`whsec_…`): of the integration `callbacks` for what agents have registered, else of the integration that it comes from. `t` is the time of this try: refuse one that is minutes off. While the secret rotates there are two `v1`, one under each; one that fits is enough.",
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

    /// Whatever is posted to a room stands here, by the `type` that its body has.
    #[test]
    fn what_is_posted_to_rooms_is_described() {
        let schemas = crate::schemas::all();
        let types = |it: &Webhook| schemas[it.body]["properties"]["type"]["enum"][0].clone();
        for posted in crate::deliver::room::TYPES {
            let of_rooms = |it: &&Webhook| it.body.starts_with("Room") && types(it) == posted;
            assert_eq!(ALL.iter().filter(of_rooms).count(), 1, "{posted}");
        }
        let events = &schemas["ExportedEvents"];
        assert_eq!((&events["type"], &events["maxItems"]), (&json!("array"), &json!(crate::export::EVENTS_MAX)));
    }
}
