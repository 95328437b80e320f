//! Agents as the comparisons have them: five mandates of eight merchants each, with limits per action, per day and per
//! count, a threshold to ask at, and a day of past behind them.

use std::sync::Arc;

use svc_core::rules::gate::Caller;
use svc_core::rules::gate::evaluate::{Facts, FullLine, PayeeFacts};
use svc_core::state::gate::{
    Activity, Agent, BlockOwner, DUPLICATE_WINDOW, Mandate, Nth, Origin, Payee, Request, SPLIT_WINDOW, Tally, Term,
};
use svc_core::state::people::Settings;
use svc_core::testing::world::{World, payment, terms};
use svc_core::value::period::Period;
use svc_core::value::{Span, Timestamp};

/// How many mandates an agent has.
pub const MANDATES: usize = 5;
/// How many merchants each of them names.
pub const MERCHANTS: usize = 8;
/// The most one action may move, in minor units.
pub const PER_ACTION: i64 = 50_000;
/// Above it a person is asked, in minor units.
pub const ASK_ABOVE: i64 = 20_000;
/// The most a day may see, in minor units.
pub const PER_DAY: i64 = 1_000_000_000_000;
/// The most actions a day may see.
pub const COUNT: u32 = 1_000_000_000;
/// The velocity line that the past stays below.
pub const VELOCITY: u32 = 60;

/// A merchant that the agents' mandate of this number names; each is a payee of its own.
#[must_use]
pub fn merchant(mandate: usize, merchant: usize) -> String {
    format!("shop-{merchant}-of-{mandate}.com")
}

/// One mandate as the interface writes it. Without `ask_above`, nobody is asked about many small payments to one payee.
#[must_use]
pub fn mandate_json(number: usize, ask_above: Option<i64>) -> String {
    let allow: Vec<String> = (0..MERCHANTS).map(|it| merchant(number, it)).collect();
    serde_json::json!({
        "name": format!("Market {number}"),
        "actions": ["payment"],
        "limits": {
            "currency": "EUR", "perAction": PER_ACTION, "askAbove": ask_above,
            "perPeriod": { "amount": PER_DAY, "period": "day" }, "count": { "max": COUNT, "period": "day" },
        },
        "merchants": { "allow": allow },
        "duplicates": "record",
    })
    .to_string()
}

/// Registers an agent with the five mandates.
pub fn register(world: &mut World) -> Caller {
    let mut agent = world.agent();
    for number in 0..MANDATES {
        agent = agent.with_mandate(terms(&mandate_json(number, Some(ASK_ABOVE))));
    }
    agent.register()
}

/// What stands about one agent at the instant of a decision.
#[derive(Debug)]
pub struct Standing {
    /// The agent.
    pub agent: Arc<Agent>,
    /// Its mandates.
    pub mandates: Vec<Arc<Mandate>>,
    /// Its recent past.
    pub activity: Activity,
    /// What it paid to the payee asked about.
    pub payee: Payee,
}

impl Standing {
    /// An agent of `world` with a past of thirty actions, five running sums and some payments to the payee.
    pub fn of(world: &mut World) -> Self {
        let caller = register(world);
        let (now, agent) = (world.now(), world.row::<Agent>(caller.agent));
        let mandates: Vec<Arc<Mandate>> = agent.mandates_in_force(now).map(|it| world.row::<Mandate>(it)).collect();
        let mut activity = Activity::none(agent.id);
        let owner = BlockOwner::of(&[b"bench"]);
        for minute in (1..=30).rev() {
            // Thirty instants seal no block.
            let _ = activity.others.push(now.minus(Span::minutes(minute)), || owner);
        }
        for mandate in &mandates {
            let (from, until) = Period::Day.bounds(now, &Settings::default().timezone);
            let id = mandate.id.mandate;
            activity.tallies.push(Tally {
                reserved: 1_000,
                spent: 20_000,
                count: 12,
                ..Tally::none(id, Term { period: Period::Day, from, until })
            });
        }
        let mut payee =
            Payee::none(Payee::id_of(agent.id, &merchant(2, MERCHANTS - 1), svc_core::value::currency::Currency::EUR));
        for hour in (1..=6).rev() {
            let _ = payee.push(now.minus(Span::hours(hour)), 100);
        }
        Self { agent, mandates, activity, payee }
    }

    /// What a decision about `request` rests on: the sliding line and the payee are read anew each time, as the gate does.
    #[must_use]
    pub fn facts<'a>(&'a self, now: Timestamp, case: &'a Case) -> Facts<'a> {
        let velocity = &case.settings.agent_velocity;
        let since = now.minus(velocity.window());
        let rank = usize::try_from(velocity.other_count).unwrap_or(usize::MAX);
        // None of the instants lies in a block.
        let nth = |n: usize| if let Nth::At(at) = self.activity.others.nth_newest(n) { Some(at) } else { None };
        let full = nth(rank).filter(|at| *at > since).map(|at| FullLine {
            used: velocity.other_count.into(),
            limit: velocity.other_count.into(),
            minutes: velocity.minutes.into(),
            clears_at: at.plus(velocity.window()),
            clears_behind: nth(rank.saturating_sub(1)).unwrap_or(now).plus(velocity.window()),
        });
        let amount = case.request.pays().map_or(0, |it| it.amount);
        let live = self.payee.at.iter().zip(&self.payee.amounts).filter(|(at, _)| **at > now.minus(SPLIT_WINDOW));
        let sum = live.map(|(_, amount)| amount).sum();
        let (repeated, _) = self.payee.repeats_inline(amount, now.minus(DUPLICATE_WINDOW));
        Facts {
            now,
            request: &case.request,
            settings: &case.settings,
            tier: self.agent.tier,
            mandates: &self.mandates,
            activity: &self.activity,
            waiting: 0,
            velocity: full,
            payee: PayeeFacts { sum, repeated },
            session_conflict: false,
            unreadable: false,
            origin: &case.origin,
            tool_is_sink: false,
        }
    }
}

/// Something that is asked, and under which settings.
#[derive(Debug)]
pub struct Case {
    /// How it is called.
    pub name: &'static str,
    /// What is asked.
    pub request: Request,
    /// The settings of the workspace.
    pub settings: Settings,
    /// Where it came from.
    pub origin: Origin,
    /// The amount, in minor units.
    pub amount: i64,
    /// How many actions the velocity line takes.
    pub velocity: u32,
}

impl Case {
    /// A payment of `amount` to a merchant that the third mandate names last, under a line of `velocity` actions.
    #[must_use]
    pub fn new(name: &'static str, amount: i64, velocity: u32) -> Self {
        let mut settings = Settings::default();
        settings.agent_velocity.other_count = velocity;
        settings.agent_velocity.minutes = 60;
        let origin = Origin::default();
        let request = payment(amount, "EUR", &merchant(2, MERCHANTS - 1));
        Self { name, request, settings, origin, amount, velocity }
    }

    /// One that is allowed, one that a person is asked about for three reasons, and one that is denied for ten.
    #[must_use]
    pub fn all() -> [Self; 3] {
        [
            Self::new("allow", ASK_ABOVE / 2, VELOCITY),
            Self::new("ask", ASK_ABOVE + 1, 20),
            Self::new("deny", PER_ACTION + 1, 20),
        ]
    }
}
