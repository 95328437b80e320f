//! Single choices, one thing at a time.

use super::*;

fn named(name: &str, change: impl FnOnce(&mut Model)) -> Model {
    let mut it = model(name);
    change(&mut it);
    it
}

/// Each objective favours what it says.
#[test]
fn objectives_favour_what_they_say() {
    let cheap = named("cheap", |it| it.prices = Some(prices(1_000, [])));
    let good = named("good", |it| it.quality.general = 95);
    let fast = named("fast", |it| it.quality.general = 40);
    let own = named("own", |it| {
        it.retention = Retention::None;
        it.quality.general = 30;
    });
    let mut case = Case::new(vec![good, own, fast, cheap]);
    for (name, ms) in [("cheap", 900), ("good", 1_000), ("fast", 90), ("own", 2_000)] {
        let standing = Standing { first_token_ms: Some(ms), ..Standing::default() };
        case.health.set(UpstreamId::from_bits(1), ModelName::parse(name).unwrap(), standing);
    }
    for (objective, first) in [
        (Objective::Cost, "one/cheap"),
        (Objective::Quality, "one/good"),
        (Objective::Latency, "one/fast"),
        (Objective::Sovereign, "one/own"),
    ] {
        case.objective = Some(objective);
        assert_eq!(case.ranked()[0], first, "{objective:?}");
    }
    case.objective = Some(Objective::Quality);
    case.downgrade = true;
    assert_eq!(case.ranked()[0], "one/cheap", "a budget asks for the cheapest, whatever the call wants");
}

/// Where latency is favoured a model that is known to be fast comes before one that is not known, once another is known to be slow;
/// one that is not known is asked before one that is known alone, and whole answers and streams are measured apart.
#[test]
fn what_is_not_measured_is_asked_once() {
    let models = vec!["one/b".into(), "one/a".into()];
    let mut case = Case::new(vec![model("a"), model("b"), model("c")]);
    case.class = Some(class(Constraints { models, ..Constraints::default() }));
    case.objective = Some(Objective::Latency);
    let known = |case: &mut Case, name: &str, first: Option<u64>, whole: Option<u64>| {
        let standing = Standing { first_token_ms: first, whole_ms: whole, ..Standing::default() };
        case.health.set(UpstreamId::from_bits(1), ModelName::parse(name).unwrap(), standing);
        case.ranked()[0].clone()
    };
    assert_eq!(case.ranked()[0], "one/b", "nobody is known");
    assert_eq!(known(&mut case, "b", None, Some(1_500)), "one/a", "it may be faster");
    assert_eq!(known(&mut case, "a", Some(1), None), "one/a", "and at its best it is");
    assert_eq!(known(&mut case, "a", Some(1), Some(9_000)), "one/b");
    case.demand.stream = true;
    assert_eq!(case.ranked()[0], "one/b", "its first token is not known");
    assert_eq!(known(&mut case, "b", Some(100), None), "one/a");
    let (refusing, standing) = (ModelName::parse("a").unwrap(), Standing { is_called: true, ..Standing::default() });
    case.health.set(UpstreamId::from_bits(1), refusing, standing);
    assert_eq!(case.ranked()[0], "one/b", "it was asked, and told nothing");
}

/// The call's objective wins over the class's, that over the profile's, that over the workspace's.
#[test]
fn the_nearest_objective_holds() {
    let mut case = Case::new(Vec::new());
    let favours = |case: &Case| choose(&case.ask()).unwrap().objective;
    case.routing.objective = Objective::Sovereign;
    assert_eq!(favours(&case), Objective::Sovereign);
    case.profile = Some(profile(Constraints { objective: Some(Objective::Latency), ..Constraints::default() }));
    assert_eq!(favours(&case), Objective::Latency);
    case.class = Some(class(Constraints { objective: Some(Objective::Quality), ..Constraints::default() }));
    assert_eq!(favours(&case), Objective::Quality);
    case.objective = Some(Objective::Balanced);
    assert_eq!(favours(&case), Objective::Balanced);
}

