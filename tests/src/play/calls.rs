//! Moves that call models: a provider with one model, two budgets, calls that are admitted and calls that end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use svc_core::command::Command;
use svc_core::dlp::Findings;
use svc_core::rules::gateway::admit::{AdmitCall, Admitted};
use svc_core::rules::gateway::budgets::CreateBudget;
use svc_core::rules::gateway::finish::{FinishCall, Served};
use svc_core::rules::gateway::models::{self, NewModel};
use svc_core::rules::gateway::payer::CallKey;
use svc_core::rules::gateway::routing::{self, Edit, EditRouting};
use svc_core::rules::gateway::upstreams;
use svc_core::rules::people::by::By;
use svc_core::rules::people::keys::{CreateKey, NewKey};
use svc_core::state::gateway::{
    BudgetPeriod, BudgetScope, CallEnd, Demand, Dialect, Ladder, Mode, OutputBound, Prices, Received, Rung, Service,
    Step, TokenPrices, Usage,
};
use svc_core::state::people::{DataLoss, KeyScope, Plans};
use svc_core::value::MicroUsd;
use svc_core::value::id::{UpstreamId, WorkspaceId};
use svc_core::value::text::{ClassId, ModelName, TaskId, UpstreamName, UrlText};

/// How many tokens a call may be answered with: a few of the largest fill a day's budget.
pub const TOKENS: [u64; 4] = [100, 1_000, 4_000, 8_000];
/// What may be spent in a day: no call is admitted beyond it.
const DAY: u64 = 16_000;
/// What may be spent in a week before a person is asked.
const WEEK: u64 = 30_000;
/// How long a call may take, in milliseconds.
const TOTAL_MS: u64 = 900_000;
const MODEL: &str = "a";

/// The commands that make a provider, then what hangs on it: [`rest`].
pub(super) fn provider(workspace: WorkspaceId) -> Command {
    let set = vec![
        upstreams::Set::Name(UpstreamName::parse("one").expect("a name")),
        upstreams::Set::Kind(Dialect::Chat),
        upstreams::Set::BaseUrl(UrlText::parse("https://models.example.com/v1").expect("an address")),
        upstreams::Set::Key(upstreams::NewKey { sealed: "sealed".into(), hint: "wxyz".into() }),
    ];
    EditRouting { by: By::Program, workspace, edit: Edit::CreateUpstream(set) }.into()
}

/// A model of which each token costs a micro, a class that all calls are of, a key for calls, and budgets of a day and a week.
pub(super) fn rest(workspace: WorkspaceId, upstream: UpstreamId) -> Vec<Command> {
    let each = MicroUsd::new(1_000_000);
    let tokens = TokenPrices { input: each, output: each, ..TokenPrices::default() };
    let prices = models::Set::Prices(Some(Box::new(Prices { tokens, ..Prices::default() })));
    let name = ModelName::parse(MODEL).expect("a name");
    let class = ClassId::parse("support.reply").expect("a class");
    let acts = vec![routing::Set::DefaultClass(Some(class.clone())), routing::Set::Mode(Mode::Enforce)];
    let edits = [
        Edit::CreateModel(NewModel { upstream, name, known: Vec::new(), set: vec![prices] }),
        Edit::CreateClass(class, Vec::new()),
        Edit::Change(acts),
    ];
    let stops = vec![Rung { at: 0, step: Step::Observe }, Rung { at: 100, step: Step::Stop }];
    let stops = Ladder::of(stops).expect("steps");
    let budgets = [(DAY, BudgetPeriod::Day, stops), (WEEK, BudgetPeriod::Week, Ladder::default())];
    let edits = edits.into_iter().map(|edit| EditRouting { by: By::Program, workspace, edit }.into());
    let budgets = budgets.into_iter().map(|(amount, period, ladder)| {
        let (scope, amount) = (BudgetScope::Workspace, MicroUsd::new(amount));
        CreateBudget { workspace, by: By::Program, scope, key: None, amount, period, ladder, owner: None }.into()
    });
    let key = CreateKey::new(workspace, By::Program, KeyScope::Inference, NewKey::of("ask_calls")).into();
    edits.chain(budgets).chain([key]).collect()
}

/// The command that asks for a call of a task.
pub(super) fn admit(caller: CallKey, tokens: usize, task: u8) -> AdmitCall {
    AdmitCall {
        caller,
        demand: Arc::new(demand(TOKENS[tokens % TOKENS.len()])),
        class: None,
        task: Some(TaskId::parse(&format!("tsk_{task}")).expect("a task")),
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
    }
}

/// The command that ends a call which used so many percent of what it might, or of which nobody knows what it used.
pub(super) fn finish(admitted: &Admitted, percent: Option<u8>) -> FinishCall {
    let held = admitted.call.reserved.get();
    let used = percent.map(|it| Usage { output: held * u64::from(it) / 100, ..Usage::default() });
    let served = admitted.places.first().map(|place| Served {
        demand: Arc::new(demand(held)),
        routing: Arc::clone(&admitted.routing),
        place: *place,
        usage: used,
        status: used.map(|_| 200),
        received: Received::default(),
        tools: BTreeMap::new(),
        brought: BTreeSet::new(),
        service: Service::default(),
    });
    FinishCall {
        call: admitted.call.id,
        end: if used.is_some() { CallEnd::Done } else { CallEnd::Cut },
        served,
        failed: Vec::new(),
        told: admitted.call.attempts.len(),
        first_token_ms: Some(1),
        duration_ms: 2,
        overhead_ms: 0,
    }
}

/// A question of forty bytes that may be answered with so many tokens.
fn demand(tokens: u64) -> Demand {
    Demand::plain(MODEL, 40, OutputBound { tokens: Some(tokens), likely: None })
}
