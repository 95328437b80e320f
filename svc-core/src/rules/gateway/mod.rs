//! Model traffic: by what a workspace routes, its budgets, and its calls: admitted, tried again, finished, reported on.

pub mod admit;
pub mod billing;
mod budgeting;
pub mod budgets;
pub mod classes;
pub mod finish;
pub mod list_models;
pub mod models;
mod named;
pub mod observe;
pub mod outcome;
pub mod payer;
pub mod profiles;
pub mod raising;
pub mod refuse;
pub mod retry;
mod rollup;
pub mod routing;
mod seats;
pub mod show;
mod told;
pub mod upstreams;
