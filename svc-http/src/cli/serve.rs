//! `svc serve`, and what it has in common with `svc dev`: opening the store, serving until a signal, draining.

use std::process::ExitCode;
use std::time::Duration;

use svc_http::config::{BaseUrl, Config, Loaded};
use svc_http::outbound::Trust;
use svc_http::{Server, log, telemetry};
use svc_store::{Gate, StoreError, sqlite};
use tokio::time::timeout;

use super::barred::barred;
use super::database::{place, schema_of, served_elsewhere, unopened};
use super::listen::{Begun, Bound, bind, try_metrics};
use super::occupancy::Occupancy;
use super::output::{Problem, named_data};
use super::store::{Use, open_alone};
use super::{handles, reached, setup};

/// Serves until a signal.
///
/// # Errors
/// [`Problem`] where the address or the data directory is not to be had.
pub(crate) fn serve(loaded: Loaded) -> Result<ExitCode, Problem> {
    let config = begin(loaded);
    let mut begun = Begun::new().map_err(no_runtime)?;
    let bound = bind(config.listen)?;
    try_metrics(&config)?;
    roots(&config)?;
    let base_url = config.base_url(bound.address);
    let address = base_url.clone();
    let opening = begun.unless_stopped(move || (opened(&config, &address), config)).map_err(no_runtime)?;
    let Some((opened, config)) = opening else { return Ok(ExitCode::SUCCESS) };
    let Opened { gate, is_new, is_empty, elsewhere, _alone } = opened?;
    if config.may_lose && config.postgres.is_some() {
        tracing::warn!(
            "`store.mayLose` is set: the database may lose what it has confirmed, and single use and ceilings with it; it is for tests alone"
        );
    }
    if is_new {
        tracing::warn!(
            "made a new, empty gate in {}, where there was none: if there should have been one, stop the server and see that this is the right place",
            place(&config)
        );
    }
    if is_empty {
        tracing::warn!(
            "there is no workspace yet, so no key is known: stop the server, run `svc init{}`, start it again",
            named_data(&config)
        );
    }
    if base_url.is_loopback() && !bound.address.ip().is_loopback() {
        tracing::warn!(
            "{} takes connections from elsewhere, but receipts and links carry {base_url}, and pages are served there alone: set `baseUrl` to the https address at which others reach this server",
            bound.address
        );
    }
    if let Some(seen) = other_addresses(&elsewhere, &base_url) {
        tracing::warn!(
            "{seen}: give all of them one `baseUrl`; while it is changed, one server after the other, this is said until the last"
        );
    }
    if let Some(seen) = unknown_clients(&config, &base_url) {
        tracing::warn!("{seen}: set `trustedProxies` to the address of the proxy, if it sends `x-forwarded-for`");
    }
    run(&config, &base_url, gate, bound, begun, || Ok(()))
}

/// What a server works on.
struct Opened {
    gate: Gate,
    /// Whether there was nothing before.
    is_new: bool,
    /// Whether no workspace is in it.
    is_empty: bool,
    /// Other base addresses that servers on the same database have.
    elsewhere: Vec<String>,
    _alone: Option<Occupancy>,
}

fn opened(config: &Config, base_url: &BaseUrl) -> Result<Opened, Problem> {
    let is_new = match schema_of(config) {
        // Else it would be waited for twice.
        Err(error @ StoreError::Unreachable(_)) => return Err(unopened(config, error)),
        found => matches!(found, Ok(0) | Err(StoreError::NoData { .. })),
    };
    let (gate, _alone) = open_alone(config, base_url, Use::Server)?;
    // It has just answered; whether others are there is no reason not to serve.
    let elsewhere = served_elsewhere(config, base_url).unwrap_or_default();
    Ok(Opened { is_empty: setup::is_empty(&gate)?, gate, is_new, elsewhere, _alone })
}

/// What it means that servers on the same database have other base addresses; nothing where none has.
pub(crate) fn other_addresses(elsewhere: &[String], base_url: &BaseUrl) -> Option<String> {
    let others = elsewhere.join(" and ");
    (!elsewhere.is_empty()).then(|| {
        format!("servers on the same database are reached at {others}, and this one at {base_url}: each refuses receipts that carry another's address, and links lead to whichever made them")
    })
}

