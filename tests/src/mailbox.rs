//! Who takes mail: a mail server that takes what it is handed over, and answers what a test tells it to.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use svc_http::config::MailConfig;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::client::PATIENCE;
use crate::receiver::{Line, acceptor, listen};

/// The user and the password that a mailbox asks for.
pub const LOGIN: (&str, &str) = ("svc", "p:w/ü");

/// Messages that nobody has asked for yet.
const MAILS_MAX: usize = 1_024;

/// A message that was taken.
#[derive(Clone, Debug)]
pub struct Mail {
    /// Who it is from, as the envelope says.
    pub from: String,
    /// To whom, as the envelope says.
    pub to: Vec<String>,
    /// Whether a login came first.
    pub logged_in: bool,
    /// Its headers in their order, unfolded.
    pub headers: Vec<(String, String)>,
    /// Its body, decoded.
    pub text: String,
}

impl Mail {
    /// The value of a header that is there once.
    ///
    /// # Panics
    /// Where it is not.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("no {name}: {self:?}"));
        assert!(found.next().is_none(), "{name} came twice");
        value
    }

    /// The first link in it that has this in it.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn link(&self, part: &str) -> &str {
        self.text.lines().find(|line| line.starts_with("http") && line.contains(part)).expect("a link")
    }
}

/// A mail server on a free port of loopback.
#[derive(Debug)]
pub struct Mailbox {
    /// Where it listens.
    pub address: SocketAddr,
    mails: mpsc::Receiver<Mail>,
    answers: Arc<Mutex<VecDeque<String>>>,
    taken: Taken,
    heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
    scheme: &'static str,
}

/// What is answered to a message that was taken, as it goes over the line.
type Taken = Arc<Mutex<&'static [u8]>>;

/// How a server speaks with each client.
#[derive(Clone)]
struct Manner {
    tell: mpsc::Sender<Mail>,
    script: Arc<Mutex<VecDeque<String>>>,
    heard: Arc<Mutex<Vec<String>>>,
    asks_login: bool,
    /// What it answers to STARTTLS, where it offers that.
    starttls: Option<&'static str>,
    /// What it speaks TLS by from then on, where it does.
    upgrade: Option<TlsAcceptor>,
    taken: Taken,
}

impl Mailbox {
    /// One that speaks without TLS.
    pub async fn start() -> Self {
        Self::with(None, None, None).await
    }

    /// One that offers STARTTLS, answers it so, and speaks on without TLS.
    pub async fn start_clear(starttls: &'static str) -> Self {
        Self::with(None, Some(starttls), None).await
    }

    /// One that offers STARTTLS, speaks TLS with the certificate of the tests from then on, and asks for [`LOGIN`]. What it says in
    /// clear behind its yes is this.
    pub async fn start_upgraded(behind: &'static str) -> Self {
        Self::with(None, Some(behind), Some(acceptor())).await
    }

    /// One that speaks TLS from the first byte, with the certificate of the tests, and asks for [`LOGIN`].
    pub async fn start_tls() -> Self {
        Self::with(Some(acceptor()), None, None).await
    }

    async fn with(tls: Option<TlsAcceptor>, starttls: Option<&'static str>, upgrade: Option<TlsAcceptor>) -> Self {
        let (tell, mails) = mpsc::channel(MAILS_MAX);
        let answers: Arc<Mutex<VecDeque<String>>> = Arc::default();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let scheme = if tls.is_some() { "smtps" } else { "smtp" };
        let taken: Taken = Arc::new(Mutex::new(b"250 taken"));
        let (script, asks_login) = (Arc::clone(&answers), tls.is_some() || upgrade.is_some());
        let (heard_of, taken_by) = (Arc::clone(&heard), Arc::clone(&taken));
        let manner = Manner { tell, script, heard: heard_of, asks_login, starttls, upgrade, taken: taken_by };
        let (address, task) = listen(tls, move |stream| {
            let manner = manner.clone();
            async move { take(stream, manner).await }
        })
        .await;
        Self { address, mails, answers, taken, heard, task, scheme }
    }

    /// Its address for `mail.url`, with this login, where there is one.
    #[must_use]
    pub fn url(&self, login: &str) -> String {
        let host = if self.scheme == "smtps" { "localhost" } else { "127.0.0.1" };
        format!("{}://{login}{host}:{}", self.scheme, self.address.port())
    }

