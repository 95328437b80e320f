//! One call of a model: what it holds of budgets while it runs, and what it came to.

use serde::{Deserialize, Serialize};

use super::price::{Fees, Prices, TokenPrices};
use super::routing::{Mode, Objective};
use super::usage::Usage;
use crate::dlp::Findings;
use crate::value::id::{AgentId, BudgetId, CallId, KeyId, PrincipalId, TeamId, UpstreamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::{ClassId, ModelName, SessionId, TaskId, UpstreamName};
use crate::value::words::words;
use crate::value::{Id, MicroUsd, Timestamp};

/// A call (CONTRACT part 2, "Model calls").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Who pays.
    pub payer: Payer,
    /// The work it serves.
    pub task: TaskId,
    /// The client's session, or one that the server gave.
    pub session: SessionId,
    /// The model as the client named it.
    pub requested: Box<str>,
    /// The model that it goes to, or went to last.
    pub target: Option<Target>,
    /// Whether policy acted or only told.
    pub mode: Mode,
    /// What the choice favoured.
    pub objective: Objective,
    /// Whether a person acknowledged their oversight.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub oversight: bool,
    /// Whether the answer came as a stream.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stream: bool,
    /// What was tried without an answer, in order; neither the one that runs nor the one that it ended with is among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What it holds of budgets for the attempt that runs; of an ended call, what it held last.
    pub reserved: MicroUsd,
    /// The budgets that it counts on, and the period of each in which it was admitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<CallBudget>,
    /// What it used.
    #[serde(default)]
    pub usage: Usage,
    /// What it came to: of one that runs, the attempts before.
    pub cost: MicroUsd,
    /// Whether something that it used has no price: then `cost` is less than it came to, never free.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unpriced: bool,
    /// Whether it was not the first of its task, where that is known: of one that has ended. Rows of an older release do not say, and
    /// then nothing counts as missed in a cache for it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub follows: bool,
    /// The least that it could have cost at a model that does as well at its class, by its worst case; none that has failed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheapest: Option<MicroUsd>,
    /// What its tokens cost, at the model that it goes to, or went to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_prices: Option<TokenPrices>,
    /// Findings of sensitive data by kind, in what went out.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub data_loss: Findings,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// Whether it runs, or how it ended.
    pub state: CallState,
}

/// Who pays for a call, as budgets see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payer {
    /// The key it came with.
    pub key: KeyId,
    /// The agent whose key that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Who the key counts for.
    pub principal: PrincipalId,
    /// The team the key counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// The class of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassId>,
}

/// Where a call goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The provider.
    pub upstream: UpstreamId,
    /// Its name.
    pub provider: UpstreamName,
    /// The model, as the provider has it.
    pub model: ModelName,
    /// Under whose law it runs.
    pub jurisdiction: Box<str>,
}

/// A budget that a call counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallBudget {
    /// The budget.
    pub id: BudgetId,
    /// When the period began in which the call was admitted.
    pub period: Timestamp,
    /// Of which generation that period was; 0 in rows of an older release.
    #[serde(default, skip_serializing_if = "super::budget::is_first")]
    pub generation: u32,
    /// Whether what the call holds passes the budget's `stop`, as it may in shadow alone.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub past_stop: bool,
}

/// One try of a call that did not answer it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The provider; none in rows of an older release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamId>,
    /// Its name.
    pub provider: UpstreamName,
    /// The model.
    pub model: ModelName,
    /// The status of the provider's answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// What went wrong, in words that hold no text of the call and no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<str>>,
    /// What it is charged: a try that was sent and timed out may have used something.
    #[serde(default)]
    pub cost: MicroUsd,
    /// What it may have used, an estimate.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub usage: Usage,
    /// Whether something that it may have used has no price.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unpriced: bool,
}

impl Attempt {
    /// Whether something is charged for it, or would be had it a price.
    #[must_use]
    pub fn is_charged(&self) -> bool {
        self.cost > MicroUsd::ZERO || !self.usage.is_nothing()
    }
}

/// Whether a call runs, or how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// It runs, or nobody has said that it ended.
    Running {
        /// When it is taken for lost.
        lapses_at: Timestamp,
        /// What it is charged then.
        estimate: Usage,
        /// The prices that it was admitted at; `None` where the model has none.
        prices: Option<Box<Prices>>,
        /// What it is charged then beside its tokens; nothing in rows of an older release.
        #[serde(default)]
        fees: Box<Fees>,
    },
    /// It ended.
    Ended {
        /// How.
        end: CallEnd,
        /// Until the first token of a stream, or the head of a whole answer, in milliseconds.
        first_token_ms: Option<u64>,
        /// From the request to the end of the answer, in milliseconds.
        duration_ms: u64,
        /// Of that, what the gate itself took.
        overhead_ms: u64,
        /// The try that it ended with, where one ran; none in rows of an older release.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<LastTry>,
    },
}

/// The try that a call ended with, at the model that the call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTry {
    /// The status of the provider's answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub ms: u64,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// It was answered.
    Done,
    /// The client went away.
    HungUp,
    /// The provider broke off.
    Cut,
    /// The provider refused the request.
    Refused,
    /// No model answered.
    Failed,
    /// Nobody said what became of it.
    Lapsed,
}

words! { CallEnd;
    Done "done";
    HungUp "hung_up";
    Cut "cut";
    Refused "refused";
    Failed "failed";
    Lapsed "lapsed";
}

impl Linked for Call {
    fn links(&self) -> Vec<Link> {
        let mut links = vec![Link::by_id(Index::CallsOf, self.workspace.bits(), self.id)];
        if let CallState::Running { lapses_at, .. } = self.state {
            links.push(Link::by_id(Index::CallsOpen, self.workspace.bits(), self.id));
            links.push(Link::wake(self.workspace, lapses_at));
        }
        links
    }
}

impl Call {
    /// Whether it runs.
    #[must_use]
    pub const fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running { .. })
    }

    /// Of one that has ended, what its last try used: what those before it did is theirs.
    #[must_use]
    pub fn own_usage(&self) -> Usage {
        self.attempts.iter().fold(self.usage, |usage, it| usage.less(it.usage))
    }

    /// Of one that has ended, what its last try cost.
    #[must_use]
    pub fn own_cost(&self) -> MicroUsd {
        self.attempts.iter().fold(self.cost, |cost, it| cost.less(it.cost))
    }

    /// The failed try whose model it counts as unpriced with, by its place: the first that used something without a price. Without
    /// one it is the model that it went to last.
    #[must_use]
    pub fn unpriced_try(&self) -> Option<usize> {
        self.attempts.iter().position(|it| it.unpriced)
    }
}
