//! A model call is admitted: who pays, for which work, to which models, within which budgets, in one commit.

use std::fmt;
use std::sync::Arc;

use super::payer::{CallKey, principal_of, stopped};
use super::refuse::with_record;
use super::{budgeting, observe};
use crate::dialect;
use crate::dlp::Findings;
use crate::refusal::Refusal;
use crate::state::gateway::route::{self, Ask, Candidate, Choice, Health};
use crate::state::gateway::{
    Admission as OnBudget, Call, CallState, Demand, Fees, Mode, Model, Objective, Profile, Received, Routing, Step,
    Target, Task, TaskClass, Upstream, estimate, strictest,
};
use crate::state::people::{DataLoss, Plans, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::{CallId, PrincipalId, SessionId as OwnSession, UpstreamId};
use crate::value::text::{ClassId, ModelName, SessionId, TaskId};
use crate::value::{Id, MicroUsd, Span, Timestamp};

/// How long after its own time a call that nobody ended is taken for lost.
const LAPSE_GRACE: Span = Span::seconds(60);

/// A model is called.
#[derive(Clone, Debug)]
pub struct AdmitCall {
    /// The key it came with.
    pub caller: CallKey,
    /// What the request is, as far as deciding on it goes.
    pub demand: Arc<Demand>,
    /// The class that the call names.
    pub class: Option<ClassId>,
    /// The task that the call names.
    pub task: Option<TaskId>,
    /// What the call wants favoured.
    pub objective: Option<Objective>,
    /// Whether it says that a person oversees it.
    pub oversight: bool,
    /// The session that the client names.
    pub session: Option<SessionId>,
    /// How providers fare, as this node sees it.
    pub health: Arc<Health>,
    /// Findings of sensitive data in what would go out.
    pub findings: Findings,
    /// The setting that it was looked for under.
    pub scanned_under: DataLoss,
    /// What plans allow.
    pub plans: Plans,
    /// How long a call may take, in milliseconds, where its provider has no time of its own.
    pub total_ms: u64,
    /// Whether nothing is to be kept but the record of what refuses it: then the answer says what would be.
    pub dry: bool,
    /// Whether its tokens are only counted: no call is made then, and no budget is asked. What refuses it is kept.
    pub count: bool,
}

/// What becomes of a call.
#[derive(Clone, Debug)]
pub enum Admission {
    /// It may be made.
    Admitted(Box<Admitted>),
    /// It may not. What the refusal leaves is kept.
    Refused(Refusal),
    /// The setting has changed since the request was looked at: it is to be looked at again under this one.
    Rescan(DataLoss),
}

/// A call that may be made.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The call.
    pub call: Arc<Call>,
    /// By what it was routed.
    pub routing: Arc<Routing>,
    /// Where it goes now: what the answer tells of its model is that one's.
    pub place: Place,
    /// Where it may go, the first attempt first: places in `routing`. Never empty.
    pub places: Vec<Place>,
    /// The models that satisfy policy, which one of them could have done for less is told by; none where it has no class.
    pub rivals: Arc<[Place]>,
    /// What the answer tells beside its content.
    pub notes: Notes,
}

/// A model and its provider, by their places in a workspace's routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Of the provider.
    pub upstream: usize,
    /// Of the model.
    pub model: usize,
    /// The most that the call can cost there; `None` where it is unpriced.
    pub worst: Option<MicroUsd>,
    /// The yield of the model relative to its class, in thousandths.
    pub multiplier: u64,
}

/// What the answer to a call tells beside its content (SPEC 9.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// In shadow, the `provider/model` that policy would have chosen.
    pub would_route_to: Option<String>,
    /// The highest step of a budget that is reached and does not refuse.
    pub step: Option<Step>,
    /// The budget that it is of, as `kind:id`.
    pub budget_scope: Option<String>,
    /// Lines for people, the gravest first.
    pub advisories: Vec<String>,
    /// Further lines for people, told where there is room.
    pub asides: Vec<String>,
    /// What policy said, in words.
    pub why: Vec<String>,
    /// What each budget said.
    pub budgets: Vec<OnBudget>,
}

impl Notes {
    /// Tells that the call was kept from a model, a `provider/model`, by a budget alone.
    pub fn has_no_room(&mut self, model: impl fmt::Display) {
        self.asides.push(format!("a budget has no room for a call of {model}"));
    }
}

impl Admitted {
    /// Whether a budget holds the call to what it reserves for it: where policy acts, and a budget could refuse one.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.call.mode == Mode::Enforce && self.notes.budgets.iter().any(|it| it.may_refuse)
    }

    /// The provider and the model at a place.
    #[must_use]
    pub fn at(&self, place: &Place) -> Option<(&Upstream, &Model)> {
        Some((self.routing.upstreams.get(place.upstream)?, self.routing.models.get(place.model)?))
    }
}

