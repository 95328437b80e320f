//! People are told of what waits for them: a job in the commit in which it begins to wait, where the workspace tells anybody.
//!
//! **Invariant:** who is to be told is not looked up here. Where a workspace tells nobody, no row is read or written for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::edge::{Integration, IntegrationKind, Job, JobState, LINKED_MAX, News, Posted, Spread, Topic, Work};
use crate::state::gate::{Action, Activity, Agent, Approval, ApprovalSubject, ClientSession, Request};
use crate::state::people::Workspace;
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::TopicId;
use crate::value::id::{AgentId, WorkspaceId};
use crate::value::{Id as _, Timestamp};

/// Milliseconds of a minute: no sooner than that is told once more of a question that grows.
const MINUTE: i64 = 60_000;

/// Messages that are changed by one commit; what is left has the row due still.
const CHANGED_AT_ONCE: usize = 50;

/// Has whoever may decide `approval`, which begins to wait, told of it.
pub fn asked(scope: &mut Scope<'_>, workspace: &Workspace, approval: &Approval) {
    let now = scope.now();
    asked_at(scope, workspace, approval, now);
}

/// The same at the end of the running minute, of a question that takes the place of one that people were told of: however often
/// it grows, they get one message a minute.
pub fn grown(scope: &mut Scope<'_>, workspace: &Workspace, approval: &Approval) {
    let ms = scope.now().as_millis();
    let due = ms.div_euclid(MINUTE).saturating_add(1).saturating_mul(MINUTE);
    asked_at(scope, workspace, approval, Timestamp::from_millis(due));
}

fn asked_at(scope: &mut Scope<'_>, workspace: &Workspace, approval: &Approval, due: Timestamp) {
    if !workspace.told_over.is_empty() {
        let news = News::Asked { approval: approval.id };
        spread(scope, workspace.id, news, due);
    }
}

/// Has people told of `news`, not before `due`.
pub(in crate::rules) fn spread(scope: &mut Scope<'_>, workspace: WorkspaceId, news: News, due: Timestamp) {
    let work = Work::Tell { news, reached: None };
    let job = Job::without_url(scope.fresh(), workspace, work, scope.now()).later(due);
    scope.put(job);
}

/// Has whoever may decide about an action told of it; what asks the same as another that waits stands under that one, and people
/// are not told again (CONTRACT part 2, "Approval"). What has neither a merchant nor a tool is the same where it shares the same with the
/// same recipient and has the same details; of those that differ in this alone only so many are told by themselves, which is noted in
/// `activity`, of the agent, that the caller writes.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn asked_action(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    (action, request): (&Action, &Request),
    mut approval: Approval,
    activity: &mut Activity,
) -> Result<Approval, Halt> {
    let ApprovalSubject::Action(of) = &mut approval.subject else { return Ok(approval) };
    if workspace.told_over.is_empty() {
        return Ok(approval);
    }
    let (alike, own) = (topic_of(action), own_topic_of(action, request));
    let mut id = own.unwrap_or(alike);
    let (mut known, mut waits) = waiting(scope, id, of.epoch)?;
    if own.is_some() && !waits && !activity.tell_unlike(id, scope.now()) {
        id = alike;
        (known, waits) = waiting(scope, id, of.epoch)?;
    }
    of.topic = Some(id);
    let mut approvals = known.map(|it| it.approvals.clone()).unwrap_or_default();
    if waits {
        approvals.push(approval.id);
    } else {
        // One whose time is up and that is not yet written so leaves the first place to this one.
        approvals.insert(0, approval.id);
        asked(scope, workspace, &approval);
    }
    scope.put(Topic { id, workspace: workspace.id, epoch: action.epoch, approvals });
    Ok(approval)
}

