//! The service's signing keys: made once, sealed into their rows, opened when a gate starts, and followed by others while it
//! runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::rules::people::keys::KEY_PREFIX;
use svc_core::rules::people::signing_key::{Leaked, RotateSigningKey};
use svc_core::state::gate::receipt::{DalekSigner, PublicKey, Signer};
use svc_core::state::people::{PUBLISHED_BEFORE, Purpose, SigningKey, SigningUse};
use svc_core::store::{Commit, Committed, Key, Loaded, Row as _, Stamp, Store, Write};
use svc_core::value::Timestamp;
use svc_core::value::base_url::BaseUrl;
use svc_core::value::id::WorkspaceId;
use svc_core::value::secret::Secret;

use crate::error::StoreError;
use crate::lasting::with_causes;
use crate::seal::{MASTER_KEY, MasterKey, NEXT_KEY, mode_open_to_others, random};

/// The text of a new key for an agent, to be shown once: 32 random bytes behind `ask_`. What is kept of it,
/// [`NewKey::of`](svc_core::rules::people::keys::NewKey::of) takes from it.
///
/// # Errors
/// The operating system gives no random bytes.
pub fn fresh_key() -> Result<Secret<String>, StoreError> {
    let bytes = random::<32>()?;
    Ok(Secret::new(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes.as_slice()))))
}

/// Loads rows by their keys.
pub type Load<'a> = dyn FnMut(&[Key]) -> Result<Vec<Loaded>, StoreError> + 'a;

/// Makes a signer from its 32-byte Ed25519 seed and the base address of the service.
pub type SignerFactory = dyn Fn(&Secret<[u8; 32]>, &str) -> Arc<dyn Signer> + Send + Sync;

/// The signer that svc-core brings.
#[must_use]
pub fn dalek(seed: &Secret<[u8; 32]>, issuer: &str) -> Arc<dyn Signer> {
    Arc::new(DalekSigner::new(seed, issuer))
}

/// The signers of the database behind `store`: its keys for receipts, checkpoints and scorecards are opened, or made and stored
/// where there is none. Which of a use's keys signs is a matter of time; new ones are taken in as the gate finds them.
///
/// `master` is the key that the configuration gave; without one the file in `directory` is read, and made only for a database
/// that has sealed nothing yet.
///
/// # Errors
/// [`StoreError::BaseAddress`] where `issuer` is none, which would stand in every receipt; the store does not answer; the master
/// key is missing, malformed or another database's.
pub fn receipt_signer<S: Store + ?Sized>(
    store: &mut S,
    directory: &Path,
    master: Option<MasterKey>,
    now: Timestamp,
    issuer: &str,
    make: &'static SignerFactory,
) -> Result<Arc<dyn Signer>, StoreError> {
    let issuer = BaseUrl::parse(issuer).map_err(|why| StoreError::BaseAddress { text: issuer.into(), why })?;
    let mut rows = stored(&mut |keys| store.load(keys).map_err(StoreError::of))?;
    let master = match master {
        Some(master) => master,
        None => match MasterKey::read(directory)? {
            Some(master) => {
                warn_where_open(directory);
                master
            }
            None if rows.is_empty() => MasterKey::make(directory)?,
            None => return Err(StoreError::MasterKeyMissing { path: directory.join(MASTER_KEY) }),
        },
    };
    for purpose in Purpose::ALL {
        if !rows.iter().any(|row| row.id.purpose == purpose) {
            // Another process that starts at once may be faster: then its key counts.
            let made = fresh(&master, SigningUse::first(purpose), now, now)?;
            rows.push(keep(store, made)?);
        }
    }
    match KeyRing::open(rows, master, issuer.as_str(), make) {
        // A change of the master key was broken off behind its commit.
        Err(StoreError::Sealed) if is_next(store, directory) => {
            Err(StoreError::Resealing { path: directory.join(NEXT_KEY) })
        }
        Err(StoreError::Sealed) => Err(match kept(store, directory) {
            Some(path) => StoreError::SealedBefore { path },
            None => StoreError::Sealed,
        }),
        ring => Ok(Arc::new(ring?)),
    }
}

/// Where a key of before lies in `directory` that opens the database, which is a copy of when it was in force.
fn kept<S: Store + ?Sized>(store: &mut S, directory: &Path) -> Option<PathBuf> {
    let opened = |(_, key): &(PathBuf, MasterKey)| matches!(opens(store, key), Ok(Some(true)));
    MasterKey::kept(directory).into_iter().find(opened).map(|(path, _)| path)
}

/// Whether the key that is to take the master key's place in `directory` opens the database.
fn is_next<S: Store + ?Sized>(store: &mut S, directory: &Path) -> bool {
    store.release();
    let next = MasterKey::read_next(directory).ok().flatten();
    next.is_some_and(|next| matches!(opens(store, &next), Ok(Some(true))))
}

/// Tells of a master key that others can read, as whoever has it and a copy of the database can sign receipts.
fn warn_where_open(directory: &Path) {
    if let Some(mode) = mode_open_to_others(directory) {
        let path = directory.join(MASTER_KEY).display().to_string();
        tracing::warn!(path, mode = format!("{mode:03o}"), "others can read or write the master key: `chmod 600` it");
    }
}

