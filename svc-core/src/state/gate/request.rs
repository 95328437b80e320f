//! What an agent asks, as normalised: texts are values, and everything that has to be hashed is hashed already, off the
//! lane that decides.
//!
//! **Invariant:** what a request says is fixed where it is hashed: nothing outside this crate changes a member of one.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::action::{Action, DataShare, DecidedBy, Payment, State, Tool};
use super::agent::Agent;
use super::kind::ActionKind;
use super::provenance::{Declared, Origin};
use crate::refusal::FieldError;
use crate::value::canonical::{self, Object, canonical, canonical_without};
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, AgentId, EvidenceId};
use crate::value::json::{DEPTH_MAX, Json, repeated};
use crate::value::text::{Email, IdempotencyKey, Label, SessionId, Summary};
use crate::value::{Amount, Id as _, Invalid, SAFE_MAX, Timestamp};

/// Entries of `provenance`.
pub const PROVENANCE_MAX: usize = 50;
/// Entries of `data.fields`.
pub const DATA_FIELDS_MAX: usize = 100;
/// Bytes of `details`, as RFC 8785 writes them.
const DETAILS_BYTES_MAX: usize = 16 * 1024;
/// Bytes of `tool.input`, as RFC 8785 writes them.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// An action request (SPEC part 2).
///
/// It is made from [`new`](Self::new) or one of the payments, with what else it has added to it. Whether it has what its type
/// cannot be without is known once it is whole: the gate refuses one that has not, as it refuses such a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) kind: ActionKind,
    pub(crate) summary: Summary,
    pub(crate) payment: Option<Payment>,
    pub(crate) data: Option<Shared>,
    pub(crate) tool: Option<ToolRequest>,
    pub(crate) details: Option<Details>,
    pub(crate) provenance: Vec<Declared>,
    pub(crate) account: Account,
    pub(crate) session: Option<SessionId>,
    pub(crate) key: Option<IdempotencyKey>,
    /// The digest of the body as sent, without the key; none came with a request that a program made.
    body: Option<Digest>,
}

/// Whose account of where an action came from is compared with what was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// The agent's own.
    #[default]
    Agent,
    /// The gate's: it has seen all that it can say, as where it asks for an agent whose protocol has no place for an account. What
    /// was seen counts as declared, and nothing seen as `agent`.
    Gate,
}

impl Account {
    /// Whether it is the agent's own: a row leaves that out.
    pub(crate) const fn is_agents(&self) -> bool {
        matches!(self, Self::Agent)
    }
}

/// Data that is shared, and the `data` member as sent, canonical, where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) share: DataShare,
    sent: Option<Box<str>>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolRequest {
    /// What is kept with the action.
    pub(crate) tool: Tool,
    pub(crate) input: Option<ToolInput>,
    /// SHA-256 of the whole `tool` member as sent, canonical, where it was.
    sent: Option<Digest>,
}

/// The input of a tool call, canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolInput(pub(crate) Box<str>);

/// Details of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// The object, canonical.
    pub(crate) canonical: Box<str>,
    /// Its top-level names.
    pub(crate) names: Vec<Box<str>>,
}

impl ToolInput {
    /// Reads the input of a tool call.
    ///
    /// # Errors
    /// [`Invalid`] where it is no object, is over 64 KiB, or holds an integer beyond ±(2^53 − 1); where it was made by hand, also where
    /// [`Json::parse`] would not read it: a name twice in one object, or more than [`DEPTH_MAX`] levels.
    pub fn of(json: &Json) -> Result<Self, Invalid> {
        object_of(json, INPUT_BYTES_MAX).map(Self)
    }
}

impl Details {
    /// Reads details.
    ///
    /// # Errors
    /// As [`ToolInput::of`], where they are over 16 KiB.
    pub fn of(json: &Json) -> Result<Self, Invalid> {
        let canonical = object_of(json, DETAILS_BYTES_MAX)?;
        let members = json.as_object().unwrap_or_default();
        Ok(Self { canonical, names: members.iter().map(|(name, _)| name.as_str().into()).collect() })
    }
}

impl DataShare {
    /// Reads with whom data is shared: a domain or an e-mail address.
    ///
    /// # Errors
    /// [`Invalid`] for what is neither.
    pub fn recipient_of(text: &str) -> Result<Box<str>, Invalid> {
        let is_one = if text.contains('@') {
            Email::parse(text).map(drop)?;
            true
        } else {
            Domain::parse(text).is_ok()
        };
        let clause = "must be a domain such as `shop.example.com`, or an e-mail address";
        if is_one { Ok(text.trim().into()) } else { Err(Invalid::new(clause)) }
    }

