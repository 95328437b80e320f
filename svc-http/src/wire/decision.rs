//! The decision, as every route of the gate answers it (CONTRACT part 2, "Decision").

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use svc_core::answer::Decided;
use svc_core::answer::approval_page;
use svc_core::refusal::Refusal;
use svc_core::rules::gate::asked::stands;
use svc_core::rules::read::View;
use svc_core::state::gate::{
    Action, Approval, Code, Consent, DataShare, DecidedBy, Incident, Origin, Outcome, Payment, Reason, Released, Tool,
    salt_text,
};
use svc_core::value::Timestamp;
use svc_core::value::id::{ActionId, AgentId, EvidenceId, HoldId, MandateId, PrincipalId};

use super::verdict::Merchant;
use super::{Told, bounded};

/// Who an action is shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Its agent, or a member who may see all of it.
    Whole,
    /// An analyst: without the merchant, the summary, and what either could be guessed from.
    Outline,
}

/// The decision as JSON, as the agent that asked gets it.
///
/// # Errors
/// `internal` where it cannot be written, which its members rule out.
pub fn write(decided: &Decided) -> Result<Vec<u8>, Refusal> {
    let reasons = decided.reasons();
    let receipt = decided.receipt().zip(decided.receipt_expires_at());
    let mut body = Vec::with_capacity(1_536);
    let answer = answer(decided.view(), &reasons, decided.url(), receipt, Shown::Whole)?;
    serde_json::to_writer(&mut body, &answer).map_err(|_| Refusal::internal())?;
    Ok(body)
}

/// The decision as members of a workspace get it: without the receipt, which is its agent's alone.
///
/// # Errors
/// As [`write()`].
pub fn item(view: &View, base_url: &str, shown: Shown) -> Result<Value, Refusal> {
    let url = view.approval.as_ref().map(|it| approval_page(base_url, it.workspace, it.id));
    let mut reasons = view.reasons();
    if shown == Shown::Outline {
        // These name the merchant that they are about.
        let names = [Code::MerchantDenied, Code::MerchantNotAllowed, Code::PossibleDuplicate, Code::SplitPayments];
        reasons.iter_mut().filter(|it| names.contains(&it.code)).for_each(|it| it.field = None);
    }
    let answer = answer(view, &reasons, url.as_deref(), None, shown)?;
    let mut item = serde_json::to_value(answer).map_err(|_| Refusal::internal())?;
    super::put(&mut item, "createdBy", view.action.agent.to_string().into());
    let kept = view.action.kept(view.now);
    if kept > 0 {
        super::put(&mut item, "keptAmount", kept.into());
    }
    if let Some(given) = view.action.released() {
        let given = serde_json::to_value(released(given)).map_err(|_| Refusal::internal())?;
        super::put(&mut item, "released", given);
    }
    Ok(item)
}

/// The same with what the action's tool is given: whoever decides on an action, or looks into one, sees what it would do. The agent
/// is not told again what it sent, and no list has it: it can have 64 KiB.
///
/// # Errors
/// As [`write()`].
pub fn item_with_input(view: &View, base_url: &str, shown: Shown) -> Result<Value, Refusal> {
    let mut item = item(view, base_url, shown)?;
    let given = view.payload.as_ref().and_then(|it| it.tool_input.as_deref());
    if let (Some(given), Some(tool), Shown::Whole) = (given, item.get_mut("tool"), shown) {
        super::put(tool, "input", serde_json::from_str(given).map_err(|_| Refusal::internal())?);
    }
    Ok(item)
}

