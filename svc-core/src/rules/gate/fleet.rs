//! Stopping many agents at once. The first commit decides: it checks that the selection is still the one that was counted,
//! and freezes every member's row or, where they are too many for one commit, sets a hold that names them all and stands
//! until each row is written.

use std::sync::Arc;

use super::ceiling::{self, Asking};
use super::freeze::{frozen_by, touch};
use crate::refusal::Refusal;
use crate::rules::connect::end::end_all;
use crate::rules::people::by::{By, entitled};
use crate::state::connect::EndedBy;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::gate::{Agent, Approval, ApprovalState, AskedFreeze, Frozen, FrozenBy, Standing};
use crate::state::people::{
    Hold, HoldScope, HoldTask, HoldWork, LaterStop, MEMBERS_OF_PART, MemberPart, Members, Right, Roster, StandingHold,
    Workspace,
};
use crate::store::{ROWS_AT_ONCE, Row};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::Object;
use crate::value::digest::Digest;
use crate::value::id::{AgentId, EvidenceId, HoldId, IntegrationId, PrincipalId, WorkspaceId};
use crate::value::text::Note;

/// Agents that one commit freezes at most; more are held first.
pub const FREEZE_MAX: usize = 10_000;
const _: () = assert!(
    3 * FREEZE_MAX < ROWS_AT_ONCE,
    "a store takes those frozen, those made void, and a record of each of these"
);
/// Holds of a workspace that stand at once at most.
const HOLDS_MAX: usize = 16;

/// Stops the agents that a selector meant when it was looked through. Over `svc_store::Gate` use `gate.freeze_fleet`, which looks.
#[derive(Clone, Debug)]
pub struct FreezeFleet {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who stops them.
    pub by: By,
    /// The guard row's epoch before the scan.
    pub epoch: u64,
    /// The agents, sorted, each once.
    pub agents: Arc<[AgentId]>,
    /// How many of them were frozen.
    pub frozen: u32,
    /// What names the selection.
    pub digest: Digest,
    /// Whether every agent is meant, also those that are made while the hold stands.
    pub all: bool,
    /// Why.
    pub reason: Note,
    /// How many agents the caller counted.
    pub confirm: Option<i64>,
    /// Which selection the caller saw.
    pub seen: Option<Digest>,
}

/// Every agent of a workspace, as a look through all of them found it.
#[derive(Clone, Debug)]
pub struct Everyone {
    /// The guard row's epoch before the scan.
    pub epoch: u64,
    /// The agents, sorted, each once.
    pub agents: Arc<[AgentId]>,
}

/// What comes of stopping many agents.
#[must_use = "it may be that nobody is stopped yet"]
#[derive(Clone, Debug)]
pub enum Fleet {
    /// They are stopped.
    Frozen(Halted),
    /// Past the token's ceiling: nothing is frozen, and a person is asked.
    Asked(Arc<Approval>),
    /// The agents have changed since they were looked through: look again.
    Moved,
}

/// Agents that are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halted {
    /// How many are selected.
    pub count: u32,
    /// How many of them were active until now.
    pub frozen: u32,
    /// The hold that was set, or stood before.
    pub hold: Option<HoldId>,
    /// The record of it.
    pub evidence: EvidenceId,
}

