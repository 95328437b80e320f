//! Settings (CONTRACT part 8): only the members that are named change, and `null` returns one to its default.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::rules::people::settings::SettingsChange;
use svc_core::state::people::{DataLoss, OnMismatch, OnUndeclared, Outside, Settings, Workspace};
use svc_core::value::Invalid;
use svc_core::value::currency::Currency;
use svc_core::value::domain::Domain;
use svc_core::value::json::Json;
use svc_core::value::period::Zone;
use svc_core::value::text::Label;

use super::{Fields, integer, parse_or_empty, text, truth};

const MEMBERS: [&str; 16] = [
    "name",
    "timezone",
    "currency",
    "agentVelocity",
    "outsideMandate",
    "provenance",
    "approvalHours",
    "secondPersonAbove",
    "secondPersonAgeDays",
    "receiptMinutes",
    "maxWaiting",
    "freezeCeilingPerHour",
    "dataLoss",
    "signIn",
    "stepUpAbove",
    "retentionDays",
];

/// Reads the settings that change.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<SettingsChange, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let it = &mut fields;
    it.only(&MEMBERS);
    if it.is_null("name") {
        it.fault("name", Invalid::new("cannot be taken away"));
    }
    let default = Settings::default();
    let mut change = SettingsChange {
        name: it.optional("name", |it| Label::parse(text(it)?)),
        timezone: or(it, "timezone", default.timezone.clone(), |it| Zone::parse(text(it)?)),
        currency: or(it, "currency", default.currency, |it| Currency::parse(text(it)?)),
        outside_mandate: or(it, "outsideMandate", default.outside_mandate, |it| {
            word(it, &Outside::ALL.map(|it| (it.as_str(), it)))
        }),
        approval_hours: or(it, "approvalHours", default.approval_hours, |it| within(it, 1, 168)),
        second_person_above: lines(it, "secondPersonAbove"),
        second_person_age_days: or(it, "secondPersonAgeDays", 0, |it| within(it, 0, 90)),
        receipt_minutes: or(it, "receiptMinutes", default.receipt_minutes, |it| within(it, 1, 1_440)),
        max_waiting: or(it, "maxWaiting", default.max_waiting, |it| within(it, 1, 1_000)),
        freeze_ceiling_per_hour: or(it, "freezeCeilingPerHour", default.freeze_ceiling_per_hour, |it| {
            within(it, 1, 1_000_000)
        }),
        data_loss: or(it, "dataLoss", default.data_loss, |it| word(it, &DataLoss::ALL.map(|it| (it.as_str(), it)))),
        step_up_above: lines(it, "stepUpAbove"),
        retention_days: or(it, "retentionDays", None, |it| within(it, 30, 3_650).map(Some)),
        ..SettingsChange::default()
    };
    nested(it, &mut change, &default);
    fields.finish(Some(change))
}

/// The members that are objects: each of their members changes by itself, and `null` returns all of them.
fn nested(fields: &mut Fields<'_>, change: &mut SettingsChange, default: &Settings) {
    let (velocity, provenance) = (&default.agent_velocity, &default.provenance);
    if fields.is_null("agentVelocity") {
        change.tool_count = Some(velocity.tool_count);
        change.other_count = Some(velocity.other_count);
        change.velocity_minutes = Some(velocity.minutes);
    }
    fields.nested("agentVelocity", |it| {
        it.only(&["toolVelocityCount", "velocityCount", "velocityMinutes"]);
        change.tool_count = or(it, "toolVelocityCount", velocity.tool_count, |it| within(it, 1, 1_000_000));
        change.other_count = or(it, "velocityCount", velocity.other_count, |it| within(it, 1, 1_000_000));
        change.velocity_minutes = or(it, "velocityMinutes", velocity.minutes, |it| within(it, 1, 1_440));
        Some(())
    });
    if fields.is_null("provenance") {
        change.mismatch = Some(provenance.mismatch);
        change.undeclared = Some(provenance.undeclared);
        change.window_minutes = Some(provenance.window_minutes);
    }
    fields.nested("provenance", |it| {
        it.only(&["mismatch", "undeclared", "windowMinutes"]);
        let words = OnMismatch::ALL.map(|it| (it.as_str(), it));
        change.mismatch = or(it, "mismatch", provenance.mismatch, |it| word(it, &words));
        let words = OnUndeclared::ALL.map(|it| (it.as_str(), it));
        change.undeclared = or(it, "undeclared", provenance.undeclared, |it| word(it, &words));
        change.window_minutes = or(it, "windowMinutes", provenance.window_minutes, |it| within(it, 5, 1_440));
        Some(())
    });
    if fields.is_null("signIn") {
        change.require_two_factor = Some(false);
        change.require_sso = Some(false);
        change.sso_domains = Some(Vec::new());
    }
    fields.nested("signIn", |it| {
        it.only(&["requireTwoFactor", "requireSso", "ssoDomains"]);
        change.require_two_factor = or(it, "requireTwoFactor", false, truth);
        change.require_sso = or(it, "requireSso", false, truth);
        let none = it.is_null("ssoDomains").then(Vec::new);
        change.sso_domains = none.or_else(|| it.texts("ssoDomains", (0, 100), Domain::parse));
        Some(())
    });
}

