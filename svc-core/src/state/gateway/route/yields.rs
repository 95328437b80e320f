//! What came of tasks: how often a model's work at a class was accepted, beside the class's mean.

use std::collections::BTreeMap;

use crate::value::text::ClassId;

/// Below so many reports nothing is concluded of a model.
const REPORTS_MIN: u64 = 20;
/// No difference.
pub(super) const EVEN: u64 = 1_000;
/// The bounds of a multiplier, in thousandths.
const BOUNDS: (u64, u64) = (500, 2_000);

/// Tasks of 30 days by class and model: how many were reported, how many of them as accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Yields {
    classes: BTreeMap<ClassId, OfClass>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfClass {
    all: Tally,
    models: BTreeMap<Box<str>, BTreeMap<Box<str>, Tally>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    accepted: u64,
    reported: u64,
}

impl Tally {
    const fn add(&mut self, accepted: u64, reported: u64) {
        self.accepted = self.accepted.saturating_add(accepted);
        self.reported = self.reported.saturating_add(reported);
    }
}

impl Yields {
    /// Adds tasks of a class that `provider/model` served: `accepted` of `reported`.
    pub fn add(&mut self, class: &ClassId, provider: &str, model: &str, accepted: u64, reported: u64) {
        let class = self.classes.entry(class.clone()).or_default();
        class.all.add(accepted, reported);
        let models = class.models.entry(provider.into()).or_default();
        models.entry(model.into()).or_default().add(accepted, reported);
    }

    /// The yield of a model at a class relative to the class's mean, in thousandths, rounded: 500 to 2,000, and
    /// 1,000 below 20 reports or where no task of the class was accepted.
    #[must_use]
    pub fn multiplier(&self, class: &ClassId, provider: &str, model: &str) -> u64 {
        let relative = || {
            let class = self.classes.get(class)?;
            let own = class.models.get(provider)?.get(model).filter(|it| it.reported >= REPORTS_MIN)?;
            let over = u128::from(own.accepted) * u128::from(class.all.reported);
            let under = u128::from(own.reported) * u128::from(class.all.accepted);
            let thousandths = over.saturating_mul(u128::from(EVEN)).saturating_add(under / 2).checked_div(under)?;
            Some(u64::try_from(thousandths).unwrap_or(u64::MAX).clamp(BOUNDS.0, BOUNDS.1))
        };
        relative().unwrap_or(EVEN)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// The multiplier is the model's rate over its class's, bounded, and even where too little is known.
    #[test]
    fn a_multiplier_is_relative_and_bounded() {
        let class = ClassId::parse("support.reply").unwrap();
        let mut yields = Yields::default();
        assert_eq!(yields.multiplier(&class, "one", "a"), 1_000);
        yields.add(&class, "one", "a", 19, 19);
        assert_eq!(yields.multiplier(&class, "one", "a"), 1_000, "19 reports say nothing");
        yields.add(&class, "one", "a", 0, 1);
        yields.add(&class, "two", "a", 5, 20);
        // 19 of 20 beside 24 of 40; 5 of 20 beside the same.
        assert_eq!(yields.multiplier(&class, "one", "a"), 1_583);
        assert_eq!(yields.multiplier(&class, "two", "a"), 500);
        let odd = ClassId::parse("odd").unwrap();
        yields.add(&odd, "one", "a", 20, 20);
        yields.add(&odd, "two", "a", 4, 20);
        // 1 beside 24 of 40 is 1.6666…
        assert_eq!(yields.multiplier(&odd, "one", "a"), 1_667, "rounded, not cut");
        yields.add(&class, "two", "a", 0, 1_000);
        assert_eq!(yields.multiplier(&class, "one", "a"), 2_000);
        assert_eq!(yields.multiplier(&ClassId::parse("other").unwrap(), "one", "a"), 1_000);
    }

    /// A class none of whose tasks was accepted tells no models apart.
    #[test]
    fn nothing_accepted_is_even() {
        let class = ClassId::parse("c").unwrap();
        let mut yields = Yields::default();
        yields.add(&class, "one", "a", 0, 50);
        assert_eq!(yields.multiplier(&class, "one", "a"), 1_000);
        yields.add(&class, "one", "b", u64::MAX, u64::MAX);
        yields.add(&class, "one", "b", u64::MAX, u64::MAX);
        assert!((500..=2_000).contains(&yields.multiplier(&class, "one", "b")));
    }
}
