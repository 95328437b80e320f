//! Where settings come from, and which of them wins.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::fault::{ConfigError, Fault};
use super::given::Given;
use super::keys::{KEYS, Key};
use super::{Config, FILE_NAME, Loaded};

/// What settings are read from. The default is the defaults alone: no flag, no environment, no named file.
#[derive(Clone, Default)]
pub struct Sources {
    /// Settings from the command line: key, value.
    pub flags: Vec<(&'static str, String)>,
    /// Whether `--allow-private-callbacks` was given.
    pub allow_private_callbacks: bool,
    /// The environment, or as much of it as is to count; names that do not begin with `SVC_` are passed over.
    pub environment: Vec<(OsString, OsString)>,
    /// The file named by `--config`. Without one `svc.toml` in the data directory is read where it exists.
    pub file: Option<PathBuf>,
}

/// Names in the environment that commands read which are no settings, or that a container platform sets.
enum Foreign {
    /// Another command's, such as the hook's.
    Known,
    /// Set by the platform: told of, since somebody may have meant a setting.
    Platform,
    /// Nobody's: a mistake.
    Unknown,
}

/// A value, whose it is and where it was found.
struct Setting {
    key: &'static Key,
    texts: Vec<String>,
    /// Where it was found, as a message names it.
    origin: String,
    /// The folder that relative paths are seen from.
    folder: Option<PathBuf>,
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl Sources {
    /// The process's environment and nothing else.
    #[must_use]
    pub fn from_environment() -> Self {
        Self { environment: std::env::vars_os().collect(), ..Self::default() }
    }

    pub(super) fn load(self) -> Result<Loaded, ConfigError> {
        let mut found = Findings::default();
        let flags = self.flag_settings();
        let environment = self.named_settings(&mut found);
        let named = self.file.as_deref().map(|file| read_file(file, true, &mut found));
        let mut config = Config { allow_private_callbacks: self.allow_private_callbacks, ..Config::default() };

        // The data directory first: the file that lies in it is found by it.
        for source in [named.as_ref(), Some(&environment), Some(&flags)].into_iter().flatten() {
            for setting in source.iter().filter(|setting| setting.key.name == "data") {
                setting.apply(&mut config, &mut Findings::default());
            }
        }
        let beside = config.data.join(FILE_NAME);
        let (file, from_file) = match (self.file, named) {
            (Some(file), Some(settings)) => (Some(file), settings),
            // A link that leads nowhere is a file that cannot be read, not one that is absent.
            _ if beside.symlink_metadata().is_ok() => {
                let settings = read_file(&beside, false, &mut found);
                (Some(beside), settings)
            }
            _ => (None, Vec::new()),
        };
        for setting in from_file.iter().chain(&environment).chain(&flags) {
            setting.apply(&mut config, &mut found);
        }
        if found.faults.is_empty() {
            config.check_together(&mut found.faults);
        }
        if found.faults.is_empty() {
            let secrets = from_file.iter().filter(|it| it.is_secret()).map(|it| it.key.name).collect();
            config.file = file.clone().filter(|it| it.parent() != Some(&config.data));
            Ok(Loaded { config, file, secrets, warnings: found.warnings })
        } else {
            Err(ConfigError(found.faults))
        }
    }

    fn flag_settings(&self) -> Vec<Setting> {
        let setting = |(name, value): &(&'static str, String)| {
            let key = Key::named(name)?;
            Some(Setting { key, texts: vec![value.clone()], origin: format!("`--{name}`"), folder: None })
        };
        self.flags.iter().filter_map(setting).collect()
    }

    fn named_settings(&self, found: &mut Findings) -> Vec<Setting> {
        let mut settings = Vec::new();
        for (name, value) in &self.environment {
            let Some(name) = name.to_str().filter(|name| name.starts_with("SVC_")) else { continue };
            let Some(key) = KEYS.iter().find(|key| key.env() == name) else {
                match foreign(name) {
                    Foreign::Known => {}
                    Foreign::Platform => found.warnings.push(format!(
                        "`{name}` in the environment is passed over: container platforms set names like it"
                    )),
                    Foreign::Unknown => found.faults.push(Fault::new(
                        format!("`{name}` in the environment is no setting"),
                        meant(name, &nearest_env(name), "unset it"),
                    )),
                }
                continue;
            };
            match value.to_str() {
                Some(text) => settings.push(Setting {
                    key,
                    texts: split(key, text),
                    origin: format!("`{name}` in the environment"),
                    folder: None,
                }),
                None => found.faults.push(Fault::plain(format!("`{name}` in the environment is not UTF-8"))),
            }
        }
        settings
    }
}

/// The environment may hold secrets: only the names are shown.
impl std::fmt::Debug for Sources {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sources").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Setting {
    /// Whether its value is secret. That of a database in a file is not: such an address has no place for a password.
    fn is_secret(&self) -> bool {
        self.key.is_secret && !self.texts.iter().all(|it| it.starts_with("sqlite:"))
    }

