//! A ledger record (CONTRACT part 2, "Ledger and evidence").
//!
//! Its JSON is canonical from the start: what is stored is the text that is hashed, less the members that its place
//! adds. **Invariant:** a placed record never changes.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::value::canonical::Object;
use crate::value::digest::Digest;
use crate::value::id::{
    AccountId, ActionId, AgentId, ApplicationId, ApprovalId, BillingImportId, BudgetId, ConnectionId, DeliveryId,
    DrillId, EvidenceId, HoldId, IntegrationId, KeyId, MandateId, McpServerId, PrincipalId, ProfileId, SessionId,
    TeamId, TokenId, UpstreamId, WorkspaceId,
};
use crate::value::json::Json;
use crate::value::link::{Index, Link, Linked, Order, shard};
use crate::value::text::{ClassId, Label, TaskId};
use crate::value::verbatim::Verbatim;
use crate::value::words::words;
use crate::value::{Id, Timestamp};

/// A ledger record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Stored")]
pub struct Entry {
    /// Its id. Ids of one commit sort in the order in which its commands wrote them.
    pub id: EvidenceId,
    /// Whose ledger it is in.
    pub workspace: WorkspaceId,
    /// When, by the clock of the node that decided.
    pub at: Timestamp,
    /// What kind of thing happened, such as `action.allowed`.
    pub kind: Cow<'static, str>,
    /// Who did it, canonical JSON.
    pub actor: Verbatim,
    /// The id of what it happened to.
    pub subject: Arc<str>,
    /// What is told of it, canonical JSON.
    pub data: Verbatim,
    /// Its place, once it has one.
    pub place: Option<Place>,
}

/// Where a record stands in its workspace's chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// From 0, without gaps.
    #[serde(rename = "n")]
    pub seq: u64,
    /// The hash of the record before; of the first, 32 zero bytes.
    #[serde(rename = "v")]
    pub prev: Digest,
    /// SHA-256 over the record's canonical JSON without `hash`. It follows from all the rest, so storage does without: a record
    /// that was changed there is not the one that its successor and the tree name.
    #[serde(skip)]
    pub hash: Digest,
}

/// What a place takes in a record's body, with a `seq` of seven digits: every record gets one within a second.
const PLACE_BYTES: usize = r#","p":{"n":,"v":""}"#.len() + 7 + Digest::STORED;

