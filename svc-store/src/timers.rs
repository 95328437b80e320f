//! What is due: timers of rows, and ledger records that wait for their places. It becomes commands like any other.
//!
//! **Invariant:** nothing is decided here. A scan finds keys; the commands read them again and decide.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use svc_core::command::{Command, Reply};
use svc_core::engine::{Failure, done_with, sequences, steps_of};
use svc_core::refusal::Kind;
use svc_core::state::evidence::Entry;
use svc_core::store::{CommitError, Found, Key, Range, Row as _};
use svc_core::value::Timestamp;
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::{Index, SHARDS, instant_order};

use crate::error::{StoreError, caught};
use crate::following::{Followed, Following};
use crate::gate::Core;
use crate::lasting::{Lasting, with_causes};
use crate::scans::scan_each;

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    /// When the next timer is due, as far as rows tell.
    pub(crate) next: Option<Timestamp>,
    /// The same of those that this pass has not come to: what it has tried and is due still waits its turn.
    pub(crate) ahead: Option<Timestamp>,
    /// Whether there was anything to place.
    pub(crate) placed: bool,
    /// Whether there is more to do for a due row than one pass does.
    pub(crate) more: bool,
    /// What was the matter first with what could not be read: all else was done all the same.
    pub(crate) trouble: Option<Failure<StoreError>>,
    /// Whether it has missed what a shard has that is due.
    missed: bool,
}

impl Pass {
    /// Keeps in mind that something could not be read.
    fn note(&mut self, failure: Failure<StoreError>) {
        self.trouble.get_or_insert(failure);
    }
}

/// Looks over all shards once, has what is due done, and waits for it. Where a row cannot be read, whatever is due beside it is done
/// all the same, and what was the matter is told at the end.
pub(crate) fn pass(core: &Core, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let pass = all(core, following);
    following.turn(pass.as_ref().is_ok_and(|it| !it.missed));
    pass
}

fn all(core: &Core, following: &mut Following) -> Result<Pass, Failure<StoreError>> {
    let mut pass = Pass::default();
    // A store that answers nobody answers no shard either.
    for looked in [renew(core), core.put_off.look(core)] {
        if let Err(failure) = looked {
            pass.note(failure);
        }
    }
    for shard in 0..SHARDS {
        match one(core, shard, following, &mut pass) {
            Err(Failure::Load(error)) if error.is_of_a_row() => {
                pass.missed = true;
                pass.note(Failure::Load(error));
            }
            done => done?,
        }
    }
    Ok(pass)
}

/// Has what is due in a shard done. Placing does not wait for a timer's row that cannot be read.
fn one(core: &Core, shard: u128, following: &mut Following, pass: &mut Pass) -> Result<(), Failure<StoreError>> {
    let until = instant_order(core.clock.now()).saturating_add(1);
    let woken = wake(core, shard, until, following, pass);
    let placed = place(core, shard)?;
    pass.placed |= placed.any;
    if let Some(failure) = placed.unread {
        pass.note(failure);
    }
    woken?;
    let next = first(core, shard, 0)?;
    let ahead = if next.is_some_and(|it| instant_order(it) < until) { first(core, shard, until)? } else { next };
    pass.next = earlier(pass.next, next);
    pass.ahead = earlier(pass.ahead, ahead);
    Ok(())
}

/// When the first timer of a shard is due, from this place of the index on.
fn first(core: &Core, shard: u128, from: u128) -> Result<Option<Timestamp>, Failure<StoreError>> {
    let found = scan_each(core, &Range { from, ..Range::all(Index::Wake, shard, 1) })?;
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

/// Wakes the rows of a shard whose time has come, those before `until` in its index. One that fails, or cannot be read, stays due, and
/// neither keeps the others waiting nor is tried at every pass.
fn wake(
    core: &Core,
    shard: u128,
    until: u128,
    following: &mut Following,
    pass: &mut Pass,
) -> Result<(), Failure<StoreError>> {
    let mut range = Range { until, ..Range::all(Index::Wake, shard, DUE_MAX) };
    let mut stepped = Vec::new();
    for _ in 0..SCANS_MAX {
        let due = scan_each(core, &range)?;
        let Some(last) = due.last() else { break };
        range.after = Some((last.order, last.key));
        let (mut rows, mut commands) = (Vec::with_capacity(due.len()), Vec::with_capacity(due.len()));
        for listed in due {
            let row = (listed.order, listed.key);
            match listed.found() {
                // Each step makes it due anew, a moment later.
                Ok(_) if stepped.contains(&row.1) => {}
                Ok(found) => {
                    if following.goes_by_steps() && steps_of(&found) > 1 {
                        stepped.push(row.1);
                    }
                    if let Some(command) = begin(core, &found, following, pass)? {
                        rows.push(row);
                        commands.push(command);
                    }
                }
                Err(error) => {
                    let failure = Failure::Load(error);
                    if following.rests_anew(core, row) {
                        tracing::error!(row = ?row.1, error = with_causes(&failure), "what is due cannot be read");
                    }
                    pass.note(failure);
                }
            }
        }
        for (row, outcome) in rows.into_iter().zip(outcomes(core, commands)?) {
            if let Some(why) = outcome {
                tracing::error!(row = ?row.1, error = why, "what was due could not be done");
                following.rest(core, row);
            }
        }
    }
    Ok(())
}

/// What ends a due row's business, where nothing has to be done for it before that is not done yet.
fn begin(
    core: &Core,
    found: &Found,
    following: &mut Following,
    pass: &mut Pass,
) -> Result<Option<Command>, Failure<StoreError>> {
    let followed = following.go_on(core, found)?;
    pass.more |= followed == Followed::More;
    // A stop of which something is still to be done stays due.
    if followed != Followed::Done {
        return Ok(None);
    }
    // Steps of one hold are commits of their own, each as large as a commit may be: nothing else that is due waits for all of them.
    let steps = steps_of(found);
    if following.goes_by_steps() {
        pass.more |= steps > 1;
    } else {
        for _ in 1..steps {
            run(core, vec![done_with(found)])?;
        }
    }
    Ok(Some(done_with(found)))
}

/// What came of placing the records of a shard.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Whether there were any.
    pub(crate) any: bool,
    /// What was the matter first with a record that could not be read. It waits for its place, and those of others do not wait for it.
    pub(crate) unread: Option<Failure<StoreError>>,
    /// In whose ledgers a record of theirs has found no place, as far as records tell whose they are, and why.
    pub(crate) behind: BTreeMap<WorkspaceId, Failure<StoreError>>,
}

