//! What is heard of an answer, and what is kept of the call once it has ended: from its admission on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::dialect::{Answer as Read, ProviderError, Stream};
use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::gateway::admit::{Admission, AdmitCall, Admitted, Place};
use svc_core::rules::gateway::finish::{FinishCall, Finished, Served, Tried};
use svc_core::state::gateway::{
    CallEnd, Demand, Model, Received, Routing, Service, Upstream, Usage, output_bound, tokens_of,
};
use svc_core::state::people::DataLoss;
use svc_core::value::Timestamp;
use svc_core::value::id::CallId;
use svc_store::{Gate, StoreError, with_causes};

use super::noted::OwnTools;
use super::running::Seat;
use crate::dispatch::Call;
use crate::health::{Health, Outcome};
use crate::metrics::Metrics;
use crate::ops::GateService;
use crate::telemetry::Telemetry;
use crate::trace::Trace;
use crate::upstream::{Charged, Ended, Failed, Fault, Finish, Guard, How, Reason, Translate, Upstreams};

/// What was heard of an answer.
#[derive(Debug)]
pub(super) enum Heard {
    /// A stream, as far as it came, and where the tools are told that its provider ran.
    Stream(Box<Stream>, Arc<OwnTools>),
    /// A whole answer.
    Whole {
        /// What the provider says it used.
        usage: Option<Usage>,
        /// What it says, be it one side of that.
        reported: Option<Usage>,
        /// Bytes of text in it.
        text_bytes: u64,
        /// Uses of tools that the provider ran itself.
        tools: BTreeMap<Box<str>, u64>,
        /// Further tools that it ran, without a price of their own.
        brought: BTreeSet<Box<str>>,
        /// How its provider says that it has served.
        service: Box<Service>,
    },
}

impl Heard {
    /// A stream of which nothing has come yet.
    pub(super) fn stream(stream: Stream) -> Self {
        Self::Stream(Box::new(stream), Arc::default())
    }

    /// Where the tools are told that a stream's provider ran.
    pub(super) fn own_tools(&self) -> Arc<OwnTools> {
        match self {
            Self::Stream(_, tools) => Arc::clone(tools),
            Self::Whole { .. } => Arc::default(),
        }
    }

    pub(super) fn whole(answer: &Read) -> Self {
        Self::Whole {
            usage: answer.usage(),
            reported: answer.reported(),
            text_bytes: answer.text_bytes(),
            tools: answer.server_tools().clone(),
            brought: answer.brought().clone(),
            service: Box::new(answer.service().clone()),
        }
    }
}

/// A whole answer has nothing to translate: it is done before anybody asks.
impl Translate for Heard {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Reason> {
        match self {
            Self::Stream(stream, tools) => tools.hear(stream, |it| Translate::push(it, bytes, out)),
            Self::Whole { .. } => Ok(()),
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Stream(stream, _) => stream.is_done(),
            Self::Whole { .. } => true,
        }
    }

    fn has_begun(&self) -> bool {
        match self {
            Self::Stream(stream, _) => Translate::has_begun(&**stream),
            Self::Whole { .. } => true,
        }
    }

    fn has_token(&self) -> bool {
        match self {
            Self::Stream(stream, _) => stream.has_token(),
            Self::Whole { .. } => true,
        }
    }

    fn error(&self) -> Option<&ProviderError> {
        match self {
            Self::Stream(stream, _) => Translate::error(&**stream),
            Self::Whole { .. } => None,
        }
    }

    fn reported(&self) -> Option<Usage> {
        match self {
            Self::Stream(stream, _) => Translate::reported(&**stream),
            Self::Whole { reported, .. } => *reported,
        }
    }

