//! An allowed call on its way: made, its result noted, its action settled, its answer handed on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderValue;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use svc_core::refusal::{Kind, Refusal};
use svc_core::rules::edge::proxied::{NoteResult, Reached, SettleCall, reach};
use svc_core::rules::gateway::payer::CallKey;
use svc_core::state::gate::OutcomeStatus;
use svc_core::state::gateway::route::name_of_mcp_tool;
use svc_core::value::digest::Digest;
use svc_core::value::id::{ActionId, HoldId};
use svc_core::value::text::SessionId;
use svc_store::Gate;

use super::under_way::Named;
use super::{Proxied, relay};
use crate::answer::Answer;
use crate::metrics::{Metrics, ToolEnd};
use crate::ops::gateway::Seat;
use crate::ops::{log, recorded, refusal};
use crate::tool_server::{Answered, Calling, Definition, OBJECT, Ready, Trouble};
use crate::upstream::{Stop, Upstreams};
use crate::wire::mcp::{self, Era, ToolCall};

/// A call and all that making it takes: it may outlive the request that brought it.
pub(super) struct Run {
    /// Its name among the calls under way.
    pub(super) named: Named,
    pub(super) gate: Gate,
    pub(super) upstreams: Upstreams,
    pub(super) proxied: Arc<Proxied>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) key: CallKey,
    pub(super) reached: Arc<Reached>,
    pub(super) tool: Arc<Definition>,
    pub(super) asked: ToolCall,
    pub(super) sent: Box<RawValue>,
    pub(super) session: SessionId,
    pub(super) action: ActionId,
    pub(super) seat: Seat,
    pub(super) id: Value,
    pub(super) era: Era,
    pub(super) docs: Box<str>,
    pub(super) request_id: HeaderValue,
    pub(super) takes_events: bool,
}

/// What of a result matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape<'a> {
    #[serde(default)]
    content: Option<Vec<IgnoredAny>>,
    #[serde(borrow, default)]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(default)]
    result_type: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

impl Shape<'_> {
    /// Whether it is the result of a tool. One that has made an object need say nothing beside, as some servers read the protocol.
    fn is_whole(&self) -> bool {
        let is_decision = self.meta.as_ref().is_some_and(|it| it.decision.is_some());
        let is_complete = self.result_type.as_deref().is_none_or(|it| it == "complete");
        (self.content.is_some() || self.has_object()) && is_complete && !is_decision
    }

    fn has_object(&self) -> bool {
        self.structured_content.is_some_and(|it| it.get().starts_with(OBJECT))
    }
}

/// The same object with these members in the place of its own, all else to the byte; nothing where it is none.
fn with(object: &str, members: &[(&str, &str)]) -> Option<String> {
    let mut all: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
    for (name, value) in members {
        all.insert(Cow::Borrowed(name), serde_json::from_str(value).ok()?);
    }
    serde_json::to_string(&all).ok()
}

/// What nobody but this server says.
#[derive(Deserialize)]
struct Meta {
    #[serde(default, rename = "svc/decision")]
    decision: Option<IgnoredAny>,
}

impl Run {
    /// Makes the call. A result is waited for and noted even if the client goes away; a stream ends with its client, which is
    /// how a client calls it off.
    pub(super) async fn answer(self, ready: Result<Ready, Trouble>) -> Result<Answer, Refusal> {
        let upstreams = self.upstreams.clone();
        upstreams.outlive(self.make(ready)).await
    }

    async fn make(self, ready: Result<Ready, Trouble>) -> Result<Answer, Refusal> {
        let switch = self.seat.switch();
        // Whoever gives it up before it is sent has run nothing.
        let has_left = AtomicBool::new(false);
        let given_up =
            |why: Trouble| if has_left.load(Ordering::Relaxed) { why } else { Trouble::Unmet(Box::new(why)) };
        let calling = Calling {
            tool: &self.tool,
            arguments: &self.asked.arguments,
            sent: &self.sent,
            progress: self.asked.progress.as_ref(),
        };
        let made = tokio::select! {
            biased;
            stop = switch.cut_off() => match stop {
                Stop::Agent | Stop::Key => return Err(self.stopped(stop).await),
                Stop::Server => Err(given_up(Trouble::Stopping)),
            },
            () = self.named.called_off() => Err(given_up(Trouble::CalledOff)),
            made = async {
                let ready = ready?;
                has_left.store(true, Ordering::Relaxed);
                self.proxied.servers.call(ready, &calling).await
            } => made,
        };
        match made {
            Ok(Answered::Stream(events)) if self.takes_events => Ok(relay::answer(self, *events)),
            Ok(Answered::Stream(mut events)) => {
                let heard = loop {
                    let heard = tokio::select! {
                        biased;
                        stop = switch.cut_off() => return self.cut(stop).await.map(Answer::json),
                        () = self.named.called_off() => break Err(Trouble::CalledOff),
                        heard = events.next() => heard,
                    };
                    if let Some(last) = relay::last(heard) {
                        break last;
                    }
                };
                self.over(heard).await.map(Answer::json)
            }
            Ok(Answered::Result(result)) => self.over(Ok(result)).await.map(Answer::json),
            Err(trouble) => self.over(Err(trouble)).await.map(Answer::json),
        }
    }

