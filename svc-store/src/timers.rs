//! What is due: timers of rows, and ledger records that wait for their places. It becomes commands like any other.
//!
//! **Invariant:** nothing is decided here. A scan finds keys; the commands read them again and decide.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use svc_core::command::Command;
use svc_core::engine::{Failure, done_with, sequences, steps_of};
use svc_core::refusal::Kind;
use svc_core::store::{CommitError, Found, Range};
use svc_core::value::Timestamp;
use svc_core::value::link::{Index, SHARDS, instant_order};

use crate::error::{StoreError, caught};
use crate::following::{Followed, Following};
use crate::gate::Core;

/// How often is looked at least: ledger records get their places and stopped agents are followed within this.
const PERIOD: Duration = Duration::from_secs(1);
/// How soon is looked again while ledger records keep coming: many small steps disturb decisions less than a large one.
const BUSY_PERIOD: Duration = Duration::from_millis(250);
/// No pause is shorter: a timer that fails is not tried without end.
const PAUSE_MIN: Duration = Duration::from_millis(10);
/// Due rows that one scan takes from one shard.
const DUE_MAX: usize = 256;
/// Ledger records that one command places.
const PLACED_MAX: usize = 128;
/// Scans of one shard in one pass; what is left then is left to the next pass.
const SCANS_MAX: usize = 256;

/// What a pass found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pass {
    /// When the next timer is due, as far as rows tell.
    pub(crate) next: Option<Timestamp>,
    /// Whether there was anything to place.
    pub(crate) placed: bool,
    /// Whether there is more to do for a due row than one pass does.
    pub(crate) more: bool,
}

/// Looks over all shards once, has what is due done, and waits for it. Where a row of a shard cannot be read, the others are
/// looked over all the same, and what was the matter is told at the end.
pub(crate) fn pass(core: &Core, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let pass = all(core, following);
    following.turn(pass.is_ok());
    pass
}

