//! Refusals of model calls, and the members that only they carry (CONTRACT part 7).

use std::borrow::Cow;
use std::fmt;

use super::{FieldError, Kind, Refusal, table};

/// What a refusal of a model call tells beside its message; each member where it is relevant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallDetail {
    /// `agent` or `all`: what is stopped.
    pub stopped: Option<&'static str>,
    /// The models that were tried, in order.
    pub attempted: Option<Vec<AttemptedModel>>,
    /// The provider's own code of what it refuses, or the one by which clients know a prompt that is too long.
    pub code: Option<Box<str>>,
    /// The field of the request that the provider blames.
    pub param: Option<Box<str>>,
    /// The constraint whose removal would admit the most.
    pub binding: Option<Box<str>>,
    /// Single changes, each of which admits a model.
    pub relaxations: Option<Vec<RelaxationText>>,
    /// The budget that refuses.
    pub budget: Option<BudgetDetail>,
    /// Whether the request leaves its conversation to the provider: clients of the messages API that are told so in its words
    /// send it whole from then on.
    pub is_threaded: bool,
}

/// A model that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptedModel {
    /// The model.
    pub model: Box<str>,
    /// Its provider.
    pub provider: Box<str>,
    /// The status of its answer, where there was one.
    pub status: Option<u16>,
    /// What went wrong.
    pub error: Box<str>,
}

/// A single change that would admit models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaxationText {
    /// The constraint that changes.
    pub constraint: Box<str>,
    /// The change, for people.
    pub change: Box<str>,
    /// Models that it admits, as `provider/model`.
    pub admits: Vec<Box<str>>,
}

/// Why a call finds no room under a budget's ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// All of it is spent.
    Spent,
    /// Calls that run hold what it would fit in.
    Held,
    /// It would not fit if none ran.
    TooSmall,
}

/// The budget that refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetDetail {
    /// Its id.
    pub id: Box<str>,
    /// Its scope as `kind:id`: the header `x-svc-budget-scope`.
    pub scope: Box<str>,
    /// Who can approve more, and where it stands; of an approval that is waited for.
    pub owner: Option<BudgetOwner>,
}

/// Who can approve more of a budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetOwner {
    /// Their principal's id.
    pub principal: Box<str>,
    /// Their name.
    pub name: Option<Box<str>>,
    /// Their address.
    pub email: Box<str>,
    /// What is spent of this period, in micros: what is reserved is not.
    pub spent: u64,
    /// What calls that run hold of it, in micros.
    pub reserved: u64,
    /// What may be spent in it, in micros.
    pub allocation: u64,
    /// Whether the question of this period was answered with no: nobody is asked again in it.
    pub has_declined: bool,
}

/// What the messages API begins its message with where a prompt is too long for the model; its clients look for it.
const TOO_LONG: &str = "prompt is too long";
/// The code that clients of the chat API look for.
const CODE_TOO_LONG: &str = "context_length_exceeded";

/// The constructors.
impl Refusal {
    /// 403: the agent of this key is stopped, or was removed.
    pub fn agent_stopped(agent: impl fmt::Display, hold: Option<impl fmt::Display>) -> Self {
        Self::plain(Kind::AgentStopped)
            .about_call(|it| it.stopped = Some("agent"))
            .with(|it| it.agent_id = Some(agent.to_string().into()))
            .held(hold)
    }

    /// 403: a hold stops every agent, and the key is not bound to one.
    pub fn all_stopped(hold: Option<impl fmt::Display>) -> Self {
        let message = "every agent of this workspace is stopped";
        Self { message: Cow::Borrowed(message), ..Self::plain(Kind::AgentStopped) }
            .about_call(|it| it.stopped = Some("all"))
            .held(hold)
    }

    fn held(self, hold: Option<impl fmt::Display>) -> Self {
        match hold {
            Some(hold) => self.with(|it| {
                it.hold = Some(hold.to_string().into());
                it.fix = Some(table::FIX_HELD);
            }),
            None => self,
        }
    }

