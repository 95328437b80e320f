//! `svc hook install`, `uninstall` and `status`: the hook in the settings of coding clients.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Map, Value, json};

use super::Change;
use super::output::{Problem, note, print, print_json, quoted};
use crate::hook::place::{check, own_file};
use crate::hook::settings::{Installed, Settings};
use crate::hook::{Client, Refused};
use svc_http::config::BaseUrl;
use svc_http::difference::difference;

/// What a file of the hook's own begins with that is made here.
const OWN_FILE: &str =
    "# Where `svc hook` asks: `url`, `agentKey` and `caFile`. It was made by `svc hook install`, without a key.\n";
/// What nobody is asked about in Codex, whatever is installed.
const UNASKED_BY_CODEX: &str = "Codex asks before it starts a command, and never before it types into one that runs (`write_stdin`): a yes to a \
    shell or an interpreter is a yes to all that is typed into it.\n";
/// Where the environment says which gate is meant.
const URL_NAME: &str = "SVC_URL";

/// Puts the hook into the settings of a client, or of every client that is set up here, and tests it.
///
/// # Errors
/// [`Problem`] where the hook's own file is none; and, once all the others are done, where settings are not JSON or cannot be written, the
/// change was not wanted, the test fails, or a client was told to run no hook.
pub(crate) fn install(client: Option<Client>, config: Option<&Path>, wish: Change) -> Result<ExitCode, Problem> {
    let clients = chosen(client)?;
    let own = OwnFile::of(config)?;
    // A client whose hook cannot read its file runs no tool any more.
    if own.new.is_none() {
        check(&own.path)?;
    }
    let (mut done, mut faults) = (Vec::new(), Problem::none());
    for client in clients {
        let mut told =
            Map::from_iter([("client".to_owned(), client.name().into()), ("changed".to_owned(), false.into())]);
        if let Err(problem) = install_into(client, config, &own, wish, &mut told) {
            told.insert("why".to_owned(), problem.faults().first().map_or(Value::Null, |it| it.0.clone().into()));
            faults = faults.and(problem);
        }
        done.push(told);
    }
    if wish.json {
        print_json(&json!({ "installed": done }))?;
    }
    if faults.faults().is_empty() { Ok(ExitCode::SUCCESS) } else { Err(faults) }
}

/// Puts the hook into the settings of one client and tests it; `told` is what came of it, also where it goes no further.
fn install_into(
    client: Client,
    config: Option<&Path>,
    own: &OwnFile,
    wish: Change,
    told: &mut Map<String, Value>,
) -> Result<(), Problem> {
    let name = client.name();
    let runs = Runs::here(client, config)?;
    let settings = Settings::read(client)?;
    told.insert("path".to_owned(), json!(settings.path));
    let disabled = settings.disabled(&here()?)?;
    let changed = change(&settings, &settings.with(&runs.command())?, Some(own), wish)?;
    told.insert("changed".to_owned(), changed.into());
    if client == Client::Codex {
        note(UNASKED_BY_CODEX);
    }
    if let Some(why) = disabled {
        told.insert("disabled".to_owned(), why.clone().into());
        return Err(Problem::new(
            format!("the hook stands in {}, but {name} does not run it: {why}", settings.path.display()),
            "Change that, and run `svc hook install` again: until then nothing is asked before a tool runs.",
        ));
    }
    let answer = runs.test().map_err(|why| {
        Problem::new(
            format!("the hook stands in {} and was tested: {why}", settings.path.display()),
            format!("Until that is mended {name} runs no tool. Mend it, or run `svc hook uninstall --client {name}`."),
        )
    })?;
    note(&format!("{name}: tested once; {answer}.\n"));
    if client == Client::Codex && changed {
        note("Codex runs a hook only once you have trusted it: say /hooks in Codex.\n");
    }
    told.insert("tested".to_owned(), true.into());
    Ok(())
}

/// Takes the hook out of the settings of a client, or of every client that has it; one whose settings cannot be read keeps it from no
/// other.
///
/// # Errors
/// As [`install`].
pub(crate) fn uninstall(client: Option<Client>, wish: Change) -> Result<ExitCode, Problem> {
    let (mut done, mut left) = (Vec::new(), Vec::new());
    for client in client.map_or_else(|| Client::ALL.to_vec(), |it| vec![it]) {
        let name = client.name();
        let read = Settings::read(client).and_then(|it| Ok((it.without()?, it)));
        match read {
            Ok((new, settings)) => {
                let changed = change(&settings, &new, None, wish)?;
                done.push(json!({ "client": name, "path": settings.path, "changed": changed }));
            }
            Err(Refused(why)) => {
                done.push(json!({ "client": name, "path": null, "changed": false, "why": why }));
                left.push(why);
            }
        }
    }
    if wish.json {
        print_json(&json!({ "uninstalled": done }))?;
    }
    match left.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => {
            let advice = "Nobody looked for the hook there; mend that, and run `svc hook uninstall` again.";
            Err(Problem::several(left.into_iter(), advice))
        }
    }
}

