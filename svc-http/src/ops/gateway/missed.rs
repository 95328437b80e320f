//! A place that a call has come to and that gave no answer.

use svc_core::refusal::AttemptedModel;
use svc_core::state::gateway::Attempt;

use crate::upstream::{Failed, Reason};

/// A place that gave no answer.
pub(super) struct Missed {
    /// What is kept of it.
    pub(super) attempt: Attempt,
    /// When its provider is to be asked again, in seconds, where it said so.
    pub(super) retry_after_s: Option<u64>,
    /// Whether it was to be asked at all: one without a form for the request, without room in a budget, or whose circuit is open
    /// has not failed.
    pub(super) was_tried: bool,
    /// Whether this server had no place for a call to it, or could not look it up: it has not failed either.
    pub(super) is_busy: bool,
    /// Whether it goes on giving none until somebody changes it: it may not be called, lets this server in no longer, or has no form for
    /// the request.
    pub(super) stays: bool,
}

impl Missed {
    /// One that the call came to, and why it gave none; `fits` says whether the request has a form there.
    pub(super) fn of(attempt: Attempt, failed: &Failed, fits: bool) -> Self {
        let is_busy = failed.is_for_now();
        let was_tried = fits && !is_busy && !matches!(failed.reason, Reason::Circuit | Reason::Changed);
        let is_barred = matches!(failed.reason, Reason::Address | Reason::Refused | Reason::Sealed);
        let stays = is_barred || failed.status.is_some_and(is_denial);
        Self { attempt, retry_after_s: failed.retry_after_s, was_tried, is_busy, stays }
    }

    /// One that the call may not go to, or has no budget for.
    pub(super) const fn not_asked(attempt: Attempt) -> Self {
        Self { attempt, retry_after_s: None, was_tried: false, is_busy: false, stays: false }
    }

    /// Whether its provider lets this server in no longer, or does not know the model.
    pub(super) fn is_denied(&self) -> bool {
        self.attempt.status.is_some_and(is_denial)
    }
}

/// Whether a provider says by this status that it lets this server in no longer, or has no such model or address: it says so
/// until somebody changes that.
const fn is_denial(status: u16) -> bool {
    matches!(status, 301 | 308 | 401..=404)
}

/// What a client is told of it.
pub(super) fn told(attempt: &Attempt) -> AttemptedModel {
    AttemptedModel {
        model: attempt.model.as_str().into(),
        provider: attempt.provider.as_str().into(),
        status: attempt.status,
        error: attempt.error.clone().unwrap_or_default(),
    }
}
