//! Teams: made, changed, removed. A removed team leaves its members as they are; one whose owner left has none.

use std::sync::Arc;

use serde::Serialize;

use super::by::{By, entitled};
use crate::refusal::{FieldError, Refusal};
use crate::rules::changed::changed;
use crate::rules::gate::freeze::touch;
use crate::rules::gateway::routing::{as_json, unbound};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gateway::BudgetScope;
use crate::state::people::{MEMBER_TEAMS_MAX, Member, Principal, Right, TEAM_MEMBERS_MAX, Team, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::canonical;
use crate::value::id::{PrincipalId, TeamId, WorkspaceId};
use crate::value::json::Json;
use crate::value::text::Label;

/// Makes a team, or changes one: what is absent stays.
#[derive(Clone, Debug)]
pub struct KeepTeam {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who asks.
    pub by: By,
    /// Which one; absent where it is made.
    pub team: Option<TeamId>,
    /// What people call it; a new one needs it.
    pub name: Option<Label>,
    /// Who answers for it; `Some(None)` for nobody.
    pub owner: Option<Option<PrincipalId>>,
    /// Who is in it from now on.
    pub members: Option<Vec<PrincipalId>>,
}

/// Makes or changes a team.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `invalid_request` naming everybody who is no member here.
pub fn keep_team(scope: &mut Scope<'_>, asked: &KeepTeam) -> Result<Arc<Team>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMembers)?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let before = match asked.team {
        Some(id) => Some(own_team(scope, asked.workspace, id)?),
        None => None,
    };
    let named = asked.name.clone().or_else(|| before.as_ref().map(|it| it.name.clone()));
    let name = named.ok_or_else(|| Refusal::invalid_request(vec![FieldError::missing("name")]))?;
    check(scope, asked)?;
    let mut members =
        asked.members.clone().or_else(|| before.as_ref().map(|it| it.members.clone())).unwrap_or_default();
    members.sort_unstable();
    members.dedup();
    let team = Team {
        id: before.as_ref().map_or_else(|| scope.fresh(), |it| it.id),
        workspace: asked.workspace,
        name,
        owner: asked.owner.unwrap_or_else(|| before.as_ref().and_then(|it| it.owner)),
        members,
        created_by: before.as_ref().map_or_else(|| asked.by.principal(), |it| it.created_by),
        created_at: before.as_ref().map_or_else(|| scope.now(), |it| it.created_at),
    };
    if before.as_deref() == Some(&team) {
        return Ok(Arc::new(team));
    }
    let old: &[PrincipalId] = before.as_ref().map_or(&[], |it| &it.members);
    let left = old.iter().filter(|it| !team.members.contains(it));
    let came = team.members.iter().filter(|it| !old.contains(it));
    for (id, is_in) in left.map(|it| (*it, false)).chain(came.map(|it| (*it, true))) {
        place(scope, id, team.id, is_in)?;
    }
    record(scope, asked.by.actor(), before.as_deref(), &team)?;
    scope.put(team.clone());
    touch(scope, asked.workspace)?;
    Ok(Arc::new(team))
}

/// That everybody who is named is a member here, and the team not too large.
fn check(scope: &mut Scope<'_>, asked: &KeepTeam) -> Result<(), Halt> {
    let mut faults = Vec::new();
    let members = asked.members.as_deref().unwrap_or_default();
    if members.len() > TEAM_MEMBERS_MAX {
        let why = format!("must hold at most {TEAM_MEMBERS_MAX} members");
        return Err(Refusal::invalid_field("memberIds", why).into());
    }
    let owner = asked.owner.flatten();
    scope.want(&members.iter().chain(&owner).map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
    let paths = members.iter().enumerate().map(|(at, it)| (format!("memberIds.{at}"), *it));
    for (path, id) in paths.chain(owner.map(|it| ("owner".to_owned(), it))) {
        let found = scope.get::<Principal>(id)?.filter(|it| it.workspace == asked.workspace);
        let Some(found) = found.filter(|it| it.signs_in()) else {
            faults.push(FieldError::new(path, "names no member of this workspace"));
            continue;
        };
        let teams = found.membership().map_or(0, |it| it.teams.len());
        let is_new = found.membership().is_some_and(|it| !asked.team.is_some_and(|team| it.teams.contains(&team)));
        if path != "owner" && is_new && teams >= MEMBER_TEAMS_MAX {
            faults.push(FieldError::new(path, format!("is in {MEMBER_TEAMS_MAX} teams already")));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_request(faults).into()) }
}

/// Removes a team.
#[derive(Clone, Debug)]
pub struct RemoveTeam {
    /// From which workspace.
    pub workspace: WorkspaceId,
    /// Who removes it.
    pub by: By,
    /// Which one.
    pub team: TeamId,
}

/// Removes a team; its members stay members.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `not_allowed` where a budget is over it or a key in force is bound to it.
pub fn remove_team(scope: &mut Scope<'_>, asked: &RemoveTeam) -> Result<(), Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageMembers)?;
    let team = own_team(scope, asked.workspace, asked.team)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::internal)?;
    if workspace.has_budget_over(&BudgetScope::Team(team.id)) {
        return Err(Refusal::not_allowed("a budget is over it").into());
    }
    unbound(scope, asked.workspace, |key| key.team == Some(team.id))?;
    scope.want(&team.members.iter().map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
    for id in &team.members {
        place(scope, *id, team.id, false)?;
    }
    let data = canonical(&told(&team)?);
    let fact = Fact { kind: "team.removed", actor: asked.by.actor(), subject: Subject::Team(team.id), data };
    scope.append_with(asked.workspace, fact, &[("name", team.name.as_str())]);
    scope.delete::<Team>(team.id);
    touch(scope, asked.workspace)
}

/// Takes a team from an owner who left.
#[derive(Clone, Copy, Debug)]
pub struct DisownTeam {
    /// Which one.
    pub team: TeamId,
    /// Who left.
    pub left: PrincipalId,
}

/// Leaves a team without an owner, where who answered for it is a member no more.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn disown_team(scope: &mut Scope<'_>, asked: &DisownTeam) -> Result<(), Halt> {
    let Some(team) = scope.get::<Team>(asked.team)?.filter(|it| it.owner == Some(asked.left)) else { return Ok(()) };
    if scope.get::<Principal>(asked.left)?.is_some_and(|it| it.was_removed()) {
        let after = Team { owner: None, ..Team::clone(&team) };
        record(scope, Actor::Policy, Some(&team), &after)?;
        scope.put(after);
    }
    Ok(())
}

