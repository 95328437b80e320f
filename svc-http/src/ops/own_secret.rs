//! Secrets of this server's own, which it gives to nobody whom it calls: whoever runs that could come here with them.
//!
//! A key of another svc is none: one may well stand behind another, as a provider of models.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_core::refusal::Refusal;
use svc_core::rules::read::find_binding;
use svc_core::state::people::ServiceToken;
use svc_core::value::digest::Digest;

use super::GateService;
use crate::secrets::{PREFIXES, SECRET_CHARS};

/// What is told of such a secret.
pub(super) const OWN_SECRET: &str =
    "is a secret of this server's own, which goes to nobody else: send one that was made there";

impl GateService {
    /// Whether this server has handed a text out as a key, an access token or a service token, in force or not, or something that
    /// stands in it: behind a scheme of authentication, as a rule.
    ///
    /// # Errors
    /// Where that cannot be read.
    pub(super) fn holds_own_secret(&self, text: &str) -> Result<bool, Refusal> {
        // Encoded as the scheme `Basic` has it, it is no less a secret.
        let is_of_encoded = |it: char| it.is_ascii_alphanumeric() || matches!(it, '+' | '/' | '=');
        let encoded =
            text.split(|it| !is_of_encoded(it)).filter_map(|it| String::from_utf8(STANDARD.decode(it).ok()?).ok());
        for text in encoded.chain([text.to_owned()]) {
            for candidate in candidates(&text) {
                if self.is_own_secret(candidate)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn is_own_secret(&self, text: &str) -> Result<bool, Refusal> {
        let digest = Digest::of(text);
        self.read(|scope| {
            let token = scope.get::<ServiceToken>(ServiceToken::id_of(&digest))?;
            Ok(find_binding(scope, &digest)?.is_some() || token.is_some_and(|it| it.digest == digest))
        })
    }
}

/// The text itself, and whatever in it begins as a secret of svc does: as far as it could be one, and as far as one goes.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let is_of_one = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    let within = PREFIXES.into_iter().flat_map(|prefix| text.match_indices(prefix)).flat_map(move |(at, prefix)| {
        let rest = text.get(at..).unwrap_or_default();
        let whole = rest.split(|it| !is_of_one(it)).next().unwrap_or_default();
        let one = whole.get(..prefix.len().saturating_add(SECRET_CHARS)).filter(|it| it.len() < whole.len());
        std::iter::once(whole).chain(one)
    });
    std::iter::once(text).chain(within)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever stands around a secret, it is found.
    #[test]
    fn a_secret_is_found_within_a_text() {
        for text in ["ask_a-1", "Bearer ask_a-1", "token=ask_a-1;v=1", "v1-ask_a-1", "a,ask_a-1", "\"ask_a-1\""] {
            assert!(candidates(text).any(|it| it == "ask_a-1"), "{text}");
        }
        assert_eq!(candidates("Bearer sk-1").collect::<Vec<_>>(), ["Bearer sk-1"]);
        let own = format!("ask_{}", "a".repeat(SECRET_CHARS));
        assert!(candidates(&format!("{own}-x")).any(|it| it == own));
        assert!(candidates("aat_1 ims_2").eq(["aat_1 ims_2", "aat_1", "ims_2"]));
    }
}
