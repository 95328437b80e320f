//! `svc hook`: a coding client says on standard input which tool it is about to run, and hears whether it may.
//!
//! **Invariant:** whatever goes wrong before a tool runs is a refusal: exit code 2, which every client takes for one, and
//! the reason on standard error. Clients let a tool run where a hook breaks in any other way.
//!
//! **Invariant:** nothing is written before everything is known; an answer is written once and whole.
//!
//! **Invariant:** neither the gate's address nor a key is read from the project's directory, nor what need not be asked.

mod action;
mod after;
mod answer;
mod before;
mod client;
mod event;
mod exchange;
mod memory;
pub(crate) mod place;
pub(crate) mod settings;
mod transcript;
mod verdict;

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use svc_core::value::json::Json;
use svc_core::value::spelled::spelled;
use svc_http::log::scrub;
use svc_http::pages::quoted::in_line;

pub(crate) use self::client::Client;
use self::event::{Event, Moment, is_of_after, projects};
use self::place::Place;

/// Bytes of what a client may say of one call.
const INPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long it may take from start to answer, where nothing else is said.
const TIMEOUT_MS: u64 = 5_000;
/// The shortest and the longest that may be said; clients are told to wait longer than the longest.
const TIMEOUT_MS_RANGE: std::ops::RangeInclusive<u64> = 50..=50_000;
/// Objects within one another whose members are read where the whole cannot be: what is said, and what the tool gave.
const LENIENT_LEVELS: u8 = 2;
/// U+FEFF, the mark of the order of bytes.
const MARK: &[u8] = "\u{feff}".as_bytes();
/// The environment's name for it.
const TIMEOUT_NAME: &str = "SVC_HOOK_TIMEOUT_MS";
/// What the names in the environment begin with that are the hook's alone.
const OWN_NAMES: &str = "SVC_HOOK_";
/// How a refusal begins. In the program's file it also tells `install` whose hook a command is.
const REFUSES: &str = "svc refuses this call: ";
/// What every client takes for no.
const REFUSED: u8 = 2;
/// What every client takes for a fault that stops nothing: the tool has run already.
const UNTOLD: u8 = 1;

/// Why a call is refused, or was not reported: one sentence for people, without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) String);

impl Refused {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// By when everything is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
    span: Duration,
}

impl Deadline {
    fn from_now(span: Duration) -> Self {
        Self { at: Instant::now() + span, span }
    }

    /// What is left of it; nothing is a refusal.
    fn left(self) -> Result<Duration, Refused> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.missed()) } else { Ok(left) }
    }

    /// Whether half of it is over.
    fn is_half_over(self) -> bool {
        self.at.saturating_duration_since(Instant::now()) <= self.span / 2
    }

    fn missed(self) -> Refused {
        Refused(format!("there was no answer within {} ms", self.span.as_millis()))
    }
}

/// Answers the client on standard output.
pub(crate) fn run(client: Option<Client>, config: Option<PathBuf>) -> ExitCode {
    keep_panics_quiet();
    let is_after = Arc::new(AtomicBool::new(false));
    let knows = Arc::clone(&is_after);
    let done = span().and_then(|span| {
        let deadline = Deadline::from_now(span);
        guarded(deadline, move || {
            let event = event(&stdin()?, client, &knows)?;
            knows.store(event.moment != Moment::Before, Ordering::Release);
            are_names_known()?;
            let place = Place::find(config.as_deref(), &event.projects)?;
            match event.moment {
                Moment::Before => before::ask(&event, &place, deadline),
                Moment::After { failed } => after::tell(&event, &place, failed, deadline).map(|()| String::new()),
                Moment::Withheld => after::withheld(&event, &place, deadline).map(|()| String::new()),
            }
        })
    });
    let done = done.and_then(|answer| {
        if !answer.is_empty() && is_unheard() {
            return Err(Refused::new("nobody hears the answer: standard output is closed or `/dev/null`"));
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| Refused(format!("the answer cannot be written: {error}")))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused(why)) if is_after.load(Ordering::Acquire) => {
            complain(&format!("svc was not told what came of this call: {why}"));
            ExitCode::from(UNTOLD)
        }
        Err(Refused(why)) => {
            complain(&format!("{REFUSES}{why}"));
            ExitCode::from(REFUSED)
        }
    }
}

/// Looks whether the gate is reached and knows the key, as the hook would ask it. Nothing is asked of it, and nobody there is.
pub(crate) fn test(config: Option<PathBuf>) -> ExitCode {
    keep_panics_quiet();
    let done = span().and_then(|span| {
        let deadline = Deadline::from_now(span);
        guarded(deadline, move || {
            are_names_known()?;
            let place = Place::find(config.as_deref(), &projects(&Json::Null))?;
            before::look(&place, deadline).map(|()| format!("the gate at {} knows the key\n", place.url))
        })
    });
    let written = |told: String| {
        let mut out = io::stdout().lock();
        let written = out.write_all(told.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| Refused(format!("the answer cannot be written: {error}")))
    };
    match done.and_then(written) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused(why)) => {
            complain(&why);
            ExitCode::from(REFUSED)
        }
    }
}