/// A team as `by` may read it.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn read_team(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: TeamId) -> Result<Arc<Team>, Halt> {
    entitled(scope, by, workspace, Right::ReadMembers)?;
    own_team(scope, workspace, id)
}

fn own_team(scope: &mut Scope<'_>, workspace: WorkspaceId, id: TeamId) -> Result<Arc<Team>, Halt> {
    let found = scope.get::<Team>(id)?.filter(|it| it.workspace == workspace);
    found.ok_or_else(|| Refusal::not_found().into())
}

/// That each of `teams` is one of the workspace and has room.
pub(super) fn fits(scope: &mut Scope<'_>, workspace: WorkspaceId, teams: &[TeamId], field: &str) -> Result<(), Halt> {
    if teams.len() > MEMBER_TEAMS_MAX {
        return Err(Refusal::invalid_field(field, format!("must hold at most {MEMBER_TEAMS_MAX} teams")).into());
    }
    let mut faults = Vec::new();
    for (at, id) in teams.iter().enumerate() {
        match scope.get_if_any::<Team>(*id)?.filter(|it| it.workspace == workspace) {
            Some(team) if team.members.len() < TEAM_MEMBERS_MAX => {}
            Some(_) => faults.push(FieldError::new(format!("{field}.{at}"), "names a team that is full")),
            None => faults.push(FieldError::new(format!("{field}.{at}"), "names no team of this workspace")),
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Refusal::invalid_request(faults).into()) }
}

/// Puts a member into these teams alone, here and in the teams' own rows.
pub(super) fn change_teams(
    scope: &mut Scope<'_>,
    principal: &Principal,
    teams: &[TeamId],
) -> Result<Arc<Principal>, Halt> {
    let member = principal.membership().ok_or_else(Refusal::not_found)?;
    let mut now = teams.to_vec();
    now.sort_unstable();
    now.dedup();
    let left = member.teams.iter().filter(|it| !now.contains(it));
    let came = now.iter().filter(|it| !member.teams.contains(it));
    for (id, is_in) in left.map(|it| (*it, false)).chain(came.map(|it| (*it, true))) {
        let Some(team) = scope.get_if_any::<Team>(id)? else { continue };
        let mut team = Team::clone(&team);
        team.members.retain(|it| *it != principal.id);
        if is_in {
            team.members.push(principal.id);
            team.members.sort_unstable();
        }
        scope.put(team);
    }
    let changed = Principal { member: Some(Member { teams: now, ..member.clone() }), ..principal.clone() };
    scope.put(changed.clone());
    Ok(Arc::new(changed))
}

/// Notes with a member that they are in a team, or no more.
fn place(scope: &mut Scope<'_>, id: PrincipalId, team: TeamId, is_in: bool) -> Result<(), Halt> {
    let Some(principal) = scope.get::<Principal>(id)? else { return Ok(()) };
    let mut principal = Principal::clone(&principal);
    if let Some(member) = &mut principal.member {
        member.teams.retain(|it| *it != team);
        if is_in {
            member.teams.push(team);
            member.teams.sort_unstable();
        }
    }
    scope.put(principal);
    Ok(())
}

/// Records that a team was made or has changed.
fn record(scope: &mut Scope<'_>, actor: Actor, before: Option<&Team>, team: &Team) -> Result<(), Halt> {
    let (kind, data) = match before {
        None => ("team.created", canonical(&told(team)?)),
        Some(before) => ("team.changed", changed(&told(before)?, &told(team)?)),
    };
    let name = team.name.as_str();
    let texts = match before {
        None => vec![("name", name)],
        Some(before) if before.name == team.name => Vec::new(),
        Some(before) => vec![("new.name", name), ("old.name", before.name.as_str())],
    };
    scope.append_with(team.workspace, Fact { kind, actor, subject: Subject::Team(team.id), data }, &texts);
    Ok(())
}

/// A team as the ledger tells it: without the name, which enters a record as a commitment.
fn told(team: &Team) -> Result<Json, Halt> {
    as_json(&Told { member_ids: &team.members, owner: team.owner })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    member_ids: &'a [PrincipalId],
    owner: Option<PrincipalId>,
}
