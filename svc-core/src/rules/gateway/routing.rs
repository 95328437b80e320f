//! What a workspace routes by is administered: providers, models, classes, profiles and routing itself. All of it is one
//! row, so a call sees all of a change or nothing.

use std::sync::Arc;

use serde::Serialize;

use super::told::ToldRouting;
use super::{classes, models, profiles, upstreams};
use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled};
use crate::rules::people::keys;
use crate::rules::people::named::{Named, fault};
use crate::rules::people::settings::differing;
use crate::state::evidence::{Fact, Subject};
use crate::state::gateway::route::is_default_table;
use crate::state::gateway::{BoundKey, BoundKeys, BudgetScope, Mode, Objective, Routing, ToolRule};
use crate::state::people::{Right, Workspace};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::{Object, canonical};
use crate::value::id::{KeyId, ProfileId, UpstreamId, WorkspaceId};
use crate::value::json::Json;
use crate::value::text::ClassId;

/// Rows of a workspace's own tool table.
pub const TOOL_RULES_MAX: usize = 200;

/// Changes what a workspace routes by.
#[derive(Clone, Debug)]
pub struct EditRouting {
    /// Who asks.
    pub by: By,
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// The change.
    pub edit: Edit,
}

/// One change. What is named twice in a list of settings has the last value.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A provider is made.
    CreateUpstream(Vec<upstreams::Set>),
    /// A provider changes.
    ChangeUpstream(UpstreamId, Vec<upstreams::Set>),
    /// A provider goes.
    RemoveUpstream(UpstreamId),
    /// A model is made.
    CreateModel(models::NewModel),
    /// A model changes.
    ChangeModel(models::Place, Vec<models::Set>),
    /// A model goes.
    RemoveModel(models::Place),
    /// A class is made.
    CreateClass(ClassId, Vec<classes::Set>),
    /// A class changes.
    ChangeClass(ClassId, Vec<classes::Set>),
    /// A class goes.
    RemoveClass(ClassId),
    /// A profile is made.
    CreateProfile(Vec<profiles::Set>),
    /// A profile changes.
    ChangeProfile(ProfileId, Vec<profiles::Set>),
    /// A profile goes.
    RemoveProfile(ProfileId),
    /// Routing itself changes.
    Change(Vec<Set>),
}

/// One setting of routing itself.
#[derive(Clone, Debug)]
pub enum Set {
    /// Whether it acts.
    Mode(Mode),
    /// What to favour where nobody says.
    Objective(Objective),
    /// The class of calls that have none.
    DefaultClass(Option<ClassId>),
    /// What tools bring in; `None` is the default table.
    Tools(Option<Vec<ToolRule>>),
}

/// What a workspace routes by after a change.
#[derive(Clone, Debug)]
pub struct Edited {
    /// All of it.
    pub routing: Arc<Routing>,
    /// The provider that was made.
    pub upstream: Option<UpstreamId>,
    /// The profile that was made.
    pub profile: Option<ProfileId>,
}

/// A change on its way: what is changed, by whom, and the row before.
pub(super) struct Work<'a, 'b> {
    pub(super) scope: &'a mut Scope<'b>,
    pub(super) by: &'a By,
    pub(super) routing: Routing,
}

