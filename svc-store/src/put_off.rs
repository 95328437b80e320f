//! What a clock that was ahead has put off: sweeps, and calls to the outside. They are listed at a time that is long to come, where nobody
//! who looks for what is due finds them, so they are looked for once. A server by whose clock time has gone back decides nothing until it
//! is started again ([`Newest`](crate::newest::Newest)), so that once is enough.
//!
//! **Invariant:** nothing is decided here. A scan finds keys; the commands read them again and decide. It counts as looked for once every
//! list was read to its end; a row that cannot be read is told of and left out.

use std::sync::atomic::{AtomicBool, Ordering};

use svc_core::command::{Command, Wake};
use svc_core::engine::Failure;
use svc_core::state::edge::LEASE;
use svc_core::store::{Key, Loaded, Range, Record};
use svc_core::value::Timestamp;
use svc_core::value::link::{Index, SHARDS, instant_order};

use crate::error::StoreError;
use crate::gate::Core;
use crate::lasting::with_causes;
use crate::scans::scan_each;
use crate::timers::run;

/// Rows that are looked at at once.
const PAGE: usize = 256;
/// Whether it was looked for.
#[derive(Debug, Default)]
pub(crate) struct PutOff(AtomicBool);

impl PutOff {
    /// Looks for it, where nobody has, and has it done now.
    ///
    /// # Errors
    /// The store does not answer, or nothing is decided at the moment: it is to be looked for again.
    pub(crate) fn look(&self, core: &Core) -> Result<(), Failure<StoreError>> {
        if self.0.load(Ordering::Acquire) {
            return Ok(());
        }
        sweeps(core)?;
        (0..SHARDS).try_for_each(|shard| calls(core, shard))?;
        self.0.store(true, Ordering::Release);
        Ok(())
    }
}

fn sweeps(core: &Core) -> Result<(), Failure<StoreError>> {
    let mut range = Range::all(Index::Workspaces, 0, PAGE);
    loop {
        // Which workspaces there are their keys tell: none waits for one that cannot be read.
        let page = scan_each(core, &range)?;
        let keys: Vec<Key> = page.iter().filter_map(|it| sweep_of(&it.key)).collect();
        let rows = readable(core, &keys)?;
        let now = core.clock.now();
        let off = rows.iter().filter(|it| matches!(&it.record, Some(Record::Sweep(sweep)) if sweep.is_put_off(now)));
        bring_forward(core, off.map(|it| it.key).collect())?;
        match page.last() {
            Some(last) if page.len() == PAGE => range.after = Some((last.order, last.key)),
            _ => return Ok(()),
        }
    }
}

const fn sweep_of(workspace: &Key) -> Option<Key> {
    if let Key::Workspace(id) = workspace { Some(Key::Sweep(*id)) } else { None }
}

/// Those of some rows that can be read. One that cannot be cannot be the next time either: nothing that is due waits for it.
fn readable(core: &Core, keys: &[Key]) -> Result<Vec<Loaded>, Failure<StoreError>> {
    let mut reader = core.readers.open().map_err(Failure::Load)?;
    match reader.load(keys) {
        Err(error) if error.is_of_a_row() => {}
        loaded => return loaded.map_err(Failure::Load),
    }
    let mut rows = Vec::with_capacity(keys.len());
    for key in keys {
        match reader.load(&[*key]) {
            Ok(loaded) => rows.extend(loaded),
            Err(error) if error.is_of_a_row() => tell(key, &error),
            Err(error) => return Err(Failure::Load(error)),
        }
    }
    Ok(rows)
}

fn tell(key: &Key, error: &StoreError) {
    tracing::error!(row = ?key, error = with_causes(error), "whether it was put off cannot be read");
}

fn calls(core: &Core, shard: u128) -> Result<(), Failure<StoreError>> {
    // Nothing that lasts is shorter than a lease.
    let from = instant_order(core.clock.now().plus(LEASE));
    let mut range = Range { from, newest_first: true, ..Range::all(Index::Outbox, shard, PAGE) };
    loop {
        let page = scan_each(core, &range)?;
        let now = core.clock.now();
        let mut off = Vec::new();
        for listed in &page {
            match &listed.row {
                Ok(row) if is_put_off(row, now) => off.push(listed.key),
                Ok(_) => {}
                Err(error) => tell(&listed.key, error),
            }
        }
        bring_forward(core, off)?;
        match page.last() {
            Some(last) if page.len() == PAGE => range.after = Some((last.order, last.key)),
            _ => return Ok(()),
        }
    }
}