/// Stops many agents.
///
/// # Errors
/// `nothing_selected`, `confirm_count_required`, `selection_changed`, `not_ready` where too many holds stand; those of
/// [`entitled`].
pub fn freeze_fleet(scope: &mut Scope<'_>, asked: &FreezeFleet) -> Result<Fleet, Halt> {
    scope.want(&[Roster::key(asked.workspace), Workspace::key(asked.workspace)])?;
    entitled(scope, &asked.by, asked.workspace, Right::FreezeFleet)?;
    let roster = scope.get::<Roster>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    if roster.epoch != asked.epoch {
        return Ok(Fleet::Moved);
    }
    let workspace = scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let count = u32::try_from(asked.agents.len()).unwrap_or(u32::MAX);
    if count == 0 {
        return Err(Refusal::nothing_selected().into());
    }
    let Some(confirm) = asked.confirm else { return Err(Refusal::confirm_count_required(count).into()) };
    if confirm != i64::from(count) || asked.seen.is_some_and(|it| it != asked.digest) {
        return Err(Refusal::selection_changed(confirm, count).into());
    }
    if !ceiling::admits(scope, &asked.by, &workspace, count.saturating_sub(asked.frozen))? {
        let asking = Asking { members: &asked.agents, all: asked.all, reason: &asked.reason };
        return ceiling::ask(scope, &asked.by, &workspace, &asking).map(Fleet::Asked);
    }
    let (members, parts) = Members::of(scope.fresh(), &asked.agents);
    let stop = Stop {
        workspace: &workspace,
        agents: &asked.agents,
        list: List::New(members, parts),
        others: Vec::new(),
        digest: asked.digest,
        frozen: Some(asked.frozen),
        all: asked.all,
        by: frozen_by(&asked.by),
        actor: asked.by.actor(),
        reason: &asked.reason,
    };
    stop.write(scope).map(Fleet::Frozen)
}

/// Freezes what a person has agreed to: the members as they were counted when it was asked. Where every agent is meant, those
/// that came since stay active and are left to the hold; what they hold is void from now on, or its lift would make it good again.
///
/// # Errors
/// `not_ready` where too many holds stand, or where every agent is meant and `everyone` is not as the agents are now;
/// `internal` where a row that the question names is not there.
pub fn freeze_asked(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    asked: &AskedFreeze,
    everyone: Option<&Everyone>,
    by: PrincipalId,
) -> Result<Halted, Halt> {
    let whole = usize::try_from(asked.members.count).unwrap_or(usize::MAX) <= FREEZE_MAX;
    let mut agents = Vec::new();
    if whole || asked.all {
        agents = listed(scope, &asked.members, 0, u32::MAX)?;
    }
    let mut others = Vec::new();
    if asked.all {
        let roster = scope.get::<Roster>(workspace.id)?.ok_or_else(Refusal::internal)?;
        let now = everyone.filter(|it| it.epoch == roster.epoch).ok_or_else(Refusal::not_ready)?;
        others = without(&now.agents, &agents);
    }
    let stop = Stop {
        workspace,
        agents: &agents,
        list: List::Kept(asked.members.clone()),
        others,
        digest: asked.digest,
        frozen: None,
        all: asked.all,
        by: FrozenBy::Person(by),
        actor: Actor::Person(by),
        reason: &asked.reason,
    };
    stop.write(scope)
}

/// Agents that something outside has a workspace stop.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The guard row's epoch before the scan that found them.
    pub epoch: u64,
    /// The agents, sorted, each once.
    pub agents: Arc<[AgentId]>,
    /// How many of them were frozen.
    pub frozen: u32,
    /// What names the selection.
    pub digest: Digest,
}

/// Freezes what an integration has heard that it is to; `None` where the agents have changed since they were looked through.
///
/// # Errors
/// `not_ready` where too many holds stand; `internal` where a row that there has to be is not there.
pub(in crate::rules) fn freeze_heard(
    scope: &mut Scope<'_>,
    workspace: &Workspace,
    heard: &Heard,
    by: IntegrationId,
    reason: &Note,
) -> Result<Option<Halted>, Halt> {
    let roster = scope.get::<Roster>(workspace.id)?.ok_or_else(Refusal::internal)?;
    if roster.epoch != heard.epoch {
        return Ok(None);
    }
    let (members, parts) = Members::of(scope.fresh(), &heard.agents);
    let stop = Stop {
        workspace,
        agents: &heard.agents,
        list: List::New(members, parts),
        others: Vec::new(),
        digest: heard.digest,
        frozen: Some(heard.frozen),
        all: false,
        by: FrozenBy::Integration(by),
        actor: Actor::Integration(by),
        reason,
    };
    stop.write(scope).map(Some)
}

/// Those of `agents` that are none of `known`, which is sorted.
fn without(agents: &[AgentId], known: &[AgentId]) -> Vec<AgentId> {
    agents.iter().filter(|it| known.binary_search(it).is_err()).copied().collect()
}

