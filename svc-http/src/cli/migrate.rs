//! `svc migrate`: brings the database to the schema of this release, as the next start would.

use std::process::ExitCode;

use serde_json::json;
use svc_http::config::Config;

use super::database::{self, Database, unopened};
use super::output::{Problem, print, print_json};

/// Migrates and tells from which schema to which.
///
/// # Errors
/// [`Problem`] where there is no database, it is newer than this release, a server works on an older one, or it cannot be written.
pub(crate) fn run(config: &Config, json: bool) -> Result<ExitCode, Problem> {
    let from = database::schema_of(config).map_err(|error| unopened(config, error))?;
    // A database server has its tables from the first that asks; a file is made by a first start alone.
    drop(if config.postgres.is_some() { Database::make(config) } else { Database::existing(config) }?);
    let to = database::schema_of(config)?;
    let shown = database::place(config);
    if json {
        print_json(&json!({ "from": from, "to": to }))?;
    } else if from == to {
        print(&format!("{} has schema {to} already\n", shown))?;
    } else {
        print(&format!("{} was brought from schema {from} to schema {to}\n", shown))?;
    }
    Ok(ExitCode::SUCCESS)
}
