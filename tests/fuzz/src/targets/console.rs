//! Bodies of models and their routes, and of what a workspace is set to and connected with.

use svc_core::rules::people::taken::NewName;
use svc_core::state::edge::IntegrationKind;
use svc_core::state::edge::outbound::{Outbound, Private};
use svc_core::value::Id as _;
use svc_core::value::id::UpstreamId;
use svc_core::value::json::Json;
use svc_http::wire::integration::{self, Guards};
use svc_http::wire::named::{aliases_of, named};
use svc_http::wire::routing::{self, model, policy, preview, upstream};
use svc_http::wire::{self, callback, mandate, mcp_server, settings};

use super::bodies::{self, Body, leads, told};

/// Bodies of providers, models, classes, profiles and routing.
pub const GATEWAY: &[Body] = &[
    Body {
        read: |it| told(upstream::read(it, true, |_| Ok(()))),
        seeds: &[
            r#"{"name":"acme","kind":"chat","baseUrl":"https://api.example.com/v1","apiKey":"planted-secret","headers":{"x-region":"eu","X-Api-Token":"t0ken-of-the-provider"},"jurisdiction":"de","region":"eu-1","timeouts":{"firstTokenMs":1,"idleMs":2,"totalMs":3},"enabled":true}"#,
            r#"{"name":"","kind":"x","apiKey":"planted-secret with space","headers":{"host":"x","a b":"c","x-a":7},"timeouts":{"idleMs":0}}"#,
        ],
    },
    Body {
        read: |it| told(upstream::read(it, false, |_| Ok(()))),
        seeds: &[
            "",
            r#"{"headers":null,"timeouts":null,"jurisdiction":null,"enabled":null}"#,
            r#"{"headers":{"x-a":"1","X-A":"2","x-b":"…abcd"}}"#,
        ],
    },
    Body {
        read: |it| told(model::read_new(it)),
        seeds: &[
            r#"{"id":"acme/large","upstreamId":"ups_01K6FN0001000000000000000A","aliases":["large"],"jurisdiction":"de","contextWindow":128000,"maxOutput":8000,"capabilities":["tools","vision"],"retention":"days","retentionDays":30,"quality":{"drafting":80},"prices":{"input":1,"output":2,"cachedInput":1,"tools":{"web_search":10000},"tiers":[{"aboveInputTokens":200000,"prices":{"input":2,"output":4}}],"serviceTiers":{"flex":{"input":1,"output":1}},"inferenceGeos":{"us":110}},"enabled":true}"#,
            r#"{"id":"","quality":101,"retention":"none","retentionDays":3,"prices":{"output":-1,"tiers":[{"prices":{}}],"serviceTiers":{"flex":7}}}"#,
        ],
    },
    Body {
        read: |it| told(model::read_change(it)),
        seeds: &["", r#"{"quality":null,"prices":null,"figures":null,"aliases":null,"retention":null}"#],
    },
    Body {
        read: |it| told(policy::read_new_class(it)),
        seeds: &[
            r#"{"id":"drafting","name":"Drafting","models":["acme/large"],"providers":["acme"],"jurisdictions":["de"],"retention":"none","capabilities":["tools"],"minQuality":50,"maxCostMicros":10000,"maxLatencyMs":2000,"humanOversight":true,"objective":"cost"}"#,
            r#"{"id":"A b","models":["a","a"],"minQuality":101,"objective":"best"}"#,
        ],
    },
    Body { read: |it| told(policy::read_class(it)), seeds: &["", r#"{"models":null,"name":null,"objective":null}"#] },
    Body {
        read: |it| told(policy::read_profile(it, true)),
        seeds: &[r#"{"name":"Careful","mode":"shadow","jurisdictions":["de"],"humanOversight":false}"#],
    },
    Body { read: |it| told(policy::read_profile(it, false)), seeds: &["", r#"{"mode":null,"maxCostMicros":null}"#] },
    Body {
        read: |it| told(preview::read(it, None)),
        seeds: &[
            "",
            r#"{"taskClass":"drafting","objective":"latency","model":"auto","needs":["tools","json"],"inputTokens":1000,"maxOutput":100,"stream":true,"humanOversight":true}"#,
        ],
    },
    Body {
        read: |it| told(routing::read(it)),
        seeds: &[
            r#"{"mode":"enforce","defaultObjective":"balanced","defaultTaskClass":"drafting","toolTable":[{"tool":"web*","source":"web","sink":true}]}"#,
            r#"{"mode":null,"toolTable":[{"tool":"","source":7},1]}"#,
        ],
    },
];

/// Bodies of providers, models, classes, profiles and routing are as in [`bodies::hold`].
///
/// # Panics
/// Where one is not.
pub fn gateway(data: &[u8]) {
    bodies::hold(GATEWAY, data);
}

/// Bodies of every route.
#[must_use]
pub fn gateway_seeds() -> Vec<Vec<u8>> {
    bodies::seeds(GATEWAY)
}

/// Bodies of settings, integrations and MCP servers.
pub const WORKSPACE: &[Body] = &[
    Body {
        read: |it| told(settings::read(it)),
        seeds: &[
            "",
            r#"{"name":"Acme","timezone":"Europe/Berlin","currency":"EUR","agentVelocity":{"toolVelocityCount":10,"velocityCount":5,"velocityMinutes":1},"outsideMandate":"deny","provenance":{"mismatch":"deny","undeclared":"ask","windowMinutes":60},"approvalHours":24,"secondPersonAbove":{"EUR":10000},"secondPersonAgeDays":7,"receiptMinutes":15,"maxWaiting":20,"freezeCeilingPerHour":100,"dataLoss":"redact","signIn":{"requireTwoFactor":true,"requireSso":false,"ssoDomains":["example.com"]},"stepUpAbove":{"USD":1},"retentionDays":400}"#,
            r#"{"name":null,"secondPersonAbove":{"eur":1,"EUR":1,"XXY":2},"signIn":{"ssoDomains":["co.uk"]},"retentionDays":1}"#,
        ],
    },
    Body {
        read: |it| told(guarded(|guards| integration::read_new(it, guards))),
        seeds: &[
            r#"{"kind":"export","secret":"a planted-secret of a kind","config":{"url":"https://siem.example.com/in","classes":[6003]}}"#,
            r#"{"kind":"oidc","secret":"planted-secret","config":{"issuer":"https://idp.example.com","clientId":"svc"}}"#,
            r#"{"kind":"ssf","config":{"issuer":"https://idp.example.com","audience":"svc","jwks":{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}}}"#,
            r#"{"kind":"slack","secret":"a planted-secret of Slack's","config":{"botToken":"xoxb-planted-secret","members":{"U012":"prp_01K6FN0001000000000000000A"}}}"#,
            r#"{"kind":"github","config":{"repositories":["acme/site"],"branches":["main"]}}"#,
        ],
    },
    Body {
        read: |it| told(guarded(|guards| integration::read_change(it, None, guards))),
        seeds: &[
            "",
            r#"{"enabled":null,"config":null}"#,
            r#"{"config":{"to":["prp_01K6FN0001000000000000000A"],"format":"text"}}"#,
        ],
    },
    Body {
        read: |it| told(guarded(|guards| integration::read_change(it, Some(IntegrationKind::Ssf), guards))),
        seeds: &[
            r#"{"config":{"jwksUrl":"https://idp.example.com/keys","jwks":null}}"#,
            r#"{"config":{"jwks":{"keys":[]},"url":"x"},"secret":"planted-secret"}"#,
        ],
    },
    Body {
        read: |it| told(guarded(|guards| integration::read_change(it, Some(IntegrationKind::Relay), guards))),
        seeds: &[
            r#"{"config":{"members":{"ann@chat":"prp_01K6FN0001000000000000000A"}}}"#,
            r#"{"config":{"members":{"":1}}}"#,
        ],
    },
    Body {
        read: |it| told(integration::read_rotation(it, Some(IntegrationKind::Callbacks))),
        seeds: &[
            "",
            r#"{"overlapHours":0,"secret":"a planted-secret of a kind"}"#,
            r#"{"overlapHours":-1,"secret":"planted-secret"}"#,
        ],
    },
    Body {
        read: |it| told(integration::read_test(it, &guard())),
        seeds: &["", r#"{"url":"https://siem.example.com/in"}"#],
    },
    Body { read: |it| told(callback::read(it, &guard())), seeds: &[r#"{"url":"https://shop.example.com/hook"}"#] },
    Body {
        read: |it| told(mcp_server::read(it, true, |_| Ok(()))),
        seeds: &[
            r#"{"name":"files","url":"https://mcp.example.com/mcp?x=1","credential":{"type":"bearer","secret":"planted-secret"},"tools":{"allow":["read*"],"deny":["rm"]},"enabled":true}"#,
            r#"{"name":"files","url":"https://mcp.example.com/?key=planted-secrets","credential":{"type":"header","header":"host","secret":" planted-secret"}}"#,
        ],
    },
    Body {
        read: |it| told(mcp_server::read(it, false, |_| Ok(()))),
        seeds: &[
            "",
            r#"{"credential":{"type":"header","header":"x-key","secret":"planted-secret of two words"},"tools":null}"#,
        ],
    },
    Body {
        read: |it| told(mcp_server::read_accepted(it)),
        seeds: &[
            r#"{"tools":["read"],"toolsHash":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}"#,
        ],
    },
    Body { read: |it| told(wire::nothing(it)), seeds: &["", "{}"] },
];

fn guard() -> Outbound {
    Outbound { private: Private::Nowhere, own_host: "gate.example.com".into() }
}

/// With the guards of what may be called.
fn guarded<T>(read: impl FnOnce(Guards<'_>) -> T) -> T {
    let guard = guard();
    read(Guards { receivers: &guard, providers: &guard })
}

/// Bodies of settings, integrations and MCP servers are as in [`bodies::hold`], and whom an integration names stands where it is said to.
///
/// # Panics
/// Where that is not so.
pub fn workspace(data: &[u8]) {
    bodies::hold(WORKSPACE, data);
    let Some(body) = data.get(1..) else { return };
    let Ok(json) = Json::parse(body) else { return };
    let routed = [model::IDS, policy::CLASS_IDS, policy::PROFILE_IDS, upstream::IDS].concat();
    let others = [mandate::TEMPLATE_IDS, mcp_server::IDS, integration::new_ids(body)].concat();
    for (path, _) in named(&json, &[routed, others].concat()) {
        assert!(leads(&json, &path), "{path}");
    }
    if let Some(NewName::Aliases { names, own, .. }) = aliases_of(&json, UpstreamId::from_bits(1), None) {
        let sent = json.get("aliases").and_then(Json::as_list).unwrap_or_default();
        assert!(names.len() <= sent.len() && own.is_none(), "each is one that was sent");
    }
}

/// Bodies of every route.
#[must_use]
pub fn workspace_seeds() -> Vec<Vec<u8>> {
    bodies::seeds(WORKSPACE)
}
