//! How the providers fare that this node calls: usual latencies, failures, and circuits that open and are probed.
//!
//! A model's circuit opens after so many failures in a row. While it is open its model is ranked last; when its time is up
//! it is ranked again as any other, and the first call that asks [`Health::admits`] is the probe: others go elsewhere until
//! that came back. A probe that fails opens the circuit again, for twice as long. A provider that says when it is to be asked again has
//! its word: the circuit is open until then at once, and for no longer than any other.

mod waits;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_core::state::gateway::route::{Circuit, Health as Seen, Standing};
use svc_core::value::id::UpstreamId;
use svc_core::value::text::ModelName;
use svc_core::value::{Span, Timestamp};

use self::waits::{KEPT_MAX, Waits, median};

/// Failures in a row that open a circuit.
const FAILURES_MAX: u32 = 5;
/// How long a circuit stays open at first, and at most.
const OPEN: (Span, Span) = (Span::seconds(10), Span::minutes(5));
/// After how long a probe that never came back is taken for lost.
const PROBE: Span = Span::minutes(2);
/// For how long one picture of the models serves, where no circuit moves.
const PICTURE: Span = Span::millis(250);
/// How long a model that was called counts as called of late.
const CALLED: Span = Span::minutes(10);
/// Models that are remembered; of more, the one not called for the longest is forgotten.
const MODELS_MAX: usize = 4_096;
/// Tokens that an answer has at least for its pace to say something.
const PACED_TOKENS: u64 = 8;
/// Tokens a second that no model makes: an answer that is there so fast was kept.
const PACE_MAX: u64 = 5_000;
/// Characters of an error that are remembered.
const ERROR_CHARS_MAX: usize = 200;

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// A stream has begun. It ends a probe; that the model answers to the end it does not say.
    Begun,
    /// The provider failed, or did not answer in time.
    Failed,
    /// The provider has no room for a call, and is not to be asked again for so long, as it says.
    Limited(Span),
    /// The provider refused for a reason that lies with the request, or the client went away: it says nothing of health.
    Neither,
}

/// How the models fare, as this node sees it. Bounded in memory, and forgotten when the server stops.
#[derive(Debug, Default)]
pub struct Health(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    models: BTreeMap<(UpstreamId, ModelName), Model>,
    errors: BTreeMap<UpstreamId, Box<str>>,
    picture: Option<(Timestamp, Arc<Seen>)>,
}

#[derive(Clone, Debug)]
struct Model {
    first_tokens: Waits,
    wholes: Waits,
    /// How fast the newest answers were made, the newest last.
    paces: VecDeque<u64>,
    answered: u64,
    failed: u64,
    in_a_row: u32,
    open: Option<Open>,
    called_at: Timestamp,
}

/// An open circuit.
#[derive(Clone, Copy, Debug)]
struct Open {
    until: Timestamp,
    lasts: Span,
    probed_at: Option<Timestamp>,
}

impl Health {
    /// Whether a call may be sent to a model now. An open circuit admits nobody before its time is up, and one call after:
    /// whoever is admitted tells by [`record`](Self::record) what came of it.
    #[must_use]
    pub fn admits(&self, upstream: UpstreamId, model: &ModelName, now: Timestamp) -> bool {
        let mut inner = self.lock();
        let Some(open) = inner.models.get_mut(&(upstream, model.clone())).and_then(|it| it.open.as_mut()) else {
            return true;
        };
        if now < open.until || open.probed_at.is_some_and(|it| now.since(it) < PROBE) {
            return false;
        }
        open.probed_at = Some(now);
        inner.picture = None;
        true
    }

    /// Whether a model's circuit is open and no probe is due. Asking changes nothing.
    #[must_use]
    pub fn is_open(&self, upstream: UpstreamId, model: &ModelName, now: Timestamp) -> bool {
        let inner = self.lock();
        let known = inner.models.get(&(upstream, model.clone()));
        known.is_some_and(|it| it.standing(now).circuit == Circuit::Open)
    }

