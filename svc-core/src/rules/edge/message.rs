//! What a message says, as it stands when it is sent.
//!
//! **Invariant:** nobody gets a message about what has come to its end, or that they may no longer decide.

use std::sync::Arc;

use super::spread::{concerns, is_named};
use crate::refusal::Refusal;
use crate::rules::gate::asked::{Question, Stands, Who, question_for};
use crate::rules::gateway::budgets::{AskedOf, asked_about};
use crate::rules::people::by::owns;
use crate::rules::read::{View, view};
use crate::state::edge::{
    ChatFormat, DeciderConfig, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, News, Posted,
    SealedSecret, Topic, Work,
};
use crate::state::evidence::Entry;
use crate::state::gate::{Action, Agent, Approval, ApprovalSubject, Requester};
use crate::state::people::{Account, MemberState, Principal, Reach as Reaches, Right, Role, SignInLink, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::digest::SignInLinkId;
use crate::value::id::{ActionId, AgentId, ApprovalId, PrincipalId, WorkspaceId};
use crate::value::text::{SessionId, Summary};

/// The most that a message lists of what stands under what it tells of.
pub const LISTED_MAX: usize = 20;

/// A message with all that it says.
#[derive(Clone, Debug)]
pub struct Message {
    /// In which workspace.
    pub workspace: Arc<Workspace>,
    /// To whom; `None` where it goes to a room.
    pub to: Option<Arc<Principal>>,
    /// What it is about.
    pub about: About,
    /// How another system reaches them, where it is asked to.
    pub reach: Option<Reach>,
    /// Who passes on the buttons that a room's message has, where somebody does.
    pub relay: Option<Arc<Integration>>,
    /// In which form a room is posted to.
    pub format: ChatFormat,
}

/// How another system reaches somebody.
#[derive(Clone, Debug)]
pub struct Reach {
    /// What it calls them.
    pub name: Box<str>,
    /// What it is asked with, sealed for [`Integration::bot_purpose`].
    pub token: SealedSecret,
}

/// What a message is about.
#[derive(Clone, Debug)]
pub enum About {
    /// Somebody tries out whether messages come through.
    Test,
    /// Something waits.
    Asked(Box<Asked>),
    /// What somebody was asked has ended, in the message that stands there.
    Ended(Box<Asked>, Posted),
    /// An agent has named another's session.
    Conflict(Box<Conflict>),
    /// A tool ran although its action was not allowed: the action as it stands.
    Ran(Box<View>),
    /// Settings were loosened.
    Loosened(Loosened),
    /// Somebody is invited.
    Invited(Invited),
}

/// An agent has named another's session, as far as whoever is told may read of it.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The session.
    pub session: Option<SessionId>,
    /// The agent that named it later, where they may read it.
    pub later: Option<Arc<Agent>>,
    /// The agent whose it is, where they may read it.
    pub owner: Option<Arc<Agent>>,
    /// What the later one asked, where they may read it.
    pub action: Option<ActionId>,
    /// In its words, where they may read those too.
    pub summary: Option<Summary>,
}

/// Settings were loosened.
#[derive(Clone, Debug)]
pub struct Loosened {
    /// The record: its data has `old` and `new`.
    pub record: Arc<Entry>,
    /// Who did it, where it was a person.
    pub person: Option<Arc<Principal>>,
}

/// Somebody is invited.
#[derive(Clone, Debug)]
pub struct Invited {
    /// What they may do.
    pub role: Role,
    /// Who invites them, where it is a person.
    pub person: Option<Arc<Principal>>,
    /// The token of the link that signs them in, sealed for [`News::purpose`], and when it ends; absent where they sign in as they
    /// do.
    pub token: Option<(Box<str>, Option<Timestamp>)>,
}

/// What becomes of a message that is to be sent.
pub(super) enum Sent {
    /// It is sent: the job with the address that it goes to now.
    Now(Box<(Job, Message)>),
    /// Nobody is to be told any more.
    Over,
    /// What it was to tell has lapsed.
    Lapsed,
}

/// What there is to tell.
enum Matter {
    Told(About),
    Over,
    Lapsed,
}

