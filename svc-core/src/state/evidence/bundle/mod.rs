//! Evidence bundles: a stretch of a ledger with all that is needed to check it offline.
//!
//! A bundle is one JSON text without white space, its members in the order of [`MEMBERS`], so that it is written and read as a
//! stream. Each part has exactly one text, and a seal at the end signs the digest of everything before it: nothing that a byte
//! says can change unnoticed, also where it says nothing of a record.

mod escapes;
mod held;
mod pieces;
mod replay;
mod signers;
mod verify;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

pub use held::NotComparable;
pub use signers::Signers;
pub use verify::{Fault, Report, Verdict, Verifier};

use super::Entry;
use crate::state::gate::receipt::{PublicKey, Signer};
use crate::state::people::{Purpose, SigningKey};
use crate::value::Timestamp;
use crate::value::canonical::{Object, text};
use crate::value::digest::Digest;
use crate::value::id::WorkspaceId;
use crate::value::json::Json;

/// What every bundle of this form begins with.
pub const FORMAT: &str = "svc-evidence/1";
/// Records of one bundle at most; more take a further one.
pub const RECORDS_MAX: u64 = 100_000;
/// The members of a bundle, in their order.
pub const MEMBERS: [&str; 15] = [
    "format",
    "workspaceId",
    "origin",
    "range",
    "keys",
    "checkpoint",
    "previous",
    "consistency",
    "records",
    "disclosures",
    "inclusionProofs",
    "receipts",
    "truncated",
    "nextCursor",
    "seal",
];
/// Members that a bundle may be without.
const OPTIONAL: [&str; 5] = ["previous", "consistency", "disclosures", "receipts", "nextCursor"];

/// An object whose members keep the order in which they are given.
#[derive(Debug, Default)]
struct Ordered(String);

impl Ordered {
    fn raw(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&text(name));
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    fn text(self, name: &str, value: &str) -> Self {
        let value = text(value);
        self.raw(name, &value)
    }

    fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Which records a bundle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first `seq`.
    pub from: u64,
    /// The `seq` behind the last.
    pub to: u64,
    /// Whether every record between is there; not where they were chosen by agent.
    pub complete: bool,
}

impl Range {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> String {
        let complete = if self.complete { "true" } else { "false" };
        let (from, to) = (self.from.to_string(), self.to.to_string());
        Ordered::default().raw("fromSeq", &from).raw("toSeq", &to).raw("complete", complete).finish()
    }

    fn read(json: &Json) -> Option<Self> {
        let int = |name| json.get(name)?.as_int().and_then(|it| u64::try_from(it).ok());
        Some(Self { from: int("fromSeq")?, to: int("toSeq")?, complete: json.get("complete")?.as_bool()? })
    }
}

/// A key as a bundle names it.
#[derive(Clone, Debug)]
pub struct BundleKey {
    /// What it signs.
    pub purpose: Purpose,
    /// The public half, with its standing.
    pub key: PublicKey,
}

impl BundleKey {
    /// A stored key's public half; `None` for a row that holds none.
    #[must_use]
    pub fn of(row: &SigningKey) -> Option<Self> {
        Some(Self { purpose: row.id.purpose, key: PublicKey::of(row).ok()? })
    }

    /// Its text: a JWK (RFC 8037) with its use and standing.
    #[must_use]
    pub fn text(&self) -> String {
        let at = |it: Option<Timestamp>| it.map(|it| it.to_string());
        Ordered::default()
            .text("kty", "OKP")
            .text("crv", "Ed25519")
            .text("x", &URL_SAFE_NO_PAD.encode(self.key.as_bytes()))
            .text("kid", self.key.kid())
            .text("alg", "EdDSA")
            .text("use", self.purpose.as_str())
            .maybe("notBefore", at(self.key.not_before).as_deref())
            .maybe("retiredAt", at(self.key.retired_at).as_deref())
            .maybe("compromisedAt", at(self.key.compromised_at).as_deref())
            .finish()
    }

    fn read(json: &Json) -> Option<Self> {
        let member = |name| json.get(name).and_then(Json::as_str);
        let time = |name| match member(name) {
            Some(it) => Timestamp::parse(it).ok().map(Some),
            None => Some(None),
        };
        let bytes = URL_SAFE_NO_PAD.decode(member("x")?).ok()?.try_into().ok()?;
        let mut key = PublicKey::new(&bytes).ok()?;
        (key.not_before, key.retired_at) = (time("notBefore")?, time("retiredAt")?);
        key.compromised_at = time("compromisedAt")?;
        let purpose = Purpose::ALL.into_iter().find(|it| member("use") == Some(it.as_str()))?;
        Some(Self { purpose, key })
    }
}