fn is_put_off(row: &Loaded, now: Timestamp) -> bool {
    matches!(&row.record, Some(Record::Job(job)) if job.is_put_off(now))
}

fn bring_forward(core: &Core, keys: Vec<Key>) -> Result<(), Failure<StoreError>> {
    if keys.is_empty() {
        return Ok(());
    }
    tracing::warn!(
        rows = keys.len(),
        "a clock that was ahead has put off what was to come within a day: it is brought forward"
    );
    run(core, keys.into_iter().map(|key| Command::from(Wake(key))).collect()).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::sync::Arc;

    use svc_core::rules::gate::authorize::Authorize;
    use svc_core::rules::gate::callback::RegisterCallback;
    use svc_core::state::edge::{Job, JobState};
    use svc_core::state::gate::{Action, Sweep};
    use svc_core::state::people::Settings as WorkspaceSettings;
    use svc_core::store::{Clock as _, MemoryStore};
    use svc_core::testing::FakeClock;
    use svc_core::testing::world::{World, request, terms};
    use svc_core::value::Span;
    use svc_core::value::text::UrlText;

    use super::*;
    use crate::gate::{Gate, Settings};

    const READS: &str = r#"{"name":"Read","actions":["crm.read"]}"#;
    const DAY: Span = Span::hours(24);

    /// A server that is started after the clock was ahead for a moment sweeps when it would have, and tries again what was tried then. What
    /// is only to come is left as it is.
    #[test]
    fn a_start_brings_forward_what_was_put_off() {
        let store = MemoryStore::default();
        let settings = WorkspaceSettings { retention_days: Some(30), ..WorkspaceSettings::default() };
        let mut world = World::over(store.clone(), settings);
        let agent = world.agent().with_mandate(terms(READS)).register();
        let mut told = |url: &str| {
            let action = world.authorize(&agent, request("crm.read")).id();
            let url = UrlText::parse(url).unwrap();
            world.run(RegisterCallback { caller: agent, action, url }).unwrap().job.unwrap().id
        };
        let [waits, sends, later] = ["https://a.example", "https://b.example", "https://c.example"].map(&mut told);
        let (right, ahead) = (world.now(), world.now().plus(Span::hours(24 * 3_653)));
        world.edit::<Sweep>(agent.workspace, |it| it.due = ahead);
        world.edit::<Job>(waits, |it| it.state = JobState::Waiting { due: ahead });
        world.edit::<Job>(sends, |it| it.state = JobState::Sending { since: ahead, until: ahead.plus(LEASE) });
        let six_hours = JobState::Waiting { due: right.plus(Span::hours(6)) };
        world.edit::<Job>(later, |it| it.state = six_hours);

        let clock = FakeClock::new(right);
        let signer = Arc::clone(world.engine().signer());
        let gate = Gate::over(store, clock.clone(), signer, Settings { timers: false, ..Settings::default() }).unwrap();
        gate.tick().unwrap();
        let job = |id| gate.read(|scope| scope.get::<Job>(id)).unwrap().unwrap();
        assert_eq!((job(waits).due(), job(sends).due()), (Some(right), Some(right)));
        assert_eq!(job(later).state, six_hours);
        let due = || gate.read(|scope| scope.get::<Sweep>(agent.workspace)).unwrap().unwrap().due;
        assert_eq!(due(), right.plus(DAY), "it was swept, and is on its next day");
        let old = gate.execute(Authorize::new(agent, request("crm.read"), [7; 16])).unwrap().id();
        for _ in 0..32 {
            clock.advance(DAY);
            gate.tick().unwrap();
        }
        assert!(gate.read(|scope| scope.get::<Action>(old)).unwrap().unwrap().erased, "{}", clock.now());
    }
}
