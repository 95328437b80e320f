//! Live events: what happens in a workspace, told to the people who watch it (CONTRACT part 6).
//!
//! The ledger is the one source: its records, in its order, each with its place as the event's id. While somebody watches a
//! workspace, one follower reads its newly placed records, once for all watchers, whenever the gate tells that the chain has
//! grown; nobody asks again and again. A watcher who is further behind than the follower remembers reads the ledger itself,
//! page by page.
//!
//! **Invariant:** a watcher holds no more memory than a few pages, however slow its client and however much happens.
//! **Invariant:** nothing is told to a session that had ended before it happened to be read.

mod event;
mod reader;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use svc_core::engine::Failure;
use svc_core::rules::people::by::Person;
use svc_core::state::evidence::{Chain, Entry};
use svc_core::state::gate::Agent;
use svc_core::state::people::{Account, Principal, Role};
use svc_core::store::{Key, Range, Record, Row as _};
use svc_core::value::Id as _;
use svc_core::value::id::{AccountId, WorkspaceId};
use svc_core::value::link::Index;
use svc_store::{Changes, Gate, Lasting, StoreError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use self::event::Event;
pub(crate) use self::reader::stream;
use crate::supervised::supervise;

/// Streams of one account at most.
pub(crate) const STREAMS_MAX: u32 = 100;
/// Events that a follower remembers for its watchers.
const REMEMBERED: usize = 2_048;
/// Records that are read together.
const PAGE: usize = 256;
/// How long a follower waits to be told before it looks by itself, and whether anybody still watches.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long is waited where the store does not answer.
const REST: Duration = Duration::from_secs(1);
/// How long what is placed is gathered before it is read.
const GATHER: Duration = Duration::from_millis(50);

/// Everybody who watches.
#[derive(Debug)]
pub(crate) struct Live {
    gate: Gate,
    watched: Mutex<Watched>,
    ended: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Watched {
    followers: HashMap<WorkspaceId, Weak<Follower>>,
    /// Whom a change of a row concerns: sessions, accounts and memberships of those who watch.
    seats: BTreeMap<(Key, u64), Arc<Notify>>,
    accounts: HashMap<AccountId, u32>,
    next: u64,
    listening: bool,
}

/// What the watchers of one workspace share.
#[derive(Debug)]
struct Follower {
    workspace: WorkspaceId,
    /// Told when the chain has grown.
    grown: Arc<Notify>,
    /// How many records have been read: every event of an older one was remembered.
    read: watch::Sender<u64>,
    remembered: Mutex<Remembered>,
}

#[derive(Debug)]
struct Remembered {
    /// Every event of a record from this one on is here.
    from: u64,
    events: VecDeque<Arc<Event>>,
}

/// A watcher's place: it counts against the account, and hears when its session may have ended. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    live: Arc<Live>,
    person: Person,
    role: Role,
    number: u64,
    touched: Arc<Notify>,
    follower: Arc<Follower>,
    /// How many records there were before the watcher was answered: whatever comes after is heard.
    size: u64,
}

impl Live {
    /// Nobody watches yet.
    pub(crate) fn new(gate: Gate) -> Arc<Self> {
        Arc::new(Self { gate, watched: Mutex::default(), ended: watch::Sender::new(false) })
    }

    /// Ends every stream, and those that are asked for from now on at their beginning.
    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
    }

    /// A place to watch from, unless the account has too many.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) fn seat(self: &Arc<Self>, person: Person, role: Role) -> Result<Option<Seat>, Failure<StoreError>> {
        let size = self.size(person.workspace)?;
        let mut watched = self.watched();
        let streams = watched.accounts.entry(person.account).or_default();
        if *streams >= STREAMS_MAX {
            return Ok(None);
        }
        *streams = streams.saturating_add(1);
        if !watched.listening {
            watched.listening = true;
            let (live, mut heard) = (Arc::clone(self), Some((self.gate.changes(), self.gate.growth())));
            drop(supervise("live events", move |_| {
                // One that is begun again may have missed anything.
                let missed = heard.is_none();
                let (changes, growth) = heard.take().unwrap_or_else(|| (live.gate.changes(), live.gate.growth()));
                listen(Arc::clone(&live), (changes, growth), missed)
            }));
        }
        let known = watched.followers.get(&person.workspace).and_then(Weak::upgrade);
        let follower = known.unwrap_or_else(|| {
            let follower = Arc::new(Follower::new(person.workspace, size));
            watched.followers.retain(|_, it| it.strong_count() > 0);
            watched.followers.insert(person.workspace, Arc::downgrade(&follower));
            let (gate, own, grown) = (self.gate.clone(), Arc::downgrade(&follower), Arc::clone(&follower.grown));
            drop(supervise("a follower of a ledger", move |_| {
                follow(gate.clone(), Weak::clone(&own), Arc::clone(&grown))
            }));
            follower
        });
        // Whatever was placed while nobody listened is looked for at once.
        follower.grown.notify_one();
        let (number, touched) = (watched.next, Arc::new(Notify::new()));
        watched.next = watched.next.wrapping_add(1);
        for key in concerning(&person) {
            watched.seats.insert((key, number), Arc::clone(&touched));
        }
        drop(watched);
        Ok(Some(Seat { live: Arc::clone(self), person, role, number, touched, follower, size }))
    }

    /// How many records of a workspace have their places.
    fn size(&self, workspace: WorkspaceId) -> Result<u64, Failure<StoreError>> {
        self.gate.read(|scope| Ok(scope.get::<Chain>(workspace)?.map_or(0, |it| it.size)))
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those whom changed rows concern.
    fn tell(&self, keys: &[Key]) {
        let watched = self.watched();
        for key in keys {
            if let Key::Chain(workspace) = key
                && let Some(follower) = watched.followers.get(workspace).and_then(Weak::upgrade)
            {
                follower.grown.notify_one();
            }
            for (_, touched) in watched.seats.range((*key, 0)..=(*key, u64::MAX)) {
                touched.notify_one();
            }
        }
    }

    /// Has every ledger that is watched looked at. Whoever's session has ended meanwhile is told nothing of it: that is looked at
    /// before they are told of anything.
    fn tell_followers(&self) {
        self.watched().followers.values().filter_map(Weak::upgrade).for_each(|it| it.grown.notify_one());
    }

    /// Wakes everybody: something may have been missed.
    fn tell_all(&self) {
        self.tell_followers();
        let watched = self.watched();
        watched.seats.values().for_each(|it| it.notify_one());
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut watched = self.live.watched();
        for key in concerning(&self.person) {
            watched.seats.remove(&(key, self.number));
        }
        if let Some(streams) = watched.accounts.get_mut(&self.person.account) {
            *streams = streams.saturating_sub(1);
            if *streams == 0 {
                watched.accounts.remove(&self.person.account);
            }
        }
    }
}

