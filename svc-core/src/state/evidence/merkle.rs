//! The ledger's tree: RFC 6962, over leaves of 32 bytes, in pure functions.
//!
//! What a proof holds is said as [`Span`]s of leaves, whatever the tree is kept in: a span falls into perfect subtrees,
//! each of which lies in one tile, so that a proof reads O(log n) hashes of however long a ledger.
//!
//! **Invariant:** a hash that is not 32 bytes proves nothing, and neither does consistency with a tree of no leaf.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::value::digest::Digest;

/// The hash of a leaf: SHA-256(0x00 ‖ leaf).
#[must_use]
pub fn leaf_hash(leaf: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::new().chain_update([0]).chain_update(leaf).finalize().into())
}

/// The hash of a node over its two children: SHA-256(0x01 ‖ left ‖ right).
#[must_use]
pub fn node_hash(left: &Digest, right: &Digest) -> Digest {
    let hash = Sha256::new().chain_update([1]).chain_update(left.as_bytes()).chain_update(right.as_bytes());
    Digest::from_bytes(hash.finalize().into())
}

/// The root of the tree without a leaf: SHA-256 of nothing.
fn empty_root() -> Digest {
    Digest::of(b"")
}

/// The root over hashes of neighbouring subtrees, largest first, as the right edge of a tree has them.
fn root_of(subtrees: &[Digest]) -> Digest {
    let folded = subtrees.iter().rev().copied().reduce(|right, left| node_hash(&left, &right));
    folded.unwrap_or_else(empty_root)
}

/// The roots of a tree's perfect subtrees, largest first: one for each bit set in the size, so at most 64. All that is needed
/// to append and to know the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge(#[serde(with = "super::tile::packed")] Vec<Digest>);

impl Edge {
    /// Takes the hash of the leaf that follows the `size` leaves there are.
    pub fn push(&mut self, size: u64, leaf: Digest) {
        let merged = (0..size.trailing_ones()).fold(leaf, |right, _| match self.0.pop() {
            Some(left) => node_hash(&left, &right),
            None => right,
        });
        self.0.push(merged);
    }

    /// The root.
    #[must_use]
    pub fn root(&self) -> Digest {
        root_of(&self.0)
    }
}

/// A node over `2^level` leaves, the `index`-th of its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// 0 for leaves.
    pub level: u32,
    /// From 0, leftmost first.
    pub index: u64,
}

/// A stretch of leaves, `from` included, `to` not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first leaf.
    pub from: u64,
    /// The leaf behind the last.
    pub to: u64,
}

impl Span {
    /// The tree of the first `size` leaves.
    #[must_use]
    pub const fn whole(size: u64) -> Self {
        Self { from: 0, to: size }
    }

    /// The perfect subtrees that it falls into, left to right.
    #[must_use]
    pub fn nodes(self) -> Vec<Node> {
        let (mut from, mut out) = (self.from, Vec::new());
        while from < self.to {
            let fits = self.to.saturating_sub(from).checked_ilog2().unwrap_or(0);
            let level = fits.min(from.trailing_zeros());
            out.push(Node { level, index: from.checked_shr(level).unwrap_or(0) });
            from = from.saturating_add(1_u64.checked_shl(level).unwrap_or(u64::MAX));
        }
        out
    }

    /// Its hash, by the hashes of its nodes.
    ///
    /// # Errors
    /// What `hash` fails with.
    pub fn hash<E>(self, hash: impl FnMut(Node) -> Result<Digest, E>) -> Result<Digest, E> {
        let nodes: Result<Vec<Digest>, E> = self.nodes().into_iter().map(hash).collect();
        nodes.map(|nodes| root_of(&nodes))
    }
}

/// The largest power of two below `size`, which is 2 or more.
fn split(size: u64) -> u64 {
    let bits = size.saturating_sub(1).checked_ilog2().unwrap_or(0);
    1_u64.checked_shl(bits).unwrap_or(1)
}

/// The path of the leaf at `index` in the tree of `size` leaves (RFC 6962, 2.1.1); `None` where there is no such leaf.
#[must_use]
pub fn inclusion(index: u64, size: u64) -> Option<Vec<Span>> {
    if index >= size {
        return None;
    }
    let (mut from, mut to, mut out) = (0, size, Vec::new());
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            out.push(Span { from: middle, to });
            to = middle;
        } else {
            out.push(Span { from, to: middle });
            from = middle;
        }
    }
    out.reverse();
    Some(out)
}

/// What shows that the tree of `new` leaves continues that of `old` (RFC 6962, 2.1.2); `None` from no leaf, or backwards.
#[must_use]
pub fn consistency(old: u64, new: u64) -> Option<Vec<Span>> {
    if old == 0 || old > new {
        return None;
    }
    let (mut from, mut to, mut out) = (0, new, Vec::new());
    while to != old {
        let middle = from + split(to - from);
        if old <= middle {
            out.push(Span { from: middle, to });
            to = middle;
        } else {
            out.push(Span { from, to: middle });
            from = middle;
        }
    }
    if from > 0 {
        out.push(Span { from, to });
    }
    out.reverse();
    Some(out)
}

/// The proof does not show what it is to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not fit")]
pub struct Unproven;

fn hash32(bytes: &[u8]) -> Result<Digest, Unproven> {
    bytes.try_into().map(Digest::from_bytes).map_err(|_| Unproven)
}

