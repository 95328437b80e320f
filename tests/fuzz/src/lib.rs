//! Fuzz targets: one for each thing that reads what somebody else wrote.
//!
//! A target is a function of bytes that panics where a promise is broken; what it is fed with, and how that is varied, is
//! the driver's. There are two: the program of this crate, which runs on any toolchain, and libFuzzer (`libfuzzer/`).

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a target tells what is wrong by panicking"
)]

pub mod mutate;
pub mod targets;

use targets::{
    answers, commands, connect, console, dialect, evidence, headers, hooks, json, mandates, models, people, presses,
    queries, receipts, rows, settings, tokens, tools, values, wire,
};

/// Something that reads bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What people call it; also the folder of its kept inputs below `corpus/`.
    pub name: &'static str,
    /// Reads one input.
    pub run: fn(&[u8]),
    /// Inputs to begin with: of each form that is known one that is read to its end.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "answer", run: answers::answer, seeds: answers::answer_seeds },
    Target { name: "authorize", run: wire::authorize, seeds: wire::authorize_seeds },
    Target { name: "bill", run: queries::bill, seeds: queries::bill_seeds },
    Target { name: "bundle", run: evidence::bundle, seeds: evidence::bundle_seeds },
    Target { name: "calendar", run: values::calendar, seeds: values::calendar_seeds },
    Target { name: "callback", run: wire::callback, seeds: wire::callback_seeds },
    Target { name: "commands", run: commands::commands, seeds: commands::seeds },
    Target { name: "connect_form", run: connect::form, seeds: connect::form_seeds },
    Target { name: "dlp", run: models::dlp, seeds: models::dlp_seeds },
    Target { name: "document", run: answers::document, seeds: answers::document_seeds },
    Target { name: "domain", run: values::domain, seeds: values::domain_seeds },
    Target { name: "gateway_body", run: console::gateway, seeds: console::gateway_seeds },
    Target { name: "headers", run: headers::headers, seeds: headers::header_seeds },
    Target { name: "hooks", run: hooks::events, seeds: hooks::event_seeds },
    Target { name: "issuer_token", run: tokens::token, seeds: tokens::token_seeds },
    Target { name: "json", run: json::json, seeds: json::seeds },
    Target { name: "key_set", run: receipts::key_set, seeds: receipts::key_set_seeds },
    Target { name: "mandate", run: rows::mandate, seeds: rows::mandate_seeds },
    Target { name: "mandate_body", run: mandates::mandates, seeds: mandates::mandate_seeds },
    Target { name: "mcp", run: connect::mcp, seeds: connect::mcp_seeds },
    Target { name: "model_answer", run: dialect::answer, seeds: dialect::answer_seeds },
    Target { name: "model_request", run: dialect::request, seeds: dialect::request_seeds },
    Target { name: "model_stream", run: dialect::stream, seeds: dialect::stream_seeds },
    Target { name: "note", run: evidence::note, seeds: evidence::note_seeds },
    Target { name: "outbound", run: values::outbound, seeds: values::outbound_seeds },
    Target { name: "people_body", run: people::people, seeds: people::people_seeds },
    Target { name: "press", run: presses::press, seeds: presses::press_seeds },
    Target { name: "prices", run: models::prices, seeds: models::price_seeds },
    Target { name: "pull_request", run: presses::pull_request, seeds: presses::pull_request_seeds },
    Target { name: "query", run: queries::query, seeds: queries::query_seeds },
    Target { name: "receipt", run: receipts::receipt, seeds: receipts::receipt_seeds },
    Target { name: "record", run: rows::record, seeds: rows::record_seeds },
    Target { name: "redirect", run: connect::redirect, seeds: connect::redirect_seeds },
    Target { name: "registration", run: connect::registration, seeds: connect::registration_seeds },
    Target { name: "route", run: headers::route, seeds: headers::route_seeds },
    Target { name: "settings", run: settings::settings, seeds: settings::seeds },
    Target { name: "settle", run: wire::settle, seeds: wire::settle_seeds },
    Target { name: "text", run: values::text, seeds: values::text_seeds },
    Target { name: "tool_list", run: tools::list, seeds: tools::list_seeds },
    Target { name: "tool_message", run: tools::message, seeds: tools::message_seeds },
    Target { name: "traceparent", run: headers::traceparent, seeds: headers::traceparent_seeds },
    Target { name: "verify", run: wire::verify, seeds: wire::verify_seeds },
    Target { name: "verify_key", run: receipts::verify_key, seeds: receipts::verify_key_seeds },
    Target { name: "workspace_body", run: console::workspace, seeds: console::workspace_seeds },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|it| it.name == name)
}

/// What a target begins with: its seeds, and the inputs that once broke it.
///
/// # Panics
/// Where a kept input cannot be read.
#[must_use]
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = (target.seeds)();
    let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let Ok(folder) = std::fs::read_dir(kept) else { return inputs };
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("the corpus can be listed").path()).collect();
    paths.sort();
    inputs.extend(paths.iter().map(|path| std::fs::read(path).expect("the corpus can be read")));
    inputs
}
