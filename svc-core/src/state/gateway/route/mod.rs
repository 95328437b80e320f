//! Which model serves a call: one pure function, so that preview, shadow and enforcement cannot differ.
//!
//! [`choose`] judges every model of the workspace by what the request, its class and its profile ask of it, ranks those
//! that satisfy all of it, and says of the others which constraints they break. It knows no clock and no store; how the
//! providers fare is passed in. Scores are whole numbers and every order is total, so equal questions have equal answers.

mod health;
mod judge;
mod names;
mod relax;
mod score;
mod tools;
mod why;
mod yields;

use std::fmt;

pub use health::{Circuit, Health, Standing};
pub use names::{Meant, NotServed, is_named, meant};
pub use relax::{Change, Relaxation};
pub use tools::{ToolMeaning, is_default_table, name_of_mcp_tool};
pub use why::thousandths;
pub use yields::Yields;

use super::catalogue::{Model, Upstream};
use super::demand::Demand;
use super::routing::{Mode, Objective, Profile, Routing, TaskClass};
use crate::value::MicroUsd;
use crate::value::id::UpstreamId;
use crate::value::text::ModelName;
use crate::value::words::words;

/// The name that asks for whichever model policy chooses.
pub const AUTO: &str = "auto";

/// What a call asks of routing.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// By what the workspace routes.
    pub routing: &'a Routing,
    /// What the request needs.
    pub demand: &'a Demand,
    /// Tokens that go in, where they are known; else a token is taken to be four bytes of text.
    pub input_tokens: Option<u64>,
    /// The model that the client named; `None` asks for any, as does `auto` where policy acts.
    pub model: Option<&'a str>,
    /// The class of the task.
    pub class: Option<&'a TaskClass>,
    /// The profile of the key.
    pub profile: Option<&'a Profile>,
    /// Whether policy acts.
    pub mode: Mode,
    /// What the call itself wants favoured.
    pub objective: Option<Objective>,
    /// Whether a person's oversight was acknowledged.
    pub oversight: bool,
    /// Whether a budget asks for the cheapest.
    pub downgrade: bool,
    /// Whether a model takes what single models refuse of the request: whoever sends it knows.
    pub takes: fn(&Demand, Mode, &Upstream, &Model) -> bool,
    /// How the providers fare, as this node sees it.
    pub health: &'a Health,
    /// What came of tasks, by class and model.
    pub yields: &'a Yields,
}

/// What a model must satisfy, in the order in which ties between constraints are broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// Being one of the listed models.
    Models,
    /// Being of one of the listed providers.
    Providers,
    /// Running under one of the listed laws.
    Jurisdiction,
    /// Keeping nothing.
    Retention,
    /// Being able to do what is needed.
    Capabilities,
    /// Holding what goes in and what may come out.
    Context,
    /// Being good enough.
    Quality,
    /// Costing no more than allowed, by its worst case.
    Cost,
    /// Being fast enough.
    Latency,
    /// A person's oversight, acknowledged.
    HumanOversight,
    /// Having a price for all that the call uses.
    Price,
    /// Being switched on, and its provider too.
    Enabled,
}

words! { Constraint;
    Models "models";
    Providers "providers";
    Jurisdiction "jurisdiction";
    Retention "retention";
    Capabilities "capabilities";
    Context "context";
    Quality "quality";
    Cost "cost";
    Latency "latency";
    HumanOversight "human_oversight";
    Price "price";
    Enabled "enabled";
}

/// Where a constraint stands, and so where it can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Holder {
    /// The class of the task.
    Class,
    /// The profile of the key.
    Profile,
    /// The request itself.
    Request,
    /// The model.
    Model,
    /// The model's provider.
    Upstream,
}

impl Holder {
    const ALL: [Self; 5] = [Self::Class, Self::Profile, Self::Request, Self::Model, Self::Upstream];
}

/// Which constraints a model breaks, and where each stands. One bit for each constraint and holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken(u64);