/// Makes void what those of `agents` hold that are active, so many as one commit can write.
pub(super) fn void(scope: &mut Scope<'_>, agents: &[AgentId], at: Timestamp, actor: &Actor) -> Result<(), Halt> {
    scope.want(&agents.iter().map(|it| Agent::key(*it)).collect::<Vec<_>>())?;
    for id in agents {
        let Some(agent) = scope.get::<Agent>(*id)?.filter(|it| it.is_active()) else { continue };
        let void = Agent::clone(&agent).void(at);
        let side = |epoch: u32| Object::new().int("epoch", epoch.into()).finish();
        let data = Object::new().text("agentId", &id.to_string()).int("epoch", void.epoch.into());
        let data = data.raw("new", &side(void.epoch)).raw("old", &side(agent.epoch)).finish();
        let (actor, subject) = (actor.clone(), Subject::Agent(*id));
        scope.append(agent.workspace, Fact { kind: "agent.changed", actor, subject, data });
        scope.put(void);
    }
    Ok(())
}

/// A list of members: to be written where a hold needs it, or there already.
enum List {
    New(Members, Vec<MemberPart>),
    Kept(Members),
}

impl List {
    const fn members(&self) -> &Members {
        match self {
            Self::New(members, _) | Self::Kept(members) => members,
        }
    }
}

/// Ends the question that waits whether a hold is lifted, as it stops more than was asked about.
///
/// # Errors
/// [`Halt::Load`].
fn end_question(scope: &mut Scope<'_>, hold: &Hold, actor: &Actor) -> Result<(), Halt> {
    let Some(id) = hold.asked else { return Ok(()) };
    let Some(waiting) = scope.get::<Approval>(id)?.filter(|it| it.is_waiting()) else { return Ok(()) };
    let data = Object::new().text("kind", waiting.kind().as_str()).finish();
    let fact = Fact { kind: "approval.denied", actor: actor.clone(), subject: Subject::Approval(id), data };
    scope.append(hold.workspace, fact);
    let state = ApprovalState::Denied { at: scope.now(), by: None, note: None };
    scope.put(Approval::clone(&waiting).ended(state));
    Ok(())
}

/// A stop of many on its way into rows.
struct Stop<'a> {
    workspace: &'a Workspace,
    /// The members; may be empty where they are too many for one commit and not every agent is meant.
    agents: &'a [AgentId],
    list: List,
    /// Agents that are no members and are left to the hold: what they hold is made void.
    others: Vec<AgentId>,
    digest: Digest,
    /// How many of them were frozen, where that was counted.
    frozen: Option<u32>,
    all: bool,
    by: FrozenBy,
    actor: Actor,
    reason: &'a Note,
}

