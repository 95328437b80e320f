//! A workspace's settings: only the members that are named change, and every change is recorded with both values.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::by::{By, entitled, member, own_session};
use super::single_sign_on::provider;
use crate::refusal::{FieldError, Refusal};
use crate::rules::edge::tell::spread;
use crate::rules::gateway::routing::as_json;
use crate::state::edge::News;
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{SWEEP_EVERY, Sweep};
use crate::state::people::{
    DataLoss, OnMismatch, OnUndeclared, Outside, Plan, Proof, Right, Role, Settings, Workspace,
};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::canonical;
use crate::value::currency::Currency;
use crate::value::domain::Domain;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;
use crate::value::period::Zone;
use crate::value::text::Label;

/// Puts settings in force.
#[derive(Clone, Debug)]
pub struct ChangeSettings {
    /// Of which workspace.
    pub workspace: WorkspaceId,
    /// Who.
    pub by: By,
    /// Those that change.
    pub change: SettingsChange,
}

macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $($member:ident).+;)*) => {
        /// The settings that change; the others stay as they are.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct SettingsChange {
            /// What people call the workspace.
            pub name: Option<Label>,
            /// Which plan the workspace is on: the operator's to say, never the workspace's own.
            pub plan: Option<Plan>,
            $($(#[$doc])* pub $name: Option<$type>,)*
        }

        impl SettingsChange {
            fn apply(&self, settings: &mut Settings, now: Timestamp) {
                if let Some(zone) = self.timezone.as_ref().filter(|it| **it != settings.timezone) {
                    settings.change_zone(zone.clone(), now);
                }
                $(if let Some(value) = &self.$name { settings.$($member).+ = value.clone(); })*
            }
        }

        /// All of them.
        impl From<Settings> for SettingsChange {
            fn from(settings: Settings) -> Self {
                Self { name: None, plan: None, $($name: Some(settings.$($member).+.clone()),)* }
            }
        }
    };
}

changes! {
    /// Where its calendar periods begin. Running periods end as they began.
    timezone: Zone = timezone;
    /// In which currency templates are read.
    currency: Currency = currency;
    /// How many tool calls a window.
    tool_count: u32 = agent_velocity.tool_count;
    /// How many other actions a window.
    other_count: u32 = agent_velocity.other_count;
    /// The window of both lines, in minutes.
    velocity_minutes: u16 = agent_velocity.minutes;
    /// What becomes of an action that no mandate covers.
    outside_mandate: Outside = outside_mandate;
    /// What an understated account of provenance brings about.
    mismatch: OnMismatch = provenance.mismatch;
    /// What an undeclared provenance brings about.
    undeclared: OnUndeclared = provenance.undeclared;
    /// How far back observations count, in minutes.
    window_minutes: u16 = provenance.window_minutes;
    /// How long an approval waits, in hours.
    approval_hours: u16 = approval_hours;
    /// Above which amounts two persons decide.
    second_person_above: BTreeMap<Currency, i64> = second_person_above;
    /// For how many days two persons count as one after one of them raised the other.
    second_person_age_days: u16 = second_person_age_days;
    /// How long a receipt lives, in minutes.
    receipt_minutes: u16 = receipt_minutes;
    /// How many approvals of one agent may wait.
    max_waiting: u16 = max_waiting;
    /// How many agents a service token may freeze within an hour.
    freeze_ceiling_per_hour: u32 = freeze_ceiling_per_hour;
    /// What becomes of sensitive data on its way to a model.
    data_loss: DataLoss = data_loss;
    /// Whether everybody needs a second factor.
    require_two_factor: bool = sign_in.require_two_factor;
    /// Whether only single sign-on counts.
    require_sso: bool = sign_in.require_sso;
    /// Domains that single sign-on may bring people in from.
    sso_domains: Vec<Domain> = sign_in.sso_domains;
    /// Above which amounts the console asks for the second factor again.
    step_up_above: BTreeMap<Currency, i64> = step_up_above;
    /// For how many days what is personal in actions is kept; `None` is for ever.
    retention_days: Option<u16> = retention_days;
}

