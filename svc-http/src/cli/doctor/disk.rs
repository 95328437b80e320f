//! What `svc doctor` looks at in the data directory.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use svc_core::value::{Span, Timestamp};
use svc_http::clock;
use svc_http::config::{Config, Loaded};
use svc_store::newest::APART_MAX;
use svc_store::reached::BASE_URL;
use svc_store::seal::{MASTER_KEY, MasterKey};
use svc_store::{StoreError, sqlite};

use super::Finding::{self, Broken, Odd, Well};
use super::data;
use crate::cli::output::quoted;
use crate::cli::store::CLOCK_BEHIND;

/// Free bytes under which commits are about to fail.
const FREE_BROKEN: u64 = 100 << 20;
/// Free bytes under which somebody should make room.
const FREE_ODD: u64 = 1 << 30;
/// A clock before this is wrong: the first version of the interface is not older.
const CLOCK_MIN: Timestamp = Timestamp::from_millis(1_790_812_800_000); // 2026-10-01
/// A clock after this is wrong for as long as anybody will run this release.
const CLOCK_MAX: Timestamp = Timestamp::from_millis(4_102_444_800_000); // 2100-01-01
/// How far in the future a file may have been written: file systems round, and their servers have clocks of their own.
const CLOCK_SLACK: Span = Span::seconds(5);

