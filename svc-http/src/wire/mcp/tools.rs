//! The server's own tools: their names, what they take and what they give.

use serde_json::{Value, json};
use svc_core::state::gate::{OutcomeStatus, Verb};
use svc_core::state::gateway::WasteKind;
use svc_core::value::period::Period;

use crate::schemas::words;

/// Over what a tool that sums up may be asked to.
pub const WINDOWS: [Period; 3] = [Period::Day, Period::Week, Period::Month];

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Asks the gate.
    AuthorizeAction,
    /// Says what became of an action.
    SettleAction,
    /// Reads an action.
    CheckActionStatus,
    /// Explains a decision.
    ExplainDecision,
    /// What was spent.
    SpendSummary,
    /// What was wasted.
    FindWaste,
    /// Keys that nobody watches.
    UnwatchedKeys,
}

impl Tool {
    /// Every tool, in the order of the list.
    pub const ALL: [Self; 7] = [
        Self::AuthorizeAction,
        Self::SettleAction,
        Self::CheckActionStatus,
        Self::ExplainDecision,
        Self::SpendSummary,
        Self::FindWaste,
        Self::UnwatchedKeys,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AuthorizeAction => "authorize_action",
            Self::SettleAction => "settle_action",
            Self::CheckActionStatus => "check_action_status",
            Self::ExplainDecision => "explain_decision",
            Self::SpendSummary => "spend_summary",
            Self::FindWaste => "find_waste",
            Self::UnwatchedKeys => "unwatched_keys",
        }
    }

    /// The tool with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Of which running period a tool that adds up tells where its `window` says nothing.
    #[must_use]
    pub const fn window(self) -> Option<Period> {
        match self {
            Self::SpendSummary => Some(Period::Day),
            // What is wasted shows over many calls.
            Self::FindWaste => Some(Period::Month),
            Self::AuthorizeAction
            | Self::SettleAction
            | Self::CheckActionStatus
            | Self::ExplainDecision
            | Self::UnwatchedKeys => None,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::AuthorizeAction => "Ask before acting",
            Self::SettleAction => "Report what happened",
            Self::CheckActionStatus => "See where an action stands",
            Self::ExplainDecision => "Explain a decision",
            Self::SpendSummary => "Summarise spend",
            Self::FindWaste => "Find waste",
            Self::UnwatchedKeys => "Find keys that nobody watches",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::AuthorizeAction => {
                "Ask whether an action may be done, before doing it. `allow` comes with a receipt; `deny` with reasons; on `approval_required` a person was asked, at the link in `approval.url`."
            }
            Self::SettleAction => {
                "Report what became of an allowed action: completed, failed or cancelled, and the final amount."
            }
            Self::CheckActionStatus => {
                "Read one of your own actions as it stands now, for example while a person decides."
            }
            Self::ExplainDecision => {
                "Explain one of your own actions' decisions: why, which rule said it, the person's note, what to do next, and, of what limits of amount, number or time alone denied, which amount or time would be allowed where one was found."
            }
            Self::SpendSummary => "What you have spent in a day, a week or a month: models, and payments by currency.",
            Self::FindWaste => {
                "Where your model calls wasted money: repeats, abandoned tasks, models larger than needed, charged retries, missed caches."
            }
            Self::UnwatchedKeys => {
                "Keys of the person you act for that have no budget, were not used for 30 days, or never end."
            }
        }
    }

    const fn reads_only(self) -> bool {
        !matches!(self, Self::AuthorizeAction | Self::SettleAction)
    }

    fn input(self) -> Value {
        match self {
            Self::AuthorizeAction => action_request(),
            Self::SettleAction => object(
                json!({
                    "actionId": id("act_"),
                    "status": words(&OutcomeStatus::ALL, OutcomeStatus::as_str),
                    "amount": { "type": "integer", "minimum": 0, "description": "Final amount in minor units, for a payment." },
                }),
                &["actionId", "status"],
            ),
            Self::CheckActionStatus | Self::ExplainDecision => object(json!({ "actionId": id("act_") }), &["actionId"]),
            Self::SpendSummary | Self::FindWaste => {
                let default = self.window().map(Period::as_str);
                object(
                    json!({ "window": {
                        "type": "string",
                        "enum": WINDOWS.map(Period::as_str),
                        "default": default,
                        "description": "The running day, week or month of the workspace's zone.",
                    } }),
                    &[],
                )
            }
            Self::UnwatchedKeys => object(json!({}), &[]),
        }
    }

    fn output(self) -> Value {
        match self {
            Self::AuthorizeAction | Self::SettleAction | Self::CheckActionStatus => decision(),
            Self::ExplainDecision => object(
                json!({
                    "decision": verb(),
                    "why": { "type": "array", "items": { "type": "object" } },
                    "rule": id("mnd_"),
                    "wouldBeAllowed": object(json!({ "changed": { "type": "string" }, "value": {} }), &["changed", "value"]),
                    "note": { "type": "string", "description": "What the person who decided added." },
                    "nextStep": { "type": "string" },
                }),
                &["decision", "why", "nextStep"],
            ),
            Self::SpendSummary => object(
                json!({
                    "model": object(json!({ "costMicros": count(), "calls": count() }), &["costMicros", "calls"]),
                    "payments": { "type": "array", "items": object(
                        json!({
                            "currency": { "type": "string" },
                            "settled": { "type": "integer", "description": "Of what you asked for in this time: done." },
                            "reserved": { "type": "integer", "description": "Of what you asked for in this time: allowed or asked, and not reported yet." },
                            "remaining": {
                                "type": ["integer", "null"],
                                "description": "What your mandates leave now, each in its own running period, whatever the window; null where one has no limit by period.",
                            },
                        }),
                        &["currency", "settled", "reserved", "remaining"],
                    ) },
                }),
                &["model", "payments"],
            ),
            Self::FindWaste => object(
                json!({
                    "from": { "type": "string" },
                    "to": { "type": "string" },
                    "rows": { "type": "array", "items": object(
                        json!({
                            "kind": words(&WasteKind::ALL, WasteKind::as_str),
                            "count": count(),
                            "costMicros": count(),
                            "savableMicros": count(),
                            "example": { "type": ["string", "null"] },
                        }),
                        &["kind", "count", "costMicros", "savableMicros"],
                    ) },
                }),
                &["from", "to", "rows"],
            ),
            Self::UnwatchedKeys => object(
                json!({ "keys": { "type": "array", "items": object(
                    json!({
                        "id": id("key_"),
                        "prefix": { "type": "string" },
                        "label": { "type": ["string", "null"] },
                        "reason": { "type": "string", "enum": ["no_budget", "unused", "no_expiry"] },
                    }),
                    &["id", "prefix", "label", "reason"],
                ) } }),
                &["keys"],
            ),
        }
    }
}

