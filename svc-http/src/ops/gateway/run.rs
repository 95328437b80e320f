//! An admitted call on its way: tried at one model after the other until one answers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use bytes::Bytes;
use http::header::TRAILER;
use http::{HeaderName, HeaderValue};
use svc_core::dialect::{self, Answer as Read, Body, Stream, StreamOptions};
use svc_core::refusal::{AttemptedModel, Kind, Refusal};
use svc_core::rules::gateway::admit::{Admitted, Place};
use svc_core::rules::gateway::finish::Tried;
use svc_core::rules::gateway::payer::{CallKey, may_call};
use svc_core::rules::gateway::retry::{Retry, RetryCall};
use svc_core::state::gateway::{
    Attempt, Call as CallRow, CallEnd, Demand, Model, Upstream, Usage, charged_input, likely_input,
};
use svc_core::state::people::DataLoss;
use svc_core::value::id::HoldId;
use svc_store::Gate;

use super::asked::Asked;
use super::metered::{Heard, Sink, note};
use super::missed::{self, Missed};
use super::noted::{Notebook, Noted, Notes, OwnTools};
use super::running::Seat;
use super::targets::Present;
use super::{Targets, notes, passed};
use crate::answer::{self, Answer};
use crate::dispatch::Call;
use crate::health::{Health, Outcome};
use crate::metrics::Metrics;
use crate::model_bodies::Kept;
use crate::ops::{GateService, recorded};
use crate::upstream::{
    self, Charged, Failed, Guard, How, Reason, Relay, Reply, Said, Stop, Switch, Target, Upstreams, What,
};

/// What is told where the answer shows that a call used what has no price, such as another tier of service.
const UNPRICED: &str = "something that this call used has no price, which budgets cannot see";

/// An admitted call and all that carrying it takes: it may outlive the request that brought it.
pub(super) struct Run {
    gate: Gate,
    upstreams: Upstreams,
    health: Arc<Health>,
    targets: Arc<Targets>,
    caller: CallKey,
    asked: Asked,
    body: Arc<Body>,
    demand: Arc<Demand>,
    admitted: Admitted,
    scanned_under: DataLoss,
    query: Option<Box<str>>,
    passed_on: Vec<(HeaderName, HeaderValue)>,
    /// When the client's request was whole.
    read: Instant,
    metrics: Arc<Metrics>,
    /// The scope of the budget that had no room for the first place which a budget kept the call from.
    no_room: Option<String>,
    /// The room of the request, until the call has its answer or has none.
    _room: Option<Arc<Kept>>,
}

/// What a client wants, as it was read.
pub(super) struct Wanted {
    /// What its headers ask.
    pub(super) asked: Asked,
    /// The request.
    pub(super) body: Arc<Body>,
    /// What deciding on it took.
    pub(super) demand: Arc<Demand>,
    /// The setting that it was looked through under.
    pub(super) scanned_under: DataLoss,
}

/// A try that answered.
enum Answered {
    Whole { read: Box<Read>, status: u16, first_ms: u64, ms: u64 },
    Stream(Box<upstream::Begun<Heard>>),
}

impl Answered {
    /// What it says of its model; of a stream the rest is told at its end.
    const fn outcome(&self) -> Outcome {
        match self {
            Self::Whole { .. } => Outcome::Answered,
            Self::Stream(_) => Outcome::Begun,
        }
    }

    /// The status of its answer.
    fn status(&self) -> u16 {
        match self {
            Self::Whole { status, .. } => *status,
            Self::Stream(begun) => begun.status(),
        }
    }
}

/// What comes after a failed try.
enum Next {
    /// Another place is tried.
    Go(Place),
    /// Nothing is left.
    Over,
    /// The call may go nowhere else: its agent was stopped meanwhile, or a budget waits for a person.
    Refused(Refusal),
}

impl Run {
    pub(super) fn new(service: &GateService, caller: CallKey, wanted: Wanted, admitted: Admitted, call: &Call) -> Self {
        let Wanted { asked, body, demand, scanned_under } = wanted;
        Self {
            gate: service.gate.clone(),
            upstreams: service.upstreams.clone(),
            health: Arc::clone(&service.health),
            targets: Arc::clone(&service.targets),
            caller,
            asked,
            body,
            demand,
            admitted,
            scanned_under,
            query: passed::query(&call.uri),
            passed_on: passed::headers(&call.headers),
            read: call.read,
            metrics: Arc::clone(&service.metrics),
            no_room: None,
            _room: call.room.clone(),
        }
    }