    /// Notes what came of a call. `error` is what people are shown of a failure; it holds no secret. For how long the model's circuit
    /// is open, where it has opened by this.
    pub fn record(
        &self,
        upstream: UpstreamId,
        model: &ModelName,
        outcome: Outcome,
        error: Option<&str>,
        now: Timestamp,
    ) -> Option<Span> {
        let mut inner = self.lock();
        if let (Outcome::Failed | Outcome::Limited(_), Some(error)) = (outcome, error) {
            inner.errors.insert(upstream, error.chars().take(ERROR_CHARS_MAX).collect::<String>().into());
        }
        let key = (upstream, model.clone());
        if !inner.models.contains_key(&key) {
            inner.make_room();
        }
        let known = inner.models.entry(key).or_insert_with(|| Model::new(now));
        let before = known.open;
        known.note(outcome, now);
        let after = known.open;
        if before.is_some() || after.is_some() {
            inner.picture = None;
        }
        // One that is open already may be told a later time by each call that was under way: that is no news to anybody.
        let is_news = |it: &Open| before.is_none_or(|before| before.probed_at.is_some() && before.until != it.until);
        let opened = after.filter(is_news);
        opened.map(|it| it.lasts)
    }

    /// Notes after how many milliseconds the first token of a stream came. A model that is not known to have been called is passed
    /// over, here and below.
    pub fn record_first_token(&self, upstream: UpstreamId, model: &ModelName, ms: u64, now: Timestamp) {
        self.with(upstream, model, |it| it.first_tokens.came(ms, now));
    }

    /// Notes that the first token of a stream was waited for so many milliseconds, and did not come.
    pub fn record_given_up(&self, upstream: UpstreamId, model: &ModelName, ms: u64, now: Timestamp) {
        self.with(upstream, model, |it| it.first_tokens.given_up(ms, now));
    }

    /// Notes after how many milliseconds an answer was there that came as a whole. When it began nobody knows, so that it says
    /// nothing of first tokens.
    pub fn record_whole(&self, upstream: UpstreamId, model: &ModelName, ms: u64, now: Timestamp) {
        self.with(upstream, model, |it| it.wholes.came(ms, now));
    }

    /// Notes how fast a model that answered to its end was: so many tokens in so many milliseconds since it was asked. What is
    /// too little to measure by is passed over, and what comes faster than it can be made: it tells of a cache.
    pub fn record_pace(&self, upstream: UpstreamId, model: &ModelName, tokens: u64, ms: u64) {
        if tokens < PACED_TOKENS {
            return;
        }
        let pace = tokens.saturating_mul(1_000) / ms.max(1);
        if pace <= PACE_MAX {
            self.with(upstream, model, |it| it.note_pace(pace));
        }
    }

    /// The tokens that a model makes in a second, as [`Standing::pace`] tells it.
    #[must_use]
    pub fn pace(&self, upstream: UpstreamId, model: &ModelName) -> u64 {
        let known = self.lock().models.get(&(upstream, model.clone())).and_then(Model::pace);
        Standing { tokens_per_second: known, ..Standing::default() }.pace()
    }

    /// How the models fare now; at most a quarter of a second old, but for circuits, which are as they are.
    #[must_use]
    pub fn snapshot(&self, now: Timestamp) -> Arc<Seen> {
        let mut inner = self.lock();
        if let Some((at, seen)) = &inner.picture
            && (Span::millis(0)..PICTURE).contains(&now.since(*at))
        {
            return Arc::clone(seen);
        }
        let mut seen = Seen::default();
        for ((upstream, model), it) in &inner.models {
            seen.set(*upstream, model.clone(), it.standing(now));
        }
        let seen = Arc::new(seen);
        inner.picture = Some((now, Arc::clone(&seen)));
        seen
    }

    /// Forgets the failures of a provider that somebody has put right: its circuits are closed, and what its models took stays known.
    pub fn put_right(&self, upstream: UpstreamId) {
        let mut inner = self.lock();
        for (_, model) in inner.models.iter_mut().filter(|((of, _), _)| *of == upstream) {
            (model.in_a_row, model.open) = (0, None);
        }
        inner.errors.remove(&upstream);
        inner.picture = None;
    }

    /// What a provider's newest failure said.
    #[must_use]
    pub fn last_error(&self, upstream: UpstreamId) -> Option<Box<str>> {
        self.lock().errors.get(&upstream).cloned()
    }

    /// Calls of a model since the server started: answered and failed.
    #[must_use]
    pub fn counts(&self, upstream: UpstreamId, model: &ModelName) -> (u64, u64) {
        self.lock().models.get(&(upstream, model.clone())).map_or((0, 0), |it| (it.answered, it.failed))
    }

    fn with(&self, upstream: UpstreamId, model: &ModelName, change: impl FnOnce(&mut Model)) {
        if let Some(known) = self.lock().models.get_mut(&(upstream, model.clone())) {
            change(known);
        }
    }

