//! Bodies that a signature is to vouch for: nobody knows whose they are before they are there.
//!
//! **Invariant:** of such bodies no more is kept at once than there is room for, of all together, of each address and for each workspace,
//! and nothing of one that nobody can have signed. Those are counted beside the others, so that who finds no room learns by it of no
//! integration.

use std::sync::Arc;

use svc_core::refusal::{Kind, Refusal};
use svc_core::value::id::WorkspaceId;

use crate::address::RateAddress;
use crate::body::Fate;
use crate::inbound::signature::Decoy;
use crate::model_bodies::{Coming, Kept};
use crate::shares::{Share, Shares};

/// Bytes that one place stands for.
const PLACE_BYTES: usize = 16 * 1024;
/// How many of the largest bodies there is room for.
const OF_ALL: usize = 8;
/// And for one workspace, whoever sends them: what strangers send to one leaves room for the others.
const OF_WORKSPACE: usize = 4;
/// And of one address.
const OF_ONE: usize = 2;
/// Places of an address that was refused too often: whoever shares it with a guesser still sends what events mostly are.
const OF_SPENT: usize = 16;

/// The room for such bodies.
#[derive(Debug)]
pub(crate) struct Room {
    by_address: Shares<RateAddress>,
    awaited: Shares<For>,
    nobodys: Shares<For>,
}

/// The workspace that something is for; of what is for the operator, none.
type For = Option<WorkspaceId>;

/// What becomes of a body.
#[derive(Debug)]
pub(crate) enum Taking<'a> {
    /// It is kept: who sends it is known, or nobody has to be.
    Kept,
    /// It is kept as far as its caller has room, for as long as its call takes.
    Model(Coming<'a>),
    /// It is kept as far as there is room.
    Counted(Counted<'a>),
    /// It is read past: nobody can have signed it, which is told as of one that was looked at, and where there would be room for one.
    Passed(Counted<'a>, Decoy, Refusal),
}

/// The room that one body has, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    by_address: &'a Shares<RateAddress>,
    by_workspace: &'a Shares<For>,
    address: RateAddress,
    workspace: For,
    of_one: usize,
    bytes: usize,
    places: Vec<(Share<RateAddress>, Share<For>)>,
}

impl Room {
    /// Room for bodies of at most `bytes_max`.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let of_one = bytes_max.div_ceil(PLACE_BYTES).max(1);
        let by_workspace = || Shares::new(of_one.saturating_mul(OF_ALL), of_one.saturating_mul(OF_WORKSPACE));
        let by_address = Shares::new(usize::MAX, of_one.saturating_mul(OF_ONE));
        Self { by_address, awaited: by_workspace(), nobodys: by_workspace() }
    }

    /// That of a body that begins, for the workspace of this name, from an address that was refused too often or was not; `nobodys` is what
    /// is told where nobody can have signed it.
    pub(crate) fn begin(
        &self,
        address: RateAddress,
        is_spent: bool,
        workspace: Option<&str>,
        nobodys: Option<Refusal>,
    ) -> Taking<'_> {
        let counted = Counted {
            by_address: &self.by_address,
            by_workspace: if nobodys.is_some() { &self.nobodys } else { &self.awaited },
            address,
            workspace: workspace.and_then(|it| WorkspaceId::parse(it).ok()),
            of_one: if is_spent { OF_SPENT } else { usize::MAX },
            bytes: 0,
            places: Vec::new(),
        };
        match nobodys {
            Some(refusal) => Taking::Passed(counted, Decoy::new(), refusal),
            None => Taking::Counted(counted),
        }
    }
}

/// Whether it says that a signed request is nobody's: it counts against its address as a wrong key does.
pub(crate) const fn is_unverified(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::WrongSignature
            | Kind::AuthenticationFailed
            | Kind::InvalidAudience
            | Kind::InvalidIssuer
            | Kind::InvalidKey
    )
}

impl Taking<'_> {
    /// The room of a model's body that has come, and what is told where it was only read past.
    ///
    /// # Errors
    /// That refusal.
    pub(crate) fn taken(&mut self) -> Result<Option<Arc<Kept>>, Refusal> {
        match self {
            Self::Model(it) => Ok(Some(Arc::new(it.kept()))),
            Self::Passed(_, _, refusal) => Err(refusal.clone()),
            Self::Kept | Self::Counted(_) => Ok(None),
        }
    }

    /// What becomes of its next piece.
    pub(crate) fn fate(&mut self, piece: &[u8]) -> Fate {
        match self {
            Self::Kept => Fate::Keep,
            Self::Model(it) => it.fate(piece.len()),
            Self::Counted(it) => it.fate(piece.len()),
            Self::Passed(counted, decoy, _) => match counted.fate(piece.len()) {
                Fate::Refuse => Fate::Refuse,
                Fate::Keep | Fate::Pass => {
                    decoy.update(piece);
                    Fate::Pass
                }
            },
        }
    }
}

impl Counted<'_> {
    fn fate(&mut self, bytes: usize) -> Fate {
        self.bytes = self.bytes.saturating_add(bytes);
        while self.places.len() < self.bytes.div_ceil(PLACE_BYTES) {
            let of_address = self.by_address.take_within(self.address, self.of_one);
            match of_address.and_then(|it| Some((it, self.by_workspace.take(self.workspace)?))) {
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
    use svc_core::value::Id as _;

    use super::*;

    /// One address has room for two of the largest bodies, all together for eight; one that was refused too often has a quarter of a
    /// mebibyte. Whoever finds none keeps none, and what was kept is given back.
    #[test]
    fn there_is_room_for_so_much() {
        const LARGEST: usize = 64 * PLACE_BYTES;
        let room = Room::new(LARGEST);
        let sent = |address, is_spent, bytes: usize| {
            // A workspace of each address's own.
            let workspace = WorkspaceId::from_bits(address).to_string();
            let mut body = room.begin(RateAddress(address), is_spent, Some(&workspace), None);
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

    /// What is sent for one workspace leaves room for the others, and what nobody can have signed takes none of what somebody has; it is
    /// refused like that all the same.
    #[test]
    fn no_workspace_takes_the_room_of_others() {
        const LARGEST: usize = 64 * PLACE_BYTES;
        let room = Room::new(LARGEST);
        let nobodys = || Some(Refusal::wrong_signature());
        let sent = |address, workspace: u128, nobodys: Option<Refusal>| {
            let is_kept = if nobodys.is_some() { Fate::Pass } else { Fate::Keep };
            let workspace = WorkspaceId::from_bits(workspace).to_string();
            let mut body = room.begin(RateAddress(address), false, Some(&workspace), nobodys);
            let fate = body.fate(&vec![0; LARGEST]);
            assert!(fate == is_kept || fate == Fate::Refuse);
            (body, fate != Fate::Refuse)
        };
        let held: Vec<_> = (0..4).map(|address| sent(address, 1, None)).collect();
        assert!(held.iter().all(|it| it.1) && !sent(9, 1, None).1 && sent(9, 2, None).1);
        let passed: Vec<_> = (10..14).map(|address| sent(address, 3, nobodys())).collect();
        assert!(passed.iter().all(|it| it.1) && !sent(9, 3, nobodys()).1 && sent(9, 3, None).1);
        let both = [sent(9, 2, None), sent(9, 4, nobodys())];
        assert!(
            both.iter().all(|it| it.1) && !sent(9, 5, nobodys()).1 && !sent(9, 5, None).1,
            "an address has one share"
        );
    }
}
