//! Where the server of a data directory is reached: a command that prints a link is often started without the settings that
//! the server runs with.
//!
//! **Invariant:** it is told to people alone; nothing is decided or signed by it. A note counts for as long as the server that
//! wrote it runs, which keeps it locked.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use svc_http::config::{BaseUrl, Config};
use svc_store::reached::BASE_URL;

/// What it is called until it is whole.
const UNFINISHED: &str = "base-url.new";

/// A note of where this server is reached, which counts until this is dropped or the process ends.
#[derive(Debug)]
#[must_use]
pub(crate) struct Note {
    _locked: Option<File>,
}

/// Notes where a server is reached. One that cannot write it serves all the same.
pub(crate) fn note(config: &Config, base_url: &BaseUrl) -> Note {
    // With database and key elsewhere there need not be a directory here.
    if config.postgres.is_some() && !config.data.is_dir() {
        return Note { _locked: None };
    }
    let written = write(config, base_url).inspect_err(|error| {
        tracing::warn!(%error, "it cannot be noted where this server is reached: `svc sign-in-link` goes by the settings");
    });
    Note { _locked: written.ok() }
}

/// The note is locked before anybody can find it, so nobody who looks at it is in the way.
fn write(config: &Config, base_url: &BaseUrl) -> io::Result<File> {
    let unfinished = config.database_directory().join(UNFINISHED);
    // One that a start left which was broken off may have another mode.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(format!("{base_url}\n").as_bytes())?;
    file.try_lock()?;
    fs::rename(unfinished, place(config))?;
    Ok(file)
}

/// Where links of this data directory lead: to where the settings say, else to where its server is reached.
pub(crate) fn base_url(config: &Config) -> BaseUrl {
    let is_set = config.base_url.is_some() || config.listen != Config::default().listen;
    let noted = if is_set { None } else { read(config) };
    noted.unwrap_or_else(|| config.base_url(config.listen))
}

/// What the running server has noted.
fn read(config: &Config) -> Option<BaseUrl> {
    let mut file = File::open(place(config)).ok()?;
    let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    BaseUrl::parse(text.trim_end()).ok().filter(|_| is_held)
}

fn place(config: &Config) -> PathBuf {
    config.database_directory().join(BASE_URL)
}
