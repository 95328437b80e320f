//! The schemas of integrations and of the calls made over them.

use serde_json::{Value, json};
use svc_core::rules::gate::asked::Stands;
use svc_core::state::edge::{
    CODE_PLACES_MAX, ChatFormat, EventClass, IntegrationKind, IntegrationState, JobState, LINKED_MAX, LINKED_NAME_MAX,
    MAILED_MAX,
};
use svc_core::state::gate::{Status, Verb};

use super::administration::word;
use super::{currency, faults, id, reference, time, with_description, words};
use crate::inbound::button::SEALED_MAX;
use crate::wire::press::REASONS;
use crate::wire::put;

/// Every schema of the family by its name.
pub(super) fn all() -> [(&'static str, Value); 23] {
    [
        ("Integration", integration()),
        ("Integrations", list("Integration")),
        ("NewIntegration", new()),
        (
            "IntegrationChange",
            json!({ "type": "object", "properties": { "enabled": { "type": "boolean" }, "config": config(), "secret": secret_again() } }),
        ),
        ("Rotation", rotation()),
        ("IntegrationTest", test()),
        ("ActionDecided", action_decided()),
        ("CallbackTest", callback_test()),
        ("IssuerEvent", issuer_event()),
        ("IssuerAnswer", issuer_answer()),
        ("StripeEvent", stripe_event()),
        ("StripeAnswer", stripe_answer()),
        (
            "BillingAnswer",
            json!({ "type": "object", "properties": { "received": { "type": "boolean", "enum": [true] } } }),
        ),
        ("CodeHostEvent", code_host_event()),
        ("EventReceived", event_received()),
        ("SlackInteraction", slack_interaction()),
        ("SlackAnswer", slack_answer()),
        ("RelayedPress", relayed_press()),
        ("RelayAnswer", relay_answer()),
        ("SecurityEventToken", security_event_token()),
        ("SecurityEventError", security_event_error()),
        ("Delivery", delivery()),
        ("Deliveries", list("Delivery")),
    ]
}

fn kind() -> Value {
    words(IntegrationKind::ALL, IntegrationKind::as_str)
}

fn config() -> Value {
    let token = json!({ "type": "string", "minLength": 8, "maxLength": 512, "pattern": "^xox[!-~]+$", "writeOnly": true, "description": "What messages are sent with. Answers have its last four characters alone." });
    configured(&Value::clone, ("botToken", token))
}

/// The same as it stands, where a member may be empty.
fn configuration() -> Value {
    configured(&|it| nullable(it.clone()), ("botTokenHint", nullable(json!({ "type": "string" }))))
}

fn configured(each: &dyn Fn(&Value) -> Value, (name, own): (&str, Value)) -> Value {
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[!-~]([ -~]*[!-~])?$" });
    let list = |item: Value| json!({ "type": "array", "maxItems": CODE_PLACES_MAX, "items": item });
    let uids: Vec<u16> = EventClass::ALL.iter().map(|it| it.uid()).collect();
    let classes = json!({
        "type": "array",
        "minItems": 1,
        "uniqueItems": true,
        "items": { "type": "integer", "enum": uids },
        "description": "The classes of OCSF events that are sent; all where none is named.",
    });
    let mut format = words(&ChatFormat::ALL, ChatFormat::as_str);
    put(&mut format, "default", json!(ChatFormat::default().as_str()));
    let format = with_description(format, "In which form a room's messages are posted: `text` is the text alone.");
    let mut properties = json!({
            "repositories": each(&list(json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", "maxLength": 140 }))),
            "branches": each(&list(json!({ "type": "string", "minLength": 1, "maxLength": 250 }))),
            "classes": each(&classes),
            "issuer": each(&text),
            "audience": each(&text),
            "clientId": each(&text),
            "jwksUrl": each(&json!({ "type": "string", "format": "uri" })),
            "members": each(&json!({ "type": "object", "maxProperties": LINKED_MAX, "additionalProperties": id("prp_"), "description": "Who is who: what the other system calls somebody, and the member whose word their press is." })),
            "jwks": each(&json!({ "type": "object", "required": ["keys"], "additionalProperties": true, "properties": { "keys": { "type": "array", "minItems": 1, "items": { "type": "object", "additionalProperties": true } } } })),
            "to": each(&json!({ "type": "array", "maxItems": MAILED_MAX, "items": id("prp_") })),
            "url": each(&json!({ "type": "string", "format": "uri", "description": "Who is called. An export that is used has one." })),
            "format": each(&format),
    });
    put(&mut properties, name, own);
    json!({
        "type": "object",
        "description": "What the kind needs besides a secret: `repositories` and `branches` of `github`; `issuer`, `audience` and one of `jwksUrl` and `jwks` of `ssf`; `issuer` and `clientId` of `oidc`; `to` of `mail`, the principals who alone are mailed, of those whom it concerns; `url` of `chat`, where messages are posted to, and its `format`, `svc` or `text` (`{ \"text\": … }` alone, for chats that take no other member); `url` and `classes` of `export`; `members` of `slack` and `relay`, and `botToken` of `slack`; of others nothing. What is not named is empty.",
        "properties": properties,
    })
}

fn slack_interaction() -> Value {
    json!({
        "type": "object",
        "description": "A form as Slack sends it. Of a `payload` of the type `block_actions` are read `user.id`, `response_url`, and of its one action `action_id` (`approve` or `deny`) and `value`; every other one is recorded alone. `url_verification` comes as JSON.",
        "additionalProperties": true,
    })
}

fn slack_answer() -> Value {
    json!({
        "type": "object",
        "description": "What is told to whoever pressed a button, which is sent to `response_url` as well; to `url_verification` the `challenge`; nothing to everything else.",
        "properties": {
            "response_type": { "type": "string", "enum": ["ephemeral"] },
            "replace_original": { "type": "boolean" },
            "text": { "type": "string" },
            "blocks": { "type": "array", "items": { "type": "object", "additionalProperties": true } },
            "challenge": { "type": "string" },
        },
    })
}

fn relayed_press() -> Value {
    let word = |max: usize| json!({ "type": "string", "minLength": 1, "maxLength": max });
    let mut id = word(200);
    put(&mut id, "description", json!("The same where a press is sent again: it is answered as before."));
    json!({
        "type": "object",
        "required": ["id", "token", "member"],
        "properties": { "id": id, "token": word(SEALED_MAX), "member": word(LINKED_NAME_MAX) },
    })
}

fn relay_answer() -> Value {
    json!({
        "type": "object",
        "required": ["decided"],
        "properties": {
            "decided": { "type": "boolean", "description": "Whether the member's word was taken." },
            "approval": with_description(words(&Stands::ALL, Stands::as_str), "Where the approval stands, where the member may read it."),
            "reason": { "type": "string", "enum": REASONS, "description": "Why the word was not taken." },
        },
    })
}

fn issuer_event() -> Value {
    let word = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    json!({
        "type": "object",
        "required": ["type", "id"],
        "properties": {
            "type": word,
            "id": { "type": "string", "minLength": 1, "maxLength": 200, "description": "The same where an event is sent again: it is answered as before." },
            "actionId": id("act_"),
            "agentId": id("agt_"),
            "amount": { "type": "integer", "minimum": 0, "description": "In minor units." },
            "currency": currency(),
            "merchant": { "type": "object", "required": ["domain"], "properties": { "domain": { "type": "string" } } },
        },
    })
}

fn stripe_event() -> Value {
    let word = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    json!({
        "type": "object",
        "description": "An event as Stripe sends it; what stands here is read.",
        "required": ["id", "type", "data"],
        "properties": {
            "id": word,
            "type": word,
            "api_version": word,
            "data": { "type": "object", "properties": { "object": { "type": "object" } } },
        },
    })
}

fn stripe_answer() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean", "description": "Of `issuing_authorization.request`." },
            "received": { "type": "boolean", "enum": [true], "description": "Of every other event." },
        },
    })
}

