//! Model calls by their commands: what they come to, and where that is counted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_core::command::{Command, Reply};
use svc_core::dlp::Findings;
use svc_core::rules::gateway::admit::{Admission, AdmitCall, Admitted, Place};
use svc_core::rules::gateway::billing::ImportBill;
use svc_core::rules::gateway::budgets::{CreateBudget, RemoveBudget};
use svc_core::rules::gateway::finish::{FinishCall, Served, Tried};
use svc_core::rules::gateway::models::{self, NewModel};
use svc_core::rules::gateway::outcome::ReportOutcome;
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::gateway::retry::{Retry, RetryCall};
use svc_core::rules::gateway::routing::{self, Edit, EditRouting};
use svc_core::rules::gateway::upstreams::{self, NewKey};
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey as NewGatewayKey};
use svc_core::state::gate::ClientSession;
use svc_core::state::gateway::{
    Attempt, BudgetPeriod, BudgetScope, Call, CallEnd, Cell, DIFFERENCES_MAX, DayOfModel, Demand, Dialect, Ladder,
    OutputBound, Prices, Received, Routing, Service, Sums, Task, TaskStatus, TokenPrices, Usage, Yield, Yields,
};
use svc_core::state::people::{DataLoss, KeyScope, Plans};
use svc_core::store::Row as _;
use svc_core::testing::world::World;
use svc_core::turn::Decide as _;
use svc_core::value::digest::Digest;
use svc_core::value::text::{ClassId, ModelName, TaskId, UpstreamName, UrlText};
use svc_core::value::{MicroUsd, Span};

/// How long a call may take.
const TOTAL_MS: u64 = 900_000;

/// A workspace with the provider `one`, of which each token costs a micro, and a key for its models.
struct Office {
    world: World,
    key: CallKey,
}

/// A price of so many micros a token.
const fn micros(each: u64) -> MicroUsd {
    MicroUsd::new(each * 1_000_000)
}

fn plain_prices() -> Prices {
    let tokens = TokenPrices { input: micros(1), output: micros(1), ..TokenPrices::default() };
    Prices { tokens, ..Prices::default() }
}

/// A provider of this name.
fn provider(name: &str) -> Vec<upstreams::Set> {
    vec![
        upstreams::Set::Name(UpstreamName::parse(name).unwrap()),
        upstreams::Set::Kind(Dialect::Chat),
        upstreams::Set::BaseUrl(UrlText::parse("https://models.example.com/v1").unwrap()),
        upstreams::Set::Key(NewKey { sealed: "sealed".into(), hint: "wxyz".into() }),
    ]
}

impl Office {
    /// One with these models.
    fn new(models: &[(&str, Prices)]) -> Self {
        let mut world = World::new();
        let workspace = world.workspace();
        let mut edit = |edit| world.run(EditRouting { by: By::Program, workspace, edit }).unwrap();
        let upstream = edit(Edit::CreateUpstream(provider("one"))).upstream.unwrap();
        for (name, prices) in models {
            let set = vec![models::Set::Prices(Some(Box::new(prices.clone())))];
            let name = ModelName::parse(name).unwrap();
            edit(Edit::CreateModel(NewModel { upstream, name, known: Vec::new(), set }));
        }
        let key = CreateKey::new(workspace, By::Program, KeyScope::Inference, NewGatewayKey::of("ask_calls"));
        let made = world.run(key).unwrap();
        Self { world, key: CallKey { row: made.id, binding: Arc::new(made.binding.clone()) } }
    }

    /// The same, whose calls are of a class.
    fn classed(models: &[(&str, Prices)]) -> Self {
        let mut office = Self::new(models);
        let (workspace, class) = (office.world.workspace(), ClassId::parse("support.reply").unwrap());
        let default = routing::Set::DefaultClass(Some(class.clone()));
        for edit in [Edit::CreateClass(class, Vec::new()), Edit::Change(vec![default])] {
            office.world.run(EditRouting { by: By::Program, workspace, edit }).unwrap();
        }
        office
    }

