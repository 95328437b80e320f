//! What `svc doctor` looks at of providers of models: whether each of them could be called, without a call.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use svc_core::state::gateway::{Routing, Upstream, UpstreamKey};
use svc_core::state::people::Workspace;
use svc_core::store::{Range, Row as _, Store as _};
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_http::config::Config;
use svc_http::outbound::{SystemResolver, Trust};
use svc_http::upstream::{Allowed, Upstreams};
use svc_store::seal::MasterKey;
use svc_store::sqlite::SqliteSession;
use svc_store::{Backend as _, SqliteStore, StoreError, sqlite};

use super::Finding::{self, Broken, Odd, Well};
use super::data::broken;

/// Workspaces whose providers are looked at.
const WORKSPACES_MAX: usize = 100;
/// How long the system may take to find all hosts together.
const PATIENCE: Duration = Duration::from_secs(10);

/// One finding a provider; none where there is no database of this release, which is said elsewhere.
pub(super) fn all(config: &Config) -> Vec<Finding> {
    if !matches!(sqlite::schema_of(config.database_directory()), Ok(sqlite::SCHEMA)) {
        return Vec::new();
    }
    looked(config).unwrap_or_else(|error| vec![broken(error)])
}

fn looked(config: &Config) -> Result<Vec<Finding>, StoreError> {
    let mut reader = SqliteStore::existing(config.database_directory())?.reader()?;
    let master = match &config.master_key {
        Some(key) => MasterKey::parse(key.expose()).map(Some),
        None => MasterKey::read(&config.data),
    };
    // What is wrong with the master key is told of the keys.
    let mut doctor = Doctor { config, master: master.ok().flatten(), hosts: Hosts::until(Instant::now() + PATIENCE) };
    let mut findings = Vec::new();
    for found in reader.scan(&Range::all(Index::Workspaces, 0, WORKSPACES_MAX))? {
        let Some(workspace) = found.row.record.as_ref().and_then(Workspace::peel).map(|it| it.id) else { continue };
        let rows = reader.load(&[Routing::key(workspace)])?;
        let routing = rows.first().and_then(|it| Routing::peel(it.record.as_ref()?)).cloned();
        for upstream in routing.iter().flat_map(|it| &it.upstreams) {
            findings.push(doctor.of(&mut reader, workspace, upstream)?);
        }
    }
    Ok(findings)
}

struct Doctor<'a> {
    config: &'a Config,
    master: Option<MasterKey>,
    hosts: Hosts,
}

impl Doctor<'_> {
    fn of(
        &mut self,
        reader: &mut SqliteSession,
        workspace: WorkspaceId,
        upstream: &Upstream,
    ) -> Result<Finding, StoreError> {
        let (name, url) = (upstream.name.as_str(), upstream.base_url.as_str());
        if !upstream.enabled {
            return Ok(Well(format!("`{name}` is disabled")));
        }
        let outside = &self.config.outbound.allow;
        if let Err(why) = self.judge(outside, url) {
            let host = url::Url::parse(url).ok().and_then(|it| Some(it.host_str()?.to_owned())).unwrap_or_default();
            let seen = format!("`{name}` at {host} is not called: its address {why}");
            if self.judge(&Allowed::loopback(), url).is_ok() {
                let advice = "Nothing for `svc dev`; for `svc serve`, name the host in `outbound.allow`.";
                return Ok(Odd(seen, advice.to_owned()));
            }
            return Ok(Broken(seen, "Change its `baseUrl`, or name the host in `outbound.allow`.".to_owned()));
        }
        if !self.opens(reader, workspace, upstream)? {
            let advice = "Give it its key anew, or this server the master key that it was sealed under.";
            return Ok(Broken(format!("the key of `{name}` does not open"), advice.to_owned()));
        }
        Ok(match self.hosts.find(url) {
            Some(host) => Well(format!("`{name}` is at {host}")),
            None => Broken(
                format!("the host of `{name}` is not found"),
                "Correct its `baseUrl`, or this machine's name service.".to_owned(),
            ),
        })
    }

    /// The outbound guard, as a server with these settings has it.
    fn judge(&self, allowed: &Allowed, url: &str) -> Result<(), svc_core::value::Invalid> {
        let (own, times) = (self.config.base_url(self.config.listen), self.config.timeouts.calls);
        let resolver = Arc::new(SystemResolver);
        Upstreams::new(allowed.clone(), times, own.authority(), None, resolver, Trust::default()).judge(url)
    }

    /// Whether its key can be shown; one that has none needs none.
    fn opens(
        &self,
        reader: &mut SqliteSession,
        workspace: WorkspaceId,
        upstream: &Upstream,
    ) -> Result<bool, StoreError> {
        let rows = reader.load(&[UpstreamKey::key(upstream.id)])?;
        let Some(key) = rows.first().and_then(|it| UpstreamKey::peel(it.record.as_ref()?)) else { return Ok(true) };
        let purpose = UpstreamKey::purpose(workspace);
        Ok(self.master.as_ref().is_some_and(|it| it.open(&purpose, &key.sealed).is_ok()))
    }
}

/// Hosts that were looked for, each once, all of them within one time.
struct Hosts {
    until: Instant,
    found: BTreeMap<String, bool>,
}

impl Hosts {
    const fn until(until: Instant) -> Self {
        Self { until, found: BTreeMap::new() }
    }

    /// The host of an address, where the system finds it in time.
    fn find(&mut self, url: &str) -> Option<String> {
        let url = url::Url::parse(url).ok()?;
        let (host, port) = (url.host()?.to_owned(), url.port_or_known_default()?);
        let shown = host.to_string();
        let url::Host::Domain(name) = host else { return Some(shown) };
        let left = self.until.saturating_duration_since(Instant::now());
        let is_there = *self.found.entry(name.clone()).or_insert_with(|| resolves(name, port, left));
        is_there.then_some(shown)
    }
}

fn resolves(name: String, port: u16, patience: Duration) -> bool {
    let (tell, told) = mpsc::sync_channel(1);
    // The system takes its own time, and cannot be told to stop: whoever waits does.
    std::thread::spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs().map(|mut it: std::vec::IntoIter<SocketAddr>| it.next());
        let _ = tell.send(found.ok().flatten().is_some());
    });
    told.recv_timeout(patience).unwrap_or_default()
}
