//! Stopping agents, one and many, starting them again, and what holds them.

use http::StatusCode;
use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::fleet::Fleet;
use svc_core::rules::gate::freeze::{FreezeAgent, Stopped};
use svc_core::rules::gate::lift::{Lift, LiftHold};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::rules::people::by::{By, entitled};
use svc_core::state::gate::Approval;
use svc_core::state::people::{Hold, Right};
use svc_core::store::{Range, Row};
use svc_core::value::Id as _;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_store::FleetRequest;

use super::{Caller, GateService, agents, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::StopsOp;
use crate::wire::page::Query;
use crate::wire::stop;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: StopsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        StopsOp::TokenFreeze | StopsOp::Freeze => {
            let reason = stop::read_reason(&call.body)?;
            let agent = call.param_id("aid")?;
            match service.run(FreezeAgent { workspace, agent, by: by.clone(), reason }).await? {
                Stopped::Agent(agent) => agents::stopped(service, &by, &agent),
                Stopped::Asked(approval) => asked(service, &approval),
            }
        }
        StopsOp::Restart => {
            let reason = stop::read_reason(&call.body)?;
            let agent = call.param_id("aid")?;
            restart(service, RestartAgent { workspace, agent, by, reason, admin: None }).await
        }
        StopsOp::TokenFleet | StopsOp::Fleet => fleet(service, by, workspace, call).await,
        StopsOp::Holds => {
            let mut query = Query::among(&call.uri, call.route.query);
            let page = query.page("holds", workspace);
            query.finish()?;
            let range = Range { newest_first: true, ..Range::all(Index::HoldsOf, workspace.bits(), page.limit) };
            let found = service.scan(&page.of(range))?;
            let write = |row: &svc_core::store::Found| {
                row.row.record.as_ref().and_then(Hold::peel).map(|it| stop::write_hold(it))
            };
            Ok(Answer::json(page.answer(&found, |row| Ok(write(row)))?))
        }
        StopsOp::Lift => {
            let (reason, restart) = stop::read_lift(&call.body)?;
            let hold = call.param_id("hld")?;
            match lift(service, LiftHold { workspace, hold, by, reason, restart }).await? {
                Lift::Lifted(hold) => json(&stop::write_hold(&hold)),
                Lift::Asked(approval) => asked(service, &approval),
            }
        }
    }
}

/// Starts an agent again. What its stop still has to end may take its time, so that does not happen on a thread that serves others.
async fn restart(service: &GateService, asked: RestartAgent) -> Result<Answer, Refusal> {
    let gate = service.gate.clone();
    let restarted =
        crate::at_hand::spawn_blocking(move || gate.restart(&asked)).await.map_err(|_| Refusal::internal())?;
    agents::standing(service, &restarted.map_err(refusal)?)
}

/// Lifts a hold. Ending what the stops of its agents end may take its time as well.
async fn lift(service: &GateService, asked: LiftHold) -> Result<Lift, Refusal> {
    let gate = service.gate.clone();
    let lifted = crate::at_hand::spawn_blocking(move || gate.lift(&asked)).await.map_err(|_| Refusal::internal())?;
    lifted.map_err(refusal)
}

/// Counts or freezes many. Looking through all agents takes its time, so it does not happen on a thread that serves others.
async fn fleet(service: &GateService, by: By, workspace: WorkspaceId, call: &Call) -> Result<Answer, Refusal> {
    let asked_for = stop::read_fleet(&call.body)?;
    let gate = service.gate.clone();
    let lost = |_| Refusal::internal();
    if asked_for.dry_run {
        service.read(|scope| entitled(scope, &by, workspace, Right::FreezeFleet))?;
        let selector = asked_for.selector;
        let looked = crate::at_hand::spawn_blocking(move || gate.select(workspace, &selector)).await.map_err(lost)?;
        return json(&stop::write_dry_run(&looked.map_err(refusal)?));
    }
    let request = FleetRequest {
        workspace,
        by,
        selector: asked_for.selector,
        reason: asked_for.reason.ok_or_else(Refusal::reason_required)?,
        confirm: asked_for.confirm,
        seen: asked_for.seen,
    };
    let frozen = crate::at_hand::spawn_blocking(move || gate.freeze_fleet(&request)).await.map_err(lost)?;
    match frozen.map_err(refusal)? {
        Fleet::Frozen(halted) => json(&stop::write_halted(&halted)),
        Fleet::Asked(approval) => asked(service, &approval),
        Fleet::Moved => Err(Refusal::not_ready()),
    }
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}

/// Nothing is done yet: a person decides.
fn asked(service: &GateService, approval: &Approval) -> Result<Answer, Refusal> {
    let answer = json(&stop::write_asked(approval, &service.base_url))?;
    Ok(answer.with_status(StatusCode::ACCEPTED))
}