    /// Moves a call whose try failed to another place, and gives it as whoever carries it has it from then on.
    fn moved(&mut self, admitted: &Admitted, demand: &Demand, tried: Tried, to: Place) -> Admitted {
        let retry = RetryCall {
            caller: self.key.clone(),
            call: admitted.call.id,
            demand: Arc::new(demand.clone()),
            failed: vec![tried],
            told: 0,
            routing: Arc::clone(&admitted.routing),
            to,
            rivals: Arc::clone(&admitted.rivals),
            pace: 0,
            total_ms: TOTAL_MS,
            oversight: false,
            scanned_under: DataLoss::Off,
        };
        let Retry::Moved(call, None) = self.world.run(retry).unwrap() else { unreachable!("no budget") };
        Admitted { call, place: to, places: vec![to], ..admitted.clone() }
    }

    /// Admits a call of a task, which may take so many bytes in.
    fn admit(&mut self, task: &str, demand: &Demand) -> Admitted {
        let command = AdmitCall {
            caller: self.key.clone(),
            demand: Arc::new(demand.clone()),
            class: None,
            task: Some(TaskId::parse(task).unwrap()),
            objective: None,
            oversight: false,
            session: None,
            health: Arc::default(),
            findings: Findings::default(),
            scanned_under: DataLoss::Off,
            plans: Plans::default(),
            total_ms: TOTAL_MS,
            dry: false,
            count: false,
        };
        match self.world.run(command).unwrap() {
            Admission::Admitted(admitted) => *admitted,
            other => unreachable!("{other:?}"),
        }
    }

    /// Ends a call.
    fn finish(&mut self, admitted: &Admitted, end: CallEnd, served: Option<Served>, failed: Vec<Tried>) -> Arc<Call> {
        self.world
            .run(FinishCall {
                call: admitted.call.id,
                end,
                served,
                failed,
                told: admitted.call.attempts.len(),
                first_token_ms: Some(1),
                duration_ms: 2,
                overhead_ms: 0,
            })
            .unwrap()
            .call
    }

    /// Makes a call of a task that used so many tokens of input.
    fn call(&mut self, task: &str, model: &str, input: u64) -> Arc<Call> {
        let demand = demand(model);
        let admitted = self.admit(task, &demand);
        self.finish(&admitted, CallEnd::Done, Some(served(&admitted, &demand, Some(used(input)))), Vec::new())
    }

    /// The sums of all days, keys and models.
    fn sums(&mut self) -> Sums {
        self.sums_of(|_| true)
    }

    /// The sums of the cells that are wanted.
    fn sums_of(&mut self, wanted: impl Fn(&Cell) -> bool) -> Sums {
        let rows = self.world.rows();
        let mut sums = Sums::default();
        let cells = rows.iter().filter_map(|(.., record)| Cell::peel(record));
        cells.filter(|it| wanted(it)).for_each(|it| sums.add(&it.sums));
        sums
    }

    /// Reports what came of a task.
    fn report(&mut self, task: &str, status: TaskStatus) {
        let (caller, task) = (self.key.clone(), TaskId::parse(task).unwrap());
        self.world.run(ReportOutcome { caller, task, status }).unwrap();
    }

    fn task(&mut self, id: &str) -> Arc<Task> {
        let workspace = self.world.workspace();
        self.world.row(Task::key_of(workspace, &TaskId::parse(id).unwrap()))
    }
}

/// A question of forty bytes.
fn demand(model: &str) -> Demand {
    Demand::plain(model, 40, OutputBound { tokens: Some(100_000), likely: None })
}

fn used(input: u64) -> Usage {
    Usage { input, ..Usage::default() }
}

/// What came of a call at the first of its places; nothing was heard where no usage is given.
fn served(admitted: &Admitted, demand: &Demand, usage: Option<Usage>) -> Served {
    Served {
        demand: Arc::new(demand.clone()),
        routing: Arc::clone(&admitted.routing),
        place: admitted.places[0],
        usage,
        status: usage.map(|_| 200),
        received: Received::default(),
        tools: BTreeMap::new(),
        brought: BTreeSet::new(),
        service: Service::default(),
    }
}

/// A try at the first of a call's places that was sent and never answered.
fn lost(admitted: &Admitted, demand: &Demand) -> Tried {
    let target = admitted.call.target.clone().unwrap();
    let (upstream, provider, model) = (Some(target.upstream), target.provider, target.model);
    let (error, cost, usage) = (Some("lost".into()), MicroUsd::ZERO, Usage::default());
    let attempt = Attempt { upstream, provider, model, status: None, ms: 1, error, cost, usage, unpriced: false };
    Tried { attempt, used: Some(served(admitted, demand, None)) }
}