    /// Carries it; `guard` tells what came of it. A whole answer is read to its end even if the client goes away; a stream ends
    /// with its client.
    pub(super) async fn answer(self, guard: Guard<Sink>) -> Answer {
        if self.demand.stream {
            return self.carry(guard).await;
        }
        let upstreams = self.upstreams.clone();
        upstreams.outlive(self.carry(guard)).await
    }

    async fn carry(mut self, mut guard: Guard<Sink>) -> Answer {
        let mut tried: Vec<Missed> = Vec::new();
        let mut unfit: Option<Refusal> = None;
        let mut ahead = self.admitted.places.clone().into_iter();
        let Some(mut place) = ahead.next() else { return Answer::refused(Refusal::internal()) };
        let switch = guard.sink().map(|it| it.seat.switch()).unwrap_or_default();
        loop {
            if let Some(stop) = switch.stopped() {
                return self.stopped(guard, stop).await;
            }
            let mut fits = true;
            let failed = match self.request(&place, &tried) {
                Ok(_) if !self.may_try(&place, ahead.as_slice()) => Failed::new(Reason::Circuit),
                Ok((target, sent)) => {
                    let Some(sink) = guard.sink() else { return Answer::refused(Refusal::internal()) };
                    sink.begin(place, tried.is_empty().then_some(self.read));
                    let left = Arc::clone(&sink.left);
                    let made = tokio::select! {
                        biased;
                        stop = switch.cut_off() => Err(stop),
                        made = self.attempt(&place, (&target, sent), &left, &mut sink.reported) => Ok(made),
                    };
                    match made {
                        Err(stop) => return self.stopped(guard, stop).await,
                        Ok(Ok(answered)) => {
                            self.note_answered(&place, &answered);
                            self.tell_changes(&place);
                            return self.deliver(answered, guard, switch).await;
                        }
                        Ok(Err(failed)) => {
                            self.note_failed(&place, &failed);
                            failed
                        }
                    }
                }
                Err(Unsendable::Unfit(refusal)) => {
                    (unfit, fits) = (Some(refusal), false);
                    Failed::new(Reason::Address)
                }
                Err(Unsendable::Failed(failed)) => failed,
            };
            let attempt = self.tried(&place, &failed, !fits);
            if failed.is_the_clients() {
                self.tell_changes(&place);
                return self.rejected(guard, tried, attempt, &failed).await;
            }
            if let Some(sink) = guard.sink() {
                sink.place = None;
                let used = failed.may_have_used().then(|| sink.missed(place, &failed));
                sink.failed.push(Tried { attempt: attempt.clone(), used });
            }
            tried.push(Missed::of(attempt, &failed, fits));
            match self.next(&mut ahead, &mut guard, &mut tried).await {
                Next::Go(next) => place = next,
                Next::Over => return self.over(guard, &tried, unfit).await,
                Next::Refused(refusal) => {
                    if let Some(sink) = guard.sink() {
                        sink.end = Some(CallEnd::Failed);
                    }
                    return self.refused(guard, refusal).await;
                }
            }
        }
    }

