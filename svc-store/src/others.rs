//! What other processes commit to the same store, told to whoever waits here; and how far this machine's clock is apart from the
//! database's.
//!
//! **Invariant:** nothing is decided by what is heard, and nothing rests on hearing it: once a second everybody who waits is told to
//! look, so that what was not told is seen within that time, however long the database takes to answer anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use svc_core::store::{Key, Table};
use svc_core::value::{Span, Timestamp};

use crate::backend::{Heard, Others};
use crate::error::{StoreError, caught};
use crate::gate::Core;
use crate::lasting::{Lasting, with_causes};
use crate::timers;

/// How often everybody who waits is told to look, whatever was heard.
const LOOK: Duration = Duration::from_secs(1);
/// How long is listened at a time: a gate that closes waits for this, or for what a silent database is being asked.
const PATIENCE: Duration = Duration::from_millis(100);
/// What is said while others are not heard.
const UNHEARD: &str = "what other servers commit is not heard of at present; it is looked for once a second";

/// The same of a store that is one server's.
const UNSEEN: &str = "what other processes commit to the database cannot be looked for";

/// The threads that listen and tell everybody to look; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Listening {
    end: Arc<End>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct End {
    ended: AtomicBool,
    waiting: Mutex<()>,
    told: Condvar,
}

impl End {
    fn has_come(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Waits so long, or until the end.
    fn wait(&self, pause: Duration) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether it was told or not is looked at where this is called.
        let _ = self.told.wait_timeout_while(waiting, pause, |()| !self.has_come());
    }

    fn come(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended.store(true, Ordering::Release);
        drop(waiting);
        self.told.notify_all();
    }
}

impl Listening {
    /// Compares the clocks before anything is decided, and listens from then on.
    pub(crate) fn start(core: Arc<Core>) -> Result<Self, StoreError> {
        core.newest.await_comparison();
        compare_clocks(&core, &mut Lasting::default());
        let mut all = Self { end: Arc::new(End::default()), threads: Vec::new() };
        all.begin("svc-look", &core, remind)?;
        all.begin("svc-others", &core, listen)?;
        Ok(all)
    }

    /// For a store that is one server's: looks for what commands and programs beside it commit, where it can be looked for.
    pub(crate) fn beside(core: Arc<Core>) -> Result<Option<Self>, StoreError> {
        let Ok(Some(_)) = core.readers.others() else { return Ok(None) };
        let mut all = Self { end: Arc::new(End::default()), threads: Vec::new() };
        all.begin("svc-look", &core, look_beside)?;
        Ok(Some(all))
    }

    fn begin(&mut self, name: &str, core: &Arc<Core>, work: fn(&Core, &End)) -> Result<(), StoreError> {
        let (core, end) = (Arc::clone(core), Arc::clone(&self.end));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&core, &end));
        self.threads.push(thread.map_err(|cause| StoreError::Thread(Arc::new(cause)))?);
        Ok(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.end.come();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Tells everybody to look, on a thread that asks the database nothing: whoever looks finds out whether it answers.
fn remind(core: &Core, end: &End) {
    while !end.has_come() {
        core.feed.tell_any();
        end.wait(LOOK);
    }
}

/// What fails at present of listening.
#[derive(Default)]
struct Lastings {
    hearing: Lasting,
    clocks: Lasting,
}

fn listen(core: &Core, end: &End) {
    let (mut others, mut looked) = (None, None::<Instant>);
    let mut lasting = Lastings::default();
    while !end.has_come() {
        if looked.is_none_or(|at| at.elapsed() >= LOOK) {
            looked = Some(Instant::now());
            compare_clocks(core, &mut lasting.clocks);
            if others.is_none() && !end.has_come() {
                others = open(core, &mut lasting.hearing);
                // What was committed before it was opened is looked for at once, what comes later is heard.
                core.feed.tell_any();
            }
        }
        let heard = match others.as_mut() {
            Some(listener) => hear(listener.as_mut(), PATIENCE).inspect(|_| lasting.hearing.see(UNHEARD, None)),
            None => {
                end.wait(PATIENCE);
                Ok(Heard::Nothing)
            }
        };
        match heard {
            Ok(heard) => pass_on(core, &heard),
            Err(error) => {
                lasting.hearing.see(UNHEARD, Some(&error));
                others = None;
            }
        }
    }
}

/// Looks once a second whether somebody else has committed, on a store that is one server's. One that
/// a newer release has brought to its own schema takes no commit from here: then the gate fails, also where nothing is asked of it.
fn look_beside(core: &Core, end: &End) {
    let (mut others, mut lasting) = (None, Lasting::default());
    while !end.has_come() {
        if others.is_none() {
            others = open(core, &mut lasting);
        }
        if let Some(lookout) = others.as_mut() {
            let heard = hear(lookout.as_mut(), Duration::ZERO);
            lasting.see(UNSEEN, heard.as_ref().err().map(|it| it as &dyn std::error::Error));
            match heard {
                Ok(heard) => pass_on(core, &heard),
                Err(StoreError::NewerSchema { .. } | StoreError::Move(_)) => core.health.failed(core.clock.now()),
                Err(_) => {}
            }
        }
        end.wait(LOOK);
    }
}

/// Whoever tells of others, where there is anybody and the store answers; asked for again the next time.
fn open(core: &Core, lasting: &mut Lasting) -> Option<Box<dyn Others>> {
    core.readers.others().unwrap_or_else(|error| {
        lasting.see(UNHEARD, Some(&error));
        None
    })
}

fn hear(others: &mut dyn Others, patience: Duration) -> Result<Heard, StoreError> {
    caught(|| others.hear(patience))?
}

fn pass_on(core: &Core, heard: &Heard) {
    let keys_may_have_changed = match heard {
        Heard::Nothing => return,
        Heard::Rows(rows) => {
            core.feed.tell(rows);
            rows.iter().any(is_signing_key)
        }
        Heard::Missed => {
            core.feed.tell_any();
            true
        }
    };
    if keys_may_have_changed && let Err(failure) = timers::renew(core) {
        tracing::warn!(error = with_causes(&failure), "the signing keys could not be looked at");
    }
}

fn is_signing_key(key: &Key) -> bool {
    key.table() == Table::SigningKey
}

/// Holds this machine's clock against the database's. What the answer took is in this server's favour: it may have been read at any
/// moment of it.
fn compare_clocks(core: &Core, lasting: &mut Lasting) {
    let compared = caught(|| {
        let before = core.clock.now();
        let time = core.readers.time()?;
        Ok(time.map(|time| (before, time, core.clock.now())))
    });
    let compared = compared.unwrap_or_else(Err);
    // It takes no commit either, as long as it does not answer.
    lasting.see("the database's clock cannot be read", compared.as_ref().err().map(|it| it as &dyn std::error::Error));
    // It takes no commit from here any more, also where none is asked for.
    if let Err(StoreError::NewerSchema { .. }) = &compared {
        core.health.failed(core.clock.now());
    }
    // While it does not answer, what was compared last holds for a short while and no longer.
    if let Ok(compared) = compared {
        let apart = |(before, time, after): (Timestamp, Timestamp, Timestamp)| {
            before.since(time).max(time.since(after)).max(Span::default())
        };
        core.newest.see_apart(compared.map(apart));
    }
}
