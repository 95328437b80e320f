//! The outbound guard: which addresses that a caller names may be called (CONTRACT part 1, "Outbound guard").
//!
//! This is its pure half: the text of a URL, and whether an address is one of the public internet. Whoever connects
//! resolves the host, asks [`is_public`] of every address, and connects to the one that was asked about.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::value::Invalid;

/// The longest URL, in characters.
const URL_CHARS_MAX: usize = 2_048;

/// What this deployment lets be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Whether private addresses, and `http://` to loopback literals, are let through: for development alone.
    pub allow_private_loopback: bool,
    /// The host of this server's own base address, which is never called.
    pub own_host: Box<str>,
}

/// A URL that may be called, as far as its text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundUrl(Url);

impl OutboundUrl {
    /// Reads a URL: `https`, without user, password or fragment, its host neither this server nor a literal address that
    /// is not public.
    ///
    /// # Errors
    /// [`Invalid`] says which of these it breaks.
    pub fn parse(text: &str, policy: &Outbound) -> Result<Self, Invalid> {
        if text.chars().count() > URL_CHARS_MAX {
            return Err(Invalid::new(format!("must be at most {URL_CHARS_MAX} characters")));
        }
        // The WHATWG parser drops tabs and line ends and takes backslashes for slashes: what was checked would not be what
        // was sent.
        if text.chars().any(|it| it.is_control() || it.is_whitespace() || it == '\\') {
            return Err(Invalid::new("must be a URL without spaces, control characters and backslashes"));
        }
        let url = Url::parse(text).map_err(|_| Invalid::new("must be an absolute https URL"))?;
        let host = url.host().ok_or_else(|| Invalid::new("must name a host"))?.to_owned();
        let loopback = literal(&host).is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if policy.allow_private_loopback && loopback => {}
            _ => return Err(Invalid::new("must be an https URL")),
        }
        if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
            return Err(Invalid::new("must not hold a user or a password"));
        }
        if url.fragment().is_some() {
            return Err(Invalid::new("must not hold a fragment"));
        }
        if url.port() == Some(0) {
            return Err(Invalid::new("must not name port 0"));
        }
        if literal(&host).is_some_and(|it| !is_public(it)) && !policy.allow_private_loopback {
            return Err(Invalid::new("must not name an address that is not public"));
        }
        if let Host::Domain(name) = &host {
            named(name, policy)?;
        }
        Ok(Self(url))
    }

    /// The URL, normalised.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its host: a name, or a literal address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Its port, 443 or 80 where it names none.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(443)
    }
}

/// Refuses names that always mean this machine or this service.
fn named(name: &str, policy: &Outbound) -> Result<(), Invalid> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let local = name == "localhost" || name.ends_with(".localhost");
    if local && !policy.allow_private_loopback {
        return Err(Invalid::new("must not name this machine"));
    }
    let own = policy.own_host.trim_end_matches('.');
    if !local && name.eq_ignore_ascii_case(own) {
        return Err(Invalid::new("must not name this service itself"));
    }
    Ok(())
}

fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(it) => Some(IpAddr::V4(*it)),
        Host::Ipv6(it) => Some(IpAddr::V6(*it)),
    }
}

/// The part of the text between `//` and the path, where an empty user would stand too.
fn authority(text: &str) -> &str {
    let rest = text.split_once("//").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or("")
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_loopback(),
        IpAddr::V6(it) => it.is_loopback(),
    }
}

/// Whether an address is global unicast by the IANA special-purpose registries. An IPv4 address that an IPv6 one carries
/// is judged as itself.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => is_public_v4(it),
        IpAddr::V6(it) => carried(it).map_or_else(|| is_public_v6(it), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 31, 196)
            | (192, 52, 193)
            | (192, 88, 99)
            | (192, 168, _)
            | (192, 175, 48)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224..=255, ..)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only 2000::/3 is given out as global unicast; within it stand the documentation and benchmark ranges.
    let global = (a & 0xe000) == 0x2000;
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    let protocol = a == 0x2001 && b < 0x0200;
    let as112 = a == 0x2620 && b == 0x004f;
    global && !documentation && !protocol && !as112
}

/// The IPv4 address that an IPv6 address carries: mapped, translated (both prefixes), 6to4 and Teredo.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let join = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(join(g, h)),
        (0x64, 0xff9b, 1, ..) => Some(join(g, h)),
        (0x2002, ..) => Some(join(b, c)),
        // Teredo keeps the client's address with every bit turned over.
        (0x2001, 0, ..) => Some(join(!g, !h)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn policy(allow: bool) -> Outbound {
        Outbound { allow_private_loopback: allow, own_host: "gate.example.com".into() }
    }

    /// Public names and addresses pass; everything that could lead inside does not.
    #[test]
    fn only_the_public_internet_is_called() {
        for good in [
            "https://example.com/hook?a=1",
            "https://93.184.216.34/x",
            "https://[2606:2800:220:1::1]/",
            "https://example.com:8443/",
        ] {
            assert!(OutboundUrl::parse(good, &policy(false)).is_ok(), "{good}");
        }
        for bad in [
            "http://example.com/",
            "ftp://example.com/",
            "https://user@example.com/",
            "https://@example.com/",
            "https://example.com/#a",
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://10.0.0.1/",
            "https://[::1]/",
            "https://[fd00::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://localhost/",
            "https://a.localhost./",
            "https://gate.example.com/",
            "https://GATE.example.com./",
            "https://example.com\\@10.0.0.1/",
            "https://exa\tmple.com/",
            "",
            "example.com",
            "http://127.0.0.1/",
            "https://169.254.169.254/latest",
            "https://example.com:0/",
        ] {
            assert!(OutboundUrl::parse(bad, &policy(false)).is_err(), "{bad}");
        }
        assert!(OutboundUrl::parse("http://127.0.0.1:9/x", &policy(true)).is_ok());
        assert!(OutboundUrl::parse("http://example.com/x", &policy(true)).is_err());
    }
}
