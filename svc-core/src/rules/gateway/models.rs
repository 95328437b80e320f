//! Models: made, changed, removed.

use std::collections::{BTreeMap, BTreeSet};

use super::named;
use super::routing::{Work, stamp};
use super::told::ToldModel;
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::named::{Named, fault, faults as faults_of};
use crate::rules::people::taken;
use crate::state::evidence::Subject;
use crate::state::gateway::listing::{ModelListing, find};
use crate::state::gateway::{Capability, Figures, Model, Prices, Quality, Retention, Upstream};
use crate::turn::Halt;
use crate::value::id::UpstreamId;
use crate::value::text::{ModelName, NO_DOTS, is_dots};

/// Models of one workspace.
pub const MODELS_MAX: usize = 2_000;
/// Tokens that a model takes in where nothing is known of it.
pub const CONTEXT_WINDOW: u64 = 128_000;
/// Tokens that a model answers at most where nothing is known of it.
pub const MAX_OUTPUT: u64 = 8_192;
/// The quality of a model of which nothing is known.
pub const QUALITY: u8 = 50;
/// The law that a model runs under where nobody says.
pub const UNKNOWN_LAW: &str = "unknown";

/// A wish for a model. What is not set is as `known` has it, else as nothing were known.
#[derive(Clone, Debug)]
pub struct NewModel {
    /// Its provider.
    pub upstream: UpstreamId,
    /// Its id there.
    pub name: ModelName,
    /// What the catalogue knows of a model of this name.
    pub known: Vec<Set>,
    /// What is wished.
    pub set: Vec<Set>,
}

/// By what a model is found: its provider's name and its own id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The provider's name.
    pub provider: Box<str>,
    /// The model's id.
    pub model: Box<str>,
}

/// One setting of a model.
#[derive(Clone, Debug)]
pub enum Set {
    /// Further names.
    Aliases(BTreeSet<ModelName>),
    /// Under whose law it runs; `None` is its provider's.
    Jurisdiction(Option<Box<str>>),
    /// How many tokens it takes in.
    ContextWindow(u64),
    /// How many it answers at most.
    MaxOutput(u64),
    /// What it can do.
    Capabilities(BTreeSet<Capability>),
    /// How long what it was sent is kept.
    Retention(Retention),
    /// How good it is.
    Quality(Quality),
    /// What it costs.
    Prices(Option<Box<Prices>>),
    /// How many tokens it makes of what is not text.
    Figures(Figures),
    /// Whether calls may go to it.
    Enabled(bool),
}

pub(super) fn create(work: &mut Work<'_, '_>, new: &NewModel) -> Result<(), Halt> {
    let upstream = work.routing.upstream(new.upstream).cloned();
    let named = Named::Upstream(new.upstream);
    let mut faults = Vec::from_iter(fault(work.scope, work.routing.workspace, "upstreamId", &named)?);
    if is_dots(new.name.as_str()) {
        faults.push(FieldError::new("id", NO_DOTS));
    }
    if work.routing.models.len() >= MODELS_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {MODELS_MAX} models")));
    }
    let law = upstream.as_ref().and_then(|it| it.jurisdiction.clone()).unwrap_or_else(|| UNKNOWN_LAW.into());
    let (created_by, created_at) = stamp(work);
    let mut made = Model {
        name: new.name.clone(),
        upstream: new.upstream,
        aliases: BTreeSet::new(),
        jurisdiction: law,
        context_window: CONTEXT_WINDOW,
        max_output: MAX_OUTPUT,
        capabilities: [Capability::Tools, Capability::Streaming].into(),
        retention: Retention::Days(None),
        quality: Quality { general: QUALITY, by_class: BTreeMap::new() },
        prices: None,
        figures: Figures::default(),
        enabled: true,
        created_by,
        created_at,
    };
    let known = known(work, upstream.as_ref(), new)?;
    apply(work, &mut made, &known);
    apply(work, &mut made, &new.known);
    apply(work, &mut made, &new.set);
    if !new.set.iter().any(|it| matches!(it, Set::MaxOutput(_))) {
        made.max_output = made.max_output.min(made.context_window);
    }
    faults.extend(wrong(work, &made, None)?);
    faults.extend(named::misleading(&work.routing, None, &made));
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let subject = subject(work, &made);
    work.created("model.created", subject, &ToldModel::of(&made), &[])?;
    work.routing.models.push(made);
    Ok(())
}

/// What the catalogue knows of a model of this name: what the workspace added to it, else the shipped table. A law that the
/// provider itself names goes before the catalogue's.
fn known(work: &mut Work<'_, '_>, upstream: Option<&Upstream>, new: &NewModel) -> Result<Vec<Set>, Halt> {
    let own = work.scope.get::<ModelListing>(work.routing.workspace)?;
    let Some(upstream) = upstream else { return Ok(Vec::new()) };
    let own = own.as_ref().map(|it| &it.listing);
    let Some(listed) = find(own, upstream.name.as_str(), new.name.as_str()) else { return Ok(Vec::new()) };
    let mut known = Vec::new();
    let law = listed.jurisdiction.clone().filter(|_| upstream.jurisdiction.is_none());
    known.extend(law.map(|it| Set::Jurisdiction(Some(it))));
    known.extend(listed.context_window.map(Set::ContextWindow));
    known.extend(listed.max_output.map(Set::MaxOutput));
    known.extend(listed.capabilities.clone().map(Set::Capabilities));
    known.extend(listed.retention.map(Set::Retention));
    let mut quality = listed.quality.clone();
    if let Some(quality) = &mut quality {
        quality.by_class.retain(|class, _| work.routing.class(class).is_some());
    }
    known.extend(quality.map(Set::Quality));
    known.extend(listed.figures.map(Set::Figures));
    known.extend(listed.prices.clone().map(|it| Set::Prices(Some(Box::new(it)))));
    Ok(known)
}