    fn apply(&self, config: &mut Config, found: &mut Findings) {
        let given = Given { texts: &self.texts, folder: self.folder.as_deref(), range: None };
        if let Err(must) = self.key.set(config, &given) {
            let shown = if self.key.is_secret { String::new() } else { format!(" is `{}` and", self.texts.join(",")) };
            let told = format!("{}{shown} {must}", self.origin);
            let named = self.texts.iter().map(|it| it.trim()).filter(|it| it.contains('@'));
            let told = named.fold(told, |told, text| told.replace(text, &without_user(text)));
            found.faults.push(Fault::plain(told));
        }
    }
}

/// A text without what stands before an `@`, which in an address is a user and a password.
fn without_user(text: &str) -> String {
    text.rsplit_once('@').map_or_else(|| text.to_owned(), |(_, host)| format!("…@{host}"))
}

/// What commands that ask a server read, and what the first start prints.
const OF_CLIENTS: [&str; 2] = ["SVC_URL", "SVC_AGENT_KEY"];

/// Whose name that is no setting's is.
fn foreign(name: &str) -> Foreign {
    if OF_CLIENTS.contains(&name) || name.starts_with("SVC_HOOK_") {
        Foreign::Known
    } else if name == "SVC_PORT" || name.starts_with("SVC_PORT_") || name.starts_with("SVC_SERVICE_") {
        Foreign::Platform
    } else {
        Foreign::Unknown
    }
}

/// A list in the environment is separated by commas; everything else is one text.
fn split(key: &Key, text: &str) -> Vec<String> {
    match (key.is_list, text.trim()) {
        (true, "") => Vec::new(),
        (true, _) => text.split(',').map(|part| part.trim().to_owned()).collect(),
        (false, _) => vec![text.to_owned()],
    }
}

/// Reads a file of settings. One that was asked for by name may name the data directory.
fn read_file(path: &Path, may_move_data: bool, found: &mut Findings) -> Vec<Setting> {
    let shown = path.display();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            let advice = match error.kind() {
                ErrorKind::InvalidData => "Save it as UTF-8.",
                _ => "Check the path and that this user may read the file.",
            };
            found.faults.push(Fault::new(format!("the settings file {shown} cannot be read: {error}"), advice));
            return Vec::new();
        }
    };
    let table: toml::Table = match text.parse() {
        Ok(table) => table,
        Err(error) => {
            // The library's own text quotes the line, which may hold a secret.
            let line =
                error.span().map_or(1, |span| text.bytes().take(span.start).filter(|it| *it == b'\n').count() + 1);
            let what = format!("line {line} of the settings file {shown} is not TOML: {}", first_line(error.message()));
            found.faults.push(Fault::plain(what));
            return Vec::new();
        }
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut reader = FileReader { path, folder, may_move_data, settings: Vec::new(), found };
    reader.walk("", &table);
    reader.settings
}

/// One walk over a file's tables.
struct FileReader<'walk> {
    path: &'walk Path,
    folder: Option<&'walk Path>,
    may_move_data: bool,
    settings: Vec<Setting>,
    found: &'walk mut Findings,
}

