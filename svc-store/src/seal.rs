//! Secrets at rest, sealed under the master key.
//!
//! XChaCha20-Poly1305 with a random nonce of 24 bytes (draft-irtf-cfrg-xchacha): no counter has to survive a restored backup.
//! What a secret is for is authenticated with it, so a sealed text put into another row does not open.
//!
//! **Invariant:** neither the master key nor an opened secret is printed, logged or copied.

use std::cell::RefCell;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use svc_core::value::secret::Secret;
use svc_core::value::seed::Seed;
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::StoreError;
use crate::flush::flush_names;

/// The master key's name in the data directory.
pub const MASTER_KEY: &str = "master.key";
/// The name of the key that is to take its place, in the data directory: there while a change of it is under way.
pub const NEXT_KEY: &str = "master.key.next";
/// How the names of those begin that were in its place before, in the data directory.
pub const KEPT_KEY: &str = "master.key.until-";
/// Keys of before that are tried.
const KEPT_MAX: usize = 64;
/// How a text sealed in this way begins.
const VERSION: &str = "x1.";
const NONCE_BYTES: usize = 24;
/// Bytes of as many salts as a thread takes from the operating system at a time.
const SALTS_BYTES: usize = 16 * 32;

/// The key that every other secret is sealed under: 32 bytes. Clones are one key in one place of memory.
#[derive(Clone)]
pub struct MasterKey(Arc<Secret<[u8; 32]>>);

impl MasterKey {
    /// The key over these bytes.
    #[must_use]
    pub fn new(bytes: Secret<[u8; 32]>) -> Self {
        Self(Arc::new(bytes))
    }

    /// Reads 32 bytes in base64url or hexadecimal, as `SVC_MASTER_KEY` and the key's file have them.
    ///
    /// # Errors
    /// [`StoreError::MasterKeyMalformed`] where it is neither.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        let bytes = Zeroizing::new(match text.len() {
            64 => from_hex(text).ok_or(StoreError::MasterKeyMalformed)?,
            _ => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| StoreError::MasterKeyMalformed)?,
        });
        let key = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| StoreError::MasterKeyMalformed)?;
        Ok(Self::new(Secret::new(key)))
    }

    /// Reads the key of a data directory; `None` where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or holds no key.
    pub fn read(directory: &Path) -> Result<Option<Self>, StoreError> {
        Self::read_as(directory, MASTER_KEY)
    }

    /// The keys that were a data directory's before, as [`follow`](Self::follow) kept them under names that begin with [`KEPT_KEY`], and where
    /// each lies, the newest of these names first. What cannot be read is left out.
    #[must_use]
    pub fn kept(directory: &Path) -> Vec<(PathBuf, Self)> {
        let listed = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = listed.filter_map(|it| it.file_name().into_string().ok()).collect();
        names.retain(|it| it.starts_with(KEPT_KEY));
        names.sort_unstable();
        let read = |name: String| Some((directory.join(&name), Self::read_as(directory, &name).ok()??));
        names.into_iter().rev().take(KEPT_MAX).filter_map(read).collect()
    }

    /// Reads the key that is to take the place of a data directory's; `None` where no change is under way.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_next(directory: &Path) -> Result<Option<Self>, StoreError> {
        Self::read_as(directory, NEXT_KEY)
    }

    fn read_as(directory: &Path, name: &str) -> Result<Option<Self>, StoreError> {
        let path = directory.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(&Zeroizing::new(text)).map(Some),
            Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(StoreError::file(path, "the master key cannot be read", cause)),
        }
    }

    /// Makes the key of a data directory, readable to this user alone, and has it on the disk before anything is sealed with
    /// it. Where another process was faster, that one's key is read.
    ///
    /// # Errors
    /// No random bytes, or the file cannot be written.
    pub fn make(directory: &Path) -> Result<Self, StoreError> {
        Self::make_as(directory, MASTER_KEY)
    }

    /// Makes the key that is to take the place of a data directory's, as [`make`](Self::make) does. One that lies there is let go of:
    /// nothing may be sealed under it.
    ///
    /// # Errors
    /// As [`make`](Self::make).
    pub fn make_next(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(NEXT_KEY);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != ErrorKind::NotFound => {
                Err(StoreError::file(path, "the key of a change that was broken off cannot be removed", cause))
            }
            _ => Self::make_as(directory, NEXT_KEY),
        }
    }

    /// Puts the next key of a data directory in its place, at once or not at all, and keeps the one before it as `kept`, which is no
    /// other file's name: backups of before are opened by it.
    ///
    /// # Errors
    /// A file cannot be written or renamed; what is there is left.
    pub fn follow(directory: &Path, kept: &str) -> Result<(), StoreError> {
        let (path, before) = (directory.join(MASTER_KEY), directory.join(kept));
        let told = |cause| StoreError::file(&path, "the master key cannot be replaced", cause);
        match fs::read_to_string(&path).map(Zeroizing::new) {
            Ok(text) => write_new(&before, &text).map_err(told)?,
            Err(cause) if cause.kind() == ErrorKind::NotFound => {}
            Err(cause) => return Err(told(cause)),
        }
        let renamed = flush_names(directory).and_then(|()| fs::rename(directory.join(NEXT_KEY), &path));
        renamed.and_then(|()| flush_names(directory)).map_err(told)
    }

    fn make_as(directory: &Path, called: &str) -> Result<Self, StoreError> {
        let key = random::<32>()?;
        let path = directory.join(called);
        let text = Zeroizing::new(format!("{}\n", URL_SAFE_NO_PAD.encode(key.as_slice())));
        // Under its name it is whole from the first: another process may read it at any moment, and this one may end at any.
        let name = URL_SAFE_NO_PAD.encode(random::<12>()?.as_slice());
        let partial = directory.join(format!("{called}.{name}.partial"));
        let written = write_new(&partial, &text).and_then(|()| match fs::hard_link(&partial, &path) {
            // A disk that gives no second names.
            Err(cause) if cause.kind() != ErrorKind::AlreadyExists => write_new(&path, &text),
            named => named,
        });
        // What cannot be taken away is left: its name says that it is partial, and it is this user's alone.
        let _ = fs::remove_file(&partial);
        let written = written.and_then(|()| flush_names(directory));
        match written {
            Ok(()) => Ok(Self::new(Secret::new(*key))),
            Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
                Self::read_as(directory, called)?.ok_or(StoreError::MasterKeyMissing { path })
            }
            Err(cause) => Err(StoreError::file(path, "the master key cannot be written", cause)),
        }
    }

    /// Seals `secret` for one `purpose`, such as a row's table and key.
    ///
    /// # Errors
    /// No random bytes.
    pub fn seal(&self, purpose: &str, secret: &[u8]) -> Result<String, StoreError> {
        let nonce = random::<NONCE_BYTES>()?;
        let payload = Payload { msg: secret, aad: purpose.as_bytes() };
        // It fails for texts beyond 256 GiB alone.
        let sealed = self.cipher().encrypt(&XNonce::from(*nonce), payload).map_err(|_| StoreError::Sealed)?;
        let mut bytes = nonce.to_vec();
        bytes.extend_from_slice(&sealed);
        Ok(format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Opens what was sealed for `purpose`.
    ///
    /// # Errors
    /// [`StoreError::Sealed`] where the key, the purpose or the text is another one.
    pub fn open(&self, purpose: &str, sealed: &str) -> Result<Secret<Vec<u8>>, StoreError> {
        let text = sealed.strip_prefix(VERSION).ok_or(StoreError::Sealed)?;
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| StoreError::Sealed)?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(StoreError::Sealed)?;
        let payload = Payload { msg: sealed, aad: purpose.as_bytes() };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload).map_err(|_| StoreError::Sealed)?;
        Ok(Secret::new(opened))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.0.expose().into())
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MasterKey(…)")
    }
}