    /// 400: the call names no class and nothing else does.
    #[must_use]
    pub fn unclassified_request() -> Self {
        Self::plain(Kind::UnclassifiedRequest)
    }

    /// 400: no class has this id.
    #[must_use]
    pub fn unknown_task_class(class: &str, nearest: Option<&str>) -> Self {
        let message = format!("there is no task class `{class}`");
        Self { message: message.into(), ..Self::plain(Kind::UnknownTaskClass) }.maybe_nearest(nearest)
    }

    /// 400: what goes out holds data that must not; `findings` counts it by kind.
    pub fn sensitive_data_blocked(findings: impl fmt::Display) -> Self {
        let message = format!("the request holds {findings}");
        Self { message: message.into(), ..Self::plain(Kind::SensitiveDataBlocked) }
    }

    /// 402: the budget is at its allocation, by what is spent or by what calls that run hold; its owner can approve more, with the
    /// approval where one waits: a dry run asks nobody.
    pub fn budget_approval(
        budget: BudgetDetail,
        lack: Lack,
        workspace: impl fmt::Display,
        approval: Option<impl fmt::Display>,
    ) -> Self {
        let kind = if lack == Lack::Held { Kind::ApprovalHeld } else { Kind::ApprovalRequired };
        let refusal = Self::plain(kind).about_call(|it| it.budget = Some(budget));
        match approval {
            Some(approval) => refusal.about_approval(workspace, approval),
            None => refusal,
        }
    }

    /// 429: the call would pass the budget's ceiling, for `lack`; asked again in `retry_after_s`, where its period ever ends.
    #[must_use]
    pub fn budget_exhausted(budget: BudgetDetail, lack: Lack, retry_after_s: Option<u32>) -> Self {
        let kind = match lack {
            Lack::Spent => Kind::BudgetExhausted,
            Lack::Held => Kind::BudgetHeld,
            Lack::TooSmall => Kind::BudgetTooSmall,
        };
        Self::plain(kind).about_call(|it| it.budget = Some(budget)).with(|it| it.retry_after_s = retry_after_s)
    }

    /// 402: the plan's people of this month are used, and the days of grace have ended.
    #[must_use]
    pub fn seat_limit_reached() -> Self {
        Self::plain(Kind::SeatLimitReached)
    }

    /// 429: the plan's model requests of this month are used.
    #[must_use]
    pub fn plan_requests(retry_after_s: u32) -> Self {
        Self::plain(Kind::PlanRequests).with(|it| it.retry_after_s = Some(retry_after_s))
    }

    /// 404: no task has this id.
    #[must_use]
    pub fn unknown_task() -> Self {
        Self::plain(Kind::UnknownTask)
    }

    /// 409: no model satisfies the policy.
    #[must_use]
    pub fn policy_conflict(binding: Option<&str>, relaxations: Vec<RelaxationText>) -> Self {
        let message = binding.map_or(Cow::Borrowed(Kind::PolicyConflict.row().message), |it| {
            format!("no model satisfies the policy; what stands in the way is `{it}`").into()
        });
        let fix = relaxations.is_empty().then_some(table::FIX_TOGETHER);
        let told = |it: &mut CallDetail| {
            it.binding = binding.map(Into::into);
            it.relaxations = Some(relaxations);
        };
        Self { message, ..Self::plain(Kind::PolicyConflict) }.about_call(told).with(|it| it.fix = fix)
    }

    /// 502: every model that could have answered failed.
    #[must_use]
    pub fn upstream_failure(attempted: Vec<AttemptedModel>) -> Self {
        Self::plain(Kind::UpstreamFailure).about_call(|it| it.attempted = Some(attempted))
    }

    /// 502: every provider that was asked refused its key, or does not know the model.
    #[must_use]
    pub fn upstreams_denied(attempted: Vec<AttemptedModel>) -> Self {
        Self::plain(Kind::UpstreamDenied).about_call(|it| it.attempted = Some(attempted))
    }

