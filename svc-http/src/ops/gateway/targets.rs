//! Providers as this server calls them: address, key and headers put together once and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use svc_core::refusal::Refusal;
use svc_core::state::gateway::{Upstream, UpstreamKey};
use svc_core::value::id::{UpstreamId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_store::Gate;

use crate::upstream::{Credentials, Failed, Reason, Target, Upstreams};

/// So many are kept; all are let go when there are more.
const KEPT_MAX: usize = 1_000;

/// What is kept of each provider, and what it was made of.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<HashMap<UpstreamId, Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    upstream: Upstream,
    key: Option<Arc<UpstreamKey>>,
    target: Arc<Target>,
}

impl Targets {
    /// The provider as it is called now. Its key is looked up each time: one that was changed or removed is used no more.
    ///
    /// # Errors
    /// The key cannot be opened, or the address may not be called.
    pub(super) fn of(
        &self,
        gate: &Gate,
        upstreams: &Upstreams,
        (workspace, upstream): (WorkspaceId, &Upstream),
    ) -> Result<Arc<Target>, Failed> {
        let unusable = |_: Refusal| Failed::new(Reason::Address);
        let key = gate
            .read(|scope| scope.get::<UpstreamKey>(upstream.id))
            .map_err(|failure| unusable(crate::ops::refusal(failure)))?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&upstream.id).filter(|it| it.upstream == *upstream && it.key == key) {
            return Ok(Arc::clone(&known.target));
        }
        let credentials = opened(gate, key.as_deref()).ok_or_else(|| Failed::new(Reason::Address))?;
        let target = Target::of(upstreams, upstream, credentials).map_err(|_| Failed::new(Reason::Address))?;
        let target = Arc::new(target.leaving_room(workspace, upstream.id));
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(upstream.id, Kept { upstream: upstream.clone(), key, target: Arc::clone(&target) });
        Ok(target)
    }
}

/// What is sealed of a provider, opened; nothing where some of it cannot be.
pub(in crate::ops) fn opened(gate: &Gate, sealed: Option<&UpstreamKey>) -> Option<Credentials> {
    let Some(row) = sealed else { return Some(Credentials { key: Secret::new(String::new()), headers: Vec::new() }) };
    let purpose = UpstreamKey::purpose(row.workspace);
    let open = |sealed: &str| {
        let opened = gate.open_sealed(&purpose, sealed).ok()?;
        String::from_utf8(opened.expose().clone()).ok().map(Secret::new)
    };
    let key = if row.sealed.is_empty() { Secret::new(String::new()) } else { open(&row.sealed)? };
    let headers = row.headers.iter().map(|(name, sealed)| Some((name.clone(), open(sealed)?)));
    Some(Credentials { key, headers: headers.collect::<Option<_>>()? })
}