/// Changes what a workspace routes by.
///
/// # Errors
/// Those of [`entitled`]; `not_found` for what is not there; `invalid_upstream` for a provider and `invalid_request` for all
/// else, with every fault; `not_allowed` for removing what is in use.
pub fn edit_routing(scope: &mut Scope<'_>, asked: &EditRouting) -> Result<Edited, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageRouting)?;
    let before = scope.get::<Routing>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    let mut work = Work { scope, by: &asked.by, routing: Routing::clone(&before) };
    let (mut upstream, mut profile) = (None, None);
    match &asked.edit {
        Edit::CreateUpstream(set) => upstream = Some(upstreams::create(&mut work, set)?),
        Edit::ChangeUpstream(id, set) => upstreams::change(&mut work, *id, set)?,
        Edit::RemoveUpstream(id) => upstreams::remove(&mut work, *id)?,
        Edit::CreateModel(new) => models::create(&mut work, new)?,
        Edit::ChangeModel(place, set) => models::change(&mut work, place, set)?,
        Edit::RemoveModel(place) => models::remove(&mut work, place)?,
        Edit::CreateClass(id, set) => classes::create(&mut work, id, set)?,
        Edit::ChangeClass(id, set) => classes::change(&mut work, id, set)?,
        Edit::RemoveClass(id) => classes::remove(&mut work, id)?,
        Edit::CreateProfile(set) => profile = Some(profiles::create(&mut work, set)?),
        Edit::ChangeProfile(id, set) => profiles::change(&mut work, *id, set)?,
        Edit::RemoveProfile(id) => profiles::remove(&mut work, *id)?,
        Edit::Change(set) => change(&mut work, set)?,
    }
    let routing = Arc::new(work.routing);
    if *routing != *before {
        scope.put(Routing::clone(&routing));
    }
    Ok(Edited { routing, upstream, profile })
}

/// What a workspace routes by, as `by` may read it.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn read_routing(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<Arc<Routing>, Halt> {
    entitled(scope, by, workspace, Right::ReadReports)?;
    routing_of(scope, workspace)
}

/// The same as `by` may read it who wants no more of it than its models.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn read_models(scope: &mut Scope<'_>, by: &By, workspace: WorkspaceId) -> Result<Arc<Routing>, Halt> {
    entitled(scope, by, workspace, Right::ReadModels)?;
    routing_of(scope, workspace)
}

