//! Model traffic: what models there are and cost, what a call asks for, where it may go, who pays.

mod billing;
mod budget;
mod call;
mod catalogue;
mod cell;
mod context;
mod demand;
mod held;
pub mod listing;
mod month;
mod note;
mod particular;
mod price;
pub mod route;
mod routing;
mod task;
mod usage;
mod yields;

pub use billing::{BILLED_LINES_MAX, BillingImport, DIFFERENCES_MAX, DayOfModel, Difference, compare};
pub(super) use budget::is_first;
pub use budget::{
    Admission, BUDGETS_MAX, Budget, BudgetAt, BudgetPeriod, BudgetScope, BudgetUse, Ladder, Rung, Step, ToldSteps,
    strictest,
};
pub use call::{Attempt, Call, CallBudget, CallEnd, CallState, LastTry, Payer, Target};
pub use catalogue::{Capability, Figures, Host, Model, ModelTimeouts, Quality, Retention, Upstream};
pub use cell::{CallFacts, Cell, CellAt, RECENT_MAX, Sums, WasteKind, Wasted};
pub use context::{CONTEXT_KEPT, Context, Seen};
pub use demand::{CacheWrites, Demand, Dialect, OutputBound, ToolResult};
pub use held::{BoundKey, BoundKeys, UpstreamKey};
pub use month::{Month, MonthId, PlanLimit, grace_advisory, until_next_month};
pub use note::{REFUSAL_KEPT, RefusalNote};
pub use particular::Particular;
pub(crate) use price::is_default_service;
pub use price::{
    Fees, Percent, PriceTier, Prices, Received, ServicePrices, TokenPrices, Unpriced, charged_input, estimate,
    estimate_of_whole, input_bound, likely_input, output_bound, output_room, tokens_of, worst_case,
};
pub use routing::{Constraints, Mode, Objective, Profile, Routing, TaskClass, ToolRule};
pub use task::{Credit, PullEnd, Task, TaskOutcome, TaskStatus};
pub use usage::{Service, Usage};
pub use yields::{YIELD_DAYS, YIELD_LINES_MAX, Yield, YieldLine, Yields};
