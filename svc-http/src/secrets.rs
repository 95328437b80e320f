//! New secrets in the clear, and the digests that are kept of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use svc_core::engine::Failure;
pub use svc_core::rules::people::keys::{KEY_PREFIX, is_key};
use svc_core::value::digest::Digest;
use svc_core::value::secret::Secret;
use svc_store::StoreError;

/// Random bytes in a secret.
const SECRET_BYTES: usize = 32;
/// Characters of base64url that these are.
pub(crate) const SECRET_CHARS: usize = 43;
/// What an access token of OAuth begins with.
pub const ACCESS_PREFIX: &str = "aat_";
/// What a refresh token of OAuth begins with.
pub const REFRESH_PREFIX: &str = "art_";
/// What a service token begins with.
pub const TOKEN_PREFIX: &str = "ims_";
/// What the token of a one-time link begins with.
pub const LINK_PREFIX: &str = "sil_";
/// What a secret that calls to the outside are signed with begins with.
pub const CALLBACK_PREFIX: &str = "whsec_";

/// How every secret of svc begins.
pub const PREFIXES: [&str; 6] = [ACCESS_PREFIX, REFRESH_PREFIX, KEY_PREFIX, TOKEN_PREFIX, LINK_PREFIX, CALLBACK_PREFIX];

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
pub fn draw(prefix: &str) -> Result<NewSecret, Failure<StoreError>> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|cause| Failure::Load(StoreError::Entropy(Arc::new(cause))))?;
    let text = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes));
    Ok(NewSecret { digest: Digest::of(&text), text: Secret::new(text) })
}

/// Whether a text may be what [`draw`] made with this prefix, by its form alone: what is not has never been handed out, and is
/// looked for nowhere. Keys alone may have another form, where a program that embeds the gate drew them ([`is_key`]).
#[must_use]
pub fn is_drawn(prefix: &str, text: &str) -> bool {
    let is_base64url = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    text.strip_prefix(prefix).is_some_and(|it| it.len() == SECRET_CHARS && it.bytes().all(is_base64url))
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
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::rules::people::keys::NewKey;

    use super::*;

    /// A key has its prefix and 43 characters of base64url, no two are alike, and what is kept does not hold it.
    #[test]
    fn a_key_has_its_shape_and_is_kept_as_its_digest() {
        let (one, two) = (draw(KEY_PREFIX).unwrap(), draw(KEY_PREFIX).unwrap());
        let text = one.text.expose();
        assert_eq!((text.len(), text.starts_with("ask_")), (47, true));
        assert_ne!(text, two.text.expose());
        let kept = NewKey::of(text);
        assert_eq!((kept.digest, one.digest), (Digest::of(text), Digest::of(text)));
        assert_eq!(&*kept.prefix, text.get(..12).unwrap());
        assert!(!format!("{kept:?} {one:?}").contains(text.as_str()));
    }

    /// What is drawn has the form that is asked for before anything is looked for, and nothing else has.
    #[test]
    fn what_is_drawn_is_known_by_its_form() {
        for prefix in ["", ACCESS_PREFIX, TOKEN_PREFIX] {
            let text = draw(prefix).unwrap().text.expose().clone();
            assert!(is_drawn(prefix, &text), "{text}");
            let (short, other) = (text.get(..text.len() - 1).unwrap(), text.replacen(prefix, "x", 1));
            for bad in [short, &other, &format!("{text}A"), &format!("{short}="), &format!("{short}\u{e9}"), prefix] {
                assert!(!is_drawn(prefix, bad), "{prefix}: {bad}");
            }
        }
        assert!(is_key(draw(KEY_PREFIX).unwrap().text.expose()));
    }

    /// What is drawn with a prefix is known for a secret where it stands in a model's request.
    #[test]
    fn what_is_drawn_is_found_where_data_is_lost() {
        for prefix in [KEY_PREFIX, ACCESS_PREFIX, REFRESH_PREFIX, TOKEN_PREFIX, LINK_PREFIX, CALLBACK_PREFIX] {
            for _ in 0..100 {
                let text = draw(prefix).unwrap().text.expose().clone();
                assert_eq!(svc_core::dlp::scan(&text).describe(), "1 api_key", "{text}");
            }
        }
    }

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