    /// Settings that send mail here.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn config(&self) -> MailConfig {
        MailConfig::of(&self.url(""), "svc <svc@gate.example.com>").expect("settings")
    }

    /// What the next recipients are answered, one each; then they are taken.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    pub fn answer(&self, answers: impl IntoIterator<Item = &'static str>) {
        self.answers.lock().expect("nobody panicked").extend(answers.into_iter().map(str::to_owned));
    }

    /// What messages that were taken are answered from now on, byte by byte.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    pub fn answer_taken(&self, with: &'static [u8]) {
        *self.taken.lock().expect("nobody panicked") = with;
    }

    /// The next message.
    ///
    /// # Panics
    /// Where none comes.
    pub async fn next(&mut self) -> Mail {
        timeout(PATIENCE, self.mails.recv()).await.expect("a message in time").expect("a mailbox")
    }

    /// The next messages, by whom they are to.
    pub async fn take(&mut self, count: usize) -> Vec<Mail> {
        let mut found = Vec::with_capacity(count);
        for _ in 0..count {
            found.push(self.next().await);
        }
        found.sort_by(|a, b| a.to.cmp(&b.to));
        found
    }

    /// The verbs of all that was said to it, by anybody.
    ///
    /// # Panics
    /// Never, in a test that has not failed yet.
    #[must_use]
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("nobody panicked").clone()
    }

    /// Whether nothing has come since.
    pub fn is_empty(&mut self) -> bool {
        self.mails.try_recv().is_err()
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Greets one client, and speaks with it until it leaves. `None` where the connection ended early.
async fn take(stream: Box<dyn Line>, manner: Manner) -> Option<()> {
    let mut stream = BufReader::new(stream);
    say(&mut stream, b"220 mail.example.com ESMTP").await?;
    speak(stream, manner).await
}

/// Speaks with one client until it leaves. `None` where the connection ended early.
async fn speak(mut stream: BufReader<Box<dyn Line>>, manner: Manner) -> Option<()> {
    let Manner { tell, script, heard, asks_login, starttls, upgrade, taken } = &manner;
    let asks_login = *asks_login;
    let (mut from, mut to, mut logged_in, mut lingers) = (String::new(), Vec::new(), !asks_login, false);
    loop {
        let line = line(&mut stream).await?;
        let (verb, rest) = line.split_once([' ', ':']).unwrap_or((&line, ""));
        heard.lock().ok()?.push(verb.to_ascii_uppercase());
        if let ("STARTTLS", Some(tls), Some(behind)) = (verb.to_ascii_uppercase().as_str(), upgrade, starttls) {
            say(&mut stream, format!("220 go on{behind}").as_bytes()).await?;
            let secured: Box<dyn Line> = Box::new(tls.accept(stream.into_inner()).await.ok()?);
            let manner = Manner { starttls: None, upgrade: None, ..manner };
            return Box::pin(speak(BufReader::new(secured), manner)).await;
        }
        let answer = match (verb.to_ascii_uppercase().as_str(), starttls) {
            ("EHLO", Some(_)) => {
                "250-mail.example.com\r\n250-STARTTLS\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME".to_owned()
            }
            ("STARTTLS", Some(answer)) => (*answer).to_owned(),
            ("EHLO", None) => "250-mail.example.com\r\n250-AUTH PLAIN LOGIN\r\n250 8BITMIME".to_owned(),
            ("AUTH", _) => {
                let shown = rest.strip_prefix("PLAIN ").and_then(|it| STANDARD.decode(it).ok()).unwrap_or_default();
                logged_in = shown == format!("\0{}\0{}", LOGIN.0, LOGIN.1).as_bytes();
                if logged_in { "235 yes".to_owned() } else { "535 no".to_owned() }
            }
            ("MAIL", _) if !logged_in => "530 log in first".to_owned(),
            ("MAIL", _) => {
                (from, to) = (address(rest), Vec::new());
                "250 yes".to_owned()
            }
            ("RCPT", _) => {
                let answer = script.lock().ok()?.pop_front().unwrap_or_else(|| "250 yes".to_owned());
                if answer == "silence" {
                    // Until the client has had enough.
                    let _ = self::line(&mut stream).await;
                    return None;
                }
                lingers = answer == "250 without an end";
                if answer.starts_with("250") {
                    to.push(address(rest));
                }
                answer
            }
            ("DATA", _) => {
                say(&mut stream, b"354 go on").await?;
                let (headers, text) = message(&mut stream).await?;
                tell.send(Mail { from: from.clone(), to: to.clone(), logged_in: asks_login, headers, text })
                    .await
                    .ok()?;
                let answer: &[u8] = *taken.lock().ok()?;
                say(&mut stream, answer).await?;
                continue;
            }
            ("QUIT", _) if lingers => {
                // Until the client has had enough.
                let _ = self::line(&mut stream).await;
                return None;
            }
            ("QUIT", _) => {
                let _ = say(&mut stream, b"221 bye").await;
                return Some(());
            }
            _ => "250 yes".to_owned(),
        };
        say(&mut stream, answer.as_bytes()).await?;
    }
}

async fn say(stream: &mut (impl AsyncWrite + Unpin), text: &[u8]) -> Option<()> {
    stream.write_all(&[text, b"\r\n"].concat()).await.ok()?;
    stream.flush().await.ok()
}

async fn line(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

/// What stands between the angle brackets of a command.
fn address(rest: &str) -> String {
    let inner = rest.split_once('<').and_then(|(_, it)| it.split_once('>'));
    inner.map(|(it, _)| it.to_owned()).unwrap_or_default()
}

/// Headers and body of a message, up to its end.
async fn message(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<(Vec<(String, String)>, String)> {
    let (mut headers, mut body): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
    let mut in_headers = true;
    loop {
        let line = line(stream).await?;
        match line.as_str() {
            "." => break,
            "" if in_headers => in_headers = false,
            folded if in_headers && folded.starts_with([' ', '\t']) => headers.last_mut()?.1.push_str(folded),
            header if in_headers => {
                let (name, value) = header.split_once(": ")?;
                headers.push((name.to_owned(), value.to_owned()));
            }
            line => body.push(line.strip_prefix('.').unwrap_or(line).to_owned()),
        }
    }
    let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-transfer-encoding"));
    let text = match encoding.map(|(_, it)| it.to_ascii_lowercase()).as_deref() {
        Some("quoted-printable") => unquoted(&body),
        Some("base64") => String::from_utf8(STANDARD.decode(body.concat()).ok()?).ok()?,
        _ => body.join("\n"),
    };
    Some((headers, text.replace("\r\n", "\n")))
}

fn unquoted(lines: &[String]) -> String {
    let mut bytes = Vec::new();
    for line in lines {
        let (line, goes_on) = line.strip_suffix('=').map_or((line.as_str(), false), |it| (it, true));
        let mut parts = line.split('=');
        bytes.extend(parts.next().unwrap_or_default().as_bytes());
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).expect("two hex digits"));
            bytes.extend(&part.as_bytes()[2..]);
        }
        if !goes_on {
            bytes.push(b'\n');
        }
    }
    String::from_utf8(bytes).expect("text")
}
