//! What `svc doctor` looks at on the network: whether the address to listen on is free, or already this server's.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use svc_http::config::Config;

use super::Finding::{self, Broken, Well};
use super::{broken, data};
use crate::cli::listen::refused;

/// How long a server that listens there may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// How much of its answer is read.
const ANSWER_MAX: usize = 64 * 1_024;

/// Whether the address can be listened on, or the server of this data does.
pub(super) fn listen(config: &Config) -> Finding {
    let address = config.listen;
    match TcpListener::bind(address) {
        Ok(_) => Well(format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match keys_of(address).ok().flatten() {
            Some(keys) if data::is_own(config, &keys) == Some(false) => Broken(
                format!("a svc server of other data answers at {address}"),
                "Stop it, or set `listen` to another address; or name its data directory.".to_owned(),
            ),
            Some(_) => Well(format!("a svc server answers at {address}")),
            None => Broken(
                format!("another program listens on {address}"),
                "Stop it, or set `listen` to another address.".to_owned(),
            ),
        },
        Err(error) => Broken(
            format!("{address} cannot be listened on: {error}"),
            "Set `listen` to an address of this machine, with a port that this user may open.".to_owned(),
        ),
    }
}

/// Whether metrics can be served where the settings want them, or a server of ours serves them.
pub(super) fn metrics(config: &Config) -> Option<Finding> {
    let address = config.metrics?;
    Some(match TcpListener::bind(address) {
        Ok(_) => Well(format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && serves_metrics(address).unwrap_or(false) => {
            Well(format!("a svc server serves metrics at {address}"))
        }
        Err(error) => broken(refused("metrics.listen", address, &error)),
    })
}

/// Whether what listens there has a metric of this server's.
fn serves_metrics(address: SocketAddr) -> io::Result<bool> {
    Ok(asked(address, "/metrics")?.to_ascii_lowercase().contains("\n# help svc_"))
}

/// The keys of what listens there, as it tells them, where it answers as this server does: with the header that every answer of it
/// carries.
fn keys_of(address: SocketAddr) -> io::Result<Option<String>> {
    let answer = asked(address, "/.well-known/jwks.json")?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let is_svc = head.lines().any(|line| line.to_ascii_lowercase().starts_with("svc-version:"));
    Ok(is_svc.then(|| body.to_owned()))
}

/// The beginning of what listens there answers to a request for `path`.
fn asked(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let (mut answer, mut part, until) = (Vec::new(), [0; 512], Instant::now() + PATIENCE);
    // A peer that never ends its answer, or is slow, has still sent its header.
    while answer.len() < ANSWER_MAX && Instant::now() < until {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(read) => answer.extend(part.iter().take(read)),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