fn issuer_answer() -> Value {
    json!({
        "type": "object",
        "properties": {
            "approved": { "type": "boolean", "description": "Of `authorization.request`." },
            "reason": { "type": "string", "description": "Why a charge is not approved: a word of a verdict, or `no_action`." },
            "received": { "type": "boolean", "enum": [true], "description": "Of every other event." },
            "outcome": { "type": "string", "description": "What came of it." },
        },
    })
}

fn code_host_event() -> Value {
    json!({
        "type": "object",
        "description": "An event as the code host sends it, as JSON or as a form with the member `payload`. Of a `pull_request` that was closed are read `action`, `repository.full_name`, and of `pull_request` its `title`, `body`, `merged`, `base.ref` and `head.ref`, of which `title` and `body` alone may be absent; every other one is recorded alone.",
        "additionalProperties": true,
    })
}

fn event_received() -> Value {
    json!({
        "type": "object",
        "required": ["received", "outcome"],
        "properties": {
            "received": { "type": "boolean", "enum": [true] },
            "outcome": {
                "type": "string",
                "description": "What came of it: `accepted` or `rejected` where tasks were reported so, `unchanged` where nothing was to be said of them any more, `no_task` where none of this workspace is named, `not_listed` where the integration does not name its repository and branch, `outsider` of a pull request that somebody outside made and that was not merged, `ignored` for every other event.",
            },
        },
    })
}

fn security_event_token() -> Value {
    json!({
        "type": "string",
        "description": "A security event token (RFC 8417): a compact JWS by ES256 or RS256, its `typ` `secevent+jwt`, of one event.",
        "pattern": "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$",
    })
}

fn security_event_error() -> Value {
    json!({
        "type": "object",
        "description": "An error as RFC 8935 has it.",
        "required": ["err", "description", "requestId", "docs"],
        "properties": {
            "err": { "type": "string" },
            "description": { "type": "string" },
            "requestId": { "type": "string" },
            "fix": { "type": "string" },
            "docs": { "type": "string" },
            "errors": faults(),
            "didYouMean": { "type": "string" },
        },
    })
}

fn secret_again() -> Value {
    json!({ "type": "string", "minLength": 8, "maxLength": 512, "pattern": "^[!-~]+$", "description": "Of `oidc` alone: the client secret, which has to be sent again with another host in `config.issuer`. It takes the place of those before at once." })
}

