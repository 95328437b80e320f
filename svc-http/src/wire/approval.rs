//! Approvals: what a person is asked, and what they answer (CONTRACT part 2, "Approval").

use serde_json::{Value, json};
use svc_core::answer::approval_page;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::asked::{Names, Question, Stands};
use svc_core::rules::gate::decide::Choice;
use svc_core::state::gate::{ApprovalKind, ApprovalSubject, Requester};
use svc_core::value::Invalid;
use svc_core::value::digest::Digest;
use svc_core::value::id::{AgentId, PrincipalId};
use svc_core::value::text::Note;

use super::decision::{consent, decider, reason};
use super::page::Query;
use super::sign_in::{Factor, factor_if_shown};
use super::{Fields, parse_or_empty, text};

/// What a person answers.
#[derive(Debug)]
pub struct Word {
    /// Yes or no.
    pub choice: Choice,
    /// Why.
    pub note: Option<Note>,
    /// The digest of what they saw.
    pub digest: Option<Digest>,
    /// The second factor, which amounts above a line of the settings take (CONTRACT part 8, `stepUpAbove`).
    pub factor: Option<Factor>,
}

/// Reads `{ note?, actionDigest?, principalId? }` of `person`, and with a yes `code` or `recoveryCode`; nothing at all is that too.
/// `principalId` is who they take themselves for: a browser's session may be another's since they looked.
///
/// # Errors
/// `invalid_json`, or `invalid_request` naming every fault.
pub fn read(body: &[u8], choice: Choice, person: PrincipalId) -> Result<Word, Refusal> {
    let json = parse_or_empty(body)?;
    let mut fields = Fields::of(&json)?;
    let note = fields.optional("note", |it| Note::parse(text(it)?));
    let digest = fields.optional("actionDigest", |it| {
        let hex = text(it)?.strip_prefix("sha256:");
        let digest = hex.and_then(|it| Digest::parse(it).ok());
        digest.ok_or_else(|| Invalid::new("must be `sha256:` and 64 hexadecimal digits"))
    });
    fields.optional("principalId", |it| match PrincipalId::parse(text(it)?)? {
        own if own == person => Ok(()),
        _ => Err(Invalid::new("is not who is signed in")),
    });
    let factor = if choice == Choice::Approve { factor_if_shown(&mut fields) } else { None };
    fields.finish(Some(Word { choice, note, digest, factor }))
}

/// Which approvals of a list are shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter {
    /// Those that stand so.
    pub state: Option<Stands>,
    /// Those of this kind.
    pub kind: Option<ApprovalKind>,
    /// Those of this agent.
    pub agent: Option<AgentId>,
}

impl Filter {
    /// Reads `state`, `kind` and `agentId`.
    pub fn of(query: &mut Query) -> Self {
        let state = query.take("state", |word| {
            let found = Stands::ALL.into_iter().find(|it| it.as_str() == word);
            found.ok_or_else(|| "must be waiting, approved, denied or expired".to_owned())
        });
        let kind = query.take("kind", |word| {
            let found = ApprovalKind::ALL.into_iter().find(|it| it.as_str() == word);
            found.ok_or_else(|| "must be action, freeze, hold_lift, owner or budget".to_owned())
        });
        let agent = query.take("agentId", |id| AgentId::parse(id).map_err(|_| "is no id of an agent".to_owned()));
        Self { state, kind, agent }
    }

    /// Whether `question` is shown.
    #[must_use]
    pub fn shows(&self, question: &Question) -> bool {
        let agent = question.approval.asked_action().map(|it| it.agent);
        self.state.is_none_or(|it| it == question.stands)
            && self.kind.is_none_or(|it| it == question.approval.kind())
            && self.agent.is_none_or(|it| agent == Some(it))
    }
}

/// An approval as JSON.
///
/// # Errors
/// None that a test does not rule out.
pub fn write(question: &Question, names: &Names, base_url: &str) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(&item(question, names, base_url)).map_err(|_| Refusal::internal())
}

/// An approval as an item of a list; `names`: what people are called, of whom its own are told.
#[must_use]
pub fn item(question: &Question, names: &Names, base_url: &str) -> Value {
    let approval = &question.approval;
    let base = base_url.trim_end_matches('/');
    let asked_by = requested_by(question);
    let mut item = json!({
        "id": approval.id,
        "kind": approval.kind().as_str(),
        "state": question.stands.as_str(),
        "subject": subject(question),
        "summary": question.summary(),
        "reasons": [],
        "requestedBy": asked_by,
        "createdBy": asked_by,
        "createdAt": approval.created_at.to_string(),
        "expiresAt": approval.expires_at.to_string(),
        "needed": question.needed,
        "approvals": approval.approvals.iter().map(consent).collect::<Vec<_>>(),
        "clientMayAsk": question.action.as_ref().is_some_and(|it| it.client_may_ask),
        "mayDecide": question.may_not.is_none(),
        "url": approval_page(base, approval.workspace, approval.id),
    });
    let mut set = |name: &str, value: Value| {
        if let Some(members) = item.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(view) = &question.action {
        set("reasons", json!(view.reasons().iter().map(reason).collect::<Vec<_>>()));
        set("agentId", json!(view.action.agent));
    }
    if let Some(asked) = approval.asked_action() {
        set("actionDigest", json!(format!("sha256:{}", asked.digest)));
        if !asked.exceptions.is_empty() {
            set("exceptions", json!(asked.exceptions.iter().map(reason).collect::<Vec<_>>()));
        }
    }
    if let Some(why) = question.may_not {
        set("mayNot", json!(why.as_str()));
    }
    if let Some((at, by)) = question.decided {
        set("decidedAt", json!(at.to_string()));
        set("decidedBy", json!(decider(by)));
    }
    if let Some(note) = approval.note() {
        set("note", json!(note.as_str()));
    }
    let named = |id: PrincipalId| names.get(&id).map(|name| json!({ "id": id, "name": name }));
    let people: Vec<Value> = question.people().into_iter().filter_map(named).collect();
    if !people.is_empty() {
        set("people", Value::Array(people));
    }
    item
}

fn subject(question: &Question) -> Value {
    match &question.approval.subject {
        ApprovalSubject::Action(it) => json!({ "actionId": it.action }),
        ApprovalSubject::Freeze(it) => {
            json!({ "members": question.members, "count": it.members.count, "all": it.all, "reason": it.reason })
        }
        ApprovalSubject::HoldLift(it) => json!({ "hold": it.hold, "restart": it.restart, "reason": it.reason }),
        ApprovalSubject::Owner(it) => {
            let known = question.whom.as_ref().filter(|it| !it.is_forgotten());
            json!({ "principalId": it.principal, "email": known.map(|it| it.email.as_str()) })
        }
        ApprovalSubject::Budget(it) => json!({ "budgetId": it.budget, "moreMicros": it.more }),
    }
}

fn requested_by(question: &Question) -> String {
    match &question.approval.subject {
        ApprovalSubject::Action(it) => it.agent.to_string(),
        ApprovalSubject::Freeze(it) => match &it.by {
            Requester::Person(id) => id.to_string(),
            Requester::Program => "program".to_owned(),
            Requester::Token { name, .. } => format!("token:{name}"),
        },
        ApprovalSubject::HoldLift(it) => it.by.to_string(),
        ApprovalSubject::Owner(it) => it.by.to_string(),
        ApprovalSubject::Budget(it) => it.agent.map_or_else(|| it.principal.to_string(), |it| it.to_string()),
    }
}