/// A record as storage has it: without the instant that its id tells, and an agent that acted as its id alone.
#[derive(Serialize)]
struct Image<'a> {
    id: EvidenceId,
    #[serde(rename = "w")]
    workspace: WorkspaceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Timestamp>,
    kind: &'a str,
    actor: Who<'a>,
    #[serde(rename = "s")]
    subject: &'a str,
    data: &'a Verbatim,
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    place: Option<&'a Place>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Who<'a> {
    Agent(&'a str),
    Other(&'a Verbatim),
}

/// What stands around an agent's id in a record's actor.
const AGENT: (&str, &str) = (r#"{"id":""#, r#"","kind":"agent"}"#);

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { id, workspace, at, kind, actor, subject, data, place } = self;
        let actor = self.agent().map_or(Who::Other(actor), Who::Agent);
        let at = (*at != id.time()).then_some(*at);
        Image { id: *id, workspace: *workspace, at, kind, actor, subject, data, place: place.as_ref() }.serialize(to)
    }
}

/// The same as it is read.
#[derive(Deserialize)]
struct Stored {
    id: EvidenceId,
    #[serde(rename = "w")]
    workspace: WorkspaceId,
    at: Option<Timestamp>,
    kind: String,
    actor: Verbatim,
    #[serde(rename = "s")]
    subject: Arc<str>,
    data: Verbatim,
    #[serde(default, rename = "p")]
    place: Option<StoredPlace>,
}

#[derive(Deserialize)]
struct StoredPlace {
    #[serde(rename = "n")]
    seq: u64,
    #[serde(rename = "v")]
    prev: Digest,
}

impl From<Stored> for Entry {
    fn from(stored: Stored) -> Self {
        let Stored { id, workspace, at, kind, actor, subject, data, place } = stored;
        let at = at.unwrap_or_else(|| id.time());
        let agent = actor.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let actor = agent.map(|it| [AGENT.0, it, AGENT.1].concat().into()).unwrap_or(actor);
        let entry = Self { id, workspace, at, kind: kind.into(), actor, subject, data, place: None };
        match place {
            Some(StoredPlace { seq, prev }) => entry.placed(seq, prev),
            None => entry,
        }
    }
}

impl Linked for Entry {
    fn links(&self) -> Vec<Link> {
        vec![match &self.place {
            None => Link { index: Index::Unplaced, prefix: shard(self.workspace), order: Order::Stamp },
            Some(place) => {
                Link { index: Index::LedgerOf, prefix: self.workspace.bits(), order: Order::At(place.seq.into()) }
            }
        }]
    }

    fn room(&self) -> usize {
        if self.place.is_none() { PLACE_BYTES } else { 0 }
    }

    fn json(&self) -> Option<String> {
        let Self { id, workspace, at, kind, actor, subject, data, place } = self;
        let mut out = String::with_capacity(ENVELOPE_BYTES + kind.len() + actor.len() + subject.len() + data.len());
        // Kinds and subjects that would need an escape are left to whoever writes any text.
        let is_plain =
            |text: &str| text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'_' | b'-'));
        if !is_plain(kind) || !is_plain(subject) {
            return None;
        }
        write!(out, r#"{{"id":"{id}","w":"{workspace}""#).ok()?;
        if *at != id.time() {
            write!(out, r#","at":{}"#, at.as_millis()).ok()?;
        }
        write!(out, r#","kind":"{kind}","actor":"#).ok()?;
        match self.agent() {
            Some(agent) => write!(out, r#""{agent}""#).ok()?,
            None => out.push_str(actor),
        }
        write!(out, r#","s":"{subject}","data":{data}"#).ok()?;
        if let Some(Place { seq, prev, .. }) = place {
            write!(out, r#","p":{{"n":{seq},"v":""#).ok()?;
            prev.push_stored(&mut out);
            out.push_str("\"}");
        }
        out.push('}');
        Some(out)
    }
}

/// What a record's body has beside its texts.
const ENVELOPE_BYTES: usize = 224;

impl Entry {
    /// The id of the agent that acted, where one did.
    fn agent(&self) -> Option<&str> {
        let agent = self.actor.strip_prefix(AGENT.0).and_then(|rest| rest.strip_suffix(AGENT.1));
        agent.filter(|it| it.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    /// The record with its place behind `head`, the hash of the record before it.
    #[must_use]
    pub fn placed(mut self, seq: u64, prev: Digest) -> Self {
        let hash = Digest::of(self.hashed_text(seq, &prev));
        self.place = Some(Place { seq, prev, hash });
        self
    }

    /// The RFC 8785 text that the hash is over.
    #[must_use]
    pub fn hashed_text(&self, seq: u64, prev: &Digest) -> String {
        Object::with_room(HASHED_BYTES + self.actor.len() + self.data.len())
            .raw("actor", &self.actor)
            .plain("at", self.at)
            .raw("data", &self.data)
            .plain("id", self.id)
            .text("kind", &self.kind)
            .plain("prevHash", prev)
            .int("seq", i64::try_from(seq).unwrap_or(i64::MAX))
            .text("subject", &self.subject)
            .finish()
    }
}

/// What the hashed text has beside its actor and its data.
const HASHED_BYTES: usize = 320;

/// Who did something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// An agent, by its key.
    Agent(AgentId),
    /// A gateway key that is no agent's.
    Key(KeyId),
    /// A signed-in person.
    Person(PrincipalId),
    /// A rule of the gate.
    Policy,
    /// Time.
    Timer,
    /// A party without a credential: whoever presents a receipt.
    Stranger,
    /// A service token.
    Token {
        /// Its id.
        id: TokenId,
        /// Its name: the ledger has it as `token:<name>`.
        name: Label,
    },
    /// A drill.
    Drill(DrillId),
    /// Something outside that this workspace is connected with.
    Integration(IntegrationId),
}

words! {
    /// The word for what it is.
    Actor::kind;
    Person "person";
    Agent "agent";
    Token "token";
    Key "key";
    Policy "policy";
    Drill "drill";
    Timer "timer";
    Stranger | Integration "integration";
}

impl Actor {
    /// The actor as canonical JSON.
    #[must_use]
    pub fn canonical(&self) -> String {
        let id: Option<&dyn fmt::Display> = match self {
            Self::Agent(id) => return format!("{}{id}{}", AGENT.0, AGENT.1),
            Self::Key(id) => Some(id),
            Self::Person(id) => Some(id),
            Self::Policy | Self::Timer | Self::Stranger => None,
            Self::Token { id, .. } => Some(id),
            Self::Drill(id) => Some(id),
            Self::Integration(id) => Some(id),
        };
        let mut object = Object::new().text("kind", self.kind());
        if let Some(id) = id {
            object = object.plain("id", id);
        }
        if let Self::Token { name, .. } = self {
            object = object.text("name", &format!("token:{name}"));
        }
        object.finish()
    }
}

macro_rules! subjects {
    ($($(#[$doc:meta])* $name:ident($id:ty);)*) => {
        /// What a record is about.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Subject { $($(#[$doc])* $name($id),)* }

        impl fmt::Display for Subject {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$name(id) => id.fmt(out),)* }
            }
        }
    };
}

subjects! {
    /// An account.
    Account(AccountId);
    /// An action.
    Action(ActionId);
    /// An agent.
    Agent(AgentId);
    /// An application.
    Application(ApplicationId);
    /// What a person is asked.
    Approval(ApprovalId);
    /// What a provider billed, beside what was metered.
    BillingImport(BillingImportId);
    /// A budget.
    Budget(BudgetId);
    /// A connection.
    Connection(ConnectionId);
    /// A delivery.
    Delivery(DeliveryId);
    /// A drill.
    Drill(DrillId);
    /// A hold.
    Hold(HoldId);
    /// An integration.
    Integration(IntegrationId);
    /// A key.
    Key(KeyId);
    /// A mandate.
    Mandate(MandateId);
    /// An MCP server.
    McpServer(McpServerId);
    /// A model, as `provider/model`.
    Model(Box<str>);
    /// A principal.
    Principal(PrincipalId);
    /// A policy profile.
    Profile(ProfileId);
    /// A session.
    Session(SessionId);
    /// A task.
    Task(TaskId);
    /// A class of tasks.
    TaskClass(ClassId);
    /// A team.
    Team(TeamId);
    /// A service token.
    Token(TokenId);
    /// A provider of models.
    Upstream(UpstreamId);
    /// The workspace itself.
    Workspace(WorkspaceId);
}

/// What a rule tells the ledger; the turn adds id, instant and workspace.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The kind, one of CONTRACT part 6.
    pub kind: &'static str,
    /// Who.
    pub actor: Actor,
    /// What about.
    pub subject: Subject,
    /// The record's `data`, canonical JSON.
    pub data: String,
}

impl Fact {
    /// Whether all that it tells has the names and times of the interface, none of a row: what is hashed stays as it is for
    /// ever, and strangers read it.
    #[must_use]
    pub fn is_of_interface(&self) -> bool {
        Json::parse(self.data.as_bytes()).is_ok_and(|it| is_of_interface("", &it))
    }
}

/// Members that hold names which somebody else gave, such as those of classes, headers and tools.
const GIVEN: [&str; 5] = ["headers", "inferenceGeos", "quality", "serviceTiers", "tools"];

fn is_of_interface(name: &str, value: &Json) -> bool {
    match value {
        // The names within are no members of the interface.
        Json::Object(members) if GIVEN.contains(&name) => members.iter().all(|(_, value)| is_of_interface("", value)),
        Json::Object(members) => members
            .iter()
            .all(|(inner, value)| (!inner.contains('_') || inner.contains('/')) && is_of_interface(inner, value)),
        Json::List(items) => items.iter().all(|it| is_of_interface(name, it)),
        Json::Text(text) => !name.ends_with("At") || Timestamp::parse(text).is_ok(),
        Json::Number(_) => !name.ends_with("At"),
        Json::Null | Json::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::value::id::ulid_bits;

    fn entry(actor: &Actor) -> Entry {
        let at = Timestamp::from_millis(1_790_847_000_000);
        Entry {
            id: EvidenceId::from_bits(ulid_bits(at, 7)),
            workspace: WorkspaceId::from_bits(1),
            at,
            kind: "action.allowed".into(),
            actor: actor.canonical().into(),
            subject: Subject::Action(ActionId::from_bits(5)).to_string().into(),
            data: r#"{"amount":4900}"#.into(),
            place: None,
        }
    }

    /// The hash is over this very text, whatever storage leaves out.
    #[test]
    fn the_hashed_text_is_canonical_and_whole() {
        let placed = entry(&Actor::Agent(AgentId::from_bits(3))).placed(41, Digest::from_bytes([0xab; 32]));
        let text = placed.hashed_text(41, &Digest::from_bytes([0xab; 32]));
        assert_eq!(
            text,
            concat!(
                r#"{"actor":{"id":"agt_00000000000000000000000003","kind":"agent"},"at":"2026-10-01T09:30:00.000Z","#,
                r#""data":{"amount":4900},"id":"evd_01M3VCS7E00000000000000007","kind":"action.allowed","#,
                r#""prevHash":"abababababababababababababababababababababababababababababababab","seq":41,"#,
                r#""subject":"act_00000000000000000000000005"}"#
            )
        );
        assert_eq!(placed.place.unwrap().hash, Digest::of(text));
    }

    /// An agent is stored as its id and an instant that the id tells not at all; what is read is what was written.
    #[test]
    fn storage_gives_back_what_it_was_given() {
        let others = [
            Actor::Person(PrincipalId::from_bits(4)),
            Actor::Policy,
            Actor::Token { id: TokenId::from_bits(5), name: Label::parse("an \"agent\"").unwrap() },
        ];
        for actor in others.iter().chain([&Actor::Agent(AgentId::from_bits(3))]) {
            for late in [0, 1] {
                let mut entry = entry(actor);
                entry.at = Timestamp::from_millis(entry.at.as_millis() + late);
                for entry in [entry.clone(), entry.placed(7, Digest::of("before"))] {
                    let body = serde_json::to_string(&entry).unwrap();
                    assert_eq!(entry.json().unwrap(), body, "by hand as by rule");
                    assert_eq!(serde_json::from_str::<Entry>(&body).unwrap(), entry, "{body}");
                    assert_eq!(body.contains(r#""at":"#), late == 1, "{body}");
                    let is_agent = matches!(actor, Actor::Agent(_));
                    assert_eq!(body.contains(r#""actor":"agt_00000000000000000000000003","#), is_agent, "{body}");
                }
            }
        }
    }

    /// Names and times of rows are found wherever they stand; names that somebody gave are theirs.
    #[test]
    fn what_only_a_row_says_is_found() {
        for (data, sound) in [
            (r#"{"expiresAt":"2026-10-01T09:30:00.000Z","prices":{"tools":{"lookAt":5,"read_file":1}}}"#, true),
            (r#"{"headers":{"x_at":"y"},"svc/kind":{"cost/in_micros":1}}"#, true),
            (r#"{"expiresAt":1790847000000}"#, false),
            (r#"{"expiresAt":"10000-01-01T00:00:00.000Z"}"#, false),
            (r#"{"list":[{"cost_micros":1}]}"#, false),
            (r#"{"tools":{"lookAt":{"cost_micros":1}}}"#, false),
            ("{", false),
        ] {
            let subject = Subject::Action(ActionId::from_bits(5));
            let fact = Fact { kind: "action.allowed", actor: Actor::Policy, subject, data: data.into() };
            assert_eq!(fact.is_of_interface(), sound, "{data}");
        }
    }
}
