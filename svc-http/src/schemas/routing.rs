//! The schemas of providers, models, classes, profiles, routing, previews and lists of models.

use serde_json::{Map, Value, json};
use svc_core::state::gateway::route::Circuit;
use svc_core::state::gateway::{Capability, Dialect, Mode, Objective, Retention, TokenPrices};

use super::{id, reference, time, with_description, word_or_null, words, words_or_null};

/// Every schema of the family by its name.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("Upstream", upstream()),
        ("Upstreams", list("Upstream")),
        ("NewUpstream", new_upstream(&["name", "kind", "baseUrl", "apiKey"])),
        ("UpstreamChange", new_upstream(&[])),
        (
            "UpstreamTest",
            json!({
                "type": "object",
                "required": ["ok", "latencyMs"],
                "properties": {
                    "ok": { "type": "boolean" },
                    "latencyMs": { "type": "integer" },
                    "error": { "type": "string" },
                },
            }),
        ),
        ("Model", model()),
        ("Models", list("Model")),
        ("NewModel", new_model()),
        ("ModelChange", json!({ "type": "object", "properties": model_settings("NewPrices") })),
        ("Prices", prices()),
        ("NewPrices", prices()),
        ("TaskClass", policy(&[("id", class_id()), ("name", nullable("string"))], true, &["id"])),
        ("TaskClasses", list("TaskClass")),
        ("NewTaskClass", policy(&[("id", class_id()), ("name", label())], false, &["id"])),
        ("TaskClassChange", policy(&[("name", label())], false, &[])),
        ("PolicyProfile", policy(&[("id", id("pol_")), ("name", label()), ("mode", mode())], true, &["id", "name"])),
        ("PolicyProfiles", list("PolicyProfile")),
        ("NewPolicyProfile", policy(&[("name", label()), ("mode", mode())], false, &["name"])),
        ("PolicyProfileChange", policy(&[("name", label()), ("mode", mode())], false, &[])),
        ("Routing", routing(&["mode", "defaultObjective", "defaultTaskClass", "toolTable"])),
        ("RoutingChange", routing(&[])),
        ("RoutePreviewRequest", preview_request()),
        ("RoutePreview", preview()),
        ("Relaxation", relaxation()),
        ("ModelList", chat_models()),
        ("MessagesModelList", messages_models()),
    ]
}

fn list(of: &str) -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference(of) },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn nullable(of: &str) -> Value {
    json!({ "type": [of, "null"] })
}

fn label() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 100 })
}

/// The id of a class of tasks.
pub(crate) fn class_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$" })
}

fn mode() -> Value {
    words_or_null(&Mode::ALL, Mode::as_str)
}

fn objective() -> Value {
    words_or_null(&Objective::ALL, Objective::as_str)
}

fn capabilities() -> Value {
    json!({ "type": ["array", "null"], "items": words(&Capability::ALL, Capability::as_str) })
}

fn law() -> Value {
    json!({ "type": ["string", "null"], "description": "ISO 3166 in lower case, `eu`, or `unknown`." })
}

fn upstream_settings() -> Map<String, Value> {
    let times = ["firstTokenMs", "idleMs", "totalMs"];
    let times: Map<String, Value> = times
        .into_iter()
        .map(|it| (it.to_owned(), json!({ "type": "integer", "minimum": 1, "maximum": 3_600_000 })))
        .collect();
    members(&[
        (
            "name",
            json!({ "type": "string", "pattern": "^[a-z0-9-]{1,40}$", "description": "What stands before the slash in `provider/model`." }),
        ),
        ("kind", with_description(words(&Dialect::ALL, Dialect::as_str), "The shape that it speaks.")),
        (
            "baseUrl",
            json!({ "type": "string", "format": "uri", "minLength": 1, "maxLength": 2048, "description": "For `chat` with `/v1`; for `messages` the host." }),
        ),
        (
            "headers",
            json!({ "type": ["object", "null"], "maxProperties": 20, "additionalProperties": { "type": "string", "maxLength": 1024 }, "description": "Further headers of every call. One that carries a credential, by its name or by a scheme such as `Bearer` before it, is sealed as the key is and shown as `…` and its last four characters; sent back so, it stays." }),
        ),
        ("jurisdiction", law()),
        ("region", json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 64 })),
        ("timeouts", json!({ "type": ["object", "null"], "properties": times })),
        ("enabled", nullable("boolean")),
    ])
}

