//! `svc migrate`: brings the database to the schema of this release, as the next start would; with `--from`, the gate of a data
//! directory to the PostgreSQL of the settings.

use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use svc_http::config::Config;

use super::database::{self, Database, unopened};
use super::output::{Problem, print, print_json};

/// Migrates and tells from which schema to which.
///
/// # Errors
/// [`Problem`] where there is no database, it is newer than this release, a server works on an older one, or it cannot be written.
pub(crate) fn run(config: &Config, json: bool) -> Result<ExitCode, Problem> {
    let from = database::schema_of(config).map_err(|error| unopened(config, error))?;
    // A database server has its tables from the first that asks; a file is made by a first start alone.
    drop(if config.postgres.is_some() { Database::make(config) } else { Database::existing(config) }?);
    let to = database::schema_of(config)?;
    let shown = database::place(config);
    if json {
        print_json(&json!({ "from": from, "to": to }))?;
    } else if from == to {
        print(&format!("{} has schema {to} already\n", shown))?;
    } else {
        print(&format!("{} was brought from schema {from} to schema {to}\n", shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Moves the gate of the data directory `from` to the settings' database, and says what has to come too.
///
/// # Errors
/// [`Problem`] where the settings name no PostgreSQL, where anybody works on either database, where there is nothing to move or
/// something in its way, or where it did not come through.
#[cfg(feature = "postgres")]
pub(crate) fn move_here(config: &Config, from: &Path, json: bool) -> Result<ExitCode, Problem> {
    moving::run(config, from, json)
}

/// The same in a program without PostgreSQL.
#[cfg(not(feature = "postgres"))]
pub(crate) fn move_here(_config: &Config, _from: &Path, _json: bool) -> Result<ExitCode, Problem> {
    Err(Problem::new("this program was made without PostgreSQL", "Take one that was made with the feature `postgres`."))
}

#[cfg(feature = "postgres")]
mod moving {
    use std::path::Path;
    use std::process::ExitCode;
    use std::time::{Duration, Instant};

    use serde_json::json;
    use svc_http::config::Config;
    use svc_store::keys::opens;
    use svc_store::seal::{MASTER_KEY, MasterKey};
    use svc_store::sqlite::{OF_A_BACKUP, is_unserved_backup};
    use svc_store::{Moved, Moving, StoreError, move_to_postgres};

    use crate::cli::database::{Database, SCHEMA, place, terms};
    use crate::cli::occupancy::Occupancy;
    use crate::cli::output::{Problem, note, print_made, writable};

    /// How often is told how far it is.
    const TELL: Duration = Duration::from_secs(2);
    /// Where nobody could be told of it, it was made all the same.
    const GOOD: &str = "The gate was moved: only this could not be told.";

    pub(super) fn run(config: &Config, from: &Path, json: bool) -> Result<ExitCode, Problem> {
        writable()?;
        let Some(address) = &config.postgres else {
            return Err(Problem::new(
                "the settings name no PostgreSQL to move to",
                "Name its address as `store.url`, or as `SVC_STORE_URL`: `postgres://user:password@host/database`.",
            ));
        };
        // What a server takes, for as long as it runs: none is started meanwhile.
        let _alone = Occupancy::take(from).map_err(|_| {
            Problem::new(
                format!("a server works on the database in `{}`", from.display()),
                "Stop it, and have nothing start it again: the gate is served from PostgreSQL next.",
            )
        })?;
        // It is told of before anything else is, and whoever serves the gate next reads it nowhere else.
        let is_backup = is_unserved_backup(from).unwrap_or(false);
        let (began, mut told_at) = (Instant::now(), Instant::now());
        let mut tell = |it: Moving| match it {
            Moving::Copied { rows, of } if told_at.elapsed() >= TELL && of > 0 => {
                told_at = Instant::now();
                note(&format!("{} % of {of} rows copied\n", rows.saturating_mul(100) / of));
            }
            Moving::Checked if began.elapsed() >= TELL => note("all rows are there, and counted\n"),
            _ => {}
        };
        let moved = move_to_postgres(from, address.expose(), terms(config), &mut tell);
        let moved = moved.map_err(|error| unmoved(config, from, error))?;
        let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (shown, keep) = (from.display().to_string(), from.join(MASTER_KEY).display().to_string());
        let (text, told) = match &moved {
            Moved::Now(it) => {
                if it.schema < SCHEMA {
                    note(&format!("svc: the file was brought from schema {} to schema {SCHEMA} first\n", it.schema));
                }
                let text = format!(
                    "{} was moved to {}, schema svc: {} rows of {} tables, counted there; it took {ms} ms\n",
                    from.display(),
                    it.to,
                    it.rows,
                    it.tables
                );
                if is_backup {
                    note(&format!("svc: {}: {OF_A_BACKUP}\n", from.display()));
                }
                let told = json!({
                    "from": shown, "to": it.to, "already": false, "tables": it.tables, "rows": it.rows, "entries": it.entries,
                    "stamp": it.stamp, "durationMs": ms, "keepToo": keep, "backup": is_backup,
                });
                (text, told)
            }
            Moved::Before { to } => {
                let text = format!("{} was moved to {to} already, and nothing was done\n", from.display());
                (text, json!({ "from": shown, "to": to, "already": true, "durationMs": ms, "keepToo": keep }))
            }
            _ => return Err(Problem::plain("the gate was moved in a way that this program does not know")),
        };
        if json {
            print_made(&format!("{told}\n"), GOOD)?;
        } else {
            print_made(&text, GOOD)?;
        }
        note(&what_next(config, from));
        Ok(ExitCode::SUCCESS)
    }

    /// Why it came to nothing, with the place of which it is said where the words do not name it.
    fn unmoved(config: &Config, from: &Path, error: StoreError) -> Problem {
        let to = place(config);
        let at = match &error {
            StoreError::Move(_) | StoreError::NoData { .. } | StoreError::File { .. } => return error.into(),
            StoreError::Unreachable(_)
            | StoreError::UnfitServer { .. }
            | StoreError::Lossy { .. }
            | StoreError::NoRight(_)
            | StoreError::ForeignSchema => to,
            _ => format!("moving {} to {to}", from.display()),
        };
        Problem::from(error).at(&at)
    }

    /// What whoever moved a gate has to bring, and what comes then.
    fn what_next(config: &Config, from: &Path) -> String {
        let key = from.join(MASTER_KEY);
        let bring = if let Ok(Some(true)) = fits(config) {
            "Keep the master key of these settings, which opens what this gate has sealed: without it nothing of that can be opened."
                .to_owned()
        } else {
            let held =
                if key.exists() { format!("what `{}` holds", key.display()) } else { "the one it had".to_owned() };
            format!(
                "Give every server the gate's master key, {held}, as `SVC_MASTER_KEY`: without it nothing that is sealed can be opened."
            )
        };
        let file = from.join(svc_store::sqlite::DATABASE);
        format!(
            "{bring}\n\
             Then start the servers with these settings and the `baseUrl` that the gate had, which receipts name.\n\
             `{}` is served no more, by any release; keep it until the servers have run well. Backups of it from before do not know\n\
             of the move: serve none of them beside this.\n",
            file.display()
        )
    }

    /// Whether the settings' master key opens what came; `None` where there is none, or nothing is sealed.
    fn fits(config: &Config) -> Result<Option<bool>, StoreError> {
        let master = match &config.master_key {
            Some(key) => Some(MasterKey::parse(key.expose())?),
            None => MasterKey::read(&config.data)?,
        };
        let Some(master) = master else { return Ok(None) };
        opens(&mut *Database::existing(config)?.reader()?, &master)
    }
}