    fn pieces(&self) -> u64 {
        match self {
            Self::Stream(stream, _) => Translate::pieces(&**stream),
            Self::Whole { .. } => 1,
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) -> How {
        match self {
            Self::Stream(stream, tools) => tools.hear(stream, |it| Translate::end(it, out)),
            Self::Whole { .. } => How::Done,
        }
    }

    fn cut(&mut self, how: How, out: &mut Vec<u8>) {
        if let Self::Stream(stream, _) = self {
            Translate::cut(&mut **stream, how, out);
        }
    }

    fn write_error(&self, how: How, out: &mut Vec<u8>) {
        if let Self::Stream(stream, _) = self {
            Translate::write_error(&**stream, how, out);
        }
    }

    fn last_bytes(&self) -> usize {
        match self {
            Self::Stream(stream, _) => Translate::last_bytes(&**stream),
            Self::Whole { .. } => 0,
        }
    }
}

/// Who keeps what came of a call.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) gate: Gate,
    /// Who sees to it that what outlives the call runs to its end.
    pub(super) upstreams: Upstreams,
    pub(super) call: CallId,
    pub(super) demand: Arc<Demand>,
    pub(super) routing: Arc<Routing>,
    /// Where the try that runs went; `None` while nothing was sent.
    pub(super) place: Option<Place>,
    /// The status of its answer, once one began.
    pub(super) status: Option<u16>,
    /// What the provider of the last try told of its use before an answer began.
    pub(super) reported: Option<Usage>,
    /// Tries that failed and that the call's row has not yet.
    pub(super) failed: Vec<Tried>,
    /// How many tries it had when the first of those failed.
    pub(super) told: usize,
    /// How it ended, where no answer was heard.
    pub(super) end: Option<CallEnd>,
    /// What the gate itself took until the request was sent, in milliseconds.
    pub(super) overhead_ms: u64,
    /// From when the client's request came to when the call was admitted, in milliseconds.
    pub(super) before_ms: u64,
    /// What the gate itself took until the request was sent, to the microsecond.
    pub(super) before: Duration,
    /// When the try that runs was sent.
    pub(super) sent: Instant,
    /// Whether a byte of it has left: whoever looks for its host's name, or waits for a connection, has used nothing.
    pub(super) left: Arc<AtomicBool>,
    /// How fast the models are that this node calls.
    pub(super) health: Arc<Health>,
    /// What is counted.
    pub(super) metrics: Arc<Metrics>,
    /// Who is told.
    pub(super) telemetry: Arc<Telemetry>,
    /// The trace of the request.
    pub(super) trace: Trace,
    /// The call's place among those that run.
    pub(super) seat: Seat,
}

/// What becomes of a call that is to be made.
#[derive(Debug)]
pub(super) enum Ready {
    /// It may be made; the guard tells what came of it.
    Admitted(Box<Admitted>, Box<Guard<Sink>>),
    /// It may not.
    Refused(Refusal),
    /// It is to be looked through under this setting first; its place among those that run is kept.
    Rescan(DataLoss, Seat),
}

/// Admits a call and holds on to whoever keeps what came of it, both or neither: a client that goes away while it is being
/// admitted leaves a call that was sent nowhere, whose reservation is given back at once.
///
/// # Errors
/// What admission leaves no record of, or that it could not be decided.
pub(super) async fn admit(
    service: &GateService,
    command: AdmitCall,
    seat: Seat,
    call: &Call,
) -> Result<Ready, Refusal> {
    let (gate, upstreams, demand) = (service.gate.clone(), service.upstreams.clone(), Arc::clone(&command.demand));
    let (health, metrics) = (Arc::clone(&service.health), Arc::clone(&service.metrics));
    let (telemetry, trace, came, read) = (Arc::clone(&service.telemetry), call.trace.clone(), call.came, call.read);
    let admitting = async move {
        let admitted = match gate.submit_before_park(command).await.map_err(crate::ops::refusal)? {
            Admission::Refused(refusal) => return Ok(Ready::Refused(refusal)),
            Admission::Rescan(setting) => return Ok(Ready::Rescan(setting, seat)),
            Admission::Admitted(admitted) => admitted,
        };
        for place in &admitted.places {
            if let Some((upstream, model)) = admitted.at(place) {
                metrics.may_call(upstream.name.as_str(), model.name.as_str());
            }
        }
        let before = read.elapsed();
        let sink = Sink {
            gate,
            upstreams: upstreams.clone(),
            call: admitted.call.id,
            demand,
            routing: Arc::clone(&admitted.routing),
            place: None,
            status: None,
            reported: None,
            failed: Vec::new(),
            told: 0,
            end: None,
            overhead_ms: millis(before),
            before_ms: millis(came.elapsed()),
            before,
            sent: Instant::now(),
            left: Arc::default(),
            health,
            metrics,
            telemetry,
            trace,
            seat,
        };
        Ok(Ready::Admitted(admitted, Box::new(Guard::new(&upstreams, sink))))
    };
    service.upstreams.outlive(admitting).await
}

impl Finish for Sink {
    type Heard = Heard;

