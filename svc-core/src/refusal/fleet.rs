//! Refusals of what is done to many agents at once: selections, their confirmation, drills (CONTRACT part 9).

use super::{Counts, FieldError, Kind, Refusal};

impl Refusal {
    /// 400: a selector that is none, with every fault.
    #[must_use]
    pub fn invalid_selector(errors: Vec<FieldError>) -> Self {
        Self::faults(Kind::InvalidSelector, errors)
    }

    /// 400: a selector that no agent meets.
    #[must_use]
    pub fn nothing_selected() -> Self {
        Self::plain(Kind::NothingSelected)
    }

    /// 400: something that people are told the reason of came without one.
    #[must_use]
    pub fn reason_required() -> Self {
        Self::plain(Kind::ReasonRequired)
    }

    /// 409: nobody said how many agents are meant; there are `count`.
    #[must_use]
    pub fn confirm_count_required(count: u32) -> Self {
        Self::plain(Kind::ConfirmCountRequired).with(|it| it.counts = Some(Counts { old: None, new: count.into() }))
    }

    /// 409: `sent` agents were meant, and there are `count`, or as many others.
    #[must_use]
    pub fn selection_changed(sent: i64, count: u32) -> Self {
        Self::plain(Kind::SelectionChanged).with(|it| it.counts = Some(Counts { old: Some(sent), new: count.into() }))
    }

    /// 429: this token started a drill within the last hour; another may be in so many seconds.
    #[must_use]
    pub fn drill_cooldown(retry_after_s: u32) -> Self {
        Self::plain(Kind::DrillCooldown).with(|it| it.retry_after_s = Some(retry_after_s))
    }

    /// 409: what waits is not what was looked at; it is a question about `count` things. Whoever decides sends no count.
    #[must_use]
    pub fn digest_changed(count: u32) -> Self {
        Self::plain(Kind::DigestChanged).with(|it| it.counts = Some(Counts { old: None, new: count.into() }))
    }
}
