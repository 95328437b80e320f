//! What a bundle is asked for, and the cursor that asks for what is behind one.

use svc_core::refusal::Refusal;
use svc_core::value::Timestamp;
use svc_core::value::id::{AgentId, WorkspaceId};

/// What a bundle is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose ledger.
    pub workspace: WorkspaceId,
    /// From the first record of this instant on. Where a record's number or `since` is given, that counts.
    pub from: Timestamp,
    /// Up to, not including, the first record of this instant; `None`: up to the newest.
    pub to: Option<Timestamp>,
    /// The size of a checkpoint that the reader holds: the bundle begins behind it unless a record is named, and shows that the
    /// ledger continues it.
    pub since: Option<u64>,
    /// From this record on, as a bundle before said.
    pub start: Option<u64>,
    /// Only what concerns this agent.
    pub agent: Option<AgentId>,
    /// Whether personal texts, and receipts, which name the merchant, are left out.
    pub redact: bool,
}

impl Wanted {
    /// The question that a `nextCursor` continues, of this workspace. The bundle shows that the ledger continues the checkpoint of the one
    /// which named it; cursors of before said nothing of that.
    ///
    /// # Errors
    /// `invalid_request` on `cursor` for a text that is none.
    pub fn next(workspace: WorkspaceId, cursor: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = cursor.split('.').collect();
        let read = || {
            let (next, until, agent, redact, size) = match *parts.as_slice() {
                [next, until, agent, redact] => (next, until, agent, redact, None),
                [next, until, agent, redact, size] => (next, until, agent, redact, Some(size)),
                _ => return None,
            };
            let since = size.map(str::parse).transpose().ok()?;
            let to = if until == "-" { None } else { Some(Timestamp::from_millis(until.parse().ok()?)) };
            let agent = if agent == "-" { None } else { Some(AgentId::parse(agent).ok()?) };
            let wanted = Self {
                workspace,
                from: Timestamp::default(),
                to,
                since,
                start: Some(next.parse().ok()?),
                agent,
                redact: redact == "1",
            };
            (cursor_of(&wanted, wanted.start?, since) == cursor).then_some(wanted)
        };
        read().ok_or_else(|| Refusal::invalid_field("cursor", "is not one that a bundle named"))
    }
}

/// Where the bundle behind one with `size` records in its checkpoint begins, for the same question.
pub(super) fn cursor_of(wanted: &Wanted, next: u64, size: Option<u64>) -> String {
    let until = wanted.to.map_or_else(|| "-".to_owned(), |it| it.as_millis().to_string());
    let agent = wanted.agent.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let size = size.map_or_else(String::new, |it| format!(".{it}"));
    format!("{next}.{until}.{agent}.{}{size}", u8::from(wanted.redact))
}
