//! What lists of model calls and of tasks are asked with.

use svc_core::refusal::Refusal;
use svc_core::state::gateway::{Call, CallEnd, CallState, Target, Task, TaskStatus};
use svc_core::value::id::{AgentId, KeyId, PrincipalId, TeamId, WorkspaceId};
use svc_core::value::period::Zone;
use svc_core::value::text::{ClassId, TaskId};

use super::page::{Page, Query, Span};

/// The word for a call that has not ended.
pub const RUNNING: &str = "running";
/// The word for a task of which nobody has reported what came.
pub const UNREPORTED: &str = "unreported";
/// Characters of a model with its provider, at most: 40, a slash and 200.
const MODEL_MAX: usize = 241;

/// What `end` is asked with: how a call ended, or that it has not.
pub fn ends() -> impl Iterator<Item = &'static str> + Clone {
    CallEnd::ALL.map(CallEnd::as_str).into_iter().chain([RUNNING])
}

/// What `outcome` is asked with: what came of a task, or that nothing was reported.
pub fn outcomes() -> impl Iterator<Item = &'static str> + Clone {
    TaskStatus::ALL.map(TaskStatus::as_str).into_iter().chain([UNREPORTED])
}

/// For whom, and for what, calls were made or a task was opened.
#[derive(Clone, Debug)]
struct Whose {
    agent: Option<AgentId>,
    principal: Option<PrincipalId>,
    team: Option<TeamId>,
    key: Option<KeyId>,
    class: Option<ClassId>,
}

impl Whose {
    fn read(query: &mut Query) -> Self {
        Self {
            agent: query.take("agentId", |it| AgentId::parse(it).map_err(|why| why.to_string())),
            principal: query.take("principalId", |it| PrincipalId::parse(it).map_err(|why| why.to_string())),
            team: query.take("teamId", |it| TeamId::parse(it).map_err(|why| why.to_string())),
            key: query.take("keyId", |it| KeyId::parse(it).map_err(|why| why.to_string())),
            class: query.take("taskClass", |it| ClassId::parse(it).map_err(|why| why.to_string())),
        }
    }

    fn is(&self, of: (Option<AgentId>, PrincipalId, Option<TeamId>, KeyId, Option<&ClassId>)) -> bool {
        let (agent, principal, team, key, class) = of;
        self.agent.is_none_or(|it| Some(it) == agent)
            && self.principal.is_none_or(|it| it == principal)
            && self.team.is_none_or(|it| Some(it) == team)
            && self.key.is_none_or(|it| it == key)
            && self.class.as_ref().is_none_or(|it| Some(it) == class)
    }
}

/// Which calls are asked for.
#[derive(Clone, Debug)]
pub struct CallWish {
    whose: Whose,
    task: Option<TaskId>,
    /// As `provider/model`, or the model at whichever provider.
    model: Option<Box<str>>,
    end: Option<&'static str>,
    /// When they began.
    pub span: Span,
    /// Which part of them.
    pub page: Page,
}

impl CallWish {
    /// Reads the query.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn read(mut query: Query, workspace: WorkspaceId, zone: &Zone) -> Result<Self, Refusal> {
        let whose = Whose::read(&mut query);
        let task = query.take("taskId", |it| TaskId::parse(it).map_err(|why| why.to_string()));
        let model = query.take("model", |it| {
            let is_name = (1..=MODEL_MAX).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_graphic());
            is_name.then(|| it.into()).ok_or_else(|| "must be a model, or `provider/model`".to_owned())
        });
        let end = one_of(&mut query, "end", ends());
        let span = query.span(zone);
        let page = query.page("calls", workspace);
        query.finish()?;
        Ok(Self { whose, task, model, end, span, page })
    }

    /// Whether calls that run are asked for alone.
    #[must_use]
    pub fn is_of_running(&self) -> bool {
        self.end == Some(RUNNING)
    }

    /// Whether a call is asked for.
    #[must_use]
    pub fn admits(&self, call: &Call) -> bool {
        let payer = &call.payer;
        let end = match &call.state {
            CallState::Running { .. } => RUNNING,
            CallState::Ended { end, .. } => end.as_str(),
        };
        let went_to = |wish: &str| {
            let is_it = |it: &Target| {
                let rest = wish.strip_prefix(it.provider.as_str()).and_then(|rest| rest.strip_prefix('/'));
                wish == it.model.as_str() || rest == Some(it.model.as_str())
            };
            call.target.as_ref().is_some_and(is_it)
        };
        self.whose.is((payer.agent, payer.principal, payer.team, payer.key, payer.class.as_ref()))
            && self.task.as_ref().is_none_or(|it| *it == call.task)
            && self.model.as_ref().is_none_or(|it| went_to(it))
            && self.end.is_none_or(|it| it == end)
    }
}

/// Which tasks are asked for.
#[derive(Clone, Debug)]
pub struct TaskWish {
    whose: Whose,
    outcome: Option<&'static str>,
    /// When they began.
    pub span: Span,
    /// Which part of them.
    pub page: Page,
}

impl TaskWish {
    /// Reads the query.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn read(mut query: Query, workspace: WorkspaceId, zone: &Zone) -> Result<Self, Refusal> {
        let whose = Whose::read(&mut query);
        let outcome = one_of(&mut query, "outcome", outcomes());
        let span = query.span(zone);
        let page = query.page("tasks", workspace);
        query.finish()?;
        Ok(Self { whose, outcome, span, page })
    }

    /// Whether a task is asked for.
    #[must_use]
    pub fn admits(&self, task: &Task) -> bool {
        let outcome = task.outcome.map_or(UNREPORTED, |it| it.status.as_str());
        self.whose.is((task.agent, task.principal, task.team, task.opened_by, task.class.as_ref()))
            && self.outcome.is_none_or(|it| it == outcome)
    }
}

/// A parameter that holds one of `words`.
fn one_of(query: &mut Query, name: &str, words: impl Iterator<Item = &'static str> + Clone) -> Option<&'static str> {
    query.take(name, |text| {
        let all = || words.clone().collect::<Vec<_>>().join(", ");
        words.clone().find(|it| *it == text).ok_or_else(|| format!("must be one of {}", all()))
    })
}
