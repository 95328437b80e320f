//! What an agent asks, as normalised: texts are values, and everything that has to be hashed is hashed already, off the
//! lane that decides.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::action::{DataShare, Payment, Tool};
use super::kind::ActionKind;
use super::provenance::Declared;
use crate::value::canonical::Object;
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::AgentId;
use crate::value::text::{IdempotencyKey, Label, SessionId, Summary};
use crate::value::{Amount, Invalid};

/// An action request (SPEC part 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The type.
    pub kind: ActionKind,
    /// What the agent is about to do.
    pub summary: Summary,
    /// The money it moves.
    pub payment: Option<Payment>,
    /// The data it shares, and the same as sent, canonical.
    pub data: Option<(DataShare, Box<str>)>,
    /// The tool it calls.
    pub tool: Option<ToolRequest>,
    /// Its details.
    pub details: Option<Details>,
    /// Where it came from, as the agent says.
    pub provenance: Vec<Declared>,
    /// Whose account that is.
    pub account: Account,
    /// The client's session.
    pub session: Option<SessionId>,
    /// The idempotency key.
    pub key: Option<IdempotencyKey>,
    /// The digest of the request as sent, without the key.
    pub body: Digest,
}

/// Whose account of where an action came from is compared with what was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Account {
    /// The agent's own.
    #[default]
    Agent,
    /// The gate's: it has seen all that it can say, as where it asks for an agent whose protocol has no place for an account. What
    /// was seen counts as declared, and nothing seen as `agent`.
    Gate,
}

/// A tool call as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRequest {
    /// What is kept with the action.
    pub tool: Tool,
    /// The input, canonical.
    pub input: Option<Box<str>>,
    /// SHA-256 of the whole `tool` member as sent, canonical.
    pub digest: Digest,
}

/// Details as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// The object, canonical.
    pub canonical: Box<str>,
    /// Its top-level names.
    pub names: Vec<Box<str>>,
}

impl Request {
    /// A request of this type with nothing beside its summary.
    #[must_use]
    pub fn new(kind: ActionKind, summary: Summary) -> Self {
        let request = Self {
            kind,
            summary,
            payment: None,
            data: None,
            tool: None,
            details: None,
            provenance: Vec::new(),
            account: Account::Agent,
            session: None,
            key: None,
            body: Digest::of([]),
        };
        request.fingerprinted()
    }

    /// A payment.
    ///
    /// # Errors
    /// [`Invalid`] where the summary is empty or too long.
    pub fn payment(
        summary: &str,
        amount: Amount,
        currency: Currency,
        merchant: (Label, Domain),
    ) -> Result<Self, Invalid> {
        let (name, domain) = merchant;
        let payment = Payment { amount: amount.minor(), currency, name, domain };
        let request = Self { payment: Some(payment), ..Self::new(ActionKind::PAYMENT, Summary::parse(summary)?) };
        Ok(request.fingerprinted())
    }

    /// The same with an idempotency key.
    #[must_use]
    pub fn keyed(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    /// The same in a session.
    #[must_use]
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.session = Some(session);
        self.fingerprinted()
    }

    /// The same with this account of where it came from.
    #[must_use]
    pub fn from_sources(mut self, provenance: Vec<Declared>) -> Self {
        self.provenance = provenance;
        self.fingerprinted()
    }

    /// The same calling this tool.
    #[must_use]
    pub fn calling(mut self, tool: Tool) -> Self {
        let digest = Digest::of(tool_object(&tool).finish());
        self.tool = Some(ToolRequest { tool, input: None, digest });
        self.fingerprinted()
    }

    /// The request with its fingerprint made anew from its own members: for requests that no body came with.
    #[must_use]
    fn fingerprinted(mut self) -> Self {
        let salted = self.digest_in(None);
        let declared = self.provenance.iter().map(|it| {
            let detail = it.detail.as_ref().map_or("", |detail| detail.as_str());
            format!("{}\u{1f}{detail}", it.source.as_str())
        });
        let declared = declared.collect::<Vec<_>>().join("\u{1e}");
        let session = self.session.as_ref().map_or("", |it| it.as_str());
        self.body = Digest::of(format!("{salted}\u{1d}{declared}\u{1d}{session}"));
        self
    }