impl FileReader<'_> {
    fn walk(&mut self, prefix: &str, table: &toml::Table) {
        for (name, value) in table {
            let name = format!("{prefix}{name}");
            match (Key::named(&name), value) {
                (Some(key), value) => self.take(key, value),
                // A table that no key begins with is one fault, not one for each of its members.
                (None, toml::Value::Table(inner)) if is_group(&name) => self.walk(&format!("{name}."), inner),
                (None, _) if is_group(&name) => self.found.faults.push(Fault::new(
                    format!("`{name}` in {} must be a table", self.path.display()),
                    format!("Give its members one by one: {}.", members(&name)),
                )),
                (None, value) => {
                    // What a table is near to, its members tell as well.
                    let member = value.as_table().and_then(|it| it.keys().next());
                    let full = member.map_or_else(|| name.clone(), |member| format!("{name}.{member}"));
                    let near = nearest(&full);
                    self.found.faults.push(Fault::new(
                        format!("`{name}` in {} is no setting", self.path.display()),
                        meant(&full, near, "remove the line"),
                    ));
                }
            }
        }
    }

    fn take(&mut self, key: &'static Key, value: &toml::Value) {
        let origin = format!("`{}` in {}", key.name, self.path.display());
        if key.name == "data" && !self.may_move_data {
            self.found.faults.push(Fault::new(
                format!("{origin} cannot name the directory that the file lies in"),
                "Remove it; use `--data`, `SVC_DATA`, or a file named by `--config`.",
            ));
            return;
        }
        // What lists hold are names: a number or a switch among them was meant otherwise.
        let plain = |value: &toml::Value| plain(value).filter(|_| value.is_str() || !key.is_list);
        let texts = match value {
            toml::Value::Array(items) => items.iter().map(plain).collect(),
            toml::Value::Table(items) if key.is_table => {
                items.iter().map(|(name, value)| Some(format!("{name}={}", plain(value)?))).collect()
            }
            one => plain(one).map(|text| vec![text]),
        };
        match texts {
            Some(texts) => {
                self.settings.push(Setting { key, texts, origin, folder: self.folder.map(Path::to_path_buf) });
            }
            None if key.is_table => self.found.faults.push(Fault::plain(format!("{origin} must be a table of texts"))),
            None if key.is_list => self.found.faults.push(Fault::plain(format!("{origin} must be a list of texts"))),
            None => self.found.faults.push(Fault::plain(format!("{origin} must be text, a number or a list of them"))),
        }
    }
}

/// A single value as text.
fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

/// Whether some key lies under this name.
fn is_group(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The keys under a name.
fn members(name: &str) -> String {
    let under = KEYS.iter().map(|it| it.name).filter(|it| it.strip_prefix(name).is_some_and(|it| it.starts_with('.')));
    under.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The key whose name is nearest to `name`, whatever its case.
fn nearest(name: &str) -> &'static str {
    let near = |key: &&Key| distance(&key.name.to_lowercase(), &name.to_lowercase());
    KEYS.iter().min_by_key(near).map_or("", |key| key.name)
}

/// The name in the environment that is nearest to `name`.
fn nearest_env(name: &str) -> String {
    let known = KEYS.iter().map(Key::env).chain(OF_CLIENTS.map(str::to_owned));
    known.min_by_key(|env| distance(env, name)).unwrap_or_default()
}

/// What to do about a name that is no setting, where `near` is the nearest that is one: only what is near can have been meant.
fn meant(name: &str, near: &str, away: &str) -> String {
    if is_near(name, near) {
        format!("Did you mean `{near}`? Correct the name or {away}.")
    } else {
        format!(
            "No setting has a name like it (the nearest is `{near}`): {away}, or look for the right one with `svc serve --help`."
        )
    }
}

/// Whether one name can be a slip of the other: at most a third of it is other letters, and of each part too where both have as many.
fn is_near(name: &str, near: &str) -> bool {
    let (name, near) = (name.to_lowercase(), near.to_lowercase());
    let slips = |a: &str, b: &str| distance(a, b) * 3 <= b.len().max(3);
    let parts =
        |it: &str| it.strip_prefix("svc_").unwrap_or(it).split(['.', '_']).map(str::to_owned).collect::<Vec<_>>();
    let (sent, wanted) = (parts(&name), parts(&near));
    slips(sent.join(".").as_str(), wanted.join(".").as_str())
        && (sent.len() != wanted.len() || sent.iter().zip(&wanted).all(|(a, b)| slips(a, b)))
}

/// Edits between two names. What is far longer than any key is a slip of the finger in none, and is not compared.
fn distance(a: &str, b: &str) -> usize {
    const NAME_MAX: usize = 128;
    let longer = a.len().max(b.len());
    if longer > NAME_MAX { longer } else { strsim::damerau_levenshtein(a, b) }
}
