//! Settings of the server: read once at the start, from flags over environment over a file over defaults.
//!
//! [`KEYS`] is the one list of settings; their names in the file and in the environment, their defaults, their help and
//! the table of `docs/configuration.md` follow from it.
//!
//! **Invariant:** an unknown key is an error, never ignored: a misspelt limit must not be silently no limit. The value
//! of a secret key is in no message.

mod fault;
mod given;
mod keys;
mod mail;
mod sources;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;
use svc_core::state::people::{Plan, Plans};
pub use svc_core::value::base_url::BaseUrl;
use svc_core::value::secret::Secret;

pub use self::fault::{ConfigError, Fault};
pub use self::keys::{KEYS, Key, markdown_table, terminal_table};
pub use self::mail::{Login, MailConfig, MailServer, Security};
pub use self::sources::Sources;
use crate::slack;
use crate::upstream::{Allowed, Times};

/// The name of the settings file that is looked for in the data directory.
pub const FILE_NAME: &str = "svc.toml";

/// The name of the database's file.
pub const DATABASE: &str = "svc.db";

/// Everything that can be set, checked. Any value of a public field is a fine one; `Config::default()` is a server on
/// `127.0.0.1:8080` with its data in `./svc-data`.
#[derive(Debug)]
pub struct Config {
    /// The address that is listened on.
    pub listen: SocketAddr,
    /// `{base_url}`; `None` where it follows from the address, see [`Config::base_url`].
    pub base_url: Option<BaseUrl>,
    /// The data directory.
    pub data: PathBuf,
    /// The settings file, where it was named: one that lies in the data directory is found there.
    pub file: Option<PathBuf>,
    /// The database file, always called [`DATABASE`]; `None` is the one in the data directory.
    pub database: Option<PathBuf>,
    /// The address of a PostgreSQL database, instead of a file; it may hold a password.
    pub postgres: Option<Secret<String>>,
    /// Whether a database server is taken that may lose what it has confirmed (`store.mayLose`).
    pub may_lose: bool,
    /// What seals secrets at rest; `None` where it is kept in the data directory.
    pub master_key: Option<Secret<String>>,
    /// Networks of the proxies whose `x-forwarded-for` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// What is called outside, and who is trusted there.
    pub outbound: OutboundConfig,
    /// How much, how often, how many at once.
    pub limits: Limits,
    /// How long clients and upstreams are waited for.
    pub timeouts: Timeouts,
    /// What is logged, and how.
    pub log: LogConfig,
    /// Redirect URIs of OAuth clients that are admitted besides https and loopback, byte for byte (`oauth.allowRedirects`).
    pub allow_redirects: Vec<Box<str>>,
    /// Whether OAuth clients may name themselves by the address of their metadata (`oauth.clientDocuments`).
    pub client_documents: bool,
    /// How much workspaces may have, by their plan.
    pub plans: Plans,
    /// What billing is told by.
    pub billing: BillingConfig,
    /// How mail is sent.
    pub mail: MailConfig,
    /// Where Slack's methods are.
    pub slack_api: Box<str>,
    /// The address that metrics are served on; `None` where they are not.
    pub metrics: Option<SocketAddr>,
    /// Whether callbacks may go to private addresses; refused unless [`Config::listen`], and the socket that a
    /// server is given, is loopback.
    pub allow_private_callbacks: bool,
}

/// What is called outside, and who is trusted there (`outbound.*`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundConfig {
    /// Hosts on private addresses that upstreams may have.
    pub allow: Allowed,
    /// A file (PEM) of root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
}

/// What billing is told by (`billing.*`).
#[derive(Debug, Default)]
pub struct BillingConfig {
    /// What the payment processor signs with; without one nothing of it is good.
    pub secret: Option<Secret<String>>,
    /// Which plan a price is of.
    pub plans: BTreeMap<Box<str>, Plan>,
}

/// How much, how often, how many at once (`limits.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute of one agent on `/v1/actions/*`.
    pub gate_per_minute: u32,
    /// Requests a minute of one address on `/v1/verify`.
    pub verify_per_minute: u32,
    /// Requests a minute of one key on the routes of workspace keys.
    pub gateway_per_minute: u32,
    /// Requests a minute of one service token.
    pub token_per_minute: u32,
    /// Requests a minute of one address on the routes of signing in.
    pub sign_in_per_minute: u32,
    /// Requests a minute of one address on the OAuth endpoints; one client has a fifth of it at the token endpoint.
    pub oauth_per_minute: u32,
    /// Bytes of a request body.
    pub body_bytes: usize,
    /// Bytes of a request body of model traffic.
    pub model_body_bytes: usize,
    /// Bytes of a bill's body.
    pub billing_body_bytes: usize,
    /// Connections open at once.
    pub connections: usize,
}

/// How long clients and upstreams are waited for (`timeouts.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a request, or the opening of a connection, to the end of its header.
    pub header: Duration,
    /// From the end of a header to the end of its body.
    pub body: Duration,
    /// How long running requests get when the server stops.
    pub drain: Duration,
    /// How long model calls may take.
    pub calls: Times,
}

