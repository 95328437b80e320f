//! What was asked, as far as a rule follows from it: a few hundred bytes of what may be a hundred thousand.

use std::sync::Arc;

use super::lists::{Tool, tool_of};
use crate::rules::gate::authorize::tool_is_sink;
use crate::rules::gate::evaluate::PayeeFacts;
use crate::state::gate::{Action, Activity, Approval, ApprovalState, Code, Effect, Origin, Payload, Reason, Request};
use crate::state::people::{Settings, Workspace};
use crate::store::Row as _;
use crate::turn::{Halt, Scope};
use crate::value::Timestamp;
use crate::value::domain::Domain;
use crate::value::id::{ActionId, AgentId, ApprovalId, MandateId};
use crate::value::json::Json;
use crate::value::period::Period;

/// A question, and what it was about.
#[derive(Clone, Debug)]
pub struct Asked {
    pub(super) approval: ApprovalId,
    pub(super) asked_at: Timestamp,
    pub(super) word: Word,
    pub(super) action: ActionId,
    /// When the gate said that a person has to be asked.
    pub(super) at: Timestamp,
    /// The mandate that was charged.
    pub(super) charged: Option<MandateId>,
    /// What was asked, as far as rules speak of it, without its details.
    pub(super) request: Request,
    /// Whether there are details.
    pub(super) detailed: bool,
    pub(super) origin: Origin,
    /// Whether the tool table calls its tool a sink.
    pub(super) tool_is_sink: bool,
    /// Whether a mandate of its own would have answered it: nothing else than mandates made it ask.
    pub(super) is_about_mandates: bool,
    /// Those of its reasons that tell of what had been used or paid before.
    told: Vec<Reason>,
}

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// Yes.
    Approved,
    /// No.
    Refused,
    /// Nothing, or no person did.
    Unsaid,
}

impl Asked {
    /// Reads what a question was about.
    pub(super) fn read(
        scope: &mut Scope<'_>,
        workspace: &Workspace,
        approval: &Approval,
        action: &Action,
    ) -> Result<Self, Halt> {
        let mut request = Request::again(action, None);
        // Where it came from is in its origin.
        request.provenance = Vec::new();
        let mut asks = action.reasons.iter().filter(|it| it.effect == Effect::Ask);
        let tells = |it: &&Reason| {
            matches!(
                it.code,
                Code::OverPeriodLimit | Code::OverCountLimit | Code::SplitPayments | Code::PossibleDuplicate
            )
        };
        Ok(Self {
            approval: approval.id,
            asked_at: approval.created_at,
            word: Word::of(approval),
            action: action.id,
            at: action.created_at(),
            charged: action.mandate.map(|it| it.mandate),
            detailed: action.payload && !(request.data.is_some() && request.kind.needs_data()),
            tool_is_sink: tool_is_sink(scope, workspace, &request)?,
            request,
            origin: action.provenance.clone(),
            is_about_mandates: asks.all(|it| is_of_mandates(it.code)),
            told: action.reasons.iter().filter(tells).cloned().collect(),
        })
    }

    /// This, asked about by nobody in particular.
    #[cfg(test)]
    pub(super) fn testing(request: Request) -> Self {
        use crate::value::Id as _;
        Self {
            approval: ApprovalId::from_bits(1),
            asked_at: Timestamp::default(),
            word: Word::Unsaid,
            action: ActionId::from_bits(1),
            at: Timestamp::default(),
            charged: None,
            request,
            detailed: false,
            origin: Origin::default(),
            tool_is_sink: false,
            is_about_mandates: true,
            told: Vec::new(),
        }
    }

    pub(super) fn is_approved(&self) -> bool {
        self.word == Word::Approved
    }

    pub(super) fn is_refused(&self) -> bool {
        self.word == Word::Refused
    }

    pub(super) fn amount(&self) -> i64 {
        self.request.payment.as_ref().map_or(0, |it| it.amount)
    }

    pub(super) fn domain(&self) -> Option<&Domain> {
        self.request.payment.as_ref().map(|it| &it.domain)
    }

    pub(super) fn tool(&self) -> Option<Tool<'_>> {
        tool_of(&self.request)
    }

    /// The fields that it shares, but for those of its details.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.request.data.iter().flat_map(|it| &it.share.fields).map(|it| it.as_str())
    }

    /// What filled its mandates when it was asked, as far as its reasons tell: a limit that was full then made it ask, though its
    /// period has ended since.
    pub(super) fn activity(&self, agent: AgentId, settings: &Settings) -> Activity {
        let mut activity = Activity::none(agent);
        for reason in &self.told {
            let period = reason.window.as_deref().and_then(|it| Period::parse(it).ok());
            let (Some(mandate), Some(period), Some(used)) = (reason.mandate, period, reason.used) else { continue };
            let mut tally = activity.tally(mandate, period, self.at, settings);
            if reason.code == Code::OverPeriodLimit {
                tally.reserved = used;
            } else if reason.code == Code::OverCountLimit {
                tally.count = u32::try_from(used).unwrap_or(u32::MAX);
            }
            activity.keep(tally, self.at);
        }
        activity
    }

    /// What had been paid to the payee when it was asked, as far as its reasons tell.
    pub(super) fn payee(&self) -> PayeeFacts {
        let told = |code| self.told.iter().find(|it| it.code == code);
        let together = told(Code::SplitPayments).and_then(|it| it.used).unwrap_or(0);
        let sum = together.saturating_sub(self.amount()).max(0);
        PayeeFacts { sum, repeated: told(Code::PossibleDuplicate).is_some() }
    }
}

impl Word {
    fn of(approval: &Approval) -> Self {
        match approval.state {
            ApprovalState::Approved { .. } if !approval.approvals.is_empty() => Self::Approved,
            ApprovalState::Denied { by: Some(_), .. } => Self::Refused,
            ApprovalState::Approved { .. }
            | ApprovalState::Denied { by: None, .. }
            | ApprovalState::Waiting
            | ApprovalState::Expired { .. } => Self::Unsaid,
        }
    }
}

const fn is_of_mandates(code: Code) -> bool {
    code.is_outside()
        || matches!(code, Code::AboveAskThreshold | Code::SplitPayments)
        || matches!(code, Code::OverLimit | Code::OverPeriodLimit | Code::OverCountLimit)
}

/// The names of the fields in each of these actions' details.
///
/// # Errors
/// [`Halt::Load`] alone.
pub(super) fn detail_names(
    scope: &mut Scope<'_>,
    actions: &[ActionId],
    mut take: impl FnMut(ActionId, &mut dyn Iterator<Item = &str>),
) -> Result<(), Halt> {
    scope.want(&actions.iter().map(|it| Payload::key(*it)).collect::<Vec<_>>())?;
    for id in actions {
        let payload: Option<Arc<Payload>> = scope.get::<Payload>(*id)?;
        let details = payload.and_then(|it| Json::parse(it.details.as_ref()?.as_bytes()).ok());
        let members = details.as_ref().and_then(Json::as_object).unwrap_or_default();
        take(*id, &mut members.iter().map(|(name, _)| name.as_str()));
    }
    Ok(())
}
