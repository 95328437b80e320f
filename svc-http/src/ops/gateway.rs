//! Model calls: read, looked through for what must not go out, admitted, sent, metered.

mod asked;
mod counted;
mod lists;
mod metered;
mod missed;
mod noted;
mod notes;
mod passed;
mod run;
mod running;
mod scan;
pub(super) mod targets;

use std::sync::Arc;

use http::HeaderValue;
use serde_json::Value;
use svc_core::dialect::{self, Body};
use svc_core::dlp::Findings;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gateway::admit::{Admission, AdmitCall, Admitted, admit_call, admit_shown};
use svc_core::rules::gateway::outcome::ReportOutcome;
use svc_core::rules::gateway::payer::{CallKey, may_call, may_report};
use svc_core::rules::gateway::show::call_of;
use svc_core::state::gateway::route::Choice;
use svc_core::state::gateway::{Demand, Dialect, likely_input};
use svc_core::state::people::DataLoss;
use svc_core::value::id::{CallId, UpstreamId};
use svc_core::value::text::ModelName;

use self::asked::Asked;
use self::counted::Count;
use self::metered::Ready;
use self::run::{Run, Wanted};
pub(super) use self::running::Seat;
pub(crate) use self::running::{CallOf, RunningCalls};
pub(crate) use self::scan::DataLossSettings;
pub(crate) use self::targets::Targets;
use super::{Caller, GateService, recorded};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::GatewayOp;
use crate::wire;

/// Answers one of these routes.
pub(super) async fn answer(
    service: &GateService,
    op: GatewayOp,
    caller: &Caller,
    call: &Call,
) -> Result<Answer, Refusal> {
    let key = match op {
        GatewayOp::Calls => return lists::calls(service, caller, call).await,
        GatewayOp::Tasks => return lists::tasks(service, caller, call).await,
        GatewayOp::Chat | GatewayOp::Messages | GatewayOp::CountTokens | GatewayOp::Outcome | GatewayOp::Call => {
            caller.payer()?
        }
    };
    match op {
        GatewayOp::Calls | GatewayOp::Tasks => Err(Refusal::internal()),
        GatewayOp::Chat => carry(service, Dialect::Chat, key, call).await,
        GatewayOp::Messages => carry(service, Dialect::Messages, key, call).await,
        GatewayOp::CountTokens => count(service, key, call).await,
        GatewayOp::Outcome => {
            let report = match wire::outcome::read(&call.body) {
                Ok(report) => report,
                Err(fault) => return Err(service.fault_of(key, op, fault).await),
            };
            let (task, status) = (report.task, report.status);
            match service.run(ReportOutcome { caller: key.clone(), task, status }).await {
                Ok(task) => Ok(Answer::json(wire::outcome::write(&task))),
                Err(told) => Err(recorded(&service.gate, key, told).await),
            }
        }
        GatewayOp::Call => {
            let id = match call.param_id::<CallId>("cal") {
                Ok(id) => id,
                Err(fault) => return Err(service.fault_of(key, op, fault).await),
            };
            match service.read(|scope| call_of(scope, key, id)) {
                Ok(found) => Ok(Answer::json(wire::call::write(&found))),
                Err(told) => Err(recorded(&service.gate, key, told).await),
            }
        }
    }
}

impl GateService {
    /// Whether a key may do what `op` does: models are called for nobody who is stopped; what became of calls may be told and
    /// read until an agent is removed.
    pub(super) async fn may(&self, key: &CallKey, op: GatewayOp) -> Result<(), Refusal> {
        let checked = self.read(|scope| match op {
            GatewayOp::Chat | GatewayOp::Messages | GatewayOp::CountTokens => may_call(scope, key),
            GatewayOp::Outcome | GatewayOp::Call | GatewayOp::Calls | GatewayOp::Tasks => may_report(scope, key),
        });
        match checked {
            Ok(()) => Ok(()),
            Err(told) => Err(recorded(&self.gate, key, told).await),
        }
    }

