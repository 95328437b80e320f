//! The rows that a driver keeps between turns: a bounded cache. Stale rows make commits conflict; they never make a wrong
//! decision.
//!
//! A row is looked for once a command and known by its number from then on: what a turn reads, stages and checks are numbers.

use std::fmt;
use std::hash::{Hash as _, Hasher as _};

use foldhash::SharedSeed;
use foldhash::fast::FoldHasher;
use hashbrown::HashTable;

use crate::store::{Key, Record, Stamp};
use crate::value::seed::Seed;

/// A row's place in [`Rows`], as long as the turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At(u32);

impl At {
    /// The place with this number; none where there are more rows than have numbers, which no memory holds.
    fn of(place: usize) -> Option<Self> {
        u32::try_from(place).ok().map(Self)
    }

    fn place(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// How much use a row can gather: it is passed over so often before it is let go.
const USE_MAX: u8 = 3;

/// Rows by key, each at the stamp it was seen at. An absent row is known too.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Places alone: a table that holds no keys is small enough to stay near the processor.
    places: HashTable<At>,
    hashes: Hashes,
    slots: Vec<Option<Slot>>,
    free: Vec<At>,
    capacity: usize,
    /// Where looking for what may go goes on.
    hand: usize,
}

/// How keys are hashed. Callers choose some of them, and rows that are not there are kept too: hashed as anybody can, keys could be
/// chosen that all have one place.
#[derive(Clone)]
struct Hashes {
    first: u64,
    others: SharedSeed,
    is_secret: bool,
}

impl Default for Hashes {
    fn default() -> Self {
        Self { first: 0, others: SharedSeed::from_u64(0), is_secret: false }
    }
}

/// Without what they go by.
impl fmt::Debug for Hashes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hashes").field("is_secret", &self.is_secret).finish_non_exhaustive()
    }
}

impl Hashes {
    fn of_seed(seed: &Seed) -> Self {
        let drawn = u128::from_be_bytes(seed.next_of(b"rows").draw(0, 0)).to_be_bytes();
        let half = |from: usize| {
            let bytes = drawn.iter().skip(from).take(8);
            bytes.fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
        };
        Self { first: half(0), others: SharedSeed::from_u64(half(8)), is_secret: true }
    }

    fn of(&self, key: &Key) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.first, &self.others);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

#[derive(Clone, Debug)]
struct Slot {
    key: Key,
    /// The commit that wrote the committed image, or [`Stamp::ABSENT`].
    stamp: Stamp,
    /// The newest image: what a turn has staged, or else what is committed.
    record: Option<Record>,
    is_staged: bool,
    used: u8,
}

/// What there was of a row before a turn staged an image of it.
#[derive(Clone, Debug)]
pub(super) struct Before {
    pub(super) at: At,
    /// The committed image.
    pub(super) record: Option<Record>,
    /// Whether the row was known.
    is_known: bool,
}