fn answer<'a>(
    view: &'a View,
    reasons: &'a [Reason],
    url: Option<&'a str>,
    receipt: Option<(&'a str, Timestamp)>,
    shown: Shown,
) -> Result<DecisionAnswer<'a>, Refusal> {
    let action = &*view.action;
    let (decided_at, decided_by) = view.decided().unzip();
    let allowed = action.allowed();
    let consumed = allowed.and_then(|it| it.consumed.as_ref());
    let details = view.payload.as_ref().and_then(|it| it.details.as_deref());
    let details = details.map(serde_json::from_str::<&RawValue>).transpose().map_err(|_| Refusal::internal())?;
    let whole = shown == Shown::Whole;
    Ok(DecisionAnswer {
        id: Told(action.id),
        decision: view.verb().as_str(),
        status: view.status().as_str(),
        kind: action.kind.as_str(),
        summary: whole.then(|| action.summary.as_str()),
        agent_id: Told(action.agent),
        principal_id: Told(action.principal),
        created_at: Told(action.created_at()),
        payment: action.payment.as_ref().map(|it| payment(it, whole)),
        data: action.data.as_ref().map(data),
        tool: action.tool.as_ref().map(|it| tool(it, whole)),
        details,
        session: action.session.as_ref().map(|it| SessionOut { id: it.as_str() }),
        decided_at: decided_at.map(Told),
        decided_by: decided_by.map(decider),
        reasons: reasons.iter().map(reason).collect(),
        signals: signals(action, reasons),
        hold: action.hold.map(Told),
        mandate_id: action.mandate.map(|it| Told(it.mandate)),
        mandate_version: action.mandate.map(|it| it.version),
        action_digest: action.digest.named(),
        // Beside the digest it would let the summary and the merchant be guessed.
        digest_salt: whole.then(|| salt_text(&action.salt)),
        provenance: origin(&action.provenance),
        receipt: receipt.map(|it| it.0),
        receipt_expires_at: receipt.map(|it| Told(it.1)),
        consumed_at: consumed.map(|it| Told(it.at)),
        consumed_amount: consumed.and_then(|it| it.amount),
        approval: view.approval.as_deref().map(|it| approval(it, view, url.unwrap_or_default(), shown)),
        evidence_record: Told(action.evidence),
        outcome: allowed.and_then(|it| it.outcome.as_ref()).map(outcome),
        incident: action.incident.as_ref().map(incident),
    })
}

fn payment(payment: &Payment, whole: bool) -> PaymentOut<'_> {
    let merchant = whole.then(|| Merchant { name: payment.name.as_str(), domain: payment.domain.as_str() });
    PaymentOut { amount: payment.amount, currency: payment.currency.as_str(), merchant }
}

fn data(data: &DataShare) -> DataOut<'_> {
    DataOut {
        recipient: &data.recipient,
        fields: data.fields.iter().map(|field| field.as_str()).collect(),
        purpose: data.purpose.as_ref().map(|purpose| purpose.as_str()),
    }
}

fn tool(tool: &Tool, whole: bool) -> ToolOut<'_> {
    ToolOut {
        name: tool.name.as_ref().map(|name| name.as_str()),
        server: tool.server.as_ref().map(|server| server.as_str()),
        input_digest: tool.input_digest.filter(|_| whole).map(|digest| digest.named()),
        input_bytes: tool.input_bytes,
    }
}

fn origin(origin: &Origin) -> OriginOut<'_> {
    OriginOut {
        declared: origin.declared.iter().map(|it| it.source.as_str()).collect(),
        observed: origin.observed.iter().map(|it| it.as_str()).collect(),
        effective: origin.effective.as_str(),
        verdict: origin.verdict.as_str(),
    }
}

fn incident(incident: &Incident) -> IncidentOut {
    IncidentOut {
        kind: "over_settlement",
        allowed_amount: incident.allowed,
        settled_amount: incident.settled,
        evidence_record: incident.evidence.to_string(),
    }
}

pub(super) fn decider(by: DecidedBy) -> Cow<'static, str> {
    match by {
        DecidedBy::Expiry => "expiry".into(),
        DecidedBy::Freeze => "freeze".into(),
        DecidedBy::Person(id) => id.to_string().into(),
        DecidedBy::Policy => "policy".into(),
    }
}

pub(super) fn reason(reason: &Reason) -> ReasonOut<'_> {
    ReasonOut {
        code: reason.code.as_str(),
        effect: reason.effect.as_str(),
        message: reason.message(),
        mandate_id: reason.mandate.map(|it| it.to_string()),
        field: reason.field.as_deref(),
        limit: reason.limit.map(bounded),
        used: reason.used.map(bounded),
        requested: reason.requested.map(bounded),
        window: reason.window.as_deref(),
        clears_at: reason.clears_at.map(|it| it.to_string()),
    }
}