/// Admits a call, or says why not.
///
/// # Errors
/// What leaves no record: `invalid_api_key`, `invalid_request`, `unknown_task_class`, `unclassified_request`, `forbidden`.
pub fn admit_call(scope: &mut Scope<'_>, asked: &AdmitCall) -> Result<Admission, Halt> {
    admit_shown(scope, asked, &[], &mut |_| ())
}

/// The same, passing over models at which the request is known to have no form; `show` is told what policy says of every model,
/// where the call may be made.
///
/// # Errors
/// As [`admit_call`].
pub fn admit_shown(
    scope: &mut Scope<'_>,
    asked: &AdmitCall,
    formless: &[(UpstreamId, ModelName)],
    show: &mut dyn FnMut(&Choice<'_>),
) -> Result<Admission, Halt> {
    let binding = &asked.caller.binding;
    prefetch(scope, asked)?;
    let workspace = scope.get::<Workspace>(binding.workspace)?.ok_or_else(Refusal::internal)?;
    let routing = scope.get::<Routing>(binding.workspace)?.ok_or_else(Refusal::internal)?;
    if let Some(refusal) = stopped(scope, &asked.caller, &workspace)? {
        return refuse(scope, asked, refusal);
    }
    let class = routing.class_for(asked.class.as_ref().map(|it| it.as_str()), Some(binding))?;
    let profile = binding.profile.and_then(|id| routing.profile(id));
    let mode = routing.mode_for(profile);
    if mode == Mode::Enforce && class.is_none() {
        return Err(Refusal::unclassified_request().into());
    }
    let principal = principal_of(scope, &asked.caller)?;
    let task = own_task(scope, asked, principal)?;
    let setting = workspace.settings.data_loss;
    if asked.scanned_under != setting {
        return Ok(Admission::Rescan(setting));
    }
    if setting == DataLoss::Block && !asked.findings.is_empty() {
        return refuse(scope, asked, Refusal::sensitive_data_blocked(asked.findings.describe()));
    }
    let policy = Policy { workspace: &workspace, routing: &routing, principal, class, profile, mode, formless };
    policy.admit(scope, asked, task, show)
}

/// Asks for everything that is known to be needed in one round.
fn prefetch(scope: &mut Scope<'_>, asked: &AdmitCall) -> Result<(), Halt> {
    let workspace = asked.caller.binding.workspace;
    let mut keys = asked.caller.keys();
    keys.push(Routing::key(workspace));
    keys.extend(asked.task.as_ref().map(|it| Task::key(Task::key_of(workspace, it))));
    keys.extend(asked.session.iter().flat_map(|it| observe::keys(&asked.caller, it, &asked.demand.tool_results)));
    scope.want(&keys)
}

/// The refusal with the record that it leaves, also in a dry run, which ends as the call would have.
fn refuse(scope: &mut Scope<'_>, asked: &AdmitCall, refusal: Refusal) -> Result<Admission, Halt> {
    with_record(scope, &asked.caller, refusal).map(Admission::Refused)
}

/// The task that the call names, where it is there already.
fn own_task(scope: &mut Scope<'_>, asked: &AdmitCall, principal: PrincipalId) -> Result<Option<Arc<Task>>, Halt> {
    let Some(id) = &asked.task else { return Ok(None) };
    let found = scope.get::<Task>(Task::key_of(asked.caller.binding.workspace, id))?;
    if found.as_ref().is_some_and(|it| !asked.caller.carries_on(principal, it)) {
        return Err(Refusal::forbidden("this task is another principal's").into());
    }
    Ok(found)
}

/// By what a call is judged.
struct Policy<'a> {
    workspace: &'a Arc<Workspace>,
    routing: &'a Arc<Routing>,
    principal: PrincipalId,
    class: Option<&'a TaskClass>,
    profile: Option<&'a Profile>,
    mode: Mode,
    formless: &'a [(UpstreamId, ModelName)],
}

