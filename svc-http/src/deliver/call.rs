//! One call to the outside: the host's addresses are judged, a judged one is connected to, and the answer's status is read.
//!
//! **Invariant:** no byte is sent to an address that was not judged; no redirect is followed and no proxy asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use svc_core::state::edge::Trouble;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;

use super::resolve::Resolve;
use super::trust::Trust;

/// How long a call may take, from looking up the host to the head of the answer.
const CALL_TIME: Duration = Duration::from_secs(10);
/// How long one of several addresses may take to be connected to.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// Addresses of one host that are tried.
const ADDRESSES_MAX: usize = 3;
/// Bytes of an answer that are read.
const ANSWER_MAX: usize = 64 * 1024;
/// Who calls.
const AGENT: &str = concat!("svc/", env!("CARGO_PKG_VERSION"));

/// Makes calls.
#[derive(Debug)]
pub struct Caller {
    guard: Outbound,
    own: Option<SocketAddr>,
    resolver: Arc<dyn Resolve>,
    trust: Trust,
}

/// What is sent.
pub(super) struct Post<'a> {
    pub(super) url: &'a str,
    /// The same on every try.
    pub(super) event: String,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
}

impl Caller {
    /// Calls what `guard` lets be called, and never this server, which listens on `own`.
    #[must_use]
    pub fn new(guard: Outbound, own: Option<SocketAddr>, resolver: Arc<dyn Resolve>, trust: Trust) -> Self {
        Self { guard, own, resolver, trust }
    }

    /// Posts, and gives the status of the answer.
    ///
    /// # Errors
    /// [`Trouble`] where there was no answer.
    pub(super) async fn post(&self, post: Post<'_>) -> Result<u16, Trouble> {
        timeout(CALL_TIME, self.exchange(post)).await.unwrap_or(Err(Trouble::Timeout))
    }

    async fn exchange(&self, post: Post<'_>) -> Result<u16, Trouble> {
        // What was let through when it was named is judged again: the server may be run in another way by now.
        OutboundUrl::parse(post.url, &self.guard).map_err(|_| Trouble::Address)?;
        let url = Url::parse(post.url).map_err(|_| Trouble::Address)?;
        let host = url.host().ok_or(Trouble::Address)?.to_owned();
        let port = url.port_or_known_default().ok_or(Trouble::Address)?;
        let addresses = match &host {
            url::Host::Domain(name) => self.resolver.resolve(name).await.map_err(|_| Trouble::Resolve)?,
            url::Host::Ipv4(it) => vec![IpAddr::V4(*it)],
            url::Host::Ipv6(it) => vec![IpAddr::V6(*it)],
        };
        let stream = self.connect(&addresses, port).await?;
        if url.scheme() == "http" {
            return send(stream, &url, post).await;
        }
        let name = match host {
            url::Host::Domain(name) => ServerName::try_from(name).map_err(|_| Trouble::Tls)?,
            url::Host::Ipv4(it) => ServerName::from(IpAddr::V4(it)),
            url::Host::Ipv6(it) => ServerName::from(IpAddr::V6(it)),
        };
        let connector = TlsConnector::from(self.trust.client());
        let stream = connector.connect(name, stream).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData => Trouble::Tls,
            _ => Trouble::Connect,
        })?;
        send(stream, &url, post).await
    }

    /// Connects to one of the addresses, all of which may be called.
    async fn connect(&self, addresses: &[IpAddr], port: u16) -> Result<TcpStream, Trouble> {
        if addresses.is_empty() {
            return Err(Trouble::Resolve);
        }
        let may = |ip: &IpAddr| self.guard.is_allowed(*ip) && !self.is_own(SocketAddr::new(*ip, port));
        if !addresses.iter().all(may) {
            return Err(Trouble::Address);
        }
        for ip in addresses.iter().take(ADDRESSES_MAX) {
            let Ok(Ok(stream)) = timeout(CONNECT_TIME, TcpStream::connect((*ip, port))).await else { continue };
            // A connection from an address to itself ends on this machine, whatever the address looks like.
            let is_here = matches!((stream.local_addr(), stream.peer_addr()), (Ok(a), Ok(b)) if a.ip() == b.ip());
            if is_here && !self.guard.allow_private_loopback {
                return Err(Trouble::Address);
            }
            let _ = stream.set_nodelay(true);
            return Ok(stream);
        }
        Err(Trouble::Connect)
    }

    /// Whether this server listens there.
    fn is_own(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let at = |own: SocketAddr| {
            let own_ip = own.ip().to_canonical();
            own.port() == address.port() && (own_ip == ip || (own_ip.is_unspecified() && ip.is_loopback()))
        };
        self.own.is_some_and(at)
    }
}

