//! `svc init`: what the first start of `svc dev` makes, without a server.

use std::process::ExitCode;

use svc_core::value::text::Email;
use svc_http::config::Config;

use super::output::{Problem, writable};
use super::setup;
use super::store::{Missing, Use, open};
use super::welcome::tell_unseen;

/// Makes what is missing and prints it.
///
/// # Errors
/// [`Problem`] where the data directory is not to be had.
pub(crate) fn run(config: &Config, owner: &Email, json: bool) -> Result<ExitCode, Problem> {
    writable()?;
    let base_url = config.base_url(config.listen);
    let gate = open(config, &base_url, Missing::Make, Use::Command)?;
    let home = setup::ensure(&gate, &config.database_directory(), owner, false)?;
    tell_unseen(&home);
    if json {
        home.print(&format!("{}\n", home.as_json(base_url.as_str())))?;
    } else {
        let data = config.data.display();
        let (done, next) = match home.keys {
            Some(_) => (format!("{data} is ready"), "Start the server with `svc serve`, and ask before you act:"),
            None => (
                format!("{data} was ready already; nothing was changed"),
                "With `svc serve` running, ask before you act:",
            ),
        };
        let (made, request) = (home.as_text(base_url.as_str()), home.request(base_url.as_str()));
        home.print(&format!("{done}\n\n{made}\n{next}\n\n  {request}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
