//! What commands say: results on standard output, refusals with advice on standard error.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
use svc_http::config::{Config, ConfigError};
use svc_http::log::scrub;

/// What to do where nothing was lost.
const AGAIN: &str = "Run the command again with its output open.";
/// The same where it was found out in time.
const NOTHING_MADE: &str = "Nothing was made: run the command again with its output open.";

/// Why a command was not done: for each fault what is wrong, and what to do.
#[derive(Debug)]
pub(crate) struct Problem(Vec<(String, Option<String>)>);

impl Problem {
    /// No fault yet.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    /// These faults and those of another.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// One fault, and one sentence on what to do.
    pub(crate) fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self(vec![(what.into(), Some(advice.into()))])
    }

    /// One fault that says itself what to do.
    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Self(vec![(what.into(), None)])
    }

    /// Several faults, and one sentence on what to do about all of them.
    pub(crate) fn several(what: impl Iterator<Item = String>, advice: impl Into<String>) -> Self {
        let mut faults: Vec<_> = what.map(|it| (it, None)).collect();
        if let Some(last) = faults.last_mut() {
            last.1 = Some(advice.into());
        }
        Self(faults)
    }

    /// The same, and `what` with this advice, unless it gives that advice already.
    pub(crate) fn advising(mut self, what: &str, advice: &str) -> Self {
        if self.0.iter().all(|(_, given)| given.as_deref() != Some(advice)) {
            self.0.push((what.to_owned(), Some(advice.to_owned())));
        }
        self
    }

    /// The same, with the place of which it is said before the first fault.
    pub(crate) fn at(mut self, place: &str) -> Self {
        if let Some((what, _)) = self.0.first_mut() {
            *what = format!("{place}: {what}");
        }
        self
    }

    /// Tells it on standard error: `svc: ` and the fault, and below it what to do.
    pub(crate) fn tell(&self) -> ExitCode {
        let mut text = String::new();
        for (what, advice) in &self.0 {
            text.push_str(&format!("svc: {what}\n"));
            if let Some(advice) = advice {
                text.push_str(&format!("     {advice}\n"));
            }
        }
        // Where standard error is closed nobody listens; the exit code still tells.
        let _ = io::stderr().write_all(scrub(&text).as_bytes());
        ExitCode::FAILURE
    }

    /// Each fault and its advice.
    pub(crate) fn faults(&self) -> &[(String, Option<String>)] {
        &self.0
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self(error.0.into_iter().map(|it| (it.what, it.advice)).collect())
    }
}

/// Writes a result to standard output, whole or not at all as far as the caller can tell.
///
/// # Errors
/// [`Problem`] where it cannot be written: a key that nobody saw must not count as given.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    print_made(text, AGAIN)
}

/// The same for what was made already and does not come again: `advice` is the way out where nobody saw it.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_made(text: &str, advice: &str) -> Result<(), Problem> {
    // The library's own handle takes a descriptor that cannot be written for one that is thrown away.
    let written = io::stdout().as_fd().try_clone_to_owned().and_then(|out| File::from(out).write_all(text.as_bytes()));
    written.map_err(|error| unwritable(&error, advice))
}

/// Writes one JSON value on one line of standard output.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_json(value: &serde_json::Value) -> Result<(), Problem> {
    print(&format!("{value}\n"))
}

/// Finds out whether standard output can be written, before anything is made that is to be told there.
///
/// # Errors
/// [`Problem`] where it can only be read, or where the device behind it is full.
pub(crate) fn writable() -> Result<(), Problem> {
    // Of no bytes: nothing is written, and what refuses all writing refuses this as well.
    rustix::io::write(io::stdout(), &[]).map(drop).map_err(|error| unwritable(&error.into(), NOTHING_MADE))
}

/// The same before a secret is made that is told once and is good for nothing where it is not seen.
///
/// # Errors
/// As [`writable`], and where standard output is closed.
pub(crate) fn visible() -> Result<(), Problem> {
    writable()?;
    if is_closed() {
        return Err(Problem::new(
            "standard output is closed or thrown away, and what is made is shown there this once",
            NOTHING_MADE,
        ));
    }
    Ok(())
}

/// Whether standard output was closed when the program began: the library has then put the null device in its place, open
/// both ways, where a shell's `>/dev/null`, which somebody has chosen, opens it for writing alone. Programs that run others
/// with their output thrown away open it both ways too, and cannot be told apart: nobody sees a secret there either.
pub(crate) fn is_closed() -> bool {
    let out = io::stdout();
    let is_null = || Ok::<_, rustix::io::Errno>(fstat(&out)?.st_rdev == stat("/dev/null")?.st_rdev);
    let is_both = fcntl_getfl(&out).is_ok_and(|it| it & OFlags::RWMODE == OFlags::RDWR);
    is_both && is_null().unwrap_or(false)
}

/// A text as one word of a shell.
pub(crate) fn quoted(word: String) -> String {
    let is_plain = !word.is_empty() && word.chars().all(|it| it.is_ascii_alphanumeric() || "/.-_+:@".contains(it));
    if is_plain { word } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// What stands behind a command that is to mean the same data: nothing where nothing was named.
pub(crate) fn named_data(config: &Config) -> String {
    let word = |it: &Path| quoted(it.display().to_string());
    let file = config.file.as_ref().map(|it| format!(" --config {}", word(it)));
    let data = (config.data != Config::default().data).then(|| format!(" --data {}", word(&config.data)));
    [file, data].into_iter().flatten().collect()
}

fn unwritable(error: &io::Error, advice: &str) -> Problem {
    Problem::new(format!("standard output cannot be written: {error}"), advice)
}

/// Tells something beside the result on standard error; nothing is lost where nobody listens.
pub(crate) fn note(text: &str) {
    let _ = io::stderr().write_all(scrub(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of what was made is told below what went wrong, once.
    #[test]
    fn advice_is_given_once() {
        let told = Problem::plain("no threads").advising("nobody saw the keys", "Make others.");
        let twice = told.advising("nobody saw the keys", "Make others.");
        let faults: Vec<_> = twice.faults().iter().map(|(what, advice)| (&**what, advice.as_deref())).collect();
        assert_eq!(faults, [("no threads", None), ("nobody saw the keys", Some("Make others."))]);
    }
}
