//! Secrets that calls to the outside are signed with: drawn or taken, and sealed before anything keeps them.

use svc_core::engine::Failure;
use svc_core::rules::edge::integrations::NewSecret;
use svc_core::state::edge::{Integration, IntegrationSlot};
use svc_core::value::Invalid;
use svc_core::value::secret::Secret;
use svc_store::{Gate, StoreError};

use crate::secrets::{self, CALLBACK_PREFIX, hint};

/// A new secret: `whsec_` and 32 bytes of the operating system's entropy.
///
/// # Errors
/// As [`secrets::draw`].
pub fn draw() -> Result<Secret<String>, Failure<StoreError>> {
    secrets::draw(CALLBACK_PREFIX).map(|it| it.text)
}

/// Reads a secret that somebody else has made.
///
/// # Errors
/// [`Invalid`] where it is too short to be hard to guess, or holds what a header or a shell would change.
pub fn parse(text: &str) -> Result<Secret<String>, Invalid> {
    // Others draw secrets of several words.
    let is_sound = text.bytes().all(|it| matches!(it, b' '..=b'~')) && text == text.trim_ascii();
    if (24..=256).contains(&text.len()) && is_sound {
        Ok(Secret::new(text.to_owned()))
    } else {
        Err(Invalid::new("must be 24 to 256 visible ASCII characters, without space around them"))
    }
}

/// Reads a secret that an identity provider has drawn for this server.
///
/// # Errors
/// [`Invalid`] where it is empty, too long, or holds what a form would change.
pub fn parse_given(text: &str) -> Result<Secret<String>, Invalid> {
    if (8..=512).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_graphic()) {
        Ok(Secret::new(text.to_owned()))
    } else {
        Err(Invalid::new("must be 8 to 512 visible ASCII characters without space"))
    }
}

/// What is kept of a secret of the integration in `slot`.
///
/// # Errors
/// The gate has no master key.
pub fn seal(gate: &Gate, slot: IntegrationSlot, secret: &Secret<String>) -> Result<NewSecret, Failure<StoreError>> {
    let text = secret.expose();
    let sealed = gate.seal(&Integration::purpose(slot), text.as_bytes())?.into();
    Ok(NewSecret { sealed, hint: hint(text) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A drawn secret has its shape and is no other; one of somebody else's is taken where it is hard to guess.
    #[test]
    fn secrets_have_their_shape() {
        let (one, two) = (draw().unwrap(), draw().unwrap());
        assert_eq!((one.expose().len(), one.expose().starts_with("whsec_")), (49, true));
        assert_ne!(one.expose(), two.expose());
        for good in [one.expose().clone(), "x".repeat(24), "~".repeat(256), "It's a Secret to Everybody".to_owned()] {
            assert!(parse(&good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "whsec_",
            &"x".repeat(23),
            &"x".repeat(257),
            &format!("{} ", "x".repeat(30)),
            &format!("x\n{}", "x".repeat(30)),
            &"é".repeat(30),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
