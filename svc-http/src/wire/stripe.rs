//! What a payment processor sends and is told, in its own shape (CONTRACT part 6, "Inbound"; Stripe's events of API versions
//! since 2020).
//!
//! **Invariant:** what of a charge is missing or cannot be read makes it no charge that anything covers.

use serde_json::json;
use svc_core::refusal::Refusal;
use svc_core::value::domain::Domain;
use svc_core::value::id::{ActionId, AgentId, WorkspaceId};
use svc_core::value::json::Json;
use svc_core::value::{Amount, Currency, Timestamp};
use url::Url;

use super::issuer::{ChargeWish, Named, word};
use super::{Fields, parse, text};

/// An event.
#[derive(Debug)]
pub struct StripeEvent {
    /// The processor's id of it.
    pub id: String,
    /// The version of its interface that the event is in, which an answer names.
    pub api_version: Option<String>,
    /// What kind of event it is.
    pub name: Box<str>,
    /// When the processor says that it came about, to the second.
    pub created: Option<Timestamp>,
    /// The event as sent.
    object: Json,
}

/// The last second that an event may name: the end of the year 9999.
const CREATED_MAX_S: i64 = 253_402_300_799;

/// Reads an event, whose signature was found good.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<StripeEvent, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let id = fields.required("id", |it| word(text(it)?));
    let name = fields.required("type", |it| word(text(it)?));
    let api_version = fields.optional("api_version", |it| word(text(it)?));
    fields.demand("data");
    let created = instant(json.get("created"));
    let object = json.get("data").and_then(|it| it.get("object")).cloned().unwrap_or(Json::Null);
    // Numbers that nobody reads here may be of any size.
    let faults = fields.into_faults();
    match id.zip(name) {
        Some((id, name)) if faults.is_empty() => {
            Ok(StripeEvent { id, api_version, name: name.into(), created, object })
        }
        _ => Err(Refusal::invalid_request(faults)),
    }
}

/// A time in seconds.
fn instant(sent: Option<&Json>) -> Option<Timestamp> {
    let seconds = sent.and_then(Json::as_int).filter(|it| (0..=CREATED_MAX_S).contains(it));
    seconds.map(|it| Timestamp::from_millis(it.saturating_mul(1_000)))
}

impl StripeEvent {
    /// When a subscription was made.
    #[must_use]
    pub fn begun(&self) -> Option<Timestamp> {
        instant(self.object.get("created"))
    }

    /// The workspace that a subscription is of.
    #[must_use]
    pub fn workspace(&self) -> Option<WorkspaceId> {
        WorkspaceId::parse(self.object.get("metadata")?.get("wid")?.as_str()?).ok()
    }

    /// The processor's id of a subscription; empty where none can be read.
    #[must_use]
    pub fn subscription(&self) -> Box<str> {
        let id = self.object.get("id").and_then(Json::as_str);
        id.and_then(|it| word(it).ok()).unwrap_or_default().into()
    }

    /// Whether a subscription is one that is paid, or still may be: `None` where that is not known yet, as of one whose first payment is
    /// under way. One that tells no status is.
    #[must_use]
    pub fn is_paid(&self) -> Option<bool> {
        match self.object.get("status").and_then(Json::as_str) {
            None | Some("active" | "trialing" | "past_due") => Some(true),
            Some("incomplete") => None,
            Some(_) => Some(false),
        }
    }

    /// The price of a subscription's first item.
    #[must_use]
    pub fn price(&self) -> Option<&str> {
        let items = self.object.get("items")?.get("data")?.as_list()?;
        items.first()?.get("price")?.get("id")?.as_str()
    }

    /// The charge of an `issuing_authorization.request`; `None` where it cannot be decided on.
    #[must_use]
    pub fn charge(&self) -> Option<ChargeWish> {
        let authorization = &self.object;
        // What is asked at present; what stands in the authorization was approved before.
        let asked = present(authorization, "pending_request").unwrap_or(authorization);
        let merchant = match merchant(authorization) {
            None => None,
            Some(url) => Some(host(url)?),
        };
        Some(ChargeWish {
            named: named(authorization)?,
            amount: Amount::new(asked.get("amount")?.as_int()?).ok()?,
            currency: Currency::parse(&asked.get("currency")?.as_str()?.to_ascii_uppercase()).ok()?,
            merchant,
        })
    }
}

/// Who is named by the authorization itself, else by its card, else by whoever holds the card. The first that names something
/// decides, also where what it names is nothing.
fn named(authorization: &Json) -> Option<Named> {
    let card = authorization.get("card");
    let holders = [authorization.get("cardholder"), card.and_then(|it| it.get("cardholder"))];
    let places = [Some(authorization), card].into_iter().chain(holders).flatten();
    places.filter_map(|it| it.get("metadata")).find_map(|metadata| {
        let member = |name| present(metadata, name).map(|it| it.as_str().unwrap_or_default());
        let action = member("svc_action").map(|it| ActionId::parse(it).ok().map(Named::Action));
        action.or_else(|| member("svc_agent").map(|it| AgentId::parse(it).ok().map(Named::Agent)))
    })?
}

