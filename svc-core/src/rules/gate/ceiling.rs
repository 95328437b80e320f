//! How many agents a service token may freeze within an hour, single and fleet together, and the person who is asked past
//! that. Nothing is frozen until that person agrees.

use std::sync::Arc;

use super::fleet::listed;
use crate::refusal::Refusal;
use crate::rules::edge::tell;
use crate::rules::people::by::{By, TokenCaller};
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Approval, ApprovalState, ApprovalSubject, AskedFreeze, Requester};
use crate::state::people::{CEILING_WINDOW, FREEZES_ASKED_MAX, Members, TokenUse, Workspace, selection_digest};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::AgentId;
use crate::value::text::Note;

/// How many agents a question may name that a few more join: each time its list is written anew. A larger selection is no list of
/// somebody's, and there are few of them.
const JOINED_MAX: usize = 1_000;

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
/// wait at most ([`FREEZES_ASKED_MAX`]): a token that somebody stole does not bury persons in questions. A further freeze joins one
/// of them that has room, as a question of its own that says all it is about.
///
/// # Errors
/// `rate_limited` where that many wait and none has room, until the first of them expires or the token's ceiling has room again.
pub(super) fn ask(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: &Workspace,
    asking: &Asking<'_>,
) -> Result<Arc<Approval>, Halt> {
    let By::Token(token) = by else { return Err(Refusal::internal().into()) };
    let known = scope.get::<TokenUse>(token.token)?;
    let used = known.map_or_else(|| TokenUse::none(token.token, workspace.id), |it| TokenUse::clone(&it));
    let digest = selection_digest(asking.members);
    let waiting = waiting(scope, &used)?;
    let is_same = |it: &AskedFreeze| (it.digest, it.all) == (digest, asking.all);
    if let Some(same) = waiting.iter().find(|it| freeze_of(it).is_some_and(is_same)) {
        return Ok(Arc::clone(same));
    }
    let mut used = TokenUse { waiting: waiting.iter().map(|it| it.id).collect(), ..used };
    if used.waiting.len() < FREEZES_ASKED_MAX {
        let asked = question(scope, token, workspace, used, asking);
        tell::asked(scope, workspace, &asked);
        return Ok(asked);
    }
    let Some((narrower, of)) = with_room(&waiting, asking) else { return Err(full(scope, &used, &waiting).into()) };
    let mut members = asking.members.to_vec();
    // Where every agent is meant, those are all who are still there.
    if !asking.all {
        let known = listed(scope, &of.members, 0, u32::MAX)?;
        members.retain(|it| known.binary_search(it).is_err());
        if members.is_empty() {
            return Ok(Arc::clone(narrower));
        }
        members.extend(known);
        members.sort_unstable();
    }
    // Nobody's yes freezes more than they saw: the question that waited ends, and the wider one is another.
    end(scope, narrower);
    used.waiting.retain(|it| *it != narrower.id);
    let wider = Asking { members: &members, all: asking.all || of.all, reason: &both(of, asking) };
    let asked = question(scope, token, workspace, used, &wider);
    tell::grown(scope, workspace, &asked);
    Ok(asked)
}

/// The question that a freeze joins. Every agent: the newest about every agent, or the newest at all. A few: the newest that names
/// its agents and has room for them. Many: the one that names most. Where none of these waits, the newest about every agent.
fn with_room<'a>(waiting: &'a [Arc<Approval>], asking: &Asking<'_>) -> Option<(&'a Arc<Approval>, &'a AskedFreeze)> {
    let newest = || waiting.iter().rev().filter_map(|it| Some((it, freeze_of(it)?)));
    let whole = newest().find(|(_, of)| of.all);
    if asking.all {
        return whole.or_else(|| newest().next());
    }
    let mut named = newest().filter(|(_, of)| !of.all);
    let joined = if asking.members.len() > JOINED_MAX {
        named.max_by_key(|(_, of)| count(of))
    } else {
        named.find(|(_, of)| count(of) < JOINED_MAX)
    };
    joined.or(whole)
}

fn count(of: &AskedFreeze) -> usize {
    usize::try_from(of.members.count).unwrap_or(usize::MAX)
}

const fn freeze_of(approval: &Approval) -> Option<&AskedFreeze> {
    if let ApprovalSubject::Freeze(of) = &approval.subject { Some(of) } else { None }
}

/// Both reasons; where one note has no room for them, that of the freeze of more agents.
fn both(of: &AskedFreeze, asking: &Asking<'_>) -> Note {
    let (before, more) = (of.reason.as_str(), asking.reason.as_str());
    if before.split("; ").any(|it| it == more) {
        return of.reason.clone();
    }
    let larger = if asking.members.len() > count(of) { asking.reason } else { &of.reason };
    Note::parse(&format!("{before}; {more}")).unwrap_or_else(|_| larger.clone())
}

/// Ends a question in whose place a wider one is asked.
fn end(scope: &mut Scope<'_>, narrower: &Approval) {
    let data = Object::new().text("kind", narrower.kind().as_str()).finish();
    let subject = Subject::Approval(narrower.id);
    scope.append(narrower.workspace, Fact { kind: "approval.denied", actor: Actor::Policy, subject, data });
    let state = ApprovalState::Denied { at: scope.now(), by: None, note: None };
    scope.put(narrower.clone().ended(state));
}

/// What is told where no question has room.
fn full(scope: &Scope<'_>, used: &TokenUse, waiting: &[Arc<Approval>]) -> Refusal {
    let now = scope.now();
    let expires = waiting.iter().map(|it| it.expires_at);
    let room = used.freezes.first().map(|(at, _)| at.plus(CEILING_WINDOW)).filter(|it| now < *it);
    let left = expires.chain(room).min().map_or(0, |it| it.since(now).as_millis());
    let seconds = left.saturating_add(999).div_euclid(1_000).max(1);
    Refusal::rate_limited(u32::try_from(seconds).unwrap_or(u32::MAX))
}

/// Writes a new question beside those that `used` names as waiting.
fn question(
    scope: &mut Scope<'_>,
    token: &TokenCaller,
    workspace: &Workspace,
    mut used: TokenUse,
    asking: &Asking<'_>,
) -> Arc<Approval> {
    let (now, digest) = (scope.now(), selection_digest(asking.members));
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
        posted: Vec::new(),
    };
    let count = i64::try_from(asking.members.len()).unwrap_or(i64::MAX);
    let data = Object::new().bool("all", asking.all).int("count", count).text("kind", approval.kind().as_str());
    let data = data.text("selectionDigest", &digest.named()).finish();
    let actor = Actor::Token { id: token.token, name: token.name.clone() };
    let fact = Fact { kind: "approval.asked", actor, subject: Subject::Approval(approval.id), data };
    scope.append_with(workspace.id, fact, &[("reason", asking.reason.as_str())]);
    used.waiting.push(approval.id);
    scope.put(used);
    scope.put(approval.clone());
    Arc::new(approval)
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