fn new_upstream(required: &[&str]) -> Value {
    let mut all = upstream_settings();
    let key = json!({ "type": "string", "minLength": 1, "maxLength": 4096, "writeOnly": true });
    all.insert("apiKey".to_owned(), key);
    json!({ "type": "object", "required": required, "properties": all })
}

fn upstream() -> Value {
    let mut all = upstream_settings();
    all.extend(members(&[
        ("id", id("ups_")),
        ("keyHint", json!({ "type": "string", "description": "The last four characters of its key." })),
        ("health", with_description(words(&Circuit::ALL, Circuit::as_str), "As this node sees it.")),
        ("lastError", nullable("string")),
        ("createdAt", time()),
        ("createdBy", nullable("string")),
    ]));
    json!({ "type": "object", "required": ["id", "name", "kind", "baseUrl", "keyHint", "enabled", "health"], "properties": all })
}

/// `prices` is the schema of what it costs: as it is told, or as it is sent.
fn model_settings(prices: &str) -> Map<String, Value> {
    let tokens = json!({ "type": ["integer", "null"], "minimum": 1, "maximum": 100_000_000 });
    let quality = json!({ "type": "integer", "minimum": 0, "maximum": 100 });
    members(&[
        (
            "aliases",
            json!({ "type": ["array", "null"], "maxItems": 50, "items": { "type": "string", "minLength": 1, "maxLength": 200 } }),
        ),
        ("jurisdiction", law()),
        ("contextWindow", tokens.clone()),
        ("maxOutput", tokens),
        ("capabilities", capabilities()),
        ("retention", word_or_null(&Retention::WORDS)),
        ("retentionDays", json!({ "type": ["integer", "null"], "minimum": 1 })),
        (
            "quality",
            json!({ "oneOf": [quality, { "type": "object", "additionalProperties": quality }, { "type": "null" }] }),
        ),
        ("prices", json!({ "oneOf": [reference(prices), { "type": "null" }] })),
        ("figures", figures()),
        ("enabled", nullable("boolean")),
    ])
}