    /// A panic elsewhere leaves figures that are still figures.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn make_room(&mut self) {
        if self.models.len() < MODELS_MAX {
            return;
        }
        let oldest = self.models.iter().min_by_key(|(_, it)| it.called_at).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            self.models.remove(&oldest);
            if !self.models.keys().any(|(upstream, _)| *upstream == oldest.0) {
                self.errors.remove(&oldest.0);
            }
        }
    }
}

impl Model {
    fn new(now: Timestamp) -> Self {
        let (first_tokens, wholes) = (Waits::default(), Waits::default());
        let paces = VecDeque::new();
        Self { first_tokens, wholes, paces, answered: 0, failed: 0, in_a_row: 0, open: None, called_at: now }
    }

    fn note_pace(&mut self, pace: u64) {
        if self.paces.len() >= KEPT_MAX {
            self.paces.pop_front();
        }
        self.paces.push_back(pace);
    }

    /// The pace in the middle of the newest: a single answer, be it from a cache or held up, changes little.
    fn pace(&self) -> Option<u64> {
        median(self.paces.iter().copied().collect())
    }

    fn note(&mut self, outcome: Outcome, now: Timestamp) {
        self.called_at = now;
        match outcome {
            Outcome::Answered => {
                self.answered = self.answered.saturating_add(1);
                self.in_a_row = 0;
                self.open = None;
            }
            Outcome::Begun => self.open = None,
            Outcome::Failed => self.note_failed(None, now),
            Outcome::Limited(rest) => self.note_failed(Some(rest), now),
            Outcome::Neither => {
                if let Some(open) = &mut self.open {
                    open.probed_at = None;
                }
            }
        }
    }

    /// Notes a failure; `rest` is for how long its provider wants to be left alone.
    fn note_failed(&mut self, rest: Option<Span>, now: Timestamp) {
        self.failed = self.failed.saturating_add(1);
        self.in_a_row = self.in_a_row.saturating_add(1);
        let open_for = |lasts: Span| Open { until: now.plus(lasts), lasts, probed_at: None };
        let by_failures = match self.open {
            // What was sent before the circuit opened says nothing new.
            Some(open) if open.probed_at.is_none() => Some(open),
            Some(open) => {
                Some(open_for(Span::millis(open.lasts.as_millis().saturating_mul(2).min(OPEN.1.as_millis()))))
            }
            None if self.in_a_row >= FAILURES_MAX => Some(open_for(OPEN.0)),
            None => None,
        };
        let by_its_word = rest.map(|it| open_for(it.min(OPEN.1)));
        self.open = match (by_failures, by_its_word) {
            (Some(open), Some(asked)) if open.until < asked.until => Some(asked),
            (open, asked) => open.or(asked),
        };
    }

