//! Receipts for tests: one signer, one payment, one tool call.
#![allow(clippy::unwrap_used, dead_code, reason = "a test may panic; not every test file needs everything")]

use svc_core::state::gate::receipt::{Claims, DalekSigner, PaymentClaims, PublicKeys};
use svc_core::value::id::{ActionId, AgentId, ReceiptId, WorkspaceId};
use svc_core::value::secret::Secret;
use svc_core::value::{Id as _, Timestamp};

/// 2026-10-01T09:30:00Z in seconds.
pub(crate) const ISSUED_S: i64 = 1_790_847_000;

/// A signer over a fixed seed, and the set that trusts it.
pub(crate) fn signer() -> (DalekSigner, PublicKeys) {
    let signer = DalekSigner::new(&Secret::new([7; 32]), "https://gate.example");
    let keys = PublicKeys::from_iter([signer.public_key(Timestamp::from_millis(0))]);
    (signer, keys)
}

/// A payment of 4,200 cents to `shop.example`, allowed for 15 minutes.
pub(crate) fn payment() -> Claims<'static> {
    Claims {
        payment: Some(PaymentClaims {
            amount: 4_200,
            currency: "EUR".into(),
            merchant_name: "Straße & \"Söhne\" 東京".into(),
            domain: "shop.example".into(),
        }),
        kind: "payment".into(),
        ..tool_call()
    }
}

/// A tool call, allowed for 15 minutes.
pub(crate) fn tool_call() -> Claims<'static> {
    let action = ActionId::from_bits(1);
    Claims {
        issuer: "https://gate.example".into(),
        agent: AgentId::from_bits(3),
        receipt: ReceiptId::from(action),
        action,
        workspace: WorkspaceId::from_bits(5),
        kind: "tool.call".into(),
        digest: format!("sha256:{}", "0a".repeat(32)).into(),
        issued_at_s: ISSUED_S,
        expires_at_s: ISSUED_S + 900,
        payment: None,
    }
}

/// Header, payload and signature of a compact text.
pub(crate) fn parts(text: &str) -> [String; 3] {
    let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    parts.try_into().unwrap()
}
