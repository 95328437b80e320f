//! What is wrong with a change that a member asks for: each fault under its path in the application, and what they may not read is
//! not there for them here either.

use std::sync::Arc;

use super::applications::content;
use super::by::{By, Person, member, reaches};
use super::mandates::{first_version, held, is_held, read};
use super::members::own_member;
use super::named::{self, Named};
use super::register_agent::unfit;
use super::teams::fits;
use crate::refusal::{FieldError, Kind, Refusal};
use crate::rules::gateway::budgets::raise_faults;
use crate::state::gate::Agent;
use crate::state::gateway::Budget;
use crate::state::people::{Change, MandateChangeWish, Reach, Right, Role, RoleWish, Target, Wish, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::id::{AgentId, MandateId, PrincipalId};

/// What is wrong with a change that is asked for.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub(super) fn faults(scope: &mut Scope<'_>, by: &Person, change: &Change) -> Result<Vec<FieldError>, Halt> {
    let place = by.workspace;
    let workspace = scope.get::<Workspace>(place)?.ok_or_else(Refusal::internal)?;
    let target = change.target().map(|it| ("target".to_owned(), Named::Target(*by, it)));
    let mut faults = named::faults(scope, place, target.as_slice())?;
    let is_hidden = !faults.is_empty();
    faults.extend(match change {
        Change::Agent(wish) => {
            let mut faults = unfit(scope, place, "change.", wish.sponsor, wish.kill_owner)?;
            for (number, wish) in wish.mandates.iter().enumerate() {
                faults.extend(of_wish(scope, &workspace, wish, &format!("change.mandates.{number}"))?);
            }
            faults
        }
        Change::Mandate(wish) => of_wish(scope, &workspace, &wish.wish, "change")?,
        Change::Role(wish) => of_role(scope, by, wish, is_hidden)?,
        // Of what one may not read, one does not learn how it stands.
        Change::ChangedMandate(_) | Change::Tier { .. } | Change::BudgetRaise(_) if is_hidden => Vec::new(),
        Change::ChangedMandate(wish) => of_change(scope, by, wish)?,
        Change::Tier { agent, tier } => {
            let is_same = scope.get::<Agent>(*agent)?.is_some_and(|it| it.tier == *tier);
            is_same.then(|| FieldError::new("change.tier", "is its tier already")).into_iter().collect()
        }
        Change::BudgetRaise(wish) => {
            let faults = raise_faults(scope, by, wish.budget, wish.allocation)?;
            faults.into_iter().map(|it| it.within("change")).collect()
        }
    });
    Ok(faults)
}

/// What is told of a target that is not there, or that `person` may not read. Whoever is refused by a budget is told of it, so whoever
/// names one may ask for more of it.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub(super) fn hidden(scope: &mut Scope<'_>, person: &Person, target: Target) -> Result<Option<&'static str>, Halt> {
    let (is_shown, clause) = match target {
        Target::Agent(id) => (sees(scope, person, id)?, "names no agent that you may read"),
        Target::Budget(id) => {
            let found = scope.get::<Budget>(id)?.filter(|it| it.workspace == person.workspace);
            (found.is_some(), "names no budget of this workspace")
        }
        Target::Mandate(id) => {
            let is_held = holder(scope, person, id)?.is_some();
            (is_held, "names no mandate in force that you may read")
        }
        Target::Member(id) => (role_of(scope, person, id)?.is_some(), "names no member that you may read"),
    };
    Ok((!is_shown).then_some(clause))
}

/// The agent that holds a mandate which `person` may read.
fn holder(scope: &mut Scope<'_>, person: &Person, mandate: MandateId) -> Result<Option<Arc<Agent>>, Halt> {
    let agent = match first_version(scope, person.workspace, mandate) {
        Ok((_, agent)) => agent,
        Err(Halt::Refuse(_)) => return Ok(None),
        Err(halt) => return Err(halt),
    };
    let is_shown = is_held(&agent, mandate) && sees(scope, person, agent.id)?;
    Ok(is_shown.then_some(agent))
}

/// The role of a member whom `person` may read. One may ask for oneself, and for others where one may read who there is.
fn role_of(scope: &mut Scope<'_>, person: &Person, id: PrincipalId) -> Result<Option<Role>, Halt> {
    let (_, role) = member(scope, person)?;
    let may = id == person.principal || role.reach(Right::ReadMembers) == Reach::All;
    match own_member(scope, person.workspace, id) {
        Ok(found) => Ok(found.membership().filter(|_| may).map(|it| it.role)),
        Err(Halt::Refuse(_)) => Ok(None),
        Err(halt) => Err(halt),
    }
}

/// What is wrong with a change of a mandate, by what it says now.
fn of_change(scope: &mut Scope<'_>, person: &Person, wish: &MandateChangeWish) -> Result<Vec<FieldError>, Halt> {
    let agent = holder(scope, person, wish.mandate)?.ok_or_else(Refusal::internal)?;
    let (old, grant) = held(scope, &agent, wish.mandate)?;
    let terms = wish.change.onto(old.terms());
    if terms == *old.terms() && wish.paused.is_none_or(|it| it == grant.paused) {
        return Ok(vec![FieldError::new("change", "changes nothing")]);
    }
    let mut faults = if terms == *old.terms() { Vec::new() } else { terms.faults(scope.now()) };
    faults.extend(terms.faults_after(old.terms()));
    Ok(faults.into_iter().map(|it| it.within("change")).collect())
}

/// What is wrong with a change of a member, but for who they are.
fn of_role(scope: &mut Scope<'_>, person: &Person, wish: &RoleWish, is_hidden: bool) -> Result<Vec<FieldError>, Halt> {
    let mut faults = Vec::new();
    match wish.role {
        _ if is_hidden || wish.teams.is_some() => {}
        Some(role) if role_of(scope, person, wish.member)? == Some(role) => {
            faults.push(FieldError::new("change.role", "is their role already"));
        }
        Some(_) => {}
        None => faults.push(FieldError::new("change", "changes nothing")),
    }
    match fits(scope, person.workspace, wish.teams.as_deref().unwrap_or_default(), "change.teamIds") {
        Ok(()) => Ok(faults),
        Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::InvalidRequest => {
            faults.extend_from_slice(refusal.errors());
            Ok(faults)
        }
        Err(halt) => Err(halt),
    }
}

/// Whether a member may read an agent: what one may not read, one does not learn of here either.
fn sees(scope: &mut Scope<'_>, person: &Person, agent: AgentId) -> Result<bool, Halt> {
    let (_, role) = member(scope, person)?;
    let agent = scope.get::<Agent>(agent)?.filter(|it| it.workspace == person.workspace);
    let reach = role.reach(Right::ReadAgents);
    Ok(agent.is_some_and(|it| reaches(&By::Person(*person), reach, &it).is_ok()))
}

/// What is wrong with a mandate that is asked for, under its path.
fn of_wish(scope: &mut Scope<'_>, workspace: &Workspace, wish: &Wish, path: &str) -> Result<Vec<FieldError>, Halt> {
    if let Wish::Template(name) = wish
        && let Some(fault) =
            named::fault(scope, workspace.id, &format!("{path}.template"), &Named::Template(name.clone()))?
    {
        return Ok(vec![fault]);
    }
    let meant = read(scope, workspace, &content(wish))?;
    Ok(meant.terms.faults(scope.now()).into_iter().map(|it| it.within(path)).collect())
}
