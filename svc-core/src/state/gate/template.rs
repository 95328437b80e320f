//! The catalogue of mandate templates (CONTRACT part 2, "Templates"). Amounts are in the workspace's currency; a
//! template's content is copied into the mandate that is made from it.

use serde::{Deserialize, Serialize};

use super::kind::ActionPattern;
use super::mandate::{Count, Duplicates, Fields, Limits, OnLimit, PerPeriod, Terms};
use crate::state::people::Maker;
use crate::value::currency::Currency;
use crate::value::digest::TemplateId;
use crate::value::id::WorkspaceId;
use crate::value::likeness::told_by;
use crate::value::link::{Index, Link, Linked, Order};
use crate::value::period::Period;
use crate::value::text::Label;
use crate::value::{Id, Invalid, Timestamp};

/// One row of the catalogue. Amounts are in whole units of the currency.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// The types it covers.
    pub actions: &'static [&'static str],
    per_action: Option<i64>,
    per_period: Option<(i64, Period)>,
    count: Option<(u32, Period)>,
    ask_above: Option<i64>,
    on_limit: OnLimit,
    fields: &'static [&'static str],
}

const PLAIN: Template = Template {
    name: "",
    actions: &[],
    per_action: None,
    per_period: None,
    count: None,
    ask_above: None,
    on_limit: OnLimit::Deny,
    fields: &[],
};

const fn payments(name: &'static str, per_action: i64, per_period: (i64, Period), ask_above: i64) -> Template {
    Template {
        name,
        actions: &["payment"],
        per_action: Some(per_action),
        per_period: Some(per_period),
        ask_above: Some(ask_above),
        ..PLAIN
    }
}

/// Every template that ships.
pub const CATALOGUE: [Template; 10] = [
    payments("saas-subscriptions", 500, (2_000, Period::Month), 200),
    payments("office-supplies", 250, (1_000, Period::Month), 100),
    Template { on_limit: OnLimit::Ask, ..payments("travel-booking", 1_500, (5_000, Period::Month), 500) },
    payments("ad-spend", 1_000, (10_000, Period::Month), 500),
    payments("marketplace-checkout", 200, (500, Period::Day), 100),
    Template { name: "crm-read", actions: &["crm.read"], ..PLAIN },
    Template { name: "crm-update", actions: &["crm.read", "crm.update"], count: Some((500, Period::Day)), ..PLAIN },
    Template {
        actions: &["crm.read", "message.send", "refund"],
        ..payments("customer-support", 50, (500, Period::Day), 25)
    },
    Template { name: "coding-agent", actions: &["tool.call", "mcp.call", "file.write", "code.execute"], ..PLAIN },
    // No field has this name, so every share is outside it.
    Template { name: "data-export-none", actions: &["data.share"], fields: &[Fields::NONE], ..PLAIN },
];

impl Template {
    /// The template with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        CATALOGUE.iter().find(|it| it.name == name)
    }

    /// What a mandate made from it says, in `currency`.
    ///
    /// # Errors
    /// [`Invalid`] where the catalogue itself is wrong, which its test rules out.
    pub fn terms(&self, currency: Currency) -> Result<Terms, Invalid> {
        let minor = |units: i64| units.saturating_mul(currency.unit());
        let pays = self.per_action.is_some() || self.per_period.is_some();
        let limits = Limits {
            currency: pays.then_some(currency),
            per_action: self.per_action.map(minor),
            per_period: self.per_period.map(|(amount, period)| PerPeriod { amount: minor(amount), period }),
            count: self.count.map(|(max, period)| Count { max, period }),
            ask_above: self.ask_above.map(minor),
            on_limit: self.on_limit,
        };
        let fields: Vec<Label> = self.fields.iter().map(|it| Label::parse(it)).collect::<Result<_, _>>()?;
        Ok(Terms {
            name: Label::parse(self.name)?,
            actions: self.actions.iter().map(|it| ActionPattern::parse(it)).collect::<Result<_, _>>()?,
            limits: (limits != Limits::default()).then_some(limits),
            merchants: None,
            fields: (!fields.is_empty()).then_some(Fields { allow: fields }),
            tools: None,
            duplicates: Duplicates::Ask,
            expires_at: None,
        })
    }
}

/// A template that a workspace added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceTemplate {
    /// Its row.
    pub id: TemplateId,
    /// Whose.
    pub workspace: WorkspaceId,
    /// What mandates name it by; never one of the catalogue's.
    pub name: Label,
    /// What a mandate made from it says.
    pub terms: Terms,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl WorkspaceTemplate {
    /// The row of the workspace's template with this name. Names that look alike are one.
    #[must_use]
    pub fn id_of(workspace: WorkspaceId, name: &Label) -> TemplateId {
        Self::id_as_written(workspace, &told_by(name.as_str()))
    }

    /// The rows in which the template of this name may stand: one of before stands by its name as it was written. Nearly always that is
    /// one row.
    #[must_use]
    pub fn ids_of(workspace: WorkspaceId, name: &Label) -> Vec<TemplateId> {
        let mut ids = vec![Self::id_of(workspace, name), Self::id_as_written(workspace, name.as_str())];
        ids.dedup();
        ids
    }

    fn id_as_written(workspace: WorkspaceId, name: &str) -> TemplateId {
        TemplateId::of(&[&workspace.bits().to_be_bytes(), name.as_bytes()])
    }
}

impl Linked for WorkspaceTemplate {
    fn links(&self) -> Vec<Link> {
        let mut first = [0; 16];
        for (to, from) in first.iter_mut().zip(self.name.as_str().bytes()) {
            *to = from;
        }
        let order = Order::At(u128::from_be_bytes(first));
        vec![Link { index: Index::TemplatesOf, prefix: self.workspace.bits(), order }]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every template is a mandate without a fault, in a currency with and in one without minor units.
    #[test]
    fn every_template_makes_a_sound_mandate() {
        for template in CATALOGUE {
            for code in ["EUR", "JPY", "BHD"] {
                let terms = template.terms(Currency::parse(code).unwrap()).unwrap();
                assert_eq!(terms.faults(Timestamp::from_millis(0)), vec![], "{} in {code}", template.name);
            }
        }
        let yen = Template::find("office-supplies").unwrap().terms(Currency::parse("JPY").unwrap()).unwrap();
        assert_eq!(yen.limits().per_action, Some(250));
    }

    /// The two templates of a first start say what the contract's table says.
    #[test]
    fn a_first_starts_templates_have_the_contents_of_the_table() {
        let euro = Currency::parse("EUR").unwrap();
        let terms = |name: &str| serde_json::to_value(Template::find(name).unwrap().terms(euro).unwrap()).unwrap();
        let limits = serde_json::json!({
            "currency": "EUR", "perAction": 50_000, "perPeriod": { "amount": 200_000, "period": "month" },
            "askAbove": 20_000, "onLimit": "deny",
        });
        let expected = serde_json::json!({
            "name": "saas-subscriptions", "actions": ["payment"], "limits": limits, "duplicates": "ask",
        });
        assert_eq!(terms("saas-subscriptions"), expected);
        let actions = ["tool.call", "mcp.call", "file.write", "code.execute"];
        let expected = serde_json::json!({ "name": "coding-agent", "actions": actions, "duplicates": "ask" });
        assert_eq!(terms("coding-agent"), expected);
    }
}