pub(super) fn change(work: &mut Work<'_, '_>, place: &Place, set: &[Set]) -> Result<(), Halt> {
    let before = found(work, place)?;
    let mut after = before.clone();
    apply(work, &mut after, set);
    let mut faults = wrong(work, &after, Some(&before))?;
    faults.extend(named::misleading(&work.routing, Some(&before), &after));
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let subject = subject(work, &after);
    work.changed("model.changed", subject, &ToldModel::of(&before), &ToldModel::of(&after), &[])?;
    for it in &mut work.routing.models {
        if it.upstream == before.upstream && it.name == before.name {
            it.clone_from(&after);
        }
    }
    Ok(())
}

pub(super) fn remove(work: &mut Work<'_, '_>, place: &Place) -> Result<(), Halt> {
    let gone = found(work, place)?;
    named::model_is_free(&work.routing, &gone)?;
    named::forget(work, &gone)?;
    let subject = subject(work, &gone);
    work.removed("model.removed", subject);
    work.routing.models.retain(|it| it.upstream != gone.upstream || it.name != gone.name);
    Ok(())
}

/// Takes a provider's law, which it has already, into its models that were under the one before: they have it from there, or say
/// the same.
pub(super) fn follow(work: &mut Work<'_, '_>, id: UpstreamId, old: Option<&str>) -> Result<(), Halt> {
    let Some(new) = work.routing.upstream(id).map(|it| it.jurisdiction.clone()) else { return Ok(()) };
    if new.as_deref() == old {
        return Ok(());
    }
    let (old, new) = (old.unwrap_or(UNKNOWN_LAW), new.unwrap_or_else(|| UNKNOWN_LAW.into()));
    let mut models = work.routing.models.clone();
    for model in models.iter_mut().filter(|it| it.upstream == id && *it.jurisdiction == *old) {
        let before = model.clone();
        model.jurisdiction.clone_from(&new);
        let subject = subject(work, model);
        work.changed("model.changed", subject, &ToldModel::of(&before), &ToldModel::of(model), &[])?;
    }
    work.routing.models = models;
    Ok(())
}

fn found(work: &Work<'_, '_>, place: &Place) -> Result<Model, Refusal> {
    let found = work.routing.model(&place.provider, &place.model);
    found.map(|(model, _)| model.clone()).ok_or_else(Refusal::not_found)
}

/// What a record of a model is about.
fn subject(work: &Work<'_, '_>, model: &Model) -> Subject {
    let provider = work.routing.upstream(model.upstream).map_or("", |it| it.name.as_str());
    Subject::Model(format!("{provider}/{}", model.name).into())
}

/// What is wrong with a model among the others; `own` is what it was.
fn wrong(work: &mut Work<'_, '_>, model: &Model, own: Option<&Model>) -> Result<Vec<FieldError>, Halt> {
    let mut faults = Vec::new();
    let beside = work.routing.models.iter().filter(|it| it.upstream == model.upstream);
    let beside = beside.filter(|it| own.is_none_or(|own| own.name != it.name));
    for other in beside {
        if other.name == model.name {
            faults.push(FieldError::new("id", taken::MODEL));
        }
        if model.aliases.contains(&other.name) || model.aliases.iter().any(|it| other.aliases.contains(it)) {
            faults.push(FieldError::new("aliases", taken::ALIAS));
        }
    }
    if model.aliases.contains(&model.name) {
        faults.push(FieldError::new("aliases", "holds the model's own id"));
    }
    if model.max_output > model.context_window {
        faults.push(FieldError::new("maxOutput", "must be at most `contextWindow`"));
    }
    let is_new = |class: &_| own.is_none_or(|own| !own.quality.by_class.contains_key(class));
    let classes = model.quality.by_class.keys().filter(|it| is_new(it));
    let named = classes.map(|it| (format!("quality.{it}"), Named::TaskClass(it.clone())));
    faults.extend(faults_of(work.scope, work.routing.workspace, &named.collect::<Vec<_>>())?);
    Ok(faults)
}

fn apply(work: &Work<'_, '_>, to: &mut Model, set: &[Set]) {
    for one in set {
        match one {
            Set::Aliases(it) => to.aliases.clone_from(it),
            Set::Jurisdiction(it) => {
                let inherited = || work.routing.upstream(to.upstream).and_then(|it| it.jurisdiction.clone());
                to.jurisdiction = it.clone().or_else(inherited).unwrap_or_else(|| UNKNOWN_LAW.into());
            }
            Set::ContextWindow(it) => to.context_window = *it,
            Set::MaxOutput(it) => to.max_output = *it,
            Set::Capabilities(it) => to.capabilities.clone_from(it),
            Set::Retention(it) => to.retention = *it,
            Set::Quality(it) => to.quality.clone_from(it),
            Set::Prices(it) => to.prices = it.as_deref().cloned(),
            Set::Figures(it) => to.figures = *it,
            Set::Enabled(it) => to.enabled = *it,
        }
    }
}