/// The message of a panic may quote what was read.
fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|_| {}));
}

/// Does `work` on a thread of its own and waits until the deadline, whatever the work waits for; a panic is a refusal.
fn guarded(
    deadline: Deadline,
    work: impl FnOnce() -> Result<String, Refused> + Send + 'static,
) -> Result<String, Refused> {
    let (tell, told) = sync_channel(1);
    let started = thread::Builder::new().name("hook".to_owned()).spawn(move || {
        // A receiver that is gone has refused already.
        let _ = tell.send(work());
    });
    started.map_err(|error| Refused(format!("no thread can be started: {error}")))?;
    match told.recv_timeout(deadline.left()?) {
        Ok(done) => done,
        Err(RecvTimeoutError::Timeout) => Err(deadline.missed()),
        Err(RecvTimeoutError::Disconnected) => Err(Refused::new("the hook broke down, which is a fault of svc")),
    }
}

/// Whether what is written to standard output is lost. One that was closed is so as well: Rust opens `/dev/null` in its place
/// before the program begins.
#[cfg(unix)]
fn is_unheard() -> bool {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let out = io::stdout().as_fd().try_clone_to_owned().and_then(|it| std::fs::File::from(it).metadata());
    let Ok(out) = out else { return true };
    let null = std::fs::metadata("/dev/null");
    out.file_type().is_char_device() && null.is_ok_and(|it| it.rdev() == out.rdev())
}

#[cfg(not(unix))]
const fn is_unheard() -> bool {
    false
}

/// How long it may take.
fn span() -> Result<Duration, Refused> {
    let Some(said) = std::env::var_os(TIMEOUT_NAME) else { return Ok(Duration::from_millis(TIMEOUT_MS)) };
    let read = said.to_str().and_then(|it| it.parse().ok()).filter(|it| TIMEOUT_MS_RANGE.contains(it));
    let (least, most) = (TIMEOUT_MS_RANGE.start(), TIMEOUT_MS_RANGE.end());
    read.map(Duration::from_millis)
        .ok_or_else(|| Refused(format!("`{TIMEOUT_NAME}` must be milliseconds from {least} to {most}")))
}

/// Refuses a name in the environment that can only be meant for the hook and is none of its: a misspelt setting is never silently none.
/// Beside a service called `svc-hook` container platforms set names of their own.
fn are_names_known() -> Result<(), Refused> {
    let is_of_platform = |rest: &str| rest == "PORT" || rest.starts_with("PORT_") || rest.starts_with("SERVICE_");
    let is_unknown = |name: &str| {
        let rest = name.strip_prefix(OWN_NAMES).filter(|_| name != TIMEOUT_NAME);
        rest.is_some_and(|it| !is_of_platform(it))
    };
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    names.filter(|it| is_unknown(it)).min().map_or(Ok(()), |name| {
        let name = plain(&name, 64);
        Err(Refused(format!(
            "`{name}` in the environment is no setting of the hook, and `{TIMEOUT_NAME}` is the only one that is called like it: correct \
             the name or unset it"
        )))
    })
}

fn stdin() -> Result<Vec<u8>, Refused> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refused(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Refused(format!("the client says more than {INPUT_BYTES_MAX} bytes of one call")));
    }
    Ok(bytes)
}

/// What the client says. Before a tool runs it has to be JSON to the letter. After it, what the tool gave may be
/// anything, such as a text that was cut within a character or lists that are nested without end: then what can be read
/// is. Whether the tool has run is told as soon as that is known, as then there is nothing to refuse any more.
fn event(said: &[u8], client: Option<Client>, is_after: &AtomicBool) -> Result<Event, Refused> {
    let said = without_marks(said);
    let whole = spelled(said).ok();
    let is_whole = whole.is_some();
    let read = whole.or_else(|| leniently(&String::from_utf8_lossy(said), LENIENT_LEVELS).filter(is_of_after));
    let no_json = || Refused::new("what the client says on standard input is not JSON");
    let json = read.ok_or_else(no_json)?;
    is_after.store(is_of_after(&json), Ordering::Release);
    let event = Event::read(&json, client)?;
    if is_whole || event.moment != Moment::Before { Ok(event) } else { Err(no_json()) }
}

/// A text without the marks of the order of its bytes in front of it, which some write on Windows, one of them twice.
fn without_marks(mut text: &[u8]) -> &[u8] {
    while let Some(rest) = text.strip_prefix(MARK) {
        text = rest;
    }
    text
}

