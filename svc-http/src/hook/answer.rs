//! What each client is told, in its own shape (INTEROP part 3). A member that a client does not know makes some of them let
//! the tool run, so each gets what it reads and nothing else.

use serde_json::{Value, json};

use super::client::Client;
use super::event::Event;
use super::verdict::Verdict;
use super::{Refused, plain};

/// Characters of a text for a client.
const TEXT_CHARS: usize = 6_000;

/// The client's own answer.
///
/// # Errors
/// [`Refused`] where the call was allowed once and that is over.
pub(crate) fn of(event: &Event, verdict: &Verdict) -> Result<String, Refused> {
    Ok(match verdict {
        Verdict::Allow => allow(event.client),
        Verdict::Deny { why } => deny(event.client, &format!("svc denied this call: {why}")),
        Verdict::Ask { why, link, client_may_ask } if *client_may_ask && event.can_ask => {
            ask(event.client, &format!("svc asks you first: {why}. It can also be decided at {link}"))
        }
        Verdict::Ask { why, link, .. } => {
            let text = format!(
                "svc asks a person first: {why}. Have it decided at {link} and then make the very same call again"
            );
            deny(event.client, &text)
        }
        Verdict::Past => return Err(Refused::new("this call was made before; make it again as a new one")),
    })
}

/// Where the gate need not be asked: the client goes by its own rules.
pub(crate) fn unasked(client: Client) -> String {
    match client {
        Client::ClaudeCode | Client::Codex | Client::Gemini => String::new(),
        // Told to fail closed it takes silence for a fault.
        Client::Cursor => allow(client),
    }
}

fn allow(client: Client) -> String {
    match client {
        Client::ClaudeCode => specific(&json!({ "hookEventName": "PreToolUse", "permissionDecision": "allow" })),
        Client::Codex => String::new(),
        Client::Cursor => line(&json!({ "permission": "allow" })),
        Client::Gemini => line(&json!({ "decision": "allow" })),
    }
}

fn deny(client: Client, text: &str) -> String {
    let text = plain(text, TEXT_CHARS);
    match client {
        Client::ClaudeCode | Client::Codex => specific(&json!({
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": text,
        })),
        Client::Cursor => line(&json!({ "agent_message": text, "permission": "deny", "user_message": text })),
        Client::Gemini => line(&json!({ "decision": "deny", "reason": text })),
    }
}

fn ask(client: Client, text: &str) -> String {
    match client {
        Client::ClaudeCode => specific(&json!({
            "hookEventName": "PreToolUse", "permissionDecision": "ask",
            "permissionDecisionReason": plain(text, TEXT_CHARS),
        })),
        Client::Cursor => {
            let text = plain(text, TEXT_CHARS);
            line(&json!({ "agent_message": text, "permission": "ask", "user_message": text }))
        }
        Client::Codex | Client::Gemini => deny(client, text),
    }
}

fn specific(output: &Value) -> String {
    line(&json!({ "hookSpecificOutput": output }))
}

fn line(value: &Value) -> String {
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use svc_core::value::json::Json;

    use super::*;

    fn told(event: &str, verdict: &Verdict) -> String {
        let mut said = json!({ "session_id": "s", "hook_event_name": event, "tool_name": "T" });
        let cursor = event.starts_with('p') || event.starts_with("beforeM");
        said.as_object_mut().unwrap().extend(cursor.then(|| ("conversation_id".to_owned(), json!("s"))));
        let client = (event == "PreToolUse+").then_some(Client::Codex);
        if client.is_some() {
            said.as_object_mut().unwrap().insert("hook_event_name".to_owned(), json!("PreToolUse"));
        }
        let event = Event::read(&Json::parse(said.to_string().as_bytes()).unwrap(), client).unwrap();
        of(&event, verdict).unwrap()
    }

    fn ask(client_may_ask: bool) -> Verdict {
        Verdict::Ask { why: "W".to_owned(), link: "https://l".to_owned(), client_may_ask }
    }

    const ASKED: &str = "svc asks you first: W. It can also be decided at https://l";
    const LINKED: &str =
        "svc asks a person first: W. Have it decided at https://l and then make the very same call again";

    /// Every client gets its own shape, to the byte, and those that cannot ask never get an ask.
    #[test]
    fn every_client_gets_its_own_shape() {
        let claude = |decision: &str, text: &str| {
            format!(
                r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"{decision}","permissionDecisionReason":"{text}"}}}}"#
            ) + "\n"
        };
        let deny = Verdict::Deny { why: "W".to_owned() };
        let allowed = "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}\n";
        assert_eq!(told("PreToolUse", &Verdict::Allow), allowed);
        assert_eq!(told("PreToolUse", &deny), claude("deny", "svc denied this call: W"));
        assert_eq!(told("PreToolUse", &ask(true)), claude("ask", ASKED));
        assert_eq!(told("PreToolUse", &ask(false)), claude("deny", LINKED));
        assert_eq!(told("PreToolUse+", &Verdict::Allow), "");
        assert_eq!(told("PreToolUse+", &deny), claude("deny", "svc denied this call: W"));
        assert_eq!(told("PreToolUse+", &ask(true)), claude("deny", LINKED));
        assert_eq!(told("BeforeTool", &Verdict::Allow), "{\"decision\":\"allow\"}\n");
        assert_eq!(told("BeforeTool", &ask(true)), format!("{{\"decision\":\"deny\",\"reason\":\"{LINKED}\"}}\n"));
        assert_eq!(told("preToolUse", &Verdict::Allow), "{\"permission\":\"allow\"}\n");
        let cursor = |what: &str, text: &str| {
            format!("{{\"agent_message\":\"{text}\",\"permission\":\"{what}\",\"user_message\":\"{text}\"}}\n")
        };
        assert_eq!(told("preToolUse", &ask(true)), cursor("deny", LINKED));
        assert_eq!(told("beforeMCPExecution", &ask(true)), cursor("ask", ASKED));
    }
}
