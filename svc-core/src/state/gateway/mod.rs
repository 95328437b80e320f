//! Model traffic: what models there are and cost, what a call asks for, where it may go, who pays.

mod budget;
mod call;
mod catalogue;
mod context;
mod demand;
pub mod listing;
mod note;
mod price;
mod routing;
mod task;
mod usage;

pub use budget::{
    Admission, BUDGETS_MAX, Budget, BudgetAt, BudgetPeriod, BudgetScope, BudgetUse, Ladder, Rung, Step, strictest,
};
pub use call::{Attempt, Call, CallBudget, CallEnd, CallState, Payer, Target};
pub use catalogue::{Capability, Figures, Model, ModelTimeouts, Quality, Retention, Upstream};
pub use context::{CONTEXT_KEPT, Context, Seen};
pub use demand::{CacheWrites, Demand, Dialect, OutputBound, ToolResult};
pub use note::{REFUSAL_KEPT, RefusalNote};
pub use price::{
    Fees, PriceTier, Prices, Received, ServicePrices, TokenPrices, Unpriced, estimate, input_bound, output_bound,
    tokens_of, worst_case,
};
pub use routing::{Constraints, Mode, Objective, Profile, Routing, TaskClass, ToolRule};
pub use task::{Task, TaskOutcome, TaskStatus};
pub use usage::Usage;
