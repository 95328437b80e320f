//! The socket a server listens on, and the signals that end it.

use std::io;
use std::net::{SocketAddr, TcpListener};

use svc_http::config::Config;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::output::Problem;

/// A bound socket and the address it really got, which differs where any free port was asked for.
pub(crate) struct Bound {
    /// The socket; connections to it wait from now on.
    pub(crate) listener: TcpListener,
    /// Its address.
    pub(crate) address: SocketAddr,
}

/// Takes the address, before anything is made or opened: a server that cannot listen leaves nothing behind.
///
/// # Errors
/// [`Problem`] where it is taken, not this machine's, or not this user's to take.
pub(crate) fn bind(address: SocketAddr) -> Result<Bound, Problem> {
    let listener = TcpListener::bind(address).map_err(|error| refused("listen", address, &error))?;
    let address = listener.local_addr().map_err(|error| refused("listen", address, &error))?;
    Ok(Bound { listener, address })
}

/// Finds out in the same way whether the address of metrics can be had, and lets go of it: the server takes it.
///
/// # Errors
/// As [`bind`].
pub(crate) fn try_metrics(config: &Config) -> Result<(), Problem> {
    let Some(address) = config.metrics else { return Ok(()) };
    TcpListener::bind(address).map(drop).map_err(|error| refused("metrics.listen", address, &error))
}

/// What to do about an address that the setting `key` names and that cannot be had.
pub(crate) fn refused(key: &str, address: SocketAddr, error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::AddrInUse => Problem::new(
            format!("another program listens on {address}"),
            format!("Stop it, or choose another address by `{key}`; port 0 takes any free one."),
        ),
        io::ErrorKind::PermissionDenied => Problem::new(
            format!("this user may not listen on {address}"),
            format!("Choose a port from 1024 on by `{key}`, and put a proxy before it."),
        ),
        io::ErrorKind::AddrNotAvailable => Problem::new(
            format!("{address} is no address of this machine"),
            format!("Set `{key}` to one of its own, such as `127.0.0.1:{}`.", address.port()),
        ),
        _ => Problem::new(
            format!("{address} cannot be listened on: {error}"),
            format!("Choose another address by `{key}`."),
        ),
    }
}

/// SIGTERM, SIGINT and SIGHUP, which a terminal that is closed sends, caught from the moment this is made.
pub(crate) struct Stops {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Stops {
    /// Begins to catch them; needs a runtime.
    ///
    /// # Errors
    /// Where the system lets nobody catch them.
    pub(crate) fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