/// A call that was taken for lost and ends after all is one call in every sum: what it was taken for is gone from them, but for
/// what it was charged, which budgets keep too: what that is beyond what it came to is an estimate still.
#[test]
fn a_late_end_is_counted_once() {
    for (input, whole) in [(300_000, 300_000), (7, 0)] {
        let mut office = Office::new(&[("a", plain_prices())]);
        let demand = demand("a");
        let admitted = office.admit("tsk_late", &demand);
        office.world.advance(Span::minutes(17));
        let lapsed: Arc<Call> = office.world.row(admitted.call.id);
        let before = office.sums();
        assert_eq!((before.calls, before.tasks, before.cost, before.estimated), (1, 1, lapsed.cost, lapsed.cost));
        assert!(lapsed.usage.estimated && lapsed.cost > MicroUsd::new(7), "{lapsed:?}");
        let answer = served(&admitted, &demand, Some(used(input)));
        let call = office.finish(&admitted, CallEnd::Done, Some(answer.clone()), Vec::new());
        assert_eq!((call.cost.get(), call.usage), (input, used(input)));
        let charged = lapsed.cost.max(MicroUsd::new(whole));
        let sums = office.sums();
        let left = charged.less(call.cost);
        assert_eq!((sums.calls, sums.tasks, sums.cost, sums.estimated), (1, 1, charged, left), "{sums:?}");
        assert_eq!((sums.usage.input, sums.usage.output), (input, 0), "{sums:?}");
        assert_eq!(office.task("tsk_late").spent, charged);
        office.finish(&admitted, CallEnd::Done, Some(answer), Vec::new());
        assert_eq!(office.sums(), sums, "and told again it changes nothing");
    }
}

/// What a try before was charged stays charged where the one after it lapses and ends after all; a try that is told twice, as
/// nobody heard that it was kept, is charged once.
#[test]
fn what_was_charged_before_stays() {
    for lapses in [false, true] {
        let mut office = Office::new(&[("a", plain_prices())]);
        let demand = demand("a");
        let mut admitted = office.admit("tsk_again", &demand);
        let tried = lost(&admitted, &demand);
        let call = office.moved(&admitted, &demand, tried.clone(), admitted.places[0]).call;
        // A quarter of forty bytes.
        assert_eq!((call.cost.get(), call.usage.input, call.attempts.len()), (10, 10, 1));
        if lapses {
            office.world.advance(Span::minutes(17));
            admitted.call = office.world.row(call.id);
            assert!(!admitted.call.is_running());
        } else {
            // Whoever ends it has not heard that the try is kept.
            assert_eq!(admitted.call.attempts.len(), 0);
        }
        let told = if lapses { Vec::new() } else { vec![tried] };
        let answer = served(&admitted, &demand, Some(used(300_000)));
        let ended = office.finish(&admitted, CallEnd::Done, Some(answer), told);
        assert_eq!((ended.cost.get(), ended.usage.input, ended.attempts.len()), (300_010, 300_010, 1), "{ended:?}");
        assert_eq!((office.task("tsk_again").spent.get(), office.sums().cost.get()), (300_010, 300_010));
        assert_eq!(office.sums().estimated.get(), 10, "the try alone is an estimate");
    }
}

/// A place of the model with this name.
fn place_of(admitted: &Admitted, model: &str) -> Place {
    *admitted.rivals.iter().find(|it| admitted.at(it).is_some_and(|(_, it)| it.name.as_str() == model)).unwrap()
}

/// Waste is told by the model that answered: what its own prices save, no more than it cost, and not that a model would have done for
/// less which was tried and failed.
#[test]
fn waste_is_told_by_the_model_that_answered() {
    let cached = |each: u64| {
        let tokens = TokenPrices { cached_input: Some(MicroUsd::ZERO), ..plain_prices().tokens };
        Prices { tokens: TokenPrices { input: micros(each), output: micros(each), ..tokens }, ..Prices::default() }
    };
    // Where it goes first and where it is answered, and what could have been saved of what it cost.
    let cases = [("a", "b", 0, 2_000), ("b", "a", 0, 200_000), ("a", "a", 198_000, 200_000)];
    for (first, last, oversized, missed) in cases {
        let mut office = Office::classed(&[("a", cached(100)), ("b", cached(1))]);
        let demand = |name: &str| Demand {
            output: OutputBound { tokens: Some(10), likely: None },
            digest: Digest::of(name),
            ..demand(first)
        };
        let (opening, demand) = (demand("opening"), demand("asked"));
        let opened = office.admit("tsk_waste", &opening);
        office.finish(&opened, CallEnd::Done, Some(served(&opened, &opening, Some(used(0)))), Vec::new());
        let mut admitted = office.admit("tsk_waste", &demand);
        if first != last {
            let refused = Tried { used: None, ..lost(&admitted, &demand) };
            admitted = office.moved(&admitted, &demand, refused, place_of(&admitted, last));
        }
        let answer = served(&admitted, &demand, Some(used(2_000)));
        let call = office.finish(&admitted, CallEnd::Done, Some(answer), Vec::new());
        let waste = office.sums().waste;
        let told = [2, 4].map(|kind: usize| (waste[kind].count, waste[kind].savable.get()));
        assert_eq!(told, [(u64::from(oversized > 0), oversized), (1, missed)], "{first} {last}");
        assert!(waste.iter().all(|it| it.savable <= call.cost), "{waste:?}");
    }
}

