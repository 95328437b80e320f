//! A signing key's row: written once, by whoever holds the key that seals it; and how one follows another.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{Purpose, SigningKey, SigningUse};
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::canonical::Object;
use crate::value::id::WorkspaceId;

/// Keeps a signing key, unless there is one of its use and generation.
#[derive(Clone, Debug)]
pub struct KeepSigningKey(pub SigningKey);

/// Keeps a signing key, or gives the one that is there: of two starts that race one key wins.
///
/// # Errors
/// [`Halt::Load`] alone.
pub fn keep_signing_key(scope: &mut Scope<'_>, asked: &KeepSigningKey) -> Result<Arc<SigningKey>, Halt> {
    if let Some(kept) = scope.get::<SigningKey>(asked.0.id)? {
        return Ok(kept);
    }
    scope.put(asked.0.clone());
    Ok(Arc::new(asked.0.clone()))
}

/// Which keys of a use are in other hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaked {
    /// None that anybody knows of.
    None,
    /// The one in force, by any clock, and what lies where it lay: those that wait for their turn, and of receipts those whose receipts
    /// may still be good.
    Current,
    /// All that there are, also those whose turn is long over.
    All,
}

impl Leaked {
    /// Whether the key of this row is, as things stand at `now`.
    fn has(self, row: &SigningKey, now: Timestamp) -> bool {
        match self {
            Self::None => false,
            Self::Current => {
                let is_good = row.id.purpose == Purpose::Receipt && row.is_published(now);
                is_good || row.not_before > now || row.may_sign_at(now)
            }
            Self::All => true,
        }
    }
}

/// Has a key follow those of its use.
#[derive(Clone, Debug)]
pub struct RotateSigningKey {
    /// The next key: of the generation after the last, signing from its `not_before` on.
    pub key: SigningKey,
    /// Its name: the RFC 7638 thumbprint of its public half.
    pub kid: Box<str>,
    /// Which keys of this use are in other hands: everything they signed is refused from now on.
    pub leaked: Leaked,
    /// What the key before it is sealed as, as whoever sealed this one has read it: under another master key neither would be opened.
    pub beside: Box<str>,
    /// Every workspace: each ledger tells of it.
    pub workspaces: Vec<WorkspaceId>,
}

/// Keeps the next key, ends the turn of those before it when its own begins, and tells every ledger.
///
/// # Errors
/// `not_allowed` where the generation is taken or does not follow the last, or another key waits for its turn already and
/// nothing forces this one.
pub fn rotate_signing_key(scope: &mut Scope<'_>, asked: &RotateSigningKey) -> Result<Arc<SigningKey>, Halt> {
    let (key, now) = (&asked.key, scope.now());
    if scope.get::<SigningKey>(key.id)?.is_some() || key.id.generation == 0 {
        return Err(Refusal::not_allowed("another key has followed meanwhile").into());
    }
    for generation in 0..key.id.generation {
        let id = SigningUse { generation, ..key.id };
        let before = scope.get::<SigningKey>(id)?.ok_or_else(|| Refusal::not_allowed("a key before it is missing"))?;
        if generation.saturating_add(1) == key.id.generation && before.sealed != asked.beside {
            return Err(Refusal::not_allowed("all keys were sealed under another master key meanwhile").into());
        }
        if before.not_before > now && before.compromised_at.is_none() && asked.leaked == Leaked::None {
            return Err(Refusal::not_allowed("a key waits for its turn already").into());
        }
        let mut ended = SigningKey::clone(&before);
        // Whichever of two that take turns just now is meant: one too many is signed anew by the next, one too few goes on signing.
        if before.compromised_at.is_none() && asked.leaked.has(&before, now) {
            ended.compromised_at = Some(now);
        }
        if before.retired_at.is_none_or(|it| it > key.not_before) {
            ended.retired_at = Some(key.not_before);
        }
        if ended != *before {
            scope.put(ended);
        }
    }
    scope.put(key.clone());
    for workspace in &asked.workspaces {
        let data = Object::new()
            .text("purpose", key.id.purpose.as_str())
            .int("generation", key.id.generation.into())
            .text("kid", &asked.kid)
            .text("notBefore", &key.not_before.to_string())
            .bool("compromised", asked.leaked != Leaked::None);
        let data = if asked.leaked == Leaked::All { data.bool("all", true) } else { data }.finish();
        let subject = Subject::Workspace(*workspace);
        scope.append(*workspace, Fact { kind: "rotation", actor: Actor::Policy, subject, data });
    }
    Ok(Arc::new(key.clone()))
}
