//! Where mail is handed over, and in whose name (`mail.*`).

use std::net::IpAddr;
use std::sync::Arc;

use lettre::Address;
use lettre::message::Mailbox;
use percent_encoding::percent_decode_str;
use svc_core::value::secret::Secret;
use url::{Host, Url};

use crate::mail::plain_domain;

/// How mail is sent; nothing is where there is no server.
#[derive(Debug, Default)]
pub struct MailConfig {
    /// The server that takes it.
    pub server: Option<Arc<MailServer>>,
    /// Whom it comes from.
    pub from: Option<Mailbox>,
}

impl MailConfig {
    /// Mail handed over to the server at `url`, in the name of `from`.
    ///
    /// # Errors
    /// A clause that says what one of them must be.
    pub fn of(url: &str, from: &str) -> Result<Self, String> {
        Ok(Self { server: Some(Arc::new(MailServer::parse(url)?)), from: Some(self::from(from)?) })
    }
}

/// A server that takes mail.
#[derive(Debug)]
pub struct MailServer {
    /// Its host.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
    /// How the connection to it is secured.
    pub security: Security,
    /// What it is shown, where it asks for something.
    pub login: Option<Login>,
}

/// How the connection to a mail server is secured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// By TLS from its first byte.
    Tls,
    /// By TLS before anything is said in it; a server that does not offer that gets no mail.
    StartTls,
    /// Not at all: it does not leave this machine.
    Loopback,
}

/// What a mail server is shown.
#[derive(Debug)]
pub struct Login {
    /// Who.
    pub user: String,
    /// Their password.
    pub password: Secret<String>,
}

/// What an address of a mail server has to be; never quoted with the address, which holds a password.
const MUST: &str = "must be `smtps://user:password@host`, with a port where it is not 465; or `smtp://`, which asks for \
                    STARTTLS unless the host is loopback; a user and a password in percent-encoding where they hold \
                    signs of their own";

impl MailServer {
    /// Reads `smtps://` and `smtp://`.
    ///
    /// # Errors
    /// A clause that says what it must be.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|_| MUST.to_owned())?;
        // The crate keeps hosts of schemes that it does not know as they are written: they are read as those of https.
        let host = url.host_str().filter(|it| !it.is_empty()).and_then(|it| Host::parse(it).ok());
        let (Some(host), true) = (host, is_bare(&url)) else { return Err(MUST.to_owned()) };
        let (security, port) = match url.scheme() {
            "smtps" => (Security::Tls, 465),
            "smtp" if is_loopback(&host) => (Security::Loopback, 25),
            "smtp" => (Security::StartTls, 587),
            _ => return Err(MUST.to_owned()),
        };
        let host = host.to_string().trim_matches(['[', ']']).into();
        Ok(Self { host, port: url.port().unwrap_or(port), security, login: login(&url)? })
    }
}

/// Whether there is nothing in it beside scheme, user, password, host and port.
fn is_bare(url: &Url) -> bool {
    matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none()
}

/// Whether a host is this machine itself.
pub(super) fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => name == "localhost",
        Host::Ipv4(it) => IpAddr::V4(*it).is_loopback(),
        Host::Ipv6(it) => IpAddr::V6(*it).is_loopback(),
    }
}

fn login(url: &Url) -> Result<Option<Login>, String> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| MUST.to_owned());
    match (url.username(), url.password()) {
        ("", None) => Ok(None),
        ("", Some(_)) | (_, None) => Err("must have a user and a password, or neither".to_owned()),
        (user, Some(password)) => Ok(Some(Login { user: decoded(user)?, password: Secret::new(decoded(password)?) })),
    }
}

/// Reads whom mail comes from; its domain is kept in the form that every mail server knows.
///
/// # Errors
/// A clause that says what it must be.
pub(super) fn from(text: &str) -> Result<Mailbox, String> {
    let must = || "must be an address such as `svc@example.com` or `svc <svc@example.com>`".to_owned();
    let Mailbox { name, email } = text.parse().map_err(|_| must())?;
    let email: Address = plain_domain(email.as_ref()).parse().map_err(|_| must())?;
    if email.domain().is_ascii() { Ok(Mailbox::new(name, email)) } else { Err(must()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Every mail server is spoken to by TLS but one on this machine, on the port of its scheme unless another is named; a
    /// password may hold any sign.
    #[test]
    fn a_mail_server_is_read() {
        for (text, host, port, security, login) in [
            ("smtps://mail.example.com", "mail.example.com", 465, Security::Tls, None),
            (
                "smtps://a%40b:p%3Aw%2F@mail.example.com:2465/",
                "mail.example.com",
                2465,
                Security::Tls,
                Some(("a@b", "p:w/")),
            ),
            ("smtp://u:p@mail.example.com", "mail.example.com", 587, Security::StartTls, Some(("u", "p"))),
            ("smtp://10.0.0.1", "10.0.0.1", 587, Security::StartTls, None),
            ("smtp://127.0.0.1:2525", "127.0.0.1", 2525, Security::Loopback, None),
            ("smtp://[::1]:2525", "::1", 2525, Security::Loopback, None),
            ("smtp://localhost", "localhost", 25, Security::Loopback, None),
        ] {
            let read = MailServer::parse(text).unwrap();
            assert_eq!((&*read.host, read.port, read.security), (host, port, security), "{text}");
            let known = read.login.as_ref().map(|it| (it.user.as_str(), it.password.expose().as_str()));
            assert_eq!(known, login, "{text}");
        }
    }

    /// What is no such address is refused in words that hold nothing of it: it may hold a password.
    #[test]
    fn a_fault_repeats_nothing_of_the_address() {
        for text in [
            "",
            "mail.example.com",
            "https://u:hush@mail.example.com",
            "smtps://u:hush@",
            "smtps://u:hush@mail.example.com/path",
            "smtps://u:hush@mail.example.com?tls=no",
            "smtps://u:hush@mail.example.com#x",
            "smtps://u:hush@mail.example.com:x",
            "smtps://hush@mail.example.com",
            "smtps://:hush@mail.example.com",
            "smtps://u:%ffhush@mail.example.com",
        ] {
            let fault = MailServer::parse(text).map(drop).unwrap_err();
            assert!(!fault.contains("hush"), "{text}: {fault}");
        }
        let read = MailServer::parse("smtps://u:hush@mail.example.com").unwrap();
        assert!(!format!("{read:?}").contains("hush"));
    }

    /// Whom mail comes from has a domain that every mail server knows, however it is written.
    #[test]
    fn a_sender_has_a_plain_domain() {
        for (text, read) in [
            ("svc@example.com", "svc@example.com"),
            ("svc <svc@ex\u{e4}mple.com>", "svc <svc@xn--exmple-cua.com>"),
            ("p\u{f6}st@ex\u{e4}mple.com", "p\u{f6}st@xn--exmple-cua.com"),
        ] {
            assert_eq!(from(text).unwrap().to_string(), read);
        }
        assert!(from("nobody").is_err());
    }
}
