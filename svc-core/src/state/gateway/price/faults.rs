//! What makes prices none: every fault with its dotted path.

use super::{PriceTier, Prices};
use crate::refusal::FieldError;
use crate::value::SAFE_MAX;

/// Tiers by length, tiers of service, tools and places: more of one kind no provider has.
const LIST_MAX: usize = 64;
/// Characters of the name of a tool, of a tier of service or of a place.
const NAME_MAX: usize = 64;

impl Prices {
    /// Everything that makes these no prices, with paths as `tiers.1.aboveInputTokens`.
    #[must_use]
    pub fn faults(&self) -> Vec<FieldError> {
        let mut faults = Vec::new();
        names("tools", self.tools.keys(), &mut faults);
        tiers(&self.tiers, "tiers", &mut faults);
        names("inferenceGeos", self.inference_geos.keys(), &mut faults);
        names("serviceTiers", self.service_tiers.keys(), &mut faults);
        for (name, service) in &self.service_tiers {
            tiers(&service.tiers, &format!("serviceTiers.{name}.tiers"), &mut faults);
        }
        faults
    }
}

fn tiers(tiers: &[PriceTier], path: &str, faults: &mut Vec<FieldError>) {
    if tiers.len() > LIST_MAX {
        faults.push(FieldError::new(path, format!("must have at most {LIST_MAX} entries")));
    }
    let mut before = None;
    for (place, tier) in tiers.iter().enumerate().take(LIST_MAX) {
        let above = tier.above_input_tokens;
        let field = format!("{path}.{place}.aboveInputTokens");
        if above == 0 || i64::try_from(above).map_or(true, |it| it > SAFE_MAX) {
            faults.push(FieldError::new(field, "must be a whole number above zero"));
        } else if before.is_some_and(|it| above <= it) {
            faults.push(FieldError::new(field, "must be above the tier before it"));
        }
        before = Some(above);
    }
}

fn names<'a>(path: &str, names: impl ExactSizeIterator<Item = &'a Box<str>>, faults: &mut Vec<FieldError>) {
    if names.len() > LIST_MAX {
        faults.push(FieldError::new(path, format!("must have at most {LIST_MAX} entries")));
    }
    for name in names {
        if name.is_empty() || name.chars().count() > NAME_MAX || name.chars().any(|it| !it.is_ascii_graphic()) {
            let clause = format!("must have names of 1 to {NAME_MAX} visible ASCII characters without space");
            faults.push(FieldError::new(path, clause));
            return;
        }
    }
}