impl Policy<'_> {
    fn admit(
        &self,
        scope: &mut Scope<'_>,
        asked: &AdmitCall,
        task: Option<Arc<Task>>,
        show: &mut dyn FnMut(&Choice<'_>),
    ) -> Result<Admission, Halt> {
        let payer = asked.caller.payer(self.principal, self.class.map(|it| it.id.clone()));
        let mut budgets = budgeting::covering(scope, self.workspace, &payer)?;
        let yields = super::rollup::yields(scope, self.workspace)?;
        let unanswered = asked.count.then(|| asked.demand.unanswered());
        let choice = route::choose(&Ask {
            routing: self.routing,
            demand: unanswered.as_ref().unwrap_or(&asked.demand),
            input_tokens: None,
            model: Some(&asked.demand.model),
            class: self.class,
            profile: self.profile,
            mode: self.mode,
            objective: asked.objective,
            oversight: asked.oversight,
            downgrade: budgeting::prefers_cheaper(&budgets),
            takes: dialect::takes,
            health: &asked.health,
            yields: &yields,
        })
        .map_err(|why| why.refusal(&asked.demand.model))?;
        if asked.count {
            // Which model a call goes to may follow from its budgets; of what is only counted nothing can be spent.
            budgets.clear();
        }
        let all: Vec<&Candidate<'_>> = choice.targets().iter().filter(|it| self.has_form(it)).collect();
        let has_room = |it: &&Candidate<'_>| !budgeting::stops(&budgets, it.cost.unwrap_or_default(), self.mode);
        // A model that a budget has no room for is no reason to refuse what another that serves can do.
        let (full, targets) = all.split_at(all.iter().position(has_room).unwrap_or(0));
        let Some(first) = targets.first().copied() else {
            return refuse(scope, asked, choice.refusal().unwrap_or_else(Refusal::internal));
        };
        let worst = first.cost;
        let admissions = budgeting::ask(&budgets, worst.unwrap_or_default(), self.mode);
        let asking =
            budgeting::Asking { workspace: self.workspace, caller: &asked.caller, payer: &payer, dry: asked.dry };
        if let Some(refusal) = budgeting::refusal(scope, &mut budgets, &asking, &admissions)? {
            return refuse(scope, asked, refusal);
        }
        let advisory = super::seats::count(scope, asked, self.workspace, self.principal)?;
        let advisory = match advisory {
            Ok(advisory) => advisory,
            Err(refusal) => return refuse(scope, asked, refusal),
        };
        let mut notes = self.notes(&choice, admissions, advisory);
        full.iter().for_each(|it| notes.has_no_room(it));
        let places: Vec<Place> = targets.iter().filter_map(|it| place(self.routing, it)).collect();
        let first_place = *places.first().ok_or_else(Refusal::internal)?;
        show(&choice);
        let rivals = self.rivals(&choice);
        let call = self.call(scope, asked, (&choice, &rivals), first, payer);
        let unpriced = worst.is_none() || asked.demand.is_priced_elsewhere_at(first.upstream.dialect);
        let call = Call { reserved: worst.unwrap_or_default(), unpriced, ..call };
        if asked.count || asked.dry {
            return Ok(self.admitted(call, first_place, (places, rivals), notes));
        }
        let mut budgets = budgeting::reserve(scope, budgets, &asked.caller, call.reserved);
        budgeting::mark(&mut budgets, &notes.budgets);
        let call = Call { budgets, ..call };
        open_task(scope, &call, task);
        observe::note(scope, &asked.caller, &call.session, &asked.demand.tool_results, self.routing)?;
        scope.put(call.clone());
        Ok(self.admitted(call, first_place, (places, rivals), notes))
    }

    /// Whether the request is not known to have no form there.
    fn has_form(&self, at: &Candidate<'_>) -> bool {
        !self.formless.iter().any(|(upstream, model)| (*upstream, model) == (at.upstream.id, &at.model.name))
    }

    /// The models that could do a call of a class as policy asks.
    fn rivals(&self, choice: &Choice<'_>) -> Arc<[Place]> {
        let all = choice.ranked.iter().filter(|it| self.class.is_some() && self.has_form(it));
        all.filter_map(|it| place(self.routing, it)).collect()
    }

    fn admitted(
        &self,
        call: Call,
        place: Place,
        (places, rivals): (Vec<Place>, Arc<[Place]>),
        notes: Notes,
    ) -> Admission {
        let (call, routing) = (Arc::new(call), Arc::clone(self.routing));
        Admission::Admitted(Box::new(Admitted { call, routing, place, places, rivals, notes }))
    }

    fn call(
        &self,
        scope: &mut Scope<'_>,
        asked: &AdmitCall,
        (choice, rivals): (&Choice<'_>, &[Place]),
        first: &Candidate<'_>,
        payer: crate::state::gateway::Payer,
    ) -> Call {
        let now = scope.now();
        let id: CallId = scope.fresh();
        let pace = asked.health.of(first.upstream.id, &first.model.name).pace();
        Call {
            id,
            workspace: self.workspace.id,
            payer,
            task: asked.task.clone().unwrap_or_else(|| minted_task(scope)),
            session: asked.session.clone().unwrap_or_else(|| minted_session(scope)),
            requested: asked.demand.model.clone(),
            target: Some(target(first.upstream, first.model)),
            mode: self.mode,
            objective: choice.objective,
            oversight: asked.oversight,
            stream: asked.demand.stream,
            attempts: Vec::new(),
            reserved: MicroUsd::ZERO,
            budgets: Vec::new(),
            usage: crate::state::gateway::Usage::default(),
            cost: MicroUsd::ZERO,
            unpriced: false,
            follows: false,
            cheapest: cheapest(rivals, first.multiplier),
            token_prices: first.model.prices.as_ref().map(|it| it.tokens),
            data_loss: asked.findings.clone(),
            started_at: now,
            state: running(now, first.upstream, first.model, &asked.demand, (asked.total_ms, pace)),
        }
    }

    fn notes(&self, choice: &Choice<'_>, budgets: Vec<OnBudget>, advisory: Option<String>) -> Notes {
        let shadow = self.mode == Mode::Shadow;
        let mut advisories: Vec<String> = advisory.into_iter().collect();
        if shadow && choice.ranked.is_empty() {
            advisories.push("where policy is enforced no model would qualify".to_owned());
        }
        let gravest = strictest(&budgets);
        advisories.extend(gravest.and_then(|it| it.advisory(self.mode)));
        Notes {
            would_route_to: choice.best().filter(|_| shadow).map(ToString::to_string),
            step: gravest.and_then(|it| it.step),
            budget_scope: gravest.filter(|it| it.step.is_some()).map(|it| it.scope.header(self.workspace.id)),
            advisories,
            asides: Vec::new(),
            why: choice.why(),
            budgets,
        }
    }
}

/// The least that a call can cost at one of these that yields at least so much at its class.
pub(super) fn cheapest<'a>(rivals: impl IntoIterator<Item = &'a Place>, multiplier: u64) -> Option<MicroUsd> {
    let as_good = rivals.into_iter().filter(|it| it.multiplier >= multiplier);
    as_good.filter_map(|it| it.worst).min()
}

