//! The command line: what is understood, and how an answer of no is told.
//!
//! What was asked for goes to standard output and nothing else does; logs, advice and refusals go to standard error.
//! Exit 0 is done, 1 refused or failed, 2 a command line that was not understood; `svc receipt verify` and `svc evidence` have
//! more of their own.

mod backup;
mod barred;
mod database;
mod dev;
mod doctor;
mod erase;
mod evidence;
mod handles;
mod hook;
mod init;
mod key;
mod key_list;
mod licences;
mod listen;
mod migrate;
mod mock_upstream;
mod models;
mod occupancy;
mod output;
mod providers;
mod reached;
mod receipt;
mod reseal;
mod serve;
mod setup;
mod sign_in_link;
mod store;
mod token;
mod version;
mod welcome;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use ipnet::IpNet;
use svc_core::state::people::TokenScope;
use svc_core::value::Invalid;
use svc_core::value::id::{ActionId, PrincipalId};
use svc_core::value::text::{Email, Label};
use svc_http::config::{self, Config, ConfigError, Loaded, Sources};
use svc_http::{log, mock, wire};

use self::output::Problem;
use crate::hook::Client;

/// The gate an AI agent asks before it acts.
#[derive(Debug, Parser)]
#[command(name = "svc", version, arg_required_else_help = true)]
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
    /// Copy the database to a new file while a server runs on it, and check the copy
    ///
    /// The copy is the database of one moment, whatever is written meanwhile. The master key is not in it and has to be kept
    /// too. No file is overwritten.
    Backup {
        /// File to make
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
    /// Try things out: make everything on the first start, then serve on a loopback address
    ///
    /// The first start makes the data directory, a workspace with its owner, an agent with the templates
    /// `saas-subscriptions` and `coding-agent`, and keys, and prints them with a request to try. Later starts keep all of
    /// it.
    Dev {
        /// Address to listen on; loopback only, port 0 takes any free one [default: 127.0.0.1:8080]
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
        /// Make new keys and revoke those that were made at the first start; another agent too where that one was removed
        #[arg(long)]
        new_keys: bool,
        #[command(flatten)]
        callbacks: Callbacks,
        /// Print one JSON object on one line once requests are accepted
        #[arg(long)]
        json: bool,
    },
    /// Look at settings, data directory, keys, disk, clock and addresses, and say what to do
    Doctor {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Ask the gate about a coding client's tool call: its JSON on standard input, its answer on standard output
    ///
    /// The client runs it before and after each tool. Address and key are those of `SVC_URL` and `SVC_AGENT_KEY`, or of
    /// `hook.toml` in the user's own directory of settings; `SVC_HOOK_TIMEOUT_MS` says how long it may take [default: 5000].
    /// Whatever goes wrong is a refusal: exit 2.
    Hook {
        /// The client that runs it [default: found out from what it says; to install, look or take away: each that is there]
        #[arg(long, value_enum, value_name = "C", global = true)]
        client: Option<Client>,
        /// Ask nothing, and say whether the gate is reached and knows the key
        #[arg(long)]
        test: bool,
        #[command(subcommand)]
        command: Option<HookCommand>,
    },
    /// Make what the first start of `svc dev` makes, without serving
    ///
    /// Keys of providers in the environment (`OPENAI_API_KEY`, `ANTHROPIC_API_KEY`) become upstreams; without one a demonstration
    /// upstream is made, which answers while `svc mock-upstream` runs. Where all of it was made before, nothing is changed.
    Init {
        /// Where the owner of the workspace is reached
        #[arg(long, value_name = "EMAIL", default_value = setup::OWNER, value_parser = Email::parse)]
        owner: Email,
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
    /// Make, list and revoke keys, have signing keys follow each other, change the master key
    #[command(subcommand, arg_required_else_help = true)]
    Key(key::KeyCommand),
    /// Bring the database to the schema of this release, as the next start would, or a gate from SQLite to PostgreSQL
    ///
    /// With `--from` the database of another data directory is moved to the PostgreSQL that the settings name, in which nothing was
    /// begun: every row, in one transaction. The file is marked before that ends, and served no more. Where a move was broken off, the
    /// same command ends it.
    Migrate {
        /// Data directory whose `svc.db` is to be moved to the PostgreSQL of the settings (`store.url`); its server is stopped
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
    /// Erase the personal texts of an action or a person; the ledger stays whole
    Erase(Erasure),
    /// Check evidence bundles
    #[command(subcommand, arg_required_else_help = true)]
    Evidence(EvidenceCommand),
    /// Print the licences and notices of all that this program is built of
    #[command(alias = "licenses")]
    Licences {
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
    /// Serve a stand-in of both model APIs, for tests and drills
    ///
    /// It answers `/v1/chat/completions`, `/v1/messages`, `/v1/messages/count_tokens` and `/v1/models` with any credential: words,
    /// tool calls and token counts that follow from the request alone. A request that has tools gets a call of the first one
    /// when its last message speaks of a tool, of two when it also says `parallel`. No data directory is needed.
    #[command(after_long_help = mock_help())]
    MockUpstream {
        /// Address to listen on; port 0 takes any free one
        #[arg(long, value_name = "ADDR", default_value = mock_upstream::LISTEN)]
        listen: SocketAddr,
        /// Print one JSON object on one line once requests are accepted
        #[arg(long)]
        json: bool,
    },
    /// Say what is known of models: lengths, abilities, prices
    #[command(subcommand, arg_required_else_help = true)]
    Models(ModelsCommand),
    /// Check receipts
    #[command(subcommand, arg_required_else_help = true)]
    Receipt(ReceiptCommand),
    /// Make service tokens
    #[command(subcommand, arg_required_else_help = true)]
    Token(TokenCommand),
    /// Serve
    #[command(after_long_help = settings_help())]
    Serve {
        /// Address to listen on; port 0 takes any free one [default: 127.0.0.1:8080]
        #[arg(long, value_name = "ADDR")]
        listen: Option<SocketAddr>,
        #[command(flatten)]
        callbacks: Callbacks,
    },
    /// Make a one-time link for somebody who cannot sign in otherwise, and print it
    SignInLink {
        /// The address they sign in with
        #[arg(value_name = "EMAIL", value_parser = Email::parse)]
        email: Email,
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
        /// Have workspaces that this person owns take passwords and links again, where they take single sign-on alone
        #[arg(long)]
        lift_sso: bool,
        /// Take away this person's second factor, whose device and recovery codes are lost: their sessions end, the ledger has it
        #[arg(long)]
        drop_second_factor: bool,
    },
    /// Print the version, that of the interface, the schema that databases have, and what this program was built with
    Version {
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
enum HookCommand {
    /// Put the hook into the client's settings, showing the change first, and test it once
    Install(Change),
    /// Take the hook out of the client's settings, showing the change first
    Uninstall(Change),
    /// Say in which clients' settings the hook stands
    Status {
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
}

/// A change of a client's settings.
#[derive(Args, Clone, Copy, Debug)]
struct Change {
    /// Make the change without a question
    #[arg(long)]
    yes: bool,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

#[derive(Args, Clone, Copy, Debug)]
struct Callbacks {
    /// Let callbacks go to private addresses and to loopback by plain http; needs a server on a loopback address
    #[arg(long = "allow-private-callbacks")]
    allow_private: bool,
}

/// What is to be erased.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("whose").required(true))]
struct Erasure {
    /// The action whose words, payee's name and recipients go
    #[arg(long, value_name = "ACT", group = "whose", value_parser = ActionId::parse)]
    action: Option<ActionId>,
    /// The person about whom, and by whom, texts go; who is still a member keeps name and address
    #[arg(long, value_name = "PRP", group = "whose", value_parser = PrincipalId::parse)]
    principal: Option<PrincipalId>,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum ModelsCommand {
    /// Take in a table of models, whole or not at all; a running server knows it at once
    ///
    /// The file has the shape of the table that is shipped (`date`, `models`), or the widespread one that maps ids to objects
    /// with `input_cost_per_token` and the like, whose prices are read as the decimals that they are. Prices that a workspace
    /// set on a model itself stay.
    Update {
        /// File to read
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Print one JSON object on one line
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
enum EvidenceCommand {
    /// Check a bundle offline: exit 0 unaltered and without a gap, 1 tampered, 2 incomplete, 3 malformed, 4 not read, its verdict
    /// not written, or the command not understood
    ///
    /// `whole` is what has every record of its checkpoint; of another the first line says which it has.
    /// Whose bundle it is, `--jwks` alone shows: anybody can write one that fits in itself.
    Verify {
        /// File with one bundle; `-` reads standard input
        #[arg(value_name = "FILE")]
        bundle: PathBuf,
        /// File with the service's published keys, of `/.well-known/jwks.json`: what others signed is tampered
        #[arg(long, value_name = "FILE")]
        jwks: Option<PathBuf>,
        /// File with the checkpoint that you hold, an earlier bundle or a note: says whether the ledger is still that one
        #[arg(long, value_name = "FILE")]
        held: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a service token and print it, this once
    Create(NewToken),
}

/// A service token to be made.
#[derive(Args, Debug)]
struct NewToken {
    /// What people call it; the ledger names it so
    #[arg(long, value_name = "N", value_parser = Label::parse)]
    name: Label,
    /// What it may do: `agents:read`, `agents:write`, `agents:freeze`, `approvals:read`, `evidence:read`
    #[arg(long, value_name = "A,B", required = true, value_delimiter = ',', value_parser = token_scope)]
    scopes: Vec<TokenScope>,
    /// Days until it ends, at most 90
    #[arg(long, value_name = "N", default_value = "90", value_parser = clap::value_parser!(u16).range(1..=90))]
    days: u16,
    /// Address range it is pinned to, such as `192.0.2.0/24`; may be given more than once
    #[arg(long, value_name = "CIDR", value_parser = address_range)]
    ip: Vec<IpNet>,
    /// Print one JSON object on one line
    #[arg(long)]
    json: bool,
}

fn token_scope(word: &str) -> Result<TokenScope, Invalid> {
    wire::token::scope(word)
}

fn address_range(word: &str) -> Result<IpNet, Invalid> {
    wire::token::range(word)
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Check a receipt offline: exit 0 genuine and unexpired, 1 not, 2 the command not understood, 3 malformed, 4 a file not read or the verdict not written
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
    match understood() {
        Ok(cli) => run(cli).unwrap_or_else(|problem| {
            // What the log had to say of it stands before it.
            log::settle();
            problem.tell()
        }),
        Err(error) if error.exit_code() != 0 && is_of_evidence(std::env::args_os().skip(1)) => {
            // Where standard error is closed nobody listens; the exit code still tells.
            let _ = error.print();
            ExitCode::from(evidence::UNREAD)
        }
        Err(error) => error.exit(),
    }
}

/// The command lines that take the common options without reading them, by their words: help does not name these there.
const UNREAD: &[(&[&str], &[&str])] = &[
    (&["evidence"], &["config", "data"]),
    (&["hook"], &["data"]),
    (&["hook", "uninstall"], &["config"]),
    (&["licences"], &["config", "data"]),
    (&["mock-upstream"], &["config", "data"]),
    (&["receipt"], &["config", "data"]),
    (&["version"], &["config", "data"]),
];

/// Common options that a command reads as something of its own, and what help says of them there.
const OTHERWISE: &[(&[&str], &str, &str)] = &[(
    &["hook"],
    "config",
    "The hook's own file, by its absolute path: `url`, `agentKey`, `caFile`, and no settings of the server; without it \
     `~/.config/svc/hook.toml`, which `install` makes where it is not there",
)];

/// What the process's arguments say.
fn understood() -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let common: Vec<clap::Arg> = command.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    for (words, unread) in UNREAD {
        let hidden: Vec<_> =
            common.iter().filter(|it| unread.contains(&it.get_id().as_str())).map(|it| it.clone().hide(true)).collect();
        command = within(command, words, |it| it.args(hidden));
    }
    for (words, option, help) in OTHERWISE {
        let told: Vec<_> = common.iter().filter(|it| it.get_id() == option).map(|it| it.clone().help(*help)).collect();
        command = within(command, words, |it| it.args(told));
    }
    let found = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&found).map_err(|it| it.format(&mut command))
}

/// A command with the one below it that these words name changed.
fn within(
    command: clap::Command,
    words: &[&str],
    change: impl FnOnce(clap::Command) -> clap::Command,
) -> clap::Command {
    match words {
        [] => change(command),
        [first, rest @ ..] => {
            let mut change = Some(change);
            command.mut_subcommand(first, |it| match change.take() {
                Some(change) => within(it, rest, change),
                None => it,
            })
        }
    }
}

/// Whether arguments are of `svc evidence`: the exit code of wrong usage is that of an incomplete bundle there.
fn is_of_evidence(arguments: impl Iterator<Item = OsString>) -> bool {
    let mut is_value = false;
    let mut words = arguments.filter(|it| {
        let is_word = !is_value && !it.to_string_lossy().starts_with('-');
        is_value = it == "--config" || it == "--data";
        is_word
    });
    words.next().is_some_and(|it| it == "evidence")
}

fn run(cli: Cli) -> Result<ExitCode, Problem> {
    let Cli { place, command } = cli;
    match command {
        Command::Backup { file, json } => backup::run(&place.load(Flags::default())?, &file, json),
        Command::Dev { listen, new_keys, callbacks, json } => {
            let flags = Flags { listen, allow_private_callbacks: callbacks.allow_private };
            dev::run(place.load(flags)?, dev::Wish { new_keys, json })
        }
        Command::Doctor { json } => doctor::run(place.load(Flags::default()), json),
        Command::Hook { test: true, command: Some(_), .. } => Err(Problem::new(
            "`--test` is for the hook itself, and for none of its subcommands",
            "Say `svc hook --test`.",
        )),
        Command::Hook { test: true, command: None, .. } => Ok(crate::hook::test(place.config)),
        Command::Hook { client, command: None, .. } => Ok(crate::hook::run(client, place.config)),
        Command::Hook { client, command: Some(HookCommand::Install(wish)), .. } => {
            hook::install(client, place.config.as_deref(), wish)
        }
        Command::Hook { client, command: Some(HookCommand::Uninstall(wish)), .. } => hook::uninstall(client, wish),
        Command::Hook { client, command: Some(HookCommand::Status { json }), .. } => {
            hook::status(client, place.config.as_deref(), json)
        }
        Command::Init { owner, json } => init::run(&place.load(Flags::default())?.config, &owner, json),
        Command::Key(wish) => key::run(&place.load(Flags::default())?.config, &wish),
        Command::Erase(wish) => erase::run(&place.load(Flags::default())?.config, &wish),
        Command::Evidence(EvidenceCommand::Verify { bundle, jwks, held, json }) => {
            Ok(evidence::verify(&bundle, evidence::Known { keys: jwks.as_deref(), held: held.as_deref() }, json))
        }
        Command::Models(ModelsCommand::Update { file, json }) => {
            models::update(&place.load(Flags::default())?.config, &file, json)
        }
        Command::Migrate { from, json } => {
            let config = place.load(Flags::default())?.config;
            match from {
                Some(from) => migrate::move_here(&config, &from, json),
                None => migrate::run(&config, json),
            }
        }
        Command::Licences { json } => licences::run(json),
        Command::MockUpstream { listen, json } => mock_upstream::run(listen, json),
        Command::Receipt(ReceiptCommand::Verify { receipt, jwks, json }) => Ok(receipt::verify(&receipt, &jwks, json)),
        Command::Token(TokenCommand::Create(wish)) => token::create(&place.load(Flags::default())?.config, &wish),
        Command::SignInLink { email, json, lift_sso, drop_second_factor } => {
            let also = sign_in_link::Also { lift_sso, drop_second_factor };
            sign_in_link::run(&place.load(Flags::default())?.config, &email, json, also)
        }
        Command::Serve { listen, callbacks } => {
            let flags = Flags { listen, allow_private_callbacks: callbacks.allow_private };
            serve::serve(place.load(flags)?)
        }
        Command::Version { json } => version::run(json),
    }
}

/// Every setting, below the help of the command that needs them most.
fn settings_help() -> String {
    format!(
        "Settings, in the file by their name and in the environment by the name in capitals:\n\n{}",
        config::terminal_table()
    )
}

/// Every knob, below the help of the command that has them.
fn mock_help() -> String {
    format!(
        "Knobs, as request headers (`x-mock-cut: 3`) or as words in the model's name (`mock-small--cut-3--usage-zero`):\n\n{}",
        mock::terminal_table()
    )
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
