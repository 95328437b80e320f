//! Bodies of model traffic: long ones, which are kept for as long as their calls take.
//!
//! **Invariant:** of such bodies no more is kept at once than there is room for, of all together, of one workspace and of one caller,
//! however many calls are under way and whoever still waits for them.

use crate::body::Fate;
use crate::shares::{Share, Shares};

/// Bytes that one place stands for.
const PLACE_BYTES: usize = 16 * 1024;
/// Bytes that there is room for: with what is made of a body on its way, up to three times as much memory.
const OF_ALL_BYTES: usize = 512 * 1024 * 1024;
/// How many of the largest bodies there is room for at least, whatever the largest is.
const OF_ALL_LARGEST: usize = 8;
/// The part of it that one workspace may have, so that it leaves room for the others.
const OF_WORKSPACE: usize = 2;
/// And one caller.
const OF_CALLER: usize = 4;

/// The room for such bodies.
#[derive(Debug)]
pub(crate) struct ModelBodies {
    by_workspace: Shares<u128>,
    by_caller: Shares<u128>,
}

/// The room of a body that comes, as far as it has come.
#[derive(Debug)]
pub(crate) struct Coming<'a> {
    bodies: &'a ModelBodies,
    workspace: u128,
    caller: u128,
    bytes: usize,
    places: usize,
    kept: Kept,
}

/// The room of a body, given back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<(Share<u128>, Share<u128>)>);

impl ModelBodies {
    /// Room for bodies of at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self::of(bytes_max.saturating_mul(OF_ALL_LARGEST).max(OF_ALL_BYTES))
    }

    /// Room for so many bytes of all.
    fn of(bytes: usize) -> Self {
        let places = bytes.div_ceil(PLACE_BYTES);
        Self {
            by_workspace: Shares::new(places, places.div_ceil(OF_WORKSPACE)),
            by_caller: Shares::new(usize::MAX, places.div_ceil(OF_CALLER)),
        }
    }

    /// That of a body that begins, of the workspace and the caller with these bits.
    pub(crate) fn begin(&self, workspace: u128, caller: u128) -> Coming<'_> {
        Coming { bodies: self, workspace, caller, bytes: 0, places: 0, kept: Kept::default() }
    }
}

impl Coming<'_> {
    /// What becomes of a piece of so many bytes.
    pub(crate) fn fate(&mut self, bytes: usize) -> Fate {
        self.bytes = self.bytes.saturating_add(bytes);
        let places = self.bytes.div_ceil(PLACE_BYTES);
        let more = places.saturating_sub(self.places);
        if more == 0 {
            return Fate::Keep;
        }
        let of_caller = self.bodies.by_caller.take_many(self.caller, more);
        match of_caller.and_then(|it| Some((self.bodies.by_workspace.take_many(self.workspace, more)?, it))) {
            Some(room) => {
                self.kept.0.push(room);
                self.places = places;
                Fate::Keep
            }
            None => {
                // Of what is refused nothing is kept.
                self.kept = Kept::default();
                Fate::Refuse
            }
        }
    }

    /// The room of what has come, for whoever goes on with it.
    pub(crate) fn kept(&mut self) -> Kept {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One caller has a quarter of the room and one workspace half; whoever finds none keeps none, and what was kept is given back.
    #[test]
    fn there_is_room_for_so_much() {
        const LARGEST: usize = 4 * PLACE_BYTES;
        let bodies = ModelBodies::of(16 * LARGEST);
        let sent = |workspace, caller, bytes: usize| {
            let mut body = bodies.begin(workspace, caller);
            let fates = (body.fate(bytes / 2), body.fate(bytes / 2));
            (fates == (Fate::Keep, Fate::Keep)).then(|| body.kept())
        };
        let mut held: Vec<Kept> = (0..4).filter_map(|_| sent(1, 1, LARGEST)).collect();
        assert!(held.len() == 4 && sent(1, 1, 2).is_none());
        held.extend((0..4).filter_map(|_| sent(1, 2, LARGEST)));
        assert!(held.len() == 8 && sent(1, 3, 2).is_none());
        held.extend((4..12).filter_map(|caller| sent(2 + caller % 2, caller, LARGEST)));
        assert!(held.len() == 16 && sent(9, 9, 2).is_none());
        drop(held.remove(15));
        assert!(sent(9, 9, LARGEST + 2 * PLACE_BYTES).is_none() && sent(9, 9, LARGEST).is_some());
        held.clear();
        assert!(sent(1, 1, 4 * LARGEST).is_some());
    }

    /// A body that comes in many small pieces takes no more places than one that comes at once.
    #[test]
    fn pieces_share_places() {
        let bodies = ModelBodies::of(4 * PLACE_BYTES);
        let mut body = bodies.begin(1, 1);
        assert!((0..PLACE_BYTES).all(|_| body.fate(1) == Fate::Keep));
        assert_eq!(body.kept().0.len(), 1);
    }
}
