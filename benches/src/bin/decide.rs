//! The decision alone, beside `cedar-policy`: five mandates of eight merchants, limits, a velocity line, every reason.
//!
//! Cedar gets the same as five permits and two forbids of the agent's own, in a policy set that holds nothing else, and
//! answers yes or no with the ids of the policies that said so. Its request is built anew for each question, as a gate
//! has to: amounts and sums are never the same twice. Its entities are measured both kept and built.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::time::Duration;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityUid, PolicySet, Request, RestrictedExpression,
};
use svc_benches::Fault;
use svc_benches::gate::{ASK_ABOVE, COUNT, Case, MANDATES, MERCHANTS, PER_ACTION, PER_DAY, Standing, merchant};
use svc_benches::measure::{Rival, Series, interleave};
use svc_benches::report::{Report, micros};
use svc_core::rules::gate::evaluate::evaluate;
use svc_core::state::gate::Effect;
use svc_core::testing::World;
use svc_core::value::Timestamp;

const AGENTS: usize = 1_000;
/// Numbers of agents that tell from where on it is the caches that a decision waits for.
const FEWER: [usize; 3] = [50, 200, 400];
const ROUNDS: usize = 25;
const SLICE: Duration = Duration::from_millis(20);

fn main() -> Result<(), Fault> {
    let mut world = World::new();
    let (now, standings): (_, Vec<_>) = (world.now(), (0..AGENTS).map(|_| Standing::of(&mut world)).collect());
    let gates = standings.iter().map(CedarGate::of).collect::<Result<Vec<_>, _>>()?;
    let cases = Case::all();
    for case in &cases {
        agree(case, now, &standings, &gates)?;
    }
    let mut report = Report::new("decide", &["", "agents", "svc", "cedar", "cedar, entities too", "of cedar"]);
    for case in &cases {
        let one = contest(case, now, standings.get(..1).unwrap_or_default(), gates.get(..1).unwrap_or_default());
        let many = contest(case, now, &standings, &gates);
        for (agents, series) in [(1, &one), (AGENTS, &many)] {
            let [svc, kept, built] = series.as_slice() else { continue };
            let cells = [svc, kept, built].map(|it| micros(it.cpu()));
            let ratio = format!("{:.3}", svc.cpu_by(kept));
            report.row([case.name.to_owned(), agents.to_string()].into_iter().chain(cells).chain([ratio]));
            report.figure(format!("{}.{agents}.ns", case.name), svc.cpu());
            report.at_most(format!("{}.{agents}.of_cedar", case.name), svc.cpu_by(kept), 0.1);
        }
        for agents in FEWER {
            let growth = alternate(case, now, standings.get(..agents).unwrap_or_default());
            report.figure(format!("{}.{agents}_agents_by_one", case.name), growth);
        }
        let growth = alternate(case, now, &standings);
        report.at_most(format!("{}.{AGENTS}_agents_by_one", case.name), growth, 1.2);
    }
    report.print();
    Ok(())
}

/// svc, Cedar with its entities kept, and Cedar with its entities built for each question.
fn contest(case: &Case, now: Timestamp, standings: &[Standing], gates: &[CedarGate]) -> Vec<Series> {
    let turn = Turns::new(standings.len());
    let mut rivals = [
        svc("svc", case, now, standings),
        Rival::new("cedar", |times| {
            for _ in 0..times {
                black_box(gates.get(turn.next()).and_then(|it| it.ask(case, false).ok()));
            }
        }),
        Rival::new("cedar, entities too", |times| {
            for _ in 0..times {
                black_box(gates.get(turn.next()).and_then(|it| it.ask(case, true).ok()));
            }
        }),
    ];
    interleave(&mut rivals, ROUNDS, SLICE)
}

/// What a decision costs at all agents, in terms of one.
fn alternate(case: &Case, now: Timestamp, standings: &[Standing]) -> f64 {
    let mut rivals = [svc("one", case, now, standings.get(..1).unwrap_or_default()), svc("many", case, now, standings)];
    let series = interleave(&mut rivals, ROUNDS, SLICE);
    match series.as_slice() {
        [one, many] => many.cpu_by(one),
        _ => f64::NAN,
    }
}

fn svc<'a>(name: &str, case: &'a Case, now: Timestamp, standings: &'a [Standing]) -> Rival<'a> {
    let turn = Turns::new(standings.len());
    Rival::new(name, move |times| {
        for _ in 0..times {
            black_box(standings.get(turn.next()).map(|it| evaluate(&it.facts(now, black_box(case)))));
        }
    })
}