    fn standing(&self, now: Timestamp) -> Standing {
        let circuit = match &self.open {
            Some(open) if now < open.until || open.probed_at.is_some_and(|it| now.since(it) < PROBE) => Circuit::Open,
            Some(_) => Circuit::Degraded,
            None if self.in_a_row > 0 => Circuit::Degraded,
            None => Circuit::Ok,
        };
        Standing {
            circuit,
            latency_ms: self.first_tokens.of_late(now),
            first_token_ms: self.first_tokens.lasting(now),
            whole_ms: self.wholes.lasting(now),
            is_called: now.since(self.called_at) < CALLED,
            tokens_per_second: self.pace(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::Id as _;

    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn names() -> (UpstreamId, ModelName) {
        (UpstreamId::from_bits(1), ModelName::parse("large").unwrap())
    }

    /// A circuit with the failures that open it, opened at zero.
    fn opened() -> (Health, UpstreamId, ModelName) {
        let health = Health::default();
        let (upstream, model) = names();
        for number in 1..=FAILURES_MAX {
            assert!(health.admits(upstream, &model, at(0)), "{number}");
            let opened = health.record(upstream, &model, Outcome::Failed, Some("refused"), at(0));
            assert_eq!(opened, (number == FAILURES_MAX).then_some(OPEN.0), "the one that opens it says so");
        }
        (health, upstream, model)
    }

    fn circuit(health: &Health, upstream: UpstreamId, model: &ModelName, now: i64) -> Circuit {
        health.snapshot(at(now)).of(upstream, model).circuit
    }

    /// Failures in a row open a circuit; an answer between them does not let them.
    #[test]
    fn failures_in_a_row_open_a_circuit() {
        let health = Health::default();
        let (upstream, model) = names();
        for _ in 0..3 {
            for _ in 1..FAILURES_MAX {
                health.record(upstream, &model, Outcome::Failed, None, at(0));
            }
            health.record(upstream, &model, Outcome::Answered, None, at(0));
        }
        assert!(health.admits(upstream, &model, at(0)));
        let (health, upstream, model) = opened();
        assert!(!health.admits(upstream, &model, at(9_999)));
        assert_eq!(circuit(&health, upstream, &model, 9_999), Circuit::Open);
        assert_eq!(health.last_error(upstream).as_deref(), Some("refused"));
        assert_eq!(health.counts(upstream, &model), (0, 5));
    }

    /// Streams that begin and break are failures in a row; one that comes to its end ends the row.
    #[test]
    fn streams_that_break_open_a_circuit() {
        let health = Health::default();
        let (upstream, model) = names();
        let stream = |outcome, now| {
            health.record(upstream, &model, Outcome::Begun, None, at(now));
            health.record(upstream, &model, outcome, None, at(now));
        };
        for outcome in [Outcome::Answered, Outcome::Failed] {
            (1..FAILURES_MAX).for_each(|_| stream(Outcome::Failed, 0));
            assert!(health.admits(upstream, &model, at(0)));
            stream(outcome, 0);
        }
        assert!(!health.admits(upstream, &model, at(9_999)));
        assert!(health.admits(upstream, &model, at(10_000)), "a probe");
        health.record(upstream, &model, Outcome::Begun, None, at(10_000));
        assert!(health.admits(upstream, &model, at(10_001)), "it answers again");
        health.record(upstream, &model, Outcome::Failed, None, at(10_001));
        assert!(!health.admits(upstream, &model, at(10_002)), "and breaks again");
    }

    /// When the time is up one call probes; the others wait for what comes of it.
    #[test]
    fn one_call_probes() {
        let (health, upstream, model) = opened();
        assert_eq!(circuit(&health, upstream, &model, 10_000), Circuit::Degraded);
        assert!(health.admits(upstream, &model, at(10_000)));
        assert!(!health.admits(upstream, &model, at(10_000)));
        assert_eq!(circuit(&health, upstream, &model, 10_001), Circuit::Open);
        health.record(upstream, &model, Outcome::Answered, None, at(10_100));
        assert!(health.admits(upstream, &model, at(10_100)));
        assert_eq!(circuit(&health, upstream, &model, 10_101), Circuit::Ok);
    }

    /// A probe that fails opens the circuit for twice as long, up to five minutes; one that never comes back is lost.
    #[test]
    fn a_failed_probe_opens_for_longer() {
        let (health, upstream, model) = opened();
        let mut now = 10_000;
        for lasts in [20_000, 40_000, 80_000, 160_000, 300_000, 300_000] {
            assert!(health.admits(upstream, &model, at(now)));
            let opened = health.record(upstream, &model, Outcome::Failed, None, at(now));
            assert_eq!(opened, Some(Span::millis(lasts)));
            assert!(!health.admits(upstream, &model, at(now + lasts - 1)), "{lasts}");
            now += lasts;
        }
        assert!(health.admits(upstream, &model, at(now)));
        assert!(!health.admits(upstream, &model, at(now + 119_999)));
        assert!(health.admits(upstream, &model, at(now + 120_000)));
        health.record(upstream, &model, Outcome::Neither, None, at(now + 120_001));
        assert!(health.admits(upstream, &model, at(now + 120_002)), "a probe that says nothing is no probe");
    }

    /// A provider that says when it is to be asked again is left alone until then, after one call, for five minutes at most; what it says
    /// later to calls that were under way counts too, and is told once. Then one call probes.
    #[test]
    fn a_provider_that_names_a_time_is_left_alone_until_then() {
        let (upstream, model) = names();
        for (said, lasts) in [(1, 1_000), (30, 30_000), (86_400, 300_000)] {
            let health = Health::default();
            let limited = Outcome::Limited(Span::seconds(said));
            let opened = health.record(upstream, &model, limited, Some("busy"), at(0));
            assert_eq!(opened, Some(Span::millis(lasts)));
            assert!(!health.admits(upstream, &model, at(lasts - 1)), "{said}");
            assert_eq!(circuit(&health, upstream, &model, lasts - 1), Circuit::Open);
            assert_eq!(health.record(upstream, &model, limited, None, at(500)), None, "it is known already");
            assert!(!health.admits(upstream, &model, at(lasts)), "{said}");
            assert!(health.admits(upstream, &model, at(lasts + 500)), "a probe");
            assert!(!health.admits(upstream, &model, at(lasts + 500)), "and no second one");
            health.record(upstream, &model, Outcome::Answered, None, at(lasts + 600));
            assert_eq!(circuit(&health, upstream, &model, lasts + 600), Circuit::Ok);
            assert_eq!(
                (health.last_error(upstream).as_deref(), health.counts(upstream, &model)),
                (Some("busy"), (1, 2))
            );
        }
        // A time that is sooner than what failures in a row come to makes it no sooner.
        let (health, upstream, model) = opened();
        health.record(upstream, &model, Outcome::Limited(Span::seconds(1)), None, at(0));
        assert!(!health.admits(upstream, &model, at(9_999)));
    }

    /// What was sent before the circuit opened and fails later keeps it open no longer.
    #[test]
    fn late_failures_change_nothing() {
        let (health, upstream, model) = opened();
        assert_eq!(health.record(upstream, &model, Outcome::Failed, None, at(9_000)), None);
        assert!(health.admits(upstream, &model, at(10_000)));
    }

    /// Waits are told of a model that was called, in a picture that serves for a while: what is usual of late for limits, and what
    /// lasts for ranks, of streams and of whole answers apart.
    #[test]
    fn waits_are_told_of_late_and_lasting() {
        let (health, (upstream, model)) = (Health::default(), names());
        let told = |now| {
            let seen = health.snapshot(at(now)).of(upstream, &model);
            (seen.latency_ms, seen.first_token_ms, seen.whole_ms)
        };
        health.record_first_token(upstream, &model, 9, at(0));
        health.record_whole(upstream, &model, 9, at(0));
        assert_eq!(told(0), (None, None, None), "nobody knows that it was called");
        health.record(upstream, &model, Outcome::Answered, None, at(0));
        health.record_whole(upstream, &model, 5_000, at(1_000));
        (0..2).for_each(|it| health.record_first_token(upstream, &model, 800, at(1_000 + it)));
        assert_eq!(told(1_002), (None, Some(800), Some(5_000)), "two are too few for a limit");
        health.record_given_up(upstream, &model, 900, at(1_003));
        assert_eq!((told(1_004).0, told(1_252).0), (None, Some(800)), "one picture serves for a while");
        assert_eq!(told(130_000), (None, Some(800), Some(5_000)));
        assert_eq!(told(3_700_000), (None, None, None));
    }

    /// How fast a model is is in the middle of the newest; one that was not measured is taken for a usual one. What came from a
    /// cache measures nothing, and one answer that was held up, or came in one piece, changes little.
    #[test]
    fn pace_is_in_the_middle_of_the_newest() {
        let health = Health::default();
        let (upstream, model) = names();
        let usual = Standing::default().pace();
        health.record_pace(upstream, &model, 1_000, 1_000);
        assert_eq!(health.pace(upstream, &model), usual, "nobody knows that it was called");
        health.record(upstream, &model, Outcome::Answered, None, at(0));
        health.record_pace(upstream, &model, 7, 1);
        assert_eq!(health.pace(upstream, &model), usual, "seven tokens measure nothing");
        health.record_pace(upstream, &model, 500, 2);
        assert_eq!(health.pace(upstream, &model), usual, "it was kept, not made");
        for (tokens, ms, middle) in
            [(160, 2_000, 80), (160, 10_000, 16), (4_000, 1_000, 80), (160, 1_600, 80), (160, 1_600, 100)]
        {
            health.record_pace(upstream, &model, tokens, ms);
            assert_eq!(health.pace(upstream, &model), middle, "{tokens} {ms}");
        }
        (0..20).for_each(|_| health.record_pace(upstream, &model, 30, 1_000));
        assert_eq!(health.pace(upstream, &model), 30);
        assert_eq!(health.lock().models.values().map(|it| it.paces.len()).collect::<Vec<_>>(), [KEPT_MAX]);
        assert_eq!(health.snapshot(at(1_000)).of(upstream, &model).pace(), 30);
    }

    /// However many models are called, so many are remembered.
    #[test]
    fn memory_is_bounded() {
        let health = Health::default();
        for number in 0..MODELS_MAX + 10 {
            let (upstream, now) = (UpstreamId::from_bits(number as u128), at(i64::try_from(number).unwrap()));
            let model = ModelName::parse("m").unwrap();
            health.record(upstream, &model, Outcome::Failed, Some(&"x".repeat(1_000)), now);
        }
        let inner = health.lock();
        assert_eq!((inner.models.len(), inner.errors.len()), (MODELS_MAX, MODELS_MAX));
        assert!(inner.errors.values().all(|it| it.len() == ERROR_CHARS_MAX));
    }
}
