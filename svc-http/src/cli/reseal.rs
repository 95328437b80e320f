//! `svc key reseal`: another master key in the place of the one in force, and all that is sealed, sealed anew under it.
//!
//! **Invariant:** at every moment a key that opens what the database holds lies in a file or in the settings: the next one is on the
//! disk before anything is sealed under it, the commit seals all or nothing, and what was broken off is ended by the same command.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
use svc_http::clock;
use svc_http::config::Config;
use svc_store::keys::opens;
use svc_store::seal::{MASTER_KEY, MasterKey, NEXT_KEY};

use super::Resealing;
use super::database::{Database, unopened};
use super::occupancy::Occupancy;
use super::output::{Problem, note, print, print_json, writable};
use super::store::{Missing, Use, open};

/// Seals everything anew and says where the new key is.
///
/// # Errors
/// [`Problem`] where there is no database, a server works on it, or neither key opens it.
pub(crate) fn run(config: &Config, wish: &Resealing) -> Result<ExitCode, Problem> {
    writable()?;
    if config.postgres.is_some() && !wish.servers_stopped {
        return Err(Problem::new(
            "servers on other machines may have this database open, and would go on to seal under the master key of before",
            "Stop all of them, then run the command again with `--servers-stopped`.",
        ));
    }
    let store = Database::existing(config).map_err(|error| unopened(config, error))?;
    let _alone = match config.postgres {
        Some(_) => None,
        None => Occupancy::take(&config.database_directory())?,
    };
    let next_place = config.data.join(NEXT_KEY);
    let opened_by = |key: Option<&MasterKey>| -> Result<bool, Problem> {
        let opened = key.map(|it| opens(&mut *store.reader()?, it)).transpose()?;
        Ok(opened.flatten().unwrap_or(false))
    };
    let master = match &config.master_key {
        Some(key) => Some(MasterKey::parse(key.expose())?),
        None => MasterKey::read(&config.data)?,
    };
    let next = MasterKey::read_next(&config.data)?;
    let (is_now, is_next) = (opened_by(master.as_ref())?, opened_by(next.as_ref())?);
    if is_next && !is_now {
        // The commit came through the last time, and what comes after it did not, or the settings still name the key of before.
        return done(config, None, wish.json);
    }
    if is_next {
        // The settings name the next key already: it is the one in force.
        let removed = fs::remove_file(&next_place);
        removed.map_err(|error| Problem::plain(format!("`{}` cannot be removed: {error}", next_place.display())))?;
    }
    drop(store);
    // Says what is wrong where neither opens it, and that there is none.
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    let next = MasterKey::make_next(&config.data)?;
    let rows = gate.reseal(&next)?;
    gate.close();
    drop(gate);
    done(config, Some(rows), wish.json)
}

/// Puts the key in its place, or says where it has to be put.
fn done(config: &Config, rows: Option<usize>, json: bool) -> Result<ExitCode, Problem> {
    let (place, kept) = if config.master_key.is_some() {
        (config.data.join(NEXT_KEY), None)
    } else {
        let kept = free_name(&config.data);
        MasterKey::follow(&config.data, &kept)?;
        (config.data.join(MASTER_KEY), Some(config.data.join(kept)))
    };
    if json {
        print_json(&json!({ "masterKeyFile": place, "keptFile": kept, "rows": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let sealed = match rows {
        Some(1) => "One row is sealed anew.".to_owned(),
        Some(rows) => format!("{rows} rows are sealed anew."),
        None => "All was sealed anew the last time.".to_owned(),
    };
    print(&format!("{sealed} The master key is the one in `{}`.\n", place.display()))?;
    if let Some(kept) = kept {
        note(&format!(
            "Backups of before are opened by the key in `{}`: remove it once there are none. Where other servers have a copy of the master key, give them this one before they start.\n",
            kept.display()
        ));
    } else {
        note(
            "Put what that file holds where the settings have the master key (`masterKey`, `SVC_MASTER_KEY`), for every server, before one starts; then remove the file. Keep the key of before as long as you keep backups of before.\n",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A name for the key of before that no file has.
fn free_name(directory: &Path) -> String {
    let now = clock::now().to_string().replace(':', "");
    let names = (0_u32..).map(|n| match n {
        0 => format!("{MASTER_KEY}.until-{now}"),
        n => format!("{MASTER_KEY}.until-{now}-{n}"),
    });
    let mut free = names.filter(|name| !directory.join(name).exists());
    free.next().unwrap_or_else(|| format!("{MASTER_KEY}.until-{now}"))
}
