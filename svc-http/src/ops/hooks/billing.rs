//! What the operator's payment processor tells of subscriptions (CONTRACT part 6): which plan a workspace is on.

use std::collections::BTreeMap;

use svc_core::refusal::Refusal;
use svc_core::rules::edge::subscribe::{FollowSubscription, ToldOf};
use svc_core::state::edge::Received;
use svc_core::state::people::Plan;
use svc_core::value::id::WorkspaceId;
use svc_core::value::secret::Secret;

use super::GateService;
use super::stripe::STRIPE_SIGNATURE;
use crate::answer::Answer;
use crate::config::BillingConfig;
use crate::dispatch::Call;
use crate::inbound::signature::{STAMPED_KEPT, Secrets, stamped};
use crate::wire::stripe::{self as wire, StripeEvent};

/// What billing is told by.
#[derive(Debug, Default)]
pub struct Billing {
    secrets: Secrets,
    plans: BTreeMap<Box<str>, Plan>,
}

impl Billing {
    /// What the configuration says.
    #[must_use]
    pub fn of(config: &BillingConfig) -> Self {
        let secret = config.secret.iter().map(|it| Secret::new(it.expose().as_bytes().to_vec()));
        Self { secrets: Secrets::new(secret.collect()), plans: config.plans.clone() }
    }

    /// Whether there is a secret that its events may be signed with.
    pub(super) const fn is_awaited(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// What an event says of which workspace's subscription.
    fn told(&self, sent: &StripeEvent) -> Option<(WorkspaceId, ToldOf)> {
        let (created, deleted) = (&*sent.name == CREATED, &*sent.name == DELETED);
        let plan = match &*sent.name {
            CREATED | UPDATED if !sent.is_paid()? => Some(Plan::Free),
            CREATED | UPDATED => self.plans.get(sent.price()?).copied(),
            DELETED => Some(Plan::Free),
            _ => return None,
        };
        let found = sent.workspace().zip(plan);
        if found.is_none() {
            tracing::warn!(
                event = sent.id,
                price = sent.price(),
                "a subscription names no workspace or no known price"
            );
        }
        let (workspace, plan) = found?;
        let (subscription, at, begun) = (sent.subscription(), sent.created, sent.begun());
        Some((workspace, ToldOf { subscription, at, begun, plan, created, deleted }))
    }
}

/// One that begins paid, or on trial, is told of as made and, until something of it changes, as nothing else.
const CREATED: &str = "customer.subscription.created";
const UPDATED: &str = "customer.subscription.updated";
const DELETED: &str = "customer.subscription.deleted";

pub(super) async fn answer(service: &GateService, call: &Call) -> Result<Answer, Refusal> {
    let billing = &service.billing;
    let stamped = stamped(&call.headers, &STRIPE_SIGNATURE, &call.body, &billing.secrets, service.gate.now());
    let stamped = stamped.ok_or_else(Refusal::wrong_signature)?;
    let sent = wire::read(&call.body)?;
    let follow = FollowSubscription {
        request: Received::billing_request(&[stamped.stamp.as_bytes(), &call.body]),
        kept: STAMPED_KEPT,
        event: Received::billing_event(&sent.id),
        told: billing.told(&sent),
    };
    let heard = service.run(follow).await?;
    tracing::info!(event = sent.id, outcome = &*heard.outcome, "billing was heard");
    Ok(Answer::json(wire::write_received()))
}
