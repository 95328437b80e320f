//! Where the server of a data directory is reached: a command that prints a link is often started without the settings that
//! the server runs with.
//!
//! **Invariant:** it is told to people alone; nothing is decided or signed by it.

use std::fs;
use std::path::PathBuf;

use svc_http::config::{BaseUrl, Config};

/// The file, beside the database.
const FILE: &str = "base-url";

/// Notes where a server is reached. One that cannot write it serves all the same.
pub(crate) fn note(config: &Config, base_url: &BaseUrl) {
    if let Err(error) = fs::write(file(config), format!("{base_url}\n")) {
        tracing::warn!(%error, "it cannot be noted where this server is reached: `svc sign-in-link` goes by the settings");
    }
}

/// Where links of this data directory lead: to where the settings say, else to where its server was reached last.
pub(crate) fn base_url(config: &Config) -> BaseUrl {
    let is_set = config.base_url.is_some() || config.listen != Config::default().listen;
    let noted = || BaseUrl::parse(fs::read_to_string(file(config)).ok()?.trim_end()).ok();
    let noted = if is_set { None } else { noted() };
    noted.unwrap_or_else(|| config.base_url(config.listen))
}

fn file(config: &Config) -> PathBuf {
    config.database_directory().join(FILE)
}
