//! Messages as Slack reads them.
//!
//! **Invariant:** what strangers wrote stands as plain text, or with the three characters escaped that Slack's markup begins with:
//! it mentions nobody, links nowhere and ends no line of ours.

use serde_json::{Value, json};
use svc_core::state::edge::Heard;
use svc_core::value::canonical::canonical;
use svc_core::value::json::Json;

use super::press::{is_taken, sentence};

/// What whoever pressed a button is told. What has been decided takes the place of the buttons in what the message said, so that
/// none is left that decides nothing; all else is said beside it to them alone.
#[must_use]
pub fn answer(heard: &Heard, url: &str, said: &[Json]) -> Value {
    let is_over = matches!(&*heard.outcome, "approved" | "denied" | "decided" | "expired") && heard.stands.is_some();
    let text = format!("{} <{url}|Open it>", sentence(heard));
    if is_over || is_taken(heard) {
        let mut blocks: Vec<Value> = said.iter().filter_map(|it| serde_json::from_str(&canonical(it)).ok()).collect();
        blocks.push(json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } }));
        json!({ "replace_original": true, "text": text, "blocks": blocks })
    } else {
        json!({ "response_type": "ephemeral", "replace_original": false, "text": text })
    }
}
