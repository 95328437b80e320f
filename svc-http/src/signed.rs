//! Bodies that a signature is to vouch for: nobody knows whose they are before they are there.
//!
//! **Invariant:** of such bodies no more is kept at once than there is room for, of all addresses together and of each, and nothing of
//! one that nobody can have signed.

use svc_core::refusal::Refusal;

use crate::address::RateAddress;
use crate::body::Fate;
use crate::inbound::signature::Decoy;
use crate::shares::{Share, Shares};

/// Bytes that one place stands for.
const PLACE_BYTES: usize = 16 * 1024;
/// How many of the largest bodies there is room for.
const OF_ALL: usize = 8;
/// And of one address.
const OF_ONE: usize = 2;
/// Places of an address that was refused too often: whoever shares it with a guesser still sends what events mostly are.
const OF_SPENT: usize = 16;

/// The room for such bodies.
#[derive(Debug)]
pub(crate) struct Room(Shares<RateAddress>);

/// What becomes of a body.
#[derive(Debug)]
pub(crate) enum Taking<'a> {
    /// It is kept: who sends it is known, or nobody has to be.
    Kept,
    /// It is kept as far as there is room.
    Counted(Counted<'a>),
    /// It is read past: nobody can have signed it, which is told as of one that was looked at.
    Passed(Decoy, Refusal),
}

/// The room that one body has, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    room: &'a Room,
    address: RateAddress,
    of_one: usize,
    bytes: usize,
    places: Vec<Share<RateAddress>>,
}

impl Room {
    /// Room for bodies of at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let of_one = bytes_max.div_ceil(PLACE_BYTES).max(1);
        Self(Shares::new(of_one.saturating_mul(OF_ALL), of_one.saturating_mul(OF_ONE)))
    }

    /// That of a body that begins, from an address that was refused too often or was not.
    pub(crate) fn begin(&self, address: RateAddress, is_spent: bool) -> Taking<'_> {
        let of_one = if is_spent { OF_SPENT } else { usize::MAX };
        Taking::Counted(Counted { room: self, address, of_one, bytes: 0, places: Vec::new() })
    }
}

impl Taking<'_> {
    /// What becomes of its next piece.
    pub(crate) fn fate(&mut self, piece: &[u8]) -> Fate {
        match self {
            Self::Kept => Fate::Keep,
            Self::Counted(it) => it.fate(piece.len()),
            Self::Passed(decoy, _) => {
                decoy.update(piece);
                Fate::Pass
            }
        }
    }
}

impl Counted<'_> {
    fn fate(&mut self, bytes: usize) -> Fate {
        self.bytes = self.bytes.saturating_add(bytes);
        while self.places.len() < self.bytes.div_ceil(PLACE_BYTES) {
            match self.room.0.take_within(self.address, self.of_one) {
                Some(place) => self.places.push(place),
                None => {
                    // Of what is refused nothing is kept.
                    self.places.clear();
                    return Fate::Refuse;
                }
            }
        }
        Fate::Keep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One address has room for two of the largest bodies, all together for eight; one that was refused too often has a quarter of a
    /// mebibyte. Whoever finds none keeps none, and what was kept is given back.
    #[test]
    fn there_is_room_for_so_much() {
        const LARGEST: usize = 64 * PLACE_BYTES;
        let room = Room::new(LARGEST);
        let sent = |address, is_spent, bytes: usize| {
            let mut body = room.begin(RateAddress(address), is_spent);
            let half = vec![0; bytes / 2];
            let fates = (body.fate(&half), body.fate(&half));
            (body, fates)
        };
        let (kept, refused) = ((Fate::Keep, Fate::Keep), (Fate::Keep, Fate::Refuse));
        let (_one, fates) = sent(1, false, LARGEST);
        assert_eq!(fates, kept);
        let (two, fates) = sent(1, false, LARGEST);
        assert_eq!(fates, kept);
        assert_eq!(sent(1, false, 2).1, (Fate::Refuse, Fate::Refuse));
        drop(two);
        assert_eq!(sent(1, true, 2).1, (Fate::Refuse, Fate::Refuse), "a spent address has its share already");
        assert_eq!(sent(2, true, OF_SPENT * PLACE_BYTES).1, kept);
        assert_eq!(sent(2, true, OF_SPENT * PLACE_BYTES + 2).1, refused);
        let (_three, fates) = sent(1, false, LARGEST);
        assert_eq!(fates, kept);
        let others: Vec<_> = (3..9).map(|address| sent(address, false, LARGEST)).collect();
        assert!(others.iter().all(|(_, fates)| *fates == kept));
        assert_eq!(sent(9, false, 2).1, (Fate::Refuse, Fate::Refuse), "all of it is taken");
        drop(others);
        assert_eq!(sent(9, false, LARGEST).1, kept);
    }
}
