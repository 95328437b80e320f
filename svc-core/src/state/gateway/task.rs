//! The work that calls serve, and what came of it.

use serde::{Deserialize, Serialize};

use crate::value::digest::{Digest, TaskKey};
use crate::value::id::{AgentId, KeyId, PrincipalId, TeamId, UpstreamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked, Order, instant_order};
use crate::value::text::{ClassId, TaskId};
use crate::value::words::words;
use crate::value::{Id, MicroUsd, Timestamp};

/// A task: opened by the first call that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Workspace and id, as one digest.
    pub key: TaskKey,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The id: the client's own, or one that the server gave.
    pub id: TaskId,
    /// The class of its first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ClassId>,
    /// Who it counts for.
    pub principal: PrincipalId,
    /// The agent whose key its first call came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The key that its first call came with.
    pub opened_by: KeyId,
    /// The team that key counts for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamId>,
    /// The provider of that model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamId>,
    /// How many calls it had.
    pub calls: u64,
    /// Whether it is in no day's sums as yet: the first of its calls that is counted counts it, whichever ends first. In rows
    /// of an older release no task is marked so, and each counts as counted.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub uncounted: bool,
    /// What they came to.
    pub spent: MicroUsd,
    /// The model of its last answered call, as `provider/model`: what an outcome is credited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<TaskOutcome>,
    /// Where that is counted, so that a later report takes it back from there. In rows of an older release it is absent, and
    /// the outcome is taken for counted at the task's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<Credit>,
    /// When its first call came.
    pub created_at: Timestamp,
}

/// What came of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOutcome {
    /// How it ended.
    pub status: TaskStatus,
    /// When that was reported.
    pub at: Timestamp,
    /// Whether an integration reported it: such a report never replaces another's.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub by_integration: bool,
    /// By the end of which pull request, where it was one that is known by its number. In rows of an older release it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullEnd>,
}

/// The end of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullEnd {
    /// Of repository and number.
    pub request: Digest,
    /// When it was closed, by its host's clock.
    pub at: Timestamp,
}

impl PullEnd {
    /// The end of the pull request with this number, of a repository whose name is one whatever its case.
    #[must_use]
    pub fn of(repository: &str, number: i64, at: Timestamp) -> Self {
        Self { request: Digest::of(format!("{}#{number}", repository.to_ascii_lowercase())), at }
    }
}

impl TaskOutcome {
    /// Whether the end of a pull request, which comes to `status`, takes the place of this. What a key has reported stays. Of one pull
    /// request the later end counts, in whichever order they are told. What another has come to leaves what was accepted as it is: whoever
    /// may name a task could have it thrown away.
    #[must_use]
    pub fn gives_way_to(&self, status: TaskStatus, ended: Option<&PullEnd>) -> bool {
        if !self.by_integration || self.status == status {
            return false;
        }
        match self.pull.as_ref().zip(ended) {
            Some((before, now)) if before.request == now.request => now.at > before.at,
            _ => self.status != TaskStatus::Accepted,
        }
    }
}

/// Where an outcome is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// The model, as `provider/model`; absent where no call was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Box<str>>,
    /// The provider of that model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamId>,
    /// What the task had come to.
    pub spent: MicroUsd,
    /// The day whose sums have it, in the workspace's zone, counted from 1970-01-01.
    pub day: i64,
    /// The day it was reported on, counted alike.
    pub reported_on: i64,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Its result was taken.
    Accepted,
    /// Its result was thrown away.
    Rejected,
    /// Some of its result was taken.
    Partial,
    /// Nobody waited for its result.
    Abandoned,
}

words! { TaskStatus;
    Accepted "accepted";
    Rejected "rejected";
    Partial "partial";
    Abandoned "abandoned";
}

impl Task {
    /// The row for these two.
    #[must_use]
    pub fn key_of(workspace: WorkspaceId, id: &TaskId) -> TaskKey {
        TaskKey::of(&[&workspace.bits().to_be_bytes(), id.as_str().as_bytes()])
    }
}

impl Linked for Task {
    fn links(&self) -> Vec<Link> {
        let order = Order::At(instant_order(self.created_at));
        vec![Link { index: Index::TasksOf, prefix: self.workspace.bits(), order }]
    }
}
