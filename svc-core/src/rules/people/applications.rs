//! Applications: a member asks for what their role cannot do, and whoever can do it decides. An approval makes the change as
//! the decider's own, in the same commit: what would refuse it to them refuses the approval, and the application waits on.

use std::sync::Arc;

use super::agents::{ChangeAgent, change_agent};
use super::by::{By, Person, entitled, member};
use super::keys::NewKey;
use super::mandates::{ChangeMandate, Content, GrantMandate, change_mandate, grant_mandate};
use super::members::{ChangeMember, MemberDone, change_member};
use super::recount::{self, Recount};
use super::register_agent::{ActsFor, RegisterAgent, Registered, register_agent};
use super::wished::faults;
use crate::refusal::Refusal;
use crate::rules::gateway::budgets::{RaiseBudget, raise_budget};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{ASKED_APPLICATIONS_MAX, Agent, Approval, ApprovalSubject};
use crate::state::people::{
    APPLICATION_LIFE, APPLICATIONS_WAITING_MAX, AgentWish, Application, ApplicationState, Change, Decision,
    MandateChangeWish, MandateWish, Plans, Principal, RaiseWish, Reach, Right, RoleWish, SecondOwner, Wish,
};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{ApplicationId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Asks for a change.
#[derive(Clone, Debug)]
pub struct CreateApplication {
    /// Who asks.
    pub by: Person,
    /// For what.
    pub change: Change,
    /// Why.
    pub reason: Note,
}

/// Keeps an application until somebody decides.
///
/// # Errors
/// Those of [`entitled`]; `invalid_application` naming every fault that the change itself would be refused for; `not_allowed` where
/// [`APPLICATIONS_WAITING_MAX`] of theirs wait already.
pub fn create_application(scope: &mut Scope<'_>, asked: &CreateApplication) -> Result<Arc<Application>, Halt> {
    let by = By::Person(asked.by);
    let workspace = asked.by.workspace;
    entitled(scope, &by, workspace, Right::Everyone)?;
    let faults = faults(scope, &asked.by, &asked.change)?;
    if !faults.is_empty() {
        return Err(Refusal::invalid_application(faults).into());
    }
    let person = scope.get::<Principal>(asked.by.principal)?.ok_or_else(Refusal::internal)?;
    let mut applications = still_waiting(scope, &person)?;
    if applications.len() >= APPLICATIONS_WAITING_MAX {
        let full = format!("{APPLICATIONS_WAITING_MAX} applications of yours wait already: take one back");
        return Err(Refusal::not_allowed(full).into());
    }
    let now = scope.now();
    let application = Application {
        id: scope.fresh(),
        workspace,
        by: asked.by.principal,
        change: asked.change.clone(),
        reason: asked.reason.clone(),
        created_at: now,
        expires_at: now.plus(APPLICATION_LIFE),
        state: ApplicationState::Waiting,
        second: None,
    };
    record(scope, &application, "application.created", by.actor(), Some(("reason", &application.reason)));
    scope.put(application.clone());
    applications.push(application.id);
    scope.put(Principal { applications, ..Principal::clone(&person) });
    Ok(Arc::new(application))
}

/// The applications of somebody that still wait, the oldest first.
fn still_waiting(scope: &mut Scope<'_>, person: &Principal) -> Result<Vec<ApplicationId>, Halt> {
    let now = scope.now();
    scope.want(&person.applications.iter().map(|it| Application::key(*it)).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(person.applications.len().saturating_add(1));
    for id in &person.applications {
        let known = scope.get::<Application>(*id)?;
        found.extend(known.filter(|it| it.stands(now) == ApplicationState::Waiting).map(|it| it.id));
    }
    Ok(found)
}

pub(super) fn content(wish: &Wish) -> Content {
    match wish {
        Wish::Template(name) => Content::Template(name.clone()),
        Wish::Whole(terms) => Content::Whole(terms.clone()),
    }
}

impl From<Content> for Wish {
    fn from(content: Content) -> Self {
        match content {
            Content::Template(name) => Self::Template(name),
            Content::Whole(terms) => Self::Whole(terms),
        }
    }
}

/// Makes the change that is asked for.
#[derive(Clone, Debug)]
pub struct ApproveApplication {
    /// Who decides.
    pub by: Person,
    /// Which application.
    pub application: ApplicationId,
    /// What they say.
    pub note: Option<Note>,
    /// Whether they mean a mandate that lets the agent go anywhere beside a narrower one, whatever whoever asked said of it.
    pub confirm_broaden: bool,
    /// The first key of an agent that is asked for.
    pub key: NewKey,
    /// What plans allow.
    pub plans: Plans,
    /// What a mandate's own actions add up to, where a period of it changes.
    pub counted: Option<Recount>,
}

/// An application that was approved, and what came of it.
#[derive(Clone, Debug)]
pub struct Approved {
    /// The application.
    pub application: Arc<Application>,
    /// The agent that it asked for.
    pub made: Option<Registered>,
    /// The question to a second owner, where the decider's own change asks one first.
    pub asked: Option<Arc<Approval>>,
}

/// What came of a change.
enum Made {
    /// It is done; an agent that it made.
    Done(Option<Box<Registered>>),
    /// A second owner is asked first.
    Asked(Arc<Approval>),
}

/// Makes the change as the decider's own; where that asks a second owner first, the application waits for their answer, and for
/// anybody's decision again where none comes in time.
///
/// # Errors
/// `not_ready` where a mandate's actions have to be counted for a changed period and were not, or have moved since: count what
/// [`plan`] names and ask again, as `Gate::approve_application` does. `separation_of_duties` for one's own, whatever the role; those of [`entitled`]; `not_found`; `not_allowed` with the outcome
/// where it no longer waits, and where who asked or the agent is not here any more; what the change is refused with, and then it
/// waits on.
pub fn approve_application(scope: &mut Scope<'_>, asked: &ApproveApplication) -> Result<Approved, Halt> {
    let application = open(scope, &asked.by, asked.application)?;
    is_still_meant(scope, &application)?;
    let decision = Decision { at: scope.now(), by: asked.by.principal, note: asked.note.clone() };
    let made = match scope.in_words_of(application.by, |scope| make(scope, asked, &application.change))? {
        Made::Done(made) => made.map(|it| *it),
        Made::Asked(approval) => return wait_for_second(scope, application, &approval, decision),
    };
    let application = application.ended(ApplicationState::Approved(decision));
    let actor = Actor::Person(asked.by.principal);
    record(scope, &application, "application.approved", actor, asked.note.as_ref().map(|it| ("note", it)));
    scope.put(application.clone());
    Ok(Approved { application: Arc::new(application), made, asked: None })
}

/// Has an application wait for the answer of a second owner, with what the first has said of it.
fn wait_for_second(
    scope: &mut Scope<'_>,
    application: Application,
    approval: &Approval,
    decision: Decision,
) -> Result<Approved, Halt> {
    let ApprovalSubject::Owner(of) = &approval.subject else { return Err(Refusal::internal().into()) };
    let mut of = of.clone();
    if !of.applications.contains(&application.id) {
        if of.applications.len() >= ASKED_APPLICATIONS_MAX {
            return Err(Refusal::not_allowed("too many applications wait for the same second owner").into());
        }
        of.applications.push(application.id);
    }
    let approval = Approval { subject: ApprovalSubject::Owner(of), ..approval.clone() };
    scope.put(approval.clone());
    let first = application.second.as_ref().filter(|it| it.approval == approval.id).map(|it| it.decision.clone());
    let decision = first.unwrap_or(decision);
    let second = SecondOwner { approval: approval.id, until: approval.expires_at, decision };
    let application = Application { second: Some(second), ..application };
    scope.put(application.clone());
    Ok(Approved { application: Arc::new(application), made: None, asked: Some(Arc::new(approval)) })
}

/// Ends the applications that wait for a second owner's answer, which `by` has given: their change was made, or was refused with a
/// note. One that has ended since, or waits for another answer, is left as it is.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn settle_asked(
    scope: &mut Scope<'_>,
    approval: &Approval,
    by: PrincipalId,
    said: Result<(), Option<&Note>>,
) -> Result<(), Halt> {
    let ApprovalSubject::Owner(of) = &approval.subject else { return Ok(()) };
    let now = scope.now();
    scope.want(&of.applications.iter().map(|it| Application::key(*it)).collect::<Vec<_>>())?;
    for id in &of.applications {
        let Some(application) = scope.get::<Application>(*id)? else { continue };
        let Some(second) = application.pending(now).filter(|it| it.approval == approval.id) else { continue };
        let decision = match said {
            Ok(()) => Decision { at: now, ..second.decision.clone() },
            Err(note) => Decision { at: now, by, note: note.cloned() },
        };
        let (author, note) = (decision.by, decision.note.clone());
        let (state, kind) = match said {
            Ok(()) => (ApplicationState::Approved(decision), "application.approved"),
            Err(_) => (ApplicationState::Denied(decision), "application.denied"),
        };
        let application = Application::clone(&application).ended(state);
        let note = note.as_ref().map(|it| ("note", it));
        scope.in_words_of(author, |scope| record(scope, &application, kind, Actor::Person(by), note));
        scope.put(application);
    }
    Ok(())
}

/// What has to be counted before an application can be approved: `None` where it changes no period of a mandate.
///
/// # Errors
/// As [`approve_application`]; `not_found` where the agent has no such mandate any more.
pub fn plan(scope: &mut Scope<'_>, asked: &ApproveApplication) -> Result<Option<Recount>, Halt> {
    let application = open(scope, &asked.by, asked.application)?;
    match &application.change {
        Change::ChangedMandate(wish) => recount::plan(scope, &change_of(asked, wish)),
        Change::Agent(_) | Change::Mandate(_) | Change::Tier { .. } | Change::Role(_) | Change::BudgetRaise(_) => {
            Ok(None)
        }
    }
}

fn change_of(asked: &ApproveApplication, wish: &MandateChangeWish) -> ChangeMandate {
    let MandateChangeWish { agent, mandate, change, paused, confirm_broaden } = wish.clone();
    let (workspace, by, counted) = (asked.by.workspace, By::Person(asked.by), asked.counted.clone());
    let confirm_broaden = confirm_broaden || asked.confirm_broaden;
    ChangeMandate { workspace, by, agent, mandate, change, paused, confirm_broaden, counted }
}

fn make(scope: &mut Scope<'_>, asked: &ApproveApplication, change: &Change) -> Result<Made, Halt> {
    let (workspace, by) = (asked.by.workspace, By::Person(asked.by));
    match change {
        Change::Agent(wish) => {
            let AgentWish { name, email, tier, sponsor, kill_owner, mandates } = AgentWish::clone(wish);
            let register = RegisterAgent {
                workspace,
                by,
                name,
                principal: ActsFor::Email(email),
                tier,
                sponsor,
                kill_owner,
                mandates: mandates.iter().map(content).collect(),
                key: asked.key.clone(),
                plans: asked.plans,
            };
            return Ok(Made::Done(Some(Box::new(register_agent(scope, &register)?))));
        }
        Change::Mandate(MandateWish { agent, wish, confirm_broaden }) => {
            let (agent, content, confirm_broaden) = (*agent, content(wish), *confirm_broaden || asked.confirm_broaden);
            let plans = asked.plans;
            grant_mandate(scope, &GrantMandate { workspace, by, agent, content, confirm_broaden, plans })?;
        }
        Change::ChangedMandate(wish) => {
            change_mandate(scope, &change_of(asked, wish))?;
        }
        Change::Tier { agent, tier } => {
            let (agent, tier) = (*agent, Some(*tier));
            let (name, sponsor, kill_owner) = (None, None, None);
            change_agent(scope, &ChangeAgent { workspace, by, agent, name, tier, sponsor, kill_owner })?;
        }
        Change::Role(RoleWish { member, role, teams }) => {
            let (principal, role, teams) = (*member, *role, teams.clone());
            match change_member(scope, &ChangeMember { workspace, by, principal, role, teams })? {
                MemberDone::Done { .. } => {}
                MemberDone::Asked(approval) => return Ok(Made::Asked(approval)),
            }
        }
        Change::BudgetRaise(RaiseWish { budget, allocation, note }) => {
            let (budget, allocation, note) = (*budget, *allocation, note.clone());
            raise_budget(scope, &RaiseBudget { workspace, by, budget, allocation, note })?;
        }
    }
    Ok(Made::Done(None))
}

/// Refuses the change that is asked for.
#[derive(Clone, Debug)]
pub struct DenyApplication {
    /// Who decides.
    pub by: Person,
    /// Which application.
    pub application: ApplicationId,
    /// What they say.
    pub note: Option<Note>,
}

/// Ends an application without its change.
///
/// # Errors
/// `separation_of_duties` for one's own, whatever the role; those of [`entitled`]; `not_found`; `not_allowed` with the outcome
/// where it no longer waits, or waits for a second owner.
pub fn deny_application(scope: &mut Scope<'_>, asked: &DenyApplication) -> Result<Arc<Application>, Halt> {
    let application = open(scope, &asked.by, asked.application)?;
    is_undecided(scope, &application)?;
    let decision = Decision { at: scope.now(), by: asked.by.principal, note: asked.note.clone() };
    let application = application.ended(ApplicationState::Denied(decision));
    let actor = Actor::Person(asked.by.principal);
    record(scope, &application, "application.denied", actor, asked.note.as_ref().map(|it| ("note", it)));
    scope.put(application.clone());
    Ok(Arc::new(application))
}

/// An application that `by` may decide, and that waits.
fn open(scope: &mut Scope<'_>, by: &Person, id: ApplicationId) -> Result<Application, Halt> {
    entitled(scope, &By::Person(*by), by.workspace, Right::Everyone)?;
    is_not_own(scope, by, id)?;
    entitled(scope, &By::Person(*by), by.workspace, Right::ManageApplications)?;
    let application = own(scope, by.workspace, id)?;
    waiting(scope, &application)?;
    Ok(Application::clone(&application))
}

/// That `by` did not make this application. It is looked at before the role: no other role would let them decide it.
///
/// # Errors
/// `separation_of_duties` where they did.
pub fn is_not_own(scope: &mut Scope<'_>, by: &Person, id: ApplicationId) -> Result<(), Halt> {
    let found = scope.get::<Application>(id)?.filter(|it| it.workspace == by.workspace);
    if found.is_some_and(|it| it.by == by.principal) {
        return Err(Refusal::duties_never("nobody decides an application of their own").into());
    }
    Ok(())
}

/// That whoever asked is a member, and the agent that it is about, or whom it is to act for, is here.
fn is_still_meant(scope: &mut Scope<'_>, application: &Application) -> Result<(), Halt> {
    if scope.get::<Principal>(application.by)?.is_none_or(|it| it.membership().is_none()) {
        return Err(Refusal::not_allowed("whoever asked is a member no more: deny it").into());
    }
    if application.change.is_for_nobody() {
        return Err(Refusal::not_allowed("whoever the agent is to act for was erased: deny it").into());
    }
    if let Some(id) = application.change.agent()
        && scope.get::<Agent>(id)?.is_none_or(|it| it.is_removed())
    {
        return Err(Refusal::not_allowed("the agent was removed: deny it").into());
    }
    Ok(())
}

/// Ends what somebody who is removed has asked for and nobody has decided, and gives them without it. What a second owner is asked
/// stays: the question is the first owner's, and their answer decides it.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn end_with(scope: &mut Scope<'_>, person: &Principal, actor: &Actor) -> Result<Principal, Halt> {
    let now = scope.now();
    let mut applications = Vec::new();
    for id in still_waiting(scope, person)? {
        let Some(application) = scope.get::<Application>(id)?.filter(|it| it.pending(now).is_none()) else {
            applications.push(id);
            continue;
        };
        let application = Application::clone(&application).ended(ApplicationState::Withdrawn { at: now });
        record(scope, &application, "application.withdrawn", actor.clone(), None);
        scope.put(application);
    }
    Ok(Principal { applications, ..person.clone() })
}

