//! Mixed model traffic for minutes, whole and streamed, with clients that hang up and providers that break: what the server holds
//! of memory and sockets stays flat, and no reservation is left behind.
//!
//! `--minutes M` makes it last longer, `--svc FILE` names the `svc` program, which lies beside this one otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svc_benches::Fault;
use svc_benches::asks::post;
use svc_benches::measure::count;
use svc_benches::peers::{self, Console, Peer};
use svc_benches::report::Report;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const WORKERS: u64 = 16;
/// How the models of the stand-in break, beside one that does not.
const MODELS: [&str; 9] = [
    "mock",
    "mock--words-200",
    "mock--status-500",
    "mock--status-429",
    "mock--cut-3",
    "mock--half-2",
    "mock--body-html",
    "mock--drop",
    "mock--stall-2",
];
/// Sockets that may be open besides those at the beginning: connections that are kept for the next call.
const KEPT_MAX: f64 = 64.0;

fn main() -> Result<(), Fault> {
    let (mut minutes, mut svc) = (10.0, std::env::current_exe()?.with_file_name("svc"));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or("a value is missing")?;
        match argument.as_str() {
            "--minutes" => minutes = value.parse()?,
            "--svc" => svc = PathBuf::from(value),
            other => return Err(format!("unknown argument `{other}`").into()),
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(soak(&svc, Duration::from_secs_f64(minutes * 60.0)))
}

/// What is counted of the load.
#[derive(Default)]
struct Tally {
    asked: AtomicU64,
    answered: AtomicU64,
    hung_up: AtomicU64,
    over: AtomicBool,
}

async fn soak(program: &std::path::Path, span: Duration) -> Result<(), Fault> {
    let directory = tempfile::tempdir()?;
    let mock = peers::mock(program)?;
    let (svc, console) = peers::svc(program, directory.path())?;
    console.provide("soak", &format!("http://127.0.0.1:{}/v1", mock.port), &MODELS)?;
    let (tally, started) = (Arc::new(Tally::default()), Instant::now());
    let workers: Vec<_> =
        (0..WORKERS).map(|seed| tokio::spawn(work(svc.port, svc.headers.clone(), seed, Arc::clone(&tally)))).collect();
    let (mut samples, step) = (Vec::new(), span / 20);
    let before = svc.open_files();
    while started.elapsed() < span {
        sleep(step).await;
        samples.push(look(&svc));
        let (memory, files) = samples.last().copied().unwrap_or_default();
        let asked = tally.asked.load(Ordering::Relaxed);
        eprintln!("{:>5.0} s  {asked:>8} asked  {memory:>6.1} MiB  {files:>4} files", started.elapsed().as_secs_f64());
    }
    tally.over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await?;
    }
    settle(&console).await?;
    tell(&svc, &console, &tally, &samples, before)
}

fn look(svc: &Peer) -> (f64, usize) {
    (count(svc.used().memory) / 1_048_576.0, svc.open_files())
}

/// Waits until no call runs, as long as one that broke may take to be noticed.
async fn settle(console: &Console) -> Result<(), Fault> {
    for _ in 0..60 {
        if reserved(console)? == 0 {
            return Ok(());
        }
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// What all budgets hold for calls under way, in micros.
fn reserved(console: &Console) -> Result<u64, Fault> {
    let listed = console.ask("GET", "budgets", None)?;
    let all = listed.get("data").and_then(Value::as_array).filter(|it| !it.is_empty()).ok_or("no budgets")?;
    // Counted as none, what is not told would pass for what is not held.
    let held =
        |it: &Value| it.get("reservedMicros").and_then(Value::as_u64).ok_or("a budget tells no `reservedMicros`");
    all.iter().map(held).try_fold(0, |sum, it| Ok(sum + it?))
}

fn tell(svc: &Peer, console: &Console, tally: &Tally, samples: &[(f64, usize)], before: usize) -> Result<(), Fault> {
    let mut report = Report::new("soak", &["", "asked", "answered", "hung up", "MiB at first", "MiB at last", "files"]);
    // The first quarter fills caches.
    let at = |place: usize| samples.get(place).copied().unwrap_or_default();
    let (first, last) = (at(samples.len() / 4), at(samples.len().saturating_sub(1)));
    let files = svc.open_files();
    report.row([
        "soak".to_owned(),
        tally.asked.load(Ordering::Relaxed).to_string(),
        tally.answered.load(Ordering::Relaxed).to_string(),
        tally.hung_up.load(Ordering::Relaxed).to_string(),
        format!("{:.1}", first.0),
        format!("{:.1}", last.0),
        format!("{before} to {files}"),
    ]);
    report.at_most("memory.last_by_first", last.0 / first.0, 1.15);
    report.at_most("reserved_micros_left", count(reserved(console)?), 0.0);
    report.at_most("files_more_than_at_first", count(files as u64) - count(before as u64), KEPT_MAX);
    let known = tally.answered.load(Ordering::Relaxed) + tally.hung_up.load(Ordering::Relaxed);
    report.at_least("answered_or_hung_up_of_asked", count(known) / count(tally.asked.load(Ordering::Relaxed)), 1.0);
    report.print();
    Ok(())
}

/// Asks again and again, on connections that last until one breaks or is left.
async fn work(port: u16, headers: String, seed: u64, tally: Arc<Tally>) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while !tally.over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else {
            sleep(Duration::from_millis(10)).await;
            continue;
        };
        // A connection ends after some requests, or with a client that does not wait for the end.
        while !tally.over.load(Ordering::Relaxed) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dice = random >> 33;
            let model = MODELS.get(usize::try_from(dice % 9).unwrap_or(0)).copied().unwrap_or("mock");
            let (streamed, leaves) = (dice >> 4 & 1 == 1, dice >> 5 & 7 == 0);
            tally.asked.fetch_add(1, Ordering::Relaxed);
            if leaves {
                tally.hung_up.fetch_add(1, Ordering::Relaxed);
            }
            let went = timeout(Duration::from_secs(60), ask(&mut stream, &headers, model, streamed, leaves)).await;
            if !leaves && matches!(went, Ok(Some(_))) {
                tally.answered.fetch_add(1, Ordering::Relaxed);
            }
            if leaves || !matches!(went, Ok(Some(true))) {
                break;
            }
        }
    }
}

/// One request; whether the connection may go on, or nothing where no answer came.
async fn ask(stream: &mut TcpStream, headers: &str, model: &str, streamed: bool, leaves: bool) -> Option<bool> {
    let body = json!({
        "model": format!("soak/{model}"), "stream": streamed, "max_tokens": 300,
        "messages": [{ "role": "user", "content": "Tell me something about soaking." }],
    });
    let mut request = Vec::new();
    post(&mut request, "/v1/chat/completions", headers, &body.to_string());
    stream.write_all(&request).await.ok()?;
    let mut heard = Vec::with_capacity(16_384);
    loop {
        if stream.read_buf(&mut heard).await.ok()? == 0 {
            return (!heard.is_empty()).then_some(false);
        }
        if leaves {
            return Some(false);
        }
        let Some(head) = heard.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(heard.get(..head).unwrap_or_default()).into_owned();
        let length = text.split("\r\n").find_map(|it| it.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let whole = match length {
            Some(length) => heard.len() >= head + 4 + length,
            None => heard.ends_with(b"0\r\n\r\n"),
        };
        if whole {
            return Some(!text.contains("connection: close"));
        }
    }
}