/// A topic of this epoch, and whether the one that people were told of waits.
fn waiting(scope: &mut Scope<'_>, id: TopicId, epoch: u32) -> Result<(Option<Arc<Topic>>, bool), Halt> {
    let known = scope.get::<Topic>(id)?.filter(|it| it.epoch == epoch);
    let Some(first) = known.as_ref().and_then(|it| it.approvals.first()) else { return Ok((known, false)) };
    let now = scope.now();
    let waits = scope.get::<Approval>(*first)?.is_some_and(|it| it.is_waiting() && now < it.expires_at);
    Ok((known, waits))
}

/// Has those told for whom two agents act, where one names the session of the other: once for each agent that does so, over what
/// tells each by themselves, and of the same two agents no more than once an hour, whichever of them names whose sessions. That is
/// noted in `activity`, of the agent that names it, which the caller writes.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn conflict(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    action: &Action,
    activity: &mut Activity,
) -> Result<(), Halt> {
    let (Some(session), true) =
        (&action.session, workspace.told_over.iter().any(|it| it.spread() == Some(Spread::Each)))
    else {
        return Ok(());
    };
    let now = scope.now();
    let Some(row) = scope.get::<ClientSession>(ClientSession::id_of(workspace.id, session))? else { return Ok(()) };
    let mut row = ClientSession::clone(&row);
    let Some(owner) = row.owner_at(now).filter(|it| *it != action.agent) else { return Ok(()) };
    // Asked of the other's row first: both may name sessions of each other.
    let was_told = scope.get::<Activity>(owner)?.is_some_and(|it| it.told_of(action.agent, now));
    if row.tell_of(action.agent) && !was_told && activity.tell_of(owner, now) {
        scope.put(row);
        spread(scope, workspace.id, News::Conflict { action: action.id, owner }, now);
    }
    Ok(())
}

/// Has whoever may decide what an agent asks told that its action ran although it was not allowed: of what is alike, and of one
/// agent, as often as its [`Activity`] has it, where that is noted.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn ran(scope: &mut Scope<'_>, workspace: &Workspace, action: &Action) -> Result<(), Halt> {
    if workspace.told_over.is_empty() {
        return Ok(());
    }
    let now = scope.now();
    let stored = scope.get::<Activity>(action.agent)?;
    let mut activity = stored.map_or_else(|| Activity::none(action.agent), |it| Activity::clone(&it));
    if activity.tell_run(topic_of(action), now) {
        scope.put(activity);
        spread(scope, workspace.id, News::Ran { action: action.id }, now);
    }
    Ok(())
}

/// Takes what waits no more off its topic. Where people were told of it and others stand under it, they are told of the next,
/// unless `agent` is stopped: then none of them waits.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn ended(scope: &mut Scope<'_>, agent: &Agent, approval: &Approval) -> Result<(), Halt> {
    let ApprovalSubject::Action(of) = &approval.subject else { return Ok(()) };
    let Some(id) = of.topic else { return Ok(()) };
    let Some(topic) = scope.get::<Topic>(id)?.filter(|it| it.epoch == of.epoch) else { return Ok(()) };
    let was_first = topic.approvals.first() == Some(&approval.id);
    let mut left = Topic::clone(&topic);
    left.approvals.retain(|it| *it != approval.id);
    let Some(next) = left.approvals.first().copied() else {
        scope.delete::<Topic>(id);
        return Ok(());
    };
    if was_first && agent.is_active() && agent.epoch == of.epoch {
        let now = scope.now();
        spread(scope, approval.workspace, News::Asked { approval: next }, now);
    }
    scope.put(left);
    Ok(())
}

