//! What a message says, as it stands when it is sent.
//!
//! **Invariant:** nobody gets a message about what has come to its end, or that they may no longer decide.

use std::sync::Arc;

use super::spread::{concerns, is_named};
use crate::refusal::Refusal;
use crate::rules::gate::asked::{Question, Stands, Who, question_for};
use crate::state::edge::{Integration, IntegrationConfig, Job, News, Spread, Topic, Work};
use crate::state::gate::{Agent, Approval, ApprovalSubject, Requester};
use crate::state::people::{Principal, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::ApprovalId;

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
}

/// What a message is about.
#[derive(Clone, Debug)]
pub enum About {
    /// Somebody tries out whether messages come through.
    Test,
    /// Something waits.
    Asked(Box<Asked>),
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
    /// What asks the same and stands under it, the oldest first: [`LISTED_MAX`] at most.
    pub under: Vec<ApprovalId>,
    /// How many there are.
    pub under_count: usize,
}

/// The message of a job, and the job with the address that it goes to now; `None` where nothing is to be sent any more.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub(super) fn of(
    scope: &mut Scope<'_>,
    job: Job,
    integration: Option<&Integration>,
) -> Result<Option<(Job, Message)>, Halt> {
    let workspace = scope.get::<Workspace>(job.workspace)?.ok_or_else(Refusal::internal)?;
    let (to, about) = match &job.work {
        Work::Decided { .. } | Work::Tell { .. } => return Ok(None),
        Work::Test { to, .. } => (*to, About::Test),
        Work::Message { news, over, to } => {
            let Some(about) = about(scope, news)? else { return Ok(None) };
            let is_told = match over.spread() {
                Some(Spread::Each | Spread::Room) => integration.is_some_and(Integration::tells),
                None => false,
            };
            if !is_told {
                return Ok(None);
            }
            if let Some(to) = to {
                let Some(principal) = scope.get::<Principal>(*to)? else { return Ok(None) };
                if !is_named(integration, *to) || !concerns(scope, news, &principal)? {
                    return Ok(None);
                }
            }
            (*to, about)
        }
    };
    let to = match to {
        Some(id) => match scope.get::<Principal>(id)?.filter(|it| it.signs_in()) {
            Some(principal) => Some(principal),
            None => return Ok(None),
        },
        None => None,
    };
    Ok(Some((readdressed(job, integration), Message { workspace, to, about })))
}

/// The same to where its room is now: what waits to be sent goes nowhere that the workspace has left.
fn readdressed(mut job: Job, integration: Option<&Integration>) -> Job {
    if let Some(IntegrationConfig::Chat(chat)) = integration.map(|it| &it.config) {
        job.url.clone_from(&chat.url);
    }
    job
}

fn about(scope: &mut Scope<'_>, news: &News) -> Result<Option<About>, Halt> {
    match news {
        News::Asked { approval } => {
            let Some(approval) = scope.get::<Approval>(*approval)? else { return Ok(None) };
            let question = question_for(scope, Who::Nobody, approval)?;
            if question.stands != Stands::Waiting {
                return Ok(None);
            }
            Ok(Some(About::Asked(Box::new(asked(scope, question)?))))
        }
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
    let person = match person {
        Some(id) => scope.get::<Principal>(id)?,
        None => None,
    };
    let (under, under_count) = under(scope, &question.approval)?;
    Ok(Asked { question, agent, person, under, under_count })
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
