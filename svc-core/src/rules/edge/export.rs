//! The export of a ledger: which records are delivered next, one delivery after the other.
//!
//! What is behind the last record that was taken is looked for from outside, and comes here as a command; what a decision does
//! reads and writes nothing of it.
//!
//! **Invariant:** a record is passed over only where it was delivered, or is of a class that is not asked for.

use crate::rules::people::by::By;
use crate::state::edge::{
    EventClass, Export, Integration, IntegrationConfig, IntegrationKind, IntegrationSlot, Job, JobState, Work,
};
use crate::state::evidence::{Entry, Fact, Subject};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{EvidenceId, WorkspaceId};

/// Records that one delivery spans at most, those of classes that are not asked for included.
pub const EXPORT_SPAN_MAX: u64 = 4_096;

/// Has an export go on: the records from `from` to `last` are delivered, or passed over where none of them is asked for.
#[derive(Clone, Debug)]
pub struct AdvanceExport {
    /// Whose.
    pub workspace: WorkspaceId,
    /// The place of the first record.
    pub from: u64,
    /// The last record.
    pub last: EvidenceId,
    /// The classes that the records were looked through for.
    pub classes: Vec<EventClass>,
    /// Whether any of the records is of these.
    pub sends: bool,
}

/// Has an export go on. Where it has gone on meanwhile, is off, or asks for other classes now, nothing happens: who looks again
/// finds what is next.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn advance(scope: &mut Scope<'_>, asked: &AdvanceExport) -> Result<(), Halt> {
    let slot = slot(asked.workspace);
    scope.want(&[Export::key(asked.workspace), Integration::key(slot), Entry::key(asked.last)])?;
    let Some(export) = scope.get::<Export>(asked.workspace)?.filter(|it| it.runs && it.job.is_none()) else {
        return Ok(());
    };
    let Some(integration) = scope.get::<Integration>(slot)?.filter(|it| it.id == export.integration) else {
        return Ok(());
    };
    let IntegrationConfig::Export(config) = &integration.config else { return Ok(()) };
    let Some(url) = config.url.clone().filter(|_| config.classes == asked.classes) else { return Ok(()) };
    let last = place(scope, asked.workspace, asked.last)?;
    let from = first(scope, &export)?;
    let (Some(from), Some(last)) = (from, last) else { return Ok(()) };
    let to = last.saturating_add(1);
    if from != asked.from || to <= from || to.saturating_sub(from) > EXPORT_SPAN_MAX {
        return Ok(());
    }
    let export = Export::clone(&export);
    if !asked.sends {
        scope.put(export.delivered(to));
        return Ok(());
    }
    let work = Work::Export { integration: integration.id, from, to, classes: asked.classes.clone() };
    let job = Job::new(scope.fresh(), asked.workspace, work, url, scope.now());
    scope.put(Export { next: Some(from), job: Some(job.id), ..export });
    scope.put(job);
    Ok(())
}

/// The place of the first record that an export still has to send, once that one has a place.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn first(scope: &mut Scope<'_>, export: &Export) -> Result<Option<u64>, Halt> {
    match export.next {
        Some(next) => Ok(Some(next)),
        None => place(scope, export.workspace, export.begins),
    }
}

fn place(scope: &mut Scope<'_>, workspace: WorkspaceId, record: EvidenceId) -> Result<Option<u64>, Halt> {
    let entry = scope.get::<Entry>(record)?.filter(|it| it.workspace == workspace);
    Ok(entry.and_then(|it| it.place.as_ref().map(|place| place.seq)))
}

/// Where a workspace's export is configured.
#[must_use]
pub const fn slot(workspace: WorkspaceId) -> IntegrationSlot {
    IntegrationSlot { workspace, kind: IntegrationKind::Export }
}

/// Begins an export with the record that its integration was made by, also where it has nowhere to go to yet: then all of it waits.
pub(super) fn begin(scope: &mut Scope<'_>, made: &Integration, record: EvidenceId) {
    if made.slot.kind == IntegrationKind::Export {
        scope.put(Export::new(made.slot.workspace, made.id, record));
    }
}

