//! What checking a bundle takes: one of a hundred mebibytes is written as a gate writes it, and checked by a process of its own
//! that reads it as `svc evidence verify` does; its peak of memory has to be bounded.
//!
//! `--mib N` sets how large the bundle is to be at least.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use svc_benches::Fault;
use svc_benches::lane::Lane;
use svc_benches::measure::{count, timed};
use svc_benches::report::Report;
use svc_core::state::evidence::bundle::{Verdict, Verifier};
use svc_core::store::{Clock as _, MemoryStore};
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;
use svc_store::evidence::Wanted;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::seal::MasterKey;
use svc_store::{Gate, Settings};

const MIB: u64 = 100;
const MEBIBYTE: f64 = 1_048_576.0;
/// The most that checking a bundle may hold, whatever its length.
const BAR_MIB: f64 = 64.0;
const AGENTS: usize = 100;
const BATCH: usize = 256;
/// Batches between two looks at how long the bundle is.
const BETWEEN: usize = 20;
/// Bytes that are read at once.
const READ_AT_ONCE: usize = 1 << 16;

fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => measure(MIB),
        (Some("--mib"), Some(value)) => measure(value.parse()?),
        (Some("--verify"), Some(path)) => verify(Path::new(&path)),
        (Some(other), _) => Err(format!("unknown argument `{other}`").into()),
    }
}

fn measure(mebibytes: u64) -> Result<(), Fault> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("bundle.json");
    let (bytes, writing) = write(&path, mebibytes * 1_048_576)?;
    let done = Command::new(std::env::current_exe()?).arg("--verify").arg(&path).output()?;
    let told = String::from_utf8(done.stdout)?;
    let mut figures = told.split_whitespace().map(str::parse::<f64>);
    let (Some(Ok(records)), Some(Ok(nanos)), Some(Ok(peak))) = (figures.next(), figures.next(), figures.next()) else {
        return Err(format!("not checked: {told}{}", String::from_utf8_lossy(&done.stderr)).into());
    };
    let mut report = Report::new("evidence", &["", "MiB", "records", "cpu s", "ns a byte"]);
    for (name, nanos) in [("write", writing), ("verify", nanos)] {
        report.row([
            name.to_owned(),
            format!("{:.1}", bytes / MEBIBYTE),
            format!("{records}"),
            format!("{:.1}", nanos / 1e9),
            format!("{:.1}", nanos / bytes),
        ]);
    }
    report.figure("verify_by_write.cpu", nanos / writing);
    report.at_least("bundle_mib", bytes / MEBIBYTE, count(mebibytes));
    report.at_most("verify_peak_mib", peak, BAR_MIB);
    report.print();
    Ok(())
}

/// Writes a bundle of at least so many bytes, and gives its length and the nanoseconds of processor time of writing it.
fn write(path: &Path, least: u64) -> Result<(f64, f64), Fault> {
    let mut store = MemoryStore::new();
    let mut lane = Lane::over(store.clone());
    lane.grow_to(AGENTS)?;
    let master = MasterKey::new(Secret::new([8; 32]));
    let clock = lane.world.clock().clone();
    let signer = receipt_signer(&mut store, path, Some(master), clock.now(), "https://gate.example", &dalek)?;
    let mut settings = Settings::default();
    settings.timers = false;
    let gate = Gate::over(store, clock, signer, settings)?;
    let wanted = Wanted {
        workspace: lane.world.workspace(),
        from: Timestamp::default(),
        to: None,
        since: None,
        start: None,
        agent: None,
        redact: false,
    };
    loop {
        for _ in 0..BETWEEN {
            let commands = lane.commands(BATCH);
            lane.decide(commands)?;
        }
        lane.world.engine().tick()?;
        let mut file = File::create(path)?;
        let (done, cost) = timed(1, || -> Result<u64, Fault> {
            let mut bytes = 0;
            for piece in gate.bundle(&wanted)? {
                let piece = piece?;
                file.write_all(&piece)?;
                bytes += u64::try_from(piece.len())?;
            }
            Ok(bytes)
        });
        let bytes = done?;
        eprintln!("{} MiB written", bytes / 1_048_576);
        if bytes >= least {
            return Ok((count(bytes), cost.cpu));
        }
    }
}

/// Checks the bundle and prints its records, the nanoseconds of processor time and the peak of memory in MiB.
fn verify(path: &Path) -> Result<(), Fault> {
    let (mut verifier, mut buffer, mut file) = (Verifier::default(), vec![0; READ_AT_ONCE], File::open(path)?);
    let (done, cost) = timed(1, || -> Result<(), Fault> {
        loop {
            let bytes = file.read(&mut buffer)?;
            if bytes == 0 || !verifier.feed(buffer.get(..bytes).unwrap_or_default()) {
                return Ok(());
            }
        }
    });
    done?;
    let report = verifier.finish();
    if report.verdict != Verdict::Whole {
        return Err(format!("{report:?}").into());
    }
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    println!("{} {} {}", report.records, cost.cpu, kib / 1024.0);
    Ok(())
}
