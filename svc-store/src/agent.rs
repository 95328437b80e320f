//! The gate as one agent meets it: its key, and what it asks and tells.

use svc_core::answer::Decided;
use svc_core::engine::Failure;
use svc_core::rules::gate::Caller;
use svc_core::rules::gate::authorize::Authorize;
use svc_core::rules::gate::ran::ReportRun;
use svc_core::rules::gate::settle::Settle;
use svc_core::rules::people::keys::is_key;
use svc_core::rules::read::{View, get_action};
use svc_core::state::gate::{OutcomeStatus, Request, Status};
use svc_core::store::Key;
use svc_core::value::digest::Digest;
use svc_core::value::id::ActionId;
use tokio::sync::broadcast::error::RecvError;

use crate::error::StoreError;
use crate::feed::Change;
use crate::gate::{Gate, here};

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

    /// Asks before acting, and waits for the decision on this thread.
    ///
    /// # Errors
    /// [`Failure`]: without a decision there is no permission. Refused as `invalid_api_key` where the key has ended, `agent_not_found` where
    /// the agent was removed, `invalid_request` with every fault of the request, `idempotency_conflict` where its key was used for another.
    pub fn authorize(&self, request: Request) -> Result<Decided, Failure<StoreError>> {
        here(self.authorize_async(request))
    }

    /// As [`authorize`](Self::authorize), for a task of any executor: its thread goes on with others meanwhile.
    ///
    /// # Errors
    /// As [`authorize`](Self::authorize).
    pub async fn authorize_async(&self, request: Request) -> Result<Decided, Failure<StoreError>> {
        let salt = self.gate.fresh_salt()?;
        let decided = self.gate.submit(Authorize::new(self.caller, request, salt)).await?;
        if decided.view().untold().is_none() {
            return Ok(decided);
        }
        // The same question again, of what has ended since: the record of that comes first.
        let view = self.view(decided.id()).await?;
        Ok(self.shown(View { replayed: decided.is_replay(), ..view }))
    }

    /// Tells what became of an action, and waits on this thread; `amount` is the final one of a payment, in minor units.
    ///
    /// # Errors
    /// [`Failure`]: refused as `not_found` where the action is not this agent's, `not_allowed` where it was not allowed or is the gate's own to
    /// settle, `invalid_amount` where the amount is below 0 or out of range, or nothing is paid, `already_settled` where its outcome stands.
    pub fn settle(
        &self,
        action: ActionId,
        status: OutcomeStatus,
        amount: Option<i64>,
    ) -> Result<Decided, Failure<StoreError>> {
        here(self.settle_async(action, status, amount))
    }

    /// As [`settle`](Self::settle), for a task of any executor.
    ///
    /// # Errors
    /// As [`settle`](Self::settle).
    pub async fn settle_async(
        &self,
        action: ActionId,
        status: OutcomeStatus,
        amount: Option<i64>,
    ) -> Result<Decided, Failure<StoreError>> {
        self.gate.submit(Settle { caller: self.caller, action, status, amount }).await
    }

    /// One of this agent's actions as it stands, its receipt included while it may be acted on.
    ///
    /// # Errors
    /// `not_found` where the action is not this agent's, and [`Failure`].
    pub fn get(&self, action: ActionId) -> Result<Decided, Failure<StoreError>> {
        here(self.get_async(action))
    }

    /// As [`get`](Self::get), for a task of any executor. Rows are read on its thread; what reading finds and nobody has recorded, such
    /// as a wait that a stop has ended, is awaited.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_async(&self, action: ActionId) -> Result<Decided, Failure<StoreError>> {
        Ok(self.shown(self.view(action).await?))
    }

    /// The action once nobody is waited for any more: a person has decided, or a stop or time has ended the wait. That takes as long
    /// as the approval is open, up to days: give it a limit of your own where the task should not wait so long, and read the action
    /// later. Dropping the future changes nothing.
    ///
    /// ```no_run
    /// # use svc_core::{Decision, Request};
    /// # async fn ask(agent: svc_store::AgentHandle, request: Request) -> Result<(), Box<dyn std::error::Error>> {
    /// let decision = match agent.authorize_async(request).await?.decision() {
    ///     Decision::Ask(asked) => agent.until_decided(asked.id()).await?.decision(),
    ///     decided => decided,
    /// };
    /// if let Decision::Allow(allowed) = decision {
    ///     println!("go on, with {}", allowed.receipt());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get); [`StoreError::Closed`] once the gate is [closed](Gate::close).
    pub async fn until_decided(&self, action: ActionId) -> Result<Decided, Failure<StoreError>> {
        // Whoever listens first and then looks misses nothing.
        let mut changes = self.gate.changes();
        loop {
            let view = self.view(action).await?;
            if view.status() != Status::Pending {
                return Ok(self.shown(view));
            }
            if self.gate.core().feed.has_ended() {
                return Err(Failure::Load(StoreError::Closed));
            }
            let concerns = |change: &Change| change.any || change.keys.iter().any(|key| may_end(key, &view));
            loop {
                match changes.recv().await {
                    Ok(change) if concerns(&change) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return Err(Failure::Load(StoreError::Closed)),
                }
            }
        }
    }

    /// Says that a tool ran although its action was not allowed, as where the person at the keyboard let it, and waits on this thread.
    /// It is recorded and told to whoever decides, and makes no allow of it. `unasked` says that it had run before the gate was asked.
    ///
    /// # Errors
    /// `not_found` where the action is not this agent's, and [`Failure`].
    pub fn report_run(&self, action: ActionId, unasked: bool) -> Result<Decided, Failure<StoreError>> {
        here(self.report_run_async(action, unasked))
    }

    /// As [`report_run`](Self::report_run), for a task of any executor.
    ///
    /// # Errors
    /// As [`report_run`](Self::report_run).
    pub async fn report_run_async(&self, action: ActionId, unasked: bool) -> Result<Decided, Failure<StoreError>> {
        self.gate.submit(ReportRun { caller: self.caller, action, unasked }).await
    }

    async fn view(&self, action: ActionId) -> Result<View, Failure<StoreError>> {
        let read = || self.gate.read(|scope| get_action(scope, &self.caller, action));
        let view = read()?;
        match view.untold() {
            None => Ok(view),
            Some(untold) => self.gate.submit(untold).await.and_then(|()| read()),
        }
    }

    fn shown(&self, view: View) -> Decided {
        Decided::of(view, &**self.gate.signer())
    }
}

/// Whether a change of the row `key` may end the wait of an action.
fn may_end(key: &Key, of: &View) -> bool {
    match key {
        Key::Approval(id) => of.action.approval == Some(*id),
        Key::Agent(id) => of.action.agent == *id,
        Key::Workspace(id) => of.action.workspace == *id,
        _ => false,
    }
}
