//! Looking over all shards of an index for what is to be done.

use svc_core::engine::Failure;
use svc_core::store::{Found, Key, Listed};
use svc_core::value::link::SHARDS;
use svc_store::{Lasting, StoreError};
use thiserror::Error;

/// Why a look at a shard did not see everything.
#[derive(Debug, Error)]
pub(crate) enum Missed {
    /// The shard could not be looked at.
    #[error(transparent)]
    Shard(#[from] Failure<StoreError>),
    /// A row could not be read; whatever is beside it was seen.
    #[error("{0:?} cannot be read")]
    Row(Key, #[source] StoreError),
}

/// The rows of a page that can be read; the first that cannot is kept in `missed`.
pub(crate) fn readable(page: Vec<Listed<StoreError>>, missed: &mut Option<Missed>) -> impl Iterator<Item = Found> {
    page.into_iter().filter_map(|listed| {
        let key = listed.key;
        listed.found().map_err(|error| missed.get_or_insert(Missed::Row(key, error))).ok()
    })
}

/// Looks, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Shards {
    /// The shard that the next look begins with: where there is too much for one, each has its turn.
    first: u128,
    lasting: Lasting,
}

impl Shards {
    /// Has `look` look at each shard. A row that cannot be read is its shard's trouble; a store that does not answer would say the
    /// same of every shard, and is asked again at the next look. `trouble` is what the log says while looks fail.
    pub(crate) fn look(&mut self, trouble: &'static str, mut look: impl FnMut(u128) -> Result<(), Missed>) {
        let first = self.first;
        self.first = (first + 1) % SHARDS;
        let mut failed = None;
        for shard in (first..SHARDS).chain(0..first) {
            let Err(missed) = look(shard) else { continue };
            let is_one = match &missed {
                Missed::Row(..) => true,
                Missed::Shard(Failure::Load(error)) => error.is_of_a_row() || matches!(error, StoreError::Corrupt(_)),
                Missed::Shard(_) => false,
            };
            failed = Some(missed);
            if !is_one {
                break;
            }
        }
        self.lasting.see(trouble, failed.as_ref().map(|it| it as &dyn std::error::Error));
    }
}

#[cfg(test)]
mod tests {
    use svc_core::store::{Loaded, Stamp};
    use svc_core::value::Id as _;
    use svc_core::value::id::DeliveryId;

    use super::*;

    /// Every shard is looked at, each first in its turn, until the store does not answer.
    #[test]
    fn each_shard_has_its_turn() {
        let mut shards = Shards::default();
        for begin in [0, 1, 2] {
            let mut seen = Vec::new();
            shards.look("nothing is found", |shard| {
                seen.push(shard);
                Ok(())
            });
            assert_eq!(seen.first(), Some(&begin));
            seen.sort_unstable();
            assert_eq!(seen, (0..SHARDS).collect::<Vec<_>>());
        }
        let mut asked = 0;
        shards.look("nothing is found", |_| {
            asked += 1;
            if asked < 3 { Ok(()) } else { Err(Failure::Load(StoreError::Closed).into()) }
        });
        assert_eq!(asked, 3);
    }

    /// What is wrong with one row or one shard keeps nobody from the others: each is looked at, and it is told of.
    #[test]
    fn what_is_wrong_with_one_shard_hides_no_other() {
        let row = || StoreError::Malformed("a row");
        let corrupt = || StoreError::Corrupt(std::sync::Arc::new(std::io::Error::other("a page")));
        let troubles: [&dyn Fn() -> Missed; 3] = [
            &|| Missed::Row(Key::Job(DeliveryId::from_bits(1)), StoreError::Closed),
            &|| Failure::Load(row()).into(),
            &|| Failure::Load(corrupt()).into(),
        ];
        for trouble in troubles {
            let (mut shards, mut asked) = (Shards::default(), 0);
            shards.look("nothing is found", |shard| {
                asked += 1;
                if shard == 1 { Err(trouble()) } else { Ok(()) }
            });
            assert_eq!(asked, SHARDS, "{:?}", trouble());
        }
    }

    /// Of a page what can be read is had, and the first that cannot is kept.
    #[test]
    fn what_can_be_read_of_a_page_is_had() {
        let listed = |bits: u128, row| {
            let key = Key::Job(DeliveryId::from_bits(bits));
            Listed { order: bits, key, row }
        };
        let read = |bits: u128| {
            let key = Key::Job(DeliveryId::from_bits(bits));
            listed(bits, Ok(Loaded { key, stamp: Stamp::ABSENT, record: None }))
        };
        let page =
            vec![read(1), listed(2, Err(StoreError::Malformed("2"))), listed(3, Err(StoreError::Closed)), read(4)];
        let mut missed = None;
        let had: Vec<u128> = readable(page, &mut missed).map(|it| it.order).collect();
        assert_eq!(had, [1, 4]);
        let Some(Missed::Row(key, StoreError::Malformed("2"))) = missed else { panic!("{missed:?}") };
        assert_eq!(key, Key::Job(DeliveryId::from_bits(2)));
    }
}
