//! What is known of models before anybody says: a small dated table that is shipped, and what a file added to it.
//!
//! **Invariant:** a price that a file has is taken from its decimal text; none is ever a float.
//! **Invariant:** what a workspace set on a model itself is never changed by a table.

mod decimal;
mod own;
mod widespread;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Capability, Figures, Prices, Quality, Retention};
use crate::refusal::FieldError;
use crate::value::Timestamp;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;
use crate::value::link::{Link, Linked};

/// Models of one table.
pub const LISTED_MAX: usize = 10_000;

/// What a table says of a model; what it does not say is as if nothing were known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listed {
    /// Further names under which it is looked up.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub aliases: BTreeSet<Box<str>>,
    /// Under whose law its maker's own endpoint runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jurisdiction: Option<Box<str>>,
    /// How many tokens it takes in, its own output included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How many tokens it answers at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// What it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<BTreeSet<Capability>>,
    /// How long what it was sent is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
    /// How good it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// How many tokens it makes of what is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// A table of models.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listing {
    /// The day as of which it holds, as it says itself: `2026-11-21`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<Box<str>>,
    /// Models by id, some with their provider before it.
    pub models: BTreeMap<Box<str>, Listed>,
}

/// What a workspace knows of models beyond the shipped table: what files added, one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelListing {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What it knows.
    pub listing: Listing,
    /// When that last changed.
    pub updated_at: Timestamp,
}

impl Linked for ModelListing {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// A file that was read: its models, and those that were left out, each with why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it says.
    pub listing: Listing,
    /// Ids that were left out, and why.
    pub skipped: Vec<(Box<str>, &'static str)>,
}

/// The table of this release. Prices are as their providers published them on its date.
#[must_use]
pub fn shipped() -> &'static Listing {
    static SHIPPED: LazyLock<Listing> = LazyLock::new(|| {
        let json = Json::parse(include_bytes!("models.json")).unwrap_or(Json::Null);
        own::read(&json).unwrap_or_default()
    });
    &SHIPPED
}

/// Reads a table: the shape of the shipped one, or the widespread one that maps ids to `input_cost_per_token` and the
/// like.
///
/// # Errors
/// Every fault of it with its dotted path; then nothing of it counts.
pub fn read(text: &str) -> Result<Reading, Vec<FieldError>> {
    let json = Json::parse(text.as_bytes()).map_err(|why| vec![FieldError::whole(format!("the file {why}"))])?;
    if json.get("models").is_some_and(|it| it.as_list().is_some()) {
        return own::read(&json).map(|listing| Reading { listing, skipped: Vec::new() });
    }
    let is_own = |members: &[(String, Json)]| {
        !members.is_empty() && members.iter().all(|(name, _)| own::TABLE.contains(&name.as_str()))
    };
    if json.as_object().is_some_and(is_own) {
        return Err(vec![FieldError::whole("the file has no list `models`")]);
    }
    widespread::read(text)
}

/// What is known of a model of this name at a provider of this name: by what a file added, else by the shipped table.
/// A name with a day or a version behind it, such as `-2026-09-22`, `-20260922` or `@001`, is that of the model without.
#[must_use]
pub fn find<'a>(added: Option<&'a Listing>, provider: &str, model: &str) -> Option<&'a Listed> {
    added.and_then(|it| it.get(provider, model)).or_else(|| shipped().get(provider, model))
}

impl Listing {
    /// What this table knows of a model.
    #[must_use]
    pub fn get(&self, provider: &str, model: &str) -> Option<&Listed> {
        let by_name = |name: &str| {
            let full = format!("{provider}/{name}");
            self.models.get(full.as_str()).or_else(|| self.models.get(name)).or_else(|| {
                self.models.values().find(|it| it.aliases.contains(name) || it.aliases.contains(full.as_str()))
            })
        };
        by_name(model).or_else(|| by_name(undated(model)?))
    }
}

/// The name without a day or a version behind it.
fn undated(model: &str) -> Option<&str> {
    let is_digits = |it: &str, length: usize| it.len() == length && it.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((name, version)) = model.split_once('@') {
        return (!name.is_empty() && !version.is_empty()).then_some(name);
    }
    if let Some((name, day)) = model.rsplit_once('-').filter(|(_, it)| is_digits(it, 8)) {
        return (!name.is_empty() && day.starts_with("20")).then_some(name);
    }
    let (rest, day) = model.rsplit_once('-').filter(|(_, it)| is_digits(it, 2))?;
    let (rest, _) = rest.rsplit_once('-').filter(|(_, it)| is_digits(it, 2))?;
    let (name, year) = rest.rsplit_once('-').filter(|(_, it)| is_digits(it, 4))?;
    (!name.is_empty() && !day.is_empty() && year.starts_with("20")).then_some(name)
}

#[cfg(test)]
mod tests;
