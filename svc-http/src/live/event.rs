//! From a ledger record to what the members of its workspace are told (CONTRACT part 6, "Live events").
//!
//! **Invariant:** an event holds no personal text, no merchant and no secret: whoever may read more reads the thing it names.

use serde_json::{Map, Value};
use svc_core::state::evidence::Entry;
use svc_core::state::gate::Agent;
use svc_core::state::people::Right;
use svc_core::value::Timestamp;
use svc_core::value::id::{AgentId, ApprovalId, PrincipalId};

/// The members of a record's data that an event repeats.
const TOLD: [&str; 15] = [
    "agentId",
    "allowedAmount",
    "amount",
    "approvalId",
    "count",
    "currency",
    "decision",
    "mandateId",
    "outcome",
    "posted",
    "released",
    "scope",
    "settledAmount",
    "status",
    "step",
];

/// What is told of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The record's place.
    pub(crate) seq: u64,
    /// What kind of event.
    pub(crate) name: &'static str,
    /// Whether further events of the same record follow.
    pub(crate) more: bool,
    /// Whether it is one of several events of its record, which all name the same place.
    pub(crate) paired: bool,
    /// Who may hear of it.
    pub(crate) right: Right,
    /// Whose agent it is about, where it is about one.
    pub(crate) agent: Option<AgentId>,
    /// Which approval it is about that is not an agent's, or not only: who may read it follows from what it asks.
    pub(crate) approval: Option<ApprovalId>,
    /// That agent's principal and sponsor when the record was read.
    pub(crate) owners: Option<(PrincipalId, Option<PrincipalId>)>,
    /// Who may freeze that agent, whatever their role.
    pub(crate) kill_owner: Option<PrincipalId>,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// The event's `data`, JSON.
    pub(crate) data: String,
}

impl Event {
    /// What is told of a placed record: nothing, one thing, or two.
    pub(crate) fn of(entry: &Entry) -> Vec<Self> {
        let Some(place) = &entry.place else { return Vec::new() };
        let data: Map<String, Value> = serde_json::from_str(&entry.data).unwrap_or_default();
        let member = |name: &str| data.get(name).and_then(Value::as_str);
        let agent = member("agentId").or(Some(&*entry.subject)).and_then(|it| AgentId::parse(it).ok());
        let told = told(&entry.kind, member("approvalId").is_some());
        let last = told.len().saturating_sub(1);
        let event = |(n, (name, about)): (usize, &(&'static str, About))| {
            let id = match about {
                About::Approval => member("approvalId"),
                About::Agent => member("agentId"),
                About::Subject => None,
            };
            let mut out = Map::new();
            out.insert("type".to_owned(), Value::from(*name));
            out.insert("at".to_owned(), Value::from(entry.at.to_string()));
            out.insert("id".to_owned(), Value::from(id.unwrap_or(&entry.subject)));
            if *about == About::Approval && entry.subject.starts_with("act_") {
                out.insert("actionId".to_owned(), Value::from(&*entry.subject));
            }
            if let Some(kind) = data.get("type") {
                out.insert("actionType".to_owned(), kind.clone());
            }
            for name in TOLD {
                if let Some(value) = data.get(name) {
                    out.insert(name.to_owned(), value.clone());
                }
            }
            Self {
                seq: place.seq,
                name,
                more: n < last,
                paired: last > 0,
                right: right(name),
                agent,
                approval: ApprovalId::parse(&entry.subject).ok(),
                owners: None,
                kill_owner: None,
                at: entry.at,
                data: Value::Object(out).to_string(),
            }
        };
        told.iter().enumerate().map(event).collect()
    }

    /// The same, knowing whose agent it is about.
    pub(crate) fn owned(mut self, agent: Option<&Agent>) -> Self {
        self.owners = agent.map(|it| (it.principal, it.sponsor));
        self.kill_owner = agent.and_then(|it| it.kill_owner);
        self
    }

    /// Whether it tells of the freeze of an agent that this principal may freeze, whatever their role.
    pub(crate) fn is_freeze_for(&self, principal: PrincipalId) -> bool {
        self.name == "agent.frozen" && self.kill_owner == Some(principal)
    }

    /// Whether it is about an agent of this principal.
    pub(crate) fn is_of(&self, principal: PrincipalId) -> bool {
        self.owners.is_some_and(|(own, sponsor)| own == principal || sponsor == Some(principal))
    }

    /// The event as it is sent. Each event of a record names its place, so who comes back to that place may have heard one of two.
    pub(crate) fn write(&self, out: &mut String) {
        write(out, Some(self.seq), self.name, &self.data);
    }
}

/// Writes one server-sent event.
pub(crate) fn write(out: &mut String, id: Option<u64>, name: &str, data: &str) {
    if let Some(id) = id {
        out.push_str("id: ");
        out.push_str(&id.to_string());
        out.push('\n');
    }
    for piece in ["event: ", name, "\ndata: ", data, "\n\n"] {
        out.push_str(piece);
    }
}

/// What an event's `id` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Agent,
    Approval,
    Subject,
}

