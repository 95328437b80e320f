//! The outbound guard: what a caller names to be called must lie on the public internet.
//!
//! This is its pure half: the text of a URL, and whether one address may be connected to. Whoever connects resolves the
//! host, asks [`Outbound::is_allowed`] of every address, and connects to one that was asked about.
//!
//! **Invariant:** what is checked is what is called: the URL that is kept is the normalised one that was judged.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

use crate::value::Invalid;
use crate::value::text::UrlText;

/// The longest URL, in characters, both as sent and normalised.
const URL_CHARS_MAX: usize = 2_048;

/// What this deployment lets be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Which hosts may have private addresses, and `http://` where they are loopback literals.
    pub private: Private,
    /// The host of this server's own base address with its port, where that is not its scheme's own: never called.
    pub own_host: Box<str>,
}

/// Hosts that may have private addresses. Link-local addresses are never private in this sense: clouds answer with
/// credentials there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Private {
    /// None: as what strangers name is judged.
    #[default]
    Nowhere,
    /// These, which the operator named; they are compared as they are written.
    At(Box<[Host<String>]>),
    /// All: for development alone.
    Anywhere,
}

impl Outbound {
    /// Whether a host may have private addresses.
    #[must_use]
    pub fn may_be_private(&self, host: &Host<String>) -> bool {
        match &self.private {
            Private::Nowhere => false,
            Private::At(hosts) => hosts.contains(host),
            Private::Anywhere => true,
        }
    }

    /// Whether an address that `host` resolved to may be connected to: one of the public internet or, where the host may
    /// have one, a private one.
    #[must_use]
    pub fn is_allowed(&self, host: &Host<String>, address: IpAddr) -> bool {
        is_public(address) || (is_private(address) && self.may_be_private(host))
    }

    /// Whether host and port are this server's. Its name is its own at every port; an address may carry other servers,
    /// which development calls.
    fn is_own(&self, host: &Host<String>, port: u16) -> bool {
        let own = self.own_host.trim_end_matches('.');
        let (own, own_port) = match own.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()),
            Some(_) | None => (own, None),
        };
        let Ok(own) = Host::parse(own) else { return false };
        let local = is_local_name(&own) || literal(&own).is_some_and(is_private);
        let same_port = own_port.map_or(matches!(port, 80 | 443), |own| own == port);
        rooted(&own) == rooted(host) && (same_port || !(local && self.may_be_private(host)))
    }
}

/// A URL that may be called, as far as its text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundUrl(Url);

impl OutboundUrl {
    /// Reads a URL: `https`, without user, password or fragment, its host neither this server nor a literal address that
    /// may not be called.
    ///
    /// # Errors
    /// [`Invalid`] says which of these it breaks.
    pub fn parse(text: &str, policy: &Outbound) -> Result<Self, Invalid> {
        if is_long(text) {
            return Err(Invalid::new(format!("must be at most {URL_CHARS_MAX} characters")));
        }
        // The WHATWG parser drops tabs and line ends and takes backslashes for slashes: what was checked would not be what
        // was sent.
        if text.chars().any(|it| it.is_control() || it.is_whitespace() || it == '\\') {
            return Err(Invalid::new("must be a URL without spaces, control characters and backslashes"));
        }
        let url = Url::parse(text).map_err(|_| Invalid::new("must be an absolute https URL"))?;
        let authority = authority(text).ok_or_else(|| Invalid::new("must be an absolute https URL"))?;
        let host = url.host().ok_or_else(|| Invalid::new("must name a host"))?.to_owned();
        let loopback = literal(&host).is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if loopback && policy.may_be_private(&host) => {}
            _ => return Err(Invalid::new("must be an https URL")),
        }
        if !url.username().is_empty() || url.password().is_some() || authority.contains('@') {
            return Err(Invalid::new("must not hold a user or a password"));
        }
        if url.fragment().is_some() {
            return Err(Invalid::new("must not hold a fragment"));
        }
        if url.port() == Some(0) {
            return Err(Invalid::new("must not name port 0"));
        }
        if is_long(url.as_str()) {
            return Err(Invalid::new(format!("must be at most {URL_CHARS_MAX} characters when percent-encoded")));
        }
        called(&host, url.port_or_known_default().unwrap_or(443), policy)?;
        Ok(Self(url))
    }

    /// Reads a URL that is one of a body's texts: as these are, it is taken without the white space around it.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn of_text(text: &str, policy: &Outbound) -> Result<UrlText, Invalid> {
        Self::parse(text.trim(), policy)?.try_into()
    }

    /// The URL, normalised.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Its host: a name in lower case, or a literal address, the sixth version in brackets.
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

impl TryFrom<OutboundUrl> for UrlText {
    type Error = Invalid;

    fn try_from(url: OutboundUrl) -> Result<Self, Invalid> {
        Self::parse(url.as_str())
    }
}

