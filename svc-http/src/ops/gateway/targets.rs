//! Providers as this server calls them: address, key and headers put together once and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use svc_core::refusal::Refusal;
use svc_core::state::gateway::{Upstream, UpstreamKey};
use svc_core::value::id::UpstreamId;
use svc_core::value::secret::Secret;
use svc_store::Gate;

use crate::upstream::{Failed, Reason, Target, Upstreams};

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
    pub(super) fn of(&self, gate: &Gate, upstreams: &Upstreams, upstream: &Upstream) -> Result<Arc<Target>, Failed> {
        let unusable = |_: Refusal| Failed::new(Reason::Address);
        let key = gate
            .read(|scope| scope.get::<UpstreamKey>(upstream.id))
            .map_err(|failure| unusable(crate::ops::refusal(failure)))?;
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(&upstream.id).filter(|it| it.upstream == *upstream && it.key == key) {
            return Ok(Arc::clone(&known.target));
        }
        let secret = match &key {
            Some(sealed) => {
                let purpose = UpstreamKey::purpose(sealed.workspace);
                let opened = gate.open_sealed(&purpose, &sealed.sealed).map_err(|_| Failed::new(Reason::Address))?;
                let text = String::from_utf8(opened.expose().clone()).map_err(|_| Failed::new(Reason::Address))?;
                Secret::new(text)
            }
            None => Secret::new(String::new()),
        };
        let target = Target::of(upstreams, upstream, secret).map_err(|_| Failed::new(Reason::Address))?;
        let target = Arc::new(target);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(upstream.id, Kept { upstream: upstream.clone(), key, target: Arc::clone(&target) });
        Ok(target)
    }
}