    /// A fault of a request: whoever may not do what it asks is told that, not the fault.
    async fn fault_of(&self, key: &CallKey, op: GatewayOp, fault: Refusal) -> Refusal {
        self.may(key, op).await.err().unwrap_or(fault)
    }
}

/// Carries a call to a model and its answer back.
async fn carry(service: &GateService, dialect: Dialect, key: &CallKey, call: &Call) -> Result<Answer, Refusal> {
    let (asked, body) = match asked::read(dialect, &call.headers, &call.body) {
        Ok((asked, body)) => (asked, Arc::new(body)),
        Err(fault) => return Err(service.fault_of(key, GatewayOp::Chat, fault).await),
    };
    // Before it is admitted, so that a freeze that comes right after finds it.
    let mut seat = service.running.enter(CallOf::Model, key);
    // Nothing is sent, and nothing charged, for whoever has gone by then.
    call.ends.set(true);
    let mut setting = service.data_loss.of(key.binding.workspace);
    let reading = scan::Reading::of(&service.data_loss, key, call);
    loop {
        // Each look is at what came: under another setting what was taken out counts again.
        let (seen, findings) = scan::look(&reading, setting, &body).await?;
        let sent = seen.map_or_else(|| Arc::clone(&body), Arc::new);
        let demand = scan::demand(&reading, &sent).await?;
        let command = command(service, key, &asked, &demand, findings, setting);
        let now = if asked.dry {
            match rehearse(service, command, &sent, &asked).await? {
                Rehearsed::Told(answer) => return Ok(*answer),
                Rehearsed::Rescan(now) => now,
            }
        } else {
            match metered::admit(service, command, seat, call).await? {
                Ready::Refused(refusal) => return Err(refusal),
                Ready::Rescan(now, kept) => {
                    seat = kept;
                    now
                }
                Ready::Admitted(admitted, guard) => {
                    // A whole answer is read to its end, whoever is there to hear it.
                    call.ends.set(demand.stream);
                    let wanted = Wanted { asked, body: sent, demand, scanned_under: setting };
                    return Ok(Run::new(service, key.clone(), wanted, *admitted, call).answer(*guard).await);
                }
            }
        };
        service.data_loss.set(key.binding.workspace, now);
        setting = now;
    }
}

/// What a dry run comes to, where the call would not be refused.
enum Rehearsed {
    /// A preview.
    Told(Box<Answer>),
    /// It is to be looked through under this setting first.
    Rescan(DataLoss),
}

/// Says where a call would go and what it would come to. Like the call, it goes on from a model whose API has no form for the
/// request to one that has, and is refused where none has.
async fn rehearse(service: &GateService, command: AdmitCall, body: &Body, asked: &Asked) -> Result<Rehearsed, Refusal> {
    let mut formless = Vec::new();
    let mut unfit: Option<Refusal> = None;
    loop {
        let (admission, preview) = service.read(|scope| {
            let mut preview = Value::Null;
            let show = &mut |choice: &Choice<'_>| preview = wire::routing::preview::write(choice, None);
            Ok((admit_shown(scope, &command, &formless, show)?, preview))
        })?;
        let admitted = match (admission, unfit.take()) {
            (Admission::Rescan(now), _) => return Ok(Rehearsed::Rescan(now)),
            // Once it has no form at one model, others that do not fit its budgets are passed over.
            (Admission::Refused(refusal), Some(unfit)) => {
                return Err(if refusal.kind().is_told_as(Kind::BudgetExhausted) { unfit } else { refusal });
            }
            // What it is refused with is kept, as the call's would be.
            (Admission::Refused(_), None) => match service.run(command.clone()).await? {
                Admission::Refused(refusal) => return Err(refusal),
                Admission::Rescan(now) => return Ok(Rehearsed::Rescan(now)),
                // It has become one that may be made: it is looked at anew.
                Admission::Admitted(_) => continue,
            },
            (Admission::Admitted(admitted), _) => admitted,
        };
        let (upstream, model) = admitted.at(&admitted.place).ok_or_else(Refusal::internal)?;
        let is_held = admitted.is_held();
        match body.to_upstream(dialect::Target::of_call(upstream, model, &admitted.call, &command.demand, is_held)) {
            Ok(_) => return Ok(Rehearsed::Told(Box::new(dry(&admitted, preview, &formless, asked)))),
            Err(refusal) if admitted.places.len() < 2 => return Err(refusal),
            Err(refusal) => {
                formless.push((upstream.id, model.name.clone()));
                unfit = Some(refusal);
            }
        }
    }
}

