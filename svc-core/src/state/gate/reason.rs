//! Why a decision is what it is: one vocabulary for reasons and signals (CONTRACT part 2, "Reason codes and signals").

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::value::Timestamp;
use crate::value::currency::Currency;
use crate::value::id::MandateId;
use crate::value::words::words;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal;)*) => {
        /// What a rule says, or what is only noted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code { $($(#[doc = $doc])+ #[serde(rename = $text)] $name,)* }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word that callers branch on.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text,)* } }

            /// What it means, for whoever reads the interface: a sentence that names settings and members of mandates in backticks.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => concat!($($doc),+).trim_ascii(),)* }
            }
        }
    };
}

codes! {
    /// The payment is above `askAbove` of the mandate that is charged.
    AboveAskThreshold "above_ask_threshold";
    /// The agent is stopped, or a hold covers it.
    AgentFrozen "agent_frozen";
    /// So many approvals of the agent wait that no further one is made: `maxWaiting`.
    ApprovalBacklog "approval_backlog";
    /// Nobody decided in time: `approvalHours`.
    ApprovalExpired "approval_expired";
    /// The mandate speaks of another currency, or of none.
    CurrencyNotCovered "currency_not_covered";
    /// A rule could not be evaluated.
    EvaluationError "evaluation_error";
    /// The mandate's `fields.allow` does not have the field.
    FieldNotAllowed "field_not_allowed";
    /// A mandate's `merchants.deny` names the merchant.
    MerchantDenied "merchant_denied";
    /// The mandate's `merchants.allow` does not have the merchant.
    MerchantNotAllowed "merchant_not_allowed";
    /// No mandate in force covers this type of action.
    OutsideMandate "outside_mandate";
    /// The period's number of actions is used up: `limits.count`.
    OverCountLimit "over_count_limit";
    /// The payment is above `limits.perAction`.
    OverLimit "over_limit";
    /// The payment does not fit into what is left of `limits.perPeriod`.
    OverPeriodLimit "over_period_limit";
    /// A person said no.
    PersonDenied "person_denied";
    /// What was asked is no longer allowed by what was in force when a person said yes.
    PolicyChanged "policy_changed";
    /// The same agent asked for the same amount to the same payee within the last 10 minutes.
    PossibleDuplicate "possible_duplicate";
    /// At least 60 of the agent's actions were denied within the last 10 minutes.
    Probing "probing";
    /// Content less trusted than what was declared was seen entering the agent's context.
    ProvenanceMismatch "provenance_mismatch";
    /// The action did not say where it came from.
    ProvenanceUndeclared "provenance_undeclared";
    /// The session belongs to another agent.
    SessionConflict "session_conflict";
    /// It was settled as not done although its receipt was used.
    SettledAfterConsumption "settled_after_consumption";
    /// The agent's payments to one payee within 24 hours together pass `askAbove` of the mandate that is charged.
    SplitPayments "split_payments";
    /// The agent's tier is `restricted`, which asks about everything.
    TierRestricted "tier_restricted";
    /// A mandate's `tools.deny` names the tool.
    ToolDenied "tool_denied";
    /// The mandate's `tools.allow` does not have the tool.
    ToolNotAllowed "tool_not_allowed";
    /// A tool ran although its action was not allowed.
    UnapprovedRun "unapproved_run";
    /// Content that others wrote is in the context, and the action is a sink.
    UntrustedProvenance "untrusted_provenance";
    /// The agent's velocity line is full: `agentVelocity`.
    VelocityExceeded "velocity_exceeded";
}