/// What waits, and who asks.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What waits.
    pub question: Question,
    /// The agent that asks, where one does.
    pub agent: Option<Arc<Agent>>,
    /// The person who asks, where one does.
    pub person: Option<Arc<Principal>>,
    /// Of a freeze the agents that it stops, [`LISTED_MAX`] of them at most.
    pub stops: Vec<Arc<Agent>>,
    /// Of more of a budget which one, where it is there still.
    pub budget: Option<Box<AskedOf>>,
    /// What asks the same and stands under it, the oldest first: [`LISTED_MAX`] at most.
    pub under: Vec<ApprovalId>,
    /// How many there are.
    pub under_count: usize,
}

/// The message of a job.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub(super) fn of(scope: &mut Scope<'_>, job: Job, integration: Option<&Integration>) -> Result<Sent, Halt> {
    let workspace = scope.get::<Workspace>(job.workspace)?.ok_or_else(Refusal::internal)?;
    let (to, about) = match &job.work {
        Work::Decided { .. } | Work::Export { .. } | Work::Tell { .. } => return Ok(Sent::Over),
        Work::Test { to, .. } => (*to, About::Test),
        Work::Message { news, to, .. } => {
            let about = match about(scope, news, *to)? {
                Matter::Told(about) => about,
                Matter::Over => return Ok(Sent::Over),
                Matter::Lapsed => return Ok(Sent::Lapsed),
            };
            if !goes_over(news, integration) {
                return Ok(Sent::Over);
            }
            if let (Some(to), false) = (to, matches!(about, About::Ended(..))) {
                let Some(principal) = scope.get::<Principal>(*to)? else { return Ok(Sent::Over) };
                if !is_named(integration, &principal, news) || !concerns(scope, news, &principal)? {
                    return Ok(Sent::Over);
                }
            }
            // A message is changed where it stands, also where whoever has it is nobody here any more.
            (to.filter(|_| !matches!(about, About::Ended(..))), about)
        }
    };
    let to = match to {
        Some(id) => match scope.get::<Principal>(id)?.filter(|it| it.signs_in()) {
            Some(principal) => Some(principal),
            None => return Ok(Sent::Over),
        },
        None => None,
    };
    let found = match (integration.map(|it| &it.config), &to, &about) {
        (Some(IntegrationConfig::Deciders(it)), Some(to), _) => Some(reach(it, to)),
        (Some(IntegrationConfig::Deciders(it)), None, About::Ended(_, at)) => Some(reach_at(it, at)),
        _ => None,
    };
    let reach = match found {
        Some(None) => return Ok(Sent::Over),
        Some(reach) => reach,
        None => None,
    };
    let relay = if job.over() == Some(IntegrationKind::Chat) { relay(scope, job.workspace)? } else { None };
    let format = match integration.map(|it| &it.config) {
        Some(IntegrationConfig::Chat(chat)) => chat.format,
        _ => ChatFormat::default(),
    };
    let message = Message { workspace, to, about, reach, relay, format };
    Ok(Sent::Now(Box::new((readdressed(job, integration), message))))
}

/// How somebody is reached whom the other system has a name for.
fn reach(deciders: &DeciderConfig, to: &Principal) -> Option<Reach> {
    let link = deciders.members.iter().find(|it| it.principal == to.id && it.holds(to))?;
    Some(Reach { name: link.name.clone(), token: deciders.bot_token.clone()? })
}

/// How a message is reached where it stands.
fn reach_at(deciders: &DeciderConfig, at: &Posted) -> Option<Reach> {
    Some(Reach { name: at.channel.clone(), token: deciders.bot_token.clone()? })
}

