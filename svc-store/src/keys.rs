//! The receipt key: made once, sealed into its row, opened when a gate starts.

use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::state::gate::receipt::{DalekSigner, Signer};
use svc_core::state::people::{Purpose, SigningKey, SigningUse};
use svc_core::store::{Commit, Committed, Row as _, Stamp, Store, Write};
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;

use crate::error::StoreError;
use crate::seal::{MASTER_KEY, MasterKey, random};

/// Makes the signer of receipts from its 32-byte Ed25519 seed and the base address of the service.
pub type SignerFactory = dyn Fn(&Secret<[u8; 32]>, &str) -> Arc<dyn Signer> + Send + Sync;

/// The signer that svc-core brings.
#[must_use]
pub fn dalek(seed: &Secret<[u8; 32]>, issuer: &str) -> Arc<dyn Signer> {
    Arc::new(DalekSigner::new(seed, issuer))
}

/// The receipt signer of the database behind `store`: its key is opened, or made and stored if there is none.
///
/// `master` is the key that the configuration gave; without one the file in `directory` is read, and made only for a database
/// that has sealed nothing yet.
///
/// # Errors
/// The store does not answer; the master key is missing, malformed or another database's.
pub fn receipt_signer<S: Store>(
    store: &mut S,
    directory: &Path,
    master: Option<MasterKey>,
    now: Timestamp,
    issuer: &str,
    make: &SignerFactory,
) -> Result<Arc<dyn Signer>, StoreError> {
    if let Some(row) = stored(store)? {
        let master = match master {
            Some(master) => master,
            None => MasterKey::read(directory)?
                .ok_or_else(|| StoreError::MasterKeyMissing { path: directory.join(MASTER_KEY) })?,
        };
        return open(&row, &master, issuer, make);
    }
    let master = match master {
        Some(master) => master,
        None => match MasterKey::read(directory)? {
            Some(master) => master,
            None => MasterKey::make(directory)?,
        },
    };
    let seed = Secret::new(*random::<32>()?);
    let signer = DalekSigner::new(&seed, issuer);
    let row = SigningKey {
        id: SigningUse::RECEIPT,
        public: URL_SAFE_NO_PAD.encode(signer.public_key(now).as_bytes()).into(),
        sealed: master.seal(&purpose(SigningUse::RECEIPT), seed.expose())?.into(),
        created_at: now,
        not_before: now,
        retired_at: None,
        compromised_at: None,
    };
    // Another process that starts at once may be faster: then its key counts.
    let row = keep(store, row)?;
    open(&row, &master, issuer, make)
}

fn open(
    row: &SigningKey,
    master: &MasterKey,
    issuer: &str,
    make: &SignerFactory,
) -> Result<Arc<dyn Signer>, StoreError> {
    let seed = master.open(&purpose(row.id), &row.sealed)?;
    let seed: [u8; 32] = seed.expose().as_slice().try_into().map_err(|_| StoreError::Sealed)?;
    let seed = Secret::new(seed);
    // The published half has to be the one that signs, or no receipt would verify.
    let public = DalekSigner::new(&seed, issuer).public_key(row.created_at);
    if URL_SAFE_NO_PAD.encode(public.as_bytes()) != *row.public {
        return Err(StoreError::Sealed);
    }
    Ok(make(&seed, issuer))
}

fn stored<S: Store>(store: &mut S) -> Result<Option<SigningKey>, StoreError> {
    let loaded = store.load(&[SigningKey::key(SigningUse::RECEIPT)]).map_err(StoreError::of)?;
    let record = loaded.into_iter().find_map(|row| row.record);
    Ok(record.as_ref().and_then(SigningKey::peel).map(|row| SigningKey::clone(row)))
}

fn keep<S: Store>(store: &mut S, row: SigningKey) -> Result<SigningKey, StoreError> {
    let key = SigningKey::key(row.id);
    let record = SigningKey::wrap(Arc::new(row.clone()));
    let link = record.links();
    let write = Write { key, record: Some(record), unlink: Vec::new(), link };
    let commit = Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write] };
    match store.commit(&commit).map_err(StoreError::of)? {
        Committed::Applied(_) => Ok(row),
        Committed::Conflict(_) => {
            store.release();
            stored(store)?.ok_or(StoreError::Sealed)
        }
    }
}

/// What a signing key's seed is sealed for: its row and no other.
fn purpose(id: SigningUse) -> String {
    let purpose = match id.purpose {
        Purpose::Receipt => "receipt",
        Purpose::Checkpoint => "checkpoint",
        Purpose::Scorecard => "scorecard",
    };
    format!("signing_key/{purpose}/{}", id.generation)
}
