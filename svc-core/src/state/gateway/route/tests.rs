//! What holds of any choice, whatever is asked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod examples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;
use crate::state::gateway::catalogue::{Capability, Figures, ModelTimeouts, Quality, Retention};
use crate::state::gateway::demand::{Dialect, OutputBound};
use crate::state::gateway::particular::Particular;
use crate::state::gateway::price::{Percent, Prices, TokenPrices};
use crate::state::gateway::routing::Constraints;
use crate::value::Timestamp;
use crate::value::id::{Id, ProfileId, UpstreamId, WorkspaceId};
use crate::value::text::{ClassId, Label, ModelName, UpstreamName, UrlText};

/// All that one question rests on.
#[derive(Clone, Debug)]
struct Case {
    routing: Routing,
    demand: Demand,
    input_tokens: Option<u64>,
    model: Option<String>,
    class: Option<TaskClass>,
    profile: Option<Profile>,
    mode: Mode,
    objective: Option<Objective>,
    oversight: bool,
    downgrade: bool,
    health: Health,
    yields: Yields,
}

impl Case {
    fn new(models: Vec<Model>) -> Self {
        let mut routing = Routing::new(WorkspaceId::from_bits(1));
        routing.upstreams = (0..3).map(upstream).collect();
        routing.models = models;
        Self {
            routing,
            demand: demand(),
            input_tokens: None,
            model: None,
            class: None,
            profile: None,
            mode: Mode::Enforce,
            objective: None,
            oversight: false,
            downgrade: false,
            health: Health::default(),
            yields: Yields::default(),
        }
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            routing: &self.routing,
            demand: &self.demand,
            input_tokens: self.input_tokens,
            model: self.model.as_deref(),
            class: self.class.as_ref(),
            profile: self.profile.as_ref(),
            mode: self.mode,
            objective: self.objective,
            oversight: self.oversight,
            downgrade: self.downgrade,
            takes: |demand, _, _, model| demand.particulars.is_empty() || !is_picky(model),
            health: &self.health,
            yields: &self.yields,
        }
    }

    fn ranked(&self) -> Vec<String> {
        choose(&self.ask()).unwrap().ranked.iter().map(ToString::to_string).collect()
    }

    fn constraints(&mut self, holder: Holder) -> &mut Constraints {
        match holder {
            Holder::Class => &mut self.class.as_mut().unwrap().constraints,
            _ => &mut self.profile.as_mut().unwrap().constraints,
        }
    }

    /// Makes one change, as a person would.
    fn apply(&mut self, change: &Change) {
        match change.clone() {
            Change::AddModel(at, name) => self.constraints(at).models.push(name),
            Change::AddProvider(at, name) => _ = self.constraints(at).providers.insert(name),
            Change::AddJurisdiction(at, law) => _ = self.constraints(at).jurisdictions.insert(law),
            Change::AllowRetention(at) => self.constraints(at).no_retention = false,
            Change::DropCapabilities(Holder::Request, set) => self.demand.needs.retain(|it| !set.contains(it)),
            Change::DropCapabilities(at, set) => self.constraints(at).capabilities.retain(|it| !set.contains(it)),
            Change::Shorten { input, output } => {
                assert!(input.is_some() || output.is_some());
                self.input_tokens = input.or(self.input_tokens);
                self.demand.output.tokens = output.or(self.demand.output.tokens);
            }
            Change::LowerQuality(at, to) => self.constraints(at).min_quality = Some(to),
            Change::RaiseCost(at, to) => self.constraints(at).max_cost = Some(to),
            Change::RaiseLatency(at, to) => self.constraints(at).max_latency_ms = Some(to),
            Change::LeaveOut(members) => members.into_iter().for_each(|it| match it {
                "inference_geo" => self.demand.inference_geo = None,
                "provider" => self.demand.names_providers = None,
                "store" => self.demand.kept_by.clear(),
                "models" => self.demand.other_models = None,
                other => panic!("{other}"),
            }),
            Change::Acknowledge => self.oversight = true,
            Change::SetPrice(name) => {
                self.model_named(&name).prices =
                    Some(prices(0, self.demand.server_tools.keys().cloned().collect::<Vec<_>>()))
            }
            Change::Enable(Holder::Upstream, name) => {
                self.routing.upstreams.iter_mut().find(|it| it.name.as_str() == &*name).unwrap().enabled = true;
            }
            Change::Enable(_, name) => self.model_named(&name).enabled = true,
        }
    }

    fn model_named(&mut self, name: &str) -> &mut Model {
        let (provider, bare) = name.split_once('/').unwrap();
        let upstream = self.routing.upstreams.iter().find(|it| it.name.as_str() == provider).unwrap().id;
        self.routing.models.iter_mut().find(|it| it.upstream == upstream && it.name.as_str() == bare).unwrap()
    }
}