/// Of equals the class's order of preference decides, then the name.
#[test]
fn ties_go_by_preference_and_then_by_name() {
    let mut case = Case::new(vec![model("c"), model("a"), model("b")]);
    assert_eq!(case.ranked(), ["one/a", "one/b", "one/c"]);
    let models = vec!["one/c".into(), "b".into(), "a".into()];
    case.class = Some(class(Constraints { models, ..Constraints::default() }));
    for objective in Objective::ALL {
        case.objective = Some(objective);
        assert_eq!(case.ranked(), ["one/c", "one/b", "one/a"], "{objective:?}");
    }
}

/// A yield moves a model past another that is as good otherwise.
#[test]
fn yield_is_folded_in() {
    let mut case = Case::new(vec![model("a"), model("b")]);
    case.class = Some(class(Constraints::default()));
    let id = ClassId::parse("support.reply").unwrap();
    case.yields.add(&id, "one", "a", 10, 40);
    case.yields.add(&id, "one", "b", 30, 40);
    let ask = case.ask();
    let choice = choose(&ask).unwrap();
    let all: Vec<_> = choice.ranked.iter().map(|it| (it.to_string(), thousandths(it.multiplier))).collect();
    assert_eq!(all, [("one/b".to_owned(), "1.500".to_owned()), ("one/a".to_owned(), "0.500".to_owned())]);
}

/// `provider/model`, the bare id at all who have it, an alias: in this order; an unknown name is told its nearest.
#[test]
fn names_mean_what_they_say() {
    let at = |name: &str, upstream: u128| named(name, |it| it.upstream = UpstreamId::from_bits(upstream));
    let mut nick = at("gpt-large-2026", 2);
    nick.aliases.insert(ModelName::parse("gpt-large").unwrap());
    let mut case = Case::new(vec![at("gpt-small", 1), at("gpt-small", 3), nick, at("one/gpt-small", 2)]);
    case.mode = Mode::Shadow;
    for (name, meant) in [
        ("one/gpt-small", &["one/gpt-small"][..]),
        ("gpt-small", &["one/gpt-small", "three/gpt-small"]),
        ("gpt-large", &["two/gpt-large-2026"]),
        ("two/gpt-large", &["two/gpt-large-2026"]),
        ("two/one/gpt-small", &["two/one/gpt-small"]),
    ] {
        case.model = Some(name.to_owned());
        let ask = case.ask();
        let targets: Vec<_> = choose(&ask).unwrap().targets().iter().map(ToString::to_string).collect();
        assert_eq!(targets, meant, "{name}");
    }
    for (name, nearest) in [("gpt-smal", Some("gpt-small")), ("one/gpt-smol", Some("one/gpt-small")), ("zzz", None)] {
        case.model = Some(name.to_owned());
        let unknown = NotServed::Unknown { nearest: nearest.map(Into::into) };
        assert_eq!(choose(&case.ask()).unwrap_err(), unknown, "{name}");
    }
    let open = Standing { circuit: Circuit::Open, ..Standing::default() };
    case.health.set(UpstreamId::from_bits(1), ModelName::parse("gpt-small").unwrap(), open);
    case.model = Some("gpt-small".to_owned());
    let ask = case.ask();
    let targets: Vec<_> = choose(&ask).unwrap().targets().iter().map(ToString::to_string).collect();
    assert_eq!(targets, ["three/gpt-small", "one/gpt-small"]);
}

/// A list means what a call that names the same would: another's own id that reads like a provider's model is not on it.
#[test]
fn a_list_means_what_a_call_does() {
    let at = |upstream: u128, name: &str, alias: Option<&str>| {
        named(name, |it| {
            it.upstream = UpstreamId::from_bits(upstream);
            it.aliases = alias.map(|it| ModelName::parse(it).unwrap()).into_iter().collect();
        })
    };
    let models = vec![at(1, "m", Some("quick")), at(2, "one/m", None), at(2, "quick", None), at(3, "x", Some("one/m"))];
    for (list, ranked) in [
        (&["one/m"][..], &["one/m"][..]),
        (&["two/one/m"], &["two/one/m"]),
        (&["quick"], &["two/quick"]),
        (&["one/quick", "quick"], &["one/m", "two/quick"]),
        (&["m", "x", "one/m"], &["one/m", "three/x"]),
    ] {
        let mut case = Case::new(models.clone());
        let list = list.iter().map(|it| (*it).into()).collect();
        case.class = Some(class(Constraints { models: list, ..Constraints::default() }));
        assert_eq!(case.ranked(), ranked);
        case.profile = case.class.clone().map(|it| profile(it.constraints));
        assert_eq!(case.ranked(), ranked);
    }
}