fn or<'a, T>(
    fields: &mut Fields<'a>,
    name: &str,
    default: T,
    read: impl FnOnce(&'a Json) -> Result<T, Invalid>,
) -> Option<T> {
    if fields.is_null(name) { Some(default) } else { fields.optional(name, read) }
}

fn within<T: TryFrom<i64>>(value: &Json, min: i64, max: i64) -> Result<T, Invalid> {
    let number = integer(value)?;
    let wrong = || Invalid::new(format!("must be between {min} and {max}"));
    if (min..=max).contains(&number) { T::try_from(number).map_err(|_| wrong()) } else { Err(wrong()) }
}

fn word<T: Copy>(value: &Json, words: &[(&str, T)]) -> Result<T, Invalid> {
    let sent = text(value)?;
    let known = || words.iter().map(|(it, _)| *it).collect::<Vec<_>>().join("`, `");
    let found = words.iter().find(|(it, _)| *it == sent);
    found.map(|(_, it)| *it).ok_or_else(|| Invalid::new(format!("must be one of `{}`", known())))
}

/// `{ currency: minor units }`; `null` is none of them.
fn lines(fields: &mut Fields<'_>, name: &str) -> Option<BTreeMap<Currency, i64>> {
    if fields.is_null(name) {
        return Some(BTreeMap::new());
    }
    fields.nested(name, |it| {
        let mut out = BTreeMap::new();
        let why = || Invalid::new("must be a whole number of minor units, 0 or more");
        for name in it.names() {
            let minor = it.required(name, |it| integer(it).ok().filter(|it| *it >= 0).ok_or_else(why));
            let known = Currency::parse(name).map(|currency| out.insert(currency, minor).is_some());
            if known != Ok(false) {
                it.fault(name, Invalid::new("must name a currency, and each of them once"));
            }
        }
        out.into_iter().map(|(currency, minor)| Some((currency, minor?))).collect()
    })
}

/// The settings in force.
///
/// # Errors
/// None that a test does not rule out.
pub fn write(workspace: &Workspace) -> Result<Vec<u8>, Refusal> {
    let mut shown = shown(&workspace.settings);
    super::put(&mut shown, "name", json!(workspace.name));
    serde_json::to_vec(&shown).map_err(|_| Refusal::internal())
}

/// What holds where nothing was set, for the description of the interface.
pub(crate) fn defaults() -> Value {
    shown(&Settings::default())
}

fn shown(it: &Settings) -> Value {
    json!({
        "timezone": it.timezone.as_str(),
        "currency": it.currency.as_str(),
        "agentVelocity": {
            "toolVelocityCount": it.agent_velocity.tool_count,
            "velocityCount": it.agent_velocity.other_count,
            "velocityMinutes": it.agent_velocity.minutes,
        },
        "outsideMandate": it.outside_mandate.as_str(),
        "provenance": {
            "mismatch": it.provenance.mismatch.as_str(),
            "undeclared": it.provenance.undeclared.as_str(),
            "windowMinutes": it.provenance.window_minutes,
        },
        "approvalHours": it.approval_hours,
        "secondPersonAbove": it.second_person_above,
        "secondPersonAgeDays": it.second_person_age_days,
        "receiptMinutes": it.receipt_minutes,
        "maxWaiting": it.max_waiting,
        "freezeCeilingPerHour": it.freeze_ceiling_per_hour,
        "dataLoss": it.data_loss.as_str(),
        "signIn": {
            "requireTwoFactor": it.sign_in.require_two_factor,
            "requireSso": it.sign_in.require_sso,
            "ssoDomains": it.sign_in.sso_domains,
        },
        "stepUpAbove": it.step_up_above,
        "retentionDays": it.retention_days,
    })
}
