//! The memory of a server over SQLite: idle, and under load at 32 connections, which has to stay flat once the caches are
//! full.
//!
//! `--minutes M` sets how long the load lasts; one minute where nothing is said.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use svc_benches::Fault;
use svc_benches::asks::Authorize;
use svc_benches::load::{Load, Shared};
use svc_benches::measure::count;
use svc_benches::report::Report;
use svc_benches::server::{Kind, Process, serve_if_asked};

const AGENTS: usize = 1_000;
const CONNECTIONS: usize = 32;
/// Looks at the memory, evenly spread over the load.
const LOOKS: u32 = 12;

fn main() -> Result<(), Fault> {
    if serve_if_asked()? {
        return Ok(());
    }
    let minutes: f64 = minutes()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, watch(Duration::from_secs_f64(minutes * 60.0)))
}

fn minutes() -> Result<f64, Fault> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(1.0),
        (Some("--minutes"), Some(value)) => Ok(value.parse()?),
        (Some(other), _) => Err(format!("unknown argument `{other}`").into()),
    }
}

async fn watch(span: Duration) -> Result<(), Fault> {
    let directory = tempfile::tempdir()?;
    let mut report = Report::new("memory", &["", "requests", "MiB"]);
    let mut idle = Process::start(Kind::Sqlite, &directory.path().join("idle"), 0)?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = mebibytes(&mut idle)?;
    report.row(["idle".to_owned(), "0".to_owned(), format!("{idle:.1}")]);
    let mut server = Process::start(Kind::Sqlite, &directory.path().join("busy"), AGENTS)?;
    let asked: Shared = Rc::new(RefCell::new(Authorize::new(AGENTS, true)));
    let (mut looks, mut requests) = (Vec::new(), 0);
    let mut load = Load::open(server.port, CONNECTIONS).await?;
    for look in 1..=LOOKS {
        requests += load.run(&asked, span / LOOKS).await?.latencies.len();
        let held = mebibytes(&mut server)?;
        report.row([
            format!("{:.0} s", (span / LOOKS * look).as_secs_f64()),
            requests.to_string(),
            format!("{held:.1}"),
        ]);
        looks.push(held);
    }
    report.at_most("idle_mib", idle, 30.0);
    let then = looks.get(looks.len() * 2 / 3).copied().unwrap_or(f64::NAN);
    report.figure("busy_mib", looks.last().copied().unwrap_or(f64::NAN));
    report.at_most("end_by_two_thirds", looks.last().copied().unwrap_or(f64::NAN) / then, 1.05);
    report.print();
    Ok(())
}

fn mebibytes(server: &mut Process) -> Result<f64, Fault> {
    Ok(count(server.used()?.memory) / 1_048_576.0)
}
