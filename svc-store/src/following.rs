//! What follows for a due row that takes more than a command: the sweep of a workspace, the end of all that a stopped agent
//! held. It is done a few pages a pass, so that nothing else that is due waits for the largest of them.
//!
//! **Invariant:** nothing is decided here, and nothing is lost with the process: a row stays due until all of it is done, and a
//! pass that begins anew finds what is left.

use std::collections::HashMap;
use std::sync::Arc;

use svc_core::engine::{Failure, Follow, followed_by, stop_followed_by};
use svc_core::refusal::Kind;
use svc_core::rules::gate::freeze::FollowStop;
use svc_core::rules::gate::lift::{Lift, LiftHold, ending_under};
use svc_core::rules::gate::restart::RestartAgent;
use svc_core::state::gate::Agent;
use svc_core::store::{Found, Key, Record};
use svc_core::turn::{Halt, Scope};
use svc_core::value::{Span, Timestamp};

use crate::error::StoreError;
use crate::gate::{Core, Gate};
use crate::lasting::with_causes;
use crate::scans::scan;
use crate::timers::run;

/// Pages that one pass does for one due row: of a sweep that is a thousand actions.
const PAGES_MAX: usize = 8;
/// Pages that a restart does of what its agent's stop ends: tens of thousands of actions.
const RESTART_PAGES_MAX: usize = 64;
/// The same for all agents of a lift together: beside those who did little lately, hundreds who did much.
const LIFT_PAGES_MAX: usize = 256;
/// Agents whose stops are noted as followed at once.
const DONE_MAX: usize = 256;
/// How long a due row of which something could not be done rests: it is looked through from its beginning then.
const RESTS: Span = Span::minutes(1);

/// How far a due row has come.
#[derive(Clone, Debug)]
enum Progress {
    /// These are left, the first of them from its page on; whether everything before them was done.
    At { left: Vec<Follow>, done: bool },
    /// Something could not be done: not before this.
    Rests(Timestamp),
}

/// Whether a due row is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// All that follows for it was done, or will be looked for anew when it is next due.
    Done,
    /// There is more, in the next pass.
    More,
    /// It stays due, and rests.
    Rests,
}

/// Due rows that passes have begun with.
#[derive(Debug)]
pub(crate) struct Following {
    /// By what they are due at and which they are: what is due anew since is begun anew.
    rows: HashMap<(u128, Key), Progress>,
    /// Of `rows`, those that this pass has seen.
    seen: HashMap<(u128, Key), Progress>,
    /// Pages that one pass does for one row.
    pages: usize,
}

impl Default for Following {
    fn default() -> Self {
        Self::of(PAGES_MAX)
    }
}

impl Following {
    /// A pass that does everything at once.
    pub(crate) fn without_end() -> Self {
        Self::of(usize::MAX)
    }

    fn of(pages: usize) -> Self {
        Self { rows: HashMap::new(), seen: HashMap::new(), pages }
    }

    /// A pass is over: rows that it has not seen, where it saw all, are due no more.
    pub(crate) fn turn(&mut self, saw_all: bool) {
        let seen = std::mem::take(&mut self.seen);
        if saw_all {
            self.rows = seen;
        } else {
            self.rows.extend(seen);
        }
    }

    /// Whether one pass does but a part of what takes many commands.
    pub(crate) const fn goes_by_steps(&self) -> bool {
        self.pages != usize::MAX
    }

    /// Notes that what was to be done for a due row could not be: it is not tried again at every pass.
    pub(crate) fn rest(&mut self, core: &Core, row: (u128, Key)) {
        self.seen.insert(row, Progress::Rests(core.clock.now().plus(RESTS)));
    }

    /// The same of a due row that cannot be read, where it does not rest; whether it is to be told of now.
    pub(crate) fn rests_anew(&mut self, core: &Core, row: (u128, Key)) -> bool {
        match self.rows.remove(&row) {
            Some(rests @ Progress::Rests(until)) if core.clock.now() < until => {
                self.seen.insert(row, rests);
                false
            }
            _ => {
                self.rest(core, row);
                true
            }
        }
    }

