//! What a server asks its client while a tool runs, which the eras with handshake let it. Nothing is offered that it could ask for,
//! and it is told so at once, so that its tool goes on or gives up; that its client is there it is told as well (MCP 2025-11-25,
//! "Ping"; JSON-RPC 2.0, part 5).
//!
//! **Invariant:** no answer holds up the call in whose stream the question came, and none holds anything of an agent.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::known::Known;
use super::message::{Era, OBJECT, Sent, headers};
use crate::upstream::{Times, Upstreams};

/// How long an answer may take to be sent: nobody waits for what comes of it.
const TIMES: Times =
    Times { first_token: Duration::from_secs(10), idle: Duration::from_secs(10), total: Duration::from_secs(10) };
/// Bytes of the longest id that is told back.
const ID_BYTES_MAX: usize = 1_024;
/// What a method that is not known is answered with (JSON-RPC 2.0).
const REFUSED: &str = r#""error":{"code":-32601,"message":"this client takes no such request"}"#;

/// Who answers what the server of one call asks.
pub(super) struct Questions {
    upstreams: Upstreams,
    era: Era,
}

#[derive(Deserialize)]
struct Question<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: String,
}

impl Questions {
    /// Of a call in this era and session.
    pub(super) const fn new(upstreams: Upstreams, era: Era) -> Self {
        Self { upstreams, era }
    }

    /// Answers a message where it is a question, on a connection of its own; more of them at once than a server has places for
    /// are left as they are.
    pub(super) fn answer(&self, known: &Arc<Known>, text: &[u8]) {
        if self.era == Era::Modern {
            return;
        }
        let Some(body) = answer_to(text) else { return };
        let Some(place) = known.place_of_an_answer() else { return };
        let (known, upstreams, era) = (Arc::clone(known), self.upstreams.clone(), self.era.clone());
        tokio::spawn(async move {
            let _place = place;
            let headers = headers(&era, &Sent::new("", ""), None);
            // Whether it is heard is the server's matter.
            let _ = upstreams.post(known.endpoint(), &headers, body.as_bytes(), TIMES).await;
        });
    }
}

/// The answer to a question; nothing to what is none.
fn answer_to(text: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(text).ok().filter(|it| it.trim_start().starts_with(OBJECT))?;
    let question: Question<'_> = serde_json::from_str(text).ok()?;
    let id = question.id.get();
    let is_name = id.starts_with(|it: char| it == '"' || it == '-' || it.is_ascii_digit());
    if !is_name || id.len() > ID_BYTES_MAX {
        return None;
    }
    let answer = if question.method == "ping" { r#""result":{}"# } else { REFUSED };
    Some(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question is answered by the id that it came with; what is none, or has a name that is none, is not.
    #[test]
    fn a_question_is_answered_by_its_id() {
        let answer = |text: &str| answer_to(text.as_bytes());
        let pong = r#"{"jsonrpc":"2.0","id":"a\u00e9","result":{}}"#;
        assert_eq!(answer(r#" {"jsonrpc":"2.0","id":"a\u00e9","method":"ping"}"#).as_deref(), Some(pong));
        for method in ["roots/list", "sampling/createMessage", "elicitation/create", "of/another/day", ""] {
            let told = answer(&format!(r#"{{"jsonrpc":"2.0","id":-1,"method":"{method}","params":{{"a":1}}}}"#));
            assert!(told.is_some_and(|it| it.starts_with(r#"{"jsonrpc":"2.0","id":-1,"error":{"code":-32601,"#)));
        }
        for none in [
            r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
            r#"[1,"ping"]"#,
            "",
        ] {
            assert_eq!(answer(none), None, "{none}");
        }
        let long = format!(r#"{{"id":"{}","method":"ping"}}"#, "x".repeat(ID_BYTES_MAX));
        assert_eq!(answer(&long), None);
    }
}