/// What it means that a proxy must be in front, as https is named and not spoken here, and none is trusted; nothing where it can be told
/// who a request comes from.
pub(crate) fn unknown_clients(config: &Config, base_url: &BaseUrl) -> Option<String> {
    let is_behind = base_url.as_str().starts_with("https:") && config.trusted_proxies.is_empty();
    is_behind.then(|| {
        format!("{base_url} is reached over a proxy and none is trusted, so all clients have its address, and share what limits allow one")
    })
}

/// Starts the log and tells in it what the settings' sources had to say; takes as many file handles as there are.
pub(crate) fn begin(loaded: Loaded) -> Config {
    log::start(loaded.config.log);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(name) = telemetry::unheeded() {
        tracing::warn!("`{name}` is set and nothing is sent there: this program was built without the feature `otel`");
    }
    let mut config = loaded.config;
    handles::raise(&mut config);
    config
}

/// Serves on `bound` until SIGTERM, SIGINT or SIGHUP, then drains; a second signal ends it at once. `announce` runs once requests
/// are accepted; where it fails the server stops.
///
/// # Errors
/// [`Problem`] of `announce`, or where the system gives no threads.
pub(crate) fn run(
    config: &Config,
    base_url: &BaseUrl,
    gate: Gate,
    bound: Bound,
    begun: Begun,
    announce: impl FnOnce() -> Result<(), Problem>,
) -> Result<ExitCode, Problem> {
    let Begun { runtime, mut stops } = begun;
    runtime.block_on(async {
        let address = bound.address;
        let keys = gate.public_keys()?;
        let barred = barred(config, base_url, address, &gate)?;
        let server = Server::with_keys(bound.listener, config, base_url, gate, keys).map_err(no_runtime)?;
        let server_metrics = server.metrics_address();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut serving = std::pin::pin!(server.run(async {
            // The sender is dropped, not used: either way it is time to stop.
            let _ = stopped.await;
        }));
        tracing::info!(%address, %base_url, data = %config.data.display(), "listening");
        if let Ok(Some(address)) = server_metrics {
            tracing::info!(%address, "metrics are served");
        }
        for seen in barred {
            tracing::warn!("the provider {seen}: correct its `baseUrl`, or name the host in `outbound.allow`");
        }
        // Whoever waits for the first answer has read these lines.
        log::settle();
        told_of_backup(config).await;
        let _noted = reached::note(config, base_url);
        announce()?;
        tokio::select! {
            () = &mut serving => return Ok(ExitCode::SUCCESS),
            () = stops.next() => drop(stop),
        }
        tracing::info!(drain_s = config.timeouts.drain.as_secs_f64(), "stopping; a second signal stops at once");
        tokio::select! {
            () = &mut serving => tracing::info!("stopped"),
            () = stops.next() => match timeout(LAST_TIME, &mut serving).await {
                Ok(()) => tracing::info!("stopped"),
                Err(_) => tracing::warn!("stopped before running requests were done"),
            },
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Takes the note off a backup that this server serves, where it has said in its log that it is one: whoever logs no warnings is told by
/// whatever opens it next.
async fn told_of_backup(config: &Config) {
    if config.postgres.is_some() || !tracing::enabled!(tracing::Level::WARN) {
        return;
    }
    let directory = config.database_directory();
    let told = tokio::task::spawn_blocking(move || sqlite::told_of_backup(directory)).await;
    if let Ok(Err(error)) = told {
        tracing::warn!(%error, "that this is a backup is said once more by what opens it next");
    }
}

/// How long a second signal waits all the same: a server with nothing to do ends sooner, and is not told of as cut off.
const LAST_TIME: Duration = Duration::from_secs(1);

/// Whether further root certificates can be read, where a file of them is named: found out before anything is made, as
/// whether the address can be had.
///
/// # Errors
/// [`Problem`] where it holds none.
pub(crate) fn roots(config: &Config) -> Result<(), Problem> {
    Trust::with(config.outbound.ca_file.as_deref()).map(drop).map_err(|error| {
        Problem::new(
            error.to_string(),
            "Name a file of root certificates in PEM in `outbound.caFile`, or leave it out.",
        )
    })
}

/// Why a server cannot be.
pub(crate) fn no_runtime(error: std::io::Error) -> Problem {
    Problem::new(format!("the server cannot start: {error}"), "Look at this user's limits of threads and open files.")
}
