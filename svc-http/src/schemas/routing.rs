//! The schemas of providers, models, classes, profiles, routing, previews and lists of models.

use serde_json::{Map, Value, json};

use super::{id, reference, time};

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
        ("ModelChange", json!({ "type": "object", "properties": model_settings() })),
        ("Prices", prices()),
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
    json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 100 })
}

fn class_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9_-]+(\\.[a-z0-9_-]+)*$" })
}

fn mode() -> Value {
    json!({ "type": ["string", "null"], "enum": ["shadow", "enforce", null] })
}

fn objective() -> Value {
    json!({ "type": ["string", "null"], "enum": ["balanced", "cost", "quality", "latency", "sovereign", null] })
}

fn capabilities() -> Value {
    let words = ["tools", "vision", "streaming", "json", "reasoning", "audio"];
    json!({ "type": ["array", "null"], "items": { "type": "string", "enum": words } })
}

fn law() -> Value {
    json!({ "type": ["string", "null"], "description": "ISO 3166 in lower case, `eu`, or `unknown`." })
}

fn upstream_settings() -> Map<String, Value> {
    let times = ["firstTokenMs", "idleMs", "totalMs"];
    let times: Map<String, Value> = times.into_iter().map(|it| (it.to_owned(), json!({ "type": "integer" }))).collect();
    members(&[
        (
            "name",
            json!({ "type": "string", "pattern": "^[a-z0-9-]{1,40}$", "description": "What stands before the slash in `provider/model`." }),
        ),
        ("kind", json!({ "type": "string", "enum": ["chat", "messages"], "description": "The shape that it speaks." })),
        (
            "baseUrl",
            json!({ "type": "string", "format": "uri", "description": "For `chat` with `/v1`; for `messages` the host." }),
        ),
        (
            "headers",
            json!({ "type": ["object", "null"], "additionalProperties": { "type": "string" }, "description": "Further headers of every call; no secret belongs there." }),
        ),
        ("jurisdiction", law()),
        ("region", nullable("string")),
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
        (
            "health",
            json!({ "type": "string", "enum": ["ok", "degraded", "open"], "description": "As this node sees it." }),
        ),
        ("lastError", nullable("string")),
        ("createdAt", time()),
        ("createdBy", nullable("string")),
    ]));
    json!({ "type": "object", "required": ["id", "name", "kind", "baseUrl", "keyHint", "enabled", "health"], "properties": all })
}

fn model_settings() -> Map<String, Value> {
    let tokens = json!({ "type": ["integer", "null"], "minimum": 1 });
    let quality = json!({ "type": "integer", "minimum": 0, "maximum": 100 });
    members(&[
        ("aliases", json!({ "type": ["array", "null"], "items": { "type": "string" } })),
        ("jurisdiction", law()),
        ("contextWindow", tokens.clone()),
        ("maxOutput", tokens),
        ("capabilities", capabilities()),
        ("retention", json!({ "type": ["string", "null"], "enum": ["none", "days", null] })),
        ("retentionDays", json!({ "type": ["integer", "null"], "minimum": 1 })),
        (
            "quality",
            json!({ "oneOf": [quality, { "type": "object", "additionalProperties": quality }, { "type": "null" }] }),
        ),
        ("prices", json!({ "oneOf": [reference("Prices"), { "type": "null" }] })),
        (
            "figures",
            json!({ "type": ["object", "null"], "description": "Tokens at most of an image, a page, a second of audio." }),
        ),
        ("enabled", nullable("boolean")),
    ])
}

fn new_model() -> Value {
    let mut all = model_settings();
    all.extend(members(&[
        ("id", json!({ "type": "string", "minLength": 1, "maxLength": 200 })),
        ("upstreamId", id("ups_")),
    ]));
    json!({ "type": "object", "required": ["id", "upstreamId"], "properties": all })
}

fn model() -> Value {
    let mut all = model_settings();
    all.extend(members(&[
        ("id", json!({ "type": "string", "description": "Its id as its provider has it." })),
        ("upstreamId", id("ups_")),
        ("provider", json!({ "type": "string", "description": "Its provider's name." })),
        ("createdAt", time()),
        ("createdBy", nullable("string")),
    ]));
    json!({ "type": "object", "required": ["id", "upstreamId", "jurisdiction", "contextWindow", "maxOutput", "capabilities", "retention", "quality", "enabled"], "properties": all })
}

fn prices() -> Value {
    let micros = json!({ "type": "integer", "minimum": 0 });
    let kinds = ["input", "cachedInput", "cacheWrite", "cacheWriteLong", "output", "reasoning"];
    let fees = ["perImage", "perRequest", "perAudioSecond", "audioOutput"];
    let mut all: Map<String, Value> = kinds.into_iter().chain(fees).map(|it| (it.to_owned(), micros.clone())).collect();
    all.insert("tools".to_owned(), json!({ "type": "object", "additionalProperties": micros }));
    let tier = json!({
        "type": "object",
        "required": ["aboveInputTokens", "prices"],
        "properties": { "aboveInputTokens": { "type": "integer", "minimum": 1 }, "prices": { "type": "object" } },
    });
    all.insert("tiers".to_owned(), json!({ "type": "array", "items": tier }));
    all.insert(
        "cachesUnasked".to_owned(),
        json!({ "type": "boolean", "description": "The provider writes its cache without being asked." }),
    );
    all.insert("serviceTiers".to_owned(), json!({ "type": "object", "additionalProperties": { "type": "object" } }));
    json!({ "type": "object", "description": "Whole micros per million tokens, and micros a use.", "required": ["input", "output"], "properties": all })
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
        ("retention", json!({ "type": ["string", "null"], "enum": ["none", null] })),
        ("capabilities", capabilities()),
        ("minQuality", json!({ "type": ["integer", "null"], "minimum": 0, "maximum": 100 })),
        ("maxCostMicros", json!({ "type": ["integer", "null"], "minimum": 0 })),
        ("maxLatencyMs", json!({ "type": ["integer", "null"], "minimum": 1 })),
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
            "tool": { "type": "string", "description": "A glob, compared in lower case without `_` and `-`; the first that matches wins." },
            "source": { "type": "string" },
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
        ("inputTokens", json!({ "type": "integer", "minimum": 0, "default": 1000 })),
        ("maxOutput", json!({ "type": "integer", "minimum": 1, "default": 1000 })),
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
    json!({ "type": "object", "description": "What svc knows of the model: shapes, jurisdiction, contextWindow, maxOutput, prices, capabilities." })
}

fn chat_models() -> Value {
    let item = json!({
        "type": "object",
        "required": ["id", "object", "created", "owned_by", "svc"],
        "properties": {
            "id": { "type": "string", "description": "`provider/model`." },
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
            "id": { "type": "string", "description": "`provider/model`." },
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
