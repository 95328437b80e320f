//! What each model breaks.

use std::collections::{BTreeMap, BTreeSet};

use super::names::NameList;
use super::{Ask, Broken, Candidate, Constraint, Holder, yields};
use crate::state::gateway::catalogue::{Capability, Model, Retention, Upstream};

use crate::state::gateway::price::{likely_input, worst_case};
use crate::state::gateway::routing::Constraints;
use crate::value::id::UpstreamId;

/// The states whose law is the European Union's: a list that allows `eu` allows them.
const EU: [&str; 27] = [
    "at", "be", "bg", "cy", "cz", "de", "dk", "ee", "es", "fi", "fr", "gr", "hr", "hu", "ie", "it", "lt", "lu", "lv",
    "mt", "nl", "pl", "pt", "ro", "se", "si", "sk",
];

/// Every model of the workspace, judged, in the workspace's order.
pub(super) fn all<'a>(ask: &Ask<'a>) -> Vec<Candidate<'a>> {
    let upstreams: BTreeMap<UpstreamId, &Upstream> = ask.routing.upstreams.iter().map(|it| (it.id, it)).collect();
    let models = || {
        let models = ask.routing.models.iter();
        models.filter_map(|model| upstreams.get(&model.upstream).map(|upstream| (model, *upstream)))
    };
    let side = |holder, asked: &'a Constraints| Side { holder, asked, models: NameList::new(&asked.models, models()) };
    let class = ask.class.map(|it| side(Holder::Class, &it.constraints));
    let profile = ask.profile.map(|it| side(Holder::Profile, &it.constraints));
    let sides = [class, profile];
    models().map(|(model, upstream)| judge(ask, &sides, model, upstream)).collect()
}

/// The constraints of the class, or of the profile.
struct Side<'a> {
    holder: Holder,
    asked: &'a Constraints,
    models: NameList<'a>,
}