    /// Does what follows for a due row, as far as one pass goes.
    ///
    /// # Errors
    /// The store does not answer, or the queue is full: what was done is done, and the row is begun anew.
    pub(crate) fn go_on(&mut self, core: &Core, found: &Found) -> Result<Followed, Failure<StoreError>> {
        let row = (found.order, found.row.key);
        let begin = || followed_by(found, core.clock.now());
        let begun = self.rows.remove(&row).unwrap_or_else(|| Progress::At { left: begin(), done: true });
        let (mut left, mut done) = match begun {
            Progress::At { left, done } => (left, done),
            Progress::Rests(until) if core.clock.now() < until => {
                self.seen.insert(row, begun);
                return Ok(Followed::Rests);
            }
            Progress::Rests(_) => (begin(), true),
        };
        let mut pages = 0;
        while let Some(follow) = left.first_mut() {
            if pages == self.pages {
                self.seen.insert(row, Progress::At { left, done });
                return Ok(Followed::More);
            }
            pages += 1;
            match page_of(core, follow) {
                Ok(page) => {
                    done &= page.all;
                    if !page.more {
                        left.remove(0);
                    }
                }
                // Nothing else that is due waits for a row that cannot be read, be it for this row or for another.
                Err(Failure::Load(error)) if error.is_of_a_row() => {
                    tracing::error!(error = with_causes(&error), "what follows could not be read");
                    done = false;
                    left.remove(0);
                }
                Err(failure) => return Err(failure),
            }
        }
        // A sweep goes on the next day where it could not get through: what it cannot do today it cannot do in a minute.
        if done || matches!(found.row.record, Some(Record::Sweep(_))) {
            return Ok(Followed::Done);
        }
        self.seen.insert(row, Progress::Rests(core.clock.now().plus(RESTS)));
        Ok(Followed::Rests)
    }
}

impl Gate {
    /// Starts an agent again, and waits for it. What its stop ends is ended first, or it would still fill the agent's limits, and
    /// where no other admin is named one is looked for, as a sole owner may not restart their own agent after an incident where
    /// there is one: run it where it may take its time.
    ///
    /// # Errors
    /// Those of [`restart_agent`](svc_core::rules::gate::restart::restart_agent); `not_ready` where there is more to end than
    /// one restart waits for, until the timers have done it.
    pub fn restart(&self, asked: &RestartAgent) -> Result<Arc<Agent>, Failure<StoreError>> {
        let admin = match (asked.admin, asked.by.principal()) {
            (None, Some(own)) => self.another_admin(asked.workspace, own)?,
            (named, _) => named,
        };
        let asked = RestartAgent { admin, ..asked.clone() };
        match self.execute(asked.clone()) {
            Err(Failure::Refused(it)) if it.kind() == Kind::NotReady => {}
            restarted => return restarted,
        }
        let agent = self.read(|scope| scope.get::<Agent>(asked.agent))?;
        self.finish_stops(agent.as_slice(), RESTART_PAGES_MAX)?;
        self.execute(asked)
    }

    /// Lifts a hold, or asks a second owner, and waits for it. What the stops of those agents end that it restarts is ended first, as
    /// far as one lift waits for it; the others are restarted by the timers, a moment later. Run it where it may take its time.
    ///
    /// # Errors
    /// Those of [`lift_hold`](svc_core::rules::gate::lift::lift_hold).
    pub fn lift(&self, asked: &LiftHold) -> Result<Lift, Failure<StoreError>> {
        self.end_before_lift(|scope| ending_under(scope, asked))?;
        self.execute(asked.clone())
    }