/// The mode of the master key's file in a data directory, where others than its user may do anything with it.
pub(crate) fn mode_open_to_others(directory: &Path) -> Option<u32> {
    #[cfg(unix)]
    {
        let data = fs::metadata(directory.join(MASTER_KEY)).ok()?;
        let mode = std::os::unix::fs::MetadataExt::mode(&data) & 0o777;
        (mode & 0o077 != 0).then_some(mode)
    }
    #[cfg(not(unix))]
    {
        let _ = directory;
        None
    }
}

/// Random bytes of the operating system, wiped when they are dropped.
pub(crate) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, StoreError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|cause| StoreError::Entropy(Arc::new(cause)))?;
    Ok(bytes)
}

/// The salts that a thread has taken, and the process that took them: one that was forked off has a copy of them.
struct Salts {
    process: u32,
    left: Vec<[u8; 16]>,
}

impl Salts {
    /// The next one for the process of this id, from what `take` gives where none is left.
    fn next(
        &mut self,
        process: u32,
        take: impl FnOnce() -> Result<Zeroizing<[u8; SALTS_BYTES]>, StoreError>,
    ) -> Result<[u8; 16], StoreError> {
        if self.process != process {
            self.process = process;
            self.left.clear();
        }
        if let Some(salt) = self.left.pop() {
            return Ok(salt);
        }
        let taken = take()?;
        let (several, _) = taken.as_chunks();
        self.left.extend_from_slice(several);
        random().map(|salt| *salt)
    }
}

thread_local! {
    static SALTS: RefCell<Salts> = const { RefCell::new(Salts { process: 0, left: Vec::new() }) };
}

/// Sixteen random bytes of the operating system, given once. A thread takes those of several salts at a time, since a system
/// call for each costs more than using them.
pub(crate) fn fresh_salt() -> Result<[u8; 16], StoreError> {
    SALTS.with_borrow_mut(|salts| salts.next(std::process::id(), random))
}