/// Whether `master` opens every signing key of the database behind `store`; `None` where there is none.
///
/// # Errors
/// The store does not answer.
pub fn opens<S: Store + ?Sized>(store: &mut S, master: &MasterKey) -> Result<Option<bool>, StoreError> {
    let rows = stored(&mut |keys| store.load(keys).map_err(StoreError::of))?;
    let opened = |row: &SigningKey| master.open(&SigningKey::purpose(row.id), &row.sealed).is_ok();
    Ok((!rows.is_empty()).then(|| rows.iter().all(opened)))
}

/// The rotation that has a key of `purpose` follow those that there are: from 24 hours on, for which it is published before it
/// is used, or at once where the one in force is in other hands.
///
/// # Errors
/// The rows could not be read, or the operating system gives no random bytes.
pub fn rotation(
    load: &mut Load<'_>,
    master: &MasterKey,
    purpose: Purpose,
    now: Timestamp,
    leaked: Leaked,
    workspaces: Vec<WorkspaceId>,
) -> Result<RotateSigningKey, StoreError> {
    let last = stored(load)?.into_iter().rfind(|row| row.id.purpose == purpose);
    let generation = last.as_ref().map_or(0, |it| it.id.generation.saturating_add(1));
    // What this gate cannot open was sealed under a master key that it has not: neither would it open what this one seals.
    let beside =
        last.map(|row| master.open(&SigningKey::purpose(row.id), &row.sealed).map(|_| row.sealed)).transpose()?;
    let not_before = if leaked == Leaked::None { now.plus(PUBLISHED_BEFORE) } else { now };
    let key = fresh(master, SigningUse { purpose, generation }, now, not_before)?;
    let public = PublicKey::of(&key).map_err(|_| StoreError::Sealed)?;
    Ok(RotateSigningKey { kid: public.kid().into(), key, leaked, beside: beside.unwrap_or_default(), workspaces })
}

/// A new key, its private half sealed.
fn fresh(
    master: &MasterKey,
    id: SigningUse,
    created_at: Timestamp,
    not_before: Timestamp,
) -> Result<SigningKey, StoreError> {
    let seed = Secret::new(*random::<32>()?);
    let public = DalekSigner::new(&seed, "").public_key(not_before);
    Ok(SigningKey {
        id,
        public: URL_SAFE_NO_PAD.encode(public.as_bytes()).into(),
        sealed: master.seal(&SigningKey::purpose(id), seed.expose())?.into(),
        created_at,
        not_before,
        retired_at: None,
        compromised_at: None,
    })
}

/// Generations of each use that are asked for at once: mostly all that there are, as each second they are looked for.
const AT_ONCE: u32 = 8;

/// Every signing key that the store has: of each use the generations from 0 without gaps.
pub(crate) fn stored(load: &mut Load<'_>) -> Result<Vec<SigningKey>, StoreError> {
    let (mut found, mut asked, mut from) = (HashMap::new(), Purpose::ALL.to_vec(), 0_u32);
    while !asked.is_empty() {
        let generations = from..from.saturating_add(AT_ONCE);
        let uses = asked
            .iter()
            .flat_map(|purpose| generations.clone().map(|it| SigningUse { purpose: *purpose, generation: it }));
        let keys: Vec<Key> = uses.map(SigningKey::key).collect();
        let rows = load(&keys)?;
        let rows = rows.iter().filter_map(|it| it.record.as_ref().and_then(SigningKey::peel));
        found.extend(rows.map(|row| (row.id, SigningKey::clone(row))));
        let all = |purpose: Purpose| {
            generations.clone().all(|it| found.contains_key(&SigningUse { purpose, generation: it }))
        };
        asked.retain(|purpose| !generations.is_empty() && all(*purpose));
        from = generations.end;
    }
    let mut rows = Vec::with_capacity(found.len());
    for purpose in Purpose::ALL {
        rows.extend((0..=u32::MAX).map_while(|generation| found.remove(&SigningUse { purpose, generation })));
    }
    Ok(rows)
}

fn keep<S: Store + ?Sized>(store: &mut S, row: SigningKey) -> Result<SigningKey, StoreError> {
    let key = SigningKey::key(row.id);
    let record = SigningKey::wrap(Arc::new(row.clone()));
    let link = record.links();
    let write = Write { key, record: Some(record), unlink: Vec::new(), link };
    let commit = Commit { checks: vec![(key, Stamp::ABSENT)], writes: vec![write] };
    match store.commit(&commit).map_err(StoreError::of)? {
        Committed::Applied(_) => Ok(row),
        Committed::Conflict(_) => {
            store.release();
            let loaded = store.load(&[key]).map_err(StoreError::of)?;
            let record = loaded.into_iter().find_map(|row| row.record);
            let kept = record.as_ref().and_then(SigningKey::peel).map(|row| SigningKey::clone(row));
            kept.ok_or(StoreError::Sealed)
        }
    }
}

