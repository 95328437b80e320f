//! A stream that runs, in reach of its body, which reads on, and of a watch, which ends it from outside.
//!
//! Nobody asks the body of a client that does not read for more, so it cannot be the body that learns that an agent was stopped
//! or that the time for the whole call went by.
//!
//! **Invariant:** whoever works at a stream has it to themselves, and holds no lock while they do: what came of it is told once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use super::failed::Reason;
use super::guard::{Charged, Finish, Guard, How, Outlive};
use super::incoming::Incoming;
use super::relay::Translate;
use super::switch::{Stop, Switch};

/// A stream on its way.
pub(super) struct Running<T: Translate, F: Finish<Heard = T>> {
    pub(super) incoming: Incoming,
    pub(super) translator: T,
    pub(super) guard: Guard<F>,
    pub(super) is_ended: bool,
    /// From the call to its first token, in milliseconds, once one has come.
    pub(super) first_ms: Option<u64>,
    /// When the last piece of the answer came, and how many there were then.
    pub(super) heard_at: Instant,
    pub(super) pieces: u64,
    pub(super) first_until: Instant,
    pub(super) total_until: Instant,
}

/// What a client hears last.
#[derive(Default)]
pub(super) struct LastWord {
    pub(super) said: Vec<u8>,
    /// What it hears in its place where it is stopped before that.
    pub(super) instead: Instead,
}

/// That somebody was stopped, by who was.
#[derive(Default)]
pub(super) struct Instead {
    pub(super) agent: Vec<u8>,
    pub(super) key: Vec<u8>,
}

impl Instead {
    /// What is heard where `stop` came; nothing where the server itself stops.
    pub(super) fn of(self, stop: Stop) -> Vec<u8> {
        match stop {
            Stop::Agent => self.agent,
            Stop::Key => self.key,
            Stop::Server => Vec::new(),
        }
    }
}

/// A stream that the watch has ended.
pub(super) struct Finished {
    pub(super) charged: Option<Charged>,
    /// What goes before the last word.
    pub(super) out: Vec<u8>,
    pub(super) last: LastWord,
    /// Whether what waits for the client goes no further.
    pub(super) takes_back: bool,
}

impl<T: Translate, F: Finish<Heard = T>> Running<T, F> {
    /// Until when something has to come, and what it is if nothing does.
    pub(super) fn until(&self) -> (Instant, Reason) {
        let (next, reason) = if self.first_ms.is_some() {
            (self.heard_at + self.incoming.times.idle, Reason::Idle)
        } else {
            (self.first_until, Reason::FirstToken)
        };
        if self.total_until <= next { (self.total_until, Reason::Total) } else { (next, reason) }
    }

    /// The same while there is more to read.
    pub(super) fn while_talking(&self) -> (Instant, Reason) {
        if self.first_ms.is_some() { (self.total_until, Reason::Total) } else { self.until() }
    }

    /// Ends it: whoever keeps what came of it is told, and what the client is still to hear is put into `out`, but for the last word.
    pub(super) fn end(self, how: How, out: &mut Vec<u8>) -> (Outlive<Option<Charged>>, LastWord) {
        let Self { incoming, mut translator, guard, first_ms, is_ended, .. } = self;
        let mut instead = Instead::default();
        translator.write_error(How::Stopped(Stop::Agent), &mut instead.agent);
        translator.write_error(How::Stopped(Stop::Key), &mut instead.key);
        match how {
            How::Done => incoming.finish(),
            // The translator has said so itself where the stream ended without its last word.
            How::Cut(_) if is_ended => {}
            How::Cut(_) | How::HungUp | How::Stopped(Stop::Server) => translator.cut(how, out),
            How::Stopped(Stop::Agent | Stop::Key) => {
                // What waits came before it was stopped, or after: the client gets none of it, nor an end that was read already.
                translator.cut(how, out);
                out.clear();
            }
        }
        let said = out.split_off(out.len().saturating_sub(translator.last_bytes()));
        (guard.finish(Some(translator), how, first_ms), LastWord { said, instead })
    }

    /// Ends it from outside, between two reads. Where all of it was read before its time was up, its end is what was read.
    fn end_from_outside(mut self, how: How, out: &mut Vec<u8>) -> (Outlive<Option<Charged>>, LastWord) {
        let mut how = how;
        if matches!(how, How::Cut(_)) && (self.is_ended || self.translator.is_done()) {
            self.is_ended = true;
            how = self.translator.end(out);
        }
        self.end(how, out)
    }

    /// Nobody is there to hear more.
    fn hang_up(self) {
        let Self { translator, guard, first_ms, .. } = self;
        drop(guard.finish(Some(translator), How::HungUp, first_ms));
    }
}