/// A seed from the operating system.
///
/// # Errors
/// It gave none.
pub fn fresh_seed() -> Result<Seed, StoreError> {
    random::<32>().map(|bytes| Seed::new(*bytes))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(32);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    for [high, low] in pairs {
        match (char::from(*high).to_digit(16), char::from(*low).to_digit(16)) {
            (Some(high), Some(low)) => bytes.push(u8::try_from(high * 16 + low).ok()?),
            _ => {
                bytes.zeroize();
                return None;
            }
        }
    }
    rest.is_empty().then_some(bytes)
}

/// Writes a file that is not there yet, readable to this user alone, and has it on the disk.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
    use super::*;

    fn key(byte: u8) -> MasterKey {
        MasterKey::new(Secret::new([byte; 32]))
    }

    /// A sealed secret opens under its key for its purpose, and is sealed differently each time.
    #[test]
    fn what_is_sealed_opens() {
        let sealed = key(7).seal("signing_key/receipt/0", b"a secret").unwrap();
        assert_eq!(key(7).open("signing_key/receipt/0", &sealed).unwrap().expose(), b"a secret");
        assert_ne!(key(7).seal("signing_key/receipt/0", b"a secret").unwrap(), sealed);
    }

    /// Another key, another purpose, or any other character: nothing opens.
    #[test]
    fn nothing_else_opens_it() {
        let sealed = key(7).seal("signing_key/receipt/0", b"a secret").unwrap();
        assert!(key(8).open("signing_key/receipt/0", &sealed).is_err());
        assert!(key(7).open("signing_key/receipt/1", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut altered = sealed.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert!(key(7).open("signing_key/receipt/0", &altered).is_err(), "altered at {at}");
        }
        assert!(key(7).open("signing_key/receipt/0", "").is_err());
    }

    /// The key is made once, for this user alone, and read again as it was.
    #[test]
    fn the_key_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(MasterKey::read(dir.path()).unwrap().is_none());
        let made = MasterKey::make(dir.path()).unwrap();
        let again = MasterKey::make(dir.path()).unwrap();
        let sealed = made.seal("it", b"it").unwrap();
        assert_eq!(again.open("it", &sealed).unwrap().expose(), b"it");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(dir.path().join(MASTER_KEY)).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    /// A key's file that others may read or write is told from one that is its user's alone, and from none.
    #[cfg(unix)]
    #[test]
    fn a_key_that_others_can_read_is_seen() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(mode_open_to_others(dir.path()), None);
        MasterKey::make(dir.path()).unwrap();
        assert_eq!(mode_open_to_others(dir.path()), None);
        for mode in [0o644, 0o640, 0o602] {
            fs::set_permissions(dir.path().join(MASTER_KEY), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(mode_open_to_others(dir.path()), Some(mode));
        }
    }

    /// Whoever reads while the key is made finds all of it or none, and nothing is left beside it.
    #[test]
    fn a_key_is_there_whole_or_not_at_all() {
        for _ in 0..32 {
            let dir = tempfile::tempdir().unwrap();
            let read = || while MasterKey::read(dir.path()).unwrap().is_none() {};
            std::thread::scope(|scope| {
                let readers = [scope.spawn(read), scope.spawn(read)];
                scope.spawn(|| MasterKey::make(dir.path()).unwrap());
                scope.spawn(|| MasterKey::make(dir.path()).unwrap());
                readers.into_iter().for_each(|it| it.join().unwrap());
            });
            let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
            assert_eq!(names, [MASTER_KEY]);
        }
    }

    /// Both spellings give the same key; anything else is refused, and nothing of it is printed.
    #[test]
    fn a_key_is_base64url_or_hexadecimal() {
        let sealed = key(0xab).seal("it", b"it").unwrap();
        for text in ["ab".repeat(32), format!("{}\n", "AB".repeat(32)), URL_SAFE_NO_PAD.encode([0xab; 32])] {
            assert!(MasterKey::parse(&text).unwrap().open("it", &sealed).is_ok(), "{text}");
        }
        for text in ["", "ab", "g".repeat(64).as_str(), "+".repeat(43).as_str()] {
            assert!(matches!(MasterKey::parse(text), Err(StoreError::MasterKeyMalformed)), "{text}");
        }
        assert_eq!(format!("{:?}", key(1)), "MasterKey(…)");
    }

    /// A process that was forked off gives out none of the salts that its parent has taken and may give out too.
    #[test]
    fn a_fork_takes_salts_of_its_own() {
        let mut salts = Salts { process: 0, left: Vec::new() };
        let first = salts.next(1, random).unwrap();
        let kept = salts.left.clone();
        assert!(!kept.is_empty() && !kept.contains(&first));
        let forked = salts.next(2, random).unwrap();
        assert!(!kept.contains(&forked) && salts.left.iter().all(|it| !kept.contains(it)));
        let second = salts.next(2, || panic!("there are some left")).unwrap();
        assert_ne!(second, forked);
    }
}
