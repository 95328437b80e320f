//! Opening the store as the settings say, and telling what is in its way.

use std::error::Error;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::Arc;

use svc_core::engine::Failure;
use svc_core::refusal::{Kind, Refusal};
use svc_core::state::gate::receipt::Signer;
use svc_core::store::CommitError;
use svc_core::value::Timestamp;
use svc_core::value::secret::Secret;
use svc_http::clock;
use svc_http::config::{BaseUrl, Config};
use svc_http::signer::AwsSigner;
use svc_store::keys::{dalek, receipt_signer};
use svc_store::newest::{CLOCK_SLACK, is_tellable, newest_record};
use svc_store::seal::MasterKey;
use svc_store::{Gate, Settings, StoreError, SystemClock};

use super::database::{Database, unopened};
use super::occupancy::Occupancy;
use super::output::Problem;

/// What becomes of a data directory without a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made.
    Make,
    /// It is an error.
    Refuse,
}

/// What the store says names the file and what to do; what lies behind it follows.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let mut what = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            what.push_str(&format!(" ({cause})"));
            source = cause.source();
        }
        Self::plain(what)
    }
}

/// What is refused is told with all that the refusal names; a fix that speaks of a request's members fits no shell.
impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        if !refusal.errors().is_empty() {
            let faults = refusal.errors().iter().map(|it| it.message.to_string());
            return Self::several(faults, "Correct what was given and run the command again.");
        }
        if refusal.kind() == Kind::NotReady {
            let what = "nothing can be decided at the moment: the store is busy, or this machine's clock is apart from its own";
            return Self::new(what, "Look with `svc doctor`, then run the command again.");
        }
        let why = refusal.reason().map(|it| format!(": {it}")).unwrap_or_default();
        Self::new(format!("{}{why}", refusal.message()), refusal.fix().unwrap_or("Try again."))
    }
}

impl From<Failure<StoreError>> for Problem {
    fn from(failure: Failure<StoreError>) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Load(error) => error.into(),
            Failure::Commit(CommitError::Unavailable(error) | CommitError::Rejected(error)) => error.into(),
            Failure::Commit(CommitError::Unknown(error)) => Self::new(
                format!("it is not known whether it was written: {error}"),
                "Look with `svc doctor`, then try again.",
            ),
            Failure::Contended => Self::new("another process kept writing the same rows", "Try again."),
        }
    }
}

/// What the gate is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A few operations of one command: what is due is left to a server.
    Command,
    /// Serving, after a few operations of the command.
    Dev,
    /// Serving.
    Server,
}

/// Opens the gate over the configured database; the key that signs receipts is made with it.
///
/// # Errors
/// [`Problem`] where there is no data directory to be had, its key is not the one that it was made with, or the clock tells no time at
/// which anything is decided.
pub(crate) fn open(config: &Config, base_url: &BaseUrl, missing: Missing, purpose: Use) -> Result<Gate, Problem> {
    possible(clock::now())?;
    let store = match missing {
        Missing::Make => {
            make_place_of_key(config, purpose)?;
            match purpose {
                Use::Command => Database::make(config),
                Use::Dev | Use::Server => Database::make_to_serve(config).map(|it| it.serving(base_url)),
            }
        }
        Missing::Refuse => Database::existing(config),
    }
    .map_err(|error| unopened(config, error))?;
    let master = config.master_key.as_ref().map(|key| MasterKey::parse(key.expose())).transpose()?;
    let (now, issuer) = (clock::now(), base_url.as_str());
    let signer = receipt_signer(&mut *store.writer()?, &config.data, master.clone(), now, issuer, &signer)?;
    let mut settings = Settings::default();
    settings.vault = match master {
        Some(master) => Some(master),
        None => MasterKey::read(&config.data)?,
    };
    settings.timers = purpose != Use::Command;
    if purpose != Use::Server {
        in_time(&store)?;
    }
    Ok(match store {
        Database::Sqlite(store) => Gate::over(store, SystemClock::new(), signer, settings),
        #[cfg(feature = "postgres")]
        Database::Postgres(store) => Gate::over(store, SystemClock::new(), signer, settings),
    }?)
}