    /// Moves the call to the next place that its budgets have room for.
    async fn next(
        &mut self,
        ahead: &mut std::vec::IntoIter<Place>,
        guard: &mut Guard<Sink>,
        tried: &mut Vec<Missed>,
    ) -> Next {
        for to in ahead.by_ref() {
            let Some(sink) = guard.sink() else { return Next::Over };
            let command = RetryCall {
                caller: self.caller.clone(),
                call: self.admitted.call.id,
                demand: Arc::clone(&self.demand),
                failed: sink.failed.clone(),
                told: sink.told,
                routing: Arc::clone(&self.admitted.routing),
                to,
                rivals: Arc::clone(&self.admitted.rivals),
                pace: self.pace(&to),
                total_ms: u64::try_from(self.upstreams.times().total.as_millis()).unwrap_or(u64::MAX),
                oversight: self.asked.oversight,
                scanned_under: self.scanned_under,
            };
            let barred: Box<str> = match self.gate.submit(command).await {
                Ok(Retry::Refused(refusal)) => return Next::Refused(refusal),
                Ok(Retry::Barred(why)) => why.into(),
                Ok(Retry::Moved(call, now)) => {
                    // The call's row has them now.
                    sink.failed.clear();
                    sink.told = call.attempts.len();
                    if let Some(now) = now {
                        self.moved(&to, *now);
                    }
                    (self.admitted.call, self.admitted.place) = (call, to);
                    return Next::Go(to);
                }
                Err(failure) => {
                    let refusal = crate::ops::refusal(failure);
                    // Another model may cost less; an agent that was stopped meanwhile gets none.
                    if !refusal.kind().is_told_as(Kind::BudgetExhausted) {
                        return Next::Refused(recorded(&self.gate, &self.caller, refusal).await);
                    }
                    self.passed_over(&to, &refusal);
                    refusal.type_().into()
                }
            };
            let attempt = Attempt { error: Some(barred), ..self.named(&to) };
            sink.failed.push(Tried { attempt: attempt.clone(), used: None });
            tried.push(Missed::not_asked(attempt));
        }
        Next::Over
    }

    /// Notes that a budget has no room for a call at a place, as it is told where a call begins.
    fn passed_over(&mut self, place: &Place, refusal: &Refusal) {
        let named = self.admitted.at(place).map(|(upstream, model)| format!("{}/{}", upstream.name, model.name));
        named.into_iter().for_each(|it| self.admitted.notes.has_no_room(it));
        let budget = refusal.call().and_then(|it| it.budget.as_ref());
        self.no_room = self.no_room.take().or_else(|| budget.map(|it| it.scope.to_string()));
    }

    /// What is sent to a place after these were tried.
    fn request(&mut self, place: &Place, tried: &[Missed]) -> Result<(Arc<Target>, Vec<u8>), Unsendable> {
        let (upstream, model) = self.admitted.at(place).ok_or(Unsendable::Failed(Failed::new(Reason::Address)))?;
        let is_other = |it: &Missed| it.was_tried && it.attempt.provider != upstream.name;
        let is_elsewhere = tried.iter().any(is_other);
        let form = |upstream: &Upstream| {
            let wanted = dialect::Target { is_elsewhere, ..self.wanted(upstream, model) };
            self.body.to_upstream(wanted).map_err(Unsendable::Unfit)
        };
        let sent = form(upstream)?;
        let whose = (self.admitted.call.workspace, upstream);
        let found = self.targets.of(&self.gate, &self.upstreams, whose).map_err(Unsendable::Failed)?;
        let Present { target, moved: Some(now) } = found else { return Ok((found.target, sent)) };
        let sent = form(&now)?;
        self.moved(place, *now);
        Ok((target, sent))
    }

    /// A place's provider is this by now.
    fn moved(&mut self, place: &Place, now: Upstream) {
        let routing = Arc::make_mut(&mut self.admitted.routing);
        if let Some(then) = routing.upstreams.get_mut(place.upstream) {
            // Under the name that the call's records have it by.
            *then = Upstream { name: then.name.clone(), ..now };
        }
    }

    fn wanted<'a>(&self, upstream: &'a Upstream, model: &'a Model) -> dialect::Target<'a> {
        dialect::Target::of_call(upstream, model, &self.admitted.call, &self.demand, self.admitted.is_held())
    }

    /// Tells what of the request the model that answers was told otherwise: the provider's refusal may be about that.
    fn tell_changes(&mut self, place: &Place) {
        let Some((upstream, model)) = self.admitted.at(place) else { return };
        let changed = self.body.changed(self.wanted(upstream, model));
        self.admitted.notes.asides.splice(0..0, changed);
    }