/// Whose turn it is: all of them, in an order that no prefetcher foresees.
struct Turns {
    agents: usize,
    at: Cell<usize>,
}

impl Turns {
    const fn new(agents: usize) -> Self {
        Self { agents, at: Cell::new(0) }
    }

    fn next(&self) -> usize {
        // 619 is prime and divides no number of agents used here, so that every agent has its turn.
        let next = (self.at.get() + 619) % self.agents;
        self.at.set(next);
        next
    }
}

/// What a gate over Cedar keeps of one agent.
struct CedarGate {
    policies: PolicySet,
    entities: Entities,
    agent: String,
    authorizer: Authorizer,
    spent: i64,
    count: i64,
    used: i64,
}

impl CedarGate {
    fn of(standing: &Standing) -> Result<Self, Fault> {
        let agent = standing.agent.id.to_string();
        let tally = standing.activity.tallies.first();
        Ok(Self {
            policies: policies(&agent).parse()?,
            entities: entities(&agent)?,
            agent,
            authorizer: Authorizer::new(),
            spent: tally.map_or(0, |it| it.used()),
            count: tally.map_or(0, |it| it.count.into()),
            used: i64::try_from(standing.activity.others.len())?,
        })
    }

    fn ask(&self, case: &Case, build: bool) -> Result<Decision, Fault> {
        let payment = case.request.pays().ok_or("a case is a payment")?;
        let context = Context::from_pairs([
            ("amount".to_owned(), RestrictedExpression::new_long(payment.amount)),
            ("currency".to_owned(), RestrictedExpression::new_string(payment.currency.as_str().to_owned())),
            ("spent".to_owned(), RestrictedExpression::new_long(self.spent)),
            ("count".to_owned(), RestrictedExpression::new_long(self.count)),
            ("used".to_owned(), RestrictedExpression::new_long(self.used)),
            ("limit".to_owned(), RestrictedExpression::new_long(case.velocity.into())),
        ])?;
        let request = Request::new(
            uid("Agent", &self.agent)?,
            uid("Action", "payment")?,
            uid("Merchant", payment.domain.as_str())?,
            context,
            None,
        )?;
        let built = if build { Some(entities(&self.agent)?) } else { None };
        let entities = built.as_ref().unwrap_or(&self.entities);
        Ok(self.authorizer.is_authorized(&request, &self.policies, entities).decision())
    }
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, Fault> {
    Ok(EntityUid::from_type_name_and_id(kind.parse()?, id.parse()?))
}

fn entities(agent: &str) -> Result<Entities, Fault> {
    let attributes = HashMap::from([
        ("frozen".to_owned(), RestrictedExpression::new_bool(false)),
        ("tier".to_owned(), RestrictedExpression::new_string("standard".to_owned())),
    ]);
    Ok(Entities::from_entities([Entity::new(uid("Agent", agent)?, attributes, HashSet::new())?], None)?)
}

fn policies(agent: &str) -> String {
    let mut text = String::from(
        "forbid(principal, action, resource) when { principal.frozen };\n\
         forbid(principal, action, resource) when { context.used >= context.limit };\n",
    );
    for mandate in 0..MANDATES {
        let names: Vec<String> = (0..MERCHANTS).map(|it| format!("Merchant::\"{}\"", merchant(mandate, it))).collect();
        text.push_str(&format!(
            "permit(principal == Agent::\"{agent}\", action == Action::\"payment\", resource)\n\
             when {{ context.currency == \"EUR\" && [{}].contains(resource) && context.amount <= {PER_ACTION}\n\
             && context.amount <= {ASK_ABOVE} && context.spent + context.amount <= {PER_DAY} && context.count < {COUNT} }};\n",
            names.join(", ")
        ));
    }
    text
}

/// Both sides have to say the same before their speed is compared.
fn agree(case: &Case, now: Timestamp, standings: &[Standing], gates: &[CedarGate]) -> Result<(), Fault> {
    for (standing, gate) in standings.iter().zip(gates).take(3) {
        let verdict = evaluate(&standing.facts(now, case));
        let expected = match case.name {
            "allow" => (Effect::Info, 0),
            "ask" => (Effect::Ask, 3),
            _ => (Effect::Deny, 10),
        };
        if (verdict.effect, verdict.reasons.len()) != expected {
            return Err(format!("svc says {verdict:?} to `{}`", case.name).into());
        }
        for build in [false, true] {
            let said = gate.ask(case, build)?;
            if (said == Decision::Allow) != (verdict.effect == Effect::Info) {
                return Err(format!("cedar says {said:?} to `{}`", case.name).into());
            }
        }
    }
    Ok(())
}