fn upstream(number: usize) -> Upstream {
    Upstream {
        id: UpstreamId::from_bits(number as u128 + 1),
        name: UpstreamName::parse(["one", "two", "three"][number]).unwrap(),
        dialect: Dialect::Chat,
        base_url: UrlText::parse("https://models.example.com/v1").unwrap(),
        headers: BTreeMap::new(),
        header_hints: BTreeMap::new(),
        jurisdiction: None,
        region: None,
        timeouts: ModelTimeouts::default(),
        enabled: true,
        key_hint: "".into(),
        created_by: None,
        created_at: Timestamp::from_millis(0),
    }
}

/// A model that can do all, of the first provider.
fn model(name: &str) -> Model {
    Model {
        name: ModelName::parse(name).unwrap(),
        upstream: UpstreamId::from_bits(1),
        aliases: BTreeSet::new(),
        jurisdiction: "us".into(),
        context_window: 128_000,
        max_output: 8_192,
        capabilities: Capability::ALL.into(),
        retention: Retention::Days(None),
        quality: Quality { general: 50, by_class: BTreeMap::new() },
        prices: Some(prices(1_000_000, [])),
        figures: Figures::default(),
        enabled: true,
        created_by: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn prices(token: u64, tools: impl IntoIterator<Item = Box<str>>) -> Prices {
    let token = MicroUsd::new(token);
    Prices {
        tokens: TokenPrices { input: token, output: token, ..TokenPrices::default() },
        tools: tools.into_iter().map(|it| (it, MicroUsd::ZERO)).collect(),
        inference_geos: ["us", "de", "eu"].map(|it| (it.into(), Percent::WHOLE)).into(),
        ..Prices::default()
    }
}

fn demand() -> Demand {
    Demand::plain("any", 4_000, OutputBound { tokens: Some(100), likely: None })
}

fn class(constraints: Constraints) -> TaskClass {
    TaskClass {
        id: ClassId::parse("support.reply").unwrap(),
        name: None,
        constraints,
        created_by: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn profile(constraints: Constraints) -> Profile {
    Profile {
        id: ProfileId::from_bits(1),
        name: Label::parse("p").unwrap(),
        mode: None,
        constraints,
        created_by: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn some<T: Clone + Debug + 'static>(of: &'static [T]) -> impl Strategy<Value = Vec<T>> {
    // Half of the time nothing is asked, so that models qualify now and then.
    prop_oneof![Just(Vec::new()), subsequence(of, 0..=of.len())]
}

const NAMES: [&str; 6] = ["a", "b", "c", "one/a", "two/b", "nick"];
const LAWS: [&str; 4] = ["us", "de", "eu", "unknown"];

prop_compose! {
    fn any_constraints()(
        models in some(&NAMES),
        providers in some(&["one", "two", "three"]),
        jurisdictions in some(&LAWS),
        capabilities in some(&Capability::ALL),
        no_retention in prop::bool::weighted(0.2),
        min_quality in prop::option::weighted(0.3, 0_u8..=100),
        max_cost in prop::option::weighted(0.3, 0_u64..10_000),
        max_latency_ms in prop::option::weighted(0.3, 0_u64..1_000),
        human_oversight in prop::bool::weighted(0.2),
        objective in prop::option::of(select(&Objective::ALL[..])),
    ) -> Constraints {
        Constraints {
            models: models.into_iter().map(Into::into).collect(),
            providers: providers.into_iter().map(Into::into).collect(),
            jurisdictions: jurisdictions.into_iter().map(Into::into).collect(),
            no_retention,
            capabilities: capabilities.into_iter().collect(),
            min_quality,
            max_cost: max_cost.map(MicroUsd::new),
            max_latency_ms,
            human_oversight,
            objective,
        }
    }
}

prop_compose! {
    fn any_model()(
        name in select(vec!["a", "b", "c", "d"]),
        upstream in 1_u128..=3,
        alias in prop::bool::weighted(0.3),
        law in select(&LAWS[..]),
        (context_window, max_output) in (1_u64..3_000, 1_u64..400),
        capabilities in subsequence(&Capability::ALL[..], 2..=6),
        retention in select(vec![Retention::None, Retention::Days(None), Retention::Days(Some(30))]),
        quality in 0_u8..=100,
        here in prop::option::of(0_u8..=100),
        price in prop::option::weighted(0.9, 0_u64..2_000_000),
        (searches, geos) in (any::<bool>(), prop::bool::weighted(0.8)),
        enabled in prop::bool::weighted(0.8),
    ) -> Model {
        let tools = searches.then(|| "web_search".into());
        Model {
            upstream: UpstreamId::from_bits(upstream),
            aliases: alias.then(|| ModelName::parse("nick").unwrap()).into_iter().collect(),
            jurisdiction: law.into(),
            context_window,
            max_output,
            capabilities: capabilities.into_iter().collect(),
            retention,
            quality: Quality { general: quality, by_class: here.map(|it| (ClassId::parse("support.reply").unwrap(), it)).into_iter().collect() },
            prices: price.map(|it| {
                let mut prices = prices(it, tools);
                prices.inference_geos.retain(|_, _| geos);
                prices
            }),
            enabled,
            ..model(name)
        }
    }
}

/// Whether it refuses what single models refuse.
fn is_picky(model: &Model) -> bool {
    model.name.as_str() == "d"
}

prop_compose! {
    fn any_case()(
        models in prop::collection::vec(any_model(), 0..10),
        off in prop::option::weighted(0.2, 0_usize..3),
        class_of in prop::option::weighted(0.7, any_constraints()),
        profile_of in prop::option::weighted(0.5, any_constraints()),
        (text_bytes, output) in (0_u64..10_000, prop::option::of(1_u64..500)),
        needs in some(&Capability::ALL),
        (searches, dialect) in (prop::bool::weighted(0.2), select(vec![Dialect::Chat, Dialect::Messages])),
        (kept, named) in (prop::bool::weighted(0.2), prop::bool::weighted(0.2)),
        (mixed, formless, picked) in (any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.3)),
        (others, geo) in (prop::bool::weighted(0.2), prop::option::weighted(0.3, select(vec!["us", "de", "eu", "global"]))),
        input_tokens in prop::option::of(0_u64..4_000),
        (mode, objective) in (select(vec![Mode::Shadow, Mode::Enforce]), prop::option::of(select(&Objective::ALL[..]))),
        (oversight, downgrade) in (any::<bool>(), prop::bool::weighted(0.2)),
        (standings, reports) in (
            prop::collection::vec((1_u128..=3, select(vec!["a", "b", "c", "d"]), prop::option::of(0_u64..2_000), 0..3), 0..6),
            prop::collection::vec((0_usize..3, select(vec!["a", "b", "c", "d"]), 0_u64..60, 0_u64..60), 0..6),
        ),
    ) -> Case {
        let mut case = Case::new(Vec::new());
        let mut seen = BTreeSet::new();
        case.routing.models = models.into_iter().filter(|it| seen.insert((it.upstream, it.name.clone()))).collect();
        if mixed {
            case.routing.upstreams[1].dialect = Dialect::Messages;
        }
        if let Some(off) = off {
            case.routing.upstreams[off].enabled = false;
        }
        for (upstream, name, latency_ms, circuit) in standings {
            let circuit = [Circuit::Ok, Circuit::Degraded, Circuit::Open][usize::try_from(circuit).unwrap()];
            let name = ModelName::parse(name).unwrap();
            let standing = Standing { circuit, latency_ms, first_token_ms: latency_ms, ..Standing::default() };
            case.health.set(UpstreamId::from_bits(upstream), name, standing);
        }
        let id = ClassId::parse("support.reply").unwrap();
        for (number, name, accepted, rejected) in reports {
            case.yields.add(&id, ["one", "two", "three"][number], name, accepted, accepted + rejected);
        }
        let demand = Demand {
            text_bytes,
            output: OutputBound { tokens: output, likely: None },
            needs: needs.into_iter().collect(),
            server_tools: searches.then(|| ("web_search".into(), None)).into_iter().collect(),
            dialect,
            other_models: others.then_some("models"),
            kept_by: kept.then_some("store").into_iter().collect(),
            names_providers: named.then_some("provider"),
            no_form_in: formless.then_some(if dialect == Dialect::Chat { Dialect::Messages } else { Dialect::Chat }),
            particulars: picked.then_some(Particular::Stop).into_iter().collect(),
            inference_geo: geo.map(Into::into),
            ..demand()
        };
        Case { demand, input_tokens, class: class_of.map(class), profile: profile_of.map(profile), mode, objective, oversight, downgrade, ..case }
    }
}

/// What the contract asks of a model, said again without the judge's ways.
fn satisfies(case: &Case, it: &Candidate<'_>) -> bool {
    let sides = [case.class.as_ref().map(|it| &it.constraints), case.profile.as_ref().map(|it| &it.constraints)];
    let full = it.to_string();
    let named = |name: &str| {
        name == full || name == it.model.name.as_str() || it.model.aliases.iter().any(|alias| alias.as_str() == name)
    };
    let quality = case.class.as_ref().and_then(|class| it.model.quality.by_class.get(&class.id));
    let quality = *quality.unwrap_or(&it.model.quality.general);
    let cost = crate::state::gateway::price::worst_case(it.model, it.upstream.dialect, &case.demand).ok();
    let latency = case.health.of(it.upstream.id, &it.model.name).latency_ms;
    let law = &it.model.jurisdiction;
    let same_shape = it.upstream.dialect == case.demand.dialect;
    let geo = case.demand.inference_geo.as_deref().filter(|_| same_shape);
    let one = |side: &Constraints| {
        (side.models.is_empty() || side.models.iter().any(|it| named(it)))
            && (side.providers.is_empty() || side.providers.contains(it.upstream.name.as_str()))
            && (side.jurisdictions.is_empty()
                || side.jurisdictions.contains(law)
                || (side.jurisdictions.contains("eu") && &**law == "de"))
            && (side.jurisdictions.is_empty() || geo.is_none_or(|it| it == &**law || (it == "de" && &**law == "eu")))
            && (!side.no_retention || it.model.retention == Retention::None)
            && !(same_shape && side.no_retention && !case.demand.kept_by.is_empty())
            && side.capabilities.iter().all(|need| it.model.capabilities.contains(need))
            && side.min_quality.is_none_or(|least| quality >= least)
            && side.max_cost.is_none_or(|most| cost.is_some_and(|cost| cost <= most))
            && side.max_latency_ms.is_none_or(|most| latency.is_none_or(|ms| ms <= most))
            && (!side.human_oversight || case.oversight)
    };
    let input = case.input_tokens.unwrap_or_else(|| case.demand.text_bytes.div_ceil(4));
    let output = case.demand.output.tokens;
    sides.into_iter().flatten().all(one)
        && case.demand.needs.iter().all(|need| it.model.capabilities.contains(need))
        && input + output.unwrap_or(1) <= it.model.context_window
        && output.unwrap_or(1) <= it.model.max_output
        && cost.is_some()
        && (same_shape || case.demand.no_form_in.is_none())
        && (case.demand.particulars.is_empty() || !is_picky(it.model))
        && !(same_shape && case.demand.other_models.is_some())
        // Whoever then serves it, what that costs and under which law it is, nobody here knows.
        && !(same_shape && case.demand.names_providers.is_some())
        && it.model.enabled
        && it.upstream.enabled
}

proptest! {
    /// Every model is ranked that satisfies everything, and no other; of the others each says what it breaks.
    #[test]
    fn what_is_ranked_satisfies_everything_and_what_is_not_does_not(case in any_case()) {
        let ask = case.ask();
        let choice = choose(&ask).unwrap();
        prop_assert_eq!(choice.ranked.len() + choice.rejected.len(), case.routing.models.len());
        for it in &choice.ranked {
            prop_assert!(satisfies(&case, it), "{it}");
            prop_assert!(it.score <= 2_000_000 && (500..=2_000).contains(&it.multiplier));
        }
        for it in &choice.rejected {
            prop_assert!(!satisfies(&case, it), "{it}");
            prop_assert!(it.broken.constraints().count() > 0);
        }
        prop_assert_eq!(choice.binding.is_some(), choice.ranked.is_empty() && !case.routing.models.is_empty());
        prop_assert!(!choice.why().is_empty());
    }

    /// Every relaxation, made as it says, admits every model that it names; without one no model is one change away.
    #[test]
    fn every_relaxation_admits_what_it_names(case in any_case()) {
        let ask = case.ask();
        let choice = choose(&ask).unwrap();
        for relaxation in &choice.relaxations {
            prop_assert!(!relaxation.admits.is_empty());
            prop_assert!(!relaxation.change.to_string().is_empty());
            let mut changed = case.clone();
            changed.apply(&relaxation.change);
            let ranked = changed.ranked();
            for model in &relaxation.admits {
                prop_assert!(ranked.contains(&model.to_string()), "{} does not admit {model}", relaxation.change);
                // Nor is it refused once it is to be sent.
                let has_form = case.demand.no_form_in.is_none() || model.upstream.dialect == case.demand.dialect;
                prop_assert!(has_form, "{} leaves {model} without a form", relaxation.change);
                let is_taken = case.demand.particulars.is_empty() || !is_picky(model.model);
                prop_assert!(is_taken, "{} leaves {model} refusing it", relaxation.change);
            }
        }
        if let Some(first) = choice.relaxations.first() {
            let binding = choice.binding.unwrap();
            prop_assert!(binding == first.constraint || choice.rejected.iter().any(|it| it.broken.only_constraint() == Some(binding)));
        }
    }

    /// In shadow a call goes to the model it names and nowhere else, whatever policy says.
    #[test]
    fn in_shadow_a_call_goes_where_it_says(case in any_case(), number in any::<prop::sample::Index>(), bare in any::<bool>()) {
        prop_assume!(!case.routing.models.is_empty());
        let named = number.get(&case.routing.models).clone();
        let upstream = case.routing.upstreams.iter().find(|it| it.id == named.upstream).unwrap().clone();
        let name = if bare { named.name.to_string() } else { format!("{}/{}", upstream.name, named.name) };
        let case = Case { mode: Mode::Shadow, model: Some(name.clone()), ..case };
        let ask = case.ask();
        match choose(&ask) {
            Ok(choice) => {
                let targets = choice.targets();
                prop_assert!(!targets.is_empty());
                for it in targets {
                    prop_assert!(it.is_on() && it.model.name == named.name && (bare || it.to_string() == name));
                }
            }
            Err(off) => prop_assert!(off == NotServed::Off && (bare || !(named.enabled && upstream.enabled))),
        }
    }

    /// The order is total: it is the same whatever order the models stand in, and asking twice is asking once.
    #[test]
    fn the_order_is_total_and_stable(case in any_case(), turn in any::<prop::sample::Index>()) {
        let once = case.ranked();
        let mut turned = case.clone();
        if !turned.routing.models.is_empty() {
            let by = turn.index(turned.routing.models.len());
            turned.routing.models.rotate_left(by);
            turned.routing.models.reverse();
        }
        prop_assert_eq!(&once, &turned.ranked());
        prop_assert_eq!(&once, &case.ranked());
    }

    /// A model with an open circuit never comes before one without.
    #[test]
    fn open_circuits_come_last(case in any_case()) {
        let ask = case.ask();
        let choice = choose(&ask).unwrap();
        prop_assert!(choice.ranked.is_sorted_by_key(|it| it.circuit == Circuit::Open));
        if choice.objective == Objective::Cost && case.yields == Yields::default() {
            let well = choice.ranked.iter().filter(|it| it.circuit != Circuit::Open);
            prop_assert!(well.map(|it| it.score).is_sorted_by(|a, b| a >= b));
        }
    }

    /// No name makes choosing panic.
    #[test]
    fn any_name_is_known_or_not(case in any_case(), name in "\\PC{0,30}|one/.{0,10}") {
        let case = Case { model: Some(name), ..case };
        let _ = choose(&case.ask());
    }
}

/// The twelve constraints have the contract's words, each of its own bit.
#[test]
fn the_twelve_constraints_are_named() {
    let words: Vec<&str> = Constraint::ALL.into_iter().map(Constraint::as_str).collect();
    assert_eq!(
        words.join(" "),
        "models providers jurisdiction retention capabilities context quality cost latency human_oversight price enabled"
    );
    for constraint in Constraint::ALL {
        for holder in Holder::ALL {
            let mut broken = Broken::default();
            broken.insert(constraint, holder);
            assert_eq!((broken.only(), broken.only_constraint()), (Some((constraint, holder)), Some(constraint)));
        }
    }
}
