//! `svc init`: what the first start of `svc dev` makes, without a server.

use std::process::ExitCode;

use svc_core::value::text::Email;
use svc_http::config::Config;

use super::output::{Problem, print, print_json};
use super::setup;
use super::store::{Missing, Use, open};

/// Makes what is missing and prints it.
///
/// # Errors
/// [`Problem`] where the data directory is not to be had.
pub(crate) fn run(config: &Config, owner: &Email, json: bool) -> Result<ExitCode, Problem> {
    let base_url = config.base_url(config.listen);
    let gate = open(config, &base_url, Missing::Make, Use::Command)?;
    let home = setup::ensure(&gate, owner, false)?;
    if json {
        print_json(&home.as_json(base_url.as_str()))?;
    } else {
        let data = config.data.display();
        let (done, next) = match home.keys {
            Some(_) => (format!("{data} is ready"), "Start the server with `svc serve`, and ask before you act:"),
            None => (
                format!("{data} was ready already; nothing was changed"),
                "With `svc serve` running, ask before you act:",
            ),
        };
        print(&format!(
            "{done}\n\n{}\n{next}\n\n  {}\n",
            home.as_text(base_url.as_str()),
            home.request(base_url.as_str())
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