/// Whether the directory is there, a directory, and writable by this user; `named` stands behind a command that makes it.
pub(super) fn directory(config: &Config, named: &str) -> Finding {
    let shown = config.data.display();
    match fs::metadata(&config.data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && is_dispensable(config) => {
            Well(format!("{shown} does not exist, and nothing would be in it: database and master key are elsewhere"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Broken(
            format!("{shown} does not exist"),
            format!("Run `svc init{named}`, or `svc dev{named}` to try things out; either makes it."),
        ),
        Err(error) => {
            Broken(format!("{shown} cannot be read: {error}"), "Run as the user that it belongs to.".to_owned())
        }
        Ok(data) if !data.is_dir() => {
            Broken(format!("{shown} is no directory"), "Name another with `--data`.".to_owned())
        }
        Ok(_) => match tempfile_in(&config.data) {
            Ok(()) => Well(format!("{shown} is writable")),
            Err(error) => Broken(
                format!("{shown} cannot be written: {error}"),
                "Run as the user that it belongs to, and on a disk that is not read-only.".to_owned(),
            ),
        },
    }
}

/// Whether nothing lies in the data directory: neither the database nor the key.
const fn is_dispensable(config: &Config) -> bool {
    (config.database.is_some() || config.postgres.is_some()) && config.master_key.is_some()
}

/// Writes an empty file and takes it away again.
fn tempfile_in(folder: &Path) -> std::io::Result<()> {
    let path = folder.join(format!(".svc-doctor-{}", std::process::id()));
    fs::File::create_new(&path)?;
    fs::remove_file(&path)
}

/// The master key of a directory, and those that were before it or are to follow: each opens some copy of the database.
fn master_keys(folder: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|it| it.file_name());
    let mut own: Vec<_> = names.filter(|it| it.to_string_lossy().starts_with(MASTER_KEY)).collect();
    own.sort();
    own.into_iter().map(|it| folder.join(it)).collect()
}

/// Whether nobody else can read what is secret. A directory is judged only where a database of ours lies in it: it may be any
/// other, and to close one that others need does harm.
pub(super) fn modes(loaded: &Loaded) -> Finding {
    let config = &loaded.config;
    let folder = config.database_directory();
    let is_ours = config.postgres.is_none() && has_database(&folder);
    let mut secret: Vec<(PathBuf, &str)> = Vec::new();
    if is_ours {
        let noted = folder.join(BASE_URL);
        secret.extend([(folder, "700"), (config.database(), "600"), (noted, "600")]);
    }
    if is_ours || matches!(MasterKey::read(&config.data), Ok(Some(_))) {
        secret.extend(master_keys(&config.data).into_iter().map(|it| (it, "600")));
    }
    // Only a settings file with a secret in it has to be kept.
    secret.extend(loaded.file.clone().filter(|_| !loaded.secrets.is_empty()).map(|it| (it, "600")));
    if secret.is_empty() && config.postgres.is_some() {
        return Well("nothing secret lies here: database and master key are elsewhere".to_owned());
    }
    if secret.is_empty() && is_closed(&config.database()) {
        let file = config.database();
        return Odd(
            format!("{} cannot be read by this user, so no file modes were checked", file.display()),
            "See `schema`.".to_owned(),
        );
    }
    if secret.is_empty() {
        return Odd("there is no svc data here, so no file modes to check".to_owned(), "See `schema`.".to_owned());
    }
    let open: Vec<(u32, String)> = secret
        .iter()
        .filter_map(|(path, wanted)| {
            let data = fs::metadata(path).ok()?;
            // Neither the names of files nor the server's address are a secret; both are to be changed by nobody else.
            let is_told = data.is_dir() || path.ends_with(BASE_URL);
            let harm = permissions(&data) & if is_told { 0o022 } else { 0o077 };
            let is_open = permissions(&data) & 0o077 != 0;
            is_open.then(|| (harm, format!("chmod {wanted} {}", quoted(path.display().to_string()))))
        })
        .collect();
    let run = open.iter().map(|(_, command)| command.as_str()).collect::<Vec<_>>().join(" && ");
    if open.is_empty() {
        Well("nobody but their user can read the data directory and the files in it that hold secrets".to_owned())
    } else if open.iter().all(|(harm, _)| *harm == 0) {
        // Whoever may write there could put other files in their place.
        Odd(
            "others can list the data directory or read its server's address, and read no file in it that holds secrets"
                .to_owned(),
            format!("Run `{run}`."),
        )
    } else {
        Broken("others can read what they should not".to_owned(), format!("Run `{run}`."))
    }
}

/// A file of the database that this user may not write, as one that SQLite made beside a database that nobody could write: it keeps
/// that mode, whatever the database's is later.
pub(super) fn unwritable(config: &Config) -> Option<Finding> {
    let files = sqlite::files(config.database_directory());
    let closed = files.iter().filter(|it| config.postgres.is_none() && it.exists()).find_map(|file| {
        let error = fs::OpenOptions::new().write(true).open(file).err()?;
        Some((file.clone(), error))
    });
    closed.map(|(file, error)| {
        let advice = opened_by(&file, &quoted(file.display().to_string()));
        Broken(format!("{} cannot be written: {error}", file.display()), advice)
    })
}

/// Whether a file is there that this user may not read: of a directory that they may not enter that is not told.
fn is_closed(file: &Path) -> bool {
    fs::File::open(file).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// What lets this user write a file: SQLite makes its files with the mode of the database, so that most often it is one that another
/// user has made beside it.
#[cfg(unix)]
fn opened_by(file: &Path, named: &str) -> String {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let whose = |it: &Path| fs::metadata(it).ok().map(|it| (it.uid(), it.gid()));
    let directory = file.parent().and_then(whose);
    let mode = fs::metadata(file).map_or(0, |it| it.permissions().mode());
    advice(whose(file), directory, mode, named)
}

#[cfg(not(unix))]
fn opened_by(_file: &Path, named: &str) -> String {
    format!("See that this user may write {named}.")
}

/// The same by owner and group of the file and of its directory.
#[cfg(unix)]
fn advice(file: Option<(u32, u32)>, directory: Option<(u32, u32)>, mode: u32, named: &str) -> String {
    match (file, directory) {
        (Some((user, _)), Some((owner, group))) if user != owner => {
            format!(
                "It belongs to another user than its directory: run `chown {owner}:{group} {named}` as root, and commands as that user."
            )
        }
        _ if mode & 0o200 == 0 => format!("Run `chmod 600 {named}` as the user that it belongs to."),
        _ => "Run as the user that it belongs to.".to_owned(),
    }
}

/// Whether a database of this service lies there, of whatever release.
fn has_database(folder: &Path) -> bool {
    match sqlite::schema_of(folder) {
        Ok(found) => found > 0,
        Err(error) => matches!(error, StoreError::NewerSchema { .. } | StoreError::Move(_)),
    }
}

#[cfg(unix)]
fn permissions(data: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    data.permissions().mode()
}

/// Where files have no modes there is nothing to find.
#[cfg(not(unix))]
fn permissions(_data: &Metadata) -> u32 {
    0
}

/// Whether there is room to write where the database lies.
pub(super) fn space(config: &Config) -> Finding {
    if config.postgres.is_some() {
        return Well("the database is on a server, whose disk is its own".to_owned());
    }
    let folder = config.database_directory();
    let place = folder.ancestors().find(|it| it.exists()).unwrap_or_else(|| Path::new("."));
    match free_bytes(place) {
        Err(error) => Odd(format!("the free space cannot be told: {error}"), "Look with `df`.".to_owned()),
        Ok(free) => {
            let (shown, advice) = (
                format!("{} MiB free at {}", free >> 20, place.display()),
                "Make room: without it every answer is a refusal.",
            );
            match free {
                ..FREE_BROKEN => Broken(shown, advice.to_owned()),
                FREE_BROKEN..FREE_ODD => Odd(shown, advice.to_owned()),
                FREE_ODD.. => Well(shown),
            }
        }
    }
}

#[cfg(unix)]
fn free_bytes(place: &Path) -> std::io::Result<u64> {
    let room = rustix::fs::statvfs(place)?;
    Ok(room.f_bavail.saturating_mul(room.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_place: &Path) -> std::io::Result<u64> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Whether the clock tells a time that can be: not before this program, and not before what it wrote last.
pub(super) fn clock(config: &Config) -> Finding {
    let now = clock::now();
    let advice = "Set the clock and keep it by NTP: receipts, windows and expiry follow it.";
    if now < CLOCK_MIN || now > CLOCK_MAX {
        return Broken(format!("it is {now} by this machine's clock"), advice.to_owned());
    }
    if let Some(recorded) = data::newest(config).filter(|it| *it > now.plus(CLOCK_SLACK)) {
        return Broken(
            format!(
                "it is {now} by this machine's clock, but the newest record of the database is of {recorded}: a server decides nothing"
            ),
            CLOCK_BEHIND.to_owned(),
        );
    }
    if let Some(other) = data::time(config).filter(|it| it.since(now).max(now.since(*it)) > APART_MAX) {
        return Broken(
            format!(
                "it is {now} by this machine's clock, and {other} by the database server's: a server decides nothing"
            ),
            advice.to_owned(),
        );
    }
    match newest(&config.data) {
        Some(written) if written > now.plus(CLOCK_SLACK) => Broken(
            format!("it is {now} by this machine's clock, but the data directory was written at {written}"),
            advice.to_owned(),
        ),
        _ => Well(now.to_string()),
    }
}

/// When a file of the directory was last written.
fn newest(folder: &Path) -> Option<Timestamp> {
    let written = |entry: std::io::Result<fs::DirEntry>| {
        let since = entry.ok()?.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
    };
    fs::read_dir(folder).ok()?.filter_map(written).max()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Who may not write a file is told what lets them: its mode where that is in the way, else its owner.
    #[test]
    fn what_is_in_the_way_is_what_is_changed() {
        let told = |file, mode| advice(Some((file, 7)), Some((10, 20)), mode, "d/svc.db-wal");
        assert!(told(0, 0o100_600).contains("run `chown 10:20 d/svc.db-wal` as root"));
        assert!(told(0, 0o100_400).contains("chown"), "its own mode is no use to another user");
        assert_eq!(told(10, 0o100_400), "Run `chmod 600 d/svc.db-wal` as the user that it belongs to.");
        assert_eq!(told(10, 0o100_600), "Run as the user that it belongs to.");
    }
}
