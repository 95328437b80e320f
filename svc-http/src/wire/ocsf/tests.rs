//! Records of the ledger as events of the Open Cybersecurity Schema Framework.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
use serde_json::json;
use svc_core::state::evidence::KINDS;
use svc_core::value::Timestamp;
use svc_core::value::digest::Digest;
use svc_core::value::id::EvidenceId;
use svc_core::value::text::UrlText;
use svc_core::value::verbatim::Verbatim;

use super::table::{TABLE, activity, names};
use super::*;

const AGENT: &str = r#"{"id":"agt_00000000000000000000000003","kind":"agent"}"#;
const PERSON: &str = r#"{"id":"prp_00000000000000000000000004","kind":"person"}"#;
const TIMER: &str = r#"{"kind":"timer"}"#;
const TOKEN: &str = r#"{"id":"stk_00000000000000000000000005","kind":"token","name":"token:ci"}"#;

fn entry(kind: &str, actor: &str, subject: &str, data: &str) -> Entry {
    let entry = Entry {
        id: EvidenceId::from_bits(1),
        workspace: WorkspaceId::from_bits(2),
        at: Timestamp::from_millis(1_790_847_000_123),
        kind: kind.to_owned().into(),
        actor: Verbatim::of(actor),
        subject: subject.into(),
        data: Verbatim::of(data),
        place: None,
    };
    entry.placed(41, Digest::from_bytes([0; 32]))
}

fn of(kind: &str, actor: &str, subject: &str, data: &str) -> Value {
    serde_json::from_str(&event(&entry(kind, actor, subject, data)).unwrap()).unwrap()
}

/// What the schema asks of each class: its category, the numbers of its activities, and the members that must be there; of those
/// behind a bar one at least.
const SCHEMA: [(u64, u64, &[u64], &[&str]); 5] = [
    (2004, 2, &[0, 1, 2, 3, 99], &["finding_info.uid", "finding_info.title"]),
    (3001, 3, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 99], &["user.uid|user.name"]),
    (3002, 3, &[0, 1, 2, 3, 4, 5, 6, 99], &["user.uid|user.name", "service.name|dst_endpoint.ip"]),
    (3004, 3, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 99], &["entity.uid|entity.name"]),
    (
        6003,
        6,
        &[0, 1, 2, 3, 4, 99],
        &["api.operation", "actor.user.uid|actor.app_name", "src_endpoint.uid|src_endpoint.name|src_endpoint.svc_name"],
    ),
];
const OF_ALL: [&str; 9] = [
    "time",
    "message",
    "severity_id",
    "status_id",
    "activity_name",
    "metadata.version",
    "metadata.product.vendor_name",
    "metadata.product.name|metadata.product.uid",
    "metadata.uid",
];

fn has(event: &Value, path: &str) -> bool {
    path.split('|').any(|path| {
        let found = path.split('.').try_fold(event, |value, name| value.get(name));
        found.is_some_and(|it| it.as_str().is_none_or(|text| !text.is_empty()))
    })
}

/// What the schema says of an event, whichever it is.
fn check(event: &Value) {
    let class = event["class_uid"].as_u64().unwrap();
    let (_, category, activities, members) = SCHEMA.iter().find(|it| it.0 == class).unwrap();
    let activity = event["activity_id"].as_u64().unwrap();
    assert!(activities.contains(&activity), "{event}");
    assert_eq!(activity == 99, matches!(event["activity_name"].as_str(), Some("Other" | "Test")), "{event}");
    assert_eq!(event["category_uid"].as_u64(), Some(*category), "{event}");
    assert_eq!(event["type_uid"].as_u64(), Some(class * 100 + activity), "{event}");
    for path in OF_ALL.iter().chain(*members) {
        assert!(has(event, path), "{path} of {event}");
    }
    assert_eq!(event["metadata"]["version"], "1.3.0");
    assert!((1..=6).contains(&event["severity_id"].as_u64().unwrap()), "{event}");
    for (name, user) in [("user", &event["user"]), ("actor", &event["actor"]["user"])] {
        assert!(user.is_null() || user["uid"].is_string(), "{name} of {event}");
    }
}

