//! What a provider billed beside what was metered: a comparison that changes no record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::state::people::Maker;
use crate::value::id::{BillingImportId, UpstreamId, WorkspaceId};
use crate::value::link::{Index, Link, Linked};
use crate::value::text::ModelName;
use crate::value::{Id, MicroUsd, Timestamp};

/// Lines of one import at most.
pub const BILLED_LINES_MAX: usize = 10_000;
/// Differences of one import at most: what was metered and is on no line of the bill is one too, so that a short bill of many
/// days could have more than a row may hold.
pub const DIFFERENCES_MAX: usize = 10_000;

/// A comparison of a bill with what was metered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillingImport {
    /// Its id.
    pub id: BillingImportId,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Whose bill.
    pub upstream: UpstreamId,
    /// Its first day, counted from 1970-01-01.
    pub from: i64,
    /// The first day after it.
    pub to: i64,
    /// All that was billed.
    pub billed: MicroUsd,
    /// All that was metered.
    pub metered: MicroUsd,
    /// Where the two differ, by day and model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Who imported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Maker>,
    /// When.
    pub created_at: Timestamp,
}

/// What was billed for a model on a day, or what was metered of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayOfModel {
    /// The day, counted from 1970-01-01.
    pub day: i64,
    /// The model, as the provider has it.
    pub model: ModelName,
    /// How much.
    pub micros: MicroUsd,
}

/// A model and day of which more or less was billed than metered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The day, counted from 1970-01-01.
    pub day: i64,
    /// The model, as the provider has it.
    pub model: ModelName,
    /// What was billed.
    pub billed: MicroUsd,
    /// What was metered.
    pub metered: MicroUsd,
}

/// Sums and differences of a bill and what was metered, each by day and model.
#[must_use]
pub fn compare(billed: &[DayOfModel], metered: &[DayOfModel]) -> (MicroUsd, MicroUsd, Vec<Difference>) {
    let mut pairs: BTreeMap<(i64, &str), (ModelName, MicroUsd, MicroUsd)> = BTreeMap::new();
    let sides = billed.iter().map(|it| (it, true)).chain(metered.iter().map(|it| (it, false)));
    let (mut of_bill, mut of_meter) = (MicroUsd::ZERO, MicroUsd::ZERO);
    for (line, is_bill) in sides {
        let none = || (line.model.clone(), MicroUsd::ZERO, MicroUsd::ZERO);
        let pair = pairs.entry((line.day, line.model.as_str())).or_insert_with(none);
        if is_bill {
            pair.1 = pair.1.plus(line.micros);
            of_bill = of_bill.plus(line.micros);
        } else {
            pair.2 = pair.2.plus(line.micros);
            of_meter = of_meter.plus(line.micros);
        }
    }
    let differing = pairs.into_iter().filter(|(_, (_, billed, metered))| billed != metered);
    let differences =
        differing.map(|((day, _), (model, billed, metered))| Difference { day, model, billed, metered }).collect();
    (of_bill, of_meter, differences)
}

impl Linked for BillingImport {
    fn links(&self) -> Vec<Link> {
        vec![Link::by_id(Index::BillingOf, self.workspace.bits(), self.id)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(day: i64, model: &str, micros: u64) -> Option<DayOfModel> {
        Some(DayOfModel { day, model: ModelName::parse(model).ok()?, micros: MicroUsd::new(micros) })
    }

    /// Lines of one model and day are one sum, and only what differs is told.
    #[test]
    fn only_what_differs_is_told() {
        let billed: Vec<_> =
            [line(1, "a", 5), line(1, "a", 6), line(1, "b", 7), line(2, "a", 1)].into_iter().flatten().collect();
        let metered: Vec<_> = [line(1, "a", 11), line(1, "b", 4), line(3, "c", 2)].into_iter().flatten().collect();
        let (of_bill, of_meter, differences) = compare(&billed, &metered);
        assert_eq!((of_bill.get(), of_meter.get()), (19, 17));
        let told: Vec<_> =
            differences.iter().map(|it| (it.day, it.model.as_str(), it.billed.get(), it.metered.get())).collect();
        assert_eq!(told, [(1, "b", 7, 4), (2, "a", 1, 0), (3, "c", 0, 2)]);
    }
}
