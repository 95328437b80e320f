//! Secrets of this server's own, which it gives to nobody whom it calls: whoever runs that could come here with them.
//!
//! A key of another svc is none: one may well stand behind another, as a provider of models.

use svc_core::refusal::Refusal;
use svc_core::rules::read::find_binding;
use svc_core::state::people::ServiceToken;
use svc_core::value::digest::Digest;

use super::GateService;

/// What is told of such a secret.
pub(super) const OWN_SECRET: &str =
    "is a secret of this server's own, which goes to nobody else: send one that was made there";

impl GateService {
    /// Whether this server has handed a text out as a key, an access token or a service token, in force or not.
    ///
    /// # Errors
    /// Where that cannot be read.
    pub(super) fn is_own_secret(&self, text: &str) -> Result<bool, Refusal> {
        let digest = Digest::of(text);
        self.read(|scope| {
            let token = scope.get::<ServiceToken>(ServiceToken::id_of(&digest))?;
            Ok(find_binding(scope, &digest)?.is_some() || token.is_some_and(|it| it.digest == digest))
        })
    }
}