fn judge<'a>(ask: &Ask<'a>, sides: &[Option<Side<'a>>; 2], model: &'a Model, upstream: &'a Upstream) -> Candidate<'a> {
    let standing = ask.health.of(upstream.id, &model.name);
    let multiplier = ask
        .class
        .map_or(yields::EVEN, |class| ask.yields.multiplier(&class.id, upstream.name.as_str(), model.name.as_str()));
    let by_class = ask.class.and_then(|class| model.quality.by_class.get(&class.id));
    let mut candidate = Candidate {
        model,
        upstream,
        cost: worst_case(model, upstream.dialect, ask.demand).ok(),
        quality: by_class.copied().unwrap_or(model.quality.general),
        latency_ms: standing.latency_ms,
        wait_ms: standing.wait_ms(ask.demand.stream),
        is_untried: standing.wait_ms(ask.demand.stream).is_none() && !standing.is_called,
        circuit: standing.circuit,
        multiplier,
        preference: 0,
        score: 0,
        broken: Broken::default(),
    };
    of_request(ask, &mut candidate);
    for side in sides.iter().flatten() {
        of_side(side, &mut candidate);
    }
    candidate
}

/// What the request asks, and what model and provider are.
fn of_request(ask: &Ask<'_>, candidate: &mut Candidate<'_>) {
    let (model, upstream) = (candidate.model, candidate.upstream);
    let mut breaks = |yes: bool, constraint, holder| {
        if yes {
            candidate.broken.insert(constraint, holder);
        }
    };
    let needs = &ask.demand.needs;
    breaks(!needs.is_subset(&model.capabilities), Constraint::Capabilities, Holder::Request);
    // What stands in the request may have no place in the provider's API, which nothing set here changes.
    let has_form = ask.demand.has_form_in(upstream.dialect);
    breaks(!has_form, Constraint::Capabilities, Holder::Upstream);
    let is_taken = || (ask.takes)(ask.demand, ask.mode, upstream, model);
    breaks(has_form && !is_taken(), Constraint::Capabilities, Holder::Model);
    breaks(!fits(ask, model), Constraint::Context, Holder::Request);
    let sides = [ask.class.map(|it| &it.constraints), ask.profile.map(|it| &it.constraints)];
    let any_side = |asks: fn(&Constraints) -> bool| sides.into_iter().flatten().any(asks);
    breaks(any_side(|it| it.human_oversight) && !ask.oversight, Constraint::HumanOversight, Holder::Request);
    breaks(ask.demand.leaves_model_to(upstream.dialect), Constraint::Models, Holder::Request);
    let keeps = ask.demand.is_kept_at(upstream.dialect);
    breaks(keeps && any_side(|it| it.no_retention), Constraint::Retention, Holder::Request);
    // Nobody here knows whose the providers behind another are, nor under which law.
    let behind = ask.demand.names_providers_at(upstream.dialect);
    let has_laws = any_side(|it| !it.jurisdictions.is_empty());
    let has_providers = any_side(|it| !it.providers.is_empty());
    breaks(behind && has_providers && !has_laws, Constraint::Providers, Holder::Request);
    // What those charge who are named is no row's price: what the call could cost is known to nobody.
    breaks(behind && !has_providers && !has_laws, Constraint::Price, Holder::Request);
    let elsewhere = behind || ask.demand.geo_at(upstream.dialect).is_some_and(|it| !lies_in(it, &model.jurisdiction));
    breaks(elsewhere && has_laws, Constraint::Jurisdiction, Holder::Request);
    breaks(candidate.cost.is_none(), Constraint::Price, Holder::Model);
    breaks(!model.enabled, Constraint::Enabled, Holder::Model);
    breaks(!upstream.enabled, Constraint::Enabled, Holder::Upstream);
}

/// What the class or the profile asks.
fn of_side(side: &Side<'_>, candidate: &mut Candidate<'_>) {
    let (model, upstream, asked) = (candidate.model, candidate.upstream, side.asked);
    if !asked.models.is_empty() {
        let place = side.models.place(model, upstream);
        // The class's order weighs before the profile's: a list is at most 200 long.
        let weight = if side.holder == Holder::Class { 1_000 } else { 1 };
        candidate.preference += place.unwrap_or(asked.models.len()) * weight;
        if place.is_none() {
            candidate.broken.insert(Constraint::Models, side.holder);
        }
    }
    let mut breaks = |yes: bool, constraint| {
        if yes {
            candidate.broken.insert(constraint, side.holder);
        }
    };
    let providers = &asked.providers;
    breaks(!providers.is_empty() && !providers.contains(upstream.name.as_str()), Constraint::Providers);
    let laws = &asked.jurisdictions;
    breaks(!laws.is_empty() && !is_under(laws, &model.jurisdiction), Constraint::Jurisdiction);
    breaks(asked.no_retention && model.retention != Retention::None, Constraint::Retention);
    breaks(!asked.capabilities.is_subset(&model.capabilities), Constraint::Capabilities);
    breaks(asked.min_quality.is_some_and(|least| candidate.quality < least), Constraint::Quality);
    let dearer = |most| candidate.cost.is_some_and(|cost| cost > most);
    breaks(asked.max_cost.is_some_and(dearer), Constraint::Cost);
    let slower = |most| candidate.latency_ms.is_some_and(|ms| ms > most);
    breaks(asked.max_latency_ms.is_some_and(slower), Constraint::Latency);
}

/// Whether a model under this law satisfies a list of laws.
pub(super) fn is_under(laws: &BTreeSet<Box<str>>, law: &str) -> bool {
    laws.iter().any(|it| lies_in(law, it))
}

/// Whether what is under this law is under the other as well.
fn lies_in(law: &str, other: &str) -> bool {
    law == other || (other == "eu" && EU.contains(&law))
}

/// Whether what goes in and what may come out find room.
pub(super) fn fits(ask: &Ask<'_>, model: &Model) -> bool {
    let output = ask.demand.output.tokens;
    let whole = input_tokens(ask, model).saturating_add(output.unwrap_or(1));
    whole <= model.context_window && output.is_none_or(|it| it <= model.max_output)
}

/// How many tokens go in, as far as can be told: what is likely where nobody counted them.
pub(super) fn input_tokens(ask: &Ask<'_>, model: &Model) -> u64 {
    ask.input_tokens.unwrap_or_else(|| likely_input(model, ask.demand))
}

/// What of `wanted` a model cannot do.
pub(super) fn lacking(wanted: &BTreeSet<Capability>, model: &Model) -> BTreeSet<Capability> {
    wanted.difference(&model.capabilities).copied().collect()
}