    /// 429: every model that could have answered was asked too often.
    #[must_use]
    pub fn upstreams_limited(attempted: Vec<AttemptedModel>, retry_after_s: u32) -> Self {
        let message = "every model that could answer is asked too often";
        Self { message: Cow::Borrowed(message), ..Self::rate_limited(retry_after_s) }
            .about_call(|it| it.attempted = Some(attempted))
    }

    /// 400, 413 or 422, as the provider answered: the request is at fault; `said` is the provider's own message.
    #[must_use]
    pub fn upstream_rejected(status: u16, said: &str, attempted: Vec<AttemptedModel>) -> Self {
        let kind = match status {
            413 => Kind::UpstreamTooLarge,
            422 => Kind::UpstreamUnprocessable,
            _ => Kind::UpstreamRejected,
        };
        let message = match said {
            "" => Cow::Borrowed(kind.row().message),
            said => format!("{}: {said}", kind.row().message).into(),
        };
        Self { message, ..Self::plain(kind) }.about_call(|it| it.attempted = Some(attempted))
    }

    /// The same with the provider's own code of it, and with the field of the request that it blames.
    #[must_use]
    pub fn blaming(self, code: Option<&str>, param: Option<&str>) -> Self {
        if code.or(param).is_none() {
            return self;
        }
        self.about_call(|it| (it.code, it.param) = (code.map(Into::into), param.map(Into::into)))
    }

    /// The same in the words by which clients of either API know that a conversation has grown too long, and sum it up; `why` says of
    /// what it is too long.
    #[must_use]
    pub fn told_too_long(self, why: &str) -> Self {
        let message = match why {
            "" => Cow::Borrowed(TOO_LONG),
            why if why.to_ascii_lowercase().starts_with(TOO_LONG) => why.to_owned().into(),
            why => format!("{TOO_LONG}: {why}").into(),
        };
        Self { message, ..self }
            .about_call(|it| it.code = Some(CODE_TOO_LONG.into()))
            .with(|it| it.fix = Some(table::FIX_TOO_LONG))
    }

    /// 400: the request leaves its conversation to the provider; every fault of it, that among them.
    #[must_use]
    pub fn thread_unsupported(errors: Vec<FieldError>) -> Self {
        Self::invalid_request(errors).about_call(|it| it.is_threaded = true)
    }

    /// 400: no model of this workspace has the name that was asked for.
    #[must_use]
    pub fn unknown_model(name: &str, nearest: Option<&str>) -> Self {
        let fault = FieldError::new("model", format!("names no model of this workspace: `{name}`"));
        Self::invalid_request(vec![fault]).maybe_nearest(nearest)
    }

    fn about_call(self, set: impl FnOnce(&mut CallDetail)) -> Self {
        self.with(|it| set(it.call.get_or_insert_default()))
    }
}

/// What the shells read.
impl Refusal {
    /// What only refusals of model calls carry.
    #[must_use]
    pub fn call(&self) -> Option<&CallDetail> {
        self.detail.as_deref()?.call.as_deref()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A prompt that is too long is told in the words that clients of either API look for, whoever says so and in whatever status.
    #[test]
    fn a_prompt_that_is_too_long_is_told_in_known_words() {
        let told = |said: &str| Refusal::upstream_rejected(400, said, Vec::new()).told_too_long(said);
        for (said, message) in [
            ("Prompt is too long: 9 tokens > 8 maximum", "Prompt is too long: 9 tokens > 8 maximum"),
            ("maximum context length is 8", "prompt is too long: maximum context length is 8"),
            ("", "prompt is too long"),
        ] {
            let refusal = told(said);
            assert_eq!((refusal.type_(), refusal.message()), ("upstream_rejected", message));
            assert_eq!(refusal.call().unwrap().code.as_deref(), Some("context_length_exceeded"));
            assert!(refusal.fix().unwrap().contains("shorter prompt"));
        }
    }
}
