//! Ids in a body, as far as they can be read where the body as a whole cannot.

use svc_core::rules::people::named::Named;
use svc_core::state::people::TEAM_MEMBERS_MAX;
use svc_core::value::id::{PrincipalId, ProfileId, TeamId};
use svc_core::value::json::Json;
use svc_core::value::text::ClassId;

/// What the id in a member is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Anybody of the workspace.
    Principal,
    /// Somebody who may answer for an agent.
    Sponsor,
    /// A member.
    Member,
    /// A list of members.
    Members,
    /// A team.
    Team,
    /// A list of teams.
    Teams,
    /// A class of tasks.
    TaskClass,
    /// A policy profile.
    Profile,
    /// What a budget is over.
    Scope,
}

/// Every id that can be read of the members `ids`, with its path; of a list as many as the longest that is sound may name.
#[must_use]
pub fn named(body: &Json, ids: &[(&str, Names)]) -> Vec<(String, Named)> {
    let mut found = Vec::new();
    for (name, names) in ids {
        let Some(value) = body.get(name) else { continue };
        let of_each = match names {
            Names::Teams => Names::Team,
            Names::Members => Names::Member,
            single => {
                found.extend(one(value, *single).map(|it| ((*name).to_owned(), it)));
                continue;
            }
        };
        for (at, item) in value.as_list().unwrap_or_default().iter().take(TEAM_MEMBERS_MAX).enumerate() {
            found.extend(one(item, of_each).map(|it| (format!("{name}.{at}"), it)));
        }
    }
    found
}

fn one(value: &Json, names: Names) -> Option<Named> {
    let text = value.as_str()?;
    match names {
        Names::Principal => PrincipalId::parse(text).ok().map(Named::Principal),
        Names::Sponsor => PrincipalId::parse(text).ok().map(Named::Sponsor),
        Names::Member => PrincipalId::parse(text).ok().map(Named::Member),
        Names::Team => TeamId::parse(text).ok().map(Named::Team),
        Names::TaskClass => ClassId::parse(text).ok().map(Named::TaskClass),
        Names::Profile => ProfileId::parse(text).ok().map(Named::Profile),
        // Lists, and an object that is read by itself.
        Names::Teams | Names::Members | Names::Scope => None,
    }
}