impl Broken {
    const fn bit(constraint: Constraint, holder: Holder) -> u64 {
        1 << (constraint as u32 * 5 + holder as u32)
    }

    const fn insert(&mut self, constraint: Constraint, holder: Holder) {
        self.0 |= Self::bit(constraint, holder);
    }

    /// Whether it breaks none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether it breaks this one, wherever that stands.
    #[must_use]
    pub const fn has(self, constraint: Constraint) -> bool {
        self.0 >> (constraint as u32 * 5) & 0b1_1111 != 0
    }

    /// The constraints that it breaks, each once, in their order.
    pub fn constraints(self) -> impl Iterator<Item = Constraint> {
        Constraint::ALL.into_iter().filter(move |it| self.has(*it))
    }

    /// Whether the provider's API has no form for the request.
    const fn has_no_form(self) -> bool {
        self.0 & Self::bit(Constraint::Capabilities, Holder::Upstream) != 0
    }

    /// Whether the model refuses what the request has.
    const fn is_refused(self) -> bool {
        self.0 & Self::bit(Constraint::Capabilities, Holder::Model) != 0
    }

    /// Whether the request alone keeps it from this model: nothing that is set anywhere does.
    const fn is_formless_alone(self) -> bool {
        self.0.is_power_of_two() && (self.has_no_form() || self.is_refused())
    }

    /// The one constraint that it breaks, if it is one.
    fn only_constraint(self) -> Option<Constraint> {
        let mut all = self.constraints();
        all.next().filter(|_| all.next().is_none())
    }

    /// The one place where it breaks one constraint, if it is one place.
    fn only(self) -> Option<(Constraint, Holder)> {
        let constraint = self.only_constraint().filter(|_| self.0.is_power_of_two())?;
        Holder::ALL.into_iter().find(|it| self.0 == Self::bit(constraint, *it)).map(|it| (constraint, it))
    }
}

/// A model, as one question sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its provider.
    pub upstream: &'a Upstream,
    /// The most that the call can cost there; `None` where it is unpriced.
    pub cost: Option<MicroUsd>,
    /// How good it is at this class, 0 to 100.
    pub quality: u8,
    /// Its usual time to the first token in milliseconds, where this node has measured it of late.
    pub latency_ms: Option<u64>,
    /// How long it lets wait for such an answer in milliseconds, where this node has measured that.
    pub wait_ms: Option<u64>,
    /// Whether it is neither measured nor was called of late.
    pub is_untried: bool,
    /// Whether calls get through.
    pub circuit: Circuit,
    /// Its yield relative to its class, in thousandths, 500 to 2,000.
    pub multiplier: u64,
    /// Its place in the lists of models of class and profile, from 0; models that no list names share the last.
    pub preference: usize,
    /// The higher, the better; 0 to 2,000,000. 0 where it was not ranked.
    pub score: u64,
    /// What it breaks.
    pub broken: Broken,
}

impl Candidate<'_> {
    /// Whether it satisfies everything.
    #[must_use]
    pub const fn qualifies(&self) -> bool {
        self.broken.is_empty()
    }

    /// Whether calls may go to it at all.
    #[must_use]
    pub const fn is_on(&self) -> bool {
        self.model.enabled && self.upstream.enabled
    }
}

/// `provider/model`.
impl fmt::Display for Candidate<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.upstream.name, self.model.name)
    }
}

/// The size of a call that is only thought of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Tokens that go in.
    pub input: u64,
    /// Tokens that come out at most, where that is bounded.
    pub output: Option<u64>,
}

