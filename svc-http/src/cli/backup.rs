//! `svc backup FILE`: a copy of the database while a server runs on it.

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use svc_http::config::Loaded;
use svc_store::sqlite::{self, BreakOff, Copied, Progress, Work};
use tokio::sync::oneshot;

use super::listen::Begun;
use super::output::{Problem, note, print_made};

/// How often is told how far it is.
const TELL: Duration = Duration::from_secs(2);
const MIB: u64 = 1024 * 1024;

/// Copies the database, checks the copy, and says what else has to be kept.
///
/// # Errors
/// [`Problem`] where there is no database, the file is there already, it cannot be written, or the database is damaged.
pub(crate) fn run(loaded: &Loaded, to: &Path, json: bool) -> Result<ExitCode, Problem> {
    if loaded.config.postgres.is_some() {
        return Err(Problem::new(
            "the database lies on a server of PostgreSQL, which has its own backups",
            "Use `pg_dump --schema=svc`, or back the server up; and keep the master key.",
        ));
    }
    let (began, mut told_at) = (Instant::now(), Instant::now());
    let every = if std::io::stderr().is_terminal() { TELL / 4 } else { TELL };
    let mut tell = |it: Progress| {
        if told_at.elapsed() >= every && it.total > 0 {
            told_at = Instant::now();
            let percent = it.done.saturating_mul(100) / it.total;
            note(&match it.work {
                Work::Copy => format!("{percent} % of {} MiB copied\n", it.total / MIB),
                Work::ReadBack => format!("{percent} % of {} records of the ledger read back\n", it.total),
            });
        }
    };
    let copied = unless_stopped(&loaded.config.database_directory(), to, &mut tell)?;
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let key = place_of_key(loaded);
    if json {
        let told = json!({
            "file": to.display().to_string(),
            "bytes": copied.bytes,
            "schema": copied.schema,
            "stamp": copied.stamp,
            "records": copied.records,
            "durationMs": ms,
            "keepToo": key,
        });
        print_made(&format!("{told}\n"), GOOD)?;
    } else {
        let records = copied.records.map(|it| format!(" with {it} records of the ledger")).unwrap_or_default();
        let (place, bytes) = (to.display(), copied.bytes);
        let told = format!("{place} holds the database, {bytes} bytes, checked{records}; it took {ms} ms\n");
        print_made(&told, GOOD)?;
    }
    note(&format!(
        "Keep `{key}` too, at another place: without it nothing in the backup that is sealed can be opened.\n\
         To restore, put the file into an empty data directory as `svc.db`, with that key beside it, and start the server.\n\
         What happened after the copy is forgotten then: receipts that were used are good again, stops and revocations since are\n\
         undone. Before anybody is let in, run `svc key rotate --use receipt --compromised` on it and freeze all agents; the\n\
         README has the steps (\"Restoring a backup\").\n"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Makes the backup; a signal breaks it off.
fn unless_stopped(directory: &Path, to: &Path, tell: &mut dyn FnMut(Progress)) -> Result<Copied, Problem> {
    let unready = |error: std::io::Error| {
        let advice = "Look at this user's limits of threads and open files.";
        Problem::new(format!("the backup cannot begin: {error}"), advice)
    };
    let Begun { runtime, mut stops } = Begun::new().map_err(unready)?;
    let off = BreakOff::default();
    let (done, is_done) = oneshot::channel::<()>();
    let listened = off.clone();
    let listen = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = is_done => {}
                () = stops.next() => listened.now(),
            }
        });
    };
    let listening = thread::Builder::new().name("svc-signals".into()).spawn(listen).map_err(unready)?;
    let copied = sqlite::backup_unless(&off, directory, to, tell);
    drop(done);
    // It ends by itself, and has nothing to say.
    drop(listening.join());
    copied?
        .ok_or_else(|| Problem::new("a signal broke the backup off", "Nothing of it is left: run the command again."))
}

/// What holds the master key: the environment, which goes before the settings file, that file, or one of its own.
fn place_of_key(loaded: &Loaded) -> String {
    let own = || loaded.config.data.join("master.key");
    match &loaded.file {
        _ if std::env::var_os(IN_ENVIRONMENT).is_some() => IN_ENVIRONMENT.to_owned(),
        Some(file) if loaded.config.master_key.is_some() => file.display().to_string(),
        Some(_) | None => own().display().to_string(),
    }
}

/// Where nobody could be told of it, it was made all the same.
const GOOD: &str = "The backup was made and checked, and is good: only this could not be told.";
/// The master key's name in the environment.
const IN_ENVIRONMENT: &str = "SVC_MASTER_KEY";
