//! The public keys as they stand: a key that follows another, or was found to be in other hands, counts at once.

use std::sync::{Arc, PoisonError, RwLock};

use svc_core::state::gate::receipt::{PublicKey, PublicKeys, Signer, jwks_json};
use svc_core::state::people::{Purpose, SigningKey};
use svc_core::value::Timestamp;

/// What receipts are checked with, and what is published.
#[derive(Debug)]
pub(crate) struct Keys {
    fixed: Arc<PublicKeys>,
    known: RwLock<Option<Known>>,
}

/// The rows of a ring, and the receipt keys among them.
#[derive(Debug)]
struct Known {
    rows: Arc<[SigningKey]>,
    receipts: Arc<PublicKeys>,
}

impl Keys {
    /// `fixed` count where the gate's signer is on no ring.
    pub(crate) fn new(fixed: PublicKeys) -> Self {
        Self { fixed: Arc::new(fixed), known: RwLock::new(None) }
    }

    /// The keys that receipts are checked with.
    pub(crate) fn receipts(&self, signer: &dyn Signer) -> Arc<PublicKeys> {
        let Some(rows) = signer.ring() else { return Arc::clone(&self.fixed) };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|it| Arc::ptr_eq(&it.rows, &rows)) {
            return Arc::clone(&known.receipts);
        }
        drop(known);
        let own = rows.iter().filter(|row| row.id.purpose == Purpose::Receipt);
        let receipts = Arc::new(own.filter_map(|row| PublicKey::of(row).ok()).collect::<PublicKeys>());
        let known = Known { rows, receipts: Arc::clone(&receipts) };
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
        receipts
    }

    /// The key set to publish: keys of every use, the next ones among them.
    pub(crate) fn jwks(&self, signer: &dyn Signer, now: Timestamp) -> String {
        let Some(rows) = signer.ring() else { return jwks_json(&self.fixed) };
        let published = rows.iter().filter(|row| row.is_published(now));
        jwks_json(&published.filter_map(|row| PublicKey::of(row).ok()).collect())
    }
}
