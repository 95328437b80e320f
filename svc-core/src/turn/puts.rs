//! What one command puts: mostly a handful of rows, and now and then thousands.

use std::collections::HashMap;

use crate::store::{Key, Record};

/// So many are looked through one by one; more of them are looked up.
const FEW: usize = 16;

/// New images by key, in the order of putting; `None` deletes.
#[derive(Clone, Debug, Default)]
pub(super) struct Puts {
    list: Vec<(Key, Option<Record>)>,
    /// Where each stands in the list, once there are more than a few.
    places: HashMap<Key, usize, foldhash::fast::FixedState>,
}

impl Puts {
    /// What was put under `key`: `None` where nothing was, `Some(None)` where the row was deleted.
    pub(super) fn get(&self, key: &Key) -> Option<Option<&Record>> {
        self.list.get(self.place(key)?).map(|(_, record)| record.as_ref())
    }

    /// Puts another image where one was put before; whether there was one.
    pub(super) fn replace(&mut self, key: &Key, record: &Option<Record>) -> bool {
        let Some((_, put)) = self.place(key).and_then(|place| self.list.get_mut(place)) else { return false };
        put.clone_from(record);
        true
    }

    /// Puts the first image of a row.
    pub(super) fn add(&mut self, key: Key, record: Option<Record>) {
        let place = self.list.len();
        self.list.push((key, record));
        if place > FEW {
            self.places.insert(key, place);
        } else if place == FEW {
            self.places.extend(self.list.iter().enumerate().map(|(place, (key, _))| (*key, place)));
        }
    }

    fn place(&self, key: &Key) -> Option<usize> {
        if self.list.len() > FEW {
            self.places.get(key).copied()
        } else {
            self.list.iter().position(|(put, _)| put == key)
        }
    }
}

impl IntoIterator for Puts {
    type Item = (Key, Option<Record>);
    type IntoIter = std::vec::IntoIter<(Key, Option<Record>)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::people::Roster;
    use crate::store::Row as _;
    use crate::value::Id as _;
    use crate::value::id::WorkspaceId;

    /// Few or many, each is found, replaced where it stands, and comes out once, in the order of putting.
    #[test]
    fn what_was_put_is_found() {
        let roster = |number, epoch| {
            let roster = Roster { workspace: WorkspaceId::from_bits(number), epoch, agents: 0, mandates: 0 };
            (Roster::key(roster.workspace), Some(Roster::wrap(std::sync::Arc::new(roster))))
        };
        let mut puts = Puts::default();
        for number in 0..50 {
            let (key, record) = roster(number, 1);
            assert!(puts.get(&key).is_none() && !puts.replace(&key, &record));
            puts.add(key, record);
            for before in 0..=number {
                assert_eq!(puts.get(&roster(before, 0).0), Some(roster(before, 1).1.as_ref()), "{before} of {number}");
            }
        }
        for number in [3, 16, 17, 40] {
            let (key, record) = roster(number, 2);
            assert!(puts.replace(&key, &record));
            assert_eq!(puts.get(&key), Some(record.as_ref()));
        }
        let (key, _) = roster(5, 0);
        assert!(puts.replace(&key, &None));
        assert_eq!(puts.get(&key), Some(None));
        let out: Vec<_> = puts.into_iter().collect();
        assert!(out.iter().map(|(key, _)| *key).eq((0..50).map(|number| roster(number, 0).0)));
    }
}
