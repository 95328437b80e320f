//! What a decision costs over a hundred times more stored actions, agents and mandates: the lane over two SQLite databases,
//! a batch here and a batch there. Both are asked by as many agents as the smaller one has, and the larger one by all of
//! its agents as well, since those touch a hundred times more rows.
//!
//! `--actions N` sets the larger number of actions; the smaller is a hundredth.

use svc_benches::Fault;
use svc_benches::lane::Lane;
use svc_benches::measure::{Cost, Series, timed};
use svc_benches::report::{Report, micros};
use svc_store::Backend as _;
use svc_store::sqlite::{SqliteSession, SqliteStore};

const ACTIONS: usize = 1_000_000;
const AGENTS: usize = 1_000;
const TIMES: usize = 100;
const BATCH: usize = 32;
const BATCHES: usize = 40;
const ROUNDS: usize = 15;
/// Actions of one commit while a database is filled.
const FILL: usize = 1_024;
/// Commits between two passes that place their ledger records.
const BETWEEN: usize = 64;

fn main() -> Result<(), Fault> {
    let actions = actions()?;
    let directory = tempfile::tempdir()?;
    let mut small = Filled::new(&directory.path().join("small"), AGENTS / TIMES, actions / TIMES)?;
    let mut large = Filled::new(&directory.path().join("large"), AGENTS, actions)?;
    let active = AGENTS / TIMES;
    let (mut few, mut many, mut all) = (Series::default(), Series::default(), Series::default());
    for round in 0..=ROUNDS {
        let costs = [small.slice(active)?, large.slice(active)?, large.slice(AGENTS)?];
        if round > 0 {
            for (series, cost) in [&mut few, &mut many, &mut all].into_iter().zip(costs) {
                series.rounds.push(cost);
            }
        }
    }
    let mut report = Report::new("growth", &["actions", "agents", "active", "cpu us", "wall us", "by the first"]);
    for (stored, agents, active, series) in [
        (actions / TIMES, AGENTS / TIMES, active, &few),
        (actions, AGENTS, active, &many),
        (actions, AGENTS, AGENTS, &all),
    ] {
        report.row([
            stored.to_string(),
            agents.to_string(),
            active.to_string(),
            micros(series.cpu()),
            micros(series.wall()),
            format!("{:.2}", series.cpu_by(&few)),
        ]);
    }
    report.figure("all_active.cpu", all.cpu_by(&few));
    report.at_most("hundredfold.cpu", many.cpu_by(&few), 1.2);
    report.print();
    Ok(())
}

fn actions() -> Result<usize, Fault> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(ACTIONS),
        (Some("--actions"), Some(value)) => Ok(value.parse()?),
        (Some(other), _) => Err(format!("unknown argument `{other}`").into()),
    }
}

/// A database with its actions.
struct Filled {
    lane: Lane<SqliteSession>,
    _store: SqliteStore,
}

impl Filled {
    fn new(path: &std::path::Path, agents: usize, actions: usize) -> Result<Self, Fault> {
        let store = SqliteStore::open(path)?;
        let mut lane = Lane::over(store.writer()?);
        lane.grow_to(agents)?;
        let mut left = actions;
        while left > 0 {
            for _ in 0..BETWEEN {
                let count = FILL.min(left);
                let commands = lane.commands(count);
                lane.decide(commands)?;
                left -= count;
            }
            lane.world.engine().tick()?;
            eprintln!("{} of {actions} actions stored", actions - left);
        }
        Ok(Self { lane, _store: store })
    }

    fn slice(&mut self, active: usize) -> Result<Cost, Fault> {
        let work: Vec<_> = (0..BATCHES).map(|_| self.lane.commands_of(active, BATCH)).collect();
        let lane = &mut self.lane;
        let times = u64::try_from(BATCH * BATCHES)?;
        let (done, cost) = timed(times, || work.into_iter().try_for_each(|it| lane.decide(it)));
        done?;
        Ok(cost)
    }
}