/// A tool as `tools/list` shows it.
#[must_use]
pub fn definition(tool: Tool) -> Value {
    json!({
        "name": tool.name(),
        "title": tool.title(),
        "description": tool.description(),
        "inputSchema": tool.input(),
        "outputSchema": tool.output(),
        "annotations": {
            "title": tool.title(),
            "readOnlyHint": tool.reads_only(),
            "destructiveHint": false,
            "openWorldHint": false,
        },
    })
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        super::super::put(&mut schema, "required", json!(required));
    }
    schema
}

fn id(prefix: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{prefix}") })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn verb() -> Value {
    words(&[Verb::Allow, Verb::Ask, Verb::Deny], Verb::as_str)
}

fn decision() -> Value {
    object(
        json!({
            "id": id("act_"),
            "decision": verb(),
            "status": { "type": "string" },
            "type": { "type": "string" },
            "reasons": { "type": "array", "items": { "type": "object" } },
            "signals": { "type": "array", "items": { "type": "string" } },
            "receipt": { "type": "string", "description": "Show it to whoever is paid or acts." },
            "approval": { "type": "object", "description": "Where a person decides." },
        }),
        &["id", "decision", "status", "type", "reasons", "signals"],
    )
}

fn action_request() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    object(
        json!({
            "type": text("What kind of action: payment, refund, transfer, deploy, tool.call, mcp.call, data.share, message.send, code.execute, file.write, record.delete, access.grant, infra.change, or a dotted type of your own."),
            "summary": text("One sentence on what is about to happen, for the person who may be asked."),
            "payment": object(
                json!({
                    "amount": { "type": "integer", "minimum": 1, "description": "Minor units: 4900 is 49.00." },
                    "currency": text("ISO 4217."),
                    "merchant": object(json!({ "name": { "type": "string" }, "domain": { "type": "string" } }), &["name", "domain"]),
                }),
                &["amount", "currency", "merchant"],
            ),
            "data": object(
                json!({
                    "recipient": { "type": "string" },
                    "fields": { "type": "array", "items": { "type": "string" } },
                    "purpose": { "type": "string" },
                }),
                &["recipient", "fields"],
            ),
            "tool": object(
                json!({
                    "name": text("Needed for tool.call and mcp.call."),
                    "server": { "type": "string" },
                    "input": { "type": "object" },
                    "inputDigest": { "type": "string", "pattern": "^sha256:[0-9a-fA-F]{64}$", "description": "SHA-256 of the input, in its place or beside it." },
                    "inputBytes": { "type": "integer", "minimum": 0, "description": "Its length." },
                }),
                &[],
            ),
            "details": { "type": "object" },
            "provenance": { "type": "array", "items": object(
                json!({ "source": text("Where content in your context came from: user, operator, system, file, web, email, tool, mcp, …"), "detail": { "type": "string" } }),
                &["source"],
            ) },
            "session": object(json!({ "id": { "type": "string" } }), &["id"]),
            "idempotencyKey": text("The same key gives the first action again."),
        }),
        &["type", "summary"],
    )
}
