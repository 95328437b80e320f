//! Whom news concerns: the workspace's people, a page at a time, each page a command.

use svc_core::engine::Failure;
use svc_core::rules::edge::deliver::Claimed;
use svc_core::rules::edge::spread::SpreadNews;
use svc_core::state::edge::{Job, Work};
use svc_core::state::people::Principal;
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::PrincipalId;
use svc_core::value::link::Index;
use svc_store::{Gate, StoreError};

/// People of one page.
const PAGE: usize = 200;

/// Makes a message for everybody whom a job's news concerns, at a server that mails, or does not. Where this fails the job's lease ends, and it goes on from the last
/// page that was kept.
pub(super) async fn spread(gate: &Gate, job: &Job, mails: bool) -> Result<(), Failure<StoreError>> {
    let mut next = page(gate, job, mails)?;
    while let Some(page_of) = next.take() {
        if let Some(Claimed { job, .. }) = gate.submit(page_of).await? {
            next = page(gate, &job, mails)?;
        }
    }
    Ok(())
}

/// The command for the next page; `None` of a job that is no news.
fn page(gate: &Gate, job: &Job, mails: bool) -> Result<Option<SpreadNews>, Failure<StoreError>> {
    let Work::Tell { reached: behind, .. } = job.work else { return Ok(None) };
    let all = Range::all(Index::PrincipalsOf, job.workspace.bits(), PAGE);
    let rows = gate.scan(&Range { after: behind.map(|it| (it.bits(), Principal::key(it))), ..all })?;
    let mut people = rows.iter().filter_map(|it| it.row.record.as_ref().and_then(Principal::peel));
    let found: Vec<PrincipalId> = people.clone().filter(|it| it.signs_in()).map(|it| it.id).collect();
    let reached = if rows.len() < PAGE { None } else { people.next_back().map(|it| it.id) };
    Ok(Some(SpreadNews { job: job.id, claim: job.claims, behind, found, reached, mails }))
}