impl Stop<'_> {
    fn write(self, scope: &mut Scope<'_>) -> Result<Halted, Halt> {
        let voids = self.void_others(scope)?;
        match self.workspace.all_held().filter(|_| self.all) {
            Some(standing) => self.join(scope, standing.id, voids),
            None => self.stand(scope, voids),
        }
    }

    /// Freezes the members, under a hold of its own where it takes one.
    fn stand(self, scope: &mut Scope<'_>, voids: Option<HoldWork>) -> Result<Halted, Halt> {
        let count = self.list.members().count;
        let whole = usize::try_from(count).unwrap_or(usize::MAX) <= FREEZE_MAX;
        let sets = self.all || !whole;
        if sets && self.workspace.holds.len() >= HOLDS_MAX {
            return Err(Refusal::not_ready().into());
        }
        let hold = sets.then(|| scope.fresh::<HoldId>());
        let newly = if whole { self.freeze(scope, self.agents, hold)? } else { 0 };
        // Whom an earlier freeze has stopped whose rows do not say it yet is none of this one's.
        let frozen = match self.frozen {
            Some(before) if whole => Some(newly.min(count.saturating_sub(before))),
            Some(before) => Some(count.saturating_sub(before)),
            None => whole.then_some(newly),
        };
        let evidence = self.record(scope, hold, frozen)?;
        if let Some(id) = hold {
            self.hold(scope, id, evidence, voids);
        }
        Ok(Halted { count, frozen: frozen.unwrap_or(0), hold, evidence })
    }

    /// Adds who is new among the members to those of the hold over all that stands, so that its end finds them too. It stops
    /// them already, and its first members are frozen, or being frozen, in the words of the stop that set it.
    fn join(self, scope: &mut Scope<'_>, id: HoldId, voids: Option<HoldWork>) -> Result<Halted, Halt> {
        let mut hold = Hold::clone(&*scope.get::<Hold>(id)?.ok_or_else(Refusal::internal)?);
        let mut members = listed(scope, &hold.members, 0, u32::MAX)?;
        let came = without(self.agents, &members);
        let whole = came.len() <= FREEZE_MAX;
        let count = self.list.members().count;
        let frozen = if whole {
            self.freeze(scope, &came, Some(id))?
        } else {
            let before = self.frozen.unwrap_or(0);
            count.saturating_sub(before).min(u32::try_from(came.len()).unwrap_or(u32::MAX))
        };
        let evidence = self.record(scope, Some(id), Some(frozen))?;
        if frozen > 0 {
            members.extend(&came);
            members.sort_unstable();
            let (now, parts) = Members::of(scope.fresh(), &members);
            parts.into_iter().for_each(|part| scope.put(part));
            let first = std::mem::replace(&mut hold.members, now);
            if let Some(work) = hold.work.as_mut().filter(|it| it.of.is_none()) {
                let (by, reason) = (hold.by.clone(), hold.reason.clone());
                work.of = Some(LaterStop { members: first, by, reason, at: hold.at });
            }
            // Whoever asked for its lift, or agreed to it, knew nothing of this stop.
            end_question(scope, &hold, &self.actor)?;
            hold.asked = None;
            if !whole {
                hold.begin(self.work(scope, HoldTask::Freeze, &came));
            }
        }
        if frozen > 0 || voids.is_some() {
            voids.into_iter().for_each(|it| hold.begin(it));
            scope.put(hold);
        }
        Ok(Halted { count, frozen, hold: Some(id), evidence })
    }

    /// Freezes those of `agents` that are active, so many as one commit can write, and gives how many they were.
    fn freeze(&self, scope: &mut Scope<'_>, agents: &[AgentId], hold: Option<HoldId>) -> Result<u32, Halt> {
        Own { at: scope.now(), by: &self.by, reason: self.reason, hold }.freeze(scope, agents)
    }

    /// Makes void what the others hold: now, or a step at a time under the hold where they are too many for one commit.
    fn void_others(&self, scope: &mut Scope<'_>) -> Result<Option<HoldWork>, Halt> {
        if self.others.len() > FREEZE_MAX {
            return Ok(Some(self.work(scope, HoldTask::Void, &self.others)));
        }
        let at = scope.now();
        void(scope, &self.others, at, &self.actor)?;
        Ok(None)
    }

    /// What is done to so many agents that one commit cannot write them.
    fn work(&self, scope: &mut Scope<'_>, task: HoldTask, agents: &[AgentId]) -> HoldWork {
        let (members, parts) = Members::of(scope.fresh(), agents);
        parts.into_iter().for_each(|part| scope.put(part));
        let at = scope.now();
        let of = LaterStop { members, by: self.by.clone(), reason: self.reason.clone(), at };
        HoldWork::new(task, at, Some(of))
    }

    /// Writes the record of the whole fleet, and tells whoever selects agents that their standing has changed.
    fn record(&self, scope: &mut Scope<'_>, hold: Option<HoldId>, frozen: Option<u32>) -> Result<EvidenceId, Halt> {
        let count = self.list.members().count;
        let mut data = Object::new().int("count", count.into());
        if let Some(frozen) = frozen {
            data = data.int("frozen", frozen.into()).int("alreadyFrozen", count.saturating_sub(frozen).into());
        }
        if let Some(hold) = hold {
            data = data.text("hold", &hold.to_string());
        }
        let data = data.text("selectionDigest", &self.digest.named()).finish();
        let subject = Subject::Workspace(self.workspace.id);
        let fact = Fact { kind: "fleet.frozen", actor: self.actor.clone(), subject, data };
        let evidence = scope.append_with(self.workspace.id, fact, &[("reason", self.reason.as_str())]);
        touch(scope, self.workspace.id)?;
        Ok(evidence)
    }

    /// Sets the hold: from this commit on nobody whom it names acts.
    fn hold(self, scope: &mut Scope<'_>, id: HoldId, evidence: EvidenceId, voids: Option<HoldWork>) {
        let (at, workspace) = (scope.now(), self.workspace.id);
        let kind = if self.all { HoldScope::All } else { HoldScope::Selection };
        let members = match self.list {
            List::Kept(members) => members,
            List::New(members, parts) => {
                parts.into_iter().for_each(|part| scope.put(part));
                members
            }
        };
        let over = (kind == HoldScope::Selection).then(|| members.clone());
        let mut changed = self.workspace.clone();
        changed.holds.push(StandingHold { id, at, over });
        scope.put(changed);
        let data = Object::new().int("agents", members.count.into()).text("scope", kind.as_str()).finish();
        let fact = Fact { kind: "hold.set", actor: self.actor, subject: Subject::Hold(id), data };
        scope.append_with(workspace, fact, &[("reason", self.reason.as_str())]);
        let whole = usize::try_from(members.count).unwrap_or(usize::MAX) <= FREEZE_MAX;
        let work = (!whole).then(|| HoldWork::new(HoldTask::Freeze, at, None));
        let (by, reason) = (self.by, self.reason.clone());
        let mut hold = Hold {
            id,
            workspace,
            scope: kind,
            members,
            by,
            reason,
            at,
            evidence,
            work,
            then: Vec::new(),
            asked: None,
            lifted: None,
        };
        voids.into_iter().for_each(|it| hold.begin(it));
        scope.put(hold);
    }
}