/// A value as far as it can be read, without the members that cannot be, of so many levels of objects.
fn leniently(text: &str, levels: u8) -> Option<Json> {
    if let Ok(json) = spelled(text.as_bytes()) {
        return Some(json);
    }
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok().filter(|_| levels > 0)?;
    let read = members.into_iter().filter_map(|(name, value)| Some((name, leniently(value.get(), levels - 1)?)));
    Some(Json::Object(read.collect()))
}

/// Tells it on standard error, one line without any secret; where nobody listens the exit code still tells.
fn complain(text: &str) {
    let _ = io::stderr().write_all(format!("{}\n", scrub(&plain(text, 2_000))).as_bytes());
}

/// At most so many characters of a text in one line, with a name in the place of each sign that nobody sees or that turns text around.
fn plain(text: &str, max: usize) -> String {
    let clipped =
        |text: &str| text.char_indices().nth(max).map(|(end, _)| text.get(..end).unwrap_or_default().to_owned());
    let head = clipped(text);
    let named = in_line(head.as_deref().unwrap_or(text));
    match (clipped(&named), head) {
        (Some(shown), _) => shown + "…",
        (None, Some(_)) => named + "…",
        (None, None) => named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that panics or does not end in time is a refusal, and work that ends is what it says.
    #[test]
    fn a_panic_and_a_stall_are_refusals() {
        let deadline = Deadline::from_now(Duration::from_secs(60));
        assert_eq!(guarded(deadline, || Ok("yes".to_owned())), Ok("yes".to_owned()));
        let broken = guarded(deadline, || std::panic::panic_any(1));
        assert!(broken.is_err_and(|it| it.0.contains("broke down")));
        let deadline = Deadline::from_now(Duration::from_millis(20));
        let (_hold, never) = sync_channel::<()>(1);
        let stalled = guarded(deadline, move || {
            let _ = never.recv();
            Ok("late".to_owned())
        });
        assert_eq!(stalled, Err(Refused::new("there was no answer within 20 ms")));
    }

    /// A panic tells nobody what was read, which its message may quote: looked at in a process of its own, as all threads of one share
    /// what becomes of panics.
    #[test]
    fn a_panic_quotes_nothing() {
        const PANICS: &str = "A_TEST_PANICS";
        let read = "what the person said";
        if std::env::var_os(PANICS).is_some() {
            keep_panics_quiet();
            let broken =
                guarded(Deadline::from_now(Duration::from_secs(60)), move || panic!("no tool: {}", read.to_owned()));
            assert!(broken.is_err());
            return;
        }
        let own = "hook::tests::a_panic_quotes_nothing";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([own, "--exact", "--nocapture"]).env(PANICS, "1").output().unwrap();
        let heard = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
        assert!(output.status.success() && heard.contains("1 passed"), "{heard}");
        assert!(!heard.contains(read) && !heard.contains("panicked"), "{heard}");
    }

    /// What a tool gave is read as far as it can be, and nothing else is: a call that is yet to come is said to the
    /// letter.
    #[test]
    fn what_a_tool_gave_may_be_anything() {
        let said = |event: &str, response: &str| {
            format!(
                r#"{{"session_id":"s","hook_event_name":"{event}","tool_name":"T","tool_input":{{"a":1}},"tool_response":{response}}}"#
            )
        };
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        for (response, failed) in [
            (r#""cut \ud83d""#.to_owned(), false),
            (deep.clone(), false),
            (format!(r#"{{"isError":true,"content":{deep}}}"#), true),
        ] {
            let read = event(said("PostToolUse", &response).as_bytes(), None, &AtomicBool::default())
                .map(|it| (it.moment, it.input));
            let input = Json::Object(vec![("a".to_owned(), Json::Number(svc_core::value::json::Number::Int(1)))]);
            assert_eq!(read, Ok((Moment::After { failed }, input)), "{response}");
            assert!(
                event(said("PreToolUse", &response).as_bytes(), None, &AtomicBool::default()).is_err(),
                "{response}"
            );
        }
        let cut = said("PostToolUse", "1");
        let cut = cut.get(..cut.len() - 1).unwrap_or_default();
        assert!(event(cut.as_bytes(), None, &AtomicBool::default()).is_err());
    }

    /// What others wrote moves no cursor and is not endless.
    #[test]
    fn texts_of_others_are_plain() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202e}d", 99), "a‹U+001B›[2Jb c‹U+202E›d");
        let named = "a‹U+2028›‹U+200B›‹U+E0041›‹U+061C›‹U+2800›‹30 × U+0020›b";
        assert_eq!(plain(&format!("a\u{2028}\u{200b}\u{e0041}\u{61c}\u{2800}{}b", " ".repeat(30)), 99), named);
        assert_eq!(plain("\u{202e}\u{202e}\u{202e}", 12), "‹U+202E›‹U+2…");
        assert_eq!(plain("äöü", 2), "äö…");
    }
}
