//! Drills: a canary is frozen in place of others, and each place that could let it act is tried.
//!
//! **Invariant:** a canary never acts: every limit of its mandates is zero, and every action of its tier asks. Nobody has the
//! text of its key. What the drill itself puts down as allowed, so that there is a receipt to be voided, does nothing.

use std::sync::Arc;

use super::caller::Caller;
use super::freeze::{found_agent, freeze, recorded, touch};
use super::record::ActionRecord;
use crate::refusal::Refusal;
use crate::rules::gateway::payer::CallKey;
use crate::rules::people::by::{By, entitled};
use crate::rules::people::keys::NewKey;
use crate::rules::people::mandates::Meant;
use crate::rules::people::named::{self, Named};
use crate::rules::people::register_agent::{ActsFor, RegisterAgent, made, record_agent};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{
    Action, ActionKind, Agent, Allowed, Count, DRILL_EVERY, DecidedBy, Drill, DrillState, DrillStep, Frozen, FrozenBy,
    Limits, Mandate, OnLimit, Request, State, Status, Terms, Tier, Verb, salt_text,
};
use crate::state::people::{Credential, Plans, Right, Roster, TokenUse, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::currency::Currency;
use crate::value::id::{ActionId, AgentId, DrillId, PrincipalId, WorkspaceId};
use crate::value::period::Period;
use crate::value::text::{Label, Note, Summary};

/// Starts a drill.
#[derive(Clone, Debug)]
pub struct StartDrill {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who starts it.
    pub by: By,
    /// Whom it is about, at most ten, each counted once; none for a plain canary.
    pub targets: Vec<AgentId>,
    /// Why, where they say so.
    pub reason: Option<Note>,
    /// The canary's key, whose text nobody keeps.
    pub key: NewKey,
}

/// A drill that has started.
#[derive(Clone, Debug)]
pub struct Started {
    /// The drill.
    pub drill: Arc<Drill>,
    /// The canary, by its key.
    pub canary: Caller,
    /// The same key, for model calls.
    pub key: CallKey,
    /// What stands as allowed to it until it is frozen.
    pub allowed: Action,
    /// Who could have connected a client to it: the workspace's first owner.
    pub owner: PrincipalId,
    /// The currency that it is to ask in.
    pub currency: Currency,
}

/// Makes the canary. The token's next drill has to wait from now on.
///
/// # Errors
/// Those of [`entitled`]; `drill_cooldown`; `invalid_request` where a target is no agent of the workspace; `not_allowed` with `hold`
/// while a hold over every agent stands: nothing is allowed then, so a drill would show nothing of a freeze.
pub fn start_drill(scope: &mut Scope<'_>, asked: &StartDrill) -> Result<Started, Halt> {
    scope.want(&[Workspace::key(asked.workspace), Roster::key(asked.workspace)])?;
    entitled(scope, &asked.by, asked.workspace, Right::FreezeFleet)?;
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let named = asked.targets.iter().enumerate().map(|(at, id)| (format!("agentIds.{at}"), Named::Agent(*id)));
    let faults = named::faults(scope, asked.workspace, &named.collect::<Vec<_>>())?;
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let mut targets = Vec::with_capacity(asked.targets.len());
    for id in &asked.targets {
        if targets.iter().all(|it: &Arc<Agent>| it.id != *id) {
            targets.extend(found_agent(scope, asked.workspace, *id)?);
        }
    }
    if let Some(hold) = workspace.all_held() {
        return Err(Refusal::not_allowed_under(hold.id, "a hold stops every agent, so there is nothing to try").into());
    }
    cool_down(scope, asked)?;
    let meant = cloned(scope, targets.first().map(|it| &**it))?;
    let currency = meant.iter().find_map(|it| it.terms.limits().currency).unwrap_or(workspace.settings.currency);
    let id: DrillId = scope.fresh();
    let principal = targets.first().map_or(workspace.owner, |it| it.principal);
    let canary = RegisterAgent {
        workspace: asked.workspace,
        by: asked.by.clone(),
        name: Label::parse(&format!("canary of {id}")).map_err(|_| Refusal::internal())?,
        principal: ActsFor::Principal(principal),
        tier: Tier::Restricted,
        sponsor: targets.first().and_then(|it| it.sponsor),
        kill_owner: None,
        mandates: Vec::new(),
        key: asked.key.clone(),
        plans: Plans::default(),
    };
    // A canary takes no place of the plan, however its drill ends.
    touch(scope, asked.workspace)?;
    let canary = made(scope, &canary, principal, meant);
    scope.put(Agent { canary: Some(id), ..Agent::clone(&canary.agent) });
    let data = Object::new().text("canaryId", &canary.agent.id.to_string());
    let data = data.int("targets", i64::try_from(targets.len()).unwrap_or(i64::MAX)).finish();
    let fact = Fact { kind: "drill.started", actor: asked.by.actor(), subject: Subject::Drill(id), data };
    let reason = asked.reason.as_ref().map(|it| ("reason", it.as_str()));
    let evidence = scope.append_with(asked.workspace, fact, reason.as_slice());
    let drill = Drill {
        id,
        workspace: asked.workspace,
        by: asked.by.maker(),
        targets: targets.iter().map(|it| it.id).collect(),
        canary: canary.agent.id,
        state: DrillState::Running,
        started_at: scope.now(),
        frozen_at: None,
        ended_at: None,
        contained_ms: None,
        steps: Vec::new(),
        evidence,
    };
    scope.put(drill.clone());
    let allowed = allowed(scope, &canary.agent, &drill, &workspace)?;
    let key = CallKey { row: Credential::id_of(&asked.key.digest), binding: Arc::new(canary.binding.clone()) };
    let (canary, owner) = (Caller::of(&canary.binding)?, workspace.owner);
    Ok(Started { canary, key, allowed, drill: Arc::new(drill), owner, currency })
}

/// Puts down an action of no amount as allowed to the canary: a drill shows that its receipt is void after the freeze, and a
/// canary could come by none.
fn allowed(scope: &mut Scope<'_>, canary: &Agent, drill: &Drill, workspace: &Workspace) -> Result<Action, Halt> {
    let kind = ActionKind::parse("drill.receipt").map_err(|_| Refusal::internal())?;
    let request = Request::new(kind, Summary::parse("a drill").map_err(|_| Refusal::internal())?);
    let (id, now) = (scope.fresh::<ActionId>(), scope.now());
    let salt = scope.draw();
    let digest = request.digest(canary.id, &salt_text(&salt));
    let yes = Allowed::new(now, DecidedBy::Policy, workspace.settings.receipt_end(now));
    let mut action = Action { state: State::Allowed(yes), ..request.action(id, canary, salt, digest, now) };
    let (verb, status) = (Verb::Allow, Status::Allowed);
    let (kind, actor) = ("action.allowed", Actor::Drill(drill.id));
    let record = ActionRecord { kind, actor, action: &action, agent: canary, verb, status };
    action.evidence = scope.append(canary.workspace, record.fact(&request.commitments(&salt)));
    scope.put(action.clone());
    Ok(action)
}

/// That the token's last drill is an hour past, and that this one is its last from now on.
fn cool_down(scope: &mut Scope<'_>, asked: &StartDrill) -> Result<(), Halt> {
    let By::Token(token) = &asked.by else { return Ok(()) };
    let now = scope.now();
    let known = scope.get::<TokenUse>(token.token)?;
    let used = known.map_or_else(|| TokenUse::none(token.token, asked.workspace), |it| TokenUse::clone(&it));
    if let Some(next) = used.drilled_at.map(|it| it.plus(DRILL_EVERY)).filter(|next| now < *next) {
        let left = next.since(now).as_millis().saturating_add(999).div_euclid(1_000);
        return Err(Refusal::drill_cooldown(u32::try_from(left).unwrap_or(u32::MAX)).into());
    }
    scope.put(TokenUse { drilled_at: Some(now), ..used });
    Ok(())
}

/// The mandates of a target with every limit at zero.
fn cloned(scope: &mut Scope<'_>, target: Option<&Agent>) -> Result<Vec<Meant>, Halt> {
    let Some(target) = target else { return Ok(Vec::new()) };
    let ids: Vec<_> = target.mandates_in_force(scope.now()).collect();
    scope.want(&ids.iter().map(|it| Mandate::key(*it)).collect::<Vec<_>>())?;
    let mut meant = Vec::with_capacity(ids.len());
    for id in ids {
        let mandate = scope.get::<Mandate>(id)?.ok_or_else(Refusal::internal)?;
        meant.push(Meant { terms: zeroed(mandate.terms().clone()), template: None });
    }
    Ok(meant)
}

fn zeroed(mut terms: Terms) -> Terms {
    // Each of them: one that is left as it is would let a canary do what is only rehearsed.
    let Limits { currency, per_action, per_period, count, ask_above, on_limit } = terms.limits.get_or_insert_default();
    *per_action = currency.map(|_| 0);
    *ask_above = None;
    if let Some(it) = per_period {
        it.amount = 0;
    }
    *count = Some(Count { max: 0, period: count.as_ref().map_or(Period::Day, |it| it.period) });
    *on_limit = OnLimit::Ask;
    terms
}

/// Freezes a drill's canary.
#[derive(Clone, Copy, Debug)]
pub struct FreezeCanary(pub DrillId);

/// Freezes the canary of a drill that runs; one that is over stays as it is.
///
/// # Errors
/// `not_found` where there is no such drill.
pub fn freeze_canary(scope: &mut Scope<'_>, asked: &FreezeCanary) -> Result<Arc<Drill>, Halt> {
    let drill = scope.get::<Drill>(asked.0)?.ok_or_else(Refusal::not_found)?;
    if drill.state != DrillState::Running || drill.frozen_at.is_some() {
        return Ok(drill);
    }
    stop(scope, &drill)?;
    let frozen = Drill { frozen_at: Some(scope.now()), ..Drill::clone(&drill) };
    scope.put(frozen.clone());
    Ok(Arc::new(frozen))
}

fn stop(scope: &mut Scope<'_>, drill: &Drill) -> Result<(), Halt> {
    let canary = scope.get::<Agent>(drill.canary)?.ok_or_else(Refusal::internal)?;
    let reason = Note::parse("a drill").map_err(|_| Refusal::internal())?;
    let frozen = Frozen::new(scope.now(), FrozenBy::Drill(drill.id), reason);
    freeze(scope, &canary, frozen, Actor::Drill(drill.id))?;
    Ok(())
}

/// Ends a drill.
#[derive(Clone, Debug)]
pub struct EndDrill {
    /// Which.
    pub drill: DrillId,
    /// What was tried, in its order.
    pub steps: Vec<DrillStep>,
    /// Milliseconds from the freeze to the last refusal.
    pub contained_ms: i64,
}

/// Keeps the report of a drill and removes its canary. It has passed where every place refused as it should, one at least. One
/// that is over stays as it is.
///
/// # Errors
/// `not_found` where there is no such drill.
pub fn end_drill(scope: &mut Scope<'_>, asked: &EndDrill) -> Result<Arc<Drill>, Halt> {
    let drill = scope.get::<Drill>(asked.drill)?.ok_or_else(Refusal::not_found)?;
    if drill.state != DrillState::Running {
        return Ok(drill);
    }
    remove(scope, &drill)?;
    let passed = drill.frozen_at.is_some() && !asked.steps.is_empty() && asked.steps.iter().all(|it| it.ok);
    let ended = Drill {
        state: if passed { DrillState::Passed } else { DrillState::Failed },
        steps: asked.steps.clone(),
        contained_ms: Some(asked.contained_ms),
        ..Drill::clone(&drill)
    };
    Ok(over(scope, ended, Actor::Drill(drill.id)))
}

/// Removes the canary for good.
fn remove(scope: &mut Scope<'_>, drill: &Drill) -> Result<(), Halt> {
    let canary = scope.get::<Agent>(drill.canary)?.ok_or_else(Refusal::internal)?;
    if canary.is_removed() {
        return Ok(());
    }
    touch(scope, drill.workspace)?;
    let removed = recorded(scope, &canary).remove(scope.now());
    record_agent(scope, &removed, "agent.removed", Actor::Drill(drill.id));
    scope.put(removed);
    Ok(())
}

/// Writes the end of a drill and its record.
fn over(scope: &mut Scope<'_>, ended: Drill, actor: Actor) -> Arc<Drill> {
    let kind = if ended.state == DrillState::Passed { "drill.passed" } else { "drill.failed" };
    let failed = ended.steps.iter().filter(|it| !it.ok).count();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut data = Object::new().text("canaryId", &ended.canary.to_string());
    if let Some(ms) = ended.contained_ms {
        data = data.int("containedMs", ms);
    }
    let data = data.int("failed", count(failed)).int("steps", count(ended.steps.len())).finish();
    let evidence = scope.append(ended.workspace, Fact { kind, actor, subject: Subject::Drill(ended.id), data });
    let ended = Drill { ended_at: Some(scope.now()), evidence, ..ended };
    scope.put(ended.clone());
    Arc::new(ended)
}

/// Ends a drill that came to no end, as after a crash: it has failed, and its canary is left frozen.
///
/// # Errors
/// [`Halt::Load`] alone; what is over or not due is left as it is.
pub fn expire_drill(scope: &mut Scope<'_>, id: DrillId) -> Result<(), Halt> {
    let now = scope.now();
    let due = |it: &Arc<Drill>| it.due().is_some_and(|at| now >= at);
    let Some(drill) = scope.get::<Drill>(id)?.filter(due) else { return Ok(()) };
    stop(scope, &drill)?;
    let frozen_at = drill.frozen_at.or(Some(now));
    over(scope, Drill { state: DrillState::Failed, frozen_at, ..Drill::clone(&drill) }, Actor::Timer);
    Ok(())
}

/// A drill's report.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where the workspace has no such drill.
pub fn own_drill(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId, id: DrillId) -> Result<Arc<Drill>, Halt> {
    entitled(scope, by, workspace, Right::FreezeFleet)?;
    let found = scope.get::<Drill>(id)?.filter(|it| it.workspace == workspace);
    found.ok_or_else(|| Refusal::not_found().into())
}
