//! What changes of a mandate's terms from one version to the next: only the members that are named.

use serde::{Deserialize, Serialize};

use super::kind::ActionPattern;
use super::mandate::{Count, Duplicates, Fields, Limits, Merchants, OnLimit, PerPeriod, Terms, Tools};
use crate::refusal::FieldError;
use crate::value::Timestamp;
use crate::value::currency::Currency;
use crate::value::domain::DomainPattern;
use crate::value::glob::ToolGlob;
use crate::value::text::Label;

/// A member that may be absent, and what becomes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Set<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It goes.
    Clear,
    /// It becomes this.
    To(T),
}

impl<T> Set<T> {
    /// Whether it stays as it is.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

impl<T: Clone> Set<T> {
    fn onto(&self, old: Option<T>) -> Option<T> {
        match self {
            Self::Keep => old,
            Self::Clear => None,
            Self::To(new) => Some(new.clone()),
        }
    }
}

/// What changes of a mandate's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TermsChange {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Label>,
    /// The types it covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actions: Option<Vec<ActionPattern>>,
    /// Amounts and counts.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub limits: Set<LimitsChange>,
    /// Who may be paid.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub merchants: Set<MerchantsChange>,
    /// Which fields may be shared.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub fields: Set<Fields>,
    /// Which tools may be called.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub tools: Set<ToolsChange>,
    /// What a possible duplicate brings about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicates: Option<Duplicates>,
    /// From when on it admits nothing.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub expires_at: Set<Timestamp>,
}

/// What changes of the amounts and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsChange {
    /// The currency of every amount.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub currency: Set<Currency>,
    /// The most one action may move.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub per_action: Set<i64>,
    /// The most a calendar period may see.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub per_period: Set<PerPeriod>,
    /// The most actions a calendar period may see.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub count: Set<Count>,
    /// Above it a person is asked.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub ask_above: Set<i64>,
    /// What reaching a limit brings about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
}

/// What changes of the lists of merchants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MerchantsChange {
    /// Only these.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub allow: Set<Vec<DomainPattern>>,
    /// Never these.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub deny: Set<Vec<DomainPattern>>,
}

/// What changes of the lists of tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsChange {
    /// Only these.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub allow: Set<Vec<ToolGlob>>,
    /// Never these.
    #[serde(skip_serializing_if = "Set::is_kept")]
    pub deny: Set<Vec<ToolGlob>>,
}

impl TermsChange {
    /// Whether it brings a list of tools that means those of an MCP server called `old` and not those of one called `new`, or the other
    /// way round.
    #[must_use]
    pub fn tells_servers_apart(&self, old: &str, new: &str) -> bool {
        let Set::To(tools) = &self.tools else { return false };
        let lists = [&tools.allow, &tools.deny].into_iter();
        let brought = lists.filter_map(|it| if let Set::To(globs) = it { Some(globs) } else { None });
        brought.flatten().any(|it| it.tells_servers_apart(old, new))
    }

    /// The terms after the change. No list that it brings names anything twice.
    #[must_use]
    pub fn onto(&self, old: &Terms) -> Terms {
        let terms = Terms {
            name: self.name.clone().unwrap_or_else(|| old.name.clone()),
            actions: self.actions.clone().unwrap_or_else(|| old.actions.clone()),
            limits: match &self.limits {
                Set::Keep => old.limits.clone(),
                Set::Clear => None,
                Set::To(change) => Some(change.onto(old.limits().clone())).filter(|it| *it != Limits::default()),
            },
            merchants: match &self.merchants {
                Set::Keep => old.merchants.clone(),
                Set::Clear => None,
                Set::To(change) => {
                    let old = old.merchants.clone().unwrap_or_default();
                    let new = Merchants { allow: change.allow.onto(old.allow), deny: change.deny.onto(old.deny) };
                    Some(new).filter(|it| *it != Merchants::default())
                }
            },
            fields: self.fields.onto(old.fields.clone()),
            tools: match &self.tools {
                Set::Keep => old.tools.clone(),
                Set::Clear => None,
                Set::To(change) => {
                    let old = old.tools.clone().unwrap_or_default();
                    let new = Tools { allow: change.allow.onto(old.allow), deny: change.deny.onto(old.deny) };
                    Some(new).filter(|it| *it != Tools::default())
                }
            },
            duplicates: self.duplicates.unwrap_or(old.duplicates),
            expires_at: self.expires_at.onto(old.expires_at),
        };
        // Lists that no one touches stay as they are stored: what changes nothing makes no version.
        if self.merchants.is_kept() && self.tools.is_kept() { terms } else { terms.without_repeats() }
    }

    /// The terms of a new mandate; `None` where it has no name or speaks of no types.
    #[must_use]
    pub fn to_terms(&self) -> Option<Terms> {
        let blank = Terms {
            name: self.name.clone()?,
            actions: self.actions.clone()?,
            limits: None,
            merchants: None,
            fields: None,
            tools: None,
            duplicates: Duplicates::default(),
            expires_at: None,
        };
        Some(self.onto(&blank))
    }
}

impl LimitsChange {
    fn onto(&self, old: Limits) -> Limits {
        Limits {
            currency: self.currency.onto(old.currency),
            per_action: self.per_action.onto(old.per_action),
            per_period: self.per_period.onto(old.per_period),
            count: self.count.onto(old.count),
            ask_above: self.ask_above.onto(old.ask_above),
            on_limit: self.on_limit.unwrap_or(old.on_limit),
        }
    }
}

impl Terms {
    /// What makes `self` no next version of `old`, beside its own faults: sums are of one currency for ever.
    #[must_use]
    pub fn faults_after(&self, old: &Self) -> Vec<FieldError> {
        let (before, after) = (old.limits().currency, self.limits().currency);
        if before.is_some() && before != after {
            return vec![FieldError::new("limits.currency", "cannot change: make a new mandate")];
        }
        Vec::new()
    }

    /// The same with those of its types alone that `old` spoke of in no one pattern.
    #[must_use]
    pub fn gained(&self, old: &Self) -> Self {
        let is_new = |it: &&ActionPattern| !old.actions.iter().any(|before| before.includes(it));
        Self { actions: self.actions.iter().filter(is_new).cloned().collect(), ..self.clone() }
    }

    /// Whether it lets an agent go anywhere where `narrower` holds it to some merchants.
    #[must_use]
    pub fn broadens(&self, narrower: &Self) -> bool {
        let overlap = || self.actions.iter().any(|it| narrower.actions.iter().any(|other| it.overlaps(other)));
        self.merchants_allowed().is_none() && narrower.merchants_allowed().is_some() && overlap()
    }
}
