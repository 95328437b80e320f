//! The socket a server listens on, and the signals that end it.

use std::net::{SocketAddr, TcpListener};
use std::{fs, io, thread};

use svc_http::config::Config;
use svc_http::serve::runtime;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

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

/// A server that has yet to open what it serves. The first process of a container is ended by no signal that it does not catch, so they
/// are caught from here on.
pub(crate) struct Begun {
    /// What it is to be served on.
    pub(crate) runtime: Runtime,
    /// The signals.
    pub(crate) stops: Stops,
}

impl Begun {
    /// Begins to catch them.
    ///
    /// # Errors
    /// Where the system gives no threads, or lets nobody catch them.
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = runtime(None)?;
        let stops = {
            let _within = runtime.enter();
            Stops::catch()?
        };
        Ok(Self { runtime, stops })
    }

    /// What `open` gives; `None` where a signal comes before it is done. Then the process is to end, as one that is killed does: what waits
    /// for a database or a file cannot be broken off.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(crate) fn unless_stopped<T: Send + 'static>(
        &mut self,
        open: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Option<T>> {
        let (done, opened) = oneshot::channel();
        // Where nobody waits any more, the process ends.
        thread::Builder::new().name("svc-open".into()).spawn(move || drop(done.send(open())))?;
        let stops = &mut self.stops;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                opened = opened => opened.map(Some).map_err(io::Error::other),
                () = stops.next() => {
                    tracing::info!("stopped before there was anything to serve");
                    Ok(None)
                }
            }
        })
    }
}

/// SIGTERM, SIGINT and SIGHUP, which a terminal that is closed sends, caught from the moment this is made. SIGHUP is left alone where it was
/// ignored when the process began, as `nohup` has it.
pub(crate) struct Stops {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

impl Stops {
    /// Begins to catch them; needs a runtime.
    ///
    /// # Errors
    /// Where the system lets nobody catch them.
    pub(crate) fn catch() -> io::Result<Self> {
        // Where files may grow no more (`RLIMIT_FSIZE`), a write that is too long then fails as any may, and the process lives.
        drop(signal(SignalKind::from_raw(TOO_LONG))?);
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: if is_hang_up_ignored() { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let hung_up = async {
            match &mut self.hang_up {
                Some(it) => it.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = hung_up => {}
        }
    }
}

/// SIGXFSZ, whose number is the same wherever this runs: it ends a process that does not catch it. Once caught it stays so.
const TOO_LONG: i32 = 25;

/// Whether this process ignores SIGHUP, which is the first bit of the mask. Only Linux tells it without a call that is not safe; elsewhere
/// it is caught whatever was wished.
fn is_hang_up_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).is_some_and(|it| it & 1 == 1)
}
