//! Ledger records as events of the Open Cybersecurity Schema Framework, version 1.3.0 (<https://schema.ocsf.io/1.3.0>), as an
//! export sends them (CONTRACT part 6, "Outbound").
//!
//! **Invariant:** every kind of record is an event of one class, by one table; the whole record goes with
//! it as evidence shows it, and nothing that it only commits to.

mod table;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use svc_core::state::edge::{EventClass, Job};
use svc_core::state::evidence::Entry;
use svc_core::value::Id as _;
use svc_core::value::id::{
    AccountId, ActionId, AgentId, ApprovalId, DeliveryId, DrillId, IntegrationId, KeyId, PrincipalId, WorkspaceId,
};
use svc_core::value::text::TaskId;

use self::table::Told;

/// The version of the schema.
const VERSION: &str = "1.3.0";
/// Who sends, as product and vendor.
const PRODUCT: &str = "svc";

/// The class of the event that a record of this kind is.
#[must_use]
pub fn class_of(kind: &str) -> EventClass {
    table::told(kind).class
}

/// A record as an event; `None` while it has no place, and for one whose members cannot be read: an event that says less than its record
/// would be taken for all of it.
#[must_use]
pub fn event(entry: &Entry) -> Option<String> {
    let (place, record) = (entry.place.as_ref()?, entry.record_text()?);
    let told = table::told(&entry.kind);
    let about = About::of(entry)?;
    let metadata = Metadata {
        uid: entry.id.to_string(),
        sequence: Some(place.seq),
        tenant_uid: entry.workspace.to_string(),
        event_code: &entry.kind,
        ..METADATA
    };
    let mut event = Event::new(&told, entry.at.as_millis(), metadata, RawValue::from_string(record).ok()?);
    event.message = about.message(told.title);
    event.activity_name = table::activity(told.class, told.activity).into();
    match told.class {
        EventClass::DetectionFinding => {
            event.finding_info = Some(about.finding(told.title));
            event.resources = about.resources();
        }
        EventClass::AccountChange => (event.user, event.actor) = (Some(about.account()), Some(about.actor())),
        EventClass::Authentication => {
            (event.user, event.actor) = (Some(about.account()), Some(about.actor()));
            event.session = Some(Named { uid: Some(about.subject.clone()), ..Named::default() });
            event.service = Some(service());
        }
        EventClass::EntityManagement => (event.entity, event.actor) = (Some(about.entity()), Some(about.actor())),
        EventClass::ApiActivity => {
            event.api = Some(Api { operation: about.kind.clone(), service: service() });
            event.src_endpoint = Some(about.source());
            (event.actor, event.resources) = (Some(about.actor()), about.resources());
        }
    }
    serde_json::to_string(&event).ok()
}