/// Says in whose settings the hook stands, whether it is there as it would be put there now, whether the client was told to run none, and
/// whether it can be run.
///
/// # Errors
/// [`Problem`] where the settings of the client that was named cannot be read; of the others that is told beside the rest. Where the
/// hook's own file cannot be read, as it refuses every call then.
pub(crate) fn status(client: Option<Client>, config: Option<&Path>, wants_json: bool) -> Result<ExitCode, Problem> {
    let mut rows = Vec::new();
    for one in client.map_or_else(|| Client::ALL.to_vec(), |it| vec![it]) {
        let looked = look(one, config);
        let (state, path, why) = match looked {
            Ok((Installed::Not, path, _)) => ("absent", Some(path), None),
            Ok((_, path, Some(why))) => ("disabled", Some(path), Some(why)),
            Ok((installed, path, None)) => match is_read(installed, &place_of(config)?) {
                Err(Refused(why)) => ("broken", Some(path), Some(why)),
                Ok(()) if installed == Installed::Whole => ("installed", Some(path), None),
                Ok(()) => ("outdated", Some(path), None),
            },
            Err(why) if client.is_some() => return Err(why),
            Err(why) => ("unreadable", None, why.faults().first().map(|it| it.0.clone())),
        };
        rows.push(Row { client: one, state, path, why });
    }
    if wants_json {
        let row = |it: &Row| json!({ "client": it.client.name(), "state": it.state, "path": it.path, "why": it.why });
        print_json(&json!({ "clients": rows.iter().map(row).collect::<Vec<Value>>() }))?;
        return whole(&rows);
    }
    for Row { client, state, path, why } in &rows {
        let at = why.clone().or_else(|| path.as_deref().map(|it| it.display().to_string())).unwrap_or_default();
        print(&format!("{:<12} {state:<11} {at}\n", client.name()))?;
    }
    if rows.iter().any(|it| it.state == "outdated") {
        note("What is outdated is renewed by `svc hook install`.\n");
    }
    whole(&rows)
}

/// Fails where the hook's own file would be read and cannot be. What an earlier release wrote reads it where it is there alone.
fn is_read(installed: Installed, place: &Path) -> Result<(), Refused> {
    if installed == Installed::Whole || place.exists() { check(place) } else { Ok(()) }
}

/// How the hook stands with a client.
struct Row {
    client: Client,
    state: &'static str,
    path: Option<PathBuf>,
    why: Option<String>,
}

/// Fails where a client runs a hook that refuses every call.
fn whole(rows: &[Row]) -> Result<ExitCode, Problem> {
    let broken: Vec<&Row> = rows.iter().filter(|it| it.state == "broken").collect();
    let Some(why) = broken.first().and_then(|it| it.why.as_deref()) else { return Ok(ExitCode::SUCCESS) };
    let names = broken.iter().map(|it| it.client.name()).collect::<Vec<_>>().join(", ");
    Err(Problem::new(
        format!("the hook refuses every call of {names}: {why}"),
        "Mend that file; one that is not there is made by `svc hook install`.",
    ))
}

/// How much of the hook stands in a client's settings, where they lie, and what keeps the client from running it.
fn look(client: Client, config: Option<&Path>) -> Result<(Installed, PathBuf, Option<String>), Problem> {
    let settings = Settings::read(client)?;
    let installed = settings.installed(&Runs::here(client, config)?.command())?;
    let disabled = if installed == Installed::Not { None } else { settings.disabled(&here()?)? };
    Ok((installed, settings.path, disabled))
}

impl From<Refused> for Problem {
    fn from(Refused(why): Refused) -> Self {
        Self::plain(why)
    }
}

/// The client that was named, else all that are set up here.
fn chosen(client: Option<Client>) -> Result<Vec<Client>, Problem> {
    let mut all: Vec<Client> = client.into_iter().collect();
    for one in Client::ALL.into_iter().filter(|_| client.is_none()) {
        if Settings::has_home(one)? {
            all.push(one);
        }
    }
    if all.is_empty() {
        return Err(Problem::new("no coding client is set up here", "Name one with `--client`."));
    }
    Ok(all)
}

