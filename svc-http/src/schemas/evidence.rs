//! The schemas of the ledger and its evidence.

use serde_json::{Value, json};
use svc_core::state::evidence::Actor;
use svc_core::state::people::Purpose;

use super::administration::{object, word};
use super::{id, known, reference, time, words};

/// Every schema of the family by its name.
pub(super) fn all() -> [(&'static str, Value); 5] {
    [
        ("LedgerRecord", record()),
        ("LedgerList", list()),
        ("Evidence", evidence()),
        ("EvidenceProof", proof()),
        ("Scorecard", scorecard()),
    ]
}

fn hash() -> Value {
    shaped("[0-9a-f]{64}")
}

/// A text of this shape.
fn shaped(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{pattern}$") })
}

fn list_of(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn seq() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn hashes() -> Value {
    list_of(&hash())
}

fn note() -> Value {
    json!({ "type": "string", "description": "A C2SP tlog-checkpoint signed note." })
}

fn record() -> Value {
    json!({
        "type": "object",
        "description": "`hash` is SHA-256 over the RFC 8785 form of the record without it.",
        "required": ["id", "seq", "at", "kind", "actor", "subject", "data", "prevHash", "hash"],
        "properties": {
            "id": id("evd_"),
            "seq": seq(),
            "at": time(),
            "kind": { "type": "string", "examples": ["action.allowed"] },
            "actor": {
                "type": "object",
                "required": ["kind"],
                "properties": {
                    "kind": word(&Actor::WORDS),
                    "id": { "type": "string" },
                    "name": { "type": "string" },
                },
            },
            "subject": { "type": "string" },
            "data": { "type": "object" },
            "prevHash": hash(),
            "hash": hash(),
        },
    })
}

fn list() -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": { "$ref": "#/components/schemas/LedgerRecord" } },
            "nextCursor": { "type": ["string", "null"] },
        },
    })
}

fn evidence() -> Value {
    json!({
        "type": "object",
        "description": "A bundle, written as it is read: its members come in this order and without white space, and the seal signs the digest of all before it. `svc evidence verify FILE` checks it offline.",
        "required": ["format", "workspaceId", "origin", "range", "keys", "checkpoint", "records", "inclusionProofs", "truncated", "seal"],
        "properties": {
            "format": { "type": "string", "enum": ["svc-evidence/1"] },
            "workspaceId": id("wsp_"),
            "origin": { "type": "string" },
            "range": range(),
            "keys": list_of(&key()),
            "checkpoint": note(),
            "previous": note(),
            "consistency": hashes(),
            "records": list_of(&reference("LedgerRecord")),
            "disclosures": list_of(&disclosure()),
            "inclusionProofs": list_of(&object(&[("seq", seq()), ("path", hashes())], &["seq", "path"])),
            "receipts": list_of(&object(&[("id", id("rcp_")), ("jws", compact_jws())], &["id", "jws"])),
            "truncated": { "type": "boolean" },
            "nextCursor": { "type": "string" },
            "seal": seal(),
        },
    })
}

fn range() -> Value {
    let complete = "Whether every record between is there; not where they were chosen by agent.";
    let complete = super::with_description(json!({ "type": "boolean" }), complete);
    let to = super::with_description(seq(), "Behind the last.");
    object(&[("fromSeq", seq()), ("toSeq", to), ("complete", complete)], &["fromSeq", "toSeq", "complete"])
}

/// A public key as RFC 8037 has it, with its use and standing.
fn key() -> Value {
    let members = [
        ("kty", known(&["OKP"])),
        ("crv", known(&["Ed25519"])),
        ("x", shaped("[A-Za-z0-9_-]{43}")),
        ("kid", thumbprint()),
        ("alg", known(&["EdDSA"])),
        ("use", words(&Purpose::ALL, Purpose::as_str)),
        ("notBefore", time()),
        ("retiredAt", time()),
        ("compromisedAt", time()),
    ];
    object(&members, &["kty", "crv", "x", "kid", "alg", "use", "notBefore"])
}

fn thumbprint() -> Value {
    json!({ "type": "string", "description": "The RFC 7638 thumbprint." })
}

fn disclosure() -> Value {
    let path = "The dotted member of the record that holds the commitment.";
    let members = [
        ("seq", seq()),
        ("path", json!({ "type": "string", "description": path })),
        ("salt", shaped("[0-9a-f]{32}")),
        ("text", json!({ "type": "string" })),
    ];
    object(&members, &["seq", "path", "salt", "text"])
}

fn compact_jws() -> Value {
    json!({ "type": "string", "description": "A compact JWS of type svc-receipt+jwt." })
}

fn seal() -> Value {
    let signature = super::with_description(shaped("[A-Za-z0-9_-]{86}"), "Of the checkpoint key.");
    object(&[("kid", thumbprint()), ("digest", hash()), ("signature", signature)], &["kid", "digest", "signature"])
}

fn proof() -> Value {
    json!({
        "type": "object",
        "required": ["record", "leafIndex", "treeSize", "leafHash", "path", "checkpoint"],
        "properties": {
            "record": { "$ref": "#/components/schemas/LedgerRecord" },
            "leafIndex": { "type": "integer" },
            "treeSize": { "type": "integer" },
            "leafHash": hash(),
            "path": hashes(),
            "checkpoint": note(),
        },
    })
}

fn scorecard() -> Value {
    json!({
        "type": "object",
        "required": ["scorecard"],
        "properties": { "scorecard": { "type": "string", "description": "A compact JWS of type svc-scorecard+jwt. Its amounts are by the day of the record; what records take back of what was posted before the window comes off, and `settled` is never below 0." } },
    })
}
