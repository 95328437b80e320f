//! In which order the models come that satisfy everything.
//!
//! A score is a part of a million for what the objective favours, times the model's yield. The parts:
//!
//! - *cost*: (least worst case + 1) ÷ (its worst case + 1);
//! - *quality*: quality ÷ 100;
//! - *latency*: (least wait + 1) ÷ (its wait + 1), for the first token of a stream or for a whole answer, as is asked; a model
//!   that is not measured has the mean of those that are, and where none is, all have all of it;
//! - *sovereign*: half for a law that is known; half where nothing is kept, else a tenth less and another tenth for every
//!   100 days that it is kept, nothing where that is not known or above 400;
//! - *preference*: the place in the lists of class and profile, in even steps from all to nothing;
//! - *balanced*: 35 % quality, 30 % cost, 20 % preference, 15 % latency.
//!
//! Equal scores go by preference, then by the balanced part, then by name; where latency is favoured those first that are not
//! measured and were not called of late, or nobody would learn that one is faster: of a model that refuses every call nobody ever does.
//! Models with an open circuit come after all others, whatever their score.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{Candidate, Circuit};
use crate::state::gateway::catalogue::Retention;
use crate::state::gateway::routing::Objective;

/// The whole of a part.
const WHOLE: u64 = 1_000_000;

/// Scores the models, and puts the best first.
pub(super) fn rank(models: &mut Vec<Candidate<'_>>, objective: Objective) {
    let field = Field::of(models);
    for it in models.iter_mut() {
        let part = match objective {
            Objective::Balanced => field.balanced(it),
            Objective::Cost => field.cost(it),
            Objective::Quality => quality(it),
            Objective::Latency => field.latency(it),
            Objective::Sovereign => sovereign(it),
        };
        it.score = part * it.multiplier / 1_000;
    }
    models.sort_by_cached_key(|it| {
        let name = (&it.upstream.name, &it.model.name);
        let is_news = objective == Objective::Latency && it.is_untried;
        (it.circuit == Circuit::Open, Reverse(it.score), !is_news, it.preference, Reverse(field.balanced(it)), name)
    });
}

/// What each is measured against.
struct Field {
    cheapest: u64,
    fastest: u64,
    mean_ms: Option<u64>,
    places: BTreeMap<usize, u64>,
}

impl Field {
    fn of(models: &[Candidate<'_>]) -> Self {
        let known: Vec<u64> = models.iter().filter_map(|it| it.wait_ms).collect();
        let sum: u128 = known.iter().copied().map(u128::from).sum();
        let count = u128::try_from(known.len()).unwrap_or(u128::MAX);
        let mean_ms = sum.checked_div(count).map(|it| u64::try_from(it).unwrap_or(u64::MAX));
        let preferences: BTreeSet<usize> = models.iter().map(|it| it.preference).collect();
        Self {
            cheapest: models.iter().map(micros).min().unwrap_or_default(),
            fastest: known.into_iter().min().unwrap_or_default(),
            mean_ms,
            places: preferences.into_iter().zip(0..).collect(),
        }
    }

    fn cost(&self, it: &Candidate<'_>) -> u64 {
        ratio(self.cheapest, micros(it))
    }

    fn latency(&self, it: &Candidate<'_>) -> u64 {
        it.wait_ms.or(self.mean_ms).map_or(WHOLE, |ms| ratio(self.fastest, ms))
    }

    fn preference(&self, it: &Candidate<'_>) -> u64 {
        let steps = u64::try_from(self.places.len()).unwrap_or(u64::MAX).saturating_sub(1).max(1);
        let place = self.places.get(&it.preference).copied().unwrap_or(steps);
        steps.saturating_sub(place) * WHOLE / steps
    }

    fn balanced(&self, it: &Candidate<'_>) -> u64 {
        (quality(it) * 35 + self.cost(it) * 30 + self.preference(it) * 20 + self.latency(it) * 15) / 100
    }
}

fn quality(it: &Candidate<'_>) -> u64 {
    u64::from(it.quality.min(100)) * (WHOLE / 100)
}

fn sovereign(it: &Candidate<'_>) -> u64 {
    let kept = match it.model.retention {
        Retention::None => WHOLE / 2,
        Retention::Days(Some(days)) => (400_u64).saturating_sub(days.into()) * 1_000,
        Retention::Days(None) => 0,
    };
    let law = if &*it.model.jurisdiction == UNKNOWN_LAW { 0 } else { WHOLE / 2 };
    kept + law
}

/// The word for a law that is not known.
const UNKNOWN_LAW: &str = "unknown";

fn micros(it: &Candidate<'_>) -> u64 {
    it.cost.map_or(u64::MAX, |it| it.get())
}

/// `least` over `own`, each one more so that nothing is divided by nothing; `least` is the lesser.
fn ratio(least: u64, own: u64) -> u64 {
    let part = (u128::from(least) + 1) * u128::from(WHOLE) / (u128::from(own) + 1);
    u64::try_from(part).unwrap_or(WHOLE).min(WHOLE)
}
