//! Model traffic: what models there are and cost, what a call asks for, where it may go, who pays.

mod catalogue;
mod demand;
mod price;
mod routing;
mod usage;

pub use catalogue::{Capability, Figures, Model, ModelTimeouts, Quality, Retention, Upstream};
pub use demand::{CacheWrites, Demand, Dialect, OutputBound, ToolResult};
pub use price::{
    Fees, PriceTier, Prices, Received, ServicePrices, TokenPrices, Unpriced, estimate, input_bound, output_bound,
    tokens_of, worst_case,
};
pub use routing::{Constraints, Mode, Objective, Profile, Routing, TaskClass, ToolRule};
pub use usage::Usage;
