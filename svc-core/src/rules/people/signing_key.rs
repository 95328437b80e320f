//! A signing key's row: written once, by whoever holds the key that seals it.

use std::sync::Arc;

use crate::state::people::SigningKey;
use crate::turn::{Halt, Scope};

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