impl Rows {
    /// A cache that keeps up to `capacity` rows from turn to turn.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// The row under `key`, if it is known: its stamp, and its image or `None` where there is no row.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<(Stamp, Option<&Record>)> {
        self.slot(self.find(key)?).map(|it| (it.stamp, it.record.as_ref()))
    }

    /// Keeps what is known of `key` now. What a turn has staged over it stays: a store that was not asked for the row has nothing to
    /// say of it.
    pub fn insert(&mut self, key: Key, stamp: Stamp, record: Option<Record>) {
        let slot = Slot { key, stamp, record, is_staged: false, used: 1 };
        match self.find(&key) {
            Some(at) if self.slot(at).is_some_and(|it| it.is_staged) => {}
            Some(at) => self.set(at, slot),
            None => drop(self.add(slot)),
        }
    }

    /// A turn with this seed begins: from the first on places go by a secret.
    pub(super) fn begin(&mut self, seed: &Seed) {
        if !self.hashes.is_secret && self.is_empty() {
            self.hashes = Hashes::of_seed(seed);
        }
    }

    /// Forgets everything: after an outcome that nobody knows.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }

    /// How many rows are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Where the row under `key` is, if it is known.
    pub(super) fn find(&self, key: &Key) -> Option<At> {
        let is_of_key = |at: &At| self.slot(*at).is_some_and(|it| it.key == *key);
        self.places.find(self.hashes.of(key), is_of_key).copied()
    }

    /// The newest image at a place.
    pub(super) fn newest(&self, at: At) -> Option<&Record> {
        self.slot(at)?.record.as_ref()
    }

    /// Whose place it is, and the stamp of what is committed there.
    pub(super) fn seen(&self, at: At) -> Option<(Key, Stamp)> {
        self.slot(at).map(|it| (it.key, it.stamp))
    }

    /// Puts a turn's image over the committed one. What was there before comes back, the first time.
    pub(super) fn stage(&mut self, key: Key, record: Option<Record>) -> Option<Before> {
        let Some(at) = self.find(&key) else {
            let at = self.add(Slot { key, stamp: Stamp::ABSENT, record, is_staged: true, used: 0 })?;
            return Some(Before { at, record: None, is_known: false });
        };
        let slot = self.slot_mut(at)?;
        let record = std::mem::replace(&mut slot.record, record);
        (!std::mem::replace(&mut slot.is_staged, true)).then_some(Before { at, record, is_known: true })
    }

    /// Takes back what was staged.
    pub(super) fn unstage(&mut self, before: Before) {
        if !before.is_known {
            self.remove(before.at);
        } else if let Some(slot) = self.slot_mut(before.at) {
            (slot.record, slot.is_staged) = (before.record, false);
        }
    }

    /// What was staged at a place is committed. What no decision reads any more is forgotten: kept, it would only push out what the
    /// next one reads.
    pub(super) fn applied(&mut self, at: At, stamp: Stamp) {
        let Some(slot) = self.slot_mut(at) else { return };
        if slot.record.as_ref().is_some_and(Record::is_history) {
            self.remove(at);
            return;
        }
        // That a new row was looked for says nothing of it: most are looked for once, before they are there.
        slot.used = if slot.stamp == Stamp::ABSENT { 0 } else { slot.used };
        slot.stamp = if slot.record.is_some() { stamp } else { Stamp::ABSENT };
        slot.is_staged = false;
    }

    /// Notes that a row was of use.
    pub(super) fn used(&mut self, at: At) {
        if let Some(slot) = self.slot_mut(at) {
            slot.used = slot.used.saturating_add(1).min(USE_MAX);
        }
    }

    /// Between turns: lets go of rows that are too many, those first that were of least use since they were last looked at. What was
    /// written and never read was of none.
    pub(super) fn settle(&mut self) {
        while self.places.len() > self.capacity {
            let at = self.hand;
            self.hand = self.hand.saturating_add(1);
            match self.slots.get_mut(at) {
                None => self.hand = 0,
                Some(None) => {}
                Some(Some(slot)) if slot.used > 0 => slot.used -= 1,
                Some(Some(_)) => At::of(at).into_iter().for_each(|at| self.remove(at)),
            }
        }
    }

    fn slot(&self, at: At) -> Option<&Slot> {
        self.slots.get(at.place())?.as_ref()
    }

    fn slot_mut(&mut self, at: At) -> Option<&mut Slot> {
        self.slots.get_mut(at.place())?.as_mut()
    }

    fn set(&mut self, at: At, slot: Slot) {
        if let Some(place) = self.slots.get_mut(at.place()) {
            *place = Some(slot);
        }
    }

    /// A new row's place; `None` where there are more rows than have numbers, which no memory holds.
    fn add(&mut self, slot: Slot) -> Option<At> {
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let at = At::of(self.slots.len())?;
                self.slots.push(None);
                at
            }
        };
        let hash = self.hashes.of(&slot.key);
        self.set(at, slot);
        let Self { places, slots, hashes, .. } = self;
        let slot = |at: At| slots.get(at.place())?.as_ref();
        places.insert_unique(hash, at, |at| slot(*at).map_or(0, |it| hashes.of(&it.key)));
        Some(at)
    }

    fn remove(&mut self, at: At) {
        let Some(slot) = self.slots.get_mut(at.place()).and_then(Option::take) else { return };
        if let Ok(entry) = self.places.find_entry(self.hashes.of(&slot.key), |it| *it == at) {
            entry.remove();
        }
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::state::people::Roster;
    use crate::store::Row as _;
    use crate::value::Id as _;
    use crate::value::id::WorkspaceId;

    fn key(number: u128) -> Key {
        Roster::key(WorkspaceId::from_bits(number))
    }

    /// A row is no longer than a line of a processor's cache: a decision looks at a dozen of them among very many.
    #[test]
    fn a_row_takes_one_line() {
        assert_eq!((size_of::<Key>(), size_of::<Option<Slot>>()), (32, 64));
    }

    /// There are never more rows than the capacity between turns; what is used again and again stays, what was written and never
    /// read goes first.
    #[test]
    fn what_is_used_stays() {
        let mut rows = Rows::new(8);
        for number in 0..4 {
            rows.insert(key(number), Stamp(1), None);
        }
        for number in 100..1_000 {
            for often in 0..4 {
                rows.used(rows.find(&key(often)).unwrap());
            }
            let before = rows.stage(key(number), None).unwrap();
            rows.applied(before.at, Stamp(2));
            rows.settle();
            assert!(rows.len() <= 8);
        }
        assert!((0..4).all(|it| rows.find(&key(it)).is_some()));
        assert!(rows.find(&key(999)).is_some() && rows.find(&key(100)).is_none());
        assert!(rows.slots.len() <= 9, "places are used again");
    }

    /// Places go by a secret from the first turn on, and by the same one as long as anything is known.
    #[test]
    fn places_go_by_a_secret() {
        let seed = |byte| Seed::new([byte; 32]);
        let (mut one, mut other) = (Rows::new(8), Rows::new(8));
        let plain = one.hashes.of(&key(1));
        assert_eq!(plain, other.hashes.of(&key(1)));
        one.begin(&seed(1));
        other.begin(&seed(2));
        let hash = one.hashes.of(&key(1));
        assert!(hash != plain && hash != other.hashes.of(&key(1)));
        one.insert(key(1), Stamp(1), None);
        one.begin(&seed(2));
        assert!(one.hashes.of(&key(1)) == hash && one.find(&key(1)).is_some());
        assert_eq!(format!("{:?}", one.hashes), "Hashes { is_secret: true, .. }");
    }

    /// What is staged is what a turn will write, whatever else a store says of the row meanwhile.
    #[test]
    fn what_is_staged_stays() {
        let mut rows = Rows::new(8);
        let roster = Roster { workspace: WorkspaceId::from_bits(1), epoch: 7, agents: 0, mandates: 0 };
        let staged = Some(Roster::wrap(std::sync::Arc::new(roster)));
        rows.insert(key(1), Stamp(4), None);
        let before = rows.stage(key(1), staged.clone()).unwrap();
        rows.insert(key(1), Stamp(5), None);
        assert_eq!(rows.newest(before.at), staged.as_ref());
        rows.unstage(before);
        assert_eq!(rows.get(&key(1)), Some((Stamp(4), None)));
    }

    /// A new row was looked for before it was there, and is no more use for that than one that was not.
    #[test]
    fn a_new_row_is_of_no_use_yet() {
        let mut rows = Rows::new(1);
        rows.insert(key(1), Stamp(1), None);
        rows.insert(key(2), Stamp::ABSENT, None);
        rows.used(rows.find(&key(2)).unwrap());
        let before = rows.stage(key(2), None).unwrap();
        rows.applied(before.at, Stamp(2));
        rows.settle();
        assert!(rows.find(&key(1)).is_some() && rows.find(&key(2)).is_none());
    }

    /// A capacity of nothing keeps nothing, whatever was of use.
    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        let mut rows = Rows::default();
        rows.insert(key(1), Stamp(1), None);
        rows.used(rows.find(&key(1)).unwrap());
        rows.settle();
        assert!(rows.is_empty() && rows.get(&key(1)).is_none());
    }

    /// What was staged is taken back as if it had never been, a row of its own making among it.
    #[test]
    fn what_was_staged_is_taken_back() {
        let mut rows = Rows::new(8);
        let record = |epoch| {
            let roster = Roster { workspace: WorkspaceId::from_bits(1), epoch, agents: 0, mandates: 0 };
            Some(Roster::wrap(std::sync::Arc::new(roster)))
        };
        rows.insert(key(1), Stamp(4), record(1));
        let before = rows.stage(key(1), record(2)).unwrap();
        assert!(rows.stage(key(1), record(3)).is_none(), "staged already");
        assert_eq!(rows.get(&key(1)), Some((Stamp(4), record(3).as_ref())));
        rows.unstage(before);
        assert_eq!(rows.get(&key(1)), Some((Stamp(4), record(1).as_ref())));
        let before = rows.stage(key(2), record(1)).unwrap();
        rows.unstage(before);
        assert!(rows.find(&key(2)).is_none());
    }
}