/// What is logged, and how (`log.*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogConfig {
    /// The least weighty events that are written.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

/// The least weighty events that are written (`log.level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What went wrong inside.
    Error,
    /// What an operator should look at.
    Warn,
    /// One line a request, starts and stops.
    #[default]
    Info,
    /// What helps to find a fault.
    Debug,
    /// Everything there is.
    Trace,
}

/// How a log line looks (`log.format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// JSON, unless standard error is a terminal.
    #[default]
    Auto,
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl FromStr for LogLevel {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "off" => Ok(Self::Off),
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            "trace" => Ok(Self::Trace),
            _ => Err(()),
        }
    }
}

impl FromStr for LogFormat {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "auto" => Ok(Self::Auto),
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err(()),
        }
    }
}

/// A configuration and what is worth telling about how it came about.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The file that was read, where there was one.
    pub file: Option<PathBuf>,
    /// The names of the settings in it that are secret, as the table of settings marks them: where there are any, nobody else may
    /// read it.
    pub secrets: Vec<&'static str>,
    /// Sentences for the log, such as names from the environment that were passed over.
    pub warnings: Vec<String>,
}

impl Config {
    /// Reads every source, strongest first: flags, environment, file, defaults.
    ///
    /// # Errors
    /// [`ConfigError`] with every fault found: unknown names, unreadable values, a file that cannot be read, settings
    /// that do not go together.
    pub fn load(sources: Sources) -> Result<Loaded, ConfigError> {
        sources.load()
    }

    /// The base address where the server listens on `listening`, which differs from [`Config::listen`] where that asks
    /// for any free port: as set, else plain http on the loopback address with that port.
    #[must_use]
    pub fn base_url(&self, listening: SocketAddr) -> BaseUrl {
        self.base_url.clone().unwrap_or_else(|| BaseUrl::of_loopback(listening))
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.database.clone().unwrap_or_else(|| self.data.join(DATABASE))
    }

    /// The directory that the database lies in.
    #[must_use]
    pub fn database_directory(&self) -> PathBuf {
        let folder = self.database.as_deref().and_then(Path::parent).filter(|it| !it.as_os_str().is_empty());
        match (folder, &self.database) {
            (Some(folder), _) => folder.to_path_buf(),
            (None, Some(_)) => PathBuf::from("."),
            (None, None) => self.data.clone(),
        }
    }

    /// What no single key can be blamed for.
    fn check_together(&self, faults: &mut Vec<Fault>) {
        if self.allow_private_callbacks && !self.listen.ip().is_loopback() {
            faults.push(Fault::new(
                format!(
                    "`--allow-private-callbacks` needs a server on a loopback address, and `{}` is none",
                    self.listen
                ),
                "Leave the flag out, or set `listen` to `127.0.0.1:8080`.",
            ));
        }
        let lone = match (&self.mail.server, &self.mail.from) {
            (Some(_), None) => Some(("mail.url", "mail.from")),
            (None, Some(_)) => Some(("mail.from", "mail.url")),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some((named, missing)) = lone {
            faults.push(Fault::new(
                format!("`{named}` is set and `{missing}` is not: no mail can be sent"),
                format!("Set `{missing}` too, or leave out `{named}`."),
            ));
        }
        if let Some(metrics) = self.metrics.filter(|it| clash(*it, self.listen)) {
            faults.push(Fault::new(
                format!("`metrics.listen` is {metrics}, and the server itself listens on {}", self.listen),
                "Give metrics a port of their own, such as `127.0.0.1:9464`, or set `metrics.listen` to `off`.",
            ));
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080),
            base_url: None,
            data: PathBuf::from("svc-data"),
            file: None,
            database: None,
            postgres: None,
            may_lose: false,
            master_key: None,
            trusted_proxies: Vec::new(),
            outbound: OutboundConfig::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            log: LogConfig::default(),
            allow_redirects: Vec::new(),
            client_documents: true,
            plans: Plans::default(),
            billing: BillingConfig::default(),
            mail: MailConfig::default(),
            slack_api: slack::API.into(),
            metrics: None,
            allow_private_callbacks: false,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            gate_per_minute: 600,
            verify_per_minute: 300,
            gateway_per_minute: 1_200,
            token_per_minute: 600,
            sign_in_per_minute: 30,
            oauth_per_minute: 300,
            body_bytes: 1 << 20,
            model_body_bytes: 32 << 20,
            billing_body_bytes: 8 << 20,
            connections: 10_000,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header: Duration::from_millis(10_000),
            body: Duration::from_millis(30_000),
            drain: Duration::from_millis(30_000),
            calls: Times::default(),
        }
    }
}

/// Whether no two sockets can listen on both; port 0 is always another one.
fn clash(one: SocketAddr, other: SocketAddr) -> bool {
    let is_covered = one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && is_covered
}

/// `path` as seen from `folder` where it is relative.
fn within(folder: Option<&Path>, path: &str) -> PathBuf {
    match folder {
        Some(folder) => folder.join(path),
        None => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests;
