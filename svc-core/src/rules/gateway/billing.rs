//! A provider's bill beside what was metered.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::rules::people::by::{By, entitled};
use crate::rules::people::named::{Named, fault};
use crate::state::evidence::{Fact, Subject};
use crate::state::gateway::{BillingImport, DIFFERENCES_MAX, DayOfModel, Routing, compare};
use crate::state::people::{Right, Workspace};
use crate::store::Row;
use crate::turn::{Halt, Scope};
use crate::value::canonical::Object;
use crate::value::id::{BillingImportId, UpstreamId, WorkspaceId};
use crate::value::period::date_of;

/// Keeps a comparison of a bill with what was metered.
#[derive(Clone, Debug)]
pub struct ImportBill {
    /// In which workspace.
    pub workspace: WorkspaceId,
    /// Who imports it.
    pub by: By,
    /// Whose bill.
    pub upstream: UpstreamId,
    /// Its first day, counted from 1970-01-01.
    pub from: i64,
    /// The first day after it.
    pub to: i64,
    /// What was billed.
    pub billed: Vec<DayOfModel>,
    /// What was metered of that provider on those days, as the caller has added it up.
    pub metered: Vec<DayOfModel>,
}

/// Keeps a comparison. No record of a call, a budget or a report changes.
///
/// # Errors
/// Those of [`entitled`], `not_found`, `invalid_request` where the workspace has no such provider, or bill and meter differ in
/// more places than are kept.
pub fn import_bill(scope: &mut Scope<'_>, asked: &ImportBill) -> Result<Arc<BillingImport>, Halt> {
    entitled(scope, &asked.by, asked.workspace, Right::ManageBudgets)?;
    scope.want(&[Workspace::key(asked.workspace), Routing::key(asked.workspace)])?;
    scope.get::<Workspace>(asked.workspace)?.ok_or_else(Refusal::not_found)?;
    if let Some(fault) = fault(scope, asked.workspace, "upstreamId", &Named::Upstream(asked.upstream))? {
        return Err(Refusal::invalid_request(vec![fault]).into());
    }
    let (billed, metered, differences) = compare(&asked.billed, &asked.metered);
    if differences.len() > DIFFERENCES_MAX {
        let why =
            format!("differs from what was metered in more than {DIFFERENCES_MAX} places: import fewer days at once");
        return Err(Refusal::invalid_field("lines", why).into());
    }
    let import = BillingImport {
        id: scope.fresh(),
        workspace: asked.workspace,
        upstream: asked.upstream,
        from: asked.from,
        to: asked.to,
        billed,
        metered,
        differences,
        created_by: asked.by.maker(),
        created_at: scope.now(),
    };
    let micros = |it: crate::value::MicroUsd| i64::try_from(it.get()).unwrap_or(i64::MAX);
    let data = Object::new()
        .int("billedMicros", micros(billed))
        .int("differences", i64::try_from(import.differences.len()).unwrap_or(i64::MAX))
        .text("from", &date_of(import.from))
        .text("importId", &import.id.to_string())
        .int("meteredMicros", micros(metered))
        .text("to", &date_of(import.to))
        .text("upstreamId", &import.upstream.to_string())
        .finish();
    let subject = Subject::BillingImport(import.id);
    scope.append(asked.workspace, Fact { kind: "billing.imported", actor: asked.by.actor(), subject, data });
    scope.put(import.clone());
    Ok(Arc::new(import))
}

/// A comparison that was kept.
///
/// # Errors
/// Those of [`entitled`], and `not_found`.
pub fn read_bill(
    scope: &mut Scope<'_>,
    by: &By,
    workspace: WorkspaceId,
    id: BillingImportId,
) -> Result<Arc<BillingImport>, Halt> {
    entitled(scope, by, workspace, Right::ReadReports)?;
    let found = scope.get::<BillingImport>(id)?.filter(|it| it.workspace == workspace);
    found.ok_or_else(|| Refusal::not_found().into())
}