/// Moving a call on permits it: what that found absent is a budget that was removed meanwhile, which never comes back.
#[test]
fn a_call_moves_on_without_a_budget_that_is_gone() {
    let mut office = Office::classed(&[("a", plain_prices()), ("b", plain_prices())]);
    let (workspace, by, scope) = (office.world.workspace(), By::Program, BudgetScope::Workspace);
    let (amount, period, ladder) = (micros(1_000_000), BudgetPeriod::Day, Ladder::default());
    let create = CreateBudget { workspace, by, scope, key: None, amount, period, ladder, owner: None };
    let budget = office.world.run(create).unwrap().budget.id;
    let demand = Demand { output: OutputBound { tokens: Some(10), likely: None }, ..demand("a") };
    let admitted = office.admit("tsk_gone", &demand);
    assert_eq!(admitted.call.budgets.len(), 1);
    office.world.run(RemoveBudget { workspace, by: By::Program, budget }).unwrap();
    let moved = office.moved(&admitted, &demand, lost(&admitted, &demand), place_of(&admitted, "b"));
    assert_eq!(moved.call.attempts.len(), 1);
    assert!(Command::permits(&Reply::Retried(Box::new(Retry::Moved(moved.call, None)))));
    assert!(!Command::permits(&Reply::Retried(Box::new(Retry::Barred("it is gone")))));
}

/// A call that used something without a price counts once as such, with the model that has none: that of the first try which did, be it
/// that another answered.
#[test]
fn an_unpriced_call_counts_with_the_model_that_has_no_price() {
    let tools = [("code".into(), MicroUsd::new(1))].into();
    let priced = Prices { tools, ..plain_prices() };
    for (last, at_last) in [("b", 0), ("a", 0)] {
        let mut office = Office::classed(&[("a", plain_prices()), ("b", priced.clone())]);
        let demand = Demand {
            output: OutputBound { tokens: Some(10), likely: None },
            server_tools: [("code".into(), None)].into(),
            ..demand("a")
        };
        let admitted = office.admit("tsk_unpriced", &demand);
        let to = if last == "a" { admitted.places[0] } else { place_of(&admitted, last) };
        let tried = lost(&admitted, &demand);
        let admitted = office.moved(&admitted, &demand, tried, to);
        let call = office.finish(&admitted, CallEnd::Done, Some(served(&admitted, &demand, Some(used(7)))), Vec::new());
        assert!(call.unpriced);
        let of = |office: &mut Office, model: &str| office.sums_of(|it| it.model.as_deref() == Some(model)).unpriced;
        assert_eq!((of(&mut office, "one/a"), of(&mut office, "one/b")), (1, at_last), "{last}");
    }
}

/// A call that is made again because its provider broke off repeats nothing: there was no answer to keep. What is asked again after a
/// whole answer does.
#[test]
fn a_call_that_broke_off_is_not_repeated() {
    let mut office = Office::new(&[("a", plain_prices())]);
    let demand = demand("a");
    for (end, repeats) in [(CallEnd::Cut, 0), (CallEnd::HungUp, 0), (CallEnd::Done, 0), (CallEnd::Cut, 1)] {
        let admitted = office.admit("tsk_asked", &demand);
        office.finish(&admitted, end, Some(served(&admitted, &demand, Some(used(7)))), Vec::new());
        assert_eq!(office.sums().waste[0].count, repeats, "{end:?}");
    }
}

