//! The `svc` command as a shell meets it: the real binary, its output word for word, its exit codes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may panic"
)]

mod backup;
mod data;
#[path = "../../../tests/src/database.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of the whole workspace")]
mod database;
mod dev;
mod doctor;
mod evidence;
mod hook;
mod hook_install;
mod hook_unasked;
mod keys;
mod limits;
mod log;
mod mock_upstream;
mod models;
mod moving;
mod output;
mod providers;
mod receipt;
mod reseal;
mod restored;
mod server;
mod token;
mod usage;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_svc");

/// The binary with nothing in its environment, in a directory of its own.
pub(crate) fn svc(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    command
}

/// What a run gave: exit code, standard output, standard error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().expect("ended by itself"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs `svc` with these arguments, separated by blanks, in `folder`.
pub(crate) fn run(folder: &Path, arguments: &str) -> Ran {
    svc(folder).args(arguments.split_whitespace()).output().unwrap().into()
}
