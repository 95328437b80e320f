//! The ledger's tree in stretches of 256 hashes (C2SP tlog-tiles, height 8), so that a proof of any record reads a few rows
//! however long the ledger is.
//!
//! A tile of level `l` holds nodes of level `8·l` of the tree. One of level 0 grows by some dozens of hashes at a time, of which the
//! newest lie in the chain's tail until then. One of a higher level gains a hash whenever a tile below it is full.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::merkle::{Edge, Node};
use crate::value::Id as _;
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::link::{Link, Linked, RowId};

/// Hashes of a full tile.
pub const TILE_WIDTH: u64 = 256;
/// Hashes whose root is kept beside them.
const GROUP: usize = 16;
/// Levels of the tree that a tile spans.
const HEIGHT: u32 = 8;
/// Bits of a row's number that say which tile of its level it is: a ledger of 2^36 records has its place.
const INDEX_BITS: u32 = 28;

/// Which tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TileId {
    /// Of whose ledger.
    #[serde(rename = "w")]
    pub workspace: WorkspaceId,
    /// 0 for tiles of leaves.
    pub level: u32,
    /// From 0.
    pub index: u32,
}

impl TileId {
    /// The tile of this level that has so many before it.
    #[must_use]
    pub fn new(workspace: WorkspaceId, level: u32, before: u64) -> Self {
        Self { workspace, level, index: u32::try_from(before).unwrap_or(u32::MAX) }
    }

    /// The tile that holds `node`, and where in it: the node's own hash, or the hashes below it that give it.
    #[must_use]
    pub fn of(workspace: WorkspaceId, node: Node) -> (Self, std::ops::Range<usize>) {
        let (level, within) = (node.level / HEIGHT, node.level % HEIGHT);
        let first = node.index.checked_shl(within).unwrap_or(u64::MAX);
        let from = usize::try_from(first % TILE_WIDTH).unwrap_or(0);
        (Self::new(workspace, level, first / TILE_WIDTH), from..from.saturating_add(1 << within))
    }
}

/// The path of tlog-tiles, such as `tile/0/x001/x234/067`.
impl fmt::Display for TileId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tile/{}/", self.level)?;
        let (mut rest, mut groups) = (self.index / 1_000, vec![self.index % 1_000]);
        while rest > 0 {
            groups.push(rest % 1_000);
            rest /= 1_000;
        }
        while let Some(group) = groups.pop() {
            if groups.is_empty() {
                return write!(out, "{group:03}");
            }
            write!(out, "x{group:03}/")?;
        }
        Ok(())
    }
}

impl RowId for TileId {
    fn parts(self) -> (u128, Option<u32>) {
        let index = self.index & ((1 << INDEX_BITS) - 1);
        (self.workspace.bits(), Some((self.level << INDEX_BITS) | index))
    }

    fn from_parts(bits: u128, number: Option<u32>) -> Option<Self> {
        let number = number?;
        let index = number & ((1 << INDEX_BITS) - 1);
        Some(Self { workspace: WorkspaceId::from_bits(bits), level: number >> INDEX_BITS, index })
    }
}

/// A tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tile {
    /// Which.
    pub id: TileId,
    /// Its hashes, at most [`TILE_WIDTH`].
    #[serde(with = "packed")]
    pub hashes: Vec<Digest>,
    /// The root over each whole [`GROUP`] of them, so that a node high in the tile does not take all of its hashes.
    #[serde(default, with = "packed", skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Digest>,
}

impl Tile {
    /// A tile that holds these, at most [`TILE_WIDTH`].
    #[must_use]
    pub fn new(id: TileId, hashes: Vec<Digest>) -> Self {
        let groups = hashes.chunks_exact(GROUP).map(root_over).collect();
        Self { id, hashes, groups }
    }

    /// A tile of leaves that is not full yet. Its groups are made when it is.
    #[must_use]
    pub const fn partial(id: TileId, hashes: Vec<Digest>) -> Self {
        Self { id, hashes, groups: Vec::new() }
    }

    /// One more hash.
    fn push(&mut self, hash: Digest) {
        self.hashes.push(hash);
        if let (group, []) = self.hashes.as_chunks::<GROUP>() {
            self.groups.extend(group.last().map(|it| root_over(it)));
        }
    }

    /// The root over all of it.
    fn root(&self) -> Digest {
        if self.is_full() { root_over(&self.groups) } else { root_over(&self.hashes) }
    }

    /// The hash of the node over the hashes in `place`, as [`TileId::of`] gives it; `None` where some are missing.
    #[must_use]
    pub fn node(&self, place: std::ops::Range<usize>) -> Option<Digest> {
        let is_of_groups = place.start.is_multiple_of(GROUP) && place.end.is_multiple_of(GROUP);
        let under =
            if is_of_groups { self.groups.get(place.start / GROUP..place.end / GROUP) } else { self.hashes.get(place) };
        under.filter(|it| !it.is_empty()).map(root_over)
    }

    /// Whether no further hash belongs to it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        u64::try_from(self.hashes.len()).is_ok_and(|it| it >= TILE_WIDTH)
    }
}

impl Linked for Tile {
    fn links(&self) -> Vec<Link> {
        Vec::new()
    }
}

/// The root over `hashes` of one level.
#[must_use]
pub fn root_over(hashes: &[Digest]) -> Digest {
    let mut edge = Edge::default();
    for (size, hash) in (0..).zip(hashes) {
        edge.push(size, *hash);
    }
    edge.root()
}

/// The rows that a full tile of leaves makes or changes: itself, and as far up as a tile fills, the tiles above it. `find` gives
/// what is there of one.
///
/// # Errors
/// What `find` fails with.
pub fn filled<E>(
    id: TileId,
    leaves: Vec<Digest>,
    mut find: impl FnMut(TileId) -> Result<Option<Tile>, E>,
) -> Result<Vec<Tile>, E> {
    let mut tile = Tile::new(id, leaves);
    let mut out = Vec::new();
    while tile.is_full() {
        let above = TileId::new(id.workspace, tile.id.level.saturating_add(1), u64::from(tile.id.index) / TILE_WIDTH);
        let mut next = find(above)?.unwrap_or_else(|| Tile::new(above, Vec::new()));
        next.push(tile.root());
        out.push(std::mem::replace(&mut tile, next));
    }
    out.push(tile);
    Ok(out)
}

/// Hashes in storage: one base64 text, a third longer than their bytes.
pub(crate) mod packed {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::value::digest::Digest;

    pub(crate) fn serialize<S: Serializer>(hashes: &[Digest], to: S) -> Result<S::Ok, S::Error> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|it| *it.as_bytes()).collect();
        to.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Digest>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        let bytes = STANDARD_NO_PAD.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        let (hashes, rest) = bytes.as_chunks::<32>();
        if rest.is_empty() {
            Ok(hashes.iter().copied().map(Digest::from_bytes).collect())
        } else {
            Err(serde::de::Error::custom("not hashes of 32 bytes"))
        }
    }
}
