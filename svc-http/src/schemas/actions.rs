//! Actions as the members of a workspace see them.

use serde_json::{Value, json};

use super::{decision, reference, released, text};

/// The schemas of this family.
pub(super) fn all() -> [(&'static str, Value); 3] {
    [("ActionItem", item()), ("ActionPage", page()), ("Because", because())]
}

/// The decision, as members get it.
fn item() -> Value {
    let mut item = decision();
    if let Some(members) = item.as_object_mut() {
        let told = "An action as it now stands, without its receipt, which is its agent's alone. An analyst's is without summary, digestSalt and payment.merchant.";
        members.insert("description".to_owned(), told.into());
    }
    if let Some(required) = item.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|it| it != "summary" && it != "digestSalt");
        required.push("createdBy".into());
    }
    if let Some(members) = item.get_mut("properties").and_then(Value::as_object_mut) {
        members.remove("receipt");
        members.remove("receiptExpiresAt");
        members.insert("createdBy".into(), json!({ "type": "string", "description": "Its agent." }));
        let kept = "What the receipt's use keeps posted beyond what the agent has settled, and a person may release, in minor units; absent where nothing is kept.";
        members.insert("keptAmount".into(), json!({ "type": "integer", "minimum": 1, "description": kept }));
        members.insert("released".into(), released());
        let payment = json!({
            "type": "object",
            "required": ["amount", "currency"],
            "properties": {
                "amount": { "type": "integer", "minimum": 1 },
                "currency": { "type": "string" },
                "merchant": { "type": "object", "properties": { "name": { "type": "string" }, "domain": { "type": "string" } } },
            },
        });
        members.insert("payment".into(), payment);
    }
    item
}

fn page() -> Value {
    json!({
        "type": "object",
        "required": ["data", "nextCursor"],
        "properties": {
            "data": { "type": "array", "items": reference("ActionItem") },
            "nextCursor": { "type": ["string", "null"], "description": "What the next page is asked for with. A page that is filtered looks at a bounded number of actions, so it may hold few or none and still have a next one." },
        },
    })
}

fn because() -> Value {
    json!({
        "type": "object",
        "required": ["reason"],
        "properties": { "reason": text(500, "Why, for whoever reads the ledger.") },
    })
}
