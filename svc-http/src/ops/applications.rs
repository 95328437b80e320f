//! What members ask for that their role cannot do, and what is decided of it.

use http::StatusCode;
use serde_json::Value;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::people::applications::{
    ApproveApplication, Approved, CreateApplication, DenyApplication, WithdrawApplication, get_application, plan,
    readable,
};
use svc_core::rules::people::by::{By, Person};
use svc_core::rules::people::keys::NewKey;
use svc_core::rules::people::show;
use svc_core::state::people::Application;
use svc_core::store::{Range, Row as _};
use svc_core::turn::Scope;
use svc_core::value::Id as _;
use svc_core::value::link::Index;
use svc_store::COUNTS_MAX;

use super::aside::Asker;
use super::{Caller, GateService, agents, refusal};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::ApplicationsOp;
use crate::secrets::{KEY_PREFIX, draw};
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
    let (now, base) = (service.gate.now(), &service.base_url);
    match op {
        ApplicationsOp::List => list(service, &by, call),
        ApplicationsOp::Create => {
            let wire::NewApplication { change, reason } = asked(service, &by, call)?;
            let made = service.run(CreateApplication { by, change, reason }).await?;
            Ok(json(&wire::write(&made, now, base))?.created())
        }
        ApplicationsOp::Get => {
            let id = call.param_id("app")?;
            let found = service.read(|scope| get_application(scope, &by, id))?;
            json(&wire::write(&found, now, base))
        }
        ApplicationsOp::Withdraw => {
            service.run(WithdrawApplication { by, application: call.param_id("app")? }).await?;
            Ok(Answer::empty())
        }
        ApplicationsOp::Approve => approve(service, by, call).await,
        ApplicationsOp::Deny => {
            let (note, application) = (wire::read_note(&call.body)?, call.param_id("app")?);
            let denied = service.run(DenyApplication { by, application, note }).await?;
            json(&wire::write(&denied, now, base))
        }
    }
}

/// Reads an application; a change of a mandate is judged by what the mandate says now.
fn asked(service: &GateService, by: &Person, call: &Call) -> Result<wire::NewApplication, Refusal> {
    let mandate = |id| {
        let found = service.read(|scope| show::mandate(scope, &By::Person(*by), by.workspace, id)).ok();
        found.filter(|it| it.grant.is_some())
    };
    let read = wire::read(&call.body, &wire::Known { asker: by.principal, now: service.gate.now(), mandate: &mandate });
    read.map_err(|it| service.and_these(by.workspace, wire::named(&call.body, *by), it))
}

/// Makes the change; an agent that was asked for comes with its first key, which is shown this once. Where a second owner
/// has to agree to the decider's own change, the answer is 202 and says so.
async fn approve(service: &GateService, by: Person, call: &Call) -> Result<Answer, Refusal> {
    let wire::Yes { note, confirm_broaden } = wire::read_yes(&call.body)?;
    let application = call.param_id("app")?;
    let key = draw(KEY_PREFIX).map_err(refusal)?;
    let (plans, new) = (service.plans, NewKey::of(key.text.expose()));
    let mut approve = ApproveApplication { by, application, note, confirm_broaden, key: new, plans, counted: None };
    let done = approved(service, &mut approve).await?;
    let mut shown = wire::write(&done.application, service.gate.now(), &service.base_url);
    if let (Some(made), Some(members)) = (&done.made, shown.as_object_mut()) {
        let agent = agents::made(service, made, key.text.expose())?;
        members.insert("made".to_owned(), Value::Object(agent));
    }
    let answer = json(&shown)?;
    Ok(if done.asked.is_some() { answer.with_status(StatusCode::ACCEPTED) } else { answer })
}

async fn approved(service: &GateService, approve: &mut ApproveApplication) -> Result<Approved, Refusal> {
    for _ in 0..COUNTS_MAX {
        let refused = match service.run(approve.clone()).await {
            Err(it) if it.kind() == Kind::NotReady => it,
            done => return done,
        };
        let (asker, asked) = (Asker::of(&By::Person(approve.by), approve.by.workspace), approve.clone());
        let plan = move |scope: &mut Scope<'_>| plan(scope, &asked);
        approve.counted = Some(agents::count(service, asker, refused, plan).await?);
    }
    // The agent acts faster than its actions are counted: pause the mandate first.
    Err(Refusal::not_ready())
}

fn list(service: &GateService, by: &Person, call: &Call) -> Result<Answer, Refusal> {
    let mut query = Query::among(&call.uri, call.route.query);
    let page = query.page("applications", by.workspace);
    query.finish()?;
    let (index, prefix) = match service.read(|scope| readable(scope, by))? {
        Some(own) => (Index::ApplicationsBy, own.bits()),
        None => (Index::ApplicationsOf, by.workspace.bits()),
    };
    let now = service.gate.now();
    let all = Range { newest_first: true, ..Range::all(index, prefix, page.limit) };
    let found = service.scan(&page.of(all))?;
    let item = |row: &svc_core::store::Found| {
        row.row.record.as_ref().and_then(Application::peel).map(|it| wire::write(it, now, &service.base_url))
    };
    page.answer(&found, |row| Ok(item(row))).map(Answer::json)
}

fn json(body: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(body).map(Answer::json).map_err(|_| Refusal::internal())
}
