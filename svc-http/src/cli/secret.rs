//! New keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::rules::people::keys::NewKey;
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_http::secrets;

use super::output::Problem;

/// Random bytes in a key; 43 characters of base64url.
const KEY_BYTES: usize = 32;
/// Characters of a key that people may see later.
const PREFIX_CHARS: usize = 12;

/// A key in the clear, and what is kept of it.
pub(crate) struct NewSecret {
    /// The whole text, to be shown once.
    pub(crate) text: Secret<String>,
    /// Its digest and prefix.
    pub(crate) stored: NewKey,
}

/// A new gateway key: `ask_` and 32 bytes of the operating system's entropy.
///
/// # Errors
/// [`Problem`] where the system has none to give: a key that could be guessed must not be made.
pub(crate) fn new_key() -> Result<NewSecret, Problem> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(format!("the system gives no random bytes: {error}"), "Try again once it has started up.")
    })?;
    let text = format!("ask_{}", URL_SAFE_NO_PAD.encode(bytes));
    let prefix = text.chars().take(PREFIX_CHARS).collect::<String>().into_boxed_str();
    Ok(NewSecret { stored: NewKey { digest: Digest::of(&text), prefix }, text: Secret::new(text) })
}

/// A new token of a one-time link.
///
/// # Errors
/// As [`new_key`].
pub(crate) fn new_link() -> Result<secrets::NewSecret, Problem> {
    secrets::draw(secrets::LINK_PREFIX).map_err(|error| {
        Problem::new(format!("the system gives no random bytes: {error}"), "Try again once it has started up.")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A key has its prefix and 43 characters of base64url, no two are alike, and what is kept does not hold it.
    #[test]
    fn a_key_has_its_shape_and_is_kept_as_its_digest() {
        let (one, two) = (new_key().unwrap(), new_key().unwrap());
        let text = one.text.expose();
        assert_eq!((text.len(), text.starts_with("ask_")), (47, true));
        assert_ne!(text, two.text.expose());
        assert_eq!(one.stored.digest, Digest::of(text));
        assert_eq!(&*one.stored.prefix, text.get(..12).unwrap());
        assert!(!format!("{:?}", one.stored).contains(text.as_str()));
    }
}
