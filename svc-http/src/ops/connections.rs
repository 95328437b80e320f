//! Connections of a workspace: who acts as which agent, and their end.

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::connect::end::{EndConnection, connection_of, connections_of};
use svc_core::rules::people::by::{By, entitled};
use svc_core::state::connect::Connection;
use svc_core::state::people::{Reach, Right};
use svc_core::store::{Found, Key, Range};
use svc_core::value::Id as _;
use svc_core::value::id::{ConnectionId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::Gate;

use super::aside::Asker;
use super::{Caller, GateService, refusal};
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
        ConnectionsOp::List => list(service, &by, workspace, call).await,
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

async fn list(service: &GateService, by: &By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("connections", workspace);
    query.finish()?;
    let range = page.of(Range { newest_first: true, ..Range::all(Index::ConnectionsOf, workspace.bits(), page.limit) });
    let found = match service.read(|scope| entitled(scope, by, workspace, Right::AgentKeys))? {
        Reach::All => service.scan(&range)?,
        Reach::Own | Reach::No => {
            let own = by.clone();
            let sees = move |gate: &Gate, found: &[Found]| {
                let read = gate.read(|scope| connections_of(scope, &own, workspace, &ids(found)));
                Ok(read.map_err(refusal)?.iter().map(Option::is_some).collect())
            };
            service.scan_seen(Asker::of(by, workspace), range, sees).await?
        }
    };
    let mut read = service.read(|scope| connections_of(scope, by, workspace, &ids(&found)))?.into_iter();
    page.answer(&found, |_| Ok(read.next().flatten().map(|it| shown(service, &it)))).map(Answer::json)
}

fn ids(found: &[Found]) -> Vec<ConnectionId> {
    let id = |it: &Found| if let Key::Connection(id) = it.row.key { Some(id) } else { None };
    found.iter().filter_map(id).collect()
}

fn shown(service: &GateService, it: &Connection) -> Value {
    connection::write(it, service.seen.of(it.id.bits()))
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}