fn place(routing: &Routing, candidate: &Candidate<'_>) -> Option<Place> {
    let upstream = routing.upstreams.iter().position(|it| it.id == candidate.upstream.id)?;
    let same = |it: &Model| it.upstream == candidate.model.upstream && it.name == candidate.model.name;
    let model = routing.models.iter().position(same)?;
    Some(Place { upstream, model, worst: candidate.cost, multiplier: candidate.multiplier })
}

/// A try that begins now: when it is taken for lost, and what it is charged then. `total_ms` is how long it may take where its
/// provider has no time of its own, and `pace` the tokens that its model makes in a second.
pub(super) fn running(
    now: Timestamp,
    upstream: &Upstream,
    model: &Model,
    demand: &Demand,
    (total_ms, pace): (u64, u64),
) -> CallState {
    let total = upstream.timeouts.total_ms.unwrap_or(total_ms);
    let lost = Received { elapsed_ms: total, tokens_per_second: pace, ..Received::default() };
    CallState::Running {
        lapses_at: now.plus(Span::millis(i64::try_from(total).unwrap_or(i64::MAX / 4))).plus(LAPSE_GRACE),
        estimate: estimate(model, demand, &lost),
        prices: model.prices.clone().map(Box::new),
        fees: Box::new(Fees::sent(demand, upstream.dialect)),
    }
}

/// Where a call to this model goes.
pub(super) fn target(upstream: &Upstream, model: &Model) -> Target {
    Target {
        upstream: upstream.id,
        provider: upstream.name.clone(),
        model: model.name.clone(),
        jurisdiction: model.jurisdiction.clone(),
    }
}

/// Counts the call on its task, which the first call opens.
fn open_task(scope: &mut Scope<'_>, call: &Call, known: Option<Arc<Task>>) {
    let task = match known {
        Some(known) => Task { calls: known.calls.saturating_add(1), ..Task::clone(&known) },
        None => Task {
            key: Task::key_of(call.workspace, &call.task),
            workspace: call.workspace,
            id: call.task.clone(),
            class: call.payer.class.clone(),
            principal: call.payer.principal,
            agent: call.payer.agent,
            opened_by: call.payer.key,
            team: call.payer.team,
            upstream: None,
            calls: 1,
            uncounted: true,
            spent: MicroUsd::ZERO,
            model: None,
            outcome: None,
            credit: None,
            created_at: call.started_at,
        },
    };
    scope.put(task);
}

/// A task's id that no other has: 26 characters of a new id behind the prefix.
fn minted_task(scope: &mut Scope<'_>) -> TaskId {
    let fresh: CallId = scope.fresh();
    let text = format!("tsk_{}", fresh.to_string().trim_start_matches(CallId::PREFIX));
    TaskId::parse(&text).unwrap_or_else(|_| unreachable!("26 characters of an id are a task's id"))
}

fn minted_session(scope: &mut Scope<'_>) -> SessionId {
    let fresh: OwnSession = scope.fresh();
    SessionId::parse(&fresh.to_string()).unwrap_or_else(|_| unreachable!("an id is visible ASCII"))
}
