//! One request from its head to its answer, in the order in which refusals are told: route, credential, rate, size,
//! body, and then whatever the route itself finds.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::EXPECT;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, Version};
use http_body::Body;
use ipnet::IpNet;
use svc_core::refusal::{Kind, Refusal};
use svc_core::value::id::WorkspaceId;
use svc_core::value::text::ServerName;
use tokio::sync::Semaphore;

use crate::address::{self, RateAddress};
use crate::answer::{Answer, Reply, Sent};
use crate::at_hand::{self, AtHand};
use crate::body::{self, BodyFault, DRAIN_MAX};
use crate::config::{BaseUrl, Config};
use crate::dispatch::{Call, Client, Named, Remembered, Service, Shown, Unsigned, dispatch};
use crate::docs::Pages;
use crate::headers::{self, Site};
use crate::host;
use crate::log::{self, RequestLine};
use crate::model_bodies::ModelBodies;
use crate::path;
use crate::rate_limit::{RateLimiter, Rates, Subject};
use crate::router::{AmbiguousRoute, Matched, Router, Unmatched};
use crate::routes::{self, Auth, BodyMax, Content, EVERYWHERE, Limit, NOWHERE, Route, Shape};
use crate::signed::{Room, Taking, is_unverified};
use crate::supervised::contain_panic;
use crate::trace::Trace;

/// How many credentials from addresses that failed too often are looked for at once, from all of these together. Others wait for
/// their turn, one for each request that is open: a guesser takes no readers from anybody else, and a good credential beside one is
/// late but heard.
const SPENT_LOOKS_MAX: usize = 2;
/// How long the rest of a refused body is waited for on HTTP/2.
const STREAM_DRAIN_TIME: Duration = Duration::from_secs(1);

/// What a server is told about itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address that links are made with, without a slash at its end; never taken from a request.
    pub base_url: String,
    /// Requests a minute.
    pub rates: Rates,
    /// `limits.bodyBytes`: the largest body.
    pub body_bytes_max: usize,
    /// `limits.modelBodyBytes`: the largest body of model traffic.
    pub model_body_bytes_max: usize,
    /// `limits.billingBodyBytes`: the largest body of a bill.
    pub billing_body_bytes_max: usize,
    /// `limits.connections`: open at once.
    pub connections_max: usize,
    /// `timeouts.headerMs`: until a request's head is whole.
    pub header_time: Duration,
    /// `timeouts.bodyMs`: until a request's body is whole.
    pub body_time: Duration,
    /// `timeouts.drainMs`: what running requests get once the server stops.
    pub drain_time: Duration,
    /// How long a connection that says nothing stays open between requests.
    pub idle_time: Duration,
    /// Proxies whose `x-forwarded-for` is believed.
    pub trusted_proxies: Vec<IpNet>,
}

impl Settings {
    /// What the configuration says, for a server that is reached at `base_url`.
    #[must_use]
    pub fn of(config: &Config, base_url: &BaseUrl) -> Self {
        let Config { limits, timeouts, trusted_proxies, .. } = config;
        Self {
            base_url: base_url.as_str().to_owned(),
            rates: Rates::of(limits),
            body_bytes_max: limits.body_bytes,
            model_body_bytes_max: limits.model_body_bytes,
            billing_body_bytes_max: limits.billing_body_bytes,
            connections_max: limits.connections,
            header_time: timeouts.header,
            body_time: timeouts.body,
            drain_time: timeouts.drain,
            trusted_proxies: trusted_proxies.clone(),
            ..Self::default()
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:8080".to_owned(),
            rates: Rates::default(),
            body_bytes_max: 1024 * 1024,
            model_body_bytes_max: 32 * 1024 * 1024,
            billing_body_bytes_max: 8 * 1024 * 1024,
            connections_max: 10_000,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            drain_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(75),
            trusted_proxies: Vec::new(),
        }
    }
}