    fn first_token(&mut self, ms: u64) {
        if let Some((upstream, model)) = self.place.and_then(|it| self.model(it)) {
            self.health.record_first_token(upstream.id, &model.name, ms, self.gate.now());
        }
    }

    async fn finish(self, heard: Option<Heard>, ended: Ended) -> Option<Charged> {
        let end = match (ended.how, &heard) {
            (How::Done, Some(_)) => CallEnd::Done,
            (How::Cut(_) | How::Stopped(_), _) => self.end.unwrap_or(CallEnd::Cut),
            (How::HungUp, _) => self.end.unwrap_or(CallEnd::HungUp),
            (How::Done, None) => self.end.unwrap_or(CallEnd::Failed),
        };
        match (self.place, &heard) {
            (Some(place), Some(Heard::Stream(..))) => self.judge(place, ended.how),
            // It was given up before an answer began: if it was a probe, another call is to be one.
            (Some(place), None) => self.note(place, Outcome::Neither, None),
            (Some(_), Some(Heard::Whole { .. })) | (None, _) => {}
        }
        self.note_given_up(&ended);
        let place = self.place.filter(|_| self.left.load(Ordering::Relaxed));
        let served = place.map(|place| self.served(place, heard, end));
        let Self { gate, upstreams, call, failed, told, overhead_ms, before_ms, before, seat, .. } = self;
        let (metrics, telemetry, trace) = (self.metrics, self.telemetry, self.trace);
        let finished = FinishCall {
            call,
            end,
            served,
            failed,
            told,
            first_token_ms: ended.first_ms.map(|it| it.saturating_add(before_ms)),
            duration_ms: ended.ms.saturating_add(before_ms),
            overhead_ms,
        };
        let ending = Instant::now();
        let kept = gate.submit(finished.clone()).await;
        let overhead = before.saturating_add(ending.elapsed());
        drop(seat);
        let tell = move |kept: &Finished| {
            telemetry.called(&kept.call, &trace);
            metrics.called(kept, overhead);
        };
        match kept {
            Ok(kept) => {
                tell(&kept);
                let call = kept.call;
                Some(Charged { cost: call.cost.get(), unpriced: call.unpriced })
            }
            Err(failure) => {
                // Its client is not to wait for that.
                drop(upstreams.outlive(async move {
                    if let Some(kept) = kept_later(&gate, finished, failure).await {
                        tell(&kept);
                    }
                }));
                None
            }
        }
    }
}