/// The codes of the reasons and the signals without one, each once.
fn signals(action: &Action, reasons: &[Reason]) -> Vec<&'static str> {
    let mut out: Vec<&'static str> = Vec::new();
    for code in reasons.iter().map(|it| it.code).chain(action.signals.iter().copied()) {
        if !out.contains(&code.as_str()) {
            out.push(code.as_str());
        }
    }
    out
}

fn outcome(outcome: &Outcome) -> OutcomeOut {
    OutcomeOut {
        status: outcome.status.as_str(),
        amount: outcome.amount,
        settled_at: outcome.at.to_string(),
        late: outcome.late,
        released: outcome.released.as_deref().map(released),
    }
}

fn released(released: &Released) -> ReleasedOut {
    let by = released.by.map(|by| by.to_string());
    ReleasedOut { amount: released.amount, at: released.at.to_string(), by }
}

/// What a person was asked, as the approval itself reads.
fn approval<'a>(approval: &'a Approval, view: &View, url: &'a str, shown: Shown) -> ApprovalOut<'a> {
    let (stands, decided) = stands(approval, Some(view), view.now);
    let (at, by) = decided.unzip();
    ApprovalOut {
        id: approval.id.to_string(),
        url,
        state: stands.as_str(),
        expires_at: approval.expires_at.to_string(),
        needed: view.needed,
        approvals: approval.approvals.iter().map(consent).map(|it| it.shown(shown)).collect(),
        client_may_ask: view.client_may_ask,
        decided_by: by.map(decider),
        decided_at: at.map(Told),
        note: approval.note().map(|it| it.as_str()).filter(|_| shown == Shown::Whole),
    }
}

impl ConsentOut<'_> {
    /// What a person writes may name whom the money goes to.
    fn shown(mut self, shown: Shown) -> Self {
        if shown == Shown::Outline {
            self.note = None;
        }
        self
    }
}

/// One person's yes.
pub(super) fn consent(consent: &Consent) -> ConsentOut<'_> {
    ConsentOut {
        by: consent.by.to_string(),
        at: consent.at.to_string(),
        note: consent.note.as_ref().map(|note| note.as_str()),
        via: consent.via.as_str(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionAnswer<'a> {
    id: Told<ActionId>,
    decision: &'static str,
    status: &'static str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'a str>,
    agent_id: Told<AgentId>,
    principal_id: Told<PrincipalId>,
    created_at: Told<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payment: Option<PaymentOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<ToolOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<SessionOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Told<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<Cow<'static, str>>,
    reasons: Vec<ReasonOut<'a>>,
    signals: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold: Option<Told<HoldId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mandate_id: Option<Told<MandateId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mandate_version: Option<u32>,
    action_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest_salt: Option<String>,
    provenance: OriginOut<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_expires_at: Option<Told<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_at: Option<Told<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_amount: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalOut<'a>>,
    evidence_record: Told<EvidenceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<OutcomeOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incident: Option<IncidentOut>,
}

#[derive(Serialize)]
struct PaymentOut<'a> {
    amount: i64,
    currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<Merchant<'a>>,
}

#[derive(Serialize)]
struct DataOut<'a> {
    recipient: &'a str,
    fields: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_bytes: Option<i64>,
}

#[derive(Serialize)]
struct SessionOut<'a> {
    id: &'a str,
}

#[derive(Serialize)]
struct OriginOut<'a> {
    declared: Vec<&'a str>,
    observed: Vec<&'a str>,
    effective: &'static str,
    verdict: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasonOut<'a> {
    code: &'static str,
    effect: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mandate_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requested: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clears_at: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApprovalOut<'a> {
    id: String,
    url: &'a str,
    state: &'static str,
    expires_at: String,
    needed: u8,
    approvals: Vec<ConsentOut<'a>>,
    client_may_ask: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_at: Option<Told<Timestamp>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct ConsentOut<'a> {
    by: String,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    via: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutcomeOut {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<i64>,
    settled_at: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    released: Option<ReleasedOut>,
}

#[derive(Serialize)]
struct ReleasedOut {
    amount: i64,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct IncidentOut {
    #[serde(rename = "type")]
    kind: &'static str,
    allowed_amount: i64,
    settled_amount: i64,
    evidence_record: String,
}