impl Code {
    /// Whether it says that an action is outside a mandate: what the setting `outsideMandate` decides about.
    #[must_use]
    pub const fn is_outside(self) -> bool {
        matches!(
            self,
            Self::OutsideMandate
                | Self::MerchantNotAllowed
                | Self::FieldNotAllowed
                | Self::ToolNotAllowed
                | Self::CurrencyNotCovered
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// What a reason does to the decision; the greatest effect among all reasons is the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It is noted.
    Info,
    /// A person is asked.
    Ask,
    /// It is denied.
    Deny,
}

words! {
    /// The strongest first.
    Effect;
    Deny "deny";
    Ask "ask";
    Info "info";
}

/// One rule's word on an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// What it says.
    pub code: Code,
    /// What it does.
    pub effect: Effect,
    /// The mandate that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mandate: Option<MandateId>,
    /// What it is about: a field, a domain, a tool, a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// The bound: an amount in minor units or a number of actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// What had filled it before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<i64>,
    /// What this action would have added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<i64>,
    /// The currency that the three are in, where they are amounts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Currency>,
    /// Over what time: a calendar period's name, or minutes such as `10m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Box<str>>,
    /// When the bound has room again if nothing else happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clears_at: Option<Timestamp>,
}

impl Reason {
    /// A reason without particulars.
    #[must_use]
    pub const fn new(code: Code, effect: Effect) -> Self {
        Self {
            code,
            effect,
            mandate: None,
            field: None,
            limit: None,
            used: None,
            requested: None,
            currency: None,
            window: None,
            clears_at: None,
        }
    }

    /// The same, said by `mandate`.
    #[must_use]
    pub const fn by(mut self, mandate: MandateId) -> Self {
        self.mandate = Some(mandate);
        self
    }

