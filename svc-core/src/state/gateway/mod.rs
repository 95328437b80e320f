//! Model traffic: what models there are and cost, what a call asks for, where it may go, who pays.

mod catalogue;
mod demand;
mod price;
mod routing;
mod usage;

pub use catalogue::{Capability, Model, ModelTimeouts, Quality, Retention, Upstream};
pub use demand::{CacheWrites, Demand, Dialect, OutputBound, ToolResult};
pub use price::{PriceTier, Prices, TokenPrices};
pub use routing::{Constraints, Mode, Objective, Profile, Routing, TaskClass, ToolRule};
pub use usage::Usage;
