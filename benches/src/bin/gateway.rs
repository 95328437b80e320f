//! Model calls through svc beside other gateways: a bare hyper relay, nginx, and LiteLLM and Portkey where they are installed
//! (`benches/gateway` sees to it). Each is a process on a processor of its own; the load and the provider have the other.
//!
//! `--seconds S` makes a slice last longer, `--rounds N` takes more of them; `--svc FILE` names the `svc` program, which lies
//! beside this one otherwise.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde_json::json;
use svc_benches::Fault;
use svc_benches::asks::post;
use svc_benches::load::{Load, Shared, Slice, Source};
use svc_benches::measure::{count, median, nanos};
use svc_benches::peers::{self, Peer, free_port};
use svc_benches::relay::{provider, relay};
use svc_benches::report::{Report, micros};

/// Bytes of a request's body.
const BODY: usize = 1_024;

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("--as") {
        let kind = arguments.next().unwrap_or_default();
        let mut number = || arguments.next().ok_or("a port is missing")?.parse::<u16>().map_err(Fault::from);
        let (port, upstream) = (number()?, number()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime
            .block_on(async { if kind == "provider" { provider(port).await } else { relay(port, upstream).await } });
    }
    let options = Options::read()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    tokio::task::LocalSet::new().block_on(&runtime, compare(&options))
}

/// How long and how often.
struct Options {
    slice: Duration,
    rounds: usize,
    svc: PathBuf,
}

impl Options {
    fn read() -> Result<Self, Fault> {
        let svc = std::env::current_exe()?.with_file_name("svc");
        let mut options = Self { slice: Duration::from_secs(2), rounds: 5, svc };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or("a value is missing");
            match argument.as_str() {
                "--seconds" => options.slice = Duration::from_secs_f64(value()?.parse()?),
                "--rounds" => options.rounds = value()?.parse()?,
                "--svc" => options.svc = value()?.into(),
                other => return Err(format!("unknown argument `{other}`").into()),
            }
        }
        Ok(options)
    }
}

/// One kind of load.
struct Work {
    name: &'static str,
    connections: usize,
    stream: bool,
}

const WORK: [Work; 3] = [
    Work { name: "json", connections: 32, stream: false },
    Work { name: "one", connections: 1, stream: false },
    Work { name: "stream", connections: 16, stream: true },
];

async fn compare(options: &Options) -> Result<(), Fault> {
    let directory = tempfile::tempdir()?;
    let upstream = free_port()?;
    // On the load's processor, and a process of its own, so that it waits for nobody here.
    let _provider = peers::provider(upstream)?;
    let (svc, console) = peers::svc(&options.svc, directory.path())?;
    console.provide("bench", &format!("http://127.0.0.1:{upstream}/v1"), &["large-1"])?;
    let mut all = vec![
        Some(svc),
        Some(peers::itself("bare relay", "relay", upstream)?),
        peers::nginx(directory.path(), upstream)?,
        peers::portkey(upstream)?,
        peers::litellm(directory.path(), upstream)?,
    ];
    let peers: Vec<Peer> = all.drain(..).flatten().collect();
    let mut results: BTreeMap<(&str, &str), Vec<Measured>> = BTreeMap::new();
    for round in 0..=options.rounds {
        for work in &WORK {
            let direct = slice(upstream, "", "large-1", work, options).await?;
            if round > 0 {
                results.entry((work.name, "direct")).or_default().push(Measured { slice: direct, cpu: 0.0 });
            }
            for peer in &peers {
                let before = peer.used();
                let slice = slice(peer.port, &peer.headers, &peer.model, work, options).await?;
                let cpu = peer.used().cpu.saturating_sub(before.cpu);
                if (slice.failed > 0 || slice.latencies.is_empty()) && peer.name != "svc" {
                    // A peer that cannot do this kind of work with this provider is left out of its rows.
                    continue;
                }
                if slice.failed > 0 || slice.latencies.is_empty() {
                    let all = slice.latencies.len();
                    return Err(
                        format!("{}, {}: {} of {all} requests failed", peer.name, work.name, slice.failed).into()
                    );
                }
                let cpu = nanos(cpu) / count(slice.latencies.len() as u64);
                if round > 0 {
                    results.entry((work.name, peer.name)).or_default().push(Measured { slice, cpu });
                }
            }
        }
    }
    tell(&results, &peers);
    Ok(())
}

