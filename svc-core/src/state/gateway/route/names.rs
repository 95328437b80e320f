//! What names of models mean.

use std::collections::BTreeMap;

use super::{Candidate, Circuit};
use crate::state::gateway::catalogue::{Model, Upstream};
use crate::state::gateway::routing::Mode;
use crate::value::nearest;

/// Why a requested model is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// No model of the workspace has this name.
    Unknown {
        /// The name that was probably meant.
        nearest: Option<Box<str>>,
    },
    /// The model, or its provider, is switched off, and nothing else has its name.
    Off,
}

/// Whether a name is one of this model at its provider: its id or an alias, with the provider before it or alone. Another model may
/// have it too.
#[must_use]
pub fn is_named(name: &str, model: &Model, upstream: &Upstream) -> bool {
    let is_own = |it: &str| it == model.name.as_str() || has_alias(model, it);
    is_own(name) || bare(name, upstream).is_some_and(is_own)
}

/// What a name has behind this provider's own.
fn bare<'a>(name: &'a str, upstream: &Upstream) -> Option<&'a str> {
    name.strip_prefix(upstream.name.as_str())?.strip_prefix('/')
}

/// What a name means: `provider/model` first, else the bare id at every provider that has it, else an alias. Of several,
/// those with an open circuit come last, else the workspace's order holds.
pub(super) fn resolve<'a>(name: &str, mode: Mode, all: &[Candidate<'a>]) -> Result<Vec<Candidate<'a>>, NotServed> {
    let meant = |by: fn(&str, &Model, &Upstream) -> bool| {
        let found: Vec<_> = all.iter().filter(|it| by(name, it.model, it.upstream)).copied().collect();
        (!found.is_empty()).then_some(found)
    };
    let found = meant(|name, model, upstream| {
        bare(name, upstream).is_some_and(|bare| bare == model.name.as_str() || has_alias(model, bare))
    })
    .or_else(|| meant(|name, model, _| name == model.name.as_str()))
    .or_else(|| meant(|name, model, _| has_alias(model, name)));
    let Some(mut found) = found else { return Err(NotServed::Unknown { nearest: likely(name, all) }) };
    found.retain(Candidate::is_on);
    if found.is_empty() && mode == Mode::Shadow {
        return Err(NotServed::Off);
    }
    found.sort_by_key(|it| it.circuit == Circuit::Open);
    Ok(found)
}

fn has_alias(model: &Model, name: &str) -> bool {
    model.aliases.iter().any(|it| it.as_str() == name)
}

/// The name that was probably meant: as it was written, with the provider or without.
fn likely(name: &str, all: &[Candidate<'_>]) -> Option<Box<str>> {
    let qualified: Vec<String> =
        if name.contains('/') { all.iter().map(ToString::to_string).collect() } else { Vec::new() };
    let bare = all.iter().map(|it| it.model.name.as_str());
    let aliases = all.iter().flat_map(|it| it.model.aliases.iter().map(|it| it.as_str()));
    nearest::nearest(name, qualified.iter().map(String::as_str).chain(bare).chain(aliases)).map(Into::into)
}

/// A list of models by name, looked up in logarithmic time. The place of a name is its first in the list.
pub(super) struct NameList<'a> {
    /// Whole entries: bare ids and aliases.
    bare: BTreeMap<&'a str, usize>,
    /// Entries cut at their first slash.
    qualified: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> NameList<'a> {
    pub(super) fn new(names: &'a [Box<str>]) -> Self {
        let mut list = Self { bare: BTreeMap::new(), qualified: BTreeMap::new() };
        for (place, name) in names.iter().enumerate() {
            list.bare.entry(name).or_insert(place);
            if let Some(parts) = name.split_once('/') {
                list.qualified.entry(parts).or_insert(place);
            }
        }
        list
    }

    /// Where a model stands in the list, by whichever of its names comes first.
    pub(super) fn place(&self, model: &Model, upstream: &Upstream) -> Option<usize> {
        let names = std::iter::once(&model.name).chain(&model.aliases);
        let places = names.flat_map(|name| {
            let bare = self.bare.get(name.as_str());
            [bare, self.qualified.get(&(upstream.name.as_str(), name.as_str()))].into_iter().flatten().copied()
        });
        places.min()
    }
}
