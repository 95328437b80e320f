//! What the operator's payment processor tells of a workspace's subscriptions: the plan follows them.
//!
//! **Invariant:** this and the program itself are all that sets a plan; no credential of a workspace does.

use super::receive::Once;
use crate::rules::people::by::By;
use crate::rules::people::settings::{ChangeSettings, SettingsChange, change_settings};
use crate::state::edge::{Heard, Received};
use crate::state::people::{Plan, Subscription, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::digest::ReceivedId;
use crate::value::id::WorkspaceId;
use crate::value::{Id as _, Span, Timestamp};

/// A request that was signed with the operator's secret.
#[derive(Clone, Debug)]
pub struct FollowSubscription {
    /// The row of what was signed.
    pub request: ReceivedId,
    /// How long the same request could be sent again, and its signature be good.
    pub kept: Span,
    /// The row of the processor's id of the event.
    pub event: ReceivedId,
    /// Whose subscription came to what; nothing of events that set no plan.
    pub told: Option<(WorkspaceId, ToldOf)>,
}

/// What an event says of a subscription.
#[derive(Clone, Debug)]
pub struct ToldOf {
    /// The processor's id of it, at most 200 characters; empty where the event names none.
    pub subscription: Box<str>,
    /// When it came about; where the event does not tell, now.
    pub at: Option<Timestamp>,
    /// When the subscription was made, where the event tells.
    pub begun: Option<Timestamp>,
    /// The plan that it is for: [`Plan::Free`] where it is not paid.
    pub plan: Plan,
    /// Whether it is told of as made: whatever else is told of it came about after that.
    pub created: bool,
    /// Whether it was ended for good.
    pub deleted: bool,
}

/// Puts a workspace on the plan that its subscriptions are for. What is older than what is known of the same subscription changes
/// nothing.
///
/// # Errors
/// `unauthenticated` where the request was received before.
pub fn follow_subscription(scope: &mut Scope<'_>, asked: &FollowSubscription) -> Result<Heard, Halt> {
    scope.want(&[Received::key(asked.request), Received::key(asked.event)])?;
    let once = Once { request: asked.request, kept: asked.kept, event: Some(asked.event) };
    let before = once.before(scope)?;
    let repeated = before.is_some();
    let heard = match (before, &asked.told) {
        (Some(heard), _) => heard,
        (None, None) => heard("ignored"),
        (None, Some((workspace, told))) => heard(put(scope, *workspace, told)?),
    };
    // Where no workspace is named, the row is found in the first shard.
    let workspace = asked.told.as_ref().map_or_else(|| WorkspaceId::from_bits(0), |it| it.0);
    once.note(scope, workspace, Some(&heard).filter(|_| !repeated));
    Ok(heard)
}

/// How far the clock of whoever tells of subscriptions may be ahead: as much as a signature may be old.
const AHEAD_MAX: Span = Span::minutes(5);

fn put(scope: &mut Scope<'_>, workspace: WorkspaceId, told: &ToldOf) -> Result<&'static str, Halt> {
    let Some(before) = scope.get::<Workspace>(workspace)? else { return Ok("not_found") };
    // What is said to come about much later than now would outdate all that comes about until then.
    let at = told.at.map_or_else(|| scope.now(), |it| it.min(scope.now().plus(AHEAD_MAX)));
    if told.created && before.subscriptions.iter().any(|it| it.id == told.subscription && it.at >= at) {
        return Ok("outdated");
    }
    let (id, begun, plan, deleted) = (told.subscription.clone(), told.begun, told.plan, told.deleted);
    let told_now = Subscription { id, at, begun, plan, deleted };
    let mut after = Workspace::clone(&before);
    if !Subscription::hear(&mut after.subscriptions, told_now) {
        return Ok("outdated");
    }
    let plan = Subscription::plan_of(&after.subscriptions);
    scope.put(after);
    let change = SettingsChange { plan: Some(plan), ..SettingsChange::default() };
    change_settings(scope, &ChangeSettings { by: By::Program, workspace, change })?;
    Ok("changed")
}

fn heard(outcome: &str) -> Heard {
    Heard::of(outcome)
}