    /// One try, which sets `left` once a byte has; what its provider tells of its use before an answer begins is put into
    /// `reported`.
    async fn attempt(
        &self,
        place: &Place,
        (target, sent): (&Target, Vec<u8>),
        left: &AtomicBool,
        reported: &mut Option<Usage>,
    ) -> Result<Answered, Failed> {
        let (provider, apart) = self.admitted.at(place).map_or(("", None), |(upstream, model)| {
            let name = upstream.name.as_str();
            (name, dialect::Target::of(upstream, model).signs_apart().then_some(name))
        });
        let about = |tokens: fn(&Model, &Demand) -> u64| {
            self.admitted.at(place).map_or(0, |(_, model)| tokens(model, &self.demand))
        };
        let same = target.dialect() == self.demand.dialect;
        let (query, headers) = if same { (self.query.as_deref(), &self.passed_on[..]) } else { (None, &[][..]) };
        let call =
            upstream::Call { what: What::Answer, body: Bytes::from(sent), stream: self.demand.stream, query, headers };
        match self.upstreams.send_telling(target, &call, left).await? {
            Reply::Whole(whole) => {
                let read = Read::read(target.dialect(), &whole.body).map_err(|why| whole.failed(target, &why))?;
                let read = read.naming(self.body.names(target.dialect())).of_provider(provider).signed_by(apart);
                let read = read.charging(about(charged_input));
                let (status, first_ms, ms) = (whole.status, whole.first_ms, whole.ms);
                Ok(Answered::Whole { read: Box::new(read), status, first_ms, ms })
            }
            Reply::Stream(incoming) => {
                let options = StreamOptions {
                    strip_usage: !self.body.wants_usage(),
                    created_s: self.created_s(),
                    answers: self.demand.answers,
                    call: self.admitted.call.id,
                    input: about(likely_input),
                    charged_input: about(charged_input),
                };
                let stream = Stream::new(target.dialect(), self.demand.dialect, options)
                    .hiding(target.secrets())
                    .naming(self.body.names(target.dialect()))
                    .of_provider(provider)
                    .signed_by(apart);
                let begun = Relay::begin(*incoming, Heard::stream(stream), reported).await?;
                Ok(Answered::Stream(Box::new(begun)))
            }
        }
    }

    /// The answer for the client, until `switch` cuts it.
    async fn deliver(&mut self, answered: Answered, mut guard: Guard<Sink>, switch: Arc<Switch>) -> Answer {
        let seat = guard.sink().map(|sink| {
            sink.status = Some(answered.status());
            sink.seat.clone()
        });
        match answered {
            Answered::Whole { read, first_ms, .. } => {
                let body = read.to_client(self.demand.dialect, self.created_s(), self.admitted.call.id);
                let charged = guard.finish(Some(Heard::whole(&read)), How::Done, Some(first_ms)).await;
                // What its provider's tools brought in is noted with its end, else here, before the agent sees it.
                if charged.is_none() && !self.brought_in(&read, seat).await {
                    return self.noted(Answer::refused(Refusal::internal()));
                }
                // A freeze or a revocation that came while its end was being kept.
                if let Some(stop) = switch.stopped().filter(|it| it.takes_back()) {
                    return self.told_stopped(stop, charged).await;
                }
                if charged.is_some_and(|it| it.unpriced) && self.admitted.place.worst.is_some() {
                    self.admitted.notes.advisories.push(UNPRICED.to_owned());
                }
                costing(self.noted(Answer::json(body)), charged)
            }
            Answered::Stream(begun) => {
                let (tools, admitted) = (begun.translator().own_tools(), &self.admitted);
                let notebook =
                    Notebook::new(&self.gate, admitted.call.id, &self.demand, &admitted.routing, tools, seat);
                let body = Noted::new(begun.into_body(guard, switch, self.asked.trailers), notebook);
                let answer = Answer::stream("text/event-stream", answer::Stream::new(body)).told_at_once();
                let answer = self.noted(answer);
                if self.asked.trailers {
                    return answer.with_header(TRAILER, HeaderValue::from_static("x-svc-cost-micros"));
                }
                answer
            }
        }
    }

    /// Notes what an answer's own tools brought in, by itself. Whether that was taken.
    async fn brought_in(&self, read: &Read, seat: Option<Seat>) -> bool {
        let tools = Arc::<OwnTools>::default();
        tools.tell(read.server_tools().keys().chain(read.brought()).cloned());
        let admitted = &self.admitted;
        let mut notebook = Notebook::new(&self.gate, admitted.call.id, &self.demand, &admitted.routing, tools, seat);
        match notebook.begin() {
            Some(noting) => noting.await,
            None => true,
        }
    }

    fn noted(&self, answer: Answer) -> Answer {
        notes::onto(answer, &self.admitted, &self.asked)
    }