/// A task is counted once, with the first of its calls that is: whichever of those that ran at once ends first, and though the
/// first of all was refused and counts nowhere.
#[test]
fn a_task_is_counted_once() {
    let mut office = Office::new(&[("a", plain_prices())]);
    let demand = demand("a");
    let both = [(); 2].map(|()| office.admit("tsk_both", &demand));
    assert_eq!(office.sums().tasks, 0);
    for (number, admitted) in both.iter().rev().enumerate() {
        let answer = served(admitted, &demand, Some(used(7)));
        office.finish(admitted, CallEnd::Done, Some(answer), Vec::new());
        let sums = office.sums();
        assert_eq!((sums.tasks, sums.calls), (1, number as u64 + 1), "the first that ends counts it");
    }
    let refused = office.admit("tsk_refused", &demand);
    office.finish(&refused, CallEnd::Refused, None, Vec::new());
    assert_eq!((office.sums().tasks, office.sums().calls), (1, 2), "what was refused counts nowhere");
    for tasks in [2, 2] {
        office.call("tsk_refused", "a", 7);
        assert_eq!(office.sums().tasks, tasks);
    }
    assert_eq!((office.task("tsk_refused").calls, office.sums().calls), (3, 4));
}

/// A later report takes the earlier one back from the model where that was counted, though the task went to another meanwhile
/// and has cost more: in reports, and in what models have yielded.
#[test]
fn a_later_report_takes_the_earlier_one_back() {
    let mut office = Office::new(&[("a", plain_prices()), ("b", plain_prices())]);
    let workspace = office.world.workspace();
    let told = |office: &mut Office, model: &str| {
        let sums = office.sums_of(|it| it.model.as_deref() == Some(model));
        let row = office.world.row::<Yields>(workspace);
        let last = row.lines.iter().find(|it| *it.model == *model).and_then(|it| it.days.last()).map_or(0, |it| it.0);
        let yielded = row.of(None, model, last);
        assert_eq!(yielded.reported, sums.reported(), "{model}");
        let abandoned = sums.waste[1];
        (sums.outcomes, (abandoned.count, abandoned.cost.get()), yielded.accepted)
    };
    office.call("tsk_moved", "a", 7);
    office.report("tsk_moved", TaskStatus::Abandoned);
    assert_eq!(told(&mut office, "one/a"), ([0, 0, 0, 1], (1, 7), 0));
    office.world.advance(Span::hours(30));
    office.call("tsk_moved", "b", 100);
    office.report("tsk_moved", TaskStatus::Accepted);
    assert_eq!(told(&mut office, "one/a"), ([0; 4], (0, 0), 0), "it is taken back whole");
    assert_eq!(
        told(&mut office, "one/b"),
        ([1, 0, 0, 0], (0, 0), 1),
        "and the model of the last answer has the new one"
    );
    office.report("tsk_moved", TaskStatus::Abandoned);
    assert_eq!(told(&mut office, "one/b"), ([0, 0, 0, 1], (1, 107), 0));
    office.report("tsk_moved", TaskStatus::Rejected);
    assert_eq!((told(&mut office, "one/b").0, office.sums().reported()), ([0, 1, 0, 0], 1));
    let none = Yield { reported: 0, accepted: 0 };
    assert_eq!(office.world.row::<Yields>(workspace).of(None, "one/a", i64::MAX), none);
}

/// A provider that is made anew under a name has the traffic of its own and no other's, on the same day too, and what an earlier one's
/// models have yielded goes with them.
#[test]
fn a_name_that_is_given_again_begins_anew() {
    let mut office = Office::new(&[("a", plain_prices())]);
    let workspace = office.world.workspace();
    let first = office.world.row::<Routing>(workspace).upstreams[0].id;
    office.call("tsk_first", "a", 7);
    office.report("tsk_first", TaskStatus::Rejected);
    assert_eq!(office.world.row::<Yields>(workspace).lines.len(), 1);
    let mut edit = |edit| office.world.run(EditRouting { by: By::Program, workspace, edit }).unwrap();
    edit(Edit::RemoveModel(models::Place { provider: "one".into(), model: "a".into() }));
    edit(Edit::RemoveUpstream(first));
    let second = edit(Edit::CreateUpstream(provider("one"))).upstream.unwrap();
    let set = vec![models::Set::Prices(Some(Box::new(plain_prices())))];
    let name = ModelName::parse("a").unwrap();
    edit(Edit::CreateModel(NewModel { upstream: second, name, known: Vec::new(), set }));
    assert_eq!(office.world.row::<Yields>(workspace).lines, []);
    for (task, input) in [("tsk_second", 100), ("tsk_third", 20)] {
        office.call(task, "a", input);
    }
    office.report("tsk_third", TaskStatus::Accepted);
    let told = |office: &mut Office, upstream| {
        let sums = office.sums_of(|it| it.upstream == Some(upstream));
        (sums.calls, sums.cost.get(), sums.outcomes)
    };
    assert_eq!(told(&mut office, first), (1, 7, [0, 1, 0, 0]));
    assert_eq!(told(&mut office, second), (2, 120, [1, 0, 0, 0]));
}

