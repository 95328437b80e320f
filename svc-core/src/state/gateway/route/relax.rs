//! What would admit a model where none is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::judge::{fits, input_tokens, lacking};
use super::{Ask, Candidate, Constraint, Holder};
use crate::state::gateway::catalogue::Capability;
use crate::state::gateway::routing::Constraints;
use crate::value::MicroUsd;

/// Changes that are told of one constraint at one place, those that admit the most.
const CHANGES_MAX: usize = 5;
/// Models that are told of one change.
const ADMITS_MAX: usize = 20;

/// A single change to one constraint, and models that it admits: each satisfies everything else.
#[derive(Clone, Debug)]
pub struct Relaxation<'a> {
    /// The constraint.
    pub constraint: Constraint,
    /// The change.
    pub change: Change,
    /// Models that it admits, at least one, at most 20.
    pub admits: Vec<Candidate<'a>>,
}

/// One change. Its text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another model is allowed.
    AddModel(Holder, Box<str>),
    /// Another provider is allowed.
    AddProvider(Holder, Box<str>),
    /// Another law is allowed.
    AddJurisdiction(Holder, Box<str>),
    /// What is sent may be kept.
    AllowRetention(Holder),
    /// These are not asked for.
    DropCapabilities(Holder, BTreeSet<Capability>),
    /// At most so many tokens go in, and so many come out.
    Shorten {
        /// Tokens that go in, where fewer must.
        input: Option<u64>,
        /// Tokens that come out, where fewer must be asked for.
        output: Option<u64>,
    },
    /// Less quality is enough.
    LowerQuality(Holder, u8),
    /// A call may cost more.
    RaiseCost(Holder, MicroUsd),
    /// A call may take longer, in milliseconds.
    RaiseLatency(Holder, u64),
    /// The request is sent without these members.
    LeaveOut(Vec<&'static str>),
    /// The header is sent.
    Acknowledge,
    /// The model gets a price for all that the call uses.
    SetPrice(Box<str>),
    /// The model, or the provider, is switched on.
    Enable(Holder, Box<str>),
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddModel(at, name) => write!(out, "add `{name}` to the models of {}", place(*at)),
            Self::AddProvider(at, name) => write!(out, "add `{name}` to the providers of {}", place(*at)),
            Self::AddJurisdiction(at, law) => write!(out, "add `{law}` to the jurisdictions of {}", place(*at)),
            Self::AllowRetention(at) => write!(out, "drop `retention` from {}", place(*at)),
            Self::DropCapabilities(at, which) => {
                let words: Vec<_> = which.iter().map(|it| format!("`{}`", it.as_str())).collect();
                write!(out, "do without {} in {}", words.join(" and "), place(*at))
            }
            Self::Shorten { input, output } => {
                let input = input.map(|it| format!("send at most {it} tokens"));
                let output = output.map(|it| format!("ask for at most {it} tokens of output"));
                let parts: Vec<String> = [input, output].into_iter().flatten().collect();
                out.write_str(&parts.join(" and "))
            }
            Self::LowerQuality(at, to) => write!(out, "lower `minQuality` of {} to {to}", place(*at)),
            Self::RaiseCost(at, to) => write!(out, "raise `maxCostMicros` of {} to {to}", place(*at)),
            Self::RaiseLatency(at, to) => write!(out, "raise `maxLatencyMs` of {} to {to}", place(*at)),
            Self::LeaveOut(members) => write!(out, "leave out `{}`", members.join("` and `")),
            Self::Acknowledge => out.write_str("send the header `x-svc-human-oversight: acknowledged`"),
            Self::SetPrice(name) => write!(out, "set a price for `{name}` that covers all that the call uses"),
            Self::Enable(_, name) => write!(out, "enable `{name}`"),
        }
    }
}

const fn place(holder: Holder) -> &'static str {
    match holder {
        Holder::Class => "the task class",
        Holder::Profile => "the policy profile",
        Holder::Request => "the request",
        Holder::Model => "the model",
        Holder::Upstream => "the upstream",
    }
}