impl Entry {
    /// The record as JSON with its place, canonical. `None` while it has none.
    #[must_use]
    pub fn record_text(&self) -> Option<String> {
        let place = self.place.as_ref()?;
        let object = Object::new()
            .raw("actor", &self.actor)
            .text("at", &self.at.to_string())
            .raw("data", &self.data)
            .text("hash", &place.hash.to_string())
            .text("id", &self.id.to_string())
            .text("kind", &self.kind)
            .text("prevHash", &place.prev.to_string())
            .int("seq", i64::try_from(place.seq).unwrap_or(i64::MAX))
            .text("subject", &self.subject);
        Some(object.finish())
    }
}

/// A personal text that a record commits to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// Which record.
    pub seq: u64,
    /// The dotted member of the record that holds the commitment.
    pub path: String,
    /// The salt, lower-case hex.
    pub salt: [u8; 16],
    /// The text.
    pub text: String,
}

impl Disclosed {
    /// Its text in a bundle.
    #[must_use]
    pub fn text(&self) -> String {
        let seq = self.seq.to_string();
        let object = Ordered::default().raw("seq", &seq).text("path", &self.path);
        object.text("salt", &hex::encode(self.salt)).text("text", &self.text).finish()
    }

    fn read(json: &Json) -> Option<Self> {
        let member = |name| json.get(name).and_then(Json::as_str);
        let salt = hex::decode(member("salt")?).ok()?.try_into().ok()?;
        let seq = u64::try_from(json.get("seq")?.as_int()?).ok()?;
        Some(Self { seq, path: member("path")?.to_owned(), salt, text: member("text")?.to_owned() })
    }
}

/// Hashes as a list of texts.
#[must_use]
pub fn hashes_text(hashes: &[Digest]) -> String {
    let items: Vec<String> = hashes.iter().map(|it| format!("\"{it}\"")).collect();
    format!("[{}]", items.join(","))
}

/// A record's path in the tree, as text.
#[must_use]
pub fn path_text(seq: u64, path: &[Digest]) -> String {
    Ordered::default().raw("seq", &seq.to_string()).raw("path", &hashes_text(path)).finish()
}

/// A receipt, as text.
#[must_use]
pub fn receipt_text(id: &str, jws: &str) -> String {
    Ordered::default().text("id", id).text("jws", jws).finish()
}

/// Everything before the first record.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// The ledger's name in checkpoints.
    pub origin: &'a str,
    /// Which records follow.
    pub range: Range,
    /// Every key that signed anything, or will.
    pub keys: &'a [BundleKey],
    /// The signed checkpoint that all proofs lead to.
    pub checkpoint: &'a str,
    /// An earlier checkpoint that the reader holds, and what shows that this one continues it.
    pub previous: Option<(&'a str, &'a [Digest])>,
}

impl Head<'_> {
    /// The text, up to the bracket that opens the records.
    #[must_use]
    pub fn text(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(BundleKey::text).collect();
        let mut object = Ordered::default()
            .text("format", FORMAT)
            .text("workspaceId", &self.workspace.to_string())
            .text("origin", self.origin)
            .raw("range", &self.range.text())
            .raw("keys", &format!("[{}]", keys.join(",")))
            .text("checkpoint", self.checkpoint);
        if let Some((note, proof)) = self.previous {
            object = object.text("previous", note).raw("consistency", &hashes_text(proof));
        }
        object.0 + ",\"records\":["
    }
}

/// Everything behind the last list but the seal: from the comma on.
#[must_use]
pub fn foot_text(next_cursor: Option<&str>) -> String {
    match next_cursor {
        Some(cursor) => format!(",\"truncated\":true,\"nextCursor\":{}", text(cursor)),
        None => ",\"truncated\":false".to_owned(),
    }
}

/// What a seal signs: the digest of everything before it.
#[must_use]
fn sealed_text(digest: &Digest) -> String {
    format!("{FORMAT}\n{digest}\n")
}

/// The seal and the bundle's end. `digest` is that of all bytes before.
#[must_use]
pub fn seal_text(digest: &Digest, signer: &dyn Signer) -> String {
    let signature = URL_SAFE_NO_PAD.encode(signer.sign(sealed_text(digest).as_bytes()));
    let seal = Ordered::default().text("kid", signer.kid()).text("digest", &digest.to_string());
    format!(",\"seal\":{}}}", seal.text("signature", &signature).finish())
}
