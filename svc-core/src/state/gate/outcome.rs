//! What became of an allowed action: what the agent said, what was posted, and what a person gave back.

use serde::{Deserialize, Serialize};

use super::action::{Action, Allowed, State, Status};
use crate::refusal::Refusal;
use crate::value::Timestamp;
use crate::value::id::PrincipalId;
use crate::value::words::words;

/// What the agent said became of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Done or not.
    pub status: OutcomeStatus,
    /// The final amount, as the agent sent it. What the issuer says instead is posted, and this stays: it is what a reversal of
    /// the charge goes back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<i64>,
    /// What it came to: the amount posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<i64>,
    /// When it was told.
    pub at: Timestamp,
    /// Whether it had lapsed before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// Whether it was revoked before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revoked: bool,
    /// What a person gave back of what the receipt's use kept posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Box<Released>>,
}

/// What the use of a receipt kept posted although the agent said that less was paid, given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// When.
    pub at: Timestamp,
    /// By which person; absent where the program that runs the gate did, or the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<PrincipalId>,
    /// How much, in minor units, above zero.
    pub amount: i64,
}

/// Done or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeStatus {
    /// Called off.
    Cancelled,
    /// Done.
    Completed,
    /// Tried in vain.
    Failed,
}

words! { OutcomeStatus;
    Completed "completed";
    Failed "failed";
    Cancelled "cancelled";
}

impl Outcome {
    /// What the agent said it came to, where `allowed` is the allowed amount: what is posted where no receipt was used.
    #[must_use]
    pub fn told(&self, allowed: i64) -> i64 {
        self.amount.unwrap_or(match self.status {
            OutcomeStatus::Completed => allowed,
            OutcomeStatus::Cancelled | OutcomeStatus::Failed => 0,
        })
    }
}

impl Action {
    /// The same action with `outcome`, posted and recorded. Only what was allowed and is not settled can be. `was` is how it stands: a
    /// stop ends a wait before its row says so.
    ///
    /// # Errors
    /// `not_allowed` where it never was allowed, `already_settled` where it is settled.
    pub fn settle(mut self, outcome: Outcome, was: Status) -> Result<Self, Refusal> {
        match &mut self.state {
            State::Allowed(Allowed { outcome: Some(_), .. }) => Err(Refusal::already_settled()),
            State::Allowed(allowed) => {
                allowed.outcome = Some(outcome);
                Ok(self)
            }
            // That time has ended a wait is told once it is written.
            State::Pending { .. } if was != Status::Denied => Err(Refusal::not_allowed("it waits for a person")),
            State::Denied { .. } | State::Pending { .. } => Err(Refusal::not_allowed("it was denied")),
            State::Expired { .. } => Err(Refusal::not_allowed("its approval expired")),
        }
    }

    /// The same settled action, of which the issuer says that it came to `amount`: that is posted in place of what was, and of
    /// what was given back before nothing counts.
    #[must_use]
    pub fn overruled(mut self, amount: i64) -> Self {
        if let State::Allowed(Allowed { outcome: Some(outcome), .. }) = &mut self.state {
            outcome.posted = Some(amount);
            outcome.released = None;
        }
        self
    }

    /// The same action, whose charge the issuer has taken back before the agent or the issuer has settled it: what is told of it
    /// from here on counts as if its receipt had not been used, and no other use of it is good. `None` where it is settled or
    /// lapsed, so that there is something to [release](Self::release).
    ///
    /// # Errors
    /// `not_allowed` where its receipt was not used, or this was said already.
    pub fn reverse(mut self, at: Timestamp) -> Result<Option<Self>, Refusal> {
        let untimed = self.reservation.is_none();
        let State::Allowed(allowed) = &mut self.state else {
            return Err(Refusal::not_allowed("it was never allowed"));
        };
        let lapsed = allowed.lapsed.is_some() || (untimed && at >= allowed.lapse_at());
        if allowed.outcome.is_some() || lapsed {
            return Ok(None);
        }
        let used = allowed.consumed.as_mut().filter(|it| !it.reversed);
        let used = used.ok_or_else(|| Refusal::not_allowed("its receipt was not used, so nothing is kept"))?;
        used.reversed = true;
        Ok(Some(self))
    }

    /// What a person could release of it at this instant, in minor units; 0 where nothing is kept.
    #[must_use]
    pub fn kept(&self, at: Timestamp) -> i64 {
        if self.allowed().is_none_or(|it| it.consumed.is_none()) {
            return 0;
        }
        self.clone().release(at, None).map_or(0, |(_, amount)| amount)
    }

    /// What a person has released of it: of what the agent settled, or of what lapsed.
    #[must_use]
    pub fn released(&self) -> Option<&Released> {
        let allowed = self.allowed()?;
        let of_outcome = allowed.outcome.as_ref().and_then(|it| it.released.as_deref());
        of_outcome.or(allowed.released.as_deref())
    }

    /// The same action without what the use of its receipt kept posted beyond what the agent said, and how much that was. Of
    /// one that lapsed the agent has said nothing.
    ///
    /// # Errors
    /// `not_allowed` where nothing is kept: it was never allowed, its receipt was not used, it is neither settled nor lapsed,
    /// or what was said is not less than what was charged.
    pub fn release(mut self, at: Timestamp, by: Option<PrincipalId>) -> Result<(Self, i64), Refusal> {
        let nothing = |why| Err(Refusal::not_allowed(why));
        let allowed_amount = self.payment.as_ref().map_or(0, |it| it.amount);
        let untimed = self.reservation.is_none();
        let State::Allowed(allowed) = &mut self.state else { return nothing("it was never allowed") };
        if allowed.consumed.is_none() {
            return nothing("its receipt was not used, so nothing is kept");
        }
        let already = "what was kept is released already";
        let after_lapse = allowed.released.is_some();
        let lapsed = allowed.lapsed.is_some() || (untimed && at >= allowed.lapse_at());
        let Some(outcome) = &mut allowed.outcome else {
            return match (lapsed, allowed_amount) {
                _ if after_lapse => nothing(already),
                (false, _) => nothing("the agent has not settled it"),
                (true, 0) => nothing("nothing was paid by it"),
                (true, amount) => {
                    allowed.released = Some(Box::new(Released { at, by, amount }));
                    Ok((self, amount))
                }
            };
        };
        if outcome.released.is_some() {
            return nothing(already);
        }
        let told = outcome.told(allowed_amount);
        // What was given back after the lapse is no answer to what the issuer says since: that is kept, too.
        let kept = outcome.posted.unwrap_or(told).saturating_sub(told);
        if kept <= 0 {
            return nothing(if after_lapse { already } else { "what is posted is what the agent settled" });
        }
        outcome.posted = Some(told);
        outcome.released = Some(Box::new(Released { at, by, amount: kept }));
        Ok((self, kept))
    }
}