    /// Ends what the stops of these agents end, as far as one lift goes. Where none may be lifted there is nothing to end: who lifts
    /// is told why.
    pub(crate) fn end_before_lift(
        &self,
        ending: impl Fn(&mut Scope<'_>) -> Result<Vec<Arc<Agent>>, Halt>,
    ) -> Result<(), Failure<StoreError>> {
        match self.read(ending) {
            Ok(agents) => self.finish_stops(&agents, LIFT_PAGES_MAX),
            Err(Failure::Refused(_)) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Ends what the stops of agents end, one agent after another, on as many pages at most. An agent that has done nothing lately
    /// takes none.
    fn finish_stops(&self, agents: &[Arc<Agent>], mut pages: usize) -> Result<(), Failure<StoreError>> {
        let mut done = Vec::new();
        for agent in agents {
            if self.finish_stop(agent, &mut pages)? {
                done.push(FollowStop { agent: agent.id, epoch: agent.epoch }.into());
            }
            if done.len() == DONE_MAX {
                run(self.core(), std::mem::take(&mut done))?;
            }
        }
        run(self.core(), done).map(drop)
    }

    /// Whether all that an agent's stop ends is ended. What cannot be read or written is not: nobody restarts the agent.
    fn finish_stop(&self, agent: &Agent, pages: &mut usize) -> Result<bool, Failure<StoreError>> {
        let mut left = stop_followed_by(agent);
        while let Some(follow) = left.first_mut() {
            if *pages == 0 {
                return Ok(false);
            }
            match page_of(self.core(), follow) {
                Ok(page) if page.all => {
                    *pages -= usize::from(page.any);
                    if !page.more {
                        left.remove(0);
                    }
                }
                Ok(_) => return Ok(false),
                Err(Failure::Load(error)) if error.is_of_a_row() => return Ok(false),
                Err(failure) => return Err(failure),
            }
        }
        Ok(true)
    }
}

/// What came of a page.
struct Page {
    /// Whether all of it was done.
    all: bool,
    /// Whether there was anything on it.
    any: bool,
    /// Whether there is another page.
    more: bool,
}

/// Does the next page of what follows.
fn page_of(core: &Core, follow: &mut Follow) -> Result<Page, Failure<StoreError>> {
    let page = scan(core, &follow.range)?;
    let all = run(core, follow.commands(&page, &mut |range| scan(core, range))?)?;
    Ok(Page { all, any: !page.is_empty(), more: follow.turn_page(&page) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use svc_core::rules::gate::Caller;
    use svc_core::rules::gate::authorize::Authorize;
    use svc_core::rules::gate::decide::{Choice, DecideApproval};
    use svc_core::rules::gate::fleet::Fleet;
    use svc_core::rules::gate::freeze::FreezeAgent;
    use svc_core::rules::people::by::By;
    use svc_core::rules::read::get_action;
    use svc_core::state::gate::{Agent, Status, Sweep, Verb};
    use svc_core::state::people::{Hold, HoldTask, HoldWork, Role, Selector, Settings as WorkspaceSettings};
    use svc_core::store::{Clock as _, Commit, Committed, MemoryStore, Row as _, Store, Write};
    use svc_core::testing::FakeClock;
    use svc_core::testing::fault::{Fault, Faulty, Operation};
    use svc_core::testing::people::{sign_in, sign_in_owner};
    use svc_core::testing::world::{World, payment, request, terms};
    use svc_core::value::text::Note;

    use super::*;
    use crate::backend::Backend;
    use crate::fleet::FleetRequest;
    use crate::gate::{Gate, Settings};
    use crate::timers::pass;

    const OFFICE: &str = r#"{"name":"Office","actions":["payment","crm.*"],"limits":{"currency":"EUR","perAction":5000,"perPeriod":{"amount":9000,"period":"month"}}}"#;

    /// A store that rejects commits while it is told to, and counts those it was asked for.
    #[derive(Clone, Default)]
    struct Rejects {
        store: MemoryStore,
        on: Arc<AtomicBool>,
        commits: Arc<AtomicUsize>,
    }

    impl Backend for Rejects {
        type Session = Faulty<MemoryStore>;

        fn lanes(&self) -> usize {
            1
        }

        fn writer(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
            let own = self.clone();
            Ok(Faulty::new(self.store.clone(), move |operation| {
                if operation != Operation::Commit {
                    return None;
                }
                own.commits.fetch_add(1, Ordering::SeqCst);
                own.on.load(Ordering::SeqCst).then_some(Fault::Rejected)
            }))
        }

        fn reader(&self) -> Result<Self::Session, <Self::Session as Store>::Error> {
            Ok(Faulty::new(self.store.clone(), |_| None))
        }
    }

    fn site() -> (Gate, Rejects, Caller, FakeClock) {
        let rejects = Rejects::default();
        let mut world = World::over(rejects.store.clone(), WorkspaceSettings::default());
        let agent = world.agent().with_mandate(terms(OFFICE)).register();
        let settings = Settings { timers: false, ..Settings::default() };
        let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
        let gate = Gate::over(rejects.clone(), clock.clone(), signer, settings).unwrap();
        (gate, rejects, agent, clock)
    }

    /// A sweep of many pages goes on from pass to pass where it was, and what is due behind it is done meanwhile.
    #[test]
    fn a_large_sweep_keeps_nobody_waiting() {
        let (gate, _, agent, clock) = site();
        let mut newest = None;
        for _ in 0..300 {
            clock.advance(Span::millis(1));
            newest = Some(gate.execute(Authorize::new(agent, request("crm.update"), [7; 16])).unwrap().id());
        }
        // A sweep that is late would wait, so it comes each day; on the sixteenth, a minute before the payment lapses, all of it is old.
        let day = Span::hours(24);
        for _ in 0..14 {
            clock.advance(day);
            gate.tick().unwrap();
        }
        clock.advance(Span::minutes(24 * 60 - 14));
        let pays = gate.execute(Authorize::new(agent, payment(100, "EUR", "a.example"), [7; 16])).unwrap();
        clock.advance(Span::minutes(14));
        gate.tick().unwrap();
        clock.advance(day);
        clock.advance(Span::minutes(2));
        let swept_to = || gate.read(|scope| scope.get::<Sweep>(agent.workspace)).unwrap().unwrap().closed_to;
        let mut following = Following::of(1);
        assert!(pass(gate.core(), &mut following).unwrap().more);
        let seen = gate.read(|scope| get_action(scope, &agent, pays.id())).unwrap();
        assert_eq!(seen.status(), Status::Lapsed, "it is due later than the sweep");
        let first = swept_to();
        assert!(first.is_some() && first < newest);
        assert!(pass(gate.core(), &mut following).unwrap().more);
        assert!(swept_to() > first && swept_to() < newest, "the second page");
        let mut passes = 2;
        while pass(gate.core(), &mut following).unwrap().more {
            passes += 1;
            assert!(passes < 10);
        }
        assert_eq!(swept_to(), newest);
        assert!(following.rows.is_empty());
    }

    /// A restart ends what the stop ends before it: what was revoked is no payment that another could repeat. Where it cannot, the
    /// agent stays stopped.
    #[test]
    fn a_restart_ends_what_its_stop_ends() {
        let (gate, rejects, agent, clock) = site();
        let pay = || gate.execute(Authorize::new(agent, payment(100, "EUR", "a.example"), [7; 16])).unwrap();
        let revoked = pay().id();
        let reason = Note::parse("odd").unwrap();
        let (workspace, id, by) = (agent.workspace, agent.agent, By::Program);
        gate.execute(FreezeAgent { workspace, agent: id, by: by.clone(), reason: reason.clone() }).unwrap();
        let restart = RestartAgent { workspace, agent: id, by, reason, admin: None };
        rejects.on.store(true, Ordering::SeqCst);
        assert!(gate.restart(&restart).is_err());
        rejects.on.store(false, Ordering::SeqCst);
        assert!(gate.restart(&restart).unwrap().is_active());
        let seen = gate.read(|scope| get_action(scope, &agent, revoked)).unwrap();
        assert_eq!(seen.status(), Status::Revoked);
        clock.advance(Span::minutes(1));
        let again = pay();
        assert_eq!((again.verb(), again.reasons().len()), (Verb::Allow, 0));
    }

    /// A lift that restarts ends what the stops of its agents end before it, also where a second owner agrees to it: once it is
    /// answered they run, and what the stop denied fills no limit.
    #[test]
    fn a_lift_ends_what_the_stops_end() {
        for owners in [1, 2] {
            let (gate, rejects, agent, clock) = site();
            let pay =
                |amount| gate.execute(Authorize::new(agent, payment(amount, "EUR", "a.example"), [7; 16])).unwrap();
            assert_eq!(pay(5_000).verb(), Verb::Allow);
            let (workspace, reason) = (agent.workspace, Note::parse("odd").unwrap());
            let store = &mut rejects.store.clone();
            let first = sign_in_owner(store, workspace, 1, clock.now());
            let freeze = FleetRequest {
                workspace,
                by: By::Program,
                selector: Selector::everyone(),
                reason: reason.clone(),
                confirm: Some(1),
                seen: None,
            };
            let Fleet::Frozen(halted) = gate.freeze_fleet(&freeze).unwrap() else { panic!("the agents are counted") };
            let second = (owners == 2).then(|| sign_in(store, workspace, Role::Owner, 2, clock.now()));
            let (hold, by) = (halted.hold.unwrap(), By::Person(first));
            match (gate.lift(&LiftHold { workspace, hold, by, reason, restart: true }).unwrap(), second) {
                (Lift::Lifted(_), None) => {}
                (Lift::Asked(asked), Some(second)) => {
                    gate.decide(&DecideApproval::new(second, asked.id, Choice::Approve)).unwrap();
                }
                (lift, _) => panic!("{lift:?}"),
            }
            assert!(gate.read(|scope| scope.get::<Agent>(agent.agent)).unwrap().unwrap().is_active(), "{owners}");
            clock.advance(Span::minutes(1));
            let again = pay(4_000);
            assert_eq!((again.verb(), again.reasons().len()), (Verb::Allow, 0));
        }
    }

    /// Where something that follows a stop cannot be done, it stays due and is tried again after a rest, not at every pass.
    #[test]
    fn what_could_not_be_done_rests() {
        let (gate, rejects, agent, clock) = site();
        gate.execute(Authorize::new(agent, payment(100, "EUR", "a.example"), [7; 16])).unwrap();
        gate.tick().unwrap();
        let reason = Note::parse("odd").unwrap();
        gate.execute(FreezeAgent { workspace: agent.workspace, agent: agent.agent, by: By::Program, reason }).unwrap();
        let follows = || gate.read(|scope| scope.get::<Agent>(agent.agent)).unwrap().unwrap().following.is_some();
        let mut following = Following::default();
        let tried = |following: &mut Following| {
            let before = rejects.commits.load(Ordering::SeqCst);
            assert!(!pass(gate.core(), following).unwrap().more);
            rejects.commits.load(Ordering::SeqCst) > before
        };
        rejects.on.store(true, Ordering::SeqCst);
        assert!(tried(&mut following) && follows());
        rejects.on.store(false, Ordering::SeqCst);
        // The freeze's own record waits for its place at each pass.
        tried(&mut following);
        assert!(!tried(&mut following) && follows());
        clock.advance(RESTS);
        assert!(tried(&mut following));
        assert!(!follows());
    }

    /// A timer that fails is tried again after a rest, not at every pass.
    #[test]
    fn a_timer_that_fails_rests() {
        let (gate, rejects, agent, clock) = site();
        let pays = gate.execute(Authorize::new(agent, payment(100, "EUR", "a.example"), [7; 16])).unwrap();
        gate.tick().unwrap();
        clock.advance(Span::hours(24 * 3));
        let mut following = Following::default();
        let tried = |following: &mut Following| {
            let before = rejects.commits.load(Ordering::SeqCst);
            assert!(!pass(gate.core(), following).unwrap().more);
            rejects.commits.load(Ordering::SeqCst) - before
        };
        rejects.on.store(true, Ordering::SeqCst);
        assert!(tried(&mut following) > 0);
        assert_eq!(tried(&mut following), 0);
        clock.advance(RESTS);
        assert!(tried(&mut following) > 0);
        rejects.on.store(false, Ordering::SeqCst);
        clock.advance(RESTS);
        assert!(tried(&mut following) > 0);
        let seen = gate.read(|scope| get_action(scope, &agent, pays.id())).unwrap();
        assert_eq!(seen.status(), Status::Lapsed);
    }

    /// What a hold does to very many agents is done a step a pass, so that nothing else that is due waits for all of it.
    #[test]
    fn a_hold_goes_a_step_a_pass() {
        let (gate, mut rejects, agent, clock) = site();
        let freeze = FleetRequest {
            workspace: agent.workspace,
            by: By::Program,
            selector: Selector::everyone(),
            reason: Note::parse("odd").unwrap(),
            confirm: Some(1),
            seen: None,
        };
        let Fleet::Frozen(halted) = gate.freeze_fleet(&freeze).unwrap() else { panic!("the agents are counted") };
        let id = halted.hold.unwrap();
        gate.tick().unwrap();
        let key = Hold::key(id);
        let loaded = rejects.store.load(&[key]).unwrap().remove(0);
        let before = loaded.record.unwrap();
        let mut hold = Hold::clone(Hold::peel(&before).unwrap());
        let work = HoldWork::new(HoldTask::Void, clock.now(), None);
        hold.work = Some(work.clone());
        hold.then = vec![work.clone(), work];
        let record = Hold::wrap(Arc::new(hold));
        let (unlink, link) = (before.links(), record.links());
        let write = Write { key, record: Some(record), unlink, link };
        let done = rejects.store.commit(&Commit { checks: vec![(key, loaded.stamp)], writes: vec![write] }).unwrap();
        assert!(matches!(done, Committed::Applied(_)));
        clock.advance(Span::minutes(1));
        let left = || gate.read(|scope| scope.get::<Hold>(id)).unwrap().unwrap().steps_left();
        let mut following = Following::default();
        let mut seen = vec![left()];
        while pass(gate.core(), &mut following).unwrap().more {
            seen.push(left());
            assert!(seen.len() < 10, "{seen:?}");
        }
        assert_eq!((seen, left()), (vec![3, 2, 1], 0));
    }

    /// A due row that cannot be read is told of as its rest begins, and not at every look while it lasts.
    #[test]
    fn what_cannot_be_read_is_told_once_a_rest() {
        let (gate, _, agent, clock) = site();
        let row = (7, Key::Agent(agent.agent));
        let mut following = Following::default();
        let looked = |following: &mut Following| {
            let is_told = following.rests_anew(gate.core(), row);
            following.turn(true);
            is_told
        };
        for _ in 0..2 {
            assert!(looked(&mut following));
            assert!(!looked(&mut following) && !looked(&mut following));
            clock.advance(Span::millis(RESTS.as_millis() - 1));
            assert!(!looked(&mut following));
            clock.advance(Span::millis(1));
        }
        // One that is due anew since is another's business.
        assert!(following.rests_anew(gate.core(), (8, row.1)));
    }
}