/// Prices with a fee of a request, of an image and of one tool of the provider's, and none of another tool.
fn priced_in_part() -> Prices {
    let tools = [("web_search".into(), MicroUsd::new(1_000))].into();
    Prices { per_request: Some(MicroUsd::new(500)), per_image: Some(MicroUsd::new(50)), tools, ..plain_prices() }
}

/// What of a call has a price is charged though something else of it has none, which is marked: tokens, the fees of the request
/// and of what went in, and the uses of tools that have a price.
#[test]
fn what_has_a_price_is_charged() {
    let mut office = Office::new(&[("a", priced_in_part())]);
    let plain = Demand { images: 2, ..demand("a") };
    let tools = ["web_search", "code"].map(|it| (it.into(), Some(9)));
    let odd = Demand { server_tools: tools.into(), ..plain.clone() };
    // What the provider tells of, whose service tier is none that has a price, and what that comes to beside two images.
    let cases = [
        (&plain, vec![], None, 500, false),
        (&plain, vec![("web_search", 2)], None, 500 + 2_000, false),
        (&plain, vec![("web_search", 2), ("code", 3)], None, 500 + 2_000, true),
        (&odd, vec![("web_search", 2), ("code", 0)], None, 500 + 2_000, true),
        (&plain, vec![("web_search", 1)], Some("flex"), 500 + 1_000, true),
    ];
    for (number, (demand, tools, tier, fees, unpriced)) in cases.into_iter().enumerate() {
        let admitted = office.admit(&format!("tsk_{number}"), demand);
        let tools = tools.into_iter().map(|(name, uses)| (name.into(), uses)).collect();
        let answer = served(&admitted, demand, Some(used(7)));
        let service = Service { tier: tier.map(Into::into), ..Service::default() };
        let answer = Served { tools, service, ..answer };
        let call = office.finish(&admitted, CallEnd::Done, Some(answer), Vec::new());
        assert_eq!((call.cost.get(), call.unpriced), (7 + 2 * 50 + fees, unpriced), "{number}");
    }
    assert_eq!(office.sums().unpriced, 3);
}

/// A try that nobody answered, one that failed and one that is taken for lost are charged the fee of the request and of what
/// went in beside the estimate of their tokens, also where something of them has no price.
#[test]
fn what_is_lost_is_charged_its_fees() {
    let mut office = Office::new(&[("a", priced_in_part())]);
    let plain = Demand { images: 2, ..demand("a") };
    let odd = Demand { server_tools: [("code".into(), None)].into(), ..plain.clone() };
    for (demand, unpriced) in [(&plain, false), (&odd, true)] {
        for end in [CallEnd::Cut, CallEnd::Failed, CallEnd::Lapsed] {
            let admitted = office.admit("tsk_lost", demand);
            assert_eq!(admitted.call.reserved > MicroUsd::ZERO, !unpriced);
            let call = match end {
                CallEnd::Cut => office.finish(&admitted, end, Some(served(&admitted, demand, None)), Vec::new()),
                CallEnd::Failed => office.finish(&admitted, end, None, vec![lost(&admitted, demand)]),
                _ => {
                    office.world.advance(Span::minutes(17));
                    office.world.row(admitted.call.id)
                }
            };
            let tokens = call.usage.input + call.usage.output;
            assert!(tokens >= 10 && call.usage.estimated, "{call:?}");
            assert_eq!((call.cost.get(), call.unpriced), (tokens + 2 * 50 + 500, unpriced), "{end:?}");
        }
    }
    assert_eq!((office.sums().calls, office.sums().unpriced), (6, 3));
}

