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

/// By what a name means a model. What means one by the first means none by those after it, wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meant {
    /// By its provider, and its id or an alias there.
    Qualified,
    /// By its id alone.
    Id,
    /// By an alias alone.
    Alias,
}

/// By what a name means this model at its provider, where it does. Another model may have it too.
#[must_use]
pub fn meant(name: &str, model: &Model, upstream: &Upstream) -> Option<Meant> {
    let is_id = |it: &str| it == model.name.as_str();
    if bare(name, upstream).is_some_and(|it| is_id(it) || has_alias(model, it)) {
        return Some(Meant::Qualified);
    }
    if is_id(name) { Some(Meant::Id) } else { has_alias(model, name).then_some(Meant::Alias) }
}

/// Whether a name is one of this model at its provider: its id or an alias, with the provider before it or alone. Another model may
/// have it too.
#[must_use]
pub fn is_named(name: &str, model: &Model, upstream: &Upstream) -> bool {
    meant(name, model, upstream).is_some()
}

/// What a name has behind this provider's own.
fn bare<'a>(name: &'a str, upstream: &Upstream) -> Option<&'a str> {
    name.strip_prefix(upstream.name.as_str())?.strip_prefix('/')
}

/// What a name means: `provider/model` first, else the bare id at every provider that has it, else an alias. Of several,
/// those with an open circuit come last, else the workspace's order holds.
pub(super) fn resolve<'a>(name: &str, mode: Mode, all: &[Candidate<'a>]) -> Result<Vec<Candidate<'a>>, NotServed> {
    let by = |it: &Candidate<'_>| meant(name, it.model, it.upstream);
    let Some(first) = all.iter().filter_map(by).min() else {
        return Err(NotServed::Unknown { nearest: likely(name, all) });
    };
    let mut found: Vec<_> = all.iter().filter(|it| by(it) == Some(first)).copied().collect();
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

/// A list of models by name, looked up in logarithmic time. The place of a name is its first in the list, and a name there means what
/// it means in a call.
pub(super) struct NameList<'a> {
    /// Whole entries: bare ids and aliases.
    bare: BTreeMap<&'a str, usize>,
    /// Entries cut at their first slash.
    qualified: BTreeMap<(&'a str, &'a str), usize>,
    /// By what each entry means models, where it means any.
    meant: Vec<Option<Meant>>,
}

impl<'a> NameList<'a> {
    pub(super) fn new<'b>(names: &'a [Box<str>], models: impl Iterator<Item = (&'b Model, &'b Upstream)>) -> Self {
        let meant = vec![None; names.len()];
        let mut list = Self { bare: BTreeMap::new(), qualified: BTreeMap::new(), meant };
        for (place, name) in names.iter().enumerate() {
            list.bare.entry(name).or_insert(place);
            if let Some(parts) = name.split_once('/') {
                list.qualified.entry(parts).or_insert(place);
            }
        }
        if names.is_empty() {
            return list;
        }
        for (model, upstream) in models {
            let found: Vec<_> = list.entries(model, upstream).collect();
            for (place, by) in found {
                if let Some(first) = list.meant.get_mut(place) {
                    *first = Some(first.map_or(by, |it| it.min(by)));
                }
            }
        }
        list
    }

    /// Where a model stands in the list, by whichever of its names comes first.
    pub(super) fn place(&self, model: &Model, upstream: &Upstream) -> Option<usize> {
        let is_meant = |(place, by): &(usize, Meant)| self.meant.get(*place) == Some(&Some(*by));
        self.entries(model, upstream).filter(is_meant).map(|(place, _)| place).min()
    }

    /// The entries that a model's names are, and by what each would mean it.
    fn entries(&self, model: &Model, upstream: &Upstream) -> impl Iterator<Item = (usize, Meant)> {
        let aliases = model.aliases.iter().map(|it| (it, Meant::Alias));
        std::iter::once((&model.name, Meant::Id)).chain(aliases).flat_map(move |(name, by)| {
            let bare = self.bare.get(name.as_str()).map(|it| (*it, by));
            let qualified = self.qualified.get(&(upstream.name.as_str(), name.as_str()));
            [bare, qualified.map(|it| (*it, Meant::Qualified))].into_iter().flatten()
        })
    }
}