/// After how long it is tried again to keep a call's end: a store that fails over to another is back by then.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Tries again for some seconds to keep the end of a call; gives the call where that worked.
async fn kept_later(gate: &Gate, finished: FinishCall, mut failure: Failure<StoreError>) -> Option<Finished> {
    for pause in AGAIN {
        if matches!(&failure, Failure::Refused(refusal) if refusal.kind() != Kind::NotReady) {
            break;
        }
        tokio::time::sleep(pause).await;
        match gate.submit(finished.clone()).await {
            Ok(kept) => return Some(kept),
            Err(again) => failure = again,
        }
    }
    // Its reservation lapses and is charged; nothing is lost but the exact sum.
    let call = finished.call;
    tracing::error!(%call, error = with_causes(&failure), "a call's end could not be kept: it lapses");
    None
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Notes what came of a call of a model; that its circuit opens by it is told to whoever reads the log.
pub(super) fn note(
    health: &Health,
    (upstream, model): (&Upstream, &Model),
    outcome: Outcome,
    error: Option<&str>,
    now: Timestamp,
) {
    let Some(lasts) = health.record(upstream.id, &model.name, outcome, error, now) else { return };
    let (provider, model, seconds) = (upstream.name.as_str(), model.name.as_str(), lasts.as_millis() / 1_000);
    tracing::warn!(upstream = %upstream.id, provider, model, seconds, "a model fails again and again, or its provider asks for a rest: it is passed over for a while");
}

impl Sink {
    /// A try is sent to `place` now; `read` is when the client's request was whole, where it is the first one: of a later try, what
    /// passed before was a provider's time.
    pub(super) fn begin(&mut self, place: Place, read: Option<Instant>) {
        self.place = Some(place);
        self.reported = None;
        self.sent = Instant::now();
        self.left = Arc::default();
        if let Some(read) = read {
            self.before = read.elapsed();
            self.overhead_ms = millis(self.before);
        }
    }

    /// A try at `place` that was sent `elapsed_ms` ago and of which no answer was heard: what it may have used goes by what its
    /// provider told, and by how fast its model was measured to be.
    pub(super) fn unheard(&self, place: Place, elapsed_ms: u64) -> Served {
        let model = self.model(place);
        let tokens_per_second = model.map_or(0, |(upstream, model)| self.health.pace(upstream.id, &model.name));
        Served {
            demand: Arc::clone(&self.demand),
            routing: Arc::clone(&self.routing),
            place,
            usage: None,
            status: None,
            received: Received { reported: self.reported, elapsed_ms, tokens_per_second, tokens: 0 },
            tools: BTreeMap::new(),
            brought: BTreeSet::new(),
            service: Service::default(),
        }
    }

    /// A try at `place` that has failed: what came in the place of an answer was made all the same, and counts as what it says, else
    /// by its length, which is no more than the answers of the request can have.
    pub(super) fn missed(&self, place: Place, failed: &Failed) -> Served {
        let mut served = self.unheard(place, failed.ms);
        let most = self.model(place).map_or(0, |(_, model)| output_bound(model, &self.demand));
        let received = &mut served.received;
        received.reported = failed.reported.as_deref().copied().or(received.reported);
        received.tokens = tokens_of(failed.received).min(most.saturating_mul(self.demand.answers.max(1).into()));
        served
    }

    /// Notes how a stream of the model at `place` came to its end. What a client or this server ended says nothing of the model,
    /// nor does the time for the whole call, which a slow client uses up as well.
    fn judge(&self, place: Place, how: How) {
        match how {
            How::Done => self.note(place, Outcome::Answered, None),
            How::Cut(Reason::Total) | How::HungUp | How::Stopped(_) => {}
            How::Cut(reason) => {
                self.note(place, Outcome::Failed, Some(reason.as_str()));
                if let Some(((upstream, model), fault)) = self.model(place).zip(Fault::of(reason)) {
                    self.metrics.try_failed(upstream.name.as_str(), model.name.as_str(), fault);
                }
            }
        }
    }

    /// Notes that the first token of a stream was waited for in vain: its client had no more patience, or time ran out.
    fn note_given_up(&self, ended: &Ended) {
        let gave_up = matches!(ended.how, How::HungUp | How::Cut(Reason::FirstToken | Reason::Total));
        let place = self.place.filter(|_| gave_up && self.demand.stream && ended.first_ms.is_none());
        if let Some((upstream, model)) = place.and_then(|it| self.model(it)) {
            let ms = u64::try_from(self.sent.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.health.record_given_up(upstream.id, &model.name, ms, self.gate.now());
        }
    }

    fn model(&self, place: Place) -> Option<(&Upstream, &Model)> {
        self.routing.upstreams.get(place.upstream).zip(self.routing.models.get(place.model))
    }

    fn note(&self, place: Place, outcome: Outcome, error: Option<&str>) {
        if let Some((upstream, model)) = self.model(place) {
            note(&self.health, (upstream, model), outcome, error, self.gate.now());
        }
    }

    fn served(&self, place: Place, heard: Option<Heard>, end: CallEnd) -> Served {
        let elapsed_ms = u64::try_from(self.sent.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut served = Served { status: self.status, ..self.unheard(place, elapsed_ms) };
        if end == CallEnd::Done {
            // Of an answer that came to its end all tokens are here; of another it is not known what was made beside those.
            served.received.tokens_per_second = 0;
        }
        match heard {
            Some(Heard::Whole { usage, reported, text_bytes, tools, brought, service }) => {
                served.usage = usage;
                served.received.reported = reported;
                served.received.tokens = tokens_of(text_bytes);
                (served.tools, served.brought) = (tools, brought);
                served.service = *service;
            }
            Some(Heard::Stream(stream, _)) => {
                let received = stream.received();
                served.usage = received.usage;
                served.received.reported = received.reported;
                served.received.tokens = received.tokens;
                (served.tools, served.brought) = (received.server_tools, received.brought);
                served.service = received.service;
            }
            None => {}
        }
        let model = self.model(place);
        if let (Some((upstream, model)), Some(usage)) = (model, served.usage.filter(|it| !it.estimated))
            && end == CallEnd::Done
        {
            self.health.record_pace(upstream.id, &model.name, usage.all_output(), elapsed_ms);
        }
        served
    }
}
