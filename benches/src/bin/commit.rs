//! What a lane costs: authorizations over SQLite by batch size and number of agents, beside bare SQLite writing the same
//! rows in transactions of the same size; and how many bytes an action takes. Ledger records get their places in these commits.
//!
//! `--only 1000x32` measures that number of agents and that size of batch alone, for a profiler.
//!
//! Requests are read and hashed before the clock runs and receipts are signed after it: both happen off the lane.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use svc_benches::Fault;
use svc_benches::bare::{Bare, Recorder, transactions};
use svc_benches::lane::Lane;
use svc_benches::measure::{Series, count, timed};
use svc_benches::report::{Report, micros};
use svc_core::store::{Commit, Stamp};
use svc_store::Backend as _;
use svc_store::sqlite::{DATABASE, SqliteSession, SqliteStore};

/// Batches of one round: enough for a tenth of a second or more.
const BATCHES: [(usize, usize); 4] = [(1, 100), (8, 100), (32, 60), (256, 20)];
const ROUNDS: usize = 7;
/// What the lane may cost an action at batches of 32 and 1,000 agents, in nanoseconds of processor time: encoding, SQL and
/// commit 25 us, 3 us to decide, and 4.5 us to give its record a place.
const BAR_NS: f64 = 32_500.0;
/// Bytes on disk per action.
const BAR_BYTES: f64 = 2_400.0;

fn main() -> Result<(), Fault> {
    let columns =
        ["agents", "batch", "key", "svc cpu us", "bare cpu us", "by bare", "svc wall us", "bare wall us", "actions/s"];
    let mut report = Report::new("commit", &columns);
    let only = only()?;
    for agents in [8, 1_000] {
        if only.is_some_and(|it| it.0 != agents) {
            continue;
        }
        let mut bench = Bench::open(agents)?;
        let before = bench.bytes()?;
        let mut actions = 0;
        for (batch, batches) in BATCHES {
            if only.is_some_and(|it| it.1 != batch) {
                continue;
            }
            actions += bench.contest(&mut report, batch, batches)?;
        }
        let bytes = (bench.bytes()? - before) / count(actions);
        report.at_most(format!("{agents}.bytes_per_action"), bytes, BAR_BYTES);
        if only.is_some() {
            continue;
        }
        bench.lane.keyed = true;
        bench.contest(&mut report, 32, 60)?;
    }
    report.print();
    Ok(())
}

/// The agents and the batch of `--only`.
fn only() -> Result<Option<(usize, usize)>, Fault> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(None),
        (Some("--only"), Some(value)) => {
            let (agents, batch) = value.split_once('x').ok_or("`--only` takes agents x batch")?;
            Ok(Some((agents.parse()?, batch.parse()?)))
        }
        (Some(other), _) => Err(format!("unknown argument `{other}`").into()),
    }
}

struct Bench {
    lane: Lane<Recorder<SqliteSession>>,
    commits: Rc<RefCell<Vec<(Stamp, Commit)>>>,
    bare: Bare,
    directory: tempfile::TempDir,
    agents: usize,
    _store: SqliteStore,
}

impl Bench {
    fn open(agents: usize) -> Result<Self, Fault> {
        let directory = tempfile::tempdir()?;
        let store = SqliteStore::open(directory.path().join("svc"))?;
        let bare = Bare::create(&directory.path().join("bare.db"))?;
        let commits = Rc::default();
        let mut lane = Lane::over(Recorder::new(store.writer()?, &commits));
        lane.grow_to(agents)?;
        bare.run(&transactions(&commits.take())?)?;
        Ok(Self { lane, commits, bare, directory, agents, _store: store })
    }

    /// The lane and then bare SQLite, again and again; gives how many actions were stored.
    fn contest(&mut self, report: &mut Report, batch: usize, batches: usize) -> Result<u64, Fault> {
        let times = u64::try_from(batch * batches)?;
        let (mut svc, mut bare) = (Series::default(), Series::default());
        for round in 0..=ROUNDS {
            let work: Vec<_> = (0..batches).map(|_| self.lane.commands(batch)).collect();
            let lane = &mut self.lane;
            let (done, cost) = timed(times, || work.into_iter().try_for_each(|it| lane.decide(it)));
            done?;
            let same = transactions(&self.commits.take())?;
            let (done, bare_cost) = timed(times, || self.bare.run(&same));
            done?;
            if round > 0 {
                svc.rounds.push(cost);
                bare.rounds.push(bare_cost);
            }
        }
        let (agents, keyed) = (self.agents, self.lane.keyed);
        let name = format!("{agents}.{batch}{}", if keyed { ".keyed" } else { "" });
        if (agents, batch, keyed) == (1_000, 32, false) {
            report.at_most(format!("{name}.cpu_ns"), svc.cpu(), BAR_NS);
        } else {
            report.figure(format!("{name}.cpu_ns"), svc.cpu());
        }
        report.figure(format!("{name}.cpu_by_bare"), svc.cpu_by(&bare));
        report.figure(format!("{name}.wall_by_bare"), svc.wall_by(&bare));
        report.row([
            agents.to_string(),
            batch.to_string(),
            if keyed { "yes" } else { "no" }.to_owned(),
            micros(svc.cpu()),
            micros(bare.cpu()),
            format!("{:.2}", svc.cpu_by(&bare)),
            micros(svc.wall()),
            micros(bare.wall()),
            format!("{:.0}", 1e9 / svc.wall()),
        ]);
        Ok(times * (u64::try_from(ROUNDS)? + 1))
    }

    /// The size of the database with nothing left in its log.
    fn bytes(&self) -> Result<f64, Fault> {
        let path = self.directory.path().join("svc").join(DATABASE);
        shorten(&path)?;
        Ok(count(std::fs::metadata(path)?.len()))
    }
}

fn shorten(path: &Path) -> Result<(), Fault> {
    let conn = rusqlite::Connection::open(path)?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    let left: i64 = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    if left == 0 { Ok(()) } else { Err("the log could not be emptied".into()) }
}