fn new_model() -> Value {
    let mut all = model_settings("NewPrices");
    all.extend(members(&[
        ("id", json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" })),
        ("upstreamId", id("ups_")),
    ]));
    json!({ "type": "object", "required": ["id", "upstreamId"], "properties": all })
}

fn model() -> Value {
    let mut all = model_settings("Prices");
    all.extend(members(&[
        ("id", json!({ "type": "string", "description": "Its id as its provider has it." })),
        ("upstreamId", id("ups_")),
        ("provider", json!({ "type": "string", "description": "Its provider's name." })),
        ("createdAt", time()),
        ("createdBy", nullable("string")),
    ]));
    json!({ "type": "object", "required": ["id", "upstreamId", "jurisdiction", "contextWindow", "maxOutput", "capabilities", "retention", "quality", "enabled"], "properties": all })
}

/// Prices of tokens by their kind.
fn token_prices() -> Map<String, Value> {
    TokenPrices::MEMBERS.into_iter().map(|it| (it.to_owned(), micros())).collect()
}

fn micros() -> Value {
    json!({ "type": "integer", "minimum": 0, "maximum": 9_007_199_254_740_991_i64 })
}

fn priced(members: Map<String, Value>) -> Value {
    json!({ "type": "object", "required": ["input", "output"], "properties": members })
}

fn tiers() -> Value {
    let above = json!({ "type": "integer", "minimum": 1 });
    let tier = json!({
        "type": "object",
        "required": ["aboveInputTokens", "prices"],
        "properties": { "aboveInputTokens": above, "prices": priced(token_prices()) },
    });
    json!({ "type": "array", "maxItems": 64, "items": tier })
}

fn prices() -> Value {
    let mut service = token_prices();
    service.insert("tiers".to_owned(), tiers());
    let mut all = token_prices();
    all.extend(members(&[
        ("perImage", micros()),
        ("perRequest", micros()),
        ("perAudioSecond", micros()),
        ("audioOutput", micros()),
        ("imageOutput", micros()),
        ("tools", json!({ "type": "object", "additionalProperties": micros() })),
        ("tiers", tiers()),
        (
            "cachesUnasked",
            json!({ "type": "boolean", "description": "The provider writes its cache without being asked." }),
        ),
        ("serviceTiers", json!({ "type": "object", "additionalProperties": priced(service) })),
        (
            "inferenceGeos",
            json!({
                "type": "object",
                "description": "By where a request asks to be run (`inference_geo`), in percent of the prices of tokens: 110 is a tenth more.",
                "additionalProperties": { "type": "integer", "minimum": 1, "maximum": 1000 },
            }),
        ),
    ]));
    with_description(priced(all), "Whole micros per million tokens, and micros a use.")
}

fn figures() -> Value {
    let tokens = || json!({ "type": "integer", "minimum": 0, "maximum": 10_000_000 });
    json!({
        "type": ["object", "null"],
        "description": "Tokens at most of an image, a page, a second of audio.",
        "properties": { "image": tokens(), "page": tokens(), "audioSecond": tokens() },
    })
}

/// A class or a profile, as it stands or as it is sent.
fn policy(own: &[(&str, Value)], stands: bool, required: &[&str]) -> Value {
    let mut texts = json!({ "type": ["array", "null"], "items": { "type": "string" }, "maxItems": 200 });
    if let (false, Some(sent)) = (stands, texts.as_object_mut()) {
        sent.insert("minItems".to_owned(), json!(1));
    }
    let mut all = members(own);
    all.extend(members(&[
        ("models", texts.clone()),
        ("providers", texts.clone()),
        ("jurisdictions", texts),
        ("retention", word_or_null(&["none"])),
        ("capabilities", capabilities()),
        ("minQuality", json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 100 })),
        ("maxCostMicros", json!({ "type": ["integer", "null"], "minimum": 0 })),
        (
            "maxLatencyMs",
            json!({
                "type": ["integer", "null"], "minimum": 1,
                "description": "Milliseconds to the first token of streams, where three of late have told it.",
            }),
        ),
        ("humanOversight", nullable("boolean")),
        ("objective", objective()),
    ]));
    if stands {
        all.extend(members(&[("createdAt", time()), ("createdBy", nullable("string"))]));
    }
    json!({ "type": "object", "required": required, "properties": all })
}

fn routing(required: &[&str]) -> Value {
    let rule = json!({
        "type": "object",
        "required": ["tool", "source"],
        "properties": {
            "tool": { "type": "string", "minLength": 1, "maxLength": 256, "description": "A glob, compared in lower case without `_` and `-`, of `mcp__server__tool` server and tool each for itself; the first that matches wins." },
            "source": { "type": "string", "minLength": 1, "maxLength": 64 },
            "sink": { "type": "boolean" },
        },
    });
    let all = members(&[
        ("mode", mode()),
        ("defaultObjective", objective()),
        ("defaultTaskClass", nullable("string")),
        ("toolTable", json!({ "type": ["array", "null"], "items": rule })),
    ]);
    json!({ "type": "object", "required": required, "properties": all })
}

fn preview_request() -> Value {
    let all = members(&[
        ("taskClass", json!({ "type": "string" })),
        ("objective", objective()),
        ("model", json!({ "type": "string", "description": "A model that a call would name." })),
        ("needs", capabilities()),
        ("inputTokens", json!({ "type": "integer", "minimum": 0, "maximum": 100_000_000, "default": 1000 })),
        (
            "maxOutput",
            json!({ "type": "integer", "minimum": 1, "maximum": 100_000_000, "description": "Without it 1000, or as many as the model answers with where that is fewer." }),
        ),
        ("stream", json!({ "type": "boolean" })),
        (
            "humanOversight",
            json!({ "type": "boolean", "description": "As the header `x-svc-human-oversight: acknowledged`." }),
        ),
    ]);
    json!({ "type": "object", "properties": all })
}

