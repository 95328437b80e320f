//! Asking whether a receipt is good, by its text: what the interface answers at `POST /v1/verify`, for programs that embed the
//! gate.

use svc_core::engine::Failure;
use svc_core::rules::gate::verify::{Charge, Fault, Verdict, Verify};
use svc_core::state::gate::receipt::{KeyFault, parse};
use svc_core::value::digest::Digest;

use crate::error::StoreError;
use crate::gate::Gate;

impl Gate {
    /// Whether the receipt of this text is good for `charge`, which names the merchant's domain and minor units, or, where there is
    /// none, for an action that is no payment; `kind` is the type that the asker expects, if any (CONTRACT part 2, "Verify"). A yes
    /// uses it up, once. Form, signature and issuer are looked at first, as whatever the text alone tells. A question that is
    /// asked again has another answer: this is for whoever asks once, and keeps the verdict before acting on it.
    ///
    /// ```no_run
    /// use svc_core::Amount;
    /// use svc_core::rules::gate::verify::Charge;
    ///
    /// # fn charge(gate: &svc_store::Gate, shown: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let domain = Some("tools.example.com".parse()?); // ours: a charge without one is `ChargeRequired`
    /// let charge = Charge { amount: Amount::new(49_00)?, currency: "EUR".parse()?, domain };
    /// match gate.verify(shown, Some(charge), Some("payment"))?.fault {
    ///     None => println!("the receipt is good for this charge, and used up"),
    ///     Some(fault) => println!("nothing is charged: {}", fault.as_str()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Failure`]. Where the commit is [`Unknown`](svc_core::store::CommitError::Unknown) the receipt may be used up: nothing is to be
    /// done on it.
    pub fn verify(
        &self,
        receipt: &str,
        charge: Option<Charge>,
        kind: Option<&str>,
    ) -> Result<Verdict, Failure<StoreError>> {
        let Ok(parsed) = parse(receipt) else { return Ok(Verdict::no(Fault::Malformed)) };
        let signer = &**self.signer();
        let signed_by = match self.public_keys()?.verify_own(&parsed, signer) {
            Ok(signed_by) => signed_by,
            Err(KeyFault::Unknown) => return Ok(Verdict::no(Fault::UnknownKey)),
            Err(KeyFault::BadSignature) => return Ok(Verdict::no(Fault::BadSignature)),
        };
        let claims = parsed.claims();
        if claims.issuer != signer.issuer() {
            return Ok(Verdict::no(Fault::WrongIssuer));
        }
        let digest = claims.digest.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        let Some(digest) = digest else { return Ok(Verdict::no(Fault::Malformed)) };
        let (kind, body) = (kind.map(Into::into), Digest::of(receipt));
        self.execute(Verify { receipt: claims.receipt, digest, charge, kind, key: None, body, signed_by })
    }
}
