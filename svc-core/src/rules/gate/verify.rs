//! Somebody who was shown a receipt asks whether it is good. Being told yes uses it up: there is no other question.
//!
//! What the text alone tells (form, key, signature, issuer) is looked at off the lane; the rest is one conditional write
//! of the action's row, so of any number of askers one is told yes.

use std::sync::Arc;

use super::authorize;
use super::evaluate::denied;
use super::hold::held_by;
use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::receipt::EARLY_S;
use crate::state::gate::{Action, Agent, Allowed, Consumed, OutcomeStatus, Payment, State};
use crate::state::people::{SigningKey, SigningUse, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::currency::Currency;
use crate::value::digest::Digest;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, ReceiptId};
use crate::value::words::words;
use crate::value::{Amount, Span, Timestamp};

/// How long a consuming verdict is given again to the one who asked.
const VERDICT_KEPT: Span = Span::minutes(10);

/// A receipt whose signature is good, and what it is to cover.
#[derive(Clone, Debug)]
pub struct Verify {
    /// The receipt.
    pub receipt: ReceiptId,
    /// The action digest that it names.
    pub digest: Digest,
    /// What is charged.
    pub charge: Option<Charge>,
    /// The type that the asker expects.
    pub kind: Option<Box<str>>,
    /// The digest of the asker's idempotency key, where one was sent.
    pub key: Option<Digest>,
    /// The digest of the body as sent.
    pub body: Digest,
    /// The stored key whose signature it was found to have: found compromised since, it vouches for nothing.
    pub signed_by: Option<SigningUse>,
}

/// What is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// In minor units, above zero.
    pub amount: Amount,
    /// Of this currency.
    pub currency: Currency,
    /// The domain of whoever charges. Without one it is the charge of nobody: [`Fault::ChargeRequired`].
    pub domain: Option<Domain>,
}

/// Why a receipt is not good, in the order in which they are looked at (CONTRACT part 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// It is no receipt of this service's form.
    Malformed,
    /// It names a key that this service does not have.
    UnknownKey,
    /// Its signature does not fit.
    BadSignature,
    /// Another deployment issued it.
    WrongIssuer,
    /// There is no such receipt.
    UnknownReceipt,
    /// The agent was stopped before it was used, or the action was settled as not done.
    Revoked,
    /// It was used.
    AlreadyConsumed,
    /// Its time has not come.
    NotYetValid,
    /// Its time is over.
    Expired,
    /// It is for another type of action.
    TypeMismatch,
    /// It is for a payment, and no charge was named.
    ChargeRequired,
    /// The charge is in another currency.
    CurrencyMismatch,
    /// The charge is larger.
    AmountExceeds,
    /// Somebody else charges, or a host of the same whom the agent's mandates deny.
    MerchantMismatch,
}

words! {
    /// In the order in which they are looked at.
    Fault;
    Malformed "malformed";
    UnknownKey "unknown_key";
    BadSignature "bad_signature";
    WrongIssuer "wrong_issuer";
    UnknownReceipt "unknown_receipt";
    Revoked "revoked";
    AlreadyConsumed "already_consumed";
    NotYetValid "not_yet_valid";
    Expired "expired";
    TypeMismatch "type_mismatch";
    ChargeRequired "charge_required";
    CurrencyMismatch "currency_mismatch";
    AmountExceeds "amount_exceeds";
    MerchantMismatch "merchant_mismatch";
}

/// What the asker is told.
#[must_use = "a receipt may be no good: look at `fault`"]
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Why not, where not.
    pub fault: Option<Fault>,
    /// The action, where there is one.
    pub action: Option<Arc<Action>>,
    /// Whether it is the verdict of before, for the same key and body.
    pub replayed: bool,
}

impl Verdict {
    /// A no that tells nothing of any action.
    pub const fn no(fault: Fault) -> Self {
        Self { fault: Some(fault), action: None, replayed: false }
    }

    /// Whether the receipt is good, and used up by this very question or the one it repeats.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.fault.is_none()
    }
}

/// Judges a receipt and, where it is good, uses it up.
///
/// # Errors
/// `internal` where a row that the action names is not there.
pub fn verify(scope: &mut Scope<'_>, asked: &Verify) -> Result<Verdict, Halt> {
    verify_as(scope, asked, Actor::Stranger, Unnamed::Nobody)
}

/// At whose merchant a charge is that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unnamed {
    /// At any: whoever asks has said which action it is for, and does not know who charges.
    Anyone,
    /// At nobody's: such a charge is not covered.
    Nobody,
}

