//! Mandates: what an agent may do without asking. A version is immutable; a change makes the next one.

use std::collections::BTreeSet;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::kind::ActionPattern;
use crate::refusal::FieldError;
use crate::state::people::Maker;
use crate::value::currency::Currency;
use crate::value::domain::{Domain, DomainPattern};
use crate::value::glob::{NO_CONSTRAINT, ToolGlob};
use crate::value::host_filter::HostFilter;
use crate::value::id::{AgentId, MandateVersionId};
use crate::value::link::{Index, Link, Linked, Order};
use crate::value::period::Period;
use crate::value::text::Label;
use crate::value::words::words;
use crate::value::{Id, SAFE_MAX, Timestamp};

/// One version of a mandate.
///
/// An agent's mandates are in no cache that is near, and most of them have no say in an action: what tells so lies in the
/// first bytes, and a decision follows no pointer for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored")]
#[repr(C)] // in this order
pub struct Mandate {
    /// Of the merchants that it is confined to; of all hosts where it is not.
    #[serde(skip)]
    allows: HostFilter,
    /// Of the merchants that it denies.
    #[serde(skip)]
    denies: HostFilter,
    /// Whether it denies tools.
    #[serde(skip)]
    denies_tools: bool,
    /// The mandate and which version this is.
    pub id: MandateVersionId,
    /// Whose it is.
    pub agent: AgentId,
    /// The template whose content was copied in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Label>,
    terms: Terms,
    /// Who made this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When this version was made.
    pub created_at: Timestamp,
}

/// A mandate as storage has it, without what follows from its terms.
#[derive(Deserialize)]
struct Stored {
    id: MandateVersionId,
    agent: AgentId,
    #[serde(default)]
    template: Option<Label>,
    terms: Terms,
    #[serde(default)]
    created_by: Option<Maker>,
    created_at: Timestamp,
}

impl From<Stored> for Mandate {
    fn from(stored: Stored) -> Self {
        let Stored { id, agent, template, terms, created_by, created_at } = stored;
        Self::new(id, agent, template, terms, (created_by, created_at))
    }
}

impl Mandate {
    /// A version that says `terms`, and by whom and when it was made.
    #[must_use]
    pub fn new(
        id: MandateVersionId,
        agent: AgentId,
        template: Option<Label>,
        terms: Terms,
        (created_by, created_at): (Option<Maker>, Timestamp),
    ) -> Self {
        Self {
            allows: terms.merchants_allowed().map_or(HostFilter::ALL, HostFilter::of),
            denies: HostFilter::of(terms.merchants_denied()),
            denies_tools: !terms.tools_denied().is_empty(),
            id,
            agent,
            template,
            terms,
            created_by,
            created_at,
        }
    }

    /// What it says.
    #[must_use]
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether it is confined to merchants that `host` is certainly none of.
    #[must_use]
    pub fn excludes(&self, host: &Domain) -> bool {
        !self.allows.may_cover(host)
    }

    /// The entry that speaks of `host` in the list of merchants that it is confined to: one of this host alone before any other. One
    /// whose name has become a public suffix since speaks of nobody.
    #[must_use]
    pub fn merchant_allowed(&self, host: &Domain) -> Option<&DomainPattern> {
        if self.excludes(host) {
            return None;
        }
        covering(self.merchants_allowed()?, host, |it| !it.is_lapsed())
    }

    /// Whether its list of denied merchants speaks of `host`.
    #[must_use]
    pub fn denies_merchant(&self, host: &Domain) -> bool {
        self.denies.may_cover(host) && covering(self.merchants_denied(), host, |_| true).is_some()
    }

    /// Whether its list of denied tools speaks of the tool `name` of `server`.
    #[must_use]
    pub fn denies_tool(&self, server: Option<&str>, name: &str) -> bool {
        self.denies_tools && self.tools_denied().iter().any(|it| it.denies(server, name))
    }
}

fn covering<'a>(
    list: &'a [DomainPattern],
    host: &Domain,
    counts: fn(&DomainPattern) -> bool,
) -> Option<&'a DomainPattern> {
    let found = || list.iter().filter(|it| it.covers(host) && counts(it));
    found().find(|it| it.is_exact()).or_else(|| found().next())
}