fn own(scope: &mut Scope<'_>, workspace: WorkspaceId, id: ApplicationId) -> Result<Arc<Application>, Halt> {
    let found = scope.get::<Application>(id)?.filter(|it| it.workspace == workspace);
    Ok(found.ok_or_else(Refusal::not_found)?)
}

/// That no second owner is asked: theirs is the decision then, in the approval, and nothing ends beside it.
fn is_undecided(scope: &Scope<'_>, application: &Application) -> Result<(), Refusal> {
    match application.pending(scope.now()) {
        Some(_) => Err(Refusal::not_allowed("a second owner is asked: the approval decides it")),
        None => Ok(()),
    }
}

fn waiting(scope: &Scope<'_>, application: &Application) -> Result<(), Refusal> {
    match application.stands(scope.now()) {
        ApplicationState::Waiting => Ok(()),
        ended => Err(Refusal::not_allowed(ended.as_str())),
    }
}

/// Takes an application of one's own back.
#[derive(Clone, Copy, Debug)]
pub struct WithdrawApplication {
    /// Whose it is.
    pub by: Person,
    /// Which application.
    pub application: ApplicationId,
}

/// Ends an application in the word of whoever made it; one that has been taken back stays so.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where they may not read it, `forbidden` where it is another's; `not_allowed` with the
/// outcome where it no longer waits, or where a second owner is asked.
pub fn withdraw_application(scope: &mut Scope<'_>, asked: &WithdrawApplication) -> Result<(), Halt> {
    let by = By::Person(asked.by);
    let application = get_application(scope, &asked.by, asked.application)?;
    if application.by != asked.by.principal {
        return Err(Refusal::forbidden("only whoever made an application takes it back").into());
    }
    if matches!(application.state, ApplicationState::Withdrawn { .. }) {
        return Ok(());
    }
    waiting(scope, &application)?;
    is_undecided(scope, &application)?;
    let withdrawn = ApplicationState::Withdrawn { at: scope.now() };
    let application = Application::clone(&application).ended(withdrawn);
    record(scope, &application, "application.withdrawn", by.actor(), None);
    scope.put(application);
    Ok(())
}