/// What is switched off is not called in shadow either; in enforcement another model serves.
#[test]
fn what_is_switched_off_is_not_called() {
    let mut case = Case::new(vec![named("a", |it| it.enabled = false), model("b")]);
    case.model = Some("a".to_owned());
    assert_eq!(case.ranked(), ["one/b"]);
    case.mode = Mode::Shadow;
    assert_eq!(choose(&case.ask()).unwrap_err(), NotServed::Off);
}

/// The binding constraint is the one whose removal admits most; each single change says what to change to what.
#[test]
fn the_binding_constraint_admits_most() {
    let mut case = Case::new(vec![
        named("a", |it| it.quality.general = 60),
        named("b", |it| it.quality.general = 70),
        named("c", |it| it.jurisdiction = "de".into()),
    ]);
    case.routing.models[2].quality.general = 90;
    let laws = ["us".into()].into();
    case.class = Some(class(Constraints { min_quality: Some(80), jurisdictions: laws, ..Constraints::default() }));
    let ask = case.ask();
    let choice = choose(&ask).unwrap();
    assert_eq!(choice.binding, Some(Constraint::Quality));
    let changes: Vec<_> = choice.relaxations.iter().map(|it| (it.constraint, it.change.to_string())).collect();
    assert_eq!(
        changes,
        [
            (Constraint::Jurisdiction, "add `de` to the jurisdictions of the task class".to_owned()),
            (Constraint::Quality, "lower `minQuality` of the task class to 70".to_owned()),
        ]
    );
}

/// A law that class and profile both exclude takes two changes, so no single one is offered.
#[test]
fn two_changes_are_no_relaxation() {
    let mut case = Case::new(vec![model("a")]);
    let only = |law: &str| Constraints { jurisdictions: [law.into()].into(), ..Constraints::default() };
    case.class = Some(class(only("de")));
    case.profile = Some(profile(only("eu")));
    let ask = case.ask();
    let choice = choose(&ask).unwrap();
    assert!(choice.relaxations.is_empty());
    assert_eq!(choice.binding, Some(Constraint::Jurisdiction));
}

/// What lets the provider choose another model, or another law where laws are listed, binds every provider that it would reach,
/// and is to be left out; one whose shape has no such member is not reached.
#[test]
fn what_a_provider_may_choose_is_left_out() {
    let mut case = Case::new(vec![named("a", |it| it.jurisdiction = "eu".into())]);
    case.demand.other_models = Some("models");
    let told = |case: &Case| {
        let choice = choose(&case.ask()).unwrap();
        let changes: Vec<_> = choice.relaxations.iter().map(|it| (it.constraint, it.change.to_string())).collect();
        (choice.binding, changes)
    };
    assert_eq!(told(&case), (Some(Constraint::Models), vec![(Constraint::Models, "leave out `models`".to_owned())]));
    case.demand.dialect = Dialect::Messages;
    assert_eq!(case.ranked(), ["one/a"]);
    case.demand = Demand { inference_geo: Some("us".into()), ..demand() };
    assert_eq!(case.ranked(), ["one/a"]);
    case.class =
        Some(class(Constraints { jurisdictions: ["eu".into(), "us".into()].into(), ..Constraints::default() }));
    let left_out = vec![(Constraint::Jurisdiction, "leave out `inference_geo`".to_owned())];
    assert_eq!(told(&case), (Some(Constraint::Jurisdiction), left_out));
    case.demand.inference_geo = Some("de".into());
    assert_eq!(case.ranked(), ["one/a"]);
}