/// Has the messages that ask for what has ended say so: a button that is left in one would decide nothing.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn take_back(scope: &mut Scope<'_>, ended: &Approval) -> Result<(), Halt> {
    if ended.posted.is_empty() {
        return Ok(());
    }
    let (now_on, later) = ended.posted.split_at(ended.posted.len().min(CHANGED_AT_ONCE));
    scope.want(&now_on.iter().map(|it| Job::key(*it)).collect::<Vec<_>>())?;
    for of in now_on {
        let Some(asked) = scope.get::<Job>(*of)?.filter(|it| it.posted.is_some()) else { continue };
        let Work::Message { over, to, .. } = asked.work else { continue };
        let work = Work::Message { news: News::Ended { approval: ended.id, of: *of }, over, to };
        let job = Job::without_url(scope.fresh(), ended.workspace, work, scope.now());
        scope.put(job);
    }
    scope.put(Approval { posted: later.to_vec(), ..ended.clone() });
    Ok(())
}

/// Notes where a message stands that asks for something, so that it can be changed once that has ended: also where it ended while the
/// message was under way.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn posted(scope: &mut Scope<'_>, mut job: Job, at: Option<&Posted>) -> Result<Job, Halt> {
    let (Some(at), JobState::Delivered { .. }) = (at, job.state) else { return Ok(job) };
    let Work::Message { news: News::Asked { approval }, to: Some(_), .. } = &job.work else { return Ok(job) };
    let Some(asked) = scope.get::<Approval>(*approval)?.filter(|it| it.posted.len() < LINKED_MAX) else {
        return Ok(job);
    };
    let mut asked = Approval::clone(&asked);
    asked.posted.push(job.id);
    scope.put(asked);
    job.posted = Some(at.clone());
    Ok(job)
}

/// What an action is asked with: its agent, its type, and its merchant or tool.
fn topic_of(action: &Action) -> TopicId {
    let merchant = action.payment.as_ref().map(|it| ("domain", it.domain.to_string()));
    let tool = action.tool.as_ref().map(|it| {
        let part = |text: Option<&crate::value::text::Label>| text.map(ToString::to_string).unwrap_or_default();
        ("tool", format!("{}\n{}", part(it.server.as_ref()), part(it.name.as_ref())))
    });
    let (what, place) = merchant.or(tool).unwrap_or_default();
    let agent: AgentId = action.agent;
    TopicId::of(&[&agent.bits().to_be_bytes(), action.kind.as_str().as_bytes(), what.as_bytes(), place.as_bytes()])
}

/// The same of an action with neither a merchant nor a tool by what it shares, with whom, and by its details: nothing else of it tells
/// what is asked. None where it has neither.
fn own_topic_of(action: &Action, request: &Request) -> Option<TopicId> {
    let details = request.details.as_ref().map(|it| &*it.canonical);
    if action.payment.is_some() || action.tool.is_some() || (action.data.is_none() && details.is_none()) {
        return None;
    }
    let recipient = action.data.as_ref().map(|it| &*it.recipient).unwrap_or_default();
    let fields: BTreeSet<&str> = action.data.iter().flat_map(|it| &it.fields).map(|it| it.as_str()).collect();
    let fields = fields.into_iter().collect::<Vec<_>>().join("\n");
    let (agent, kind) = (action.agent.bits().to_be_bytes(), action.kind.as_str());
    let shared = [recipient, &fields, details.unwrap_or_default()].map(str::as_bytes);
    Some(TopicId::of(&[&[&agent[..], kind.as_bytes(), b"shared"], &shared[..]].concat()))
}

/// Keeps the workspace's own list of what people are told over: this kind stands in it from now on, or no more.
///
/// # Errors
/// [`Halt::Load`], or `internal` where the workspace is not there.
pub(super) fn keep(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    kind: IntegrationKind,
    integration: Option<&Integration>,
) -> Result<(), Halt> {
    let tells = integration.is_some_and(Integration::tells);
    if kind.spread().is_none() {
        return Ok(());
    }
    let row = scope.get::<Workspace>(workspace)?.ok_or_else(Refusal::internal)?;
    if row.told_over.contains(&kind) != tells {
        let mut row = Workspace::clone(&row);
        row.told_over.retain(|it| *it != kind);
        row.told_over.extend(tells.then_some(kind));
        row.told_over.sort_unstable();
        scope.put(row);
    }
    Ok(())
}
