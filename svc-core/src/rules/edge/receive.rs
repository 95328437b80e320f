//! A signed request from outside, whose signature the shell has found good: taken once, done once, recorded.
//!
//! **Invariant:** one commit holds that the request was received, what it brought about, and the record that tells so.
//!
//! **Invariant:** what an event asks for and cannot be done is an answer, not a refusal: its sender would send it for ever.

use core::iter;
use std::sync::Arc;

use super::button::{self, Press};
use super::charge::{self, ChargeAsked};
use super::integrations::keyed;
use super::merge::{self, Merge};
use super::signal::{self, Told};
use crate::refusal::Refusal;
use crate::state::edge::{
    EVENT_KEPT, Heard, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Received,
};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::digest::ReceivedId;
use crate::value::id::{ActionId, ApprovalId, IntegrationId, PrincipalId, WorkspaceId};
use crate::value::{Span, Timestamp};

/// A request that was signed with a secret of an integration.
#[derive(Clone, Debug)]
pub struct Receive {
    /// Where the integration is found.
    pub slot: IntegrationSlot,
    /// The integration that the secret was of: another that has taken its place since has others.
    pub integration: IntegrationId,
    /// By what of it the signature was found good.
    pub vouched: Vouched,
    /// The row of what was signed.
    pub request: ReceivedId,
    /// How long the same request could be sent again, and its signature be good.
    pub kept: Span,
    /// What it tells.
    pub event: Event,
}

/// By what a signature was found good. It has to be in force when the request is taken, too: what was taken from whoever knew it
/// counts from the moment on at which that was answered.
#[derive(Clone, Debug)]
pub enum Vouched {
    /// A secret of the integration, by its sealed form.
    Secret(Box<str>),
    /// Keys of whoever its configuration names.
    Config(IntegrationConfig),
}

impl Vouched {
    fn holds(&self, integration: &Integration, now: Timestamp) -> bool {
        match self {
            Self::Secret(sealed) => integration.in_force(now).iter().any(|it| it.sealed == *sealed),
            Self::Config(config) => integration.enabled && integration.config == *config,
        }
    }
}

/// What a request tells.
#[derive(Clone, Debug)]
pub struct Event {
    /// What kind of event it is.
    pub name: EventName,
    /// The row of the sender's id of it, where the sender asks again with a new signature and is to be told the same.
    pub id: Option<ReceivedId>,
    /// What is to be done.
    pub deed: Deed,
}

/// What kind of event something is, in its sender's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventName {
    /// One that is known here.
    Known(&'static str),
    /// Another: a stranger's text, of which the ledger has a commitment.
    Other(Box<str>),
}

/// What an event asks for.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A charge is approved, or not.
    Charge(ChargeAsked),
    /// A charge that nothing covers, since what it says cannot be read, is not approved.
    Uncovered,
    /// A charge that was approved is settled.
    Settle {
        /// The action that covered it.
        action: ActionId,
        /// What it came to, in minor units.
        amount: i64,
    },
    /// A charge that was approved is taken back.
    Reverse {
        /// The action that covered it.
        action: ActionId,
    },
    /// Tasks that a pull request names have come to this.
    Report(Merge),
    /// Somebody's sessions end, and their agents stop.
    Signal(Box<Told>),
    /// Somebody has pressed a button that decides an approval.
    Press(Box<Press>),
    /// It is about somebody who is not known here.
    Unknown,
    /// Nothing.
    Nothing,
}

/// What came of an event about somebody who is nobody here.
pub(super) const UNKNOWN_SUBJECT: &str = "unknown_subject";

/// What an integration shows of such an event.
const MISSED: &str = "an event was about somebody who is nobody here";

/// What was done, and about what.
pub(super) struct Done {
    pub(super) heard: Heard,
    pub(super) action: Option<ActionId>,
    pub(super) approval: Option<ApprovalId>,
    pub(super) principal: Option<PrincipalId>,
    /// What a charge is for or came to, in minor units.
    pub(super) amount: Option<i64>,
    /// Of a charge, whether its merchant was told.
    pub(super) merchant: Option<bool>,
    /// What another system calls somebody who is nobody here.
    pub(super) name: Option<Box<str>>,
}

impl Done {
    pub(super) fn of(outcome: &str, action: Option<ActionId>) -> Self {
        Self { action, ..Self::told(Heard::of(outcome)) }
    }

    pub(super) const fn told(heard: Heard) -> Self {
        Self { heard, action: None, approval: None, principal: None, amount: None, merchant: None, name: None }
    }
}

/// The integration that a request says it is sent to.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn addressed(scope: &mut Scope<'_>, slot: IntegrationSlot) -> Result<Option<Arc<Integration>>, Halt> {
    scope.get::<Integration>(slot)
}

/// Takes a request.
///
/// # Errors
/// `unauthenticated` where the integration is gone or off, or what the signature was made with is in force no longer, or the request was
/// received before: whoever sends it learns nothing more.
pub fn receive(scope: &mut Scope<'_>, asked: &Receive) -> Result<Heard, Halt> {
    let event = asked.event.id;
    let mut keys = vec![Integration::key(asked.slot), Received::key(asked.request)];
    keys.extend(event.map(Received::key));
    scope.want(&keys)?;
    let integration = scope.get::<Integration>(asked.slot)?.filter(|it| it.id == asked.integration);
    let integration = integration.filter(|it| asked.vouched.holds(it, scope.now()));
    let integration = integration.ok_or_else(Refusal::wrong_signature)?;
    let once = Once { request: asked.request, kept: asked.kept, event };
    let before = once.before(scope)?;
    let repeated = before.is_some();
    let done = match before {
        Some(heard) => Done::told(heard),
        None => do_it(scope, asked, &integration)?,
    };
    let now = scope.now();
    once.note(scope, asked.slot.workspace, Some(&done.heard).filter(|_| !repeated));
    let integration = match &done.name {
        Some(_) => keyed(scope, Integration::clone(&integration)),
        None => Integration::clone(&integration),
    };
    record(scope, asked, &done, (&integration, repeated));
    let last_error = missed(asked, &done, &integration);
    scope.put(Integration { last_event_at: Some(now), last_error, failing: false, ..integration });
    Ok(done.heard)
}

