//! Who is told: what people are to be told of becomes a message for each of them, a page of the workspace's people at a time.
//!
//! **Invariant:** a page's messages and how far it came are one commit, so nobody is told twice of the same, and nobody is left
//! out because a server stopped in between.

use std::sync::Arc;

use super::deliver::{Claim, Claimed};
use super::integrations::note_forsaken;
use crate::refusal::Refusal;
use crate::rules::gate::asked::{Stands, Who, may_decide, question_for};
use crate::state::edge::{
    ChatConfig, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, JobState, LEASE, News, Spread,
    Work,
};
use crate::state::gate::{Action, Agent, Approval};
use crate::state::people::{Principal, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::id::{AgentId, DeliveryId, PrincipalId};

/// Makes messages for a page of a workspace's people, which a scan found.
#[derive(Clone, Debug)]
pub struct SpreadNews {
    /// What they are told of.
    pub job: DeliveryId,
    /// The claim that it is spread under: [`Job::claims`].
    pub claim: u32,
    /// Behind whom the scan began.
    pub behind: Option<PrincipalId>,
    /// The members that it found, in its order.
    pub found: Vec<PrincipalId>,
    /// Whom it found last, member or not; `None` where it came to the end.
    pub reached: Option<PrincipalId>,
    /// Whether the server mails.
    pub mails: bool,
}

/// Makes the messages, and gives the job as it goes on from there; nothing once it is done, or nobody is to be told any more.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub fn spread(scope: &mut Scope<'_>, asked: &SpreadNews) -> Result<Claim, Halt> {
    let now = scope.now();
    let Some(job) = scope.get::<Job>(asked.job)? else { return Ok(Claim::Nothing) };
    let Work::Tell { news, reached } = &job.work else { return Ok(Claim::Nothing) };
    let JobState::Sending { since, .. } = job.state else { return Ok(Claim::Nothing) };
    if job.claims != asked.claim || *reached != asked.behind {
        return Ok(Claim::Nothing);
    }
    let workspace = scope.get::<Workspace>(job.workspace)?.ok_or_else(Refusal::internal)?;
    if !is_news(scope, news)? {
        scope.delete::<Job>(job.id);
        return Ok(Claim::Nothing);
    }
    if asked.behind.is_none() {
        rooms(scope, &workspace, news)?;
        note_forsaken(scope, workspace.id)?;
    }
    let each = each(&workspace, news, asked.mails);
    for kind in &each {
        page(scope, asked, news, *kind, &workspace)?;
    }
    let goes_on = asked.reached.filter(|_| !each.is_empty());
    if goes_on.is_none() {
        scope.delete::<Job>(job.id);
        return Ok(Claim::Nothing);
    }
    let work = Work::Tell { news: news.clone(), reached: goes_on };
    let state = JobState::Sending { since, until: now.plus(LEASE) };
    let next = Job { work, state, ..Job::clone(&job) };
    scope.put(next.clone());
    Ok(Claim::Taken(Claimed { job: Arc::new(next), secrets: Vec::new(), message: None }))
}

/// Whether there is still something to tell.
fn is_news(scope: &mut Scope<'_>, news: &News) -> Result<bool, Halt> {
    match news {
        News::Asked { approval } => {
            let Some(approval) = scope.get::<Approval>(*approval)? else { return Ok(false) };
            Ok(question_for(scope, Who::Nobody, approval)?.stands == Stands::Waiting)
        }
        News::Ended { .. }
        | News::Conflict { .. }
        | News::Ran { .. }
        | News::Loosened { .. }
        | News::Invited { .. } => Ok(true),
    }
}

/// A message to each room that the workspace tells of such news. What is not for those who decide is nobody's but whom it
/// concerns.
fn rooms(scope: &mut Scope<'_>, workspace: &Workspace, news: &News) -> Result<(), Halt> {
    match news {
        News::Asked { .. } | News::Ran { .. } => {}
        News::Ended { .. } | News::Conflict { .. } | News::Loosened { .. } | News::Invited { .. } => return Ok(()),
    }
    for kind in workspace.told_over.iter().filter(|it| it.spread() == Some(Spread::Room)) {
        let slot = IntegrationSlot { workspace: workspace.id, kind: *kind };
        let Some(integration) = scope.get::<Integration>(slot)?.filter(|it| it.tells()) else { continue };
        let work = Work::Message { news: news.clone(), over: *kind, to: None };
        let mut job = Job::without_url(scope.fresh(), workspace.id, work, scope.now());
        if let IntegrationConfig::Chat(ChatConfig { url, .. }) = &integration.config {
            job.url.clone_from(url);
        }
        scope.put(job);
    }
    Ok(())
}