impl Deref for Mandate {
    type Target = Terms;
    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl Linked for Mandate {
    fn links(&self) -> Vec<Link> {
        let order = Order::At(self.id.version.into());
        vec![Link { index: Index::VersionsOf, prefix: self.id.mandate.bits(), order }]
    }
}

/// What a mandate says: the members that a person sets. An unknown member is refused in storage too, since a limit that
/// is not understood must not be no limit.
///
/// Its serde form is that of a row: `expiresAt` is a number of milliseconds there, and a text in the interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Terms {
    /// What people call it.
    pub name: Label,
    /// The types it covers; never empty.
    pub actions: Vec<ActionPattern>,
    /// Amounts and counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Who may be paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merchants: Option<Merchants>,
    /// Which fields may be shared; every entry must be in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Fields>,
    /// Which tools may be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Tools>,
    /// What a possible duplicate brings about.
    #[serde(default)]
    pub duplicates: Duplicates,
    /// From then on it admits nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// Amounts and counts, in minor units of one currency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Limits {
    /// The currency of every amount here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// The most one action may move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_action: Option<i64>,
    /// The most a calendar period may see, reserved and spent together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_period: Option<PerPeriod>,
    /// The most actions a calendar period may see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Above it a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_above: Option<i64>,
    /// What reaching a limit brings about.
    #[serde(default)]
    pub on_limit: OnLimit,
}

impl Limits {
    /// Whether a payment in `currency` is one that they speak of. A currency without an amount would let through payments that
    /// nothing limits, so it covers none.
    #[must_use]
    pub fn cover(&self, currency: Currency) -> bool {
        self.currency == Some(currency) && self.have_amount()
    }

    /// Whether any amount is in them.
    const fn have_amount(&self) -> bool {
        self.per_action.is_some() || self.per_period.is_some() || self.ask_above.is_some()
    }
}

/// An amount a calendar period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerPeriod {
    /// In minor units.
    pub amount: i64,
    /// Which period.
    pub period: Period,
}

/// A number of actions a calendar period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// How many.
    pub max: u32,
    /// Which period.
    pub period: Period,
}

/// What reaching a limit brings about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// A person is asked.
    Ask,
    /// It is denied.
    #[default]
    Deny,
}

words! {
    OnLimit;
    Deny "deny";
    Ask "ask";
}

/// Who may be paid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merchants {
    /// Only these, where the list is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<DomainPattern>>,
    /// Never these, whichever mandate would cover the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<DomainPattern>>,
}

/// Which fields may be shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// Every field of an action must be among these.
    pub allow: Vec<Label>,
}

impl Fields {
    /// The word that stands in a list for no field at all: no field has this name, whatever an action calls its own.
    pub const NONE: &'static str = "none";

    /// Whether the field of this name may be shared.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        name != Self::NONE && self.allow.iter().any(|it| it.as_str() == name)
    }
}

/// Which tools may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tools {
    /// Only these, where the list is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<ToolGlob>>,
    /// Never these, whichever mandate would cover the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<ToolGlob>>,
}

/// What a possible duplicate brings about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// A person is asked.
    #[default]
    Ask,
    /// It is noted.
    Record,
}

words! {
    Duplicates;
    Ask "ask";
    Record "record";
}

/// Where a mandate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MandateState {
    /// It is in force.
    Active,
    /// It covers nothing until a person lets it go on.
    Paused,
    /// It is over.
    Revoked,
    /// Its time is up.
    Expired,
}

words! { MandateState;
    Active "active";
    Paused "paused";
    Revoked "revoked";
    Expired "expired";
}

impl MandateState {
    /// Those that a person sets.
    pub const SET: [Self; 2] = [Self::Active, Self::Paused];

    /// The one of [`Self::SET`] that says whether it is paused.
    #[must_use]
    pub const fn set(paused: bool) -> Self {
        if paused { Self::Paused } else { Self::Active }
    }
}

impl Terms {
    /// The merchants it is confined to, if it is.
    #[must_use]
    pub fn merchants_allowed(&self) -> Option<&[DomainPattern]> {
        self.merchants.as_ref()?.allow.as_deref()
    }

    /// The merchants that it denies.
    #[must_use]
    pub fn merchants_denied(&self) -> &[DomainPattern] {
        self.merchants.as_ref().and_then(|it| it.deny.as_deref()).unwrap_or_default()
    }

    /// The tools that it denies.
    #[must_use]
    pub fn tools_denied(&self) -> &[ToolGlob] {
        self.tools.as_ref().and_then(|it| it.deny.as_deref()).unwrap_or_default()
    }

    /// Whether a list of tools means those of an MCP server called `old` and not those of one called `new`, or the other way round.
    #[must_use]
    pub fn tells_servers_apart(&self, old: &str, new: &str) -> bool {
        let lists = self.tools.iter().flat_map(|it| it.allow.iter().chain(&it.deny));
        lists.flatten().any(|it| it.tells_servers_apart(old, new))
    }

