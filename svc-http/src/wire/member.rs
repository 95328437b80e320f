//! Members and teams (CONTRACT part 2, "People, keys, tokens").

use serde_json::{Value, json};
use svc_core::refusal::Refusal;
use svc_core::state::people::{MEMBER_TEAMS_MAX, Principal, Role, TEAM_MEMBERS_MAX, Team};
use svc_core::value::Invalid;
use svc_core::value::id::{PrincipalId, TeamId};
use svc_core::value::json::Json;
use svc_core::value::text::{Email, Label};

use super::named::Names;
use super::{Fields, parse, parse_or_empty, text};

/// A wish to invite somebody.
#[derive(Debug)]
pub struct NewMember {
    /// Where they are reached.
    pub email: Email,
    /// What people call them.
    pub name: Option<Label>,
    /// What they may do.
    pub role: Role,
    /// The teams they are in, where the wish says so.
    pub teams: Option<Vec<TeamId>>,
}

/// What an invitation, or a change of a member, names.
pub const IDS: &[(&str, Names)] = &[("teamIds.[]", Names::Team)];
/// What a team names.
pub const TEAM_IDS: &[(&str, Names)] = &[("memberIds.[]", Names::Member), ("owner", Names::Member)];

/// Reads an invitation.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8]) -> Result<NewMember, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let email = fields.required("email", |it| Email::parse(text(it)?));
    let name = fields.optional("name", |it| Label::parse(text(it)?));
    let role = fields.required("role", role);
    let teams = fields.texts("teamIds", (0, MEMBER_TEAMS_MAX), TeamId::parse);
    let made = email.zip(role).map(|(email, role)| NewMember { email, name, role, teams });
    fields.finish(made)
}

/// A wish to change a member.
#[derive(Debug)]
pub struct MemberChange {
    /// The new role.
    pub role: Option<Role>,
    /// The teams from now on.
    pub teams: Option<Vec<TeamId>>,
}

/// Reads a change of a member.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_change(body: &[u8]) -> Result<MemberChange, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let change = change(&mut fields);
    fields.finish(Some(change))
}

/// A change of a member in a larger body, with everything that makes it none.
pub(super) fn change(fields: &mut Fields<'_>) -> MemberChange {
    let role = fields.optional("role", role);
    let teams = fields.texts("teamIds", (0, MEMBER_TEAMS_MAX), TeamId::parse);
    MemberChange { role, teams }
}

fn role(value: &Json) -> Result<Role, Invalid> {
    let why = || Invalid::new("must be `owner`, `admin`, `member`, `analyst` or `auditor`");
    Role::parse(text(value)?).ok_or_else(why)
}

/// A member; `None` for a principal that never was one.
#[must_use]
pub fn write(principal: &Principal) -> Option<Value> {
    let member = principal.member.as_ref()?;
    let invited_by = member.invited_by.map(|it| it.to_string());
    Some(json!({
        "id": principal.id,
        "principalId": principal.id,
        "email": principal.email.as_str(),
        "name": principal.name,
        "role": member.role.as_str(),
        "state": member.state.as_str(),
        "teamIds": member.teams,
        "invitedBy": invited_by,
        "createdAt": principal.created_at.to_string(),
        "createdBy": invited_by,
    }))
}

/// A wish for a team, or for a change of one.
#[derive(Debug)]
pub struct TeamWish {
    /// What people call it.
    pub name: Option<Label>,
    /// Who answers for it; `Some(None)` for nobody.
    pub owner: Option<Option<PrincipalId>>,
    /// Who is in it.
    pub members: Option<Vec<PrincipalId>>,
}

/// Reads a wish for a team; a new one needs a name.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read_team(body: &[u8], is_new: bool) -> Result<TeamWish, Refusal> {
    let json = if is_new { parse(body)? } else { parse_or_empty(body)? };
    let mut fields = Fields::of(&json)?;
    let read = |it: &Json| Label::parse(text(it)?);
    let name = if is_new { fields.required("name", read) } else { fields.optional("name", read) };
    let owner = fields.optional("owner", |it| PrincipalId::parse(text(it)?)).map(Some);
    let owner = if fields.is_null("owner") { Some(None) } else { owner };
    let members = fields.texts("memberIds", (0, TEAM_MEMBERS_MAX), PrincipalId::parse);
    fields.finish(Some(TeamWish { name, owner, members }))
}

/// A team.
#[must_use]
pub fn write_team(team: &Team) -> Value {
    let mut shown = json!({
        "id": team.id,
        "name": team.name,
        "memberIds": team.members,
        "createdAt": team.created_at.to_string(),
        "createdBy": team.created_by.map(|it| it.to_string()),
    });
    if let (Some(members), Some(owner)) = (shown.as_object_mut(), team.owner) {
        members.insert("owner".to_owned(), json!(owner));
    }
    shown
}
