//! Connections of a workspace: who acts as which agent, and their end.

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::connect::end::{EndConnection, connection_of};
use svc_core::rules::people::by::By;
use svc_core::state::connect::Connection;
use svc_core::store::Range;
use svc_core::value::Id as _;
use svc_core::value::id::{ConnectionId, WorkspaceId};
use svc_core::value::link::Index;

use super::{Caller, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::ConnectionsOp;
use crate::wire::connection;
use crate::wire::page::Query;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: ConnectionsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        ConnectionsOp::List => list(service, &by, workspace, call),
        ConnectionsOp::Get => {
            let id = call.param_id("con")?;
            let found = service.read(|scope| connection_of(scope, &by, workspace, id))?;
            json(&shown(service, &found))
        }
        ConnectionsOp::End => {
            let connection = call.param_id("con")?;
            service.run(EndConnection { workspace, by, connection }).await?;
            Ok(Answer::empty())
        }
    }
}

fn list(service: &GateService, by: &By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("connections", workspace);
    query.finish()?;
    let all = Range { newest_first: true, ..Range::all(Index::ConnectionsOf, workspace.bits(), page.limit) };
    let found = service.scan(&page.of(all))?;
    page.answer(&found, |row| {
        let svc_core::store::Key::Connection(id) = row.row.key else { return Ok(None) };
        Ok(readable(service, by, workspace, id)?.map(|it| shown(service, &it)))
    })
    .map(Answer::json)
}

/// The connection, where `by` may read it.
fn readable(
    service: &GateService,
    by: &By,
    workspace: WorkspaceId,
    id: ConnectionId,
) -> Result<Option<std::sync::Arc<Connection>>, Refusal> {
    match service.read(|scope| connection_of(scope, by, workspace, id)) {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if refusal.kind() == svc_core::refusal::Kind::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn shown(service: &GateService, it: &Connection) -> Value {
    connection::write(it, service.seen.of(it.id.bits()))
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}