/// A running stream as its body has it. Dropped, it tells that the client hung up, unless its end was told.
pub(super) struct Watched<T: Translate, F: Finish<Heard = T>> {
    place: Arc<Mutex<Place<T, F>>>,
    watch: AbortHandle,
}

/// Where a stream is.
enum Place<T: Translate, F: Finish<Heard = T>> {
    /// Here; whoever is given is woken when the watch ends it.
    Here(Box<Running<T, F>>, Option<Waker>),
    /// With the body, which is to end it like this once it is done with it.
    Taken(Option<How>),
    /// With the watch, which says here how it ended.
    Ending(oneshot::Receiver<Finished>),
    /// Nowhere: its end is told.
    Gone,
}

/// What the body finds.
pub(super) enum Found<T: Translate, F: Finish<Heard = T>> {
    /// The stream: it is given back, or ended.
    Running(Box<Running<T, F>>),
    /// The watch is ending it, and says how it ended.
    Ending(oneshot::Receiver<Finished>),
    /// Its end is told.
    Gone,
}

impl<T: Translate, F: Finish<Heard = T>> Watched<T, F> {
    /// Watches a stream until it ends: `switch` cuts it, and the time for the whole call.
    pub(super) fn new(running: Running<T, F>, switch: Arc<Switch>) -> Self {
        let until = running.total_until;
        let place = Arc::new(Mutex::new(Place::Here(Box::new(running), None)));
        let watch = tokio::spawn(watch(Arc::clone(&place), switch, until)).abort_handle();
        Self { place, watch }
    }

    /// Takes the stream, to read on.
    pub(super) fn take(&self) -> Found<T, F> {
        let mut place = held(&self.place);
        match std::mem::replace(&mut *place, Place::Gone) {
            Place::Here(running, _) => {
                *place = Place::Taken(None);
                Found::Running(running)
            }
            Place::Ending(finished) => Found::Ending(finished),
            Place::Taken(_) | Place::Gone => Found::Gone,
        }
    }

    /// Gives the stream back, from which `waker` waits for more; where it is to end meanwhile, it is ended instead.
    pub(super) fn give_back(
        &self,
        running: Box<Running<T, F>>,
        waker: &Waker,
        out: &mut Vec<u8>,
    ) -> Option<(Outlive<Option<Charged>>, LastWord)> {
        let mut place = held(&self.place);
        if let Place::Taken(Some(how)) = *place {
            *place = Place::Gone;
            drop(place);
            return Some(running.end_from_outside(how, out));
        }
        *place = Place::Here(running, Some(waker.clone()));
        None
    }
}

impl<T: Translate, F: Finish<Heard = T>> Drop for Watched<T, F> {
    fn drop(&mut self) {
        let left = std::mem::replace(&mut *held(&self.place), Place::Gone);
        match left {
            Place::Here(running, _) => running.hang_up(),
            Place::Taken(_) => {}
            // The watch has it and tells its end, or has told it.
            Place::Ending(_) | Place::Gone => return,
        }
        self.watch.abort();
    }
}

/// Ends a stream when its agent, its key or this server is stopped, or when the time for the whole call is up.
async fn watch<T: Translate, F: Finish<Heard = T>>(
    place: Arc<Mutex<Place<T, F>>>,
    switch: Arc<Switch>,
    until: Instant,
) {
    let how = tokio::select! {
        biased;
        stop = switch.cut_off() => How::Stopped(stop),
        () = sleep_until(until) => How::Cut(Reason::Total),
    };
    let (tell, finished) = oneshot::channel();
    let (running, waker) = {
        let mut place = held(&place);
        match std::mem::replace(&mut *place, Place::Gone) {
            Place::Here(running, waker) => {
                *place = Place::Ending(finished);
                (running, waker)
            }
            Place::Taken(_) => {
                *place = Place::Taken(Some(how));
                return;
            }
            Place::Ending(_) | Place::Gone => return,
        }
    };
    if let Some(waker) = waker {
        waker.wake();
    }
    let mut out = Vec::new();
    let (telling, last) = running.end_from_outside(how, &mut out);
    let charged = telling.await;
    // Where the client has gone nobody hears of it.
    let _ = tell.send(Finished { charged, out, last, takes_back: matches!(how, How::Stopped(it) if it.takes_back()) });
}

/// What was held when somebody panicked is whole: a stream is there or not.
fn held<T: Translate, F: Finish<Heard = T>>(place: &Mutex<Place<T, F>>) -> MutexGuard<'_, Place<T, F>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
