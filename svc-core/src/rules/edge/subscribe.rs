//! What the operator's payment processor tells of a workspace's subscription: the plan follows it.
//!
//! **Invariant:** this and the program itself are all that sets a plan; no credential of a workspace does.

use crate::refusal::{Kind, Refusal};
use crate::rules::people::by::By;
use crate::rules::people::settings::{ChangeSettings, SettingsChange, change_settings};
use crate::state::edge::{EVENT_KEPT, Heard, Received};
use crate::state::people::Plan;
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::digest::ReceivedId;
use crate::value::id::WorkspaceId;
use crate::value::{Id as _, Span};

/// A request that was signed with the operator's secret.
#[derive(Clone, Debug)]
pub struct FollowSubscription {
    /// The row of what was signed.
    pub request: ReceivedId,
    /// How long the same request could be sent again, and its signature be good.
    pub kept: Span,
    /// The row of the processor's id of the event.
    pub event: ReceivedId,
    /// Whose plan becomes which; nothing of events that set none.
    pub plan: Option<(WorkspaceId, Plan)>,
}

/// Puts a workspace on the plan that its subscription is for.
///
/// # Errors
/// `unauthenticated` where the request was received before.
pub fn follow_subscription(scope: &mut Scope<'_>, asked: &FollowSubscription) -> Result<Heard, Halt> {
    scope.want(&[Received::key(asked.request), Received::key(asked.event)])?;
    if scope.get::<Received>(asked.request)?.is_some() {
        return Err(Refusal::wrong_signature().into());
    }
    let before = scope.get::<Received>(asked.event)?.and_then(|it| it.answer.clone());
    let repeated = before.is_some();
    let heard = match (before, asked.plan) {
        (Some(heard), _) => heard,
        (None, None) => heard("ignored"),
        (None, Some((workspace, plan))) => heard(put(scope, workspace, plan)?),
    };
    // Where no workspace is named, the row is found in the first shard.
    let workspace = asked.plan.map_or_else(|| WorkspaceId::from_bits(0), |it| it.0);
    let now = scope.now();
    let received = |id, kept, answer| Received { id, workspace, until: now.plus(kept), answer };
    scope.put(received(asked.request, asked.kept, None));
    if !repeated {
        scope.put(received(asked.event, EVENT_KEPT, Some(heard.clone())));
    }
    Ok(heard)
}

fn put(scope: &mut Scope<'_>, workspace: WorkspaceId, plan: Plan) -> Result<&'static str, Halt> {
    let change = SettingsChange { plan: Some(plan), ..SettingsChange::default() };
    match change_settings(scope, &ChangeSettings { by: By::Program, workspace, change }) {
        Ok(_) => Ok("changed"),
        Err(Halt::Refuse(why)) if why.kind() == Kind::NotFound => Ok("not_found"),
        Err(halt) => Err(halt),
    }
}

fn heard(outcome: &str) -> Heard {
    Heard { approved: None, outcome: outcome.into() }
}
