//! By what a workspace routes: one row, so that a decision reads it whole and at one moment.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::catalogue::{Capability, Model, Upstream};
use crate::state::people::Maker;
use crate::value::id::{ProfileId, WorkspaceId};
use crate::value::link::{Link, Linked};
use crate::value::text::{ClassId, Label, Source};
use crate::value::words::words;
use crate::value::{MicroUsd, Timestamp};

/// Whether routing and budgets act or only tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A call goes to the model it names; what policy would have done is told.
    #[default]
    Shadow,
    /// A call is routed under policy and checked against budgets first.
    Enforce,
}

words! {
    Mode;
    Shadow "shadow";
    Enforce "enforce";
}

/// What a choice among models is to favour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// All of it together.
    #[default]
    Balanced,
    /// Price.
    Cost,
    /// Quality.
    Quality,
    /// Speed.
    Latency,
    /// Jurisdiction and retention.
    Sovereign,
}

/// What a model must satisfy; a class's and a profile's hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    /// Only these models, the most wanted first: `provider/model`, bare ids or aliases. Empty: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Box<str>>,
    /// Only these providers. Empty: any.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub providers: BTreeSet<Box<str>>,
    /// Only under these laws. Empty: any.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub jurisdictions: BTreeSet<Box<str>>,
    /// Whether nothing sent may be kept.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub no_retention: bool,
    /// What it must be able to do beyond what the request needs.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub capabilities: BTreeSet<Capability>,
    /// The least quality, 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_quality: Option<u8>,
    /// The most that one call may cost by its worst case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<MicroUsd>,
    /// The longest usual time to the first token, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency_ms: Option<u64>,
    /// Whether a person must have acknowledged their oversight.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub human_oversight: bool,
    /// What to favour where the call says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
}

/// A class of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClass {
    /// Its id.
    pub id: ClassId,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// What its models must satisfy.
    #[serde(default)]
    pub constraints: Constraints,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A policy profile: what holds for the keys bound to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Its id.
    pub id: ProfileId,
    /// What people call it.
    pub name: Label,
    /// Its own mode, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// What its models must satisfy.
    #[serde(default)]
    pub constraints: Constraints,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What a tool's results count as, and whether calling it is a sink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRule {
    /// A glob over the tool's folded name: lower case, without `_` and `-`. One like `mcp__server__tool` has two parts, each over its own.
    pub tool: Box<str>,
    /// The source that its results bring in.
    pub source: Source,
    /// Whether an action that calls it is a sink.
    #[serde(default)]
    pub sink: bool,
}

/// What a workspace routes by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Routing {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Whether it acts.
    #[serde(default)]
    pub mode: Mode,
    /// What to favour where neither the call nor its class says.
    #[serde(default)]
    pub objective: Objective,
    /// The class of calls that name none and whose key has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_class: Option<ClassId>,
    /// What tools bring in; `None` is the default table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolRule>>,
    /// Its providers, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Upstream>,
    /// Their models, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
    /// Its classes of tasks, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<TaskClass>,
    /// Its policy profiles, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
}

impl Linked for Routing {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

impl Routing {
    /// How a workspace begins.
    #[must_use]
    pub fn new(workspace: WorkspaceId) -> Self {
        Self {
            workspace,
            mode: Mode::Shadow,
            objective: Objective::Balanced,
            default_class: None,
            tools: None,
            upstreams: Vec::new(),
            models: Vec::new(),
            classes: Vec::new(),
            profiles: Vec::new(),
        }
    }
}