/// The constraint whose removal, wherever it stands, would admit the most models; where no single one would admit any,
/// the one that most models break. Of equals the first in the order of [`Constraint::ALL`].
pub(super) fn binding(rejected: &[Candidate<'_>]) -> Option<Constraint> {
    let most = |counts: &dyn Fn(Constraint) -> usize| {
        let all = Constraint::ALL.into_iter().map(|it| (counts(it), it)).filter(|(count, _)| *count > 0);
        all.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, it)| it)
    };
    let alone = |constraint| rejected.iter().filter(|it| it.broken.only_constraint() == Some(constraint)).count();
    let any = |constraint| rejected.iter().filter(|it| it.broken.has(constraint)).count();
    most(&alone).or_else(|| most(&any))
}

/// The single changes that admit a model, in the order of the constraints; of one constraint at one place those that
/// admit the most.
pub(super) fn relaxations<'a>(ask: &Ask<'a>, rejected: &[Candidate<'a>]) -> Vec<Relaxation<'a>> {
    let mut places: BTreeMap<(Constraint, Holder), Vec<Candidate<'a>>> = BTreeMap::new();
    for it in rejected {
        if let Some(only) = it.broken.only() {
            places.entry(only).or_default().push(*it);
        }
    }
    let mut all = Vec::new();
    for ((constraint, holder), models) in places {
        let mut changes = changes(ask, constraint, holder, &models);
        changes.sort_by_key(|(_, admits)| std::cmp::Reverse(admits.len()));
        all.extend(changes.into_iter().take(CHANGES_MAX).map(|(change, mut admits)| {
            admits.truncate(ADMITS_MAX);
            Relaxation { constraint, change, admits }
        }));
    }
    all
}

type Admitting<'a> = (Change, Vec<Candidate<'a>>);

