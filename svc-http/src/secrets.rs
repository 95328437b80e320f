//! New secrets in the clear, and the digests that are kept of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;

/// Random bytes in a secret; 43 characters of base64url.
const SECRET_BYTES: usize = 32;
/// What the token of a one-time link begins with.
pub const LINK_PREFIX: &str = "sil_";

/// A secret that was made just now.
#[derive(Debug)]
pub struct NewSecret {
    /// The whole text, to be shown once.
    pub text: Secret<String>,
    /// What is kept of it.
    pub digest: Digest,
}

/// A new secret: `prefix` and 32 bytes of the operating system's entropy.
///
/// # Errors
/// The system gives no random bytes: a secret that could be guessed must not be made.
pub fn draw(prefix: &str) -> Result<NewSecret, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    let text = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes));
    Ok(NewSecret { digest: Digest::of(&text), text: Secret::new(text) })
}

/// The one-time link with this token. What follows `#` is sent to no server.
#[must_use]
pub fn sign_in_link(base_url: &str, token: &str) -> String {
    format!("{base_url}/sign-in#token={token}")
}
/// What people see of a secret once it is kept: its last four characters; nothing where that would be all of it.
#[must_use]
pub fn hint(secret: &str) -> Box<str> {
    const SHOWN: usize = 4;
    let shown = secret.len().checked_sub(SHOWN).filter(|hidden| *hidden > 0);
    shown.and_then(|at| secret.get(at..)).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four characters are shown of what has more to hide, and never the whole.
    #[test]
    fn little_is_shown_of_a_secret() {
        assert_eq!(&*hint("planted-secret-wxyz"), "wxyz");
        assert_eq!(&*hint("12345"), "2345");
        for short in ["", "xyz", "wxyz"] {
            assert_eq!(&*hint(short), "", "{short}");
        }
    }
}
