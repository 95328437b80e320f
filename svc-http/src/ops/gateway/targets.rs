//! Providers as this server calls them: address, key and headers put together once and kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_core::engine::Failure;
use svc_core::rules::gateway::routing::routing_of;
use svc_core::state::gateway::{Routing, Upstream, UpstreamKey};
use svc_core::store::Row as _;
use svc_core::turn::Scope;
use svc_core::value::id::{UpstreamId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_store::{Gate, StoreError};

use crate::ops::log;
use crate::upstream::{Credentials, Failed, Reason, Target, Upstreams};

/// So many are kept; any one is let go of when there are more.
const KEPT_MAX: usize = 1_000;

/// What is kept of each provider, and what it was made of.
#[derive(Debug, Default)]
pub(crate) struct Targets(Mutex<HashMap<UpstreamId, Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    upstream: Upstream,
    key: Arc<UpstreamKey>,
    target: Arc<Target>,
}

/// A provider as it is called now.
pub(super) struct Present {
    /// What is called.
    pub(super) target: Arc<Target>,
    /// The provider, where it is elsewhere by now than the call was admitted with.
    pub(super) moved: Option<Box<Upstream>>,
}

impl Targets {
    /// The provider as it is called now. Its key is looked up each time, and goes where it was stored for: of a provider that has
    /// another key than the one that is kept here, both are read at one moment.
    ///
    /// # Errors
    /// It is gone, off, or speaks another shape or under another law than when the call was admitted; it cannot be read, its key cannot
    /// be opened, both of which are logged, or the address may not be called.
    pub(super) fn of(
        &self,
        gate: &Gate,
        upstreams: &Upstreams,
        (workspace, upstream): (WorkspaceId, &Upstream),
    ) -> Result<Present, Failed> {
        let unread = |failure: Failure<StoreError>| {
            log(&failure);
            Failed::new(Reason::Unread)
        };
        let changed = || Failed::new(Reason::Changed);
        let key = gate.read(|scope| scope.get::<UpstreamKey>(upstream.id)).map_err(unread)?.ok_or_else(changed)?;
        if let Some(target) = self.known(upstream, &key) {
            return Ok(Present { target, moved: None });
        }
        let both = |scope: &mut Scope<'_>| {
            scope.want(&[Routing::key(workspace), UpstreamKey::key(upstream.id)])?;
            Ok((routing_of(scope, workspace)?, scope.get::<UpstreamKey>(upstream.id)?))
        };
        let (routing, key) = gate.read(both).map_err(unread)?;
        let (now, key) = same_in(&routing, upstream).zip(key).ok_or_else(changed)?;
        let moved = (*now != *upstream).then(|| Box::new(now.clone()));
        if let Some(target) = self.known(now, &key) {
            return Ok(Present { target, moved });
        }
        let credentials = opened(gate, Some(&key)).map_err(|failure| {
            log(&failure);
            Failed::new(Reason::Sealed)
        })?;
        let target = Target::of(upstreams, now, credentials).map_err(|_| Failed::new(Reason::Address))?;
        let target = Arc::new(target.leaving_room(workspace, now.id));
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX && !kept.contains_key(&now.id) {
            let any = kept.keys().next().copied();
            any.and_then(|it| kept.remove(&it));
        }
        kept.insert(now.id, Kept { upstream: now.clone(), key, target: Arc::clone(&target) });
        drop(kept);
        Ok(Present { target, moved })
    }

    /// What is kept of a provider that is this, with this key.
    fn known(&self, upstream: &Upstream, key: &UpstreamKey) -> Option<Arc<Target>> {
        let kept = self.kept();
        let known = kept.get(&upstream.id).filter(|it| it.upstream == *upstream && *it.key == *key);
        known.map(|it| Arc::clone(&it.target))
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<UpstreamId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider as a workspace has it now, where a call that was admitted with `then` may still go to it.
fn same_in<'a>(routing: &'a Routing, then: &Upstream) -> Option<&'a Upstream> {
    let now = routing.upstream(then.id)?;
    (now.enabled && now.dialect == then.dialect && now.jurisdiction == then.jurisdiction).then_some(now)
}

/// What is sealed of a provider, opened.
///
/// # Errors
/// Some of it cannot be opened by this server.
pub(in crate::ops) fn opened(gate: &Gate, sealed: Option<&UpstreamKey>) -> Result<Credentials, Failure<StoreError>> {
    let Some(row) = sealed else { return Ok(Credentials { key: Secret::new(String::new()), headers: Vec::new() }) };
    let purpose = UpstreamKey::purpose(row.workspace);
    let open = |sealed: &str| {
        let opened = gate.open_sealed(&purpose, sealed)?;
        let text = String::from_utf8(opened.expose().clone()).map(Secret::new);
        text.map_err(|_| Failure::Load(StoreError::Sealed))
    };
    let key = if row.sealed.is_empty() { Secret::new(String::new()) } else { open(&row.sealed)? };
    let headers = row.headers.iter().map(|(name, sealed)| Ok((name.clone(), open(sealed)?)));
    Ok(Credentials { key, headers: headers.collect::<Result<_, Failure<StoreError>>>()? })
}
