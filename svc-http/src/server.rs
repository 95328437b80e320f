//! The server as a whole, for the command line and for programs that embed it.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use svc_http::Server;
//! use svc_http::config::{BaseUrl, Config};
//!
//! let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! let base_url = BaseUrl::parse("http://127.0.0.1:8080")?;
//! let gate = svc_store::Gate::open("svc-data", base_url.as_str())?;
//! Server::new(listener, &Config::default(), &base_url, gate)?.run(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use svc_core::state::edge::outbound::{Outbound, Private};
use svc_core::state::gate::receipt::PublicKeys;
use svc_store::Gate;
use tokio::net;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::config::{BaseUrl, Config};
use crate::deliver::{Deliveries, Sender};
use crate::export::Exports;
use crate::identity::Providers;
use crate::inbound::key_sets::KeySets;
use crate::live::Live;
use crate::mail::Mailer;
use crate::metrics::{self, Metrics};
use crate::ops::mcp::Proxied;
use crate::ops::{Billing, Documents, GateService, RunningCalls};
use crate::outbound::{Caller, Resolve, StrangersResolver, SystemResolver, Trust};
use crate::rate_limit::{RateLimiter, Rates};
use crate::serve::serve;
use crate::shell::{Settings, Shell};
use crate::slack::Slack;
use crate::telemetry::Telemetry;
use crate::upstream::Upstreams;

/// How much of the drain is at most kept for telling clients what was cut, and for keeping what came of it.
const LAST_TIME: Duration = Duration::from_secs(1);

/// A server over a gate, on a socket that it has already.
#[derive(Debug)]
pub struct Server {
    listener: net::TcpListener,
    shell: Arc<Shell<GateService>>,
    gate: Gate,
    guard: Outbound,
    /// What judges addresses that strangers name, and those of providers of identity and of their keys.
    strangers: Outbound,
    resolver: Arc<dyn Resolve>,
    /// What looks up the names that strangers give.
    strangers_resolver: Arc<dyn Resolve>,
    trust: Trust,
    live: Arc<Live>,
    upstreams: Upstreams,
    running: Arc<RunningCalls>,
    metrics: Arc<Metrics>,
    telemetry: Arc<Telemetry>,
    metrics_listener: Option<net::TcpListener>,
    mailer: Option<Arc<Mailer>>,
    base_url: String,
    documents: Arc<Documents>,
    key_sets: Arc<KeySets>,
    providers: Arc<Providers>,
    slack: Arc<Slack>,
    proxied: Arc<Proxied>,
}

impl Server {
    /// A server over `gate`, whose receipts are checked with the keys that its store has. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The store's keys cannot be read; as [`with_keys`](Self::with_keys).
    pub fn new(listener: TcpListener, config: &Config, base_url: &BaseUrl, gate: Gate) -> io::Result<Self> {
        let keys = gate.public_keys().map_err(io::Error::other)?;
        Self::with_keys(listener, config, base_url, gate, keys)
    }

