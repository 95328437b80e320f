//! The gate as one agent meets it: its key, and what it asks and tells.

use svc_core::answer::Decided;
use svc_core::engine::Failure;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::people::keys::is_key;
use svc_core::rules::read::get_action;
use svc_core::state::gate::{OutcomeStatus, Request};
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;

use crate::error::StoreError;
use crate::gate::Gate;

/// An agent's key, as its digest: the text itself is kept nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentKey(Digest);

impl AgentKey {
    /// Reads the text of a key, which has the form of one ([`is_key`]).
    ///
    /// # Errors
    /// `invalid_api_key` where it does not look like one.
    pub fn parse(text: &str) -> Result<Self, Failure<StoreError>> {
        if !is_key(text) {
            return Err(Failure::Refused(svc_core::refusal::Refusal::invalid_api_key()));
        }
        Ok(Self(Digest::of(text)))
    }

    pub(crate) const fn digest(&self) -> &Digest {
        &self.0
    }
}

/// The gate as one agent sees it.
#[derive(Clone, Debug)]
pub struct AgentHandle {
    gate: Gate,
    caller: Caller,
}

impl AgentHandle {
    pub(crate) const fn new(gate: Gate, caller: Caller) -> Self {
        Self { gate, caller }
    }

    /// Who this is.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Asks before acting, and waits for the decision.
    ///
    /// # Errors
    /// [`Failure`]: without a decision there is no permission.
    pub fn authorize(&self, request: Request) -> Result<Decided, Failure<StoreError>> {
        let salt = self.gate.fresh_salt()?;
        self.gate.execute(Authorize::new(self.caller, request, salt))
    }

    /// Tells what became of an action; `amount` is the final one of a payment, in minor units.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn settle(
        &self,
        action: ActionId,
        status: OutcomeStatus,
        amount: Option<i64>,
    ) -> Result<Decided, Failure<StoreError>> {
        self.gate.execute(Settle { caller: self.caller, action, status, amount })
    }

    /// One of this agent's actions as it stands, its receipt included while it may be acted on.
    ///
    /// # Errors
    /// `not_found` where the action is not this agent's, and [`Failure`].
    pub fn get(&self, action: ActionId) -> Result<Decided, Failure<StoreError>> {
        let read = || self.gate.read(|scope| get_action(scope, &self.caller, action));
        let view = read()?;
        let view = match view.untold() {
            None => view,
            Some(untold) => self.gate.execute(untold).and_then(|()| read())?,
        };
        Ok(Decided::of(view, &**self.gate.signer()))
    }
}