/// What a workspace routes by, for whoever calls models in it.
///
/// # Errors
/// `not_found` where there is no such workspace.
pub fn routing_of(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<Arc<Routing>, Halt> {
    scope.get::<Routing>(workspace)?.ok_or_else(|| Refusal::not_found().into())
}

fn change(work: &mut Work<'_, '_>, set: &[Set]) -> Result<(), Halt> {
    let before = ToldRouting::of(&work.routing);
    let mut faults = Vec::new();
    for one in set {
        match one {
            Set::Mode(mode) => work.routing.mode = *mode,
            Set::Objective(objective) => work.routing.objective = *objective,
            Set::DefaultClass(class) => {
                if let Some(class) = class {
                    let named = Named::TaskClass(class.clone());
                    faults.extend(fault(work.scope, work.routing.workspace, "defaultTaskClass", &named)?);
                }
                work.routing.default_class.clone_from(class);
            }
            // The default table, sent as it was read, stays the default: also where a later release has another.
            Set::Tools(Some(table)) if work.routing.tools.is_none() && is_default_table(table) => {}
            Set::Tools(tools) => work.routing.tools.clone_from(tools),
        }
    }
    if !faults.is_empty() {
        return Err(Refusal::invalid_request(faults).into());
    }
    let after = ToldRouting::of(&work.routing);
    let subject = Subject::Workspace(work.routing.workspace);
    work.changed("routing.changed", subject, &before, &after, &[])
}

impl Work<'_, '_> {
    /// Records that something was made; `item` says what, without secrets and texts of people, which `texts` are.
    pub(super) fn created<T: Serialize>(
        &mut self,
        kind: &'static str,
        subject: Subject,
        item: &T,
        texts: &[(&str, &str)],
    ) -> Result<(), Halt> {
        self.record(kind, subject, canonical(&as_json(item)?), texts);
        Ok(())
    }

    /// Records that something changed, if it did: the members that differ, before and after.
    pub(super) fn changed<T: Serialize + PartialEq>(
        &mut self,
        kind: &'static str,
        subject: Subject,
        before: &T,
        after: &T,
        texts: &[(&str, &str)],
    ) -> Result<(), Halt> {
        if before == after && texts.is_empty() {
            return Ok(());
        }
        let (old, new) = differing(&as_json(before)?, &as_json(after)?);
        self.record(kind, subject, Object::new().raw("new", &new).raw("old", &old).finish(), texts);
        Ok(())
    }

    /// Records that something went.
    pub(super) fn removed(&mut self, kind: &'static str, subject: Subject) {
        let data = Object::new().text("id", &subject.to_string()).finish();
        self.record(kind, subject, data, &[]);
    }

    fn record(&mut self, kind: &'static str, subject: Subject, data: String, texts: &[(&str, &str)]) {
        let workspace = self.routing.workspace;
        let fact = Fact { kind, actor: self.by.actor(), subject, data };
        self.scope.append_with(workspace, fact, texts);
    }

    /// That no budget is over this.
    pub(super) fn unbudgeted(&mut self, over: &BudgetScope) -> Result<(), Halt> {
        let workspace = self.scope.get::<Workspace>(self.routing.workspace)?.ok_or_else(Refusal::internal)?;
        if workspace.has_budget_over(over) {
            return Err(Refusal::not_allowed("a budget is over it").into());
        }
        Ok(())
    }

    /// That no key in force is bound to what `is_meant` says.
    pub(super) fn unbound(&mut self, is_meant: impl Fn(&BoundKey) -> bool) -> Result<(), Halt> {
        unbound(self.scope, self.routing.workspace, is_meant)
    }
}

/// Keys that are looked at together for whether they are in force still.
const BOUND_PAGE: usize = 1_000;

/// That no key in force is bound to what `is_meant` says. A key that ended with another one, or with whoever made it, keeps
/// nothing, though it is noted here until it is revoked itself.
///
/// # Errors
/// `not_allowed` where one is.
pub(in crate::rules) fn unbound(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    is_meant: impl Fn(&BoundKey) -> bool,
) -> Result<(), Halt> {
    let found = scope.get::<BoundKeys>(workspace)?;
    let is_new = found.is_none();
    let mut bound = found.map_or_else(|| BoundKeys::new(workspace), |it| BoundKeys::clone(&it)).swept(scope.now());
    let in_use = || Halt::from(Refusal::not_allowed("a key is bound to it"));
    let meant: Option<Vec<_>> = bound.keys.iter().filter(|it| is_meant(it)).map(|it| it.credential).collect();
    let meant = meant.ok_or_else(in_use)?;
    for page in meant.chunks(BOUND_PAGE) {
        if keys::any_stands(scope, page)? {
            return Err(in_use());
        }
    }
    if is_new || !meant.is_empty() {
        bound.keys.retain(|it| !is_meant(it));
        scope.put(bound);
    }
    Ok(())
}

/// Notes what a new key is bound to.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn bind(scope: &mut Scope<'_>, workspace: WorkspaceId, key: BoundKey) -> Result<(), Halt> {
    if key.class.is_none() && key.profile.is_none() && key.team.is_none() {
        return Ok(());
    }
    let mut bound = bound(scope, workspace)?.swept(scope.now());
    bound.keys.push(key);
    scope.put(bound);
    Ok(())
}

/// Forgets what keys were bound to that have ended, where anything is kept of them.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(in crate::rules) fn unbind(
    scope: &mut Scope<'_>,
    workspace: WorkspaceId,
    has_ended: impl Fn(KeyId) -> bool,
) -> Result<(), Halt> {
    let mut bound = bound(scope, workspace)?;
    let before = bound.keys.len();
    bound.keys.retain(|it| !has_ended(it.key));
    if bound.keys.len() < before {
        scope.put(bound);
    }
    Ok(())
}

fn bound(scope: &mut Scope<'_>, workspace: WorkspaceId) -> Result<BoundKeys, Halt> {
    let found = scope.get::<BoundKeys>(workspace)?;
    Ok(found.map_or_else(|| BoundKeys::new(workspace), |it| BoundKeys::clone(&it)))
}

/// A row, or part of one, as the ledger tells it.
///
/// # Errors
/// `internal` where it cannot be written as JSON.
pub(in crate::rules) fn as_json<T: Serialize>(item: &T) -> Result<Json, Halt> {
    let text = serde_json::to_vec(item).map_err(|_| Refusal::internal())?;
    Json::parse(&text).map_err(|_| Refusal::internal().into())
}

/// Who made something, and when.
pub(super) fn stamp(work: &Work<'_, '_>) -> (Option<crate::state::people::Maker>, Timestamp) {
    (work.by.maker(), work.scope.now())
}
