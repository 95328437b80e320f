//! What the parameters of requests may hold: of paths, of queries, and of headers.
//!
//! Each is described once, under a key that operations point to, so that a document of some hundred operations stays small.

use serde_json::{Map, Value, json};
use svc_core::rules::gate::asked::Stands;
use svc_core::state::edge::{IntegrationKind, JobState};
use svc_core::state::gate::verify_key::KEY_CHARS_MIN;
use svc_core::state::gate::{ApprovalKind, Status};
use svc_core::state::gateway::Objective;

use crate::routes::{self, Auth, EvidenceOp, Op, ReportsOp, Route, RoutingOp};
use crate::schemas;
use crate::wire::calls;
use crate::wire::oauth::SCOPE;
use crate::wire::page::{PAGE_DEFAULT, PAGE_MAX};
use crate::wire::report::ReportBy;

/// Every parameter by its key.
pub(super) fn all() -> Map<String, Value> {
    routes::all().flat_map(of).collect()
}

/// The parameters of an operation, as pointers.
pub(super) fn pointers(route: &Route) -> Vec<Value> {
    of(route).map(|(key, _)| json!({ "$ref": format!("#/components/parameters/{key}") })).collect()
}

/// The parameters of an operation, each with its key.
pub(crate) fn of(route: &Route) -> impl Iterator<Item = (String, Value)> {
    let path = route.params().map(|name| (name, "", in_path(name), "path"));
    let query = route.query.iter().map(|name| {
        let (variant, schema) = in_query(route.op, name);
        (*name, variant, schema, "query")
    });
    let marked = route.is_console() && route.is_write();
    let mark = marked.then(|| ("x-svc-csrf", "", Some(words(["1"])), "header"));
    let headers = route.headers.iter().map(|name| {
        let (variant, schema) = in_header(route.op, name);
        (*name, variant, schema, "header")
    });
    path.chain(query).chain(mark).chain(headers).map(|(name, variant, schema, place)| {
        let vouches = route.auth == Auth::Signature && (name.contains("signature") || name.contains("timestamp"));
        let required = place == "path" || name == "x-svc-csrf" || vouches;
        let schema = schema.unwrap_or_else(|| json!({ "type": "string" }));
        (
            format!("{place}.{name}{variant}"),
            json!({ "name": name, "in": place, "required": required, "schema": schema }),
        )
    })
}

/// What stands at a place of a path; `None` for a name that this table does not know.
fn in_path(name: &str) -> Option<Value> {
    let prefix = match name {
        "id" => "act_",
        "aid" => "agt_",
        "wid" => "wsp_",
        "profile" => "pol_",
        "page" => return Some(words(crate::console::PAGES.iter().copied())),
        "item" => return Some(json!({ "type": "string", "minLength": 1 })),
        "hash" => return Some(json!({ "type": "string", "pattern": "^[0-9a-f]{20}$" })),
        "file" => return Some(json!({ "type": "string", "pattern": "^[A-Za-z0-9.-]+$" })),
        "class" => return Some(schemas::class_id()),
        "provider" | "server" => return Some(json!({ "type": "string", "pattern": "^[a-z0-9-]{1,40}$" })),
        "model" => return Some(json!({ "type": "string", "pattern": "^[!-~]{1,200}$" })),
        "template" => return Some(json!({ "type": "string", "minLength": 1, "maxLength": 100 })),
        "act" | "app" | "apv" | "bdg" | "cal" | "con" | "dlv" | "drl" | "evd" | "hld" | "int" | "key" | "mcs"
        | "mnd" | "prp" | "ses" | "stk" | "team" | "ups" => return Some(schemas::id(&format!("{name}_"))),
        _ => return None,
    };
    Some(schemas::id(prefix))
}

/// What a parameter of a query may hold, with what tells its key from that of others of this name; `None` for one that no table here
/// knows.
fn in_query(op: Op, name: &str) -> (&'static str, Option<Value>) {
    let own = of_family(op, name).map(|(variant, schema)| (variant, Some(schema)));
    own.unwrap_or_else(|| ("", anywhere(name)))
}

