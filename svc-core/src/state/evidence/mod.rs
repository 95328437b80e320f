//! The ledger: records, each written in the commit of what it tells of, and the chain that gives them their places.

pub mod bundle;
mod chain;
mod disclosure;
mod entry;
mod kind;
pub mod merkle;
pub mod note;
mod tally;
mod tile;

pub use chain::Chain;
pub use disclosure::Disclosure;
pub use entry::{Actor, Entry, Fact, Place, Subject};
pub use kind::KINDS;
pub use tally::{COUNTED_BY, Counted, Counter, Counts, TALLIED, Tally, TallyId};
pub use tile::{TILE_WIDTH, Tile, TileId, filled, root_over};
