//! The server over real sockets, a module a subject: what is asked, answered and left behind.
//!
//! One program, since each program of tests compiles anew what all of them share.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod actions_http;
mod addresses_http;
mod agents_http;
mod applications_http;
mod approvals_http;
mod aside_http;
mod budgets_http;
mod call_lists_http;
mod callbacks_http;
mod calls_http;
mod code_host_http;
mod connections_http;
mod console_http;
mod context_http;
mod deleted_http;
mod domains_http;
mod drills_http;
mod events_http;
mod evidence_http;
mod export_http;
mod failover_http;
mod forms_http;
mod freeze_http;
mod gate_http;
mod hook_calls_http;
mod hook_http;
mod hooks_bodies_http;
mod hooks_http;
mod integrations_http;
mod ladders_http;
mod lists_http;
mod mail_http;
mod mcp_approved_http;
mod mcp_explained_http;
mod mcp_hostile_http;
mod mcp_http;
mod mcp_met_http;
mod mcp_outlived_http;
mod mcp_proxy_http;
mod mcp_proxy_order_http;
mod mcp_sent_http;
mod mcp_sessions_http;
mod mcp_streams_http;
mod members_http;
mod metrics_counted_http;
mod metrics_http;
mod money_http;
mod moved_http;
mod oauth_clients_http;
mod oauth_documents_http;
mod oauth_http;
mod oauth_revoke_http;
mod oauth_schemes_http;
mod people_http;
mod plans_http;
mod policy_http;
mod providers_http;
mod read_back_http;
mod receipts_http;
mod relay_http;
mod reports_http;
mod routing_http;
mod sign_in_http;
mod sign_in_pages_http;
mod signals_http;
mod single_sign_on_http;
mod slack_http;
mod spend_http;
mod streams_http;
mod taken_http;
mod tasks_http;
mod upstreams_http;
mod usage_http;