/// The table has each kind of record once and no other; each is an event as the schema has it, of whoever did it.
#[test]
fn every_kind_is_an_event_of_the_schema() {
    let told: Vec<&str> = TABLE.iter().map(|it| it.0).collect();
    assert_eq!(told, KINDS);
    for kind in KINDS {
        for actor in [AGENT, PERSON, TIMER, TOKEN] {
            let event = of(kind, actor, "act_00000000000000000000000006", r#"{"agentId":"agt_1"}"#);
            check(&event);
            assert_eq!(event["class_uid"].as_u64(), Some(class_of(kind).uid().into()));
        }
        let row = TABLE.iter().find(|it| it.0 == *kind).unwrap();
        assert_eq!(row.4.is_of_findings(), row.1 == EventClass::DetectionFinding, "{kind}");
    }
    check(&of("of_a_later.release", TIMER, "x", "{}"));
}

/// Decisions, refusals and incidents are findings, approvals calls of an interface, agents and freezes entities, sign-ins
/// authentication, keys, tokens and members accounts, as the contract has it; an incident is of severity 4.
#[test]
fn classes_are_those_of_the_contract() {
    let classes = |kinds: &[&str]| kinds.iter().map(|it| class_of(it).uid()).collect::<Vec<_>>();
    assert_eq!(
        classes(&["action.allowed", "action.denied", "action.asked", "refusal", "incident.over_settlement"]),
        [2004; 5]
    );
    assert_eq!(classes(&["approval.asked", "action.approved", "action.person_denied", "action.expired"]), [6003; 4]);
    assert_eq!(classes(&["agent.frozen", "fleet.frozen", "agent.created", "hold.set", "mandate.changed"]), [3004; 5]);
    assert_eq!(classes(&["session.started", "session.ended"]), [3002; 2]);
    assert_eq!(classes(&["key.created", "token.revoked", "member.removed", "connection.ended"]), [3001; 4]);
    let incident = of("incident.over_settlement", TIMER, "act_1", "{}");
    assert_eq!((incident["severity_id"].as_u64(), &incident["severity"]), (Some(4), &json!("High")));
}

/// A decision: who, what and when, the record as evidence has it, and the same finding for all that becomes of one action.
#[test]
fn a_decision_is_a_finding() {
    let record = entry("action.denied", AGENT, "act_7", r#"{"agentId":"agt_3","summary":{"commit":"ab"}}"#);
    let text = event(&record).unwrap();
    let svc = format!(r#""unmapped":{{"svc":{}}}}}"#, record.record_text().unwrap());
    assert!(text.ends_with(&svc), "{text}");
    let event: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((event["time"].as_i64(), event["type_uid"].as_u64()), (Some(1_790_847_000_123), Some(200_401)));
    assert_eq!(event["metadata"]["uid"], json!(record.id));
    assert_eq!(event["metadata"]["sequence"], 41);
    assert_eq!(event["metadata"]["tenant_uid"], json!(record.workspace));
    assert_eq!(event["metadata"]["event_code"], "action.denied");
    assert_eq!(event["message"], "Action denied: act_7 by agent agt_00000000000000000000000003");
    assert_eq!(event["finding_info"], json!({ "uid": "act_7", "title": "Action denied", "types": ["action.denied"] }));
    assert_eq!(event["resources"][1], json!({ "uid": "agt_3", "type": "agent" }));
    assert_eq!(of("action.settled", AGENT, "act_7", "{}")["finding_info"]["uid"], "act_7");
    assert_eq!(of("refusal", AGENT, "key_7", "{}")["finding_info"]["uid"], json!(record.id));
}

/// A record whose members cannot be read is no event: one without them would say less than the record.
#[test]
fn an_event_says_no_less_than_its_record() {
    assert!(event(&entry("action.denied", AGENT, "act_7", r#"{"agentId":"agt_3","amount":1e999}"#)).is_none());
    assert!(event(&entry("action.denied", r#"[]"#, "act_7", "{}")).is_none());
}

/// Accounts are those of whoever acts by a key or a connection, a token is one by itself; a person is a user, a program a system.
#[test]
fn whose_account_it_is() {
    let key = of("key.created", PERSON, "key_1", r#"{"agentId":"agt_3","principalId":"prp_4"}"#);
    assert_eq!(key["user"], json!({ "uid": "agt_3", "type": "System", "type_id": 3, "credential_uid": "key_1" }));
    assert_eq!(key["actor"]["user"]["type_id"], 1);
    let token = of("token.created", TOKEN, "stk_1", "{}");
    assert_eq!((&token["user"]["uid"], &token["actor"]["user"]["name"]), (&json!("stk_1"), &json!("token:ci")));
    let signed_in = of("session.started", PERSON, "ses_1", r#"{"principalId":"prp_4"}"#);
    assert_eq!((&signed_in["user"]["uid"], &signed_in["session"]["uid"]), (&json!("prp_4"), &json!("ses_1")));
    let ended = of("session.ended", TIMER, "ses_1", r#"{"principalId":"prp_4"}"#);
    assert_eq!(ended["actor"], json!({ "app_name": "svc", "invoked_by": "timer" }));
}

/// What a resource is, its id tells, as ids are made.
#[test]
fn a_resource_is_known_by_its_id() {
    let ids = [
        (ActionId::from_bits(1).to_string(), "action"),
        (KeyId::from_bits(1).to_string(), "key"),
        (DrillId::from_bits(1).to_string(), "drill"),
        (TaskId::parse("tsk_a-1").unwrap().to_string(), "task"),
        (EvidenceId::from_bits(1).to_string(), "other"),
        ("hand/large-1".to_owned(), "other"),
    ];
    for (id, kind) in ids {
        assert_eq!(word(&id), kind, "{id}");
    }
}

/// What is managed has the word of the schema for its number (`objects/managed_entity.json` of 1.3.0), and its own where the
/// schema has none.
#[test]
fn an_entity_has_the_word_of_its_number() {
    let captions = ["Device", "User", "Group", "Organization", "Policy", "Email"];
    for (kind, word, number) in [
        ("team.created", "Group", 3_usize),
        ("settings.changed", "Organization", 4),
        ("mandate.created", "Policy", 5),
        ("policy_profile.removed", "Policy", 5),
        ("agent.frozen", "agent", 99),
    ] {
        let entity = &of(kind, PERSON, "it_1", "{}")["entity"];
        assert_eq!(*entity, json!({ "uid": "it_1", "type": word, "type_id": number }), "{kind}");
        assert_eq!(captions.get(number - 1).is_some_and(|it| *it == word), number != 99, "{kind}");
    }
}

/// Every number is told with the word that the schema has for it (`dictionary.json`, `events/findings/finding.json`,
/// `events/iam/*.json` and `events/application/api.json` of 1.3.0).
#[test]
fn numbers_are_told_with_the_words_of_the_schema() {
    let account = [
        "Create",
        "Enable",
        "Password Change",
        "Password Reset",
        "Disable",
        "Delete",
        "Attach Policy",
        "Detach Policy",
        "Lock",
        "MFA Factor Enable",
        "MFA Factor Disable",
    ];
    let entity = [
        "Create",
        "Read",
        "Update",
        "Delete",
        "Move",
        "Enroll",
        "Unenroll",
        "Enable",
        "Disable",
        "Activate",
        "Deactivate",
        "Suspend",
        "Resume",
    ];
    let classes: [(EventClass, &[&str]); 5] = [
        (EventClass::DetectionFinding, &["Create", "Update", "Close"]),
        (EventClass::AccountChange, &account),
        (EventClass::Authentication, &["Logon", "Logoff"]),
        (EventClass::EntityManagement, &entity),
        (EventClass::ApiActivity, &["Create", "Read", "Update", "Delete"]),
    ];
    for (class, words) in classes {
        for (number, word) in (1..).zip(words) {
            assert_eq!(activity(class, number), *word, "{class:?} {number}");
        }
        assert_eq!(activity(class, 99), "Other");
    }
    let severities = ["Unknown", "Informational", "Low", "Medium", "High", "Critical", "Fatal"];
    let (findings, others) = (["New", "In Progress", "Suppressed", "Resolved"], ["Success", "Failure"]);
    for (kind, _, _, severity, standing, _) in TABLE {
        assert_eq!(severity.caption(), severities[usize::from(severity.id())], "{kind}");
        let words: &[&str] = if standing.is_of_findings() { &findings } else { &others };
        assert_eq!(standing.caption(), words[usize::from(standing.id()) - 1], "{kind}");
    }
}

/// A record without a place is no event yet. A test is one event, which names the delivery and tells of nothing.
#[test]
fn a_test_is_one_event() {
    assert!(event(&Entry { place: None, ..entry("action.allowed", AGENT, "act_1", "{}") }).is_none());
    let integration = IntegrationId::from_bits(8);
    let work = svc_core::state::edge::Work::Test {
        integration,
        over: svc_core::state::edge::IntegrationKind::Export,
        to: None,
    };
    let url = UrlText::parse("https://siem.example.com/in").unwrap();
    let job = Job::new(DeliveryId::from_bits(9), WorkspaceId::from_bits(2), work, url, Timestamp::from_millis(5));
    let body: Value = serde_json::from_slice(&test(&job, integration)).unwrap();
    let [event] = body.as_array().unwrap().as_slice() else { unreachable!("{body}") };
    check(event);
    assert_eq!((&event["metadata"]["uid"], &event["type_uid"]), (&json!(job.id), &json!(600_399)));
    assert_eq!(event["unmapped"]["svc"], json!({ "type": "test", "integrationId": integration }));
    assert!(event["metadata"].get("sequence").is_none());
}

/// The page has the table of kinds. `UPDATE_EXPECTED=1` writes it.
#[test]
fn the_documentation_has_the_table_of_kinds() {
    use std::fmt::Write as _;

    let mut table = String::from("| Kind | Class | Activity | Severity | Status |\n|---|---|---|---|---|\n");
    for (kind, class, number, severity, standing, _) in TABLE {
        let (name, activity) = (names(*class).0, activity(*class, *number));
        let uid = class.uid();
        let (severity, standing) = (severity.id(), standing.caption());
        writeln!(table, "| `{kind}` | {uid} {name} | {number} {activity} | {severity} | {standing} |").unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/export.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once("<!-- kinds -->\n").unwrap();
    let (_, tail) = rest.split_once("<!-- /kinds -->").unwrap();
    let wanted = format!("{head}<!-- kinds -->\n{table}<!-- /kinds -->{tail}");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    assert_eq!(page, wanted);
}