/// The transport over a [`Service`]: everything that is the same for every route.
#[derive(Debug)]
pub struct Shell<S> {
    service: S,
    settings: Settings,
    site: Site,
    router: Router,
    limiter: RateLimiter,
    /// Looks for credentials from addresses that failed too often.
    spent_looks: Semaphore,
    /// Bodies that a signature is to vouch for.
    signed: Room,
    /// Bodies of model calls.
    model_bodies: ModelBodies,
    pages: Pages,
    /// `{base_url}/docs/errors`
    docs: String,
}

impl<S: Service> Shell<S> {
    /// A shell over `service`.
    ///
    /// # Errors
    /// [`AmbiguousRoute`] where the table contradicts itself: a bug that tests find.
    pub fn new(service: S, settings: Settings) -> Result<Self, AmbiguousRoute> {
        let site = Site::of(&settings.base_url);
        Ok(Self {
            service,
            router: Router::new()?,
            limiter: RateLimiter::new(settings.rates),
            spent_looks: Semaphore::new(SPENT_LOOKS_MAX),
            model_bodies: ModelBodies::new(settings.model_body_bytes_max),
            signed: Room::new(settings.body_bytes_max.max(settings.billing_body_bytes_max)),
            pages: Pages::new(site.path()).at(&settings.base_url),
            docs: format!("{}/docs/errors", settings.base_url),
            site,
            settings,
        })
    }

    /// What the server was told about itself.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where `error.docs` points, up to the `#`.
    #[must_use]
    pub fn docs(&self) -> &str {
        &self.docs
    }

    /// Answers one request of a client. Never fails and never panics: what goes wrong is the answer.
    pub async fn answer<B: Body<Data = Bytes> + Unpin>(&self, client: Client, request: Request<B>) -> Response<Sent> {
        let (mut parts, mut body) = request.into_parts();
        parts.uri = path::in_one_form(parts.uri);
        let method = parts.method.clone();
        let wire = Wire { http2: parts.version >= Version::HTTP_2, waits: parts.headers.contains_key(EXPECT) };
        let mut reply = Reply {
            started: Instant::now(),
            request_id: headers::request_id(&parts.headers),
            trace: Trace::of(&parts.headers),
            shape: Shape::Plain,
            page: false,
            scheme: "Bearer",
            challenge: None,
            standing: None,
            allow: None,
            head: parts.method == Method::HEAD,
            route: None,
            body_max: 0,
            close: false,
        };
        let at_hand = AtHand::of(reply.request_id.clone());
        let guarded = contain_panic(at_hand.within(self.work(client, parts, wire, &mut body, &mut reply))).await;
        let worked = guarded.unwrap_or_else(|| {
            let request_id = reply.request_id.to_str().unwrap_or_default();
            tracing::error!(request_id, route = reply.route, "a request ended in a panic");
            Err(Refusal::internal())
        });
        if !reply.close && !body.is_end_stream() {
            reply.close = !self.read_past(wire, reply.body_max, &mut body).await;
        }
        // Only HTTP/1 ends a connection for one request; HTTP/2 ends the stream by itself.
        reply.close &= !wire.http2;
        let (response, refused, call) = match worked {
            Ok(answer) => {
                let (refused, call) = (answer.refuses_with(), answer.call().cloned());
                // Model calls are what is recorded here.
                reply.trace.sampled |= call.is_some() && self.service.records(&reply.trace);
                (reply.answer(answer, &self.docs), refused, call)
            }
            Err(refusal) => (reply.refuse(&refusal, &self.docs), Some(refusal.kind()), None),
        };
        let took = reply.started.elapsed();
        self.service.answered(reply.route, response.status().as_u16(), refused, took);
        log::request(&RequestLine {
            method: method.as_str(),
            route: reply.route,
            status: response.status().as_u16(),
            took,
            request_id: reply.request_id.to_str().unwrap_or_default(),
            refused: refused.map(|it| it.row().type_),
            call: call.as_ref().and_then(|it| it.to_str().ok()),
        });
        response
    }

    /// Takes note of a request that was never read, and of its answer.
    pub(crate) fn unread(&self, refusal: &Refusal, request_id: &str) {
        let (status, took) = (refusal.status(), Duration::ZERO);
        self.service.answered(None, status, Some(refusal.kind()), took);
        let refused = Some(refusal.type_());
        log::request(&RequestLine { method: "-", route: None, status, took, request_id, refused, call: None });
    }

