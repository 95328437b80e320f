//! What a list of actions is asked with, and the reason that an act of a person's needs.

use svc_core::refusal::{FieldError, Refusal};
use svc_core::state::gate::{Action, ActionKind, Status};
use svc_core::value::id::{AgentId, WorkspaceId};
use svc_core::value::period::Zone;
use svc_core::value::text::Note;

use super::page::{Page, Query, Span};
use super::{Fields, parse, text};

/// Which actions are asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Of this agent.
    pub agent: Option<AgentId>,
    /// That read so now.
    pub status: Option<Status>,
    /// Of this type.
    pub kind: Option<ActionKind>,
    /// Asked in this time.
    pub span: Span,
    /// Which part of them.
    pub page: Page,
}

impl Wish {
    /// Reads the query.
    ///
    /// # Errors
    /// `invalid_request` with every fault.
    pub fn read(mut query: Query, workspace: WorkspaceId, zone: &Zone) -> Result<Self, Refusal> {
        let agent = query.take("agentId", |it| AgentId::parse(it).map_err(|why| why.to_string()));
        let status = query.take("status", |it| {
            let words = || Status::ALL.map(Status::as_str).join(", ");
            Status::parse(it).ok_or_else(|| format!("must be one of {}", words()))
        });
        let kind = query.take("type", |it| ActionKind::parse(it).map_err(|unknown| unknown.message.to_string()));
        let span = query.span(zone);
        let page = query.page("actions", workspace);
        query.finish()?;
        Ok(Self { agent, status, kind, span, page })
    }

    /// Whether an action is asked for, as far as its own row tells.
    #[must_use]
    pub fn admits(&self, action: &Action) -> bool {
        self.kind.as_ref().is_none_or(|it| *it == action.kind) && self.agent.is_none_or(|it| it == action.agent)
    }
}

/// Reads the reason of an act that needs one.
///
/// # Errors
/// `reason_required` where it is missing or blank, `invalid_request` where it is no text of 1 to 500 characters.
pub fn read_reason(body: &[u8]) -> Result<Note, Refusal> {
    let json = parse(body)?;
    let mut fields = Fields::of(&json)?;
    let said = fields.raw("reason");
    if said.is_none_or(|it| it.as_str().is_some_and(|text| text.trim().is_empty())) {
        return Err(Refusal::reason_required());
    }
    let reason = fields.required("reason", |it| Note::parse(text(it)?));
    fields.finish(reason)
}

/// The fault of a header that names no place of the ledger.
#[must_use]
pub fn no_event_id() -> Refusal {
    Refusal::invalid_request(vec![FieldError::new("last-event-id".to_owned(), "must be the `id` of an event")])
}