/// What it may hold where it means something of its own.
fn of_family(op: Op, name: &str) -> Option<(&'static str, Value)> {
    let date = || json!({ "type": "string", "format": "date" });
    let day = || json!({ "type": "string", "anyOf": [{ "format": "date" }, { "format": "date-time" }], "description": "A day, or an instant in it." });
    match name {
        "limit" if op == Op::Routing(RoutingOp::MessagesModels) => Some((".models", whole(1_000, 20))),
        "state" if matches!(op, Op::Integrations(_)) => Some((".deliveries", words(JobState::WORDS))),
        "kind" if matches!(op, Op::Integrations(_)) => {
            Some((".deliveries", words(IntegrationKind::ALL.iter().filter(|it| it.is_called()).map(|it| it.as_str()))))
        }
        "cursor"
            if matches!(op, Op::Evidence(EvidenceOp::Bundle | EvidenceOp::TokenBundle | EvidenceOp::KeyBundle)) =>
        {
            Some((
                ".bundle",
                told(
                    "`nextCursor` of the bundle before. It carries the whole question; what is sent beside it must not say otherwise.",
                ),
            ))
        }
        "kind" if matches!(op, Op::Evidence(_)) => {
            Some((".ledger", told("A kind of records such as `action.denied`, or what stands before its dot.")))
        }
        "state" if matches!(op, Op::OAuth(_)) => Some((".oauth", told("Given back as it came."))),
        "state" if matches!(op, Op::SignIn(_)) => Some((".sso", told("As the identity provider was sent it."))),
        "from" | "to" if op == Op::Reports(ReportsOp::ImportBill) => Some((".bill", date())),
        "from" | "to" if matches!(op, Op::Reports(_)) => Some((".report", day())),
        _ => None,
    }
}

/// What it may hold in every other route.
fn anywhere(name: &str) -> Option<Value> {
    Some(match name {
        "limit" => whole(PAGE_MAX, PAGE_DEFAULT),
        "cursor" => told("`nextCursor` of the page before."),
        "state" => words(Stands::ALL.map(Stands::as_str)),
        "kind" => words(ApprovalKind::ALL.map(ApprovalKind::as_str)),
        "status" => words(Status::ALL.map(Status::as_str)),
        "type" => told("A type of actions."),
        "agentId" => schemas::id("agt_"),
        "principalId" => schemas::id("prp_"),
        "teamId" => schemas::id("team_"),
        "keyId" => schemas::id("key_"),
        "taskClass" => schemas::class_id(),
        "taskId" => schemas::task_id(),
        "model" => {
            json!({ "type": "string", "pattern": "^[!-~]{1,241}$", "description": "The model that they went to: as `provider/model`, or at whichever provider." })
        }
        "end" => words(calls::ends()),
        "outcome" => words(calls::outcomes()),
        "about" => told("An id that the records name: what they are of, who did it, or in what they tell."),
        "upstreamId" => schemas::id("ups_"),
        "from" | "to" => {
            json!({ "type": "string", "anyOf": [{ "format": "date" }, { "format": "date-time" }], "description": "An instant, or a day: its first instant in the workspace's zone." })
        }
        "by" => words(ReportBy::words()),
        "currency" => schemas::currency(),
        "since" => {
            json!({ "type": "integer", "minimum": 1, "description": "The size of a checkpoint that the reader holds. More than the ledger has is refused with how many it has: then it is another ledger, or was put back." })
        }
        "redact" => {
            json!({ "type": "boolean", "default": false, "description": "Without the texts that records commit to." })
        }
        "beta" => told("Passed on to a provider of this shape."),
        "after_id" | "before_id" => told("The `id` of a model of this list."),
        "response_type" => words(["code"]),
        "client_id" => told("The `mcp_` of a registered client, or the address of its own document."),
        "redirect_uri" | "resource" => json!({ "type": "string", "format": "uri" }),
        "code_challenge" => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{43}$" }),
        "code_challenge_method" => words(["S256"]),
        "scope" => json!({ "type": "string", "default": SCOPE }),
        "question" => {
            told("Names a question that is kept here while its person signs in elsewhere; nothing stands beside it.")
        }
        "code" | "error" => told("As the identity provider sends it."),
        "iss" => told("The identity provider's issuer, where it names itself (RFC 9207)."),
        "next" => told("Where to go on, on this server."),
        _ => return None,
    })
}

fn whole(max: usize, default: usize) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": max, "default": default })
}

fn words(all: impl IntoIterator<Item = &'static str>) -> Value {
    json!({ "type": "string", "enum": all.into_iter().collect::<Vec<_>>() })
}

