//! Lists of model calls and of tasks: a page looks at a bounded number of rows, and says where to go on.

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::store::{Range, Record};
use svc_core::value::Id as _;
use svc_core::value::id::ulid_bits;
use svc_core::value::link::{Index, instant_order};

use crate::answer::Answer;
use crate::dispatch::Call;
use crate::ops::reports::zone_of;
use crate::ops::{Caller, GateService};
use crate::wire;
use crate::wire::calls::{CallWish, TaskWish};
use crate::wire::page::{Page, Query};

/// Rows that one page looks at, at most; what is not found among them is looked for from the cursor on.
const LOOKED_MAX: usize = 2_000;
/// Rows that are looked at together, at least.
const CHUNK: usize = 128;

/// Calls of a workspace, newest first.
pub(super) async fn calls(service: &GateService, caller: &Caller, call: &Call) -> Result<Answer, Refusal> {
    let (_, workspace) = caller.by()?;
    let wish = CallWish::read(Query::among(&call.uri, call.route.query), workspace, &zone_of(service, workspace)?)?;
    let index = if wish.is_of_running() { Index::CallsOpen } else { Index::CallsOf };
    let range = wish.span.of(Range::all(index, workspace.bits(), 0), |it| ulid_bits(it, 0));
    sifted(service, range, &wish.page, |row| match row {
        Record::Call(it) => wish.admits(it).then(|| wire::call::item(it)),
        _ => None,
    })
    .await
}

/// Tasks of a workspace, newest first.
pub(super) async fn tasks(service: &GateService, caller: &Caller, call: &Call) -> Result<Answer, Refusal> {
    let (_, workspace) = caller.by()?;
    let wish = TaskWish::read(Query::among(&call.uri, call.route.query), workspace, &zone_of(service, workspace)?)?;
    let range = wish.span.of(Range::all(Index::TasksOf, workspace.bits(), 0), instant_order);
    sifted(service, range, &wish.page, |row| match row {
        Record::Task(it) => wish.admits(it).then(|| wire::outcome::item(it)),
        _ => None,
    })
    .await
}

/// The page of those rows of `range` that have an item, newest first.
async fn sifted(
    service: &GateService,
    range: Range,
    page: &Page,
    item: impl Fn(&Record) -> Option<Value>,
) -> Result<Answer, Refusal> {
    // One row more than is wanted, so that a list of which all is asked for is read in one look.
    let chunk = page.limit.saturating_add(1).max(CHUNK);
    let mut range = Range { newest_first: true, after: page.after, limit: chunk, ..range };
    let (mut data, mut looked) = (Vec::new(), 0);
    loop {
        let found = service.scan(&range)?;
        for (place, row) in found.iter().enumerate() {
            looked += 1;
            range.after = Some((row.order, row.row.key));
            data.extend(row.row.record.as_ref().and_then(&item));
            if data.len() >= page.limit || looked >= LOOKED_MAX {
                let more = place + 1 < found.len() || found.len() == chunk;
                let next = more.then(|| page.cursor(row.order, row.row.key));
                return Ok(Answer::json(page.list(data, next)?));
            }
        }
        if found.len() < chunk {
            return Ok(Answer::json(page.list(data, None)?));
        }
        // Others have their turn between two looks.
        tokio::task::yield_now().await;
    }
}