/// The signing keys of a database, opened.
struct KeyRing {
    /// The receipt key that the gate started with: what the ring is where nobody asks for a time.
    first: Arc<dyn Signer>,
    master: MasterKey,
    make: &'static SignerFactory,
    held: RwLock<Held>,
}

/// The keys as they stood when they were last looked at.
struct Held {
    rows: Arc<[SigningKey]>,
    signers: Vec<Arc<dyn Signer>>,
}

impl KeyRing {
    fn open(
        rows: Vec<SigningKey>,
        master: MasterKey,
        issuer: &str,
        make: &'static SignerFactory,
    ) -> Result<Self, StoreError> {
        let signers = rows.iter().map(|row| opened(row, &master, issuer, make));
        let signers = signers.collect::<Result<Vec<_>, _>>()?;
        let receipt = rows.iter().rposition(|row| row.id.purpose == Purpose::Receipt);
        let first = receipt.and_then(|it| signers.get(it)).ok_or(StoreError::Sealed)?;
        let first = Arc::clone(first);
        Ok(Self { first, master, make, held: RwLock::new(Held { rows: rows.into(), signers }) })
    }
}

fn opened(
    row: &SigningKey,
    master: &MasterKey,
    issuer: &str,
    make: &SignerFactory,
) -> Result<Arc<dyn Signer>, StoreError> {
    let seed = master.open(&SigningKey::purpose(row.id), &row.sealed)?;
    let seed: [u8; 32] = seed.expose().as_slice().try_into().map_err(|_| StoreError::Sealed)?;
    let seed = Secret::new(seed);
    // The published half has to be the one that signs, or nothing would verify.
    let public = DalekSigner::new(&seed, issuer).public_key(row.created_at);
    if URL_SAFE_NO_PAD.encode(public.as_bytes()) != *row.public {
        return Err(StoreError::Sealed);
    }
    Ok(make(&seed, issuer))
}

impl Signer for KeyRing {
    fn issuer(&self) -> &str {
        self.first.issuer()
    }

    fn kid(&self) -> &str {
        self.first.kid()
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.first.sign(message)
    }

    fn made(&self, kid: &str, message: &[u8], signature: &[u8; 64]) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let signers = held.rows.iter().zip(&held.signers).filter(|(row, _)| row.id.purpose == Purpose::Receipt);
        let signer = signers.map(|(_, signer)| signer).find(|it| it.kid() == kid).map(Arc::clone);
        drop(held);
        signer.is_some_and(|it| it.made(kid, message, signature))
    }

    /// Where the key whose turn it was is compromised, the one that took its place stands in for it: the first sound one behind, which was
    /// made in that moment, and never one whose turn is still to come. Where none is behind, as by a clock that was set, it is the newest.
    fn of(&self, purpose: Purpose, at: Timestamp) -> Option<Arc<dyn Signer>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let own = || held.rows.iter().zip(&held.signers).filter(|(row, _)| row.id.purpose == purpose);
        let sound = || own().filter(|(row, _)| row.compromised_at.is_none());
        let stands_in = || sound().find(|(row, _)| row.not_before > at).or_else(|| sound().next_back());
        let turn = own().rfind(|(row, _)| row.signs_at(at)).or_else(stands_in);
        turn.map(|(_, signer)| Arc::clone(signer))
    }

    fn ring(&self) -> Option<Arc<[SigningKey]>> {
        Some(Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner).rows))
    }

    fn renew(&self, rows: Vec<SigningKey>) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if *held.rows == *rows {
            return;
        }
        match rows.iter().map(|row| opened(row, &self.master, self.issuer(), self.make)).collect() {
            Ok(signers) => *held = Held { rows: rows.into(), signers },
            Err(error) => {
                let error: StoreError = error;
                tracing::error!(error = with_causes(&error), "a signing key cannot be opened");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::store::MemoryStore;

    use super::*;

    /// However many generations there are, they are read in a few loads, in order, and up to the first that is not there.
    #[test]
    fn keys_are_read_a_few_loads_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let (master, mut store) = (MasterKey::make(directory.path()).unwrap(), MemoryStore::new());
        let now = Timestamp::from_millis(1_000);
        let mut counts = Vec::new();
        for generations in [0, 3, AT_ONCE, AT_ONCE + 1] {
            for purpose in Purpose::ALL {
                for generation in 0..generations {
                    keep(&mut store, fresh(&master, SigningUse { purpose, generation }, now, now).unwrap()).unwrap();
                }
                // Behind a gap nobody looks.
                let behind = SigningUse { purpose, generation: generations + 1 };
                if generations == AT_ONCE + 1 {
                    keep(&mut store, fresh(&master, behind, now, now).unwrap()).unwrap();
                }
            }
            let mut loads = 0;
            let rows = stored(&mut |keys| {
                loads += 1;
                store.load(keys).map_err(StoreError::of)
            });
            let all = Purpose::ALL.iter().flat_map(|purpose| (0..generations).map(move |it| (*purpose, it)));
            assert!(rows.unwrap().iter().map(|it| (it.id.purpose, it.id.generation)).eq(all), "{generations}");
            counts.push(loads);
        }
        assert_eq!(counts, [1, 1, 2, 2]);
    }
}
