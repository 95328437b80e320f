//! The gate over loopback beside a bare hyper handler: authorize and verify, over SQLite and over memory, at 1, 32 and 256
//! connections. Each server is a process of its own; one load generator asks all of them in turn, a second each.
//!
//! `--seconds S` makes a slice last longer, `--rounds N` takes more of them, `--keyed` sends idempotency keys; `--connections N`
//! takes that number of connections alone, `--store memory` or `--store sqlite` that store and `--no-verify` only authorizes, for a
//! profiler. `--postgres ADDRESS` measures PostgreSQL as well, in an empty database at that address
//! (`postgres://user:password@host/database`): what it keeps its own processor time for is not in the server's.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_benches::Fault;
use svc_benches::asks::{Authorize, post};
use svc_benches::load::{Load, Shared, Slice, Source};
use svc_benches::measure::{count, median, nanos};
use svc_benches::report::{Report, micros};
use svc_benches::server::{Kind, Process, SAMPLE, serve_if_asked};
use svc_core::state::gate::receipt::parse;

const AGENTS: usize = 1_000;
const CONNECTIONS: [usize; 3] = [1, 32, 256];
/// Appends to a growing file a round, each made durable, that one connection is compared with.
const APPENDS: usize = 100;

fn main() -> Result<(), Fault> {
    if serve_if_asked()? {
        return Ok(());
    }
    let options = Options::read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, compare(&options))
}

/// How long and how often.
struct Options {
    slice: Duration,
    rounds: usize,
    keyed: bool,
    connections: Option<usize>,
    store: Option<String>,
    postgres: Option<PathBuf>,
    verify: bool,
}

impl Options {
    fn read() -> Result<Self, Fault> {
        let mut options = Self {
            slice: Duration::from_secs(1),
            rounds: 5,
            keyed: false,
            connections: None,
            store: None,
            postgres: None,
            verify: true,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("a value is missing");
            match argument.as_str() {
                "--seconds" => options.slice = Duration::from_secs_f64(value()?.parse()?),
                "--rounds" => options.rounds = value()?.parse()?,
                "--keyed" => options.keyed = true,
                "--no-verify" => options.verify = false,
                "--connections" => options.connections = Some(value()?.parse()?),
                "--store" => options.store = Some(value()?),
                "--postgres" => options.postgres = Some(value()?.into()),
                other => return Err(format!("unknown argument `{other}`").into()),
            }
        }
        Ok(options)
    }
}

async fn compare(options: &Options) -> Result<(), Fault> {
    let directory = tempfile::tempdir()?;
    let asked = Rc::new(RefCell::new(Authorize::new(AGENTS, options.keyed)));
    let mut stores = stores(directory.path(), options)?;
    let first = stores.first_mut().ok_or("there is no store to compare")?;
    sample(&mut first.server, directory.path(), &asked).await?;
    let mut bare = Process::start(Kind::Bare, directory.path(), 0)?;
    let columns = ["connections", "what", "requests/s", "of bare", "cpu us", "p50 us", "p99 us", "p99/p50"];
    let mut report = Report::new("http", &columns);
    let chosen = CONNECTIONS.into_iter().filter(|it| options.connections.is_none_or(|only| only == *it));
    for connections in chosen {
        let mut results: BTreeMap<&str, Vec<Measured>> = BTreeMap::new();
        let mut synced = Vec::new();
        for round in 0..=options.rounds {
            let mut note = |name, measured| {
                if round > 0 {
                    results.entry(name).or_default().push(measured);
                }
            };
            note("1 bare", slice(&mut bare, connections, &asked, options).await?);
            for Stored { name, server, authorize, verify } in &mut stores {
                if options.store.as_deref().is_some_and(|only| only != *name) {
                    continue;
                }
                asked.borrow_mut().receipts = Some(Vec::new());
                note(*authorize, slice(server, connections, &asked, options).await?);
                let receipts = asked.borrow_mut().receipts.take().unwrap_or_default();
                if !options.verify {
                    continue;
                }
                let questions = receipts.iter().map(|it| question(it)).collect::<Result<_, _>>()?;
                let shown = Rc::new(RefCell::new(Verify { questions, keyed: options.keyed, valid: 0 }));
                let shows = slice(server, connections, &shown, options).await?;
                if shown.borrow().valid != shows.slice.latencies.len() {
                    return Err("a receipt was not valid".into());
                }
                note(*verify, shows);
            }
            synced.extend(appends(directory.path())?);
        }
        tell(&mut report, connections, &results, median(synced));
    }
    for Stored { name, server, .. } in &mut stores {
        report.figure(format!("{name}.resident_mib"), count(server.used()?.memory) / 1_048_576.0);
    }
    report.print();
    Ok(())
}

/// A server over one store, and under which names its figures stand.
struct Stored {
    name: &'static str,
    server: Process,
    authorize: &'static str,
    verify: &'static str,
}

fn stores(directory: &Path, options: &Options) -> Result<Vec<Stored>, Fault> {
    let stored = |kind, name, directory: &Path, authorize, verify| {
        Ok::<_, Fault>(Stored { name, server: Process::start(kind, directory, AGENTS)?, authorize, verify })
    };
    let mut all = vec![
        stored(Kind::Memory, "memory", directory, "2 authorize, memory", "3 verify, memory")?,
        stored(Kind::Sqlite, "sqlite", &directory.join("data"), "4 authorize, SQLite", "5 verify, SQLite")?,
    ];
    if let Some(address) = &options.postgres {
        let (authorize, verify) = ("6 authorize, PostgreSQL", "7 verify, PostgreSQL");
        all.push(stored(Kind::Postgres, "postgres", address, authorize, verify)?);
    }
    Ok(all)
}

