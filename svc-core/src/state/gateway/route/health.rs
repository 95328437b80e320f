//! How providers fare, as one node sees it.

use std::collections::BTreeMap;

use crate::value::id::UpstreamId;
use crate::value::text::ModelName;
use crate::value::words::words;

/// Whether calls get through to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Circuit {
    /// They do.
    #[default]
    Ok,
    /// Some fail.
    Degraded,
    /// They do not: it is tried last, and now and then by a probe.
    Open,
}

words! { Circuit;
    Ok "ok";
    Degraded "degraded";
    Open "open";
}

/// How one model fares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether calls get through.
    pub circuit: Circuit,
    /// Its usual time to the first token in milliseconds, where enough of late have told it: limits are held against it.
    pub latency_ms: Option<u64>,
    /// Its time to the first token in milliseconds, as far as it was ever told within the hour: models are ranked by it.
    pub first_token_ms: Option<u64>,
    /// Its time to an answer that comes as a whole, in the same way.
    pub whole_ms: Option<u64>,
    /// Whether it was called of late, be it in vain: whoever is of unknown speed then is not asked just to learn it.
    pub is_called: bool,
    /// The tokens that it makes in a second, the wait for the first among them, where that was measured.
    pub tokens_per_second: Option<u64>,
}

/// Tokens a second of a model that was never measured.
const UNMEASURED_PACE: u64 = 50;

impl Standing {
    /// How long it usually lets wait for an answer that comes as a stream, or as a whole, in milliseconds. Of a model that has given
    /// none as a whole it is known that it takes as long as the first token at least.
    #[must_use]
    pub fn wait_ms(&self, stream: bool) -> Option<u64> {
        if stream { self.first_token_ms } else { self.whole_ms.or(self.first_token_ms) }
    }

    /// The tokens a second that a call without its final usage is charged by: as measured, else those of a usual model.
    #[must_use]
    pub fn pace(&self) -> u64 {
        self.tokens_per_second.unwrap_or(UNMEASURED_PACE)
    }
}

/// How the models fare that this node has called of late. One that is not here is well and of unknown speed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    models: BTreeMap<UpstreamId, BTreeMap<ModelName, Standing>>,
}

impl Health {
    /// Sets how a model fares.
    pub fn set(&mut self, upstream: UpstreamId, model: ModelName, standing: Standing) {
        self.models.entry(upstream).or_default().insert(model, standing);
    }

    /// How a model fares.
    #[must_use]
    pub fn of(&self, upstream: UpstreamId, model: &ModelName) -> Standing {
        self.models.get(&upstream).and_then(|it| it.get(model)).copied().unwrap_or_default()
    }

    /// How a provider fares: open where every model of it that was called is, degraded where any is not well.
    #[must_use]
    pub fn of_upstream(&self, upstream: UpstreamId) -> Circuit {
        let mut circuits = self.models.get(&upstream).into_iter().flat_map(BTreeMap::values).map(|it| it.circuit);
        let Some(first) = circuits.next() else { return Circuit::Ok };
        circuits.fold(first, |all, one| if all == one { all } else { Circuit::Degraded })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// A provider is open only where all of it is.
    #[test]
    fn a_provider_is_as_well_as_its_models() {
        let upstream = UpstreamId::parse("ups_01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
        let mut health = Health::default();
        assert_eq!(health.of_upstream(upstream), Circuit::Ok);
        for (model, circuit, all) in [
            ("a", Circuit::Open, Circuit::Open),
            ("b", Circuit::Open, Circuit::Open),
            ("c", Circuit::Ok, Circuit::Degraded),
            ("a", Circuit::Ok, Circuit::Degraded),
            ("b", Circuit::Ok, Circuit::Ok),
            ("b", Circuit::Degraded, Circuit::Degraded),
        ] {
            health.set(upstream, ModelName::parse(model).unwrap(), Standing { circuit, ..Standing::default() });
            assert_eq!(health.of_upstream(upstream), all);
        }
    }
}