/// Whether an address is global unicast by the IANA special-purpose registries. An IPv4 address that an IPv6 one carries
/// is judged as itself.
///
/// Registries: <https://www.iana.org/assignments/iana-ipv4-special-registry/>,
/// <https://www.iana.org/assignments/iana-ipv6-special-registry/>.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => is_public_v4(it),
        IpAddr::V6(it) => match carried(it) {
            Carried::Nothing => GLOBAL_V6.contains(&it) && !SPECIAL_V6.iter().any(|net| net.contains(&it)),
            Carried::One(inner) => is_public_v4(inner),
            Carried::Two(inner, other) => is_public_v4(inner) && is_public_v4(other),
            Carried::Unclear => false,
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|net| net.contains(&address))
}

/// Whether an address is loopback or of a private network; a mapped one is its IPv4 address.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => it.is_loopback() || it.is_private(),
        IpAddr::V6(it) => it.is_loopback() || it.is_unique_local(),
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Refuses hosts that always mean this machine, this service, or a place that may not be called.
fn called(host: &Host<String>, port: u16, policy: &Outbound) -> Result<(), Invalid> {
    if literal(host).is_some_and(|it| !policy.is_allowed(host, it)) {
        return Err(Invalid::new("must not name an address that is not public"));
    }
    if is_local_name(host) && !policy.may_be_private(host) {
        return Err(Invalid::new("must not name this machine"));
    }
    if let Host::Domain(name) = rooted(host)
        && name.split('.').any(str::is_empty)
    {
        return Err(Invalid::new("must not name a host with an empty label"));
    }
    if policy.is_own(host, port) {
        return Err(Invalid::new("must not name this service itself"));
    }
    Ok(())
}

/// `localhost` and every name below it (RFC 6761, section 6.3).
fn is_local_name(host: &Host<String>) -> bool {
    matches!(rooted(host), Host::Domain(name) if name == "localhost" || name.ends_with(".localhost"))
}

/// A host without the dot that may end a name.
fn rooted(host: &Host<String>) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name.strip_suffix('.').unwrap_or(name)),
        Host::Ipv4(it) => Host::Ipv4(*it),
        Host::Ipv6(it) => Host::Ipv6(*it),
    }
}

fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(it) => Some(IpAddr::V4(*it)),
        Host::Ipv6(it) => Some(IpAddr::V6(*it)),
    }
}

/// The part of the text between `://` and the path, where an empty user would stand too. The WHATWG parser would do
/// without the slashes, or take more of them.
fn authority(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    rest.split(['/', '?', '#']).next().filter(|it| !it.is_empty())
}

fn is_long(text: &str) -> bool {
    text.chars().nth(URL_CHARS_MAX).is_some()
}

/// What an IPv6 address says of IPv4.
enum Carried {
    Nothing,
    One(Ipv4Addr),
    Two(Ipv4Addr, Ipv4Addr),
    /// The carried address depends on a prefix length that only its network knows.
    Unclear,
}

/// The IPv4 address that an IPv6 address carries: mapped (RFC 4291), translated (RFC 6052, RFC 8215), 6to4 (RFC 3056)
/// and Teredo (RFC 4380).
fn carried(address: Ipv6Addr) -> Carried {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let join = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(one, two, three, four)
    };
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) | (0x64, 0xff9b, 1, 0, 0, 0) => Carried::One(join(g, h)),
        (0x64, 0xff9b, 1, ..) => Carried::Unclear,
        (0x2002, ..) => Carried::One(join(b, c)),
        // The server's address, and the client's with every bit turned over.
        (0x2001, 0, ..) => Carried::Two(join(c, d), join(!g, !h)),
        _ => Carried::Nothing,
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), bits)
}

/// Ranges of IPv4 that are no place of the public internet, and those whose servers belong to nobody in particular.
const SPECIAL_V4: &[Ipv4Net] = &[
    v4(0, 0, 0, 0, 8),       // this network
    v4(10, 0, 0, 0, 8),      // private use
    v4(100, 64, 0, 0, 10),   // shared by carriers
    v4(127, 0, 0, 0, 8),     // loopback
    v4(169, 254, 0, 0, 16),  // link local, metadata of clouds
    v4(172, 16, 0, 0, 12),   // private use
    v4(192, 0, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 0, 24),    // documentation
    v4(192, 31, 196, 0, 24), // AS112
    v4(192, 52, 193, 0, 24), // multicast tunnels
    v4(192, 88, 99, 0, 24),  // relays of 6to4
    v4(192, 168, 0, 0, 16),  // private use
    v4(192, 175, 48, 0, 24), // AS112
    v4(198, 18, 0, 0, 15),   // benchmarks
    v4(198, 51, 100, 0, 24), // documentation
    v4(203, 0, 113, 0, 24),  // documentation
    v4(224, 0, 0, 0, 4),     // multicast
    v4(240, 0, 0, 0, 4),     // reserved, broadcast
];

/// All that is given out of IPv6 as global unicast.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// Ranges within [`GLOBAL_V6`] that are no place of the public internet.
const SPECIAL_V6: &[Ipv6Net] = &[
    v6(0x2001, 0, 0, 23),         // protocol assignments
    v6(0x2001, 0xdb8, 0, 32),     // documentation
    v6(0x2620, 0x4f, 0x8000, 48), // AS112
    v6(0x3fff, 0, 0, 20),         // documentation
];

#[cfg(test)]
mod tests;
