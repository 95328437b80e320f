//! Mail: one message handed over to one server by SMTP.
//!
//! **Invariant:** what others wrote is in the body alone, and no password or address is in a log.

mod ascii;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use lettre::message::header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::AsyncSmtpConnection;
use lettre::transport::smtp::extension::{ClientId, Extension};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use svc_core::state::edge::Trouble;
use svc_core::value::Timestamp;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use url::Host;

use self::ascii::Ascii;
use crate::config::{Config, Login, MailServer, Security};
use crate::outbound::Trust;
use crate::outbound::dial::Io;

/// How long reaching the server may take, from looking up the host to the answer to the login.
const MAIL_TIME: Duration = Duration::from_secs(10);
/// How long handing a message over may take in all, from looking up the host to the answer to its final dot: the answer that
/// decides has time of its own. With [`GOODBYE_TIME`] it stays within the lease of a delivery, which is 30 seconds, also by a clock that is five apart.
const MESSAGE_TIME: Duration = Duration::from_secs(13);
/// How long the end of a connection may take.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// What says yes to a login, the best first.
const MECHANISMS: &[Mechanism] = &[Mechanism::Plain, Mechanism::Login];

/// Hands mail over to the server that the settings name.
pub struct Mailer {
    server: Arc<MailServer>,
    from: Mailbox,
    /// The domain that ids of messages are of.
    domain: Box<str>,
    hello: ClientId,
    trust: Trust,
    tls: OnceLock<TlsConnector>,
}

impl fmt::Debug for Mailer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Mailer").field("server", &self.server).finish_non_exhaustive()
    }
}

/// One message.
#[derive(Debug)]
pub(crate) struct Mail {
    /// The same at every try, so that a message which came twice is one.
    pub(crate) id: String,
    /// To whom.
    pub(crate) to: String,
    /// What it is about: words of this server's own.
    pub(crate) subject: String,
    /// What it says.
    pub(crate) text: String,
    /// When it is sent.
    pub(crate) at: Timestamp,
}

/// Why a message was not taken: the server's code, where it answered, and what that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotTaken {
    pub(crate) status: Option<u16>,
    pub(crate) trouble: Trouble,
}

impl From<Trouble> for NotTaken {
    fn from(trouble: Trouble) -> Self {
        Self { status: None, trouble }
    }
}

impl Mailer {
    /// Mail as these settings send it, from a server that is reached at `domain`; `None` where they send none.
    #[must_use]
    pub fn of(config: &Config, domain: &str, trust: &Trust) -> Option<Self> {
        let (server, from) = (config.mail.server.clone()?, config.mail.from.clone()?);
        // A host with a port, as base addresses have it: the port is no part of a domain.
        let host = domain.rsplit_once(':').map_or(domain, |(host, port)| match port.parse::<u16>() {
            Ok(_) => host,
            Err(_) => domain,
        });
        let hello = match host.parse() {
            Ok(ip) => ClientId::Ipv4(ip),
            Err(_) if host.starts_with('[') => ClientId::Ipv4(Ipv4Addr::LOCALHOST),
            Err(_) => ClientId::Domain(host.to_owned()),
        };
        Some(Self { server, from, domain: host.into(), hello, trust: trust.clone(), tls: OnceLock::new() })
    }

