//! The schemas of the ledger and its evidence.

use serde_json::{Value, json};

use super::{id, time};

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
    json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

fn hashes() -> Value {
    json!({ "type": "array", "items": hash() })
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
            "seq": { "type": "integer", "minimum": 0 },
            "at": time(),
            "kind": { "type": "string", "examples": ["action.allowed"] },
            "actor": {
                "type": "object",
                "required": ["kind"],
                "properties": {
                    "kind": { "type": "string", "enum": ["person", "agent", "token", "key", "policy", "drill", "timer", "integration"] },
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
    let list = json!({ "type": "array", "items": { "type": "object" } });
    json!({
        "type": "object",
        "description": "A bundle, written as it is read: its members come in this order and without white space, and the seal signs the digest of all before it. `svc evidence verify FILE` checks it offline.",
        "required": ["format", "workspaceId", "origin", "range", "keys", "checkpoint", "records", "inclusionProofs", "truncated", "seal"],
        "properties": {
            "format": { "type": "string", "const": "svc-evidence/1" },
            "workspaceId": id("wsp_"),
            "origin": { "type": "string" },
            "range": { "type": "object", "required": ["fromSeq", "toSeq", "complete"] },
            "keys": list,
            "checkpoint": note(),
            "previous": note(),
            "consistency": hashes(),
            "records": { "type": "array", "items": { "$ref": "#/components/schemas/LedgerRecord" } },
            "disclosures": list,
            "inclusionProofs": list,
            "receipts": list,
            "truncated": { "type": "boolean" },
            "nextCursor": { "type": "string" },
            "seal": { "type": "object", "required": ["kid", "digest", "signature"] },
        },
    })
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
        "properties": { "scorecard": { "type": "string", "description": "A compact JWS of type svc-scorecard+jwt." } },
    })
}