    /// The request's way through the order of refusals.
    async fn work<B: Body<Data = Bytes> + Unpin>(
        &self,
        client: Client,
        parts: Parts,
        wire: Wire,
        body: &mut B,
        reply: &mut Reply,
    ) -> Result<Answer, Refusal> {
        let address = address::client(client.address, &parts.headers, &self.settings.trusted_proxies);
        let Matched { route, params, .. } = match self.find(&parts, address, reply) {
            Ok(found) => found,
            Err(refusal) if refusal.kind() == Kind::RouteNotFound => {
                reply.page = is_for_people(&parts);
                return self.router.page_beside(&parts.method, &parts.uri).map(Answer::moved).ok_or(refusal);
            }
            Err(refusal) => return Err(refusal),
        };
        reply.shape = route.told_in();
        reply.page = route.content == Content::Html && headers::accepts_pages(&parts.headers);
        reply.route = Some(route.path);
        reply.body_max = self.body_max(route);
        if route.is_own_host() {
            self.is_own_host(route, &parts, reply)?;
        }
        let at = |name: &str| {
            let found = route.params().zip(&params).find(|(it, _)| *it == name);
            found.and_then(|(_, place)| parts.uri.path().get(place.clone()))
        };
        let named = Named { workspace: at("wid"), approval: at("apv"), application: at("app") };
        at_hand::found(route.path, named.workspace.and_then(|it| WorkspaceId::parse(it).ok()));
        let caller = self.admit(route, &parts, address, named, reply).await?;
        // What is kept of a signed body has its room until it is answered.
        let mut taking = self.taking(route, &parts, address, (named, caller.as_ref()), reply)?;
        let body = match self.body(route, wire, &parts.headers, body, &mut taking, reply).await {
            Ok(body) => body,
            Err(fault) if route.auth == Auth::Signature => return Err(self.unverified(route, fault, address, reply)),
            Err(fault) => {
                let caller = caller.as_ref();
                return Err(self.caller_or_body(route, &parts.headers, address, caller, fault, reply).await);
            }
        };
        let room = taking.taken().map_err(|refusal| self.unverified(route, refusal, address, reply))?;
        let call = Call {
            route,
            uri: parts.uri,
            headers: parts.headers,
            body,
            address,
            request_id: reply.request_id.clone(),
            trace: reply.trace.clone(),
            came: reply.started,
            read: Instant::now(),
            ends: client.ends,
            room,
            params,
        };
        let answer = dispatch(&self.service, &self.pages, caller, call).await;
        if let Some(refusal) = answer.as_ref().map_or_else(Some, Answer::refusal) {
            declared(route, refusal.kind());
            // Where nobody can tell at present whose it is, it may be nobody's too.
            let is_unsure = route.auth == Auth::Signature && refusal.kind() == Kind::NotReady;
            if is_unsure || is_unverified(refusal.kind()) {
                return Err(self.unverified(route, refusal.clone(), address, reply));
            }
        }
        answer
    }

    fn find(&self, parts: &Parts, address: IpAddr, reply: &mut Reply) -> Result<Matched, Refusal> {
        let path = parts.uri.path();
        if path.starts_with("/anthropic/") {
            // A client of the messages shape reads errors in its own envelope, also where there is no route.
            reply.shape = Shape::Messages;
        } else if path.starts_with("/oauth/") {
            // A library of OAuth reads a string `error`, whatever it is told.
            reply.shape = Shape::Flat;
        } else if path.starts_with("/hooks/ssf/") {
            // So does a sender of security events.
            reply.shape = Shape::SecurityEvent;
        }
        let within = headers::head_is_within(&parts.method, &parts.uri, &parts.headers);
        let found = within.and_then(|()| host::is_named(parts)).map_err(|refusal| Unmatched { refusal, allow: None });
        found.and_then(|()| self.router.find(&parts.method, path).map_err(|it| *it)).map_err(|unmatched| {
            let Unmatched { refusal, allow } = unmatched;
            debug_assert!([NOWHERE, EVERYWHERE].concat().contains(&refusal.kind()), "{refusal:?}");
            reply.allow = allow;
            // These paths tell the rate on every answer, also where there is no route.
            let limit = if path.starts_with("/v1/actions/") {
                Limit::Gate
            } else if path == "/v1/verify" {
                Limit::Verify
            } else {
                Limit::Unlimited
            };
            reply.standing = self.limiter.look(limit, Subject::Address(RateAddress::from(address).0), reply.started);
            refusal
        })
    }

