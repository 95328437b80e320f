//! `svc doctor`: what is well, what is not, and what to do about it.
//!
//! **Invariant:** it changes nothing; what it tries to write it takes away again.

mod data;
mod disk;
mod ending;
mod mail;
mod net;
mod upstreams;

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use svc_http::config::{Config, ConfigError, Loaded};

use super::database::{is_current, served_elsewhere};
use super::output::{Problem, named_data, print, print_json};
use super::{handles, reached, serve};

/// One thing that was looked at.
struct Check {
    name: &'static str,
    finding: Finding,
}

/// How it was found.
enum Finding {
    /// As it should be: what was seen.
    Well(String),
    /// It works, but somebody should look: what was seen, and what to do.
    Odd(String, String),
    /// It does not work: what was seen, and what to do, unless that is said already.
    Broken(String, String),
}

use Finding::{Broken, Odd, Well};

/// Looks at everything and tells one line each; fails where anything is broken.
///
/// # Errors
/// [`Problem`] where standard output cannot be written.
pub(crate) fn run(loaded: Result<Loaded, ConfigError>, json: bool) -> Result<ExitCode, Problem> {
    let checks = match loaded {
        Ok(loaded) => everything(&loaded),
        Err(error) => settings_alone(error),
    };
    let is_well = !checks.iter().any(|it| matches!(it.finding, Broken(..)));
    if json {
        print_json(&as_json(&checks, is_well))?;
    } else {
        print(&as_text(&checks, is_well))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every check, in the order in which a start would meet them.
fn everything(loaded: &Loaded) -> Vec<Check> {
    let config = &loaded.config;
    let check = |name, finding| Check { name, finding };
    let mut checks = vec![
        check("settings", settings(loaded)),
        check("data directory", disk::directory(config, &named_data(config))),
        check("file modes", disk::modes(loaded)),
        check("schema", data::schema(config, &named_data(config))),
        check("keys", data::keys(config)),
        check("free disk", disk::space(config)),
        check("clock", disk::clock(config)),
        check("listen address", net::listen(config)),
        check("base address", base(config)),
    ];
    checks.extend(servers(config).map(|it| check("other servers", it)));
    checks.extend(data::backup(config).map(|it| check("backup", it)));
    checks.extend(data::pages(config).map(|it| check("database", it)));
    checks.extend(data::ledger(config).map(|it| check("ledger", it)));
    checks.extend(disk::unwritable(config).map(|it| check("database files", it)));
    checks.extend(proxies(config).map(|it| check("trusted proxies", it)));
    checks.extend(file_handles(config).map(|it| check("file handles", it)));
    checks.extend(data::workspace(config, &named_data(config)).map(|it| check("workspace", it)));
    checks.extend(ending::soon(config).map(|it| check("tokens and keys", it)));
    checks.extend(net::metrics(config).map(|it| check("metrics address", it)));
    checks.extend(roots(config).map(|it| check("root certificates", it)));
    checks.extend(mail::answers(config).map(|it| check("mail", it)));
    checks.extend(upstreams::all(config).into_iter().map(|it| check("upstream", it)));
    checks
}

fn settings(loaded: &Loaded) -> Finding {
    let from = match &loaded.file {
        Some(file) => format!("read from {}, the environment and flags", file.display()),
        None => "read from the environment and flags; there is no settings file".to_owned(),
    };
    if loaded.warnings.is_empty() {
        Well(from)
    } else {
        Odd(loaded.warnings.join("; "), "Nothing, unless a setting was meant.".to_owned())
    }
}

/// Without settings it is not known where anything is.
fn settings_alone(error: ConfigError) -> Vec<Check> {
    let finding = |(what, advice): &(String, Option<String>)| {
        Broken(what.clone(), advice.clone().unwrap_or_else(|| "Correct the setting.".to_owned()))
    };
    let checks = Problem::from(error);
    checks.faults().iter().map(|fault| Check { name: "settings", finding: finding(fault) }).collect()
}

/// Whether further root certificates can be read, where a file of them is named.
fn roots(config: &Config) -> Option<Finding> {
    let file = config.outbound.ca_file.as_deref()?.display();
    Some(serve::roots(config).map_or_else(broken, |()| Well(format!("{file} is trusted beside the system's"))))
}

/// What a start would fail with.
fn broken(problem: Problem) -> Finding {
    let mut faults = problem.faults().iter();
    let (what, advice) = faults.next().cloned().unwrap_or_default();
    Broken(what, advice.unwrap_or_default())
}

fn base(config: &Config) -> Finding {
    let url = reached::base_url(config);
    if url.is_loopback() && !config.listen.ip().is_loopback() {
        return Odd(
            format!("{url} is loopback, but {} takes connections from elsewhere", config.listen),
            "Set `baseUrl` to the https address at which others reach this server: receipts and links carry it."
                .to_owned(),
        );
    }
    Well(url.to_string())
}

/// Whether the servers that share a database are reached at one address.
fn servers(config: &Config) -> Option<Finding> {
    let url = reached::base_url(config);
    if config.postgres.is_none() || !is_current(config) {
        return None;
    }
    let elsewhere = match served_elsewhere(config, &url) {
        Ok(elsewhere) => elsewhere,
        Err(error) => return Some(broken(error.into())),
    };
    Some(match serve::other_addresses(&elsewhere, &url) {
        None => Well(format!("none that runs on this database has another base address than {url}")),
        Some(seen) => Odd(
            seen,
            "Give all servers one `baseUrl`; while it is changed, one server after the other, nothing is to be done."
                .to_owned(),
        ),
    })
}

/// Whether it can be told whose address a request comes from.
fn proxies(config: &Config) -> Option<Finding> {
    let seen = serve::unknown_clients(config, &config.base_url(config.listen))?;
    let advice =
        "Set `trustedProxies` to the address of the proxy, such as `127.0.0.1`, if it sends `x-forwarded-for`.";
    Some(Odd(seen, advice.to_owned()))
}

/// Whether a server that is started from here may have as many connections as its settings say.
fn file_handles(config: &Config) -> Option<Finding> {
    let advice = "Raise the hard limit where the server is started (`LimitNOFILE`, `ulimit -Hn`), or lower `limits.connections`.";
    handles::lacking(config).map(|seen| Odd(seen, advice.to_owned()))
}

fn as_text(checks: &[Check], is_well: bool) -> String {
    let mut out = String::new();
    for Check { name, finding } in checks {
        let _ = match finding {
            Well(seen) => writeln!(out, "ok    {name}: {seen}"),
            Odd(seen, advice) => writeln!(out, "look  {name}: {seen}. {advice}"),
            Broken(seen, advice) if advice.is_empty() => writeln!(out, "fail  {name}: {seen}"),
            Broken(seen, advice) => writeln!(out, "fail  {name}: {seen}. {advice}"),
        };
    }
    out.push_str(if is_well { "nothing is broken\n" } else { "something is broken\n" });
    out
}

fn as_json(checks: &[Check], is_well: bool) -> Value {
    let one = |Check { name, finding }: &Check| match finding {
        Well(seen) => json!({ "check": name, "state": "ok", "message": seen }),
        Odd(seen, advice) => json!({ "check": name, "state": "look", "message": seen, "fix": advice }),
        Broken(seen, advice) if advice.is_empty() => json!({ "check": name, "state": "fail", "message": seen }),
        Broken(seen, advice) => json!({ "check": name, "state": "fail", "message": seen, "fix": advice }),
    };
    json!({ "ok": is_well, "checks": checks.iter().map(one).collect::<Vec<_>>() })
}