/// The body of a call that tries an export out: one event, which tells of nothing.
#[must_use]
pub fn test(job: &Job, integration: IntegrationId) -> Vec<u8> {
    let told = Told::other("A test of the export: nothing has happened");
    let metadata =
        Metadata { uid: job.id.to_string(), tenant_uid: job.workspace.to_string(), event_code: "test", ..METADATA };
    let said = format!(r#"{{"type":"test","integrationId":"{integration}"}}"#);
    let Ok(said) = RawValue::from_string(said) else { return Vec::new() };
    let mut event = Event::new(&told, job.created_at.as_millis(), metadata, said);
    event.activity_name = "Test".into();
    event.message = told.title.into();
    event.api = Some(Api { operation: "test".into(), service: service() });
    event.actor = Some(Actor { app_name: Some(PRODUCT.into()), ..Actor::default() });
    event.src_endpoint = Some(Named { svc_name: Some(PRODUCT.into()), ..Named::default() });
    // Texts and numbers and nothing else: it is always written.
    serde_json::to_vec(&[event]).unwrap_or_default()
}

/// What an event needs of a record.
struct About {
    kind: String,
    subject: String,
    record: String,
    data: Map<String, Value>,
    actor: Map<String, Value>,
}

impl About {
    fn of(entry: &Entry) -> Option<Self> {
        Some(Self {
            kind: entry.kind.to_string(),
            subject: entry.subject.to_string(),
            record: entry.id.to_string(),
            data: serde_json::from_str(&entry.data).ok()?,
            actor: serde_json::from_str(&entry.actor).ok()?,
        })
    }

    fn member(&self, name: &str) -> Option<String> {
        self.data.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    fn by(&self, name: &str) -> Option<String> {
        self.actor.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// What the kind is about: what stands before its full stop.
    fn family(&self) -> &str {
        self.kind.split_once('.').map_or(&self.kind, |it| it.0)
    }

    fn message(&self, title: &str) -> String {
        let who = [self.by("kind"), self.by("id")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        format!("{title}: {} by {who}", self.subject)
    }

    /// What is found of one action or one drill is one finding; everything else is a finding of its own.
    fn finding(&self, title: &'static str) -> Finding {
        let lasts = matches!(self.family(), "action" | "drill" | "receipt");
        let uid = if lasts { self.subject.clone() } else { self.record.clone() };
        Finding { uid, title, types: [self.kind.clone()] }
    }

    fn resources(&self) -> Vec<Named> {
        let agent = self.member("agentId").filter(|it| *it != self.subject);
        let all = [Some((self.subject.clone(), word(&self.subject))), agent.map(|it| (it, "agent"))];
        let named =
            |(uid, kind): (String, &'static str)| Named { uid: Some(uid), kind: Some(kind.into()), ..Named::default() };
        all.into_iter().flatten().map(named).collect()
    }

    /// Whose account it is about: of a key or a connection whoever acts by it.
    fn account(&self) -> User {
        let holder = self.member("agentId").or_else(|| self.member("principalId"));
        let is_held = matches!(self.family(), "key" | "token" | "connection");
        let uid = match self.family() {
            "key" | "connection" | "session" => holder.unwrap_or_else(|| self.subject.clone()),
            _ => self.subject.clone(),
        };
        let credential_uid = is_held.then(|| self.subject.clone());
        User { credential_uid, ..User::of(uid, None) }
    }

    /// Who did it: a person, an agent, a token or a key as a user, all else as this program, which something has made act.
    fn actor(&self) -> Actor {
        match self.by("id") {
            Some(id) => Actor { user: Some(User::of(id, self.by("name"))), ..Actor::default() },
            None => Actor { user: None, app_name: Some(PRODUCT.into()), invoked_by: self.by("kind") },
        }
    }

    /// What it is an event of: the schema's own word where it has one, else ours, as the schema asks of what is other.
    fn entity(&self) -> Entity {
        let (kind, type_id) = match self.family() {
            "team" => ("Group", 3),
            "settings" => ("Organization", 4),
            "mandate" | "policy_profile" => ("Policy", 5),
            other => (other, 99),
        };
        Entity { uid: self.subject.clone(), kind: kind.to_owned(), type_id }
    }

    /// Where it came from, as far as the ledger knows: no address is in it.
    fn source(&self) -> Named {
        let kind = self.by("kind").unwrap_or_else(|| PRODUCT.to_owned());
        Named { uid: self.by("id"), name: Some(kind), svc_name: Some(PRODUCT.into()), ..Named::default() }
    }
}

/// What an id is of, by its prefix.
fn word(id: &str) -> &'static str {
    const WORDS: [(&str, &str); 10] = [
        (ActionId::PREFIX, "action"),
        (AgentId::PREFIX, "agent"),
        (ApprovalId::PREFIX, "approval"),
        (DeliveryId::PREFIX, "delivery"),
        (DrillId::PREFIX, "drill"),
        (IntegrationId::PREFIX, "integration"),
        (KeyId::PREFIX, "key"),
        (PrincipalId::PREFIX, "principal"),
        (TaskId::PREFIX, "task"),
        (WorkspaceId::PREFIX, "workspace"),
    ];
    WORDS.iter().find(|(prefix, _)| id.starts_with(prefix)).map_or("other", |it| it.1)
}

#[derive(Serialize)]
struct Event<'a> {
    class_uid: u16,
    class_name: &'static str,
    category_uid: u16,
    category_name: &'static str,
    activity_id: u8,
    activity_name: String,
    type_uid: u32,
    type_name: String,
    time: i64,
    severity_id: u8,
    severity: &'static str,
    status_id: u8,
    status: &'static str,
    message: String,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finding_info: Option<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<User>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<Actor>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<Entity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<Api>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_endpoint: Option<Named>,
    unmapped: Unmapped,
}

impl<'a> Event<'a> {
    /// What all classes have.
    fn new(told: &Told, time: i64, metadata: Metadata<'a>, record: Box<RawValue>) -> Self {
        let class_uid = told.class.uid();
        let (class_name, category_name) = table::names(told.class);
        Self {
            class_uid,
            class_name,
            category_uid: class_uid / 1_000,
            category_name,
            activity_id: told.activity,
            activity_name: String::new(),
            type_uid: u32::from(class_uid).saturating_mul(100).saturating_add(told.activity.into()),
            type_name: format!("{class_name}: {}", table::activity(told.class, told.activity)),
            time,
            severity_id: told.severity.id(),
            severity: told.severity.caption(),
            status_id: told.standing.id(),
            status: told.standing.caption(),
            message: String::new(),
            metadata,
            finding_info: None,
            resources: Vec::new(),
            user: None,
            actor: None,
            session: None,
            service: None,
            entity: None,
            api: None,
            src_endpoint: None,
            unmapped: Unmapped { svc: record },
        }
    }
}

#[derive(Serialize)]
struct Metadata<'a> {
    version: &'static str,
    product: Product,
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    tenant_uid: String,
    log_name: &'static str,
    event_code: &'a str,
}

/// What all events have.
const METADATA: Metadata<'static> = Metadata {
    version: VERSION,
    product: Product { name: PRODUCT, vendor_name: PRODUCT, version: env!("CARGO_PKG_VERSION") },
    uid: String::new(),
    sequence: None,
    tenant_uid: String::new(),
    log_name: "ledger",
    event_code: "",
};

#[derive(Serialize)]
struct Product {
    name: &'static str,
    vendor_name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct Finding {
    uid: String,
    title: &'static str,
    types: [String; 1],
}

/// A session, a service, an endpoint or a resource.
#[derive(Default, Serialize)]
struct Named {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    svc_name: Option<String>,
}

fn service() -> Named {
    Named { name: Some(PRODUCT.into()), ..Named::default() }
}

#[derive(Serialize)]
struct User {
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
    type_id: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential_uid: Option<String>,
}

impl User {
    /// Somebody with this id: a person, or a program that acts by a credential.
    fn of(uid: String, name: Option<String>) -> Self {
        let is_person = [PrincipalId::PREFIX, AccountId::PREFIX].iter().any(|it| uid.starts_with(it));
        let (kind, type_id) = if is_person { ("User", 1) } else { ("System", 3) };
        Self { uid, name, kind, type_id, credential_uid: None }
    }
}

#[derive(Default, Serialize)]
struct Actor {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<User>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invoked_by: Option<String>,
}

#[derive(Serialize)]
struct Entity {
    uid: String,
    #[serde(rename = "type")]
    kind: String,
    type_id: u8,
}

#[derive(Serialize)]
struct Api {
    operation: String,
    service: Named,
}

#[derive(Serialize)]
struct Unmapped {
    svc: Box<RawValue>,
}

#[cfg(test)]
mod tests;
