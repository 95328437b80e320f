//! Feeds the targets with variations of their seeds: `svc-fuzz [TARGET...]`, all of them where none is named.
//!
//! `FUZZ_SECONDS` is how long each runs (3), `FUZZ_SEED` what the variations follow from (random; it is printed), and
//! `FUZZ_ARTIFACTS` where an input that broke something is kept (`target/fuzz`). `svc-fuzz --corpus DIR` writes what the
//! targets begin with, a folder a target, for another fuzzer.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use svc_fuzz::mutate::Mutator;
use svc_fuzz::{TARGETS, Target, corpus, target};

/// An input that takes longer hangs.
const HANG: Duration = Duration::from_secs(20);
/// So many bytes of a breaking input are shown.
const SHOWN: usize = 200;

/// How a run goes.
struct Plan {
    time: Duration,
    seed: u64,
    artifacts: PathBuf,
}

/// What became of a target.
struct Outcome {
    inputs: u64,
    slowest: Duration,
    /// What was wrong, and the input that showed it.
    broken: Option<(&'static str, Vec<u8>)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [flag, folder] = words.as_slice()
        && flag == "--corpus"
    {
        return written(write_corpus(Path::new(folder)));
    }
    let mut chosen: Vec<&Target> = Vec::new();
    for word in &words {
        let Some(found) = target(word) else {
            let names: Vec<&str> = TARGETS.iter().map(|it| it.name).collect();
            eprintln!("no such target: {word} ({})", names.join(" "));
            return ExitCode::from(2);
        };
        chosen.push(found);
    }
    if chosen.is_empty() {
        chosen = TARGETS.iter().collect();
    }
    let plan = Plan {
        time: Duration::from_secs_f64(number("FUZZ_SECONDS").unwrap_or(3.0)),
        seed: number("FUZZ_SEED").unwrap_or_else(|| RandomState::new().build_hasher().finish() >> 16),
        artifacts: env::var_os("FUZZ_ARTIFACTS").map_or_else(|| PathBuf::from("target/fuzz"), PathBuf::from),
    };
    println!("FUZZ_SEED={} FUZZ_SECONDS={}", plan.seed, plan.time.as_secs_f64());
    let failed = failing(&chosen, &plan);
    println!("fuzz: {} passed, {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn number<T: std::str::FromStr>(name: &str) -> Option<T> {
    env::var(name).ok().and_then(|it| it.parse().ok())
}

fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the corpus cannot be written: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_corpus(folder: &Path) -> io::Result<()> {
    for target in TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (place, input) in corpus(target).iter().enumerate() {
            fs::write(folder.join(format!("{place:03}")), input)?;
        }
    }
    Ok(())
}

/// How many of the targets find something; as many run at once as there are processors.
fn failing(chosen: &[&Target], plan: &Plan) -> usize {
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let take = || {
        while let Some(target) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            failed.fetch_add(usize::from(!passes(target, plan)), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(take);
        }
    });
    failed.into_inner()
}

fn passes(target: &Target, plan: &Plan) -> bool {
    let outcome = run(target, plan);
    let told = format!("{:12} {:>7} inputs, slowest {:?}", target.name, outcome.inputs, outcome.slowest);
    let Some((what, input)) = outcome.broken else {
        println!("{told}");
        return true;
    };
    let path = plan.artifacts.join(format!("{}-{}", target.name, plan.seed));
    let kept = fs::create_dir_all(&plan.artifacts).and_then(|()| fs::write(&path, &input));
    let begin = input.get(..SHOWN).unwrap_or(&input);
    println!("{told}, {what} with FUZZ_SEED={}: {}", plan.seed, String::from_utf8_lossy(begin).escape_debug());
    match kept {
        Ok(()) => println!("kept in {}; move it to tests/fuzz/corpus/{}/", path.display(), target.name),
        Err(error) => println!("it cannot be kept in {}: {error}", path.display()),
    }
    false
}

/// Runs a target on a thread, which is left alone where it hangs: the process ends soon.
fn run(target: &Target, plan: &Plan) -> Outcome {
    let current = Arc::new(Mutex::new(Vec::new()));
    let (done, news) = mpsc::sync_channel(64);
    let (shown, body, time, seed) = (Arc::clone(&current), *target, plan.time, plan.seed);
    thread::spawn(move || feed(&body, time, seed, &shown, &done));
    let mut outcome = Outcome { inputs: 0, slowest: Duration::ZERO, broken: None };
    loop {
        let last = || current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match news.recv_timeout(HANG) {
            Ok((took, true)) => {
                outcome.inputs += 1;
                outcome.slowest = outcome.slowest.max(took);
            }
            Ok((_, false)) => outcome.broken = Some(("a panic", last())),
            Err(mpsc::RecvTimeoutError::Timeout) => outcome.broken = Some(("a hang", last())),
            Err(mpsc::RecvTimeoutError::Disconnected) => return outcome,
        }
        if outcome.broken.is_some() {
            return outcome;
        }
    }
}

/// Gives a target its corpus and then variations of it, and tells of each input how long it took and whether it passed.
fn feed(
    target: &Target,
    time: Duration,
    seed: u64,
    current: &Mutex<Vec<u8>>,
    done: &mpsc::SyncSender<(Duration, bool)>,
) {
    let begin = Instant::now();
    let from = corpus(target);
    let mut mutator = Mutator::new(seed);
    let mut place = 0;
    while place < from.len() || begin.elapsed() < time {
        let input = from.get(place).cloned().unwrap_or_else(|| mutator.input(&from));
        place += 1;
        current.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&input);
        let began = Instant::now();
        let passed = catch_unwind(|| (target.run)(&input)).is_ok();
        if done.send((began.elapsed(), passed)).is_err() || !passed {
            return;
        }
    }
}