/// The same for a server, which no other may serve a file beside; the database is made where there is none.
///
/// # Errors
/// [`Problem`] as [`open`], and where another server works on the database.
pub(crate) fn open_alone(
    config: &Config,
    base_url: &BaseUrl,
    purpose: Use,
) -> Result<(Gate, Option<Occupancy>), Problem> {
    if config.postgres.is_some() {
        return Ok((open(config, base_url, Missing::Make, purpose)?, None));
    }
    let directory = config.database_directory();
    // Before anything is looked at, so that no release brings a database up to date under a running server.
    let held = Occupancy::take(&directory)?;
    let gate = open(config, base_url, Missing::Make, purpose)?;
    let held = match held {
        Some(held) if held.is_over(&directory) => Some(held.with_file(&directory)?),
        _ => Occupancy::take(&directory)?,
    };
    Ok((gate, held))
}

/// That the clock tells a time at which anything is decided: before anything is made that would stand at another one.
fn possible(now: Timestamp) -> Result<(), Problem> {
    if is_tellable(now) {
        return Ok(());
    }
    let or_before = if now.as_millis() > 0 { "" } else { " or before" };
    Err(Problem::new(
        format!("it is {now}{or_before} by this machine's clock, which it cannot be: nothing is decided then"),
        "Set the clock and keep it by NTP, then try again.",
    ))
}

/// That the clock is not behind what the store holds: nothing is decided then, and what is refused speaks to callers of a
/// server, not to whoever can set its clock.
///
/// # Errors
/// [`Problem`] where it is, or where rows could not be read.
fn in_time(store: &Database) -> Result<(), Problem> {
    let mut reader = store.reader()?;
    let (now, newest) = (clock::now(), newest_record(|range| reader.scan(range))?);
    match newest.filter(|it| *it > now.plus(CLOCK_SLACK)) {
        None => Ok(()),
        Some(newest) => Err(Problem::new(
            format!(
                "it is {now} by this machine's clock, which is behind the newest record of the database, of {newest}"
            ),
            CLOCK_BEHIND,
        )),
    }
}

/// What to do where the clock is behind the newest record. Which of both it is, no program can know.
pub(crate) const CLOCK_BEHIND: &str = "Set the clock where it is wrong, and keep it by NTP. Where it is right, it was ahead when that record was \
     written: nothing is decided until it has passed it; wait, or put a backup of before in place (docs/operations.md, \"When the clock was wrong\").";

/// Makes the data directory where the database lies elsewhere and the master key is to lie here: before the database, which
/// would be there without its key. A command that makes things on a database server notes here what nobody has seen yet.
fn make_place_of_key(config: &Config, purpose: Use) -> Result<(), Problem> {
    let is_elsewhere = config.database.is_some() || config.postgres.is_some();
    let is_needed = config.master_key.is_none() || (config.postgres.is_some() && purpose == Use::Command);
    if !is_elsewhere || !is_needed {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&config.data).map_err(|error| {
        Problem::new(
            format!("`{}` cannot be made for the master key: {error}", config.data.display()),
            "Name another directory with `--data`, or give the key itself as `SVC_MASTER_KEY`.",
        )
    })
}

/// The server's signer; the core's where the library takes no key from the seed, which makes the same bytes.
fn signer(seed: &Secret<[u8; 32]>, issuer: &str) -> Arc<dyn Signer> {
    match AwsSigner::new(seed, issuer) {
        Ok(signer) => Arc::new(signer),
        Err(_weak) => dalek(seed, issuer),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
    use super::*;

    /// Nothing starts by a clock that tells what no answer could be dated with, and what is told names the clock.
    #[test]
    fn a_clock_of_no_year_starts_nothing() {
        for (text, is_possible) in [
            ("1970-01-01T00:00:00Z", false),
            ("1970-01-01T00:00:00.001Z", true),
            ("2026-10-01T09:30:00Z", true),
            ("9998-12-31T23:59:59.999Z", true),
            ("9999-01-01T00:00:00Z", false),
        ] {
            let possible = possible(Timestamp::parse(text).unwrap());
            assert_eq!(possible.is_ok(), is_possible, "{text}");
            let Err(problem) = possible else { continue };
            let (what, advice) = problem.faults()[0].clone();
            assert!(what.contains("this machine's clock") && advice.unwrap().starts_with("Set the clock"), "{what}");
        }
    }
}