    fn canonical(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(|it| canonical::text(it.as_str())).collect();
        let mut object = Object::new().raw("fields", &format!("[{}]", fields.join(",")));
        if let Some(purpose) = &self.purpose {
            object = object.text("purpose", purpose.as_str());
        }
        object.text("recipient", &self.recipient).finish()
    }

    fn faults(&self, faults: &mut Vec<FieldError>) {
        if let Err(why) = Self::recipient_of(&self.recipient) {
            faults.push(FieldError::invalid("data.recipient", why));
        }
        if !(1..=DATA_FIELDS_MAX).contains(&self.fields.len()) {
            faults.push(FieldError::new("data.fields", format!("must have 1 to {DATA_FIELDS_MAX} entries")));
        }
    }
}

impl Request {
    /// A request of this type with nothing beside its summary.
    #[must_use]
    pub const fn new(kind: ActionKind, summary: Summary) -> Self {
        Self {
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
            body: None,
        }
    }

    /// What an action asked, with these details, as far as rules speak of it: its digests are not those of what was sent.
    pub(crate) fn again(action: &Action, details: Option<Details>) -> Self {
        Self {
            payment: action.payment.clone(),
            data: action.data.clone().map(|share| Shared { share, sent: None }),
            tool: action.tool.clone().map(|tool| ToolRequest { tool, input: None, sent: None }),
            details,
            provenance: action.provenance.declared.clone(),
            account: action.provenance.account,
            session: action.session.clone(),
            ..Self::new(action.kind.clone(), action.summary.clone())
        }
    }

    /// A payment to a merchant of this name and domain.
    ///
    /// # Errors
    /// [`Invalid`] where the summary is empty or too long.
    pub fn payment(
        summary: &str,
        amount: Amount,
        currency: Currency,
        merchant: (Label, Domain),
    ) -> Result<Self, Invalid> {
        Ok(Self::new(ActionKind::PAYMENT, Summary::parse(summary)?).paying(amount, currency, merchant))
    }

    /// A refund at a merchant of this name and domain.
    ///
    /// # Errors
    /// As [`payment`](Self::payment).
    pub fn refund(
        summary: &str,
        amount: Amount,
        currency: Currency,
        merchant: (Label, Domain),
    ) -> Result<Self, Invalid> {
        Ok(Self::new(ActionKind::REFUND, Summary::parse(summary)?).paying(amount, currency, merchant))
    }

    /// A transfer to a receiver of this name and domain.
    ///
    /// # Errors
    /// As [`payment`](Self::payment).
    pub fn transfer(
        summary: &str,
        amount: Amount,
        currency: Currency,
        receiver: (Label, Domain),
    ) -> Result<Self, Invalid> {
        Ok(Self::new(ActionKind::TRANSFER, Summary::parse(summary)?).paying(amount, currency, receiver))
    }

    /// The same moving this money: whatever its type, it is a payment to every rule.
    #[must_use]
    pub fn paying(self, amount: Amount, currency: Currency, (name, domain): (Label, Domain)) -> Self {
        self.saying(|it| it.payment = Some(Payment { amount: amount.minor(), currency, name, domain }))
    }

    /// The same sharing this data.
    #[must_use]
    pub fn sharing(self, mut share: DataShare) -> Self {
        if share.recipient.trim().len() < share.recipient.len() {
            share.recipient = share.recipient.trim().into();
        }
        self.saying(|it| it.data = Some(Shared { share, sent: None }))
    }

    /// The same calling this tool.
    #[must_use]
    pub fn calling(self, tool: Tool) -> Self {
        self.saying(|it| {
            let input = it.tool.take().and_then(|it| it.input);
            it.tool = Some(ToolRequest { tool, input, sent: None });
        })
    }

    /// The same calling its tool with this input.
    #[must_use]
    pub fn with_input(self, input: ToolInput) -> Self {
        self.saying(|it| {
            let tool = it.tool.take().map(|it| it.tool).unwrap_or_default();
            it.tool = Some(ToolRequest { tool, input: Some(input), sent: None });
        })
    }