    /// The provider says that the request is at fault: nobody else is asked.
    async fn rejected(&self, mut guard: Guard<Sink>, tried: Vec<Missed>, attempt: Attempt, failed: &Failed) -> Answer {
        if let Some(sink) = guard.sink() {
            let used = sink.place.take().filter(|_| failed.may_have_used()).map(|it| sink.missed(it, failed));
            sink.end = Some(CallEnd::Refused);
            sink.failed.push(Tried { attempt: attempt.clone(), used });
        }
        let attempted = tried.iter().map(|it| &it.attempt).chain([&attempt]).map(missed::told).collect();
        self.refused(guard, rejection(failed, attempted)).await
    }

    /// Nobody answered. Where a budget kept the call from somebody who might have, that is not why the others failed, and asking again may
    /// find them well: their failure is told, and beside it which budget.
    async fn over(&mut self, mut guard: Guard<Sink>, missed: &[Missed], unfit: Option<Refusal>) -> Answer {
        let tried: Vec<&Missed> = missed.iter().filter(|it| it.was_tried).collect();
        let is_busy = tried.is_empty() && missed.iter().any(|it| it.is_busy);
        let unfit = unfit.filter(|_| tried.is_empty() && !is_busy);
        if let Some(scope) = self.no_room.take() {
            self.admitted.notes.budget_scope = Some(scope);
        }
        if let Some(sink) = guard.sink() {
            sink.end = Some(if unfit.is_some() { CallEnd::Refused } else { CallEnd::Failed });
        }
        if let Some(refusal) = unfit {
            return self.refused(guard, refusal).await;
        }
        if is_busy {
            return self.refused(guard, Refusal::not_ready()).await;
        }
        let attempted: Vec<AttemptedModel> = missed.iter().map(|it| missed::told(&it.attempt)).collect();
        if !tried.is_empty() && tried.iter().all(|it| it.attempt.status == Some(429)) {
            let soonest = tried.iter().filter_map(|it| it.retry_after_s).min().unwrap_or(1);
            let soonest = u32::try_from(soonest.max(1)).unwrap_or(u32::MAX);
            return self.refused(guard, Refusal::upstreams_limited(attempted, soonest)).await;
        }
        // Whoever was not asked this time may answer the next.
        let in_vain = !tried.is_empty() && missed.iter().all(|it| it.stays);
        let is_denied = in_vain && tried.iter().all(|it| it.is_denied());
        let told = if is_denied { Refusal::upstreams_denied } else { Refusal::upstream_failure };
        let answer = self.refused(guard, told(attempted)).await;
        if in_vain { answer.without_retry() } else { answer }
    }

    /// An admitted call that ends without an answer: it can have cost something, so its client is told which one it was.
    async fn refused(&self, guard: Guard<Sink>, refusal: Refusal) -> Answer {
        let charged = guard.finish(None, How::Done, None).await;
        costing(self.noted(Answer::refused(refusal)), charged)
    }

    /// An admitted call that was cut before its answer began: nothing more is waited for, and what was sent is charged as what
    /// broke off.
    async fn stopped(&self, guard: Guard<Sink>, stop: Stop) -> Answer {
        let charged = guard.finish(None, How::Stopped(stop), None).await;
        match stop {
            Stop::Agent | Stop::Key => self.told_stopped(stop, charged).await,
            Stop::Server => costing(self.noted(Answer::refused(Refusal::not_ready())), charged),
        }
    }

    /// What is told in the place of an answer whose agent or key was stopped while it was waited for: what one who asks now is told.
    async fn told_stopped(&self, stop: Stop, charged: Option<Charged>) -> Answer {
        let now = self.gate.read(|scope| may_call(scope, &self.caller)).map_err(crate::ops::refusal);
        let told = now.err().filter(|it| it.kind() == Kind::AgentStopped);
        // Whoever was started again meanwhile was stopped all the same.
        let told = told.unwrap_or_else(|| match self.caller.agent() {
            _ if stop == Stop::Key => Refusal::invalid_api_key(),
            Some(agent) => Refusal::agent_stopped(agent, None::<HoldId>),
            None => Refusal::all_stopped(None::<HoldId>),
        });
        let refusal = recorded(&self.gate, &self.caller, told).await;
        costing(self.noted(Answer::refused(refusal)), charged)
    }

