//! What is logged: to standard error, JSON unless that is a terminal, one line a request.
//!
//! Secrets are kept out by type: whoever holds one holds a `Secret`, which prints nothing. Behind that every line passes
//! [`scrub`], so that a credential that reaches a line all the same is cut down to its prefix.
//!
//! Lines are written by a thread of their own: whoever logs waits for nobody who reads.
//!
//! **Invariant:** no query, cookie, header or body is in a line of a request, and no path: only its route's template.

mod panics;
mod queue;
mod tied;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};

use self::queue::{Queue, Sink};
use self::tied::Tied;
use crate::config::{LogConfig, LogFormat, LogLevel};
use crate::secrets::PREFIXES;

/// What the line of one request tells.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'request> {
    /// The method as it was sent; one that HTTP does not name is logged as `-`.
    pub method: &'request str,
    /// The route's template such as `/v1/actions/{id}`; `None` where no route matched.
    pub route: Option<&'request str>,
    /// The answer's status.
    pub status: u16,
    /// From the end of the request's header to the start of the answer.
    pub took: Duration,
    /// The id that the answer carries in `x-request-id`.
    pub request_id: &'request str,
    /// `error.type`, where the answer is an error.
    pub refused: Option<&'request str>,
    /// The id of the model call that it tells, where it tells one.
    pub call: Option<&'request str>,
}

/// Methods that are logged as they were sent.
const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];

/// Writes one line about a request that was answered: a warning where it failed, so that whoever logs warnings alone can tell whose
/// request met what is told of beside it.
pub fn request(line: &RequestLine<'_>) {
    let RequestLine { method, route, status, took, request_id, refused, call } = *line;
    let ms = (took.as_secs_f64() * 1e6).round() / 1e3;
    // Anybody may send a method of any length.
    let (method, route) = (if METHODS.contains(&method) { method } else { "-" }, route.unwrap_or("-"));
    if status >= 500 {
        tracing::warn!(target: "svc_http::request", method, route, status, ms, request_id, refused, call, "request");
    } else {
        tracing::info!(target: "svc_http::request", method, route, status, ms, request_id, refused, call, "request");
    }
}

/// Sends the process's log to standard error. Only the first call in a process has an effect.
pub fn start(config: LogConfig) {
    let json = match config.format {
        LogFormat::Auto => !io::stderr().is_terminal(),
        LogFormat::Json => true,
        LogFormat::Text => false,
    };
    let colours = has_colours(json, io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
    // A second start, as in tests that embed the server, keeps the first.
    let sink = || QUEUE.get().map_or_else(|| Sink::Plain(io::stderr()), |it| Sink::Queued(Arc::clone(it)));
    if Registry::default().with(layer(config.level, json, colours, sink)).try_init().is_ok() {
        // Without a thread every line is written by whoever logs it.
        let _ = Queue::start(io::stderr(), tell_dropped).map(|queue| QUEUE.set(queue));
        std::panic::set_hook(Box::new(panics::tell));
    }
}

/// Waits a short while for what was logged to be written: before a process ends, and before it begins to answer. Whoever reads the log
/// and has stopped doing so holds nobody up for longer.
pub fn settle() {
    if let Some(queue) = QUEUE.get() {
        queue.settle(SETTLES);
    }
}

/// The lines of this process on their way.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
/// How long is waited for them.
const SETTLES: Duration = Duration::from_secs(1);

/// A line in between for whoever reads the log: it lacks some.
fn tell_dropped(lines: u64) {
    tracing::error!(lines, "lines of the log were dropped, as it was not read for a while");
}

/// Whether lines are coloured: those for people on a terminal, unless `NO_COLOR` (no-color.org) says anything.
fn has_colours(json: bool, is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    !json && is_terminal && no_color.is_none_or(OsStr::is_empty)
}

/// The layer that writes lines to what `sink` makes.
fn layer<S, W>(level: LogLevel, json: bool, colours: bool, sink: S) -> Box<dyn Layer<Registry> + Send + Sync>
where
    S: Fn() -> W + Send + Sync + 'static,
    W: Write + 'static,
{
    let lines = fmt::layer().with_writer(Scrubbed(sink)).with_ansi(colours);
    if json {
        lines
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(false)
            .map_event_format(|inner| Tied { inner, json })
            .with_filter(targets(level))
            .boxed()
    } else {
        let tied = lines.map_event_format(|it| Tied { inner: it.with_ansi(colours), json });
        tied.with_filter(targets(level)).boxed()
    }
}

/// The level for this program's own events; libraries are heard only when they warn, since their finer events may quote
/// what they carry.
fn targets(level: LogLevel) -> Targets {
    let own = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let libraries = own.min(LevelFilter::WARN);
    Targets::new().with_default(libraries).with_target("svc", own)
}

/// Makes writers that scrub what is written through them.
struct Scrubbed<S>(S);

impl<'writer, S, W> MakeWriter<'writer> for Scrubbed<S>
where
    S: Fn() -> W,
    W: Write,
{
    type Writer = ScrubbedWriter<W>;

    fn make_writer(&'writer self) -> Self::Writer {
        ScrubbedWriter { sink: (self.0)(), line: Vec::new() }
    }
}

/// Holds a line until it is whole, so that no secret slips through in two halves.
struct ScrubbedWriter<W: Write> {
    sink: W,
    line: Vec<u8>,
}

impl<W: Write> Write for ScrubbedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&self.line);
        self.sink.write_all(scrub(&text).as_bytes())?;
        self.line.clear();
        self.sink.flush()
    }
}

