//! A signing key's row: written once, by whoever holds the key that seals it; and how one follows another.

use std::sync::Arc;

use crate::refusal::Refusal;
use crate::state::evidence::{Actor, Fact, Subject};
use crate::state::people::{SigningKey, SigningUse};
use crate::turn::{Halt, Scope};
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

/// Has a key follow those of its use.
#[derive(Clone, Debug)]
pub struct RotateSigningKey {
    /// The next key: of the generation after the last, signing from its `not_before` on.
    pub key: SigningKey,
    /// Its name: the RFC 7638 thumbprint of its public half.
    pub kid: Box<str>,
    /// Whether the key now in force, by any clock, is in other hands: everything it signed is refused from now on.
    pub compromised: bool,
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
        if before.not_before > now && !asked.compromised {
            return Err(Refusal::not_allowed("a key waits for its turn already").into());
        }
        let mut ended = SigningKey::clone(&before);
        // Whichever of two that take turns just now is meant: one too many is signed anew by the next, one too few goes on signing.
        if asked.compromised && before.may_sign_at(now) {
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
            .bool("compromised", asked.compromised)
            .finish();
        let subject = Subject::Workspace(*workspace);
        scope.append(*workspace, Fact { kind: "rotation", actor: Actor::Policy, subject, data });
    }
    Ok(Arc::new(key.clone()))
}