    /// The action digest (CONTRACT part 2): what approval, receipt and settlement bind to.
    #[must_use]
    pub fn digest(&self, agent: AgentId, salt_text: &str) -> Digest {
        self.digest_in(Some((agent, salt_text)))
    }

    fn digest_in(&self, salted: Option<(AgentId, &str)>) -> Digest {
        let mut object = Object::new();
        if let Some((agent, _)) = salted {
            object = object.plain("agentId", agent);
        }
        if let Some((_, canonical)) = &self.data {
            object = object.raw("data", canonical);
        }
        if let Some(details) = &self.details {
            let digest = Digest::of(details.canonical.as_bytes());
            object = object.plain("detailsDigest", format_args!("sha256:{digest}"));
        }
        if let Some(payment) = &self.payment {
            object = object.raw("payment", &payment.canonical());
        }
        if let Some((_, salt)) = salted {
            object = object.text("salt", salt);
        }
        object = object.text("summary", self.summary.as_str());
        if let Some(tool) = &self.tool {
            object = object.plain("toolDigest", format_args!("sha256:{}", tool.digest));
        }
        Digest::of(object.text("type", self.kind.as_str()).finish())
    }

    /// The members of the action's ledger record that hold what a person may later want erased: each as a salted
    /// commitment, `{"commit":hex}`, the salts derived from the action's own.
    #[must_use]
    pub fn commitments(&self, salt: &[u8; 16]) -> Vec<(&'static str, String)> {
        let mut out = vec![("summary", commitment(salt, "summary", self.summary.as_str()))];
        if let Some((data, _)) = &self.data {
            out.push(("recipient", commitment(salt, "recipient", &data.recipient)));
        }
        if let Some(input) = self.tool.as_ref().and_then(|it| it.input.as_deref()) {
            out.push(("toolInput", commitment(salt, "toolInput", input)));
        }
        if let Some(details) = &self.details {
            out.push(("details", commitment(salt, "details", &details.canonical)));
        }
        let details = self.provenance.iter().filter_map(|it| it.detail.as_ref());
        let details: Vec<&str> = details.map(|it| it.as_str()).collect();
        if !details.is_empty() {
            out.push(("provenanceDetail", commitment(salt, "provenanceDetail", &details.join("\n"))));
        }
        out
    }
}

/// The salt of one committed member: derived, so that letting go of the action's salt lets go of them all.
#[must_use]
pub fn commitment_salt(salt: &[u8; 16], member: &str) -> [u8; 16] {
    let hash = Sha256::new().chain_update(b"svc commitment").chain_update(salt).chain_update(member).finalize();
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().zip(hash.iter()) {
        *to = *from;
    }
    out
}

/// SHA-256(salt ‖ UTF-8), as a canonical object.
#[must_use]
pub fn commitment(salt: &[u8; 16], member: &str, text: &str) -> String {
    let hash = Sha256::new().chain_update(commitment_salt(salt, member)).chain_update(text).finalize();
    let mut out = String::with_capacity(77);
    // Writing into a string cannot fail.
    let _ = write!(out, "{{\"commit\":\"{}\"}}", Digest::from_bytes(hash.into()));
    out
}

impl Payment {
    /// The payment as normalised, canonical.
    #[must_use]
    pub fn canonical(&self) -> String {
        let merchant = Object::new().text("domain", self.domain.as_str()).text("name", self.name.as_str()).finish();
        Object::new()
            .int("amount", self.amount)
            .text("currency", self.currency.as_str())
            .raw("merchant", &merchant)
            .finish()
    }
}

fn tool_object(tool: &Tool) -> Object<'static> {
    let mut object = Object::new();
    if let Some(name) = &tool.name {
        object = object.text("name", name.as_str());
    }
    if let Some(server) = &tool.server {
        object = object.text("server", server.as_str());
    }
    if let Some(digest) = &tool.input_digest {
        object = object.plain("inputDigest", format_args!("sha256:{digest}"));
    }
    if let Some(bytes) = tool.input_bytes {
        object = object.int("inputBytes", bytes);
    }
    object
}