/// The workspace's relay, where it is used and passes on anybody's presses.
fn relay(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Option<Arc<Integration>>, Halt> {
    let slot = IntegrationSlot { workspace, kind: IntegrationKind::Relay };
    let found = scope.get::<Integration>(slot)?;
    Ok(found.filter(|it| it.enabled && !it.config.members().is_empty()))
}

/// Whether such news goes over what is left of the integration: what guards everybody, and an invitation, need none.
fn goes_over(news: &News, integration: Option<&Integration>) -> bool {
    !needs_one(news) || integration.is_some_and(Integration::tells)
}

/// Whether such news goes over an integration, and is not sent where there is none.
pub(super) const fn needs_one(news: &News) -> bool {
    match news {
        News::Asked { .. } | News::Ended { .. } | News::Conflict { .. } | News::Ran { .. } => true,
        News::Loosened { .. } | News::Invited { .. } => false,
    }
}

/// The same to where its room is now: what waits to be sent goes nowhere that the workspace has left.
fn readdressed(mut job: Job, integration: Option<&Integration>) -> Job {
    if let Some(IntegrationConfig::Chat(chat)) = integration.map(|it| &it.config) {
        job.url.clone_from(&chat.url);
    }
    job
}

/// What there is to tell of such news; `to` is who reads it, where it goes to one person.
fn about(scope: &mut Scope<'_>, news: &News, to: Option<PrincipalId>) -> Result<Matter, Halt> {
    match news {
        News::Asked { approval } => {
            let Some(approval) = scope.get::<Approval>(*approval)? else { return Ok(Matter::Over) };
            let question = question_for(scope, Who::Nobody, approval)?;
            if question.stands != Stands::Waiting {
                return Ok(Matter::Over);
            }
            Ok(Matter::Told(About::Asked(Box::new(asked(scope, question)?))))
        }
        News::Ended { approval, of } => {
            scope.want(&[Approval::key(*approval), Job::key(*of)])?;
            let at = scope.get::<Job>(*of)?.and_then(|it| it.posted.clone());
            let (Some(approval), Some(at)) = (scope.get::<Approval>(*approval)?, at) else { return Ok(Matter::Over) };
            let question = question_for(scope, Who::Nobody, approval)?;
            Ok(Matter::Told(About::Ended(Box::new(asked(scope, question)?), at)))
        }
        News::Conflict { action, owner } => conflict(scope, *action, *owner, to),
        News::Ran { action } => {
            let Some(action) = scope.get::<Action>(*action)? else { return Ok(Matter::Over) };
            Ok(Matter::Told(About::Ran(Box::new(view(scope, action)?))))
        }
        News::Loosened { record, by } => {
            let Some(record) = scope.get::<Entry>(*record)? else { return Ok(Matter::Over) };
            let person = somebody(scope, *by)?;
            Ok(Matter::Told(About::Loosened(Loosened { record, person })))
        }
        News::Invited { principal, link, token } => invited(scope, *principal, *link, token.as_deref()),
    }
}

/// A conflict as one of its two sides may read it: their own agent by its name, the other side as their role reads it in lists.
fn conflict(scope: &mut Scope<'_>, action: ActionId, owner: AgentId, to: Option<PrincipalId>) -> Result<Matter, Halt> {
    scope.want(&[Action::key(action), Agent::key(owner)])?;
    let Some(reader) = somebody(scope, to)? else { return Ok(Matter::Over) };
    let Some(role) = reader.membership().map(|it| it.role) else { return Ok(Matter::Over) };
    let action = scope.get::<Action>(action)?.ok_or_else(Refusal::internal)?;
    let later = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
    let owner = scope.get::<Agent>(owner)?.ok_or_else(Refusal::internal)?;
    let reads = |right: Right, of: &Agent| match role.reach(right) {
        Reaches::All => true,
        Reaches::Own => owns(reader.id, of),
        Reaches::No => false,
    };
    let named = |it: &Agent| owns(reader.id, it) || reads(Right::ReadAgents, it);
    let asked = reads(Right::ReadActions, &later);
    Ok(Matter::Told(About::Conflict(Box::new(Conflict {
        session: action.session.clone(),
        action: asked.then_some(action.id),
        summary: (asked && role.reads_summaries()).then(|| action.summary.clone()),
        later: Some(later).filter(|it| named(it)),
        owner: Some(owner).filter(|it| named(it)),
    }))))
}

/// An invitation, as long as somebody who has not come yet can follow it. Who came in another way needs none; where a newer link
/// took the place of its own, that one's message tells them.
fn invited(
    scope: &mut Scope<'_>,
    principal: PrincipalId,
    link: Option<SignInLinkId>,
    token: Option<&str>,
) -> Result<Matter, Halt> {
    let Some(row) = scope.get::<Principal>(principal)? else { return Ok(Matter::Over) };
    let Some(member) = row.membership().filter(|it| it.state == MemberState::Invited) else { return Ok(Matter::Over) };
    let token = match (link, token) {
        (None, _) => None,
        (Some(_), None) => return Ok(Matter::Lapsed),
        (Some(link), Some(token)) => {
            let account = scope.get::<Account>(member.account)?.ok_or_else(Refusal::internal)?;
            let now = scope.now();
            if account.signed_in_at.is_some() || account.link.is_some_and(|it| it != link) {
                return Ok(Matter::Over);
            }
            let live = scope.get::<SignInLink>(link)?.filter(|it| it.expires_at.is_none_or(|end| now < end));
            let Some(live) = live.filter(|_| account.link.is_some()) else { return Ok(Matter::Lapsed) };
            Some((token.into(), live.expires_at))
        }
    };
    let (role, person) = (member.role, somebody(scope, member.invited_by)?);
    Ok(Matter::Told(About::Invited(Invited { role, person, token })))
}

fn somebody(scope: &mut Scope<'_>, id: Option<PrincipalId>) -> Result<Option<Arc<Principal>>, Halt> {
    match id {
        Some(id) => scope.get::<Principal>(id),
        None => Ok(None),
    }
}

fn asked(scope: &mut Scope<'_>, question: Question) -> Result<Asked, Halt> {
    let (agent, person) = match &question.approval.subject {
        ApprovalSubject::Action(it) => (Some(it.agent), None),
        ApprovalSubject::Freeze(it) => match &it.by {
            Requester::Person(by) => (None, Some(*by)),
            Requester::Program | Requester::Token { .. } => (None, None),
        },
        ApprovalSubject::HoldLift(it) => (None, Some(it.by)),
        ApprovalSubject::Owner(it) => (None, Some(it.by)),
        ApprovalSubject::Budget(it) => (it.agent, it.agent.is_none().then_some(it.principal)),
    };
    let agent = match agent {
        Some(id) => scope.get::<Agent>(id)?,
        None => None,
    };
    let person = somebody(scope, person)?;
    let listed = question.members.get(..question.members.len().min(LISTED_MAX)).unwrap_or_default();
    scope.want(&listed.iter().map(|it| Agent::key(*it)).collect::<Vec<_>>())?;
    let mut stops = Vec::with_capacity(listed.len());
    for id in listed {
        stops.extend(scope.get::<Agent>(*id)?);
    }
    let budget = match &question.approval.subject {
        ApprovalSubject::Budget(it) => asked_about(scope, question.approval.workspace, it.budget)?,
        ApprovalSubject::Action(_)
        | ApprovalSubject::Freeze(_)
        | ApprovalSubject::HoldLift(_)
        | ApprovalSubject::Owner(_) => None,
    };
    let budget = budget.map(Box::new);
    let (under, under_count) = under(scope, &question.approval)?;
    Ok(Asked { question, agent, person, stops, budget, under, under_count })
}

/// What stands under an approval that people are told of, and how many they are.
fn under(scope: &mut Scope<'_>, approval: &Approval) -> Result<(Vec<ApprovalId>, usize), Halt> {
    let Some(topic) = approval.asked_action().and_then(|it| it.topic) else { return Ok((Vec::new(), 0)) };
    let topic = scope.get::<Topic>(topic)?.filter(|it| it.approvals.first() == Some(&approval.id));
    let others: Vec<ApprovalId> = topic.map(|it| it.approvals.iter().skip(1).copied().collect()).unwrap_or_default();
    scope.want(&others.iter().map(|it| Approval::key(*it)).collect::<Vec<_>>())?;
    let now = scope.now();
    let mut waiting = Vec::with_capacity(others.len());
    for id in others {
        let waits = scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at);
        waiting.extend(waits.map(|it| it.id));
    }
    let count = waiting.len();
    waiting.truncate(LISTED_MAX);
    Ok((waiting, count))
}