/// The kinds over which each of those whom it concerns is told, by themselves.
fn each(workspace: &Workspace, news: &News, mails: bool) -> Vec<IntegrationKind> {
    match news {
        News::Asked { .. } | News::Ran { .. } => {
            let kinds = workspace.told_over.iter().copied();
            kinds.filter(|it| it.spread() == Some(Spread::Each)).collect()
        }
        // It is no news to anybody: the message that somebody has is changed.
        News::Ended { .. } => Vec::new(),
        // Whoever is asked in a chat is told there of what they decide, and of nothing else.
        News::Conflict { .. } => {
            workspace.told_over.iter().copied().filter(|it| *it == IntegrationKind::Mail).collect()
        }
        // What guards everybody needs nobody's integration, which whoever loosens could take away first.
        News::Loosened { .. } | News::Invited { .. } => {
            if mails {
                vec![IntegrationKind::Mail]
            } else {
                Vec::new()
            }
        }
    }
}

/// A message to each of this page's people whom it concerns.
fn page(
    scope: &mut Scope<'_>,
    asked: &SpreadNews,
    news: &News,
    over: IntegrationKind,
    workspace: &Workspace,
) -> Result<(), Halt> {
    let slot = IntegrationSlot { workspace: workspace.id, kind: over };
    let integration = scope.get::<Integration>(slot)?;
    scope.want(&asked.found.iter().map(|it| Principal::key(*it)).collect::<Vec<_>>())?;
    for id in &asked.found {
        let Some(principal) = scope.get::<Principal>(*id)?.filter(|it| it.workspace == workspace.id) else { continue };
        if is_named(integration.as_deref(), &principal, news) && concerns(scope, news, &principal)? {
            let work = Work::Message { news: news.clone(), over, to: Some(*id) };
            let job = Job::without_url(scope.fresh(), workspace.id, work, scope.now());
            scope.put(job);
        }
    }
    Ok(())
}

/// Whether an integration sends such news to this person: it may name who alone is asked.
pub(super) fn is_named(integration: Option<&Integration>, principal: &Principal, news: &News) -> bool {
    match news {
        News::Asked { .. } | News::Ran { .. } => {}
        News::Ended { .. } | News::Conflict { .. } | News::Loosened { .. } | News::Invited { .. } => return true,
    }
    match integration.map(|it| &it.config) {
        Some(IntegrationConfig::Mail(mail)) => mail.to.is_empty() || mail.to.contains(&principal.id),
        Some(IntegrationConfig::Deciders(it)) => {
            it.members.iter().any(|it| it.principal == principal.id && it.holds(principal))
        }
        Some(
            IntegrationConfig::Chat(_)
            | IntegrationConfig::Nothing
            | IntegrationConfig::Code(_)
            | IntegrationConfig::Export(_)
            | IntegrationConfig::Oidc(_)
            | IntegrationConfig::Signals(_),
        )
        | None => true,
    }
}

/// Whether somebody is to be told of this now.
///
/// # Errors
/// [`Halt::Load`], or `internal` where a row that another names is not there.
pub(super) fn concerns(scope: &mut Scope<'_>, news: &News, principal: &Principal) -> Result<bool, Halt> {
    match news {
        News::Asked { approval } => {
            let Some(approval) = scope.get::<Approval>(*approval)? else { return Ok(false) };
            Ok(question_for(scope, Who::Member(principal), approval)?.may_not.is_none())
        }
        // Whoever was asked has the message, whatever they may do by now.
        News::Ended { .. } => Ok(true),
        News::Conflict { action, owner } => {
            let later = scope.get::<Action>(*action)?.ok_or_else(Refusal::internal)?.agent;
            scope.want(&[Agent::key(later), Agent::key(*owner)])?;
            Ok(answers_for(scope, later, principal)? || answers_for(scope, *owner, principal)?)
        }
        News::Ran { action } => {
            let Some(action) = scope.get::<Action>(*action)? else { return Ok(false) };
            let agent = scope.get::<Agent>(action.agent)?.ok_or_else(Refusal::internal)?;
            Ok(may_decide(principal, &agent))
        }
        News::Loosened { by, .. } => Ok(principal.administers() && *by != Some(principal.id)),
        News::Invited { principal: invited, .. } => Ok(*invited == principal.id && principal.signs_in()),
    }
}

/// Whether somebody is whom an agent acts for, or its sponsor where that one decides nothing.
fn answers_for(scope: &mut Scope<'_>, agent: AgentId, principal: &Principal) -> Result<bool, Halt> {
    let agent = scope.get::<Agent>(agent)?.ok_or_else(Refusal::internal)?;
    if !principal.decides_own() || agent.sponsor != Some(principal.id) {
        return Ok(principal.signs_in() && agent.principal == principal.id);
    }
    let acts_for = scope.get::<Principal>(agent.principal)?;
    Ok(agent.principal == principal.id || !acts_for.is_some_and(|it| it.decides_own()))
}