/// The rows that say whether a session is good in its workspace, and with which role.
fn concerning(person: &Person) -> [Key; 3] {
    [person.voucher(), Account::key(person.account), Principal::key(person.principal)]
}

/// Hears of changes for as long as anybody watches; `missed` says that some were told to nobody.
async fn listen(live: Arc<Live>, (mut changes, mut growth): (Changes, Changes), missed: bool) {
    if missed {
        live.tell_all();
    }
    loop {
        let heard = async {
            tokio::select! {
                change = changes.recv() => change,
                grown = growth.recv() => grown,
            }
        };
        match timeout(PATIENCE, heard).await {
            Ok(Ok(change)) if change.any => live.tell_followers(),
            Ok(Ok(change)) => live.tell(&change.keys),
            Ok(Err(RecvError::Lagged(_))) => live.tell_all(),
            Ok(Err(RecvError::Closed)) => return,
            Err(_quiet) => {}
        }
        let mut watched = live.watched();
        if watched.seats.is_empty() {
            watched.listening = false;
            return;
        }
    }
}

/// Reads what is placed, for as long as anybody watches.
async fn follow(gate: Gate, follower: Weak<Follower>, grown: Arc<Notify>) {
    let mut lasting = Lasting::default();
    loop {
        let Some(it) = follower.upgrade() else { return };
        let caught_up = it.catch_up(&gate);
        drop(it);
        let failure = caught_up.as_ref().err().map(|it| it as &dyn std::error::Error);
        lasting.see("what happens in a workspace cannot be read for those who watch it", failure);
        if caught_up.is_err() {
            tokio::time::sleep(REST).await;
            continue;
        }
        // Whether it was told or not: who was not told looks all the same.
        let _ = timeout(PATIENCE, grown.notified()).await;
        // Under load every commit tells: what comes within a moment is read at once.
        tokio::time::sleep(GATHER).await;
    }
}

