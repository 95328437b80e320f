//! `svc init`: what the first start of `svc dev` makes, without a server. Where that has been made before, it changes nothing.

use std::process::ExitCode;

use svc_core::value::text::Email;
use svc_http::config::Config;

use super::database::{FirstStart, place};
use super::output::{Problem, named_data, writable};
use super::store::{Missing, Use, open};
use super::welcome::tell_unseen;
use super::{providers, reached, setup};

/// Makes what is missing and prints it.
///
/// # Errors
/// [`Problem`] where the data directory is not to be had.
pub(crate) fn run(config: &Config, owner: &Email, json: bool) -> Result<ExitCode, Problem> {
    writable()?;
    let base_url = reached::base_url(config);
    let gate = open(config, &base_url, Missing::Make, Use::Command)?;
    let directory = config.database_directory();
    let _first = FirstStart::wait(config)?;
    let home = setup::ensure(&gate, config, owner, false)?;
    tell_unseen(&home);
    let models = home.keys.as_ref().map(|_| providers::begin(&gate, &directory, &home)).transpose();
    let models = models.map_err(|problem| home.unseen(problem))?;
    if json {
        home.print(&format!("{}\n", home.as_json(base_url.as_str())))?;
    } else {
        let data = match config.postgres {
            Some(_) => place(config),
            None => config.data.display().to_string(),
        };
        let named = named_data(config);
        let (done, next) = match home.keys {
            Some(_) => (
                format!("{data} is ready"),
                format!("Start the server with `svc serve{named}`, and ask before you act:"),
            ),
            None => (
                format!("{data} was ready already; nothing was changed"),
                format!("With `svc serve{named}` running, ask before you act:"),
            ),
        };
        let (made, request) = (home.as_text(base_url.as_str()), home.request(base_url.as_str()));
        let models = models.map(|it| format!("\n{}\n", it.told())).unwrap_or_default();
        home.print(&format!("{done}\n\n{made}\n{next}\n\n  {request}\n{models}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
