//! What a caller gets of an action: how it reads, why, and the receipt where there is one.

use crate::rules::read::View;
use crate::state::gate::receipt::{Claims, Signer, write};
use crate::state::gate::{Action, Reason, Status, Verb};
use crate::value::Timestamp;
use crate::value::id::ActionId;

/// An action as its caller sees it.
#[derive(Clone, Debug)]
pub struct Decided {
    view: View,
    receipt: Option<String>,
    url: Option<String>,
}

impl Decided {
    /// The answer over `view`; signs a receipt where there is to be one, so make it off the lane.
    #[must_use]
    pub fn of(view: View, signer: &dyn Signer) -> Self {
        let allowed = view.action.allowed().filter(|_| view.has_receipt());
        let receipt = allowed.map(|it| write(&Claims::of(&view.action, it, signer.issuer()), signer));
        let base = signer.issuer().trim_end_matches('/');
        let url = view.approval.as_ref().map(|it| format!("{base}/w/{}/approvals/{}", it.workspace, it.id));
        Self { view, receipt, url }
    }

    /// What the agent is to do.
    #[must_use]
    pub fn verb(&self) -> Verb {
        self.view.verb()
    }

    /// How the action reads.
    #[must_use]
    pub fn status(&self) -> Status {
        self.view.status()
    }

    /// The action's id.
    #[must_use]
    pub fn id(&self) -> ActionId {
        self.view.action.id
    }

    /// The action.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.view.action
    }

    /// The action with the rows that say how it reads.
    #[must_use]
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The signed receipt, while the action may be acted on.
    #[must_use]
    pub fn receipt(&self) -> Option<&str> {
        self.receipt.as_deref()
    }

    /// Until when the receipt is good, where there is one.
    #[must_use]
    pub fn receipt_expires_at(&self) -> Option<Timestamp> {
        self.receipt.as_ref()?;
        self.view.action.allowed().map(|it| it.receipt_expires_at)
    }

    /// Every rule that spoke.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        self.view.reasons()
    }

    /// The link under which a person decides, where one was asked.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Whether this answers a request that was made before.
    #[must_use]
    pub const fn is_replay(&self) -> bool {
        self.view.replayed
    }
}
