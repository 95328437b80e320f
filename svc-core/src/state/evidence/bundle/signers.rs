//! The keys that signed a bundle beside those that its reader knows: whether it is the service's, and not just somebody's.

use super::verify::{Fault, Report, Verdict};
use crate::state::evidence::note::Checkpoint;
use crate::state::gate::receipt::{PublicKey, PublicKeys};
use crate::state::people::Purpose;
use crate::value::Timestamp;

/// What the keys that signed a bundle were held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signers {
    /// An earlier bundle that the reader holds: it lists the key of the checkpoint.
    Held,
    /// A note that the reader holds: the key of the checkpoint signed it.
    Note,
    /// The service's published keys.
    KeySet,
    /// Nothing: whoever wrote the bundle may have made them for it.
    #[default]
    Unknown,
}

/// What a bundle does not show by itself of its keys.
pub(super) const NOT_COMPARED: &str = "that the keys are the service's own: name its `/.well-known/jwks.json` with `--jwks`, fetched over a way that you trust";

/// What no key set shows of a receipt key once it has retired, where this one has or is to.
pub(super) fn retired(key: &PublicKey) -> Option<String> {
    let at = key.retired_at?;
    Some(format!("that of the receipt key {}: it retires at {at}, and is published for a day after that", key.kid()))
}

impl Report {
    /// The report for a reader who knows `keys`, the service's published ones: what one of nobody's signed is told as tampered with, and
    /// so is what one signed that is published for another use. A receipt key that has retired by `now` need not be among them, as it is published for a day after that alone: that it was the
    /// service's is then the word of whoever sealed the bundle. One that is still to retire is published.
    pub fn signed_among(mut self, keys: &PublicKeys, now: Timestamp) -> Self {
        if !self.fits() {
            return self;
        }
        let own = |purpose: &str, kid: &str| {
            self.keys
                .iter()
                .map(|it| (&it.key, it.purpose))
                .find(|(key, of)| of.as_str() == purpose && key.kid() == kid)
        };
        let has_retired = |purpose: &str, kid: &str| {
            let retired_at = own(purpose, kid).filter(|it| it.1 == Purpose::Receipt).and_then(|it| it.0.retired_at);
            retired_at.is_some_and(|it| it <= now)
        };
        // Each use has keys of its own: what one of receipts signed is no checkpoint, whoever has it.
        let is_of = |key: &PublicKey, purpose: &str| key.purpose().is_none_or(|it| it.as_str() == purpose);
        let other = self.signed_by.iter().find_map(|(purpose, kid)| {
            let of = keys.get(kid).filter(|it| !is_of(it, purpose))?.purpose()?;
            Some(format!(
                "the key {kid}, which signed as the service's for its {purpose}s, is in the key set for {}s: this is somebody else's",
                of.as_str()
            ))
        });
        if let Some(what) = other {
            return self.judged(Verdict::Tampered, what);
        }
        let known = |kid: &str| keys.get(kid).is_some();
        let stranger = self.signed_by.iter().find(|(purpose, kid)| !known(kid) && !has_retired(purpose, kid));
        if let Some((purpose, kid)) = stranger {
            let what = format!(
                "the key {kid}, which signed as the service's for its {purpose}s, is not in the key set: unless the set is older than that \
                 key, this is somebody else's"
            );
            return self.judged(Verdict::Tampered, what);
        }
        let shown: Vec<String> = self
            .signed_by
            .iter()
            .filter(|(_, kid)| known(kid))
            .filter_map(|(purpose, kid)| retired(own(purpose, kid)?.0))
            .collect();
        self.not_proven.retain(|it| it != NOT_COMPARED && !shown.contains(it));
        Self { signers: Signers::KeySet, ..self }
    }

    /// The report for a reader who holds `earlier` and no key set. Where that lists no key which signed the checkpoint, it is told as
    /// incomplete: one key follows another, so it need not be a stranger's, but nothing here shows that it is not.
    pub fn signed_as(mut self, earlier: &Self) -> Self {
        if !self.fits() {
            return self;
        }
        let of = Purpose::Checkpoint.as_str();
        let lists = |kid: &String| {
            let mut sound =
                earlier.keys.iter().filter(|it| it.purpose.as_str() == of && it.key.compromised_at.is_none());
            sound.any(|it| it.key.kid() == kid)
        };
        let stranger = self.signed_by.iter().find(|(purpose, kid)| *purpose == of && !lists(kid));
        if let Some((_, kid)) = stranger {
            let what = format!(
                "the checkpoint's key {kid} is none that the bundle you hold lists: one may have followed since, or this is somebody \
                 else's; `--jwks` with the service's published keys decides"
            );
            return self.judged(Verdict::Incomplete, what);
        }
        self.signers = Signers::Held;
        self
    }

    /// The report for a reader who holds `note` alone. Where the key of the checkpoint did not sign that, it is told as incomplete, as
    /// for one who holds a bundle.
    pub fn signed_as_note(mut self, note: &str) -> Self {
        if !self.fits() {
            return self;
        }
        let of = Purpose::Checkpoint;
        let signed = |kid: &String| {
            let mut own = self.keys.iter().filter(|it| it.purpose == of && it.key.kid() == kid);
            own.any(|it| Checkpoint::open(note, [&it.key]).is_ok())
        };
        let stranger = self.signed_by.iter().find(|(purpose, kid)| *purpose == of.as_str() && !signed(kid));
        if let Some((_, kid)) = stranger {
            let what = format!(
                "the checkpoint's key {kid} did not sign the note that you hold: one may have followed since, or this is somebody else's; \
                 `--jwks` with the service's published keys decides"
            );
            return self.judged(Verdict::Incomplete, what);
        }
        self.signers = Signers::Note;
        self
    }

    /// Whether all that is there fits in itself.
    pub(super) const fn fits(&self) -> bool {
        matches!(self.verdict, Verdict::Whole | Verdict::Incomplete)
    }

    /// The same with what its reader knows against it.
    pub(super) fn judged(self, verdict: Verdict, what: String) -> Self {
        Self { verdict, fault: Some(Fault { verdict, seq: None, record: None, what }), ..self }
    }
}
