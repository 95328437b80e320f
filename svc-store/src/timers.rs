//! What is due: timers of rows, and ledger records that wait for their places. It becomes commands like any other.
//!
//! **Invariant:** nothing is decided here. A scan finds keys; the commands read them again and decide.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use svc_core::command::{Command, Reply};
use svc_core::engine::{Failure, done_with, sequences, steps_of};
use svc_core::refusal::Kind;
use svc_core::store::{CommitError, Found, Range};
use svc_core::value::Timestamp;
use svc_core::value::link::{Index, SHARDS, instant_order};

use crate::error::{StoreError, caught};
use crate::following::{Followed, Following};
use crate::gate::Core;
use crate::lasting::{Lasting, with_causes};

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
    /// The same of those that this pass has not come to: what it has tried and is due still waits its turn.
    pub(crate) ahead: Option<Timestamp>,
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
    core.put_off.look(core)?;
    for shard in 0..SHARDS {
        match one(core, shard, following) {
            Ok(found) => {
                pass.placed |= found.placed;
                pass.more |= found.more;
                pass.next = earlier(pass.next, found.next);
                pass.ahead = earlier(pass.ahead, found.ahead);
            }
            Err(failure @ Failure::Load(StoreError::Undecodable(_))) => unreadable = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    unreadable.map_or(Ok(pass), Err)
}

/// Has what is due in a shard done. Placing does not wait for a timer's row that cannot be read.
fn one(core: &Core, shard: u128, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let until = instant_order(core.clock.now()).saturating_add(1);
    let woken = wake(core, shard, until, following);
    let placed = place(core, shard)?;
    let more = woken?;
    let next = first(core, shard, 0)?;
    let ahead = if next.is_some_and(|it| instant_order(it) < until) { first(core, shard, until)? } else { next };
    Ok(Pass { next, ahead, placed, more })
}

/// When the first timer of a shard is due, from this place of the index on.
fn first(core: &Core, shard: u128, from: u128) -> Result<Option<Timestamp>, Failure<StoreError>> {
    let found = scan(core, &Range { from, ..Range::all(Index::Wake, shard, 1) })?;
    Ok(found.first().map(|it| Timestamp::from_millis(i64::try_from(it.order).unwrap_or(i64::MAX))))
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    [a, b].into_iter().flatten().min()
}

/// Takes in the signing keys as they stand: another process may have had one follow another.
pub(crate) fn renew(core: &Core) -> Result<(), Failure<StoreError>> {
    if core.signer.ring().is_some() {
        let mut reader = core.readers.open().map_err(Failure::Load)?;
        core.signer.renew(crate::keys::stored(&mut |keys| reader.load(keys)).map_err(Failure::Load)?);
    }
    Ok(())
}

pub(crate) fn scan(core: &Core, range: &Range) -> Result<Vec<Found>, Failure<StoreError>> {
    core.readers.open().and_then(|mut reader| reader.scan(range)).map_err(Failure::Load)
}

/// Wakes the rows of a shard whose time has come, those before `until` in its index; whether there is more to do for one of them. One that fails stays due and
/// does not keep the others waiting.
fn wake(core: &Core, shard: u128, until: u128, following: &mut Following) -> Result<bool, Failure<StoreError>> {
    let mut more = false;
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
            Ok(Ok(Reply::Woken(Some(lapsed)))) => core.feed.tell_lapse(lapsed),
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
                tracing::error!(error = with_causes(&failure), "what was due could not be done");
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
                let (mut following, mut lasting) = (Following::default(), Lasting::default());
                let mut next = || caught(|| next_pause(&core, &mut following, &mut lasting)).unwrap_or_else(broken_off);
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
    tracing::error!(error = with_causes(&error), "a pass over what is due was broken off");
    PERIOD
}

/// Makes a pass and says how long to wait for the next one.
fn next_pause(core: &Core, following: &mut Following, lasting: &mut Lasting) -> Duration {
    let passed = pass(core, following);
    lasting.see("what is due cannot be looked for", passed.as_ref().err().map(|it| it as &dyn std::error::Error));
    passed.map_or(PERIOD, |pass| pause_after(&pass, core.clock.now()))
}

/// How long to wait after a pass: until the next timer is due that it has not come to, and no longer than a period.
fn pause_after(pass: &Pass, now: Timestamp) -> Duration {
    if pass.more {
        return PAUSE_MIN;
    }
    let period = if pass.placed { BUSY_PERIOD } else { PERIOD };
    // What fell due while the pass ran is not to wait for a whole period.
    let ms = pass.ahead.map(|ahead| u64::try_from(ahead.since(now).as_millis()).unwrap_or(0));
    ms.map_or(period, |ms| Duration::from_millis(ms).clamp(PAUSE_MIN, period))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// What falls due while a pass runs, or a moment after, is seen to then and not a period later; what the pass could not do waits
    /// for its turn and keeps nothing else waiting.
    #[test]
    fn the_next_pass_comes_when_something_is_due() {
        let at = |ms| Some(Timestamp::from_millis(ms));
        let pause = |next, ahead| pause_after(&Pass { next, ahead, ..Pass::default() }, Timestamp::from_millis(1_000));
        assert_eq!(pause(at(1_300), at(1_300)), Duration::from_millis(300));
        assert_eq!(pause(at(999), at(999)), PAUSE_MIN, "it fell due behind the pass");
        assert_eq!(pause(at(500), at(1_300)), Duration::from_millis(300), "the first has failed");
        assert_eq!(pause(at(500), None), PERIOD);
        assert_eq!(pause(at(9_000), at(9_000)), PERIOD);
    }
}
