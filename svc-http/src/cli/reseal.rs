//! `svc key reseal`: another master key in the place of the one in force, and all that is sealed, sealed anew under it.
//!
//! **Invariant:** at every moment a key that opens what the database holds lies where it lasts: the next one is there before anything is
//! sealed under it, the commit seals all or nothing, and what was broken off is ended by the same command.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use svc_core::store::Key;
use svc_core::value::secret::Secret;
use svc_http::clock;
use svc_http::config::Config;
use svc_store::keys::opens;
use svc_store::seal::{KEPT_KEY, MASTER_KEY, MasterKey};

use super::database::{Database, unopened};
use super::key::Resealing;
use super::occupancy::Occupancy;
use super::output::{Problem, note, print, print_json, writable};
use super::store::{Missing, Use, open};

/// Seals everything anew and says where the new key is.
///
/// # Errors
/// [`Problem`] where there is no database, a server works on it, the next key is not where it has to be, or neither key opens it.
pub(crate) fn run(config: &Config, wish: &Resealing) -> Result<ExitCode, Problem> {
    writable()?;
    if config.postgres.is_some() && !wish.servers_stopped {
        return Err(Problem::new(
            "servers on other machines may have this database open, and would go on to seal under the master key of before",
            "Stop all of them, then run the command again with `--servers-stopped`.",
        ));
    }
    let given = given(config, wish)?;
    let store = Database::existing(config).map_err(|error| unopened(config, error))?;
    let _alone = match config.postgres {
        Some(_) => None,
        None => Occupancy::take(&config.database_directory())?,
    };
    let opened_by = |key: Option<&MasterKey>| -> Result<bool, Problem> {
        let opened = key.map(|it| opens(&mut *store.reader()?, it)).transpose()?;
        Ok(opened.flatten().unwrap_or(false))
    };
    let master = match &config.master_key {
        Some(key) => Some(MasterKey::parse(key.expose())?),
        None => MasterKey::read(&config.data)?,
    };
    let next = if given.is_some() { given.clone() } else { MasterKey::read_next(&config.data)? };
    let is_now = opened_by(master.as_ref())?;
    if opened_by(next.as_ref())? {
        if is_now {
            let advice = "Make another one, and name its file with `--next`.";
            return Err(Problem::new("the next key is the one in force", advice));
        }
        // The commit came through the last time, and what comes after it did not, or the settings still name the key of before.
        return done(config, wish, None);
    }
    // Says what is wrong where neither opens it, and that there is none. The database stays open meanwhile: whoever has the lock and no
    // log would be a server whose log was removed.
    let gate = open(config, &config.base_url(config.listen), Missing::Refuse, Use::Command)?;
    drop(store);
    let next = match given {
        Some(given) => given,
        None => MasterKey::make_next(&config.data)?,
    };
    let resealed = gate.reseal(&next)?;
    gate.close();
    drop(gate);
    tell_of(&resealed.left);
    done(config, wish, Some(resealed.rows))
}

/// The next key, where whoever gives the settings their key gives it; `None` where it is made beside the one of the data directory.
fn given(config: &Config, wish: &Resealing) -> Result<Option<MasterKey>, Problem> {
    match (&config.master_key, &wish.next) {
        (None, None) => replaceable(&config.data.join(MASTER_KEY)).map(|()| None),
        (None, Some(_)) => Err(Problem::new(
            "the master key lies in the data directory, where the next one is made",
            "Leave `--next` out.",
        )),
        (Some(_), None) => Err(Problem::new(
            "the settings give the master key, and have to be able to give the next one before anything is sealed under it",
            "Make it where it lasts, such as with `openssl rand -hex 32 > next.key`, and name the file with `--next`.",
        )),
        (Some(_), Some(file)) => {
            let text = fs::read_to_string(file).map(Secret::new);
            let text = text.map_err(|error| Problem::plain(format!("`{}` cannot be read: {error}", file.display())))?;
            let parsed = MasterKey::parse(text.expose());
            parsed.map(Some).map_err(|_| {
                let what = format!("`{}` holds no key", file.display());
                Problem::new(what, "It has to be 32 bytes in base64url or hexadecimal.")
            })
        }
    }
}

/// That another file may take the key's place: a link leads to where somebody else puts keys, and of another user's file the next
/// would be unreadable to them.
fn replaceable(path: &Path) -> Result<(), Problem> {
    // That there is none is told where the database is opened.
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(()) };
    if data.is_symlink() {
        return Err(Problem::new(
            format!("`{}` is a link: what it leads to is not this command's to replace", path.display()),
            "Put the key itself there, or give it and the next one by the settings (`SVC_MASTER_KEY`, `--next`).",
        ));
    }
    if data.uid() != rustix::process::geteuid().as_raw() {
        return Err(Problem::new(
            format!("`{}` belongs to another user, who could not read the next one", path.display()),
            "Run the command as that user.",
        ));
    }
    Ok(())
}

/// Names what is of no use under either key.
fn tell_of(left: &[Key]) {
    for key in left {
        note(&format!(
            "Left as it is, as the key of before did not open it either: {key:?}. Enter that secret anew.\n"
        ));
    }
}

/// Puts the key in its place, or says where it has to be put.
fn done(config: &Config, wish: &Resealing, rows: Option<usize>) -> Result<ExitCode, Problem> {
    let (place, kept) = match &wish.next {
        Some(file) => (PathBuf::clone(file), None),
        None => {
            let kept = free_name(&config.data);
            MasterKey::follow(&config.data, &kept)?;
            (config.data.join(MASTER_KEY), Some(config.data.join(kept)))
        }
    };
    if wish.json {
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
            "Put what that file holds where the settings have the master key (`masterKey`, `SVC_MASTER_KEY`), for every server, before one starts. Keep the key of before as long as you keep backups of before.\n",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A name for the key of before that no file has.
fn free_name(directory: &Path) -> String {
    let now = clock::now().to_string().replace(':', "");
    let names = (0_u32..).map(|n| match n {
        0 => format!("{KEPT_KEY}{now}"),
        n => format!("{KEPT_KEY}{now}-{n}"),
    });
    let mut free = names.filter(|name| !directory.join(name).exists());
    free.next().unwrap_or_else(|| format!("{KEPT_KEY}{now}"))
}