    /// Whether a request of the console's interface, of OAuth or of MCP came to this deployment's own host and, where it writes
    /// in the console or speaks MCP from a page, from its own pages.
    fn is_own_host(&self, route: &'static Route, parts: &Parts, reply: &mut Reply) -> Result<(), Refusal> {
        if route.is_console() {
            reply.scheme = "Session";
        }
        if route.takes_form() {
            // A challenge of this scheme names what it is for (RFC 7617 part 2).
            reply.scheme = "Basic realm=\"svc\"";
        }
        if route.is_mcp() {
            let (base, path) = (&self.settings.base_url, challenged(parts.uri.path()));
            let place = format!("{base}/.well-known/oauth-protected-resource{path}");
            reply.challenge = Some(format!("Bearer resource_metadata=\"{place}\", scope=\"svc:agent\""));
        }
        if !self.site.is_own_host(&parts.headers, parts.uri.authority().map(|it| it.as_str())) {
            return Err(Refusal::foreign_host());
        }
        if route.is_mcp() && self.site.is_foreign(&parts.headers) {
            return Err(Refusal::foreign_origin());
        }
        if route.is_console() && route.is_write() && !self.site.is_own_write(&parts.headers) {
            return Err(Refusal::csrf());
        }
        Ok(())
    }

    /// Credential, then rate. Whatever fails before a caller is known counts against the address, and that alone: a
    /// credential that is good is never told of what others at its address sent, or whoever shares one with a guesser could
    /// stop no agent. A guess that has the form of a credential costs one look for its digest, and past its address's rate it
    /// waits for one of [`SPENT_LOOKS_MAX`] places.
    async fn admit(
        &self,
        route: &'static Route,
        parts: &Parts,
        address: IpAddr,
        named: Named<'_>,
        reply: &mut Reply,
    ) -> Result<Option<S::Caller>, Refusal> {
        if route.auth == Auth::Signature {
            // Who calls is known once the body is there: what does not fit is counted then, and how much of it is kept is bounded
            // meanwhile.
            reply.scheme = "Signature";
            return Ok(None);
        }
        let by_address = Subject::Address(RateAddress::from(address).0);
        let standing = self.limiter.look(route.limit_of_strangers(), by_address, reply.started);
        let is_spent = standing.is_some_and(|it| it.remaining == 0);
        let shown = |credential| Shown { auth: route.auth, credential, address, is_spent, named };
        let caller = match headers::credential(route.auth, &parts.headers, &self.site) {
            Ok(None) => None,
            Ok(Some(credential)) => match self.service.known(&shown(credential)) {
                Some(caller) => Some(caller),
                None => match self.look_for(&shown(credential)).await {
                    Ok(caller) => Some(caller),
                    Err(refusal) => return Err(self.unadmitted(route, refusal, by_address, reply)),
                },
            },
            Err(refusal) => return Err(self.unadmitted(route, refusal, by_address, reply)),
        };
        let subject = caller.as_ref().map_or(by_address, |it| Subject::Caller(S::rate_bits(it)));
        self.count(route.limit, subject, reply)?;
        Ok(caller)
    }

