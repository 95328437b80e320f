//! Where the database is, and how the way to it is secured: `postgres://user:password@host:port/database?…`.
//!
//! **Invariant:** the way is encrypted and the server's certificate checked, unless the address says `sslmode=disable` or the
//! server is on this machine. No text made here holds the password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::io::CONNECT;
use crate::error::StoreError;

/// What connections are called whose address does not name them.
pub(super) const PLAIN_NAME: &str = "svc";
/// After how long without an answer to what was sent a connection counts as lost.
const SILENCE: Duration = Duration::from_secs(15);

/// An address, taken apart. Its `Debug` shows no password.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Option<Roots>,
}

/// Whom a connection trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Whom the system trusts, or browsers where it trusts nobody.
    System,
    /// The certificates of a file (PEM), and nobody else.
    File(PathBuf),
}

/// How the address wants the way secured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Checked,
}

impl Address {
    /// Reads the address of a database.
    ///
    /// # Errors
    /// [`StoreError::DatabaseAddress`], which says what is wrong without repeating any of the text.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        if !["postgres://", "postgresql://"].iter().any(|it| text.starts_with(it)) {
            return Err(wrong("begins with neither `postgres://` nor `postgresql://`"));
        }
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut file, mut kept) = (None, None, Vec::new());
        for pair in query.split('&').filter(|it| !it.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(mode_of(value)?),
                Some(("sslrootcert", value)) => {
                    file = Some(PathBuf::from(
                        decoded(value).ok_or_else(|| wrong("has an `sslrootcert` that is no path"))?,
                    ));
                }
                Some(_) => kept.push(pair),
                None => return Err(wrong("has a parameter without `=`")),
            }
        }
        let question = if kept.is_empty() { "" } else { "?" };
        let mut config = Config::from_str(&format!("{place}{question}{}", kept.join("&")))
            .map_err(|_| wrong("has a part that is malformed, or a parameter that is not known"))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("names no host"));
        }
        if config.get_dbname().is_none() {
            return Err(wrong("names no database"));
        }
        if config.get_user().is_none() {
            return Err(wrong("names no user"));
        }
        let mode = mode.unwrap_or_else(|| if is_here(&config) { Mode::Plain } else { Mode::Checked });
        if mode == Mode::Plain && file.is_some() {
            return Err(wrong("names an `sslrootcert` for a way that is not encrypted"));
        }
        config.ssl_mode(if mode == Mode::Plain { SslMode::Disable } else { SslMode::Require });
        if !kept.iter().any(|pair| pair.starts_with("target_session_attrs=")) {
            // Of several hosts the one that takes writes: after a failover it is another one.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENCE);
        if config.get_application_name().is_none() {
            config.application_name(PLAIN_NAME);
        }
        let tls = (mode == Mode::Checked).then(|| file.map_or(Roots::System, Roots::File));
        Ok(Self { config, tls })
    }
}

/// Host and database, for people: nothing that lets anybody in.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("postgres://")?;
        for (at, host) in self.config.get_hosts().iter().enumerate() {
            let name = match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            };
            let ports = self.config.get_ports();
            let port = ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
            write!(out, "{}{name}:{port}", if at == 0 { "" } else { "," })?;
        }
        write!(out, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Address({self})")
    }
}

fn wrong(why: &'static str) -> StoreError {
    StoreError::DatabaseAddress { why }
}

/// What falls back to a way without encryption is refused: whoever sits on the way decides then.
fn mode_of(value: &str) -> Result<Mode, StoreError> {
    match value {
        "disable" => Ok(Mode::Plain),
        "require" | "verify-full" => Ok(Mode::Checked),
        "allow" | "prefer" | "verify-ca" => {
            Err(wrong("has an `sslmode` that checks too little: `verify-full`, or `disable` where the way is safe"))
        }
        _ => Err(wrong("has an `sslmode` that is none of `disable`, `require` and `verify-full`")),
    }
}

/// Whether every host is this machine, so that nobody sits on the way.
fn is_here(config: &Config) -> bool {
    let named = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    named && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
}

/// Undoes percent-encoding; `None` where it is broken or no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first == b'%' {
            let (pair, behind) = rest.split_at_checked(2)?;
            let pair = std::str::from_utf8(pair).ok().filter(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))?;
            bytes.push(u8::from_str_radix(pair, 16).ok()?);
            rest = behind;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// Over a network the way is encrypted and checked unless the address says that it is not; on one machine it need not be.
    #[test]
    fn a_way_over_a_network_is_secured() {
        let tls = |text: &str| Address::parse(text).unwrap().tls;
        let file = || Some(Roots::File("/etc/db ca.pem".into()));
        assert_eq!(tls("postgres://svc:pw@db.example.com/svc"), Some(Roots::System));
        assert_eq!(tls("postgres://svc:pw@10.0.0.7,10.0.0.8:6432/svc?sslmode=require"), Some(Roots::System));
        assert_eq!(tls("postgresql://svc@db/svc?sslmode=verify-full&sslrootcert=%2Fetc%2Fdb%20ca.pem"), file());
        assert_eq!(tls("postgres://svc:pw@db/svc?sslmode=disable"), None);
        assert_eq!(tls("postgres://svc@127.0.0.1:5432/svc"), None);
        assert_eq!(tls("postgres://svc@localhost/svc"), None);
        assert_eq!(tls("postgres://svc@%2Frun%2Fpostgresql/svc"), None);
        assert_eq!(tls("postgres://svc@localhost,db/svc"), Some(Roots::System));
    }

    /// What is wrong is said without any of what was given: it may be the password.
    #[test]
    fn a_wrong_address_is_refused_without_repeating_it() {
        for text in [
            "mysql://svc:hunter2@db/svc",
            "postgres://svc:hunter2@db/svc?sslmode=prefer",
            "postgres://svc:hunter2@db/svc?sslmode=allow",
            "postgres://svc:hunter2@db/svc?sslmode=verify-ca",
            "postgres://svc:hunter2@db/svc?sslmode=hunter2",
            "postgres://svc:hunter2@db/svc?hunter2",
            "postgres://svc:hunter2@db/svc?hunter2=1",
            "postgres://svc:hunter2@db:port/svc",
            "postgres://svc:hunter2@db",
            "postgres://svc:hunter2@/svc",
            "postgres://db/svc?password=hunter2",
            "postgres://svc:hunter2@localhost/svc?sslrootcert=a.pem",
            "postgres://svc:hunter2@db/svc?sslrootcert=%zz",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(matches!(error, StoreError::DatabaseAddress { .. }), "{text}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{text}: {error}");
        }
    }

    /// An address that is shown holds no secret.
    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = Address::parse("postgres://svc:hunter2@db.example.com:6432/gate?sslmode=require").unwrap();
        assert_eq!(address.to_string(), "postgres://db.example.com:6432/gate");
        assert!(!format!("{address:?}").contains("hunter2"));
    }
}
