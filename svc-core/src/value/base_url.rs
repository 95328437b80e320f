//! The address at which others reach the service: receipts name it as their issuer, links begin with it.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::fmt;

use url::{Host, Url};

use super::Invalid;

/// The base address: scheme, host, port and path without a trailing slash. Https, unless the host is loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    host: String,
    is_loopback: bool,
}

impl BaseUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// [`Invalid`] where it is no such address.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let none = |_| Invalid::new("must be an address such as `https://gate.example.com`");
        let url = Url::parse(text).map_err(none)?;
        let is_loopback = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            None => return Err(Invalid::new("must have a host")),
        };
        match url.scheme() {
            "https" => {}
            "http" if is_loopback => {}
            "http" => return Err(Invalid::new("must begin with `https://`, because its host is not loopback")),
            _ => return Err(Invalid::new("must begin with `https://`")),
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(Invalid::new("must have no user, query or fragment"));
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), host, is_loopback })
    }

    /// The address without a trailing slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host: a name in lower case, or an address, the sixth version in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host with its port, where that is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> &str {
        let rest = self.text.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// Whether the host is loopback.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Plain http to the loopback address that `listening` takes connections on.
    #[must_use]
    pub fn of_loopback(listening: SocketAddr) -> Self {
        let ip = if listening.ip().is_loopback() { listening.ip() } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let at = SocketAddr::new(ip, listening.port());
        let host = if at.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
        Self { text: format!("http://{at}"), host, is_loopback: true }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    /// One service has one address, however it is written; what no receipt could name is none.
    #[test]
    fn a_base_address_has_one_form() {
        for (text, form) in [
            ("https://Gate.Example.com", "https://gate.example.com"),
            ("https://gate.example.com:443/", "https://gate.example.com"),
            ("https://gate.example.com/svc/", "https://gate.example.com/svc"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080"),
        ] {
            assert_eq!(BaseUrl::parse(text).unwrap().as_str(), form);
        }
        for none in [
            "",
            "not a url",
            "ftp://gate.example.com",
            "http://gate.example.com",
            "https://me@gate.example.com",
            "https://gate.example.com/?a=b",
            "https://gate.example.com/#a",
        ] {
            assert!(BaseUrl::parse(none).is_err(), "{none}");
        }
    }
}