/// The same in the name of `by`: a card issuer asks about an action and not about its receipt, by the same rule.
///
/// # Errors
/// As [`verify`].
pub(crate) fn verify_as(scope: &mut Scope<'_>, asked: &Verify, by: Actor, unnamed: Unnamed) -> Result<Verdict, Halt> {
    if is_compromised(scope, asked.signed_by)? {
        return Ok(Verdict::no(Fault::UnknownKey));
    }
    let id = ActionId::from(asked.receipt);
    let Some(action) = scope.get::<Action>(id)? else { return Ok(Verdict::no(Fault::UnknownReceipt)) };
    let Some(allowed) = action.allowed().filter(|_| action.digest == asked.digest) else {
        return Ok(Verdict::no(Fault::UnknownReceipt));
    };
    scope.want(&[Agent::key(action.agent), Workspace::key(action.workspace)])?;
    let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let workspace = scope.get::<Workspace>(action.workspace)?.ok_or_else(Refusal::internal)?;
    let now = scope.now();
    if let Some(consumed) = &allowed.consumed {
        let repeats = asked.key.is_some() && consumed.key == asked.key && consumed.body == Some(asked.body);
        let replayed = repeats && now.since(consumed.at) < VERDICT_KEPT;
        let fault = (!replayed).then_some(Fault::AlreadyConsumed);
        return Ok(Verdict { fault, action: Some(action), replayed });
    }
    let held = held_by(scope, &workspace, agent.id)?;
    let void = action.is_void(&agent, held.is_some());
    let fault = match fault(asked, unnamed, &action, allowed, (void, now)) {
        None if is_denied_below(scope, asked, &action, &agent)? => Some(Fault::MerchantMismatch),
        fault => fault,
    };
    if let Some(fault) = fault {
        return Ok(Verdict { fault: Some(fault), action: Some(action), replayed: false });
    }
    let mut consumed = Action::clone(&action);
    let amount = asked.charge.as_ref().map(|it| it.amount.minor());
    if let State::Allowed(allowed) = &mut consumed.state {
        let body = asked.key.map(|_| asked.body);
        allowed.consumed = Some(Consumed { at: now, amount, key: asked.key, body, reversed: false });
    }
    consumed.evidence = scope.append(action.workspace, consumed_fact(asked, &action, by));
    scope.put(consumed.clone());
    Ok(Verdict { fault: None, action: Some(Arc::new(consumed)), replayed: false })
}

/// Whether a key was found to be in other hands, also since the signature was looked at: this commit depends on its row.
fn is_compromised(scope: &mut Scope<'_>, key: Option<SigningUse>) -> Result<bool, Halt> {
    let Some(key) = key else { return Ok(false) };
    let key = scope.get::<SigningKey>(key)?.ok_or_else(Refusal::internal)?;
    Ok(key.compromised_at.is_some())
}

/// The first fault that holds of an unused receipt.
fn fault(
    asked: &Verify,
    unnamed: Unnamed,
    action: &Action,
    allowed: &Allowed,
    (void, now): (bool, Timestamp),
) -> Option<Fault> {
    let outcome = allowed.outcome.as_ref();
    let undone = outcome.is_some_and(|it| it.status != OutcomeStatus::Completed);
    if void || undone {
        return Some(Fault::Revoked);
    }
    if now.as_seconds() < allowed.at.as_seconds().saturating_sub(EARLY_S) {
        return Some(Fault::NotYetValid);
    }
    // The text names whole seconds, so the row's instant counts by its second too.
    if now.as_seconds() >= allowed.receipt_expires_at.as_seconds() {
        return Some(Fault::Expired);
    }
    if asked.kind.as_deref().is_some_and(|it| it != action.kind.as_str()) {
        return Some(Fault::TypeMismatch);
    }
    match (&action.payment, &asked.charge) {
        (None, None) => None,
        (None, Some(_)) => Some(Fault::TypeMismatch),
        (Some(payment), charge) => {
            let limit = outcome.and_then(|it| it.amount).unwrap_or(payment.amount);
            covers(payment, limit, charge.as_ref(), unnamed)
        }
    }
}

fn covers(payment: &Payment, limit: i64, charge: Option<&Charge>, unnamed: Unnamed) -> Option<Fault> {
    let told = |it: &&Charge| it.domain.is_some() || unnamed == Unnamed::Anyone;
    let Some(charge) = charge.filter(told) else { return Some(Fault::ChargeRequired) };
    if charge.currency != payment.currency {
        return Some(Fault::CurrencyMismatch);
    }
    if charge.amount.minor() > limit {
        return Some(Fault::AmountExceeds);
    }
    let elsewhere = charge.domain.as_ref().is_some_and(|it| !it.is_within(&payment.domain));
    elsewhere.then_some(Fault::MerchantMismatch)
}

/// Whether the charge is of another host of the merchant's than was allowed, and a mandate of the agent's denies that one: nobody has
/// looked at its name yet.
fn is_denied_below(scope: &mut Scope<'_>, asked: &Verify, action: &Action, agent: &Agent) -> Result<bool, Halt> {
    let charged = asked.charge.as_ref().and_then(|it| it.domain.as_ref());
    let Some((payment, domain)) = action.payment.as_ref().zip(charged).filter(|(it, host)| it.domain != **host) else {
        return Ok(false);
    };
    let (mandates, unreadable) = authorize::mandates(scope, agent)?;
    let there = Payment { domain: domain.clone(), ..payment.clone() };
    Ok(unreadable || !denied(&mandates, Some(&there), None).is_empty())
}

fn consumed_fact(asked: &Verify, action: &Action, actor: Actor) -> Fact {
    let mut data = Object::new();
    data = data.text("agentId", &action.agent.to_string()).text("receiptId", &asked.receipt.to_string());
    if let Some(charge) = &asked.charge {
        data = data.int("amount", charge.amount.minor()).text("currency", charge.currency.as_str());
        if let Some(domain) = &charge.domain {
            data = data.text("domain", domain.as_str());
        }
    }
    Fact { kind: "receipt.consumed", actor, subject: Subject::Action(action.id), data: data.finish() }
}