/// Ends an application whose time is up.
///
/// # Errors
/// [`Halt::Load`] alone; what no longer waits, or not yet so long, is left as it is.
pub fn expire_application(scope: &mut Scope<'_>, id: ApplicationId) -> Result<(), Halt> {
    let Some(application) = scope.get::<Application>(id)? else { return Ok(()) };
    let state = application.stands(scope.now());
    if application.state != ApplicationState::Waiting || state == ApplicationState::Waiting {
        return Ok(());
    }
    let application = Application::clone(&application).ended(state);
    record(scope, &application, "application.expired", Actor::Policy, None);
    scope.put(application);
    Ok(())
}

/// An application as its maker and those who decide read it.
///
/// # Errors
/// Those of [`entitled`]; `not_found` where `by` may not read it.
pub fn get_application(scope: &mut Scope<'_>, by: &Person, id: ApplicationId) -> Result<Arc<Application>, Halt> {
    let whose = readable(scope, by)?;
    let application = own(scope, by.workspace, id)?;
    if whose.is_some_and(|it| it != application.by) {
        return Err(Refusal::not_found().into());
    }
    Ok(application)
}

/// Whose applications `by` may read: their own, or with `None` everybody's.
///
/// # Errors
/// Those of [`entitled`].
pub fn readable(scope: &mut Scope<'_>, by: &Person) -> Result<Option<PrincipalId>, Halt> {
    entitled(scope, &By::Person(*by), by.workspace, Right::Everyone)?;
    let (_, role) = member(scope, by)?;
    Ok((role.reach(Right::ManageApplications) != Reach::All).then_some(by.principal))
}

fn record(
    scope: &mut Scope<'_>,
    application: &Application,
    kind: &'static str,
    actor: Actor,
    text: Option<(&str, &Note)>,
) {
    let mut data = Object::new().text("kind", application.change.kind());
    if let Some(target) = application.change.target() {
        data = data.text("target", &target.to_string());
    }
    let subject = Subject::Application(application.id);
    let texts = text.map(|(name, note)| (name, note.as_str()));
    scope.append_with(application.workspace, Fact { kind, actor, subject, data: data.finish() }, texts.as_slice());
}
