//! Policy profiles: made, changed, removed.

use super::classes::Limit;
use super::routing::{Work, stamp};
use super::told::ToldProfile;
use crate::refusal::{FieldError, Refusal};
use crate::rules::people::taken;
use crate::state::evidence::Subject;
use crate::state::gateway::{Constraints, Mode, Profile};
use crate::turn::Halt;
use crate::value::id::ProfileId;
use crate::value::text::Label;

/// Profiles of one workspace.
const PROFILES_MAX: usize = 200;

/// One setting of a profile.
#[derive(Clone, Debug)]
pub enum Set {
    /// What people call it.
    Name(Label),
    /// Its own mode.
    Mode(Option<Mode>),
    /// One of its constraints.
    Limit(Limit),
}

pub(super) fn create(work: &mut Work<'_, '_>, set: &[Set]) -> Result<ProfileId, Halt> {
    let name = name_in(set);
    let mut faults = Vec::new();
    if name.is_none() {
        faults.push(FieldError::missing("name"));
    }
    if work.routing.profiles.len() >= PROFILES_MAX {
        faults.push(FieldError::whole(format!("a workspace has at most {PROFILES_MAX} policy profiles")));
    }
    faults.extend(name_fault(work, name, None));
    faults.extend(unknown(work, set)?);
    let (Some(name), true) = (name, faults.is_empty()) else {
        return Err(Refusal::invalid_request(faults).into());
    };
    let (created_by, created_at) = stamp(work);
    let id: ProfileId = work.scope.fresh();
    let mut made =
        Profile { id, name: name.clone(), mode: None, constraints: Constraints::default(), created_by, created_at };
    apply(&mut made, set);
    let name = [("name", made.name.as_str())];
    work.created("policy_profile.created", Subject::Profile(id), &ToldProfile::of(&made), &name)?;
    work.routing.profiles.push(made);
    Ok(id)
}

pub(super) fn change(work: &mut Work<'_, '_>, id: ProfileId, set: &[Set]) -> Result<(), Halt> {
    let before = work.routing.profile(id).cloned().ok_or_else(Refusal::not_found)?;
    let mut faults = Vec::from_iter(name_fault(work, name_in(set), Some(id)));
    faults.extend(unknown(work, set)?);
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let mut after = before.clone();
    apply(&mut after, set);
    let names = [("new.name", after.name.as_str()), ("old.name", before.name.as_str())];
    let texts: &[_] = if before.name == after.name { &[] } else { &names };
    let (old, new) = (ToldProfile::of(&before), ToldProfile::of(&after));
    work.changed("policy_profile.changed", Subject::Profile(id), &old, &new, texts)?;
    for it in &mut work.routing.profiles {
        if it.id == id {
            it.clone_from(&after);
        }
    }
    Ok(())
}

pub(super) fn remove(work: &mut Work<'_, '_>, id: ProfileId) -> Result<(), Halt> {
    work.routing.profile(id).ok_or_else(Refusal::not_found)?;
    work.unbound(|key| key.profile == Some(id))?;
    work.removed("policy_profile.removed", Subject::Profile(id));
    work.routing.profiles.retain(|it| it.id != id);
    Ok(())
}

fn name_in(set: &[Set]) -> Option<&Label> {
    set.iter().rev().find_map(|it| if let Set::Name(name) = it { Some(name) } else { None })
}

fn name_fault(work: &Work<'_, '_>, name: Option<&Label>, own: Option<ProfileId>) -> Option<FieldError> {
    let is_taken = |name: &Label| work.routing.profiles.iter().any(|it| it.name == *name && Some(it.id) != own);
    name.filter(|it| is_taken(it)).map(|_| FieldError::new("name", taken::PROFILE))
}

fn unknown(work: &mut Work<'_, '_>, set: &[Set]) -> Result<Vec<FieldError>, Halt> {
    Limit::faults(work, set.iter().filter_map(|it| if let Set::Limit(limit) = it { Some(limit) } else { None }))
}

fn apply(to: &mut Profile, set: &[Set]) {
    for one in set {
        match one {
            Set::Name(it) => to.name = it.clone(),
            Set::Mode(it) => to.mode = *it,
            Set::Limit(it) => it.apply(&mut to.constraints),
        }
    }
}
