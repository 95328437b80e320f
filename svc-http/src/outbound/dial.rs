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
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use super::resolve::{Asker, Resolve};
use super::trust::Trust;

/// How long one of several addresses may take to be connected to.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How long one is tried alone before the next is tried beside it (RFC 8305, 5).
const ALONE_TIME: Duration = Duration::from_millis(250);
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 6;

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
    /// Who has it called.
    pub(crate) asker: Asker,
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
                resolver.resolve(name, place.asker).await.map_err(|_| DialError::Resolve)?
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
        let port = place.port;
        let connect = move |ip| async move { TcpStream::connect((ip, port)).await.ok() };
        let stream = first_of(&in_turn(addresses), connect).await.ok_or(DialError::Connect)?;
        // A connection from an address to itself ends on this machine, whatever the address looks like.
        let is_here = matches!((stream.local_addr(), stream.peer_addr()), (Ok(a), Ok(b)) if a.ip() == b.ip());
        if is_here && !place.here {
            return Err(DialError::Address);
        }
        let _ = stream.set_nodelay(true);
        Ok(stream)
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

/// The addresses that are tried, both families by turns from that of the first on (RFC 8305, 4): where one of them leads nowhere from
/// here, the other is among the first.
fn in_turn(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let is_first = |it: &&IpAddr| addresses.first().is_some_and(|first| first.is_ipv4() == it.is_ipv4());
    let (mut one, mut other) = (addresses.iter().filter(is_first), addresses.iter().filter(|it| !is_first(it)));
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len().min(ADDRESSES_MAX) {
        ordered.extend(one.next());
        ordered.extend(other.next());
    }
    ordered.truncate(ADDRESSES_MAX);
    ordered
}

/// The connection that is made first. Each address is tried once those before it have failed, or have had a moment alone.
async fn first_of<T: Send + 'static, F: Future<Output = Option<T>> + Send + 'static>(
    addresses: &[IpAddr],
    connect: impl Fn(IpAddr) -> F,
) -> Option<T> {
    let (mut left, mut trying) = (addresses.iter(), JoinSet::new());
    loop {
        let ended = match left.next() {
            Some(ip) => {
                trying.spawn(timeout(CONNECT_TIME, connect(*ip)));
                let Ok(ended) = timeout(ALONE_TIME, trying.join_next()).await else { continue };
                ended
            }
            None => trying.join_next().await,
        };
        // `None` once none is under way, of which there is one at least where another was begun.
        if let Ok(Ok(Some(connection))) = ended? {
            return Some(connection);
        }
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

    use super::super::resolve::{Resolving, SystemResolver};
    use super::*;

    /// A connection sends what is written at once: with the system's default a second small write on a kept connection waits
    /// for the other side's delayed word that the first one came, forty milliseconds a call.
    #[tokio::test]
    async fn what_is_written_is_sent_at_once() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let dial = Dial::new(None, Arc::new(SystemResolver), Trust::default());
        let host = Host::Ipv4(Ipv4Addr::LOCALHOST);
        let port = listener.local_addr().unwrap().port();
        let place = Place { host: &host, asker: Asker::Server, port, tls: false, may: &|_| true, here: true };
        let Ok(Io::Plain(stream)) = dial.dial(&place).await else { unreachable!("it listens") };
        assert!(stream.nodelay().unwrap());
    }

    /// Of a host with many addresses those of both families are tried by turns, whichever come first.
    #[test]
    fn families_take_turns() {
        let ordered = |texts: &[&str]| {
            let all: Vec<IpAddr> = texts.iter().map(|it| it.parse().unwrap()).collect();
            in_turn(&all).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            ordered(&["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "192.0.2.2"]),
            ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2", "2001:db8::3"]
        );
        assert_eq!(ordered(&["192.0.2.1", "192.0.2.2", "2001:db8::1"]), ["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
        assert_eq!(ordered(&["192.0.2.1"; 9]), ["192.0.2.1"; ADDRESSES_MAX]);
        assert!(ordered(&[]).is_empty());
    }

    /// An address that does not answer keeps nobody waiting for long: the next is tried beside it, and the first that answers is taken,
    /// also where that is the one that began earlier. None is tried once it has had its time.
    #[tokio::test(start_paused = true)]
    async fn the_next_is_tried_beside_one_that_does_not_answer() {
        let addresses: Vec<IpAddr> = (1..=3).map(|it| IpAddr::V4(Ipv4Addr::new(192, 0, 2, it))).collect();
        for (first, second, third, answers, after) in [
            (None, Some(10), Some(10), Some(1), 260),
            (Some(300), None, Some(900), Some(0), 300),
            (None, None, None, None, 3_500),
        ] {
            let began = tokio::time::Instant::now();
            let connect = |ip: IpAddr| {
                let place = addresses.iter().position(|it| *it == ip).unwrap();
                let ms: Option<u64> = [first, second, third][place];
                async move {
                    tokio::time::sleep(Duration::from_millis(ms?)).await;
                    Some(place)
                }
            };
            let waits = move |ip| {
                let connecting = connect(ip);
                async move {
                    match connecting.await {
                        Some(place) => Some(place),
                        None => std::future::pending().await,
                    }
                }
            };
            assert_eq!(first_of(&addresses, waits).await, answers);
            assert_eq!(began.elapsed().as_millis(), after);
        }
    }

    /// Whose names have these addresses.
    #[derive(Debug)]
    struct Answers(Vec<IpAddr>);

    impl Resolve for Answers {
        fn resolve<'a>(&'a self, _: &'a str, _: Asker) -> Resolving<'a> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    /// A host whose first addresses lead nowhere is reached at one behind them.
    #[tokio::test]
    async fn whoever_answers_behind_dead_addresses_is_reached() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let resolver = Answers(["::1", "::1", "::1", "127.0.0.1"].iter().map(|it| it.parse().unwrap()).collect());
        let dial = Dial::new(None, Arc::new(resolver), Trust::default());
        let host = Host::Domain("both.example".to_owned());
        let place = Place { host: &host, asker: Asker::Server, port, tls: false, may: &|_| true, here: true };
        assert!(dial.dial(&place).await.is_ok());
    }
}
