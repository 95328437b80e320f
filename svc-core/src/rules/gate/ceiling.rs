//! How many agents a service token may freeze within an hour, single and fleet together, and the person who is asked past
//! that. Nothing is frozen until that person agrees.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::people::by::By;
use crate::state::evidence::{Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedFreeze, Requester};
use crate::state::people::{CEILING_WINDOW, FREEZES_ASKED_MAX, Members, TokenUse, Workspace, selection_digest};
use crate::store::Row;
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

/// Asks a person. While the same freeze by the same token waits already, that question is the answer. So many different ones
/// wait at most ([`FREEZES_ASKED_MAX`]): a token that somebody stole does not bury persons in questions.
///
/// # Errors
/// `rate_limited` where that many wait, until the first of them expires or the token's ceiling has room again.
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
    let waiting = waiting(scope, &used)?;
    let is_same = |it: &AskedFreeze| (it.digest, it.all) == (digest, asking.all);
    let same = |it: &&Arc<Approval>| matches!(&it.subject, ApprovalSubject::Freeze(asked) if is_same(asked));
    if let Some(same) = waiting.iter().find(same) {
        return Ok(Arc::clone(same));
    }
    if waiting.len() >= FREEZES_ASKED_MAX {
        let expires = waiting.iter().map(|it| it.expires_at);
        let room = used.freezes.first().map(|(at, _)| at.plus(CEILING_WINDOW)).filter(|it| now < *it);
        let left = expires.chain(room).min().map_or(0, |it| it.since(now).as_millis());
        let seconds = left.saturating_add(999).div_euclid(1_000).max(1);
        return Err(Refusal::rate_limited(u32::try_from(seconds).unwrap_or(u32::MAX)).into());
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
    let waiting = waiting.iter().map(|it| it.id).chain([approval.id]).collect();
    scope.put(TokenUse { waiting, ..used });
    scope.put(approval.clone());
    Ok(Arc::new(approval))
}

/// What a token asked that still waits, the oldest first.
fn waiting(scope: &mut Scope<'_>, used: &TokenUse) -> Result<Vec<Arc<Approval>>, Halt> {
    let now = scope.now();
    scope.want(&used.waiting.iter().map(|it| Approval::key(*it)).collect::<Vec<_>>())?;
    let mut found = Vec::with_capacity(used.waiting.len());
    for id in &used.waiting {
        found.extend(scope.get::<Approval>(*id)?.filter(|it| it.is_waiting() && now < it.expires_at));
    }
    Ok(found)
}
