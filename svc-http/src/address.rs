//! Whose address a request comes from, behind proxies that are trusted.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

/// A caller's address as rates count it: an IPv4 address, or the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RateAddress(pub u128);

/// The client's address: the peer's, or, where the peer is a trusted proxy, the rightmost address of `x-forwarded-for`
/// that is no trusted proxy.
///
/// What cannot be read ends the walk: the hop that wrote it is then the client, as nobody trusted vouches for more.
#[must_use]
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    if trusted.is_empty() || !is_trusted(client, trusted) {
        return client;
    }
    for line in headers.get_all("x-forwarded-for").iter().rev() {
        let Ok(line) = line.to_str() else { return client };
        for entry in line.rsplit(',') {
            let Some(address) = parse(entry.trim()) else { return client };
            client = address;
            if !is_trusted(client, trusted) {
                return client;
            }
        }
    }
    client
}

/// Networks of proxies, as settings name them.
///
/// # Errors
/// What is wrong with the first that is none.
pub(crate) fn networks(texts: &[String]) -> Result<Vec<IpNet>, String> {
    let network = |text: &String| {
        let text = text.trim();
        let network = text
            .parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map_err(|_| format!("must be a list of networks such as `10.0.0.0/8`, and `{text}` is none"))?;
        // Whoever asks would then say themselves what address they have, past limits and what tokens are pinned to.
        if network.prefix_len() == 0 {
            return Err(format!("must name the networks of proxies, and `{text}` is every address there is"));
        }
        // Addresses are looked at as the IPv4 addresses that they are: such a network would hold none of them.
        if let IpNet::V6(mapped) = network
            && mapped.network().to_ipv4_mapped().is_some()
        {
            return Err(format!("must name IPv4 networks as such, and `{text}` is one written as IPv6"));
        }
        Ok(network)
    };
    texts.iter().map(network).collect()
}

impl From<IpAddr> for RateAddress {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().to_bits()),
            IpAddr::V6(v6) => Self(Ipv6Addr::to_bits(v6) >> 64 << 64),
        }
    }
}

fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|it| it.contains(&address))
}

/// An address as proxies write it: bare, in brackets, or with a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(entry);
    let address = bare.parse().or_else(|_| entry.parse::<SocketAddr>().map(|it| it.ip())).ok()?;
    Some(IpAddr::to_canonical(&address))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use http::HeaderValue;

    use super::*;

    fn of(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_str(line).unwrap());
        }
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    /// Only a trusted peer's word counts, and only up to the first address that is not trusted.
    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(of("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(of("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.2.3.4"]), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &["1.1.1.1", "198.51.100.1 ,10.2.3.4"]), "198.51.100.1");
        assert_eq!(of("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(of("10.0.0.1", &["10.9.9.9"]), "10.9.9.9");
        assert_eq!(of("::ffff:10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(of("fd00::1", &["198.51.100.1:80"]), "198.51.100.1");
    }

    /// What no proxy writes is not believed, nor anything to the left of it.
    #[test]
    fn garbage_ends_the_walk() {
        for garbage in ["unknown", "", "1.2.3", "198.51.100.1, ", "198.51.100.1, _hidden"] {
            assert_eq!(of("10.0.0.1", &[garbage]), "10.0.0.1", "{garbage}");
        }
    }

    /// IPv6 counts by /64 and IPv4 by address, also where it is written as IPv6.
    #[test]
    fn rates_count_by_address_and_by_64() {
        let key = |text: &str| RateAddress::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_eq!(key("192.0.2.1"), key("::ffff:192.0.2.1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
    }
}
