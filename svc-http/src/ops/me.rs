//! A person's own account and sessions.

use svc_core::refusal::Refusal;

use super::{Caller, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::MeOp;
use crate::wire::me;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: MeOp, caller: &Caller, _call: &Call) -> Result<Answer, Refusal> {
    match op {
        MeOp::Get => {
            let signed_in = caller.session()?;
            let workspaces =
                service.read(|scope| svc_core::rules::people::by::workspaces_of(scope, &signed_in.account))?;
            Ok(Answer::json(me::write(signed_in, &workspaces)?))
        }
    }
}
