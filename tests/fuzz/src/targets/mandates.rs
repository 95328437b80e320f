//! Bodies of what agents may do and spend, of stopping them, and of what they tell.

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::rules::people::mandates::{Content, Held};
use svc_core::state::gate::{Grant, Mandate, Terms, WorkspaceTemplate};
use svc_core::value::currency::Currency;
use svc_core::value::id::{AgentId, MandateId, MandateVersionId, WorkspaceId};
use svc_core::value::text::Label;
use svc_core::value::{Id as _, Timestamp};
use svc_http::wire::{actions, budget, drill, mandate, outcome, run, settlement, stop};

use super::bodies::{self, Body, told};

/// When bodies are read.
pub const NOW: Timestamp = Timestamp::from_millis(1_790_847_000_000);

const OFFICE: &str = r#"{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":12000,"period":"hour"},"count":{"max":9,"period":"day"},"askAbove":4000,"onLimit":"ask"},"merchants":{"allow":["*.example.com"],"deny":["bad.example.com"]},"fields":{"allow":["email"]},"tools":{"allow":["web*"],"deny":["web.rm"]},"duplicates":"record","expiresAt":"2026-12-01T00:00:00Z","confirmBroaden":true}"#;

/// Bodies of what agents may do.
pub const MANDATES: &[Body] = &[
    Body {
        read: made,
        seeds: &[
            OFFICE,
            r#"{"template":"office"}"#,
            r#"{"name":"x","actions":["payment"],"limits":{"perAction":-1,"perPeriod":{"amount":1}},"extra":9007199254740993}"#,
        ],
    },
    Body {
        read: |it| told(mandate::read_change(it, None, NOW)),
        seeds: &[r#"{"name":"Other","limits":null,"state":"paused","duplicates":null}"#],
    },
    Body {
        read: |it| told(mandate::read_change(it, Some(&office()), NOW)),
        seeds: &[
            r#"{"limits":{"perPeriod":{"amount":5,"period":"month"}},"merchants":{"deny":null},"expiresAt":null}"#,
            r#"{"actions":null,"limits":{"currency":"USD"},"tools":{"allow":[]},"expiresAt":"2020-01-01T00:00:00Z"}"#,
        ],
    },
    Body {
        read: templated,
        seeds: &[
            r#"{"name":"office","mandate":{"actions":["payment"],"limits":{"perAction":5000},"duplicates":"ask"}}"#,
            r#"{"name":"office","mandate":{"limits":{"perAction":5}}}"#,
        ],
    },
    Body {
        read: |it| told(mandate::read_template_change(it, Some(&template()), currency(), NOW)),
        seeds: &["", r#"{"mandate":{"actions":["tool.call"],"tools":{"deny":["rm*"]}}}"#],
    },
    Body {
        read: |it| told(budget::read(it)),
        seeds: &[
            r#"{"scope":{"kind":"agent","id":"agt_01K6FN0001000000000000000A"},"amount":5000000,"period":"month","ladder":[{"at":50,"step":"nudge"},{"at":100,"step":"stop"}],"owner":"prp_01K6FN0001000000000000000A"}"#,
            r#"{"scope":{"kind":"workspace","id":"x"},"amount":0,"period":"era","ladder":[{"at":90,"step":"stop"},{"at":50,"step":"nudge"},{"at":-1},7]}"#,
        ],
    },
    Body {
        read: |it| told(budget::read_change(it)),
        seeds: &[r#"{"amount":1,"ladder":[]}"#, r#"{"scope":{},"period":"day","owner":null}"#],
    },
    Body { read: |it| told(budget::read_raise(it)), seeds: &[r#"{"amountMicros":9007199254740991,"note":"n"}"#] },
    Body { read: |it| told(stop::read_reason(it)), seeds: &[r#"{"reason":"odd"}"#, r#"{"reason":" "}"#] },
    Body { read: |it| told(stop::read_lift(it)), seeds: &[r#"{"reason":"over","restart":true}"#] },
    Body {
        read: |it| told(stop::read_fleet(it)),
        seeds: &[
            r#"{"selector":{"all":true},"reason":"odd","confirmCount":2,"selectionDigest":"sha256:0000000000000000000000000000000000000000000000000000000000000000"}"#,
            r#"{"selector":{"agentIds":["agt_01K6FN0001000000000000000A","agt_x"],"principalId":"prp_01K6FN0001000000000000000A","teamId":"team_1","template":"office","action":"payment","namePrefix":"b"},"dryRun":true}"#,
            r#"{"selector":{"all":true,"namePrefix":""},"reason":7}"#,
            r#"{"selector":{}}"#,
        ],
    },
    Body {
        read: |it| told(drill::read(it)),
        seeds: &[
            "",
            r#"{"agentIds":["agt_01K6FN0001000000000000000A","agt_01K6FN0001000000000000000A"],"reason":"try"}"#,
        ],
    },
    Body { read: |it| told(actions::read_reason(it)), seeds: &[r#"{"reason":"wrong"}"#, r#"{"reason":null}"#] },
    Body { read: |it| told(outcome::read(it)), seeds: &[r#"{"taskId":"tsk_fix-the-build","status":"accepted"}"#] },
    Body { read: |it| told(run::read(it)), seeds: &["", r#"{"unasked":true}"#, r#"{"unasked":1}"#] },
    Body { read: |it| told(settlement::read(it)), seeds: &[r#"{"status":"completed","amount":4900}"#] },
];

/// Bodies of mandates, templates, budgets, stops and reports are as in [`bodies::hold`]; a mandate is told as one that reads the same.
///
/// # Panics
/// Where that is not so.
pub fn mandates(data: &[u8]) {
    bodies::hold(MANDATES, data);
}

/// Bodies of every route.
#[must_use]
pub fn mandate_seeds() -> Vec<Vec<u8>> {
    bodies::seeds(MANDATES)
}

/// A mandate that is held.
///
/// # Panics
/// Where the one that it says is none.
#[must_use]
pub fn held() -> Held {
    held_of(office())
}

fn held_of(terms: Terms) -> Held {
    let id = MandateVersionId { mandate: MandateId::from_bits(1), version: 1 };
    let grant = Grant { id: id.mandate, version: 1, paused: false, expires_at: terms.expires_at };
    let mandate = Mandate::new(id, AgentId::from_bits(1), None, terms, (None, NOW));
    Held { mandate: mandate.into(), grant: Some(grant) }
}

fn office() -> Terms {
    match mandate::read_new(OFFICE.as_bytes(), NOW).expect("it is a mandate").content {
        Content::Whole(terms) => *terms,
        Content::Template(_) => panic!("it is whole"),
    }
}

fn currency() -> Currency {
    Currency::parse("EUR").expect("it is one")
}

fn template() -> WorkspaceTemplate {
    let terms = office();
    template_of(terms.name.clone(), terms)
}

fn template_of(name: Label, terms: Terms) -> WorkspaceTemplate {
    let workspace = WorkspaceId::from_bits(1);
    let id = WorkspaceTemplate::id_of(workspace, &name);
    WorkspaceTemplate { id, workspace, name, terms, created_by: None, created_at: NOW }
}

fn made(body: &[u8]) -> Result<String, Refusal> {
    let read = mandate::read_new(body, NOW)?;
    if let Content::Whole(terms) = &read.content {
        let mut shown = mandate::write(&held_of(Terms::clone(terms)), NOW);
        let members = shown.as_object_mut().expect("an object");
        for name in ["id", "agentId", "version", "state", "createdBy", "createdAt"] {
            assert!(members.remove(name).is_some(), "{name}");
        }
        let again = mandate::read_new(shown.to_string().as_bytes(), NOW).expect("what is told is read");
        assert!(matches!(&again.content, Content::Whole(it) if it == terms), "{again:?} {terms:?}");
    }
    told(Ok(read))
}

fn templated(body: &[u8]) -> Result<String, Refusal> {
    let (name, terms) = mandate::read_template(body, currency(), NOW)?;
    let shown = mandate::write_template(&template_of(name.clone(), terms.clone()));
    let again = json!({ "name": shown["name"], "mandate": shown["mandate"] }).to_string();
    let again = mandate::read_template(again.as_bytes(), currency(), NOW).expect("what is told is read");
    assert_eq!(again, (name, terms));
    told(Ok(again))
}
