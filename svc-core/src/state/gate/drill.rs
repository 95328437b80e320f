//! A drill: a canary is made, asked for and frozen, and each place that could let it act is tried.

use serde::{Deserialize, Serialize};

use crate::state::people::Maker;
use crate::value::id::{AgentId, DrillId, EvidenceId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::words::words;
use crate::value::{Span, Timestamp};

/// How long a drill may run. One that is not over by then has failed, and its canary is left frozen.
pub const DRILL_LIFE: Span = Span::minutes(5);
/// How long a drill may run before its canary is frozen: what no server gets to, since it stopped, a timer does.
pub const FREEZE_WITHIN: Span = Span::seconds(10);
/// How long a token waits from one drill to the next.
pub const DRILL_EVERY: Span = Span::minutes(60);

/// A drill and its report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drill {
    /// Its id.
    pub id: DrillId,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who started it; absent for the program that runs the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Maker>,
    /// Whom it is about; the canary is cloned from the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<AgentId>,
    /// The agent that is frozen in their place.
    pub canary: AgentId,
    /// How it stands.
    pub state: DrillState,
    /// Since when.
    pub started_at: Timestamp,
    /// When the canary was frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Milliseconds from the freeze to the last refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contained_ms: Option<i64>,
    /// What was tried, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<DrillStep>,
    /// The newest record of it.
    pub evidence: EvidenceId,
}

/// How a drill stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillState {
    /// It is not over.
    Running,
    /// Each place refused as it should.
    Passed,
    /// One did not, or the drill came to no end.
    Failed,
}

words! { DrillState;
    Running "running";
    Passed "passed";
    Failed "failed";
}

/// A place that could let an agent act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrillPoint {
    /// The agent asks.
    Authorize,
    /// A person approves what the agent asked.
    Approve,
    /// Somebody is shown a receipt for what the agent asked.
    Verify,
    /// Whoever the agent named is told what became of what it asked.
    Callback,
    /// The agent calls a model in the chat-completions shape.
    Chat,
    /// The agent calls a model in the messages shape.
    Messages,
    /// The agent asks through the MCP server's tool.
    Mcp,
    /// The agent calls a tool of an MCP server through this one.
    McpProxy,
    /// A client that acts as the agent renews its tokens.
    OauthRefresh,
}

words! {
    /// In the order in which they are tried.
    DrillPoint;
    Authorize "authorize";
    Approve "approve";
    Verify "verify";
    Callback "callback";
    Chat "chat";
    Messages "messages";
    Mcp "mcp";
    McpProxy "mcp_proxy";
    OauthRefresh "oauth_refresh";
}

/// One try of one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrillStep {
    /// Where.
    pub point: DrillPoint,
    /// What should come of it.
    pub expected: Box<str>,
    /// What came of it.
    pub got: Box<str>,
    /// How long that took, in milliseconds.
    pub ms: i64,
    /// Whether it is what should come.
    pub ok: bool,
}

impl Drill {
    /// When it has failed where it came no further; `None` where it is over.
    #[must_use]
    pub fn due(&self) -> Option<Timestamp> {
        let within = if self.frozen_at.is_some() { DRILL_LIFE } else { FREEZE_WITHIN };
        (self.state == DrillState::Running).then(|| self.started_at.plus(within))
    }
}

impl Linked for Drill {
    fn links(&self) -> Vec<Link> {
        self.due().map(|at| Link::wake(self.workspace, at)).into_iter().collect()
    }
}