/// What tools of the provider's brought into an answer is noted for the call's session and agent when the call ends, by the tool
/// table; where none was used nothing is.
#[test]
fn tools_that_the_provider_ran_are_noted_with_the_end() {
    let options = Demand { server_tools: [("web_search".into(), None)].into(), ..demand("a") };
    let used_by = |tools: &[&str], brought: &[&str], asked: &Demand, usage: Option<Usage>| {
        let mut office = Office::new(&[("a", plain_prices())]);
        let admitted = office.admit("tsk_web", asked);
        let id = ClientSession::id_of(office.world.workspace(), &admitted.call.session);
        assert!(office.world.row::<ClientSession>(id).observed.is_empty());
        let answer = Served {
            tools: tools.iter().map(|it| ((*it).into(), 1)).collect(),
            brought: brought.iter().map(|it| (*it).into()).collect(),
            ..served(&admitted, asked, usage)
        };
        office.finish(&admitted, CallEnd::Done, Some(answer), Vec::new());
        let observed = office.world.row::<ClientSession>(id).observed.clone();
        observed.iter().map(|it| it.as_str().to_owned()).collect::<Vec<_>>()
    };
    let plain = Demand { dialect: Dialect::Messages, ..demand("a") };
    let offered = Demand { dialect: Dialect::Messages, ..options.clone() };
    let usage = Some(used(7));
    assert_eq!(used_by(&[], &[], &plain, usage), [""; 0]);
    assert_eq!(used_by(&["web_search"], &[], &plain, usage), ["web"]);
    assert_eq!(used_by(&["code_execution", "mcp"], &["mcp__mail__read"], &plain, usage), ["email", "tool"]);
    assert_eq!(used_by(&[], &[], &offered, usage), [""; 0], "this shape tells what was used");
    assert_eq!(used_by(&[], &[], &options, usage), ["web"], "the chat shape does not");
    assert_eq!(used_by(&[], &[], &options, None), [""; 0], "and nothing came of it");
}

/// A tool that the request enabled, and that the answer has results of, costs its fee also where its uses are not counted; one that
/// was not enabled, or brought nothing in, costs none.
#[test]
fn a_tool_that_was_used_costs_its_fee_uncounted() {
    let options = Demand { server_tools: [("web_search".into(), None)].into(), ..demand("a") };
    let prices = || Prices { tools: [("web_search".into(), MicroUsd::new(5_000))].into(), ..plain_prices() };
    let cost = |tools: &[(&str, u64)], brought: &[&str], asked: &Demand| {
        let mut office = Office::new(&[("a", prices())]);
        let admitted = office.admit("tsk_web", asked);
        let answer = Served {
            tools: tools.iter().map(|(name, uses)| ((*name).into(), *uses)).collect(),
            brought: brought.iter().map(|it| (*it).into()).collect(),
            ..served(&admitted, asked, Some(used(0)))
        };
        office.finish(&admitted, CallEnd::Done, Some(answer), Vec::new()).cost.get()
    };
    assert_eq!(cost(&[], &["web_search"], &options), 5_000);
    assert_eq!(cost(&[("web_search", 3)], &["web_search"], &options), 15_000);
    assert_eq!(cost(&[], &["web_search"], &demand("a")), 0);
    assert_eq!(cost(&[], &[], &options), 0);
}

/// A comparison of a bill has as many differences as are kept; a bill without lines is compared as any other, and one that
/// differs in more places is refused whole.
#[test]
fn a_bill_differs_in_a_bounded_number_of_places() {
    let mut office = Office::new(&[("a", plain_prices())]);
    let workspace = office.world.workspace();
    let upstream = office.world.row::<Routing>(workspace).upstreams[0].id;
    let line = |place: usize| DayOfModel {
        day: i64::try_from(place % 400).unwrap(),
        model: ModelName::parse(&format!("m-{}", place / 400)).unwrap(),
        micros: MicroUsd::new(1),
    };
    let bill = |count: usize| ImportBill {
        workspace,
        by: By::Program,
        upstream,
        from: 0,
        to: 400,
        billed: Vec::new(),
        metered: (0..count).map(line).collect(),
    };
    let kept = office.world.run(bill(DIFFERENCES_MAX)).unwrap();
    assert_eq!((kept.differences.len(), kept.billed, kept.metered.get()), (DIFFERENCES_MAX, MicroUsd::ZERO, 10_000));
    let refused = office.world.run(bill(DIFFERENCES_MAX + 1)).unwrap_err();
    assert!(format!("{refused:?}").contains("fewer days"), "{refused:?}");
}