/// What has a provider keep what it is sent, or names those behind it, binds where a class or profile speaks of that, at providers
/// of the request's shape; it is to be left out.
#[test]
fn what_a_provider_is_to_keep_is_left_out() {
    let told = |case: &Case| {
        let choice = choose(&case.ask()).unwrap();
        let changes: Vec<_> = choice.relaxations.iter().map(|it| it.change.to_string()).collect();
        (choice.binding, changes)
    };
    let limits = Constraints::default;
    let none = Constraints { no_retention: true, ..limits() };
    let own = Constraints { providers: ["one".into()].into(), ..limits() };
    let laws = Constraints { jurisdictions: ["us".into()].into(), ..limits() };
    let both = Constraints { providers: own.providers.clone(), ..laws.clone() };
    let keeps = || Demand { kept_by: vec!["store", "prompt_cache_retention"], ..demand() };
    let names = || Demand { names_providers: Some("provider"), ..demand() };
    let everywhere = || Demand { inference_geo: Some("de".into()), ..names() };
    for (asked, limits, binds, change) in [
        (keeps(), &none, Some(Constraint::Retention), "leave out `store` and `prompt_cache_retention`"),
        (keeps(), &both, None, ""),
        (names(), &own, Some(Constraint::Providers), "leave out `provider`"),
        (names(), &laws, Some(Constraint::Jurisdiction), "leave out `provider`"),
        (names(), &both, Some(Constraint::Jurisdiction), "leave out `provider`"),
        (everywhere(), &laws, Some(Constraint::Jurisdiction), "leave out `inference_geo` and `provider`"),
        (names(), &none, Some(Constraint::Price), "leave out `provider`"),
        (demand(), &none, None, ""),
    ] {
        let mut case = Case::new(vec![named("a", |it| it.retention = Retention::None)]);
        (case.demand, case.profile) = (asked, Some(profile(limits.clone())));
        let changes: Vec<_> = (!change.is_empty()).then(|| change.to_owned()).into_iter().collect();
        assert_eq!(told(&case), (binds, changes), "{:?} under {limits:?}", case.demand);
        case.demand.dialect = Dialect::Messages;
        assert_eq!(case.ranked(), ["one/a"]);
    }
}

/// What only the messages shape has goes to its providers from a client of the chat shape too, and has them keep what they are sent
/// as much.
#[test]
fn what_goes_on_in_translation_is_kept_too() {
    for (member, is_kept) in [("container", true), ("mcp_servers", true), ("store", false)] {
        let demand = Demand { kept_by: vec![member], ..demand() };
        assert_eq!(
            (demand.is_kept_at(Dialect::Messages), demand.is_kept_at(Dialect::Chat)),
            (is_kept, true),
            "{member}"
        );
        let there = Demand { dialect: Dialect::Messages, ..demand };
        assert_eq!((there.is_kept_at(Dialect::Messages), there.is_kept_at(Dialect::Chat)), (true, false), "{member}");
    }
}

/// A catalogue of the largest size, under lists of the largest size, is no trouble.
#[test]
fn two_thousand_models_are_chosen_from() {
    let mut case = Case::new((0..2_000).map(|it| model(&format!("m{it}"))).collect());
    let models = (1_800..2_000).map(|it| format!("one/m{it}").into()).collect();
    case.class = Some(class(Constraints { models, ..Constraints::default() }));
    assert_eq!(case.ranked().len(), 200);
    assert_eq!(case.ranked()[0], "one/m1800");
}

/// What a call costs is told of a call that is made; of one that is only thought of, its size is told with it.
#[test]
fn a_cost_is_told_with_the_size_that_it_is_of() {
    let mut case = Case::new(vec![model("a")]);
    let told = |case: &Case, what: &str| {
        let why = choose(&case.ask()).unwrap().why();
        assert_eq!(
            why.iter().filter(|it| it.starts_with(what) && it.contains(" costs at most ")).count(),
            1,
            "{why:?}"
        );
    };
    told(&case, "the call ");
    case.input_tokens = Some(7);
    case.demand.output = OutputBound { tokens: Some(5), likely: Some(9) };
    told(&case, "a call of 7 tokens in and 5 out ");
    case.demand.output = OutputBound { tokens: None, likely: None };
    told(&case, "a call of 7 tokens in, and as many out as the model gives, ");
}