/// What is wrong with what an integration is told, though it is taken: an identity provider goes on telling of people whom nobody knows
/// here by the names that it gives, and hears nothing of it. What asks for nothing shows nothing of that either way.
fn missed(asked: &Receive, done: &Done, before: &Integration) -> Option<Box<str>> {
    match (&asked.event.deed, &*done.heard.outcome) {
        (Deed::Unknown | Deed::Signal(_), UNKNOWN_SUBJECT) => Some(MISSED.into()),
        (Deed::Nothing, _) if asked.slot.kind == IntegrationKind::Ssf => before.last_error.clone(),
        _ => None,
    }
}

/// That a signed request is taken once, and an event done once.
pub(super) struct Once {
    /// The row of what was signed.
    pub(super) request: ReceivedId,
    /// How long the same request could be sent again, and its signature be good.
    pub(super) kept: Span,
    /// The row of the sender's id of the event, where it has one.
    pub(super) event: Option<ReceivedId>,
}

impl Once {
    /// What the event was answered with before, where it was.
    ///
    /// # Errors
    /// `unauthenticated` where the request was received before.
    pub(super) fn before(&self, scope: &mut Scope<'_>) -> Result<Option<Heard>, Halt> {
        if scope.get::<Received>(self.request)?.is_some() {
            return Err(Refusal::wrong_signature().into());
        }
        let Some(event) = self.event else { return Ok(None) };
        Ok(scope.get::<Received>(event)?.and_then(|it| it.answer.clone()))
    }

    /// Notes in `workspace` that the request was received, and what the event was answered with, where it is answered now.
    pub(super) fn note(&self, scope: &mut Scope<'_>, workspace: WorkspaceId, heard: Option<&Heard>) {
        let now = scope.now();
        let received = |id, kept, answer| Received { id, workspace, until: now.plus(kept), answer };
        scope.put(received(self.request, self.kept, None));
        if let Some((event, heard)) = self.event.zip(heard) {
            scope.put(received(event, EVENT_KEPT, Some(heard.clone())));
        }
    }
}

fn do_it(scope: &mut Scope<'_>, asked: &Receive, integration: &Integration) -> Result<Done, Halt> {
    let (workspace, by) = (asked.slot.workspace, Actor::Integration(asked.integration));
    match &asked.event.deed {
        Deed::Charge(charge) => charge::charge(scope, workspace, charge, &by),
        Deed::Uncovered => Ok(charge::uncovered()),
        Deed::Settle { action, amount } => charge::settle(scope, workspace, (*action, *amount), by),
        Deed::Reverse { action } => charge::reverse(scope, workspace, *action, by),
        Deed::Report(merge) => merge::report(scope, integration, merge),
        Deed::Signal(told) => signal::signal(scope, workspace, told, asked.integration),
        Deed::Press(press) => button::press(scope, integration, press),
        Deed::Unknown => Ok(Done::of(UNKNOWN_SUBJECT, None)),
        Deed::Nothing => Ok(Done::of("ignored", None)),
    }
}

/// Lets go of what is no longer kept.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn forget(scope: &mut Scope<'_>, id: ReceivedId) -> Result<(), Halt> {
    let now = scope.now();
    if scope.get::<Received>(id)?.is_some_and(|it| it.until <= now) {
        scope.delete::<Received>(id);
    }
    Ok(())
}

fn record(scope: &mut Scope<'_>, asked: &Receive, done: &Done, (of, repeated): (&Integration, bool)) {
    let kind = asked.slot.kind;
    let mut data = Object::new().text("kind", kind.as_str()).text("outcome", &done.heard.outcome);
    if let Some(action) = done.action {
        data = data.plain("actionId", action);
    }
    if let Some(approval) = done.approval {
        data = data.plain("approvalId", approval);
    }
    if let Some(principal) = done.principal {
        data = data.plain("principalId", principal);
    }
    if let Some(amount) = done.amount {
        data = data.int("amount", amount);
    }
    if let Some(told) = done.merchant {
        data = data.bool("merchantTold", told);
    }
    if let Some(approved) = done.heard.approved {
        data = data.bool("approved", approved);
    }
    if let (Some(name), Some(key)) = (&done.name, of.names_key) {
        data = data.text("memberDigest", &key.digest(iter::once(&**name)));
    }
    if repeated {
        data = data.bool("repeated", true);
    }
    let (name, texts) = match &asked.event.name {
        EventName::Known(name) => (*name, vec![]),
        EventName::Other(text) => ("other", vec![("type", &**text)]),
    };
    let fact = Fact {
        kind: if kind == IntegrationKind::Ssf { "signal.received" } else { "integration.received" },
        actor: Actor::Integration(asked.integration),
        subject: Subject::Integration(asked.integration),
        data: data.text("event", name).finish(),
    };
    scope.append_with(asked.slot.workspace, fact, &texts);
}
