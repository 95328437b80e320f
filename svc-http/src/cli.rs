//! The command line: what is understood, and how an answer of no is told.
//!
//! What was asked for goes to standard output and nothing else does; logs, advice and refusals go to standard error.
//! Exit 0 is done, 1 refused or failed, 2 a command line that was not understood; `svc receipt verify` has a 3 of its own.

mod doctor;
mod output;
mod receipt;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use svc_http::config::{Config, ConfigError, Loaded, Sources};

use self::output::Problem;

/// The gate an AI agent asks before it acts.
#[derive(Debug, Parser)]
#[command(name = "svc", version, arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "`svc dev` is where to begin: it makes everything and prints a request to try.")]
struct Cli {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

/// Where settings and data are.
#[derive(Args, Debug)]
struct Place {
    /// Settings file (TOML); without it `svc.toml` in the data directory
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Data directory [default: ./svc-data]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at settings, data directory, keys, disk, clock and addresses, and say what to do
    Doctor {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Check receipts
    #[command(subcommand, arg_required_else_help = true)]
    Receipt(ReceiptCommand),
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Check a receipt offline: exit 0 genuine and unexpired, 1 not, 3 malformed
    Verify {
        /// File with one receipt (compact JWS); `-` reads standard input
        #[arg(value_name = "FILE")]
        receipt: PathBuf,
        /// Key set of the issuer, from its `/.well-known/jwks.json`
        #[arg(long, value_name = "FILE")]
        jwks: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command of the process's arguments.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = run(cli);
    done.unwrap_or_else(|problem| problem.tell())
}

fn run(cli: Cli) -> Result<ExitCode, Problem> {
    let Cli { place, command } = cli;
    match command {
        Command::Doctor { json } => doctor::run(place.load(Flags::default()), json),
        Command::Receipt(ReceiptCommand::Verify { receipt, jwks, json }) => receipt::verify(&receipt, &jwks, json),
    }
}

/// Settings that a command's own flags make.
#[derive(Debug, Default)]
struct Flags {
    listen: Option<SocketAddr>,
    allow_private_callbacks: bool,
}

impl Place {
    /// Reads the settings.
    fn load(self, flags: Flags) -> Result<Loaded, ConfigError> {
        let mut sources = Sources::from_environment();
        sources.file = self.config;
        sources.allow_private_callbacks = flags.allow_private_callbacks;
        sources.flags.extend(self.data.map(|it| ("data", it)));
        sources.flags.extend(flags.listen.map(|it| ("listen", it.to_string())));
        Config::load(sources)
    }
}