/// What each member's own row is told.
pub(super) struct Own<'a> {
    pub(super) at: Timestamp,
    pub(super) by: &'a FrozenBy,
    pub(super) reason: &'a Note,
    pub(super) hold: Option<HoldId>,
}

impl Own<'_> {
    /// Freezes those of `agents` that are active, and gives how many they were. Each row's own record follows a moment later.
    pub(super) fn freeze(&self, scope: &mut Scope<'_>, agents: &[AgentId]) -> Result<u32, Halt> {
        scope.want(&agents.iter().map(|id| Agent::key(*id)).collect::<Vec<_>>())?;
        let frozen =
            Frozen { hold: self.hold, unrecorded: true, ..Frozen::new(self.at, self.by.clone(), self.reason.clone()) };
        let mut newly = 0_u32;
        for id in agents {
            let Some(agent) = scope.get::<Agent>(*id)? else { continue };
            match &agent.standing {
                Standing::Active => {
                    newly = newly.saturating_add(1);
                    end_all(scope, &agent, EndedBy::Frozen, &Actor::Policy)?;
                    scope.put(Agent::clone(&agent).freeze(frozen.clone()));
                }
                Standing::Frozen(standing) => {
                    let repeated = standing.repeated(&frozen);
                    if repeated != *standing {
                        scope.put(Agent { standing: Standing::Frozen(repeated), ..Agent::clone(&agent) });
                    }
                }
                Standing::Removed { .. } => {}
            }
        }
        Ok(newly)
    }
}

/// The members in rows `from` and on, at most `rows` of them.
pub(super) fn listed(scope: &mut Scope<'_>, members: &Members, from: u32, rows: u32) -> Result<Vec<AgentId>, Halt> {
    let parts: Vec<_> = (from..from.saturating_add(rows)).map_while(|number| members.part(number)).collect();
    scope.want(&parts.iter().map(|id| MemberPart::key(*id)).collect::<Vec<_>>())?;
    let mut agents = Vec::with_capacity(parts.len().saturating_mul(MEMBERS_OF_PART));
    for part in parts {
        let part = scope.get::<MemberPart>(part)?.ok_or_else(Refusal::internal)?;
        agents.extend_from_slice(&part.agents);
    }
    Ok(agents)
}
