//! Keys and tokens as they are made: shown once, and kept as a digest.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::engine::Failure;
use svc_core::value::secret::Secret;
use svc_store::StoreError;

/// Random bytes in a key or token: 43 characters of base64url.
const BYTES: usize = 32;

/// A new key (`ask_`) or token (`ims_`): the prefix and 32 bytes of the operating system's entropy.
///
/// # Errors
/// The system has none to give: a key that could be guessed must not be made.
pub fn draw(prefix: &str) -> Result<Secret<String>, Failure<StoreError>> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|cause| Failure::Load(StoreError::Entropy(std::sync::Arc::new(cause))))?;
    Ok(Secret::new(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
}