/// Gives waiting records of a shard their places, in the order of their commits. The order is the ledger's, so one step is
/// done before the next is looked for.
pub(crate) fn place(core: &Core, shard: u128) -> Result<Placed, Failure<StoreError>> {
    let (mut placed, mut behind) = (Placed::default(), BTreeMap::new());
    let mut range = Range::all(Index::Unplaced, shard, PLACED_MAX);
    for _ in 0..SCANS_MAX {
        let listed = scan_each(core, &range)?;
        let is_last = listed.len() < PLACED_MAX;
        range.after = listed.last().map(|it| (it.order, it.key));
        let mut waiting = Vec::with_capacity(listed.len());
        for it in listed {
            let key = it.key;
            match it.found() {
                // Behind one that found no place none of the same ledger is given one: the order is that of their commits.
                Ok(found) if is_of(&found, &placed.behind) => {}
                Ok(found) => waiting.push(found),
                Err(error) => {
                    let whose = error.whose();
                    let error = if let Key::Entry(record) = key { error.of_record(record) } else { error };
                    behind.extend(whose.map(|it| (it, Failure::Load(error.clone()))));
                    placed.unread = placed.unread.or(Some(Failure::Load(error)));
                }
            }
        }
        placed.any |= !waiting.is_empty();
        core.newest.see_records(&waiting);
        let sequences = sequences(&waiting);
        let whose: Vec<WorkspaceId> = sequences.iter().map(|it| it.workspace).collect();
        let done = run_each(core, sequences.into_iter().map(Command::from).collect())?;
        let left = whose.into_iter().zip(done).filter(|(_, is_done)| !is_done);
        placed.behind.extend(left.map(|(whose, _)| (whose, Failure::Contended)));
        if is_last {
            break;
        }
    }
    placed.behind.extend(behind);
    Ok(placed)
}

fn is_of(found: &Found, whose: &BTreeMap<WorkspaceId, Failure<StoreError>>) -> bool {
    found.row.record.as_ref().and_then(Entry::peel).is_some_and(|it| whose.contains_key(&it.workspace))
}

/// Has commands done and waits for them; whether all of them were. A full queue or a store that does not answer ends the
/// pass; what a single command comes to is its own affair.
pub(crate) fn run(core: &Core, commands: Vec<Command>) -> Result<bool, Failure<StoreError>> {
    Ok(run_each(core, commands)?.into_iter().all(|is_done| is_done))
}

/// The same; whether each was.
fn run_each(core: &Core, commands: Vec<Command>) -> Result<Vec<bool>, Failure<StoreError>> {
    let names: Vec<&'static str> = commands.iter().map(Command::name).collect();
    let mut done = Vec::with_capacity(names.len());
    for (command, outcome) in names.into_iter().zip(outcomes(core, commands)?) {
        if let Some(why) = &outcome {
            tracing::error!(command, error = why, "what was due could not be done");
        }
        done.push(outcome.is_none());
    }
    Ok(done)
}

/// Has commands done and waits for them: of each that could not be, why. What ends the pass ends it once all that were queued have come
/// to something.
fn outcomes(core: &Core, commands: Vec<Command>) -> Result<Vec<Option<String>>, Failure<StoreError>> {
    let (mut queued, mut ended) = (Vec::with_capacity(commands.len()), None);
    for command in commands {
        match core.lanes.submit(command) {
            Ok(outcome) => queued.push(outcome),
            Err(failure) => {
                ended = Some(failure);
                break;
            }
        }
    }
    let mut outcomes = Vec::with_capacity(queued.len());
    for outcome in queued {
        let failure = match pollster::block_on(outcome) {
            Ok(Ok(Reply::Woken(Some(lapsed)))) => {
                core.feed.tell_lapse(lapsed);
                None
            }
            Ok(Ok(_)) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(Failure::Load(StoreError::Closed)),
        };
        outcomes.push(match failure {
            Some(Failure::Refused(refusal)) if refusal.kind() != Kind::NotReady => Some(refusal.type_().to_owned()),
            Some(failure) if is_its_own(&failure) => Some(with_causes(&failure)),
            Some(failure) => {
                ended.get_or_insert(failure);
                None
            }
            None => None,
        });
    }
    ended.map_or(Ok(outcomes), Err)
}

/// Whether a row that cannot be read or written is the matter: it is its own command's trouble, and nothing else waits for it.
const fn is_its_own(failure: &Failure<StoreError>) -> bool {
    match failure {
        Failure::Commit(CommitError::Rejected(_)) => true,
        Failure::Load(error) => error.is_of_a_row(),
        _ => false,
    }
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
    let trouble = passed.as_ref().map_or_else(Some, |it| it.trouble.as_ref());
    lasting.see("what is due cannot all be looked for", trouble.map(|it| it as &dyn std::error::Error));
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