/// Asks once, and keeps the answer for the bare server to answer with.
async fn sample(server: &mut Process, directory: &Path, asked: &Rc<RefCell<Authorize>>) -> Result<(), Fault> {
    let shared: Shared = Rc::<RefCell<Authorize>>::clone(asked);
    Load::open(server.port, 1).await?.run(&shared, Duration::from_millis(20)).await?;
    let sample = asked.borrow_mut().sample.take().ok_or("nothing was answered")?;
    let answer: Value = serde_json::from_slice(&sample)?;
    if answer.get("decision").and_then(Value::as_str) != Some("allow") {
        return Err(format!("not allowed: {answer}").into());
    }
    std::fs::write(directory.join(SAMPLE), sample)?;
    Ok(())
}

/// A slice of load, and what the server used for each request of it.
struct Measured {
    slice: Slice,
    cpu: f64,
}

async fn slice<S: Source + 'static>(
    server: &mut Process,
    connections: usize,
    source: &Rc<RefCell<S>>,
    options: &Options,
) -> Result<Measured, Fault> {
    let shared: Shared = Rc::<RefCell<S>>::clone(source);
    let mut load = Load::open(server.port, connections).await?;
    let before = server.used()?;
    let slice = load.run(&shared, options.slice).await?;
    let cpu = server.used()?.cpu.saturating_sub(before.cpu);
    if slice.failed > 0 || slice.latencies.is_empty() {
        return Err(format!("{} of {} requests failed", slice.failed, slice.latencies.len()).into());
    }
    let cpu = nanos(cpu) / count(slice.latencies.len() as u64);
    Ok(Measured { slice, cpu })
}

fn tell(report: &mut Report, connections: usize, results: &BTreeMap<&str, Vec<Measured>>, sync: f64) {
    let Some(bare) = results.get("1 bare") else { return };
    for (name, rounds) in results {
        let name = name.split_once(' ').map_or(*name, |it| it.1);
        let of = |figure: &dyn Fn(&Measured) -> f64| median(rounds.iter().map(figure));
        let of_bare = median(rounds.iter().zip(bare).map(|(it, bare)| it.slice.rate() / bare.slice.rate()));
        let (cpu, half) = (of(&|it| it.cpu), of(&|it| it.slice.latency(0.5)));
        let (late, spread) =
            (of(&|it| it.slice.latency(0.99)), of(&|it| it.slice.latency(0.99) / it.slice.latency(0.5)));
        report.row([
            connections.to_string(),
            name.to_owned(),
            format!("{:.0}", of(&|it| it.slice.rate())),
            format!("{of_bare:.3}"),
            micros(cpu),
            micros(half),
            micros(late),
            format!("{spread:.1}"),
        ]);
        let figure = format!("{connections}.{}", name.replace(", ", "."));
        report.figure(format!("{figure}.cpu_us"), cpu / 1e3);
        match (connections, name) {
            (32, "authorize, memory") => report.at_least(format!("{figure}.of_bare"), of_bare, 0.35),
            (32, "authorize, SQLite") => {
                report.at_least(format!("{figure}.of_bare"), of_bare, 0.20);
                report.at_most(format!("{figure}.p99_by_p50"), spread, 4.0);
                report.at_most(format!("{figure}.cpu"), cpu / 1e3, 69.0);
            }
            (32, "verify, SQLite") => report.at_least(format!("{figure}.of_bare"), of_bare, 0.15),
            (256, "authorize, SQLite") => report.at_least(format!("{figure}.of_bare"), of_bare, 0.30),
            (1, "authorize, SQLite") => report.at_most(format!("{figure}.p50_by_fdatasync"), half / sync, 2.5),
            _ => report.figure(format!("{figure}.of_bare"), of_bare),
        }
    }
    if connections == 1 {
        report.figure("fdatasync_us", sync / 1e3);
    }
}

/// How long it takes to append a page to a growing file and make it durable, in nanoseconds.
fn appends(directory: &Path) -> Result<Vec<f64>, Fault> {
    let mut file = std::fs::File::create(directory.join("growing"))?;
    let mut taken = Vec::with_capacity(APPENDS);
    for _ in 0..APPENDS {
        let started = Instant::now();
        file.write_all(&[1; 4_096])?;
        file.sync_data()?;
        taken.push(nanos(started.elapsed()));
    }
    Ok(taken)
}

/// What a merchant asks who is shown a receipt: whether it is good for what it charges, which the receipt says itself.
fn question(receipt: &str) -> Result<String, Fault> {
    let parsed = parse(receipt).map_err(|_| "no receipt")?;
    let payment = parsed.claims().payment.as_ref().ok_or("no payment")?;
    let charge = json!({
        "amount": payment.amount, "currency": payment.currency, "merchant": { "domain": payment.domain },
    });
    Ok(json!({ "receipt": receipt, "charge": charge }).to_string())
}

/// Shows each receipt once, as the merchant that charges it.
struct Verify {
    questions: VecDeque<String>,
    keyed: bool,
    valid: usize,
}

impl Source for Verify {
    fn next(&mut self, into: &mut Vec<u8>) -> bool {
        let Some(question) = self.questions.pop_front() else { return false };
        let headers = if self.keyed {
            let scattered = (self.questions.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            format!("idempotency-key: capture-{scattered:016x}-of-a-merchant\r\n")
        } else {
            String::new()
        };
        post(into, "/v1/verify", &headers, &question);
        true
    }

    fn answered(&mut self, body: &[u8]) {
        self.valid += usize::from(String::from_utf8_lossy(body).contains("\"valid\":true"));
    }
}
