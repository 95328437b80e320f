//! Posting JSON to a server that is no provider of models, and getting its streams again, over the same connections and past
//! the same guard.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::HeaderName;
use svc_core::value::Invalid;
use svc_core::value::id::WorkspaceId;
use svc_core::value::secret::Secret;
use tokio::time::{Instant, timeout, timeout_at};

use super::address::{Origin, judged};
use super::connection::Connection;
use super::failed::{Failed, Reason, without_keys};
use super::framing::{self, Named, Type};
use super::guard::millis;
use super::target::{AGENT, is_plain};
use super::{Attempt, Incoming, Times, Upstreams, is_own_header};
use crate::outbound::Asker;

/// A server that may be posted to, and what it is shown. Made once for many calls.
#[derive(Debug)]
pub struct Endpoint {
    origin: Arc<Origin>,
    asker: Asker,
    /// The line of the request behind its method.
    target: Box<str>,
    /// The lines of the head that are the same in every call.
    fixed: Secret<Vec<u8>>,
    /// What it is shown, whole.
    shown: Secret<String>,
}

/// An answer whose head is there.
#[derive(Debug)]
pub struct Posted {
    /// Its status.
    pub status: u16,
    /// What it says it is.
    pub kind: Type,
    /// The session that it names.
    pub session: Named,
    incoming: Incoming,
    until: Instant,
}

impl Endpoint {
    /// The server at `url`, which is shown `header` where one is given.
    ///
    /// # Errors
    /// The address is one that may not be called, or the header is none or is svc's own to set.
    pub fn new(upstreams: &Upstreams, url: &str, header: Option<(&str, &Secret<String>)>) -> Result<Self, Invalid> {
        let (origin, url) = judged(url, &upstreams.0.guard)?;
        let query = url.query().map(|it| format!("?{it}")).unwrap_or_default();
        let target = format!("{}{query} HTTP/1.1\r\n", url.path()).into();
        // Room for all of it: a text that grows leaves copies behind.
        let room = header.map_or(0, |(name, value)| name.len() + value.expose().len() + 4);
        let mut fixed = Vec::with_capacity(room + origin.authority.len() + 256);
        let mut put = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                fixed.extend_from_slice(part.as_bytes());
            }
        };
        put("host", &origin.authority);
        put("user-agent", AGENT);
        put("accept-encoding", "identity");
        if let Some((name, value)) = header {
            let known = name.parse::<HeaderName>().ok().filter(|it| !is_own_header(it));
            if known.is_none() || !is_plain(value.expose()) {
                return Err(Invalid::new("must not have that header"));
            }
            put(name, value.expose());
        }
        let shown = header.map_or_else(String::new, |(_, value)| value.expose().clone());
        let asker = Asker::Server;
        Ok(Self { origin: Arc::new(origin), asker, target, fixed: Secret::new(fixed), shown: Secret::new(shown) })
    }

    /// The same, as a workspace has named it: its hosts are looked up within that one's share.
    #[must_use]
    pub fn of(self, workspace: WorkspaceId) -> Self {
        Self { asker: Asker::Workspace(workspace), ..self }
    }

    /// What the server is shown, as it might quote it: the whole of it, then each of its words but the scheme before them.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &str> {
        let whole = self.shown.expose().as_str();
        let schemes = usize::from(whole.contains(' '));
        std::iter::once(whole).chain(whole.split(' ').skip(schemes))
    }

    /// What a server says of itself, at most 500 characters, without what it is shown and whatever looks like a credential:
    /// servers quote keys.
    #[must_use]
    pub fn without_keys(&self, said: &str) -> String {
        without_keys(said, self.shown.expose().rsplit(' ').next())
    }
}

/// A connection to a server that is kept for one request, of which nothing has left.
pub(crate) struct Held(Connection);

/// A request as it goes out.
#[derive(Clone, Copy)]
struct Request<'a> {
    method: &'static str,
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

impl Upstreams {
    /// Posts `body` with further headers, and gives the answer once its head is there. `times` are the longest waits: for the
    /// head and for the whole. Nothing is sent twice. Dropped, it ends the call.
    ///
    /// # Errors
    /// [`Failed`]: no answer, or none in time.
    pub async fn post(
        &self,
        to: &Endpoint,
        headers: &[(&str, &str)],
        body: &[u8],
        times: Times,
    ) -> Result<Posted, Failed> {
        self.post_on(None, to, headers, body, times).await
    }

    /// A connection to the server on which the next post can go out, within this time: whatever keeps a request from leaving at
    /// all has been found out by then.
    ///
    /// # Errors
    /// [`Failed`]: there is none.
    pub(crate) async fn hold(&self, to: &Endpoint, within: Duration) -> Result<Held, Failed> {
        let connected = timeout(within, self.connect(&to.origin, to.asker)).await.unwrap_or(Err(Reason::Connect));
        connected.map(Held).map_err(Failed::new)
    }