    /// The limits, or none at all.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        const NONE: &Limits = &Limits {
            currency: None,
            per_action: None,
            per_period: None,
            count: None,
            ask_above: None,
            on_limit: OnLimit::Deny,
        };
        self.limits.as_ref().unwrap_or(NONE)
    }

    /// The same with its amounts in `currency` where it has any and names none.
    #[must_use]
    pub fn in_currency(mut self, currency: Currency) -> Self {
        if let Some(limits) = &mut self.limits {
            let speaks = limits.have_amount();
            limits.currency = limits.currency.or_else(|| speaks.then_some(currency));
        }
        self
    }

    /// The same with no name twice in its lists of merchants and of tools, where it says nothing more.
    #[must_use]
    pub fn without_repeats(mut self) -> Self {
        let merchants = self.merchants.iter_mut().flat_map(|it| [&mut it.allow, &mut it.deny]);
        merchants.flatten().for_each(unrepeated);
        let tools = self.tools.iter_mut().flat_map(|it| [&mut it.allow, &mut it.deny]);
        tools.flatten().for_each(unrepeated);
        self
    }

    /// Everything that makes these terms no mandate (CONTRACT part 2, "Mandate"), with dotted paths.
    #[must_use]
    pub fn faults(&self, now: Timestamp) -> Vec<FieldError> {
        let mut faults = Vec::new();
        let mut fault = |bad: bool, field: &str, clause: &str| {
            if bad {
                faults.push(FieldError::new(field, clause));
            }
        };
        fault(self.actions.is_empty(), "actions", "must name at least one type");
        let limits = self.limits();
        let amount = |value: Option<i64>| value.is_some_and(|it| !(1..=SAFE_MAX).contains(&it));
        fault(amount(limits.per_action), "limits.perAction", "must be a whole number of minor units above zero");
        fault(amount(limits.ask_above), "limits.askAbove", "must be a whole number of minor units above zero");
        fault(
            amount(limits.per_period.as_ref().map(|it| it.amount)),
            "limits.perPeriod.amount",
            "must be a whole number of minor units above zero",
        );
        fault(limits.count.as_ref().is_some_and(|it| it.max == 0), "limits.count.max", "must be above zero");
        let inverted = matches!((limits.ask_above, limits.per_action), (Some(ask), Some(most)) if ask > most);
        fault(inverted, "limits.askAbove", "must not be above `limits.perAction`");
        let pays = self.actions.iter().any(ActionPattern::covers_payment);
        fault(pays && limits.currency.is_none(), "limits.currency", "is required where the mandate covers payments");
        let unbounded = limits.per_action.is_none() && limits.per_period.is_none();
        fault(pays && unbounded, "limits", "must hold `perAction` or `perPeriod` where the mandate covers payments");
        let empty = |list: Option<usize>| list == Some(0);
        let merchants = self.merchants.as_ref();
        fault(empty(merchants.and_then(|it| it.allow.as_ref()).map(Vec::len)), "merchants.allow", "must not be empty");
        fault(empty(merchants.and_then(|it| it.deny.as_ref()).map(Vec::len)), "merchants.deny", "must not be empty");
        let open = self.merchants_allowed().is_some_and(|it| it.iter().any(DomainPattern::is_everybodys));
        fault(open, "merchants.allow", "must not hold `*.` before a name below which every name is a public suffix");
        fault(empty(self.fields.as_ref().map(|it| it.allow.len())), "fields.allow", "must not be empty");
        let tools = self.tools.as_ref();
        fault(empty(tools.and_then(|it| it.allow.as_ref()).map(Vec::len)), "tools.allow", "must not be empty");
        fault(empty(tools.and_then(|it| it.deny.as_ref()).map(Vec::len)), "tools.deny", "must not be empty");
        let stars = |list: Option<&Vec<ToolGlob>>| list.is_some_and(|it| it.iter().any(ToolGlob::is_stars));
        fault(stars(tools.and_then(|it| it.allow.as_ref())), "tools.allow", NO_CONSTRAINT);
        fault(stars(tools.and_then(|it| it.deny.as_ref())), "tools.deny", NO_CONSTRAINT);
        fault(self.expires_at.is_some_and(|end| end <= now), "expiresAt", "must be in the future");
        faults
    }
}