    /// What is told in the place of a result that is waited for no longer.
    pub(super) async fn cut(&self, stop: Stop) -> Result<Vec<u8>, Refusal> {
        match stop {
            Stop::Agent | Stop::Key => Err(self.stopped(stop).await),
            Stop::Server => self.over(Err(Trouble::Stopping)).await,
        }
    }

    /// What whoever was stopped while the call ran is told.
    async fn stopped(&self, stop: Stop) -> Refusal {
        self.ended(ToolEnd::Cut);
        let reached = self.gate.read(|scope| reach(scope, &self.key, self.reached.server.name.as_str()).map(drop));
        let told = reached.map_err(refusal).err().filter(|it| it.kind() == Kind::AgentStopped);
        let told = told.unwrap_or_else(|| match stop {
            Stop::Key => Refusal::invalid_api_key(),
            Stop::Agent | Stop::Server => Refusal::agent_stopped(self.reached.caller.agent, None::<HoldId>),
        });
        recorded(&self.gate, &self.key, told).await
    }

    /// Notes that this comes into the session's context: it is shown to nobody before.
    pub(super) async fn note(&self, text: &str) -> Result<(), Refusal> {
        let note = NoteResult {
            caller: self.key.clone(),
            session: self.session.clone(),
            tool: name_of_mcp_tool(self.reached.server.name.as_str(), &self.tool.name).into(),
            digest: Digest::of(text.as_bytes()),
        };
        self.gate.submit(note).await.map_err(refusal)
    }

    /// Counts how the call has ended.
    pub(super) fn ended(&self, end: ToolEnd) {
        self.metrics.tool_called(self.reached.server.name.as_str(), end);
    }

    /// Notes what came of the call, and gives the answer to the client's message.
    pub(super) async fn over(&self, made: Result<Box<RawValue>, Trouble>) -> Result<Vec<u8>, Refusal> {
        let (text, outcome, end) = match made {
            Ok(result) => self.result(result.get()),
            Err(trouble) => {
                let outcome = (!trouble.may_have_run()).then_some(OutcomeStatus::Failed);
                (self.troubled(&trouble), outcome, ToolEnd::of(&trouble))
            }
        };
        self.ended(end);
        let settled = async {
            // What may have run and nobody knows how lapses by itself, and counts as run.
            let Some(status) = outcome else { return };
            let settle = SettleCall { caller: self.reached.caller, action: self.action, status };
            if let Err(failure) = self.gate.submit(settle).await {
                log(&failure);
            }
        };
        let (noted, ()) = tokio::join!(self.note(&text), settled);
        // What is not noted is not shown: from here on the agent could act on it unseen.
        noted?;
        Ok(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{text}}}", self.id).into_bytes())
    }

    /// A result as it is handed on, what became of the action, and how the call has ended.
    fn result(&self, text: &str) -> (String, Option<OutcomeStatus>, ToolEnd) {
        let shape = serde_json::from_str::<Shape<'_>>(text).ok();
        let Some(shape) = shape.filter(Shape::is_whole) else {
            return (self.troubled(&Trouble::NotMcp("its result is none of a tool")), None, ToolEnd::Failed);
        };
        let (outcome, end) = if shape.is_error == Some(true) {
            (OutcomeStatus::Failed, ToolEnd::ToolError)
        } else {
            (OutcomeStatus::Completed, ToolEnd::Done)
        };
        let mut missing = Vec::new();
        if self.era == Era::Modern && shape.result_type.is_none() {
            missing.push(("resultType", "\"complete\""));
        }
        if shape.content.is_none() {
            missing.push(("content", "[]"));
        }
        let whole = if missing.is_empty() { None } else { with(text, &missing) };
        (whole.unwrap_or_else(|| text.to_owned()), Some(outcome), end)
    }

    /// The result of a call that the server did not answer as it should.
    fn troubled(&self, trouble: &Trouble) -> String {
        let name = &self.reached.server.name;
        let (kind, said) = match trouble {
            _ if trouble.may_have_run() => (
                Kind::ToolServerFailure,
                format!("the MCP server `{name}` gave no result, though the tool may have run"),
            ),
            Trouble::Rpc(_) => (Kind::ToolServerRejected, format!("the MCP server `{name}` refused the call")),
            _ => (Kind::ToolServerFailure, format!("the MCP server `{name}` gave no result, and the tool has not run")),
        };
        let refusal = Refusal::tool_server(kind, format!("{said}: {}", trouble.said()));
        let mut result = mcp::refused(&refusal, &self.docs);
        if self.era == Era::Modern {
            crate::wire::put(&mut result, "resultType", serde_json::json!("complete"));
        }
        result.to_string()
    }
}