fn merchant(authorization: &Json) -> Option<&Json> {
    present(present(authorization, "merchant_data")?, "url").filter(|it| it.as_str() != Some(""))
}

/// The host of a merchant's address, with its scheme or without.
fn host(url: &Json) -> Option<Domain> {
    let text = url.as_str()?;
    let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    Domain::parse(Url::parse(&whole).ok()?.host_str()?).ok()
}

fn present<'a>(object: &'a Json, name: &str) -> Option<&'a Json> {
    object.get(name).filter(|it| !matches!(it, Json::Null))
}

/// What a processor is told of a charge.
#[must_use]
pub fn write_approval(approved: bool) -> Vec<u8> {
    json!({ "approved": approved }).to_string().into_bytes()
}

/// What a processor is told of every other event.
#[must_use]
pub fn write_received() -> Vec<u8> {
    json!({ "received": true }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use serde_json::Value;

    use super::*;

    fn charge(object: Value) -> Option<ChargeWish> {
        let event = json!({ "id": "evt_1", "type": "issuing_authorization.request", "data": { "object": object } });
        read(event.to_string().as_bytes()).unwrap().charge()
    }

    fn action(place: u32) -> String {
        format!("act_{place:026}")
    }

    fn of(place: u32) -> Value {
        json!({ "svc_action": action(place) })
    }

    /// What is asked at present counts, else the authorization's own amount; who is named by the authorization comes before its card,
    /// and that before whoever holds it.
    #[test]
    fn a_charge_is_read_from_where_it_stands() {
        let whole = json!({
            "amount": 0, "currency": "eur", "pending_request": { "amount": 4_900, "currency": "usd" },
            "metadata": {}, "card": { "metadata": of(2), "cardholder": { "metadata": of(3) } },
            "merchant_data": { "url": "https://www.shop.example.com/x?y" },
        });
        let read = charge(whole.clone()).unwrap();
        assert_eq!((read.amount.minor(), read.currency.as_str()), (4_900, "USD"));
        assert_eq!(read.merchant.unwrap().as_str(), "www.shop.example.com");
        let named = |change: &dyn Fn(&mut Value)| {
            let mut body = whole.clone();
            change(&mut body);
            charge(body).map(|it| match it.named {
                Named::Action(id) => id.to_string(),
                Named::Agent(id) => id.to_string(),
            })
        };
        assert_eq!(named(&|_| ()), Some(action(2)));
        assert_eq!(named(&|it| it["metadata"] = of(1)), Some(action(1)));
        assert_eq!(named(&|it| it["card"]["metadata"] = Value::Null), Some(action(3)));
        assert_eq!(named(&|it| it["card"] = json!({ "cardholder": "ich_1" })), None);
        let agent = format!("agt_{:026}", 4);
        assert_eq!(named(&|it| it["metadata"] = json!({ "svc_agent": agent })), Some(agent.clone()));
        let expanded = json!({ "metadata": { "svc_agent": agent } });
        assert_eq!(named(&|it| (it["card"], it["cardholder"]) = (Value::Null, expanded.clone())), Some(agent.clone()));
        let plain =
            charge(json!({ "amount": 7, "currency": "jpy", "metadata": of(1), "merchant_data": { "url": "" } }));
        assert_eq!(plain.map(|it| (it.amount.minor(), it.merchant.is_none())), Some((7, true)));
    }

    /// What cannot be read is covered by nothing: an amount of nothing, an unknown currency, a merchant's address that is none, a
    /// name that names nothing.
    #[test]
    fn what_cannot_be_read_is_no_charge() {
        let good = json!({ "amount": 1, "currency": "eur", "metadata": of(1), "card": { "metadata": of(2) } });
        assert!(charge(good.clone()).is_some());
        for (name, value) in [
            ("amount", json!(0)),
            ("amount", json!("1")),
            ("amount", json!(1.5)),
            ("currency", json!("xxxx")),
            ("currency", Value::Null),
            ("pending_request", json!({ "amount": 1 })),
            ("metadata", json!({ "svc_action": "act_1", "svc_agent": "agt_00000000000000000000000001" })),
            ("metadata", json!({ "svc_agent": 7 })),
            ("merchant_data", json!({ "url": "not a host" })),
            ("merchant_data", json!({ "url": 7 })),
            ("merchant_data", json!({ "url": "https://203.0.113.7/" })),
        ] {
            let mut body = good.clone();
            body[name] = value;
            assert!(charge(body.clone()).is_none(), "{body}");
        }
        assert!(charge(Value::Null).is_none() && charge(json!([])).is_none());
    }
}
