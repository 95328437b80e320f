//! From a route to what it does: one exhaustive match.
//!
//! [`Service`] is the border between the transport and the gate: everything behind it is free of connections, limits
//! and envelopes, everything before it is free of rules.

use std::net::IpAddr;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use svc_core::refusal::{Kind, Refusal};

use crate::answer::Answer;
use crate::docs::Pages;
use crate::model_bodies::Kept;
use crate::routes::{Auth, Op, Route};
use crate::trace::Trace;

/// What stands behind the routes.
///
/// The order of calls for one request: [`known`](Self::known), [`resolve`](Self::resolve) where that knew nothing, then
/// the method of the route, or [`Remembered::in_force`] where its body is refused before that. A route without a
/// credential has its method alone, after [`unsigned`](Self::unsigned) where a signature takes its place. A refusal that a route does not declare in `ROUTES` is a bug, which debug builds stop
/// at.
pub trait Service: Send + Sync + 'static {
    /// Whom a credential names.
    type Caller: Remembered<Self> + Send + Sync;

    /// Whom a credential names as far as memory knows, without asking the store. `None`: ask [`resolve`](Self::resolve).
    fn known(&self, shown: &Shown<'_>) -> Option<Self::Caller>;

    /// Whom a credential names. It has the right form for its route and nothing else is known of it.
    /// Refuses with one of [`Auth::kinds`], or as not ready.
    fn resolve(&self, shown: &Shown<'_>) -> impl Future<Output = Result<Self::Caller, Refusal>> + Send;

    /// What is told of a request that is to be signed, where its head says already that it is nobody's.
    fn unsigned(&self, op: Op, headers: &HeaderMap, named: Named<'_>) -> Option<Unsigned> {
        let _ = (op, headers, named);
        None
    }

    /// Bits that tell callers with rates of their own apart: an agent's id.
    fn rate_bits(caller: &Self::Caller) -> u128;

    /// Bits of the workspace that a caller of models is of.
    fn workspace_bits(caller: &Self::Caller) -> u128 {
        Self::rate_bits(caller)
    }

    /// Hears of every answer: its route, what was told where it is a refusal, and how long it took to its head.
    fn answered(&self, route: Option<&'static str>, status: u16, refused: Option<Kind>, took: Duration) {
        let _ = (route, status, refused, took);
    }

    /// Whether what is done for a request of this trace is recorded in it here.
    fn records(&self, trace: &Trace) -> bool {
        let _ = trace;
        false
    }

    /// Whether this server can decide: the store answers, migrations are done and the clock is right.
    fn is_ready(&self) -> impl Future<Output = bool> + Send;

    /// `POST /v1/actions/authorize`
    fn authorize(&self, caller: Self::Caller, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `GET /v1/actions/{id}`
    fn read_action(&self, caller: Self::Caller, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `POST /v1/actions/{id}/callback`
    fn register_callback(
        &self,
        caller: Self::Caller,
        call: Call,
    ) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `POST /v1/actions/{id}/settle`
    fn settle(&self, caller: Self::Caller, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `POST /v1/actions/{id}/ran`
    fn report_run(&self, caller: Self::Caller, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `POST /v1/verify`
    fn verify(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// `GET /.well-known/jwks.json`
    fn keys(&self, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
    /// Every route of a family: see `ops/`. `caller` is there wherever the route takes a credential.
    fn family(&self, caller: Option<Self::Caller>, call: Call) -> impl Future<Output = Result<Answer, Refusal>> + Send;
}

/// A caller whom memory may tell of although the credential has ended since.
pub trait Remembered<S: ?Sized> {
    /// Whether the credential that named this caller is in force and may do what `op` does: asked of `service` where something
    /// is refused before the route's own method looks. One that is not in force is remembered no longer.
    ///
    /// # Errors
    /// One of [`Auth::kinds`], or not ready.
    fn in_force(&self, service: &S, shown: &Shown<'_>, op: Op) -> impl Future<Output = Result<(), Refusal>> + Send;
}

/// Why a request that is to be signed is nobody's, and what it is told.
#[derive(Debug)]
pub enum Unsigned {
    /// It shows no signature: told before its body.
    Bare(Refusal),
    /// Nobody can have made one: told once its body is past, as of a signature that does not fit.
    Nobodys(Refusal),
}

/// A credential as it was shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What the route takes.
    pub auth: Auth,
    /// Its text.
    pub credential: &'a str,
    /// The client's address.
    pub address: IpAddr,
    /// Whether its address has failed so often that a refusal is told as 429: nothing is written for it.
    pub is_spent: bool,
    /// What the path names that may decide whether they may call the route at all.
    pub named: Named<'a>,
}

/// The texts in the places of a path that rights hang on, where the route has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Named<'a> {
    /// In the place of `{wid}`.
    pub workspace: Option<&'a str>,
    /// In the place of `{apv}`: a right to it may come from what it is about.
    pub approval: Option<&'a str>,
    /// In the place of `{app}`: nobody decides their own, whatever their role.
    pub application: Option<&'a str>,
}

/// A request, as far as the transport has read it: routed, admitted and its body whole.
#[derive(Debug)]
pub struct Call {
    /// The row of the table.
    pub route: &'static Route,
    /// Path, in its one form, and query as sent.
    pub uri: Uri,
    /// The headers as sent.
    pub headers: HeaderMap,
    /// The whole body, at most the route's limit.
    pub body: Bytes,
    /// The client's address.
    pub address: IpAddr,
    /// The id of the request.
    pub request_id: HeaderValue,
    /// The trace it belongs to.
    pub trace: Trace,
    /// When its head was whole.
    pub came: Instant,
    /// When its body was: until then its client was waited for.
    pub read: Instant,
    /// Whether it ends where the client closes its side.
    pub ends: EndsWithClient,
    /// The room of a body of model traffic: whoever goes on with it when its client has left holds on to this too.
    pub(crate) room: Option<Arc<Kept>>,
    pub(crate) params: Vec<Range<usize>>,
}

/// Who sends requests over a connection.
#[derive(Clone, Debug)]
pub struct Client {
    /// Where from.
    pub address: IpAddr,
    /// Whether what is worked on ends with it.
    pub ends: EndsWithClient,
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        Self { address, ends: EndsWithClient::default() }
    }
}

/// Whether what a client has asked for ends where it closes its side of a connection of HTTP/1. A closed side tells nobody whether
/// the client is still there to read. What is answered in a moment is answered; what would go on for long at somebody's cost, a
/// stream of a model or the call of a tool behind this server, ends.
#[derive(Clone, Debug, Default)]
pub struct EndsWithClient(Arc<AtomicBool>);

impl EndsWithClient {
    /// Has it be so from now on, or not.
    pub fn set(&self, ends: bool) {
        self.0.store(ends, Ordering::Relaxed);
    }

    /// Whether it is.
    #[must_use]
    pub fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Call {
    /// The text in the place of `{name}`, as sent; empty where the route has none.
    #[must_use]
    pub fn param(&self, name: &str) -> &str {
        let place = self.route.params().zip(&self.params).find(|(it, _)| *it == name);
        place.and_then(|(_, range)| self.uri.path().get(range.clone())).unwrap_or_default()
    }

    /// The text in the place of `{id}`.
    #[must_use]
    pub fn id(&self) -> &str {
        self.param("id")
    }

    /// The id in the place of `{name}`.
    ///
    /// # Errors
    /// `not_found`: a text that is no such id names nothing.
    pub fn param_id<I: FromStr>(&self, name: &str) -> Result<I, Refusal> {
        self.param(name).parse().map_err(|_| Refusal::not_found())
    }
}

/// Does what the route says. `caller` is there wherever the route takes a credential.
pub(crate) async fn dispatch<S: Service>(
    service: &S,
    pages: &Pages,
    caller: Option<S::Caller>,
    call: Call,
) -> Result<Answer, Refusal> {
    // A gate route without a caller cannot come here; if it did, it would be refused.
    let agent = |caller: Option<S::Caller>| caller.ok_or_else(Refusal::unauthenticated);
    match call.route.op {
        Op::Authorize => service.authorize(agent(caller)?, call).await,
        Op::ReadAction => service.read_action(agent(caller)?, call).await,
        Op::RegisterCallback => service.register_callback(agent(caller)?, call).await,
        Op::Settle => service.settle(agent(caller)?, call).await,
        Op::ReportRun => service.report_run(agent(caller)?, call).await,
        Op::Verify => service.verify(call).await,
        Op::Keys => service.keys(call).await,
        Op::Health => Ok(Answer::json(&br#"{"status":"alive"}"#[..])),
        Op::Ready if service.is_ready().await => Ok(Answer::json(&br#"{"status":"ready"}"#[..])),
        Op::Ready => Err(Refusal::not_ready()),
        Op::OpenApi => Ok(pages.openapi()),
        Op::Docs => Ok(pages.reference()),
        Op::DocsErrors => Ok(pages.errors()),
        Op::ApprovalPage => Ok(crate::pages::approval()),
        Op::Console(op) => crate::console::answer(op, &call),
        Op::Gateway(_)
        | Op::Actions(_)
        | Op::Applications(_)
        | Op::Approvals(_)
        | Op::Events(_)
        | Op::Agents(_)
        | Op::Access(_)
        | Op::Members(_)
        | Op::Budgets(_)
        | Op::Reports(_)
        | Op::Settings(_)
        | Op::Routing(_)
        | Op::Evidence(_)
        | Op::Integrations(_)
        | Op::Hooks(_)
        | Op::Me(_)
        | Op::SignIn(_)
        | Op::OAuth(_)
        | Op::Connections(_)
        | Op::Mcp(_)
        | Op::McpServers(_)
        | Op::Drills(_)
        | Op::Stops(_) => Box::pin(service.family(caller, call)).await,
    }
}
