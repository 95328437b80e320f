//! What classes and profiles name: providers by their names, models by theirs. A provider's new name is taken into every list that
//! has the old one, and what is named stays.
//!
//! **Invariant:** no list comes to mean another provider than whoever wrote it meant: a name that one has, and no provider bears, is
//! given to none.

use super::routing::Work;
use super::told::{ToldClass, ToldProfile};
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::Subject;
use crate::state::gateway::{Constraints, Model, Routing, Yields};
use crate::turn::Halt;
use crate::value::id::UpstreamId;
use crate::value::text::UpstreamName;

/// Takes a provider's new name, which it bears already, into every list that had the old one, and into what its models have yielded.
pub(super) fn rename(work: &mut Work<'_, '_>, id: UpstreamId, old: &UpstreamName) -> Result<(), Halt> {
    let Some(new) = work.routing.upstream(id).map(|it| it.name.clone()) else { return Ok(()) };
    if new == *old {
        return Ok(());
    }
    let before = work.routing.clone();
    let renamed = |asked: &Constraints| renamed(&before, asked, id, (old.as_str(), new.as_str()));
    for class in &before.classes {
        let mut after = class.clone();
        after.constraints = renamed(&class.constraints);
        let subject = Subject::TaskClass(class.id.clone());
        work.changed("task_class.changed", subject, &ToldClass::of(class), &ToldClass::of(&after), &[])?;
        work.routing.classes.iter_mut().filter(|it| it.id == class.id).for_each(|it| it.clone_from(&after));
    }
    for profile in &before.profiles {
        let mut after = profile.clone();
        after.constraints = renamed(&profile.constraints);
        let subject = Subject::Profile(profile.id);
        let sides = (ToldProfile::of(profile), ToldProfile::of(&after));
        work.changed("policy_profile.changed", subject, &sides.0, &sides.1, &[])?;
        work.routing.profiles.iter_mut().filter(|it| it.id == profile.id).for_each(|it| it.clone_from(&after));
    }
    if let Some(yields) = work.scope.get::<Yields>(before.workspace)? {
        let after = Yields::clone(&yields).renamed(old.as_str(), new.as_str());
        if after != *yields {
            work.scope.put(after);
        }
    }
    Ok(())
}

/// Constraints with a provider's new name in the place of its old one. What is a model's own id as well stays, too.
fn renamed(routing: &Routing, asked: &Constraints, id: UpstreamId, (old, new): (&str, &str)) -> Constraints {
    let mut after = asked.clone();
    if after.providers.remove(old) {
        after.providers.insert(new.into());
    }
    let bears = |model: &Model, name: &str| names(model).any(|it| it == name);
    let has = |name: &str| routing.models.iter().any(|it| it.upstream == id && bears(it, name));
    let entries = asked.models.iter().flat_map(|entry| {
        let own = entry.strip_prefix(old).and_then(|it| it.strip_prefix('/'));
        let is_bare = own.is_some() && routing.models.iter().any(|it| bears(it, entry));
        let new = own.filter(|own| !is_bare || has(own)).map(|own| format!("{new}/{own}").into());
        let stays = (own.is_none() || is_bare).then(|| entry.clone());
        stays.into_iter().chain(new)
    });
    after.models = entries.collect();
    after
}

/// That no list names a provider that is to go.
///
/// # Errors
/// `not_allowed` naming the first that does.
pub(super) fn provider_is_free(routing: &Routing, name: &UpstreamName) -> Result<(), Refusal> {
    match holder(routing, |it| it.providers.contains(name.as_str())) {
        Some(who) => Err(Refusal::not_allowed(format!("{who} names it"))),
        None => Ok(()),
    }
}

/// A fault of a name that a provider is to bear, where a list has it of one that is gone.
pub(super) fn kept_for(routing: &Routing, name: &UpstreamName) -> Option<FieldError> {
    if routing.upstreams.iter().any(|it| it.name == *name) {
        return None;
    }
    let is_below = |entry: &str| entry.strip_prefix(name.as_str()).is_some_and(|it| it.starts_with('/'));
    let who = holder(routing, |it| {
        let names_it = |entry: &str| is_below(entry) && !routing.names_a_model(entry);
        it.providers.contains(name.as_str()) || it.models.iter().any(|entry| names_it(entry))
    })?;
    Some(FieldError::new("name", format!("is still that of a provider before in {who}: take it out there first")))
}

/// That no list names a model that is to go, and would name none any more.
///
/// # Errors
/// `not_allowed` naming the first that does.
pub(super) fn model_is_free(routing: &Routing, model: &Model) -> Result<(), Refusal> {
    match lost(routing, model, None) {
        Some((who, name)) => Err(Refusal::not_allowed(format!("{who} names it, as `{name}`"))),
        None => Ok(()),
    }
}

/// A fault of the further names that a model is to have, where a list has one that it loses and that would be no model's.
pub(super) fn lost_alias(routing: &Routing, before: &Model, after: &Model) -> Option<FieldError> {
    let (who, name) = lost(routing, before, Some(after))?;
    Some(FieldError::new("aliases", format!("must keep what {who} names: `{name}`")))
}

/// The first list with a name of `before` that neither `after` nor another model has, and that name.
fn lost(routing: &Routing, before: &Model, after: Option<&Model>) -> Option<(String, Box<str>)> {
    let others = || routing.models.iter().filter(|it| it.upstream != before.upstream || it.name != before.name);
    let is_lost = |name: &str| {
        let stays = after.is_some_and(|it| routing.bears(it, name)) || others().any(|it| routing.bears(it, name));
        routing.bears(before, name) && !stays
    };
    lists(routing).find_map(|(who, asked)| {
        let name = asked.models.iter().find(|it| is_lost(it))?;
        Some((who(), name.clone()))
    })
}

fn holder(routing: &Routing, is_meant: impl Fn(&Constraints) -> bool) -> Option<String> {
    lists(routing).find(|(_, asked)| is_meant(asked)).map(|(who, _)| who())
}

/// What classes and profiles ask, each with how people know it.
fn lists(routing: &Routing) -> impl Iterator<Item = (Box<dyn Fn() -> String + '_>, &Constraints)> {
    let classes = routing.classes.iter().map(|it| {
        let who: Box<dyn Fn() -> String + '_> = Box::new(|| format!("task class `{}`", it.id));
        (who, &it.constraints)
    });
    let profiles = routing.profiles.iter().map(|it| {
        let who: Box<dyn Fn() -> String + '_> = Box::new(|| format!("policy profile `{}`", it.name));
        (who, &it.constraints)
    });
    classes.chain(profiles)
}

fn names(model: &Model) -> impl Iterator<Item = &str> {
    std::iter::once(&model.name).chain(&model.aliases).map(|it| it.as_str())
}