/// The changes of one constraint at one place that admit some of `models`, all of which break that alone.
fn changes<'a>(ask: &Ask<'a>, constraint: Constraint, at: Holder, models: &[Candidate<'a>]) -> Vec<Admitting<'a>> {
    let whole = |change| vec![(change, models.to_vec())];
    let up_to = |change: Option<Change>, admits: &dyn Fn(&Candidate<'a>) -> bool| {
        let admits = models.iter().filter(|it| admits(it)).copied().collect();
        change.map(|change| (change, admits)).into_iter().collect()
    };
    match constraint {
        Constraint::Models
        | Constraint::Retention
        | Constraint::Providers
        | Constraint::Jurisdiction
        | Constraint::Price
            if at == Holder::Request =>
        {
            whole(Change::LeaveOut(to_leave_out(ask, constraint)))
        }
        Constraint::Models => grouped(models, ToString::to_string, |it| Change::AddModel(at, it.into())),
        Constraint::Providers => {
            grouped(models, |it| it.upstream.name.to_string(), |it| Change::AddProvider(at, it.into()))
        }
        Constraint::Jurisdiction => {
            grouped(models, |it| it.model.jurisdiction.to_string(), |it| Change::AddJurisdiction(at, it.into()))
        }
        Constraint::Retention => whole(Change::AllowRetention(at)),
        // The client is told of its own members where such a model is all that is left.
        Constraint::Capabilities if matches!(at, Holder::Upstream | Holder::Model) => Vec::new(),
        Constraint::Capabilities => capabilities(ask, at, models),
        Constraint::Context => shorter(ask, models),
        Constraint::Quality => {
            let best = models.iter().map(|it| it.quality).max().unwrap_or_default();
            up_to(Some(Change::LowerQuality(at, best)), &|it| it.quality >= best)
        }
        Constraint::Cost => {
            let least = models.iter().filter_map(|it| it.cost).min();
            up_to(least.map(|it| Change::RaiseCost(at, it)), &|it| it.cost <= least)
        }
        Constraint::Latency => {
            let least = models.iter().filter_map(|it| it.latency_ms).min();
            up_to(least.map(|it| Change::RaiseLatency(at, it)), &|it| it.latency_ms <= least)
        }
        Constraint::HumanOversight => whole(Change::Acknowledge),
        Constraint::Price => grouped(models, ToString::to_string, |it| Change::SetPrice(it.into())),
        Constraint::Enabled if at == Holder::Upstream => {
            grouped(models, |it| it.upstream.name.to_string(), |it| Change::Enable(at, it.into()))
        }
        Constraint::Enabled => grouped(models, ToString::to_string, |it| Change::Enable(at, it.into())),
    }
}

/// The members by which a request breaks this constraint.
fn to_leave_out(ask: &Ask<'_>, constraint: Constraint) -> Vec<&'static str> {
    let demand = ask.demand;
    let provider = demand.names_providers;
    match constraint {
        Constraint::Models => demand.other_models.into_iter().collect(),
        Constraint::Retention => demand.kept_by.clone(),
        Constraint::Jurisdiction => {
            demand.inference_geo.as_ref().map(|_| "inference_geo").into_iter().chain(provider).collect()
        }
        _ => provider.into_iter().collect(),
    }
}

/// One change for each key, which admits the models that have it.
fn grouped<'a>(
    models: &[Candidate<'a>],
    key: impl Fn(&Candidate<'a>) -> String,
    change: impl Fn(String) -> Change,
) -> Vec<Admitting<'a>> {
    let mut groups: BTreeMap<String, Vec<Candidate<'a>>> = BTreeMap::new();
    for it in models {
        groups.entry(key(it)).or_default().push(*it);
    }
    groups.into_iter().map(|(key, admits)| (change(key), admits)).collect()
}

/// One change for each set of capabilities that some model lacks; it admits those too that lack less.
fn capabilities<'a>(ask: &Ask<'a>, at: Holder, models: &[Candidate<'a>]) -> Vec<Admitting<'a>> {
    let of = |it: Option<&'a Constraints>| it.map(|it| &it.capabilities);
    let wanted = match at {
        Holder::Class => of(ask.class.map(|it| &it.constraints)),
        Holder::Profile => of(ask.profile.map(|it| &it.constraints)),
        _ => Some(&ask.demand.needs),
    };
    let Some(wanted) = wanted else { return Vec::new() };
    let lacks: Vec<_> = models.iter().map(|it| (lacking(wanted, it.model), it)).collect();
    let sets: BTreeSet<_> = lacks.iter().map(|(set, _)| set.clone()).collect();
    let admitted =
        |set: &BTreeSet<_>| lacks.iter().filter(|(lack, _)| lack.is_subset(set)).map(|(_, it)| **it).collect();
    sets.into_iter()
        .map(|set| (admitted(&set), set))
        .map(|(all, set)| (Change::DropCapabilities(at, set), all))
        .collect()
}

/// The least shortening that the roomiest model needs. The output is shortened first: it is but a bound.
fn shorter<'a>(ask: &Ask<'a>, models: &[Candidate<'a>]) -> Vec<Admitting<'a>> {
    let Some(roomiest) = models.iter().max_by_key(|it| (it.model.context_window, it.model.max_output)) else {
        return Vec::new();
    };
    let (window, input) = (roomiest.model.context_window, input_tokens(ask, roomiest.model));
    let room = window.saturating_sub(input);
    let output = ask.demand.output.tokens.map(|it| it.min(roomiest.model.max_output));
    let output = output.map(|it| if room > 0 { it.min(room) } else { it.min(window.div_ceil(2)) });
    let input_max = input.min(window.saturating_sub(output.unwrap_or(1)));
    let mut demand = ask.demand.clone();
    demand.output.tokens = output;
    let shortened =
        Ask { demand: &demand, input_tokens: (input_max < input).then_some(input_max).or(ask.input_tokens), ..*ask };
    let admits = models.iter().filter(|it| fits(&shortened, it.model)).copied().collect();
    let change = Change::Shorten {
        input: (input_max < input).then_some(input_max),
        output: output.filter(|_| output != ask.demand.output.tokens),
    };
    vec![(change, admits)]
}
