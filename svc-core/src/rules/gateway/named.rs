//! What classes and profiles name: providers by their names, models by theirs. A provider's new name is taken into every list that
//! has the old one, and what is named stays.
//!
//! **Invariant:** no list comes to mean another provider than whoever wrote it meant: a name that one has, and no provider bears, is
//! given to none, and nothing gets a name that would take an entry from the models which it means.

use super::routing::Work;
use super::told::{ToldClass, ToldProfile};
use crate::refusal::{FieldError, Refusal};
use crate::state::evidence::Subject;
use crate::state::gateway::route::Meant;
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

/// Lets go of what a model has yielded that is to go: another that is made under its name has yielded nothing yet.
pub(super) fn forget(work: &mut Work<'_, '_>, gone: &Model) -> Result<(), Halt> {
    let Some(provider) = work.routing.upstream(gone.upstream).map(|it| it.name.clone()) else { return Ok(()) };
    if let Some(yields) = work.scope.get::<Yields>(work.routing.workspace)? {
        let after = Yields::clone(&yields).without(&format!("{provider}/{}", gone.name));
        if after != *yields {
            work.scope.put(after);
        }
    }
    Ok(())
}

/// Constraints with a provider's new name in the place of its old one. An entry that means a model by its own id or alias stays.
fn renamed(routing: &Routing, asked: &Constraints, id: UpstreamId, (old, new): (&str, &str)) -> Constraints {
    let mut after = asked.clone();
    if after.providers.remove(old) {
        after.providers.insert(new.into());
    }
    let bears = |model: &Model, name: &str| names(model).any(|it| it == name);
    let has = |name: &str| routing.models.iter().any(|it| it.upstream == id && bears(it, name));
    let entries = asked.models.iter().map(|entry| {
        let own = entry.strip_prefix(old).and_then(|it| it.strip_prefix('/'));
        let is_bare = || routing.models.iter().any(|it| bears(it, entry));
        let own = own.filter(|own| has(own) || !is_bare());
        own.map_or_else(|| entry.clone(), |own| format!("{new}/{own}").into())
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
        let names_it = |entry: &str| is_below(entry) && routing.meant(entry).is_none();
        it.providers.contains(name.as_str()) || it.models.iter().any(|entry| names_it(entry))
    })?;
    Some(FieldError::new("name", format!("is still that of a provider before in {who}: take it out there first")))
}

/// A fault of the name that a provider is to bear, where a list has it of models that bear it themselves, and would mean one of this
/// provider's from then on.
pub(super) fn taken_over(routing: &Routing, id: UpstreamId, name: &UpstreamName) -> Option<FieldError> {
    let has = |own: &str| routing.models.iter().any(|it| it.upstream == id && names(it).any(|it| it == own));
    let is_taken = |entry: &str| {
        let own = entry.strip_prefix(name.as_str()).and_then(|it| it.strip_prefix('/'));
        own.is_some_and(has) && routing.meant(entry).is_some_and(|it| it > Meant::Qualified)
    };
    let who = holder(routing, |it| it.models.iter().any(|entry| is_taken(entry)))?;
    Some(FieldError::new(
        "name",
        format!("would make {who} mean another model: name that with its provider there first"),
    ))
}

/// That no list names a model that is to go, and would mean none any more, or another.
///
/// # Errors
/// `not_allowed` naming the first that does.
pub(super) fn model_is_free(routing: &Routing, model: &Model) -> Result<(), Refusal> {
    match shifted(routing, Some(model), None) {
        Some((who, name)) => Err(Refusal::not_allowed(format!("{who} names it, as `{name}`"))),
        None => Ok(()),
    }
}

/// A fault of the names that a model is to have, where a list has one that would mean no model any more, or another than it does.
pub(super) fn misleading(routing: &Routing, before: Option<&Model>, after: &Model) -> Option<FieldError> {
    let (who, name) = shifted(routing, before, Some(after))?;
    let is_own = |it: &Model| routing.means(it, &name);
    let is_lost = before.and_then(is_own).is_some_and(|old| is_own(after).is_none_or(|new| old < new));
    if is_lost {
        return Some(FieldError::new("aliases", format!("must keep what {who} names: `{name}`")));
    }
    let is_alias = after.aliases.iter().any(|it| name.ends_with(it.as_str()));
    let clause =
        format!("would be what {who} names another model by, `{name}`: name that with its provider there first");
    Some(FieldError::new(if is_alias { "aliases" } else { "id" }, clause))
}

/// The first entry of a list that a model has the name of and that would mean no model any more, or others, if it became `after`; and
/// whose list that is.
fn shifted(routing: &Routing, before: Option<&Model>, after: Option<&Model>) -> Option<(String, Box<str>)> {
    let is_it = |it: &Model| before.is_some_and(|own| it.upstream == own.upstream && it.name == own.name);
    let is_shifted = |entry: &str| {
        let own = |model: Option<&Model>| model.and_then(|it| routing.means(it, entry));
        if own(before) == own(after) {
            return false;
        }
        let others = routing.models.iter().filter(|it| !is_it(it)).filter_map(|it| routing.means(it, entry)).min();
        let first = |own: Option<Meant>| own.into_iter().chain(others).min();
        let old = first(own(before));
        old.is_some() && old != first(own(after))
    };
    lists(routing).find_map(|(who, asked)| {
        let name = asked.models.iter().find(|it| is_shifted(it))?;
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
