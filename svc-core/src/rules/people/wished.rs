//! What is wrong with a change that a member asks for: each fault under its path in the application, and what they may not read is
//! not there for them here either.

use super::applications::content;
use super::by::{By, Person, member, reaches};
use super::mandates::{first_version, held, is_held, read};
use super::members::own_member;
use super::register_agent::unfit;
use super::teams::fits;
use crate::refusal::{FieldError, Kind, Refusal};
use crate::rules::gateway::budgets::raise_faults;
use crate::state::gate::Agent;
use crate::state::people::{Change, MandateChangeWish, RaiseWish, Reach, Right, RoleWish, Wish, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::id::AgentId;

/// What is wrong with a change that is asked for.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row is not there that every workspace has.
pub(super) fn faults(scope: &mut Scope<'_>, by: &Person, change: &Change) -> Result<Vec<FieldError>, Halt> {
    let place = by.workspace;
    let workspace = scope.get::<Workspace>(place)?.ok_or_else(Refusal::internal)?;
    let mut faults = Vec::new();
    match change {
        Change::Agent(wish) => {
            faults.extend(unfit(scope, place, "change.", wish.sponsor, wish.kill_owner)?);
            for (number, wish) in wish.mandates.iter().enumerate() {
                faults.extend(of_wish(scope, &workspace, wish, &format!("change.mandates.{number}"))?);
            }
        }
        Change::Mandate(wish) => {
            faults.extend(of_agent(scope, by, wish.agent)?);
            faults.extend(of_wish(scope, &workspace, &wish.wish, "change")?);
        }
        Change::ChangedMandate(wish) => faults.extend(of_change(scope, by, wish)?),
        Change::Tier { agent, tier } => {
            let hidden = of_agent(scope, by, *agent)?;
            // What one may not read, one does not learn the tier of.
            let is_same = hidden.is_none() && scope.get::<Agent>(*agent)?.is_some_and(|it| it.tier == *tier);
            faults.extend(hidden);
            faults.extend(is_same.then(|| FieldError::new("change.tier", "is its tier already")));
        }
        Change::Role(wish) => faults.extend(of_role(scope, by, wish)?),
        Change::BudgetRaise(wish) => faults.extend(of_raise(scope, by, wish)?),
    }
    Ok(faults)
}

fn of_agent(scope: &mut Scope<'_>, person: &Person, agent: AgentId) -> Result<Option<FieldError>, Halt> {
    let hidden = !sees(scope, person, agent)?;
    Ok(hidden.then(|| FieldError::new("target", "names no agent that you may read")))
}

/// What is wrong with a raise. Whoever is refused by a budget is told of it, so whoever names one may ask for more of it.
fn of_raise(scope: &mut Scope<'_>, person: &Person, wish: &RaiseWish) -> Result<Vec<FieldError>, Halt> {
    match raise_faults(scope, person, wish.budget, wish.allocation) {
        Ok(faults) => Ok(faults.into_iter().map(|it| it.within("change")).collect()),
        Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::NotFound => {
            Ok(vec![FieldError::new("target", "names no budget of this workspace")])
        }
        Err(halt) => Err(halt),
    }
}

/// What is wrong with a change of a mandate, by what it says now.
fn of_change(scope: &mut Scope<'_>, person: &Person, wish: &MandateChangeWish) -> Result<Vec<FieldError>, Halt> {
    let none = || vec![FieldError::new("target", "names no mandate in force that you may read")];
    let agent = match first_version(scope, person.workspace, wish.mandate) {
        Ok((_, agent)) => agent,
        Err(Halt::Refuse(_)) => return Ok(none()),
        Err(halt) => return Err(halt),
    };
    if agent.id != wish.agent || !is_held(&agent, wish.mandate) || !sees(scope, person, agent.id)? {
        return Ok(none());
    }
    let (old, grant) = held(scope, &agent, wish.mandate)?;
    let terms = wish.change.onto(old.terms());
    if terms == *old.terms() && wish.paused.is_none_or(|it| it == grant.paused) {
        return Ok(vec![FieldError::new("change", "changes nothing")]);
    }
    let mut faults = if terms == *old.terms() { Vec::new() } else { terms.faults(scope.now()) };
    faults.extend(terms.faults_after(old.terms()));
    Ok(faults.into_iter().map(|it| it.within("change")).collect())
}

/// What is wrong with a change of a member. One may ask for oneself, and for others where one may read who there is.
fn of_role(scope: &mut Scope<'_>, person: &Person, wish: &RoleWish) -> Result<Vec<FieldError>, Halt> {
    let (_, role) = member(scope, person)?;
    let may = wish.member == person.principal || role.reach(Right::ReadMembers) == Reach::All;
    let target = match own_member(scope, person.workspace, wish.member) {
        Ok(found) => found.membership().filter(|_| may).map(|it| it.role),
        Err(Halt::Refuse(_)) => None,
        Err(halt) => return Err(halt),
    };
    let mut faults = Vec::new();
    match (target, wish.role) {
        (None, _) => faults.push(FieldError::new("target", "names no member that you may read")),
        (Some(was), Some(role)) if was == role && wish.teams.is_none() => {
            faults.push(FieldError::new("change.role", "is their role already"));
        }
        (Some(_), None) if wish.teams.is_none() => faults.push(FieldError::new("change", "changes nothing")),
        (Some(_), _) => {}
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
    match read(scope, workspace, &content(wish)) {
        Ok(meant) => Ok(meant.terms.faults(scope.now()).into_iter().map(|it| it.within(path)).collect()),
        Err(Halt::Refuse(refusal)) if refusal.kind() == Kind::UnknownTemplate => {
            Ok(vec![FieldError::new(format!("{path}.template"), "names no template")])
        }
        Err(halt) => Err(halt),
    }
}
