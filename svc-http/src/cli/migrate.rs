//! `svc migrate`: brings the database to the schema of this release, as the next start would.

use std::process::ExitCode;

use serde_json::json;
use svc_http::config::Config;
use svc_store::{SqliteStore, sqlite};

use super::output::{Problem, print, print_json};

/// Migrates and tells from which schema to which.
///
/// # Errors
/// [`Problem`] where there is no database, it is newer than this release, or it cannot be written.
pub(crate) fn run(config: &Config, json: bool) -> Result<ExitCode, Problem> {
    let directory = config.database_directory();
    let from = sqlite::schema_of(&directory)?;
    drop(SqliteStore::existing(&directory)?);
    let to = sqlite::schema_of(&directory)?;
    let shown = config.database();
    if json {
        print_json(&json!({ "from": from, "to": to }))?;
    } else if from == to {
        print(&format!("{} has schema {to} already\n", shown.display()))?;
    } else {
        print(&format!("{} was brought from schema {from} to schema {to}\n", shown.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