/// Puts settings in force and records the old and the new ones.
///
/// # Errors
/// Those of [`entitled`], `not_found` where there is no such workspace, `invalid_request` naming every setting out of its
/// bounds.
pub fn change_settings(scope: &mut Scope<'_>, asked: &ChangeSettings) -> Result<Arc<Workspace>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageSettings)?;
    let before = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let mut after = Workspace::clone(&before);
    asked.change.apply(&mut after.settings, scope.now());
    if let Some(name) = &asked.change.name {
        after.name = name.clone();
    }
    if let Some(plan) = asked.change.plan {
        if !matches!(asked.by, By::Program) {
            return Err(Refusal::forbidden("no workspace sets its own plan").into());
        }
        after.plan = plan;
    }
    let mut faults: Vec<FieldError> =
        after.settings.faults().into_iter().map(|(field, why)| FieldError::invalid(field, why)).collect();
    let is_new = after.settings.sign_in.require_sso && !before.settings.sign_in.require_sso;
    if is_new && !may_require_sso(scope, &asked.by, asked.workspace)? {
        faults.push(FieldError::new(
            "signIn.requireSso",
            "must be false until an owner who is signed in by this workspace's single sign-on asks for it",
        ));
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    if after == *before {
        return Ok(before);
    }
    let (old, new) = differing(&told(&before)?, &told(&after)?);
    let data = format!("{{\"new\":{new},\"old\":{old}}}");
    let subject = Subject::Workspace(asked.workspace);
    let record =
        scope.append(asked.workspace, Fact { kind: "settings.changed", actor: asked.by.actor(), subject, data });
    if loosens(&before.settings, &after.settings) {
        let (by, now) = (asked.by.principal(), scope.now());
        spread(scope, asked.workspace, News::Loosened { record, by }, now);
    }
    let retention_days = after.settings.retention_days;
    if let Some(sweep) = scope.get::<Sweep>(after.id)?.filter(|it| it.retention_days != retention_days) {
        // Whoever shortens it has it done within a day, whatever a clock that was ahead has put off.
        let due = sweep.due.min(scope.now().plus(SWEEP_EVERY));
        scope.put(Sweep { due, retention_days, ..Sweep::clone(&sweep) });
    }
    scope.put(after.clone());
    Ok(Arc::new(after))
}

/// Whether single sign-on may become the only way in. Whoever asks for it has come that way themselves, or it might lock out
/// everybody and them; the operator's shell stays the way out.
fn may_require_sso(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<bool, Halt> {
    match by {
        By::Program => Ok(true),
        By::Token(_) | By::Key(_) => Ok(false),
        By::Person(person) => {
            let (_, role) = member(scope, person)?;
            let Some(session) = person.session() else { return Ok(false) };
            let session = own_session(scope, session)?;
            let came = role == Role::Owner && session.row.proof == Proof::Sso(workspace);
            Ok(came && provider(scope, workspace)?.is_some())
        }
    }
}

/// Whether something may be done after a change that might not before (CONTRACT part 5): actions outside every mandate, provenance,
/// ceilings, second persons and factors, signing in, what leaves for models.
fn loosens(before: &Settings, after: &Settings) -> bool {
    let (old, new) = (&before.provenance, &after.provenance);
    let mismatch = |it: OnMismatch| match it {
        OnMismatch::Record => 0,
        OnMismatch::Ask => 1,
        OnMismatch::Deny => 2,
    };
    let undeclared = |it: OnUndeclared| match it {
        OnUndeclared::Record => 0,
        OnUndeclared::Ask => 1,
        OnUndeclared::Deny => 2,
    };
    let data_loss = |it: DataLoss| match it {
        DataLoss::Off => 0,
        DataLoss::Flag => 1,
        DataLoss::Redact => 2,
        DataLoss::Block => 3,
    };
    let (slow, fast) = (&before.agent_velocity, &after.agent_velocity);
    let (was, is) = (&before.sign_in, &after.sign_in);
    let velocity =
        fast.tool_count > slow.tool_count || fast.other_count > slow.other_count || fast.minutes < slow.minutes;
    let sign_in = (was.require_two_factor && !is.require_two_factor)
        || (was.require_sso && !is.require_sso)
        || is.sso_domains.iter().any(|it| !was.sso_domains.contains(it));
    (before.outside_mandate == Outside::Deny && after.outside_mandate == Outside::Ask)
        || mismatch(new.mismatch) < mismatch(old.mismatch)
        || undeclared(new.undeclared) < undeclared(old.undeclared)
        || new.window_minutes < old.window_minutes
        || after.freeze_ceiling_per_hour > before.freeze_ceiling_per_hour
        || after.max_waiting > before.max_waiting
        || velocity
        || frees(&before.second_person_above, &after.second_person_above)
        || after.second_person_age_days < before.second_person_age_days
        || frees(&before.step_up_above, &after.step_up_above)
        || data_loss(after.data_loss) < data_loss(before.data_loss)
        || sign_in
}

/// Whether lines of amounts let an amount pass that they did not before: a currency's line was raised or taken away, or a currency
/// that had none got one. Without any line all pass.
fn frees(before: &BTreeMap<Currency, i64>, after: &BTreeMap<Currency, i64>) -> bool {
    if before.is_empty() {
        return false;
    }
    after.is_empty() || after.iter().any(|(currency, line)| before.get(currency).is_none_or(|it| line > it))
}

/// Settings as the ledger tells them: under the names of the interface, as what is hashed there stays.
fn told(workspace: &Workspace) -> Result<Json, Halt> {
    let it = &workspace.settings;
    let (velocity, provenance, sign_in) = (&it.agent_velocity, &it.provenance, &it.sign_in);
    as_json(&Told {
        name: &workspace.name,
        plan: workspace.plan.as_str(),
        timezone: &it.timezone,
        currency: it.currency,
        agent_velocity: ToldVelocity {
            tool_velocity_count: velocity.tool_count,
            velocity_count: velocity.other_count,
            velocity_minutes: velocity.minutes,
        },
        outside_mandate: it.outside_mandate,
        provenance: ToldProvenance {
            mismatch: provenance.mismatch,
            undeclared: provenance.undeclared,
            window_minutes: provenance.window_minutes,
        },
        approval_hours: it.approval_hours,
        second_person_above: &it.second_person_above,
        second_person_age_days: it.second_person_age_days,
        receipt_minutes: it.receipt_minutes,
        max_waiting: it.max_waiting,
        freeze_ceiling_per_hour: it.freeze_ceiling_per_hour,
        data_loss: it.data_loss,
        sign_in: ToldSignIn {
            require_two_factor: sign_in.require_two_factor,
            require_sso: sign_in.require_sso,
            sso_domains: &sign_in.sso_domains,
        },
        step_up_above: &it.step_up_above,
        retention_days: it.retention_days,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    name: &'a Label,
    plan: &'a str,
    timezone: &'a Zone,
    currency: Currency,
    agent_velocity: ToldVelocity,
    outside_mandate: Outside,
    provenance: ToldProvenance,
    approval_hours: u16,
    second_person_above: &'a BTreeMap<Currency, i64>,
    second_person_age_days: u16,
    receipt_minutes: u16,
    max_waiting: u16,
    freeze_ceiling_per_hour: u32,
    data_loss: DataLoss,
    sign_in: ToldSignIn<'a>,
    step_up_above: &'a BTreeMap<Currency, i64>,
    retention_days: Option<u16>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldVelocity {
    tool_velocity_count: u32,
    velocity_count: u32,
    velocity_minutes: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldProvenance {
    mismatch: OnMismatch,
    undeclared: OnUndeclared,
    window_minutes: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldSignIn<'a> {
    require_two_factor: bool,
    require_sso: bool,
    sso_domains: &'a [Domain],
}

/// The members that differ, as two canonical objects.
pub(in crate::rules) fn differing(old: &Json, new: &Json) -> (String, String) {
    let changed = |from: &Json, to: &Json| {
        let members = from.as_object().unwrap_or_default().iter();
        let changed = members.filter(|(name, value)| to.get(name).is_none_or(|it| it != value)).cloned();
        canonical(&Json::Object(changed.collect()))
    };
    (changed(old, new), changed(new, old))
}
