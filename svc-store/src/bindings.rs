//! What keys stand for, remembered: a binding never changes.
//!
//! **Invariant:** that a key is unknown is not remembered, and whether a known one is in force is not known here.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use svc_core::state::people::Binding;
use svc_core::value::digest::Digest;

/// How many are kept; then all are forgotten, which costs one read each.
const KEPT_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Bindings(RwLock<HashMap<Digest, Arc<Binding>>>);

impl Bindings {
    pub(crate) fn get(&self, digest: &Digest) -> Option<Arc<Binding>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(digest).map(Arc::clone)
    }

    pub(crate) fn keep(&self, digest: Digest, binding: Arc<Binding>) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(digest, binding);
    }

    /// Forgets one key: the next time it is shown, it is looked for.
    pub(crate) fn forget(&self, digest: &Digest) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(digest);
    }
}