/// What routing says.
#[derive(Clone, Debug)]
pub struct Choice<'a> {
    /// Whether policy acts.
    pub mode: Mode,
    /// What was favoured.
    pub objective: Objective,
    /// The size of a call that is only thought of, which costs are told for; a call that is made has its own.
    pub thought_of: Option<Size>,
    /// What the requested name means and is switched on, where to send first: the models of this name, whatever policy
    /// says of them. Empty where no name was asked for.
    pub resolved: Vec<Candidate<'a>>,
    /// The models that satisfy everything, the best first; those with an open circuit last.
    pub ranked: Vec<Candidate<'a>>,
    /// The others, in the order of the workspace.
    pub rejected: Vec<Candidate<'a>>,
    /// Without a ranked model: those that would be ranked if the request had a form in their provider's API, and nothing that they refuse,
    /// the best first.
    pub formless: Vec<Candidate<'a>>,
    /// Without a ranked model: the constraint whose removal would admit the most.
    pub binding: Option<Constraint>,
    /// Without a ranked model: single changes, each of which admits some.
    pub relaxations: Vec<Relaxation<'a>>,
}

impl<'a> Choice<'a> {
    /// Where the call goes, the first attempt first: in shadow what it named, else what policy ranked. In shadow with no
    /// name, what policy ranked. Where that is none but for the form of the request, what it has no form for: then nothing is sent,
    /// and the client hears what of its request is at fault.
    #[must_use]
    pub fn targets(&self) -> &[Candidate<'a>] {
        match self.mode {
            Mode::Shadow if !self.resolved.is_empty() => &self.resolved,
            Mode::Shadow | Mode::Enforce if self.ranked.is_empty() => &self.formless,
            Mode::Shadow | Mode::Enforce => &self.ranked,
        }
    }

    /// What policy would choose.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate<'a>> {
        self.ranked.first()
    }
}

/// Chooses.
///
/// The objective is the cheapest where a budget asks for that, else the call's, its class's, its profile's, the
/// workspace's. A model satisfies the request, the class and the profile, or it is rejected with every constraint that it
/// breaks.
///
/// # Errors
/// [`NotServed`] where the requested name means no model of the workspace, or in shadow only such as are switched off.
pub fn choose<'a>(ask: &Ask<'a>) -> Result<Choice<'a>, NotServed> {
    // Where policy acts, this name leaves the choice to it.
    let ask = &Ask { model: ask.model.filter(|it| ask.mode == Mode::Shadow || *it != AUTO), ..*ask };
    let objective = objective(ask);
    let judged = judge::all(ask);
    let resolved = ask.model.map_or_else(|| Ok(Vec::new()), |name| names::resolve(name, ask.mode, &judged))?;
    let (mut ranked, rejected): (Vec<_>, Vec<_>) = judged.into_iter().partition(Candidate::qualifies);
    score::rank(&mut ranked, objective);
    let mut formless = Vec::new();
    let (binding, relaxations) = if ranked.is_empty() {
        formless.extend(rejected.iter().filter(|it| it.broken.is_formless_alone()).copied());
        score::rank(&mut formless, objective);
        (relax::binding(&rejected), relax::relaxations(ask, &rejected))
    } else {
        (None, Vec::new())
    };
    let out = ask.demand.output;
    let thought_of = ask.input_tokens.map(|input| Size { input, output: out.tokens.or(out.likely) });
    Ok(Choice { mode: ask.mode, objective, thought_of, resolved, ranked, rejected, formless, binding, relaxations })
}

/// One model as [`choose`] would judge it; `None` where the workspace has none of this id at this provider.
#[must_use]
pub fn judged<'a>(ask: &Ask<'a>, upstream: UpstreamId, model: &ModelName) -> Option<Candidate<'a>> {
    judge::all(ask).into_iter().find(|it| it.upstream.id == upstream && it.model.name == *model)
}

/// What is favoured.
fn objective(ask: &Ask<'_>) -> Objective {
    if ask.downgrade {
        return Objective::Cost;
    }
    let class = || ask.class.and_then(|it| it.constraints.objective);
    let profile = || ask.profile.and_then(|it| it.constraints.objective);
    ask.objective.or_else(class).or_else(profile).unwrap_or(ask.routing.objective)
}

#[cfg(test)]
mod tests;
