//! Connections to the outside: every address of a host is judged, and a judged one is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::resolve::Resolve;
use super::trust::Trust;

/// How long one of several addresses may take to be connected to.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 3;

/// Makes connections.
#[derive(Debug)]
pub(crate) struct Dial {
    own: Option<SocketAddr>,
    resolver: Mutex<Arc<dyn Resolve>>,
    trust: Trust,
}

/// Where to, and what may be there.
pub(crate) struct Place<'a> {
    /// The host.
    pub(crate) host: &'a Host<String>,
    /// The port.
    pub(crate) port: u16,
    /// Whether the connection is secured.
    pub(crate) tls: bool,
    /// Whether an address may be connected to.
    pub(crate) may: &'a (dyn Fn(IpAddr) -> bool + Sync),
    /// Whether it may end on this machine.
    pub(crate) here: bool,
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialError {
    /// The host has no address.
    Resolve,
    /// One of its addresses may not be called.
    Address,
    /// Nobody answers there.
    Connect,
    /// Whoever answers is not the host, or speaks no TLS.
    Tls,
}

/// A connection.
pub(crate) enum Io {
    /// As it is.
    Plain(TcpStream),
    /// Secured.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Dial {
    /// Connects to what may be connected to, and never to this server, which listens on `own`.
    pub(crate) fn new(own: Option<SocketAddr>, resolver: Arc<dyn Resolve>, trust: Trust) -> Self {
        Self { own, resolver: Mutex::new(resolver), trust }
    }

    /// Asks another resolver from now on.
    pub(crate) fn resolve_with(&self, resolver: Arc<dyn Resolve>) {
        *self.resolver.lock().unwrap_or_else(PoisonError::into_inner) = resolver;
    }

    /// Connects.
    ///
    /// # Errors
    /// [`DialError`] says why there is no connection; not a byte was sent then, but for those of TLS.
    pub(crate) async fn dial(&self, place: &Place<'_>) -> Result<Io, DialError> {
        let addresses = match place.host {
            Host::Domain(name) => {
                let resolver = Arc::clone(&self.resolver.lock().unwrap_or_else(PoisonError::into_inner));
                resolver.resolve(name).await.map_err(|_| DialError::Resolve)?
            }
            Host::Ipv4(it) => vec![IpAddr::V4(*it)],
            Host::Ipv6(it) => vec![IpAddr::V6(*it)],
        };
        let stream = self.connect(&addresses, place).await?;
        if !place.tls {
            return Ok(Io::Plain(stream));
        }
        let name = match place.host {
            Host::Domain(name) => ServerName::try_from(name.clone()).map_err(|_| DialError::Tls)?,
            Host::Ipv4(it) => ServerName::from(IpAddr::V4(*it)),
            Host::Ipv6(it) => ServerName::from(IpAddr::V6(*it)),
        };
        let connector = TlsConnector::from(self.trust.client());
        let stream = connector.connect(name, stream).await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => DialError::Tls,
            _ => DialError::Connect,
        })?;
        Ok(Io::Tls(Box::new(stream)))
    }

    /// Connects to one of the addresses, all of which may be called.
    async fn connect(&self, addresses: &[IpAddr], place: &Place<'_>) -> Result<TcpStream, DialError> {
        if addresses.is_empty() {
            return Err(DialError::Resolve);
        }
        let may = |ip: &IpAddr| (place.may)(*ip) && !self.is_own(SocketAddr::new(*ip, place.port));
        if !addresses.iter().all(may) {
            return Err(DialError::Address);
        }
        for ip in addresses.iter().take(ADDRESSES_MAX) {
            let Ok(Ok(stream)) = timeout(CONNECT_TIME, TcpStream::connect((*ip, place.port))).await else { continue };
            // A connection from an address to itself ends on this machine, whatever the address looks like.
            let is_here = matches!((stream.local_addr(), stream.peer_addr()), (Ok(a), Ok(b)) if a.ip() == b.ip());
            if is_here && !place.here {
                return Err(DialError::Address);
            }
            let _ = stream.set_nodelay(true);
            return Ok(stream);
        }
        Err(DialError::Connect)
    }

    /// Whether this server listens there.
    pub(crate) fn is_own(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let at = |own: SocketAddr| {
            let own_ip = own.ip().to_canonical();
            own.port() == address.port() && (own_ip == ip || (own_ip.is_unspecified() && ip.is_loopback()))
        };
        self.own.is_some_and(at)
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_read(context, into),
            Self::Tls(it) => Pin::new(it).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_write(context, from),
            Self::Tls(it) => Pin::new(it).poll_write(context, from),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_flush(context),
            Self::Tls(it) => Pin::new(it).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(it) => Pin::new(it).poll_shutdown(context),
            Self::Tls(it) => Pin::new(it).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::net::Ipv4Addr;

    use super::super::resolve::SystemResolver;
    use super::*;

    /// A connection sends what is written at once: with the system's default a second small write on a kept connection waits
    /// for the other side's delayed word that the first one came, forty milliseconds a call.
    #[tokio::test]
    async fn what_is_written_is_sent_at_once() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let dial = Dial::new(None, Arc::new(SystemResolver), Trust::default());
        let host = Host::Ipv4(Ipv4Addr::LOCALHOST);
        let port = listener.local_addr().unwrap().port();
        let place = Place { host: &host, port, tls: false, may: &|_| true, here: true };
        let Ok(Io::Plain(stream)) = dial.dial(&place).await else { unreachable!("it listens") };
        assert!(stream.nodelay().unwrap());
    }
}