    /// The same with other keys to check receipts with: for a gate over a store that keeps none.
    ///
    /// # Errors
    /// The socket cannot be taken over, or the file of root certificates is none. Where private callbacks are allowed, a socket that others
    /// reach is none to take over: they could have this machine call what only it reaches.
    pub fn with_keys(
        listener: TcpListener,
        config: &Config,
        base_url: &BaseUrl,
        gate: Gate,
        keys: PublicKeys,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        if config.allow_private_callbacks && !address.ip().is_loopback() {
            let what = format!("`allow_private_callbacks` needs a server on a loopback address, and {address} is none");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        listener.set_nonblocking(true)?;
        let listener = net::TcpListener::from_std(listener)?;
        let (outbound, strangers) = guards(config, base_url);
        let trust = Trust::with(config.outbound.ca_file.as_deref()).map_err(io::Error::other)?;
        let mut service = GateService::new(gate.clone(), keys, outbound.clone(), base_url.as_str());
        service.strangers = strangers.clone();
        service.plans = config.plans;
        service.telemetry = Arc::new(Telemetry::from_environment(&trust)?);
        let telemetry = Arc::clone(&service.telemetry);
        service.allow_redirects.clone_from(&config.allow_redirects);
        service.client_documents = config.client_documents;
        service.oauth_clients = RateLimiter::new(Rates::of(&config.limits));
        service.billing = Billing::of(&config.billing);
        service.slack = Arc::new(Slack::at(&config.slack_api));
        service.received = RateLimiter::new(Rates::of(&config.limits));
        let mailer = Mailer::of(config, base_url.authority(), &trust).map(Arc::new);
        service.mailer.clone_from(&mailer);
        let resolver: Arc<dyn Resolve> = Arc::new(SystemResolver);
        let upstreams = Upstreams::new(
            &config.outbound.allow,
            config.timeouts.calls,
            base_url.authority(),
            listener.local_addr().ok(),
            Arc::clone(&resolver),
            trust.clone(),
        );
        service.upstreams = upstreams.clone();
        service.proxied = Proxied::new(upstreams.clone());
        let (live, running) = (Arc::clone(&service.live), Arc::clone(&service.running));
        let (documents, key_sets) = (Arc::clone(&service.documents), Arc::clone(&service.key_sets));
        let (providers, slack) = (Arc::clone(&service.providers), Arc::clone(&service.slack));
        let (metrics, proxied) = (Arc::clone(&service.metrics), Arc::clone(&service.proxied));
        let metrics_listener = config.metrics.map(listen_for_metrics).transpose()?;
        let shell = Arc::new(Shell::new(service, Settings::of(config, base_url)).map_err(io::Error::other)?);
        Ok(Self {
            listener,
            shell,
            gate,
            guard: outbound,
            strangers,
            resolver,
            strangers_resolver: Arc::new(StrangersResolver),
            trust,
            live,
            upstreams,
            running,
            metrics,
            metrics_listener,
            telemetry,
            mailer,
            base_url: base_url.to_string(),
            documents,
            key_sets,
            providers,
            slack,
            proxied,
        })
    }

    /// The same server with a resolver of one's own for the hosts that it calls.
    #[must_use]
    pub fn resolving_with(self, resolver: Arc<dyn Resolve>) -> Self {
        self.upstreams.resolve_with(Arc::clone(&resolver));
        Self { strangers_resolver: Arc::clone(&resolver), resolver, ..self }
    }

    /// The same server that looks at another port than that of https for what domains say of single sign-on: for tests, which
    /// listen where the system lets them.
    #[must_use]
    pub fn proving_domains_at(self, port: u16) -> Self {
        self.providers.prove_at(port);
        self
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The address that metrics are read at; `None` where they are not served.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn metrics_address(&self) -> io::Result<Option<SocketAddr>> {
        self.metrics_listener.as_ref().map(net::TcpListener::local_addr).transpose()
    }

    /// Serves until `stop` is done, and makes the calls that decisions bring about; then drains, and closes the gate once every
    /// answer has left or the time of the drain is up: calls of models that run still are told so before. Calls that were not made
    /// are kept for the next start.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let lapses = tokio::spawn(Arc::clone(&self.metrics).count_lapses(self.gate.lapses()));
        let counted = self.metrics_listener.map(|listener| {
            let (metrics, running) = (Arc::clone(&self.metrics), Arc::clone(&self.running));
            tokio::spawn(metrics::serve(listener, metrics, self.gate.clone(), running))
        });
        let watched = Arc::clone(&self.running).watched(self.gate.clone());
        let own = self.listener.local_addr().ok();
        let reader =
            |by: &Arc<dyn Resolve>| Caller::new(self.strangers.clone(), own, Arc::clone(by), self.trust.clone());
        self.documents.read_with(reader(&self.strangers_resolver));
        self.key_sets.read_with(reader(&self.resolver));
        self.providers.call_with(reader(&self.resolver));
        let caller = Caller::new(self.guard.clone(), own, Arc::clone(&self.resolver), self.trust.clone());
        self.slack.call_with(caller);
        let caller = Caller::new(self.guard, own, self.resolver, self.trust);
        let sender = Sender::new(caller, self.mailer, self.slack, &self.base_url);
        let deliveries = Deliveries::start(self.gate.clone(), sender, Arc::clone(&self.metrics));
        let exports = Exports::start(self.gate.clone());
        let (quiet, time) = (deliveries.stopper(), self.shell.settings().drain_time);
        let (mut drain, mut cutting) = (Drain::begin(time), None);
        serve(self.listener, self.shell, async {
            stop.await;
            self.live.end();
            quiet();
            drop(exports);
            drain = Drain::begin(time);
            cutting = Some(tokio::spawn(async move {
                sleep_until(drain.cut).await;
                self.running.end();
            }));
            drain.close
        })
        .await;
        deliveries.stop(drain.end).await;
        // What came of calls whose clients are gone is still to be kept.
        let _ = timeout_at(drain.end, self.upstreams.settled()).await;
        // MCP servers keep a session until they are told that it is over.
        self.proxied.servers.forget_all();
        let _ = timeout_at(drain.end.min(Instant::now() + HANG_UP_TIME), self.upstreams.settled()).await;
        for task in [Some(watched), Some(lapses), counted, cutting].into_iter().flatten() {
            task.abort();
        }
        // Sending the last spans blocks, for as long as their collector takes.
        let telemetry = self.telemetry;
        let _ = tokio::task::spawn_blocking(move || telemetry.end()).await;
        self.gate.close();
    }
}

/// How long a server that stops waits for MCP servers to hear that their sessions have ended.
const HANG_UP_TIME: Duration = Duration::from_secs(2);

/// What is done when, once a server stops: all of it within one time.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Calls that run still are cut.
    cut: Instant,
    /// Connections are closed.
    close: Instant,
    /// Nothing is waited for any more.
    end: Instant,
}

impl Drain {
    /// One that ends after `time`, of which the last quarter is kept at most for what is to be told at its end.
    fn begin(time: Duration) -> Self {
        let (now, last) = (Instant::now(), LAST_TIME.min(time / 4));
        Self { cut: now + (time - last), close: now + (time - last / 2), end: now + time }
    }
}

/// What judges addresses of callbacks and webhooks, for which alone the flag is, and what judges those that strangers name, of providers
/// of identity and of their keys: beside the flag these lead to the private hosts that the operator lets upstreams have, and to no other.
fn guards(config: &Config, base_url: &BaseUrl) -> (Outbound, Outbound) {
    let own_host = base_url.authority();
    let strict = || Outbound { private: Private::Nowhere, own_host: own_host.into() };
    if config.allow_private_callbacks {
        (Outbound { private: Private::Anywhere, ..strict() }, config.outbound.allow.guard(own_host))
    } else {
        (strict(), strict())
    }
}

/// The socket that metrics are read at.
fn listen_for_metrics(address: SocketAddr) -> io::Result<net::TcpListener> {
    let told =
        |error: io::Error| io::Error::new(error.kind(), format!("metrics cannot be served at {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(told)?;
    listener.set_nonblocking(true)?;
    net::TcpListener::from_std(listener)
}