    /// Posts on a connection that was held for it, unless that was closed meanwhile; else as [`post`](Self::post).
    ///
    /// # Errors
    /// [`Failed`]: no answer, or none in time.
    pub(crate) async fn post_on(
        &self,
        held: Option<Held>,
        to: &Endpoint,
        headers: &[(&str, &str)],
        body: &[u8],
        times: Times,
    ) -> Result<Posted, Failed> {
        let own = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        let headers = [&own, headers].concat();
        self.request(held, to, Request { method: "POST", headers: &headers, body }, times).await
    }

    /// Asks for a stream of events, with further headers; else as [`post`](Self::post).
    ///
    /// # Errors
    /// [`Failed`]: no answer, or none in time.
    pub async fn get_events(&self, to: &Endpoint, headers: &[(&str, &str)], times: Times) -> Result<Posted, Failed> {
        let headers = [&[("accept", "text/event-stream")], headers].concat();
        self.request(None, to, Request { method: "GET", headers: &headers, body: &[] }, times).await
    }

    /// Asks for something to be ended, with these headers; else as [`post`](Self::post).
    ///
    /// # Errors
    /// [`Failed`]: no answer, or none in time.
    pub async fn delete(&self, to: &Endpoint, headers: &[(&str, &str)], times: Times) -> Result<Posted, Failed> {
        self.request(None, to, Request { method: "DELETE", headers, body: &[] }, times).await
    }

    async fn request(
        &self,
        held: Option<Held>,
        to: &Endpoint,
        request: Request<'_>,
        times: Times,
    ) -> Result<Posted, Failed> {
        let started = Instant::now();
        let left = AtomicBool::new(false);
        let attempt = Attempt::new(started, &left);
        let until = started + times.total;
        let requested =
            timeout_at(until.min(started + times.first_token), self.requested(held, to, request, times, &attempt));
        let (head, incoming) = requested
            .await
            .unwrap_or_else(|_| Err(Failed::new(Reason::FirstToken)))
            .map_err(|failed| attempt.failed(failed))?;
        let framing::Head { status, content_type, session, packed, .. } = head;
        if packed {
            let failed = Failed { status: Some(status), ..Failed::sent(Reason::Packed) };
            return Err(Failed { ms: millis(started), ..failed });
        }
        Ok(Posted { status, kind: content_type, session, incoming, until })
    }

    async fn requested(
        &self,
        held: Option<Held>,
        to: &Endpoint,
        request: Request<'_>,
        times: Times,
        attempt: &Attempt<'_>,
    ) -> Result<(framing::Head, Incoming), Failed> {
        let held = held.map(|Held(connection)| connection).and_then(|mut it| it.is_idle().then_some(it));
        let mut connection = match held {
            Some(held) => held,
            None => self.connect(&to.origin, to.asker).await.map_err(Failed::new)?,
        };
        let Request { method, headers, body } = request;
        let more: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let line = format!("{method} {}", to.target);
        let request = framing::request(&line, &to.fixed, &more, body.len());
        let exchanged = connection.exchange(request.expose(), body, attempt.left).await;
        let head = exchanged.map_err(|broken| Failed::new(broken.reason))?;
        let incoming = Incoming::new(connection, &head, self, &to.origin, times, attempt.started);
        Ok((head, incoming))
    }
}

impl Posted {
    /// Reads all of it, `bytes_max` at most.
    ///
    /// # Errors
    /// It breaks off, is too long, or takes too long.
    pub async fn read(mut self, bytes_max: usize) -> Result<Vec<u8>, Failed> {
        let idle = self.incoming.times.idle;
        let read = timeout_at(self.until, self.incoming.read(bytes_max, idle)).await;
        read.unwrap_or(Err(Reason::Total)).map_err(Failed::sent)
    }

    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// It breaks off, or takes too long.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        // What is there already is taken before a timer is looked at: a stream that never runs dry would never end.
        if Instant::now() >= self.until {
            return Err(Failed::sent(Reason::Total));
        }
        let mut bytes = Vec::new();
        let until = self.until.min(Instant::now() + self.incoming.times.idle);
        let incoming = &mut self.incoming;
        let more = poll_fn(|context| incoming.poll_take(context, &mut |it| bytes.extend_from_slice(it)));
        let more = timeout_at(until, more).await.unwrap_or(Err(Reason::Idle)).map_err(Failed::sent)?;
        Ok((more || !bytes.is_empty()).then_some(bytes))
    }
}