fn all(core: &Core, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let (mut pass, mut unreadable) = (Pass::default(), None);
    renew(core)?;
    for shard in 0..SHARDS {
        match one(core, shard, following) {
            Ok(found) => {
                pass.placed |= found.placed;
                pass.more |= found.more;
                pass.next = match (pass.next, found.next) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
            Err(failure @ Failure::Load(StoreError::Undecodable(_))) => unreadable = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    unreadable.map_or(Ok(pass), Err)
}

/// Has what is due in a shard done. Placing does not wait for a timer's row that cannot be read.
fn one(core: &Core, shard: u128, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let woken = wake(core, shard, following);
    let placed = place(core, shard)?;
    let more = woken?;
    let first = scan(core, &Range::all(Index::Wake, shard, 1))?;
    let next = first.first().map(|it| Timestamp::from_millis(i64::try_from(it.order).unwrap_or(i64::MAX)));
    Ok(Pass { next, placed, more })
}

/// Takes in the signing keys as they stand: another process may have had one follow another.
fn renew(core: &Core) -> Result<(), Failure<StoreError>> {
    if core.signer.ring().is_some() {
        let mut reader = core.readers.open().map_err(Failure::Load)?;
        core.signer.renew(crate::keys::stored(&mut |keys| reader.load(keys)).map_err(Failure::Load)?);
    }
    Ok(())
}

pub(crate) fn scan(core: &Core, range: &Range) -> Result<Vec<Found>, Failure<StoreError>> {
    core.readers.open().and_then(|mut reader| reader.scan(range)).map_err(Failure::Load)
}

/// Wakes the rows of a shard whose time has come; whether there is more to do for one of them. One that fails stays due and
/// does not keep the others waiting.
fn wake(core: &Core, shard: u128, following: &mut Following) -> Result<bool, Failure<StoreError>> {
    let mut more = false;
    let until = instant_order(core.clock.now()).saturating_add(1);
    let mut range = Range { until, ..Range::all(Index::Wake, shard, DUE_MAX) };
    for _ in 0..SCANS_MAX {
        let due = scan(core, &range)?;
        let Some(last) = due.last() else { break };
        range.after = Some((last.order, last.row.key));
        let mut commands = Vec::with_capacity(due.len());
        for found in &due {
            let followed = following.go_on(core, found)?;
            more |= followed == Followed::More;
            // Steps of one hold are commits of their own: each is as large as a commit may be.
            for _ in 1..steps_of(found) {
                run(core, vec![done_with(found)])?;
            }
            // A stop of which something is still to be done stays due.
            if followed == Followed::Done {
                commands.push(done_with(found));
            }
        }
        run(core, commands)?;
    }
    Ok(more)
}

/// Gives waiting records of a shard their places, in the order of their commits. The order is the ledger's, so one step is
/// done before the next is looked for.
pub(crate) fn place(core: &Core, shard: u128) -> Result<bool, Failure<StoreError>> {
    let mut placed = false;
    for _ in 0..SCANS_MAX {
        let waiting = scan(core, &Range::all(Index::Unplaced, shard, PLACED_MAX))?;
        if waiting.is_empty() {
            break;
        }
        placed = true;
        core.newest.see_records(&waiting);
        let done = run(core, sequences(&waiting).into_iter().map(Command::from).collect())?;
        // A record that finds no place comes up in every scan: nothing is gained by asking again at once.
        if !done || waiting.len() < PLACED_MAX {
            break;
        }
    }
    Ok(placed)
}

/// Has commands done and waits for them; whether all of them were. A full queue or a store that does not answer ends the
/// pass; what a single command comes to is its own affair.
pub(crate) fn run(core: &Core, commands: Vec<Command>) -> Result<bool, Failure<StoreError>> {
    let mut queued = Vec::with_capacity(commands.len());
    for command in commands {
        queued.push(core.lanes.submit(command)?);
    }
    let mut all = true;
    for outcome in queued {
        match pollster::block_on(outcome) {
            Ok(Ok(_)) => {}
            Ok(Err(Failure::Refused(refusal))) if refusal.kind() != Kind::NotReady => {
                all = false;
                tracing::error!(kind = refusal.type_(), "what was due could not be done");
            }
            // A row that cannot be read or written is its own command's trouble: nothing else waits for it.
            Ok(Err(
                failure @ (Failure::Commit(CommitError::Rejected(_)) | Failure::Load(StoreError::Undecodable(_))),
            )) => {
                all = false;
                tracing::error!(error = &failure as &dyn std::error::Error, "what was due could not be done");
            }
            Ok(Err(failure)) => return Err(failure),
            Err(_) => return Err(Failure::Load(StoreError::Closed)),
        }
    }
    Ok(all)
}

/// The thread that makes passes; ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Timers {
    pace: Arc<Pace>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Pace {
    stop: Mutex<bool>,
    stopped: Condvar,
}

impl Timers {
    pub(crate) fn start(core: Arc<Core>) -> Result<Self, StoreError> {
        let pace = Arc::new(Pace::default());
        let own = Arc::clone(&pace);
        let thread = std::thread::Builder::new()
            .name("svc-timers".to_owned())
            .spawn(move || {
                let mut following = Following::default();
                let mut next = || caught(|| next_pause(&core, &mut following)).unwrap_or_else(broken_off);
                while own.pause(next()) {}
            })
            .map_err(|cause| StoreError::Thread(Arc::new(cause)))?;
        Ok(Self { pace, thread: Some(thread) })
    }

    pub(crate) fn stop(&mut self) {
        *self.pace.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.pace.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Timers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Pace {
    /// Waits; whether there is another pass to make.
    fn pause(&self, pause: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.stopped.wait_timeout_while(stop, pause, |stop| !*stop);
        let (stop, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*stop
    }
}

/// After a pass that panicked, as a clock of somebody else's may: what is due is due still.
fn broken_off(error: StoreError) -> Duration {
    tracing::error!(error = &error as &dyn std::error::Error, "a pass over what is due was broken off");
    PERIOD
}

/// Makes a pass and says how long to wait for the next one.
fn next_pause(core: &Core, following: &mut Following) -> Duration {
    match pass(core, following) {
        Ok(pass) if pass.more => PAUSE_MIN,
        Ok(pass) => {
            let period = if pass.placed { BUSY_PERIOD } else { PERIOD };
            let until = pass.next.map(|next| next.since(core.clock.now()).as_millis());
            // A timer that is due already has just failed: it waits its turn.
            let until = until.filter(|ms| *ms > 0).and_then(|ms| u64::try_from(ms).ok());
            until.map_or(period, |ms| Duration::from_millis(ms).clamp(PAUSE_MIN, period))
        }
        Err(failure) => {
            tracing::warn!(error = &failure as &dyn std::error::Error, "what is due could not be looked for");
            PERIOD
        }
    }
}