/// The events that a record of this kind is told as.
fn told(kind: &str, approval: bool) -> &'static [(&'static str, About)] {
    const DECIDED: &[(&str, About)] = &[("action.decided", About::Subject)];
    const BOTH: &[(&str, About)] = &[("approval.decided", About::Approval), ("action.decided", About::Subject)];
    match kind {
        "action.asked" | "action.consented" => &[("approval.waiting", About::Approval)],
        "action.denied" | "action.approved" | "action.person_denied" | "action.expired" if approval => BOTH,
        "action.allowed"
        | "action.approved"
        | "action.denied"
        | "action.expired"
        | "action.person_denied"
        | "action.revoked" => DECIDED,
        "action.settled" | "action.lapsed" | "action.released" => &[("action.settled", About::Subject)],
        "action.unapproved_run" | "incident.over_settlement" => &[("incident", About::Subject)],
        "approval.asked" | "approval.consented" => &[("approval.waiting", About::Subject)],
        "agent.frozen" | "fleet.frozen" => &[("agent.frozen", About::Subject)],
        "agent.restarted" => &[("agent.restarted", About::Subject)],
        "mandate.created" | "mandate.changed" | "mandate.revoked" => &[("agent.changed", About::Agent)],
        "hold.set" => &[("hold.set", About::Subject)],
        "hold.lifted" => &[("hold.lifted", About::Subject)],
        "budget.step" => &[("budget.step", About::Subject)],
        "delivery.failed" | "integration.failed" => &[("integration.failed", About::Subject)],
        _ if kind.starts_with("agent.") => &[("agent.changed", About::Subject)],
        _ if kind.starts_with("approval.") => &[("approval.decided", About::Subject)],
        _ => &[],
    }
}

/// Who may hear of an event: those who may read what it names.
fn right(name: &str) -> Right {
    match name.split_once('.').map_or(name, |it| it.0) {
        "approval" => Right::ReadApprovals,
        "action" | "incident" => Right::ReadActions,
        "agent" => Right::ReadAgents,
        "hold" => Right::ReadHolds,
        "budget" => Right::ReadReports,
        _ => Right::ManageIntegrations,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use svc_core::state::evidence::Place;
    use svc_core::value::Id as _;
    use svc_core::value::digest::Digest;
    use svc_core::value::id::{EvidenceId, WorkspaceId};

    use super::*;

    fn entry(kind: &str, subject: &str, data: &str) -> Entry {
        let zero = Digest::from_bytes([0; 32]);
        Entry {
            id: EvidenceId::from_bits(1),
            workspace: WorkspaceId::from_bits(2),
            at: Timestamp::from_millis(0),
            kind: kind.to_owned().into(),
            actor: "{}".to_owned().into(),
            subject: subject.into(),
            data: data.to_owned().into(),
            place: Some(Place { seq: 7, prev: zero, hash: zero }),
        }
    }

    fn sent(kind: &str, subject: &str, data: &str) -> String {
        let mut out = String::new();
        Event::of(&entry(kind, subject, data)).iter().for_each(|it| it.write(&mut out));
        out
    }

    /// A decision of a person's is two events of one record, and both name its place; nothing private is in them.
    #[test]
    fn a_record_is_told_as_the_events_that_it_is() {
        let data = r#"{"agentId":"agt_1","amount":5,"approvalId":"apv_1","currency":"EUR","decision":"allow","domain":"shop.example.com","status":"allowed","type":"payment"}"#;
        let told = sent("action.approved", "act_1", data);
        assert_eq!(
            told,
            "id: 7\nevent: approval.decided\ndata: {\"actionId\":\"act_1\",\"actionType\":\"payment\",\"agentId\":\"agt_1\",\"amount\":5,\
             \"approvalId\":\"apv_1\",\"at\":\"1970-01-01T00:00:00.000Z\",\"currency\":\"EUR\",\"decision\":\"allow\",\
             \"id\":\"apv_1\",\"status\":\"allowed\",\"type\":\"approval.decided\"}\n\n\
             id: 7\nevent: action.decided\ndata: {\"actionType\":\"payment\",\"agentId\":\"agt_1\",\"amount\":5,\"approvalId\":\"apv_1\",\
             \"at\":\"1970-01-01T00:00:00.000Z\",\"currency\":\"EUR\",\"decision\":\"allow\",\"id\":\"act_1\",\
             \"status\":\"allowed\",\"type\":\"action.decided\"}\n\n"
        );
        assert_eq!(sent("receipt.consumed", "act_1", "{}"), "");
        assert_eq!(sent("settings.changed", "wsp_1", "{}"), "");
        assert_eq!(
            sent("mandate.created", "mnd_1", r#"{"agentId":"agt_1"}"#),
            "id: 7\nevent: agent.changed\ndata: {\"agentId\":\"agt_1\",\"at\":\"1970-01-01T00:00:00.000Z\",\"id\":\"agt_1\",\"type\":\"agent.changed\"}\n\n"
        );
    }

    /// Every event is for those who may read what it names, and for nobody by default.
    #[test]
    fn every_event_has_its_audience() {
        for (kind, right) in [
            ("action.asked", Right::ReadApprovals),
            ("action.allowed", Right::ReadActions),
            ("action.released", Right::ReadActions),
            ("incident.over_settlement", Right::ReadActions),
            ("agent.renamed", Right::ReadAgents),
            ("fleet.frozen", Right::ReadAgents),
            ("hold.set", Right::ReadHolds),
            ("budget.step", Right::ReadReports),
            ("delivery.failed", Right::ManageIntegrations),
        ] {
            let events = Event::of(&entry(kind, "x", "{}"));
            assert_eq!((events.len(), events[0].right), (1, right), "{kind}");
        }
        assert!(Event::of(&Entry { place: None, ..entry("action.allowed", "x", "{}") }).is_empty());
    }
}
