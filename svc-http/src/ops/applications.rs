//! What members ask for that their role cannot do, and what is decided of it.

use serde_json::Value;
use svc_core::refusal::Refusal;
use svc_core::rules::people::applications::{
    ApproveApplication, CreateApplication, DenyApplication, WithdrawApplication, get_application, readable,
};
use svc_core::rules::people::by::Person;
use svc_core::rules::people::keys::NewKey;
use svc_core::state::people::Application;
use svc_core::store::{Range, Row as _};
use svc_core::value::Id as _;
use svc_core::value::link::Index;

use super::{Caller, GateService, agents, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::drawn::draw;
use crate::routes::ApplicationsOp;
use crate::wire::application as wire;
use crate::wire::page::Query;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(
    service: &GateService,
    op: ApplicationsOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let by = caller.member()?.person;
    let now = service.gate.now();
    match op {
        ApplicationsOp::List => list(service, &by, call),
        ApplicationsOp::Create => {
            let wire::NewApplication { change, reason } = wire::read(&call.body, now)?;
            let made = service.run(CreateApplication { by, change, reason }).await?;
            Ok(json(&wire::write(&made, now))?.created())
        }
        ApplicationsOp::Get => {
            let id = call.param_id("app")?;
            let found = service.read(|scope| get_application(scope, &by, id))?;
            json(&wire::write(&found, now))
        }
        ApplicationsOp::Withdraw => {
            service.run(WithdrawApplication { by, application: call.param_id("app")? }).await?;
            Ok(Answer::empty())
        }
        ApplicationsOp::Approve => approve(service, by, call).await,
        ApplicationsOp::Deny => {
            let (application, note) = (call.param_id("app")?, wire::read_note(&call.body)?);
            let denied = service.run(DenyApplication { by, application, note }).await?;
            json(&wire::write(&denied, now))
        }
    }
}

/// Makes the change; an agent that was asked for comes with its first key, which is shown this once.
async fn approve(service: &GateService, by: Person, call: &Call) -> Result<Answer, Refusal> {
    let (application, note) = (call.param_id("app")?, wire::read_note(&call.body)?);
    let key = draw("ask_").map_err(refusal)?;
    let (plans, new) = (service.plans, NewKey::of(key.expose()));
    let done = service.run(ApproveApplication { by, application, note, key: new, plans }).await?;
    let mut shown = wire::write(&done.application, service.gate.now());
    if let (Some(made), Some(members)) = (&done.made, shown.as_object_mut()) {
        let agent = agents::made(service, made, key.expose())?;
        members.insert("made".to_owned(), Value::Object(agent));
    }
    json(&shown)
}

fn list(service: &GateService, by: &Person, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::of(&call.uri);
    let page = query.page("applications");
    query.finish()?;
    let (index, prefix) = match service.read(|scope| readable(scope, by))? {
        Some(own) => (Index::ApplicationsBy, own.bits()),
        None => (Index::ApplicationsOf, by.workspace.bits()),
    };
    let now = service.gate.now();
    let all = Range { newest_first: true, ..Range::all(index, prefix, page.limit) };
    let found = service.scan(&page.of(all))?;
    let item = |row: &svc_core::store::Found| {
        row.row.record.as_ref().and_then(Application::peel).map(|it| wire::write(it, now))
    };
    page.answer(&found, |row| Ok(item(row))).map(Answer::json)
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}
