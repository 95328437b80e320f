//! One call to the outside: the host's addresses are judged, a judged one is connected to, and the answer's status is read.
//!
//! **Invariant:** no byte is sent to an address that was not judged; no redirect is followed and no proxy asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use svc_core::state::edge::Trouble;
use svc_core::state::edge::outbound::{Outbound, OutboundUrl};
use tokio::time::timeout;
use url::Url;

use super::dial::{Dial, DialError, Io, Place};
use super::resolve::{Asker, Resolve};
use super::trust::Trust;

/// How long a call may take, from looking up the host to the head of the answer.
pub(super) const CALL_TIME: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read.
pub(crate) const ANSWER_MAX: usize = 64 * 1024;
/// Who calls.
pub(super) const AGENT: &str = concat!("svc/", env!("CARGO_PKG_VERSION"));

/// Makes calls.
#[derive(Debug)]
pub struct Caller {
    pub(super) guard: Outbound,
    dial: Dial,
}

/// What is sent.
pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    /// Who has it sent.
    pub(crate) asker: Asker,
    /// The same on every try.
    pub(crate) event: String,
    pub(crate) signature: String,
    pub(crate) body: Vec<u8>,
}

impl Caller {
    /// Calls what `guard` lets be called, and never this server, which listens on `own`.
    #[must_use]
    pub fn new(guard: Outbound, own: Option<SocketAddr>, resolver: Arc<dyn Resolve>, trust: Trust) -> Self {
        Self { guard, dial: Dial::new(own, resolver, trust) }
    }

    /// Posts, and gives the status of the answer.
    ///
    /// # Errors
    /// [`Trouble`] where there was no answer.
    pub(crate) async fn post(&self, post: Post<'_>) -> Result<u16, Trouble> {
        timeout(CALL_TIME, self.exchange(post)).await.unwrap_or(Err(Trouble::Timeout))
    }

    async fn exchange(&self, post: Post<'_>) -> Result<u16, Trouble> {
        let (stream, url) = self.open(post.url, post.asker).await?;
        send(stream, &url, post).await
    }

    /// A connection to where `url` leads, which `asker` has called, and the URL read.
    pub(super) async fn open(&self, url: &str, asker: Asker) -> Result<(Io, Url), Trouble> {
        // What was let through when it was named is judged again: the server may be run in another way by now.
        OutboundUrl::parse(url, &self.guard).map_err(|_| Trouble::Address)?;
        let url = Url::parse(url).map_err(|_| Trouble::Address)?;
        let host = url.host().ok_or(Trouble::Address)?.to_owned();
        let port = url.port_or_known_default().ok_or(Trouble::Address)?;
        let place = Place {
            host: &host,
            asker,
            port,
            tls: url.scheme() != "http",
            may: &|ip| self.guard.is_allowed(&host, ip),
            here: self.guard.may_be_private(&host),
        };
        let stream = self.dial.dial(&place).await.map_err(|error| match error {
            DialError::Resolve => Trouble::Resolve,
            DialError::Address => Trouble::Address,
            DialError::Connect => Trouble::Connect,
            DialError::Tls => Trouble::Tls,
        })?;
        Ok((stream, url))
    }
}

/// Path and query, as a request names them.
pub(super) fn path(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The host, as a request names it.
pub(super) fn host(url: &Url) -> String {
    match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    }
}

/// Sends the request over a connection and reads the head of the answer.
async fn send(stream: Io, url: &Url, post: Post<'_>) -> Result<u16, Trouble> {
    let request = Request::post(path(url))
        .header(HOST, host(url))
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/json")
        .header("svc-signature", post.signature)
        .header("svc-event-id", post.event)
        .body(Full::new(Bytes::from(post.body)))
        .map_err(|_| Trouble::Protocol)?;
    // Only the head matters: with the answer the connection is dropped.
    exchange(stream, request, async |answer| Ok(answer.status().as_u16())).await
}

/// Sends a request over a connection of its own and has `read` make of the answer what it is to be; the connection is driven
/// meanwhile, and dropped with what `read` gives.
///
/// # Errors
/// [`Trouble`] where no answer came, or that of `read`.
pub(super) async fn exchange<B, T>(
    stream: Io,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, Trouble>,
) -> Result<T, Trouble>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    let mut builder = http1::Builder::new();
    builder.max_buf_size(ANSWER_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|_| Trouble::Connect)?;
    let answered = async move {
        let answer = sender.send_request(request).await.map_err(|error| trouble(&error))?;
        read(answer).await
    };
    tokio::pin!(answered, connection);
    tokio::select! {
        biased;
        answer = &mut answered => answer,
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
    use std::net::Ipv4Addr;
    use svc_core::state::edge::outbound::Private;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::outbound::{Resolving, SystemResolver};
    use crate::upstream::Allowed;

    /// A resolver that never answers.
    #[derive(Debug)]
    struct Silent;

    impl Resolve for Silent {
        fn resolve<'a>(&'a self, _host: &'a str, _: Asker) -> Resolving<'a> {
            Box::pin(std::future::pending())
        }
    }

    fn caller(resolver: impl Resolve) -> Caller {
        let guard = Outbound { private: Private::Anywhere, own_host: "gate.example.com".into() };
        Caller::new(guard, None, Arc::new(resolver), Trust::default())
    }

    fn post(url: &str) -> Post<'_> {
        Post { url, asker: Asker::Server, event: "dlv_1".to_owned(), signature: "t=1".to_owned(), body: b"{}".to_vec() }
    }

    /// Of a body as much is read as CONTRACT part 1 ("Outbound guard") says, and not a byte more, however it is asked for.
    #[tokio::test]
    async fn no_more_of_a_body_is_read_than_is_let() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let caller = caller(SystemResolver);
        let url = OutboundUrl::parse(&url, caller.guard()).unwrap();
        tokio::spawn(async move {
            for bytes in [ANSWER_MAX, ANSWER_MAX + 1].into_iter().cycle() {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1_024]).await;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
                let _ = stream.write_all(head.as_bytes()).await;
                let _ = stream.write_all(&vec![b' '; bytes]).await;
            }
        });
        for bytes in [Some(ANSWER_MAX), None] {
            let asked = caller.ask(Asker::Server, &url, None, b"{}".to_vec()).await.map(|it| it.body.len());
            assert_eq!(asked.ok(), bytes);
        }
        for bytes in [Some(ANSWER_MAX), None] {
            assert_eq!(caller.fetch(Asker::Server, &url, usize::MAX).await.map(|it| it.body.len()).ok(), bytes);
        }
    }

    /// A resolver that has every name on this machine.
    #[derive(Debug)]
    struct Here;

    impl Resolve for Here {
        fn resolve<'a>(&'a self, _host: &'a str, _: Asker) -> Resolving<'a> {
            Box::pin(async { Ok(vec![Ipv4Addr::LOCALHOST.into()]) })
        }
    }

    /// A name that leads to this machine is connected to where the operator named it, and no other name is.
    #[tokio::test]
    async fn who_was_not_named_is_not_found_here() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = Allowed::parse(["idp.internal"]).unwrap().guard("gate.example.com");
        let caller = Caller::new(guard, None, Arc::new(Here), Trust::default());
        let stranger = caller.post(post(&format!("https://stranger.example:{port}/"))).await;
        assert_eq!(stranger, Err(Trouble::Address));
        let url = format!("https://idp.internal:{port}/");
        let (named, came) = tokio::join!(caller.post(post(&url)), async { listener.accept().await.map(drop) });
        // Whoever listens there speaks no TLS: that is found out by asking.
        assert!(came.is_ok() && named != Err(Trouble::Address), "{named:?}");
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
