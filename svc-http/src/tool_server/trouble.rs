//! Why an MCP server gave no result.

use serde_json::Value;

use crate::upstream::Failed;

/// A version that the server does not speak (MCP 2026-07-28).
const UNSUPPORTED_VERSION: i64 = -32_022;
/// Something broke in the server (JSON-RPC 2.0): before it did, the tool may have run.
const INTERNAL_ERROR: i64 = -32_603;
/// The connection to whoever stands behind the server closed, and the time for them was up (the SDKs' own codes): servers that
/// pass calls on answer them in good answers, and the tool may have run.
const CONNECTION_CLOSED: i64 = -32_000;
const REQUEST_TIMEOUT: i64 = -32_001;
/// What is no request, and what there is no method for (JSON-RPC 2.0). Servers say so of a call before they read it, by their
/// status; in a good answer that names it they pass on what went wrong in the tool, such as that its client was asked in vain.
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
/// What a server has to do with the headers of a request (MCP 2026-07-28).
const MODERN_CODES: std::ops::RangeInclusive<i64> = -32_022..=-32_020;

/// Why an MCP server gave no result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// There was no answer.
    Failed(Failed),
    /// It does not take the credential that it is shown.
    Credential,
    /// It knows nothing of the session.
    NoSession,
    /// It answered with this status and no message.
    Status(u16),
    /// What it answered is no message of MCP: one clause.
    NotMcp(&'static str),
    /// It answered with an error.
    Rpc(RpcError),
    /// What it is shown cannot be opened, or its address may not be called.
    Unusable,
    /// As many calls of it as may be under way are.
    Busy,
    /// As many of its calls as one agent may have under way are.
    AgentBusy,
    /// This server stops, and waits for it no longer.
    Stopping,
    /// It was not to be met, as the gate was about to deny the call.
    Denied,
    /// The client calls it off, and waits for it no longer.
    CalledOff,
    /// It could not be met: what was to be asked was not.
    Unmet(Box<Self>),
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    /// The code.
    pub(crate) code: i64,
    /// What is said of it, as the server said it.
    pub(crate) message: String,
    /// What is told beside.
    pub(crate) data: Value,
    /// The status of the answer that it came in.
    pub(super) status: u16,
    /// Whether it names the request that it answers: one that was not read has no name.
    pub(super) names_request: bool,
}

impl RpcError {
    /// Reads the `error` of a message that came in a good answer.
    pub(super) fn of(text: &str, names_request: bool) -> Self {
        let error: Value = serde_json::from_str(text).unwrap_or_default();
        let message = error.get("message").and_then(Value::as_str).unwrap_or("no message");
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let data = error.get("data").cloned().unwrap_or_default();
        Self { code, message: message.to_owned(), data, status: 200, names_request }
    }

    /// Whether the server speaks an era before; nothing where it speaks another one altogether.
    pub(super) fn speaks_legacy(&self) -> Option<bool> {
        if self.code != UNSUPPORTED_VERSION {
            return Some(true);
        }
        let supported = self.data.get("supported").and_then(Value::as_array)?;
        let known = |it: &Value| it.as_str().is_some_and(|it| crate::wire::mcp::spoken_by_server(it).is_some());
        supported.iter().any(known).then_some(true)
    }
}

impl Trouble {
    /// Whether the tool may have run all the same.
    pub(crate) const fn may_have_run(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.was_sent,
            Self::NotMcp(_) | Self::Stopping | Self::CalledOff => true,
            // Whoever breaks down, or gives up waiting for whoever stands behind, may have begun.
            Self::Status(status) => *status >= 500,
            Self::Rpc(error) => match error.code {
                INTERNAL_ERROR => true,
                CONNECTION_CLOSED | REQUEST_TIMEOUT => error.status >= 500 || error.status < 400,
                INVALID_REQUEST | METHOD_NOT_FOUND => error.status >= 500 || self.is_good_answer(),
                _ => error.status >= 500,
            },
            Self::Credential
            | Self::NoSession
            | Self::Unusable
            | Self::Busy
            | Self::AgentBusy
            | Self::Denied
            | Self::Unmet(_) => false,
        }
    }

    /// Whether the server took the request and answers it by its name, with an error.
    pub(super) const fn is_good_answer(&self) -> bool {
        matches!(self, Self::Rpc(error) if error.status < 300 && error.names_request)
    }

    /// Whether the server seems to speak in another way than it did.
    pub(super) fn is_of_another_era(&self) -> bool {
        match self {
            Self::Status(status) => matches!(status, 400 | 404 | 405),
            Self::Rpc(error) => {
                MODERN_CODES.contains(&error.code) || matches!(error.code, METHOD_NOT_FOUND | INVALID_REQUEST)
            }
            _ => false,
        }
    }

    /// Whether it may only be that the server knows nothing of what it was asked for, and would answer something else.
    pub(super) const fn may_be_of_method(&self) -> bool {
        match self {
            Self::Failed(failed) => failed.was_sent,
            _ => matches!(self, Self::Credential),
        }
    }

    /// Whether the server refused the request before it read whose and which it was.
    pub(super) const fn is_unread(&self) -> bool {
        matches!(self, Self::Rpc(error) if error.status == 400 && !error.names_request)
    }

    /// One clause for people, without secrets and without a word of the server's own: those may hold anything.
    pub(crate) fn clause(&self) -> String {
        match self {
            Self::Failed(failed) => failed.error(),
            Self::Credential => "it does not take the credential that it is shown".to_owned(),
            Self::NoSession => "it knows nothing of the session".to_owned(),
            Self::Status(status) => format!("the answer is {status}"),
            Self::NotMcp(clause) => (*clause).to_owned(),
            Self::Rpc(error) => format!("it answered with the error {}", error.code),
            Self::Unusable => "its address or its credential cannot be used".to_owned(),
            Self::Stopping => "this server stops, and waits for it no longer".to_owned(),
            Self::Denied => "it was not met for a call that was about to be denied".to_owned(),
            Self::CalledOff => "its client has called it off".to_owned(),
            Self::Busy => "too many calls of it are under way".to_owned(),
            Self::AgentBusy => "too many of this agent's calls of it are under way".to_owned(),
            Self::Unmet(why) => why.clause(),
        }
    }

    /// The same with what the server says of it, which is somebody else's content.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Rpc(error) => format!("{}: {}", self.clause(), error.message),
            Self::Unmet(why) => why.said(),
            _ => self.clause(),
        }
    }
}
