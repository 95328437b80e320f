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

use svc_core::state::edge::outbound::Outbound;
use svc_core::state::gate::receipt::PublicKeys;
use svc_store::Gate;
use tokio::net;

use crate::config::{BaseUrl, Config};
use crate::ops::GateService;
use crate::serve::serve;
use crate::shell::{Settings, Shell};

/// A server over a gate, on a socket that it has already.
#[derive(Debug)]
pub struct Server {
    listener: net::TcpListener,
    shell: Arc<Shell<GateService>>,
    gate: Gate,
}

impl Server {
    /// A server over `gate`, whose receipts are checked with the keys that its store has. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The socket cannot be taken over, or the store's keys cannot be read.
    pub fn new(listener: TcpListener, config: &Config, base_url: &BaseUrl, gate: Gate) -> io::Result<Self> {
        let keys = gate.public_keys().map_err(io::Error::other)?;
        Self::with_keys(listener, config, base_url, gate, keys)
    }

    /// The same with other keys to check receipts with: for a gate over a store that keeps none.
    ///
    /// # Errors
    /// The socket cannot be taken over.
    pub fn with_keys(
        listener: TcpListener,
        config: &Config,
        base_url: &BaseUrl,
        gate: Gate,
        keys: PublicKeys,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let listener = net::TcpListener::from_std(listener)?;
        let outbound =
            Outbound { allow_private_loopback: config.allow_private_callbacks, own_host: base_url.authority().into() };
        let service = GateService::new(gate.clone(), keys, outbound, base_url.as_str());
        let shell = Shell::new(service, Settings::of(config, base_url)).map_err(io::Error::other)?;
        Ok(Self { listener, shell: Arc::new(shell), gate })
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` is done, drains, and closes the gate once every answer has left.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        serve(self.listener, self.shell, stop).await;
        self.gate.close();
    }
}