    /// What becomes of a body. One that is to be signed is not looked at where its head shows no signature; where nobody can have
    /// made one it is read past, so that how long the refusal takes does not tell that. Whoever is told of a rate is told before
    /// more of it is kept than the address has room for: good signatures come from the addresses of wrong ones too.
    fn taking(
        &self,
        route: &'static Route,
        parts: &Parts,
        address: IpAddr,
        (named, caller): (Named<'_>, Option<&S::Caller>),
        reply: &mut Reply,
    ) -> Result<Taking<'_>, Refusal> {
        if let (BodyMax::Model, Some(caller)) = (route.body_max, caller) {
            return Ok(Taking::Model(self.model_bodies.begin(S::workspace_bits(caller), S::rate_bits(caller))));
        }
        if route.auth != Auth::Signature {
            return Ok(Taking::Kept);
        }
        let nobodys = match self.service.unsigned(route.op, &parts.headers, named) {
            Some(Unsigned::Bare(refusal)) => return Err(self.unverified(route, refusal, address, reply)),
            Some(Unsigned::Nobodys(refusal)) => Some(refusal),
            None => None,
        };
        let counted = RateAddress::from(address);
        let standing = self.limiter.look(route.limit, Subject::Address(counted.0), reply.started);
        let is_spent = standing.is_some_and(|it| it.remaining == 0);
        Ok(self.signed.begin(counted, is_spent, named.workspace, nobodys))
    }

    /// Whom a credential names that memory does not know.
    async fn look_for(&self, shown: &Shown<'_>) -> Result<S::Caller, Refusal> {
        let place = if shown.is_spent { self.spent_looks.acquire().await.map(Some) } else { Ok(None) };
        let _place = place.map_err(|_| Refusal::internal())?;
        self.service.resolve(shown).await
    }

    /// What is told to a caller that was not admitted: the refusal, or that its address was refused too often.
    fn unadmitted(&self, route: &'static Route, refusal: Refusal, by_address: Subject, reply: &mut Reply) -> Refusal {
        declared(route, refusal.kind());
        let counted = match route.limit_of_strangers() {
            // Somebody signed in is no stranger, whatever they may not do.
            Limit::Session if refusal.kind() != Kind::Unauthenticated => Ok(()),
            Limit::Session => {
                let counted = self.count(Limit::Session, by_address, reply);
                // No answer of the console's tells a rate.
                reply.standing = None;
                counted
            }
            limit => self.count(limit, by_address, reply),
        };
        match counted {
            Ok(()) => refusal,
            Err(limited) => limited,
        }
    }

    /// The same for a request that a signature was to vouch for.
    fn unverified(&self, route: &'static Route, refusal: Refusal, address: IpAddr, reply: &mut Reply) -> Refusal {
        self.unadmitted(route, refusal, Subject::Address(RateAddress::from(address).0), reply)
    }

    fn count(&self, limit: Limit, subject: Subject, reply: &mut Reply) -> Result<(), Refusal> {
        reply.standing = self.limiter.take(limit, subject, reply.started);
        match reply.standing.and_then(|it| it.retry_after_s) {
            Some(seconds) => Err(Refusal::rate_limited(seconds)),
            None => Ok(()),
        }
    }

    /// What is told where a body is refused. Memory tells who a caller is and not that their key is still in force, so that
    /// is looked up here: a credential's refusal comes before the body's.
    async fn caller_or_body(
        &self,
        route: &'static Route,
        headers: &HeaderMap,
        address: IpAddr,
        caller: Option<&S::Caller>,
        fault: Refusal,
        reply: &mut Reply,
    ) -> Refusal {
        let (Some(caller), Ok(Some(credential))) = (caller, headers::credential(route.auth, headers, &self.site))
        else {
            return fault;
        };
        let shown = Shown { auth: route.auth, credential, address, is_spent: false, named: Named::default() };
        match caller.in_force(&self.service, &shown, route.op).await {
            Ok(()) => fault,
            Err(ended) => self.unadmitted(route, ended, Subject::Address(RateAddress::from(address).0), reply),
        }
    }

    /// The whole body, sent as the route takes it.
    async fn body<B: Body<Data = Bytes> + Unpin>(
        &self,
        route: &Route,
        wire: Wire,
        headers: &HeaderMap,
        body: &mut B,
        taking: &mut Taking<'_>,
        reply: &mut Reply,
    ) -> Result<Bytes, Refusal> {
        if let Err(fault) = body::is_transferred_plainly(headers) {
            // What is behind the head may end elsewhere than it seems.
            reply.close = true;
            return Err(Refusal::invalid_request(vec![fault]));
        }
        let body = self.whole_body(route, wire, body, taking, reply).await?;
        headers::body_is_plain(headers).map_err(|it| Refusal::invalid_request(vec![it]))?;
        if route.is_console() && route.is_write() && !body.is_empty() {
            let csv = route.body_max == BodyMax::Billing;
            headers::body_is_json(headers, csv).map_err(|it| Refusal::invalid_request(vec![it]))?;
        }
        Ok(body)
    }