fn preview() -> Value {
    let candidate = json!({
        "type": "object",
        "required": ["model", "provider", "qualifies", "score", "cost", "quality", "latencyMs", "rejectedBy"],
        "properties": {
            "model": { "type": "string" },
            "provider": { "type": "string" },
            "qualifies": { "type": "boolean" },
            "score": { "type": "integer" },
            "cost": { "type": ["integer", "null"], "description": "The worst case in micros; `null` where it is unpriced." },
            "quality": { "type": "integer" },
            "latencyMs": { "type": ["integer", "null"] },
            "rejectedBy": { "type": "array", "items": { "type": "string" } },
        },
    });
    let all = members(&[
        ("ok", json!({ "type": "boolean" })),
        ("taskClass", nullable("string")),
        ("objective", json!({ "type": "string" })),
        ("model", json!({ "type": "string" })),
        ("provider", json!({ "type": "string" })),
        ("why", json!({ "type": "array", "items": { "type": "string" } })),
        ("jurisdiction", json!({ "type": "string" })),
        ("estimatedCostMicros", json!({ "type": "integer" })),
        ("candidates", json!({ "type": "array", "items": candidate })),
        ("bindingConstraint", nullable("string")),
        ("relaxations", json!({ "type": "array", "items": reference("Relaxation") })),
    ]);
    json!({ "type": "object", "required": ["ok", "taskClass", "objective", "why", "candidates"], "properties": all })
}

fn relaxation() -> Value {
    json!({
        "type": "object",
        "description": "A single change to one constraint, and models that it admits.",
        "required": ["constraint", "change", "admits"],
        "properties": {
            "constraint": { "type": "string" },
            "change": { "type": "string" },
            "admits": { "type": "array", "items": { "type": "string" } },
        },
    })
}

fn own() -> Value {
    let all = members(&[
        ("shapes", json!({ "type": "array", "items": words(&Dialect::ALL, Dialect::as_str) })),
        ("jurisdiction", json!({ "type": "string" })),
        ("contextWindow", json!({ "type": "integer" })),
        ("maxOutput", json!({ "type": "integer" })),
        ("prices", json!({ "oneOf": [reference("Prices"), { "type": "null" }] })),
        ("capabilities", capabilities()),
    ]);
    json!({ "type": "object", "description": "What svc knows of the model.", "properties": all })
}

fn chat_models() -> Value {
    let item = json!({
        "type": "object",
        "required": ["id", "object", "created", "owned_by", "svc"],
        "properties": {
            "id": { "type": "string", "description": "`provider/model`, or `provider/alias`." },
            "object": { "type": "string" },
            "created": { "type": "integer" },
            "owned_by": { "type": "string" },
            "svc": own(),
        },
    });
    json!({
        "type": "object",
        "required": ["object", "data"],
        "properties": { "object": { "type": "string" }, "data": { "type": "array", "items": item } },
    })
}

fn messages_models() -> Value {
    let item = json!({
        "type": "object",
        "required": ["type", "id", "display_name", "created_at", "svc"],
        "properties": {
            "type": { "type": "string" },
            "id": { "type": "string", "description": "`provider/model`, or `provider/alias`." },
            "display_name": { "type": "string" },
            "created_at": time(),
            "svc": own(),
        },
    });
    json!({
        "type": "object",
        "required": ["data", "has_more", "first_id", "last_id"],
        "properties": {
            "data": { "type": "array", "items": item },
            "has_more": { "type": "boolean" },
            "first_id": nullable("string"),
            "last_id": nullable("string"),
        },
    })
}

fn members(all: &[(&str, Value)]) -> Map<String, Value> {
    all.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect()
}
