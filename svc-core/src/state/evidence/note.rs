//! Signed notes (C2SP signed-note) and the checkpoints they carry (C2SP tlog-checkpoint).
//!
//! **Invariant:** a note counts only where a key that is trusted under its name and id signed it; a line of such a key that
//! does not verify makes the whole note worthless, and lines of other keys are passed over.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::state::gate::receipt::{PublicKey, Signer};
use crate::value::digest::Digest;

/// What the algorithm byte of an Ed25519 key is.
const ED25519: u8 = 1;
/// No note that svc reads is longer.
pub const NOTE_BYTES_MAX: usize = 64 * 1_024;
/// What every signature line begins with.
const LINE: &str = "\u{2014} ";

/// What is wrong with a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteFault {
    /// It has not the form of one.
    #[error("it is not a signed note")]
    Malformed,
    /// A known key's signature does not fit.
    #[error("the signature does not fit")]
    BadSignature,
    /// No known key signed it.
    #[error("no known key signed it")]
    Unsigned,
}

/// A key under the name that signs notes with it.
#[derive(Clone, Copy, Debug)]
pub struct NoteKey<'a> {
    /// The name: of a ledger, its origin.
    pub name: &'a str,
    /// The public half.
    pub key: &'a PublicKey,
}

impl NoteKey<'_> {
    /// The key's id: the first four bytes of SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key).
    #[must_use]
    pub fn id(&self) -> [u8; 4] {
        let named = [self.name.as_bytes(), b"\n", &[ED25519], self.key.as_bytes()].concat();
        let [a, b, c, d, ..] = *Digest::of(named).as_bytes();
        [a, b, c, d]
    }
}

/// Signs `text`, whose lines all end in a newline. `None` where the name or the text is of no note: a name has neither space
/// nor plus sign nor newline, a text no control character but newlines.
#[must_use]
pub fn sign(text: &str, key: &NoteKey<'_>, signer: &dyn Signer) -> Option<String> {
    let plain = |it: &str| !it.is_empty() && !it.chars().any(|c| c.is_whitespace() || c == '+' || c.is_control());
    if !plain(key.name) || !text.ends_with('\n') || text.chars().any(|c| c.is_control() && c != '\n') {
        return None;
    }
    let signature = [key.id().as_slice(), &signer.sign(text.as_bytes())].concat();
    Some(format!("{text}\n{LINE}{} {}\n", key.name, STANDARD.encode(signature)))
}

/// The text of a note that one of `keys` signed.
///
/// # Errors
/// [`NoteFault`].
pub fn open<'n>(note: &'n str, keys: &[NoteKey<'_>]) -> Result<&'n str, NoteFault> {
    if note.len() > NOTE_BYTES_MAX || note.chars().any(|c| c.is_control() && c != '\n') {
        return Err(NoteFault::Malformed);
    }
    let cut = note.rfind("\n\n").ok_or(NoteFault::Malformed)?;
    let (text, lines) = note.split_at_checked(cut.saturating_add(1)).ok_or(NoteFault::Malformed)?;
    let lines = lines.strip_prefix('\n').and_then(|it| it.strip_suffix('\n')).ok_or(NoteFault::Malformed)?;
    let mut signed = false;
    for line in lines.split('\n') {
        let (name, signature) =
            line.strip_prefix(LINE).and_then(|it| it.split_once(' ')).ok_or(NoteFault::Malformed)?;
        let bytes = STANDARD.decode(signature).map_err(|_| NoteFault::Malformed)?;
        let (id, signature) = bytes.split_first_chunk::<4>().ok_or(NoteFault::Malformed)?;
        if name.is_empty() {
            return Err(NoteFault::Malformed);
        }
        let Some(key) = keys.iter().find(|key| key.name == name && key.id() == *id) else { continue };
        let signature = signature.try_into().map_err(|_| NoteFault::BadSignature)?;
        if !key.key.signed(text.as_bytes(), signature) {
            return Err(NoteFault::BadSignature);
        }
        signed = true;
    }
    if signed { Ok(text) } else { Err(NoteFault::Unsigned) }
}

/// A ledger's size and root, under its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ledger: the base address without its scheme, a slash, the workspace.
    pub origin: Box<str>,
    /// How many records.
    pub size: u64,
    /// The root of the tree over them.
    pub root: Digest,
}

impl Checkpoint {
    /// The text that is signed.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, STANDARD.encode(self.root.as_bytes()))
    }

    /// The checkpoint as a note by its origin's key. `None` where the origin cannot be a note's.
    #[must_use]
    pub fn sign(&self, key: &PublicKey, signer: &dyn Signer) -> Option<String> {
        sign(&self.text(), &NoteKey { name: &self.origin, key }, signer)
    }

    /// Reads a note's text: three lines, and extension lines, which mean nothing to svc.
    ///
    /// # Errors
    /// [`NoteFault::Malformed`], also for a root that is not 32 bytes and a size with a leading zero.
    pub fn parse(text: &str) -> Result<Self, NoteFault> {
        let mut lines = text.strip_suffix('\n').ok_or(NoteFault::Malformed)?.split('\n');
        let mut line = || lines.next().filter(|it| !it.is_empty()).ok_or(NoteFault::Malformed);
        let (origin, digits, root) = (line()?, line()?, line()?);
        let size: u64 = digits.parse().map_err(|_| NoteFault::Malformed)?;
        let root = STANDARD.decode(root).ok().and_then(|it| it.try_into().ok()).ok_or(NoteFault::Malformed)?;
        if size.to_string() != digits {
            return Err(NoteFault::Malformed);
        }
        Ok(Self { origin: origin.into(), size, root: Digest::from_bytes(root) })
    }

    /// The checkpoint in a note that one of `keys` signed under the checkpoint's own origin.
    ///
    /// # Errors
    /// [`NoteFault`].
    pub fn open<'k>(note: &str, keys: impl IntoIterator<Item = &'k PublicKey>) -> Result<Self, NoteFault> {
        let origin = note.split('\n').next().unwrap_or_default();
        let keys: Vec<NoteKey<'_>> = keys.into_iter().map(|key| NoteKey { name: origin, key }).collect();
        Self::parse(open(note, &keys)?)
    }
}
