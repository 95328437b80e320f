//! A stand-in of both model APIs on one port, for tests, drills and a first start without a provider's key.
//!
//! What it answers follows from the request alone: the same question has the same words, calls and counts, whole or streamed,
//! in either API. [`KNOBS`] change the answer or break it; they come as request headers, as words in the model's name, or,
//! in one process, from [`Mock::turn`].
//!
//! **Invariant:** it decides nothing at random and knows no clock; two runs of one test see the same bytes.

mod answer;
mod asked;
mod chat;
mod knobs;
mod messages;
mod said;
mod schema;
mod script;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::knobs::Wish;
pub use self::knobs::{KNOBS, Knob, UnknownKnob, markdown_table, terminal_table};
use self::script::Script;

/// Bytes of a request that are read.
const BODY_BYTES_MAX: usize = 64 << 20;
/// How long taking connections rests where the system gives none.
const ACCEPT_REST: Duration = Duration::from_millis(50);

/// A running stand-in. Dropped, it closes its connections.
pub struct Mock {
    address: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
}

/// One request that came.
#[derive(Clone)]
pub struct Heard {
    /// Its method.
    pub method: Method,
    /// Its path, with the query where there was one.
    pub path: String,
    /// Its headers, credentials among them.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

/// What has happened until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were taken.
    pub connections: u64,
    /// Connections that are open.
    pub open: u64,
    /// Requests whose body was read.
    pub requests: u64,
    /// Answers that are under way.
    pub running: u64,
    /// Answers that were sent to their end, a broken one's included.
    pub ended: u64,
    /// Answers that whoever asked did not hear to their end.
    pub hung_up: u64,
}

/// What the connections share.
#[derive(Debug)]
struct State {
    remember_max: usize,
    heard: Mutex<VecDeque<Heard>>,
    wish: Mutex<Wish>,
    counts: watch::Sender<Counts>,
}

impl Mock {
    /// Serves on a socket that is bound already. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The socket cannot be taken over.
    pub fn start(listener: TcpListener) -> io::Result<Self> {
        Self::remembering(listener, 0)
    }

    /// The same, and remembers the last `remember_max` requests for [`Mock::heard`].
    ///
    /// # Errors
    /// The socket cannot be taken over.
    pub fn remembering(listener: TcpListener, remember_max: usize) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        let state = Arc::new(State {
            remember_max,
            heard: Mutex::default(),
            wish: Mutex::default(),
            counts: watch::Sender::default(),
        });
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(serve(listener, Arc::clone(&state), stopping));
        Ok(Self { address, state, stop })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its base address in the messages API: the host alone.
    #[must_use]
    pub fn messages_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its base address in the chat-completions API.
    #[must_use]
    pub fn chat_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Turns knobs for all requests to come, as words of a model's name turn them: `status-503--retry-after-2`. Nothing
    /// turns all of them back. What a request turns itself goes first.
    ///
    /// # Errors
    /// A knob or a value that there is none of.
    pub fn turn(&self, words: &str) -> Result<(), UnknownKnob> {
        let mut wish = Wish::default();
        wish.take_words(words)?;
        *lock(&self.state.wish) = wish;
        Ok(())
    }

    /// The requests that came and are remembered, oldest first.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        lock(&self.state.heard).iter().cloned().collect()
    }

    /// Forgets the requests that came.
    pub fn forget(&self) {
        lock(&self.state.heard).clear();
    }

    /// What has happened until now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.state.counts.borrow()
    }

    /// Waits until what has happened is `enough`, and tells it.
    pub async fn until(&self, enough: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.state.counts.subscribe();
        // The sender is this one's own, so it is there.
        counts.wait_for(enough).await.map_or_else(|_| Counts::default(), |it| *it)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl std::fmt::Debug for Mock {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Mock").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Heard {
    /// The text of a header that is there once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        if values.next().is_some() {
            return None;
        }
        first.to_str().ok()
    }

    /// The body as JSON, `null` where it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A body may hold anybody's text and a header anybody's key.
impl std::fmt::Debug for Heard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Heard").field("method", &self.method).field("path", &self.path).finish_non_exhaustive()
    }
}

impl State {
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        self.counts.send_modify(change);
    }

    fn remember(&self, heard: Heard) {
        if self.remember_max == 0 {
            return;
        }
        let mut all = lock(&self.heard);
        while all.len() >= self.remember_max {
            all.pop_front();
        }
        all.push_back(heard);
    }
}

/// Takes connections until it is told to stop, then closes them.
async fn serve(listener: net::TcpListener, state: Arc<State>, mut stopping: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopping.wait_for(|it| *it) => return,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(ACCEPT_REST).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        state.count(|it| it.connections += 1);
        connections.spawn(connection(stream, Open::of(Arc::clone(&state))));
    }
}

/// A connection that is open; dropped with it.
struct Open(Arc<State>);

impl Open {
    fn of(state: Arc<State>) -> Self {
        state.count(|it| it.open += 1);
        Self(state)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.count(|it| it.open -= 1);
    }
}

async fn connection(stream: net::TcpStream, open: Open) {
    let state = &open.0;
    let service = service_fn(move |request| respond(Arc::clone(state), request));
    let builder = auto::Builder::new(TokioExecutor::new());
    // Whoever hangs up, and answers that break, end a connection; there is nobody to tell.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

/// The connection ends without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without an answer")]
struct Closed;

async fn respond(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Script>, Closed> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|_| Closed)?.to_bytes();
    let path = head.uri.path_and_query().map_or_else(String::new, |it| it.as_str().to_owned());
    let heard = Heard { method: head.method, path, headers: head.headers, body };
    state.remember(heard.clone());
    state.count(|it| (it.requests, it.running) = (it.requests + 1, it.running + 1));
    // From here on it counts as running until it is dropped.
    let running = script::Running::of(Arc::clone(&state));
    let wish = lock(&state.wish).clone();
    let (wish, answer) = answer::answer(&heard, wish);
    if let Some(pause) = wish.head {
        tokio::time::sleep(pause).await;
    }
    if wish.hang {
        std::future::pending::<Infallible>().await;
    }
    if wish.drop {
        running.ended();
        return Err(Closed);
    }
    Ok(answer.into_response(&wish, running))
}

/// What was held when somebody panicked is whole: every change is one statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
