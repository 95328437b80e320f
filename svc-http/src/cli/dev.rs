//! `svc dev`: from nothing to a server that answers, in one command.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use svc_http::config::{BaseUrl, Config, Loaded};
use svc_http::upstream::Allowed;
use svc_store::Gate;

use super::listen::{Begun, Bound, bind, try_metrics};
use super::occupancy::Occupancy;
use super::output::{Problem, writable};
use super::providers::{self, Providers};
use super::store::{Use, open_alone};
use super::welcome::{Home, tell_unseen};
use super::{serve, setup};

/// What the command line asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Make new keys and revoke the old.
    pub(crate) new_keys: bool,
    /// Print JSON.
    pub(crate) json: bool,
}

/// Makes what is missing, serves, and tells how to go on.
///
/// # Errors
/// [`Problem`] where the address or the data directory is not to be had, or others could reach the address.
pub(crate) fn run(loaded: Loaded, wish: Wish) -> Result<ExitCode, Problem> {
    let listen = loaded.config.listen;
    if !listen.ip().is_loopback() {
        return Err(Problem::new(
            format!("`svc dev` listens on loopback only, and {listen} is not"),
            "Leave the address out, or serve others with `svc serve`.",
        ));
    }
    if loaded.config.postgres.is_some() {
        return Err(Problem::new(
            "`svc dev` is for one machine and a database of its own, and `store.url` names a server",
            "Leave `store.url` out, or make what there is to be with `svc init` and serve it with `svc serve`.",
        ));
    }
    let mut config = serve::begin(loaded);
    if config.outbound.allow.is_empty() {
        config.outbound.allow = Allowed::loopback();
    }
    writable()?;
    let mut begun = Begun::new().map_err(serve::no_runtime)?;
    let bound = bind(listen)?;
    try_metrics(&config)?;
    serve::roots(&config)?;
    let base_url = config.base_url(bound.address);
    let (address, new_keys) = (base_url.clone(), wish.new_keys);
    let opening = begun.unless_stopped(move || (opened(&config, &address, new_keys), config));
    let Some((opened, config)) = opening.map_err(serve::no_runtime)? else { return Ok(ExitCode::SUCCESS) };
    let Opened { gate, home, models, _alone } = opened?;
    let served = serve_home(config, &base_url, gate, (bound, begun), (&home, &models), wish.json);
    served.map_err(|problem| home.unseen(problem))
}

/// What it works on.
struct Opened {
    gate: Gate,
    home: Home,
    models: Providers,
    _alone: Option<Occupancy>,
}

/// Opens the store and makes what is missing in it. Another process that makes such is waited for.
fn opened(config: &Config, base_url: &BaseUrl, new_keys: bool) -> Result<Opened, Problem> {
    let (gate, _alone) = open_alone(config, base_url, Use::Dev)?;
    let home = setup::ensure(&gate, config, &setup::default_owner()?, new_keys)?;
    tell_unseen(&home);
    match providers::ensure(&gate, &config.database_directory(), &home) {
        Ok(models) => Ok(Opened { gate, home, models, _alone }),
        Err(problem) => Err(home.unseen(problem)),
    }
}

/// Serves what there is, with its providers, and tells of it.
fn serve_home(
    mut config: Config,
    base_url: &BaseUrl,
    gate: Gate,
    (bound, begun): (Bound, Begun),
    (home, models): (&Home, &Providers),
    json: bool,
) -> Result<ExitCode, Problem> {
    if matches!(models, Providers::Demo) {
        // Also where the settings allow others alone: it is said to answer.
        config.outbound.allow = config.outbound.allow.and(Ipv4Addr::LOCALHOST.into());
    }
    let here = format!("http://{}", bound.address);
    serve::run(&config, base_url, gate, bound, begun, || {
        if json {
            return home.print(&format!("{}\n", home.as_json(base_url.as_str())));
        }
        let variables =
            home.variables(&here).map(|line| format!("In another shell, for what comes next:\n\n  {line}\n\n"));
        let told = format!(
            "svc is ready at {here}\n\n{}\nAsk before you act:\n\n  {}\n\n{}{}\n\nThe interface is described at {here}/docs. Ctrl-C stops the server; the next start keeps all of it.\n",
            home.as_text(base_url.as_str()),
            home.request(&here),
            variables.unwrap_or_default(),
            models.told(),
        );
        home.print(&told)
    })
}