fn told(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// What a header may hold, with what tells its key from that of another of this name; `None` for one that this table does not know.
fn in_header(op: Op, name: &str) -> (&'static str, Option<Value>) {
    let text =
        |most: u32, told: &str| json!({ "type": "string", "minLength": 1, "maxLength": most, "description": told });
    let schema = match name {
        "idempotency-key" if op == Op::Verify => {
            let least = KEY_CHARS_MIN;
            let told = "Makes a repeated request answer as the first did; random for each attempt, and nothing that the receipt tells.";
            return (".verify", Some(schemas::key(least, told)));
        }
        "idempotency-key" => schemas::key(
            1,
            "Makes a repeated question the same action, while that is pending or allowed and for 7 days after.",
        ),
        "accept-encoding" => told("With `gzip`, the file is sent packed."),
        "if-none-match" => told("The `etag` of the file that the reader has."),
        "last-event-id" => told("The `id` of the last event that was read: what follows it is sent."),
        "svc-signature" | "stripe-signature" => {
            told("`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 of `t`, a full stop and the body, under the secret.")
        }
        "x-github-event" => text(200, "The name of the event."),
        "x-hub-signature-256" => told("`sha256=<hex>`: HMAC-SHA256 of the body under the secret."),
        "x-slack-request-timestamp" => told("Seconds: what was signed with the body."),
        "x-slack-signature" => {
            told("`v0=<hex>`: HMAC-SHA256 of `v0:`, the time, a colon and the body, under the app's signing secret.")
        }
        "te" => told("With `trailers`, a stream ends with what it cost."),
        "x-svc-client-session" => text(128, "The agent's session, as the actions that it asks for name it."),
        "x-svc-dry-run" => {
            json!({ "type": "string", "enum": ["true", "false"], "description": "`true` routes and checks budgets without calling a model." })
        }
        "x-svc-human-oversight" => {
            json!({ "type": "string", "enum": ["acknowledged"], "description": "A person oversees what comes of it." })
        }
        "x-svc-objective" => json!({
            "type": "string",
            "enum": Objective::ALL.map(Objective::as_str),
            "description": "What the choice among models is to favour.",
        }),
        "x-svc-task-class" => text(64, "The class of the task."),
        "x-svc-task-id" => {
            schemas::with_description(schemas::task_id(), "The task that the call is part of; without it one is made.")
        }
        _ => return ("", None),
    };
    ("", Some(schema))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every parameter of every route has a schema of its own, and one key never means two things.
    #[test]
    fn every_parameter_is_described() {
        let mut known: BTreeMap<String, Value> = BTreeMap::new();
        for route in routes::all() {
            for name in route.params() {
                assert!(in_path(name).is_some(), "{name} of {}", route.path);
            }
            for name in route.query {
                assert!(in_query(route.op, name).1.is_some(), "{name} of {}", route.path);
            }
            for name in route.headers {
                assert!(in_header(route.op, name).1.is_some(), "{name} of {}", route.path);
            }
            for (key, parameter) in of(route) {
                let before = known.entry(key.clone()).or_insert_with(|| parameter.clone());
                assert_eq!(*before, parameter, "{key}");
            }
        }
    }

    /// Bounds, words and shapes are those of the readers.
    #[test]
    fn parameters_hold_what_their_readers_take() {
        let all = all();
        let schema = |key: &str| all[key]["schema"].clone();
        assert_eq!(schema("query.limit"), json!({ "type": "integer", "minimum": 1, "maximum": 500, "default": 100 }));
        assert_eq!(schema("query.state")["enum"], json!(["waiting", "approved", "denied", "expired"]));
        assert_eq!(schema("query.state.deliveries")["enum"][0], "waiting");
        assert_eq!(schema("query.by")["enum"][0], "day");
        assert_eq!(schema("path.aid")["pattern"], "^agt_[0-7][0-9A-HJKMNP-TV-Z]{25}$");
        let least = |key: &str| schema(key)["minLength"].as_u64();
        let keys = ["header.idempotency-key", "header.idempotency-key.verify"];
        assert_eq!(keys.map(least), [Some(1), Some(16)]);
        assert_eq!(all["path.aid"]["required"], true);
        assert_eq!(all["query.limit"]["required"], false);
    }
}