    /// The same with these details.
    #[must_use]
    pub fn with_details(self, details: Details) -> Self {
        self.saying(|it| it.details = Some(details))
    }

    /// The same with an idempotency key.
    #[must_use]
    pub fn keyed(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    /// The same in a session.
    #[must_use]
    pub fn in_session(self, session: SessionId) -> Self {
        self.saying(|it| it.session = Some(session))
    }

    /// The same with this account of where it came from.
    #[must_use]
    pub fn from_sources(self, provenance: Vec<Declared>) -> Self {
        self.saying(|it| it.provenance = provenance)
    }

    /// The same with this one's account of where it came from.
    #[must_use]
    pub const fn by_account_of(mut self, account: Account) -> Self {
        self.account = account;
        self
    }

    /// The same as it came in this body: its digests are then over what was sent, with the members that nobody reads.
    #[must_use]
    pub fn as_sent(mut self, body: &Json) -> Self {
        if let (Some(data), Some(sent)) = (&mut self.data, body.get("data")) {
            data.sent = Some(canonical(sent).into());
        }
        if let (Some(tool), Some(sent)) = (&mut self.tool, body.get("tool")) {
            tool.sent = Some(Digest::of(canonical(sent)));
        }
        self.body = Some(Digest::of(canonical_without(body, "idempotencyKey")));
        self
    }

    /// The same with something changed: what it was sent as is no longer what it says.
    fn saying(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self.body = None;
        self
    }

    /// The money it moves.
    #[must_use]
    pub const fn pays(&self) -> Option<&Payment> {
        self.payment.as_ref()
    }

    /// Its idempotency key.
    #[must_use]
    pub const fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// What makes it no request (CONTRACT part 2, "Action request"), by the paths of the body that it would be.
    #[must_use]
    pub fn faults(&self) -> Vec<FieldError> {
        let mut faults = Vec::new();
        match &self.payment {
            Some(payment) => {
                if let Err(why) = Amount::new(payment.amount) {
                    faults.push(FieldError::invalid("payment.amount", why));
                }
            }
            None if self.kind.needs_payment() => faults.push(FieldError::missing("payment")),
            None => {}
        }
        match &self.data {
            Some(data) => data.share.faults(&mut faults),
            None if self.kind.needs_data() => faults.push(FieldError::missing("data")),
            None => {}
        }
        let tool = self.tool.as_ref().map(|it| &it.tool);
        if self.kind.needs_tool_name() && tool.is_none_or(|it| it.name.is_none()) {
            faults.push(FieldError::missing("tool.name"));
        }
        if tool.and_then(|it| it.input_bytes).is_some_and(|it| !(0..=SAFE_MAX).contains(&it)) {
            faults.push(FieldError::new("tool.inputBytes", "must be a whole number, 0 or more"));
        }
        if self.provenance.len() > PROVENANCE_MAX {
            faults.push(FieldError::new("provenance", format!("must have at most {PROVENANCE_MAX} entries")));
        }
        faults
    }

    /// The digest by which requests with one idempotency key are compared: of the body as sent or, where none came, of
    /// everything that the request says.
    #[must_use]
    pub fn fingerprint(&self) -> Digest {
        if let Some(body) = self.body {
            return body;
        }
        let unsalted = self.digest_in(None);
        let declared = self.provenance.iter().map(|it| {
            let detail = it.detail.as_ref().map_or("", |detail| detail.as_str());
            format!("{}\u{1f}{detail}", it.source.as_str())
        });
        let declared = declared.collect::<Vec<_>>().join("\u{1e}");
        let session = self.session.as_ref().map_or("", |it| it.as_str());
        Digest::of(format!("{unsalted}\u{1d}{declared}\u{1d}{session}"))
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
        if let Some(Shared { share, sent }) = &self.data {
            object = match sent {
                Some(sent) => object.raw("data", sent),
                None => object.raw("data", &share.canonical()),
            };
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
            object = object.plain("toolDigest", format_args!("sha256:{}", tool.digest()));
        }
        Digest::of(object.text("type", self.kind.as_str()).finish())
    }

    /// The members of the action's ledger record that hold what a person may later want erased: each as a salted
    /// commitment, `{"commit":hex}`, the salts derived from the action's own.
    #[must_use]
    pub fn commitments(&self, salt: &[u8; 16]) -> Vec<(&'static str, String)> {
        let mut out = vec![("summary", commitment(salt, "summary", self.summary.as_str()))];
        if let Some(data) = &self.data {
            out.push(("recipient", commitment(salt, "recipient", &data.share.recipient)));
        }
        if let Some(input) = self.tool.as_ref().and_then(|it| it.input.as_ref()) {
            out.push(("toolInput", commitment(salt, "toolInput", &input.0)));
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

    /// The action that `agent` asks for by this: charged to nothing, of no record, and denied until a rule says otherwise.
    pub(crate) fn action(&self, id: ActionId, agent: &Agent, salt: [u8; 16], digest: Digest, at: Timestamp) -> Action {
        Action {
            id,
            agent: agent.id,
            workspace: agent.workspace,
            principal: agent.principal,
            kind: self.kind.clone(),
            summary: self.summary.clone(),
            payment: self.payment.clone(),
            data: self.data.as_ref().map(|it| it.share.clone()),
            tool: self.tool.as_ref().map(|it| it.tool.clone()),
            payload: self.details.is_some() || self.tool.as_ref().is_some_and(|it| it.input.is_some()),
            session: self.session.clone(),
            provenance: Origin::default(),
            salt,
            digest,
            epoch: agent.epoch,
            mandate: None,
            reservation: None,
            payee: None,
            reasons: Vec::new(),
            signals: Vec::new(),
            hold: None,
            state: State::Denied { at, by: DecidedBy::Policy },
            approval: None,
            replay: None,
            callback: None,
            evidence: EvidenceId::from_bits(0),
            incident: None,
            erased: false,
        }
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

impl ToolRequest {
    fn digest(&self) -> Digest {
        self.sent.unwrap_or_else(|| Digest::of(self.canonical()))
    }

    /// The call as the interface would write it.
    fn canonical(&self) -> String {
        let Self { tool, input, .. } = self;
        let mut object = Object::new();
        if let Some(name) = &tool.name {
            object = object.text("name", name.as_str());
        }
        if let Some(server) = &tool.server {
            object = object.text("server", server.as_str());
        }
        if let Some(input) = input {
            object = object.raw("input", &input.0);
        }
        if let Some(digest) = &tool.input_digest {
            object = object.plain("inputDigest", format_args!("sha256:{digest}"));
        }
        if let Some(bytes) = tool.input_bytes {
            object = object.int("inputBytes", bytes);
        }
        object.finish()
    }
}

/// An object of at most `max` bytes, canonical.
fn object_of(json: &Json, max: usize) -> Result<Box<str>, Invalid> {
    if json.as_object().is_none() {
        return Err(Invalid::new("must be an object"));
    }
    is_read(json, DEPTH_MAX)?;
    if json.has_out_of_range() {
        return Err(Invalid::new("must have no integer beyond 2^53 - 1 either way, and no number beyond all doubles"));
    }
    let text = canonical(json);
    if text.len() > max { Err(Invalid::new(format!("must be at most {max} bytes"))) } else { Ok(text.into()) }
}

/// What is stored is read again, so nothing is stored that the reader of JSON would not take.
fn is_read(json: &Json, levels: usize) -> Result<(), Invalid> {
    let inner = || levels.checked_sub(1).ok_or_else(|| Invalid::new(format!("must have at most {DEPTH_MAX} levels")));
    match json {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) => Ok(()),
        Json::List(items) => {
            let inner = inner()?;
            items.iter().try_for_each(|it| is_read(it, inner))
        }
        Json::Object(members) => {
            let inner = inner()?;
            if repeated(members).is_some() {
                return Err(Invalid::new("must have no name twice in one object"));
            }
            members.iter().try_for_each(|(_, it)| is_read(it, inner))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Whoever wrote neither form is told of both; who meant an address is told what is wrong with it.
    #[test]
    fn a_recipient_is_a_domain_or_an_address() {
        for good in ["crm.example.com", "bob@acme.example"] {
            assert_eq!(&*DataShare::recipient_of(good).unwrap(), good);
        }
        for neither in ["", "Acme Corp", "1.2.3.4", "https://example.com"] {
            let told = DataShare::recipient_of(neither).unwrap_err().to_string();
            assert!(told.contains("domain") && told.contains("e-mail address"), "{neither}: {told}");
        }
        let told = DataShare::recipient_of("a@b@c").unwrap_err().to_string();
        assert!(!told.contains("domain such as"), "{told}");
    }
}
