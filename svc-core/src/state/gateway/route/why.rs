//! Why routing says what it says, in a few sentences for people.

use std::collections::BTreeSet;

use super::{Candidate, Change, Choice, Constraint, NotServed, Size, yields};
use crate::refusal::{Refusal, RelaxationText};
use crate::state::gateway::routing::Objective;
use crate::value::words::words;

/// Models that are told of which refuse a request.
const REFUSING_MAX: usize = 20;

words! { Objective;
    Balanced "balanced";
    Cost "cost";
    Quality "quality";
    Latency "latency";
    Sovereign "sovereign";
}

impl Choice<'_> {
    /// Why, the weightiest first: which model was chosen by what, what is known of it, what rejected others.
    #[must_use]
    pub fn why(&self) -> Vec<String> {
        let all = self.ranked.len() + self.rejected.len();
        let mut why = match self.best() {
            Some(best) => self.why_best(best, all),
            None if all == 0 => vec!["the workspace has no models".to_owned()],
            None => vec![format!("none of {all} models qualifies")],
        };
        if let Some(binding) = self.binding {
            why.push(format!("`{}` is the constraint that binds", binding.as_str()));
        }
        let broken = Constraint::ALL.into_iter().map(|it| {
            let models = self.rejected.iter().filter(|model| model.broken.has(it)).count();
            (models, it)
        });
        let broken: Vec<_> = broken.filter(|it| it.0 > 0).map(|(n, it)| format!("`{}` {n}", it.as_str())).collect();
        if !broken.is_empty() {
            why.push(format!("rejected by constraint: {}", broken.join(", ")));
        }
        let formless = self.rejected.iter().filter(|it| it.broken.has_no_form());
        let formless: BTreeSet<_> = formless.map(|it| it.upstream.name.as_str()).collect();
        why.extend(formless.into_iter().map(|it| format!("the request has no form in the API of {it}")));
        let refusing = self.rejected.iter().filter(|it| it.broken.is_refused()).take(REFUSING_MAX);
        let refusing: Vec<_> = refusing.map(ToString::to_string).collect();
        if !refusing.is_empty() {
            why.push(format!("refused for what stands in the request: {}", refusing.join(", ")));
        }
        why
    }

    fn why_best(&self, best: &Candidate<'_>, all: usize) -> Vec<String> {
        let objective = self.objective.as_str();
        let mut why =
            vec![format!("{best} ranks first of {} that qualify, of {all}, by `{objective}`", self.ranked.len())];
        if let Some(cost) = best.cost {
            let room = |size: Size| Size { output: size.output.map(|it| it.min(best.model.max_output)), ..size };
            let call = self.thought_of.map_or_else(|| "the call".to_owned(), |it| told(room(it)));
            why.push(format!("{call} costs at most {cost} micros there"));
        }
        why.push(format!("its quality here is {} of 100", best.quality));
        if let Some(ms) = best.latency_ms {
            why.push(format!("its first token usually comes after {ms} ms"));
        }
        if best.multiplier != yields::EVEN {
            why.push(format!("its yield multiplies the score by {}", thousandths(best.multiplier)));
        }
        why
    }
}

/// A call of this size, which nobody may have named.
fn told(size: Size) -> String {
    let Size { input, output } = size;
    match output {
        Some(output) => format!("a call of {input} tokens in and {output} out"),
        None => format!("a call of {input} tokens in, and as many out as the model gives,"),
    }
}

impl Choice<'_> {
    /// What is refused where policy acts and no model satisfies it.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        if !self.ranked.is_empty() {
            return None;
        }
        let relaxations = self.relaxations.iter().map(|it| RelaxationText {
            constraint: it.constraint.as_str().into(),
            change: it.change.to_string().into(),
            admits: it.admits.iter().map(|it| it.to_string().into()).collect(),
        });
        let refusal = Refusal::policy_conflict(self.binding.map(Constraint::as_str), relaxations.collect());
        let is_too_long = self.binding == Some(Constraint::Context)
            && self.relaxations.iter().any(|it| matches!(it.change, Change::Shorten { input: Some(_), .. }));
        let message = is_too_long.then(|| refusal.message().to_owned());
        Some(match message {
            Some(message) => refusal.told_too_long(&message),
            None => refusal,
        })
    }
}

impl NotServed {
    /// What is refused where this model was asked for.
    #[must_use]
    pub fn refusal(&self, name: &str) -> Refusal {
        match self {
            Self::Unknown { nearest } => Refusal::unknown_model(name, nearest.as_deref()),
            Self::Off => Refusal::invalid_field("model", "names a model that is switched off"),
        }
    }
}

/// Thousandths as a decimal with three places: what `x-svc-yield-multiplier` holds.
#[must_use]
pub fn thousandths(number: u64) -> String {
    format!("{}.{:03}", number / 1_000, number % 1_000)
}