/// Sends the request over a connection and reads the head of the answer.
async fn send<S>(stream: S, url: &Url, post: Post<'_>) -> Result<u16, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let request = http::Request::post(path)
        .header(HOST, host)
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json")
        .header("svc-signature", post.signature)
        .header("svc-event-id", post.event)
        .body(Full::new(Bytes::from(post.body)))
        .map_err(|_| Trouble::Protocol)?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(ANSWER_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|_| Trouble::Connect)?;
    let answered = async move {
        // Only the head matters: with the answer the connection is dropped.
        let answer = sender.send_request(request).await.map_err(|error| trouble(&error))?;
        Ok(answer.status().as_u16())
    };
    tokio::pin!(answered, connection);
    tokio::select! {
        biased;
        status = &mut answered => status,
        ended = &mut connection => match ended {
            // The answer may have come with the end of the connection.
            Ok(()) => answered.await,
            Err(error) => Err(trouble(&error)),
        },
    }
}

fn trouble(error: &hyper::Error) -> Trouble {
    if error.is_parse() || error.is_parse_too_large() || error.is_parse_status() {
        Trouble::Protocol
    } else {
        Trouble::Connect
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::deliver::{Resolving, SystemResolver};

    /// A resolver that never answers.
    #[derive(Debug)]
    struct Silent;

    impl Resolve for Silent {
        fn resolve<'a>(&'a self, _host: &'a str) -> Resolving<'a> {
            Box::pin(std::future::pending())
        }
    }

    fn caller(resolver: impl Resolve) -> Caller {
        let guard = Outbound { allow_private_loopback: true, own_host: "gate.example.com".into() };
        Caller::new(guard, None, Arc::new(resolver), Trust::default())
    }

    fn post(url: &str) -> Post<'_> {
        Post { url, event: "dlv_1".to_owned(), signature: "t=1".to_owned(), body: b"{}".to_vec() }
    }

    /// A call that gets nowhere is given up after ten seconds, whatever it waits for.
    #[tokio::test(start_paused = true)]
    async fn a_call_takes_ten_seconds_at_most() {
        let began = tokio::time::Instant::now();
        assert_eq!(caller(Silent).post(post("https://hooks.example.com/")).await, Err(Trouble::Timeout));
        assert_eq!(began.elapsed(), CALL_TIME);
    }

    /// Nobody listens; and what answers at length without ever coming to the end of its head is heard for 64 KiB and no
    /// longer.
    #[tokio::test]
    async fn little_is_read_of_an_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let talker = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1_024]).await;
            let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\nx-much: ").await.map_or(0, |()| 1);
            while stream.write_all(&[b'a'; 1_024]).await.is_ok() {
                sent += 1_024;
            }
            sent
        });
        assert_eq!(caller(SystemResolver).post(post(&url)).await, Err(Trouble::Protocol));
        // What the system holds back on both sides is not read by anybody.
        let sent = timeout(CALL_TIME, talker).await.unwrap().unwrap();
        assert!(sent < 64 << 20, "{sent} bytes");
        assert_eq!(caller(SystemResolver).post(post(&url)).await, Err(Trouble::Connect));
    }
}