fn unrepeated<T: Clone + Ord>(list: &mut Vec<T>) {
    let mut seen = BTreeSet::new();
    list.retain(|it| seen.insert(it.clone()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// What follows from the terms is not stored, and is there again when the mandate is read; it lies in the first bytes.
    #[test]
    fn what_follows_from_the_terms_is_made_anew() {
        let stored = concat!(
            r#"{"id":["mnd_00000000000000000000000001",1],"agent":"agt_00000000000000000000000002","terms":{"name":"M","#,
            r#""actions":["payment"],"merchants":{"allow":["shop.example"],"deny":["bad.example"]},"#,
            r#""tools":{"deny":["rm"]},"duplicates":"ask"},"created_at":5}"#
        );
        let mandate: Mandate = serde_json::from_str(stored).unwrap();
        let again = serde_json::to_string(&mandate).unwrap();
        assert_eq!(serde_json::from_str::<Mandate>(&again).unwrap(), mandate);
        assert!(!again.contains("allows") && !again.contains("denies"), "{again}");
        let host = |name| Domain::parse(name).unwrap();
        assert!(mandate.excludes(&host("other.example")) && !mandate.excludes(&host("shop.example")));
        assert!(mandate.merchant_allowed(&host("shop.example")).is_some());
        assert!(mandate.merchant_allowed(&host("other.example")).is_none());
        assert!(mandate.denies_merchant(&host("bad.example")) && !mandate.denies_merchant(&host("shop.example")));
        assert!(mandate.denies_tool(None, "rm") && !mandate.denies_tool(None, "ls"));
        let ends = [std::mem::offset_of!(Mandate, allows), std::mem::offset_of!(Mandate, denies)].map(|it| it + 16);
        assert!(ends.iter().all(|end| *end <= 48), "behind the counts of an `Arc`, in its first 64 bytes: {ends:?}");
    }

    /// A pattern of a name that has become a public suffix is read, allows nobody, and denies whom it denied.
    #[test]
    fn a_pattern_of_a_suffix_allows_nobody() {
        let stored = concat!(
            r#"{"id":["mnd_00000000000000000000000001",1],"agent":"agt_00000000000000000000000002","terms":{"name":"M","#,
            r#""actions":["payment"],"limits":{"currency":"HRK","perAction":1},"merchants":{"allow":["*.github.io","shop.example"],"#,
            r#""deny":["*.co.uk"]},"duplicates":"ask"},"created_at":5}"#
        );
        let mandate: Mandate = serde_json::from_str(stored).unwrap();
        let host = |name| Domain::parse(name).unwrap();
        assert!(mandate.merchant_allowed(&host("me.github.io")).is_none());
        assert!(mandate.merchant_allowed(&host("shop.example")).is_some());
        assert!(mandate.denies_merchant(&host("bad.co.uk")));
        assert!(Currency::parse("HRK").is_err_and(|_| !mandate.limits().cover(Currency::EUR)));
        let fields: Vec<_> = mandate.faults(Timestamp::default()).into_iter().filter_map(|it| it.field).collect();
        assert_eq!(fields, ["merchants.allow".into()], "whoever changes it is told");
    }

    /// Stars alone name no tool, however many: no terms may hold them, and rows that do are read.
    #[test]
    fn stars_alone_are_no_terms() {
        for (list, field) in [
            (r#"{"allow":["**"]}"#, Some("tools.allow")),
            (r#"{"allow":["ls"],"deny":["rm","***"]}"#, Some("tools.deny")),
            (r#"{"allow":["l*"],"deny":["*/*"]}"#, None),
        ] {
            let stored = format!(r#"{{"name":"M","actions":["tool.call"],"tools":{list},"duplicates":"ask"}}"#);
            let terms: Terms = serde_json::from_str(&stored).unwrap();
            let faults = terms.faults(Timestamp::default());
            let fields: Vec<_> = faults.iter().filter_map(|it| it.field.as_deref()).collect();
            assert_eq!(fields, field.into_iter().collect::<Vec<_>>(), "{list}");
        }
    }

    /// Whoever can have a host below a pattern is trusted by it: nobody is where that is everybody. To deny all of them is somebody's word.
    #[test]
    fn nobody_trusts_everybodys_hosts() {
        for (list, field) in [
            (r#"{"allow":["shop.example.com","*.kawasaki.jp"]}"#, Some("merchants.allow")),
            (r#"{"allow":["*.shop.kawasaki.jp.example.com"],"deny":["*.kawasaki.jp"]}"#, None),
        ] {
            let stored = format!(
                r#"{{"name":"M","actions":["payment"],"limits":{{"currency":"EUR","perAction":1}},"merchants":{list},"duplicates":"ask"}}"#
            );
            let terms: Terms = serde_json::from_str(&stored).unwrap();
            let faults = terms.faults(Timestamp::default());
            let fields: Vec<_> = faults.iter().filter_map(|it| it.field.as_deref()).collect();
            assert_eq!(fields, field.into_iter().collect::<Vec<_>>(), "{list}");
        }
    }
}
