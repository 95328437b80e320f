//! Classes of tasks: made, changed, removed.

use std::collections::BTreeSet;

use super::routing::{Work, stamp};
use super::told::ToldClass;
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::named::{Named, faults as faults_of};
use crate::rules::people::taken;
use crate::state::evidence::Subject;
use crate::state::gateway::{BudgetScope, Capability, Constraints, Objective, TaskClass};
use crate::turn::Halt;
use crate::value::MicroUsd;
use crate::value::text::{ClassId, Label};

/// Classes of one workspace.
pub const CLASSES_MAX: usize = 500;

/// One setting of a class.
#[derive(Clone, Debug)]
pub enum Set {
    /// What people call it.
    Name(Option<Label>),
    /// One of its constraints.
    Limit(Limit),
}

/// One constraint of a class or a profile; an empty one is none.
#[derive(Clone, Debug)]
pub enum Limit {
    /// Only these models, the most wanted first.
    Models(Vec<Box<str>>),
    /// Only these providers.
    Providers(Vec<Box<str>>),
    /// Only under these laws.
    Jurisdictions(BTreeSet<Box<str>>),
    /// Whether nothing sent may be kept.
    NoRetention(bool),
    /// What it must be able to do.
    Capabilities(BTreeSet<Capability>),
    /// The least quality.
    MinQuality(Option<u8>),
    /// The most that a call may cost.
    MaxCost(Option<MicroUsd>),
    /// The longest usual time to the first token, in milliseconds.
    MaxLatencyMs(Option<u64>),
    /// Whether a person must have acknowledged their oversight.
    HumanOversight(bool),
    /// What to favour.
    Objective(Option<Objective>),
}

impl Limit {
    /// What it names, each by its place: a misspelt limit would admit nothing, or whatever is called so one day.
    fn named(&self) -> Vec<(String, Named)> {
        let places = |names: &[Box<str>], field: &str, make: fn(Box<str>) -> Named| {
            names.iter().enumerate().map(|(at, it)| (format!("{field}.{at}"), make(it.clone()))).collect()
        };
        match self {
            Self::Models(names) => places(names, "models", Named::Model),
            Self::Providers(names) => places(names, "providers", Named::Provider),
            Self::Jurisdictions(_)
            | Self::NoRetention(_)
            | Self::Capabilities(_)
            | Self::MinQuality(_)
            | Self::MaxCost(_)
            | Self::MaxLatencyMs(_)
            | Self::HumanOversight(_)
            | Self::Objective(_) => Vec::new(),
        }
    }

    /// What these name that the workspace has not.
    pub(super) fn faults<'l>(
        work: &mut Work<'_, '_>,
        limits: impl Iterator<Item = &'l Self>,
    ) -> Result<Vec<FieldError>, Halt> {
        faults_of(work.scope, work.routing.workspace, &limits.flat_map(Self::named).collect::<Vec<_>>())
    }

    /// Puts it in force.
    pub(super) fn apply(&self, to: &mut Constraints) {
        match self {
            Self::Models(it) => to.models.clone_from(it),
            Self::Providers(it) => to.providers = it.iter().cloned().collect(),
            Self::Jurisdictions(it) => to.jurisdictions.clone_from(it),
            Self::NoRetention(it) => to.no_retention = *it,
            Self::Capabilities(it) => to.capabilities.clone_from(it),
            Self::MinQuality(it) => to.min_quality = *it,
            Self::MaxCost(it) => to.max_cost = *it,
            Self::MaxLatencyMs(it) => to.max_latency_ms = *it,
            Self::HumanOversight(it) => to.human_oversight = *it,
            Self::Objective(it) => to.objective = *it,
        }
    }
}

pub(super) fn create(work: &mut Work<'_, '_>, id: &ClassId, set: &[Set]) -> Result<(), Halt> {
    let mut faults = Vec::new();
    if work.routing.class(id).is_some() {
        faults.push(FieldError::new("id", taken::CLASS));
    }
    if work.routing.classes.len() >= CLASSES_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {CLASSES_MAX} task classes")));
    }
    faults.extend(unknown(work, set)?);
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let (created_by, created_at) = stamp(work);
    let mut made =
        TaskClass { id: id.clone(), name: None, constraints: Constraints::default(), created_by, created_at };
    apply(&mut made, set);
    let name: Vec<_> = made.name.iter().map(|it| ("name", it.as_str())).collect();
    work.created("task_class.created", Subject::TaskClass(id.clone()), &ToldClass::of(&made), &name)?;
    work.routing.classes.push(made);
    Ok(())
}

pub(super) fn change(work: &mut Work<'_, '_>, id: &ClassId, set: &[Set]) -> Result<(), Halt> {
    let before = work.routing.class(id).cloned().ok_or_else(Refusal::not_found)?;
    let faults = unknown(work, set)?;
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let mut after = before.clone();
    apply(&mut after, set);
    let (old, new) = (ToldClass::of(&before), ToldClass::of(&after));
    work.changed("task_class.changed", Subject::TaskClass(id.clone()), &old, &new, &names(&before, &after))?;
    for it in &mut work.routing.classes {
        if it.id == *id {
            it.clone_from(&after);
        }
    }
    Ok(())
}

pub(super) fn remove(work: &mut Work<'_, '_>, id: &ClassId) -> Result<(), Halt> {
    work.routing.class(id).ok_or_else(Refusal::not_found)?;
    if work.routing.default_class.as_ref() == Some(id) {
        return Err(Refusal::not_allowed("it is the default task class of this workspace").into());
    }
    work.unbound(|key| key.class.as_ref() == Some(id))?;
    work.unbudgeted(&BudgetScope::TaskClass(id.clone()))?;
    work.removed("task_class.removed", Subject::TaskClass(id.clone()));
    work.routing.classes.retain(|it| it.id != *id);
    Ok(())
}

fn unknown(work: &mut Work<'_, '_>, set: &[Set]) -> Result<Vec<FieldError>, Halt> {
    Limit::faults(work, set.iter().filter_map(|it| if let Set::Limit(limit) = it { Some(limit) } else { None }))
}

fn apply(to: &mut TaskClass, set: &[Set]) {
    for one in set {
        match one {
            Set::Name(it) => to.name.clone_from(it),
            Set::Limit(it) => it.apply(&mut to.constraints),
        }
    }
}

/// What people called it and call it now, where that changed.
fn names<'a>(before: &'a TaskClass, after: &'a TaskClass) -> Vec<(&'static str, &'a str)> {
    if before.name == after.name {
        return Vec::new();
    }
    let sides = [("new.name", &after.name), ("old.name", &before.name)];
    sides.into_iter().filter_map(|(path, name)| Some((path, name.as_ref()?.as_str()))).collect()
}