    /// Bytes that the route takes.
    const fn body_max(&self, route: &Route) -> usize {
        match route.body_max {
            BodyMax::Plain => self.settings.body_bytes_max,
            BodyMax::Model => self.settings.model_body_bytes_max,
            BodyMax::Billing => self.settings.billing_body_bytes_max,
        }
    }

    async fn whole_body<B: Body<Data = Bytes> + Unpin>(
        &self,
        route: &Route,
        wire: Wire,
        body: &mut B,
        taking: &mut Taking<'_>,
        reply: &mut Reply,
    ) -> Result<Bytes, Refusal> {
        let max = self.body_max(route);
        // A client that waits to be asked for its body is not asked for one that is too large.
        if wire.waits && usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > max {
            reply.close = true;
            return Err(Refusal::body_too_large(max));
        }
        let read = body::read(body, max, self.settings.body_time, |piece| taking.fate(piece)).await;
        read.map_err(|fault| match fault {
            BodyFault::TooLarge { ended } => {
                reply.close = !ended;
                Refusal::body_too_large(max)
            }
            BodyFault::TooSlow => {
                reply.close = true;
                let message = format!("the body did not arrive within {} ms", self.settings.body_time.as_millis());
                Refusal::body_unfinished(message)
            }
            BodyFault::NoRoom { ended } => {
                reply.close = !ended;
                Refusal::not_ready()
            }
            BodyFault::Broken => {
                reply.close = true;
                Refusal::body_unfinished("the body broke off")
            }
        })
    }

    /// Reads past a body that was refused unread, so that the connection can go on; whether it can. On HTTP/2 it can go on
    /// as it is, but a client that is still sending when its stream is reset may lose the answer: what it sends is waited for,
    /// for a moment, as a refusal is to cost little. As much is read past as where the body itself is at fault: otherwise a client
    /// with a long request and a key that has ended would lose its connection and not hear why.
    async fn read_past<B: Body<Data = Bytes> + Unpin>(&self, wire: Wire, taken: usize, body: &mut B) -> bool {
        let most = taken.saturating_add(DRAIN_MAX);
        let time = if wire.http2 { STREAM_DRAIN_TIME.min(self.settings.body_time) } else { self.settings.body_time };
        let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        !wire.waits && length <= most && body::drain(body, most, time).await
    }
}

/// Whether a browser asks for a page at an address that no route has, and none for programs begins as that does.
fn is_for_people(parts: &Parts) -> bool {
    fn first(path: &str) -> Option<&str> {
        path.split('/').nth(1)
    }
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    let place = first(parts.uri.path());
    let is_for_programs = routes::all().any(|it| it.content != Content::Html && first(it.path) == place);
    is_read && !is_for_programs && headers::accepts_pages(&parts.headers)
}

/// How the request came.
#[derive(Clone, Copy, Debug)]
struct Wire {
    http2: bool,
    /// Whether the client sends its body only once it is asked to.
    waits: bool,
}

/// The path that a challenge of MCP names, in quotes: that of a server where what was asked for can be a server's name, else that of
/// this server's own tools, which the same agents may call.
fn challenged(path: &str) -> &str {
    let name = path.strip_prefix("/mcp/proxy/");
    if name.is_none_or(|it| ServerName::parse(it).is_ok()) { path } else { "/mcp" }
}

/// A refusal that the route does not declare is a bug: debug builds stop at it, others tell of it.
fn declared(route: &'static Route, kind: Kind) {
    if !route.may_refuse(kind) {
        tracing::error!(route = route.path, ?kind, "undeclared refusal");
    }
    debug_assert!(route.may_refuse(kind), "{} does not declare {kind:?}", route.path);
}