/// A slice of load, and what the gateway used for each request of it, in nanoseconds.
struct Measured {
    slice: Slice,
    cpu: f64,
}

async fn slice(port: u16, headers: &str, model: &str, work: &Work, options: &Options) -> Result<Slice, Fault> {
    let shared: Shared = Rc::new(RefCell::new(Chat::new(headers, model, work.stream)));
    Load::open(port, work.connections).await?.run(&shared, options.slice).await
}

fn tell(results: &BTreeMap<(&str, &str), Vec<Measured>>, peers: &[Peer]) {
    let mut report =
        Report::new("gateway", &["gateway", "what", "requests/s", "cpu us", "p50 us", "added p50 us", "p99 us"]);
    let found = |work: &'static str, peer: &'static str| results.get(&(work, peer)).map_or(&[][..], Vec::as_slice);
    let cpu = |work, peer| median(found(work, peer).iter().map(|it| it.cpu));
    let half = |work, peer| median(found(work, peer).iter().map(|it| it.slice.latency(0.5)));
    let added = |work, peer| {
        let pairs = found(work, peer).iter().zip(found(work, "direct"));
        median(pairs.map(|(it, direct)| it.slice.latency(0.5) - direct.slice.latency(0.5)))
    };
    for work in &WORK {
        for peer in peers.iter().filter(|it| !found(work.name, it.name).is_empty()) {
            let rounds = found(work.name, peer.name);
            report.row([
                peer.name.to_owned(),
                work.name.to_owned(),
                format!("{:.0}", median(rounds.iter().map(|it| it.slice.rate()))),
                micros(cpu(work.name, peer.name)),
                micros(half(work.name, peer.name)),
                micros(added(work.name, peer.name)),
                micros(median(rounds.iter().map(|it| it.slice.latency(0.99)))),
            ]);
            report.figure(format!("{}.{}.cpu_us", work.name, peer.name), cpu(work.name, peer.name) / 1e3);
        }
    }
    for peer in peers {
        report.figure(format!("{}.resident_mib", peer.name), count(peer.used().memory) / 1_048_576.0);
    }
    let ratio = |work, other: &'static str, of: &dyn Fn(&Measured) -> f64| {
        median(found(work, "svc").iter().zip(found(work, other)).map(|(svc, other)| of(svc) / of(other)))
    };
    report.at_most("json.cpu.svc_by_bare_relay", ratio("json", "bare relay", &|it| it.cpu), 2.0);
    for peer in ["LiteLLM", "Portkey"] {
        if !found("json", peer).is_empty() {
            report.at_most(format!("json.cpu.svc_by_{peer}"), ratio("json", peer, &|it| it.cpu), 1.0);
        }
    }
    report.at_most("one.added_p50.svc_by_bare_relay", added("one", "svc") / added("one", "bare relay"), 1.5);
    if !found("stream", "nginx").is_empty() {
        report.at_most("stream.cpu.svc_by_nginx", ratio("stream", "nginx", &|it| it.cpu), 1.5);
    }
    if let Some(svc) = peers.iter().find(|it| it.name == "svc") {
        report.at_most("svc.resident_mib_after_load", count(svc.used().memory) / 1_048_576.0, 40.0);
    }
    report.print();
}

/// One request of 1 kB, again and again.
struct Chat {
    request: Vec<u8>,
}

impl Chat {
    fn new(headers: &str, model: &str, stream: bool) -> Self {
        let body = |fill: usize| {
            json!({
                "model": model, "stream": stream, "max_tokens": 64,
                "messages": [
                    { "role": "system", "content": "You answer in one sentence." },
                    { "role": "user", "content": "word ".repeat(fill.div_ceil(5)).get(..fill).unwrap_or_default() },
                ],
            })
            .to_string()
        };
        let fill = BODY.saturating_sub(body(0).len());
        let mut request = Vec::new();
        post(&mut request, "/v1/chat/completions", headers, &body(fill));
        Self { request }
    }
}

impl Source for Chat {
    fn next(&mut self, into: &mut Vec<u8>) -> bool {
        into.extend_from_slice(&self.request);
        true
    }

    fn answered(&mut self, _: &[u8]) {}
}
