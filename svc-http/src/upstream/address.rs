//! Where a provider may be: on the public internet by https, or at a host that the operator named.

use std::net::IpAddr;

use svc_core::state::edge::outbound::{Outbound, OutboundUrl, Private};
use svc_core::value::Invalid;
use url::{Host, Url};

/// Hosts on private addresses that upstreams may have (`outbound.allow`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed(Vec<Host<String>>);

/// The base address of an upstream: without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Base {
    /// Who is connected to.
    pub(crate) origin: Origin,
    /// What stands before every path: empty, or a slash and more.
    pub(crate) path: Box<str>,
}

/// Who is connected to; connections to equal ones are interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    /// The host.
    pub(crate) host: Host<String>,
    /// The port.
    pub(crate) port: u16,
    /// Whether by https.
    pub(crate) tls: bool,
    /// The host and, where it is not the scheme's own, the port, as a request names them.
    pub(crate) authority: Box<str>,
}

impl Allowed {
    /// Reads hosts: names, or addresses, the sixth version with or without brackets. They are compared as they are, so a pattern
    /// is none, nor is a number that could be read as an address.
    ///
    /// # Errors
    /// The first text that is no host.
    pub fn parse<'text>(texts: impl IntoIterator<Item = &'text str>) -> Result<Self, String> {
        let host = |text: &'text str| {
            let host = match text.parse() {
                Ok(IpAddr::V4(it)) => Some(Host::Ipv4(it)),
                Ok(IpAddr::V6(it)) => Some(Host::Ipv6(it)),
                Err(_) => Host::parse(text).ok().filter(|it| match it {
                    Host::Domain(name) => is_name(name),
                    Host::Ipv4(_) => false,
                    Host::Ipv6(_) => true,
                }),
            };
            host.ok_or_else(|| text.to_owned())
        };
        texts.into_iter().map(str::trim).map(host).collect::<Result<_, _>>().map(Self)
    }

    /// This machine, by its usual names: for development.
    #[must_use]
    pub fn loopback() -> Self {
        Self::parse(["localhost", "127.0.0.1", "::1"]).unwrap_or_default()
    }

    /// The same and one address more.
    #[must_use]
    pub fn and(mut self, address: IpAddr) -> Self {
        self.0.push(match address {
            IpAddr::V4(it) => Host::Ipv4(it),
            IpAddr::V6(it) => Host::Ipv6(it),
        });
        self
    }

    /// Whether nothing is allowed beyond what everybody may be.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What judges addresses where these hosts, and no others, may be private.
    #[must_use]
    pub fn guard(&self, own_host: &str) -> Outbound {
        Outbound { private: Private::At(self.0.as_slice().into()), own_host: own_host.into() }
    }
}

impl Base {
    /// Reads the base address of an upstream: what [`OutboundUrl`] admits, or an address by http whose host may be
    /// private.
    ///
    /// # Errors
    /// [`Invalid`] says which of these it breaks.
    pub(crate) fn parse(text: &str, guard: &Outbound) -> Result<Self, Invalid> {
        let (origin, url) = judged(text, guard)?;
        if url.query().is_some() {
            return Err(Invalid::new("must not hold a query"));
        }
        Ok(Self { origin, path: url.path().trim_end_matches('/').into() })
    }
}

/// Whether a text is the name of a host: labels of letters, digits, hyphens and, as private networks have them, underscores.
fn is_name(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|it| is_inner(it) || it == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.strip_suffix('.').unwrap_or(text).split('.').all(is_label)
}

/// Reads an address by https that [`OutboundUrl`] admits, or one by http whose host may be private: who is connected to, and
/// the address.
///
/// # Errors
/// [`Invalid`] says which of these it breaks.
pub(super) fn judged(text: &str, guard: &Outbound) -> Result<(Origin, Url), Invalid> {
    let asked = Url::parse(text).map_err(|_| Invalid::new("must be an absolute https URL"))?;
    let host = asked.host().map(|it| it.to_owned()).ok_or_else(|| Invalid::new("must name a host"))?;
    let is_allowed = guard.may_be_private(&host);
    let tls = asked.scheme() != "http";
    let judged = match text.get(..5) {
        // What may be called by http has to be what else may be called by https.
        Some(scheme) if !tls && is_allowed && scheme.eq_ignore_ascii_case("http:") => {
            OutboundUrl::parse(&format!("https:{}", text.get(5..).unwrap_or_default()), guard)?
        }
        _ => OutboundUrl::parse(text, guard)?,
    };
    let url = Url::parse(judged.as_str()).map_err(|_| Invalid::new("must be an absolute https URL"))?;
    let port = asked.port_or_known_default().ok_or_else(|| Invalid::new("must name a port"))?;
    let usual = if tls { 443 } else { 80 };
    let authority = if port == usual { host.to_string() } else { format!("{host}:{port}") };
    let origin = Origin { host, port, tls, authority: authority.into() };
    Ok((origin, url))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn parse(text: &str, allowed: &[&str]) -> Option<Base> {
        let allowed = Allowed::parse(allowed.iter().copied()).unwrap();
        Base::parse(text, &allowed.guard("gate.example.com")).ok()
    }

    /// Public hosts by https; private ones, and plain http, only where the operator named the host.
    #[test]
    fn private_hosts_are_admitted_by_name_alone() {
        let inside: &[&str] = &["models.internal", "10.0.0.5", "::1", "localhost"];
        for (url, without, with) in [
            ("https://api.example.com/v1", true, true),
            ("http://api.example.com/v1", false, false),
            ("http://models.internal:8000/v1", false, true),
            ("http://10.0.0.5/v1", false, true),
            ("https://10.0.0.5/v1", false, true),
            ("http://10.0.0.6/v1", false, false),
            ("https://10.0.0.6/v1", false, false),
            ("http://[::1]:9000", false, true),
            ("http://localhost:9000", false, true),
            ("http://169.254.169.254/", false, false),
            ("https://gate.example.com/v1", false, false),
            ("https://user:word@api.example.com", false, false),
            ("http://user@10.0.0.5/v1", false, false),
            ("https://api.example.com/v1?key=1", false, false),
            ("http://10.0.0.5/v1#part", false, false),
            ("ftp://10.0.0.5/", false, false),
            ("nonsense", false, false),
        ] {
            assert_eq!(parse(url, &[]).is_some(), without, "{url} by default");
            assert_eq!(parse(url, inside).is_some(), with, "{url} where it is allowed");
        }
    }

    /// The port and the path are those that were written, the slash at the end is none of it.
    #[test]
    fn an_address_is_what_was_written() {
        let base = parse("https://API.example.com/v1/", &[]).unwrap();
        assert_eq!((&*base.origin.authority, base.origin.port, &*base.path), ("api.example.com", 443, "/v1"));
        let base = parse("http://10.0.0.5:8000", &["10.0.0.5"]).unwrap();
        assert_eq!((&*base.origin.authority, base.origin.tls, &*base.path), ("10.0.0.5:8000", false, ""));
        let base = parse("http://10.0.0.5/v1", &["10.0.0.5"]).unwrap();
        assert_eq!((&*base.origin.authority, base.origin.port), ("10.0.0.5", 80));
    }
}
