//! Drills, which machines run.

use http::StatusCode;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::drill::{StartDrill, own_drill};
use svc_core::rules::people::keys::NewKey;

use super::{Caller, GateService, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::drill;
use crate::routes::DrillsOp;
use crate::secrets::{KEY_PREFIX, draw};
use crate::wire::drill as wire;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: DrillsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let (by, workspace) = caller.by()?;
    match op {
        DrillsOp::Start => {
            let read = wire::read(&call.body);
            let (targets, reason) = read.map_err(|it| service.and_named(workspace, &call.body, wire::IDS, it))?;
            // The text of the canary's key is forgotten here.
            let key = NewKey::of(draw(KEY_PREFIX).map_err(refusal)?.text.expose());
            let started = service.run(StartDrill { workspace, by, targets, reason, key }).await?;
            let body = wire::write_started(&started.drill)?;
            tokio::spawn(drill::run(service.gate.clone(), started));
            Ok(Answer::json(body).with_status(StatusCode::ACCEPTED))
        }
        DrillsOp::Read => {
            let id = call.param_id("drl")?;
            let drill = service.read(|scope| own_drill(scope, &by, workspace, id))?;
            Ok(Answer::json(wire::write(&drill)?))
        }
    }
}