/// An export's integration was changed: what is under way is not tried any more, and whatever comes next begins with the same
/// record. One that is off rests.
pub(super) fn follow_change(scope: &mut Scope<'_>, before: &Integration, after: &Integration) -> Result<(), Halt> {
    if after.slot.kind != IntegrationKind::Export {
        return Ok(());
    }
    let Some(export) = scope.get::<Export>(after.slot.workspace)? else { return Ok(()) };
    // A try that is under way goes where it went, and is taken there, unless that place is given up.
    let stays = after.enabled && before.config.export_url() == after.config.export_url();
    let job = match export.job {
        Some(id) => scope.get::<Job>(id)?,
        None => None,
    };
    let is_under_way = job.as_ref().is_some_and(|it| matches!(it.state, JobState::Sending { .. }));
    let kept = if stays && is_under_way { export.job } else { None };
    if let Some(job) = job.filter(|_| kept.is_none()) {
        replace(scope, &job);
    }
    scope.put(Export { job: kept, runs: after.enabled, ..Export::clone(&export) });
    Ok(())
}

/// Ends an export with its integration.
pub(super) fn end(scope: &mut Scope<'_>, removed: &Integration) -> Result<(), Halt> {
    let workspace = removed.slot.workspace;
    if removed.slot.kind != IntegrationKind::Export {
        return Ok(());
    }
    if let Some(export) = scope.get::<Export>(workspace)? {
        if let Some(id) = export.job
            && let Some(job) = scope.get::<Job>(id)?
        {
            replace(scope, &job);
        }
        scope.delete::<Export>(workspace);
    }
    Ok(())
}

/// Takes a delivery back.
fn replace(scope: &mut Scope<'_>, job: &Job) {
    scope.put(job.clone().given_way(scope.now()));
}

/// Has an export whose delivery waits or was given up go on at once; `recorded` where somebody asks for nothing else.
pub(super) fn go_on(scope: &mut Scope<'_>, of: &Integration, recorded: Option<&By>) -> Result<(), Halt> {
    if of.slot.kind != IntegrationKind::Export || !of.enabled {
        return Ok(());
    }
    let Some(export) = scope.get::<Export>(of.slot.workspace)? else { return Ok(()) };
    let Some(id) = export.job else { return Ok(()) };
    let Some(job) = scope.get::<Job>(id)?.filter(|it| !matches!(it.state, JobState::Sending { .. })) else {
        return Ok(());
    };
    if let Some(by) = recorded.filter(|_| matches!(job.state, JobState::Failed { .. })) {
        let data = Object::new().text("host", &job.host()).finish();
        let fact = Fact { kind: "integration.retried", actor: by.actor(), subject: Subject::Delivery(id), data };
        scope.append(of.slot.workspace, fact);
    }
    scope.put(Job::clone(&job).again(scope.now()));
    Ok(())
}

/// A delivery was taken: what is behind it follows. One that has given way to another changes nothing.
pub(super) fn delivered(scope: &mut Scope<'_>, job: &Job) -> Result<(), Halt> {
    let Work::Export { to, .. } = job.work else { return Ok(()) };
    if let Some(export) = scope.get::<Export>(job.workspace)?.filter(|it| it.job == Some(job.id)) {
        scope.put(Export::clone(&export).delivered(to));
    }
    Ok(())
}

/// Whether a delivery gives way to another, since its export is gone or asks for other classes than it was made for: nothing is
/// sent of what is not asked for any more.
pub(super) fn gives_way(scope: &mut Scope<'_>, job: &Job, over: Option<&Integration>) -> Result<bool, Halt> {
    let Work::Export { integration, classes, .. } = &job.work else { return Ok(false) };
    let config = over.filter(|it| it.id == *integration).map(|it| &it.config);
    if let Some(IntegrationConfig::Export(config)) = config
        && config.classes == *classes
    {
        return Ok(false);
    }
    replace(scope, job);
    if let Some(export) = scope.get::<Export>(job.workspace)?.filter(|it| it.job == Some(job.id)) {
        scope.put(Export { job: None, ..Export::clone(&export) });
    }
    Ok(true)
}

/// Whether an export stands at this delivery, which is kept for as long as it does.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn stands_at(scope: &mut Scope<'_>, job: &Job) -> Result<bool, Halt> {
    match job.work {
        Work::Export { .. } => Ok(scope.get::<Export>(job.workspace)?.is_some_and(|it| it.job == Some(job.id))),
        Work::Decided { .. } | Work::Test { .. } | Work::Tell { .. } | Work::Message { .. } => Ok(false),
    }
}
