//! What a card issuer sends and is told (CONTRACT part 6, "Inbound").

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::state::edge::Heard;
use svc_core::value::domain::Domain;
use svc_core::value::id::{ActionId, AgentId};
use svc_core::value::{Amount, Currency, Invalid, SAFE_MAX};

use super::{Fields, amount, integer, parse, text};

/// Characters of an event's id or type.
const WORD_MAX: usize = 200;

/// An event.
#[derive(Debug)]
pub struct IssuerEvent {
    /// The issuer's id of it: the same where it is sent again.
    pub id: String,
    /// What it asks for or tells.
    pub deed: IssuerDeed,
}

/// What an event asks for or tells.
#[derive(Debug)]
pub enum IssuerDeed {
    /// Whether a charge is covered.
    Request(ChargeWish),
    /// A charge came to this, in minor units.
    Settled(ActionId, i64),
    /// A charge was taken back.
    Reversed(ActionId),
    /// Something else, by this type.
    Other(Box<str>),
}

impl IssuerDeed {
    /// What it says, in a text that no other deed has.
    #[must_use]
    pub fn says(&self) -> String {
        match self {
            Self::Request(wish) => format!("request {}", wish.says()),
            Self::Settled(action, amount) => format!("settled {action} {amount}"),
            Self::Reversed(action) => format!("reversed {action}"),
            Self::Other(name) => format!("other {name}"),
        }
    }
}

impl ChargeWish {
    /// What it says, in a text that no other charge has.
    #[must_use]
    pub fn says(&self) -> String {
        let by = match self.named {
            Named::Action(id) => id.to_string(),
            Named::Agent(id) => id.to_string(),
        };
        let merchant = self.merchant.as_ref().map_or("", Domain::as_str);
        format!("{by} {} {} {merchant}", self.amount.minor(), self.currency.as_str())
    }
}

/// A charge that an issuer is asked to authorize.
#[derive(Clone, Debug)]
pub struct ChargeWish {
    /// By what it is to be covered.
    pub named: Named,
    /// In minor units.
    pub amount: Amount,
    /// Of this currency.
    pub currency: Currency,
    /// Who charges, where the issuer knows.
    pub merchant: Option<Domain>,
}

/// What an issuer knows a charge by.
#[derive(Clone, Copy, Debug)]
pub enum Named {
    /// The action that it is for.
    Action(ActionId),
    /// The agent whose card it is.
    Agent(AgentId),
}

/// Reads an event, whose signature was found good.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<IssuerEvent, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let id = fields.required("id", |it| word(text(it)?));
    let name = fields.required("type", |it| word(text(it)?));
    let deed = match name.as_deref() {
        None => None,
        Some("authorization.request") => request(&mut fields).map(IssuerDeed::Request),
        Some("authorization.settled") => {
            let amount = fields.required("amount", |it| {
                let within = Some(integer(it)?).filter(|it| (0..=SAFE_MAX).contains(it));
                within.ok_or_else(|| Invalid::new("must be a whole number of minor units from 0 to 9007199254740991"))
            });
            action(&mut fields).zip(amount).map(|(id, amount)| IssuerDeed::Settled(id, amount))
        }
        Some("authorization.reversed") => action(&mut fields).map(IssuerDeed::Reversed),
        Some(other) => Some(IssuerDeed::Other(other.into())),
    };
    fields.finish(id.zip(deed).map(|(id, deed)| IssuerEvent { id, deed }))
}

fn action(fields: &mut Fields<'_>) -> Option<ActionId> {
    fields.required("actionId", |it| ActionId::parse(text(it)?))
}

fn request(fields: &mut Fields<'_>) -> Option<ChargeWish> {
    let action = fields.optional("actionId", |it| ActionId::parse(text(it)?));
    let agent = fields.optional("agentId", |it| AgentId::parse(text(it)?));
    let named = match (action, agent) {
        (Some(id), None) => Some(Named::Action(id)),
        (None, Some(id)) => Some(Named::Agent(id)),
        (Some(_), Some(_)) => {
            fields
                .fault("agentId", Invalid::new("must not be sent beside `actionId`: one of them says what covers it"));
            None
        }
        (None, None) if fields.is_sound() => {
            fields.fault("actionId", Invalid::new("or `agentId` is required"));
            None
        }
        (None, None) => None,
    };
    let amount = fields.required("amount", amount);
    let currency = fields.required("currency", |it| Currency::parse(text(it)?));
    let merchant = fields.required("merchant", |_| Ok(()));
    let merchant = merchant
        .and_then(|()| fields.nested("merchant", |it| it.required("domain", |domain| Domain::parse(text(domain)?))));
    let ((named, amount), (currency, merchant)) = named.zip(amount).zip(currency.zip(merchant))?;
    Some(ChargeWish { named, amount, currency, merchant: Some(merchant) })
}

/// A word of a stranger's, such as the id of an event.
pub(super) fn word(text: &str) -> Result<String, Invalid> {
    let is_one = (1..=WORD_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control);
    if is_one {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new(format!("must be 1 to {WORD_MAX} characters without control characters")))
    }
}

/// What an issuer is told: whether a charge is approved, and if not why; of all else what came of it.
///
/// # Errors
/// `internal` where it cannot be written, which its members rule out.
pub fn write(heard: &Heard) -> Result<Vec<u8>, Refusal> {
    let told = match heard.approved {
        Some(true) => json!({ "approved": true }),
        Some(false) => json!({ "approved": false, "reason": heard.outcome }),
        None => json!({ "received": true, "outcome": heard.outcome }),
    };
    serde_json::to_vec(&told).map_err(|_| Refusal::internal())
}