fn hashes32<B: AsRef<[u8]>>(path: &[B]) -> Result<Vec<Digest>, Unproven> {
    path.iter().map(|it| hash32(it.as_ref())).collect()
}

fn holds(it: bool) -> Result<(), Unproven> {
    if it { Ok(()) } else { Err(Unproven) }
}

/// Whether `path` leads from the leaf with this hash at `index` to the root of `size` leaves (RFC 9162, 2.1.3.2).
///
/// # Errors
/// [`Unproven`], also for any hash that is not 32 bytes.
pub fn verify_inclusion<B: AsRef<[u8]>>(
    leaf: &[u8],
    index: u64,
    size: u64,
    path: &[B],
    root: &[u8],
) -> Result<(), Unproven> {
    let (leaf, root, path) = (hash32(leaf)?, hash32(root)?, hashes32(path)?);
    holds(index < size)?;
    let (mut at, mut last, mut hash) = (index, size.saturating_sub(1), leaf);
    for step in path {
        holds(last > 0)?;
        if at & 1 == 1 || at == last {
            hash = node_hash(&step, &hash);
            while at & 1 == 0 && at > 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            hash = node_hash(&hash, &step);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    holds(last == 0 && hash == root)
}

/// Whether `proof` shows that the tree of `new` leaves continues that of `old` (RFC 9162, 2.1.4.2).
///
/// # Errors
/// [`Unproven`], also from no leaf and for any hash that is not 32 bytes.
pub fn verify_consistency<B: AsRef<[u8]>>(
    old: u64,
    old_root: &[u8],
    new: u64,
    new_root: &[u8],
    proof: &[B],
) -> Result<(), Unproven> {
    let (old_root, new_root, proof) = (hash32(old_root)?, hash32(new_root)?, hashes32(proof)?);
    holds(old > 0 && old <= new)?;
    if old == new {
        return holds(proof.is_empty() && old_root == new_root);
    }
    let mut steps = proof.iter();
    let first = if old.is_power_of_two() { old_root } else { *steps.next().ok_or(Unproven)? };
    let (mut at, mut last) = (old.saturating_sub(1), new.saturating_sub(1));
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let (mut of_old, mut of_new) = (first, first);
    for step in steps {
        holds(last > 0)?;
        if at & 1 == 1 || at == last {
            of_old = node_hash(step, &of_old);
            of_new = node_hash(step, &of_new);
            while at & 1 == 0 && at > 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            of_new = node_hash(&of_new, step);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    holds(last == 0 && of_old == old_root && of_new == new_root)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;

    fn leaves(count: u64) -> Vec<Digest> {
        (0..count).map(|it| leaf_hash(&it.to_be_bytes())).collect()
    }

    /// A node's hash straight from the leaves.
    fn hash(leaves: &[Digest], node: Node) -> Digest {
        let width = 1_usize << node.level;
        let from = usize::try_from(node.index).unwrap() * width;
        let part = &leaves[from..from + width];
        if let [one] = part {
            return *one;
        }
        let half = |index| hash(leaves, Node { level: node.level - 1, index });
        node_hash(&half(node.index * 2), &half(node.index * 2 + 1))
    }

    /// The root by the definition of RFC 6962, 2.1.
    fn defined(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => empty_root(),
            [one] => *one,
            _ => {
                let (left, right) = leaves.split_at(usize::try_from(split(leaves.len() as u64)).unwrap());
                node_hash(&defined(left), &defined(right))
            }
        }
    }

    /// Every proof over every tree of up to 40 leaves is accepted, and for no other leaf, size or root.
    #[test]
    fn what_is_proved_is_accepted_and_nothing_else() {
        let leaves = leaves(40);
        let mut edge = Edge::default();
        for size in 1..=40_u64 {
            let tree = &leaves[..usize::try_from(size).unwrap()];
            edge.push(size - 1, *tree.last().unwrap());
            let root = defined(tree);
            assert_eq!(edge.root(), root, "{size}");
            let of = |span: Span| span.hash(|node| Ok::<_, Unproven>(hash(tree, node))).unwrap();
            assert_eq!(of(Span::whole(size)), root);
            for index in 0..size {
                let path: Vec<[u8; 32]> =
                    inclusion(index, size).unwrap().into_iter().map(|it| *of(it).as_bytes()).collect();
                let leaf = tree[usize::try_from(index).unwrap()];
                let check = |index, size| verify_inclusion(leaf.as_bytes(), index, size, &path, root.as_bytes());
                assert_eq!(check(index, size), Ok(()), "{index} of {size}");
                assert!((0..=size).filter(|it| *it != index).all(|it| check(it, size).is_err()), "{index} of {size}");
                if path.len() > 1 {
                    let shorter = verify_inclusion(leaf.as_bytes(), index, size, &path[1..], root.as_bytes());
                    assert_eq!(shorter, Err(Unproven));
                }
            }
            for old in 1..=size {
                let proof: Vec<[u8; 32]> =
                    consistency(old, size).unwrap().into_iter().map(|it| *of(it).as_bytes()).collect();
                let before = defined(&tree[..usize::try_from(old).unwrap()]);
                let check = |old| verify_consistency(old, before.as_bytes(), size, root.as_bytes(), &proof);
                assert_eq!(check(old), Ok(()), "{old} to {size}");
                assert!((0..=size).filter(|it| *it != old).all(|it| check(it).is_err()), "{old} to {size}");
            }
        }
        assert_eq!((inclusion(4, 4), consistency(0, 4), consistency(5, 4)), (None, None, None));
    }
}