    /// Whether a place is tried now. One whose circuit is open is left out where another is not; of those that come when it is
    /// to be probed the first does so.
    fn may_try(&self, place: &Place, ahead: &[Place]) -> bool {
        let now = self.gate.now();
        let named = |place: &Place| self.admitted.at(place).map(|(upstream, model)| (upstream.id, &model.name));
        let Some((upstream, model)) = named(place) else { return true };
        self.health.admits(upstream, model, now)
            || ahead.iter().filter_map(named).all(|(upstream, model)| self.health.is_open(upstream, model, now))
    }

    /// The tokens that a place's model makes in a second.
    fn pace(&self, place: &Place) -> u64 {
        self.admitted.at(place).map_or(0, |(upstream, model)| self.health.pace(upstream.id, &model.name))
    }

    /// Notes that a place's model has answered; of a stream the rest is told as it comes.
    fn note_answered(&self, place: &Place, answered: &Answered) {
        let Some((upstream, model)) = self.admitted.at(place) else { return };
        let now = self.gate.now();
        note(&self.health, (upstream, model), answered.outcome(), None, now);
        if let Answered::Whole { ms, .. } = answered {
            self.health.record_whole(upstream.id, &model.name, *ms, now);
        }
    }

    fn note_failed(&self, place: &Place, failed: &Failed) {
        let Some((upstream, model)) = self.admitted.at(place) else { return };
        let now = self.gate.now();
        let outcome = match failed.rest() {
            _ if failed.is_nothing_of_the_models() => Outcome::Neither,
            Some(rest) => Outcome::Limited(rest),
            None => Outcome::Failed,
        };
        note(&self.health, (upstream, model), outcome, Some(&failed.error()), now);
        if failed.reason == Reason::FirstToken {
            self.health.record_given_up(upstream.id, &model.name, failed.ms, now);
        }
    }

    /// What is kept of a try that failed, which is counted.
    fn tried(&self, place: &Place, failed: &Failed, unfit: bool) -> Attempt {
        if let Some(((upstream, model), fault)) = self.admitted.at(place).zip(failed.trouble()).filter(|_| !unfit) {
            self.metrics.try_failed(upstream.name.as_str(), model.name.as_str(), fault);
        }
        let error = if unfit { "the request has no form in its API".to_owned() } else { failed.error() };
        Attempt { status: failed.status, ms: failed.ms, error: Some(error.into()), ..self.named(place) }
    }

    fn named(&self, place: &Place) -> Attempt {
        let found = self.admitted.at(place);
        let (upstream, provider, model) = found.map_or_else(
            || {
                let target = self.admitted.call.target.clone();
                target.map_or_else(
                    || unreachable!("an admitted call has a target"),
                    |it| (it.upstream, it.provider, it.model),
                )
            },
            |(upstream, model)| (upstream.id, upstream.name.clone(), model.name.clone()),
        );
        let (cost, usage) = (svc_core::value::MicroUsd::ZERO, Usage::default());
        let upstream = Some(upstream);
        Attempt { upstream, provider, model, status: None, ms: 0, error: None, cost, usage, unpriced: false }
    }

    fn created_s(&self) -> u64 {
        let started: &CallRow = &self.admitted.call;
        u64::try_from(started.started_at.as_millis() / 1_000).unwrap_or(0)
    }
}

/// The answer with what the call came to, where that is known.
fn costing(answer: Answer, charged: Option<Charged>) -> Answer {
    match charged {
        Some(charged) => answer.with_header(answer::X_SVC_COST_MICROS, HeaderValue::from(charged.cost)),
        None => answer,
    }
}

/// Why nothing is sent to a place.
enum Unsendable {
    /// The request has no form in its API.
    Unfit(Refusal),
    /// It cannot be called.
    Failed(Failed),
}

/// What a client is told whose request is at fault, in its provider's own words.
pub(super) fn rejection(failed: &Failed, attempted: Vec<AttemptedModel>) -> Refusal {
    let Said { message, code, field, .. } = &failed.said;
    let said = message.as_deref().unwrap_or_default();
    let refusal = Refusal::upstream_rejected(failed.fault().unwrap_or(400), said, attempted)
        .blaming(code.as_deref(), field.as_deref());
    if dialect::is_too_long(code.as_deref(), said) { refusal.told_too_long(said) } else { refusal }
}
