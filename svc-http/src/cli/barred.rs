//! Providers of models whose address may not be called: each call of them would fail, so whoever starts a server is told before.

use std::net::SocketAddr;
use std::sync::Arc;

use svc_core::state::gateway::{Routing, Upstream};
use svc_core::state::people::Workspace;
use svc_core::store::{Range, Row as _};
use svc_core::value::link::Index;
use svc_http::config::{BaseUrl, Config};
use svc_http::outbound::{SystemResolver, Trust};
use svc_http::upstream::{Allowed, Upstreams};
use svc_store::Gate;

use super::output::Problem;

/// Workspaces whose providers are looked at.
pub(crate) const WORKSPACES_MAX: usize = 100;
/// Providers that are told of.
const TOLD_MAX: usize = 20;

/// What is to be said of each that is in use and that a server with these settings, listening on `own`, would not call, as far as its
/// address's text goes.
///
/// # Errors
/// [`Problem`] where the store does not answer.
pub(crate) fn barred(
    config: &Config,
    base_url: &BaseUrl,
    own: SocketAddr,
    gate: &Gate,
) -> Result<Vec<String>, Problem> {
    let caller = caller(config, base_url, own, &config.outbound.allow);
    let mut told = Vec::new();
    for found in gate.scan(&Range::all(Index::Workspaces, 0, WORKSPACES_MAX))? {
        let Some(workspace) = found.row.record.as_ref().and_then(Workspace::peel).map(|it| it.id) else { continue };
        let routing = gate.read(|scope| scope.get::<Routing>(workspace))?;
        let used = routing.iter().flat_map(|it| &it.upstreams).filter(|it| it.enabled);
        told.extend(used.filter_map(|it| not_called(&caller, it)));
    }
    told.truncate(TOLD_MAX);
    Ok(told)
}

/// What is seen of a provider that `caller` would not call.
pub(crate) fn not_called(caller: &Upstreams, upstream: &Upstream) -> Option<String> {
    let (name, url) = (upstream.name.as_str(), upstream.base_url.as_str());
    let why = caller.judge(url).err()?;
    let host = url::Url::parse(url).ok().and_then(|it| Some(it.host_str()?.to_owned())).unwrap_or_default();
    Some(format!("`{name}` at {host} is not called: its address {why}"))
}

/// Who calls providers in a server with these settings, but for the hosts that may be private.
pub(crate) fn caller(config: &Config, base_url: &BaseUrl, own: SocketAddr, allowed: &Allowed) -> Upstreams {
    let resolver = Arc::new(SystemResolver);
    Upstreams::new(allowed, config.timeouts.calls, base_url.authority(), Some(own), resolver, Trust::default())
}
