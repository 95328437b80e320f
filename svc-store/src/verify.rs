//! Asking whether a receipt is good, by its text: what the interface answers at `POST /v1/verify`, for programs that embed the
//! gate.

use svc_core::engine::Failure;
use svc_core::rules::gate::verify::{Charge, Fault, Verdict, Verify};
use svc_core::state::gate::receipt::{KeyFault, parse};
use svc_core::state::people::SigningUse;
use svc_core::value::digest::Digest;
use svc_core::value::id::ReceiptId;

use crate::error::StoreError;
use crate::gate::{Gate, here};

/// A receipt whose text is good.
struct Known {
    receipt: ReceiptId,
    digest: Digest,
    /// The stored key whose signature it has.
    signed_by: Option<SigningUse>,
}

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
        here(self.verify_async(receipt, charge, kind))
    }

    /// As [`verify`](Self::verify), for a task of any executor. On its thread the public keys are read and the signature is checked; the
    /// commit is awaited. Dropping the future once it was polled does not undo it: the receipt may be used up.
    ///
    /// # Errors
    /// As [`verify`](Self::verify).
    pub async fn verify_async(
        &self,
        receipt: &str,
        charge: Option<Charge>,
        kind: Option<&str>,
    ) -> Result<Verdict, Failure<StoreError>> {
        match self.told_by_text(receipt)? {
            Err(fault) => Ok(Verdict::no(fault)),
            Ok(known) => {
                let (kind, body) = (kind.map(Into::into), Digest::of(receipt));
                let Known { receipt, digest, signed_by } = known;
                self.submit(Verify { receipt, digest, charge, kind, key: None, body, signed_by }).await
            }
        }
    }

    /// What the text of a receipt alone tells: of whom and what it is, or what is wrong with it.
    fn told_by_text(&self, receipt: &str) -> Result<Result<Known, Fault>, Failure<StoreError>> {
        let Ok(parsed) = parse(receipt) else { return Ok(Err(Fault::Malformed)) };
        let signer = &**self.signer();
        let signed_by = match self.public_keys()?.verify_own(&parsed, signer) {
            Ok(signed_by) => signed_by,
            Err(KeyFault::Unknown) => return Ok(Err(Fault::UnknownKey)),
            Err(KeyFault::BadSignature) => return Ok(Err(Fault::BadSignature)),
        };
        let claims = parsed.claims();
        if claims.issuer != signer.issuer() {
            return Ok(Err(Fault::WrongIssuer));
        }
        let digest = claims.digest.strip_prefix("sha256:").and_then(|hex| Digest::parse(hex).ok());
        Ok(digest.map(|digest| Known { receipt: claims.receipt, digest, signed_by }).ok_or(Fault::Malformed))
    }
}