fn secret() -> Value {
    json!({ "type": "string", "minLength": 8, "maxLength": 512, "pattern": "^[!-~]+$", "description": "Of 24 to 256 characters, made where none is sent. Of `oidc` the client secret that the provider has drawn, of 8 to 512: it has to be sent, and is shown by nothing." })
}

fn new() -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": { "kind": kind(), "secret": secret(), "config": config() },
    })
}

fn rotation() -> Value {
    json!({
        "type": "object",
        "properties": {
            "overlapHours": { "type": "integer", "minimum": 0, "maximum": 168, "default": 24, "description": "How long the secret before stays good." },
            "secret": secret(),
        },
    })
}

/// What whoever registered for it is called with once an action is decided.
fn action_decided() -> Value {
    let decided = Status::ALL.into_iter().filter(|it| *it != Status::Pending);
    let status: Vec<&str> = decided.map(Status::as_str).collect();
    json!({
        "type": "object",
        "description": "The body of a call that tells of a decision.",
        "required": ["id", "type", "actionId", "decision", "status", "occurredAt"],
        "properties": {
            "id": with_description(id("cbk_"), "The registration."),
            "type": { "type": "string", "enum": ["action.decided"] },
            "actionId": id("act_"),
            "decision": words(&[Verb::Allow, Verb::Deny], Verb::as_str),
            "status": { "type": "string", "enum": status, "description": "As the action read then; of one that was decided before it was registered, as it read at the registration." },
            "occurredAt": with_description(time(), "When it was decided."),
        },
    })
}

fn callback_test() -> Value {
    json!({
        "type": "object",
        "description": "The body of a call that tests a secret.",
        "required": ["id", "type", "occurredAt"],
        "properties": {
            "id": with_description(id("int_"), "The integration."),
            "type": { "type": "string", "enum": ["test"] },
            "occurredAt": time(),
        },
    })
}

fn test() -> Value {
    json!({
        "type": "object",
        "description": "Of kinds over which something is called.",
        "properties": { "url": {
            "type": "string",
            "format": "uri",
            "description": "Of `callbacks`: who is called, once. Without one nobody is, and it is only looked whether its secrets can be used: 409 where they cannot. `mail` goes to whoever asks, `chat` to its own address, as does `export` where none is named.",
        } },
    })
}

fn integration() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "config", "enabled", "state", "secretHint", "secrets", "lastEventAt", "lastError", "createdAt", "createdBy"],
        "properties": {
            "id": id("int_"),
            "kind": kind(),
            "config": configuration(),
            "enabled": { "type": "boolean" },
            "ended": { "type": "array", "items": { "type": "string" }, "description": "Of `slack` and `relay`: the names of `config.members` whose links are over, as their member was signed out by a shared signal, left, or became an owner. What they press is not heard. Leave such a name out of `config.members` once, then name it again." },
            "receiveUrl": { "type": "string", "format": "uri", "description": "Where the other side sends to, of kinds that are received." },
            "state": with_description(words(&IntegrationState::ALL, IntegrationState::as_str), "`off` too as long as nothing can come of it: `chat` and `export` without `url`, `github` without `repositories` or `branches`, `slack` and `relay` without `members` whose links are good, `ssf` without `issuer`, `audience` or keys, `oidc` without `issuer` or `clientId`."),
            "secret": { "type": "string", "description": "Where the server drew it, in the answer that says so, and in no other; never one that was sent." },
            "secretHint": { "type": "string", "description": "The last four characters of the secret in force." },
            "secrets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["hint", "createdAt"],
                    "properties": { "hint": { "type": "string" }, "createdAt": time(), "endsAt": time() },
                },
            },
            "lastEventAt": nullable(time()),
            "lastError": with_description(nullable(json!({ "type": "string" })), "What went wrong last, until something goes well. Of `ssf` also that an event was about nobody here; of `oidc` that a domain does not say that it is this workspace's."),
            "deliveryId": { "type": "string", "description": "The call of a test, in the answer that asked for it." },
            "createdAt": time(),
            "createdBy": nullable(id("prp_")),
        },
    })
}

fn delivery() -> Value {
    json!({
        "type": "object",
        "required": ["id", "kind", "subject", "host", "state", "attempts", "nextAt", "createdAt", "createdBy"],
        "properties": {
            "id": id("dlv_"),
            "kind": kind(),
            "subject": { "type": "string", "description": "The id of what is told of." },
            "host": { "type": "string", "description": "Who is called, without the rest of the URL; of `mail` the server that takes it." },
            "state": word(&JobState::WORDS),
            "attempts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["at", "ms"],
                    "properties": {
                        "at": time(),
                        "status": { "type": "integer" },
                        "error": { "type": "string" },
                        "ms": { "type": "integer", "minimum": 0 },
                    },
                },
            },
            "nextAt": nullable(time()),
            "createdAt": time(),
            "createdBy": { "type": ["string", "null"], "description": "`null`: nobody makes a delivery, what is told of happens by itself." },
        },
    })
}

fn list(item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference(item) },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn nullable(schema: Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}