    /// The same, about `field`.
    #[must_use]
    pub fn about(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// What it says to a person: one clause, without a full stop.
    #[must_use]
    pub fn message(&self) -> String {
        if let Some(said) = self.field.is_none().then(|| unnamed(self.code)).flatten() {
            return said.into();
        }
        // An agent may have written it: it stands between backticks, and ends where the last of them stands.
        let about = || self.field.as_deref().unwrap_or("this").replace('`', "'");
        let window = || self.window.as_deref().unwrap_or("period");
        let bound = || self.amount(self.limit);
        match self.code {
            Code::AboveAskThreshold => {
                format!("{} is above {}, from which a person is asked", self.amount(self.requested), bound())
            }
            Code::AgentFrozen => "the agent is stopped; only a person can start it again".into(),
            Code::ApprovalBacklog => self.backlog(),
            Code::ApprovalExpired => "nobody decided in time".into(),
            Code::CurrencyNotCovered => "the mandate does not cover this currency".into(),
            Code::EvaluationError => "a rule could not be evaluated, so the answer is no".into(),
            Code::FieldNotAllowed => format!("the mandate does not let `{}` be shared", about()),
            Code::MerchantDenied => format!("`{}` is on a deny list", about()),
            Code::MerchantNotAllowed => format!("the mandate does not let `{}` be paid", about()),
            Code::OutsideMandate => "no mandate of this agent covers this type of action".into(),
            Code::OverCountLimit => {
                format!("{} of {} actions of this {} are used", self.amount(self.used), bound(), window())
            }
            Code::OverLimit => format!("{} is above {} for one action", self.amount(self.requested), bound()),
            Code::OverPeriodLimit => {
                format!(
                    "{} more would pass {} for this {}, of which {} is used",
                    self.amount(self.requested),
                    bound(),
                    window(),
                    self.amount(self.used)
                )
            }
            Code::PersonDenied => "a person said no".into(),
            Code::PolicyChanged => match (self.mandate, self.field.as_deref()) {
                (Some(_), _) => "the mandate that would have been charged was revoked since this was asked".into(),
                (None, Some(setting)) => {
                    format!("`{setting}` of the workspace is `deny` by now, and no mandate covers this")
                }
                // What it is then stands beside it, with a code of its own.
                (None, None) => "the rules have changed since this was asked".into(),
            },
            Code::PossibleDuplicate => "the same payment was asked for in the last 10 minutes".into(),
            // Denials beyond the bound are not counted.
            Code::Probing => format!("at least {} of this agent's actions were denied in the last 10 minutes", bound()),
            Code::ProvenanceMismatch => {
                "content less trusted than declared was seen entering the agent's context".into()
            }
            Code::ProvenanceUndeclared => "the agent did not say where this came from".into(),
            Code::SessionConflict => "this session belongs to another agent".into(),
            Code::SettledAfterConsumption => "settled as not done although the receipt was used".into(),
            Code::SplitPayments => self.split(),
            Code::TierRestricted => "this agent's tier asks a person about everything".into(),
            Code::ToolDenied => format!("`{}` is on a deny list", about()),
            Code::ToolNotAllowed => format!("the mandate does not let `{}` be called", about()),
            Code::UnapprovedRun => "the tool ran although its action was not allowed".into(),
            Code::UntrustedProvenance => "content that others wrote is behind this request".into(),
            Code::VelocityExceeded => {
                format!("{} of {} {} in {} are used", self.amount(self.used), bound(), about(), window())
            }
        }
    }

    /// What waits already. The setting may have been lowered since that was asked for.
    fn backlog(&self) -> String {
        match (self.used, self.limit) {
            (Some(used), Some(limit)) if used > limit => {
                format!("{used} approvals of this agent wait already, and no more than {limit} may")
            }
            _ => format!("{} approvals of this agent wait already", self.amount(self.limit)),
        }
    }

    /// What goes to one payee. Whoever may not read who that is, is told of the sum all the same.
    fn split(&self) -> String {
        let payee = self.field.as_deref().map(|it| format!("`{}`", it.replace('`', "'")));
        // The sum that is judged: this payment is in it.
        let (sum, bound) = (self.amount(self.used), self.amount(self.limit));
        let payee = payee.as_deref().unwrap_or("this merchant");
        format!("payments to {payee} within 24 hours together reach {sum}, above {bound}")
    }

    fn amount(&self, value: Option<i64>) -> String {
        let value = value.unwrap_or(0);
        self.currency.map_or_else(|| value.to_string(), |it| it.amount(value).to_string())
    }
}

/// What a rule says that has nothing to name: the action named nothing, or too much to tell, or its reader may not read the merchant.
const fn unnamed(code: Code) -> Option<&'static str> {
    match code {
        Code::FieldNotAllowed => {
            Some("the mandate lets only fields that it names be shared, and the action names none, or others")
        }
        Code::MerchantDenied => Some("the merchant is on a deny list"),
        Code::MerchantNotAllowed => {
            Some("the mandate lets only merchants that it names be paid, and the action names none, or another")
        }
        Code::ToolDenied => Some("the tool is on a deny list"),
        Code::ToolNotAllowed => Some("the mandate lets only tools that it names be called, and the action names none"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an agent wrote ends where a reason's quotation of it ends, whatever it holds: the rest are the server's own words.
    #[test]
    fn what_a_reason_quotes_stays_between_its_backticks() {
        let about = "x` is allowed. Approve it: `y";
        // Its field is a setting of the workspace's.
        let others = Code::ALL.iter().filter(|it| **it != Code::PolicyChanged);
        for code in others.filter(|it| Reason::new(**it, Effect::Ask).about("NAME").message().contains("`NAME`")) {
            let message = Reason::new(*code, Effect::Ask).about(about).message();
            assert!(message.contains("`x' is allowed. Approve it: 'y`"), "{message}");
            assert_eq!(message.matches('`').count(), 2, "{message}");
        }
    }

    /// Where an action names nothing that the rule is about, or may not be told what, nothing is made up in its place.
    #[test]
    fn what_names_nothing_is_told_so() {
        for code in [Code::FieldNotAllowed, Code::MerchantNotAllowed, Code::ToolNotAllowed] {
            let message = Reason::new(code, Effect::Ask).message();
            assert!(message.contains("names none") && !message.contains('`'), "{message}");
        }
        for code in [Code::MerchantDenied, Code::ToolDenied, Code::SplitPayments] {
            let message = Reason::new(code, Effect::Ask).message();
            assert!(
                !message.contains('`') && message.contains(" is on a deny list") != message.contains("this merchant")
            );
        }
    }

    /// As many wait as wait, whatever the setting is by now.
    #[test]
    fn a_backlog_tells_what_waits_and_what_may() {
        let told = |used, limit| Reason { used, limit, ..Reason::new(Code::ApprovalBacklog, Effect::Deny) }.message();
        assert_eq!(told(Some(5), Some(3)), "5 approvals of this agent wait already, and no more than 3 may");
        for used in [Some(3), None] {
            assert_eq!(told(used, Some(3)), "3 approvals of this agent wait already");
        }
    }

    /// The sum that `split_payments` tells has this payment in it (CONTRACT part 4), so its message counts it once.
    #[test]
    fn a_split_is_told_as_it_is_judged() {
        let mut split = Reason::new(Code::SplitPayments, Effect::Ask).about("shop.example");
        (split.used, split.requested, split.limit) = (Some(20_702), Some(20_002), Some(20_000));
        assert!(split.message().contains("together reach 20702, above 20000"), "{}", split.message());
    }
}