impl Follower {
    fn new(workspace: WorkspaceId, size: u64) -> Self {
        let remembered = Mutex::new(Remembered { from: size, events: VecDeque::new() });
        Self { workspace, grown: Arc::default(), read: watch::Sender::new(size), remembered }
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catch_up(&self, gate: &Gate) -> Result<(), Failure<StoreError>> {
        loop {
            let from = *self.read.borrow();
            let Some(page) = page(gate, self.workspace, from)? else { return Ok(()) };
            self.remember(page.events);
            self.read.send_replace(page.next);
        }
    }

    fn remember(&self, events: Vec<Event>) {
        let mut remembered = self.remembered();
        remembered.events.extend(events.into_iter().map(Arc::new));
        while remembered.events.len() > REMEMBERED {
            let Some(gone) = remembered.events.pop_front() else { break };
            remembered.from = gone.seq.saturating_add(1);
        }
    }

    /// The events of records from `from` on that are remembered, at most about [`PAGE`], and the record to go on from; `None`
    /// where older ones are asked for.
    fn recall(&self, from: u64) -> Option<(Vec<Arc<Event>>, u64)> {
        let remembered = self.remembered();
        if from < remembered.from {
            return None;
        }
        let start = remembered.events.partition_point(|it| it.seq < from);
        let mut events = Vec::new();
        for event in remembered.events.range(start..) {
            // The events of one record stay together.
            if events.len() >= PAGE && events.last().is_some_and(|last: &Arc<Event>| last.seq != event.seq) {
                let next = event.seq;
                return Some((events, next));
            }
            events.push(Arc::clone(event));
        }
        let next = events.last().map_or(from, |it| it.seq.saturating_add(1));
        Some((events, next.max(*self.read.borrow())))
    }
}

/// What a page of the ledger comes to.
struct Page {
    events: Vec<Event>,
    /// The record to go on from.
    next: u64,
}

/// A page of a ledger's records from `from` on; `None` where there are none.
fn page(gate: &Gate, workspace: WorkspaceId, from: u64) -> Result<Option<Page>, Failure<StoreError>> {
    let range = Range { from: from.into(), ..Range::all(Index::LedgerOf, workspace.bits(), PAGE) };
    let found = gate.scan(&range)?;
    let Some(last) = found.last() else { return Ok(None) };
    let next = u64::try_from(last.order).unwrap_or(u64::MAX).saturating_add(1);
    let entry = |record: &Option<Record>| record.as_ref().and_then(Entry::peel).map(|it| Event::of(it));
    let events: Vec<Event> = found.iter().filter_map(|it| entry(&it.row.record)).flatten().collect();
    let agents: Vec<Key> = events.iter().filter_map(|it| it.agent).map(Agent::key).collect();
    let owned = gate.read(|scope| {
        scope.want(&agents)?;
        let mut owned = Vec::with_capacity(events.len());
        for event in &events {
            let agent = match event.agent {
                Some(id) => scope.get::<Agent>(id)?,
                None => None,
            };
            owned.push(event.clone().owned(agent.as_deref()));
        }
        Ok(owned)
    })?;
    Ok(Some(Page { events: owned, next }))
}

#[cfg(test)]
mod tests {
    use svc_core::rules::people::sessions::EndSession;
    use svc_core::state::people::Settings as WorkspaceSettings;
    use svc_core::store::MemoryStore;
    use svc_core::testing::people::sign_in_owner;
    use svc_core::testing::world::World;
    use svc_store::Settings;

    use super::*;

    /// Nobody listens once nobody watches; whoever watches then is told of changes again.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_watches_after_nobody_did_is_told() {
        let mut store = MemoryStore::new();
        let mut world = World::over(store.clone(), WorkspaceSettings::default());
        let people = [1, 2, 3].map(|n| sign_in_owner(&mut store, world.workspace(), n, world.now()));
        let (clock, signer) = (world.clock().clone(), Arc::clone(world.engine().signer()));
        let mut settings = Settings::default();
        settings.timers = false;
        let gate = Gate::over(store, clock, signer, settings).unwrap();
        let live = Live::new(gate.clone());
        let end = |person: &Person| {
            let own = person.session().unwrap();
            gate.execute(EndSession { by: own, ended: own }).unwrap();
        };
        drop(live.seat(people[0], Role::Owner).unwrap().unwrap());
        end(&people[1]);
        let over = async {
            while live.watched().listening {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(20), over).await.unwrap();
        let seat = live.seat(people[0], Role::Owner).unwrap().unwrap();
        end(&people[2]);
        timeout(Duration::from_secs(20), seat.touched.notified()).await.unwrap();
    }
}