/// The directory in which this runs, and a client would that is started here.
fn here() -> Result<PathBuf, Problem> {
    std::env::current_dir().map_err(|error| Problem::plain(format!("this directory cannot be found: {error}")))
}

/// Shows a change of settings, with that of the hook's own file where that is yet to be made, asks, and makes it; `false` where there is
/// none of settings to make.
fn change(settings: &Settings, new: &str, own: Option<&OwnFile>, wish: Change) -> Result<bool, Problem> {
    let path = settings.path.display();
    let own = own.and_then(OwnFile::missing);
    let stays = new == settings.text;
    if stays {
        note(&format!("{path} stays as it is.\n"));
        if own.is_none() {
            return Ok(false);
        }
    }
    if let Some((path, new)) = own {
        note(&format!("{}:\n{}", path.display(), difference("", new)));
    }
    if !stays {
        note(&format!("{path}:\n{}", difference(&settings.text, new)));
    }
    if !wish.yes && !agreed()? {
        return Err(Problem::plain(format!("{path} was not changed")));
    }
    if let Some((path, new)) = own {
        make(path, new)?;
    }
    if !stays {
        settings.write(new)?;
    }
    Ok(!stays)
}

fn agreed() -> Result<bool, Problem> {
    if !io::stdin().is_terminal() {
        return Err(Problem::new("nobody can be asked whether to write this", "Say `--yes` to have it written."));
    }
    note("Write this? [y/N] ");
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|error| Problem::plain(format!("no answer can be read: {error}")))?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// The user's own file, which the client's command names: then no variable that a project sets can mean another, nor another list of
/// what need not be asked.
struct OwnFile {
    path: PathBuf,
    /// What is put into it, where it is in its usual place and not there.
    new: Option<String>,
}

impl OwnFile {
    /// The one given here, else the one in its usual place.
    fn of(config: Option<&Path>) -> Result<Self, Problem> {
        let path = place_of(config)?;
        let is_made = config.is_none() && !path.exists();
        Ok(Self { new: is_made.then(text_of_new), path })
    }

    /// Where it is to be made, and with what, as long as it is not there.
    fn missing(&self) -> Option<(&Path, &str)> {
        self.new.as_deref().filter(|_| !self.path.exists()).map(|it| (self.path.as_path(), it))
    }
}

/// Where the user's own file lies, or is to lie.
fn place_of(config: Option<&Path>) -> Result<PathBuf, Problem> {
    own_file(config)?.ok_or_else(|| Problem::plain("there is no home directory for the hook's own file; set `HOME`"))
}

/// What a new file of the hook's own holds: the gate that the environment means, so that what a project puts there later cannot mean
/// another; never the key, which is the user's to keep where they want to.
fn text_of_new() -> String {
    let url = std::env::var(URL_NAME).ok().filter(|it| BaseUrl::parse(it).is_ok());
    let line = url.map(|it| format!("url = {}\n", toml::Value::String(it))).unwrap_or_default();
    format!("{OWN_FILE}{line}")
}

/// Makes a file that nobody else may read or write, in directories that are made as well.
fn make(path: &Path, text: &str) -> Result<(), Problem> {
    let failed = |error: io::Error| Problem::plain(format!("{} cannot be made: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
}

/// How a client runs the hook.
struct Runs {
    client: Client,
    program: PathBuf,
    config: PathBuf,
}

impl Runs {
    /// This program, with the user's own file.
    fn here(client: Client, config: Option<&Path>) -> Result<Self, Problem> {
        let program = std::env::current_exe()
            .map_err(|error| Problem::plain(format!("this program does not know where it lies: {error}")))?;
        Ok(Self { client, program, config: place_of(config)? })
    }

    fn words(&self) -> Vec<String> {
        let own = self.config.display().to_string();
        ["hook", "--client", self.client.name(), "--config", &own].map(str::to_owned).to_vec()
    }

    /// The line for a shell.
    fn command(&self) -> String {
        let program = self.program.display().to_string();
        [program].into_iter().chain(self.words()).map(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Runs the very command that the client will run, so that it asks nothing: nobody is to decide about a test. What it says.
    fn test(&self) -> Result<String, String> {
        let output = Command::new(&self.program)
            .args(self.words())
            .arg("--test")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("it cannot be run: {error}"))?;
        let said = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
        if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
    }
}