impl<W: Write> Drop for ScrubbedWriter<W> {
    fn drop(&mut self) {
        // Nobody is left to tell that the log cannot be written.
        let _ = self.flush();
    }
}

/// Characters behind a prefix from which on it is taken for a credential.
const SECRET_MIN: usize = 10;

/// `text` with every credential cut down to its prefix and `…`.
///
/// Words that merely look like one are cut as well: a log line loses little by it.
#[must_use]
pub fn scrub(text: &str) -> Cow<'_, str> {
    let (mut out, mut shown) = (String::new(), 0);
    // The only `_` of a prefix is its last sign: a text is gone through once, however many prefixes others have put into it.
    for (at, _) in text.match_indices('_') {
        let start = at + 1;
        let is_prefixed = |it: &str| PREFIXES.iter().any(|prefix| it.ends_with(prefix));
        if start <= shown || !text.get(..start).is_some_and(is_prefixed) {
            continue;
        }
        let tail = text.get(start..).unwrap_or_default();
        let length = tail.bytes().take_while(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-')).count();
        if length >= SECRET_MIN {
            out.push_str(text.get(shown..start).unwrap_or_default());
            out.push('…');
            shown = start + length;
        }
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(shown..).unwrap_or_default());
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may panic")]
    use std::sync::Mutex;

    use super::*;
    use crate::at_hand::{self, AtHand};

    const KEY: &str = "ask_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCde";

    /// What `events` log at this level, in JSON or in text.
    fn logged(level: LogLevel, json: bool, events: impl FnOnce()) -> String {
        #[derive(Clone, Default)]
        struct Sink(Arc<Mutex<Vec<u8>>>);
        impl Write for Sink {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sink = Sink::default();
        let kept = sink.clone();
        let subscriber = Registry::default().with(layer(level, json, false, move || sink.clone()));
        tracing::subscriber::with_default(subscriber, events);
        let bytes = kept.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Colours are for people at a terminal, and for nobody where `NO_COLOR` is set to anything.
    #[test]
    fn no_color_is_heard() {
        let with = |no_color: Option<&str>| has_colours(false, true, no_color.map(OsStr::new));
        assert_eq!([with(None), with(Some("")), with(Some("1")), with(Some("0"))], [true, true, false, false]);
        assert!(!has_colours(true, true, None) && !has_colours(false, false, None));
    }

    /// Every kind of credential is cut to its prefix wherever it stands; short words and ids stay.
    #[test]
    fn credentials_are_cut_to_their_prefix() {
        let whsec = format!("{}{}", "whsec_", "0123456789");
        for (text, wanted) in [
            (format!("Bearer {KEY}"), "Bearer ask_…".to_owned()),
            (format!("%20{KEY}&b={KEY}"), "%20ask_…&b=ask_…".to_owned()),
            (format!("{{\"a\":\"{whsec}\"}} sil_0123456789"), "{\"a\":\"whsec_…\"} sil_…".to_owned()),
            ("aat_012345678 ask_ wa\u{df}ask_é".to_owned(), "aat_012345678 ask_ wa\u{df}ask_é".to_owned()),
            ("ims_0123456789art_0123456789.".to_owned(), "ims_….".to_owned()),
            ("ask_art_0123456789".to_owned(), "ask_…".to_owned()),
            ("act_01J0000000000000000000000Z".to_owned(), "act_01J0000000000000000000000Z".to_owned()),
        ] {
            assert_eq!(scrub(&text), wanted);
        }
    }

    /// However many prefixes of credentials stand in a text, as in what somebody answers who wants to keep a processor busy, it is gone
    /// through once.
    #[test]
    fn a_text_is_gone_through_once() {
        let many = "ask_ whsec_x ".repeat(100_000);
        assert_eq!(scrub(&many), many);
        assert_eq!(scrub(&format!("{many}{KEY}")), format!("{many}ask_…"));
        assert!(PREFIXES.iter().all(|it| it.find('_') == Some(it.len() - 1)));
    }

    /// A credential that reaches a line by message, field or error never reaches the log, in either format.
    #[test]
    fn no_line_holds_a_credential() {
        for json in [true, false] {
            let out = logged(LogLevel::Info, json, || {
                let error = io::Error::other(format!("refused {KEY}"));
                tracing::warn!(key = KEY, error = &error as &dyn std::error::Error, "met {KEY}");
            });
            assert!(out.contains("ask_…") && !out.contains("ask_A"), "{out}");
            assert_eq!(out.lines().count(), 1);
        }
    }

    /// The line of a request has the route's template, the status, the time and the id, and nothing else.
    #[test]
    fn a_request_is_one_line_of_json() {
        let out = logged(LogLevel::Info, true, || {
            request(&RequestLine {
                method: "GET",
                route: Some("/v1/actions/{id}"),
                status: 200,
                took: Duration::from_micros(1_234),
                request_id: "req-1",
                refused: None,
                call: None,
            });
        });
        let mut line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&out).unwrap();
        assert!(line.remove("timestamp").is_some());
        assert_eq!(
            serde_json::Value::Object(line),
            serde_json::json!({
                "level": "INFO", "target": "svc_http::request", "message": "request", "method": "GET",
                "route": "/v1/actions/{id}", "status": 200, "ms": 1.234, "request_id": "req-1",
            })
        );
    }

    /// A request that failed is a warning with the type of its error and its call; a method that HTTP does not name is not repeated.
    #[test]
    fn a_request_that_failed_is_a_warning() {
        let line = |method, status| RequestLine {
            method,
            route: None,
            status,
            took: Duration::ZERO,
            request_id: "req-1",
            refused: Some("internal"),
            call: Some("cal_1"),
        };
        let long = "M".repeat(10_000);
        let out = logged(LogLevel::Warn, true, || {
            request(&line("POST", 500));
            request(&line(&long, 503));
            request(&line("POST", 404));
        });
        let lines: Vec<serde_json::Value> = out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let told = |it: &serde_json::Value| ["level", "method", "refused", "call"].map(|name| it[name].clone());
        assert_eq!(
            lines.iter().map(told).collect::<Vec<_>>(),
            [["WARN", "POST", "internal", "cal_1"], ["WARN", "-", "internal", "cal_1"]]
        );
    }

    /// What is logged while a request is worked on says which request it is of, in either format, also on another thread; a line that
    /// says so itself says it once.
    #[tokio::test]
    async fn a_cause_names_its_request() {
        let at_hand = || AtHand::of(http::HeaderValue::from_static("req-1"));
        let work = |json| async move {
            at_hand::found("/v1/actions/{id}", Some("wsp_00000000000000000000000001".parse().unwrap()));
            let told = move || logged(LogLevel::Info, json, || tracing::error!(route = "own", "an operation failed"));
            let here = logged(LogLevel::Info, json, || tracing::error!("an operation failed"));
            let carried = at_hand::carried(async { AtHand::now().is_some() });
            assert!(tokio::spawn(carried).await.unwrap());
            (here, at_hand::spawn_blocking(told).await.unwrap())
        };
        let (here, there) = at_hand().within(work(true)).await;
        let here: serde_json::Value = serde_json::from_str(&here).unwrap();
        let told = |it: &serde_json::Value| ["request_id", "route", "workspace"].map(|name| it[name].clone());
        let workspace = "wsp_00000000000000000000000001";
        assert_eq!(told(&here), ["req-1", "/v1/actions/{id}", workspace]);
        let there: serde_json::Value = serde_json::from_str(&there).unwrap();
        assert_eq!(told(&there), ["req-1", "own", workspace]);
        let (text, _) = at_hand().within(work(false)).await;
        assert!(
            text.ends_with(&format!(" request_id=req-1 route=/v1/actions/{{id}} workspace={workspace}\n")),
            "{text}"
        );
        let outside = logged(LogLevel::Info, true, || tracing::error!("an operation failed"));
        assert!(!outside.contains("request_id"), "{outside}");
    }

    /// A panic is one scrubbed line that says where, and repeats no text that was put together for it.
    #[test]
    fn a_panic_is_a_line() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(panics::tell));
        let out = logged(LogLevel::Error, true, || {
            let _ = std::panic::catch_unwind(|| panic!("it cannot be"));
            let _ = std::panic::catch_unwind(|| panic!("two\nlines of {KEY}"));
        });
        std::panic::set_hook(before);
        let lines: Vec<serde_json::Value> = out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{out}");
        assert!(
            lines.iter().all(|it| it["at"].as_str().unwrap().contains("log.rs:") && it["message"] == "a panic"),
            "{out}"
        );
        assert_eq!(lines[0]["what"], "it cannot be");
        assert!(!out.contains("lines of"), "{out}");
    }

    /// From its start on a process tells of panics in the log alone, which repeats no text that was put together for one: looked at in
    /// a process of its own, as there is one log in each.
    #[test]
    fn a_process_that_logs_quotes_no_panic() {
        const PANICS: &str = "A_TEST_PANICS";
        let prompt = "what the person said";
        if std::env::var_os(PANICS).is_some() {
            start(LogConfig { level: LogLevel::Info, format: LogFormat::Json });
            let _ = std::panic::catch_unwind(|| panic!("no model: {}", prompt.to_owned()));
            settle();
            return;
        }
        let own = "log::tests::a_process_that_logs_quotes_no_panic";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args([own, "--exact", "--nocapture"]).env(PANICS, "1").output().unwrap();
        let [out, log] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(output.status.success() && out.contains("1 passed"), "{out}{log}");
        let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert!(line["message"] == "a panic" && line["at"].as_str().unwrap().contains("log.rs:"), "{log}");
        assert!(!log.contains(prompt) && log.lines().count() == 1, "{log}");
    }

    /// The level holds for this program; libraries speak only when they warn.
    #[test]
    fn libraries_are_heard_when_they_warn() {
        let events = || {
            tracing::trace!(target: "svc_store::lane", "own");
            tracing::info!(target: "h2", "library");
            tracing::warn!(target: "h2", "warned");
        };
        let (all, none) = (logged(LogLevel::Trace, true, events), logged(LogLevel::Off, true, events));
        assert!(all.contains("own") && all.contains("warned") && !all.contains("library"), "{all}");
        assert_eq!(none, "");
    }
}