    /// The host of the server that takes the mail.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.server.host
    }

    /// Whether the server answers, and takes the login and a sender of this form.
    ///
    /// # Errors
    /// [`Trouble`] says why it does not.
    pub async fn check(&self) -> Result<(), Trouble> {
        let connection = self.reach().await.map_err(|it| it.trouble)?;
        let takes_every_letter = connection.server_info().supports_feature(Extension::SmtpUtfEight);
        goodbye(connection).await;
        if takes_every_letter || self.is_from_ascii() { Ok(()) } else { Err(Trouble::Sender) }
    }

    /// Whether every mail server takes a sender of this form.
    fn is_from_ascii(&self) -> bool {
        AsRef::<str>::as_ref(&self.from.email).is_ascii()
    }

    /// Hands a message over, and gives the code of the server's answer.
    ///
    /// # Errors
    /// [`NotTaken`] where it was not taken, or nobody knows whether it was.
    pub(crate) async fn send(&self, mail: Mail) -> Result<u16, NotTaken> {
        let message = self.written(mail)?;
        let until = Instant::now() + MESSAGE_TIME;
        let mut connection = self.reach().await?;
        let (envelope, bytes) = (message.envelope(), message.formatted());
        let taken = timeout_at(until, connection.send(envelope, &bytes)).await;
        let Ok(taken) = taken else { return Err(Trouble::Handover.into()) };
        // The server has answered for the message: how the connection ends makes no other answer of it.
        goodbye(connection).await;
        taken.map(|answer| answer.code().into()).map_err(|error| {
            let mut why = not_taken(&error);
            if error.is_permanent() {
                why.trouble = Trouble::Refused;
            } else if error.is_client() {
                // It says that one of the two is not ASCII, and the server takes no such.
                why.trouble = if self.is_from_ascii() { Trouble::Recipient } else { Trouble::Sender };
            }
            why
        })
    }

    /// A connection within its time.
    async fn reach(&self) -> Result<AsyncSmtpConnection, NotTaken> {
        timeout(MAIL_TIME, self.connect()).await.unwrap_or_else(|_| Err(Trouble::Timeout.into()))
    }

    fn written(&self, mail: Mail) -> Result<Message, NotTaken> {
        // What is no address that mail has a form for never becomes one.
        let to = Mailbox::new(None, plain_domain(&mail.to).parse().map_err(|_| Trouble::Recipient)?);
        let ms = u64::try_from(mail.at.as_millis()).unwrap_or(0);
        let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
        let message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(mail.subject)
            .date(SystemTime::UNIX_EPOCH + Duration::from_millis(ms))
            .message_id(Some(format!("<{}@{}>", mail.id, self.domain)))
            .raw_header(automatic)
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text);
        message.map_err(|_| Trouble::Recipient.into())
    }

    /// A connection to the server, secured and logged in as it is to be.
    async fn connect(&self) -> Result<AsyncSmtpConnection, NotTaken> {
        let MailServer { host, port, security, login } = &*self.server;
        let stream = TcpStream::connect((&**host, *port)).await.map_err(|_| Trouble::Connect)?;
        let _ = stream.set_nodelay(true);
        let stream = match security {
            Security::Tls => Ascii::new(self.secured(stream).await?),
            Security::StartTls => Ascii::greeted(self.secured(self.upgraded(stream).await?).await?),
            Security::Loopback => Ascii::new(Io::Plain(stream)),
        };
        let mut connection = self.hello(stream).await?;
        if let Some(Login { user, password }) = login {
            let shown = Credentials::new(user.clone(), password.expose().clone());
            connection.auth(MECHANISMS, &shown).await.map_err(|error| not_taken(&error))?;
        }
        Ok(connection)
    }

    async fn hello(&self, stream: Ascii) -> Result<AsyncSmtpConnection, NotTaken> {
        let opened = AsyncSmtpConnection::connect_with_transport(Box::new(stream), &self.hello).await;
        opened.map_err(|error| not_taken(&error))
    }

    /// The same connection, where the server is ready to have it secured. What it has said in clear beyond that is let go of with
    /// whatever read it, and counts for nothing.
    async fn upgraded(&self, stream: TcpStream) -> Result<TcpStream, NotTaken> {
        let (clear, kept) = twice(stream).map_err(|_| Trouble::Connect)?;
        let mut connection = self.hello(Ascii::new(Io::Plain(clear))).await?;
        if !connection.server_info().supports_feature(Extension::StartTls) {
            connection.abort().await;
            return Err(Trouble::Unsecured.into());
        }
        if let Err(error) = connection.command("STARTTLS\r\n").await {
            connection.abort().await;
            return Err(not_taken(&error));
        }
        Ok(kept)
    }

    /// A connection that is secured. That this fails is told of TLS, and of nothing that is said later.
    async fn secured(&self, stream: TcpStream) -> Result<Io, NotTaken> {
        let name = ServerName::try_from(self.server.host.to_string()).map_err(|_| Trouble::Tls)?;
        let stream = self.tls().connect(name, stream).await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Trouble::Tls,
            _ => Trouble::Connect,
        })?;
        Ok(Io::Tls(Box::new(stream)))
    }

    /// How connections are secured; whom the system trusts is asked once, at the first of them.
    fn tls(&self) -> &TlsConnector {
        self.tls.get_or_init(|| {
            let mut config = ClientConfig::clone(&self.trust.client());
            // Those name what is spoken over HTTP's connections.
            config.alpn_protocols.clear();
            TlsConnector::from(Arc::new(config))
        })
    }
}

/// A connection twice over: whoever reads and writes one of them can be dropped, and the other goes on.
fn twice(stream: TcpStream) -> io::Result<(TcpStream, TcpStream)> {
    let one = stream.into_std()?;
    let other = one.try_clone()?;
    Ok((TcpStream::from_std(one)?, TcpStream::from_std(other)?))
}

/// Ends a connection politely, where the server lets it.
async fn goodbye(mut connection: AsyncSmtpConnection) {
    // Nothing hangs on it: what gets no answer is dropped.
    let _ = timeout(GOODBYE_TIME, connection.abort()).await;
}

/// An address whose domain is written in the form that every mail server knows (RFC 5890, A-labels); as it is where there is none.
pub(crate) fn plain_domain(address: &str) -> Cow<'_, str> {
    match address.rsplit_once('@').map(|(local, domain)| (local, domain, Host::parse(domain))) {
        Some((local, domain, Ok(Host::Domain(plain)))) if !domain.is_ascii() => format!("{local}@{plain}").into(),
        _ => address.into(),
    }
}

/// What a failure in what is said means, once the connection is there: none of these is the message's own.
fn not_taken(error: &Error) -> NotTaken {
    let trouble = if error.is_timeout() {
        Trouble::Timeout
    } else if error.is_permanent() || error.is_transient() {
        Trouble::Answer
    } else if error.is_response() || error.is_client() {
        Trouble::Protocol
    } else {
        Trouble::Connect
    };
    NotTaken { status: error.status().map(Into::into), trouble }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A domain of any script is written so that a server without SMTPUTF8 takes it; nothing else of an address is touched.
    #[test]
    fn domains_are_written_in_their_plain_form() {
        for (address, plain) in [
            ("ann@ex\u{e4}mple.com", "ann@xn--exmple-cua.com"),
            ("\u{e4}nn@example.com", "\u{e4}nn@example.com"),
            ("Ann@Example.COM", "Ann@Example.COM"),
            ("a@b@\u{a0}", "a@b@\u{a0}"),
        ] {
            assert_eq!(plain_domain(address), plain);
        }
    }

    /// What a try that took too long is said to have taken is what it may take.
    #[test]
    fn a_try_says_how_long_it_waited() {
        for (trouble, time) in [(Trouble::Timeout, MAIL_TIME), (Trouble::Handover, MESSAGE_TIME)] {
            let said = format!(" within {} seconds", time.as_secs());
            assert!(trouble.as_str().ends_with(&said), "{}", trouble.as_str());
        }
    }
}
