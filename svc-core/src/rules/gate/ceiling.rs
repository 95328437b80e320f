//! How many agents a service token may freeze within an hour, single and fleet together, and the person who is asked past
//! that. Nothing is frozen until that person agrees.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::people::by::By;
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedFreeze, Requester};
use crate::state::people::{Members, TokenUse, Workspace, selection_digest};
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::AgentId;
use crate::value::text::Note;

/// Whether the caller may freeze so many agents that are active until now. If so, they are counted. Only tokens have a
/// ceiling.
pub(super) fn admits(scope: &mut Scope<'_>, by: &By, workspace: &Workspace, count: u32) -> Result<bool, Halt> {
    let By::Token(token) = by else { return Ok(true) };
    if count == 0 {
        return Ok(true);
    }
    let now = scope.now();
    let known = scope.get::<TokenUse>(token.token)?;
    let used = known.map_or_else(|| TokenUse::none(token.token, workspace.id), |it| TokenUse::clone(&it));
    let within = used.frozen_lately(now).saturating_add(count) <= workspace.settings.freeze_ceiling_per_hour;
    if within {
        scope.put(used.froze(now, count));
    }
    Ok(within)
}

/// A freeze that is past a ceiling.
pub(super) struct Asking<'a> {
    /// Whom it would freeze, sorted, each once.
    pub(super) members: &'a [AgentId],
    /// Whether every agent is meant.
    pub(super) all: bool,
    /// Why.
    pub(super) reason: &'a Note,
}

/// Asks a person. While the same freeze by the same token waits already, that question is the answer.
pub(super) fn ask(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: &Workspace,
    asking: &Asking<'_>,
) -> Result<Arc<Approval>, Halt> {
    let By::Token(token) = by else { return Err(Refusal::internal().into()) };
    let now = scope.now();
    let known = scope.get::<TokenUse>(token.token)?;
    let used = known.map_or_else(|| TokenUse::none(token.token, workspace.id), |it| TokenUse::clone(&it));
    let digest = selection_digest(asking.members);
    if let Some(id) = used.asked
        && let Some(waiting) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting() && now < it.expires_at)
        && let ApprovalSubject::Freeze(asked) = &waiting.subject
        && (asked.digest, asked.all) == (digest, asking.all)
    {
        return Ok(waiting);
    }
    let (members, parts) = Members::of(scope.fresh(), asking.members);
    for part in parts {
        scope.put(part);
    }
    let approval = Approval {
        id: scope.fresh(),
        workspace: workspace.id,
        subject: ApprovalSubject::Freeze(AskedFreeze {
            members,
            digest,
            all: asking.all,
            reason: asking.reason.clone(),
            by: Requester::Token { id: token.token, name: token.name.clone() },
        }),
        created_at: now,
        expires_at: now.plus(workspace.settings.approval_life()),
        needed: 1,
        approvals: Vec::new(),
        state: ApprovalState::Waiting,
    };
    let count = i64::try_from(asking.members.len()).unwrap_or(i64::MAX);
    let data = Object::new().bool("all", asking.all).int("count", count).text("kind", approval.kind().as_str());
    let data = data.text("selectionDigest", &digest.named()).finish();
    let fact = Fact { kind: "approval.asked", actor: by.actor(), subject: Subject::Approval(approval.id), data };
    scope.append_with(workspace.id, fact, &[("reason", asking.reason.as_str())]);
    scope.put(TokenUse { asked: Some(approval.id), ..used });
    scope.put(approval.clone());
    Ok(Arc::new(approval))
}
