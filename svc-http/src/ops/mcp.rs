//! The MCP server: one message a request, no sessions, every answer scoped to the calling agent.
//!
//! **Invariant:** whether the credential is in force is looked up for every message, whatever memory says of it.

mod next_step;
mod proxy;
mod tools;

use http::StatusCode;
use serde_json::Value;
use svc_core::refusal::{Kind, Refusal};

pub(crate) use self::proxy::Proxied;
use super::gate::Known;
use super::{Caller, GateService};
use crate::answer::Answer;
use crate::dispatch::Call;
use crate::routes::McpOp;
use crate::wire::mcp::{self, Asked, Fault, Message, Request, Tool, definition};
use crate::wire::parse;

/// Answers a route of this family.
///
/// # Errors
/// As the routes declare.
pub(super) async fn answer(service: &GateService, op: McpOp, caller: Caller, call: Call) -> Result<Answer, Refusal> {
    let known = caller.agent()?;
    let body = call.body.clone();
    let answer = match op {
        McpOp::Proxied => proxy::answer(service, known, call).await,
        McpOp::Message => own(service, known, call).await,
    };
    match answer {
        // Whoever asked several things at once finds the answer by its id alone.
        Err(told) => {
            let told = service.as_stopped(&known.digest, told).await;
            Ok(Answer::refused(told).with_message(mcp::id_in(&body)))
        }
        answered => answered,
    }
}

/// Answers a message to this server's own tools.
async fn own(service: &GateService, known: Known, call: Call) -> Result<Answer, Refusal> {
    service.in_force(&known)?;
    let docs = format!("{}/docs/errors", service.base_url);
    // What this server's own tools do is done at once.
    let Request { id, era, asked } = match message(&call, &docs)? {
        Ok(Message::Request(request)) => request,
        Ok(Message::Silent | Message::Cancelled(_)) => return Ok(accepted()),
        Err(answer) => return Ok(answer),
    };
    let result = match asked {
        Asked::Initialize(version) => Ok(mcp::initialized(&version, mcp::INSTRUCTIONS)),
        Asked::Discover => Ok(mcp::discovered(mcp::INSTRUCTIONS)),
        Asked::Ping => Ok(serde_json::json!({})),
        Asked::List(from) => mcp::listed(Tool::ALL.into_iter().map(definition), Tool::ALL.len(), from, era),
        Asked::Call(asked) => match Tool::named(&asked.name) {
            None => Err(mcp::unknown_tool(&asked.name)),
            Some(tool) => match tools::call(service, &known, tool, &asked.arguments).await {
                Ok(structured) => Ok(mcp::given(structured)),
                // A credential that has ended is told as such, so that the client renews it; so is the end of its agent.
                Err(refusal) if has_ended(&refusal) => return Err(refusal),
                Err(refusal) => Ok(mcp::refused(&refusal, &docs)),
            },
        },
    };
    match result {
        Ok(result) => answered(&mcp::answered(&id, era, result)),
        Err(fault) => faulty(&id, &fault, &call, &docs),
    }
}

/// The message in a body; within, the answer to one that is wrong.
fn message(call: &Call, docs: &str) -> Result<Result<Message, Answer>, Refusal> {
    match mcp::read(&call.headers, parse(&call.body)?) {
        Ok(message) => Ok(Ok(message)),
        Err((id, fault)) => faulty(&id, &fault, call, docs).map(Err),
    }
}

/// What a message is answered that asks for nothing.
fn accepted() -> Answer {
    Answer::json(Vec::new()).with_status(StatusCode::ACCEPTED)
}

fn has_ended(refusal: &Refusal) -> bool {
    matches!(refusal.kind(), Kind::InvalidApiKey | Kind::AgentNotFound)
}

fn answered(message: &Value) -> Result<Answer, Refusal> {
    serde_json::to_vec(message).map(Answer::json).map_err(|_| Refusal::internal())
}

fn faulty(id: &Value, fault: &Fault, call: &Call, docs: &str) -> Result<Answer, Refusal> {
    let request_id = call.request_id.to_str().unwrap_or_default();
    let body = serde_json::to_vec(&mcp::faulty(id, fault, request_id, docs)).map_err(|_| Refusal::internal())?;
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_REQUEST);
    Ok(Answer::json(body).with_status(status))
}
