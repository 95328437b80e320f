//! What `svc doctor` looks at of providers of models: whether each of them could be called, without a call.

use std::collections::BTreeMap;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use svc_core::state::gateway::{Routing, Upstream, UpstreamKey};
use svc_core::state::people::Workspace;
use svc_core::store::{Range, Row as _};
use svc_core::value::id::WorkspaceId;
use svc_core::value::link::Index;
use svc_http::config::Config;
use svc_http::upstream::{Allowed, Upstreams};
use svc_store::StoreError;
use svc_store::seal::MasterKey;

use super::Finding::{self, Broken, Odd, Well};
use super::data::broken;
use crate::cli::barred::{self, WORKSPACES_MAX, not_called};
use crate::cli::database::{Database, Session, is_current};

/// How long the system may take to find all hosts together.
const PATIENCE: Duration = Duration::from_secs(10);

/// One finding a provider; none where there is no database of this release, which is said elsewhere.
pub(super) fn all(config: &Config) -> Vec<Finding> {
    if !is_current(config) {
        return Vec::new();
    }
    looked(config).unwrap_or_else(|error| vec![broken(error)])
}

fn looked(config: &Config) -> Result<Vec<Finding>, StoreError> {
    let mut reader = Database::existing(config)?.reader()?;
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
    fn of(&mut self, reader: &mut Session, workspace: WorkspaceId, upstream: &Upstream) -> Result<Finding, StoreError> {
        let (name, url) = (upstream.name.as_str(), upstream.base_url.as_str());
        if !upstream.enabled {
            return Ok(Well(format!("`{name}` is disabled")));
        }
        let outside = &self.config.outbound.allow;
        if let Some(seen) = not_called(&self.caller(outside), upstream) {
            if not_called(&self.caller(&Allowed::loopback()), upstream).is_none() {
                let advice = "Nothing for `svc dev`; for `svc serve`, name the host in `outbound.allow`.";
                return Ok(Odd(seen, advice.to_owned()));
            }
            return Ok(Broken(seen, "Change its `baseUrl`, or name the host in `outbound.allow`.".to_owned()));
        }
        if !self.opens(reader, workspace, upstream)? {
            let advice = "Give it its key anew, or this server the master key that it was sealed under.";
            return Ok(Broken(format!("the key of `{name}` does not open"), advice.to_owned()));
        }
        Ok(self.place(name, url))
    }

    /// Whether its host is found, at addresses that may all be called: one that may not keeps every call from being made.
    fn place(&mut self, name: &str, url: &str) -> Finding {
        let Some((host, addresses)) = self.hosts.find(url) else {
            return Broken(
                format!("the host of `{name}` is not found"),
                "Correct its `baseUrl`, or this machine's name service.".to_owned(),
            );
        };
        let caller = self.caller(&self.config.outbound.allow);
        match addresses.into_iter().find(|it| !caller.may_reach(url, *it)) {
            None => Well(format!("`{name}` is at {host}")),
            Some(address) => Broken(
                format!(
                    "`{name}` at {host} is not called: {address}, where it lies, is not public or is this server's own"
                ),
                "Correct its `baseUrl` or this machine's name service, or name the host in `outbound.allow`."
                    .to_owned(),
            ),
        }
    }

    /// Who would call, in a server with these settings.
    fn caller(&self, allowed: &Allowed) -> Upstreams {
        let listen = self.config.listen;
        barred::caller(self.config, &self.config.base_url(listen), listen, allowed)
    }

    /// Whether its key can be shown; one that has none needs none.
    fn opens(&self, reader: &mut Session, workspace: WorkspaceId, upstream: &Upstream) -> Result<bool, StoreError> {
        let rows = reader.load(&[UpstreamKey::key(upstream.id)])?;
        let Some(key) = rows.first().and_then(|it| UpstreamKey::peel(it.record.as_ref()?)) else { return Ok(true) };
        let purpose = UpstreamKey::purpose(workspace);
        let sealed = std::iter::once(&key.sealed).filter(|it| !it.is_empty()).chain(key.headers.values());
        let opens = |master: &MasterKey| sealed.into_iter().all(|it| master.open(&purpose, it).is_ok());
        Ok(self.master.as_ref().is_some_and(opens))
    }
}

/// Hosts that were looked for, each once, all of them within one time.
struct Hosts {
    until: Instant,
    look: fn(String, Duration) -> Vec<IpAddr>,
    found: BTreeMap<String, Vec<IpAddr>>,
}

impl Hosts {
    const fn until(until: Instant) -> Self {
        Self { until, look: addresses_of, found: BTreeMap::new() }
    }

    /// The host of an address and where it lies, where the system finds it in time.
    fn find(&mut self, url: &str) -> Option<(String, Vec<IpAddr>)> {
        let host = url::Url::parse(url).ok()?.host()?.to_owned();
        let addresses = match &host {
            url::Host::Ipv4(it) => vec![IpAddr::V4(*it)],
            url::Host::Ipv6(it) => vec![IpAddr::V6(*it)],
            url::Host::Domain(name) => {
                let (look, left) = (self.look, self.until.saturating_duration_since(Instant::now()));
                self.found.entry(name.clone()).or_insert_with(|| look(name.clone(), left)).clone()
            }
        };
        if addresses.is_empty() { None } else { Some((host.to_string(), addresses)) }
    }
}

/// The addresses of a host; none where the system finds none in time.
fn addresses_of(name: String, patience: Duration) -> Vec<IpAddr> {
    let (tell, told) = mpsc::sync_channel(1);
    // The system takes its own time, and cannot be told to stop: whoever waits does.
    std::thread::spawn(move || {
        let found = (name.as_str(), 0).to_socket_addrs().map(|it| it.map(|place| place.ip()).collect());
        let _ = tell.send(found.unwrap_or_default());
    });
    told.recv_timeout(patience).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host is judged by every address that it has, as a server does before it calls.
    #[test]
    fn a_host_is_judged_by_its_addresses() {
        let look = |name: String, _: Duration| match name.as_str() {
            "public.example" => vec![[203, 1, 113, 7].into()],
            "inside.example" => vec![[10, 0, 0, 5].into()],
            "both.example" => vec![[203, 1, 113, 7].into(), [169, 254, 169, 254].into()],
            _ => Vec::new(),
        };
        let found = |allow: &[&str], host: &str| {
            let mut config = Config::default();
            config.outbound.allow = Allowed::parse(allow.iter().copied()).unwrap_or_default();
            let hosts = Hosts { look, ..Hosts::until(Instant::now()) };
            match (Doctor { config: &config, master: None, hosts }).place("it", &format!("https://{host}/v1")) {
                Broken(seen, _) => seen,
                Well(_) => "well".to_owned(),
                Odd(..) => "odd".to_owned(),
            }
        };
        let refused = |host: &str, address: &str| {
            format!("`it` at {host} is not called: {address}, where it lies, is not public or is this server's own")
        };
        assert_eq!(found(&[], "public.example"), "well");
        assert_eq!(found(&[], "inside.example"), refused("inside.example", "10.0.0.5"));
        assert_eq!(found(&["inside.example"], "inside.example"), "well");
        assert_eq!(found(&[], "both.example"), refused("both.example", "169.254.169.254"));
        assert_eq!(found(&["both.example"], "both.example"), refused("both.example", "169.254.169.254"));
        assert_eq!(found(&[], "nowhere.example"), "the host of `it` is not found");
    }
}