fn command(
    service: &GateService,
    key: &CallKey,
    asked: &Asked,
    demand: &Arc<Demand>,
    findings: Findings,
    setting: DataLoss,
) -> AdmitCall {
    AdmitCall {
        caller: key.clone(),
        demand: Arc::clone(demand),
        class: asked.class.clone(),
        task: asked.task.clone(),
        objective: asked.objective,
        oversight: asked.oversight,
        session: asked.session.clone(),
        health: service.health.snapshot(service.gate.now()),
        findings,
        scanned_under: setting,
        plans: service.plans,
        total_ms: u64::try_from(service.upstreams.times().total.as_millis()).unwrap_or(u64::MAX),
        dry: asked.dry,
        count: false,
    }
}

/// What a call would have come to: a preview, where each budget stands, and which models are passed over for their form.
fn dry(admitted: &Admitted, mut preview: Value, formless: &[(UpstreamId, ModelName)], asked: &Asked) -> Answer {
    if let Some(why) = preview.get_mut("why").and_then(Value::as_array_mut) {
        let upstreams = &admitted.routing.upstreams;
        why.extend(formless.iter().map(|(upstream, model)| {
            let provider = upstreams.iter().find(|it| it.id == *upstream).map_or("", |it| it.name.as_str());
            Value::from(format!("the request has no form in the API of {provider}/{model}"))
        }));
    }
    notes::onto(Answer::json(wire::call::dry(admitted, preview)), admitted, asked)
}

/// Counts a request's tokens where its provider counts, else estimates them and says so; what the provider says is wrong with the
/// request is passed on.
async fn count(service: &GateService, key: &CallKey, call: &Call) -> Result<Answer, Refusal> {
    let (asked, body) = match asked::read_with(Dialect::Messages, &call.headers, Body::read_count(&call.body)) {
        Ok((asked, body)) => (asked, Arc::new(body)),
        Err(fault) => return Err(service.fault_of(key, GatewayOp::CountTokens, fault).await),
    };
    let mut setting = service.data_loss.of(key.binding.workspace);
    let reading = scan::Reading::of(&service.data_loss, key, call);
    loop {
        let (seen, findings) = scan::look(&reading, setting, &body).await?;
        let sent = seen.map_or_else(|| Arc::clone(&body), Arc::new);
        let demand = scan::demand(&reading, &sent).await?;
        let command = AdmitCall { count: true, ..command(service, key, &asked, &demand, findings, setting) };
        let admission = match service.read(|scope| admit_call(scope, &command))? {
            // What it is refused with is kept; what is admitted leaves nothing, so it is not worth a commit.
            Admission::Refused(_) => service.run(command).await?,
            admission => admission,
        };
        match admission {
            Admission::Refused(refusal) => return Err(refusal),
            Admission::Rescan(now) => {
                service.data_loss.set(key.binding.workspace, now);
                setting = now;
            }
            Admission::Admitted(admitted) => {
                let why = match counted::count(service, &sent, &demand, &admitted, call).await? {
                    Count::Told(tokens) => return Ok(Answer::json(format!("{{\"input_tokens\":{tokens}}}"))),
                    Count::Untold(why) => why,
                };
                let (_, model) = admitted.at(&admitted.place).ok_or_else(Refusal::internal)?;
                let tokens = likely_input(model, &demand);
                let text = format!("{{\"input_tokens\":{tokens},\"svc\":{{\"estimated\":true}}}}");
                let advisory = HeaderValue::from_static(why);
                return Ok(Answer::json(text).with_header(notes::X_SVC_ADVISORY, advisory));
            }
        }
    }
}
